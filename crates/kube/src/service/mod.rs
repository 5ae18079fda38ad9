//! Services: the core of a kube-proxy replacement.
//!
//! [`Services`] holds the API's services and endpoint slices and records which of them changed. A [`ServiceProxy`]
//! writes them to the kernel, in one of three layouts, and lists the [conntrack entries](StaleFlows) that became
//! stale.

#[cfg(feature = "k8s-openapi")]
mod api;
mod config;
mod conflict;
mod family;
mod layout;
mod map;
mod model;
mod names;
mod proxy;
mod resolve;
mod stale;
mod store;

#[cfg(feature = "k8s-openapi")]
pub use api::{InvalidObject, Node};
pub use config::{Config, LocalDetector, NodePortAddresses};
pub use conflict::{AddressKind, Conflict};
pub use family::{FamilyErrors, SkippedService};
pub(super) use layout::flat::{has_frontend_keys, is_table as is_flat_table};
pub(super) use layout::nftables::is_own_table as is_own_nftables_table;
pub use layout::{Layout, Progress};
pub use model::{
    Endpoint, EndpointPort, EndpointSlice, ObjectName, Port, Protocol, Service, TrafficPolicy,
};
pub use names::{ChainKind, PortName};
pub use proxy::{ServiceProxy, Synced};
pub use resolve::{Backend, Backends, Refusal, ServicePort};
pub use stale::{DeletedFlows, StaleFlows};
pub use store::Services;
