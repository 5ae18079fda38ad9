//! Values that have names, and flags: protocols, types and codes, states.

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
    /// What an Ethernet frame carries (`ETH_P_*`, `linux/if_ether.h`).
    pub struct EtherType: u16 {
        /// IPv4.
        IP = libc::ETH_P_IP as u16 => "ip",
        /// ARP.
        ARP = libc::ETH_P_ARP as u16 => "arp",
        /// A VLAN's tag.
        VLAN = libc::ETH_P_8021Q as u16 => "vlan",
        /// IPv6.
        IP6 = libc::ETH_P_IPV6 as u16 => "ip6",
    }
}

values! {
    /// A type of ICMP (`ICMP_*`, `linux/icmp.h`).
    pub struct IcmpType: u8 {
        /// Answer to an echo request.
        ECHO_REPLY = 0 => "echo-reply",
        /// The destination cannot be reached.
        DESTINATION_UNREACHABLE = 3 => "destination-unreachable",
        /// Send less.
        SOURCE_QUENCH = 4 => "source-quench",
        /// There is a better route.
        REDIRECT = 5 => "redirect",
        /// A ping.
        ECHO_REQUEST = 8 => "echo-request",
        /// A router is here.
        ROUTER_ADVERTISEMENT = 9 => "router-advertisement",
        /// Which routers are there?
        ROUTER_SOLICITATION = 10 => "router-solicitation",
        /// The packet was on its way for too long.
        TIME_EXCEEDED = 11 => "time-exceeded",
        /// A header is wrong.
        PARAMETER_PROBLEM = 12 => "parameter-problem",
        /// What time is it?
        TIMESTAMP_REQUEST = 13 => "timestamp-request",
        /// It is that late.
        TIMESTAMP_REPLY = 14 => "timestamp-reply",
    }
}

values! {
    /// A type of ICMPv6 (`ICMPV6_*`, `linux/icmpv6.h`).
    pub struct Icmpv6Type: u8 {
        /// The destination cannot be reached.
        DESTINATION_UNREACHABLE = 1 => "destination-unreachable",
        /// The packet does not fit the path.
        PACKET_TOO_BIG = 2 => "packet-too-big",
        /// The packet was on its way for too long.
        TIME_EXCEEDED = 3 => "time-exceeded",
        /// A header is wrong.
        PARAMETER_PROBLEM = 4 => "parameter-problem",
        /// A ping.
        ECHO_REQUEST = 128 => "echo-request",
        /// Answer to an echo request.
        ECHO_REPLY = 129 => "echo-reply",
        /// Which groups are listened to?
        MLD_LISTENER_QUERY = 130 => "mld-listener-query",
        /// This group is listened to.
        MLD_LISTENER_REPORT = 131 => "mld-listener-report",
        /// This group is listened to no more.
        MLD_LISTENER_DONE = 132 => "mld-listener-done",
        /// Which routers are there?
        ND_ROUTER_SOLICIT = 133 => "nd-router-solicit",
        /// A router is here.
        ND_ROUTER_ADVERT = 134 => "nd-router-advert",
        /// Who has this address?
        ND_NEIGHBOR_SOLICIT = 135 => "nd-neighbor-solicit",
        /// I have this address.
        ND_NEIGHBOR_ADVERT = 136 => "nd-neighbor-advert",
        /// There is a better route.
        ND_REDIRECT = 137 => "nd-redirect",
        /// This group is listened to (version 2).
        MLD2_LISTENER_REPORT = 143 => "mld2-listener-report",
    }
}

values! {
    /// Code of an ICMP message that the destination cannot be reached (`ICMP_*`,
    /// `linux/icmp.h`).
    pub struct IcmpCode: u8 {
        /// No route to the network.
        NET_UNREACHABLE = 0 => "net-unreachable",
        /// The host does not answer.
        HOST_UNREACHABLE = 1 => "host-unreachable",
        /// The protocol is not spoken there.
        PROT_UNREACHABLE = 2 => "prot-unreachable",
        /// Nobody listens on the port.
        PORT_UNREACHABLE = 3 => "port-unreachable",
        /// The packet does not fit the path and must not be cut.
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
    /// Code of an ICMPv6 message that the destination cannot be reached (`ICMPV6_*`,
    /// `linux/icmpv6.h`).
    pub struct Icmpv6Code: u8 {
        /// No route.
        NO_ROUTE = 0 => "no-route",
        /// Prohibited by the administrator.
        ADMIN_PROHIBITED = 1 => "admin-prohibited",
        /// The host does not answer.
        ADDR_UNREACHABLE = 3 => "addr-unreachable",
        /// Nobody listens on the port.
        PORT_UNREACHABLE = 4 => "port-unreachable",
        /// The source address is refused.
        POLICY_FAIL = 5 => "policy-fail",
        /// The route is refused.
        REJECT_ROUTE = 6 => "reject-route",
    }
}

values! {
    /// Whom a packet was sent to, as its device tells (`PACKET_*`, `linux/if_packet.h`).
    pub struct PacketType: u8 {
        /// This machine.
        HOST = libc::PACKET_HOST => "host",
        /// All.
        BROADCAST = libc::PACKET_BROADCAST => "broadcast",
        /// A group.
        MULTICAST = libc::PACKET_MULTICAST => "multicast",
        /// Another machine.
        OTHER = libc::PACKET_OTHERHOST => "other",
    }
}

values! {
    /// What an address is to this machine, by its routes (`RTN_*`, `linux/rtnetlink.h`).
    pub struct AddressType: u32 {
        /// There is a way to it.
        UNICAST = libc::RTN_UNICAST as u32 => "unicast",
        /// It is one of this machine.
        LOCAL = libc::RTN_LOCAL as u32 => "local",
        /// It is that of all in a network.
        BROADCAST = libc::RTN_BROADCAST as u32 => "broadcast",
        /// It is that of any of several machines.
        ANYCAST = libc::RTN_ANYCAST as u32 => "anycast",
        /// It is a group's.
        MULTICAST = libc::RTN_MULTICAST as u32 => "multicast",
        /// What is sent to it is dropped.
        BLACKHOLE = libc::RTN_BLACKHOLE as u32 => "blackhole",
        /// There is no way to it.
        UNREACHABLE = libc::RTN_UNREACHABLE as u32 => "unreachable",
        /// The way to it is prohibited.
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
        /// The connection is broken off.
        const RST = 0x04,
        /// Data to be handed on at once.
        const PSH = 0x08,
        /// The acknowledgement number counts.
        const ACK = 0x10,
        /// The urgent pointer counts.
        const URG = 0x20,
        /// Congestion was noticed.
        const ECN = 0x40,
        /// The window was made smaller.
        const CWR = 0x80,
    }
}

flags! {
    /// State of a connection as a bit (`NF_CT_STATE_*`, `linux/netfilter/nf_conntrack_common.h`).
    pub struct CtState: u32 {
        /// The packet belongs to no connection and begins none.
        const INVALID = 0x01,
        /// Packets were seen in both directions.
        const ESTABLISHED = 0x02,
        /// A connection that another one began, or an error about one.
        const RELATED = 0x04,
        /// The first packet.
        const NEW = 0x08,
        /// The packet is exempt from tracking.
        const UNTRACKED = 0x40,
    }
}

flags! {
    /// What became of a connection (`enum ip_conntrack_status`,
    /// `linux/netfilter/nf_conntrack_common.h`).
    pub struct CtStatus: u32 {
        /// It was expected by a helper.
        const EXPECTED = 0x001,
        /// There was a reply.
        const SEEN_REPLY = 0x002,
        /// It is not the first to go if there is no room.
        const ASSURED = 0x004,
        /// Its first packet has left.
        const CONFIRMED = 0x008,
        /// Its source is translated.
        const SNAT = 0x010,
        /// Its destination is translated.
        const DNAT = 0x020,
        /// It is being taken away.
        const DYING = 0x200,
    }
}
