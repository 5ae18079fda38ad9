//! Counters: the attributes of the expression [`Counter`].
//!
//! ```text
//! NFTA_COUNTER_BYTES     be64
//! NFTA_COUNTER_PACKETS   be64
//! ```

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::expr::Counter;
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add counter inet t cnt { packets 3 bytes 4; comment "c"; }`.
    #[test]
    fn sent_and_listed() {
        let data = "1c000480 0c000100 00000000 00000004 0c000200 00000000 00000003";
        assert_data(Counter::new(3, 4), data, "[ counter pkts 3 bytes 4 ]");
        let object = assert_listed(
            Counter::new(3, 4),
            "
                01000002 06000100 74000000 08000200 636e7400 08000300 00000001 0c000600
                00000000 00000002 08000500 00000000 1c000400 0c000100 00000000 00000004
                0c000200 00000000 00000003 08000800 00026300
            ",
            "table t name cnt use 0 [ counter pkts 3 bytes 4 ]",
        );
        assert_eq!(
            object.with_comment("d").unwrap().userdata.as_deref(),
            Some(&b"\0\x02d\0"[..])
        );
    }
}
