//! Changes of nf_tables tables, as operations of one transaction.
//!
//! Changes are added to the transaction immediately. A chain is read only if its content
//! matters: to find a rule, to count rules, to insert after the head. The commit is then
//! conditional on the state that was read: in the first attempt on the ruleset's generation, in later
//! ones only on these tables.

mod edit;

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Encoder, Profile, meaning};
use crate::iptables::edit::Editor;
use crate::iptables::{Builtin, Counters, Entry, Error, NotExpressible, Rule, Target, builtin};
use crate::netlink;
use crate::nft::{
    self, Chain, Connection, Guard, RuleFilter, Scope, Transaction, is_cheaper_to_recreate,
};
use crate::retry::Attempts;
use crate::xt::Family;

/// Tables that are being changed.
pub(in crate::iptables) struct Session<'c> {
    /// The connection; `None` if the tables are known to be empty, so that nothing is read.
    connection: Option<&'c mut Connection>,
    transaction: Transaction,
    profile: Profile,
    tables: Vec<Table>,
    attempts: &'c Attempts,
    /// Whether errors suggest names, which takes reading the names of chains.
    pub(in crate::iptables) hints: bool,
    /// Guards the state that was read, if any.
    guard: Option<Guard>,
    /// Whether new rules are tracked, so that they can be found again.
    tracking: bool,
    /// Whether an operation failed because new rules were not tracked.
    wants_tracking: bool,
    /// The line of the text for each operation.
    lines: Vec<u32>,
    line: u32,
    /// The number of rules with a transaction-local id.
    numbered: u32,
    /// Whether some chain's rules are held.
    has_deferred: bool,
}

/// A change that is ready to be sent.
pub(in crate::iptables) struct Finished {
    pub(in crate::iptables) transaction: Transaction,
    /// Guards the state that was read for it, if any.
    pub(in crate::iptables) guard: Option<Guard>,
    /// The line of the text for each operation.
    pub(in crate::iptables) lines: Vec<u32>,
}

struct Table {
    family: Family,
    name: String,
    /// Whether the transaction adds the table.
    added: bool,
    /// Whether only chains in `chains` can have rules.
    flushed: bool,
    /// Whether `chains` has all existing chains.
    cleared: bool,
    /// Whether a chain was renamed.
    renamed: bool,
    chains: HashMap<BString, ChainState>,
}

/// The known state of a chain.
struct ChainState {
    /// Whether it exists; `None` if unknown.
    exists: Option<bool>,
    /// The kernel's name for it until the commit, if it was renamed.
    old_name: Option<BString>,
    /// For a built-in chain: whether the transaction adds it.
    added: bool,
    /// Number of rules that the kernel steps over to find the rules to which operations refer; `None` after the chain
    /// was rewritten, or that was tried, because of this number.
    passed: Option<usize>,
    rules: Rules,
}

impl ChainState {
    /// Returns the state of a chain to which nothing was written and that has no known rules.
    const fn without_rules(exists: Option<bool>) -> Self {
        Self {
            exists,
            old_name: None,
            added: false,
            passed: Some(0),
            rules: Rules::Known(Vec::new()),
        }
    }

    /// Returns `true` if its rules are written only once all its changes are known; until then the transaction empties
    /// it.
    fn is_deferred(&self) -> bool {
        matches!(&self.rules, Rules::Known(slots) if matches!(slots.first(), Some(Slot::Deferred { .. })))
    }
}

/// The known state of a chain's rules.
enum Rules {
    /// The same as in the kernel.
    Unread,
    /// Changed from the kernel's, and not tracked.
    Untracked,
    Known(Vec<Slot>),
}

/// A rule of a chain; if one of a chain is held, all are.
enum Slot {
    Existing {
        handle: u64,
        /// Its position in the kernel.
        at: u32,
        entry: Box<Result<Entry, NotExpressible>>,
    },
    New {
        id: u32,
        /// An entry that is not expressible comes from the kernel.
        entry: Box<Result<Entry, NotExpressible>>,
    },
    Deferred {
        rule: Box<nft::Rule<'static>>,
        /// The line of the text.
        line: u32,
        entry: Box<Result<Entry, NotExpressible>>,
    },
}

impl Slot {
    const fn entry(&self) -> &Result<Entry, NotExpressible> {
        let (Self::Existing { entry, .. } | Self::New { entry, .. } | Self::Deferred { entry, .. }) =
            self;
        entry
    }

    const fn entry_mut(&mut self) -> &mut Result<Entry, NotExpressible> {
        let (Self::Existing { entry, .. } | Self::New { entry, .. } | Self::Deferred { entry, .. }) =
            self;
        entry
    }
}

impl<'c> Session<'c> {
    pub(in crate::iptables) fn new(
        connection: Option<&'c mut Connection>,
        profile: Profile,
        tables: &[(Family, String)],
        tracking: bool,
        attempts: &'c Attempts,
    ) -> Self {
        let is_empty = connection.is_none();
        let tables = tables.iter().map(|(family, name)| Table {
            family: *family,
            name: name.clone(),
            added: false,
            flushed: is_empty,
            cleared: is_empty,
            renamed: false,
            chains: HashMap::new(),
        });
        Self {
            connection,
            transaction: Transaction::new(),
            profile,
            tables: tables.collect(),
            attempts,
            hints: true,
            guard: None,
            tracking,
            wants_tracking: false,
            lines: Vec::new(),
            line: 0,
            numbered: 0,
            has_deferred: false,
        }
    }

    /// Returns `true` if the change must start again with new rules tracked.
    pub(in crate::iptables) const fn wants_tracking(&self) -> bool {
        self.wants_tracking && !self.tracking
    }

    /// Returns `true` if nothing changes.
    pub(in crate::iptables) const fn is_empty(&self) -> bool {
        self.transaction.is_empty()
    }

    /// Returns the transaction, and everything that sending it requires.
    pub(in crate::iptables) fn finish(mut self) -> Result<Finished, Error> {
        self.write_deferred()?;
        Ok(Finished {
            transaction: self.transaction,
            guard: self.guard,
            lines: self.lines,
        })
    }

    /// Records the current line for the operations since the last call.
    fn note_lines(&mut self) {
        self.lines.resize(self.transaction.len(), self.line);
    }

    /// Guards everything that is read from now on: if it changes before the commit, the commit fails.
    fn guard(&mut self) -> Result<(), Error> {
        if self.guard.is_none()
            && let Some(connection) = &mut self.connection
        {
            let tables = self.tables.iter();
            let scopes: Vec<_> = tables
                .map(|table| Scope::table(table.family.into(), &table.name))
                .collect();
            let guard = connection.guard_for_attempt(self.attempts, &scopes)?;
            self.guard = Some(guard);
        }
        Ok(())
    }

    /// Converts the result of listing rules of one of the tables.
    fn check_dump(&self, ended: Result<(), netlink::Error>) -> Result<(), netlink::Error> {
        match &self.guard {
            Some(guard) => guard.check_dump(ended),
            None => ended,
        }
    }

    /// Adds the table to the transaction once.
    fn add_table(&mut self, table: usize) -> Result<(), Error> {
        let state = &mut self.tables[table];
        if !state.added {
            let object = nft::Table::new(state.family.into(), state.name.as_str());
            self.transaction.add(&object)?;
            state.added = true;
        }
        Ok(())
    }

    /// Returns the state of a chain.
    fn chain(&mut self, table: usize, name: &BStr) -> &mut ChainState {
        let state = &mut self.tables[table];
        state.chains.entry(name.to_owned()).or_insert_with(|| {
            let is_builtin = builtin_chain(&state.name, name).is_some();
            let rules = if state.flushed {
                Rules::Known(Vec::new())
            } else {
                Rules::Unread
            };
            let exists = match state.cleared {
                _ if is_builtin => Some(true),
                true => Some(false),
                false => None,
            };
            ChainState {
                rules,
                ..ChainState::without_rules(exists)
            }
        })
    }

    /// Prepares to write to a chain: adds its table, and the chain if it is built in. A chain that is only read stays
    /// unchanged.
    fn prepare(&mut self, table: usize, name: &BStr) -> Result<(), Error> {
        self.add_table(table)?;
        if let Some(builtin) = builtin_chain(&self.tables[table].name, name)
            && !self.chain(table, name).added
        {
            // Without a policy, so that an existing chain keeps its own.
            let chain = self.object(table, name).with_hook(
                builtin.chain_type,
                builtin.hook,
                builtin.priority,
            );
            self.transaction.add(&chain)?;
            self.chain(table, name).added = true;
        }
        Ok(())
    }

    /// Returns the error for a missing chain, with a suggestion.
    fn no_such_chain(&mut self, table: usize, name: &BStr) -> Error {
        // The names only improve the message.
        let names = match self.hints {
            true => self.chains(table).unwrap_or_default(),
            false => Vec::new(),
        };
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let table = &self.tables[table].name;
        Error::no_such_chain(table, name, names.iter().map(String::as_str))
    }

    /// Returns `true` if the state that was read is outdated.
    pub(in crate::iptables) fn is_stale(&mut self) -> bool {
        let (Some(guard), Some(connection)) = (&mut self.guard, &mut self.connection) else {
            return false;
        };
        let unchanged = guard.is_unchanged(connection);
        unchanged.is_ok_and(|is_unchanged| !is_unchanged)
    }

    /// Rejects the old name of a renamed chain: for the kernel it is taken until the commit.
    fn check_not_renamed(&self, table: usize, name: &BStr) -> Result<(), Error> {
        let table = &self.tables[table];
        if !table.renamed {
            return Ok(());
        }
        let mut chains = table.chains.values();
        if chains.any(|chain| chain.old_name.as_ref().is_some_and(|old| old == name)) {
            return Err(Error::Unsupported {
                what: "creating a chain with the old name of a chain that the same change \
                       renames",
                backend: crate::iptables::Backend::Nft,
            });
        }
        Ok(())
    }

    /// Like [`chain`](Self::chain); fails if the chain is known to be absent.
    fn existing(&mut self, table: usize, name: &BStr) -> Result<&mut ChainState, Error> {
        if self.chain(table, name).exists == Some(false) {
            return Err(self.no_such_chain(table, name));
        }
        Ok(self.chain(table, name))
    }

    /// Reads the rules of a chain, if they are unknown.
    fn load(&mut self, table: usize, name: &BStr) -> Result<&mut Vec<Slot>, Error> {
        match self.existing(table, name)?.rules {
            Rules::Known(_) => {}
            Rules::Untracked => {
                self.wants_tracking = true;
                return Err(Error::Contended { attempts: 0 });
            }
            Rules::Unread => {
                self.guard()?;
                let slots = self.read_rules(table, name)?;
                if slots.is_empty() && !self.has_chain(table, name)? {
                    return Err(self.no_such_chain(table, name));
                }
                self.chain(table, name).rules = Rules::Known(slots);
            }
        }
        match &mut self.chain(table, name).rules {
            Rules::Known(slots) => Ok(slots),
            _ => Err(Error::Contended { attempts: 0 }), // impossible: they were read
        }
    }

    fn read_rules(&mut self, table: usize, name: &BStr) -> Result<Vec<Slot>, Error> {
        let kernel_name = self.object(table, name).name.unwrap_or_default();
        let state = &self.tables[table];
        let mut slots = Vec::new();
        let filter = RuleFilter::chain(state.family.into(), &state.name, &*kernel_name);
        let Some(connection) = &mut self.connection else {
            return Ok(slots);
        };
        let listed = connection.rules(filter)?.for_each(|rule| {
            let mut entry = meaning(&(&rule).into());
            if state.renamed
                && let Ok(entry) = &mut entry
                && let Some(to) = entry.rule.jump_chain_mut()
            {
                let mut chains = state.chains.iter();
                let renamed = chains.find(|(_, chain)| chain.old_name.as_ref() == Some(to));
                if let Some((name, _)) = renamed {
                    to.clone_from(name);
                }
            }
            slots.push(Slot::Existing {
                handle: rule.handle(),
                at: slots.len() as u32,
                entry: Box::new(entry),
            });
        });
        self.check_dump(listed)?;
        Ok(slots)
    }

    /// Prepares to change the rules of a chain: reads them if all rules are tracked.
    fn before_change(&mut self, table: usize, name: &BStr) -> Result<(), Error> {
        self.existing(table, name)?;
        self.prepare(table, name)?;
        if self.tracking {
            self.load(table, name)?;
        }
        Ok(())
    }

    /// Encodes the rule, with an id if rules are tracked.
    fn encode(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        counters: Counters,
    ) -> Result<nft::Rule<'static>, Error> {
        if let Target::Jump(to) | Target::Goto(to) = &rule.target {
            // If it is unknown whether the chain exists, the kernel checks it.
            let state = &self.tables[table];
            let known = state.chains.get(to.as_bstr()).map(|chain| chain.exists);
            if builtin_chain(&state.name, to.as_bstr()).is_some() {
                return Err(Error::Builtin {
                    table: state.name.clone(),
                    chain: to.clone(),
                });
            }
            if known == Some(Some(false)) || (known.is_none() && state.cleared) {
                return Err(self.no_such_chain(table, to.as_bstr()));
            }
        }
        let state = &self.tables[table];
        let old_name = |name: &BStr| {
            let renamed = state.chains.get(name)?.old_name.as_ref()?;
            Some(renamed.clone())
        };
        let in_kernel = old_name(chain).unwrap_or_else(|| chain.to_owned());
        let mut encoded = nft::Rule::new(state.family.into(), state.name.clone(), in_kernel);
        let encoder = Encoder {
            family: state.family,
            profile: self.profile,
        };
        let to = match &rule.target {
            Target::Jump(to) => old_name(to.as_bstr()).map(Target::Jump),
            Target::Goto(to) => old_name(to.as_bstr()).map(Target::Goto),
            _ => None,
        };
        match to {
            None => encoder.fill(&mut encoded, rule, counters)?,
            Some(target) => {
                let rule = Rule {
                    target,
                    ..rule.clone()
                };
                encoder.fill(&mut encoded, &rule, counters)?;
            }
        }
        if self.tracking {
            self.numbered += 1;
            encoded.id = Some(self.numbered);
        }
        Ok(encoded)
    }

    /// Inserts a rule at this position, or appends it.
    fn put(
        &mut self,
        table: usize,
        chain: &BStr,
        position: Option<usize>,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        self.before_jump(table, chain, rule)?;
        let before = match position {
            None | Some(0) => None,
            Some(position) => Some(self.reference_at(table, chain, position)?),
        };
        let mut encoded = self.encode(table, chain, rule, counters)?;
        let is_deferred = self.chain(table, chain).is_deferred();
        if !is_deferred {
            if let Some(before) = before {
                (encoded.position, encoded.position_id) = (before.handle, before.id);
            }
            match position {
                Some(_) => self.transaction.insert(&encoded)?,
                None => self.transaction.add(&encoded)?,
            };
        }
        self.record_rule(table, chain, position, encoded, rule, counters);
        Ok(())
    }

    /// Prepares to add a rule: writes the held rules before a jump, so that the kernel attributes a loop to the line
    /// that closes it.
    fn before_jump(&mut self, table: usize, chain: &BStr, rule: &Rule) -> Result<(), Error> {
        match self.chain(table, chain).is_deferred() {
            false if rule.jump_chain().is_some() => self.write_deferred(),
            _ => Ok(()),
        }
    }

    /// Records a rule that was added to a chain, at a position or at the end.
    fn record_rule(
        &mut self,
        table: usize,
        chain: &BStr,
        position: Option<usize>,
        encoded: nft::Rule<'static>,
        rule: &Rule,
        counters: Counters,
    ) {
        let is_deferred = self.chain(table, chain).is_deferred();
        let (tracking, id, line) = (self.tracking, self.numbered, self.line);
        let rules = &mut self.chain(table, chain).rules;
        match rules {
            Rules::Known(slots) if tracking || is_deferred => {
                let rule = rule.clone();
                let entry = Box::new(Ok(Entry { rule, counters }));
                let position = position.unwrap_or(slots.len()).min(slots.len());
                let slot = match is_deferred {
                    true => Slot::Deferred {
                        rule: Box::new(encoded),
                        line,
                        entry,
                    },
                    false => Slot::New { id, entry },
                };
                slots.insert(position, slot);
            }
            _ => *rules = Rules::Untracked,
        }
        self.note_lines();
    }

    /// Returns an object that only identifies the rule in this slot.
    fn named(&self, table: usize, chain: &BStr, slot: &Slot) -> nft::Rule<'static> {
        let state = &self.tables[table];
        let old_name = state
            .chains
            .get(chain)
            .and_then(|chain| chain.old_name.clone());
        let name = old_name.unwrap_or_else(|| chain.to_owned());
        let mut rule = nft::Rule::new(state.family.into(), state.name.clone(), name);
        match slot {
            Slot::Existing { handle, .. } => rule.handle = Some(*handle),
            Slot::New { id, .. } => rule.id = Some(*id),
            Slot::Deferred { .. } => {} // nothing refers to it
        }
        rule
    }

    /// Identifies the rule at this position. Once so many rules were identified that rewriting the chain is
    /// cheaper for the kernel, its rules are held from here on, and operations need no references.
    fn reference_at(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
    ) -> Result<nft::Rule<'static>, Error> {
        let name = self.tables[table].name.clone();
        let slots = self.load(table, chain)?;
        if position >= slots.len() {
            return Err(Error::NoSuchNumber {
                table: name,
                chain: chain.to_owned(),
                number: position.saturating_add(1),
                rules: slots.len(),
            });
        }
        let passed = match slots[position] {
            // Deleted rules are stepped over, too, until the commit.
            Slot::Existing { at, .. } => position.max(at as usize),
            // The kernel searches the operations.
            Slot::New { id, .. } => id as usize,
            Slot::Deferred { .. } => 0,
        };
        let rules = slots.len();
        if let Some(all) = &mut self.chain(table, chain).passed {
            *all = all.saturating_add(passed);
            if is_cheaper_to_recreate(*all, rules) {
                self.defer_rules(table, chain)?;
            }
        }
        match self.tables[table]
            .chains
            .get(chain)
            .map(|chain| &chain.rules)
        {
            Some(Rules::Known(slots)) => Ok(self.named(table, chain, &slots[position])),
            _ => Err(Error::Contended { attempts: 0 }), // impossible: they were read
        }
    }

    /// Returns the chain as an object of the transaction.
    fn object(&self, table: usize, chain: &BStr) -> Chain<'static> {
        let state = &self.tables[table];
        let old_name = state
            .chains
            .get(chain)
            .and_then(|chain| chain.old_name.clone());
        let name = old_name.unwrap_or_else(|| chain.to_owned());
        Chain::new(state.family.into(), state.name.clone(), name)
    }
}

/// Returns the built-in chain of that name.
fn builtin_chain(table: &str, chain: &BStr) -> Option<Builtin> {
    builtin(table, chain.to_str().ok()?)
}
