//! Objects, transactions and listings of nf_tables, tested with the kernel, with `nft` as the
//! oracle.

mod anew;
mod build;
mod commit_echo;
#[path = "../common/mod.rs"]
mod common;
mod encodings;
mod groups;
mod guard;
mod listing;
mod mistakes;
mod objects;
mod owned;
mod owner_tag;
mod preflight;
mod properties;
mod sets;
mod transaction;
mod trees;
