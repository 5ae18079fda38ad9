//! Items that the other crates of this workspace use besides the public API. They change without notice, as does every
//! other item that is hidden from the documentation.

pub use crate::error::{Class, message_with_causes};
pub use crate::escape::{Escaped, is_misleading};
pub use crate::input::{MAX_TEXT_LENGTH, read_text};
#[cfg(feature = "iptables")]
pub use crate::iptables::{hook_declaration, nft_name};
pub use crate::suggest::nearest;
