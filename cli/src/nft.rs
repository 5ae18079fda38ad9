//! `chainwright nft`, and links of that name: behaves like `nft`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use chainwright::nft::Outcome;
use chainwright_lang::{Includes, RunError, Script, read_text};
use chainwright_libnftables::{Context, Error as Failure, OWN};

use crate::dialect;
use crate::get::nft_text::Format;
use crate::get::rules::{format_rule, sets};
use crate::output::{Error, Exit, Output, Printable, eprint_line, note};

/// Behave like the program `nft`, also through a link with the name nft
///
/// Reads commands in nft's language from arguments, from a file, or line by line: changes (add, create, insert,
/// replace, delete, destroy, flush, rename), listings (list), resets of counters and quotas (reset), lookups of
/// elements (get element), descriptions (describe) and monitor. All changes of one input are one transaction; requested
/// listings show the state after it. If a line is wrong, if the kernel refuses one, or if a requested object would not
/// exist, nothing is changed.
///
/// Options must precede the commands. Files may include any file, as in nft: absolute paths and those that begin with
/// ./ are used directly, others are searched in the directories of -I and in /etc.
///
/// It behaves like nft, except for its messages on standard error and the differences in docs/nft.md. The output has
/// the form of nft 1.1.7, or with --nft-version 1.0 that of nft 1.0.6. The exit
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
    #[arg(short, long, conflicts_with = "file")]
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

    /// Print the version of nft in whose form the output is, then that of this program
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
            error.report();
            Exit::Code(1)
        }
    })
}

/// Prints an error: nft's lines, and chainwright's message if the error has no position; and that nothing was changed, if
/// the text has changes.
fn report(failure: Failure, changes: bool) {
    failure.as_nft().lines().for_each(eprint_line);
    let is_unchanged = match failure {
        Failure::Run(RunError::Refused { outcome, .. }) => outcome == Outcome::NothingApplied,
        Failure::Run(_) => true,
        Failure::Work(error) => {
            Error::Work(error).report();
            false
        }
        Failure::Output(error) => {
            Error::Output(error).report();
            false
        }
        error => {
            note(&error.to_string());
            false
        }
    };
    if is_unchanged && changes {
        note("nothing was changed");
    }
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
        let sets = sets();
        let mut context = Context::new();
        context.options = self.format.options();
        context.json = json || self.libnftables_json;
        context.check = self.check;
        context.echo = self.echo;
        context.bytecode = self.debug.is_some();
        let directories = self.includepath.iter().cloned();
        context.includes = Includes::anywhere(directories.chain([Context::INCLUDED_FROM.into()]));
        context.describe_rule = Box::new(move |rule| Some(format_rule(rule, &sets)));
        let mut session = Session {
            context,
            out: Output::new(),
        };
        if !self.commands.is_empty() {
            let text = self.commands.join(" ".as_ref()).into_vec();
            return Ok(session.input("<command line>", text));
        }
        if let Some(file) = &self.file {
            let (name, text) = read(file)?;
            for definition in &self.define {
                session.define(definition)?;
            }
            return Ok(session.input(&name, text));
        }
        if self.interactive {
            return session.interact().map(|()| true);
        }
        Err(Error::Other("no command given; see --help".to_owned()))
    }
}

fn version(is_long: bool) -> Result<(), Error> {
    let mut out = Output::new();
    writeln!(out, "nftables v{} ({OWN})", dialect::selected().full())?;
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
struct Session {
    context: Context,
    out: Output,
}

impl Session {
    fn define(&mut self, definition: &str) -> Result<(), Error> {
        let option_error = |reason: &str| {
            let definition = Printable(definition);
            Err(Error::Other(format!("--define {definition}: {reason}")))
        };
        let Some((name, value)) = definition.split_once('=') else {
            return option_error("expected NAME=VALUE");
        };
        match self.context.definitions.define(name, value) {
            Ok(()) => Ok(()),
            Err(error) => option_error(&error.to_string()),
        }
    }

    /// Executes an input; returns whether it succeeded.
    fn input(&mut self, name: &str, text: Vec<u8>) -> bool {
        let script = self.context.parse(name, text);
        let changes = script.as_ref().map_or(true, Script::changes_something);
        let done = script.and_then(|script| self.context.execute(&script, &mut self.out));
        done.map_err(|failure| report(failure, changes)).is_ok()
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
            self.input("<stdin>", line);
            if read == 0 || !self.out.has_reader() {
                return Ok(());
            }
        }
    }
}
