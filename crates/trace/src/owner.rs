//! Guesses the owner of tables and chains by their names.

use bstr::{BStr, ByteSlice};

/// Names or prefixes of tables that only one program creates.
const TABLES: [(&str, &str); 16] = [
    ("kube-proxy", "kube-proxy"),
    ("kube-services", "kube-proxy (flat layout)"),
    ("firewalld", "firewalld"),
    ("calico", "Calico"),
    ("cilium", "Cilium"),
    ("cni_hostport", "CNI hostport"),
    ("cni_", "CNI plugins"),
    ("docker-bridges", "Docker"),
    ("libvirt_network", "libvirt"),
    ("netavark", "Podman (netavark)"),
    ("azure-npm", "Azure NPM"),
    ("f2b-table", "fail2ban"),
    ("crowdsec", "CrowdSec"),
    ("flannel", "flannel"),
    ("istio", "Istio"),
    ("kindnet", "kindnet"),
];

/// Prefixes of chain names.
const CHAINS: [(&str, &str); 34] = [
    ("KUBE-KUBELET-", "kubelet"),
    ("KUBE-IPTABLES-HINT", "kubelet"),
    ("KUBE-ROUTER-", "kube-router"),
    ("KUBE-POD-FW-", "kube-router"),
    ("KUBE-NWPLCY-", "kube-router"),
    ("KUBE-", "kube-proxy"),
    ("cali-", "Calico"),
    ("cali:", "Calico"),
    ("CILIUM_", "Cilium"),
    ("OLD_CILIUM_", "Cilium"),
    ("DOCKER", "Docker"),
    ("FLANNEL-", "flannel"),
    ("WEAVE", "Weave Net"),
    ("AZURE-NPM", "Azure NPM"),
    ("CNI-HOSTPORT-", "CNI portmap"),
    ("CNI-DN-", "CNI portmap"),
    ("CNI-ISOLATION-", "CNI firewall"),
    ("CNI-FORWARD", "CNI firewall"),
    ("CNI-ADMIN", "CNI firewall"),
    ("CNI-", "CNI plugins"),
    ("NETAVARK", "Podman (netavark)"),
    ("LIBVIRT_", "libvirt"),
    ("ufw-", "ufw"),
    ("ufw6-", "ufw"),
    ("f2b-", "fail2ban"),
    ("fail2ban-", "fail2ban"),
    ("ts-", "Tailscale"),
    ("ISTIO_", "Istio"),
    ("ANTREA-", "Antrea"),
    ("nixos-fw", "NixOS' firewall"),
    ("CROWDSEC", "CrowdSec"),
    ("LXC", "LXC"),
    ("KINDNET", "kindnet"),
    ("shorewall", "Shorewall"),
];

/// Tables that are shared by all iptables users.
const SHARED: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];

/// Returns the program that created a chain, guessed by the names of the table and the chain.
///
/// ```
/// use chainwright_trace::owner;
///
/// assert_eq!(owner("filter", "KUBE-FORWARD"), Some("kube-proxy"));
/// assert_eq!(owner("filter", "FORWARD"), None); // everybody's
/// assert_eq!(owner("firewalld", "filter_FORWARD"), Some("firewalld"));
/// ```
#[must_use]
pub fn owner(table: impl AsRef<[u8]>, chain: impl AsRef<[u8]>) -> Option<&'static str> {
    let (table, chain) = (table.as_ref(), chain.as_ref());
    let begins = |name: &BStr, list: &[(&'static str, &'static str)]| {
        let mut list = list.iter();
        let found = list.find(|(prefix, _)| name.starts_with(prefix.as_bytes()));
        found.map(|(_, owner)| *owner)
    };
    let is_shared = SHARED.iter().any(|name| name.as_bytes() == table);
    let of_table = match is_shared {
        true => None,
        false => begins(table.as_bstr(), &TABLES),
    };
    of_table.or_else(|| begins(chain.as_bstr(), &CHAINS))
}
