//! A proxy at work on a node that is a sandbox, and what it is told of endpoints.

use chainwright::kube::service::{
    Config, Endpoint, EndpointPort, EndpointSlice, Layout, ObjectName, Protocol, ServiceProxy,
    Services, Synced,
};
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

/// All endpoints of a service.
pub(crate) fn slice(
    service: &str,
    endpoints: Vec<Endpoint>,
    ports: &[EndpointPort],
) -> EndpointSlice {
    EndpointSlice {
        name: ObjectName::new("default", format!("{service}-1")),
        service: service.into(),
        endpoints,
        ports: ports.to_vec(),
    }
}

/// Where a port of a service leads to.
pub(crate) fn to(name: &str, protocol: Protocol, port: u16) -> EndpointPort {
    EndpointPort {
        name: name.into(),
        protocol,
        port: Some(port),
    }
}
