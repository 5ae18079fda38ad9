//! Translations of rules for every option of every extension, compared with those of iptables-translate 1.8.13
//! (`tests/data/translate`).

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;

use crate::common::rules::{File, files, parse, read};
use crate::common::tools::words;
use crate::common::{in_workspace, sandbox};
use chainwright::iptables::Family;
use chainwright::nft::Connection;
use chainwright_lang::Script;
use chainwright_lang::translate::{self, Untranslatable};

/// Directory of the program that writes the records again.
const CAPTURE: &str = "CHAINWRIGHT_CAPTURE_TRANSLATE";

/// A rule, its translations, and why there is none.
struct Record {
    family: Family,
    table: String,
    rule: String,
    real: Option<String>,
    chainwright: Result<String, String>,
}

/// Result of the translation of a rule, in the order of the printed numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only iptables-translate translates it.
    Refused,
    Same,
    Different,
    OnlyOurs,
    Neither,
}

impl Record {
    fn kind(&self) -> Kind {
        match (&self.real, &self.chainwright) {
            (Some(_), Err(_)) => Kind::Refused,
            // iptables-translate writes two blanks before some matches.
            (Some(real), Ok(chainwright))
                if real.replace("  ", " ").trim_start() == chainwright =>
            {
                Kind::Same
            }
            (Some(_), Ok(_)) => Kind::Different,
            (None, Ok(_)) => Kind::OnlyOurs,
            (None, Err(_)) => Kind::Neither,
        }
    }

    fn text(&self) -> String {
        let digit = if self.family == Family::Ipv4 { 4 } else { 6 };
        let mut text = format!("{digit} {} {}\n", self.table, self.rule);
        let real = self.real.as_deref().unwrap_or("#");
        let _ = writeln!(text, "\t{real}");
        match (&self.chainwright, self.kind()) {
            (_, Kind::Same) => {}
            (Ok(chainwright), _) => drop(writeln!(text, "\t> {chainwright}")),
            (Err(why), _) => drop(writeln!(text, "\t> # {why}")),
        }
        text
    }
}

fn data() -> std::path::PathBuf {
    in_workspace("tests/data/translate/1.8.13.txt")
}

/// All rules: family, table and text.
fn rules() -> Vec<(Family, String, String)> {
    let mut files: Vec<File> = files();
    files.push(read(&in_workspace("tests/data/translate/more.rules")));
    let mut seen = HashSet::new();
    let mut rules = Vec::new();
    for section in files.iter().flat_map(|file| &file.sections) {
        for family in [Family::Ipv4, Family::Ipv6] {
            let digit = if family == Family::Ipv4 { '4' } else { '6' };
            for (_, rule) in &section.rules {
                let all = (family, section.table.clone(), rule.clone());
                if section.families.contains(digit) && seen.insert(all.clone()) {
                    rules.push(all);
                }
            }
        }
    }
    rules
}

fn chainwright(family: Family, rule: &str) -> Result<String, String> {
    let parsed = parse(family, rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
    translate::rule(&parsed, family).map_err(|why| match why {
        Untranslatable::Extension(_) => "no equivalent".to_owned(),
        Untranslatable::Inexact { why, .. } => why.to_owned(),
        why => why.to_string(),
    })
}

/// Runs iptables-translate; `None` if it does not translate the rule, `Err` if it rejects the rule.
fn real(directory: &str, family: Family, table: &str, rule: &str) -> Result<Option<String>, ()> {
    let (program, nft) = match family {
        Family::Ipv4 => ("iptables-translate", "ip"),
        Family::Ipv6 => ("ip6tables-translate", "ip6"),
    };
    let ran = Command::new(format!("{directory}/{program}"))
        .args(["-t", table, "-A", "c"])
        .args(words(rule))
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    if !ran.status.success() {
        return Err(());
    }
    let text = text.trim_end_matches('\n').replace('\n', " ");
    let head = format!("nft 'add rule {nft} {table} c ");
    let text = text.replacen(&head, "nft '", 1).replace("'\\''", "'");
    let text = text
        .strip_prefix("nft '")
        .and_then(|text| text.strip_suffix('\''));
    Ok(text.map(str::to_owned))
}

fn records() -> Vec<Record> {
    let text = std::fs::read_to_string(data()).unwrap();
    let mut records: Vec<Record> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(chainwright) = line.strip_prefix("\t> ") {
            let last = records.last_mut().unwrap();
            last.chainwright = match chainwright.strip_prefix("# ") {
                Some(why) => Err(why.to_owned()),
                None => Ok(chainwright.to_owned()),
            };
        } else if let Some(real) = line.strip_prefix('\t') {
            let last = records.last_mut().unwrap();
            last.real = Some(real.to_owned()).filter(|real| real != "#");
            last.chainwright = Ok(real.replace("  ", " ").trim_start().to_owned());
        } else {
            let mut parts = line.splitn(3, ' ');
            records.push(Record {
                family: match parts.next() {
                    Some("4") => Family::Ipv4,
                    _ => Family::Ipv6,
                },
                table: parts.next().unwrap().to_owned(),
                rule: parts.next().unwrap().to_owned(),
                real: None,
                chainwright: Err(String::new()),
            });
        }
    }
    records
}

/// With [`CAPTURE`], writes the records: only then are the real programs needed.
fn capture(directory: &str) {
    let mut text = "# Rules, their translation by iptables-translate 1.8.13 (`#` if it has none), and behind `>` this \
                    library's, or the reason why there is none, if it is another.\n"
        .to_owned();
    for (family, table, rule) in rules() {
        if let Ok(real) = real(directory, family, &table, &rule) {
            let chainwright = chainwright(family, &rule);
            text += &Record {
                family,
                table,
                rule,
                real,
                chainwright,
            }
            .text();
        }
    }
    std::fs::write(data(), text).unwrap();
}

/// Every rule is translated as recorded. If iptables-translate translates a rule and this crate does not, the record
/// has a reason.
#[test]
fn translations_are_those_of_1_8_13_or_recorded_differences() {
    if let Ok(directory) = std::env::var(CAPTURE) {
        capture(&directory);
    }
    let records = records();
    let (mut wrong, mut counts) = (Vec::new(), [0; 5]);
    for record in &records {
        counts[record.kind() as usize] += 1;
        let now = chainwright(record.family, &record.rule);
        if now != record.chainwright {
            wrong.push(format!(
                "{}\n  now      {now:?}\n  recorded {:?}",
                record.rule, record.chainwright
            ));
        }
        let has_reason = record
            .chainwright
            .as_ref()
            .err()
            .is_none_or(|why| why != "no equivalent");
        if record.kind() == Kind::Refused && !has_reason {
            wrong.push(format!("{}: refused without a reason", record.rule));
        }
    }
    println!(
        "{} rules: {} only iptables-translate translates, {} alike, {} differently, {} only we, {} neither",
        records.len(),
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4]
    );
    assert!(records.len() > 2500, "{}", records.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The kernel accepts every translation, except for statements that it lacks altogether.
#[test]
fn the_kernel_accepts_the_translations() {
    let sandbox = sandbox();
    let wrong = sandbox
        .run(|| {
            let mut nft = Connection::open().unwrap();
            let mut load = |family: Family, table: &str, rule: &str| {
                let family = if family == Family::Ipv4 { "ip" } else { "ip6" };
                let text = format!(
                    "add table {family} {table}\nadd chain {family} {table} user\n\
                     add chain {family} {table} other\nadd chain {family} {table} c\n\
                     add rule {family} {table} c {rule}\n"
                );
                let script = Script::parse("rule", text).map_err(|error| error.to_string())?;
                let change = script
                    .transaction(None)
                    .map_err(|error| error.to_string())?;
                nft.commit(change.transaction())
                    .map_err(|error| error.to_string())
            };
            let has_queues = load(Family::Ipv4, "filter", "queue to 0").is_ok();
            let (mut wrong, mut seen) = (Vec::new(), HashSet::new());
            for record in records() {
                if let Ok(rule) = &record.chainwright
                    && seen.insert((record.family, rule.clone()))
                    // Devices that this machine does not have.
                    && (!rule.contains(" device ") || rule.ends_with("device lo"))
                    && (has_queues || !rule.contains("queue num"))
                    && let Err(error) = load(record.family, &record.table, rule)
                {
                    wrong.push(format!("{rule}: {error}"));
                }
            }
            wrong
        })
        .unwrap();
    assert!(
        wrong.is_empty(),
        "{} rules\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
