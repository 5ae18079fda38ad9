//! The command `chainwright`: arguments in, text or JSON out.
//!
//! Its exit codes: 0 done, 1 absent or different, 2 could not be done.

#![forbid(unsafe_code)]

mod backup;
mod bench;
mod chains;
mod demo;
mod diff;
mod glob;
mod iptables;
mod kubelet;
mod legacy_tables;
mod output;
mod restore;
mod rollback;
mod rules;
mod save;
mod scope;
mod sets;

use std::ffi::OsString;
use std::process::ExitCode;

use chainwright::netns::{Netns, become_namespace_root};
use clap::{Parser, Subcommand};

use output::{Error, Exit};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  absent or different: nothing to list or to save, something of kubelet's missing, a difference
  2  could not be done, or only in part; standard error says why";

/// Lists, keeps, compares and repairs a Linux node's packet-filter tables, natively
///
/// Speaks nf_tables over netlink, and getsockopt and setsockopt to the legacy x_tables. No other program
/// is started, except by `bench`, which compares. Looking never creates a table. Looking and changing
/// take CAP_NET_ADMIN over the network namespace: root, or anybody inside a namespace of their own.
#[derive(Parser)]
#[command(name = "chainwright", version, after_help = EXIT_CODES)]
struct Command {
    #[command(subcommand)]
    verb: Verb,

    /// Work in this network namespace: a name as of `ip netns`, or (with a / in it) the path of a
    /// namespace's file, like /proc/PID/ns/net
    #[arg(long, global = true, value_name = "NAME|PATH")]
    netns: Option<OsString>,

    /// Write JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    Chains(chains::Args),
    Rules(rules::Args),
    Sets(sets::Args),
    Backup(backup::Args),
    Rollback(rollback::Args),
    Diff(diff::Args),
    Save(save::Args),
    Restore(restore::Args),
    Kubelet(kubelet::Args),
    Bench(bench::Args),
    Demo(demo::Args),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let exit = run(&command).unwrap_or_else(|error| {
        error.report();
        Exit::Failed
    });
    exit.into()
}

fn run(command: &Command) -> Result<Exit, Error> {
    // Opened before this process may become another user: that one may not see the same files.
    let netns = command
        .netns
        .as_ref()
        .map(Netns::from_name_or_path)
        .transpose()?;
    if matches!(command.verb, Verb::Bench(_) | Verb::Demo(_)) {
        // Their private namespaces. This must come before any other thread is started.
        become_namespace_root()?;
    }
    match netns {
        None => command.verb.run(command.json),
        Some(netns) => netns.run(|| command.verb.run(command.json))?,
    }
}

impl Verb {
    fn run(&self, json: bool) -> Result<Exit, Error> {
        match self {
            Self::Chains(args) => chains::run(args, json),
            Self::Rules(args) => rules::run(args, json),
            Self::Sets(args) => sets::run(args, json),
            Self::Backup(args) => backup::run(args, json),
            Self::Rollback(args) => rollback::run(args, json),
            Self::Diff(args) => diff::run(args, json),
            Self::Save(args) => save::run(args, json),
            Self::Restore(args) => restore::run(args, json),
            Self::Kubelet(args) => kubelet::run(args, json),
            Self::Bench(args) => bench::run(args, json),
            Self::Demo(args) => demo::run(args, json),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Command::command().debug_assert();
    }
}
