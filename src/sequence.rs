//! What differs between two sequences of rules.

use std::hash::Hash;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// How long the shortest list of changes is looked for; then a longer one does.
const PATIENCE: Duration = Duration::from_secs(2);

/// The shortest list of changes from one to the other, and of what stays.
pub(crate) fn changes<T: Eq + Hash + Ord>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let deadline = Instant::now() + PATIENCE;
    capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline))
}
