//! For cargo-fuzz: `cargo fuzz run snapshot`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(snapshot);
