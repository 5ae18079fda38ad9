//! iptables' rules in nf_tables, as iptables-nft encodes them.
//!
//! [`Encoder`] writes the form of a [`Profile`]: by default that of iptables 1.8.7, which every
//! version from 1.8.7 to 1.8.13 reads back correctly. [`decode`] reads the forms of all versions since
//! 1.8.2:
//!
//! | part | forms |
//! |---|---|
//! | mark | `match mark`; `meta mark`, `bitwise`, `cmp` (since 1.8.8) |
//! | ports and flags | `match tcp`, `match udp`; `payload` of the transport header and `cmp`, `range` (since 1.8.8) |
//! | protocol | `meta l4proto`; `payload` at byte 9 of the IPv4 header (since 1.8.10) |
//! | address | whole with `bitwise`; shortened to the bytes of the prefix (since 1.8.7) |
//! | fragments | `payload` at byte 6 of the IPv4 header, `bitwise`, `cmp` |
//! | comment | `match comment`; user data of the rule (1.8.2, and `nft`) |
//! | time to live, ICMP type, packet type | `match ttl`, …; `payload`, `meta pkttype` (`nft`; read since 1.8.8) |
//! | limit | `limit` |
//! | TRACE | `meta set nftrace` |
//! | NFLOG | `target NFLOG`; `log group` (since 1.8.8) |
//! | MARK | `target MARK`; `meta set mark` (`nft`; read since 1.8.10) |
//! | counter, order of the parts | any |
//!
//! A rule with any other expression is [not expressible](super::NotExpressible): it is never read as a wider
//! one.

mod decode;
mod encode;
mod fields;
mod ports;
mod readers;
mod session;
mod writer;

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{
    NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
};

use super::{Builtin, builtin};
use crate::netlink::{Attributes, NfGenMsg};
use crate::nft::expr::{self, Decoded, ExpressionIter, Expressions};
use crate::nft::{self, Chain, ChainRef, ExtensionKind, Policy, RuleRef};
use crate::xt::Family;

pub use decode::decode;
pub(super) use decode::{decode_into, meaning};
pub(super) use encode::DIFFERENCES;
pub use encode::{Encoder, Profile, Unwritable, encode};
pub(super) use readers::{Read, read};
pub(super) use session::{Finished, Session};
pub use writer::{Writer, writer};

/// Offsets in the network header, in bytes.
struct Header {
    source: u32,
    destination: u32,
    protocol: Option<u32>,
    /// Time to live, or hop limit.
    hops: u32,
    fragment: Option<u32>,
    address_length: u32,
}

const fn header(family: Family) -> Header {
    match family {
        // RFC 791, section 3.1.
        Family::Ipv4 => Header {
            source: 12,
            destination: 16,
            protocol: Some(9),
            hops: 8,
            fragment: Some(6),
            address_length: 4,
        },
        // RFC 8200, section 3. The protocol comes after extension headers.
        Family::Ipv6 => Header {
            source: 8,
            destination: 24,
            protocol: None,
            hops: 7,
            fragment: None,
            address_length: 16,
        },
    }
}

/// The fragment's offset within its 16 bits of flags and offset.
const FRAGMENT_OFFSET: [u8; 2] = [0x1f, 0xff];

/// Returns a chain as iptables-nft creates it: a base chain with the policy `accept` if it is built
/// in, otherwise a regular chain.
#[must_use]
pub fn chain<'a>(family: Family, table: &'a str, name: &'a str) -> Chain<'a> {
    let chain = Chain::new(family.into(), table, name);
    match builtin(table, name) {
        None => chain,
        Some(builtin) => chain
            .with_hook(builtin.chain_type, builtin.hook, builtin.priority)
            .with_policy(Policy::ACCEPT),
    }
}

impl Builtin {
    /// Returns `true` if this chain has the built-in chain's hook; only then does iptables-nft recognize it.
    #[must_use]
    pub fn is(&self, chain: &ChainRef<'_>) -> bool {
        let hook = chain.hook().unwrap_or_default();
        hook.number == Some(self.hook)
            && hook.priority == Some(self.priority)
            && chain
                .chain_type()
                .is_some_and(|kind| kind == self.chain_type)
    }
}

/// The parts of a rule, received or to be sent, that define its behavior.
#[derive(Clone)]
pub(super) struct Encoded<'r> {
    family: nft::Family,
    expressions: Option<ExpressionIter<'r>>,
    userdata: Option<&'r [u8]>,
}

impl<'r> Encoded<'r> {
    fn expressions(&self) -> impl Iterator<Item = <ExpressionIter<'r> as Iterator>::Item> {
        self.expressions.clone().into_iter().flatten()
    }

    /// Returns the parts of the rule that a transaction's operation adds, with the names of its table and chain.
    pub(super) fn of_operation(operation: &'r [u8]) -> Option<(Self, &'r BStr, &'r BStr)> {
        let (header, attributes) = NfGenMsg::split(operation).ok()?;
        let find = |kind| Attributes::new(attributes).find(kind);
        let name = |kind| {
            let name = find(kind)?;
            Some(name.strip_suffix(&[0]).unwrap_or(name).as_bstr())
        };
        let encoded = Self {
            family: nft::Family(header.family),
            expressions: find(NFTA_RULE_EXPRESSIONS).map(ExpressionIter::new),
            userdata: find(NFTA_RULE_USERDATA),
        };
        Some((encoded, name(NFTA_RULE_TABLE)?, name(NFTA_RULE_CHAIN)?))
    }

    /// Returns the family.
    pub(super) const fn family(&self) -> nft::Family {
        self.family
    }
}

impl<'r> From<&RuleRef<'r>> for Encoded<'r> {
    fn from(rule: &RuleRef<'r>) -> Self {
        Self {
            family: rule.family(),
            expressions: rule.expressions(),
            userdata: rule.userdata(),
        }
    }
}

/// Kind, name and revision of an extension.
type Extension = (ExtensionKind, String, u8);

/// Returns the rule's family and its extensions, for a transaction's operation that adds a rule.
pub(super) fn extensions(operation: &[u8]) -> Option<(nft::Family, Vec<Extension>)> {
    let (header, attributes) = NfGenMsg::split(operation).ok()?;
    let expressions = Attributes::new(attributes).find(NFTA_RULE_EXPRESSIONS)?;
    let expressions = Expressions::of_bytes(expressions);
    let extension = |kind, name: Option<nft::Name<'_>>, revision: Option<u32>| {
        let revision = u8::try_from(revision?).ok()?;
        Some((kind, name?.to_str().ok()?.to_owned(), revision))
    };
    let found =
        expressions
            .iter()
            .flatten()
            .filter_map(|expression| match expression.decode().ok()? {
                Decoded::Match(expr::Match { name, revision, .. }) => {
                    extension(ExtensionKind::Match, name, revision)
                }
                Decoded::Target(expr::Target { name, revision, .. }) => {
                    extension(ExtensionKind::Target, name, revision)
                }
                _ => None,
            });
    Some((nft::Family(header.family), found.collect()))
}

#[cfg(test)]
mod tests;
