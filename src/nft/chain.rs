//! Chains: lists of rules, attached to a hook (base chains) or reached by jumps.

use std::ops::{Add, Sub};

use chainwright_sys::netfilter::{
    NF_ACCEPT, NF_DROP, NF_INET_FORWARD, NF_INET_INGRESS, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT,
    NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING, NF_NETDEV_EGRESS, NF_NETDEV_INGRESS,
};
use chainwright_sys::netfilter_ipv4::{
    NF_IP_PRI_FILTER, NF_IP_PRI_MANGLE, NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC, NF_IP_PRI_RAW,
    NF_IP_PRI_SECURITY,
};
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BASE, NFT_CHAIN_BINDING, NFT_CHAIN_HW_OFFLOAD, NFT_MSG_DELCHAIN,
    NFT_MSG_DESTROYCHAIN, NFT_MSG_GETCHAIN, NFT_MSG_NEWCHAIN, NFTA_CHAIN_COUNTERS,
    NFTA_CHAIN_FLAGS, NFTA_CHAIN_HANDLE, NFTA_CHAIN_HOOK, NFTA_CHAIN_ID, NFTA_CHAIN_NAME,
    NFTA_CHAIN_PAD, NFTA_CHAIN_POLICY, NFTA_CHAIN_TABLE, NFTA_CHAIN_TYPE, NFTA_CHAIN_USE,
    NFTA_CHAIN_USERDATA, NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS, NFTA_COUNTER_PAD, NFTA_HOOK_DEV,
    NFTA_HOOK_DEVS, NFTA_HOOK_HOOKNUM, NFTA_HOOK_PRIORITY,
};

use super::Family;
use super::declare::{attributes, flags, object, values};
use super::device::Devices;
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::commented;
use crate::escape::Escaped;

values! {
    /// Verdict for packets that reach the end of a base chain (`linux/netfilter.h`).
    ///
    /// This is not `iptables::Policy`, because a newer kernel may use other values than
    /// these two. `From` converts that type to this one, `TryFrom` this one to that.
    pub struct Policy: u32 {
        /// Accepts the packet.
        ACCEPT = NF_ACCEPT as u32 => "accept",
        /// Drops the packet.
        DROP = NF_DROP as u32 => "drop",
    }
}

flags! {
    /// Flags of a chain.
    pub struct ChainFlags: u32 {
        /// A base chain; set by the kernel.
        const BASE = NFT_CHAIN_BASE,
        /// Offloaded to the network card.
        const HW_OFFLOAD = NFT_CHAIN_HW_OFFLOAD,
        /// Bound to the only rule that jumps to it.
        const BINDING = NFT_CHAIN_BINDING,
    }
}

attributes! {
    /// Attachment of a base chain: `enum nft_hook_attributes`.
    pub struct Hook<'a> {
        /// Hook number; its meaning depends on the family, see [`hook_name`].
        NFTA_HOOK_HOOKNUM => number: u32,
        /// Priority among the chains of the hook; lower runs first.
        NFTA_HOOK_PRIORITY => priority: i32,
        /// The only device that a netdev chain is bound to.
        NFTA_HOOK_DEV => device: Name<'a> [device],
        /// The devices that a netdev chain is bound to.
        NFTA_HOOK_DEVS => devices: Devices<'a>,
    }
}

attributes! {
    /// Packets and bytes: `enum nft_counter_attributes`.
    ///
    /// This is not `iptables::Counters`, because each number is an attribute that may be
    /// missing, and the kernel may add others; `From` converts in both directions.
    pub struct Counters {
        /// Number of packets.
        NFTA_COUNTER_PACKETS => packets: u64,
        /// Number of bytes.
        NFTA_COUNTER_BYTES => bytes: u64,
        _ => NFTA_COUNTER_PAD,
    }
}

object! {
    /// A chain to be sent to the kernel: `enum nft_chain_attributes`.
    pub struct Chain viewed as ChainRef, "a chain",
    written as [
        table, name, id, handle, chain_type, policy, hook, counters, flags, references, userdata
    ] {
        /// Name of the chain's table.
        NFTA_CHAIN_TABLE => table: Name<'a> [required, table],
        /// Name of the chain.
        NFTA_CHAIN_NAME => name: Name<'a> [required, chain],
        /// Handle, assigned by the kernel.
        NFTA_CHAIN_HANDLE => handle: u64 [required, handle],
        /// Hook of a base chain.
        NFTA_CHAIN_HOOK => hook: Hook<'a>,
        /// Policy of a base chain.
        NFTA_CHAIN_POLICY => policy: Policy,
        /// Type of a base chain: `filter`, `nat` or `route`.
        NFTA_CHAIN_TYPE => chain_type: Name<'a>,
        /// Packets and bytes that the policy was applied to, if the base chain counts them.
        NFTA_CHAIN_COUNTERS => counters: Counters [counter],
        /// Flags.
        NFTA_CHAIN_FLAGS => flags: ChainFlags,
        /// Number of the chain's rules plus references to it, set by the kernel.
        NFTA_CHAIN_USE => references: u32 [kernel_set],
        /// Number by which rules of the same batch can refer to the chain.
        NFTA_CHAIN_ID => id: u32 [request_only],
        /// Data stored by user space, opaque to the kernel.
        NFTA_CHAIN_USERDATA => userdata: Bytes<'a> [userdata],
        _ => NFTA_CHAIN_PAD,
    }
}

commented!(Chain as ChainRef, CHAIN_COMMENT);

impl<'a> Chain<'a> {
    /// Creates a chain without a hook, as a target of jumps.
    pub fn new(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            ..Self::empty()
        }
    }

    /// Makes this a base chain with this type, hook and priority.
    ///
    /// ```
    /// use chainwright::nft::{Chain, Family, Hook, Priority};
    ///
    /// let chain = Chain::new(Family::IP, "proxy", "prerouting").with_hook(
    ///     "nat",
    ///     Hook::PREROUTING,
    ///     Priority::DSTNAT + 5,
    /// );
    /// let hook = chain.hook.unwrap_or_default();
    /// assert_eq!((hook.number, hook.priority), (Some(0), Some(-95)));
    /// ```
    #[must_use]
    pub fn with_hook(
        mut self,
        chain_type: impl Into<Name<'a>>,
        number: u32,
        priority: impl Into<Priority>,
    ) -> Self {
        self.chain_type = Some(chain_type.into());
        self.hook = Some(Hook {
            number: Some(number),
            priority: Some(priority.into().0),
            ..Hook::default()
        });
        self
    }

    /// Binds a base chain, whose hook must already be set, to these devices: in the netdev family, or at the ingress
    /// hook.
    #[must_use]
    pub fn with_devices(mut self, devices: Devices<'a>) -> Self {
        self.hook.get_or_insert_default().devices = Some(devices);
        self
    }

    /// Makes a base chain count the packets that its policy applies to, starting from these numbers.
    #[must_use]
    pub fn with_counters(mut self, packets: u64, bytes: u64) -> Self {
        self.counters = Some(Counters {
            packets: Some(packets),
            bytes: Some(bytes),
            ..Counters::default()
        });
        self
    }

    /// Sets the policy of a base chain.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }
}

impl ChainRef<'_> {
    /// Returns `true` if the chain is attached to a hook.
    #[inline]
    #[must_use]
    pub const fn is_base(&self) -> bool {
        self.hook.is_some()
    }
}

/// Hook numbers for [`Chain::with_hook`]; the valid ones depend on the family.
impl Hook<'_> {
    /// Before routing, for all incoming packets (IP families and bridge).
    pub const PREROUTING: u32 = NF_INET_PRE_ROUTING;
    /// Packets to this machine (IP families and bridge).
    pub const INPUT: u32 = NF_INET_LOCAL_IN;
    /// Forwarded packets (IP families and bridge).
    pub const FORWARD: u32 = NF_INET_FORWARD;
    /// Packets from this machine (IP families and bridge).
    pub const OUTPUT: u32 = NF_INET_LOCAL_OUT;
    /// After routing, for all outgoing packets (IP families and bridge).
    pub const POSTROUTING: u32 = NF_INET_POST_ROUTING;
    /// Packets received on a device, in the inet family (Linux 5.10).
    pub const INET_INGRESS: u32 = NF_INET_INGRESS;
    /// Packets received on a device, in the netdev family.
    pub const INGRESS: u32 = NF_NETDEV_INGRESS;
    /// Packets to be sent by a device, in the netdev family (Linux 5.16).
    pub const EGRESS: u32 = NF_NETDEV_EGRESS;
    /// Incoming ARP packets.
    pub const ARP_INPUT: u32 = 0;
    /// Outgoing ARP packets.
    pub const ARP_OUTPUT: u32 = 1;
}

/// Priority of a base chain among those of its hook; lower runs first: `Priority::DSTNAT + 5` runs after destination
/// NAT. The constants are named as in `nft` for the IP families and for devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i32);

impl Priority {
    /// Before connection tracking.
    pub const RAW: Self = Self(NF_IP_PRI_RAW);
    /// Packet modification.
    pub const MANGLE: Self = Self(NF_IP_PRI_MANGLE);
    /// Destination NAT.
    pub const DSTNAT: Self = Self(NF_IP_PRI_NAT_DST);
    /// Packet filtering.
    pub const FILTER: Self = Self(NF_IP_PRI_FILTER);
    /// Marks of security modules.
    pub const SECURITY: Self = Self(NF_IP_PRI_SECURITY);
    /// Source NAT.
    pub const SRCNAT: Self = Self(NF_IP_PRI_NAT_SRC);
}

impl From<i32> for Priority {
    fn from(number: i32) -> Self {
        Self(number)
    }
}

/// Adds to the number, saturating: runs later.
impl Add<i32> for Priority {
    type Output = Self;
    fn add(self, later: i32) -> Self {
        Self(self.0.saturating_add(later))
    }
}

/// Subtracts from the number, saturating: runs earlier.
impl Sub<i32> for Priority {
    type Output = Self;
    fn sub(self, earlier: i32) -> Self {
        Self(self.0.saturating_sub(earlier))
    }
}

/// Returns the hook's name as `nft` prints it: `prerouting`, `input`, …; `None` for a number that is invalid in this
/// family.
#[must_use]
pub const fn hook_name(family: Family, number: u32) -> Option<&'static str> {
    Some(match (family, number) {
        (Family::NETDEV, NF_NETDEV_INGRESS) => "ingress",
        (Family::NETDEV, NF_NETDEV_EGRESS) => "egress",
        (Family::ARP, 0) => "input",
        (Family::ARP, 1) => "output",
        (Family::INET, NF_INET_INGRESS) => "ingress",
        (Family::IP | Family::IP6 | Family::INET | Family::BRIDGE, NF_INET_PRE_ROUTING) => {
            "prerouting"
        }
        (Family::IP | Family::IP6 | Family::INET | Family::BRIDGE, NF_INET_LOCAL_IN) => "input",
        (Family::IP | Family::IP6 | Family::INET | Family::BRIDGE, NF_INET_FORWARD) => "forward",
        (Family::IP | Family::IP6 | Family::INET | Family::BRIDGE, NF_INET_LOCAL_OUT) => "output",
        (Family::IP | Family::IP6 | Family::INET | Family::BRIDGE, NF_INET_POST_ROUTING) => {
            "postrouting"
        }
        _ => return None,
    })
}

// Deletions omit the hook: a hook in a deletion removes its devices, not the chain.
written!(
    Chain,
    "chain",
    [
        NFT_MSG_NEWCHAIN,
        NFT_MSG_GETCHAIN,
        NFT_MSG_DELCHAIN,
        NFT_MSG_DESTROYCHAIN
    ]
);

listed!(Chain as ChainRef by Scope, "list chains");

/// Formats the chain's table and name for messages to the user.
impl std::fmt::Display for ChainRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (table, name) = (Escaped(self.table()), Escaped(self.name()));
        write!(f, "{} {table} {name}", self.family())
    }
}
