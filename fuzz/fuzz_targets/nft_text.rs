//! For cargo-fuzz: `cargo fuzz run nft_text`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(nft_text);
