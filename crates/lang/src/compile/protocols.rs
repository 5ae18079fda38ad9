//! Protocols established by a rule's matches, and the matches that a field requires. `tcp dport 22` only makes sense
//! for TCP, so nft matches `meta l4proto tcp` before it.

use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Payload, Value};
use crate::tunnels::Tunnel;
use chainwright::nft::Family;
use chainwright::nft::expr::{ExthdrOp, MetaKey, PayloadBase};

/// Lengths of an Ethernet header and a VLAN tag, in bits.
const ETHERNET: u32 = 112;
const TAG: u32 = 32;

/// State of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    Unknown,
    Is(&'static Protocol),
    /// A protocol without fields.
    Other,
    /// One of these protocols; any protocol if the list is empty.
    Several(Vec<&'static Protocol>),
}

impl Layer {
    /// Returns `true` if a further match can establish this protocol.
    fn may_be(&self, protocol: &'static Protocol) -> bool {
        match self {
            Self::Unknown => true,
            Self::Several(each) => each.is_empty() || each.contains(&protocol),
            Self::Is(_) | Self::Other => false,
        }
    }

    /// Combines alternatives.
    fn one_of(each: Vec<Self>) -> Self {
        match &each[..] {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
            each if each.contains(&Self::Unknown) => Self::Several(Vec::new()),
            each => Self::Several(
                each.iter()
                    .filter_map(|layer| match layer {
                        Self::Is(protocol) => Some(*protocol),
                        _ => None,
                    })
                    .collect(),
            ),
        }
    }
}

/// Protocols established for the packets.
#[derive(Debug, Clone)]
pub(crate) struct Protocols {
    family: Family,
    /// Link layer protocols, outermost first.
    link: Vec<&'static Protocol>,
    network: Layer,
    transport: Layer,
    /// Possible ICMP types; empty if a match of the type did not establish them.
    icmp_types: Option<Vec<u128>>,
    /// Whether the network layer is established by the ether type.
    by_type: bool,
    /// Link layer protocols whose type is matched with a number without fields.
    other_types: Vec<&'static Protocol>,
    /// Whether the packets are inside a tunnel.
    is_inside: bool,
}

/// Match that a field requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The key equals this number.
    Meta(MetaKey, u128),
    /// The protocol's next-protocol field equals this number.
    Field(&'static Protocol, &'static str, u128),
    /// The field is one of these numbers.
    OneOf(&'static Protocol, &'static str, &'static [u128]),
}

/// Reason why packets cannot have a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// They have another protocol; `None` if it has no fields.
    Protocol {
        known: Option<&'static str>,
        wanted: &'static str,
    },
    /// They have an ICMP type without this field.
    IcmpType(&'static str),
    /// The rule does not match the tunnel's carrier protocol.
    MissingCarrier(&'static Tunnel),
}

impl Protocols {
    pub(crate) fn new(family: Family) -> Self {
        let network = match family {
            Family::IP => Layer::Is(&protocols::IP),
            Family::IP6 => Layer::Is(&protocols::IP6),
            Family::ARP => Layer::Is(&protocols::ARP),
            _ => Layer::Unknown,
        };
        Self {
            family,
            link: match family {
                Family::BRIDGE => vec![&protocols::ETHER],
                _ => Vec::new(),
            },
            network,
            transport: Layer::Unknown,
            icmp_types: None,
            by_type: false,
            other_types: Vec::new(),
            is_inside: false,
        }
    }

    /// Creates the state inside a tunnel. Frames are treated as in bridge tables, packets as in netdev tables.
    pub(crate) fn inside(tunnel: &Tunnel) -> Self {
        let family = match tunnel.has_frames {
            true => Family::BRIDGE,
            false => Family::NETDEV,
        };
        Self {
            is_inside: true,
            ..Self::new(family)
        }
    }

    /// Returns the IP version, if established.
    pub(crate) fn version(&self) -> Option<Family> {
        match self.network {
            Layer::Is(protocol) if *protocol == protocols::IP => Some(Family::IP),
            Layer::Is(protocol) if *protocol == protocols::IP6 => Some(Family::IP6),
            _ => None,
        }
    }

    /// Returns `true` if the transport layer is established.
    pub(crate) fn has_transport(&self) -> bool {
        self.transport != Layer::Unknown
    }

    /// Returns the first match that a field still requires; `None` if all are present.
    pub(crate) fn needed(
        &self,
        wanted: &'static Protocol,
        field: &'static str,
    ) -> Result<Option<Needed>, Conflict> {
        let needed = match wanted.base {
            PayloadBase::LINK => self.link_needed(wanted),
            PayloadBase::NETWORK => self.network_needed(wanted, false),
            PayloadBase::TRANSPORT => self.transport_needed(wanted, field),
            _ => Ok(None),
        }?;
        match &needed {
            // The rule matches another type of the frame already.
            Some(Needed::Field(protocol, "type", _)) if self.other_types.contains(protocol) => {
                Err(self.conflict(&Layer::Other, wanted))
            }
            _ => Ok(needed),
        }
    }

    fn link_needed(&self, wanted: &'static Protocol) -> Result<Option<Needed>, Conflict> {
        match self.link.last() {
            None => Ok(Some(Needed::Meta(MetaKey::IIFTYPE, 1))),
            Some(_) if wanted.name == "vlan" => match self.link.contains(&wanted) {
                true => Ok(None),
                false if self.by_type && !self.network.may_be(wanted) => {
                    Err(self.conflict(&self.network, wanted))
                }
                false => Ok(Some(Needed::Field(&protocols::ETHER, "type", 0x8100))),
            },
            Some(_) => Ok(None),
        }
    }

    /// Checks that packets can have this IP version.
    pub(crate) fn fits(&self, version: &'static Protocol) -> Result<(), Conflict> {
        match self.network == Layer::Is(version) || self.network.may_be(version) {
            true => Ok(()),
            false => Err(self.conflict(&self.network, version)),
        }
    }

    /// Returns the missing match of a network protocol. `is_implied` means that no field of it is used, but something
    /// that only its packets have.
    fn network_needed(
        &self,
        wanted: &'static Protocol,
        is_implied: bool,
    ) -> Result<Option<Needed>, Conflict> {
        match &self.network {
            Layer::Is(known) if *known == wanted => return Ok(None),
            known if known.may_be(wanted) => {}
            known => return Err(self.conflict(known, wanted)),
        }
        let may_have_tag =
            matches!(&self.network, Layer::Several(each) if each.contains(&&protocols::VLAN));
        let number = match wanted.name {
            "ip" => 0x0800,
            "ip6" => 0x86dd,
            _ => 0x0806,
        };
        let by_type = |protocol| Needed::Field(protocol, "type", number);
        Ok(Some(match (self.family, self.link.last()) {
            (_, Some(tag)) if tag.name == "vlan" => by_type(&protocols::VLAN),
            (Family::BRIDGE, _) if !may_have_tag && (is_implied || wanted.name == "arp") => {
                by_type(&protocols::ETHER)
            }
            (Family::BRIDGE, _) => Needed::Meta(MetaKey::PROTOCOL, number),
            (_, Some(_)) if !may_have_tag => by_type(&protocols::ETHER),
            (Family::INET, _) if wanted.name == "ip" => Needed::Meta(MetaKey::NFPROTO, 2),
            (Family::INET, _) if wanted.name == "ip6" => Needed::Meta(MetaKey::NFPROTO, 10),
            (Family::INET, _) => {
                return Err(Conflict::Protocol {
                    known: Some("inet"),
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
        match &self.transport {
            Layer::Is(known) if *known == wanted => return self.icmp_needed(wanted, field),
            known if known.may_be(wanted) => {}
            known => return Err(self.conflict(known, wanted)),
        }
        // Only IP packets have transport fields in the kernel. Inside tunnels, nft accepts such rules, although they
        // match nothing.
        let is_ip = |known| self.network == Layer::Is(known) || self.network.may_be(known);
        if !self.is_inside && !is_ip(&protocols::IP) && !is_ip(&protocols::IP6) {
            return Err(self.conflict(&self.network, wanted));
        }
        let below: Option<&'static Protocol> = match wanted.name {
            "icmp" | "igmp" => Some(&protocols::IP),
            "icmpv6" => Some(&protocols::IP6),
            _ => None,
        };
        // After a match of the other IP version, nft only adds the transport protocol.
        let other = |known: &Protocol| known.name == "ip" || known.name == "ip6";
        let is_other = matches!(&self.network, Layer::Is(known) if other(known));
        if let Some(below) = below
            && !is_other
            && let Some(needed) = self.network_needed(below, true)?
        {
            return Ok(Some(needed));
        }
        let number = protocols::number_above_ip(wanted);
        Ok(Some(Needed::Meta(MetaKey::L4PROTO, number)))
    }

    /// Returns the missing match of the ICMP type that a field requires.
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
            ("icmpv6", "taddr") => protocols::WITH_TADDR,
            ("icmpv6", "daddr") => &[137],
            _ => return Ok(None),
        };
        let known = self.icmp_types.as_deref();
        match (known.unwrap_or_default(), types) {
            ([], _) if known.is_some() => Ok(None),
            (known @ [_, ..], types) if known.iter().all(|known| types.contains(known)) => Ok(None),
            (known @ [_, ..], types) if !known.iter().any(|known| types.contains(known)) => {
                Err(Conflict::IcmpType(field))
            }
            (_, [one]) => Ok(Some(Needed::Field(wanted, "type", *one))),
            (_, several) => Ok(Some(Needed::OneOf(wanted, "type", several))),
        }
    }

    /// Returns the missing match for an option or extension header.
    pub(crate) fn needed_by_option(&self, kind: ExthdrOp) -> Result<Option<Needed>, Conflict> {
        match kind {
            ExthdrOp::IPV4 => self.network_needed(&protocols::IP, true),
            ExthdrOp::IPV6 => self.network_needed(&protocols::IP6, true),
            _ => Ok(None),
        }
    }

    /// Returns the missing match outside a tunnel for its inner packet.
    pub(crate) fn needed_by_tunnel(
        &self,
        tunnel: &'static Tunnel,
    ) -> Result<Option<Needed>, Conflict> {
        if tunnel.has_implicit_carrier() {
            return self.transport_needed(tunnel.below, "");
        }
        match &self.transport {
            Layer::Is(known) if *known == tunnel.below => Ok(None),
            Layer::Unknown => Err(Conflict::MissingCarrier(tunnel)),
            known if known.may_be(tunnel.below) => Ok(None),
            known => Err(self.conflict(known, tunnel.below)),
        }
    }

    fn conflict(&self, known: &Layer, wanted: &'static Protocol) -> Conflict {
        let known = match known {
            Layer::Is(protocol) => Some(protocol.name),
            _ => None,
        };
        Conflict::Protocol {
            known,
            wanted: wanted.name,
        }
    }

    /// Returns the offset of a protocol's header in bits from its base.
    pub(crate) fn start_of(&self, protocol: &Protocol) -> u32 {
        match protocol.name {
            "vlan" => {
                let tags = self.link.iter().filter(|link| link.name == "vlan").count() as u32;
                ETHERNET + TAG * tags.saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// Returns `true` if the values of a field establish a protocol or ICMP type.
    pub(crate) fn establishes_protocols(field: &Expr) -> bool {
        match field {
            Expr::Meta(key) | Expr::Inside(_, key) => matches!(
                *key,
                MetaKey::IIFTYPE | MetaKey::NFPROTO | MetaKey::PROTOCOL | MetaKey::L4PROTO
            ),
            Expr::Payload(payload) => payload.field.is_some_and(|(protocol, field)| {
                let name = protocol.fields[field].name;
                protocol.key == Some(name) || name == "type"
            }),
            _ => false,
        }
    }

    /// Records a match of several values; `or_other` if others are possible.
    pub(crate) fn record_matches(&mut self, left: &Expr, values: &[Value], or_other: bool) {
        let each = values.iter().map(|value| {
            let mut one = self.clone();
            one.record_match(left, value);
            one
        });
        let mut each: Vec<Self> = each.collect();
        if or_other {
            each.push(self.clone());
        }
        let Some(first) = each.first() else {
            return;
        };
        let have_same_tags = each.iter().all(|one| one.link.len() == first.link.len());
        let link = match have_same_tags {
            true => first.link.clone(),
            false => self.link.clone(),
        };
        let network = each.iter().map(|one| match have_same_tags {
            false if one.link.len() > link.len() => Layer::Is(&protocols::VLAN),
            _ => one.network.clone(),
        });
        let network = Layer::one_of(network.collect());
        let transport = each.iter().map(|one| one.transport.clone());
        let transport = Layer::one_of(transport.collect());
        let types = each.iter().map(|one| one.icmp_types.as_deref());
        let types = types.collect::<Option<Vec<_>>>();
        let types = types.map(|types| types.concat());
        let by_type = each.iter().any(|one| one.by_type);
        (self.link, self.network, self.by_type) = (link, network, by_type);
        (self.transport, self.icmp_types) = (transport, types);
    }

    /// Records a match of one value.
    pub(crate) fn record_match(&mut self, left: &Expr, right: &Value) {
        let number = right.number;
        match left {
            Expr::Meta(MetaKey::IIFTYPE) if number == 1 && self.link.is_empty() => {
                self.link.push(&protocols::ETHER);
            }
            Expr::Meta(MetaKey::NFPROTO) => match number {
                2 => self.network = Layer::Is(&protocols::IP),
                10 => self.network = Layer::Is(&protocols::IP6),
                _ => self.network = Layer::Other,
            },
            // In the inet family, the hook determines it. It does not describe the frame, which may be tagged. In
            // other families, the family determines it.
            Expr::Meta(MetaKey::PROTOCOL)
                if !matches!(self.family, Family::BRIDGE | Family::NETDEV) => {}
            Expr::Meta(MetaKey::PROTOCOL) | Expr::Inside(_, MetaKey::PROTOCOL) => {
                self.network = protocols::above_ethernet(number).map_or(Layer::Other, Layer::Is);
            }
            Expr::Meta(MetaKey::L4PROTO) | Expr::Inside(_, MetaKey::L4PROTO) => {
                self.set_transport(protocols::above_ip(number).map_or(Layer::Other, Layer::Is));
            }
            Expr::Payload(Payload {
                field: Some((protocol, field)),
                ..
            }) => {
                let field = &protocol.fields[*field];
                if protocol.base == PayloadBase::TRANSPORT && field.name == "type" {
                    self.icmp_types = Some(vec![number]);
                }
                if protocol.key != Some(field.name) {
                    return;
                }
                match protocol.base {
                    PayloadBase::LINK => self.set_protocol_above_link(protocol, number),
                    PayloadBase::NETWORK => {
                        if let Some(above) = protocols::above_ip(number) {
                            self.set_transport(Layer::Is(above));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn set_protocol_above_link(&mut self, link: &'static Protocol, number: u128) {
        match protocols::above_ethernet(number) {
            Some(above) if above.base == PayloadBase::LINK => {
                self.link.push(above);
                if let Layer::Several(_) = self.network {
                    self.network = Layer::Unknown;
                }
            }
            Some(above) => {
                self.network = Layer::Is(above);
                self.by_type = true;
            }
            None => self.other_types.push(link),
        }
    }

    /// Establishes the transport layer. After matches of two protocols, no field fits.
    fn set_transport(&mut self, layer: Layer) {
        let is_possible = match &layer {
            Layer::Is(protocol) => self.transport.may_be(protocol) || self.transport == layer,
            _ => false,
        };
        self.transport = match is_possible {
            true => layer,
            false => Layer::Other,
        };
    }
}
