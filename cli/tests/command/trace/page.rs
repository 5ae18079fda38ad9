//! Checks that `docs/trace.md` and the README show the actual output: runs each command in them.
//!
//! Blocks of the page are indented; the text after `$` is executed: `cat FILE` prints a file, and
//! `chainwright …`, also with `| head -N` or `> FILE`, runs in a directory with the files of
//! `tests/data`. With `CHAINWRIGHT_WRITE_DOCS=1` the output is written to the page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PROGRAM, sandbox};

/// The maximum length of lines.
const WIDTH: usize = 80;
/// The verbs whose output is checked here.
const VERBS: [&str; 5] = ["trace", "graph", "diff", "check", "explain"];

fn root() -> std::path::PathBuf {
    crate::common::in_workspace("")
}

/// Creates a directory with the files that the commands name.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in fs::read_dir(root().join("tests/data")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
        }
    }
    directory
}

/// A command of a page.
struct Shown {
    /// The lines of the command, as on the page.
    lines: Vec<String>,
    /// The lines below the command.
    below: Vec<String>,
}

impl Shown {
    /// Returns the command in one line.
    fn command(&self) -> String {
        let joined = self.lines.join(" ").replace("\\ ", " ");
        joined.trim_start_matches("$ ").to_owned()
    }

    fn verb(&self) -> Option<String> {
        let command = self.command();
        let mut words = command.split_whitespace();
        let verb = (words.next() == Some("chainwright")).then(|| words.next())?;
        verb.filter(|verb| VERBS.contains(verb)).map(str::to_owned)
    }

    /// Runs the command and returns the expected lines below it.
    fn run(&self, directory: &Path) -> Vec<String> {
        let command = self.command();
        if let Some(file) = command.strip_prefix("cat ") {
            fs::write(directory.join(file), self.below.join("\n") + "\n").unwrap();
            return self.below.clone();
        }
        let (command, file) = match command.split_once(" > ") {
            Some((command, file)) => (command, Some(file)),
            None => (&*command, None),
        };
        let (command, head) = match command.split_once(" | head -") {
            Some((command, lines)) => (command, lines.parse().unwrap()),
            None => (command, usize::MAX),
        };
        let arguments = command.strip_prefix("chainwright ").unwrap();
        let output = Command::new(PROGRAM)
            .args(arguments.split_whitespace())
            .current_dir(directory)
            .output()
            .unwrap();
        // On a terminal errors follow the output written before them.
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        if let Some(file) = file {
            assert_file_content(&root().join("docs").join(file), &text);
            return Vec::new();
        }
        text.lines().take(head).map(str::to_owned).collect()
    }
}

/// Returns the commands of a block.
fn commands(block: &[&str]) -> Vec<Shown> {
    let mut printed: Vec<Shown> = Vec::new();
    let mut goes_on = false;
    for line in block {
        let line = line.strip_prefix("    ").unwrap_or_default();
        if line.starts_with("$ ") {
            printed.push(Shown {
                lines: Vec::new(),
                below: Vec::new(),
            });
        }
        let command = printed
            .last_mut()
            .expect("the block does not begin with a command");
        if goes_on || line.starts_with("$ ") {
            command.lines.push(line.to_owned());
            goes_on = line.ends_with('\\');
        } else {
            command.below.push(line.to_owned());
        }
    }
    for command in &mut printed {
        while command.below.last().is_some_and(String::is_empty) {
            command.below.pop();
        }
    }
    printed
}

/// Returns the page with the actual output, and the verbs that it shows.
fn with_command_output(page: &str) -> (String, BTreeSet<String>) {
    let directory = directory();
    let lines: Vec<&str> = page.lines().collect();
    let (mut made, mut verbs) = (Vec::new(), BTreeSet::new());
    let mut at = 0;
    while at < lines.len() {
        if !lines[at].starts_with("    $ ") {
            made.push(lines[at].to_owned());
            at += 1;
            continue;
        }
        let is_inside = |line: &&&str| line.is_empty() || line.starts_with("    ");
        let mut end = at + lines[at..].iter().take_while(is_inside).count();
        while lines[end - 1].is_empty() {
            end -= 1;
        }
        let commands = commands(&lines[at..end]);
        let of_others = commands.iter().all(|command| command.verb().is_none());
        if of_others {
            made.extend(lines[at..end].iter().map(ToString::to_string));
        } else {
            for (place, command) in commands.iter().enumerate() {
                if place > 0 {
                    made.push(String::new());
                }
                verbs.extend(command.verb());
                let below = command.run(directory.path());
                for line in command.lines.iter().chain(&below) {
                    assert!(line.chars().count() <= WIDTH, "too long: {line}");
                    made.push(format!("    {line}").trim_end().to_owned());
                }
            }
        }
        at = end;
    }
    (made.join("\n") + "\n", verbs)
}

/// Checks that a file has this content. With `CHAINWRIGHT_WRITE_DOCS` set, writes the file instead.
#[track_caller]
fn assert_file_content(path: &PathBuf, made: &str) {
    if std::env::var_os("CHAINWRIGHT_WRITE_DOCS").is_some() {
        fs::write(path, made).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    if there != made {
        let lines = there.lines().zip(made.lines());
        let first = lines.clone().find(|(there, made)| there != made);
        panic!(
            "{} does not match the printed output: {first:?}; run CHAINWRIGHT_WRITE_DOCS=1 cargo test -p chainwright-cli --test command trace::",
            path.display()
        );
    }
}

#[test]
fn pages_match_the_printed_output() {
    for (page, expected) in [
        ("docs/trace.md", &["trace", "graph", "diff", "explain"][..]),
        ("docs/check.md", &["check"]),
        ("README.md", &["trace"]),
    ] {
        let path = root().join(page);
        let text = fs::read_to_string(&path).unwrap();
        let (made, verbs) = sandbox().run(|| with_command_output(&text)).unwrap();
        assert_file_content(&path, &made);
        assert!(
            verbs
                .iter()
                .eq(expected.iter().copied().collect::<BTreeSet<_>>()),
            "{page}: {verbs:?}"
        );
    }
}

/// Outdated output is detected, however the page is formatted.
#[test]
fn detects_outdated_output_in_pages() {
    let page = |below: &str| {
        format!(
            "Text.\n\n    $ cat a.nft\n    table ip t {{\n\n    }}\n\n    $ chainwright graph \\\n        a.nft\n{below}\nText.\n"
        )
    };
    let (made, verbs) = sandbox()
        .run(|| with_command_output(&page("    table ip t: 7 chains\n\n    more\n")))
        .unwrap();
    // An empty table has no chains.
    let nothing = "    chainwright: no matching chain found\n";
    assert_eq!(made, page(nothing));
    assert_eq!(verbs, BTreeSet::from(["graph".to_owned()]));
    let (again, _) = sandbox().run(|| with_command_output(&made)).unwrap();
    assert_eq!(again, made);
}
