//! The programs `iptables`, `iptables-save` and `iptables-restore`, for callers that run them: options,
//! output, exit codes and the messages on standard error that other programs parse are those of iptables 1.8.9.
//!
//! | topic | where |
//! |---|---|
//! | a program's name | [`Program::named`] |
//! | `iptables` | `command.rs` |
//! | listings (`-L`, `-S`) | `list.rs`, `chains.rs` |
//! | `iptables-save` and `iptables-restore` | `save_restore.rs` |
//! | `iptables-translate`, `iptables-restore-translate` | `translate.rs` |
//! | `iptables-xml` | `xml.rs` |
//! | exit codes and error messages | `error.rs` |

mod chains;
mod command;
mod error;
mod list;
mod save_restore;
mod translate;
mod xml;

use std::io::{Read, Write};

use bstr::{BString, ByteSlice};

use command::Outcome;
pub(super) use error::DIFFERENCES;
use error::{ProgramError, Status};

use super::text::Command;
use super::{Backend, Counters, Error, Family, Iptables, Rule};
use crate::Retry;
use crate::legacy::{self, Lock, LockPolicy};

/// The version of iptables that the programs report and emulate.
pub const VERSION: &str = "1.8.9";

/// The function of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// `iptables`: a single change of a table, or a listing.
    Iptables,
    /// `iptables-save`: tables as a text.
    Save,
    /// `iptables-restore`: tables from a text.
    Restore,
    /// `iptables-translate`: one command in nft's language.
    Translate,
    /// `iptables-restore-translate`: a text in nft's language.
    RestoreTranslate,
    /// `iptables-xml`: a text as XML.
    Xml,
}

impl Tool {
    /// Returns the help for its options, one per line.
    #[must_use]
    pub fn options(self) -> String {
        match self {
            Self::Iptables => command::OPTIONS.to_owned(),
            Self::Save => save_restore::options_of(save_restore::OF_SAVE),
            Self::Restore => save_restore::options_of(save_restore::OF_RESTORE),
            Self::Translate | Self::RestoreTranslate => String::new(),
            Self::Xml => String::new(),
        }
    }
}

/// One of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The function.
    pub tool: Tool,
    /// The family of the tables.
    pub family: Family,
    /// The backend of the tables.
    pub backend: Backend,
    /// Its name in messages.
    name: String,
}

/// Translates a rule to nft's language, with the values of counters if given; `None` if the language cannot express it.
/// The crate `chainwright-lang` has an implementation: `translate::for_program`.
pub type Translate = fn(&Rule, Family, Option<Counters>) -> Option<String>;

/// The standard streams of a program.
pub struct Streams<'s> {
    /// Standard input.
    pub input: &'s mut dyn Read,
    /// Standard output.
    pub output: &'s mut dyn Write,
    /// Standard error.
    pub errors: &'s mut dyn Write,
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Program {
    /// Returns the program of that name: `iptables`, `ip6tables-save`, `iptables-nft-restore`,
    /// `ip6tables-legacy`, … A name without a backend means nf_tables.
    ///
    /// ```
    /// use chainwright::iptables::program::{Program, Tool};
    /// use chainwright::iptables::{Backend, Family};
    ///
    /// let program = Program::named("ip6tables-legacy-restore").unwrap();
    /// assert_eq!(program.tool, Tool::Restore);
    /// assert_eq!((program.family, program.backend), (Family::Ipv6, Backend::Legacy));
    /// assert_eq!(Program::named("iptables-convert"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (family, rest) = match name.strip_prefix("ip6tables") {
            Some(rest) => (Family::Ipv6, rest),
            None => (Family::Ipv4, name.strip_prefix("iptables")?),
        };
        let (backend, rest) = match rest.strip_prefix("-legacy") {
            Some(rest) => (Backend::Legacy, rest),
            None => (Backend::Nft, rest.strip_prefix("-nft").unwrap_or(rest)),
        };
        let is_plain = name.len() == rest.len() + if family == Family::Ipv6 { 9 } else { 8 };
        let tool = match rest {
            "" => Tool::Iptables,
            "-save" => Tool::Save,
            "-restore" => Tool::Restore,
            "-translate" if is_plain => Tool::Translate,
            "-restore-translate" if is_plain => Tool::RestoreTranslate,
            "-xml" if is_plain && family == Family::Ipv4 => Tool::Xml,
            _ => return None,
        };
        let plain = match family {
            Family::Ipv4 => "iptables",
            Family::Ipv6 => "ip6tables",
        };
        // Like the real ones: with nf_tables a save or restore program keeps its full name.
        let name = match (tool, backend) {
            (Tool::Iptables, _) => plain.to_owned(),
            (_, Backend::Nft) => name.to_owned(),
            (_, Backend::Legacy) => format!("{plain}{rest}"),
        };
        Some(Self {
            tool,
            family,
            backend,
            name,
        })
    }

    /// Returns all names that [`named`](Self::named) accepts.
    pub fn names() -> impl Iterator<Item = String> {
        let backends = ["", "-nft", "-legacy"];
        let tools = ["", "-save", "-restore"];
        let of_backends = backends
            .into_iter()
            .flat_map(move |b| tools.map(|t| format!("{b}{t}")));
        let others = ["-translate", "-restore-translate", "-xml"].map(str::to_owned);
        let rest: Vec<_> = of_backends.chain(others).collect();
        let names = ["iptables", "ip6tables"].into_iter();
        let names = names.flat_map(move |family| {
            let names = rest.iter().map(|rest| format!("{family}{rest}"));
            names.collect::<Vec<_>>()
        });
        names.filter(|name| Self::named(name).is_some())
    }

    /// Runs the program with arguments, in the calling thread's network namespace. Returns the
    /// exit code: 0 success, 1 something does not exist or failed, 2 invalid arguments, 3 missing table, 4 an
    /// error of resources, a lock or the kernel.
    ///
    /// `translate` translates rules for `iptables-translate` and `iptables-restore-translate`.
    pub fn run<W: AsRef<[u8]>>(
        &self,
        words: &[W],
        streams: Streams<'_>,
        translate: Translate,
    ) -> u8 {
        let words: Vec<BString> = words.iter().map(|word| word.as_ref().into()).collect();
        let Streams {
            input,
            output,
            errors,
        } = streams;
        let mut notes = BString::default();
        let result = match self.tool {
            Tool::Iptables => self.command(&words, output, &mut notes),
            Tool::Save => self
                .save(&words, output, &mut notes)
                .map(|()| Outcome::Printed),
            Tool::Restore => self
                .restore(&words, input, output, &mut notes)
                .map(|()| Outcome::Changed),
            Tool::Translate => self
                .translate(&words, translate, output)
                .map(|()| Outcome::Printed),
            Tool::RestoreTranslate => self
                .restore_translate(&words, translate, output)
                .map(|()| Outcome::Printed),
            Tool::Xml => self
                .xml(&words, input, output, &mut notes)
                .map(|()| Outcome::Printed),
        };
        let flushed = output.flush();
        let result = result.and_then(|outcome| match outcome {
            Outcome::Printed => flushed.map_err(ProgramError::of_output),
            Outcome::Changed => Ok(()),
        });
        // If standard error cannot be written, only the exit code remains.
        let _ = errors.write_all(&notes);
        match result {
            Ok(()) => Status::Done as u8,
            Err(error) => {
                let _ = errors.write_all(&error.text(self));
                error.status as u8
            }
        }
    }

    /// Returns the program's name and version.
    fn version(&self) -> String {
        let backend = match self.backend {
            Backend::Nft => "nf_tables",
            Backend::Legacy => "legacy",
        };
        format!("{} v{VERSION} ({backend})", self.name)
    }

    /// Opens the tables, creating the named ones if they are legacy, under the lock that `wait` requests.
    fn open(
        &self,
        tables: &[&str],
        wait: Option<Retry>,
    ) -> Result<(Iptables, Option<Lock>), ProgramError> {
        let lock = match (self.backend, wait) {
            (Backend::Legacy, Some(wait)) => Some(
                Lock::take(&LockPolicy::Standard, wait)
                    .map_err(|error| ProgramError::of_legacy(self, &error))?,
            ),
            _ => None,
        };
        let denied = |error: Error| match (&error, tables.first()) {
            (Error::Legacy(legacy::Error::NoPermission { .. }), Some(table)) => {
                ProgramError::no_permission_for(self, table)
            }
            _ => ProgramError::of_command(self, &error, &Command::none()),
        };
        // The real programs suggest no names.
        let iptables = Iptables::open(self.backend)
            .map_err(denied)?
            .without_hints();
        for table in tables {
            iptables.make_legacy(self.family, table).map_err(denied)?;
        }
        // The lock is held already.
        Ok((iptables.with_lock(LockPolicy::None, Retry::ONCE), lock))
    }
}

/// Converts arguments for the parser, as if they were words of a line separated by single blanks.
fn as_line(words: &[BString]) -> Vec<super::text::Word<'_>> {
    let mut column = 1;
    let mut found = Vec::with_capacity(words.len());
    for word in words {
        found.push(super::text::Word {
            bytes: word.as_bytes().into(),
            column,
        });
        column += word.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_round_trip() {
        let all: Vec<_> = Program::names().collect();
        assert_eq!(all.len(), 23);
        for name in &all {
            let program = Program::named(name).unwrap();
            assert_eq!(program.family == Family::Ipv6, name.starts_with("ip6"));
            assert_eq!(program.backend == Backend::Legacy, name.contains("legacy"));
        }
        for other in [
            "",
            "nft",
            "iptables-",
            "iptables-nft-legacy",
            "arptables",
            "ip6tables-xml",
            "iptables-nft-translate",
            "iptables-apply",
        ] {
            assert_eq!(Program::named(other), None, "{other}");
        }
        let version_of = |name: &str| Program::named(name).unwrap().version();
        assert_eq!(version_of("iptables-nft"), "iptables v1.8.9 (nf_tables)");
        assert_eq!(
            version_of("ip6tables-legacy-save"),
            "ip6tables-save v1.8.9 (legacy)"
        );
        assert_eq!(
            version_of("iptables-nft-restore"),
            "iptables-nft-restore v1.8.9 (nf_tables)"
        );
    }
}
