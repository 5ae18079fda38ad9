//! The driver without cargo-fuzz: it applies random changes to seeds for a given time.
//!
//! It does not know which code an input reaches. Unlike libFuzzer it has no coverage, but its changes
//! know the structure of inputs ([`mutate`](crate::mutate)).

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fastrand::Rng;
use sha2::{Digest, Sha256};

use crate::Target;
use crate::mutate::mutated;

/// Time after which a running input ends the program.
const HANG: Duration = Duration::from_secs(60);

/// Runs a target on changed seeds for this long. Returns whether there were no findings. Findings are
/// written to `fuzz/artifacts/`, and the command that reproduces each to standard error. Ends at the
/// first finding, unless `keep_going`.
pub fn run(
    target: &Target,
    seeds: &[Vec<u8>],
    time: Duration,
    seed: u64,
    keep_going: bool,
) -> bool {
    let name = target.name;
    let artifacts = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("artifacts")
        .join(name);
    let current = artifacts.join("current");
    let file = fs::create_dir_all(&artifacts).and_then(|()| File::create(&current));
    let file = match file {
        Ok(file) => file,
        Err(error) => {
            eprintln!("cannot write {}: {error}", current.display());
            return false;
        }
    };
    let done = Arc::new(AtomicU64::new(0));
    watch(Arc::downgrade(&done), &current, name);
    let start = Instant::now();
    let mut run: u64 = 0;
    let mut found = 0;
    while start.elapsed() < time || run < seeds.len() as u64 {
        let input = match seeds.get(run as usize) {
            // First the seeds themselves.
            Some(seed) => seed.clone(),
            None => {
                let mut rng = Rng::with_seed(seed ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let empty = Vec::new();
                let one = rng.choice(seeds).unwrap_or(&empty);
                let other = rng.choice(seeds).unwrap_or(&empty);
                mutated(target.input_format, one, other, &mut rng)
            }
        };
        // After a fault that cannot be caught, such as a stack overflow, this file remains.
        let written = file
            .set_len(input.len() as u64)
            .and_then(|()| file.write_all_at(&input, 0));
        if let Err(error) = written {
            eprintln!("cannot write {}: {error}", current.display());
            return false;
        }
        if catch_unwind(AssertUnwindSafe(|| target.check(&input))).is_err() {
            let path = artifacts.join(format!("found-{}", short_hash(&input)));
            let _ = fs::write(&path, &input);
            eprintln!("{name}: failed in run {run} with seed {seed}");
            eprintln!(
                "    cargo run -p chainwright-fuzz --bin {name} -- {}",
                path.display()
            );
            found += 1;
            if !keep_going {
                break;
            }
        }
        run += 1;
        done.store(run, Ordering::Relaxed);
    }
    let _ = fs::remove_file(&current);
    println!(
        "{name}: {run} runs in {:.1} s from {} seeds, {found} findings (seed {seed})",
        start.elapsed().as_secs_f64(),
        seeds.len()
    );
    found == 0
}

/// Ends the program when an input takes too long.
fn watch(done: Weak<AtomicU64>, current: &Path, name: &'static str) {
    let current = PathBuf::from(current);
    std::thread::spawn(move || {
        let (mut last, mut since) = (u64::MAX, Instant::now());
        while let Some(done) = done.upgrade() {
            let now = done.load(Ordering::Relaxed);
            drop(done);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > HANG {
                eprintln!(
                    "{name}: an input takes longer than {HANG:?}: {}",
                    current.display()
                );
                std::process::exit(1);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

fn short_hash(input: &[u8]) -> String {
    let hash = Sha256::digest(input);
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Runs a target on files.
pub fn replay(target: &Target, files: impl Iterator<Item = OsString>) -> ExitCode {
    let mut replayed = 0;
    for file in files {
        match fs::read(&file) {
            Ok(input) => target.check(&input),
            Err(error) => {
                eprintln!("cannot read {}: {error}", Path::new(&file).display());
                return ExitCode::FAILURE;
            }
        }
        replayed += 1;
    }
    println!("{}: {replayed} inputs, no findings", target.name);
    ExitCode::SUCCESS
}
