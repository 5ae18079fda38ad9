//! `chainwright bench`: measured listings against their floor.

use crate::output::{Error, Exit};

/// Measure listing and changing (not there yet)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure, and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    what: Vec<String>,
}

pub(crate) fn run(args: &Args, _json: bool) -> Result<Exit, Error> {
    Err(Error::Other(format!(
        "`bench {}` cannot be done yet: nothing is measured by this version",
        args.what.join(" ")
    )))
}
