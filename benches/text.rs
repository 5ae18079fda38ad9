//! nft's language: a script from its text to the commit, compared with its bytes prepared beforehand; a ruleset from
//! the kernel to its text, compared with the same listings discarded; and the memory that a script takes, as a multiple
//! of its text. Also measures `nft`, if it is installed.
//!
//! The ruleset is that of kube-proxy's nftables mode, with SERVICES services of one endpoint each; the map has
//! ELEMENTS elements, each from an address to an address.
//!
//! `cargo bench --bench text [-- SERVICES ELEMENTS]`

mod common;

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use chainwright::nft::{Connection, Family, Scope, Snapshot, Transaction};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Cluster, Contender, alternate, alternate_prepared};
use chainwright_kube::service::{Layout, Services};
use chainwright_lang::{Listing, NftVersion, Options, Script};
use chainwright_testing::become_namespace_root;
use common::{BoxError, Result, counts, in_sandbox, report, verdict};

/// The goals: reading a ruleset's text, writing it, and reading a map's text, as multiples of their baselines; and the
/// memory that a script takes, as a multiple of its text.
const APPLY: f64 = 1.2;
const LIST: f64 = 1.5;
const MAP: f64 = 1.5;
const MEMORY: f64 = 3.0;

fn main() -> Result {
    become_namespace_root()?; // before any thread starts
    let numbers = counts(&[10_000, 1_000_000]);
    let &[services, elements] = &numbers[..] else {
        return Err("expected two numbers: services and elements".into());
    };
    // First, before any freed memory can be reused.
    memory(elements)?;
    let nft = Command::new("nft").arg("--version").output().is_ok();
    if !nft {
        println!("nft is not installed: measured without it");
    }
    let (mut ruleset, mut bytes) = (String::new(), 0);
    in_sandbox(|| {
        let snapshot = kube_proxy(services)?;
        let mut options = Options::default();
        options.nft_version = NftVersion::V1_0; // which every version of nft reads
        ruleset = Listing::new(&snapshot, &options).to_string();
        bytes = snapshot.byte_length();
        list(&snapshot, nft)
    })?;
    let title = format!("apply kube-proxy's nftables rules of {services} services");
    in_sandbox(|| apply(&title, &ruleset, nft, APPLY))?;
    let title = format!("apply a map of {elements} elements");
    in_sandbox(|| apply(&title, &map(elements), nft, MAP))
}

/// The ruleset of a kube-proxy with this many services.
fn kube_proxy(services: usize) -> Result<Snapshot> {
    let cluster = Cluster::new(services, 1);
    let mut all = Services::default();
    for number in 0..services {
        cluster.set(&mut all, number);
    }
    drop(Cluster::load(&mut all, Layout::Nftables, false)?);
    Ok(Connection::open()?.snapshot(Scope::all())?)
}

/// A map from addresses to addresses.
fn map(elements: usize) -> String {
    let mut text = String::from("table ip t {\n\tmap m {\n\t\ttype ipv4_addr : ipv4_addr\n");
    text += "\t\telements = { ";
    for number in 0..elements as u32 {
        let [key, data] = [0x0a00_0000, 0x6440_0000].map(|first| Ipv4Addr::from(first + number));
        text += &format!("{key} : {data},\n\t\t\t     ");
    }
    text + "}\n\t}\n}\n"
}

fn list(snapshot: &Snapshot, nft: bool) -> Result {
    let mut requests = Vec::new();
    for table in snapshot.tables() {
        let (family, name) = (table.table().family(), table.table().name().to_string());
        requests.push(Request::chains(family));
        let chains = table.chains();
        requests.extend(chains.map(|chain| {
            let chain = chain.chain().name().to_string();
            Request::rules_of(family, &name, &chain)
        }));
        let sets = table.sets();
        requests.extend(sets.map(|set| {
            let set = set.set().name().to_string();
            Request::elements(family, &name, &set)
        }));
    }
    let rules: usize = snapshot
        .tables()
        .map(|table| {
            table
                .chains()
                .map(|chain| chain.rules().len())
                .sum::<usize>()
        })
        .sum();
    let mut baseline = Baseline::open()?;
    let mut connection = Connection::open()?;
    let options = Options::default();
    let mut baseline = || {
        black_box(baseline.dump_each(&requests)?);
        Ok(())
    };
    let mut snapshot_alone = || {
        black_box(connection.snapshot(Scope::all())?);
        Ok(())
    };
    let mut connection = Connection::open()?;
    let mut text = || {
        let snapshot = connection.snapshot(Scope::all())?;
        let mut sink = std::io::sink();
        write!(sink, "{}", Listing::new(&snapshot, &options))?;
        Ok(())
    };
    let mut of_nft = || run(Command::new("nft").args(["list", "ruleset"]));
    let mut contenders: Vec<Contender<'_, BoxError>> = vec![
        ("baseline: replies discarded", &mut baseline),
        ("a snapshot", &mut snapshot_alone),
        ("a snapshot, and its text", &mut text),
    ];
    if nft {
        contenders.push(("nft list ruleset", &mut of_nft));
    }
    let measured = alternate(5, &mut contenders)?;
    let title = format!("list {rules} rules of kube-proxy in its nftables mode");
    report(&title, &measured, LIST);
    Ok(())
}

fn apply(title: &str, text: &str, nft: bool, goal: f64) -> Result {
    let mut connection = Connection::open()?;
    let mut baseline = Baseline::open()?;
    let script = Script::parse("a ruleset", text)?;
    let prepared = script
        .transaction(None)?
        .into_transaction()
        .datagram(<[u8]>::to_vec);
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty.flush_ruleset(Family::UNSPEC)?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ruleset.nft");
    fs::write(&path, text)?;
    let mut baseline = || Ok(baseline.commit(&prepared)?);
    let mut parsed = || {
        black_box(Script::parse("a ruleset", text)?);
        Ok(())
    };
    let mut ours = || {
        let script = Script::parse("a ruleset", text)?;
        Ok(connection.commit(script.transaction(None)?.transaction())?)
    };
    let mut of_nft = || run(Command::new("nft").arg("-f").arg(&path));
    let mut contenders: Vec<Contender<'_, BoxError>> = vec![
        ("baseline: the prepared bytes", &mut baseline),
        ("the text, read only", &mut parsed),
        ("from the text, then commit()", &mut ours),
    ];
    if nft {
        contenders.push(("nft -f", &mut of_nft));
    }
    let mut clean = || Ok(cleaner.commit(&empty)?);
    let measured = alternate_prepared(5, &mut clean, &mut contenders)?;
    let (length, bytes) = (text.len() as f64 / 1e6, prepared.len() as f64 / 1e6);
    report(
        &format!("{title} ({length:.1} MB of text, {bytes:.1} MB of messages)"),
        &measured,
        goal,
    );
    Ok(())
}

/// The growth of peak memory while a map's text becomes a transaction.
fn memory(elements: usize) -> Result {
    let text = map(elements);
    fs::write("/proc/self/clear_refs", "5")?; // resets the peak to the current value
    let before = most()?;
    let script = Script::parse("a map", &text)?;
    black_box(script.transaction(None)?);
    let grown = most()? - before;
    let ratio = (grown + text.len()) as f64 / text.len() as f64;
    println!(
        "memory of a map of {elements} elements, from its text to a transaction: {:.1} MB with the text, {ratio:.2} times \
         it{}",
        (grown + text.len()) as f64 / 1e6,
        verdict(ratio, MEMORY)
    );
    Ok(())
}

/// Peak memory of the process in bytes (`VmHWM` in `/proc/self/status`).
fn most() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    Ok(kilobytes.ok_or("the kernel does not report it")? * 1024)
}

fn run(command: &mut Command) -> Result {
    let status = command.stdout(Stdio::null()).status()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| "nft failed".into())
}
