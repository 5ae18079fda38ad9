//! Conntrack expectations: expected connections related to an existing one.
//!
//! ```text
//! NFTA_CT_EXPECT_L3PROTO   be16
//! NFTA_CT_EXPECT_L4PROTO   u8
//! NFTA_CT_EXPECT_DPORT     be16
//! NFTA_CT_EXPECT_TIMEOUT   u32 in host byte order
//! NFTA_CT_EXPECT_SIZE      u8
//! ```

use std::fmt;

use chainwright_sys::nf_tables::{
    NFTA_CT_EXPECT_DPORT, NFTA_CT_EXPECT_L3PROTO, NFTA_CT_EXPECT_L4PROTO, NFTA_CT_EXPECT_SIZE,
    NFTA_CT_EXPECT_TIMEOUT,
};

use crate::netlink::MessageWriter;
use crate::nft::declare::{Field, attributes, plain_field};

/// Milliseconds in host byte order, unlike nearly all other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct HostMilliseconds(pub u32);

impl<'a> Field<'a> for HostMilliseconds {
    plain_field!();
    fn parse_payload(payload: &'a [u8]) -> Option<Self> {
        let number = payload.first_chunk().copied().map(u32::from_ne_bytes);
        number.map(Self)
    }
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.bytes(kind, &self.0.to_ne_bytes());
    }
}

attributes! {
    /// An expectation of connections (`enum nft_ct_expectation_attributes`).
    pub struct CtExpect {
        /// `NFPROTO_*` of the connections; by default that of the table.
        NFTA_CT_EXPECT_L3PROTO => l3proto: u16,
        /// `IPPROTO_*` of the connections.
        NFTA_CT_EXPECT_L4PROTO => l4proto: u8,
        /// Destination port.
        NFTA_CT_EXPECT_DPORT => dport: u16,
        /// Time for which they are expected.
        NFTA_CT_EXPECT_TIMEOUT => timeout: HostMilliseconds,
        /// Maximum number expected at once.
        NFTA_CT_EXPECT_SIZE => size: u8,
    }
}

impl CtExpect {
    /// Expects up to `size` connections to this port, for this number of milliseconds.
    #[must_use]
    pub fn new(l4proto: u8, dport: u16, milliseconds: u32, size: u8) -> Self {
        Self {
            l4proto: Some(l4proto),
            dport: Some(dport),
            timeout: Some(HostMilliseconds(milliseconds)),
            size: Some(size),
            ..Self::default()
        }
    }
}

impl fmt::Display for CtExpect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[ ct_expect ")?;
        let numbers = [
            ("family", self.l3proto.map(u32::from)),
            ("protocol", self.l4proto.map(u32::from)),
            ("dport", self.dport.map(u32::from)),
            ("timeout", self.timeout.map(|timeout| timeout.0)),
            ("size", self.size.map(u32::from)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                write!(f, "{name} {number} ")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add ct expectation inet t ex { protocol tcp; dport 5432; timeout 1h; size 12;
    /// l3proto ip; }`.
    #[test]
    fn sent_and_listed() {
        let expect = CtExpect {
            l3proto: Some(2),
            ..CtExpect::new(6, 5432, 3_600_000, 12)
        };
        let line = "[ ct_expect family 2 protocol 6 dport 5432 timeout 3600000 size 12 ]";
        assert_data(
            expect.clone(),
            "
                2c000480 06000100 00020000 05000200 06000000 06000300 15380000 08000400
                80ee3600 05000500 0c000000
            ",
            line,
        );
        assert_listed(
            expect,
            "
                01000002 06000100 74000000 07000200 65780000 08000300 00000009 0c000600
                00000000 00000008 08000500 00000000 2c000400 06000100 00020000 05000200
                06000000 06000300 15380000 08000400 80ee3600 05000500 0c000000
            ",
            &format!("table t name ex use 0 {line}"),
        );
    }
}
