//! The results of the runs: a column for each kernel, in one table.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::Result;
use crate::kernel::Kernel;
use crate::machine::{TOO_LONG, USERS};
use crate::suite::Program;

/// The prefix with which a test reports that it checked a clear refusal, because the kernel lacks a
/// feature.
const LACKS: &str = "this kernel lacks ";

/// The results of one test program on one kernel, as one user.
#[derive(Debug, Default, Clone)]
struct Cell {
    passed: u32,
    /// The names of the tests that failed.
    failed: Vec<String>,
    ignored: u32,
    seconds: f32,
    /// Why there is no result.
    broken: Option<String>,
    /// What the kernel lacks, as reported by the tests.
    lacks: BTreeSet<String>,
}

/// The results of one kernel.
#[derive(Debug)]
pub(crate) struct Column {
    kernel: Kernel,
    release: String,
    /// For each program its cell as root and as a user without privileges.
    cells: Vec<[Option<Cell>; 2]>,
    /// Lines of the kernel's log that report a fault in the kernel.
    faults: Vec<String>,
}

impl Column {
    pub(crate) fn read(
        kernel: Kernel,
        release: String,
        plan: &[Program],
        results: &Path,
        kept: bool,
    ) -> Result<Self> {
        let read = |name: String| std::fs::read(results.join(name)).ok();
        let mut cells = Vec::new();
        for program in plan {
            cells.push(USERS.map(|user| {
                let status = read(format!("{}.{user}.status", program.name));
                let log = read(format!("{}.{user}.log", program.name));
                match (status, log, kernel) {
                    (Some(status), Some(log), _) => Some(Cell::parse(
                        &String::from_utf8_lossy(&status),
                        &String::from_utf8_lossy(&log),
                    )),
                    (_, _, Kernel::Host) => None, // on the host this user did not run
                    (None, None, _) if kept => None, // it was in no plan
                    _ => Some(Cell {
                        broken: Some("the machine stopped before this program finished".to_owned()),
                        ..Cell::default()
                    }),
                }
            }));
        }
        let dmesg = read("dmesg".to_owned()).unwrap_or_default();
        let dmesg = String::from_utf8_lossy(&dmesg);
        let is_fault = |line: &&str| {
            [
                "BUG:",
                "WARNING:",
                "Oops",
                "general protection",
                "rcu_sched self-detected",
            ]
            .iter()
            .any(|word| line.contains(word))
        };
        let faults = dmesg.lines().filter(is_fault).map(str::to_owned).collect();
        Ok(Self {
            kernel,
            release,
            cells,
            faults,
        })
    }

    pub(crate) fn passed(&self) -> bool {
        self.faults.is_empty() && self.cells.iter().flatten().flatten().all(Cell::is_good)
    }

    /// A short summary for the user.
    pub(crate) fn summary(&self, results: &Path) -> String {
        let cells: Vec<&Cell> = self.cells.iter().flatten().flatten().collect();
        let passed: u32 = cells.iter().map(|cell| cell.passed).sum();
        let failed: usize = cells.iter().map(|cell| cell.failed.len()).sum();
        let broken = cells.iter().filter(|cell| cell.broken.is_some()).count();
        let mut text = format!(
            "{}: {passed} passed, {failed} failed, {broken} programs without a result\n",
            self.release
        );
        for fault in &self.faults {
            let _ = writeln!(text, "  the kernel reported: {fault}");
        }
        if failed + broken > 0 {
            let _ = writeln!(text, "  see {}", results.display());
        }
        text
    }
}

impl Cell {
    /// Parses the output of a test program, and `STATUS START END`.
    fn parse(status: &str, log: &str) -> Self {
        let mut cell = Self::default();
        let numbers: Vec<f32> = status
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let status = numbers.first().copied();
        if let [_, start, end] = numbers[..] {
            cell.seconds = end - start;
        }
        let mut ended = false;
        for line in log.lines() {
            if let Some(test) = line.strip_prefix("test ") {
                if let Some(name) = test.strip_suffix(" ... FAILED") {
                    cell.failed.push(name.to_owned());
                } else if let Some(counts) = test.strip_prefix("result: ") {
                    ended = true;
                    cell.passed = count(counts, " passed");
                    cell.ignored = count(counts, " ignored");
                }
            }
            if let Some(what) = line.strip_prefix(LACKS) {
                cell.lacks.insert(what.to_owned());
            }
        }
        if !ended {
            cell.broken = Some(match status {
                Some(status) if status == f32::from(TOO_LONG) => "timed out".to_owned(),
                status => format!("exited with status {}", status.unwrap_or(-1.0)),
            });
        } else if status != Some(0.0) && cell.failed.is_empty() {
            cell.broken = Some("failed outside its tests".to_owned());
        }
        cell
    }

    fn is_good(&self) -> bool {
        self.broken.is_none() && self.failed.is_empty()
    }

    /// The text in the table, with the numbers of the notes.
    fn text(&self, notes: &[usize]) -> String {
        let mut text = match (&self.broken, self.failed.len()) {
            (Some(reason), _) => format!("**no result**: {reason}"),
            (None, 0) if self.passed == 0 => "as root only".to_owned(),
            (None, 0) => self.passed.to_string(),
            (None, failed) => format!("{} passed, **{failed} failed**", self.passed),
        };
        if self.ignored > 0 {
            let _ = write!(text, ", {} ignored", self.ignored);
        }
        if !notes.is_empty() {
            let notes: Vec<String> = notes.iter().map(|note| format!("[{note}]")).collect();
            let _ = write!(text, " {}", notes.join(""));
        }
        text
    }
}

/// The number before these words.
fn count(counts: &str, words: &str) -> u32 {
    counts
        .split(['.', ';'])
        .find_map(|part| part.trim().strip_suffix(words.trim()))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// The text before the table.
const HEAD: &str = "\
# Kernels

Results of the integration tests on Debian's kernels. qemu boots each kernel, and runs the test programs as built on
Debian 12, with the tools of Debian 12. This command creates the page:

    cargo run -p integration-vm -- --markdown docs/kernels.md

The names of tests are those of the date of the run; some tests have been renamed or moved since.

By default the command runs the tests that send every kind of message and that end in minutes on an emulated processor. `--all`
runs all tests, which takes hours on an emulated processor. On Linux 6.18, on which the crate is developed, all tests
pass (the README shows the command). The table does not include `fake_kernel`, which compares the fake kernel with the
running kernel: the fake kernel behaves like Linux 6.18 only.

";

/// The table, kernel × test, and the meaning of its cells.
pub(crate) fn markdown(plan: &[Program], columns: &[Column], left_out: Option<&str>) -> String {
    // One note for each missing feature, in the order in which they occur.
    let mut notes: Vec<&str> = Vec::new();
    for column in columns {
        for cell in column.cells.iter().flatten().flatten() {
            for lack in &cell.lacks {
                if !notes.contains(&lack.as_str()) {
                    notes.push(lack);
                }
            }
        }
    }
    let number = |lack: &str| notes.iter().position(|note| *note == lack).map(|at| at + 1);

    let mut text = String::from(HEAD);
    text += "| test |";
    for column in columns {
        let name = match column.kernel {
            // Only the version number: the suffix names the builder.
            Kernel::Host => {
                let end = column
                    .release
                    .find(|c: char| !c.is_ascii_digit() && c != '.');
                let numbers = &column.release[..end.unwrap_or(column.release.len())];
                format!("{numbers}, not Debian's")
            }
            other => format!("{} ({})", column.release, other.suite().unwrap_or("")),
        };
        let _ = write!(text, " {name} |");
    }
    text += "\n|---|";
    text += &"---|".repeat(columns.len());
    text.push('\n');
    for (row, program) in plan.iter().enumerate() {
        let _ = write!(text, "| `{}` |", program.name);
        for column in columns {
            let [root, user] = &column.cells[row];
            let words = |cell: &Option<Cell>| {
                cell.as_ref().map_or_else(
                    || "not run".to_owned(),
                    |cell| {
                        let notes: Vec<usize> =
                            cell.lacks.iter().filter_map(|lack| number(lack)).collect();
                        cell.text(&notes)
                    },
                )
            };
            let (root, user) = (words(root), words(user));
            if root == user {
                let _ = write!(text, " {root} |");
            } else {
                let _ = write!(text, " {root}; user: {user} |");
            }
        }
        text.push('\n');
    }
    text += "\nEach number is the number of tests that passed, as root and as an ordinary user; where the two differ, both\n\
             are listed.\n";
    if columns
        .iter()
        .flat_map(|column| &column.cells)
        .flatten()
        .any(Option::is_none)
    {
        text += "`not run` means that the runs of this table did not include the tests.\n";
    }
    if let Some(left_out) = left_out {
        let _ = writeln!(
            text,
            "\nRun only with `--all`, by parts of their names:\n\n{left_out}"
        );
    }
    if !notes.is_empty() {
        text += "A note means that the kernel lacks a feature. The test checked that the error reports this clearly and that\n\
                 nothing was changed, or that the kernel behaves as the note describes, and then used another way:\n\n";
        for (at, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "{}. {note}", at + 1);
        }
    }
    for column in columns {
        for (program, cells) in plan.iter().zip(&column.cells) {
            for (user, cell) in USERS.iter().zip(cells) {
                for name in cell.iter().flat_map(|cell| &cell.failed) {
                    let _ = writeln!(
                        text,
                        "\n{}, {user}: `{}` failed: `{name}`",
                        column.release, program.name
                    );
                }
            }
        }
        for fault in &column.faults {
            let _ = writeln!(text, "\n{}: the kernel reported `{fault}`", column.release);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Cell;

    #[test]
    fn test_logs_are_parsed() {
        let log = "\nrunning 3 tests\ntest one ... ok\ntest two ... FAILED\ntest three ... ok\n\
                   this kernel lacks flowers (since Linux 9.9)\n\
                   test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.0s\n";
        let cell = Cell::parse("101 3.5 5.0\n", log);
        assert_eq!(cell.passed, 2);
        assert_eq!(cell.failed, ["two"]);
        assert!(cell.lacks.contains("flowers (since Linux 9.9)"));
        assert_eq!(cell.seconds, 1.5);
        assert!(!cell.is_good());
        assert_eq!(cell.text(&[4]), "2 passed, **1 failed** [4]");
    }

    #[test]
    fn unfinished_tests_are_failures() {
        let killed = Cell::parse("137 0 9", "running 3 tests\ntest one ... ok\n");
        assert!(!killed.is_good());
        assert_eq!(killed.text(&[]), "**no result**: timed out");
        let ok = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert!(Cell::parse("0 0 1", ok).is_good());
        assert!(!Cell::parse("1 0 1", ok).is_good());
    }
}
