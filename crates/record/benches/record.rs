//! Measures recording: CPU time of the recorder compared with that of the monitor, which only reads the events, and
//! the size of the files for many generations of a large ruleset.
//!
//! `cargo bench -p chainwright-record [-- CHAINS GENERATIONS]`

#[path = "../../../benches/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use chainwright::nft::live::{Mirror, Monitor};
use chainwright::nft::{Connection, Scope};
use chainwright_bench::KubeProxy;
use chainwright_lang::Script;
use chainwright_record::{Archive, Moment, Recorder, RecorderOptions};
use common::{Result, counts, in_sandbox, loaded, verdict};
use nix::time::{ClockId, clock_gettime};

/// The goals: CPU time as a multiple of reading the events, and the size of the files.
const CPU: f64 = 1.10;
const SIZE: f64 = 1e9;
/// Transactions between two measurements.
const BURST: usize = 50;

fn main() -> Result {
    let given = counts(&[50_000, 10_000]);
    let [chains, generations] = given[..] else {
        return Err("expected two numbers: chains and generations".into());
    };
    in_sandbox(|| cpu(chains))?;
    in_sandbox(|| size(chains, generations))
}

/// Returns the CPU time of this thread that `work` takes.
fn cpu_of<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let start = now()?;
    let done = work()?;
    Ok((now()? - start, done))
}

/// A transaction that replaces this many rules of a service's chain, as kube-proxy does.
fn sync(nft: &mut Connection, number: usize, rules: usize) -> Result {
    let mut text = format!("add chain ip nat BENCH-{number}\nflush chain ip nat BENCH-{number}\n");
    for rule in 0..rules {
        text += &format!(
            "add rule ip nat BENCH-{number} ip saddr != 10.244.0.0/16 ip daddr 10.96.{}.{} tcp dport 443 counter jump \
             BENCH-{number}-MASQ comment \"default/service-{rule}:https cluster IP\"\n",
            rule / 250,
            rule % 250,
        );
    }
    let text = format!("add table ip nat\nadd chain ip nat BENCH-{number}-MASQ\n{text}");
    let script = Script::parse("sync", text)?;
    nft.commit(script.transaction(None)?.transaction())?;
    Ok(())
}

fn cpu(chains: usize) -> Result {
    let mut nft = loaded(chains)?;
    let directory = tempfile::tempdir()?;
    let mut monitor = Monitor::open()?;
    let mut mirror = Mirror::open(Connection::open()?, &Scope::all())?;
    let options = RecorderOptions::default();
    let mut recorder = Recorder::open(directory.path(), Connection::open()?, options)?;
    println!("\nCPU time for {BURST} transactions in {chains} chains, median of 31");
    for rules in [1, 20, 1000] {
        let (mut read, mut mirrored, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..31 {
            for number in 0..BURST {
                sync(&mut nft, number, rules)?;
            }
            let mut of_monitor = || {
                let drain = || {
                    while monitor.try_receive()?.is_some() {}
                    Ok(())
                };
                cpu_of(drain).map(|(time, ())| read.push(time))
            };
            let mut of_recorder =
                || cpu_of(|| Ok(recorder.record()?)).map(|(time, _)| recorded.push(time));
            // In turn first: the first one finds the messages in no cache.
            if round % 2 == 0 {
                of_monitor()?;
                of_recorder()?;
            } else {
                of_recorder()?;
                of_monitor()?;
            }
            let (time, _) = cpu_of(|| Ok(mirror.update()?))?;
            mirrored.push(time);
        }
        let median = |mut all: Vec<Duration>| {
            all.sort();
            all[all.len() / 2]
        };
        let base = median(read);
        println!("  {rules} rules each: monitor {base:.1?}");
        for (name, time) in [("mirror", median(mirrored)), ("recorder", median(recorded))] {
            let ratio = time.as_secs_f64() / base.as_secs_f64();
            println!(
                "    {name:<10} {time:>10.1?} {ratio:>8.3}{}",
                verdict(ratio, CPU)
            );
        }
    }
    Ok(())
}

fn size(chains: usize, generations: usize) -> Result {
    let mut nft = loaded(chains)?;
    let directory = tempfile::tempdir()?;
    let options = RecorderOptions::default();
    let mut recorder = Recorder::open(directory.path(), Connection::open()?, options)?;
    let first = nft.generation()?.number();
    for number in 0..generations {
        sync(&mut nft, number % 500, 20)?;
        recorder.record()?;
    }
    recorder.stop()?;
    let mut bytes = 0;
    for file in std::fs::read_dir(directory.path())? {
        bytes += file?.metadata()?.len();
    }
    let archive = Archive::open(directory.path())?;
    let size = bytes as f64 / 1e6;
    println!(
        "\n{generations} generations of a node with {chains} chains ({} rules), each replaces 20 rules of a service: {size:.0} MB \
         in {} files{}",
        KubeProxy { chains }.rules(),
        archive.segments().len(),
        verdict(bytes as f64, SIZE),
    );
    let start = Instant::now();
    let state = archive.state_at(Moment::Generation(first + 1))?;
    println!(
        "  the first generation is there: {}; found and rebuilt in {:.1?}",
        state.is_exact,
        start.elapsed()
    );
    let start = Instant::now();
    let count = archive.entries().filter(|entry| entry.is_ok()).count();
    println!("  {count} entries read in {:.1?}", start.elapsed());
    Ok(())
}
