//! Statements in English.

use std::fmt::Display;
use std::ops::Range;

use super::condition::listed;
use super::fields;

/// A statement in English.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// A condition, as a clause.
    Condition(String),
    /// An action of the rule, as a verb phrase; and where the text has `the packet` or `the packet's`.
    Action {
        text: String,
        packet: Option<Range<usize>>,
    },
}

use Sentence::Condition;

/// Returns an action on the packet: the verb, `the packet`, and the rest.
fn on_packet(verb: &str, rest: impl Display) -> Sentence {
    with_object(verb, "the packet", rest)
}

/// Returns an action on something of the packet: the verb, `the packet's`, and the rest.
fn of_packet(verb: &str, rest: impl Display) -> Sentence {
    with_object(verb, "the packet's", rest)
}

fn with_object(verb: &str, object: &str, rest: impl Display) -> Sentence {
    let start = verb.len() + 1;
    Sentence::Action {
        text: format!("{verb} {object}{rest}"),
        packet: Some(start..start + object.len()),
    }
}

/// Returns an action that does not name the packet.
fn action(text: impl Into<String>) -> Sentence {
    Sentence::Action {
        text: text.into(),
        packet: None,
    }
}

/// Returns the sentence of a statement in nft's language; `None` if it has none.
pub(super) fn sentence(words: &str) -> Option<Sentence> {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    Some(match (verb, rest) {
        ("accept", "") => on_packet("accepts", ""),
        ("drop", "") => on_packet("drops", ""),
        ("continue", "") => action("continues with the next rule"),
        ("return", "") => on_packet("ends this chain for", ""),
        ("counter", "") => on_packet("counts", ""),
        ("notrack", "") => on_packet("exempts", " from connection tracking"),
        ("reject", "") => on_packet("rejects", ""),
        ("jump", chain) if is_name(chain) => action(format!("jumps to the chain {chain}")),
        ("goto", chain) if is_name(chain) => {
            action(format!("goes to the chain {chain} without returning here"))
        }
        ("counter", rest) => {
            let name = rest.strip_prefix("name ").filter(|name| is_quoted(name))?;
            on_packet("counts", format_args!(" in the counter {name}"))
        }
        ("log", rest) => on_packet("logs", log(rest)?),
        ("reject", rest) => on_packet(
            "rejects",
            format_args!(" with {}", rest.strip_prefix("with ")?),
        ),
        ("limit", rest) => Condition(limit(rest)?),
        ("quota", rest) => Condition(match rest.strip_prefix("over ") {
            Some(over) if is_amount(over) => format!("the quota of {over} is used up"),
            None if is_amount(rest) => format!("the quota of {rest} is not used up"),
            _ => return None,
        }),
        ("ct", rest) if rest.starts_with("count ") => {
            let count = rest.strip_prefix("count ")?;
            let (over, count) = match count.strip_prefix("over ") {
                Some(count) => ("more than", count),
                None => ("at most", count),
            };
            count.parse::<u32>().ok()?;
            Condition(format!("{over} {count} connections are counted here"))
        }
        ("masquerade", rest) => on_packet("masquerades", with_ports("", rest)?),
        ("redirect", rest) => on_packet("redirects", with_ports(" to this machine", rest)?),
        ("snat", rest) => of_packet("changes", translated("source", rest)?),
        ("dnat", rest) => of_packet("changes", translated("destination", rest)?),
        ("queue", rest) => {
            let queue = match rest.strip_prefix("to ") {
                None if rest.is_empty() => "0",
                queue => queue.filter(|queue| queue.parse::<u16>().is_ok())?,
            };
            on_packet("passes", format_args!(" to the program at queue {queue}"))
        }
        ("flow", rest) => {
            let table = rest.strip_prefix("add @").filter(|name| is_name(name))?;
            of_packet(
                "offloads",
                format_args!(" connection to the flowtable {table}"),
            )
        }
        ("dup", rest) => {
            let to = rest
                .strip_prefix("to ")
                .filter(|to| !to.contains(" map "))?;
            on_packet("sends a copy of", format_args!(" to {to}"))
        }
        ("fwd", rest) => {
            let to = rest.strip_prefix("to ").filter(|to| is_quoted(to))?;
            on_packet("forwards", format_args!(" through the interface {to}"))
        }
        ("add" | "update" | "delete", rest) => action(update(verb, rest)?),
        _ => action(assignment(words)?),
    })
}

/// Returns `true` for a name without spaces: not the rules of an anonymous chain.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '{', '"'])
}

/// Returns `true` for a text in one pair of quotation marks.
fn is_quoted(text: &str) -> bool {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains('"'))
}

/// Returns `true` for a number and a unit: `25 mbytes`.
fn is_amount(text: &str) -> bool {
    let parts = text.split_once(' ');
    parts.is_some_and(|(number, unit)| number.parse::<u64>().is_ok() && is_name(unit))
}

/// Splits off the first word, which may be in quotation marks.
fn first_word(text: &str) -> (&str, &str) {
    let end = match text.strip_prefix('"') {
        Some(inner) => inner.find('"').map_or(text.len(), |end| end + 2),
        None => text.find(' ').unwrap_or(text.len()),
    };
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start())
}

fn log(mut rest: &str) -> Option<String> {
    let mut text = String::new();
    while !rest.is_empty() {
        let (option, behind) = first_word(rest);
        let (value, next) = first_word(behind);
        text += &match option {
            "prefix" if is_quoted(value) => format!(" with the prefix {value}"),
            "level" if is_name(value) => format!(" at level {value}"),
            "group" if is_name(value) => format!(" to group {value}"),
            "snaplen" if is_name(value) => format!(" up to {value} bytes"),
            _ => return None,
        };
        rest = next;
    }
    Some(text)
}

fn limit(rest: &str) -> Option<String> {
    let rest = rest.strip_prefix("rate ")?;
    let (rest, verb) = match rest.strip_prefix("over ") {
        Some(rest) => (rest, "exceeds"),
        None => (rest, "does not exceed"),
    };
    let (rate, burst) = match rest.split_once(" burst ") {
        Some((rate, "1 packets")) => (rate, " (burst: 1 packet)".to_owned()),
        Some((rate, burst)) => (rate, format!(" (burst: {burst})")),
        None => (rest, String::new()),
    };
    let (count, unit) = rate.split_once('/')?;
    let count = match count.parse::<u64>() {
        Ok(1) => "1 packet".to_owned(),
        Ok(count) => format!("{count} packets"),
        Err(_) if is_amount(count) => count.to_owned(),
        Err(_) => return None,
    };
    Some(format!("the rate {verb} {count} per {unit}{burst}"))
}

/// Returns the words for flags of NAT.
fn flags(words: &str) -> Option<String> {
    let all = words.split(',').filter(|flag| !flag.is_empty());
    let all = all.map(|flag| match flag {
        "random" => Some("with a random port"),
        "fully-random" => Some("with a fully random port"),
        "persistent" => Some("with the same address for each client"),
        _ => None,
    });
    let all = all.collect::<Option<Vec<_>>>()?;
    Some(match all.is_empty() {
        true => String::new(),
        false => format!(", {}", listed(&all, "and")),
    })
}

/// Reads `to :1024-65535 random`.
fn with_ports(text: &str, rest: &str) -> Option<String> {
    let (ports, rest) = match rest.strip_prefix("to :") {
        Some(rest) => {
            let (ports, rest) = first_word(rest);
            let is_port = |c: char| c.is_ascii_digit() || c == '-';
            ports.chars().all(is_port).then_some(())?;
            (format!(", port {ports}"), rest)
        }
        None => (String::new(), rest),
    };
    Some(format!("{text}{ports}{}", flags(rest)?))
}

/// Reads `ip to 10.0.0.1:80 random`, and returns what follows `the packet's`.
fn translated(end: &str, rest: &str) -> Option<String> {
    let rest = ["ip ", "ip6 "]
        .iter()
        .find_map(|family| rest.strip_prefix(family))
        .unwrap_or(rest);
    let rest = rest.strip_prefix("to ")?;
    if let Some((key, map)) = rest.split_once(" map { ") {
        let (map, rest) = map.split_once(" }")?;
        let (chosen, count) = chosen(key)?;
        let places = map.split(", ").enumerate().map(|(place, element)| {
            let (number, to) = element.split_once(" : ")?;
            (number.parse() == Ok(place)).then_some(())?;
            Some(match to.split_once(" . ") {
                Some((address, port)) if address.contains(':') => format!("[{address}]:{port}"),
                Some((address, port)) => format!("{address}:{port}"),
                None => to.to_owned(),
            })
        });
        let places = places.collect::<Option<Vec<_>>>()?;
        (places.len() == count).then_some(())?;
        let flags = flags(rest.trim_start())?;
        return Some(match &places[..] {
            [one] => format!(" {end} to {one}{flags}"),
            _ => format!(
                " {end} to {}, chosen {chosen}{flags}",
                listed(&places, "or")
            ),
        });
    }
    let (to, rest) = first_word(rest);
    let flags = flags(rest)?;
    Some(match to.strip_prefix(':') {
        Some(port) => format!(" {end} port to {port}{flags}"),
        None => format!(" {end} to {to}{flags}"),
    })
}

/// Reads `numgen random mod 3`: the way of choosing, and the number of choices.
fn chosen(key: &str) -> Option<(&'static str, usize)> {
    let (kind, count) = key.split_once(" mod ")?;
    let how = match kind {
        "numgen random" => "at random",
        "numgen inc" => "in turn",
        _ => return None,
    };
    Some((how, count.parse().ok()?))
}

/// Reads `add @set { ip saddr timeout 1m }`.
fn update(verb: &str, rest: &str) -> Option<String> {
    let (set, element) = rest.strip_prefix('@')?.split_once(" { ")?;
    let element = element.strip_suffix(" }")?;
    let (key, timeout) = match element.split_once(" timeout ") {
        Some((key, time)) if is_name(time) => (key, format!(", with a timeout of {time}")),
        Some(_) => return None,
        None => (element, String::new()),
    };
    let names = key.split(" . ").map(fields::name);
    let names = listed(&names.collect::<Option<Vec<_>>>()?, "and");
    is_name(set).then_some(())?;
    Some(match verb {
        "delete" => format!("deletes {names} from the set @{set}{timeout}"),
        "update" => format!("adds or renews {names} in the set @{set}{timeout}"),
        _ => format!("adds {names} to the set @{set}{timeout}"),
    })
}

/// Reads `meta mark set ct mark`.
fn assignment(words: &str) -> Option<String> {
    let (field, value) = words.split_once(" set ")?;
    // It keeps the other labels.
    if field == "ct label" {
        let is_label = is_quoted(value) || is_name(value);
        return is_label.then(|| format!("adds the label {value} to the connection"));
    }
    let name = fields::name(field)?;
    let value = match fields::name(value) {
        Some(other) => other.to_owned(),
        None if is_name(value) || is_quoted(value) => value.to_owned(),
        None => {
            let operation = value.strip_prefix(field)?.trim_start();
            let (operator, bits) = operation
                .split_once(' ')
                .filter(|(_, bits)| is_name(bits))?;
            return Some(match operator {
                "|" => format!("sets the bits {bits} of {name}"),
                "^" => format!("inverts the bits {bits} of {name}"),
                "&" => format!("clears all bits but {bits} of {name}"),
                _ => return None,
            });
        }
    };
    Some(format!("sets {name} to {value}"))
}
