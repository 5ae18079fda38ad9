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
    /// The notification of the sender (`enum nft_reject_types`).
    pub struct RejectType: u32 {
        /// ICMP (or ICMPv6) destination unreachable, with a code of that protocol.
        ICMP_UNREACH = sys::NFT_REJECT_ICMP_UNREACH => "icmp",
        /// A TCP reset.
        TCP_RST = sys::NFT_REJECT_TCP_RST => "tcp reset",
        /// ICMP or ICMPv6, with a code for both.
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
        /// The notification of the sender.
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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("reject", Reject::icmp(3));
        assert_built("reject (2)", Reject::icmpx(RejectIcmpxCode::PORT_UNREACH));
        assert_built(
            "reject with icmpx type no-route",
            Reject::icmpx(RejectIcmpxCode::NO_ROUTE),
        );
        assert_built("listed: reject with tcp reset", Reject::tcp_reset());
        assert_built("reject with icmp type admin-prohibited", Reject::icmp(13));
    }
}
