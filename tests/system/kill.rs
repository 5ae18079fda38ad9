//! A process that is killed at any moment of a backup, a rollback, a commit, a reconciliation or a mirror's
//! new read leaves the old state or the new one, complete.
//!
//! The killed process is this test binary, run again ([`victim`]). It writes `b` when it begins and `e`
//! when it has ended, so that the test knows for each kill whether it happened in between; only those
//! count.

mod live;
mod rulesets;

use crate::common::child_process;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::child_process::{Victim, notify};
use crate::common::random::Random;
use crate::common::{connect, from_env, report, sandbox};
use chainwright::nft::{Connection, Family, Scope, Snapshot};
use chainwright_testing::Sandbox;
use rulesets::{chains, change, formatted};
use tempfile::TempDir;

const IP: Family = Family::IP;

/// Number of kills that must happen during the operations of a test: this part of all.
fn kills(percent: usize) -> usize {
    (from_env("KILLS", 60) * percent).div_ceil(100)
}

// ---------------------------------------------------------------------------------------------
// The killed process.

/// Not a test itself: the process that the tests below start and kill.
#[test]
fn victim() {
    let Some(task) = child_process::task() else {
        return;
    };
    let words: Vec<_> = task.split(' ').collect();
    let mut nft = Connection::open().unwrap();
    match words[..] {
        ["save", from, to] => {
            let snapshot = Snapshot::load(from).unwrap();
            notify(b"b");
            snapshot.save(to).unwrap();
        }
        ["backup", to] => {
            notify(b"b");
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            snapshot.save(to).unwrap();
        }
        ["rollback", from] => {
            notify(b"b");
            let snapshot = Snapshot::load(from).unwrap();
            snapshot.restore(&mut nft).unwrap();
        }
        ["commit", from, to] => {
            let [one, two] = change(from, to);
            let mut tx = one;
            two.clone()
                .datagram(|datagram| tx.append(operations(datagram)).map(drop))
                .unwrap();
            notify(b"b");
            nft.commit(&tx).unwrap();
        }
        ["reconcile", to] => live::reconcile(&mut nft, to, notify),
        ["resync", to] => live::resync(nft, to, notify),
        // For the controls.
        ["save-in-place", from, to] => {
            let bytes = fs::read(from).unwrap();
            notify(b"b");
            let mut file = fs::File::create(to).unwrap();
            for part in bytes.chunks(512) {
                file.write_all(part).unwrap();
            }
        }
        ["commit-twice", from, to] => {
            let [one, two] = change(from, to);
            notify(b"b");
            nft.commit(&one).unwrap();
            nft.commit(&two).unwrap();
        }
        _ => panic!("{task}"),
    }
    child_process::end();
}

/// The messages between the first and the last one of a batch.
fn operations(datagram: &[u8]) -> &[u8] {
    let length = u32::from_ne_bytes(datagram[..4].try_into().unwrap()) as usize;
    &datagram[length..datagram.len() - 20]
}

// ---------------------------------------------------------------------------------------------
// The result.

/// The state that a killed process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Old,
    New,
    /// Neither, for the file or the ruleset.
    Broken,
}

/// A namespace with one of the two rulesets, and files with both.
struct Scene {
    sandbox: Sandbox,
    nft: Connection,
    directory: TempDir,
    /// Which of the two is in the kernel, or in the file `target`.
    now: usize,
    /// The lines of both.
    formatted: [Vec<String>; 2],
    /// The files with both.
    files: [Vec<u8>; 2],
    random: Random,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Scene {
    fn new() -> Self {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        let directory = tempfile::tempdir().unwrap();
        let mut both = Vec::new();
        for (name, other) in [("b", "a"), ("a", "b")] {
            for tx in change(other, name) {
                // At first there is nothing to delete.
                if let Err(error) = nft.commit(&tx) {
                    assert!(both.is_empty(), "{}", report(&error));
                }
            }
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            snapshot.save(directory.path().join(name)).unwrap();
            both.insert(0, formatted(&snapshot));
        }
        let formatted: [_; 2] = both.try_into().unwrap();
        assert!(formatted[0] != formatted[1]);
        let files = NAMES.map(|name| fs::read(directory.path().join(name)).unwrap());
        let scene = Self {
            sandbox,
            nft,
            now: 0,
            formatted,
            files,
            directory,
            random: Random::new(),
        };
        for file in &scene.files {
            assert!(file.len() > 1500 * chains(), "{}", file.len());
        }
        scene
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.directory.path().join(name);
        path.into_os_string().into_string().unwrap()
    }

    fn other(&self) -> usize {
        1 - self.now
    }

    /// The time of a task without a kill: the longest of some.
    fn measure(
        &mut self,
        task: impl Fn(&Self) -> String,
        check: impl Fn(&mut Self) -> Left,
    ) -> Duration {
        let mut longest = Duration::ZERO;
        for _ in 0..4 {
            let victim = Victim::start(&self.sandbox, "kill::victim", &task(self));
            let begun = victim.begun;
            assert!(victim.end(), "the victim should complete its task");
            longest = longest.max(begun.elapsed());
            assert_eq!(check(self), Left::New);
        }
        longest
    }

    /// Kills the task until this many kills happened during it, and returns the states. `check` determines
    /// the state and must repair a broken one.
    fn killed(
        &mut self,
        kills: usize,
        task: impl Fn(&Self) -> String,
        check: impl Fn(&mut Self) -> Left,
    ) -> Vec<Left> {
        let longest = self.measure(&task, &check);
        let (mut inside, mut after) = (Vec::new(), 0);
        // A measured run may have been delayed: too many kills would come after the end.
        let mut within = longest;
        // On a busy machine all of them may come late.
        while inside.len() < kills || !inside.contains(&Left::Old) && inside.len() < kills * 10 {
            let delay = self.random.within(within);
            let ended = Victim::start(&self.sandbox, "kill::victim", &task(self)).kill(delay);
            let left = check(self);
            match ended {
                false => {
                    inside.push(left);
                    within = match left {
                        Left::New => within.mul_f64(0.95),
                        Left::Old | Left::Broken => longest.min(within.mul_f64(1.05)),
                    };
                }
                true => {
                    assert_eq!(
                        left,
                        Left::New,
                        "a completed task should leave the new state"
                    );
                    after += 1;
                    within = within.mul_f64(0.9);
                    assert!(
                        after < 100 + kills * 10,
                        "too few kills happen during the task"
                    );
                }
            }
        }
        let count = |wanted| inside.iter().filter(|&&left| left == wanted).count();
        println!(
            "{longest:?}; {kills} kills during the task, {after} after its end: {} old, {} new, {} broken",
            count(Left::Old),
            count(Left::New),
            count(Left::Broken)
        );
        inside
    }

    /// The state of the file `target`, which contained `now`.
    fn file(&mut self) -> Left {
        let path = self.path("target");
        let bytes = fs::read(&path).unwrap();
        let loaded = Snapshot::load(&path);
        let left = if bytes == self.files[self.now] {
            Left::Old
        } else if let Ok(loaded) = &loaded {
            // A backup's header contains the time; the rest comes from the kernel.
            match formatted(loaded) == self.formatted[self.other()] {
                true => Left::New,
                false => Left::Broken,
            }
        } else {
            Left::Broken
        };
        // Either can be loaded, and nothing else.
        assert_eq!(loaded.is_ok(), left != Left::Broken);
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            // A kill between two system calls may leave this: it is complete, and there is at most one.
            match name.strip_prefix(".chainwright-") {
                Some(number) => {
                    assert_eq!(number.len(), 16, "{name}");
                    assert!(Snapshot::load(entry.path()).is_ok(), "{name}");
                }
                None => assert!(["a", "b", "target"].contains(&&name[..]), "{name}"),
            }
        }
        left
    }

    /// One more save, after which the scene contains no other files.
    fn assert_no_temporary_file_remains(&self) {
        let target = self.path("target");
        Snapshot::load(&target).unwrap().save(&target).unwrap();
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(["a", "b", "target"].contains(&&name[..]), "{name}");
        }
    }

    /// The state of the kernel, which had the ruleset `now` and this generation.
    fn ruleset(&mut self, before: u32) -> Left {
        let snapshot = self.nft.snapshot(Scope::all()).unwrap();
        let passed = snapshot.generation().unwrap().number().wrapping_sub(before);
        let lines = formatted(&snapshot);
        match (
            lines == self.formatted[self.now],
            lines == self.formatted[self.other()],
        ) {
            (true, false) => {
                assert_eq!(passed, 0, "an unchanged ruleset should keep its generation");
                Left::Old
            }
            (false, true) => {
                assert_eq!(passed, 1, "the ruleset should change in one step");
                Left::New
            }
            _ => Left::Broken,
        }
    }
}

/// All were old or new. Some were old, so some kills came before the decisive moment.
#[track_caller]
fn assert_whole(left: &[Left]) {
    assert!(!left.contains(&Left::Broken), "{left:?}");
    assert!(left.contains(&Left::Old), "{left:?}");
}

/// A snapshot in memory is saved over a file.
#[test]
fn a_killed_save_leaves_the_old_file_or_the_new_one() {
    let mut scene = Scene::new();
    fs::write(scene.path("target"), &scene.files[0]).unwrap();
    let left = scene.killed(
        kills(20),
        |scene| {
            let from = scene.path(NAMES[scene.other()]);
            format!("save {from} {}", scene.path("target"))
        },
        |scene| {
            let left = scene.file();
            if left == Left::New {
                scene.now = scene.other();
                // The saved file equals the loaded one.
                let bytes = fs::read(scene.path("target")).unwrap();
                assert!(bytes == scene.files[scene.now]);
            }
            left
        },
    );
    assert_whole(&left);
    scene.assert_no_temporary_file_remains();
}

/// The ruleset is read from the kernel and saved over a file with another one.
#[test]
fn a_killed_backup_leaves_the_old_file_or_the_new_one() {
    let mut scene = Scene::new();
    scene.now = 1; // in the file; the kernel has the other one
    fs::write(scene.path("target"), &scene.files[1]).unwrap();
    let generation = scene.nft.generation().unwrap();
    let left = scene.killed(
        kills(20),
        |scene| format!("backup {}", scene.path("target")),
        |scene| {
            let left = scene.file();
            if left == Left::New {
                fs::write(scene.path("target"), &scene.files[1]).unwrap();
            }
            left
        },
    );
    assert_whole(&left);
    scene.assert_no_temporary_file_remains();
    assert_eq!(scene.nft.generation().unwrap(), generation);
}

/// A check of the kernel's ruleset, which tracks its generation.
fn ruleset_check(scene: &mut Scene) -> impl Fn(&mut Scene) -> Left + use<> {
    let before = std::cell::Cell::new(scene.nft.generation().unwrap());
    move |scene| {
        let left = scene.ruleset(before.get().number());
        match left {
            Left::Old => {}
            Left::New => scene.now = scene.other(),
            Left::Broken => {
                let path = scene.path(NAMES[scene.now]);
                let snapshot = Snapshot::load(Path::new(&path)).unwrap();
                snapshot.restore(&mut scene.nft).unwrap();
            }
        }
        before.set(scene.nft.generation().unwrap());
        left
    }
}

/// A file is loaded and its ruleset restored over another one.
#[test]
fn a_killed_rollback_leaves_the_old_ruleset_or_the_new_one() {
    let mut scene = Scene::new();
    let check = ruleset_check(&mut scene);
    let left = scene.killed(
        kills(30),
        |scene| format!("rollback {}", scene.path(NAMES[scene.other()])),
        check,
    );
    assert_whole(&left);
}

/// One transaction that deletes and recreates everything.
#[test]
fn a_killed_commit_leaves_the_old_ruleset_or_the_new_one() {
    let mut scene = Scene::new();
    let check = ruleset_check(&mut scene);
    let left = scene.killed(
        kills(30),
        |scene| format!("commit {} {}", NAMES[scene.now], NAMES[scene.other()]),
        check,
    );
    assert_whole(&left);
}

// ---------------------------------------------------------------------------------------------
// Controls: operations that are not atomic are found broken.

/// Kills the task until a broken state was found.
#[track_caller]
fn assert_broken(
    scene: &mut Scene,
    task: impl Fn(&Scene) -> String,
    check: impl Fn(&mut Scene) -> Left,
) {
    for _ in 0..10 {
        if scene.killed(10, &task, &check).contains(&Left::Broken) {
            return;
        }
    }
    panic!("no kill left a partial state of a task in several steps");
}

#[test]
fn control_a_file_that_is_written_in_place_is_found_broken() {
    let mut scene = Scene::new();
    fs::write(scene.path("target"), &scene.files[0]).unwrap();
    assert_broken(
        &mut scene,
        |scene| {
            let from = scene.path(NAMES[scene.other()]);
            format!("save-in-place {from} {}", scene.path("target"))
        },
        |scene| {
            let left = scene.file();
            match left {
                Left::Old => {}
                Left::New => scene.now = scene.other(),
                Left::Broken => {
                    fs::write(scene.path("target"), &scene.files[scene.now]).unwrap();
                }
            }
            left
        },
    );
}

#[test]
fn control_a_change_in_two_commits_is_found_broken() {
    let mut scene = Scene::new();
    let before = std::cell::Cell::new(scene.nft.generation().unwrap());
    assert_broken(
        &mut scene,
        |scene| format!("commit-twice {} {}", NAMES[scene.now], NAMES[scene.other()]),
        |scene| {
            // Two commits are two generations, which is correct here.
            let passed = scene.nft.generation().unwrap().number() - before.get().number();
            let since = before.get().number() + passed / 2;
            let left = scene.ruleset(since);
            match left {
                Left::Old => {}
                Left::New => scene.now = scene.other(),
                Left::Broken => {
                    let path = scene.path(NAMES[scene.now]);
                    let snapshot = Snapshot::load(path).unwrap();
                    snapshot.restore(&mut scene.nft).unwrap();
                }
            }
            before.set(scene.nft.generation().unwrap());
            left
        },
    );
}
