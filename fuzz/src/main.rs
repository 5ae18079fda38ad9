//! Runs the fuzz targets without cargo-fuzz, and creates their seeds.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chainwright_fuzz::{Target, driver, seeds, targets};
use clap::{Parser, Subcommand};

/// Fuzz targets for chainwright's parsers.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the targets.
    List,
    /// Apply random changes to the seeds and run the targets on them.
    Run {
        /// Targets to run; by default all.
        targets: Vec<String>,
        /// Seconds for each target.
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Seed of the random numbers; by default a different one each time.
        #[arg(long)]
        seed: Option<u64>,
        /// Continue after a failure.
        #[arg(long)]
        keep_going: bool,
    },
    /// Write the seeds of all targets to `fuzz/corpus/`, where cargo-fuzz looks for them.
    Seeds {
        /// Directory to write to instead.
        #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))]
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let named = |names: &[String]| -> Result<Vec<&'static Target>, ExitCode> {
        if names.is_empty() {
            return Ok(targets::ALL.iter().collect());
        }
        let find = |name: &String| {
            Target::named(name).ok_or_else(|| {
                eprintln!("unknown target `{name}`; `list` shows the targets");
                ExitCode::from(2)
            })
        };
        names.iter().map(find).collect()
    };
    match Arguments::parse().verb {
        Verb::List => {
            for target in targets::ALL {
                println!("{}", target.name);
            }
            ExitCode::SUCCESS
        }
        Verb::Run {
            targets,
            seconds,
            seed,
            keep_going,
        } => {
            let targets = match named(&targets) {
                Ok(targets) => targets,
                Err(code) => return code,
            };
            let seed = seed.unwrap_or_else(|| fastrand::u64(..));
            let kernel_listings = seeds::kernel_listings();
            let mut found = false;
            for target in targets {
                let seeds = seeds::all(target, &kernel_listings);
                let time = Duration::from_secs_f64(seconds);
                found |= !driver::run(target, &seeds, time, seed, keep_going);
            }
            if found {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Verb::Seeds { directory } => match seeds::write(&directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write the seeds to {}: {error}", directory.display());
                ExitCode::FAILURE
            }
        },
    }
}
