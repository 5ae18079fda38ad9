//! nf_tables: objects, expressions, listings and transactions.
//!
//! | task | start from |
//! |---|---|
//! | list tables, chains, rules, sets, elements, objects, or look one up | [`Connection`], [`Scope`] |
//! | keep a listing and re-read it only when something changed | [`List`] |
//! | keep a whole ruleset, restore it, save it to a file, compare two | [`Snapshot`] |
//! | watch who changes the ruleset, and how | [`live::Monitor`] |
//! | keep a copy of the ruleset up to date, and query it without requests | [`live::Mirror`] |
//! | change the ruleset atomically | [`Transaction`], [`Connection::commit`] |
//! | get the results of a transaction: its generation, handles, names | [`Connection::commit_echo`] |
//! | check in advance for features that this kernel lacks | [`Connection::preflight`], [`Connection::check`] |
//! | commit independent parts, and skip those that the kernel rejects | [`TransactionGroups`] |
//! | read some tables and change them, despite commits to other tables | [`Guard`] |
//! | read an object as the kernel sent it | [`TableRef`], [`ChainRef`], [`RuleRef`], [`SetRef`], [`ElementRef`], [`StatefulObjectRef`] |
//! | build one | [`Table`], [`Chain`], [`Rule`], [`Set`], [`Element`], [`StatefulObject`], [`Flowtable`] |
//! | build a rule in nft's terms | [`build::Build`] |
//! | build a rule expression by expression | [`expr`] |
//! | keep a table from being flushed by others | [`Connection::own`], [`TableFlags::OWNER`] |
//!
//! ```no_run
//! use chainwright::nft::{Chain, Connection, Family, Scope, Rule, Table, Transaction};
//! use chainwright::nft::expr::{Counter, Immediate};
//!
//! # fn main() -> Result<(), chainwright::Error> {
//! let mut nft = Connection::open()?;
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "example"))?;
//! tx.add(&Chain::new(Family::IP, "example", "web"))?;
//! tx.add(
//!     &Rule::new(Family::IP, "example", "web")
//!         .with(&Counter::new(0, 0))
//!         .with(&Immediate::accept()),
//! )?;
//! nft.commit(&tx)?; // everything, or nothing and an error with the reasons
//!
//! let mut chains = nft.chains(Scope::table(Family::IP, "example"))?;
//! while let Some(chain) = chains.try_next()? {
//!     println!("{}", chain.name());
//! }
//! # Ok(())
//! # }
//! ```

pub mod build;
#[cfg(all(test, target_endian = "little"))]
pub(crate) mod captured;
mod chain;
mod change_detector;
mod commit;
mod committed;
mod compat;
mod conditional_commit;
mod connection;
mod costs;
mod data_type;
mod declare;
mod device;
mod element;
mod explain;
pub mod expr;
mod extension;
mod family;
mod feature;
mod flowtable;
mod generation;
mod groups;
mod hooks;
mod list;
mod listing;
pub mod live;
mod module;
mod name;
mod normalize;
mod object;
mod owner_tag;
mod ownership;
mod pool;
mod preflight;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "most of it is for unit tests alone")
)]
mod properties;
mod ranges;
mod reference;
mod references;
#[cfg(all(test, target_endian = "little"))]
mod replays;
mod requests;
mod rule;
mod rule_count;
mod ruleset;
mod scope;
mod set;
mod snapshot;
pub mod stateful;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod transaction;
pub mod typed;
mod unknown;
pub mod userdata;

pub use chain::{Chain, ChainFlags, ChainRef, Counters, Hook, Policy, Priority, hook_name};
pub use commit::{CommitError, Failure, Outcome};
pub use committed::Committed;
pub use conditional_commit::Guard;
pub use connection::Connection;
#[doc(hidden)]
pub use connection::message_type;
pub use costs::Cost;
pub use data_type::DataType;
#[doc(hidden)]
pub use declare::Field;
pub use device::{Device, DeviceIter, Devices};
pub use element::{
    Element, ElementFlags, ElementIter, ElementList, ElementRef, Elements, ElementsRef, SetId,
    concatenation,
};
pub use explain::Operation;
#[cfg(feature = "fuzzing")]
pub(crate) use explain::explained;
pub use extension::ExtensionKind;
pub use family::Family;
pub use feature::Feature;
pub use flowtable::{Flowtable, FlowtableFlags, FlowtableHook, FlowtableRef};
pub use generation::{Generation, GenerationInfo, GenerationRef, Refreshed};
pub use groups::{CommittedGroups, SkippedGroup, TransactionGroups};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use hooks::tests::recorded_kernel as hooks_recorded_kernel;
pub use hooks::{HookFunction, HookOwner};
pub use list::List;
pub use listing::{ElementListing, Listing};
pub use module::is_loaded;
pub use name::{Bytes, Name, UnknownName};
pub use object::Object;
pub use owner_tag::{OwnerTag, OwnerTagError};
pub use ownership::Ownership;
pub use pool::Pool;
pub use preflight::{Missing, Preflight, Requirement};
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use properties::DEPTH;
pub use ranges::{Ranges, RangesError};
pub use reference::{ChainId, FlowtableId, ObjectId, Reference, RuleId, TableId};
pub(crate) use rule::is_cheaper_to_recreate;
pub use rule::{Compat, Rule, RuleRef};
pub use ruleset::{Ruleset, RulesetChain, RulesetError, RulesetSet, RulesetTable};
pub use scope::{ObjectFilter, RuleFilter, Scope};
pub use set::{Set, SetDesc, SetField, SetFields, SetFlags, SetPolicy, SetRef};
#[cfg(feature = "diff")]
pub use snapshot::{Change, ChangeType, Diff, DiffOptions, ObjectFormatter};
pub use snapshot::{
    ElementFilter, MissingElements, MissingRules, NotOwned, ObjectCounts, Part, PartialSnapshot,
    Plan, PlanOptions, Replaced, Restored, Snapshot, SnapshotChain, SnapshotError, SnapshotOptions,
    SnapshotSet, SnapshotTable, WriteError,
};
#[doc(hidden)]
pub use snapshot::{ElementQuery, Needed, SnapshotQuery, is_map, is_meter};
#[cfg(feature = "backup")]
pub use snapshot::{FileError, NotRegular, Provenance};
#[doc(hidden)]
pub use snapshot::{Stage, is_same_rule};
pub use stateful::{ObjectData, StatefulObject, StatefulObjectRef};
pub use table::{Table, TableFlags, TableRef};
pub use time::{Milliseconds, Milliseconds32};
pub use transaction::Transaction;
pub use unknown::UnknownAttributes;
