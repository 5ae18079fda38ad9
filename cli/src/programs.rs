//! The programs of iptables': links to this one under their names, and verbs of the same names.

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write as _, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use chainwright::iptables::program::{Program, Streams, Tool};
use chainwright_lang::translate::for_program;
use clap::Subcommand;

use crate::output::Harmless;
use crate::{iptables_apply, xtables_monitor};

/// The exit code, if this process was called by the name of a program of iptables', or that stands first
/// behind its own name.
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

/// The exit code of the program of that name, if there is one.
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
    let why = match name {
        _ if name.starts_with("arptables") || name.starts_with("ebtables") => {
            "chainwright has no tables of arptables and ebtables; `nft` has the families arp and bridge"
        }
        _ => return None,
    };
    let _ = writeln!(stderr().lock(), "{name}: {why}");
    Some(1)
}

fn run(program: &Program, words: &[OsString]) -> u8 {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let streams = Streams {
        input: &mut stdin().lock(),
        output: &mut Harmless::new(BufWriter::new(stdout().lock()), stdout().is_terminal()),
        errors: &mut Harmless::new(stderr().lock(), stderr().is_terminal()),
    };
    program.run(&words, streams, for_program)
}

/// The verbs that are programs of iptables'.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Be iptables: change or list a table of IPv4
    ///
    /// Takes the options of iptables 1.8.9 and has its output, its exit codes and the texts on standard error
    /// that programs look at: as `chainwright iptables`, `iptables-nft` or `iptables-legacy`, and so for the
    /// other programs, and by links of these names to chainwright. A plain name means nf_tables.
    #[command(disable_help_flag = true, after_help = Tool::Iptables.options())]
    Iptables(Words),
    /// Be iptables-save: print tables of IPv4 as a text
    #[command(disable_help_flag = true, after_help = Tool::Save.options())]
    IptablesSave(Words),
    /// Be iptables-restore: put tables of IPv4 into the kernel from a text
    #[command(disable_help_flag = true, after_help = Tool::Restore.options())]
    IptablesRestore(Words),
    /// Be ip6tables: change or list a table of IPv6
    #[command(name = "ip6tables", disable_help_flag = true, after_help = Tool::Iptables.options())]
    Ip6tables(Words),
    /// Be ip6tables-save: print tables of IPv6 as a text
    #[command(name = "ip6tables-save", disable_help_flag = true, after_help = Tool::Save.options())]
    Ip6tablesSave(Words),
    /// Be ip6tables-restore: put tables of IPv6 into the kernel from a text
    #[command(name = "ip6tables-restore", disable_help_flag = true, after_help = Tool::Restore.options())]
    Ip6tablesRestore(Words),
}

/// What stands behind the program's name.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// Its options, as the program takes them
    #[arg(
        value_name = "OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

impl Verb {
    /// The exit code.
    pub(crate) fn run(&self) -> u8 {
        let (name, Words { words }) = match self {
            Self::Iptables(words) => ("iptables", words),
            Self::IptablesSave(words) => ("iptables-save", words),
            Self::IptablesRestore(words) => ("iptables-restore", words),
            Self::Ip6tables(words) => ("ip6tables", words),
            Self::Ip6tablesSave(words) => ("ip6tables-save", words),
            Self::Ip6tablesRestore(words) => ("ip6tables-restore", words),
        };
        // Each is the name of one.
        Program::named(name).map_or(2, |program| run(&program, words))
    }
}
