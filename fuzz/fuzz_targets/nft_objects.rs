//! For cargo-fuzz: `cargo fuzz run nft_objects`.
#![cfg_attr(fuzzing, no_main)]

chainwright_fuzz::target!(nft_objects);
