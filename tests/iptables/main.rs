//! Tables with iptables' syntax on both backends, compared with the real tools.

mod atomic;
mod cleanup;
#[path = "../common/mod.rs"]
mod common;
mod compat;
mod decoder_equivalence;
mod differences;
mod edits;
mod errors;
mod extensions;
mod ipset;
mod keep_foreign;
mod legacy_oracle;
mod legacy_replace;
mod migrate;
mod reconcile_chain;
mod rules;
mod rulesets;
mod text_properties;
mod translate;
