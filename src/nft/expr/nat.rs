//! `nat`: changes a connection's source or destination.
//!
//! All attributes are be32. If the last address or port is absent, the kernel uses the first one,
//! and lists both.

use chainwright_sys::nf_nat as range;
use chainwright_sys::nf_tables::{
    NFT_NAT_DNAT, NFT_NAT_SNAT, NFTA_NAT_FAMILY, NFTA_NAT_FLAGS, NFTA_NAT_REG_ADDR_MAX,
    NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_TYPE,
};

use super::{Register, expression};
use crate::nft::declare::{flags, values};
use crate::nft::rule::family_name;

values! {
    /// The end of the connection that changes (`enum nft_nat_types`).
    pub struct NatType: u32 {
        /// The source.
        SNAT = NFT_NAT_SNAT => "snat",
        /// The destination.
        DNAT = NFT_NAT_DNAT => "dnat",
    }
}

flags! {
    /// Flags of a range (`NF_NAT_RANGE_*`, `linux/netfilter/nf_nat.h`).
    pub struct NatRangeFlags: u32 {
        /// Addresses are given: set by the kernel if there is a register for them.
        const MAP_IPS = range::NF_NAT_RANGE_MAP_IPS,
        /// Ports are given: set by the kernel if there is a register for them.
        const PROTO_SPECIFIED = range::NF_NAT_RANGE_PROTO_SPECIFIED,
        /// Selects ports by a hash.
        const PROTO_RANDOM = range::NF_NAT_RANGE_PROTO_RANDOM,
        /// Maps a client always to the same address.
        const PERSISTENT = range::NF_NAT_RANGE_PERSISTENT,
        /// Selects ports at random.
        const PROTO_RANDOM_FULLY = range::NF_NAT_RANGE_PROTO_RANDOM_FULLY,
        /// Preserves the offset of ports from a base port.
        const PROTO_OFFSET = range::NF_NAT_RANGE_PROTO_OFFSET,
        /// Replaces the prefix of an address and keeps the rest.
        const NETMAP = range::NF_NAT_RANGE_NETMAP,
    }
}

expression! {
    "nat"
    /// Changes a connection's source or destination (`enum nft_nat_attributes`); addresses and
    /// ports are in registers, in network order.
    pub struct Nat viewed as NatRef {
        /// End of the connection that changes.
        NFTA_NAT_TYPE => nat_type: NatType,
        /// Family of the addresses, `NFPROTO_IPV4` or `NFPROTO_IPV6`.
        NFTA_NAT_FAMILY => family: u32,
        /// First address.
        NFTA_NAT_REG_ADDR_MIN => addr_min: Register,
        /// Last address.
        NFTA_NAT_REG_ADDR_MAX => addr_max: Register,
        /// First port.
        NFTA_NAT_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_NAT_REG_PROTO_MAX => proto_max: Register,
        /// Flags.
        NFTA_NAT_FLAGS => flags: NatRangeFlags,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Nat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ nat {} {} ",
            self.nat_type
                .unwrap_or_default()
                .name()
                .unwrap_or("unknown"),
            family_name(self.family.unwrap_or_default()),
        )?;
        print_range(f, "addr", [self.addr_min, self.addr_max])?;
        print_ports(f, [self.proto_min, self.proto_max], self.flags)
    }
}

/// Prints the registers of a range, as far as they exist.
fn print_range(
    f: &mut std::fmt::Formatter<'_>,
    what: &str,
    ends: [Option<Register>; 2],
) -> std::fmt::Result {
    for (end, register) in ["min", "max"].iter().zip(ends) {
        if let Some(register) = register {
            write!(f, "{what}_{end} reg {} ", register.0)?;
        }
    }
    Ok(())
}

/// Prints ports and flags, the end of the line of each NAT expression.
pub(super) fn print_ports(
    f: &mut std::fmt::Formatter<'_>,
    ports: [Option<Register>; 2],
    flags: Option<NatRangeFlags>,
) -> std::fmt::Result {
    print_range(f, "proto", ports)?;
    if let Some(flags) = flags {
        write!(f, "flags {:#x} ", flags.bits())?;
    }
    f.write_str("]")
}
