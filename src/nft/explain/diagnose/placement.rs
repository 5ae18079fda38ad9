//! The base chains that a family can have, and those in which an expression is allowed.

use bstr::ByteSlice as _;

use super::view::BaseChain;
use crate::escape::Escaped;
use crate::nft::expr::{
    Decoded, ExpressionRef, FibFlags, FibResult, NatType, RtKey, XfrmDirection,
};
use crate::nft::{Family, Hook, hook_name};

const INPUT: u32 = Hook::INPUT;
const FORWARD: u32 = Hook::FORWARD;
const OUTPUT: u32 = Hook::OUTPUT;
const PREROUTING: u32 = Hook::PREROUTING;
const POSTROUTING: u32 = Hook::POSTROUTING;

pub(super) const IP: &[Family] = &[Family::IP, Family::IP6, Family::INET];

/// The families, chain types and hooks in which an expression is allowed.
pub(super) struct AllowedContext {
    /// The expression, as nft names it.
    pub(super) expression: &'static str,
    /// The families of its tables.
    pub(super) families: &'static [Family],
    /// The type of its base chains, if only one is allowed.
    pub(super) chain_type: Option<&'static str>,
    /// The hooks of its base chains; all if empty.
    pub(super) hooks: &'static [u32],
}

/// Returns the families, chain types and hooks in which an expression is allowed; `None` if all, or unknown.
pub(super) fn allowed_context(
    family: Family,
    expression: &ExpressionRef<'_>,
) -> Option<AllowedContext> {
    let in_ip = |expression, chain_type, hooks| AllowedContext {
        expression,
        families: IP,
        chain_type,
        hooks,
    };
    Some(match expression.decode().ok()? {
        Decoded::Nat(nat) if nat.nat_type == Some(NatType::DNAT) => {
            in_ip("dnat", Some("nat"), &[PREROUTING, OUTPUT])
        }
        Decoded::Nat(_) => in_ip("snat", Some("nat"), &[POSTROUTING, INPUT]),
        Decoded::Masq(_) => in_ip("masquerade", Some("nat"), &[POSTROUTING]),
        Decoded::Redir(_) => in_ip("redirect", Some("nat"), &[PREROUTING, OUTPUT]),
        Decoded::Tproxy(_) => in_ip("tproxy", None, &[PREROUTING]),
        Decoded::Synproxy(_) => in_ip("synproxy", None, &[INPUT, FORWARD]),
        Decoded::FlowOffload(_) => in_ip("flow add", None, &[FORWARD]),
        Decoded::Socket(_) => in_ip("socket", None, &[PREROUTING, INPUT, OUTPUT]),
        Decoded::Osf(_) => in_ip("osf", None, &[PREROUTING, INPUT, FORWARD]),
        Decoded::Rt(rt) if rt.key == Some(RtKey::TCPMSS) => {
            in_ip("rt", None, &[FORWARD, OUTPUT, POSTROUTING])
        }
        Decoded::Xfrm(xfrm) => match xfrm.dir {
            Some(XfrmDirection::IN) => in_ip("ipsec in", None, &[PREROUTING, INPUT, FORWARD]),
            _ => in_ip("ipsec out", None, &[FORWARD, OUTPUT, POSTROUTING]),
        },
        Decoded::Fib(fib) if IP.contains(&family) => {
            let flags = fib.flags.unwrap_or_default();
            let by_input = fib.result != Some(FibResult::ADDRTYPE) || flags.contains(FibFlags::IIF);
            match () {
                () if by_input => in_ip("fib", None, &[PREROUTING, INPUT, FORWARD]),
                () if flags.contains(FibFlags::OIF) => {
                    in_ip("fib", None, &[FORWARD, OUTPUT, POSTROUTING])
                }
                () => return None,
            }
        }
        Decoded::Reject(_) => AllowedContext {
            expression: "reject",
            families: &[
                Family::IP,
                Family::IP6,
                Family::INET,
                Family::BRIDGE,
                Family::NETDEV,
            ],
            chain_type: None,
            hooks: match family {
                Family::BRIDGE => &[PREROUTING, INPUT],
                Family::NETDEV => &[Hook::INGRESS],
                Family::INET => &[PREROUTING, INPUT, FORWARD, OUTPUT, Hook::INET_INGRESS],
                _ => &[PREROUTING, INPUT, FORWARD, OUTPUT],
            },
        },
        Decoded::Fwd(_) => AllowedContext {
            expression: "fwd",
            families: &[Family::NETDEV],
            chain_type: None,
            hooks: &[],
        },
        _ => return None,
    })
}

impl AllowedContext {
    pub(super) fn allows(&self, base: &BaseChain) -> bool {
        self.chain_type
            .is_none_or(|allowed| base.chain_type == allowed)
            && (self.hooks.is_empty() || self.hooks.contains(&base.hook))
    }
}

/// Joins words: `input, forward or output`.
pub(super) fn any_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.into_iter().collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

pub(super) fn hooks(family: Family, numbers: &[u32]) -> String {
    any_of(
        numbers
            .iter()
            .filter_map(|number| hook_name(family, *number)),
    )
}

pub(super) fn families(families: &[Family]) -> String {
    let names: Vec<_> = families.iter().map(Family::to_string).collect();
    any_of(names.iter().map(String::as_str))
}

/// Returns a hook's name, or its number if the family has no such hook.
pub(super) fn hook(family: Family, number: u32) -> String {
    hook_name(family, number).map_or_else(|| format!("hook {number}"), str::to_owned)
}

/// Formats a base chain: `a nat chain at input`.
pub(super) fn base_words(family: Family, base: &BaseChain) -> String {
    let hook = hook(family, base.hook);
    format!("a {} chain at {hook}", Escaped(base.chain_type.as_bstr()))
}

/// Returns the base chains that the family can have: their types, with their hooks.
pub(super) fn chain_types(family: Family) -> &'static [(&'static str, &'static [u32])] {
    const ALL: &[u32] = &[PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING];
    const NAT: (&str, &[u32]) = ("nat", &[PREROUTING, INPUT, OUTPUT, POSTROUTING]);
    const ROUTE: (&str, &[u32]) = ("route", &[OUTPUT]);
    match family {
        Family::IP | Family::IP6 => &[("filter", ALL), NAT, ROUTE],
        Family::INET => &[
            (
                "filter",
                &[
                    PREROUTING,
                    INPUT,
                    FORWARD,
                    OUTPUT,
                    POSTROUTING,
                    Hook::INET_INGRESS,
                ],
            ),
            NAT,
            ROUTE,
        ],
        Family::BRIDGE => &[("filter", ALL)],
        Family::ARP => &[("filter", &[Hook::ARP_INPUT, Hook::ARP_OUTPUT])],
        Family::NETDEV => &[("filter", &[Hook::INGRESS, Hook::EGRESS])],
        _ => &[],
    }
}
