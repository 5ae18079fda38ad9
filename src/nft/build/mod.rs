//! Rules in nft's terms: a builder above the expressions that tracks protocol dependencies.
//!
//! [`Build`] makes a [`Rule`] of matches and statements. It encodes each as the expressions that `nft` 1.0.6
//! generates for the same syntax: the same registers, the same order, and before a match its dependencies
//! (`meta l4proto tcp` before `tcp dport`, `meta nfproto ipv4` before `ip saddr` in an `inet` table), once per
//! rule and only where the family requires them. Combinations that cannot be right in a table of the rule's
//! family are a [`BuildError`].
//!
//! Methods are named after nft's syntax, with `_` for blanks: `tcp dport 22` is `.tcp_dport(22)`.
//!
//! ```
//! use chainwright::nft::build::{Build, CtState, Rate};
//! use chainwright::nft::{Chain, Connection, Family, Table, Transaction};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::INET, "filter"))?;
//! tx.add(&Chain::new(Family::INET, "filter", "input"))?;
//!
//! // iifname "eth0" tcp dport 22 ct state new limit rate 10/minute burst 5 packets counter accept
//! let rule = Build::new(Family::INET, "filter", "input")
//!     .iifname("eth0")
//!     .tcp_dport(22)
//!     .ct_state(CtState::NEW)
//!     .limit(Rate::per_minute(10))
//!     .counter()
//!     .accept()?;
//! tx.add(&rule)?;
//! Connection::open()?.commit(&tx)?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```
//!
//! | task | see |
//! |---|---|
//! | compare a field with a value, a range, a prefix, a set, or negate that | [`Match`] |
//! | match headers, interfaces, marks, states of connections, routes | the methods of [`Build`] |
//! | match any other field | [`Build::matches`], [`Selector`] |
//! | look up several fields at once, in sets and maps | [`Build::lookup`], [`Build::vmap`], [`Key`] |
//! | use an anonymous set: `{ 22, 80 }` | [`AnonymousSet`] |
//! | translate addresses and ports | [`Build::dnat`], [`NatTo`], [`Build::masquerade`] |
//! | add to a set from a rule | [`Build::update_element`], [`SetElement`] |
//! | put any other expression into the rule | [`Build::expression`] |
//!
//! Differences from nft 1.0.6:
//! - nft joins `tcp sport 1 tcp dport 2` into one comparison of four bytes; so does this builder if the two
//!   matches are adjacent. nft also joins them across statements in between, such as a counter, which then
//!   counts fewer packets; and it joins two `!=` matches, which lets through more packets than both together.
//!   This builder does neither.
//! - [`not`] of several flags is nft's `!`, not its `!=`: see [`not`].
//! - After an `ether` match nft uses `ether type` instead of `meta nfproto`, and joins it with adjacent
//!   fields; this builder makes no such exception.

mod anonymous;
mod dependency;
mod error;
mod headers;
mod key;
mod named;
mod nat;
mod select;
mod sets;
mod statements;
mod value;

use std::mem;

pub use anonymous::AnonymousSet;
use dependency::Transport;
pub use error::BuildError;
pub use key::{Generator, Jhash, Key, jhash, numgen_inc, numgen_random, symhash};
pub use named::{
    AddressType, CtState, CtStatus, EtherType, IcmpCode, IcmpType, Icmpv6Code, Icmpv6Type,
    PacketType, Protocol, TcpFlags,
};
pub use nat::{NatTo, Ports};
use select::Source;
pub use select::{Selector, Version, ct, ether, icmp, icmpv6, ip, ip6, meta, sctp, tcp, th, udp};
pub use sets::{SetElement, SetName, element};
pub use statements::{BitOp, IntegerExpr, Rate, RejectWith, and, and_xor, copy, map, or, xor};
pub use value::{
    ByteOrder, Comparison, Equals, InSet, Interface, MacAddress, Masked, Match, Not, Value,
    at_least, at_most, equals, greater_than, in_set, less_than, masked, not,
};
use value::{Encoded, Test};

use super::expr::{
    Bitwise, Byteorder, Cmp, CmpOp, Ct, Expression, Expressions, Fib, Immediate, Lookup,
    LookupFlags, Meta, Payload, PayloadBase, Range, Register, Verdict,
};
use super::name::Name;
use super::userdata::{RULE_COMMENT, put_comment};
use super::{Family, Rule};

/// A comparison of packet bytes that may be joined with the next one.
#[derive(Debug, Clone, Copy)]
struct Pending {
    base: PayloadBase,
    offset: u32,
    bytes: [u8; 4],
    length: usize,
}

/// A builder of a rule: see the [module](self).
///
/// Each method appends its encoded expressions to the rule's buffer; nothing else is allocated for them.
/// [`Build::again`] reuses that buffer for another rule.
///
/// After the first error, further calls have no effect, and the method that ends the rule, such as
/// [`accept`](Self::accept) or [`finish`](Self::finish), returns that error.
#[derive(Debug, Clone)]
#[must_use = "call a method that ends the rule, `finish` or a verdict"]
pub struct Build<'a> {
    rule: Rule<'a>,
    network: Option<Version>,
    transport: Transport,
    ethernet: bool,
    pending: Option<Pending>,
    error: Option<BuildError>,
}

impl<'a> Build<'a> {
    /// Starts an empty rule for this chain.
    pub fn new(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self::with_rule(Rule::new(family, table, chain))
    }

    /// Starts another rule for the same chain, in the memory of `rule`. Everything else in `rule` is
    /// discarded.
    ///
    /// ```
    /// use chainwright::nft::build::Build;
    /// use chainwright::nft::{Family, Rule};
    ///
    /// let mut rule = Rule::new(Family::IP, "nat", "prerouting");
    /// for port in [80, 443] {
    ///     rule = Build::again(rule).tcp_dport(port).accept()?;
    /// }
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn again(rule: Rule<'a>) -> Self {
        let mut expressions = rule.expressions;
        if let Some(expressions) = &mut expressions {
            expressions.clear();
        }
        Self::with_rule(Rule {
            family: rule.family,
            table: rule.table,
            chain: rule.chain,
            expressions,
            ..Rule::empty()
        })
    }

    fn with_rule(rule: Rule<'a>) -> Self {
        Self {
            network: match rule.family {
                Family::IP => Some(Version::V4),
                Family::IP6 => Some(Version::V6),
                _ => None,
            },
            rule,
            transport: Transport::Any,
            ethernet: false,
            pending: None,
            error: None,
        }
    }

    /// Ends a rule that has no final verdict, or takes it from a map.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn finish(mut self) -> Result<Rule<'a>, BuildError> {
        self.flush();
        self.rule.expressions.get_or_insert_default();
        match self.error {
            None => Ok(self.rule),
            Some(error) => Err(error),
        }
    }

    /// Appends an expression unchanged.
    pub fn expression(mut self, expression: &impl Expression) -> Self {
        self.push(expression);
        self
    }

    /// Sets the rule's comment.
    pub fn comment(mut self, comment: &str) -> Self {
        if let Err(error) = put_comment(&mut self.rule.userdata, RULE_COMMENT, comment) {
            self.fail(error.into());
        }
        self
    }

    /// Matches if a field, or a number generated for the packet, satisfies `is`.
    ///
    /// ```
    /// use chainwright::nft::build::{Build, greater_than, meta, numgen_random, less_than, udp};
    /// use chainwright::nft::Family;
    ///
    /// // meta length > 1400 udp length 1000-2000 numgen random mod 10 < 3 drop
    /// let rule = Build::new(Family::INET, "filter", "input")
    ///     .matches(meta::LENGTH, greater_than(1400u32))
    ///     .matches(udp::LENGTH, 1000u16..=2000)
    ///     .matches(numgen_random(10), less_than(3u32))
    ///     .drop()?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    pub fn matches<'m, T: Value>(
        self,
        what: impl Into<Key<'m>>,
        is: impl Into<Match<'m, T>>,
    ) -> Self {
        self.test(&what.into(), is.into())
    }

    #[inline]
    fn test<T: Value>(mut self, key: &Key<'_>, is: Match<'_, T>) -> Self {
        match is.encode(key.order()) {
            Ok(is) => self.compare(key, is),
            Err(error) => self.fail(error),
        }
        self
    }

    #[cold]
    fn fail(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }

    fn expressions(&mut self) -> &mut Expressions<'a> {
        self.rule.expressions.get_or_insert_default()
    }

    fn push(&mut self, expression: &impl Expression) {
        if self.error.is_none() {
            self.flush();
            self.expressions().push(expression);
        }
    }

    /// Writes the pending comparison.
    fn flush(&mut self) {
        if let Some(Pending {
            base,
            offset,
            bytes,
            length,
        }) = self.pending.take()
        {
            let load = Payload::load(base, offset, length as u32, Register::R1);
            let expressions = self.expressions();
            expressions.push(&load);
            expressions.push(&Cmp::eq(Register::R1, &bytes[..length]));
        }
    }

    /// Inserts expressions before all others.
    fn prepend(&mut self, put: impl FnOnce(&mut Self)) {
        self.flush();
        let behind = mem::take(self.expressions());
        put(self);
        self.flush();
        let expressions = self.expressions();
        for expression in behind.iter().map_while(Result::ok) {
            expressions.push_raw(&expression);
        }
    }

    /// Loads a field, or its first bytes, into a register.
    fn load(&mut self, selector: &Selector, length: Option<u32>, register: Register) {
        match selector.source {
            Source::Payload(base, offset) => {
                let length = length.unwrap_or(selector.length.into());
                self.push(&Payload::load(base, offset, length, register));
            }
            Source::Meta(key) => self.push(&Meta::load(key, register)),
            Source::Ct(key, direction) => self.push(&Ct {
                direction,
                ..Ct::load(key, register)
            }),
            Source::Fib(flags, result) => self.push(&Fib::new(flags, result, register)),
        }
    }

    /// Compares the key, or looks it up in a set.
    fn compare(&mut self, key: &Key<'_>, is: Match<'_, Encoded>) {
        const R1: Register = Register::R1;
        if self.error.is_some() || !self.add_key_dependencies(key) {
            return;
        }
        let Match { test, not } = is;
        if let Test::Set(set) = &test {
            let flags = not.then_some(LookupFlags::INV);
            return self.look_up(key, set, None, flags);
        }
        let (what, length, order) = (key.name(), key.length(), key.order());
        let selector = match key.only() {
            Ok(selector) => selector,
            Err(error) => return self.fail(error),
        };
        let first = match &test {
            Test::Value(value)
            | Test::Exactly(value)
            | Test::AnyOf(value)
            | Test::Masked(value, _)
            | Test::Prefix(value, _)
            | Test::Range(value, _)
            | Test::Compare(_, value) => *value,
            Test::Set(_) => return,
        };
        let second = match &test {
            Test::Masked(_, value) | Test::Range(_, value) => *value,
            _ => first,
        };
        // The start of a name can only be compared for equality.
        let partial = first.partial && matches!(test, Test::Value(_) | Test::Exactly(_));
        for value in [first, second] {
            let given = value.as_bytes().len() as u32; // at most 16
            if given != length && !(partial && given < length) {
                return self.fail(BuildError::ValueLength {
                    what,
                    length: given,
                    expected: length,
                });
            }
        }
        let equal = if not { CmpOp::NEQ } else { CmpOp::EQ };
        let network = |this: &mut Self| {
            // The kernel compares numbers by their bytes, so they must be big-endian.
            if order == ByteOrder::Host && length > 1 {
                this.push(&Byteorder::hton(R1, R1, length, length));
            }
        };
        let zeros = &[0; 16][..first.as_bytes().len()];
        match test {
            Test::Value(value) | Test::Exactly(value) => {
                if not || !self.join(selector, value.as_bytes()) {
                    self.load_key(key, 0);
                    self.push(&Cmp::new(R1, equal, value.as_bytes()));
                }
                if let (false, Some(selector)) = (not, selector) {
                    self.learn(selector, value.as_bytes());
                }
            }
            Test::AnyOf(flags) => {
                if flags.as_bytes().iter().all(|&byte| byte == 0) {
                    return self.fail(BuildError::NoFlags { what });
                }
                self.load_key(key, 0);
                self.push(&mask_xor(flags.as_bytes(), zeros));
                let op = if not { CmpOp::EQ } else { CmpOp::NEQ };
                self.push(&Cmp::new(R1, op, zeros));
            }
            Test::Masked(value, mask) => {
                let (value, mask) = (value.as_bytes(), mask.as_bytes());
                if value
                    .iter()
                    .zip(mask)
                    .any(|(value, mask)| value & !mask != 0)
                {
                    return self.fail(BuildError::Mask { what });
                }
                self.load_key(key, 0);
                self.push(&Bitwise::mask_xor(R1, mask, zeros));
                self.push(&Cmp::new(R1, equal, value));
            }
            Test::Prefix(value, bits) => {
                let max = (length * 8) as u8; // an address: 32 or 128
                if bits > max {
                    return self.fail(BuildError::Prefix {
                        what,
                        length: bits,
                        max,
                    });
                }
                let mut value = value;
                let mask = value.mask(bits);
                if bits % 8 == 0 && bits != 0 {
                    let bytes = usize::from(bits / 8);
                    match selector {
                        Some(selector) => self.load(selector, Some(bytes as u32), R1),
                        None => self.load_key(key, 0),
                    }
                    self.push(&Cmp::new(R1, equal, &value.as_bytes()[..bytes]));
                } else {
                    self.load_key(key, 0);
                    self.push(&mask_xor(mask.as_bytes(), zeros));
                    self.push(&Cmp::new(R1, equal, value.as_bytes()));
                }
            }
            Test::Range(from, to) => {
                let (from, to) = (from.as_bytes(), to.as_bytes());
                if from > to {
                    return self.fail(BuildError::Range { what });
                }
                self.load_key(key, 0);
                network(self);
                if not {
                    self.push(&Range::outside(R1, from, to));
                } else {
                    self.push(&Cmp::new(R1, CmpOp::GTE, from));
                    self.push(&Cmp::new(R1, CmpOp::LTE, to));
                }
            }
            Test::Compare(op, value) => {
                self.load_key(key, 0);
                network(self);
                self.push(&Cmp::new(R1, op, value.as_bytes()));
            }
            Test::Set(_) => {}
        }
    }

    /// Defers a comparison of packet bytes, to join it with the next one as nft does, or joins it with the
    /// deferred one. Returns false if the field cannot be deferred.
    fn join(&mut self, selector: Option<&Selector>, value: &[u8]) -> bool {
        let Some(Selector {
            source: Source::Payload(base, offset),
            ..
        }) = selector
        else {
            return false;
        };
        // nft joins only up to four bytes, the most that the kernel compares in one go.
        if value.len() > 4 {
            return false;
        }
        let (base, mut offset, mut bytes, mut length) = (*base, *offset, [0; 4], value.len());
        bytes[..length].copy_from_slice(value);
        if let Some(last) = self.pending
            && last.base == base
            && last.length + length <= 4
        {
            if last.offset + last.length as u32 == offset {
                bytes = last.bytes;
                bytes[last.length..][..length].copy_from_slice(value);
                (offset, length) = (last.offset, last.length + length);
                self.pending = None;
            } else if offset + length as u32 == last.offset {
                bytes[length..][..last.length].copy_from_slice(&last.bytes[..last.length]);
                length += last.length;
                self.pending = None;
            }
        }
        self.flush();
        self.pending = Some(Pending {
            base,
            offset,
            bytes,
            length,
        });
        true
    }

    /// Looks up a key in a set, or in a map, whose value is written to `dreg`.
    fn look_up(
        &mut self,
        key: &Key<'_>,
        set: &SetName<'_>,
        dreg: Option<Register>,
        flags: Option<LookupFlags>,
    ) {
        if let Some(expected) = set.key_length
            && expected != key.length()
        {
            let length = key.length();
            return self.fail(BuildError::SetKey { length, expected });
        }
        self.load_key(key, 0);
        if let (Ok(Some(selector)), None, None) = (key.only(), flags, dreg)
            && selector.is_protocol()
            && matches!(self.transport, Transport::Any | Transport::MutableSet)
        {
            self.transport = match set.id {
                Some(_) => Transport::Several,
                // The contents of a named set can change.
                None => Transport::MutableSet,
            };
        }
        self.push(&Lookup {
            sreg: Some(Register::R1),
            dreg,
            set: Some((&set.name).into()),
            set_id: set.id,
            flags,
            ..Lookup::default()
        });
    }

    /// Ends the rule with a verdict.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn verdict(mut self, verdict: Verdict<'_>) -> Result<Rule<'a>, BuildError> {
        self.push(&Immediate::verdict(verdict));
        self.finish()
    }

    /// Accepts the packet.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn accept(self) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Accept)
    }

    /// Drops the packet.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn drop(self) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Drop)
    }

    /// Continues with the next rule.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn continue_(self) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Continue)
    }

    /// Returns to the calling chain; in a base chain, applies its policy.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn return_(self) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Return)
    }

    /// Jumps to this chain, which returns at its end.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn jump<'n>(self, chain: impl Into<Name<'n>>) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Jump(chain.into()))
    }

    /// Goes to this chain without returning.
    ///
    /// # Errors
    /// The first error of the rule.
    pub fn goto<'n>(self, chain: impl Into<Name<'n>>) -> Result<Rule<'a>, BuildError> {
        self.verdict(Verdict::Goto(chain.into()))
    }
}

/// Masks and XORs the first register. Like nft for flags and prefixes, it omits the operation attribute, which
/// defaults to this operation.
fn mask_xor<'b>(mask: &'b [u8], xor: &'b [u8]) -> Bitwise<'b> {
    Bitwise {
        op: None,
        ..Bitwise::mask_xor(Register::R1, mask, xor)
    }
}

#[cfg(test)]
mod tests;
