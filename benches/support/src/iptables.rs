//! Restoring and saving iptables' tables, compared with the kernel's time alone.

use std::cell::Cell;
use std::hint::black_box;

use super::baseline::{Baseline, Request};
use super::{Contender, Measured, Services, alternate, alternate_prepared};
use crate::BoxError;
use chainwright::Retry;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Family, Iptables, Rule};
use chainwright::legacy::{self, LockPolicy, TableEditor};
use chainwright::nft;

/// Contenders measured together, and the largest permitted multiple of the baseline.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The operation.
    pub measured: &'static str,
    /// The baseline, which comes first, and the contenders compared with it.
    pub contenders: Vec<Measured>,
    /// The largest permitted multiple of the baseline.
    pub goal: f64,
}

const WHOLE: RestoreOptions = RestoreOptions {
    noflush: false,
    counters: false,
    test: false,
    table: None,
};
const NOFLUSH: RestoreOptions = RestoreOptions {
    noflush: true,
    ..WHOLE
};
/// Number of rounds in which one rule is added, which is fast.
const ONE_RULE: usize = 15;
/// Largest number of chains with which the one dump of all rules is tried: its time grows with their
/// square.
const ONE_DUMP: usize = 20_000;

/// Measures restoring into nf_tables: the whole table, all services into a table that has them, one more rule. The
/// services exist afterwards.
///
/// # Errors
/// Those of restoring.
pub fn restore_nft(services: Services, rounds: usize) -> Result<Vec<Comparison>, BoxError> {
    let mut iptables = Iptables::nft()?;
    let mut baseline = Baseline::open()?;
    let mut all = Vec::new();
    for (measured, text, options) in [
        (
            "restore into nf_tables, the table emptied first",
            services.to_table(),
            WHOLE,
        ),
        (
            "restore --noflush into nf_tables, over the same rules",
            services.to_sync(),
            NOFLUSH,
        ),
    ] {
        let prepared = iptables.restore_datagram(Family::Ipv4, &text, &options)?;
        let contenders = alternate::<BoxError>(
            rounds,
            &mut [
                ("baseline: the prepared bytes", &mut || {
                    Ok(baseline.commit(&prepared)?)
                }),
                ("chainwright, from the text", &mut || {
                    black_box(iptables.restore(Family::Ipv4, &text, &options)?);
                    Ok(())
                }),
            ],
        )?;
        all.push(Comparison {
            measured,
            contenders,
            goal: 1.3,
        });
    }

    let (line, rule) = one_rule(services)?;
    let encoded =
        chainwright::iptables::nft::encode(Family::Ipv4, Services::TABLE, Services::CHAIN, &rule)?;
    let mut tx = nft::Transaction::new();
    tx.add(&encoded)?;
    let prepared = tx.datagram(<[u8]>::to_vec);
    let mut updating = Iptables::nft()?;
    let contenders = alternate::<BoxError>(
        ONE_RULE.max(rounds),
        &mut [
            ("baseline: one rule, prepared", &mut || {
                Ok(baseline.commit(&prepared)?)
            }),
            ("chainwright, restore --noflush", &mut || {
                black_box(iptables.restore(Family::Ipv4, &line, &NOFLUSH)?);
                Ok(())
            }),
            ("chainwright, update()", &mut || {
                Ok(updating.update(Family::Ipv4, Services::TABLE, |table| {
                    table.append(Services::CHAIN, &rule)
                })?)
            }),
        ],
    )?;
    all.push(Comparison {
        measured: "add one rule to nf_tables",
        contenders,
        goal: 2.0,
    });
    Ok(all)
}

/// Measures restoring into the legacy tables: the whole table, and one more rule. The services exist afterwards.
///
/// # Errors
/// Those of restoring.
pub fn restore_legacy(services: Services, rounds: usize) -> Result<Vec<Comparison>, BoxError> {
    // No lock is needed in a private namespace.
    let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    let connection = legacy::Connection::open(legacy::Family::Ipv4)?;
    let text = services.to_table();
    iptables.restore(Family::Ipv4, &text, &WHOLE)?;
    let mut base = legacy::Table::empty(legacy::Family::Ipv4);
    connection.instantiate_and_read_into(Services::TABLE, &mut base)?;
    let same = TableEditor::of(&base).finish();
    let mut same = same.map_err(chainwright::iptables::Error::from)?;
    let contenders = alternate::<BoxError>(
        rounds,
        &mut [
            ("baseline: the bare SET_REPLACE", &mut || {
                Ok(connection.replace_baseline(&mut same)?)
            }),
            ("chainwright, from the text", &mut || {
                black_box(iptables.restore(Family::Ipv4, &text, &WHOLE)?);
                Ok(())
            }),
        ],
    )?;
    let mut all = vec![Comparison {
        measured: "restore into the legacy table",
        contenders,
        goal: 1.5,
    }];

    let (line, rule) = one_rule(services)?;
    let mut back = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    let mut buffer = legacy::Table::empty(legacy::Family::Ipv4);
    let added = Cell::new(false);
    // Removes the rule again, so that the baseline finds the table that it replaces.
    let mut prepare = || {
        if added.replace(false) {
            back.update(Family::Ipv4, Services::TABLE, |table| {
                table.delete_number(Services::CHAIN, services.services + 1)
            })?;
        }
        Ok(())
    };
    let mut updating = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    let contenders = alternate_prepared::<BoxError>(
        rounds,
        &mut prepare,
        &mut [
            ("baseline: read, and the bare SET_REPLACE", &mut || {
                black_box(connection.baseline(Services::TABLE, &mut buffer)?);
                Ok(connection.replace_baseline(&mut same)?)
            }),
            ("chainwright, restore --noflush", &mut || {
                added.set(true);
                black_box(iptables.restore(Family::Ipv4, &line, &NOFLUSH)?);
                Ok(())
            }),
            ("chainwright, update()", &mut || {
                added.set(true);
                Ok(updating.update(Family::Ipv4, Services::TABLE, |table| {
                    table.append(Services::CHAIN, &rule)
                })?)
            }),
        ],
    )?;
    all.push(Comparison {
        measured: "add one rule to the legacy table",
        contenders,
        goal: 1.5,
    });
    Ok(all)
}

/// Measures saving the services in nf_tables.
///
/// # Errors
/// Those of loading and reading.
pub fn save_nft(services: Services, rounds: usize) -> Result<Comparison, BoxError> {
    let mut iptables = Iptables::nft()?;
    iptables.restore(Family::Ipv4, services.to_table(), &WHOLE)?;
    let all_chains = Request::chains(nft::Family::IP);
    let all_rules = Request::rules(nft::Family::IP);
    let each_chain: Vec<_> = services
        .chain_names()
        .map(|name| Request::rules_of(nft::Family::IP, Services::TABLE, &name))
        .collect();
    let (mut first, mut second) = (Baseline::open()?, Baseline::open()?);
    let mut by_chain = || {
        black_box(first.dump(&all_chains)?);
        black_box(first.dump_each(&each_chain)?);
        Ok(())
    };
    let mut one_dump = || {
        black_box(second.dump(&all_chains)?);
        black_box(second.dump(&all_rules)?);
        Ok(())
    };
    let mut baseline: Contender<'_, BoxError> =
        ("baseline: chains, then a dump a chain", &mut by_chain);
    if services.chains() <= ONE_DUMP {
        let one: Contender<'_, BoxError> = (
            "baseline: chains, then one dump of all rules",
            &mut one_dump,
        );
        let mut both = [baseline, one];
        let trial = alternate(3, &mut both)?;
        let [by_chain, one] = both;
        let dearer = trial.last().is_some_and(|one| one.ratio > 1.0);
        baseline = if dearer { by_chain } else { one };
    }
    let mut text = Vec::new();
    let mut save = || save(&mut iptables, &mut text, services);
    Ok(Comparison {
        measured: "save from nf_tables",
        contenders: alternate(
            rounds,
            &mut [baseline, ("chainwright, into memory", &mut save)],
        )?,
        goal: 2.0,
    })
}

/// Measures saving the services in the legacy table.
///
/// # Errors
/// Those of loading and reading.
pub fn save_legacy(services: Services, rounds: usize) -> Result<Comparison, BoxError> {
    let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    iptables.restore(Family::Ipv4, services.to_table(), &WHOLE)?;
    let connection = legacy::Connection::open(legacy::Family::Ipv4)?;
    let mut buffer = legacy::Table::empty(legacy::Family::Ipv4);
    let mut text = Vec::new();
    let contenders = alternate::<BoxError>(
        rounds,
        &mut [
            ("baseline: GET_INFO and GET_ENTRIES", &mut || {
                black_box(connection.baseline(Services::TABLE, &mut buffer)?);
                Ok(())
            }),
            ("chainwright, into memory", &mut || {
                save(&mut iptables, &mut text, services)
            }),
        ],
    )?;
    Ok(Comparison {
        measured: "save from the legacy table",
        contenders,
        goal: 2.0,
    })
}

/// Reads the table and prints it.
fn save(iptables: &mut Iptables, text: &mut Vec<u8>, services: Services) -> Result<(), BoxError> {
    text.clear();
    let tables = iptables.read(Family::Ipv4, &[Services::TABLE])?;
    let omissions = tables
        .save(SaveOptions::default(), text)
        .map_err(chainwright::iptables::Error::Io)?;
    let (rules, bytes) = (services.rules(), text.len());
    match omissions.is_none() && bytes > rules {
        true => Ok(()),
        false => Err(super::Error::Printed { rules, bytes }.into()),
    }
}

/// Returns the text that adds one rule, and the rule.
fn one_rule(services: Services) -> Result<(String, Rule), BoxError> {
    let (table, chain, options) = (Services::TABLE, Services::CHAIN, services.rule());
    let text = format!("*{table}\n-A {chain} {options}\nCOMMIT\n");
    match Rule::parse(Family::Ipv4, &options) {
        Ok(rule) => Ok((text, rule)),
        Err(error) => Err(chainwright::iptables::Error::Text { line: 2, error }.into()),
    }
}
