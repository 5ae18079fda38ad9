//! Changes of state without a transaction: of counters, quotas and times, in place in their listed attributes.

use std::sync::Arc;
use std::time::Duration;

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETOBJ, NFT_MSG_GETRULE, NFT_OBJECT_COUNTER, NFT_QUOTA_F_DEPLETED, NFTA_COUNTER_BYTES,
    NFTA_COUNTER_PACKETS, NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_EXPR_DATA,
    NFTA_EXPR_NAME, NFTA_LAST_MSECS, NFTA_LAST_SET, NFTA_LIST_ELEM, NFTA_OBJ_TYPE,
    NFTA_QUOTA_CONSUMED, NFTA_QUOTA_FLAGS, NFTA_RULE_HANDLE, NFTA_TABLE_NAME,
};

use super::request::{NAMED, SECOND};
use super::state::{Chain, Data, Element, Key, Set, State, Table};
use super::wire::{ParsedAttributes, Refusal, U32, U64};
use chainwright::netlink::Attributes;

/// Iterates over attributes, to change their payloads.
fn attributes_mut(mut rest: &mut [u8]) -> impl Iterator<Item = (u16, &mut [u8])> {
    std::iter::from_fn(move || {
        let (header, payload) = std::mem::take(&mut rest).split_first_chunk_mut::<4>()?;
        let [length, kind] =
            [[header[0], header[1]], [header[2], header[3]]].map(u16::from_ne_bytes);
        let length = usize::from(length).checked_sub(4)?;
        let padded = length.next_multiple_of(4).min(payload.len());
        let (payload, behind) = payload.split_at_mut(padded);
        rest = behind;
        Some((kind, payload.get_mut(..length)?))
    })
}

/// Returns the payload of a number with `N` bytes.
pub(super) fn number<const N: usize>(attributes: &mut [u8], kind: u16) -> Option<&mut [u8; N]> {
    let mut all = attributes_mut(attributes);
    all.find(|attribute| attribute.0 == kind)?
        .1
        .first_chunk_mut()
}

/// Changes a number of 8 bytes, if the attribute exists.
pub(super) fn change(attributes: &mut [u8], kind: u16, changed: impl FnOnce(u64) -> u64) {
    if let Some(number) = number(attributes, kind) {
        *number = changed(u64::from_be_bytes(*number)).to_be_bytes();
    }
}

/// A change of the state of an expression, given its name and attributes.
pub(super) type Change<'c> = &'c mut dyn FnMut(&[u8], &mut [u8]);

/// Changes the expressions in a list, or only the one with this index.
fn in_list(list: &mut [u8], only: Option<usize>, change: Change<'_>) {
    for (at, (kind, expression)) in attributes_mut(list).enumerate() {
        if kind == NFTA_LIST_ELEM && only.is_none_or(|only| only == at) {
            in_expression(expression, change);
        }
    }
}

/// Changes an expression, and those in a `dynset`.
pub(super) fn in_expression(expression: &mut [u8], change: Change<'_>) {
    let mut name = Vec::new();
    for (kind, payload) in attributes_mut(expression) {
        match kind {
            NFTA_EXPR_NAME => name = payload.to_vec(),
            NFTA_EXPR_DATA if name == b"dynset\0" => {
                for (kind, payload) in attributes_mut(payload) {
                    match kind {
                        NFTA_DYNSET_EXPR => in_expression(payload, change),
                        NFTA_DYNSET_EXPRESSIONS => in_list(payload, None, change),
                        _ => {}
                    }
                }
            }
            NFTA_EXPR_DATA => change(super::wire::text(&name), payload),
            _ => {}
        }
    }
}

/// Sets an expression to the state after a reset. The kernel doesn't reset `last`.
fn reset(name: &[u8], attributes: &mut [u8]) {
    match name {
        b"counter" => {
            change(attributes, NFTA_COUNTER_BYTES, |_| 0);
            change(attributes, NFTA_COUNTER_PACKETS, |_| 0);
        }
        b"quota" => {
            change(attributes, NFTA_QUOTA_CONSUMED, |_| 0);
            if let Some(flags) = number(attributes, NFTA_QUOTA_FLAGS) {
                *flags = (u32::from_be_bytes(*flags) & !NFT_QUOTA_F_DEPLETED).to_be_bytes();
            }
        }
        _ => {}
    }
}

/// Sets an expression to its state some milliseconds later.
fn advance(name: &[u8], attributes: &mut [u8], by: u64) {
    let is_set = |attributes: &mut [u8]| number(attributes, NFTA_LAST_SET) != Some(&mut [0; 4]);
    if name == b"last" && is_set(attributes) {
        change(attributes, NFTA_LAST_MSECS, |before| {
            before.saturating_add(by)
        });
    }
}

impl Chain {
    /// Changes the state of a rule's expressions, or only of the one with this index, given the index of the rule.
    pub(super) fn change_rule(&mut self, at: usize, only: Option<usize>, change: Change<'_>) {
        let rule = &mut self.rules[at].rule;
        let mut expressions = rule.expressions.clone();
        in_list(&mut expressions, only, change);
        if expressions != rule.expressions {
            Arc::make_mut(rule).expressions = expressions;
        }
    }
}

impl Element {
    /// Changes the state of the expressions.
    pub(super) fn change(&mut self, change: Change<'_>) {
        for expression in &mut self.expressions {
            in_expression(expression, change);
        }
    }
}

impl Set {
    /// Lets some milliseconds pass; returns the elements whose time is over. In an interval tree, the end of a range
    /// disappears with its start.
    fn advance(&mut self, by: u64) -> Vec<Arc<Element>> {
        let mut expired = Vec::new();
        for (key, element) in &mut self.elements {
            let element = Arc::make_mut(element);
            element.change(&mut |name, attributes| advance(name, attributes, by));
            element.expiration = element.expiration.saturating_sub(by);
            if element.timeout != 0 && element.expiration == 0 {
                expired.push(key.clone());
            }
        }
        let mut removed = Vec::new();
        for key in expired {
            if self.is_tree() && key.key.is_some() {
                let mut above = self.elements.range(&key..).skip(1);
                let end: Option<Key> = above.next().map(|(key, _)| key.clone());
                removed.extend(
                    end.filter(|key| key.is_end)
                        .and_then(|end| self.elements.remove(&end)),
                );
            }
            removed.extend(self.elements.remove(&key));
        }
        removed
    }
}

impl Table {
    /// Resets the rules of this chain or of all chains, or only the one with this handle.
    fn reset_rules(&mut self, chain: Option<&BStr>, handle: Option<u64>) {
        for at in 0..self.chains.len() {
            if chain.is_some_and(|name| name != self.chains[at].name()) {
                continue;
            }
            let chain = self.chains.edit(at);
            for at in 0..chain.rules.len() {
                if handle.is_none_or(|handle| handle == chain.rules[at].rule.handle) {
                    chain.change_rule(at, None, &mut reset);
                }
            }
        }
    }

    /// Resets the stateful objects of this type and name.
    fn reset_objects(&mut self, object_type: Option<u32>, name: Option<&BStr>) {
        for at in 0..self.objects.len() {
            let object = self.objects.edit(at);
            if object_type.is_some_and(|object_type| object_type != object.object_type)
                || name.is_some_and(|name| name != object.name())
            {
                continue;
            }
            let is_counter = object.object_type == NFT_OBJECT_COUNTER;
            match &mut object.data {
                Data::Quota {
                    consumed, flags, ..
                } => {
                    *consumed = 0;
                    *flags &= !NFT_QUOTA_F_DEPLETED;
                }
                Data::Listed(data) if is_counter => reset(b"counter", data),
                Data::Listed(_) => {}
            }
        }
    }

    /// Resets the requested elements, or all elements of the set.
    fn reset_elements(&mut self, attributes: &[u8], all: bool) -> Result<(), Refusal> {
        let (_, set, list) = super::element::names(attributes)?;
        let at = self.sets.named(set)?;
        let set = self.sets.edit(at);
        let keys = match list {
            Some(list) if !all => Attributes::new(list)
                .map_while(Result::ok)
                .map(|attribute| Ok(super::element::find(set, attribute.payload)?.key.clone()))
                .collect::<Result<Vec<_>, Refusal>>()?,
            _ => set.elements.keys().cloned().collect(),
        };
        for key in keys {
            if let Some(element) = set.elements.get_mut(&key) {
                Arc::make_mut(element).change(&mut reset);
            }
        }
        Ok(())
    }

    fn advance(&mut self, by: u64) {
        for at in 0..self.chains.len() {
            let chain = self.chains.edit(at);
            for rule in 0..chain.rules.len() {
                chain.change_rule(rule, None, &mut |name, attributes| {
                    advance(name, attributes, by)
                });
            }
        }
        for at in 0..self.sets.len() {
            for element in self.sets.edit(at).advance(by) {
                self.release(&element.references);
            }
        }
    }
}

impl State {
    /// Resets the objects that an accepted request returns: rules (`NFT_MSG_GETRULE`), objects or elements, all that
    /// match or one.
    pub(super) fn reset(
        &mut self,
        kind: u8,
        is_dump: bool,
        family: u8,
        attributes: &[u8],
    ) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(attributes, NAMED)?;
        let (table, second) = (given.text(NFTA_TABLE_NAME), given.text(SECOND));
        let is_meant = |known: &Table| {
            (family == 0 || known.family == family) && table.is_none_or(|name| known.name == name)
        };
        for table in self.tables.iter_mut().filter(|table| is_meant(table)) {
            let table = Arc::make_mut(table);
            match kind {
                NFT_MSG_GETRULE => table.reset_rules(
                    second,
                    match is_dump {
                        true => None,
                        false => ParsedAttributes::read(attributes, &[(NFTA_RULE_HANDLE, U64)])?
                            .u64(NFTA_RULE_HANDLE),
                    },
                ),
                NFT_MSG_GETOBJ => {
                    let object_type = ParsedAttributes::read(attributes, &[(NFTA_OBJ_TYPE, U32)])?;
                    let object_type = object_type.u32(NFTA_OBJ_TYPE).filter(|&number| number != 0);
                    table.reset_objects(object_type, second.filter(|_| !is_dump));
                }
                _ => table.reset_elements(attributes, is_dump)?,
            }
        }
        Ok(())
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, time: Duration) {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let before = milliseconds(self.time);
        self.time = self.time.saturating_add(time);
        let by = milliseconds(self.time) - before;
        for table in &mut self.tables {
            Arc::make_mut(table).advance(by);
        }
    }
}
