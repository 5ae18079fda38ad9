//! Compiles statements.

use super::constant::ExpectedType;
use super::rule_builder::{REGISTER, RuleBuilder, register};
use super::sets::{Data, SetSpec, SetUserData, noted_order, with_keys};
use crate::headers;
use crate::parse::Diagnostic;
use crate::syntax::{Element, Expr, Payload, Statement, Target, Value, Verdict};
use crate::types::CT_EVENT;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    self, ChecksumFlags, Ct, CtKey, Dynset, DynsetFlags, DynsetOp, Exthdr, ExthdrOp, Immediate,
    Meta, ObjectType, Objref, Payload as Load, PayloadBase, Register,
};
use chainwright::nft::{DataType, Milliseconds, Set, SetFlags, SetId};

impl RuleBuilder<'_, '_> {
    /// Compiles a statement. `is_last` means that no other follows in the rule.
    pub(crate) fn statement(
        &mut self,
        statement: &Statement,
        is_last: bool,
    ) -> Result<(), Diagnostic> {
        if self.is_over {
            return Err(self.error("unreachable statement: the previous statement ends the rule"));
        }
        // Omitted, as nft does.
        if !is_last && self.is_redundant(statement) {
            return Ok(());
        }
        self.is_over = statement.ends_rule();
        if let Some(expression) = statement.expression() {
            self.push_decoded(&expression);
            return Ok(());
        }
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => return self.matches(left, *relation, right),
            Statement::VerdictMap(key, map) => self.verdict_map(key, map)?,
            _ => {
                statement.add_dependencies(self)?;
                self.flush_pending();
                statement.linearize(self)?;
            }
        }
        self.flush_pending();
        Ok(())
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.compiler.span, message)
    }

    pub(crate) fn act(&mut self, statement: &Statement) -> Result<(), Diagnostic> {
        match statement {
            Statement::Verdict(Expr::Verdict(verdict)) => {
                let verdict = self.jump(verdict)?;
                self.push(&Immediate::verdict(verdict));
            }
            Statement::Set(target, to) => self.set_to(target, to)?,
            Statement::Reset(Expr::Option(option)) => {
                self.push(&Exthdr::reset_tcp_option(option.number));
            }
            Statement::Update { word, set, element } => {
                let op = match *word {
                    "add" => DynsetOp::ADD,
                    "delete" => DynsetOp::DELETE,
                    _ => DynsetOp::UPDATE,
                };
                let known =
                    self.compiler
                        .set(self.family, &self.table, set, element.data.is_some())?;
                self.dynset(op, &self.named(set), element, Some(&known))?;
            }
            Statement::Meter {
                name,
                size,
                element,
            } => self.meter(name, *size, element)?,
            Statement::Object(object_type, object) => self.object(*object_type, object)?,
            Statement::Extension(kind, name) => {
                let message = format!(
                    "`xt {kind} \"{name}\"` was written by iptables-nft: its options are not in this text, so it cannot be \
                     recreated"
                );
                return Err(self.error(message));
            }
            _ => return Err(self.error("this statement is not allowed here")),
        }
        Ok(())
    }

    fn jump(&mut self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        match verdict {
            Verdict::Jump(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::JumpId(id))
            }
            Verdict::Goto(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::GotoId(id))
            }
            verdict => self.compiler.verdict(verdict),
        }
    }

    /// Compiles an assignment to packet bytes or metadata.
    fn set_to(&mut self, target: &Expr, to: &Expr) -> Result<(), Diagnostic> {
        match target {
            Expr::Meta(key) => {
                self.put(to, &[self.expected_type(target)], 0)?;
                self.push(&Meta::set(*key, Register::R1));
            }
            Expr::Ct(key, direction, _) => {
                let mut expected_type = self.expected_type(target);
                if *key == CtKey::EVENTMASK {
                    expected_type = ExpectedType::of(CT_EVENT);
                }
                self.put(to, &[expected_type], 0)?;
                self.push(&Ct {
                    direction: *direction,
                    ..Ct::set(*key, Register::R1)
                });
            }
            Expr::Option(option) if option.extension.kind == ExthdrOp::TCPOPT => {
                let expected_type = self.expected_type(target);
                self.put(to, &[expected_type], 0)?;
                let (offset, length) = (option.offset / 8, option.bits.div_ceil(8));
                self.push(&Exthdr::set_tcp_option(
                    option.number,
                    offset,
                    length,
                    Register::R1,
                ));
            }
            Expr::Payload(payload) if payload.tunnel.is_some() => {
                return Err(self.error("fields inside a tunnel cannot be set"));
            }
            Expr::Payload(payload) => self.write(payload, to)?,
            _ => return Err(self.error("this cannot be set")),
        }
        Ok(())
    }

    /// Writes packet bytes: 16-bit units if a checksum must be updated.
    fn write(&mut self, payload: &Payload, to: &Expr) -> Result<(), Diagnostic> {
        let protocol = payload.field.map(|(protocol, _)| protocol);
        let start = self.start_of(payload)?;
        let checksum = protocol.and_then(headers::checksum_of);
        let unit = if checksum.is_some() { 16 } else { 8 };
        let expected_type = self.expected_type(&Expr::Payload(*payload));
        let is_whole = start.is_multiple_of(unit) && payload.bits.is_multiple_of(unit);
        let (mut first, mut behind) = (start / 8, (start + payload.bits).div_ceil(8));
        if is_whole {
            self.put(to, &[expected_type], 0)?;
        } else {
            if checksum.is_some() && (behind - first) % 2 == 1 {
                match first % 2 {
                    1 => first -= 1,
                    _ => behind += 1,
                }
            }
            let (mask, xor) = self.changed(payload, to, expected_type)?;
            let length = behind - first;
            let shift = behind * 8 - (start + payload.bits);
            let changed = Value::ones(payload.bits) & !mask;
            let kept = Value::ones(length * 8) & !(changed << shift);
            self.push(&Load::load(payload.base, first, length, Register::R1));
            self.mask_xor(0, kept, xor << shift, length as usize, ByteOrder::Network);
        }
        // The transport checksum also covers these bytes.
        let is_pseudo = match payload.field {
            Some((protocol, field)) => {
                headers::is_in_pseudo_header(protocol, &protocol.fields[field])
            }
            None => payload.base == PayloadBase::INNER,
        };
        self.push(&Load {
            sreg: Some(Register::R1),
            base: Some(payload.base),
            offset: Some(first),
            len: Some(behind - first),
            checksum_type: checksum.map(|(checksum_type, _)| checksum_type),
            checksum_offset: checksum.map(|(_, offset)| offset),
            checksum_flags: is_pseudo.then_some(ChecksumFlags::L4_PSEUDOHDR),
            ..Load::default()
        });
        Ok(())
    }

    fn dynset(
        &mut self,
        op: DynsetOp,
        set: &SetId<'static>,
        element: &Element,
        set_spec: Option<&SetSpec>,
    ) -> Result<(), Diagnostic> {
        let Some(key) = &element.key else {
            return Err(self.error("an element needs a key"));
        };
        if element.comment.is_some() {
            return Err(self.error("an element that a rule adds cannot have a comment"));
        }
        if element.timeout == Some(0) {
            let message = "a rule cannot add an element that never times out: the kernel applies the set's timeout";
            return Err(self.error(message));
        }
        let words = match set_spec {
            // A key that is the same for all packets.
            Some(set_spec) if key.is_constant() => self.put(key, &set_spec.keys, 0)?,
            _ => {
                let of_set = set_spec.map_or(&[][..], |set_spec| &set_spec.keys);
                if let Some(set_spec) = set_spec {
                    let types = self.expected_types_in(key, of_set);
                    self.check(set_spec, &types, true, None, key)?;
                }
                let mut fields = self.load_key(key, 0, false, of_set)?;
                if let ([field], Some(DataType::MARK)) =
                    (&mut fields[..], set_spec.map(|set_spec| set_spec.key_type))
                {
                    self.turn_to_mark(field, 0);
                }
                fields.iter().map(super::load::Loaded::words).sum()
            }
        };
        let mut dynset = Dynset {
            sreg_key: Some(Register::R1),
            op: Some(op),
            set_name: Some(set.set.clone()),
            set_id: set.id,
            timeout: element.timeout.map(Milliseconds),
            ..Dynset::default()
        };
        let data = set_spec.and_then(|set_spec| set_spec.data.as_ref());
        if let (Some(value), Some(Data::Values { fields, .. })) = (&element.data, data) {
            let word = words.next_multiple_of(REGISTER);
            self.put(value, fields, word)?;
            dynset.sreg_data = Some(register(word));
        }
        match &element.statements[..] {
            [] => {}
            [one] => dynset.expr = Some(self.compiler.nested(one)?),
            several => {
                dynset.expressions = Some(self.compiler.all_nested(several)?);
                dynset.flags = Some(DynsetFlags::EXPR);
            }
        }
        self.push(&dynset);
        Ok(())
    }

    /// Creates the set of a `meter` statement.
    fn meter(
        &mut self,
        name: &str,
        size: Option<u32>,
        element: &Element,
    ) -> Result<(), Diagnostic> {
        let Some(key) = &element.key else {
            return Err(self.error("a meter needs a key"));
        };
        let expected_types: Vec<ExpectedType> = match key {
            Expr::Concat(parts) => parts.iter().map(|part| self.expected_type(part)).collect(),
            key => vec![self.expected_type(key)],
        };
        let mut flags = SetFlags::ANONYMOUS | SetFlags::EVAL;
        let op = match element.timeout {
            Some(_) => {
                flags |= SetFlags::TIMEOUT;
                DynsetOp::UPDATE
            }
            None => DynsetOp::ADD,
        };
        self.compiler.anonymous += 1;
        let id = self.compiler.anonymous;
        let set = Set {
            family: self.family,
            table: Some(self.table.clone()),
            name: Some(name.to_owned().into()),
            id: Some(id),
            flags: Some(flags),
            ..Set::empty()
        };
        let mut set = with_keys(set, &expected_types, false);
        let notes = SetUserData {
            key_order: noted_order(&expected_types),
            ..SetUserData::default()
        };
        let noted = notes.write(&mut set);
        noted.map_err(|error| self.error(error.to_string()))?;
        if let Some(size) = size {
            set = set.with_size(size);
        }
        self.compiler.add(&set)?;
        let set = SetId {
            id: Some(id),
            ..SetId::new(self.family, self.table.clone(), name.to_owned())
        };
        self.dynset(op, &set, element, None)
    }

    fn object(&mut self, object_type: ObjectType, object: &Expr) -> Result<(), Diagnostic> {
        match object {
            Expr::Object(name) => self.push(&Objref::named(object_type, name.clone())),
            Expr::Symbol(symbol) => {
                self.push(&Objref::named(object_type, symbol.text.to_string()));
            }
            Expr::Map(key, map) => {
                let data = Data::Object(object_type);
                let set = self.sought(key, map, 0, Some(&data))?;
                self.push(&Objref {
                    set_id: set.id,
                    ..Objref::mapped(Register::R1, set.set)
                });
            }
            other => {
                return Err(self.compiler.diagnostic(other, "expected an object name"));
            }
        }
        Ok(())
    }
}

impl super::Compiler<'_> {
    /// Converts a verdict, except jumps to anonymous chains.
    pub(crate) fn verdict(&self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        Ok(match verdict {
            Verdict::Accept => expr::Verdict::Accept,
            Verdict::Drop => expr::Verdict::Drop,
            Verdict::Continue => expr::Verdict::Continue,
            Verdict::Break => expr::Verdict::Break,
            Verdict::Return => expr::Verdict::Return,
            Verdict::Jump(Target::Chain(name)) => expr::Verdict::Jump(name.clone().into()),
            Verdict::Goto(Target::Chain(name)) => expr::Verdict::Goto(name.clone().into()),
            Verdict::Jump(_) | Verdict::Goto(_) => {
                let message = "rules in braces are not allowed here: use a named chain";
                return Err(Diagnostic::new(self.span, message));
            }
        })
    }
}
