//! Errors of the rule builder.

use crate::nft::Family;
use crate::nft::userdata::CommentError;

/// An error in building a rule: the kernel would reject the rule, or it would match other packets
/// than intended.
///
/// After the first error, further calls on the [`Build`](super::Build) have no effect, and the
/// method that ends the rule returns that error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Tables of this family have no such packets, or the kernel does not support this in them.
    #[error("`{what}` is not supported in a table of family {family}")]
    Family {
        /// The match or statement, in nft's syntax.
        what: &'static str,
        /// The table's family.
        family: Family,
    },
    /// An earlier match limits packets to another protocol: no packet would match.
    #[error("`{what}` can never match: the rule already matches another protocol ({protocol})")]
    Conflict {
        /// The match or statement, in nft's syntax.
        what: &'static str,
        /// The protocol, in nft's syntax.
        protocol: &'static str,
    },
    /// The rule compares or changes ports of packets that may have none.
    #[error("`{what}` with ports needs an earlier match of a transport protocol that has ports")]
    NoTransport {
        /// The match or statement, in nft's syntax.
        what: &'static str,
    },
    /// A prefix is longer than the address.
    #[error("a prefix of {length} bits is longer than `{what}`, which has {max}")]
    Prefix {
        /// The compared field, in nft's syntax.
        what: &'static str,
        /// Length of the prefix in bits.
        length: u8,
        /// Length of the address in bits.
        max: u8,
    },
    /// The first value of a range is greater than the last.
    #[error("the range for `{what}` ends before it begins")]
    Range {
        /// The compared field, in nft's syntax.
        what: &'static str,
    },
    /// A value has bits outside its mask: it would never match, and its negation always would.
    #[error("the value for `{what}` has bits outside its mask")]
    Mask {
        /// The compared field, in nft's syntax.
        what: &'static str,
    },
    /// The set of flags is empty: the match would never hold, and its negation always would.
    #[error("`{what}` needs at least one flag")]
    NoFlags {
        /// The compared field, in nft's syntax.
        what: &'static str,
    },
    /// A value has another length than the field that it is compared with or written to.
    #[error("a value of {length} bytes does not match `{what}`, which has {expected}")]
    ValueLength {
        /// The compared or written field, in nft's syntax.
        what: &'static str,
        /// The value's length in bytes.
        length: u32,
        /// The required length in bytes.
        expected: u32,
    },
    /// A concatenation is compared with a value; it can only be looked up in a set.
    #[error("a concatenation can only be looked up in a set, not compared with a value")]
    Concatenation,
    /// A key has no fields, or is longer than the registers.
    #[error("invalid key length {length}: a key has 1 to 64 bytes")]
    Key {
        /// The key's length in bytes.
        length: u32,
    },
    /// The keys of the given set have another length.
    #[error("a key of {length} bytes cannot be looked up in a set whose keys have {expected}")]
    SetKey {
        /// The key's length in bytes.
        length: u32,
        /// Length of the set's keys in bytes.
        expected: u32,
    },
    /// An interface name is invalid: it must have 1 to 15 bytes and no NUL.
    #[error("an interface name has 1 to 15 bytes and no NUL; `*` alone matches every interface")]
    InterfaceName,
    /// A modulus is 0, or the generated numbers would exceed 32 bits.
    #[error("invalid modulus {modulus} with offset {offset}")]
    Modulus {
        /// The modulus.
        modulus: u32,
        /// The smallest number.
        offset: u32,
    },
    /// A log statement has both a group or snap length and a level or flags.
    #[error("a log statement has either a group, or a level or flags")]
    LogGroup,
    /// A log prefix is longer than 127 bytes, or contains a NUL.
    #[error("a log prefix has at most 127 bytes and no NUL")]
    LogPrefix,
    /// A rate has an amount or a period of 0.
    #[error("the rate must not be 0")]
    Rate,
    /// An anonymous set is empty, or one of its elements is neither a value, a prefix nor a range.
    #[error("an anonymous set needs at least one element, each a value, prefix or range")]
    Element,
    /// The comment cannot be stored.
    #[error(transparent)]
    Comment(#[from] CommentError),
}

crate::debug_as_message!(BuildError);
