//! Kubernetes' chains: what its components create, in terms of tables, chains and rules.

pub mod declared;
pub mod detect;
pub mod explain;
pub mod frontend;
pub mod guard;
pub mod kubelet;
pub mod service;
