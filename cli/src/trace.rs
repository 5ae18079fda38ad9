//! `chainwright trace`: traces a packet through the rules.

mod why;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use chainwright::iptables::Family;
use chainwright_kube::explain::matches_port;
use chainwright_kube::frontend::{Frontend, frontends, node_port_addresses};
use chainwright_trace::{Direction, Node, Packet, Trace};
use serde::Serialize;

use crate::expected::{Expected, Verdict};
use crate::output::{Error, Exit, Output, counted, note};
use crate::packet::{End, PacketOptions, format_packet, node, packet, parse};
use crate::scope::{Found, Scope, UnreadPart};
use crate::trace_output::{Ruleset, lines, options, print_text, print_untraced};

/// Show the path of a packet through the rules
///
/// Simulates a packet in the rules of both backends like the kernel: shows the rules that it meets at each hook, their
/// text and effect, and the outcome. It sends no packet, and adds no rule.
///
/// WHAT is a packet: its protocol, source and destination, `tcp 10.0.0.5:1234 10.96.0.1:443`; use `any` for an unknown
/// address, and omit an unknown port. Or it is a Kubernetes service in kube-proxy's rules: a name (`web`,
/// `default/web`, `default/web:http`), a cluster IP or another address (`10.96.0.10`, `10.96.0.10:53`), or a node port
/// (`30450`). The flat layout has no service names: specify an address or a node port.
///
/// If a rule tests an unspecified property, the path splits, and the assumption is printed after "if"; random choices
/// are printed with their probability. Conditions that cannot be evaluated are "unknown".
///
/// With --why, prints only the rule or policy that stops the packet, its table and owner (guessed from the names of
/// tables and chains: kube-proxy, Calico, Cilium, Docker, firewalld, ufw, …), and the rules that accepted the packet
/// before: another table can still drop it. If the addresses leave the direction open, it tries every direction. Then
/// --table considers only tables of this name, and the exit code is 0 if something stops the packet (in one of the
/// directions), 1 if nothing stops it, and 2 if nothing does on the known paths, but other paths have an unknown result.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A packet, or a service
    #[arg(value_name = "WHAT", required = true, num_args = 1..=3)]
    pub(crate) what: Vec<String>,

    /// For a service: the source of the packet, ADDRESS or ADDRESS:PORT, or `any`. By default an external address (one
    /// for documentation: 192.0.2.1, 2001:db8::1)
    #[arg(long, value_name = "SOURCE")]
    from: Option<String>,

    /// With --file: an address of the machine that the rules are from; may be given more than once
    #[arg(long, value_name = "ADDRESS", requires = "file")]
    own: Vec<IpAddr>,

    /// Use the rules of this file instead of the kernel's: a snapshot, output of iptables-save, or a ruleset in nft's
    /// language
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Show only the rules that stop the packet, although others accept it
    #[arg(long, conflicts_with_all = ["all"])]
    why: bool,

    /// Set the exit code by the outcome: accepted (delivered, forwarded or sent), dropped (also rejected), or "dnat to
    /// ADDRESS[:PORT]". It is 0 if every path has this outcome, in every possible direction; 1 if a path has another one;
    /// and 2 if the outcome of a path is unknown
    #[arg(long, value_name = "OUTCOME", value_parser = Expected::from_text, conflicts_with = "why")]
    expect: Option<Expected>,

    /// Show every path, and also where a packet reaches the end of a chain and is accepted
    #[arg(long)]
    all: bool,

    /// Use the current elements of sets that rules fill; by default, any packet may or may not be in such a set
    #[arg(long)]
    as_is: bool,

    #[command(flatten)]
    pub(crate) more: PacketOptions,

    #[command(flatten)]
    pub(crate) scope: Scope,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    traces: Vec<Record<'d>>,
    not_traced: &'d [String],
    not_read: &'d [UnreadPart],
}

#[derive(Serialize)]
struct Record<'d> {
    packet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Verdict>,
    trace: &'d Trace,
}

/// A packet to trace.
#[derive(Clone)]
struct TracedPacket {
    packet: Packet,
    /// The heading of a packet to a service.
    heading: Option<String>,
    /// The service, if the rules have its name.
    service: Option<String>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    if args.what.len() > 1 && args.from.is_some() {
        return Err(Error::Other(
            "--from can only be used with a service; a packet has its own source".into(),
        ));
    }
    // --why considers the rules of all tables, and selects among the results.
    let scope = match args.why {
        true => &args.scope.of_all_tables(),
        false => &args.scope,
    };
    let mut found = Found::default();
    let (ruleset, node) = match &args.file {
        Some(file) => {
            let ruleset = Ruleset::of_file(file, scope)?;
            let node = args.node(&ruleset);
            (ruleset, node)
        }
        None => (Ruleset::of_kernel(scope, &mut found)?, node()),
    };
    for text in &found.notes {
        note(text);
    }
    let packets = match &args.what[..] {
        [service] => {
            let all = frontends(&ruleset.snapshot, &ruleset.legacy);
            let packets = args.service(service, &all, &node)?;
            if packets.is_empty() {
                note(&no_service(service, &all));
                return Ok(Exit::Absent);
            }
            packets
        }
        words => vec![TracedPacket {
            packet: parse(words, &args.more, &node)?,
            heading: None,
            service: None,
        }],
    };
    let session = Session {
        args,
        ruleset,
        node,
        found,
    };
    match (args.why, args.expect) {
        (true, _) => session.print_stops(&session.in_every_direction(&packets), json),
        (false, Some(_)) => session.print_paths(&session.in_every_direction(&packets), json),
        (false, None) => {
            for one in &packets {
                args.more.note_assumed_direction(&one.packet, &session.node);
            }
            session.print_paths(&packets, json)
        }
    }
}

/// Arguments, and what they select.
struct Session<'a> {
    args: &'a Args,
    ruleset: Ruleset,
    node: Node,
    found: Found,
}

impl Session<'_> {
    /// Returns each packet in every direction that it can have.
    fn in_every_direction(&self, packets: &[TracedPacket]) -> Vec<TracedPacket> {
        let of_one = |one: &TracedPacket| {
            let given = one.packet.direction;
            let possible = self.args.more.directions(&one.packet, &self.node);
            let directions = match possible.contains(&given) {
                true => possible.to_vec(),
                false => vec![given],
            };
            let with = |direction| {
                let mut copy = one.clone();
                copy.packet.direction = direction;
                copy
            };
            directions.into_iter().map(with).collect::<Vec<_>>()
        };
        packets.iter().flat_map(of_one).collect()
    }

    /// Prints the paths of packets.
    fn print_paths(&self, packets: &[TracedPacket], json: bool) -> Result<Exit, Error> {
        let rules = self.ruleset.rules();
        let traces: Vec<Trace> = packets
            .iter()
            .map(|one| rules.trace(&one.packet, &self.node, &options(self.args.as_is)))
            .collect();
        let verdicts: Vec<Verdict> = (self.args.expect.iter())
            .flat_map(|expected| traces.iter().map(|trace| expected.verdict(trace)))
            .collect();
        let mut out = Output::new();
        if json {
            let all = packets.iter().zip(&traces).enumerate();
            let records = all.map(|(index, (one, trace))| Record {
                packet: format_packet(&one.packet),
                service: one.service.as_deref(),
                expected: verdicts.get(index).copied(),
                trace,
            });
            let document = Document {
                traces: records.collect(),
                not_traced: rules.not_traced(),
                not_read: &self.found.not_read,
            };
            out.json("trace", &document)?;
        } else {
            for (index, (one, trace)) in packets.iter().zip(&traces).enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                if let Some(heading) = &one.heading {
                    lines(&mut out, "", heading)?;
                }
                lines(&mut out, "", &format_packet(&one.packet))?;
                print_text(&mut out, &self.ruleset, &one.packet, trace, self.args.all)?;
            }
        }
        out.flush()?;
        print_untraced(&rules, None);
        let is_unknown = self.found.is_partial() || verdicts.contains(&Verdict::Unknown);
        let is_other = |verdict: &Verdict| matches!(verdict, Verdict::No | Verdict::Sometimes);
        Ok(match verdicts.iter().any(is_other) {
            true => Exit::Absent,
            false if is_unknown => Exit::Failed,
            false => Exit::Done,
        })
    }
}

/// The default external source: addresses for documentation (RFC 5737, RFC 3849).
const EXTERNAL_SOURCES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// The machine of a file without its addresses.
const DEFAULT_NODE_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 100)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 100)),
];

impl Args {
    /// Returns the known properties of the machine whose rules are in a file. For a packet to a service, the machine
    /// has the addresses at which its node ports answer, or substitutes for them; for any other packet, its addresses
    /// are unknown.
    fn node(&self, ruleset: &Ruleset) -> Node {
        if self.own.is_empty() && self.what.len() == 1 {
            return node_of_file(node_port_addresses(&ruleset.snapshot));
        }
        let mut node = Node::default();
        if !self.own.is_empty() {
            node.addresses = Some(self.own.clone());
        }
        node
    }

    /// Returns packets to a service's addresses and ports.
    fn service(
        &self,
        requested: &str,
        all: &[Frontend],
        node: &Node,
    ) -> Result<Vec<TracedPacket>, Error> {
        let source = self.from.as_deref().map(End::parse).transpose();
        let source = source.map_err(Error::Other)?;
        let address = End::parse(requested)
            .ok()
            .filter(|end| end.address.is_some());
        let node_port: Option<u16> = requested.parse().ok();
        let is_requested = |frontend: &&Frontend| match (address, node_port) {
            (Some(end), _) => {
                frontend.address == end.address && end.port.is_none_or(|port| port == frontend.port)
            }
            (_, Some(port)) => frontend.address.is_none() && frontend.port == port,
            (None, None) => {
                let service = frontend.service.as_deref();
                service.is_some_and(|service| matches_port(service, requested))
            }
        };
        let family = self.scope.place.iptables()?;
        let wanted = |frontend: &&Frontend| {
            let is_ipv6 = source
                .and_then(|end| end.address)
                .map(|address| address.is_ipv6());
            let is_ipv6 = is_ipv6.or(family.map(|family| family == Family::Ipv6));
            is_ipv6.is_none_or(|is| is == frontend.ipv6)
        };
        let mut packets = Vec::new();
        let mut matching: Vec<&Frontend> = all.iter().filter(is_requested).filter(wanted).collect();
        // Node ports follow addresses.
        matching.sort_by_key(|frontend| frontend.address.is_none());
        for frontend in matching {
            let from = source.unwrap_or_else(|| external_source(frontend.ipv6));
            let packet = packet_to(frontend, from, &self.more, node)?;
            let service = frontend.service.clone();
            packets.push(TracedPacket {
                packet,
                heading: Some(match &service {
                    Some(service) => format!("service {service}"),
                    None => "a service whose name is not in the rules".to_owned(),
                }),
                service,
            });
        }
        Ok(packets)
    }
}

/// Formats the error for a missing service. If the rules have services without names, it shows how to specify them.
fn no_service(requested: &str, all: &[Frontend]) -> String {
    let unnamed: Vec<_> = all.iter().filter(|one| one.service.is_none()).collect();
    let with_address = unnamed.iter().find(|one| one.address.is_some());
    let Some(first) = with_address.or(unnamed.first()) else {
        return format!(
            "the rules have no service {requested:?}; a packet takes three arguments: tcp 10.0.0.5:1234 10.96.0.1:443"
        );
    };
    let example = match first.address {
        Some(address) => SocketAddr::new(address, first.port).to_string(),
        None => first.port.to_string(),
    };
    format!(
        "the rules have no service {requested:?}; but they do not contain the names of services that have {} in the flat layout: \
         trace one of these by its address or node port: trace {example}",
        counted(
            unnamed.len(),
            "address or node port",
            "addresses and node ports"
        )
    )
}

/// Returns a machine that has these addresses, or a substitute for each family without any.
pub(crate) fn node_of_file(mut addresses: Vec<IpAddr>) -> Node {
    for otherwise in DEFAULT_NODE_ADDRESSES {
        let of_family = |one: &IpAddr| one.is_ipv6() == otherwise.is_ipv6() && !one.is_loopback();
        if !addresses.iter().any(of_family) {
            addresses.push(otherwise);
        }
    }
    Node {
        addresses: Some(addresses),
        ..Node::default()
    }
}

/// Creates a packet to a service.
pub(crate) fn packet_to(
    frontend: &Frontend,
    from: End,
    more: &PacketOptions,
    node: &Node,
) -> Result<Packet, Error> {
    let to = End {
        address: frontend
            .address
            .or_else(|| own_address(node, frontend.ipv6)),
        port: Some(frontend.port),
    };
    let family = match frontend.ipv6 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    };
    let made = packet(frontend.protocol, from, to, Some(family), more, node);
    let mut packet = made.map_err(Error::Other)?;
    if frontend.address.is_none() && packet.direction == Direction::Forwarded {
        more.set_default_direction(&mut packet, Direction::In);
    }
    Ok(packet)
}

/// Returns the default source of packets to a service.
pub(crate) fn external_source(ipv6: bool) -> End {
    End {
        address: Some(EXTERNAL_SOURCES[usize::from(ipv6)]),
        port: None,
    }
}

/// Returns the machine's first address that is not a loopback address.
fn own_address(node: &Node, ipv6: bool) -> Option<IpAddr> {
    let addresses = node.addresses.iter().flatten();
    addresses
        .filter(|address| address.is_ipv6() == ipv6 && !address.is_loopback())
        .copied()
        .next()
}
