//! Events of nf_tables, mirrors of the ruleset, and the ruleset in memory that stands in for a kernel.

#[path = "../common/mod.rs"]
mod common;
mod live;
mod mirror;
mod mirror_elements;
mod model;
mod stress;
