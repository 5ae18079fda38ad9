//! What a chain is for.

use bstr::BStr;
use chainwright_kube::explain::{ChainInfo, Role};
use chainwright_trace::owner;

/// Returns what a chain of Kubernetes is for, in words.
fn of_kubernetes(info: &ChainInfo) -> String {
    let of = match &info.port {
        Some(port) => format!("the service {port}"),
        None => "a service".to_owned(),
    };
    match info.role {
        Role::Services => "finds the service of a packet by its address and port".to_owned(),
        Role::NodePorts => "finds the service of a packet by its node port".to_owned(),
        Role::Service => format!("chooses one of the endpoints of {of}"),
        Role::Local => format!("chooses one of the endpoints of {of} on this node"),
        Role::External => format!("handles packets to {of} from outside of the cluster"),
        Role::Firewall => match info.port {
            Some(_) => format!("admits only some sources to the load balancer of {of}"),
            None => "admits only some sources to load balancers".to_owned(),
        },
        Role::Endpoint => match info.endpoint {
            Some(endpoint) => format!("sends packets to {endpoint}, an endpoint of {of}"),
            None => format!("sends packets to one endpoint of {of}"),
        },
        Role::Affinity => format!("remembers the clients of one endpoint of {of}"),
        Role::MarkMasquerade => "marks packets, which are masqueraded later".to_owned(),
        Role::Masquerade => "masquerades marked packets".to_owned(),
        Role::Drop => "drops packets, or marks those to drop".to_owned(),
        Role::NoEndpoints => "refuses packets to services without endpoints".to_owned(),
        Role::ClusterIps => "refuses packets to cluster IPs on ports without a service".to_owned(),
        Role::Forward => "accepts packets to and from services".to_owned(),
        Role::Canary => "exists so that kube-proxy notices if all rules are removed".to_owned(),
        _ => info.to_string(),
    }
}

/// Returns what a chain is for, by its name and a comment of its rules or of a rule that leads to it. Only in tables of
/// kube-proxy, names such as `services` are kube-proxy's.
pub(crate) fn of(table: &BStr, chain: &BStr, comment: Option<&BStr>) -> Option<String> {
    let is_kube = owner(table, chain).is_some_and(|owner| owner.starts_with("kube"));
    match ChainInfo::of(chain, comment).filter(|_| is_kube) {
        Some(info) => Some(of_kubernetes(&info)),
        None => chainwright_trace::explain::purpose(table, chain),
    }
}
