//! A proxy at work on a node that is a sandbox, and what it is told of endpoints.

use chainwright_kube::service::{
    Config, Endpoint, EndpointPort, EndpointSlice, Layout, ObjectName, Protocol, ServiceProxy,
    Services, Synced,
};
use chainwright_testing::Sandbox;

use crate::common::report;

#[track_caller]
pub(crate) fn open(node: &Sandbox, layout: Layout, config: Config) -> ServiceProxy {
    let opened = node.run(|| ServiceProxy::open(layout, config)).unwrap();
    opened.unwrap_or_else(|error| panic!("{}", report(&error)))
}

#[track_caller]
pub(crate) fn sync(node: &Sandbox, proxy: &mut ServiceProxy, services: &mut Services) -> Synced {
    let mut tries = 0;
    loop {
        match node.run(|| proxy.sync(services)).unwrap() {
            Ok(synced) => return synced,
            // The proxy before this one was dropped, but a program that another thread is starting still has its socket, until
            // it is executed: so long the table is owned.
            Err(error) if report(&error).contains("EPERM") && tries < 100 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(error) => panic!("{}", report(&error)),
        }
    }
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
