//! The real tools, run inside a sandbox, with which the library is compared.
//!
//! They also work for a user without privileges, because that user is root in the sandbox's user namespace. But there
//! the tools cannot force their send buffers, so their input must be split into pieces that fit into the default buffer
//! (`net.core.wmem_default`, 208 KiB).

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use chainwright_testing::Sandbox;
use tempfile::NamedTempFile;

use super::needs::find;

/// Number of rules in one piece: kube-proxy's longest rules take 800 bytes.
const RULES: usize = 150;
/// Number of bytes of an nft script in one piece.
const SCRIPT: usize = 16 * 1024;

/// The tools of one sandbox.
pub(crate) struct Tools<'s> {
    sandbox: &'s Sandbox,
    /// The lock of the legacy tools: the usual file belongs to root.
    lock: NamedTempFile,
}

impl<'s> Tools<'s> {
    #[track_caller]
    pub(crate) fn new(sandbox: &'s Sandbox) -> Self {
        let lock = NamedTempFile::new().expect("cannot create the lock file of the legacy tools");
        Self { sandbox, lock }
    }

    /// Returns the file that the legacy tools lock.
    pub(crate) fn lock_file(&self) -> &Path {
        self.lock.path()
    }

    /// Runs a program with this standard input, and returns its output and status.
    #[track_caller]
    fn output(&self, line: &str, input: &[u8]) -> Output {
        let words = words(line);
        let (program, arguments) = words.split_first().expect("empty command");
        let path = find(program);
        self.sandbox
            .run(|| -> io::Result<Output> {
                let mut command = Command::new(path);
                command
                    .args(arguments)
                    .env("XTABLES_LOCKFILE", self.lock.path())
                    .env("LC_ALL", "C")
                    .env("TZ", "UTC");
                run_on(&mut command, input)
            })
            .and_then(|output| output.map_err(|error| panic!("{line}: {error}")))
            .expect("cannot enter the sandbox")
    }

    /// Runs a command, which must succeed, and returns its standard output.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        self.run_with(line, "")
    }

    /// Runs a command with this input, which must succeed, and returns its standard output.
    #[track_caller]
    pub(crate) fn run_with(&self, line: &str, input: &str) -> String {
        let output = self.output(line, input.as_ref());
        assert!(
            output.status.success(),
            "{line}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the output is not UTF-8")
    }

    /// Whether a command succeeds; any status except 0 and 1 fails the test.
    #[track_caller]
    pub(crate) fn succeeds(&self, line: &str) -> bool {
        let output = self.output(line, b"");
        match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => panic!(
                "{line}: {}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }

    /// Runs a command with this input. An error contains its message.
    #[track_caller]
    pub(crate) fn takes(&self, line: &str, input: impl AsRef<[u8]>) -> Result<(), String> {
        let output = self.output(line, input.as_ref());
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The output of commands such as `iptables-nft-save -c`, without the comment lines, which contain the time.
    #[track_caller]
    pub(crate) fn save(&self, line: &str) -> String {
        let text = self.run(line);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// The output of `nft -j`, as a list of objects.
    #[track_caller]
    pub(crate) fn nft_json(&self, what: &str) -> Vec<serde_json::Value> {
        let text = self.run(&format!("nft -j {what}"));
        let mut value: serde_json::Value =
            serde_json::from_str(&text).expect("the output of nft is not JSON");
        match value["nftables"].take() {
            serde_json::Value::Array(objects) => objects,
            other => panic!("nft -j {what}: {other}"),
        }
    }

    /// Loads the output of `iptables-save -c`, including counters, with `iptables-nft-restore`.
    #[track_caller]
    pub(crate) fn load_iptables_nft(&self, save: &str) {
        let pieces = pieces(save).concat();
        self.run_with("iptables-nft-restore --noflush --counters", &pieces);
    }

    /// Loads the output of `nft list ruleset` with `nft -f`.
    #[track_caller]
    pub(crate) fn load_nft(&self, ruleset: &str) {
        for script in nft_pieces(ruleset) {
            self.run_with("nft -f -", &script);
        }
    }
}

/// Splits the output of `nft list ruleset` into pieces that a user without privileges can load: first all chains
/// without rules.
pub(crate) fn nft_pieces(ruleset: &str) -> Vec<String> {
    let (mut skeleton, mut pieces) = (String::new(), vec![String::new()]);
    // Indentation distinguishes the lines of a table from those of its content.
    let (mut table, mut block) = ("", String::new());
    for line in ruleset.lines() {
        let depth = line.len() - line.trim_start_matches('\t').len();
        if depth == 0 && line.starts_with("table ") {
            table = line;
            skeleton += &format!("{line}\n");
        } else if depth == 0 && line == "}" {
            skeleton += "}\n";
        } else if depth == 1 && !line.ends_with(['{', '}']) {
            skeleton += &format!("{line}\n"); // a table's comment or flags
        } else if depth >= 1 {
            block += &format!("{line}\n");
            if depth == 1 && line.trim() == "}" {
                if let Some(chain) = chain_skeleton(&block) {
                    skeleton += &chain;
                }
                let piece = format!("{table}\n{block}}}\n");
                block.clear();
                match pieces.last_mut() {
                    Some(last) if last.len() + piece.len() <= SCRIPT => *last += &piece,
                    _ => pieces.push(piece),
                }
            }
        }
    }
    pieces.insert(0, skeleton);
    pieces
}

/// Splits the output of `iptables-save` into pieces that a user without privileges can load.
pub(crate) fn pieces(save: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut table, mut rules) = ("", 0);
    for line in save.lines() {
        if line.starts_with('*') {
            (table, rules) = (line, 0);
        } else if line.starts_with(['-', '[']) {
            rules += 1;
            if rules > RULES {
                pieces.last_mut().expect("no piece").push_str("COMMIT\n");
                pieces.push(format!("{table}\n"));
                rules = 1;
            }
        }
        let piece = pieces.last_mut().expect("no piece");
        piece.push_str(line);
        piece.push('\n');
    }
    pieces
}

/// A chain's first lines: its name, hook and comment, without the rules.
fn chain_skeleton(block: &str) -> Option<String> {
    let name = block.lines().next()?.trim();
    name.strip_prefix("chain ")?;
    let kept = block
        .lines()
        .skip(1)
        .map(str::trim)
        .filter(|line| line.starts_with("type ") || line.starts_with("comment "));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    Some(format!("{name}\n{kept}}}\n"))
}

/// Runs a command with this standard input until it ends.
pub(crate) fn run_on(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("standard input is not a pipe");
    // The program may write output before it has read all input.
    std::thread::scope(|scope| {
        // If the program stops reading, its status shows that.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    })
}

/// Splits a line into words like a shell: at blanks outside double quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quoted = false;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            ' ' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}
