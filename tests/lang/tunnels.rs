//! The inside of tunnels, and metadata of tunnel devices: sent, listed, and written as JSON as in nft 1.1.7.
//!
//! nft 1.0.6, with which everything else is compared, does not support these. `data/nft/tunnels.txt` contains what
//! 1.1.7 sends, lists and writes for each rule, or set, in an empty chain, in addition to the objects of [`setup`].
//!
//! ```text
//! === FAMILY RULE
//! listed TEXT      if it differs from RULE; for a set its lines, separated by ` | `
//! json EXPRESSIONS
//! refused          instead of both: by Linux 6.18
//! sent BYTES       without the batch's begin and end, as in `data/encodings`
//! ```

mod differences;
mod random;

use std::collections::BTreeMap;

use crate::common::encodings::unpack;
use crate::common::rulesets::data;
use crate::common::wire::{compared, readable};
use crate::common::{connect, sandbox};
use chainwright::netlink::{Attributes, Messages};
use chainwright::nft::{Connection, Scope, Snapshot};
use chainwright_lang::{Listing, Options, Part, Script};
use chainwright_testing::FakeKernel;
use chainwright_testing::Sandbox;
use differences::{
    IN_OTHER_ORDER, LISTED_DIFFERENTLY, NOT_IN_JSON, REDUNDANT_MATCH, SENT_DIFFERENTLY,
};
use serde_json::{Value, json};

/// nft 1.1.7's results for a text.
struct Case {
    family: String,
    text: String,
    listed: String,
    json: Option<Value>,
    sent: Vec<u8>,
}

impl Case {
    fn is_set(&self) -> bool {
        self.text.starts_with("set ") || self.text.starts_with("map ")
    }

    /// Its name, if it is a set.
    fn name(&self) -> &str {
        self.text.split(' ').nth(1).expect("no name")
    }

    /// The command that adds it.
    fn command(&self) -> String {
        let family = &self.family;
        match self.is_set() {
            true => {
                let (kind, rest) = self.text.split_once(' ').expect("no name");
                format!("add {kind} {family} t {rest}")
            }
            false => format!("add rule {family} t c {}", self.text),
        }
    }
}

fn cases() -> Vec<Case> {
    let text = data("nft/tunnels.txt");
    let cases = text.split("=== ").skip(1).map(|case| {
        let mut lines = case.trim_end().lines();
        let (family, text) = lines
            .next()
            .expect("a case has no text")
            .split_once(' ')
            .expect("a case has no family");
        let mut read = Case {
            family: family.to_owned(),
            text: text.to_owned(),
            listed: text.to_owned(),
            json: None,
            sent: Vec::new(),
        };
        for line in lines {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("listed", text) => read.listed = text.to_owned(),
                ("json", json) => read.json = Some(serde_json::from_str(json).expect("JSON")),
                ("sent", bytes) => read.sent = unpack(bytes).expect("invalid bytes"),
                ("refused", "") => {}
                other => panic!("{other:?}"),
            }
        }
        read
    });
    cases.collect()
}

/// The objects that exist in addition to each rule.
fn setup(family: &str) -> String {
    format!(
        "table {family} t {{
            set addresses {{ type ipv4_addr; flags dynamic,timeout; timeout 1h; size 65535; }}
            set networks {{ type ipv4_addr; flags interval; elements = {{ 10.0.0.0/8 }}; }}
            set numbers {{ typeof vxlan vni; elements = {{ 7, 9 }}; }}
            set pairs {{ typeof vxlan ip saddr . vxlan tcp dport; }}
            map marks {{ typeof geneve vni : meta mark; elements = {{ 3 : 4 }}; }}
            map verdicts {{ typeof gre ip saddr : verdict; elements = {{ 10.0.0.1 : drop }}; }}
            chain other {{ }}
            chain c {{ }}
        }}"
    )
}

fn apply(nft: &mut Connection, text: &str) -> Result<(), String> {
    let script = Script::parse("tunnels.nft", text).map_err(|error| error.to_string())?;
    execute(nft, &script)
}

fn execute(nft: &mut Connection, script: &Script) -> Result<(), String> {
    let now = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
    let change = script
        .transaction(Some(&now))
        .map_err(|error| error.to_string())?;
    nft.commit(change.transaction())
        .map_err(|error| error.to_string())
}

/// The messages of a script in the form for comparison, without the batch's begin and end.
fn messages(now: &Snapshot, script: &Script) -> Result<Vec<Vec<u8>>, String> {
    let change = script
        .transaction(Some(now))
        .map_err(|error| error.to_string())?;
    Ok(bare(&change.transaction().datagram(<[u8]>::to_vec)))
}

fn bare(sent: &[u8]) -> Vec<Vec<u8>> {
    const BEGIN_AND_END: [u16; 2] = [0x10, 0x11];
    let mut numbered = sent.to_vec();
    let (mut at, mut sequence) = (0, 0_u32);
    // nft 1.1.7 gives a set and its elements one number.
    for message in Messages::new(sent) {
        let length = message.expect("incomplete message").raw.len();
        sequence += 1;
        numbered[at + 8..at + 12].copy_from_slice(&sequence.to_ne_bytes());
        at += length.next_multiple_of(4);
    }
    let (mut messages, _) = compared(&numbered);
    messages.retain(|message| !BEGIN_AND_END.contains(&kind(message)));
    messages
        .iter()
        .map(|message| without_notes(message))
        .collect()
}

/// Removes nft's user data about anonymous sets, of which 1.1.7 writes more than 1.0.6, and their size, which it no
/// longer sends: the kernel uses neither.
fn without_notes(message: &[u8]) -> Vec<u8> {
    const NEW_SET: u16 = 0xa09;
    const NAME: u16 = 2;
    const DESCRIPTION: u16 = 9;
    const SIZE: u16 = 1;
    const USER_DATA: u16 = 13;
    let (head, attributes) = message.split_at(20);
    let name = Attributes::new(attributes).find(NAME);
    if kind(message) != NEW_SET || !name.is_some_and(|name| name.starts_with(b"__")) {
        return message.to_vec();
    }
    let mut out = Vec::new();
    let put = |out: &mut Vec<u8>, kind: [u8; 2], value: &[u8]| {
        out.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        out.extend_from_slice(&kind);
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
    };
    for attribute in Attributes::new(attributes) {
        let attribute = attribute.expect("incomplete attribute");
        let head = [attribute.raw[2], attribute.raw[3]];
        match attribute.kind {
            USER_DATA => {}
            DESCRIPTION => {
                let mut left = Vec::new();
                for part in Attributes::new(attribute.payload) {
                    let part = part.expect("incomplete attribute");
                    if part.kind != SIZE {
                        put(&mut left, [part.raw[2], part.raw[3]], part.payload);
                    }
                }
                if !left.is_empty() {
                    put(&mut out, head, &left);
                }
            }
            _ => put(&mut out, head, attribute.payload),
        }
    }
    let mut message = [head, &out].concat();
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

fn kind(message: &[u8]) -> u16 {
    u16::from_ne_bytes([message[4], message[5]])
}

/// Removes the elements of sets, which are listed in their own order.
fn without_elements(mut messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    const NEW_ELEMENTS: u16 = 0xa0c;
    messages.retain(|message| kind(message) != NEW_ELEMENTS);
    messages
}

fn of_text(now: &Snapshot, text: &str) -> Result<Vec<Vec<u8>>, String> {
    let script = Script::parse("tunnels.nft", text).map_err(|error| error.to_string())?;
    messages(now, &script)
}

fn differing(real: &[Vec<u8>], chainwright: &[Vec<u8>]) -> Option<String> {
    let all = |messages: &[Vec<u8>]| {
        let each = messages.iter().map(|message| readable(message));
        each.collect::<String>()
    };
    (real != chainwright).then(|| format!("nft {}ours {}", all(real), all(chainwright)))
}

/// The ruleset of [`setup`] in each family.
fn setups() -> BTreeMap<String, Snapshot> {
    let families = ["ip", "ip6", "inet", "netdev", "bridge"];
    let made = families.map(|family| {
        let mut nft = FakeKernel::new()
            .connect()
            .expect("cannot create a fake kernel");
        apply(&mut nft, &setup(family)).expect("the kernel rejects the ruleset");
        (
            family.to_owned(),
            nft.snapshot(Scope::all()).expect("cannot read the ruleset"),
        )
    });
    made.into()
}

#[track_caller]
fn nothing_else(what: &str, wrong: &[String]) {
    if let Ok(path) = std::env::var("CHAINWRIGHT_WRONG") {
        std::fs::write(format!("{path}/{what}"), wrong.join("\n")).expect("cannot write the file");
    }
    let first_wrong = wrong.iter().take(20).cloned().collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} {what}\n{}",
        wrong.len(),
        first_wrong.join("\n")
    );
}

#[test]
fn tunnel_rules_are_sent_like_nft() {
    let (cases, setups) = (cases(), setups());
    assert!(cases.len() > 250, "{}", cases.len());
    let (mut wrong, mut otherwise) = (Vec::new(), 0);
    for case in &cases {
        let chainwright = of_text(&setups[&case.family], &case.command());
        let differs = match chainwright {
            Ok(chainwright) => differing(&bare(&case.sent), &chainwright),
            Err(error) => Some(error),
        };
        match differs {
            Some(_) if SENT_DIFFERENTLY.iter().any(|(text, _)| *text == case.text) => {
                otherwise += 1
            }
            Some(how) => wrong.push(format!("{} {}\n{how}", case.family, case.text)),
            None => {}
        }
    }
    nothing_else("sent differently", &wrong);
    assert_eq!(otherwise, SENT_DIFFERENTLY.len());
}

/// The lines of a set's block, or the only rule of the chain `c`.
fn listed(snapshot: &Snapshot, case: &Case) -> String {
    let options = Options::default();
    let text = Listing::new(snapshot, &options).to_string();
    let begin = match case.is_set() {
        true => format!(
            "\t{} {{\n",
            &case.text[..case.text.find(" {").expect("no block")]
        ),
        false => "\tchain c {\n".to_owned(),
    };
    let (_, block) = text.split_once(&begin).expect("the set is not listed");
    let (block, _) = block.split_once("\n\t}").unwrap_or_default();
    let lines: Vec<&str> = block.lines().map(str::trim).collect();
    lines.join(" | ")
}

/// The expressions of the only rule of the chain `c`, or a set.
fn json_of(snapshot: &Snapshot, case: &Case) -> Value {
    let options = Options::default();
    let listing = Listing::new(snapshot, &options).part(Part::All).json();
    let document: Value = serde_json::from_str(&listing.to_string()).expect("invalid JSON");
    let objects = document["nftables"].as_array().expect("not a list");
    for object in objects {
        if case.is_set() {
            let kind = &case.text[..3];
            if object[kind]["name"] == case.name() {
                let mut set = object[kind].clone();
                set.as_object_mut().expect("not an object").remove("handle");
                return set;
            }
        } else if object["rule"]["chain"] == "c" {
            return object["rule"]["expr"].clone();
        }
    }
    panic!("{}: {document}", case.text);
}

/// Applies a case in the kernel, in addition to the existing objects.
fn make(case: &Case, kernel: &Sandbox) -> Result<Snapshot, String> {
    let mut nft = connect(kernel);
    let script = format!("flush ruleset\n{}", setup(&case.family));
    apply(&mut nft, &script).expect("the kernel rejects the ruleset");
    apply(&mut nft, &case.command())?;
    Ok(nft.snapshot(Scope::all()).expect("cannot read the ruleset"))
}

/// The parts that do not give the same instructions and sets as the case.
fn is_again(
    case: &Case,
    now: &Snapshot,
    what: &str,
    again: Result<Vec<Vec<u8>>, String>,
) -> Result<(), String> {
    let first = of_text(now, &case.command()).map(without_elements)?;
    let again = again.map_err(|error| format!("{what}\n{error}"))?;
    match differing(&first, &without_elements(again)) {
        Some(how) if case.text != IN_OTHER_ORDER => Err(format!("{what}\n{how}")),
        _ => Ok(()),
    }
}

/// The listing also creates the same rule again.
#[test]
fn tunnel_rules_are_listed_like_nft() {
    let (setups, kernel) = (setups(), sandbox());
    let (mut wrong, mut otherwise, mut refused) = (Vec::new(), [0; LISTED_DIFFERENTLY.len()], 0);
    for case in &cases() {
        let snapshot = match (make(case, &kernel), &case.json) {
            (Ok(snapshot), Some(_)) => snapshot,
            (Err(error), None) if error.contains("ENOENT") => {
                refused += 1;
                continue;
            }
            (made, _) => panic!("{} {}: {:?}", case.family, case.text, made.err()),
        };
        let chainwright = listed(&snapshot, case);
        let real = case.listed.replace(REDUNDANT_MATCH, "gre");
        if chainwright != real {
            let mut known = LISTED_DIFFERENTLY.iter();
            match known
                .position(|(printed, instead, _)| real.replace(printed, instead) == chainwright)
            {
                Some(index) => otherwise[index] += 1,
                None => wrong.push(format!(
                    "{} {}\nnft  {real}\nours {chainwright}",
                    case.family, case.text
                )),
            }
        }
        if !case.is_set() {
            let now = &setups[&case.family];
            let again = of_text(now, &format!("add rule {} t c {chainwright}", case.family));
            wrong.extend(is_again(case, now, &chainwright, again).err());
        }
    }
    nothing_else("listed differently", &wrong);
    assert!(otherwise.iter().all(|count| *count > 0), "{otherwise:?}");
    // Tunnel keys outside of netdev tables.
    assert_eq!(refused, 5);
}

/// nft's JSON creates the same rule again, as does the library's.
#[test]
fn tunnel_rules_as_json_match_nft() {
    let (setups, kernel) = (setups(), sandbox());
    let (mut wrong, mut same) = (Vec::new(), 0);
    for case in &cases() {
        let Some(mut real) = case.json.clone() else {
            continue;
        };
        let snapshot = make(case, &kernel).expect("the kernel rejects the ruleset");
        let chainwright = json_of(&snapshot, case);
        if case.listed.starts_with(REDUNDANT_MATCH) {
            real.as_array_mut().expect("not a list").remove(0);
        }
        // For sets declared with expressions the library writes types, as nft 1.0.6 does.
        let mut written = match case.is_set() {
            true if NOT_IN_JSON.contains(&case.name()) => Vec::new(),
            true => vec![&real],
            false => vec![&chainwright],
        };
        // A difference in text is a difference in JSON, too.
        if !case.is_set() && case.listed.replace(REDUNDANT_MATCH, "gre") == listed(&snapshot, case)
        {
            same += 1;
            written.push(&real);
            if chainwright != real {
                wrong.push(format!(
                    "{} {}\nnft  {real}\nours {chainwright}",
                    case.family, case.text
                ));
            }
        }
        let now = &setups[&case.family];
        for written in written {
            let object = match case.is_set() {
                true => json!({ &case.text[..3]: written }),
                false => json!({"rule": {
                    "family": case.family, "table": "t", "chain": "c", "expr": written,
                }}),
            };
            let script = Script::from_json(&json!({"nftables": [{"add": object}]}));
            let again = script.map_err(|error| error.to_string());
            let again = again.and_then(|script| messages(now, &script));
            let what = format!("{} {written}", case.text);
            wrong.extend(is_again(case, now, &what, again).err());
        }
    }
    nothing_else("written differently", &wrong);
    assert!(same > 400, "{same}");
}

/// Tunnel objects: their blocks and JSON as listed and written by 1.1.7. It lists one without options with an extra
/// brace, and crashes on one without a source.
const OBJECTS: &[(&str, &str)] = &[
    (
        "id 10\nip6 saddr ::1\nip6 daddr ::2\nttl 255\nvxlan {\n\tgbp 7\n}",
        r#""id":10,"src-ipv6":"::1","dst-ipv6":"::2","sport":0,"dport":0,"tos":0,"ttl":255,"type":"vxlan","tunnel":{"gbp":7}"#,
    ),
    (
        "id 10\nip6 saddr ::1\nip6 daddr ::2\nttl 255\nerspan {\n\tversion 1\n\tindex 3\n}",
        r#""id":10,"src-ipv6":"::1","dst-ipv6":"::2","sport":0,"dport":0,"tos":0,"ttl":255,"type":"erspan","tunnel":{"version":1,"index":3}"#,
    ),
    (
        "id 10\nip saddr 1.2.3.4\nip daddr 1.1.1.1\nttl 255\nerspan {\n\tversion 2\n\tdirection ingress\n\tid 3\n}",
        r#""id":10,"src-ipv4":"1.2.3.4","dst-ipv4":"1.1.1.1","sport":0,"dport":0,"tos":0,"ttl":255,"type":"erspan","tunnel":{"version":2,"dir":"ingress","hwid":3}"#,
    ),
    (
        "id 10\nip saddr 1.2.3.4\nip daddr 1.1.1.1\nttl 255\n\
         geneve {\n\tclass 0x1010 opt-type 0x1 data \"0x12345678\"\n\tclass 0x2020 opt-type 0x2 data \"0x8765432187654321\"\n}",
        r#""id":10,"src-ipv4":"1.2.3.4","dst-ipv4":"1.1.1.1","sport":0,"dport":0,"tos":0,"ttl":255,"type":"geneve","tunnel":[{"class":4112,"opt-type":1,"data":"0x12345678"},{"class":8224,"opt-type":2,"data":"0x8765432187654321"}]"#,
    ),
    (
        "id 10\nip saddr 1.2.3.4\nip daddr 4.3.2.1\nsport 10\ndport 20\ntos 3\nttl 64",
        r#""id":10,"src-ipv4":"1.2.3.4","dst-ipv4":"4.3.2.1","sport":10,"dport":20,"tos":3,"ttl":64"#,
    ),
];

#[test]
fn tunnel_objects_are_listed_like_nft() {
    let kernel = sandbox();
    for (entries, json) in OBJECTS {
        let lines: String = entries
            .lines()
            .map(|line| format!("\t\t{line}\n"))
            .collect();
        let text = format!(
            "table netdev t {{\n\ttunnel x {{\n{lines}\t}}\n\n\tchain c {{\n\t\ttunnel name \"x\"\n\t}}\n}}\n"
        );
        let json = format!(r#"{{"family":"netdev","name":"x","table":"t",{json}}}"#);
        let mut nft = connect(&kernel);
        let mut listed = |text: &str| {
            apply(&mut nft, &format!("flush ruleset\n{text}"))
                .expect("the kernel rejects the ruleset");
            nft.snapshot(Scope::all()).expect("cannot read the ruleset")
        };
        let snapshot = listed(&text);
        let options = Options::default();
        assert_eq!(Listing::new(&snapshot, &options).to_string(), text);
        let written = Listing::new(&snapshot, &options).json().to_string();
        let document: Value = serde_json::from_str(&written).expect("invalid JSON");
        let objects = document["nftables"].as_array().expect("not a list");
        let find = |kind: &str| {
            objects
                .iter()
                .find_map(|object| object.get(kind))
                .expect(kind)
        };
        let mut tunnel = find("tunnel").clone();
        tunnel
            .as_object_mut()
            .expect("not an object")
            .remove("handle");
        let real: Value = serde_json::from_str(&json).expect("invalid JSON");
        assert_eq!(tunnel, real);
        assert_eq!(find("rule")["expr"], json!([{"tunnel": "x"}]));
        // And back.
        let mut nft = connect(&kernel);
        apply(&mut nft, "flush ruleset").expect("the kernel rejects the ruleset");
        let script = Script::parse_json("tunnels.json", &written).expect("cannot parse the JSON");
        execute(&mut nft, &script).expect("the kernel rejects the ruleset");
        let again = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
        assert_eq!(Listing::new(&again, &options).to_string(), text);
    }
}
