//! Translates iptables rules to nft's language, with native nf_tables expressions.
//!
//! [`ReverseTranslation`] translates in the other direction.
//!
//! A rule is translated completely or not at all. If a rule needs an x_tables extension without an equivalent, it
//! is [rejected](Untranslatable); a translated [text](Translation) has a comment in its place. [`Script`] parses and
//! compiles every translated rule.
//!
//! The text has the words of `iptables-translate` 1.8.13 wherever they mean the same as the rule. If nft can negate a
//! match only for packets that have the compared value, the match becomes an anonymous chain: `jump { skuid 5 return;
//! accept; }`.
//!
//! | topic | module |
//! |---|---|
//! | rules, addresses, interfaces | this module |
//! | matches | `matches` |
//! | targets | `targets` |
//! | syntax trees, and their text | `build`, `text` |
//! | output of iptables-save | `script` |
//! | the other direction | `back` |

mod back;
mod build;
mod matches;
mod script;
mod targets;
mod text;

use std::net::IpAddr;

use bstr::{BStr, ByteSlice};

use crate::Script;
use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Target as Destination, Verdict};
use build::{Statement, field, hex, is, joined, meta, under, word};
use chainwright::internal::nft_name;
use chainwright::iptables::{Address, Counters, Rule, Target};
use chainwright::nft::expr::MetaKey;
use chainwright::xt::{self, Family};

pub use back::ReverseTranslation;
pub use script::{ParseLineError, Translation, UntranslatedRule};

/// Reason why a rule has no translation.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untranslatable {
    /// An extension, or its options, have no equivalent.
    #[error("`{0}` has no equivalent in nft's language")]
    Extension(String),
    /// An extension, or its options, only have an equivalent that would match other packets.
    #[error("`{part}` has no equivalent in nft's language: {why}")]
    #[non_exhaustive]
    Inexact {
        /// The extension, in iptables' syntax.
        part: String,
        /// How nft differs.
        why: &'static str,
    },
    /// nft's language cannot represent a name or string.
    #[error("nft's language cannot express {0:?}")]
    Text(String),
    /// The rule never matches.
    #[error("it matches no packet")]
    Never,
    /// The translation cannot be parsed.
    #[error("the translation cannot be parsed: {0}")]
    ParseLineError(String),
}

chainwright::debug_as_message!(Untranslatable);

/// Translation of a part of a rule; empty if it adds no condition.
type Statements = Result<Vec<Statement>, Untranslatable>;

/// Translates a rule, without the chain. The result has a counter, like every iptables rule, without its values.
///
/// ```
/// use chainwright::iptables::{Family, Rule};
/// use chainwright_lang::translate;
///
/// let rule = Rule::parse(Family::Ipv4, "-s 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT")?;
/// assert_eq!(translate::rule(&rule, Family::Ipv4)?, "ip saddr 10.0.0.0/8 tcp dport 22 counter accept");
///
/// let rule = Rule::parse(Family::Ipv4, "-m recent --rcheck --name a -j DROP")?;
/// assert!(translate::rule(&rule, Family::Ipv4).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Untranslatable`]. A rule is never replaced by one that matches more packets.
pub fn rule(rule: &Rule, family: Family) -> Result<String, Untranslatable> {
    rule_with(rule, family, None, 0)
}

/// Translates a rule. `number` is its number in a text, 0 for a single rule.
fn rule_with(
    rule: &Rule,
    family: Family,
    counters: Option<Counters>,
    number: u32,
) -> Result<String, Untranslatable> {
    let mut tests = Vec::new();
    for (interface, key) in [
        (&rule.in_interface, MetaKey::IIFNAME),
        (&rule.out_interface, MetaKey::OIFNAME),
    ] {
        if let Some(interface) = interface {
            tests.extend(matches::interface(interface, key)?);
        }
    }
    if let Some(is_fragment) = rule.fragment {
        let offset = field(&protocols::IP, "frag-off");
        tests.push(match is_fragment {
            true => under(offset, word("0x1fff"), true, word(0)),
            false => build::test(
                build::binary(crate::syntax::Operator::And, offset, word("0x1fff")),
                word(0),
            ),
        });
    }
    let (mut behind, mut comment) = (Vec::new(), None);
    let (mut implies, mut is_counted) = (false, false);
    for one in &rule.matches {
        if let xt::Match::Comment(of) = one {
            // The last one counts, and nft has no empty ones.
            let text = of.as_bytes().as_bstr();
            comment = match text.is_empty() {
                true => None,
                false => Some(checked(text, 127)?.to_owned()),
            };
            continue;
        }
        // nft implies the protocol of a field just before the field. After a limit that would be too late: only
        // packets of the protocol may use up the limit.
        implies |= !is_counted && matches::implies_protocol(one, family);
        is_counted |= matches::counts(one);
        behind.extend(matches::translated(one, rule, number, family)?);
    }
    if let Some(protocol) = rule.protocol.filter(|protocol| !implies || protocol.invert) {
        let left = match family {
            Family::Ipv4 => field(&protocols::IP, "protocol"),
            Family::Ipv6 => meta(MetaKey::L4PROTO),
        };
        tests.push(is(
            left,
            protocol.invert,
            word(protocol_word(protocol.number)),
        ));
    }
    for (address, name) in [(&rule.source, "saddr"), (&rule.destination, "daddr")] {
        if let Some(address) = address {
            tests.extend(translated_address(address, family, name)?);
        }
    }
    tests.extend(behind);
    let counters = counters.unwrap_or_default();
    let mut rest = vec![Statement::Counter {
        packets: counters.packets,
        bytes: counters.bytes,
    }];
    let jump = |chain: &[u8], to: fn(Destination) -> Verdict| {
        Ok(vec![Statement::Verdict(to(Destination::Chain(name(
            chain.as_bstr(),
        )?)))])
    };
    rest.extend(match &rule.target {
        Target::None => vec![],
        Target::Accept => vec![Statement::Verdict(Verdict::Accept)],
        Target::Drop => vec![Statement::Verdict(Verdict::Drop)],
        Target::Return => vec![Statement::Verdict(Verdict::Return)],
        Target::Queue => vec![Statement::Queue {
            numbers: word(0),
            flags: Vec::new(),
        }],
        Target::Jump(chain) => jump(chain, Verdict::Jump)?,
        Target::Goto(chain) => jump(chain, Verdict::Goto)?,
        Target::Extension(target) => targets::translated(target, rule, family)?,
    });
    let statements = joined(tests, rest).ok_or_else(|| Untranslatable::Inexact {
        part: rule.to_string(),
        why: "an inverted condition needs a chain of its own, which this verdict would leave",
    })?;
    let finished = |statements: &[Statement]| match &comment {
        Some(comment) => format!("{} comment \"{comment}\"", text::text(statements)),
        None => text::text(statements),
    };
    let translated = finished(&statements);
    is_read(family, &finished(&anywhere(statements)))?;
    Ok(translated)
}

/// Translates with counter values, for [`Program::run`](chainwright::iptables::program::Program::run).
#[must_use]
pub fn for_program(rule: &Rule, family: Family, counters: Option<Counters>) -> Option<String> {
    rule_with(rule, family, counters, 0).ok()
}

/// Replaces the names of devices, whose numbers the text needs when it is loaded, by one that every machine has.
fn anywhere(mut statements: Vec<Statement>) -> Vec<Statement> {
    for statement in &mut statements {
        if let Statement::Duplicate { device, .. } = statement
            && let Some(device) = device
        {
            *device = word("lo");
        }
    }
    statements
}

/// Checks that a rule parses and compiles.
fn is_read(family: Family, rule: &str) -> Result<(), Untranslatable> {
    let line = format!("add rule {} t c {rule}\n", family_word(family));
    let not_read = |error: crate::Error| Untranslatable::ParseLineError(error.message);
    let script = Script::parse("rule", line).map_err(not_read)?;
    script.transaction(None).map_err(not_read)?;
    Ok(())
}

/// Returns nft's name of a family.
const fn family_word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    }
}

/// Formats an extension in iptables' syntax.
fn part(one: &xt::Match) -> String {
    Rule::default().with(one.clone()).to_string()
}

/// Returns a protocol name that every version of nft knows, or the number.
fn protocol_word(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        33 => "dccp".to_owned(),
        50 => "esp".to_owned(),
        51 => "ah".to_owned(),
        58 => "ipv6-icmp".to_owned(),
        132 => "sctp".to_owned(),
        136 => "udplite".to_owned(),
        other => other.to_string(),
    }
}

/// Translates a chain or table name.
///
/// # Errors
/// [`Untranslatable::Text`] if the name is not valid in nft's language.
pub fn name(name: &BStr) -> Result<String, Untranslatable> {
    nft_name(name).ok_or_else(|| Untranslatable::Text(name.to_string()))
}

/// Returns a text if nft's language can represent it in quotation marks.
fn checked(text: &BStr, longest: usize) -> Result<&str, Untranslatable> {
    let wrong = || Untranslatable::Text(text.to_string());
    let checked = text.to_str().map_err(|_| wrong())?;
    let needs_escape = |c: char| c.is_control() || matches!(c, '"' | '$' | '\\');
    match checked.len() <= longest && !checked.contains(needs_escape) {
        true => Ok(checked),
        false => Err(wrong()),
    }
}

/// Returns the prefix length of a netmask.
fn prefix_of(mask: IpAddr) -> Option<u8> {
    let (bits, length) = match mask {
        IpAddr::V4(mask) => (u128::from(mask.to_bits()) << 96, 32),
        IpAddr::V6(mask) => (mask.to_bits(), 128),
    };
    let ones = bits.leading_ones();
    let is_prefix = bits.count_ones() == ones && ones <= length;
    is_prefix.then_some(ones as u8) // at most 128
}

fn translated_address(address: &Address, family: Family, name: &str) -> Statements {
    if address.family() != family {
        return Err(Untranslatable::Text(address.address.to_string()));
    }
    let has_more = match (address.address, address.mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => address & mask != address,
        (IpAddr::V6(address), IpAddr::V6(mask)) => address & mask != address,
        _ => return Err(Untranslatable::Text(address.mask.to_string())),
    };
    // No masked address has bits outside of the mask.
    match (has_more, address.invert) {
        (true, true) => return Ok(Vec::new()),
        (true, false) => return Err(Untranslatable::Never),
        (false, _) => {}
    }
    let (protocol, whole): (&'static Protocol, u32) = match family {
        Family::Ipv4 => (&protocols::IP, 32),
        Family::Ipv6 => (&protocols::IP6, 128),
    };
    let left = field(protocol, name);
    let value = build::address(address.address);
    Ok(match address.prefix() {
        Some(0) if address.invert => return Err(Untranslatable::Never),
        Some(0) => Vec::new(),
        Some(bits) if bits == whole => vec![is(left, address.invert, value)],
        Some(bits) => {
            let prefix = Expr::Prefix(Box::new(value), bits);
            vec![is(left, address.invert, prefix)]
        }
        None => vec![under(left, word(address.mask), address.invert, value)],
    })
}

/// Translates the comparison of a masked value.
fn masked(left: Expr, value: u32, mask: u32, invert: bool) -> Statements {
    // No masked value has bits outside of the mask.
    let never = value & !mask != 0;
    match (mask, never) {
        (_, true) if invert => Ok(Vec::new()),
        (_, true) => Err(Untranslatable::Never),
        (u32::MAX, _) => Ok(vec![is(left, invert, hex(value))]),
        (0, _) if invert => Err(Untranslatable::Never),
        (0, _) => Ok(Vec::new()),
        (mask, _) => Ok(vec![under(left, hex(mask), invert, hex(value))]),
    }
}
