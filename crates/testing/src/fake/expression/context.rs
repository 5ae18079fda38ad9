//! What goes on while expressions are taken: registers, values and verdicts.

use bstr::{BStr, BString};
use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::nf_tables::{
    NFT_BREAK, NFT_CONTINUE, NFT_GOTO, NFT_JUMP, NFT_REG_4, NFT_REG32_00, NFT_REG32_15, NFT_RETURN,
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CHAIN_ID,
    NFTA_VERDICT_CODE,
};

use super::errors::{EBUSY, EINVAL, ENODATA, EOPNOTSUPP, EOVERFLOW, EPROTO, ERANGE};
use super::{Around, Reference, SetFacts};
use chainwright::Errno;
use chainwright::netlink::Attributes;
use chainwright::nft::declare::Field;
use chainwright::nft::expr::{Data, Register, Verdict};
use chainwright::nft::{Bytes, Family, SetFlags};

/// Words of 4 bytes that the registers are: the first four are the verdict's.
const WORDS: u32 = 20;
/// How much of a value an expression keeps (`struct nft_data`).
pub(super) const KEPT: usize = 16;

/// Times from here on, in milliseconds, are too long for nanoseconds in 64 bits (`ERANGE`).
pub(super) const LONGEST_TIME: u64 = u64::MAX / 1_000_000;

/// While the expressions of one rule are taken, one after the other.
pub(super) struct Context<'c> {
    pub(super) around: &'c mut dyn Around,
    /// A bit for each word of the registers that an expression before this one stores to. Since Linux 6.13
    /// no other word may be loaded from.
    stored: u32,
    pub(super) references: Vec<Reference>,
    /// Whether it is an element's verdict that is taken.
    pub(super) in_element: bool,
}

impl<'c> Context<'c> {
    pub(super) fn new(around: &'c mut dyn Around) -> Self {
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

    /// A register that is loaded from, as it is listed.
    pub(super) fn load(&self, register: Register, length: u32) -> Result<Register, Errno> {
        let first = word(register)?;
        let behind = words(first, length)?;
        let needed = (1 << behind) - (1 << first);
        if self.stored & needed != needed {
            return Err(ENODATA);
        }
        Ok(listed(first))
    }

    /// A register that a value is stored to, as it is listed.
    pub(super) fn store(&mut self, register: Register, length: u32) -> Result<Register, Errno> {
        let first = word(register)?;
        let behind = words(first, length)?;
        self.stored |= (1 << behind) - (1 << first);
        Ok(listed(first))
    }

    /// `EINVAL` if what is stored would overwrite what is still to be loaded: registers that are not the
    /// same and have words in common.
    pub(super) fn apart(sreg: Register, dreg: Register, length: u32) -> Result<(), Errno> {
        let (sreg, dreg) = (word(sreg)?, word(dreg)?);
        let words = length.div_ceil(4);
        (sreg == dreg || sreg.abs_diff(dreg) >= words)
            .then_some(())
            .ok_or(EINVAL)
    }

    /// The chain that a verdict leads to, if it leads to one, and the verdict as it is listed.
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
                NFTA_VERDICT_CODE => code = Some(i32::keep(attribute.payload).ok_or(ERANGE)?),
                NFTA_VERDICT_CHAIN => chain = Some(name_of(attribute.payload, 255)?),
                NFTA_VERDICT_CHAIN_ID => id = Some(u32::keep(attribute.payload).ok_or(ERANGE)?),
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
                // Only a rule has a chain of its own.
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

    /// The set that an expression names.
    pub(super) fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetFacts, Errno> {
        self.around.set(name, id)
    }

    /// Binds a set to the rule.
    pub(super) fn bind(
        &mut self,
        set: &SetFacts,
        reference: fn(BString) -> Reference,
    ) -> Result<(), Errno> {
        if set.is_bound && set.flags.contains(SetFlags::ANONYMOUS) {
            return Err(EBUSY);
        }
        self.references.push(reference(set.name.clone()));
        Ok(())
    }

    /// Connection tracking in this family, which the expression needs.
    pub(super) fn conntrack(family: Family) -> Result<(), Errno> {
        match family {
            Family::IP | Family::IP6 | Family::INET => Ok(()),
            _ => Err(EPROTO),
        }
    }
}

/// What stands in each, where it is there.
type ValueAndVerdict<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// The value and the verdict in data that is said to be one of them: of several, the last.
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

/// A name of at most so many bytes without its NUL.
fn name_of(payload: &[u8], most: usize) -> Result<&BStr, Errno> {
    let name = chainwright::nft::Name::keep(payload).ok_or(ERANGE)?;
    if payload.is_empty() || name.len() > most {
        return Err(ERANGE);
    }
    Ok(name)
}

/// The first word of a register.
fn word(register: Register) -> Result<u32, Errno> {
    match register.0 {
        number @ 0..=NFT_REG_4 => Ok(number * 4),
        number @ NFT_REG32_00..=NFT_REG32_15 => Ok(number - NFT_REG32_00 + 4),
        _ => Err(ERANGE),
    }
}

/// The word behind a value of this length in a register that is not the verdict.
fn words(first: u32, length: u32) -> Result<u32, Errno> {
    if first < 4 || length == 0 {
        return Err(EINVAL);
    }
    let behind = u64::from(first) + u64::from(length).div_ceil(4);
    if behind > u64::from(WORDS) {
        return Err(ERANGE);
    }
    Ok(behind as u32)
}

/// The register that begins at a word, as the kernel lists it: by its old number, if it has one.
fn listed(first: u32) -> Register {
    match first % 4 {
        0 => Register(first / 4),
        _ => Register::word(first - 4),
    }
}

/// A value that an expression keeps, as long as is asked for.
pub(super) fn value<'a>(
    data: &'a Data<'_>,
    most: usize,
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
    if bytes.len() > most {
        return Err(EOVERFLOW);
    }
    if exactly.is_some_and(|length| length as usize != bytes.len()) {
        return Err(EINVAL);
    }
    Ok(bytes.into())
}

/// What must be there.
pub(super) fn required<T>(value: Option<T>) -> Result<T, Errno> {
    value.ok_or(EINVAL)
}

/// A number of which an attribute's policy allows no more, or which is parsed with such a limit.
pub(super) fn at_most(number: Option<u32>, most: u32) -> Result<(), Errno> {
    match number {
        Some(number) if number > most => Err(ERANGE),
        _ => Ok(()),
    }
}

/// A key that is loaded or stored to, and not both.
pub(super) fn one_way(
    key: Option<u32>,
    dreg: Option<Register>,
    sreg: Option<Register>,
) -> Result<(), Errno> {
    at_most(key, 255)?;
    match (key, dreg, sreg) {
        (Some(_), Some(_), None) | (Some(_), None, Some(_)) => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Flags of which an attribute's policy allows no others.
pub(super) fn none_but(flags: Option<u32>, allowed: u32) -> Result<(), Errno> {
    match flags {
        Some(flags) if flags & !allowed != 0 => Err(EINVAL),
        _ => Ok(()),
    }
}

/// A string of which an attribute's policy allows no longer ones.
pub(super) fn no_longer(string: Option<&BStr>, most: usize) -> Result<(), Errno> {
    match string {
        Some(string) if string.len() > most => Err(ERANGE),
        _ => Ok(()),
    }
}
