//! Packets on their way through a ruleset, beside the kernel's own answers.

#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod walk;
