//! iptables' rules in nf_tables: how iptables-nft encodes them.
//!
//! Written is the encoding of iptables 1.8.7, which every version from 1.8.7 to 1.8.13 reads back
//! whole. Read is what any version from 1.8.2 on wrote for the parts that a [`Rule`] can say:
//!
//! | part | forms |
//! |---|---|
//! | mark | `match mark`; `meta mark`, `bitwise`, `cmp` (1.8.8 on) |
//! | protocol | `meta l4proto`; `payload` at byte 9 of the IPv4 header (1.8.10 on) |
//! | address | whole with `bitwise`; shortened to the bytes of the prefix (1.8.7 on) |
//! | comment | `match comment`; user data of the rule (1.8.2, and `nft`) |
//! | counter, order of the parts | any |
//!
//! A rule with anything else in it is not read at all: it is never taken for a wider one.

use std::net::IpAddr;

use bstr::{BString, ByteSlice};
use chainwright_sys::nf_tables::NFT_RULE_COMPAT_F_INV;

use super::{Address, Builtin, Family, Interface, Protocol, Rule, Target, builtin};
use crate::nft::UnknownAttributes;
use crate::nft::expr::{
    self, Bitwise, BitwiseOp, Cmp, CmpOp, Counter, Data, Decoded, Immediate, Meta, MetaKey,
    Payload, PayloadBase, Register, Verdict,
};
use crate::nft::{self, Chain, ChainRef, Compat, Policy, RuleRef};
use crate::xt::{self, Comment, MarkMatch};

impl From<Family> for nft::Family {
    fn from(family: Family) -> Self {
        match family {
            Family::Ipv4 => Self::IP,
            Family::Ipv6 => Self::IP6,
        }
    }
}

/// Offsets in the network header: source address, destination address, protocol.
struct Header {
    source: u32,
    destination: u32,
    protocol: Option<u32>,
    address_length: usize,
}

const fn header(family: Family) -> Header {
    match family {
        // RFC 791, section 3.1.
        Family::Ipv4 => Header {
            source: 12,
            destination: 16,
            protocol: Some(9),
            address_length: 4,
        },
        // RFC 8200, section 3. The protocol stands behind extension headers.
        Family::Ipv6 => Header {
            source: 8,
            destination: 24,
            protocol: None,
            address_length: 16,
        },
    }
}

/// A chain as iptables-nft makes it: a base chain with the policy `accept` if it is a built-in
/// one, else a chain to jump to.
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
    /// Whether this chain is hooked in where the built-in chain is; only then does iptables-nft
    /// take it for that.
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

/// A rule compares addresses of another family than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rule compares {address}, which is no address of the family {family}")]
pub struct FamilyMismatch {
    /// The rule's family.
    pub family: nft::Family,
    /// The address.
    pub address: IpAddr,
}

/// Why a rule could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// An address is not of the family.
    #[error(transparent)]
    FamilyMismatch(#[from] FamilyMismatch),
    /// The rule has the name of a set: [`Rule::resolve_sets`].
    #[error(transparent)]
    UnresolvedSet(#[from] xt::UnresolvedSet),
}

/// A rule as iptables 1.8.7 encodes it.
///
/// # Errors
/// An address is not of the family, or a set's name is not resolved.
pub fn encode<'a>(
    family: Family,
    table: &'a str,
    chain: &'a str,
    rule: &Rule,
) -> Result<nft::Rule<'a>, EncodeError> {
    let mut encoded = nft::Rule::new(family.into(), table, chain);
    let header = header(family);
    for (key, interface) in [
        (MetaKey::IIFNAME, &rule.in_interface),
        (MetaKey::OIFNAME, &rule.out_interface),
    ] {
        if let Some(interface) = interface {
            let mut name = interface.name.to_vec();
            if !interface.prefix {
                name.push(0);
            }
            encoded
                .push(&Meta::load(key, Register::R1))
                .push(&compare(interface.invert, &name));
        }
    }
    if let Some(protocol) = rule.protocol {
        encoded
            .push(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .push(&compare(protocol.invert, &[protocol.number]));
    }
    for (offset, address) in [
        (header.source, &rule.source),
        (header.destination, &rule.destination),
    ] {
        if let Some(address) = address {
            if address.address.is_ipv4() != (family == Family::Ipv4) {
                return Err(EncodeError::FamilyMismatch(FamilyMismatch {
                    family: family.into(),
                    address: address.address,
                }));
            }
            encode_address(&mut encoded, offset, address);
        }
    }
    for extension in &rule.matches {
        let xt::Encoded {
            name,
            revision,
            info,
        } = extension.encode(family)?;
        encoded.push(&expr::Match::new(name, revision.into(), info));
    }
    encoded.push(&Counter::new(0, 0));
    match &rule.target {
        Target::None => {}
        Target::Accept => drop(encoded.push(&Immediate::accept())),
        Target::Drop => drop(encoded.push(&Immediate::drop())),
        Target::Return => drop(encoded.push(&Immediate::return_())),
        Target::Queue => drop(encoded.push(&expr::Queue::to(0))),
        Target::Jump(chain) => drop(encoded.push(&Immediate::jump(chain.as_bstr()))),
        Target::Goto(chain) => drop(encoded.push(&Immediate::goto(chain.as_bstr()))),
        Target::Extension(target) => {
            let xt::Encoded {
                name,
                revision,
                info,
            } = target.encode(family)?;
            encoded.push(&expr::Target::new(name, revision.into(), info));
        }
    }
    encoded.compat = Some(Compat {
        protocol: Some(rule.protocol.map_or(0, |protocol| protocol.number.into())),
        flags: Some(match rule.protocol {
            Some(Protocol { invert: true, .. }) => NFT_RULE_COMPAT_F_INV,
            _ => 0,
        }),
        unknown: UnknownAttributes::NONE,
    });
    Ok(encoded)
}

/// Compares register 1 with these bytes.
const fn compare(invert: bool, bytes: &[u8]) -> Cmp<'_> {
    Cmp::new(
        Register::R1,
        if invert { CmpOp::NEQ } else { CmpOp::EQ },
        bytes,
    )
}

/// The address and mask as bytes in network order.
fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn encode_address(encoded: &mut nft::Rule<'_>, offset: u32, address: &Address) {
    let (bytes, mask) = (octets(address.address), octets(address.mask));
    let prefix = address.prefix();
    // A prefix of whole bytes is a shorter load; anything else is a whole one and a mask.
    let (length, masked) = match prefix {
        Some(0) if !address.invert => return, // every address
        Some(prefix) if prefix > 0 && prefix % 8 == 0 => ((prefix / 8) as usize, false),
        _ => (bytes.len(), true),
    };
    encoded.push(&Payload::load(
        PayloadBase::NETWORK,
        offset,
        length as u32,
        Register::R1,
    ));
    if masked {
        let zeros = vec![0; mask.len()];
        encoded.push(&Bitwise::mask_xor(Register::R1, &mask, &zeros));
    }
    encoded.push(&compare(address.invert, &bytes[..length]));
}

/// What a register holds.
#[derive(Clone)]
struct Loaded {
    what: Part,
    mask: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Network { offset: u32, length: u32 },
    Protocol,
    InInterface,
    OutInterface,
    Mark,
}

/// Reads a rule that iptables-nft wrote, of whichever version. `None` if anything in it is beyond
/// what a [`Rule`] says: such a rule is not to be taken for another.
#[must_use]
pub fn decode(encoded: &RuleRef<'_>) -> Option<Rule> {
    let family = match encoded.family() {
        nft::Family::IP => Family::Ipv4,
        nft::Family::IP6 => Family::Ipv6,
        _ => return None,
    };
    let mut rule = Rule::default();
    let mut registers: Vec<(Register, Loaded)> = Vec::new();
    let mut ended = false;
    for expression in encoded.expressions().into_iter().flatten() {
        if ended {
            return None;
        }
        let expression = expression.ok()?.decode().ok()?;
        if !expression.unknown().is_empty() {
            return None; // it says more than is understood here
        }
        match expression {
            Decoded::Payload(Payload {
                dreg: Some(dreg),
                base: Some(PayloadBase::NETWORK),
                offset: Some(offset),
                len: Some(length),
                ..
            }) => load(&mut registers, dreg, Part::Network { offset, length })?,
            Decoded::Meta(Meta {
                key: Some(key),
                dreg: Some(dreg),
                sreg: None,
                unknown: _,
            }) => {
                let part = match key {
                    MetaKey::L4PROTO => Part::Protocol,
                    MetaKey::IIFNAME => Part::InInterface,
                    MetaKey::OIFNAME => Part::OutInterface,
                    MetaKey::MARK => Part::Mark,
                    _ => return None,
                };
                load(&mut registers, dreg, part)?;
            }
            Decoded::Bitwise(bitwise) => mask(&mut registers, &bitwise)?,
            Decoded::Cmp(Cmp {
                sreg: Some(sreg),
                op: Some(op),
                data: Some(Data::Value(value)),
                unknown: _,
            }) => {
                let invert = match op {
                    CmpOp::EQ => false,
                    CmpOp::NEQ => true,
                    _ => return None,
                };
                let (_, loaded) = registers.iter().rfind(|(register, _)| *register == sreg)?;
                compared(family, &mut rule, loaded, &value, invert)?;
            }
            Decoded::Match(expr::Match {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                unknown: _,
            }) => rule.matches.push(xt::Match::read(
                family,
                name.to_str().ok()?,
                revision.try_into().ok()?,
                &info,
            )),
            Decoded::Target(expr::Target {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                unknown: _,
            }) => {
                rule.target = Target::Extension(xt::Target::read(
                    family,
                    name.to_str().ok()?,
                    revision.try_into().ok()?,
                    &info,
                ));
                ended = true;
            }
            Decoded::Counter(_) => {}
            Decoded::Immediate(Immediate {
                dreg: Some(Register::VERDICT),
                data: Some(Data::Verdict(verdict)),
                unknown: _,
            }) => {
                rule.target = match verdict {
                    Verdict::Accept => Target::Accept,
                    Verdict::Drop => Target::Drop,
                    Verdict::Return => Target::Return,
                    Verdict::Jump(chain) => Target::Jump(BString::from(chain.as_bytes())),
                    Verdict::Goto(chain) => Target::Goto(BString::from(chain.as_bytes())),
                    _ => return None,
                };
                ended = true;
            }
            _ => return None,
        }
    }
    if let Some(userdata) = encoded.userdata() {
        rule.matches.push(xt::Match::Comment(comment(userdata)?));
    }
    Some(rule)
}

/// Takes in a load. iptables uses the registers of 16 bytes only; those of 4 are the same memory,
/// so a rule that uses both is not followed.
fn load(registers: &mut Vec<(Register, Loaded)>, register: Register, what: Part) -> Option<()> {
    let known = [Register::R1, Register::R2, Register::R3, Register::R4];
    let fits = !matches!(what, Part::Network { length, .. } if length > 16);
    if !known.contains(&register) || !fits {
        return None;
    }
    registers.retain(|(other, _)| *other != register);
    registers.push((register, Loaded { what, mask: None }));
    Some(())
}

/// Takes in `dreg = sreg & mask`.
fn mask(registers: &mut Vec<(Register, Loaded)>, bitwise: &Bitwise<'_>) -> Option<()> {
    let (Some(sreg), Some(dreg)) = (bitwise.sreg, bitwise.dreg) else {
        return None;
    };
    let plain = bitwise.op.is_none_or(|op| op == BitwiseOp::MASK_XOR);
    let xor = bitwise.xor.as_ref()?.as_value()?;
    if !plain || xor.iter().any(|byte| *byte != 0) {
        return None;
    }
    let (_, loaded) = registers.iter().rfind(|(register, _)| *register == sreg)?;
    if loaded.mask.is_some() {
        return None;
    }
    let masked = Loaded {
        what: loaded.what,
        mask: Some(bitwise.mask.as_ref()?.as_value()?.to_vec()),
    };
    let what = masked.what;
    load(registers, dreg, what)?;
    registers.last_mut()?.1 = masked;
    Some(())
}

/// Takes in a comparison.
fn compared(
    family: Family,
    rule: &mut Rule,
    loaded: &Loaded,
    value: &[u8],
    invert: bool,
) -> Option<()> {
    let header = header(family);
    let unset = |slot: bool| slot.then_some(());
    match loaded.what {
        Part::Network { offset, length } if Some(offset) == header.protocol && length == 1 => {
            protocol(rule, loaded, value, invert)
        }
        Part::Network { offset, length } => {
            let slot = if offset == header.source {
                &mut rule.source
            } else if offset == header.destination {
                &mut rule.destination
            } else {
                return None;
            };
            unset(slot.is_none())?;
            let length = length as usize;
            if length > header.address_length || value.len() != length {
                return None;
            }
            let full = vec![0xff; length];
            let mask = loaded.mask.as_deref().unwrap_or(&full);
            if mask.len() != length || value.iter().zip(mask).any(|(byte, mask)| byte & !mask != 0)
            {
                return None; // compares bits that the mask has cleared: never equal
            }
            *slot = Some(Address::masked(
                address(family, value)?,
                address(family, mask)?,
                invert,
            ));
            Some(())
        }
        Part::Protocol => protocol(rule, loaded, value, invert),
        Part::InInterface | Part::OutInterface => {
            let slot = if loaded.what == Part::InInterface {
                &mut rule.in_interface
            } else {
                &mut rule.out_interface
            };
            unset(slot.is_none() && loaded.mask.is_none())?;
            let end = value
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(value.len());
            let (name, padding) = value.split_at(end);
            if value.len() > 16 || padding.iter().any(|byte| *byte != 0) {
                return None;
            }
            *slot = Some(Interface {
                name: name.into(),
                prefix: name.len() == value.len() && value.len() < 16,
                invert,
            });
            Some(())
        }
        Part::Mark => {
            let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
            rule.matches.push(xt::Match::Mark(MarkMatch {
                value: number(value)?,
                mask: loaded.mask.as_deref().map_or(Some(u32::MAX), number)?,
                invert,
            }));
            Some(())
        }
    }
}

fn protocol(rule: &mut Rule, loaded: &Loaded, value: &[u8], invert: bool) -> Option<()> {
    let &[number] = value else {
        return None;
    };
    if rule.protocol.is_some() || loaded.mask.is_some() {
        return None;
    }
    rule.protocol = Some(Protocol { number, invert });
    Some(())
}

/// The address that starts with these bytes; the others are 0.
fn address(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    let mut whole = [0; 16];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(match family {
        Family::Ipv4 => IpAddr::from([whole[0], whole[1], whole[2], whole[3]]),
        Family::Ipv6 => IpAddr::from(whole),
    })
}

/// The comment in a rule's user data: records of type, length and bytes, of which type 0 is a
/// comment with its NUL (libnftnl's layout). Anything beside a comment is not understood.
fn comment(userdata: &[u8]) -> Option<Comment> {
    let &[0, length, ref rest @ ..] = userdata else {
        return None;
    };
    if rest.len() != usize::from(length) {
        return None;
    }
    Comment::new(rest.strip_suffix(&[0])?)
}

#[cfg(test)]
mod tests;
