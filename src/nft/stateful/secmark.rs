//! Security contexts for marking packets.
//!
//! ```text
//! NFTA_SECMARK_CTX   string
//! ```

use std::fmt;

use chainwright_sys::nf_tables::NFTA_SECMARK_CTX;

use crate::nft::declare::attributes;
use crate::nft::name::Name;

attributes! {
    /// A security context (`enum nft_secmark_attributes`).
    pub struct Secmark<'a> {
        /// The context, at most 4,096 bytes.
        NFTA_SECMARK_CTX => context: Name<'a> [context],
    }
}

impl<'a> Secmark<'a> {
    /// Creates an object with this context.
    pub fn new(context: impl Into<Name<'a>>) -> Self {
        Self {
            context: Some(context.into()),
            ..Self::default()
        }
    }
}

impl fmt::Display for Secmark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = self.context.clone().unwrap_or_default();
        write!(f, "[ secmark context {context} ]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::stateful::tests::assert_data;

    /// nft 1.0.6: `add secmark inet t sm { "system_u:object_r:ssh_server_packet_t:s0" }`, which omits
    /// the NUL.
    #[test]
    fn sent() {
        let context = "system_u:object_r:ssh_server_packet_t:s0";
        assert_data(
            Secmark::new(context),
            "
                30000480 2c000100 73797374 656d5f75 3a6f626a 6563745f 723a7373 685f7365
                72766572 5f706163 6b65745f 743a7330
            ",
            &format!("[ secmark context {context} ]"),
        );
    }
}
