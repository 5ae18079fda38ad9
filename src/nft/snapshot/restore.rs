//! Writing a snapshot back: one transaction that replaces what is there.
//!
//! Every message of the snapshot becomes an operation with the same attributes, byte for byte, but for
//! those that only the kernel gives (handles, numbers of references, a rule's position, a table's
//! owner) and these:
//!
//! - `NFTA_SET_ID`, which the kernel wants of every new set;
//! - `NFTA_RULE_COMPAT`, which it does not list ([`Compat::of`]);
//! - attributes of expressions that the kernel lists but does not take
//!   ([`ExpressionRef::to_request`](crate::nft::expr::ExpressionRef::to_request));
//! - ends of ranges whose starts have timed out: the kernel lists them and does not take them.
//!
//! Objects come before what refers to them: tables, stateful objects, flowtables, chains, sets,
//! elements, rules.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE};
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFT_OBJECT_QUOTA, NFT_SET_CONCAT,
    NFT_SET_ELEM_INTERVAL_END, NFT_SET_EVAL, NFT_SET_EXPR, NFT_SET_INTERVAL, NFT_SET_TIMEOUT,
    NFTA_CHAIN_HANDLE, NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_CHAIN_USE, NFTA_FLOWTABLE_HANDLE,
    NFTA_FLOWTABLE_USE, NFTA_OBJ_DATA, NFTA_OBJ_HANDLE, NFTA_OBJ_TYPE, NFTA_OBJ_USE,
    NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT, NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE,
    NFTA_RULE_POSITION, NFTA_SET_COUNT, NFTA_SET_ELEM_EXPIRATION, NFTA_SET_ELEM_EXPR,
    NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS, NFTA_SET_ELEM_LIST_ELEMENTS,
    NFTA_SET_ELEM_TIMEOUT, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS, NFTA_SET_FLAGS, NFTA_SET_HANDLE,
    NFTA_SET_ID, NFTA_SET_TYPE, NFTA_TABLE_FLAGS, NFTA_TABLE_HANDLE, NFTA_TABLE_OWNER,
    NFTA_TABLE_USE,
};

use super::Snapshot;
use super::index::{SetIndex, TableIndex, chain_at, table_at};
use crate::Error;
use crate::arena::Position;
use crate::netlink::{self, Attribute, Attributes, MessageWriter, TooLong};
use crate::nft::connection::Connection;
use crate::nft::declare::Field;
use crate::nft::expr::{Data, Decoded, Expressions, Immediate, NestedExpression, Quota, Verdict};
use crate::nft::transaction::Transaction;
use crate::nft::{ChainFlags, Compat, ElementRef, ElementsRef, Family, RuleRef, Table, TableFlags};

/// How often a restoration is begun again when somebody else changes the ruleset in between.
const ATTEMPTS: usize = 16;

/// Flags of a set of ranges that pass.
const PASSING_RANGES: u32 = NFT_SET_INTERVAL | NFT_SET_TIMEOUT;

/// What a restoration left as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Tables that another process owns: nobody else can change them.
    pub owned_by_others: Vec<(Family, BString)>,
    /// Tables that were owned without `persist`: they are there again, and owned by nobody. (With the
    /// flag they would go as soon as this process's socket is closed.)
    pub no_longer_owned: Vec<(Family, BString)>,
}

impl Snapshot {
    /// Makes the ruleset, or the family or table that the snapshot was taken of, what the snapshot
    /// shows: one transaction, applied whole or not at all; tables that the snapshot's scope covers and
    /// that are not in it go.
    ///
    /// Byte for byte the same but for handles. Counters and quotas go on from the snapshot's numbers,
    /// elements with a timeout from the rest that they had. What the kernel does not list it cannot be
    /// given again: the fill of a `limit`, the connections that a `connlimit` counted, the state of a
    /// `numgen inc`.
    ///
    /// The transaction is conditional on the generation: if somebody else changes the ruleset while it
    /// is being prepared it is prepared anew, up to 16 times.
    ///
    /// # Errors
    /// [`Error::Commit`], [`Error::TooLong`] and those of a listing; nothing was changed then, except
    /// where a [`CommitError`](crate::nft::CommitError) says that it cannot be known.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = self.byte_length()))]
    pub fn restore(&self, connection: &mut Connection) -> Result<Restored, Error> {
        let mut tx = Transaction::with_capacity(self.byte_length());
        for attempt in 1.. {
            tx.clear();
            let generation = connection.generation()?;
            let mut restored = Restored::default();
            let mut closed = HashSet::new();
            let port = connection.socket.port()?;
            let tables = connection.list::<Table<'_>>(self.scope().clone())?;
            let mut present = Vec::new();
            let listed = tables.for_each(|table| {
                let key = (table.family(), table.name().to_owned());
                match table.owner() {
                    Some(owner) if owner != port => _ = closed.insert(key),
                    _ => present.push(key),
                }
            });
            match listed {
                Err(netlink::Error::Interrupted) if attempt < ATTEMPTS => continue,
                listed => listed?,
            }
            for (family, name) in &present {
                tx.delete(&Table::new(*family, name.as_bytes()))?;
            }
            self.append(&mut tx, &closed, &mut restored)?;
            restored.owned_by_others = closed.into_iter().collect();
            restored.owned_by_others.sort();
            tx.expect_generation(generation);
            match connection.commit(&mut tx) {
                Ok(_) => return Ok(restored),
                Err(error) if error.generation_moved() && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
        unreachable!("invariant: the last attempt returns")
    }

    /// Appends the operations that make the snapshot's tables, none of which may be there, to a
    /// transaction: the part of [`restore`](Self::restore) that a caller may want to combine with
    /// others.
    ///
    /// # Errors
    /// [`TooLong`]; cannot happen with what a kernel sent.
    pub fn write_to(&self, tx: &mut Transaction) -> Result<(), TooLong> {
        self.append(tx, &HashSet::new(), &mut Restored::default())
    }

    fn append(
        &self,
        tx: &mut Transaction,
        left_out: &HashSet<(Family, BString)>,
        restored: &mut Restored,
    ) -> Result<(), TooLong> {
        let arena = &self.arena;
        let tables = || {
            self.index.tables.iter().filter(|index| {
                table_at(arena, index.at).is_ok_and(|table| {
                    let key = (table.family(), table.name().to_owned());
                    !left_out.contains(&key)
                })
            })
        };
        for table in tables() {
            self.write_table(tx, table.at, restored)?;
        }
        let (mut set_id, mut chain_id) = (0, 0);
        for table in tables() {
            for &object in &table.objects {
                let without = &[NFTA_OBJ_HANDLE, NFTA_OBJ_USE];
                match self.used_up(object) {
                    None => self.copy(tx, NFT_MSG_NEWOBJ, object, without, |_| {})?,
                    Some(quota) => {
                        let without = &[NFTA_OBJ_HANDLE, NFTA_OBJ_USE, NFTA_OBJ_DATA];
                        self.copy(tx, NFT_MSG_NEWOBJ, object, without, |writer| {
                            quota.encode(writer, NFTA_OBJ_DATA);
                        })?;
                    }
                }
            }
            for &flowtable in &table.flowtables {
                let without = &[NFTA_FLOWTABLE_HANDLE, NFTA_FLOWTABLE_USE];
                self.copy(tx, NFT_MSG_NEWFLOWTABLE, flowtable, without, |_| {})?;
            }
            let bound = self.bound_chains(table, &mut chain_id);
            for chain in &table.chains {
                self.write_chain(tx, chain.at, &bound)?;
            }
            for set in &table.sets {
                set_id += 1;
                self.write_set(tx, set.at, set_id)?;
            }
            for set in &table.sets {
                let differs = self.differs(set.at);
                let lone_ends = self.lone_ends(set);
                for &elements in &set.elements {
                    match differs {
                        false => self.copy(tx, NFT_MSG_NEWSETELEM, elements, &[], |_| {})?,
                        true => self.write_elements(tx, elements, &lone_ends)?,
                    }
                }
            }
            // A bound chain takes no more rules when the one that jumps to it is there.
            for first in [true, false] {
                let chains = table.chains.iter();
                for chain in chains.filter(|chain| self.is_bound(chain.at) == first) {
                    for &rule in &chain.rules {
                        self.write_rule(tx, rule, &bound)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_bound(&self, at: Position) -> bool {
        let flags = chain_at(&self.arena, at)
            .ok()
            .and_then(|chain| chain.flags());
        flags.is_some_and(|flags| flags.contains(ChainFlags::BINDING))
    }

    /// The chains of a table that are bound to a rule and cannot have their names again, and the
    /// numbers that stand for them in the transaction.
    ///
    /// The kernel calls them `__chain%d`, numbered since its start. In the same boot that name is free
    /// once the chain is gone; in another one it may be that of a chain to come, so there the kernel is
    /// to give a new one.
    fn bound_chains(&self, table: &TableIndex, id: &mut u32) -> HashMap<&BStr, u32> {
        if self.is_of_this_boot() {
            return HashMap::new();
        }
        let bound = table.chains.iter().filter(|chain| self.is_bound(chain.at));
        bound
            .filter_map(|chain| {
                *id += 1;
                Some((chain_at(&self.arena, chain.at).ok()?.name(), *id))
            })
            .collect()
    }

    fn is_of_this_boot(&self) -> bool {
        #[cfg(feature = "backup")]
        if let Some(provenance) = &self.provenance {
            return provenance.boot != [0; 16] && provenance.boot == super::file::boot();
        }
        true
    }

    fn write_chain(
        &self,
        tx: &mut Transaction,
        at: Position,
        bound: &HashMap<&BStr, u32>,
    ) -> Result<(), TooLong> {
        let mut without = vec![NFTA_CHAIN_HANDLE, NFTA_CHAIN_USE];
        let chain = chain_at(&self.arena, at).ok();
        let id = chain.and_then(|chain| bound.get(chain.name()).copied());
        if id.is_some() {
            without.push(NFTA_CHAIN_NAME);
        }
        self.copy(tx, NFT_MSG_NEWCHAIN, at, &without, |writer| {
            if let Some(id) = id {
                writer.be32(NFTA_CHAIN_ID, id);
            }
        })
    }

    /// Appends an operation with the attributes of the message at a position.
    fn copy(
        &self,
        tx: &mut Transaction,
        message: u8,
        at: Position,
        without: &[u16],
        more: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<(), TooLong> {
        let (family, attributes) = self.parts(at);
        tx.operation(message, NLM_F_CREATE, family, |writer| {
            copy_attributes(writer, attributes, without);
            more(writer);
        })?;
        Ok(())
    }

    /// The family and the attributes of the message at a position.
    fn parts(&self, at: Position) -> (Family, &[u8]) {
        match self.message(at).nfgenmsg() {
            Ok((header, attributes)) => (Family(header.family), attributes),
            Err(_) => (Family::UNSPEC, &[]), // not in the index then
        }
    }

    fn write_table(
        &self,
        tx: &mut Transaction,
        at: Position,
        restored: &mut Restored,
    ) -> Result<(), TooLong> {
        let (family, attributes) = self.parts(at);
        let mut without = vec![NFTA_TABLE_HANDLE, NFTA_TABLE_USE, NFTA_TABLE_OWNER];
        let mut flags = None;
        if let Ok(table) = table_at(&self.arena, at) {
            let listed = table.flags().unwrap_or_default();
            if listed.contains(TableFlags::OWNER) && !listed.contains(TableFlags::PERSIST) {
                let key = (family, table.name().to_owned());
                restored.no_longer_owned.push(key);
                without.push(NFTA_TABLE_FLAGS);
                flags = Some(listed - TableFlags::OWNER);
            }
        }
        tx.operation(NFT_MSG_NEWTABLE, NLM_F_CREATE, family, |writer| {
            copy_attributes(writer, attributes, &without);
            if let Some(flags) = flags {
                flags.encode(writer, NFTA_TABLE_FLAGS);
            }
        })?;
        Ok(())
    }

    fn write_set(&self, tx: &mut Transaction, at: Position, id: u32) -> Result<(), TooLong> {
        let (family, attributes) = self.parts(at);
        tx.operation(NFT_MSG_NEWSET, NLM_F_CREATE, family, |writer| {
            for attribute in Attributes::new(attributes).map_while(Result::ok) {
                match attribute.kind {
                    NFTA_SET_HANDLE | NFTA_SET_TYPE | NFTA_SET_COUNT => {}
                    _ => copy_with_expressions(
                        writer,
                        &attribute,
                        NFTA_SET_EXPR,
                        NFTA_SET_EXPRESSIONS,
                    ),
                }
            }
            writer.be32(NFTA_SET_ID, id);
        })?;
        Ok(())
    }

    fn set_flags(&self, at: Position) -> u32 {
        let flags = Attributes::new(self.parts(at).1).find(NFTA_SET_FLAGS);
        flags.and_then(u32::decode).unwrap_or(0)
    }

    /// Whether elements of a set may be listed in another way than the kernel takes them.
    fn differs(&self, at: Position) -> bool {
        let attributes = Attributes::new(self.parts(at).1);
        let flags = self.set_flags(at);
        flags & (NFT_SET_EVAL | NFT_SET_EXPR) != 0
            || flags & PASSING_RANGES == PASSING_RANGES
            || attributes.clone().find(NFTA_SET_EXPR).is_some()
            || attributes.clone().find(NFTA_SET_EXPRESSIONS).is_some()
    }

    /// The ends of ranges whose starts have timed out. Those the kernel does not list any more, but it
    /// does list the ends, until it collects both at the next change of the set; and it refuses an end
    /// behind another one.
    fn lone_ends(&self, set: &SetIndex) -> HashSet<&[u8]> {
        let flags = self.set_flags(set.at);
        if flags & PASSING_RANGES != PASSING_RANGES || flags & NFT_SET_CONCAT != 0 {
            return HashSet::new();
        }
        // Ends before starts: one range may begin where another one ends.
        let mut keys = Vec::new();
        for &at in &set.elements {
            let elements = ElementsRef::parse(&self.message(at)).ok();
            let elements = elements.and_then(|elements| elements.elements());
            for element in elements.into_iter().flatten().flatten() {
                keys.extend(
                    element
                        .key_bytes()
                        .map(|key| (key, !element.is_interval_end())),
                );
            }
        }
        keys.sort_unstable();
        let mut lone = HashSet::new();
        let mut behind_start = false;
        for (key, is_start) in keys {
            // What is below the first range ends at 0, without a start.
            if !is_start && !behind_start && key.iter().any(|&byte| byte != 0) {
                lone.insert(key);
            }
            behind_start = is_start;
        }
        lone
    }

    /// Writes elements as the kernel takes them: expressions as [above](copy_with_expressions), and the
    /// end of an interval without the timeout of 0 with which it is listed (Linux 6.18).
    fn write_elements(
        &self,
        tx: &mut Transaction,
        at: Position,
        lone_ends: &HashSet<&[u8]>,
    ) -> Result<(), TooLong> {
        let is_lone_end = |element: &[u8]| {
            !lone_ends.is_empty()
                && ElementRef::parse(element).is_ok_and(|element| {
                    element.is_interval_end()
                        && element
                            .key_bytes()
                            .is_some_and(|key| lone_ends.contains(key))
                })
        };
        let (family, attributes) = self.parts(at);
        tx.operation(NFT_MSG_NEWSETELEM, NLM_F_CREATE, family, |writer| {
            for attribute in Attributes::new(attributes).map_while(Result::ok) {
                if attribute.kind != NFTA_SET_ELEM_LIST_ELEMENTS {
                    writer.encoded(attribute.raw);
                    continue;
                }
                writer.nested(attribute.kind, |writer| {
                    for element in Attributes::new(attribute.payload).map_while(Result::ok) {
                        if is_lone_end(element.payload) {
                            continue;
                        }
                        writer.nested(element.kind, |writer| {
                            write_element(writer, element.payload)
                        });
                    }
                });
            }
        })?;
        Ok(())
    }

    /// The quota as the kernel takes it, of an object that is one and not listed so.
    fn used_up(&self, at: Position) -> Option<Quota> {
        let attributes = Attributes::new(self.parts(at).1);
        let object_type: u32 = Field::decode(attributes.clone().find(NFTA_OBJ_TYPE)?)?;
        if object_type != NFT_OBJECT_QUOTA {
            return None;
        }
        let listed = Quota::decode(attributes.find(NFTA_OBJ_DATA)?)?;
        let request = listed.clone().into_request();
        (request != listed).then_some(request)
    }

    fn write_rule(
        &self,
        tx: &mut Transaction,
        at: Position,
        bound: &HashMap<&BStr, u32>,
    ) -> Result<(), TooLong> {
        let message = self.message(at);
        let Ok(rule) = RuleRef::parse(&message) else {
            return Ok(()); // not in the index then
        };
        let (family, attributes) = self.parts(at);
        let compat = Compat::of(&rule);
        let listed = rule.attributes().find(NFTA_RULE_EXPRESSIONS);
        let mut rewritten = listed.and_then(request_of_list);
        let mut without = vec![NFTA_RULE_HANDLE, NFTA_RULE_POSITION];
        let chain_id = bound.get(rule.chain()).copied();
        if chain_id.is_some() {
            without.push(NFTA_RULE_CHAIN);
        }
        if !bound.is_empty() {
            rewritten = Some(by_number(
                rewritten.or(listed.and_then(Expressions::decode)),
                bound,
            ));
        }
        if rewritten.is_some() {
            without.push(NFTA_RULE_EXPRESSIONS);
        }
        let flags = NLM_F_CREATE | NLM_F_APPEND;
        tx.operation(NFT_MSG_NEWRULE, flags, family, |writer| {
            copy_attributes(writer, attributes, &without);
            if let Some(expressions) = rewritten {
                expressions.encode(writer, NFTA_RULE_EXPRESSIONS);
            }
            if let Some(id) = chain_id {
                writer.be32(NFTA_RULE_CHAIN_ID, id);
            }
            if let Some(compat) = compat {
                compat.encode(writer, NFTA_RULE_COMPAT);
            }
        })?;
        Ok(())
    }
}

/// The same expressions, with jumps to these chains by their numbers.
fn by_number(
    expressions: Option<Expressions<'_>>,
    bound: &HashMap<&BStr, u32>,
) -> Expressions<'static> {
    let mut numbered = Expressions::new();
    let expressions = expressions.unwrap_or_default();
    for expression in expressions.iter().map_while(Result::ok) {
        let verdict = match expression.is::<Immediate>().then(|| expression.decode()) {
            Some(Ok(Decoded::Immediate(Immediate {
                data: Some(Data::Verdict(verdict)),
                ..
            }))) => match verdict {
                Verdict::Jump(name) => bound.get(&*name).map(|&id| Verdict::JumpId(id)),
                Verdict::Goto(name) => bound.get(&*name).map(|&id| Verdict::GotoId(id)),
                _ => None,
            },
            _ => None,
        };
        match verdict {
            Some(verdict) => numbered.push(&Immediate::verdict(verdict)),
            None => numbered.push_raw(&expression),
        };
    }
    numbered
}

/// Appends all attributes but some, as they are.
fn copy_attributes(writer: &mut MessageWriter<'_>, attributes: &[u8], without: &[u16]) {
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        if !without.contains(&attribute.kind) {
            writer.encoded(attribute.raw);
        }
    }
}

/// The listed expressions in an attribute as the kernel takes them, if that is not how they were
/// listed.
fn request_of_list(payload: &[u8]) -> Option<Expressions<'static>> {
    Expressions::decode(payload)?.to_request()
}

/// Writes the attributes of an element.
fn write_element(writer: &mut MessageWriter<'_>, attributes: &[u8]) {
    let attributes = Attributes::new(attributes);
    let flags: Option<u32> = attributes
        .clone()
        .find(NFTA_SET_ELEM_FLAGS)
        .and_then(Field::decode);
    let is_end = flags.is_some_and(|flags| flags & NFT_SET_ELEM_INTERVAL_END != 0);
    for part in attributes.map_while(Result::ok) {
        if is_end && matches!(part.kind, NFTA_SET_ELEM_TIMEOUT | NFTA_SET_ELEM_EXPIRATION) {
            continue;
        }
        copy_with_expressions(writer, &part, NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS);
    }
}

/// Appends an attribute that an element or set has; expressions as the kernel takes them.
fn copy_with_expressions(
    writer: &mut MessageWriter<'_>,
    attribute: &Attribute<'_>,
    one: u16,
    list: u16,
) {
    if attribute.kind == list
        && let Some(request) = request_of_list(attribute.payload)
    {
        request.encode(writer, list);
    } else if attribute.kind == one
        && let Some(nested) = <NestedExpression<'_> as Field>::decode(attribute.payload)
        && let Some(request) = nested.get().ok().and_then(|listed| listed.to_request())
    {
        NestedExpression::of_decoded(&request).encode(writer, one);
    } else {
        writer.encoded(attribute.raw);
    }
}
