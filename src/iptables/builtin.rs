//! The built-in chains of each table and their hooks.

use chainwright_sys::netfilter::{
    NF_INET_FORWARD, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING,
};

/// A built-in chain as a base chain of nf_tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Name of the chain: `INPUT`, …
    pub chain: &'static str,
    /// Type of the base chain: `filter`, `nat` or `route`.
    pub chain_type: &'static str,
    /// Hook, `NF_INET_*`.
    pub hook: u32,
    /// Priority among the chains of the hook.
    pub priority: i32,
}

/// The built-in chains of IPv4 and IPv6 tables with their types and priorities, as iptables-nft creates
/// them; observed on 1.8.9. Those of `security` have priority 150 in each version from 1.8.7 to 1.8.13, not
/// `NF_IP_PRI_SECURITY`: a chain with that priority, by `nft` for instance, is not iptables'.
pub(super) const TABLES: &[(&str, &[Builtin])] = &[
    (
        "raw",
        &[
            at("PREROUTING", "filter", NF_INET_PRE_ROUTING, -300),
            at("OUTPUT", "filter", NF_INET_LOCAL_OUT, -300),
        ],
    ),
    (
        "mangle",
        &[
            at("PREROUTING", "filter", NF_INET_PRE_ROUTING, -150),
            at("INPUT", "filter", NF_INET_LOCAL_IN, -150),
            at("FORWARD", "filter", NF_INET_FORWARD, -150),
            at("OUTPUT", "route", NF_INET_LOCAL_OUT, -150),
            at("POSTROUTING", "filter", NF_INET_POST_ROUTING, -150),
        ],
    ),
    (
        "nat",
        &[
            at("PREROUTING", "nat", NF_INET_PRE_ROUTING, -100),
            at("INPUT", "nat", NF_INET_LOCAL_IN, 100),
            at("OUTPUT", "nat", NF_INET_LOCAL_OUT, -100),
            at("POSTROUTING", "nat", NF_INET_POST_ROUTING, 100),
        ],
    ),
    (
        "filter",
        &[
            at("INPUT", "filter", NF_INET_LOCAL_IN, 0),
            at("FORWARD", "filter", NF_INET_FORWARD, 0),
            at("OUTPUT", "filter", NF_INET_LOCAL_OUT, 0),
        ],
    ),
    (
        "security",
        &[
            at("INPUT", "filter", NF_INET_LOCAL_IN, 150),
            at("FORWARD", "filter", NF_INET_FORWARD, 150),
            at("OUTPUT", "filter", NF_INET_LOCAL_OUT, 150),
        ],
    ),
];

const fn at(chain: &'static str, chain_type: &'static str, hook: u32, priority: i32) -> Builtin {
    Builtin {
        chain,
        chain_type,
        hook,
        priority,
    }
}

/// The tables of iptables-nft, in its order.
#[doc(hidden)]
pub const NAMES: [&str; 5] = ["mangle", "security", "raw", "filter", "nat"];

/// Returns the built-in chains of a table, in the order of iptables; `None` for a table that iptables
/// does not know.
#[must_use]
pub fn builtins(table: &str) -> Option<&'static [Builtin]> {
    let (_, chains) = TABLES.iter().find(|(name, _)| *name == table)?;
    Some(chains)
}

/// Returns the built-in chain of this name; `None` for a user-defined chain or an unknown table.
#[must_use]
pub fn builtin(table: &str, chain: &str) -> Option<Builtin> {
    let all = builtins(table)?;
    all.iter().find(|builtin| builtin.chain == chain).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_built_in_chains_only() {
        assert_eq!(builtin("nat", "POSTROUTING").unwrap().priority, 100);
        assert_eq!(builtin("security", "INPUT").unwrap().priority, 150);
        assert_eq!(builtin("mangle", "OUTPUT").unwrap().chain_type, "route");
        assert_eq!(builtin("filter", "PREROUTING"), None);
        assert_eq!(builtin("filter", "KUBE-FIREWALL"), None);
        assert_eq!(builtin("nix", "INPUT"), None);
    }
}
