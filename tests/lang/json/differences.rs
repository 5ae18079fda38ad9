//! The differences of nft 1.0.6.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Removes one difference of nft 1.0.6 at one place of both documents; returns whether it was found and both are
/// equal now.
pub(super) type RemoveDifference = fn(nft: &mut Value, chainwright: &mut Value) -> bool;

/// The differences of nft 1.0.6: the reason, and the numbers of places in the rulesets, listed in three ways, and in
/// the rules.
pub(super) const NFT_DIFFERENCES: &[(&str, RemoveDifference, usize, usize)] = &[
    (
        "omits the devices of a chain, without which it cannot be created",
        |nft, chainwright| only_ours(nft, chainwright, &["policy"], "dev"),
        87,
        0,
    ),
    (
        "omits the comment of a table or a chain",
        |nft, chainwright| {
            nft.get("expr").is_none() && only_ours(nft, chainwright, &["handle"], "comment")
        },
        54,
        0,
    ),
    (
        "writes arbitrary memory for a flag of a table",
        flags_of_table,
        24,
        0,
    ),
    ("omits that rules change a set", dynamic, 132, 2),
    (
        "writes types of sets whose length is that of an expression",
        typeof_,
        72,
        0,
    ),
    (
        "omits `auto-merge` of a set",
        |nft, chainwright| only_ours(nft, chainwright, &["type"], "auto-merge"),
        15,
        0,
    ),
    (
        "omits all statements of an element except the first",
        |nft, chainwright| {
            let kinds = ["counter", "limit", "quota", "ct count"];
            nft.get("val").is_some()
                && kinds
                    .iter()
                    .any(|kind| only_ours(nft, chainwright, &["val"], kind))
        },
        8,
        0,
    ),
    (
        "omits the level of a control group",
        |nft, chainwright| {
            nft["key"] == "cgroupv2" && only_ours(nft, chainwright, &["key"], "level")
        },
        15,
        0,
    ),
    (
        "omits numbers of synproxy that are 0",
        |nft, chainwright| {
            let mut zero = |key| chainwright[key] == 0 && only_ours(nft, chainwright, &[], key);
            zero("wscale") || zero("mss")
        },
        6,
        0,
    ),
    (
        "writes an element for a map as text, which it cannot parse",
        for_map,
        18,
        1,
    ),
    (
        "writes a chain without a name as text, which it cannot parse",
        rules_of_jump,
        15,
        0,
    ),
    (
        "writes large numbers as negative ones, which it reads as different numbers",
        large,
        5,
        0,
    ),
    ("writes 32-bit numbers as negative ones", of_32_bits, 9, 0),
    (
        "writes a shift that exists only to compare the field",
        shift,
        15,
        0,
    ),
    ("ports without their type", invalid_type, 12, 0),
    (
        "the first bytes of an address as its last ones",
        first_bytes,
        3,
        0,
    ),
    (
        "bytes of an option that belong to no field",
        unknown_field,
        3,
        5,
    ),
    (
        "changed bytes as the two bytes that are written",
        two_bytes,
        3,
        24,
    ),
    (
        "bytes as fields that are longer than these bytes",
        begun,
        0,
        2,
    ),
    ("the packet in a frame as any packet", frame, 0, 6),
    (SWAPPED, swapped, 0, 0),
];

/// Where the library writes other keys than nft, not just additional ones.
pub(super) const NEW_KEYS: &[&str] = &[
    "writes types of sets whose length is that of an expression",
    "writes a shift that exists only to compare the field",
    "bytes of an option that belong to no field",
    "changed bytes as the two bytes that are written",
    "bytes as fields that are longer than these bytes",
];

/// With numbers instead of names (`-n`).
pub(super) const SWAPPED: &str = "writes frame types and ARP operations with swapped bytes";

fn swapped(nft: &mut Value, chainwright: &mut Value) -> bool {
    let short = |value: &Value| value.as_u64().and_then(|number| u16::try_from(number).ok());
    let is_it = match (short(nft), short(chainwright)) {
        (Some(nft), Some(chainwright)) => nft != chainwright && nft == chainwright.swap_bytes(),
        _ => false,
    };
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

/// Removes a key that only the library writes, from an object in which nft has these keys.
fn only_ours(nft: &Value, chainwright: &mut Value, has: &[&str], key: &str) -> bool {
    let is_it =
        nft.is_object() && has.iter().all(|key| nft.get(key).is_some()) && nft.get(key).is_none();
    is_it
        && chainwright
            .as_object_mut()
            .is_some_and(|chainwright| chainwright.remove(key).is_some())
}

/// Removes the match of a frame's type that nft omits.
fn frame(nft: &mut Value, chainwright: &mut Value) -> bool {
    let (Value::Array(nft), Value::Array(chainwright)) = (nft, chainwright) else {
        return false;
    };
    let extra = json!({"payload": {"protocol": "ether", "field": "type"}});
    let is_it = chainwright.len() == nft.len() + 1 && chainwright[0]["match"]["left"] == extra;
    if is_it {
        chainwright.remove(0);
    }
    is_it
}

fn flags_of_table(nft: &mut Value, chainwright: &mut Value) -> bool {
    let (Some(nft), Some(chainwright)) = (nft.get_mut("table"), chainwright.get_mut("table"))
    else {
        return false;
    };
    let flags = &nft["flags"];
    let is_it = flags.is_string() && flags != "dormant" && chainwright["flags"] == "dormant";
    if is_it {
        nft["flags"] = json!("dormant");
    }
    is_it
}

fn typeof_(nft: &mut Value, chainwright: &mut Value) -> bool {
    let mut is_it = false;
    for key in ["type", "map"] {
        let is_typeof = chainwright
            .get(key)
            .is_some_and(|of| of.get("typeof").is_some());
        if is_typeof && nft.get(key).is_some_and(|of| *of != chainwright[key]) {
            nft[key] = chainwright[key].clone();
            is_it = true;
        }
    }
    is_it
}

fn dynamic(nft: &mut Value, chainwright: &mut Value) -> bool {
    if nft.get("type").is_none() {
        return false;
    }
    let Some(Value::Array(flags)) = chainwright.get_mut("flags") else {
        return false;
    };
    let found = flags.pop_if(|flag| flag == "dynamic").is_some();
    if flags.is_empty() {
        chainwright
            .as_object_mut()
            .map(|chainwright| chainwright.remove("flags"));
    }
    found
}

fn for_map(nft: &mut Value, chainwright: &mut Value) -> bool {
    let (Value::String(text), Some(map)) = (&*nft, chainwright.get("map")) else {
        return false;
    };
    let part = |key: &str| map[key].as_str().unwrap_or_default();
    let is_it = text.starts_with(&format!("{} {} {{ ", part("op"), part("map")));
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn rules_of_jump(nft: &mut Value, chainwright: &mut Value) -> bool {
    let is_it = ["jump", "goto"].iter().any(|word| {
        let text = nft.as_str().and_then(|text| text.strip_prefix(word));
        // One line for each rule, and those of its braces.
        let rules = chainwright[word]["rules"].as_array().map(Vec::len);
        text.is_some_and(|text| Some(text.lines().count() - 2) == rules)
    });
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn large(nft: &mut Value, chainwright: &mut Value) -> bool {
    let digits = chainwright
        .as_str()
        .and_then(|digits| digits.parse::<u64>().ok());
    let is_it = nft.as_i64().is_some_and(|number| number < 0)
        && digits.map(u64::cast_signed) == nft.as_i64();
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn of_32_bits(nft: &mut Value, chainwright: &mut Value) -> bool {
    let number = chainwright
        .as_u64()
        .and_then(|number| u32::try_from(number).ok());
    let number = number.map(|number| i64::from(number.cast_signed()));
    let is_it = number.is_some_and(|number| number < 0) && nft.as_i64() == number;
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn shift(nft: &mut Value, chainwright: &mut Value) -> bool {
    let is_it = nft.get(">>").is_some_and(|shift| shift[0] == *chainwright);
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn invalid_type(nft: &mut Value, chainwright: &mut Value) -> bool {
    let names = [("domain", 53), ("http", 80), ("ntp", 123), ("https", 443)];
    let named = |name: &str| names.iter().find(|(known, _)| *known == name);
    let number = match &*chainwright {
        Value::String(name) => named(name).map_or(0, |(_, number)| *number),
        chainwright => chainwright.as_u64().unwrap_or(0),
    };
    let is_it = nft.as_str() == Some(&format!("{number:#x} [invalid type]"));
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn first_bytes(nft: &mut Value, chainwright: &mut Value) -> bool {
    let prefix = json!({"prefix": {"addr": "198.51.100.0", "len": 24}});
    let is_it = nft == "0.198.51.100" && *chainwright == prefix;
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn unknown_field(nft: &mut Value, chainwright: &mut Value) -> bool {
    let number = match nft["name"].as_str() {
        Some("sack") => 5,
        Some("mptcp") => 30,
        _ => return false,
    };
    let is_it = nft["field"] == "unknown" && chainwright["base"] == number;
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn two_bytes(nft: &mut Value, chainwright: &mut Value) -> bool {
    let sport = json!({"payload": {"protocol": "th", "field": "sport"}});
    if nft.get("key") != Some(&sport) {
        return false;
    }
    let field = |protocol, field, value: Value| json!({"key": {"payload": {"protocol": protocol, "field": field}}, "value": value});
    let or = |mask, bits| json!({"|": [{"&": [sport, mask]}, bits]});
    let all = [
        (or(2303, 2048), field("icmp", "type", json!("echo-request"))),
        (
            or(33023, 32768),
            field("icmpv6", "type", json!("echo-request")),
        ),
        (
            or(4607, 4352),
            field("igmp", "type", json!("membership-query")),
        ),
        (
            json!({"&": [sport, 255]}),
            field("icmp", "type", json!("echo-reply")),
        ),
        (
            json!({"&": [sport, 65280]}),
            field("icmp", "code", json!("net-unreachable")),
        ),
        (
            json!({"&": [sport, 65280]}),
            field("icmpv6", "code", json!("no-route")),
        ),
        (json!({"&": [sport, 65280]}), field("igmp", "mrt", json!(0))),
        // The same with numbers instead of names.
        (or(2303, 2048), field("icmp", "type", json!(8))),
        (or(33023, 32768), field("icmpv6", "type", json!(128))),
        (or(4607, 4352), field("igmp", "type", json!(17))),
        (json!({"&": [sport, 255]}), field("icmp", "type", json!(0))),
        (
            json!({"&": [sport, 65280]}),
            field("icmp", "code", json!(0)),
        ),
        (
            json!({"&": [sport, 65280]}),
            field("icmpv6", "code", json!(0)),
        ),
    ];
    let is_it = all
        .iter()
        .any(|(wrong, right)| nft["value"] == *wrong && chainwright == right);
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

fn begun(nft: &mut Value, chainwright: &mut Value) -> bool {
    let matched =
        |left: Value, right: Value| json!({"match": {"op": "==", "left": left, "right": right}});
    let field = |field| json!({"payload": {"protocol": "ip6", "field": field}});
    let raw = |len| json!({"payload": {"base": "nh", "offset": 0, "len": len}});
    let prefix = json!({"prefix": {"addr": "af22", "len": 4}});
    let all = [
        (
            json!([
                matched(field("version"), json!(0)),
                matched(field("dscp"), json!("lephb")),
                matched(field("ecn"), json!("ect1"))
            ]),
            json!([matched(json!({"&": [raw(16), 0xfff0]}), json!(0x50))]),
        ),
        (
            json!([
                matched(field("version"), json!(0)),
                matched(field("dscp"), prefix)
            ]),
            json!([matched(raw(8), json!(5))]),
        ),
    ];
    let is_it = all
        .iter()
        .any(|(wrong, right)| nft == wrong && chainwright == right);
    if is_it {
        *nft = chainwright.clone();
    }
    is_it
}

/// Makes places of both documents equal where nft differs, and counts them.
pub(super) fn remove_differences(
    nft: &mut Value,
    chainwright: &mut Value,
    met: &mut BTreeMap<&'static str, usize>,
) {
    if nft == chainwright {
        return;
    }
    for (why, is_it, ..) in NFT_DIFFERENCES {
        while is_it(nft, chainwright) {
            *met.entry(why).or_default() += 1;
            if nft == chainwright {
                return;
            }
        }
    }
    match (nft, chainwright) {
        (Value::Object(nft), Value::Object(chainwright)) => {
            for (key, nft) in nft {
                if let Some(chainwright) = chainwright.get_mut(key) {
                    remove_differences(nft, chainwright, met);
                }
            }
        }
        (Value::Array(nft), Value::Array(chainwright)) if nft.len() == chainwright.len() => {
            for (nft, chainwright) in nft.iter_mut().zip(chainwright) {
                remove_differences(nft, chainwright, met);
            }
        }
        _ => {}
    }
}

/// Checks that all differences of nft occurred as often as expected.
#[track_caller]
pub(super) fn all_met(
    met: &BTreeMap<&str, usize>,
    expected: impl Fn(&(&str, RemoveDifference, usize, usize)) -> usize,
) {
    let expected = NFT_DIFFERENCES.iter().map(|each| (each.0, expected(each)));
    let expected: BTreeMap<&str, usize> = expected.filter(|(_, count)| *count > 0).collect();
    assert_eq!(*met, expected);
}
