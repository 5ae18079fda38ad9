//! nft's language, as text and as JSON, in both directions, compared with what nft sends, lists and
//! refuses.

#[path = "../common/mod.rs"]
mod common;
mod dialect;
mod error_messages;
mod json;
mod json_read;
mod libnftables;
mod nft_1_1;
mod oracle;
mod random;
mod round_trip;
mod script;
mod text;
mod tunnels;
mod wire;
