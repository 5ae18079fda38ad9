//! The text of `iptables-save` and `iptables-restore`.

mod command;
mod error;
mod execute;
mod memory_tables;
mod options;
mod read;
mod restore;
mod restore_preserving;
mod save;
mod words;

pub(super) use command::DIFFERENCES as LINE_DIFFERENCES;
pub use command::{Command, RuleSpec, Verb};
pub(super) use command::{CommandLineOptions, Listing, Wait};
pub use error::ParseError;
pub(super) use error::nearest;
pub(super) use execute::execute;
pub use read::{MAX_TEXT_LENGTH, read};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use restore::restore_in_memory;
pub(super) use restore::{
    DIFFERENCES as RESTORE_DIFFERENCES, NO_COMMIT, NO_NAME, NO_POLICY, NO_TABLE,
    counters as counters_before,
};
pub use restore::{MAX_LINE_LENGTH, RestoreOptions, Restored, TruncatedLine, ruleset};
pub use restore_preserving::Preserved;
pub(super) use save::DIFFERENCES as SAVE_DIFFERENCES;
pub(super) use save::save_missing;
pub use save::{Omissions, RuleFormatter, SaveOptions};
pub use words::{Word, words};
