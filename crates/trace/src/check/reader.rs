//! Reads the meaning of a rule from its expressions.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use chainwright::nft::expr::{
    BitwiseOp, BitwiseRef, ByteorderOp, ByteorderRef, CmpOp, CtKey, CtRef, Data, Decoded,
    ExpressionRef, ExpressionView, FibFlags, FibResult, LookupFlags, LookupRef, MetaKey, MetaRef,
    ObjectType, PayloadBase, PayloadRef, RangeOp, Register, RtKey, SocketKey, Verdict, XfrmKey,
};
use chainwright::nft::{DataType, Family, RuleRef};

use super::table::{Contents, TableContext};
use super::variables::{self, Key, Layout, Variables, Writes};
use crate::nft::{ct_order, masked, meta_order, shifted};
use crate::registers::{Order, Registers, bits_of, ordered};
use crate::sets::{ElementField, Set};
use crate::value::Bit;
use crate::value_set::{Constraint, ones};

use super::meaning::{Conditions, Ending, Meaning};
use super::table::add_writes;

/// Maximum number of alternatives of a condition on several fields.
const MAX_BOXES: usize = 1024;

/// Reads a rule.
pub(super) struct Reader<'r, 's> {
    table: &'r TableContext<'s>,
    variables: &'r mut Variables,
    registers: Registers,
    layout: Layout,
    /// Whether the rule has changed packet data: later loads are unknown.
    has_written: bool,
    /// Whether a statement has had an effect outside of the rule.
    has_acted: bool,
    meaning: Meaning,
}

/// The rule continues, or ends here.
enum Next {
    On,
    End,
}

impl<'r, 's> Reader<'r, 's> {
    /// Returns the meaning of a rule.
    pub(super) fn read(
        table: &'r TableContext<'s>,
        variables: &'r mut Variables,
        rule: &RuleRef<'s>,
    ) -> Meaning {
        let mut reader = Self {
            table,
            variables,
            registers: Registers::new(),
            layout: Layout::of(table.family),
            has_written: false,
            has_acted: false,
            meaning: Meaning::default(),
        };
        for expression in rule.expressions().into_iter().flatten() {
            let next = match expression {
                Ok(expression) => reader.expression(&expression),
                Err(_) => None,
            };
            match next {
                Some(Next::On) => {}
                Some(Next::End) => break,
                // What follows is unknown.
                None => {
                    reader.meaning.is_opaque = true;
                    reader.meaning.ending = None;
                    break;
                }
            }
            if reader.meaning.is_contradiction {
                break;
            }
        }
        let Self {
            mut meaning,
            variables,
            ..
        } = reader;
        for list in [&mut meaning.loads, &mut meaning.reads] {
            list.sort_unstable();
            list.dedup();
        }
        if !meaning.is_contradiction {
            meaning.finish(variables);
        }
        meaning
    }

    /// Reads an expression; `None` if it, or its effect on registers, is unknown.
    fn expression(&mut self, expression: &ExpressionRef<'s>) -> Option<Next> {
        let mut writes = Writes::default();
        add_writes(expression, &mut writes);
        let view = expression.view().ok()?;
        match view {
            ExpressionView::Cmp(_)
            | ExpressionView::Range(_)
            | ExpressionView::Lookup(_)
            | ExpressionView::Match(_)
            | ExpressionView::Limit(_)
            | ExpressionView::Quota(_)
            | ExpressionView::Connlimit(_) => self.meaning.acts_early |= self.has_acted,
            ExpressionView::Log(_)
            | ExpressionView::Dup(_)
            | ExpressionView::Dynset(_)
            | ExpressionView::Objref(_) => self.has_acted = true,
            _ => self.has_acted |= !writes.is_empty(),
        }
        match view {
            ExpressionView::Payload(payload) => self.payload(&payload)?,
            ExpressionView::Meta(meta) => self.meta(&meta)?,
            ExpressionView::Ct(ct) => self.ct(&ct)?,
            ExpressionView::Fib(fib) => {
                let is_present = fib.flags()?.contains(FibFlags::PRESENT);
                let bits = match fib.result()? {
                    FibResult::OIFNAME if !is_present => 128,
                    _ => 32,
                };
                self.other(expression, fib.dreg()?, bits)?;
            }
            ExpressionView::Rt(rt) => {
                let bits = match rt.key()? {
                    RtKey::NEXTHOP6 => 128,
                    _ => 32,
                };
                self.other(expression, rt.dreg()?, bits)?;
            }
            ExpressionView::Socket(socket) => {
                let bits = match socket.key()? {
                    SocketKey::CGROUPV2 => 64,
                    _ => 32,
                };
                self.other(expression, socket.dreg()?, bits)?;
            }
            ExpressionView::Osf(osf) => self.other(expression, osf.dreg()?, 128)?,
            ExpressionView::Tunnel(tunnel) => self.other(expression, tunnel.dreg()?, 32)?,
            ExpressionView::Xfrm(xfrm) => {
                let bits = match xfrm.key()? {
                    XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => 128,
                    _ => 32,
                };
                self.other(expression, xfrm.dreg()?, bits)?;
            }
            ExpressionView::Exthdr(exthdr) => match exthdr.dreg() {
                Some(register) => {
                    let is_flag = exthdr.flags().is_some_and(|flags| !flags.is_empty());
                    match exthdr.len().unwrap_or_default() {
                        _ if is_flag => self.other(expression, register, 8)?,
                        length @ 1..=16 => self.other(expression, register, length * 8)?,
                        length => self.unknown(register, length as usize)?,
                    }
                }
                None => self.meaning.is_opaque = true,
            },
            ExpressionView::Bitwise(bitwise) => self.bitwise(&bitwise)?,
            ExpressionView::Byteorder(byteorder) => self.byteorder(&byteorder)?,
            ExpressionView::Numgen(numgen) => self.unknown(numgen.dreg()?, 4)?,
            ExpressionView::Hash(hash) => self.unknown(hash.dreg()?, 4)?,
            ExpressionView::Cmp(cmp) => {
                let data = cmp.data()?;
                self.cmp(cmp.sreg()?, cmp.op()?, data.as_value()?)?;
            }
            ExpressionView::Range(range) => {
                let (from, to) = (range.from_data()?, range.to_data()?);
                let is_within = match range.op()? {
                    RangeOp::EQ => true,
                    RangeOp::NEQ => false,
                    _ => return None,
                };
                self.range(range.sreg()?, from.as_value()?, to.as_value()?, is_within)?;
            }
            ExpressionView::Lookup(lookup) => return self.lookup(&lookup),
            ExpressionView::Immediate(immediate) => {
                return self.immediate(immediate.dreg()?, &immediate.data()?);
            }
            ExpressionView::Counter(_)
            | ExpressionView::Last(_)
            | ExpressionView::Log(_)
            | ExpressionView::Dup(_)
            | ExpressionView::Notrack(_) => {}
            ExpressionView::Objref(objref) => {
                if objref.imm_type() != Some(ObjectType::COUNTER) {
                    self.meaning.is_opaque = true;
                }
            }
            ExpressionView::Match(found) => {
                if found.name()? != "comment" {
                    self.meaning.is_opaque = true;
                }
            }
            ExpressionView::Reject(_)
            | ExpressionView::Queue(_)
            | ExpressionView::Masq(_)
            | ExpressionView::Redir(_) => return Some(self.ends(expression)),
            ExpressionView::Nat(nat) => {
                // In the family inet, packets of the other IP version pass.
                let family = nat.family().and_then(|family| u8::try_from(family).ok());
                let Some(family @ (2 | 10)) = family else {
                    return None;
                };
                if self.table.family == Family::INET {
                    let variable = self.variables.number(Key::Meta(MetaKey::NFPROTO), 8);
                    let value = u128::from(family);
                    self.condition(variable, Constraint::within(vec![(value, value)]));
                }
                return Some(self.ends(expression));
            }
            // Their effect depends on the state of the kernel.
            ExpressionView::Limit(_)
            | ExpressionView::Quota(_)
            | ExpressionView::Connlimit(_)
            | ExpressionView::Dynset(_)
            | ExpressionView::FlowOffload(_)
            | ExpressionView::Synproxy(_)
            | ExpressionView::Tproxy(_) => self.meaning.is_opaque = true,
            _ => return None,
        }
        self.has_written |= !writes.is_empty();
        Some(Next::On)
    }

    /// Ends the chain by a statement.
    fn ends(&mut self, expression: &ExpressionRef<'_>) -> Next {
        self.meaning.ending = Some(Ending::Statement(expression.raw.to_vec()));
        Next::End
    }

    fn immediate(&mut self, register: Register, data: &Data<'_>) -> Option<Next> {
        let verdict = match data {
            Data::Value(bytes) => {
                self.registers.store_bytes(register, bytes)?;
                return Some(Next::On);
            }
            Data::Verdict(verdict) => verdict,
            Data::Opaque(_) => return None,
        };
        self.meaning.ending = Some(match verdict {
            Verdict::Accept => Ending::Accept,
            Verdict::Drop => Ending::Drop,
            Verdict::Return => Ending::Return,
            Verdict::Goto(chain) => Ending::Goto(chain.as_bytes().into()),
            Verdict::Continue => return Some(Next::On),
            Verdict::Jump(_) | Verdict::JumpId(_) => return Some(Next::End),
            Verdict::Break | Verdict::GotoId(_) | Verdict::Other { .. } => return None,
        });
        Some(Next::End)
    }

    /// Stores a variable.
    fn store(&mut self, register: Register, variable: u32, order: Order) -> Option<()> {
        self.meaning.reads.push(variable);
        let bits = self.variables.bits(variable);
        let all: Vec<Bit> = (0..bits).rev().map(|bit| bit_of(variable, bit)).collect();
        self.registers.store_bits(register, &ordered(all, order))
    }

    /// Stores bytes about which nothing is known.
    fn unknown(&mut self, register: Register, length: usize) -> Option<()> {
        if length == 0 || length > 64 {
            return None;
        }
        let mut bits = Vec::new();
        for at in (0..length).step_by(16) {
            let some = (length - at).min(16) as u32 * 8;
            let variable = self.variables.unknown(some);
            bits.extend((0..some).rev().map(|bit| bit_of(variable, bit)));
        }
        self.meaning.is_opaque = true;
        self.registers.store_bits(register, &bits)
    }

    fn payload(&mut self, payload: &PayloadRef<'_>) -> Option<()> {
        let (base, at, length) = (payload.base()?, payload.offset()?, payload.len()?);
        if payload.sreg().is_some() {
            // The rule ends here if the packet is too short.
            self.meaning.is_opaque = true;
            return Some(());
        }
        let register = payload.dreg()?;
        let known = [
            PayloadBase::LINK,
            PayloadBase::NETWORK,
            PayloadBase::TRANSPORT,
            PayloadBase::INNER,
        ];
        if self.has_written || length > 64 || !known.contains(&base) {
            return self.unknown(register, length as usize);
        }
        let mut bits = Vec::with_capacity(length as usize * 8);
        for byte in at..at.checked_add(length)? {
            let (start, size) = variables::field(base, self.layout, byte);
            let is_protocol =
                self.table.family == Family::IP && (base, byte) == (PayloadBase::NETWORK, 9);
            let key = match is_protocol {
                true => Key::Meta(MetaKey::L4PROTO),
                false => Key::Payload(base.0, start, size),
            };
            let variable = self.variables.number(key, size * 8);
            self.meaning.reads.push(variable);
            let low = (start + size - 1 - byte) * 8; // 0 for the protocol
            bits.extend((low..low + 8).rev().map(|bit| bit_of(variable, bit)));
        }
        let is_always_there = base == PayloadBase::NETWORK
            && matches!(self.table.family, Family::IP | Family::IP6 | Family::INET)
            && at + length <= self.layout.header();
        if !is_always_there {
            let end = self.meaning.ends.entry(base.0).or_default();
            *end = (*end).max(at + length);
        }
        self.registers.store_bits(register, &bits)
    }

    fn meta(&mut self, meta: &MetaRef<'_>) -> Option<()> {
        let key = meta.key()?;
        if meta.sreg().is_some() {
            return Some(());
        }
        let register = meta.dreg()?;
        let length = variables::meta_bits(key).div_ceil(8) as usize;
        let is_random = matches!(
            key,
            MetaKey::PRANDOM
                | MetaKey::CPU
                | MetaKey::TIME_NS
                | MetaKey::TIME_DAY
                | MetaKey::TIME_HOUR
        );
        key.name()?;
        if is_random || self.has_written {
            return self.unknown(register, length);
        }
        let protocol = match self.table.family {
            Family::IP => Some(2),
            Family::IP6 => Some(10),
            _ => None,
        };
        if let (MetaKey::NFPROTO, Some(protocol)) = (key, protocol) {
            return self.registers.store_bytes(register, &[protocol]);
        }
        let variable = self.variables.number(Key::Meta(key), length as u32 * 8);
        let is_always_there = matches!(
            key,
            MetaKey::LEN | MetaKey::PROTOCOL | MetaKey::NFPROTO | MetaKey::MARK | MetaKey::PRIORITY
        ) || key == MetaKey::L4PROTO && self.table.family == Family::IP;
        if !is_always_there {
            self.meaning.loads.push(variable);
        }
        self.store(register, variable, meta_order(key))
    }

    fn ct(&mut self, ct: &CtRef<'_>) -> Option<()> {
        let key = ct.key()?;
        if ct.sreg().is_some() {
            return Some(());
        }
        let register = ct.dreg()?;
        key.name()?;
        let is_changing = matches!(
            key,
            CtKey::PKTS | CtKey::BYTES | CtKey::AVGPKT | CtKey::EXPIRATION
        );
        let bits = variables::ct_bits(key);
        let Some(bits) = bits.filter(|_| !is_changing && !self.has_written) else {
            return self.unknown(register, bits.map_or(16, |bits| bits as usize / 8));
        };
        let direction = ct.direction().map(|direction| direction.0);
        let variable = self.variables.number(Key::Ct(key, direction), bits);
        if key != CtKey::STATE {
            self.meaning.loads.push(variable);
        }
        self.store(register, variable, ct_order(key))
    }

    /// Reads another load, which is the same variable as the same load of another rule. `bits` is the number of
    /// bits that it stores.
    fn other(
        &mut self,
        expression: &ExpressionRef<'_>,
        register: Register,
        bits: u32,
    ) -> Option<()> {
        if self.has_written {
            return self.unknown(register, bits as usize / 8);
        }
        let mut decoded = expression.decode().ok()?;
        let dreg = match &mut decoded {
            Decoded::Fib(load) => &mut load.dreg,
            Decoded::Rt(load) => &mut load.dreg,
            Decoded::Socket(load) => &mut load.dreg,
            Decoded::Osf(load) => &mut load.dreg,
            Decoded::Tunnel(load) => &mut load.dreg,
            Decoded::Xfrm(load) => &mut load.dreg,
            Decoded::Exthdr(load) => &mut load.dreg,
            _ => return None,
        };
        *dreg = None;
        let key = Key::Other(format!("{decoded:?}"));
        let variable = self.variables.number(key, bits);
        self.meaning.loads.push(variable);
        self.store(register, variable, Order::Network)
    }

    fn bitwise(&mut self, bitwise: &BitwiseRef<'_>) -> Option<()> {
        let (source, register) = (bitwise.sreg()?, bitwise.dreg()?);
        let length = bitwise.len()? as usize;
        let bits = self.registers.bits(source, length)?;
        let op = bitwise.op().unwrap_or(BitwiseOp::MASK_XOR);
        let changed = match op {
            BitwiseOp::MASK_XOR => {
                let (mask, xor) = (bitwise.mask()?, bitwise.xor()?);
                let (mask, xor) = (mask.as_value()?, xor.as_value()?);
                if mask.len() < length || xor.len() < length {
                    return None;
                }
                masked(&bits, mask, xor)
            }
            BitwiseOp::LSHIFT | BitwiseOp::RSHIFT => {
                let data = bitwise.data()?;
                let by = u32::from_ne_bytes(*data.as_value()?.first_chunk::<4>()?);
                shifted(bits, op == BitwiseOp::LSHIFT, by as usize)
            }
            _ => return self.unknown(register, length),
        };
        self.registers.store_bits(register, &changed)
    }

    fn byteorder(&mut self, byteorder: &ByteorderRef<'_>) -> Option<()> {
        let (source, register) = (byteorder.sreg()?, byteorder.dreg()?);
        let (length, size) = (byteorder.len()? as usize, byteorder.size()? as usize);
        let is_known = [ByteorderOp::NTOH, ByteorderOp::HTON].contains(&byteorder.op()?);
        if !is_known || !matches!(size, 2 | 4 | 8) {
            return None;
        }
        let bits = self.registers.bits(source, length)?;
        let chunks = bits.chunks(size * 8);
        let turned: Vec<Bit> = chunks
            .flat_map(|chunk| ordered(chunk.to_vec(), Order::Host))
            .collect();
        self.registers.store_bits(register, &turned)
    }

    /// Adds a condition.
    fn condition(&mut self, variable: u32, constraint: Constraint) {
        if let Constraint::Within(ranges) = &constraint
            && let [(low, high)] = ranges[..]
            && low == high
            && let Some(layout) = Layout::selected_by(self.variables.key(variable), low)
        {
            self.layout = layout;
        }
        self.meaning.conditions.push((variable, constraint));
    }

    /// Adds the conditions; without any, no packet satisfies them.
    fn conditions(&mut self, conditions: Option<Conditions>) {
        match conditions {
            Some(conditions) => {
                for (variable, constraint) in conditions {
                    self.condition(variable, constraint);
                }
            }
            None => self.meaning.is_contradiction = true,
        }
    }

    fn cmp(&mut self, register: Register, op: CmpOp, wanted: &[u8]) -> Option<()> {
        let bits = self.registers.bits(register, wanted.len())?;
        let zeros = vec![0; wanted.len()];
        let ones = vec![0xff; wanted.len()];
        match op {
            CmpOp::EQ => {
                let equal = equal(self.variables, &bits, wanted);
                self.conditions(equal);
            }
            CmpOp::NEQ => match equal(self.variables, &bits, wanted) {
                None => {}
                Some(equal) => self.negated(equal),
            },
            CmpOp::LTE => self.bounds(&bits, &zeros, wanted, true),
            CmpOp::GTE => self.bounds(&bits, wanted, &ones, true),
            CmpOp::LT => self.bounds(&bits, wanted, &ones, false),
            CmpOp::GT => self.bounds(&bits, &zeros, wanted, false),
            _ => return None,
        }
        Some(())
    }

    fn range(&mut self, register: Register, from: &[u8], to: &[u8], is: bool) -> Option<()> {
        if from.len() != to.len() {
            return None;
        }
        let bits = self.registers.bits(register, from.len())?;
        self.bounds(&bits, from, to, is);
        Some(())
    }

    /// Adds the condition that bits are within bounds, or not.
    fn bounds(&mut self, bits: &[Bit], from: &[u8], to: &[u8], is: bool) {
        match (within(self.variables, bits, from, to), is) {
            (Within::Unknown, _) => self.meaning.is_opaque = true,
            (Within::Is(conditions), true) => self.conditions(conditions),
            (Within::Is(Some(conditions)), false) => self.negated(conditions),
            (Within::Is(None), false) => {}
        }
    }

    /// Adds the condition that one of these conditions does not hold.
    fn negated(&mut self, conditions: Conditions) {
        match &conditions[..] {
            [] => self.meaning.is_contradiction = true,
            [(variable, constraint)] => {
                let not = constraint.not(self.variables.bits(*variable));
                self.condition(*variable, not);
            }
            _ => self.meaning.is_opaque = true,
        }
    }

    fn lookup(&mut self, lookup: &LookupRef<'_>) -> Option<Next> {
        let name = lookup.set()?;
        let set = self.table.set(name)?;
        let is_inverted = lookup
            .flags()
            .unwrap_or_default()
            .contains(LookupFlags::INV);
        let bits = self.registers.bits(lookup.sreg()?, set.key_length)?;
        match &set.contents {
            Contents::Changing => self.meaning.is_opaque = true,
            Contents::Named => self.contains_key(name.to_owned(), bits, is_inverted),
            Contents::Constant { text } => match self.boxes(name, &bits) {
                None => self.contains_key(text.clone(), bits, is_inverted),
                Some(boxes) => self.found(text, bits, boxes, is_inverted),
            },
        }
        let Some(dreg) = lookup.dreg().filter(|_| !is_inverted) else {
            return Some(Next::On);
        };
        if set.data_type == Some(DataType::VERDICT) {
            // Its elements may have any verdict.
            self.meaning.is_opaque = true;
            return Some(Next::End);
        }
        let was_opaque = self.meaning.is_opaque;
        self.unknown(dreg, set.data_length)?;
        // The value is found; only its later use is unknown, whose condition no other rule can have.
        self.meaning.is_opaque = was_opaque;
        Some(Next::On)
    }

    /// Returns the conditions of each element of an anonymous set; `None` if they cannot be expressed.
    fn boxes(&mut self, name: &BStr, bits: &[Bit]) -> Option<Vec<Conditions>> {
        let mut boxes = Vec::new();
        let set = Set::read(&self.table.table, name)?;
        for fields in set.fields() {
            let mut all = Some(Vec::new());
            for ElementField { at, from, to } in fields {
                let part = bits.get(at * 8..(at + from.len()) * 8)?;
                let conditions = match within(self.variables, part, from, to) {
                    Within::Unknown => return None,
                    Within::Is(conditions) => conditions,
                };
                all = all.zip(conditions).map(|(mut all, more): (Conditions, _)| {
                    all.extend(more);
                    all
                });
            }
            boxes.extend(all);
        }
        Some(boxes)
    }

    /// Adds the condition that one of the alternatives holds, or none.
    fn found(&mut self, text: &BString, bits: Vec<Bit>, boxes: Vec<Conditions>, is_inverted: bool) {
        if boxes.iter().any(Vec::is_empty) {
            self.meaning.is_contradiction |= is_inverted;
            return;
        }
        let single = boxes.iter().map(|one| match &one[..] {
            [(variable, Constraint::Within(ranges))] => Some((*variable, ranges)),
            _ => None,
        });
        if let Some(single) = single.collect::<Option<Vec<_>>>()
            && let Some((variable, _)) = single.first().copied()
            && single.iter().all(|(other, _)| *other == variable)
        {
            let ranges = single.iter().flat_map(|(_, ranges)| ranges.iter().copied());
            let union = Constraint::within(ranges.collect());
            let constraint = match is_inverted {
                true => union.not(self.variables.bits(variable)),
                false => union,
            };
            self.condition(variable, constraint);
            return;
        }
        match (is_inverted, boxes.len()) {
            (false, 0) => self.meaning.is_contradiction = true,
            (true, 0) => {}
            (false, 1) => self.conditions(boxes.into_iter().next()),
            (false, 2..=MAX_BOXES) => self.meaning.relations.push(boxes),
            (true, _) if boxes.iter().all(|one| one.len() == 1) => {
                boxes.into_iter().for_each(|one| self.negated(one));
            }
            _ => self.contains_key(text.clone(), bits, is_inverted),
        }
    }

    /// Adds the condition that a set contains a key, as a variable of its own.
    fn contains_key(&mut self, set: BString, bits: Vec<Bit>, is_inverted: bool) {
        let variable = self.variables.number(Key::Contains(set, bits), 1);
        let is = u128::from(!is_inverted);
        self.condition(variable, Constraint::within(vec![(is, is)]));
    }
}

const fn bit_of(variable: u32, bit: u32) -> Bit {
    Bit::Of {
        unknown: variable,
        bit: bit as u8,
        not: false,
    }
}

/// Returns the conditions under which bits equal bytes; `None` if they never do.
fn equal(variables: &Variables, bits: &[Bit], wanted: &[u8]) -> Option<Conditions> {
    let mut masks: BTreeMap<u32, (u128, u128)> = BTreeMap::new();
    for (bit, wanted) in bits.iter().zip(bits_of(wanted)) {
        let wanted = wanted == Bit::Known(true);
        match *bit {
            Bit::Known(set) if set != wanted => return None,
            Bit::Known(_) => {}
            Bit::Of { unknown, bit, not } => {
                let (mask, value) = masks.entry(unknown).or_default();
                let (bit, set) = (1_u128 << bit, wanted != not);
                if *mask & bit != 0 && (*value & bit != 0) != set {
                    return None;
                }
                *mask |= bit;
                *value |= if set { bit } else { 0 };
            }
        }
    }
    let masks = masks.into_iter().map(|(variable, (mask, value))| {
        let bits = variables.bits(variable);
        (variable, Constraint::bits(mask, value, bits))
    });
    Some(masks.collect())
}

/// Conditions under which bits are within bounds.
enum Within {
    Unknown,
    /// `None` if they never are.
    Is(Option<Conditions>),
}

fn within(variables: &Variables, bits: &[Bit], from: &[u8], to: &[u8]) -> Within {
    if from == to {
        return Within::Is(equal(variables, bits, from));
    }
    if from > to {
        return Within::Is(None);
    }
    let zeros = bits.iter().take_while(|bit| **bit == Bit::Known(false));
    let (zeros, total) = (zeros.count(), bits.len());
    if total > 128 || total != from.len() * 8 || zeros == total {
        return Within::Unknown;
    }
    let number = |bytes: &[u8]| {
        let bytes = bytes.iter();
        bytes.fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
    };
    let (from, to) = (number(from), number(to));
    // The rest are the upper bits of a variable.
    let rest = &bits[zeros..];
    let Bit::Of { unknown, .. } = rest[0] else {
        return Within::Unknown;
    };
    let width = variables.bits(unknown);
    let Some(below) = width.checked_sub(rest.len() as u32) else {
        return Within::Unknown;
    };
    let upper = (below..width).rev().map(|bit| bit_of(unknown, bit));
    if !upper.eq(rest.iter().copied()) {
        return Within::Unknown;
    }
    let last = ones(rest.len() as u32);
    if from > last {
        return Within::Is(None);
    }
    let to = to.min(last);
    let range = (from << below, to << below | ones(below));
    Within::Is(Some(match range == (0, ones(width)) {
        true => Vec::new(),
        false => vec![(unknown, Constraint::within(vec![range]))],
    }))
}
