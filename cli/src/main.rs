//! The command `chainwright`: parses its arguments, and prints text or JSON.
//!
//! Its exit codes: 0 success, 1 absent or different, 2 failed.

#![forbid(unsafe_code)]

mod apply;
mod behavior_diff;
mod bisect;
mod blame;
mod check;
mod completions;
mod confirm;
mod convert;
mod counts;
mod delete;
mod dialect;
mod diff;
mod exists;
mod expected;
mod explain;
mod get;
mod glob;
mod graph;
mod help;
mod iptables;
mod iptables_apply;
mod kube;
mod legacy_tables;
mod links;
mod log;
mod man;
mod metrics;
mod multicall;
mod nft;
mod nft_findings;
mod output;
mod packet;
mod programs;
mod progress;
mod record;
mod recorded;
mod renamed;
mod report;
mod ruleset_source;
mod sarif;
mod scope;
mod selection_words;
mod show;
mod snapshot;
mod top;
mod trace;
mod trace_output;
mod watch;
mod xtables_monitor;

use std::ffi::OsString;
use std::process::ExitCode;

use chainwright::netns::Netns;
use chainwright_lang::NftVersion;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use multicall::Invocation;
use output::{Error, Exit};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  not found, or different; with --confirm: undone
  2  failed, or done only in part; see standard error";

/// List, save, compare and repair a Linux node's packet-filter tables
///
/// Talks to the kernel directly: to nf_tables over netlink, to the legacy x_tables with getsockopt and setsockopt. Runs
/// no other program. Read-only verbs change nothing: they create no table and load no module. Reading and changing both
/// require CAP_NET_ADMIN over the network namespace: root has it, and so has every user in their own namespace.
///
/// Options that select tables (-4, -6, --family, --table, --backend) may precede the verb.
#[derive(Parser)]
#[command(name = "chainwright", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: Verb,

    /// Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for
    /// instance /proc/PID/ns/net
    #[arg(
        long,
        global = true,
        value_name = "NAME|PATH",
        add = ArgValueCompleter::new(completions::namespaces)
    )]
    netns: Option<OsString>,

    /// Write JSON instead of text: one document, or one for each event; see docs/json.md
    #[arg(long, global = true)]
    json: bool,

    /// Print nft's language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft
    /// 1.0.6, 1.1 for that of nft 1.1.7
    #[arg(long, global = true, value_name = "VERSION", value_parser = dialect::parser(), default_value_t)]
    nft_version: NftVersion,
}

#[derive(Subcommand)]
enum Verb {
    Get(get::Args),
    Exists(exists::Args),
    Diff(diff::Args),
    Graph(graph::Args),
    Trace(trace::Args),
    Explain(explain::Args),
    Report(report::Args),
    Check(check::Args),
    Apply(apply::Args),
    Snapshot(snapshot::Args),
    Delete(delete::Args),
    Convert(convert::Args),
    Confirm(confirm::verbs::ConfirmArgs),
    Top(top::Args),
    Metrics(metrics::Args),
    Watch(watch::Args),
    Record(record::Args),
    Log(log::Args),
    Show(show::Args),
    Blame(blame::Args),
    Bisect(bisect::Args),
    Kube(kube::Args),
    Multicall(links::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Nft(nft::Args),
    #[command(flatten)]
    Program(programs::Verb),
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(exit) = confirm::keeper::called(&words).or_else(|| programs::called(&words)) {
        return exit;
    }
    let mut command = <Command as CommandFactory>::command();
    if let Some(exit) = completions::answered(&words, &command) {
        return exit;
    }
    let called = Invocation::with(words, &command);
    if called.arguments.iter().any(|word| word == "--help") {
        command = help::compact(command, &called.arguments);
    }
    let parsed = command
        .try_get_matches_from(called.arguments)
        .and_then(|matches| Command::from_arg_matches(&matches));
    let command = match parsed {
        Ok(command) => command,
        Err(error) => {
            // If the output is closed, there is no reader of the error.
            let _ = error.print();
            let code = if error.use_stderr() {
                called.usage_exit_code
            } else {
                0
            };
            return code.into();
        }
    };
    let exit = run(&command).unwrap_or_else(|error| {
        error.report();
        Exit::Failed
    });
    exit.into()
}

fn run(command: &Command) -> Result<Exit, Error> {
    dialect::select(command.nft_version);
    // Opened before this process may change its user, who may not have access to the same files.
    let netns = command
        .netns
        .as_ref()
        .map(Netns::from_name_or_path)
        .transpose()?;
    if command.verb.runs_until_signal() {
        // Threads inherit the signal mask, so this must happen before other threads are started.
        kube::guard::block_signals()?;
    }
    if let Verb::Metrics(args) = &command.verb {
        args.bind()?;
    }
    match netns {
        None => command.verb.run(command.json),
        Some(netns) => netns.run(|| command.verb.run(command.json))?,
    }
}

impl Verb {
    /// Returns `true` if the verb ends when it receives a signal.
    fn runs_until_signal(&self) -> bool {
        match self {
            Self::Record(_) => true,
            Self::Metrics(args) => args.serves(),
            Self::Kube(args) => args.is_guard(),
            _ => false,
        }
    }

    fn run(&self, json: bool) -> Result<Exit, Error> {
        match self {
            Self::Get(args) => get::run(args, json),
            Self::Exists(args) => exists::run(args, json),
            Self::Diff(args) => diff::run(args, json),
            Self::Graph(args) => graph::run(args, json),
            Self::Trace(args) => trace::run(args, json),
            Self::Explain(args) => explain::run(args, json),
            Self::Report(args) => report::run(args, json),
            Self::Check(args) => check::run(args, json),
            Self::Apply(args) => apply::run(args, json),
            Self::Snapshot(args) => snapshot::run(args, json),
            Self::Delete(args) => delete::run(args, json),
            Self::Convert(args) => convert::run(args, json),
            Self::Confirm(args) => confirm::verbs::confirm(args, json),
            Self::Top(args) => top::run(args, json),
            Self::Metrics(args) => metrics::run(args, json),
            Self::Watch(args) => watch::run(args, json),
            Self::Kube(args) => kube::run(args, json),
            Self::Nft(args) => nft::run(args, json),
            Self::Record(args) => record::run(args),
            Self::Log(args) => log::run(args, json),
            Self::Show(args) => show::run(args, json),
            Self::Blame(args) => blame::run(args, json),
            Self::Bisect(args) => bisect::run(args, json),
            Self::Multicall(args) => links::run(args, json),
            Self::Completions(args) => completions::run(args),
            Self::Man(args) => man::run(args),
            Self::Program(program) => Ok(Exit::Code(program.run())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Command::command().debug_assert();
    }

    /// Checks that the table options are the same in every verb that has them.
    #[test]
    fn table_options_are_the_same_in_all_verbs() {
        fn check(command: &clap::Command, tried: &mut usize) {
            let mut reference = clap::Command::new("reference");
            reference = <crate::scope::Scope as clap::Args>::augment_args(reference);
            let describe = |option: &clap::Arg| {
                (
                    option.get_short(),
                    option.get_help().map(ToString::to_string),
                    option.get_long_help().map(ToString::to_string),
                    option.get_help_heading().map(str::to_owned),
                    option.get_value_names().map(<[_]>::to_vec),
                )
            };
            // They have the options of other programs, or convert a text of one family.
            if !["nft", "convert"].contains(&command.get_name())
                && chainwright::iptables::program::Program::named(command.get_name()).is_none()
            {
                for option in command.get_arguments() {
                    let name = option.get_long().unwrap_or_default();
                    if ["ipv4", "ipv6", "family", "backend", "table"].contains(&name) {
                        let expected = reference.get_arguments();
                        let expected = expected.filter(|one| one.get_long() == Some(name));
                        let expected: Vec<_> = expected.map(describe).collect();
                        assert_eq!(
                            expected,
                            [describe(option)],
                            "{} --{name}",
                            command.get_name()
                        );
                        *tried += 1;
                    }
                }
            }
            for verb in command.get_subcommands() {
                check(verb, tried);
            }
        }
        let mut tried = 0;
        check(&super::Command::command(), &mut tried);
        assert!(tried > 50, "{tried}");
    }

    /// The command accepts each command line of `docs/tasks.md`.
    #[test]
    fn tasks_are_valid_command_lines() {
        const PAGE: &str = include_str!("../../docs/tasks.md");
        let commands: Vec<_> = PAGE.split("`chainwright ").skip(1).collect();
        assert!(commands.len() > 20);
        for command in commands {
            let line = format!("chainwright {}", command.split('`').next().unwrap());
            let words = line.split(' ').map(|word| word.trim_matches('\''));
            let parsed = super::Command::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    /// Checks that a file of the package matches the output generated from the argument definitions. If the environment
    /// has `CHAINWRIGHT_WRITE_DOCS`, writes the file instead.
    #[track_caller]
    pub(crate) fn check_file(name: &str, made: &[u8]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if std::env::var_os("CHAINWRIGHT_WRITE_DOCS").is_some() {
            std::fs::write(&path, made).unwrap();
        }
        let there = std::fs::read(&path).unwrap_or_default();
        assert!(
            there == made,
            "{name} does not match the arguments: run CHAINWRIGHT_WRITE_DOCS=1 cargo test \
             -p chainwright-cli --bin chainwright"
        );
    }
}
