//! Rules of our own (`rules/`), loaded by the real tools and by us, read by both.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use chainwright::ipset;
use chainwright::iptables::{self, Family, Rule, SetError, Target};
use chainwright::netns::Sandbox;
use chainwright::nft::expr::{self, Decoded};
use chainwright::xt::{self, SetName, SetNames};
use chainwright::{legacy, nft};
use common::tools::Tools;
use common::{connect, sandbox};

/// Lines of a file that go into one chain.
#[derive(Debug, Clone, Default)]
struct Section {
    families: String,
    table: String,
    chain: String,
    /// `nft` or `legacy`, if they are for one of them only.
    only: Option<String>,
    /// Line number and text of each rule.
    rules: Vec<(usize, String)>,
}

/// A file of rules.
#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    /// Commands that make what the rules need.
    setup: Vec<String>,
    sections: Vec<Section>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules")
}

/// All files, or those whose path holds what `CHAINWRIGHT_TEST_RULES` says.
fn files() -> Vec<File> {
    let wanted = std::env::var("CHAINWRIGHT_TEST_RULES").unwrap_or_default();
    let mut paths = Vec::new();
    for directory in [
        directory(),
        directory().join("match"),
        directory().join("target"),
    ] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "rules")
                && path.to_string_lossy().contains(&wanted)
            {
                paths.push(path);
            }
        }
    }
    paths.sort();
    assert!(!paths.is_empty(), "no file of rules matches {wanted:?}");
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> File {
    let mut file = File {
        path: path.to_owned(),
        ..File::default()
    };
    let text = fs::read_to_string(path).unwrap();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            file.setup.push(command.to_owned());
        } else if let Some(directive) = line.strip_prefix("@ ") {
            let words: Vec<_> = directive.split(' ').collect();
            let (&[families, table, chain], only) = words.split_at(3) else {
                panic!("{}:{number}: {line}", path.display());
            };
            file.sections.push(Section {
                families: families.to_owned(),
                table: table.to_owned(),
                chain: chain.to_owned(),
                only: only.first().map(|only| (*only).to_owned()),
                rules: Vec::new(),
            });
        } else {
            let section = file.sections.last_mut();
            let section = section.unwrap_or_else(|| panic!("{}: no `@` line", path.display()));
            section.rules.push((number, line.to_owned()));
        }
    }
    file
}

impl File {
    /// What the sections say for one family and backend, with those of one chain joined.
    fn sections(&self, family: Family, backend: &str) -> Vec<Section> {
        let digit = if family == Family::Ipv4 { '4' } else { '6' };
        let mut joined: BTreeMap<(&str, &str), Section> = BTreeMap::new();
        for section in &self.sections {
            let other = section.only.as_deref().is_some_and(|only| only != backend);
            if other || !section.families.contains(digit) {
                continue;
            }
            let key = (section.table.as_str(), section.chain.as_str());
            let all = joined.entry(key).or_insert_with(|| Section {
                rules: Vec::new(),
                ..section.clone()
            });
            all.rules.extend(section.rules.iter().cloned());
        }
        joined.into_values().collect()
    }

    fn name(&self) -> String {
        let path = self.path.strip_prefix(directory()).unwrap_or(&self.path);
        path.display().to_string()
    }
}

/// The input of iptables-restore.
fn restore(sections: &[Section]) -> String {
    let mut text = String::new();
    let mut tables: BTreeMap<&str, Vec<&Section>> = BTreeMap::new();
    for section in sections {
        tables.entry(&section.table).or_default().push(section);
    }
    for (table, sections) in tables {
        let _ = writeln!(text, "*{table}\n:user - [0:0]\n:other - [0:0]");
        for section in sections {
            for (_, rule) in &section.rules {
                let _ = writeln!(text, "-A {} {rule}", section.chain);
            }
        }
        text += "COMMIT\n";
    }
    text
}

fn tool(family: Family, backend: &str, what: &str) -> String {
    let ip = if family == Family::Ipv4 {
        "iptables"
    } else {
        "ip6tables"
    };
    format!("{ip}-{backend}-{what}")
}

/// A sandbox with what the file's rules need.
fn prepared(file: &File) -> Sandbox {
    let sandbox = sandbox();
    for command in &file.setup {
        Tools::new(&sandbox).run(command);
    }
    sandbox
}

/// The options of each rule of a chain, as the real tool saves them.
fn saved<'s>(text: &'s str, table: &str, chain: &str) -> Vec<&'s str> {
    let start = format!("*{table}\n");
    let at = text
        .find(&start)
        .unwrap_or_else(|| panic!("no table {table} in\n{text}"));
    let table = text[at..].split("COMMIT\n").next().unwrap_or_default();
    let prefix = format!("-A {chain}");
    table
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
        .map(|rest| rest.strip_prefix(' ').unwrap_or(rest))
        .collect()
}

/// The printed rule, as bytes.
fn printed(rule: &Rule) -> String {
    let mut text = xt::Text::new();
    rule.print(&mut text);
    let bytes = text.into_bytes();
    let bytes = bytes.strip_prefix(b" ").unwrap_or(&bytes);
    bytes.to_str_lossy().into_owned()
}

/// Looks up sets in a sandbox, if there is one to be looked up.
struct Sets<'s>(&'s Sandbox, Option<ipset::Connection>);

impl Sets<'_> {
    fn connection(&mut self) -> &mut ipset::Connection {
        let sandbox = self.0;
        self.1
            .get_or_insert_with(|| sandbox.run(ipset::Connection::open).unwrap().unwrap())
    }
}

impl SetNames for Sets<'_> {
    type Error = SetError;

    fn index(&mut self, family: Family, name: &SetName) -> Result<u16, SetError> {
        self.connection().index(family, name)
    }

    fn name(&mut self, index: u16) -> Result<SetName, SetError> {
        SetNames::name(self.connection(), index)
    }
}

/// Extensions of a rule as they are in the kernel: name, revision, data.
type Extensions = Vec<(String, u8, Vec<u8>)>;

fn encoded(family: Family, rule: &Rule) -> Extensions {
    let plain = |encoded: xt::Encoded<'_>| {
        (
            encoded.name.to_owned(),
            encoded.revision,
            encoded.info.to_vec(),
        )
    };
    let mut all: Vec<_> = rule
        .matches
        .iter()
        .map(|m| plain(m.encode(family).unwrap()))
        .collect();
    if let Target::Extension(target) = &rule.target {
        all.push(plain(target.encode(family).unwrap()));
    }
    all
}

/// What is wrong with the rules of one section, read from the legacy tables.
fn check_legacy(
    family: Family,
    section: &Section,
    table: &legacy::Table,
    saved: &[&str],
    sets: &mut Sets<'_>,
    wrong: &mut Vec<String>,
) {
    let chain = table.chain(&section.chain).unwrap();
    assert_eq!(chain.rule_count(), section.rules.len());
    assert_eq!(saved.len(), section.rules.len());
    for ((entry, (number, line)), saved) in chain.rules().zip(&section.rules).zip(saved) {
        let mut say = |what: String| wrong.push(format!("line {number}: {line}\n    {what}"));
        let mut kernel: Extensions = Vec::new();
        for extension in entry.matches() {
            let extension = extension.unwrap();
            let (name, data) = (extension.name().to_string(), extension.data().to_vec());
            kernel.push((name, extension.revision(), data));
        }
        if let legacy::Target::Extension(target) = entry.target().unwrap() {
            kernel.push((
                target.name().to_string(),
                target.revision(),
                target.data().to_vec(),
            ));
        }
        let Some(rule) = iptables::legacy::decode(&entry) else {
            say("cannot be read".to_owned());
            continue;
        };
        let mut named = rule.clone();
        named.name_sets(sets).unwrap();
        let ours = printed(&named);
        if ours != *saved {
            say(format!("real save: {saved}\n    our save:  {ours}"));
        }
        if encoded(family, &rule) != kernel {
            say(format!(
                "in the kernel:   {kernel:02x?}\n    read and written: {:02x?}",
                encoded(family, &rule)
            ));
        }
        for text in [line.as_str(), saved] {
            match Rule::parse(family, text) {
                Err(fault) => say(format!("cannot be parsed: {text}\n    {fault}")),
                Ok(parsed) => {
                    let mut resolved = parsed.clone();
                    resolved.resolve_sets(family, sets).unwrap();
                    let ours = encoded(family, &resolved);
                    if ours != kernel {
                        say(format!(
                            "in the kernel: {kernel:02x?}\n    parsed from {text}: {ours:02x?}"
                        ));
                    }
                    if printed(&parsed) != *saved {
                        say(format!(
                            "parsed from {text} and printed: {}",
                            printed(&parsed)
                        ));
                    }
                }
            }
        }
    }
}

#[test]
fn legacy_rules_are_read_and_parsed_as_the_real_tool_does() {
    let (mut wrong, mut rules) = (Vec::new(), 0);
    for file in files() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let sections = file.sections(family, "legacy");
            if sections.is_empty() {
                continue;
            }
            let sandbox = prepared(&file);
            let tools = Tools::new(&sandbox);
            tools.run_with(&tool(family, "legacy", "restore"), &restore(&sections));
            let text = tools.save(&tool(family, "legacy", "save"));
            let legacy_family = match family {
                Family::Ipv4 => legacy::Family::Ipv4,
                Family::Ipv6 => legacy::Family::Ipv6,
            };
            let connection = sandbox.run(|| legacy::Connection::open(legacy_family));
            let connection = connection.unwrap().unwrap();
            let mut sets = Sets(&sandbox, None);
            for section in &sections {
                let table = connection.read(&section.table).unwrap().in_use().unwrap();
                let saved = saved(&text, &section.table, &section.chain);
                let mut faults = Vec::new();
                check_legacy(family, section, &table, &saved, &mut sets, &mut faults);
                rules += section.rules.len();
                let name = file.name();
                wrong.extend(
                    faults
                        .iter()
                        .map(|fault| format!("{name} {family:?} {fault}")),
                );
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{rules} rules in the legacy tables");
}

#[test]
fn extensions_in_nf_tables_are_the_same() {
    let (mut wrong, mut extensions) = (Vec::new(), 0);
    for file in files() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let sections = file.sections(family, "nft");
            if sections.is_empty() {
                continue;
            }
            let sandbox = prepared(&file);
            let tools = Tools::new(&sandbox);
            tools.run_with(&tool(family, "nft", "restore"), &restore(&sections));
            let mut connection = connect(&sandbox);
            for section in &sections {
                let nft_family = nft::Family::from(family);
                let filter = nft::Filter::chain(nft_family, &section.table, &section.chain);
                let mut rules = connection.rules(filter).unwrap();
                for (number, line) in &section.rules {
                    let rule = rules.next().unwrap().unwrap();
                    for expression in rule.expressions().into_iter().flatten() {
                        let decoded = expression.unwrap().decode().unwrap();
                        let (name, revision, info, again, opaque) = match decoded {
                            Decoded::Match(expr::Match {
                                name,
                                revision,
                                info,
                                ..
                            }) => {
                                let (name, info) = (name.unwrap().to_string(), info.unwrap());
                                let revision = revision.unwrap() as u8;
                                let read = xt::Match::read(family, &name, revision, &info);
                                let again = read.encode(family).unwrap().info.to_vec();
                                let opaque = matches!(read, xt::Match::Opaque(_));
                                (name, revision, info.to_vec(), again, opaque)
                            }
                            Decoded::Target(expr::Target {
                                name,
                                revision,
                                info,
                                ..
                            }) => {
                                let (name, info) = (name.unwrap().to_string(), info.unwrap());
                                let revision = revision.unwrap() as u8;
                                let read = xt::Target::read(family, &name, revision, &info);
                                let again = read.encode(family).unwrap().info.to_vec();
                                let opaque = matches!(read, xt::Target::Opaque(_));
                                (name, revision, info.to_vec(), again, opaque)
                            }
                            _ => continue,
                        };
                        extensions += 1;
                        if opaque || again != info {
                            wrong.push(format!(
                                "{} {family:?} line {number}: {line}\n    {name} {revision}: {info:02x?}\n    read and written (opaque: {opaque}): {again:02x?}",
                                file.name()
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{extensions} extensions in nf_tables");
}
