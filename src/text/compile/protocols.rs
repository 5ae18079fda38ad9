//! What is known of the packets that a rule goes on with, and the matches that a field asks for: `tcp dport 22` goes for
//! packets of TCP alone, so the rule asks for `meta l4proto tcp` first.

use crate::nft::Family;
use crate::nft::expr::{ExthdrOp, MetaKey, PayloadBase};
use crate::text::headers::{self, Protocol};
use crate::text::syntax::{Expr, Payload, Value};
use crate::text::tunnels::Tunnel;

/// The length of an Ethernet header, and of a tag of a VLAN, in bits.
const ETHERNET: u32 = 112;
const TAG: u32 = 32;

/// What is known of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Unknown,
    Is(&'static Protocol),
    /// It is one that has no fields of its own.
    Other,
    /// It is one of several.
    Several,
}

/// What is known of the packets.
#[derive(Debug, Clone)]
pub(super) struct Protocols {
    family: Family,
    /// Protocols of the link layer, outermost first.
    link: Vec<&'static Protocol>,
    network: Layer,
    transport: Layer,
    /// The type of ICMP.
    icmp_type: Option<Option<u128>>,
    /// Whether the network layer is known by the type of the frame.
    by_type: bool,
}

/// A match that a field asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Needed {
    /// The key is this number.
    Meta(MetaKey, u128),
    /// The field of this protocol that tells what is above it is this number.
    Field(&'static Protocol, &'static str, u128),
    /// It is one of these numbers.
    OneOf(&'static Protocol, &'static str, &'static [u128]),
}

/// Why packets cannot have a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conflict {
    /// They are of another protocol.
    Protocol {
        known: &'static str,
        wanted: &'static str,
    },
    /// They are messages of ICMP of a type that has no such field.
    IcmpType(&'static str),
    /// Nothing was asked about what carries the tunnel that it is in.
    Unsaid(&'static Tunnel),
}

impl Protocols {
    pub(super) fn new(family: Family) -> Self {
        let network = match family {
            Family::IP => Layer::Is(&headers::IP),
            Family::IP6 => Layer::Is(&headers::IP6),
            Family::ARP => Layer::Is(&headers::ARP),
            _ => Layer::Unknown,
        };
        Self {
            family,
            link: match family {
                Family::BRIDGE => vec![&headers::ETHER],
                _ => Vec::new(),
            },
            network,
            transport: Layer::Unknown,
            icmp_type: None,
            by_type: false,
        }
    }

    /// What is known of packets inside a tunnel: frames are looked at as in the bridge's tables, others as on a device.
    pub(super) fn inside(tunnel: &Tunnel) -> Self {
        Self::new(match tunnel.has_frames {
            true => Family::BRIDGE,
            false => Family::NETDEV,
        })
    }

    /// The version of IP, as far as it is known.
    pub(super) fn version(&self) -> Option<Family> {
        match self.network {
            Layer::Is(protocol) if *protocol == headers::IP => Some(Family::IP),
            Layer::Is(protocol) if *protocol == headers::IP6 => Some(Family::IP6),
            _ => None,
        }
    }

    /// Whether it is known that packets have ports.
    pub(super) fn has_transport(&self) -> bool {
        self.transport != Layer::Unknown
    }

    /// The match that comes before all others that a field still needs; `None` if nothing is missing.
    pub(super) fn needed(
        &self,
        wanted: &'static Protocol,
        field: &'static str,
    ) -> Result<Option<Needed>, Conflict> {
        match wanted.base {
            PayloadBase::LINK => self.link_needed(wanted),
            PayloadBase::NETWORK => self.network_needed(wanted, false),
            PayloadBase::TRANSPORT => self.transport_needed(wanted, field),
            _ => Ok(None),
        }
    }

    fn link_needed(&self, wanted: &'static Protocol) -> Result<Option<Needed>, Conflict> {
        match self.link.last() {
            None => Ok(Some(Needed::Meta(MetaKey::IIFTYPE, 1))),
            Some(_) if wanted.name == "vlan" => match self.link.contains(&wanted) {
                true => Ok(None),
                false if self.network != Layer::Unknown && self.by_type => {
                    Err(self.conflict(self.network, wanted))
                }
                false => Ok(Some(Needed::Field(&headers::ETHER, "type", 0x8100))),
            },
            Some(_) => Ok(None),
        }
    }

    /// `is_implied`: it is not a field of it that is asked for, but what only packets of it have.
    fn network_needed(
        &self,
        wanted: &'static Protocol,
        is_implied: bool,
    ) -> Result<Option<Needed>, Conflict> {
        match self.network {
            Layer::Is(known) if known == wanted => return Ok(None),
            Layer::Unknown => {}
            known => return Err(self.conflict(known, wanted)),
        }
        let number = match wanted.name {
            "ip" => 0x0800,
            "ip6" => 0x86dd,
            _ => 0x0806,
        };
        let by_type = |protocol| Needed::Field(protocol, "type", number);
        Ok(Some(match (self.family, self.link.last()) {
            (_, Some(tag)) if tag.name == "vlan" => by_type(&headers::VLAN),
            (Family::BRIDGE, _) if is_implied || wanted.name == "arp" => by_type(&headers::ETHER),
            (Family::BRIDGE, _) => Needed::Meta(MetaKey::PROTOCOL, number),
            (_, Some(_)) => by_type(&headers::ETHER),
            (Family::INET, _) if wanted.name == "ip" => Needed::Meta(MetaKey::NFPROTO, 2),
            (Family::INET, _) if wanted.name == "ip6" => Needed::Meta(MetaKey::NFPROTO, 10),
            (Family::INET, _) => {
                return Err(Conflict::Protocol {
                    known: "inet",
                    wanted: wanted.name,
                });
            }
            _ => Needed::Meta(MetaKey::PROTOCOL, number),
        }))
    }

    fn transport_needed(
        &self,
        wanted: &'static Protocol,
        field: &'static str,
    ) -> Result<Option<Needed>, Conflict> {
        if wanted.name == "th" {
            return Ok(None);
        }
        match self.transport {
            Layer::Is(known) if known == wanted => return self.icmp_needed(wanted, field),
            Layer::Unknown | Layer::Several => {}
            known => return Err(self.conflict(known, wanted)),
        }
        let below: Option<&'static Protocol> = match wanted.name {
            "icmp" | "igmp" => Some(&headers::IP),
            "icmpv6" => Some(&headers::IP6),
            _ => None,
        };
        if let Some(below) = below
            && let Some(needed) = self.network_needed(below, true)?
        {
            return Ok(Some(needed));
        }
        let number = headers::number_above_ip(wanted);
        Ok(Some(Needed::Meta(MetaKey::L4PROTO, number)))
    }

    /// The type of ICMP that has a field.
    fn icmp_needed(
        &self,
        wanted: &'static Protocol,
        field: &'static str,
    ) -> Result<Option<Needed>, Conflict> {
        let types: &'static [u128] = match (wanted.name, field) {
            ("icmp", "id" | "sequence") => &[8, 0],
            ("icmp", "gateway") => &[5],
            ("icmp", "mtu") => &[3],
            ("icmpv6", "id" | "sequence") => &[128, 129],
            ("icmpv6", "mtu") => &[2],
            ("icmpv6", "parameter-problem") => &[4],
            ("icmpv6", "max-delay") => &[130],
            ("icmpv6", "taddr") => headers::WITH_TADDR,
            ("icmpv6", "daddr") => &[137],
            _ => return Ok(None),
        };
        match (self.icmp_type, types) {
            (Some(Some(known)), types) if !types.contains(&known) => Err(Conflict::IcmpType(field)),
            (Some(_), _) => Ok(None),
            (None, [one]) => Ok(Some(Needed::Field(wanted, "type", *one))),
            (None, several) => Ok(Some(Needed::OneOf(wanted, "type", several))),
        }
    }

    /// The match that an option or an extension header needs.
    pub(super) fn needed_by_option(&self, kind: ExthdrOp) -> Result<Option<Needed>, Conflict> {
        match kind {
            ExthdrOp::IPV4 => self.network_needed(&headers::IP, true),
            ExthdrOp::IPV6 => self.network_needed(&headers::IP6, true),
            _ => Ok(None),
        }
    }

    /// The match that what is inside a tunnel needs outside of it.
    pub(super) fn needed_by_tunnel(
        &self,
        tunnel: &'static Tunnel,
    ) -> Result<Option<Needed>, Conflict> {
        if tunnel.is_asked_for() {
            return self.transport_needed(tunnel.below, "");
        }
        match self.transport {
            Layer::Several => Ok(None),
            Layer::Is(known) if known == tunnel.below => Ok(None),
            Layer::Unknown => Err(Conflict::Unsaid(tunnel)),
            known => Err(self.conflict(known, tunnel.below)),
        }
    }

    fn conflict(&self, known: Layer, wanted: &'static Protocol) -> Conflict {
        let known = match known {
            Layer::Is(protocol) => protocol.name,
            _ => "another protocol",
        };
        Conflict::Protocol {
            known,
            wanted: wanted.name,
        }
    }

    /// Where the fields of a protocol begin, in bits from its base.
    pub(super) fn start_of(&self, protocol: &Protocol) -> u32 {
        match protocol.name {
            "vlan" => {
                let tags = self.link.iter().filter(|link| link.name == "vlan").count() as u32;
                ETHERNET + TAG * tags.saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// Takes in that a field is one of several values: which protocol it is, is not known by that, but that it is one.
    pub(super) fn learn_several(&mut self, left: &Expr, one: &Value) {
        let (transport, icmp_type) = (self.transport, self.icmp_type);
        self.learn(left, one);
        if self.transport != transport {
            self.transport = Layer::Several;
        }
        if self.icmp_type != icmp_type {
            self.icmp_type = Some(None);
        }
    }

    /// Takes in that a field is one value.
    pub(super) fn learn(&mut self, left: &Expr, right: &Value) {
        let number = right.number;
        match left {
            Expr::Meta(MetaKey::IIFTYPE | MetaKey::OIFTYPE)
                if number == 1 && self.link.is_empty() =>
            {
                self.link.push(&headers::ETHER);
            }
            Expr::Meta(MetaKey::NFPROTO) => {
                self.network = match number {
                    2 => Layer::Is(&headers::IP),
                    10 => Layer::Is(&headers::IP6),
                    _ => self.network,
                };
            }
            // Packets of the inet family have one by their hook.
            Expr::Meta(MetaKey::PROTOCOL) if self.family != Family::INET => self.learn_type(number),
            // It says nothing about the type of the frame, which may have tags.
            Expr::Inside(_, MetaKey::PROTOCOL) => {
                let was_by_type = self.by_type;
                self.learn_type(number);
                self.by_type = was_by_type;
            }
            Expr::Meta(MetaKey::L4PROTO) | Expr::Inside(_, MetaKey::L4PROTO) => {
                self.learn_transport(number);
            }
            Expr::Payload(Payload {
                field: Some((protocol, field)),
                ..
            }) => {
                let field = &protocol.fields[*field];
                if protocol.base == PayloadBase::TRANSPORT && field.name == "type" {
                    self.icmp_type = Some(Some(number));
                }
                if protocol.key != Some(field.name) {
                    return;
                }
                match protocol.base {
                    PayloadBase::LINK => self.learn_type(number),
                    PayloadBase::NETWORK => self.learn_transport(number),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn learn_type(&mut self, number: u128) {
        match headers::above_ethernet(number) {
            Some(above) if above.base == PayloadBase::LINK => self.link.push(above),
            Some(above) => {
                self.network = Layer::Is(above);
                self.by_type = true;
            }
            None => {}
        }
    }

    fn learn_transport(&mut self, number: u128) {
        self.transport = match headers::above_ip(number) {
            Some(above) => Layer::Is(above),
            None => Layer::Other,
        };
    }
}
