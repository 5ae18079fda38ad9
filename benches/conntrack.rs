//! Listing conntrack entries, compared with the same request whose replies are discarded; and deleting entries by key,
//! compared with the same requests prepared beforehand.
//!
//! `cargo bench --features conntrack --bench conntrack [-- ENTRIES …]`. A network namespace has at most
//! `net.netfilter.nf_conntrack_max` entries, where the initial namespace's value applies to all. More entries are
//! spread over several namespaces, which are listed one after the other. The kernel keeps them in one hash table, and
//! scans all of it for each namespace.

mod common;

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Duration;

use chainwright::conntrack::{Connection, Entry, EntryKey, Filter, Tuple};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{alternate_prepared, resident};
use chainwright_testing::{Sandbox, become_namespace_root};
use common::{BoxError, Result, counts, in_sandbox, report};

/// A UDP connection to a service; addresses and ports depend on `number`.
fn tuple(number: usize) -> Tuple {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    Tuple::udp(([10, 1, a, b], 1024 + u16::from(c)), ([10, 96, 0, 10], 53))
}

/// Number of entries in one namespace: somewhat fewer than the usual limit, 262,144.
const IN_ONE: usize = 250_000;
/// How much the process may grow during a listing: some pages, whatever the number of entries.
const GROWTH: usize = 1 << 20;

fn fill(conntrack: &mut Connection, entries: usize) -> Result {
    for number in 0..entries {
        conntrack.create(&Entry::new(tuple(number), Duration::from_secs(3600)))?;
    }
    Ok(())
}

fn main() -> Result {
    become_namespace_root()?; // before any thread starts
    for entries in counts(&[10_000, 200_000, 1_000_000]) {
        list(entries)?;
    }
    in_sandbox(|| delete(10_000))
}

/// A namespace with entries, and the connection and baseline that list them.
struct Table {
    entries: usize,
    conntrack: Connection,
    baseline: Baseline,
    _namespace: Sandbox,
}

impl Table {
    fn new(entries: usize) -> Result<Self> {
        let namespace = Sandbox::new()?;
        let (conntrack, baseline) = namespace.run(|| -> Result<_> {
            let mut conntrack = Connection::open()?;
            fill(&mut conntrack, entries)?;
            Ok((conntrack, Baseline::open()?))
        })??;
        Ok(Self {
            entries,
            conntrack,
            baseline,
            _namespace: namespace,
        })
    }

    fn list(&mut self) -> Result {
        let mut count = 0;
        self.conntrack.entries(&Filter::all())?.for_each(|entry| {
            black_box((entry.original(), entry.reply(), entry.status()));
            count += 1;
        })?;
        match count == self.entries {
            true => Ok(()),
            false => Err(format!("{count} of {} entries", self.entries).into()),
        }
    }
}

/// Lists both directions and the status of each entry.
fn list(entries: usize) -> Result {
    let parts = entries.div_ceil(IN_ONE);
    let tables = (0..parts).map(|part| {
        let [first, next] = [part, part + 1].map(|part| part * entries / parts);
        Table::new(next - first)
    });
    let tables = RefCell::new(tables.collect::<Result<Vec<_>>>()?);
    let request = Request::entries()?;
    let mut before = None;
    let measured = alternate_prepared::<BoxError>(
        (2_000_000 / entries).clamp(9, 51),
        &mut || Ok(()),
        &mut [
            ("baseline: replies discarded", &mut || {
                for table in &mut *tables.borrow_mut() {
                    black_box(table.baseline.dump(&request)?);
                }
                Ok(())
            }),
            ("entries(), directions and status of each", &mut || {
                before.get_or_insert(resident()?);
                tables.borrow_mut().iter_mut().try_for_each(Table::list)
            }),
        ],
    )?;
    let title = match parts {
        1 => format!("list {entries} entries"),
        _ => format!("list {entries} entries, in {parts} namespaces"),
    };
    report(&title, &measured, 1.10);
    let grown = resident()?.saturating_sub(before.unwrap_or_default());
    let word = if grown <= GROWTH { "kept" } else { "MISSED" };
    println!("  growth of the process: {grown} bytes  goal {GROWTH}: {word}");
    Ok(())
}

/// Deletes existing entries by key.
fn delete(entries: usize) -> Result {
    let mut conntrack = Connection::open()?;
    let mut filler = Connection::open()?;
    let keys: Vec<EntryKey> = (0..entries).map(|number| tuple(number).into()).collect();
    let deletions = keys.iter().map(Request::delete_entry);
    let deletions = deletions.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut baseline = Baseline::open()?;
    let measured = alternate_prepared::<BoxError>(
        9,
        &mut || fill(&mut filler, entries),
        &mut [
            ("baseline: one prepared request each", &mut || {
                for request in &deletions {
                    black_box(baseline.request(request)?);
                }
                Ok(())
            }),
            ("delete_all()", &mut || {
                let deleted = conntrack.delete_all(keys.iter().copied())?;
                if deleted.deleted != entries {
                    return Err(format!("{deleted:?} of {entries}").into());
                }
                Ok(())
            }),
        ],
    )?;
    report(
        &format!("delete {entries} entries by their keys"),
        &measured,
        1.10,
    );
    Ok(())
}
