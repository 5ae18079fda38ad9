//! A rule in iptables' terms.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::{Address, Counters, Interface, Protocol};
use crate::xt::{self, Text};

impl Counters {
    /// Prints the counters like `iptables-save -c`: `[packets:bytes]`.
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
    /// The packets and bytes that it matched.
    pub counters: Counters,
}

/// A rule that iptables' language cannot express.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotExpressible {
    /// Index of the expression in the rule; `None` if it is another part of the rule.
    pub expression: Option<usize>,
    /// The reason.
    pub reason: &'static str,
}

crate::debug_as_message!(NotExpressible);

impl fmt::Display for NotExpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expression {
            Some(position) => write!(f, "expression {}: {}", position + 1, self.reason),
            None => f.write_str(self.reason),
        }
    }
}

impl std::error::Error for NotExpressible {}

/// The target of a rule: what happens to matching packets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub enum Target {
    /// None: the rule only counts.
    #[default]
    None,
    /// `-j ACCEPT`
    Accept,
    /// `-j DROP`
    Drop,
    /// `-j RETURN`
    Return,
    /// `-j QUEUE`: hands packets to the program that listens on queue 0.
    Queue,
    /// `-j CHAIN`
    Jump(BString),
    /// `-g CHAIN`
    Goto(BString),
    /// An extension.
    Extension(xt::Target),
}

/// A rule, as in a line of `iptables-save`, without its counters.
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
    /// `-f`, only for IPv4: `true` for second and further fragments, `false` (`! -f`) for first fragments
    /// and whole packets.
    pub fragment: Option<bool>,
    /// `-m …`, in order.
    pub matches: Vec<xt::Match>,
    /// `-j …` or `-g …`
    pub target: Target,
}

impl Rule {
    /// Creates a rule that matches every packet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }

    /// Resets it to match every packet, and keeps its memory.
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

    /// Creates a rule that jumps to a chain for every packet.
    pub fn jump(chain: impl Into<BString>) -> Self {
        Self::new(Target::Jump(chain.into()))
    }

    /// Returns the chain that the rule jumps or goes to.
    #[must_use]
    pub fn jump_chain(&self) -> Option<&BStr> {
        match &self.target {
            Target::Jump(chain) | Target::Goto(chain) => Some(chain.as_bstr()),
            _ => None,
        }
    }

    /// Returns a mutable reference to the chain that it jumps or goes to.
    pub(super) const fn jump_chain_mut(&mut self) -> Option<&mut BString> {
        match &mut self.target {
            Target::Jump(chain) | Target::Goto(chain) => Some(chain),
            _ => None,
        }
    }

    /// Returns `true` if the rule has an extension in raw bytes, which the real tools cannot express.
    #[must_use]
    pub fn has_opaque(&self) -> bool {
        let target = matches!(&self.target, Target::Extension(xt::Target::Opaque(_)));
        let is_opaque = |one: &xt::Match| matches!(one, xt::Match::Opaque(_));
        target || self.matches.iter().any(is_opaque)
    }

    /// Returns the rule with one more match.
    #[must_use]
    pub fn with(mut self, more: xt::Match) -> Self {
        self.matches.push(more);
        self
    }

    /// Replaces the names of sets by their indexes, as encoding a rule requires.
    /// [`ipset::Connection`](crate::ipset::Connection) looks them up. A set may lose its index to
    /// another as soon as no rule refers to it: resolve just before writing the rule.
    ///
    /// # Errors
    /// Errors of the lookup; the names before the one that failed are resolved.
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

    /// Returns `true` if the rule contains the name of a set, so that it cannot be encoded.
    #[must_use]
    pub fn has_set_names(&self) -> bool {
        self.any_set(|set| matches!(set, xt::SetId::Name(_)))
    }

    /// Returns `true` if the rule contains the index of a set, so that it is not printed like in `iptables-save`.
    #[must_use]
    pub fn has_set_indexes(&self) -> bool {
        self.any_set(|set| matches!(set, xt::SetId::Index(_)))
    }

    fn any_set(&self, is: impl Fn(&xt::SetId) -> bool + Copy) -> bool {
        self.matches.iter().any(|extension| extension.any_set(is))
            || matches!(&self.target, Target::Extension(target) if target.any_set(is))
    }

    /// Replaces the indexes of sets by their names, as printing a rule like `iptables-save`
    /// requires.
    ///
    /// # Errors
    /// Errors of the lookup; the indexes before the one that failed are replaced.
    pub fn name_sets<N: xt::SetNames>(&mut self, names: &mut N) -> Result<(), N::Error> {
        for extension in &mut self.matches {
            extension.name_sets(names)?;
        }
        match &mut self.target {
            Target::Extension(target) => target.name_sets(names),
            _ => Ok(()),
        }
    }

    /// Returns `true` if the rule matches every packet; comments do not count.
    pub(super) fn matches_all_packets(&self) -> bool {
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
        let is_restricted =
            |address: &Option<Address>| address.is_some_and(|one| !one.is_everything());
        !is_restricted(source)
            && !is_restricted(destination)
            && in_interface.is_none()
            && out_interface.is_none()
            && protocol.is_none()
            && fragment.is_none()
            && matches
                .iter()
                .all(|one| matches!(one, xt::Match::Comment(_)))
    }

    /// Returns `true` if both rules do the same to every packet: equality, except for the order of matches that only
    /// inspect the packet.
    #[must_use]
    pub fn means_the_same(&self, other: &Self) -> bool {
        let head = |rule: &Self| {
            let restriction = |address: Option<Address>| address.filter(|a| !a.is_everything());
            (
                restriction(rule.source),
                restriction(rule.destination),
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

    /// Returns the representative of all rules that [mean the same](Self::means_the_same).
    pub(super) fn canonical(&self) -> Self {
        let restriction = |address: Option<Address>| address.filter(|a| !a.is_everything());
        Self {
            source: restriction(self.source),
            destination: restriction(self.destination),
            in_interface: self.in_interface.clone(),
            out_interface: self.out_interface.clone(),
            protocol: self.protocol,
            fragment: self.fragment,
            matches: sorted(needed(&conditions(&self.matches))),
            target: effective(&self.target),
        }
    }

    /// Prints the rule as `iptables-save` does after `-A CHAIN`, with a leading blank.
    pub fn print(&self, text: &mut Text) {
        self.print_conditions(text);
        self.print_target(text);
    }

    /// Prints everything except the target.
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

    /// Prints the target.
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

/// Drops options without effect from a target: `--nflog-range`, which nf_tables cannot store.
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

/// Splits matches into single conditions, with ports not negated if possible: nf_tables lists two matches of ports
/// as one, and `! 0:1023` as `1024:65535`.
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

/// Removes `-m tcp` and `-m udp` without conditions if there is another one with conditions, and repeated conditions of
/// these: nf_tables does not list them.
fn needed(all: &[xt::Match]) -> Vec<xt::Match> {
    let supersedes = |conditional: &xt::Match, empty: &xt::Match| match (conditional, empty) {
        (xt::Match::Tcp(conditional), xt::Match::Tcp(empty)) => {
            *empty == xt::matches::tcp::Tcp::default() && conditional != empty
        }
        (xt::Match::Udp(conditional), xt::Match::Udp(empty)) => {
            *empty == xt::matches::udp::Udp::default() && conditional != empty
        }
        _ => false,
    };
    let between_effects = all.chunk_by(|one, next| !one.has_effects() && !next.has_effects());
    between_effects
        .flat_map(|part| {
            let is_needed = |(index, one): &(usize, &xt::Match)| {
                let is_of_ports = matches!(one, xt::Match::Tcp(_) | xt::Match::Udp(_));
                let is_repeated = is_of_ports && part[..*index].contains(one);
                !is_repeated && !part.iter().any(|other| supersedes(other, one))
            };
            let needed = part.iter().enumerate().filter(is_needed);
            needed.map(|(_, one)| one.clone()).collect::<Vec<_>>()
        })
        .collect()
}

/// Sorts the matches that only inspect the packet, between those with side effects, which stay in
/// place.
fn sorted(mut matches: Vec<xt::Match>) -> Vec<xt::Match> {
    for part in matches.split_mut(xt::Match::has_effects) {
        part.sort_by_cached_key(|extension| format!("{extension:?}"));
    }
    matches
}

impl fmt::Display for Rule {
    /// Prints the rule's options as `iptables-save` does; bytes that are not UTF-8 are replaced.
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
        let repeated = ports("-m tcp --dport 80 -m tcp --dport 80 -m tcp --sport 90");
        assert!(repeated.means_the_same(&ports("-m tcp --sport 90 --dport 80")));
        assert!(!repeated.means_the_same(&ports("-m tcp --dport 80")));
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
