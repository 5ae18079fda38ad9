//! Tests of the command `chainwright` and of the programs that it replaces, run as programs.

mod check;
#[path = "../../../tests/common/mod.rs"]
mod common;
mod completions;
mod dropin;
mod faults;
mod hostile_texts;
mod iptables;
mod modules;
mod nft;
mod refusals;
mod trace;
mod verbs;
