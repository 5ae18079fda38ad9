//! For cargo-fuzz: `cargo fuzz run graph_text`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(graph_text);
