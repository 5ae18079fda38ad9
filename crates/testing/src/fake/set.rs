//! Operations on sets.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::netlink::{NLM_F_CREATE, NLM_F_NONREC};
use chainwright_sys::nf_tables::{
    NFT_DATA_VERDICT, NFT_OBJECT_SYNPROXY, NFT_OBJECT_UNSPEC, NFT_SET_ANONYMOUS, NFT_SET_CONCAT,
    NFT_SET_CONSTANT, NFT_SET_EVAL, NFT_SET_EXPR, NFT_SET_INTERVAL, NFT_SET_MAP, NFT_SET_OBJECT,
    NFT_SET_TIMEOUT, NFTA_LIST_ELEM, NFTA_SET_DATA_LEN, NFTA_SET_DATA_TYPE, NFTA_SET_DESC,
    NFTA_SET_DESC_CONCAT, NFTA_SET_DESC_SIZE, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS,
    NFTA_SET_FIELD_LEN, NFTA_SET_FLAGS, NFTA_SET_GC_INTERVAL, NFTA_SET_HANDLE, NFTA_SET_ID,
    NFTA_SET_KEY_LEN, NFTA_SET_KEY_TYPE, NFTA_SET_NAME, NFTA_SET_OBJ_TYPE, NFTA_SET_POLICY,
    NFTA_SET_TABLE, NFTA_SET_TIMEOUT, NFTA_SET_USERDATA,
};

use super::events::{SetUpdate, Step};
use super::members::ObjectKind;
use super::state::Set;
use super::tx_state::{Operation, TxState};
use super::wire::{NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};
use chainwright::netlink::Attributes;

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_SET_TABLE, NAME),
    (NFTA_SET_NAME, NAME),
    (NFTA_SET_FLAGS, U32),
    (NFTA_SET_KEY_TYPE, U32),
    (NFTA_SET_KEY_LEN, U32),
    (NFTA_SET_DATA_TYPE, U32),
    (NFTA_SET_DATA_LEN, U32),
    (NFTA_SET_POLICY, U32),
    (NFTA_SET_DESC, Policy::Any),
    (NFTA_SET_ID, U32),
    (NFTA_SET_TIMEOUT, U64),
    (NFTA_SET_GC_INTERVAL, U32),
    (NFTA_SET_USERDATA, Policy::Binary(256)),
    (NFTA_SET_OBJ_TYPE, U32),
    (NFTA_SET_HANDLE, U64),
    (NFTA_SET_EXPR, Policy::Any),
    (NFTA_SET_EXPRESSIONS, Policy::Any),
];
const DESCRIPTION: &[(u16, Policy)] = &[
    (NFTA_SET_DESC_SIZE, U32),
    (NFTA_SET_DESC_CONCAT, Policy::Any),
];
const FIELD: &[(u16, Policy)] = &[(NFTA_SET_FIELD_LEN, U32)];

/// Maximum length of a key and of data, in bytes.
const MAX_KEY_LENGTH: u32 = 64;
/// Maximum number of fields of a key.
const MAX_FIELDS: usize = 16;
/// Maximum number of expressions per element.
const MAX_EXPRESSIONS: usize = 2;
/// Types from this number on are reserved by the kernel.
const RESERVED: u32 = 0xffff_ff00;
const VERDICT: u32 = NFT_DATA_VERDICT;
/// Length of a verdict in the kernel's memory.
const VERDICT_LENGTH: u32 = 16;
const FLAGS: u32 = NFT_SET_ANONYMOUS
    | NFT_SET_CONSTANT
    | NFT_SET_INTERVAL
    | NFT_SET_TIMEOUT
    | NFT_SET_MAP
    | NFT_SET_EVAL
    | NFT_SET_OBJECT
    | NFT_SET_CONCAT
    | NFT_SET_EXPR;
/// `NFT_OBJECT_MAX`.
const MAX_OBJECT_TYPE: u32 = NFT_OBJECT_SYNPROXY;

/// The numbers that set names of one pattern use in a table, valid until a set is deleted.
#[derive(Debug)]
pub(super) struct UsedNumbers {
    /// The table's handle.
    table: u64,
    /// The part of the pattern before the number.
    before: BString,
    /// Number of sets deleted so far in the transaction: another deletion may free a lower number.
    gone: usize,
    numbers: HashSet<u32>,
    /// All lower numbers are used.
    first: u32,
}

impl UsedNumbers {
    /// Records a set of this name in a table.
    fn add(&mut self, table: u64, name: &BStr) {
        let number = name.strip_prefix(self.before.as_bytes());
        let number = number.filter(|_| table == self.table);
        let number = number.and_then(|number| number.to_str().ok()?.parse::<u32>().ok());
        self.numbers.extend(number);
    }
}

impl TxState {
    pub(super) fn new_set(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        for kind in [NFTA_SET_TABLE, NFTA_SET_NAME, NFTA_SET_KEY_LEN, NFTA_SET_ID] {
            given.needs(kind)?;
        }
        let mut set = read(&given)?;
        let number = self.table_by(operation, &given, NFTA_SET_TABLE)?;
        let name = given.text(NFTA_SET_NAME).unwrap_or_default();
        match self.state.tables[number].sets.named(name) {
            Ok(at) => {
                operation.check_existing(NFTA_SET_NAME)?;
                if self.state.tables[number].sets[at].is_anonymous() {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                set.expressions = self.expressions_of_set(number, &given, &set)?;
                return self.update_set(operation, number, at, &set);
            }
            Err(_) if !operation.has(NLM_F_CREATE) => return Err(refuse(libc::ENOENT)),
            Err(_) => {}
        }
        let name = match set.is_anonymous() {
            true => self.unused_name(number, name)?,
            false => name.to_owned(),
        };
        set.expressions = self.expressions_of_set(number, &given, &set)?;
        let of_table = self.state.tables[number].handle;
        for used_numbers in &mut self.used_numbers {
            used_numbers.add(of_table, name.as_bstr());
        }
        let table = self.table_mut(number);
        let handle = table.allocate_handle();
        table.sets.add(name, handle, set);
        let table = table.handle;
        if let Some(id) = given.u32(NFTA_SET_ID) {
            self.set_ids.insert(id, (table, handle));
        }
        self.note(operation, number, Step::Member(ObjectKind::Set, handle));
        Ok(())
    }

    /// Updates an existing set, if the definition is the same.
    fn update_set(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        given: &Set,
    ) -> Result<(), Refusal> {
        let set = &self.state.tables[number].sets[at];
        let is_same = set.key_type == given.key_type
            && set.data_type == given.data_type
            && set.flags == given.flags
            && set.key_length == given.key_length
            && set.data_length == given.data_length
            && set.fields == given.fields
            && set.object_type == given.object_type
            && set.expressions == given.expressions;
        if !is_same {
            return Err(refuse(libc::EEXIST).at(NFTA_SET_NAME));
        }
        let update = SetUpdate {
            size: given.size,
            timeout: given.timeout,
            gc_interval: given.gc_interval,
        };
        self.note(operation, number, Step::SetUpdate(set.handle, update));
        Ok(())
    }

    /// Returns the expressions for each new element.
    fn expressions_of_set(
        &self,
        number: usize,
        given: &ParsedAttributes<'_>,
        set: &Set,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        if let Some(expression) = given.get(NFTA_SET_EXPR) {
            return Ok(vec![self.expression_of_set(number, expression)?]);
        }
        let Some(list) = given.get(NFTA_SET_EXPRESSIONS) else {
            return Ok(Vec::new());
        };
        if set.flags & NFT_SET_EXPR == 0 {
            return Err(refuse(libc::EINVAL));
        }
        list_of_expressions(list)
            .map(|expression| self.expression_of_set(number, expression?))
            .collect()
    }

    /// Returns the first unused name of this pattern.
    fn unused_name(&mut self, number: usize, pattern: &BStr) -> Result<BString, Refusal> {
        let Some(at) = pattern.find("%") else {
            return Ok(pattern.to_owned());
        };
        let (before, rest) = pattern.split_at(at);
        if rest != b"%d" {
            return Err(refuse(libc::EINVAL));
        }
        let table = &self.state.tables[number];
        let is_of = |used_numbers: &UsedNumbers| {
            used_numbers.table == table.handle && used_numbers.before == before
        };
        // A deleted set may free a lower number.
        let gone = table.sets.count_dead();
        self.used_numbers
            .retain(|used_numbers| !is_of(used_numbers) || used_numbers.gone == gone);
        let at = match self.used_numbers.iter().position(is_of) {
            Some(at) => at,
            None => {
                let mut used_numbers = UsedNumbers {
                    table: table.handle,
                    before: before.into(),
                    gone,
                    numbers: HashSet::new(),
                    first: 0,
                };
                for set in table.sets.iter().filter(|set| !set.is_dead()) {
                    used_numbers.add(table.handle, set.name());
                }
                self.used_numbers.push(used_numbers);
                self.used_numbers.len() - 1
            }
        };
        let used_numbers = &mut self.used_numbers[at];
        while used_numbers.numbers.contains(&used_numbers.first) {
            used_numbers.first += 1;
        }
        let mut name = used_numbers.before.clone();
        name.extend_from_slice(used_numbers.first.to_string().as_bytes());
        Ok(name)
    }

    /// Returns the index of the set that an operation identifies by name or ID.
    pub(super) fn set_by(
        &self,
        number: usize,
        name: Option<&BStr>,
        id: Option<u32>,
    ) -> Result<usize, Refusal> {
        let table = &self.state.tables[number];
        match (table.sets.named(name.unwrap_or_default()), id) {
            (Ok(at), _) => Ok(at),
            (Err(refusal), None) => Err(refusal),
            (Err(refusal), Some(id)) => match self.set_ids.get(&id) {
                Some(&(handle, set)) if handle == table.handle => table.sets.of(set),
                _ => Err(refusal),
            },
        }
    }

    pub(super) fn delete_set(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        if operation.family == 0 {
            return Err(refuse(libc::EAFNOSUPPORT));
        }
        let number = self.table_by(operation, &given, NFTA_SET_TABLE)?;
        let table = &self.state.tables[number];
        let (found_by, found) = match given.u64(NFTA_SET_HANDLE) {
            Some(handle) => (NFTA_SET_HANDLE, table.sets.of(handle)),
            None => {
                let name = given.text(NFTA_SET_NAME).ok_or(refuse(libc::EINVAL))?;
                (NFTA_SET_NAME, table.sets.named(name))
            }
        };
        let Some(at) = operation.to_delete(found, found_by)? else {
            return Ok(());
        };
        let set = &table.sets[at];
        if set.uses > 0 || (operation.has(NLM_F_NONREC) && set.count() > 0) {
            return Err(refuse(libc::EBUSY).at(found_by));
        }
        self.remove_set(operation, number, at);
        Ok(())
    }

    /// Removes a set with its elements.
    pub(super) fn remove_set(&mut self, operation: &Operation<'_>, number: usize, at: usize) {
        let table = self.table_mut(number);
        let set = Arc::clone(&table.sets[at]);
        for element in set.elements.values() {
            table.release(&element.references);
        }
        self.remove::<Set>(operation, number, at);
    }
}

/// Iterates over the expressions of a list, up to the first invalid one.
pub(super) fn list_of_expressions(list: &[u8]) -> impl Iterator<Item = Result<&[u8], Refusal>> {
    let attributes = Attributes::new(list).map_while(Result::ok).enumerate();
    attributes.map(|(at, attribute)| match attribute.kind {
        _ if at == MAX_EXPRESSIONS => Err(refuse(libc::E2BIG)),
        NFTA_LIST_ELEM => Ok(attribute.payload),
        _ => Err(refuse(libc::EINVAL)),
    })
}

/// Reads the definition of a set.
fn read(given: &ParsedAttributes<'_>) -> Result<Set, Refusal> {
    let is_reserved = |data_type: u32| data_type & RESERVED == RESERVED;
    let key_type = given.u32(NFTA_SET_KEY_TYPE).unwrap_or(0);
    if is_reserved(key_type) {
        return Err(refuse(libc::EINVAL));
    }
    let key_length = given.u32(NFTA_SET_KEY_LEN).unwrap_or(0);
    if key_length == 0 || key_length > MAX_KEY_LENGTH {
        return Err(refuse(libc::EINVAL));
    }
    let flags = given.u32(NFTA_SET_FLAGS).unwrap_or(0);
    let has_all = |these: u32| flags & these == these;
    if flags & !FLAGS != 0
        || has_all(NFT_SET_MAP | NFT_SET_OBJECT)
        || has_all(NFT_SET_EVAL | NFT_SET_OBJECT)
        || (has_all(NFT_SET_ANONYMOUS | NFT_SET_TIMEOUT) && !has_all(NFT_SET_EVAL))
        || has_all(NFT_SET_CONSTANT | NFT_SET_TIMEOUT)
    {
        return Err(refuse(libc::EOPNOTSUPP));
    }
    let is_map = has_all(NFT_SET_MAP);
    let (data_type, data_length) = match given.u32(NFTA_SET_DATA_TYPE) {
        Some(_) if !is_map => return Err(refuse(libc::EINVAL)),
        Some(VERDICT) => (VERDICT, VERDICT_LENGTH),
        Some(data_type) if is_reserved(data_type) => return Err(refuse(libc::EINVAL)),
        Some(data_type) => match given.u32(NFTA_SET_DATA_LEN) {
            Some(length) if length > 0 && length <= MAX_KEY_LENGTH => (data_type, length),
            _ => return Err(refuse(libc::EINVAL)),
        },
        None if is_map => return Err(refuse(libc::EINVAL)),
        None => (0, 0),
    };
    let is_of_objects = has_all(NFT_SET_OBJECT);
    let object_type = match given.u32(NFTA_SET_OBJ_TYPE) {
        Some(_) if !is_of_objects => return Err(refuse(libc::EINVAL)),
        Some(0) => return Err(refuse(libc::EOPNOTSUPP)),
        Some(object_type) if object_type > MAX_OBJECT_TYPE => {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        Some(object_type) => object_type,
        None if is_of_objects => return Err(refuse(libc::EINVAL)),
        None => NFT_OBJECT_UNSPEC,
    };
    let (timeout, gc_interval) = (given.u64(NFTA_SET_TIMEOUT), given.u32(NFTA_SET_GC_INTERVAL));
    if timeout.is_some() || gc_interval.is_some() {
        if !has_all(NFT_SET_TIMEOUT) {
            return Err(refuse(libc::EINVAL));
        }
        if has_all(NFT_SET_ANONYMOUS) {
            return Err(refuse(libc::EOPNOTSUPP));
        }
    }
    let mut set = Set {
        flags,
        key_type,
        key_length,
        data_type,
        data_length,
        object_type,
        timeout: timeout.unwrap_or(0),
        gc_interval: gc_interval.unwrap_or(0),
        policy: given.u32(NFTA_SET_POLICY).unwrap_or(0),
        size: 0,
        had_size: false,
        fields: Vec::new(),
        userdata: given.get(NFTA_SET_USERDATA).map(<[u8]>::to_vec),
        expressions: Vec::new(),
        is_bound: false,
        elements: BTreeMap::new(),
        added: 0,
    };
    if let Some(description) = given.get(NFTA_SET_DESC) {
        let description = ParsedAttributes::read(description, DESCRIPTION)?;
        set.size = description.u32(NFTA_SET_DESC_SIZE).unwrap_or(0);
        set.had_size = set.size != 0;
        if let Some(list) = description.get(NFTA_SET_DESC_CONCAT) {
            set.fields = fields(list, key_length)?;
        }
    }
    if (set.fields.len() > 1) != has_all(NFT_SET_CONCAT) {
        return Err(refuse(libc::EINVAL));
    }
    // The kernel has no set type that has ranges and that rules can add to.
    if has_all(NFT_SET_INTERVAL | NFT_SET_EVAL) {
        return Err(refuse(libc::EOPNOTSUPP));
    }
    Ok(set)
}

/// Reads the lengths of the fields of a concatenation.
fn fields(list: &[u8], key_length: u32) -> Result<Vec<u32>, Refusal> {
    let mut fields = Vec::new();
    for attribute in Attributes::new(list).map_while(Result::ok) {
        if attribute.kind != NFTA_LIST_ELEM {
            return Err(refuse(libc::EINVAL));
        }
        if fields.len() == MAX_FIELDS {
            return Err(refuse(libc::E2BIG));
        }
        let length = ParsedAttributes::read(attribute.payload, FIELD)?.u32(NFTA_SET_FIELD_LEN);
        match length {
            Some(length) if length > 0 && length <= MAX_KEY_LENGTH => fields.push(length),
            _ => return Err(refuse(libc::EINVAL)),
        }
    }
    let registers: u32 = fields.iter().map(|length| length.div_ceil(4)).sum();
    if registers != key_length.div_ceil(4) {
        return Err(refuse(libc::EINVAL));
    }
    Ok(fields)
}
