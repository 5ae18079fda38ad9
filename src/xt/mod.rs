//! x_tables extensions: [`matches`](mod@matches) and [`targets`], one a module, named as the kernel names them.
//!
//! An extension's data is a C struct in host byte order, particular to a revision, padded to 8
//! bytes; the same bytes stand in a legacy table and in an nf_tables `match` or `target`
//! expression. Each module turns the struct into a typed value and back ([`Match::read`],
//! [`Match::encode`]), prints it as the options of `iptables-save` ([`Match::print`]), and reads
//! those options ([`Spec::parse`]). An extension, or a revision of one, that has no module here stays
//! [`Opaque`]: shown as such, kept and written back unchanged.
//!
//! Where a value's numbers have another byte order than the host's, or a unit, its field says so.

mod compared;
mod difference;
mod extension;
mod fit;
mod mask;
mod name;
mod names;
mod option;
mod rate;
mod sets;
mod text;
pub(crate) mod value;

pub mod matches;
pub mod targets;
#[cfg(test)]
mod tests;

pub use compared::Compared;
pub use difference::{Difference, Does};
pub use extension::{EncodeError, Encoded, Families, Family, ListStyle, Opaque, Spec};
pub use mask::Mask;
pub use matches::Match;
pub use name::Name;
pub use names::Names;
pub use option::{Context, Given, OptionError, OptionGroup, OptionSpec, Shortened, Values};
pub use sets::{SetId, SetName, SetNames, UnresolvedSet};
pub use targets::Target;
pub use text::Text;

// What the files of extensions are written with.
use extension::{Extension, add_struct, read_struct, write_struct};
