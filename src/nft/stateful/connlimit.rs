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
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;
    use crate::nft::expr::{Connlimit, ConnlimitFlags};

    #[test]
    fn built() {
        let data = Connlimit {
            count: Some(10),
            flags: Some(ConnlimitFlags::INV),
            ..Connlimit::default()
        };
        assert_built("connlimit", "ten connections", &ObjectData::from(data));
    }
}
