//! A rule's instructions as they are made.

use std::mem;

use super::Compiler;
use super::protocols::{Conflict, Needed, Protocols};
use crate::nft::expr::{
    Cmp, Decoded, Expression, Expressions, Lookup, LookupFlags, Payload as Load, PayloadBase,
    Register,
};
use crate::nft::{Family, Name, SetId};
use crate::text::parse::Fault;
use crate::text::parse::known::field_of;
use crate::text::syntax::{Element, Expr, Payload, Value};
use crate::text::tunnels::Tunnel;

/// Words of 4 bytes in a register of 16.
const REGISTER: u32 = 4;

/// The register that begins with this word.
pub(super) const fn register(word: u32) -> Register {
    match word.is_multiple_of(REGISTER) {
        true => Register(Register::R1.0 + word / REGISTER),
        false => Register::word(word),
    }
}

/// A match that waits for its neighbours.
enum Waiting {
    /// Whole bytes of the packet are these: such that stand side by side are asked for at once.
    Bytes {
        tunnel: Option<&'static Tunnel>,
        base: PayloadBase,
        offset: u32,
        bytes: Vec<u8>,
    },
    Instructions(Expressions<'static>),
}

/// The instructions of one rule.
pub(super) struct Body<'b, 'c> {
    pub(super) compiler: &'b mut Compiler<'c>,
    pub(super) family: Family,
    pub(super) table: Name<'static>,
    pub(super) protocols: Protocols,
    /// What is known of the packets inside of tunnels.
    inside: Vec<(&'static Tunnel, Protocols)>,
    /// Whether a statement ends the rule: none behind it is carried out.
    pub(super) is_over: bool,
    /// How many bits the number has that a statement takes, where shorter ones are made as long.
    pub(super) wide: Option<u32>,
    waiting: Vec<Waiting>,
    /// What comes before all others.
    first: Expressions<'static>,
    out: Expressions<'static>,
}

impl<'b, 'c> Body<'b, 'c> {
    pub(super) fn new(
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
            waiting: Vec::new(),
            first: Expressions::new(),
            out: Expressions::new(),
        }
    }

    pub(super) fn finish(mut self) -> Expressions<'static> {
        self.settle();
        for expression in self.out.iter().map_while(Result::ok) {
            self.first.push_raw(&expression);
        }
        self.first
    }

    /// Puts the matches that this adds before all others.
    pub(super) fn first(
        &mut self,
        add: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.settle();
        let behind = mem::take(&mut self.out);
        let added = add(self);
        self.settle();
        let before = mem::replace(&mut self.out, behind);
        for expression in before.iter().map_while(Result::ok) {
            self.first.push_raw(&expression);
        }
        added
    }

    /// Writes an instruction of a match.
    pub(super) fn push(&mut self, expression: &impl Expression) {
        match self.waiting.last_mut() {
            Some(Waiting::Instructions(out)) => _ = out.push(expression),
            _ => {
                let mut out = Expressions::new();
                out.push(expression);
                self.waiting.push(Waiting::Instructions(out));
            }
        }
    }

    /// Writes an instruction that is no match; what was to be matched comes before it.
    pub(super) fn push_decoded(&mut self, expression: &Decoded<'_>) {
        self.settle();
        self.out.push_decoded(expression);
    }

    /// Writes an instruction of a match that is applied to the packet, or to what is inside a tunnel.
    pub(super) fn push_at(
        &mut self,
        tunnel: Option<&'static Tunnel>,
        expression: &impl Expression,
    ) {
        match tunnel {
            Some(tunnel) => self.push(&tunnel.inside(expression)),
            None => self.push(expression),
        }
    }

    /// Asks for whole bytes of the packet, or of what is inside a tunnel, from this one on.
    fn ask(&mut self, payload: &Payload, offset: u32, bytes: Vec<u8>) {
        self.waiting.push(Waiting::Bytes {
            tunnel: payload.tunnel,
            base: payload.base,
            offset,
            bytes,
        });
    }

    /// Writes all matches that wait: those of bytes side by side as one.
    pub(super) fn settle(&mut self) {
        self.join();
        for waiting in self.waiting.drain(..) {
            match waiting {
                Waiting::Bytes {
                    tunnel,
                    base,
                    offset,
                    bytes,
                } => {
                    let length = bytes.len() as u32; // at most 16
                    let load = Load::load(base, offset, length, Register::R1);
                    match tunnel {
                        Some(tunnel) => _ = self.out.push(&tunnel.inside(&load)),
                        None => _ = self.out.push(&load),
                    }
                    self.out.push(&Cmp::eq(Register::R1, &bytes));
                }
                Waiting::Instructions(out) => {
                    for expression in out.iter().map_while(Result::ok) {
                        self.out.push_raw(&expression);
                    }
                }
            }
        }
    }

    /// Joins what stands side by side in the packet, in the order in which it stands there.
    fn join(&mut self) {
        let mut order: Vec<((u32, u32), usize)> = self
            .waiting
            .iter()
            .enumerate()
            .filter_map(|(index, waiting)| match waiting {
                Waiting::Bytes { base, offset, .. } => Some(((base.0, *offset), index)),
                Waiting::Instructions(_) => None,
            })
            .collect();
        order.sort_by_key(|(place, _)| *place);
        let mut gone = Vec::new();
        let mut order = order.into_iter().map(|(_, index)| index);
        let Some(mut last) = order.next() else {
            return;
        };
        for index in order {
            match self.joined(last, index) {
                Some(joined) => {
                    if let Waiting::Bytes { bytes, .. } = &mut self.waiting[last] {
                        *bytes = joined;
                    }
                    gone.push(index);
                }
                None => last = index,
            }
        }
        gone.sort_unstable();
        for index in gone.into_iter().rev() {
            self.waiting.remove(index);
        }
    }

    /// The bytes of two matches as those of one.
    fn joined(&self, one: usize, other: usize) -> Option<Vec<u8>> {
        let (
            Waiting::Bytes {
                tunnel,
                base,
                offset,
                bytes,
            },
            Waiting::Bytes {
                tunnel: other_tunnel,
                base: other_base,
                offset: other_offset,
                bytes: other_bytes,
            },
        ) = (&self.waiting[one], &self.waiting[other])
        else {
            return None;
        };
        let length = bytes.len() + other_bytes.len();
        let is_next = (tunnel, base) == (other_tunnel, other_base)
            && offset + bytes.len() as u32 == *other_offset; // short
        // The kernel compares up to 4 bytes behind the link layer in one step: those are not made longer.
        let fits = match *base {
            PayloadBase::LINK => length <= 16,
            _ => length <= 4 || (bytes.len() > 4 && other_bytes.len() > 4 && length <= 16),
        };
        (is_next && fits).then(|| [&bytes[..], other_bytes].concat())
    }

    /// Sees to it that packets have all that an expression is made of.
    pub(super) fn require(&mut self, expr: &Expr) -> Result<(), Fault> {
        match expr {
            Expr::Payload(payload) => {
                let Some((protocol, field)) = payload.field else {
                    return Ok(());
                };
                let name = protocol.fields[field].name;
                if let Some(tunnel) = payload.tunnel {
                    self.require_tunnel(tunnel)?;
                }
                loop {
                    let needed = self.protocols_in(payload.tunnel).needed(protocol, name);
                    let Some(needed) = needed.map_err(|conflict| self.conflict(&conflict))? else {
                        return Ok(());
                    };
                    self.need(&needed, payload.tunnel)?;
                }
            }
            Expr::Option(option) => loop {
                let needed = self.protocols.needed_by_option(option.extension.kind);
                let Some(needed) = needed.map_err(|conflict| self.conflict(&conflict))? else {
                    return Ok(());
                };
                self.need(&needed, None)?;
            },
            Expr::Binary(_, left, right) => {
                self.require(left)?;
                self.require(right)
            }
            Expr::Concat(parts) => parts.iter().try_for_each(|part| self.require(part)),
            Expr::Hash { key: Some(key), .. } => self.require(key),
            Expr::Map(key, _) => self.require(key),
            _ => Ok(()),
        }
    }

    /// What is known of the packets, or of those inside a tunnel.
    pub(super) fn protocols_in(&mut self, tunnel: Option<&'static Tunnel>) -> &mut Protocols {
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

    /// Takes in that what is looked at is one value.
    pub(super) fn learn(&mut self, left: &Expr, right: &Value) {
        self.protocols_in(left.tunnel()).learn(left, right);
    }

    /// Sees to it that packets are of what carries a tunnel.
    fn require_tunnel(&mut self, tunnel: &'static Tunnel) -> Result<(), Fault> {
        let needed = self.protocols.needed_by_tunnel(tunnel);
        match needed.map_err(|conflict| self.conflict(&conflict))? {
            Some(needed) => self.need(&needed, None),
            None => Ok(()),
        }
    }

    fn conflict(&self, conflict: &Conflict) -> Fault {
        let message = match conflict {
            Conflict::Protocol { known, wanted } => {
                format!("a packet of {known} has no fields of {wanted}")
            }
            Conflict::IcmpType(field) => {
                format!("messages of ICMP of the type that is asked for have no `{field}`")
            }
            Conflict::Unsaid(tunnel) => {
                let (name, below) = (tunnel.name(), tunnel.below.name);
                format!("{name} is carried by {below}, which the rule does not ask for")
            }
        };
        let fault = Fault::new(self.compiler.place, message);
        match conflict {
            Conflict::Unsaid(Tunnel {
                port: Some(port),
                below,
                ..
            }) => {
                let below = below.name;
                fault.with_hint(format!("say its port before, like {below} dport {port}"))
            }
            _ => fault,
        }
    }

    /// Adds a match that a field asks for.
    pub(super) fn need(
        &mut self,
        needed: &Needed,
        tunnel: Option<&'static Tunnel>,
    ) -> Result<(), Fault> {
        let field = |protocol, name| Payload {
            tunnel,
            ..field(protocol, name)
        };
        match needed {
            Needed::Meta(key, number) => {
                let asked = match tunnel {
                    Some(tunnel) => Expr::Inside(tunnel, *key),
                    None => Expr::Meta(*key),
                };
                self.is(&asked, *number)
            }
            Needed::Field(protocol, name, number) => {
                let payload = field(protocol, name);
                self.is(&Expr::Payload(payload), *number)
            }
            Needed::OneOf(protocol, name, numbers) => {
                let payload = field(protocol, name);
                let want = self.want_of(&Expr::Payload(payload));
                let key = Expr::Payload(payload);
                let elements: Vec<_> = numbers
                    .iter()
                    .map(|number| Element::new(Some(Expr::Value(want.value(*number)))))
                    .collect();
                let set = self.sought(&key, &Expr::Set(elements), 0, None)?;
                self.look_up(&set, None, false);
                let one = numbers.first().copied().unwrap_or_default();
                self.learn(&key, &want.value(one));
                Ok(())
            }
        }
    }

    /// Adds a lookup of what stands in the first register.
    pub(super) fn look_up(&mut self, set: &SetId<'static>, dreg: Option<Register>, not: bool) {
        self.look_up_from(set, 0, dreg, not);
    }

    /// The same of what begins with this word.
    pub(super) fn look_up_from(
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

    /// Adds a match of one value.
    fn is(&mut self, left: &Expr, number: u128) -> Result<(), Fault> {
        let want = self.want_of(left);
        self.equals(left, number)?;
        self.learn(left, &want.value(number));
        Ok(())
    }

    /// Asks whether a field is one value.
    pub(super) fn equals(&mut self, left: &Expr, number: u128) -> Result<(), Fault> {
        if let Expr::Payload(payload) = left {
            let start = self.start_of(payload)?;
            if start.is_multiple_of(8) && payload.bits.is_multiple_of(8) {
                let want = self.want_of(left);
                let bytes = want.bytes(number, want.length());
                self.ask(payload, start / 8, bytes);
                return Ok(());
            }
        }
        let loaded = self.load(left, 0)?;
        let bytes = loaded.bytes(number);
        self.push(&Cmp::eq(Register::R1, &bytes));
        Ok(())
    }
}

/// A field by its name.
fn field(protocol: &'static crate::text::headers::Protocol, name: &str) -> Payload {
    let index = protocol.fields.iter().position(|field| field.name == name);
    field_of(protocol, index.unwrap_or_default())
}
