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
mod names;
mod option;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod comment;
    pub(super) mod compared;
    pub(super) mod conntrack;
    pub(super) mod dscp;
    pub(super) mod dst;
    pub(super) mod ecn;
    pub(super) mod eui64;
    pub(super) mod frag;
    pub(super) mod hbh;
    pub(super) mod hl;
    pub(super) mod ipv6header;
    pub(super) mod mark;
    pub(super) mod mh;
    pub(super) mod opts;
    pub(super) mod realm;
    pub(super) mod rt;
    pub(super) mod srh;
    pub(super) mod tcpmss;
    pub(super) mod tos;
    pub(super) mod ttl;
}
mod target {
    pub(super) mod clusterip;
    pub(super) mod connsecmark;
    pub(super) mod dnpt;
    pub(super) mod dscp;
    pub(super) mod ecn;
    pub(super) mod hl;
    pub(super) mod hmark;
    pub(super) mod idletimer;
    pub(super) mod led;
    pub(super) mod mark;
    pub(super) mod masquerade;
    pub(super) mod npt;
    pub(super) mod secmark;
    pub(super) mod snpt;
    pub(super) mod tcpoptstrip;
    pub(super) mod tos;
    pub(super) mod ttl;
    mod words;
}

pub use r#match::comment::Comment;
pub use r#match::compared::Compared;
pub use r#match::conntrack::{Conntrack, ConntrackState};
pub use r#match::dscp::Dscp as DscpMatch;
pub use r#match::dst::Dst;
pub use r#match::ecn::Ecn as EcnMatch;
pub use r#match::eui64::Eui64;
pub use r#match::frag::Frag;
pub use r#match::hbh::Hbh;
pub use r#match::hl::Hl as HlMatch;
pub use r#match::ipv6header::{Ipv6Headers, Ipv6header};
pub use r#match::mark::Mark as MarkMatch;
pub use r#match::mh::Mh;
pub use r#match::opts::{HeaderOption, HeaderOptions};
pub use r#match::realm::Realm;
pub use r#match::rt::Rt;
pub use r#match::srh::{Srh, SrhComparisons};
pub use r#match::tcpmss::Tcpmss;
pub use r#match::tos::Tos as TosMatch;
pub use r#match::ttl::{Hops, Ttl as TtlMatch};
pub use target::clusterip::{Clusterip, ClusteripHash, ClusteripNew};
pub use target::connsecmark::Connsecmark;
pub use target::dnpt::Dnpt;
pub use target::dscp::Dscp as DscpTarget;
pub use target::ecn::Ecn as EcnTarget;
pub use target::hl::Hl as HlTarget;
pub use target::hmark::Hmark;
pub use target::idletimer::Idletimer;
pub use target::led::Led;
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;
pub use target::npt::PrefixTranslation;
pub use target::secmark::Secmark;
pub use target::snpt::Snpt;
pub use target::tcpoptstrip::Tcpoptstrip;
pub use target::tos::Tos as TosTarget;
pub use target::ttl::{HopsChange, Ttl as TtlTarget};

pub use extension::{Encoded, Families, Family, Opaque, Spec};
use extension::{Extension, read_struct, registry};
pub use option::{Context, Given, Misuse, OptionSpec, Values};
pub use text::Text;

registry! {
    /// A match: the rule goes on if it says so.
    Match, " -m " {
        Comment(Comment),
        Conntrack(Conntrack),
        Dscp(DscpMatch),
        Dst(Dst),
        Ecn(EcnMatch),
        Eui64(Eui64),
        Frag(Frag),
        Hbh(Hbh),
        Hl(HlMatch),
        Ipv6header(Ipv6header),
        Mark(MarkMatch),
        Mh(Mh),
        Realm(Realm),
        Rt(Rt),
        Srh(Srh),
        Tcpmss(Tcpmss),
        Tos(TosMatch),
        Ttl(TtlMatch),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target, " -j " {
        Clusterip(Clusterip),
        Connsecmark(Connsecmark),
        Dnpt(Dnpt),
        Dscp(DscpTarget),
        Ecn(EcnTarget),
        Hl(HlTarget),
        Hmark(Hmark),
        Idletimer(Idletimer),
        Led(Led),
        Mark(MarkTarget),
        Masquerade(Masquerade),
        Secmark(Secmark),
        Snpt(Snpt),
        Tcpoptstrip(Tcpoptstrip),
        Tos(TosTarget),
        Ttl(TtlTarget),
    }
}

pub(crate) use names::{protocol as protocol_number, protocol_name};
