//! From what a script says to one transaction, of which the kernel makes the same as of what nft sends for it.
//!
//! | in | is |
//! |---|---|
//! | `constant` | what a word stands for |
//! | `protocols` | what is known of packets, and the matches that a field asks for |
//! | `body`, `load`, `lookup`, `matching`, `statement` | a rule's instructions |
//! | `sets`, `declared` | sets |
//! | `elements`, `merge` | their elements |

mod bits;
mod body;
mod constant;
mod declared;
mod elements;
mod load;
mod lookup;
mod matching;
mod merge;
mod protocols;
mod sets;
mod statement;

use std::sync::Arc;

use crate::netlink::Unfit;
use crate::nft::Object as KernelObject;
use crate::nft::{
    Chain, ChainFlags, DataType, Device, Element, Family, Hook, Name, Rule as KernelRule, SetId,
    Snapshot, Table, Transaction, userdata,
};
use crate::text::parse::{Command, Elements, Fault, Object, Position, Rule, Verb};
use crate::text::syntax::{Expr, Line, Place};
use crate::text::zone::Zone;
use crate::xt::Names;
use body::Body;
use sets::Shapes;

/// That a command is none of those that make one.
pub(super) fn not_a_change(place: Place) -> Fault {
    let message = "this asks for a listing: it cannot be part of a transaction";
    Fault::new(place, message)
}

/// Makes a transaction of commands.
pub(super) struct Compiler<'c> {
    names: Arc<Names>,
    time_zone: Zone,
    /// What is there already, as far as the commands need it.
    now: Option<&'c Snapshot>,
    shapes: Shapes,
    joined: merge::Joined,
    ahead: merge::Ahead,
    tx: Transaction,
    /// What is being looked at.
    place: Place,
    /// How many sets of the commands have got a number, how many others, and how many chains: as nft numbers them.
    declared: u32,
    anonymous: u32,
    chains: u32,
}

/// One device in a list is sent as one without.
fn alone(hook: &mut Hook<'static>) {
    let devices = hook.devices.as_ref();
    let mut devices = devices.into_iter().flat_map(|devices| devices.iter());
    if let (Some(Device::Name(name)), None) = (devices.next(), devices.next()) {
        hook.device = Some(Name::from(name).into_owned());
        hook.devices = None;
    }
}

impl<'c> Compiler<'c> {
    /// One that knows what is there already: sets that the commands name, chains and rules that they change.
    pub(super) fn new(now: Option<&'c Snapshot>, time_zone: Zone) -> Self {
        let mut this = Self {
            names: Names::system(),
            time_zone,
            now,
            shapes: Shapes::default(),
            joined: merge::Joined::default(),
            ahead: merge::Ahead::default(),
            tx: Transaction::as_nft(),
            place: Place::default(),
            declared: 0,
            anonymous: 0,
            chains: 0,
        };
        if let Some(now) = now {
            this.learn(now);
            // What the numbers and names in it mean may change with the next commit.
            if let Some(generation) = now.generation() {
                this.tx.expect_generation(generation);
            }
        }
        this
    }

    /// The transaction that these commands are, and the place of the command that each of its operations comes from.
    pub(super) fn compile(
        mut self,
        commands: &[&Command],
    ) -> Result<(Transaction, Vec<Place>), Fault> {
        let mut places = Vec::with_capacity(commands.len());
        // Sets that the commands declare are numbered before all others.
        let is_declared = |command: &&Command| {
            matches!(command.object, Object::Set(_))
                && matches!(command.verb, Verb::Add | Verb::Create)
        };
        self.anonymous = commands.iter().copied().filter(is_declared).count() as u32; // memory does not hold more
        for (index, command) in commands.iter().enumerate() {
            self.place = command.place;
            self.command(commands, index)?;
            places.resize(self.tx.len(), command.place);
        }
        Ok((self.tx, places))
    }

    /// The elements that are looked up.
    pub(super) fn sought_elements(
        mut self,
        elements: &Elements,
        place: Place,
    ) -> Result<Vec<Element<'static>>, Fault> {
        self.place = place;
        let name = String::from_utf8_lossy(&elements.set).into_owned();
        let known = self.set(elements.family, &elements.table, &name, false)?;
        // They are named by their keys alone, as those that are deleted.
        let each = self.elements_of(&known, &elements.elements, Verb::Delete)?;
        each.collect()
    }

    /// Of what type the value of an expression is, and how many bits it has.
    pub(super) fn type_of(mut self, expr: &Expr) -> (DataType, u32) {
        let body = Body::new(&mut self, Family::INET, Name::default());
        let want = body.want_of(expr);
        (want.data_type, want.bits)
    }

    fn fitted<T>(&self, added: Result<T, Unfit>) -> Result<(), Fault> {
        match added {
            Ok(_) => Ok(()),
            Err(unfit) => Err(Fault::new(self.place, unfit.to_string())),
        }
    }

    fn add<T: KernelObject>(&mut self, object: &T) -> Result<(), Fault> {
        let added = self.tx.add(object).map(|_| ());
        self.fitted(added)
    }

    fn command(&mut self, commands: &[&Command], index: usize) -> Result<(), Fault> {
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
                // A table that is there and dormant wakes up.
                let flags = Some(table.flags.unwrap_or_default());
                let table = table.clone();
                self.object(verb, &Table { flags, ..table })
            }
            Object::Table(table) => {
                self.forget_ranges_of(
                    table.family,
                    table.name.as_deref().map(|name| &**name),
                    None,
                );
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
            Object::Chain(chain) => self.object(verb, chain),
            Object::Renamed(chain, name) => self.rename(chain, name),
            Object::Rule(rule) => self.rule(verb, rule),
            Object::Set(declaration) => {
                // Its block has them.
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
            Object::Flowtable(flowtable) => self.object(verb, flowtable),
            Object::Stateful(object) => self.object(verb, object),
            Object::Ruleset(family) if verb == Verb::Flush => {
                self.forget_ranges_of(*family, None, None);
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

    fn not_a_change(&self) -> Fault {
        not_a_change(self.place)
    }

    fn object<T: KernelObject>(&mut self, verb: Verb, object: &T) -> Result<(), Fault> {
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

    /// The kernel renames the chain with a handle.
    fn rename(&mut self, chain: &Chain<'static>, name: &Name<'static>) -> Result<(), Fault> {
        let mut renamed = chain.clone();
        if renamed.handle.is_none() {
            let found = self.now.and_then(|now| {
                let (table, name) = (chain.table.as_deref()?, chain.name.as_deref()?);
                now.chain(chain.family, table, name)
            });
            let Some(found) = found else {
                let name = chain.name.as_deref().unwrap_or_default();
                let message = format!("there is no chain `{}`", String::from_utf8_lossy(name));
                return Err(Fault::new(self.place, message));
            };
            renamed.handle = Some(found.chain().handle());
        }
        renamed.name = Some(name.clone());
        let renamed = self.tx.rename(&renamed).map(|_| ());
        self.fitted(renamed)
    }

    /// The handle of the rule that stands so far from the first of its chain.
    fn handle_at(&self, rule: &Rule, index: u64) -> Result<u64, Fault> {
        let chain = self
            .now
            .and_then(|now| now.chain(rule.family, &**rule.table, &**rule.chain));
        let index_in = usize::try_from(index).unwrap_or(usize::MAX);
        let found = chain.and_then(|chain| chain.rules().nth(index_in));
        found.map(|rule| rule.handle()).ok_or_else(|| {
            let message = format!("the chain has no rule at index {index}: the first one is at 0");
            Fault::new(self.place, message)
        })
    }

    fn rule(&mut self, verb: Verb, rule: &Rule) -> Result<(), Fault> {
        let handle = match rule.position {
            Position::Any => None,
            Position::Handle(handle) => Some(handle),
            Position::Index(index) => Some(self.handle_at(rule, index)?),
        };
        let mut made = KernelRule::new(rule.family, rule.table.clone(), rule.chain.clone());
        match verb {
            Verb::Delete | Verb::Destroy => {
                made.handle = handle;
                return self.object(verb, &made);
            }
            Verb::Replace => made.handle = handle,
            _ => made.position = handle,
        }
        let mut body = Body::new(self, rule.family, rule.table.clone());
        for (statement, place) in &rule.statements {
            body.compiler.place = *place;
            body.statement(statement)?;
        }
        made.expressions = Some(body.finish());
        if let Some(comment) = &rule.comment {
            let put = userdata::put_comment(&mut made.userdata, userdata::RULE_COMMENT, comment);
            put.map_err(|error| Fault::new(self.place, error.to_string()))?;
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

    /// Rules of a chain that has no name: the chain and the rules come before the one that jumps there.
    fn bound_chain(
        &mut self,
        family: Family,
        table: &Name<'static>,
        rules: &[Line],
    ) -> Result<u32, Fault> {
        self.chains += 1;
        let id = self.chains;
        let chain = Chain {
            family,
            table: Some(table.clone()),
            id: Some(id),
            flags: Some(ChainFlags::BINDING),
            ..Chain::default()
        };
        self.add(&chain)?;
        for rule in rules {
            let mut body = Body::new(self, family, table.clone());
            for statement in &rule.statements {
                body.statement(statement)?;
            }
            let made = KernelRule {
                family,
                table: Some(table.clone()),
                chain_id: Some(id),
                expressions: Some(body.finish()),
                ..KernelRule::default()
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
    ) -> Result<(), Fault> {
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
            self.shapes.fill(family, table, &elements.set, is_made);
        }
        if verb == Verb::Flush {
            self.forget_ranges(&id);
            let flushed = self.tx.flush_set(&id).map(|_| ());
            return self.fitted(flushed);
        }
        if is_made && known.joined().is_some() {
            let together = self.ahead.together(commands, index);
            return self.join_elements(verb, &known, &id, &together);
        }
        if !is_made {
            self.forget_elements(&known, &id, &elements.elements)?;
        }
        let mut tx = std::mem::take(&mut self.tx);
        let each = self.elements_of(&known, &elements.elements, verb);
        let done = each.and_then(|each| self.write_elements(&mut tx, verb, &id, each));
        self.tx = tx;
        done
    }
}
