//! `reject`: drops the packet and notifies its sender.
//!
//! ```text
//! NFTA_REJECT_TYPE        be32
//! NFTA_REJECT_ICMP_CODE   u8: without meaning, and not listed, for a TCP reset
//! ```

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_REJECT_ICMP_CODE, NFTA_REJECT_TYPE};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// How the sender is notified (`enum nft_reject_types`).
    pub struct RejectType: u32 {
        /// With ICMP (or ICMPv6) destination unreachable, and a code of that protocol.
        ICMP_UNREACH = sys::NFT_REJECT_ICMP_UNREACH => "icmp",
        /// With a TCP reset.
        TCP_RST = sys::NFT_REJECT_TCP_RST => "tcp reset",
        /// With ICMP or ICMPv6, and a code for both.
        ICMPX_UNREACH = sys::NFT_REJECT_ICMPX_UNREACH => "icmpx",
    }
}

values! {
    /// The codes for both ICMP and ICMPv6 (`enum nft_reject_inet_code`).
    pub struct RejectIcmpxCode: u8 {
        /// No route.
        NO_ROUTE = sys::NFT_REJECT_ICMPX_NO_ROUTE => "no-route",
        /// Port unreachable.
        PORT_UNREACH = sys::NFT_REJECT_ICMPX_PORT_UNREACH => "port-unreachable",
        /// Host unreachable.
        HOST_UNREACH = sys::NFT_REJECT_ICMPX_HOST_UNREACH => "host-unreachable",
        /// Prohibited by the administrator.
        ADMIN_PROHIBITED = sys::NFT_REJECT_ICMPX_ADMIN_PROHIBITED => "admin-prohibited",
    }
}

expression! {
    "reject"
    /// Drops the packet and notifies its sender (`enum nft_reject_attributes`).
    pub struct Reject viewed as RejectRef {
        /// How the sender is notified.
        NFTA_REJECT_TYPE => reject_type: RejectType,
        /// Code of ICMP, of ICMPv6, or a [`RejectIcmpxCode`].
        NFTA_REJECT_ICMP_CODE => icmp_code: u8,
    }
}

impl Reject {
    /// Rejects with ICMP (IPv4) or ICMPv6 destination unreachable and this code.
    #[must_use]
    pub const fn icmp(code: u8) -> Self {
        Self {
            reject_type: Some(RejectType::ICMP_UNREACH),
            icmp_code: Some(code),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Rejects with ICMP or ICMPv6, depending on the packet.
    #[must_use]
    pub const fn icmpx(code: RejectIcmpxCode) -> Self {
        Self {
            reject_type: Some(RejectType::ICMPX_UNREACH),
            icmp_code: Some(code.0),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Rejects with a TCP reset.
    #[must_use]
    pub const fn tcp_reset() -> Self {
        Self {
            reject_type: Some(RejectType::TCP_RST),
            icmp_code: None,
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Reject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reject_type = self.reject_type.unwrap_or_default().0;
        let code = self.icmp_code.unwrap_or_default();
        write!(f, "[ reject type {reject_type} code {code} ]")
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
            (1, "NFTA_REJECT_TYPE", Wire::Be32),
            (2, "NFTA_REJECT_ICMP_CODE", Wire::U8),
        ];
        assert_layout::<Reject>(Reject::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c reject with icmp type admin-prohibited`.
    #[test]
    fn by_icmp() {
        assert_element(
            Decoded::Reject,
            Reject {
                reject_type: Some(RejectType::ICMP_UNREACH),
                icmp_code: Some(13),
                ..Default::default()
            },
            "
                24000180                    ; NFTA_LIST_ELEM
                0b000100 72656a65 63740000  ;   NFTA_EXPR_NAME: reject
                14000280                    ;   NFTA_EXPR_DATA
                08000100 00000000           ;     NFTA_REJECT_TYPE
                05000200 0d000000           ;     NFTA_REJECT_ICMP_CODE
            ",
        );
        // nft 1.0.6: `add rule ip t c reject`.
        assert_attributes(
            Decoded::Reject,
            Reject::icmp(3),
            "08000100 00000000 05000200 03000000",
        );
    }

    /// nft 1.0.6: `add rule inet t c reject` and `… reject with icmpx type no-route`.
    #[test]
    fn by_whichever_icmp() {
        assert_attributes(
            Decoded::Reject,
            Reject::icmpx(RejectIcmpxCode::PORT_UNREACH),
            "08000100 00000002 05000200 01000000",
        );
        assert_attributes(
            Decoded::Reject,
            Reject::icmpx(RejectIcmpxCode::NO_ROUTE),
            "08000100 00000002 05000200 00000000",
        );
    }

    /// nft 1.0.6: `reject with tcp reset` sends a code as well; the kernel ignores it, and doesn't
    /// list it.
    #[test]
    fn by_tcp_reset() {
        assert_attributes(
            Decoded::Reject,
            Reject {
                icmp_code: Some(0),
                ..Reject::tcp_reset()
            },
            "08000100 00000001 05000200 00000000",
        );
        assert_listed(
            Decoded::Reject,
            Reject::tcp_reset(),
            "1c000100 0b000100 72656a65 63740000 0c000200 08000100 00000001",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c reject`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Reject,
            Reject::icmp(3),
            "24000100 0b000100 72656a65 63740000 14000200 08000100 00000000 05000200 03000000",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `reject`,
    /// `reject with icmp type admin-prohibited`, `reject with tcp reset`, and, in a table of family
    /// inet, `reject` and `reject with icmpx type no-route`.
    #[test]
    fn bytecode() {
        for (reject, line) in [
            (Reject::icmp(3), "[ reject type 0 code 3 ]"),
            (Reject::icmp(13), "[ reject type 0 code 13 ]"),
            (Reject::tcp_reset(), "[ reject type 1 code 0 ]"),
            (
                Reject::icmpx(RejectIcmpxCode::PORT_UNREACH),
                "[ reject type 2 code 1 ]",
            ),
            (
                Reject::icmpx(RejectIcmpxCode::NO_ROUTE),
                "[ reject type 2 code 0 ]",
            ),
            (Reject::default(), "[ reject type 0 code 0 ]"),
        ] {
            assert_eq!(reject.to_string(), line);
        }
    }
}
