//! Protocols that a rule's matches have established so far, and which of these matches are implicit.
//!
//! nft adds a protocol match before the match of a field (`tcp dport 22` implies `meta l4proto tcp`) and omits it in
//! listings. The kernel does not store which matches are implicit: a protocol match counts as implicit if a field of
//! that protocol follows.

use chainwright::nft::Family;
use chainwright::nft::expr::{MetaKey, PayloadBase};

use crate::protocols::{self, Protocol};
use crate::syntax::{Expr, Payload, Relation, Statement, Value};
use crate::tunnels::Tunnel;

/// Layer of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Link,
    Network,
    Transport,
}

impl Layer {
    const fn of(base: PayloadBase) -> Option<Self> {
        match base {
            PayloadBase::LINK => Some(Self::Link),
            PayloadBase::NETWORK => Some(Self::Network),
            PayloadBase::TRANSPORT => Some(Self::Transport),
            _ => None,
        }
    }
}

/// Protocols established for the packets that a rule still matches.
#[derive(Debug)]
pub(crate) struct Context {
    family: Family,
    /// Link layer protocols, with their offsets in bits.
    link: Vec<(&'static Protocol, u32)>,
    pub(crate) network: Option<&'static Protocol>,
    pub(crate) transport: Option<&'static Protocol>,
    /// For each layer, the index of the statement that established its protocol, if it may be implicit.
    established_by: [Option<usize>; 3],
    /// Index of a match of the protocol that all packets of the family have.
    redundant: Option<usize>,
    /// Whether two transport protocols were matched.
    has_two_transports: bool,
    /// ICMP type, with the index of the statement that established it, if that may be implicit.
    icmp_type: Option<(Option<usize>, u128)>,
    /// Whether several ICMP types are possible.
    icmp_types: bool,
    /// Whether the current statement also reads the frame, which implies that there is one.
    is_of_frame: bool,
    /// Tunnel around the packets.
    pub(crate) tunnel: Option<&'static Tunnel>,
    /// Whether a match allows several transport protocols.
    pub(crate) may_be_several: bool,
    /// Whether the network or transport layer was established twice, so that a removed match might not be redundant.
    pub(crate) is_established_twice: bool,
    /// Whether an ether type match established the network layer.
    pub(crate) is_by_type: bool,
    /// Whether the network and transport layers were established at all.
    pub(crate) was_established: [bool; 2],
    /// Whether there was a match of the ICMP type.
    has_icmp_type: bool,
}

impl Context {
    pub(crate) fn new(family: Family) -> Self {
        let network = match family {
            Family::IP => Some(&protocols::IP),
            Family::IP6 => Some(&protocols::IP6),
            Family::ARP => Some(&protocols::ARP),
            _ => None,
        };
        let link = match family {
            Family::BRIDGE => vec![(&protocols::ETHER, 0)],
            _ => Vec::new(),
        };
        Self {
            link,
            network,
            ..Self::without_protocols(family)
        }
    }

    /// Creates a context without any protocol.
    pub(crate) const fn without_protocols(family: Family) -> Self {
        Self {
            family,
            link: Vec::new(),
            network: None,
            transport: None,
            established_by: [None; 3],
            redundant: None,
            has_two_transports: false,
            icmp_type: None,
            icmp_types: false,
            is_of_frame: false,
            tunnel: None,
            may_be_several: false,
            is_established_twice: false,
            is_by_type: false,
            was_established: [false; 2],
            has_icmp_type: false,
        }
    }

    pub(crate) const fn set_of_frame(&mut self, is_of_frame: bool) {
        self.is_of_frame = is_of_frame;
    }

    /// Returns the field at this position.
    pub(crate) fn field(
        &self,
        base: PayloadBase,
        offset: u32,
        bits: u32,
    ) -> Option<(&'static Protocol, usize)> {
        let (protocol, offset) = self.protocol(base, offset)?;
        let fits = |field: &protocols::Field| field.offset == offset && field.bits == bits;
        Some((protocol, self.field_of(protocol, fits)?))
    }

    /// Returns a matching field of a protocol. ICMP fields must exist in the ICMP type.
    pub(crate) fn field_of(
        &self,
        protocol: &Protocol,
        fits: impl Fn(&protocols::Field) -> bool,
    ) -> Option<usize> {
        let established_by = self.icmp_type.map(|(_, established_by)| established_by);
        // `taddr` requires a match of a type that has it.
        let is_available = |field: &protocols::Field| match (protocol.name, field.name) {
            ("icmpv6", "taddr") => {
                self.icmp_types
                    || established_by.is_some_and(|established_by| {
                        protocols::WITH_TADDR.contains(&established_by)
                    })
            }
            // For these fields nft would add the ICMP type match outside the tunnel.
            ("icmp" | "icmpv6", "id" | "sequence") => self.tunnel.is_none() || self.has_icmp_type,
            _ => true,
        };
        let find = |is: &dyn Fn(Option<u128>) -> bool| {
            protocol.fields.iter().position(|field| {
                fits(field) && is_available(field) && is(implied_type(protocol, field.name))
            })
        };
        let of_type = find(&|implied| implied.is_some() && implied == established_by);
        of_type.or_else(|| find(&|implied| implied.is_none()))
    }

    /// Returns the protocol at this position and the offset within its header.
    pub(crate) fn protocol(
        &self,
        base: PayloadBase,
        offset: u32,
    ) -> Option<(&'static Protocol, u32)> {
        match base {
            PayloadBase::LINK => {
                let (protocol, start) = self.link.iter().rfind(|(_, start)| *start <= offset)?;
                Some((protocol, offset - start))
            }
            PayloadBase::NETWORK => Some((self.network?, offset)),
            PayloadBase::TRANSPORT => Some((self.transport.unwrap_or(&protocols::TH), offset)),
            PayloadBase::TUNNEL => {
                let own = self.tunnel?.own;
                (own.base == PayloadBase::TUNNEL).then_some((own, offset))
            }
            _ => None,
        }
    }

    /// Returns `true` if nft has syntax for a protocol's fields: inside a tunnel only for the tunnel's inner protocols.
    fn has_words(&self, protocol: &Protocol) -> bool {
        let is_inside = |tunnel: &Tunnel| tunnel.protocols().any(|known| known == protocol);
        self.tunnel.is_none_or(is_inside)
    }

    fn above_ip(&self, number: u128) -> Option<&'static Protocol> {
        protocols::above_ip(number).filter(|above| self.has_words(above))
    }

    /// Returns the index of the statement that established a layer and may be implicit.
    pub(crate) const fn established_by(&self, layer: Layer) -> Option<usize> {
        self.established_by[layer as usize]
    }

    /// Returns `true` if two VLAN tags were established at the same offset.
    pub(crate) fn has_same_tags(&self) -> bool {
        self.link
            .iter()
            .enumerate()
            .any(|(index, one)| self.link[..index].iter().any(|other| other.1 == one.1))
    }

    /// Returns `true` if a match established that frames are tagged.
    pub(crate) fn has_tags(&self) -> bool {
        self.link
            .iter()
            .any(|(protocol, _)| protocol.name == "vlan")
    }

    /// Returns `true` if this position precedes the innermost link layer protocol. nft does not look up fields there
    /// for writes.
    pub(crate) fn is_outside(&self, base: PayloadBase, offset: u32) -> bool {
        base == PayloadBase::LINK && self.link.last().is_some_and(|(_, start)| offset < *start)
    }

    /// Returns `true` if the protocol of this base is established.
    pub(crate) fn is_known(&self, base: PayloadBase) -> bool {
        match base {
            PayloadBase::LINK => !self.link.is_empty(),
            PayloadBase::NETWORK => self.network.is_some(),
            PayloadBase::TRANSPORT => self.transport.is_some(),
            PayloadBase::TUNNEL => self.tunnel.is_some(),
            _ => false,
        }
    }

    /// Records a match with its statement index.
    pub(crate) fn record_match(&mut self, left: &Expr, right: &Value, statement: usize) {
        let number = right.number;
        let established_by = match left {
            Expr::Meta(MetaKey::IIFTYPE) if number == 1 => {
                self.link = vec![(&protocols::ETHER, 0)];
                Layer::Link
            }
            Expr::Meta(MetaKey::NFPROTO) => {
                self.network = match number {
                    2 => Some(&protocols::IP),
                    10 => Some(&protocols::IP6),
                    _ => None,
                };
                Layer::Network
            }
            Expr::Meta(MetaKey::PROTOCOL)
                if matches!(self.family, Family::IP | Family::IP6 | Family::ARP) =>
            {
                if protocols::above_ethernet(number) == Self::new(self.family).network {
                    self.redundant = Some(statement);
                }
                return;
            }
            Expr::Meta(MetaKey::PROTOCOL) | Expr::Inside(_, MetaKey::PROTOCOL) => {
                self.network = protocols::above_ethernet(number).filter(|protocol| {
                    protocol.base == PayloadBase::NETWORK && self.has_words(protocol)
                });
                Layer::Network
            }
            Expr::Meta(MetaKey::L4PROTO) | Expr::Inside(_, MetaKey::L4PROTO) => {
                if !self.establish_transport(self.above_ip(number)) {
                    return;
                }
                Layer::Transport
            }
            Expr::Payload(Payload {
                field: Some((protocol, field)),
                offset,
                ..
            }) => {
                let field = &protocol.fields[*field];
                if protocol.base == PayloadBase::TRANSPORT && field.name == "type" {
                    self.has_icmp_type = true;
                    self.icmp_type = Some((Some(statement), number));
                }
                if protocol.key != Some(field.name) {
                    return;
                }
                match protocol.base {
                    PayloadBase::LINK => match protocols::above_ethernet(number) {
                        Some(above) if above.base == PayloadBase::LINK => {
                            let is_first = protocol.name == "ether";
                            self.link.push((above, offset + 16));
                            if !is_first {
                                return; // nft repeats this match
                            }
                            Layer::Link
                        }
                        above => {
                            self.network = above;
                            self.is_by_type = protocol.name == "ether";
                            Layer::Network
                        }
                    },
                    PayloadBase::NETWORK => {
                        if !self.establish_transport(self.above_ip(number)) {
                            return;
                        }
                        Layer::Transport
                    }
                    _ => return,
                }
            }
            _ => return,
        };
        let established_by = &mut self.established_by[established_by as usize];
        *established_by = Some(statement);
    }

    /// Records the transport protocol; returns `false` after matches of two protocols: no field of them can be parsed
    /// then.
    fn establish_transport(&mut self, protocol: Option<&'static Protocol>) -> bool {
        self.has_two_transports |= self.transport.is_some() && self.transport != protocol;
        match self.has_two_transports {
            true => {
                self.transport = None;
                self.keep_transport();
            }
            false => self.transport = protocol,
        }
        !self.has_two_transports
    }

    /// Records a match of several values.
    pub(crate) fn record_matches(&mut self, left: &Expr) {
        match left {
            Expr::Meta(MetaKey::L4PROTO) => self.may_be_several = true,
            Expr::Payload(Payload {
                field: Some((protocol, field)),
                ..
            }) => {
                let name = protocol.fields[*field].name;
                match protocol.base {
                    PayloadBase::NETWORK => self.may_be_several |= protocol.key == Some(name),
                    PayloadBase::TRANSPORT if name == "type" => {
                        self.icmp_types = true;
                        self.has_icmp_type = true;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Removes the implicit protocol match for this field.
    pub(crate) fn remove_implicit(
        &mut self,
        payload: &Payload,
        statements: &mut [Option<Statement>],
    ) {
        let Some((protocol, field)) = payload.field else {
            return;
        };
        let Some(layer) = Layer::of(payload.base) else {
            return;
        };
        if let Some(redundant) = self.redundant.take_if(|_| layer != Layer::Link) {
            statements[redundant] = None;
        }
        let field = &protocol.fields[field];
        // Inside a tunnel nft would match the ICMP type of the outer packet.
        if self.tunnel.is_none()
            && let Some((established_by, number)) = &mut self.icmp_type
            && implied_type(protocol, field.name) == Some(*number)
            && let Some(established_by) = established_by.take()
        {
            statements[established_by] = None;
        }
        if let Some(tunnel) = self.tunnel {
            return self.remove_implicit_inner(tunnel, layer, protocol, statements);
        }
        let Some(established_by) = self.established_by[layer as usize] else {
            return;
        };
        // ICMP fields also imply the IP version, before the protocol.
        let network = match (layer, protocol.name) {
            (Layer::Transport, "icmp") => Some("ip"),
            (Layer::Transport, "icmpv6") => Some("ip6"),
            _ => None,
        };
        // Only remove what nft adds again when it parses the field: nothing for ports of any protocol (`th`), nor for
        // what all packets of the family have.
        let is_added = match layer {
            Layer::Link => self.family != Family::BRIDGE || protocol.name == "vlan",
            Layer::Network => matches!(self.family, Family::INET | Family::NETDEV | Family::BRIDGE),
            Layer::Transport => protocol.name != "th",
        };
        if !is_added {
            return;
        }
        if self.is_stricter(layer, established_by, statements) {
            return;
        }
        if protocol.name == "vlan" && !is_default_tag(statements[established_by].as_ref()) {
            return;
        }
        let is_first = self.established_by[Layer::Network as usize]
            .is_some_and(|network| network < established_by);
        let is_network = network.is_some() && self.network.map(|known| known.name) == network;
        if let Some(of_network) = self.established_by[Layer::Network as usize]
            && is_first
            && is_network
            && !self.is_stricter(Layer::Network, of_network, statements)
        {
            self.take(Layer::Network, statements);
        }
        self.take(layer, statements);
    }

    /// Keeps all matches: a statement acted on the packets that they let through.
    pub(crate) fn keep_all(&mut self) {
        self.established_by = [None; 3];
        self.redundant = None;
        if let Some((established_by, _)) = &mut self.icmp_type {
            *established_by = None;
        }
    }

    /// Keeps the match of the transport protocol.
    pub(crate) const fn keep_transport(&mut self) {
        self.established_by[Layer::Transport as usize] = None;
    }

    /// Keeps the match of the link layer.
    pub(crate) const fn keep_link(&mut self) {
        self.established_by[Layer::Link as usize] = None;
    }

    /// Keeps the match of the network layer.
    pub(crate) const fn keep_network(&mut self) {
        self.established_by[Layer::Network as usize] = None;
    }

    /// Removes the implicit match of this protocol.
    pub(crate) fn take_protocol(&mut self, name: &str, statements: &mut [Option<Statement>]) {
        let is = |protocol: Option<&Protocol>| protocol.is_some_and(|known| known.name == name);
        if is(self.network) {
            self.take(Layer::Network, statements);
        } else if is(self.transport) {
            self.take(Layer::Transport, statements);
        }
    }

    /// Removes the implicit match of this layer.
    pub(crate) fn take(&mut self, layer: Layer, statements: &mut [Option<Statement>]) {
        if let Some(established_by) = self.established_by[layer as usize].take() {
            statements[established_by] = None;
        }
    }

    /// Returns `true` if a protocol match is stricter than nft's implicit one. For the transport layer: it also
    /// determines the IP version. For the network layer: it requires a frame, and no other match does.
    fn is_stricter(
        &self,
        layer: Layer,
        established_by: usize,
        statements: &[Option<Statement>],
    ) -> bool {
        let matches_base = |statement: &Option<Statement>, of: PayloadBase| {
            matches!(
                statement,
                Some(Statement::Match {
                    left: Expr::Payload(Payload { base, .. }),
                    ..
                }) if *base == of
            )
        };
        match (layer, self.family) {
            (Layer::Transport, Family::INET | Family::NETDEV | Family::BRIDGE) => {
                matches_base(&statements[established_by], PayloadBase::NETWORK)
            }
            (Layer::Network, Family::INET | Family::NETDEV) => {
                let is_frame = |statement| matches_base(statement, PayloadBase::LINK);
                let has_frame_match =
                    self.is_of_frame || statements[..established_by].iter().any(is_frame);
                is_frame(&statements[established_by]) && !has_frame_match
            }
            _ => false,
        }
    }
}

/// Returns `true` if a match has the ether type that `vlan` implies.
pub(crate) fn is_default_tag(established_by: Option<&Statement>) -> bool {
    match established_by {
        Some(Statement::Match {
            right: Expr::Value(value),
            relation: Relation::Implicit | Relation::Equal,
            ..
        }) => value.number == 0x8100,
        _ => false,
    }
}

/// Returns the ICMP type that a field implies, if there is only one.
fn implied_type(protocol: &Protocol, field: &str) -> Option<u128> {
    match (protocol.name, field) {
        ("icmp", "mtu") => Some(3),
        ("icmp", "gateway") => Some(5),
        ("icmpv6", "mtu") => Some(2),
        ("icmpv6", "parameter-problem") => Some(4),
        ("icmpv6", "max-delay") => Some(130),
        ("icmpv6", "daddr") => Some(137),
        _ => None,
    }
}
