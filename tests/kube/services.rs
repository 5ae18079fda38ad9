//! Services with real packets: a client, a node and pods, each in its own sandbox, joined by cables; the same
//! table of cases in every layout and both families.

mod cases;
mod conflicts;
mod distribution;
mod flows_during_changes;
mod kill;
mod kube_proxy;
mod listed;
mod net;
mod open_connections;
pub(crate) mod proxy;
mod tables;
mod takeover;

use crate::common::child_process;
use crate::common::{from_env, number, thorough};
use cases::run;
use chainwright::iptables::{Backend, Family};
use chainwright::legacy::LOCK_VARIABLE;
use chainwright_kube::service::Layout;
use flows_during_changes::By;

/// The tests use their own lock for the legacy tables: the default file belongs to root.
// SAFETY: on Linux std works before main; this starts no thread.
#[ctor::ctor(unsafe)]
fn choose_lock() {
    if std::env::var_os(LOCK_VARIABLE).is_none() {
        let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/xtables.lock");
        // SAFETY: no other thread exists yet that could read the environment.
        unsafe { std::env::set_var(LOCK_VARIABLE, path) };
    }
}

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

const NFTABLES: Layout = Layout::Nftables;
const IPTABLES: Layout = Layout::Iptables(Backend::Nft);
const LEGACY: Layout = Layout::Iptables(Backend::Legacy);

/// The step between numbers of endpoints, from 1 to 100, for which connections are counted: 1 covers all of them.
fn step(default: usize) -> usize {
    number("DISTRIBUTION_STEP").unwrap_or((default / thorough()).max(1))
}

#[test]
fn flat_distributes_evenly() {
    distribution::evenly(Layout::Flat, step(1));
}

#[test]
fn nftables_draws_evenly() {
    distribution::evenly(NFTABLES, step(9));
}

#[test]
fn iptables_draws_evenly() {
    distribution::evenly(IPTABLES, step(9));
}

#[test]
fn iptables_legacy_draws_evenly() {
    distribution::evenly(LEGACY, step(9));
}

/// How often endpoints change.
fn rounds() -> usize {
    from_env("AFFINITY_ROUNDS", 20)
}

#[test]
fn flat_keeps_client_affinity() {
    distribution::affinity(Layout::Flat, rounds());
}

#[test]
fn nftables_keeps_clients() {
    distribution::affinity(NFTABLES, rounds());
}

#[test]
fn iptables_keeps_clients() {
    distribution::affinity(IPTABLES, rounds());
}

#[test]
fn iptables_legacy_keeps_clients() {
    distribution::affinity(LEGACY, rounds());
}

/// Number of syncs that do not affect the watched service.
fn syncs(default: usize) -> usize {
    from_env("UNDISTURBED", default)
}

#[test]
fn flat_keeps_foreign_rules() {
    open_connections::undisturbed(Layout::Flat, syncs(1_000));
}

#[test]
fn nftables_keeps_foreign_rules() {
    open_connections::undisturbed(NFTABLES, syncs(150));
}

#[test]
fn iptables_keeps_foreign_rules() {
    open_connections::undisturbed(IPTABLES, syncs(150));
}

#[test]
fn iptables_legacy_keeps_foreign_rules() {
    open_connections::undisturbed(LEGACY, syncs(150));
}

#[test]
fn layouts_change_without_a_refused_connection() {
    open_connections::layouts_change();
}

/// Not a test itself: the process that the tests below start and kill.
#[test]
fn victim() {
    if let Some(task) = child_process::task() {
        kill::victim(&task);
        child_process::end();
    }
}

/// Number of kills that must happen during syncs of each layout.
fn kills() -> usize {
    from_env("SERVICE_KILLS", 6)
}

#[test]
fn flat_recovers_after_a_kill() {
    kill::killed(Layout::Flat, kills());
}

#[test]
fn nftables_recovers_after_a_kill() {
    kill::killed(NFTABLES, kills());
}

#[test]
fn iptables_recovers_after_a_kill() {
    kill::killed(IPTABLES, kills());
}

#[test]
fn iptables_legacy_recovers_after_a_kill() {
    kill::killed(LEGACY, kills());
}

#[test]
fn flat_repairs_changes_by_others() {
    takeover::repairs();
}

#[test]
fn flat_replaces_a_foreign_table() {
    takeover::replaces();
}

#[test]
fn nftables_matches_kube_proxy() {
    kube_proxy::nftables();
}

#[test]
fn nftables_takes_over_rules_of_kube_proxy() {
    kube_proxy::takes_over();
}

#[test]
fn removes_rules_of_kube_proxy() {
    kube_proxy::removed();
}

#[test]
fn iptables_matches_kube_proxy() {
    kube_proxy::iptables(Backend::Nft);
}

#[test]
fn iptables_legacy_matches_kube_proxy() {
    kube_proxy::iptables(Backend::Legacy);
}

/// Number of changes of each kind in each direction while flows arrive.
fn commits() -> usize {
    from_env("FLOOD_COMMITS", 6)
}

#[test]
fn flat_translates_every_flow() {
    flows_during_changes::flooded(Layout::Flat, By::Change, commits());
}

#[test]
fn flat_translates_every_flow_during_repair() {
    flows_during_changes::flooded(Layout::Flat, By::Repair, commits());
}

#[test]
fn flat_translates_every_flow_while_recreated() {
    flows_during_changes::recreated(commits());
}

#[test]
fn nftables_translates_every_flow_while_recreated() {
    flows_during_changes::recreated_in_chains(commits());
}

#[test]
fn a_firewall_exists_before_its_load_balancer_is_reachable() {
    for layout in [Layout::Flat, NFTABLES] {
        flows_during_changes::firewalls_first(layout);
    }
}

#[test]
fn nftables_translates_every_flow() {
    flows_during_changes::flooded(NFTABLES, By::Change, commits());
}

#[test]
fn nftables_translates_every_flow_during_repair() {
    flows_during_changes::flooded(NFTABLES, By::Repair, commits());
}

#[test]
fn flat_replaces_leftover_elements() {
    flows_during_changes::deferred_deletions_free_keys();
}

#[test]
fn flat_removes_referenced_elements_last() {
    flows_during_changes::in_order();
}

#[test]
fn nftables_removes_referenced_elements_last() {
    flows_during_changes::in_order_in_chains();
}

#[test]
fn an_address_belongs_to_one_service() {
    for layout in Layout::ALL {
        conflicts::services_share_one_address(layout);
    }
}

#[test]
fn node_ports_are_at_the_same_addresses_in_every_layout() {
    for layout in Layout::ALL {
        conflicts::node_ports(layout);
        conflicts::node_gets_an_address(layout);
    }
}

#[test]
fn node_ports_listen_on_loopback_if_configured() {
    for layout in [IPTABLES, LEGACY] {
        conflicts::node_ports_at_loopback(layout);
    }
}

#[test]
fn flat_writes_nothing_without_differences() {
    takeover::writes_nothing();
}

#[test]
fn own_commits_are_not_reported_as_foreign_changes() {
    for layout in [Layout::Flat, NFTABLES] {
        takeover::own_commits(layout);
    }
}
