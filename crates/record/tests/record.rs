//! Records of a real kernel's changes, read back.

chainwright_testing::sandbox_tests!();

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chainwright::nft::live::MonitorOptions;
use chainwright::nft::{Connection, DiffOptions, Scope, Snapshot};
use chainwright_lang::Script;
use chainwright_record::{
    Archive, Entry, Error, Moment, Presence, Reason, Recorder, RecorderOptions, Report,
};
use chainwright_testing::Sandbox;

/// A sequence of numbers that is the same in each run, unless `SEED` is set.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
        println!("SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

/// Returns the number of trials: this one, or that of an environment variable.
fn trials(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

fn commit(nft: &mut Connection, text: &str) -> Result<(), String> {
    let script = Script::parse("test", text).map_err(|error| error.to_string())?;
    let snapshot = nft
        .snapshot(Scope::all())
        .map_err(|error| error.to_string())?;
    let compiled = script
        .transaction(Some(&snapshot))
        .map_err(|error| error.to_string())?;
    nft.commit(compiled.transaction())
        .map(drop)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn run(nft: &mut Connection, text: &str) {
    if let Err(error) = commit(nft, text) {
        panic!("{text}: {error}");
    }
}

fn open(directory: &Path, options: RecorderOptions) -> Recorder {
    Recorder::open(directory, Connection::open().unwrap(), options).unwrap()
}

/// Records everything committed until now.
fn record(recorder: &mut Recorder) -> Vec<Report> {
    recorder.record().unwrap()
}

#[track_caller]
fn assert_same(recorded: &Snapshot, backup: &Snapshot, what: &str) {
    let diff = backup.diff(recorded, DiffOptions::default()).unwrap();
    assert!(diff.is_empty(), "{what}:\n{diff}");
    let handles = |snapshot: &Snapshot| {
        let mut all = Vec::new();
        for table in snapshot.tables() {
            for chain in table.chains() {
                all.push(chain.chain().handle());
                all.extend(chain.rules().map(|rule| rule.handle()));
            }
        }
        all
    };
    assert_eq!(handles(recorded), handles(backup), "{what}");
}

fn in_sandbox(test: impl FnOnce() + Send) {
    Sandbox::new().unwrap().run(test).unwrap();
}

/// A random change of a small ruleset, in nft's language. The kernel may refuse it.
fn random_change(random: &mut Random) -> String {
    let table = ["ip a", "ip b", "inet c"][random.below(3) as usize];
    let chain = format!("c{}", random.below(4));
    let port = random.below(1000) + 1;
    let mut text = format!("add table {table}\nadd chain {table} {chain}\n");
    for _ in 0..=random.below(4) {
        text += &match random.below(13) {
            0..=2 => format!("add rule {table} {chain} tcp dport {port} accept\n"),
            3 => format!("insert rule {table} {chain} tcp dport {port} drop\n"),
            4 => format!(
                "flush chain {table} {chain}\nadd rule {table} {chain} udp dport {port} accept\n"
            ),
            5 => format!("delete table {table}\n"),
            6 => format!(
                "add set {table} s {{ type inet_service; }}\nadd element {table} s {{ {port} }}\n"
            ),
            7 => format!("add set {table} s {{ type inet_service; }}\nflush set {table} s\n"),
            8 => format!(
                "add rule {table} {chain} tcp dport {{ {port}, 2000, 3000-4000 }} counter\n"
            ),
            9 => format!(
                "add chain {table} base {{ type filter hook input priority 0; policy accept; }}\n"
            ),
            10 => format!("flush chain {table} {chain}\n"),
            11 => format!("rename chain {table} {chain} c{}\n", random.below(6)),
            _ => format!("add counter {table} n{}\n", random.below(3)),
        };
        if text.ends_with(&format!("delete table {table}\n")) {
            break;
        }
    }
    text
}

/// The state at every recorded generation is the backup taken at that moment.
#[test]
fn states_are_the_backups_of_their_moments() {
    in_sandbox(|| {
        let mut random = Random::new();
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        run(
            &mut nft,
            "add table ip before\nadd chain ip before x\nadd rule ip before x accept",
        );
        // Small, so that there are several segments.
        let options = RecorderOptions {
            max_size: 1_000_000,
            ..RecorderOptions::default()
        };
        let mut recorder = open(directory.path(), options);
        let mut backups = vec![nft.snapshot(Scope::all()).unwrap()];
        let mut committed = 0;
        for _ in 0..trials("CHAINWRIGHT_RECORDED", 300) {
            let text = random_change(&mut random);
            if commit(&mut nft, &text).is_err() {
                continue;
            }
            committed += 1;
            record(&mut recorder);
            backups.push(nft.snapshot(Scope::all()).unwrap());
        }
        assert!(committed > 100, "{committed}");
        let archive = Archive::open(directory.path()).unwrap();
        assert!(archive.segments().len() > 1);
        let mut seen = 0;
        for backup in &backups {
            let generation = backup.generation().unwrap().number();
            let state = match archive.state_at(Moment::Generation(generation)) {
                Err(Error::UnknownGeneration { .. }) if seen == 0 => continue,
                state => state.unwrap(),
            };
            seen += 1;
            assert!(state.is_exact, "{generation}");
            assert_eq!(state.snapshot.generation().unwrap().number(), generation);
            assert_same(&state.snapshot, backup, &format!("generation {generation}"));
        }
        println!(
            "{seen} of {} states in {} segments",
            backups.len(),
            archive.segments().len()
        );
        assert!(seen > backups.len() / 4);
        // In one pass.
        let first = archive.segments()[0].start().unwrap();
        let mut player = archive.play(Moment::Sequence(first.sequence)).unwrap();
        let mut walked = 0;
        while let Some(entry) = player.advance().unwrap() {
            let generation = entry.generation().unwrap();
            let of = |backup: &&Snapshot| backup.generation().unwrap().number() == generation;
            let backup = backups.iter().find(of).unwrap();
            assert_same(player.snapshot(), backup, &format!("{entry:?}"));
            walked += 1;
        }
        assert!(walked + 1 >= seen, "{walked} {seen}");
    });
}

/// Several transactions at once: the state at the end is exact, and earlier ones are exact or marked as inexact.
#[test]
fn bursts_are_exact_at_their_end() {
    in_sandbox(|| {
        let mut random = Random::new();
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        let mut recorder = open(directory.path(), RecorderOptions::default());
        let mut backups = Vec::new();
        for _ in 0..40 {
            for _ in 0..random.below(8) {
                let _ = commit(&mut nft, &random_change(&mut random));
                backups.push(nft.snapshot(Scope::all()).unwrap());
            }
            record(&mut recorder);
            let state = Archive::open(directory.path())
                .unwrap()
                .state_at(Moment::Now)
                .unwrap();
            assert!(state.is_exact);
            assert_same(
                &state.snapshot,
                &nft.snapshot(Scope::all()).unwrap(),
                "after a burst",
            );
        }
        let archive = Archive::open(directory.path()).unwrap();
        let (mut exact, mut others) = (0, 0);
        for backup in &backups {
            let generation = backup.generation().unwrap().number();
            let state = archive.state_at(Moment::Generation(generation)).unwrap();
            if state.is_exact {
                assert_same(&state.snapshot, backup, &format!("generation {generation}"));
                exact += 1;
            } else {
                others += 1;
            }
        }
        println!("{exact} exact, {others} not");
        assert!(exact > others);
    });
}

#[test]
fn processes_and_moments() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        let mut recorder = open(directory.path(), RecorderOptions::default());
        assert!(matches!(
            recorder.take_reports()[..],
            [Report::Started {
                reason: Reason::First,
                ..
            }]
        ));
        run(&mut nft, "add table ip t");
        record(&mut recorder);
        let between = SystemTime::now();
        run(&mut nft, "add chain ip t c");
        record(&mut recorder);
        let archive = Archive::open(directory.path()).unwrap();
        let entries: Vec<Entry> = archive.entries().map(Result::unwrap).collect();
        assert_eq!(entries.len(), 3, "{entries:?}");
        let Entry::Transaction(transaction) = &entries[1] else {
            panic!("{entries:?}");
        };
        let process = &transaction.process;
        assert_eq!(process.presence, Presence::Present);
        assert_eq!(process.process_id, Some(std::process::id()));
        assert!(process.command[0].ends_with(std::env::args().next().unwrap().as_bytes()));
        assert!(!process.parents.is_empty() || std::os::unix::process::parent_id() <= 1);
        let table = |moment| archive.state_at(moment).unwrap().snapshot.tables().len();
        let chains = |moment| {
            let state = archive.state_at(moment).unwrap();
            let tables = state.snapshot.tables();
            tables.map(|table| table.chains().len()).sum::<usize>()
        };
        assert_eq!(table(Moment::Sequence(1)), 0);
        assert_eq!(
            (table(Moment::Time(between)), chains(Moment::Time(between))),
            (1, 0)
        );
        assert_eq!(chains(Moment::Now), 1);
        let early = between - Duration::from_secs(3600);
        assert!(matches!(
            archive.state_at(Moment::Time(early)),
            Err(Error::TooEarly { .. })
        ));
        assert!(
            archive
                .state_at(Moment::Generation(77_777))
                .unwrap_err()
                .is_not_found()
        );
        // Another recorder may not write there.
        let other = Recorder::open(
            directory.path(),
            Connection::open().unwrap(),
            RecorderOptions::default(),
        );
        assert!(matches!(other, Err(Error::Locked { .. })));
    });
}

/// A recorder that is started again continues, or records what it missed.
#[test]
fn restarts() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        let recorder = open(directory.path(), RecorderOptions::default());
        run(&mut nft, "add table ip t");
        recorder.stop().unwrap();
        let mut recorder = open(directory.path(), RecorderOptions::default());
        assert!(matches!(
            recorder.take_reports()[..],
            [Report::Continued { .. }]
        ));
        run(&mut nft, "add chain ip t c");
        recorder.stop().unwrap();
        run(&mut nft, "add chain ip t missed");
        let mut recorder = open(directory.path(), RecorderOptions::default());
        let reports = recorder.take_reports();
        assert!(
            matches!(
                reports[..],
                [Report::Started {
                    reason: Reason::Restarted,
                    ..
                }]
            ),
            "{reports:?}"
        );
        drop(recorder);
        let archive = Archive::open(directory.path()).unwrap();
        assert_eq!(archive.segments().len(), 2);
        let entries: Vec<Entry> = archive.entries().map(Result::unwrap).collect();
        let kinds: String = entries
            .iter()
            .map(|entry| match entry {
                Entry::Transaction(_) => 't',
                Entry::Start(_) => 's',
                Entry::Stop(_) => '.',
                _ => '?',
            })
            .collect();
        assert_eq!(kinds, "st.t.s");
        let Some(Entry::Start(start)) = entries.last() else {
            panic!("{entries:?}");
        };
        assert_eq!(start.after, entries[3].generation());
        assert_same(
            &archive.state_at(Moment::Now).unwrap().snapshot,
            &nft.snapshot(Scope::all()).unwrap(),
            "after a restart",
        );
    });
}

/// Lost events are a recorded gap, and the state after it is right.
#[test]
fn lost_events_are_a_gap() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        run(&mut nft, "add table ip t\nadd chain ip t c");
        let options = RecorderOptions {
            receive_buffer: 4096,
            ..RecorderOptions::default()
        };
        assert_ne!(
            options.receive_buffer,
            MonitorOptions::default().receive_buffer
        );
        let mut recorder = open(directory.path(), options);
        for port in 1..200 {
            run(
                &mut nft,
                &format!("add rule ip t c tcp dport {port} accept"),
            );
        }
        let reports = record(&mut recorder);
        let is_lost = |report: &Report| matches!(report, Report::Lost { .. });
        assert!(reports.iter().any(is_lost), "{reports:?}");
        run(&mut nft, "add rule ip t c drop");
        record(&mut recorder);
        let archive = Archive::open(directory.path()).unwrap();
        let entries: Vec<Entry> = archive.entries().map(Result::unwrap).collect();
        let gap = entries.iter().find_map(|entry| match entry {
            Entry::Gap(gap) => Some(gap),
            _ => None,
        });
        let gap = gap.expect("the gap is recorded");
        assert!(gap.through > gap.after);
        let is_resync =
            |entry: &Entry| matches!(entry, Entry::Start(start) if start.reason == Reason::Lost);
        assert!(entries.iter().any(is_resync), "{entries:?}");
        assert!(matches!(entries.last(), Some(Entry::Transaction(_))));
        let state = archive.state_at(Moment::Now).unwrap();
        assert!(state.is_exact);
        assert_same(
            &state.snapshot,
            &nft.snapshot(Scope::all()).unwrap(),
            "after a gap",
        );
        let within = archive.state_at(Moment::Sequence(gap.sequence)).unwrap();
        assert!(!within.is_exact);
    });
}

#[test]
fn the_ring_removes_the_oldest() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        run(&mut nft, "add table ip t\nadd chain ip t c");
        let options = RecorderOptions {
            max_size: 100_000,
            ..RecorderOptions::default()
        };
        let size = || -> u64 {
            let files = fs::read_dir(directory.path()).unwrap();
            files
                .map(|file| file.unwrap().metadata().unwrap().len())
                .sum()
        };
        let mut recorder = open(directory.path(), options);
        let mut removed = 0;
        for number in 0..600 {
            run(&mut nft, "add rule ip t c tcp dport 1 accept");
            if number % 40 == 39 {
                run(&mut nft, "flush chain ip t c");
            }
            let reports = record(&mut recorder);
            let is_removed = |report: &&Report| matches!(report, Report::Removed { .. });
            removed += reports.iter().filter(is_removed).count();
            assert!(size() <= options.max_size, "{}", size());
        }
        assert!(removed > 3, "{removed}");
        let archive = Archive::open(directory.path()).unwrap();
        assert!(archive.segments().len() > 2, "{:?}", archive.segments());
        assert!(archive.segments()[0].sequence() > 1);
        let state = archive.state_at(Moment::Now).unwrap();
        assert_same(
            &state.snapshot,
            &nft.snapshot(Scope::all()).unwrap(),
            "at the end",
        );
        let short = RecorderOptions {
            max_age: Duration::from_millis(1),
            ..options
        };
        recorder.stop().unwrap();
        let mut recorder = open(directory.path(), short);
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(5));
            run(&mut nft, "add rule ip t c tcp dport 1 accept");
            record(&mut recorder);
        }
        assert!(Archive::open(directory.path()).unwrap().segments().len() <= 2);
    });
}

/// Any damage is an error that names the file and the offset, or the end of what can be read; never a panic.
#[test]
fn damaged_files() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        let mut recorder = open(directory.path(), RecorderOptions::default());
        for text in [
            "add table ip t",
            "add chain ip t c",
            "add rule ip t c accept",
        ] {
            run(&mut nft, text);
            record(&mut recorder);
        }
        drop(recorder);
        let archive = Archive::open(directory.path()).unwrap();
        let path = archive.segments()[0].path().to_owned();
        let bytes = fs::read(&path).unwrap();
        let whole = archive.entries().count();
        assert_eq!(whole, 4);
        // Cut anywhere: complete entries are still there.
        let mut counts = Vec::new();
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let entries: Vec<_> = archive.entries().collect();
            let errors = entries.iter().filter(|entry| entry.is_err()).count();
            counts.push(entries.len() - errors);
            assert!(errors == 0 || entries.len() == 1, "{length}");
            let _ = archive.state_at(Moment::Now);
        }
        assert!(counts.is_sorted(), "{counts:?}");
        assert_eq!(counts.last(), Some(&3));
        // Changed anywhere.
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            fs::write(&path, &changed).unwrap();
            let read: Result<Vec<_>, _> = archive.entries().collect();
            let state = archive.state_at(Moment::Now);
            match (read, state) {
                // In the last record, or in its header: as if it was not written completely.
                (Ok(entries), Ok(_)) => assert!(entries.len() < whole, "{at}"),
                (Err(error), _) | (_, Err(error)) => {
                    assert!(
                        error.to_string().contains(&path.display().to_string()),
                        "{error}"
                    );
                }
            }
        }
        // A recorder cuts an incomplete record, and continues after a damaged file.
        fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        let mut recorder = open(directory.path(), RecorderOptions::default());
        let reports = recorder.take_reports();
        assert!(
            matches!(
                reports[..],
                [Report::Truncated { .. }, Report::Started { .. }]
            ),
            "{reports:?}"
        );
        drop(recorder);
        assert!(fs::metadata(&path).unwrap().len() < bytes.len() as u64 - 5);
        for entry in archive.entries() {
            entry.unwrap();
        }
    });
}

/// The recorder is killed at random moments: what was recorded stays, and the next one continues.
#[test]
fn kill_9_loses_at_most_the_last_transaction() {
    if let Some(directory) = std::env::var_os("CHAINWRIGHT_RECORD_INTO") {
        let mut recorder = open(Path::new(&directory), small());
        println!("ready");
        loop {
            recorder.wait(Duration::from_secs(10)).unwrap();
        }
    }
    in_sandbox(|| {
        let mut random = Random::new();
        let directory = tempfile::tempdir().unwrap();
        let mut nft = Connection::open().unwrap();
        run(&mut nft, "add table ip t\nadd chain ip t c");
        let (mut lost, mut torn) = (0, 0);
        for trial in 0..trials("CHAINWRIGHT_KILLS", 10) {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "kill_9_loses_at_most_the_last_transaction",
                    "--nocapture",
                ])
                .env("CHAINWRIGHT_RECORD_INTO", directory.path())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines =
                std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
            assert!(lines.any(|line| line.unwrap().contains("ready")));
            // All but the last one were seen in the files.
            let mut seen = nft.generation().unwrap().number();
            let commits = 1 + random.below(12);
            for number in 1..=commits {
                run(&mut nft, "add rule ip t c tcp dport 1 accept");
                if random.below(20) == 0 {
                    run(&mut nft, "flush chain ip t c");
                }
                let generation = nft.generation().unwrap().number();
                if number == commits {
                    std::thread::sleep(Duration::from_micros(random.below(3000)));
                    break;
                }
                let start = std::time::Instant::now();
                while last(directory.path()) != generation {
                    assert!(start.elapsed() < Duration::from_secs(60), "trial {trial}");
                }
                seen = generation;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let after = last(directory.path());
            assert!(after >= seen, "trial {trial}: {after} < {seen}");
            lost += usize::from(after != nft.generation().unwrap().number());
            let mut recorder = open(directory.path(), small());
            let reports = recorder.take_reports();
            let is_torn = |report: &Report| matches!(report, Report::Truncated { .. });
            torn += usize::from(reports.iter().any(is_torn));
            let is_damaged = |report: &Report| matches!(report, Report::Damaged { .. });
            assert!(!reports.iter().any(is_damaged), "{reports:?}");
            drop(recorder);
            let archive = Archive::open(directory.path()).unwrap();
            let state = archive.state_at(Moment::Now).unwrap();
            assert!(state.is_exact);
            assert_same(
                &state.snapshot,
                &nft.snapshot(Scope::all()).unwrap(),
                "after a kill",
            );
            for entry in archive.entries() {
                entry.unwrap();
            }
        }
        println!("{lost} kills lost the last transaction, {torn} left an incomplete record");
    });
}

/// Options with several segments.
fn small() -> RecorderOptions {
    RecorderOptions {
        max_size: 200_000,
        ..RecorderOptions::default()
    }
}

/// Returns the last recorded generation.
fn last(directory: &Path) -> u32 {
    let archive = Archive::open(directory).unwrap();
    match archive.state_at(Moment::Now) {
        Ok(state) => state.snapshot.generation().unwrap().number(),
        // The recorder has removed the oldest file since.
        Err(error) if error.is_not_found() => 0,
        Err(error) => panic!("{error:?}"),
    }
}

/// On a full disk the recorder reports that; when there is space again, it continues with a recorded gap.
#[test]
fn a_full_disk_is_a_gap() {
    in_sandbox(|| {
        let directory = tempfile::tempdir().unwrap();
        let small_disk = directory.path().join("disk");
        fs::create_dir(&small_disk).unwrap();
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        nix::mount::mount(
            Some("tmpfs"),
            &small_disk,
            Some("tmpfs"),
            nix::mount::MsFlags::empty(),
            Some("size=256k"),
        )
        .unwrap();
        let records = small_disk.join("records");
        let mut nft = Connection::open().unwrap();
        run(&mut nft, "add table ip t\nadd chain ip t c");
        let mut recorder = open(&records, RecorderOptions::default());
        fs::write(small_disk.join("other"), vec![1; 150_000]).unwrap();
        let mut reports = Vec::new();
        let mut tried = 0;
        while recorder.is_recording() {
            run(&mut nft, "add rule ip t c tcp dport 1 accept");
            reports.extend(record(&mut recorder));
            tried += 1;
            assert!(tried < 10_000);
        }
        assert!(
            matches!(reports.last(), Some(Report::Unwritable { .. })),
            "{reports:?}"
        );
        println!("full after {tried}: {}", reports.last().unwrap());
        // What was recorded can be read.
        let archive = Archive::open(&records).unwrap();
        for entry in archive.entries() {
            entry.unwrap();
        }
        let before = archive.locate(Moment::Now).unwrap();
        run(&mut nft, "add chain ip t missed");
        record(&mut recorder);
        std::thread::sleep(Duration::from_millis(1100));
        record(&mut recorder);
        assert!(!recorder.is_recording());
        fs::remove_file(small_disk.join("other")).unwrap();
        std::thread::sleep(Duration::from_millis(1100));
        let reports = record(&mut recorder);
        assert!(
            matches!(
                reports[..],
                [Report::Started {
                    reason: Reason::Unwritable,
                    ..
                }]
            ),
            "{reports:?}"
        );
        run(&mut nft, "add chain ip t later");
        record(&mut recorder);
        let archive = Archive::open(&records).unwrap();
        let entry = archive.entry(before + 1).unwrap();
        let Some(Entry::Start(start)) = entry else {
            panic!("{entry:?}");
        };
        assert_eq!(start.reason, Reason::Unwritable);
        assert!(start.after.unwrap() < start.generation);
        let state = archive.state_at(Moment::Now).unwrap();
        assert_same(
            &state.snapshot,
            &nft.snapshot(Scope::all()).unwrap(),
            "at the end",
        );
    });
}
