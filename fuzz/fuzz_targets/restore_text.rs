//! For cargo-fuzz: `cargo fuzz run restore_text`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(restore_text);
