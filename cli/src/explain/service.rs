//! Services of kube-proxy: addresses, endpoints, and the rules that choose one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bstr::ByteSlice as _;
use chainwright_kube::explain::{ChainInfo, Role, matches_port};
use chainwright_kube::frontend::{Frontend, frontends, node_port_addresses};
use chainwright_trace::Outcome;
use serde::Serialize;

use super::chain::{ChainExplanation, Explainer};
use crate::output::Error;
use crate::packet::{self, PacketOptions, protocol_name};
use crate::trace;
use crate::trace_output::{arrived, options, outcome_groups, reason};

/// A service in English.
#[derive(Debug, Serialize)]
pub(crate) struct ServiceExplanation {
    pub(crate) ports: Vec<ServicePort>,
}

/// A port of a service.
#[derive(Debug, Serialize)]
pub(crate) struct ServicePort {
    /// `namespace/name:port`.
    pub(crate) name: String,
    pub(crate) frontends: Vec<FrontendRecord>,
    /// The clients that stay with their endpoint are remembered.
    pub(crate) affinity: bool,
    /// The chains of this port.
    pub(crate) chains: Vec<ChainExplanation>,
}

/// An address and port of a service.
#[derive(Debug, Serialize)]
pub(crate) struct FrontendRecord {
    pub(crate) protocol: String,
    /// `None` for a node port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    /// The source of the simulated packets.
    pub(crate) client: String,
    pub(crate) outcomes: Vec<OutcomeRecord>,
    /// Whether a random number decides on the endpoint.
    #[serde(skip)]
    pub(crate) is_random: bool,
}

/// Outcome of new connections.
#[derive(Debug, Serialize)]
pub(crate) struct OutcomeRecord {
    pub(crate) probability: f64,
    /// The endpoint that is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    pub(crate) outcome: String,
    /// The rule that stops the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Properties of the packet and the machine that it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) assumptions: Vec<String>,
}

impl FrontendRecord {
    /// Returns `tcp 10.96.0.10:80` or `tcp node port 30080`.
    pub(crate) fn name(&self) -> String {
        match self.address {
            Some(address) => format!("{} {}", self.protocol, SocketAddr::new(address, self.port)),
            None => format!("{} node port {}", self.protocol, self.port),
        }
    }
}

/// Explains a service: `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`; `None` if the rules have none of this name.
pub(super) fn explained(
    explainer: &Explainer<'_>,
    name: &str,
    file: Option<&PathBuf>,
) -> Result<Option<ServiceExplanation>, Error> {
    let ruleset = explainer.ruleset;
    let all = frontends(&ruleset.snapshot, &ruleset.legacy);
    let mut ports: BTreeMap<&str, Vec<&Frontend>> = BTreeMap::new();
    for frontend in &all {
        if let Some(service) = frontend.service.as_deref()
            && matches_port(service, name)
        {
            ports.entry(service).or_default().push(frontend);
        }
    }
    let node = match file {
        Some(_) => trace::node_of_file(node_port_addresses(&ruleset.snapshot)),
        None => packet::node(),
    };
    let rules = ruleset.rules();
    let mut found = Vec::new();
    for (service, frontends) in ports {
        let mut records = Vec::new();
        for frontend in frontends {
            let from = trace::external_source(frontend.ipv6);
            let packet = trace::packet_to(frontend, from, &PacketOptions::default(), &node)?;
            let trace = rules.trace(&packet, &node, &options(false));
            let groups = outcome_groups(&packet, &trace.ends).into_iter();
            let outcomes = groups.map(|group| {
                let end = group.end;
                let goes_on = matches!(end.outcome, Outcome::Delivered | Outcome::Forwarded);
                OutcomeRecord {
                    probability: group.probability,
                    endpoint: goes_on.then(|| arrived(end)),
                    outcome: group.words,
                    reason: reason(ruleset, end).filter(|_| !goes_on),
                    assumptions: end.assumptions.clone(),
                }
            });
            records.push(FrontendRecord {
                protocol: protocol_name(frontend.protocol),
                address: frontend.address,
                port: frontend.port,
                client: from
                    .address
                    .map(|address| address.to_string())
                    .unwrap_or_default(),
                outcomes: outcomes.collect(),
                is_random: trace.ends.iter().any(|end| !end.chances.is_empty()),
            });
        }
        found.push(port(explainer, service, records));
    }
    Ok((!found.is_empty()).then_some(ServiceExplanation { ports: found }))
}

/// Adds the chains of a service port.
fn port(explainer: &Explainer<'_>, name: &str, frontends: Vec<FrontendRecord>) -> ServicePort {
    let (mut chains, mut affinity) = (Vec::new(), false);
    for (place, node) in explainer.graph.nodes().iter().enumerate() {
        let comment = node.comment.as_ref().map(|comment| comment.as_bstr());
        let info = ChainInfo::of(&node.name, comment);
        let Some(info) = info.filter(|info| info.port.as_deref() == Some(name)) else {
            continue;
        };
        if let Some(chain) = explainer.chain(place) {
            affinity |= info.role == Role::Affinity
                || chain.rules.iter().any(|rule| {
                    rule.words.contains("-m recent ") || rule.words.contains("@affinity-")
                });
            chains.push(chain);
        }
    }
    ServicePort {
        name: name.to_owned(),
        frontends,
        affinity,
        chains,
    }
}
