//! Matches of single fields: a method for each that is written every day.

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
    /// Goes on if the packet came in by an interface of this name: `"eth0"`, or `"eth*"` for all
    /// whose names begin so.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, not};
    /// use chainwright::nft::Family;
    ///
    /// Build::new(Family::INET, "filter", "forward").iifname("eth*").oifname(not("eth0")).accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    iifname: meta::IIFNAME, Interface<'m>;
    /// Goes on if the packet leaves by an interface of this name.
    oifname: meta::OIFNAME, Interface<'m>;
    /// Goes on if the packet came in by the interface with this number.
    iif: meta::IIF, u32;
    /// Goes on if the packet leaves by the interface with this number.
    oif: meta::OIF, u32;

    /// `ether saddr`
    ether_saddr: ether::SADDR, MacAddress;
    /// `ether daddr`
    ether_daddr: ether::DADDR, MacAddress;
    /// `ether type`
    ether_type: ether::TYPE, EtherType;

    /// `ip saddr`: an IPv4 packet's source.
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
    /// `ip daddr`: an IPv4 packet's destination.
    ip_daddr: ip::DADDR, Ipv4Addr;
    /// `ip protocol`: what an IPv4 packet carries.
    ip_protocol: ip::PROTOCOL, Protocol;
    /// `ip ttl`
    ip_ttl: ip::TTL, u8;
    /// `ip length`: of the packet in bytes.
    ip_length: ip::LENGTH, u16;
    /// `ip6 saddr`: an IPv6 packet's source.
    ip6_saddr: ip6::SADDR, Ipv6Addr;
    /// `ip6 daddr`: an IPv6 packet's destination.
    ip6_daddr: ip6::DADDR, Ipv6Addr;
    /// `ip6 nexthdr`: what the header behind the first one is. With extension headers it is one of
    /// these and not the protocol, which is [`meta_l4proto`](Self::meta_l4proto).
    ip6_nexthdr: ip6::NEXTHDR, Protocol;
    /// `ip6 hoplimit`
    ip6_hoplimit: ip6::HOPLIMIT, u8;

    /// `th sport`: the source port, whatever the transport protocol is. Before it must be a match of
    /// one that has ports, or of a set of them: else the rule ends in
    /// [`BuildError::NoTransport`](super::BuildError::NoTransport), as packets of other protocols have
    /// something else there.
    th_sport: th::SPORT, u16;
    /// `th dport`: the destination port, whatever the transport protocol is. Before it must be a
    /// match of one that has ports, as for [`th_sport`](Self::th_sport).
    th_dport: th::DPORT, u16;
    /// `tcp sport`
    tcp_sport: tcp::SPORT, u16;
    /// `tcp dport`
    ///
    /// ```
    /// use chainwright::nft::build::{Anonymous, Build, at_least, not};
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
    /// let web = Anonymous::ports(Family::INET, "filter", 1, [80, 443]);
    /// web.add_to(&mut tx)?;
    /// tx.add(&rule().tcp_dport(&web).accept()?)?; // tcp dport { 80, 443 }
    /// Connection::open()?.commit(&tx)?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    tcp_dport: tcp::DPORT, u16;
    /// `tcp flags`
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
    /// `udp sport`
    udp_sport: udp::SPORT, u16;
    /// `udp dport`
    udp_dport: udp::DPORT, u16;
    /// `sctp sport`
    sctp_sport: sctp::SPORT, u16;
    /// `sctp dport`
    sctp_dport: sctp::DPORT, u16;
    /// `icmp type`: of an IPv4 packet.
    icmp_type: icmp::TYPE, IcmpType;
    /// `icmp code`: what it means depends on the type.
    icmp_code: icmp::CODE, u8;
    /// `icmpv6 type`: of an IPv6 packet.
    icmpv6_type: icmpv6::TYPE, Icmpv6Type;
    /// `icmpv6 code`: what it means depends on the type.
    icmpv6_code: icmpv6::CODE, u8;

    /// `meta l4proto`: the protocol above IP, whatever extension headers there are.
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
    /// `meta nfproto`: the version of IP, [`Family::IP`] or [`Family::IP6`], in a table of the
    /// family inet.
    meta_nfproto: meta::NFPROTO, Family;
    /// `meta protocol`: what the frame carries, for tables of the families bridge and netdev.
    meta_protocol: meta::PROTOCOL, EtherType;
    /// `meta mark`: the packet's mark. Bits of it are compared by [`masked`](super::masked).
    meta_mark: meta::MARK, u32;
    /// `meta pkttype`
    meta_pkttype: meta::PKTTYPE, PacketType;
    /// `meta skuid`: the user whose socket the packet comes from.
    meta_skuid: meta::SKUID, u32;
    /// `meta skgid`: the group whose socket the packet comes from.
    meta_skgid: meta::SKGID, u32;

    /// `ct state`
    ///
    /// ```
    /// use chainwright::nft::build::{Build, CtState, not};
    /// use chainwright::nft::Family;
    ///
    /// let rule = || Build::new(Family::INET, "filter", "input");
    /// // ct state established,related: any one of the two
    /// rule().ct_state(CtState::ESTABLISHED | CtState::RELATED).accept()?;
    /// // ct state ! new: not that one
    /// rule().ct_state(not(CtState::NEW)).accept()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ct_state: ct::STATE, CtState;
    /// `ct status`: `ct_status(CtStatus::DNAT)` is a connection whose destination is translated.
    ct_status: ct::STATUS, CtStatus;
    /// `ct mark`: the connection's mark.
    ct_mark: ct::MARK, u32;
    /// `ct direction`
    ct_direction: ct::DIRECTION, CtDirection;
    /// `ct original ip saddr`: who began the connection.
    ct_original_ip_saddr: ct::ORIGINAL_IP_SADDR, Ipv4Addr;
    /// `ct original ip daddr`: whom the connection was begun with, before translation.
    ct_original_ip_daddr: ct::ORIGINAL_IP_DADDR, Ipv4Addr;
    /// `ct reply ip saddr`: who replies.
    ct_reply_ip_saddr: ct::REPLY_IP_SADDR, Ipv4Addr;
    /// `ct reply ip daddr`: whom replies go to.
    ct_reply_ip_daddr: ct::REPLY_IP_DADDR, Ipv4Addr;
    /// `ct original ip6 saddr`: who began the connection.
    ct_original_ip6_saddr: ct::ORIGINAL_IP6_SADDR, Ipv6Addr;
    /// `ct original ip6 daddr`: whom the connection was begun with, before translation.
    ct_original_ip6_daddr: ct::ORIGINAL_IP6_DADDR, Ipv6Addr;
    /// `ct reply ip6 saddr`: who replies.
    ct_reply_ip6_saddr: ct::REPLY_IP6_SADDR, Ipv6Addr;
    /// `ct reply ip6 daddr`: whom replies go to.
    ct_reply_ip6_daddr: ct::REPLY_IP6_DADDR, Ipv6Addr;
    /// `fib saddr type`: what the packet's source is to this machine.
    fib_saddr_type: Selector::fib(FibFlags::SADDR, FibResult::ADDRTYPE), AddressType;
    /// `fib daddr type`: what the packet's destination is to this machine.
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
    /// Goes on if there is a route: `fib … oif exists`.
    pub fn fib_exists(self, of: FibFlags) -> Self {
        self.fib(of, true)
    }

    /// Goes on if there is no route: `fib saddr . iif oif missing` is a packet that came in where no
    /// answer to it would leave.
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
        if !self.require(&Selector::fib(of, FibResult::OIF)) {
            return self;
        }
        self.push(&Fib::new(of, FibResult::OIF, Register::R1));
        // One byte is stored, and the rest of the word cleared: as nft compares it.
        self.push(&Cmp::eq(Register::R1, &[exists.into(), 0, 0, 0]));
        self
    }
}
