//! `counter`: counts packets.
//!
//! Both attributes are be64 and always listed.

use chainwright_sys::nf_tables::{NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS, NFTA_COUNTER_PAD};

use super::expression;
use crate::nft::UnknownAttributes;

expression! {
    "counter"
    /// Counts packets and bytes (`enum nft_counter_attributes`); a request contains the start
    /// values.
    pub struct Counter viewed as CounterRef {
        /// Number of bytes.
        NFTA_COUNTER_BYTES => bytes: u64,
        /// Number of packets.
        NFTA_COUNTER_PACKETS => packets: u64,
        _ => NFTA_COUNTER_PAD,
    }
}

impl Counter {
    /// Creates a counter with these start values.
    #[must_use]
    pub const fn new(packets: u64, bytes: u64) -> Self {
        Self {
            bytes: Some(bytes),
            packets: Some(packets),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packets = self.packets.unwrap_or_default();
        let bytes = self.bytes.unwrap_or_default();
        write!(f, "[ counter pkts {packets} bytes {bytes} ]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("counters of iptables-nft", Counter::new(0, 0));
        assert_built(
            "listed: … counter packets 7 bytes 420 …",
            Counter::new(7, 420),
        );
    }
}
