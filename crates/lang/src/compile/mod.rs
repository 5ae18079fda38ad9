//! Compiles commands to a transaction with the same effect as the one that nft sends.
//!
//! | module | purpose |
//! |---|---|
//! | `constant` | values of constants |
//! | `protocols` | protocols established by matches, and the matches that a field requires |
//! | `rule_builder`, `load`, `lookup`, `matching`, `statement` | expressions of a rule |
//! | `sets`, `declared` | sets |
//! | `elements`, `merge` | set elements |
//! | `order` | rules that a script refers to by index |

pub(crate) mod bits;
pub(crate) mod constant;
pub(crate) mod declared;
pub(crate) mod elements;
pub(crate) mod load;
pub(crate) mod lookup;
pub(crate) mod matching;
pub(crate) mod merge;
pub(crate) mod order;
pub(crate) mod protocols;
pub(crate) mod rule_builder;
pub(crate) mod sets;
pub(crate) mod statement;

use std::collections::HashSet;
use std::sync::Arc;

use bstr::BString;

use crate::dialect::NftVersion;
use crate::parse::{Command, Diagnostic, Elements, Object, Position, Rule, Verb, names_devices};
use crate::script::updated_sets;
use crate::syntax::{Expr, ListedRule, Span};
use crate::zone::Zone;
use chainwright::netlink::MessageError;
use chainwright::nft::Object as KernelObject;
use chainwright::nft::{
    Chain, ChainFlags, DataType, Device, Element, ElementQuery, Family, Flowtable, FlowtableHook,
    Hook, Name, Needed, Rule as KernelRule, SetId, Snapshot, Table, Transaction, userdata,
};
use chainwright::xt::Names;
use order::{At, Order};
use rule_builder::RuleBuilder;
use sets::KnownSets;

/// Creates the error that a command cannot be part of a transaction.
pub(crate) fn not_a_change(span: Span) -> Diagnostic {
    let message = "a listing cannot be part of a transaction";
    Diagnostic::new(span, message)
}

/// Result of compiling commands.
pub(crate) enum Compiled {
    /// The transaction, and the location of the command for each operation.
    Done(Transaction, Vec<Span>),
    /// The elements of this set must be read first.
    NeedsElements(merge::Named),
}

/// Object that a text deleted, by family, table and name; `None` stands for any.
type Deleted = (Family, Option<Vec<u8>>, Option<Vec<u8>>);

/// Compiler from commands to a transaction.
pub(crate) struct Compiler<'c> {
    names: Arc<Names>,
    time_zone: Zone,
    /// Version of nft whose instructions are written.
    pub(crate) version: NftVersion,
    /// Current ruleset, as far as the commands need it.
    now: Option<&'c Snapshot>,
    known_sets: KnownSets,
    /// Sets that rules of the text update.
    updated: HashSet<(Family, BString, BString)>,
    deleted: Vec<Deleted>,
    /// Parts of the current ruleset that were read; `None` for all.
    read: Option<&'c Needed>,
    contents: merge::Contents,
    ahead: merge::MergePlan,
    order: Order,
    tx: Transaction,
    /// Location of the current command or statement.
    span: Span,
    /// Numbers assigned so far to declared sets, anonymous sets and chains, as in nft.
    declared: u32,
    pub(crate) anonymous: u32,
    chains: u32,
}

/// Converts a list of one device to a single device.
fn alone(hook: &mut Hook<'static>) {
    let devices = hook.devices.as_ref();
    let mut devices = devices.into_iter().flat_map(|devices| devices.iter());
    if let (Some(Device::Name(name)), None) = (devices.next(), devices.next()) {
        hook.device = Some(Name::from(name).into_owned());
        hook.devices = None;
    }
}

impl<'c> Compiler<'c> {
    /// Creates a compiler with the current ruleset: sets, chains and rules that the commands refer to. `read` lists
    /// the parts that were read; `None` stands for all.
    pub(crate) fn new(
        now: Option<&'c Snapshot>,
        read: Option<&'c Needed>,
        time_zone: Zone,
        version: NftVersion,
    ) -> Self {
        let mut this = Self {
            names: Names::system(),
            time_zone,
            version,
            now,
            known_sets: KnownSets::default(),
            updated: HashSet::new(),
            deleted: Vec::new(),
            read,
            contents: merge::Contents::default(),
            ahead: merge::MergePlan::default(),
            order: Order::default(),
            tx: Transaction::nft_compatible(),
            span: Span::default(),
            declared: 0,
            anonymous: 0,
            chains: 0,
        };
        if let Some(now) = now {
            this.load_sets(now);
            // The next commit may change the meaning of names and handles in it.
            if let Some(generation) = now.generation() {
                this.tx.expect_generation(generation);
            }
        }
        this
    }

    /// Compiles commands. Also returns the location of the command for each operation.
    pub(crate) fn compile(mut self, commands: &[&Command]) -> Result<Compiled, Diagnostic> {
        let mut spans = Vec::with_capacity(commands.len());
        // Declared sets are numbered before all others.
        let is_declared = |command: &&Command| {
            matches!(command.object, Object::Set(_))
                && matches!(command.verb, Verb::Add | Verb::Create)
        };
        self.anonymous = commands.iter().copied().filter(is_declared).count() as u32; // memory does not hold more
        self.order = Order::of(commands, self.now)?;
        self.updated = commands
            .iter()
            .flat_map(|command| updated_sets(command))
            .collect();
        let mut errors = Vec::new();
        for (index, command) in commands.iter().enumerate() {
            self.span = command.span;
            if let Err(diagnostic) = self.command(commands, index) {
                if let Some(set) = self.contents.missing_elements {
                    return Ok(Compiled::NeedsElements(set));
                }
                errors.push(diagnostic);
                // Nothing depends on a rule or on elements; without another object, further errors would follow.
                let is_alone = matches!(command.object, Object::Rule(_) | Object::Elements(_));
                if !is_alone || errors.len() == Diagnostic::MAX {
                    break;
                }
            }
            spans.resize(self.tx.len(), command.span);
        }
        match Diagnostic::joined(errors) {
            None => Ok(Compiled::Done(self.tx, spans)),
            Some(diagnostic) => Err(diagnostic),
        }
    }

    /// Compiles the elements of a lookup.
    pub(crate) fn sought_elements(
        mut self,
        elements: &Elements,
        span: Span,
    ) -> Result<Vec<ElementQuery>, Diagnostic> {
        self.span = span;
        let name = String::from_utf8_lossy(&elements.set).into_owned();
        let known = self.set(elements.family, &elements.table, &name, false)?;
        if !known.is_interval || known.keys.len() > 1 {
            // As for deletion, elements consist of keys only.
            let each = self.elements_of(&known, &elements.elements, Verb::Delete)?;
            return each
                .map(|element| Ok(ElementQuery::Key(Box::new(element?))))
                .collect();
        }
        let (keys, each) = declared::of_verb(&known, &elements.elements, Verb::Delete);
        let sought = each.map(|element| {
            let Some(key) = &element.key else {
                return Ok(ElementQuery::Key(Box::new(Element::catch_all())));
            };
            let (from, to) = self.key_of(key, &keys)?;
            Ok(ElementQuery::Range(from, to))
        });
        sought.collect()
    }

    /// Returns the data type and the length in bits of an expression's value.
    pub(crate) fn type_of(mut self, expr: &Expr) -> (DataType, u32) {
        let rule_builder = RuleBuilder::new(&mut self, Family::INET, Name::default());
        let expected_type = rule_builder.expected_type(expr);
        let bits = match expr {
            Expr::Socket(..) => expr.bits(), // the declared length, even if no value needs all bits
            _ => expected_type.bits,
        };
        (expected_type.data_type, bits)
    }

    fn fitted<T>(&self, added: Result<T, MessageError>) -> Result<(), Diagnostic> {
        match added {
            Ok(_) => Ok(()),
            Err(error) => Err(Diagnostic::new(self.span, error.to_string())),
        }
    }

    pub(crate) fn add<T: KernelObject>(&mut self, object: &T) -> Result<(), Diagnostic> {
        let added = self.tx.add(object).map(|_| ());
        self.fitted(added)
    }

    fn command(&mut self, commands: &[&Command], index: usize) -> Result<(), Diagnostic> {
        let Some(command) = commands.get(index) else {
            return Ok(());
        };
        let verb = command.verb;
        let is_made = matches!(verb, Verb::Add | Verb::Create);
        match &command.object {
            Object::Table(table) if verb == Verb::Flush => {
                let name = table.name.clone().unwrap_or_default();
                let flushed = self.tx.flush_table(table.family, name).map(|_| ());
                self.fitted(flushed)
            }
            Object::Table(table) if is_made => {
                // Wakes up an existing dormant table.
                let flags = Some(table.flags.unwrap_or_default());
                let table = table.clone();
                self.object(verb, &Table { flags, ..table })
            }
            Object::Table(table) => {
                if let Some(name) = &table.name {
                    self.forget_contents(table.family, Some(name), None);
                }
                self.object(verb, table)
            }
            Object::Chain(chain) if verb == Verb::Flush => {
                let flushed = self.tx.flush_chain(
                    chain.family,
                    chain.table.clone().unwrap_or_default(),
                    chain.name.clone().unwrap_or_default(),
                );
                let flushed = flushed.map(|_| ());
                self.fitted(flushed)
            }
            Object::Chain(chain) if is_made => {
                let mut chain = chain.clone();
                if let Some(hook) = &mut chain.hook {
                    alone(hook);
                }
                self.object(verb, &chain)
            }
            Object::Chain(chain) if names_devices(chain) => {
                // The kernel reads the hook number before it searches the devices, and accepts any priority.
                let mut hook = chain.hook.clone().unwrap_or_default();
                hook.number.get_or_insert(0);
                hook.priority = None;
                alone(&mut hook);
                let chain = Chain {
                    family: chain.family,
                    table: chain.table.clone(),
                    name: chain.name.clone(),
                    hook: Some(hook),
                    ..Chain::empty()
                };
                self.delete_devices(verb, &chain)
            }
            Object::Chain(chain) => self.object(verb, chain),
            Object::Renamed(chain, name) => self.rename(chain, name),
            Object::Rule(rule) => self.rule(verb, rule, index),
            Object::Set(declaration) => {
                // Elements from the set's block.
                let elements = match commands.get(index + 1).map(|next| &next.object) {
                    Some(Object::Elements(elements)) if elements.is_of(&declaration.set) => {
                        Some(&elements.elements)
                    }
                    _ => None,
                };
                self.declare(verb, declaration, elements)
            }
            Object::Elements(elements) => self.elements(verb, elements, commands, index),
            Object::Flowtable(flowtable) if is_made => {
                let mut flowtable = flowtable.clone();
                flowtable.flags.get_or_insert_default();
                if let Some(hook) = &mut flowtable.hook {
                    hook.devices
                        .take_if(|devices| devices.iter().next().is_none());
                }
                self.object(verb, &flowtable)
            }
            Object::Flowtable(flowtable) => {
                let hook = flowtable.hook.as_ref();
                match hook.and_then(|hook| hook.devices.as_ref()) {
                    Some(devices) => {
                        let flowtable = Flowtable {
                            family: flowtable.family,
                            table: flowtable.table.clone(),
                            name: flowtable.name.clone(),
                            hook: Some(FlowtableHook {
                                devices: Some(devices.clone()),
                                ..FlowtableHook::default()
                            }),
                            ..Flowtable::empty()
                        };
                        self.delete_devices(verb, &flowtable)
                    }
                    None => self.object(verb, flowtable),
                }
            }
            Object::Stateful(object) => self.object(verb, object),
            Object::Ruleset(family) if verb == Verb::Flush => {
                self.forget_contents(*family, None, None);
                let flushed = self.tx.flush_ruleset(*family).map(|_| ());
                self.fitted(flushed)
            }
            Object::Ruleset(_)
            | Object::Kind(..)
            | Object::Meter(_)
            | Object::Monitor(_)
            | Object::Described(_) => Err(self.not_a_change()),
        }
    }

    fn not_a_change(&self) -> Diagnostic {
        not_a_change(self.span)
    }

    fn object<T: KernelObject>(&mut self, verb: Verb, object: &T) -> Result<(), Diagnostic> {
        let done = match verb {
            Verb::Add => self.tx.add(object),
            Verb::Create => self.tx.create(object),
            Verb::Delete => self.tx.delete(object),
            Verb::Destroy => self.tx.destroy(object),
            _ => return Err(self.not_a_change()),
        };
        let done = done.map(|_| ());
        self.fitted(done)
    }

    /// Deletes devices from the hook of an object; the object remains.
    fn delete_devices<T: KernelObject>(
        &mut self,
        verb: Verb,
        object: &T,
    ) -> Result<(), Diagnostic> {
        let is_destroyed = verb == Verb::Destroy;
        let deleted = self.tx.delete_devices(object, is_destroyed).map(|_| ());
        self.fitted(deleted)
    }

    /// Compiles `rename chain`. The kernel finds the chain by its handle.
    fn rename(&mut self, chain: &Chain<'static>, name: &Name<'static>) -> Result<(), Diagnostic> {
        let mut renamed = chain.clone();
        if renamed.handle.is_none() {
            let found = self.now.and_then(|now| {
                let (table, name) = (chain.table.as_deref()?, chain.name.as_deref()?);
                now.chain(chain.family, table, name)
            });
            let Some(found) = found else {
                let name = chain.name.as_deref().unwrap_or_default();
                let message = format!("no such chain: `{}`", String::from_utf8_lossy(name));
                return Err(Diagnostic::missing(self.span, message));
            };
            renamed.handle = Some(found.chain().handle());
        }
        renamed.name = Some(name.clone());
        let renamed = self.tx.rename(&renamed).map(|_| ());
        self.fitted(renamed)
    }

    fn rule(&mut self, verb: Verb, rule: &Rule, index: usize) -> Result<(), Diagnostic> {
        let at = match (self.order.refers(index), rule.position) {
            (Some(at), _) => at,
            (None, Position::Handle(handle)) => Some(At::Handle(handle)),
            (None, _) => None,
        };
        let (handle, number) = match at {
            Some(At::Handle(handle)) => (Some(handle), None),
            Some(At::Number(number)) => (None, Some(number)),
            None => (None, None),
        };
        let mut made = KernelRule::new(rule.family, rule.table.clone(), rule.chain.clone());
        match verb {
            Verb::Delete | Verb::Destroy => {
                (made.handle, made.id) = (handle, number);
                return self.object(verb, &made);
            }
            Verb::Replace => made.handle = handle,
            _ => (made.position, made.position_id) = (handle, number),
        }
        made.id = self.order.number(index);
        let mut rule_builder = RuleBuilder::new(self, rule.family, rule.table.clone());
        for (index, (statement, span)) in rule.statements.iter().enumerate() {
            let is_last = index + 1 == rule.statements.len();
            rule_builder.compiler.span = *span;
            rule_builder.statement(statement, is_last)?;
        }
        made.expressions = Some(rule_builder.finish());
        if let Some(comment) = &rule.comment {
            let put = userdata::put_comment(&mut made.userdata, userdata::RULE_COMMENT, comment);
            put.map_err(|error| Diagnostic::new(self.span, error.to_string()))?;
        }
        let done = match verb {
            Verb::Insert => self.tx.insert(&made),
            Verb::Replace => self.tx.replace(&made),
            Verb::Create => self.tx.create(&made),
            _ => self.tx.add(&made),
        };
        let done = done.map(|_| ());
        self.fitted(done)
    }

    /// Adds an anonymous chain and its rules, before the rule that jumps to it.
    pub(crate) fn bound_chain(
        &mut self,
        family: Family,
        table: &Name<'static>,
        rules: &[ListedRule],
    ) -> Result<u32, Diagnostic> {
        self.chains += 1;
        let id = self.chains;
        let chain = Chain {
            family,
            table: Some(table.clone()),
            id: Some(id),
            flags: Some(ChainFlags::BINDING),
            ..Chain::empty()
        };
        self.add(&chain)?;
        for rule in rules {
            let mut rule_builder = RuleBuilder::new(self, family, table.clone());
            for (index, statement) in rule.statements.iter().enumerate() {
                let is_last = index + 1 == rule.statements.len();
                rule_builder.statement(statement, is_last)?;
            }
            let made = KernelRule {
                family,
                table: Some(table.clone()),
                chain_id: Some(id),
                expressions: Some(rule_builder.finish()),
                ..KernelRule::empty()
            };
            self.add(&made)?;
        }
        Ok(id)
    }

    fn elements(
        &mut self,
        verb: Verb,
        elements: &Elements,
        commands: &[&Command],
        index: usize,
    ) -> Result<(), Diagnostic> {
        let name = String::from_utf8_lossy(&elements.set).into_owned();
        let known = self.set(elements.family, &elements.table, &name, false)?;
        let id = SetId {
            id: known.id,
            ..SetId::new(
                elements.family,
                elements.table.clone(),
                elements.set.clone(),
            )
        };
        let is_made = matches!(verb, Verb::Add | Verb::Create);
        if verb == Verb::Flush || (is_made && known.id.is_some()) {
            let (family, table) = (elements.family, &elements.table);
            self.known_sets.fill(family, table, &elements.set, is_made);
        }
        if verb == Verb::Flush {
            let (family, table) = (elements.family, &elements.table);
            self.contents
                .empty(family, Some(table), Some(&elements.set));
            let flushed = self.tx.flush_set(&id).map(|_| ());
            return self.fitted(flushed);
        }
        if is_made && known.joined().is_some() {
            let together = self.ahead.together(commands, index);
            return self.join_elements(verb, &known, &id, &together, commands);
        }
        if declared::is_deletion(verb) && known.joined().is_some() {
            let together = self.ahead.together(commands, index);
            return self.cut_elements(verb, &known, &id, &together);
        }
        if known.is_interval && known.keys.len() == 1 {
            return self.ranged(verb, &known, &id, elements, commands);
        }
        let mut tx = std::mem::take(&mut self.tx);
        let each = self.elements_of(&known, &elements.elements, verb);
        let done = each.and_then(|each| self.write_elements(&mut tx, verb, &id, each));
        self.tx = tx;
        done
    }
}
