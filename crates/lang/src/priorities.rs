//! nft's names for hooks and priorities.

use chainwright::nft::Family;

/// Returns the named priorities of a family.
pub(super) const fn priorities(family: Family) -> &'static [(&'static str, i32)] {
    match family {
        Family::BRIDGE => &[
            ("dstnat", -300),
            ("filter", -200),
            ("out", 100),
            ("srcnat", 300),
        ],
        Family::ARP | Family::NETDEV => &[("filter", 0)],
        _ => &[
            ("raw", -300),
            ("mangle", -150),
            ("dstnat", -100),
            ("filter", 0),
            ("security", 50),
            ("srcnat", 100),
        ],
    }
}

/// Returns the hook of a named priority in nft 1.0; `None` if the name has no single hook.
pub(super) fn hook_of_priority(name: &str) -> Option<&'static str> {
    match name {
        "dstnat" => Some("prerouting"),
        "srcnat" => Some("postrouting"),
        "out" => Some("output"),
        _ => None,
    }
}

/// Returns `true` if nft 1.1 accepts a priority name at a hook. NAT priorities are also accepted at the hook for local
/// packets, except in bridge tables: `dstnat` at output and `srcnat` at input.
pub(super) fn is_priority_at(name: &str, family: Family, hook: &str) -> bool {
    match name {
        "dstnat" if family != Family::BRIDGE => matches!(hook, "prerouting" | "output"),
        "srcnat" if family != Family::BRIDGE => matches!(hook, "postrouting" | "input"),
        name => hook_of_priority(name).is_none_or(|of| of == hook),
    }
}
