//! The kernel's description of a table (`GET_INFO`).

use chainwright_sys::arp_tables::arpt_getinfo;
use chainwright_sys::ip_tables::ipt_getinfo;
use chainwright_sys::ip6_tables::ip6t_getinfo;
use chainwright_sys::netfilter::NF_INET_NUMHOOKS;
use zerocopy::FromBytes;

use super::{Family, Hook, Malformed, Problem, TableName};

/// A table's sizes and offsets: the reply to `GET_INFO`.
///
/// Sources: `struct ipt_getinfo`, `struct ip6t_getinfo`, `struct arpt_getinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    family: Family,
    name: TableName,
    valid_hooks: u32,
    /// Indexed by the kernel's hook number; 0 for hooks that the table does not have.
    hook_entry: [u32; NF_INET_NUMHOOKS as usize],
    underflow: [u32; NF_INET_NUMHOOKS as usize],
    num_entries: u32,
    size: u32,
}

impl Info {
    /// Decodes the kernel's struct (84 bytes for IPv4 and IPv6, 68 for ARP; host byte order).
    ///
    /// # Errors
    /// The size is wrong, the name is invalid, or the family does not have one of the hooks.
    pub fn from_bytes(family: Family, bytes: &[u8]) -> Result<Self, Malformed> {
        macro_rules! decode {
            ($getinfo:ty) => {{
                let Ok(raw) = <$getinfo>::read_from_bytes(bytes) else {
                    return Err(Malformed::new(
                        0,
                        Problem::InfoSize {
                            expected: size_of::<$getinfo>(),
                            found: bytes.len(),
                        },
                    ));
                };
                Self::new(
                    family,
                    &raw.name,
                    raw.valid_hooks,
                    &raw.hook_entry,
                    &raw.underflow,
                    raw.num_entries,
                    raw.size,
                )
            }};
        }
        match family {
            Family::Ipv4 => decode!(ipt_getinfo),
            Family::Ipv6 => decode!(ip6t_getinfo),
            Family::Arp => decode!(arpt_getinfo),
        }
    }

    /// Builds it from the kernel's fields. The offsets are indexed by the kernel's hook number;
    /// values for hooks that the table does not have are ignored.
    pub(super) fn new(
        family: Family,
        name: &[u8; 32],
        valid_hooks: u32,
        hook_entry: &[u32],
        underflow: &[u32],
        num_entries: u32,
        size: u32,
    ) -> Result<Self, Malformed> {
        let name = TableName::from_padded(name).ok_or(Malformed::new(0, Problem::InfoName))?;
        let mut info = Self {
            family,
            name,
            valid_hooks,
            hook_entry: [0; NF_INET_NUMHOOKS as usize],
            underflow: [0; NF_INET_NUMHOOKS as usize],
            num_entries,
            size,
        };
        if valid_hooks >> family.hooks().len() != 0 {
            return Err(Malformed::new(0, Problem::UnknownHooks { valid_hooks }));
        }
        for (number, (&entry, &underflow)) in hook_entry.iter().zip(underflow).enumerate() {
            // The kernel leaves the offsets of other hooks uninitialized.
            if valid_hooks & (1 << number) != 0 {
                info.hook_entry[number] = entry;
                info.underflow[number] = underflow;
            }
        }
        Ok(info)
    }

    /// Returns the description of a table without entries.
    pub(super) const fn empty(family: Family, name: TableName) -> Self {
        Self {
            family,
            name,
            valid_hooks: 0,
            hook_entry: [0; NF_INET_NUMHOOKS as usize],
            underflow: [0; NF_INET_NUMHOOKS as usize],
            num_entries: 0,
            size: 0,
        }
    }

    /// Returns the family of the table.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns the name of the table.
    #[must_use]
    pub const fn name(&self) -> &TableName {
        &self.name
    }

    /// Returns the bit mask of the hooks with a built-in chain: `1 << number` for each.
    #[must_use]
    pub const fn valid_hooks(&self) -> u32 {
        self.valid_hooks
    }

    /// Returns the hooks for which the table has a built-in chain, in the kernel's order.
    pub fn hooks(&self) -> impl Iterator<Item = Hook> + '_ {
        self.family
            .hooks()
            .iter()
            .copied()
            .filter(|hook| self.number(*hook).is_some())
    }

    /// Returns the offset in bytes of the first entry of the hook's built-in chain; `None` if the
    /// table has no such chain.
    #[must_use]
    pub fn hook_entry(&self, hook: Hook) -> Option<u32> {
        self.number(hook).map(|number| self.hook_entry[number])
    }

    /// Returns the offset in bytes of the policy, the last entry of the hook's built-in chain;
    /// `None` if the table has no such chain.
    #[must_use]
    pub fn underflow(&self, hook: Hook) -> Option<u32> {
        self.number(hook).map(|number| self.underflow[number])
    }

    /// Returns the number of entries: rules, policies, chain heads, implicit returns, and the end.
    #[must_use]
    pub const fn num_entries(&self) -> u32 {
        self.num_entries
    }

    /// Returns the size of the entries, in bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the hook's number if the table has a chain for it.
    fn number(&self, hook: Hook) -> Option<usize> {
        let number = hook.number(self.family)?;
        (self.valid_hooks & (1 << number) != 0).then_some(number as usize)
    }
}
