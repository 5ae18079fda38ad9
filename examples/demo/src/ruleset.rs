//! The contents of the rival's saved files, and how kubelet's chains and rules are added to them.

use chainwright::iptables::nft::{chain, encode};
use chainwright::iptables::{Family, Interface, Rule, Target, builtin};
use chainwright::nft::{Connection, Scope, Table, Transaction};
use chainwright::xt::Match;
use chainwright::xt::matches::conntrack::{Conntrack, ConntrackState};
use chainwright_kube::kubelet::Item;
use serde::Serialize;

use super::Error;

/// The tables in the saved files, in order.
pub(crate) const TABLES: [(Family, &str); 6] = [
    (Family::Ipv4, "mangle"),
    (Family::Ipv4, "nat"),
    (Family::Ipv4, "filter"),
    (Family::Ipv6, "mangle"),
    (Family::Ipv6, "nat"),
    (Family::Ipv6, "filter"),
];

/// The output of a real kube-proxy: the operations of `iptables-nft-restore` 1.8.9 for each table of
/// `tests/data/kube-proxy-1.20-4-services.save`, captured on x86-64, without the messages around a batch and the
/// requirement that a chain is new (`NLM_F_EXCL`). Their size keeps a transaction that restores everything below the
/// limit of an unprivileged user (twice `net.core.wmem_max`, usually 416 KiB).
const KUBE_PROXY: [(&str, &[u8]); 3] = [
    ("mangle", include_bytes!("kube-proxy/mangle.batch")),
    ("filter", include_bytes!("kube-proxy/filter.batch")),
    ("nat", include_bytes!("kube-proxy/nat.batch")),
];

/// Size of the ruleset without kubelet's chains.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Size {
    pub(crate) chains: usize,
    pub(crate) rules: usize,
}

/// Loads the ruleset of the demo: the contents of the saved files.
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

/// Writes one table from its saved file into an empty table, or one without rules.
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

/// Returns the names of a table's built-in chains.
fn builtins(table: &str) -> impl Iterator<Item = &'static str> {
    ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]
        .into_iter()
        .filter(move |name| builtin(table, name).is_some())
}

/// Writes the effect of one command of a kubelet: `-N` for a chain, `-I` for a rule in a built-in chain, `-A` for a
/// rule in a chain of its own.
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
