//! Services written to the kernel by a [`ServiceProxy`], compared with the same prepared beforehand.
//!
//! All measurements run in the calling thread's network namespace, which must be a new one, or in others created for
//! them.

mod floor;
mod memory;
mod packets;

use std::cell::RefCell;
use std::hint::black_box;

pub use memory::{Memory, memory};
pub use packets::{Path, first_packets};

use super::rounds::{Counts, Turns, turn_of};
use super::{ChangeBytes, Cluster, Contender, Error as MeasureError, Measured, alternate_prepared};
use crate::BoxError;
use crate::floor::Floor;
use chainwright::iptables::Backend;
use chainwright_kube::service::{Layout, ServiceProxy, Services};
use chainwright_testing::Sandbox;
use floor::{Emptied, Listed, Prepared};

const PREPARED: &str = "floor: the prepared bytes";
const PREPARED_FLAT: &str = "floor: flat's prepared bytes";

/// The layout's name.
#[must_use]
pub const fn name_of(layout: Layout) -> &'static str {
    match layout {
        Layout::Flat => "flat",
        Layout::Nftables => "nftables",
        Layout::Iptables(Backend::Nft) => "iptables-nft",
        Layout::Iptables(Backend::Legacy) => "iptables-legacy",
        _ => unreachable!(),
    }
}

/// A cold start.
#[derive(Debug, Clone)]
pub struct Cold {
    /// The prepared bytes, and the proxy.
    pub contenders: Vec<Measured>,
    /// Number of bytes sent to the kernel.
    pub bytes: usize,
    /// Number of parts.
    pub parts: usize,
}

/// Writes all services to an empty namespace, from objects to the commit. The floor is the resulting content of the
/// kernel, read back and sent again. The calling thread's namespace contains everything afterwards.
///
/// # Errors
/// Those of syncing, reading and committing.
pub fn cold(cluster: Cluster, layout: Layout, rounds: usize) -> Result<Cold, BoxError> {
    let mut services = cluster.services();
    drop(Cluster::load(&mut services, layout, false)?);
    let mut prepared = Prepared::of(cluster, layout)?;
    let (bytes, parts) = prepared.size();
    let mut emptied = Emptied::new(layout)?;
    // Kept until the next turn: a real proxy is not dropped after its start.
    let kept = RefCell::new(None);
    let contenders = alternate_prepared::<BoxError>(
        rounds,
        &mut || {
            kept.take();
            emptied.empty()
        },
        &mut [
            (PREPARED, &mut || prepared.commit()),
            (name_of(layout), &mut || {
                kept.replace(Some(Cluster::load(&mut services, layout, false)?));
                Ok(())
            }),
        ],
    )?;
    // The last turn may have been the floor's, whose legacy tables are elsewhere.
    kept.take();
    emptied.empty()?;
    Cluster::load(&mut services, layout, false)?;
    Ok(Cold {
        contenders,
        bytes,
        parts,
    })
}

/// Starts a proxy where another one was: it reads the existing tables, and all of them are correct. The floor is a
/// listing of what grows with services, discarded.
///
/// # Errors
/// Those of syncing and reading.
pub fn restart(cluster: Cluster, layout: Layout, rounds: usize) -> Result<Vec<Measured>, BoxError> {
    let mut services = cluster.services();
    drop(Cluster::load(&mut services, layout, true)?);
    let mut listed = Listed::new(layout)?;
    let kept = RefCell::new(None);
    let floor: Contender<'_, BoxError> = (listed.name(), &mut || listed.list());
    alternate_prepared(
        rounds,
        &mut || {
            kept.take();
            Ok(())
        },
        &mut [
            floor,
            (name_of(layout), &mut || {
                kept.replace(Some(Cluster::load(&mut services, layout, true)?));
                Ok(())
            }),
        ],
    )
}

/// A proxy with its services, in its own namespace.
#[derive(Debug)]
struct Side {
    layout: Layout,
    proxy: ServiceProxy,
    services: Services,
    _namespace: Sandbox,
}

impl Side {
    fn new(mut services: Services, layout: Layout) -> Result<Self, BoxError> {
        let namespace = Sandbox::new()?;
        let proxy = namespace.run(|| Cluster::load(&mut services, layout, true))??;
        Ok(Self {
            layout,
            proxy,
            services,
            _namespace: namespace,
        })
    }

    /// Writes the change of one service to the kernel.
    fn sync(&mut self) -> Result<(), BoxError> {
        let synced = self.proxy.sync(&mut self.services)?;
        match synced.services == 1 && synced.transactions > 0 && !synced.whole {
            true => Ok(()),
            false => Err(MeasureError::Synced(format!("{synced:?}")).into()),
        }
    }
}

/// The floor's namespace and those of the layouts, all with the same services. The floor uses the flat layout.
#[derive(Debug)]
struct Sides {
    floor: Floor,
    sides: Vec<Side>,
    _namespace: Sandbox,
}

impl Sides {
    fn new(services: &Services, layouts: &[Layout]) -> Result<Self, BoxError> {
        let namespace = Sandbox::new()?;
        let floor = namespace.run(|| -> Result<Floor, BoxError> {
            Cluster::load(&mut services.clone(), Layout::Flat, false)?;
            Ok(Floor::open()?)
        })??;
        let sides = layouts
            .iter()
            .map(|layout| Side::new(services.clone(), *layout));
        Ok(Self {
            floor,
            sides: sides.collect::<Result<_, _>>()?,
            _namespace: namespace,
        })
    }

    /// Their number, including the floor.
    const fn len(&self) -> usize {
        1 + self.sides.len()
    }

    /// The measurements with their names.
    fn measured(&self, turns: &[Turns]) -> Vec<Measured> {
        let layouts = self.sides.iter().map(|side| name_of(side.layout));
        let names = [PREPARED_FLAT].into_iter().chain(layouts);
        let all = names.zip(turns);
        all.map(|(name, own)| own.beside(name, &turns[0])).collect()
    }
}

/// The change to the services in a round.
type Act<'c> = &'c dyn Fn(&mut Services, usize);

/// A change that is applied and reverted in each round.
struct Change<'c> {
    names: [&'static str; 2],
    prepared: Vec<ChangeBytes>,
    act: [Act<'c>; 2],
}

/// Measures one endpoint more and fewer, and one service more and fewer. The floor is the same element operations of
/// the flat layout in bytes, for all layouts, in a namespace with the same services. Each round changes another
/// service, so that it is no longer in the caches.
///
/// # Errors
/// Those of syncing and committing; [`MeasureError::Synced`].
pub fn changes(
    cluster: Cluster,
    layouts: &[Layout],
    rounds: usize,
) -> Result<Vec<(&'static str, Vec<Measured>)>, BoxError> {
    let mut sides = Sides::new(&cluster.services(), layouts)?;
    // If there are no services, the first sync reports no change.
    let number = |round: usize| round * 7919 % cluster.services.max(1);
    let new = |round: usize| cluster.services + round;
    let set = |services: &mut Services, round, endpoints| {
        cluster.set_endpoints(services, number(round), 0..endpoints);
    };
    let endpoint = Change {
        names: ["one endpoint more", "one endpoint fewer"],
        prepared: (0..=rounds)
            .map(|round| cluster.add_endpoint(number(round)))
            .collect::<Result<_, _>>()?,
        act: [
            &|services, round| set(services, round, cluster.endpoints + 1),
            &|services, round| set(services, round, cluster.endpoints),
        ],
    };
    let service = Change {
        names: ["one service more", "one service fewer"],
        prepared: (0..=rounds)
            .map(|round| cluster.add_service(new(round)))
            .collect::<Result<_, _>>()?,
        act: [
            &|services, round| cluster.set(services, new(round)),
            &|services, round| cluster.remove(services, new(round)),
        ],
    };
    let mut all = Vec::new();
    for change in [endpoint, service] {
        let turns = done_and_undone(&mut sides, &change, rounds)?;
        for (name, turns) in change.names.into_iter().zip(&turns) {
            all.push((name, sides.measured(turns)));
        }
    }
    Ok(all)
}

/// Applies a change and reverts it at once, in rounds.
fn done_and_undone(
    sides: &mut Sides,
    change: &Change<'_>,
    rounds: usize,
) -> Result<[Vec<Turns>; 2], BoxError> {
    let mut turns = [0, 1].map(|_| vec![Turns::default(); sides.len()]);
    for round in 0..=rounds {
        let there = &change.prepared[round];
        for turn in 0..sides.len() {
            let index = turn_of(sides.len(), round, turn);
            for (step, bytes) in [&there.done, &there.undone].into_iter().enumerate() {
                let turns = &mut turns[step][index];
                let counts = Counts::after_the_first(round);
                match index.checked_sub(1) {
                    None => turns.take(counts, || sides.floor.commit(bytes))?,
                    Some(side) => turns.take(counts, || {
                        let side = &mut sides.sides[side];
                        change.act[step](&mut side.services, round);
                        side.sync()
                    })?,
                }
            }
        }
    }
    Ok(turns)
}

/// Replaces each endpoint of one service's deployment, one after the other.
///
/// # Errors
/// Those of [`changes`].
pub fn rolling(
    cluster: Cluster,
    deployment: usize,
    layouts: &[Layout],
    rounds: usize,
) -> Result<Vec<Measured>, BoxError> {
    let number = cluster.services / 2;
    let set = |services: &mut Services, replaced| {
        let endpoints = Cluster::after_replacing(deployment, replaced);
        cluster.set_endpoints(services, number, endpoints);
    };
    let mut services = cluster.services();
    set(&mut services, 0);
    let mut sides = Sides::new(&services, layouts)?;
    drop(services);
    let prepared = cluster.replaced(number, deployment)?;
    let mut turns = vec![Turns::default(); sides.len()];
    for round in 0..=rounds {
        let counts = Counts::after_the_first(round);
        for turn in 0..sides.len() {
            let index = turn_of(sides.len(), round, turn);
            let turns = &mut turns[index];
            let Some(side) = index.checked_sub(1) else {
                let floor = &mut sides.floor;
                let mut parts = prepared.iter();
                turns.take(counts, || {
                    parts.try_for_each(|part| floor.commit(&part.done))
                })?;
                let mut parts = prepared.iter();
                parts.try_for_each(|part| floor.commit(&part.undone))?;
                continue;
            };
            let side = &mut sides.sides[side];
            let mut replace = |replaced| {
                set(&mut side.services, replaced);
                side.sync()
            };
            turns.take(counts, || (1..=deployment).try_for_each(&mut replace))?;
            // Reverted one by one, so that each gets its slot back.
            (0..deployment).rev().try_for_each(replace)?;
        }
    }
    black_box(&sides);
    Ok(sides.measured(&turns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result is an error, not a division by zero.
    #[test]
    fn where_no_services_are_none_is_measured() {
        let none = Cluster::new(0, 1);
        assert!(changes(none, &[Layout::Flat], 1).is_err());
        let services = none.services;
        let layout = Layout::Flat;
        let packets = first_packets(&[Path { layout, services }], 1).unwrap_err();
        let said = packets.to_string();
        assert!(said.contains("a packet did not come"), "{said}");
    }
}
