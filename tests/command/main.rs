//! The command `chainwright` and the programs that it stands in for, run as programs.

#[path = "../common/mod.rs"]
mod common;
mod dropin;
mod faults;
mod iptables;
mod nft;
mod refusals;
mod trace;
mod verbs;
