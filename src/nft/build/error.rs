//! Why a rule cannot be what it was asked to be.

use crate::nft::Family;
use crate::nft::userdata::CommentError;

/// A rule cannot be what it was asked to be: it would be refused by the kernel, or match other
/// packets than those that were meant.
///
/// What follows the first error in a [`Build`](super::Build) changes nothing any more, and the
/// method that ends the rule gives the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A table of this family has no such packets, or the kernel does not do this there.
    #[error("`{what}` has no meaning in a table of the family {family}")]
    Family {
        /// What was asked for, in nft's words.
        what: &'static str,
        /// The table's family.
        family: Family,
    },
    /// Earlier in the rule packets were limited to another protocol: no packet would match.
    #[error(
        "`{what}` never holds: the rule is for packets of another protocol ({protocol}) already"
    )]
    Conflict {
        /// What was asked for, in nft's words.
        what: &'static str,
        /// The protocol, in nft's words.
        protocol: &'static str,
    },
    /// Ports are to be looked at or changed of packets that need not have any.
    #[error(
        "the ports of `{what}` take, before them, a match of a transport protocol that has ports"
    )]
    NoTransport {
        /// What was asked for, in nft's words.
        what: &'static str,
    },
    /// A prefix is longer than the address.
    #[error("a prefix of {length} bits is longer than `{what}`, which has {max}")]
    Prefix {
        /// What is compared, in nft's words.
        what: &'static str,
        /// Length of the prefix in bits.
        length: u8,
        /// Length of the address in bits.
        max: u8,
    },
    /// The first value of a range is greater than the last.
    #[error("the range for `{what}` ends before it begins")]
    Range {
        /// What is compared, in nft's words.
        what: &'static str,
    },
    /// A value has bits that its mask takes away: it would never be equal, and `not` always hold.
    #[error("the value for `{what}` has bits outside its mask")]
    Mask {
        /// What is compared, in nft's words.
        what: &'static str,
    },
    /// No flag at all is asked for: that never holds, and `not` always.
    #[error("`{what}` is compared with no flag at all")]
    NoFlags {
        /// What is compared, in nft's words.
        what: &'static str,
    },
    /// A value is not as long as what it is compared with or put into.
    #[error("a value of {length} bytes does not go with `{what}`, which has {expected}")]
    ValueLength {
        /// What is compared or set, in nft's words.
        what: &'static str,
        /// The value's length in bytes.
        length: u32,
        /// Length in bytes that it must have.
        expected: u32,
    },
    /// A concatenation can be looked up in a set, and not be compared with a value.
    #[error("several fields at once are looked up in a set and not compared with a value")]
    Concatenation,
    /// A key has no fields, or is longer than the registers.
    #[error("a key of {length} bytes cannot be: it has 1 to 64")]
    Key {
        /// The key's length in bytes.
        length: u32,
    },
    /// The keys of the set that was given have another length.
    #[error("a key of {length} bytes is looked up in a set whose keys have {expected}")]
    SetKey {
        /// The key's length in bytes.
        length: u32,
        /// Length of the set's keys in bytes.
        expected: u32,
    },
    /// An interface has no such name: it has 1 to 15 bytes, and no NUL.
    #[error("an interface's name has 1 to 15 bytes and no NUL; `*` alone is every interface")]
    InterfaceName,
    /// Numbers are made modulo 0, or are greater than 32 bits hold.
    #[error("numbers modulo {modulus} from {offset} on cannot be made")]
    Modulus {
        /// How many numbers.
        modulus: u32,
        /// The smallest.
        offset: u32,
    },
    /// A log line either has a level and flags, or goes to a group with a snap length.
    #[error("a log line goes to a group, or has a level or flags, but not both")]
    LogGroup,
    /// The start of a log line is longer than 127 bytes, or holds a NUL.
    #[error("a log line's prefix has at most 127 bytes and no NUL")]
    LogPrefix,
    /// A rate is none in no time or of nothing.
    #[error("a rate of 0")]
    Rate,
    /// An anonymous set is to have no elements, or something as an element that is no value, prefix
    /// or range.
    #[error("an anonymous set has values, prefixes and ranges as its elements, at least one")]
    Element,
    /// The comment cannot be kept.
    #[error(transparent)]
    Comment(#[from] CommentError),
}
