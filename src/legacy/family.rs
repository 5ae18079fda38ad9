//! The three families of legacy tables, their hooks, and the layout of their structs.

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

/// A family of legacy tables. Each family has its own tables, socket and file of table names.
///
/// It differs from [`xt::Family`](crate::xt::Family) because ARP has tables, but no matches and no
/// iptables tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `ip_tables`: the tables of `iptables-legacy`.
    Ipv4,
    /// `ip6_tables`: the tables of `ip6tables-legacy`.
    Ipv6,
    /// `arp_tables`: the tables of `arptables-legacy`.
    Arp,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Ipv4, Self::Ipv6, Self::Arp];

    /// Returns the kernel module with the family's tables, for instance `ip_tables`.
    #[must_use]
    pub const fn module(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip_tables",
            Self::Ipv6 => "ip6_tables",
            Self::Arp => "arp_tables",
        }
    }

    /// Returns the file that lists the tables in use in the network namespace of the thread that
    /// opens it.
    ///
    /// The file exists if the kernel has the family's tables. Only the root user of the user
    /// namespace that owns the network namespace can read it.
    #[must_use]
    pub const fn names_file(self) -> &'static str {
        match self {
            Self::Ipv4 => "/proc/thread-self/net/ip_tables_names",
            Self::Ipv6 => "/proc/thread-self/net/ip6_tables_names",
            Self::Arp => "/proc/thread-self/net/arp_tables_names",
        }
    }

    /// Returns the hooks for which a table of this family can have a built-in chain, in the
    /// kernel's order.
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

    /// Returns the sizes, offsets and socket options.
    pub(super) const fn layout(self) -> &'static Layout {
        match self {
            Self::Ipv4 => &IPV4,
            Self::Ipv6 => &IPV6,
            Self::Arp => &ARP,
        }
    }
}

impl fmt::Display for Family {
    /// Formats as `IPv4`, `IPv6` or `ARP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Arp => "ARP",
        })
    }
}

/// A point in the path of a packet at which a table can have a built-in chain.
///
/// Sources: `enum nf_inet_hooks` in `linux/netfilter.h`, `NF_ARP_*` in `linux/netfilter_arp.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Before routing; not in ARP tables.
    Prerouting,
    /// Packets to this host.
    Input,
    /// Packets forwarded by this host.
    Forward,
    /// Packets from this host.
    Output,
    /// After routing; not in ARP tables.
    Postrouting,
}

impl Hook {
    /// Returns the name of the built-in chain of this hook, for instance `PREROUTING`.
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

    /// Returns the kernel's number of this hook in that family; `None` if the family does not have
    /// it.
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
    /// Writes the name of the built-in chain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.chain_name())
    }
}

/// The layouts and socket options that differ between families, so that the code that parses
/// entries exists once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Size of an entry's fixed header, in bytes; its matches follow.
    pub(super) entry: usize,
    /// Size of the packet header match at the start of an entry; all zero if the entry applies to
    /// every packet.
    pub(super) header: usize,
    /// Offset of `target_offset` (u16) in an entry.
    pub(super) target_offset: usize,
    /// Offset of `next_offset` (u16) in an entry.
    pub(super) next_offset: usize,
    /// Offset of the counters (`xt_counters`) in an entry.
    pub(super) counters: usize,
    /// Size of the argument of `GET_INFO`, in bytes.
    pub(super) getinfo: usize,
    /// Level of the socket options.
    pub(super) level: i32,
    /// The socket option that reads a table's [`Info`](super::Info).
    pub(super) get_info: i32,
    /// The socket option that reads a table's entries.
    pub(super) get_entries: i32,
    /// The socket option that checks whether the kernel supports a revision of a match; ARP tables
    /// have no matches.
    pub(super) get_revision_match: Option<i32>,
    /// The socket option that checks whether the kernel supports a revision of a target.
    pub(super) get_revision_target: i32,
    /// The socket option that replaces a table.
    pub(super) set_replace: i32,
    /// The socket option that adds to a table's counters.
    pub(super) set_add_counters: i32,
    /// Offset of the flags (u8) in an entry, and the flag that turns a jump into a goto.
    pub(super) goto: Option<(usize, u8)>,
    /// The header of the argument of `SET_REPLACE`.
    pub(super) replace: ReplaceLayout,
}

/// Offsets in the header of the argument of `SET_REPLACE`; the table's name is at offset 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaceLayout {
    /// Size of the header, in bytes; the entries follow.
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
    /// Pointer to the buffer for their counters.
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
/// Offset of the size (u32) in that header.
pub(super) const GET_ENTRIES_SIZE: usize = offset_of!(ipt_get_entries, size);

// The three structs are the same under different names.
const _: () = {
    assert!(size_of::<ip6t_get_entries>() == GET_ENTRIES_HEAD);
    assert!(size_of::<arpt_get_entries>() == GET_ENTRIES_HEAD);
    assert!(offset_of!(ip6t_get_entries, size) == GET_ENTRIES_SIZE);
    assert!(offset_of!(arpt_get_entries, size) == GET_ENTRIES_SIZE);
    assert!(offset_of!(ipt_get_entries, name) == 0);
    assert!(offset_of!(ip6t_get_entries, name) == 0);
    assert!(offset_of!(arpt_get_entries, name) == 0);
    // The packet header match comes first in an entry.
    assert!(offset_of!(ipt_entry, ip) == 0);
    assert!(offset_of!(ip6t_entry, ipv6) == 0);
    assert!(offset_of!(arpt_entry, arp) == 0);
};
