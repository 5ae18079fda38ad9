//! Every verb of the command, with every one of its system calls failing once, or losing what it would
//! have received, or being its last: the command ends, says the truth, and leaves the ruleset and its
//! files as they were or as they were to be.
//!
//! By default a part of all faults is tried, the same each time; all of them with
//! `CHAINWRIGHT_FAULTS=all`.
#![cfg(feature = "cli")]

mod common;
#[path = "faults/injector.rs"]
mod injector;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Family};
use chainwright::kube::kubelet::Kubelet;
use chainwright::netns::Sandbox;
use chainwright::nft::{Filter, Snapshot, Transaction};
use common::iptables::{open, our_save};
use common::{connect, sandbox};
use injector::{Action, Fault, Kind, Run, run};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");
/// In the name of every directory of these tests.
pub(crate) const DIRECTORY: &str = "chainwright-faults-";
/// By default so many faults of each command are tried, spread over all.
const FAULTS: usize = 90;

/// What a restore finds.
const OLD: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:OLD - [0:0]
[3:180] -A PREROUTING -s 10.0.0.0/8 -j OLD
[0:0] -A OLD -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [7:700]
:OUTPUT ACCEPT [0:0]
[1:60] -A INPUT -i lo -j ACCEPT
COMMIT
";
/// What it is to make of it.
const NEW: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:NEW - [0:0]
-A PREROUTING -s 192.0.2.0/24 -j NEW
-A NEW -p udp -m udp --dport 53 -j ACCEPT
-A NEW -j RETURN
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p icmp -j ACCEPT
COMMIT
";
/// What it is to add to it: one table after the other.
const ADDED: &str = "\
*nat
:ADDED - [0:0]
-A ADDED -j RETURN
-I PREROUTING -j ADDED
-D OLD -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*filter
-A INPUT -i lo -p tcp -j DROP
COMMIT
";
/// Of one table, which legacy tables are replaced by at once.
const ADDED_NAT: &str = "\
*nat
:ADDED - [0:0]
-A ADDED -j RETURN
-I PREROUTING -j ADDED
COMMIT
";

/// What the command works on.
struct Scene {
    sandbox: Sandbox,
    directory: TempDir,
    /// The ruleset of nf_tables at the start.
    start: Snapshot,
    legacy: bool,
}

/// All that a run may change: nf_tables' ruleset without handles, the legacy tables' text, and files by
/// their names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    nft: Vec<String>,
    legacy: Vec<String>,
    files: BTreeMap<PathBuf, Content>,
}

/// What is in a file.
#[derive(Debug, Clone)]
struct Content {
    bytes: Vec<u8>,
    /// What it shows, if it is a backup.
    shows: Option<Vec<String>>,
}

impl Content {
    fn of(path: &Path) -> Self {
        Self {
            bytes: fs::read(path).unwrap(),
            shows: Snapshot::load(path).ok().as_ref().map(shown),
        }
    }
}

/// Backups hold the time, and are the same if they show the same.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (&self.shows, &other.shows) {
            (Some(one), Some(other)) => one == other,
            _ => self.bytes == other.bytes,
        }
    }
}

impl Eq for Content {}

/// What a snapshot shows, without the handles and the order among sets and chains.
fn shown(snapshot: &Snapshot) -> Vec<String> {
    let mut parts = Vec::new();
    for table in snapshot.tables() {
        let name = format!("{:?}", table.table().name());
        parts.push(name.clone());
        for set in table.sets() {
            let elements = set.elements().map(|e| format!("{:?}", e.key_bytes()));
            let mut elements: Vec<_> = elements.collect();
            elements.sort();
            parts.push(format!("{name} set {} {elements:?}", set.set().name()));
        }
        for chain in table.chains() {
            let view = chain.chain();
            let mut part = format!("{name} {view} {:?} {:?}", view.hook(), view.policy());
            for rule in chain.rules() {
                // Behind the line with the handles.
                let rule = rule.to_string();
                part += rule.split_once('\n').unwrap_or_default().1;
            }
            parts.push(part);
        }
    }
    parts.sort();
    parts
}

impl Scene {
    /// With these tables in a backend.
    fn new(backend: Backend, tables: &str) -> Self {
        let sandbox = sandbox();
        let mut scene = Self {
            directory: TempDir::with_prefix(DIRECTORY).unwrap(),
            start: Snapshot::default(),
            legacy: backend == Backend::Legacy,
            sandbox,
        };
        if scene.legacy {
            scene.fill(tables);
        } else if !tables.is_empty() {
            let mut iptables = open(&scene.sandbox, Backend::Nft);
            let options = RestoreOptions {
                counters: true,
                ..RestoreOptions::default()
            };
            iptables.restore(Family::Ipv4, tables, &options).unwrap();
        }
        for (name, text) in [("new", NEW), ("added", ADDED), ("added-nat", ADDED_NAT)] {
            fs::write(scene.path(name), text).unwrap();
        }
        scene.start = scene.snapshot();
        scene
    }

    fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.into_os_string().into_string().unwrap()
    }

    fn snapshot(&self) -> Snapshot {
        connect(&self.sandbox).snapshot(Filter::all()).unwrap()
    }

    /// Puts these tables into the legacy backend.
    fn fill(&self, tables: &str) {
        let options = RestoreOptions {
            counters: true,
            ..RestoreOptions::default()
        };
        let mut iptables = open(&self.sandbox, Backend::Legacy);
        iptables.restore(Family::Ipv4, tables, &options).unwrap();
    }

    fn state(&self) -> State {
        let legacy = match self.legacy {
            false => Vec::new(),
            true => {
                let text = our_save(&self.sandbox, Backend::Legacy, Family::Ipv4);
                text.split_inclusive("COMMIT\n")
                    .map(str::to_owned)
                    .collect()
            }
        };
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let content = Content::of(&path);
            files.insert(path, content);
        }
        State {
            nft: shown(&self.snapshot()),
            legacy,
            files,
        }
    }

    /// Makes everything as it was.
    fn reset(&self, old: &State) {
        let mut nft = connect(&self.sandbox);
        // Also the order: a second run is to find what the first one found.
        let mut tx = Transaction::new();
        tx.flush_ruleset(chainwright::nft::Family::UNSPEC).unwrap();
        nft.commit(&tx).unwrap();
        self.start.restore(&mut nft).unwrap();
        if self.legacy {
            self.fill(&old.legacy.concat());
        }
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if !old.files.contains_key(&path) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, content) in &old.files {
            fs::write(path, &content.bytes).unwrap();
        }
    }
}

/// What is tried of one kind of system call.
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

/// What a command may leave when it fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// All as it was: it only looks.
    Old,
    /// That, or what it was to make.
    OldOrNew,
    /// The same, and what it makes is added to what there is.
    Added,
    /// Of each legacy table that.
    EachTable,
}

/// Whether a state is one of those that may be left.
fn is_whole(run: &Run, [state, old, new]: [&State; 3], leaves: Leaves) -> bool {
    let files = |path: &Path| {
        let now = state.files.get(path);
        now == old.files.get(path) || now == new.files.get(path)
    };
    // A backup that was broken off may leave its part beside the file, under a name of its own.
    let stray = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(".chainwright-") && !old.files.contains_key(path)
    };
    let nft = state.nft == old.nft || (leaves != Leaves::Old && state.nft == new.nft);
    // Counters follow after a legacy table was replaced.
    let lacks_counters = run.code.is_none() || run.err.contains("its counters are lost");
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

/// A table's text with all counters at zero.
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

/// Tries the faults of one command.
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
        // Spread evenly, and all of what is lost to one that only looks.
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
    assert!(injected >= 50, "{what}: only {injected}");
    assert!(
        dishonest.is_empty(),
        "{what}: {}\n{}",
        dishonest.len(),
        dishonest.join("\n")
    );
}

/// The words of an output, sorted: the kernel changes the order of a set's elements now and then.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<_> = text.split_whitespace().collect();
    words.sort_unstable();
    words
}

/// Whether what the command left and said is right.
fn judge(
    run: &Run,
    fault: Fault,
    right: &Run,
    [state, old, new]: [&State; 3],
    leaves: Leaves,
) -> Result<(), &'static str> {
    if run.hung {
        return Err("it does not end");
    }
    if !is_whole(run, [state, old, new], leaves) {
        return Err("what it leaves is neither old nor new");
    }
    let Some(code) = run.code else {
        return match fault.action {
            Action::Kill => Ok(()),
            _ => Err("it was killed"),
        };
    };
    let changed = (state.nft != old.nft) || (state.legacy != old.legacy);
    let done = state.nft == new.nft
        && state.legacy == new.legacy
        && state.files.keys().eq(new.files.keys());
    if code == right.code.unwrap_or(2) {
        if !done {
            return Err("it is not done");
        }
        // A backup's size and time are not the same each time.
        if leaves == Leaves::Old && words(&run.out) != words(&right.out) {
            return Err("it lists something else");
        }
        return Ok(());
    }
    if code != 2 {
        return Err("another exit code");
    }
    if run.err.is_empty() {
        return Err("it does not say why");
    }
    let unchanged = [
        "nothing was changed",
        "nothing was applied",
        "was not applied",
    ];
    if changed && unchanged.iter().any(|words| run.err.contains(words)) {
        return Err("it says that nothing was changed");
    }
    // Rules that were added can be somebody else's; whatever is the same done twice is done twice.
    let lost = matches!(fault.action, Action::Swallow | Action::Drop(_));
    if run.err.contains("cannot be known") {
        return match lost && leaves == Leaves::Added {
            true => Ok(()),
            false => Err("it could be known"),
        };
    }
    let tells = ["replaced: ", "was replaced"];
    if changed && !tells.iter().any(|words| run.err.contains(words)) {
        return Err("it fails and does not say what was changed");
    }
    let replies = right.calls[fault.call] == Kind::Receive;
    if replies
        && !matches!(
            fault.action,
            Action::Fail(libc::EIO) | Action::Drop(libc::EIO)
        )
    {
        return Err("what was lost was not asked for again");
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------
// What changes something.

#[test]
fn restore_in_nf_tables() {
    let scene = Scene::new(Backend::Nft, OLD);
    let restore = ["restore", "--backend", "nft"];
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
    let restore = ["restore", "--backend", "legacy", "-c", "--lock", &lock];
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
// What only looks.

#[test]
fn lists() {
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
    try_faults(&scene, &["restore", "-t", &file], Leaves::Old);
    let mut nft = connect(&scene.sandbox);
    let mut tx = Transaction::new();
    common_set(&mut tx);
    nft.commit(&tx).unwrap();
    let mut scene = scene;
    scene.start = scene.snapshot();
    try_faults(&scene, &["sets", "--elements"], Leaves::Old);
}

/// A set with elements.
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
fn comparisons() {
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
