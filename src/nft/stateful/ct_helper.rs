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
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;

    #[test]
    fn built() {
        let data = CtHelper {
            l3proto: Some(2),
            ..CtHelper::new("ftp", 6)
        };
        assert_built("ct_helper", "a helper", &ObjectData::from(data));
    }
}
