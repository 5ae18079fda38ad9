//! Committing in one transaction.

use chainwright::netlink::{self, MessageError};
use chainwright::nft::{CommitError, Connection, Family, Transaction};
use chainwright_bench::baseline::Baseline;
use chainwright_bench::{Contender, KubeProxy, alternate_prepared};

use super::tools::{Tool, compare};
use super::{ContenderRecord, Error, Record};

/// Measures a ruleset with this number of chains.
pub(crate) fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let record = Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        ..Record::new("commit a ruleset in one transaction", rounds)
    };
    // `bench restore` measures iptables' text.
    whole(record, &|tx| ruleset.write(tx), &[])
}

/// Measures one transaction in an empty namespace, and the tools that do the same.
pub(crate) fn whole(
    mut record: Record,
    write: &dyn Fn(&mut Transaction) -> Result<(), MessageError>,
    tools: &[Tool<'_>],
) -> Result<Record, Error> {
    let mut nft = Connection::open()?;
    let mut tx = Transaction::new();
    write(&mut tx)?;
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
    let mut baseline = Baseline::open()?;
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty.flush_ruleset(Family::UNSPEC)?;
    let mut clean = || Ok(cleaner.commit(&empty)?);
    let mut contenders: [Contender<'_, Error>; 2] = [
        ("baseline: the prepared bytes", &mut || {
            Ok(baseline.commit(&prepared)?)
        }),
        ("chainwright, from objects", &mut || {
            tx.clear();
            write(&mut tx)?;
            Ok(nft.commit(&tx)?)
        }),
    ];
    let mut measured = alternate_prepared(record.rounds, &mut clean, &mut contenders)?;
    let [baseline, _] = contenders;
    let (tools, not_installed) = compare(record.rounds, &mut clean, baseline, tools)?;
    measured.extend(tools);
    record.contenders = measured.into_iter().map(ContenderRecord::from).collect();
    record.not_installed = not_installed;
    Ok(record)
}
