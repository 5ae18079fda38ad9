//! Watches a cluster: Services, EndpointSlices and the agent's own Node.

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use chainwright_kube::service::InvalidObject;
use futures_util::{Stream, StreamExt};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tower::{BoxError, ServiceBuilder};
use tracing::{info, warn};

use crate::agent::{Change, with_sources};
use crate::objects::{self, Kind, Object};

/// The server does not send services of another proxy or without a cluster IP.
const LABELS: &str = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";

/// Time limits after which a silent connection counts as dead and is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence {
    /// Interval of the HTTP/2 pings to the server.
    ping: Duration,
    /// Time limit for the answer to a ping.
    pong: Duration,
    /// Time in seconds after which the server ends a watch over HTTP/1.1, which has no pings.
    watch: u32,
    /// Longest time without data: longer than a ping takes, and longer than a watch.
    read: Duration,
}

impl Silence {
    /// Less than a minute in total. The ping times are those of Kubernetes' own clients.
    pub(crate) const DEFAULT: Self = Self {
        ping: Duration::from_secs(30),
        pong: Duration::from_secs(15),
        watch: 45,
        read: Duration::from_secs(55),
    };
}

/// A client of an API server, and the duration of its watches in seconds; `None` is the default.
pub(crate) struct Server {
    client: Client,
    watch: Option<u32>,
}

/// Connects with the settings of this file, or those of a pod, or those of kubectl.
pub(crate) async fn connect(kubeconfig: Option<&Path>) -> Result<Server, String> {
    let config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| with_sources(&error))?;
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await;
            config.map_err(|error| with_sources(&error))?
        }
        None => kube::Config::infer()
            .await
            .map_err(|error| with_sources(&error))?,
    };
    server(config, Silence::DEFAULT)
}

/// Creates a client that replaces a silent connection: kube's own client uses HTTP/1.1 only and
/// waits indefinitely.
fn server(mut config: kube::Config, silence: Silence) -> Result<Server, String> {
    config.read_timeout = Some(silence.read);
    let is_tls = config.cluster_url.scheme_str() == Some("https");
    // Without TLS there is no HTTP/2, because the client does not negotiate it.
    let watch = (!is_tls).then_some(silence.watch);
    let client = match (is_tls, &config.proxy_url) {
        (true, None) => with_pings(&config, silence).map_err(|error| with_sources(&error))?,
        _ => Client::try_from(config).map_err(|error| with_sources(&error))?,
    };
    Ok(Server { client, watch })
}

/// Creates a client that uses HTTP/2 if the server does, with all requests on one connection.
fn with_pings(config: &kube::Config, silence: Silence) -> Result<Client, kube::Error> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_keepalive(Some(silence.ping));
    let tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    let tls = match &config.tls_server_name {
        Some(name) => {
            let name = name.clone().try_into();
            let name = name.map_err(|error| kube::Error::Service(Box::new(error)))?;
            tls.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => tls,
    };
    let mut connector = TimeoutConnector::new(tls.enable_all_versions().wrap_connector(http));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(silence.ping)
        .http2_keep_alive_timeout(silence.pong)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Follows a cluster until it is dropped.
pub(crate) async fn follow(server: Server, node: &str, to: Sender<Change>) {
    let Server { client, watch } = server;
    let all = watcher::Config {
        timeout: watch,
        ..watcher::Config::default().labels(LABELS)
    };
    let own = watcher::Config {
        label_selector: None,
        field_selector: Some(format!("metadata.name={node}")),
        ..all.clone()
    };
    let services = watcher(Api::<core::Service>::all(client.clone()), all.clone());
    let slices = watcher(Api::<discovery::EndpointSlice>::all(client.clone()), all);
    let nodes = watcher(Api::<core::Node>::all(client), own);
    let (done, mut listed) = unbounded_channel();
    let complete = {
        let to = to.clone();
        async move { complete(&mut listed, &to).await }
    };
    tokio::join!(
        each(
            Kind::Service,
            services.default_backoff(),
            objects::service,
            &to,
            done.clone()
        ),
        each(
            Kind::Slice,
            slices.default_backoff(),
            objects::slice,
            &to,
            done.clone()
        ),
        each(
            Kind::Node,
            nodes.default_backoff(),
            objects::node,
            &to,
            done
        ),
        complete,
    );
}

/// Sends [`Change::Complete`] when all kinds have been listed once.
async fn complete(listed: &mut UnboundedReceiver<Kind>, to: &Sender<Change>) {
    let mut kinds = HashSet::new();
    while let Some(kind) = listed.recv().await {
        if kinds.insert(kind) && kinds.len() == 3 {
            info!("initial list of the cluster received");
            send_change(to, Change::Complete);
        }
    }
}

/// Follows the objects of one kind.
async fn each<K: Resource + Debug>(
    kind: Kind,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    read: fn(&K) -> Result<Object, InvalidObject>,
    to: &Sender<Change>,
    listed: UnboundedSender<Kind>,
) {
    let mut events = std::pin::pin!(events);
    let mut known = HashSet::new();
    // The objects in a list in progress: objects that are missing at its end were deleted.
    let mut seen = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(object)) => {
                let name = objects::name(object.meta());
                seen.insert(name.clone());
                known.insert(name);
                apply(kind, &object, read, to);
            }
            Ok(Event::InitDone) => {
                for gone in known.extract_if(|name| !seen.contains(name)) {
                    send_change(to, Change::Object((kind, gone), None));
                }
                seen = HashSet::new();
                // After the first time nothing receives this.
                let _ = listed.send(kind);
            }
            Ok(Event::Apply(object)) => {
                known.insert(objects::name(object.meta()));
                apply(kind, &object, read, to);
            }
            Ok(Event::Delete(object)) => {
                let name = objects::name(object.meta());
                known.remove(&name);
                send_change(to, Change::Object((kind, name), None));
            }
            Err(error) => warn!(?kind, error = %with_sources(&error), "watch failed, retrying"),
        }
    }
}

fn apply<K: Resource>(
    kind: Kind,
    object: &K,
    read: fn(&K) -> Result<Object, InvalidObject>,
    to: &Sender<Change>,
) {
    let name = objects::name(object.meta());
    match read(object) {
        Ok(object) => send_change(to, Change::Object((kind, name), Some(object))),
        Err(error) => warn!(%error, "invalid object: the last valid version is kept"),
    }
}

fn send_change(to: &Sender<Change>, change: Change) {
    // Fails only when the agent stops.
    let _ = to.send(change);
}

#[cfg(test)]
mod tests;
