//! Services with real packets: a client, a node and pods, each in its own sandbox, joined by cables; the same
//! table of cases in every layout and both families.

mod adopt;
mod cases;
mod contested;
mod draws;
mod flood;
mod kill;
mod kube_proxy;
mod listed;
mod net;
pub(crate) mod proxy;
mod tables;
mod undisturbed;

use crate::common::running;
use crate::common::{from_env, number, thorough};
use cases::run;
use chainwright::iptables::{Backend, Family};
use chainwright::legacy::LOCK_VARIABLE;
use chainwright_kube::service::Layout;
use flood::By;

/// The tests use their own lock for the legacy tables: the usual file belongs to root.
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
fn step(usual: usize) -> usize {
    number("DRAWN_STEP").unwrap_or((usual / thorough()).max(1))
}

#[test]
fn flat_draws_evenly() {
    draws::evenly(Layout::Flat, step(1));
}

#[test]
fn nftables_draws_evenly() {
    draws::evenly(NFTABLES, step(9));
}

#[test]
fn iptables_draws_evenly() {
    draws::evenly(IPTABLES, step(9));
}

#[test]
fn iptables_legacy_draws_evenly() {
    draws::evenly(LEGACY, step(9));
}

/// How often endpoints change.
fn rounds() -> usize {
    from_env("AFFINITY_ROUNDS", 20)
}

#[test]
fn flat_keeps_clients() {
    draws::affinity(Layout::Flat, rounds());
}

#[test]
fn nftables_keeps_clients() {
    draws::affinity(NFTABLES, rounds());
}

#[test]
fn iptables_keeps_clients() {
    draws::affinity(IPTABLES, rounds());
}

#[test]
fn iptables_legacy_keeps_clients() {
    draws::affinity(LEGACY, rounds());
}

/// Number of syncs that do not affect the watched service.
fn syncs(usual: usize) -> usize {
    from_env("UNDISTURBED", usual)
}

#[test]
fn flat_leaves_others_alone() {
    undisturbed::undisturbed(Layout::Flat, syncs(1_000));
}

#[test]
fn nftables_leaves_others_alone() {
    undisturbed::undisturbed(NFTABLES, syncs(150));
}

#[test]
fn iptables_leaves_others_alone() {
    undisturbed::undisturbed(IPTABLES, syncs(150));
}

#[test]
fn iptables_legacy_leaves_others_alone() {
    undisturbed::undisturbed(LEGACY, syncs(150));
}

#[test]
fn layouts_change_without_a_refused_connection() {
    undisturbed::layouts_change();
}

/// Not a test itself: the process that the tests below start and kill.
#[test]
fn victim() {
    if let Some(task) = running::task() {
        kill::victim(&task);
        running::end();
    }
}

/// Number of kills that must happen during syncs of each layout.
fn kills() -> usize {
    from_env("SERVICE_KILLS", 6)
}

#[test]
fn flat_mends_what_a_kill_left() {
    kill::killed(Layout::Flat, kills());
}

#[test]
fn nftables_mends_what_a_kill_left() {
    kill::killed(NFTABLES, kills());
}

#[test]
fn iptables_mends_what_a_kill_left() {
    kill::killed(IPTABLES, kills());
}

#[test]
fn iptables_legacy_mends_what_a_kill_left() {
    kill::killed(LEGACY, kills());
}

#[test]
fn flat_mends_what_others_did() {
    adopt::repairs();
}

#[test]
fn flat_replaces_a_table_that_is_another() {
    adopt::replaces();
}

#[test]
fn nftables_is_what_kube_proxy_writes() {
    kube_proxy::nftables();
}

#[test]
fn nftables_adopts_what_kube_proxy_left() {
    kube_proxy::adopted();
}

#[test]
fn what_kube_proxy_left_is_removed() {
    kube_proxy::removed();
}

#[test]
fn iptables_is_what_kube_proxy_writes() {
    kube_proxy::iptables(Backend::Nft);
}

#[test]
fn iptables_legacy_is_what_kube_proxy_writes() {
    kube_proxy::iptables(Backend::Legacy);
}

/// Number of changes of each kind in each direction while flows arrive.
fn commits() -> usize {
    from_env("FLOOD_COMMITS", 6)
}

#[test]
fn flat_translates_every_flow() {
    flood::flooded(Layout::Flat, By::Change, commits());
}

#[test]
fn flat_translates_every_flow_while_it_is_repaired() {
    flood::flooded(Layout::Flat, By::Repair, commits());
}

#[test]
fn flat_translates_every_flow_while_it_is_made_anew() {
    flood::made_anew(commits());
}

#[test]
fn nftables_translates_every_flow_while_it_is_made_anew() {
    flood::made_anew_in_chains(commits());
}

#[test]
fn a_firewall_stands_before_a_load_balancer_is_reached() {
    for layout in [Layout::Flat, NFTABLES] {
        flood::firewalls_first(layout);
    }
}

#[test]
fn nftables_translates_every_flow() {
    flood::flooded(NFTABLES, By::Change, commits());
}

#[test]
fn nftables_translates_every_flow_while_it_is_repaired() {
    flood::flooded(NFTABLES, By::Repair, commits());
}

#[test]
fn flat_takes_away_last_what_packets_look_up() {
    flood::in_order();
}

#[test]
fn nftables_takes_away_last_what_packets_look_up() {
    flood::in_order_in_chains();
}

#[test]
fn an_address_belongs_to_one_service() {
    for layout in Layout::ALL {
        contested::services_ask_for_one_address(layout);
    }
}

#[test]
fn node_ports_are_at_the_same_addresses_in_every_layout() {
    for layout in Layout::ALL {
        contested::node_ports(layout);
        contested::node_gets_an_address(layout);
    }
}

#[test]
fn node_ports_are_at_loopback_where_that_is_asked_for() {
    for layout in [IPTABLES, LEGACY] {
        contested::node_ports_at_loopback(layout);
    }
}

#[test]
fn flat_writes_nothing_where_nothing_differs() {
    adopt::writes_nothing();
}

#[test]
fn own_commits_are_no_foreign_change() {
    for layout in [Layout::Flat, NFTABLES] {
        adopt::own_commits(layout);
    }
}
