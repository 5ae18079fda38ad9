//! Packets that two rulesets treat differently, looked for among the values that their rules name.
//!
//! A rule is a part of a packet: the address, protocol and ports that it names together. A packet that is tried is such a
//! part, or two of them, one over the other, and for the rest what nothing asks for; then with each value's neighbours,
//! and in each direction. What is not found so may be there all the same.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::{BStr, BString, ByteSlice};

use super::{Connection, Direction, Node, Options, Outcome, Packet, Rules, State, Walk};
use crate::iptables::{self, Address, Rule, Target};
use crate::legacy;
use crate::nft::expr::{
    CmpOp, CtKey, Data, ExpressionView, MetaKey, PayloadBase, Register, Verdict,
};
use crate::nft::{RuleRef, Snapshot, SnapshotTable};
use crate::xt::matches::PortRange;
use crate::xt::matches::multiport::MultiportSide;
use crate::xt::{Family, Match};

/// So many elements of a set are taken at most for a rule that asks it.
const ELEMENTS: usize = 256;
/// So many kinds of difference are told apart at most.
const KINDS: usize = 256;
/// A probability that is no other one.
const SAME: f64 = 1e-6;

/// A part of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Piece {
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    protocol: Option<u8>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    in_interface: Option<BString>,
    out_interface: Option<BString>,
    mark: Option<u32>,
    state: Option<u8>,
    ipv6: Option<bool>,
}

/// A rule's part of a packet, and where it leads.
#[derive(Debug, Clone)]
struct Named {
    piece: Piece,
    /// The chain that it stands in, and those that it leads to: numbers of names.
    chain: u32,
    leads: Vec<u32>,
}

/// The values that rules name.
#[derive(Debug, Clone, Default)]
pub struct Values {
    named: Vec<Named>,
    /// What stands beside the values of rules, each with the chain of its rule.
    near: Vec<(Piece, u32)>,
    chains: HashMap<(BString, BString), u32>,
    seen: HashSet<Piece>,
}

/// What came of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// How many packets were tried.
    pub tried: usize,
    /// For how many of them a walk could not say what becomes of them.
    pub unknown: usize,
    /// How many are treated differently.
    pub different: usize,
    /// One packet of each kind of difference.
    pub differences: Vec<Difference>,
}

/// A packet that is treated differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The packet.
    pub packet: Packet,
    /// Its walk through the first ruleset.
    pub old: Walk,
    /// Its walk through the second one.
    pub new: Walk,
    /// How many more there were for which the same rules decided in the same way.
    pub more: usize,
}

impl Values {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With those that the rules of a snapshot name.
    #[must_use]
    pub fn with_nft(mut self, snapshot: &Snapshot) -> Self {
        for table in snapshot.tables() {
            let name = table.table().name().to_owned();
            for chain in table.chains() {
                let number = self.chain(&name, chain.chain().name());
                for rule in chain.rules() {
                    match iptables::nft::decode(&rule) {
                        Ok(entry) => self.add_rule(&name, number, &entry.rule),
                        Err(_) => self.add_native(&table, &name, number, &rule),
                    }
                }
            }
        }
        self
    }

    /// With those that the rules of legacy tables name.
    #[must_use]
    pub fn with_legacy<'t>(mut self, tables: impl IntoIterator<Item = &'t legacy::Table>) -> Self {
        for table in tables {
            let name = table.name().as_bstr().to_owned();
            for chain in table.chains() {
                let number = self.chain(&name, chain.name());
                for rule in chain.rules() {
                    if let Ok(entry) = iptables::legacy::decode(&rule) {
                        self.add_rule(&name, number, &entry.rule);
                    }
                }
            }
        }
        self
    }

    fn chain(&mut self, table: &BString, name: &BStr) -> u32 {
        let next = u32::try_from(self.chains.len()).unwrap_or(u32::MAX);
        let key = (table.clone(), name.to_owned());
        *self.chains.entry(key).or_insert(next)
    }

    fn add(&mut self, piece: Piece, chain: u32, leads: Vec<u32>) {
        if piece != Piece::default() || !leads.is_empty() {
            self.seen.insert(piece.clone());
            self.named.push(Named {
                piece,
                chain,
                leads,
            });
        }
    }

    fn add_near(&mut self, piece: Piece, chain: u32) {
        if self.seen.insert(piece.clone()) {
            self.near.push((piece, chain));
        }
    }

    /// A rule in iptables' words.
    fn add_rule(&mut self, table: &BString, chain: u32, rule: &Rule) {
        let mut piece = Piece {
            protocol: rule.protocol.as_ref().map(|protocol| protocol.number),
            in_interface: rule.in_interface.as_ref().map(|i| i.name.clone()),
            out_interface: rule.out_interface.as_ref().map(|i| i.name.clone()),
            source: rule.source.as_ref().map(|address| address.address),
            destination: rule.destination.as_ref().map(|address| address.address),
            ..Piece::default()
        };
        let mut sources = Vec::new();
        let mut destinations = Vec::new();
        for one in &rule.matches {
            let (source, destination) = match one {
                Match::Tcp(tcp) => (Some(tcp.source), Some(tcp.destination)),
                Match::Udp(udp) => (Some(udp.source), Some(udp.destination)),
                Match::Sctp(sctp) => (sctp.source, sctp.destination),
                Match::Multiport(ports) => {
                    let ends = ports
                        .ports
                        .iter()
                        .flat_map(|range| [*range.start(), *range.end()]);
                    match ports.side {
                        MultiportSide::Source => sources.extend(ends),
                        _ => destinations.extend(ends),
                    }
                    (None, None)
                }
                Match::Mark(mark) => {
                    piece.mark = Some(mark.value);
                    (None, None)
                }
                Match::Conntrack(conntrack) => {
                    let state = conntrack.state.as_ref();
                    piece.state = state.map(|state| state.value.bits() as u8);
                    (None, None)
                }
                _ => (None, None),
            };
            let ends = |range: Option<PortRange>| {
                let range = range.filter(|range| *range != PortRange::default());
                range
                    .into_iter()
                    .flat_map(|range| [range.first, range.last])
            };
            sources.extend(ends(source));
            destinations.extend(ends(destination));
        }
        piece.source_port = sources.first().copied();
        piece.destination_port = destinations.first().copied();
        let leads = match &rule.target {
            Target::Jump(to) | Target::Goto(to) => vec![self.chain(table, to.as_bstr())],
            _ => Vec::new(),
        };
        self.add(piece.clone(), chain, leads);
        for (address, is_source) in [(&rule.source, true), (&rule.destination, false)] {
            for near in address.iter().flat_map(beside) {
                let (source, destination) = match is_source {
                    true => (Some(near), piece.destination),
                    false => (piece.source, Some(near)),
                };
                let near = Piece {
                    source,
                    destination,
                    ..piece.clone()
                };
                self.add_near(near, chain);
            }
        }
        self.add_ports(&piece, &sources, true, chain);
        self.add_ports(&piece, &destinations, false, chain);
    }

    /// Ports, and those beside them.
    fn add_ports(&mut self, piece: &Piece, ports: &[u16], is_source: bool, chain: u32) {
        for port in ports
            .iter()
            .flat_map(|port| [port.saturating_sub(1), *port, port.saturating_add(1)])
        {
            let mut near = piece.clone();
            match is_source {
                true => near.source_port = Some(port),
                false => near.destination_port = Some(port),
            }
            self.add_near(near, chain);
        }
    }

    /// A rule that iptables has no words for: what it loads and compares with values, or looks up in sets.
    fn add_native(
        &mut self,
        table: &SnapshotTable<'_>,
        table_name: &BString,
        chain: u32,
        rule: &RuleRef<'_>,
    ) {
        let mut loaded: [Option<Loaded>; 20] = [None; 20];
        let mut pieces = vec![Piece::default()];
        let mut near = Vec::new();
        let mut leads = Vec::new();
        for expression in rule.expressions().into_iter().flatten().flatten() {
            let Ok(view) = expression.view() else {
                continue;
            };
            match view {
                ExpressionView::Payload(payload) => {
                    let what = Loaded::of_payload(
                        payload.base(),
                        payload.offset().unwrap_or_default(),
                        payload.len().unwrap_or_default(),
                    );
                    put(&mut loaded, payload.dreg(), what);
                }
                ExpressionView::Meta(meta) => {
                    let what = meta.key().and_then(Loaded::of_meta);
                    put(&mut loaded, meta.dreg(), what);
                }
                ExpressionView::Ct(ct) => {
                    let is_state = ct.key() == Some(CtKey::STATE);
                    put(&mut loaded, ct.dreg(), is_state.then_some(Loaded::State));
                }
                ExpressionView::Bitwise(bitwise) => {
                    let what = word(bitwise.sreg()).and_then(|word| loaded[word]);
                    if what == Some(Loaded::State)
                        && let Some(Data::Value(mask)) = bitwise.mask()
                    {
                        set_in(&mut pieces, Loaded::State, &mask);
                    }
                    put(&mut loaded, bitwise.dreg(), what);
                }
                ExpressionView::Cmp(cmp) => {
                    let what = word(cmp.sreg()).and_then(|word| loaded[word]);
                    let (Some(what), Some(Data::Value(value))) = (what, cmp.data()) else {
                        continue;
                    };
                    near.extend(what.beside(&value));
                    // What a mask left of the state was noted with the mask.
                    if what != Loaded::State || cmp.op() == Some(CmpOp::EQ) {
                        set_in(&mut pieces, what, &value);
                    }
                }
                ExpressionView::Range(range) => {
                    let what = word(range.sreg()).and_then(|word| loaded[word]);
                    for end in [range.from_data(), range.to_data()] {
                        if let (Some(what), Some(Data::Value(value))) = (what, end) {
                            near.extend(what.beside(&value));
                            set_in(&mut pieces, what, &value);
                        }
                    }
                }
                ExpressionView::Lookup(lookup) => {
                    let Some(start) = word(lookup.sreg()) else {
                        continue;
                    };
                    let name = lookup.set().unwrap_or_default();
                    let mut elements = Vec::new();
                    let all: Vec<_> = table
                        .set(name)
                        .iter()
                        .flat_map(|set| set.elements())
                        .collect();
                    let step = all.len().div_ceil(ELEMENTS).max(1);
                    for (place, element) in all.iter().enumerate() {
                        if let Some(Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to))) =
                            element.data()
                        {
                            leads.push(self.chain(table_name, to.as_bytes().as_bstr()));
                        }
                        if place % step == 0
                            && let Some(key) = element.key_bytes()
                        {
                            elements.push(key);
                            elements.extend(element.key_end_bytes());
                        }
                    }
                    // What is no part of a packet, as a number that was drawn, has no values here.
                    if loaded[start].is_none() {
                        put(&mut loaded, lookup.dreg(), None);
                        continue;
                    }
                    pieces = elements
                        .iter()
                        .map(|key| {
                            let mut piece = pieces[0].clone();
                            of_key(&mut piece, &loaded, start, key);
                            piece
                        })
                        .collect();
                    if pieces.is_empty() {
                        pieces.push(Piece::default());
                    }
                    put(&mut loaded, lookup.dreg(), None);
                }
                ExpressionView::Numgen(numgen) => put(&mut loaded, numgen.dreg(), None),
                ExpressionView::Hash(hash) => put(&mut loaded, hash.dreg(), None),
                ExpressionView::Fib(fib) => put(&mut loaded, fib.dreg(), None),
                ExpressionView::Rt(rt) => put(&mut loaded, rt.dreg(), None),
                ExpressionView::Socket(socket) => put(&mut loaded, socket.dreg(), None),
                ExpressionView::Exthdr(exthdr) => put(&mut loaded, exthdr.dreg(), None),
                ExpressionView::Osf(osf) => put(&mut loaded, osf.dreg(), None),
                ExpressionView::Byteorder(byteorder) => put(&mut loaded, byteorder.dreg(), None),
                ExpressionView::Immediate(immediate) => {
                    put(&mut loaded, immediate.dreg(), None);
                    if let Some(Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to))) =
                        immediate.data()
                    {
                        leads.push(self.chain(table_name, to.as_bytes().as_bstr()));
                    }
                }
                _ => {}
            }
        }
        leads.sort_unstable();
        leads.dedup();
        let base = pieces[0].clone();
        for piece in pieces {
            self.add(piece, chain, leads.clone());
        }
        for beside in near {
            self.add_near(over(&beside, &base), chain);
        }
    }
}

/// What stands in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loaded {
    Source(u32),
    Destination(u32),
    Protocol,
    SourcePort,
    DestinationPort,
    In,
    Out,
    Mark,
    State,
    Family,
}

impl Loaded {
    fn of_payload(base: Option<PayloadBase>, offset: u32, length: u32) -> Option<Self> {
        Some(match (base?, offset, length) {
            (PayloadBase::NETWORK, 12, 4) => Self::Source(4),
            (PayloadBase::NETWORK, 16, 4) => Self::Destination(4),
            (PayloadBase::NETWORK, 8, 16) => Self::Source(16),
            (PayloadBase::NETWORK, 24, 16) => Self::Destination(16),
            (PayloadBase::NETWORK, 9, 1) => Self::Protocol,
            (PayloadBase::TRANSPORT, 0, 2) => Self::SourcePort,
            (PayloadBase::TRANSPORT, 2, 2) => Self::DestinationPort,
            // A prefix of whole bytes is loaded in part.
            (PayloadBase::NETWORK, 12, 1..4) => Self::Source(4),
            (PayloadBase::NETWORK, 16, 1..4) => Self::Destination(4),
            _ => return None,
        })
    }

    fn of_meta(key: MetaKey) -> Option<Self> {
        Some(match key {
            MetaKey::L4PROTO => Self::Protocol,
            MetaKey::IIFNAME => Self::In,
            MetaKey::OIFNAME => Self::Out,
            MetaKey::MARK => Self::Mark,
            MetaKey::NFPROTO => Self::Family,
            _ => return None,
        })
    }

    /// How many bytes it has.
    const fn length(self) -> usize {
        match self {
            Self::Source(length) | Self::Destination(length) => length as usize,
            Self::Protocol | Self::Family => 1,
            Self::SourcePort | Self::DestinationPort => 2,
            Self::In | Self::Out => 16,
            Self::Mark | Self::State => 4,
        }
    }

    /// Gives a piece this value.
    fn set(self, piece: &mut Piece, value: &[u8]) {
        let number = || Some(u32::from_ne_bytes(*value.first_chunk()?));
        let port = || Some(u16::from_be_bytes(*value.first_chunk()?));
        match self {
            Self::Source(length) => piece.source = address(length, value).or(piece.source),
            Self::Destination(length) => {
                piece.destination = address(length, value).or(piece.destination);
            }
            Self::Protocol => piece.protocol = value.first().copied(),
            Self::SourcePort => piece.source_port = port(),
            Self::DestinationPort => piece.destination_port = port(),
            Self::In => piece.in_interface = Some(name(value)),
            Self::Out => piece.out_interface = Some(name(value)),
            Self::Mark => piece.mark = number(),
            Self::State => piece.state = number().map(|bits| bits as u8),
            // NFPROTO_IPV6
            Self::Family => piece.ipv6 = value.first().map(|family| *family == 10),
        }
    }

    /// The values beside this one.
    fn beside(self, value: &[u8]) -> Vec<Piece> {
        let mut whole = Piece::default();
        self.set(&mut whole, value);
        let mut pieces = Vec::new();
        if let Some(port) = whole.source_port.or(whole.destination_port) {
            for beside in [port.saturating_sub(1), port.saturating_add(1)] {
                let mut piece = Piece::default();
                self.set(&mut piece, &beside.to_be_bytes());
                pieces.push(piece);
            }
        }
        if let Some(whole) = whole.source.or(whole.destination) {
            let prefix = 8 * u32::try_from(value.len()).unwrap_or(16);
            for beside in beside(&Address::network(whole, prefix)) {
                let mut piece = Piece::default();
                match self {
                    Self::Source(_) => piece.source = Some(beside),
                    _ => piece.destination = Some(beside),
                }
                pieces.push(piece);
            }
        }
        pieces
    }
}

/// An address, of which the last bytes may be missing.
fn address(length: u32, value: &[u8]) -> Option<IpAddr> {
    if value.is_empty() {
        return None;
    }
    let mut bytes = [0; 16];
    let given = value.get(..value.len().min(length as usize))?;
    bytes[..given.len()].copy_from_slice(given);
    Some(match length {
        4 => IpAddr::from(*bytes.first_chunk::<4>()?),
        _ => IpAddr::from(bytes),
    })
}

/// A name of an interface, of which the NULs at the end may be missing.
fn name(value: &[u8]) -> BString {
    let end = value.find_byte(0).unwrap_or(value.len());
    value[..end].into()
}

/// The word of the registers' memory that a register begins with.
fn word(register: Option<Register>) -> Option<usize> {
    let number = match register?.0 {
        0 => return None,
        number @ 1..=4 => (number - 1) * 4,
        number => number.checked_sub(8)?,
    };
    (number < 20).then_some(number as usize)
}

fn put(loaded: &mut [Option<Loaded>; 20], register: Option<Register>, what: Option<Loaded>) {
    if let Some(word) = word(register) {
        loaded[word] = what;
    }
}

fn set_in(pieces: &mut [Piece], what: Loaded, value: &[u8]) {
    pieces.iter_mut().for_each(|piece| what.set(piece, value));
}

/// Gives a piece the fields of a key whose first one stands in this word of the registers.
fn of_key(piece: &mut Piece, loaded: &[Option<Loaded>; 20], start: usize, key: &[u8]) {
    let mut at = 0;
    while let Some(what) = loaded.get(start + at / 4).copied().flatten() {
        let Some(rest) = key.get(at..).filter(|rest| !rest.is_empty()) else {
            return;
        };
        let value = &rest[..what.length().min(rest.len())];
        what.set(piece, value);
        at += what.length().next_multiple_of(4);
    }
}

/// The last address of a network, and those before and behind it.
fn beside(network: &Address) -> Vec<IpAddr> {
    match (network.address, network.mask) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => {
            let (first, last) = (address.to_bits(), address.to_bits() | !mask.to_bits());
            let all = [last, first.wrapping_sub(1), last.wrapping_add(1)];
            all.map(|bits| Ipv4Addr::from_bits(bits).into()).to_vec()
        }
        (IpAddr::V6(address), IpAddr::V6(mask)) => {
            let (first, last) = (address.to_bits(), address.to_bits() | !mask.to_bits());
            let all = [last, first.wrapping_sub(1), last.wrapping_add(1)];
            all.map(|bits| Ipv6Addr::from_bits(bits).into()).to_vec()
        }
        _ => Vec::new(),
    }
}

/// A piece over another one: what the upper one does not say, the lower one does.
fn over(upper: &Piece, lower: &Piece) -> Piece {
    Piece {
        source: upper.source.or(lower.source),
        destination: upper.destination.or(lower.destination),
        protocol: upper.protocol.or(lower.protocol),
        source_port: upper.source_port.or(lower.source_port),
        destination_port: upper.destination_port.or(lower.destination_port),
        in_interface: upper
            .in_interface
            .clone()
            .or_else(|| lower.in_interface.clone()),
        out_interface: upper
            .out_interface
            .clone()
            .or_else(|| lower.out_interface.clone()),
        mark: upper.mark.or(lower.mark),
        state: upper.state.or(lower.state),
        ipv6: upper.ipv6.or(lower.ipv6),
    }
}

/// At most so many of a list, from all of it.
fn thinned<T>(list: &[T], most: usize) -> impl Iterator<Item = &T> {
    let step = list.len().div_ceil(most.max(1)).max(1);
    list.iter().step_by(step)
}

impl Values {
    /// Packets that have these values: at most so many.
    #[must_use]
    pub fn packets(&self, most: usize) -> Vec<Packet> {
        const STATES: [State; 5] = [
            State::New,
            State::Established,
            State::Related,
            State::Invalid,
            State::Untracked,
        ];
        const DIRECTIONS: [Direction; 3] = [Direction::In, Direction::Forwarded, Direction::Out];
        let mut tried = HashSet::new();
        let mut packets = Vec::new();
        // A third of them are the rules' own, a third lie beside, and the rest are of two rules each.
        let third = most / 9 + 1;
        let mut pieces: Vec<Piece> = Vec::new();
        for state in STATES {
            for (ipv6, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17), (false, 1)] {
                pieces.push(Piece {
                    state: Some(state.bit() as u8),
                    ipv6: Some(ipv6),
                    protocol: Some(protocol),
                    ..Piece::default()
                });
            }
        }
        pieces.extend(thinned(&self.named, third).map(|named| named.piece.clone()));
        pieces.extend(thinned(&self.near, third).map(|(piece, _)| piece.clone()));
        let mut callers: HashMap<u32, Vec<&Piece>> = HashMap::new();
        for named in &self.named {
            for to in &named.leads {
                callers.entry(*to).or_default().push(&named.piece);
            }
        }
        let rules = thinned(&self.named, third).map(|named| (&named.piece, named.chain));
        let beside = thinned(&self.near, third).map(|(piece, chain)| (piece, *chain));
        for (piece, chain) in rules.chain(beside) {
            let callers = callers.get(&chain).into_iter().flatten();
            pieces.extend(callers.take(4).map(|caller| over(piece, caller)));
        }
        // Any two, in an order that is the same each time.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        };
        let all: Vec<&Piece> = {
            let named = self.named.iter().map(|named| &named.piece);
            named
                .chain(self.near.iter().map(|(piece, _)| piece))
                .collect()
        };
        if !all.is_empty() {
            for _ in 0..most {
                let (upper, lower) = (all[draw(all.len())], all[draw(all.len())]);
                pieces.push(over(upper, lower));
            }
        }
        for piece in pieces {
            for direction in DIRECTIONS {
                if packets.len() >= most {
                    return packets;
                }
                if tried.insert((piece.clone(), direction)) {
                    packets.extend(piece.packet(direction));
                }
            }
        }
        packets
    }
}

impl Piece {
    /// A packet that has it; `None` if there is none, as its addresses are of two families.
    fn packet(&self, direction: Direction) -> Option<Packet> {
        let of = |address: &Option<IpAddr>| address.map(|address| address.is_ipv6());
        let ipv6 = of(&self.source)
            .or(of(&self.destination))
            .or(self.ipv6)
            .unwrap_or(false);
        if [of(&self.source), of(&self.destination), self.ipv6].contains(&Some(!ipv6)) {
            return None;
        }
        let known = |v4: [u8; 4], v6: [u16; 8]| match ipv6 {
            false => IpAddr::from(v4),
            true => IpAddr::from(v6),
        };
        // Addresses of documentation (RFC 5737, RFC 3849).
        let source = known([198, 51, 100, 7], [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7]);
        let destination = known([203, 0, 113, 9], [0x2001, 0xdb8, 1, 0, 0, 0, 0, 9]);
        let ported = self.source_port.or(self.destination_port).is_some();
        let protocol = self.protocol.unwrap_or(6);
        if ported && !matches!(protocol, 6 | 17 | 33 | 132 | 136) {
            return None;
        }
        let mut packet = Packet::between(
            direction,
            protocol,
            self.source.unwrap_or(source),
            self.destination.unwrap_or(destination),
        );
        packet.family = if ipv6 { Family::Ipv6 } else { Family::Ipv4 };
        match protocol {
            6 | 17 | 33 | 132 | 136 => {
                packet.source_port = Some(self.source_port.unwrap_or(40000));
                packet.destination_port = Some(self.destination_port.unwrap_or(9));
                packet.tcp_flags = (protocol == 6).then_some(2);
            }
            1 => (packet.icmp_type, packet.icmp_code) = (Some(8), Some(0)),
            58 => (packet.icmp_type, packet.icmp_code) = (Some(128), Some(0)),
            _ => {}
        }
        packet.mark = Some(self.mark.unwrap_or(0));
        (packet.length, packet.ttl, packet.tos) = (Some(60), Some(64), Some(0));
        packet.packet_type = Some(0);
        let named = |name: &Option<BString>, otherwise: &str| {
            Some(name.clone().unwrap_or_else(|| otherwise.into()))
        };
        if direction != Direction::Out {
            packet.in_interface = named(&self.in_interface, "eth0");
        }
        if direction != Direction::In {
            packet.out_interface = named(&self.out_interface, "eth1");
        }
        packet.connection = Connection {
            state: Some(self.state()),
            is_reply: Some(false),
            mark: Some(0),
            status: Some(0),
            ..Connection::default()
        };
        Some(packet)
    }

    /// The first of the states that its bits stand for.
    fn state(&self) -> State {
        let bits = u128::from(self.state.unwrap_or(0));
        let states = [
            State::New,
            State::Established,
            State::Related,
            State::Invalid,
            State::Untracked,
        ];
        let mut states = states.into_iter();
        states
            .find(|state| bits & state.bit() != 0)
            .unwrap_or(State::New)
    }
}

/// What becomes of a packet, in words, with the probability of each.
fn summary(walk: &Walk) -> Summary {
    let mut summary = Summary::default();
    for end in &walk.ends {
        summary.is_unknown |= matches!(end.outcome, Outcome::Unknown(_) | Outcome::NotFollowed(_));
        summary.is_assumed |= !end.assumptions.is_empty();
        let packet = &end.packet;
        let arrives = matches!(
            end.outcome,
            Outcome::Delivered | Outcome::Forwarded | Outcome::Sent | Outcome::Queued(_)
        );
        let words = match arrives {
            true => format!(
                "{} from {} {} to {} {} mark {}",
                end.outcome,
                packet.source,
                packet.source_port,
                packet.destination,
                packet.destination_port,
                packet.mark
            ),
            false => end.outcome.to_string(),
        };
        *summary.ends.entry(words).or_default() += end.probability;
    }
    summary
}

#[derive(Default)]
struct Summary {
    ends: BTreeMap<String, f64>,
    is_unknown: bool,
    /// Whether something is assumed, so that probabilities cannot be compared.
    is_assumed: bool,
}

impl Summary {
    fn is_the_same(&self, other: &Self) -> bool {
        let words = self.ends.keys().eq(other.ends.keys());
        let assumed = self.is_assumed || other.is_assumed;
        let close = |(one, other): (&f64, &f64)| (one - other).abs() < SAME;
        words && (assumed || self.ends.values().zip(other.ends.values()).all(close))
    }
}

/// Which rule decided.
fn decided(walk: &Walk) -> String {
    let mut said = String::new();
    for end in &walk.ends {
        let last = end
            .steps
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        if !said.contains(&last) {
            said.push_str(&last);
            said.push('\n');
        }
        said.push_str(&end.outcome.to_string());
    }
    said
}

/// Walks packets through two rulesets, and says which are treated differently: accepted by one and not by the other, or
/// sent elsewhere, or with another probability.
#[must_use]
pub fn compare(
    old: &Rules<'_>,
    new: &Rules<'_>,
    packets: &[Packet],
    node: &Node,
    options: &Options,
) -> Comparison {
    let mut comparison = Comparison::default();
    let mut kinds: HashMap<(String, String), usize> = HashMap::new();
    for packet in packets {
        comparison.tried += 1;
        let (one, other) = (
            old.walk(packet, node, options),
            new.walk(packet, node, options),
        );
        let (was, is) = (summary(&one), summary(&other));
        if was.is_unknown || is.is_unknown {
            comparison.unknown += 1;
            continue;
        }
        if was.is_the_same(&is) {
            continue;
        }
        comparison.different += 1;
        let key = (decided(&one), decided(&other));
        match kinds.get(&key) {
            Some(place) => comparison.differences[*place].more += 1,
            None if kinds.len() < KINDS => {
                kinds.insert(key, comparison.differences.len());
                comparison.differences.push(Difference {
                    packet: packet.clone(),
                    old: one,
                    new: other,
                    more: 0,
                });
            }
            None => {}
        }
    }
    comparison
}

#[cfg(all(test, feature = "model", feature = "text"))]
mod tests {
    use super::*;
    use crate::nft::Scope;
    use crate::nft::live::Model;
    use crate::text::Script;

    fn snapshot(text: &str) -> Snapshot {
        let script = Script::parse("test", text).unwrap();
        let mut nft = Model::new().connect().unwrap();
        let change = script.transaction(None).unwrap();
        nft.commit(change.transaction()).unwrap();
        nft.snapshot(Scope::all()).unwrap()
    }

    fn compared(old: &str, new: &str) -> Comparison {
        let (old, new) = (snapshot(old), snapshot(new));
        let packets = Values::new().with_nft(&old).with_nft(&new).packets(3000);
        compare(
            &Rules::new().with_nft(&old),
            &Rules::new().with_nft(&new),
            &packets,
            &Node {
                addresses: Some(Vec::new()),
                ..Node::default()
            },
            &Options::default(),
        )
    }

    /// One rule is changed a little at a time; each change is found by a packet that it is about.
    #[test]
    fn each_change_of_a_rule_is_found() {
        let ruleset = |rule: &str| {
            format!(
                "table inet t {{
                    set s {{ type ipv4_addr . inet_service; elements = {{ 192.0.2.1 . 80, 192.0.2.2 . 443 }} }}
                    chain c {{ {rule} }}
                    chain f {{ type filter hook forward priority 0; policy drop;
                        ip saddr 10.0.0.0/24 jump c
                        ct state established accept
                    }}
                }}"
            )
        };
        let rule = "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept";
        let same = compared(&ruleset(rule), &ruleset(rule));
        assert_eq!((same.different, same.unknown), (0, 0));
        assert!(same.tried > 100, "{}", same.tried);
        for changed in [
            "tcp dport 22-24 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp sport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x11 accept",
            "udp dport 22-23 accept; ip daddr . tcp dport @s accept; meta mark 0x10 accept",
            "tcp dport 22-23 accept; ip daddr . tcp dport @s accept; iifname \"eth7\" accept",
        ] {
            let found = compared(&ruleset(rule), &ruleset(changed));
            assert!(found.different > 0, "{changed}");
            for difference in &found.differences {
                let (was, is) = (summary(&difference.old), summary(&difference.new));
                assert!(!was.is_the_same(&is));
            }
        }
        let established = ruleset(rule).replace("established", "related");
        assert!(compared(&ruleset(rule), &established).different > 0);
        let network = ruleset(rule).replace("/24", "/25");
        assert!(compared(&ruleset(rule), &network).different > 0);
    }

    #[test]
    fn other_translations_and_probabilities_are_differences() {
        let ruleset = |rule: &str| {
            format!(
                "table ip t {{ chain n {{ type nat hook prerouting priority -100;
                    ip daddr 10.96.0.1 tcp dport 443 {rule}
                }} }}"
            )
        };
        let two = ruleset("dnat to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }");
        let other = ruleset("dnat to numgen random mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.3 }");
        let uneven = ruleset(
            "dnat to numgen random mod 4 map { 0 : 10.0.0.1, 1 : 10.0.0.2, 2 : 10.0.0.2, 3 : 10.0.0.2 }",
        );
        assert_eq!(compared(&two, &two).different, 0);
        assert!(compared(&two, &other).different > 0);
        assert!(compared(&two, &uneven).different > 0);
    }
}
