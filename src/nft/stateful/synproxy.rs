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
    use crate::nft::expr::{Synproxy, SynproxyFlags};
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add synproxy inet t sp { mss 1460; wscale 7; timestamp sack-perm; }`.
    #[test]
    fn sent_and_listed() {
        let synproxy = Synproxy {
            mss: Some(1460),
            wscale: Some(7),
            flags: Some(SynproxyFlags::from_bits_retain(0xf)),
            ..Synproxy::default()
        };
        assert_data(
            synproxy.clone(),
            "1c000480 06000100 05b40000 05000200 07000000 08000300 0000000f",
            "[ synproxy mss 1460 wscale 7 ]",
        );
        assert_listed(
            synproxy,
            "
                01000002 06000100 74000000 07000200 73700000 08000300 0000000a 0c000600
                00000000 00000009 08000500 00000000 1c000400 06000100 05b40000 05000200
                07000000 08000300 0000000f
            ",
            "table t name sp use 0 [ synproxy mss 1460 wscale 7 ]",
        );
    }
}
