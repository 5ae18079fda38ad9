//! `chainwright nft`, and links of that name: behaves like `nft`.

pub(crate) mod monitor;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use chainwright::nft::{Connection, Outcome};
use chainwright::{Errno, netlink};
use chainwright_lang::{
    Definitions, HookListing, Includes, Mode, Options, QueryCache, RunError, Script, read_text,
};

use crate::list::Format;
use crate::output::{Error, Exit, Output, Printable, note, say};
use crate::rules::{Sets, sets};
use crate::script_report::{added, added_json};

/// The version of nft that this emulates.
const NFT: &str = "1.0.6";
/// Replaces the release name, to show that this is not the original program.
const OWN: &str = concat!("chainwright ", env!("CARGO_PKG_VERSION"));
/// A further directory in which nft looks for included files.
const INCLUDED_FROM: &str = "/etc";

/// Behave like the program `nft`, also through a link with the name nft
///
/// Reads commands in nft's language from arguments, from a file, or line by line: changes (add, create, insert,
/// replace, delete, destroy, flush, rename), listings (list), resets of counters and quotas (reset), look-ups of
/// elements (get element), descriptions (describe) and monitor. All changes of one input are one transaction; requested
/// listings show the state after it. If a line is wrong, if the kernel refuses one, or if a requested object would not
/// exist, nothing is changed.
///
/// Options must precede the commands. Files may include any file, as in nft: absolute paths and those that begin with
/// ./ are used directly, others are searched in the directories of -I and in /etc.
///
/// It behaves like nft 1.0.6, except for its messages on standard error and the differences in docs/nft.md. The exit
/// code is 0, or 1 for any error, as for nft.
#[derive(clap::Args)]
#[command(args_override_self = true, infer_long_args = true)]
pub(crate) struct Args {
    /// Read commands from this file; from standard input if it is `-`
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Define a variable for the file; may be given more than once
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    define: Vec<String>,

    /// Read commands from standard input, one line at a time, until `quit` or the end; errors do not end the session.
    /// There is no line editing other than the terminal's
    #[arg(short, long)]
    interactive: bool,

    /// Search this directory for included files; may be given more than once
    #[arg(short = 'I', long, value_name = "DIRECTORY")]
    includepath: Vec<PathBuf>,

    /// Have the kernel check the changes; change nothing
    #[arg(short, long)]
    check: bool,

    /// Print the added objects, as reported by the kernel
    #[arg(short, long)]
    echo: bool,

    /// Optimize a ruleset: not implemented
    #[arg(short, long)]
    optimize: bool,

    #[command(flatten)]
    format: Format,

    /// Print host names instead of addresses: not implemented, because DNS can hang or return wrong names
    #[arg(short = 'N', long)]
    reversedns: bool,

    /// Write libnftables' JSON, and read it if the input is JSON
    #[arg(short = 'j')]
    libnftables_json: bool,

    /// First print the instructions of listed or created rules. Only nft's level `netlink` is implemented
    #[arg(short, long, value_name = "LEVEL[,LEVEL]")]
    debug: Option<String>,

    /// Print the version of the emulated nft, then that of this program
    #[arg(short, long)]
    version: bool,

    /// Print the version, and the built-in features
    #[arg(short = 'V')]
    long_version: bool,

    /// Commands in nft's language; several arguments are joined with spaces
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    commands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let done = args.option_error().map_or_else(|| args.run(json), Err);
    Ok(match done {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::Code(1),
        Err(error) => {
            report(&error);
            Exit::Code(1)
        }
    })
}

/// Prints an error: nft's lines if the kernel refused a request, and chainwright's message.
fn report(error: &Error) {
    if let Some(errno) = error.errno() {
        let text = Errno::new(errno).strerror();
        let is_commit = matches!(error, Error::Work(chainwright::Error::Commit(_)));
        if is_commit {
            say(&format!("Error: Could not process rule: {text}"));
        }
        if error.is_permission() {
            say(&format!("{text} (you must be root)"));
        }
        if !is_commit {
            say(&format!(
                "netlink: Error: cache initialization failed: {text}"
            ));
        }
    }
    error.report();
}

/// Prints the reason why a script failed, in nft's form if it has a position, and that nothing was changed, if the
/// script has changes.
///
/// # Errors Returns errors without a position.
fn report_error(error: RunError, changes: bool) -> Result<(), Error> {
    let is_unchanged = match &error {
        RunError::Script(error) => {
            say(&error.as_nft().to_string());
            true
        }
        RunError::Refused { errors, outcome } => {
            for error in errors {
                say(&error.as_nft().to_string());
            }
            *outcome == Outcome::NothingApplied
        }
        _ => return Err(error.into()),
    };
    if is_unchanged && changes {
        note("nothing was changed");
    }
    Ok(())
}

impl Args {
    /// Returns an error if the options are wrong.
    fn option_error(&self) -> Option<Error> {
        let mut words = self.commands.iter().map(|word| word.as_bytes());
        let words = words.by_ref().take_while(|word| !word.starts_with(b"{"));
        // As in nft, which reads options after commands differently.
        let late = words.skip(1).find(|word| word.starts_with(b"-"));
        let reason = if let Some(word) = late {
            let word = String::from_utf8_lossy(word);
            format!("{word}: options must precede commands")
        } else if self.optimize {
            "--optimize is not supported: rules are not merged into sets and maps".to_owned()
        } else if self.reversedns {
            "--reversedns is not supported: host names are not looked up, because DNS can hang or return wrong names"
                .to_owned()
        } else if !self.define.is_empty() && self.file.is_none() {
            "--define can only be used with --file".to_owned()
        } else {
            return self.debug_level_error();
        };
        Some(Error::Other(reason))
    }

    fn levels(&self) -> impl Iterator<Item = &str> {
        self.debug.iter().flat_map(|levels| levels.split(','))
    }

    fn debug_level_error(&self) -> Option<Error> {
        const LEVELS: [&str; 8] = [
            "scanner",
            "parser",
            "eval",
            "netlink",
            "mnl",
            "proto-ctx",
            "segtree",
            "all",
        ];
        let level = self.levels().find(|level| *level != "netlink")?;
        Some(Error::Other(match LEVELS.contains(&level) {
            true => {
                format!("--debug {level} is not supported: the only supported level is netlink")
            }
            false => format!("invalid debug parameter {:?}", Printable(level).to_string()),
        }))
    }

    /// Runs the commands; returns whether they succeeded.
    fn run(&self, json: bool) -> Result<bool, Error> {
        if self.version || self.long_version {
            return version(self.long_version).map(|()| true);
        }
        let mut session = Session {
            args: self,
            json: json || self.libnftables_json,
            options: self.format.options(),
            includes: Includes::anywhere(
                self.includepath
                    .iter()
                    .cloned()
                    .chain([INCLUDED_FROM.into()]),
            ),
            definitions: Definitions::default(),
            sets: sets(),
            connection: None,
            out: Output::new(),
        };
        if !self.commands.is_empty() {
            let text = self.commands.join(" ".as_ref()).into_vec();
            return session.input("<command line>", text);
        }
        if let Some(file) = &self.file {
            let (name, text) = read(file)?;
            for definition in &self.define {
                session.define(definition)?;
            }
            return session.input(&name, text);
        }
        if self.interactive {
            return session.interact().map(|()| true);
        }
        Err(Error::Other("no command given; see --help".to_owned()))
    }
}

fn version(is_long: bool) -> Result<(), Error> {
    let mut out = Output::new();
    writeln!(out, "nftables v{NFT} ({OWN})")?;
    if is_long {
        writeln!(out, "  cli:\t\tlines")?;
        writeln!(out, "  json:\t\tyes")?;
        writeln!(out, "  minigmp:\tno")?;
        writeln!(out, "  libxtables:\tno")?;
    }
    out.flush()
}

/// Reads a file, and returns its name and text.
fn read(file: &Path) -> Result<(String, Vec<u8>), Error> {
    let is_stdin = file == Path::new("-") || file == Path::new("/dev/stdin");
    let name = match is_stdin {
        true => "/dev/stdin".into(),
        false => file.to_string_lossy(),
    };
    let text = match is_stdin {
        true => read_text(io::stdin().lock()),
        false => File::open(file).and_then(read_text),
    }
    .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(&name))))?;
    Ok((name.into_owned(), text))
}

/// The state shared by all inputs.
struct Session<'a> {
    args: &'a Args,
    json: bool,
    options: Options,
    includes: Includes,
    definitions: Definitions,
    sets: Sets,
    /// The connection for all inputs, so that a table that it owns lives until they end.
    connection: Option<Connection>,
    out: Output,
}

impl Session<'_> {
    fn define(&mut self, definition: &str) -> Result<(), Error> {
        let option_error = |reason: &str| {
            let definition = Printable(definition);
            Err(Error::Other(format!("--define {definition}: {reason}")))
        };
        let Some((name, value)) = definition.split_once('=') else {
            return option_error("expected NAME=VALUE");
        };
        match self.definitions.define(name, value) {
            Ok(()) => Ok(()),
            Err(error) => option_error(&error.to_string()),
        }
    }

    /// Executes an input; returns whether it succeeded.
    fn input(&mut self, name: &str, text: Vec<u8>) -> Result<bool, Error> {
        let is_json = self.json && text.trim_ascii_start().starts_with(b"{");
        let script = match is_json {
            true => Script::parse_json(name, text),
            false => Script::parse_with_definitions(&self.definitions, name, text, &self.includes),
        };
        let mut changes = true;
        let done = match script {
            Ok(script) => {
                changes = script.changes_something();
                let mut connection = self.connection.take();
                let done = self.execute(&script, &mut connection);
                self.connection = connection;
                self.definitions.keep(&script);
                done
            }
            Err(error) => Err(Failure::Run(RunError::Script(Box::new(error)))),
        };
        self.out.flush()?;
        match done {
            Ok(()) => Ok(true),
            Err(Failure::Run(error)) => report_error(error, changes).map(|()| false),
            Err(Failure::Other(error)) => Err(error),
        }
    }

    fn execute(
        &mut self,
        script: &Script,
        connection: &mut Option<Connection>,
    ) -> Result<(), Failure> {
        let mode = match (self.args.check, self.args.echo) {
            (true, _) => Mode::Check,
            (false, true) => Mode::Echo,
            (false, false) => Mode::Commit,
        };
        let mut echo = None;
        let mut document = None;
        let mut known = QueryCache::new(&self.options);
        let changes = script.changes_something();
        let prints_json_echo = self.args.echo && self.json;
        if changes || prints_json_echo || script.queries().nth(1).is_some() {
            let opened = opened(connection, Connection::open)?;
            let mut bytecode = String::new();
            let done = script.run_with_preview(opened, mode, &self.options, |transaction| {
                if self.args.debug.is_some() {
                    bytecode += &transaction.bytecode().to_string();
                }
            });
            write!(self.out, "{bytecode}")?;
            let done = done?;
            document = script.echoed_json(&done);
            (echo, known) = (done.echo, done.known);
        }
        if self.args.debug.is_some() {
            known = known.with_bytecode();
        }
        for query in script.queries() {
            if let Some(text) = query.description() {
                write!(self.out, "{text}")?;
                continue;
            }
            if let Some(watched) = query.watched() {
                self.monitor(watched)?;
                continue;
            }
            let nft = opened(connection, Connection::open_if_loaded)?;
            if let Some((family, device)) = query.hooks() {
                if self.json {
                    let reason = "list hooks has no JSON output";
                    return Err(Error::Other(reason.to_owned()).into());
                }
                write!(self.out, "{}", HookListing::read(nft, family, device)?)?;
                continue;
            }
            let answer = match query.answer_cached(nft, &mut known) {
                // With --check, an object that the input only plans does not exist.
                Err(RunError::Script(_)) if mode == Mode::Check && changes => {
                    continue;
                }
                answer => answer?,
            };
            if self.args.debug.is_some() {
                write!(self.out, "{}", answer.bytecode())?;
            }
            let listing = answer.listing(&self.options);
            match self.json {
                true => writeln!(self.out, "{}", listing.json().in_place_of(NFT, OWN))?,
                false => write!(self.out, "{listing}")?,
            }
        }
        if let Some(document) = document.filter(|_| self.args.echo) {
            write!(self.out, "{document}")?; // without a newline, as in nft
        } else if let Some(echo) = echo {
            match self.json {
                true => {
                    let added = added_json(echo);
                    if !added.is_empty() {
                        writeln!(self.out, "{{\"nftables\": [{}]}}", added.join(", "))?;
                    }
                }
                false => {
                    for line in added(echo, self.args.format.handles, &self.sets) {
                        writeln!(self.out, "{}", Printable(&line))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Executes lines from standard input until its end.
    fn interact(&mut self) -> Result<(), Error> {
        let mut input = io::stdin().lock();
        let has_prompt = input.is_terminal();
        let mut text = Vec::new();
        loop {
            if has_prompt {
                let prompt = if text.is_empty() { "nft> " } else { ".... " };
                let mut out = io::stdout().lock();
                // If the prompt cannot be written, its reader does not need it.
                let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
            }
            let read = input
                .read_until(b'\n', &mut text)
                .map_err(|error| Error::Other(format!("cannot read <stdin>: {error}")))?;
            if read > 0 && text.ends_with(b"\\\n") {
                continue; // the next line continues it
            }
            let line = std::mem::take(&mut text);
            if line.trim_ascii() == b"quit" {
                return Ok(());
            }
            if let Err(error) = self.input("<stdin>", line) {
                report(&error);
            }
            if read == 0 || !self.out.has_reader() {
                return Ok(());
            }
        }
    }
}

/// Returns the connection; the first use opens it.
fn opened(
    connection: &mut Option<Connection>,
    open: impl FnOnce() -> Result<Connection, netlink::Error>,
) -> Result<&mut Connection, netlink::Error> {
    match connection {
        Some(opened) => Ok(opened),
        none => Ok(none.insert(open()?)),
    }
}

/// The reason why an input failed.
enum Failure {
    Run(RunError),
    Other(Error),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<chainwright::netlink::Error> for Failure {
    fn from(error: chainwright::netlink::Error) -> Self {
        Self::Other(error.into())
    }
}
