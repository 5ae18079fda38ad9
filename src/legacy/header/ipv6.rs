//! The header of an IPv6 entry: `struct ip6t_ip6`.

use std::fmt;
use std::net::Ipv6Addr;

use chainwright_sys::ip6_tables::{IP6T_F_GOTO, IP6T_F_PROTO, IP6T_F_TOS, ip6t_ip6};

use super::{InterfaceMatch, Inversions, Masked};

bitflags::bitflags! {
    /// Flags of an IPv6 header: `IP6T_F_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Ipv6Flags: u8 {
        /// The protocol is compared.
        const PROTOCOL = IP6T_F_PROTO;
        /// The type of service is compared.
        const TOS = IP6T_F_TOS;
        /// The jump is a goto.
        const GOTO = IP6T_F_GOTO;
        const _ = !0;
    }
}

/// The packets to which an IPv6 entry applies.
///
/// Source: `struct ip6t_ip6` in `linux/netfilter_ipv6/ip6_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Header<'t> {
    pub(super) raw: &'t ip6t_ip6,
}

impl<'t> Ipv6Header<'t> {
    addresses!(Ipv6Addr);
    interfaces!();

    /// Returns the number of the protocol after the extension headers; compared only with
    /// [`Ipv6Flags::PROTOCOL`].
    #[must_use]
    pub const fn protocol(&self) -> u16 {
        self.raw.proto
    }

    /// Returns the type of service; compared only with [`Ipv6Flags::TOS`].
    #[must_use]
    pub const fn tos(&self) -> u8 {
        self.raw.tos
    }

    /// Returns the flags; unknown bits are preserved.
    #[must_use]
    pub const fn flags(&self) -> Ipv6Flags {
        Ipv6Flags::from_bits_retain(self.raw.flags)
    }

    /// Returns the negated parts; unknown bits are preserved.
    #[must_use]
    pub const fn inversions(&self) -> Inversions {
        Inversions::from_bits_retain(self.raw.invflags)
    }

    /// Returns the kernel's struct.
    #[must_use]
    pub const fn raw(&self) -> &'t ip6t_ip6 {
        self.raw
    }
}

impl fmt::Debug for Ipv6Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ipv6Header")
            .field("source", &format_args!("{}", self.source()))
            .field("destination", &format_args!("{}", self.destination()))
            .field("in_interface", &self.in_interface())
            .field("out_interface", &self.out_interface())
            .field("protocol", &self.protocol())
            .field("tos", &self.tos())
            .field("flags", &self.flags())
            .field("inversions", &self.inversions())
            .finish()
    }
}
