//! In place of `tools.rs`, where the command is built to start no program: nothing is compared with.

use std::path::Path;

use chainwright::measure::{Contender, Measured};

use crate::output::Error;

/// A program and its arguments.
pub(super) type Tool<'a> = (&'static str, &'a [&'a str]);

/// Nothing beside the library.
pub(super) fn compare(
    _: usize,
    _: &mut dyn FnMut() -> Result<(), Error>,
    _: Contender<'_, Error>,
    _: &[Tool<'_>],
) -> Result<(Vec<Measured>, Vec<&'static str>), Error> {
    Ok((Vec::new(), Vec::new()))
}

/// That it cannot be.
pub(super) fn run_once(
    _: &Measured,
    (tool, _): Tool<'_>,
    _: &Path,
) -> Result<Option<Measured>, Error> {
    let why = "this build starts no other program; one with the feature `tools` does";
    Err(Error::Other(format!("{tool} is not measured: {why}")))
}
