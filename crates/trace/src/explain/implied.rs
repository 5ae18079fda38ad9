//! Conditions that a part of a rule implies: the IP version and the transport protocol.

use chainwright::nft::Family;
use chainwright_lang::{MatchField, MatchValue, RulePart};

/// What is certain of the packets at a part of a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The IP version.
    version: Option<&'static str>,
    /// Names of transport protocols: the packet has all of them, so at most one.
    transport: Option<&'static str>,
}

/// What a part of a rule requires.
#[derive(Debug, Clone, Copy, Default)]
struct Required {
    version: Option<&'static str>,
    transport: Option<&'static str>,
}

/// Protocols of fields, and their names in English.
const TRANSPORTS: [(&str, &str); 9] = [
    ("tcp", "TCP"),
    ("udp", "UDP"),
    ("udplite", "UDP-Lite"),
    ("sctp", "SCTP"),
    ("dccp", "DCCP"),
    ("icmp", "ICMP"),
    ("icmpv6", "ICMPv6"),
    ("esp", "ESP"),
    ("ah", "AH"),
];

fn transport(name: &str) -> Option<&'static str> {
    let name = if name == "ipv6-icmp" { "icmpv6" } else { name };
    let found = TRANSPORTS.iter().find(|(nft, _)| *nft == name);
    found.map(|(_, english)| *english)
}

impl Required {
    /// Returns what a field requires: `ip dscp` IPv4.
    fn of_field(name: &str) -> Self {
        let protocol = name.split(' ').next().unwrap_or_default();
        Self {
            version: match protocol {
                "ip" => Some("IPv4"),
                "ip6" | "exthdr" | "hbh" | "frag" | "mh" | "dst" => Some("IPv6"),
                _ => None,
            },
            transport: transport(protocol),
        }
    }

    fn of_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let all = names.into_iter().map(Self::of_field);
        all.fold(Self::default(), |one, other| Self {
            version: one.version.or(other.version),
            transport: one.transport.or(other.transport),
        })
    }

    /// Returns what a statement requires.
    fn of_statement(words: &str) -> Self {
        let version = |version| Self {
            version: Some(version),
            transport: None,
        };
        if let Some(reject) = words.strip_prefix("reject with ") {
            return match reject {
                "tcp reset" => Self::of_field("tcp"),
                reject if reject.starts_with("icmp ") => version("IPv4"),
                reject if reject.starts_with("icmpv6 ") => version("IPv6"),
                _ => Self::default(),
            };
        }
        if let Some((verb, rest)) = words.split_once(' ')
            && ["dnat", "snat"].contains(&verb)
            && let Some((family @ ("ip" | "ip6"), _)) = rest.split_once(' ')
        {
            return Self::of_field(family);
        }
        if let Some((_, element)) = words.split_once(" { ")
            && ["add @", "update @", "delete @"]
                .iter()
                .any(|verb| words.starts_with(verb))
        {
            let element = element.trim_end_matches(" }");
            let key = element.split(" timeout ").next().unwrap_or(element);
            return Self::of_fields(key.split(" . "));
        }
        match words.split_once(" set ") {
            // Not in a text, such as a prefix of `log`.
            Some((field, value)) if !field.contains('"') => Self::of_fields([field, value]),
            _ => Self::default(),
        }
    }
}

impl Known {
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
    /// known.
    pub(super) fn implied_by(&mut self, part: &RulePart) -> Vec<String> {
        let names = |fields: &'_ [MatchField]| -> Vec<String> {
            fields.iter().map(|field| field.name.clone()).collect()
        };
        match part {
            // The clause names the protocol.
            RulePart::Match {
                fields,
                relation,
                value,
                ..
            } => {
                self.learn(fields, relation, value);
                Vec::new()
            }
            // Without an entry for other values, only packets with the field have a verdict.
            RulePart::VerdictMap { fields, map, .. } if has_default(map) => {
                let names = names(fields);
                self.require(Required::of_fields(names.iter().map(String::as_str)))
            }
            RulePart::Statement { words, .. } => self.require(Required::of_statement(words)),
            _ => Vec::new(),
        }
    }

    /// Learns what packets have that match.
    fn learn(&mut self, fields: &[MatchField], relation: &str, value: &MatchValue) {
        let required = Required::of_fields(fields.iter().map(|field| field.name.as_str()));
        self.version = self.version.or(required.version);
        self.transport = self.transport.or(required.transport);
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

    fn require(&mut self, required: Required) -> Vec<String> {
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
