//! Purposes of the chains of firewalls and container networks, by their names.

use bstr::ByteSlice;

/// Begins of chain names, and what the chains are for. A name that ends with `$` is whole.
const CHAINS: [(&str, &str); 62] = [
    (
        "DOCKER-USER$",
        "the administrator's rules for containers, before Docker's own",
    ),
    ("DOCKER-FORWARD$", "Docker's rules for forwarded packets"),
    (
        "DOCKER-CT$",
        "accepts packets of established connections to containers",
    ),
    (
        "DOCKER-BRIDGE$",
        "sends packets for each of Docker's bridges to the rules of its containers",
    ),
    ("DOCKER-INTERNAL$", "isolates Docker's internal networks"),
    (
        "DOCKER-ISOLATION-STAGE-1$",
        "isolates Docker's networks from each other: finds packets from a bridge",
    ),
    (
        "DOCKER-ISOLATION-STAGE-2$",
        "isolates Docker's networks from each other: drops packets to another bridge",
    ),
    ("DOCKER-INGRESS$", "ports that Docker Swarm publishes"),
    ("DOCKER$", "ports that containers publish"),
    ("cali-fw-", "packets from the workload behind one interface"),
    ("cali-tw-", "packets to the workload behind one interface"),
    (
        "cali-from-wl-dispatch",
        "sends packets from workloads to the chain of their interface",
    ),
    (
        "cali-to-wl-dispatch",
        "sends packets to workloads to the chain of their interface",
    ),
    ("cali-wl-to-host$", "packets from workloads to this machine"),
    ("cali-fh-", "packets from outside through one host endpoint"),
    ("cali-th-", "packets to outside through one host endpoint"),
    (
        "cali-from-host-endpoint",
        "sends packets from outside to the chain of their host endpoint",
    ),
    (
        "cali-to-host-endpoint",
        "sends packets to outside to the chain of their host endpoint",
    ),
    ("cali-pi-", "a network policy for incoming packets"),
    ("cali-po-", "a network policy for outgoing packets"),
    ("cali-pri-", "a profile for incoming packets"),
    ("cali-pro-", "a profile for outgoing packets"),
    (
        "cali-nat-outgoing$",
        "masquerades packets from pods to destinations outside of the pool",
    ),
    ("cali-fip-dnat$", "floating addresses, as destinations"),
    ("cali-fip-snat$", "floating addresses, as sources"),
    (
        "cali-cidr-block$",
        "drops packets to service addresses that nothing handles",
    ),
    (
        "cali-rpf-skip$",
        "packets that are exempt from the check of the reverse path",
    ),
    (
        "cali-failsafe-",
        "ports that stay open whatever the policies say",
    ),
    ("cali-INPUT$", "Calico's rules for packets to this machine"),
    (
        "cali-OUTPUT$",
        "Calico's rules for packets from this machine",
    ),
    ("cali-FORWARD$", "Calico's rules for forwarded packets"),
    ("cali-PREROUTING$", "Calico's rules before routing"),
    ("cali-POSTROUTING$", "Calico's rules after routing"),
    (
        "ufw-user-input$",
        "the rules of `ufw allow`, `ufw deny` and so on for incoming packets",
    ),
    ("ufw-user-output$", "the rules of `ufw … out`"),
    ("ufw-user-forward$", "the rules of `ufw route`"),
    (
        "ufw-user-limit-accept$",
        "accepts packets that `ufw limit` permits",
    ),
    ("ufw-user-limit$", "refuses packets that exceed `ufw limit`"),
    ("ufw-user-logging-", "logs packets of rules with `log`"),
    (
        "ufw-before-logging-",
        "logs packets before the other rules, at a high log level",
    ),
    (
        "ufw-before-",
        "ufw's rules before those of the user, from before.rules",
    ),
    ("ufw-after-logging-", "logs packets that no rule decided on"),
    (
        "ufw-after-",
        "ufw's rules after those of the user, from after.rules",
    ),
    (
        "ufw-reject-",
        "rejects packets, if that is the default policy",
    ),
    (
        "ufw-track-",
        "accepts new connections, if that is the default policy",
    ),
    (
        "ufw-skip-to-policy-",
        "applies the default policy without logging",
    ),
    (
        "ufw-not-local$",
        "drops packets that are not for this machine",
    ),
    ("ufw-logging-allow$", "logs accepted packets"),
    ("ufw-logging-deny$", "logs refused packets"),
    (
        "INPUT_ZONES",
        "firewalld: chooses the zone of incoming packets by source and interface",
    ),
    (
        "FORWARD_IN_ZONES",
        "firewalld: chooses the zone from which packets are forwarded",
    ),
    (
        "FORWARD_OUT_ZONES",
        "firewalld: chooses the zone to which packets are forwarded",
    ),
    (
        "PREROUTING_ZONES",
        "firewalld: chooses the zone before routing",
    ),
    (
        "POSTROUTING_ZONES",
        "firewalld: chooses the zone after routing",
    ),
    ("CNI-HOSTPORT-DNAT$", "host ports of pods"),
    (
        "CNI-HOSTPORT-SETMARK$",
        "marks packets to host ports for masquerading",
    ),
    (
        "CNI-HOSTPORT-MASQ$",
        "masquerades marked packets to host ports",
    ),
    ("CNI-DN-", "the host ports of one pod"),
    ("CNI-ADMIN$", "the administrator's rules for pods"),
    ("CNI-FORWARD$", "accepts packets to and from pods"),
    ("f2b-", "addresses that fail2ban has banned"),
    ("LIBVIRT_", "libvirt's rules for virtual networks"),
];

/// Begins of chain names in firewalld's own table.
const FIREWALLD: [(&str, &str); 16] = [
    (
        "filter_INPUT_POLICIES",
        "policies for packets to this machine",
    ),
    ("filter_FORWARD_POLICIES", "policies for forwarded packets"),
    (
        "filter_OUTPUT_POLICIES",
        "policies for packets from this machine",
    ),
    ("filter_INPUT", "packets to this machine"),
    ("filter_FORWARD", "forwarded packets"),
    ("filter_OUTPUT", "packets from this machine"),
    ("filter_IN_", "packets to this machine from one zone"),
    ("filter_FWD_", "forwarded packets of one zone"),
    ("filter_FWDI_", "packets that are forwarded from one zone"),
    ("filter_FWDO_", "packets that are forwarded to one zone"),
    (
        "filter_PREROUTING",
        "packets before routing, with the check of the reverse path",
    ),
    ("nat_PREROUTING", "translation of destinations"),
    ("nat_POSTROUTING", "translation of sources"),
    ("nat_PRE_", "port forwarding of one zone"),
    ("nat_POST_", "masquerading of one zone"),
    ("mangle_PRE", "marks for port forwarding"),
];

/// Ends of names of firewalld's chains for a zone or policy.
const PARTS: [(&str, &str); 5] = [
    ("_pre", "the rules with a negative priority"),
    ("_log", "the rules that log"),
    ("_deny", "the rules that refuse"),
    ("_allow", "the rules that accept"),
    ("_post", "the rules with a positive priority"),
];

/// Returns what a chain is for, guessed by the names of the table and the chain: chains of Docker, Calico, firewalld,
/// ufw, CNI plugins, fail2ban and libvirt.
///
/// ```
/// use chainwright_trace::explain::purpose;
///
/// assert_eq!(purpose("filter", "cali-tw-cali123").unwrap(), "packets to the workload behind one interface");
/// assert_eq!(
///     purpose("firewalld", "filter_IN_public_allow").unwrap(),
///     "packets to this machine from one zone: the rules that accept"
/// );
/// assert_eq!(purpose("filter", "INPUT"), None);
/// ```
#[must_use]
pub fn purpose(table: impl AsRef<[u8]>, chain: impl AsRef<[u8]>) -> Option<String> {
    let (table, chain) = (table.as_ref(), chain.as_ref());
    let is = |(name, _): &&(&str, &str)| match name.strip_suffix('$') {
        Some(whole) => chain == whole.as_bytes(),
        None => chain.starts_with_str(name),
    };
    if table != b"firewalld" {
        // iptables' tables and ufw's IPv6 chains.
        let of_six = chain.strip_prefix(b"ufw6-");
        if let Some(rest) = of_six {
            return purpose(table, [b"ufw-", rest].concat());
        }
        let found = CHAINS.iter().find(is);
        return found.map(|(_, words)| (*words).to_owned());
    }
    let (_, words) = FIREWALLD.iter().find(is)?;
    let part = PARTS.iter().find(|(end, _)| chain.ends_with_str(end));
    Some(match part {
        Some((_, part)) => format!("{words}: {part}"),
        None => (*words).to_owned(),
    })
}
