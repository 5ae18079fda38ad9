//! Reads English back to nft's language, for tests.

use super::fields;
use super::{Language, Phrase};

/// Splits a list: `a, b or c`.
fn list<'t>(text: &'t str, last: &str) -> Vec<&'t str> {
    match text.rsplit_once(&format!(" {last} ")) {
        Some((head, tail)) => head.split(", ").chain([tail]).collect(),
        None => vec![text],
    }
}

/// Splits a list whose items may be `(a, b)`.
fn items(text: &str, last: &str) -> Vec<String> {
    if !text.starts_with('(') {
        return list(text, last).into_iter().map(str::to_owned).collect();
    }
    let text = text.trim_start_matches('(').trim_end_matches(')');
    let all = text.split("), (").flat_map(|part| {
        let between = format!(") {last} (");
        part.split(&between).map(str::to_owned).collect::<Vec<_>>()
    });
    all.map(|item| item.replace(", ", " . ")).collect()
}

/// Reads a field at the beginning of a text.
fn field(text: &str) -> Option<(&'static str, &str)> {
    let mut all: Vec<_> = fields::all().collect();
    all.sort_by_key(|(_, english)| std::cmp::Reverse(english.len()));
    all.iter()
        .find_map(|(nft, english)| Some((*nft, text.strip_prefix(english)?)))
}

/// Reads a subject: the fields with masks, and the rest.
fn subject(text: &str) -> Option<(String, Option<String>, &str)> {
    let mut rest = text;
    let mut names = Vec::new();
    let is_combination = rest.starts_with("the combination of ");
    rest = rest.strip_prefix("the combination of ").unwrap_or(rest);
    let mut mask = None;
    loop {
        let (name, behind) = field(rest)?;
        rest = behind;
        let mut name = name.to_owned();
        if let Some(masked) = rest.strip_prefix(" & ") {
            let ends = [" is ", " are ", " and the ", ", the ", " in the map "];
            let end = ends.iter().filter_map(|end| masked.find(end)).min();
            let end = end.or_else(|| masked.strip_suffix(' ').map(str::len))?;
            let (bits, behind) = masked.split_at(end);
            rest = behind;
            if is_combination {
                name = format!("{name} & {bits}");
            } else {
                mask = Some(bits.to_owned());
            }
        }
        names.push(name);
        match rest
            .strip_prefix(", ")
            .or_else(|| rest.strip_prefix(" and "))
        {
            Some(next) if is_combination => rest = next,
            _ => break,
        }
    }
    Some((names.join(" . "), mask, rest.strip_prefix(' ')?))
}

/// Reads a subject with its mask.
fn masked_subject(text: &str) -> Option<(String, &str)> {
    let (fields, mask, rest) = subject(text)?;
    let mask = mask.map(|mask| format!(" & {mask}"));
    Some((fields + &mask.unwrap_or_default(), rest))
}

/// Replaces times of day by seconds.
fn seconds(text: &str) -> String {
    let mut words = Vec::new();
    for word in text.split(' ') {
        if word == "UTC" {
            let time: String = words.pop().unwrap_or_default();
            let parts = time.split(':').map(|part| part.parse::<u32>().unwrap());
            let number = parts.fold(0, |sum, part| 60 * sum + part);
            let has_seconds = time.matches(':').count() == 2;
            words.push((if has_seconds { number } else { 60 * number }).to_string());
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn condition(text: &str) -> Option<Vec<String>> {
    if text.starts_with("a random choice") {
        return Some(vec![text.split('`').nth(1)?.to_owned()]);
    }
    let name = text.strip_prefix("the protocol is ").unwrap_or_default();
    if name.starts_with(|c: char| c.is_uppercase()) {
        let protocol = name.to_lowercase().replace('-', "");
        let sides = ["sport", "dport"];
        return Some(sides.map(|side| format!("{protocol} {side} >= 0")).into());
    }
    for (word, value) in [("a", "exists"), ("no", "missing")] {
        if let Some(route) = text.strip_prefix(&format!("there is {word} ")) {
            let (name, _) = field(&format!("the {route}"))?;
            return Some(vec![
                format!("{name} {value}"),
                format!("{name} == {value}"),
            ]);
        }
    }
    if let Some(rest) = text.strip_prefix("the socket is ") {
        let (value, rest) = match rest.strip_prefix("not ") {
            Some(rest) => (0, rest),
            None => (1, rest),
        };
        let key = match rest {
            "transparent" => "transparent",
            "bound to all addresses" => "wildcard",
            _ => return None,
        };
        return Some(vec![format!("socket {key} {value}")]);
    }
    if let Some(rest) = text.strip_prefix("the rate ") {
        let (over, rest) = match rest.strip_prefix("exceeds ") {
            Some(rest) => ("over ", rest),
            None => ("", rest.strip_prefix("does not exceed ")?),
        };
        let rest = rest
            .replacen(" packets per ", "/", 1)
            .replacen(" packet per ", "/", 1)
            .replacen(" per ", "/", 1);
        let rest = match rest.strip_suffix(')') {
            Some(rest) => {
                let rest = rest.replacen(" (burst: ", " burst ", 1);
                match rest.strip_suffix(" packet") {
                    Some(rest) => format!("{rest} packets"),
                    None => rest,
                }
            }
            None => rest,
        };
        return Some(vec![format!("limit rate {over}{rest}")]);
    }
    if let Some(rest) = text.strip_prefix("the quota of ") {
        return Some(vec![match rest.strip_suffix(" is used up") {
            Some(amount) => format!("quota over {amount}"),
            None => format!("quota {}", rest.strip_suffix(" is not used up")?),
        }]);
    }
    if let Some(count) = text.strip_suffix(" connections are counted here") {
        return Some(vec![match count.strip_prefix("more than ") {
            Some(count) => format!("ct count over {count}"),
            None => format!("ct count {}", count.strip_prefix("at most ")?),
        }]);
    }
    let (subject, mask, predicate) = subject(text)?;
    let predicate = match predicate.split_once(' ')? {
        ("are", rest) => format!("is {rest}"),
        ("do", rest) => format!("does {rest}"),
        ("include", rest) => format!("includes {rest}"),
        _ => predicate.to_owned(),
    };
    let predicate = seconds(&predicate);
    let after = |words: &str| predicate.strip_prefix(words)?.strip_prefix(' ');
    let is_state = subject == "ct state" && mask.is_none();
    // One value, or an anonymous set.
    let values = |not: &str, rest: &str, last: &str| {
        let items = items(rest, last);
        let set = format!("{not}{{ {} }}", items.join(", "));
        match (&items[..], is_state) {
            ([one], _) => vec![format!("{not}{one}"), set],
            (all, true) => {
                let not = if not.is_empty() { "" } else { "! " };
                vec![set, format!("{not}{}", all.join(","))]
            }
            _ => vec![set],
        }
    };
    let sides = if let Some(rest) = after("is in the set") {
        vec![rest.to_owned()]
    } else if let Some(rest) = after("is not in the set") {
        vec![format!("!= {rest}")]
    } else if let Some(rest) = after("is in") {
        match rest.strip_prefix("neither ") {
            Some(rest) => values("!= ", rest, "nor"),
            None => values("", rest, "or"),
        }
    } else if let Some(rest) = after("is not in") {
        values("!= ", rest, "nor")
    } else if let Some(rest) = after("is from") {
        vec![rest.replacen(" to ", "-", 1)]
    } else if let Some(rest) = after("is not from") {
        vec![format!("!= {}", rest.replacen(" to ", "-", 1))]
    } else if let Some(rest) = after("is less than") {
        vec![format!("< {rest}")]
    } else if let Some(rest) = after("is at most") {
        vec![format!("<= {rest}")]
    } else if let Some(rest) = after("is greater than") {
        vec![format!("> {rest}")]
    } else if let Some(rest) = after("is at least") {
        vec![format!(">= {rest}")]
    } else if let Some(rest) = after("is before") {
        vec![format!("< {rest}")]
    } else if let Some(rest) = after("is not after") {
        vec![format!("<= {rest}")]
    } else if let Some(rest) = after("is after") {
        vec![format!("> {rest}")]
    } else if let Some(rest) = after("is not before") {
        vec![format!(">= {rest}")]
    } else if let Some(rest) = after("begins with") {
        vec![format!("{}*\"", rest.strip_suffix('"')?)]
    } else if let Some(rest) = after("does not begin with") {
        vec![format!("!= {}*\"", rest.strip_suffix('"')?)]
    } else if let Some(rest) = after("includes any of") {
        vec![list(rest, "and").join(",")]
    } else if let Some(rest) = after("includes none of") {
        vec![format!("! {}", list(rest, "and").join(","))]
    } else if let Some(rest) = after("includes") {
        vec![rest.to_owned()]
    } else if let Some(rest) = after("does not include") {
        vec![format!("! {rest}")]
    } else if let Some(rest) = after("is neither") {
        values("!= ", rest, "nor")
    } else if let Some(rest) = after("is not") {
        let mut sides = values("!= ", rest, "nor");
        sides.extend(is_state.then(|| format!("! {rest}")));
        sides
    } else {
        let rest = after("is")?;
        let values = values("", rest, "or");
        // Any of the flags would be `include`.
        let is_flags = subject.ends_with("status") || subject.ends_with("flags");
        let equal = values.iter().map(|value| format!("== {value}"));
        let equal = equal.collect::<Vec<_>>();
        match is_flags && mask.is_none() {
            true => {
                let sets = values.into_iter().filter(|value| value.starts_with('{'));
                equal.into_iter().chain(sets).collect()
            }
            false => [values, equal].concat(),
        }
    };
    let Some(mask) = mask else {
        return Some(
            sides
                .iter()
                .map(|side| format!("{subject} {side}"))
                .collect(),
        );
    };
    let masked = sides
        .iter()
        .flat_map(|side| ["", "== "].map(|equal| format!("{subject} & {mask} {equal}{side}")));
    // Numbers under a mask have no other form.
    let has_names = mask.starts_with(|c: char| c.is_alphabetic());
    let flags = sides.iter().filter(|_| has_names).map(|side| {
        let side = side.trim_start_matches("== ");
        format!("{subject} {side} / {mask}")
    });
    Some(masked.chain(flags).collect())
}

fn action(text: &str) -> Option<Vec<String>> {
    let nat = |text: &str| {
        let mut flags = Vec::new();
        let mut text = text.to_owned();
        for (english, flag) in [
            ("with a random port", "random"),
            ("with a fully random port", "fully-random"),
            ("with the same address for each client", "persistent"),
        ] {
            for begin in [", ", " and "] {
                let whole = format!("{begin}{english}");
                if text.contains(&whole) {
                    text = text.replacen(&whole, "", 1);
                    flags.push(flag);
                }
            }
        }
        let flags = match flags.is_empty() {
            true => String::new(),
            false => format!(" {}", flags.join(",")),
        };
        (text, flags)
    };
    for (english, nft) in [
        ("accepts {}", "accept"),
        ("drops {}", "drop"),
        ("continues with the next rule", "continue"),
        ("ends this chain for {}", "return"),
        ("counts {}", "counter"),
        ("exempts {} from connection tracking", "notrack"),
        ("rejects {}", "reject"),
        ("passes {} to the program at queue 0", "queue"),
    ] {
        if text == english {
            return Some(vec![nft.to_owned(), format!("{nft} to 0")]);
        }
    }
    let rest = |begin: &str| text.strip_prefix(begin);
    if let Some(chain) = rest("jumps to the chain ") {
        return Some(vec![format!("jump {chain}")]);
    }
    if let Some(chain) = rest("goes to the chain ") {
        let chain = chain.strip_suffix(" without returning here")?;
        return Some(vec![format!("goto {chain}")]);
    }
    if let Some(name) = rest("counts {} in the counter ") {
        return Some(vec![format!("counter name {name}")]);
    }
    if let Some(rest) = rest("logs {}") {
        let rest = rest.replacen(" with the prefix ", " prefix ", 1);
        let rest = rest
            .replacen(" at level ", " level ", 1)
            .replacen(" to group ", " group ", 1);
        let rest = match rest.split_once(" up to ") {
            Some((head, tail)) => format!("{head} snaplen {}", tail.replacen(" bytes", "", 1)),
            None => rest,
        };
        return Some(vec![format!("log{rest}")]);
    }
    if let Some(with) = rest("rejects {} with ") {
        return Some(vec![format!("reject with {with}")]);
    }
    if let Some(queue) = rest("passes {} to the program at queue ") {
        return Some(vec![format!("queue to {queue}")]);
    }
    if let Some(table) = rest("offloads {}'s connection to the flowtable ") {
        return Some(vec![format!("flow add @{table}")]);
    }
    if let Some(to) = rest("sends a copy of {} to ") {
        return Some(vec![format!("dup to {to}")]);
    }
    if let Some(to) = rest("forwards {} through the interface ") {
        return Some(vec![format!("fwd to {to}")]);
    }
    for (begin, word) in [
        ("masquerades {}", "masquerade"),
        ("redirects {} to this machine", "redirect"),
    ] {
        if let Some(rest) = rest(begin) {
            let (rest, flags) = nat(rest);
            let ports = rest.replacen(", port ", " to :", 1);
            return Some(vec![format!("{word}{ports}{flags}")]);
        }
    }
    for (begin, word) in [
        ("changes {}'s source ", "snat"),
        ("changes {}'s destination ", "dnat"),
    ] {
        let Some(rest) = rest(begin) else {
            continue;
        };
        let rest = match rest.strip_prefix("port to ") {
            Some(port) => format!(":{port}"),
            None => rest.strip_prefix("to ")?.to_owned(),
        };
        let rest = rest.as_str();
        let (rest, flags) = nat(rest);
        let families = ["", "ip ", "ip6 "];
        let Some((places, chosen)) = rest.split_once(", chosen ") else {
            let one = rest.rsplit_once(':').map(|(address, port)| {
                let address = address.trim_start_matches('[').trim_end_matches(']');
                format!("{address} . {port}")
            });
            let direct = families.map(|family| format!("{word} {family}to {rest}{flags}"));
            let mapped = one.iter().flat_map(|one| {
                families.map(|family| {
                    format!("{word} {family}to numgen random mod 1 map {{ 0 : {one} }}{flags}")
                })
            });
            return Some(direct.into_iter().chain(mapped).collect());
        };
        let kind = match chosen {
            "at random" => "random",
            _ => "inc",
        };
        let places = list(places, "or");
        let count = places.len();
        let with = |split: bool| {
            let elements = places.iter().enumerate().map(|(place, to)| {
                let to = match to.rsplit_once(':') {
                    Some((address, port)) if split => {
                        let address = address.trim_start_matches('[').trim_end_matches(']');
                        format!("{address} . {port}")
                    }
                    _ => (*to).to_owned(),
                };
                format!("{place} : {to}")
            });
            let elements = elements.collect::<Vec<_>>().join(", ");
            format!("to numgen {kind} mod {count} map {{ {elements} }}{flags}")
        };
        let all = families.iter().flat_map(|family| {
            [true, false].map(|split| format!("{word} {family}{}", with(split)))
        });
        return Some(all.collect());
    }
    if let Some(label) = rest("adds the label ") {
        let label = label.strip_suffix(" to the connection")?;
        return Some(vec![format!("ct label set {label}")]);
    }
    for (verb, nft, between) in [
        ("deletes ", "delete", " from the set "),
        ("adds or renews ", "update", " in the set "),
        ("adds ", "add", " to the set "),
    ] {
        if let Some(rest) = rest(verb) {
            let (names, set) = rest.split_once(between)?;
            let names = list(names, "and")
                .into_iter()
                .map(|name| Some(field(name)?.0));
            let names = names.collect::<Option<Vec<_>>>()?.join(" . ");
            let (set, time) = match set.split_once(", with a timeout of ") {
                Some((set, time)) => (set, format!(" timeout {time}")),
                None => (set, String::new()),
            };
            return Some(vec![format!("{nft} {set} {{ {names}{time} }}")]);
        }
    }
    for (begin, operator) in [
        ("sets the bits ", "|"),
        ("inverts the bits ", "^"),
        ("clears all bits but ", "&"),
    ] {
        if let Some(rest) = rest(begin) {
            let (bits, name) = rest.split_once(" of ")?;
            let (name, _) = field(name)?;
            return Some(vec![format!("{name} set {name} {operator} {bits}")]);
        }
    }
    if let Some(rest) = rest("sets ") {
        let (name, value) = field(rest)?;
        let value = value.strip_prefix(" to ")?;
        let value = match field(value) {
            Some((other, "")) => other,
            _ => value,
        };
        return Some(vec![format!("{name} set {value}")]);
    }
    if let Some(rest) = rest("looks up ") {
        let (fields, rest) = masked_subject(rest)?;
        let rest = rest.strip_prefix("in the map ")?;
        let map = rest.strip_suffix(" and applies the verdict there, if there is one")?;
        return Some(vec![format!("{fields} vmap {map}")]);
    }
    let rest = rest("applies a verdict by ")?;
    let (rest, cases) = rest.split_once(": ")?;
    let rest = format!("{rest} ");
    let (fields, _) = masked_subject(&rest)?;
    let cases = cases.split("; ").map(|case| {
        let case = case.strip_prefix("for ")?;
        let (key, verdict) = case.rsplit_once(", ")?;
        let key = match key {
            "any other value" => "*".to_owned(),
            key => items(key, "or").concat(),
        };
        Some(format!("{key} : {verdict}"))
    });
    let cases = cases.collect::<Option<Vec<_>>>()?.join(", ");
    Some(vec![format!("{fields} vmap {{ {cases} }}")])
}

/// Returns the possible readings of a phrase in nft's language; `None` if it cannot be read.
pub(super) fn readings(phrase: &Phrase) -> Option<Vec<String>> {
    match (phrase.language, phrase.is_condition) {
        (Some(Language::Nft), _) => Some(vec![phrase.text.clone()]),
        (Some(_), _) => None,
        (None, true) => condition(&phrase.text),
        (None, false) => match phrase.packet.clone() {
            Some(range) => {
                let object = match phrase.text[range.clone()].ends_with("'s") {
                    true => "{}'s",
                    false => "{}",
                };
                let (before, after) = (&phrase.text[..range.start], &phrase.text[range.end..]);
                action(&format!("{before}{object}{after}"))
            }
            None => action(&phrase.text),
        },
    }
}
