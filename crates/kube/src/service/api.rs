//! Converts services, endpoint slices and nodes from the API's types (crate `k8s-openapi`).
//!
//! Defaults that the API server fills in are filled in here, too, so that a manifest that never passed through it has
//! the same meaning. A value that the API server would refuse is an [error](InvalidObject), not a warning: kube-proxy
//! ignores a source range that it cannot parse, and if that is the only one, all clients may use the load balancer.
//!
//! Source: `pkg/proxy/serviceport.go`, `pkg/proxy/endpointslicecache.go`, `pkg/api/v1/service/util.go` of Kubernetes;
//! the defaults from `pkg/apis/core/v1/defaults.go` and the API's documentation.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;
use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::model::{
    Endpoint, EndpointPort, EndpointSlice, ObjectName, Port, Protocol, Service, TrafficPolicy,
};

/// Label with the service that a slice belongs to.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label of a service that another proxy serves.
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// Label of a service without a cluster IP.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Label with a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// Default time after which a client's affinity ends: three hours.
const AFFINITY: Duration = Duration::from_secs(10_800);

/// A field of an object that cannot be parsed, or whose value the API does not allow.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {object}: {field}: {problem}")]
pub struct InvalidObject {
    kind: &'static str,
    object: String,
    field: String,
    problem: String,
}

chainwright::debug_as_message!(InvalidObject);

impl InvalidObject {
    /// Returns the object's kind, for instance `Service`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the object's name, preceded by its namespace if it has one.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.object
    }

    /// Returns the field, for instance `spec.clusterIPs[0]`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// Properties of the node that a proxy runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's name.
    pub name: Arc<str>,
    /// The node's zone (label `topology.kubernetes.io/zone`).
    pub zone: Option<Arc<str>>,
    /// The node's addresses: the internal ones, then the external ones.
    pub addresses: Vec<IpAddr>,
    /// The networks of the node's pods (`spec.podCIDRs`).
    pub pod_networks: Vec<IpNet>,
}

impl Service {
    /// Converts the API's type. Returns `None` for a service that a proxy ignores: it is of type `ExternalName`, has no
    /// cluster IP, or belongs to [another
    /// proxy](https://kubernetes.io/docs/reference/labels-annotations-taints/#servicekubernetesioservice-proxy-name). A
    /// service may become one of these after a change; [remove](super::Services::remove_service) it then.
    ///
    /// ```
    /// use chainwright_kube::service::Service;
    /// use k8s_openapi::api::core::v1;
    ///
    /// let mut web = v1::Service::default();
    /// web.metadata.name = Some("web".to_owned());
    /// web.spec = Some(v1::ServiceSpec {
    ///     cluster_ip: Some("10.96.0.1".to_owned()),
    ///     ports: Some(vec![v1::ServicePort { port: 80, ..Default::default() }]),
    ///     ..Default::default()
    /// });
    /// let service = Service::from_api(&web)?.expect("it has a cluster IP");
    /// assert_eq!(service.name.to_string(), "default/web");
    /// # Ok::<(), chainwright_kube::service::InvalidObject>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An address, port, range or keyword cannot be parsed.
    pub fn from_api(service: &core::Service) -> Result<Option<Self>, InvalidObject> {
        let object = Object::of("Service", &service.metadata)?;
        let Some(spec) = &service.spec else {
            return Ok(None);
        };
        let kind = word(spec.type_.as_ref()).unwrap_or("ClusterIP");
        if kind == "ExternalName" || is_for_another_proxy(&service.metadata) {
            return Ok(None);
        }
        if !["ClusterIP", "NodePort", "LoadBalancer"].contains(&kind) {
            return Err(object.unknown(format_args!("spec.type"), kind));
        }
        let cluster_ips = match some(spec.cluster_ips.as_ref()) {
            [] => spec.cluster_ip.as_slice(),
            several => several,
        };
        if cluster_ips.iter().all(String::is_empty) || cluster_ips.iter().any(|ip| ip == "None") {
            return Ok(None);
        }
        let cluster_ips = object.addresses("spec.clusterIPs", cluster_ips)?;
        let external_ips =
            object.addresses("spec.externalIPs", some(spec.external_ips.as_ref()))?;
        let is_external = kind != "ClusterIP" || !external_ips.is_empty();
        let external = object.policy(
            "spec.externalTrafficPolicy",
            spec.external_traffic_policy.as_ref(),
        )?;
        let external = if is_external {
            external
        } else {
            TrafficPolicy::Cluster
        };
        let internal = object.policy(
            "spec.internalTrafficPolicy",
            spec.internal_traffic_policy.as_ref(),
        )?;
        let health = spec.health_check_node_port.filter(|port| *port != 0);
        let health = health.filter(|_| kind == "LoadBalancer" && external == TrafficPolicy::Local);
        let health = health.map(|p| object.port(format_args!("spec.healthCheckNodePort"), p));
        let ports = some(spec.ports.as_ref()).iter().enumerate();
        let ranges = some(spec.load_balancer_source_ranges.as_ref()).iter();
        let range = |(n, range): (usize, &String)| {
            object.network(format_args!("spec.loadBalancerSourceRanges[{n}]"), range)
        };
        let session_affinity = object.affinity(spec)?;
        Ok(Some(Self {
            cluster_ips,
            external_ips,
            load_balancer_ips: object.load_balancers(service)?,
            source_ranges: ranges.enumerate().map(range).collect::<Result<_, _>>()?,
            ports: ports
                .map(|p| object.service_port(p))
                .collect::<Result<_, _>>()?,
            external_traffic_policy: external,
            internal_traffic_policy: internal,
            session_affinity,
            health_check_node_port: health.transpose()?,
            created: service
                .metadata
                .creation_timestamp
                .as_ref()
                .and_then(|time| u64::try_from(time.0.as_second()).ok())
                .and_then(|seconds| {
                    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
                }),
            name: object.name,
        }))
    }
}

impl EndpointSlice {
    /// Converts the API's type. Returns `None` for a slice that a proxy ignores: it names no service, contains host
    /// names (`addressType: FQDN`), or belongs to a headless service or one of [another
    /// proxy](https://kubernetes.io/docs/reference/labels-annotations-taints/#servicekubernetesioservice-proxy-name).
    ///
    /// # Errors
    ///
    /// An address, port or keyword cannot be parsed.
    pub fn from_api(slice: &discovery::EndpointSlice) -> Result<Option<Self>, InvalidObject> {
        let object = Object::of("EndpointSlice", &slice.metadata)?;
        let service = label(&slice.metadata, SERVICE_NAME).filter(|name| !name.is_empty());
        let Some(service) = service.filter(|_| !is_for_another_proxy(&slice.metadata)) else {
            return Ok(None);
        };
        let is_ipv6 = match &*slice.address_type {
            "FQDN" => return Ok(None),
            "IPv4" => false,
            "IPv6" => true,
            other => return Err(object.unknown(format_args!("addressType"), other)),
        };
        let endpoints = some(slice.endpoints.as_ref()).iter().enumerate();
        let endpoint = |e| object.endpoint(e, is_ipv6);
        let ports = some(slice.ports.as_ref()).iter().enumerate();
        Ok(Some(Self {
            service: service.into(),
            endpoints: endpoints.map(endpoint).collect::<Result<_, _>>()?,
            ports: ports
                .map(|p| object.endpoint_port(p))
                .collect::<Result<_, _>>()?,
            name: object.name,
        }))
    }
}

impl Node {
    /// Converts the API's type.
    ///
    /// # Errors
    ///
    /// An address or network cannot be parsed.
    pub fn from_api(node: &core::Node) -> Result<Self, InvalidObject> {
        let object = Object::of("Node", &node.metadata)?;
        let spec = node.spec.as_ref();
        let networks = match spec.map_or(&[][..], |spec| some(spec.pod_cidrs.as_ref())) {
            [] => spec.map_or(&[][..], |spec| spec.pod_cidr.as_slice()),
            several => several,
        };
        let networks = networks.iter().filter(|network| !network.is_empty());
        let network = |(n, network): (usize, &String)| {
            object.network(format_args!("spec.podCIDRs[{n}]"), network)
        };
        let addresses = node.status.as_ref().and_then(|s| s.addresses.as_ref());
        let addresses = || some(addresses).iter().enumerate();
        let of_type = |wanted: &'static str| addresses().filter(move |(_, a)| a.type_ == wanted);
        let both = of_type("InternalIP").chain(of_type("ExternalIP"));
        let address = |(n, address): (usize, &core::NodeAddress)| {
            object.address(
                format_args!("status.addresses[{n}].address"),
                &address.address,
            )
        };
        Ok(Self {
            zone: label(&node.metadata, ZONE)
                .filter(|zone| !zone.is_empty())
                .map(Into::into),
            addresses: both.map(address).collect::<Result<_, _>>()?,
            pod_networks: networks
                .enumerate()
                .map(network)
                .collect::<Result<_, _>>()?,
            name: object.name.name,
        })
    }
}

/// The object that errors refer to.
struct Object {
    kind: &'static str,
    name: ObjectName,
}

impl Object {
    fn of(kind: &'static str, metadata: &ObjectMeta) -> Result<Self, InvalidObject> {
        // An object without a namespace is in the default one, as for kubectl.
        let namespace = word(metadata.namespace.as_ref()).unwrap_or("default");
        let name = word(metadata.name.as_ref());
        let object = Self {
            kind,
            name: ObjectName::new(namespace, name.unwrap_or_default()),
        };
        match name {
            Some(_) => Ok(object),
            None => Err(object.invalid(format_args!("metadata.name"), "missing")),
        }
    }

    fn invalid(&self, field: fmt::Arguments<'_>, problem: impl Into<String>) -> InvalidObject {
        InvalidObject {
            kind: self.kind,
            object: match self.kind {
                "Node" => self.name.name.to_string(),
                _ => self.name.to_string(),
            },
            field: field.to_string(),
            problem: problem.into(),
        }
    }

    fn unknown(&self, field: fmt::Arguments<'_>, word: &str) -> InvalidObject {
        self.invalid(field, format!("unknown value {word:?}"))
    }

    fn address(&self, field: fmt::Arguments<'_>, text: &str) -> Result<IpAddr, InvalidObject> {
        address(text).ok_or_else(|| self.invalid(field, format!("invalid IP address {text:?}")))
    }

    fn addresses(&self, field: &str, texts: &[String]) -> Result<Vec<IpAddr>, InvalidObject> {
        let address =
            |(n, text): (usize, &String)| self.address(format_args!("{field}[{n}]"), text);
        texts.iter().enumerate().map(address).collect()
    }

    fn network(&self, field: fmt::Arguments<'_>, text: &str) -> Result<IpNet, InvalidObject> {
        // The API server allows blanks around ranges.
        network(text.trim()).ok_or_else(|| self.invalid(field, format!("invalid network {text:?}")))
    }

    fn port(&self, field: fmt::Arguments<'_>, number: i32) -> Result<u16, InvalidObject> {
        let port = u16::try_from(number).ok().filter(|port| *port != 0);
        port.ok_or_else(|| self.invalid(field, format!("invalid port {number}")))
    }

    fn protocol(
        &self,
        field: fmt::Arguments<'_>,
        text: Option<&String>,
    ) -> Result<Protocol, InvalidObject> {
        match word(text) {
            None | Some("TCP") => Ok(Protocol::Tcp),
            Some("UDP") => Ok(Protocol::Udp),
            Some("SCTP") => Ok(Protocol::Sctp),
            Some(other) => Err(self.unknown(field, other)),
        }
    }

    fn policy(&self, field: &str, text: Option<&String>) -> Result<TrafficPolicy, InvalidObject> {
        match word(text) {
            None | Some("Cluster") => Ok(TrafficPolicy::Cluster),
            Some("Local") => Ok(TrafficPolicy::Local),
            Some(other) => Err(self.unknown(format_args!("{field}"), other)),
        }
    }

    fn affinity(&self, spec: &core::ServiceSpec) -> Result<Option<Duration>, InvalidObject> {
        match word(spec.session_affinity.as_ref()) {
            None | Some("None") => return Ok(None),
            Some("ClientIP") => {}
            Some(other) => return Err(self.unknown(format_args!("spec.sessionAffinity"), other)),
        }
        let config = spec.session_affinity_config.as_ref();
        let seconds = config.and_then(|c| c.client_ip.as_ref()?.timeout_seconds);
        let Some(seconds) = seconds else {
            return Ok(Some(AFFINITY));
        };
        let timeout = u64::try_from(seconds)
            .ok()
            .filter(|s| (1..=86_400).contains(s));
        let timeout = timeout.ok_or_else(|| {
            self.invalid(
                format_args!("spec.sessionAffinityConfig.clientIP.timeoutSeconds"),
                format!("{seconds} is not between 1 and 86400"),
            )
        })?;
        Ok(Some(Duration::from_secs(timeout)))
    }

    fn load_balancers(&self, service: &core::Service) -> Result<Vec<IpAddr>, InvalidObject> {
        let status = service.status.as_ref();
        let ingress = status.and_then(|s| s.load_balancer.as_ref()?.ingress.as_ref());
        let mut addresses = Vec::new();
        for (n, ingress) in some(ingress).iter().enumerate() {
            // Packets from a balancer that is itself a proxy arrive with the node's address.
            let is_vip = matches!(word(ingress.ip_mode.as_ref()), None | Some("VIP"));
            if let Some(ip) = word(ingress.ip.as_ref()).filter(|_| is_vip) {
                addresses
                    .push(self.address(format_args!("status.loadBalancer.ingress[{n}].ip"), ip)?);
            }
        }
        Ok(addresses)
    }

    fn service_port(&self, (n, port): (usize, &core::ServicePort)) -> Result<Port, InvalidObject> {
        let node_port = port.node_port.filter(|port| *port != 0);
        let number = |p| self.port(format_args!("spec.ports[{n}].nodePort"), p);
        Ok(Port {
            name: port.name.as_deref().unwrap_or_default().into(),
            protocol: self.protocol(
                format_args!("spec.ports[{n}].protocol"),
                port.protocol.as_ref(),
            )?,
            port: self.port(format_args!("spec.ports[{n}].port"), port.port)?,
            node_port: node_port.map(number).transpose()?,
        })
    }

    fn endpoint_port(
        &self,
        (n, port): (usize, &discovery::EndpointPort),
    ) -> Result<EndpointPort, InvalidObject> {
        let number = |p| self.port(format_args!("ports[{n}].port"), p);
        Ok(EndpointPort {
            name: port.name.as_deref().unwrap_or_default().into(),
            protocol: self.protocol(format_args!("ports[{n}].protocol"), port.protocol.as_ref())?,
            port: port.port.map(number).transpose()?,
        })
    }

    fn endpoint(
        &self,
        (n, endpoint): (usize, &discovery::Endpoint),
        is_ipv6: bool,
    ) -> Result<Endpoint, InvalidObject> {
        let Some(text) = endpoint.addresses.first() else {
            return Err(self.invalid(format_args!("endpoints[{n}].addresses"), "missing"));
        };
        let address = self.address(format_args!("endpoints[{n}].addresses[0]"), text)?;
        if address.is_ipv6() != is_ipv6 {
            let problem = format!("{text:?} is not of the slice's address family");
            return Err(self.invalid(format_args!("endpoints[{n}].addresses[0]"), problem));
        }
        let conditions = endpoint.conditions.as_ref();
        let hints = endpoint.hints.as_ref();
        let zones = some(hints.and_then(|h| h.for_zones.as_ref())).iter();
        let nodes = some(hints.and_then(|h| h.for_nodes.as_ref())).iter();
        Ok(Endpoint {
            address,
            ready: conditions.and_then(|c| c.ready).unwrap_or(true),
            serving: conditions.and_then(|c| c.serving).unwrap_or(true),
            terminating: conditions.and_then(|c| c.terminating).unwrap_or(false),
            node: word(endpoint.node_name.as_ref()).map(Into::into),
            for_zones: zones.map(|zone| (*zone.name).into()).collect(),
            for_nodes: nodes.map(|node| (*node.name).into()).collect(),
        })
    }
}

/// Returns the elements of an optional list.
fn some<T>(list: Option<&Vec<T>>) -> &[T] {
    list.map_or(&[], Vec::as_slice)
}

/// Returns an optional string, for which an empty one counts as absent.
fn word(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn label<'m>(metadata: &'m ObjectMeta, name: &str) -> Option<&'m str> {
    let labels: Option<&BTreeMap<_, _>> = metadata.labels.as_ref();
    labels?.get(name).map(String::as_str)
}

/// Returns `true` if the object's labels exclude it from this proxy.
fn is_for_another_proxy(metadata: &ObjectMeta) -> bool {
    [PROXY_NAME, HEADLESS]
        .iter()
        .any(|name| label(metadata, name).is_some())
}

/// Parses an address as old API servers did, and as they still do in old objects: leading zeros are ignored, and an
/// IPv4 address in IPv6 form is an IPv4 address.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let digits = parts.next()?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = digits.parse().ok()?;
    }
    let address = Ipv4Addr::from(octets).into();
    parts.next().is_none().then_some(address)
}

fn network(text: &str) -> Option<IpNet> {
    let (start, length) = text.split_once('/')?;
    let is_mapped = start.contains(':');
    let (start, length) = (address(start)?, length.parse::<u8>().ok()?);
    let length = match is_mapped && start.is_ipv4() {
        true => length.checked_sub(96)?,
        false => length,
    };
    IpNet::new(start, length).ok()
}

#[cfg(test)]
mod tests;
