//! Packets on their path through a ruleset, compared with the kernel's own results.

#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod trace;
