//! Values from rules, and packets with these values.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::changed::{Changed, key_of_element, key_of_legacy, key_of_rule};
use super::loaded::{Loaded, Registers};
use super::piece::{Piece, adjacent, over};
use crate::{Direction, Packet, State};
use chainwright::iptables::{self, Address, Rule, Target};
use chainwright::legacy;
use chainwright::nft::expr::{CmpOp, CtKey, Data, ExpressionView, LookupRef, Verdict};
use chainwright::nft::{ElementRef, RuleRef, Snapshot, SnapshotTable};
use chainwright::xt::Match;
use chainwright::xt::matches::PortRange;
use chainwright::xt::matches::multiport::MultiportSide;

/// Maximum number of set elements for each rule with a lookup.
const ELEMENTS: usize = 256;
/// Maximum number of changed set elements for each rule with a lookup.
const CHANGED: usize = 4096;
/// Interface for rules that exclude one.
const OTHER_INTERFACE: &str = "eth7";
/// Maximum length of a path of rules that ends at a changed rule.
const MAX_PATH_LENGTH: usize = 8;
/// Maximum number of such paths for each changed rule.
const MAX_PATHS: usize = 16;
/// Piece of a packet from a rule, and the chains to which the rule jumps.
#[derive(Debug, Clone)]
struct Named {
    piece: Piece,
    /// Number of the rule's chain, and of the chains to which it jumps.
    chain: u32,
    targets: Vec<u32>,
    /// Whether only one of the rulesets has the rule.
    changed: bool,
}

/// Values from rules.
#[derive(Debug, Clone, Default)]
pub struct Values {
    named: Vec<Named>,
    /// Pieces with neighboring values, with the chain of the rule.
    near: Vec<(Piece, u32)>,
    changed: Changed,
    chains: HashMap<(BString, BString), u32>,
    seen: HashSet<Piece>,
}

impl Values {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Collects the values of two rulesets, each with nf_tables rules and legacy tables.
    #[must_use]
    pub fn between(old: (&Snapshot, &[legacy::Table]), new: (&Snapshot, &[legacy::Table])) -> Self {
        let mut values = Self::new();
        values.changed.nft(old.0, new.0);
        values.changed.legacy(old.1, new.1);
        for (snapshot, tables) in [old, new] {
            values = values.with_nft(snapshot).with_legacy(tables);
        }
        values
    }

    /// Returns the rules and elements that only one of the rulesets has.
    pub(super) const fn changed(&self) -> &Changed {
        &self.changed
    }

    /// Adds the values of a snapshot's rules.
    #[must_use]
    pub fn with_nft(mut self, snapshot: &Snapshot) -> Self {
        for table in snapshot.tables() {
            let name = table.table().name().to_owned();
            let family = table.table().family();
            for chain in table.chains() {
                let at = chain.chain();
                let number = self.chain(&name, at.name());
                for rule in chain.rules() {
                    let key = key_of_rule(family, name.as_bstr(), at.name(), &rule);
                    let changed = self.changed.is(key);
                    match iptables::nft::decode(&rule) {
                        Ok(entry) => self.add_rule(&name, number, &entry.rule, changed),
                        Err(_) => self.add_native(&table, &name, number, &rule, changed),
                    }
                }
            }
        }
        self
    }

    /// Adds the values of legacy rules.
    #[must_use]
    pub fn with_legacy<'t>(mut self, tables: impl IntoIterator<Item = &'t legacy::Table>) -> Self {
        for table in tables {
            let name = table.name().as_bstr().to_owned();
            for chain in table.chains() {
                let number = self.chain(&name, chain.name());
                for rule in chain.rules() {
                    if let Ok(entry) = iptables::legacy::decode(&rule) {
                        let key = key_of_legacy(table, chain.name(), &rule);
                        let changed = key.is_some_and(|key| self.changed.is(key));
                        self.add_rule(&name, number, &entry.rule, changed);
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

    fn add(&mut self, piece: Piece, chain: u32, targets: Vec<u32>, changed: bool) {
        if changed || piece != Piece::default() || !targets.is_empty() {
            self.seen.insert(piece.clone());
            self.named.push(Named {
                piece,
                chain,
                targets,
                changed,
            });
        }
    }

    fn add_near(&mut self, piece: Piece, chain: u32) {
        if self.seen.insert(piece.clone()) {
            self.near.push((piece, chain));
        }
    }

    /// Adds the values of a rule in iptables' form.
    fn add_rule(&mut self, table: &BString, chain: u32, rule: &Rule, changed: bool) {
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
        let targets = match &rule.target {
            Target::Jump(to) | Target::Goto(to) => vec![self.chain(table, to.as_bstr())],
            _ => Vec::new(),
        };
        // A packet that matches must not have values that the rule excludes.
        let mut met = piece.clone();
        let not = |interface: &Option<iptables::Interface>| {
            interface.as_ref().is_some_and(|interface| interface.invert)
        };
        let is_not = |address: &Option<Address>| address.is_some_and(|address| address.invert);
        if not(&rule.in_interface) {
            met.in_interface = Some(OTHER_INTERFACE.into());
        }
        if not(&rule.out_interface) {
            met.out_interface = Some(OTHER_INTERFACE.into());
        }
        if is_not(&rule.source) {
            met.source = None;
        }
        if is_not(&rule.destination) {
            met.destination = None;
        }
        if rule.protocol.is_some_and(|protocol| protocol.invert) {
            met.protocol = None;
        }
        for one in &rule.matches {
            match one {
                Match::Mark(mark) if mark.invert => met.mark = None,
                Match::Conntrack(conntrack) => {
                    let state = conntrack.state.as_ref().filter(|state| state.invert);
                    if let Some(state) = state {
                        let bits = state.value.bits() as u8;
                        let other = State::ALL.into_iter().map(|state| state.bit() as u8);
                        met.state = other.into_iter().find(|bit| bits & bit == 0);
                    }
                }
                _ => {}
            }
        }
        if met != piece {
            self.add(met, chain, targets.clone(), changed);
        }
        self.add(piece.clone(), chain, targets, changed);
        for (address, is_source) in [(&rule.source, true), (&rule.destination, false)] {
            for near in address.iter().flat_map(adjacent) {
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

    /// Adds ports and their neighbors.
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

    /// Adds the values of a rule without a form in iptables' syntax: loads that are compared or looked up.
    fn add_native(
        &mut self,
        table: &SnapshotTable<'_>,
        table_name: &BString,
        chain: u32,
        rule: &RuleRef<'_>,
        changed: bool,
    ) {
        let mut native = Native::new();
        for expression in rule.expressions().into_iter().flatten().flatten() {
            let Ok(view) = expression.view() else {
                continue;
            };
            native.expression(table, &view, &self.changed);
        }
        let mut targets: Vec<u32> = native
            .targets
            .iter()
            .map(|to| self.chain(table_name, to.as_bstr()))
            .collect();
        targets.sort_unstable();
        targets.dedup();
        let base = native.pieces.first().cloned().unwrap_or_default();
        for piece in native.changed {
            self.add(piece, chain, targets.clone(), true);
        }
        for piece in native.pieces {
            self.add(piece, chain, targets.clone(), changed);
        }
        for near in native.near {
            self.add_near(over(&near, &base), chain);
        }
    }
}

/// Values of an nf_tables rule.
struct Native {
    loaded: Registers,
    /// Pieces that the rule matches, as far as its comparisons are understood; at least one.
    pieces: Vec<Piece>,
    near: Vec<Piece>,
    /// Pieces of elements that only one of the rulesets has.
    changed: Vec<Piece>,
    /// Chains to which it jumps.
    targets: Vec<BString>,
}

impl Native {
    fn new() -> Self {
        Self {
            loaded: Registers::default(),
            pieces: vec![Piece::default()],
            near: Vec::new(),
            changed: Vec::new(),
            targets: Vec::new(),
        }
    }

    fn expression(
        &mut self,
        table: &SnapshotTable<'_>,
        view: &ExpressionView<'_>,
        changed: &Changed,
    ) {
        let loaded = &mut self.loaded;
        match view {
            ExpressionView::Payload(payload) => {
                let what = Loaded::of_payload(
                    payload.base(),
                    payload.offset().unwrap_or_default(),
                    payload.len().unwrap_or_default(),
                );
                loaded.put(payload.dreg(), what);
            }
            ExpressionView::Meta(meta) => {
                loaded.put(meta.dreg(), meta.key().and_then(Loaded::of_meta));
            }
            ExpressionView::Ct(ct) => {
                let is_state = ct.key() == Some(CtKey::STATE);
                loaded.put(ct.dreg(), is_state.then_some(Loaded::State));
            }
            ExpressionView::Bitwise(bitwise) => {
                let content = loaded.get(bitwise.sreg());
                let Some(Data::Value(mask)) = bitwise.mask() else {
                    loaded.put(bitwise.dreg(), content.map(|content| content.what));
                    return;
                };
                loaded.mask(bitwise.dreg(), content, &mask);
                if content.is_some_and(|content| content.what == Loaded::State) {
                    self.set(Loaded::State, &mask);
                }
            }
            ExpressionView::Cmp(cmp) => {
                let (Some(content), Some(Data::Value(value))) =
                    (loaded.get(cmp.sreg()), cmp.data())
                else {
                    return;
                };
                self.near.extend(content.adjacent(&value));
                if cmp.op() == Some(CmpOp::NEQ) && content.what != Loaded::State {
                    let mut named = Piece::default();
                    content.what.set(&mut named, &value);
                    self.near.push(named);
                    match content.what {
                        Loaded::In | Loaded::Out => {
                            self.set(content.what, OTHER_INTERFACE.as_bytes())
                        }
                        _ => {}
                    }
                    return;
                }
                // The masked state was recorded with the mask.
                if content.what != Loaded::State || cmp.op() == Some(CmpOp::EQ) {
                    self.set(content.what, &value);
                }
            }
            ExpressionView::Range(range) => {
                let content = loaded.get(range.sreg());
                for end in [range.from_data(), range.to_data()] {
                    if let (Some(content), Some(Data::Value(value))) = (content, end) {
                        self.near.extend(content.adjacent(&value));
                        self.set(content.what, &value);
                    }
                }
            }
            ExpressionView::Lookup(lookup) => self.lookup(table, lookup, changed),
            ExpressionView::Immediate(immediate) => {
                loaded.put(immediate.dreg(), None);
                self.targets
                    .extend(immediate.data().as_ref().and_then(leads_to));
            }
            // These loads are not part of a packet.
            ExpressionView::Numgen(numgen) => loaded.put(numgen.dreg(), None),
            ExpressionView::Hash(hash) => loaded.put(hash.dreg(), None),
            ExpressionView::Fib(fib) => loaded.put(fib.dreg(), None),
            ExpressionView::Rt(rt) => loaded.put(rt.dreg(), None),
            ExpressionView::Socket(socket) => loaded.put(socket.dreg(), None),
            ExpressionView::Exthdr(exthdr) => loaded.put(exthdr.dreg(), None),
            ExpressionView::Osf(osf) => loaded.put(osf.dreg(), None),
            ExpressionView::Byteorder(byteorder) => loaded.put(byteorder.dreg(), None),
            _ => {}
        }
    }

    fn set(&mut self, what: Loaded, value: &[u8]) {
        self.pieces
            .iter_mut()
            .for_each(|piece| what.set(piece, value));
    }

    /// Adds the keys of a set and the targets of a map.
    fn lookup(&mut self, table: &SnapshotTable<'_>, lookup: &LookupRef<'_>, changed: &Changed) {
        let set = table.set(lookup.set().unwrap_or_default());
        let all: Vec<_> = set.iter().flat_map(|set| set.elements()).collect();
        let data = all.iter().filter_map(|element| element.data());
        self.targets.extend(data.filter_map(|data| leads_to(&data)));
        // Only keys from packet data have values here, unlike random numbers.
        if self.loaded.get(lookup.sreg()).is_some() {
            let base = self.pieces.first().cloned().unwrap_or_default();
            let of = |element: &ElementRef<'_>| {
                let keys = [element.key_bytes(), element.key_end_bytes()];
                keys.map(|key| {
                    let mut piece = base.clone();
                    self.loaded.set_key(&mut piece, lookup.sreg(), key?);
                    Some(piece)
                })
            };
            let mut pieces: Vec<Piece> = thinned(&all, ELEMENTS).flat_map(of).flatten().collect();
            if let Some(set) = set {
                let (name, at) = (table.table().name(), set.set());
                let is_changed =
                    |element: &&ElementRef<'_>| changed.is(key_of_element(name, &at, element));
                let of_changed = all.iter().filter(is_changed).flat_map(of).flatten();
                self.changed.extend(of_changed.take(CHANGED));
            }
            if pieces.is_empty() {
                pieces.push(Piece::default());
            }
            self.pieces = pieces;
        }
        self.loaded.put(lookup.dreg(), None);
    }
}

/// Returns the target chain of a verdict.
fn leads_to(data: &Data<'_>) -> Option<BString> {
    match data {
        Data::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some(to.as_bytes().into()),
        _ => None,
    }
}

/// Returns at most about `most` elements, evenly distributed.
fn thinned<T>(list: &[T], most: usize) -> impl Iterator<Item = &T> {
    let step = list.len().div_ceil(most.max(1)).max(1);
    list.iter().step_by(step)
}

impl Values {
    /// Creates at most `most` packets with these values.
    #[must_use]
    pub fn packets(&self, most: usize) -> Vec<Packet> {
        const DIRECTIONS: [Direction; 3] = [Direction::In, Direction::Forwarded, Direction::Out];
        let mut tried = HashSet::new();
        let mut packets = Vec::new();
        // One third has the values of rules, one third neighboring values, and the rest values of two rules each.
        let third = most / 9 + 1;
        let mut pieces: Vec<Piece> = Vec::new();
        for state in State::ALL {
            for (ipv6, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17), (false, 1)] {
                pieces.push(Piece {
                    state: Some(state.bit() as u8),
                    ipv6: Some(ipv6),
                    protocol: Some(protocol),
                    ..Piece::default()
                });
            }
        }
        let mut callers: HashMap<u32, Vec<&Named>> = HashMap::new();
        for named in &self.named {
            for to in &named.targets {
                callers.entry(*to).or_default().push(named);
            }
        }
        // Rules that only one ruleset has come first, with the rules that jump to their chains.
        let changed: Vec<&Named> = self.named.iter().filter(|named| named.changed).collect();
        for named in thinned(&changed, 3 * third) {
            let start = pieces.len();
            add_caller_paths(
                named.piece.clone(),
                named.chain,
                &callers,
                MAX_PATH_LENGTH,
                start + MAX_PATHS,
                &mut pieces,
            );
        }
        pieces.extend(thinned(&self.named, third).map(|named| named.piece.clone()));
        pieces.extend(thinned(&self.near, third).map(|(piece, _)| piece.clone()));
        let rules = thinned(&self.named, third).map(|named| (&named.piece, named.chain));
        let near = thinned(&self.near, third).map(|(piece, chain)| (piece, *chain));
        for (piece, chain) in rules.chain(near) {
            let callers = callers.get(&chain).into_iter().flatten();
            pieces.extend(callers.take(4).map(|caller| over(piece, &caller.piece)));
        }
        // Random pairs, in a reproducible order.
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

/// Combines a piece with the pieces of rules that jump to its chain, path by path, up to `most` pieces in total.
fn add_caller_paths(
    piece: Piece,
    chain: u32,
    callers: &HashMap<u32, Vec<&Named>>,
    depth: usize,
    most: usize,
    pieces: &mut Vec<Piece>,
) {
    if depth > 0 {
        for caller in callers.get(&chain).into_iter().flatten() {
            if pieces.len() >= most {
                return;
            }
            let both = over(&piece, &caller.piece);
            add_caller_paths(both, caller.chain, callers, depth - 1, most, pieces);
        }
    }
    if pieces.len() < most {
        pieces.push(piece);
    }
}
