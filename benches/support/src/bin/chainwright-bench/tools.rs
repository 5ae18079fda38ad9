//! The programs to compare with. `chainwright-bench` runs them; the library and the command `chainwright` run no programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainwright_bench::{Contender, Measured, alternate_prepared, once};

use super::Error;

/// A program and its arguments.
pub(crate) type Tool<'a> = (&'static str, &'a [&'a str]);

/// Maximum number of rounds for tools: each takes seconds.
const ROUNDS: usize = 3;

/// Compares the installed tools with the baseline, in separate rounds, because a tool disturbs the caches for subsequent
/// code. The result includes the tools that are not installed.
pub(crate) fn compare(
    rounds: usize,
    prepare: &mut dyn FnMut() -> Result<(), Error>,
    baseline: Contender<'_, Error>,
    tools: &[Tool<'_>],
) -> Result<(Vec<Measured>, Vec<&'static str>), Error> {
    let (installed, missing): (Vec<&Tool<'_>>, Vec<_>) =
        tools.iter().partition(|(tool, _)| find(tool).is_some());
    let missing = missing.into_iter().map(|(tool, _)| *tool).collect();
    if installed.is_empty() {
        return Ok((Vec::new(), missing));
    }
    let mut runs: Vec<_> = installed
        .into_iter()
        .map(|(tool, arguments)| (name(tool, arguments), move || start(tool, arguments, None)))
        .collect();
    let (name, run) = baseline;
    let mut baseline = || run();
    let mut contenders: Vec<Contender<'_, Error>> = vec![(name, &mut baseline)];
    contenders.extend(runs.iter_mut().map(|(name, run)| {
        let contender: Contender<'_, Error> = (name, run);
        contender
    }));
    let mut measured = alternate_prepared(rounds.min(ROUNDS), prepare, &mut contenders)?;
    measured.remove(0);
    Ok((measured, missing))
}

/// Runs a tool once, because it takes minutes, and relates its time to a baseline that was measured before; `None` if it
/// is not installed. The legacy tools lock `lock`, not the host's file.
pub(crate) fn run_once(
    baseline: &Measured,
    (tool, arguments): Tool<'_>,
    lock: &Path,
) -> Result<Option<Measured>, Error> {
    if find(tool).is_none() {
        return Ok(None);
    }
    once(&name(tool, arguments), baseline, || {
        start(tool, arguments, Some(lock))
    })
    .map(Some)
}

/// Formats a tool and its arguments on one line, without paths of files.
fn name(tool: &str, arguments: &[&str]) -> String {
    let shown: Vec<_> = arguments
        .iter()
        .map(|argument| {
            if argument.contains('/') {
                "FILE"
            } else {
                argument
            }
        })
        .collect();
    format!("{tool} {} (process)", shown.join(" "))
}

/// Returns the path of an installed tool.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(tool))
        .find(|path| path.is_file())
}

/// Runs a tool to its end, and discards its output.
fn start(tool: &str, arguments: &[&str], lock: Option<&Path>) -> Result<(), Error> {
    let program = find(tool);
    let program = program.as_deref().map_or(OsStr::new(tool), Path::as_os_str);
    let mut command = Command::new(program);
    if let Some(lock) = lock {
        command.env("XTABLES_LOCKFILE", lock);
    }
    let status = command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| Error::from(format!("cannot start {tool}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::from(format!("{tool} failed: {status}")))
    }
}
