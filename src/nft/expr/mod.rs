//! Expressions: the instructions that a rule consists of, one a file, named as the kernel names
//! them.
//!
//! Every expression is kept byte-exact as an [`ExpressionRef`]; [`ExpressionRef::decode`] gives the
//! typed form of those that stand in the registry below, and [`Decoded::Opaque`] for all others,
//! which can be written back as they are. The typed forms are structs with one `Option` for each
//! attribute: they read from bytes and write to bytes.
//!
//! On the wire a rule's `NFTA_RULE_EXPRESSIONS` is a list of elements:
//!
//! ```text
//! NFTA_LIST_ELEM       nested
//!   NFTA_EXPR_NAME     string
//!   NFTA_EXPR_DATA     nested: the expression's attributes; absent where it knows none
//! ```
//!
//! Numbers in attributes are big-endian and strings end in a NUL. An expression's attributes are
//! declared, and so written, in the order in which libnftnl writes them, and nested ones have
//! `NLA_F_NESTED`: the bytes are those that `nft` sends. The kernel lists in an order of its own
//! and without that flag. Source: `linux/netfilter/nf_tables.h`.

use std::borrow::Cow;

use bstr::{BStr, ByteSlice};
use chainwright_sys::nf_tables::{NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_LIST_ELEM};

use super::declare::Field;
use super::name::{Bytes, Name};
use crate::netlink::{Attribute, Attributes, Malformed, MessageWriter, TooLong};

mod bitwise;
mod cmp;
mod counter;
mod ct;
mod data;
mod immediate;
mod limit;
mod log;
mod lookup;
mod masq;
#[path = "match.rs"]
mod match_;
mod meta;
mod nat;
mod payload;
mod redir;
mod register;
mod reject;
mod target;

pub use bitwise::{Bitwise, BitwiseOp};
pub use cmp::{Cmp, CmpOp};
pub use counter::Counter;
pub use ct::{Ct, CtDirection, CtKey};
pub use data::{Data, Verdict, VerdictAttributes};
pub use immediate::Immediate;
pub use limit::{Limit, LimitFlags, LimitType};
pub use log::{Log, LogFlags, LogLevel};
pub use lookup::{Lookup, LookupFlags};
pub use masq::Masq;
pub use match_::Match;
pub use meta::{Meta, MetaKey};
pub use nat::{Nat, NatRangeFlags, NatType};
pub use payload::{ChecksumFlags, ChecksumType, Payload, PayloadBase};
pub use redir::Redir;
pub use register::Register;
pub use reject::{Reject, RejectIcmpxCode, RejectType};
pub use target::Target;

/// A typed expression: its name, and its attributes as bytes.
pub trait Expression {
    /// The expression's name in the kernel.
    const NAME: &'static str;
    /// Writes the expression's attributes.
    fn write(&self, writer: &mut MessageWriter<'_>);
}

/// Declares an expression: [`attributes!`](super::declare::attributes), and its name.
macro_rules! expression {
    (
        $name:literal
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$life:lifetime>)? { $($fields:tt)* }
    ) => {
        $crate::nft::declare::attributes! {
            $(#[$meta])*
            pub struct $Name $(<$life>)? { $($fields)* }
        }
        impl $(<$life>)? $crate::nft::expr::Expression for $Name $(<$life>)? {
            const NAME: &'static str = $name;
            #[inline]
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
            }
        }
    };
}
use expression;

/// The registry: one line an expression.
macro_rules! registry {
    ($( $Variant:ident($($Type:tt)+), )*) => {
        /// An expression in its typed form.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Decoded<'a> {
            $(
                #[doc = concat!("A `", stringify!($Variant), "` expression.")]
                $Variant($($Type)+),
            )*
            /// An expression that this version of the crate has no typed form for.
            Opaque(ExpressionRef<'a>),
        }

        impl<'a> ExpressionRef<'a> {
            /// The expression in its typed form; [`Decoded::Opaque`] if it has none here.
            ///
            /// # Errors
            /// [`Malformed`] when an attribute of a known expression is not what it must be.
            pub fn decode(&self) -> Result<Decoded<'a>, Malformed> {
                $(
                    if self.name == <$($Type)+ as Expression>::NAME {
                        return <$($Type)+>::from_attributes(self.attributes).map(Decoded::$Variant);
                    }
                )*
                Ok(Decoded::Opaque(*self))
            }

            /// The names of the attributes of this kind of expression, where they are known.
            pub(crate) fn attribute_names(&self) -> &'static [(u16, &'static str)] {
                $(
                    if self.name == <$($Type)+ as Expression>::NAME {
                        return <$($Type)+>::ATTRIBUTES;
                    }
                )*
                &[]
            }
        }
    };
}

registry! {
    Bitwise(Bitwise<'a>),
    Cmp(Cmp<'a>),
    Counter(Counter),
    Ct(Ct),
    Immediate(Immediate<'a>),
    Limit(Limit),
    Log(Log<'a>),
    Lookup(Lookup<'a>),
    Masq(Masq),
    Match(Match<'a>),
    Meta(Meta),
    Nat(Nat),
    Payload(Payload),
    Redir(Redir),
    Reject(Reject),
    Target(Target<'a>),
}

/// One expression of a rule, borrowed: its name and its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ExpressionRef<'a> {
    /// The expression's name in the kernel.
    pub name: &'a BStr,
    /// The bytes of its attributes.
    pub attributes: &'a [u8],
    /// The whole list element, as it came.
    pub raw: &'a [u8],
}

impl std::fmt::Debug for ExpressionRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExpressionRef")
            .field("name", &self.name)
            .field("attributes", &self.attributes)
            .finish()
    }
}

/// A rule's list of expressions, encoded: borrowed from a message, or being built.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Expressions<'a> {
    bytes: Bytes<'a>,
    error: Option<TooLong>,
}

impl<'a> Expressions<'a> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Cow::Borrowed(&[]),
            error: None,
        }
    }

    /// Appends an expression. One that is too long for its attribute is noticed when the rule is
    /// put into a transaction.
    pub fn push(&mut self, expression: &impl Expression) -> &mut Self {
        self.append(expression)
    }

    /// The list, to be appended to: the padding of the last element may be missing in bytes that
    /// were read.
    #[inline]
    fn aligned(&mut self) -> &mut Vec<u8> {
        let bytes = self.bytes.to_mut();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn append<E: Expression>(&mut self, expression: &E) -> &mut Self {
        let mut writer = MessageWriter::bare(self.aligned());
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer
                .string(NFTA_EXPR_NAME, E::NAME.as_bytes())
                .nested(NFTA_EXPR_DATA, |writer| expression.write(writer));
        });
        if let Err(error) = writer.finish_bare() {
            self.error.get_or_insert(error);
        }
        self
    }

    /// Appends an expression as it came from the kernel, byte for byte.
    pub fn push_raw(&mut self, expression: &ExpressionRef<'_>) -> &mut Self {
        self.aligned().extend_from_slice(expression.raw);
        self.aligned();
        self
    }

    /// Takes all expressions away and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.to_mut().clear();
        self.error = None;
    }

    /// The list, encoded.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The expressions, in order.
    #[must_use]
    pub fn iter(&self) -> ExpressionIter<'_> {
        ExpressionIter(Attributes::new(&self.bytes))
    }
}

impl std::fmt::Debug for Expressions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|e| e.and_then(|e| e.decode())))
            .finish()
    }
}

/// The expressions of a rule, in order; one [`Malformed`] ends them.
#[derive(Debug, Clone)]
pub struct ExpressionIter<'a>(Attributes<'a>);

impl<'a> Iterator for ExpressionIter<'a> {
    type Item = Result<ExpressionRef<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let expression = match self.0.next()? {
                Ok(element) if element.kind == NFTA_LIST_ELEM => ExpressionRef::of(element),
                Ok(_) => continue,
                Err(malformed) => Err(malformed),
            };
            if expression.is_err() {
                self.0 = Attributes::new(&[]);
            }
            return Some(expression);
        }
    }
}

impl<'a> Field<'a> for Expressions<'a> {
    type Kept = &'a [u8];
    type View = ExpressionIter<'a>;
    type Static = Expressions<'static>;

    #[inline]
    fn keep(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload) // an iterator finds out what is malformed in there
    }
    #[inline]
    fn view(kept: &'a [u8]) -> ExpressionIter<'a> {
        ExpressionIter(Attributes::new(kept))
    }
    #[inline]
    fn value(kept: &'a [u8]) -> Self {
        Self {
            bytes: Cow::Borrowed(kept),
            error: None,
        }
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Some(error) = self.error {
            writer.fail(error);
        }
        writer.nested(kind, |writer| {
            writer.encoded(&self.bytes);
        });
    }
    fn into_static(self) -> Expressions<'static> {
        Expressions {
            bytes: Cow::Owned(self.bytes.into_owned()),
            error: self.error,
        }
    }
}

impl<'a> ExpressionRef<'a> {
    /// The expression in an element of a list.
    #[inline]
    fn of(element: Attribute<'a>) -> Result<Self, Malformed> {
        let mut name = None;
        let mut attributes: &[u8] = &[];
        for attribute in Attributes::new(element.payload) {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_EXPR_NAME => name = Name::keep(attribute.payload),
                NFTA_EXPR_DATA => attributes = attribute.payload,
                _ => {}
            }
        }
        let Some(name) = name else {
            return Err(Malformed {
                what: "expression",
                offset: 0,
                reason: "it has no name",
            });
        };
        Ok(Self {
            name,
            attributes,
            raw: element.raw,
        })
    }

    /// Whether the expression is of this type.
    #[must_use]
    pub fn is<E: Expression>(&self) -> bool {
        self.name.as_bytes() == E::NAME.as_bytes()
    }
}

#[cfg(test)]
mod tests;
