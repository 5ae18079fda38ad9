//! Counters: the attributes of the expression [`Counter`].
//!
//! ```text
//! NFTA_COUNTER_BYTES     be64
//! NFTA_COUNTER_PACKETS   be64
//! ```

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::captured::objects::assert_built;
    use crate::nft::captured::objects::bytes_of;
    use crate::nft::expr::Counter;
    use crate::nft::{ObjectData, StatefulObjectRef};

    #[test]
    fn built() {
        let data = Counter::new(3, 4);
        assert_built("counter", "a counter", &ObjectData::from(data));
    }

    #[test]
    fn a_comment_replaces_the_listed_one() {
        let listed = bytes_of("counter", "a counter, listed");
        let object = StatefulObjectRef::of_payload(&listed).unwrap().to_builder();
        assert_eq!(
            object.with_comment("d").unwrap().userdata.as_deref(),
            Some(&b"\0\x02d\0"[..])
        );
    }
}
