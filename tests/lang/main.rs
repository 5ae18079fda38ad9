//! nft's language, as text and as JSON, in both directions, compared with what nft sends, lists and
//! refuses.

#[path = "../common/mod.rs"]
mod common;
mod dialect;
mod json;
mod json_read;
mod libnftables;
mod mistakes;
mod newer;
mod oracle;
mod random;
mod round_trip;
mod script;
mod text;
mod tunnels;
mod wire;
