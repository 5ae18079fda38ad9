//! `chainwright completions`, and the answers to its scripts: the words that may follow on the command line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use bstr::{BStr, ByteSlice as _};
use chainwright::netns::Netns;
use chainwright::nft::{Connection, List, Set, SetFlags, Table};
use clap::{Args as _, FromArgMatches as _, ValueEnum};
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;

use crate::legacy_tables;
use crate::output::{Error, Exit, Output};
use crate::scope::{Backend, Found, Scope};
use crate::selection_words::{move_behind_verb, selection};

/// Print completions for a shell
///
/// bash: `chainwright completions bash > ~/.local/share/bash-completion/completions/chainwright`.
///
/// zsh: write the output to a file `_chainwright` in a directory of $fpath.
///
/// fish: `chainwright completions fish > ~/.config/fish/completions/chainwright.fish`.
///
/// The script runs `chainwright` for each completion, so it does not depend on the version. Names of chains, tables and
/// sets are those of the kernel, in the selected tables and network namespace, if the user may read them: at most 1,000
/// names that the shell needs no quotation marks for.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }
}

/// The environment variable with the name of the shell, which the scripts set.
const VARIABLE: &str = "CHAINWRIGHT_COMPLETE";
const PROGRAM: &str = "chainwright";

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let mut out = Output::new();
    let shells = Shells::builtins();
    if let Some(shell) = shells.completer(args.shell.name()) {
        let mut script = Vec::new();
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.map_err(Error::Output)?;
        write!(out, "{}", script.as_bstr())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints the possible words if a script asks for them: after `--` are the words of the command line. Prints no error.
pub(crate) fn answered(words: &[OsString], command: &clap::Command) -> Option<ExitCode> {
    let shell = std::env::var_os(VARIABLE)?;
    let shells = Shells::builtins();
    let answer = || {
        let shell = shells.completer(shell.to_str()?)?;
        let mut command = command.clone();
        let line = move_behind_verb(line(words).to_vec(), &command);
        let mut answer = Vec::new();
        let directory = std::env::current_dir().ok();
        command.build();
        shell
            .write_complete(&mut command, line, directory.as_deref(), &mut answer)
            .ok()?;
        let mut out = Output::new();
        write!(out, "{}", answer.as_bstr()).ok()?;
        out.flush().ok()
    };
    Some(match answer() {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// Returns the words of the command line, behind `--`.
fn line(words: &[OsString]) -> &[OsString] {
    let start = words.iter().position(|word| word == "--");
    start.map_or(&[], |start| &words[start + 1..])
}

/// Maximum number of names.
const MAX_NAMES: usize = 1000;

/// A kind of named objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Table,
    Chain,
    Set,
}

/// Completes the names of what the verb lists.
pub(crate) fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<_> = std::env::args_os().collect();
    let has = |names: &[&str]| {
        line(&words)
            .iter()
            .any(|word| names.iter().any(|name| word == name))
    };
    let kind = if has(&["sets", "set", "elements", "element"]) {
        Kind::Set
    } else if has(&["tables", "table"]) {
        Kind::Table
    } else {
        Kind::Chain
    };
    candidates(kind, current)
}

/// Completes the names of chains.
pub(crate) fn chains(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(Kind::Chain, current)
}

/// Completes the names of tables.
pub(crate) fn tables(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(Kind::Table, current)
}

/// Completes the names of network namespaces, and paths.
pub(crate) fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    if current.as_encoded_bytes().contains(&b'/') {
        let paths = clap_complete::engine::PathCompleter::file();
        return clap_complete::engine::ValueCompleter::complete(&paths, current);
    }
    let mut found = Names::new(current);
    for directory in ["/run/netns", "/var/run/netns"] {
        let entries = std::fs::read_dir(Path::new(directory))
            .into_iter()
            .flatten();
        for entry in entries.flatten() {
            found.add(entry.file_name().as_encoded_bytes().as_bstr());
        }
    }
    found.candidates()
}

/// Names that begin with the current word.
struct Names<'c> {
    current: &'c OsStr,
    names: BTreeSet<String>,
}

impl<'c> Names<'c> {
    const fn new(current: &'c OsStr) -> Self {
        Self {
            current,
            names: BTreeSet::new(),
        }
    }

    /// Adds a name. Leaves out names that the shell could interpret: it inserts them unquoted.
    fn add(&mut self, name: &BStr) {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/@+".contains(byte);
        if !self.is_full()
            && name.starts_with(self.current.as_encoded_bytes())
            && !name.starts_with(b"-")
            && name.iter().all(is_plain)
        {
            self.names.insert(name.to_string());
        }
    }

    fn is_full(&self) -> bool {
        self.names.len() >= MAX_NAMES
    }

    fn candidates(self) -> Vec<CompletionCandidate> {
        let names = self.names.into_iter();
        names.map(CompletionCandidate::new).collect()
    }
}

/// Returns the names of objects in the selected tables. Loads no module, creates nothing, and ignores errors.
fn candidates(kind: Kind, current: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<_> = std::env::args_os().collect();
    let (options, netns) = selection(line(&words));
    let command = Scope::augment_args(clap::Command::new(PROGRAM).no_binary_name(true));
    let matches = command.try_get_matches_from(options).ok();
    let scope = matches.and_then(|matches| Scope::from_arg_matches(&matches).ok());
    let scope = scope.unwrap_or_default();
    let mut found = Names::new(current);
    let mut read = || {
        let _ = read_nft(kind, &scope, &mut found);
        let _ = read_legacy(kind, &scope, &mut found);
    };
    match netns {
        None => read(),
        Some(netns) => {
            let _ = Netns::from_name_or_path(netns).map(|netns| netns.run(read));
        }
    }
    found.candidates()
}

fn read_nft(kind: Kind, scope: &Scope, found: &mut Names<'_>) -> Result<(), Error> {
    if scope.place.listed() == Backend::Legacy {
        return Ok(());
    }
    let mut nft = Connection::open_if_loaded()?;
    match kind {
        Kind::Chain => {
            let mut chains = nft.chains(scope.filter())?;
            while let Some(chain) = chains.try_next()?
                && !found.is_full()
            {
                found.add(chain.name());
            }
        }
        Kind::Set => {
            let mut sets = List::<Set<'_>>::new(scope.filter());
            sets.refresh(&mut nft)?;
            let is_named =
                |flags: Option<SetFlags>| !flags.unwrap_or_default().contains(SetFlags::ANONYMOUS);
            for set in sets.iter().filter(|set| is_named(set.flags())) {
                found.add(set.name());
            }
        }
        Kind::Table => {
            let mut tables = List::<Table<'_>>::new(scope.filter());
            tables.refresh(&mut nft)?;
            tables.iter().for_each(|table| found.add(table.name()));
        }
    }
    Ok(())
}

fn read_legacy(kind: Kind, scope: &Scope, found: &mut Names<'_>) -> Result<(), Error> {
    if scope.place.listed() == Backend::Nft {
        return Ok(());
    }
    match kind {
        Kind::Set => {}
        Kind::Table => {
            for table in legacy_tables::in_use(scope) {
                let name = table.split(' ').next_back().unwrap_or_default();
                found.add(name.into());
            }
        }
        Kind::Chain => legacy_tables::read_selected(scope, &mut Found::default(), &mut |table| {
            table.chains().for_each(|chain| found.add(chain.name()));
            Ok(())
        })?,
    }
    Ok(())
}
