//! Checks that iptables' language can express a rule: a decoded rule is returned only if its text parses
//! to the same rule.
//!
//! For the parts of nearly all rules this is known without parsing the text; a rule
//! with any other part is printed and parsed.

use bstr::{BStr, ByteSlice};

use super::{Interface, Protocol, Rule, Target, builtin};
use crate::xt::matches::PortRange;
use crate::xt::{self, Family, SetName, SetNames, Text};

/// The reason why no text can express a rule or chain.
type Inexpressible = &'static str;

/// Longest name of a chain in iptables, in bytes (`XT_EXTENSION_MAXNAMELEN` includes the NUL).
const MAX_CHAIN_NAME_LENGTH: usize = 28;

/// Length of the longest name of a target or a built-in chain.
const MAX_RESERVED_NAME_LENGTH: usize = 11;

/// Words after `-j` that never mean a chain. An extension's name means a chain if the table has one of that name.
const VERDICTS: [&[u8]; 6] = [
    b"ACCEPT",
    b"DROP",
    b"QUEUE",
    b"RETURN",
    b"ULOG",
    b"standard",
];

/// Checks that a user's chain of this name can be declared, filled and jumped to.
pub(super) fn chain(table: &BStr, name: &BStr) -> Result<(), Inexpressible> {
    let bytes = name.as_bytes();
    let is_forbidden = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0x0b | b'"' | 0);
    if bytes.is_empty() || bytes.len() > MAX_CHAIN_NAME_LENGTH {
        return Err("a chain name must have 1 to 28 bytes");
    }
    if matches!(bytes[0], b'-' | b'!') || bytes.iter().any(is_forbidden) {
        return Err("a chain name has a space, quote or newline");
    }
    // No target and no built-in chain has such a long name.
    if bytes.len() > MAX_RESERVED_NAME_LENGTH {
        return Ok(());
    }
    if VERDICTS.contains(&bytes) {
        return Err("a chain has the name of a target");
    }
    let builtin = |table: &str, name| builtin(table, name).is_some();
    if let (Ok(table), Ok(name)) = (table.to_str(), name.to_str())
        && builtin(table, name)
    {
        return Err("a chain has the name of a built-in chain");
    }
    Ok(())
}

/// Returns `true` if this is the name of an extension that can be a target.
pub(super) fn is_target(name: &BStr) -> bool {
    let named = |family| xt::Target::named(family, name).is_some();
    name.len() <= MAX_RESERVED_NAME_LENGTH && (named(Family::Ipv4) || named(Family::Ipv6))
}

/// Checks that the rule's text in this chain parses as the same rule, on its own or, if `declared`, where the target
/// chain is declared before it.
pub(super) fn rule(
    family: Family,
    table: &BStr,
    in_chain: &BStr,
    rule: &Rule,
    declared: bool,
) -> Result<(), Inexpressible> {
    if let Some(to) = rule.jump_chain() {
        chain(table, to)?;
        if !declared && is_target(to) {
            return Err("a chain has the name of a target");
        }
    }
    let in_interface = rule.in_interface.as_ref().map(interface).transpose()?;
    let out_interface = rule.out_interface.as_ref().map(interface).transpose()?;
    match in_chain.as_bytes() {
        b"OUTPUT" | b"POSTROUTING" if in_interface.is_some() => {
            return Err("rules of this chain cannot match the input interface");
        }
        b"INPUT" | b"PREROUTING" if out_interface.is_some() => {
            return Err("rules of this chain cannot match the output interface");
        }
        _ => {}
    }
    if table == "nat" && rule.target == Target::Drop {
        return Err("rules of table nat cannot drop packets");
    }
    if rule.protocol.is_some_and(|protocol| protocol.number == 0) {
        return Err("protocol 0 means all protocols in iptables");
    }
    if rule.matches.iter().any(has_gaps) {
        return Err("conntrack cannot express a non-contiguous mask");
    }
    let sure = in_interface.unwrap_or(true)
        && out_interface.unwrap_or(true)
        && rule
            .matches
            .iter()
            .all(|m| round_trips_match(m, rule.protocol))
        && round_trips_target(&rule.target, rule.protocol);
    if sure || is_read_back(family, rule) {
        Ok(())
    } else {
        Err("its text would be read as a different rule")
    }
}

/// Checks that the name can be an option's value; `true` if it is known to need no parsing.
fn interface(interface: &Interface) -> Result<bool, Inexpressible> {
    let name = interface.name.as_bytes();
    let length = name.len() + usize::from(interface.prefix);
    if length == 0 || length > 15 {
        return Err("an interface name must have 1 to 15 bytes");
    }
    if name.contains(&b'\n') || name.contains(&0) {
        return Err("an interface name has a newline");
    }
    if !interface.prefix && name.ends_with(b"+") {
        return Err("an interface name that ends in + is a prefix in iptables");
    }
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_@:/+*".contains(byte);
    Ok(name.iter().all(plain) && !name.starts_with(b"-"))
}

/// Returns `true` if an address mask of conntrack has gaps, which iptables prints, but parses as a whole mask.
fn has_gaps(one: &xt::Match) -> bool {
    let xt::Match::Conntrack(conntrack) = one else {
        return false;
    };
    let gaps = |compared: Option<xt::Negatable<xt::matches::conntrack::ConntrackAddress>>| {
        let mask = compared.map(|compared| compared.value.mask);
        mask.is_some_and(|mask| mask.prefix_length().is_none())
    };
    conntrack.tuples.as_ref().is_some_and(|tuples| {
        gaps(tuples.original_source)
            || gaps(tuples.original_destination)
            || gaps(tuples.reply_source)
            || gaps(tuples.reply_destination)
    })
}

/// Returns `true` if this match is known to parse as it is printed.
fn round_trips_match(one: &xt::Match, protocol: Option<Protocol>) -> bool {
    let is = |number| {
        let wanted = Protocol {
            number,
            invert: false,
        };
        protocol == Some(wanted)
    };
    let range = |ports: PortRange| ports.first <= ports.last;
    match one {
        xt::Match::Comment(comment) => comment.as_bytes().find_byte(b'\n').is_none(),
        xt::Match::Mark(_) => true,
        xt::Match::Tcp(tcp) => is(6) && range(tcp.source) && range(tcp.destination),
        xt::Match::Udp(udp) => is(17) && range(udp.source) && range(udp.destination),
        xt::Match::Conntrack(conntrack) => conntrack.state.is_some_and(|state| {
            *conntrack == xt::matches::conntrack::Conntrack::states(state.value)
        }),
        // Eleven decimals distinguish all multiples of 2⁻³¹.
        xt::Match::Statistic(statistic) => match statistic.mode {
            xt::matches::statistic::StatisticMode::Random { probability } => probability <= 1 << 31,
            xt::matches::statistic::StatisticMode::Nth { every, packet } => packet < every,
        },
        _ => false,
    }
}

/// Returns `true` if this target is known to parse as it is printed.
fn round_trips_target(target: &Target, protocol: Option<Protocol>) -> bool {
    match target {
        Target::Extension(xt::Target::Masquerade(masquerade)) => masquerade.ports.is_none(),
        Target::Extension(xt::Target::Mark(_)) => true,
        Target::Extension(xt::Target::Dnat(dnat)) => {
            let with_ports = protocol
                .is_some_and(|protocol| matches!(protocol.number, 6 | 17) && !protocol.invert);
            let single = |range: xt::targets::AddressRange| range.first == range.last;
            dnat.addresses.is_some_and(single)
                && dnat.base_port.is_none()
                && dnat
                    .ports
                    .is_none_or(|ports| with_ports && ports.first == ports.last)
        }
        Target::Extension(_) => false,
        Target::None
        | Target::Accept
        | Target::Drop
        | Target::Return
        | Target::Queue
        | Target::Jump(_)
        | Target::Goto(_) => true,
    }
}

/// Prints the rule and parses the text; `true` if it is the same rule.
fn is_read_back(family: Family, rule: &Rule) -> bool {
    if rule.jump_chain().is_some() {
        // A chain that the text declares is always accepted after `-j`.
        let mut conditions = rule.clone();
        conditions.target = Target::None;
        return is_read_back(family, &conditions);
    }
    let mut text = Text::new();
    let read = |rule: &Rule, text: &mut Text| {
        rule.print(text);
        Rule::parse(family, text.as_bytes()).is_ok_and(|read| read == *rule)
    };
    if !rule.has_set_indexes() {
        return read(rule, &mut text);
    }
    // Any name stands in for a set.
    let mut named = rule.clone();
    named.name_sets(&mut AnyName).is_ok() && read(&named, &mut text)
}

/// Has a name for every set.
struct AnyName;

impl SetNames for AnyName {
    type Error = ();

    fn index(&mut self, _: Family, _: &SetName) -> Result<u16, ()> {
        Err(())
    }

    fn name(&mut self, _: u16) -> Result<SetName, ()> {
        SetName::new("x").ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    fn protocols() -> impl Strategy<Value = Option<Protocol>> {
        let number = prop_oneof![Just(6), Just(17), Just(132), any::<u8>()];
        prop::option::of(
            (number, any::<bool>()).prop_map(|(number, invert)| Protocol { number, invert }),
        )
    }

    fn addresses(family: Family) -> BoxedStrategy<IpAddr> {
        match family {
            Family::Ipv4 => any::<[u8; 4]>().prop_map(IpAddr::from).boxed(),
            Family::Ipv6 => prop_oneof![
                any::<[u8; 16]>().prop_map(IpAddr::from),
                // IPv4-mapped addresses, which have a special text form.
                any::<[u8; 4]>()
                    .prop_map(|v4| IpAddr::from(std::net::Ipv4Addr::from(v4).to_ipv6_mapped())),
            ]
            .boxed(),
        }
    }

    fn targets(family: Family) -> impl Strategy<Value = xt::Target> {
        let ports = || prop::option::of((any::<u16>(), 0..2_u16));
        let ports = move || {
            ports().prop_map(|ports| {
                ports.map(|(first, more)| xt::targets::NatPorts {
                    first,
                    last: first.saturating_add(more),
                })
            })
        };
        let range = prop::option::of((addresses(family), addresses(family), any::<bool>()));
        let dnat = (
            range,
            ports(),
            prop::option::of(1_u16..),
            any::<[bool; 2]>(),
        )
            .prop_map(|(range, ports, base_port, [random, persistent])| {
                xt::targets::dnat::Dnat {
                    addresses: range.map(|(first, last, single)| xt::targets::AddressRange {
                        first,
                        last: if single { first } else { last },
                    }),
                    ports,
                    base_port,
                    random,
                    persistent,
                }
            });
        let masquerade =
            (ports(), any::<[bool; 2]>()).prop_map(|(ports, [random, random_fully])| {
                xt::targets::masquerade::Masquerade {
                    ports,
                    random,
                    random_fully,
                }
            });
        prop_oneof![
            any::<(u32, u32)>().prop_map(|(value, mask)| xt::Target::Mark(
                xt::targets::mark::Mark { value, mask }
            )),
            dnat.prop_map(xt::Target::Dnat),
            masquerade.prop_map(xt::Target::Masquerade),
        ]
    }

    fn matches() -> impl Strategy<Value = xt::Match> {
        let random = (0..=1_u32 << 31)
            .prop_map(|probability| xt::matches::statistic::StatisticMode::Random { probability });
        let nth = (any::<u32>(), any::<u32>()).prop_map(|(every, packet)| {
            xt::matches::statistic::StatisticMode::Nth { every, packet }
        });
        (prop_oneof![random, nth], any::<bool>()).prop_map(|(mode, invert)| {
            xt::Match::Statistic(xt::matches::statistic::Statistic { mode, invert })
        })
    }

    #[test]
    fn no_reserved_name_is_longer() {
        let targets = xt::Target::ALL.iter().flat_map(|spec| spec.names());
        let builtin = super::super::builtin::TABLES.iter();
        let builtin = builtin.flat_map(|(_, chains)| chains.iter().map(|builtin| builtin.chain));
        let verdicts = VERDICTS.iter().map(|verdict| verdict.len());
        let all = targets.map(|name| name.len());
        let all = all.chain(builtin.map(str::len)).chain(verdicts);
        assert_eq!(all.max(), Some(MAX_RESERVED_NAME_LENGTH));
    }

    proptest! {
        #[test]
        fn expressible_rules_round_trip(
            (family, target) in prop_oneof![Just(Family::Ipv4), Just(Family::Ipv6)]
                .prop_flat_map(|family| (Just(family), targets(family))),
            matches in prop::collection::vec(matches(), 0..2),
            protocol in protocols(),
        ) {
            let rule = Rule { protocol, matches, target: Target::Extension(target), ..Rule::default() };
            let sure = rule.matches.iter().all(|m| round_trips_match(m, rule.protocol))
                && round_trips_target(&rule.target, rule.protocol);
            // Protocol 0 is rejected earlier.
            if sure && rule.protocol.is_none_or(|protocol| protocol.number != 0) {
                prop_assert!(is_read_back(family, &rule), "{rule}");
            }
        }
    }
}
