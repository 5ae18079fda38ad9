//! Options and configuration, as in kube-proxy.

mod settings;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;
pub(crate) use settings::Settings;
use tracing::warn;

/// Applies a cluster's services to this node: a replacement of kube-proxy.
///
/// Options take precedence over the configuration file.
#[derive(Debug, Clone, Default, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Options {
    /// Folder of manifests to watch instead of a cluster: Services, EndpointSlices and Nodes, as YAML or JSON.
    #[arg(long, value_name = "DIR")]
    pub(crate) manifests: Option<PathBuf>,
    /// Run a demonstration: a client, a node and pods in private network namespaces, without root. It uses the folder
    /// of --manifests, or creates one.
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) demo: Option<bool>,
    /// Configuration file (KubeProxyConfiguration).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Kubeconfig file for the cluster; by default the configuration of a pod, or that of kubectl.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How services are represented in the kernel's tables.
    #[arg(long, value_name = "MODE")]
    pub(crate) proxy_mode: Option<Mode>,
    /// The pods' networks, one per family: traffic from elsewhere to cluster IPs is masqueraded.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(crate) cluster_cidr: Vec<IpNet>,
    /// How to detect traffic from local pods.
    #[arg(long, value_name = "MODE")]
    pub(crate) detect_local_mode: Option<DetectMode>,
    /// The networks of cluster IPs: traffic to unused addresses in them is dropped (flat and nftables).
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(crate) service_cidrs: Vec<IpNet>,
    /// The node's name.
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname_override: Option<String>,
    /// Node addresses that serve node ports: networks, or `primary` for the node's first address of each family. The
    /// default is `primary`; in iptables mode it is all addresses.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(crate) nodeport_addresses: Vec<String>,
    /// Masquerade all traffic to cluster IPs.
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) masquerade_all: Option<bool>,
    /// Bit of the mark that selects packets to masquerade.
    #[arg(long, value_name = "BIT", value_parser = clap::value_parser!(u8).range(0..32))]
    pub(crate) iptables_masquerade_bit: Option<u8>,
    /// Serve node ports at 127.0.0.1, too (iptables).
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) iptables_localhost_nodeports: Option<bool>,
    /// Interval between complete comparisons with the kernel, which undo changes by other programs.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sync_period: Option<Duration>,
    /// Maximum number of conntrack entries per CPU; 0 leaves the limit unchanged.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) conntrack_max_per_core: Option<u32>,
    /// Minimum for the total number of conntrack entries, if there is a number per CPU.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) conntrack_min: Option<u32>,
    /// Idle timeout of established TCP connections; 0 leaves it unchanged.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) conntrack_tcp_timeout_established: Option<Duration>,
    /// Idle timeout of TCP connections in the CLOSE_WAIT state; 0 leaves it unchanged.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) conntrack_tcp_timeout_close_wait: Option<Duration>,
    /// Accept TCP packets outside their connection's window.
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) conntrack_tcp_be_liberal: Option<bool>,
    /// Idle timeout of UDP connections without replies; 0 leaves it unchanged.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) conntrack_udp_timeout: Option<Duration>,
    /// Idle timeout of UDP connections with replies; 0 leaves it unchanged.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) conntrack_udp_timeout_stream: Option<Duration>,
    /// Address whose family selects the default addresses of /healthz, /livez and /metrics: `::` on an IPv6 node.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind_address: Option<IpAddr>,
    /// Address of /healthz and /livez; empty to disable them.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) healthz_bind_address: Option<String>,
    /// Address of /metrics; empty to disable it.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_bind_address: Option<String>,
    /// Remove the rules of all modes from the kernel, and exit. Rules that may belong to a kube-proxy stay and are
    /// listed.
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) cleanup: Option<bool>,
    /// With --cleanup: also remove rules that may belong to a kube-proxy.
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) cleanup_kube_proxy: Option<bool>,
    /// Log level: 2 logs changes, 4 everything.
    #[arg(short, long, value_name = "LEVEL", default_value_t = 0)]
    pub(crate) v: u8,
}

/// How services are represented in the kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Elements of maps: the cost of a change does not depend on the number of services.
    Flat,
    /// The layout of kube-proxy's nftables mode.
    Nftables,
    /// The layout of kube-proxy's iptables mode.
    Iptables,
}

impl Mode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        }
    }
}

/// How to detect traffic from local pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DetectMode {
    /// By the cluster's pod networks.
    #[value(name = "ClusterCIDR")]
    ClusterCidr,
    /// By the node's pod networks.
    #[value(name = "NodeCIDR")]
    NodeCidr,
    /// By the pods' bridge.
    #[value(name = "BridgeInterface")]
    BridgeInterface,
    /// By the prefix of the pods' interface names.
    #[value(name = "InterfaceNamePrefix")]
    InterfaceNamePrefix,
}

/// The fields of kube-proxy's configuration file that this program uses.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    kind: String,
    mode: String,
    #[serde(rename = "clusterCIDR")]
    cluster_cidr: String,
    hostname_override: String,
    node_port_addresses: Option<Vec<String>>,
    bind_address: String,
    healthz_bind_address: Option<String>,
    metrics_bind_address: Option<String>,
    detect_local_mode: String,
    detect_local: DetectLocal,
    iptables: Tables,
    nftables: Tables,
    client_connection: ClientConnection,
    conntrack: ConntrackFile,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DetectLocal {
    bridge_interface: String,
    interface_name_prefix: String,
    #[serde(rename = "clusterCIDRs")]
    cluster_cidrs: Vec<String>,
}

/// The sections `iptables` and `nftables`, which have the same fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tables {
    masquerade_bit: Option<u8>,
    masquerade_all: bool,
    localhost_node_ports: Option<bool>,
    sync_period: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClientConnection {
    kubeconfig: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConntrackFile {
    max_per_core: Option<u32>,
    min: Option<u32>,
    tcp_established_timeout: Option<String>,
    tcp_close_wait_timeout: Option<String>,
    tcp_be_liberal: bool,
    udp_timeout: Option<String>,
    udp_stream_timeout: Option<String>,
}

impl File {
    fn read(path: &Path) -> Result<Self, String> {
        let place = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
        let file = Self::parse(&text).map_err(|error| format!("{place}: {error}"))?;
        for (field, value) in &file.others {
            let has_value = !value.is_null() && field != "apiVersion";
            if has_value {
                warn!(file = %place, %field, "field has no effect");
            }
        }
        Ok(file)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error: serde_saphyr::Error| error.without_snippet().to_string())?;
        let file: Self =
            serde_path_to_error::deserialize(value).map_err(|error| error.to_string())?;
        match &*file.kind {
            "KubeProxyConfiguration" => Ok(file),
            other => Err(format!(
                "kind: expected KubeProxyConfiguration, found {other:?}"
            )),
        }
    }
}

fn network(field: &str, text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|_| format!("{field}: invalid network {text:?}"))
}

/// Parses a boolean in the forms of Go's flags.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Parses a duration in Go's format: `1h`, `30s`, `1m30s`, `0`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration {text:?}: use 30s or 1h, for example");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut sum, mut rest) = (Duration::ZERO, text);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u32 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(wrong()),
        };
        sum = unit
            .checked_mul(number)
            .and_then(|of| sum.checked_add(of))
            .ok_or_else(wrong)?;
        rest = &rest[letters..];
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}
