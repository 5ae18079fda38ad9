//! x_tables' matches and targets, evaluated on what is known of a packet.

use super::flow::{Effect, Flow, Open};
use crate::xt;

/// Whether a match says yes. It asks the flow for all that it needs before it changes anything there.
///
/// # Errors
/// [`Open::Split`] where that depends on what is not known, [`Open::Unknown`] where it cannot be evaluated.
pub(super) fn matches(extension: &xt::Match, _flow: &mut Flow) -> Result<bool, Open> {
    Err(Open::unknown(format!(
        "the match `{}` is not evaluated",
        extension.name()
    )))
}

/// What a target does with the packet. It asks the flow for all that it needs before it changes anything there.
///
/// # Errors
/// As [`matches`].
pub(super) fn target(extension: &xt::Target, _flow: &mut Flow) -> Result<Effect, Open> {
    Err(Open::unknown(format!(
        "the target `{}` is not evaluated",
        extension.name()
    )))
}
