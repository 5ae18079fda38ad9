//! Packets: random ones, as bytes, and parsed headers of those that arrive.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::random::Random;
use crate::kernel::world::node_address;

/// A packet's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// From the client through the node to the server.
    Forward,
    /// From the client to the node.
    In,
    /// From the node to the client or the server.
    Out,
    /// From the node to itself.
    Local,
    /// From the server through the node to the client, as an answer.
    Back,
}

/// A packet that is sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) route: Route,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    /// The ports; for ICMP the identifier and 0.
    pub(crate) ports: (u16, u16),
    /// ICMP's type and code.
    pub(crate) kind: (u8, u8),
    /// TCP's flags.
    pub(crate) flags: u8,
    pub(crate) hops: u8,
    /// The byte of DSCP and ECN.
    pub(crate) tos: u8,
    /// Number of bytes after the transport header.
    pub(crate) payload: usize,
}

/// The ports in rules and packets.
pub(crate) const PORTS: [u16; 5] = [53, 80, 443, 8080, 9000];
const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A packet with these flags begins no connection, and without an existing one it is invalid to connection tracking.
const OF_NO_CONNECTION: [u8; 4] = [0, FIN, SYN | FIN, RST];

/// A client's address, by number.
pub(crate) fn client(is_ipv4: bool, number: u8) -> IpAddr {
    match is_ipv4 {
        true => Ipv4Addr::new(10, 1, 0, 2 + number).into(),
        false => Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 2 + u16::from(number)).into(),
    }
}

/// An address behind the server, by number.
pub(crate) fn far(is_ipv4: bool, number: u8) -> IpAddr {
    match is_ipv4 {
        true => Ipv4Addr::new(10, 3, 0, 1 + number).into(),
        false => Ipv6Addr::new(0xfd03, 0, 0, 0, 0, 0, 0, 1 + u16::from(number)).into(),
    }
}

impl Sent {
    /// The packet with this number, which is unique within its ruleset.
    pub(crate) fn random(random: &mut Random, is_ipv4: bool, number: u16) -> Self {
        let route = random.pick(&[
            Route::Forward,
            Route::Forward,
            Route::In,
            Route::Out,
            Route::Local,
        ]);
        let node = node_address(is_ipv4, random.below(2));
        let one_client = client(is_ipv4, random.below(4) as u8);
        let one_far = far(is_ipv4, random.below(4) as u8);
        let (source, destination) = match route {
            Route::Forward => (one_client, one_far),
            Route::In => (one_client, node),
            Route::Out if random.once_in(3) => (node, one_client),
            Route::Out => (node, one_far),
            Route::Local | Route::Back => {
                let localhost = match is_ipv4 {
                    true => Ipv4Addr::LOCALHOST.into(),
                    false => Ipv6Addr::LOCALHOST.into(),
                };
                let one = random.pick(&[localhost, node_address(is_ipv4, 0)]);
                (one, one)
            }
        };
        let icmp = if is_ipv4 { 1 } else { 58 };
        let protocol = random.pick(&[6, 6, 6, 17, 17, 17, icmp]);
        let (ports, kind) = match protocol {
            6 | 17 => ((20_000 + number, random.pick(&PORTS)), (0, 0)),
            _ => ((20_000 + number, 0), (if is_ipv4 { 8 } else { 128 }, 0)),
        };
        Self {
            route,
            source,
            destination,
            protocol,
            ports,
            kind,
            flags: match protocol {
                6 if random.once_in(8) => random.pick(&OF_NO_CONNECTION),
                6 => SYN,
                _ => 0,
            },
            hops: random.pick(&[32, 64, 100]),
            tos: random.pick(&[0, 0, 0x20, 0xb8, 0xb9]),
            payload: random.pick(&[0, 4, 16, 40, 100]),
        }
    }

    /// Whether connection tracking accepts it as the first packet of a connection, if it is not an answer.
    pub(crate) fn may_begin(&self) -> bool {
        self.protocol != 6 || !OF_NO_CONNECTION.contains(&self.flags)
    }

    /// The answer to a packet that arrived.
    pub(crate) fn answer(arrived: &Headers, hops: u8) -> Self {
        Self {
            route: Route::Back,
            source: arrived.destination.expect("the destination is unknown"),
            destination: arrived.source,
            protocol: arrived.protocol,
            ports: match arrived.protocol {
                6 | 17 => (arrived.ports.1, arrived.ports.0),
                _ => arrived.ports,
            },
            kind: match arrived.protocol {
                1 => (0, 0),
                58 => (129, 0),
                _ => (0, 0),
            },
            flags: if arrived.protocol == 6 { SYN | ACK } else { 0 },
            hops,
            tos: 0,
            payload: 8,
        }
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (from, to) = self.ports;
        match self.protocol {
            6 => {
                bytes.extend(from.to_be_bytes());
                bytes.extend(to.to_be_bytes());
                bytes.extend(1_000_u32.to_be_bytes());
                let acknowledged = if self.flags & ACK != 0 { 1_001_u32 } else { 0 };
                bytes.extend(acknowledged.to_be_bytes());
                // Six words: the last is the option for the maximum segment size.
                bytes.extend([6 << 4, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
                bytes.extend([2, 4, 0x05, 0xb4]);
            }
            17 => {
                bytes.extend(from.to_be_bytes());
                bytes.extend(to.to_be_bytes());
                bytes.extend((8 + self.payload as u16).to_be_bytes());
                bytes.extend([0, 0]);
            }
            _ => {
                bytes.extend([self.kind.0, self.kind.1, 0, 0]);
                bytes.extend(from.to_be_bytes());
                bytes.extend([0, 1]);
            }
        }
        bytes.extend((0..self.payload).map(|at| b'a' + (at % 26) as u8));
        let place = match self.protocol {
            6 => 16,
            17 => 6,
            _ => 2,
        };
        let sum = self.checksum(&bytes);
        bytes[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// The checksum, which includes the pseudo header except for ICMP over IPv4.
    fn checksum(&self, transport: &[u8]) -> u16 {
        let mut bytes = Vec::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) if self.protocol != 1 => {
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                bytes.extend([0, self.protocol]);
                bytes.extend((transport.len() as u16).to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                bytes.extend((transport.len() as u32).to_be_bytes());
                bytes.extend([0, 0, 0, self.protocol]);
            }
            _ => {}
        }
        bytes.extend(transport);
        sum(&bytes)
    }

    /// The packet from its network header on.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let transport = self.transport();
        let mut bytes = Vec::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                bytes.extend([0x45, self.tos]);
                bytes.extend((20 + transport.len() as u16).to_be_bytes());
                bytes.extend([0x12, 0x34, 0x40, 0, self.hops, self.protocol, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
                let sum = sum(&bytes);
                bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                bytes.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
                bytes.extend((transport.len() as u16).to_be_bytes());
                bytes.extend([self.protocol, self.hops]);
                bytes.extend(source.octets());
                bytes.extend(destination.octets());
            }
            _ => panic!("the addresses have different families"),
        }
        bytes.extend(transport);
        bytes
    }

    /// Its length from the network header on.
    pub(crate) fn length(&self) -> usize {
        self.bytes().len()
    }
}

/// The Internet checksum of some bytes.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

/// The parsed headers of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) source: IpAddr,
    /// Unknown if a socket returns only the part after the network header.
    pub(crate) destination: Option<IpAddr>,
    pub(crate) protocol: u8,
    /// As in [`Sent`].
    pub(crate) ports: (u16, u16),
    pub(crate) kind: (u8, u8),
    pub(crate) flags: u8,
    pub(crate) hops: Option<u8>,
    pub(crate) tos: Option<u8>,
    /// The packet that an ICMP error refers to.
    pub(crate) about: Option<Box<Headers>>,
}

impl Headers {
    /// Parses an IPv4 or IPv6 packet.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (network, protocol, source, destination, hops, tos): (_, _, IpAddr, IpAddr, _, _) =
            match bytes.first()? >> 4 {
                4 => {
                    let header = bytes.first_chunk::<20>()?;
                    let source = <[u8; 4]>::try_from(&header[12..16]).ok()?;
                    let destination = <[u8; 4]>::try_from(&header[16..20]).ok()?;
                    let length = usize::from(header[0] & 15) * 4;
                    let (source, destination) = (source.into(), destination.into());
                    (length, header[9], source, destination, header[8], header[1])
                }
                6 => {
                    let header = bytes.first_chunk::<40>()?;
                    let source = <[u8; 16]>::try_from(&header[8..24]).ok()?;
                    let destination = <[u8; 16]>::try_from(&header[24..40]).ok()?;
                    let tos = header[0] << 4 | header[1] >> 4;
                    let (source, destination) = (source.into(), destination.into());
                    (40, header[6], source, destination, header[7], tos)
                }
                _ => return None,
            };
        let mut headers = Self::of_transport(protocol, source, bytes.get(network..)?);
        headers.destination = Some(destination);
        headers.hops = Some(hops);
        headers.tos = Some(tos);
        Some(headers)
    }

    /// Parses the part after the network header.
    pub(crate) fn of_transport(protocol: u8, source: IpAddr, bytes: &[u8]) -> Self {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let word = |at| u16::from_be_bytes([byte(at), byte(at + 1)]);
        let kind = match protocol {
            1 | 58 => (byte(0), byte(1)),
            _ => (0, 0),
        };
        let is_error = match protocol {
            1 => matches!(kind.0, 3 | 4 | 5 | 11 | 12),
            58 => kind.0 < 128,
            _ => false,
        };
        Self {
            source,
            destination: None,
            protocol,
            ports: match protocol {
                6 | 17 => (word(0), word(2)),
                _ => (word(4), 0),
            },
            kind,
            flags: if protocol == 6 { byte(13) } else { 0 },
            hops: None,
            tos: None,
            about: is_error
                .then(|| bytes.get(8..).and_then(Self::parse).map(Box::new))
                .flatten(),
        }
    }
}
