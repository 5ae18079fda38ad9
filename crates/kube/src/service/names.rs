//! The names that kube-proxy gives to the chains, sets and rules of a service port. They contain a hash of the port's
//! identity, so that they are the same after a restart and on every node.
//!
//! | form | contains | used by |
//! |---|---|---|
//! | `KUBE-SVC-XPGD46QRK7WJZT7O` | 16 characters of the hash of `ns1/svc1:p80tcp` | iptables |
//! | `service-ULMVA6XW-ns1/svc1/tcp/p80` | 8 characters of the hash of `ns1/svc1/tcp/p80`, and that itself | nftables |
//!
//! Source: `pkg/proxy/iptables/proxier.go`, `pkg/proxy/nftables/proxier.go` of Kubernetes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::model::{ObjectName, Protocol};

/// Identifies a port of a service; a proxy's rules refer to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName {
    /// The service.
    pub service: ObjectName,
    /// The port's name; empty if it has none.
    pub port: Arc<str>,
    /// The port's protocol.
    pub protocol: Protocol,
}

/// Formats as `namespace/name:port`, without the colon if the port has no name, as in kube-proxy's comments.
impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.fmt(f)?;
        match self.port.is_empty() {
            true => Ok(()),
            false => write!(f, ":{}", self.port),
        }
    }
}

/// The kinds of kube-proxy's iptables chains of a service port, by the prefixes of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChainKind {
    /// `KUBE-SVC-`: to any endpoint.
    Service,
    /// `KUBE-SVL-`: to an endpoint on this node.
    Local,
    /// `KUBE-EXT-`: traffic from outside.
    External,
    /// `KUBE-FW-`: restricts the clients of the load balancer.
    Firewall,
    /// `KUBE-SEP-`: one endpoint.
    Endpoint,
}

impl ChainKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Service,
        Self::Local,
        Self::External,
        Self::Firewall,
        Self::Endpoint,
    ];

    /// Returns the prefix of the chains' names.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Service => "KUBE-SVC-",
            Self::Local => "KUBE-SVL-",
            Self::External => "KUBE-EXT-",
            Self::Firewall => "KUBE-FW-",
            Self::Endpoint => "KUBE-SEP-",
        }
    }
}

impl PortName {
    /// Returns the name of a chain in iptables: a prefix and 16 characters of a hash.
    #[must_use]
    pub fn iptables_chain(&self, kind: ChainKind) -> String {
        let protocol = self.protocol;
        named(kind.prefix(), &hash(format_args!("{self}{protocol}")), 16)
    }

    /// Returns the name of an endpoint's chain in iptables.
    #[must_use]
    pub fn iptables_endpoint_chain(&self, endpoint: SocketAddr) -> String {
        let protocol = self.protocol;
        let hashed = hash(format_args!("{self}{protocol}{endpoint}"));
        named(ChainKind::Endpoint.prefix(), &hashed, 16)
    }

    /// Returns the name of a chain or set in nftables: a prefix such as `service`, eight characters of a hash, and the
    /// port's identity.
    #[must_use]
    pub fn nftables_name(&self, prefix: &str) -> String {
        self.nftables(prefix, format_args!(""))
    }

    /// Returns the name of an endpoint's chain or set in nftables.
    #[must_use]
    pub fn nftables_endpoint_name(&self, prefix: &str, endpoint: SocketAddr) -> String {
        let (address, port) = (endpoint.ip(), endpoint.port());
        // A colon would end the name in nft's language.
        let address = address.to_string().replace(':', ".");
        self.nftables(prefix, format_args!("__{address}/{port}"))
    }

    fn nftables(&self, prefix: &str, endpoint: fmt::Arguments<'_>) -> String {
        /// A name may have 255 bytes; kube-proxy leaves some room.
        const MAX_LENGTH: usize = 240;
        let Self {
            service,
            port,
            protocol,
        } = self;
        let name = format!("{service}/{protocol}/{port}{endpoint}");
        let mut named = prefix.to_owned();
        named.push_str(&hash(format_args!("{name}"))[..8]);
        named.push('-');
        named.push_str(&name);
        if named.len() > MAX_LENGTH {
            let whole = |end: &usize| named.is_char_boundary(*end);
            let end = (0..=MAX_LENGTH - 3).rev().find(whole);
            named.truncate(end.unwrap_or_default());
            named.push_str("...");
        }
        named
    }
}

fn named(prefix: &str, hash: &str, length: usize) -> String {
    [prefix, &hash[..length]].concat()
}

/// Returns the SHA-256 hash in base 32 (RFC 4648).
fn hash(of: fmt::Arguments<'_>) -> String {
    let mut hasher = Sha256::new();
    let mut text = String::new();
    // Writing to this type cannot fail.
    let _ = fmt::Write::write_fmt(&mut text, of);
    hasher.update(&text);
    data_encoding::BASE32.encode(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(namespace: &str, name: &str, port: &str, protocol: Protocol) -> PortName {
        PortName {
            service: ObjectName::new(namespace, name),
            port: port.into(),
            protocol,
        }
    }

    /// Names from kube-proxy's rulesets, and from its own tests.
    #[test]
    fn names_match_kube_proxy() {
        let svc1 = name("ns1", "svc1", "p80", Protocol::Tcp);
        let endpoint: SocketAddr = "10.180.0.1:80".parse().unwrap();
        assert_eq!(
            svc1.iptables_chain(ChainKind::Service),
            "KUBE-SVC-XPGD46QRK7WJZT7O"
        );
        assert_eq!(
            svc1.iptables_endpoint_chain(endpoint),
            "KUBE-SEP-SXIVWICOYRO3J4NJ"
        );
        assert_eq!(
            svc1.nftables_name("service-"),
            "service-ULMVA6XW-ns1/svc1/tcp/p80"
        );
        assert_eq!(
            svc1.nftables_endpoint_name("endpoint-", endpoint),
            "endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80"
        );
        let kubernetes = name("default", "kubernetes", "https", Protocol::Tcp);
        assert_eq!(
            kubernetes.iptables_chain(ChainKind::Local),
            "KUBE-SVL-NPX46M4PTMTKRN6Y"
        );
        let nginx = name("default", "nginx", "", Protocol::Tcp);
        assert_eq!(
            nginx.iptables_chain(ChainKind::External),
            "KUBE-EXT-2CMXP7HKUVJN7L6M"
        );
        assert_eq!(nginx.to_string(), "default/nginx");
        let dns = name("kube-system", "kube-dns", "dns", Protocol::Udp);
        assert_eq!(
            dns.iptables_chain(ChainKind::Service),
            "KUBE-SVC-TCOU7JCQXEZGVUNU"
        );
        assert_eq!(
            dns.nftables_name("local-"),
            "local-FY5PMXPG-kube-system/kube-dns/udp/dns"
        );
    }

    #[test]
    fn long_names_are_cut() {
        let long = name(&"n".repeat(63), &"s".repeat(200), "port", Protocol::Sctp);
        let name = long.nftables_name("service-");
        assert_eq!(name.len(), 240);
        assert!(name.ends_with("s..."));
    }
}
