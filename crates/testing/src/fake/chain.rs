//! Operations on chains.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::netlink::NLM_F_NONREC;
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BASE, NFT_CHAIN_BINDING, NFT_CHAIN_HW_OFFLOAD, NFTA_CHAIN_COUNTERS, NFTA_CHAIN_FLAGS,
    NFTA_CHAIN_HANDLE, NFTA_CHAIN_HOOK, NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_CHAIN_POLICY,
    NFTA_CHAIN_TABLE, NFTA_CHAIN_TYPE, NFTA_CHAIN_USERDATA, NFTA_COUNTER_BYTES,
    NFTA_COUNTER_PACKETS, NFTA_DEVICE_NAME, NFTA_HOOK_DEV, NFTA_HOOK_DEVS, NFTA_HOOK_HOOKNUM,
    NFTA_HOOK_PRIORITY,
};

use super::events::{ChainUpdate, Step};
use super::members::ObjectKind;
use super::state::{Base, Chain};
use super::tx_state::{Operation, TxState};
use super::wire::{NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse, text};
use chainwright::netlink::Attributes;
use chainwright::nft::{Family, Hook};

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_CHAIN_TABLE, NAME),
    (NFTA_CHAIN_HANDLE, U64),
    (NFTA_CHAIN_NAME, NAME),
    (NFTA_CHAIN_HOOK, Policy::Any),
    (NFTA_CHAIN_POLICY, U32),
    (NFTA_CHAIN_TYPE, Policy::Text(15)),
    (NFTA_CHAIN_COUNTERS, Policy::Any),
    (NFTA_CHAIN_FLAGS, U32),
    (NFTA_CHAIN_ID, U32),
    (NFTA_CHAIN_USERDATA, Policy::Binary(256)),
];

const HOOK: &[(u16, Policy)] = &[
    (NFTA_HOOK_HOOKNUM, U32),
    (NFTA_HOOK_PRIORITY, U32),
    (NFTA_HOOK_DEV, Policy::Text(15)),
    (NFTA_HOOK_DEVS, Policy::Any),
];

const COUNTERS: &[(u16, Policy)] = &[(NFTA_COUNTER_PACKETS, U64), (NFTA_COUNTER_BYTES, U64)];

const CHAIN_FLAGS: u32 = NFT_CHAIN_BASE | NFT_CHAIN_HW_OFFLOAD | NFT_CHAIN_BINDING;
/// `NF_IP_PRI_CONNTRACK`: chains of type nat need a higher priority.
const CONNTRACK: i32 = -200;

/// Returns the hooks that a chain of this family and type may have, as bits; `None` for an unknown type.
fn hooks(family: u8, chain_type: &BStr) -> Option<u32> {
    const ALL: u32 = 0b1_1111;
    const FORWARD: u32 = 1 << Hook::FORWARD;
    const OUTPUT: u32 = 1 << Hook::OUTPUT;
    Some(match (chain_type.as_bytes(), Family(family)) {
        (b"filter", Family::IP | Family::IP6 | Family::BRIDGE) => ALL,
        (b"filter", Family::INET) => ALL | 1 << Hook::INET_INGRESS,
        // Input and output for arp, ingress and egress for netdev.
        (b"filter", Family::ARP | Family::NETDEV) => 0b11,
        (b"nat", Family::IP | Family::IP6 | Family::INET) => ALL & !FORWARD,
        (b"route", Family::IP | Family::IP6 | Family::INET) => OUTPUT,
        _ => return None,
    })
}

impl TxState {
    pub(super) fn new_chain(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let family = operation.family;
        let number = self.table_by(operation, &given, NFTA_CHAIN_TABLE)?;
        let table = &self.state.tables[number];
        let name = given.text(NFTA_CHAIN_NAME);
        let known = match (given.u64(NFTA_CHAIN_HANDLE), name) {
            (Some(handle), _) => Some(
                table
                    .chains
                    .of(handle)
                    .map_err(|refusal| refusal.at(NFTA_CHAIN_HANDLE))?,
            ),
            (None, Some(name)) => table.chains.named(name).ok(),
            (None, None) if given.has(NFTA_CHAIN_ID) => None,
            (None, None) => return Err(refuse(libc::EINVAL)),
        };
        let known_chain = known.map(|at| &table.chains[at]);
        let is_base = known_chain.is_some_and(|chain| chain.base.is_some());
        let policy = given.u32(NFTA_CHAIN_POLICY);
        if let Some(policy) = policy {
            let may_have_one = match known_chain {
                Some(_) => is_base,
                None => given.has(NFTA_CHAIN_HOOK),
            };
            if !may_have_one {
                return Err(refuse(libc::EOPNOTSUPP).at(NFTA_CHAIN_POLICY));
            }
            if policy != NF_DROP as u32 && policy != NF_ACCEPT as u32 {
                return Err(refuse(libc::EINVAL));
            }
        }
        let flags = match (given.u32(NFTA_CHAIN_FLAGS), known_chain) {
            (Some(flags), _) => flags,
            (None, Some(chain)) => chain.flags,
            (None, None) => 0,
        };
        if flags & !CHAIN_FLAGS != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        if let (Some(at), Some(chain)) = (known, known_chain) {
            if chain.is_binding() {
                return Err(refuse(libc::EINVAL));
            }
            let named_by = match given.has(NFTA_CHAIN_HANDLE) {
                true => NFTA_CHAIN_HANDLE,
                false => NFTA_CHAIN_NAME,
            };
            operation.check_existing(named_by)?;
            let flags = flags | chain.flags & NFT_CHAIN_BASE;
            return self.update_chain(operation, &given, number, at, flags);
        }
        let base = match given.get(NFTA_CHAIN_HOOK) {
            Some(hook) => {
                // The same transaction changed the table's dormant or owner flag.
                let table = self.state.tables[number].handle;
                if self.updated_tables.contains(&table) {
                    return Err(refuse(libc::EINVAL));
                }
                if flags & NFT_CHAIN_BINDING != 0 {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                let mut base = self.hook(family, &given, hook, None)?;
                base.policy = policy.unwrap_or(NF_ACCEPT as u32);
                base.counters = counters(&given)?;
                Some(base)
            }
            None if flags & NFT_CHAIN_BASE != 0 => return Err(refuse(libc::EINVAL)),
            None if flags & NFT_CHAIN_HW_OFFLOAD != 0 => return Err(refuse(libc::EOPNOTSUPP)),
            None => None,
        };
        if let Some(base) = base.as_ref().filter(|_| flags & NFT_CHAIN_HW_OFFLOAD != 0) {
            if base.has_devices && base.devices.is_empty() {
                return Err(refuse(libc::EINVAL));
            }
            // No device here supports offload; the priority range is that of hardware.
            if base.has_devices || !(1..=i32::from(u16::MAX)).contains(&base.priority) {
                return Err(refuse(libc::EOPNOTSUPP));
            }
        }
        let handle = self.table_mut(number).allocate_handle();
        let name = match name {
            Some(name) => name.to_owned(),
            None if flags & NFT_CHAIN_BINDING == 0 => return Err(refuse(libc::EINVAL)),
            None => {
                self.state.unnamed_chains += 1;
                BString::from(format!("__chain{}", self.state.unnamed_chains))
            }
        };
        let is_base = base.is_some();
        let chain = Chain {
            flags: flags | if is_base { NFT_CHAIN_BASE } else { 0 },
            base,
            userdata: given.get(NFTA_CHAIN_USERDATA).map(<[u8]>::to_vec),
            is_bound: false,
            rules: Vec::new(),
        };
        let table = self.table_mut(number);
        table.chains.add(name, handle, chain);
        let table = table.handle;
        if let Some(id) = given.u32(NFTA_CHAIN_ID) {
            self.chain_ids.entry(id).or_default().push((table, handle));
        }
        self.note(operation, number, Step::Member(ObjectKind::Chain, handle));
        Ok(())
    }

    fn update_chain(
        &mut self,
        operation: &Operation<'_>,
        given: &ParsedAttributes<'_>,
        number: usize,
        at: usize,
        flags: u32,
    ) -> Result<(), Refusal> {
        let chain = Arc::clone(&self.state.tables[number].chains[at]);
        if chain.flags ^ flags != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let mut added = Vec::new();
        if let Some(hook) = given.get(NFTA_CHAIN_HOOK) {
            let Some(base) = &chain.base else {
                return Err(refuse(libc::EEXIST).at(NFTA_CHAIN_HOOK));
            };
            let hook = self.hook(operation.family, given, hook, Some(base))?;
            if hook.chain_type != base.chain_type {
                return Err(refuse(libc::EEXIST).at(NFTA_CHAIN_HOOK));
            }
            if hook.hook != base.hook || hook.priority != base.priority {
                return Err(refuse(libc::EEXIST).at(NFTA_CHAIN_HOOK));
            }
            let mut devices = hook.devices;
            devices.retain(|device| !base.devices.contains(device));
            added = devices;
        }
        let name = match (given.has(NFTA_CHAIN_HANDLE), given.text(NFTA_CHAIN_NAME)) {
            (true, Some(name)) => {
                let table = &self.state.tables[number];
                let is_taken = table.chains.named(name).is_ok();
                if is_taken || self.is_renamed_to(number, name) {
                    return Err(refuse(libc::EEXIST).at(NFTA_CHAIN_NAME));
                }
                Some(name.to_owned())
            }
            _ => None,
        };
        let counters = counters(given)?;
        if counters.is_some() && chain.base.is_none() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let update = ChainUpdate {
            name,
            policy: given.u32(NFTA_CHAIN_POLICY),
            counters,
            added_devices: added,
            deleted_devices: Vec::new(),
        };
        self.note(operation, number, Step::ChainUpdate(chain.handle, update));
        Ok(())
    }

    /// Reads a hook; missing values come from the existing chain (`known`).
    fn hook(
        &self,
        family: u8,
        given: &ParsedAttributes<'_>,
        hook: &[u8],
        known: Option<&Base>,
    ) -> Result<Base, Refusal> {
        let hook_attributes = ParsedAttributes::read(hook, HOOK)?;
        let (number, priority) = (
            hook_attributes.u32(NFTA_HOOK_HOOKNUM),
            hook_attributes.u32(NFTA_HOOK_PRIORITY),
        );
        let (number, priority) = match (known, number, priority) {
            (Some(known), number, priority) => (
                number.unwrap_or(known.hook),
                priority.unwrap_or(known.priority as u32),
            ),
            (None, Some(number), Some(priority)) => (number, priority),
            _ => return Err(refuse(libc::ENOENT).at(NFTA_CHAIN_NAME)),
        };
        let priority = priority as i32;
        let chain_type = match (given.text(NFTA_CHAIN_TYPE), known) {
            (Some(chain_type), _) => chain_type,
            (None, Some(known)) => known.chain_type.as_bstr(),
            (None, None) => BStr::new("filter"),
        };
        if let Some(known) = known
            && (number != known.hook || priority != known.priority)
        {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let hooks_of_filter = hooks(family, BStr::new("filter"));
        if known.is_none() && hooks_of_filter.is_none() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let Some(hooks) = hooks(family, chain_type) else {
            return Err(refuse(libc::ENOENT).at(NFTA_CHAIN_TYPE));
        };
        if known.is_none() {
            if number >= 32 || hooks & 1 << number == 0 {
                return Err(refuse(libc::EOPNOTSUPP));
            }
            if chain_type == "nat" && priority <= CONNTRACK {
                return Err(refuse(libc::EOPNOTSUPP));
            }
        }
        let is_netdev = match Family(family) {
            Family::NETDEV => true,
            Family::INET => number == Hook::INET_INGRESS,
            _ => false,
        };
        let mut devices = Vec::new();
        if is_netdev {
            if let Some(device) = hook_attributes.text(NFTA_HOOK_DEV) {
                devices.push(device.to_owned());
            } else if let Some(list) = hook_attributes.get(NFTA_HOOK_DEVS) {
                devices = self.devices_of(list)?;
            }
        } else if hook_attributes.has(NFTA_HOOK_DEV) || hook_attributes.has(NFTA_HOOK_DEVS) {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        for device in &devices {
            if !self.devices.has(device) {
                return Err(refuse(libc::ENOENT));
            }
        }
        Ok(Base {
            chain_type: chain_type.to_owned(),
            hook: number,
            priority,
            has_devices: is_netdev,
            devices,
            policy: NF_ACCEPT as u32,
            counters: None,
        })
    }

    /// Reads a list of device names.
    pub(super) fn devices_of(&self, list: &[u8]) -> Result<Vec<BString>, Refusal> {
        let mut devices = Vec::new();
        for attribute in Attributes::new(list).map_while(Result::ok) {
            if attribute.kind != NFTA_DEVICE_NAME {
                return Err(refuse(libc::EINVAL));
            }
            let name = text(attribute.payload).to_owned();
            if devices.contains(&name) {
                return Err(refuse(libc::EEXIST));
            }
            devices.push(name);
        }
        Ok(devices)
    }

    /// Returns the index of the table that an operation names.
    pub(super) fn table_by(
        &self,
        operation: &Operation<'_>,
        given: &ParsedAttributes<'_>,
        kind: u16,
    ) -> Result<usize, Refusal> {
        let Some(name) = given.text(kind) else {
            return Err(refuse(libc::EINVAL));
        };
        (self.state)
            .table_named(operation.family, name, Some(self.port))
            .map_err(|refusal| refusal.at(kind))
    }

    pub(super) fn delete_chain(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let number = self.table_by(operation, &given, NFTA_CHAIN_TABLE)?;
        let table = &self.state.tables[number];
        let (found_by, found) = match given.u64(NFTA_CHAIN_HANDLE) {
            Some(handle) => (NFTA_CHAIN_HANDLE, table.chains.of(handle)),
            None => {
                let name = given.text(NFTA_CHAIN_NAME);
                let name = name.ok_or(refuse(libc::EINVAL).at(NFTA_CHAIN_NAME))?;
                (NFTA_CHAIN_NAME, table.chains.named(name))
            }
        };
        let Some(at) = operation.to_delete(found, found_by)? else {
            return Ok(());
        };
        let chain = Arc::clone(&table.chains[at]);
        if chain.is_binding() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        if let Some(hook) = given.get(NFTA_CHAIN_HOOK) {
            if operation.destroys() || chain.flags & NFT_CHAIN_HW_OFFLOAD != 0 {
                return Err(refuse(libc::EOPNOTSUPP));
            }
            if let Some(base) = &chain.base
                && base.has_devices
            {
                return self.delete_devices(operation, &given, hook, number, at);
            }
        }
        if operation.has(NLM_F_NONREC) && chain.holds_and_uses() > 0 {
            return Err(refuse(libc::EBUSY));
        }
        self.delete_all_rules(operation, number, at);
        // Counts jumps from the chain's own rules, although they were just deleted.
        if chain.uses > 0 {
            return Err(refuse(libc::EBUSY));
        }
        self.remove::<Chain>(operation, number, at);
        Ok(())
    }

    fn delete_devices(
        &mut self,
        operation: &Operation<'_>,
        given: &ParsedAttributes<'_>,
        hook: &[u8],
        number: usize,
        at: usize,
    ) -> Result<(), Refusal> {
        let chain = Arc::clone(&self.state.tables[number].chains[at]);
        let Some(base) = &chain.base else {
            return Err(refuse(libc::EOPNOTSUPP));
        };
        let gone = self
            .hook(operation.family, given, hook, Some(base))?
            .devices;
        if gone.iter().any(|device| !base.devices.contains(device)) {
            return Err(refuse(libc::ENOENT));
        }
        let update = ChainUpdate {
            deleted_devices: gone,
            ..ChainUpdate::default()
        };
        self.note(operation, number, Step::ChainUpdate(chain.handle, update));
        Ok(())
    }
}

/// Reads the packet and byte counters, if given.
fn counters(given: &ParsedAttributes<'_>) -> Result<Option<(u64, u64)>, Refusal> {
    let Some(counters) = given.get(NFTA_CHAIN_COUNTERS) else {
        return Ok(None);
    };
    let counters = ParsedAttributes::read(counters, COUNTERS)?;
    match (
        counters.u64(NFTA_COUNTER_PACKETS),
        counters.u64(NFTA_COUNTER_BYTES),
    ) {
        (Some(packets), Some(bytes)) => Ok(Some((packets, bytes))),
        _ => Err(refuse(libc::EINVAL)),
    }
}
