//! For cargo-fuzz: `cargo fuzz run nft_elements`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(nft_elements);
