//! For cargo-fuzz: `cargo fuzz run rule_text`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(rule_text);
