//! For cargo-fuzz: `cargo fuzz run conntrack`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(conntrack);
