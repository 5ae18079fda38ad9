//! Objects, transactions and listings of nf_tables, tested with the kernel, with `nft` as the
//! oracle.

mod build;
mod commit_echo;
#[path = "../common/mod.rs"]
mod common;
mod encodings;
mod error_messages;
mod groups;
mod guard;
mod interval_sets;
mod listing;
mod objects;
mod owned;
mod owner_tag;
mod preflight;
mod properties;
mod recreate;
mod sets;
mod transaction;
