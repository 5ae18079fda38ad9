//! The race of a kubelet that starts while `systemctl restart iptables` runs, with the real tools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use chainwright::Retry;
use chainwright::iptables::Backend;
use chainwright::legacy::LockPolicy;
use chainwright_kube::guard::{AuditLog, Event, GuardOptions};
use chainwright_kube::kubelet::Kubelet;

use super::{is_audited, missing, open, sandbox};
use crate::common::from_env;
use crate::common::random::Random;
use crate::common::tools::Tools;

/// The commands of the scripts behind `systemctl restart iptables` on Azure Linux, in order, each with its
/// input.
fn restart(backend: &str) -> Vec<(String, String)> {
    let tools = ["iptables", "ip6tables"].map(|tool| format!("{tool}-{backend}"));
    let flush = [
        "-Z",
        "-F",
        "-t raw -F",
        "-t raw -X",
        "-t nat -F",
        "-t nat -X",
        "-t mangle -F",
        "-t mangle -X",
        "-X",
    ];
    let policies =
        |policy: &str| ["INPUT", "FORWARD", "OUTPUT"].map(|chain| format!("-P {chain} {policy}"));
    let mut all = Vec::new();
    let mut run =
        |tool: &str, options: &str| all.push((format!("{tool} {options}"), String::new()));
    for tool in &tools {
        flush.iter().for_each(|options| run(tool, options));
        policies("ACCEPT")
            .iter()
            .for_each(|options| run(tool, options));
    }
    for tool in &tools {
        policies("DROP")
            .iter()
            .for_each(|options| run(tool, options));
    }
    for tool in &tools {
        flush.iter().for_each(|options| run(tool, options));
    }
    for tool in &tools {
        let text = saved();
        let restore = format!("{}-restore", tool);
        all.push((restore, text));
    }
    all
}

/// The restored file of a node, from before a kubelet ran.
fn saved() -> String {
    "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\nCOMMIT\n\
     *mangle\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
     :POSTROUTING ACCEPT [0:0]\nCOMMIT\n\
     *filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n\
     -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A OUTPUT -j ACCEPT\nCOMMIT\n"
        .into()
}

/// Number of rounds for each backend; `CHAINWRIGHT_RACES` overrides it.
fn rounds() -> usize {
    from_env("CHAINWRIGHT_RACES", 6)
}

#[test]
fn kubelets_set_is_complete_after_each_restart_in_nf_tables() {
    let named = race(Backend::Nft, "nft");
    assert!(named > 0);
}

#[test]
fn kubelets_set_is_complete_after_each_restart_in_legacy_tables() {
    let named = race(Backend::Legacy, "legacy");
    // Elsewhere nothing reports the process.
    assert_eq!(named > 0, is_audited());
}

/// Runs the race this often. Returns the number of rounds in which a process was named.
fn race(backend: Backend, word: &str) -> usize {
    let mut random = Random::new();
    let mut named = 0;
    for round in 0..rounds() {
        let commands = restart(word);
        let last = commands.len() - 2; // the restores
        let begin = random.below(last);
        named += usize::from(one(backend, &commands, begin, round));
    }
    println!("{} rounds, a process was named in {named}", rounds());
    named
}

/// One round: the guard starts, and creates everything for the first time, when this command begins.
fn one(backend: Backend, commands: &[(String, String)], begin: usize, round: usize) -> bool {
    // The log of the initial network namespace, if this runs in it.
    let log = AuditLog::open().ok();
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let declared = Kubelet::new().declared();
    let options = GuardOptions {
        // If changes are reported, polling need not be fast.
        poll: Duration::from_millis(if is_audited() { 1000 } else { 20 }),
        ..GuardOptions::default()
    };
    let progress = AtomicUsize::new(0);
    let progress: &'static AtomicUsize = Box::leak(Box::new(progress));
    let (sender, events) = channel();
    let last = commands.len() - 2;
    let running = thread::scope(|scope| {
        let (go, begun) = channel();
        scope.spawn(|| {
            let go = go;
            for (index, (command, input)) in commands.iter().enumerate() {
                progress.store(index, Ordering::SeqCst);
                if index == begin {
                    go.send(()).unwrap();
                }
                // Like the scripts, it continues after a failure: chains that returned in between are not empty.
                let _ = tools.takes(command, input);
            }
        });
        begun.recv().unwrap();
        // The tools and the guard take the same lock, as on a node: without one, a change of the guard could replace a
        // table that a tool has restored meanwhile.
        let lock = LockPolicy::Path(tools.lock_file().into());
        let mut guard =
            open(&sandbox, declared.clone(), backend, options).with_lock(lock, Retry::default());
        if let Some(log) = log {
            guard = guard.with_audit(log);
        }
        let on = move |notification: chainwright_kube::guard::Notification| {
            let at = progress.load(Ordering::SeqCst);
            let _ = sender.send((at, notification.event));
        };
        sandbox.run(|| guard.start(on)).unwrap().unwrap()
    });
    // From here on only the guard makes changes.
    let start = Instant::now();
    while !missing(&sandbox, &declared, backend).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "round {round}, from {begin}: the guard does not complete the rules"
        );
        thread::sleep(Duration::from_millis(2));
    }
    running.stop();
    assert_eq!(
        missing(&sandbox, &declared, backend),
        [""; 0],
        "round {round}, from {begin}: rules are missing"
    );
    let save = tools.save(&format!(
        "iptables-{}-save",
        if backend == Backend::Nft {
            "nft"
        } else {
            "legacy"
        }
    ));
    assert!(
        save.contains("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT"),
        "{save}"
    );

    let mut is_early = false;
    let mut flushers = Vec::new();
    for (at, event) in events.try_iter() {
        match event {
            // The following restores removed what existed by then.
            Event::Ready { .. } => is_early = at < last,
            Event::Repaired(repair) => {
                for by in &repair.by {
                    let name = by.name.clone().unwrap();
                    assert!(
                        name.starts_with(b"iptables") || name.starts_with(b"ip6tables"),
                        "{by}"
                    );
                    flushers.push(name);
                }
                match backend {
                    Backend::Nft => assert!(!repair.by.is_empty(), "{repair:?}"),
                    // A poll may happen before the record arrives.
                    Backend::Legacy => assert!(repair.by.is_empty() || is_audited()),
                }
            }
            // A concurrent commit makes an attempt fail; it is retried.
            Event::Failed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    if backend == Backend::Nft && is_early {
        assert!(
            !flushers.is_empty(),
            "round {round}, from {begin}: no process was named"
        );
    }
    !flushers.is_empty()
}
