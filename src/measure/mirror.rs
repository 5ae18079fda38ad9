//! What a mirror saves: a change taken in, planned and committed, against the commit alone; and look-ups.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::floor::Floor;
use super::{KubeProxy, Measured, alternate, alternate_prepared};
use crate::Error;
use crate::errno::Errno;
use crate::netlink::{self, Loss};
use crate::nft::live::{Mirror, Update};
use crate::nft::{Connection, PlanOptions, Scope, Snapshot, Transaction};

/// What one changed rule took.
#[derive(Debug, Clone)]
pub struct OneRule {
    /// The floor, and the mirror.
    pub contenders: Vec<Measured>,
    /// Time on the clock of the mirror's plan: the median.
    pub plan: Duration,
    /// The same of the first plan, which looks at everything.
    pub first_plan: Duration,
}

/// Takes in what there is: how many transactions.
///
/// # Errors
/// Those of [`Mirror::update`]; [`Loss::Dropped`] if events were lost.
pub fn update(mirror: &mut Mirror) -> Result<usize, Error> {
    let updates = mirror.update()?;
    match updates
        .iter()
        .all(|update| matches!(update, Update::Change(_)))
    {
        true => Ok(updates.len()),
        false => Err(netlink::Error::Lost(Loss::Dropped(Errno::new(libc::ENOBUFS))).into()),
    }
}

/// Somebody makes one rule of so many another one, and it is made what is desired: update, plan and commit.
/// The ruleset must have a rule, so two chains at least, and is there afterwards.
///
/// # Errors
/// Those of the ruleset's loading, of the mirror, and of committing.
pub fn one_rule(ruleset: KubeProxy, rounds: usize) -> Result<OneRule, Error> {
    let (family, table) = ruleset.table();
    let scope = Scope::table(family, table);
    let name = ruleset.service_chain(ruleset.chains / 4);
    let mut somebody = Connection::open()?;
    ruleset.load(&mut somebody)?;
    let mut mirror = Mirror::open(Connection::open()?, &scope)?;
    let mut helper = Mirror::open(Connection::open()?, &scope)?;
    let desired = Arc::new(mirror.snapshot().clone());
    let mut floor = Floor::open()?;
    let prepared = RefCell::new(Vec::new());
    let mut planning = Vec::new();
    let start = Instant::now();
    let nothing = mirror.plan(&desired, PlanOptions::default())?;
    let first_plan = start.elapsed();
    debug_assert!(nothing.is_empty(), "{nothing}");
    let contenders = alternate_prepared::<Error>(
        rounds,
        &mut || {
            update(&mut helper)?;
            let mut tx = Transaction::new();
            let chain = helper.snapshot().chain(family, table, &name);
            if let Some(rule) = chain.and_then(|chain| chain.rules().next()) {
                let mut other = rule.to_builder();
                other.userdata = Some(b"other".to_vec().into());
                tx.replace(&other)?;
            }
            somebody.commit(&tx)?;
            update(&mut helper)?;
            let plan = helper.plan(&desired, PlanOptions::default())?;
            debug_assert_eq!(plan.transaction().len(), 2, "{plan}");
            *prepared.borrow_mut() = plan.transaction().datagram(<[u8]>::to_vec);
            Ok(())
        },
        &mut [
            ("floor: the prepared bytes", &mut || {
                Ok(floor.commit(&prepared.borrow())?)
            }),
            ("update(), plan(), commit()", &mut || {
                update(&mut mirror)?;
                let start = Instant::now();
                let plan = mirror.plan(&desired, PlanOptions::default())?;
                planning.push(start.elapsed());
                Ok(mirror.connection().commit(plan.transaction())?)
            }),
        ],
    )?;
    planning.sort_unstable();
    Ok(OneRule {
        contenders,
        plan: planning[planning.len() / 2],
        first_plan,
    })
}

/// So many look-ups of chains by their names in each round, against those in a table of the names alone.
/// The snapshot is one of the ruleset.
#[must_use]
pub fn look_ups(
    snapshot: &Snapshot,
    ruleset: KubeProxy,
    look_ups: usize,
    rounds: usize,
) -> Vec<Measured> {
    let (family, table) = ruleset.table();
    let names: Vec<_> = ruleset.chain_names().collect();
    let numbers: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let some = || names.iter().step_by(7).cycle().take(look_ups);
    let measured = alternate::<std::convert::Infallible>(
        rounds,
        &mut [
            ("floor: a HashMap of the names", &mut || {
                for name in some() {
                    black_box(numbers.get(black_box(&name[..])));
                }
                Ok(())
            }),
            ("Snapshot::chain()", &mut || {
                for name in some() {
                    let chain = snapshot.chain(family, table, black_box(name));
                    debug_assert!(chain.is_some(), "{name}");
                    black_box(chain);
                }
                Ok(())
            }),
        ],
    );
    match measured {
        Ok(measured) => measured,
        Err(never) => match never {},
    }
}
