//! `chainwright completions`, and the answers to its scripts: the words that may follow on the command line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use bstr::{BStr, ByteSlice as _};
use chainwright::netns::{NAMED, Netns};
use chainwright::nft::{Connection, List, Set, SetFlags, Table};
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, ValueEnum};
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::Shells;

use crate::legacy_tables;
use crate::output::{Error, Exit, Output};
use crate::scope::{Backend, Found, Scope};
use crate::selection_words::Options;

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

/// The script for bash. It passes the words before the cursor as bash divides them, at `=` and `:`, too.
const BASH: &str = r#"_chainwright() {
    local IFS=$'\n' words=("${COMP_WORDS[@]:0:COMP_CWORD}")
    [[ ${COMP_WORDS[COMP_CWORD]} == [:=]* ]] && words+=("${COMP_WORDS[COMP_CWORD]}")
    COMPREPLY=($(CHAINWRIGHT_COMPLETE=bash chainwright -- "${words[@]}" "$2" 2>/dev/null))
    [[ ${COMPREPLY-} == *[=/:] ]] && compopt -o nospace
}
complete -o bashdefault -o nosort -F _chainwright chainwright 2>/dev/null ||
    complete -o bashdefault -F _chainwright chainwright
"#;

/// The end of the script for zsh: a function in $fpath is defined by its first call.
const ZSH_END: &str = r#"[ "$funcstack[1]" = _chainwright ] && _clap_dynamic_completer_chainwright "$@"
"#;

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let mut out = Output::new();
    let shells = Shells::builtins();
    match (args.shell, shells.completer(args.shell.name())) {
        (Shell::Bash, _) => write!(out, "{BASH}")?,
        (shell, Some(completer)) => {
            let mut script = Vec::new();
            let written =
                completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
            written.map_err(Error::Output)?;
            let end = if shell == Shell::Zsh { ZSH_END } else { "" };
            write!(out, "{}{end}", script.as_bstr())?;
        }
        (_, None) => {}
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints the possible words if a script asks for them: after `--` are the words of the command line. Prints no error.
pub(crate) fn answered(words: &[OsString], command: &clap::Command) -> Option<ExitCode> {
    let shell = std::env::var_os(VARIABLE)?;
    // The user is still writing the command line: a message would end up in it.
    std::panic::set_hook(Box::new(|_| ()));
    let selection = Options::of(command);
    // Global options would be those of all verbs.
    let selection = selection.selection().map(|arg| arg.clone().global(false));
    let mut command = command.clone().args(selection);
    let mut answer = || {
        let Line { words, divided } = Line::of(words);
        let last = words.len().checked_sub(1)?;
        let directory = std::env::current_dir().ok();
        let directory = directory.as_deref();
        let mut out = Output::new();
        if shell == Shell::Bash.name() {
            for candidate in complete(&mut command, words, last, directory).ok()? {
                let word = candidate.get_value().to_string_lossy();
                let rest = word.strip_prefix(&divided).unwrap_or(&word);
                writeln!(out, "{rest}").ok()?;
            }
        } else {
            let shells = Shells::builtins();
            let shell = shells.completer(shell.to_str()?)?;
            let mut answer = Vec::new();
            let written = shell.write_complete(&mut command, words, directory, &mut answer);
            written.ok()?;
            write!(out, "{}", answer.as_bstr()).ok()?;
        }
        out.flush().ok()
    };
    Some(match answer() {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// The words of a command line up to the cursor.
#[derive(Default)]
struct Line {
    words: Vec<OsString>,
    /// The part of the last word that bash does not replace.
    divided: String,
}

impl Line {
    /// Returns the words after `--`, as the script passes them.
    fn of(words: &[OsString]) -> Self {
        let start = words.iter().position(|word| word == "--");
        let words = start.map_or(&[][..], |start| &words[start + 1..]);
        if std::env::var_os(VARIABLE).is_some_and(|shell| shell == Shell::Bash.name()) {
            return Self::joined(words);
        }
        // zsh passes the words after the cursor, too.
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok();
        let end = index.and_then(|index| index.parse::<usize>().ok());
        let end = end.map_or(words.len(), |index| words.len().min(index + 1));
        Self {
            words: words[..end].to_vec(),
            divided: String::new(),
        }
    }

    /// Joins words that bash has divided: `--table` `=` `nat` to `--table` `nat`, and `a` `:` `b` to `a:b`.
    fn joined(divided: &[OsString]) -> Self {
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let mut line = Self::default();
        let mut continues = false;
        for word in divided {
            let bytes = word.as_encoded_bytes();
            let is_colon = !bytes.is_empty() && bytes.iter().all(|byte| *byte == b':');
            let last = line.words.last_mut();
            match last {
                Some(last) if word == "=" && is_option(last) => continue,
                Some(last) if continues || is_colon && !is_option(last) => {
                    line.divided = last.to_string_lossy().into_owned();
                    last.push(word);
                }
                _ => {
                    line.divided.clear();
                    line.words.push(word.clone());
                }
            }
            continues = is_colon;
        }
        line
    }
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
    candidates(None, current)
}

/// Completes the names of chains.
pub(crate) fn chains(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(Some(Kind::Chain), current)
}

/// Completes the names of tables.
pub(crate) fn tables(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(Some(Kind::Table), current)
}

/// Completes the names of network namespaces, and paths.
pub(crate) fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    if current.as_encoded_bytes().contains(&b'/') {
        let paths = clap_complete::engine::PathCompleter::file();
        return clap_complete::engine::ValueCompleter::complete(&paths, current);
    }
    let mut found = Names::new(current);
    for directory in NAMED {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
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

/// Returns the names of objects in the selected tables, by default of the kind that `get` lists. Loads no module, creates
/// nothing, and ignores errors.
fn candidates(kind: Option<Kind>, current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = Typed::of(&std::env::args_os().collect::<Vec<_>>());
    let kind = kind.unwrap_or(typed.kind);
    let mut found = Names::new(current);
    let mut read = || {
        let _ = read_nft(kind, &typed.scope, &mut found);
        let _ = read_legacy(kind, &typed.scope, &mut found);
    };
    match typed.netns {
        None => read(),
        Some(netns) => {
            let _ = Netns::from_name_or_path(netns).map(|netns| netns.run(read));
        }
    }
    found.candidates()
}

/// What the words before the cursor select.
struct Typed {
    scope: Scope,
    netns: Option<OsString>,
    kind: Kind,
}

impl Typed {
    fn of(words: &[OsString]) -> Self {
        const NETNS: &str = "netns";
        let command = crate::Command::command();
        let options = Options::of(&command);
        let mut line = Line::of(words).words;
        line.pop();
        let (mut selecting, mut others) = (Vec::new(), Vec::new());
        let mut rest = &line[..];
        while let Some(word) = rest.first() {
            let count = match options.first(rest) {
                Some((count, Some(_))) => {
                    selecting.extend(rest.iter().take(count).cloned());
                    count
                }
                _ => {
                    others.push(word);
                    1
                }
            };
            rest = rest.get(count..).unwrap_or_default();
        }
        let parser = Scope::augment_args(clap::Command::new(PROGRAM).no_binary_name(true));
        let parser = parser.args(command.get_arguments());
        let matches = parser.ignore_errors(true).try_get_matches_from(selecting);
        let scope = |matches: &clap::ArgMatches| Scope::from_arg_matches(matches).ok();
        Self {
            scope: matches.as_ref().ok().and_then(scope).unwrap_or_default(),
            netns: matches
                .ok()
                .and_then(|mut matches| matches.remove_one(NETNS)),
            kind: match others.get(2).and_then(|what| what.to_str()) {
                Some("sets" | "set" | "elements" | "element") => Kind::Set,
                Some("tables" | "table") => Kind::Table,
                _ => Kind::Chain,
            },
        }
    }
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
