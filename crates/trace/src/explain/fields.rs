//! Names of the fields that rules compare and set.

/// Fields in nft's language, and their names in English.
const FIELDS: [(&str, &str); 107] = [
    ("ip saddr", "the IPv4 source address"),
    ("ip daddr", "the IPv4 destination address"),
    ("ip6 saddr", "the IPv6 source address"),
    ("ip6 daddr", "the IPv6 destination address"),
    ("ip protocol", "the IPv4 protocol"),
    ("ip version", "the IP version in the header"),
    ("ip hdrlength", "the length of the IPv4 header"),
    ("ip ttl", "the IPv4 time to live"),
    ("ip dscp", "the IPv4 DSCP"),
    ("ip ecn", "the IPv4 ECN"),
    ("ip length", "the IPv4 length"),
    ("ip id", "the IPv4 identification"),
    ("ip frag-off", "the IPv4 fragment field"),
    ("ip checksum", "the IPv4 checksum"),
    ("ip6 dscp", "the IPv6 DSCP"),
    ("ip6 ecn", "the IPv6 ECN"),
    ("ip6 flowlabel", "the IPv6 flow label"),
    ("ip6 length", "the IPv6 payload length"),
    ("ip6 nexthdr", "the next header of the IPv6 header"),
    ("ip6 hoplimit", "the IPv6 hop limit"),
    ("meta l4proto", "the protocol"),
    ("meta nfproto", "the IP version"),
    ("meta protocol", "the protocol of the frame"),
    ("meta mark", "the packet mark"),
    ("meta length", "the packet length"),
    ("meta priority", "the packet priority"),
    ("meta pkttype", "the packet type"),
    ("meta skuid", "the user of the socket"),
    ("meta skgid", "the group of the socket"),
    ("meta cgroup", "the control group number of the socket"),
    ("meta rtclassid", "the routing realm"),
    ("meta cpu", "the CPU number"),
    ("meta day", "the day of the week"),
    ("meta hour", "the time of day"),
    ("meta time", "the time"),
    ("meta nftrace", "the trace flag"),
    ("meta iiftype", "the type of the input interface"),
    ("meta oiftype", "the type of the output interface"),
    ("meta iifkind", "the kind of the input interface"),
    ("meta oifkind", "the kind of the output interface"),
    ("meta ibrname", "the input bridge"),
    ("meta obrname", "the output bridge"),
    ("meta random", "a random number"),
    ("iifname", "the input interface"),
    ("oifname", "the output interface"),
    ("iif", "the input interface (by index)"),
    ("oif", "the output interface (by index)"),
    ("iifgroup", "the group of the input interface"),
    ("oifgroup", "the group of the output interface"),
    ("tcp sport", "the TCP source port"),
    ("tcp dport", "the TCP destination port"),
    ("tcp flags", "the TCP flags"),
    ("tcp sequence", "the TCP sequence number"),
    ("tcp window", "the TCP window"),
    ("tcp option maxseg size", "the TCP maximum segment size"),
    ("udp sport", "the UDP source port"),
    ("udp dport", "the UDP destination port"),
    ("udp length", "the UDP length"),
    ("sctp sport", "the SCTP source port"),
    ("sctp dport", "the SCTP destination port"),
    ("dccp sport", "the DCCP source port"),
    ("dccp dport", "the DCCP destination port"),
    ("udplite sport", "the UDP-Lite source port"),
    ("udplite dport", "the UDP-Lite destination port"),
    ("th sport", "the source port"),
    ("th dport", "the destination port"),
    ("icmp type", "the ICMP type"),
    ("icmp code", "the ICMP code"),
    ("icmpv6 type", "the ICMPv6 type"),
    ("icmpv6 code", "the ICMPv6 code"),
    ("esp spi", "the ESP security parameter index"),
    ("ah spi", "the AH security parameter index"),
    ("ether saddr", "the Ethernet source address"),
    ("ether daddr", "the Ethernet destination address"),
    ("ether type", "the Ethernet type"),
    ("vlan id", "the VLAN"),
    ("vlan type", "the type in the VLAN header"),
    ("arp operation", "the ARP operation"),
    ("arp htype", "the ARP hardware type"),
    ("arp ptype", "the ARP protocol type"),
    ("arp saddr ip", "the ARP sender's IPv4 address"),
    ("arp daddr ip", "the ARP target's IPv4 address"),
    ("arp saddr ether", "the ARP sender's Ethernet address"),
    ("arp daddr ether", "the ARP target's Ethernet address"),
    ("ct state", "the state of the connection"),
    ("ct status", "the status of the connection"),
    ("ct mark", "the connection mark"),
    ("ct direction", "the direction within the connection"),
    ("ct zone", "the connection tracking zone"),
    ("ct helper", "the connection's helper"),
    ("ct label", "the connection's labels"),
    (
        "ct original ip saddr",
        "the original IPv4 source address of the connection",
    ),
    (
        "ct original ip daddr",
        "the original IPv4 destination address of the connection",
    ),
    (
        "ct original ip6 saddr",
        "the original IPv6 source address of the connection",
    ),
    (
        "ct original ip6 daddr",
        "the original IPv6 destination address of the connection",
    ),
    (
        "ct original proto-src",
        "the original source port of the connection",
    ),
    (
        "ct original proto-dst",
        "the original destination port of the connection",
    ),
    (
        "ct original protocol",
        "the original protocol of the connection",
    ),
    (
        "ct reply ip saddr",
        "the IPv4 source address of the connection's replies",
    ),
    (
        "ct reply ip daddr",
        "the IPv4 destination address of the connection's replies",
    ),
    ("fib saddr type", "the type of the source address"),
    ("fib daddr type", "the type of the destination address"),
    (
        "fib saddr . iif type",
        "the type of the source address at the input interface",
    ),
    (
        "fib daddr . iif type",
        "the type of the destination address at the input interface",
    ),
    (
        "fib saddr . iif check",
        "the route back to the source address through the input interface",
    ),
    ("fib daddr check", "the route to the destination address"),
    ("socket mark", "the mark of the socket"),
];

/// Returns the English name of a field in nft's language.
pub(super) fn name(field: &str) -> Option<&'static str> {
    let found = FIELDS.iter().find(|(nft, _)| *nft == field);
    found.map(|(_, english)| *english)
}

/// Column of a chain's table to which conditions on a field belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Source,
    Destination,
    Protocol,
    Interface,
    Other,
}

impl Column {
    /// Returns the column of a field, and what the cell adds to the value.
    pub(super) fn of(field: &str) -> (Self, &'static str) {
        match field {
            "ip saddr" | "ip6 saddr" => (Self::Source, ""),
            "ip daddr" | "ip6 daddr" => (Self::Destination, ""),
            "ip protocol" | "meta l4proto" => (Self::Protocol, ""),
            "tcp sport" => (Self::Protocol, "tcp from "),
            "tcp dport" => (Self::Protocol, "tcp "),
            "udp sport" => (Self::Protocol, "udp from "),
            "udp dport" => (Self::Protocol, "udp "),
            "sctp sport" => (Self::Protocol, "sctp from "),
            "sctp dport" => (Self::Protocol, "sctp "),
            "th sport" => (Self::Protocol, "from port "),
            "th dport" => (Self::Protocol, "port "),
            "icmp type" => (Self::Protocol, "icmp "),
            "icmpv6 type" => (Self::Protocol, "icmpv6 "),
            "iifname" | "iif" => (Self::Interface, "in "),
            "oifname" | "oif" => (Self::Interface, "out "),
            _ => (Self::Other, ""),
        }
    }
}

#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIELDS.iter().copied()
}
