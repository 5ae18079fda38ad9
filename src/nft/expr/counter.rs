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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_COUNTER_BYTES", Wire::Be64),
            (2, "NFTA_COUNTER_PACKETS", Wire::Be64),
        ];
        assert_layout::<Counter>(Counter::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c counter packets 1234567890123 bytes 9876543210`.
    #[test]
    fn both_numbers_have_64_bits() {
        assert_element(
            Decoded::Counter,
            Counter {
                bytes: Some(9_876_543_210),
                packets: Some(1_234_567_890_123),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                0c000100 636f756e 74657200  ;   NFTA_EXPR_NAME: counter
                1c000280                    ;   NFTA_EXPR_DATA
                0c000100 00000002 4cb016ea  ;     NFTA_COUNTER_BYTES
                0c000200 0000011f 71fb04cb  ;     NFTA_COUNTER_PACKETS
            ",
        );
    }

    /// nft 1.0.6 `counter` writes no numbers, iptables-nft 1.8.9 always both.
    #[test]
    fn from_zero() {
        assert_attributes(Decoded::Counter, Counter::default(), "");
        assert_attributes(
            Decoded::Counter,
            Counter::new(0, 0),
            "0c000100 00000000 00000000 0c000200 00000000 00000000",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c … counter packets 7 bytes 420 …`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Counter,
            Counter::new(7, 420),
            "
            2c000100 0c000100 636f756e 74657200 1c000200 0c000100 00000000 000001a4
            0c000200 00000000 00000007
        ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after
    /// `add rule ip t c counter packets 3 bytes 300` and `add rule ip t c counter`.
    #[test]
    fn bytecode() {
        for (counter, line) in [
            (Counter::new(3, 300), "[ counter pkts 3 bytes 300 ]"),
            (Counter::new(0, 0), "[ counter pkts 0 bytes 0 ]"),
            (Counter::default(), "[ counter pkts 0 bytes 0 ]"),
            (
                Counter::new(5, u64::MAX),
                "[ counter pkts 5 bytes 18446744073709551615 ]",
            ),
        ] {
            assert_eq!(counter.to_string(), line);
        }
    }
}
