//! A rule in iptables' terms.

use std::fmt;
use std::net::IpAddr;

use bstr::BString;

use crate::xt;

/// An address and a mask to compare with a packet's source or destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address, with the bits outside the mask cleared.
    pub address: IpAddr,
    /// The mask, of the same family; it may have gaps.
    pub mask: IpAddr,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Address {
    /// A network by its prefix length, which is cut to the address's length.
    #[must_use]
    pub fn network(address: IpAddr, prefix: u32) -> Self {
        let mask = match address {
            IpAddr::V4(_) => IpAddr::from(
                u32::MAX
                    .checked_shl(32 - prefix.min(32))
                    .unwrap_or(0)
                    .to_be_bytes(),
            ),
            IpAddr::V6(_) => {
                let bits = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
                IpAddr::from(bits.to_be_bytes())
            }
        };
        Self::masked(address, mask, false)
    }

    /// An address and a mask; the bits outside the mask are cleared. If they are of different
    /// families, the mask is taken to be full.
    #[must_use]
    pub fn masked(address: IpAddr, mask: IpAddr, invert: bool) -> Self {
        match (address, mask) {
            (IpAddr::V4(a), IpAddr::V4(m)) => Self {
                address: IpAddr::from((a.to_bits() & m.to_bits()).to_be_bytes()),
                mask,
                invert,
            },
            (IpAddr::V6(a), IpAddr::V6(m)) => Self {
                address: IpAddr::from((a.to_bits() & m.to_bits()).to_be_bytes()),
                mask,
                invert,
            },
            (address, _) => Self {
                address,
                mask: match address {
                    IpAddr::V4(_) => IpAddr::from([0xff; 4]),
                    IpAddr::V6(_) => IpAddr::from([0xff; 16]),
                },
                invert,
            },
        }
    }

    /// The same, negated.
    #[must_use]
    pub const fn not(mut self) -> Self {
        self.invert = !self.invert;
        self
    }

    /// The prefix length, if the mask has no gaps.
    #[must_use]
    pub fn prefix(&self) -> Option<u32> {
        let (leading, ones) = match self.mask {
            IpAddr::V4(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
            IpAddr::V6(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
        };
        (leading == ones).then_some(leading)
    }
}

/// An interface name to compare with the one that a packet came in on or leaves by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name, or the start of it.
    pub name: BString,
    /// Whether all names that start so are meant (written with a `+`).
    pub prefix: bool,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// A layer-4 protocol to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// `IPPROTO_*`.
    pub number: u8,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// What becomes of a packet that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// Nothing: the rule only counts.
    #[default]
    None,
    /// `-j ACCEPT`
    Accept,
    /// `-j DROP`
    Drop,
    /// `-j RETURN`
    Return,
    /// `-j CHAIN`
    Jump(BString),
    /// `-g CHAIN`
    Goto(BString),
    /// An extension.
    Extension(xt::Target),
}

/// A rule: what a line of `iptables-save` says, without its counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// `-s`
    pub source: Option<Address>,
    /// `-d`
    pub destination: Option<Address>,
    /// `-i`
    pub in_interface: Option<Interface>,
    /// `-o`
    pub out_interface: Option<Interface>,
    /// `-p`
    pub protocol: Option<Protocol>,
    /// `-m …`, in order.
    pub matches: Vec<xt::Match>,
    /// `-j …` or `-g …`
    pub target: Target,
}

impl Rule {
    /// A rule that matches every packet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }

    /// A rule that sends every packet through a chain.
    pub fn jump(chain: impl Into<BString>) -> Self {
        Self::new(Target::Jump(chain.into()))
    }

    /// The same rule with one more match.
    #[must_use]
    pub fn with(mut self, more: xt::Match) -> Self {
        self.matches.push(more);
        self
    }

    /// Whether both rules do the same to every packet: as `==`, but for the order of matches that
    /// only look at the packet.
    #[must_use]
    pub fn means_the_same(&self, other: &Self) -> bool {
        // An extension without a typed value may have effects: its place among the others counts.
        let ordered = |rule: &Self| {
            let pure = |m: &&xt::Match| !matches!(m, xt::Match::Opaque(_));
            let mut matches: Vec<_> = rule.matches.iter().filter(pure).cloned().collect();
            matches.sort_by_cached_key(ToString::to_string);
            if rule.matches.iter().all(|m| pure(&m)) {
                matches
            } else {
                rule.matches.clone()
            }
        };
        let head = |rule: &Self| {
            (
                rule.source,
                rule.destination,
                rule.in_interface.clone(),
                rule.out_interface.clone(),
                rule.protocol,
            )
        };
        head(self) == head(other) && self.target == other.target && ordered(self) == ordered(other)
    }
}

impl fmt::Display for Rule {
    /// The options of the rule in iptables' language, for messages to people. It is not yet the
    /// text of `iptables-save` to the letter: protocols beyond the most common show as numbers, and
    /// extensions without a typed value as their name in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let not = |invert: bool| if invert { "! " } else { "" };
        for (option, address) in [("-s", &self.source), ("-d", &self.destination)] {
            if let Some(a) = address {
                let mask = a
                    .prefix()
                    .map_or_else(|| a.mask.to_string(), |p| p.to_string());
                parts.push(format!("{}{option} {}/{mask}", not(a.invert), a.address));
            }
        }
        for (option, interface) in [("-i", &self.in_interface), ("-o", &self.out_interface)] {
            if let Some(i) = interface {
                let plus = if i.prefix { "+" } else { "" };
                parts.push(format!("{}{option} {}{plus}", not(i.invert), i.name));
            }
        }
        if let Some(protocol) = self.protocol {
            let name = match protocol.number {
                1 => "icmp".to_owned(),
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                58 => "ipv6-icmp".to_owned(),
                132 => "sctp".to_owned(),
                number => number.to_string(),
            };
            parts.push(format!("{}-p {name}", not(protocol.invert)));
        }
        parts.extend(self.matches.iter().map(ToString::to_string));
        parts.extend(match &self.target {
            Target::None => None,
            Target::Accept => Some("-j ACCEPT".to_owned()),
            Target::Drop => Some("-j DROP".to_owned()),
            Target::Return => Some("-j RETURN".to_owned()),
            Target::Jump(chain) => Some(format!("-j {chain}")),
            Target::Goto(chain) => Some(format!("-g {chain}")),
            Target::Extension(target) => Some(target.to_string()),
        });
        f.write_str(&parts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::{Comment, Conntrack, ConntrackState, Match, Opaque};

    #[test]
    fn prefixes_and_masks() {
        let net = Address::network([127, 1, 2, 3].into(), 8);
        assert_eq!(net.address, IpAddr::from([127, 0, 0, 0]));
        assert_eq!(net.prefix(), Some(8));
        assert_eq!(Address::network([1, 2, 3, 4].into(), 0).prefix(), Some(0));
        assert_eq!(Address::network([1, 2, 3, 4].into(), 99).prefix(), Some(32));
        assert_eq!(Address::network(IpAddr::from([1; 16]), 0).prefix(), Some(0));
        let gaps = Address::masked([10, 9, 8, 7].into(), [255, 0, 255, 0].into(), true);
        assert_eq!(gaps.prefix(), None);
        let rule = Rule {
            source: Some(gaps),
            ..Rule::new(Target::Accept)
        };
        assert_eq!(rule.to_string(), "! -s 10.0.8.0/255.0.255.0 -j ACCEPT");
    }

    #[test]
    fn the_order_of_pure_matches_does_not_count() {
        let comment = Match::Comment(Comment::new("x").unwrap());
        let new = Match::Conntrack(Conntrack {
            states: ConntrackState::NEW,
            invert: false,
        });
        let opaque = |revision| {
            Match::Opaque(Opaque {
                name: "recent".into(),
                revision,
                info: vec![],
            })
        };
        let rule = Rule::new(Target::Drop);
        let one = rule.clone().with(comment.clone()).with(new.clone());
        let two = rule.clone().with(new).with(comment.clone());
        assert_ne!(one, two);
        assert!(one.means_the_same(&two));
        assert!(!one.means_the_same(&rule.clone().with(comment.clone())));
        let one = rule.clone().with(opaque(1)).with(comment.clone());
        let two = rule.clone().with(comment).with(opaque(1));
        assert!(!one.means_the_same(&two));
        assert!(!rule.means_the_same(&Rule::new(Target::Accept)));
    }
}
