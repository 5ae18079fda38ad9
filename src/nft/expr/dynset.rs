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
    /// for this packet, and for each packet for which this rule or a look-up in the set finds the element.
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
    use crate::nft::declare::Field;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed, hex,
    };
    use crate::nft::expr::{Connlimit, Counter, Last, Limit};

    #[test]
    fn layout() {
        let layout = [
            (4, "NFTA_DYNSET_SREG_KEY", Wire::Be32),
            (5, "NFTA_DYNSET_SREG_DATA", Wire::Be32),
            (3, "NFTA_DYNSET_OP", Wire::Be32),
            (6, "NFTA_DYNSET_TIMEOUT", Wire::Be64),
            (1, "NFTA_DYNSET_SET_NAME", Wire::Text),
            (2, "NFTA_DYNSET_SET_ID", Wire::Be32),
            (7, "NFTA_DYNSET_EXPR", Wire::Expression),
            (10, "NFTA_DYNSET_EXPRESSIONS", Wire::Expressions),
            (9, "NFTA_DYNSET_FLAGS", Wire::Be32),
        ];
        assert_layout::<Dynset<'_>>(Dynset::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c update @m { ip saddr timeout 10s : tcp dport }`, after a map
    /// `m { type ipv4_addr : inet_service; size 100; flags dynamic,timeout; timeout 1m; }`.
    #[test]
    fn an_element_of_a_map() {
        assert_element(
            Decoded::Dynset,
            Dynset {
                sreg_key: Some(Register::R1),
                sreg_data: Some(Register::R2),
                op: Some(DynsetOp::UPDATE),
                timeout: Some(Milliseconds(10_000)),
                set_name: Some("m".into()),
                set_id: Some(3),
                ..Default::default()
            },
            "
                48000180                    ; NFTA_LIST_ELEM
                0b000100 64796e73 65740000  ;   NFTA_EXPR_NAME: dynset
                38000280                    ;   NFTA_EXPR_DATA
                08000400 00000001           ;     NFTA_DYNSET_SREG_KEY
                08000500 00000002           ;     NFTA_DYNSET_SREG_DATA
                08000300 00000001           ;     NFTA_DYNSET_OP
                0c000600 00000000 00002710  ;     NFTA_DYNSET_TIMEOUT
                06000100 6d000000           ;     NFTA_DYNSET_SET_NAME
                08000200 00000003           ;     NFTA_DYNSET_SET_ID
            ",
        );
    }

    /// nft 1.0.6: `add @s { ip saddr }`, `update @s { ip saddr timeout 30s }` and
    /// `delete @s { ip saddr }`, after a set
    /// `s { type ipv4_addr; size 100; flags dynamic,timeout; timeout 1m; }`.
    #[test]
    fn operations() {
        assert_attributes(
            Decoded::Dynset,
            Dynset {
                set_id: Some(1),
                ..Dynset::add("s", Register::R1)
            },
            "08000400 00000001 08000300 00000000 06000100 73000000 08000200 00000001",
        );
        assert_attributes(
            Decoded::Dynset,
            Dynset {
                timeout: Some(Milliseconds(30_000)),
                set_id: Some(1),
                ..Dynset::update("s", Register::R1)
            },
            "
                08000400 00000001 08000300 00000001 0c000600 00000000 00007530
                06000100 73000000 08000200 00000001
            ",
        );
        assert_attributes(
            Decoded::Dynset,
            Dynset {
                set_id: Some(1),
                ..Dynset::delete("s", Register::R1)
            },
            "08000400 00000001 08000300 00000002 06000100 73000000 08000200 00000001",
        );
    }

    /// nft 1.0.6: `add @s2 { ip saddr ct count over 3 }`, `add @s2 { ip saddr counter }` and
    /// `add @s2 { ip saddr counter limit rate 10/second }`, after a set
    /// `s2 { type ipv4_addr; size 100; flags dynamic; }`.
    #[test]
    fn with_expressions() {
        let add = || Dynset {
            set_id: Some(2),
            ..Dynset::add("s2", Register::R1)
        };
        assert_attributes(
            Decoded::Dynset,
            add().with_expression(&Connlimit::over(3)),
            "
                08000400 00000001 08000300 00000000 07000100 73320000 08000200 00000002
                28000780 0e000100 636f6e6e 6c696d69 74000000 14000280 08000100 00000003
                08000200 00000001
            ",
        );
        assert_attributes(
            Decoded::Dynset,
            add().with_expression(&Counter::default()),
            "
                08000400 00000001 08000300 00000000 07000100 73320000 08000200 00000002
                14000780 0c000100 636f756e 74657200 04000280
            ",
        );
        let mut both = Expressions::new();
        both.push(&Counter::default())
            .push(&Limit::packets(10, 1, 5));
        let both = add().with_expressions(both);
        assert_eq!(both.flags, Some(DynsetFlags::EXPR));
        assert_attributes(
            Decoded::Dynset,
            both,
            "
                08000400 00000001 08000300 00000000 07000100 73320000 08000200 00000002
                5c000a80 14000180 0c000100 636f756e 74657200 04000280 44000180 0a000100
                6c696d69 74000000 34000280 0c000100 00000000 0000000a 0c000200 00000000
                00000001 08000300 00000005 08000400 00000000 08000500 00000000 08000900
                00000002
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c update @m { ip saddr timeout 10s : tcp dport }` and
    /// `… delete @s { ip saddr }`; and after `… add @s2 { ip saddr }` was sent with `INV`, for which nft 1.0.6 has no
    /// syntax.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Dynset,
            Dynset {
                sreg_data: Some(Register::R2),
                timeout: Some(Milliseconds(10_000)),
                flags: Some(DynsetFlags::empty()),
                ..Dynset::update("m", Register::R1)
            },
            "
                48000100 0b000100 64796e73 65740000 38000200 08000400 00000001 08000500
                00000002 08000300 00000001 06000100 6d000000 0c000600 00000000 00002710
                08000900 00000000
            ",
        );
        assert_listed(
            Decoded::Dynset,
            Dynset {
                timeout: Some(Milliseconds(0)),
                flags: Some(DynsetFlags::empty()),
                ..Dynset::delete("s", Register::R1)
            },
            "
                40000100 0b000100 64796e73 65740000 30000200 08000400 00000001 08000300
                00000002 06000100 73000000 0c000600 00000000 00000000 08000900 00000000
            ",
        );
        assert_listed(
            Decoded::Dynset,
            Dynset {
                timeout: Some(Milliseconds(0)),
                flags: Some(DynsetFlags::INV),
                ..Dynset::add("s2", Register::R1)
            },
            "
                40000100 0b000100 64796e73 65740000 30000200 08000400 00000001 08000300
                00000000 07000100 73320000 0c000600 00000000 00000000 08000900 00000001
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c add @s2 { ip saddr ct count over 3 }` and
    /// `… add @s2 { ip saddr counter limit rate 10/second }`: inside, too, without `NLA_F_NESTED`. Linux 6.18 refuses
    /// the latter in the form in which it listed it.
    #[test]
    fn listed_with_expressions() {
        let listed = || Dynset {
            timeout: Some(Milliseconds(0)),
            flags: Some(DynsetFlags::empty()),
            ..Dynset::add("s2", Register::R1)
        };
        let one = hex("
            0e000100 636f6e6e 6c696d69 74000000 14000200 08000100 00000003 08000200
            00000001
        ");
        let one: NestedExpression<'_> = Field::decode(&one).unwrap();
        assert_eq!(one.decode(), Ok(Decoded::Connlimit(Connlimit::over(3))));
        let one = Dynset {
            expr: Some(one),
            ..listed()
        };
        let request = Dynset {
            timeout: None,
            ..one.clone()
        };
        assert_eq!(one.clone().into_request(), request);
        assert_listed(
            Decoded::Dynset,
            one,
            "
                68000100 0b000100 64796e73 65740000 58000200 08000400 00000001 08000300
                00000000 07000100 73320000 0c000600 00000000 00000000 28000700 0e000100
                636f6e6e 6c696d69 74000000 14000200 08000100 00000003 08000200 00000001
                08000900 00000000
            ",
        );

        let two = hex("
            2c000100 0c000100 636f756e 74657200 1c000200 0c000100 00000000 00000000
            0c000200 00000000 00000000 44000100 0a000100 6c696d69 74000000 34000200
            0c000100 00000000 0000000a 0c000200 00000000 00000001 08000300 00000005
            08000400 00000000 08000500 00000000
        ");
        let two: Expressions<'_> = Field::decode(&two).unwrap();
        let decoded: Vec<_> = two.iter().map(|e| e.unwrap().decode().unwrap()).collect();
        assert_eq!(
            decoded,
            [
                Decoded::Counter(Counter::new(0, 0)),
                Decoded::Limit(Limit::packets(10, 1, 5)),
            ]
        );
        let two = Dynset {
            expressions: Some(two.clone()),
            ..listed()
        };
        assert_eq!(
            two.clone().into_request(),
            Dynset {
                flags: Some(DynsetFlags::EXPR),
                timeout: None,
                ..two.clone()
            }
        );
        assert_listed(
            Decoded::Dynset,
            two.clone(),
            "
                b4000100 0b000100 64796e73 65740000 a4000200 08000400 00000001 08000300
                00000000 07000100 73320000 0c000600 00000000 00000000 74000a00 2c000100
                0c000100 636f756e 74657200 1c000200 0c000100 00000000 00000000 0c000200
                00000000 00000000 44000100 0a000100 6c696d69 74000000 34000200 0c000100
                00000000 0000000a 0c000200 00000000 00000001 08000300 00000005 08000400
                00000000 08000500 00000000 08000900 00000000
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them, and after handmade attributes with `add` of a counter and a `last`.
    #[test]
    fn bytecode() {
        let add = || Dynset {
            timeout: Some(Milliseconds(0)),
            flags: Some(DynsetFlags::empty()),
            ..Dynset::add("s2", Register::R1)
        };
        let mut both = Expressions::new();
        both.push(&Counter::new(0, 0))
            .push(&Limit::packets(10, 1, 5));
        let mut last = Expressions::new();
        last.push(&Counter::new(0, 0)).push(&Last::never());
        for (expression, line) in [
            (
                Dynset {
                    sreg_data: Some(Register::R2),
                    timeout: Some(Milliseconds(10_000)),
                    ..Dynset::update("m", Register::R1)
                },
                "[ dynset update reg_key 1 set m sreg_data 2 timeout 10000ms ]",
            ),
            (
                Dynset {
                    timeout: Some(Milliseconds(0)),
                    ..Dynset::delete("s", Register::R1)
                },
                "[ dynset delete reg_key 1 set s timeout 0ms ]",
            ),
            (add(), "[ dynset add reg_key 1 set s2 timeout 0ms ]"),
            (
                add().with_expression(&Connlimit::over(3)),
                "[ dynset add reg_key 1 set s2 timeout 0ms expr [ connlimit count 3 flags 1 ] ]",
            ),
            (
                add().with_expressions(both),
                "[ dynset add reg_key 1 set s2 timeout 0ms expr [ counter pkts 0 bytes 0 ] \
                 expr [ limit rate 10/second burst 5 type packets flags 0x0 ] ]",
            ),
            (
                add().with_expressions(last),
                "[ dynset add reg_key 1 set s2 timeout 0ms expr [ counter pkts 0 bytes 0 ] \
                 expr [ last never ] ]",
            ),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }

    /// Attributes that the kernel does not list, as libnftnl 1.2.4 prints them.
    #[test]
    fn bytecode_of_unlisted_attributes() {
        for (expression, line) in [
            (
                Dynset::add("s", Register::R1),
                "[ dynset add reg_key 1 set s ]",
            ),
            (
                Dynset::new(DynsetOp(3), "x".into(), Register::default()),
                "[ dynset unknown reg_key 0 set x ]",
            ),
            (Dynset::default(), "[ dynset add reg_key 0 set (null) ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
        // This crate's own output for an expression whose attribute is too short.
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
