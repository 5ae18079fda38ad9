//! Time from a flush until kubelet's chains are complete again, compared with the time until a bare socket receives the
//! event; and the time to detect the backend that a node uses.
//!
//! `cargo bench --bench guard [-- CHAINS…]`

mod common;

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use chainwright::Retry;
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::nft::{self, Connection, Scope, Transaction};
use chainwright_bench::events::Listeners;
use chainwright_kube::declared::Declared;
use chainwright_kube::detect::{DetectedBackend, Detector};
use chainwright_kube::guard::{BackoffOptions, ChainGuard, Event, GuardOptions};
use chainwright_kube::kubelet::Kubelet;
use common::{Result, counts, in_sandbox, loaded};

/// Number of measured flushes.
const ROUNDS: usize = 1_000;
/// Number of flushes of legacy tables.
const LEGACY_ROUNDS: usize = 100;
/// The goals for a repair on nf_tables: median and 99th percentile.
const REPAIR: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(5)];
/// The goal for a detection.
const DETECTION: Duration = Duration::from_micros(200);
/// Number of measured detections.
const DETECTIONS: usize = 2_000;

fn main() -> Result {
    for chains in counts(&[10, 1_000, 10_000]) {
        in_sandbox(|| repair(chains))?;
    }
    in_sandbox(legacy)?;
    in_sandbox(|| detection(50_000))
}

/// Median and 99th percentile.
fn quantiles(times: &mut [Duration]) -> [Duration; 2] {
    times.sort_unstable();
    [times[times.len() / 2], times[times.len() * 99 / 100]]
}

fn print(what: &str, [median, p99]: [Duration; 2], goals: Option<[Duration; 2]>) {
    let verdict = match goals {
        None => String::new(),
        Some([of_median, of_p99]) => {
            let word = if median <= of_median && p99 <= of_p99 {
                "kept"
            } else {
                "MISSED"
            };
            format!("  goal {of_median:?}, {of_p99:?}: {word}")
        }
    };
    println!(
        "  {what:<44} {:>10} {:>10}{verdict}",
        format!("{median:.1?}"),
        format!("{p99:.1?}")
    );
}

fn fast_options() -> GuardOptions {
    GuardOptions {
        backoff: BackoffOptions {
            burst_gap: Duration::from_micros(100),
            repairs: usize::MAX,
            ..BackoffOptions::default()
        },
        ..GuardOptions::default()
    }
}

/// Rules like kubelet's, but without matches or targets of x_tables.
const PLAIN: &str = "*filter
:INPUT ACCEPT
:OUTPUT ACCEPT
:KUBE-FIREWALL -
-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP
COMMIT
";

/// Flushes kubelet's table, as `iptables -F` does, with this many chains of a kube-proxy.
///
/// Before the kernel accepts a rule with a match or target of x_tables, it frees what was deleted before, which waits
/// for an RCU grace period. So the baseline of a repair is a commit of the same rules' bytes right after the flush. The
/// goals apply to a set without such rules.
fn repair(chains: usize) -> Result {
    let mut nft = loaded(chains)?;
    println!(
        "\nflush of kubelet's table, with {chains} other chains, {ROUNDS} rounds: median, 99th percentile"
    );
    notification_time(&mut nft)?;
    let kubelet = Kubelet::new().declared();
    let plain = Declared::of_text(Family::Ipv4, PLAIN)?;
    for (what, declared, goals) in [
        ("kubelet's set", kubelet, None),
        ("rules without x_tables", plain, Some(REPAIR)),
    ] {
        println!(" {what}");
        repair_latency(&mut nft, declared, goals)?;
    }
    Ok(())
}

/// Measures the time until an event is received.
fn notification_time(nft: &mut Connection) -> Result {
    let kubelet = Kubelet::new();
    kubelet.ensure(&mut *nft)?;
    let flush = flush()?;
    let mut baseline = Vec::with_capacity(ROUNDS);
    let mut listeners = Listeners::open()?;
    let (sender, notification_time) = channel();
    let (go, rounds) = channel();
    let listening = thread::spawn(move || {
        for () in rounds {
            let done = listeners.bare().is_ok();
            if sender.send(done.then(Instant::now)).is_err() {
                break;
            }
        }
    });
    for _ in 0..ROUNDS {
        go.send(())?;
        thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        nft.commit(&flush)?;
        let end = notification_time
            .recv()?
            .ok_or("the bare socket lost events")?;
        baseline.push(end.duration_since(start));
        // The repair causes an event, too.
        go.send(())?;
        kubelet.ensure(&mut *nft)?;
        notification_time.recv()?;
    }
    drop(go);
    drop(listening.join());
    print(
        "from the commit to the event at a bare socket",
        quantiles(&mut baseline),
        None,
    );
    Ok(())
}

fn flush() -> Result<Transaction> {
    let mut flush = Transaction::new();
    flush.flush_table(nft::Family::IP, "filter")?;
    Ok(flush)
}

/// From the flush until everything is present again: by a guard, and by a program that has the bytes ready.
fn repair_latency(
    nft: &mut Connection,
    declared: Declared,
    goals: Option<[Duration; 2]>,
) -> Result {
    let flush = flush()?;
    nft.commit(&flush)?;
    declared.ensure(&mut *nft)?;
    let mut again = Transaction::new();
    let mut rules = nft.rules(Scope::table(nft::Family::IP, "filter"))?;
    while let Some(rule) = rules.try_next()? {
        let mut rule = rule.to_builder();
        rule.handle = None;
        rule.position = None;
        again.add(&rule)?;
    }
    drop(rules);
    let mut prepared = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        nft.commit(&flush)?;
        nft.commit(&again)?;
        prepared.push(start.elapsed());
    }
    assert!(declared.check(&mut *nft)?.is_empty());

    let (mut running, events) = {
        let guard = ChainGuard::open(declared.clone(), Backend::Nft, fast_options())?;
        start(guard)?
    };
    ready(&events)?;
    let (mut whole, mut took) = (Vec::new(), Vec::new());
    // It also reports what it created at first.
    assert!(running.is_alive(Duration::from_secs(10)));
    // It waits again after it has answered.
    thread::sleep(Duration::from_millis(50));
    let before = switches();
    thread::sleep(Duration::from_secs(1));
    let at_rest = switches().saturating_sub(before);
    for _ in 0..ROUNDS {
        thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        nft.commit(&flush)?;
        let (at, event) = events.recv()?;
        let Event::Repaired(repair) = event else {
            return Err(format!("{event:?}").into());
        };
        whole.push(at.duration_since(start));
        took.push(repair.took);
    }
    running.stop();
    assert!(declared.check(&mut *nft)?.is_empty());
    print(
        "the flush and the rules' bytes, prepared",
        quantiles(&mut prepared),
        None,
    );
    print(
        "from the flush to the restored set",
        quantiles(&mut whole),
        goals,
    );
    print(
        "  of it, from the event to the restored set",
        quantiles(&mut took),
        None,
    );
    println!("  wake-ups of the guard in a second at rest: {at_rest}");
    Ok(())
}

/// Flushes kubelet's legacy table, with a shorter interval than usual.
fn legacy() -> Result {
    let interval = Duration::from_millis(20);
    let options = GuardOptions {
        poll: interval,
        ..fast_options()
    };
    let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    let kubelet = Kubelet::new();
    let guard = ChainGuard::open(kubelet.declared(), Backend::Legacy, options)?;
    let (running, events) = start(guard.with_lock(LockPolicy::None, Retry::ONCE))?;
    ready(&events)?;
    let (mut whole, mut replace) = (Vec::new(), Vec::new());
    for round in 0..LEGACY_ROUNDS {
        // At a different moment of the interval each time.
        thread::sleep(interval + interval.mul_f64(round as f64 / LEGACY_ROUNDS as f64));
        let start = Instant::now();
        iptables.update(Family::Ipv4, "filter", |table| table.flush_all())?;
        let flushed = Instant::now();
        let (at, event) = events.recv()?;
        let Event::Repaired(_) = event else {
            return Err(format!("{event:?}").into());
        };
        replace.push(flushed.duration_since(start));
        whole.push(at.duration_since(flushed));
    }
    running.stop();
    println!(
        "\nflush of kubelet's legacy table, polled every {interval:?}, {LEGACY_ROUNDS} rounds"
    );
    let [median, p99] = quantiles(&mut replace);
    print("the flush: one reading and replacing", [median, p99], None);
    let goal = interval + p99;
    print(
        "from the flush to the restored set",
        quantiles(&mut whole),
        Some([goal, goal]),
    );
    Ok(())
}

/// Looks for the hint with this many chains in both backends.
fn detection(chains: usize) -> Result {
    let mut nft = loaded(chains)?;
    Kubelet::new().ensure(&mut nft)?;
    let mut legacy = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    legacy.update(Family::Ipv4, "nat", |table| {
        (0..chains).try_for_each(|number| table.new_chain(format!("KUBE-SVC-{number}")))
    })?;
    legacy.update(Family::Ipv4, "mangle", |table| table.new_chain("other"))?;
    let (mut probe_times, mut opened) = (Vec::new(), Vec::new());
    let mut detector = Detector::open();
    for _ in 0..DETECTIONS {
        let start = Instant::now();
        let verdict = detector.probe().detected_backend();
        probe_times.push(start.elapsed());
        assert_eq!(verdict, DetectedBackend::Nft);
        let start = Instant::now();
        Detector::open().probe();
        opened.push(start.elapsed());
    }
    println!(
        "\ndetection with {chains} chains in each backend, {DETECTIONS} rounds: median, 99th percentile"
    );
    let goal = Some([DETECTION; 2]);
    print("Detector::probe()", quantiles(&mut probe_times), goal);
    print("Detector::open() and look()", quantiles(&mut opened), None);
    let start = Instant::now();
    let evidence = detector.evidence();
    let took = start.elapsed();
    println!("  evidence(), {} counts: {took:.1?}", evidence.owned.len());
    Ok(())
}

type Running = chainwright_kube::guard::Running;

fn start(guard: ChainGuard) -> Result<(Running, Receiver<(Instant, Event)>)> {
    let (sender, events) = channel();
    let running =
        guard.start(move |notification| drop(sender.send((Instant::now(), notification.event))))?;
    Ok((running, events))
}

fn ready(events: &Receiver<(Instant, Event)>) -> Result {
    match events.recv()? {
        (_, Event::Ready { .. }) => Ok(()),
        (_, other) => Err(format!("{other:?}").into()),
    }
}

/// How often threads named `chainwright` ended a wait.
fn switches() -> u64 {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let of_guard = tasks.filter(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "chainwright")
    });
    let waits = of_guard.filter_map(|task| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    waits.sum()
}
