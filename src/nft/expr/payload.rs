//! `payload`: reads or writes bytes of the packet.
//!
//! All attributes are be32. A read has `NFTA_PAYLOAD_DREG` and no checksum, a write
//! `NFTA_PAYLOAD_SREG`. A register holds the bytes in the packet's order.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{
    NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_CSUM_FLAGS, NFTA_PAYLOAD_CSUM_OFFSET, NFTA_PAYLOAD_CSUM_TYPE,
    NFTA_PAYLOAD_DREG, NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_OFFSET, NFTA_PAYLOAD_SREG,
};

use super::{Register, expression};
use crate::nft::declare::{flags, values};

values! {
    /// The base of the offset (`enum nft_payload_bases`).
    pub struct PayloadBase: u32 {
        /// Link layer header.
        LINK = sys::NFT_PAYLOAD_LL_HEADER => "link",
        /// Network header.
        NETWORK = sys::NFT_PAYLOAD_NETWORK_HEADER => "network",
        /// Transport header.
        TRANSPORT = sys::NFT_PAYLOAD_TRANSPORT_HEADER => "transport",
        /// The data after the transport header.
        INNER = sys::NFT_PAYLOAD_INNER_HEADER => "inner",
        /// Tunnel header.
        TUNNEL = sys::NFT_PAYLOAD_TUN_HEADER => "tunnel",
    }
}

values! {
    /// The checksum to update after a write (`enum nft_payload_csum_types`).
    pub struct ChecksumType: u32 {
        /// None.
        NONE = sys::NFT_PAYLOAD_CSUM_NONE => "none",
        /// The internet checksum.
        INET = sys::NFT_PAYLOAD_CSUM_INET => "inet",
        /// CRC-32c of SCTP.
        SCTP = sys::NFT_PAYLOAD_CSUM_SCTP => "sctp",
    }
}

flags! {
    /// Flags of a write (`enum nft_payload_csum_flags`).
    pub struct ChecksumFlags: u32 {
        /// The bytes are part of the pseudo header of the layer-4 checksum.
        const L4_PSEUDOHDR = sys::NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
    }
}

expression! {
    "payload"
    /// Reads bytes of the packet into a register (`dreg`), or writes them from one (`sreg`)
    /// (`enum nft_payload_attributes`).
    pub struct Payload viewed as PayloadRef {
        /// Source register of a write.
        NFTA_PAYLOAD_SREG => sreg: Register,
        /// Destination register of a read.
        NFTA_PAYLOAD_DREG => dreg: Register,
        /// Base of the offset.
        NFTA_PAYLOAD_BASE => base: PayloadBase,
        /// Offset in bytes.
        NFTA_PAYLOAD_OFFSET => offset: u32,
        /// Length in bytes.
        NFTA_PAYLOAD_LEN => len: u32,
        /// Checksum to update after a write.
        NFTA_PAYLOAD_CSUM_TYPE => checksum_type: ChecksumType,
        /// Offset of that checksum from the same base.
        NFTA_PAYLOAD_CSUM_OFFSET => checksum_offset: u32,
        /// Flags of the checksum.
        NFTA_PAYLOAD_CSUM_FLAGS => checksum_flags: ChecksumFlags,
    }
}

impl Payload {
    /// Reads `len` bytes at `offset` into a register.
    #[must_use]
    pub fn load(base: PayloadBase, offset: u32, len: u32, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            base: Some(base),
            offset: Some(offset),
            len: Some(len),
            ..Self::default()
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (offset, len) = (
            self.offset.unwrap_or_default(),
            self.len.unwrap_or_default(),
        );
        let base = self.base.unwrap_or_default().name().unwrap_or("unknown");
        match self.sreg {
            // As in libnftnl: register 0, the verdict register, is not a source.
            None | Some(Register::VERDICT) => {
                let dreg = self.dreg.unwrap_or_default().0;
                write!(
                    f,
                    "[ payload load {len}b @ {base} header + {offset} => reg {dreg} ]"
                )
            }
            Some(sreg) => write!(
                f,
                "[ payload write reg {} => {len}b @ {base} header + {offset} \
                 csum_type {} csum_off {} csum_flags {:#x} ]",
                sreg.0,
                self.checksum_type.unwrap_or_default().0,
                self.checksum_offset.unwrap_or_default(),
                self.checksum_flags.unwrap_or_default().bits(),
            ),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "tcp dport 443",
            Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1),
        );
        assert_built(
            "ether saddr 02:00:00:00:00:01",
            Payload::load(PayloadBase::LINK, 6, 6, Register::R1),
        );
    }
}
