//! The decoder's promise: a rule that is printed in iptables' syntax is equivalent to the rule in the
//! kernel, whichever program wrote it; any other rule is shown as in nf_tables.
//!
//! Random rules (`random`) are added to tables like those of iptables, of both families. The library's
//! save of them is loaded again, by the library and by the real tool, and must have the same effect on
//! packets (`machine`, which does not use the decoder).
//!
//! Bits of entries of legacy tables are flipped (`entries`), and the printed rules are loaded again by
//! the library and by the real tool.
//!
//! By default it uses a few thousand rules, the same in each run. `CHAINWRIGHT_PROMISE_RULES` sets their
//! number, `CHAINWRIGHT_PROMISE_SEED` the seed.

mod entries;
mod machine;
mod packets;
mod random;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use crate::common::iptables::{open, tool};
use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use bstr::{BString, ByteSlice};
use chainwright::iptables::nft::{Profile, chain};
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Backend, Family, RuleView, Tables, builtins};
use chainwright::nft::expr::{Decoded, Match, Target};
use chainwright::nft::{self, Chain, DataType, Rule, Set, Table, Transaction};
use chainwright::xt;
use machine::{run, satisfy};
use random::{CHAINS, Made};

const TABLES: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];
/// Chains that no rule jumps to, so that they may contain any extension.
const OWN: [&str; 4] = ["own-0", "own-1", "own-2", "own-3"];

/// Number of rules in one sandbox.
const BATCH: usize = 1500;

fn setting(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |given| given.parse().expect("not a number"))
}

/// The counts of a run.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    made: usize,
    /// Rules that the kernel accepted.
    taken: usize,
    /// Accepted rules that are printed in iptables' syntax.
    printed: usize,
    /// Printed rules whose conditions some packet met.
    met: usize,
    /// Printed rules that use the library's own options.
    private: usize,
}

/// A printed rule.
struct PrintedRule {
    table: String,
    chain: String,
    line: BString,
    expressions: Vec<Decoded<'static>>,
    formatted: String,
}

impl PrintedRule {
    /// Whether it is printed with options that only the library can parse.
    fn is_private(&self) -> bool {
        self.line.contains_str("--xt-revision")
    }
}

/// The table and chain for a rule.
fn random_table_and_chain(random: &mut Random, made: &mut Made) -> (&'static str, BString) {
    let table = random.pick(&TABLES);
    let name = match random.below(12) {
        0 | 1 => random.pick(builtins(table).unwrap()).chain,
        2 => {
            // Jumps between these chains could form a cycle, or lead to extensions where they are not
            // allowed.
            made.expressions.retain(|one| {
                !matches!(
                    one,
                    Decoded::Immediate(_) | Decoded::Match(_) | Decoded::Target(_)
                )
            });
            random.pick(&CHAINS)
        }
        _ => random.pick(&OWN),
    };
    (table, name.into())
}

/// Adds rules to the kernel. Returns the number that it accepted.
fn load(connection: &mut nft::Connection, mut rules: Vec<Rule<'static>>) -> usize {
    loop {
        if rules.is_empty() {
            return 0;
        }
        let mut tx = Transaction::new();
        for rule in &rules {
            tx.add(rule).unwrap();
        }
        let Err(error) = connection.commit(&tx) else {
            return rules.len();
        };
        let failed: HashSet<_> = error
            .failures
            .iter()
            .filter_map(|failure| Some(failure.operation.as_ref()?.index))
            .collect();
        if failed.is_empty() || (failed.len() == 1 && failed.contains(&0) && rules.len() > 1) {
            // Only the whole transaction was refused.
            if rules.len() == 1 {
                return 0;
            }
            let rest = rules.split_off(rules.len() / 2);
            return load(connection, rules) + load(connection, rest);
        }
        let mut at = 0;
        rules.retain(|_| {
            at += 1;
            !failed.contains(&(at - 1))
        });
    }
}

/// The rule's expressions. An extension of an older revision is converted to the revision that the
/// library writes: this conversion is the one thing that is not tested here.
fn expressions(family: Family, rule: &nft::RuleRef<'_>) -> Vec<Decoded<'static>> {
    let newer = |name: &str, revision: u32, encoded: xt::Encoded<'_>| {
        let is_newer = revision < u32::from(encoded.revision) && name == encoded.name;
        is_newer.then(|| (u32::from(encoded.revision), encoded.info.into_owned()))
    };
    let one = |one: Decoded<'static>| match one {
        Decoded::Match(mut one) => {
            let (name, revision) = (one.name.clone().unwrap().to_string(), one.revision.unwrap());
            let info = one.info.as_deref().unwrap_or_default();
            let read = xt::Match::read(family, &name, revision as u8, info);
            if let Some((revision, info)) = newer(&name, revision, read.encode(family).unwrap()) {
                (one.revision, one.info) = (Some(revision), Some(info.into()));
            }
            Decoded::Match(one)
        }
        Decoded::Target(mut one) => {
            let (name, revision) = (one.name.clone().unwrap().to_string(), one.revision.unwrap());
            let info = one.info.as_deref().unwrap_or_default();
            let read = xt::Target::read(family, &name, revision as u8, info);
            if let Some((revision, info)) = newer(&name, revision, read.encode(family).unwrap()) {
                (one.revision, one.info) = (Some(revision), Some(info.into()));
            }
            Decoded::Target(one)
        }
        other => other,
    };
    let all = rule.expressions().into_iter().flatten();
    all.map(|expression| one(expression.unwrap().decode().unwrap().into_owned()))
        .collect()
}

/// The text of the expressions, with the data of extensions.
fn formatted(rule: &[Decoded<'_>]) -> String {
    let mut formatted = String::new();
    for one in rule {
        let _ = writeln!(formatted, "  {one}");
        let (Decoded::Match(Match { info, .. }) | Decoded::Target(Target { info, .. })) = one
        else {
            continue;
        };
        let _ = writeln!(
            formatted,
            "    {:02x?}",
            info.as_deref().unwrap_or_default()
        );
    }
    formatted
}

/// The printable rules of tables, in the order of the text.
fn rules_of<'t>(tables: &'t Tables) -> impl Iterator<Item = (BString, BString, RuleView<'t>)> {
    tables.iter().into_iter().flat_map(|table| {
        let chains = table
            .chains()
            .filter(|chain| chain.not_expressible().is_none());
        let chains: Vec<_> = chains.collect();
        chains.into_iter().flat_map(move |chain| {
            let name = table.name().to_owned();
            let rules = chain.rules();
            rules.map(move |rule| (name.clone(), chain.name().to_owned(), rule))
        })
    })
}

/// Loads the lines into a separate sandbox and reads them back. A refused line is a finding, represented
/// by `None`.
fn loaded_again(
    family: Family,
    printed: &[&PrintedRule],
    by_us: Option<Profile>,
    findings: &mut Vec<String>,
) -> Vec<Option<Vec<Decoded<'static>>>> {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut refused = HashSet::new();
    let command = tool(Backend::Nft, family, "-restore --noflush");
    let mut start = 0;
    let mut chains = String::new();
    for table in TABLES {
        let _ = writeln!(chains, "*{table}");
        for name in OWN.iter().chain(&CHAINS) {
            if printed
                .iter()
                .any(|one| one.chain == *name || one.line.contains_str(name))
            {
                let plain = !name.contains([' ', '\n', '"']) && !name.starts_with(['-', '!']);
                let short = name.len() < 29 && !["ACCEPT", "ULOG", "RETURN"].contains(name);
                if plain && short {
                    let _ = writeln!(chains, ":{name} - [0:0]");
                }
            }
        }
        chains += "COMMIT\n";
    }
    let put = |text: &[u8]| -> Result<(), String> {
        match by_us {
            Some(profile) => {
                let options = RestoreOptions {
                    noflush: true,
                    ..RestoreOptions::default()
                };
                let mut iptables = open(&sandbox, Backend::Nft).with_profile(profile);
                let restored = iptables.restore(family, text, &options);
                restored.map(drop).map_err(|error| error.to_string())
            }
            None => tools.takes(&command, text),
        }
    };
    put(chains.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{chains}"));
    while start < printed.len() {
        let table = &printed[start].table;
        let end = (start..printed.len().min(start + 150)).find(|at| printed[*at].table != *table);
        let end = end.unwrap_or(printed.len().min(start + 150));
        loop {
            let mut text = format!("*{table}\n").into_bytes();
            let mut lines = vec![None];
            for (at, one) in printed.iter().enumerate().take(end).skip(start) {
                if !refused.contains(&at) {
                    text.extend_from_slice(&one.line);
                    text.push(b'\n');
                    lines.push(Some(at));
                }
            }
            text.extend_from_slice(b"COMMIT\n");
            let Err(error) = put(&text) else { break };
            // Both report the number of the refused line.
            let at = error.split("line").skip(1).find_map(|rest| {
                let rest = rest.trim_start_matches([':', ' ']);
                let end = rest.find(|c: char| !c.is_ascii_digit());
                rest[..end.unwrap_or(rest.len())].parse::<usize>().ok()
            });
            let line = at.and_then(|at| *lines.get(at.checked_sub(1)?)?);
            let Some(line) = line else {
                panic!("{error}\n{}", text.as_bstr());
            };
            let by = by_us.map_or("the real tool".to_owned(), |p| format!("{p:?}"));
            let one = printed[line];
            refused.insert(line);
            // 1.8.4 writes this, legacy tables accept it, and iptables-nft 1.8.9 refuses its text.
            let none = ["! -s 0.0.0.0/0", "! -d 0.0.0.0/0", "! -s ::/0", "! -d ::/0"];
            if by_us.is_none() && none.iter().any(|none| one.line.contains_str(none)) {
                continue;
            }
            // The protocol that an extension without a textual form requires is unknown.
            if one.is_private() && error.contains("EINVAL") {
                continue;
            }
            findings.push(format!(
                "{by} refuses {}: {error}\n{}",
                one.line, one.formatted
            ));
        }
        start = end;
    }
    let tables = open(&sandbox, Backend::Nft).read(family, &[]).unwrap();
    // In the same order.
    let mut found: HashMap<(String, String), VecDeque<_>> = HashMap::new();
    for table in tables.iter() {
        for chain in table.chains() {
            let key = (table.name().to_string(), chain.name().to_string());
            for rule in chain.rules() {
                if let RuleView::Nft(rule) = rule {
                    found
                        .entry(key.clone())
                        .or_default()
                        .push_back(expressions(family, &rule));
                }
            }
        }
    }
    let mut all = Vec::new();
    for (at, one) in printed.iter().enumerate() {
        if refused.contains(&at) {
            all.push(None);
            continue;
        }
        let key = (one.table.clone(), one.chain.clone());
        let next = found.get_mut(&key).and_then(VecDeque::pop_front);
        assert!(next.is_some(), "{} is missing", one.line);
        all.push(next);
    }
    assert!(found.values().all(VecDeque::is_empty));
    all
}

/// Compares their effects on packets. Returns whether some packet met all conditions.
fn compare(
    random: &mut Random,
    family: Family,
    one: &[Decoded<'_>],
    other: &[Decoded<'_>],
) -> Result<bool, String> {
    let mut met = false;
    for round in 0..6 {
        let mut packet = packets::packet(random, family);
        match round {
            0 => {}
            1 | 3 => satisfy(other, &mut packet),
            _ => satisfy(one, &mut packet),
        }
        let mut packets = vec![packet.clone()];
        packets.extend((0..9).map(|_| packets::near(random, &packet)));
        for packet in packets {
            let ((here, whole), (there, _)) = (run(one, &packet), run(other, &packet));
            met |= whole;
            if here != there {
                return Err(format!("{packet:02x?}\n  does {here:?}\n  then {there:?}"));
            }
        }
    }
    Ok(met)
}

fn batch(seed: u64, family: Family, number: usize, findings: &mut Vec<String>) -> Counts {
    let mut random = Random(seed);
    let mut counts = Counts {
        made: number,
        ..Counts::default()
    };
    let here = sandbox();
    let mut connection = connect(&here);
    let mut tx = Transaction::new();
    for table in TABLES {
        tx.add(&Table::new(family.into(), table)).unwrap();
        for builtin in builtins(table).unwrap() {
            tx.add(&chain(family, table, builtin.chain)).unwrap();
        }
        for name in OWN.iter().chain(&CHAINS) {
            tx.add(&Chain::new(family.into(), table, *name)).unwrap();
        }
        let set = Set::new(family.into(), table, "marks", DataType::MARK, 4);
        tx.add(&set).unwrap();
    }
    connection.commit(&tx).unwrap();
    let mut made = Vec::new();
    for _ in 0..number {
        let mut one = random::rule(&mut random, family);
        let (table, chain) = random_table_and_chain(&mut random, &mut one);
        let mut rule = Rule::new(family.into(), table, chain);
        let mut expressions = nft::expr::Expressions::new();
        for one in &one.expressions {
            expressions.push_decoded(one);
        }
        rule.expressions = Some(expressions);
        rule.compat = one.compat;
        rule.userdata = one.userdata.map(Into::into);
        made.push(rule);
    }
    while !made.is_empty() {
        let rest = made.split_off(made.len().min(200));
        counts.taken += load(&mut connection, std::mem::replace(&mut made, rest));
    }
    let tables = open(&here, Backend::Nft).read(family, &[]).unwrap();
    let mut text = Vec::new();
    let omissions = tables.save(SaveOptions::default(), &mut text).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with(b"-A"));

    let (mut printed, mut beyond) = (Vec::new(), 0);
    let mut in_order: Vec<_> = rules_of(&tables).collect();
    in_order.retain(|(.., rule)| {
        let is = tables.entry(rule).is_ok();
        beyond += usize::from(!is);
        is
    });
    assert_eq!(omissions.rules, beyond);
    assert_eq!(lines.clone().count(), in_order.len(), "{}", text.as_bstr());
    // The text has the chains in another order.
    let key = |line: &[u8]| {
        let mut words = line.fields_with(|c| c == ' ').skip(1);
        words.next().unwrap_or_default().as_bstr().to_owned()
    };
    let mut by_chain: HashMap<(BString, BString), VecDeque<_>> = HashMap::new();
    for (table, chain, rule) in in_order {
        by_chain.entry((table, chain)).or_default().push_back(rule);
    }
    let mut table = BString::default();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(b"*") {
            table = name.into();
        }
        if !line.starts_with(b"-A") {
            continue;
        }
        assert_eq!(lines.next(), Some(line));
        let chain = key(line);
        let rules = by_chain.get_mut(&(table.clone(), chain.clone()));
        let Some(RuleView::Nft(rule)) = rules.and_then(VecDeque::pop_front) else {
            panic!("{} belongs to no rule", line.as_bstr());
        };
        printed.push(PrintedRule {
            table: table.to_string(),
            chain: chain.to_string(),
            line: line.into(),
            formatted: formatted(&expressions(family, &rule)),
            expressions: expressions(family, &rule),
        });
    }
    counts.printed = printed.len();
    let public: Vec<_> = printed.iter().filter(|one| !one.is_private()).collect();
    counts.private = printed.len() - public.len();
    let profile = random.pick(&[Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10]);
    // The encoding of 1.8.7 cannot hold this.
    let long = |one: &Decoded<'_>| match one {
        Decoded::Log(log) => log.prefix.as_ref().is_some_and(|prefix| prefix.len() > 63),
        _ => false,
    };
    let all = printed
        .iter()
        .filter(|one| profile != Profile::V1_8_7 || !one.expressions.iter().any(long));
    let all: Vec<_> = all.collect();
    let mut met = HashSet::new();
    for (by, printed) in [(Some(profile), &all), (None, &public)] {
        let again = loaded_again(family, printed, by, findings);
        for (one, again) in printed.iter().zip(again) {
            let Some(again) = again else { continue };
            match compare(&mut random, family, &one.expressions, &again) {
                Ok(true) => drop(met.insert(std::ptr::from_ref(*one))),
                Ok(false) => {}
                Err(difference) => {
                    let formatted = formatted(&again);
                    let by = by.map_or("the real tool".to_owned(), |p| format!("{p:?}"));
                    findings.push(format!(
                        "{}\n{}by {by}:\n{formatted}{difference}",
                        one.line, one.formatted
                    ));
                }
            }
        }
    }
    counts.met = met.len();
    counts
}

#[test]
fn decoded_rules_equal_the_kernels_rules() {
    let number = setting("CHAINWRIGHT_PROMISE_RULES", 3000) as usize;
    let first = setting("CHAINWRIGHT_PROMISE_SEED", 1);
    let mut sums = Counts::default();
    let mut findings = Vec::new();
    let mut seed = first;
    while sums.made < number && findings.len() < 40 {
        for family in Family::ALL {
            let counts = batch(seed.wrapping_mul(0x1000), family, BATCH, &mut findings);
            sums.made += counts.made;
            sums.taken += counts.taken;
            sums.printed += counts.printed;
            sums.met += counts.met;
            sums.private += counts.private;
            seed += 1;
        }
        eprintln!("{sums:?}, {} findings", findings.len());
    }
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    // The test must cover something.
    assert!(sums.taken > sums.made / 2, "{sums:?}");
    assert!(sums.printed > sums.taken / 8, "{sums:?}");
    assert!(sums.met > sums.printed / 2, "{sums:?}");
}

#[test]
fn decoded_legacy_entries_equal_the_kernels_entries() {
    let number = setting("CHAINWRIGHT_PROMISE_RULES", 3000) as usize;
    let first = setting("CHAINWRIGHT_PROMISE_SEED", 1);
    let mut sums = entries::Counts::default();
    let mut findings = Vec::new();
    let mut seed = first;
    while sums.entries < number && findings.len() < 40 {
        for family in Family::ALL {
            let counts = entries::batch(seed.wrapping_mul(0x1000), family, 1000, &mut findings);
            sums.entries += counts.entries;
            sums.printed += counts.printed;
            sums.private += counts.private;
            sums.compared += counts.compared;
            seed += 1;
        }
        eprintln!("{sums:?}, {} findings", findings.len());
    }
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
    assert!(sums.printed > sums.entries / 4, "{sums:?}");
    assert!(sums.compared > sums.printed / 2, "{sums:?}");
}

#[test]
fn inexpressible_entries_are_not_decoded() {
    let (v4, v6) = (Family::Ipv4, Family::Ipv6);
    for (family, line, at, bytes) in [
        // An address with bits that its mask clears: no packet has it.
        (v4, "-s 10.0.0.0/8 -j ACCEPT", 3, &[1][..]),
        (v6, "-d fd00::/16 -j ACCEPT", 31, &[1]),
        // A goto without a target; a negation flag without a meaning.
        (v4, "-j ACCEPT", 82, &[2]),
        (v4, "-j ACCEPT", 83, &[0x80]),
        // An interface mask with a gap; names that no option can have.
        (v4, "-i eth0 -j ACCEPT", 49, &[0]),
        (v4, "-i eth0 -j ACCEPT", 16, b"e\n"),
        (v4, "-i eth0 -j ACCEPT", 16, b"eth+"),
        // A protocol for the matches that is not compared.
        (v6, "-p tcp -m tcp --dport 80 -j ACCEPT", 131, &[0]),
    ] {
        let printed = entries::is_printed_with(family, line, at, bytes);
        assert!(!printed, "{line} with {bytes:02x?} at {at}");
    }
    // Bits without a meaning do not matter.
    assert!(entries::is_printed_with(
        v4,
        "-i eth+ -j ACCEPT",
        19,
        b"xyz"
    ));
    let quoted = entries::is_printed_with(v4, "-i eth0 -j ACCEPT", 16, b"e \"x");
    assert!(quoted);
}
