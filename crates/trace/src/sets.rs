//! Lookups in sets and maps.

use std::sync::{Arc, OnceLock};

use bstr::{BStr, BString};
use hashbrown::HashMap;

use super::nft::Bound;
use super::path_state::{PathState, Undetermined};
use super::registers::{Order, Registers, bits_of, ordered};
use super::rules::TableOfRules;
use super::value::{Bit, Test, Value};
use chainwright::nft::expr::{Data, Register};
use chainwright::nft::{DataType, ElementRef, SetFlags, SnapshotTable};

/// Maximum number of groups for a lookup with an unknown key.
const MAX_RESULTS: usize = 4096;

/// Set prepared for lookups.
#[derive(Debug)]
pub(super) struct Set<'s> {
    pub(super) name: &'s BStr,
    pub(super) key_length: usize,
    key_type: DataType,
    /// Maximum number of elements; 0 if there is none.
    size: usize,
    /// Whether rules or timeouts may change the elements.
    is_dynamic: bool,
    is_map: bool,
    element_index: ElementIndex<'s>,
    catch_all: Option<ElementRef<'s>>,
    /// Groups for lookups with unknown keys, created on first use.
    groups: OnceLock<ResultGroups<'s>>,
}

/// Keys grouped by their result, as numbers, with one element of each group.
#[derive(Debug)]
struct ResultGroups<'s> {
    keys: Vec<Vec<(u128, u128)>>,
    elements: Vec<ElementRef<'s>>,
}

/// Field of an element's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ElementField<'k> {
    /// Offset in the key.
    pub(super) at: usize,
    /// First value.
    pub(super) from: &'k [u8],
    /// Last value.
    pub(super) to: &'k [u8],
}

#[derive(Debug)]
enum ElementIndex<'s> {
    /// Single keys.
    Keys(HashMap<&'s [u8], ElementRef<'s>>),
    /// Sorted ranges.
    Ranges(Vec<(Vec<u8>, Vec<u8>, ElementRef<'s>)>),
    /// Concatenations with a range for each field: offsets and lengths of the fields, and the elements.
    Fields(
        Vec<(usize, usize)>,
        Vec<(&'s [u8], &'s [u8], ElementRef<'s>)>,
    ),
}

/// Result of a lookup.
#[derive(Debug)]
pub(super) enum Found<'s> {
    /// Element of the original set.
    Element(ElementRef<'s>),
    /// Element that a rule added during the trace.
    Added(AddedElement),
}

/// Change of a set by a rule during the trace.
#[derive(Debug, Clone)]
pub(super) struct SetChange {
    /// Number of the table.
    pub(super) table: usize,
    pub(super) set: BString,
    pub(super) element: AddedElement,
    pub(super) delete: bool,
}

/// Element that a rule added.
#[derive(Debug, Clone)]
pub(super) struct AddedElement {
    pub(super) key: Arc<[Bit]>,
    /// Data of a map element.
    pub(super) data: Arc<[Bit]>,
    /// Its expressions: the bound of each that has one.
    pub(super) bounds: Arc<[Option<Bound>]>,
}

impl SetChange {
    fn is_of(&self, table: &TableOfRules<'_>, set: &Set<'_>) -> bool {
        self.table == table.number && self.set == set.name
    }
}

impl<'s> Set<'s> {
    /// Reads a set of a table.
    pub(super) fn read(table: &SnapshotTable<'s>, name: &[u8]) -> Option<Self> {
        let snapshot_set = table.set(name)?;
        let set = snapshot_set.set();
        let flags = set.flags().unwrap_or_default();
        let key_length = set.key_length().unwrap_or_default() as usize;
        let description = set.description();
        let size = description
            .as_ref()
            .and_then(|description| description.size);
        let lengths: Vec<u32> = description
            .and_then(|description| description.fields)
            .map(|fields| fields.lengths().collect())
            .unwrap_or_default();
        let mut catch_all = None;
        let elements = snapshot_set.elements().filter(|element| {
            if element.is_catch_all() {
                catch_all = Some(*element);
            }
            !element.is_catch_all()
        });
        let element_index = if flags.contains(SetFlags::INTERVAL) && lengths.len() > 1 {
            let mut at = 0;
            let fields = lengths.iter().map(|length| {
                let field = (at, *length as usize);
                at += (*length as usize).next_multiple_of(4);
                field
            });
            let fields = fields.collect();
            let ranges = elements.filter_map(|element| {
                let from = element.key_bytes()?;
                Some((from, element.key_end_bytes().unwrap_or(from), element))
            });
            ElementIndex::Fields(fields, ranges.collect())
        } else if flags.contains(SetFlags::INTERVAL) {
            ElementIndex::Ranges(ranges(elements))
        } else {
            let keys = elements.filter_map(|element| Some((element.key_bytes()?, element)));
            ElementIndex::Keys(keys.collect())
        };
        Some(Self {
            name: set.name(),
            key_length,
            key_type: set.key_type().unwrap_or_default(),
            size: size.unwrap_or_default() as usize,
            is_dynamic: flags.intersects(SetFlags::EVAL | SetFlags::TIMEOUT),
            is_map: flags.intersects(SetFlags::MAP | SetFlags::OBJECT),
            element_index,
            catch_all,
            groups: OnceLock::new(),
        })
    }

    /// Formats a key, as far as it is known.
    pub(super) fn describe_key(&self, path_state: &PathState, bits: &[Bit]) -> String {
        let mut types = vec![self.key_type.0];
        while let [first, ..] = types[..]
            && first > 0x3f
        {
            types.insert(1, first & 0x3f);
            types[0] = first >> 6;
        }
        let mut rest = bits;
        let mut text = Vec::new();
        let last = types.len() - 1;
        for (index, data_type) in types.iter().enumerate() {
            let data_type = DataType(*data_type);
            let length = match data_type {
                _ if index == last => rest.len() / 8,
                DataType::IPV6_ADDR | DataType::IFNAME => 16,
                DataType::ETHER_ADDR | DataType::CGROUPSV2 => 8,
                _ => 4,
            };
            let (field, behind) = rest.split_at((length * 8).min(rest.len()));
            rest = behind;
            text.push(describe_field(path_state, data_type, field));
        }
        text.join(" . ")
    }

    /// Returns the element for a known key.
    fn find(&self, key: &[u8]) -> Option<ElementRef<'s>> {
        self.find_own(key).or(self.catch_all)
    }

    /// Returns `true` if rules cannot add an element, given their changes so far.
    pub(super) fn is_full(&self, table: &TableOfRules<'_>, changes: &[SetChange]) -> bool {
        let ElementIndex::Keys(keys) = &self.element_index else {
            return false;
        };
        let own = changes.iter().filter(|change| change.is_of(table, self));
        let (deleted, added): (Vec<_>, Vec<_>) = own.partition(|change| change.delete);
        self.size != 0 && keys.len() + added.len() >= self.size + deleted.len()
    }

    /// Returns the element for a known key, except for the catch-all element.
    pub(super) fn find_own(&self, key: &[u8]) -> Option<ElementRef<'s>> {
        match &self.element_index {
            ElementIndex::Keys(keys) => keys.get(key).copied(),
            ElementIndex::Ranges(ranges) => {
                let behind = ranges.partition_point(|(from, ..)| &from[..] <= key);
                let last = ranges[..behind].last();
                last.filter(|(_, to, _)| key <= &to[..])
                    .map(|(.., element)| *element)
            }
            ElementIndex::Fields(fields, elements) => {
                let within = |(from, to, _): &&(&[u8], &[u8], ElementRef<'_>)| {
                    fields.iter().all(|(at, length)| {
                        let part = *at..at + length;
                        let ends = (from.get(part.clone()), to.get(part.clone()));
                        match (key.get(part), ends) {
                            (Some(key), (Some(from), Some(to))) => from <= key && key <= to,
                            _ => false,
                        }
                    })
                };
                elements.iter().find(within).map(|(.., element)| *element)
            }
        }
    }

    /// Returns the fields of each element. The catch-all element has none.
    pub(super) fn fields(&self) -> Vec<Vec<ElementField<'_>>> {
        let one = |at, from, to| ElementField { at, from, to };
        let mut all: Vec<Vec<_>> = match &self.element_index {
            ElementIndex::Keys(keys) => keys.keys().map(|key| vec![one(0, key, key)]).collect(),
            ElementIndex::Ranges(ranges) => {
                let ranges = ranges.iter();
                ranges.map(|(from, to, _)| vec![one(0, from, to)]).collect()
            }
            ElementIndex::Fields(fields, elements) => {
                let of_element = |(from, to, _): &(&'s [u8], &'s [u8], _)| {
                    let fields = fields.iter().map(|(at, length)| {
                        let part = *at..at + length;
                        Some(one(*at, from.get(part.clone())?, to.get(part)?))
                    });
                    fields.collect::<Option<Vec<_>>>()
                };
                elements.iter().filter_map(of_element).collect()
            }
        };
        // Deterministic order.
        all.sort_unstable();
        all.extend(self.catch_all.map(|_| Vec::new()));
        all
    }

    /// Returns the element for an unknown key.
    fn test_value(
        &self,
        path_state: &mut PathState,
        bits: &[Bit],
    ) -> Result<Option<ElementRef<'s>>, Undetermined> {
        if bits.len() <= 128 && !matches!(self.element_index, ElementIndex::Fields(..)) {
            let ResultGroups { keys, elements } =
                self.groups.get_or_init(|| self.group_by_result());
            if keys.len() > MAX_RESULTS {
                return Err(self.too_many());
            }
            let found = path_state.select_group(&Value::of_bits(bits), keys)?;
            let found = found.and_then(|index| elements.get(index).copied());
            return Ok(found.or(self.catch_all));
        }
        let ask_one =
            |path_state: &mut PathState, from: &[u8], to: &[u8], fields: &[(usize, usize)]| {
                for (at, length) in fields {
                    let part = *at..at + length;
                    let (Some(bits), Some(from), Some(to)) = (
                        bits.get(at * 8..(at + length) * 8),
                        from.get(part.clone()),
                        to.get(part),
                    ) else {
                        return Ok(false);
                    };
                    let is = match from == to {
                        true => path_state.test_each(bits.iter().copied().zip(bools(from)))?,
                        false => {
                            let value = Value::of_bits(bits);
                            path_state.test_value(&value, Test::Within(number(from), number(to)))?
                        }
                    };
                    if !is {
                        return Ok(false);
                    }
                }
                Ok::<_, Undetermined>(true)
            };
        match &self.element_index {
            ElementIndex::Keys(keys) => {
                let whole = [(0, self.key_length)];
                // Deterministic order.
                let mut keys: Vec<_> = keys.iter().collect();
                keys.sort_unstable_by_key(|(key, _)| **key);
                for (key, element) in keys {
                    if ask_one(path_state, key, key, &whole)? {
                        return Ok(Some(*element));
                    }
                }
            }
            ElementIndex::Fields(fields, elements) => {
                for (from, to, element) in elements {
                    if ask_one(path_state, from, to, fields)? {
                        return Ok(Some(*element));
                    }
                }
            }
            ElementIndex::Ranges(_) => {
                return Err(Undetermined::unknown(format!(
                    "the key is unknown, and the ranges of {} are too long to compare it with",
                    self.name
                )));
            }
        }
        Ok(self.catch_all)
    }

    fn too_many(&self) -> Undetermined {
        Undetermined::unknown(format!(
            "the key is unknown, and {} has more than {MAX_RESULTS} different results",
            self.name
        ))
    }

    fn group_by_result(&self) -> ResultGroups<'s> {
        let mut all: Vec<(u128, u128, ElementRef<'s>)> = match &self.element_index {
            ElementIndex::Keys(keys) => keys
                .iter()
                .map(|(key, element)| (number(key), number(key), *element))
                .collect(),
            ElementIndex::Ranges(ranges) => ranges
                .iter()
                .map(|(from, to, element)| (number(from), number(to), *element))
                .collect(),
            ElementIndex::Fields(..) => Vec::new(),
        };
        all.sort_unstable_by_key(|(from, ..)| *from);
        let (mut keys, mut elements) = (Vec::new(), Vec::new());
        let mut by_data: HashMap<String, usize> = HashMap::new();
        for (from, to, element) in all {
            let group = match self.is_map || has_expressions(&element) {
                false => 0,
                true => {
                    let data = match has_expressions(&element) {
                        true => format!("{from}"), // each element has its own state
                        false => format!("{:?} {:?}", element.data(), element.object()),
                    };
                    let next = by_data.len();
                    *by_data.entry(data).or_insert(next)
                }
            };
            if group == keys.len() {
                keys.push(Vec::new());
                elements.push(element);
            }
            if let Some(group) = keys.get_mut(group) {
                group.push((from, to));
            }
        }
        ResultGroups { keys, elements }
    }
}

fn has_expressions(element: &ElementRef<'_>) -> bool {
    element.expression().is_some() || element.expressions().is_some()
}

/// Joins interval starts and ends to ranges.
fn ranges<'s>(
    elements: impl Iterator<Item = ElementRef<'s>>,
) -> Vec<(Vec<u8>, Vec<u8>, ElementRef<'s>)> {
    let mut ends: Vec<(&'s [u8], bool, ElementRef<'s>)> = elements
        .filter_map(|element| Some((element.key_bytes()?, !element.is_interval_end(), element)))
        .collect();
    // An end precedes a start at the same key.
    ends.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)));
    let mut found = Vec::with_capacity(ends.len() / 2 + 1);
    for (index, (from, begins, element)) in ends.iter().enumerate() {
        if !begins {
            continue;
        }
        let to = match ends.get(index + 1) {
            Some((next, ..)) => one_less(next),
            None => vec![0xff; from.len()],
        };
        found.push((from.to_vec(), to, *element));
    }
    found
}

/// Returns the previous key.
fn one_less(key: &[u8]) -> Vec<u8> {
    let mut less = key.to_vec();
    for byte in less.iter_mut().rev() {
        *byte = byte.wrapping_sub(1);
        if *byte != 0xff {
            break;
        }
    }
    less
}

/// Converts big-endian bytes to a number; of more than 16 bytes, only the last 16 count.
fn number(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn bools(bytes: &[u8]) -> impl Iterator<Item = bool> {
    bits_of(bytes).map(|bit| bit == Bit::Known(true))
}

/// Formats a field of a key.
fn describe_field(path_state: &PathState, data_type: DataType, bits: &[Bit]) -> String {
    use super::field::{Field, name_of, protocol_name};
    if bits.len() > 128 {
        return "a long key".to_owned();
    }
    let wide = Value::of_bits(bits);
    let Some(number) = path_state.known(&wide) else {
        return path_state.origin(&wide);
    };
    let length = bits.len() as u32;
    let first = |wanted: u32| match length.checked_sub(wanted) {
        Some(less) if less < 128 => number >> less,
        _ => number,
    };
    match data_type {
        DataType::IPV4_ADDR => Field::Source.value(first(32), 32),
        DataType::IPV6_ADDR => Field::Source.value(first(128), 128),
        DataType::INET_SERVICE => first(16).to_string(),
        DataType::INET_PROTO => {
            let number = first(8);
            protocol_name(number).map_or_else(|| number.to_string(), str::to_owned)
        }
        DataType::IFNAME => name_of(first(128)),
        DataType::MARK => {
            let host = Value::of_bits(&ordered(bits.to_vec(), Order::Host));
            format!("{:#x}", path_state.known(&host).unwrap_or(number))
        }
        _ => format!("{number:#x}"),
    }
}

impl PathState {
    /// Looks up the key in a register.
    ///
    /// # Errors
    /// The branch splits, or the register is invalid.
    pub(super) fn lookup<'s>(
        &mut self,
        registers: &Registers,
        changes: &[SetChange],
        table: &TableOfRules<'s>,
        set: &Set<'s>,
        register: Register,
    ) -> Result<Option<Found<'s>>, Undetermined> {
        let missing = || Undetermined::unknown("it looks up a register that does not exist");
        if changes.is_empty()
            && !(set.is_dynamic && self.context.sets_may_differ)
            && let Some(key) = registers.known(self, register, set.key_length)
        {
            return Ok(set.find(&key).map(Found::Element));
        }
        let bits = registers
            .bits(register, set.key_length)
            .ok_or_else(missing)?;
        if let Some(change) = self.last_change(changes, table, set, &bits)? {
            return Ok(match change.delete {
                true => set.catch_all.map(Found::Element),
                false => Some(Found::Added(change.element.clone())),
            });
        }
        let known = registers.known(self, register, set.key_length);
        if set.is_dynamic && self.context.sets_may_differ {
            let text = format!(
                "{} is in {}, which rules fill",
                set.describe_key(self, &bits),
                set.name
            );
            if !self.always(text)? {
                return Ok(None);
            }
            return match known.and_then(|key| set.find(&key)) {
                Some(element) => Ok(Some(Found::Element(element))),
                None if set.is_map => Err(Undetermined::unknown(format!(
                    "the value of {} for a key that rules may have added",
                    set.name
                ))),
                None => Ok(Some(Found::Added(AddedElement {
                    key: bits.into(),
                    data: [].into(),
                    bounds: [].into(),
                }))),
            };
        }
        match known {
            Some(key) => Ok(set.find(&key).map(Found::Element)),
            None => Ok(set.test_value(self, &bits)?.map(Found::Element)),
        }
    }

    /// Returns the last change of the element with this key by a rule.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn last_change<'c>(
        &mut self,
        changes: &'c [SetChange],
        table: &TableOfRules<'_>,
        set: &Set<'_>,
        key: &[Bit],
    ) -> Result<Option<&'c SetChange>, Undetermined> {
        for change in changes.iter().rev().filter(|one| one.is_of(table, set)) {
            if self.same(set, key, &change.element.key)? {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    /// Tests whether two keys are equal.
    fn same(&mut self, set: &Set<'_>, one: &[Bit], other: &[Bit]) -> Result<bool, Undetermined> {
        let mut bit_tests = Vec::new();
        for (one, other) in one.iter().zip(other) {
            match (*one, *other) {
                (one, other) if one == other => {}
                (Bit::Known(_), Bit::Known(_)) => return Ok(false),
                (Bit::Known(set), open) | (open, Bit::Known(set)) => bit_tests.push((open, set)),
                _ => {
                    return self.always(format!(
                        "an unknown key equals one that this packet added to {}",
                        set.name
                    ));
                }
            }
        }
        self.test_each(bit_tests.into_iter())
    }
}

/// Returns the bits of an element's data; empty if the data are not a value.
pub(super) fn data_bits(data: &Data<'_>) -> Vec<Bit> {
    match data.as_value() {
        Some(bytes) => bits_of(bytes).collect(),
        None => Vec::new(),
    }
}
