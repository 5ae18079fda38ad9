//! iptables' rules in the legacy tables.

mod decode;

pub use decode::decode;
