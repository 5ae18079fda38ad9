//! `chainwright convert`: converts rules to another language, or moves tables to the other backend.

pub(crate) mod migrate;
mod translate;

use chainwright::iptables::Backend;
use clap::ValueEnum;

use crate::confirm::Confirm;
use crate::glob::Glob;
use crate::iptables::Locking;
use crate::output::{Error, Exit};
use crate::ruleset_source::Input;

/// Convert rules between iptables and nft; with --in-place, move tables to the other backend
///
/// Reads a text, or one rule, and prints it in the other language. Without --in-place, it neither reads nor changes the
/// kernel's tables.
///
/// --to nft: reads the output of iptables-save, and prints input for `apply` and `nft -f`. A rule is translated
/// completely or not at all. A rule that needs an extension of x_tables is replaced by a comment; standard error reports
/// the number of these, and the exit code is 1: without them the rules may accept or drop other packets.
///
/// --to iptables: reads nft's language, and prints the tables of IPv4 or IPv6 as iptables-nft would save them. Rules
/// that iptables does not know are comments; standard error lists tables that it does not know.
///
/// --in-place: moves iptables' tables in the kernel to the backend of --to. Writes them with their counters to that
/// backend, compares their meaning, and only then removes them from the first; in between, packets traverse both copies.
/// Before anything is changed, it reports everything that the other backend cannot express, and the rules of the other
/// backend in the same tables. It refuses to run if a kubelet or kube-proxy seems to write to the old backend. After an
/// interruption it can be run again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The language, by default nft; with --in-place, which requires it, the backend: nft or legacy
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    to: Option<To>,

    /// Convert this rule, in the syntax of `iptables` arguments: '-t nat -A POSTROUTING -j MASQUERADE'; or only its
    /// options
    #[arg(
        long,
        value_name = "RULE",
        conflicts_with_all = ["Input", "in_place"],
        allow_hyphen_values = true
    )]
    pub(crate) rule: Option<String>,

    #[command(flatten)]
    pub(crate) input: Input,

    /// Only tables of IPv4; the default of a text
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,

    /// Only tables of IPv6
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,

    /// Move the tables in the kernel
    #[arg(long, requires = "to", conflicts_with = "Input", help_heading = IN_PLACE)]
    pub(crate) in_place: bool,

    /// The backend to move the tables from; the default is the other one
    #[arg(long, value_enum, value_name = "BACKEND", requires = "in_place", help_heading = IN_PLACE)]
    pub(crate) from: Option<migrate::SourceBackend>,

    /// Only check the migration, and show the tables that would move; in nf_tables the kernel checks it, too
    #[arg(long, requires = "in_place", conflicts_with = "confirm", help_heading = IN_PLACE)]
    pub(crate) dry_run: bool,

    /// Move even if a kubelet or kube-proxy seems to write to the old backend, or if jumps to kept chains would be
    /// separated from the rules next to them
    #[arg(long, requires = "in_place", help_heading = IN_PLACE)]
    pub(crate) force: bool,

    /// Keep chains whose names match, and the jumps to them, in the old backend; may be given more than once. If such a
    /// jump is in a built-in chain that has other rules or the policy DROP, this requires --force: packets that the
    /// kept chain accepts still traverse the moved rules, and the other way round
    #[arg(long, alias = "keep-foreign", value_name = "GLOB", num_args = 1, requires = "in_place", help_heading = IN_PLACE)]
    pub(crate) keep: Vec<Glob>,

    #[command(flatten)]
    pub(crate) confirm: Confirm,

    #[command(flatten)]
    pub(crate) locking: Locking,
}

const IN_PLACE: &str = "Options of --in-place";

/// The target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// nft's language; with --in-place nf_tables
    Nft,
    /// the format of iptables-save
    Iptables,
    /// only with --in-place: the legacy x_tables
    Legacy,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match (args.in_place, args.to.unwrap_or(To::Nft)) {
        (true, To::Nft) => migrate::run(args, Backend::Nft, json),
        (true, To::Legacy) => migrate::run(args, Backend::Legacy, json),
        (true, To::Iptables) => Err(Error::Other(
            "--in-place moves tables --to nft or --to legacy".into(),
        )),
        (false, To::Nft) => translate::to_nft(args, json),
        (false, To::Iptables) => translate::to_iptables(args, json),
        (false, To::Legacy) => Err(Error::Other(
            "--to legacy moves tables: use it with --in-place".into(),
        )),
    }
}
