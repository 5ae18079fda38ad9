//! The guard restores what disappears, and reports which process removed it.

mod counted;
mod race;

use std::fs;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::common::tools::Tools;
use crate::common::{committed, connect, sandbox};
use chainwright::Retry;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::nft;
use chainwright::nft::live::MonitorOptions;
use chainwright_kube::declared::Declared;
use chainwright_kube::guard::{
    AuditLog, BackoffOptions, ChainGuard, Event, GuardOptions, Repair, Running,
};
use chainwright_kube::kubelet::Kubelet;
use chainwright_testing::Sandbox;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Short times, so that tests need not wait long.
fn short_intervals() -> GuardOptions {
    GuardOptions {
        backoff: BackoffOptions {
            burst_gap: Duration::from_millis(5),
            retry_interval: Duration::from_millis(1),
            longest_retry: Duration::from_millis(5),
            ..BackoffOptions::default()
        },
        poll: Duration::from_millis(5),
        ..GuardOptions::default()
    }
}

/// Opens a guard in a sandbox.
fn open(
    sandbox: &Sandbox,
    declared: Declared,
    backend: Backend,
    options: GuardOptions,
) -> ChainGuard {
    let opened = sandbox.run(|| ChainGuard::open(declared, backend, options));
    opened
        .unwrap()
        .unwrap()
        .with_lock(LockPolicy::None, Retry::ONCE)
}

/// Starts a guard there.
fn start(
    sandbox: &Sandbox,
    declared: Declared,
    backend: Backend,
    options: GuardOptions,
) -> (Running, Receiver<Event>) {
    let guard = open(sandbox, declared, backend, options);
    let (sender, events) = channel();
    // The guard's thread belongs to the sandbox, as it would to the node.
    let running =
        sandbox.run(|| guard.start(move |notification| drop(sender.send(notification.event))));
    (running.unwrap().unwrap(), events)
}

#[track_caller]
fn ready(events: &Receiver<Event>) -> usize {
    match next(events) {
        Event::Ready { made } => made.len(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn next(events: &Receiver<Event>) -> Event {
    // Only a guard that does nothing takes this long.
    events.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[track_caller]
fn repaired(events: &Receiver<Event>) -> Repair {
    match next(events) {
        Event::Repaired(repair) => repair,
        other => panic!("{other:?}"),
    }
}

fn missing(sandbox: &Sandbox, declared: &Declared, backend: Backend) -> Vec<String> {
    let missing = sandbox.run(|| {
        declared
            .check(&mut Iptables::open(backend).unwrap())
            .unwrap()
    });
    missing.unwrap().iter().map(ToString::to_string).collect()
}

/// Removes all rules of a table, in a thread of this name.
fn flush(sandbox: &Sandbox, name: &str, table: &str) -> u32 {
    thread::scope(|scope| {
        let flusher = thread::Builder::new().name(name.into());
        let flushing = flusher.spawn_scoped(scope, || {
            let mut nft = connect(sandbox);
            committed(&mut nft, |tx| {
                tx.flush_table(nft::Family::IP, table).unwrap();
            });
            nft.generation().unwrap().number()
        });
        flushing.unwrap().join().unwrap()
    })
}

#[test]
fn a_flush_is_repaired_and_its_process_named() {
    let sandbox = sandbox();
    let declared = Kubelet::new().declared();
    let (running, events) = start(&sandbox, declared.clone(), Backend::Nft, short_intervals());
    assert_eq!(ready(&events), 12);
    // A change soon after a repair would belong to the same burst.
    thread::sleep(short_intervals().backoff.burst_gap);
    let generation = flush(&sandbox, "flusher", "filter");
    let repair = repaired(&events);
    let items: Vec<_> = repair.items.iter().map(ToString::to_string).collect();
    assert_eq!(
        items[1..],
        [
            "ip filter: -A OUTPUT -j KUBE-FIREWALL",
            "ip filter: -A INPUT -j KUBE-FIREWALL"
        ]
    );
    assert!(items[0].contains("-A KUBE-FIREWALL ! -s 127.0.0.0/8"));
    let [by] = &repair.by[..] else {
        panic!("{:?}", repair.by)
    };
    // The guard may have committed in between.
    assert!(by.generation.unwrap().number() <= generation);
    assert_eq!(by.name.as_ref().unwrap(), "flusher");
    // The thread ends after the flush: then only the kernel's report is available.
    if let Some(process) = by.process {
        assert_eq!(process, std::process::id());
        let words: Vec<_> = std::env::args().collect();
        assert!(by.command.is_empty() || by.command == words, "{by:?}");
    }
    assert!(!repair.trailing);
    assert_eq!(missing(&sandbox, &declared, Backend::Nft), [""; 0]);
    running.stop();
    // The state stays, and no more repairs happen.
    assert_eq!(missing(&sandbox, &declared, Backend::Nft), [""; 0]);
    flush(&sandbox, "flusher", "filter");
    assert_eq!(missing(&sandbox, &declared, Backend::Nft).len(), 3);
    assert!(events.recv().is_err());
}

/// Changes by others to undeclared objects wake the guard without a reaction; its own repairs do not affect it.
#[test]
fn undeclared_changes_are_ignored() {
    let sandbox = sandbox();
    let (mut running, events) = start(
        &sandbox,
        Kubelet::new().declared(),
        Backend::Nft,
        short_intervals(),
    );
    ready(&events);
    let tools = Tools::new(&sandbox);
    tools.run("iptables-nft -A INPUT -s 192.0.2.1 -j DROP");
    tools.run("iptables-nft -N ours");
    tools.run("iptables-nft -A ours -j DROP");
    tools.run("iptables-nft -F ours");
    tools.run("iptables-nft -X ours");
    tools.run("nft add table ip other");
    tools.run("nft delete table ip other");
    tools.run("iptables-nft -P INPUT DROP");
    // An undeclared rule in a built-in chain.
    tools.run("iptables-nft -D INPUT -s 192.0.2.1 -j DROP");
    assert!(running.is_alive(Duration::from_secs(60)));
    tools.run("iptables-nft -D INPUT -j KUBE-FIREWALL");
    // The first event is about a declared rule.
    assert_eq!(repaired(&events).items.len(), 1);
}

/// For a renamed chain the kernel reports only the new name.
#[test]
fn a_renamed_chain_is_reported_as_missing() {
    let sandbox = sandbox();
    let (_running, events) = start(
        &sandbox,
        Kubelet::new().declared(),
        Backend::Nft,
        short_intervals(),
    );
    ready(&events);
    Tools::new(&sandbox).run("iptables-nft -t mangle -E KUBE-IPTABLES-HINT renamed");
    let items = repaired(&events).items;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].to_string(), "ip mangle: chain KUBE-IPTABLES-HINT");
}

#[test]
fn an_idle_guard_does_not_wake_up() {
    let sandbox = sandbox();
    let (mut running, events) = start(
        &sandbox,
        Kubelet::new().declared(),
        Backend::Nft,
        short_intervals(),
    );
    ready(&events);
    flush(&sandbox, "flusher", "filter");
    repaired(&events);
    // When it answers, it has read all earlier events.
    assert!(running.is_alive(Duration::from_secs(60)));
    let switches = || {
        let mut switches = Vec::new();
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            // Threads of other tests may end meanwhile.
            let Ok(name) = fs::read_to_string(path.join("comm")) else {
                continue;
            };
            if name.trim() == "chainwright" && is_of(&path, &sandbox) {
                let status = fs::read_to_string(path.join("status")).unwrap();
                let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
                switches.push(lines.map(ToOwned::to_owned).collect::<Vec<_>>());
            }
        }
        switches
    };
    // Voluntary switches are completed waits. The guard may finish its work after it answered, later on a busy machine;
    // then nothing wakes it. A polling guard has no such period.
    let mut before = switches();
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(500));
        let after = switches();
        assert_eq!(after.len(), 1, "{after:?}");
        if before.len() == 1 && before[0][0] == after[0][0] {
            return;
        }
        before = after;
    }
    panic!("the guard woke in each of 20 half seconds: {before:?}");
}

/// Whether a thread is in the sandbox.
fn is_of(task: &std::path::Path, sandbox: &Sandbox) -> bool {
    let own = sandbox.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap());
    fs::read_link(task.join("ns/net")).is_ok_and(|netns| netns == own.unwrap())
}

/// Whether the kernel reports to this process who replaces legacy tables: auditing is on (`auditctl -e 1`), and this is
/// the initial network namespace, with its root. Determined by trying.
fn is_audited() -> bool {
    static IS_AUDITED: OnceLock<bool> = OnceLock::new();
    *IS_AUDITED.get_or_init(|| {
        let Ok(log) = AuditLog::open() else {
            return false;
        };
        if AuditLog::is_on() != Some(true) {
            return false;
        }
        Tools::new(&sandbox()).run("iptables-legacy -A INPUT -j ACCEPT");
        let mut polled = [PollFd::new(log.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(2000_u16)).unwrap() > 0
    })
}

/// Without auditing the guard polls, and names no process; `auditctl -e 1` makes this test cover the other half.
#[test]
fn a_legacy_change_is_attributed_if_audited() {
    let is_audited = is_audited();
    println!("audited: {is_audited}");
    let log = AuditLog::open();
    let sandbox = sandbox();
    let declared = Kubelet::new().declared();
    let options = GuardOptions {
        poll: Duration::from_millis(if is_audited { 10_000 } else { 5 }),
        ..short_intervals()
    };
    let mut guard = open(&sandbox, declared.clone(), Backend::Legacy, options);
    if let Ok(log) = log {
        guard = guard.with_audit(log);
    }
    let (sender, events) = channel();
    let running =
        sandbox.run(|| guard.start(move |notification| drop(sender.send(notification.event))));
    let running = running.unwrap().unwrap();
    assert_eq!(ready(&events), 12);
    thread::sleep(short_intervals().backoff.burst_gap);
    let tools = Tools::new(&sandbox);
    tools.run("iptables-legacy -F");
    let repair = repaired(&events);
    assert_eq!(repair.items.len(), 3);
    assert_eq!(!repair.by.is_empty(), is_audited, "{:?}", repair.by);
    for by in &repair.by {
        assert_eq!((by.generation, by.thread), (None, None));
        assert!(by.process.is_some());
    }
    // Processes of other tests, in their own namespaces, may have ended before the lookup.
    let mut names = repair.by.iter().filter_map(|by| by.name.as_ref());
    assert_eq!(names.any(|name| name == "iptables-legacy"), is_audited);
    assert_eq!(missing(&sandbox, &declared, Backend::Legacy), [""; 0]);
    if is_audited {
        // Only the audit log shows this change: size and number of entries stay the same.
        thread::sleep(short_intervals().backoff.burst_gap);
        tools.run("iptables-legacy -R INPUT 1 -j ACCEPT");
        assert_eq!(repaired(&events).items.len(), 1);
    }
    running.stop();
}

#[test]
fn a_text_is_kept_in_both_backends() {
    for (backend, tool) in [
        (Backend::Nft, "iptables-nft"),
        (Backend::Legacy, "iptables-legacy"),
    ] {
        let sandbox = sandbox();
        let text =
            "*filter\n:AGENT - [0:0]\n-I INPUT -j AGENT\n-A AGENT -s 192.0.2.1 -j DROP\nCOMMIT\n";
        let declared = Declared::of_text(Family::Ipv4, text).unwrap();
        let (running, events) = start(&sandbox, declared.clone(), backend, short_intervals());
        assert_eq!(ready(&events), 3);
        let tools = Tools::new(&sandbox);
        for (command, lost) in [
            ("-D INPUT -j AGENT", 1),
            ("-F AGENT", 1),
            ("-F", 2),
            ("-R AGENT 1 -j ACCEPT", 1),
        ] {
            tools.run(&format!("{tool} {command}"));
            let repair = repaired(&events);
            assert_eq!(repair.items.len(), lost, "{command}: {:?}", repair.items);
            assert_eq!(repair.by.is_empty(), backend == Backend::Legacy);
            for by in &repair.by {
                assert_eq!(by.name.as_ref().unwrap(), tool);
            }
            // A burst ends before the next one.
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(missing(&sandbox, &declared, backend), [""; 0]);
        // The rule that replaced one of its rules is not declared, and stays.
        assert!(
            tools
                .save(&format!("{tool}-save"))
                .contains("-A AGENT -j ACCEPT")
        );
        running.stop();
    }
}

#[test]
fn guard_backs_off_from_a_persistent_rival() {
    let sandbox = sandbox();
    let mut options = short_intervals();
    options.backoff.repairs = 4;
    options.backoff.backoff_time = Duration::from_secs(3600);
    let declared = Kubelet::new().declared();
    let (_running, events) = start(&sandbox, declared.clone(), Backend::Nft, options);
    ready(&events);
    for _ in 0..3 {
        flush(&sandbox, "rival", "filter");
        repaired(&events);
    }
    flush(&sandbox, "rival", "filter");
    let Event::BackedOff {
        missing: lost,
        by,
        rest,
    } = next(&events)
    else {
        panic!()
    };
    assert_eq!((lost.len(), rest), (3, options.backoff.backoff_time));
    assert_eq!(by.last().unwrap().name.as_ref().unwrap(), "rival");
    assert_eq!(missing(&sandbox, &declared, Backend::Nft).len(), 3);
}

#[test]
fn lost_events_are_recovered() {
    let sandbox = sandbox();
    let mut options = short_intervals();
    options.monitor = MonitorOptions {
        transaction: 64,
        ..options.monitor
    };
    let (_running, events) = start(&sandbox, Kubelet::new().declared(), Backend::Nft, options);
    ready(&events);
    let mut reported = Vec::new();
    flush(&sandbox, "flusher", "filter");
    loop {
        match next(&events) {
            // Its own changes are too large as well.
            Event::Lost { cause: what } => reported.push(what),
            Event::Repaired(repair) => {
                assert_eq!((repair.items.len(), repair.by.len()), (3, 0));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(!reported.is_empty());
}

#[test]
fn failing_repairs_are_retried_until_they_succeed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("nft add table ip filter { flags dormant ; }");
    let declared = Kubelet::new().declared();
    let (_running, events) = start(&sandbox, declared.clone(), Backend::Nft, short_intervals());
    let Event::Failed { error, .. } = next(&events) else {
        panic!()
    };
    assert!(error.contains("dormant"), "{error}");
    // Nothing is created while a part would have no effect.
    assert_eq!(missing_or_error(&sandbox, &declared), None);
    tools.run("nft delete table ip filter");
    // The same failure is not reported again.
    assert_eq!(ready(&events), 12);
}

fn missing_or_error(sandbox: &Sandbox, declared: &Declared) -> Option<usize> {
    let mut nft = connect(sandbox);
    declared.check(&mut nft).ok().map(|missing| missing.len())
}

#[test]
fn guard_runs_as_a_task() {
    for backend in [Backend::Nft, Backend::Legacy] {
        let sandbox = sandbox();
        let declared = Kubelet::new().declared();
        let guard = open(&sandbox, declared.clone(), backend, short_intervals());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (sender, events) = channel();
        let flushed = sandbox.netns();
        runtime.block_on(async {
            let task =
                tokio::spawn(guard.run(move |notification| drop(sender.send(notification.event))));
            let others = tokio::task::spawn_blocking({
                let sandbox = flushed.try_clone();
                move || {
                    let netns = sandbox.unwrap();
                    assert_eq!(ready(&events), 12);
                    let take_away = |iptables: &mut Iptables| {
                        iptables.update(Family::Ipv4, "filter", |table| table.flush_all())
                    };
                    netns
                        .run(move || {
                            let iptables = Iptables::open(backend).unwrap();
                            let mut iptables = iptables.with_lock(LockPolicy::None, Retry::ONCE);
                            take_away(&mut iptables).unwrap();
                            assert_eq!(repaired(&events).items.len(), 3);
                            assert!(declared.check(&mut iptables).unwrap().is_empty());
                        })
                        .unwrap();
                }
            });
            others.await.unwrap();
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        });
    }
}

#[test]
fn guard_creates_no_second_hint_chain_in_another_backend() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run("iptables-legacy -t mangle -N KUBE-IPTABLES-HINT");
    let (running, events) = start(
        &sandbox,
        Kubelet::new().declared(),
        Backend::Nft,
        short_intervals(),
    );
    let Event::Failed { error, .. } = next(&events) else {
        panic!()
    };
    assert!(
        error.contains("KUBE-IPTABLES-HINT is in the IPv4 mangle table of the legacy tables"),
        "{error}"
    );
    running.stop();
    assert_eq!(connect(&sandbox).generation().unwrap().number(), 1);
}
