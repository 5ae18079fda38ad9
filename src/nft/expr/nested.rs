//! An expression inside an attribute of another one, or of a set or element.
//!
//! ```text
//! the attribute          nested
//!   NFTA_EXPR_NAME       string
//!   NFTA_EXPR_DATA       nested: the expression's attributes
//! ```

use bstr::BStr;
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::NFTA_EXPR_NAME;

use super::{Decoded, Dynset, Expression, ExpressionRef, Inner, write_data};
use crate::netlink::{Malformed, MessageError, MessageWriter};
use crate::nft::declare::{Field, Padded, nested_field};
use crate::nft::name::Bytes;

/// Maximum nesting depth of expressions: the kernel allows two.
pub(crate) const MAX_DEPTH: usize = 8;

impl ExpressionRef<'_> {
    /// Returns `true` if expressions are nested deeper, from this one on, than in any ruleset: reading is recursive.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.is_deeper_than(MAX_DEPTH)
    }

    fn is_deeper_than(&self, depth: usize) -> bool {
        if !(self.is::<Dynset<'_>>() || self.is::<Inner<'_>>()) {
            return false;
        }
        let Some(depth) = depth.checked_sub(1) else {
            return true;
        };
        let (one, list) = match self.decode_at_any_depth() {
            Ok(Decoded::Dynset(dynset)) => (dynset.expr, dynset.expressions),
            Ok(Decoded::Inner(inner)) => (inner.expr, None),
            _ => return false,
        };
        let deeper = |expression: ExpressionRef<'_>| expression.is_deeper_than(depth);
        one.is_some_and(|one| one.get().is_ok_and(deeper))
            || list.is_some_and(|list| list.iter().map_while(Result::ok).any(deeper))
    }
}

/// A single expression in an attribute, encoded.
#[derive(Clone, PartialEq, Eq)]
pub struct NestedExpression<'a> {
    bytes: Bytes<'a>,
    error: Option<Box<MessageError>>,
}

impl<'a> NestedExpression<'a> {
    /// Encodes this expression.
    #[must_use]
    pub fn new<E: Expression>(expression: &E) -> NestedExpression<'static> {
        Self::encoded(E::NAME.into(), |writer| write_data(expression, writer))
    }

    /// Encodes a typed expression of any kind.
    #[must_use]
    pub fn of_decoded(expression: &Decoded<'_>) -> NestedExpression<'static> {
        Self::encoded(expression.name(), |writer| expression.write_data(writer))
    }

    /// Encodes a typed expression as the kernel lists it.
    pub(in crate::nft) fn listed(expression: &Decoded<'_>) -> NestedExpression<'static> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes).without_nested_flag();
        expression.write_listed(&mut writer);
        let error = writer.finish_bare().err().map(Box::new);
        NestedExpression {
            bytes: bytes.into(),
            error,
        }
    }

    fn encoded(
        name: &BStr,
        data: impl FnOnce(&mut MessageWriter<'_>),
    ) -> NestedExpression<'static> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::bare(&mut bytes);
        writer.string(NFTA_EXPR_NAME, name);
        data(&mut writer);
        let error = writer.finish_bare().err().map(Box::new);
        NestedExpression {
            bytes: bytes.into(),
            error,
        }
    }

    /// Parses the expression.
    ///
    /// # Errors
    /// [`Malformed`] when it has no name.
    pub fn get(&self) -> Result<ExpressionRef<'_>, Malformed> {
        ExpressionRef::read(&self.bytes, &[])
    }

    /// Decodes the expression into its typed form.
    ///
    /// # Errors
    /// [`Malformed`] when it has no name or an attribute is invalid.
    pub fn decode(&self) -> Result<Decoded<'_>, Malformed> {
        self.get()?.decode()
    }
}

impl std::fmt::Debug for NestedExpression<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.decode().fmt(f)
    }
}

impl<'a> Field<'a> for NestedExpression<'a> {
    type Static = NestedExpression<'static>;
    nested_field!('a, |bytes| {
        ExpressionRef::read(bytes, &[]).ok().map(|_| NestedExpression {
            bytes: match Padded::Expression.without_padding(bytes) {
                None => bytes.into(),
                Some(bytes) => bytes.into(),
            },
            error: None,
        })
    });

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Some(error) = &self.error {
            writer.fail(error);
        }
        writer.bytes(kind | NLA_F_NESTED, &self.bytes);
    }

    fn into_static(self) -> NestedExpression<'static> {
        NestedExpression {
            bytes: self.bytes.into_owned(),
            error: self.error,
        }
    }

    fn normalize(&mut self) {
        if let Ok(mut expression) = self.decode() {
            expression.normalize();
            *self = Self::listed(&expression);
        }
    }
}

#[cfg(feature = "serde")]
mod serial {
    use std::cell::Cell;

    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::{Decoded, MAX_DEPTH, NestedExpression};
    use crate::netlink::Attributes;
    use crate::nft::expr::Expressions;

    thread_local! {
        /// Number of expressions around the one that is being deserialized. A format may have no limit of its own.
        static DEPTH: Cell<usize> = const { Cell::new(0) };
    }

    /// Deserializes the contents of an expression or list.
    fn deeper<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        struct Back(usize);
        impl Drop for Back {
            fn drop(&mut self) {
                DEPTH.set(self.0);
            }
        }
        let depth = Back(DEPTH.get());
        if depth.0 > MAX_DEPTH {
            return Err(de::Error::custom("expressions are nested too deeply"));
        }
        DEPTH.set(depth.0 + 1);
        T::deserialize(deserializer)
    }

    impl Serialize for NestedExpression<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if let Some(error) = &self.error {
                return Err(S::Error::custom(error));
            }
            self.decode()
                .map_err(S::Error::custom)?
                .serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for NestedExpression<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let decoded: Decoded<'_> = deeper(deserializer)?;
            Ok(NestedExpression::of_decoded(&decoded))
        }
    }

    impl Serialize for Expressions<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if let Some(error) = &self.error {
                return Err(S::Error::custom(error));
            }
            let decoded: Result<Vec<_>, _> =
                self.iter().map(|e| e.and_then(|e| e.decode())).collect();
            let decoded = decoded.map_err(S::Error::custom)?;
            // The iterator would skip list elements of future kernels that are not expressions.
            if decoded.len() != Attributes::new(self.as_bytes()).count() {
                return Err(S::Error::custom(
                    "the list contains something other than expressions",
                ));
            }
            serializer.collect_seq(decoded)
        }
    }

    impl<'de> Deserialize<'de> for Expressions<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let mut expressions = Expressions::new();
            for expression in deeper::<Vec<Decoded<'_>>, _>(deserializer)? {
                expressions.push_decoded(&expression);
            }
            Ok(expressions)
        }
    }
}
