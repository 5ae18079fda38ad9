//! Seeds: the data of the tests, in each target's form. Nothing is stored twice; the files that cargo-fuzz needs are
//! written on request.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainwright::iptables::nft::{Encoder, Profile};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Counters, Family, Rule, Target as RuleTarget};
use chainwright::netlink::{Attributes, Message, MessageWriter, Messages, NfGenMsg};
use chainwright::nft::{self, RuleRef, Scope, Snapshot, Transaction};
use sha2::{Digest, Sha256};

use crate::Target;
use crate::targets;

/// The checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads a file of the checkout.
///
/// # Panics
/// If it does not exist: the targets require a checkout.
#[must_use]
pub fn file(path: &str) -> Vec<u8> {
    let path = root().join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a directory of the checkout whose names have this ending, sorted.
fn files(directory: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root().join(directory)];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.to_str().is_some_and(|path| path.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn texts(directory: &str, end: &str) -> Vec<String> {
    let read = |path: PathBuf| fs::read_to_string(&path).unwrap_or_default();
    files(directory, end).into_iter().map(read).collect()
}

/// The rules of `tests/rules`.
fn rules() -> Vec<String> {
    let all = texts("tests/rules", ".rules");
    let lines = all.iter().flat_map(|text| text.lines());
    let rules = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '$', '@']));
    rules.map(str::to_owned).collect()
}

/// The same, parsed, for the families that accept them.
fn parsed() -> Vec<(Family, Rule)> {
    let mut all = Vec::new();
    for line in rules() {
        for family in [Family::Ipv4, Family::Ipv6] {
            if let Ok(mut rule) = Rule::parse(family, &line)
                && rule
                    .resolve_sets(family, &mut targets::FakeSetNames)
                    .is_ok()
            {
                all.push((family, rule));
            }
        }
    }
    all
}

/// The messages of a transaction without begin and end, in the form in which the kernel lists them.
fn messages(tx: &mut Transaction) -> Vec<u8> {
    tx.datagram(|datagram| {
        let all: Vec<_> = Messages::new(datagram).flatten().collect();
        let inner = all.get(1..all.len().saturating_sub(1)).unwrap_or_default();
        inner
            .iter()
            .flat_map(|message| message.raw)
            .copied()
            .collect()
    })
}

/// The rules of `tests/rules` as messages, in all forms.
fn encoded_rules() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (family, rule) in parsed() {
        for profile in [Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10] {
            let mut encoded = nft::Rule::new(family.into(), "filter", "INPUT");
            encoded.handle = Some(1);
            let encoder = Encoder { family, profile };
            if encoder
                .fill(&mut encoded, &rule, Counters::default())
                .is_ok()
            {
                let mut tx = Transaction::new();
                if tx.add(&encoded).is_ok() {
                    all.push(messages(&mut tx));
                }
            }
        }
    }
    all
}

/// Captured batches that kube-proxy sent to the kernel.
fn batches() -> Vec<Vec<u8>> {
    let read = |path: PathBuf| fs::read(path).unwrap_or_default();
    let files = files("examples/demo/src/kube-proxy", ".batch");
    files.into_iter().map(read).collect()
}

/// The individual messages.
fn single(streams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let all = streams
        .iter()
        .flat_map(|stream| Messages::new(stream).flatten());
    all.map(|message| message.raw.to_vec()).collect()
}

/// The payloads of the attribute of this type in each message.
fn attribute(messages: &[Vec<u8>], message_kind: u16, kind: u16) -> Vec<Vec<u8>> {
    let payload = |bytes: &Vec<u8>| {
        let (message, _) = Message::split(bytes).ok()?;
        let (_, attributes) = message.nfgenmsg().ok()?;
        let wanted = message.kind & 0xff == message_kind;
        let found = Attributes::new(attributes).find(kind).filter(|_| wanted)?;
        Some(found.to_vec())
    };
    messages.iter().filter_map(payload).collect()
}

/// Types of messages and attributes of `linux/netfilter/nf_tables.h`.
const NEWRULE: u16 = 6;
const NEWSETELEM: u16 = 12;
const RULE_EXPRESSIONS: u16 = 4;
const SET_ELEM_LIST_ELEMENTS: u16 = 3;

/// Every object in a snapshot, as JSON.
fn json(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for message in Messages::new(stream).flatten() {
        let json = match message.kind & 0xff {
            0 => nft::TableRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            3 => nft::ChainRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            NEWRULE => RuleRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            9 => nft::SetRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            NEWSETELEM => nft::ElementsRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            18 => nft::StatefulObjectRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            22 => nft::FlowtableRef::parse(&message)
                .ok()
                .and_then(|v| serde_json::to_string_pretty(&v.to_builder()).ok()),
            _ => None,
        };
        all.extend(json.map(String::into_bytes));
    }
    all
}

/// Legacy tables, each preceded by the byte for the family.
fn legacy_tables() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for path in files("tests/data/legacy", ".bin") {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let family = ["ipv4", "ipv6", "arp"]
            .iter()
            .position(|family| name.starts_with(family));
        let family = family.unwrap_or_default() as u8;
        all.push([&[family], &fs::read(&path).unwrap_or_default()[..]].concat());
    }
    // One table with each of the rules.
    for (position, family, name) in [
        (0, Family::Ipv4, "ipv4-nat-initial.bin"),
        (1, Family::Ipv6, "ipv6-filter-initial.bin"),
    ] {
        let legacy = [
            chainwright::legacy::Family::Ipv4,
            chainwright::legacy::Family::Ipv6,
        ][position];
        let bytes = file(&format!("tests/data/legacy/{name}"));
        let (info, entries) = bytes.split_at(targets::iptables_legacy::info_length(legacy));
        let table = chainwright::legacy::Info::from_bytes(legacy, info)
            .and_then(|info| chainwright::legacy::Table::from_bytes(info, entries))
            .expect("invalid captured table");
        let tables = [(family, table)];
        let table = if position == 0 { "nat" } else { "filter" };
        for line in rules() {
            let text = format!("*{table}\n:other - [0:0]\n:user - [0:0]\n-A user {line}\nCOMMIT\n");
            let options = RestoreOptions {
                noflush: true,
                ..RestoreOptions::default()
            };
            if let Ok((_, replacements)) =
                chainwright::fuzzing::restore_in_memory(&tables, text, &options)
            {
                for replacement in replacements.into_iter().flatten() {
                    all.push(legacy_input(position as u8, &replacement));
                }
            }
        }
    }
    all
}

/// A table in the form in which the kernel describes and sends it.
fn legacy_input(family: u8, replacement: &chainwright::legacy::Replacement) -> Vec<u8> {
    use chainwright::legacy::Hook;
    let info = replacement.info();
    let mut bytes = vec![family];
    let mut name = replacement.name().to_string().into_bytes();
    name.resize(32, 0);
    bytes.extend(name);
    bytes.extend(info.valid_hooks().to_ne_bytes());
    let hooks = [
        Hook::Prerouting,
        Hook::Input,
        Hook::Forward,
        Hook::Output,
        Hook::Postrouting,
    ];
    for places in [
        hooks.map(|hook| info.hook_entry(hook)),
        hooks.map(|hook| info.underflow(hook)),
    ] {
        for place in places {
            bytes.extend(place.unwrap_or_default().to_ne_bytes());
        }
    }
    bytes.extend(info.num_entries().to_ne_bytes());
    bytes.extend(info.size().to_ne_bytes());
    bytes.extend(replacement.entries());
    bytes
}

/// Each match and target of the rules.
fn extensions() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (family, rule) in parsed() {
        let ipv6 = family == Family::Ipv6;
        for one in &rule.matches {
            if let Ok(encoded) = one.encode(family) {
                all.push(targets::extension::input(ipv6, false, &encoded));
            }
        }
        if let RuleTarget::Extension(target) = &rule.target
            && let Ok(encoded) = target.encode(family)
        {
            all.push(targets::extension::input(ipv6, true, &encoded));
        }
    }
    all
}

/// Texts for restoring: complete ones that are short, and each rule in a separate one.
fn restore_texts() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for text in texts("tests/data", ".save") {
        all.extend((text.len() < 32_768).then(|| text.into_bytes()));
    }
    for some in rules().chunks(4) {
        let lines: String = some.iter().map(|line| format!("-A own {line}\n")).collect();
        for table in ["filter", "nat", "mangle"] {
            let text = format!("*{table}\n:own - [1:2]\n:user - [0:0]\n:other -\n{lines}COMMIT\n");
            all.push(text.into_bytes());
        }
    }
    all.extend([
        b"*filter\n:INPUT DROP [5:6]\n-N own\n-I INPUT 1 -s 1.2.3.4,5.6.7.8 -j own\n-E own other\n\
          -P FORWARD DROP\n-D INPUT 1\n-Z\n-F INPUT\n-X other\nCOMMIT\n"
            .to_vec(),
        b"# comment\n*nat\n[1:2] -A OUTPUT -m comment --comment \"two \\\" words\" -j RETURN\nCOMMIT\n".to_vec(),
    ]);
    all
}

/// Scripts of nft: rulesets, and a few rules of each kind.
fn nft_texts() -> Vec<Vec<u8>> {
    let mut all: Vec<String> = texts("tests/rulesets", ".nft");
    all.retain(|text| text.len() < 8192);
    for text in texts("tests/data/nft", ".nft") {
        let lines: Vec<&str> = text.lines().collect();
        let rules = lines.iter().filter(|line| line.starts_with("\t\t"));
        let rules: Vec<_> = rules.step_by(7).collect();
        for some in rules.chunks(4) {
            let some: String = some.iter().map(|line| format!("{line}\n")).collect();
            all.push(format!("table inet t {{\n\tchain c {{\n{some}\t}}\n}}\n"));
        }
    }
    all.into_iter().map(String::into_bytes).collect()
}

/// Texts with jumps in a cycle, to missing chains, and through maps.
fn graph_texts() -> Vec<Vec<u8>> {
    let whole = [
        "table inet t {\n\tmap m { type inet_service : verdict; elements = { 1 : jump a, 2 : goto b, 9 : drop } }\n\
         \tchain in { type filter hook input priority 0; policy drop; tcp dport vmap @m; udp dport vmap { 7 : jump a }; \
         jump c; }\n\tchain a { goto b; }\n\tchain b { counter comment \"of b\"; }\n\tchain c { jump { jump a; }; }\n}\n",
        "table ip t { flags dormant; chain a { jump b; }; chain b { jump a; jump gone; }; chain c { jump c; }; }\n",
        "*filter\n:INPUT DROP\n:A -\n:B -\n-A INPUT -s 10.0.0.1,10.0.0.2 -j A\n-A A -g B\n-A B -j A\n-A B -j GONE\nCOMMIT\n",
    ];
    let services =
        (0..9).map(|n| format!(":KUBE-SVC-{n:016} -\n-A KUBE-SERVICES -j KUBE-SVC-{n:016}\n"));
    let services: String = services.collect();
    let services =
        format!("*nat\n:KUBE-SERVICES -\n{services}-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n");
    let whole = whole.map(|text| text.as_bytes().to_vec());
    whole.into_iter().chain([services.into_bytes()]).collect()
}

/// Documents of libnftables' JSON: one with an object of each kind, and many with an error.
fn documents() -> Vec<Vec<u8>> {
    let wrong = texts("tests/data/nft", "wrong_json.txt");
    let wrong = wrong.iter().flat_map(|text| text.split("=== ").skip(1));
    let wrong = wrong.filter_map(|case| Some(case.split_once('\n')?.1.split_once("---\n")?.0));
    let right = texts("tests/data/nft", "objects.json");
    let wrong = wrong.map(|json| json.as_bytes().to_vec());
    wrong
        .chain(right.into_iter().map(String::into_bytes))
        .collect()
}

/// The seeds of a target, given the kernel's listings.
#[must_use]
pub fn all(target: &Target, kernel_listings: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let streams = || [batches(), kernel_listings.to_vec()].concat();
    let one_by_one = || [single(&streams()), encoded_rules()].concat();
    let found = match target.name {
        "netlink" => [streams(), single(&batches()), replies()].concat(),
        "nft_objects" | "iptables_nft" => one_by_one(),
        "nft_expressions" => attribute(&one_by_one(), NEWRULE, RULE_EXPRESSIONS),
        "nft_elements" => attribute(&one_by_one(), NEWSETELEM, SET_ELEM_LIST_ELEMENTS),
        "nft_events" => {
            let streams = streams().into_iter();
            streams
                .map(|stream| targets::nft_events::transactions(&stream))
                .collect()
        }
        "nft_json" => {
            let objects = streams().iter().flat_map(|stream| json(stream)).collect();
            [objects, documents()].concat()
        }
        "snapshot" => {
            let files = streams().into_iter().map(|stream| {
                let count = Messages::new(&stream).count() as u64;
                targets::snapshot::file(&stream, count)
            });
            let files: Vec<_> = files.collect();
            [streams(), files].concat()
        }
        "record" => {
            let streams = streams().into_iter();
            let transactions: Vec<_> = streams
                .map(|stream| targets::nft_events::transactions(&stream))
                .collect();
            let files = transactions
                .iter()
                .map(|messages| targets::record::file(messages));
            [transactions.clone(), files.collect()].concat()
        }
        "iptables_legacy" => legacy_tables(),
        "extension" => extensions(),
        "rule_text" => {
            let rules = rules().into_iter();
            rules
                .flat_map(|line| [format!("-A INPUT {line}"), line])
                .map(String::into_bytes)
                .collect()
        }
        "restore_text" => restore_texts(),
        "nft_text" => nft_texts(),
        "graph_text" => [restore_texts(), nft_texts(), graph_texts()].concat(),
        "ipset" => (0..3)
            .map(|n| {
                let mut answer = vec![n; 44];
                answer[12..16].copy_from_slice(b"set\0");
                answer
            })
            .collect(),
        "conntrack" => conntrack_entries(),
        _ => Vec::new(),
    };
    let mut seeds: Vec<_> = found
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    seeds.extend(findings(target));
    seeds
}

/// Conntrack entries as the kernel lists them: IPv4 with ports, IPv6 with ICMP, and one with all attributes.
fn conntrack_entries() -> Vec<Vec<u8>> {
    let v4 = |bytes: [u8; 4]| bytes.to_vec();
    let v6 = |last: u8| [[0xfd; 15].as_slice(), &[last]].concat();
    let mut all = Vec::new();
    for (family, addresses, protocol) in [
        (2, [(1, v4([10, 0, 0, 1])), (2, v4([10, 96, 0, 10]))], 6),
        (2, [(1, v4([10, 0, 0, 1])), (2, v4([10, 96, 0, 10]))], 17),
        (2, [(1, v4([10, 0, 0, 1])), (2, v4([10, 96, 0, 10]))], 50),
        (10, [(3, v6(1)), (4, v6(2))], 58),
    ] {
        let mut message = Vec::new();
        let header = NfGenMsg {
            family,
            resource: 0,
        };
        let mut writer = MessageWriter::nfnetlink(&mut message, 0x100, 2, 1, header);
        for tuple in [1, 2, 14] {
            writer.nested(tuple, |writer| {
                writer.nested(1, |writer| {
                    for (kind, address) in &addresses {
                        writer.bytes(*kind, address);
                    }
                });
                writer.nested(2, |writer| {
                    writer.u8(1, protocol);
                    match protocol {
                        58 => writer.be16(7, 5).u8(8, 128).u8(9, 0),
                        50 => writer,
                        _ => writer.be16(2, 4000).be16(3, 53),
                    };
                });
                writer.be16(3, 7);
            });
        }
        writer
            .be32(3, 0x18e)
            .be32(7, 60)
            .be32(8, 0x4000)
            .be32(11, 1)
            .be32(12, 99);
        writer.nested(4, |writer| {
            _ = writer.nested(1, |writer| _ = writer.u8(1, 3))
        });
        writer.nested(5, |writer| _ = writer.string(1, b"ftp"));
        for counters in [9, 10] {
            writer.nested(counters, |writer| _ = writer.be64(1, 3).be64(2, 400));
        }
        writer.be16(18, 5);
        writer.nested(20, |writer| _ = writer.be64(1, 1 << 60));
        writer.bytes(22, &[1; 16]);
        assert!(writer.finish().is_ok());
        all.push(message.split_off(16));
    }
    all
}

/// Replies to a batch: acknowledgements, refusals, the end of a dump.
fn replies() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (kind, error) in [(2_u16, 0_i32), (2, -2), (3, 0), (3, -4)] {
        let mut datagram = Vec::new();
        for sequence in 1..4_u32 {
            let mut writer =
                chainwright::netlink::MessageWriter::new(&mut datagram, kind, 0x300, sequence);
            let mut body = error.to_ne_bytes().to_vec();
            body.extend([20, 0, 0, 0, 6, 10, 5, 0]);
            body.extend(sequence.to_ne_bytes());
            body.extend([0; 4]);
            writer.encoded(&body);
            writer.string(1, b"why").be32(2, 20);
            let _ = writer.finish();
        }
        all.push(datagram);
    }
    all
}

/// Earlier findings.
fn findings(target: &Target) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("findings")
        .join(target.name);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path()).ok())
        .collect()
}

/// The kernel's listings of the rulesets in `tests/rulesets`, each loaded by nft into its own sandbox: streams of
/// messages. Reports missing ones on standard error.
#[must_use]
pub fn kernel_listings() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut missing = None;
    for path in files("tests/rulesets", ".nft") {
        match listed(&path) {
            Ok(Some(stream)) => all.push(stream),
            Ok(None) => {} // this kernel does not accept it
            Err(error) => missing = Some(error),
        }
    }
    if let Some(error) = missing {
        eprintln!("skipping seeds that require nft and network namespaces: {error}");
    }
    all
}

/// The kernel's listing of a ruleset; `None` if the kernel does not accept it.
fn listed(path: &Path) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    let sandbox = chainwright_testing::Sandbox::new()?;
    sandbox.run(|| {
        let loaded = Command::new("nft")
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .arg("-f")
            .arg(path)
            .stderr(Stdio::null())
            .status()?;
        if !loaded.success() {
            return Ok(None);
        }
        let snapshot: Snapshot = nft::Connection::open()?.snapshot(Scope::default())?;
        let mut file = Vec::new();
        snapshot.write(&mut file)?;
        // Before the checksum the file ends with complete messages, whose number of bytes the header contains.
        let end = file.len().saturating_sub(32);
        let length = file
            .get(56..64)
            .and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        let length = length.map_or(0, |bytes| u64::from_ne_bytes(bytes) as usize);
        Ok(file
            .get(end.saturating_sub(length)..end)
            .map(<[u8]>::to_vec))
    })?
}

/// Writes all seeds, one directory per target.
///
/// # Errors
/// Those of writing.
pub fn write(directory: &Path) -> io::Result<()> {
    let kernel_listings = kernel_listings();
    for target in targets::ALL {
        let directory = directory.join(target.name);
        fs::create_dir_all(&directory)?;
        let seeds = all(target, &kernel_listings);
        for seed in &seeds {
            let name: String = Sha256::digest(seed)
                .iter()
                .take(10)
                .map(|b| format!("{b:02x}"))
                .collect();
            fs::write(directory.join(name), seed)?;
        }
        writeln!(io::stdout(), "{}: {}", target.name, seeds.len())?;
    }
    Ok(())
}
