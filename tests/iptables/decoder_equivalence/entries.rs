//! Entries of legacy tables with flipped bits: a printed rule is equivalent to its entry, as far as the
//! kernel reads the entry.

use bstr::{BString, ByteSlice};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{self, Backend, Family, Rule};
use chainwright::legacy;
use chainwright::xt::Text;
use chainwright_testing::Sandbox;

use crate::common::iptables::{open, tool};
use crate::common::random::Random;
use crate::common::sandbox;
use crate::common::tools::Tools;
use crate::decoder_equivalence::random;

/// Offsets in an entry (`struct ipt_entry`, `struct ip6t_entry`).
struct Layout {
    /// Size of the addresses, each with its mask.
    address: usize,
    protocol: usize,
    flags: usize,
    /// Offsets of the type of service and its flag.
    tos: Option<usize>,
    inversions: usize,
    target_offset: usize,
    matches: usize,
}

const fn layout(family: Family) -> Layout {
    match family {
        Family::Ipv4 => Layout {
            address: 4,
            protocol: 80,
            flags: 82,
            tos: None,
            inversions: 83,
            target_offset: 88,
            matches: 112,
        },
        Family::Ipv6 => Layout {
            address: 16,
            protocol: 128,
            flags: 131,
            tos: Some(130),
            inversions: 132,
            target_offset: 140,
            matches: 168,
        },
    }
}

fn short(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]))
}

/// The parts of an entry that the kernel reads, normalized so that equivalent entries are equal.
#[derive(Debug, PartialEq, Eq)]
struct Normal {
    /// Addresses and masks.
    addresses: Vec<u8>,
    /// Masks of interfaces, and the significant bytes of the names.
    interfaces: Vec<u8>,
    protocol: usize,
    flags: u8,
    inversions: u8,
    tos: u8,
    /// Name, revision and data.
    extensions: Vec<(BString, u8, Vec<u8>)>,
    verdict: String,
}

/// The differences between the two.
fn differing(one: &Normal, other: &Normal) -> String {
    let same_head = (&one.addresses, &one.interfaces) == (&other.addresses, &other.interfaces);
    let parts = (
        one.protocol,
        one.flags,
        one.inversions,
        one.tos,
        &one.verdict,
    );
    let head = if same_head {
        format!("{parts:?}")
    } else {
        format!("{:02x?} {:02x?} {parts:?}", one.addresses, one.interfaces)
    };
    let mut pairs = one.extensions.iter().zip(&other.extensions);
    format!(
        "{head} {:02x?}",
        pairs.find(|(one, other)| one != other).map(|(one, _)| one)
    )
}

/// The extension at the start of these bytes.
fn extension(bytes: &[u8]) -> (BString, u8, Vec<u8>) {
    let name = bytes[2..31].split(|byte| *byte == 0).next().unwrap();
    let mut data = bytes[32..].to_vec();
    match name {
        b"comment" => {
            let end = data
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(data.len());
            data.truncate(end);
        }
        b"statistic" => data[12..16].fill(0), // a count that the kernel does not use
        // After their structs.
        b"tcp" => data.truncate(12),
        b"udp" => data.truncate(9),
        b"icmp" | b"icmp6" => data.truncate(4),
        b"ttl" | b"hl" | b"dscp" => data.truncate(2),
        b"length" => data.truncate(5),
        b"mark" => data.truncate(9),
        b"multiport" => data.truncate(47),
        b"limit" => data.truncate(8),
        b"addrtype" => data.truncate(8),
        b"tos" => data.truncate(3),
        b"owner" => data.truncate(18),
        b"CLASSIFY" | b"REJECT" => data.truncate(4),
        b"TCPMSS" => data.truncate(2),
        b"CONNMARK" => data.truncate(15),
        b"conntrack" => data.truncate(162),
        _ => {}
    }
    (name.into(), bytes[31], data)
}

fn normal(family: Family, rule: &legacy::RuleRef<'_>) -> Normal {
    let layout = layout(family);
    let bytes = rule.bytes();
    let names = layout.address * 4;
    let mut interfaces = Vec::new();
    for at in 0..32 {
        let mask = bytes[names + 32 + at];
        interfaces.extend([mask, bytes[names + at] & mask]);
    }
    let protocol = short(bytes, layout.protocol);
    let (mut flags, mut tos) = (bytes[layout.flags], 0);
    if let Some(at) = layout.tos {
        if protocol == 0 {
            flags &= !1; // the flag for comparing the protocol, of which there is none
        }
        if flags & 2 != 0 {
            tos = bytes[at];
        }
    }
    let mut extensions = Vec::new();
    let (mut at, end) = (layout.matches, short(bytes, layout.target_offset));
    while at < end {
        let size = short(bytes, at);
        extensions.push(extension(&bytes[at..at + size]));
        at += size;
    }
    let verdict = match rule.target().unwrap() {
        legacy::Target::Extension(_) => {
            extensions.push(extension(&bytes[end..]));
            String::new()
        }
        other => format!("{other:?}"),
    };
    Normal {
        addresses: bytes[..names].to_vec(),
        interfaces,
        protocol,
        flags,
        inversions: bytes[layout.inversions],
        tos,
        extensions,
        verdict,
    }
}

/// Flips bits of an entry, except those of a size or offset.
fn flip(random: &mut Random, family: Family, entry: &mut [u8]) {
    let layout = layout(family);
    let target = short(entry, layout.target_offset);
    for _ in 0..=random.below(2) {
        let at = match random.below(5) {
            0 => random.below(layout.inversions + 1),
            1 => layout.address * 4 + random.below(64),
            2 => layout.protocol + random.below(layout.inversions + 1 - layout.protocol),
            _ => {
                // In an extension: its name, its revision, its data.
                let (mut start, mut starts) = (layout.matches, vec![target]);
                while start < target {
                    starts.push(start);
                    start += short(entry, start);
                }
                let start = random.pick(&starts);
                let size = short(entry, start);
                match random.below(8) {
                    0 => start + 2 + random.below(29),
                    1 => start + 31,
                    _ => start + 32 + random.below((size - 32).clamp(1, 64)),
                }
            }
        };
        let is_verdict = entry[target + 2] == 0 && (target + 32..target + 36).contains(&at);
        if at < entry.len() && !is_verdict {
            match random.below(3) {
                0 => entry[at] = random.pick(&[0, 1, 2, 0xff]),
                _ => entry[at] ^= 1 << random.below(8),
            }
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) entries: usize,
    pub(crate) printed: usize,
    /// Those that use the library's own options.
    pub(crate) private: usize,
    /// Number of comparisons of a printed rule with the reloaded one.
    pub(crate) compared: usize,
}

/// Loads the accepted lines into the chain `own`. Returns which ones were accepted.
fn put(lines: &[&BString], by: &mut dyn FnMut(&[u8]) -> bool) -> Vec<bool> {
    let mut text = b"*mangle\n".to_vec();
    for line in lines {
        text.extend_from_slice(b"-A own ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(b"COMMIT\n");
    if by(&text) {
        return vec![true; lines.len()];
    }
    if lines.len() < 2 {
        return vec![false; lines.len()];
    }
    let (one, other) = lines.split_at(lines.len() / 2);
    let mut taken = put(one, by);
    taken.extend(put(other, by));
    taken
}

fn by_us<'s>(sandbox: &'s Sandbox, family: Family) -> impl FnMut(&[u8]) -> bool + 's {
    let mut iptables = open(sandbox, Backend::Legacy);
    let options = RestoreOptions {
        noflush: true,
        ..RestoreOptions::default()
    };
    move |text| iptables.restore(family, text, &options).is_ok()
}

fn by_tool<'s>(tools: &'s Tools<'s>, family: Family) -> impl FnMut(&[u8]) -> bool + 's {
    let line = tool(Backend::Legacy, family, "-restore --noflush");
    move |text| tools.takes(&line, text).is_ok()
}

fn read(sandbox: &Sandbox, family: Family) -> legacy::Table {
    let family = family.into();
    let connection = sandbox.run(|| legacy::Connection::open(family)).unwrap();
    connection
        .unwrap()
        .read("mangle")
        .unwrap()
        .in_use()
        .unwrap()
}

const CHAINS: &[u8] = b"*mangle\n:own - [0:0]\n:other - [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n";

pub(crate) fn batch(
    seed: u64,
    family: Family,
    number: usize,
    findings: &mut Vec<String>,
) -> Counts {
    let mut random = Random(seed);
    let mut counts = Counts::default();
    let here = sandbox();
    let mut load = by_us(&here, family);
    assert!(load(CHAINS));
    let lines: Vec<_> = (0..number)
        .map(|_| random::options(&mut random, family).replace("-j DROP", "-j ACCEPT"))
        .filter(|line| Rule::parse(family, line).is_ok())
        .map(BString::from)
        .collect();
    put(&lines.iter().collect::<Vec<_>>(), &mut load);
    let table = read(&here, family);

    let mut entries = table.entries().to_vec();
    let chain = table.chain("own").unwrap();
    for rule in chain.rules() {
        let end = rule.offset() + rule.bytes().len();
        if !random.once_in(5) {
            flip(&mut random, family, &mut entries[rule.offset()..end]);
        }
    }
    let flipped = legacy::Table::from_bytes(*table.info(), &entries).unwrap();
    let Some(chain) = flipped.chain("own") else {
        return counts; // an entry became the head of a chain
    };
    let mut printed = Vec::new();
    for rule in chain.rules() {
        counts.entries += 1;
        let Ok(entry) = iptables::legacy::decode(&rule) else {
            continue;
        };
        let mut text = Text::new();
        entry.rule.print(&mut text);
        let line = BString::from(text.as_bytes().trim_ascii_start());
        let parsed = Rule::parse(family, &line);
        if parsed.as_ref() != Ok(&entry.rule) {
            findings.push(format!("{line} is read as {parsed:?}\n{rule:?}"));
            continue;
        }
        printed.push((line, normal(family, &rule)));
    }
    counts.printed = printed.len();
    let is_private = |line: &BString| line.contains_str("--xt-revision");
    counts.private = printed.iter().filter(|(line, _)| is_private(line)).count();
    for ours in [true, false] {
        let there = sandbox();
        let tools = Tools::new(&there);
        let (mut us, mut tool) = (by_us(&there, family), by_tool(&tools, family));
        let mut by = |text: &[u8]| if ours { us(text) } else { tool(text) };
        assert!(by(CHAINS));
        // The kernel keeps bytes that it does not use, so the library's own options may differ after a
        // reload.
        let printed: Vec<_> = printed
            .iter()
            .filter(|(line, _)| !is_private(line))
            .collect();
        let lines: Vec<_> = printed.iter().map(|(line, _)| line).collect();
        let taken = put(&lines, &mut by);
        let again = read(&there, family);
        let mut rules = again.chain("own").unwrap().rules();
        for ((line, before), _) in printed.iter().zip(taken).filter(|(_, taken)| *taken) {
            let rule = rules.next().unwrap();
            let mut after = normal(family, &rule);
            for (one, other) in before.extensions.iter().zip(&mut after.extensions) {
                if one.0 == other.0 && one.1 != other.1 {
                    *other = one.clone(); // another revision of the same extension
                }
            }
            counts.compared += 1;
            if *before != after {
                let by = if ours { "us" } else { "the real tool" };
                findings.push(format!(
                    "{line}\n  {}\nby {by}:\n  {}",
                    differing(before, &after),
                    differing(&after, before)
                ));
            }
        }
        assert!(rules.next().is_none());
    }
    counts
}

/// Whether the only rule of a chain is printed after these bytes of its entry were changed.
pub(crate) fn is_printed_with(family: Family, line: &str, at: usize, bytes: &[u8]) -> bool {
    let here = sandbox();
    let mut load = by_us(&here, family);
    assert!(load(CHAINS) && load(format!("*mangle\n-A own {line}\nCOMMIT\n").as_bytes()));
    let table = read(&here, family);
    let rule = table.chain("own").unwrap().rules().next().unwrap();
    assert!(iptables::legacy::decode(&rule).is_ok(), "{line}");
    let mut entries = table.entries().to_vec();
    let start = rule.offset() + at;
    entries[start..start + bytes.len()].copy_from_slice(bytes);
    let table = legacy::Table::from_bytes(*table.info(), &entries).unwrap();
    let rule = table.chain("own").unwrap().rules().next().unwrap();
    iptables::legacy::decode(&rule).is_ok()
}
