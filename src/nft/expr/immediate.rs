//! `immediate`: loads a value or a verdict into a register.
//!
//! ```text
//! NFTA_IMMEDIATE_DREG   be32
//! NFTA_IMMEDIATE_DATA   nested: a verdict for register 0, a value for all others
//! ```

use chainwright_sys::nf_tables::{NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG};

use super::data::Spaced;
use super::{Data, Register, Verdict, expression};
use crate::nft::UnknownAttributes;
use crate::nft::name::Name;

expression! {
    "immediate"
    /// Loads a value or a verdict into a register (`enum nft_immediate_attributes`).
    pub struct Immediate<'a> viewed as ImmediateRef {
        /// The register.
        NFTA_IMMEDIATE_DREG => dreg: Register,
        /// The value or verdict.
        NFTA_IMMEDIATE_DATA => data: Data<'a>,
    }
}

impl<'a> Immediate<'a> {
    /// Loads a value into a register.
    #[must_use]
    pub const fn value(dreg: Register, bytes: &'a [u8]) -> Self {
        Self {
            dreg: Some(dreg),
            data: Some(Data::value(bytes)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Returns a verdict.
    #[must_use]
    pub const fn verdict(verdict: Verdict<'a>) -> Self {
        Self {
            dreg: Some(Register::VERDICT),
            data: Some(Data::Verdict(verdict)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Accepts the packet.
    #[must_use]
    pub const fn accept() -> Self {
        Self::verdict(Verdict::Accept)
    }

    /// Drops the packet.
    #[must_use]
    pub const fn drop() -> Self {
        Self::verdict(Verdict::Drop)
    }

    /// Returns to the calling chain.
    #[must_use]
    pub const fn return_() -> Self {
        Self::verdict(Verdict::Return)
    }

    /// Jumps to a chain.
    pub fn jump(chain: impl Into<Name<'a>>) -> Self {
        Self::verdict(Verdict::Jump(chain.into()))
    }

    /// Goes to a chain, without returning.
    pub fn goto(chain: impl Into<Name<'a>>) -> Self {
        Self::verdict(Verdict::Goto(chain.into()))
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Immediate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dreg = self.dreg.unwrap_or_default().0;
        write!(f, "[ immediate reg {dreg} {}]", Spaced(&self.data))
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
            (1, "NFTA_IMMEDIATE_DREG", Wire::Be32),
            (2, "NFTA_IMMEDIATE_DATA", Wire::Data),
        ];
        assert_layout::<Immediate<'_>>(Immediate::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c jump d`.
    #[test]
    fn a_jump() {
        assert_element(
            Decoded::Immediate,
            Immediate {
                dreg: Some(Register::VERDICT),
                data: Some(Data::Verdict(Verdict::Jump("d".into()))),
                ..Default::default()
            },
            "
                38000180                             ; NFTA_LIST_ELEM
                0e000100 696d6d65 64696174 65000000  ;   NFTA_EXPR_NAME: immediate
                24000280                             ;   NFTA_EXPR_DATA
                08000100 00000000                    ;     NFTA_IMMEDIATE_DREG
                18000280                             ;     NFTA_IMMEDIATE_DATA
                14000280                             ;       NFTA_DATA_VERDICT
                08000100 fffffffd                    ;         NFTA_VERDICT_CODE
                06000200 64000000                    ;         NFTA_VERDICT_CHAIN
            ",
        );
    }

    /// nft 1.0.6: `add rule ip t c VERDICT`.
    #[test]
    fn verdicts() {
        for (immediate, sent) in [
            (
                Immediate::accept(),
                "08000100 00000000 10000280 0c000280 08000100 00000001",
            ),
            (
                Immediate::drop(),
                "08000100 00000000 10000280 0c000280 08000100 00000000",
            ),
            (
                Immediate::return_(),
                "08000100 00000000 10000280 0c000280 08000100 fffffffb",
            ),
            (
                Immediate::verdict(Verdict::Continue),
                "08000100 00000000 10000280 0c000280 08000100 ffffffff",
            ),
            (
                Immediate::jump("d"),
                "08000100 00000000 18000280 14000280 08000100 fffffffd 06000200 64000000",
            ),
            (
                Immediate::goto("d"),
                "08000100 00000000 18000280 14000280 08000100 fffffffc 06000200 64000000",
            ),
        ] {
            assert_attributes(Decoded::Immediate, immediate, sent);
        }
    }

    /// nft 1.0.6: `ct mark set 0x4000`, in host byte order; `meta nftrace set 1`, one byte;
    /// `dnat to 10.0.0.1:8080` and `dnat ip6 to [2001:db8::1]:80`, in network order.
    #[test]
    fn values() {
        assert_attributes(
            Decoded::Immediate,
            Immediate::value(Register::R1, &0x4000_u32.to_ne_bytes()),
            "08000100 00000001 0c000280 08000100 00400000",
        );
        assert_attributes(
            Decoded::Immediate,
            Immediate::value(Register::R1, &[1]),
            "08000100 00000001 0c000280 05000100 01000000",
        );
        assert_attributes(
            Decoded::Immediate,
            Immediate::value(Register::R1, &[10, 0, 0, 1]),
            "08000100 00000001 0c000280 08000100 0a000001",
        );
        assert_attributes(
            Decoded::Immediate,
            Immediate::value(Register::R2, &8080u16.to_be_bytes()),
            "08000100 00000002 0c000280 06000100 1f900000",
        );
        let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets();
        assert_attributes(
            Decoded::Immediate,
            Immediate::value(Register::R1, &address),
            "08000100 00000001 18000280 14000100 20010db8 00000000 00000000 00000001",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c … jump d`, `… accept` and
    /// `… dnat to 10.0.0.1:8080`; and after this crate wrote a `break`, for which nft 1.0.6 has no
    /// syntax.
    #[test]
    fn listed() {
        for (immediate, listed) in [
            (
                Immediate::jump("d"),
                "
                    38000100 0e000100 696d6d65 64696174 65000000 24000200 08000100 00000000
                    18000200 14000200 08000100 fffffffd 06000200 64000000
                ",
            ),
            (
                Immediate::accept(),
                "
                    30000100 0e000100 696d6d65 64696174 65000000 1c000200 08000100 00000000
                    10000200 0c000200 08000100 00000001
                ",
            ),
            (
                Immediate::value(Register::R1, &[10, 0, 0, 1]),
                "
                    2c000100 0e000100 696d6d65 64696174 65000000 18000200 08000100 00000001
                    0c000200 08000100 0a000001
                ",
            ),
            (
                Immediate::verdict(Verdict::Break),
                "
                    30000100 0e000100 696d6d65 64696174 65000000 1c000200 08000100 00000000
                    10000200 0c000200 08000100 fffffffe
                ",
            ),
        ] {
            assert_listed(Decoded::Immediate, immediate, listed);
        }
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) of verdicts, marks,
    /// addresses and ports; without attributes, as its libnftnl printed it.
    #[test]
    fn bytecode() {
        for (immediate, line) in [
            (Immediate::accept(), "[ immediate reg 0 accept ]"),
            (Immediate::drop(), "[ immediate reg 0 drop ]"),
            (Immediate::return_(), "[ immediate reg 0 return ]"),
            (
                Immediate::verdict(Verdict::Continue),
                "[ immediate reg 0 continue ]",
            ),
            (Immediate::jump("d"), "[ immediate reg 0 jump -> d ]"),
            (Immediate::goto("d"), "[ immediate reg 0 goto -> d ]"),
            (
                Immediate::value(Register::R1, &5u32.to_le_bytes()),
                "[ immediate reg 1 0x00000005 ]",
            ),
            (
                Immediate::value(Register::R2, &[10, 0, 0, 9]),
                "[ immediate reg 2 0x0900000a ]",
            ),
            (
                Immediate::value(Register::R1, &80u16.to_be_bytes()),
                "[ immediate reg 1 0x00005000 ]",
            ),
            (
                Immediate::value(Register::R1, &[0, 0x11, 0x22, 0x33, 0x44, 0x55]),
                "[ immediate reg 1 0x33221100 0x00005544 ]",
            ),
            (Immediate::default(), "[ immediate reg 0 ]"),
        ] {
            assert_eq!(immediate.to_string(), line);
        }
    }
}
