//! iptables' rules in the legacy tables.

mod decode;
mod encode;
mod session;

pub use decode::decode;
pub(super) use decode::decode_into;
pub(super) use session::Session;
