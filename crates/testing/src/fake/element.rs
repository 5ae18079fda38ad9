//! Operations on elements.

use std::ops::Bound;
use std::sync::Arc;

use bstr::BStr;
use chainwright_sys::netlink::NLM_F_EXCL;
use chainwright_sys::nf_tables::{
    NFT_DATA_VERDICT, NFT_SET_ANONYMOUS, NFT_SET_CONCAT, NFT_SET_CONSTANT, NFT_SET_ELEM_CATCHALL,
    NFT_SET_ELEM_INTERVAL_END, NFT_SET_INTERVAL, NFT_SET_MAP, NFT_SET_OBJECT, NFT_SET_TIMEOUT,
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_SET_ELEM_DATA, NFTA_SET_ELEM_EXPIRATION,
    NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS, NFTA_SET_ELEM_KEY,
    NFTA_SET_ELEM_KEY_END, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_SET_ID, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_OBJREF,
    NFTA_SET_ELEM_TIMEOUT, NFTA_SET_ELEM_USERDATA,
};

use super::events::Step;
use super::members::Member;
use super::set::list_of_expressions;
use super::state::{Element, Key, Reference, Set};
use super::tree::{self, TreeState};
use super::tx_state::{Operation, TxState};
use super::wire::{AttributeBuffer, NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};
use chainwright::netlink::Attributes;

const LIST: &[(u16, Policy)] = &[
    (NFTA_SET_ELEM_LIST_TABLE, NAME),
    (NFTA_SET_ELEM_LIST_SET, NAME),
    (NFTA_SET_ELEM_LIST_ELEMENTS, Policy::Any),
    (NFTA_SET_ELEM_LIST_SET_ID, U32),
];
const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_SET_ELEM_KEY, Policy::Any),
    (NFTA_SET_ELEM_DATA, Policy::Any),
    (NFTA_SET_ELEM_FLAGS, U32),
    (NFTA_SET_ELEM_TIMEOUT, U64),
    (NFTA_SET_ELEM_EXPIRATION, U64),
    (NFTA_SET_ELEM_USERDATA, Policy::Binary(256)),
    (NFTA_SET_ELEM_EXPR, Policy::Any),
    (NFTA_SET_ELEM_OBJREF, NAME),
    (NFTA_SET_ELEM_KEY_END, Policy::Any),
    (NFTA_SET_ELEM_EXPRESSIONS, Policy::Any),
];
const DATA: &[(u16, Policy)] = &[
    (NFTA_DATA_VALUE, Policy::Any),
    (NFTA_DATA_VERDICT, Policy::Any),
];
/// Maximum length of a value.
const MAX_VALUE_LENGTH: usize = 64;

impl TxState {
    pub(super) fn new_elements(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, LIST)?;
        let list = given.needs(NFTA_SET_ELEM_LIST_ELEMENTS)?;
        let (number, at) = self.set_of_elements(operation, &given)?;
        let set = &self.state.tables[number].sets[at];
        if set.is_bound && set.flags & (NFT_SET_CONSTANT | NFT_SET_ANONYMOUS) != 0 {
            return Err(refuse(libc::EBUSY));
        }
        for attribute in Attributes::new(list).map_while(Result::ok) {
            self.new_element(operation, number, at, attribute.payload)?;
        }
        self.validate_now(number)
    }

    /// Returns the indices of the table and the set of a list of elements.
    fn set_of_elements(
        &self,
        operation: &Operation<'_>,
        given: &ParsedAttributes<'_>,
    ) -> Result<(usize, usize), Refusal> {
        let number = self.table_by(operation, given, NFTA_SET_ELEM_LIST_TABLE)?;
        let name = given.text(NFTA_SET_ELEM_LIST_SET);
        let name = name.ok_or(refuse(libc::EINVAL))?;
        let id = given.u32(NFTA_SET_ELEM_LIST_SET_ID);
        let at = self.set_by(number, Some(name), id);
        let at = at.map_err(|refusal| refusal.at(NFTA_SET_ELEM_LIST_SET))?;
        Ok((number, at))
    }

    fn new_element(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        payload: &[u8],
    ) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(payload, ATTRIBUTES)?;
        let set = Arc::clone(&self.state.tables[number].sets[at]);
        let flags = flags(&set, &given)?;
        let is_end = flags & NFT_SET_ELEM_INTERVAL_END != 0;
        for (kind, flag) in [
            (NFTA_SET_ELEM_DATA, NFT_SET_MAP),
            (NFTA_SET_ELEM_OBJREF, NFT_SET_OBJECT),
        ] {
            match set.flags & flag != 0 {
                true if !given.has(kind) && !is_end => return Err(refuse(libc::EINVAL)),
                false if given.has(kind) => return Err(refuse(libc::EINVAL)),
                _ => {}
            }
        }
        admits_last_key(&set, &given, flags)?;
        let nothing_else = [
            NFTA_SET_ELEM_DATA,
            NFTA_SET_ELEM_OBJREF,
            NFTA_SET_ELEM_TIMEOUT,
            NFTA_SET_ELEM_EXPIRATION,
            NFTA_SET_ELEM_USERDATA,
            NFTA_SET_ELEM_EXPR,
            NFTA_SET_ELEM_KEY_END,
            NFTA_SET_ELEM_EXPRESSIONS,
        ];
        if is_end && nothing_else.iter().any(|&kind| given.has(kind)) {
            return Err(refuse(libc::EINVAL));
        }
        let times_out = set.flags & NFT_SET_TIMEOUT != 0;
        let timeout = match given.u64(NFTA_SET_ELEM_TIMEOUT) {
            Some(_) if !times_out => return Err(refuse(libc::EINVAL)),
            Some(timeout) => timeout,
            None if times_out && !is_end => set.timeout,
            None => 0,
        };
        let expiration = match given.u64(NFTA_SET_ELEM_EXPIRATION) {
            Some(_) if !times_out || timeout == 0 => return Err(refuse(libc::EINVAL)),
            Some(expiration) if expiration > timeout => return Err(refuse(libc::ERANGE)),
            None | Some(0) => timeout,
            Some(expiration) => expiration,
        };
        let expressions = self.expressions_of_element(number, &set, &given, is_end)?;
        let key = key_of(&set, given.get(NFTA_SET_ELEM_KEY))?;
        let last = key_of(&set, given.get(NFTA_SET_ELEM_KEY_END))?;
        let mut references = Vec::new();
        let object = match given.text(NFTA_SET_ELEM_OBJREF) {
            None => None,
            Some(name) => {
                let objects = &self.state.tables[number].objects;
                let handle = objects[objects.of_type(set.object_type, name)?].handle;
                references.push(Reference::Object(handle));
                Some((handle, name.to_owned()))
            }
        };
        let data = match given.get(NFTA_SET_ELEM_DATA) {
            None => None,
            Some(data) => Some(self.data_of(number, &set, data, &mut references)?),
        };

        let userdata = given.get(NFTA_SET_ELEM_USERDATA);
        let userdata = userdata.filter(|data| !data.is_empty()).map(<[u8]>::to_vec);
        let element = Element {
            key: Key { key, is_end },
            last,
            data,
            expressions,
            object,
            flags,
            timeout,
            expiration,
            userdata,
            references,
            number: set.added,
        };
        let mut tree_state = self.tree_state_of(&set);
        if let Some(tree_state) = &mut tree_state {
            tree_state.name(&element.key);
        }
        match conflict(&set, tree_state.as_deref(), &element) {
            Conflict::None if is_of_ranges(&set) && !is_in_order(&set, &element) => {
                Err(refuse(libc::EINVAL))
            }
            Conflict::None => {
                // Another reference would force a copy.
                drop(set);
                self.insert_element(operation, number, at, element)
            }
            Conflict::Overlap => Err(refuse(libc::EEXIST)),
            Conflict::Same(known) => {
                let is_other = known.data != element.data || known.object != element.object;
                if is_other || operation.has(NLM_F_EXCL) {
                    return Err(refuse(libc::EEXIST));
                }
                if let Some(tree_state) = tree_state {
                    tree_state.add_again(&set, &element.key)?;
                }
                let expiration_given = given.u64(NFTA_SET_ELEM_EXPIRATION);
                let has_expiration = expiration_given.is_some_and(|time| time != 0);
                if times_out && (known.timeout != timeout || has_expiration) {
                    let step = Step::ElementUpdate {
                        set: set.handle,
                        key: element.key,
                        timeout,
                        expiration,
                    };
                    self.note(operation, number, step);
                }
                Ok(())
            }
        }
    }

    fn insert_element(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        element: Element,
    ) -> Result<(), Refusal> {
        let set = &self.state.tables[number].sets[at];
        let is_catchall = element.key.key.is_none();
        if !is_catchall && set.size != 0 && u64::from(set.count()) >= limit(set, &element.key) {
            return Err(refuse(libc::ENFILE));
        }
        let mut references = element.references.iter();
        self.needs_validation |=
            references.any(|reference| matches!(reference, Reference::Chain(_)));
        let element = Arc::new(element);
        let table = self.table_mut(number);
        table.acquire(&element.references);
        let set = table.sets.edit(at);
        (set.elements).insert(element.key.clone(), Arc::clone(&element));
        set.added += 1;
        let set = set.handle;
        self.note(operation, number, Step::Element { set, element });
        Ok(())
    }

    /// Returns the data of an element as listed.
    fn data_of(
        &self,
        number: usize,
        set: &Set,
        payload: &[u8],
        references: &mut Vec<Reference>,
    ) -> Result<Vec<u8>, Refusal> {
        let given = ParsedAttributes::read(payload, DATA)?;
        let mut out = AttributeBuffer::default();
        let is_verdict = set.data_type == NFT_DATA_VERDICT;
        match (given.get(NFTA_DATA_VALUE), given.get(NFTA_DATA_VERDICT)) {
            (Some(value), _) => {
                if is_verdict || value.len() != set.data_length as usize {
                    return Err(refuse(libc::EINVAL));
                }
                out.bytes(NFTA_DATA_VALUE, value);
            }
            (None, Some(_)) => {
                if !is_verdict {
                    return Err(refuse(libc::EINVAL));
                }
                let (listed, mut leads_to) = self.verdict(number, payload)?;
                references.append(&mut leads_to);
                out.0 = listed;
            }
            (None, None) => return Err(refuse(libc::EINVAL)),
        }
        Ok(out.0)
    }

    /// Returns the expressions of an element: its own, or the set's.
    fn expressions_of_element(
        &self,
        number: usize,
        set: &Set,
        given: &ParsedAttributes<'_>,
        is_end: bool,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let own: Vec<&[u8]> = match (
            given.get(NFTA_SET_ELEM_EXPR),
            given.get(NFTA_SET_ELEM_EXPRESSIONS),
        ) {
            (Some(expression), _) => vec![expression],
            (None, Some(list)) => list_of_expressions(list).collect::<Result<_, _>>()?,
            (None, None) if is_end => return Ok(Vec::new()),
            (None, None) => return Ok(set.expressions.clone()),
        };
        if !set.expressions.is_empty() && own.len() != set.expressions.len() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let taken = own
            .iter()
            .map(|payload| self.expression_of_set(number, payload));
        taken.collect()
    }

    pub(super) fn delete_elements(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, LIST)?;
        let (number, at) = self.set_of_elements(operation, &given)?;
        let set = Arc::clone(&self.state.tables[number].sets[at]);
        if set.is_anonymous() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        if set.is_bound && set.flags & NFT_SET_CONSTANT != 0 {
            return Err(refuse(libc::EBUSY));
        }
        let Some(list) = given.get(NFTA_SET_ELEM_LIST_ELEMENTS) else {
            for key in set.elements.keys().rev() {
                self.remove_element(operation, number, at, key);
            }
            return Ok(());
        };
        drop(set);
        for attribute in Attributes::new(list).map_while(Result::ok) {
            match self.delete_element(operation, number, at, attribute.payload) {
                Err(refusal) if refusal.is(libc::ENOENT) && operation.destroys() => {}
                deleted => deleted?,
            }
        }
        Ok(())
    }

    fn delete_element(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        payload: &[u8],
    ) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(payload, ATTRIBUTES)?;
        let set = Arc::clone(&self.state.tables[number].sets[at]);
        let sought = sought(&set, &given)?;
        key_of(&set, given.get(NFTA_SET_ELEM_KEY_END))?;
        let key = match (is_of_ranges(&set), &sought.key) {
            // A key inside of the range is sufficient; it need not be the range's first key.
            (true, Some(first)) => range_of(&set, first).map(|element| element.key.clone()),
            _ => set.elements.contains_key(&sought).then(|| sought.clone()),
        };
        let mut tree_state = self.tree_state_of(&set);
        if let Some(tree_state) = &mut tree_state {
            tree_state.name(&sought);
        }
        let key = key.ok_or(refuse(libc::ENOENT))?;
        if let Some(tree_state) = tree_state {
            tree_state.delete(&set, &key)?;
        }
        drop(set);
        self.remove_element(operation, number, at, &key);
        Ok(())
    }

    /// Returns the state of an interval tree.
    fn tree_state_of(&mut self, set: &Member<Set>) -> Option<&mut TreeState> {
        set.is_tree()
            .then(|| self.trees.entry(set.handle).or_default())
    }

    fn remove_element(&mut self, operation: &Operation<'_>, number: usize, at: usize, key: &Key) {
        let table = self.table_mut(number);
        let set = table.sets.edit(at);
        let Some(element) = set.elements.remove(key) else {
            return;
        };
        let (set, is_tree) = (set.handle, set.is_tree());
        table.release(&element.references);
        if is_tree {
            self.trees.entry(set).or_default().take_out(key);
        }
        self.note(operation, number, Step::ElementGone { set, element });
    }
}

/// Returns `true` if each element has a first and a last key.
const fn is_of_ranges(set: &Set) -> bool {
    const BOTH: u32 = NFT_SET_INTERVAL | NFT_SET_CONCAT;
    set.flags & BOTH == BOTH
}

/// Returns the maximum number of elements. Ranges in a tree have two elements each; an end without a start, at the
/// lowest key, doesn't count.
fn limit(set: &Set, new: &Key) -> u64 {
    let size = u64::from(set.size);
    if !set.is_tree() {
        return size;
    }
    let mut keys = set.elements.keys().filter(|key| key.key.is_some());
    let lowest = keys.next().map_or(new, |lowest| lowest.min(new));
    // Linux 6.18 treats any key without a byte 1 as such an end.
    let is_none = lowest.key.as_ref().is_some_and(|key| !key.contains(&1));
    size * 2 + u64::from(lowest.is_end && is_none)
}

fn flags(set: &Set, given: &ParsedAttributes<'_>) -> Result<u32, Refusal> {
    let flags = given.u32(NFTA_SET_ELEM_FLAGS).unwrap_or(0);
    let is_end = flags & NFT_SET_ELEM_INTERVAL_END != 0;
    let is_catchall = flags & NFT_SET_ELEM_CATCHALL != 0;
    if flags & !(NFT_SET_ELEM_INTERVAL_END | NFT_SET_ELEM_CATCHALL) != 0 {
        return Err(refuse(libc::EOPNOTSUPP));
    }
    if (is_end && (set.flags & NFT_SET_INTERVAL == 0 || is_catchall))
        || is_catchall == given.has(NFTA_SET_ELEM_KEY)
    {
        return Err(refuse(libc::EINVAL));
    }
    Ok(flags)
}

/// Checks whether an element of this set may have a last key.
fn admits_last_key(set: &Set, given: &ParsedAttributes<'_>, flags: u32) -> Result<(), Refusal> {
    let has_one = given.has(NFTA_SET_ELEM_KEY_END);
    let is_wrong = match is_of_ranges(set) {
        true => {
            flags & NFT_SET_ELEM_INTERVAL_END != 0
                || (has_one && flags & NFT_SET_ELEM_CATCHALL != 0)
        }
        false => has_one,
    };
    match is_wrong {
        true => Err(refuse(libc::EINVAL)),
        false => Ok(()),
    }
}

/// Returns a key, whose length must be the set's.
fn key_of(set: &Set, payload: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refusal> {
    let Some(payload) = payload else {
        return Ok(None);
    };
    let given = ParsedAttributes::read(payload, DATA)?;
    match given.get(NFTA_DATA_VALUE) {
        Some(value)
            if value.len() == set.key_length as usize && value.len() <= MAX_VALUE_LENGTH =>
        {
            Ok(Some(value.to_vec()))
        }
        _ => Err(refuse(libc::EINVAL)),
    }
}

/// Returns the key of a requested element.
fn sought(set: &Set, given: &ParsedAttributes<'_>) -> Result<Key, Refusal> {
    let flags = flags(set, given)?;
    admits_last_key(set, given, flags)?;
    Ok(Key {
        key: key_of(set, given.get(NFTA_SET_ELEM_KEY))?,
        is_end: flags & NFT_SET_ELEM_INTERVAL_END != 0,
    })
}

/// The conflict of a new element with the set.
pub(super) enum Conflict<'s> {
    None,
    /// An element with the same key.
    Same(&'s Element),
    /// An element with an overlapping range.
    Overlap,
}

fn conflict<'s>(set: &'s Set, tree_state: Option<&TreeState>, element: &Element) -> Conflict<'s> {
    if let (true, Some(key)) = (is_of_ranges(set), &element.key.key) {
        let last = element.last.as_ref().unwrap_or(key);
        return match (range_of(set, key), range_of(set, last)) {
            (Some(known), _)
                if known.key == element.key
                    && known.last.as_ref().or(known.key.key.as_ref()) == Some(last) =>
            {
                Conflict::Same(known)
            }
            (None, None) => Conflict::None,
            _ => Conflict::Overlap,
        };
    }
    if let Some(known) = set.elements.get(&element.key) {
        return Conflict::Same(known);
    }
    if element.key.key.is_none() {
        return Conflict::None;
    }
    match tree_state {
        Some(tree_state) => tree::conflict(set, tree_state, element),
        None => Conflict::None,
    }
}

/// Returns `true` if no field of a range ends before it starts.
fn is_in_order(set: &Set, element: &Element) -> bool {
    match (&element.key.key, &element.last) {
        (Some(first), Some(last)) => contains(set, first, last, first),
        _ => true,
    }
}

/// Returns `true` if all fields of a key are in these ranges.
fn contains(set: &Set, first: &[u8], last: &[u8], key: &[u8]) -> bool {
    let mut at = 0;
    set.fields.iter().all(|&length| {
        let field = at..(at + length as usize).min(key.len());
        at += (length as usize).next_multiple_of(4);
        match (
            first.get(field.clone()),
            last.get(field.clone()),
            key.get(field),
        ) {
            (Some(first), Some(last), Some(key)) => first <= key && key <= last,
            _ => false,
        }
    })
}

/// Returns the element whose range contains a key, in a set of concatenated ranges. Of several (a new range may contain
/// older ones) the kernel finds the one that was added first.
fn range_of<'s>(set: &'s Set, key: &[u8]) -> Option<&'s Arc<Element>> {
    let ranges = set.elements.values().filter(|element| {
        let Some(first) = &element.key.key else {
            return false;
        };
        let last = element.last.as_ref().unwrap_or(first);
        contains(set, first, last, key)
    });
    ranges.min_by_key(|element| element.number)
}

/// Returns the element with this key, or whose range contains it.
pub(super) fn find<'s>(set: &'s Set, payload: &[u8]) -> Result<&'s Arc<Element>, Refusal> {
    let given = ParsedAttributes::read(payload, ATTRIBUTES)?;
    let key = sought(set, &given)?;
    let absent = refuse(libc::ENOENT);
    let Some(wanted) = key
        .key
        .as_ref()
        .filter(|_| set.flags & NFT_SET_INTERVAL != 0)
    else {
        return set.elements.get(&key).ok_or(absent);
    };
    if is_of_ranges(set) {
        return range_of(set, wanted).ok_or(absent);
    }
    // The range that contains the key.
    let up_to = Key {
        key: Some(wanted.clone()),
        is_end: false,
    };
    let below = set.elements.range(..=&up_to).next_back();
    let (at, first) = below.ok_or(absent)?;
    if at.is_end || at.key.is_none() {
        return set.elements.get(&key).ok_or(absent);
    }
    match key.is_end {
        false => Ok(first),
        true => {
            let behind = (Bound::Excluded(&up_to), Bound::Unbounded);
            let above = set.elements.range(behind).next().ok_or(absent)?;
            above.0.is_end.then_some(above.1).ok_or(absent)
        }
    }
}

/// Returns the table name, the set name, and the list of a request for elements.
pub(super) fn names(attributes: &[u8]) -> Result<(&BStr, &BStr, Option<&[u8]>), Refusal> {
    let given = ParsedAttributes::read(attributes, LIST)?;
    let needed = |kind| given.text(kind).ok_or(refuse(libc::EINVAL));
    Ok((
        needed(NFTA_SET_ELEM_LIST_TABLE)?,
        needed(NFTA_SET_ELEM_LIST_SET)?,
        given.get(NFTA_SET_ELEM_LIST_ELEMENTS),
    ))
}
