//! `chainwright get`: lists parts of the ruleset.

pub(crate) mod chains;
pub(crate) mod iptables_text;
pub(crate) mod nft_text;
pub(crate) mod rules;
pub(crate) mod ruleset;
mod sets;
mod tables;

use clap::{Subcommand, ValueEnum};

use crate::confirm::verbs::{PendingArgs, pending};
use crate::output::{Error, Exit};

/// List tables, chains, rules, sets or elements, or the whole ruleset
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    #[command(alias = "table")]
    Tables(tables::Args),
    #[command(alias = "chain")]
    Chains(chains::Args),
    #[command(alias = "rule")]
    Rules(rules::Args),
    #[command(alias = "set")]
    /// List sets and maps, one per line
    Sets(sets::SetArgs),
    #[command(alias = "element")]
    Elements(sets::ElementArgs),
    Ruleset(ruleset::Args),
    Pending(PendingArgs),
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.what {
        What::Tables(args) => tables::run(args, json),
        What::Chains(args) => chains::run(args, json),
        What::Rules(args) => rules::run(args, json),
        What::Sets(args) => sets::run(args, json),
        What::Elements(args) => sets::run_elements(args, json),
        What::Ruleset(args) => ruleset::run(args, json),
        What::Pending(args) => pending(args, json),
    }
}

/// Format of a list of named objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    /// one line for each object
    #[default]
    Table,
    /// with handles, references, counters and comments
    Wide,
    /// only the names
    Name,
    /// the same as --json
    Json,
}

/// The option for the format.
#[derive(clap::Args)]
struct ListOutput {
    /// Format of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Table)]
    output: ListFormat,
}

impl ListOutput {
    /// Combines the format with the option `--json`.
    fn format(&self, json: bool) -> ListFormat {
        match json {
            true => ListFormat::Json,
            false => self.output,
        }
    }
}
