//! Options and configuration, as in kube-proxy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chainwright_kube::service::{Config, LocalDetector, Node, NodePortAddresses};
use clap::{Parser, ValueEnum};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;
use tracing::{info, warn};

use crate::sysctl::Conntrack;

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

/// The settings from options and file.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) node: String,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) health: Option<SocketAddr>,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) period: Duration,
    pub(crate) conntrack: Conntrack,
    detector: Detector,
    service_networks: Vec<IpNet>,
    node_ports: NodePorts,
    masquerade_mark: u32,
    masquerade_all: bool,
    localhost_node_ports: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Detector {
    These(LocalDetector),
    /// The networks in the Node object.
    Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NodePorts {
    All,
    Primary,
    Networks(Vec<IpNet>),
}

impl Settings {
    /// Combines the options and the file that they name.
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let is = |option: Option<bool>| option.unwrap_or(false);
        if is(options.demo) && (is(options.cleanup) || options.kubeconfig.is_some()) {
            return Err("--demo cannot be used with --cleanup or --kubeconfig".to_owned());
        }
        if is(options.cleanup_kube_proxy) && !is(options.cleanup) {
            return Err("--cleanup-kube-proxy requires --cleanup".to_owned());
        }
        let file = match &options.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        let mode = match (options.proxy_mode, &*file.mode) {
            (Some(mode), _) => mode,
            (None, "") => Mode::Flat,
            (None, mode) => Mode::from_str(mode, false).map_err(|_| {
                format!("mode: unknown value {mode:?} (expected flat, nftables or iptables)")
            })?,
        };
        // Each mode has its own section of the file; kube-proxy has no flat mode.
        let tables = match mode {
            Mode::Iptables => &file.iptables,
            Mode::Flat | Mode::Nftables => &file.nftables,
        };
        let bit = options.iptables_masquerade_bit.or(tables.masquerade_bit);
        let mark = 1_u32.checked_shl(bit.unwrap_or(14).into());
        let file_period = tables.sync_period.as_deref().map(duration).transpose();
        let period = file_period.map_err(|error| format!("syncPeriod: {error}"))?;
        let period = options
            .sync_period
            .or(period)
            .filter(|period| !period.is_zero());
        let is_v6 = match (options.bind_address, &*file.bind_address) {
            (Some(address), _) => address.is_ipv6(),
            (None, "") => false,
            (None, text) => text
                .parse::<IpAddr>()
                .map_err(|_| format!("bindAddress: invalid address {text:?}"))?
                .is_ipv6(),
        };
        let unspecified = match is_v6 {
            true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            false => Ipv4Addr::UNSPECIFIED.into(),
        };
        let loopback = match is_v6 {
            true => IpAddr::from(Ipv6Addr::LOCALHOST),
            false => Ipv4Addr::LOCALHOST.into(),
        };
        let address = |option: &Option<String>, file: &Option<String>, default: SocketAddr| {
            match (option.as_deref(), file.as_deref()) {
                (Some(""), _) => Ok(None),
                // kubeadm writes empty addresses, which mean the defaults.
                (None, None | Some("")) => Ok(Some(default)),
                (Some(text), _) | (None, Some(text)) => {
                    bind_address(text, unspecified, default.port()).map(Some)
                }
            }
        };
        let kubeconfig = options.kubeconfig.clone();
        let of_file = &file.client_connection.kubeconfig;
        let name = options.hostname_override.as_ref();
        Ok(Self {
            mode,
            node: match name
                .or(Some(&file.hostname_override))
                .filter(|name| !name.is_empty())
            {
                Some(name) => name.trim().to_lowercase(),
                None => hostname()?,
            },
            kubeconfig: kubeconfig.or((!of_file.is_empty()).then(|| of_file.into())),
            health: address(
                &options.healthz_bind_address,
                &file.healthz_bind_address,
                (unspecified, 10256).into(),
            )?,
            metrics: address(
                &options.metrics_bind_address,
                &file.metrics_bind_address,
                (loopback, 10249).into(),
            )?,
            period: period.unwrap_or(Duration::from_secs(3600)),
            conntrack: conntrack(options, &file.conntrack)?,
            detector: detector(options, &file)?,
            service_networks: options.service_cidrs.clone(),
            node_ports: node_ports(options, &file, mode)?,
            masquerade_mark: mark.ok_or("masqueradeBit: larger than 31")?,
            masquerade_all: options.masquerade_all.unwrap_or(tables.masquerade_all),
            localhost_node_ports: options
                .iptables_localhost_nodeports
                .or(file.iptables.localhost_node_ports)
                // As in kube-proxy.
                .unwrap_or(mode == Mode::Iptables),
        })
    }

    /// Returns the configuration for a node. An unknown node has no addresses, so `primary` selects none.
    pub(crate) fn config(&self, node: Option<&Node>) -> Result<Config, String> {
        let mut config = Config::new(self.node.as_str());
        config.zone = node.and_then(|node| node.zone.clone());
        config.node_addresses = node.map(|node| node.addresses.clone()).unwrap_or_default();
        config.local_detector = match &self.detector {
            Detector::These(detector) => detector.clone(),
            Detector::Node => match node.map(|node| &node.pod_networks) {
                Some(networks) if !networks.is_empty() => LocalDetector::Networks(networks.clone()),
                _ => LocalDetector::None,
            },
        };
        config.node_port_addresses = match &self.node_ports {
            NodePorts::All => NodePortAddresses::All,
            NodePorts::Primary => NodePortAddresses::These(primary(&config.node_addresses)),
            NodePorts::Networks(networks) => NodePortAddresses::Networks(networks.clone()),
        };
        config.service_networks.clone_from(&self.service_networks);
        config.masquerade_mark = self.masquerade_mark;
        config.masquerade_all = self.masquerade_all;
        config.localhost_node_ports = self.localhost_node_ports;
        Ok(config)
    }
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

fn conntrack(options: &Options, file: &ConntrackFile) -> Result<Conntrack, String> {
    let time = |option: Option<Duration>, field: &str, text: &Option<String>, default| {
        let of_file = text.as_deref().map(duration).transpose();
        let of_file = of_file.map_err(|error| format!("conntrack.{field}: {error}"))?;
        Ok::<_, String>(option.or(of_file).unwrap_or(default))
    };
    let default = Conntrack::default();
    let number = |option: Option<u32>, file: Option<u32>| option.or(file);
    Ok(Conntrack {
        max_per_core: number(options.conntrack_max_per_core, file.max_per_core)
            .unwrap_or(default.max_per_core),
        min: number(options.conntrack_min, file.min).unwrap_or(default.min),
        tcp_established: time(
            options.conntrack_tcp_timeout_established,
            "tcpEstablishedTimeout",
            &file.tcp_established_timeout,
            default.tcp_established,
        )?,
        tcp_close_wait: time(
            options.conntrack_tcp_timeout_close_wait,
            "tcpCloseWaitTimeout",
            &file.tcp_close_wait_timeout,
            default.tcp_close_wait,
        )?,
        udp: time(
            options.conntrack_udp_timeout,
            "udpTimeout",
            &file.udp_timeout,
            default.udp,
        )?,
        udp_stream: time(
            options.conntrack_udp_timeout_stream,
            "udpStreamTimeout",
            &file.udp_stream_timeout,
            default.udp_stream,
        )?,
        tcp_be_liberal: options
            .conntrack_tcp_be_liberal
            .unwrap_or(file.tcp_be_liberal),
    })
}

fn detector(options: &Options, file: &File) -> Result<Detector, String> {
    let mode = match (options.detect_local_mode, &*file.detect_local_mode) {
        (Some(mode), _) => mode,
        (None, "") => DetectMode::ClusterCidr,
        (None, mode) => DetectMode::from_str(mode, false)
            .map_err(|_| format!("detectLocalMode: unknown value {mode:?}"))?,
    };
    let word = |field: &str, text: &str| match text {
        "" => Err(format!("detectLocal.{field}: missing")),
        text => Ok(text.to_owned()),
    };
    let local = &file.detect_local;
    Ok(match mode {
        DetectMode::NodeCidr => Detector::Node,
        DetectMode::BridgeInterface => {
            let name = word("bridgeInterface", &local.bridge_interface)?;
            Detector::These(LocalDetector::Interface(name))
        }
        DetectMode::InterfaceNamePrefix => {
            let prefix = word("interfaceNamePrefix", &local.interface_name_prefix)?;
            Detector::These(LocalDetector::InterfacePrefix(prefix))
        }
        DetectMode::ClusterCidr => {
            let of_file = match &local.cluster_cidrs[..] {
                [] => file.cluster_cidr.split(',').map(str::trim).collect(),
                several => several.iter().map(|text| text.trim()).collect::<Vec<_>>(),
            };
            let of_file = of_file.into_iter().filter(|text| !text.is_empty());
            let networks = match &options.cluster_cidr[..] {
                [] => of_file
                    .map(|text| network("clusterCIDR", text))
                    .collect::<Result<_, _>>()?,
                several => several.to_vec(),
            };
            Detector::These(match networks.is_empty() {
                true => LocalDetector::None,
                false => LocalDetector::Networks(networks),
            })
        }
    })
}

/// Reads the node port addresses. Without any networks kube-proxy's defaults apply: the node's primary addresses, and
/// in iptables mode all of them. A family without networks uses all addresses, as in kube-proxy 1.36.
fn node_ports(options: &Options, file: &File, mode: Mode) -> Result<NodePorts, String> {
    let texts = match &options.nodeport_addresses[..] {
        [] => file.node_port_addresses.as_deref().unwrap_or_default(),
        several => several,
    };
    match texts {
        [] if mode == Mode::Iptables => Ok(NodePorts::All),
        [] => Ok(NodePorts::Primary),
        [one] if one == "primary" => Ok(NodePorts::Primary),
        several => {
            let networks = several
                .iter()
                .map(|text| network("nodePortAddresses", text));
            let mut networks = networks.collect::<Result<Vec<_>, _>>()?;
            for all in ["0.0.0.0/0", "::/0"] {
                let all = network("nodePortAddresses", all)?;
                let is_of = |of: &IpNet| of.addr().is_ipv4() == all.addr().is_ipv4();
                if !networks.iter().any(is_of) {
                    info!(
                        networks = %all,
                        "nodePortAddresses has no network of this family: node ports are served on all addresses, as in kube-proxy"
                    );
                    networks.push(all);
                }
            }
            Ok(NodePorts::Networks(networks))
        }
    }
}

fn network(field: &str, text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|_| format!("{field}: invalid network {text:?}"))
}

/// Returns the first address of each family.
fn primary(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = |is: fn(&IpAddr) -> bool| addresses.iter().copied().find(is);
    [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)]
        .into_iter()
        .flatten()
        .collect()
}

/// Parses an address with or without a port, or a port alone, which means every address.
fn bind_address(text: &str, unspecified: IpAddr, port: u16) -> Result<SocketAddr, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let of_port = text.strip_prefix(':').and_then(|port| port.parse().ok());
    let whole = text.parse::<SocketAddr>().ok();
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = address.map(|address| SocketAddr::new(address, port));
    whole
        .or(address)
        .or(of_port.map(|port| SocketAddr::new(unspecified, port)))
        .ok_or_else(|| format!("invalid listen address {text:?}"))
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

/// Returns the host's name in lower case, as in node names.
fn hostname() -> Result<String, String> {
    let name =
        nix::unistd::gethostname().map_err(|error| format!("cannot get the host name: {error}"))?;
    Ok(name.to_string_lossy().trim().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> Result<Settings, String> {
        let arguments = ["agent", "--hostname-override", "Node1"]
            .iter()
            .chain(arguments);
        Settings::new(&Options::try_parse_from(arguments).map_err(|e| e.to_string())?)
    }

    fn with_file(text: &str, arguments: &[&str]) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        let text = format!(
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{text}"
        );
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        settings(&[&["--config", path], arguments].concat())
    }

    #[test]
    fn defaults_match_kube_proxy_except_the_mode() {
        let settings = settings(&[]).unwrap();
        assert_eq!((settings.mode, &*settings.node), (Mode::Flat, "node1"));
        assert_eq!(settings.health, Some(([0, 0, 0, 0], 10256).into()));
        assert_eq!(settings.metrics, Some(([127, 0, 0, 1], 10249).into()));
        // At the node's primary addresses, none of which is known yet.
        let mut expected = Config::new("node1");
        expected.node_port_addresses = NodePortAddresses::These(Vec::new());
        assert_eq!(settings.config(None).unwrap(), expected);
        assert_eq!(settings.conntrack, Conntrack::default());
    }

    #[test]
    fn options_override_the_config_file() {
        let text = "mode: nftables\nclusterCIDR: 10.244.0.0/16,fd00:1::/56\n\
            nodePortAddresses: [127.0.0.0/8]\nhealthzBindAddress: ''\nmetricsBindAddress: '::1'\n\
            bindAddress: 0.0.0.0\n\
            nftables: { masqueradeBit: 3, masqueradeAll: true, syncPeriod: 1m30s }\n\
            iptables: { masqueradeBit: 5 }\nclientConnection: { kubeconfig: /k }\n\
            conntrack: { min: 1, maxPerCore: 0, tcpEstablishedTimeout: 2h0m0s, tcpCloseWaitTimeout: 0s, \
            tcpBeLiberal: true, udpTimeout: 45s, udpStreamTimeout: null }\n";
        let file = with_file(text, &[]).unwrap();
        let options = settings(&[
            "--proxy-mode=nftables",
            "--cluster-cidr=10.244.0.0/16,fd00:1::/56",
            "--nodeport-addresses=127.0.0.0/8",
            "--healthz-bind-address=0.0.0.0",
            "--metrics-bind-address=[::1]:10249",
            "--iptables-masquerade-bit=3",
            "--masquerade-all",
            "--sync-period=90s",
            "--kubeconfig=/k",
            "--conntrack-min=1",
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=2h",
            "--conntrack-tcp-timeout-close-wait=0",
            "--conntrack-tcp-be-liberal",
            "--conntrack-udp-timeout=45s",
        ]);
        let options = options.unwrap();
        assert_eq!(format!("{file:?}"), format!("{options:?}"));
        let config = file.config(None).unwrap();
        assert_eq!(
            (config.masquerade_mark, config.masquerade_all),
            (1 << 3, true)
        );
        // The other family has kube-proxy's default.
        let networks = ["127.0.0.0/8", "::/0"].map(|network| network.parse().unwrap());
        assert_eq!(
            config.node_port_addresses,
            NodePortAddresses::Networks(networks.to_vec())
        );
        let other = with_file(
            text,
            &["--proxy-mode=iptables", "--iptables-masquerade-bit=7"],
        );
        let other = other.unwrap();
        assert_eq!(
            (other.mode, other.masquerade_mark),
            (Mode::Iptables, 1 << 7)
        );
        assert!(other.localhost_node_ports);
    }

    /// The addresses that kubeadm and others write for health and metrics.
    #[test]
    fn empty_addresses_of_a_file_are_the_defaults() {
        let kubeadms = "healthzBindAddress: ''\nmetricsBindAddress: ''\n";
        for (file, arguments, health, metrics) in [
            ("", &[][..], "0.0.0.0:10256", "127.0.0.1:10249"),
            (kubeadms, &[], "0.0.0.0:10256", "127.0.0.1:10249"),
            (
                "healthzBindAddress: null\n",
                &[],
                "0.0.0.0:10256",
                "127.0.0.1:10249",
            ),
            ("bindAddress: ''\n", &[], "0.0.0.0:10256", "127.0.0.1:10249"),
            ("bindAddress: '::'\n", &[], "[::]:10256", "[::1]:10249"),
            (
                "bindAddress: 192.0.2.1\n",
                &[],
                "0.0.0.0:10256",
                "127.0.0.1:10249",
            ),
            (
                "bindAddress: 'fd00::1'\nhealthzBindAddress: ''\n",
                &[],
                "[::]:10256",
                "[::1]:10249",
            ),
            (
                "bindAddress: '::'\n",
                &["--bind-address=0.0.0.0"],
                "0.0.0.0:10256",
                "127.0.0.1:10249",
            ),
            (
                kubeadms,
                &["--bind-address=::"],
                "[::]:10256",
                "[::1]:10249",
            ),
            (
                "healthzBindAddress: 10.0.0.1\nmetricsBindAddress: '[::1]'\n",
                &[],
                "10.0.0.1:10256",
                "[::1]:10249",
            ),
            (
                "healthzBindAddress: ':1'\nmetricsBindAddress: '::'\n",
                &[],
                "0.0.0.0:1",
                "[::]:10249",
            ),
            (
                "bindAddress: '::'\nhealthzBindAddress: ':1'\nmetricsBindAddress: '127.0.0.1:2'\n",
                &[],
                "[::]:1",
                "127.0.0.1:2",
            ),
            // Options take precedence; an empty one disables the address.
            (
                kubeadms,
                &["--healthz-bind-address=", "--metrics-bind-address="],
                "",
                "",
            ),
            (
                kubeadms,
                &["--healthz-bind-address=127.0.0.1"],
                "127.0.0.1:10256",
                "127.0.0.1:10249",
            ),
            (
                "healthzBindAddress: 10.0.0.1:1\n",
                &["--healthz-bind-address="],
                "",
                "127.0.0.1:10249",
            ),
        ] {
            let settings = with_file(file, arguments).unwrap();
            let address = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
            assert_eq!(settings.health, address(health), "{file:?} {arguments:?}");
            assert_eq!(settings.metrics, address(metrics), "{file:?} {arguments:?}");
        }
    }

    /// Every boolean flag accepts Go's forms; the file's value applies if the flag is absent.
    #[test]
    fn booleans_parse_as_in_go() {
        type Of = fn(&Options) -> Option<bool>;
        let flags: [(&str, Of); 6] = [
            ("demo", |o| o.demo),
            ("cleanup", |o| o.cleanup),
            ("cleanup-kube-proxy", |o| o.cleanup_kube_proxy),
            ("masquerade-all", |o| o.masquerade_all),
            ("conntrack-tcp-be-liberal", |o| o.conntrack_tcp_be_liberal),
            ("iptables-localhost-nodeports", |o| {
                o.iptables_localhost_nodeports
            }),
        ];
        for (name, of) in flags {
            let read = |argument: &str| Options::try_parse_from(["agent", argument]);
            assert_eq!(of(&read("-v2").unwrap()), None);
            assert_eq!(of(&read(&format!("--{name}")).unwrap()), Some(true));
            for (word, value) in [
                ("true", true),
                ("True", true),
                ("TRUE", true),
                ("t", true),
                ("T", true),
                ("1", true),
                ("false", false),
                ("False", false),
                ("FALSE", false),
                ("f", false),
                ("F", false),
                ("0", false),
            ] {
                let options = read(&format!("--{name}={word}")).unwrap();
                assert_eq!(of(&options), Some(value), "--{name}={word}");
            }
            for word in ["", "yes", "no", "2", "tRUE"] {
                assert!(
                    read(&format!("--{name}={word}")).is_err(),
                    "--{name}={word}"
                );
            }
            // The following argument is not a value.
            assert!(Options::try_parse_from(["agent", &format!("--{name}"), "false"]).is_err());
        }
        // The list above contains all flags of this kind.
        let command = <Options as clap::CommandFactory>::command();
        let all = command.get_arguments().filter(|argument| {
            argument
                .get_value_names()
                .is_some_and(|names| names == ["BOOL"])
                || !argument.get_action().takes_values()
                    && !["help", "version"].contains(&argument.get_id().as_str())
        });
        assert_eq!(all.count(), flags.len());
        let text = "nftables: { masqueradeAll: true }\nconntrack: { tcpBeLiberal: true }\n\
            iptables: { masqueradeAll: true, localhostNodePorts: true }\n";
        let of = |arguments: &[&str]| {
            let settings = with_file(text, arguments).unwrap();
            (
                settings.masquerade_all,
                settings.conntrack.tcp_be_liberal,
                settings.localhost_node_ports,
            )
        };
        assert_eq!(of(&[]), (true, true, true));
        let off = [
            "--masquerade-all=false",
            "--conntrack-tcp-be-liberal=0",
            "--iptables-localhost-nodeports=F",
        ];
        assert_eq!(of(&off), (false, false, false));
        assert!(settings(&["--demo=false", "--cleanup"]).is_ok());
        assert!(settings(&["--demo", "--cleanup=false"]).is_ok());
        assert!(settings(&["--demo", "--cleanup"]).is_err());
        assert!(settings(&["--demo", "--kubeconfig=k"]).is_err());
        assert!(settings(&["--cleanup-kube-proxy"]).is_err());
    }

    #[test]
    fn node_port_addresses_match_kube_proxy() {
        let none = || NodePortAddresses::These(Vec::new());
        for (mode, expected) in [
            ("iptables", NodePortAddresses::All),
            ("nftables", none()),
            ("flat", none()),
        ] {
            let settings = settings(&[&format!("--proxy-mode={mode}")]).unwrap();
            // The node is unknown.
            let config = settings.config(None).unwrap();
            assert_eq!(config.node_port_addresses, expected, "{mode}");
            let primary = with_file(
                "nodePortAddresses: [primary]\n",
                &[&format!("--proxy-mode={mode}")],
            );
            let config = primary.unwrap().config(None).unwrap();
            assert_eq!(config.node_port_addresses, none(), "{mode}");
        }
    }

    /// Networks of only one family leave the other at all its addresses, in every mode: `NewNodePortAddresses` in
    /// Kubernetes' `pkg/proxy/util/nodeport_addresses.go` adds the family's whole network.
    #[test]
    fn node_ports_of_a_family_without_networks_are_everywhere() {
        for (given, expected) in [
            ("10.0.0.0/8", &["10.0.0.0/8", "::/0"][..]),
            ("fd00::/8", &["fd00::/8", "0.0.0.0/0"]),
            ("10.0.0.0/8, fd00::/8", &["10.0.0.0/8", "fd00::/8"]),
            ("0.0.0.0/0", &["0.0.0.0/0", "::/0"]),
        ] {
            let networks = expected.iter().map(|network| network.parse().unwrap());
            let expected = NodePortAddresses::Networks(networks.collect());
            for mode in ["iptables", "nftables", "flat"] {
                let file = format!("nodePortAddresses: [{}]\n", quoted(given));
                let settings = with_file(&file, &[&format!("--proxy-mode={mode}")]).unwrap();
                let config = settings.config(None).unwrap();
                assert_eq!(config.node_port_addresses, expected, "{mode}, {given}");
            }
        }
    }

    fn quoted(list: &str) -> String {
        let quoted: Vec<_> = list.split(", ").map(|one| format!("{one:?}")).collect();
        quoted.join(", ")
    }

    #[test]
    fn node_object_settings_are_applied() {
        let text = "detectLocalMode: NodeCIDR\nnodePortAddresses: [primary]\n";
        let settings = with_file(text, &[]).unwrap();
        let node = Node {
            name: "node1".into(),
            zone: Some("a".into()),
            addresses: ["10.0.0.7", "192.0.2.7", "fd00::7"]
                .map(|a| a.parse().unwrap())
                .to_vec(),
            pod_networks: vec!["10.244.1.0/24".parse().unwrap()],
        };
        let config = settings.config(Some(&node)).unwrap();
        assert_eq!(
            config.local_detector,
            LocalDetector::Networks(node.pod_networks)
        );
        let primary = ["10.0.0.7", "fd00::7"].map(|a| a.parse().unwrap()).to_vec();
        assert_eq!(
            config.node_port_addresses,
            NodePortAddresses::These(primary)
        );
        assert_eq!(
            (config.zone, config.node_addresses),
            (node.zone, node.addresses)
        );
        assert_eq!(
            settings.config(None).unwrap().local_detector,
            LocalDetector::None
        );
        let bridge = "detectLocalMode: BridgeInterface\ndetectLocal: { bridgeInterface: br0 }\n";
        let bridge = with_file(bridge, &[]).unwrap().config(None).unwrap();
        assert_eq!(
            bridge.local_detector,
            LocalDetector::Interface("br0".to_owned())
        );
    }

    #[test]
    fn invalid_options_are_named() {
        for (text, word) in [
            ("mode: ipvs\n", "mode"),
            ("mode: [\n", "config.yaml"),
            ("clusterCIDR: 10.0.0.0\n", "clusterCIDR"),
            ("nodePortAddresses: [x]\n", "nodePortAddresses"),
            ("detectLocalMode: Magic\n", "detectLocalMode"),
            ("detectLocalMode: BridgeInterface\n", "bridgeInterface"),
            ("nftables: { masqueradeBit: 32 }\n", "masqueradeBit"),
            ("nftables: { syncPeriod: 3x }\n", "syncPeriod"),
            ("nftables: { masqueradeBit: x }\n", "nftables"),
            ("conntrack: { udpTimeout: soon }\n", "conntrack.udpTimeout"),
            ("conntrack: { min: -1 }\n", "conntrack"),
            ("healthzBindAddress: here\n", "here"),
            ("healthzBindAddress: '10256'\n", "10256"),
            ("metricsBindAddress: '127.0.0.1:'\n", "127.0.0.1:"),
            ("bindAddress: here\n", "bindAddress"),
        ] {
            let error = with_file(text, &[]).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert!(settings(&["--iptables-masquerade-bit=32"]).is_err());
        for text in ["", "s", "10", "1x", "99999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
