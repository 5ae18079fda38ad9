//! Address families.

use chainwright_sys::netfilter::{
    NFPROTO_ARP, NFPROTO_BRIDGE, NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_NETDEV,
    NFPROTO_UNSPEC,
};

use super::declare::values;

values! {
    /// The address family of a table and its contents: `nfgen_family`, `NFPROTO_*` (`linux/netfilter.h`).
    ///
    /// This is not `xt::Family` or `legacy::Family`, because nf_tables
    /// has families that x_tables lacks, and a newer kernel may send others. `From` converts those types to this one,
    /// `TryFrom` this one to those.
    pub struct Family: u8 {
        /// No specific family; in a listing request, all families.
        UNSPEC = NFPROTO_UNSPEC => "all",
        /// IPv4 and IPv6 together.
        INET = NFPROTO_INET => "inet",
        /// IPv4.
        IP = NFPROTO_IPV4 => "ip",
        /// ARP.
        ARP = NFPROTO_ARP => "arp",
        /// Packets of a device, before and after all other processing.
        NETDEV = NFPROTO_NETDEV => "netdev",
        /// Packets that cross a bridge.
        BRIDGE = NFPROTO_BRIDGE => "bridge",
        /// IPv6.
        IP6 = NFPROTO_IPV6 => "ip6",
    }
}

impl Family {
    /// The families that have tables: all but [`UNSPEC`](Self::UNSPEC).
    pub const WITH_TABLES: [Self; 6] = [
        Self::IP,
        Self::IP6,
        Self::INET,
        Self::ARP,
        Self::BRIDGE,
        Self::NETDEV,
    ];
}
