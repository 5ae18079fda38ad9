//! Chains and rules, which do not grow with services.

use std::time::Duration;

use ipnet::IpNet;

use super::sets::SetKind;
use crate::service::config::{Config, LocalDetector, NodePortsOf, is_of};
use chainwright::Error;
use chainwright::iptables::Family;
use chainwright::nft::build::{
    AddressType, Build, BuildError, CtState, CtStatus, Selector, copy, ip, ip6, masked, meta, not,
    or, th, xor,
};
use chainwright::nft::expr::{
    Bitwise, Dynset, Immediate, Lookup, Meta, MetaKey, Nat, NatRangeFlags, NatType, Numgen,
    Payload, PayloadBase, Register, Verdict,
};
use chainwright::nft::{self, Chain, Hook, Policy, Priority, Rule, Table, TableFlags, Transaction};

/// Which of two ways traffic comes: to an address and port of a service, or to a port of the node's. The first is
/// looked for first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Address,
    NodePort,
}

/// How many endpoints, and for how long a client is kept at one: what a chain that draws one is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shape(u32);

impl Shape {
    /// More endpoints than this are left out: the number has 15 bits.
    pub(super) const MOST: usize = (1 << 15) - 1;
    const SECONDS: u32 = 1 << 17;

    /// Of so many endpoints, with affinity. A second is the least that is kept, and a day and a half the most.
    pub(super) fn new(endpoints: usize, affinity: Option<Duration>) -> Self {
        let endpoints = endpoints.min(Self::MOST) as u32;
        let seconds = affinity.map_or(0, |time| {
            time.as_secs().clamp(1, u64::from(Self::SECONDS) - 1) as u32
        });
        Self(endpoints * Self::SECONDS + seconds)
    }

    pub(super) const fn number(self) -> u32 {
        self.0
    }

    const fn endpoints(self) -> u32 {
        self.0 / Self::SECONDS
    }

    const fn affinity(self) -> Option<Duration> {
        match self.0 % Self::SECONDS {
            0 => None,
            seconds => Some(Duration::from_secs(seconds as u64)),
        }
    }

    /// The shape that such a chain is for, if it is one.
    pub(super) fn of_chain(name: &str) -> Option<Self> {
        let name = name.strip_prefix("local-").unwrap_or(name);
        let (endpoints, seconds) = match name.strip_prefix("pick-")?.split_once("-keep-") {
            None => (name.strip_prefix("pick-")?, None),
            Some((endpoints, time)) => (endpoints, Some(time.strip_suffix('s')?.parse().ok()?)),
        };
        let shape = Self::new(endpoints.parse().ok()?, seconds.map(Duration::from_secs));
        (shape.chain(false) == name).then_some(shape)
    }

    /// Name of the chain that draws one.
    pub(super) fn chain(self, local: bool) -> String {
        let local = if local { "local-" } else { "" };
        let endpoints = self.endpoints();
        match self.affinity() {
            None => format!("{local}pick-{endpoints}"),
            Some(time) => format!("{local}pick-{endpoints}-keep-{}s", time.as_secs()),
        }
    }
}

/// Where values stand in the registers, as words of four bytes. The key of a service takes up to six from the first.
mod word {
    /// Group and client: the key of affinity.
    pub(super) const AFFINITY: u32 = 4;
    pub(super) const CLIENT: u32 = 5;
    /// What affinity remembers.
    pub(super) const REMEMBERED: u32 = 9;
    /// The group with a place or an endpoint's number behind it: the keys of `endpoints`, `affinity-places` and
    /// `affinity-endpoints`. The endpoint comes into the number's place.
    pub(super) const GROUP: u32 = 10;
    pub(super) const DRAWN: u32 = 11;
    pub(super) const ENDPOINT: u32 = 11;
    /// The packet's mark, while it has a number's place.
    pub(super) const MARK: u32 = 15;
}

/// Writes the table's rules for one family.
#[derive(Debug)]
pub(super) struct Rules<'c> {
    pub(super) family: Family,
    /// The table's name.
    pub(super) name: &'static str,
    pub(super) config: &'c Config,
}

impl Rules<'_> {
    fn table(&self) -> nft::Family {
        self.family.into()
    }

    /// The table as others see it.
    pub(super) fn table_object(&self, owned: bool) -> Result<Table<'static>, Error> {
        let mut table = Table::new(self.table(), self.name);
        table.flags = owned.then_some(TableFlags::OWNER | TableFlags::PERSIST);
        Ok(table.with_comment("services, by chainwright")?)
    }

    /// The chains that always stand, with their hooks.
    fn chains(&self) -> Vec<Chain<'static>> {
        let base = |name, chain_type, hook, priority: Priority| {
            let chain = Chain::new(self.table(), self.name, name);
            chain
                .with_hook(chain_type, hook, priority)
                .with_policy(Policy::ACCEPT)
        };
        let mut chains = vec![
            base(
                "filter-prerouting",
                "filter",
                Hook::PREROUTING,
                Priority::DSTNAT - 10,
            ),
            base(
                "filter-output-early",
                "filter",
                Hook::OUTPUT,
                Priority::DSTNAT - 10,
            ),
            base("filter-input", "filter", Hook::INPUT, Priority::FILTER),
            base("filter-forward", "filter", Hook::FORWARD, Priority::FILTER),
            base("filter-output", "filter", Hook::OUTPUT, Priority::FILTER),
            base("nat-prerouting", "nat", Hook::PREROUTING, Priority::DSTNAT),
            base("nat-output", "nat", Hook::OUTPUT, Priority::DSTNAT),
            base(
                "nat-postrouting",
                "nat",
                Hook::POSTROUTING,
                Priority::SRCNAT,
            ),
        ];
        let others = [
            FIREWALL_CHECK,
            FIREWALL,
            REFUSALS,
            NODEPORT_REFUSALS,
            CLUSTER_IPS,
            SERVICES,
            NODEPORTS,
            LOCAL,
            LOCAL_NODEPORTS,
            ANYWHERE,
            NODEPORTS_ANYWHERE,
            MASQUERADING,
        ];
        chains.extend(others.map(|name| Chain::new(self.table(), self.name, name)));
        chains
    }

    /// Writes the chains that always stand, those that are `wanted`, and their rules anew: in one transaction with all
    /// else no packet meets a chain without them. `lengths` are those of the prefixes that
    /// [firewalls](SetKind::FirewallSources) have.
    pub(super) fn write(
        &self,
        tx: &mut Transaction,
        lengths: impl IntoIterator<Item = u8>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let name = |name: &Option<nft::Name<'_>>| {
            name.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        let is_wanted = |of: &Option<nft::Name<'_>>| wanted(&name(of));
        for chain in self.chains().iter().filter(|chain| is_wanted(&chain.name)) {
            tx.add(chain)?;
            tx.flush_chain(self.table(), self.name, name(&chain.name))?;
        }
        if wanted(FIREWALL) {
            for length in lengths {
                tx.add(&self.length(length))?;
            }
        }
        let rules = self.filters()?.into_iter().chain(self.translations()?);
        for rule in rules.filter(|rule| is_wanted(&rule.chain)) {
            tx.add(&rule)?;
        }
        Ok(())
    }

    fn rule<'r>(&self, chain: &'r str) -> Build<'r> {
        Build::new(self.table(), self.name, chain)
    }

    /// `ip daddr . meta l4proto . th dport`.
    const fn service(&self) -> [Selector; 3] {
        [self.daddr(), meta::L4PROTO, th::DPORT]
    }

    const fn daddr(&self) -> Selector {
        match self.family {
            Family::Ipv4 => ip::DADDR,
            Family::Ipv6 => ip6::DADDR,
        }
    }

    const fn saddr(&self) -> Selector {
        match self.family {
            Family::Ipv4 => ip::SADDR,
            Family::Ipv6 => ip6::SADDR,
        }
    }

    /// Rules for packets to addresses that node ports are at: of several rules at most one matches.
    fn at_node<'r>(
        &self,
        begin: impl Fn() -> Build<'r>,
        end: impl Fn(Build<'r>) -> Result<Rule<'r>, BuildError>,
    ) -> Result<Vec<Rule<'r>>, BuildError> {
        let of_node = || {
            let rule = begin().fib_daddr_type(AddressType::LOCAL);
            match self.family {
                Family::Ipv4 => {
                    let loopback = masked([127, 0, 0, 0].into(), [255, 0, 0, 0].into());
                    rule.ip_daddr(not(loopback))
                }
                Family::Ipv6 => rule.ip6_daddr(not(std::net::Ipv6Addr::LOCALHOST)),
            }
        };
        match self.config.node_port_addresses.of(self.family) {
            NodePortsOf::Every => Ok(vec![end(of_node())?]),
            NodePortsOf::These(_) => {
                let rule = begin().lookup(self.daddr(), SetKind::NodeportIps.name());
                Ok(vec![end(rule)?])
            }
            NodePortsOf::Networks(networks) => networks
                .iter()
                .map(|network| end(self.is_to(of_node(), *network)))
                .collect(),
        }
    }

    /// Goes on if the packet is for an address of a network.
    fn is_to<'r>(&self, rule: Build<'r>, network: IpNet) -> Build<'r> {
        match network {
            IpNet::V4(of) => rule.ip_daddr(masked(of.network(), of.netmask())),
            IpNet::V6(of) => rule.ip6_daddr(masked(of.network(), of.netmask())),
        }
    }

    /// What comes before connections' destinations are changed and after.
    fn filters(&self) -> Result<Vec<Rule<'_>>, BuildError> {
        let new = |chain, to| self.rule(chain).ct_state(CtState::NEW).jump(to);
        // What has an endpoint is looked up no more: each look-up that finds nothing costs as much as one that does.
        let translated = |chain| {
            let rule = self.rule(chain).ct_status(CtStatus::DNAT);
            rule.comment("goes to an endpoint").accept()
        };
        let service = self.service();
        let nodeport = [meta::L4PROTO, th::DPORT];
        let mut rules = vec![
            new("filter-prerouting", FIREWALL_CHECK)?,
            new("filter-output-early", FIREWALL_CHECK)?,
            translated("filter-input")?,
            new("filter-input", NODEPORT_REFUSALS)?,
            new("filter-input", REFUSALS)?,
            translated("filter-forward")?,
            new("filter-forward", REFUSALS)?,
            new("filter-forward", CLUSTER_IPS)?,
            translated("filter-output")?,
            new("filter-output", REFUSALS)?,
            new("filter-output", CLUSTER_IPS)?,
            self.rule(FIREWALL_CHECK)
                .lookup(&service, SetKind::FirewallIps.name())
                .goto(FIREWALL)?,
            self.rule(FIREWALL).drop()?,
            self.rule(REFUSALS)
                .lookup(&service, SetKind::RejectIps.name())
                .reject()?,
            self.rule(REFUSALS)
                .lookup(&service, SetKind::DropIps.name())
                .drop()?,
            self.rule(CLUSTER_IPS)
                .lookup(self.daddr(), SetKind::ClusterIps.name())
                .comment("no such port of a cluster IP")
                .reject()?,
        ];
        let refused = || self.rule(NODEPORT_REFUSALS);
        rules.extend(self.at_node(refused, |rule| {
            rule.lookup(&nodeport, SetKind::RejectNodeports.name())
                .reject()
        })?);
        rules.extend(self.at_node(refused, |rule| {
            rule.lookup(&nodeport, SetKind::DropNodeports.name()).drop()
        })?);
        for network in &self.config.service_networks {
            if is_of(network.addr(), self.family) {
                let rule = self.is_to(self.rule(CLUSTER_IPS), *network);
                rules.push(rule.comment("no such cluster IP").drop()?);
            }
        }
        Ok(rules)
    }

    /// What changes addresses.
    fn translations(&self) -> Result<Vec<Rule<'_>>, BuildError> {
        let service = self.service();
        let nodeport = [meta::L4PROTO, th::DPORT];
        let mark = self.config.masquerade_mark;
        let masquerade =
            |rule: Build<'static>| rule.meta_mark_set(copy(meta::MARK).with(or(mark))).finish();
        // A commit between two look-ups of a packet can have the second find nothing. Only such a packet comes back from
        // the first jump: it is dealt with once more.
        let once_more = |chain| {
            let rule = self.rule(chain);
            rule.comment("a commit came between two look-ups")
                .jump(SERVICES)
        };
        let mut rules = vec![
            self.rule("nat-prerouting").jump(SERVICES)?,
            once_more("nat-prerouting")?,
            self.rule("nat-output").jump(SERVICES)?,
            once_more("nat-output")?,
            self.rule("nat-postrouting").jump(MASQUERADING)?,
        ];
        // Who sends is asked first: that takes no look-up.
        let from_outside = match self.config.masquerade_all {
            true => Some(self.rule(SERVICES)),
            false => self.of_pods(self.rule(SERVICES), false),
        };
        if let Some(rule) = from_outside {
            let to_cluster_ip = rule.lookup(self.daddr(), SetKind::ClusterIps.name());
            rules.push(masquerade(to_cluster_ip)?);
        }
        for (way, chain, local, anywhere, masqueraded) in [
            (
                Way::Address,
                SERVICES,
                LOCAL,
                ANYWHERE,
                SetKind::MasqueradeIps,
            ),
            (
                Way::NodePort,
                NODEPORTS,
                LOCAL_NODEPORTS,
                NODEPORTS_ANYWHERE,
                SetKind::MasqueradeNodeports,
            ),
        ] {
            let lookup = |rule: Build<'static>| match way {
                Way::Address => rule.lookup(&service, masqueraded.name()),
                Way::NodePort => rule.lookup(&nodeport, masqueraded.name()),
            };
            rules.push(masquerade(lookup(self.rule(chain)))?);
            rules.push(
                self.group(chain, way, true)
                    .with(&Immediate::verdict(Verdict::Goto(local.into()))),
            );
            rules.push(self.dispatch(chain, way, false));
            if way == Way::Address {
                rules.extend(self.at_node(|| self.rule(SERVICES), |rule| rule.goto(NODEPORTS))?);
            }
            rules.push(self.rule(chain).comment("no service").accept()?);
            if let Some(rule) = self.of_pods(self.rule(local), true) {
                rules.push(rule.comment("pods' traffic goes anywhere").goto(anywhere)?);
            }
            let own = || self.rule(local).fib_saddr_type(AddressType::LOCAL);
            rules.push(masquerade(own())?);
            rules.push(own().comment("so does the node's own").goto(anywhere)?);
            rules.push(self.dispatch(local, way, true));
            rules.push(self.dispatch(anywhere, way, false));
        }
        let hairpin = [self.saddr(), self.daddr(), meta::L4PROTO, th::DPORT];
        rules.push(
            self.rule(MASQUERADING)
                .meta_mark(masked(mark, mark))
                .meta_mark_set(copy(meta::MARK).with(xor(mark)))
                .masquerade(NatRangeFlags::PROTO_RANDOM_FULLY)?,
        );
        rules.push(
            self.rule(MASQUERADING)
                .ct_status(CtStatus::DNAT)
                .lookup(&hairpin, SetKind::Hairpins.name())
                .masquerade(NatRangeFlags::PROTO_RANDOM_FULLY)?,
        );
        Ok(rules)
    }

    /// Goes on if the packet comes from pods of this node or cluster, or if it does not; `None` if pods' traffic
    /// cannot be told.
    fn of_pods<'r>(&self, rule: Build<'r>, pods: bool) -> Option<Build<'r>> {
        let detector = &self.config.local_detector;
        Some(match detector {
            LocalDetector::Networks(_) => {
                let network = detector.network(self.family)?;
                match (network.network(), network.netmask()) {
                    (std::net::IpAddr::V4(a), std::net::IpAddr::V4(m)) if pods => {
                        rule.ip_saddr(masked(a, m))
                    }
                    (std::net::IpAddr::V4(a), std::net::IpAddr::V4(m)) => {
                        rule.ip_saddr(not(masked(a, m)))
                    }
                    (std::net::IpAddr::V6(a), std::net::IpAddr::V6(m)) if pods => {
                        rule.ip6_saddr(masked(a, m))
                    }
                    (std::net::IpAddr::V6(a), std::net::IpAddr::V6(m)) => {
                        rule.ip6_saddr(not(masked(a, m)))
                    }
                    _ => return None,
                }
            }
            LocalDetector::Interface(name) if pods => rule.iifname(&name[..]),
            LocalDetector::Interface(name) => rule.iifname(not(&name[..])),
            LocalDetector::InterfacePrefix(prefix) => {
                let pattern = format!("{prefix}*");
                match pods {
                    true => rule.iifname(&pattern[..]),
                    false => rule.iifname(not(&pattern[..])),
                }
            }
            LocalDetector::None => return None,
        })
    }

    /// A rule that goes on with the group of endpoints that the packet's destination has, if it has one.
    fn group(&self, chain: &str, way: Way, local: bool) -> Rule<'static> {
        let rule = Rule::new(self.table(), self.name, chain.to_owned());
        self.with_group(rule, way, local)
    }

    /// The same of a rule that goes on with some packets only.
    fn with_group(&self, mut rule: Rule<'static>, way: Way, local: bool) -> Rule<'static> {
        let (network, daddr, length) = match self.family {
            Family::Ipv4 => (PayloadBase::NETWORK, 16, 4),
            Family::Ipv6 => (PayloadBase::NETWORK, 24, 16),
        };
        let mut word = 0;
        if way == Way::Address {
            rule.push(&Payload::load(network, daddr, length, at(word)));
            word += length / 4;
        }
        rule.push(&Meta::load(MetaKey::L4PROTO, at(word)));
        rule.push(&Payload::load(PayloadBase::TRANSPORT, 2, 2, at(word + 1)));
        let map = match (way, local) {
            (Way::Address, false) => SetKind::ServiceIps,
            (Way::Address, true) => SetKind::LocalIps,
            (Way::NodePort, false) => SetKind::ServiceNodeports,
            (Way::NodePort, true) => SetKind::LocalNodeports,
        };
        Self::number(&mut rule, at(0), map, &[word::GROUP]);
        rule
    }

    /// Puts the number that a map has for a key into registers, by way of the packet's mark, which is what it was
    /// afterwards: a number that is looked up again straight from the map has no words in `nft`'s language, and `nft`
    /// (1.0.6 and others) ends with a failed assertion when it lists such a rule.
    fn number(rule: &mut Rule<'static>, key: Register, map: SetKind, words: &[u32]) {
        let mark = |word| Meta::load(MetaKey::MARK, at(word));
        rule.push(&mark(word::MARK));
        rule.push(&Lookup::map(key, map.name(), at(words[0])));
        rule.push(&Meta::set(MetaKey::MARK, at(words[0])));
        for word in words {
            rule.push(&mark(*word));
        }
        rule.push(&Meta::set(MetaKey::MARK, at(word::MARK)));
    }

    /// To the chain that draws one of so many endpoints as the group has.
    fn dispatch(&self, chain: &str, way: Way, local: bool) -> Rule<'static> {
        let picks = match local {
            false => SetKind::Picks,
            true => SetKind::LocalPicks,
        };
        let mut rule = self.group(chain, way, local);
        Self::number(&mut rule, at(word::GROUP), SetKind::Groups, &[word::GROUP]);
        let group = at(word::GROUP);
        rule.with(&Lookup::map(group, picks.name(), Register::VERDICT))
    }

    /// Writes the chains that draw an endpoint of so many, but not what leads to them. A packet for an address of a service
    /// whose second look-up finds nothing, as a commit came between, is not taken for one that is for a node port.
    pub(super) fn write_shape(&self, tx: &mut Transaction, shape: Shape) -> Result<(), Error> {
        for local in [false, true] {
            let name = shape.chain(local);
            tx.add(&Chain::new(self.table(), self.name, &name[..]))?;
            tx.flush_chain(self.table(), self.name, &name[..])?;
            let begin = || Build::new(self.table(), self.name, name.clone());
            let by_address = Rule::new(self.table(), self.name, name.clone());
            let by_node_port = self.at_node(begin, Build::finish)?;
            let by_node_port = by_node_port.into_iter().map(|rule| (Way::NodePort, rule));
            for (way, rule) in [(Way::Address, by_address)].into_iter().chain(by_node_port) {
                let group = || self.with_group(rule.clone(), way, local);
                if let Some(time) = shape.affinity() {
                    tx.add(&self.kept(group(), time))?;
                    tx.add(&self.forgotten(group()))?;
                    tx.add(&self.remembered(group(), shape, time))?;
                    // Where no more clients can be remembered they are served all the same.
                }
                let drawn = Self::drawn(group(), shape);
                tx.add(&self.translated(Self::endpoint(drawn, SetKind::Endpoints)))?;
            }
        }
        Ok(())
    }

    /// Draws a place in the group.
    fn drawn(mut rule: Rule<'static>, shape: Shape) -> Rule<'static> {
        rule.push(&Numgen::random(shape.endpoints(), at(word::DRAWN)));
        rule
    }

    /// The endpoint that a map has for the group and the number behind it.
    fn endpoint(mut rule: Rule<'static>, map: SetKind) -> Rule<'static> {
        let group = at(word::GROUP);
        rule.push(&Lookup::map(group, map.name(), at(word::ENDPOINT)));
        rule
    }

    fn translated(&self, mut rule: Rule<'static>) -> Rule<'static> {
        rule.push(&Nat {
            nat_type: Some(NatType::DNAT),
            family: Some(u32::from(self.table().0)),
            addr_min: Some(at(word::ENDPOINT)),
            proto_min: Some(at(word::ENDPOINT + self.address_words())),
            ..Nat::default()
        });
        rule
    }

    const fn address_words(&self) -> u32 {
        match self.family {
            Family::Ipv4 => 1,
            Family::Ipv6 => 4,
        }
    }

    /// The key of affinity: groups of all endpoints and of those of this node have it in common.
    fn client(&self, mut rule: Rule<'static>) -> Rule<'static> {
        let both = (!1_u32).to_ne_bytes();
        rule.push(&Bitwise {
            dreg: Some(at(word::AFFINITY)),
            op: None,
            ..Bitwise::mask_xor(at(word::GROUP), &both, &[0; 4])
        });
        let (saddr, length) = match self.family {
            Family::Ipv4 => (12, 4),
            Family::Ipv6 => (8, 16),
        };
        rule.push(&Payload::load(
            PayloadBase::NETWORK,
            saddr,
            length,
            at(word::CLIENT),
        ));
        rule
    }

    /// A client that is known goes where it went, if that is still an endpoint.
    fn kept(&self, rule: Rule<'static>, time: Duration) -> Rule<'static> {
        let mut rule = self.client(rule);
        Self::number(&mut rule, at(word::AFFINITY), SetKind::Affinity, &NUMBERS);
        self.stays(rule, time)
    }

    /// Another one is sent to an endpoint that is drawn.
    fn remembered(&self, rule: Rule<'static>, shape: Shape, time: Duration) -> Rule<'static> {
        let mut rule = Self::drawn(self.client(rule), shape);
        Self::number(
            &mut rule,
            at(word::GROUP),
            SetKind::AffinityPlaces,
            &NUMBERS,
        );
        self.stays(rule, time)
    }

    /// To the endpoint of the number behind the group, if it is one of the group's; and so again for some time.
    fn stays(&self, rule: Rule<'static>, time: Duration) -> Rule<'static> {
        let rule = Self::endpoint(rule, SetKind::AffinityEndpoints);
        self.translated(rule.with(&Dynset {
            sreg_data: Some(at(word::REMEMBERED)),
            timeout: Some(time.into()),
            ..Dynset::update(SetKind::Affinity.name(), at(word::AFFINITY))
        }))
    }

    /// What is known of a client otherwise no longer holds: an element that is there is not changed by adding it.
    fn forgotten(&self, rule: Rule<'static>) -> Rule<'static> {
        let client = self.client(rule);
        client.with(&Dynset {
            // A map's element has data, also one that goes; which does not matter.
            sreg_data: Some(at(word::AFFINITY)),
            ..Dynset::delete(SetKind::Affinity.name(), at(word::AFFINITY))
        })
    }

    /// Writes the [rule](Self::length) of one more length.
    pub(super) fn write_length(&self, tx: &mut Transaction, length: u8) -> Result<(), Error> {
        tx.insert(&self.length(length))?;
        Ok(())
    }

    /// The rule that lets those pass who are in a network of prefixes of this length that a load balancer is open to.
    fn length(&self, length: u8) -> Rule<'static> {
        let words = self.address_words();
        let (bytes, saddr, daddr) = match self.family {
            Family::Ipv4 => (4, 12, 16),
            Family::Ipv6 => (16, 8, 24),
        };
        let load = |offset, word| Payload::load(PayloadBase::NETWORK, offset, bytes, at(word));
        let (protocol, number, source) = (words, words + 2, words + 3);
        let number_bytes = u32::from(length).to_ne_bytes();
        let mask = u128::MAX
            .checked_shl(128 - u32::from(length))
            .unwrap_or_default();
        let mask = mask.to_be_bytes();
        Rule::new(self.table(), self.name, FIREWALL)
            .with(&load(daddr, 0))
            .with(&Meta::load(MetaKey::L4PROTO, at(protocol)))
            .with(&Payload::load(
                PayloadBase::TRANSPORT,
                2,
                2,
                at(protocol + 1),
            ))
            .with(&Immediate::value(at(number), &number_bytes))
            .with(&load(saddr, source))
            .with(&Bitwise {
                op: None,
                ..Bitwise::mask_xor(
                    at(source),
                    &mask[..bytes as usize],
                    &[0; 16][..bytes as usize],
                )
            })
            .with(&Lookup::set(at(0), SetKind::FirewallSources.name()))
            .with(&Immediate::return_())
    }
}

/// Whether packets come through this chain to those that draw an endpoint.
pub(super) fn leads_to_endpoints(chain: &str) -> bool {
    [
        "nat-prerouting",
        "nat-output",
        SERVICES,
        NODEPORTS,
        LOCAL,
        LOCAL_NODEPORTS,
        ANYWHERE,
        NODEPORTS_ANYWHERE,
    ]
    .contains(&chain)
}

const FIREWALL_CHECK: &str = "firewall-check";
pub(super) const FIREWALL: &str = "firewall";
const REFUSALS: &str = "refusals";
const NODEPORT_REFUSALS: &str = "nodeport-refusals";
const CLUSTER_IPS: &str = "cluster-ips-check";
const SERVICES: &str = "services";
const NODEPORTS: &str = "nodeports";
const LOCAL: &str = "local";
const LOCAL_NODEPORTS: &str = "local-nodeports";
const ANYWHERE: &str = "anywhere";
const NODEPORTS_ANYWHERE: &str = "nodeports-anywhere";
const MASQUERADING: &str = "masquerading";

/// Where an endpoint's number goes: behind the group, to find it, and to where it is remembered from.
const NUMBERS: [u32; 2] = [word::DRAWN, word::REMEMBERED];

const fn at(word: u32) -> Register {
    Register::word(word)
}
