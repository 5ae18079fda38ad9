//! The text of `iptables-save` and `iptables-restore`.

mod carry_out;
mod command;
mod draft;
mod error;
mod keep;
mod options;
mod read;
mod restore;
mod save;
mod words;

pub(super) use carry_out::carry_out;
pub(super) use command::DEVIATIONS as LINE_DEVIATIONS;
pub(super) use command::{Called, Listing, Wait};
pub use command::{Command, RuleSpec, Verb};
pub use error::ParseError;
pub(super) use error::nearest;
pub use keep::Kept;
pub use read::{LONGEST_TEXT, read};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use restore::restore_drafts;
pub(super) use restore::{
    DEVIATIONS as RESTORE_DEVIATIONS, NO_NAME, NO_POLICY, counters as counters_before,
};
pub use restore::{LONGEST_LINE, RestoreOptions, Restored, ShortenedLine};
pub(super) use save::DEVIATIONS as SAVE_DEVIATIONS;
pub(super) use save::save_missing;
pub use save::{InOtherWords, Omissions, SaveOptions};
pub use words::{Word, words};
