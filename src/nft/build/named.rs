//! Named values and flags: protocols, types and codes, states.

use crate::nft::declare::{flags, values};

values! {
    /// A protocol above IP (`IPPROTO_*`, `linux/in.h`).
    pub struct Protocol: u8 {
        /// ICMP.
        ICMP = libc::IPPROTO_ICMP as u8 => "icmp",
        /// IGMP.
        IGMP = libc::IPPROTO_IGMP as u8 => "igmp",
        /// IPv4 in IP.
        IPIP = libc::IPPROTO_IPIP as u8 => "ipencap",
        /// TCP.
        TCP = libc::IPPROTO_TCP as u8 => "tcp",
        /// UDP.
        UDP = libc::IPPROTO_UDP as u8 => "udp",
        /// DCCP.
        DCCP = libc::IPPROTO_DCCP as u8 => "dccp",
        /// IPv6 in IP.
        IPV6 = libc::IPPROTO_IPV6 as u8 => "ipv6",
        /// GRE.
        GRE = libc::IPPROTO_GRE as u8 => "gre",
        /// ESP of IPsec.
        ESP = libc::IPPROTO_ESP as u8 => "esp",
        /// AH of IPsec.
        AH = libc::IPPROTO_AH as u8 => "ah",
        /// ICMPv6.
        ICMPV6 = libc::IPPROTO_ICMPV6 as u8 => "ipv6-icmp",
        /// SCTP.
        SCTP = libc::IPPROTO_SCTP as u8 => "sctp",
        /// UDP-Lite.
        UDPLITE = libc::IPPROTO_UDPLITE as u8 => "udplite",
    }
}

values! {
    /// The protocol carried by an Ethernet frame (`ETH_P_*`, `linux/if_ether.h`).
    pub struct EtherType: u16 {
        /// IPv4.
        IP = libc::ETH_P_IP as u16 => "ip",
        /// ARP.
        ARP = libc::ETH_P_ARP as u16 => "arp",
        /// A VLAN tag.
        VLAN = libc::ETH_P_8021Q as u16 => "vlan",
        /// IPv6.
        IP6 = libc::ETH_P_IPV6 as u16 => "ip6",
    }
}

values! {
    /// The type of an ICMP message (`ICMP_*`, `linux/icmp.h`).
    pub struct IcmpType: u8 {
        /// A reply to an echo request.
        ECHO_REPLY = 0 => "echo-reply",
        /// The destination cannot be reached.
        DESTINATION_UNREACHABLE = 3 => "destination-unreachable",
        /// A request to slow down.
        SOURCE_QUENCH = 4 => "source-quench",
        /// A better route exists.
        REDIRECT = 5 => "redirect",
        /// An echo request (ping).
        ECHO_REQUEST = 8 => "echo-request",
        /// The advertisement of a router.
        ROUTER_ADVERTISEMENT = 9 => "router-advertisement",
        /// A request for router advertisements.
        ROUTER_SOLICITATION = 10 => "router-solicitation",
        /// The packet's time to live expired.
        TIME_EXCEEDED = 11 => "time-exceeded",
        /// A header is invalid.
        PARAMETER_PROBLEM = 12 => "parameter-problem",
        /// A request for a timestamp.
        TIMESTAMP_REQUEST = 13 => "timestamp-request",
        /// A reply to a timestamp request.
        TIMESTAMP_REPLY = 14 => "timestamp-reply",
    }
}

values! {
    /// The type of an ICMPv6 message (`ICMPV6_*`, `linux/icmpv6.h`).
    pub struct Icmpv6Type: u8 {
        /// The destination cannot be reached.
        DESTINATION_UNREACHABLE = 1 => "destination-unreachable",
        /// The packet exceeds the MTU of the path.
        PACKET_TOO_BIG = 2 => "packet-too-big",
        /// The packet's hop limit expired.
        TIME_EXCEEDED = 3 => "time-exceeded",
        /// A header is invalid.
        PARAMETER_PROBLEM = 4 => "parameter-problem",
        /// An echo request (ping).
        ECHO_REQUEST = 128 => "echo-request",
        /// A reply to an echo request.
        ECHO_REPLY = 129 => "echo-reply",
        /// A query for multicast listeners.
        MLD_LISTENER_QUERY = 130 => "mld-listener-query",
        /// A report of a multicast listener.
        MLD_LISTENER_REPORT = 131 => "mld-listener-report",
        /// A listener left a multicast group.
        MLD_LISTENER_DONE = 132 => "mld-listener-done",
        /// A request for router advertisements.
        ND_ROUTER_SOLICIT = 133 => "nd-router-solicit",
        /// The advertisement of a router.
        ND_ROUTER_ADVERT = 134 => "nd-router-advert",
        /// A request for the link-layer address of a neighbor.
        ND_NEIGHBOR_SOLICIT = 135 => "nd-neighbor-solicit",
        /// The advertisement of a neighbor's link-layer address.
        ND_NEIGHBOR_ADVERT = 136 => "nd-neighbor-advert",
        /// A better route exists.
        ND_REDIRECT = 137 => "nd-redirect",
        /// A report of a multicast listener (version 2).
        MLD2_LISTENER_REPORT = 143 => "mld2-listener-report",
    }
}

values! {
    /// The code of an ICMP message of type destination unreachable (`ICMP_*`, `linux/icmp.h`).
    pub struct IcmpCode: u8 {
        /// No route to the network.
        NET_UNREACHABLE = 0 => "net-unreachable",
        /// The host does not answer.
        HOST_UNREACHABLE = 1 => "host-unreachable",
        /// The protocol is not supported by the host.
        PROT_UNREACHABLE = 2 => "prot-unreachable",
        /// No process listens on the port.
        PORT_UNREACHABLE = 3 => "port-unreachable",
        /// The packet exceeds the MTU of the path and must not be fragmented.
        FRAG_NEEDED = 4 => "frag-needed",
        /// The network is prohibited.
        NET_PROHIBITED = 9 => "net-prohibited",
        /// The host is prohibited.
        HOST_PROHIBITED = 10 => "host-prohibited",
        /// Prohibited by the administrator.
        ADMIN_PROHIBITED = 13 => "admin-prohibited",
    }
}

values! {
    /// The code of an ICMPv6 message of type destination unreachable (`ICMPV6_*`,
    /// `linux/icmpv6.h`).
    pub struct Icmpv6Code: u8 {
        /// No route.
        NO_ROUTE = 0 => "no-route",
        /// Prohibited by the administrator.
        ADMIN_PROHIBITED = 1 => "admin-prohibited",
        /// The host does not answer.
        ADDR_UNREACHABLE = 3 => "addr-unreachable",
        /// No process listens on the port.
        PORT_UNREACHABLE = 4 => "port-unreachable",
        /// The source address is rejected by policy.
        POLICY_FAIL = 5 => "policy-fail",
        /// The route is rejected.
        REJECT_ROUTE = 6 => "reject-route",
    }
}

values! {
    /// The kind of destination of a packet at the link layer (`PACKET_*`, `linux/if_packet.h`).
    pub struct PacketType: u8 {
        /// This machine.
        HOST = libc::PACKET_HOST => "host",
        /// All machines.
        BROADCAST = libc::PACKET_BROADCAST => "broadcast",
        /// A multicast group.
        MULTICAST = libc::PACKET_MULTICAST => "multicast",
        /// Another machine.
        OTHER = libc::PACKET_OTHERHOST => "other",
    }
}

values! {
    /// The type of an address according to this machine's routes (`RTN_*`, `linux/rtnetlink.h`).
    pub struct AddressType: u32 {
        /// It is reachable.
        UNICAST = libc::RTN_UNICAST as u32 => "unicast",
        /// It belongs to this machine.
        LOCAL = libc::RTN_LOCAL as u32 => "local",
        /// It is a broadcast address.
        BROADCAST = libc::RTN_BROADCAST as u32 => "broadcast",
        /// It is an anycast address.
        ANYCAST = libc::RTN_ANYCAST as u32 => "anycast",
        /// It is a multicast address.
        MULTICAST = libc::RTN_MULTICAST as u32 => "multicast",
        /// Packets to it are dropped.
        BLACKHOLE = libc::RTN_BLACKHOLE as u32 => "blackhole",
        /// It is unreachable.
        UNREACHABLE = libc::RTN_UNREACHABLE as u32 => "unreachable",
        /// It is prohibited.
        PROHIBIT = libc::RTN_PROHIBIT as u32 => "prohibit",
    }
}

flags! {
    /// Flags of a TCP header.
    pub struct TcpFlags: u8 {
        /// The last segment.
        const FIN = 0x01,
        /// The first segment.
        const SYN = 0x02,
        /// The connection is reset.
        const RST = 0x04,
        /// Data to be delivered to the application immediately.
        const PSH = 0x08,
        /// The acknowledgement number is valid.
        const ACK = 0x10,
        /// The urgent pointer is valid.
        const URG = 0x20,
        /// Congestion was noticed (ECE).
        const ECN = 0x40,
        /// The congestion window was reduced.
        const CWR = 0x80,
    }
}

flags! {
    /// State of a connection as a bit (`NF_CT_STATE_*`, `linux/netfilter/nf_conntrack_common.h`).
    pub struct CtState: u32 {
        /// The packet belongs to no connection and starts none.
        const INVALID = 0x01,
        /// Packets were seen in both directions.
        const ESTABLISHED = 0x02,
        /// The connection was started by another one, or the packet is an error message about
        /// one.
        const RELATED = 0x04,
        /// The first packet.
        const NEW = 0x08,
        /// The packet is exempt from tracking.
        const UNTRACKED = 0x40,
    }
}

flags! {
    /// Status of a connection (`enum ip_conntrack_status`,
    /// `linux/netfilter/nf_conntrack_common.h`).
    pub struct CtStatus: u32 {
        /// It was expected by a helper.
        const EXPECTED = 0x001,
        /// There was a reply.
        const SEEN_REPLY = 0x002,
        /// The entry is not evicted early when the table is full.
        const ASSURED = 0x004,
        /// Its first packet has left.
        const CONFIRMED = 0x008,
        /// Its source is translated.
        const SNAT = 0x010,
        /// Its destination is translated.
        const DNAT = 0x020,
        /// It is being removed.
        const DYING = 0x200,
    }
}
