//! What can go wrong between the iptables view and the kernel.

use bstr::{BStr, BString, ByteSlice};

use super::nft::Unwritable;
use super::text::ParseError;
use super::{Backend, CleanedUp, Family, NotExpressible, SetError};
use crate::legacy::{self, DraftError};
use crate::netlink::{self, MessageError};
use crate::nft::{CommitError, ExtensionKind, Outcome, SnapshotError};

/// An error of the iptables view.
///
/// Unless it is [`Partly`](Self::Partly), or a [`Commit`](Self::Commit) or
/// [`Legacy`](Self::Legacy) that says otherwise, nothing was applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request to nf_tables failed.
    #[error(transparent)]
    Nft(#[from] netlink::Error),
    /// nf_tables could not be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The kernel did not take the transaction.
    #[error(transparent)]
    Commit(#[from] Box<CommitError>),
    /// A request to the legacy tables failed.
    #[error(transparent)]
    Legacy(#[from] legacy::Error),
    /// A legacy table cannot be changed so.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A rule cannot be written.
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
        /// What might have been meant.
        hint: Option<String>,
    },
    /// The only table that is wanted of a text is not in it.
    #[error("table {name} not found in the text{}", suggestion(.hint.as_deref()))]
    NotInText {
        /// The table.
        name: String,
        /// What might have been meant.
        hint: Option<String>,
    },
    /// There is no such chain.
    #[error("chain {chain} not found in table {table}{}", suggestion(.hint.as_deref()))]
    NoSuchChain {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// What might have been meant.
        hint: Option<String>,
    },
    /// There is such a chain already.
    #[error("chain {chain} exists already in table {table}")]
    ChainExists {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A built-in chain cannot be made, removed, renamed or jumped to.
    #[error(
        "chain {chain} of table {table} is built in: it cannot be made, removed, renamed or jumped to"
    )]
    Builtin {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A target has that name, so that no rule could jump to the chain.
    #[error("no chain of table {table} can be called {chain}: a target has that name")]
    TargetName {
        /// The table.
        table: String,
        /// The name.
        chain: BString,
    },
    /// The table `nat` sees only the first packet of a connection: what it drops is not all that should
    /// be.
    #[error(
        "the table nat is not intended for filtering: it sees the first packet of a connection only, and \
         iptables refuses DROP there; drop in filter, mangle or raw"
    )]
    NatDrop,
    /// Only built-in chains have policies.
    #[error("chain {chain} of table {table} is not built in: it has no policy")]
    NoPolicy {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// There is no such policy.
    #[error("{policy:?} is not a policy (ACCEPT or DROP)")]
    Policy {
        /// What was given.
        policy: BString,
    },
    /// The chain has rules, or something leads to it.
    #[error("chain {chain} of table {table} has rules: flush it before it is removed")]
    NotEmpty {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// The built-in chain drops packets by its policy, which would end with it.
    #[error(
        "chain {chain} of table {table} drops packets by its policy: set that to ACCEPT before it is removed"
    )]
    Drops {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
    },
    /// A rule that iptables has no words for may lead to a chain that is to be kept.
    #[error(
        "rule {number} of chain {chain} of table {table} has no words in iptables' language ({why}), so that it is not \
         known whether it is to be kept"
    )]
    NoWords {
        /// The table.
        table: String,
        /// The chain.
        chain: BString,
        /// The number of the rule, from 1.
        number: usize,
        /// Why it has none.
        why: NotExpressible,
    },
    /// Several chains of a legacy table have the same name: which one is meant cannot be said.
    #[error(
        "several chains of table {table} are called {chain}: which one is meant cannot be said; no iptables makes that, and \
         restoring the whole table from a text makes it anew"
    )]
    SharedName {
        /// The table.
        table: String,
        /// The name.
        chain: BString,
    },
    /// It was done, and then could not be looked at again.
    #[error("it is done, but it could not be looked whether it is still so")]
    NotVerified(#[source] Box<Error>),
    /// What was taken out is there again: somebody else put it back.
    #[error("{}", said_again(.0))]
    ThereAgain(Box<CleanedUp>),
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
        /// The number that was given, from 1.
        number: usize,
        /// How many there are.
        rules: usize,
    },
    /// The kernel has no such extension, or not in this revision.
    #[error(
        "this kernel has no revision {revision} of the {kind} {name} for nf_tables (not built, or its \
         module is not there)"
    )]
    UnknownExtension {
        /// Match or target.
        kind: ExtensionKind,
        /// Its name.
        name: String,
        /// The revision.
        revision: u8,
    },
    /// A set that a rule names could not be looked up.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A text to be restored is wrong.
    #[error("line {line}, {error}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// What is wrong in it.
        error: ParseError,
    },
    /// What a line of a text asks for cannot be done.
    #[error("line {line}: {error}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why.
        error: Box<Error>,
    },
    /// The kernel did not take what a line of a text asks for. Nothing was applied.
    #[error("line {line}: {text}: {failure}")]
    Refused {
        /// The line, from 1.
        line: usize,
        /// The line's text.
        text: BString,
        /// What the kernel said of it.
        failure: String,
    },
    /// It is in the text of that family.
    #[error("{family}: {error}")]
    Input {
        /// The family.
        family: Family,
        /// What is wrong.
        error: Box<Error>,
    },
    /// Somebody else changed the tables again and again between reading and writing. Nothing was
    /// applied.
    #[error(
        "the tables were changed by somebody else during each of {attempts} attempts; nothing was \
         applied"
    )]
    Contended {
        /// How many attempts there were.
        attempts: u32,
    },
    /// Legacy tables are replaced one after the other: some were, then one could not be.
    #[error("replaced: {}; then: {error}", .applied.join(", "))]
    Partly {
        /// The tables that have been replaced.
        applied: Vec<String>,
        /// What came then.
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
    /// What was asked for is not there on this backend.
    #[error("{what} is not possible with {backend}")]
    Unsupported {
        /// What.
        what: &'static str,
        /// The backend.
        backend: Backend,
    },
    /// What the caller's own function said.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether nothing was applied for certain.
    #[must_use]
    pub fn nothing_applied(&self) -> bool {
        match self {
            Self::Commit(error) => error.outcome == Outcome::NothingApplied,
            Self::Legacy(error) => !matches!(error, legacy::Error::CountersLost { .. }),
            Self::Partly { .. } | Self::ThereAgain(_) | Self::NotVerified(_) => false,
            Self::Line { error, .. } | Self::Input { error, .. } => error.nothing_applied(),
            Self::Nft(_)
            | Self::Snapshot(_)
            | Self::Draft(_)
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
            | Self::NoWords { .. }
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

    /// Why nf_tables could not be read, whichever line it was read for.
    pub(super) fn of_reading(&self) -> Option<&crate::netlink::Error> {
        match self {
            Self::Nft(error) => Some(error),
            Self::Line { error, .. } | Self::Input { error, .. } => error.of_reading(),
            _ => None,
        }
    }

    /// The table that is not there.
    pub(super) fn no_such_table(name: &str) -> Self {
        let near = super::text::nearest(name.as_bytes(), super::builtin::NAMES);
        Self::NoSuchTable {
            name: name.to_owned(),
            hint: near.map(|near| format!("did you mean {near}?")),
        }
    }

    /// The table that none of the texts has.
    pub(super) fn not_in_text<'t>(name: &str, texts: impl Iterator<Item = &'t [u8]>) -> Self {
        let there = texts.flat_map(|text| text.lines());
        let there = there.filter_map(|line| line.strip_prefix(b"*")?.trim_ascii().to_str().ok());
        let near = super::text::nearest(name.as_bytes(), there);
        Self::NotInText {
            name: name.to_owned(),
            hint: near.map(|near| format!("did you mean {near}?")),
        }
    }

    /// The chain, or whatever else leads to it, that is not there. `known` are the table's chains.
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

    /// The same, with the line that asked for it.
    pub(super) fn at(self, line: usize) -> Self {
        match self {
            Self::Line { .. } | Self::Text { .. } | Self::Refused { .. } | Self::Partly { .. } => {
                self
            }
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

fn said_again(again: &CleanedUp) -> String {
    let CleanedUp { family, table, .. } = again;
    let what = match (&*again.chains, &*again.rules) {
        ([chain, ..], _) => format!("chain {chain}"),
        (_, [(chain, Ok(rule)), ..]) => format!("the rule {rule} of chain {chain}"),
        (_, [(chain, Err(_)), ..]) => format!("a rule of chain {chain}"),
        ([], []) => "what was taken out".to_owned(),
    };
    format!(
        "{what} of table {table} ({family}) was taken out and is there again: somebody else put it back"
    )
}
