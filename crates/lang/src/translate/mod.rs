//! iptables' rules in nft's language: what they do, said by nf_tables' own expressions.
//!
//! And back: [`Back`].
//!
//! A rule is translated whole or not at all. What only an extension of x_tables can say has no equal: such a rule is
//! [refused](Untranslatable), and in a [text](Translation) it is a comment. Each rule that is said is one that
//! [`Script`] reads and compiles.
//!
//! | iptables' | nft's |
//! |---|---|
//! | `-s`, `-d`, `-i`, `-o`, `-p`, `-f` | `ip saddr`, `ip daddr`, `iifname`, `oifname`, `ip protocol` or `meta l4proto`, `ip frag-off` |
//! | `-m tcp`, `udp`, `multiport`, `icmp`, `icmp6` | `tcp dport`, …, `icmp type` |
//! | `-m mark`, `connmark`, `conntrack`, `state`, `addrtype`, `iprange`, `limit` | `meta mark`, `ct mark`, `ct state`, `fib daddr type`, `ip saddr`, `limit rate` |
//! | `-m mac`, `pkttype`, `ttl`, `hl`, `length`, `owner`, `dscp`, `cpu`, `comment` | `ether saddr`, `meta pkttype`, `ip ttl`, `ip6 hoplimit`, `meta length`, `meta skuid`, `ip dscp`, `meta cpu`, `comment` |
//! | `-j ACCEPT`, `DROP`, `RETURN`, a chain, `QUEUE`, `NFQUEUE` | `accept`, `drop`, `return`, `jump`, `goto`, `queue` |
//! | `-j LOG`, `NFLOG`, `REJECT`, `MARK`, `CONNMARK`, `CLASSIFY`, `DSCP`, `TRACE`, `CT --notrack` | `log`, `reject`, `meta mark set`, `ct mark set`, `meta priority set`, `ip dscp set`, `meta nftrace set`, `notrack` |
//! | `-j DNAT`, `SNAT`, `MASQUERADE`, `REDIRECT` | `dnat to`, `snat to`, `masquerade`, `redirect` |

mod back;
mod matches;
mod script;
mod targets;

use std::net::IpAddr;

use bstr::{BStr, ByteSlice};

use crate::Script;
use chainwright::internal::nft_name;
use chainwright::iptables::{Address, Counters, Interface, Rule, Target};
use chainwright::xt::{self, Family};

pub use back::{Back, NotMade};
pub use script::{NotRead, NotSaid, Translation};

/// Why a rule cannot be said in nft's language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untranslatable {
    /// An extension, or how it is used, has no equal.
    #[error("`{0}` has no equal in nft's language")]
    Extension(String),
    /// A name or a text that nft's language cannot hold.
    #[error("nft's language cannot hold {0:?}")]
    Text(String),
    /// What the rule compares can never be so.
    #[error("it matches no packet")]
    Never,
    /// What was made of it is not read.
    #[error("what it would be is not read: {0}")]
    NotRead(String),
}

/// What a part of a rule says; nothing if it says nothing.
type Words = Result<Vec<String>, Untranslatable>;

/// The rule in nft's language, without its chain and counters' numbers; with a counter, as iptables' rules have
/// one.
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
/// [`Untranslatable`]: never a rule that matches more.
pub fn rule(rule: &Rule, family: Family) -> Result<String, Untranslatable> {
    rule_with(rule, family, None)
}

fn rule_with(
    rule: &Rule,
    family: Family,
    counters: Option<Counters>,
) -> Result<String, Untranslatable> {
    let mut words = Vec::new();
    for (interface, word) in [
        (&rule.in_interface, "iifname"),
        (&rule.out_interface, "oifname"),
    ] {
        if let Some(interface) = interface {
            words.extend(said_interface(interface, word)?);
        }
    }
    for (address, word) in [(&rule.source, "saddr"), (&rule.destination, "daddr")] {
        if let Some(address) = address {
            words.extend(said_address(address, family, word)?);
        }
    }
    match rule.fragment {
        Some(true) => words.push("ip frag-off & 0x1fff != 0".to_owned()),
        Some(false) => words.push("ip frag-off & 0x1fff == 0".to_owned()),
        None => {}
    }
    let (mut behind, mut comment) = (Vec::new(), None);
    let (mut implies, mut is_limited) = (false, false);
    for one in &rule.matches {
        if let xt::Match::Comment(said) = one {
            let text = quoted(said.as_bytes().as_bstr(), 127)?;
            if comment.replace(text).is_some() {
                return Err(Untranslatable::Extension(part(one)));
            }
            continue;
        }
        let said = matches::said(one, rule, family)?;
        // nft itself asks for the protocol of a field, in front of the field: behind a limit that is too late, which
        // is to be drawn upon by packets of the protocol alone.
        implies |= !is_limited && matches::implies_protocol(one, &said);
        is_limited |= matches!(one, xt::Match::Limit(_));
        behind.extend(said);
    }
    if let Some(protocol) = rule.protocol.filter(|protocol| !implies || protocol.invert) {
        let not = sign(protocol.invert);
        let field = match family {
            Family::Ipv4 => "ip protocol",
            Family::Ipv6 => "meta l4proto",
        };
        words.push(format!("{field} {not}{}", protocol_word(protocol.number)));
    }
    words.extend(behind);
    match counters {
        Some(counters) if counters != Counters::default() => words.push(format!(
            "counter packets {} bytes {}",
            counters.packets, counters.bytes
        )),
        _ => words.push("counter".to_owned()),
    }
    words.extend(match &rule.target {
        Target::None => vec![],
        Target::Accept => vec!["accept".to_owned()],
        Target::Drop => vec!["drop".to_owned()],
        Target::Return => vec!["return".to_owned()],
        Target::Queue => vec!["queue to 0".to_owned()],
        Target::Jump(chain) => vec![format!("jump {}", name(chain.as_bstr())?)],
        Target::Goto(chain) => vec![format!("goto {}", name(chain.as_bstr())?)],
        Target::Extension(target) => targets::said(target, family)?,
    });
    if let Some(comment) = comment {
        words.push(format!("comment {comment}"));
    }
    let said = words.join(" ");
    is_read(family, &said)?;
    Ok(said)
}

/// The same with counters' numbers, for [`Program::run`](chainwright::iptables::program::Program::run).
#[must_use]
pub fn for_program(rule: &Rule, family: Family, counters: Option<Counters>) -> Option<String> {
    rule_with(rule, family, counters).ok()
}

/// Whether it is a rule of nft's language: read, and compiled.
fn is_read(family: Family, rule: &str) -> Result<(), Untranslatable> {
    let line = format!("add rule {} t c {rule}\n", word(family));
    let not_read = |error: crate::Error| Untranslatable::NotRead(error.message);
    let script = Script::parse("rule", line).map_err(not_read)?;
    script.transaction(None).map_err(not_read)?;
    Ok(())
}

/// What nft calls a family.
const fn word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    }
}

/// An extension in iptables' words.
fn part(one: &xt::Match) -> String {
    Rule::default().with(one.clone()).to_string()
}

const fn sign(invert: bool) -> &'static str {
    match invert {
        true => "!= ",
        false => "",
    }
}

/// A protocol by a name that every nft knows, or its number.
fn protocol_word(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        33 => "dccp".to_owned(),
        50 => "esp".to_owned(),
        51 => "ah".to_owned(),
        132 => "sctp".to_owned(),
        136 => "udplite".to_owned(),
        other => other.to_string(),
    }
}

/// A chain's or table's name as nft's language has it.
///
/// # Errors
/// [`Untranslatable::Text`] where it cannot hold the name.
pub fn name(name: &BStr) -> Result<String, Untranslatable> {
    nft_name(name).ok_or_else(|| Untranslatable::Text(name.to_string()))
}

/// A text in quotation marks.
fn quoted(text: &BStr, longest: usize) -> Result<String, Untranslatable> {
    let wrong = || Untranslatable::Text(text.to_string());
    let text = text.to_str().map_err(|_| wrong())?;
    let is_odd = |c: char| c.is_control() || matches!(c, '"' | '$' | '\\');
    match text.len() <= longest && !text.contains(is_odd) {
        true => Ok(format!("\"{text}\"")),
        false => Err(wrong()),
    }
}

fn said_interface(interface: &Interface, word: &str) -> Words {
    let not = sign(interface.invert);
    if interface.name.is_empty() && interface.prefix {
        return match interface.invert {
            true => Err(Untranslatable::Never),
            false => Ok(Vec::new()),
        };
    }
    if interface.name.contains(&b'*') {
        return Err(Untranslatable::Text(interface.name.to_string()));
    }
    let mut name = interface.name.clone();
    if interface.prefix {
        name.push(b'*');
    }
    Ok(vec![format!("{word} {not}{}", quoted(name.as_bstr(), 16)?)])
}

fn said_address(address: &Address, family: Family, field: &str) -> Words {
    let word = word(family);
    if address.family() != family {
        return Err(Untranslatable::Text(address.address.to_string()));
    }
    let (whole, has_more) = match (address.address, address.mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => (32, address & mask != address),
        (IpAddr::V6(address), IpAddr::V6(mask)) => (128, address & mask != address),
        _ => return Err(Untranslatable::Text(address.mask.to_string())),
    };
    // No address has bits outside of the mask once it is applied.
    match (has_more, address.invert) {
        (true, true) => return Ok(Vec::new()),
        (true, false) => return Err(Untranslatable::Never),
        (false, _) => {}
    }
    let not = sign(address.invert);
    let said = match address.prefix() {
        Some(0) if address.invert => return Err(Untranslatable::Never),
        Some(0) => return Ok(Vec::new()),
        Some(bits) if bits == whole => format!("{word} {field} {not}{}", address.address),
        Some(bits) => format!("{word} {field} {not}{}/{bits}", address.address),
        None => {
            let sign = if address.invert { "!=" } else { "==" };
            let (address, mask) = (address.address, address.mask);
            format!("{word} {field} & {mask} {sign} {address}")
        }
    };
    Ok(vec![said])
}

/// A value's comparison under a mask.
fn masked(what: &str, value: u32, mask: u32, invert: bool) -> Words {
    // No mark has bits outside of the mask once it is applied.
    let never = value & !mask != 0;
    let sign = if invert { "!=" } else { "==" };
    match (mask, never) {
        (_, true) if invert => Ok(Vec::new()),
        (_, true) => Err(Untranslatable::Never),
        (u32::MAX, _) => Ok(vec![format!("{what} {}{value:#x}", self::sign(invert))]),
        (0, _) if invert => Err(Untranslatable::Never),
        (0, _) => Ok(Vec::new()),
        (mask, _) => Ok(vec![format!("{what} & {mask:#x} {sign} {value:#x}")]),
    }
}
