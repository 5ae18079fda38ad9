//! Boots Debian's kernels under qemu and runs the integration tests inside, as built here, as root and as a user
//! without privileges, with the host's tools.
//!
//!     cargo run -p integration-vm                   # the chosen tests, on every kernel
//!     cargo run -p integration-vm -- 5.10 6.1       # on these
//!     cargo run -p integration-vm -- --all 5.10     # every integration test
//!     cargo run -p integration-vm -- --test nft::sets --test nft::owned sid
//!     cargo run -p integration-vm -- --kept         # the table of the last results, without a run
//!
//! Needs `qemu-system-x86` and `busybox-static`, Debian's `apt-get` with its keyring, and `setpriv`. Installs nothing
//! and leaves the host's apt alone. Without access to `/dev/kvm` qemu emulates the processor, which takes many times as
//! long.

mod archive;
mod initramfs;
mod kernel;
mod machine;
mod report;
mod suite;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::report::Column;

/// Errors are only displayed to the user.
type Result<T> = std::result::Result<T, String>;

/// Runs the integration tests inside Debian's kernels.
#[derive(Debug, Parser)]
struct Arguments {
    /// `5.10`, `6.1`, `6.12`, `sid`, or `host` for the host's kernel; all if none is given
    kernels: Vec<Kernel>,
    /// Run every integration test, or every test of those given, instead of the default selection
    #[arg(long)]
    all: bool,
    /// Only these integration tests, by the names of program and file (`nft::sets` is `tests/nft/sets.rs`) or of the
    /// program alone; can be repeated
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// Only tests whose names contain this
    #[arg(long)]
    filter: Option<String>,
    /// Emulate the processor even where KVM works
    #[arg(long)]
    tcg: bool,
    /// Check the archive for newer kernels; by default the cached ones are used
    #[arg(long)]
    update: bool,
    /// Directory for kernels and results
    #[arg(long, value_name = "DIRECTORY")]
    cache: Option<PathBuf>,
    /// Time limit for one test program on one kernel
    #[arg(long, value_name = "SECONDS", default_value_t = 1200)]
    limit: u64,
    /// Memory of the machine
    #[arg(long, value_name = "MIB", default_value_t = 3072)]
    memory: u32,
    /// Processors of the machine
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    processors: u32,
    /// Do not run tests; create the table from the results of earlier runs
    #[arg(long)]
    kept: bool,
    /// Write the table as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("integration-vm: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether every test passed on every kernel.
fn run(arguments: &Arguments) -> Result<bool> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("the program was not built inside the checkout")?;
    let cache = match &arguments.cache {
        Some(cache) => cache.clone(),
        None => checkout.join("target/integration-vm"),
    };
    std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let cache = cache.canonicalize().map_err(|error| error.to_string())?;

    let kernels = match arguments.kernels.as_slice() {
        [] => Kernel::ALL.to_vec(),
        some => some.to_vec(),
    };
    let plan = suite::plan(
        suite::build(checkout, &arguments.tests, arguments.all)?,
        &arguments.tests,
        arguments.all,
        arguments.filter.as_deref(),
    )?;
    let limit = Duration::from_secs(arguments.limit);

    let mut columns = Vec::new();
    for kernel in kernels {
        let results = cache.join("results").join(kernel.name());
        if !arguments.kept {
            // The results of other tests stay.
            for program in &plan {
                program.remove_results(&results);
            }
            for file in ["started", "console", "dmesg"] {
                let _ = std::fs::remove_file(results.join(file));
            }
        }
        std::fs::create_dir_all(&results)
            .map_err(|error| format!("{}: {error}", results.display()))?;
        let release = match kernel.suite() {
            None => {
                if !arguments.kept {
                    machine::run_here(&plan, checkout, &results, limit)?;
                }
                here()?
            }
            Some(suite) => {
                let installed = kernel::fetch(&cache, kernel, suite, arguments.update)?;
                let machine = Machine {
                    kernel: &installed,
                    work: &cache,
                    results: &results,
                    memory: arguments.memory,
                    processors: arguments.processors,
                    emulate: arguments.tcg,
                };
                if !arguments.kept {
                    machine.run(&plan, checkout, limit)?;
                }
                installed.version.clone()
            }
        };
        let column = Column::read(kernel, release, &plan, &results, arguments.kept)?;
        eprint!("{}", column.summary(&results));
        columns.push(column);
    }
    let chosen = arguments.tests.is_empty() && !arguments.all;
    let left_out = chosen.then(suite::left_out);
    let markdown = report::markdown(&plan, &columns, left_out.as_deref());
    match &arguments.markdown {
        Some(file) => std::fs::write(file, &markdown)
            .map_err(|error| format!("{}: {error}", file.display()))?,
        None => print!("{markdown}"),
    }
    Ok(columns.iter().all(Column::passed))
}

/// The release of the host's kernel.
fn here() -> Result<String> {
    let file = "/proc/sys/kernel/osrelease";
    let release = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(release.trim().to_owned())
}

/// Runs a program of the host, which must succeed, and returns its standard output.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program}: {}\n{}", output.status, text.trim_end()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("the output of {program} is not UTF-8"))
}
