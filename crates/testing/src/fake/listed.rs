//! Lists objects like the kernel: the same attributes in the same order.

use std::borrow::Cow;
use std::collections::VecDeque;

use bstr::ByteSlice as _;
use chainwright_sys::nf_tables::{
    NFT_QUOTA_F_DEPLETED, NFT_SET_MAP, NFT_SET_OBJECT, NFT_SET_POL_PERFORMANCE, NFT_SET_TIMEOUT,
    NFT_TABLE_F_DORMANT, NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST, NFTA_CHAIN_COUNTERS,
    NFTA_CHAIN_FLAGS, NFTA_CHAIN_HANDLE, NFTA_CHAIN_HOOK, NFTA_CHAIN_NAME, NFTA_CHAIN_POLICY,
    NFTA_CHAIN_TABLE, NFTA_CHAIN_TYPE, NFTA_CHAIN_USE, NFTA_CHAIN_USERDATA, NFTA_COUNTER_BYTES,
    NFTA_COUNTER_PACKETS, NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_DEVICE_NAME, NFTA_EXPR_DATA,
    NFTA_EXPR_NAME, NFTA_FLOWTABLE_FLAGS, NFTA_FLOWTABLE_HANDLE, NFTA_FLOWTABLE_HOOK,
    NFTA_FLOWTABLE_HOOK_DEVS, NFTA_FLOWTABLE_HOOK_NUM, NFTA_FLOWTABLE_HOOK_PRIORITY,
    NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE, NFTA_FLOWTABLE_USE, NFTA_HOOK_DEV, NFTA_HOOK_DEVS,
    NFTA_HOOK_HOOKNUM, NFTA_HOOK_PRIORITY, NFTA_IMMEDIATE_DATA, NFTA_LIST_ELEM, NFTA_OBJ_DATA,
    NFTA_OBJ_HANDLE, NFTA_OBJ_NAME, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE, NFTA_OBJ_USE, NFTA_OBJ_USERDATA,
    NFTA_QUOTA_BYTES, NFTA_QUOTA_CONSUMED, NFTA_QUOTA_FLAGS, NFTA_RULE_CHAIN,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_POSITION, NFTA_RULE_TABLE,
    NFTA_RULE_USERDATA, NFTA_SET_COUNT, NFTA_SET_DATA_LEN, NFTA_SET_DATA_TYPE, NFTA_SET_DESC,
    NFTA_SET_DESC_CONCAT, NFTA_SET_DESC_SIZE, NFTA_SET_ELEM_DATA, NFTA_SET_ELEM_EXPIRATION,
    NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS, NFTA_SET_ELEM_KEY,
    NFTA_SET_ELEM_KEY_END, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_OBJREF, NFTA_SET_ELEM_TIMEOUT, NFTA_SET_ELEM_USERDATA,
    NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS, NFTA_SET_FIELD_LEN, NFTA_SET_FLAGS, NFTA_SET_GC_INTERVAL,
    NFTA_SET_HANDLE, NFTA_SET_KEY_LEN, NFTA_SET_KEY_TYPE, NFTA_SET_NAME, NFTA_SET_OBJ_TYPE,
    NFTA_SET_POLICY, NFTA_SET_TABLE, NFTA_SET_TIMEOUT, NFTA_SET_TYPE, NFTA_SET_USERDATA,
    NFTA_TABLE_FLAGS, NFTA_TABLE_HANDLE, NFTA_TABLE_NAME, NFTA_TABLE_OWNER, NFTA_TABLE_USE,
    NFTA_TABLE_USERDATA, NFTA_VERDICT_CHAIN,
};

use super::members::Member;
use super::state::{Chain, Data, Element, Flowtable, Reference, Rule, Set, StatefulObject, Table};
use super::wire::AttributeBuffer;
use chainwright::netlink::Attributes;

/// Table flags that are listed.
pub(super) const TABLE_FLAGS: u32 = NFT_TABLE_F_DORMANT | NFT_TABLE_F_OWNER | NFT_TABLE_F_PERSIST;

/// The part of an object that an event contains; for a deleted object only its identification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Whole,
    Gone,
}

pub(super) fn table(table: &Table, detail: Detail) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_TABLE_NAME, &table.name)
        .u32(NFTA_TABLE_USE, table.uses())
        .u64(NFTA_TABLE_HANDLE, table.handle);
    if detail == Detail::Gone {
        return out;
    }
    out.u32(NFTA_TABLE_FLAGS, table.flags & TABLE_FLAGS);
    if let Some(owner) = table.owner {
        out.u32(NFTA_TABLE_OWNER, owner);
    }
    if let Some(userdata) = &table.userdata {
        out.bytes(NFTA_TABLE_USERDATA, userdata);
    }
    out
}

pub(super) fn chain(table: &Table, chain: &Member<Chain>, detail: Detail) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_CHAIN_TABLE, &table.name)
        .text(NFTA_CHAIN_NAME, chain.name())
        .u64(NFTA_CHAIN_HANDLE, chain.handle);
    if detail == Detail::Gone {
        return out;
    }
    if let Some(base) = &chain.base {
        out.nest(NFTA_CHAIN_HOOK, |out| {
            out.u32(NFTA_HOOK_HOOKNUM, base.hook)
                .u32(NFTA_HOOK_PRIORITY, base.priority as u32);
            if base.has_devices {
                out.nest(NFTA_HOOK_DEVS, |out| {
                    for device in &base.devices {
                        out.text(NFTA_DEVICE_NAME, device);
                    }
                });
                if let [device] = &base.devices[..] {
                    out.text(NFTA_HOOK_DEV, device);
                }
            }
        });
        out.u32(NFTA_CHAIN_POLICY, base.policy)
            .text(NFTA_CHAIN_TYPE, &base.chain_type);
        if let Some((packets, bytes)) = base.counters {
            out.nest(NFTA_CHAIN_COUNTERS, |out| {
                out.u64(NFTA_COUNTER_PACKETS, packets)
                    .u64(NFTA_COUNTER_BYTES, bytes);
            });
        }
    }
    if chain.flags != 0 {
        out.u32(NFTA_CHAIN_FLAGS, chain.flags);
    }
    out.u32(NFTA_CHAIN_USE, chain.holds_and_uses());
    if let Some(userdata) = &chain.userdata {
        out.bytes(NFTA_CHAIN_USERDATA, userdata);
    }
    out
}

/// Lists a rule with the handle of the preceding one.
pub(super) fn rule(
    table: &Table,
    chain: &Member<Chain>,
    rule: &Rule,
    position: Option<u64>,
) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_RULE_TABLE, &table.name)
        .text(NFTA_RULE_CHAIN, chain.name())
        .u64(NFTA_RULE_HANDLE, rule.handle);
    if let Some(position) = position {
        out.u64(NFTA_RULE_POSITION, position);
    }
    let names = names(table, &rule.references);
    out.bytes(
        NFTA_RULE_EXPRESSIONS,
        &renamed(&rule.expressions, IN_RULE, names),
    );
    if let Some(userdata) = &rule.userdata {
        out.bytes(NFTA_RULE_USERDATA, userdata);
    }
    out
}

pub(super) fn set(table: &Table, set: &Member<Set>, detail: Detail) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_SET_TABLE, &table.name)
        .text(NFTA_SET_NAME, set.name())
        .u64(NFTA_SET_HANDLE, set.handle);
    if detail == Detail::Gone {
        return out;
    }
    if set.flags != 0 {
        out.u32(NFTA_SET_FLAGS, set.flags);
    }
    out.u32(NFTA_SET_KEY_TYPE, set.key_type)
        .u32(NFTA_SET_KEY_LEN, set.key_length);
    if set.flags & NFT_SET_MAP != 0 {
        out.u32(NFTA_SET_DATA_TYPE, set.data_type)
            .u32(NFTA_SET_DATA_LEN, set.data_length);
    }
    if set.flags & NFT_SET_OBJECT != 0 {
        out.u32(NFTA_SET_OBJ_TYPE, set.object_type);
    }
    if set.timeout != 0 {
        out.u64(NFTA_SET_TIMEOUT, set.timeout);
    }
    if set.gc_interval != 0 {
        out.u32(NFTA_SET_GC_INTERVAL, set.gc_interval);
    }
    if set.policy != NFT_SET_POL_PERFORMANCE {
        out.u32(NFTA_SET_POLICY, set.policy);
    }
    if let Some(userdata) = &set.userdata {
        out.bytes(NFTA_SET_USERDATA, userdata);
    }
    out.nest(NFTA_SET_DESC, |out| {
        if set.size != 0 {
            out.u32(NFTA_SET_DESC_SIZE, set.size);
        }
        if set.fields.len() > 1 {
            out.nest(NFTA_SET_DESC_CONCAT, |out| {
                for &length in &set.fields {
                    out.nest(NFTA_LIST_ELEM, |out| {
                        out.u32(NFTA_SET_FIELD_LEN, length);
                    });
                }
            });
        }
    });
    let count = set.count() / if set.is_tree() { 2 } else { 1 };
    out.text(NFTA_SET_TYPE, b"model").u32(NFTA_SET_COUNT, count);
    expressions(
        &mut out,
        [NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS],
        &set.expressions,
    );
    out
}

/// Lists elements of a set, as many as one message can hold.
pub(super) fn elements<'a>(
    table: &Table,
    set: &Member<Set>,
    elements: impl IntoIterator<Item = &'a Element>,
) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_SET_ELEM_LIST_TABLE, &table.name)
        .text(NFTA_SET_ELEM_LIST_SET, set.name())
        .nest(NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
            for element in elements {
                out.bytes(NFTA_LIST_ELEM, &self::element(table, set, element).0);
            }
        });
    out
}

/// Lists an element, without the enclosing attribute.
pub(super) fn element(table: &Table, set: &Set, element: &Element) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    let value = |out: &mut AttributeBuffer, kind, bytes: &[u8]| {
        out.nest(kind, |out| _ = out.bytes(NFTA_DATA_VALUE, bytes));
    };
    if let Some(key) = &element.key.key {
        value(&mut out, NFTA_SET_ELEM_KEY, key);
    }
    if let Some(last) = &element.last {
        value(&mut out, NFTA_SET_ELEM_KEY_END, last);
    }
    if let Some(data) = &element.data {
        let names = names(table, &element.references);
        out.bytes(NFTA_SET_ELEM_DATA, &renamed(data, IN_DATA, names));
    }
    expressions(
        &mut out,
        [NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS],
        &element.expressions,
    );
    if let Some((_, name)) = &element.object {
        out.text(NFTA_SET_ELEM_OBJREF, name);
    }
    if element.flags != 0 {
        out.u32(NFTA_SET_ELEM_FLAGS, element.flags);
    }
    if set.flags & NFT_SET_TIMEOUT != 0 {
        if element.timeout != set.timeout {
            out.u64(NFTA_SET_ELEM_TIMEOUT, element.timeout);
        }
        if element.timeout != 0 {
            out.u64(NFTA_SET_ELEM_EXPIRATION, element.expiration);
        }
    }
    if let Some(userdata) = &element.userdata {
        out.bytes(NFTA_SET_ELEM_USERDATA, userdata);
    }
    out
}

/// Writes one expression as a single attribute, several as a list.
fn expressions(out: &mut AttributeBuffer, [one, list]: [u16; 2], expressions: &[Vec<u8>]) {
    match expressions {
        [] => {}
        [expression] => _ = out.bytes(one, expression),
        several => {
            out.nest(list, |out| {
                for expression in several {
                    out.bytes(NFTA_LIST_ELEM, expression);
                }
            });
        }
    }
}

pub(super) fn object(
    table: &Table,
    object: &Member<StatefulObject>,
    detail: Detail,
) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_OBJ_TABLE, &table.name)
        .text(NFTA_OBJ_NAME, object.name())
        .u32(NFTA_OBJ_TYPE, object.object_type)
        .u64(NFTA_OBJ_HANDLE, object.handle);
    if detail == Detail::Gone {
        return out;
    }
    out.u32(NFTA_OBJ_USE, object.uses);
    match &object.data {
        Data::Listed(data) => _ = out.bytes(NFTA_OBJ_DATA, data),
        Data::Quota {
            bytes,
            consumed,
            flags,
        } => {
            let depleted = if consumed >= bytes {
                NFT_QUOTA_F_DEPLETED
            } else {
                0
            };
            out.nest(NFTA_OBJ_DATA, |out| {
                out.u64(NFTA_QUOTA_BYTES, *bytes)
                    .u64(NFTA_QUOTA_CONSUMED, *consumed.min(bytes))
                    .u32(NFTA_QUOTA_FLAGS, flags | depleted);
            });
        }
    }
    if let Some(userdata) = &object.userdata {
        out.bytes(NFTA_OBJ_USERDATA, userdata);
    }
    out
}

pub(super) fn flowtable(
    table: &Table,
    flowtable: &Member<Flowtable>,
    detail: Detail,
) -> AttributeBuffer {
    let mut out = AttributeBuffer::default();
    out.text(NFTA_FLOWTABLE_TABLE, &table.name)
        .text(NFTA_FLOWTABLE_NAME, flowtable.name())
        .u64(NFTA_FLOWTABLE_HANDLE, flowtable.handle);
    if detail == Detail::Gone {
        return out;
    }
    out.u32(NFTA_FLOWTABLE_USE, flowtable.uses)
        .u32(NFTA_FLOWTABLE_FLAGS, flowtable.flags)
        .nest(NFTA_FLOWTABLE_HOOK, |out| {
            out.u32(NFTA_FLOWTABLE_HOOK_NUM, flowtable.hook)
                .u32(NFTA_FLOWTABLE_HOOK_PRIORITY, flowtable.priority as u32)
                .nest(NFTA_FLOWTABLE_HOOK_DEVS, |out| {
                    for device in &flowtable.devices {
                        out.text(NFTA_DEVICE_NAME, device);
                    }
                });
        });
    out
}

/// Attribute paths of chain names in a rule's expressions and in an element's data.
const IN_RULE: &[u16] = &[
    NFTA_LIST_ELEM,
    NFTA_EXPR_DATA,
    NFTA_IMMEDIATE_DATA,
    NFTA_DATA_VERDICT,
    NFTA_VERDICT_CHAIN,
];
const IN_DATA: &[u16] = &[NFTA_DATA_VERDICT, NFTA_VERDICT_CHAIN];

/// Returns the current names of the referenced chains, if any chain was renamed.
fn names<'t>(table: &'t Table, references: &[Reference]) -> VecDeque<&'t [u8]> {
    if !table.has_renamed_chains {
        return VecDeque::new();
    }
    let handles = references.iter().filter_map(|reference| match reference {
        Reference::Chain(handle) => Some(*handle),
        _ => None,
    });
    let chains = handles.filter_map(|handle| table.chains.find_any(handle));
    chains.map(|chain| chain.name().as_bytes()).collect()
}

/// Replaces the attributes at the end of a path with these names, in order.
fn renamed<'b>(bytes: &'b [u8], path: &[u16], mut names: VecDeque<&[u8]>) -> Cow<'b, [u8]> {
    if names.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut out = AttributeBuffer::default();
    rename(bytes, path, &mut names, &mut out);
    Cow::Owned(out.0)
}

fn rename(bytes: &[u8], path: &[u16], names: &mut VecDeque<&[u8]>, out: &mut AttributeBuffer) {
    // Only `immediate` expressions refer to chains.
    let is_other = Some(path) == IN_RULE.get(1..)
        && Attributes::new(bytes).find(NFTA_EXPR_NAME) != Some(b"immediate\0");
    for attribute in Attributes::new(bytes).map_while(Result::ok) {
        let rest = path.split_first().filter(|_| !is_other);
        match rest.filter(|(kind, _)| **kind == attribute.kind) {
            None => _ = out.bytes(attribute.kind, attribute.payload),
            Some((_, [])) => match names.pop_front() {
                Some(name) => _ = out.text(attribute.kind, name),
                None => _ = out.bytes(attribute.kind, attribute.payload),
            },
            Some((_, rest)) => {
                out.nest(attribute.kind, |out| {
                    rename(attribute.payload, rest, names, out);
                });
            }
        }
    }
}
