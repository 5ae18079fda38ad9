//! Conditions that a part of a rule implies: the IP version and the transport protocol.

use chainwright::nft::Family;
use chainwright_lang::{MatchField, MatchValue, RulePart};

/// The IP version and the transport protocol that packets certainly have at a part of a rule, or that the part requires.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Protocols {
    version: Option<&'static str>,
    transport: Option<&'static str>,
}

/// Protocols of fields, and their names in English.
const TRANSPORTS: [(&str, &str); 14] = [
    ("tcp", "TCP"),
    ("udp", "UDP"),
    ("udplite", "UDP-Lite"),
    ("sctp", "SCTP"),
    ("dccp", "DCCP"),
    ("icmp", "ICMP"),
    ("icmpv6", "ICMPv6"),
    ("esp", "ESP"),
    ("ah", "AH"),
    ("comp", "IPComp"),
    ("igmp", "IGMP"),
    ("gre", "GRE"),
    ("gretap", "GRE"),
    ("synproxy", "TCP"),
];

/// Extension headers of IPv6.
const EXTENSIONS: [&str; 8] = ["exthdr", "hbh", "frag", "dst", "mh", "rt0", "rt2", "srh"];

/// Returns `true` for an option of IPv4 or an extension header of IPv6. The match of the IP version that they imply is the
/// first one of the rule.
fn is_extension(name: &str) -> bool {
    let (protocol, rest) = name.split_once(' ').unwrap_or((name, ""));
    match protocol {
        "ip" => rest.starts_with("option "),
        "rt" => ["nexthdr", "hdrlength", "type", "seg-left"].contains(&rest),
        protocol => EXTENSIONS.contains(&protocol),
    }
}

fn transport(name: &str) -> Option<&'static str> {
    let name = if name == "ipv6-icmp" { "icmpv6" } else { name };
    let found = TRANSPORTS.iter().find(|(nft, _)| *nft == name);
    found.map(|(_, english)| *english)
}

impl Protocols {
    /// Returns what a field requires: `ip dscp` IPv4.
    fn of_field(name: &str) -> Self {
        let protocol = name.split(' ').next().unwrap_or_default();
        Self {
            version: match protocol {
                "ip" | "icmp" | "igmp" => Some("IPv4"),
                "ip6" | "icmpv6" => Some("IPv6"),
                "arp" => Some("ARP"),
                _ if is_extension(name) => Some("IPv6"),
                _ => None,
            },
            transport: transport(protocol),
        }
    }

    fn of_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let all = names.into_iter().map(Self::of_field);
        all.fold(Self::default(), Self::and)
    }

    fn and(self, other: Self) -> Self {
        Self {
            version: self.version.or(other.version),
            transport: self.transport.or(other.transport),
        }
    }

    /// Returns what a statement requires besides its fields.
    fn of_statement(words: &str) -> Self {
        let version = |version| Self {
            version: Some(version),
            transport: None,
        };
        let mut all = words.split(' ');
        match (all.next(), all.next(), all.next()) {
            (Some("reject"), Some("with"), Some("tcp")) => Self::of_field("tcp"),
            (Some("reject"), Some("with"), Some("icmp")) => version("IPv4"),
            (Some("reject"), Some("with"), Some("icmpv6")) => version("IPv6"),
            (Some("dnat" | "snat" | "tproxy" | "fwd"), Some(family @ ("ip" | "ip6")), _) => {
                Self::of_field(family)
            }
            (Some("synproxy"), ..) => Self::of_field("synproxy"),
            _ => Self::default(),
        }
    }
}

/// Conditions that a part of a rule implies.
#[derive(Debug, Default)]
pub(super) struct Implied {
    pub(super) clauses: Vec<String>,
    /// Whether they apply to the whole rule, also to the statements before the part.
    pub(super) is_first: bool,
}

impl Protocols {
    /// Returns what is known at the start of a rule.
    pub(super) const fn of(family: Family) -> Self {
        Self {
            version: match family {
                Family::IP => Some("IPv4"),
                Family::IP6 => Some("IPv6"),
                _ => None,
            },
            transport: None,
        }
    }

    /// Returns the conditions that a part of the rule implies and that are not known yet, as clauses; then they are
    /// known. `has_actions` states whether statements precede the part.
    pub(super) fn implied_by(&mut self, part: &RulePart, has_actions: bool) -> Implied {
        match part {
            RulePart::Match {
                fields,
                relation,
                value,
                ..
            } => {
                let names = fields.iter().map(|field| field.name.as_str());
                let is_first = has_actions && names.clone().any(is_extension);
                // The clause names the protocol, but only limits what follows.
                let clauses = match is_first {
                    true => self.require(Self::of_fields(names)),
                    false => Vec::new(),
                };
                self.learn(fields, relation, value);
                Implied { clauses, is_first }
            }
            // Without an entry for other values, only packets with the field have a verdict.
            RulePart::VerdictMap { fields, map, .. } if has_default(map) => {
                let names = fields.iter().map(|field| field.name.as_str());
                Implied {
                    is_first: names.clone().any(is_extension),
                    clauses: self.require(Self::of_fields(names)),
                }
            }
            RulePart::Statement { fields, words, .. } => {
                let names = fields.iter().map(String::as_str);
                let is_first = words.starts_with("reject ") || names.clone().any(is_extension);
                let required = Self::of_fields(names).and(Self::of_statement(words));
                Implied {
                    clauses: self.require(required),
                    is_first,
                }
            }
            _ => Implied::default(),
        }
    }

    /// Learns what packets have that match.
    fn learn(&mut self, fields: &[MatchField], relation: &str, value: &MatchValue) {
        let required = Self::of_fields(fields.iter().map(|field| field.name.as_str()));
        *self = self.and(required);
        let (
            [
                MatchField {
                    name, mask: None, ..
                },
            ],
            "" | "==",
            MatchValue::One(value),
        ) = (fields, relation, value)
        else {
            return;
        };
        match (name.as_str(), value.as_str()) {
            ("meta nfproto", "ipv4") | ("meta protocol" | "ether type", "ip") => {
                self.version = Some("IPv4");
            }
            ("meta nfproto", "ipv6") | ("meta protocol" | "ether type", "ip6") => {
                self.version = Some("IPv6");
            }
            ("meta l4proto" | "ip protocol" | "ip6 nexthdr", protocol) => {
                self.transport = self.transport.or(transport(protocol));
            }
            _ => {}
        }
    }

    fn require(&mut self, required: Self) -> Vec<String> {
        let mut clauses = Vec::new();
        if let Some(version) = required.version
            && self.version.is_none()
        {
            clauses.push(format!("the packet is {version}"));
            self.version = Some(version);
        }
        if let Some(transport) = required.transport
            && self.transport.is_none()
        {
            clauses.push(format!("the protocol is {transport}"));
            self.transport = Some(transport);
        }
        clauses
    }
}

/// Returns `true` if a map may have an entry for all other values.
fn has_default(map: &MatchValue) -> bool {
    match map {
        MatchValue::Set(elements) => elements
            .iter()
            .any(|(key, _)| *key == MatchValue::One("*".into())),
        _ => true,
    }
}
