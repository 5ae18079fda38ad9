//! Shared by the integration tests. Each program uses a part of it.
#![allow(dead_code, reason = "each program uses its own part of this module")]

pub(crate) mod accounting;
pub(crate) mod arp;
pub(crate) mod child_process;
pub(crate) mod compare_mirror;
pub(crate) mod cost;
pub(crate) mod encodings;
pub(crate) mod iptables;
pub(crate) mod kernel;
pub(crate) mod needs;
pub(crate) mod packets;
pub(crate) mod plan_rulesets;
pub(crate) mod random;
pub(crate) mod read_only_thread;
pub(crate) mod rules;
pub(crate) mod rulesets;
pub(crate) mod save;
pub(crate) mod scripts;
pub(crate) mod tools;
pub(crate) mod transactions;
pub(crate) mod wire;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use chainwright::nft::live::{Monitor, MonitorOptions};
use chainwright::nft::{
    Chain, ChainFlags, Connection, Family, Rule, RuleFilter, Scope, Transaction,
};
use chainwright_testing::Sandbox;

/// Returns a path below the workspace's directory, which contains every package with tests.
pub(crate) fn in_workspace(path: impl AsRef<Path>) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut directories = package.ancestors();
    let root = directories.find(|directory| directory.join("tests/needs").exists());
    root.expect("tests/needs is there").join(path)
}

/// Why this process cannot create sandboxes.
static NO_SANDBOXES: OnceLock<String> = OnceLock::new();

/// Runs before `main`: the test harness starts threads, and a process of a user without privileges can become root in a
/// user namespace only while it has a single thread.
// SAFETY: on Linux std works before main; this uses only files, memory and standard error, and starts no thread.
#[ctor::ctor(unsafe)]
fn become_namespace_root() {
    if let Err(error) = chainwright_testing::become_namespace_root() {
        let reason = report(&error);
        eprintln!("the tests cannot create network namespaces: {reason}");
        let _ = NO_SANDBOXES.set(reason);
    }
}

/// Creates a sandbox; if that is impossible, the test fails with the reason.
#[track_caller]
pub(crate) fn sandbox() -> Sandbox {
    if let Some(reason) = NO_SANDBOXES.get() {
        panic!("cannot create network namespaces for tests: {reason}");
    }
    Sandbox::new().unwrap_or_else(|error| panic!("cannot create a sandbox: {}", report(&error)))
}

/// Opens a connection to the nf_tables of a sandbox.
#[track_caller]
pub(crate) fn connect(sandbox: &Sandbox) -> Connection {
    sandbox
        .run(Connection::open)
        .expect("cannot enter the sandbox")
        .unwrap_or_else(|error| panic!("cannot open a connection: {}", report(&error)))
}

/// Opens a monitor of the nf_tables of a sandbox.
#[track_caller]
pub(crate) fn watch(sandbox: &Sandbox) -> Monitor {
    watch_with(sandbox, MonitorOptions::default())
}

#[track_caller]
pub(crate) fn watch_with(sandbox: &Sandbox, options: MonitorOptions) -> Monitor {
    let monitor = sandbox.run(|| options.open());
    let monitor = monitor.expect("cannot enter the sandbox");
    monitor.unwrap_or_else(|error| panic!("cannot open a monitor: {}", report(&error)))
}

/// The rules of a chain, in order, with their handles.
#[track_caller]
pub(crate) fn rules_of(
    nft: &mut Connection,
    family: Family,
    table: &str,
    chain: &str,
) -> Vec<Rule<'static>> {
    let mut rules = Vec::new();
    let listing = nft.rules(RuleFilter::chain(family, table, chain)).unwrap();
    listing
        .for_each(|rule| rules.push(rule.to_builder().into_owned()))
        .unwrap();
    rules
}

/// A bound chain of the rule that jumps to it, with the number by which other operations of its transaction refer to
/// it.
pub(crate) fn bound_chain(family: Family, table: &'static str, id: u32) -> Chain<'static> {
    Chain {
        name: None,
        id: Some(id),
        flags: Some(ChainFlags::BINDING),
        ..Chain::new(family, table, "")
    }
}

/// A rule in the chain with this number.
pub(crate) fn rule_of_bound_chain(family: Family, table: &'static str, id: u32) -> Rule<'static> {
    Rule {
        chain: None,
        chain_id: Some(id),
        ..Rule::new(family, table, "")
    }
}

#[track_caller]
pub(crate) fn commit(nft: &mut Connection, tx: &Transaction) {
    if let Err(error) = nft.commit(tx) {
        panic!("{}", report(&error));
    }
}

/// Commits what `fill` adds to a transaction.
#[track_caller]
pub(crate) fn committed(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    commit(nft, &tx);
}

/// Waits until no table has an owner: a socket may be closed a moment after its process ends.
#[track_caller]
pub(crate) fn orphaned(nft: &mut Connection) {
    for _ in 0..10_000 {
        let mut owners = 0;
        let tables = nft.tables(Scope::all()).unwrap();
        let listed = tables.for_each(|table| owners += usize::from(table.owner().is_some()));
        if listed.is_ok() && owners == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the tables still have owners");
}

/// Waits for a tick of the kernel's clock. Only then does Linux 6.18 forget which start in an interval tree was added
/// last, even by a failed transaction; until then it refuses the end of another interval.
pub(crate) fn tick() {
    // The slowest clock ticks 100 times a second.
    std::thread::sleep(std::time::Duration::from_millis(15));
}

/// An error and its causes as one line.
pub(crate) use chainwright::internal::message_with_causes as report;

/// Returns the number in an environment variable.
pub(crate) fn number(name: &str) -> Option<usize> {
    let given = std::env::var(name).ok()?;
    let number = given.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}: {given:?} is not a number")))
}

/// How many times as many random rounds tests run as by default; `tests/nightly` sets 10.
pub(crate) fn thorough() -> usize {
    number("CHAINWRIGHT_THOROUGH").unwrap_or(1).max(1)
}

/// Returns the number in an environment variable, or else this one times [`thorough`].
pub(crate) fn from_env(name: &str, default: usize) -> usize {
    number(name).unwrap_or_else(|| default * thorough())
}

/// Runs a function when it is dropped, even when a test fails: stops threads that `thread::scope` would wait for.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}
