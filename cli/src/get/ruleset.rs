//! `chainwright get ruleset`: the ruleset as text.

use std::ffi::OsString;

use clap::ValueEnum;

use super::{iptables_text, nft_text};
use crate::get::nft_text::Format;
use crate::output::{Error, Exit};
use crate::scope::Scope;

/// Print the ruleset in nft's language, as libnftables' JSON, or in the format of iptables-save
///
/// In nft's language it prints everything, or WHAT, as in nft:
///
/// tables, chains, sets, maps, flowtables, counters, … [FAMILY], or followed by: table [FAMILY] TABLE
///
/// table [FAMILY] TABLE
///
/// chain, set, map, flowtable, counter, quota, limit, ct helper, … [FAMILY] TABLE NAME
///
/// hooks [FAMILY] [device DEVICE]: all functions that the kernel calls at the hooks, not only chains
///
/// The output is that of nft, in the form of the version that --nft-version selects, except for rules that nft would
/// read back from its own output as different rules. A rule that nft cannot express is a comment with its instructions;
/// in JSON it is an object that nft rejects.
///
/// -o iptables prints the tables of one family, by default IPv4, in one backend, by default nf_tables, as input for
/// `apply` and iptables-restore. The exit code is 2 if the output is not complete, and standard error names the
/// omissions: rules that iptables cannot express are comments in nft's syntax, and so are base chains of nft, and chains
/// with names that iptables does not accept. `snapshot` preserves those. The exit code is also 2 if iptables has no
/// options for the data of an extension, and the output has it as bytes (--xt-revision, --xt-data), which only `apply`
/// accepts.
///
/// Creates no table. If there is no such table, the exit code is 1.
#[derive(clap::Args)]
#[command(mut_arg("terse", |terse| terse.short(None)))]
pub(crate) struct Args {
    /// What to print, by default everything
    #[arg(value_name = "WHAT")]
    pub(crate) what: Vec<OsString>,

    /// Format of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Language::Nft)]
    output: Language,

    /// The same as -o nft-json
    #[arg(short = 'j', hide = true)]
    libnftables_json: bool,

    /// With -o iptables: also print the counters of rules; those of policies are always printed
    #[arg(short, long)]
    pub(crate) counters: bool,

    #[command(flatten)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// nft's language
    Nft,
    /// libnftables' JSON, like `nft -j`
    NftJson,
    /// the format of iptables-save
    Iptables,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.output != Language::Iptables && args.counters {
        return Err(Error::Other("--counters is for -o iptables".into()));
    }
    match args.output {
        Language::Nft => nft_text::run(args, json || args.libnftables_json),
        Language::NftJson => nft_text::run(args, true),
        Language::Iptables if !args.what.is_empty() => Err(Error::Other(
            "WHAT is for nft's language; select iptables' tables with --table".into(),
        )),
        Language::Iptables if args.format != Format::default() || args.libnftables_json => Err(
            Error::Other("an option for nft's language cannot be used with -o iptables".into()),
        ),
        Language::Iptables => iptables_text::run(args, json),
    }
}
