//! A proxy on a sandboxed node, and its endpoints.

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
    when_released(|| node.run(|| proxy.sync(services)).unwrap())
}

/// Repeats `change` while a dropped proxy's table still has an owner: a process that another thread is starting holds
/// the proxy's socket until exec.
#[track_caller]
pub(crate) fn when_released<T>(
    mut change: impl FnMut() -> Result<T, chainwright_kube::Error>,
) -> T {
    let mut tries = 0;
    loop {
        match change() {
            Ok(done) => return done,
            Err(error) if report(&error).contains("EPERM") && tries < 100 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(error) => panic!("{}", report(&error)),
        }
    }
}

/// A slice with all endpoints of a service.
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

/// The endpoints' port for a service port.
pub(crate) fn to(name: &str, protocol: Protocol, port: u16) -> EndpointPort {
    EndpointPort {
        name: name.into(),
        protocol,
        port: Some(port),
    }
}
