//! A program's error messages and exit codes.

use bstr::{BString, ByteSlice};

use super::Program;
use crate::errno::Errno;
use crate::iptables::nft::Unwritable;
use crate::iptables::text::{Command, ParseError, Verb};
use crate::iptables::{Backend, Error, KnownDifference, Target};
use crate::legacy::{self, EditError};
use crate::nft::SnapshotError;

/// Differences from iptables' programs.
pub(in crate::iptables) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "messages about invalid arguments (exit code 2)",
        iptables: "its own messages",
        chainwright: "different messages, with suggestions",
        reason: "Programs check the exit code; people get better help.",
    },
    KnownDifference {
        subject: "`-L CHAIN` and `-S CHAIN` of a missing chain in nf_tables",
        iptables: "1.8.9 reports it as incompatible; other versions report that it does not exist",
        chainwright: "reports that it does not exist; the exit code is the same",
        reason: "This is correct, and callers search for this message.",
    },
    KnownDifference {
        subject: "addresses in `-L` without `-n`",
        iptables: "looks up the names of hosts and networks",
        chainwright: "shows numbers",
        reason: "A listing should not wait for a name server.",
    },
    KnownDifference {
        subject: "`iptables-restore -v`",
        iptables: "prints the chains that it processes",
        chainwright: "prints nothing",
        reason: "No program parses it.",
    },
    KnownDifference {
        subject: "`iptables-restore` of a text with -L or -S",
        iptables: "lists",
        chainwright: "refuses it",
        reason: "A text only changes tables.",
    },
    KnownDifference {
        subject: "`-E INPUT NAME`",
        iptables: "in nf_tables, renames the built-in chain",
        chainwright: "refuses it",
        reason: "iptables cannot read the table afterwards.",
    },
];

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Done = 0,
    /// Something does not exist, or is not possible.
    Other = 1,
    /// Invalid arguments.
    Parameter = 2,
    /// The table does not exist.
    Version = 3,
    /// The kernel, the lock, or memory.
    Resource = 4,
    /// The reader of the output is gone: the code that a shell reports for SIGPIPE.
    Pipe = 128 + libc::SIGPIPE as isize,
}

/// An error message with its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramError {
    pub(super) status: Status,
    style: MessageStyle,
    message: BString,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageStyle {
    /// `iptables: Chain already exists.`
    Plain,
    /// `iptables v1.8.9 (nf_tables): …`
    WithVersion,
    /// Only the message.
    Bare,
}

pub(super) const NO_CHAIN: &str = "No chain/target/match by that name.";
const NO_RULE: &str = "Bad rule (does a matching rule exist in that chain?).";

impl ProgramError {
    fn new(status: Status, style: MessageStyle, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            status,
            style,
            message: message.into(),
        }
    }

    /// Creates an error with one of the messages that other programs parse.
    pub(super) fn plain(message: &str) -> Self {
        Self::new(Status::Other, MessageStyle::Plain, message)
    }

    /// Creates an error for invalid arguments.
    pub(super) fn parameter(message: impl Into<String>) -> Self {
        Self::new(Status::Parameter, MessageStyle::WithVersion, message)
    }

    /// Creates an error with a message without a prefix, possibly of several lines.
    pub(super) fn bare(status: Status, message: impl Into<String>) -> Self {
        Self::new(status, MessageStyle::Bare, message)
    }

    /// Creates an error for which other programs expect no particular message.
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::new(Status::Other, MessageStyle::WithVersion, message)
    }

    /// Appends another line.
    pub(super) fn followed_by(mut self, line: &str) -> Self {
        self.message.push(b'\n');
        self.message.extend_from_slice(line.as_bytes());
        self
    }

    /// Creates the error for a line `:CHAIN POLICY` in a legacy table.
    pub(super) fn of_policy(content: &[u8], line: usize, why: &str) -> Self {
        let mut words = content
            .get(1..)
            .unwrap_or_default()
            .fields_with(|c| c == ' ');
        let mut next = || words.next().unwrap_or_default().as_bstr();
        let (chain, policy) = (next(), next());
        Self::other(format!(
            "Can't set policy `{policy}' on `{chain}' line {line}: {why}"
        ))
    }

    /// Converts it to an error in a line of a text.
    pub(super) fn in_line(self, backend: Backend, line: usize) -> Self {
        let message = &self.message;
        match (self.style, backend) {
            (MessageStyle::Plain, Backend::Nft) => {
                Self::plain(&format!("line {line} failed: {message}"))
            }
            (MessageStyle::Plain, Backend::Legacy) => Self::plain(&format!("line {line} failed")),
            _ if self.status == Status::Resource => Self {
                message: format!("\nline {line}:{message}").into(),
                ..self
            },
            _ => self.followed_by(&format!("Error occurred at line: {line}")),
        }
    }

    /// Creates the error for a command of a line that the kernel refused, from the failure's text.
    pub(super) fn of_refused(command: &Command, failure: &str) -> Self {
        let chain = command.chain.clone().unwrap_or_default();
        let named = |errno: &i32| failure.contains(&Errno::new(*errno).to_string());
        let known = [
            libc::EINVAL,
            libc::ENOENT,
            libc::EBUSY,
            libc::EEXIST,
            libc::EMLINK,
            libc::ELOOP,
        ];
        match known.iter().find(|errno| named(errno)) {
            Some(&libc::EEXIST) if command.verb == Verb::NewChain => {
                Self::plain("Chain already exists.")
            }
            Some(errno) => Self::of_kernel(Errno::new(*errno), command, &chain),
            None => Self::resource(format!(" {failure}")),
        }
    }

    fn resource(message: impl Into<String>) -> Self {
        Self::new(Status::Resource, MessageStyle::WithVersion, message)
    }

    /// Creates the error for a failed write, without a message if the reader is gone.
    pub(super) fn of_output(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::bare(Status::Pipe, ""),
            _ => Self::new(Status::Other, MessageStyle::WithVersion, error.to_string()),
        }
    }

    pub(super) fn of_parse_error(error: &ParseError) -> Self {
        Self::parameter(match &error.hint {
            Some(hint) => format!("{} ({hint})", error.message),
            None => error.message.clone(),
        })
    }

    /// Creates the error for a missing table.
    pub(super) fn no_table(program: &Program, table: &str) -> Self {
        let message = match program.backend {
            Backend::Nft => format!("table '{table}' does not exist"),
            Backend::Legacy => format!(
                "can't initialize {} table `{table}': Table does not exist (do you need to insmod?)",
                program.name
            ),
        };
        Self::new(
            Status::Version,
            MessageStyle::WithVersion,
            format!(
                "{message}\nPerhaps {} or your kernel needs to be upgraded.",
                program.name
            ),
        )
    }

    /// Creates the error for a missing target.
    pub(super) fn no_target(backend: Backend, target: &BString, is_goto: bool) -> Self {
        Self::parameter(match (backend, is_goto) {
            (Backend::Nft, _) => format!("Chain '{target}' does not exist"),
            (Backend::Legacy, false) => {
                format!("Couldn't load target `{target}':No such file or directory\n")
            }
            (Backend::Legacy, true) => format!("goto '{target}' is not a chain"),
        })
    }

    /// Converts the error of a command.
    pub(super) fn of_command(program: &Program, error: &Error, command: &Command) -> Self {
        let chain = command.chain.clone().unwrap_or_default();
        match error {
            Error::Line { error, .. } | Error::Input { error, .. } => {
                Self::of_command(program, error, command)
            }
            Error::Text { error, .. } => Self::of_parse_error(error),
            Error::NoSuchTable { name, .. } => Self::no_table(program, name),
            // For rules with a chain or an extension as target, legacy tools print another message.
            Error::NoSuchRule { .. } => match command.spec.rule.target {
                Target::Jump(_) | Target::Goto(_) | Target::Extension(_)
                    if program.backend == Backend::Legacy =>
                {
                    Self::plain(NO_CHAIN)
                }
                _ => Self::plain(NO_RULE),
            },
            Error::NoSuchChain { .. } => match command.verb {
                Verb::Check | Verb::Delete => Self::plain(NO_RULE),
                Verb::Zero(Some(_)) if program.backend == Backend::Nft => Self::plain(NO_RULE),
                Verb::Policy(_) => Self::plain("Bad built-in chain name."),
                _ => Self::plain(NO_CHAIN),
            },
            Error::ChainExists { .. } if matches!(command.verb, Verb::RenameChain(_)) => {
                Self::plain("File exists.")
            }
            Error::ChainExists { .. } => Self::plain("Chain already exists."),
            Error::Builtin { .. } => match (&command.verb, program.backend) {
                (Verb::NewChain, _) => Self::plain("Chain already exists."),
                (Verb::RenameChain(to), _) if is_builtin(error, to) => Self::plain("File exists."),
                (Verb::RenameChain(_), _) => Self::plain(NO_CHAIN),
                _ => Self::of_errno(Errno::new(libc::EINVAL)),
            },
            Error::TargetName { .. } => {
                Self::parameter("chain name may not clash with target name")
            }
            Error::NatDrop => Self::parameter(
                "\nThe \"nat\" table is not intended for filtering, the use of DROP is therefore \
                 inhibited.\n\n",
            ),
            Error::NoPolicy { .. } => Self::plain("Bad built-in chain name."),
            Error::Policy { .. } => {
                Self::plain("Bad policy name. Run `dmesg' for more information.")
            }
            Error::NoSuchNumber { .. } => Self::plain(match command.verb {
                Verb::Insert(_) => "Index of insertion too big.",
                Verb::Replace(_) => "Index of replacement too big.",
                Verb::Zero(_) if program.backend == Backend::Nft => NO_RULE,
                Verb::Zero(_) => "Index of counter too big.",
                _ => "Index of deletion too big.",
            }),
            Error::NotEmpty { chain, .. } if program.backend == Backend::Nft => {
                Self::of_kernel(Errno::new(libc::EBUSY), command, chain)
            }
            Error::NotEmpty { .. }
            | Error::Drops { .. }
            | Error::Edit(EditError::NotEmpty { .. }) => Self::plain("Directory not empty."),
            Error::Edit(EditError::Referenced { .. }) => Self::plain("Too many links."),
            Error::Commit(error) => match error.failures.first() {
                Some(failure) => match (failure.errno.number(), &command.verb) {
                    (libc::EEXIST, Verb::NewChain) => Self::plain("Chain already exists."),
                    (libc::ENOENT, verb) if !has_rule(verb) => Self::plain(NO_CHAIN),
                    (libc::EPERM, _) => Self::no_permission(),
                    _ => Self::of_kernel(failure.errno, command, &chain),
                },
                None => Self::resource(error.to_string()),
            },
            Error::Legacy(error) => Self::of_legacy(program, error),
            Error::Nft(error) if error.errno().is_some_and(is_permission) => Self::no_permission(),
            Error::Snapshot(SnapshotError::Netlink(error))
                if error.errno().is_some_and(is_permission) =>
            {
                Self::no_permission()
            }
            Error::UnknownExtension { .. } => {
                Self::of_kernel(Errno::new(libc::ENOENT), command, &chain)
            }
            Error::Set(error) => Self::parameter(format!("{error}\n")),
            Error::Unwritable(Unwritable::NoAddress) => {
                Self::of_kernel(Errno::new(libc::EINVAL), command, &chain)
            }
            Error::Unwritable(error) => Self::parameter(error.to_string()),
            Error::Contended { .. } => Self::resource(error.to_string()),
            _ => Self::resource(crate::error::message_with_causes(error)),
        }
    }

    /// Converts an error of the kernel for nf_tables.
    fn of_kernel(errno: Errno, command: &Command, chain: &BString) -> Self {
        let (verb, what) = match command.verb {
            Verb::Append => ("RULE_APPEND", "rule in chain"),
            Verb::Insert(_) => ("RULE_INSERT", "rule in chain"),
            Verb::Replace(_) => ("RULE_REPLACE", "rule in chain"),
            Verb::Delete | Verb::DeleteNumber(_) | Verb::Check => ("RULE_DELETE", "rule in chain"),
            Verb::NewChain => ("CHAIN_USER_ADD", "chain"),
            Verb::DeleteChain => ("CHAIN_DEL", "chain"),
            Verb::Flush => ("RULE_FLUSH", "rule in chain"),
            Verb::Policy(_) | Verb::Zero(_) => ("CHAIN_UPDATE", "chain"),
            Verb::RenameChain(_) => ("CHAIN_RENAME", "chain"),
        };
        Self::resource(format!(" {verb} failed ({}): {what} {chain}", words(errno)))
    }

    fn no_permission() -> Self {
        Self::resource(
            "Could not fetch rule set generation id: Permission denied (you must be root)",
        )
    }

    /// Creates the error for a missing permission to read a legacy table.
    pub(super) fn no_permission_for(program: &Program, table: &str) -> Self {
        Self::new(
            Status::Version,
            MessageStyle::WithVersion,
            format!(
                "can't initialize {0} table `{table}': Permission denied (you must be root)\n\
                 Perhaps {0} or your kernel needs to be upgraded.",
                program.name
            ),
        )
    }

    pub(super) fn of_legacy(program: &Program, error: &legacy::Error) -> Self {
        match error {
            legacy::Error::Refused { errno, .. } | legacy::Error::System { errno, .. } => {
                Self::of_errno(*errno)
            }
            legacy::Error::UnknownExtension { .. } => Self::plain(NO_CHAIN),
            legacy::Error::NoSuchTable { table, .. } => Self::no_table(program, &table.to_string()),
            legacy::Error::NotBuilt { .. } => Self::no_table(program, "filter"),
            legacy::Error::Locked { path, waited, .. } => Self::bare(
                Status::Resource,
                format!(
                    "Can't lock {}: {}\nAnother app is currently holding the xtables lock. {}\n",
                    path.display(),
                    words(Errno::new(libc::EWOULDBLOCK)),
                    match waited.as_secs() {
                        0 => "Perhaps you want to use the -w option?".to_owned(),
                        seconds => format!("Stopped waiting after {seconds}s."),
                    }
                ),
            ),
            legacy::Error::LockFile { path, errno } => Self::bare(
                Status::Resource,
                format!(
                    "Fatal: can't open lock file {}: {}\n",
                    path.display(),
                    words(*errno)
                ),
            ),
            legacy::Error::NoPermission { .. } => Self::no_permission_for(program, "filter"),
            other => Self::resource(other.to_string()),
        }
    }

    /// Converts an error of the kernel for a legacy table.
    fn of_errno(errno: Errno) -> Self {
        match errno.number() {
            libc::ENOENT => Self::plain(NO_CHAIN),
            libc::EINVAL => Self::plain(&format!(
                "{}. Run `dmesg' for more information.",
                words(errno)
            )),
            _ => Self::plain(&format!("{}.", words(errno))),
        }
    }

    /// Returns the output for standard error.
    pub(super) fn text(&self, program: &Program) -> BString {
        let name = &program.name;
        let mut text = BString::default();
        match self.style {
            MessageStyle::Bare => return self.message.clone(),
            MessageStyle::Plain => text.extend_from_slice(format!("{name}: ").as_bytes()),
            MessageStyle::WithVersion => {
                text.extend_from_slice(format!("{}: ", program.version()).as_bytes());
            }
        }
        text.extend_from_slice(self.message.as_bytes());
        text.push(b'\n');
        if self.status == Status::Parameter {
            let more = format!("Try `{name} -h' or '{name} --help' for more information.\n");
            text.extend_from_slice(more.as_bytes());
        }
        text
    }
}

/// Returns `true` if the kernel may miss a part of the command's rule.
const fn has_rule(verb: &Verb) -> bool {
    matches!(verb, Verb::Append | Verb::Insert(_) | Verb::Replace(_))
}

/// Returns `true` if the error is about this built-in chain.
fn is_builtin(error: &Error, name: &BString) -> bool {
    matches!(error, Error::Builtin { chain, .. } if chain == name)
}

fn is_permission(errno: Errno) -> bool {
    matches!(errno.number(), libc::EPERM | libc::EACCES)
}

/// Returns the C library's text for the error.
fn words(errno: Errno) -> String {
    let message_text = std::io::Error::from(errno).to_string();
    let words = message_text
        .split_once(" (os error ")
        .map(|(words, _)| words.to_owned());
    words.unwrap_or(message_text)
}
