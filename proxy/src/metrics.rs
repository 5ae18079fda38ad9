//! Metrics, with kube-proxy's names where they mean the same, and the agent's health.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Labelled;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use chainwright::iptables::Family;
use chainwright_kube::service::DeletedFlows;

use crate::objects::Kind;
use crate::proxy::Outcome;

/// Longest time that a change may wait before the agent counts as unhealthy: kube-proxy's two periods of
/// 30 s.
const TOO_LONG: Duration = Duration::from_secs(60);

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    syncs: Histogram,
    whole_syncs: Histogram,
    partial_syncs: Histogram,
    programming: Histogram,
    last_sync: Gauge<f64, AtomicU64>,
    last_queued: Gauge<f64, AtomicU64>,
    failures: Counter,
    service_changes: Counter,
    endpoint_changes: Counter,
    services_pending: Gauge,
    endpoints_pending: Gauge,
    services: Gauge,
    transactions: Counter,
    skipped: Gauge,
    conflicts: Gauge,
    deletion_seconds: Labelled<FamilyLabel, Histogram>,
    deleted_flows: Labelled<FamilyLabel, Counter>,
    flushes: Labelled<FamilyLabel, Counter>,
    deletion_failures: Counter,
    health: Mutex<Health>,
}

/// The label `ip_family`, with kube-proxy's values.
type FamilyLabel = [(&'static str, &'static str); 1];

const fn family_label(family: Family) -> FamilyLabel {
    match family {
        Family::Ipv4 => [("ip_family", "IPv4")],
        Family::Ipv6 => [("ip_family", "IPv6")],
    }
}

/// Returns a histogram with kube-proxy's buckets, and six below them: a sync of one change takes some hundred
/// microseconds.
fn duration() -> Histogram {
    Histogram::new(exponential_buckets(0.001 / 64.0, 2.0, 21))
}

#[derive(Debug, Default)]
struct Health {
    /// Whether all objects have been listed once: before that, no change waits for a sync.
    is_listed: bool,
    last_sync: Option<SystemTime>,
    waiting_since: Option<Instant>,
    is_going: bool,
}

/// The agent's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HealthState {
    /// The time at which a sync last succeeded.
    pub(crate) last_sync: Option<SystemTime>,
    /// Whether no change has waited too long. Also true while the agent starts.
    pub(crate) is_live: bool,
    /// Whether load balancers may send to the node: it is neither being deleted nor about to be.
    pub(crate) is_eligible: bool,
}

impl HealthState {
    /// Returns `true` if the node serves: services were written to the kernel, and are up to date.
    pub(crate) const fn is_healthy(self) -> bool {
        self.is_live && self.last_sync.is_some()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let health = &self.health;
        f.debug_struct("Metrics")
            .field("health", health)
            .finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let steps = |from: u32, by: usize, to: u32| (from..to).step_by(by).map(f64::from);
        let programming = [0.25, 0.5].into_iter().chain(steps(1, 1, 60));
        let programming = programming
            .chain(steps(60, 5, 120))
            .chain(steps(120, 30, 301));
        let metrics = Self {
            registry: Registry::default(),
            syncs: duration(),
            whole_syncs: duration(),
            partial_syncs: duration(),
            programming: Histogram::new(programming),
            last_sync: Gauge::default(),
            last_queued: Gauge::default(),
            failures: Counter::default(),
            service_changes: Counter::default(),
            endpoint_changes: Counter::default(),
            services_pending: Gauge::default(),
            endpoints_pending: Gauge::default(),
            services: Gauge::default(),
            transactions: Counter::default(),
            skipped: Gauge::default(),
            conflicts: Gauge::default(),
            deletion_seconds: Labelled::new_with_constructor(duration),
            deleted_flows: Labelled::default(),
            flushes: Labelled::default(),
            deletion_failures: Counter::default(),
            health: Mutex::default(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let seconds = || Unit::Seconds;
        let kube = self.registry.sub_registry_with_prefix("kubeproxy");
        let mut histogram = |name: &str, help: &str, metric: &Histogram| {
            kube.register_with_unit(name, help, seconds(), metric.clone());
        };
        histogram(
            "sync_proxy_rules_duration",
            "Duration of syncs",
            &self.syncs,
        );
        histogram(
            "sync_full_proxy_rules_duration",
            "Duration of full syncs",
            &self.whole_syncs,
        );
        histogram(
            "sync_partial_proxy_rules_duration",
            "Duration of partial syncs",
            &self.partial_syncs,
        );
        histogram(
            "network_programming_duration",
            "Time from the change of a pod or service to its sync",
            &self.programming,
        );
        kube.register_with_unit(
            "sync_proxy_rules_last_timestamp",
            "Time of the last successful sync",
            seconds(),
            self.last_sync.clone(),
        );
        kube.register_with_unit(
            "sync_proxy_rules_last_queued_timestamp",
            "Time when a sync was last requested",
            seconds(),
            self.last_queued.clone(),
        );
        for (name, help, metric) in [
            (
                "sync_proxy_rules_nftables_sync_failures",
                "Failed syncs",
                &self.failures,
            ),
            (
                "sync_proxy_rules_service_changes",
                "Changes of services",
                &self.service_changes,
            ),
            (
                "sync_proxy_rules_endpoint_changes",
                "Changes of endpoint slices",
                &self.endpoint_changes,
            ),
        ] {
            kube.register(name, help, metric.clone());
        }
        for (name, help, metric) in [
            (
                "sync_proxy_rules_service_changes_pending",
                "Changes of services that are not synced yet",
                &self.services_pending,
            ),
            (
                "sync_proxy_rules_endpoint_changes_pending",
                "Changes of endpoint slices that are not synced yet",
                &self.endpoints_pending,
            ),
        ] {
            kube.register(name, help, metric.clone());
        }
        kube.register_with_unit(
            "conntrack_reconciler_sync_duration",
            "Duration of deleting stale UDP connections after a sync",
            seconds(),
            self.deletion_seconds.clone(),
        );
        kube.register(
            "conntrack_reconciler_deleted_entries",
            "Deleted connections, except those that the kernel flushed",
            self.deleted_flows.clone(),
        );
        let own = self.registry.sub_registry_with_prefix("chainwright_proxy");
        own.register(
            "conntrack_flushes",
            "Flushes of connections by the kernel, which does not report the number of connections",
            self.flushes.clone(),
        );
        own.register(
            "conntrack_failures",
            "Failed deletions of connections",
            self.deletion_failures.clone(),
        );
        own.register("services", "Number of services", self.services.clone());
        own.register(
            "transactions",
            "Transactions of all syncs",
            self.transactions.clone(),
        );
        own.register(
            "services_rejected",
            "Services rejected by the kernel",
            self.skipped.clone(),
        );
        own.register(
            "service_address_conflicts",
            "Service addresses and ports that another service already uses",
            self.conflicts.clone(),
        );
        self
    }

    /// Records a change of an object.
    pub(crate) fn changed(&self, kind: Kind) {
        match kind {
            Kind::Service => {
                self.service_changes.inc();
                self.services_pending.inc();
            }
            Kind::Slice => {
                self.endpoint_changes.inc();
                self.endpoints_pending.inc();
            }
            Kind::Node => {}
        }
        self.last_queued.set(seconds(SystemTime::now()));
        let mut health = self.health();
        if health.is_listed {
            health.waiting_since.get_or_insert_with(Instant::now);
        }
    }

    /// Records that all objects have been listed once: from here on a sync is due.
    pub(crate) fn listed(&self) {
        let mut health = self.health();
        health.is_listed = true;
        health.waiting_since.get_or_insert_with(Instant::now);
    }

    /// Records whether load balancers may send to the node.
    pub(crate) fn node_is_eligible(&self, yes: bool) {
        self.health().is_going = !yes;
    }

    /// Records a successful sync, and the times that triggered its changes.
    pub(crate) fn synced(
        &self,
        took: Duration,
        outcome: &Outcome,
        services: usize,
        triggered: impl IntoIterator<Item = SystemTime>,
    ) {
        let took = took.as_secs_f64();
        self.syncs.observe(took);
        match outcome.whole {
            true => self.whole_syncs.observe(took),
            false => self.partial_syncs.observe(took),
        }
        let now = SystemTime::now();
        for at in triggered {
            // A time in the future comes from a clock that is ahead of this one.
            if let Ok(since) = now.duration_since(at) {
                self.programming.observe(since.as_secs_f64());
            }
        }
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.services.set(count(services));
        self.skipped.set(count(outcome.refused));
        self.conflicts.set(count(outcome.all_conflicts));
        self.transactions
            .inc_by(u64::try_from(outcome.transactions).unwrap_or(u64::MAX));
        self.services_pending.set(0);
        self.endpoints_pending.set(0);
        self.last_sync.set(seconds(now));
        let mut health = self.health();
        health.last_sync = Some(now);
        health.waiting_since = None;
    }

    /// Records a failed sync.
    pub(crate) fn failed(&self) {
        self.failures.inc();
    }

    /// Records a deletion of stale connections.
    pub(crate) fn stale_deleted(
        &self,
        family: Family,
        took: Duration,
        deleted_flows: DeletedFlows,
    ) {
        let of = family_label(family);
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        self.deletion_seconds
            .get_or_create(&of)
            .observe(took.as_secs_f64());
        let deleted = number(deleted_flows.listed.deleted);
        self.deleted_flows.get_or_create(&of).inc_by(deleted);
        self.flushes
            .get_or_create(&of)
            .inc_by(number(deleted_flows.flushes));
    }

    /// Records a failed deletion of stale connections.
    pub(crate) fn stale_deletion_failed(&self) {
        self.deletion_failures.inc();
    }

    /// Returns the agent's health.
    pub(crate) fn health_state(&self) -> HealthState {
        let health = self.health();
        let waits = health
            .waiting_since
            .is_some_and(|since| since.elapsed() > TOO_LONG);
        HealthState {
            last_sync: health.last_sync,
            is_live: !waits,
            is_eligible: !health.is_going,
        }
    }

    /// Pretends that pending changes have waited this long.
    #[cfg(test)]
    pub(crate) fn wait_since(&self, time: Duration) {
        let mut health = self.health();
        if health.waiting_since.is_some() {
            health.waiting_since = Instant::now().checked_sub(time);
        }
    }

    /// Formats all metrics as OpenMetrics text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut to = String::new();
        text::encode(&mut to, &self.registry)?;
        Ok(to)
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
