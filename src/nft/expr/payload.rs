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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (5, "NFTA_PAYLOAD_SREG", Wire::Be32),
            (1, "NFTA_PAYLOAD_DREG", Wire::Be32),
            (2, "NFTA_PAYLOAD_BASE", Wire::Be32),
            (3, "NFTA_PAYLOAD_OFFSET", Wire::Be32),
            (4, "NFTA_PAYLOAD_LEN", Wire::Be32),
            (6, "NFTA_PAYLOAD_CSUM_TYPE", Wire::Be32),
            (7, "NFTA_PAYLOAD_CSUM_OFFSET", Wire::Be32),
            (8, "NFTA_PAYLOAD_CSUM_FLAGS", Wire::Be32),
        ];
        assert_layout::<Payload>(Payload::ATTRIBUTES, &layout);
    }

    /// The expression of nft 1.0.6 for `ip saddr set 10.0.0.1`.
    fn source_address() -> Payload {
        Payload {
            sreg: Some(Register::R1),
            dreg: None,
            base: Some(PayloadBase::NETWORK),
            offset: Some(12),
            len: Some(4),
            checksum_type: Some(ChecksumType::INET),
            checksum_offset: Some(10),
            checksum_flags: Some(ChecksumFlags::L4_PSEUDOHDR),
            ..Default::default()
        }
    }

    /// nft 1.0.6: `add rule ip t c ip saddr set 10.0.0.1`; and as the kernel lists it.
    #[test]
    fn a_write_with_its_checksums() {
        assert_element(
            Decoded::Payload,
            source_address(),
            "
                4c000180                    ; NFTA_LIST_ELEM
                0c000100 7061796c 6f616400  ;   NFTA_EXPR_NAME: payload
                3c000280                    ;   NFTA_EXPR_DATA
                08000500 00000001           ;     NFTA_PAYLOAD_SREG
                08000200 00000001           ;     NFTA_PAYLOAD_BASE
                08000300 0000000c           ;     NFTA_PAYLOAD_OFFSET
                08000400 00000004           ;     NFTA_PAYLOAD_LEN
                08000600 00000001           ;     NFTA_PAYLOAD_CSUM_TYPE
                08000700 0000000a           ;     NFTA_PAYLOAD_CSUM_OFFSET
                08000800 00000001           ;     NFTA_PAYLOAD_CSUM_FLAGS
            ",
        );
        assert_listed(
            Decoded::Payload,
            source_address(),
            "
                4c000100 0c000100 7061796c 6f616400 3c000200 08000500 00000001 08000200
                00000001 08000300 0000000c 08000400 00000004 08000600 00000001 08000700
                0000000a 08000800 00000001
            ",
        );
    }

    /// nft 1.0.6: `tcp dport set 81`, `sctp dport set 81`.
    #[test]
    fn other_writes() {
        let port = Payload {
            base: Some(PayloadBase::TRANSPORT),
            offset: Some(2),
            len: Some(2),
            checksum_offset: Some(16),
            checksum_flags: None,
            ..source_address()
        };
        assert_attributes(
            Decoded::Payload,
            port.clone(),
            "
                08000500 00000001 08000200 00000002 08000300 00000002 08000400 00000002
                08000600 00000001 08000700 00000010
            ",
        );
        assert_attributes(
            Decoded::Payload,
            Payload {
                checksum_type: Some(ChecksumType::SCTP),
                checksum_offset: Some(8),
                ..port
            },
            "
                08000500 00000001 08000200 00000002 08000300 00000002 08000400 00000002
                08000600 00000002 08000700 00000008
            ",
        );
    }

    /// nft 1.0.6: `tcp dport 443`, `ip saddr 10.0.0.0/12`, `ether saddr 02:00:00:00:00:01`,
    /// `@ih,0,32 0x11223344`; iptables-nft 1.8.9: `-p tcp --syn`.
    #[test]
    fn reads() {
        for (base, offset, len, sent) in [
            (
                PayloadBase::TRANSPORT,
                2,
                2,
                "08000100 00000001 08000200 00000002 08000300 00000002 08000400 00000002",
            ),
            (
                PayloadBase::NETWORK,
                12,
                4,
                "08000100 00000001 08000200 00000001 08000300 0000000c 08000400 00000004",
            ),
            (
                PayloadBase::LINK,
                6,
                6,
                "08000100 00000001 08000200 00000000 08000300 00000006 08000400 00000006",
            ),
            (
                PayloadBase::INNER,
                0,
                4,
                "08000100 00000001 08000200 00000003 08000300 00000000 08000400 00000004",
            ),
            (
                PayloadBase::TRANSPORT,
                13,
                1,
                "08000100 00000001 08000200 00000002 08000300 0000000d 08000400 00000001",
            ),
        ] {
            let load = Payload::load(base, offset, len, Register::R1);
            assert_attributes(Decoded::Payload, load, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t c tcp dport 443 …`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Payload,
            Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1),
            "
                34000100 0c000100 7061796c 6f616400 24000200 08000100 00000001 08000200
                00000002 08000300 00000002 08000400 00000002
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `ip saddr`,
    /// `tcp dport`, `@ll,0,16`, `@ih,0,8`, `ip saddr set`, `ether saddr set`, `sctp sport set`. The
    /// name of the tunnel header is from newer versions: this one fails at the expression that
    /// contains such a payload. The rest as its libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let load = |base, offset, len| Payload::load(base, offset, len, Register::R1);
        let write = |base, offset, len, [kind, at, flags]: [u32; 3]| Payload {
            sreg: Some(Register::R1),
            dreg: None,
            checksum_type: Some(ChecksumType(kind)),
            checksum_offset: Some(at),
            checksum_flags: Some(ChecksumFlags::from_bits_retain(flags)),
            ..load(base, offset, len)
        };
        for (payload, line) in [
            (
                load(PayloadBase::NETWORK, 12, 4),
                "[ payload load 4b @ network header + 12 => reg 1 ]",
            ),
            (
                load(PayloadBase::TRANSPORT, 2, 2),
                "[ payload load 2b @ transport header + 2 => reg 1 ]",
            ),
            (
                load(PayloadBase::LINK, 0, 2),
                "[ payload load 2b @ link header + 0 => reg 1 ]",
            ),
            (
                load(PayloadBase::INNER, 0, 1),
                "[ payload load 1b @ inner header + 0 => reg 1 ]",
            ),
            (
                load(PayloadBase::TUNNEL, 0, 1),
                "[ payload load 1b @ tunnel header + 0 => reg 1 ]",
            ),
            (
                load(PayloadBase(5), u32::MAX, 1),
                "[ payload load 1b @ unknown header + 4294967295 => reg 1 ]",
            ),
            (
                source_address(),
                "[ payload write reg 1 => 4b @ network header + 12 csum_type 1 csum_off 10 \
                 csum_flags 0x1 ]",
            ),
            (
                write(PayloadBase::LINK, 6, 6, [0; 3]),
                "[ payload write reg 1 => 6b @ link header + 6 csum_type 0 csum_off 0 \
                 csum_flags 0x0 ]",
            ),
            (
                write(PayloadBase::TRANSPORT, 0, 2, [2, 8, 0]),
                "[ payload write reg 1 => 2b @ transport header + 0 csum_type 2 csum_off 8 \
                 csum_flags 0x0 ]",
            ),
            (
                Payload {
                    sreg: Some(Register::VERDICT),
                    ..Payload::default()
                },
                "[ payload load 0b @ link header + 0 => reg 0 ]",
            ),
            (
                Payload::default(),
                "[ payload load 0b @ link header + 0 => reg 0 ]",
            ),
        ] {
            assert_eq!(payload.to_string(), line);
        }
    }
}
