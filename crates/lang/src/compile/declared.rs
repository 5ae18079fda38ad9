//! Compiles declarations of named sets, and reads existing sets.

use std::borrow::Cow;

use super::Compiler;
use super::constant::ExpectedType;
use super::elements::{RangeMerging, Ranges};
use super::load::Loaded;
use super::rule_builder::RuleBuilder;
use super::sets::{
    Data, SetSpec, SetUserData, has_length, in_order_of_ranges, noted_order, with_data, with_keys,
};
use crate::parse::Diagnostic;
use crate::parse::{Declared, ElementList, SetDeclaration, Verb};
use crate::syntax::{Element, Expr, Span};
use crate::value::fields as fields_of;
use crate::{typeof_, types};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::userdata::{self, BIG_ENDIAN, UserData};
use chainwright::nft::{
    DataType, Element as Bytes, Family, Name, Set, SetFlags, SetPolicy, SetRef, Snapshot,
};

impl Compiler<'_> {
    /// Records the existing sets.
    pub(crate) fn load_sets(&mut self, now: &Snapshot) {
        for table in now.tables() {
            let view = table.table();
            for set in table.sets() {
                let there = set;
                let set = set.set();
                if let Some(mut set_spec) = set_spec_of(&set) {
                    set_spec.has_elements = there.elements().next().is_some();
                    self.known_sets
                        .insert(view.family(), view.name(), set.name(), set_spec);
                }
            }
        }
    }

    /// Returns the fields of declared keys or data.
    fn fields(
        &mut self,
        declared: &Declared,
        family: Family,
        table: &Name<'static>,
    ) -> Result<Vec<ExpectedType>, Diagnostic> {
        match declared {
            Declared::Types(all) => Ok(all.iter().map(|one| ExpectedType::of(*one)).collect()),
            Declared::Typeof(expr) => {
                let rule_builder = RuleBuilder::new(self, family, table.clone());
                let parts = match expr {
                    Expr::Concat(parts) => &parts[..],
                    one => std::slice::from_ref(one),
                };
                if parts.len() > 1 {
                    parts
                        .iter()
                        .try_for_each(|part| rule_builder.check_part(part))?;
                }
                if parts
                    .iter()
                    .any(|part| matches!(part, Expr::Hash { key: Some(_), .. }))
                {
                    let message =
                        "nft crashes when it lists a set that is declared by `typeof jhash`";
                    return Err(rule_builder.error(message));
                }
                Ok(parts
                    .iter()
                    .map(|part| rule_builder.expected_type(part))
                    .collect())
            }
            Declared::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Compiles a command about a set or map.
    pub(crate) fn declare(
        &mut self,
        verb: Verb,
        declared: &SetDeclaration,
        elements: Option<&ElementList>,
    ) -> Result<(), Diagnostic> {
        let mut set = declared.set.clone();
        let (family, table, name) = (
            set.family,
            set.table.clone().unwrap_or_default(),
            set.name.clone().unwrap_or_default(),
        );
        match verb {
            Verb::Add | Verb::Create => {}
            Verb::Flush => {
                self.known_sets.fill(family, &table, &name, false);
                self.contents.empty(family, Some(&table), Some(&name));
                let flushed = self.tx.flush_set(&set.set_id()).map(|_| ());
                return self.fitted(flushed);
            }
            _ => {
                match &set.name {
                    Some(name) => self.forget_contents(family, Some(&table), Some(name)),
                    // A handle may refer to any set.
                    None => self.deleted.push((family, Some(table.to_vec()), None)),
                }
                return self.object(verb, &set);
            }
        }
        let Some((keys, span)) = &declared.keys else {
            let message = "a set needs the type of its keys: `type ipv4_addr` or `typeof ip saddr`";
            return Err(Diagnostic::new(self.span, message));
        };
        let expected_types = self.fields(keys, family, &table)?;
        self.check_types(&expected_types, *span)?;
        let data = match &declared.data {
            None => None,
            Some((Declared::Objects(object_type), _)) => Some(Data::Object(*object_type)),
            Some((Declared::Types(types), _)) if types[..] == [DataType::VERDICT] => {
                Some(Data::Verdict)
            }
            Some((data, span)) => {
                let fields = self.fields(data, family, &table)?;
                self.check_types(&fields, *span)?;
                Some(Data::Values {
                    fields,
                    is_interval: declared.data_is_interval,
                })
            }
        };
        let mut flags = set.flags.unwrap_or_default();
        // 0 means "not set".
        set.timeout = set.timeout.filter(|time| time.0 > 0);
        set.gc_interval = set.gc_interval.filter(|time| time.0 > 0);
        let key = (family, table.to_vec().into(), name.to_vec().into());
        if self.updated.contains(&key) && !self.is_static(&set) {
            flags |= SetFlags::EVAL;
        }
        if set.timeout.is_some() {
            flags |= SetFlags::TIMEOUT;
        }
        if set.gc_interval.is_some() && !flags.contains(SetFlags::TIMEOUT) {
            let message = "`gc-interval` needs elements with a timeout";
            return Err(Diagnostic::new(self.span, message).with_hint("add flags timeout"));
        }
        let is_interval = flags.contains(SetFlags::INTERVAL);
        if declared.auto_merge && !is_interval {
            let message = "`auto-merge` needs an interval set";
            return Err(Diagnostic::new(self.span, message).with_hint("add flags interval"));
        }
        if let Some((Declared::Typeof(expr), _)) = &declared.data {
            check_ipsec(expr, true).map_err(|message| Diagnostic::new(self.span, message))?;
        }
        if let Declared::Typeof(expr) = keys {
            check_ipsec(expr, is_interval)
                .map_err(|message| Diagnostic::new(self.span, message))?;
        }
        set.flags = Some(flags);
        // Defaults are not sent.
        set.policy = set
            .policy
            .filter(|policy| *policy != SetPolicy::PERFORMANCE);
        set = with_keys(set, &expected_types, is_interval);
        if let Some(data) = &data {
            set = with_data(set, data);
        }
        let is_typeof = matches!(keys, Declared::Typeof(_));
        let mut key_typeof = noted(keys, expected_types.len());
        let data_typeof = match (&declared.data, &data) {
            (Some(_), Some(Data::Verdict)) => is_typeof.then(typeof_::verdicts),
            (Some((declared, _)), Some(Data::Values { fields, .. })) => {
                let noted = noted(declared, fields.len());
                // Versions of nft read the expressions of both or of neither.
                let (key, data) = (&mut key_typeof, noted);
                let is_inexpressible = |one: &Declared, note: &Option<Vec<u8>>| {
                    matches!(one, Declared::Typeof(_)) && note.is_none()
                };
                if is_inexpressible(keys, key) || is_inexpressible(declared, &data) {
                    if !expected_types.iter().chain(fields).all(has_length) {
                        let message =
                            "nft's language cannot declare these key and data types together";
                        return Err(Diagnostic::new(self.span, message));
                    }
                    *key = (expected_types.len() > 1).then(typeof_::fields_of_types);
                    (fields.len() > 1).then(typeof_::fields_of_types)
                } else {
                    data
                }
            }
            _ => None,
        };
        let notes = SetUserData {
            key_order: order_of(keys, &expected_types),
            data_order: match (&declared.data, &data) {
                (Some((declared, _)), Some(Data::Values { fields, .. })) => {
                    order_of(declared, fields)
                }
                _ => 0,
            },
            data: data.as_ref(),
            merges: declared.auto_merge,
            key_typeof,
            data_typeof,
            comment: declared.comment.as_deref(),
        };
        let written = notes.write(&mut set);
        written.map_err(|error| Diagnostic::new(self.span, error.to_string()))?;
        let statements: Vec<_> = declared
            .statements
            .iter()
            .map(|(one, _)| one.clone())
            .collect();
        match &statements[..] {
            [] => {}
            [one] => set.expression = Some(self.nested(one)?),
            several => {
                set.expressions = Some(self.all_nested(several)?);
                set = set.with_flags(SetFlags::EXPR);
            }
        }
        if verb == Verb::Create {
            self.contents.empty(family, Some(&table), Some(&name));
        }
        self.declared += 1;
        let id = self.declared;
        set.id = Some(id);
        let keys = match is_interval {
            true => expected_types.into_iter().map(in_order_of_ranges).collect(),
            false => expected_types,
        };
        let set_spec = SetSpec {
            key_type: set.key_type.unwrap_or_default(),
            keys,
            data,
            is_interval,
            merges: declared.auto_merge,
            id: Some(id),
            has_elements: false,
            is_unclear: false,
        };
        let has_size = set.description.as_ref().is_some_and(|d| d.size.is_some());
        if flags.contains(SetFlags::CONSTANT) && !has_size {
            // The size of a constant set is that of its initial elements.
            let size = elements.map_or(Ok(0), |elements| self.count(&set_spec, elements, verb))?;
            set = set.with_size(size);
        }
        self.known_sets.insert(family, &table, &name, set_spec);
        self.object(verb, &set)
    }

    /// Returns `true` if the set exists and is not dynamic, in which case it cannot become dynamic.
    fn is_static(&self, set: &Set<'_>) -> bool {
        let name = |name: &Option<Name<'_>>| name.as_ref().map(|name| name.to_vec());
        let (of_table, of_set) = (name(&set.table), name(&set.name));
        let is_it =
            |wanted: &Option<Vec<u8>>, name: &Option<Vec<u8>>| wanted.is_none() || wanted == name;
        let is_deleted = self.deleted.iter().any(|(family, table, name)| {
            (*family == Family::UNSPEC || *family == set.family)
                && is_it(table, &of_table)
                && is_it(name, &of_set)
        });
        let there = self.now.and_then(|now| {
            let table = now.table(set.family, of_table.as_deref()?)?;
            table.set(of_set.as_deref()?)
        });
        let flags = there.map(|there| there.set().flags().unwrap_or_default());
        !is_deleted && flags.is_some_and(|flags| !flags.contains(SetFlags::EVAL))
    }

    fn check_types(&self, expected_types: &[ExpectedType], span: Span) -> Result<(), Diagnostic> {
        if expected_types.is_empty()
            || expected_types
                .iter()
                .any(|expected_type| expected_type.bits == 0)
        {
            let message = "keys and data need types of a known length: use `typeof` for numbers";
            return Err(Diagnostic::new(span, message));
        }
        let length: u32 = expected_types
            .iter()
            .map(|expected_type| expected_type.bits.div_ceil(32) * 4)
            .sum();
        if length > 64 {
            let message = format!("{length} bytes exceed the kernel's maximum of 64");
            return Err(Diagnostic::new(span, message));
        }
        Ok(())
    }

    /// Compiles the elements of a named set.
    pub(crate) fn elements_of<'e>(
        &'e self,
        set_spec: &'e SetSpec,
        elements: &'e ElementList,
        verb: Verb,
    ) -> Result<impl Iterator<Item = Result<Bytes<'static>, Diagnostic>> + 'e, Diagnostic> {
        if set_spec.is_unclear {
            let message = "the set does not record the byte order of its fields";
            return Err(Diagnostic::new(self.span, message));
        }
        let data = set_spec.data.as_ref().filter(|_| !is_deletion(verb));
        let (keys, elements) = of_verb(set_spec, elements, verb);
        let ranges = set_spec.ranges(verb);
        let (_, each) = self.each_element(keys, elements, set_spec.is_interval, data, ranges)?;
        Ok(each)
    }

    /// Returns the number of kernel elements.
    fn count(
        &self,
        set_spec: &SetSpec,
        elements: &ElementList,
        verb: Verb,
    ) -> Result<u32, Diagnostic> {
        let count = elements.len();
        let (keys, elements) = of_verb(set_spec, elements, verb);
        match (&keys[..], set_spec.is_interval) {
            ([key], true) => {
                let has_data = set_spec.data.is_some();
                let intervals = self.intervals(key, elements, has_data, set_spec.ranges(verb))?;
                Ok(intervals.size())
            }
            // A message cannot hold more.
            _ => Ok(count as u32),
        }
    }
}

/// Returns `true` if the verb refers to elements by key only.
pub(crate) const fn is_deletion(verb: Verb) -> bool {
    matches!(verb, Verb::Delete | Verb::Destroy)
}

/// Returns the fields of a set's keys, and the elements reduced to the parts that the verb uses.
pub(crate) fn of_verb<'e>(
    set_spec: &SetSpec,
    elements: &'e ElementList,
    verb: Verb,
) -> (Vec<Loaded>, impl Iterator<Item = Cow<'e, Element>>) {
    let keys = set_spec.keys.iter().copied().map(Loaded::of).collect();
    let is_interval = set_spec.is_interval;
    let elements = elements.iter().map(move |element| {
        if !is_deletion(verb) {
            return element;
        }
        let element = element.into_owned();
        // For deletion, nft sends only the key of an interval, and everything except data and statements for other
        // elements.
        Cow::Owned(match is_interval {
            true => Element::new(element.key),
            false => Element {
                data: None,
                statements: Vec::new(),
                ..element
            },
        })
    });
    (keys, elements)
}

impl SetSpec {
    pub(crate) fn ranges(&self, verb: Verb) -> Ranges<'static> {
        Ranges {
            joins: match is_deletion(verb) {
                _ if !self.merges => RangeMerging::None,
                // Each range is deleted on its own, because the set may contain it unmerged.
                true => RangeMerging::Overlapping,
                false => RangeMerging::Adjacent,
            },
            is_closed: true,
            begins: !is_deletion(verb) && !self.has_elements,
            are_deleted: is_deletion(verb),
            there: None,
        }
    }
}

/// Returns the byte order in the user data; nft writes none for some types.
fn order_of(declared: &Declared, expected_types: &[ExpectedType]) -> u32 {
    match declared {
        Declared::Types(types)
            if matches!(
                types[..],
                [DataType::NF_PROTO
                    | DataType::INET_PROTO
                    | DataType::DCCP_PKTTYPE
                    | DataType::CT_DIR
                    | DataType::BOOLEAN]
            ) =>
        {
            0
        }
        _ => noted_order(expected_types),
    }
}

/// Checks that nft can list a set of `ipsec` numbers, whose length does not follow from the type. nft 1.1.7 aborts at
/// nft 1.0.6's number of the `ipsec` expression if there is nothing else, and vice versa. The form that both read only
/// works for single keys.
fn check_ipsec(expr: &Expr, has_more: bool) -> Result<(), &'static str> {
    let is_number = matches!(expr, Expr::Xfrm { .. }) && expr.data_type() == DataType::INTEGER;
    match has_more && is_number {
        true => Err(
            "some versions of nft abort when they list ranges of ipsec `reqid` or `spi`, or a map to them",
        ),
        false => Ok(()),
    }
}

/// Returns the user data that nft writes for a declaration: the expression, or a marker for a concatenation.
fn noted(declared: &Declared, fields: usize) -> Option<Vec<u8>> {
    match declared {
        Declared::Typeof(expr) => typeof_::written(expr),
        Declared::Types(_) if fields > 1 => Some(typeof_::fields_of_types()),
        _ => None,
    }
}

/// Reads the structure of an existing set.
fn set_spec_of(set: &SetRef<'_>) -> Option<SetSpec> {
    let flags = set.flags().unwrap_or_default();
    let is_interval = flags.contains(SetFlags::INTERVAL);
    let key_type = set.key_type().unwrap_or_default();
    let described = set.description().and_then(|description| description.fields);
    let lengths: Vec<u32> = described
        .iter()
        .flat_map(|fields| fields.lengths())
        .collect();
    let noted = StoredByteOrder::of(set, userdata::SET_KEY_BYTE_ORDER, userdata::SET_KEY_TYPEOF);
    let (keys, mut is_unclear) = expected_types(key_type, set.key_length()?, &lengths, &noted);
    // Keys of interval sets are stored in network byte order.
    is_unclear &= !is_interval;
    let data = if flags.contains(SetFlags::OBJECT) {
        Some(Data::Object(set.object_type()?))
    } else if !flags.contains(SetFlags::MAP) {
        None
    } else if set.data_type() == Some(DataType::VERDICT) {
        Some(Data::Verdict)
    } else {
        let noted = set
            .userdata()
            .and_then(|data| UserData::new(data).number(userdata::SET_DATA_INTERVAL));
        let is_interval = noted.is_some_and(|number| number != 0);
        let mut length = set.data_length()?;
        if is_interval {
            length /= 2;
        }
        let noted = StoredByteOrder::of(
            set,
            userdata::SET_DATA_BYTE_ORDER,
            userdata::SET_DATA_TYPEOF,
        );
        let (fields, data_is_unclear) = expected_types(set.data_type()?, length, &[], &noted);
        is_unclear |= data_is_unclear;
        Some(Data::Values {
            fields,
            is_interval,
        })
    };
    Some(SetSpec {
        key_type,
        keys: match is_interval {
            true => keys.into_iter().map(in_order_of_ranges).collect(),
            false => keys,
        },
        data,
        is_interval,
        merges: set
            .userdata()
            .and_then(|data| UserData::new(data).number(userdata::SET_MERGE_ELEMENTS))
            .is_some_and(|number| number != 0),
        id: None,
        has_elements: false,
        is_unclear,
    })
}

/// User data about integers whose type does not determine the byte order.
struct StoredByteOrder {
    /// Byte order of a single value.
    order: ByteOrder,
    /// Byte order and length in bits of each field.
    fields: Vec<(ByteOrder, u32)>,
}

impl StoredByteOrder {
    fn of(set: &SetRef<'_>, order: u8, declared: u8) -> Self {
        let noted = set
            .userdata()
            .and_then(|data| UserData::new(data).number(order));
        Self {
            order: match noted {
                Some(BIG_ENDIAN) => ByteOrder::Network,
                _ => ByteOrder::Host,
            },
            fields: typeof_::fields(set, declared).unwrap_or_default(),
        }
    }
}

/// Returns the fields of keys or data, and whether the byte order of one of them is unknown.
fn expected_types(
    data_type: DataType,
    whole: u32,
    lengths: &[u32],
    noted: &StoredByteOrder,
) -> (Vec<ExpectedType>, bool) {
    let fields = fields_of(data_type);
    let mut is_unclear = false;
    let is_single = fields.len() == 1;
    let length = |bits: u32| match is_single {
        true => bits.div_ceil(8),
        false => bits.div_ceil(32) * 4,
    };
    // The user data may be too small for all fields.
    let of_fields = &noted.fields[..];
    let is_whole = of_fields.len() == fields.len()
        && of_fields.iter().map(|(_, bits)| length(*bits)).sum::<u32>() == whole;
    let of_fields = if is_whole { of_fields } else { &[] };
    let known: u32 = fields
        .iter()
        .map(|field| ExpectedType::of(*field).bits.div_ceil(32) * 4)
        .sum();
    let expected_types = fields
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let mut expected_type = ExpectedType::of(*field);
            let noted_field = of_fields.get(index);
            if let Some((_, bits)) = noted_field {
                expected_type.bits = *bits;
            }
            let bits = match (lengths.get(index), expected_type.bits) {
                (Some(length), _) => length * 8,
                _ if is_single => whole * 8,
                // A field of unknown length gets the remaining bytes.
                (None, 0) => whole.saturating_sub(known) * 8,
                (None, bits) => bits,
            };
            let order = match *field {
                DataType::INTEGER | DataType::VALUE | types::RAW => match noted_field {
                    Some((order, _)) => *order,
                    None => {
                        is_unclear |= !is_single && bits > 8;
                        noted.order
                    }
                },
                _ => expected_type.order,
            };
            ExpectedType {
                bits: match expected_type.bits {
                    0 => bits,
                    own if own.div_ceil(8) * 8 == bits => own,
                    _ => bits,
                },
                order,
                ..expected_type
            }
        })
        .collect();
    (expected_types, is_unclear)
}
