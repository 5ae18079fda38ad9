//! What the other crates of this workspace use beside the public API. It changes without notice, as does every other item
//! that is hidden from the documentation.

pub use crate::escape::Escaped;
