//! Builds the expressions of a rule.

use std::mem;

use super::Compiler;
use super::protocols::{Conflict, Needed, Protocols};
use crate::parse::Diagnostic;
use crate::parse::selectors::field_of;
use crate::protocols::{self, Protocol};
use crate::syntax::{Element, Expr, Payload, Value};
use crate::tunnels::Tunnel;
use chainwright::nft::expr::{
    Cmp, CtKey, Decoded, Expression, Expressions, Lookup, LookupFlags, Payload as Load,
    PayloadBase, Register, RtKey,
};
use chainwright::nft::{Family, Name, SetId};

/// 4-byte words in a 16-byte register.
pub(crate) const REGISTER: u32 = 4;

/// Returns the register that starts at this word.
pub(crate) const fn register(word: u32) -> Register {
    match word.is_multiple_of(REGISTER) {
        true => Register(Register::R1.0 + word / REGISTER),
        false => Register::word(word),
    }
}

/// Match that may be merged with adjacent ones.
enum PendingMatch {
    /// Comparison of whole packet bytes. Adjacent ones are merged.
    Bytes {
        tunnel: Option<&'static Tunnel>,
        base: PayloadBase,
        offset: u32,
        bytes: Vec<u8>,
        /// Whether the bytes identify the next protocol.
        is_key: bool,
    },
    Instructions(Expressions<'static>),
}

/// Expressions of a rule.
pub(crate) struct RuleBuilder<'b, 'c> {
    pub(crate) compiler: &'b mut Compiler<'c>,
    pub(crate) family: Family,
    pub(crate) table: Name<'static>,
    pub(crate) protocols: Protocols,
    /// Protocols established inside tunnels.
    inside: Vec<(&'static Tunnel, Protocols)>,
    /// Whether a terminal statement was compiled.
    pub(crate) is_over: bool,
    /// Length in bits of the number that the statement needs, if shorter ones are extended to it.
    pub(crate) wide: Option<u32>,
    pending: Vec<PendingMatch>,
    /// Groups of matches between two statements, and single statements.
    groups: Vec<Vec<PendingMatch>>,
}

impl<'b, 'c> RuleBuilder<'b, 'c> {
    pub(crate) fn new(
        compiler: &'b mut Compiler<'c>,
        family: Family,
        table: Name<'static>,
    ) -> Self {
        Self {
            compiler,
            family,
            table,
            protocols: Protocols::new(family),
            inside: Vec::new(),
            is_over: false,
            wide: None,
            pending: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self) -> Expressions<'static> {
        self.flush_pending();
        let mut out = Expressions::new();
        for group in self.groups {
            write(group, &mut out);
        }
        out
    }

    /// Inserts the matches that `add` creates before all others.
    pub(crate) fn first(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let behind = mem::take(&mut self.pending);
        let added = add(self);
        let before = mem::replace(&mut self.pending, behind);
        let group = self.groups.first_mut().unwrap_or(&mut self.pending);
        group.splice(..0, before);
        added
    }

    /// Adds an expression of a match.
    pub(crate) fn push(&mut self, expression: &impl Expression) {
        match self.pending.last_mut() {
            Some(PendingMatch::Instructions(out)) => _ = out.push(expression),
            _ => {
                let mut out = Expressions::new();
                out.push(expression);
                self.pending.push(PendingMatch::Instructions(out));
            }
        }
    }

    /// Adds an expression other than a match, after all pending matches.
    pub(crate) fn push_decoded(&mut self, expression: &Decoded<'_>) {
        self.flush_pending();
        let mut out = Expressions::new();
        out.push_decoded(expression);
        self.groups.push(vec![PendingMatch::Instructions(out)]);
    }

    /// Adds an expression of a match on the packet or on a tunnel's inner packet.
    pub(crate) fn push_at(
        &mut self,
        tunnel: Option<&'static Tunnel>,
        expression: &impl Expression,
    ) {
        match tunnel {
            Some(tunnel) => self.push(&tunnel.inside(expression)),
            None => self.push(expression),
        }
    }

    /// Adds a comparison of whole bytes, in the packet or a tunnel's inner packet, from this offset on.
    fn push_byte_match(&mut self, payload: &Payload, offset: u32, bytes: Vec<u8>) {
        let is_key = payload
            .field
            .is_some_and(|(protocol, field)| protocol.key == Some(protocol.fields[field].name));
        self.pending.push(PendingMatch::Bytes {
            tunnel: payload.tunnel,
            base: payload.base,
            offset,
            bytes,
            is_key,
        });
    }

    /// Ends a group of matches. Adjacent byte comparisons in it are merged.
    pub(crate) fn flush_pending(&mut self) {
        if !self.pending.is_empty() {
            self.groups.push(mem::take(&mut self.pending));
        }
    }

    /// Adds the protocol matches that an expression requires.
    pub(crate) fn add_dependency(&mut self, expr: &Expr) -> Result<(), Diagnostic> {
        match expr {
            Expr::Payload(payload) => {
                let Some((protocol, field)) = payload.field else {
                    return Ok(());
                };
                let name = protocol.fields[field].name;
                if let Some(tunnel) = payload.tunnel {
                    self.add_tunnel_dependency(tunnel)?;
                }
                loop {
                    let needed = self.protocols_in(payload.tunnel).needed(protocol, name);
                    let Some(needed) = needed.map_err(|conflict| self.conflict(&conflict))? else {
                        return Ok(());
                    };
                    self.add_match(&needed, payload.tunnel)?;
                }
            }
            Expr::Option(option) => loop {
                let needed = self.protocols.needed_by_option(option.extension.kind);
                let Some(needed) = needed.map_err(|conflict| self.conflict(&conflict))? else {
                    return Ok(());
                };
                // Before all statements, so that they apply only to packets of this IP version.
                self.first(|this| this.add_match(&needed, None))?;
            },
            Expr::Ct(CtKey::SRC_IP | CtKey::DST_IP, ..) | Expr::Rt(RtKey::NEXTHOP4) => {
                self.fit(&protocols::IP)
            }
            Expr::Ct(CtKey::SRC_IP6 | CtKey::DST_IP6, ..) => self.fit(&protocols::IP6),
            Expr::Binary(_, left, right) => {
                self.add_dependency(left)?;
                self.add_dependency(right)
            }
            Expr::Concat(parts) => parts.iter().try_for_each(|part| self.add_dependency(part)),
            Expr::Hash { key: Some(key), .. } => self.add_dependency(key),
            Expr::Map(key, _) => self.add_dependency(key),
            _ => Ok(()),
        }
    }

    /// Checks that packets can have this IP version.
    fn fit(&self, version: &'static Protocol) -> Result<(), Diagnostic> {
        let fits = self.protocols.fits(version);
        fits.map_err(|conflict| self.conflict(&conflict))
    }

    /// Returns the protocols established for the packets, or for the packets inside a tunnel.
    pub(crate) fn protocols_in(&mut self, tunnel: Option<&'static Tunnel>) -> &mut Protocols {
        let Some(tunnel) = tunnel else {
            return &mut self.protocols;
        };
        let known = self.inside.iter().position(|(known, _)| *known == tunnel);
        let index = known.unwrap_or_else(|| {
            self.inside.push((tunnel, Protocols::inside(tunnel)));
            self.inside.len() - 1
        });
        &mut self.inside[index].1
    }

    /// Records a match of one value.
    pub(crate) fn record_match(&mut self, left: &Expr, right: &Value) {
        self.protocols_in(left.tunnel()).record_match(left, right);
    }

    /// Adds the match of a tunnel's carrier protocol.
    fn add_tunnel_dependency(&mut self, tunnel: &'static Tunnel) -> Result<(), Diagnostic> {
        let needed = self.protocols.needed_by_tunnel(tunnel);
        match needed.map_err(|conflict| self.conflict(&conflict))? {
            Some(needed) => self.add_match(&needed, None),
            None => Ok(()),
        }
    }

    fn conflict(&self, conflict: &Conflict) -> Diagnostic {
        let message = match conflict {
            Conflict::Protocol {
                known: Some(known),
                wanted,
            } => format!("{known} packets have no {wanted} fields"),
            Conflict::Protocol {
                known: None,
                wanted,
            } => format!("packets of another protocol have no {wanted} fields"),
            Conflict::IcmpType(field) => {
                format!("ICMP messages of the matched type have no `{field}`")
            }
            Conflict::MissingCarrier(tunnel) => {
                let (name, below) = (tunnel.name(), tunnel.below.name);
                format!("{name} is carried by {below}, which the rule does not match")
            }
        };
        let diagnostic = Diagnostic::new(self.compiler.span, message);
        match conflict {
            Conflict::MissingCarrier(Tunnel {
                port: Some(port),
                below,
                ..
            }) => {
                let below = below.name;
                diagnostic.with_hint(format!(
                    "match its port first, for example {below} dport {port}"
                ))
            }
            _ => diagnostic,
        }
    }

    /// Adds a match that a field requires.
    pub(crate) fn add_match(
        &mut self,
        needed: &Needed,
        tunnel: Option<&'static Tunnel>,
    ) -> Result<(), Diagnostic> {
        let field = |protocol, name| Payload {
            tunnel,
            ..field(protocol, name)
        };
        match needed {
            Needed::Meta(key, number) => {
                let selector = match tunnel {
                    Some(tunnel) => Expr::Inside(tunnel, *key),
                    None => Expr::Meta(*key),
                };
                self.is(&selector, *number)
            }
            Needed::Field(protocol, name, number) => {
                let payload = field(protocol, name);
                self.is(&Expr::Payload(payload), *number)
            }
            Needed::OneOf(protocol, name, numbers) => {
                let payload = field(protocol, name);
                let expected_type = self.expected_type(&Expr::Payload(payload));
                let key = Expr::Payload(payload);
                let elements: Vec<_> = numbers
                    .iter()
                    .map(|number| Element::new(Some(Expr::Value(expected_type.value(*number)))))
                    .collect();
                let set = self.sought(&key, &Expr::Set(elements), 0, None)?;
                self.look_up(&set, None, false);
                let one = numbers.first().copied().unwrap_or_default();
                self.record_match(&key, &expected_type.value(one));
                Ok(())
            }
        }
    }

    /// Adds a lookup of the first register.
    pub(crate) fn look_up(&mut self, set: &SetId<'static>, dreg: Option<Register>, not: bool) {
        self.look_up_from(set, 0, dreg, not);
    }

    /// Adds a lookup of the register at this word.
    pub(crate) fn look_up_from(
        &mut self,
        set: &SetId<'static>,
        word: u32,
        dreg: Option<Register>,
        not: bool,
    ) {
        self.push(&Lookup {
            sreg: Some(register(word)),
            dreg,
            set: Some(set.set.clone()),
            set_id: set.id,
            flags: not.then_some(LookupFlags::INV),
            ..Lookup::default()
        });
    }

    /// Adds a match of one value, and records it.
    fn is(&mut self, left: &Expr, number: u128) -> Result<(), Diagnostic> {
        let expected_type = self.expected_type(left);
        self.equals(left, number)?;
        self.record_match(left, &expected_type.value(number));
        Ok(())
    }

    /// Adds a comparison for equality.
    pub(crate) fn equals(&mut self, left: &Expr, number: u128) -> Result<(), Diagnostic> {
        if let Expr::Payload(payload) = left {
            let start = self.start_of(payload)?;
            if start.is_multiple_of(8) && payload.bits.is_multiple_of(8) {
                let expected_type = self.expected_type(left);
                let bytes = expected_type.bytes(number, expected_type.length());
                self.push_byte_match(payload, start / 8, bytes);
                return Ok(());
            }
        }
        let loaded = self.load(left, 0)?;
        let bytes = loaded.bytes(number);
        self.push(&Cmp::eq(Register::R1, &bytes));
        Ok(())
    }
}

/// Writes a group of matches.
fn write(mut group: Vec<PendingMatch>, out: &mut Expressions<'static>) {
    join(&mut group);
    for pending in group {
        match pending {
            PendingMatch::Bytes {
                tunnel,
                base,
                offset,
                bytes,
                ..
            } => {
                let length = bytes.len() as u32; // at most 16
                let load = Load::load(base, offset, length, Register::R1);
                match tunnel {
                    Some(tunnel) => _ = out.push(&tunnel.inside(&load)),
                    None => _ = out.push(&load),
                }
                out.push(&Cmp::eq(Register::R1, &bytes));
            }
            PendingMatch::Instructions(instructions) => {
                for expression in instructions.iter().map_while(Result::ok) {
                    out.push_raw(&expression);
                }
            }
        }
    }
}

/// Merges adjacent byte comparisons. The result takes the position of the one with the lower offset, or of the one
/// that identifies the next protocol.
fn join(group: &mut Vec<PendingMatch>) {
    let mut order: Vec<((u32, u32), usize)> = group
        .iter()
        .enumerate()
        .filter_map(|(index, pending)| match pending {
            PendingMatch::Bytes { base, offset, .. } => Some(((base.0, *offset), index)),
            PendingMatch::Instructions(_) => None,
        })
        .collect();
    order.sort_by_key(|(span, _)| *span);
    let mut gone = Vec::new();
    let mut order = order.into_iter().map(|(_, index)| index);
    let Some(mut last) = order.next() else {
        return;
    };
    for index in order {
        match joined(&group[last], &group[index]) {
            Some(both) => {
                let is_key = matches!(group[index], PendingMatch::Bytes { is_key: true, .. });
                let (stays, goes) = if is_key { (index, last) } else { (last, index) };
                group[stays] = both;
                gone.push(goes);
                last = stays;
            }
            None => last = index,
        }
    }
    gone.sort_unstable();
    for index in gone.into_iter().rev() {
        group.remove(index);
    }
}

/// Merges two byte comparisons, if they are adjacent and short enough.
fn joined(one: &PendingMatch, other: &PendingMatch) -> Option<PendingMatch> {
    let (
        PendingMatch::Bytes {
            tunnel,
            base,
            offset,
            bytes,
            is_key,
        },
        PendingMatch::Bytes {
            tunnel: other_tunnel,
            base: other_base,
            offset: other_offset,
            bytes: other_bytes,
            is_key: other_is_key,
        },
    ) = (one, other)
    else {
        return None;
    };
    let length = bytes.len() + other_bytes.len();
    let is_next = (tunnel, base) == (other_tunnel, other_base)
        && offset + bytes.len() as u32 == *other_offset; // short
    // The kernel compares up to 4 bytes above the link layer in one step, so these are not extended.
    let fits = match *base {
        PayloadBase::LINK => length <= 16,
        _ => length <= 4 || (bytes.len() > 4 && other_bytes.len() > 4 && length <= 16),
    };
    (is_next && fits).then(|| PendingMatch::Bytes {
        tunnel: *tunnel,
        base: *base,
        offset: *offset,
        bytes: [&bytes[..], other_bytes].concat(),
        is_key: *is_key || *other_is_key,
    })
}

/// Returns a field by name.
fn field(protocol: &'static Protocol, name: &str) -> Payload {
    let index = protocol.fields.iter().position(|field| field.name == name);
    field_of(protocol, index.unwrap_or_default())
}
