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
    /// The result of the lookup (`enum nft_fib_result`).
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
    /// The input of the lookup (`enum nft_fib_flags`): either the source or the destination address, and at most one
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
        /// Stores only whether there is a route, as one byte: 0 or 1. Not for [`FibResult::ADDRTYPE`].
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
        /// Input of the lookup.
        NFTA_FIB_FLAGS => flags: FibFlags,
        /// Result of the lookup.
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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "fib saddr . mark . iif oif missing",
            Fib::new(
                FibFlags::SADDR | FibFlags::MARK | FibFlags::IIF | FibFlags::PRESENT,
                FibResult::OIF,
                Register::R1,
            ),
        );
        assert_built(
            "fib saddr . mark oifname \"lo\"",
            Fib::new(
                FibFlags::SADDR | FibFlags::MARK,
                FibResult::OIFNAME,
                Register::R1,
            ),
        );
    }
}
