//! Connection limits: the attributes of the expression
//! [`Connlimit`](crate::nft::expr::Connlimit).
//!
//! ```text
//! NFTA_CONNLIMIT_COUNT   be32
//! NFTA_CONNLIMIT_FLAGS   be32
//! ```

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::expr::{Connlimit, ConnlimitFlags};
    use crate::nft::stateful::tests::assert_data;

    /// nft 1.0.6 creates none; built from the header. `tests/nft/objects.rs` tests the
    /// kernel.
    #[test]
    fn encoded() {
        let connlimit = Connlimit {
            count: Some(10),
            flags: Some(ConnlimitFlags::INV),
            ..Connlimit::default()
        };
        assert_data(
            connlimit,
            "14000480 08000100 0000000a 08000200 00000001",
            "[ connlimit count 10 flags 1 ]",
        );
    }
}
