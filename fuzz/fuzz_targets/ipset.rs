//! For cargo-fuzz: `cargo fuzz run ipset`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(ipset);
