//! Expressions: the instructions of a rule, one per file, with the kernel's names.
//!
//! An [`ExpressionRef`] holds the exact bytes of an expression, in three forms:
//!
//! | form | purpose | unknown attributes |
//! |---|---|---|
//! | [`ExpressionRef::raw`] | copying | byte for byte |
//! | [`ExpressionRef::view`]: [`ExpressionView`] | reading many | ignored |
//! | [`ExpressionRef::decode`]: [`Decoded`] | modifying and writing: structs with one `Option` per attribute | preserved, written after all others |
//!
//! Expressions that are not in the registry below are `Opaque`, and written back unchanged. An expression is formatted
//! ([`Decoded`]'s `Display`) as the line that `nft --debug=netlink` prints for it.
//!
//! On the wire a rule's `NFTA_RULE_EXPRESSIONS` is a list of elements:
//!
//! ```text
//! NFTA_LIST_ELEM       nested
//!   NFTA_EXPR_NAME     string
//!   NFTA_EXPR_DATA     nested: the expression's attributes; absent where it knows none
//! ```
//!
//! Numbers in attributes are big-endian and strings are NUL-terminated. An expression's attributes are declared and
//! written in libnftnl's order, and nested ones have `NLA_F_NESTED`: the bytes are equal to those of `nft`. The kernel
//! lists them in its own order and without that flag. Source: `linux/netfilter/nf_tables.h`.

use bstr::{BStr, ByteSlice};
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{NFTA_EXPR_DATA, NFTA_EXPR_NAME};

use super::UnknownAttributes;
use super::declare::Field;
use super::name::Name;
use crate::netlink::{AttributeCursor, Attributes, Malformed, MessageWriter};

mod bitwise;
mod byteorder;
mod cmp;
mod connlimit;
mod counter;
mod ct;
mod data;
mod dup;
mod dynset;
mod exthdr;
mod fib;
mod flow_offload;
mod fwd;
mod hash;
mod immediate;
mod inner;
mod last;
mod limit;
mod list;
mod log;
mod lookup;
mod masq;
#[path = "match.rs"]
mod match_;
mod meta;
mod names;
mod nat;
mod nested;
mod notrack;
mod numgen;
mod objref;
mod opaque;
mod osf;
mod payload;
mod queue;
mod quota;
mod range;
mod redir;
mod register;
mod reject;
mod request;
mod rt;
mod socket;
mod synproxy;
mod target;
mod tproxy;
mod tunnel;
mod xfrm;

pub use bitwise::{Bitwise, BitwiseOp, BitwiseRef};
pub use byteorder::{Byteorder, ByteorderOp, ByteorderRef};
pub use cmp::{Cmp, CmpOp, CmpRef};
pub use connlimit::{Connlimit, ConnlimitFlags, ConnlimitRef};
pub use counter::{Counter, CounterRef};
pub use ct::{Ct, CtDirection, CtKey, CtRef};
pub use data::{Data, Verdict};
pub use dup::{Dup, DupRef};
pub use dynset::{Dynset, DynsetFlags, DynsetOp, DynsetRef};
pub use exthdr::{Exthdr, ExthdrFlags, ExthdrOp, ExthdrRef};
pub use fib::{Fib, FibFlags, FibRef, FibResult};
pub use flow_offload::{FlowOffload, FlowOffloadRef};
pub use fwd::{Fwd, FwdRef};
pub use hash::{Hash, HashRef, HashType};
pub use immediate::{Immediate, ImmediateRef};
pub use inner::{Inner, InnerFlags, InnerRef, InnerType};
pub use last::{Last, LastRef};
pub use limit::{Limit, LimitFlags, LimitRef, LimitType};
pub use list::{ExpressionIter, Expressions};
pub use log::{Log, LogFlags, LogLevel, LogRef};
pub use lookup::{Lookup, LookupFlags, LookupRef};
pub use masq::{Masq, MasqRef};
pub use match_::{Match, MatchRef};
pub use meta::{Meta, MetaKey, MetaRef};
use names::{Kind, Names};
pub use nat::{Nat, NatRangeFlags, NatRef, NatType};
pub(crate) use nested::MAX_DEPTH;
pub use nested::NestedExpression;
pub use notrack::{Notrack, NotrackRef};
pub use numgen::{Numgen, NumgenRef, NumgenType};
pub use objref::{ObjectType, Objref, ObjrefRef};
pub use opaque::Opaque;
pub use osf::{Osf, OsfFlags, OsfRef, OsfTtl};
pub use payload::{ChecksumFlags, ChecksumType, Payload, PayloadBase, PayloadRef};
pub use queue::{Queue, QueueFlags, QueueRef};
pub use quota::{Quota, QuotaFlags, QuotaRef};
pub use range::{Range, RangeOp, RangeRef};
pub use redir::{Redir, RedirRef};
pub use register::Register;
pub use reject::{Reject, RejectIcmpxCode, RejectRef, RejectType};
pub use rt::{Rt, RtKey, RtRef};
pub use socket::{Socket, SocketKey, SocketRef};
pub use synproxy::{Synproxy, SynproxyFlags, SynproxyRef};
pub use target::{Target, TargetRef};
pub use tproxy::{Tproxy, TproxyRef};
pub use tunnel::{Tunnel, TunnelKey, TunnelMode, TunnelRef};
pub use xfrm::{Xfrm, XfrmDirection, XfrmKey, XfrmRef};

/// A typed expression: its name, and its attributes as bytes.
pub trait Expression {
    /// The expression's name in the kernel.
    const NAME: &'static str;
    /// Writes the expression's attributes.
    #[doc(hidden)]
    fn write(&self, writer: &mut MessageWriter<'_>);
    /// Returns `true` if there is an `NFTA_EXPR_DATA`: an expression without attributes has none.
    #[doc(hidden)]
    fn has_data(&self) -> bool {
        true
    }
}

/// Writes the expression's attributes in their enclosing attribute, if there is one.
#[inline]
fn write_data<E: Expression>(expression: &E, writer: &mut MessageWriter<'_>) {
    if expression.has_data() {
        writer.nested(NFTA_EXPR_DATA, |writer| expression.write(writer));
    }
}

/// Declares an expression: its [`attributes!`](super::declare::attributes) and its name.
macro_rules! expression {
    (
        $name:literal
        $(#[$meta:meta])*
        pub struct $Name:ident $(<$life:lifetime>)? viewed as $View:ident
        $(, listed as $order:tt)? {
            $($fields:tt)*
        }
    ) => {
        $crate::nft::declare::attributes! {
            $(#[$meta])*
            pub struct $Name $(<$life>)?
            viewed as $View, ("a `", $name, "` expression") $(, listed as $order)? => {
                $($fields)*
            }
        }

        impl $(<$life>)? $crate::nft::expr::Expression for $Name $(<$life>)? {
            const NAME: &'static str = $name;
            #[inline]
            fn write(&self, writer: &mut $crate::netlink::MessageWriter<'_>) {
                self.write_attributes(writer);
            }
            #[inline]
            fn has_data(&self) -> bool {
                !Self::ATTRIBUTES.is_empty() || !self.unknown.is_empty()
            }
        }

        impl $View<'_> {
            pub(in crate::nft) const NAME: &'static str = $name;
        }
    };
}
use expression;

/// The registry: one line per expression.
macro_rules! registry {
    ($( $Variant:ident($Type:ty, $View:ident), )*) => {
        /// An expression in its typed form.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum Decoded<'a> {
            $(
                #[doc = concat!("A [`", stringify!($Variant), "`](struct@", stringify!($Variant), ") expression.")]
                $Variant($Type),
            )*
            /// An expression without a typed form in this version of the crate.
            Opaque(Opaque<'a>),
        }

        /// An expression in its typed form, borrowed: for reading many expressions.
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub enum ExpressionView<'a> {
            $(
                #[doc = concat!("A [`", stringify!($Variant), "`](struct@", stringify!($Variant), ") expression.")]
                $Variant($View<'a>),
            )*
            /// An expression without a typed form in this version of the crate.
            Opaque(ExpressionRef<'a>),
        }

        const COUNT: usize = NAMES.len();

        /// The names of the expressions with a typed form in this version of the crate: those of Linux 6.18.
        pub const NAMES: &[&str] = &[$($View::NAME),*];

        static KINDS: Names<COUNT> = Names::new([$($View::NAME),*]);

        /// The parsers of the views, in registry order.
        // Separate functions write their results directly to the caller's destination; inlined, all of them would share
        // registers, field by field.
        #[allow(non_snake_case, reason = "they are called as the variants are")]
        mod viewed {
            use super::*;
            $(
                fn $Variant<'a>(attributes: &'a [u8]) -> Result<ExpressionView<'a>, Malformed> {
                    #[cold]
                    #[inline(never)]
                    fn view_slow_path<'a>(attributes: &'a [u8]) -> Result<ExpressionView<'a>, Malformed> {
                        $View::in_any_order((), attributes).map(ExpressionView::$Variant)
                    }
                    match $View::in_order((), attributes) {
                        Some(view) => Ok(ExpressionView::$Variant(view)),
                        None => view_slow_path(attributes),
                    }
                }
            )*
            pub(super) static ALL:
                [for<'a> fn(&'a [u8]) -> Result<ExpressionView<'a>, Malformed>; COUNT] =
                [$($Variant),*];
        }

        /// The parsers of the structs, in registry order.
        #[allow(non_snake_case, reason = "they are called as the variants are")]
        mod decoded {
            use super::*;
            $(
                fn $Variant<'a>(attributes: &'a [u8]) -> Result<Decoded<'a>, Malformed> {
                    // Not with `map`, to write directly to the destination.
                    match <$Type>::from_attributes(attributes) {
                        Ok(expression) => Ok(Decoded::$Variant(expression)),
                        Err(malformed) => Err(malformed),
                    }
                }
            )*
            pub(super) static ALL: [for<'a> fn(&'a [u8]) -> Result<Decoded<'a>, Malformed>; COUNT] =
                [$($Variant),*];
        }

        impl<'a> Decoded<'a> {
            /// Returns the expression's name in the kernel.
            #[must_use]
            pub fn name(&self) -> &BStr {
                match self {
                    $(Self::$Variant(_) => BStr::new(<$Type as Expression>::NAME),)*
                    Self::Opaque(opaque) => &opaque.name,
                }
            }

            /// Returns the unknown attributes of an expression with a typed form.
            #[must_use]
            pub fn unknown(&self) -> &UnknownAttributes {
                match self {
                    $(Self::$Variant(expression) => &expression.unknown,)*
                    Self::Opaque(_) => &UnknownAttributes::NONE,
                }
            }

            /// Converts the expression into one without borrowed data.
            #[must_use]
            pub fn into_owned(self) -> Decoded<'static> {
                match self {
                    $(Self::$Variant(expression) => {
                        Decoded::$Variant(crate::nft::declare::Field::into_static(expression))
                    })*
                    Self::Opaque(opaque) => Decoded::Opaque(opaque.into_owned()),
                }
            }

            /// Brings the value of each attribute into its normal form.
            pub(in crate::nft) fn normalize_fields(&mut self) {
                match self {
                    $(Self::$Variant(expression) => expression.normalize_fields(),)*
                    Self::Opaque(_) => {}
                }
            }

            /// Writes the name and the attributes as the kernel lists them.
            fn write_listed(&self, writer: &mut MessageWriter<'_>) {
                writer.string(NFTA_EXPR_NAME, self.name());
                match self {
                    $(Self::$Variant(expression) => if expression.has_data() {
                        writer.nested(NFTA_EXPR_DATA, |writer| expression.write_listed(writer));
                    },)*
                    Self::Opaque(_) => self.write_data(writer),
                }
            }

            /// Writes the expression's attributes in their enclosing attribute.
            fn write_data(&self, writer: &mut MessageWriter<'_>) {
                match self {
                    $(Self::$Variant(expression) => write_data(expression, writer),)*
                    // Unchanged: the last attribute may lack its padding.
                    Self::Opaque(opaque) => {
                        writer.bytes(NFTA_EXPR_DATA | NLA_F_NESTED, &opaque.attributes);
                    }
                }
            }
        }

        #[cfg(any(test, feature = "testing"))]
        impl<'a> Decoded<'a> {
            /// Returns strategies for expressions of each kind, with its name; the last one is for opaque expressions.
            #[doc(hidden)]
            #[must_use]
            pub fn strategies(
                depth: u32,
            ) -> Vec<(&'static str, proptest::strategy::BoxedStrategy<Decoded<'static>>)> {
                use crate::nft::properties::Arbitrary;
                use proptest::strategy::Strategy;
                vec![
                    $((
                        <$Type as Expression>::NAME,
                        <$Type>::arbitrary(depth).prop_map(Decoded::$Variant).boxed(),
                    ),)*
                    ("", Opaque::arbitrary(depth).prop_map(Decoded::Opaque).boxed()),
                ]
            }
        }

        $(
            impl<'a> From<$Type> for Decoded<'a> {
                fn from(expression: $Type) -> Self {
                    Self::$Variant(expression)
                }
            }
        )*

        /// Formats the expression as a line of bytecode, like `nft --debug=netlink` (libnftnl 1.2.4), without the two
        /// leading blanks.
        impl std::fmt::Display for Decoded<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Variant(expression) => expression.fmt(f),)*
                    Self::Opaque(opaque) => opaque.fmt(f),
                }
            }
        }

        impl<'a> ExpressionRef<'a> {
            /// Returns the names of the attributes of this kind of expression, if it is known.
            #[doc(hidden)]
            pub fn attribute_names(&self) -> &'static [(u16, &'static str)] {
                let names: [&[(u16, &'static str)]; COUNT] = [$(<$Type>::ATTRIBUTES),*];
                names.get(self.kind.number()).copied().unwrap_or_default()
            }

            /// Returns the descriptions of the attributes of this kind of expression.
            pub(in crate::nft) fn known(&self) -> &'static [super::declare::AttributeNotes] {
                let known: [&[super::declare::AttributeNotes]; COUNT] = [$(<$Type>::ATTRIBUTE_NOTES),*];
                known.get(self.kind.number()).copied().unwrap_or_default()
            }
        }
    };
}

registry! {
    Bitwise(Bitwise<'a>, BitwiseRef),
    Byteorder(Byteorder, ByteorderRef),
    Cmp(Cmp<'a>, CmpRef),
    Connlimit(Connlimit, ConnlimitRef),
    Counter(Counter, CounterRef),
    Ct(Ct, CtRef),
    Dup(Dup, DupRef),
    Dynset(Dynset<'a>, DynsetRef),
    Exthdr(Exthdr, ExthdrRef),
    Fib(Fib, FibRef),
    FlowOffload(FlowOffload<'a>, FlowOffloadRef),
    Fwd(Fwd, FwdRef),
    Hash(Hash<'a>, HashRef),
    Immediate(Immediate<'a>, ImmediateRef),
    Inner(Inner<'a>, InnerRef),
    Last(Last, LastRef),
    Limit(Limit, LimitRef),
    Log(Log<'a>, LogRef),
    Lookup(Lookup<'a>, LookupRef),
    Masq(Masq, MasqRef),
    Match(Match<'a>, MatchRef),
    Meta(Meta, MetaRef),
    Nat(Nat, NatRef),
    Notrack(Notrack, NotrackRef),
    Numgen(Numgen<'a>, NumgenRef),
    Objref(Objref<'a>, ObjrefRef),
    Osf(Osf, OsfRef),
    Payload(Payload, PayloadRef),
    Queue(Queue, QueueRef),
    Quota(Quota, QuotaRef),
    Range(Range<'a>, RangeRef),
    Redir(Redir, RedirRef),
    Reject(Reject, RejectRef),
    Rt(Rt, RtRef),
    Socket(Socket, SocketRef),
    Synproxy(Synproxy, SynproxyRef),
    Target(Target<'a>, TargetRef),
    Tproxy(Tproxy, TproxyRef),
    Tunnel(Tunnel, TunnelRef),
    Xfrm(Xfrm, XfrmRef),
}

/// One expression of a rule, borrowed: its name and its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ExpressionRef<'a> {
    /// The expression's name in the kernel.
    pub name: &'a BStr,
    /// The encoded attributes.
    pub attributes: &'a [u8],
    /// The complete list element as received.
    pub raw: &'a [u8],
    /// The kind that the name identifies.
    kind: Kind,
}

impl std::fmt::Debug for ExpressionRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExpressionRef")
            .field("name", &self.name)
            .field("attributes", &self.attributes)
            .finish()
    }
}

impl<'a> ExpressionRef<'a> {
    /// Creates an expression with this name and these attributes, without a list element.
    #[must_use]
    pub fn new(name: &'a BStr, attributes: &'a [u8]) -> Self {
        Self {
            name,
            attributes,
            raw: &[],
            kind: KINDS.kind(name),
        }
    }

    /// Parses the expression into its typed form, borrowed: much faster than [`decode`](Self::decode) for many
    /// expressions that need no modification.
    ///
    /// # Errors
    /// [`Malformed`] when an attribute of a known expression is invalid.
    #[inline(always)]
    pub fn view(&self) -> Result<ExpressionView<'a>, Malformed> {
        match viewed::ALL.get(self.kind.number()) {
            Some(view) => view(self.attributes),
            None => Ok(ExpressionView::Opaque(*self)),
        }
    }

    /// Like [`decode`](Self::decode), without a limit of the nesting depth.
    fn decode_at_any_depth(&self) -> Result<Decoded<'a>, Malformed> {
        match decoded::ALL.get(self.kind.number()) {
            Some(decode) => decode(self.attributes),
            None => Ok(Decoded::Opaque(Opaque {
                name: self.name.into(),
                attributes: self.attributes.into(),
            })),
        }
    }

    /// Parses the name and the attributes in the usual form, which the kernel and other tools write; `None` for any
    /// other form.
    #[inline(always)]
    fn as_listed(bytes: &'a [u8], raw: &'a [u8]) -> Option<Self> {
        let (kind, name, behind) = KINDS.find(bytes)?;
        let attributes = AttributeCursor::new(behind).last(NFTA_EXPR_DATA)?;
        if attributes.len() % 4 != 0 {
            return None; // the next element would not directly follow
        }
        Some(Self {
            name,
            attributes,
            raw,
            kind,
        })
    }

    /// Parses the name and the attributes of an expression.
    pub(in crate::nft) fn read(bytes: &'a [u8], raw: &'a [u8]) -> Result<Self, Malformed> {
        match Self::as_listed(bytes, raw) {
            Some(this) => Ok(this),
            None => Self::read_in_any_order(bytes, raw),
        }
    }

    #[cold]
    fn read_in_any_order(bytes: &'a [u8], raw: &'a [u8]) -> Result<Self, Malformed> {
        let mut name = None;
        let mut attributes: &[u8] = &[];
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.kind {
                NFTA_EXPR_NAME => name = Name::parse_payload(attribute.payload),
                NFTA_EXPR_DATA => attributes = attribute.payload,
                _ => {}
            }
        }
        let Some(name) = name else {
            return Err(Malformed {
                what: "expression",
                offset: 0,
                reason: "missing name",
            });
        };
        Ok(Self {
            raw,
            ..Self::new(name, attributes)
        })
    }

    /// Decodes the expression into its typed form; [`Decoded::Opaque`] if there is none.
    ///
    /// # Errors
    /// [`Malformed`] when an attribute of a known expression is invalid, or expressions are nested too deeply (this
    /// crate allows more levels than the kernel).
    pub fn decode(&self) -> Result<Decoded<'a>, Malformed> {
        if self.is_too_deep() {
            return Err(Malformed {
                what: "expression",
                offset: 0,
                reason: "expressions are nested too deeply",
            });
        }
        self.decode_at_any_depth()
    }

    /// Returns `true` if the expression is of this type.
    #[must_use]
    pub fn is<E: Expression>(&self) -> bool {
        self.name.as_bytes() == E::NAME.as_bytes()
    }
}

#[cfg(test)]
mod tests;
