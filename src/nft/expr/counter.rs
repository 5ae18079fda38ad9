//! `counter`: counts the packets that come by.

use chainwright_sys::nf_tables::{NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS};

use super::expression;

expression! {
    "counter"
    /// Counts packets and bytes (`enum nft_counter_attributes`); what is written is where it
    /// starts.
    pub struct Counter {
        /// Number of bytes.
        NFTA_COUNTER_BYTES => bytes: u64,
        /// Number of packets.
        NFTA_COUNTER_PACKETS => packets: u64,
    }
}

impl Counter {
    /// A counter that starts here.
    #[must_use]
    pub const fn new(packets: u64, bytes: u64) -> Self {
        Self {
            bytes: Some(bytes),
            packets: Some(packets),
        }
    }
}
