//! For cargo-fuzz: `cargo fuzz run record`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(record);
