//! Executes the operations of a transaction on a ruleset: names for ids, values that elements inherit from their set,
//! and the removal of a rule's sets and chains.
//!
//! Each operation checks first and changes afterwards, so that a refused one changes nothing.

mod chain;
mod element;
mod flowtable;
mod object;
mod rule;
mod set;
mod table;

use std::collections::HashMap;

use bstr::BString;
use chainwright_sys::netlink::NLM_F_EXCL;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
};

use super::{Ruleset, RulesetTable};
use crate::errno::Errno;
use crate::netlink::{Malformed, Message};
use crate::nft::commit::CommitError;
use crate::nft::{ElementsRef, Family, Milliseconds, Name, Set, Transaction};

/// Every kernel represents multiples of this time exactly: its timer has 100, 250, 300 or 1,000 ticks a second.
const EXACT_MILLISECONDS: u64 = 20;

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(i32);

const ABSENT: Refusal = Refusal(libc::ENOENT);
const EXISTS: Refusal = Refusal(libc::EEXIST);
const INVALID: Refusal = Refusal(libc::EINVAL);
const UNSUPPORTED: Refusal = Refusal(libc::EOPNOTSUPP);

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        INVALID
    }
}

type TableKey = (Family, BString);

/// Executes the operations of a transaction up to the first refused one.
pub(super) fn apply(ruleset: &mut Ruleset, tx: &Transaction) -> Result<(), CommitError> {
    let mut batch = Batch {
        ruleset,
        set_ids: HashMap::new(),
        chain_ids: HashMap::new(),
        rule_ids: HashMap::new(),
        updated_sets: Vec::new(),
        renamed_chains: Vec::new(),
    };
    for (index, message) in tx.messages().enumerate() {
        let executed = batch.execute(&message);
        executed
            .map_err(|refusal| CommitError::of_operation(index, &message, Errno::new(refusal.0)))?;
    }
    for (table, name, handle, new) in batch.updated_sets {
        let table = batch.ruleset.tables.get_mut(&table);
        let set = table.and_then(|table| table.sets.get_mut(&name));
        // Not a set of this name that the transaction created later.
        if let Some(set) = set.filter(|set| set.set.handle == handle) {
            set.update(&new);
        }
    }
    for (table, handle, name) in batch.renamed_chains {
        if let Some(table) = batch.ruleset.tables.get_mut(&table)
            && let Some(old) = table.chains.find(|one| one.chain.handle == handle)
        {
            let old = old.clone();
            table.rename_chain(&old, name);
        }
    }
    Ok(())
}

/// A transaction in progress: the ruleset, and what its ids mean.
struct Batch<'r> {
    ruleset: &'r mut Ruleset,
    set_ids: HashMap<u32, (TableKey, BString)>,
    chain_ids: HashMap<u32, (TableKey, BString)>,
    rule_ids: HashMap<u32, u64>,
    /// The names and handles of existing sets with their new properties, which take effect at the end.
    updated_sets: Vec<(TableKey, BString, Option<u64>, Set<'static>)>,
    /// The handles of chains with their new names, which take effect at the end.
    renamed_chains: Vec<(TableKey, Option<u64>, BString)>,
}

/// An operation: the flags and the family of its message, and whether it may find nothing to delete.
#[derive(Clone, Copy)]
struct Operation<'m> {
    flags: u16,
    family: Family,
    destroys: bool,
    attributes: &'m [u8],
}

impl Operation<'_> {
    const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Refuses the creation of an existing object.
    const fn may_exist(&self) -> Result<(), Refusal> {
        match self.has(NLM_F_EXCL) {
            true => Err(EXISTS),
            false => Ok(()),
        }
    }

    /// Returns the object to delete, if it exists.
    fn to_delete<T>(self, found: Option<T>) -> Result<Option<T>, Refusal> {
        match found {
            None if !self.destroys => Err(ABSENT),
            found => Ok(found),
        }
    }

    /// Returns the table of an object.
    fn table(&self, table: &Option<Name<'_>>) -> Result<TableKey, Refusal> {
        Ok((self.family, table.as_ref().ok_or(INVALID)?.to_vec().into()))
    }
}

impl Batch<'_> {
    fn execute(&mut self, message: &Message<'_>) -> Result<(), Refusal> {
        let (header, attributes) = message.nfgenmsg()?;
        let kind = message.kind as u8;
        let destroys = (NFT_MSG_DESTROYTABLE..=NFT_MSG_DESTROYFLOWTABLE).contains(&kind);
        let operation = Operation {
            flags: message.flags,
            family: Family(header.family),
            destroys,
            attributes,
        };
        match kind {
            NFT_MSG_NEWTABLE => self.new_table(operation),
            NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => self.delete_tables(operation),
            NFT_MSG_NEWCHAIN => self.new_chain(operation),
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => self.delete_chain(operation),
            NFT_MSG_NEWRULE => self.new_rule(operation),
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => self.delete_rules(operation),
            NFT_MSG_NEWSET => self.new_set(operation),
            NFT_MSG_DELSET | NFT_MSG_DESTROYSET => self.delete_set(operation),
            NFT_MSG_NEWSETELEM => self.new_elements(operation, ElementsRef::parse(message)?),
            NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                self.delete_elements(operation, ElementsRef::parse(message)?)
            }
            NFT_MSG_NEWOBJ => self.new_object(operation),
            NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => self.delete_object(operation),
            NFT_MSG_NEWFLOWTABLE => self.new_flowtable(operation),
            NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => self.delete_flowtable(operation),
            _ => Err(INVALID),
        }
    }

    fn table(&self, key: &TableKey) -> Result<&RulesetTable, Refusal> {
        self.ruleset.tables.get(key).ok_or(ABSENT)
    }

    fn table_mut(&mut self, key: &TableKey) -> Result<&mut RulesetTable, Refusal> {
        self.ruleset.tables.get_mut(key).ok_or(ABSENT)
    }
}

/// Rounds a timeout up to a time that every kernel lists as it was sent. The kernel would round it down to its ticks.
fn exact(timeout: Milliseconds) -> Milliseconds {
    let steps = timeout.0.div_ceil(EXACT_MILLISECONDS);
    Milliseconds(steps.saturating_mul(EXACT_MILLISECONDS))
}
