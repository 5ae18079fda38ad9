//! Adding and listing the elements of a map.

use std::hint::black_box;

use chainwright::nft::Connection;
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Addresses, Contender, alternate};

use super::tools::compare;
use super::{ContenderRecord, Error, Record, commit, temporary};

fn record(measured: &'static str, map: Addresses, rounds: usize) -> Record {
    Record {
        elements: Some(map.elements),
        ..Record::new(measured, rounds)
    }
}

/// Adds the map and all of its elements in one transaction, in an empty namespace.
pub(crate) fn add(elements: usize, rounds: usize) -> Result<Record, Error> {
    let map = Addresses { elements };
    let file = temporary(&map.to_nft())?;
    let path = file.path().to_string_lossy().into_owned();
    commit::whole(
        record("add all elements of a map in one transaction", map, rounds),
        &|tx| map.write(tx),
        &[("nft", &["-f", &path])],
    )
}

/// Lists all elements with their keys and values.
pub(crate) fn list(elements: usize, rounds: usize) -> Result<Record, Error> {
    let map = Addresses { elements };
    let mut record = record("list all elements of a map", map, rounds);
    let mut nft = Connection::open()?;
    map.load(&mut nft)?;
    let (family, table, name) = map.map();
    let request = Request::elements(family, table, name);
    let mut baseline = Baseline::open()?;
    let mut contenders: [Contender<'_, Error>; 2] = [
        ("baseline: replies discarded", &mut || {
            black_box(baseline.dump(&request)?);
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
                Err(Error::from(format!("{count} elements were listed")))
            }
        }),
    ];
    let mut measured = alternate(rounds, &mut contenders)?;
    let arguments = ["list", "map", "ip", table, name];
    let [baseline, _] = contenders;
    let tools = [("nft", &arguments[..])];
    let (tools, not_installed) = compare(rounds, &mut || Ok(()), baseline, &tools)?;
    measured.extend(tools);
    record.contenders = measured.into_iter().map(ContenderRecord::from).collect();
    record.not_installed = not_installed;
    Ok(record)
}
