//! Tables changed by the library in one step and by the real tool command by command: the results are equal.

mod texts;

use std::fmt::Write;

use crate::common::iptables::{open, our_save, real_save, tool};
use crate::common::random::Random;
use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Counters, Error, Family, Policy, Rule, TableEdit};

/// A change of a table.
#[derive(Debug, Clone)]
enum Change {
    Append(String, String, Counters),
    Insert(String, Option<usize>, String, Counters),
    Delete(String, String),
    DeleteNumber(String, usize),
    Replace(String, usize, String, Counters),
    New(String),
    Remove(String),
    RemoveAll,
    Flush(Option<String>),
    Policy(String, &'static str),
    Zero(Option<String>, Option<usize>),
    Rename(String, String),
}

impl Change {
    /// The change as a line for the real tool.
    fn line(&self) -> String {
        let counted = |counters: &Counters| match counters.packets {
            0 => String::new(),
            packets => format!("-c {packets} {} ", counters.bytes),
        };
        let number = |number: &Option<usize>| number.map_or(String::new(), |n| format!(" {n}"));
        let name =
            |chain: &Option<String>| chain.as_ref().map_or(String::new(), |c| format!(" {c}"));
        match self {
            Self::Append(chain, rule, counters) => {
                format!("-A {chain} {}{rule}", counted(counters))
            }
            Self::Insert(chain, at, rule, counters) => {
                format!("-I {chain}{} {}{rule}", number(at), counted(counters))
            }
            Self::Delete(chain, rule) => format!("-D {chain} {rule}"),
            Self::DeleteNumber(chain, at) => format!("-D {chain} {at}"),
            Self::Replace(chain, at, rule, counters) => {
                format!("-R {chain} {at} {}{rule}", counted(counters))
            }
            Self::New(chain) => format!("-N {chain}"),
            Self::Remove(chain) => format!("-X {chain}"),
            Self::RemoveAll => "-X".to_owned(),
            Self::Flush(chain) => format!("-F{}", name(chain)),
            Self::Policy(chain, policy) => format!("-P {chain} {policy}"),
            Self::Zero(chain, at) => format!("-Z{}{}", name(chain), number(at)),
            Self::Rename(from, to) => format!("-E {from} {to}"),
        }
    }

    /// Makes the change with the library.
    fn apply(&self, family: Family, table: &mut TableEdit<'_>) -> Result<(), Error> {
        let parse = |rule: &String| Rule::parse(family, rule).unwrap();
        match self {
            Self::Append(chain, rule, counters) => {
                table.append_with(chain, &parse(rule), *counters)
            }
            Self::Insert(chain, at, rule, counters) => {
                table.insert(chain, at.unwrap_or(1), &parse(rule), *counters)
            }
            Self::Delete(chain, rule) => table.delete(chain, &parse(rule)),
            Self::DeleteNumber(chain, at) => table.delete_number(chain, *at),
            Self::Replace(chain, at, rule, counters) => {
                table.replace(chain, *at, &parse(rule), *counters)
            }
            Self::New(chain) => table.new_chain(chain),
            Self::Remove(chain) => table.remove_chain(chain),
            Self::RemoveAll => table.remove_all_chains(),
            Self::Flush(Some(chain)) => table.flush(chain),
            Self::Flush(None) => table.flush_all(),
            Self::Policy(chain, policy) => {
                let policy = match *policy {
                    "DROP" => Policy::Drop,
                    _ => Policy::Accept,
                };
                table.set_policy(chain, Some(policy), None)
            }
            Self::Zero(Some(chain), at) => table.zero(chain, *at),
            Self::Zero(None, _) => {
                for chain in table.chains()? {
                    table.zero(&chain, None)?;
                }
                Ok(())
            }
            Self::Rename(from, to) => table.rename_chain(from, to),
        }
    }
}

/// A chain with a rank: chains jump only to those of higher rank, so never in a cycle.
#[derive(Debug, Clone)]
struct Chain {
    name: String,
    rank: usize,
    rules: Vec<String>,
    is_new: bool,
}

/// The expected content of a table.
#[derive(Debug, Clone)]
struct Model {
    backend: Backend,
    family: Family,
    table: &'static str,
    chains: Vec<Chain>,
    ranks: usize,
    /// Previous names of chains that were renamed in this change.
    renamed: Vec<String>,
}

/// Matches before the target; all are different.
const PARTS: [&[&str]; 3] = [
    &[
        "",
        "-s 10.0.0.0/8 ",
        "-d 192.168.1.0/25 ",
        "! -s 10.1.2.3/32 -d 10.0.0.0/13 ",
        "-f ",
    ],
    &["", "-s fd00::/8 ", "! -d 2001:db8::/33 ", "-s fe80::1/128 "],
    &[
        "",
        "-i eth0 ",
        "-i veth+ ",
        "! -i lo ",
        "-p tcp ",
        "! -p udp ",
        "-m mark --mark 0x4000/0x4000 ",
        "-m mark ! --mark 0x1 ",
        "-m comment --comment \"two words\" ",
        "-m comment --comment it ",
        "-m conntrack --ctstate NEW ",
        "-m conntrack --ctstate RELATED,ESTABLISHED ",
        "-m comment --comment \"a \\\"quoted\\\" word\" -m mark --mark 0x8 ",
    ],
];

impl Model {
    fn new(backend: Backend, family: Family, table: &'static str, names: &[&str]) -> Self {
        let chain = |name: &&str| Chain {
            name: (*name).to_owned(),
            rank: 0,
            rules: Vec::new(),
            is_new: false,
        };
        Self {
            backend,
            family,
            table,
            chains: names.iter().map(chain).collect(),
            ranks: 0,
            renamed: Vec::new(),
        }
    }

    fn rule(&self, random: &mut Random, chain: &str, rank: usize) -> String {
        let own = match self.family {
            Family::Ipv4 => PARTS[0],
            Family::Ipv6 => PARTS[1],
        };
        let below: Vec<_> = self.chains.iter().filter(|c| c.rank > rank).collect();
        let target = match random.below(8) {
            0 => "-j ACCEPT".to_owned(),
            1 => "-j DROP".to_owned(),
            2 => "-j RETURN".to_owned(),
            3 if self.table == "mangle" => "-j MARK --set-xmark 0x4000/0x4000".to_owned(),
            4..=6 if !below.is_empty() => {
                let option = random.of(&["-j", "-j", "-g"]);
                format!("{option} {}", random.of(&below).name)
            }
            _ => String::new(),
        };
        // The real tool refuses rules that never match.
        let part = loop {
            let part = random.of(PARTS[2]);
            let leaves = ["OUTPUT", "POSTROUTING"].contains(&chain);
            if !leaves || !(part.starts_with("-i ") || part.starts_with("! -i ")) {
                break part;
            }
        };
        let rule = format!("{}{part}{target}", random.of(own));
        rule.trim_end().to_owned()
    }

    fn is_used(&self, name: &str) -> bool {
        let is_reference = |rule: &String| {
            rule.strip_suffix(name)
                .is_some_and(|rest| rest.ends_with("-j ") || rest.ends_with("-g "))
        };
        self.chains
            .iter()
            .any(|chain| chain.rules.iter().any(is_reference))
    }

    /// A random change, applied to the model; `None` if it is impossible.
    fn change(&mut self, random: &mut Random) -> Option<Change> {
        let at = random.below(self.chains.len());
        let (name, rank) = (self.chains[at].name.clone(), self.chains[at].rank);
        let count = self.chains[at].rules.len();
        let counters = match random.below(3) {
            0 => Counters::default(),
            // ip6tables-nft 1.8.9 reads `-c` and ignores it.
            _ if (self.backend, self.family) == (Backend::Nft, Family::Ipv6) => Counters::default(),
            _ => Counters {
                packets: 1 + random.below(1000) as u64,
                bytes: random.below(100_000) as u64,
            },
        };
        Some(match random.below(22) {
            0..=5 => {
                let rule = self.rule(random, &name, rank);
                self.chains[at].rules.push(rule.clone());
                Change::Append(name, rule, counters)
            }
            6..=8 => {
                let rule = self.rule(random, &name, rank);
                let number = match random.below(4) {
                    0 => None,
                    _ => Some(1 + random.below(count + 1)),
                };
                let place = number.unwrap_or(1) - 1;
                self.chains[at].rules.insert(place, rule.clone());
                Change::Insert(name, number, rule, counters)
            }
            9 | 10 if count > 0 => {
                let rule = random.of(&self.chains[at].rules).clone();
                let rules = &mut self.chains[at].rules;
                let first = rules.iter().position(|other| *other == rule)?;
                rules.remove(first);
                Change::Delete(name, rule)
            }
            11 if count > 0 => {
                let place = random.below(count);
                self.chains[at].rules.remove(place);
                Change::DeleteNumber(name, place + 1)
            }
            12 | 13 if count > 0 => {
                let place = random.below(count);
                let rule = self.rule(random, &name, rank);
                self.chains[at].rules[place].clone_from(&rule);
                Change::Replace(name, place + 1, rule, counters)
            }
            14 | 15 if self.chains.len() < 12 => {
                let name = self.new_name(random);
                self.chains.push(Chain {
                    name: name.clone(),
                    rank: self.ranks,
                    rules: Vec::new(),
                    is_new: true,
                });
                Change::New(name)
            }
            16 if rank > 0 && count == 0 && !self.is_used(&name) => {
                self.chains.remove(at);
                Change::Remove(name)
            }
            17 if random.below(3) > 0 => {
                self.chains[at].rules.clear();
                Change::Flush(Some(name))
            }
            17 if random.below(8) == 0 => {
                for chain in &mut self.chains {
                    chain.rules.clear();
                }
                Change::Flush(None)
            }
            17 => {
                let unused = |chain: &Chain| {
                    chain.rank == 0 || (chain.rules.is_empty() && !self.is_used(&chain.name))
                };
                if !self.chains.iter().all(unused) {
                    return None;
                }
                self.chains.retain(|chain| chain.rank == 0);
                Change::RemoveAll
            }
            18 if rank == 0 => Change::Policy(name, random.of::<&str>(&["ACCEPT", "DROP"])),
            19 => Change::Zero(Some(name), None),
            20 if count > 0 => Change::Zero(Some(name), Some(1 + random.below(count))),
            20 if random.below(4) == 0 => Change::Zero(None, None),
            // nf_tables identifies chains by their names before the change.
            21 if rank > 0 && !(self.backend == Backend::Nft && self.chains[at].is_new) => {
                let to = self.new_name(random);
                for rule in self.chains.iter_mut().flat_map(|chain| &mut chain.rules) {
                    if let Some(start) = rule.strip_suffix(&name)
                        && (start.ends_with("-j ") || start.ends_with("-g "))
                    {
                        *rule = format!("{start}{to}");
                    }
                }
                self.chains[at].name.clone_from(&to);
                self.renamed.push(name.clone());
                Change::Rename(name, to)
            }
            _ => return None,
        })
    }

    fn new_name(&mut self, random: &mut Random) -> String {
        self.ranks += 1;
        let start = random.of(&["KUBE-", "a", "Z_", "x.y-"]);
        format!("{start}{}", self.ranks)
    }

    /// The changes of one round.
    fn changes(&mut self, random: &mut Random, number: usize) -> Vec<Change> {
        self.renamed.clear();
        for chain in &mut self.chains {
            chain.is_new = false;
        }
        let mut changes = Vec::new();
        while changes.len() < number {
            changes.extend(self.change(random));
        }
        changes
    }
}

/// The rounds to run: `CHAINWRIGHT_TEST_ROUNDS`, otherwise few.
fn rounds() -> usize {
    crate::common::from_env("CHAINWRIGHT_TEST_ROUNDS", 8)
}

#[track_caller]
fn random_changes(backend: Backend, family: Family) {
    let (ours, theirs) = (sandbox(), sandbox());
    let (our_tools, their_tools) = (Tools::new(&ours), Tools::new(&theirs));
    let real = tool(backend, family, "");
    let mut iptables = open(&ours, backend);
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ real.len() as u64);
    let mut models = [
        Model::new(
            backend,
            family,
            "mangle",
            &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
        ),
        Model::new(backend, family, "filter", &["INPUT", "FORWARD", "OUTPUT"]),
    ];
    // The real tool changes only existing chains.
    for tools in [&our_tools, &their_tools] {
        for model in &models {
            let heads = model
                .chains
                .iter()
                .map(|c| format!(":{} ACCEPT [0:0]\n", c.name));
            let text = format!("*{}\n{}COMMIT\n", model.table, heads.collect::<String>());
            tools.run_with(&tool(backend, family, "-restore"), &text);
        }
    }
    let mut by_restore = 0;
    for round in 0..rounds() {
        let model = random.below(2);
        let before = models[model].clone();
        let model = &mut models[model];
        let number = 1 + random.below(20);
        let changes = model.changes(&mut random, number);
        let table = model.table;
        let lines: Vec<_> = changes.iter().map(Change::line).collect();
        let context = || {
            format!(
                "round {round}, {real}, {table}, {before:#?}\n{}",
                lines.join("\n")
            )
        };
        let text = format!("*{table}\n{}\nCOMMIT\n", lines.join("\n"));
        let noflush = RestoreOptions {
            noflush: true,
            ..RestoreOptions::default()
        };
        // By calls, or as text.
        let done = match round % 2 {
            0 => iptables.update(family, table, |edit| {
                changes
                    .iter()
                    .try_for_each(|change| change.apply(family, edit))
            }),
            _ => iptables.restore(family, &text, &noflush).map(drop),
        };
        if let Err(error) = done {
            panic!("{error}\n{}", context());
        }
        // The real tool, in one step if possible, otherwise command by command.
        let restore = tool(backend, family, "-restore --noflush");
        // In one step, it leaves the counters of new rules as they are, and nf_tables' policies as they were (1.8.9).
        let zeroes = changes.iter().any(|c| matches!(c, Change::Zero(..)));
        // `-X` also removes built-in chains of nf_tables, which then cannot be zeroed.
        let put_back = || {
            let builtin = before.chains.iter().filter(|chain| chain.rank == 0);
            let heads = builtin.map(|chain| format!(":{} - [0:0]\n", chain.name));
            let text = format!("*{table}\n{}COMMIT\n", heads.collect::<String>());
            their_tools.run_with(&restore, &text);
        };
        let takes_away = |line: &str| line == "-X" && backend == Backend::Nft;
        if !zeroes && their_tools.takes(&restore, &text).is_ok() {
            by_restore += 1;
            if lines.iter().any(|line| takes_away(line)) {
                put_back();
            }
        } else {
            for line in &lines {
                if let Err(message) = their_tools.takes(&format!("{real} -t {table} {line}"), "") {
                    panic!("{line}: {message}\n{}", context());
                }
                if takes_away(line) {
                    put_back();
                }
            }
        }
        let expected = real_save(&their_tools, backend, family);
        let found = real_save(&our_tools, backend, family);
        let printed = our_save(&ours, backend, family);
        assert!(
            expected == found,
            "expected\n{expected}\nfound\n{found}\n{}",
            context()
        );
        assert!(
            found == printed,
            "the real tool saves\n{found}\nthe library saves\n{printed}\n{}",
            context()
        );
    }
    let few = rounds() < 20;
    assert!(by_restore > 0 || few, "the real tool accepted no text");
}

#[test]
fn random_changes_of_nf_tables() {
    random_changes(Backend::Nft, Family::Ipv4);
}

#[test]
fn random_changes_of_ipv6_nf_tables() {
    random_changes(Backend::Nft, Family::Ipv6);
}

#[test]
fn random_changes_of_legacy_tables() {
    random_changes(Backend::Legacy, Family::Ipv4);
}

#[test]
fn random_changes_of_ipv6_legacy_tables() {
    random_changes(Backend::Legacy, Family::Ipv6);
}

/// So many positions of a long chain are used that its rules are written again: rules that stay keep their packets,
/// later lines see the results of earlier ones, and an error names its line.
#[test]
fn many_positions_of_a_long_chain() {
    // Transactions of a user without privileges are limited: there each position becomes an operation.
    let is_root = nix::unistd::geteuid().is_root();
    let number = if is_root { 4_000 } else { 400 };
    let rule = |at: usize| format!("-s 10.0.{}.{}/32 -j ACCEPT", at / 256, at % 256);
    let mut start = "*filter\n:C - [0:0]\n:used - [0:0]\n:other - [0:0]\n".to_owned();
    for at in 0..number {
        writeln!(start, "[{}:{}] -A C {}", at + 1, at + 7, rule(at)).unwrap();
    }
    writeln!(start, "[5:6] -A C -j used\nCOMMIT").unwrap();
    let handles = |sandbox: &chainwright_testing::Sandbox| -> Vec<u64> {
        let mut nft = crate::common::connect(sandbox);
        let snapshot = nft.snapshot(chainwright::nft::Scope::all()).unwrap();
        let chains = snapshot.tables().flat_map(|table| table.chains());
        let rules = chains.flat_map(|chain| chain.rules());
        rules.map(|rule| rule.handle()).collect()
    };
    // Each text uses positions of every kind: of existing rules, and of new ones.
    let text = |verb: &dyn Fn(usize) -> String, lines: usize, behind: &str| {
        let changes: String = (0..lines).map(|at| verb(at) + "\n").collect();
        format!("*filter\n{changes}{behind}COMMIT\n")
    };
    let new = |at: usize| format!("-c {at} 9 -s 10.1.{}.{}/32 -j DROP", at / 256, at % 256);
    let inserts = |at: usize| format!("-I C {} {}", number - at % 50, new(at));
    let replaces = |at: usize| format!("-R C {} {}", number - at % 50, new(at));
    let deletes = |at: usize| format!("-D C {}", number - at);
    let mixed = |at: usize| match at % 4 {
        0 => format!("-A C {}", new(at)),
        1 => format!("-D C {}", number - at / 2),
        2 => format!("-R C {} {}", number - 7, new(at)),
        _ => format!("-I C {} {}", number - at / 4, new(at)),
    };
    let behind = "-D C -j used\n-X used\n-N newer\n-I C 3 -j newer\n-I C 3 -j other\n-Z C 5\n-E other another\n";
    let (many, few) = (number * 3 / 2, number * 3 / 4);
    for (verb, lines, behind) in [
        (&inserts as &dyn Fn(usize) -> String, many, ""),
        (&replaces, many, ""),
        (&deletes, few, ""),
        (&mixed, many, ""),
        (&inserts, many, "-D C -j used\n-X used\n"),
        (&replaces, many, behind),
        (&mixed, many, "-F C\n-A C -j other\n"),
        (&inserts, many, "-I C 7 -j other\n-F\n"),
    ] {
        let texts = [Backend::Nft, Backend::Legacy].map(|backend| {
            let sandbox = sandbox();
            let restore = tool(backend, Family::Ipv4, "-restore --counters");
            drop(Tools::new(&sandbox).run_with(&restore, &start));
            let mut iptables = open(&sandbox, backend);
            let options = RestoreOptions {
                noflush: true,
                counters: true,
                ..RestoreOptions::default()
            };
            let before = handles(&sandbox);
            let text = text(verb, lines, behind);
            let restored = iptables.restore(Family::Ipv4, &text, &options);
            restored.unwrap_or_else(|error| panic!("{}", crate::common::report(&error)));
            if backend == Backend::Nft && is_root {
                let kept = handles(&sandbox);
                assert!(kept.iter().all(|handle| !before[..number].contains(handle)));
            }
            our_save(&sandbox, backend, Family::Ipv4)
        });
        assert!(texts[0] == texts[1], "{}\nbut\n{}", texts[0], texts[1]);
    }
    // An error of the kernel names its line, even if the operation comes after that of a later line.
    let sandbox = sandbox();
    let restore = tool(Backend::Nft, Family::Ipv4, "-restore --counters");
    drop(Tools::new(&sandbox).run_with(&restore, &start));
    let mut iptables = open(&sandbox, Backend::Nft);
    for (behind, line) in [
        ("-I C 9 -j absent\n-A other -j missing\n", 2),
        (
            "-I C 9 -j other\n-A other -j missing\n-I C 9 -j absent\n",
            3,
        ),
        ("-I C 9 -j absent\n-N absent\n", 2),
        ("-A INPUT -j C\n-I C 9 -j other\n-A other -j C\n", 4),
        ("-A INPUT -j C\n-A other -j C\n-I C 9 -j other\n", 4),
        (
            "-A INPUT -j C\n-I C 9 -j other\n-I other -s 10.0.0.1 -g C\n-A C -j other\n",
            4,
        ),
        ("-X used\n", 2),
    ] {
        let text = text(&inserts, many, behind);
        let options = RestoreOptions {
            noflush: true,
            ..RestoreOptions::default()
        };
        let error = iptables.restore(Family::Ipv4, &text, &options);
        let error = error.map(drop).unwrap_err();
        assert!(error.nothing_applied());
        let found = error.to_string();
        let expected = format!("line {}: ", many + line);
        assert!(found.starts_with(&expected), "{behind}: {found}");
    }
}
