//! Decodes the expressions of a rule to statements.

use std::cell::Cell;

use bstr::ByteSlice;

use super::context::Context;
use super::registers::{Content, Loaded, Registers};
use super::set;
use super::tunnel::has_no_syntax;
use crate::constant::{is_name, quotable};
use crate::dialect::NftVersion;
use crate::syntax::{Expr, ListedRule, Relation, Statement, Target, Value, Verdict};
use crate::tunnels::Tunnel;
use crate::types;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    self, Data, Decoded, OsfFlags, PayloadBase, RangeOp, Register, SocketKey, TunnelMode,
};
use chainwright::nft::{ChainFlags, DataType, Family, RuleRef, SnapshotTable};

/// Maximum nesting of anonymous chains: the kernel follows 16 jumps.
const MAX_DEPTH: usize = 16;
/// Maximum number of rules in the anonymous chains below one rule. In the kernel each is referenced by one rule; in a
/// file the number is unlimited.
const MAX_NESTED_RULES: usize = 65_536;
/// One second in nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// Maximum number of expressions in a rule. The kernel accepts no more; a file may have any number, each nested around
/// the previous one.
const MAX_EXPRESSIONS: usize = 128;

/// Decodes a rule. One that nft's language cannot represent becomes bytecode.
pub(crate) fn rule(
    table: &SnapshotTable<'_>,
    rule: &RuleRef<'_>,
    version: NftVersion,
) -> ListedRule {
    at_depth(table, rule, version, 0, &Cell::new(MAX_NESTED_RULES))
}

fn at_depth(
    table: &SnapshotTable<'_>,
    rule: &RuleRef<'_>,
    version: NftVersion,
    depth: usize,
    left: &Cell<usize>,
) -> ListedRule {
    let mut decoded = Vec::new();
    for expression in rule.expressions().into_iter().flatten() {
        match expression.and_then(|expression| expression.decode()) {
            Ok(expression) => decoded.push(expression),
            Err(malformed) => {
                return line(rule, vec![Statement::Opaque(malformed.to_string())]);
            }
        }
    }
    let mut reader = Reader {
        table,
        version,
        depth,
        left,
        registers: Registers::default(),
        context: Context::new(table.table().family()),
        inside: Vec::new(),
        statements: Vec::new(),
        is_lost: false,
    };
    let mut each = decoded.iter().enumerate();
    let read = decoded.len() <= MAX_EXPRESSIONS
        && each.all(|(index, expression)| {
            reader.context.set_of_frame(is_of_frame(&decoded, index));
            reader.take(expression).is_some()
        })
        && !reader.is_lost
        && !reader.statements.iter().flatten().any(has_no_syntax);
    let statements = match read {
        true => reader.statements.into_iter().flatten().collect(),
        false => decoded
            .iter()
            .map(|e| Statement::Opaque(e.to_string()))
            .collect(),
    };
    line(rule, statements)
}

/// Returns `true` if the statement of this expression reads the frame before it, or writes it.
fn is_of_frame(expressions: &[Decoded<'_>], index: usize) -> bool {
    let ends = |expression: &Decoded<'_>| match expression {
        Decoded::Payload(payload) => payload.sreg.is_some(),
        Decoded::Lookup(lookup) => lookup.dreg.is_none(),
        Decoded::Cmp(_) | Decoded::Range(_) => true,
        _ => false,
    };
    let is_of_frame = |expression: &Decoded<'_>| matches!(expression, Decoded::Payload(payload) if payload.base == Some(PayloadBase::LINK));
    let (before, rest) = expressions.split_at(index);
    let mut before = before.iter().rev().take_while(|before| !ends(before));
    let end = rest.iter().find(|expression| ends(expression));
    before.any(is_of_frame) || end.is_some_and(is_of_frame)
}

fn line(rule: &RuleRef<'_>, statements: Vec<Statement>) -> ListedRule {
    ListedRule {
        statements,
        comment: rule.comment().map(ToOwned::to_owned),
        handle: rule.handle(),
    }
}

pub(crate) struct Reader<'t, 's> {
    pub(crate) table: &'t SnapshotTable<'s>,
    /// Version of nft whose forms the statements have.
    pub(crate) version: NftVersion,
    pub(crate) depth: usize,
    /// Number of rules in anonymous chains that may still be read.
    pub(crate) left: &'t Cell<usize>,
    pub(crate) registers: Registers,
    pub(crate) context: Context,
    /// Contexts inside tunnels.
    pub(crate) inside: Vec<(&'static Tunnel, Context)>,
    /// `None` for removed statements.
    pub(crate) statements: Vec<Option<Statement>>,
    /// Whether the rule contains something that nft's language cannot represent.
    pub(crate) is_lost: bool,
}

/// Returns `true` if a bit range is valid and fits into a register.
pub(crate) const fn is_place(offset: u32, bits: u32) -> bool {
    offset <= 1 << 20 && bits >= 8 && bits <= 128
}

/// Returns the name if it is valid in nft's language.
pub(crate) fn valid_name(name: &[u8]) -> Option<String> {
    is_name(name).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Decodes a value; `None` for strings that cannot be quoted and dates with fractions of a second.
pub(crate) fn value(bytes: &[u8], order: ByteOrder, data_type: DataType) -> Option<Value> {
    if types::is_string(data_type) {
        quotable(bytes.trim_end_with(|c| c == '\0'))?;
    }
    limit(bytes, order, data_type)
}

/// Like [`value()`], for the upper bound of a range, which may be invalid text for string prefixes.
pub(crate) fn limit(bytes: &[u8], order: ByteOrder, data_type: DataType) -> Option<Value> {
    let is_string = types::is_string(data_type);
    let is_turned = order == ByteOrder::Host && cfg!(target_endian = "little") && !is_string;
    let value = match is_turned {
        true => {
            let mut turned = bytes.to_vec();
            turned.reverse();
            Value::from_be_bytes(data_type, &turned)
        }
        false => Value::from_be_bytes(data_type, bytes),
    };
    let is_printable =
        |value: &Value| data_type != types::DATE || value.number.is_multiple_of(SECOND);
    value.filter(is_printable)
}

impl Reader<'_, '_> {
    pub(crate) fn push(&mut self, statement: Statement) -> Option<()> {
        let is_condition = matches!(
            statement,
            Statement::Match { .. } | Statement::VerdictMap(..)
        );
        if !is_condition {
            self.keep_all();
        }
        self.statements.push(Some(statement));
        Some(())
    }

    /// Decodes an expression; `None` if nft's language cannot represent it or its operands.
    pub(crate) fn take(&mut self, expression: &Decoded<'_>) -> Option<()> {
        if !expression.unknown().is_empty() {
            return None;
        }
        match expression {
            Decoded::Meta(meta) => self.meta(meta),
            Decoded::Payload(payload) => self.payload(payload),
            Decoded::Inner(inner) => self.inner(inner),
            Decoded::Tunnel(tunnel) => {
                // nft has no syntax for a single direction.
                let mode = tunnel.mode.unwrap_or_default();
                (mode == TunnelMode::NONE).then_some(())?;
                self.load(tunnel.dreg?, Expr::Tunnel(tunnel.key?))
            }
            Decoded::Exthdr(exthdr) => self.exthdr(exthdr),
            Decoded::Ct(ct) => self.ct(ct),
            Decoded::Rt(rt) => self.load(rt.dreg?, Expr::Rt(rt.key?)),
            Decoded::Socket(socket) => {
                let key = socket.key?;
                let level = match key {
                    SocketKey::CGROUPV2 => socket.level.unwrap_or_default(),
                    _ => 0,
                };
                self.load(socket.dreg?, Expr::Socket(key, level))
            }
            Decoded::Fib(fib) => {
                let flags = fib.flags.unwrap_or_default();
                self.load(fib.dreg?, Expr::Fib(flags, fib.result?))
            }
            Decoded::Osf(osf) => {
                let version = osf.flags.unwrap_or_default().contains(OsfFlags::VERSION);
                let ttl = osf.ttl.unwrap_or_default();
                self.load(osf.dreg?, Expr::Osf { ttl, version })
            }
            Decoded::Xfrm(xfrm) => {
                let loaded = Expr::Xfrm {
                    direction: xfrm.dir.unwrap_or_default(),
                    key: xfrm.key?,
                    number: xfrm.spnum.unwrap_or_default(),
                };
                self.load(xfrm.dreg?, loaded)
            }
            Decoded::Numgen(numgen) => {
                let loaded = Expr::Numgen {
                    kind: numgen.numgen_type?,
                    modulus: numgen.modulus?,
                    offset: numgen.offset.unwrap_or_default(),
                };
                self.load(numgen.dreg?, loaded)
            }
            Decoded::Hash(hash) => self.hash(hash),
            Decoded::Bitwise(bitwise) => self.bitwise(bitwise),
            Decoded::Byteorder(byteorder) => {
                let mut loaded = self.registers.get(byteorder.sreg?)?.clone();
                loaded.order = match loaded.order {
                    ByteOrder::Host => ByteOrder::Network,
                    ByteOrder::Network => ByteOrder::Host,
                };
                self.registers.put(byteorder.dreg?, loaded)
            }
            Decoded::Immediate(immediate) => self.immediate(immediate),
            Decoded::Cmp(cmp) => {
                let Some(Data::Value(bytes)) = &cmp.data else {
                    return None;
                };
                self.compare(cmp.sreg?, cmp.op?, bytes)
            }
            Decoded::Range(range) => {
                let (Some(Data::Value(from)), Some(Data::Value(to))) =
                    (&range.from_data, &range.to_data)
                else {
                    return None;
                };
                let (left, from) = self.compared(range.sreg?, from)?;
                let (_, to) = self.compared(range.sreg?, to)?;
                let relation = match range.op? {
                    RangeOp::EQ => Relation::Implicit,
                    RangeOp::NEQ => Relation::NotEqual,
                    _ => return None,
                };
                self.limits(left, relation, from, to)
            }
            Decoded::Lookup(lookup) => self.lookup(lookup),
            Decoded::Dynset(dynset) => self.dynset(dynset),
            Decoded::Objref(objref) => self.objref(objref),
            other => {
                let statement = Statement::delinearize(other, self)?;
                self.push(statement)
            }
        }
    }

    pub(crate) fn family(&self) -> Family {
        self.table.table().family()
    }

    /// Loads a selector into a register; `None` if nft has no name for it.
    pub(crate) fn load(&mut self, register: Register, expr: Expr) -> Option<()> {
        let bits = expr.bits();
        (bits > 0).then_some(())?;
        let loaded = Loaded {
            length: bits as usize / 8,
            order: expr.order(),
            expr: Content::Expr(expr),
        };
        self.registers.put(register, loaded)
    }

    pub(crate) fn immediate(&mut self, immediate: &expr::Immediate<'_>) -> Option<()> {
        match immediate.data.as_ref()? {
            Data::Verdict(verdict) => {
                let verdict = self.verdict(verdict)?;
                self.push(Statement::Verdict(Expr::Verdict(verdict)))
            }
            Data::Value(bytes) => {
                let loaded = Loaded {
                    length: bytes.len(),
                    expr: Content::Bytes(bytes.to_vec()),
                    order: ByteOrder::Host,
                };
                self.registers.put(immediate.dreg?, loaded)
            }
            Data::Opaque(_) => None,
        }
    }

    pub(crate) fn verdict(&self, verdict: &expr::Verdict<'_>) -> Option<Verdict> {
        let target = |name: &chainwright::nft::Name<'_>| match self.bound_rules(name) {
            Some(rules) => Some(Target::Rules(rules)),
            None => valid_name(name).map(Target::Chain),
        };
        Some(match verdict {
            expr::Verdict::Jump(name) => Verdict::Jump(target(name)?),
            expr::Verdict::Goto(name) => Verdict::Goto(target(name)?),
            other => set::plain_verdict(other)?,
        })
    }

    /// Returns the rules of an anonymous chain.
    pub(crate) fn bound_rules(&self, name: &[u8]) -> Option<Vec<ListedRule>> {
        let chain = self.table.chain(name)?;
        let flags = chain.chain().flags().unwrap_or_default();
        let rules = chain.rules();
        let left = self.left.get().checked_sub(rules.len())?;
        let is_bound = flags.contains(ChainFlags::BINDING) && self.depth < MAX_DEPTH;
        is_bound.then(|| {
            self.left.set(left);
            let depth = self.depth + 1;
            rules
                .map(|rule| at_depth(self.table, &rule, self.version, depth, self.left))
                .collect()
        })
    }

    /// Returns the value of a register as one of this type.
    pub(crate) fn typed(&mut self, register: Register, data_type: DataType) -> Option<Expr> {
        self.typed_in(register, data_type, types::order(data_type))
    }

    /// Like [`typed`](Self::typed), with the byte order for integers whose type does not determine
    /// it.
    pub(crate) fn typed_in(
        &mut self,
        register: Register,
        data_type: DataType,
        order: ByteOrder,
    ) -> Option<Expr> {
        let loaded = self.registers.get(register)?.clone();
        let order = match data_type {
            DataType::INTEGER | DataType::VALUE | types::RAW => order,
            data_type => types::order(data_type),
        };
        match loaded.expr {
            Content::Expr(expr) => Some(self.resolve(expr)),
            Content::Bytes(bytes) => {
                let value = value(&bytes, order, data_type)?;
                Some(Expr::Value(value))
            }
        }
    }
}
