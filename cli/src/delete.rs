//! `chainwright delete`: deletes chains.

mod chains;

use clap::Subcommand;

use crate::output::{Error, Exit};

/// Delete leftover chains, and all rules that jump to them
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    #[command(alias = "chain")]
    Chains(chains::Args),
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.what {
        What::Chains(args) => chains::run(args, json),
    }
}
