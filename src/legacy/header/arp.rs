//! The header of an ARP entry: `struct arpt_arp`.

use std::fmt;
use std::net::Ipv4Addr;

use chainwright_sys::arp_tables::{
    ARPT_DEV_ADDR_LEN_MAX, ARPT_INV_ARPHLN, ARPT_INV_ARPHRD, ARPT_INV_ARPOP, ARPT_INV_ARPPRO,
    ARPT_INV_SRCDEVADDR, ARPT_INV_SRCIP, ARPT_INV_TGTDEVADDR, ARPT_INV_TGTIP, ARPT_INV_VIA_IN,
    ARPT_INV_VIA_OUT, arpt_arp, arpt_devaddr_info,
};

use super::{InterfaceMatch, Masked};

bitflags::bitflags! {
    /// The negated parts of an ARP header: `ARPT_INV_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ArpInversions: u16 {
        /// The incoming interface.
        const IN_INTERFACE = ARPT_INV_VIA_IN;
        /// The outgoing interface.
        const OUT_INTERFACE = ARPT_INV_VIA_OUT;
        /// The sender's IP address.
        const SOURCE = ARPT_INV_SRCIP;
        /// The target's IP address.
        const DESTINATION = ARPT_INV_TGTIP;
        /// The sender's hardware address.
        const SOURCE_HARDWARE = ARPT_INV_SRCDEVADDR;
        /// The target's hardware address.
        const DESTINATION_HARDWARE = ARPT_INV_TGTDEVADDR;
        /// The operation.
        const OPERATION = ARPT_INV_ARPOP;
        /// The hardware type.
        const HARDWARE_TYPE = ARPT_INV_ARPHRD;
        /// The protocol type.
        const PROTOCOL_TYPE = ARPT_INV_ARPPRO;
        /// The length of a hardware address.
        const HARDWARE_LENGTH = ARPT_INV_ARPHLN;
        const _ = !0;
    }
}

/// The packets to which an ARP entry applies.
///
/// Source: `struct arpt_arp` in `linux/netfilter_arp/arp_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArpHeader<'t> {
    pub(super) raw: &'t arpt_arp,
}

/// A hardware address and its mask. The hardware type determines the number of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HardwareAddressMatch<'t> {
    /// The address.
    pub address: &'t [u8; ARPT_DEV_ADDR_LEN_MAX],
    /// The bits to compare; all zeros match every address.
    pub mask: &'t [u8; ARPT_DEV_ADDR_LEN_MAX],
}

impl<'t> ArpHeader<'t> {
    /// Returns the sender's IP address. A mask of all zeros matches every address.
    #[must_use]
    pub fn source(&self) -> Masked<Ipv4Addr> {
        Masked {
            value: self.raw.src.into(),
            mask: self.raw.smsk.into(),
        }
    }

    /// Returns the target's IP address. A mask of all zeros matches every address.
    #[must_use]
    pub fn destination(&self) -> Masked<Ipv4Addr> {
        Masked {
            value: self.raw.tgt.into(),
            mask: self.raw.tmsk.into(),
        }
    }

    /// Returns the sender's hardware address.
    #[must_use]
    pub const fn source_hardware(&self) -> HardwareAddressMatch<'t> {
        HardwareAddressMatch::of(&self.raw.src_devaddr)
    }

    /// Returns the target's hardware address.
    #[must_use]
    pub const fn destination_hardware(&self) -> HardwareAddressMatch<'t> {
        HardwareAddressMatch::of(&self.raw.tgt_devaddr)
    }

    /// Returns the length of a hardware address, in bytes.
    #[must_use]
    pub const fn hardware_length(&self) -> Masked<u8> {
        Masked {
            value: self.raw.arhln,
            mask: self.raw.arhln_mask,
        }
    }

    /// Returns the operation, for instance 1 for a request, in host byte order.
    #[must_use]
    pub const fn operation(&self) -> Masked<u16> {
        masked(self.raw.arpop, self.raw.arpop_mask)
    }

    /// Returns the hardware type, for instance 1 for Ethernet, in host byte order.
    #[must_use]
    pub const fn hardware_type(&self) -> Masked<u16> {
        masked(self.raw.arhrd, self.raw.arhrd_mask)
    }

    /// Returns the protocol type, for instance 0x0800 for IPv4, in host byte order.
    #[must_use]
    pub const fn protocol_type(&self) -> Masked<u16> {
        masked(self.raw.arpro, self.raw.arpro_mask)
    }

    interfaces!();

    /// Returns the negated parts; unknown bits are preserved.
    #[must_use]
    pub const fn inversions(&self) -> ArpInversions {
        ArpInversions::from_bits_retain(self.raw.invflags)
    }

    /// Returns the kernel's struct.
    #[must_use]
    pub const fn raw(&self) -> &'t arpt_arp {
        self.raw
    }
}

/// Decodes a big-endian field and its mask.
const fn masked(value: [u8; 2], mask: [u8; 2]) -> Masked<u16> {
    Masked {
        value: u16::from_be_bytes(value),
        mask: u16::from_be_bytes(mask),
    }
}

impl<'t> HardwareAddressMatch<'t> {
    const fn of(raw: &'t arpt_devaddr_info) -> Self {
        Self {
            address: &raw.addr,
            mask: &raw.mask,
        }
    }

    /// Returns `true` if the condition matches every hardware address.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self.mask == [0; ARPT_DEV_ADDR_LEN_MAX]
    }
}

impl fmt::Debug for HardwareAddressMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        write!(f, "{:02x?}/{:02x?}", self.address, self.mask)
    }
}

impl fmt::Debug for ArpHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArpHeader")
            .field("source", &format_args!("{}", self.source()))
            .field("destination", &format_args!("{}", self.destination()))
            .field("source_hardware", &self.source_hardware())
            .field("destination_hardware", &self.destination_hardware())
            .field("hardware_length", &self.hardware_length())
            .field("operation", &self.operation())
            .field("hardware_type", &self.hardware_type())
            .field("protocol_type", &self.protocol_type())
            .field("in_interface", &self.in_interface())
            .field("out_interface", &self.out_interface())
            .field("inversions", &self.inversions())
            .finish()
    }
}
