//! The agent: receives changes and applies them to the proxy.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use chainwright_kube::service::{Config, Node, ObjectName, Services};
use tokio::sync::watch;
use tracing::{debug, error, info, warn};

use crate::metrics::Metrics;
use crate::node_ports::{self, Ports};
use crate::objects::{Key, Kind, NodeObject, Object};
use crate::proxy::{Open, Proxy, ProxyError};

/// A message from a source of objects.
#[derive(Debug)]
pub(crate) enum Change {
    /// An object has changed to this; `None` if it was deleted.
    Object(Key, Option<Object>),
    /// All existing objects have been sent: the first sync waits for this.
    Complete,
    /// The agent must stop.
    Stop,
}

/// First and longest wait before a failed sync is retried; the wait doubles after each failure.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Pause after which pending changes are synced; the objects of a file arrive one by one, and so do those of an event.
const QUIET: Duration = Duration::from_millis(2);
/// Longest delay of a sync while changes keep arriving.
const MAX_DELAY: Duration = Duration::from_millis(100);

/// Maximum time for which the first sync of a cluster waits for the Node object. Meanwhile the kernel's tables from an
/// earlier process stay in use, with the node as that process knew it.
pub(crate) const NODE_WAIT: Duration = Duration::from_secs(30);

/// Returns the configuration for a node, or for one that is not known yet.
pub(crate) type Configure = Box<dyn Fn(Option<&Node>) -> Result<Config, String> + Send>;

/// Keeps a proxy in line with its sources.
pub(crate) struct Agent {
    open: Open,
    configure: Configure,
    config: Config,
    /// The last known state of the node, even after the Node object was deleted.
    node: Option<NodeObject>,
    /// Whether the Node object was deleted or registered again since.
    node_is_gone: bool,
    /// Until when the first sync waits for the Node object.
    node_deadline: Option<Instant>,
    node_wait: Duration,
    proxy: Option<Box<dyn Proxy>>,
    services: Services,
    metrics: Arc<Metrics>,
    is_complete: bool,
    /// Whether a sync is due.
    is_due: bool,
    retry: Option<Duration>,
    /// Interval between complete syncs.
    period: Duration,
    /// Time of the last complete sync.
    last_check: Instant,
    triggered: Vec<SystemTime>,
    /// The services with a health check node port.
    checked: BTreeSet<ObjectName>,
    health_ports: watch::Sender<Ports>,
}

impl Agent {
    pub(crate) fn new(
        open: Open,
        configure: Configure,
        period: Duration,
        metrics: Arc<Metrics>,
    ) -> Result<Self, String> {
        Ok(Self {
            config: configure(None)?,
            open,
            configure,
            node: None,
            node_is_gone: false,
            node_deadline: None,
            node_wait: Duration::ZERO,
            proxy: None,
            services: Services::new(),
            metrics,
            is_complete: false,
            is_due: true,
            retry: None,
            period,
            last_check: Instant::now(),
            triggered: Vec::new(),
            checked: BTreeSet::new(),
            health_ports: watch::Sender::default(),
        })
    }

    /// Makes the first sync wait for the Node object, for `at_most`.
    pub(crate) const fn wait_for_node(&mut self, at_most: Duration) {
        self.node_wait = at_most;
    }

    /// Returns the health check node ports as of the last sync.
    pub(crate) fn health_ports(&self) -> watch::Receiver<Ports> {
        self.health_ports.subscribe()
    }

    /// Runs until it receives [`Change::Stop`], or all sources are gone. The kernel's tables stay.
    pub(crate) fn run(&mut self, changes: &Receiver<Change>) {
        loop {
            let mut wait = self.retry.unwrap_or(self.period);
            if let Some(deadline) = self.node_deadline {
                wait = wait.min(deadline.saturating_duration_since(Instant::now()));
            }
            match changes.recv_timeout(wait) {
                Ok(change) => {
                    // One sync for all changes that arrive together.
                    let latest = Instant::now() + MAX_DELAY;
                    let mut next = Some(change);
                    while let Some(change) = next {
                        if !self.take(change) {
                            return;
                        }
                        let left = latest.saturating_duration_since(Instant::now());
                        next = changes.recv_timeout(QUIET.min(left)).ok();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.last_check.elapsed() >= self.period {
                self.is_due = true;
                // From here on the state counts as unknown, even if the sync fails.
                self.last_check = Instant::now();
                if let Some(proxy) = &mut self.proxy {
                    proxy.require_full_sync();
                }
            }
            if self.is_complete && !self.waits_for_node() && (self.is_due || self.retry.is_some()) {
                self.sync();
            }
        }
    }

    fn waits_for_node(&mut self) -> bool {
        let Some(deadline) = self.node_deadline else {
            return false;
        };
        let is_late = Instant::now() >= deadline;
        if self.node.is_none() && is_late {
            let node = &*self.config.node;
            warn!(
                node,
                "Node object not found: services are proxied without the node's zone, addresses and pod networks"
            );
        }
        if self.node.is_some() || is_late {
            self.node_deadline = None;
        }
        self.node_deadline.is_some()
    }

    /// Processes a change. Returns whether to continue.
    fn take(&mut self, change: Change) -> bool {
        let (key, object) = match change {
            Change::Object(key, object) => (key, object),
            Change::Complete => {
                self.is_complete = true;
                self.metrics.listed();
                if self.node.is_none() && !self.node_wait.is_zero() {
                    self.node_deadline = Some(Instant::now() + self.node_wait);
                }
                return true;
            }
            Change::Stop => return false,
        };
        let (kind, name) = key;
        debug!(?kind, %name, there = object.is_some(), "changed");
        match object {
            Some(Object::Service(Some(service))) => {
                match service.health_check_node_port {
                    Some(_) => self.checked.insert(name),
                    None => self.checked.remove(&name),
                };
                self.services.set_service(*service);
            }
            Some(Object::Slice(Some(slice), triggered)) => {
                self.services.set_slice(slice);
                self.triggered.extend(triggered);
            }
            Some(Object::Node(node)) => {
                if node.node.name == self.config.node {
                    self.take_node(node);
                }
                return true;
            }
            Some(Object::Service(None) | Object::Slice(None, _)) | None => match kind {
                Kind::Service => {
                    self.checked.remove(&name);
                    self.services.remove_service(&name);
                }
                Kind::Slice => self.services.remove_slice(&name),
                Kind::Node => {
                    if name.name == self.config.node && self.node.is_some() {
                        warn!("Node object deleted: the last known node is kept");
                        self.node_is_gone = true;
                    }
                    return true;
                }
            },
        }
        self.metrics.changed(kind);
        self.is_due = true;
        true
    }

    /// Updates the node. A node that was registered again gets its fields only after a while: until then missing fields
    /// keep their previous values.
    fn take_node(&mut self, mut new: NodeObject) {
        if let Some(known) = &mut self.node {
            if new.node.addresses.is_empty() {
                new.node.addresses = std::mem::take(&mut known.node.addresses);
            }
            if new.node.pod_networks.is_empty() {
                new.node.pod_networks = std::mem::take(&mut known.node.pod_networks);
            }
            self.node_is_gone |= new.uid != known.uid;
            if new.node.zone.is_none() && self.node_is_gone {
                new.node.zone = known.node.zone.take();
                // The next object without a zone must still be compared with this one.
                new.uid.clone_from(&known.uid);
            } else {
                self.node_is_gone = false;
            }
        }
        self.metrics.node_is_eligible(new.is_eligible);
        self.configure(&new.node);
        self.node = Some(new);
    }

    /// Applies the configuration for a changed node.
    fn configure(&mut self, node: &Node) {
        match (self.configure)(Some(node)) {
            Ok(config) if config == self.config => {}
            Ok(config) => {
                info!(zone = config.zone.as_deref(), addresses = ?config.node_addresses, "node changed");
                self.config = config;
                let followed = self.proxy.as_mut().map(|p| p.set_config(&self.config));
                match followed {
                    None | Some(Ok(true)) => {}
                    // A new proxy takes over this one's tables.
                    Some(Ok(false)) => self.proxy = None,
                    Some(Err(error)) => {
                        warn!(error = %with_sources(&*error), "restarting the proxy");
                        self.proxy = None;
                    }
                }
                self.is_due = true;
                self.metrics.changed(Kind::Node);
            }
            Err(error) => {
                warn!(%error, "cannot apply the node change: the configuration is unchanged")
            }
        }
    }

    fn sync(&mut self) {
        let start = Instant::now();
        let synced = self.try_sync();
        // Even after a failure, perhaps in one family: load balancers must not send to endpoints that are gone.
        let checked = self.checked.iter();
        let ports = node_ports::ports(checked, &self.services, &self.config.node);
        self.health_ports.send_if_modified(|known| {
            let is_new = *known != ports;
            *known = ports;
            is_new
        });
        match synced {
            Ok(outcome) => {
                let took = start.elapsed();
                let count = self.services.len();
                self.metrics
                    .synced(took, &outcome, count, self.triggered.drain(..));
                for (service, why) in &outcome.skipped {
                    warn!(%service, %why, "service rejected by the kernel");
                }
                for conflict in &outcome.conflicts {
                    warn!(%conflict, "address and port already belong to another service");
                }
                info!(
                    changed = outcome.services,
                    services = count,
                    transactions = outcome.transactions,
                    whole = outcome.whole,
                    ?took,
                    "synced"
                );
                if outcome.whole {
                    self.last_check = Instant::now();
                }
                self.is_due = false;
                self.retry = None;
            }
            Err(error) => {
                let (least, most) = RETRY;
                let wait = self.retry.map_or(least, |wait| (wait * 2).min(most));
                self.retry = Some(wait);
                self.metrics.failed();
                error!(error = %with_sources(&*error), again_in = ?wait, "sync failed");
            }
        }
    }

    fn try_sync(&mut self) -> Result<crate::proxy::Outcome, ProxyError> {
        let proxy = match &mut self.proxy {
            Some(proxy) => proxy,
            None => self.proxy.insert((self.open)(self.config.clone())?),
        };
        proxy.sync(&mut self.services)
    }
}

/// Formats an error with all of its causes.
pub(crate) fn with_sources(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors already contain their cause.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{self, Sender};
    use std::thread::{self, JoinHandle};

    use chainwright::iptables::Family;

    use super::*;
    use crate::manifests;
    use crate::proxy::Outcome;

    /// A call to the fake proxy: services with their numbers of endpoints, and the zone.
    type SyncedState = (Vec<(String, usize)>, Option<String>);

    struct Fake {
        config: Config,
        states: Sender<SyncedState>,
        fails: Arc<Mutex<usize>>,
    }

    impl Proxy for Fake {
        fn sync(&mut self, services: &mut Services) -> Result<Outcome, ProxyError> {
            let mut fails = self.fails.lock().unwrap();
            if *fails > 0 {
                *fails -= 1;
                return Err("the kernel is busy".into());
            }
            let changed = services.take_changed().count();
            let mut all: Vec<_> = services
                .names()
                .map(|name| {
                    let ports = services.resolve(name, Family::Ipv4, &self.config);
                    let endpoints = ports.first().map_or(0, |p| p.backends.cluster.len());
                    (name.to_string(), endpoints)
                })
                .collect();
            all.sort();
            let zone = self.config.zone.as_deref().map(str::to_owned);
            self.states.send((all, zone)).unwrap();
            Ok(Outcome {
                services: changed,
                skipped: vec![(ObjectName::new("ns", "bad"), "EINVAL".to_owned())],
                refused: 3,
                ..Outcome::default()
            })
        }

        fn set_config(&mut self, config: &Config) -> Result<bool, ProxyError> {
            self.config.clone_from(config);
            Ok(true)
        }

        fn require_full_sync(&mut self) {}
    }

    fn node(zone: Option<&str>, uid: &str, is_eligible: bool) -> Object {
        Object::Node(NodeObject {
            node: Node {
                name: "node1".into(),
                zone: zone.map(Into::into),
                addresses: Vec::new(),
                pod_networks: Vec::new(),
            },
            uid: Some(uid.to_owned()),
            is_eligible,
        })
    }

    struct Running {
        states: Receiver<SyncedState>,
        to: Sender<Change>,
        metrics: Arc<Metrics>,
        thread: JoinHandle<()>,
    }

    fn start(fails: usize) -> Running {
        start_with(fails, Duration::ZERO)
    }

    fn start_with(fails: usize, node_wait: Duration) -> Running {
        let (state_sender, states) = mpsc::channel();
        let (to, from) = mpsc::channel();
        let metrics = Arc::new(Metrics::new());
        let fails = Arc::new(Mutex::new(fails));
        let open: Open = Box::new(move |config| {
            Ok(Box::new(Fake {
                config,
                states: state_sender.clone(),
                fails: Arc::clone(&fails),
            }))
        });
        let configure: Configure = Box::new(|node| {
            let mut config = Config::new("node1");
            config.zone = node.and_then(|node| node.zone.clone());
            Ok(config)
        });
        let period = Duration::from_secs(3600);
        let mut agent = Agent::new(open, configure, period, Arc::clone(&metrics)).unwrap();
        agent.wait_for_node(node_wait);
        let thread = thread::spawn(move || agent.run(&from));
        Running {
            states,
            to,
            metrics,
            thread,
        }
    }

    impl Running {
        /// Waits until the proxy's last state is this one; earlier states do not matter.
        fn until(&self, services: &[(&str, usize)], zone: Option<&str>) {
            let end = Instant::now() + Duration::from_secs(20);
            loop {
                let left = end.saturating_duration_since(Instant::now());
                let (states, in_zone) = self.states.recv_timeout(left).unwrap();
                let states: Vec<_> = states.iter().map(|(name, n)| (&**name, *n)).collect();
                if states == services && in_zone.as_deref() == zone {
                    return;
                }
            }
        }
    }

    #[test]
    fn follows_a_manifest_directory() {
        let dir = tempfile::tempdir().unwrap();
        // Atomically: a partly written file would be read in that state.
        let write = |name: &str, text: &str| {
            let temporary = dir.path().join(".new");
            std::fs::write(&temporary, text).unwrap();
            std::fs::rename(&temporary, dir.path().join(name)).unwrap();
        };
        write(
            "web.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: { name: web }\n\
             spec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }\n",
        );
        let agent = start(0);
        let watch = manifests::watch(dir.path().to_owned(), agent.to.clone()).unwrap();
        agent.until(&[("default/web", 0)], None);
        let slice = |addresses: &[&str]| {
            let endpoints = addresses.iter().map(|a| format!("- addresses: [{a}]\n"));
            let head = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n\
                metadata: { name: s, labels: { kubernetes.io/service-name: web } }\n\
                ports: [{ port: 8080 }]\nendpoints:\n";
            head.to_owned() + &endpoints.collect::<String>()
        };
        write("slice.yaml", &slice(&["10.244.0.1", "10.244.0.2"]));
        agent.until(&[("default/web", 2)], None);
        // A file that cannot be parsed changes nothing; the other files are still followed.
        write("slice.yaml", &slice(&["10.244.0.1", "10.244.0"]));
        write(
            "node.yaml",
            "apiVersion: v1\nkind: Node\nmetadata: { name: node1, labels: { topology.kubernetes.io/zone: a } }\n",
        );
        agent.until(&[("default/web", 2)], Some("a"));
        write("slice.yaml", &slice(&["10.244.0.1"]));
        agent.until(&[("default/web", 1)], Some("a"));
        std::fs::remove_file(dir.path().join("web.yaml")).unwrap();
        agent.until(&[], Some("a"));
        // The proxy reports before the agent has counted.
        agent.to.send(Change::Stop).unwrap();
        agent.thread.join().unwrap();
        assert!(agent.metrics.health_state().is_healthy());
        let text = agent.metrics.text().unwrap();
        for line in [
            "kubeproxy_sync_proxy_rules_endpoint_changes_total 2",
            "kubeproxy_sync_proxy_rules_service_changes_total 2",
            "kubeproxy_sync_proxy_rules_endpoint_changes_pending 0",
            "chainwright_proxy_services 0",
            "chainwright_proxy_services_rejected 3",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
        }
        assert!(text.contains("kubeproxy_sync_proxy_rules_duration_seconds_bucket{le=\"0.001\"}"));
        drop(watch);
    }

    impl Running {
        fn node(&self, to: Option<Object>) {
            let key = (Kind::Node, ObjectName::new("default", "node1"));
            self.to.send(Change::Object(key, to)).unwrap();
        }

        /// Adds a service of this name, and waits until the proxy has these services and this zone.
        fn service(&self, name: &str, all: &[&str], zone: Option<&str>) {
            let object = Object::Service(Some(Box::new(chainwright_kube::service::Service::new(
                ObjectName::new("default", name),
                [[10, 96, 0, 1].into()],
            ))));
            let key = (Kind::Service, ObjectName::new("default", name));
            self.to.send(Change::Object(key, Some(object))).unwrap();
            let all: Vec<_> = all.iter().map(|name| (*name, 0)).collect();
            self.until(&all, zone);
        }
    }

    /// The node's known fields are kept when its Node object is deleted, and when it is registered again and lacks some
    /// fields.
    #[test]
    fn deleted_node_keeps_last_state() {
        let agent = start(0);
        agent.node(Some(node(Some("a"), "1", true)));
        agent.to.send(Change::Complete).unwrap();
        agent.service("s1", &["default/s1"], Some("a"));
        assert!(agent.metrics.health_state().is_eligible);
        agent.node(None);
        agent.service("s2", &["default/s1", "default/s2"], Some("a"));
        // The same node, about to be deleted, registered again without a zone, and then with one.
        agent.node(Some(node(None, "2", false)));
        let three = ["default/s1", "default/s2", "default/s3"];
        agent.service("s3", &three, Some("a"));
        assert!(!agent.metrics.health_state().is_eligible);
        agent.node(None);
        agent.node(Some(node(None, "2", true)));
        let three: Vec<_> = three.iter().map(|name| (*name, 0)).collect();
        agent.node(Some(node(Some("b"), "2", true)));
        agent.until(&three, Some("b"));
        // A field removed from an existing node is gone.
        agent.node(Some(node(None, "2", true)));
        agent.until(&three, None);
        // Another node in its place, whose predecessor's deletion was not observed.
        agent.node(Some(node(Some("c"), "2", true)));
        agent.until(&three, Some("c"));
        agent.node(Some(node(None, "3", true)));
        agent.to.send(Change::Stop).unwrap();
        agent.thread.join().unwrap();
        assert!(agent.states.try_recv().is_err());
    }

    #[test]
    fn missing_node_fields_keep_last_values() {
        let configure: Configure = Box::new(|node| {
            let mut config = Config::new("node1");
            if let Some(node) = node {
                config.zone.clone_from(&node.zone);
                config.node_addresses.clone_from(&node.addresses);
                config.service_networks.clone_from(&node.pod_networks);
            }
            Ok(config)
        });
        let open: Open = Box::new(|_| Err("no proxy".into()));
        let mut agent =
            Agent::new(open, configure, Duration::ZERO, Arc::new(Metrics::new())).unwrap();
        let take = |agent: &mut Agent,
                    zone: Option<&str>,
                    addresses: &[&str],
                    networks: &[&str],
                    uid: &str| {
            let Object::Node(mut object) = node(zone, uid, true) else {
                unreachable!("`node` should return a node")
            };
            object.node.addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
            object.node.pod_networks = networks.iter().map(|a| a.parse().unwrap()).collect();
            agent.take_node(object);
            let config = &agent.config;
            (
                config.zone.as_deref().map(str::to_owned),
                config.node_addresses.len(),
                config.service_networks.len(),
            )
        };
        let whole = (Some("a".to_owned()), 2, 1);
        let addresses = ["192.0.2.1", "fd00::1"];
        assert_eq!(
            take(&mut agent, Some("a"), &addresses, &["10.0.0.0/24"], "1"),
            whole
        );
        for uid in ["2", "2", "3"] {
            assert_eq!(take(&mut agent, None, &[], &[], uid), whole, "{uid}");
        }
        assert_eq!(
            take(&mut agent, None, &["192.0.2.1"], &[], "3"),
            (whole.0.clone(), 1, 1)
        );
        assert_eq!(
            take(
                &mut agent,
                Some("b"),
                &[],
                &["10.0.0.0/24", "fd00::/64"],
                "3"
            ),
            (Some("b".to_owned()), 1, 2)
        );
        assert_eq!(take(&mut agent, None, &[], &[], "3"), (None, 1, 2));
    }

    /// A cluster's first sync waits for the Node: the kernel's tables were made for the node's earlier state.
    #[test]
    fn the_first_sync_waits_for_the_node_but_not_forever() {
        let agent = start_with(0, Duration::from_secs(3600));
        agent.to.send(Change::Complete).unwrap();
        assert!(
            agent
                .states
                .recv_timeout(Duration::from_millis(200))
                .is_err()
        );
        assert!(agent.metrics.health_state().is_live);
        agent.node(Some(node(Some("a"), "1", true)));
        agent.until(&[], Some("a"));
        let agent = start_with(0, Duration::from_millis(100));
        agent.to.send(Change::Complete).unwrap();
        agent.until(&[], None);
    }

    #[test]
    fn first_sync_waits_for_all_objects_and_failures_are_retried() {
        let agent = start(2);
        let object = Object::Service(Some(Box::new(chainwright_kube::service::Service::new(
            ObjectName::new("default", "web"),
            [[10, 96, 0, 1].into()],
        ))));
        let key = (Kind::Service, ObjectName::new("default", "web"));
        agent.to.send(Change::Object(key, Some(object))).unwrap();
        assert!(
            agent
                .states
                .recv_timeout(Duration::from_millis(200))
                .is_err()
        );
        assert!(!agent.metrics.health_state().is_healthy());
        agent.to.send(Change::Complete).unwrap();
        agent.until(&[("default/web", 0)], None);
        // The proxy reports before the agent has counted.
        drop(agent.to);
        agent.thread.join().unwrap();
        let text = agent.metrics.text().unwrap();
        let failed = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total 2";
        assert!(text.lines().any(|l| l == failed), "{text}");
        assert!(agent.metrics.health_state().is_healthy());
    }
}
