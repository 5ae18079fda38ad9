//! `chainwright multicall`: links with the names of other programs.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note};

/// Make links with the names of nft and of iptables' programs
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Install(InstallArgs),
}

/// Make links to this program with the names of nft and of iptables' programs
///
/// A program that is called through such a link behaves like the one with that name: `nft`, `iptables`, `ip6tables`,
/// `iptables-save`, `iptables-restore`, `iptables-nft`, `iptables-legacy`, and others. The links are in DIRECTORY, for
/// instance one that comes first in $PATH.
///
/// Links to this program that exist already are left as they are. If DIRECTORY has another file with one of the names,
/// no link is made, and the exit code is 2.
#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    /// The directory of the links
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    made: Vec<&'static str>,
}

/// The names that this program recognizes.
const NAMES: &[&str] = &[
    "nft",
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
    "iptables-nft",
    "iptables-nft-save",
    "iptables-nft-restore",
    "ip6tables-nft",
    "ip6tables-nft-save",
    "ip6tables-nft-restore",
    "iptables-legacy",
    "iptables-legacy-save",
    "iptables-legacy-restore",
    "ip6tables-legacy",
    "ip6tables-legacy-save",
    "ip6tables-legacy-restore",
    "iptables-translate",
    "iptables-restore-translate",
    "ip6tables-translate",
    "ip6tables-restore-translate",
    "iptables-xml",
    "iptables-apply",
    "ip6tables-apply",
    "xtables-monitor",
];

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let Action::Install(InstallArgs { directory }) = &args.action;
    let failed = |path: &Path, error: &io::Error| {
        Error::Other(format!("{}: {error}", Printable(&path.to_string_lossy())))
    };
    let program =
        std::env::current_exe().map_err(|error| failed(Path::new("/proc/self/exe"), &error))?;
    fs::metadata(directory).map_err(|error| failed(directory, &error))?;
    let mut missing = Vec::new();
    let mut others = Vec::new();
    for &name in NAMES {
        let path = directory.join(name);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(name),
            Err(error) => return Err(failed(&path, &error)),
            Ok(_) if fs::read_link(&path).is_ok_and(|target| target == program) => {}
            Ok(_) => others.push(name),
        }
    }
    if let [first, rest @ ..] = &*others {
        note(&match rest.len() {
            0 => format!("the directory has another file named {first}"),
            more => {
                format!("the directory has other files named {first} and {more} more of the names")
            }
        });
        return Ok(Exit::Failed);
    }
    for name in &missing {
        let path = directory.join(name);
        symlink(&program, &path).map_err(|error| failed(&path, &error))?;
    }
    let mut out = Output::new();
    if json {
        out.json("multicall", &Document { made: missing })?;
    } else {
        for name in missing {
            writeln!(out, "{name}")?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}
