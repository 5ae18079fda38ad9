//! Address families.

use chainwright_sys::netfilter::{
    NFPROTO_ARP, NFPROTO_BRIDGE, NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_NETDEV,
    NFPROTO_UNSPEC,
};

use super::declare::values;

values! {
    /// The address family of a table and of all that is in it: `nfgen_family`, `NFPROTO_*`
    /// (`linux/netfilter.h`).
    ///
    /// It is not [`xt::Family`](crate::xt::Family) or [`legacy::Family`](crate::legacy::Family), because nf_tables has
    /// families that x_tables does not have, and a newer kernel may send others; either becomes this by `From`, and
    /// this one of them by `TryFrom`.
    pub struct Family: u8 {
        /// No family in particular: in a request for a listing, all of them.
        UNSPEC = NFPROTO_UNSPEC => "all",
        /// IPv4 and IPv6 together.
        INET = NFPROTO_INET => "inet",
        /// IPv4.
        IP = NFPROTO_IPV4 => "ip",
        /// ARP.
        ARP = NFPROTO_ARP => "arp",
        /// Packets of a device before and after all else.
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
