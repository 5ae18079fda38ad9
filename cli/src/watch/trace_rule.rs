//! A rule that marks the described packets for tracing, as long as the process runs.

use std::fmt::Write as _;

use bstr::BStr;
use chainwright::iptables;
use chainwright::nft::live::TraceRef;
use chainwright::nft::{Connection, Family};
use chainwright_lang::{RunMode, Script};
use chainwright_trace::{Node, Packet};

use crate::output::{Error, causes};
use crate::packet::{PacketOptions, parse};

/// Formats the conditions for packets that are described by protocol, source and destination. An interface limits them
/// to packets that arrive at it.
fn conditions(words: &[String], input: Option<&str>) -> Result<String, Error> {
    let packet: Packet = parse(words, &PacketOptions::default(), &Node::default())?;
    let family = match packet.family {
        iptables::Family::Ipv4 => "ip",
        iptables::Family::Ipv6 => "ip6",
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "meta l4proto {}", packet.protocol.unwrap_or_default());
    for (side, port_side, address, port) in [
        ("saddr", "sport", packet.source, packet.source_port),
        (
            "daddr",
            "dport",
            packet.destination,
            packet.destination_port,
        ),
    ] {
        if let Some(address) = address {
            let _ = write!(text, " {family} {side} {address}");
        }
        if let Some(port) = port {
            let _ = write!(text, " th {port_side} {port}");
        }
    }
    if let Some(input) = input {
        let _ = write!(text, " iifname {input:?}");
    }
    Ok(text)
}

/// Names of tables with trace rules begin with this.
const TABLES: &[u8] = b"chainwright-watch-";

/// Returns `true` if a step is in the table of a trace rule, also of another process.
pub(super) fn is_step(step: &TraceRef<'_>) -> bool {
    let table = step.table().unwrap_or_default();
    step.family() == Family::INET && table.starts_with(TABLES)
}

/// A table with the rule. The kernel deletes it when the connection is closed.
pub(super) struct TraceRule {
    _owner: Connection,
}

impl TraceRule {
    /// Adds the rule, in the calling thread's network namespace.
    pub(super) fn add(words: &[String], input: Option<&str>) -> Result<Self, Error> {
        let conditions = conditions(words, input)?;
        let table = format!("{}{}", BStr::new(TABLES), std::process::id());
        // After fragments are reassembled at -400, and before the table raw at -300. No packet that is sent has an
        // input interface.
        let hooks = match input {
            None => &["prerouting", "output"][..],
            Some(_) => &["prerouting"],
        };
        let mut script = format!("create table inet {table} {{ flags owner; }}\n");
        for hook in hooks {
            let _ = write!(
                script,
                "add chain inet {table} {hook} {{ type filter hook {hook} priority -399; }}\n\
                 add rule inet {table} {hook} {conditions} meta nftrace set 1\n"
            );
        }
        let script = Script::parse("trace rule", script);
        let script = script.map_err(|error| Error::Other(error.to_string()))?;
        let mut owner = Connection::open()?;
        match script.run(&mut owner, RunMode::Commit, &crate::dialect::options()) {
            Ok(_) => Ok(Self { _owner: owner }),
            Err(error) => Err(Error::Other(format!(
                "cannot add the trace rule, in a table that is deleted with this process (Linux 5.12 or later): {}",
                causes(&error)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_conditions() {
        let of = |words: &str, input| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            conditions(&words, input).map_err(|error| error.to_string())
        };
        for (words, expected) in [
            (
                "tcp 10.0.0.5:1234 10.96.0.1:443",
                "meta l4proto 6 ip saddr 10.0.0.5 th sport 1234 ip daddr 10.96.0.1 th dport 443",
            ),
            ("udp any any:53", "meta l4proto 17 th dport 53"),
            ("tcp fd00::1 any", "meta l4proto 6 ip6 saddr fd00::1"),
            ("icmp any any", "meta l4proto 1"),
        ] {
            assert_eq!(of(words, None).as_deref(), Ok(expected));
        }
        let found = of("udp any any", Some("eth0"));
        assert_eq!(found.as_deref(), Ok("meta l4proto 17 iifname \"eth0\""));
        assert!(of("udp any", None).unwrap_err().contains("three arguments"));
    }
}
