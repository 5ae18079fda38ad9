//! Chains and rules, whose number does not depend on the services.

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

/// The address of traffic: an address and port of a service, or a port of the node. The former is looked up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrontendKind {
    Address,
    NodePort,
}

/// Number of endpoints and affinity time, which determine the chain that chooses an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PickKey(u32);

impl PickKey {
    /// Further endpoints are left out: the number has 15 bits.
    pub(super) const MAX_ENDPOINTS: usize = (1 << 15) - 1;
    const SECONDS: u32 = 1 << 17;

    /// Creates a pick key with this number of endpoints and affinity. The time is limited to between one second and a
    /// day and a half.
    pub(super) fn new(endpoints: usize, affinity: Option<Duration>) -> Self {
        let endpoints = endpoints.min(Self::MAX_ENDPOINTS) as u32;
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

    /// Returns the pick key of a chain that chooses an endpoint, by the chain's name.
    pub(super) fn of_chain(name: &str) -> Option<Self> {
        let name = name.strip_prefix("local-").unwrap_or(name);
        let (endpoints, seconds) = match name.strip_prefix("pick-")?.split_once("-keep-") {
            None => (name.strip_prefix("pick-")?, None),
            Some((endpoints, time)) => (endpoints, Some(time.strip_suffix('s')?.parse().ok()?)),
        };
        let pick_key = Self::new(endpoints.parse().ok()?, seconds.map(Duration::from_secs));
        (pick_key.chain(false) == name).then_some(pick_key)
    }

    /// Returns the name of the chain that chooses an endpoint.
    pub(super) fn chain(self, local: bool) -> String {
        let local = if local { "local-" } else { "" };
        let endpoints = self.endpoints();
        match self.affinity() {
            None => format!("{local}pick-{endpoints}"),
            Some(time) => format!("{local}pick-{endpoints}-keep-{}s", time.as_secs()),
        }
    }
}

/// Positions of values in the registers, in words of four bytes. The key of a service takes up to six from the first
/// one on.
mod word {
    /// Group and client: the key of affinity.
    pub(super) const AFFINITY: u32 = 4;
    pub(super) const CLIENT: u32 = 5;
    /// The value that affinity remembers.
    pub(super) const REMEMBERED: u32 = 9;
    /// The group followed by a slot or an endpoint's number: the keys of `endpoints`, `affinity-places` and
    /// `affinity-endpoints`. The endpoint found replaces the number.
    pub(super) const GROUP: u32 = 10;
    pub(super) const RANDOM_SLOT: u32 = 11;
    pub(super) const ENDPOINT: u32 = 11;
    /// The packet's mark, while the mark holds a number.
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

    /// Returns the table as listed for other programs.
    pub(super) fn table_object(&self, owned: bool) -> Result<Table<'static>, Error> {
        let mut table = Table::new(self.table(), self.name);
        table.flags = owned.then_some(TableFlags::OWNER | TableFlags::PERSIST);
        Ok(table.with_comment("services, by chainwright")?)
    }

    /// Returns the permanent chains, with their hooks.
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

    /// Writes the permanent chains and the `desired` ones, and replaces their rules: in one transaction with everything
    /// else, so that no packet passes a chain without them. `lengths` are the prefix lengths in the
    /// [firewalls](SetKind::FirewallSources).
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

    /// Returns the key of a service: `ip daddr . meta l4proto . th dport`.
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

    /// Returns the rules for packets to addresses that serve node ports: if there are several, at most one matches.
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

    /// Matches packets to an address in a network.
    fn is_to<'r>(&self, rule: Build<'r>, network: IpNet) -> Build<'r> {
        match network {
            IpNet::V4(of) => rule.ip_daddr(masked(of.network(), of.netmask())),
            IpNet::V6(of) => rule.ip6_daddr(masked(of.network(), of.netmask())),
        }
    }

    /// Returns the rules before and after destination translation.
    fn filters(&self) -> Result<Vec<Rule<'_>>, BuildError> {
        let new = |chain, to| self.rule(chain).ct_state(CtState::NEW).jump(to);
        // Packets that already have an endpoint need no lookups: a failing lookup costs as much as a successful one.
        let translated = |chain| {
            let rule = self.rule(chain).ct_status(CtStatus::DNAT);
            rule.comment("already translated to an endpoint").accept()
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
                .comment("no service at this port of a cluster IP")
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
                rules.push(rule.comment("no service at this cluster IP").drop()?);
            }
        }
        Ok(rules)
    }

    /// Returns the rules that translate addresses.
    fn translations(&self) -> Result<Vec<Rule<'_>>, BuildError> {
        let service = self.service();
        let nodeport = [meta::L4PROTO, th::DPORT];
        let mark = self.config.masquerade_mark;
        let masquerade =
            |rule: Build<'static>| rule.meta_mark_set(copy(meta::MARK).with(or(mark))).finish();
        // A commit between two lookups of a packet can make the second one fail. Only such a packet returns from the
        // first jump: it is processed once more.
        let once_more = |chain| {
            let rule = self.rule(chain);
            rule.comment("a commit happened between two lookups: retry")
                .jump(SERVICES)
        };
        let mut rules = vec![
            self.rule("nat-prerouting").jump(SERVICES)?,
            once_more("nat-prerouting")?,
            self.rule("nat-output").jump(SERVICES)?,
            once_more("nat-output")?,
            self.rule("nat-postrouting").jump(MASQUERADING)?,
        ];
        // Match the sender first: that takes no lookup.
        let from_outside = match self.config.masquerade_all {
            true => Some(self.rule(SERVICES)),
            false => self.match_pods(self.rule(SERVICES), false),
        };
        if let Some(rule) = from_outside {
            let to_cluster_ip = rule.lookup(self.daddr(), SetKind::ClusterIps.name());
            rules.push(masquerade(to_cluster_ip)?);
        }
        for (frontend_kind, chain, local, anywhere, masqueraded) in [
            (
                FrontendKind::Address,
                SERVICES,
                LOCAL,
                ANYWHERE,
                SetKind::MasqueradeIps,
            ),
            (
                FrontendKind::NodePort,
                NODEPORTS,
                LOCAL_NODEPORTS,
                NODEPORTS_ANYWHERE,
                SetKind::MasqueradeNodeports,
            ),
        ] {
            let lookup = |rule: Build<'static>| match frontend_kind {
                FrontendKind::Address => rule.lookup(&service, masqueraded.name()),
                FrontendKind::NodePort => rule.lookup(&nodeport, masqueraded.name()),
            };
            rules.push(masquerade(lookup(self.rule(chain)))?);
            rules.push(
                self.group(chain, frontend_kind, true)
                    .with(&Immediate::verdict(Verdict::Goto(local.into()))),
            );
            rules.push(self.dispatch(chain, frontend_kind, false));
            if frontend_kind == FrontendKind::Address {
                rules.extend(self.at_node(|| self.rule(SERVICES), |rule| rule.goto(NODEPORTS))?);
            }
            rules.push(self.rule(chain).comment("no service").accept()?);
            if let Some(rule) = self.match_pods(self.rule(local), true) {
                rules.push(
                    rule.comment("pod traffic: endpoints of all nodes")
                        .goto(anywhere)?,
                );
            }
            let own = || self.rule(local).fib_saddr_type(AddressType::LOCAL);
            rules.push(masquerade(own())?);
            rules.push(
                own()
                    .comment("traffic of the node: endpoints of all nodes")
                    .goto(anywhere)?,
            );
            rules.push(self.dispatch(local, frontend_kind, true));
            rules.push(self.dispatch(anywhere, frontend_kind, false));
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

    /// Matches packets from pods of this node or cluster, or all others; `None` if pods' traffic cannot be detected.
    fn match_pods<'r>(&self, rule: Build<'r>, pods: bool) -> Option<Build<'r>> {
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

    /// Returns a rule that loads the endpoint group of the packet's destination, and matches only if there is one.
    fn group(&self, chain: &str, frontend_kind: FrontendKind, local: bool) -> Rule<'static> {
        let rule = Rule::new(self.table(), self.name, chain.to_owned());
        self.with_group(rule, frontend_kind, local)
    }

    /// Adds the same to a rule that already has matches.
    fn with_group(
        &self,
        mut rule: Rule<'static>,
        frontend_kind: FrontendKind,
        local: bool,
    ) -> Rule<'static> {
        let (network, daddr, length) = match self.family {
            Family::Ipv4 => (PayloadBase::NETWORK, 16, 4),
            Family::Ipv6 => (PayloadBase::NETWORK, 24, 16),
        };
        let mut word = 0;
        if frontend_kind == FrontendKind::Address {
            rule.push(&Payload::load(network, daddr, length, at(word)));
            word += length / 4;
        }
        rule.push(&Meta::load(MetaKey::L4PROTO, at(word)));
        rule.push(&Payload::load(PayloadBase::TRANSPORT, 2, 2, at(word + 1)));
        let map = match (frontend_kind, local) {
            (FrontendKind::Address, false) => SetKind::ServiceIps,
            (FrontendKind::Address, true) => SetKind::LocalIps,
            (FrontendKind::NodePort, false) => SetKind::ServiceNodeports,
            (FrontendKind::NodePort, true) => SetKind::LocalNodeports,
        };
        Self::number(&mut rule, at(0), map, &[word::GROUP]);
        rule
    }

    /// Loads the number that a map has for a key into registers, by way of the packet's mark, which is restored
    /// afterwards. `nft`'s language cannot express a map lookup whose result is looked up again directly, and `nft`
    /// (1.0.6 and others) aborts with a failed assertion when it lists such a rule.
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

    /// Jumps to the chain for the group's number of endpoints.
    fn dispatch(&self, chain: &str, frontend_kind: FrontendKind, local: bool) -> Rule<'static> {
        let picks = match local {
            false => SetKind::Picks,
            true => SetKind::LocalPicks,
        };
        let mut rule = self.group(chain, frontend_kind, local);
        Self::number(&mut rule, at(word::GROUP), SetKind::Groups, &[word::GROUP]);
        let group = at(word::GROUP);
        rule.with(&Lookup::map(group, picks.name(), Register::VERDICT))
    }

    /// Writes the chains that choose one of so many endpoints, but not the elements that refer to them. If a commit
    /// makes the second lookup of a packet to a service address fail, the packet is not treated as one to a node port.
    pub(super) fn write_pick_chains(
        &self,
        tx: &mut Transaction,
        pick_key: PickKey,
    ) -> Result<(), Error> {
        for local in [false, true] {
            let name = pick_key.chain(local);
            tx.add(&Chain::new(self.table(), self.name, &name[..]))?;
            tx.flush_chain(self.table(), self.name, &name[..])?;
            let begin = || Build::new(self.table(), self.name, name.clone());
            let by_address = Rule::new(self.table(), self.name, name.clone());
            let by_node_port = self.at_node(begin, Build::finish)?;
            let by_node_port = by_node_port
                .into_iter()
                .map(|rule| (FrontendKind::NodePort, rule));
            for (frontend_kind, rule) in [(FrontendKind::Address, by_address)]
                .into_iter()
                .chain(by_node_port)
            {
                let group = || self.with_group(rule.clone(), frontend_kind, local);
                if let Some(time) = pick_key.affinity() {
                    tx.add(&self.to_remembered_endpoint(group(), time))?;
                    tx.add(&self.delete_affinity(group()))?;
                    tx.add(&self.to_random_endpoint(group(), pick_key, time))?;
                    // If no more clients can be remembered, they are still served.
                }
                let random_slot = Self::random_slot(group(), pick_key);
                tx.add(&self.translated(Self::endpoint(random_slot, SetKind::Endpoints)))?;
            }
        }
        Ok(())
    }

    /// Chooses a random slot in the group.
    fn random_slot(mut rule: Rule<'static>, pick_key: PickKey) -> Rule<'static> {
        rule.push(&Numgen::random(pick_key.endpoints(), at(word::RANDOM_SLOT)));
        rule
    }

    /// Loads the endpoint that a map has for the group and the number after it.
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

    /// Loads the key of affinity, which the groups of all and of local endpoints share.
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

    /// Sends a known client to its previous endpoint, if that still is one.
    fn to_remembered_endpoint(&self, rule: Rule<'static>, time: Duration) -> Rule<'static> {
        let mut rule = self.client(rule);
        Self::number(&mut rule, at(word::AFFINITY), SetKind::Affinity, &NUMBERS);
        self.to_numbered_endpoint(rule, time)
    }

    /// Sends another client to a randomly chosen endpoint.
    fn to_random_endpoint(
        &self,
        rule: Rule<'static>,
        pick_key: PickKey,
        time: Duration,
    ) -> Rule<'static> {
        let mut rule = Self::random_slot(self.client(rule), pick_key);
        Self::number(
            &mut rule,
            at(word::GROUP),
            SetKind::AffinityPlaces,
            &NUMBERS,
        );
        self.to_numbered_endpoint(rule, time)
    }

    /// Sends the client to the endpoint with the number after the group, if it belongs to the group, and renews the
    /// affinity.
    fn to_numbered_endpoint(&self, rule: Rule<'static>, time: Duration) -> Rule<'static> {
        let rule = Self::endpoint(rule, SetKind::AffinityEndpoints);
        self.translated(rule.with(&Dynset {
            sreg_data: Some(at(word::REMEMBERED)),
            timeout: Some(time.into()),
            ..Dynset::update(SetKind::Affinity.name(), at(word::AFFINITY))
        }))
    }

    /// Deletes an outdated affinity of the client: adding an element does not change an existing one.
    fn delete_affinity(&self, rule: Rule<'static>) -> Rule<'static> {
        let client = self.client(rule);
        client.with(&Dynset {
            // An element of a map has data even in a deletion; its value does not matter.
            sreg_data: Some(at(word::AFFINITY)),
            ..Dynset::delete(SetKind::Affinity.name(), at(word::AFFINITY))
        })
    }

    /// Writes the [rule](Self::length) of one more prefix length.
    pub(super) fn write_length(&self, tx: &mut Transaction, length: u8) -> Result<(), Error> {
        tx.insert(&self.length(length))?;
        Ok(())
    }

    /// Returns a rule that accepts clients in a network of this prefix length for which a load balancer is open.
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

/// Returns `true` if packets pass this chain on the way to those that choose an endpoint.
pub(super) fn refers_to_endpoints(chain: &str) -> bool {
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

/// Registers for an endpoint's number: after the group, for the lookup, and where affinity stores it from.
const NUMBERS: [u32; 2] = [word::RANDOM_SLOT, word::REMEMBERED];

const fn at(word: u32) -> Register {
    Register::word(word)
}
