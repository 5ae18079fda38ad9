//! `chainwright delete`: deletes chains.

use clap::Subcommand;

use crate::cleanup;
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
    Chains(cleanup::Args),
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.what {
        What::Chains(args) => cleanup::run(args, json),
    }
}
