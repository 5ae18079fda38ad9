//! Errors of the iptables view.

use bstr::{BStr, BString, ByteSlice};

use super::nft::Unwritable;
use super::text::ParseError;
use super::{Backend, CleanedUp, Family, NotExpressible, SetError};
use crate::error::ErrorKind;
use crate::legacy::{self, EditError};
use crate::netlink::{self, MessageError};
use crate::nft::{CommitError, ExtensionKind, Outcome, SnapshotError};

/// An error of the iptables view.
///
/// Nothing was applied, unless [`nothing_applied`](Self::nothing_applied) is `false`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request to nf_tables failed.
    #[error(transparent)]
    Nft(#[from] netlink::Error),
    /// nf_tables could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The kernel refused the transaction, or its outcome is unknown.
    #[error(transparent)]
    Commit(#[from] Box<CommitError>),
    /// A request to the legacy tables failed.
    #[error(transparent)]
    Legacy(#[from] legacy::Error),
    /// A legacy table cannot be changed this way.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A rule cannot be encoded.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// A name or rule is too long for a message.
    #[error(transparent)]
    MessageError(#[from] MessageError),
    /// There is no such table.
    #[error("table `{name}` not found{}", suggestion(.hint.as_deref()))]
    NoSuchTable {
        /// The name.
        name: String,
        /// A similar name, as a question.
        hint: Option<String>,
    },
    /// The only requested table is not in the text.
    #[error("table {name} not found in the text{}", suggestion(.hint.as_deref()))]
    NotInText {
        /// The table.
        name: String,
        /// A similar name, as a question.
        hint: Option<String>,
    },
    /// There is no such chain.
    #[error("chain {chain} not found in table {table}{}", suggestion(.hint.as_deref()))]
    NoSuchChain {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// A similar name, as a question.
        hint: Option<String>,
    },
    /// There is such a chain already.
    #[error("chain {chain} already exists in table {table}")]
    ChainExists {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A built-in chain cannot be created, removed, renamed or jumped to.
    #[error(
        "chain {chain} of table {table} is built-in: it cannot be created, removed, renamed or jumped to"
    )]
    Builtin {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A target has that name, so that no rule could jump to the chain.
    #[error("a chain of table {table} cannot be named {chain}: a target has that name")]
    TargetName {
        /// The table.
        table: String,
        /// The name.
        chain: BString,
    },
    /// The table `nat` sees only the first packet of a connection, so `DROP` there would miss
    /// packets.
    #[error(
        "table nat is not intended for filtering: it only sees the first packet of a connection, and \
         iptables rejects DROP there; drop in filter, mangle or raw"
    )]
    NatDrop,
    /// Only built-in chains have policies.
    #[error("chain {chain} of table {table} is not built-in, so it has no policy")]
    NoPolicy {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// There is no such policy.
    #[error("{policy:?} is not a policy (ACCEPT or DROP)")]
    Policy {
        /// The policy as given.
        policy: BString,
    },
    /// The chain has rules, or a rule or map element refers to it.
    #[error("chain {chain} of table {table} has rules: flush it before removing it")]
    NotEmpty {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// The built-in chain has the policy `DROP`, which would end with it.
    #[error(
        "chain {chain} of table {table} has policy DROP: set it to ACCEPT before removing the chain"
    )]
    Drops {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A rule that iptables cannot express may jump to a chain that must be kept.
    #[error(
        "rule {number} of chain {chain} of table {table} cannot be expressed in iptables' language ({reason}), so it is unknown \
         whether to keep it"
    )]
    InexpressibleRule {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// The number of the rule, from 1.
        number: usize,
        /// The reason.
        reason: NotExpressible,
    },
    /// Several chains of a legacy table have the same name, so the name is ambiguous.
    #[error(
        "table {table} has several chains named {chain}, so the name is ambiguous; iptables never creates that, and \
         restoring the whole table from a text recreates it"
    )]
    SharedName {
        /// The table.
        table: String,
        /// The name.
        chain: BString,
    },
    /// The change was made, but reading the tables again to verify it failed.
    #[error("done, but the result could not be verified: {0}")]
    NotVerified(Box<Error>),
    /// Another process restored the removed chains or rules.
    #[error("{}", recreated_message(.0))]
    Recreated(Box<CleanedUp>),
    /// There is no such rule.
    #[error("rule not found in chain {chain} of table {table}: {rule}")]
    NoSuchRule {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// The rule, or its number.
        rule: String,
    },
    /// The chain has fewer rules.
    #[error("chain {chain} of table {table} has {}", only(*.rules))]
    NoSuchNumber {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// The given number, from 1.
        number: usize,
        /// The number of rules.
        rules: usize,
    },
    /// The kernel lacks the extension, or this revision of it.
    #[error(
        "this kernel has no revision {revision} of the {kind} {name} for nf_tables (not built, or its \
         module is missing)"
    )]
    UnknownExtension {
        /// Match or target.
        kind: ExtensionKind,
        /// Its name.
        name: String,
        /// The revision.
        revision: u8,
    },
    /// A set in a rule could not be looked up.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A text to restore has a syntax error.
    #[error("line {line}, {error}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// The error in it.
        error: ParseError,
    },
    /// A line of a text cannot be carried out.
    #[error("line {line}: {error}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The cause.
        error: Box<Error>,
    },
    /// The kernel refused a line of a text. Nothing was applied.
    #[error("line {line}: {text}: {failure}")]
    Refused {
        /// The line, from 1.
        line: usize,
        /// The line's text.
        text: BString,
        /// The kernel's error.
        failure: String,
    },
    /// An error in the text of one family.
    #[error("{family}: {error}")]
    Input {
        /// The family.
        family: Family,
        /// The cause.
        error: Box<Error>,
    },
    /// Other processes changed the tables between reading and writing in every attempt. Nothing was
    /// applied.
    #[error(
        "another process changed the tables during each of {attempts} attempts; nothing was applied"
    )]
    Contended {
        /// The number of attempts.
        attempts: u32,
    },
    /// Legacy tables are replaced one after the other: some were replaced before one failed.
    #[error("replaced {}, then failed: {error}", .applied.join(", "))]
    PartlyApplied {
        /// The tables that have been replaced.
        applied: Vec<String>,
        /// The failure.
        error: Box<Error>,
    },
    /// The text of a table ended before its `COMMIT`.
    #[error("the text ends without a COMMIT for table {table}; nothing was applied")]
    NoCommit {
        /// The table.
        table: String,
    },
    /// Reading or writing text failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The backend does not support the operation.
    #[error("{what} is not possible with {backend}")]
    Unsupported {
        /// The operation.
        what: &'static str,
        /// The backend.
        backend: Backend,
    },
    /// An error of the caller's function.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

crate::debug_as_message!(Error);

crate::classified!(Error, |error| match error {
    Self::Nft(error) => error.class(),
    Self::Snapshot(error) => error.class(),
    Self::Commit(error) => error.class(),
    Self::Legacy(error) => error.class(),
    Self::Set(error) => error.class(),
    Self::Io(error) => error.into(),
    Self::Line { error, .. } | Self::Input { error, .. } => error.class(),
    Self::NoSuchTable { .. }
    | Self::NotInText { .. }
    | Self::NoSuchChain { .. }
    | Self::NoSuchRule { .. }
    | Self::NoSuchNumber { .. } => ErrorKind::NotFound.into(),
    Self::ChainExists { .. } => ErrorKind::AlreadyExists.into(),
    Self::NotEmpty { .. } => ErrorKind::InUse.into(),
    Self::Contended { .. } => ErrorKind::Retryable.into(),
    Self::UnknownExtension { .. } | Self::Unsupported { .. } => ErrorKind::Unsupported.into(),
    // Part of it was done.
    Self::NotVerified(_) | Self::PartlyApplied { .. } | Self::Recreated(_) => {
        ErrorKind::Other.into()
    }
    Self::Refused { .. } | Self::Other(_) => ErrorKind::Other.into(),
    Self::Edit(_)
    | Self::Unwritable(_)
    | Self::MessageError(_)
    | Self::Builtin { .. }
    | Self::TargetName { .. }
    | Self::NatDrop
    | Self::NoPolicy { .. }
    | Self::Policy { .. }
    | Self::Drops { .. }
    | Self::InexpressibleRule { .. }
    | Self::SharedName { .. }
    | Self::Text { .. }
    | Self::NoCommit { .. } => ErrorKind::Invalid.into(),
});

impl Error {
    /// Returns `true` if it is certain that nothing was applied.
    #[must_use]
    pub fn nothing_applied(&self) -> bool {
        match self {
            Self::Commit(error) => error.outcome == Outcome::NothingApplied,
            Self::Legacy(error) => !matches!(error, legacy::Error::CountersLost { .. }),
            Self::PartlyApplied { .. } | Self::Recreated(_) | Self::NotVerified(_) => false,
            Self::Line { error, .. } | Self::Input { error, .. } => error.nothing_applied(),
            Self::Nft(_)
            | Self::Snapshot(_)
            | Self::Edit(_)
            | Self::Unwritable(_)
            | Self::MessageError(_)
            | Self::NoSuchTable { .. }
            | Self::NotInText { .. }
            | Self::NoSuchChain { .. }
            | Self::ChainExists { .. }
            | Self::Builtin { .. }
            | Self::TargetName { .. }
            | Self::NatDrop
            | Self::NoPolicy { .. }
            | Self::Policy { .. }
            | Self::NotEmpty { .. }
            | Self::Drops { .. }
            | Self::InexpressibleRule { .. }
            | Self::SharedName { .. }
            | Self::NoSuchRule { .. }
            | Self::NoSuchNumber { .. }
            | Self::UnknownExtension { .. }
            | Self::Set(_)
            | Self::Text { .. }
            | Self::Refused { .. }
            | Self::Contended { .. }
            | Self::NoCommit { .. }
            | Self::Io(_)
            | Self::Unsupported { .. }
            | Self::Other(_) => true,
        }
    }

    /// Returns the error of reading nf_tables, from any line of a text.
    pub(super) fn of_reading(&self) -> Option<&crate::netlink::Error> {
        match self {
            Self::Nft(error) => Some(error),
            Self::Line { error, .. } | Self::Input { error, .. } => error.of_reading(),
            _ => None,
        }
    }

    /// Creates the error for a missing table, with a hint.
    pub(super) fn no_such_table(name: &str) -> Self {
        let near = super::text::nearest(name.as_bytes(), super::builtin::NAMES);
        Self::NoSuchTable {
            name: name.to_owned(),
            hint: near.map(|near| format!("did you mean {near}?")),
        }
    }

    /// Creates the error for a table that is missing in all texts, with a hint.
    pub(super) fn not_in_text<'t>(name: &str, texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let declared_tables = texts.flat_map(|text| text.lines());
        let declared_tables =
            declared_tables.filter_map(|line| line.strip_prefix(b"*")?.trim_ascii().to_str().ok());
        let near = super::text::nearest(name.as_bytes(), declared_tables);
        Self::NotInText {
            name: name.to_owned(),
            hint: near.map(|near| format!("did you mean {near}?")),
        }
    }

    /// Creates the error for a missing chain, with a hint. `known` are the table's chains.
    pub(super) fn no_such_chain<'n>(
        table: &str,
        chain: &BStr,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let verdicts = ["ACCEPT", "DROP", "RETURN", "QUEUE"];
        let near = super::text::nearest(chain, known.into_iter().chain(verdicts));
        Self::NoSuchChain {
            table: table.to_owned(),
            chain: chain.to_owned(),
            hint: near.map(|near| format!("did you mean {near}?")),
        }
    }

    /// Adds the line of the text.
    pub(super) fn at(self, line: usize) -> Self {
        match self {
            Self::Line { .. }
            | Self::Text { .. }
            | Self::Refused { .. }
            | Self::PartlyApplied { .. } => self,
            error => Self::Line {
                line,
                error: Box::new(error),
            },
        }
    }
}

fn only(rules: usize) -> String {
    match rules {
        0 => "no rules".to_owned(),
        1 => "only 1 rule".to_owned(),
        _ => format!("only {rules} rules"),
    }
}

fn suggestion(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!(" ({hint})"))
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nft => "nf_tables",
            Self::Legacy => "the legacy tables",
        })
    }
}

fn recreated_message(again: &CleanedUp) -> String {
    let CleanedUp { family, table, .. } = again;
    let what = match (&*again.chains, &*again.rules) {
        ([chain, ..], _) => format!("chain {chain}"),
        (_, [(chain, Ok(rule)), ..]) => format!("the rule {rule} of chain {chain}"),
        (_, [(chain, Err(_)), ..]) => format!("a rule of chain {chain}"),
        ([], []) => "what was removed".to_owned(),
    };
    format!("{what} of table {table} ({family}) was removed, but another process added it again")
}
