//! Descriptions of packets and of the machine.

use std::fmt;
use std::net::IpAddr;

use bstr::{BStr, BString};

use chainwright::legacy;
use chainwright::xt::Family;

/// Direction of a packet relative to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Direction {
    /// Received for this machine, unless a rule changes the destination.
    In,
    /// Received for another machine, unless a rule changes the destination.
    Forwarded,
    /// Sent by this machine to another one.
    Out,
    /// Sent by this machine to itself over `lo`.
    Local,
}

/// Netfilter hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Hook {
    /// Before routing.
    Prerouting,
    /// Before delivery to this machine.
    Input,
    /// Between receiving and sending of a forwarded packet.
    Forward,
    /// After a local process sent the packet.
    Output,
    /// Before the packet leaves, after routing.
    Postrouting,
}

impl Hook {
    /// All hooks, by their numbers in the kernel (`NF_INET_*`).
    pub const ALL: [Self; 5] = [
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
    ];

    /// Returns the hook of legacy tables.
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

/// Prints nft's name: `prerouting`.
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

/// Connection state of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// First packet of a connection.
    New,
    /// Packet of a connection that was answered.
    Established,
    /// First packet of a connection that another one announced, or an error message about a connection.
    Related,
    /// Packet that cannot belong to a connection.
    Invalid,
    /// Packet that is not tracked.
    Untracked,
}

impl State {
    /// All states.
    pub(super) const ALL: [Self; 5] = [
        Self::New,
        Self::Established,
        Self::Related,
        Self::Invalid,
        Self::Untracked,
    ];

    /// Returns the name in rules.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Established => "established",
            Self::Related => "related",
            Self::Invalid => "invalid",
            Self::Untracked => "untracked",
        }
    }

    /// Returns the bit in rules (`NF_CT_STATE_*`).
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

/// Addresses and ports of one direction of a connection.
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

/// Description of a packet's connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrackedConnection {
    /// State.
    pub state: Option<State>,
    /// Whether the packet is in the reply direction.
    pub is_reply: Option<bool>,
    /// Mark.
    pub mark: Option<u32>,
    /// Status (`IPS_*`).
    pub status: Option<u32>,
    /// Labels.
    pub labels: Option<u128>,
    /// Zone.
    pub zone: Option<u16>,
    /// Helper name; empty if there is none.
    pub helper: Option<BString>,
    /// Original tuple. With it and `reply`, existing NAT is applied again.
    pub original: Tuple,
    /// Reply tuple.
    pub reply: Tuple,
}

/// Description of a packet. `None` means unknown: a rule that reads the field splits the trace.
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
    /// IP version.
    pub family: Family,
    /// Direction.
    pub direction: Direction,
    /// Source address, of the same family.
    pub source: Option<IpAddr>,
    /// Destination address, of the same family.
    pub destination: Option<IpAddr>,
    /// Transport protocol (`IPPROTO_*`).
    pub protocol: Option<u8>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
    /// ICMP type.
    pub icmp_type: Option<u8>,
    /// ICMP code.
    pub icmp_code: Option<u8>,
    /// TCP flags.
    pub tcp_flags: Option<u8>,
    /// Whether it is a fragment other than the first. Connection tracking reassembles fragments.
    pub fragment: Option<bool>,
    /// Whether it has IPv4 options or IPv6 extension headers.
    pub has_options: Option<bool>,
    /// Packet length from the network header on, in bytes.
    pub length: Option<u32>,
    /// TTL or hop limit.
    pub ttl: Option<u8>,
    /// Type of service or traffic class, as a whole byte.
    pub tos: Option<u8>,
    /// Input interface.
    pub in_interface: Option<BString>,
    /// Output interface.
    pub out_interface: Option<BString>,
    /// Source hardware address.
    pub source_hardware: Option<[u8; 6]>,
    /// Packet type on its link (`PACKET_*`): 0 for this host, 1 broadcast, 2 multicast, 3 for another host.
    pub packet_type: Option<u8>,
    /// Initial mark.
    pub mark: Option<u32>,
    /// Initial priority.
    pub priority: Option<u32>,
    /// User of the sending socket.
    pub user: Option<u32>,
    /// Group of the sending socket.
    pub group: Option<u32>,
    /// Connection.
    pub connection: TrackedConnection,
}

impl Packet {
    /// Creates a packet with all other data unknown.
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
            connection: TrackedConnection {
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

    /// Creates an unfragmented packet without options that starts a connection. Its family is that of the destination.
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

    /// Creates the first packet of a TCP connection.
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

    /// Creates the first packet of a UDP exchange.
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

/// Network interface of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: BString,
    /// Index.
    pub index: Option<u32>,
    /// Hardware type (`ARPHRD_*`): 1 for Ethernet, 772 for `lo`.
    pub hardware: Option<u16>,
    /// Group.
    pub group: Option<u32>,
    /// Addresses. Masquerading uses the first one of a family.
    pub addresses: Vec<IpAddr>,
}

impl Interface {
    /// Creates an interface with all other data unknown.
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

/// Description of the machine, as far as rules and the kernel depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Known interfaces. `lo` is always known.
    pub interfaces: Vec<Interface>,
    /// All addresses, if known: any other address belongs to another machine. The addresses of `lo` are implied.
    pub addresses: Option<Vec<IpAddr>>,
}

impl Node {
    /// Returns an interface by name.
    #[must_use]
    pub fn interface(&self, name: &BStr) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|interface| interface.name == name)
    }

    /// Returns whether an address belongs to the machine; `None` if unknown.
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
