//! Writes the table's content as operations of a transaction.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::TABLE;
use super::elements::{Declared, Key, Shared, Value, address_type, with_nft_userdata};
use super::port::{Clients, PortChain, PortRule};
use crate::service::config::{Config, LocalDetector};
use chainwright::Error;
use chainwright::nft::build::{
    AddressType, AnonymousSet, Build, BuildError, Match, NatTo, Protocol, Selector, Version, ip,
    ip6, not, numgen_random, or,
};
use chainwright::nft::expr::Verdict;
use chainwright::nft::userdata::HOST_ENDIAN;
use chainwright::nft::{Chain, Family, Rule, Set, SetId, Transaction};

/// Largest number of clients of one endpoint: `nft`'s default.
const MAX_CLIENTS: u32 = 65_535;

/// Writes operations into a transaction.
#[derive(Debug)]
pub(super) struct Writer<'c> {
    pub(super) tx: Transaction,
    pub(super) family: Family,
    pub(super) config: &'c Config,
    /// The ID of the last anonymous set in the transaction.
    last: u32,
    /// Whether rules are inserted before the existing ones.
    inserts: bool,
}

impl<'c> Writer<'c> {
    pub(super) fn new(family: Family, config: &'c Config) -> Self {
        Self {
            tx: Transaction::new(),
            family,
            config,
            last: 0,
            inserts: false,
        }
    }

    /// Starts another transaction.
    pub(super) fn clear(&mut self) {
        self.tx.clear();
        self.last = 0;
    }

    /// Adds a chain without rules.
    pub(super) fn add_chain(&mut self, name: &str) -> Result<(), Error> {
        self.tx.add(&Chain::new(self.family, TABLE, name))?;
        Ok(())
    }

    /// Adds the set of an endpoint's clients.
    pub(super) fn add_clients(&mut self, clients: &Clients) -> Result<(), Error> {
        let (data_type, length) = address_type(self.family);
        let set = Set::new(self.family, TABLE, &clients.name[..], data_type, length)
            .with_timeout(Some(clients.timeout))
            .with_updates(MAX_CLIENTS);
        self.tx.add(&set)?;
        Ok(())
    }

    /// Adds elements of a shared set.
    pub(super) fn add_elements<'e>(
        &mut self,
        set: Shared,
        elements: impl Iterator<Item = (&'e Key, &'e Value)>,
    ) -> Result<(), Error> {
        let set = SetId::new(self.family, TABLE, set.name());
        let elements: Result<Vec<_>, _> = elements.map(|(key, value)| value.element(key)).collect();
        self.tx.add_elements(&set, &elements?)?;
        Ok(())
    }

    /// Deletes elements of a shared set.
    pub(super) fn delete_elements<'e>(
        &mut self,
        set: Shared,
        keys: impl Iterator<Item = &'e Key>,
    ) -> Result<(), Error> {
        let set = SetId::new(self.family, TABLE, set.name());
        self.tx.delete_elements(&set, keys.map(Key::element))?;
        Ok(())
    }

    /// Adds the rules of an existing chain without rules.
    pub(super) fn add_rules(&mut self, chain: &PortChain) -> Result<(), Error> {
        for rule in &chain.rules {
            self.add_rule(chain, rule)?;
        }
        Ok(())
    }

    /// Inserts the rules of a chain before the existing ones.
    pub(super) fn insert_rules(&mut self, chain: &PortChain) -> Result<(), Error> {
        self.inserts = true;
        let inserted = (chain.rules.iter().rev()).try_for_each(|rule| self.add_rule(chain, rule));
        self.inserts = false;
        inserted
    }

    fn put(&mut self, rule: &Rule<'_>) -> Result<(), Error> {
        match self.inserts {
            true => self.tx.insert(rule)?,
            false => self.tx.add(rule)?,
        };
        Ok(())
    }

    fn add_rule(&mut self, chain: &PortChain, rule: &PortRule) -> Result<(), Error> {
        let begin = || Build::new(self.family, TABLE, &chain.name[..]);
        let protocol = Protocol(chain.protocol.number());
        let masquerade = or(self.config.masquerade_mark);
        let sender = source(self.family);
        let rule = match rule {
            PortRule::Spread(endpoints) => {
                return self.spread(begin().meta_l4proto(protocol), endpoints);
            }
            PortRule::SpreadChains(chains) => {
                let begin = begin();
                let goto = chains.iter().map(|chain| Verdict::Goto(chain[..].into()));
                let id = self.number();
                let map = AnonymousSet::numbered_verdicts(self.family, TABLE, id, 0, goto);
                let map = numbered(map, Some(Declared::Verdicts));
                let key = numgen_random(modulus(chains.len()));
                return self.with(&map, begin.vmap(key, &map).finish());
            }
            PortRule::From(networks) => {
                let networks = (&networks[..], false);
                return self.add_by_networks(begin(), sender, networks, Build::drop);
            }
            PortRule::Known(clients, chain) => {
                begin().lookup(sender, &clients.name[..]).goto(&chain[..])
            }
            PortRule::Remember(clients) => {
                begin().update_element(&clients.name[..], sender).finish()
            }
            PortRule::To(endpoint) => begin().meta_l4proto(protocol).dnat(*endpoint),
            PortRule::Masquerade => begin()
                .comment("masquerade")
                .meta_mark_set(masquerade)
                .finish(),
            PortRule::MasqueradeLocal => begin()
                .comment("masquerade local traffic")
                .fib_saddr_type(AddressType::LOCAL)
                .meta_mark_set(masquerade)
                .finish(),
            PortRule::PodsGoto(chain) => {
                let Some(pods) = from_pods(begin(), self.family, &self.config.local_detector)
                else {
                    return Ok(());
                };
                pods.comment("short-circuit pod traffic").goto(&chain[..])
            }
            PortRule::LocalGoto(chain) => begin()
                .comment("short-circuit local traffic")
                .fib_saddr_type(AddressType::LOCAL)
                .goto(&chain[..]),
            PortRule::Goto(chain) => begin().goto(&chain[..]),
        }?;
        self.put(&rule)
    }

    fn spread(&mut self, build: Build<'_>, endpoints: &[SocketAddr]) -> Result<(), Error> {
        let (family, id) = (self.family, self.number());
        let v4 = endpoints.iter().filter_map(|endpoint| match endpoint {
            SocketAddr::V4(endpoint) => Some(*endpoint),
            SocketAddr::V6(_) => None,
        });
        let v6 = endpoints.iter().filter_map(|endpoint| match endpoint {
            SocketAddr::V6(endpoint) => Some(*endpoint),
            SocketAddr::V4(_) => None,
        });
        let (version, map) = match family {
            Family::IP6 => (
                Version::V6,
                AnonymousSet::numbered_addresses6_with_ports(family, TABLE, id, 0, v6),
            ),
            _ => (
                Version::V4,
                AnonymousSet::numbered_addresses_with_ports(family, TABLE, id, 0, v4),
            ),
        };
        let map = numbered(map, None);
        let key = numgen_random(modulus(endpoints.len()));
        let to = NatTo::map_with_port(version, key, &map);
        self.with(&map, build.dnat(to))
    }

    /// Adds a rule for packets whose address is in one of these networks, or in none of them.
    pub(super) fn add_by_networks<'b>(
        &mut self,
        build: Build<'b>,
        address: Selector,
        (networks, is_one): (&[IpNet], bool),
        end: impl FnOnce(Build<'b>) -> Result<Rule<'b>, BuildError>,
    ) -> Result<(), Error> {
        if let &[network] = networks {
            let build = match is_one {
                true => is_in(build, address, network),
                false => is_not_in(build, address, network),
            };
            return self.put(&end(build)?);
        }
        let (family, id) = (self.family, self.number());
        let ranges = ranges(networks);
        let set = match family {
            Family::IP6 => AnonymousSet::of::<Ipv6Addr>(family, TABLE, id, ranges.map(v6)),
            _ => AnonymousSet::of::<Ipv4Addr>(family, TABLE, id, ranges.map(v4)),
        }?;
        let build = match is_one {
            true => build.lookup(address, &set),
            false => build.lookup_not(address, &set),
        };
        self.with(&set, end(build))
    }

    /// Adds a rule after the set that it uses.
    fn with(
        &mut self,
        set: &AnonymousSet<'_>,
        rule: Result<Rule<'_>, BuildError>,
    ) -> Result<(), Error> {
        let rule = rule?;
        set.add_to(&mut self.tx)?;
        self.put(&rule)
    }

    /// Allocates an ID for an anonymous set.
    const fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }
}

/// Returns a map with numeric keys as `nft` declares it.
fn numbered(map: AnonymousSet<'_>, declared: Option<Declared>) -> AnonymousSet<'_> {
    let set = with_nft_userdata(map.set().clone(), HOST_ENDIAN, declared);
    AnonymousSet::with_elements(set, map.elements().iter().cloned())
}

/// Converts a number of endpoints to a modulus: a rule has fewer than 2³² endpoints.
fn modulus(endpoints: usize) -> u32 {
    u32::try_from(endpoints).unwrap_or(u32::MAX)
}

/// Returns a packet's source address.
const fn source(family: Family) -> Selector {
    match family {
        Family::IP6 => ip6::SADDR,
        _ => ip::SADDR,
    }
}

/// Returns a packet's destination address.
pub(super) const fn destination(family: Family) -> Selector {
    match family {
        Family::IP6 => ip6::DADDR,
        _ => ip::DADDR,
    }
}

/// Matches if an address is in a network.
pub(super) fn is_in(build: Build<'_>, address: Selector, network: IpNet) -> Build<'_> {
    match network {
        IpNet::V4(of) => build.matches::<Ipv4Addr>(address, (of.network(), of.prefix_len())),
        IpNet::V6(of) => build.matches::<Ipv6Addr>(address, (of.network(), of.prefix_len())),
    }
}

/// Matches if an address is not in a network.
pub(super) fn is_not_in(build: Build<'_>, address: Selector, network: IpNet) -> Build<'_> {
    match network {
        IpNet::V4(of) => build.matches::<Ipv4Addr>(address, not((of.network(), of.prefix_len()))),
        IpNet::V6(of) => build.matches::<Ipv6Addr>(address, not((of.network(), of.prefix_len()))),
    }
}

/// Matches packets from a pod of this node; `None` if that cannot be detected.
fn from_pods<'b>(build: Build<'b>, family: Family, detector: &LocalDetector) -> Option<Build<'b>> {
    match detector {
        LocalDetector::None => None,
        LocalDetector::Networks(_) => {
            let network = detector.network(ip_family(family))?;
            Some(is_in(build, source(family), network))
        }
        LocalDetector::Interface(name) => Some(build.iifname(&name[..])),
        LocalDetector::InterfacePrefix(prefix) => Some(build.iifname(&format!("{prefix}*"))),
    }
}

/// Matches packets that are not from a pod of this node; `None` if that cannot be detected.
pub(super) fn not_from_pods<'b>(
    build: Build<'b>,
    family: Family,
    detector: &LocalDetector,
) -> Option<Build<'b>> {
    match detector {
        LocalDetector::None => None,
        LocalDetector::Networks(_) => {
            let network = detector.network(ip_family(family))?;
            Some(is_not_in(build, source(family), network))
        }
        LocalDetector::Interface(name) => Some(build.iifname(not(&name[..]))),
        LocalDetector::InterfacePrefix(prefix) => Some(build.iifname(not(&format!("{prefix}*")))),
    }
}

/// Returns the family as iptables' type.
pub(super) const fn ip_family(family: Family) -> chainwright::iptables::Family {
    match family {
        Family::IP6 => chainwright::iptables::Family::Ipv6,
        _ => chainwright::iptables::Family::Ipv4,
    }
}

/// Returns the address ranges of networks as sorted numbers: adjacent ones are merged, as in `nft`.
fn ranges(networks: &[IpNet]) -> impl Iterator<Item = RangeInclusive<u128>> {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let range = |network: &IpNet| (number(network.network()), number(network.broadcast()));
    let mut all: Vec<_> = networks.iter().map(range).collect();
    all.sort_unstable();
    let mut joined: Vec<(u128, u128)> = Vec::with_capacity(all.len());
    for (first, last) in all {
        match joined.last_mut() {
            Some((_, before)) if first <= before.saturating_add(1) => *before = last.max(*before),
            _ => joined.push((first, last)),
        }
    }
    joined.into_iter().map(|(first, last)| first..=last)
}

fn v4(range: RangeInclusive<u128>) -> Match<'static, Ipv4Addr> {
    // Converted from 32 bits.
    let address = |number: u128| Ipv4Addr::from_bits(number as u32);
    (address(*range.start())..=address(*range.end())).into()
}

fn v6(range: RangeInclusive<u128>) -> Match<'static, Ipv6Addr> {
    (Ipv6Addr::from_bits(*range.start())..=Ipv6Addr::from_bits(*range.end())).into()
}
