//! Data types of the keys of sets and the data of maps.

use chainwright_sys::nf_tables::{NFT_DATA_VALUE, NFT_DATA_VERDICT};

use super::declare::values;
use super::userdata;

values! {
    /// Data type of a set's keys or a map's data.
    ///
    /// The kernel distinguishes only values and verdicts (`enum nft_data_types`); all other numbers
    /// are assigned by `nft` and merely stored by the kernel. The number of a concatenation has six
    /// bits per field, see [`concatenation`](Self::concatenation). The numbers are those of nft
    /// 1.0.6.
    pub struct DataType: u32 {
        /// A value without a specific type.
        VALUE = NFT_DATA_VALUE => "value",
        /// A verdict; only as the data of a map.
        VERDICT = NFT_DATA_VERDICT => "verdict",
        /// `NFPROTO_*`, 1 byte.
        NF_PROTO = 2 => "nf_proto",
        /// A number whose length and byte order depend on the set.
        INTEGER = 4 => "integer",
        /// Text.
        STRING = 5 => "string",
        /// An IPv4 address, 4 bytes in network order.
        IPV4_ADDR = 7 => "ipv4_addr",
        /// An IPv6 address, 16 bytes in network order.
        IPV6_ADDR = 8 => "ipv6_addr",
        /// An Ethernet address, 6 bytes.
        ETHER_ADDR = 9 => "ether_addr",
        /// An Ethernet type, 2 bytes in network order.
        ETHER_TYPE = 10 => "ether_type",
        /// An ARP operation, 2 bytes in network order.
        ARP_OP = 11 => "arp_op",
        /// `IPPROTO_*`, 1 byte.
        INET_PROTO = 12 => "inet_proto",
        /// A port, 2 bytes in network order.
        INET_SERVICE = 13 => "inet_service",
        /// An ICMP type, 1 byte.
        ICMP_TYPE = 14 => "icmp_type",
        /// TCP flags, 1 byte.
        TCP_FLAG = 15 => "tcp_flag",
        /// A DCCP packet type, 1 byte.
        DCCP_PKTTYPE = 16 => "dccp_pkttype",
        /// A mobility header type, 1 byte.
        MH_TYPE = 17 => "mh_type",
        /// A time in milliseconds, 4 bytes in host order.
        TIME = 18 => "time",
        /// A mark, 4 bytes in host order.
        MARK = 19 => "mark",
        /// An interface index, 4 bytes in host order.
        IFACE_INDEX = 20 => "iface_index",
        /// `ARPHRD_*`, 2 bytes in host order.
        IFACE_TYPE = 21 => "iface_type",
        /// A routing realm, 4 bytes in host order.
        REALM = 22 => "realm",
        /// A traffic control class, 4 bytes in host order.
        CLASSID = 23 => "classid",
        /// A user id, 4 bytes in host order.
        UID = 24 => "uid",
        /// A group id, 4 bytes in host order.
        GID = 25 => "gid",
        /// Connection states, 4 bytes in host order.
        CT_STATE = 26 => "ct_state",
        /// A connection direction, 1 byte.
        CT_DIR = 27 => "ct_dir",
        /// Connection status bits, 4 bytes in host order.
        CT_STATUS = 28 => "ct_status",
        /// An ICMPv6 type, 1 byte.
        ICMPV6_TYPE = 29 => "icmpv6_type",
        /// `PACKET_*` of `linux/if_packet.h`, 1 byte.
        PKT_TYPE = 31 => "pkt_type",
        /// An ICMP code, 1 byte.
        ICMP_CODE = 32 => "icmp_code",
        /// An ICMPv6 code, 1 byte.
        ICMPV6_CODE = 33 => "icmpv6_code",
        /// `NFT_REJECT_ICMPX_*`, 1 byte.
        ICMPX_CODE = 34 => "icmpx_code",
        /// An interface group, 4 bytes in host order.
        DEVGROUP = 35 => "devgroup",
        /// Differentiated services, 1 byte.
        DSCP = 36 => "dscp",
        /// Explicit congestion notification, 1 byte.
        ECN = 37 => "ecn",
        /// `RTN_*`, 4 bytes in host order.
        FIB_ADDRTYPE = 38 => "fib_addrtype",
        /// 0 or 1, 1 byte.
        BOOLEAN = 39 => "boolean",
        /// An interface name, 16 bytes padded with NULs.
        IFNAME = 41 => "ifname",
        /// An IGMP type, 1 byte.
        IGMP_TYPE = 42 => "igmp_type",
        /// A control group, 8 bytes in host order.
        CGROUPSV2 = 46 => "cgroupsv2",
    }
}

/// Bits per field in the type of a concatenation.
const FIELD_TYPE_BITS: u32 = 6;

impl DataType {
    /// Returns the type of a concatenation of these fields, as `nft` numbers it; the number holds
    /// only the last five.
    #[must_use]
    pub fn concatenation(fields: impl IntoIterator<Item = Self>) -> Self {
        let number = fields
            .into_iter()
            .fold(0, |number: u32, field| number << FIELD_TYPE_BITS | field.0);
        Self(number)
    }

    /// Returns the byte order of values of this type, as in user data for `nft`; `None` if the type
    /// has none or it is unknown.
    pub(super) const fn byte_order(self) -> Option<u32> {
        match self {
            Self::IPV4_ADDR
            | Self::IPV6_ADDR
            | Self::ETHER_ADDR
            | Self::ETHER_TYPE
            | Self::ARP_OP
            | Self::INET_SERVICE
            | Self::ICMP_TYPE
            | Self::TCP_FLAG
            | Self::MH_TYPE
            | Self::ICMPV6_TYPE
            | Self::ICMP_CODE
            | Self::ICMPV6_CODE
            | Self::ICMPX_CODE
            | Self::DSCP
            | Self::ECN
            | Self::IGMP_TYPE => Some(userdata::BIG_ENDIAN),
            Self::TIME
            | Self::MARK
            | Self::IFACE_INDEX
            | Self::IFACE_TYPE
            | Self::REALM
            | Self::CLASSID
            | Self::UID
            | Self::GID
            | Self::CT_STATE
            | Self::CT_STATUS
            | Self::PKT_TYPE
            | Self::DEVGROUP
            | Self::FIB_ADDRTYPE
            | Self::IFNAME
            | Self::CGROUPSV2 => Some(userdata::HOST_ENDIAN),
            _ => None,
        }
    }
}
