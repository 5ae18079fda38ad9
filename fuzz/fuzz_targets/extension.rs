//! For cargo-fuzz: `cargo fuzz run extension`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(extension);
