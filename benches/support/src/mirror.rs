//! The benefit of a mirror: a change received, planned and committed, compared with the commit alone; and lookups.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::baseline::Baseline;
use super::error::expect_operations;
use super::{KubeProxy, Measured, alternate, alternate_prepared};
use crate::BoxError;
use chainwright::nft::live::{Mirror, Update};
use chainwright::nft::{Connection, PlanOptions, Scope, Snapshot, Transaction};

/// Number of operations that restore one rule: its deletion, and the new rule.
const RULE: usize = 2;

/// The measurement of one changed rule.
#[derive(Debug, Clone)]
pub struct OneRule {
    /// The baseline, and the mirror.
    pub contenders: Vec<Measured>,
    /// Median wall-clock time of the mirror's plan.
    pub plan: Duration,
    /// The same for the first plan, which compares everything.
    pub first_plan: Duration,
}

/// Receives pending changes. Returns the number of transactions.
///
/// # Errors
/// Those of [`Mirror::update`]; [`EventsLost`](super::Error::EventsLost).
pub fn update(mirror: &mut Mirror) -> Result<usize, BoxError> {
    let updates = mirror.update()?;
    let number = updates.len();
    for update in updates {
        if let Update::Reread(lost) = update {
            return Err(super::Error::from(lost).into());
        }
    }
    Ok(number)
}

/// Measures the restoration of one rule that another program changed: update, plan and commit. The ruleset must have a
/// rule, so at least two chains. It exists afterwards.
///
/// # Errors
/// Those of loading the ruleset, of the mirror, and of committing; [`Error`](crate::Error) if events were lost, or
/// if more than one rule had to be restored.
pub fn one_rule(ruleset: KubeProxy, rounds: usize) -> Result<OneRule, BoxError> {
    let (family, table) = ruleset.table();
    let scope = Scope::table(family, table);
    let name = ruleset.service_chain(ruleset.chains / 4);
    let mut other_connection = Connection::open()?;
    ruleset.load(&mut other_connection)?;
    let mut mirror = Mirror::open(Connection::open()?, &scope)?;
    let mut helper = Mirror::open(Connection::open()?, &scope)?;
    let desired = Arc::new(mirror.snapshot().clone());
    let mut baseline = Baseline::open()?;
    let prepared = RefCell::new(Vec::new());
    let mut planning = Vec::new();
    let start = Instant::now();
    let nothing = mirror.plan(&desired, PlanOptions::default())?;
    let first_plan = start.elapsed();
    expect_operations(0, &nothing)?;
    let contenders = alternate_prepared::<BoxError>(
        rounds,
        &mut || {
            update(&mut helper)?;
            let mut tx = Transaction::new();
            let chain = helper.snapshot().chain(family, table, &name);
            let rule = chain.and_then(|chain| chain.rules().next());
            let rule = rule.ok_or_else(|| super::Error::NoRule(name.clone()))?;
            let mut other = rule.to_builder();
            other.userdata = Some(b"other".to_vec().into());
            tx.replace(&other)?;
            other_connection.commit(&tx)?;
            update(&mut helper)?;
            let plan = helper.plan(&desired, PlanOptions::default())?;
            expect_operations(RULE, &plan)?;
            *prepared.borrow_mut() = plan.transaction().datagram(<[u8]>::to_vec);
            Ok(())
        },
        &mut [
            ("baseline: the prepared bytes", &mut || {
                Ok(baseline.commit(&prepared.borrow())?)
            }),
            ("update(), plan(), commit()", &mut || {
                update(&mut mirror)?;
                let start = Instant::now();
                let plan = mirror.plan(&desired, PlanOptions::default())?;
                planning.push(start.elapsed());
                expect_operations(RULE, &plan)?;
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

/// Measures this many lookups of chains by name in each round, compared with those in a map that contains only the
/// names. The snapshot must be one of the ruleset.
///
/// # Errors
/// [`NoChain`](super::Error::NoChain) if one is not found.
pub fn lookups(
    snapshot: &Snapshot,
    ruleset: KubeProxy,
    lookups: usize,
    rounds: usize,
) -> Result<Vec<Measured>, super::Error> {
    let (family, table) = ruleset.table();
    let names: Vec<_> = ruleset.chain_names().collect();
    let numbers: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let some = || names.iter().step_by(7).cycle().take(lookups);
    alternate(
        rounds,
        &mut [
            ("baseline: a HashMap of the names", &mut || {
                for name in some() {
                    black_box(numbers.get(black_box(&name[..])));
                }
                Ok(())
            }),
            ("Snapshot::chain()", &mut || {
                for name in some() {
                    let chain = snapshot.chain(family, table, black_box(name));
                    if black_box(chain).is_none() {
                        return Err(super::Error::NoChain(name.clone()));
                    }
                }
                Ok(())
            }),
        ],
    )
}
