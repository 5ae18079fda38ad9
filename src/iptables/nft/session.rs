//! Tables of nf_tables that are being changed: operations of one transaction.
//!
//! What is asked for is put into the transaction at once. Chains are read only when what is in them
//! must be known: to find a rule, to count them, to insert behind the head. The commit is then
//! conditional on what was read: in a first attempt on the ruleset's generation, from the second one on
//! only on these tables.

mod edit;

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Encoder, Profile, meaning};
use crate::iptables::edit::Editor;
use crate::iptables::{Builtin, Counters, Entry, Error, NotExpressible, Rule, Target, builtin};
use crate::netlink;
use crate::nft::{self, Chain, Connection, Guard, RuleFilter, Scope, Transaction, is_cheaper_anew};
use crate::retry::Attempts;
use crate::xt::Family;

/// Tables that are being changed.
pub(in crate::iptables) struct Session<'c> {
    connection: &'c mut Connection,
    transaction: Transaction,
    profile: Profile,
    tables: Vec<Table>,
    attempts: &'c Attempts,
    /// Whether errors suggest names, for which names of chains are read.
    pub(in crate::iptables) hints: bool,
    /// Watches over what was read, if anything was.
    guard: Option<Guard>,
    /// Whether new rules are remembered, so that they can be found again.
    tracking: bool,
    /// Whether something could not be done because they were not.
    wants_tracking: bool,
    /// For each operation the line that asked for it.
    lines: Vec<u32>,
    line: u32,
    /// How many rules have been given numbers to be referred to by.
    numbered: u32,
    /// Whether the rules of some chain are held.
    is_holding: bool,
}

/// A change that is to be sent.
pub(in crate::iptables) struct Finished<'c> {
    pub(in crate::iptables) connection: &'c mut Connection,
    pub(in crate::iptables) transaction: Transaction,
    /// Watches over what was read for it, if anything was.
    pub(in crate::iptables) guard: Option<Guard>,
    /// For each of its operations the line that asked for it.
    pub(in crate::iptables) lines: Vec<u32>,
}

struct Table {
    family: Family,
    name: String,
    /// Whether the transaction makes sure of the table.
    added: bool,
    /// Whether no chain has a rule that is not in `chains`.
    flushed: bool,
    /// Whether no chain is there that is not in `chains`.
    cleared: bool,
    /// Whether a chain was renamed.
    renamed: bool,
    chains: HashMap<BString, ChainState>,
}

/// What is known of a chain.
struct ChainState {
    /// Whether it is there; `None` if that is not known.
    exists: Option<bool>,
    /// Its name in the kernel until everything is committed, if it was renamed.
    old_name: Option<BString>,
    /// If it is built in: whether the transaction makes sure of it.
    added: bool,
    /// How many rules the kernel passes, looking for those that operations name; `None` once the chain was to be written
    /// anew for that.
    passed: Option<usize>,
    rules: Rules,
}

impl ChainState {
    /// Of a chain of which nothing was written and no rule is known to be there.
    const fn without_rules(exists: Option<bool>) -> Self {
        Self {
            exists,
            old_name: None,
            added: false,
            passed: Some(0),
            rules: Rules::Known(Vec::new()),
        }
    }

    /// Whether its rules are written when all changes of it are known; until then the transaction empties it.
    fn is_held(&self) -> bool {
        matches!(&self.rules, Rules::Known(slots) if matches!(slots.first(), Some(Slot::Held { .. })))
    }
}

/// What is known of a chain's rules.
enum Rules {
    /// What the kernel has.
    Unread,
    /// More or other than the kernel has, and not remembered.
    Untracked,
    Known(Vec<Slot>),
}

/// A rule of a chain: held if any of the chain is.
enum Slot {
    Kept {
        handle: u64,
        /// Where it stands in the kernel.
        at: u32,
        entry: Box<Result<Entry, NotExpressible>>,
    },
    New {
        id: u32,
        /// What iptables has no words for is one of the kernel's.
        entry: Box<Result<Entry, NotExpressible>>,
    },
    Held {
        rule: Box<nft::Rule<'static>>,
        /// Which line asked for it.
        line: u32,
        entry: Box<Result<Entry, NotExpressible>>,
    },
}

impl Slot {
    const fn entry(&self) -> &Result<Entry, NotExpressible> {
        let (Self::Kept { entry, .. } | Self::New { entry, .. } | Self::Held { entry, .. }) = self;
        entry
    }

    const fn entry_mut(&mut self) -> &mut Result<Entry, NotExpressible> {
        let (Self::Kept { entry, .. } | Self::New { entry, .. } | Self::Held { entry, .. }) = self;
        entry
    }
}

impl<'c> Session<'c> {
    pub(in crate::iptables) fn new(
        connection: &'c mut Connection,
        profile: Profile,
        tables: &[(Family, String)],
        tracking: bool,
        attempts: &'c Attempts,
    ) -> Self {
        let tables = tables.iter().map(|(family, name)| Table {
            family: *family,
            name: name.clone(),
            added: false,
            flushed: false,
            cleared: false,
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
            is_holding: false,
        }
    }

    /// Whether all must be begun again, with new rules remembered.
    pub(in crate::iptables) const fn wants_tracking(&self) -> bool {
        self.wants_tracking && !self.tracking
    }

    /// Whether nothing is to be changed.
    pub(in crate::iptables) const fn is_empty(&self) -> bool {
        self.transaction.is_empty()
    }

    /// The transaction, and what is needed to send it.
    pub(in crate::iptables) fn finish(mut self) -> Result<Finished<'c>, Error> {
        self.write_held()?;
        Ok(Finished {
            connection: self.connection,
            transaction: self.transaction,
            guard: self.guard,
            lines: self.lines,
        })
    }

    /// Says which line asked for the operations since the last call.
    fn note_lines(&mut self) {
        self.lines.resize(self.transaction.len(), self.line);
    }

    /// What is read from here on is so when it is committed, or the commit fails.
    fn guard(&mut self) -> Result<(), Error> {
        if self.guard.is_none() {
            let tables = self.tables.iter();
            let scopes: Vec<_> = tables
                .map(|table| Scope::table(table.family.into(), &table.name))
                .collect();
            let guard = self.connection.guard_of_attempt(self.attempts, &scopes)?;
            self.guard = Some(guard);
        }
        Ok(())
    }

    /// What came of listing rules of one of the tables.
    fn dumped(&self, ended: Result<(), netlink::Error>) -> Result<(), netlink::Error> {
        match &self.guard {
            Some(guard) => guard.dumped(ended),
            None => ended,
        }
    }

    /// Makes sure of the table.
    fn add_table(&mut self, table: usize) -> Result<(), Error> {
        let state = &mut self.tables[table];
        if !state.added {
            let object = nft::Table::new(state.family.into(), state.name.as_str());
            self.transaction.add(&object)?;
            state.added = true;
        }
        Ok(())
    }

    /// The state of a chain.
    fn chain(&mut self, table: usize, name: &BStr) -> &mut ChainState {
        let state = &mut self.tables[table];
        state.chains.entry(name.to_owned()).or_insert_with(|| {
            let is_builtin = hooked(&state.name, name).is_some();
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

    /// Before a chain is written to: makes sure of its table, and, if it is built in, of it. What is
    /// only read stays as it is.
    fn prepare(&mut self, table: usize, name: &BStr) -> Result<(), Error> {
        self.add_table(table)?;
        if let Some(builtin) = hooked(&self.tables[table].name, name)
            && !self.chain(table, name).added
        {
            // Without a policy, so that one that is there keeps its own.
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

    /// That there is no such chain, and which may have been meant.
    fn no_such_chain(&mut self, table: usize, name: &BStr) -> Error {
        // It is only about the message.
        let names = match self.hints {
            true => self.chains(table).unwrap_or_default(),
            false => Vec::new(),
        };
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let table = &self.tables[table].name;
        Error::no_such_chain(table, name, names.iter().map(String::as_str))
    }

    /// Whether what was read is so no longer.
    pub(in crate::iptables) fn is_stale(&mut self) -> bool {
        let guard = self.guard.as_mut();
        guard.is_some_and(|guard| guard.holds(self.connection).is_ok_and(|holds| !holds))
    }

    /// The kernel goes by the names that chains had before the change: one of these is not free.
    fn not_renamed(&self, table: usize, name: &BStr) -> Result<(), Error> {
        let table = &self.tables[table];
        if !table.renamed {
            return Ok(());
        }
        let mut chains = table.chains.values();
        if chains.any(|chain| chain.old_name.as_ref().is_some_and(|old| old == name)) {
            return Err(Error::Unsupported {
                what: "making a chain of the name that another had, in the same change that renames \
                       that",
                backend: crate::iptables::Backend::Nft,
            });
        }
        Ok(())
    }

    /// As [`chain`](Self::chain); the chain must not be known to be absent.
    fn existing(&mut self, table: usize, name: &BStr) -> Result<&mut ChainState, Error> {
        if self.chain(table, name).exists == Some(false) {
            return Err(self.no_such_chain(table, name));
        }
        Ok(self.chain(table, name))
    }

    /// Reads the rules of a chain, if they are not known.
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
            _ => Err(Error::Contended { attempts: 0 }), // cannot be: they were read
        }
    }

    fn read_rules(&mut self, table: usize, name: &BStr) -> Result<Vec<Slot>, Error> {
        let kernel_name = self.object(table, name).name.unwrap_or_default();
        let state = &self.tables[table];
        let mut slots = Vec::new();
        let filter = RuleFilter::chain(state.family.into(), &state.name, &*kernel_name);
        let listed = self.connection.rules(filter)?.for_each(|rule| {
            let mut entry = meaning(&(&rule).into());
            if state.renamed
                && let Ok(entry) = &mut entry
                && let Some(to) = entry.rule.leads_to_mut()
            {
                let mut chains = state.chains.iter();
                let renamed = chains.find(|(_, chain)| chain.old_name.as_ref() == Some(to));
                if let Some((name, _)) = renamed {
                    to.clone_from(name);
                }
            }
            slots.push(Slot::Kept {
                handle: rule.handle(),
                at: slots.len() as u32,
                entry: Box::new(entry),
            });
        });
        self.dumped(listed)?;
        Ok(slots)
    }

    /// Before the rules of a chain are changed: reads them if all is to be remembered.
    fn before_change(&mut self, table: usize, name: &BStr) -> Result<(), Error> {
        self.existing(table, name)?;
        self.prepare(table, name)?;
        if self.tracking {
            self.load(table, name)?;
        }
        Ok(())
    }

    /// The rule encoded, with a number to refer to it by if rules are remembered.
    fn encode(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        counters: Counters,
    ) -> Result<nft::Rule<'static>, Error> {
        if let Target::Jump(to) | Target::Goto(to) = &rule.target {
            // Of what is not known, the kernel says whether it is there.
            let state = &self.tables[table];
            let known = state.chains.get(to.as_bstr()).map(|chain| chain.exists);
            if hooked(&state.name, to.as_bstr()).is_some() {
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

    /// Puts a rule into this place, or behind the others.
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
            Some(position) => Some(self.named_at(table, chain, position)?),
        };
        let mut encoded = self.encode(table, chain, rule, counters)?;
        let is_held = self.chain(table, chain).is_held();
        if !is_held {
            if let Some(before) = before {
                (encoded.position, encoded.position_id) = (before.handle, before.id);
            }
            match position {
                Some(_) => self.transaction.insert(&encoded)?,
                None => self.transaction.add(&encoded)?,
            };
        }
        self.remember(table, chain, position, encoded, rule, counters);
        Ok(())
    }

    /// Before a rule is put in: where it leads to a chain, the kernel must see it behind those that are held, to blame a
    /// loop on the line that closes it.
    fn before_jump(&mut self, table: usize, chain: &BStr, rule: &Rule) -> Result<(), Error> {
        match self.chain(table, chain).is_held() {
            false if rule.leads_to().is_some() => self.write_held(),
            _ => Ok(()),
        }
    }

    /// Notes a rule that was put into a chain, at a position or at the end.
    fn remember(
        &mut self,
        table: usize,
        chain: &BStr,
        position: Option<usize>,
        encoded: nft::Rule<'static>,
        rule: &Rule,
        counters: Counters,
    ) {
        let is_held = self.chain(table, chain).is_held();
        let (tracking, id, line) = (self.tracking, self.numbered, self.line);
        let rules = &mut self.chain(table, chain).rules;
        match rules {
            Rules::Known(slots) if tracking || is_held => {
                let rule = rule.clone();
                let entry = Box::new(Ok(Entry { rule, counters }));
                let position = position.unwrap_or(slots.len()).min(slots.len());
                let slot = match is_held {
                    true => Slot::Held {
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

    /// A rule that only names the one in this slot.
    fn named(&self, table: usize, chain: &BStr, slot: &Slot) -> nft::Rule<'static> {
        let state = &self.tables[table];
        let old_name = state
            .chains
            .get(chain)
            .and_then(|chain| chain.old_name.clone());
        let name = old_name.unwrap_or_else(|| chain.to_owned());
        let mut rule = nft::Rule::new(state.family.into(), state.name.clone(), name);
        match slot {
            Slot::Kept { handle, .. } => rule.handle = Some(*handle),
            Slot::New { id, .. } => rule.id = Some(*id),
            Slot::Held { .. } => {} // nothing names it
        }
        rule
    }

    /// The name of the rule in this place. Where so many were named that it takes the kernel less to have all rules of the
    /// chain written anew, they are held from here on, and no operation need name one.
    fn named_at(
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
            // Those that were taken out are passed, too, until the commit.
            Slot::Kept { at, .. } => position.max(at as usize),
            // The kernel looks through the operations.
            Slot::New { id, .. } => id as usize,
            Slot::Held { .. } => 0,
        };
        let rules = slots.len();
        if let Some(all) = &mut self.chain(table, chain).passed {
            *all = all.saturating_add(passed);
            if is_cheaper_anew(*all, rules) {
                self.hold(table, chain)?;
            }
        }
        match self.tables[table]
            .chains
            .get(chain)
            .map(|chain| &chain.rules)
        {
            Some(Rules::Known(slots)) => Ok(self.named(table, chain, &slots[position])),
            _ => Err(Error::Contended { attempts: 0 }), // cannot be: they were read
        }
    }

    /// The chain as an object of the transaction.
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

/// The built-in chain of that name.
fn hooked(table: &str, chain: &BStr) -> Option<Builtin> {
    builtin(table, chain.to_str().ok()?)
}
