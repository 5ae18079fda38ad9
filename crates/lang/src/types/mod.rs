//! Data types of nft's language: names, and how values are written.

mod symbols;

use crate::dialect::{Form, NftVersion};
use chainwright::nft::DataType;
use chainwright::nft::build::ByteOrder;

pub(super) use symbols::{NEWER_STATUS, Symbol, symbols};

/// Types of nft that no set created by this crate has.
pub(super) const BITMASK: DataType = DataType(3);
pub(super) const LL_ADDR: DataType = DataType(6);
pub(super) const CT_LABEL: DataType = DataType(30);
pub(super) const CT_EVENT: DataType = DataType(40);
pub(super) const DATE: DataType = DataType(43);
pub(super) const HOUR: DataType = DataType(44);
pub(super) const DAY: DataType = DataType(45);

/// Raw packet bytes, written in hexadecimal. Not one of nft's types.
pub(super) const RAW: DataType = DataType(u32::MAX);

/// MPTCP option subtype. nft 1.1 has names for the values; older versions list it as a number. Not a type of a set
/// created by this crate.
pub(super) const MPTCP_SUBTYPE: DataType = DataType(u32::MAX - 1);

/// Address in an IP option, which nft before 1.1 lists as a number. Also not a type of nft's sets.
pub(super) const OPTION_ADDRESS: DataType = DataType(u32::MAX - 2);

/// Kind of a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Integers, some with names.
    Integer,
    /// Named bits.
    Bitmask,
    /// Characters.
    String,
}

/// Description of a type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) base: Base,
    /// Length of a value in bits; 0 if it varies.
    pub(super) bits: u32,
    /// Byte order of a value in a register.
    pub(super) order: ByteOrder,
}

/// Describes a type; `None` if nft 1.0.6 does not know it.
pub(super) const fn info(data_type: DataType) -> Option<Type> {
    use Base::{Bitmask, Integer, String};
    use ByteOrder::{Host, Network};
    let (name, base, bits, order) = match data_type {
        DataType::VERDICT => ("verdict", Integer, 0, Host),
        DataType::NF_PROTO => ("nf_proto", Integer, 8, Host),
        BITMASK => ("bitmask", Bitmask, 0, Host),
        DataType::INTEGER => ("integer", Integer, 0, Network),
        DataType::STRING => ("string", String, 0, Host),
        LL_ADDR => ("ll_addr", Integer, 0, Network),
        DataType::IPV4_ADDR => ("ipv4_addr", Integer, 32, Network),
        DataType::IPV6_ADDR => ("ipv6_addr", Integer, 128, Network),
        DataType::ETHER_ADDR => ("ether_addr", Integer, 48, Network),
        DataType::ETHER_TYPE => ("ether_type", Integer, 16, Network),
        DataType::ARP_OP => ("arp_op", Integer, 16, Network),
        DataType::INET_PROTO => ("inet_proto", Integer, 8, Network),
        DataType::INET_SERVICE => ("inet_service", Integer, 16, Network),
        DataType::ICMP_TYPE => ("icmp_type", Integer, 8, Network),
        DataType::TCP_FLAG => ("tcp_flag", Bitmask, 8, Network),
        DataType::DCCP_PKTTYPE => ("dccp_pkttype", Integer, 4, Network),
        DataType::MH_TYPE => ("mh_type", Integer, 8, Network),
        DataType::TIME => ("time", Integer, 64, Host),
        DataType::MARK => ("mark", Integer, 32, Host),
        DataType::IFACE_INDEX => ("iface_index", Integer, 32, Host),
        DataType::IFACE_TYPE => ("iface_type", Integer, 16, Host),
        DataType::REALM => ("realm", Integer, 32, Host),
        DataType::CLASSID => ("classid", Integer, 32, Host),
        DataType::UID => ("uid", Integer, 32, Host),
        DataType::GID => ("gid", Integer, 32, Host),
        DataType::CT_STATE => ("ct_state", Bitmask, 32, Host),
        DataType::CT_DIR => ("ct_dir", Integer, 8, Host),
        DataType::CT_STATUS => ("ct_status", Bitmask, 32, Host),
        DataType::ICMPV6_TYPE => ("icmpv6_type", Integer, 8, Network),
        CT_LABEL => ("ct_label", Bitmask, 128, Host),
        DataType::PKT_TYPE => ("pkt_type", Integer, 8, Host),
        DataType::ICMP_CODE => ("icmp_code", Integer, 8, Network),
        DataType::ICMPV6_CODE => ("icmpv6_code", Integer, 8, Network),
        DataType::ICMPX_CODE => ("icmpx_code", Integer, 8, Network),
        DataType::DEVGROUP => ("devgroup", Integer, 32, Host),
        DataType::DSCP => ("dscp", Integer, 6, Network),
        DataType::ECN => ("ecn", Integer, 2, Network),
        DataType::FIB_ADDRTYPE => ("fib_addrtype", Integer, 32, Host),
        DataType::BOOLEAN => ("boolean", Integer, 1, Host),
        CT_EVENT => ("ct_event", Bitmask, 32, Host),
        DataType::IFNAME => ("ifname", String, 128, Host),
        DataType::IGMP_TYPE => ("igmp_type", Integer, 8, Network),
        DATE => ("time", Integer, 64, Host),
        HOUR => ("hour", Integer, 32, Host),
        DAY => ("day", Integer, 8, Host),
        DataType::CGROUPSV2 => ("cgroupsv2", Integer, 64, Host),
        _ => return None,
    };
    Some(Type {
        name,
        base,
        bits,
        order,
    })
}

/// Returns the byte order of a type's values in a register. Plain integers are mostly in host byte order.
pub(super) fn order(data_type: DataType) -> ByteOrder {
    match data_type {
        DataType::INTEGER | DataType::VALUE => ByteOrder::Host,
        _ => info(data_type).map_or(ByteOrder::Host, |info| info.order),
    }
}

/// Returns `true` if values of this type are named bits.
pub(super) fn is_bitmask(data_type: DataType) -> bool {
    // The anonymous bitmask type is a number.
    data_type != BITMASK && info(data_type).is_some_and(|info| info.base == Base::Bitmask)
}

/// Returns `true` if values of this type are strings.
pub(super) fn is_string(data_type: DataType) -> bool {
    info(data_type).is_some_and(|info| info.base == Base::String)
}

/// Returns `true` if prefixes of this type are written with a slash.
pub(super) fn has_prefixes(data_type: DataType, version: NftVersion) -> bool {
    match data_type {
        DataType::IPV4_ADDR | DataType::IPV6_ADDR | DataType::STRING | DataType::IFNAME => true,
        DataType::MARK => !version.has(Form::MarkMasks),
        _ => false,
    }
}
