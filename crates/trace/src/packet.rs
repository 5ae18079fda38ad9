//! What is known of a packet, and of the machine that it comes to.

use std::fmt;
use std::net::IpAddr;

use bstr::{BStr, BString};

use chainwright::legacy;
use chainwright::xt::Family;

/// Which way a packet takes through the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Direction {
    /// It comes in and is for this machine, unless a rule gives it another destination.
    In,
    /// It comes in and is for another machine, unless a rule gives it another destination.
    Forwarded,
    /// This machine sends it to another one.
    Out,
    /// This machine sends it to itself, over `lo`.
    Local,
}

/// A place in a packet's way at which rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Hook {
    /// Before the route is chosen.
    Prerouting,
    /// Towards this machine.
    Input,
    /// Through this machine.
    Forward,
    /// From this machine.
    Output,
    /// After the route was chosen.
    Postrouting,
}

impl Hook {
    /// All of them, by their numbers in the kernel (`NF_INET_*`).
    pub const ALL: [Self; 5] = [
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
    ];

    /// The same place as legacy tables name it.
    pub(super) const fn legacy(self) -> legacy::Hook {
        match self {
            Self::Prerouting => legacy::Hook::Prerouting,
            Self::Input => legacy::Hook::Input,
            Self::Forward => legacy::Hook::Forward,
            Self::Output => legacy::Hook::Output,
            Self::Postrouting => legacy::Hook::Postrouting,
        }
    }
}

/// As nft names it: `prerouting`.
impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
        })
    }
}

/// State of a packet's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It is the first packet of a connection.
    New,
    /// It belongs to a connection that was answered.
    Established,
    /// It begins a connection that another one announced, or is an error about one.
    Related,
    /// It belongs to none that there can be.
    Invalid,
    /// It is not tracked.
    Untracked,
}

impl State {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [
        Self::New,
        Self::Established,
        Self::Related,
        Self::Invalid,
        Self::Untracked,
    ];

    /// As rules name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Established => "established",
            Self::Related => "related",
            Self::Invalid => "invalid",
            Self::Untracked => "untracked",
        }
    }

    /// The bit by which rules ask for it (`NF_CT_STATE_*`).
    pub(super) const fn bit(self) -> u128 {
        match self {
            Self::Invalid => 1,
            Self::Established => 2,
            Self::Related => 4,
            Self::New => 8,
            Self::Untracked => 64,
        }
    }
}

/// The addresses and ports of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tuple {
    /// Source address.
    pub source: Option<IpAddr>,
    /// Destination address.
    pub destination: Option<IpAddr>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
}

/// What is known of a packet's connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Connection {
    /// Its state.
    pub state: Option<State>,
    /// Whether the packet goes as the replies do, and not as the first packet did.
    pub is_reply: Option<bool>,
    /// Its mark.
    pub mark: Option<u32>,
    /// Its status (`IPS_*`).
    pub status: Option<u32>,
    /// Its labels.
    pub labels: Option<u128>,
    /// Its zone.
    pub zone: Option<u16>,
    /// Name of its helper; empty if it has none.
    pub helper: Option<BString>,
    /// As its first packet went. With it and `reply`, what was translated before is translated again.
    pub original: Tuple,
    /// As its replies come.
    pub reply: Tuple,
}

/// What is known of a packet. What is `None` is not known: a rule that asks for it splits the walk.
///
/// ```
/// use chainwright_trace::{Direction, Packet};
///
/// let mut packet = Packet::tcp(
///     Direction::In,
///     "10.0.0.5:1234".parse()?,
///     "10.96.0.1:443".parse()?,
/// );
/// packet.in_interface = Some("eth0".into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Its family.
    pub family: Family,
    /// Its way.
    pub direction: Direction,
    /// Source address, of the same family.
    pub source: Option<IpAddr>,
    /// Destination address, of the same family.
    pub destination: Option<IpAddr>,
    /// Protocol of the transport layer (`IPPROTO_*`).
    pub protocol: Option<u8>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
    /// ICMP's type.
    pub icmp_type: Option<u8>,
    /// ICMP's code.
    pub icmp_code: Option<u8>,
    /// The flags of a TCP header.
    pub tcp_flags: Option<u8>,
    /// Whether it is a fragment other than the first. Connection tracking puts fragments together.
    pub fragment: Option<bool>,
    /// Whether it has IPv4 options or IPv6 extension headers.
    pub has_options: Option<bool>,
    /// Length from the network header on, in bytes.
    pub length: Option<u32>,
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
    /// Type of service, or traffic class: the whole byte.
    pub tos: Option<u8>,
    /// Name of the interface that it comes in by.
    pub in_interface: Option<BString>,
    /// Name of the interface that it leaves by.
    pub out_interface: Option<BString>,
    /// Hardware address that it comes from.
    pub source_hardware: Option<[u8; 6]>,
    /// Kind of the packet on its link (`PACKET_*`): 0 for this host, 1 for all, 2 for a group, 3 for another.
    pub packet_type: Option<u8>,
    /// Its mark as it comes.
    pub mark: Option<u32>,
    /// Its priority as it comes.
    pub priority: Option<u32>,
    /// User of the socket that sent it.
    pub user: Option<u32>,
    /// Group of the socket that sent it.
    pub group: Option<u32>,
    /// Its connection.
    pub connection: Connection,
}

impl Packet {
    /// A packet of which nothing else is known.
    #[must_use]
    pub const fn new(family: Family, direction: Direction) -> Self {
        Self {
            family,
            direction,
            source: None,
            destination: None,
            protocol: None,
            source_port: None,
            destination_port: None,
            icmp_type: None,
            icmp_code: None,
            tcp_flags: None,
            fragment: None,
            has_options: None,
            length: None,
            ttl: None,
            tos: None,
            in_interface: None,
            out_interface: None,
            source_hardware: None,
            packet_type: None,
            mark: None,
            priority: None,
            user: None,
            group: None,
            connection: Connection {
                state: None,
                is_reply: None,
                mark: None,
                status: None,
                labels: None,
                zone: None,
                helper: None,
                original: Tuple {
                    source: None,
                    destination: None,
                    source_port: None,
                    destination_port: None,
                },
                reply: Tuple {
                    source: None,
                    destination: None,
                    source_port: None,
                    destination_port: None,
                },
            },
        }
    }

    /// A whole packet of this protocol from one address to another, without options, that begins a connection. The
    /// family is that of the destination.
    #[must_use]
    pub fn between(
        direction: Direction,
        protocol: u8,
        source: IpAddr,
        destination: IpAddr,
    ) -> Self {
        let family = match destination {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        };
        let mut packet = Self::new(family, direction);
        packet.source = Some(source);
        packet.destination = Some(destination);
        packet.protocol = Some(protocol);
        packet.fragment = Some(false);
        packet.has_options = Some(false);
        packet.mark = Some(0);
        packet.connection.state = Some(State::New);
        packet
    }

    /// The first packet of a TCP connection.
    #[must_use]
    pub fn tcp(
        direction: Direction,
        source: std::net::SocketAddr,
        destination: std::net::SocketAddr,
    ) -> Self {
        const SYN: u8 = 2;
        let mut packet = Self::between(direction, 6, source.ip(), destination.ip());
        packet.source_port = Some(source.port());
        packet.destination_port = Some(destination.port());
        packet.tcp_flags = Some(SYN);
        packet
    }

    /// The first datagram of an exchange.
    #[must_use]
    pub fn udp(
        direction: Direction,
        source: std::net::SocketAddr,
        destination: std::net::SocketAddr,
    ) -> Self {
        let mut packet = Self::between(direction, 17, source.ip(), destination.ip());
        packet.source_port = Some(source.port());
        packet.destination_port = Some(destination.port());
        packet
    }
}

/// A network interface of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: BString,
    /// Its index.
    pub index: Option<u32>,
    /// Its hardware type (`ARPHRD_*`): 1 for Ethernet, 772 for `lo`.
    pub hardware: Option<u16>,
    /// Its group.
    pub group: Option<u32>,
    /// Its addresses, the first of a family being the one that a masquerade takes.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// An interface of which only the name is known.
    #[must_use]
    pub fn named(name: impl Into<BString>) -> Self {
        Self {
            name: name.into(),
            index: None,
            hardware: None,
            group: None,
            addresses: Vec::new(),
        }
    }
}

/// What is known of the machine, of what rules and the kernel ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its interfaces. One that is not among them is not known; `lo` always is.
    pub interfaces: Vec<Interface>,
    /// All its addresses, if they are known: then an address that is not among them is another machine's. Those of
    /// `lo` need not be told.
    pub addresses: Option<Vec<IpAddr>>,
}

impl Node {
    /// What is known of an interface.
    #[must_use]
    pub fn interface(&self, name: &BStr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    /// Whether an address is the machine's own, as far as that is known.
    #[must_use]
    pub fn has_address(&self, address: IpAddr) -> Option<bool> {
        if address.is_loopback() {
            return Some(true);
        }
        let of_interface = |interface: &Interface| interface.addresses.contains(&address);
        if self.interfaces.iter().any(of_interface) {
            return Some(true);
        }
        let all = self.addresses.as_ref()?;
        Some(all.contains(&address))
    }
}
