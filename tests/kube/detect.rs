//! The backend that a node uses, in many states of a node; detection leaves each state unchanged.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::iptables::{Backend, Iptables};
use chainwright::legacy::{LockPolicy, Status};
use chainwright_kube::detect::{DetectedBackend, Detector, Evidence, WatchOptions};
use chainwright_kube::kubelet::{self, Error, Kubelet};
use chainwright_testing::Sandbox;

/// The visible state of a node: nf_tables' ruleset, and the legacy tables in use.
fn state(sandbox: &Sandbox) -> String {
    let tools = Tools::new(sandbox);
    let ruleset = tools.run("nft -a list ruleset");
    let names = ["ip", "ip6", "arp"].map(|family| {
        let file = format!("/proc/thread-self/net/{family}_tables_names");
        let names = sandbox.run(|| fs::read_to_string(file));
        names.unwrap().unwrap_or_default()
    });
    // The generation shows any commit, even one that changes nothing.
    let generation = crate::common::connect(sandbox).generation().unwrap();
    format!("{ruleset}{names:?}{generation}")
}

fn probe(sandbox: &Sandbox) -> DetectedBackend {
    let verdict = sandbox.run(|| Detector::open().probe().detected_backend());
    verdict.unwrap()
}

fn evidence(sandbox: &Sandbox) -> Evidence {
    sandbox.run(|| Detector::open().evidence()).unwrap()
}

/// The states: the preceding commands, one per line, and the verdict.
const STATES: &[(&str, &[&str], DetectedBackend)] = &[
    ("fresh", &[], DetectedBackend::Undetermined),
    (
        "nft only",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-nft -t mangle -N KUBE-KUBELET-CANARY",
        ],
        DetectedBackend::Nft,
    ),
    (
        "legacy only",
        &[
            "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
            "ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY",
        ],
        DetectedBackend::Legacy,
    ),
    (
        "both",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
        ],
        DetectedBackend::Mixed,
    ),
    (
        "IPv4 in one backend, IPv6 in the other",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT",
        ],
        DetectedBackend::Mixed,
    ),
    (
        "the hint in one backend, the canary in the other",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY",
        ],
        DetectedBackend::Mixed,
    ),
    (
        "hint without canary, nft",
        &["iptables-nft -t mangle -N KUBE-IPTABLES-HINT"],
        DetectedBackend::Nft,
    ),
    (
        "hint without canary, legacy",
        &["iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"],
        DetectedBackend::Legacy,
    ),
    (
        "canary without hint, nft: a kubelet before 1.24",
        &["iptables-nft -t mangle -N KUBE-KUBELET-CANARY"],
        DetectedBackend::Nft,
    ),
    (
        "canary without hint, legacy",
        &["iptables-legacy -t mangle -N KUBE-KUBELET-CANARY"],
        DetectedBackend::Legacy,
    ),
    (
        "IPv6 only, nft",
        &["ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT"],
        DetectedBackend::Nft,
    ),
    (
        "IPv6 only, legacy",
        &["ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT"],
        DetectedBackend::Legacy,
    ),
    (
        "mangle flushed with its chains, nft",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-nft -t mangle -N KUBE-KUBELET-CANARY",
            "iptables-nft -t mangle -F",
            "iptables-nft -t mangle -X",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "mangle flushed with its chains, legacy",
        &[
            "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-legacy -t mangle -F",
            "iptables-legacy -t mangle -X",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "mangle flushed without its chains",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-nft -t mangle -F",
        ],
        DetectedBackend::Nft,
    ),
    (
        "only the canary of mangle deleted",
        &[
            "iptables-nft -t mangle -N KUBE-KUBELET-CANARY",
            "iptables-nft -t nat -N KUBE-KUBELET-CANARY",
            "iptables-nft -t mangle -X KUBE-KUBELET-CANARY",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "legacy mangle merely touched",
        &["iptables-legacy -t mangle -S"],
        DetectedBackend::Undetermined,
    ),
    (
        "legacy filter only listed, kubelet in nft",
        &[
            "iptables-legacy -S",
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
        ],
        DetectedBackend::Nft,
    ),
    (
        "kube-proxy's chains only, nft",
        &[
            "iptables-nft -t nat -N KUBE-SERVICES",
            "iptables-nft -t mangle -N KUBE-PROXY-CANARY",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "kube-proxy's chains only, legacy",
        &[
            "iptables-legacy -t nat -N KUBE-SERVICES",
            "iptables-legacy -t mangle -N KUBE-PROXY-CANARY",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "kubelet in nft, leftovers of azure-npm in legacy",
        &[
            "iptables-nft -t mangle -N KUBE-IPTABLES-HINT",
            "iptables-legacy -N AZURE-NPM",
            "iptables-legacy -A FORWARD -j AZURE-NPM",
        ],
        DetectedBackend::Nft,
    ),
    (
        "foreign rules in both backends",
        &[
            "iptables-nft -A INPUT -s 192.0.2.1 -j DROP",
            "iptables-legacy -A INPUT -s 192.0.2.1 -j DROP",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "the hint in a table other than mangle",
        &["iptables-nft -N KUBE-IPTABLES-HINT"],
        DetectedBackend::Undetermined,
    ),
    (
        "a chain with a similar name",
        &["iptables-legacy -t mangle -N KUBE-IPTABLES-HINT2"],
        DetectedBackend::Undetermined,
    ),
    (
        "kube-proxy in nftables mode",
        &[
            "nft add table ip kube-proxy",
            "nft add chain ip kube-proxy services",
        ],
        DetectedBackend::Undetermined,
    ),
    (
        "the hint in a table mangle of the family inet",
        &[
            "nft add table inet mangle",
            "nft add chain inet mangle KUBE-IPTABLES-HINT",
        ],
        DetectedBackend::Undetermined,
    ),
];

#[test]
fn each_node_state_is_detected_and_unchanged() {
    assert!(STATES.len() >= 20);
    for (name, commands, verdict) in STATES {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        for command in *commands {
            tools.run(command);
        }
        let before = state(&sandbox);
        assert_eq!(probe(&sandbox), *verdict, "{name}");
        let evidence = evidence(&sandbox);
        assert_eq!(evidence.detection.detected_backend(), *verdict, "{name}");
        assert!(evidence.uncounted.is_empty(), "{name}: {evidence:?}");
        let waited = sandbox.run(|| Detector::open().wait(Duration::ZERO));
        assert_eq!(
            waited.unwrap().unwrap().detected_backend(),
            *verdict,
            "{name}"
        );
        assert_eq!(state(&sandbox), before, "{name}");
    }
}

/// A node that cannot be read is not treated as empty.
#[test]
fn an_unreadable_backend_is_not_empty() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
    let verdict = sandbox.run(|| {
        // A separate thread, because its capabilities do not return.
        thread::scope(|scope| {
            let probe = scope.spawn(|| {
                caps::clear(None, caps::CapSet::Effective).unwrap();
                Detector::open().probe()
            });
            probe.join().unwrap()
        })
    });
    let detection = verdict.unwrap();
    assert_eq!(
        detection.detected_backend(),
        DetectedBackend::Unavailable,
        "{detection:?}"
    );
}

#[test]
fn the_evidence_counts_chains_and_rules() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    for command in [
        "iptables-nft -t nat -N KUBE-SERVICES",
        "iptables-nft -t nat -N KUBE-NODEPORTS",
        "iptables-nft -t nat -A KUBE-SERVICES -j KUBE-NODEPORTS",
        "iptables-nft -N cali-INPUT",
        "ip6tables-legacy -N AZURE-NPM",
        "ip6tables-legacy -A AZURE-NPM -j ACCEPT",
        "iptables-legacy -t nat -N CNI-DN-1",
    ] {
        tools.run(command);
    }
    let evidence = evidence(&sandbox);
    let reported: Vec<_> = evidence
        .owned
        .iter()
        .map(|owned| {
            format!(
                "{:?} {} {} {}: {} chains, {} rules, first {}",
                owned.backend,
                owned.family,
                owned.table,
                owned.prefix,
                owned.chains,
                owned.rules,
                owned.first
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            "Nft IPv4 filter cali-: 1 chains, 0 rules, first cali-INPUT",
            "Nft IPv4 nat KUBE-: 2 chains, 1 rules, first KUBE-SERVICES",
            "Legacy IPv4 nat CNI-: 1 chains, 0 rules, first CNI-DN-1",
            "Legacy IPv6 filter AZURE-NPM: 1 chains, 1 rules, first AZURE-NPM",
        ]
    );
    assert!(evidence.nft_loaded && !evidence.is_legacy_only());
    for (status, tables) in evidence.legacy.iter().zip([["nat"], ["filter"]]) {
        let Ok(Status::InUse(names)) = status else {
            panic!("{status:?}");
        };
        assert_eq!(*names, tables);
    }
}

/// A watch reports when kubelet has initialized, in either backend, and when the other backend is used later.
#[test]
fn verdicts_are_reported_as_they_change() {
    for (first, second) in [
        (Backend::Nft, Backend::Legacy),
        (Backend::Legacy, Backend::Nft),
    ] {
        let sandbox = sandbox();
        let make = |backend| {
            let mut iptables = Iptables::open(backend).unwrap();
            if backend == Backend::Legacy {
                iptables = iptables.with_lock(LockPolicy::None, chainwright::Retry::ONCE);
            }
            let kubelet = Kubelet::new().with_second_hint(true);
            kubelet.ensure(&mut iptables).unwrap();
        };
        let reported = sandbox.run(|| {
            let mut watch = Detector::open().watch(WatchOptions {
                interval: Duration::from_millis(5),
            });
            let mut reported = Vec::new();
            let far = Instant::now() + Duration::from_secs(600);
            for backend in [None, Some(first), Some(second)] {
                thread::scope(|scope| {
                    if let Some(backend) = backend {
                        let sandbox = &sandbox;
                        scope.spawn(move || sandbox.run(|| make(backend)).unwrap());
                    }
                    reported.push(
                        watch
                            .next_until(Some(far))
                            .unwrap()
                            .unwrap()
                            .detected_backend(),
                    );
                });
            }
            // Without a change nothing is reported.
            assert_eq!(watch.next_until(Some(Instant::now())).unwrap(), None);
            reported
        });
        let expected = match first {
            Backend::Nft => DetectedBackend::Nft,
            Backend::Legacy => DetectedBackend::Legacy,
        };
        assert_eq!(
            reported.unwrap(),
            [
                DetectedBackend::Undetermined,
                expected,
                DetectedBackend::Mixed
            ]
        );
    }
}

/// Even with a very long interval for the legacy tables.
#[test]
fn any_interval_can_be_waited_for() {
    let sandbox = sandbox();
    let reported = sandbox.run(|| {
        let mut watch = Detector::open().watch(WatchOptions {
            interval: Duration::MAX,
        });
        let now = Some(Instant::now());
        [watch.next_until(now), watch.next_until(now)].map(|reported| reported.unwrap().is_some())
    });
    assert_eq!(reported.unwrap(), [true, false]);
}

#[test]
fn waiting_ends_when_the_backend_is_determined() {
    let sandbox = sandbox();
    let verdict = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let waited = sandbox.run(|| Detector::open().wait(Duration::from_secs(600)));
            waited.unwrap().unwrap().detected_backend()
        });
        Tools::new(&sandbox).run("ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT");
        waiting.join().unwrap()
    });
    assert_eq!(verdict, DetectedBackend::Nft);
}

/// A second hint is not created, in either direction, unless requested; an existing one causes no refusal.
#[test]
fn a_second_hint_is_not_created_by_default() {
    for (there, wanted) in [
        (Backend::Nft, Backend::Legacy),
        (Backend::Legacy, Backend::Nft),
    ] {
        for tool in ["iptables", "ip6tables"] {
            let sandbox = sandbox();
            let tools = Tools::new(&sandbox);
            let tool = match there {
                Backend::Nft => format!("{tool}-nft"),
                Backend::Legacy => format!("{tool}-legacy"),
            };
            tools.run(&format!("{tool} -t mangle -N {}", kubelet::HINT));
            let before = state(&sandbox);
            let ensure = |kubelet: Kubelet| {
                let ensured = sandbox.run(|| {
                    let iptables = Iptables::open(wanted).unwrap();
                    let mut iptables =
                        iptables.with_lock(LockPolicy::None, chainwright::Retry::ONCE);
                    kubelet.ensure(&mut iptables)
                });
                ensured.unwrap()
            };
            let error = ensure(Kubelet::new()).unwrap_err();
            let Error::HintElsewhere {
                found_in: found,
                requested: refused,
                ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!((found, refused), (there, wanted));
            assert_eq!(state(&sandbox), before);
            assert!(
                !ensure(Kubelet::new().with_second_hint(true))
                    .unwrap()
                    .is_empty()
            );
            // Now both have one.
            assert!(ensure(Kubelet::new()).unwrap().is_empty());
            assert_eq!(probe(&sandbox), DetectedBackend::Mixed);
        }
    }
}
