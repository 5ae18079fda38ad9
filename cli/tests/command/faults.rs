//! Runs every verb of the command with each of its system calls failing once, losing the datagram
//! that it would receive, or being the last call before the program is killed. The command ends,
//! reports what happened, and leaves the ruleset and its files in the old or the new state.
//!
//! By default a fixed sample of the faults is run; `CHAINWRIGHT_FAULTS=all` runs all of them.
mod injector;
mod scene;

use std::fs;
use std::path::Path;

use crate::common::iptables::open;
use crate::common::{connect, sandbox};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Family};
use chainwright::nft::Transaction;
use chainwright_kube::kubelet::Kubelet;
use injector::{Action, Fault, Kind, Run, run};
use scene::{NEW, OLD, Scene, State};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// A part of the name of every directory of these tests.
pub(crate) const DIRECTORY: &str = "chainwright-faults-";

/// By default this many faults of each command are tried, spread over all calls.
const FAULTS: usize = 90;

/// Returns the faults to try for one kind of system call.
fn actions(kind: Kind) -> &'static [Action] {
    use Action::{Drop, Fail, Kill, Swallow};
    match kind {
        Kind::Send => &[
            Fail(libc::ENOBUFS),
            Fail(libc::ENOMEM),
            Fail(libc::EINTR),
            Kill,
        ],
        Kind::Receive => &[
            Swallow,
            Drop(libc::ENOBUFS),
            Fail(libc::ENOBUFS),
            Fail(libc::ENOMEM),
            Fail(libc::EINTR),
            Fail(libc::EIO),
            Drop(libc::EIO),
            Kill,
        ],
        Kind::SetOption => &[
            Fail(libc::ENOMEM),
            Fail(libc::EINTR),
            Fail(libc::EPERM),
            Kill,
        ],
        Kind::GetOption => &[Fail(libc::ENOMEM), Fail(libc::EINTR), Kill],
        Kind::Socket => &[Fail(libc::EMFILE), Fail(libc::ENOBUFS), Kill],
        Kind::Open => &[
            Fail(libc::ENOMEM),
            Fail(libc::EINTR),
            Fail(libc::EMFILE),
            Fail(libc::EIO),
            Kill,
        ],
        Kind::Write => &[Fail(libc::ENOSPC), Fail(libc::EIO), Fail(libc::EINTR), Kill],
        Kind::Sync => &[Fail(libc::EIO), Fail(libc::ENOSPC), Kill],
        Kind::Rename => &[Fail(libc::EIO), Fail(libc::ENOSPC), Kill],
        Kind::Lock => &[Fail(libc::EINTR), Fail(libc::ENOLCK), Kill],
    }
}

/// The states that a failed command may leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// Only the old state: the command only reads.
    Old,
    /// The old or the new state.
    OldOrNew,
    /// The old or the new state; the command adds to the existing ruleset.
    Added,
    /// The old or the new state, for each legacy table by itself.
    EachTable,
}

/// Returns whether the state is one of those allowed.
fn is_whole(run: &Run, [state, old, new]: [&State; 3], leaves: Leaves) -> bool {
    let files = |path: &Path| {
        let now = state.files.get(path);
        now == old.files.get(path) || now == new.files.get(path)
    };
    // An interrupted backup can leave a temporary file next to the target.
    let stray = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(".chainwright-") && !old.files.contains_key(path)
    };
    let nft = state.nft == old.nft || (leaves != Leaves::Old && state.nft == new.nft);
    // The counters of a legacy table are written after the table is replaced.
    let lacks_counters = run.code.is_none() || run.err.contains("its counters were lost");
    let is_new = |at: usize| {
        let (table, new) = (&state.legacy[at], &new.legacy[at]);
        table == new || (lacks_counters && *table == without_counters(new))
    };
    let tables = 0..state.legacy.len();
    let legacy = state.legacy == old.legacy
        || state.legacy.len() == new.legacy.len()
            && match leaves {
                Leaves::Old => false,
                Leaves::OldOrNew | Leaves::Added => tables.clone().all(is_new),
                Leaves::EachTable => tables
                    .clone()
                    .all(|at| is_new(at) || Some(&state.legacy[at]) == old.legacy.get(at)),
            };
    let all = state.files.keys().chain(old.files.keys());
    nft && legacy && all.into_iter().all(|path| stray(path) || files(path))
}

/// Returns a table's text with all counters at zero.
fn without_counters(table: &str) -> String {
    let mut text = String::new();
    for part in table.split_inclusive('[') {
        let (counters, rest) = part.split_once(']').unwrap_or(("", part));
        if !counters.is_empty() {
            text += "0:0]";
        }
        text += rest;
    }
    text
}

/// Runs one command with each of its faults.
#[track_caller]
fn try_faults(scene: &Scene, arguments: &[&str], leaves: Leaves) {
    let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
    let old = scene.state();
    let right = run(&scene.sandbox, PROGRAM, &arguments, None);
    let new = scene.state();
    if new != old {
        scene.reset(&old);
    }
    let what = arguments.join(" ");
    assert!(
        !right.hung && right.code.is_some_and(|code| code < 2),
        "{what}: {right:?}"
    );
    assert_eq!(old == new, leaves == Leaves::Old, "{what} {right:?}");
    let mut faults: Vec<_> = (right.calls.iter().enumerate())
        .flat_map(|(call, &kind)| {
            actions(kind)
                .iter()
                .map(move |&action| Fault { call, action })
        })
        .collect();
    if std::env::var_os("CHAINWRIGHT_FAULTS").is_none_or(|value| value != "all") {
        let all = faults.len();
        // Spread evenly; for a command that only reads, also every lost datagram.
        let step = (all / FAULTS).max(1);
        let mut at = 0;
        faults.retain(|_| {
            at += 1;
            (at - 1) % step == 0
        });
    }
    let (mut injected, mut dishonest) = (0, Vec::new());
    for fault in faults {
        let run = run(&scene.sandbox, PROGRAM, &arguments, Some(fault));
        let state = scene.state();
        if state != old {
            scene.reset(&old);
        }
        if !run.injected {
            continue;
        }
        injected += 1;
        if let Err(reason) = judge(&run, fault, &right, [&state, &old, &new], leaves) {
            dishonest.push(format!(
                "{:?} {fault:?}: {reason}\n  exit {:?}, {}",
                right.calls[fault.call], run.code, run.err
            ));
        }
    }
    println!("{what}: {} calls, {injected} faults", right.calls.len());
    assert!(injected >= 50, "{what}: only {injected} faults injected");
    assert!(
        dishonest.is_empty(),
        "{what}: {}\n{}",
        dishonest.len(),
        dishonest.join("\n")
    );
}

/// Returns the words of an output, sorted: the kernel sometimes changes the order of a set's
/// elements.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<_> = text.split_whitespace().collect();
    words.sort_unstable();
    words
}

/// Checks the state that the command left and the messages that it printed.
fn judge(
    run: &Run,
    fault: Fault,
    right: &Run,
    [state, old, new]: [&State; 3],
    leaves: Leaves,
) -> Result<(), &'static str> {
    if run.hung {
        return Err("the command does not end");
    }
    if !is_whole(run, [state, old, new], leaves) {
        return Err("the state is neither the old nor the new one");
    }
    let Some(code) = run.code else {
        return match fault.action {
            Action::Kill => Ok(()),
            _ => Err("a signal killed the command"),
        };
    };
    let changed = (state.nft != old.nft) || (state.legacy != old.legacy);
    let done = state.nft == new.nft
        && state.legacy == new.legacy
        && state.files.keys().eq(new.files.keys());
    if code == right.code.unwrap_or(2) {
        if !done {
            return Err("the exit code is that of success, but the change was not made");
        }
        // The size and time of a backup differ between runs.
        if leaves == Leaves::Old && words(&run.out) != words(&right.out) {
            return Err("the listing differs");
        }
        return Ok(());
    }
    if code != 2 {
        return Err("unexpected exit code");
    }
    if run.err.is_empty() {
        return Err("the command fails without a message");
    }
    let unchanged = [
        "nothing was changed",
        "nothing was applied",
        "was not applied",
    ];
    if changed && unchanged.iter().any(|words| run.err.contains(words)) {
        return Err("the message denies a change that was made");
    }
    // Another process can add the same rules, and running the command twice adds them twice.
    let lost = matches!(fault.action, Action::Swallow | Action::Drop(_));
    if run.err.contains("it is unknown whether") {
        return match lost && leaves == Leaves::Added {
            true => Ok(()),
            false => Err("the message leaves open a result that the command can determine"),
        };
    }
    let reports = [", then failed: ", "was replaced"];
    if changed && !reports.iter().any(|words| run.err.contains(words)) {
        return Err("the message does not name the change that was made");
    }
    let replies = right.calls[fault.call] == Kind::Receive;
    if replies
        && !matches!(
            fault.action,
            Action::Fail(libc::EIO) | Action::Drop(libc::EIO)
        )
    {
        return Err("the command fails instead of repeating the lost request");
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------
//
// Commands that change something.

#[test]
fn restore_in_nf_tables() {
    let scene = Scene::new(Backend::Nft, OLD);
    let restore = ["apply", "--backend", "nft"];
    let file = scene.path("new");
    try_faults(&scene, &[&restore[..], &[&file]].concat(), Leaves::OldOrNew);
    let file = scene.path("added");
    try_faults(
        &scene,
        &[&restore[..], &["-n", &file]].concat(),
        Leaves::Added,
    );
}

#[test]
fn restore_in_legacy_tables() {
    let scene = Scene::new(Backend::Legacy, OLD);
    let lock = scene.path("lock");
    fs::write(&lock, "").unwrap();
    let restore = ["apply", "--backend", "legacy", "-c", "--lock", &lock];
    for (arguments, leaves) in [
        (&["new"][..], Leaves::EachTable),
        (&["-n", "added"], Leaves::EachTable),
        (&["-n", "added-nat"], Leaves::OldOrNew),
    ] {
        let (file, options) = arguments.split_last().unwrap();
        let file = scene.path(file);
        try_faults(&scene, &[&restore[..], options, &[&file]].concat(), leaves);
    }
}

#[test]
fn kubelet_ensure_and_remove() {
    let scene = Scene::new(Backend::Nft, "");
    try_faults(&scene, &["kubelet", "ensure", "-4"], Leaves::OldOrNew);
    let mut scene = scene;
    Kubelet::new().ensure(&mut connect(&scene.sandbox)).unwrap();
    scene.start = scene.snapshot();
    try_faults(&scene, &["kubelet", "remove", "-4"], Leaves::OldOrNew);
}

#[test]
fn backup_and_rollback() {
    let scene = Scene::new(Backend::Nft, OLD);
    let kept = scene.path("kept");
    try_faults(&scene, &["backup", &kept], Leaves::OldOrNew);
    // Over one that is there.
    scene.snapshot().save(&kept).unwrap();
    let mut nft = connect(&scene.sandbox);
    let mut iptables = open(&scene.sandbox, Backend::Nft);
    iptables
        .restore(Family::Ipv4, NEW, &RestoreOptions::default())
        .unwrap();
    let mut scene = scene;
    scene.start = scene.snapshot();
    try_faults(&scene, &["backup", &kept], Leaves::OldOrNew);
    scene.start.restore(&mut nft).unwrap();
    try_faults(&scene, &["rollback", &kept], Leaves::OldOrNew);
}

// ---------------------------------------------------------------------------------------------
//
// Commands that only read.

#[test]
fn listing_verbs_survive_faults() {
    let scene = Scene::new(Backend::Nft, OLD);
    for arguments in [
        &["chains", "--backend", "nft"][..],
        &["chains", "--backend", "nft", "--rules"],
        &["rules"],
        &["save", "-c", "--backend", "nft"],
    ] {
        try_faults(&scene, arguments, Leaves::Old);
    }
    let file = scene.path("new");
    try_faults(&scene, &["apply", "--dry-run", &file], Leaves::Old);
    let mut nft = connect(&scene.sandbox);
    let mut tx = Transaction::new();
    common_set(&mut tx);
    nft.commit(&tx).unwrap();
    let mut scene = scene;
    scene.start = scene.snapshot();
    try_faults(&scene, &["sets", "--elements"], Leaves::Old);
}

/// Adds a set with elements.
fn common_set(tx: &mut Transaction) {
    use chainwright::nft::{DataType, Element, Family, Set, Table};
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
    let keys: Vec<_> = (0..50u32).map(u32::to_be_bytes).collect();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&set).unwrap();
    tx.add_elements(&set.set_id(), keys.iter().map(Element::new))
        .unwrap();
}

#[test]
fn comparing_verbs_survive_faults() {
    let scene = Scene::new(Backend::Nft, OLD);
    let kept = scene.path("kept");
    scene.snapshot().save(&kept).unwrap();
    try_faults(&scene, &["diff", &kept], Leaves::Old);
    try_faults(&scene, &["rollback", "--dry-run", &kept], Leaves::Old);
    try_faults(&scene, &["kubelet", "check", "-4"], Leaves::Old);
    Kubelet::new().ensure(&mut connect(&scene.sandbox)).unwrap();
    let mut scene = scene;
    scene.start = scene.snapshot();
    try_faults(&scene, &["kubelet", "check", "-4"], Leaves::Old);
}

#[test]
fn lists_of_legacy_tables() {
    let scene = Scene::new(Backend::Legacy, OLD);
    try_faults(
        &scene,
        &["chains", "--backend", "legacy", "--rules"],
        Leaves::Old,
    );
    try_faults(&scene, &["save", "-c", "--backend", "legacy"], Leaves::Old);
}
