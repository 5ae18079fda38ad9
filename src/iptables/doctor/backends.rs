//! Faults that concern both backends.

use bstr::{BStr, BString};
use std::collections::HashSet;

use super::ExamineOptions;
use super::fault::{Fault, Finding, FindingLocation};
use super::table::{of, rules};
use crate::iptables::{Backend, ChainKind, Family, Tables};

/// Examines each family's tables in both backends.
pub(super) fn examine(all: &[Tables], options: &ExamineOptions<'_>, findings: &mut Vec<Finding>) {
    for family in Family::ALL {
        let both = [Backend::Nft, Backend::Legacy].map(|backend| of(all, backend, family));
        let [Some(nft), Some(legacy)] = both else {
            continue;
        };
        let mut add = |fault| {
            let place = FindingLocation {
                family,
                backend: None,
                table: None,
                chain: None,
                rule: None,
            };
            findings.push(Finding { place, fault });
        };
        let agent_chains = |tables| chains(tables, &|name| (options.agent_chains)(name));
        let agents = [nft, legacy].map(|tables| agent_chains(tables).into_iter().next());
        if let [Some(nft), Some(legacy)] = agents {
            add(Fault::AgentsInBoth {
                nft: nft.1,
                legacy: legacy.1,
            });
        }
        let [of_nft, of_legacy] = [nft, legacy].map(rules);
        if of_nft > 0 && of_legacy > 0 {
            let in_nft: HashSet<_> = chains(nft, &|_| true).into_iter().collect();
            let shared = chains(legacy, &|_| true)
                .into_iter()
                .find(|one| in_nft.contains(one));
            add(Fault::BothBackends {
                nft: of_nft,
                legacy: of_legacy,
                shared: shared.map(|(_, chain)| chain),
            });
        }
    }
}

/// Returns the user-defined chains that the predicate selects, with their tables' names.
fn chains(tables: &Tables, is_selected: &dyn Fn(&BStr) -> bool) -> Vec<(BString, BString)> {
    let mut found = Vec::new();
    for table in tables.iter() {
        let chains = table.chains();
        let made =
            chains.filter(|chain| chain.kind() == ChainKind::User && is_selected(chain.name()));
        found.extend(made.map(|chain| (table.name().to_owned(), chain.name().to_owned())));
    }
    found
}
