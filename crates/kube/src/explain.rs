//! Explains the chains, maps and sets of Kubernetes' components, by their names and by the comments of rules.
//!
//! The names of kube-proxy's iptables chains do not show their service (`KUBE-SVC-` and a hash); but the rules'
//! comments do, in every version. In nftables the names contain the service.
//!
//! ```
//! use chainwright_kube::explain::{ChainInfo, Role};
//!
//! let part = ChainInfo::of("KUBE-SEP-SXIVWICOYRO3J4NJ", Some("ns1/svc1:p80".into())).unwrap();
//! assert_eq!(part.role, Role::Endpoint);
//! assert_eq!(part.port.as_deref(), Some("ns1/svc1:p80"));
//!
//! let part = ChainInfo::of("endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80", None).unwrap();
//! assert_eq!(part.endpoint.unwrap().to_string(), "10.180.0.1:80");
//! assert_eq!(part.to_string(), "endpoint 10.180.0.1:80 of ns1/svc1:p80");
//! ```

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bstr::{BStr, ByteSlice};

/// The purpose of a chain, map or set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Role {
    /// Dispatches to services by their addresses.
    Services,
    /// Dispatches to services by their node ports.
    NodePorts,
    /// Chooses one of a service's endpoints.
    Service,
    /// Chooses one of a service's endpoints on this node.
    Local,
    /// Handles traffic to a service from outside the cluster.
    External,
    /// Restricts the clients of a service's load balancer.
    Firewall,
    /// One endpoint.
    Endpoint,
    /// The clients that are bound to an endpoint.
    Affinity,
    /// Marks packets to be masqueraded.
    MarkMasquerade,
    /// Masquerades marked packets.
    Masquerade,
    /// Marks packets to be dropped, or drops them.
    Drop,
    /// Rejects traffic to services without endpoints.
    NoEndpoints,
    /// Refuses packets to a cluster IP on a port that no service has.
    ClusterIps,
    /// Accepts packets that were sent to endpoints.
    Forward,
    /// Exists so that its disappearance is noticed.
    Canary,
}

impl Role {
    /// Returns the role in words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Services => "services",
            Self::NodePorts => "node ports",
            Self::Service => "service",
            Self::Local => "endpoints on this node",
            Self::External => "from outside",
            Self::Firewall => "load balancer source ranges",
            Self::Endpoint => "endpoint",
            Self::Affinity => "affinity",
            Self::MarkMasquerade => "marks for masquerading",
            Self::Masquerade => "masquerading",
            Self::Drop => "drops",
            Self::NoEndpoints => "no endpoints",
            Self::ClusterIps => "cluster IPs",
            Self::Forward => "forwarding",
            Self::Canary => "canary",
        }
    }
}

/// A part of a component's ruleset: its role, and the service port that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainInfo {
    /// The role.
    pub role: Role,
    /// The service port, as kube-proxy's comments name it: `namespace/name:port`.
    pub port: Option<String>,
    /// The endpoint, if the name contains it.
    pub endpoint: Option<SocketAddr>,
}

/// Prefixes of names in iptables; each such chain belongs to one service port.
const IPTABLES: [(&str, Role); 6] = [
    ("KUBE-SVC-", Role::Service),
    ("KUBE-SVL-", Role::Local),
    // Until 1.23.
    ("KUBE-XLB-", Role::External),
    ("KUBE-EXT-", Role::External),
    ("KUBE-FW-", Role::Firewall),
    ("KUBE-SEP-", Role::Endpoint),
];

/// The same prefixes in nftables.
const NFTABLES: [(&str, Role); 6] = [
    ("service-", Role::Service),
    ("local-", Role::Local),
    ("external-", Role::External),
    ("firewall-", Role::Firewall),
    ("endpoint-", Role::Endpoint),
    ("affinity-", Role::Affinity),
];

/// Complete names.
const COMPLETE_NAMES: [(&str, Role); 32] = [
    ("KUBE-SERVICES", Role::Services),
    ("KUBE-EXTERNAL-SERVICES", Role::Services),
    ("KUBE-NODEPORTS", Role::NodePorts),
    ("KUBE-MARK-MASQ", Role::MarkMasquerade),
    ("KUBE-MARK-DROP", Role::Drop),
    ("KUBE-POSTROUTING", Role::Masquerade),
    ("KUBE-FORWARD", Role::Forward),
    ("KUBE-FIREWALL", Role::Drop),
    ("KUBE-PROXY-FIREWALL", Role::Firewall),
    ("KUBE-PROXY-CANARY", Role::Canary),
    ("KUBE-KUBELET-CANARY", Role::Canary),
    ("KUBE-IPTABLES-HINT", Role::Canary),
    ("services", Role::Services),
    ("service-ips", Role::Services),
    ("local-ips", Role::Services),
    ("external-ips", Role::Services),
    ("service-nodeports", Role::NodePorts),
    ("local-nodeports", Role::NodePorts),
    ("nodeport-ips", Role::NodePorts),
    ("firewall-check", Role::Firewall),
    ("firewall-ips", Role::Firewall),
    ("firewall-allow-check", Role::Firewall),
    ("firewall-sources", Role::Firewall),
    ("no-endpoint-services", Role::NoEndpoints),
    ("no-endpoint-nodeports", Role::NoEndpoints),
    ("service-endpoints-check", Role::NoEndpoints),
    ("nodeport-endpoints-check", Role::NoEndpoints),
    ("reject-chain", Role::NoEndpoints),
    ("cluster-ips", Role::ClusterIps),
    ("cluster-ips-check", Role::ClusterIps),
    ("mark-for-masquerade", Role::MarkMasquerade),
    ("masquerading", Role::Masquerade),
];

impl ChainInfo {
    /// Explains a chain, map or set by its name; `None` if it does not belong to Kubernetes. The comment is that of a
    /// rule in the chain, or of one that jumps to it.
    #[must_use]
    pub fn of(name: impl AsRef<[u8]>, comment: Option<&BStr>) -> Option<Self> {
        let name = name.as_ref();
        if let Some((_, role)) = COMPLETE_NAMES
            .iter()
            .find(|(whole, _)| whole.as_bytes() == name)
        {
            return Some(Self {
                role: *role,
                port: None,
                endpoint: None,
            });
        }
        let begins = |(prefix, role): &(&str, Role)| {
            let rest = name.strip_prefix(prefix.as_bytes())?;
            Some((*role, rest))
        };
        if let Some((role, hash)) = IPTABLES.iter().find_map(begins) {
            return is_hash(hash, 16).then(|| Self {
                role,
                port: comment.and_then(port_in_comment),
                endpoint: None,
            });
        }
        let (role, rest) = NFTABLES.iter().find_map(begins)?;
        let (hash, rest) = (rest.get(..8)?, rest.get(8..)?.strip_prefix(b"-")?);
        if !is_hash(hash, 8) {
            return None;
        }
        let (port, endpoint) = port_in_name(rest.to_str().ok()?);
        Some(Self {
            role,
            port,
            endpoint,
        })
    }
}

/// Returns `true` if these bytes can be the hash in a name.
fn is_hash(bytes: &[u8], length: usize) -> bool {
    let in_base32 = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
    bytes.len() == length && bytes.iter().all(in_base32)
}

/// Returns the service port in a comment of kube-proxy, such as `default/web:http cluster IP`, `masquerade traffic for
/// default/web:http external destinations`, or `default/web:http`.
#[must_use]
pub fn port_in_comment(comment: impl AsRef<[u8]>) -> Option<String> {
    let mut words = comment.as_ref().split(u8::is_ascii_whitespace);
    words.find_map(|word| port_of(word.to_str().ok()?))
}

/// Returns the word if it names a service port.
fn port_of(word: &str) -> Option<String> {
    let (namespace, rest) = word.split_once('/')?;
    let (name, port) = rest.split_once(':').unwrap_or((rest, ""));
    let is_label = |text: &str| {
        let mut bytes = text.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    };
    let is_one = !namespace.is_empty()
        && !name.is_empty()
        && [namespace, name, port].into_iter().all(is_label);
    is_one.then(|| word.trim_end_matches(':').to_owned())
}

/// Splits `ns1/svc1/tcp/p80__10.180.0.1/80` into the service port and the endpoint.
fn port_in_name(rest: &str) -> (Option<String>, Option<SocketAddr>) {
    let (port, endpoint) = match rest.split_once("__") {
        Some((port, endpoint)) => (port, endpoint_in_name(endpoint)),
        None => (rest, None),
    };
    let mut parts = port.splitn(4, '/');
    let (Some(namespace), Some(name), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
        return (None, endpoint);
    };
    let port = match parts.next() {
        None | Some("") => format!("{namespace}/{name}"),
        Some(port) => format!("{namespace}/{name}:{port}"),
    };
    (Some(port), endpoint)
}

/// Parses `10.180.0.1/80`; names have dots for the colons of an IPv6 address.
fn endpoint_in_name(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.rsplit_once('/')?;
    let port = port.parse().ok()?;
    let address: IpAddr = match address.parse() {
        Ok(address) => address,
        Err(_) => address.replace('.', ":").parse().ok()?,
    };
    Some(SocketAddr::new(address, port))
}

impl fmt::Display for ChainInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.description())?;
        if let Some(endpoint) = self.endpoint {
            write!(f, " {endpoint}")?;
        }
        match (&self.port, self.role) {
            (None, _) => Ok(()),
            (Some(port), Role::Service) => write!(f, " {port}"),
            (Some(port), Role::Firewall | Role::External) => write!(f, ": {port}"),
            (Some(port), _) => write!(f, " of {port}"),
        }
    }
}

/// Returns `true` if a service port matches a requested one: `web`, `default/web`, `web:http`, `default/web:http`.
#[must_use]
pub fn matches_port(port: &str, pattern: &str) -> bool {
    let (there, wanted) = (parts(port), parts(pattern));
    (wanted.0.is_none() || wanted.0 == there.0)
        && wanted.1 == there.1
        && (wanted.2.is_none() || wanted.2 == there.2)
}

/// Returns the namespace, name and port of a service port, where present.
fn parts(text: &str) -> (Option<&str>, &str, Option<&str>) {
    let (namespace, rest) = match text.split_once('/') {
        Some((namespace, rest)) => (Some(namespace), rest),
        None => (None, text),
    };
    match rest.split_once(':') {
        Some((name, port)) => (namespace, name, Some(port)),
        None => (namespace, rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{ChainKind, ObjectName, PortName, Protocol};

    #[test]
    fn comments_of_each_version() {
        for (comment, port) in [
            ("default/web:http cluster IP", Some("default/web:http")),
            ("default/web:http -> 10.0.0.1:80", Some("default/web:http")),
            ("default/azure-vote-front", Some("default/azure-vote-front")),
            ("ns/empty:http has no endpoints", Some("ns/empty:http")),
            (
                "masquerade traffic for default/ext:sip external destinations",
                Some("default/ext:sip"),
            ),
            ("kubernetes service portals", None),
            ("a/b/c", None),
            ("/web", None),
            ("", None),
        ] {
            assert_eq!(port_in_comment(comment).as_deref(), port, "{comment}");
        }
    }

    /// The module reads the names that the library itself makes.
    #[test]
    fn names_are_read_back() {
        let port = PortName {
            service: ObjectName::new("ns1", "svc1"),
            port: "p80".into(),
            protocol: Protocol::Tcp,
        };
        for kind in ChainKind::ALL {
            let name = port.iptables_chain(kind);
            let part = ChainInfo::of(&name, Some(BStr::new("ns1/svc1:p80"))).unwrap();
            assert_eq!(part.port.as_deref(), Some("ns1/svc1:p80"), "{name}");
        }
        for address in ["10.180.0.1:80", "[fd00::1]:443", "[fd00:1:2:3:4:5:6:7]:9"] {
            let endpoint: SocketAddr = address.parse().unwrap();
            let name = port.nftables_endpoint_name("affinity-", endpoint);
            let part = ChainInfo::of(&name, None).unwrap();
            assert_eq!((part.role, part.endpoint), (Role::Affinity, Some(endpoint)));
            assert_eq!(part.port.as_deref(), Some("ns1/svc1:p80"));
        }
        for other in [
            "KUBE-SVC-short",
            "service-check",
            "endpoint-lower123-a/b/c",
            "INPUT",
        ] {
            assert_eq!(ChainInfo::of(other, None), None, "{other}");
        }
    }

    #[test]
    fn service_names_can_be_abbreviated() {
        for pattern in ["web", "default/web", "web:http", "default/web:http"] {
            assert!(matches_port("default/web:http", pattern), "{pattern}");
        }
        for pattern in ["we", "other/web", "web:https", "default/web:http2"] {
            assert!(!matches_port("default/web:http", pattern), "{pattern}");
        }
        assert!(matches_port("default/web", "web") && !matches_port("default/web", "web:http"));
    }
}
