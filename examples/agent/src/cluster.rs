//! A cluster, watched: Services, EndpointSlices and the own Node.

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::Path;
use std::sync::mpsc::Sender;

use chainwright::kube::service::InvalidObject;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{info, warn};

use crate::agent::{Change, with_sources};
use crate::objects::{self, Kind, Object};

/// Those that are another proxy's, or have no cluster IP, are not even sent.
const LABELS: &str = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";

/// As this file says, or as its pods do, or as kubectl does.
pub(crate) async fn connect(kubeconfig: Option<&Path>) -> Result<Client, String> {
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
    Client::try_from(config).map_err(|error| with_sources(&error))
}

/// Follows a cluster until it is dropped.
pub(crate) async fn follow(client: Client, node: &str, to: Sender<Change>) {
    let all = watcher::Config::default().labels(LABELS);
    let own = watcher::Config::default().fields(&format!("metadata.name={node}"));
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

/// Tells when all kinds have been listed once.
async fn complete(listed: &mut UnboundedReceiver<Kind>, to: &Sender<Change>) {
    let mut kinds = HashSet::new();
    while let Some(kind) = listed.recv().await {
        if kinds.insert(kind) && kinds.len() == 3 {
            info!("cluster listed");
            tell(to, Change::Complete);
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
    // Those of a list that is under way: what it does not name at its end is gone.
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
                    tell(to, Change::Object((kind, gone), None));
                }
                seen = HashSet::new();
                // Nobody waits any more after the first time.
                let _ = listed.send(kind);
            }
            Ok(Event::Apply(object)) => {
                known.insert(objects::name(object.meta()));
                apply(kind, &object, read, to);
            }
            Ok(Event::Delete(object)) => {
                let name = objects::name(object.meta());
                known.remove(&name);
                tell(to, Change::Object((kind, name), None));
            }
            Err(error) => warn!(?kind, error = %with_sources(&error), "watch broken: tried again"),
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
        Ok(object) => tell(to, Change::Object((kind, name), Some(object))),
        Err(error) => warn!(%error, "object not read: it stays as it was"),
    }
}

fn tell(to: &Sender<Change>, change: Change) {
    // Nobody listens any more: the agent stops.
    let _ = to.send(change);
}

#[cfg(test)]
mod tests;
