//! x_tables extensions: [`matches`](mod@matches) and [`targets`], one per module, with the kernel's
//! names.
//!
//! An extension's data is a C struct in host byte order, specific to a revision, padded to 8 bytes.
//! Legacy tables and the nf_tables expressions `match` and `target` contain the same bytes. Each
//! module converts the struct to a typed value and back ([`Match::read`], [`Match::encode`]), prints
//! it as the options of `iptables-save` ([`Match::print`]), and parses those options
//! ([`Spec::parse`]). An extension or revision without a module here is [`Opaque`]: its data is
//! preserved unchanged.
//!
//! If a field has a unit, or another byte order than the host's, its documentation mentions it.

mod difference;
mod extension;
mod mask;
mod name;
mod names;
mod negatable;
mod option;
mod pack;
mod rate;
mod sets;
mod text;
pub(crate) mod value;

pub mod matches;
pub mod targets;
#[cfg(test)]
mod tests;

pub use difference::{Difference, ToolBehavior};
pub use extension::{EncodeError, Encoded, Families, Family, ListStyle, Opaque, Spec};
pub use mask::Mask;
pub use matches::Match;
pub use name::Name;
pub use names::Names;
pub use negatable::Negatable;
pub use option::{
    Context, GivenOption, OptionError, OptionGroup, OptionSpec, TruncatedText, Values,
};
pub use sets::{SetId, SetName, SetNames, UnresolvedSet};
pub use targets::Target;
pub use text::Text;

// Imports for the modules of extensions.
use extension::{Extension, add_struct, read_struct, write_struct};
