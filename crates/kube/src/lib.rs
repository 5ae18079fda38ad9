//! Kubernetes' chains: what its components create, in terms of tables, chains and rules.

mod error;

pub mod declared;
pub mod detect;
pub mod explain;
pub mod frontend;
pub mod guard;
pub mod kubelet;
pub mod service;

pub use error::Error;
