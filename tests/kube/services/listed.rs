//! Converts `nft`'s listings of tables to a form for comparison.

use std::collections::{BTreeMap, BTreeSet};

/// Lines, each with its set or chain.
pub(crate) type Listed = BTreeSet<(String, String)>;

/// Converts the output of `nft list`. The lines of a chain have numbers; those of a set, one per element, have none,
/// because their order is the kernel's, as is that of sets and chains.
pub(crate) fn of_nft(text: &str) -> Listed {
    let mut listed = Listed::new();
    let (mut table, mut block, mut number) = ("", "", 0);
    let mut are_elements = false;
    for line in text.lines() {
        let depth = line.len() - line.trim_start_matches('\t').len();
        let line = line.trim();
        match (depth, line.ends_with('{')) {
            (_, _) if line.is_empty() || line == "}" => continue,
            // The owner follows the `#`.
            (0, _) => (table, block) = (line.split(" #").next().unwrap(), ""),
            (1, true) => (block, number) = (line, 0),
            _ => {
                let of = format!("{table} {block}");
                are_elements |= line.starts_with("elements = {");
                if are_elements {
                    let elements = line.trim_start_matches("elements = {");
                    let elements = elements.trim_end_matches('}').split(',').map(str::trim);
                    let elements = elements.filter(|element| !element.is_empty());
                    listed.extend(elements.map(|element| (of.clone(), element.to_owned())));
                    are_elements = !line.ends_with('}');
                    continue;
                }
                let line = match block.starts_with("chain ") {
                    true => format!("{number}: {line}"),
                    false => line.to_owned(),
                };
                listed.insert((of, line));
                number += 1;
                continue;
            }
        }
        listed.insert((format!("{table} {block}"), String::new()));
    }
    listed
}

/// Converts `nft`'s listing of the flat layout's table. The rules for source ranges have no fixed order.
pub(crate) fn of_flat(text: &str) -> Listed {
    let unordered = |(of, line): (String, String)| match line.split_once(": ") {
        Some((_, rule)) if of.ends_with("chain firewall {") => (of, rule.to_owned()),
        _ => (of, line),
    };
    of_nft(text).into_iter().map(unordered).collect()
}

/// Fails with the lines that only one of the two has, or if there are no lines to compare.
#[track_caller]
pub(crate) fn assert_same<L: Ord + std::fmt::Debug>(
    words: &dyn std::fmt::Debug,
    one: &BTreeSet<L>,
    other: &BTreeSet<L>,
) {
    assert!(!other.is_empty(), "{words:?}: nothing to compare");
    let missing: Vec<_> = other.difference(one).collect();
    let more: Vec<_> = one.difference(other).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "{words:?}: missing {missing:#?}, unexpected {more:#?}"
    );
}

/// The content of the flat layout's table, independent of the services' numbers and the endpoints' slots: a group is
/// named after the first address that refers to it, and endpoints are separated from slots.
pub(crate) fn canonical(listed: Listed) -> Listed {
    const SERVICE_MAPS: [&str; 4] = [
        "service-ips",
        "service-nodeports",
        "local-ips",
        "local-nodeports",
    ];
    let map = |of: &str| {
        let (_, map) = of.split_once("map ")?;
        Some(map.trim_end_matches(" {").to_owned())
    };
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    // The group of all endpoints and that of local ones belong to one service.
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for (of, line) in &listed {
        let is_service = map(of).is_some_and(|map| SERVICE_MAPS.contains(&&map[..]));
        let element = line.split_once(" : ").filter(|_| is_service);
        if let Some((key, group)) = element.and_then(|(key, v)| Some((key, number(v)?))) {
            names.entry(group / 2).or_insert_with(|| key.to_owned());
        }
    }
    let name = |text: &str| {
        let group = number(text)?;
        let which = ["all", "local"][group as usize % 2];
        Some(format!("{which} of {}", names.get(&(group / 2))?))
    };
    let mut all = Listed::new();
    for (of, line) in listed {
        let parts = map(&of).zip(line.split_once(" : "));
        let Some((map, (key, value))) = parts else {
            all.insert((of, line));
            continue;
        };
        let mut keys = key.splitn(2, " . ");
        let (first, second) = (keys.next().unwrap(), keys.next());
        let named = || name(first).unwrap_or_else(|| first.to_owned());
        let lines = match (&map[..], second) {
            (map, _) if SERVICE_MAPS.contains(&map) => {
                let value = name(value).unwrap_or_else(|| value.to_owned());
                vec![format!("{key} : {value}")]
            }
            ("groups", _) => vec![format!("{} : {value}", named())],
            ("endpoints" | "affinity-places", Some(place)) => {
                vec![
                    format!("{} . {place}", named()),
                    format!("{} : {value}", named()),
                ]
            }
            ("affinity-endpoints", Some(hash)) => vec![format!("{} . {hash} : {value}", named())],
            _ => vec![line],
        };
        all.extend(lines.into_iter().map(|line| (of.clone(), line)));
    }
    all
}
