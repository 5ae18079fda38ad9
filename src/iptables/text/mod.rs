//! The text of `iptables-save` and `iptables-restore`.

mod command;
mod error;
mod options;
mod restore;
mod save;
mod words;

pub use command::{Command, RuleSpec, Verb};
pub use error::Fault;
pub(super) use error::nearest;
pub use restore::{RestoreOptions, Restored};
pub use save::{Omissions, SaveOptions};
pub use words::{Word, words};
