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
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;

    #[test]
    fn built() {
        let data = Secmark::new("system_u:object_r:ssh_server_packet_t:s0");
        assert_built("secmark", "a context", &ObjectData::from(data));
    }
}
