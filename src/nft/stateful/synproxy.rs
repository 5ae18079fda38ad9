//! SYN proxies: the attributes of the expression
//! [`Synproxy`](crate::nft::expr::Synproxy).
//!
//! ```text
//! NFTA_SYNPROXY_MSS      be16
//! NFTA_SYNPROXY_WSCALE   u8
//! NFTA_SYNPROXY_FLAGS    be32
//! ```

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;
    use crate::nft::expr::{Synproxy, SynproxyFlags};

    #[test]
    fn built() {
        let data = Synproxy {
            mss: Some(1460),
            wscale: Some(7),
            flags: Some(SynproxyFlags::from_bits_retain(0xf)),
            ..Synproxy::default()
        };
        assert_built("synproxy", "a synproxy", &ObjectData::from(data));
    }
}
