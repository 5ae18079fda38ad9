//! The state of the evaluation of expressions: registers, values and verdicts.

use bstr::{BStr, BString};
use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_CONTINUE, NFT_GOTO, NFT_JUMP, NFT_REG_4, NFT_REG32_00, NFT_REG32_15, NFT_RETURN,
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID,
    NFTA_VERDICT_CODE,
};

use super::errors::{EBUSY, EINVAL, ENODATA, EOPNOTSUPP, EOVERFLOW, EPROTO, ERANGE};
use super::{Reference, RulesetView, SetInfo};
use chainwright::Errno;
use chainwright::netlink::Attributes;
use chainwright::nft::Field;
use chainwright::nft::expr::{Data, Register, Verdict};
use chainwright::nft::{Bytes, Family, SetFlags};

/// Number of 4-byte words of the registers: the first four belong to the verdict register.
const WORDS: u32 = 20;
/// Maximum length of a value in an expression (`struct nft_data`).
pub(super) const MAX_VALUE_LENGTH: usize = 16;

/// Times of at least this many milliseconds exceed 64 bits as nanoseconds (`ERANGE`).
pub(super) const MAX_MILLISECONDS: u64 = u64::MAX / 1_000_000;

/// The state while the expressions of one rule are evaluated in order.
pub(super) struct Context<'c> {
    pub(super) around: &'c mut dyn RulesetView,
    /// One bit for each register word that an earlier expression stores to. Since Linux 6.13 no other word may be
    /// loaded.
    stored: u32,
    pub(super) references: Vec<Reference>,
    /// Whether the verdict belongs to an element.
    pub(super) in_element: bool,
}

impl<'c> Context<'c> {
    pub(super) fn new(around: &'c mut dyn RulesetView) -> Self {
        Self {
            around,
            stored: 0,
            references: Vec::new(),
            in_element: false,
        }
    }

    pub(super) fn family(&self) -> Family {
        self.around.family()
    }

    /// Checks a register that is loaded; returns it as listed.
    pub(super) fn load(&self, register: Register, length: u32) -> Result<Register, Errno> {
        let first = word(register)?;
        let end = words(first, length)?;
        let needed = (1 << end) - (1 << first);
        if self.stored & needed != needed {
            return Err(ENODATA);
        }
        Ok(listed(first))
    }

    /// Checks a register that is stored to; returns it as listed.
    pub(super) fn store(&mut self, register: Register, length: u32) -> Result<Register, Errno> {
        let first = word(register)?;
        let end = words(first, length)?;
        self.stored |= (1 << end) - (1 << first);
        Ok(listed(first))
    }

    /// Returns `EINVAL` if storing would overwrite words that are still to be loaded: different registers that overlap.
    pub(super) fn check_overlap(sreg: Register, dreg: Register, length: u32) -> Result<(), Errno> {
        let (sreg, dreg) = (word(sreg)?, word(dreg)?);
        let words = length.div_ceil(4);
        (sreg == dreg || sreg.abs_diff(dreg) >= words)
            .then_some(())
            .ok_or(EINVAL)
    }

    /// Resolves the chain of a verdict, if it has one; returns the verdict as listed.
    pub(super) fn verdict(&mut self, data: &Data<'_>) -> Result<Verdict<'static>, Errno> {
        let mut bytes = Vec::new();
        let attributes = match data {
            Data::Value(_) => return Err(EINVAL),
            Data::Opaque(attributes) => attributes,
            Data::Verdict(verdict) => {
                let mut writer = chainwright::netlink::MessageWriter::bare(&mut bytes);
                verdict.encode(&mut writer, NFTA_DATA_VERDICT);
                writer.finish_bare().map_err(|_| ERANGE)?;
                bytes.as_slice()
            }
        };
        let (mut code, mut chain, mut id) = (None, None, None);
        let (None, Some(verdict)) = value_and_verdict(attributes)? else {
            return Err(EINVAL);
        };
        for attribute in Attributes::new(verdict).map_while(Result::ok) {
            match attribute.kind {
                NFTA_VERDICT_CODE => {
                    code = Some(i32::parse_payload(attribute.payload).ok_or(ERANGE)?)
                }
                NFTA_VERDICT_CHAIN => chain = Some(name_of(attribute.payload, 255)?),
                NFTA_VERDICT_CHAIN_ID => {
                    id = Some(u32::parse_payload(attribute.payload).ok_or(ERANGE)?)
                }
                _ => {}
            }
        }
        Ok(match code.ok_or(EINVAL)? {
            NF_ACCEPT => Verdict::Accept,
            NF_DROP => Verdict::Drop,
            NFT_CONTINUE => Verdict::Continue,
            NFT_BREAK => Verdict::Break,
            NFT_RETURN => Verdict::Return,
            code @ (NFT_JUMP | NFT_GOTO) => {
                if chain.is_none() && id.is_none() {
                    return Err(EINVAL);
                }
                let id = id.filter(|_| chain.is_none());
                let target = self.around.chain(chain, id)?;
                if target.is_base {
                    return Err(EOPNOTSUPP);
                }
                // Only a rule can bind a chain.
                if target.is_bound || self.in_element && target.is_anonymous {
                    return Err(EINVAL);
                }
                let name = (&target.name[..]).into();
                let verdict = match code {
                    NFT_JUMP => Verdict::Jump(name),
                    _ => Verdict::Goto(name),
                };
                let verdict = verdict.into_owned();
                self.references.push(Reference::Chain(target.name));
                verdict
            }
            _ => return Err(EINVAL),
        })
    }

    /// Returns the set that an expression names.
    pub(super) fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetInfo, Errno> {
        self.around.set(name, id)
    }

    /// Binds a set to the rule.
    pub(super) fn bind(
        &mut self,
        set: &SetInfo,
        reference: fn(BString) -> Reference,
    ) -> Result<(), Errno> {
        if set.is_bound && set.flags.contains(SetFlags::ANONYMOUS) {
            return Err(EBUSY);
        }
        self.references.push(reference(set.name.clone()));
        Ok(())
    }

    /// Checks that this family has connection tracking.
    pub(super) fn conntrack(family: Family) -> Result<(), Errno> {
        match family {
            Family::IP | Family::IP6 | Family::INET => Ok(()),
            _ => Err(EPROTO),
        }
    }
}

/// The value and the verdict, each if present.
type ValueAndVerdict<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Reads the value and the verdict of data: of repeated attributes, the last.
fn value_and_verdict(attributes: &[u8]) -> Result<ValueAndVerdict<'_>, Errno> {
    let (mut value, mut verdict) = (None, None);
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        match attribute.kind {
            NFTA_DATA_VALUE => value = Some(attribute.payload),
            NFTA_DATA_VERDICT if matches!(attribute.payload.len(), 1..4) => return Err(ERANGE),
            NFTA_DATA_VERDICT => verdict = Some(attribute.payload),
            _ => {}
        }
    }
    Ok((value, verdict))
}

/// Reads a name of at most `max` bytes without its NUL.
fn name_of(payload: &[u8], max: usize) -> Result<&BStr, Errno> {
    let name = chainwright::nft::Name::parse_payload(payload).ok_or(ERANGE)?;
    if payload.is_empty() || name.len() > max {
        return Err(ERANGE);
    }
    Ok(name)
}

/// Returns the first word of a register.
fn word(register: Register) -> Result<u32, Errno> {
    match register.0 {
        number @ 0..=NFT_REG_4 => Ok(number * 4),
        number @ NFT_REG32_00..=NFT_REG32_15 => Ok(number - NFT_REG32_00 + 4),
        _ => Err(ERANGE),
    }
}

/// Returns the word after a value of this length, in a register other than the verdict register.
fn words(first: u32, length: u32) -> Result<u32, Errno> {
    if first < 4 || length == 0 {
        return Err(EINVAL);
    }
    let end = u64::from(first) + u64::from(length).div_ceil(4);
    if end > u64::from(WORDS) {
        return Err(ERANGE);
    }
    Ok(end as u32)
}

/// Returns the register that begins at a word, as listed: the 16-byte register, if one begins there.
fn listed(first: u32) -> Register {
    match first % 4 {
        0 => Register(first / 4),
        _ => Register::word(first - 4),
    }
}

/// Returns the value of an expression after a check of its length.
pub(super) fn value<'a>(
    data: &'a Data<'_>,
    max: usize,
    exactly: Option<u32>,
) -> Result<Bytes<'a>, Errno> {
    let bytes: &[u8] = match data {
        Data::Value(bytes) => bytes,
        Data::Verdict(_) => return Err(EINVAL),
        Data::Opaque(attributes) => value_and_verdict(attributes)?.0.ok_or(EINVAL)?,
    };
    if bytes.is_empty() {
        return Err(EINVAL);
    }
    if bytes.len() > max {
        return Err(EOVERFLOW);
    }
    if exactly.is_some_and(|length| length as usize != bytes.len()) {
        return Err(EINVAL);
    }
    Ok(bytes.into())
}

/// Returns `EINVAL` for a missing value.
pub(super) fn required<T>(value: Option<T>) -> Result<T, Errno> {
    value.ok_or(EINVAL)
}

/// Returns `ERANGE` if a number exceeds the limit of its attribute.
pub(super) fn check_max(number: Option<u32>, max: u32) -> Result<(), Errno> {
    match number {
        Some(number) if number > max => Err(ERANGE),
        _ => Ok(()),
    }
}

/// Checks that a key is either loaded or stored to, but not both.
pub(super) fn check_direction(
    key: Option<u32>,
    dreg: Option<Register>,
    sreg: Option<Register>,
) -> Result<(), Errno> {
    check_max(key, 255)?;
    match (key, dreg, sreg) {
        (Some(_), Some(_), None) | (Some(_), None, Some(_)) => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Returns `EINVAL` for flags that an attribute's policy doesn't allow.
pub(super) fn check_flags(flags: Option<u32>, allowed: u32) -> Result<(), Errno> {
    match flags {
        Some(flags) if flags & !allowed != 0 => Err(EINVAL),
        _ => Ok(()),
    }
}

/// Returns `ERANGE` for a string longer than the attribute's policy allows.
pub(super) fn check_length(string: Option<&BStr>, max: usize) -> Result<(), Errno> {
    match string {
        Some(string) if string.len() > max => Err(ERANGE),
        _ => Ok(()),
    }
}
