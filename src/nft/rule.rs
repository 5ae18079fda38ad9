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
    /// Data for the kernel's checks of a rule's xtables extensions (`match` and `target` expressions): the layer-4
    /// protocol that the rule is limited to. It is sent with the rule and never listed.
    /// `enum nft_rule_compat_attributes`.
    pub struct Compat {
        /// `IPPROTO_*`.
        NFTA_RULE_COMPAT_PROTO => protocol: u32,
        /// `NFT_RULE_COMPAT_F_INV` if the rule is for all other protocols.
        NFTA_RULE_COMPAT_FLAGS => flags: u32,
    }
}

/// Returns `true` if deleting all rules of a chain and adding `rules` rules again is cheaper for the kernel than
/// finding rules by handle, which passes `passed` rules in the chain's list.
///
/// In a chain of 50,000 rules Linux 6.18 passes a rule in about 25 nanoseconds, mostly a cache miss, and deletes one
/// and adds another in about 20 microseconds. Passing up to 5 million rules is always considered cheaper, so that
/// unchanged rules can stay.
pub(crate) const fn is_cheaper_to_recreate(passed: usize, rules: usize) -> bool {
    const ALWAYS_CHEAP: usize = 5_000_000;
    const PASSES_PER_RULE: usize = 800;
    passed > ALWAYS_CHEAP.saturating_add(PASSES_PER_RULE.saturating_mul(rules))
}

object! {
    /// A rule to be sent to the kernel: `enum nft_rule_attributes`.
    pub struct Rule viewed as RuleRef, "a rule",
    written as [
        table, chain, chain_id, handle, expressions, compat, position, userdata, id, position_id
    ] {
        /// Name of the rule's table.
        NFTA_RULE_TABLE => table: Name<'a> [required, table],
        /// Name of the rule's chain.
        NFTA_RULE_CHAIN => chain: Name<'a> [required, chain],
        /// Handle, assigned by the kernel; identifies the rule to be replaced or deleted.
        NFTA_RULE_HANDLE => handle: u64 [required, handle],
        /// Handle of the rule after (`add`) or before (`insert`) which this one is placed; in a listing, that of the
        /// preceding rule, which builders made from a view omit.
        NFTA_RULE_POSITION => position: u64 [dump_form],
        /// The expressions.
        NFTA_RULE_EXPRESSIONS => expressions: Expressions<'a>,
        /// Protocol for the checks of xtables extensions; only sent to the kernel.
        NFTA_RULE_COMPAT => compat: Compat [request_only],
        /// Data stored by user space, opaque to the kernel.
        NFTA_RULE_USERDATA => userdata: Bytes<'a> [userdata],
        /// Number by which operations of the same batch can refer to the rule.
        NFTA_RULE_ID => id: u32 [request_only, identity],
        /// The position, as the id of a rule of the same batch.
        NFTA_RULE_POSITION_ID => position_id: u32 [request_only],
        /// The chain, as the id of a chain of the same batch.
        NFTA_RULE_CHAIN_ID => chain_id: u32 [request_only],
        _ => NFTA_RULE_PAD,
    }
}

commented!(Rule as RuleRef, RULE_COMMENT);

impl<'a> Rule<'a> {
    /// Creates a rule without expressions, for this chain.
    pub fn new(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            chain: Some(chain.into()),
            ..Self::empty()
        }
    }

    /// Appends an expression.
    pub fn push(&mut self, expression: &impl Expression) -> &mut Self {
        self.expressions.get_or_insert_default().push(expression);
        self
    }

    /// Appends an expression and returns the rule.
    #[must_use]
    pub fn with(mut self, expression: &impl Expression) -> Self {
        self.push(expression);
        self
    }

    /// Removes all expressions and keeps the memory, so that one `Rule` can be reused.
    pub fn clear(&mut self) -> &mut Self {
        self.expressions.get_or_insert_default().clear();
        self
    }
}

/// The data of a rule's bytecode listing.
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

/// The user data of rules and elements as printed by `nft --debug=netlink`: printable characters unchanged, all other
/// bytes as `\x` and two hexadecimal digits.
pub(super) struct Userdata<'a>(pub(super) &'a [u8]);

impl fmt::Display for Userdata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| match byte {
            b' '..=b'~' => f.write_char(byte.into()),
            _ => write!(f, "\\x{byte:02x}"),
        })
    }
}

/// Returns a family's name in the output of `nft --debug=netlink`.
pub(super) fn family_name(family: u32) -> &'static str {
    match u8::try_from(family).map(Family) {
        Ok(family) if family != Family::UNSPEC => family.name().unwrap_or("unknown"),
        _ => "unknown",
    }
}

/// Formats the rule as `nft --debug=netlink list ruleset` does (nft 1.0.6, libnftnl 1.2.4): family, table, chain,
/// handle and position, then a line for each expression, then the user data or an empty line. Malformed expressions are
/// reported in their place.
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

/// Formats the rule like [`RuleRef`]; the first line omits attributes that are not set.
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
            // Without either, the message would mean all rules of the chain; handle 0 matches none.
            writer.be64(NFTA_RULE_HANDLE, 0);
        }
    }
);

listed!(Rule as RuleRef by RuleFilter, "list rules", BY_KERNEL = true);

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;
    use crate::nft::captured::objects::bytes_of;
    use crate::nft::expr::{Counter, Immediate};

    /// The output of `nft --debug=netlink list ruleset` for the captured rules.
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
        let titles = ["a counter and a jump, listed", "a comment, listed"];
        for (title, printed) in titles.into_iter().zip(printed) {
            let listed = bytes_of("rule", title);
            let rule = RuleRef::of_payload(&listed).unwrap();
            assert_eq!(rule.to_string(), printed);
            // `to_builder` omits the position.
            let position = rule.position();
            let builder = Rule {
                position,
                ..rule.to_builder()
            };
            assert_eq!(builder.to_string(), printed);
        }
    }

    /// Printed by libnftnl 1.2.4, plus the newline that nft adds, from hand-made attributes.
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
        // Empty user data is omitted.
        let rule = Rule {
            userdata: Some(b"".into()),
            ..Rule::empty()
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
    fn opaque_and_malformed_expressions_are_printed() {
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

        // An unknown name: `counter` with another first letter.
        let mut opaque = bytes.to_vec();
        opaque[8] = b'x';
        assert_eq!(
            show(&opaque),
            "ip t c\n  [ xounter 0x0c00010000000000000000020c0002000000000000000001 ]\n  \
             [ immediate reg 0 accept ]\n\n"
        );

        // A number that is too short, in the counter's first attribute.
        let counter = hex("
            20000180 0c000100 636f756e 74657200 10000280 08000100 00000000 04000200
        ");
        assert_eq!(
            show(&[&counter, bytes].concat()),
            "ip t c\n  [ counter malformed: NFTA_COUNTER_BYTES at byte 0: \
             the payload is not a value of its type ]\n  [ counter pkts 1 bytes 2 ]\n  \
             [ immediate reg 0 accept ]\n\n"
        );

        // A truncated list is reported at its end.
        let cut = show(&bytes[..bytes.len() - 4]);
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!(lines[..2], ["ip t c", "  [ counter pkts 1 bytes 2 ]"]);
        assert!(lines[2].starts_with("  [ expression malformed: "), "{cut}");
        assert_eq!(lines[3..], [""]);
    }
}
