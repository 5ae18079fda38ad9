//! Fuzz targets for every parser of chainwright that handles bytes or text from outside.
//!
//! A target is a function of arbitrary bytes that panics when something is wrong: not only when a parser
//! crashes, but also when parsing and writing do not give the same result again. Each is in a file of
//! [`targets`]. The same functions are run
//!
//! - by cargo-fuzz, which is guided by coverage: `cargo fuzz run TARGET`;
//! - by a driver for any stable toolchain, without a C++ compiler, which applies random changes to the
//!   seeds: `cargo run -p chainwright-fuzz -- run`;
//! - by an ordinary test with earlier findings: `findings/`.

pub mod driver;
pub mod mutate;
pub mod seeds;
pub mod targets;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use libfuzzer_sys;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use mutate::InputFormat;

/// A parser and the properties to check.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its file and of its binary for cargo-fuzz.
    pub name: &'static str,
    /// The structure of its inputs.
    pub input_format: InputFormat,
    /// Panics if something is wrong with these bytes.
    pub run: fn(&[u8]),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Largest amount of memory that an input may take at any moment: a number of bytes, plus a number for
/// each byte of the input. A snapshot takes memory in segments of 4 MiB, a legacy table an eighth more
/// than its size.
const MEMORY: (u64, u64) = (48 << 20, 4096);
/// Largest CPU time that an input may take: a duration, plus one for each byte of the input. Generous,
/// because builds without optimization and with instrumentation are slow.
const TIME: (Duration, Duration) = (Duration::from_secs(2), Duration::from_micros(200));

impl Target {
    /// Looks up a target by name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        targets::ALL.iter().find(|target| target.name == name)
    }

    /// Runs an input within the limits of memory and time.
    ///
    /// # Panics
    /// If a property does not hold, or a limit is exceeded.
    pub fn check(&self, input: &[u8]) {
        let length = input.len() as u64;
        let start = thread_cpu_time();
        let mut outcome = Ok(());
        // A panic that unwinds through the measurement would never end it.
        let memory = allocation_counter::measure(|| {
            outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
        });
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
        let time = thread_cpu_time().saturating_sub(start);
        let limit = MEMORY.0 + MEMORY.1 * length;
        assert!(
            memory.bytes_max <= limit,
            "{} bytes of memory for an input of {length}",
            memory.bytes_max
        );
        let limit = TIME.0 + TIME.1 * u32::try_from(length).unwrap_or(u32::MAX);
        assert!(time <= limit, "{time:?} for an input of {length} bytes");
    }
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Into::into)
}

/// The binary of a target: under cargo-fuzz its `fuzz_target!`, otherwise one that runs the files in its
/// arguments.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| {
            $crate::targets::$name::TARGET.check(input)
        });

        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max_size: usize,
                                              seed: u32| {
            let fallback =
                |data: &mut [u8]| $crate::libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            $crate::mutate::for_libfuzzer(
                $crate::targets::$name::TARGET.input_format,
                data,
                size,
                max_size,
                seed,
                fallback,
            )
        });

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::driver::replay(&$crate::targets::$name::TARGET, std::env::args_os().skip(1))
        }
    };
}

chainwright_testing::sandbox_tests!();

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn known_findings_stay_fixed() {
        let findings = Path::new(env!("CARGO_MANIFEST_DIR")).join("findings");
        let mut replayed = 0;
        for directory in std::fs::read_dir(findings).unwrap() {
            let directory = directory.unwrap();
            let name = directory.file_name().into_string().unwrap();
            let target = Target::named(&name).unwrap_or_else(|| panic!("no target {name}"));
            for file in std::fs::read_dir(directory.path()).unwrap() {
                let path = file.unwrap().path();
                println!("{}", path.display());
                target.check(&std::fs::read(path).unwrap());
                replayed += 1;
            }
        }
        assert!(replayed > 0);
    }

    #[test]
    fn seeds_are_accepted() {
        let kernel_listings = seeds::kernel_listings();
        assert!(
            kernel_listings.len() > 40,
            "nft is missing: tests/setup installs it"
        );
        for target in targets::ALL {
            let seeds = seeds::all(target, &kernel_listings);
            assert!(seeds.len() > 2, "{target:?}: {}", seeds.len());
            for seed in seeds.iter().step_by(seeds.len().div_ceil(60)) {
                target.check(seed);
            }
        }
    }
}
