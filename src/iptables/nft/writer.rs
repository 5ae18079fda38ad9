//! Guesses which program wrote a rule from its encoding.

use std::fmt;

use super::header;
use crate::nft::expr::{self, CmpOp, Decoded, MetaKey, PayloadBase};
use crate::nft::{self, RuleRef};
use crate::xt::Family;

/// The program that may have written a rule of an iptables table in nf_tables. A guess: others may use the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Writer {
    /// Any version of iptables-nft: all use this form.
    AnyIptables,
    /// iptables-nft up to 1.8.7, or this crate.
    UpTo1_8_7,
    /// iptables-nft up to 1.8.9, or this crate.
    UpTo1_8_9,
    /// iptables-nft 1.8.8 or 1.8.9.
    From1_8_8To1_8_9,
    /// iptables-nft 1.8.8 or newer.
    From1_8_8,
    /// iptables-nft 1.8.10 or newer.
    From1_8_10,
    /// `nft` or another program: no version of iptables-nft uses this form.
    Other,
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnyIptables => "any iptables",
            Self::UpTo1_8_7 => "iptables up to 1.8.7 or chainwright",
            Self::UpTo1_8_9 => "iptables up to 1.8.9 or chainwright",
            Self::From1_8_8To1_8_9 => "iptables 1.8.8 or 1.8.9",
            Self::From1_8_8 => "iptables 1.8.8 or newer",
            Self::From1_8_10 => "iptables 1.8.10 or newer",
            Self::Other => "nft or another program",
        })
    }
}

/// Guesses which program wrote a rule.
///
/// The signs are: ports, flags, marks and NFLOG by extensions (up to 1.8.7) or by nf_tables' own expressions; the IPv4
/// protocol by `meta` (up to 1.8.9) or from the header; addresses after interfaces (up to 1.8.9) or before them. Every
/// version writes a counter, and encodes comments as an extension.
#[must_use]
pub fn writer(rule: &RuleRef<'_>) -> Writer {
    let family = match rule.family() {
        nft::Family::IP6 => Family::Ipv6,
        _ => Family::Ipv4,
    };
    let mut evidence = Evidence::default();
    for expression in rule.expressions().into_iter().flatten() {
        match expression.and_then(|expression| expression.decode()) {
            Ok(decoded) => evidence.take(family, &decoded),
            Err(_) => evidence.other = true,
        }
    }
    // 1.8.2 and `nft` store comments there.
    evidence.other |=
        rule.userdata().is_some_and(|userdata| !userdata.is_empty()) || !evidence.counted;
    match evidence {
        Evidence { other: true, .. } => Writer::Other,
        Evidence {
            native: true,
            by_extension: true,
            ..
        } => Writer::Other,
        Evidence {
            header_first: true,
            interface_first: true,
            ..
        } => Writer::Other,
        Evidence {
            header_first: true,
            by_extension: true,
            ..
        } => Writer::Other,
        Evidence {
            header_first: true, ..
        } => Writer::From1_8_10,
        Evidence {
            by_extension: true, ..
        } => Writer::UpTo1_8_7,
        Evidence {
            native: true,
            interface_first: true,
            ..
        } => Writer::From1_8_8To1_8_9,
        Evidence { native: true, .. } => Writer::From1_8_8,
        Evidence {
            interface_first: true,
            ..
        } => Writer::UpTo1_8_9,
        _ => Writer::AnyIptables,
    }
}

/// The signs found in a rule.
#[derive(Debug, Default)]
struct Evidence {
    /// Ports, flags, marks or NFLOG by nf_tables' own expressions.
    native: bool,
    /// The same by extensions.
    by_extension: bool,
    /// The IPv4 protocol from the header, or an address before an interface or the protocol.
    header_first: bool,
    /// The IPv4 protocol by `meta`, or an interface or the protocol before an address.
    interface_first: bool,
    /// An expression that no version writes.
    other: bool,
    counted: bool,
    address: bool,
    /// Whether an interface or the protocol was loaded.
    meta: bool,
}

impl Evidence {
    fn take(&mut self, family: Family, expression: &Decoded<'_>) {
        match expression {
            Decoded::Payload(expr::Payload {
                base: Some(PayloadBase::NETWORK),
                offset: Some(offset),
                sreg: None,
                ..
            }) => {
                let header = header(family);
                if header.protocol == Some(*offset) {
                    self.header_first = true;
                } else if *offset == header.source || *offset == header.destination {
                    self.interface_first |= self.meta;
                    self.address = true;
                } else if header.fragment != Some(*offset) {
                    self.other = true;
                }
            }
            Decoded::Payload(expr::Payload {
                base: Some(PayloadBase::TRANSPORT),
                offset: Some(0 | 2 | 13),
                sreg: None,
                ..
            })
            | Decoded::Range(_)
            | Decoded::Log(_) => self.native = true,
            Decoded::Meta(expr::Meta {
                key: Some(key),
                sreg: None,
                ..
            }) => match *key {
                MetaKey::MARK => self.native = true,
                MetaKey::IIFNAME | MetaKey::OIFNAME => {
                    self.header_first |= self.address;
                    self.meta = true;
                }
                MetaKey::L4PROTO => {
                    self.header_first |= self.address;
                    self.interface_first |= family == Family::Ipv4;
                    self.meta = true;
                }
                _ => self.other = true,
            },
            // TRACE.
            Decoded::Meta(expr::Meta {
                key: Some(MetaKey::NFTRACE),
                sreg: Some(_),
                ..
            }) => {}
            Decoded::Match(expr::Match {
                name: Some(name), ..
            }) => {
                self.by_extension |= *name == "mark";
            }
            Decoded::Target(expr::Target {
                name: Some(name), ..
            }) => {
                self.by_extension |= *name == "NFLOG";
            }
            Decoded::Cmp(expr::Cmp { op: Some(op), .. }) => {
                self.other |= !matches!(*op, CmpOp::EQ | CmpOp::NEQ | CmpOp::LTE | CmpOp::GT);
            }
            Decoded::Counter(_) => self.counted = true,
            Decoded::Bitwise(_) | Decoded::Immediate(_) | Decoded::Limit(_) => {}
            _ => self.other = true,
        }
    }
}
