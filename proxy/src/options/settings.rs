//! The settings that result from the options and the configuration file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use chainwright_kube::service::{Config, LocalDetector, Node, NodePortAddresses};
use clap::ValueEnum as _;
use ipnet::IpNet;
use tracing::info;

use super::{ConntrackFile, DetectMode, File, Mode, Options, duration, network};
use crate::sysctl::Conntrack;

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

/// Returns the host's name in lower case, as in node names.
fn hostname() -> Result<String, String> {
    let name =
        nix::unistd::gethostname().map_err(|error| format!("cannot get the host name: {error}"))?;
    Ok(name.to_string_lossy().trim().to_lowercase())
}

#[cfg(test)]
mod tests;
