//! Statements in English. `{}` stands for the packet.

use super::condition::listed;
use super::fields;

/// A statement in English.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// A condition, as a clause.
    Condition(String),
    /// An action of the rule, as a verb phrase.
    Action(String),
}

use Sentence::{Action, Condition};

/// Returns the sentence of a statement in nft's language; `None` if it has none.
pub(super) fn sentence(words: &str) -> Option<Sentence> {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    Some(match (verb, rest) {
        ("accept", "") => Action("accepts {}".into()),
        ("drop", "") => Action("drops {}".into()),
        ("continue", "") => Action("continues with the next rule".into()),
        ("return", "") => Action("ends this chain for {}".into()),
        ("counter", "") => Action("counts {}".into()),
        ("notrack", "") => Action("exempts {} from connection tracking".into()),
        ("reject", "") => Action("rejects {}".into()),
        ("jump", chain) if is_name(chain) => Action(format!("jumps to the chain {chain}")),
        ("goto", chain) if is_name(chain) => {
            Action(format!("goes to the chain {chain} without returning here"))
        }
        ("counter", rest) => {
            let name = rest.strip_prefix("name ").filter(|name| is_quoted(name))?;
            Action(format!("counts {{}} in the counter {name}"))
        }
        ("log", rest) => Action(log(rest)?),
        ("reject", rest) => Action(format!("rejects {{}} with {}", rest.strip_prefix("with ")?)),
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
        ("masquerade", rest) => Action(with_ports("masquerades {}", rest)?),
        ("redirect", rest) => Action(with_ports("redirects {} to this machine", rest)?),
        ("snat", rest) => Action(translated("source", rest)?),
        ("dnat", rest) => Action(translated("destination", rest)?),
        ("queue", rest) => Action(match rest.strip_prefix("to ") {
            None if rest.is_empty() => "passes {} to the program at queue 0".to_owned(),
            Some(queue) if queue.parse::<u16>().is_ok() => {
                format!("passes {{}} to the program at queue {queue}")
            }
            _ => return None,
        }),
        ("flow", rest) => {
            let table = rest.strip_prefix("add @").filter(|name| is_name(name))?;
            Action(format!(
                "offloads {{}}'s connection to the flowtable {table}"
            ))
        }
        ("dup", rest) => {
            let to = rest
                .strip_prefix("to ")
                .filter(|to| !to.contains(" map "))?;
            Action(format!("sends a copy of {{}} to {to}"))
        }
        ("fwd", rest) => {
            let to = rest.strip_prefix("to ").filter(|to| is_quoted(to))?;
            Action(format!("forwards {{}} through the interface {to}"))
        }
        ("add" | "update" | "delete", rest) => Action(update(verb, rest)?),
        _ => Action(assignment(words)?),
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
    let mut text = "logs {}".to_owned();
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
        Some((rate, burst)) => (rate, format!(", with a burst of {burst}")),
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

/// Reads `ip to 10.0.0.1:80 random`.
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
            [one] => format!("changes {{}}'s {end} to {one}{flags}"),
            _ => format!(
                "changes {{}}'s {end} to {}, chosen {chosen}{flags}",
                listed(&places, "or")
            ),
        });
    }
    let (to, rest) = first_word(rest);
    Some(format!("changes {{}}'s {end} to {to}{}", flags(rest)?))
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
