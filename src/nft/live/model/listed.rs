//! Objects as the kernel lists them: its attributes in its order.

use chainwright_sys::nf_tables::*;

use super::state::{Chain, Element, Flowtable, Rule, Set, StatefulObject, Table};
use super::wire::Out;

/// Flags of a table that are listed.
pub(super) const TABLE_FLAGS: u32 = NFT_TABLE_F_DORMANT | NFT_TABLE_F_OWNER | NFT_TABLE_F_PERSIST;

/// What is told of something that goes is only which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Whole,
    Gone,
}

pub(super) fn table(table: &Table, telling: Telling) -> Out {
    let mut out = Out::default();
    out.text(NFTA_TABLE_NAME, &table.name)
        .u32(NFTA_TABLE_USE, table.uses())
        .u64(NFTA_TABLE_HANDLE, table.handle);
    if telling == Telling::Gone {
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

pub(super) fn chain(table: &Table, chain: &Chain, telling: Telling) -> Out {
    let mut out = Out::default();
    out.text(NFTA_CHAIN_TABLE, &table.name)
        .text(NFTA_CHAIN_NAME, &chain.name)
        .u64(NFTA_CHAIN_HANDLE, chain.handle);
    if telling == Telling::Gone {
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
    out.u32(NFTA_CHAIN_USE, chain.uses());
    if let Some(userdata) = &chain.userdata {
        out.bytes(NFTA_CHAIN_USERDATA, userdata);
    }
    out
}

/// A rule, and the handle of the one before it.
pub(super) fn rule(table: &Table, chain: &Chain, rule: &Rule, position: Option<u64>) -> Out {
    let mut out = Out::default();
    out.text(NFTA_RULE_TABLE, &table.name)
        .text(NFTA_RULE_CHAIN, &chain.name)
        .u64(NFTA_RULE_HANDLE, rule.handle);
    if let Some(position) = position {
        out.u64(NFTA_RULE_POSITION, position);
    }
    out.bytes(NFTA_RULE_EXPRESSIONS, &rule.expressions);
    if let Some(userdata) = &rule.userdata {
        out.bytes(NFTA_RULE_USERDATA, userdata);
    }
    out
}

pub(super) fn set(table: &Table, set: &Set, telling: Telling) -> Out {
    let mut out = Out::default();
    out.text(NFTA_SET_TABLE, &table.name)
        .text(NFTA_SET_NAME, &set.name)
        .u64(NFTA_SET_HANDLE, set.handle);
    if telling == Telling::Gone {
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
    out.text(NFTA_SET_TYPE, b"model")
        .u32(NFTA_SET_COUNT, set.count());
    match &set.expressions[..] {
        [] => {}
        [expression] => _ = out.bytes(NFTA_SET_EXPR, expression),
        several => {
            out.nest(NFTA_SET_EXPRESSIONS, |out| {
                for expression in several {
                    out.bytes(NFTA_LIST_ELEM, expression);
                }
            });
        }
    }
    out
}

/// Elements of a set, as many as one message may hold.
pub(super) fn elements<'a>(
    table: &Table,
    set: &Set,
    elements: impl IntoIterator<Item = &'a Element>,
) -> Out {
    let mut out = Out::default();
    out.text(NFTA_SET_ELEM_LIST_TABLE, &table.name)
        .text(NFTA_SET_ELEM_LIST_SET, &set.name)
        .nest(NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
            for element in elements {
                out.bytes(NFTA_LIST_ELEM, &element.listed);
            }
        });
    out
}

pub(super) fn object(table: &Table, object: &StatefulObject, telling: Telling) -> Out {
    let mut out = Out::default();
    out.text(NFTA_OBJ_TABLE, &table.name)
        .text(NFTA_OBJ_NAME, &object.name)
        .u32(NFTA_OBJ_TYPE, object.object_type)
        .u64(NFTA_OBJ_HANDLE, object.handle);
    if telling == Telling::Gone {
        return out;
    }
    out.u32(NFTA_OBJ_USE, object.uses)
        .bytes(NFTA_OBJ_DATA, &object.data);
    if let Some(userdata) = &object.userdata {
        out.bytes(NFTA_OBJ_USERDATA, userdata);
    }
    out
}

pub(super) fn flowtable(table: &Table, flowtable: &Flowtable, telling: Telling) -> Out {
    let mut out = Out::default();
    out.text(NFTA_FLOWTABLE_TABLE, &table.name)
        .text(NFTA_FLOWTABLE_NAME, &flowtable.name)
        .u64(NFTA_FLOWTABLE_HANDLE, flowtable.handle);
    if telling == Telling::Gone {
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
