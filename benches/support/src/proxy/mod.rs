//! Services written to the kernel by a [`ServiceProxy`], compared with the same prepared beforehand.
//!
//! All measurements run in the calling thread's network namespace, which must be a new one, or in others created for
//! them.

mod baseline;
mod memory;
mod packets;

use std::cell::RefCell;
use std::hint::black_box;

pub use memory::{Memory, memory};
pub use packets::{Path, first_packets};

use super::rounds::{Recorded, Samples, turn_of};
use super::{ChangeBytes, Cluster, Contender, Error as MeasureError, Measured, alternate_prepared};
use crate::BoxError;
use crate::baseline::Baseline;
use baseline::{CommitBaseline, ListingBaseline, RulesetCleaner};
use chainwright::iptables::Backend;
use chainwright_kube::service::{Layout, ServiceProxy, Services};
use chainwright_testing::Sandbox;

const PREPARED: &str = "baseline: the prepared bytes";
const PREPARED_FLAT: &str = "baseline: flat's prepared bytes";

/// Returns the layout's name.
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

/// Writes all services to an empty namespace, from objects to the commit. The baseline is the resulting content of the
/// kernel, read back and sent again. The calling thread's namespace contains everything afterwards.
///
/// # Errors
/// Those of syncing, reading and committing.
pub fn cold(cluster: Cluster, layout: Layout, rounds: usize) -> Result<Cold, BoxError> {
    let mut services = cluster.services();
    drop(Cluster::load(&mut services, layout, false)?);
    let mut prepared = CommitBaseline::of(cluster, layout)?;
    let (bytes, parts) = prepared.size();
    let mut cleaner = RulesetCleaner::new(layout)?;
    // Kept until the next turn: a real proxy is not dropped after its start.
    let kept = RefCell::new(None);
    let contenders = alternate_prepared::<BoxError>(
        rounds,
        &mut || {
            kept.take();
            cleaner.empty()
        },
        &mut [
            (PREPARED, &mut || prepared.commit()),
            (name_of(layout), &mut || {
                kept.replace(Some(Cluster::load(&mut services, layout, false)?));
                Ok(())
            }),
        ],
    )?;
    // The last turn may have been the baseline's, whose legacy tables are elsewhere.
    kept.take();
    cleaner.empty()?;
    Cluster::load(&mut services, layout, false)?;
    Ok(Cold {
        contenders,
        bytes,
        parts,
    })
}

/// Starts a proxy where another one was: it reads the existing tables, and all of them are correct. The baseline is a
/// listing of what grows with services, discarded.
///
/// # Errors
/// Those of syncing and reading.
pub fn restart(cluster: Cluster, layout: Layout, rounds: usize) -> Result<Vec<Measured>, BoxError> {
    let mut services = cluster.services();
    drop(Cluster::load(&mut services, layout, true)?);
    let mut listed = ListingBaseline::new(layout)?;
    let kept = RefCell::new(None);
    let baseline: Contender<'_, BoxError> = (listed.name(), &mut || listed.list());
    alternate_prepared(
        rounds,
        &mut || {
            kept.take();
            Ok(())
        },
        &mut [
            baseline,
            (name_of(layout), &mut || {
                kept.replace(Some(Cluster::load(&mut services, layout, true)?));
                Ok(())
            }),
        ],
    )
}

/// A proxy with its services, in its own namespace.
#[derive(Debug)]
struct ProxyInstance {
    layout: Layout,
    proxy: ServiceProxy,
    services: Services,
    _namespace: Sandbox,
}

impl ProxyInstance {
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
        match synced.services == 1 && synced.transactions > 0 && !synced.is_full {
            true => Ok(()),
            false => Err(MeasureError::Synced(format!("{synced:?}")).into()),
        }
    }
}

/// The baseline's namespace and those of the layouts, all with the same services. The baseline uses the flat layout.
#[derive(Debug)]
struct ProxyInstances {
    baseline: Baseline,
    instances: Vec<ProxyInstance>,
    _namespace: Sandbox,
}

impl ProxyInstances {
    fn new(services: &Services, layouts: &[Layout]) -> Result<Self, BoxError> {
        let namespace = Sandbox::new()?;
        let baseline = namespace.run(|| -> Result<Baseline, BoxError> {
            Cluster::load(&mut services.clone(), Layout::Flat, false)?;
            Ok(Baseline::open()?)
        })??;
        let instances = layouts
            .iter()
            .map(|layout| ProxyInstance::new(services.clone(), *layout));
        Ok(Self {
            baseline,
            instances: instances.collect::<Result<_, _>>()?,
            _namespace: namespace,
        })
    }

    /// Returns the number of instances, including the baseline.
    const fn len(&self) -> usize {
        1 + self.instances.len()
    }

    /// Returns the measurements with their names.
    fn measured(&self, samples: &[Samples]) -> Vec<Measured> {
        let layouts = self
            .instances
            .iter()
            .map(|instance| name_of(instance.layout));
        let names = [PREPARED_FLAT].into_iter().chain(layouts);
        let all = names.zip(samples);
        all.map(|(name, own)| own.relative_to(name, &samples[0]))
            .collect()
    }
}

/// The change to the services in a round.
type ChangeFn<'c> = &'c dyn Fn(&mut Services, usize);

/// A change that is applied and reverted in each round.
struct Change<'c> {
    names: [&'static str; 2],
    prepared: Vec<ChangeBytes>,
    apply: [ChangeFn<'c>; 2],
}

/// Measures one endpoint more and fewer, and one service more and fewer. The baseline is the same element operations of
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
    let mut instances = ProxyInstances::new(&cluster.services(), layouts)?;
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
        apply: [
            &|services, round| set(services, round, cluster.endpoints + 1),
            &|services, round| set(services, round, cluster.endpoints),
        ],
    };
    let service = Change {
        names: ["one service more", "one service fewer"],
        prepared: (0..=rounds)
            .map(|round| cluster.add_service(new(round)))
            .collect::<Result<_, _>>()?,
        apply: [
            &|services, round| cluster.set(services, new(round)),
            &|services, round| cluster.remove(services, new(round)),
        ],
    };
    let mut all = Vec::new();
    for change in [endpoint, service] {
        let samples = apply_and_revert(&mut instances, &change, rounds)?;
        for (name, samples) in change.names.into_iter().zip(&samples) {
            all.push((name, instances.measured(samples)));
        }
    }
    Ok(all)
}

/// Applies a change and reverts it at once, in rounds.
fn apply_and_revert(
    instances: &mut ProxyInstances,
    change: &Change<'_>,
    rounds: usize,
) -> Result<[Vec<Samples>; 2], BoxError> {
    let mut samples = [0, 1].map(|_| vec![Samples::default(); instances.len()]);
    for round in 0..=rounds {
        let change_bytes = &change.prepared[round];
        for turn in 0..instances.len() {
            let index = turn_of(instances.len(), round, turn);
            for (step, bytes) in [&change_bytes.done, &change_bytes.undone]
                .into_iter()
                .enumerate()
            {
                let samples = &mut samples[step][index];
                let recorded = Recorded::after_first_round(round);
                match index.checked_sub(1) {
                    None => samples.take(recorded, || instances.baseline.commit(bytes))?,
                    Some(instance) => samples.take(recorded, || {
                        let instance = &mut instances.instances[instance];
                        change.apply[step](&mut instance.services, round);
                        instance.sync()
                    })?,
                }
            }
        }
    }
    Ok(samples)
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
    let mut instances = ProxyInstances::new(&services, layouts)?;
    drop(services);
    let prepared = cluster.replaced(number, deployment)?;
    let mut samples = vec![Samples::default(); instances.len()];
    for round in 0..=rounds {
        let recorded = Recorded::after_first_round(round);
        for turn in 0..instances.len() {
            let index = turn_of(instances.len(), round, turn);
            let samples = &mut samples[index];
            let Some(instance) = index.checked_sub(1) else {
                let baseline = &mut instances.baseline;
                let mut parts = prepared.iter();
                samples.take(recorded, || {
                    parts.try_for_each(|part| baseline.commit(&part.done))
                })?;
                let mut parts = prepared.iter();
                parts.try_for_each(|part| baseline.commit(&part.undone))?;
                continue;
            };
            let instance = &mut instances.instances[instance];
            let mut replace = |replaced| {
                set(&mut instance.services, replaced);
                instance.sync()
            };
            samples.take(recorded, || (1..=deployment).try_for_each(&mut replace))?;
            // Reverted one by one, so that each gets its slot back.
            (0..deployment).rev().try_for_each(replace)?;
        }
    }
    black_box(&instances);
    Ok(instances.measured(&samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result is an error, not a division by zero.
    #[test]
    fn zero_services_is_an_error() {
        let none = Cluster::new(0, 1);
        assert!(changes(none, &[Layout::Flat], 1).is_err());
        let services = none.services;
        let layout = Layout::Flat;
        let packets = first_packets(&[Path { layout, services }], 1).unwrap_err();
        let message = packets.to_string();
        assert!(message.contains("a packet did not pass"), "{message}");
    }
}
