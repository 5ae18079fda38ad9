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
mod rate;
mod sets;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod comment;
    pub(super) mod connbytes;
    pub(super) mod connlabel;
    pub(super) mod connlimit;
    pub(super) mod connmark;
    pub(super) mod conntrack;
    pub(super) mod hashlimit;
    pub(super) mod limit;
    pub(super) mod mark;
    pub(super) mod quota;
    pub(super) mod rateest;
    pub(super) mod recent;
    pub(super) mod set;
    pub(super) mod statistic;
    pub(super) mod time;
}
mod target {
    pub(super) mod mark;
    pub(super) mod masquerade;
    pub(super) mod rateest;
    pub(super) mod set;
}

pub use r#match::comment::Comment;
pub use r#match::connbytes::{Connbytes, ConnbytesDirection, ConnbytesMode};
pub use r#match::connlabel::Connlabel;
pub use r#match::connlimit::Connlimit;
pub use r#match::connmark::Connmark as ConnmarkMatch;
pub use r#match::conntrack::{Conntrack, ConntrackState};
pub use r#match::hashlimit::{Hashlimit, HashlimitKeys, HashlimitName, HashlimitRate};
pub use r#match::limit::Limit;
pub use r#match::mark::Mark as MarkMatch;
pub use r#match::quota::Quota;
pub use r#match::rateest::{Rateest as RateestMatch, RateestName, RateestOperator};
pub use r#match::recent::{Recent, RecentAction, RecentName, RecentSide};
pub use r#match::set::{Set as SetMatch, SetCounter, SetDirections};
pub use r#match::statistic::{Statistic, StatisticMode};
pub use r#match::time::Time;
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;
pub use target::rateest::Rateest as RateestTarget;
pub use target::set::{Set as SetTarget, SetUse};

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
        Connbytes(Connbytes),
        Connlabel(Connlabel),
        Connlimit(Connlimit),
        Connmark(ConnmarkMatch),
        Conntrack(Conntrack),
        Hashlimit(Hashlimit),
        Limit(Limit),
        Mark(MarkMatch),
        Quota(Quota),
        Rateest(RateestMatch),
        Recent(Recent),
        Set(SetMatch),
        Statistic(Statistic),
        Time(Time),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target, " -j " {
        Mark(MarkTarget),
        Masquerade(Masquerade),
        Rateest(RateestTarget),
        Set(SetTarget),
    }
}

pub(crate) use names::{protocol as protocol_number, protocol_name};
