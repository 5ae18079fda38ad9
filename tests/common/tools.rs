//! The real tools, run inside a sandbox: the oracles that the library is compared with.
//!
//! They work for an ordinary user as well, because a sandbox's user is root of its own user
//! namespace. But the tools there cannot force their send buffers, so that what they load must come
//! in pieces that fit into the default one (`net.core.wmem_default`, 208 KiB).

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use chainwright_testing::Sandbox;
use tempfile::NamedTempFile;

use super::needs::find;

/// How many rules go into one piece: the longest that kube-proxy writes take 800 bytes.
const RULES: usize = 150;
/// How many bytes of an nft script go into one piece.
const SCRIPT: usize = 16 * 1024;

/// The tools of one sandbox.
pub(crate) struct Tools<'s> {
    sandbox: &'s Sandbox,
    /// What the legacy tools lock: the usual file is root's.
    lock: NamedTempFile,
}

impl<'s> Tools<'s> {
    #[track_caller]
    pub(crate) fn new(sandbox: &'s Sandbox) -> Self {
        let lock = NamedTempFile::new().expect("a file for the legacy tools to lock");
        Self { sandbox, lock }
    }

    /// Runs a program with this standard input, whatever comes of it.
    #[track_caller]
    fn output(&self, line: &str, input: &[u8]) -> Output {
        let words = words(line);
        let (program, arguments) = words.split_first().expect("a command");
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
            .expect("the sandbox can be entered")
    }

    /// Runs a command, which must succeed, and gives its standard output.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        self.run_with(line, "")
    }

    /// Runs a command on this input, which must succeed, and gives its standard output.
    #[track_caller]
    pub(crate) fn run_with(&self, line: &str, input: &str) -> String {
        let output = self.output(line, input.as_ref());
        assert!(
            output.status.success(),
            "{line}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the tools write UTF-8")
    }

    /// Whether a command succeeds; any status but 0 and 1 is a failure of the test.
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

    /// Whether a command takes this input, and what it says if it does not.
    #[track_caller]
    pub(crate) fn takes(&self, line: &str, input: impl AsRef<[u8]>) -> Result<(), String> {
        let output = self.output(line, input.as_ref());
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What `iptables-nft-save -c` and the like print, without the comment lines, which hold the
    /// time.
    #[track_caller]
    pub(crate) fn save(&self, line: &str) -> String {
        let text = self.run(line);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// What `nft -j` prints, as the list of objects that it is.
    #[track_caller]
    pub(crate) fn nft_json(&self, what: &str) -> Vec<serde_json::Value> {
        let text = self.run(&format!("nft -j {what}"));
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("nft prints JSON");
        match value["nftables"].take() {
            serde_json::Value::Array(objects) => objects,
            other => panic!("nft -j {what}: {other}"),
        }
    }

    /// Loads the output of `iptables-save -c` with `iptables-nft-restore`, its counters included.
    #[track_caller]
    pub(crate) fn load_iptables_nft(&self, save: &str) {
        let pieces = pieces(save).concat();
        self.run_with("iptables-nft-restore --noflush --counters", &pieces);
    }

    /// Loads what `nft list ruleset` printed with `nft -f`.
    #[track_caller]
    pub(crate) fn load_nft(&self, ruleset: &str) {
        for script in nft_pieces(ruleset) {
            self.run_with("nft -f -", &script);
        }
    }
}

/// The output of `nft list ruleset` in pieces of a size that an ordinary user can load: first all chains without rules.
pub(crate) fn nft_pieces(ruleset: &str) -> Vec<String> {
    let (mut skeleton, mut pieces) = (String::new(), vec![String::new()]);
    // The lines of a table, and of what is in it, are told apart by their indentation.
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

/// The output of `iptables-save` in pieces of a size that an ordinary user can load.
pub(crate) fn pieces(save: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut table, mut rules) = ("", 0);
    for line in save.lines() {
        if line.starts_with('*') {
            (table, rules) = (line, 0);
        } else if line.starts_with(['-', '[']) {
            rules += 1;
            if rules > RULES {
                pieces
                    .last_mut()
                    .expect("there is one")
                    .push_str("COMMIT\n");
                pieces.push(format!("{table}\n"));
                rules = 1;
            }
        }
        let piece = pieces.last_mut().expect("there is one");
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

/// Runs a command on this standard input to its end.
pub(crate) fn run_on(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // Output may come before all input is read.
    std::thread::scope(|scope| {
        // A program that stops reading says so by its status.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    })
}

/// Splits a line into words as a shell does: at blanks outside double quotes.
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
