//! A rule that marks the described packets for tracing, as long as the process runs.

use std::net::IpAddr;

use chainwright::nft::build::{Build, BuildError, Protocol};
use chainwright::nft::live::TraceRef;
use chainwright::nft::{
    Chain, Connection, Family, Hook, Priority, Rule, Table, TableFlags, Transaction,
};
use chainwright_trace::{Node, Packet};

use crate::output::Error;
use crate::packet::{PacketOptions, parse};

/// Names of tables with trace rules begin with this.
const TABLES: &str = "chainwright-watch-";

/// Returns `true` if a step is in the table of a trace rule, also of another process.
pub(super) fn is_step(step: &TraceRef<'_>) -> bool {
    let table = step.table().unwrap_or_default();
    step.family() == Family::INET && table.starts_with(TABLES.as_bytes())
}

/// A table with the rule. The kernel deletes it when the connection is closed.
pub(super) struct TraceRule {
    table: String,
    _owner: Connection,
}

impl TraceRule {
    /// Adds the rule, in the calling thread's network namespace, for packets that are described by protocol, source and
    /// destination. A family other than that of IPv4 and IPv6 does not limit the packets. An interface limits them to
    /// packets that arrive at it.
    pub(super) fn add(
        words: &[String],
        family: Family,
        input: Option<&str>,
    ) -> Result<Self, Error> {
        let packet = parse(words, &PacketOptions::default(), &Node::default())?;
        let mut owner = Connection::open()?;
        // No other socket has the same port while this one is open.
        let table = format!("{TABLES}{}", owner.port());
        let transaction = transaction(&table, &packet, family, input)?;
        match owner.commit(&transaction) {
            Ok(()) => Ok(Self {
                table,
                _owner: owner,
            }),
            Err(error) => {
                let why = error.failures.first().map(ToString::to_string);
                let why = why.unwrap_or_else(|| error.to_string());
                Err(Error::Other(format!(
                    "cannot add the trace rule (its table needs Linux 5.12 or later): {why}"
                )))
            }
        }
    }

    /// Returns `true` if a step is in the table of this rule.
    pub(super) fn marked(&self, step: &TraceRef<'_>) -> bool {
        is_step(step) && step.table().is_some_and(|table| *table == *self.table)
    }
}

/// Returns the changes that add the table with the rule.
fn transaction(
    table: &str,
    packet: &Packet,
    family: Family,
    input: Option<&str>,
) -> Result<Transaction, chainwright::Error> {
    let mut transaction = Transaction::new();
    let mut owned = Table::new(Family::INET, table);
    owned.flags = Some(TableFlags::OWNER);
    transaction.create(&owned)?;
    // After fragments are reassembled at -400, and before the table raw at -300.
    let priority = Priority(-399);
    let hooks = [("prerouting", Hook::PREROUTING), ("output", Hook::OUTPUT)];
    // No packet that is sent has an input interface.
    let hooks = &hooks[..if input.is_some() { 1 } else { 2 }];
    for &(name, hook) in hooks {
        transaction
            .add(&Chain::new(Family::INET, table, name).with_hook("filter", hook, priority))?;
        transaction.add(&rule(table, name, packet, family, input)?)?;
    }
    Ok(transaction)
}

/// Returns the rule that marks the packets.
fn rule<'a>(
    table: &'a str,
    chain: &'a str,
    packet: &Packet,
    family: Family,
    input: Option<&str>,
) -> Result<Rule<'a>, BuildError> {
    let mut rule = Build::new(Family::INET, table, chain);
    if matches!(family, Family::IP | Family::IP6) {
        rule = rule.meta_nfproto(family);
    }
    rule = match packet.source {
        Some(IpAddr::V4(address)) => rule.ip_saddr(address),
        Some(IpAddr::V6(address)) => rule.ip6_saddr(address),
        None => rule,
    };
    rule = match packet.destination {
        Some(IpAddr::V4(address)) => rule.ip_daddr(address),
        Some(IpAddr::V6(address)) => rule.ip6_daddr(address),
        None => rule,
    };
    if let Some(protocol) = packet.protocol {
        rule = rule.meta_l4proto(Protocol(protocol));
    }
    if let Some(port) = packet.source_port {
        rule = rule.th_sport(port);
    }
    if let Some(port) = packet.destination_port {
        rule = rule.th_dport(port);
    }
    if let Some(input) = input {
        rule = rule.iifname(input);
    }
    rule.meta_nftrace_set(true).finish()
}

#[cfg(test)]
mod tests {
    use chainwright_testing::FakeKernel;

    use super::*;

    /// Returns the rules that are added for the packets, in nft's syntax.
    fn rules(words: &str, family: Family, input: Option<&str>) -> Result<Vec<String>, String> {
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        let packet = parse(&words, &PacketOptions::default(), &Node::default());
        let packet = packet.map_err(|error| error.to_string())?;
        let transaction =
            transaction("t", &packet, family, input).map_err(|error| error.to_string())?;
        let mut nft = FakeKernel::new().connect().unwrap();
        nft.commit(&transaction).unwrap();
        let snapshot = nft.snapshot(chainwright::nft::Scope::default()).unwrap();
        let table = snapshot.table(Family::INET, "t").unwrap();
        let options = chainwright_lang::Options::default();
        let rules = table.chains().flat_map(|chain| chain.rules());
        Ok(rules
            .map(|rule| chainwright_lang::rule(&table, &rule, &options).unwrap())
            .collect())
    }

    #[test]
    fn packets_are_conditions() {
        for (words, family, expected) in [
            (
                "tcp 10.0.0.5:1234 10.96.0.1:443",
                Family::UNSPEC,
                "ip saddr 10.0.0.5 ip daddr 10.96.0.1 tcp sport 1234 tcp dport 443",
            ),
            ("udp any any:53", Family::UNSPEC, "udp dport 53"),
            ("udp any any:53", Family::INET, "udp dport 53"),
            (
                "udp any any:53",
                Family::IP6,
                "meta nfproto ipv6 udp dport 53",
            ),
            (
                "tcp fd00::1 any",
                Family::UNSPEC,
                "ip6 saddr fd00::1 meta l4proto tcp",
            ),
            (
                "icmp any any",
                Family::IP,
                "meta nfproto ipv4 meta l4proto icmp",
            ),
            ("89 any any", Family::UNSPEC, "meta l4proto ospf"),
        ] {
            let expected = format!("{expected} meta nftrace set 1");
            let expected = Ok(vec![expected.clone(), expected]);
            assert_eq!(rules(words, family, None), expected, "{words}");
        }
        // One rule, because no packet that is sent has an input interface.
        let arriving = rules("udp any any", Family::UNSPEC, Some("eth0"));
        let expected = "meta l4proto udp iifname \"eth0\" meta nftrace set 1";
        assert_eq!(arriving, Ok(vec![expected.to_owned()]));
        for (words, family, error) in [
            ("udp any", Family::UNSPEC, "three arguments"),
            ("udp 10.0.0.1 any", Family::IP6, "can never match"),
        ] {
            let found = rules(words, family, None).unwrap_err();
            assert!(found.contains(error), "{words}: {found}");
        }
    }
}
