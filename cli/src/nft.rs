//! `chainwright nft`, and links of that name: what `nft` does.

pub(crate) mod monitor;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use chainwright::nft::{Connection, Outcome};
use chainwright::{Errno, netlink};
use chainwright_lang::{
    Definitions, HookListing, Includes, Known, Mode, Options, RunError, Script, read_text,
};

use crate::list::Format;
use crate::output::{Error, Exit, Output, Printable, note, say};
use crate::rules::{Sets, sets};
use crate::script_report::{added, added_json};

/// The version of nft whose words these are.
const NFT: &str = "1.0.6";
/// What says in the place of its release's name that it is not that program.
const OWN: &str = concat!("chainwright ", env!("CARGO_PKG_VERSION"));
/// Where nft looks for files that are included, too.
const INCLUDED_FROM: &str = "/etc";

/// Behave as the program `nft` does: also what a link to this command does that is called nft
///
/// Takes commands in nft's language as arguments, from a file, or line by line: changes (add, create, insert, replace,
/// delete, destroy, flush, rename), listings (list), resets of counters and quotas (reset), looks at elements (get
/// element), explanations (describe) and monitor. All changes of one input are one transaction; what it asks for is
/// printed behind that, as it is then. If a line is wrong, if the kernel refuses one, or if something that is asked for
/// will not be there, nothing is changed.
///
/// Options stand before the commands. Files may include any file, as nft has it: absolute paths and those that begin
/// with ./ as they are, others from the directories of -I and from /etc.
///
/// It is nft 1.0.6, but for its messages on standard error and for what docs/nft.md names. Exit codes are nft's: 0, and
/// 1 for any error.
#[derive(clap::Args)]
#[command(args_override_self = true, infer_long_args = true)]
pub(crate) struct Args {
    /// Read commands from this file; from standard input if it is `-`
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Give a variable a value, for the file; may be given more than once
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    define: Vec<String>,

    /// Read commands from standard input, a line at a time, until `quit` or the end; a wrong one does not end it. Lines
    /// are edited as the terminal does it
    #[arg(short, long)]
    interactive: bool,

    /// Look for included files in this directory; may be given more than once
    #[arg(short = 'I', long, value_name = "DIRECTORY")]
    includepath: Vec<PathBuf>,

    /// Have the kernel check the changes; change nothing
    #[arg(short, long)]
    check: bool,

    /// Print what was added, as the kernel tells of it
    #[arg(short, long)]
    echo: bool,

    /// Optimize a ruleset: not built
    #[arg(short, long)]
    optimize: bool,

    #[command(flatten)]
    format: Format,

    /// Names of hosts instead of addresses: not built, as a look-up can hang or lie
    #[arg(short = 'N', long)]
    reversedns: bool,

    /// Write libnftables' JSON, and read it where the input is JSON
    #[arg(short = 'j')]
    libnftables_json: bool,

    /// Print the instructions of what is listed, or made, first. Of nft's levels only `netlink` is built
    #[arg(short, long, value_name = "LEVEL[,LEVEL]")]
    debug: Option<String>,

    /// Print the version, behind that of the nft whose words these are
    #[arg(short, long)]
    version: bool,

    /// The same, and what is built in
    #[arg(short = 'V')]
    long_version: bool,

    /// Commands in nft's language; several arguments are one text, with blanks between
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    commands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let done = args.wrong().map_or_else(|| args.run(json), Err);
    Ok(match done {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::Code(1),
        Err(error) => {
            report(&error);
            Exit::Code(1)
        }
    })
}

/// Prints an error: the lines that nft has for it, where it is a request that the kernel refused, and what we say of it.
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

/// Prints why a script was not carried out, as nft does where there is a place to name; and that nothing was changed, if it
/// was to change something.
///
/// # Errors
/// One without a place.
fn complain(error: RunError, changes: bool) -> Result<(), Error> {
    let is_unchanged = match &error {
        RunError::Script(error) => {
            say(&error.as_nft().to_string());
            true
        }
        RunError::Refused { places, outcome } => {
            for place in places {
                say(&place.as_nft().to_string());
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
    /// What is wrong with the options.
    fn wrong(&self) -> Option<Error> {
        let mut words = self.commands.iter().map(|word| word.as_bytes());
        let words = words.by_ref().take_while(|word| !word.starts_with(b"{"));
        // As nft has it, which takes options for these words otherwise.
        let late = words.skip(1).find(|word| word.starts_with(b"-"));
        let why = if let Some(word) = late {
            let word = String::from_utf8_lossy(word);
            format!("{word}: options must stand before commands")
        } else if self.optimize {
            "--optimize is not built: rules are not merged into sets and maps".to_owned()
        } else if self.reversedns {
            "--reversedns is not built: names of hosts are not looked up, as that asks others and can hang or lie"
                .to_owned()
        } else if !self.define.is_empty() && self.file.is_none() {
            "--define is for the commands of --file only".to_owned()
        } else {
            return self.wrong_level();
        };
        Some(Error::Other(why))
    }

    fn levels(&self) -> impl Iterator<Item = &str> {
        self.debug.iter().flat_map(|levels| levels.split(','))
    }

    fn wrong_level(&self) -> Option<Error> {
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
            true => format!(
                "--debug {level} is not built: it traces how another program works inside; of the levels only netlink is"
            ),
            false => format!("invalid debug parameter {:?}", Printable(level).to_string()),
        }))
    }

    /// Whether all went well.
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
        Err(Error::Other("no command is given; see --help".to_owned()))
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

/// A file, and what it is called.
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

/// What inputs have in common.
struct Session<'a> {
    args: &'a Args,
    json: bool,
    options: Options,
    includes: Includes,
    definitions: Definitions,
    sets: Sets,
    /// The connection over which all inputs are carried out, so that a table that it owns lives until they end.
    connection: Option<Connection>,
    out: Output,
}

impl Session<'_> {
    fn define(&mut self, definition: &str) -> Result<(), Error> {
        let wrong = |why: &str| {
            let definition = Printable(definition);
            Err(Error::Other(format!("--define {definition}: {why}")))
        };
        let Some((name, value)) = definition.split_once('=') else {
            return wrong("it is NAME=VALUE");
        };
        match self.definitions.define(name, value) {
            Ok(()) => Ok(()),
            Err(error) => wrong(&error.to_string()),
        }
    }

    /// Carries an input out: whether it went well.
    fn input(&mut self, name: &str, text: Vec<u8>) -> Result<bool, Error> {
        let is_json = self.json && text.trim_ascii_start().starts_with(b"{");
        let script = match is_json {
            true => Script::parse_json(name, text),
            false => Script::parse_behind(&self.definitions, name, text, &self.includes),
        };
        let mut changes = true;
        let done = match script {
            Ok(script) => {
                changes = script.changes_something();
                let mut connection = self.connection.take();
                let done = self.carry_out(&script, &mut connection);
                self.connection = connection;
                self.definitions.keep(&script);
                done
            }
            Err(error) => Err(Failure::Run(RunError::Script(Box::new(error)))),
        };
        self.out.flush()?;
        match done {
            Ok(()) => Ok(true),
            Err(Failure::Run(error)) => complain(error, changes).map(|()| false),
            Err(Failure::Other(error)) => Err(error),
        }
    }

    fn carry_out(
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
        let mut known = Known::new(&self.options);
        let changes = script.changes_something();
        let is_told = self.args.echo && self.json;
        if changes || is_told || script.questions().nth(1).is_some() {
            let opened = opened(connection, Connection::open)?;
            let mut bytecode = String::new();
            let done = script.run_shown(opened, mode, &self.options, |transaction| {
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
        for question in script.questions() {
            if let Some(text) = question.description() {
                write!(self.out, "{text}")?;
                continue;
            }
            if let Some(watched) = question.watched() {
                self.monitor(watched)?;
                continue;
            }
            let nft = opened(connection, Connection::open_to_look)?;
            if let Some((family, device)) = question.hooks() {
                if self.json {
                    let why = "list hooks has no form in JSON";
                    return Err(Error::Other(why.to_owned()).into());
                }
                write!(self.out, "{}", HookListing::read(nft, family, device)?)?;
                continue;
            }
            let answer = match question.answer_from(nft, &mut known) {
                // Only planned.
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
            write!(self.out, "{document}")?; // and no end of the line, as nft has it
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

    /// Lines from standard input, until they end.
    fn interact(&mut self) -> Result<(), Error> {
        let mut input = io::stdin().lock();
        let has_prompt = input.is_terminal();
        let mut text = Vec::new();
        loop {
            if has_prompt {
                let prompt = if text.is_empty() { "nft> " } else { ".... " };
                let mut out = io::stdout().lock();
                // Whoever reads nothing need not be asked.
                let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
            }
            let read = input
                .read_until(b'\n', &mut text)
                .map_err(|error| Error::Other(format!("cannot read <stdin>: {error}")))?;
            if read > 0 && text.ends_with(b"\\\n") {
                continue; // the line goes on
            }
            let line = std::mem::take(&mut text);
            if line.trim_ascii() == b"quit" {
                return Ok(());
            }
            if let Err(error) = self.input("<stdin>", line) {
                report(&error);
            }
            if read == 0 || !self.out.is_read() {
                return Ok(());
            }
        }
    }
}

/// The connection, opened by the first who needs it.
fn opened(
    connection: &mut Option<Connection>,
    open: impl FnOnce() -> Result<Connection, netlink::Error>,
) -> Result<&mut Connection, netlink::Error> {
    match connection {
        Some(opened) => Ok(opened),
        none => Ok(none.insert(open()?)),
    }
}

/// Why an input was not carried out to its end.
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
