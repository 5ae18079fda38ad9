//! Health check node ports: each reports to a load balancer how many endpoints of a service run on the node.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use chainwright_kube::service::{ObjectName, Services};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use crate::http::{self, response};

/// By port: the service, and its number of ready endpoints on this node.
pub(crate) type Ports = BTreeMap<u16, (ObjectName, usize)>;

/// Returns the health check node ports of these services. If two services have the same port, the first one gets it.
pub(crate) fn ports<'n>(
    names: impl Iterator<Item = &'n ObjectName>,
    services: &Services,
    node: &str,
) -> Ports {
    let mut ports = Ports::new();
    for name in names {
        let service = services.service(name);
        let Some(port) = service.and_then(|service| service.health_check_node_port) else {
            continue;
        };
        let endpoints = services.slices(name).flat_map(|slice| &slice.endpoints);
        let here = endpoints.filter(|e| e.ready && e.node.as_deref() == Some(node));
        let addresses: HashSet<_> = here.map(|endpoint| endpoint.address).collect();
        ports
            .entry(port)
            .or_insert_with(|| (name.clone(), addresses.len()));
    }
    ports
}

/// Listens at the current ports until the future is dropped. Retries a port in use after `again`.
pub(crate) async fn serve(mut ports: watch::Receiver<Ports>, again: Duration) {
    let mut servers = JoinSet::new();
    let mut listening: HashMap<u16, AbortHandle> = HashMap::new();
    // Ports that could not be bound, each reported once.
    let mut refused: BTreeSet<u16> = BTreeSet::new();
    loop {
        while servers.try_join_next().is_some() {}
        let wanted: Vec<u16> = ports.borrow_and_update().keys().copied().collect();
        listening.retain(|port, server| {
            let stays = wanted.contains(port);
            if !stays {
                server.abort();
            }
            stays
        });
        refused.retain(|port| wanted.contains(port));
        for port in wanted {
            if listening.contains_key(&port) {
                continue;
            }
            match bind(port).await {
                Ok(listener) => {
                    info!(port, "health check port opened");
                    refused.remove(&port);
                    let ports = ports.clone();
                    let answer = move |_: &_, _: &str| answer(&ports.borrow(), port);
                    let server = servers.spawn(http::serve(listener, Arc::new(answer)));
                    listening.insert(port, server);
                }
                Err(error) => {
                    if refused.insert(port) {
                        warn!(port, %error, again_in = ?again, "cannot open health check port, retrying");
                    }
                }
            }
        }
        let changed = match refused.is_empty() {
            true => Ok(ports.changed().await),
            false => tokio::time::timeout(again, ports.changed()).await,
        };
        if matches!(changed, Ok(Err(_))) {
            return;
        }
    }
}

/// Binds a port in both families, if both exist.
async fn bind(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        // With only the other family bound, clients of this one would reach another program.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

fn answer(ports: &Ports, port: u16) -> Response<Full<Bytes>> {
    let Some((service, endpoints)) = ports.get(&port) else {
        let status = StatusCode::NOT_FOUND;
        return response(status, "text/plain", "no service\n".to_owned());
    };
    let status = match endpoints {
        0 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let body = serde_json::json!({
        "service": { "namespace": &*service.namespace, "name": &*service.name },
        "localEndpoints": endpoints,
    });
    let mut response = response(status, "application/json", format!("{body}\n"));
    let weight = HeaderValue::from(*endpoints);
    response
        .headers_mut()
        .insert("x-load-balancing-endpoint-weight", weight);
    response
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use chainwright_kube::service::{Endpoint, EndpointSlice, Service};
    use tokio::time::{sleep, timeout};

    use super::*;

    fn services(port: u16, here: usize) -> Services {
        let name = ObjectName::new("ns", "web");
        let mut services = Services::new();
        let mut service = Service::new(name, [[10, 96, 0, 1].into()]);
        service.health_check_node_port = Some(port);
        services.set_service(service);
        let endpoint = |n, node: &str| Endpoint {
            node: Some(node.into()),
            ..Endpoint::new([10, 244, 0, n].into())
        };
        let mut endpoints = vec![endpoint(9, "there")];
        endpoints.extend((1..).take(here).map(|n| endpoint(n, "here")));
        // One that is not ready, and a duplicate.
        endpoints.push(Endpoint {
            ready: false,
            ..endpoint(8, "here")
        });
        endpoints.extend(endpoints.get(1).filter(|e| e.ready).cloned());
        services.set_slice(EndpointSlice {
            name: ObjectName::new("ns", "s"),
            service: "web".into(),
            endpoints,
            ports: Vec::new(),
        });
        services
    }

    /// Returns the answer to `/healthz` at 127.0.0.1.
    pub(crate) async fn get(port: u16) -> Option<String> {
        let reply = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        });
        reply.await.unwrap()
    }

    async fn until(port: u16, is: impl Fn(Option<&str>) -> bool) {
        let wait = async {
            while !is(get(port).await.as_deref()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), wait).await.unwrap();
    }

    #[test]
    fn health_checks_report_local_endpoints() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let (sender, receiver) = watch::channel(Ports::new());
            tokio::spawn(serve(receiver, Duration::from_secs(3600)));
            let set_endpoint_count = |here| {
                let services = services(port, here);
                sender.send_replace(ports(services.names(), &services, "here"));
            };
            set_endpoint_count(2);
            until(port, |text| {
                text.is_some_and(|text| {
                    text.starts_with("HTTP/1.0 200")
                        && text.contains("x-load-balancing-endpoint-weight: 2\r\n")
                        && text.ends_with("{\"localEndpoints\":2,\"service\":{\"name\":\"web\",\"namespace\":\"ns\"}}\n")
                })
            })
            .await;
            set_endpoint_count(0);
            until(port, |text| text.is_some_and(|text| text.starts_with("HTTP/1.0 503"))).await;
            sender.send_replace(Ports::new());
            until(port, |text| text.is_none()).await;
        });
    }

    /// Takes the port in each family while the other is free.
    #[test]
    fn bind_is_retried_if_the_port_is_in_use() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
                let taken = TcpListener::bind(address).await.unwrap();
                let port = taken.local_addr().unwrap().port();
                let services = services(port, 1);
                let (sender, receiver) = watch::channel(ports(services.names(), &services, "here"));
                tokio::spawn(serve(receiver, Duration::from_millis(10)));
                // The first attempt has been made.
                sleep(Duration::from_millis(50)).await;
                drop(taken);
                until(port, |text| {
                    text.is_some_and(|text| text.starts_with("HTTP/1.0 200"))
                })
                .await;
                sender.send_replace(Ports::new());
                until(port, |text| text.is_none()).await;
            }
        });
    }
}
