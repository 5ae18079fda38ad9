//! Events of nf_tables, mirrors of the ruleset, and the in-memory ruleset that replaces a kernel.

#[path = "../common/mod.rs"]
mod common;
mod fake_kernel;
mod live;
mod mirror;
mod mirror_elements;
mod stress;
