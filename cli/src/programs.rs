//! iptables' programs: links to this program with their names, and verbs with the same names.

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write as _, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use chainwright::iptables::program::{Program, Streams, Tool};
use chainwright_lang::translate::for_program;
use clap::Subcommand;

use crate::output::TerminalEscaper;
use crate::{iptables_apply, xtables_monitor};

/// Runs a program of iptables, if this process was started with its name, or if the first argument is its name. Returns
/// the exit code.
pub(crate) fn called(words: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = words.split_first()?;
    let name = Path::new(first).file_name()?.to_str()?;
    if let Some(code) = by_name(name, rest) {
        return Some(code.into());
    }
    let (second, rest) = rest.split_first()?;
    let name = second.to_str().filter(|name| !name.contains('/'))?;
    Some(by_name(name, rest)?.into())
}

/// Runs the program of that name, if there is one; returns the exit code.
fn by_name(name: &str, words: &[OsString]) -> Option<u8> {
    if let Some(program) = Program::named(name) {
        return Some(run(&program, words));
    }
    if matches!(name, "iptables-apply" | "ip6tables-apply") {
        return Some(iptables_apply::run(name, words));
    }
    if name == xtables_monitor::NAME {
        return Some(xtables_monitor::run(words));
    }
    let reason = match name {
        _ if name.starts_with("arptables") || name.starts_with("ebtables") => {
            "chainwright does not support arptables and ebtables tables; `nft` has the families arp and bridge"
        }
        _ => return None,
    };
    let _ = writeln!(stderr().lock(), "{name}: {reason}");
    Some(1)
}

fn run(program: &Program, words: &[OsString]) -> u8 {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let streams = Streams {
        input: &mut stdin().lock(),
        output: &mut TerminalEscaper::new(BufWriter::new(stdout().lock()), stdout().is_terminal()),
        errors: &mut TerminalEscaper::new(stderr().lock(), stderr().is_terminal()),
    };
    program.run(&words, streams, for_program)
}

/// The verbs that are programs of iptables.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Behave like iptables: change or list a table of IPv4
    ///
    /// Supports the options of iptables 1.8.9, with its output, its exit codes, and the messages on standard error that
    /// other programs parse. Works as `chainwright iptables`, `iptables-nft` or `iptables-legacy`, and the same for the
    /// other programs, or through links with these names. A name without suffix uses nf_tables.
    #[command(hide = true, disable_help_flag = true, after_help = Tool::Iptables.options())]
    Iptables(ProgramArguments),
    /// Behave like iptables-save: print tables of IPv4 as text
    #[command(hide = true, disable_help_flag = true, after_help = Tool::Save.options())]
    IptablesSave(ProgramArguments),
    /// Behave like iptables-restore: restore tables of IPv4 from text
    #[command(hide = true, disable_help_flag = true, after_help = Tool::Restore.options())]
    IptablesRestore(ProgramArguments),
    /// Behave like ip6tables: change or list a table of IPv6
    #[command(name = "ip6tables", hide = true, disable_help_flag = true, after_help = Tool::Iptables.options())]
    Ip6tables(ProgramArguments),
    /// Behave like ip6tables-save: print tables of IPv6 as text
    #[command(name = "ip6tables-save", hide = true, disable_help_flag = true, after_help = Tool::Save.options())]
    Ip6tablesSave(ProgramArguments),
    /// Behave like ip6tables-restore: restore tables of IPv6 from text
    #[command(name = "ip6tables-restore", hide = true, disable_help_flag = true, after_help = Tool::Restore.options())]
    Ip6tablesRestore(ProgramArguments),
}

/// The arguments after the program's name.
#[derive(clap::Args)]
pub(crate) struct ProgramArguments {
    /// Options of the program
    #[arg(
        value_name = "OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

impl Verb {
    /// Runs the program; returns the exit code.
    pub(crate) fn run(&self) -> u8 {
        let (name, ProgramArguments { words }) = match self {
            Self::Iptables(words) => ("iptables", words),
            Self::IptablesSave(words) => ("iptables-save", words),
            Self::IptablesRestore(words) => ("iptables-restore", words),
            Self::Ip6tables(words) => ("ip6tables", words),
            Self::Ip6tablesSave(words) => ("ip6tables-save", words),
            Self::Ip6tablesRestore(words) => ("ip6tables-restore", words),
        };
        // Each verb is the name of a program.
        Program::named(name).map_or(2, |program| run(&program, words))
    }
}
