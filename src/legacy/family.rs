//! The three families of legacy tables, their hooks, and where each keeps what.

use std::fmt;
use std::mem::offset_of;

use chainwright_sys::arp_tables::{
    ARPT_SO_GET_ENTRIES, ARPT_SO_GET_INFO, ARPT_SO_GET_REVISION_TARGET, ARPT_SO_SET_ADD_COUNTERS,
    ARPT_SO_SET_REPLACE, arpt_arp, arpt_entry, arpt_get_entries, arpt_getinfo, arpt_replace,
};
use chainwright_sys::ip_tables::{
    IPT_F_GOTO, IPT_SO_GET_ENTRIES, IPT_SO_GET_INFO, IPT_SO_GET_REVISION_MATCH,
    IPT_SO_GET_REVISION_TARGET, IPT_SO_SET_ADD_COUNTERS, IPT_SO_SET_REPLACE, ipt_entry,
    ipt_get_entries, ipt_getinfo, ipt_ip, ipt_replace,
};
use chainwright_sys::ip6_tables::{
    IP6T_F_GOTO, IP6T_SO_GET_ENTRIES, IP6T_SO_GET_INFO, IP6T_SO_GET_REVISION_MATCH,
    IP6T_SO_GET_REVISION_TARGET, IP6T_SO_SET_ADD_COUNTERS, IP6T_SO_SET_REPLACE, ip6t_entry,
    ip6t_get_entries, ip6t_getinfo, ip6t_ip6, ip6t_replace,
};
use chainwright_sys::netfilter::{
    NF_ARP_FORWARD, NF_ARP_IN, NF_ARP_OUT, NF_INET_FORWARD, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT,
    NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING,
};

/// A family of legacy tables. Each has tables, a socket and a file of names of its own.
///
/// It is not [`xt::Family`](crate::xt::Family), because ARP has tables, but no matches and no tables of iptables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `ip_tables`: what `iptables-legacy` shows.
    Ipv4,
    /// `ip6_tables`: what `ip6tables-legacy` shows.
    Ipv6,
    /// `arp_tables`: what `arptables-legacy` shows.
    Arp,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Ipv4, Self::Ipv6, Self::Arp];

    /// The kernel module with the family's tables, for instance `ip_tables`.
    #[must_use]
    pub const fn module(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip_tables",
            Self::Ipv6 => "ip6_tables",
            Self::Arp => "arp_tables",
        }
    }

    /// The file that lists the tables in use in the network namespace of the thread that opens it.
    ///
    /// It is there if the kernel has the family's tables, and readable only by the user who is
    /// root in the user namespace that owns the network namespace.
    #[must_use]
    pub const fn names_file(self) -> &'static str {
        match self {
            Self::Ipv4 => "/proc/thread-self/net/ip_tables_names",
            Self::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
            Self::Arp => "/proc/thread-self/net/arp_tables_names",
        }
    }

    /// The hooks that a table of this family can have a built-in chain for, in the kernel's order.
    #[must_use]
    pub const fn hooks(self) -> &'static [Hook] {
        match self {
            Self::Ipv4 | Self::Ipv6 => &[
                Hook::Prerouting,
                Hook::Input,
                Hook::Forward,
                Hook::Output,
                Hook::Postrouting,
            ],
            Self::Arp => &[Hook::Input, Hook::Output, Hook::Forward],
        }
    }

    /// Sizes, offsets and socket options.
    pub(super) const fn layout(self) -> &'static Layout {
        match self {
            Self::Ipv4 => &IPV4,
            Self::Ipv6 => &IPV6,
            Self::Arp => &ARP,
        }
    }
}

impl fmt::Display for Family {
    /// `IPv4`, `IPv6` or `ARP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Arp => "ARP",
        })
    }
}

/// A place in a packet's way at which a table can have a built-in chain.
///
/// Sources: `enum nf_inet_hooks` in `linux/netfilter.h`, `NF_ARP_*` in `linux/netfilter_arp.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Before the route is chosen; not in ARP tables.
    Prerouting,
    /// Towards this host.
    Input,
    /// Through this host.
    Forward,
    /// From this host.
    Output,
    /// After the route was chosen; not in ARP tables.
    Postrouting,
}

impl Hook {
    /// The name of the built-in chain of this hook, for instance `PREROUTING`.
    #[must_use]
    pub const fn chain_name(self) -> &'static str {
        match self {
            Self::Prerouting => "PREROUTING",
            Self::Input => "INPUT",
            Self::Forward => "FORWARD",
            Self::Output => "OUTPUT",
            Self::Postrouting => "POSTROUTING",
        }
    }

    /// The kernel's number of this hook in that family; `None` if the family does not have it.
    #[must_use]
    pub const fn number(self, family: Family) -> Option<u32> {
        match (family, self) {
            (Family::Ipv4 | Family::Ipv6, Self::Prerouting) => Some(NF_INET_PRE_ROUTING),
            (Family::Ipv4 | Family::Ipv6, Self::Input) => Some(NF_INET_LOCAL_IN),
            (Family::Ipv4 | Family::Ipv6, Self::Forward) => Some(NF_INET_FORWARD),
            (Family::Ipv4 | Family::Ipv6, Self::Output) => Some(NF_INET_LOCAL_OUT),
            (Family::Ipv4 | Family::Ipv6, Self::Postrouting) => Some(NF_INET_POST_ROUTING),
            (Family::Arp, Self::Input) => Some(NF_ARP_IN),
            (Family::Arp, Self::Output) => Some(NF_ARP_OUT),
            (Family::Arp, Self::Forward) => Some(NF_ARP_FORWARD),
            (Family::Arp, Self::Prerouting | Self::Postrouting) => None,
        }
    }
}

impl fmt::Display for Hook {
    /// The name of the built-in chain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.chain_name())
    }
}

/// What differs from one family to the next, so that the code that walks entries is written once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Size of an entry's fixed head, in bytes; its matches follow.
    pub(super) entry: usize,
    /// Size of the part at the very start of an entry that says which packets it is for; all zero
    /// when it is for every packet.
    pub(super) header: usize,
    /// Where in an entry `target_offset` (u16) is.
    pub(super) target_offset: usize,
    /// Where in an entry `next_offset` (u16) is.
    pub(super) next_offset: usize,
    /// Where in an entry the counters (`xt_counters`) are.
    pub(super) counters: usize,
    /// Size of the argument of `GET_INFO`, in bytes.
    pub(super) getinfo: usize,
    /// Level of the socket options.
    pub(super) level: i32,
    /// The socket option that gives a table's [`Info`](super::Info).
    pub(super) get_info: i32,
    /// The socket option that gives a table's entries.
    pub(super) get_entries: i32,
    /// The socket option that tells whether a match's revision is known; ARP tables have no
    /// matches.
    pub(super) get_revision_match: Option<i32>,
    /// The socket option that tells whether a target's revision is known.
    pub(super) get_revision_target: i32,
    /// The socket option that replaces a table.
    pub(super) set_replace: i32,
    /// The socket option that adds to a table's counters.
    pub(super) set_add_counters: i32,
    /// Where in an entry the flags (u8) are, and the one that makes a jump a goto.
    pub(super) goto: Option<(usize, u8)>,
    /// The head of the argument of `SET_REPLACE`.
    pub(super) replace: ReplaceLayout,
}

/// Where in the head of `SET_REPLACE`'s argument is what; the table's name is at its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaceLayout {
    /// Size of the head, in bytes; the entries follow.
    pub(super) size: usize,
    /// The table's hooks (u32).
    pub(super) valid_hooks: usize,
    /// Number of entries (u32).
    pub(super) num_entries: usize,
    /// Size of the entries (u32).
    pub(super) entries_size: usize,
    /// Offset of each hook's chain (u32 each).
    pub(super) hook_entry: usize,
    /// Offset of each hook's policy (u32 each).
    pub(super) underflow: usize,
    /// Number of the old table's entries (u32).
    pub(super) num_counters: usize,
    /// Address of the room for their counters (a pointer).
    pub(super) counters: usize,
}

macro_rules! replace_layout {
    ($replace:ty) => {
        ReplaceLayout {
            size: size_of::<$replace>(),
            valid_hooks: offset_of!($replace, valid_hooks),
            num_entries: offset_of!($replace, num_entries),
            entries_size: offset_of!($replace, size),
            hook_entry: offset_of!($replace, hook_entry),
            underflow: offset_of!($replace, underflow),
            num_counters: offset_of!($replace, num_counters),
            counters: offset_of!($replace, counters),
        }
    };
}

const IPV4: Layout = Layout {
    entry: size_of::<ipt_entry>(),
    header: size_of::<ipt_ip>(),
    target_offset: offset_of!(ipt_entry, target_offset),
    next_offset: offset_of!(ipt_entry, next_offset),
    counters: offset_of!(ipt_entry, counters),
    getinfo: size_of::<ipt_getinfo>(),
    level: libc::IPPROTO_IP,
    get_info: IPT_SO_GET_INFO,
    get_entries: IPT_SO_GET_ENTRIES,
    get_revision_match: Some(IPT_SO_GET_REVISION_MATCH),
    get_revision_target: IPT_SO_GET_REVISION_TARGET,
    set_replace: IPT_SO_SET_REPLACE,
    set_add_counters: IPT_SO_SET_ADD_COUNTERS,
    goto: Some((
        offset_of!(ipt_entry, ip) + offset_of!(ipt_ip, flags),
        IPT_F_GOTO,
    )),
    replace: replace_layout!(ipt_replace),
};

const IPV6: Layout = Layout {
    entry: size_of::<ip6t_entry>(),
    header: size_of::<ip6t_ip6>(),
    target_offset: offset_of!(ip6t_entry, target_offset),
    next_offset: offset_of!(ip6t_entry, next_offset),
    counters: offset_of!(ip6t_entry, counters),
    getinfo: size_of::<ip6t_getinfo>(),
    level: libc::IPPROTO_IPV6,
    get_info: IP6T_SO_GET_INFO,
    get_entries: IP6T_SO_GET_ENTRIES,
    get_revision_match: Some(IP6T_SO_GET_REVISION_MATCH),
    get_revision_target: IP6T_SO_GET_REVISION_TARGET,
    set_replace: IP6T_SO_SET_REPLACE,
    set_add_counters: IP6T_SO_SET_ADD_COUNTERS,
    goto: Some((
        offset_of!(ip6t_entry, ipv6) + offset_of!(ip6t_ip6, flags),
        IP6T_F_GOTO,
    )),
    replace: replace_layout!(ip6t_replace),
};

const ARP: Layout = Layout {
    entry: size_of::<arpt_entry>(),
    header: size_of::<arpt_arp>(),
    target_offset: offset_of!(arpt_entry, target_offset),
    next_offset: offset_of!(arpt_entry, next_offset),
    counters: offset_of!(arpt_entry, counters),
    getinfo: size_of::<arpt_getinfo>(),
    level: libc::IPPROTO_IP,
    get_info: ARPT_SO_GET_INFO,
    get_entries: ARPT_SO_GET_ENTRIES,
    get_revision_match: None,
    get_revision_target: ARPT_SO_GET_REVISION_TARGET,
    set_replace: ARPT_SO_SET_REPLACE,
    set_add_counters: ARPT_SO_SET_ADD_COUNTERS,
    goto: None,
    replace: replace_layout!(arpt_replace),
};

/// Bytes before the entries in the argument of `GET_ENTRIES`: the table's name and the size.
pub(super) const GET_ENTRIES_HEAD: usize = size_of::<ipt_get_entries>();
/// Where in that head the size (u32) is.
pub(super) const GET_ENTRIES_SIZE: usize = offset_of!(ipt_get_entries, size);

// The three structs are one struct under three names.
const _: () = {
    assert!(size_of::<ip6t_get_entries>() == GET_ENTRIES_HEAD);
    assert!(size_of::<arpt_get_entries>() == GET_ENTRIES_HEAD);
    assert!(offset_of!(ip6t_get_entries, size) == GET_ENTRIES_SIZE);
    assert!(offset_of!(arpt_get_entries, size) == GET_ENTRIES_SIZE);
    assert!(offset_of!(ipt_get_entries, name) == 0);
    assert!(offset_of!(ip6t_get_entries, name) == 0);
    assert!(offset_of!(arpt_get_entries, name) == 0);
    // What an entry compares comes first in it.
    assert!(offset_of!(ipt_entry, ip) == 0);
    assert!(offset_of!(ip6t_entry, ipv6) == 0);
    assert!(offset_of!(arpt_entry, arp) == 0);
};
