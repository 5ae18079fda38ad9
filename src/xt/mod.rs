//! x_tables extensions: matches and targets, one a file, named as the kernel names them.
//!
//! An extension's data is a C struct in host byte order, particular to a revision, padded to 8
//! bytes; the same bytes stand in a legacy table and in an nf_tables `match` or `target`
//! expression. A file of this room turns the struct into a typed value and back ([`Match::read`],
//! [`Match::encode`]), prints it as the options of `iptables-save` ([`Match::print`]), and reads
//! those options ([`Spec::parse`]). An extension, or a revision of one, that has no file here stays
//! [`Opaque`]: shown as such, kept and written back unchanged.
//!
//! Where a value's numbers have another byte order than the host's, or a unit, its field says so.

mod extension;
mod name;
mod names;
mod option;
mod sets;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod comment;
    pub(super) mod conntrack;
    pub(super) mod mark;
}
mod target {
    pub(super) mod mark;
    pub(super) mod masquerade;
}

pub use r#match::comment::Comment;
pub use r#match::conntrack::{Conntrack, ConntrackState};
pub use r#match::mark::Mark as MarkMatch;
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;

pub use extension::{Encoded, Families, Family, Opaque, Spec};
use extension::{Extension, read_struct, registry};
pub use name::Name;
pub use option::{Context, Given, Misuse, OptionSpec, Values};
pub use sets::{SetId, SetName, SetNames, UnresolvedSet};
pub use text::Text;

registry! {
    /// A match: the rule goes on if it says so.
    Match, " -m " {
        Comment(Comment),
        Conntrack(Conntrack),
        Mark(MarkMatch),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target, " -j " {
        Mark(MarkTarget),
        Masquerade(Masquerade),
    }
}

pub(crate) use names::{protocol as protocol_number, protocol_name};
