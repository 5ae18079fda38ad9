//! Flowtables: connections whose packets the kernel forwards past all rules.
//!
//! A rule's `flow_offload` expression adds a connection to a flowtable. A kernel without flowtables
//! (`CONFIG_NF_FLOW_TABLE`) rejects their creation with `ENOENT`.

use std::fmt;

use chainwright_sys::netfilter::NF_NETDEV_INGRESS;
use chainwright_sys::nf_tables::{
    NFT_FLOWTABLE_COUNTER, NFT_FLOWTABLE_HW_OFFLOAD, NFT_MSG_DELFLOWTABLE,
    NFT_MSG_DESTROYFLOWTABLE, NFT_MSG_GETFLOWTABLE, NFT_MSG_NEWFLOWTABLE, NFTA_FLOWTABLE_FLAGS,
    NFTA_FLOWTABLE_HANDLE, NFTA_FLOWTABLE_HOOK, NFTA_FLOWTABLE_HOOK_DEVS, NFTA_FLOWTABLE_HOOK_NUM,
    NFTA_FLOWTABLE_HOOK_PRIORITY, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_PAD, NFTA_FLOWTABLE_TABLE,
    NFTA_FLOWTABLE_USE,
};

use super::declare::{attributes, flags, object};
use super::device::Devices;
use super::name::Name;
use super::object::{listed, written};
use super::{Family, Priority};

flags! {
    /// Flags of a flowtable (`enum nft_flowtable_flags`).
    pub struct FlowtableFlags: u32 {
        /// Offloaded to the network card.
        const HW_OFFLOAD = NFT_FLOWTABLE_HW_OFFLOAD,
        /// Counts packets and bytes per connection.
        const COUNTER = NFT_FLOWTABLE_COUNTER,
    }
}

attributes! {
    /// Attachment of a flowtable: `enum nft_flowtable_hook_attributes`.
    pub struct FlowtableHook<'a> {
        /// Hook number: `NF_NETDEV_INGRESS`.
        NFTA_FLOWTABLE_HOOK_NUM => number: u32,
        /// Priority at the hook; lower runs first.
        NFTA_FLOWTABLE_HOOK_PRIORITY => priority: i32,
        /// The devices whose packets it forwards.
        NFTA_FLOWTABLE_HOOK_DEVS => devices: Devices<'a>,
    }
}

object! {
    /// A flowtable to be sent to the kernel: `enum nft_flowtable_attributes`.
    pub struct Flowtable viewed as FlowtableRef, "a flowtable",
    written as [table, name, handle, hook, flags, references] {
        /// Name of the flowtable's table.
        NFTA_FLOWTABLE_TABLE => table: Name<'a> [required, table],
        /// Name of the flowtable.
        NFTA_FLOWTABLE_NAME => name: Name<'a> [required, name],
        /// Handle, assigned by the kernel.
        NFTA_FLOWTABLE_HANDLE => handle: u64 [required, handle],
        /// Number of rules that refer to it, set by the kernel.
        NFTA_FLOWTABLE_USE => references: u32 [kernel_set],
        /// Flags.
        NFTA_FLOWTABLE_FLAGS => flags: FlowtableFlags,
        /// Attachment to hook and devices.
        NFTA_FLOWTABLE_HOOK => hook: FlowtableHook<'a>,
        _ => NFTA_FLOWTABLE_PAD,
    }
}

impl<'a> Flowtable<'a> {
    /// Refers to the flowtable with this name, to delete it.
    #[doc(hidden)]
    pub fn named(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            ..Self::empty()
        }
    }

    /// Creates a flowtable for these devices, attached with this priority.
    pub fn new(
        family: Family,
        table: impl Into<Name<'a>>,
        name: impl Into<Name<'a>>,
        priority: impl Into<Priority>,
        devices: Devices<'a>,
    ) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            hook: Some(FlowtableHook {
                number: Some(NF_NETDEV_INGRESS),
                priority: Some(priority.into().0),
                devices: Some(devices),
                ..FlowtableHook::default()
            }),
            ..Self::empty()
        }
    }
}

// Deletions omit the hook: a hook in a deletion removes its devices, not the flowtable.
written!(
    Flowtable,
    "flowtable",
    [
        NFT_MSG_NEWFLOWTABLE,
        NFT_MSG_GETFLOWTABLE,
        NFT_MSG_DELFLOWTABLE,
        NFT_MSG_DESTROYFLOWTABLE
    ]
);

listed!(
    Flowtable as FlowtableRef by Scope,
    "list flowtables",
    BY_KERNEL = true
);

/// Formats the flowtable as `nft --debug=netlink` does when adding one (libnftnl 1.2.4), except for
/// the hook's name, for which libnftnl prints the first hook of IP chains.
impl fmt::Display for FlowtableRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hook = self.hook().unwrap_or_default();
        write!(
            f,
            "flow table {} {} use {} size 0 flags {:x} hook ",
            self.table(),
            self.name(),
            self.references.unwrap_or_default(),
            self.flags.unwrap_or_default().bits(),
        )?;
        match hook.number {
            Some(NF_NETDEV_INGRESS) => f.write_str("ingress")?,
            Some(number) => write!(f, "{number}")?,
            None => f.write_str("none")?,
        }
        write!(f, " prio {}  dev {{ ", hook.priority.unwrap_or_default())?;
        for device in hook.devices.iter().flatten() {
            write!(f, " {device} ")?;
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::objects::{assert_built, bytes_of};

    #[test]
    fn built() {
        let sent = Flowtable {
            flags: Some(FlowtableFlags::empty()),
            ..Flowtable::new(Family::IP, "t", "f", 0, Devices::new(["lo"]))
        };
        assert_built("flowtable", "one device", &sent);
        let listed = Flowtable {
            handle: Some(2),
            references: Some(1),
            flags: Some(FlowtableFlags::COUNTER),
            ..Flowtable::new(Family::IP, "t", "f", -10, Devices::new(["lo", "v0"]))
        };
        assert_built("flowtable", "two devices, listed", &listed);
    }

    #[test]
    fn a_truncated_hook_is_refused() {
        let listed = bytes_of("flowtable", "two devices, listed");
        for end in 0..listed.len() {
            // The last attribute may lack its padding.
            let whole = end + 4 > listed.len();
            let hook = FlowtableRef::of_payload(&listed[..end]).is_ok_and(|f| f.hook.is_some());
            assert!(whole || !hook, "{end}");
        }
    }
}
