//! Listing the table of connections, against the same request with its replies thrown away; and deleting entries by name,
//! against the same requests prepared beforehand.
//!
//! `cargo bench --features measure,conntrack --bench conntrack [-- ENTRIES …]`: up to
//! `net.netfilter.nf_conntrack_max` of them, which is the host's.

mod common;

use std::hint::black_box;
use std::time::Duration;

use chainwright::conntrack::{Connection, Entry, EntryKey, Filter, Tuple};
use chainwright::measure::alternate_prepared;
use chainwright::measure::floor::{Floor, Request};
use common::{BoxError, Result, counts, in_sandbox, report};

/// UDP to a service, from so many addresses and ports.
fn tuple(number: usize) -> Tuple {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    Tuple::udp(([10, 1, a, b], 1024 + u16::from(c)), ([10, 96, 0, 10], 53))
}

fn fill(conntrack: &mut Connection, entries: usize) -> Result {
    for number in 0..entries {
        conntrack.create(&Entry::new(tuple(number), Duration::from_secs(3600)))?;
    }
    Ok(())
}

fn main() -> Result {
    for entries in counts(&[10_000, 200_000]) {
        in_sandbox(|| list(entries))?;
    }
    in_sandbox(|| delete(10_000))
}

/// Both directions and the status of each.
fn list(entries: usize) -> Result {
    let mut conntrack = Connection::open()?;
    fill(&mut conntrack, entries)?;
    let request = Request::entries()?;
    let mut floor = Floor::open()?;
    let measured = alternate_prepared::<BoxError>(
        (2_000_000 / entries).clamp(9, 51),
        &mut || Ok(()),
        &mut [
            ("floor: replies thrown away", &mut || {
                black_box(floor.dump(&request)?);
                Ok(())
            }),
            ("entries(), directions and status of each", &mut || {
                let mut count = 0;
                conntrack.entries(&Filter::all())?.for_each(|entry| {
                    black_box((entry.original(), entry.reply(), entry.status()));
                    count += 1;
                })?;
                if count != entries {
                    return Err(format!("{count} of {entries} entries").into());
                }
                Ok(())
            }),
        ],
    )?;
    report(&format!("list {entries} entries"), &measured, 1.10);
    Ok(())
}

/// Entries that are there, by name.
fn delete(entries: usize) -> Result {
    let mut conntrack = Connection::open()?;
    let mut filler = Connection::open()?;
    let keys: Vec<EntryKey> = (0..entries).map(|number| tuple(number).into()).collect();
    let deletions = keys.iter().map(Request::delete_entry);
    let deletions = deletions.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut floor = Floor::open()?;
    let measured = alternate_prepared::<BoxError>(
        9,
        &mut || fill(&mut filler, entries),
        &mut [
            ("floor: one prepared request each", &mut || {
                for request in &deletions {
                    black_box(floor.ask(request)?);
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
        &format!("delete {entries} entries by name"),
        &measured,
        1.10,
    );
    Ok(())
}
