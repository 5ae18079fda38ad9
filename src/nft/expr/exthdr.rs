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
        /// Stores only whether the header or option is present, as one byte: 0 or 1.
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

    /// Checks whether the header, option or chunk is present.
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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "tcp option timestamp tsval 5",
            Exthdr::load(ExthdrOp::TCPOPT, 8, 2, 4, Register::R1),
        );
        assert_built(
            "ip option ra value 0",
            Exthdr::load(ExthdrOp::IPV4, 148, 2, 2, Register::R1),
        );
        assert_built(
            "exthdr frag missing",
            Exthdr::present(ExthdrOp::IPV6, 44, Register::R1),
        );
        assert_built(
            "sctp chunk data exists",
            Exthdr::present(ExthdrOp::SCTP, 0, Register::R1),
        );
        assert_built(
            "tcp option maxseg size set 1400",
            Exthdr::set_tcp_option(2, 2, 2, Register::R1),
        );
        assert_built("reset tcp option fastopen", Exthdr::reset_tcp_option(34));
    }
}
