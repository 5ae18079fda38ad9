//! Snapshots: kept in memory and in files, restored, compared, and the plans between them.

mod backup;
#[path = "../common/mod.rs"]
mod common;
mod hostile_files;
mod kept;
mod left_out;
mod plan;
mod races;
mod restore;
mod ruleset;
mod serial;
