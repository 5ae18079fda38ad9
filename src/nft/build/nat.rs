//! Network address and port translation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::RangeInclusive;

use super::key::register;
use super::sets::SetName;
use super::{Build, BuildError, Key, Protocol, Transport, Version};
use crate::nft::expr::{Immediate, Masq, Nat, NatRangeFlags, NatType, Redir, Register};
use crate::nft::{Family, Rule};

/// A port, or a range of them: `8080`, `8080..=8090`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: Option<u16>,
}

impl From<u16> for Ports {
    fn from(port: u16) -> Self {
        Self {
            first: port,
            last: None,
        }
    }
}

impl From<RangeInclusive<u16>> for Ports {
    fn from(ports: RangeInclusive<u16>) -> Self {
        let (first, last) = ports.into_inner();
        Self {
            first,
            last: (first != last).then_some(last),
        }
    }
}

/// The new address and ports of one end of a connection.
///
/// | Rust | nft |
/// |---|---|
/// | `Ipv4Addr::new(10, 0, 0, 1)` | `10.0.0.1` |
/// | a range of addresses | `10.0.0.1-10.0.0.9` |
/// | a `SocketAddr`; [`with_ports`](Self::with_ports) | `10.0.0.1:8080`, `10.0.0.1:8080-8090` |
/// | [`NatTo::ports`] | `:8080` |
/// | [`NatTo::map`] | `ip to numgen random mod 2 map @addresses` |
/// | [`NatTo::map_with_port`] | `ip addr . port to ip daddr . th dport map @backends` |
///
/// The version of IP follows from the addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatTo<'a> {
    address: Address<'a>,
    ports: Option<Ports>,
    flags: NatRangeFlags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Address<'a> {
    None,
    V4(Ipv4Addr, Option<Ipv4Addr>),
    V6(Ipv6Addr, Option<Ipv6Addr>),
    Map {
        version: Version,
        key: Key<'a>,
        map: SetName<'a>,
        port: bool,
    },
}

impl<'a> NatTo<'a> {
    const fn to(address: Address<'a>) -> Self {
        Self {
            address,
            ports: None,
            flags: NatRangeFlags::empty(),
        }
    }

    /// Keeps the packet's address and changes the port to one of these.
    pub fn ports(ports: impl Into<Ports>) -> Self {
        Self::to(Address::None).with_ports(ports)
    }

    /// Uses the address, of this version of IP, that a map has for a key.
    pub fn map(version: Version, key: impl Into<Key<'a>>, map: impl Into<SetName<'a>>) -> Self {
        Self::to(Address::Map {
            version,
            key: key.into(),
            map: map.into(),
            port: false,
        })
    }

    /// Uses the address, of this version of IP, and the port that a map has for a key, as a concatenation of both.
    pub fn map_with_port(
        version: Version,
        key: impl Into<Key<'a>>,
        map: impl Into<SetName<'a>>,
    ) -> Self {
        Self::to(Address::Map {
            version,
            key: key.into(),
            map: map.into(),
            port: true,
        })
    }

    /// Adds these ports.
    #[must_use]
    pub fn with_ports(mut self, ports: impl Into<Ports>) -> Self {
        self.ports = Some(ports.into());
        self
    }

    /// Adds these flags: `random`, `fully-random`, `persistent`.
    #[must_use]
    pub fn with_flags(mut self, flags: NatRangeFlags) -> Self {
        self.flags |= flags;
        self
    }
}

impl From<Ipv4Addr> for NatTo<'_> {
    fn from(address: Ipv4Addr) -> Self {
        Self::to(Address::V4(address, None))
    }
}

impl From<Ipv6Addr> for NatTo<'_> {
    fn from(address: Ipv6Addr) -> Self {
        Self::to(Address::V6(address, None))
    }
}

impl From<IpAddr> for NatTo<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

impl From<RangeInclusive<Ipv4Addr>> for NatTo<'_> {
    fn from(range: RangeInclusive<Ipv4Addr>) -> Self {
        let (first, last) = range.into_inner();
        Self::to(Address::V4(first, Some(last)))
    }
}

impl From<RangeInclusive<Ipv6Addr>> for NatTo<'_> {
    fn from(range: RangeInclusive<Ipv6Addr>) -> Self {
        let (first, last) = range.into_inner();
        Self::to(Address::V6(first, Some(last)))
    }
}

impl From<SocketAddrV4> for NatTo<'_> {
    fn from(address: SocketAddrV4) -> Self {
        Self::from(*address.ip()).with_ports(address.port())
    }
}

impl From<SocketAddrV6> for NatTo<'_> {
    fn from(address: SocketAddrV6) -> Self {
        Self::from(*address.ip()).with_ports(address.port())
    }
}

impl From<SocketAddr> for NatTo<'_> {
    fn from(address: SocketAddr) -> Self {
        Self::from(address.ip()).with_ports(address.port())
    }
}

impl<'a> Build<'a> {
    /// Changes the connection's destination, in a chain of the type `nat` at the hook `prerouting`
    /// or `output`.
    ///
    /// ```
    /// use std::net::{Ipv4Addr, SocketAddrV4};
    /// use chainwright::nft::build::{AnonymousSet, Build, NatTo, Protocol, Version, numgen_random};
    /// use chainwright::nft::{Chain, Connection, Family, Hook, Priority, Table, Transaction};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::IP, "services"))?;
    /// let web = Chain::new(Family::IP, "services", "web");
    /// tx.add(&web.with_hook("nat", Hook::PREROUTING, Priority::DSTNAT))?;
    ///
    /// // ip daddr 10.96.0.1 tcp dport 80 dnat to 10.0.0.4:8080
    /// let one = Build::new(Family::IP, "services", "web")
    ///     .ip_daddr(Ipv4Addr::new(10, 96, 0, 1))
    ///     .tcp_dport(80)
    ///     .dnat(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 4), 8080))?;
    /// tx.add(&one)?;
    ///
    /// // meta l4proto tcp dnat ip addr . port to numgen random mod 2 map {
    /// //     0 : 10.0.0.4 . 8080, 1 : 10.0.0.5 . 8080 }
    /// let backends = [4, 5].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 8080));
    /// let map = AnonymousSet::numbered_addresses_with_ports(Family::IP, "services", 1, 0, backends);
    /// map.add_to(&mut tx)?;
    /// let spread = Build::new(Family::IP, "services", "web")
    ///     .meta_l4proto(Protocol::TCP)
    ///     .dnat(NatTo::map_with_port(Version::V4, numgen_random(2), &map))?;
    /// tx.add(&spread)?;
    /// Connection::open()?.commit(&tx)?;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first error of the rule; [`BuildError::NoTransport`] for ports of packets that may have none.
    pub fn dnat<'m>(self, to: impl Into<NatTo<'m>>) -> Result<Rule<'a>, BuildError> {
        self.nat(NatType::DNAT, "dnat", to.into())
    }

    /// Changes the connection's source, in a chain of the type `nat` at the hook `postrouting` or
    /// `input`.
    ///
    /// # Errors
    /// Same as [`dnat`](Self::dnat).
    pub fn snat<'m>(self, to: impl Into<NatTo<'m>>) -> Result<Rule<'a>, BuildError> {
        self.nat(NatType::SNAT, "snat", to.into())
    }

    fn nat(
        mut self,
        nat_type: NatType,
        what: &'static str,
        to: NatTo<'_>,
    ) -> Result<Rule<'a>, BuildError> {
        let NatTo {
            address,
            ports,
            flags,
        } = to;
        let version = match &address {
            Address::None => None,
            Address::V4(..) => Some(Version::V4),
            Address::V6(..) => Some(Version::V6),
            Address::Map { version, .. } => Some(*version),
        };
        if !self.has_nat(what) {
            return self.finish();
        }
        if let (Some(version), Some(known)) = (version, self.network)
            && version != known
        {
            self.conflict(what);
            return self.finish();
        }
        let mut nat = Nat {
            nat_type: Some(nat_type),
            family: Some(u32::from(match version {
                Some(Version::V4) => Family::IP.0,
                Some(Version::V6) => Family::IP6.0,
                None => self.rule.family.0,
            })),
            ..Nat::default()
        };
        let mut word = 0;
        match address {
            Address::None => {}
            Address::V4(first, last) => {
                nat.addr_min = Some(self.immediate(&mut word, &first.octets()));
                if let Some(last) = last {
                    if last < first {
                        self.fail(BuildError::Range { what });
                    }
                    nat.addr_max = Some(self.immediate(&mut word, &last.octets()));
                }
            }
            Address::V6(first, last) => {
                nat.addr_min = Some(self.immediate(&mut word, &first.octets()));
                if let Some(last) = last {
                    if last < first {
                        self.fail(BuildError::Range { what });
                    }
                    nat.addr_max = Some(self.immediate(&mut word, &last.octets()));
                }
            }
            Address::Map {
                version,
                key,
                map,
                port,
            } => {
                self.load_from_map(&key, &map, Register::R1);
                nat.addr_min = Some(Register::R1);
                if port {
                    // The map's value has the port after the address.
                    let behind = match version {
                        Version::V4 => 1,
                        Version::V6 => 4,
                    };
                    nat.proto_min = Some(register(behind));
                    if ports.is_some() || !self.has_ports() {
                        self.fail(BuildError::NoTransport { what });
                    }
                }
                word = 4;
            }
        }
        let mut flags = flags;
        if let Some(ports) = ports {
            (nat.proto_min, nat.proto_max) = self.put_ports(&mut word, what, ports);
            flags |= NatRangeFlags::PROTO_SPECIFIED;
        }
        nat.flags = (!flags.is_empty()).then_some(flags);
        self.push(&nat);
        self.finish()
    }

    /// Returns `true` if the kernel supports NAT in tables of this family; if not, records the error.
    fn has_nat(&mut self, what: &'static str) -> bool {
        match self.rule.family {
            Family::IP | Family::IP6 | Family::INET => true,
            _ => self.no_family(what),
        }
    }

    /// Returns `true` if all packets that can still match have ports.
    pub(super) fn has_ports(&self) -> bool {
        match self.transport {
            Transport::Any | Transport::MutableSet => false,
            Transport::Several => true,
            Transport::One(protocol) => matches!(
                Protocol(protocol),
                Protocol::TCP | Protocol::UDP | Protocol::SCTP | Protocol::DCCP | Protocol::UDPLITE
            ),
        }
    }

    /// Writes a value to a 16-byte register and advances to the next one.
    fn immediate(&mut self, word: &mut u32, value: &[u8]) -> Register {
        let into = register(*word);
        self.push(&Immediate::value(into, value));
        *word += 4;
        into
    }

    fn put_ports(
        &mut self,
        word: &mut u32,
        what: &'static str,
        Ports { first, last }: Ports,
    ) -> (Option<Register>, Option<Register>) {
        if !self.has_ports() {
            self.fail(BuildError::NoTransport { what });
        }
        if last.is_some_and(|last| last < first) {
            self.fail(BuildError::Range { what });
        }
        let min = self.immediate(word, &first.to_be_bytes());
        let max = last.map(|last| self.immediate(word, &last.to_be_bytes()));
        (Some(min), max)
    }

    /// Changes the connection's source to the address of the outgoing interface. `flags` is
    /// [`NatRangeFlags::PROTO_RANDOM`], [`PROTO_RANDOM_FULLY`](NatRangeFlags::PROTO_RANDOM_FULLY),
    /// [`PERSISTENT`](NatRangeFlags::PERSISTENT), or empty.
    ///
    /// ```
    /// use chainwright::nft::build::Build;
    /// use chainwright::nft::expr::NatRangeFlags;
    /// use chainwright::nft::Family;
    ///
    /// // oifname "eth*" masquerade fully-random
    /// let rule = Build::new(Family::INET, "nat", "postrouting")
    ///     .oifname("eth*")
    ///     .masquerade(NatRangeFlags::PROTO_RANDOM_FULLY)?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn masquerade(mut self, flags: NatRangeFlags) -> Result<Rule<'a>, BuildError> {
        self.has_nat("masquerade");
        self.push(&Masq {
            flags: (!flags.is_empty()).then_some(flags),
            ..Masq::default()
        });
        self.finish()
    }

    /// Like [`masquerade`](Self::masquerade), with ports: `masquerade to :1024-65535`.
    ///
    /// # Errors
    /// Same as [`dnat`](Self::dnat).
    pub fn masquerade_to(
        mut self,
        ports: impl Into<Ports>,
        flags: NatRangeFlags,
    ) -> Result<Rule<'a>, BuildError> {
        self.has_nat("masquerade");
        let (proto_min, proto_max) = self.put_ports(&mut 0, "masquerade", ports.into());
        self.push(&Masq {
            flags: Some(flags | NatRangeFlags::PROTO_SPECIFIED),
            proto_min,
            proto_max,
            ..Masq::default()
        });
        self.finish()
    }

    /// Changes the connection's destination to this machine and keeps the port.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn redirect(mut self, flags: NatRangeFlags) -> Result<Rule<'a>, BuildError> {
        self.has_nat("redirect");
        self.push(&Redir {
            flags: (!flags.is_empty()).then_some(flags),
            ..Redir::default()
        });
        self.finish()
    }

    /// Changes the connection's destination to this machine and these ports: `redirect to :8080`.
    ///
    /// # Errors
    /// Same as [`dnat`](Self::dnat).
    pub fn redirect_to(
        mut self,
        ports: impl Into<Ports>,
        flags: NatRangeFlags,
    ) -> Result<Rule<'a>, BuildError> {
        self.has_nat("redirect");
        let (proto_min, proto_max) = self.put_ports(&mut 0, "redirect", ports.into());
        self.push(&Redir {
            flags: Some(flags | NatRangeFlags::PROTO_SPECIFIED),
            proto_min,
            proto_max,
            ..Redir::default()
        });
        self.finish()
    }
}
