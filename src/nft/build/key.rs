//! What is looked up in a set or map, compared, or put into a mark: a field, several of them, or a
//! number that the kernel makes.

use super::select::{Needs, Selector, meta};
use super::value::ByteOrder;
use super::{Build, BuildError};
use crate::nft::expr::{Hash, Numgen, NumgenType, Register};

/// Words of four bytes that the registers have together.
const WORDS: u32 = 16;
/// Words of a register of 16 bytes.
const REGISTER: u32 = 4;

/// What is looked up, compared, or put into a mark.
///
/// It is made of a [`Selector`], of several as a concatenation (`&[ip::DADDR, meta::L4PROTO,
/// th::DPORT]` is nft's `ip daddr . meta l4proto . th dport`), or of a number:
/// [`numgen_random`], [`numgen_inc`], [`jhash`], [`symhash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'k>(Kind<'k>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'k> {
    Field(Selector),
    Fields(&'k [Selector]),
    Number(Generator),
    Jhash(Jhash<'k>),
}

/// A number that the kernel makes for each packet: [`numgen_random`], [`numgen_inc`], [`symhash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// `None`: of the packet's connection.
    kind: Option<NumgenType>,
    modulus: u32,
    offset: u32,
}

/// A number made of fields: [`jhash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jhash<'k> {
    fields: &'k [Selector],
    modulus: u32,
    seed: Option<u32>,
    offset: u32,
}

/// `numgen random mod`: a number from 0 to `modulus - 1`, drawn for each packet.
#[must_use]
pub const fn numgen_random(modulus: u32) -> Generator {
    Generator {
        kind: Some(NumgenType::RANDOM),
        modulus,
        offset: 0,
    }
}

/// `numgen inc mod`: a number from 0 to `modulus - 1`, one more for each packet.
#[must_use]
pub const fn numgen_inc(modulus: u32) -> Generator {
    Generator {
        kind: Some(NumgenType::INCREMENTAL),
        modulus,
        offset: 0,
    }
}

/// `symhash mod`: a number from 0 to `modulus - 1`, the same for both directions of a connection.
#[must_use]
pub const fn symhash(modulus: u32) -> Generator {
    Generator {
        kind: None,
        modulus,
        offset: 0,
    }
}

/// `jhash … mod`: a number from 0 to `modulus - 1`, the same for the same values of these fields. The
/// kernel takes a start value of its own if there is no [`seed`](Jhash::seed).
#[must_use]
pub const fn jhash(fields: &[Selector], modulus: u32) -> Jhash<'_> {
    Jhash {
        fields,
        modulus,
        seed: None,
        offset: 0,
    }
}

impl Generator {
    /// The smallest number is this one instead of 0.
    #[must_use]
    pub const fn offset(mut self, offset: u32) -> Self {
        self.offset = offset;
        self
    }
}

impl Jhash<'_> {
    /// The smallest number is this one instead of 0.
    #[must_use]
    pub const fn offset(mut self, offset: u32) -> Self {
        self.offset = offset;
        self
    }

    /// The start value: with the same one the numbers are the same wherever they are made.
    #[must_use]
    pub const fn seed(mut self, seed: u32) -> Self {
        self.seed = Some(seed);
        self
    }
}

impl From<Selector> for Key<'_> {
    fn from(field: Selector) -> Self {
        Self(Kind::Field(field))
    }
}

impl<'k> From<&'k [Selector]> for Key<'k> {
    fn from(fields: &'k [Selector]) -> Self {
        Self(match fields {
            [field] => Kind::Field(*field),
            fields => Kind::Fields(fields),
        })
    }
}

impl<'k, const N: usize> From<&'k [Selector; N]> for Key<'k> {
    fn from(fields: &'k [Selector; N]) -> Self {
        fields[..].into()
    }
}

impl From<Generator> for Key<'_> {
    fn from(number: Generator) -> Self {
        Self(Kind::Number(number))
    }
}

impl<'k> From<Jhash<'k>> for Key<'k> {
    fn from(number: Jhash<'k>) -> Self {
        Self(Kind::Jhash(number))
    }
}

/// Length in bytes of what these fields make together: each but a single one is filled up to four.
fn length_of(fields: &[Selector]) -> u32 {
    match fields {
        [field] => field.length(),
        fields => fields
            .iter()
            .map(|field| field.length().next_multiple_of(4))
            .sum(),
    }
}

impl Key<'_> {
    pub(super) fn length(&self) -> u32 {
        match self.0 {
            Kind::Field(field) => field.length(),
            Kind::Fields(fields) => length_of(fields),
            Kind::Number(_) | Kind::Jhash(_) => 4,
        }
    }

    pub(super) const fn order(&self) -> ByteOrder {
        match self.0 {
            Kind::Field(field) => field.order,
            Kind::Fields(_) => ByteOrder::Network,
            Kind::Number(_) | Kind::Jhash(_) => ByteOrder::Host,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self.0 {
            Kind::Field(field) => field.name,
            Kind::Fields(_) => "a concatenation",
            Kind::Number(Generator { kind: Some(_), .. }) => "numgen",
            Kind::Number(Generator { kind: None, .. }) => "symhash",
            Kind::Jhash(_) => "jhash",
        }
    }

    /// The one field, if it is one; an error if it is several.
    pub(super) const fn only(&self) -> Result<Option<&Selector>, BuildError> {
        match &self.0 {
            Kind::Field(field) => Ok(Some(field)),
            Kind::Number(_) | Kind::Jhash(_) => Ok(None),
            Kind::Fields(_) => Err(BuildError::Concatenation),
        }
    }

    fn fields(&self) -> &[Selector] {
        match &self.0 {
            Kind::Field(field) => std::slice::from_ref(field),
            Kind::Fields(fields) | Kind::Jhash(Jhash { fields, .. }) => fields,
            Kind::Number(_) => &[],
        }
    }
}

/// The register that begins with this word: one of 16 bytes where there is one.
pub(super) const fn register(word: u32) -> Register {
    if word.is_multiple_of(REGISTER) {
        Register(Register::R1.0 + word / REGISTER)
    } else {
        Register::word(word)
    }
}

/// The first word behind a value of this length from `word` on that begins a register of 16 bytes.
pub(super) const fn register_behind(word: u32, length: u32) -> u32 {
    (word + length.div_ceil(4)).next_multiple_of(REGISTER)
}

impl Build<'_> {
    /// Sees to it that packets have all that the key is made of; whether they can, and whether the
    /// key itself can be.
    pub(super) fn require_key(&mut self, key: &Key<'_>) -> bool {
        // What the protocol is may stand in the same key: then what it is compared with says it.
        let says_protocol = key.fields().iter().any(Selector::is_protocol);
        let mut fields = key.fields().iter();
        if !fields.all(|field| match field.needs {
            Needs::Ports if says_protocol => self.require(&meta::L4PROTO),
            _ => self.require(field),
        }) {
            return false;
        }
        let (modulus, offset) = match key.0 {
            Kind::Number(Generator {
                modulus, offset, ..
            })
            | Kind::Jhash(Jhash {
                modulus, offset, ..
            }) => (modulus, offset),
            Kind::Field(_) | Kind::Fields(_) => (1, 0),
        };
        if modulus == 0 || offset.checked_add(modulus - 1).is_none() {
            self.fail(BuildError::Modulus { modulus, offset });
            return false;
        }
        let hashed = match key.0 {
            Kind::Jhash(Jhash { fields, .. }) => Some(length_of(fields)),
            _ => None,
        };
        let (length, most) = match hashed {
            // The number itself takes the first register.
            Some(length) => (length, (WORDS - REGISTER) * 4),
            None => (key.length(), WORDS * 4),
        };
        if length == 0 || length > most {
            self.fail(BuildError::Key { length });
            return false;
        }
        true
    }

    fn load_fields(&mut self, fields: &[Selector], mut word: u32) {
        for field in fields {
            self.load(field, None, register(word));
            word += field.length().div_ceil(4);
        }
    }

    /// Puts the key into the registers from this word on.
    pub(super) fn load_key(&mut self, key: &Key<'_>, word: u32) {
        let dreg = register(word);
        match key.0 {
            Kind::Field(field) => self.load(&field, None, dreg),
            Kind::Fields(fields) => self.load_fields(fields, word),
            Kind::Number(Generator {
                kind: Some(kind),
                modulus,
                offset,
            }) => self.push(&Numgen {
                numgen_type: Some(kind),
                ..Numgen::random(modulus, dreg).with_offset(offset)
            }),
            Kind::Number(Generator {
                kind: None,
                modulus,
                offset,
            }) => self.push(&Hash {
                offset: Some(offset),
                ..Hash::symmetric(modulus, dreg)
            }),
            Kind::Jhash(Jhash {
                fields,
                modulus,
                seed,
                offset,
            }) => {
                let from = word + REGISTER;
                self.load_fields(fields, from);
                let hash = Hash::jenkins(register(from), length_of(fields), modulus, dreg);
                self.push(&Hash {
                    seed,
                    offset: Some(offset),
                    ..hash
                });
            }
        }
    }
}
