//! Kubelet's chains, their guard, and services in every layout, with real packets.

#[path = "../common/mod.rs"]
mod common;
mod detect;
mod guard;
mod kubelet;
mod kubelet_backends;
mod services;
mod skipped_services;
mod stale_flows;
