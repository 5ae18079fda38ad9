//! The rules in `tests/rules/` (see the `README.md` there).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use chainwright::iptables::text::{Command, ParseError, words};
use chainwright::iptables::{Family, Rule};

/// Lines of a file that go into one chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub(crate) families: String,
    pub(crate) table: String,
    pub(crate) chain: String,
    /// `nft` or `legacy` for rules of only one backend; `first-user-namespace` if the kernel accepts
    /// them only there.
    pub(crate) only: Option<String>,
    /// Line number and text of each rule.
    pub(crate) rules: Vec<(usize, String)>,
}

/// A file of rules.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// Commands that create what the rules need.
    pub(crate) setup: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

pub(crate) fn directory() -> PathBuf {
    super::in_workspace("tests/rules")
}

/// Parses the rule in a line as a restore does: texts that are too long are cut.
pub(crate) fn parse(family: Family, line: &str) -> Result<Rule, ParseError> {
    let line = format!("-A user {line}");
    let mut found = Vec::new();
    words(line.as_bytes(), &mut found)?;
    Ok(Command::parse(family, &found, |_| false)?.spec.rule)
}

/// All files, or those whose path contains the value of `CHAINWRIGHT_TEST_RULES`.
pub(crate) fn files() -> Vec<File> {
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

pub(crate) fn read(path: &Path) -> File {
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
    /// The sections for one family and backend, with those of one chain joined.
    pub(crate) fn sections(&self, family: Family, backend: &str) -> Vec<Section> {
        let digit = if family == Family::Ipv4 { '4' } else { '6' };
        let mut joined: BTreeMap<(&str, &str), Section> = BTreeMap::new();
        for section in &self.sections {
            let other = match section.only.as_deref() {
                Some("first-user-namespace") => {
                    let first = in_first_user_namespace();
                    if !first {
                        eprintln!(
                            "{}: {} rules are not loaded: the kernel accepts them in the initial user \
                             namespace only",
                            self.name(),
                            section.rules.len()
                        );
                    }
                    !first
                }
                only => only.is_some_and(|only| only != backend),
            };
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

    pub(crate) fn name(&self) -> String {
        let path = self.path.strip_prefix(directory()).unwrap_or(&self.path);
        path.display().to_string()
    }
}

/// Whether new network namespaces belong to the initial user namespace: they do for root, and not for a
/// user without privileges.
pub(crate) fn in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_whitespace().nth(2) == Some("4294967295")
}

/// The input of iptables-restore.
pub(crate) fn restore(sections: &[Section]) -> String {
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
