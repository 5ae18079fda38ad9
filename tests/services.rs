//! Services with real packets: a client, a node and pods, each in a sandbox of its own, joined by cables; the same
//! table of cases in every layout and both families.

#[path = "services/adopt.rs"]
mod adopt;
#[path = "services/cases.rs"]
mod cases;
mod common;
#[path = "services/draws.rs"]
mod draws;
#[path = "services/net.rs"]
mod net;

use cases::run;
use chainwright::iptables::{Backend, Family};
use chainwright::kube::service::Layout;

#[test]
fn flat_ipv4() {
    run(Layout::Flat, Family::Ipv4);
}

#[test]
fn flat_ipv6() {
    run(Layout::Flat, Family::Ipv6);
}

#[test]
fn nftables_ipv4() {
    run(Layout::Nftables, Family::Ipv4);
}

#[test]
fn nftables_ipv6() {
    run(Layout::Nftables, Family::Ipv6);
}

#[test]
fn iptables_ipv4() {
    run(Layout::Iptables(Backend::Nft), Family::Ipv4);
}

#[test]
fn iptables_ipv6() {
    run(Layout::Iptables(Backend::Nft), Family::Ipv6);
}

#[test]
fn iptables_legacy_ipv4() {
    run(Layout::Iptables(Backend::Legacy), Family::Ipv4);
}

#[test]
fn flat_draws_evenly() {
    draws::evenly(Layout::Flat);
}

#[test]
fn flat_leaves_others_alone() {
    draws::undisturbed(Layout::Flat, 1_000);
}

#[test]
fn layouts_change_without_a_refused_connection() {
    draws::layouts_change();
}

#[test]
fn flat_mends_what_others_did() {
    adopt::mends();
}

#[test]
fn flat_replaces_a_table_that_is_another() {
    adopt::replaces();
}
