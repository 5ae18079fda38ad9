//! Knowledge about the packets that can still match, and the implicit matches that a field
//! depends on.

use super::select::{ARPHRD_ETHER, Dependency, IIFTYPE, Selector, Source};
use super::{Build, BuildError, EtherType, Protocol, Version};
use crate::nft::Family;
use crate::nft::expr::{Cmp, Meta, MetaKey, Payload, PayloadBase, Register};

/// The transport protocols of the packets that pass the matches so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Any,
    One(u8),
    /// One of several, from a set that cannot change.
    Several,
    /// One of a set that can change. The owner of the set must ensure that all its protocols
    /// have ports.
    MutableSet,
}

impl Build<'_> {
    /// Ensures that all packets have this field; returns false if they cannot.
    pub(super) fn add_dependencies(&mut self, selector: &Selector) -> bool {
        let (what, family) = (selector.name, self.rule.family);
        let sees_ip = matches!(
            family,
            Family::IP | Family::IP6 | Family::INET | Family::BRIDGE | Family::NETDEV
        );
        let tracks = sees_ip && family != Family::NETDEV;
        match selector.dependency {
            Dependency::Nothing => true,
            Dependency::Inet if family == Family::INET => true,
            Dependency::Ip if sees_ip => true,
            Dependency::Tracked if tracks => true,
            Dependency::Routed if sees_ip && family != Family::BRIDGE => true,
            Dependency::Network(version) => self.add_network_dependency(version, what),
            Dependency::Implicit(version) => match (self.network, family) {
                (Some(known), _) if known != version => self.conflict(what),
                _ if tracks => true,
                _ => self.no_family(what),
            },
            Dependency::Transport(protocol) if sees_ip => {
                self.add_transport_dependency(protocol, what)
            }
            Dependency::Ports if sees_ip => {
                let known = self.has_ports() || self.transport == Transport::MutableSet;
                if !known {
                    self.fail(BuildError::NoTransport { what });
                }
                known
            }
            Dependency::Icmp(version, protocol) if sees_ip => {
                if self.transport == Transport::One(protocol) && self.network.is_none() {
                    return true;
                }
                let known = if family == Family::BRIDGE && self.network.is_none() {
                    // nft also checks the frame's type here, not the kernel's `meta protocol`.
                    self.limit_ether_type(version);
                    true
                } else {
                    self.add_network_dependency(version, what)
                };
                known && self.add_transport_dependency(protocol, what)
            }
            Dependency::Ethernet => match family {
                Family::ARP => self.no_family(what),
                Family::BRIDGE => true,
                _ => {
                    if !self.ethernet {
                        self.ethernet = true;
                        self.load(&IIFTYPE, None, Register::R1);
                        self.push(&Cmp::eq(Register::R1, &ARPHRD_ETHER.to_ne_bytes()));
                    }
                    true
                }
            },
            _ => self.no_family(what),
        }
    }

    pub(super) fn no_family(&mut self, what: &'static str) -> bool {
        let family = self.rule.family;
        self.fail(BuildError::Family { what, family });
        false
    }

    /// Fails because the rule is limited to another version of IP.
    pub(super) fn conflict(&mut self, what: &'static str) -> bool {
        if matches!(self.rule.family, Family::IP | Family::IP6) {
            return self.no_family(what);
        }
        let protocol = match self.network {
            Some(Version::V6) => "ip6",
            _ => "ip",
        };
        self.fail(BuildError::Conflict { what, protocol });
        false
    }

    pub(super) fn add_network_dependency(&mut self, version: Version, what: &'static str) -> bool {
        match (self.network, self.rule.family) {
            (Some(known), _) if known == version => true,
            (Some(_), _) => self.conflict(what),
            (None, Family::INET) => {
                let number = match version {
                    Version::V4 => Family::IP,
                    Version::V6 => Family::IP6,
                };
                self.push(&Meta::load(MetaKey::NFPROTO, Register::R1));
                self.push(&Cmp::eq(Register::R1, &[number.0]));
                self.network = Some(version);
                true
            }
            (None, Family::BRIDGE | Family::NETDEV) => {
                self.push(&Meta::load(MetaKey::PROTOCOL, Register::R1));
                self.push(&Cmp::eq(Register::R1, &ether_type(version).0.to_be_bytes()));
                self.network = Some(version);
                true
            }
            (None, _) => self.no_family(what),
        }
    }

    pub(super) fn limit_ether_type(&mut self, version: Version) {
        let bytes = ether_type(version).0.to_be_bytes();
        self.push(&Payload::load(PayloadBase::LINK, 12, 2, Register::R1));
        self.push(&Cmp::eq(Register::R1, &bytes));
        self.network = Some(version);
    }

    pub(super) fn add_transport_dependency(&mut self, protocol: u8, what: &'static str) -> bool {
        match self.transport {
            Transport::One(known) if known == protocol => true,
            Transport::One(known) => {
                let protocol = Protocol(known).name().unwrap_or("another one");
                self.fail(BuildError::Conflict { what, protocol });
                false
            }
            Transport::Any | Transport::Several | Transport::MutableSet => {
                self.push(&Meta::load(MetaKey::L4PROTO, Register::R1));
                self.push(&Cmp::eq(Register::R1, &[protocol]));
                self.transport = Transport::One(protocol);
                true
            }
        }
    }

    /// Records the implications of a field's value for the remaining packets.
    pub(super) fn learn(&mut self, selector: &Selector, value: &[u8]) {
        let family = self.rule.family;
        match (selector.source, value) {
            (Source::Meta(MetaKey::L4PROTO), &[protocol])
            | (Source::Payload(PayloadBase::NETWORK, 9), &[protocol])
                if selector.dependency != Dependency::Nothing
                    && selector.dependency != dependency(Version::V6) =>
            {
                self.learn_transport(selector.name, protocol);
            }
            (Source::Payload(PayloadBase::NETWORK, 6), &[protocol])
                if selector.dependency == dependency(Version::V6) =>
            {
                self.learn_transport(selector.name, protocol);
            }
            (Source::Meta(MetaKey::NFPROTO), &[number]) => match Family(number) {
                Family::IP => self.learn_network(selector.name, Version::V4),
                Family::IP6 => self.learn_network(selector.name, Version::V6),
                _ => {}
            },
            (Source::Meta(MetaKey::PROTOCOL), &[high, low])
                if matches!(family, Family::BRIDGE | Family::NETDEV) =>
            {
                self.learn_ether_type(selector.name, EtherType(u16::from_be_bytes([high, low])));
            }
            (Source::Payload(PayloadBase::LINK, 12), &[high, low]) => {
                self.learn_ether_type(selector.name, EtherType(u16::from_be_bytes([high, low])));
            }
            _ => {}
        }
    }

    fn learn_ether_type(&mut self, what: &'static str, ether_type: EtherType) {
        match ether_type {
            EtherType::IP => self.learn_network(what, Version::V4),
            EtherType::IP6 => self.learn_network(what, Version::V6),
            _ => {}
        }
    }

    pub(super) fn learn_transport(&mut self, what: &'static str, protocol: u8) {
        match self.transport {
            Transport::One(known) if known != protocol => {
                let protocol = Protocol(known).name().unwrap_or("another one");
                self.fail(BuildError::Conflict { what, protocol });
            }
            _ => self.transport = Transport::One(protocol),
        }
    }

    pub(super) fn learn_network(&mut self, what: &'static str, version: Version) {
        match self.network {
            Some(known) if known != version => {
                self.conflict(what);
            }
            _ => self.network = Some(version),
        }
    }
}

/// Returns the requirement of a header of this version.
const fn dependency(version: Version) -> Dependency {
    Dependency::Network(version)
}

const fn ether_type(version: Version) -> EtherType {
    match version {
        Version::V4 => EtherType::IP,
        Version::V6 => EtherType::IP6,
    }
}
