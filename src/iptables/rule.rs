//! A rule in iptables' terms.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::{Address, Counters, Interface, Protocol};
use crate::xt::{self, Text};

impl Counters {
    /// Adds them as `iptables-save -c` prints them: `[packets:bytes]`.
    pub(super) fn print(self, text: &mut Text) {
        text.push("[").number(self.packets);
        text.push(":").number(self.bytes).push("]");
    }
}

/// A rule with its counters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Entry {
    /// The rule.
    pub rule: Rule,
    /// How often it was applied.
    pub counters: Counters,
}

/// A rule that iptables' language has no words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotExpressible {
    /// Which of the rule's expressions, from 0; `None` if it is something else of the rule.
    pub expression: Option<usize>,
    /// Why.
    pub reason: &'static str,
}

impl fmt::Display for NotExpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expression {
            Some(position) => write!(f, "expression {}: {}", position + 1, self.reason),
            None => f.write_str(self.reason),
        }
    }
}

impl std::error::Error for NotExpressible {}

/// What becomes of a packet that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
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
    /// `-j QUEUE`: to the program that listens on queue 0.
    Queue,
    /// `-j CHAIN`
    Jump(BString),
    /// `-g CHAIN`
    Goto(BString),
    /// An extension.
    Extension(xt::Target),
}

/// A rule: what a line of `iptables-save` says, without its counters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
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
    /// `-f`, only for IPv4: `true` for second and further fragments, `false` (`! -f`) for heads
    /// and whole packets.
    pub fragment: Option<bool>,
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

    /// Makes it match every packet, and keeps its memory.
    pub(super) fn clear(&mut self) {
        let Self {
            source,
            destination,
            in_interface,
            out_interface,
            protocol,
            fragment,
            matches,
            target,
        } = self;
        (*source, *destination) = (None, None);
        (*in_interface, *out_interface) = (None, None);
        (*protocol, *fragment) = (None, None);
        matches.clear();
        *target = Target::None;
    }

    /// A rule that sends every packet through a chain.
    pub fn jump(chain: impl Into<BString>) -> Self {
        Self::new(Target::Jump(chain.into()))
    }

    /// The chain that it jumps or goes to.
    #[must_use]
    pub fn leads_to(&self) -> Option<&BStr> {
        match &self.target {
            Target::Jump(chain) | Target::Goto(chain) => Some(chain.as_bstr()),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(super) const fn leads_to_mut(&mut self) -> Option<&mut BString> {
        match &mut self.target {
            Target::Jump(chain) | Target::Goto(chain) => Some(chain),
            _ => None,
        }
    }

    /// Whether an extension of it is said by its bytes, for which the real tools have no words.
    #[must_use]
    pub fn has_opaque(&self) -> bool {
        let target = matches!(&self.target, Target::Extension(xt::Target::Opaque(_)));
        let is_opaque = |one: &xt::Match| matches!(one, xt::Match::Opaque(_));
        target || self.matches.iter().any(is_opaque)
    }

    /// The same rule with one more match.
    #[must_use]
    pub fn with(mut self, more: xt::Match) -> Self {
        self.matches.push(more);
        self
    }

    /// Puts indexes in the place of the names of sets, as a rule must have them to be encoded.
    /// [`ipset::Connection`](crate::ipset::Connection) looks them up. A set may lose its index to
    /// another as soon as no rule refers to it: resolve just before the rule is written.
    ///
    /// # Errors
    /// What the look-up says; the names in front of the one that failed are resolved.
    pub fn resolve_sets<N: xt::SetNames>(
        &mut self,
        family: xt::Family,
        names: &mut N,
    ) -> Result<(), N::Error> {
        for extension in &mut self.matches {
            extension.resolve_sets(family, names)?;
        }
        match &mut self.target {
            Target::Extension(target) => target.resolve_sets(family, names),
            _ => Ok(()),
        }
    }

    /// Whether it names a set, so that it cannot be encoded.
    #[must_use]
    pub fn has_set_names(&self) -> bool {
        self.any_set(|set| matches!(set, xt::SetId::Name(_)))
    }

    /// Whether it says a set by its index, so that it is not printed as `iptables-save` does.
    #[must_use]
    pub fn has_set_indexes(&self) -> bool {
        self.any_set(|set| matches!(set, xt::SetId::Index(_)))
    }

    fn any_set(&self, is: impl Fn(&xt::SetId) -> bool + Copy) -> bool {
        self.matches.iter().any(|extension| extension.any_set(is))
            || matches!(&self.target, Target::Extension(target) if target.any_set(is))
    }

    /// Puts names in the place of the indexes of sets, as a rule must have them to be printed as
    /// `iptables-save` does.
    ///
    /// # Errors
    /// What the look-up says; the indexes in front of the one that failed are replaced.
    pub fn name_sets<N: xt::SetNames>(&mut self, names: &mut N) -> Result<(), N::Error> {
        for extension in &mut self.matches {
            extension.name_sets(names)?;
        }
        match &mut self.target {
            Target::Extension(target) => target.name_sets(names),
            _ => Ok(()),
        }
    }

    /// Whether it asks nothing of a packet: comments aside, it is for each that comes to it.
    pub(super) fn is_for_all(&self) -> bool {
        let Self {
            source,
            destination,
            in_interface,
            out_interface,
            protocol,
            fragment,
            matches,
            target: _,
        } = self;
        let asked = |address: &Option<Address>| address.is_some_and(|one| !one.is_everything());
        !asked(source)
            && !asked(destination)
            && in_interface.is_none()
            && out_interface.is_none()
            && protocol.is_none()
            && fragment.is_none()
            && matches
                .iter()
                .all(|one| matches!(one, xt::Match::Comment(_)))
    }

    /// Whether both rules do the same to every packet: as `==`, but for the order of matches that
    /// only look at the packet.
    #[must_use]
    pub fn means_the_same(&self, other: &Self) -> bool {
        let head = |rule: &Self| {
            let said = |address: Option<Address>| address.filter(|a| !a.is_everything());
            (
                said(rule.source),
                said(rule.destination),
                rule.protocol,
                rule.fragment,
            )
        };
        head(self) == head(other)
            && self.in_interface == other.in_interface
            && self.out_interface == other.out_interface
            && (self.target == other.target && self.matches == other.matches
                || self.canonical() == other.canonical())
    }

    /// A rule that is the same for all rules that [mean the same](Self::means_the_same).
    pub(super) fn canonical(&self) -> Self {
        let said = |address: Option<Address>| address.filter(|a| !a.is_everything());
        Self {
            source: said(self.source),
            destination: said(self.destination),
            in_interface: self.in_interface.clone(),
            out_interface: self.out_interface.clone(),
            protocol: self.protocol,
            fragment: self.fragment,
            matches: sorted(needed(&conditions(&self.matches))),
            target: effective(&self.target),
        }
    }

    /// Adds the rule as `iptables-save` prints it behind `-A CHAIN`, with a blank before it.
    pub fn print(&self, text: &mut Text) {
        self.print_conditions(text);
        self.print_target(text);
    }

    /// Adds all but the target.
    pub(super) fn print_conditions(&self, text: &mut Text) {
        for (option, address) in [("-s", &self.source), ("-d", &self.destination)] {
            if let Some(address) = address.as_ref().filter(|a| !a.is_everything()) {
                address.print(text, option);
            }
        }
        for (option, interface) in [("-i", &self.in_interface), ("-o", &self.out_interface)] {
            if let Some(interface) = interface {
                interface.print(text, option);
            }
        }
        if let Some(protocol) = self.protocol {
            protocol.print(text);
        }
        match self.fragment {
            Some(true) => drop(text.push(" -f")),
            Some(false) => drop(text.push(" ! -f")),
            None => {}
        }
        for extension in &self.matches {
            extension.print(text);
        }
    }

    /// Adds the target.
    pub(super) fn print_target(&self, text: &mut Text) {
        match &self.target {
            Target::None => {}
            Target::Accept => drop(text.push(" -j ACCEPT")),
            Target::Drop => drop(text.push(" -j DROP")),
            Target::Return => drop(text.push(" -j RETURN")),
            Target::Queue => drop(text.push(" -j QUEUE")),
            Target::Jump(chain) => drop(text.push(" -j").name(chain)),
            Target::Goto(chain) => drop(text.push(" -g").name(chain)),
            Target::Extension(target) => target.print(text),
        }
    }
}

/// A target without what does nothing: `--nflog-range`, for which nf_tables has no place.
fn effective(target: &Target) -> Target {
    match target {
        Target::Extension(xt::Target::Nflog(log)) => {
            let log = xt::targets::nflog::Nflog {
                length: if log.cut { log.length } else { 0 },
                ..log.clone()
            };
            Target::Extension(xt::Target::Nflog(log))
        }
        other => other.clone(),
    }
}

/// Each condition by itself, ports not negated where that can be: nf_tables gives two matches of ports
/// back as one, and `! 0:1023` as `1024:65535`.
fn conditions(matches: &[xt::Match]) -> Vec<xt::Match> {
    let mut all = Vec::with_capacity(matches.len());
    for extension in matches {
        match extension {
            xt::Match::Tcp(tcp) => {
                let plain = xt::matches::tcp::Tcp {
                    source: tcp.source.positive(),
                    destination: tcp.destination.positive(),
                    ..*tcp
                };
                let none = xt::matches::tcp::Tcp::default();
                let before = all.len();
                for one in [
                    xt::matches::tcp::Tcp {
                        source: plain.source,
                        ..none
                    },
                    xt::matches::tcp::Tcp {
                        destination: plain.destination,
                        ..none
                    },
                    xt::matches::tcp::Tcp {
                        flags: plain.flags,
                        ..none
                    },
                    xt::matches::tcp::Tcp {
                        option: plain.option,
                        ..none
                    },
                ] {
                    if one != none {
                        all.push(xt::Match::Tcp(one));
                    }
                }
                if all.len() == before {
                    all.push(xt::Match::Tcp(none));
                }
            }
            xt::Match::Udp(udp) => {
                let none = xt::matches::udp::Udp::default();
                let before = all.len();
                for one in [
                    xt::matches::udp::Udp {
                        source: udp.source.positive(),
                        ..none
                    },
                    xt::matches::udp::Udp {
                        destination: udp.destination.positive(),
                        ..none
                    },
                ] {
                    if one != none {
                        all.push(xt::Match::Udp(one));
                    }
                }
                if all.len() == before {
                    all.push(xt::Match::Udp(none));
                }
            }
            other => all.push(other.clone()),
        }
    }
    all
}

/// The same without `-m tcp` and `-m udp` that ask nothing, where another asks something: nf_tables does not give
/// those back.
fn needed(all: &[xt::Match]) -> Vec<xt::Match> {
    let is_asked_of = |asking: &xt::Match, empty: &xt::Match| match (asking, empty) {
        (xt::Match::Tcp(asking), xt::Match::Tcp(empty)) => {
            *empty == xt::matches::tcp::Tcp::default() && asking != empty
        }
        (xt::Match::Udp(asking), xt::Match::Udp(empty)) => {
            *empty == xt::matches::udp::Udp::default() && asking != empty
        }
        _ => false,
    };
    let between_effects = all.chunk_by(|one, next| !one.has_effects() && !next.has_effects());
    between_effects
        .flat_map(|part| {
            let is_needed = |one: &&xt::Match| !part.iter().any(|other| is_asked_of(other, one));
            part.iter().filter(is_needed).cloned().collect::<Vec<_>>()
        })
        .collect()
}

/// The same with those that only look at the packet in an order of their own between the others, which stand where
/// they stood.
fn sorted(mut matches: Vec<xt::Match>) -> Vec<xt::Match> {
    for part in matches.split_mut(xt::Match::has_effects) {
        part.sort_by_cached_key(|extension| format!("{extension:?}"));
    }
    matches
}

impl fmt::Display for Rule {
    /// The rule's options, as `iptables-save` prints them; what is not UTF-8 is replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::new();
        self.print(&mut text);
        f.write_str(text.as_bytes().to_str_lossy().trim_start())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::xt::matches::comment::Comment;
    use crate::xt::matches::conntrack::{Conntrack, ConntrackState};
    use crate::xt::{Family, Match, Opaque};

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
        let new = Match::Conntrack(Conntrack::states(ConntrackState::NEW));
        let opaque = |revision| {
            Match::Opaque(Opaque {
                name: "recent".into(),
                revision,
                info: vec![],
            })
        };
        let rule = Rule::new(Target::Drop);
        let ports = |options| Rule::parse(Family::Ipv4, format!("-p tcp {options}")).unwrap();
        let both = ports("-m tcp --sport 1 ! --dport 0:1023");
        assert!(both.means_the_same(&ports("-m tcp --dport 1024:65535 -m tcp --sport 1")));
        assert!(both.means_the_same(&ports("-m tcp -m tcp --sport 1 ! --dport 0:1023")));
        assert!(!both.means_the_same(&ports("-m tcp")));
        assert!(!both.means_the_same(&ports("-m tcp --dport 1024:65535")));
        assert!(!both.means_the_same(&ports("-m tcp --sport 1 -m limit -m tcp ! --dport 0:1023")));
        let one = rule.clone().with(comment.clone()).with(new.clone());
        let two = rule.clone().with(new).with(comment.clone());
        assert_ne!(one, two);
        assert!(one.means_the_same(&two));
        assert!(!one.means_the_same(&rule.clone().with(comment.clone())));
        let one = rule.clone().with(opaque(1)).with(comment.clone());
        let two = rule.clone().with(comment).with(opaque(1));
        assert!(!one.means_the_same(&two));
        assert!(!rule.means_the_same(&Rule::new(Target::Accept)));
        let log = |options| Rule::parse(Family::Ipv4, format!("-j NFLOG {options}")).unwrap();
        let plain = log("--nflog-group 2");
        assert!(plain.means_the_same(&log("--nflog-group 2 --nflog-range 64")));
        assert!(!plain.means_the_same(&log("--nflog-group 2 --nflog-size 64")));
        assert!(!plain.means_the_same(&log("--nflog-group 3 --nflog-range 64")));
    }
}
