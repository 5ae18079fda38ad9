//! Snapshots: kept in memory and in files, restored, compared, and the plans between them.

mod backup;
#[path = "../common/mod.rs"]
mod common;
mod hostile_files;
mod omitted_elements;
mod plan;
mod races;
mod restore;
mod round_trip;
mod ruleset;
mod serial;
