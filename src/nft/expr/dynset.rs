//! `dynset`: adds an element to a set, refreshes it or deletes it when a packet matches.
//!
//! ```text
//! NFTA_DYNSET_SREG_KEY      be32
//! NFTA_DYNSET_SREG_DATA     be32
//! NFTA_DYNSET_OP            be32
//! NFTA_DYNSET_TIMEOUT       be64
//! NFTA_DYNSET_SET_NAME      string
//! NFTA_DYNSET_SET_ID        be32
//! NFTA_DYNSET_EXPR          nested: one expression
//!   NFTA_EXPR_NAME          string
//!   NFTA_EXPR_DATA          nested
//! NFTA_DYNSET_EXPRESSIONS   nested: several
//!   NFTA_LIST_ELEM          nested
//!     …
//! NFTA_DYNSET_FLAGS         be32
//! ```
//!
//! The kernel requires key, operation and name, and lists timeout and flags even if they are 0.

use chainwright_sys::nf_tables::{
    NFT_DYNSET_F_EXPR, NFT_DYNSET_F_INV, NFT_DYNSET_OP_ADD, NFT_DYNSET_OP_DELETE,
    NFT_DYNSET_OP_UPDATE, NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_DYNSET_FLAGS,
    NFTA_DYNSET_OP, NFTA_DYNSET_PAD, NFTA_DYNSET_SET_ID, NFTA_DYNSET_SET_NAME,
    NFTA_DYNSET_SREG_DATA, NFTA_DYNSET_SREG_KEY, NFTA_DYNSET_TIMEOUT,
};

use super::{Decoded, Expression, Expressions, NestedExpression, Register, expression};
use crate::netlink::Malformed;
use crate::nft::Milliseconds;
use crate::nft::declare::{flags, values};
use crate::nft::name::Name;

values! {
    /// The operation on the element (`enum nft_dynset_ops`).
    pub struct DynsetOp: u32 {
        /// Adds the element; an existing one is unchanged.
        ADD = NFT_DYNSET_OP_ADD => "add",
        /// Adds the element; restarts the timeout of an existing one. For sets with timeouts.
        UPDATE = NFT_DYNSET_OP_UPDATE => "update",
        /// Deletes the element.
        DELETE = NFT_DYNSET_OP_DELETE => "delete",
    }
}

flags! {
    /// Flags of the operation (`enum nft_dynset_flags`).
    pub struct DynsetFlags: u32 {
        /// Matches if the element could *not* be added.
        const INV = NFT_DYNSET_F_INV,
        /// `expressions` is present. The kernel then requires the flag, but does not list it.
        const EXPR = NFT_DYNSET_F_EXPR,
    }
}

expression! {
    "dynset"
    /// Changes a set when a packet matches (`enum nft_dynset_attributes`).
    ///
    /// The rule matches if the element exists afterwards, unless one of its expressions doesn't match; a deletion
    /// always matches. Expressions require a set with the flag `NFT_SET_EVAL` (`dynamic` in `nft`); they are evaluated
    /// for this packet, and for each packet for which this rule or a lookup in the set finds the element.
    pub struct Dynset<'a> viewed as DynsetRef,
    listed as [sreg_key, sreg_data, op, set_name, timeout, expr, expressions, flags, set_id] {
        /// Register with the element's key.
        NFTA_DYNSET_SREG_KEY => sreg_key: Register,
        /// Register with the element's data, for maps.
        NFTA_DYNSET_SREG_DATA => sreg_data: Register,
        /// Operation on the element.
        NFTA_DYNSET_OP => op: DynsetOp,
        /// Timeout of the element; the set's if absent or 0.
        NFTA_DYNSET_TIMEOUT => timeout: Milliseconds,
        /// Name of the set.
        NFTA_DYNSET_SET_NAME => set_name: Name<'a>,
        /// ID of the set in the same batch.
        NFTA_DYNSET_SET_ID => set_id: u32,
        /// The only expression of the element: a counter, a limit, a quota, a `connlimit` or a `last`.
        NFTA_DYNSET_EXPR => expr: NestedExpression<'a>,
        /// The expressions of the element, at most two; requires [`DynsetFlags::EXPR`] and excludes `expr`.
        NFTA_DYNSET_EXPRESSIONS => expressions: Expressions<'a>,
        /// Flags.
        NFTA_DYNSET_FLAGS => flags: DynsetFlags,
        _ => NFTA_DYNSET_PAD,
    }
}

impl<'a> Dynset<'a> {
    /// Adds an element with the key in this register to a set.
    pub fn add(set_name: impl Into<Name<'a>>, sreg_key: Register) -> Self {
        Self::new(DynsetOp::ADD, set_name.into(), sreg_key)
    }

    /// Adds an element with the key in this register to a set, or restarts its timeout.
    pub fn update(set_name: impl Into<Name<'a>>, sreg_key: Register) -> Self {
        Self::new(DynsetOp::UPDATE, set_name.into(), sreg_key)
    }

    /// Deletes the element with the key in this register from a set.
    pub fn delete(set_name: impl Into<Name<'a>>, sreg_key: Register) -> Self {
        Self::new(DynsetOp::DELETE, set_name.into(), sreg_key)
    }

    fn new(op: DynsetOp, set_name: Name<'a>, sreg_key: Register) -> Self {
        Self {
            sreg_key: Some(sreg_key),
            op: Some(op),
            set_name: Some(set_name),
            ..Self::default()
        }
    }

    /// Adds one expression to the element.
    #[must_use]
    pub fn with_expression<E: Expression>(self, expression: &E) -> Self {
        Self {
            expr: Some(NestedExpression::new(expression)),
            ..self
        }
    }

    /// Adds several expressions to the element.
    #[must_use]
    pub fn with_expressions(self, expressions: Expressions<'a>) -> Self {
        Self {
            expressions: Some(expressions),
            flags: Some(self.flags.unwrap_or_default() | DynsetFlags::EXPR),
            ..self
        }
    }

    /// Converts a listed expression to the form that the kernel accepts: with [`DynsetFlags::EXPR`] if there are
    /// `expressions`. The kernel does not list that flag, and refuses `expressions` without it (`EINVAL`). It lists a
    /// timeout of 0 if there is none, and refuses any timeout if the set has no timeouts (`EOPNOTSUPP`). So a listed
    /// expression cannot be sent unchanged.
    #[must_use]
    pub fn into_request(mut self) -> Self {
        if self.expressions.is_some() {
            self.flags = Some(self.flags.unwrap_or_default() | DynsetFlags::EXPR);
        }
        if self.timeout == Some(Milliseconds(0)) {
            self.timeout = None;
        }
        self
    }
}

/// Formats like `nft --debug=netlink`, without ID and flags; missing values as 0, and a malformed expression as `[ ]`.
impl std::fmt::Display for Dynset<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let op = self.op.unwrap_or_default().name().unwrap_or("unknown");
        let key = self.sreg_key.unwrap_or_default().0;
        write!(f, "[ dynset {op} reg_key {key} set ")?;
        match &self.set_name {
            Some(name) => write!(f, "{name} ")?,
            None => f.write_str("(null) ")?,
        }
        if let Some(Register(register)) = self.sreg_data {
            write!(f, "sreg_data {register} ")?;
        }
        if let Some(Milliseconds(timeout)) = self.timeout {
            write!(f, "timeout {timeout}ms ")?;
        }
        let mut nested = |expression: Result<Decoded<'_>, Malformed>| match expression {
            Ok(expression) => write!(f, "expr {expression} "),
            Err(_) => f.write_str("expr [ ] "),
        };
        if let Some(expression) = &self.expr {
            nested(expression.decode())?;
        }
        if let Some(expressions) = &self.expressions {
            for expression in expressions.iter() {
                nested(expression.and_then(|expression| expression.decode()))?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;
    use crate::nft::declare::Field;
    use crate::nft::expr::tests::cases::assert_built;
    use crate::nft::expr::{Connlimit, Counter, Limit};

    #[test]
    fn constructors() {
        let with_id = |set_id, dynset| Dynset {
            set_id: Some(set_id),
            ..dynset
        };
        let timeout = Some(Milliseconds(30_000));
        let add = || with_id(2, Dynset::add("s2", Register::R1));
        let mut both = Expressions::new();
        both.push(&Counter::default())
            .push(&Limit::packets(10, 1, 5));
        let unlisted = Dynset::new(DynsetOp(3), "x".into(), Register::default());
        for (title, built) in [
            (
                "of [ dynset add reg_key 1 set s ]",
                Dynset::add("s", Register::R1),
            ),
            ("of [ dynset unknown reg_key 0 set x ]", unlisted),
            (
                "add @s { ip saddr }",
                with_id(1, Dynset::add("s", Register::R1)),
            ),
            (
                "update @s { ip saddr timeout 30s }",
                Dynset {
                    timeout,
                    ..with_id(1, Dynset::update("s", Register::R1))
                },
            ),
            (
                "delete @s { ip saddr }",
                with_id(1, Dynset::delete("s", Register::R1)),
            ),
            (
                "add @s2 { ip saddr ct count over 3 }",
                add().with_expression(&Connlimit::over(3)),
            ),
            (
                "add @s2 { ip saddr counter }",
                add().with_expression(&Counter::default()),
            ),
            (
                "add @s2 { ip saddr counter limit rate 10/second }",
                add().with_expressions(both),
            ),
        ] {
            assert_built(title, built);
        }
    }

    /// This crate's own output for an expression whose attribute is too short.
    #[test]
    fn a_malformed_expression_is_printed_as_none() {
        let short = hex("0e000100 636f6e6e 6c696d69 74000000 0c000280 06000100 00000000");
        let malformed = Dynset {
            expr: Field::decode(&short),
            ..Dynset::add("s", Register::R1)
        };
        assert!(malformed.expr.is_some());
        assert_eq!(
            malformed.to_string(),
            "[ dynset add reg_key 1 set s expr [ ] ]"
        );
    }
}
