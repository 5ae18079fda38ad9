//! `nat`: changes a connection's source or destination.

use chainwright_sys::nf_nat as range;
use chainwright_sys::nf_tables::{
    NFT_NAT_DNAT, NFT_NAT_SNAT, NFTA_NAT_FAMILY, NFTA_NAT_FLAGS, NFTA_NAT_REG_ADDR_MAX,
    NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_TYPE,
};

use super::{Register, expression};
use crate::nft::declare::{flags, values};

values! {
    /// Which end changes (`enum nft_nat_types`).
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
        /// Addresses are given; set by the kernel.
        const MAP_IPS = range::NF_NAT_RANGE_MAP_IPS,
        /// Ports are given; set by the kernel.
        const PROTO_SPECIFIED = range::NF_NAT_RANGE_PROTO_SPECIFIED,
        /// Ports are chosen by a hash.
        const PROTO_RANDOM = range::NF_NAT_RANGE_PROTO_RANDOM,
        /// A client always gets the same address.
        const PERSISTENT = range::NF_NAT_RANGE_PERSISTENT,
        /// Ports are chosen at random.
        const PROTO_RANDOM_FULLY = range::NF_NAT_RANGE_PROTO_RANDOM_FULLY,
        /// Ports keep their distance from a base.
        const PROTO_OFFSET = range::NF_NAT_RANGE_PROTO_OFFSET,
        /// The prefix of an address is changed and the rest kept.
        const NETMAP = range::NF_NAT_RANGE_NETMAP,
    }
}

expression! {
    "nat"
    /// Changes a connection's source or destination (`enum nft_nat_attributes`); addresses and
    /// ports are in registers, in network order.
    pub struct Nat {
        /// Which end changes.
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
