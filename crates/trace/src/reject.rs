//! Replies to rejected packets.

use chainwright::nft::build::{IcmpCode, Icmpv6Code};
use chainwright::nft::expr::RejectIcmpxCode;
use chainwright::xt::Family;
use chainwright::xt::targets::reject::Reject;

/// Reply to a rejected packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectReply {
    /// TCP reset.
    TcpReset,
    /// Destination unreachable, with a code of the family's ICMP.
    Icmp(u8),
}

impl RejectReply {
    /// Converts an ICMPX code to the family's code.
    pub(super) const fn of_both(code: RejectIcmpxCode, family: Family) -> Option<Self> {
        let (ipv4, ipv6) = match code {
            RejectIcmpxCode::NO_ROUTE => (IcmpCode::NET_UNREACHABLE, Icmpv6Code::NO_ROUTE),
            RejectIcmpxCode::PORT_UNREACH => {
                (IcmpCode::PORT_UNREACHABLE, Icmpv6Code::PORT_UNREACHABLE)
            }
            RejectIcmpxCode::HOST_UNREACH => {
                (IcmpCode::HOST_UNREACHABLE, Icmpv6Code::ADDR_UNREACHABLE)
            }
            RejectIcmpxCode::ADMIN_PROHIBITED => {
                (IcmpCode::ADMIN_PROHIBITED, Icmpv6Code::ADMIN_PROHIBITED)
            }
            _ => return None,
        };
        Some(Self::Icmp(match family {
            Family::Ipv4 => ipv4.0,
            Family::Ipv6 => ipv6.0,
        }))
    }

    /// Converts the reply of x_tables' `REJECT` target.
    pub(super) const fn of(reject: Reject) -> Self {
        Self::Icmp(match reject {
            Reject::TcpReset => return Self::TcpReset,
            Reject::IcmpNetUnreachable => IcmpCode::NET_UNREACHABLE.0,
            Reject::IcmpHostUnreachable => IcmpCode::HOST_UNREACHABLE.0,
            Reject::IcmpProtoUnreachable => IcmpCode::PROT_UNREACHABLE.0,
            Reject::IcmpPortUnreachable => IcmpCode::PORT_UNREACHABLE.0,
            Reject::IcmpNetProhibited => IcmpCode::NET_PROHIBITED.0,
            Reject::IcmpHostProhibited => IcmpCode::HOST_PROHIBITED.0,
            Reject::IcmpAdminProhibited => IcmpCode::ADMIN_PROHIBITED.0,
            Reject::Icmp6NoRoute => Icmpv6Code::NO_ROUTE.0,
            Reject::Icmp6AdmProhibited => Icmpv6Code::ADMIN_PROHIBITED.0,
            Reject::Icmp6AddrUnreachable => Icmpv6Code::ADDR_UNREACHABLE.0,
            Reject::Icmp6PortUnreachable => Icmpv6Code::PORT_UNREACHABLE.0,
            Reject::Icmp6PolicyFail => Icmpv6Code::POLICY_FAIL.0,
            Reject::Icmp6RejectRoute => Icmpv6Code::REJECT_ROUTE.0,
        })
    }

    /// Formats the reply in nft's language.
    pub(super) fn description(self, family: Family) -> String {
        let Self::Icmp(code) = self else {
            return "tcp reset".to_owned();
        };
        let (protocol, name) = match family {
            Family::Ipv4 => ("icmp", IcmpCode(code).name()),
            Family::Ipv6 => ("icmpv6", Icmpv6Code(code).name()),
        };
        match name {
            Some(name) => format!("{protocol} {name}"),
            None => format!("{protocol} code {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All kinds of rules have the same words for the same reply.
    #[test]
    fn description() {
        for (family, both, xtables, description) in [
            (
                Family::Ipv4,
                Some(RejectIcmpxCode::NO_ROUTE),
                Reject::IcmpNetUnreachable,
                "icmp net-unreachable",
            ),
            (
                Family::Ipv4,
                Some(RejectIcmpxCode::PORT_UNREACH),
                Reject::IcmpPortUnreachable,
                "icmp port-unreachable",
            ),
            (
                Family::Ipv4,
                Some(RejectIcmpxCode::HOST_UNREACH),
                Reject::IcmpHostUnreachable,
                "icmp host-unreachable",
            ),
            (
                Family::Ipv4,
                Some(RejectIcmpxCode::ADMIN_PROHIBITED),
                Reject::IcmpAdminProhibited,
                "icmp admin-prohibited",
            ),
            (
                Family::Ipv4,
                None,
                Reject::IcmpNetProhibited,
                "icmp net-prohibited",
            ),
            (
                Family::Ipv6,
                Some(RejectIcmpxCode::NO_ROUTE),
                Reject::Icmp6NoRoute,
                "icmpv6 no-route",
            ),
            (
                Family::Ipv6,
                Some(RejectIcmpxCode::PORT_UNREACH),
                Reject::Icmp6PortUnreachable,
                "icmpv6 port-unreachable",
            ),
            (
                Family::Ipv6,
                Some(RejectIcmpxCode::HOST_UNREACH),
                Reject::Icmp6AddrUnreachable,
                "icmpv6 addr-unreachable",
            ),
            (
                Family::Ipv6,
                Some(RejectIcmpxCode::ADMIN_PROHIBITED),
                Reject::Icmp6AdmProhibited,
                "icmpv6 admin-prohibited",
            ),
            (
                Family::Ipv6,
                None,
                Reject::Icmp6PolicyFail,
                "icmpv6 policy-fail",
            ),
            (Family::Ipv6, None, Reject::TcpReset, "tcp reset"),
        ] {
            let answer = RejectReply::of(xtables);
            assert_eq!(answer.description(family), description);
            if let Some(both) = both {
                assert_eq!(
                    RejectReply::of_both(both, family),
                    Some(answer),
                    "{description}"
                );
            }
        }
        assert_eq!(
            RejectReply::Icmp(200).description(Family::Ipv4),
            "icmp code 200"
        );
        assert_eq!(RejectReply::of_both(RejectIcmpxCode(9), Family::Ipv4), None);
    }
}
