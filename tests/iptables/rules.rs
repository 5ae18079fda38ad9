//! The test rules (`rules/`), loaded by the real tools and by the library, read by both.

use crate::common::rules::{File, Section, files, parse, restore};
use crate::common::tools::Tools;
use crate::common::{accounting, connect, sandbox};
use bstr::ByteSlice;
use chainwright::Retry;
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{self, Backend, Family, Iptables, Rule, Target};
use chainwright::legacy::{self, LockPolicy};
use chainwright::{ipset, nft, xt};
use chainwright_testing::Sandbox;

fn tool(family: Family, backend: &str, what: &str) -> String {
    let ip = if family == Family::Ipv4 {
        "iptables"
    } else {
        "ip6tables"
    };
    format!("{ip}-{backend}-{what}")
}

/// Creates a sandbox with everything that the file's rules need.
fn prepared(file: &File) -> Sandbox {
    let sandbox = sandbox();
    for command in &file.setup {
        match command.strip_prefix("nfacct ") {
            Some(name) => accounting::add(&sandbox, name),
            None => drop(Tools::new(&sandbox).run(command)),
        }
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

/// Extensions of a rule as in the kernel: name, revision, data.
type Extensions = Vec<(String, u8, Vec<u8>)>;

fn encoded(family: Family, rule: &Rule) -> Extensions {
    let plain = |encoded: Result<xt::Encoded<'_>, xt::EncodeError>| {
        let encoded = encoded.unwrap();
        (
            encoded.name.to_owned(),
            encoded.revision,
            encoded.info.to_vec(),
        )
    };
    let mut all: Vec<_> = rule
        .matches
        .iter()
        .map(|m| plain(m.encode(family)))
        .collect();
    if let Target::Extension(target) = &rule.target {
        all.push(plain(target.encode(family)));
    }
    all
}

/// The errors in the rules of one section, read from the legacy tables.
fn check_legacy(
    family: Family,
    section: &Section,
    table: &legacy::Table,
    saved: &[&str],
    sets: &ipset::Connection,
    wrong: &mut Vec<String>,
) {
    let chain = table.chain(&section.chain).unwrap();
    assert_eq!(chain.rule_count(), section.rules.len());
    assert_eq!(saved.len(), section.rules.len());
    for ((entry, (number, line)), saved) in chain.rules().zip(&section.rules).zip(saved) {
        let mut report = |what: String| wrong.push(format!("line {number}: {line}\n    {what}"));
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
        let rule = match iptables::legacy::decode(&entry) {
            Ok(entry) => entry.rule,
            Err(beyond) => {
                report(format!("cannot be read: {beyond}"));
                continue;
            }
        };
        let mut named = rule.clone();
        named.name_sets(&mut &*sets).unwrap();
        let ours = printed(&named);
        if ours != *saved {
            report(format!("real save: {saved}\n    our save:  {ours}"));
        }
        if encoded(family, &rule) != kernel {
            report(format!(
                "in the kernel:   {kernel:02x?}\n    read and written: {:02x?}",
                encoded(family, &rule)
            ));
        }
        for text in [line.as_str(), saved] {
            match parse(family, text) {
                Err(fault) => report(format!("cannot be parsed: {text}\n    {fault}")),
                Ok(parsed) => {
                    let mut resolved = parsed.clone();
                    resolved.resolve_sets(family, &mut &*sets).unwrap();
                    // The printed text does not show the original form of a mask: the rule is the same,
                    // but the bytes may differ, even if the real tool loads it.
                    let same = match text == line {
                        true => encoded(family, &resolved) == kernel,
                        false => resolved == rule,
                    };
                    if !same {
                        report(format!(
                            "in the kernel: {kernel:02x?}\n    parsed from {text}: {:02x?}",
                            encoded(family, &resolved)
                        ));
                    }
                    if printed(&parsed) != *saved {
                        report(format!(
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
fn legacy_rules_match_the_real_tool() {
    let (mut wrong, mut rules) = (Vec::new(), 0);
    for file in files() {
        for family in Family::ALL {
            let sections = file.sections(family, "legacy");
            if sections.is_empty() {
                continue;
            }
            let sandbox = prepared(&file);
            let tools = Tools::new(&sandbox);
            tools.run_with(&tool(family, "legacy", "restore"), &restore(&sections));
            let text = tools.save(&tool(family, "legacy", "save"));
            let connection = sandbox.run(|| legacy::Connection::open(family.into()));
            let connection = connection.unwrap().unwrap();
            let sets = sandbox.run(ipset::Connection::open).unwrap().unwrap();
            for section in &sections {
                let table = connection.read(&section.table).unwrap().in_use().unwrap();
                let saved = saved(&text, &section.table, &section.chain);
                let mut faults = Vec::new();
                check_legacy(family, section, &table, &saved, &sets, &mut faults);
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

/// The rules of each chain of a table, as bytecode without handles and positions.
fn bytecode(sandbox: &Sandbox, family: Family, section: &Section) -> Vec<String> {
    let mut connection = connect(sandbox);
    let filter = nft::RuleFilter::chain(family.into(), &section.table, &section.chain);
    let mut rules = Vec::new();
    connection
        .rules(filter)
        .unwrap()
        .for_each(|rule| {
            let text = rule.to_string();
            let expressions = text.lines().skip(1).collect::<Vec<_>>().join("\n");
            // With the bytes: bytecode does not show the data of extensions.
            let rule = rule.to_builder();
            rules.push(format!("{expressions}\n{:02x?}", rule.expressions));
        })
        .unwrap();
    rules
}

/// The output of the library's save, without comments.
fn our_save(iptables: &mut Iptables, family: Family, counters: bool) -> String {
    let mut text = Vec::new();
    let tables = iptables.read(family, &[]).unwrap();
    let omissions = tables.save(SaveOptions { counters }, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(omissions.is_none(), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The lines that differ.
fn differences(what: &str, expected: &str, found: &str, wrong: &mut Vec<String>) {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    if expected.len() != found.len() {
        wrong.push(format!(
            "{what}: {} lines, not {}",
            found.len(),
            expected.len()
        ));
    }
    for (expected, found) in expected.iter().zip(&found) {
        if expected != found {
            wrong.push(format!(
                "{what}\n    expected: {expected}\n    found:    {found}"
            ));
        }
    }
}

/// Converts the rules of a saved text to lines that check whether they exist. Sets and accounts exist
/// under the same names.
fn checks(saved: &str) -> String {
    let mut text = String::new();
    for line in saved.lines() {
        let rule = line
            .split_once("-A ")
            .map(|(_, rule)| format!("-C {rule}\n"));
        match rule {
            Some(rule) => text += &rule,
            None if line.starts_with(['*', 'C']) => text += &format!("{line}\n"),
            None => {}
        }
    }
    text
}

/// Removes the lines that declare chains, which would empty them.
fn without_declarations(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(':'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The library's save of what the real tool loaded equals the real save; the real save of what the library
/// loaded equals that of what the real tool loaded; the kernel has the same bytes in both cases; and each
/// finds the other's rules (`-C`), by the loaded text and by the saved one.
fn both_ways(backend: Backend) {
    let name = match backend {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    };
    let (mut wrong, mut rules, mut checked) = (Vec::new(), 0, 0);
    for file in files() {
        for family in Family::ALL {
            let sections = file.sections(family, name);
            if sections.is_empty() {
                continue;
            }
            let compared = Compared {
                what: format!("{} {family:?}", file.name()),
                family,
                backend,
                name,
                file: &file,
                sections: &sections,
            };
            let Some(saved) = compared.load(&restore(&sections), &mut wrong) else {
                continue;
            };
            // The printed text may be read as other bytes than the original ones, but by both alike.
            compared.load(&compared.loadable(&saved), &mut wrong);
            rules += sections
                .iter()
                .map(|section| section.rules.len())
                .sum::<usize>();
            checked += checks(&saved).lines().count();
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{rules} rules, {checked} lines with -C, {name}");
}

/// The rules of a file for one backend's tables of a family.
struct Compared<'f> {
    what: String,
    family: Family,
    backend: Backend,
    name: &'static str,
    file: &'f File,
    sections: &'f [Section],
}

impl Compared<'_> {
    fn open(&self, sandbox: &Sandbox) -> Iptables {
        let opened = sandbox.run(|| Iptables::open(self.backend));
        opened
            .unwrap()
            .unwrap()
            .with_lock(LockPolicy::None, Retry::ONCE)
            .with_profile(Profile::V1_8_8)
    }

    /// The real tool's save without the lines that the tool itself refuses.
    fn loadable(&self, saved: &str) -> String {
        let mut lines: Vec<_> = saved.lines().collect();
        let restore = tool(self.family, self.name, "restore -t");
        loop {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let sandbox = prepared(self.file);
            let Err(message) = Tools::new(&sandbox).takes(&restore, &text) else {
                return text;
            };
            let number = message.split_once("at line: ").map(|(_, behind)| behind);
            let number = number.and_then(|behind| behind.lines().next()?.parse::<usize>().ok());
            let number = number.unwrap_or_else(|| panic!("{}: {message}", self.what));
            assert!(
                lines[number - 1].contains("-A "),
                "{}: {message}",
                self.what
            );
            lines.remove(number - 1);
        }
    }

    /// Loads a text with the real tool and the library, and records differences. Returns the real tool's
    /// save.
    fn load(&self, input: &str, wrong: &mut Vec<String>) -> Option<String> {
        let &Self {
            ref what,
            family,
            name,
            ..
        } = self;
        let (theirs, ours) = (prepared(self.file), prepared(self.file));
        Tools::new(&theirs).run_with(&tool(family, name, "restore"), input);
        let options = RestoreOptions::default();
        if let Err(error) = self.open(&ours).restore(family, input, &options) {
            wrong.push(format!("{what}: {error}"));
            return None;
        }
        let save = tool(family, name, "save -c");
        let real = Tools::new(&theirs).save(&save);
        let found = our_save(&mut self.open(&theirs), family, true);
        differences(&format!("{what}: our save"), &real, &found, wrong);
        let found = Tools::new(&ours).save(&save);
        differences(&format!("{what}: our restore"), &real, &found, wrong);
        self.check(input, &checks(&real), &theirs, &ours, wrong);
        for section in self.sections {
            let (expected, found) = match self.backend {
                Backend::Nft => (
                    bytecode(&theirs, family, section),
                    bytecode(&ours, family, section),
                ),
                Backend::Legacy => (
                    entries(&theirs, family, section),
                    entries(&ours, family, section),
                ),
            };
            for (index, (number, line)) in section.rules.iter().enumerate() {
                if expected.get(index) != found.get(index) {
                    wrong.push(format!(
                        "{what} line {number}: {line}\n{}\n  but we wrote\n{}",
                        expected.get(index).map_or("", |text| text),
                        found.get(index).map_or("", |text| text),
                    ));
                }
            }
        }
        Some(real)
    }

    /// Looks for the rules, by the loaded text and by saved lines.
    fn check(
        &self,
        input: &str,
        saved: &str,
        theirs: &Sandbox,
        ours: &Sandbox,
        wrong: &mut Vec<String>,
    ) {
        let what = &self.what;
        let options = RestoreOptions {
            noflush: true,
            ..RestoreOptions::default()
        };
        for text in [
            &without_declarations(&input.replace("\n-A ", "\n-C ")),
            saved,
        ] {
            let text = text.replace("[0:0] -A ", "-C ");
            if let Err(error) = self.open(theirs).restore(self.family, &text, &options) {
                wrong.push(format!(
                    "{what}: our -C of what the real tool made: {error}"
                ));
            }
        }
        let restore = tool(self.family, self.name, "restore -n");
        let [in_ours, in_theirs] =
            [ours, theirs].map(|made| Tools::new(made).takes(&restore, saved));
        if in_ours != in_theirs {
            wrong.push(format!(
                "{what}: the real -C of what we made: {in_ours:?}; of its own: {in_theirs:?}"
            ));
        }
    }
}

/// The rules of a chain of a legacy table, byte by byte.
fn entries(sandbox: &Sandbox, family: Family, section: &Section) -> Vec<String> {
    let connection = sandbox.run(|| legacy::Connection::open(family.into()));
    let connection = connection.unwrap().unwrap();
    let table = connection.read(&section.table).unwrap().in_use().unwrap();
    let chain = table.chain(&section.chain).unwrap();
    let rules = chain.rules();
    rules.map(|rule| format!("{:02x?}", rule.bytes())).collect()
}

#[test]
fn nf_tables_save_and_restore_match_the_real_tool() {
    both_ways(Backend::Nft);
}

#[test]
fn legacy_save_and_restore_match_the_real_tool() {
    both_ways(Backend::Legacy);
}
