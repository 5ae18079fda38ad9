//! Deletes stale connections on a separate thread, so that syncs do not wait for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use chainwright::conntrack::Connection;
use chainwright_kube::service::{DeletedFlows, StaleFlows};
use tracing::{debug, warn};

use crate::agent::with_sources;
use crate::metrics::Metrics;

/// Wait before a failed deletion is retried.
const RETRY: Duration = Duration::from_secs(5);

/// Deletes the entries that arrive, until all senders are gone.
pub(crate) fn run(stale: &Receiver<StaleFlows>, metrics: &Metrics) {
    let mut connection = None;
    let mut waiting: Vec<StaleFlows> = Vec::new();
    loop {
        let next = match waiting.is_empty() {
            true => stale.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => stale.recv_timeout(RETRY),
        };
        match next {
            Ok(flows) => {
                // Handles everything that has arrived together.
                add(&mut waiting, flows);
                stale.try_iter().for_each(|flows| add(&mut waiting, flows));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        waiting.retain(|flows| match delete(&mut connection, flows, metrics) {
            Ok(()) => false,
            Err(error) => {
                let error = with_sources(&error);
                warn!(%error, family = %flows.family(), "UDP connections may still go to removed endpoints");
                metrics.stale_deletion_failed();
                // The socket may be the cause.
                connection = None;
                true
            }
        });
    }
}

/// Keeps one value per family.
fn add(waiting: &mut Vec<StaleFlows>, flows: StaleFlows) {
    let mut rest = Some(flows);
    for one in waiting.iter_mut() {
        rest = rest.and_then(|flows| one.merge(flows));
    }
    waiting.extend(rest);
}

fn delete(
    connection: &mut Option<Connection>,
    flows: &StaleFlows,
    metrics: &Metrics,
) -> Result<(), chainwright::Error> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection::open()?),
    };
    let start = Instant::now();
    let deleted = flows.delete(connection)?;
    let took = start.elapsed();
    metrics.stale_deleted(flows.family(), took, deleted);
    let DeletedFlows {
        listed, flushes, ..
    } = deleted;
    debug!(family = %flows.family(), deleted = listed.deleted, absent = listed.absent, flushes, ?took, "stale connections deleted");
    Ok(())
}

/// Starts [`run`] on a thread in the caller's network namespace.
pub(crate) fn start(
    stale: Receiver<StaleFlows>,
    metrics: Arc<Metrics>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("conntrack".to_owned());
    thread.spawn(move || run(&stale, &metrics))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use chainwright::conntrack::{Entry, Filter, Tuple};
    use chainwright::iptables::Family;
    use chainwright_kube::service::{
        Config, Endpoint, EndpointPort, EndpointSlice, ObjectName, Port, Protocol, Service,
        Services,
    };
    use chainwright_testing::Sandbox;

    use super::*;
    use crate::kernel;
    use crate::options::Mode;

    fn slice(endpoint: u8) -> EndpointSlice {
        EndpointSlice {
            name: ObjectName::new("default", "dns"),
            service: "dns".into(),
            endpoints: vec![Endpoint::new([10, 244, 0, endpoint].into())],
            ports: vec![EndpointPort {
                name: "dns".into(),
                protocol: Protocol::Udp,
                port: Some(53),
            }],
        }
    }

    #[test]
    fn stale_flows_are_deleted_and_counted() {
        let sandbox = Sandbox::new().unwrap();
        sandbox
            .run(|| {
                let metrics = Arc::new(Metrics::new());
                let (to, stale) = mpsc::channel();
                let mut config = Config::new("node1");
                config.families = vec![Family::Ipv4];
                let mut proxy = kernel::open(Mode::Flat, to)(config).unwrap();
                let mut services = Services::new();
                let name = ObjectName::new("default", "dns");
                let service = Service::new(name, [[10, 96, 0, 10].into()]);
                services.set_service(service.with_port(Port::new("dns", Protocol::Udp, 53)));
                services.set_slice(slice(1));
                let outcome = proxy.sync(&mut services).unwrap();
                assert_eq!((outcome.services, outcome.refused), (1, 0));

                let mut conntrack = Connection::open().unwrap();
                for endpoint in [1, 2, 3] {
                    let client = ([10, 9, 0, 1], 4000 + u16::from(endpoint));
                    let minute = Duration::from_secs(60);
                    let to_service = Tuple::udp(client, ([10, 96, 0, 10], 53));
                    let mut entry = Entry::new(to_service, minute);
                    entry.reply = Tuple::udp(([10, 244, 0, endpoint], 53), client);
                    conntrack.create(&entry).unwrap();
                }
                // After a start everything without a serving endpoint: one listing.
                let thread = start(stale, Arc::clone(&metrics)).unwrap();
                let entries = |conntrack: &mut Connection| {
                    let mut endpoints = Vec::new();
                    let listing = conntrack.entries(&Filter::all()).unwrap();
                    listing
                        .for_each(|entry| endpoints.extend(entry.reply().map(|r| r.source)))
                        .unwrap();
                    endpoints
                };
                let until = |conntrack: &mut Connection, endpoints: &[[u8; 4]]| {
                    let endpoints: Vec<std::net::IpAddr> =
                        endpoints.iter().map(|e| (*e).into()).collect();
                    for _ in 0..500 {
                        if entries(conntrack) == endpoints {
                            return;
                        }
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    panic!("{:?}", entries(conntrack));
                };
                until(&mut conntrack, &[[10, 244, 0, 1]]);
                services.set_slice(slice(4));
                proxy.sync(&mut services).unwrap();
                until(&mut conntrack, &[]);
                drop(proxy);
                thread.join().unwrap();
                let text = metrics.text().unwrap();
                for line in [
                    "kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family=\"IPv4\"} 2",
                    "kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family=\"IPv4\"} 2",
                    "chainwright_proxy_conntrack_flushes_total{ip_family=\"IPv4\"} 1",
                    "chainwright_proxy_conntrack_failures_total 0",
                ] {
                    assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
                }
            })
            .unwrap();
    }
}
