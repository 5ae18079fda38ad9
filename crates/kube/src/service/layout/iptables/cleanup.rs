//! Recognises and removes kube-proxy's chains and rules in iptables tables, of any version.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};

use super::rules::{
    CANARY, EXTERNAL, FORWARD, MARK_MASQ, NODE_PORTS, POSTROUTING, PROXY_FIREWALL, SERVICES,
};
use super::transactions;
use crate::service::names::ChainKind;
use chainwright::Error;
use chainwright::iptables::{self, Backend, Family, Iptables, TableEdit, Target, builtin};

/// The tables that contain kube-proxy's chains.
pub(super) const TABLES: [&str; 3] = ["mangle", "filter", "nat"];

/// Prefix of chains of a port up to Kubernetes 1.23; later versions have two chains instead.
const BEFORE_1_24: &str = "KUBE-XLB-";

/// Returns `true` if a chain is one that kube-proxy creates for a port, in this version or an older one.
pub(super) fn is_port_chain(chain: &BString) -> bool {
    let prefixes = ChainKind::ALL.map(ChainKind::prefix);
    let mut prefixes = prefixes.into_iter().chain([BEFORE_1_24]);
    prefixes.any(|prefix| chain.starts_with(prefix.as_bytes()))
}

/// Returns `true` if a chain belongs to kube-proxy. `KUBE-FIREWALL`, `KUBE-MARK-DROP`, `KUBE-IPTABLES-HINT` and
/// `KUBE-KUBELET-CANARY` belong to a kubelet.
fn is_kube_proxy_chain(chain: &BString) -> bool {
    const SHARED: [&str; 8] = [
        SERVICES,
        NODE_PORTS,
        EXTERNAL,
        PROXY_FIREWALL,
        FORWARD,
        MARK_MASQ,
        POSTROUTING,
        CANARY,
    ];
    SHARED.iter().any(|shared| chain == shared) || is_port_chain(chain)
}

/// Finds which of these chains are targets of rules in chains that do not belong to kube-proxy.
pub(super) fn targets_of_foreign_rules(
    table: &mut TableEdit<'_>,
    others: &[BString],
    chains: &BTreeSet<BString>,
) -> Result<BTreeSet<BString>, iptables::Error> {
    let mut found = BTreeSet::new();
    for other in others.iter().filter(|chain| !is_kube_proxy_chain(chain)) {
        let jumps_found = jumps_to(table, other.as_bstr(), chains)?;
        found.extend(jumps_found.into_iter().map(|(_, to)| to));
    }
    Ok(found)
}

/// Finds the rules of a chain that jump to one of these: their numbers, from 1, and the targets.
fn jumps_to(
    table: &mut TableEdit<'_>,
    chain: &BStr,
    to: &BTreeSet<BString>,
) -> Result<Vec<(usize, BString)>, iptables::Error> {
    let mut jumps_found = Vec::new();
    for (index, entry) in table.rules(chain)?.into_iter().enumerate() {
        let Ok(entry) = entry else { continue };
        if let Target::Jump(next) | Target::Goto(next) = entry.rule.target
            && to.contains(&next)
        {
            jumps_found.push((index + 1, next));
        }
    }
    Ok(jumps_found)
}

/// Returns whether one family's tables contain chains of kube-proxy's iptables mode, from this layout or from
/// kube-proxy. Creates no table.
pub(in crate::service) fn is_installed(backend: Backend, family: Family) -> Result<bool, Error> {
    let in_use = iptables::tables_in_use(backend, family)?;
    let tables: Vec<&str> = TABLES
        .into_iter()
        .filter(|table| in_use.iter().any(|name| name == table))
        .collect();
    if tables.is_empty() {
        return Ok(false);
    }
    let read = Iptables::open_if_loaded(backend)?.read(family, &tables)?;
    let has_any = |table: &iptables::Table<'_>| {
        let mut chains = table.chains();
        chains.any(|chain| is_kube_proxy_chain(&chain.name().to_owned()))
    };
    Ok(read.iter().iter().any(has_any))
}

/// Removes all chains of kube-proxy's iptables mode from one family's tables, and the rules of built-in chains that
/// jump to them: those of this layout, and those that a kube-proxy from version 1.18 on left behind. Returns the number
/// of transactions. Each legacy table is changed in one step; those of nf_tables all in one. Missing tables are not
/// created.
///
/// A kubelet's chains stay. A chain that another program's rule jumps to stays, too, without rules; but
/// `KUBE-MARK-MASQ` (CNI plugins may use it) and `KUBE-POSTROUTING` keep their rules, because one marks what the other
/// masquerades.
#[tracing::instrument(level = "debug", skip(ipt))]
pub(in crate::service) fn clean_up(ipt: &mut Iptables, family: Family) -> Result<usize, Error> {
    let mut tables = TABLES.map(|table| (family, table)).to_vec();
    if ipt.backend() == Backend::Legacy {
        // Any change creates a legacy table, even an empty one.
        let there = ipt.read(family, &TABLES)?;
        tables.retain(|(_, table)| there.table(table).is_some());
    }
    if tables.is_empty() {
        return Ok(0);
    }
    let changed = ipt.update_tables(&tables, |edit| {
        let mut changed = 0;
        for (family, table) in &tables {
            changed += usize::from(clean_table(&mut edit.table(*family, table)?)?);
        }
        Ok(changed)
    })?;
    Ok(transactions(ipt, changed))
}

/// Returns whether there was anything to do.
fn clean_table(table: &mut TableEdit<'_>) -> Result<bool, iptables::Error> {
    let chains = table.chains()?.into_iter();
    let (ours, others): (Vec<_>, Vec<_>) = chains.partition(is_kube_proxy_chain);
    let ours: BTreeSet<_> = ours.into_iter().collect();
    if ours.is_empty() {
        return Ok(false);
    }
    let mut jumps = Vec::new();
    let mut referenced: BTreeSet<BString> = BTreeSet::new();
    for chain in others {
        let jumps_found = jumps_to(table, chain.as_bstr(), &ours)?;
        let name = chain.to_str().unwrap_or_default();
        match builtin(table.name(), name) {
            Some(_) => jumps.extend(
                jumps_found
                    .into_iter()
                    .map(|(at, to)| (chain.clone(), at, to)),
            ),
            None => referenced.extend(jumps_found.into_iter().map(|(_, to)| to)),
        }
    }
    let pair = |chain: &BString| [MARK_MASQ, POSTROUTING].iter().any(|one| chain == one);
    let has_pair = referenced.iter().any(pair);
    let stays = |chain: &BString| has_pair && pair(chain);

    let mut changed = false;
    // From last to first, so that the remaining numbers stay valid.
    for (chain, at, to) in jumps.iter().rev() {
        if !stays(to) {
            table.delete_number(chain, *at)?;
            changed = true;
        }
    }
    let gone: Vec<_> = ours.into_iter().filter(|chain| !stays(chain)).collect();
    for chain in &gone {
        if referenced.contains(chain) && table.rules(chain)?.is_empty() {
            continue;
        }
        table.flush(chain)?;
        changed = true;
    }
    for chain in gone.iter().filter(|chain| !referenced.contains(*chain)) {
        table.remove_chain(chain)?;
    }
    Ok(changed)
}
