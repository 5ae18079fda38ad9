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
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;

    #[test]
    fn built() {
        let data = CtExpect {
            l3proto: Some(2),
            ..CtExpect::new(6, 5432, 3_600_000, 12)
        };
        assert_built("ct_expectation", "an expectation", &ObjectData::from(data));
    }
}
