//! What can go wrong while a table is changed.

use bstr::BString;

use crate::legacy::{Family, Hook, Malformed};

/// Why a [`Draft`](super::Draft) could not be changed so, or not be finished. The draft is as it was
/// before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// That chain is not in the draft: it was removed, or the id is another draft's.
    #[error("the chain is not in this draft (any more)")]
    NoSuchChain,
    /// That chain is another draft's.
    #[error("the chain is another draft's")]
    ForeignChain,
    /// That rule was not built by this draft.
    #[error("the rule was not built by this draft")]
    ForeignRule,
    /// There is a chain of that name already.
    #[error("chain {name:?} exists already")]
    ChainExists {
        /// The name.
        name: BString,
    },
    /// These bytes cannot be a new chain's name.
    #[error(
        "{name:?} cannot be the name of a chain (1 to 28 bytes, no NUL, not ACCEPT, DROP, QUEUE or RETURN)"
    )]
    ChainName {
        /// What was given.
        name: BString,
    },
    /// The chain is built-in: it cannot be removed, renamed or jumped to.
    #[error("chain {hook} is built-in: it cannot be removed, renamed or jumped to")]
    Builtin {
        /// Its hook.
        hook: Hook,
    },
    /// The chain is not built-in: it has no policy.
    #[error("chain {name:?} is not built-in: it has no policy")]
    NotBuiltin {
        /// Its name.
        name: BString,
    },
    /// The chain has rules, so that it cannot be removed.
    #[error("chain {name:?} has {rules} rules: flush it before it is removed")]
    NotEmpty {
        /// Its name.
        name: BString,
        /// How many rules it has.
        rules: usize,
    },
    /// Rules jump to the chain, so that it cannot be removed.
    #[error("chain {name:?} cannot be removed: {references} rules jump to it")]
    Referenced {
        /// Its name.
        name: BString,
        /// How many rules jump or go to it.
        references: u32,
    },
    /// The chain has no rule at that position.
    #[error("chain {name:?} has {rules} rules, none is at position {position} (counted from 0)")]
    NoSuchRule {
        /// The chain's name.
        name: BString,
        /// The position asked for, from 0.
        position: usize,
        /// How many rules it has.
        rules: usize,
    },
    /// The header is one of another family.
    #[error("a rule of the {header} tables cannot be in a table of the {table} ones")]
    Family {
        /// The header's family.
        header: Family,
        /// The table's family.
        table: Family,
    },
    /// ARP tables know no goto.
    #[error("ARP tables have no goto")]
    NoGoto,
    /// These bytes cannot be the name of a match or target.
    #[error("{name:?} cannot be the name of a match or target (1 to 28 bytes, no NUL, not ERROR)")]
    ExtensionName {
        /// What was given.
        name: BString,
    },
    /// A rule with these matches and this target is longer than its struct can tell.
    #[error("a rule of {size} bytes: it can have {} at most", u16::MAX)]
    RuleTooLong {
        /// Size in bytes up to and with the part that was too much.
        size: usize,
    },
    /// The new table is larger than one system call can write.
    #[error("the new table has {size} bytes: too many to be written")]
    TableTooLarge {
        /// Size of the entries in bytes.
        size: u64,
    },
    /// The table has no entries, not even an end: it was not read.
    #[error("the table has not been read: it has no entries")]
    NotRead,
    /// An entry of the table that was read cannot be moved. Other programs could have written one:
    /// a jump into the middle of a chain, for instance.
    #[error("an entry of the table cannot be moved: {0}")]
    Kept(#[from] Malformed),
}
