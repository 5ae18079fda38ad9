//! The header of an IPv4 entry: `struct ipt_ip`.

use std::fmt;
use std::net::Ipv4Addr;

use chainwright_sys::ip_tables::{
    IPT_F_FRAG, IPT_F_GOTO, IPT_INV_DSTIP, IPT_INV_FRAG, IPT_INV_PROTO, IPT_INV_SRCIP, IPT_INV_TOS,
    IPT_INV_VIA_IN, IPT_INV_VIA_OUT, ipt_ip,
};
use chainwright_sys::ip6_tables::{
    IP6T_INV_DSTIP, IP6T_INV_FRAG, IP6T_INV_PROTO, IP6T_INV_SRCIP, IP6T_INV_TOS, IP6T_INV_VIA_IN,
    IP6T_INV_VIA_OUT,
};

use super::{InterfaceMatch, Masked};

bitflags::bitflags! {
    /// Flags of an IPv4 header: `IPT_F_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Ipv4Flags: u8 {
        /// Matches only second and further fragments.
        const FRAGMENT = IPT_F_FRAG;
        /// The jump is a goto.
        const GOTO = IPT_F_GOTO;
        const _ = !0;
    }

    /// The negated parts of an IPv4 or IPv6 header: `IPT_INV_*` and `IP6T_INV_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Inversions: u8 {
        /// The incoming interface.
        const IN_INTERFACE = IPT_INV_VIA_IN;
        /// The outgoing interface.
        const OUT_INTERFACE = IPT_INV_VIA_OUT;
        /// The type of service; only IPv6 compares it.
        const TOS = IPT_INV_TOS;
        /// The source address.
        const SOURCE = IPT_INV_SRCIP;
        /// The destination address.
        const DESTINATION = IPT_INV_DSTIP;
        /// The fragment flag; only IPv4 compares it.
        const FRAGMENT = IPT_INV_FRAG;
        /// The protocol.
        const PROTOCOL = IPT_INV_PROTO;
        const _ = !0;
    }
}

// One set of flags serves both families.
const _: () = {
    assert!(IP6T_INV_VIA_IN == IPT_INV_VIA_IN && IP6T_INV_VIA_OUT == IPT_INV_VIA_OUT);
    assert!(IP6T_INV_SRCIP == IPT_INV_SRCIP && IP6T_INV_DSTIP == IPT_INV_DSTIP);
    assert!(IP6T_INV_TOS == IPT_INV_TOS && IP6T_INV_FRAG == IPT_INV_FRAG);
    assert!(IP6T_INV_PROTO == IPT_INV_PROTO);
};

/// The packets to which an IPv4 entry applies.
///
/// Source: `struct ipt_ip` in `linux/netfilter_ipv4/ip_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Header<'t> {
    pub(super) raw: &'t ipt_ip,
}

impl<'t> Ipv4Header<'t> {
    addresses!(Ipv4Addr);
    interfaces!();

    /// Returns the IP protocol's number; 0 for any.
    #[must_use]
    pub const fn protocol(&self) -> u16 {
        self.raw.proto
    }

    /// Returns the flags; unknown bits are preserved.
    #[must_use]
    pub const fn flags(&self) -> Ipv4Flags {
        Ipv4Flags::from_bits_retain(self.raw.flags)
    }

    /// Returns the negated parts; unknown bits are preserved.
    #[must_use]
    pub const fn inversions(&self) -> Inversions {
        Inversions::from_bits_retain(self.raw.invflags)
    }

    /// Returns the kernel's struct.
    #[must_use]
    pub const fn raw(&self) -> &'t ipt_ip {
        self.raw
    }
}

impl fmt::Debug for Ipv4Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ipv4Header")
            .field("source", &format_args!("{}", self.source()))
            .field("destination", &format_args!("{}", self.destination()))
            .field("in_interface", &self.in_interface())
            .field("out_interface", &self.out_interface())
            .field("protocol", &self.protocol())
            .field("flags", &self.flags())
            .field("inversions", &self.inversions())
            .finish()
    }
}
