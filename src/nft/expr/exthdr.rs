//! `exthdr`: reads an IPv6 extension header, an IPv4 or TCP option or an SCTP chunk; changes or
//! removes a TCP option.
//!
//! ```text
//! NFTA_EXTHDR_DREG     be32
//! NFTA_EXTHDR_SREG     be32
//! NFTA_EXTHDR_TYPE     u8
//! NFTA_EXTHDR_OFFSET   be32
//! NFTA_EXTHDR_LEN      be32
//! NFTA_EXTHDR_OP       be32
//! NFTA_EXTHDR_FLAGS    be32
//! ```
//!
//! It reads with `dreg`, writes with `sreg`, and removes with neither.

use chainwright_sys::nf_tables::{
    NFT_EXTHDR_F_PRESENT, NFT_EXTHDR_OP_DCCP, NFT_EXTHDR_OP_IPV4, NFT_EXTHDR_OP_IPV6,
    NFT_EXTHDR_OP_SCTP, NFT_EXTHDR_OP_TCPOPT, NFTA_EXTHDR_DREG, NFTA_EXTHDR_FLAGS, NFTA_EXTHDR_LEN,
    NFTA_EXTHDR_OFFSET, NFTA_EXTHDR_OP, NFTA_EXTHDR_SREG, NFTA_EXTHDR_TYPE,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::{flags, values};

values! {
    /// The kind of header or option (`enum nft_exthdr_op`).
    pub struct ExthdrOp: u32 {
        /// An IPv6 extension header; its type is the protocol number (43 for routing, 44 for
        /// fragment, …).
        IPV6 = NFT_EXTHDR_OP_IPV6 => "ipv6",
        /// A TCP option; its type is the option's kind (2 for the segment size, …).
        TCPOPT = NFT_EXTHDR_OP_TCPOPT => "tcpopt",
        /// An IPv4 option; its type is the option's first byte: 7, 131, 137 or 148.
        IPV4 = NFT_EXTHDR_OP_IPV4 => "ipv4",
        /// An SCTP chunk; its type is the chunk's.
        SCTP = NFT_EXTHDR_OP_SCTP => "sctp",
        /// A DCCP option, which supports only a check for presence; its type is the option's.
        DCCP = NFT_EXTHDR_OP_DCCP => "dccp",
    }
}

flags! {
    /// Flags of a read (`enum nft_exthdr_flags`).
    pub struct ExthdrFlags: u32 {
        /// Only whether it is present: stores one byte, 0 or 1.
        const PRESENT = NFT_EXTHDR_F_PRESENT,
    }
}

expression! {
    "exthdr"
    /// Reads an extension header, an option or a chunk, or changes or removes a TCP option
    /// (`enum nft_exthdr_attributes`).
    pub struct Exthdr viewed as ExthdrRef,
    listed as [dreg, sreg, header_type, offset, len, flags, op] {
        /// Destination register of a read, in network order.
        NFTA_EXTHDR_DREG => dreg: Register,
        /// Source register of a write, in network order.
        NFTA_EXTHDR_SREG => sreg: Register,
        /// Type of the header, option or chunk; `op` determines the meaning of the number.
        NFTA_EXTHDR_TYPE => header_type: u8,
        /// Offset in the header in bytes, at most 255; for writes at least 2.
        NFTA_EXTHDR_OFFSET => offset: u32,
        /// Number of bytes, at most 255; for writes 2 or 4.
        NFTA_EXTHDR_LEN => len: u32,
        /// Kind of header; [`ExthdrOp::IPV6`] if absent.
        NFTA_EXTHDR_OP => op: ExthdrOp,
        /// Flags of a read. For other operations the kernel refuses flags, but lists some.
        NFTA_EXTHDR_FLAGS => flags: ExthdrFlags,
    }
}

impl Exthdr {
    /// Reads `len` bytes at an offset.
    #[must_use]
    pub const fn load(
        op: ExthdrOp,
        header_type: u8,
        offset: u32,
        len: u32,
        dreg: Register,
    ) -> Self {
        Self {
            dreg: Some(dreg),
            sreg: None,
            header_type: Some(header_type),
            offset: Some(offset),
            len: Some(len),
            op: Some(op),
            flags: Some(ExthdrFlags::empty()),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Checks whether it is present.
    #[must_use]
    pub const fn present(op: ExthdrOp, header_type: u8, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            sreg: None,
            header_type: Some(header_type),
            offset: Some(0),
            len: Some(1),
            op: Some(op),
            flags: Some(ExthdrFlags::PRESENT),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Writes `len` bytes at an offset of a TCP option, if the packet has it. The segment size
    /// (kind 2) is never increased.
    #[must_use]
    pub const fn set_tcp_option(kind: u8, offset: u32, len: u32, sreg: Register) -> Self {
        Self {
            dreg: None,
            sreg: Some(sreg),
            header_type: Some(kind),
            offset: Some(offset),
            len: Some(len),
            op: Some(ExthdrOp::TCPOPT),
            flags: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Overwrites a TCP option with `NOP`s, if the packet has it. Since Linux 5.18.
    #[must_use]
    pub const fn reset_tcp_option(kind: u8) -> Self {
        Self {
            dreg: None,
            sreg: None,
            header_type: Some(kind),
            offset: None,
            len: None,
            op: Some(ExthdrOp::TCPOPT),
            flags: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Converts a listed expression to the form that the kernel accepts. The kernel lists flags for
    /// writes, and flags, an offset and a length for removals, and refuses them with `EINVAL`: so a
    /// listed expression cannot be sent unchanged.
    #[must_use]
    pub fn into_request(mut self) -> Self {
        if self.dreg.is_none() {
            self.flags = None;
            if self.sreg.is_none() {
                self.offset = None;
                self.len = None;
            }
        }
        self
    }
}

/// Formats like `nft --debug=netlink`; missing values as 0.
impl std::fmt::Display for Exthdr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let op = self.op.unwrap_or_default();
        // libnftnl has no name for SCTP and DCCP.
        let name = match op {
            ExthdrOp::IPV6 => " ipv6",
            ExthdrOp::TCPOPT => " tcpopt",
            ExthdrOp::IPV4 => " ipv4",
            _ => "",
        };
        let header_type = self.header_type.unwrap_or_default();
        let offset = self.offset.unwrap_or_default();
        let len = self.len.unwrap_or_default();
        match (self.dreg, self.sreg) {
            (Some(Register(dreg)), _) => {
                let flags = self.flags.unwrap_or_default();
                let present = if flags.contains(ExthdrFlags::PRESENT) {
                    " present"
                } else {
                    ""
                };
                write!(
                    f,
                    "[ exthdr load{name} {len}b @ {header_type} + {offset}{present} => reg {dreg} ]"
                )
            }
            (None, Some(Register(sreg))) => write!(
                f,
                "[ exthdr write{name} reg {sreg} => {len}b @ {header_type} + {offset} ]"
            ),
            (None, None) if op == ExthdrOp::TCPOPT && len == 0 => {
                write!(f, "[ exthdr reset tcpopt {header_type} ]")
            }
            (None, None) => write!(
                f,
                "[ exthdr op {} len {len} type {header_type} offset {offset} ]",
                op.0
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
            (1, "NFTA_EXTHDR_DREG", Wire::Be32),
            (7, "NFTA_EXTHDR_SREG", Wire::Be32),
            (2, "NFTA_EXTHDR_TYPE", Wire::U8),
            (3, "NFTA_EXTHDR_OFFSET", Wire::Be32),
            (4, "NFTA_EXTHDR_LEN", Wire::Be32),
            (6, "NFTA_EXTHDR_OP", Wire::Be32),
            (5, "NFTA_EXTHDR_FLAGS", Wire::Be32),
        ];
        assert_layout::<Exthdr>(Exthdr::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip6 t c frag frag-off 5`.
    #[test]
    fn an_ipv6_header() {
        assert_element(
            Decoded::Exthdr,
            Exthdr {
                dreg: Some(Register::R1),
                header_type: Some(44),
                offset: Some(2),
                len: Some(2),
                op: Some(ExthdrOp::IPV6),
                flags: Some(ExthdrFlags::empty()),
                ..Default::default()
            },
            "
                44000180                    ; NFTA_LIST_ELEM
                0b000100 65787468 64720000  ;   NFTA_EXPR_NAME: exthdr
                34000280                    ;   NFTA_EXPR_DATA
                08000100 00000001           ;     NFTA_EXTHDR_DREG
                05000200 2c000000           ;     NFTA_EXTHDR_TYPE
                08000300 00000002           ;     NFTA_EXTHDR_OFFSET
                08000400 00000002           ;     NFTA_EXTHDR_LEN
                08000600 00000000           ;     NFTA_EXTHDR_OP
                08000500 00000000           ;     NFTA_EXTHDR_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `tcp option timestamp tsval 5`, `ip option ra value 0`, `sctp chunk data tsn 5`.
    #[test]
    fn options_and_chunks() {
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::load(ExthdrOp::TCPOPT, 8, 2, 4, Register::R1),
            "
                08000100 00000001 05000200 08000000 08000300 00000002 08000400 00000004
                08000600 00000001 08000500 00000000
            ",
        );
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::load(ExthdrOp::IPV4, 148, 2, 2, Register::R1),
            "
                08000100 00000001 05000200 94000000 08000300 00000002 08000400 00000002
                08000600 00000002 08000500 00000000
            ",
        );
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::load(ExthdrOp::SCTP, 0, 4, 4, Register::R1),
            "
                08000100 00000001 05000200 00000000 08000300 00000004 08000400 00000004
                08000600 00000003 08000500 00000000
            ",
        );
    }

    /// nft 1.0.6: `exthdr frag missing` and `sctp chunk data exists`. The last one is built from
    /// the header: nft 1.0.6 has no syntax for a DCCP option, and the kernel at hand refuses it.
    #[test]
    fn header_presence() {
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::present(ExthdrOp::IPV6, 44, Register::R1),
            "
                08000100 00000001 05000200 2c000000 08000300 00000000 08000400 00000001
                08000600 00000000 08000500 00000001
            ",
        );
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::present(ExthdrOp::SCTP, 0, Register::R1),
            "
                08000100 00000001 05000200 00000000 08000300 00000000 08000400 00000001
                08000600 00000003 08000500 00000001
            ",
        );
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::present(ExthdrOp::DCCP, 5, Register::R1),
            "
                08000100 00000001 05000200 05000000 08000300 00000000 08000400 00000001
                08000600 00000004 08000500 00000001
            ",
        );
    }

    /// nft 1.0.6: `tcp option maxseg size set 1400` and `reset tcp option fastopen`.
    #[test]
    fn changes() {
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::set_tcp_option(2, 2, 2, Register::R1),
            "
                08000700 00000001 05000200 02000000 08000300 00000002 08000400 00000002
                08000600 00000001
            ",
        );
        assert_attributes(
            Decoded::Exthdr,
            Exthdr::reset_tcp_option(34),
            "05000200 22000000 08000600 00000001",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip6 t c exthdr frag missing`,
    /// `add rule ip t c tcp option maxseg size set 1400` and `… reset tcp option fastopen`. Linux
    /// 6.18 refuses the latter two in the form in which it listed them.
    #[test]
    fn listed() {
        let present = Exthdr::present(ExthdrOp::IPV6, 44, Register::R1);
        assert_eq!(present.clone().into_request(), present);
        assert_listed(
            Decoded::Exthdr,
            present,
            "
                44000100 0b000100 65787468 64720000 34000200 08000100 00000001 05000200
                2c000000 08000300 00000000 08000400 00000001 08000500 00000001 08000600
                00000000
            ",
        );
        let set = Exthdr {
            flags: Some(ExthdrFlags::empty()),
            ..Exthdr::set_tcp_option(2, 2, 2, Register::R1)
        };
        assert_eq!(
            set.clone().into_request(),
            Exthdr::set_tcp_option(2, 2, 2, Register::R1)
        );
        assert_listed(
            Decoded::Exthdr,
            set,
            "
                44000100 0b000100 65787468 64720000 34000200 08000700 00000001 05000200
                02000000 08000300 00000002 08000400 00000002 08000500 00000000 08000600
                00000001
            ",
        );
        let reset = Exthdr {
            offset: Some(0),
            len: Some(0),
            flags: Some(ExthdrFlags::empty()),
            ..Exthdr::reset_tcp_option(34)
        };
        assert_eq!(reset.clone().into_request(), Exthdr::reset_tcp_option(34));
        assert_listed(
            Decoded::Exthdr,
            reset,
            "
                3c000100 0b000100 65787468 64720000 2c000200 05000200 22000000 08000300
                00000000 08000400 00000000 08000500 00000000 08000600 00000001
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them.
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (
                Exthdr::load(ExthdrOp::IPV6, 44, 2, 2, Register::R1),
                "[ exthdr load ipv6 2b @ 44 + 2 => reg 1 ]",
            ),
            (
                Exthdr::load(ExthdrOp::TCPOPT, 8, 2, 4, Register::R1),
                "[ exthdr load tcpopt 4b @ 8 + 2 => reg 1 ]",
            ),
            (
                Exthdr::load(ExthdrOp::IPV4, 148, 2, 2, Register::R1),
                "[ exthdr load ipv4 2b @ 148 + 2 => reg 1 ]",
            ),
            (
                Exthdr::load(ExthdrOp::SCTP, 0, 4, 4, Register::R1),
                "[ exthdr load 4b @ 0 + 4 => reg 1 ]",
            ),
            (
                Exthdr::present(ExthdrOp::IPV6, 44, Register::R1),
                "[ exthdr load ipv6 1b @ 44 + 0 present => reg 1 ]",
            ),
            (
                Exthdr::present(ExthdrOp::SCTP, 0, Register::R1),
                "[ exthdr load 1b @ 0 + 0 present => reg 1 ]",
            ),
            (
                Exthdr::set_tcp_option(2, 2, 2, Register::R1),
                "[ exthdr write tcpopt reg 1 => 2b @ 2 + 2 ]",
            ),
            (Exthdr::reset_tcp_option(34), "[ exthdr reset tcpopt 34 ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }

    /// Attributes that the kernel does not list, as libnftnl 1.2.4 prints them.
    #[test]
    fn bytecode_of_unlisted_attributes() {
        let load = Exthdr::load(ExthdrOp::IPV6, 3, 1, 2, Register::R1);
        for (expression, line) in [
            (
                Exthdr {
                    op: None,
                    sreg: Some(Register::R2),
                    flags: Some(ExthdrFlags::from_bits_retain(2)),
                    ..load.clone()
                },
                "[ exthdr load ipv6 2b @ 3 + 1 => reg 1 ]",
            ),
            (
                Exthdr {
                    op: Some(ExthdrOp(5)),
                    flags: Some(ExthdrFlags::from_bits_retain(3)),
                    ..load.clone()
                },
                "[ exthdr load 2b @ 3 + 1 present => reg 1 ]",
            ),
            (
                Exthdr {
                    op: Some(ExthdrOp::DCCP),
                    dreg: None,
                    sreg: Some(Register::R1),
                    ..load.clone()
                },
                "[ exthdr write reg 1 => 2b @ 3 + 1 ]",
            ),
            (
                Exthdr {
                    op: Some(ExthdrOp::TCPOPT),
                    dreg: None,
                    ..load.clone()
                },
                "[ exthdr op 1 len 2 type 3 offset 1 ]",
            ),
            (
                Exthdr {
                    op: Some(ExthdrOp::TCPOPT),
                    offset: Some(1),
                    ..Exthdr::default()
                },
                "[ exthdr reset tcpopt 0 ]",
            ),
            (Exthdr::default(), "[ exthdr op 0 len 0 type 0 offset 0 ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
