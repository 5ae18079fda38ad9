//! Conntrack helpers, which inspect the packets of a protocol to find related connections.
//!
//! ```text
//! NFTA_CT_HELPER_NAME      string
//! NFTA_CT_HELPER_L3PROTO   be16
//! NFTA_CT_HELPER_L4PROTO   u8
//! ```

use std::fmt;

use chainwright_sys::nf_tables::{
    NFTA_CT_HELPER_L3PROTO, NFTA_CT_HELPER_L4PROTO, NFTA_CT_HELPER_NAME,
};

use crate::nft::declare::attributes;
use crate::nft::name::Name;

attributes! {
    /// A conntrack helper (`enum nft_ct_helper_attributes`).
    pub struct CtHelper<'a> {
        /// Name of the kernel's helper: `ftp`, `sip`, …
        NFTA_CT_HELPER_NAME => helper: Name<'a> [without_nul],
        /// `NFPROTO_*` of the connections; by default that of the table.
        NFTA_CT_HELPER_L3PROTO => l3proto: u16,
        /// `IPPROTO_*` of the connections.
        NFTA_CT_HELPER_L4PROTO => l4proto: u8,
    }
}

impl<'a> CtHelper<'a> {
    /// Uses the kernel's helper with this name, for connections of this layer-4 protocol.
    pub fn new(helper: impl Into<Name<'a>>, l4proto: u8) -> Self {
        Self {
            helper: Some(helper.into()),
            l4proto: Some(l4proto),
            ..Self::default()
        }
    }
}

impl fmt::Display for CtHelper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let helper = self.helper.clone().unwrap_or_default();
        let (l3, l4) = (
            self.l3proto.unwrap_or_default(),
            self.l4proto.unwrap_or_default(),
        );
        write!(f, "[ ct_helper name {helper} family {l3} protocol {l4} ]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add ct helper inet t h { type "ftp" protocol tcp; l3proto ip; }`, which omits
    /// the NUL.
    #[test]
    fn sent_and_listed() {
        let helper = CtHelper {
            l3proto: Some(2),
            ..CtHelper::new("ftp", 6)
        };
        assert_data(
            helper.clone(),
            "1c000480 07000100 66747000 06000200 00020000 05000300 06000000",
            "[ ct_helper name ftp family 2 protocol 6 ]",
        );
        assert_listed(
            helper,
            "
                01000002 06000100 74000000 06000200 68000000 08000300 00000003 0c000600
                00000000 00000005 08000500 00000000 1c000400 08000100 66747000 05000300
                06000000 06000200 00020000
            ",
            "table t name h use 0 [ ct_helper name ftp family 2 protocol 6 ]",
        );
    }
}
