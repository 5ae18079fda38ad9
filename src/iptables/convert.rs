//! Converts families, policies and counters between the backends.
//!
//! `nft`, `legacy` and `xt` do not depend on one another; this module connects them.

use super::{Counters, Family, Policy};
use crate::nft::expr::Counter;
use crate::{legacy, nft};

/// A family or a policy of nf_tables without an equivalent in x_tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoEquivalent {
    /// No family of x_tables, or of its extensions, is the same: `inet`, for instance.
    #[error("x_tables has no family {0}")]
    Family(nft::Family),
    /// A policy other than `accept` and `drop`.
    #[error("x_tables has no policy {0}")]
    Policy(nft::Policy),
}

crate::debug_as_message!(NoEquivalent);

impl From<Family> for legacy::Family {
    fn from(family: Family) -> Self {
        match family {
            Family::Ipv4 => Self::Ipv4,
            Family::Ipv6 => Self::Ipv6,
        }
    }
}

impl From<legacy::Family> for nft::Family {
    fn from(family: legacy::Family) -> Self {
        match family {
            legacy::Family::Ipv4 => Self::IP,
            legacy::Family::Ipv6 => Self::IP6,
            legacy::Family::Arp => Self::ARP,
        }
    }
}

impl From<Family> for nft::Family {
    fn from(family: Family) -> Self {
        legacy::Family::from(family).into()
    }
}

impl TryFrom<nft::Family> for legacy::Family {
    type Error = NoEquivalent;

    fn try_from(family: nft::Family) -> Result<Self, NoEquivalent> {
        Self::ALL
            .into_iter()
            .find(|&own| nft::Family::from(own) == family)
            .ok_or(NoEquivalent::Family(family))
    }
}

impl TryFrom<legacy::Family> for Family {
    type Error = NoEquivalent;

    fn try_from(family: legacy::Family) -> Result<Self, NoEquivalent> {
        match family {
            legacy::Family::Ipv4 => Ok(Self::Ipv4),
            legacy::Family::Ipv6 => Ok(Self::Ipv6),
            legacy::Family::Arp => Err(NoEquivalent::Family(family.into())),
        }
    }
}

impl TryFrom<nft::Family> for Family {
    type Error = NoEquivalent;

    fn try_from(family: nft::Family) -> Result<Self, NoEquivalent> {
        legacy::Family::try_from(family)?.try_into()
    }
}

impl From<Policy> for nft::Policy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Accept => Self::ACCEPT,
            Policy::Drop => Self::DROP,
        }
    }
}

impl TryFrom<nft::Policy> for Policy {
    type Error = NoEquivalent;

    fn try_from(policy: nft::Policy) -> Result<Self, NoEquivalent> {
        match policy {
            nft::Policy::ACCEPT => Ok(Self::Accept),
            nft::Policy::DROP => Ok(Self::Drop),
            _ => Err(NoEquivalent::Policy(policy)),
        }
    }
}

impl From<Counters> for nft::Counters {
    fn from(Counters { packets, bytes }: Counters) -> Self {
        Self {
            packets: Some(packets),
            bytes: Some(bytes),
            ..Self::default()
        }
    }
}

/// A missing number is 0, as in the kernel.
impl From<&nft::Counters> for Counters {
    fn from(counters: &nft::Counters) -> Self {
        Self {
            packets: counters.packets.unwrap_or_default(),
            bytes: counters.bytes.unwrap_or_default(),
        }
    }
}

impl From<Counters> for Counter {
    fn from(Counters { packets, bytes }: Counters) -> Self {
        Self::new(packets, bytes)
    }
}

/// A missing number is 0, as in the kernel.
impl From<&Counter> for Counters {
    fn from(counter: &Counter) -> Self {
        Self {
            packets: counter.packets.unwrap_or_default(),
            bytes: counter.bytes.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every family number of nf_tables, named or not, converts back to itself, or not at all.
    #[test]
    fn families_round_trip() {
        let (mut legacies, mut families) = (Vec::new(), Vec::new());
        for family in (0..=u8::MAX).map(nft::Family) {
            match legacy::Family::try_from(family) {
                Ok(legacy) => {
                    assert_eq!(nft::Family::from(legacy), family);
                    assert_eq!(Family::try_from(legacy), Family::try_from(family));
                    legacies.push(legacy);
                }
                Err(error) => assert_eq!(error, NoEquivalent::Family(family)),
            }
            if let Ok(own) = Family::try_from(family) {
                assert_eq!(nft::Family::from(own), family);
                assert_eq!(own.to_string(), legacy::Family::from(own).to_string());
                families.push(own);
            }
        }
        legacies.sort_unstable();
        families.sort_unstable();
        assert_eq!(legacies, legacy::Family::ALL);
        assert_eq!(families, Family::ALL);
        assert_eq!(
            Family::try_from(nft::Family::INET).unwrap_err().to_string(),
            "x_tables has no family inet"
        );
    }

    #[test]
    fn policies_round_trip() {
        for policy in [Policy::Accept, Policy::Drop] {
            assert_eq!(nft::Policy::from(policy).try_into(), Ok(policy));
            let name = nft::Policy::from(policy).name().unwrap();
            assert_eq!(name.to_ascii_uppercase(), policy.to_string());
        }
        let other = nft::Policy(2);
        assert_eq!(Policy::try_from(other), Err(NoEquivalent::Policy(other)));
    }

    #[test]
    fn counters_round_trip() {
        let counters = Counters {
            packets: 3,
            bytes: u64::MAX,
        };
        assert_eq!(Counters::from(&nft::Counters::from(counters)), counters);
        assert_eq!(Counters::from(&Counter::from(counters)), counters);
        assert_eq!(Counters::from(&Counter::default()), Counters::default());
    }
}
