//! Operations on flowtables.

use chainwright_sys::nf_tables::{
    NFT_FLOWTABLE_COUNTER, NFT_FLOWTABLE_HW_OFFLOAD, NFTA_FLOWTABLE_FLAGS, NFTA_FLOWTABLE_HANDLE,
    NFTA_FLOWTABLE_HOOK, NFTA_FLOWTABLE_HOOK_DEVS, NFTA_FLOWTABLE_HOOK_NUM,
    NFTA_FLOWTABLE_HOOK_PRIORITY, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE,
};

use super::events::Step;
use super::members::ObjectKind;
use super::state::Flowtable;
use super::tx_state::{Operation, TxState};
use super::wire::{NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};
use chainwright::nft::Family;

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_FLOWTABLE_TABLE, NAME),
    (NFTA_FLOWTABLE_NAME, NAME),
    (NFTA_FLOWTABLE_HOOK, Policy::Any),
    (NFTA_FLOWTABLE_HANDLE, U64),
    (NFTA_FLOWTABLE_FLAGS, U32),
];
const HOOK: &[(u16, Policy)] = &[
    (NFTA_FLOWTABLE_HOOK_NUM, U32),
    (NFTA_FLOWTABLE_HOOK_PRIORITY, U32),
    (NFTA_FLOWTABLE_HOOK_DEVS, Policy::Any),
];
/// `NF_NETDEV_INGRESS`, the only hook of flowtables.
const INGRESS: u32 = 0;

impl TxState {
    pub(super) fn new_flowtable(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        for kind in [
            NFTA_FLOWTABLE_TABLE,
            NFTA_FLOWTABLE_NAME,
            NFTA_FLOWTABLE_HOOK,
        ] {
            given.needs(kind)?;
        }
        let number = self.table_by(operation, &given, NFTA_FLOWTABLE_TABLE)?;
        let name = given.text(NFTA_FLOWTABLE_NAME).unwrap_or_default();
        let known = self.state.tables[number].flowtables.named(name).ok();
        if known.is_some() {
            operation.check_existing(NFTA_FLOWTABLE_NAME)?;
        }
        let flags = given.u32(NFTA_FLOWTABLE_FLAGS);
        if flags.unwrap_or(0) & !(NFT_FLOWTABLE_HW_OFFLOAD | NFT_FLOWTABLE_COUNTER) != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let family = Family(operation.family);
        if !matches!(family, Family::IP | Family::IP6 | Family::INET) {
            return Err(refuse(libc::ENOENT));
        }
        let hook = given.get(NFTA_FLOWTABLE_HOOK).unwrap_or_default();
        let hook = ParsedAttributes::read(hook, HOOK)?;
        let devices = match hook.get(NFTA_FLOWTABLE_HOOK_DEVS) {
            Some(list) => self.devices_of(list)?,
            None => Vec::new(),
        };
        if devices.iter().any(|device| !self.devices.has(device)) {
            return Err(refuse(libc::ENOENT));
        }
        let numbers = (
            hook.u32(NFTA_FLOWTABLE_HOOK_NUM),
            hook.u32(NFTA_FLOWTABLE_HOOK_PRIORITY),
        );
        let handle = match known {
            Some(at) => {
                let old = &self.state.tables[number].flowtables[at];
                let is_other = numbers.0.is_some_and(|number| number != old.hook)
                    || numbers
                        .1
                        .is_some_and(|priority| priority as i32 != old.priority)
                    || flags
                        .is_some_and(|flags| (flags ^ old.flags) & NFT_FLOWTABLE_HW_OFFLOAD != 0);
                if is_other {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                let flowtable = self.table_mut(number).flowtables.edit(at);
                for device in devices {
                    if !flowtable.devices.contains(&device) {
                        flowtable.devices.push(device);
                    }
                }
                flowtable.flags = flags.unwrap_or(flowtable.flags);
                flowtable.handle
            }
            None => {
                let (Some(hook), Some(priority)) = numbers else {
                    return Err(refuse(libc::EINVAL));
                };
                if hook != INGRESS {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                let flowtable = Flowtable {
                    hook,
                    priority: priority as i32,
                    devices,
                    flags: flags.unwrap_or(0),
                };
                let table = self.table_mut(number);
                let handle = table.allocate_handle();
                table.flowtables.add(name.to_owned(), handle, flowtable);
                handle
            }
        };
        self.note(
            operation,
            number,
            Step::Member(ObjectKind::Flowtable, handle),
        );
        Ok(())
    }

    pub(super) fn delete_flowtable(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let (name, handle) = (
            given.text(NFTA_FLOWTABLE_NAME),
            given.u64(NFTA_FLOWTABLE_HANDLE),
        );
        if name.is_none() && handle.is_none() {
            return Err(refuse(libc::EINVAL));
        }
        let number = self.table_by(operation, &given, NFTA_FLOWTABLE_TABLE)?;
        let table = &self.state.tables[number];
        let (found_by, found) = match handle {
            Some(handle) => (NFTA_FLOWTABLE_HANDLE, table.flowtables.of(handle)),
            None => {
                let name = name.unwrap_or_default();
                (NFTA_FLOWTABLE_NAME, table.flowtables.named(name))
            }
        };
        let Some(at) = operation.to_delete(found, found_by)? else {
            return Ok(());
        };
        if let Some(hook) = given.get(NFTA_FLOWTABLE_HOOK) {
            let hook = ParsedAttributes::read(hook, HOOK)?;
            let list = hook.get(NFTA_FLOWTABLE_HOOK_DEVS).unwrap_or_default();
            let gone = self.devices_of(list)?;
            let flowtable = self.table_mut(number).flowtables.edit(at);
            if gone
                .iter()
                .any(|device| !flowtable.devices.contains(device))
            {
                return Err(refuse(libc::ENOENT));
            }
            flowtable.devices.retain(|device| !gone.contains(device));
            let handle = flowtable.handle;
            self.note(
                operation,
                number,
                Step::Member(ObjectKind::Flowtable, handle),
            );
            return Ok(());
        }
        if table.flowtables[at].uses > 0 {
            return Err(refuse(libc::EBUSY).at(found_by));
        }
        self.remove::<Flowtable>(operation, number, at);
        Ok(())
    }
}
