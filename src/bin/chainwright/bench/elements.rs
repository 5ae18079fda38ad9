//! Adding and listing the elements of a map.

use std::hint::black_box;
use std::io::Write;

use chainwright::measure::floor::{Floor, Request};
use chainwright::measure::{Addresses, Contender, alternate, alternate_prepared};
use chainwright::netlink;
use chainwright::nft::{CommitError, Connection, Family, Transaction};

use super::tools::compare;
use super::{Contestant, Record};
use crate::output::Error;

fn record(measured: &'static str, map: Addresses, rounds: usize) -> Record {
    Record {
        measured,
        chains: None,
        rules: None,
        elements: Some(map.elements),
        rounds,
        contenders: Vec::new(),
        not_installed: Vec::new(),
        notes: Vec::new(),
    }
}

/// The map and all of its elements in one transaction, into an empty namespace.
pub(super) fn add(elements: usize, rounds: usize) -> Result<Record, Error> {
    let map = Addresses { elements };
    let mut record = record("add all elements of a map in one transaction", map, rounds);
    let mut nft = Connection::open()?;
    let mut tx = Transaction::new();
    map.write(&mut tx).map_err(chainwright::Error::from)?;
    match nft.commit(&tx) {
        Err(CommitError {
            source: Some(error @ netlink::Error::TooLarge { .. }),
            ..
        }) => {
            record.notes.push(format!("not measured: {error}"));
            return Ok(record);
        }
        committed => committed?,
    }
    let prepared = tx.datagram(<[u8]>::to_vec);
    let mut floor = Floor::open()?;
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty
        .flush_ruleset(Family::UNSPEC)
        .map_err(chainwright::Error::from)?;
    let mut clean = || Ok(cleaner.commit(&empty)?);
    let mut contenders: [Contender<'_, Error>; 2] = [
        ("floor: the prepared bytes", &mut || {
            Ok(floor.commit(&prepared)?)
        }),
        ("chainwright, from objects", &mut || {
            tx.clear();
            map.write(&mut tx).map_err(chainwright::Error::from)?;
            Ok(nft.commit(&tx)?)
        }),
    ];
    let mut measured = alternate_prepared(rounds, &mut clean, &mut contenders)?;

    let mut file = tempfile::NamedTempFile::new().map_err(temporary)?;
    file.write_all(map.to_nft().as_bytes()).map_err(temporary)?;
    let path = file.path().to_string_lossy().into_owned();
    let [floor, _] = contenders;
    let (tools, not_installed) = compare(rounds, &mut clean, floor, &[("nft", &["-f", &path])])?;
    measured.extend(tools);
    record.contenders = measured.into_iter().map(Contestant::from).collect();
    record.not_installed = not_installed;
    Ok(record)
}

fn temporary(error: std::io::Error) -> Error {
    Error::Other(format!("cannot write a temporary file: {error}"))
}

/// All elements, key and value of each.
pub(super) fn list(elements: usize, rounds: usize) -> Result<Record, Error> {
    let map = Addresses { elements };
    let mut record = record("list all elements of a map", map, rounds);
    let mut nft = Connection::open()?;
    map.load(&mut nft)?;
    let (family, table, name) = map.map();
    let request = Request::elements(family, table, name);
    let mut floor = Floor::open()?;
    let mut contenders: [Contender<'_, Error>; 2] = [
        ("floor: replies thrown away", &mut || {
            black_box(floor.dump(&request)?);
            Ok(())
        }),
        ("chainwright, key and value of each", &mut || {
            let mut count = 0;
            nft.elements(family, table, name)?.for_each(|element| {
                black_box((element.key_bytes(), element.data_bytes()));
                count += 1;
            })?;
            if count == elements {
                Ok(())
            } else {
                Err(Error::Other(format!("{count} elements were listed")))
            }
        }),
    ];
    let mut measured = alternate(rounds, &mut contenders)?;
    let arguments = ["list", "map", "ip", table, name];
    let [floor, _] = contenders;
    let tools = [("nft", &arguments[..])];
    let (tools, not_installed) = compare(rounds, &mut || Ok(()), floor, &tools)?;
    measured.extend(tools);
    record.contenders = measured.into_iter().map(Contestant::from).collect();
    record.not_installed = not_installed;
    Ok(record)
}
