//! `reject`: drops the packet and tells its sender.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{NFTA_REJECT_ICMP_CODE, NFTA_REJECT_TYPE};

use super::expression;
use crate::nft::declare::values;

values! {
    /// How the sender is told (`enum nft_reject_types`).
    pub struct RejectType: u32 {
        /// By ICMP (or ICMPv6) destination unreachable, with a code of that protocol.
        ICMP_UNREACH = sys::NFT_REJECT_ICMP_UNREACH => "icmp",
        /// By a TCP reset.
        TCP_RST = sys::NFT_REJECT_TCP_RST => "tcp reset",
        /// By ICMP or ICMPv6, with a code that serves both.
        ICMPX_UNREACH = sys::NFT_REJECT_ICMPX_UNREACH => "icmpx",
    }
}

values! {
    /// The codes that serve ICMP and ICMPv6 (`enum nft_reject_inet_code`).
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
    /// Drops the packet and tells its sender (`enum nft_reject_attributes`).
    pub struct Reject {
        /// How.
        NFTA_REJECT_TYPE => reject_type: RejectType,
        /// Code of ICMP, of ICMPv6, or a [`RejectIcmpxCode`].
        NFTA_REJECT_ICMP_CODE => icmp_code: u8,
    }
}

impl Reject {
    /// By ICMP (IPv4) or ICMPv6 destination unreachable with this code.
    #[must_use]
    pub const fn icmp(code: u8) -> Self {
        Self {
            reject_type: Some(RejectType::ICMP_UNREACH),
            icmp_code: Some(code),
        }
    }

    /// By ICMP or ICMPv6, whichever the packet calls for.
    #[must_use]
    pub const fn icmpx(code: RejectIcmpxCode) -> Self {
        Self {
            reject_type: Some(RejectType::ICMPX_UNREACH),
            icmp_code: Some(code.0),
        }
    }

    /// By a TCP reset.
    #[must_use]
    pub const fn tcp_reset() -> Self {
        Self {
            reject_type: Some(RejectType::TCP_RST),
            icmp_code: None,
        }
    }
}
