//! `chainwright get`: lists parts of the ruleset.

pub(crate) mod chains;
pub(crate) mod iptables_text;
pub(crate) mod nft_text;
pub(crate) mod rules;
pub(crate) mod ruleset;
mod sets;

use clap::Subcommand;

use crate::confirm::verbs::{PendingArgs, pending};
use crate::output::{Error, Exit};

/// List chains, rules, sets or elements, or the whole ruleset
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    #[command(alias = "chain")]
    Chains(chains::Args),
    #[command(alias = "rule")]
    Rules(rules::Args),
    #[command(alias = "set")]
    /// List sets and maps, one per line
    Sets(sets::SetArgs),
    #[command(alias = "element")]
    /// List the elements of sets and maps
    ///
    /// Prints the same as `get sets --elements`. The names are those of sets; it does not search for an element.
    Elements(sets::Args),
    Ruleset(ruleset::Args),
    Pending(PendingArgs),
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.what {
        What::Chains(args) => chains::run(args, json),
        What::Rules(args) => rules::run(args, json),
        What::Sets(args) => sets::run(args, json),
        What::Elements(args) => sets::list(args, true, json),
        What::Ruleset(args) => ruleset::run(args, json),
        What::Pending(args) => pending(args, json),
    }
}
