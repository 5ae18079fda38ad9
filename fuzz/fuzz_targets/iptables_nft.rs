//! For cargo-fuzz: `cargo fuzz run iptables_nft`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(iptables_nft);
