//! Rules: lists of expressions, in a chain.

use std::fmt::{self, Write};

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DESTROYRULE, NFT_MSG_GETRULE, NFT_MSG_NEWRULE, NFTA_RULE_CHAIN,
    NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT, NFTA_RULE_COMPAT_FLAGS, NFTA_RULE_COMPAT_PROTO,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_ID, NFTA_RULE_PAD, NFTA_RULE_POSITION,
    NFTA_RULE_POSITION_ID, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
};

use super::Family;
use super::declare::{attributes, object};
use super::expr::{Expression, ExpressionIter, Expressions};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::commented;
use crate::escape::Escaped;
use crate::netlink::Malformed;

attributes! {
    /// What the kernel must know to check xtables extensions (`match` and `target` expressions) of
    /// a rule: the layer-4 protocol that the rule is limited to. It is written with the rule and
    /// never listed. `enum nft_rule_compat_attributes`.
    pub struct Compat {
        /// `IPPROTO_*`.
        NFTA_RULE_COMPAT_PROTO => protocol: u32,
        /// `NFT_RULE_COMPAT_F_INV` when the rule is for all protocols but that one.
        NFTA_RULE_COMPAT_FLAGS => flags: u32,
    }
}

/// Whether it takes the kernel less to delete all rules of a chain at once and to make so many, than to look for rules by
/// their handles if it passes so many rules in the chain's list on the way.
///
/// In a chain of 50,000 rules Linux 6.18 passes one in some 25 nanoseconds, most of them a miss of the cache, and deletes
/// one and makes another in some 20 microseconds. Up to 5 million rules are passed in any case, so that rules which can
/// stay do so.
pub(crate) const fn is_cheaper_anew(passed: usize, rules: usize) -> bool {
    const CHEAP: usize = 5_000_000;
    const A_RULE: usize = 800;
    passed > CHEAP.saturating_add(A_RULE.saturating_mul(rules))
}

object! {
    /// A rule, to be written: `enum nft_rule_attributes`.
    pub struct Rule viewed as RuleRef, "a rule",
    written as [
        table, chain, chain_id, handle, expressions, compat, position, userdata, id, position_id
    ] {
        /// Name of the table that the rule is in.
        NFTA_RULE_TABLE => table: Name<'a> [required, table],
        /// Name of the chain that the rule is in.
        NFTA_RULE_CHAIN => chain: Name<'a> [required, chain],
        /// Handle, given by the kernel; names the rule to be replaced or deleted.
        NFTA_RULE_HANDLE => handle: u64 [required, handle],
        /// Handle of the rule that this one goes behind (`add`) or before (`insert`); in a
        /// listing, of the rule before it, and so not taken over into a builder.
        NFTA_RULE_POSITION => position: u64 [listed],
        /// The expressions.
        NFTA_RULE_EXPRESSIONS => expressions: Expressions<'a>,
        /// Protocol for the checks of xtables extensions; written only.
        NFTA_RULE_COMPAT => compat: Compat [written],
        /// Data that user space keeps with the rule, opaque to the kernel.
        NFTA_RULE_USERDATA => userdata: Bytes<'a> [userdata],
        /// Number by which operations of the same batch may refer to the rule.
        NFTA_RULE_ID => id: u32 [written, identity],
        /// The position as such a number.
        NFTA_RULE_POSITION_ID => position_id: u32 [written],
        /// The chain as the number that it was given in the same batch.
        NFTA_RULE_CHAIN_ID => chain_id: u32 [written],
        _ => NFTA_RULE_PAD,
    }
}

commented!(Rule as RuleRef, RULE_COMMENT);

impl<'a> Rule<'a> {
    /// A rule without expressions, for this chain.
    pub fn new(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            chain: Some(chain.into()),
            ..Self::default()
        }
    }

    /// Appends an expression.
    pub fn push(&mut self, expression: &impl Expression) -> &mut Self {
        self.expressions.get_or_insert_default().push(expression);
        self
    }

    /// The same rule with one more expression.
    #[must_use]
    pub fn with(mut self, expression: &impl Expression) -> Self {
        self.push(expression);
        self
    }

    /// Takes all expressions away and keeps the memory, so that one `Rule` can serve for many.
    pub fn clear(&mut self) -> &mut Self {
        self.expressions.get_or_insert_default().clear();
        self
    }
}

/// What a rule's bytecode block is printed from.
struct Bytecode<'r> {
    family: Family,
    table: Option<&'r BStr>,
    chain: Option<&'r BStr>,
    handle: Option<u64>,
    position: Option<u64>,
    id: Option<u32>,
    position_id: Option<u32>,
    expressions: Option<ExpressionIter<'r>>,
    userdata: &'r [u8],
}

impl fmt::Display for Bytecode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(family_name(self.family.0.into()))?;
        for name in [self.table, self.chain].into_iter().flatten() {
            write!(f, " {}", Escaped(name))?;
        }
        for number in [self.handle, self.position].into_iter().flatten() {
            write!(f, " {number}")?;
        }
        for number in [self.id, self.position_id].into_iter().flatten() {
            write!(f, " {number}")?;
        }
        f.write_str("\n")?;
        for expression in self.expressions.clone().into_iter().flatten() {
            let (name, malformed) = match expression {
                Ok(expression) => match expression.decode() {
                    Ok(decoded) => {
                        writeln!(f, "  {decoded}")?;
                        continue;
                    }
                    Err(malformed) => (expression.name, malformed),
                },
                Err(malformed) => (BStr::new("expression"), malformed),
            };
            let Malformed {
                what,
                offset,
                reason,
            } = malformed;
            writeln!(
                f,
                "  [ {name} malformed: {what} at byte {offset}: {reason} ]"
            )?;
        }
        if !self.userdata.is_empty() {
            write!(f, "  userdata = {{ {} }}", Userdata(self.userdata))?;
        }
        f.write_str("\n")
    }
}

/// User data as `nft --debug=netlink` prints it, of rules and of elements: printable characters as
/// they are, all other bytes as `\x` and two hexadecimal digits.
pub(super) struct Userdata<'a>(pub(super) &'a [u8]);

impl fmt::Display for Userdata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| match byte {
            b' '..=b'~' => f.write_char(byte.into()),
            _ => write!(f, "\\x{byte:02x}"),
        })
    }
}

/// A family's name in the output of `nft --debug=netlink`.
pub(super) fn family_name(family: u32) -> &'static str {
    match u8::try_from(family).map(Family) {
        Ok(family) if family != Family::UNSPEC => family.name().unwrap_or("unknown"),
        _ => "unknown",
    }
}

/// The block that `nft --debug=netlink list ruleset` prints for the rule (nft 1.0.6, libnftnl
/// 1.2.4): family, table, chain, handle and position, then a line for each expression, then the
/// user data or an empty line. What is malformed is said in its place.
impl fmt::Display for RuleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytecode {
            family: self.family(),
            table: Some(self.table()),
            chain: Some(self.chain()),
            handle: Some(self.handle()),
            position: self.position(),
            id: self.id(),
            position_id: self.position_id(),
            expressions: self.expressions(),
            userdata: self.userdata().unwrap_or_default(),
        }
        .fmt(f)
    }
}

/// As [`RuleRef`]'s; what is not set is left out of the first line.
impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytecode {
            family: self.family,
            table: self.table.as_deref(),
            chain: self.chain.as_deref(),
            handle: self.handle,
            position: self.position,
            id: self.id,
            position_id: self.position_id,
            expressions: self.expressions.as_ref().map(Expressions::iter),
            userdata: self.userdata.as_deref().unwrap_or_default(),
        }
        .fmt(f)
    }
}

written!(
    Rule,
    "rule",
    [NFT_MSG_NEWRULE, NFT_MSG_GETRULE, NFT_MSG_DELRULE, NFT_MSG_DESTROYRULE], ordered: true,
    identity: |this, writer| {
        if this.handle.is_none() && this.id.is_none() {
            // Without either it would stand for all rules of the chain: handle 0 stands for none.
            writer.be64(NFTA_RULE_HANDLE, 0);
        }
    }
);

listed!(Rule as RuleRef by RuleFilter, "list rules", BY_KERNEL = true);

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::{Counter, Immediate};

    /// The bytes of these hexadecimal digits.
    fn hex(dump: &str) -> Vec<u8> {
        let digits: Vec<u8> = dump
            .chars()
            .filter_map(|c| c.to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    /// Listed by Linux 6.18 (x86-64) after nft 1.0.6:
    /// `add rule ip t c ip saddr 10.0.0.1 counter packets 1 bytes 2 jump d`, and
    /// `add rule ip t c tcp dport 22 accept comment "ssh: é"`; from the family on.
    const LISTED: [&str; 2] = [
        "
            02000006 06000100 74000000 06000200 63000000 0c000300 00000000 00000003
            c8000400 34000100 0c000100 7061796c 6f616400 24000200 08000100 00000001
            08000200 00000001 08000300 0000000c 08000400 00000004 2c000100 08000100
            636d7000 20000200 08000100 00000001 08000200 00000000 0c000300 08000100
            0a000001 2c000100 0c000100 636f756e 74657200 1c000200 0c000100 00000000
            00000002 0c000200 00000000 00000001 38000100 0e000100 696d6d65 64696174
            65000000 24000200 08000100 00000000 18000200 14000200 08000100 fffffffd
            06000200 64000000
        ",
        "
            02000006 06000100 74000000 06000200 63000000 0c000300 00000000 00000004
            0c000600 00000000 00000003 e4000400 24000100 09000100 6d657461 00000000
            14000200 08000200 00000010 08000100 00000001 2c000100 08000100 636d7000
            20000200 08000100 00000001 08000200 00000000 0c000300 05000100 06000000
            34000100 0c000100 7061796c 6f616400 24000200 08000100 00000001 08000200
            00000002 08000300 00000002 08000400 00000002 2c000100 08000100 636d7000
            20000200 08000100 00000001 08000200 00000000 0c000300 06000100 00160000
            30000100 0e000100 696d6d65 64696174 65000000 1c000200 08000100 00000000
            10000200 0c000200 08000100 00000001 0e000700 00087373 683a20c3 a9000000
        ",
    ];

    /// What `nft --debug=netlink list ruleset` printed for them.
    #[test]
    fn bytecode() {
        let printed = [
            "ip t c 3
  [ payload load 4b @ network header + 12 => reg 1 ]
  [ cmp eq reg 1 0x0100000a ]
  [ counter pkts 1 bytes 2 ]
  [ immediate reg 0 jump -> d ]

",
            "ip t c 4 3
  [ meta load l4proto => reg 1 ]
  [ cmp eq reg 1 0x00000006 ]
  [ payload load 2b @ transport header + 2 => reg 1 ]
  [ cmp eq reg 1 0x00001600 ]
  [ immediate reg 0 accept ]
  userdata = { \\x00\\x08ssh: \\xc3\\xa9\\x00 }
",
        ];
        for (listed, printed) in LISTED.map(hex).iter().zip(printed) {
            let rule = RuleRef::of_payload(listed).unwrap();
            assert_eq!(rule.to_string(), printed);
            // A builder does not take the position over.
            let position = rule.position();
            let builder = Rule {
                position,
                ..rule.to_builder()
            };
            assert_eq!(builder.to_string(), printed);
        }
    }

    /// Printed by libnftnl 1.2.4, with the line's end that nft adds, from attributes made by hand.
    #[test]
    fn bytecode_of_parts() {
        assert_eq!(Rule::new(Family::IP6, "t", "c").to_string(), "ip6 t c\n\n");
        let rule = Rule {
            handle: Some(5),
            position: Some(9),
            id: Some(7),
            userdata: Some(b"abc\x7f\xff\n\\'".into()),
            ..Rule::new(Family::NETDEV, "t", "c")
        };
        assert_eq!(
            rule.to_string(),
            "netdev t c 5 9 7\n  userdata = { abc\\x7f\\xff\\x0a\\' }\n"
        );
        // An empty one is none.
        let rule = Rule {
            userdata: Some(b"".into()),
            ..Rule::default()
        };
        assert_eq!(rule.to_string(), "unknown\n\n");
        for (family, name) in [
            (0, "unknown"),
            (1, "inet"),
            (2, "ip"),
            (3, "arp"),
            (5, "netdev"),
            (7, "bridge"),
            (10, "ip6"),
            (12, "unknown"),
            (258, "unknown"),
        ] {
            assert_eq!(family_name(family), name);
        }
    }

    #[test]
    fn what_is_opaque_or_malformed_is_shown() {
        let mut bytes = Expressions::new();
        bytes.push(&Counter::new(1, 2)).push(&Immediate::accept());
        let bytes = bytes.as_bytes();
        let show = |expressions: &[u8]| {
            let rule = Rule {
                expressions: crate::nft::declare::Field::decode(expressions),
                ..Rule::new(Family::IP, "t", "c")
            };
            rule.to_string()
        };
        let good = "ip t c\n  [ counter pkts 1 bytes 2 ]\n  [ immediate reg 0 accept ]\n\n";
        assert_eq!(show(bytes), good);

        // A name that nobody knows: `counter` with another first letter.
        let mut opaque = bytes.to_vec();
        opaque[8] = b'x';
        assert_eq!(
            show(&opaque),
            "ip t c\n  [ xounter 0x0c00010000000000000000020c0002000000000000000001 ]\n  \
             [ immediate reg 0 accept ]\n\n"
        );

        // A number of bytes that is too short, in the first attribute of the counter.
        let counter = hex("
            20000180 0c000100 636f756e 74657200 10000280 08000100 00000000 04000200
        ");
        assert_eq!(
            show(&[&counter, bytes].concat()),
            "ip t c\n  [ counter malformed: NFTA_COUNTER_BYTES at byte 0: \
             the payload is not a value of its type ]\n  [ counter pkts 1 bytes 2 ]\n  \
             [ immediate reg 0 accept ]\n\n"
        );

        // Cut short, the list says so where it ends.
        let cut = show(&bytes[..bytes.len() - 4]);
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!(lines[..2], ["ip t c", "  [ counter pkts 1 bytes 2 ]"]);
        assert!(lines[2].starts_with("  [ expression malformed: "), "{cut}");
        assert_eq!(lines[3..], [""]);
    }
}
