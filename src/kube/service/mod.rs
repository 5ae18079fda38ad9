//! Services: the heart of a kube-proxy replacement.
//!
//! [`Services`] holds what the API says of services and endpoint slices and what of it changed. A [`ServiceProxy`]
//! brings it to the kernel, in one of three layouts.

#[cfg(feature = "k8s-openapi")]
mod api;
mod config;
mod layout;
mod model;
mod names;
mod proxy;
mod resolve;
mod store;

#[cfg(feature = "k8s-openapi")]
pub use api::{InvalidObject, Node};
pub use config::{Config, LocalDetector, NodePortAddresses};
pub use layout::Layout;
pub use model::{
    Endpoint, EndpointPort, EndpointSlice, ObjectName, Port, Protocol, Service, TrafficPolicy,
};
pub use names::{ChainKind, PortName};
pub use proxy::{ServiceProxy, Synced};
pub use resolve::{Backend, Backends, Refusal, ServicePort};
pub use store::Services;
