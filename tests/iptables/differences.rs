//! `docs/differences.md` lists the differences that the library declares, and the real tool and the
//! library treat each rule in it as described.
//!
//! `CHAINWRIGHT_WRITE_DIFFERENCES=1 cargo test --test iptables differences::` writes the page again.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::iptables::{Family, Rule, known_differences};
use chainwright::xt::{Difference, Match, Target, ToolBehavior};

const HEAD: &str = "\
# Where chainwright differs from iptables

These differences from iptables 1.8.9 are deliberate. The code declares each of them, with its reason, next to
the place that implements it. A test generates this page from the declarations, and runs each rule under
\"Options of extensions\" through both iptables and the library.
";

/// Each extension by its option and name, with its differences.
fn of_extensions() -> Vec<(String, &'static [Difference])> {
    let matches = Match::ALL
        .iter()
        .map(|spec| ("-m", spec.names()[0], spec.differences()));
    let targets = Target::ALL
        .iter()
        .map(|spec| ("-j", spec.names()[0], spec.differences()));
    let all = matches.chain(targets).filter(|(.., all)| !all.is_empty());
    all.map(|(option, name, all)| (format!("{option} {name}"), all))
        .collect()
}

/// A text for a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

fn does(does: ToolBehavior) -> String {
    match does {
        ToolBehavior::Prints(text) => format!("prints {}", code(text)),
        ToolBehavior::PrintsUnchanged => "keeps it".to_owned(),
        ToolBehavior::Refuses => "refuses it".to_owned(),
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, all) in known_differences() {
        let _ = writeln!(page, "\n## {title}\n");
        page += "| about | iptables | chainwright | why |\n|---|---|---|---|\n";
        for one in all {
            let cells = [one.subject, one.iptables, one.chainwright, one.reason];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }
    page += "\n## Options of extensions\n";
    page += "\n\"keeps it\" means: prints the rule as it was given.\n\n";
    page += "| rule | iptables | chainwright | why |\n|---|---|---|---|\n";
    for (_, all) in of_extensions() {
        for one in all {
            let (theirs, ours) = (does(one.iptables), does(one.chainwright));
            let _ = writeln!(
                page,
                "| {} | {theirs} | {ours} | {} |",
                code(one.rule),
                one.reason
            );
        }
    }
    page
}

#[test]
fn the_page_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/differences.md");
    if std::env::var_os("CHAINWRIGHT_WRITE_DIFFERENCES").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written == page(),
        "docs/differences.md does not match the code: write it again with \
         CHAINWRIGHT_WRITE_DIFFERENCES=1"
    );
}

/// The real tool's output for a rule; `None` if it refuses the rule.
fn theirs(one: &Difference) -> Option<String> {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let ip = if one.family == Family::Ipv4 {
        "iptables"
    } else {
        "ip6tables"
    };
    let (table, chain) = one.chain;
    let text = format!("*{table}\n-A {chain} {}\nCOMMIT\n", one.rule);
    tools.takes(&format!("{ip}-legacy-restore"), &text).ok()?;
    let saved = tools.save(&format!("{ip}-legacy-save -t {table}"));
    let start = format!("-A {chain} ");
    let line = saved.lines().find_map(|line| line.strip_prefix(&start));
    Some(line.unwrap_or_default().to_owned())
}

#[test]
fn each_documented_difference_exists() {
    let mut wrong = Vec::new();
    for (name, all) in of_extensions() {
        for one in all {
            let ours = Rule::parse(one.family, one.rule)
                .ok()
                .map(|rule| rule.to_string());
            for (who, says, found) in [
                ("iptables", one.iptables, theirs(one)),
                ("chainwright", one.chainwright, ours),
            ] {
                let wanted = match says {
                    ToolBehavior::Prints(text) => Some(text.to_owned()),
                    ToolBehavior::PrintsUnchanged => Some(one.rule.to_owned()),
                    ToolBehavior::Refuses => None,
                };
                if found != wanted {
                    wrong.push(format!(
                        "{name}: {}: {who}: {found:?}, not {wanted:?}",
                        one.rule
                    ));
                }
            }
            if let ToolBehavior::Prints(text) = one.chainwright {
                assert!(Rule::parse(one.family, text).is_ok(), "{text}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
