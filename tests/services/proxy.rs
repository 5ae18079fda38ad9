//! A proxy at work on a node that is a sandbox.

use chainwright::kube::service::{Config, Layout, ServiceProxy, Services, Synced};
use chainwright::netns::Sandbox;

use crate::common::report;

#[track_caller]
pub(crate) fn open(node: &Sandbox, layout: Layout, config: Config) -> ServiceProxy {
    let opened = node.run(|| ServiceProxy::open(layout, config)).unwrap();
    opened.unwrap_or_else(|error| panic!("{}", report(&error)))
}

#[track_caller]
pub(crate) fn sync(node: &Sandbox, proxy: &mut ServiceProxy, services: &mut Services) -> Synced {
    let synced = node.run(|| proxy.sync(services)).unwrap();
    synced.unwrap_or_else(|error| panic!("{}", report(&error)))
}
