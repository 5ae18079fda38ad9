//! `chainwright apply`: restores tables from the output of `iptables-save`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style};
use bstr::{BStr, BString, ByteSlice};
use chainwright::iptables;
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::{self, RestoreOptions, TruncatedLine};
use chainwright::netlink;
use chainwright::nft::Diff;
use clap::ValueEnum;
use serde::Serialize;

use crate::apply::Args;
use crate::confirm::Reach;
use crate::diff;
use crate::iptables::{TableSelection, saved_text, snapshot_of_text};
use crate::output::{Error, Exit, Output, Printable, color_of_errors, eprint_line, note};
use crate::progress::Progress;

/// A version of iptables that introduced another form of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// marks, ports and flags as matches
    #[value(name = "1.8.7")]
    V1_8_7,
    /// marks, ports and flags as native expressions of nf_tables, which older versions overlook
    #[value(name = "1.8.8")]
    V1_8_8,
    /// as 1.8.8, with the protocol of IPv4 from the packet's header
    #[value(name = "1.8.10")]
    V1_8_10,
}

impl From<Version> for Profile {
    fn from(version: Version) -> Self {
        match version {
            Version::V1_8_7 => Self::V1_8_7,
            Version::V1_8_8 => Self::V1_8_8,
            Version::V1_8_10 => Self::V1_8_10,
        }
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Record {
    tables: usize,
    chains: usize,
    rules: usize,
    #[serde(rename = "shortened")]
    truncated: Vec<TruncatedText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<KeptRecord>,
    /// The changes that the text would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Diff>,
}

/// The effects of `--keep`.
#[derive(Serialize)]
struct KeptRecord {
    chains: usize,
    #[serde(rename = "passed_over")]
    skipped: usize,
    removed_chains: usize,
    kept_rules: usize,
    inserted_rules: usize,
    deleted_rules: usize,
}

impl From<&text::Preserved> for KeptRecord {
    fn from(kept: &text::Preserved) -> Self {
        Self {
            chains: kept.chains,
            skipped: kept.skipped,
            removed_chains: kept.removed,
            kept_rules: kept.rules.kept,
            inserted_rules: kept.rules.inserted,
            deleted_rules: kept.rules.deleted,
        }
    }
}

/// A truncated text.
#[derive(Serialize)]
struct TruncatedText {
    line: usize,
    option: &'static str,
    length: usize,
    kept: usize,
}

impl From<&TruncatedLine> for TruncatedText {
    fn from(line: &TruncatedLine) -> Self {
        Self {
            line: line.line,
            option: line.truncated.option,
            length: line.truncated.length,
            kept: line.truncated.kept,
        }
    }
}

/// Maximum number of printed warnings of one kind.
const WARNINGS: usize = 10;

/// Warns about truncated texts.
fn warn(name: &str, truncated: &[TruncatedLine]) {
    for one in truncated.iter().take(WARNINGS) {
        let (name, line) = (Printable(name), one.line);
        eprint_line(&format!("{name}:{line}: warning: {}", one.truncated));
    }
    if let Some(more) = truncated.len().checked_sub(WARNINGS + 1) {
        note(&format!(
            "warning: {} more texts are truncated in the same way",
            more + 1
        ));
    }
}

/// Restores tables from `text`.
pub(crate) fn run(args: &Args, text: &[u8], json: bool) -> Result<Exit, Error> {
    let selection = TableSelection::of(&args.scope.place)?;
    selection.warn_about_other_backend();
    let name = args.input.name();
    let change = || change(args, selection, &name, text, json);
    let reach = Reach::of(&[selection.backend]);
    args.confirm.guard(reach, Some(&args.locking), change)
}

fn change(
    args: &Args,
    selection: TableSelection,
    name: &str,
    text: &[u8],
    json: bool,
) -> Result<Exit, Error> {
    let profile = args.iptables.profile.unwrap_or(Version::V1_8_7);
    let iptables = selection.open()?.with_profile(profile.into());
    let mut iptables = args.locking.of(iptables);
    // A name that is not UTF-8 belongs to none of iptables' tables.
    let table = args.scope.table.as_ref().map(|name| name.to_string_lossy());
    let options = RestoreOptions {
        noflush: args.iptables.noflush,
        counters: args.iptables.counters,
        test: args.dry_run,
        table: table.map(Cow::into_owned),
    };
    let progress = Progress::new(format!("restoring {name}"));
    let restored = match &*args.keep {
        [] => iptables
            .restore(selection.family, text, &options)
            .map(|restored| (restored, None)),
        globs => {
            let keep = |name: &BStr| globs.iter().any(|glob| glob.is_match(name));
            iptables
                .restore_keeping(selection.family, text, &options, keep)
                .map(|kept| (kept.restored.clone(), Some(kept)))
        }
    };
    drop(progress);
    match restored {
        Ok((restored, kept)) => {
            warn(name, &restored.truncated);
            if let Some(passed) = kept.as_ref().map(|kept| kept.skipped)
                && passed > 0
            {
                note(&format!(
                    "skipped {passed} chains and rules of {}, because --keep keeps their chains",
                    Printable(name)
                ));
            }
            let mut out = Output::new();
            let changes = match args.dry_run {
                true => planned_changes(args, selection, text, &options)?,
                false => None,
            };
            if json {
                out.json(
                    "restore",
                    &Record {
                        tables: restored.tables,
                        chains: restored.chains,
                        rules: restored.rules,
                        truncated: restored.truncated.iter().map(TruncatedText::from).collect(),
                        kept: kept.as_ref().map(KeptRecord::from),
                        changes,
                    },
                )?;
            } else if let Some(changes) = &changes {
                diff::print_text(&mut out, changes)?;
                writeln!(out, "nothing was done")?;
            }
            out.flush()?;
            Ok(Exit::Done)
        }
        Err(error) => {
            let nothing_applied = error.nothing_applied();
            match ErrorLocation::of(&error) {
                Some(place) => {
                    eprint_line(&place.show(name, text, color_of_errors(AnsiColor::Red)))
                }
                None => Error::from(error).report(),
            }
            if nothing_applied {
                note("nothing was changed");
            }
            Ok(Exit::Failed)
        }
    }
}

/// Returns the changes that restoring the text would make, rule by rule, without counters. `None`, with a note, if they
/// are unknown.
fn planned_changes(
    args: &Args,
    selection: TableSelection,
    text: &[u8],
    options: &RestoreOptions,
) -> Result<Option<Diff>, Error> {
    if args.iptables.noflush || !args.keep.is_empty() {
        note("the changes are not shown with --noflush and --keep");
        return Ok(None);
    }
    let tables = snapshot_of_text(selection.family, text, options)?;
    let names = tables
        .tables()
        .map(|table| table.table().name().to_string());
    let names: Vec<_> = names.collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let saved = match selection.open_if_loaded() {
        Ok(mut iptables) => saved_text(&iptables.read(selection.family, &names)?)?,
        Err(error) if matches!(error.netlink(), Some(netlink::Error::NotLoaded)) => {
            Some(Vec::new())
        }
        Err(error) => return Err(error),
    };
    let Some(saved) = saved else {
        note("the changes are not shown: iptables cannot express a part of the present tables");
        return Ok(None);
    };
    let before = snapshot_of_text(selection.family, &saved, &RestoreOptions::default())?;
    let text = with_builtin_chains(text, &saved, selection.backend);
    let after = snapshot_of_text(selection.family, &text, options)?;
    diff::of_iptables(&before, &after).map(Some)
}

/// Returns the lines of a text, each with its table.
fn sections(text: &[u8]) -> impl Iterator<Item = (&BStr, &[u8])> {
    let lines = text.lines().map(<[u8]>::trim_ascii);
    lines.scan(BStr::new(""), |table, line| {
        if let Some(name) = line.strip_prefix(b"*") {
            *table = name.as_bstr();
        }
        Some((*table, line))
    })
}

/// Adds the built-in chains that a text does not declare. Those of legacy tables keep their policies; in nf_tables the
/// chains are gone, so that packets are accepted.
fn with_builtin_chains(text: &[u8], present: &[u8], backend: iptables::Backend) -> Vec<u8> {
    let declaration = |line: &[u8]| -> Option<(BString, BString)> {
        let mut words = line.strip_prefix(b":")?.split(u8::is_ascii_whitespace);
        Some((words.next()?.into(), words.next()?.into()))
    };
    let declared: BTreeSet<_> = sections(text)
        .filter_map(|(table, line)| Some((table, declaration(line)?.0)))
        .collect();
    let mut whole = Vec::new();
    for line in text.lines_with_terminator() {
        whole.extend_from_slice(line);
        let Some(table) = line.trim_ascii().strip_prefix(b"*") else {
            continue;
        };
        let of_table = sections(present).filter(|(of, _)| *of == table);
        for (chain, policy) in of_table.filter_map(|(_, line)| declaration(line)) {
            if policy == "-" || declared.contains(&(table.as_bstr(), chain.clone())) {
                continue;
            }
            let policy = match backend {
                iptables::Backend::Legacy => policy,
                iptables::Backend::Nft => "ACCEPT".into(),
            };
            whole.extend_from_slice(format!(":{chain} {policy} [0:0]\n").as_bytes());
        }
    }
    whole
}

/// The position and message of an error in the input.
#[derive(Debug)]
struct ErrorLocation {
    /// Counted from 1.
    line: usize,
    /// In bytes from 1; `None` for the whole line.
    column: Option<usize>,
    message: String,
}

/// Maximum number of characters of a line before the position, and from it on.
const BEFORE: usize = 60;
const AFTER: usize = 100;

impl ErrorLocation {
    fn of(error: &iptables::Error) -> Option<Self> {
        match error {
            iptables::Error::Text { line, error: fault } => Some(Self {
                line: *line,
                column: Some(fault.column),
                message: match &fault.hint {
                    Some(hint) => format!("{} ({hint})", fault.message),
                    None => fault.message.clone(),
                },
            }),
            iptables::Error::Line { line, error } => Some(Self {
                line: *line,
                column: None,
                message: crate::output::causes(error),
            }),
            iptables::Error::Refused { line, failure, .. } => Some(Self {
                line: *line,
                column: None,
                message: failure.clone(),
            }),
            _ => None,
        }
    }

    /// Formats `FILE:LINE:COLUMN: message`, the line, and an underline below the position.
    fn show(&self, file: &str, text: &[u8], color: Style) -> String {
        let line = text
            .lines()
            .nth(self.line.saturating_sub(1))
            .unwrap_or_default();
        let (start, length) = match self.column {
            Some(column) => {
                let start = (column.saturating_sub(1)).min(line.len());
                let rest = &line[start..];
                let blank = rest.find_byteset(b" \t").unwrap_or(rest.len());
                (start, blank)
            }
            None => (0, line.len()),
        };
        let (before, rest) = line.split_at(start);
        let (marked, after) = rest.split_at(length);
        let [before, marked, after] = [before, marked, after].map(shown);
        // Shows only the surroundings of the position in a long line.
        let skipped = before.chars().count().saturating_sub(BEFORE);
        let before = match skipped {
            0 => before,
            _ => format!("…{}", before.chars().skip(skipped).collect::<String>()),
        };
        let cut = |text: String, most: usize| match text.chars().count() > most {
            true => format!("{}…", text.chars().take(most).collect::<String>()),
            false => text,
        };
        let marked = cut(marked, AFTER);
        let width = marked.chars().count();
        let after = match width < AFTER {
            true => cut(after, AFTER - width),
            false => String::new(),
        };
        let column = self
            .column
            .map_or_else(String::new, |column| format!(":{column}"));
        let number = self.line.to_string();
        let mut rendered = format!(
            "{}:{number}{column}: {}\n{number:>5} | {before}{marked}{after}",
            Printable(file),
            Printable(&self.message),
        );
        if self.column.is_some() {
            let blanks = " ".repeat(before.chars().count());
            let carets = "^".repeat(width.max(1));
            rendered.push_str(&format!(
                "\n{:>width$} | {blanks}{color}{carets}{color:#}",
                "",
                width = number.len().max(5)
            ));
        }
        rendered
    }
}

/// Escapes a line for printing: each character takes one column, except escapes.
fn shown(bytes: &[u8]) -> String {
    let text = bytes.to_str_lossy().replace('\t', " ");
    Printable(&text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_at(column: Option<usize>, text: &str) -> String {
        let place = ErrorLocation {
            line: 2,
            column,
            message: "wrong".into(),
        };
        place.show("f", text.as_bytes(), Style::new())
    }

    #[test]
    fn error_location_is_underlined() {
        assert_eq!(
            render_at(Some(9), "*nat\n-A\tX -j DORP -m x\n"),
            "f:2:9: wrong\n    2 | -A X -j DORP -m x\n      |         ^^^^"
        );
        // After the last word, and beyond the last line.
        assert_eq!(
            render_at(Some(6), "*nat\n-A X "),
            "f:2:6: wrong\n    2 | -A X \n      |      ^"
        );
        assert_eq!(render_at(Some(7), ""), "f:2:7: wrong\n    2 | \n      | ^");
        assert_eq!(render_at(None, "*nat\n-X y"), "f:2: wrong\n    2 | -X y");
    }

    #[test]
    fn long_lines_are_shortened_and_control_characters_escaped() {
        let text = format!("\n{} here {}", "x".repeat(300), "y".repeat(300));
        let rendered = render_at(Some(302), &text);
        let lines: Vec<_> = rendered.lines().collect();
        assert_eq!(
            lines[1],
            format!("    2 | …{} here {}…", "x".repeat(59), "y".repeat(95))
        );
        assert_eq!(lines[2], format!("      | {}^^^^", " ".repeat(61)));
        let rendered = render_at(Some(3), "\n\x1b x");
        assert_eq!(
            rendered,
            "f:2:3: wrong\n    2 | \\u{1b} x\n      |        ^"
        );
    }
}
