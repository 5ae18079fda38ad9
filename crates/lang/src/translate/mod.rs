//! Translates iptables rules to nft's language, with native nf_tables expressions.
//!
//! [`ReverseTranslation`] translates in the other direction.
//!
//! A rule is translated completely or not at all. If a rule uses something that only an x_tables extension can do, it
//! is [rejected](Untranslatable); a translated [text](Translation) has a comment in its place. [`Script`] parses and
//! compiles every translated rule.
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

pub use back::ReverseTranslation;
pub use script::{ParseLineError, Translation, UntranslatedRule};

/// Reason why a rule has no translation.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untranslatable {
    /// An extension, or its options, have no equivalent.
    #[error("`{0}` has no equivalent in nft's language")]
    Extension(String),
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
type Words = Result<Vec<String>, Untranslatable>;

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
            words.extend(translated_interface(interface, word)?);
        }
    }
    for (address, word) in [(&rule.source, "saddr"), (&rule.destination, "daddr")] {
        if let Some(address) = address {
            words.extend(translated_address(address, family, word)?);
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
        if let xt::Match::Comment(translated) = one {
            let text = quoted(translated.as_bytes().as_bstr(), 127)?;
            if comment.replace(text).is_some() {
                return Err(Untranslatable::Extension(part(one)));
            }
            continue;
        }
        let translated = matches::translated(one, rule, family)?;
        // nft implies the protocol of a field just before the field. Behind a limit that would be too late: only
        // packets of the protocol may use up the limit.
        implies |= !is_limited && matches::implies_protocol(one, &translated);
        is_limited |= matches!(one, xt::Match::Limit(_));
        behind.extend(translated);
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
        Target::Extension(target) => targets::translated(target, family)?,
    });
    if let Some(comment) = comment {
        words.push(format!("comment {comment}"));
    }
    let translated = words.join(" ");
    is_read(family, &translated)?;
    Ok(translated)
}

/// Translates with counter values, for [`Program::run`](chainwright::iptables::program::Program::run).
#[must_use]
pub fn for_program(rule: &Rule, family: Family, counters: Option<Counters>) -> Option<String> {
    rule_with(rule, family, counters).ok()
}

/// Checks that a rule parses and compiles.
fn is_read(family: Family, rule: &str) -> Result<(), Untranslatable> {
    let line = format!("add rule {} t c {rule}\n", word(family));
    let not_read = |error: crate::Error| Untranslatable::ParseLineError(error.message);
    let script = Script::parse("rule", line).map_err(not_read)?;
    script.transaction(None).map_err(not_read)?;
    Ok(())
}

/// Returns nft's name of a family.
const fn word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    }
}

/// Formats an extension in iptables' syntax.
fn part(one: &xt::Match) -> String {
    Rule::default().with(one.clone()).to_string()
}

const fn sign(invert: bool) -> &'static str {
    match invert {
        true => "!= ",
        false => "",
    }
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

/// Quotes a text.
fn quoted(text: &BStr, longest: usize) -> Result<String, Untranslatable> {
    let wrong = || Untranslatable::Text(text.to_string());
    let text = text.to_str().map_err(|_| wrong())?;
    let is_odd = |c: char| c.is_control() || matches!(c, '"' | '$' | '\\');
    match text.len() <= longest && !text.contains(is_odd) {
        true => Ok(format!("\"{text}\"")),
        false => Err(wrong()),
    }
}

fn translated_interface(interface: &Interface, word: &str) -> Words {
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

fn translated_address(address: &Address, family: Family, field: &str) -> Words {
    let word = word(family);
    if address.family() != family {
        return Err(Untranslatable::Text(address.address.to_string()));
    }
    let (whole, has_more) = match (address.address, address.mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => (32, address & mask != address),
        (IpAddr::V6(address), IpAddr::V6(mask)) => (128, address & mask != address),
        _ => return Err(Untranslatable::Text(address.mask.to_string())),
    };
    // No masked address has bits outside of the mask.
    match (has_more, address.invert) {
        (true, true) => return Ok(Vec::new()),
        (true, false) => return Err(Untranslatable::Never),
        (false, _) => {}
    }
    let not = sign(address.invert);
    let translated = match address.prefix() {
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
    Ok(vec![translated])
}

/// Translates the comparison of a masked value.
fn masked(what: &str, value: u32, mask: u32, invert: bool) -> Words {
    // No masked value has bits outside of the mask.
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
