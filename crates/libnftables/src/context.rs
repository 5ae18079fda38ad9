//! Runs texts of nft's language, and writes the output of nft.

use std::fmt;
use std::io::{self, Write};

use chainwright::netlink;
use chainwright::nft::{Connection, RuleRef};
use chainwright_lang::{
    Definitions, Echo, HookListing, Includes, Options, Printable, QueryCache, RunError, RunMode,
    Script,
};

use crate::echo::{LOST_ECHO, added, added_json};

/// The destination of a [`Context`]'s output.
pub trait Output: Write {
    /// Returns `false` if the output has no reader any more: `monitor` then ends.
    fn has_reader(&self) -> bool {
        true
    }

    /// Reports something that is not part of the output, such as lost events.
    fn note(&mut self, note: &str);
}

/// Ignores notes.
impl Output for Vec<u8> {
    fn note(&mut self, _note: &str) {}
}

/// Writes to an [`Output`].
pub(crate) struct Out<'o>(pub(crate) &'o mut dyn Output);

impl Out<'_> {
    /// Makes `write!` return this crate's error.
    pub(crate) fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        self.0.write_fmt(text).map_err(Error::Output)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.0.flush().map_err(Error::Output)
    }
}

/// The reason why a text failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is wrong, or the kernel refused a part of it.
    #[error(transparent)]
    Run(RunError),
    /// An error without a position in the text.
    #[error(transparent)]
    Work(chainwright::Error),
    /// Writing the output failed.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// Waiting for events failed.
    #[error("cannot wait for events: {0}")]
    Wait(io::Error),
    /// The text requests something that is not implemented.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl<E: Into<chainwright::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Work(error.into())
    }
}

impl Error {
    fn run(error: RunError) -> Self {
        match error {
            RunError::Script(_) | RunError::Refused { .. } => Self::Run(error),
            error => Self::Work(error.into()),
        }
    }

    /// Returns the lines that nft prints for the error; empty if nft prints none. An error without a position in the
    /// text is printed by its error number only.
    #[must_use]
    pub fn as_nft(&self) -> String {
        use chainwright::Error as Work;
        use fmt::Write as _;
        let mut text = String::new();
        let mut push = |line: &dyn fmt::Display| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        };
        let error = match self {
            Self::Run(RunError::Script(error)) => {
                push(&error.as_nft());
                return text;
            }
            Self::Run(RunError::Refused { errors, .. }) => {
                errors.iter().for_each(|error| push(&error.as_nft()));
                return text;
            }
            Self::Work(error) => error,
            _ => return text,
        };
        let (errno, is_commit) = (error.errno(), matches!(error, Work::Commit(_)));
        let Some(errno) = errno else {
            return text;
        };
        let reason = errno.strerror();
        if is_commit {
            push(&format_args!("Error: Could not process rule: {reason}"));
        }
        if matches!(errno.number(), libc::EPERM | libc::EACCES) {
            push(&format_args!("{reason} (you must be root)"));
        }
        if !is_commit {
            push(&format_args!(
                "netlink: Error: cache initialization failed: {reason}"
            ));
        }
        text
    }
}

/// Describes a rule that nft's language cannot express, for a comment.
pub type DescribeRule<'d> = dyn Fn(&RuleRef<'_>) -> Option<String> + 'd;

/// Replaces the name of nft's release, to show that this is not the original program.
pub const OWN: &str = concat!("chainwright ", env!("CARGO_PKG_VERSION"));

/// The state that several texts share: options, variables, and a connection, so that a table that it owns lives until
/// the context is dropped.
pub struct Context {
    /// The form of listings.
    pub options: Options,
    /// Whether output is JSON, and texts that begin with `{` are JSON.
    pub json: bool,
    /// Whether texts that begin with `{` are JSON, although output is not.
    pub json_input: bool,
    /// Whether the kernel only checks changes.
    pub check: bool,
    /// Whether to print the added objects, as the kernel reports them.
    pub echo: bool,
    /// Whether to print the instructions of listed or created rules first.
    pub bytecode: bool,
    /// Files that texts may include.
    pub includes: Includes,
    /// Variables for texts. A text's own definitions are added.
    pub definitions: Definitions,
    /// Describes a rule that nft's language cannot express, in a comment.
    pub describe_rule: Box<DescribeRule<'static>>,
    connection: Option<Connection>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// The directory in which nft looks for included files after all others.
    pub const INCLUDED_FROM: &str = "/etc";

    /// Creates a context that may include any file, as nft does.
    #[must_use]
    pub fn new() -> Self {
        Self {
            options: Options::interfaces_when_needed(),
            json: false,
            json_input: false,
            check: false,
            echo: false,
            bytecode: false,
            includes: Includes::anywhere([Self::INCLUDED_FROM.into()]),
            definitions: Definitions::default(),
            describe_rule: Box::new(|_| None),
            connection: None,
        }
    }

    /// Parses a text, which errors call `name`.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn parse(&self, name: &str, text: impl Into<Vec<u8>>) -> Result<Script, Error> {
        let text = text.into();
        let is_json = self.json || self.json_input;
        let script = match is_json && text.trim_ascii_start().starts_with(b"{") {
            true => Script::parse_json(name, text),
            false => Script::parse_with_definitions(&self.definitions, name, text, &self.includes),
        };
        match script {
            Ok(script) => Ok(script.with_nft_version(self.options.nft_version)),
            Err(error) => Err(Error::Run(RunError::Script(Box::new(error)))),
        }
    }

    /// Parses and executes a text, which errors call `name`. All its changes are one transaction; listings that it
    /// requests show the state after it.
    ///
    /// # Errors
    /// The text is wrong, the kernel refuses something, or an object to list does not exist. Nothing is changed then,
    /// unless the error reports an unknown outcome.
    pub fn run(
        &mut self,
        name: &str,
        text: impl Into<Vec<u8>>,
        out: &mut dyn Output,
    ) -> Result<(), Error> {
        let script = self.parse(name, text)?;
        self.execute(&script, out)
    }

    /// Executes a parsed text.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn execute(&mut self, script: &Script, out: &mut dyn Output) -> Result<(), Error> {
        let mut connection = self.connection.take();
        let mut out = Out(out);
        let done = self.execute_with(script, &mut connection, &mut out);
        self.connection = connection;
        self.definitions.add(script);
        out.flush()?;
        done
    }

    fn execute_with(
        &self,
        script: &Script,
        connection: &mut Option<Connection>,
        out: &mut Out<'_>,
    ) -> Result<(), Error> {
        let mode = match (self.check, self.echo) {
            (true, _) => RunMode::Check,
            (false, true) => RunMode::Echo,
            (false, false) => RunMode::Commit,
        };
        let mut echo = None;
        let mut document = None;
        let mut known = QueryCache::new(&self.options);
        let changes = script.changes_something();
        let prints_json_echo = self.echo && self.json;
        if changes || prints_json_echo || script.queries().nth(1).is_some() {
            let opened = opened(connection, Connection::open)?;
            let mut bytecode = String::new();
            let done = script.run_with_preview(opened, mode, &self.options, |transaction| {
                if self.bytecode {
                    bytecode += &transaction.bytecode().to_string();
                }
            });
            write!(out, "{bytecode}")?;
            let done = done.map_err(Error::run)?;
            document = script.echoed_json(&done);
            (echo, known) = (done.echo, done.cache);
        }
        if self.bytecode {
            known = known.with_bytecode();
        }
        for query in script.queries() {
            if let Some(text) = query.description() {
                write!(out, "{text}")?;
                continue;
            }
            if let Some(watched) = query.event_filter() {
                self.monitor(watched, out)?;
                continue;
            }
            let nft = opened(connection, Connection::open_if_loaded)?;
            if let Some((family, device)) = query.hooks() {
                if self.json {
                    return Err(Error::Unsupported("list hooks has no JSON output"));
                }
                write!(out, "{}", HookListing::read(nft, family, device)?)?;
                continue;
            }
            let answer = match query.answer_cached(nft, &mut known) {
                // With `check`, an object that the text only plans does not exist.
                Err(RunError::Script(_)) if mode == RunMode::Check && changes => continue,
                answer => answer.map_err(Error::run)?,
            };
            if self.bytecode {
                write!(out, "{}", answer.bytecode())?;
            }
            let listing = answer.listing(&self.options);
            let version = self.options.nft_version.full();
            match self.json {
                true => writeln!(out, "{}", listing.json().in_place_of(version, OWN))?,
                false => write!(out, "{listing}")?,
            }
        }
        if let Some(document) = document.filter(|_| self.echo) {
            write!(out, "{document}") // without a newline, as in nft
        } else if let Some(echo) = echo {
            self.print_echo(echo, out)
        } else {
            Ok(())
        }
    }

    /// Prints the added objects.
    fn print_echo(&self, echo: Echo, out: &mut Out<'_>) -> Result<(), Error> {
        if echo.is_lost {
            out.0.note(LOST_ECHO);
        }
        if self.json {
            let added = added_json(echo);
            return match added.is_empty() {
                true => Ok(()),
                false => writeln!(out, "{{\"nftables\": [{}]}}", added.join(", ")),
            };
        }
        let added = added(echo, self.options.handles, &self.describe_rule);
        added
            .iter()
            .try_for_each(|line| writeln!(out, "{}", Printable(line)))
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
