//! For cargo-fuzz: `cargo fuzz run iptables_legacy`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(iptables_legacy);
