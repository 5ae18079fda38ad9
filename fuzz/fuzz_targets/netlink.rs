//! For cargo-fuzz: `cargo fuzz run netlink`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(netlink);
