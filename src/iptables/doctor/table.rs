//! Faults of a table as a whole.

use super::ExamineOptions;
use super::chain::{ChainExaminer, Hidden, Reached};
use super::fault::{Fault, Finding, FindingLocation};
use crate::iptables::{Backend, Policy, Table, Tables};
use crate::nft::{SetFlags, SnapshotTable, TableFlags};

/// Returns the place of a table's faults.
pub(super) fn place(tables: &Tables, table: &Table<'_>) -> FindingLocation {
    FindingLocation {
        family: tables.family(),
        backend: Some(tables.backend()),
        table: Some(table.name().to_owned()),
        chain: None,
        rule: None,
    }
}

/// Examines a table with its chains and rules.
pub(super) fn examine(
    tables: &Tables,
    table: &Table<'_>,
    options: &ExamineOptions<'_>,
    findings: &mut Vec<Finding>,
) {
    let mut add = |fault| {
        findings.push(Finding {
            place: place(tables, table),
            fault,
        });
    };
    match table.in_snapshot() {
        Some(in_snapshot) => {
            own_faults(&in_snapshot).into_iter().for_each(&mut add);
        }
        None if is_empty(table) => add(Fault::EmptyLegacy),
        None => {}
    }
    let mut reached = Reached::new();
    let mut hidden = Hidden::default();
    let mut deciding = Vec::new();
    for chain in table.chains() {
        let examiner = ChainExaminer {
            tables,
            table,
            chain,
        };
        examiner.own_faults(options, &mut hidden, findings);
        if examiner.rules(options, &mut reached, &mut hidden, findings) {
            deciding.push(examiner);
        }
    }
    let unreached = deciding.iter().filter(|chain| chain.is_unreached(&reached));
    findings.extend(unreached.map(ChainExaminer::unreached));
    findings.extend(hidden.faults().into_iter().map(|fault| Finding {
        place: place(tables, table),
        fault,
    }));
}

/// Returns the faults specific to nf_tables tables.
fn own_faults(table: &SnapshotTable<'_>) -> Vec<Fault> {
    let flags = table.table().flags().unwrap_or_default();
    let mut faults = Vec::new();
    if flags.contains(TableFlags::DORMANT) {
        faults.push(Fault::Dormant);
    }
    if flags.contains(TableFlags::OWNER) {
        faults.push(Fault::Owned {
            port: table.table().owner(),
        });
    }
    // Anonymous sets belong to a rule.
    let is_named =
        |flags: Option<SetFlags>| !flags.unwrap_or_default().contains(SetFlags::ANONYMOUS);
    let sets = table.sets().filter(|set| is_named(set.set().flags()));
    let number = sets.count() + table.objects().len() + table.flowtables().len();
    if number > 0 {
        faults.push(Fault::Objects { number });
    }
    faults
}

/// Returns `true` if the table affects no packet.
pub(super) fn is_empty(table: &Table<'_>) -> bool {
    table.chains().all(|chain| {
        let accepts = chain.policy() == Some(Policy::Accept);
        accepts && chain.rule_count() == 0
    })
}

/// Returns the number of rules in the tables.
pub(super) fn rules(tables: &Tables) -> usize {
    let tables = tables.iter();
    let of_one = |table: &Table<'_>| {
        table
            .chains()
            .map(|chain| chain.rule_count())
            .sum::<usize>()
    };
    tables.iter().map(of_one).sum()
}

/// Returns the tables of a backend and family among those that were read.
pub(super) fn of(all: &[Tables], backend: Backend, family: crate::xt::Family) -> Option<&Tables> {
    let mut all = all.iter();
    all.find(|tables| (tables.backend(), tables.family()) == (backend, family))
}
