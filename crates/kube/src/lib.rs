//! Kubernetes' parts of a node's packet filter.
//!
//! | module | purpose |
//! |---|---|
//! | [`kubelet`] | creates, checks and removes kubelet's chains |
//! | [`declared`] | does the same with other chains and rules |
//! | [`guard`] | restores declared chains and rules when another program removes them |
//! | [`detect`] | detects the backend that a node's Kubernetes uses |
//! | [`service`] | writes services to the tables, as kube-proxy does |
//! | [`explain`] | explains the chains, maps and sets of Kubernetes' components |
//! | [`frontend`] | reads the addresses and ports of services from rules |

mod error;

pub mod declared;
pub mod detect;
pub mod explain;
pub mod frontend;
pub mod guard;
pub mod kubelet;
pub mod service;

pub use error::Error;
