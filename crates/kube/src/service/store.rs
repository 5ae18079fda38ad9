//! The desired state: all services with their endpoints, and which of them changed.

use std::mem;
use std::sync::Arc;

use super::config::Config;
use super::map::{Map, Set};
use super::model::{EndpointSlice, ObjectName, Service};
use super::resolve::{ServicePort, resolve};
use chainwright::iptables::Family;

/// All services of a cluster and their endpoints. Records which ones changed, so that a [sync](super) costs as
/// much as the change, however many services there are.
///
/// ```
/// use chainwright_kube::service::{
///     Endpoint, EndpointPort, EndpointSlice, ObjectName, Port, Protocol, Service, Services,
/// };
///
/// let mut services = Services::new();
/// let web = ObjectName::new("default", "web");
/// let service = Service::new(web, ["10.96.0.1".parse()?]);
/// services.set_service(service.with_port(Port::new("http", Protocol::Tcp, 80)));
/// services.set_slice(EndpointSlice {
///     name: ObjectName::new("default", "web-x7k2p"),
///     service: "web".into(),
///     endpoints: vec![Endpoint::new("10.244.1.5".parse()?)],
///     ports: vec![EndpointPort { name: "http".into(), protocol: Protocol::Tcp, port: Some(8080) }],
/// });
/// assert_eq!(services.len(), 1);
/// assert_eq!(services.changed().count(), 1);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Services {
    /// By service name, including services that are known only by their slices.
    services: Map<ObjectName, Entry>,
    /// The service of each slice, which can change.
    slices: Map<ObjectName, ObjectName>,
    changed: Set<ObjectName>,
    count: usize,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    service: Option<Service>,
    /// Sorted by name. Nearly always one.
    slices: Vec<EndpointSlice>,
}

impl Entry {
    /// Returns the index of the slice of this name, or where to insert it.
    fn slice(&self, name: &str) -> Result<usize, usize> {
        self.slices
            .binary_search_by(|slice| (*slice.name.name).cmp(name))
    }
}

impl Services {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of services.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if there is no service.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds or replaces a service.
    pub fn set_service(&mut self, service: Service) {
        let name = service.name.clone();
        let entry = self.services.entry(name.clone()).or_default();
        if entry.service.as_ref() == Some(&service) {
            return;
        }
        self.count += usize::from(entry.service.is_none());
        entry.service = Some(service);
        self.changed.insert(name);
    }

    /// Removes a service, if it exists.
    pub fn remove_service(&mut self, name: &ObjectName) {
        let Some(entry) = self.services.get_mut(name) else {
            return;
        };
        if entry.service.take().is_some() {
            self.count -= 1;
            self.changed.insert(name.clone());
        }
        self.forget_empty(name);
    }

    /// Adds or replaces a slice, even if it belonged to another service.
    pub fn set_slice(&mut self, slice: EndpointSlice) {
        let service = ObjectName {
            namespace: Arc::clone(&slice.name.namespace),
            name: Arc::clone(&slice.service),
        };
        if self
            .slices
            .get(&slice.name)
            .is_some_and(|of| *of != service)
        {
            self.remove_slice(&slice.name.clone());
        }
        let entry = self.services.entry(service.clone()).or_default();
        match entry.slice(&slice.name.name) {
            Ok(index) if entry.slices[index] == slice => return,
            Ok(index) => entry.slices[index] = slice,
            Err(index) => {
                self.slices.insert(slice.name.clone(), service.clone());
                entry.slices.reserve_exact(1);
                entry.slices.insert(index, slice);
            }
        }
        self.changed.insert(service);
    }

    /// Removes a slice, if it exists.
    pub fn remove_slice(&mut self, name: &ObjectName) {
        let Some(service) = self.slices.swap_remove(name) else {
            return;
        };
        if let Some(entry) = self.services.get_mut(&service)
            && let Ok(index) = entry.slice(&name.name)
        {
            entry.slices.remove(index);
        }
        self.forget_empty(&service);
        self.changed.insert(service);
    }

    fn forget_empty(&mut self, name: &ObjectName) {
        let is_empty = |e: &Entry| e.service.is_none() && e.slices.is_empty();
        if self.services.get(name).is_some_and(is_empty) {
            self.services.swap_remove(name);
        }
    }

    /// Returns the names of all services.
    pub fn names(&self) -> impl Iterator<Item = &ObjectName> {
        let services = self.services.iter();
        services.filter_map(|(name, entry)| entry.service.as_ref().map(|_| name))
    }

    /// Looks up a service by name.
    #[must_use]
    pub fn service(&self, name: &ObjectName) -> Option<&Service> {
        self.services.get(name)?.service.as_ref()
    }

    /// Returns the slices of a service.
    pub fn slices(&self, name: &ObjectName) -> impl Iterator<Item = &EndpointSlice> + Clone {
        let entry = self.services.get(name);
        entry.into_iter().flat_map(|entry| &entry.slices)
    }

    /// Returns the names of the services that changed since the last [`take_changed`](Self::take_changed), including
    /// removed ones.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = &ObjectName> {
        self.changed.iter()
    }

    /// Returns the [changed](Self::changed) services and clears the list.
    pub fn take_changed(&mut self) -> impl ExactSizeIterator<Item = ObjectName> + use<> {
        mem::take(&mut self.changed).into_iter()
    }

    /// Marks services as changed, because the changes taken could not be written to the kernel.
    pub fn mark_changed(&mut self, names: impl IntoIterator<Item = ObjectName>) {
        self.changed.extend(names);
    }

    /// Resolves a service's ports on a node; empty if the service does not exist.
    #[must_use]
    pub fn resolve(&self, name: &ObjectName, family: Family, config: &Config) -> Vec<ServicePort> {
        let entry = self.services.get(name);
        match entry.and_then(|entry| Some((entry, entry.service.as_ref()?))) {
            Some((entry, service)) => resolve(service, entry.slices.iter(), family, config),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
