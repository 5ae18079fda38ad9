//! Listing chains.

use std::hint::black_box;

use chainwright::nft::{Connection, Family, Scope};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Contender, KubeProxy, alternate};

use super::tools::{Tool, compare};
use super::{ContenderRecord, Error, Record};

/// The tools to compare with.
const TOOLS: &[Tool<'_>] = &[
    ("nft", &["list", "chains", "ip"]),
    ("iptables-nft-save", &["-t", "nat"]),
];

pub(crate) fn measure(chains: usize, rounds: usize) -> Result<Record, Error> {
    let ruleset = KubeProxy { chains };
    let mut nft = Connection::open()?;
    ruleset.load(&mut nft)?;
    let mut baseline = Baseline::open()?;
    let request = Request::chains(Family::IP);
    let mut thrown_away = || {
        black_box(baseline.dump(&request)?);
        Ok(())
    };
    let mut listed = || {
        let mut count = 0;
        nft.chains(Scope::family(Family::IP))?.for_each(|chain| {
            black_box(chain.table());
            black_box(chain.name());
            black_box(chain.handle());
            if let Some(hook) = chain.hook() {
                black_box((hook.number, hook.priority));
            }
            black_box(chain.policy());
            black_box(chain.chain_type());
            black_box(chain.flags());
            black_box(chain.references());
            count += 1;
        })?;
        // In addition to the services' chains: four built-in chains, and two shared ones.
        if count == chains / 2 * 2 + 6 {
            Ok(())
        } else {
            Err(Error::from(format!("{count} chains were listed")))
        }
    };
    let mut contenders: [Contender<'_, Error>; 2] = [
        ("baseline: replies discarded", &mut thrown_away),
        ("chainwright, every attribute read", &mut listed),
    ];
    let mut measured = alternate(rounds, &mut contenders)?;
    let [baseline, _] = contenders;
    let (tools, not_installed) = compare(rounds, &mut || Ok(()), baseline, TOOLS)?;
    measured.extend(tools);
    Ok(Record {
        chains: Some(chains),
        rules: Some(ruleset.rules()),
        contenders: measured.into_iter().map(ContenderRecord::from).collect(),
        not_installed,
        ..Record::new("list chains", rounds)
    })
}
