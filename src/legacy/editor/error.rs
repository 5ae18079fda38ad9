//! Errors from editing a table.

use bstr::BString;

use crate::legacy::{Family, Hook, Malformed};

/// Error from changing or finishing a [`TableEditor`](super::TableEditor). The editor is unchanged.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The chain is not in the editor: it was removed, or the id belongs to another editor.
    #[error("no such chain in this table (any more)")]
    NoSuchChain,
    /// The chain belongs to another editor.
    #[error("the chain belongs to another table")]
    ForeignChain,
    /// The rule was not built by this editor.
    #[error("the rule was built for another table")]
    ForeignRule,
    /// A chain of that name exists already.
    #[error("chain {name:?} already exists")]
    ChainExists {
        /// The name.
        name: BString,
    },
    /// Not a valid name for a new chain.
    #[error(
        "invalid chain name {name:?} (1 to 28 bytes, no NUL, not ACCEPT, DROP, QUEUE or RETURN)"
    )]
    ChainName {
        /// The rejected name.
        name: BString,
    },
    /// The chain is built-in: it cannot be removed, renamed or jumped to.
    #[error("chain {hook} is built-in: it cannot be removed, renamed or jumped to")]
    Builtin {
        /// Its hook.
        hook: Hook,
    },
    /// The chain is not built-in: it has no policy.
    #[error("chain {name:?} is not built-in, so it has no policy")]
    NotBuiltin {
        /// Its name.
        name: BString,
    },
    /// The chain has rules, so that it cannot be removed.
    #[error("chain {name:?} has {rules} rules: flush it before removing it")]
    NotEmpty {
        /// Its name.
        name: BString,
        /// Its number of rules.
        rules: usize,
    },
    /// Rules jump to the chain, so it cannot be removed.
    #[error("chain {name:?} cannot be removed: {references} rules jump to it")]
    Referenced {
        /// Its name.
        name: BString,
        /// Number of rules that jump or go to it.
        references: u32,
    },
    /// The chain has no rule at that position.
    #[error(
        "chain {name:?} has {rules} rules: position {position} is out of range (counted from 0)"
    )]
    NoSuchRule {
        /// The chain's name.
        name: BString,
        /// The requested position, from 0.
        position: usize,
        /// Its number of rules.
        rules: usize,
    },
    /// The header is one of another family.
    #[error("a rule of the {header} tables cannot be added to {table} tables")]
    Family {
        /// The header's family.
        header: Family,
        /// The table's family.
        table: Family,
    },
    /// ARP tables have no goto.
    #[error("ARP tables have no goto")]
    NoGoto,
    /// These bytes cannot be the name of a match or target.
    #[error("invalid match or target name {name:?} (1 to 28 bytes, no NUL, not ERROR)")]
    ExtensionName {
        /// The rejected name.
        name: BString,
    },
    /// A rule with these matches and this target is longer than the length fields of its struct
    /// allow.
    #[error("a rule of {size} bytes is too large (at most {})", u16::MAX)]
    RuleTooLong {
        /// Size in bytes, including the part that exceeds the range.
        size: usize,
    },
    /// The new table is larger than one system call can write.
    #[error("the new table is too large: {size} bytes")]
    TableTooLarge {
        /// Size of the entries in bytes.
        size: u64,
    },
    /// The table has no entries, not even the final one: it was not read.
    #[error("the table was not read: it has no entries")]
    NotRead,
    /// An entry of the table that was read cannot be moved, for instance a jump into the middle of
    /// a chain, which only other programs write.
    #[error("cannot relocate an entry of the table: {0}")]
    Preserved(#[from] Malformed),
}

crate::debug_as_message!(EditError);
