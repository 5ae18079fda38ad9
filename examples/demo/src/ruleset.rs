//! What stands in the rival's saved files, and how a kubelet's things are written beside it.

use chainwright::iptables::nft::{chain, encode};
use chainwright::iptables::{Family, Interface, Rule, Target, builtin};
use chainwright::nft::{Connection, Scope, Table, Transaction};
use chainwright::xt::Match;
use chainwright::xt::matches::conntrack::{Conntrack, ConntrackState};
use chainwright_kube::kubelet::Item;
use serde::Serialize;

use super::Error;

/// The tables in the saved files, in their order.
pub(crate) const TABLES: [(Family, &str); 6] = [
    (Family::Ipv4, "mangle"),
    (Family::Ipv4, "nat"),
    (Family::Ipv4, "filter"),
    (Family::Ipv6, "mangle"),
    (Family::Ipv6, "nat"),
    (Family::Ipv6, "filter"),
];

/// What a real kube-proxy wrote: the operations of `iptables-nft-restore` 1.8.9 for each table of
/// `tests/data/kube-proxy-1.20-4-services.save`, as they went into the kernel (on x86-64), less the
/// messages around a batch and the demand that a chain be new (`NLM_F_EXCL`). Their size keeps a transaction that restores everything below what a
/// user without privileges may send in one piece (twice `net.core.wmem_max`, 416 KiB as a rule).
const KUBE_PROXY: [(&str, &[u8]); 3] = [
    ("mangle", include_bytes!("kube-proxy/mangle.batch")),
    ("filter", include_bytes!("kube-proxy/filter.batch")),
    ("nat", include_bytes!("kube-proxy/nat.batch")),
];

/// Size of the ruleset beside kubelet's chains.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Size {
    pub(crate) chains: usize,
    pub(crate) rules: usize,
}

/// Loads the ruleset that the demo starts from: all that is in the saved files.
pub(crate) fn load(nft: &mut Connection) -> Result<Size, Error> {
    let mut tx = Transaction::new();
    for (family, table) in TABLES {
        write(&mut tx, family, table)?;
    }
    nft.commit(&tx)?;
    let mut size = Size {
        chains: 0,
        rules: 0,
    };
    nft.chains(Scope::all())?.for_each(|_| size.chains += 1)?;
    nft.rules(Scope::all())?.for_each(|_| size.rules += 1)?;
    Ok(size)
}

/// Writes one table as it stands in its saved file, into an empty table or one without rules.
pub(crate) fn write(tx: &mut Transaction, family: Family, table: &str) -> Result<(), Error> {
    tx.add(&Table::new(family.into(), table))?;
    for name in builtins(table) {
        tx.add(&chain(family, table, name))?;
    }
    match family {
        Family::Ipv4 => {
            if let Some((_, operations)) = KUBE_PROXY.iter().find(|(name, _)| *name == table) {
                tx.append(operations)?;
            }
        }
        Family::Ipv6 if table == "filter" => {
            let established = Rule::new(Target::Accept).with(Match::Conntrack(Conntrack::states(
                ConntrackState::RELATED | ConntrackState::ESTABLISHED,
            )));
            let loopback = Rule {
                in_interface: Some(Interface {
                    name: "lo".into(),
                    prefix: false,
                    invert: false,
                }),
                ..Rule::new(Target::Accept)
            };
            for rule in [established, loopback] {
                tx.add(&encode(family, table, "INPUT", &rule)?)?;
            }
        }
        Family::Ipv6 => {}
    }
    Ok(())
}

/// Names of a table's built-in chains.
fn builtins(table: &str) -> impl Iterator<Item = &'static str> {
    ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]
        .into_iter()
        .filter(move |name| builtin(table, name).is_some())
}

/// Writes what one command of a kubelet does: `-N` for a chain, `-I` for a rule in a built-in
/// chain, `-A` for one in a chain of its own.
pub(crate) fn write_item(tx: &mut Transaction, item: &Item) -> Result<(), Error> {
    let (family, table, name) = (item.family, &*item.table, &*item.chain);
    tx.add(&Table::new(family.into(), table))?
        .add(&chain(family, table, name))?;
    if let Some(rule) = &item.rule {
        let rule = encode(family, table, name, rule)?;
        if builtin(table, name).is_some() {
            tx.insert(&rule)?;
        } else {
            tx.add(&rule)?;
        }
    }
    Ok(())
}
