//! Operations on stateful objects.

use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFT_LIMIT_F_INV, NFT_LIMIT_PKT_BYTES, NFT_LIMIT_PKTS, NFT_OBJECT_COUNTER,
    NFT_OBJECT_CT_TIMEOUT, NFT_OBJECT_LIMIT, NFT_OBJECT_QUOTA, NFT_OBJECT_SYNPROXY,
    NFT_OBJECT_UNSPEC, NFT_QUOTA_F_DEPLETED, NFT_QUOTA_F_INV, NFTA_COUNTER_BYTES,
    NFTA_COUNTER_PACKETS, NFTA_CT_TIMEOUT_DATA, NFTA_CT_TIMEOUT_L3PROTO, NFTA_CT_TIMEOUT_L4PROTO,
    NFTA_LIMIT_BURST, NFTA_LIMIT_FLAGS, NFTA_LIMIT_RATE, NFTA_LIMIT_TYPE, NFTA_LIMIT_UNIT,
    NFTA_OBJ_DATA, NFTA_OBJ_HANDLE, NFTA_OBJ_NAME, NFTA_OBJ_TABLE, NFTA_OBJ_TYPE,
    NFTA_OBJ_USERDATA, NFTA_QUOTA_BYTES, NFTA_QUOTA_CONSUMED, NFTA_QUOTA_FLAGS,
};

use super::events::Step;
use super::members::ObjectKind;
use super::state::{Data, StatefulObject};
use super::tx_state::{Operation, TxState};
use super::wire::{AttributeBuffer, NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};
use chainwright::netlink::Attributes;

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_OBJ_TABLE, NAME),
    (NFTA_OBJ_NAME, NAME),
    (NFTA_OBJ_TYPE, U32),
    (NFTA_OBJ_DATA, Policy::Any),
    (NFTA_OBJ_HANDLE, U64),
    (NFTA_OBJ_USERDATA, Policy::Binary(256)),
];
const COUNTER: &[(u16, Policy)] = &[(NFTA_COUNTER_BYTES, U64), (NFTA_COUNTER_PACKETS, U64)];
const QUOTA: &[(u16, Policy)] = &[
    (NFTA_QUOTA_BYTES, U64),
    (NFTA_QUOTA_FLAGS, U32),
    (NFTA_QUOTA_CONSUMED, U64),
];
const LIMIT: &[(u16, Policy)] = &[
    (NFTA_LIMIT_RATE, U64),
    (NFTA_LIMIT_UNIT, U64),
    (NFTA_LIMIT_BURST, U32),
    (NFTA_LIMIT_TYPE, U32),
    (NFTA_LIMIT_FLAGS, U32),
];
/// Default burst of packet limits.
const BURST: u32 = 5;

impl TxState {
    pub(super) fn new_object(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        for kind in [NFTA_OBJ_TYPE, NFTA_OBJ_NAME, NFTA_OBJ_DATA] {
            given.needs(kind)?;
        }
        let number = self.table_by(operation, &given, NFTA_OBJ_TABLE)?;
        let object_type = given.u32(NFTA_OBJ_TYPE).unwrap_or_default();
        let name = given.text(NFTA_OBJ_NAME).unwrap_or_default();
        let data = given.get(NFTA_OBJ_DATA).unwrap_or_default();
        let table = &self.state.tables[number];
        if let Ok(at) = table.objects.of_type(object_type, name) {
            operation.check_existing(NFTA_OBJ_NAME)?;
            // Only quotas can be changed; the update of any other object has no effect.
            if object_type != NFT_OBJECT_QUOTA {
                return Ok(());
            }
            let made = made(object_type, data)?;
            // The used amount remains.
            let object = self.table_mut(number).objects.edit(at);
            if let (Data::Quota { consumed, .. }, Data::Quota { bytes, flags, .. }) =
                (&object.data, &made)
            {
                object.data = Data::Quota {
                    bytes: *bytes,
                    consumed: *consumed,
                    flags: *flags,
                };
            }
            let handle = object.handle;
            self.note(operation, number, Step::Member(ObjectKind::Object, handle));
            return Ok(());
        }
        if object_type == NFT_OBJECT_UNSPEC || object_type > NFT_OBJECT_SYNPROXY {
            return Err(refuse(libc::ENOENT));
        }
        let data = made(object_type, data)?;
        let object = StatefulObject {
            object_type,
            data,
            userdata: given.get(NFTA_OBJ_USERDATA).map(<[u8]>::to_vec),
        };
        let table = self.table_mut(number);
        let handle = table.allocate_handle();
        table.objects.add(name.to_owned(), handle, object);
        self.note(operation, number, Step::Member(ObjectKind::Object, handle));
        Ok(())
    }

    pub(super) fn delete_object(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let object_type = given.u32(NFTA_OBJ_TYPE).ok_or(refuse(libc::EINVAL))?;
        let (name, handle) = (given.text(NFTA_OBJ_NAME), given.u64(NFTA_OBJ_HANDLE));
        if name.is_none() && handle.is_none() {
            return Err(refuse(libc::EINVAL));
        }
        let number = self.table_by(operation, &given, NFTA_OBJ_TABLE)?;
        let table = &self.state.tables[number];
        let (found_by, found) = match handle {
            Some(handle) => {
                let is = |&at: &usize| table.objects[at].object_type == object_type;
                let found = table.objects.of(handle).ok().filter(is);
                (NFTA_OBJ_HANDLE, found.ok_or(refuse(libc::ENOENT)))
            }
            None => {
                let name = name.unwrap_or_default();
                (NFTA_OBJ_NAME, table.objects.of_type(object_type, name))
            }
        };
        let Some(at) = operation.to_delete(found, found_by)? else {
            return Ok(());
        };
        if table.objects[at].uses > 0 {
            return Err(refuse(libc::EBUSY).at(found_by));
        }
        self.remove::<StatefulObject>(operation, number, at);
        Ok(())
    }
}

/// Returns an object's data as the kernel stores it. Data of types without a case here are stored as received.
fn made(object_type: u32, data: &[u8]) -> Result<Data, Refusal> {
    let mut out = AttributeBuffer::default();
    match object_type {
        NFT_OBJECT_COUNTER => {
            let given = ParsedAttributes::read(data, COUNTER)?;
            let number = |kind| given.u64(kind).unwrap_or(0);
            out.u64(NFTA_COUNTER_BYTES, number(NFTA_COUNTER_BYTES))
                .u64(NFTA_COUNTER_PACKETS, number(NFTA_COUNTER_PACKETS));
        }
        NFT_OBJECT_QUOTA => {
            let given = ParsedAttributes::read(data, QUOTA)?;
            let bytes = given.u64(NFTA_QUOTA_BYTES).ok_or(refuse(libc::EINVAL))?;
            if bytes > i64::MAX as u64 {
                return Err(refuse(libc::EOVERFLOW));
            }
            let consumed = given.u64(NFTA_QUOTA_CONSUMED).unwrap_or(0);
            if consumed > bytes {
                return Err(refuse(libc::EINVAL));
            }
            let flags = given.u32(NFTA_QUOTA_FLAGS).unwrap_or(0);
            if flags & !NFT_QUOTA_F_INV != 0 {
                return Err(refuse(
                    if flags & !(NFT_QUOTA_F_INV | NFT_QUOTA_F_DEPLETED) != 0 {
                        libc::EINVAL
                    } else {
                        libc::EOPNOTSUPP
                    },
                ));
            }
            return Ok(Data::Quota {
                bytes,
                consumed,
                flags,
            });
        }
        NFT_OBJECT_LIMIT => {
            let given = ParsedAttributes::read(data, LIMIT)?;
            let needed = |kind| given.u64(kind).ok_or(refuse(libc::EINVAL));
            let (rate, unit) = (needed(NFTA_LIMIT_RATE)?, needed(NFTA_LIMIT_UNIT)?);
            if rate == 0 {
                return Err(refuse(libc::EINVAL));
            }
            let limit_type = given.u32(NFTA_LIMIT_TYPE).unwrap_or(NFT_LIMIT_PKTS);
            let flags = given.u32(NFTA_LIMIT_FLAGS).unwrap_or(0);
            let mut burst = given.u32(NFTA_LIMIT_BURST).unwrap_or(0);
            match limit_type {
                NFT_LIMIT_PKTS if burst == 0 => burst = BURST,
                NFT_LIMIT_PKTS | NFT_LIMIT_PKT_BYTES => {}
                _ => return Err(refuse(libc::EOPNOTSUPP)),
            }
            if flags & !NFT_LIMIT_F_INV != 0 {
                return Err(refuse(libc::EOPNOTSUPP));
            }
            out.u64(NFTA_LIMIT_RATE, rate)
                .u64(NFTA_LIMIT_UNIT, unit)
                .u32(NFTA_LIMIT_BURST, burst)
                .u32(NFTA_LIMIT_TYPE, limit_type)
                .u32(NFTA_LIMIT_FLAGS, flags);
        }
        NFT_OBJECT_CT_TIMEOUT => {
            // For missing states the kernel lists its own timeouts, which the fake kernel doesn't know.
            let order = [
                (NFTA_CT_TIMEOUT_L4PROTO, NFTA_CT_TIMEOUT_L4PROTO),
                (NFTA_CT_TIMEOUT_L3PROTO, NFTA_CT_TIMEOUT_L3PROTO),
                // The only nested attribute that the kernel lists with the nested flag.
                (NFTA_CT_TIMEOUT_DATA, NFTA_CT_TIMEOUT_DATA | NLA_F_NESTED),
            ];
            for (kind, listed) in order {
                if let Some(payload) = Attributes::new(data).find(kind) {
                    out.bytes(listed, payload);
                }
            }
        }
        _ => return Ok(Data::Listed(super::program::plain(data))),
    }
    Ok(Data::Listed(out.0))
}
