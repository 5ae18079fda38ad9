//! The protocol of a rule with xtables extensions.
//!
//! When a rule is added, the x_tables module of a `match` or `target` expression checks it and requires the protocol
//! that the rule is limited to. The request contains the protocol once per rule, in `NFTA_RULE_COMPAT`. The kernel
//! does not store that attribute, and lists the rule without it. The rule's own expressions contain the limitation
//! too, and it is read from them:
//!
//! | family | loaded | compared, by `eq` or `neq`, with |
//! |---|---|---|
//! | any IP | `meta l4proto`; `payload` 1 byte at 9 (IPv4) or 6 (IPv6) of the network header | `IPPROTO_*`, 1 byte |
//! | bridge | `meta protocol`; `payload` 2 bytes at 12 of the link-layer header | EtherType, 2 bytes, network order |

use chainwright_sys::nf_tables::NFT_RULE_COMPAT_F_INV;

use super::expr::{CmpOp, Data, Decoded, MetaKey, PayloadBase, Register};
use super::{Compat, Family, RuleRef, UnknownAttributes};

impl Compat {
    /// Returns the attribute for this rule; `None` if the rule has no extension.
    ///
    /// Needed to add a listed rule again.
    #[must_use]
    pub fn of(rule: &RuleRef<'_>) -> Option<Self> {
        let family = rule.family();
        let mut loaded: Option<Register> = None;
        let (mut protocol, mut flags) = (None, 0);
        let mut extensions = false;
        for expression in rule.expressions().into_iter().flatten() {
            let Ok(expression) = expression else { break };
            let name: &[u8] = expression.name;
            if !matches!(name, b"match" | b"target" | b"meta" | b"payload" | b"cmp") {
                loaded = None; // it may have changed the register
                continue;
            }
            match expression.decode() {
                Ok(Decoded::Match(_) | Decoded::Target(_)) => extensions = true,
                Ok(Decoded::Meta(meta)) if meta.dreg.is_some() => {
                    loaded = match (family, meta.key) {
                        (Family::BRIDGE, Some(MetaKey::PROTOCOL)) => meta.dreg,
                        (Family::BRIDGE, _) => None,
                        (_, Some(MetaKey::L4PROTO)) => meta.dreg,
                        _ => None,
                    };
                }
                Ok(Decoded::Payload(payload)) if payload.dreg.is_some() => {
                    let place = (payload.base, payload.offset, payload.len);
                    loaded = match (family, place) {
                        (Family::BRIDGE, (Some(PayloadBase::LINK), Some(12), Some(2)))
                        | (Family::IP, (Some(PayloadBase::NETWORK), Some(9), Some(1)))
                        | (Family::IP6, (Some(PayloadBase::NETWORK), Some(6), Some(1))) => {
                            payload.dreg
                        }
                        _ => None,
                    };
                }
                Ok(Decoded::Cmp(cmp))
                    if protocol.is_none() && loaded.is_some() && cmp.sreg == loaded =>
                {
                    let invert = match cmp.op {
                        Some(CmpOp::EQ) => 0,
                        Some(CmpOp::NEQ) => NFT_RULE_COMPAT_F_INV,
                        _ => continue,
                    };
                    protocol = match cmp.data.as_ref().and_then(Data::as_value) {
                        Some(&[protocol]) if family != Family::BRIDGE => Some(protocol.into()),
                        // The kernel uses these bytes as a be16.
                        Some(&[high, low]) if family == Family::BRIDGE => {
                            Some(u16::from_ne_bytes([high, low]).into())
                        }
                        _ => continue,
                    };
                    flags = invert;
                }
                _ => {}
            }
        }
        extensions.then_some(Self {
            protocol: Some(protocol.unwrap_or(0)),
            flags: Some(flags),
            unknown: UnknownAttributes::NONE,
        })
    }
}
