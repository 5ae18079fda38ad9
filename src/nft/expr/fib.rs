//! `fib`: looks up one of the packet's addresses in the routing tables.
//!
//! ```text
//! NFTA_FIB_FLAGS    be32
//! NFTA_FIB_RESULT   be32
//! NFTA_FIB_DREG     be32
//! ```
//!
//! The kernel requires all of them.

use chainwright_sys::nf_tables::{
    NFT_FIB_RESULT_ADDRTYPE, NFT_FIB_RESULT_OIF, NFT_FIB_RESULT_OIFNAME, NFTA_FIB_DREG,
    NFTA_FIB_F_DADDR, NFTA_FIB_F_IIF, NFTA_FIB_F_MARK, NFTA_FIB_F_OIF, NFTA_FIB_F_PRESENT,
    NFTA_FIB_F_SADDR, NFTA_FIB_FLAGS, NFTA_FIB_RESULT,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::{flags, values};

values! {
    /// The result of the look-up (`enum nft_fib_result`).
    pub struct FibResult: u32 {
        /// Index of the route's device, u32 in host byte order; 0 without a route.
        OIF = NFT_FIB_RESULT_OIF => "oif",
        /// Name of that device, 16 bytes; all 0 without a route.
        OIFNAME = NFT_FIB_RESULT_OIFNAME => "oifname",
        /// Type of the address (`RTN_*`, `linux/rtnetlink.h`), u32 in host byte order.
        ADDRTYPE = NFT_FIB_RESULT_ADDRTYPE => "type",
    }
}

flags! {
    /// The input of the look-up (`enum nft_fib_flags`): either the source or the destination address, and at most one
    /// device.
    pub struct FibFlags: u32 {
        /// The source address.
        const SADDR = NFTA_FIB_F_SADDR,
        /// The destination address.
        const DADDR = NFTA_FIB_F_DADDR,
        /// With the packet's mark, for routing rules that use it.
        const MARK = NFTA_FIB_F_MARK,
        /// Restricted to the device that received the packet.
        const IIF = NFTA_FIB_F_IIF,
        /// Restricted to the device that sends the packet.
        const OIF = NFTA_FIB_F_OIF,
        /// Only whether there is a route: stores one byte, 0 or 1. Not for [`FibResult::ADDRTYPE`].
        const PRESENT = NFTA_FIB_F_PRESENT,
    }
}

impl FibFlags {
    /// The names of the inputs, in the order of nft's syntax.
    #[doc(hidden)]
    pub const NAMED: [(Self, &'static str); 5] = [
        (Self::SADDR, "saddr"),
        (Self::DADDR, "daddr"),
        (Self::MARK, "mark"),
        (Self::IIF, "iif"),
        (Self::OIF, "oif"),
    ];

    /// The flags with syntax: the named inputs, and the presence of a route.
    #[doc(hidden)]
    pub const WITH_SYNTAX: Self = {
        let mut with_syntax = Self::PRESENT;
        let mut at = 0;
        while at < Self::NAMED.len() {
            with_syntax = with_syntax.union(Self::NAMED[at].0);
            at += 1;
        }
        with_syntax
    };
}

expression! {
    "fib"
    /// Looks up an address in the routing tables (`enum nft_fib_attributes`).
    pub struct Fib viewed as FibRef,
    listed as [dreg, result, flags] {
        /// Input of the look-up.
        NFTA_FIB_FLAGS => flags: FibFlags,
        /// Result of the look-up.
        NFTA_FIB_RESULT => result: FibResult,
        /// Destination register.
        NFTA_FIB_DREG => dreg: Register,
    }
}

impl Fib {
    /// Looks up the input and stores the result in a register.
    #[must_use]
    pub const fn new(flags: FibFlags, result: FibResult, dreg: Register) -> Self {
        Self {
            flags: Some(flags),
            result: Some(result),
            dreg: Some(dreg),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`; missing values as 0.
impl std::fmt::Display for Fib {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = self.flags.unwrap_or_default();
        f.write_str("[ fib ")?;
        let mut separator = "";
        for (flag, name) in FibFlags::NAMED {
            if flags.contains(flag) {
                write!(f, "{separator}{name} ")?;
                separator = ". ";
            }
        }
        let unknown = flags.bits() & !FibFlags::WITH_SYNTAX.bits();
        if unknown != 0 {
            // Without a trailing blank.
            write!(f, "{separator}unknown {unknown:#x}")?;
        }
        let result = match self.result.unwrap_or_default() {
            FibResult(0) => "(null)",
            result => result.name().unwrap_or("unknown"),
        };
        let present = if flags.contains(FibFlags::PRESENT) {
            " present"
        } else {
            ""
        };
        // libnftnl prints the register as a signed number.
        let dreg = self.dreg.unwrap_or_default().0.cast_signed();
        write!(f, "{result}{present} => reg {dreg} ]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (3, "NFTA_FIB_FLAGS", Wire::Be32),
            (2, "NFTA_FIB_RESULT", Wire::Be32),
            (1, "NFTA_FIB_DREG", Wire::Be32),
        ];
        assert_layout::<Fib>(Fib::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c fib daddr . iif type local`.
    #[test]
    fn kind_of_an_address() {
        assert_element(
            Decoded::Fib,
            Fib {
                flags: Some(FibFlags::DADDR | FibFlags::IIF),
                result: Some(FibResult::ADDRTYPE),
                dreg: Some(Register::R1),
                ..Default::default()
            },
            "
                28000180           ; NFTA_LIST_ELEM
                08000100 66696200  ;   NFTA_EXPR_NAME: fib
                1c000280           ;   NFTA_EXPR_DATA
                08000300 0000000a  ;     NFTA_FIB_FLAGS
                08000200 00000003  ;     NFTA_FIB_RESULT
                08000100 00000001  ;     NFTA_FIB_DREG
            ",
        );
    }

    /// nft 1.0.6: `fib saddr . mark . iif oif missing`, `fib saddr . mark oifname "lo"` and
    /// `fib daddr . oif type local`.
    #[test]
    fn results_and_flags() {
        assert_attributes(
            Decoded::Fib,
            Fib::new(
                FibFlags::SADDR | FibFlags::MARK | FibFlags::IIF | FibFlags::PRESENT,
                FibResult::OIF,
                Register::R1,
            ),
            "08000300 0000002d 08000200 00000001 08000100 00000001",
        );
        assert_attributes(
            Decoded::Fib,
            Fib::new(
                FibFlags::SADDR | FibFlags::MARK,
                FibResult::OIFNAME,
                Register::R1,
            ),
            "08000300 00000005 08000200 00000002 08000100 00000001",
        );
        assert_attributes(
            Decoded::Fib,
            Fib::new(
                FibFlags::DADDR | FibFlags::OIF,
                FibResult::ADDRTYPE,
                Register::R1,
            ),
            "08000300 00000012 08000200 00000003 08000100 00000001",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c fib saddr . iif oif exists`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Fib,
            Fib::new(
                FibFlags::SADDR | FibFlags::IIF | FibFlags::PRESENT,
                FibResult::OIF,
                Register::R1,
            ),
            "
                28000100 08000100 66696200 1c000200 08000100 00000001 08000200 00000001
                08000300 00000029
            ",
        );
    }

    /// The rules above, `fib daddr type != broadcast` and `fib saddr . iif oif eq 0` as nft 1.0.6
    /// prints them.
    #[test]
    fn bytecode() {
        use FibFlags as F;
        use FibResult as R;
        for (flags, result, line) in [
            (
                F::DADDR | F::IIF,
                R::ADDRTYPE,
                "[ fib daddr . iif type => reg 1 ]",
            ),
            (
                F::SADDR | F::MARK | F::IIF | F::PRESENT,
                R::OIF,
                "[ fib saddr . mark . iif oif present => reg 1 ]",
            ),
            (
                F::SADDR | F::MARK,
                R::OIFNAME,
                "[ fib saddr . mark oifname => reg 1 ]",
            ),
            (
                F::DADDR | F::OIF,
                R::ADDRTYPE,
                "[ fib daddr . oif type => reg 1 ]",
            ),
            (
                F::SADDR | F::IIF | F::PRESENT,
                R::OIF,
                "[ fib saddr . iif oif present => reg 1 ]",
            ),
            (F::DADDR, R::ADDRTYPE, "[ fib daddr type => reg 1 ]"),
            (
                F::SADDR | F::IIF,
                R::OIF,
                "[ fib saddr . iif oif => reg 1 ]",
            ),
        ] {
            let expression = Fib::new(flags, result, Register::R1);
            assert_eq!(expression.to_string(), line);
        }
    }

    /// Attributes that the kernel does not list, as libnftnl 1.2.4 prints them.
    #[test]
    fn bytecode_of_unlisted_attributes() {
        for (flags, result, line) in [
            (0x00, 1, "[ fib oif => reg 2 ]"),
            (0x20, 1, "[ fib oif present => reg 2 ]"),
            (0x40, 2, "[ fib unknown 0x40oifname => reg 2 ]"),
            (0x41, 1, "[ fib saddr . unknown 0x40oif => reg 2 ]"),
            (0x60, 1, "[ fib unknown 0x40oif present => reg 2 ]"),
            (0x01, 0, "[ fib saddr (null) => reg 2 ]"),
            (
                0x3f,
                4,
                "[ fib saddr . daddr . mark . iif . oif unknown present => reg 2 ]",
            ),
        ] {
            let flags = FibFlags::from_bits_retain(flags);
            let expression = Fib::new(flags, FibResult(result), Register::R2);
            assert_eq!(expression.to_string(), line);
        }
        assert_eq!(Fib::default().to_string(), "[ fib (null) => reg 0 ]");
        assert_eq!(
            Fib::new(FibFlags::SADDR, FibResult::OIF, Register(u32::MAX)).to_string(),
            "[ fib saddr oif => reg -1 ]"
        );
    }
}
