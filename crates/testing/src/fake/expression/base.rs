//! The base chain whose packets reach an expression.

use bstr::BStr;
use chainwright_sys::netfilter::{
    NF_INET_FORWARD, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING,
};

use super::errors::EOPNOTSUPP;
use chainwright::Errno;
use chainwright::nft::Family;

pub(super) const PREROUTING: u32 = NF_INET_PRE_ROUTING;
pub(super) const INPUT: u32 = NF_INET_LOCAL_IN;
pub(super) const FORWARD: u32 = NF_INET_FORWARD;
pub(super) const OUTPUT: u32 = NF_INET_LOCAL_OUT;
pub(super) const POSTROUTING: u32 = NF_INET_POST_ROUTING;
/// In the family inet.
pub(super) const INGRESS: u32 = 5;
/// In the family netdev.
pub(super) const NETDEV_INGRESS: u32 = 0;
/// In the family netdev.
pub(super) const NETDEV_EGRESS: u32 = 1;

/// A base chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// `filter`, `nat` or `route`.
    pub(crate) chain_type: &'a BStr,
    /// Number of the hook, in the table's family.
    pub(crate) hook: u32,
}

impl Base<'_> {
    /// Returns `EOPNOTSUPP` if the chain is at another hook.
    pub(super) fn is_at(&self, hooks: &[u32]) -> Result<(), Errno> {
        hooks.contains(&self.hook).then_some(()).ok_or(EOPNOTSUPP)
    }

    /// Returns `EOPNOTSUPP` if the chain has another type.
    pub(super) fn is_of_type(&self, chain_type: &str) -> Result<(), Errno> {
        (self.chain_type == chain_type)
            .then_some(())
            .ok_or(EOPNOTSUPP)
    }
}

/// Returns `EOPNOTSUPP` unless packets of this family are IPv4 or IPv6.
pub(super) fn is_ip(family: Family) -> Result<(), Errno> {
    matches!(family, Family::IP | Family::IP6 | Family::INET)
        .then_some(())
        .ok_or(EOPNOTSUPP)
}
