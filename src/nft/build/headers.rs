//! Methods that match common fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::select::{ct, ether, icmp, icmpv6, ip, ip6, meta, sctp, tcp, th, udp};
use super::{
    AddressType, Build, CtState, CtStatus, EtherType, IcmpType, Icmpv6Type, Interface, Key,
    MacAddress, Match, PacketType, Protocol, Selector, TcpFlags,
};
use crate::nft::Family;
use crate::nft::expr::{Cmp, CtDirection, Fib, FibFlags, FibResult, Register};

macro_rules! matches {
    ($($(#[$meta:meta])* $method:ident: $selector:expr, $Type:ty;)*) => {
        impl Build<'_> {$(
            $(#[$meta])*
            pub fn $method<'m>(self, is: impl Into<Match<'m, $Type>>) -> Self {
                self.test(&Key::from($selector), is.into())
            }
        )*}
    };
}

matches! {
    /// Matches packets received on an interface with this name: `"eth0"`, or `"eth*"` for all names that begin
    /// with `eth`.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, not};
    /// use chainwright::nft::Family;
    ///
    /// Build::new(Family::INET, "filter", "forward").iifname("eth*").oifname(not("eth0")).accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    iifname: meta::IIFNAME, Interface<'m>;
    /// Matches packets sent out of an interface with this name.
    oifname: meta::OIFNAME, Interface<'m>;
    /// Matches packets received on the interface with this index.
    iif: meta::IIF, u32;
    /// Matches packets sent out of the interface with this index.
    oif: meta::OIF, u32;

    /// Matches the source address of an Ethernet frame: `ether saddr`.
    ether_saddr: ether::SADDR, MacAddress;
    /// Matches the destination address of an Ethernet frame: `ether daddr`.
    ether_daddr: ether::DADDR, MacAddress;
    /// Matches the protocol carried by an Ethernet frame: `ether type`.
    ether_type: ether::TYPE, EtherType;

    /// Matches the source address of an IPv4 packet: `ip saddr`.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use chainwright::nft::build::{Build, in_set, not};
    /// use chainwright::nft::Family;
    ///
    /// let address = |last| Ipv4Addr::new(10, 0, 0, last);
    /// let rule = || Build::new(Family::INET, "filter", "input");
    /// rule().ip_saddr(address(1)).accept()?; // ip saddr 10.0.0.1
    /// rule().ip_saddr((address(0), 24)).accept()?; // ip saddr 10.0.0.0/24
    /// rule().ip_saddr(address(1)..=address(9)).accept()?; // ip saddr 10.0.0.1-10.0.0.9
    /// rule().ip_saddr(not((address(0), 24))).accept()?; // ip saddr != 10.0.0.0/24
    /// rule().ip_saddr(in_set("friends")).accept()?; // ip saddr @friends
    /// rule().ip_saddr(not(in_set("friends"))).drop()?; // ip saddr != @friends
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ip_saddr: ip::SADDR, Ipv4Addr;
    /// Matches the destination address of an IPv4 packet: `ip daddr`.
    ip_daddr: ip::DADDR, Ipv4Addr;
    /// Matches the protocol carried by an IPv4 packet: `ip protocol`.
    ip_protocol: ip::PROTOCOL, Protocol;
    /// Matches the time to live of an IPv4 packet: `ip ttl`.
    ip_ttl: ip::TTL, u8;
    /// Matches the length of an IPv4 packet in bytes: `ip length`.
    ip_length: ip::LENGTH, u16;
    /// Matches the source address of an IPv6 packet: `ip6 saddr`.
    ip6_saddr: ip6::SADDR, Ipv6Addr;
    /// Matches the destination address of an IPv6 packet: `ip6 daddr`.
    ip6_daddr: ip6::DADDR, Ipv6Addr;
    /// Matches the type of the header after the first one: `ip6 nexthdr`. If the packet has extension headers, this is
    /// the type of an extension header; [`meta_l4proto`](Self::meta_l4proto) matches the protocol.
    ip6_nexthdr: ip6::NEXTHDR, Protocol;
    /// Matches the hop limit of an IPv6 packet: `ip6 hoplimit`.
    ip6_hoplimit: ip6::HOPLIMIT, u8;

    /// Matches the source port, for any transport protocol: `th sport`. The rule must already match a protocol that has
    /// ports, or a set of such protocols; otherwise it ends with
    /// [`BuildError::NoTransport`](super::BuildError::NoTransport), because packets of other protocols have other data
    /// there.
    th_sport: th::SPORT, u16;
    /// Matches the destination port, for any transport protocol: `th dport`. The rule must already match a protocol
    /// that has ports, as for [`th_sport`](Self::th_sport).
    th_dport: th::DPORT, u16;
    /// Matches the source port of a TCP packet: `tcp sport`.
    tcp_sport: tcp::SPORT, u16;
    /// Matches the destination port of a TCP packet: `tcp dport`.
    ///
    /// ```
    /// use chainwright::nft::build::{AnonymousSet, Build, at_least, not};
    /// use chainwright::nft::{Chain, Connection, Family, Table, Transaction};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::INET, "filter"))?;
    /// tx.add(&Chain::new(Family::INET, "filter", "input"))?;
    /// let rule = || Build::new(Family::INET, "filter", "input");
    /// tx.add(&rule().tcp_dport(22).accept()?)?; // tcp dport 22
    /// tx.add(&rule().tcp_dport(8000..=8080).accept()?)?; // tcp dport 8000-8080
    /// tx.add(&rule().tcp_dport(not(22)).accept()?)?; // tcp dport != 22
    /// tx.add(&rule().tcp_dport(at_least(1024)).accept()?)?; // tcp dport >= 1024
    ///
    /// let web = AnonymousSet::ports(Family::INET, "filter", 1, [80, 443]);
    /// web.add_to(&mut tx)?;
    /// tx.add(&rule().tcp_dport(&web).accept()?)?; // tcp dport { 80, 443 }
    /// Connection::open()?.commit(&tx)?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    tcp_dport: tcp::DPORT, u16;
    /// Matches the flags of a TCP packet: `tcp flags`.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, TcpFlags, masked};
    /// use chainwright::nft::Family;
    ///
    /// const SYN: TcpFlags = TcpFlags::SYN;
    /// let rule = || Build::new(Family::INET, "filter", "input");
    /// // tcp flags syn,ack: any one of the two
    /// rule().tcp_flags(SYN | TcpFlags::ACK).accept()?;
    /// // tcp flags syn / fin,syn,rst,ack: this one of the four and no other
    /// let four = TcpFlags::FIN | SYN | TcpFlags::RST | TcpFlags::ACK;
    /// rule().tcp_flags(masked(SYN, four)).accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    tcp_flags: tcp::FLAGS, TcpFlags;
    /// Matches the source port of a UDP packet: `udp sport`.
    udp_sport: udp::SPORT, u16;
    /// Matches the destination port of a UDP packet: `udp dport`.
    udp_dport: udp::DPORT, u16;
    /// Matches the source port of an SCTP packet: `sctp sport`.
    sctp_sport: sctp::SPORT, u16;
    /// Matches the destination port of an SCTP packet: `sctp dport`.
    sctp_dport: sctp::DPORT, u16;
    /// Matches the type of an ICMP message (IPv4): `icmp type`.
    icmp_type: icmp::TYPE, IcmpType;
    /// Matches the code of an ICMP message, whose meaning depends on the type: `icmp code`.
    icmp_code: icmp::CODE, u8;
    /// Matches the type of an ICMPv6 message: `icmpv6 type`.
    icmpv6_type: icmpv6::TYPE, Icmpv6Type;
    /// Matches the code of an ICMPv6 message, whose meaning depends on the type: `icmpv6 code`.
    icmpv6_code: icmpv6::CODE, u8;

    /// Matches the protocol above IP, after any extension headers: `meta l4proto`.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, Protocol};
    /// use chainwright::nft::Family;
    ///
    /// // meta l4proto udp th dport 53 accept
    /// Build::new(Family::INET, "filter", "input")
    ///     .meta_l4proto(Protocol::UDP)
    ///     .th_dport(53)
    ///     .accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    meta_l4proto: meta::L4PROTO, Protocol;
    /// Matches the version of IP, [`Family::IP`] or [`Family::IP6`], in a table of the family inet: `meta nfproto`.
    meta_nfproto: meta::NFPROTO, Family;
    /// Matches the protocol carried by the frame, for tables of the families bridge and netdev: `meta protocol`.
    meta_protocol: meta::PROTOCOL, EtherType;
    /// Matches the packet's mark: `meta mark`. Use [`masked`](super::masked) to compare some of its bits.
    meta_mark: meta::MARK, u32;
    /// Matches the kind of destination of a packet at the link layer: `meta pkttype`.
    meta_pkttype: meta::PKTTYPE, PacketType;
    /// Matches the user that owns the socket which sent the packet: `meta skuid`.
    meta_skuid: meta::SKUID, u32;
    /// Matches the group that owns the socket which sent the packet: `meta skgid`.
    meta_skgid: meta::SKGID, u32;

    /// Matches the state of the packet's connection: `ct state`.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, CtState, not};
    /// use chainwright::nft::Family;
    ///
    /// let rule = || Build::new(Family::INET, "filter", "input");
    /// // ct state established,related: any one of the two
    /// rule().ct_state(CtState::ESTABLISHED | CtState::RELATED).accept()?;
    /// // ct state ! new: any state but new
    /// rule().ct_state(not(CtState::NEW)).accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ct_state: ct::STATE, CtState;
    /// Matches the status of the connection: `ct status`. `ct_status(CtStatus::DNAT)` matches connections with a
    /// translated destination.
    ct_status: ct::STATUS, CtStatus;
    /// Matches the connection's mark: `ct mark`.
    ct_mark: ct::MARK, u32;
    /// Matches the direction of the packet in its connection: `ct direction`.
    ct_direction: ct::DIRECTION, CtDirection;
    /// Matches the initiator's IPv4 address: `ct original ip saddr`.
    ct_original_ip_saddr: ct::ORIGINAL_IP_SADDR, Ipv4Addr;
    /// Matches the IPv4 address that the initiator connected to, before translation: `ct original ip daddr`.
    ct_original_ip_daddr: ct::ORIGINAL_IP_DADDR, Ipv4Addr;
    /// Matches the IPv4 source address of replies: `ct reply ip saddr`.
    ct_reply_ip_saddr: ct::REPLY_IP_SADDR, Ipv4Addr;
    /// Matches the IPv4 destination address of replies: `ct reply ip daddr`.
    ct_reply_ip_daddr: ct::REPLY_IP_DADDR, Ipv4Addr;
    /// Matches the initiator's IPv6 address: `ct original ip6 saddr`.
    ct_original_ip6_saddr: ct::ORIGINAL_IP6_SADDR, Ipv6Addr;
    /// Matches the IPv6 address that the initiator connected to, before translation: `ct original ip6 daddr`.
    ct_original_ip6_daddr: ct::ORIGINAL_IP6_DADDR, Ipv6Addr;
    /// Matches the IPv6 source address of replies: `ct reply ip6 saddr`.
    ct_reply_ip6_saddr: ct::REPLY_IP6_SADDR, Ipv6Addr;
    /// Matches the IPv6 destination address of replies: `ct reply ip6 daddr`.
    ct_reply_ip6_daddr: ct::REPLY_IP6_DADDR, Ipv6Addr;
    /// Matches the type of the packet's source address for this machine: `fib saddr type`.
    fib_saddr_type: Selector::fib(FibFlags::SADDR, FibResult::ADDRTYPE), AddressType;
    /// Matches the type of the packet's destination address for this machine: `fib daddr type`.
    ///
    /// ```
    /// use chainwright::nft::build::{AddressType, Build};
    /// use chainwright::nft::Family;
    ///
    /// Build::new(Family::IP, "nat", "prerouting").fib_daddr_type(AddressType::LOCAL).jump("nodeports")?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    fib_daddr_type: Selector::fib(FibFlags::DADDR, FibResult::ADDRTYPE), AddressType;
}

impl Build<'_> {
    /// Matches if a route exists: `fib … oif exists`.
    pub fn fib_exists(self, of: FibFlags) -> Self {
        self.fib(of, true)
    }

    /// Matches if no route exists. `fib saddr . iif oif missing` matches packets received on an interface through
    /// which replies would not leave.
    ///
    /// ```
    /// use chainwright::nft::build::Build;
    /// use chainwright::nft::expr::FibFlags;
    /// use chainwright::nft::Family;
    ///
    /// Build::new(Family::INET, "filter", "prerouting")
    ///     .fib_missing(FibFlags::SADDR | FibFlags::IIF)
    ///     .drop()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn fib_missing(self, of: FibFlags) -> Self {
        self.fib(of, false)
    }

    fn fib(mut self, of: FibFlags, exists: bool) -> Self {
        let of = of | FibFlags::PRESENT;
        if !self.add_dependencies(&Selector::fib(of, FibResult::OIF)) {
            return self;
        }
        self.push(&Fib::new(of, FibResult::OIF, Register::R1));
        // The kernel stores one byte and clears the rest of the word; nft compares the whole word.
        self.push(&Cmp::eq(Register::R1, &[exists.into(), 0, 0, 0]));
        self
    }
}
