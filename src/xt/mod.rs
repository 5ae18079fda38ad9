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
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod addrtype;
    pub(super) mod ah;
    pub(super) mod comment;
    pub(super) mod compared;
    pub(super) mod conntrack;
    pub(super) mod dccp;
    pub(super) mod esp;
    pub(super) mod icmp;
    pub(super) mod icmp6;
    pub(super) mod ipcomp;
    pub(super) mod mark;
    pub(super) mod multiport;
    pub(super) mod ports;
    pub(super) mod sctp;
    pub(super) mod spi;
    pub(super) mod tcp;
    pub(super) mod udp;
}
mod target {
    pub(super) mod audit;
    pub(super) mod checksum;
    pub(super) mod classify;
    pub(super) mod connmark;
    pub(super) mod ct;
    pub(super) mod dnat;
    pub(super) mod log;
    pub(super) mod mark;
    pub(super) mod masquerade;
    pub(super) mod nat;
    pub(super) mod netmap;
    pub(super) mod nflog;
    pub(super) mod nfqueue;
    pub(super) mod redirect;
    pub(super) mod reject;
    pub(super) mod snat;
    pub(super) mod synproxy;
    pub(super) mod tcpmss;
    pub(super) mod tee;
    #[cfg(test)]
    mod testing;
    pub(super) mod tproxy;
    pub(super) mod trace;
}

pub use r#match::addrtype::{AddressTypes, Addrtype, AddrtypeInterface};
pub use r#match::ah::Ah;
pub use r#match::comment::Comment;
pub use r#match::compared::Compared;
pub use r#match::conntrack::{
    Conntrack, ConntrackAddress, ConntrackDirection, ConntrackExpiry, ConntrackState,
    ConntrackStatus, ConntrackTuples,
};
pub use r#match::dccp::{Dccp, DccpTypes};
pub use r#match::esp::Esp;
pub use r#match::icmp::Icmp;
pub use r#match::icmp6::Icmp6;
pub use r#match::ipcomp::Ipcomp;
pub use r#match::mark::Mark as MarkMatch;
pub use r#match::multiport::{Multiport, MultiportSide};
pub use r#match::ports::PortRange;
pub use r#match::sctp::{Sctp, SctpChunk, SctpChunks, SctpScope};
pub use r#match::spi::SpiRange;
pub use r#match::tcp::{Tcp, TcpFlags, TcpFlagsTest};
pub use r#match::udp::Udp;
pub use target::audit::Audit;
pub use target::checksum::Checksum;
pub use target::classify::Classify;
pub use target::connmark::{Connmark as ConnmarkTarget, ConnmarkOperation, ConnmarkShift};
pub use target::ct::{Ct, CtDirection, CtEvents, CtZone};
pub use target::dnat::Dnat;
pub use target::log::{Log, LogFlags};
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;
pub use target::nat::{AddressRange, NatPorts};
pub use target::netmap::Netmap;
pub use target::nflog::Nflog;
pub use target::nfqueue::Nfqueue;
pub use target::redirect::Redirect;
pub use target::reject::Reject;
pub use target::snat::Snat;
pub use target::synproxy::Synproxy;
pub use target::tcpmss::TcpMss as TcpMssTarget;
pub use target::tee::Tee;
pub use target::tproxy::Tproxy;
pub use target::trace::Trace;

pub use extension::{Encoded, Families, Family, Opaque, Spec};
use extension::{Extension, read_struct, registry};
pub use option::{Context, Given, Misuse, OptionSpec, Values};
pub use text::Text;

registry! {
    /// A match: the rule goes on if it says so.
    Match, " -m " {
        Addrtype(Addrtype),
        Ah(Ah),
        Comment(Comment),
        Conntrack(Conntrack),
        Dccp(Dccp),
        Esp(Esp),
        Icmp(Icmp),
        Icmp6(Icmp6),
        Ipcomp(Ipcomp),
        Mark(MarkMatch),
        Multiport(Multiport),
        Sctp(Sctp),
        Tcp(Tcp),
        Udp(Udp),
    }
}

registry! {
    /// A target that is an extension: it works on the packet.
    Target, " -j " {
        Audit(Audit),
        Checksum(Checksum),
        Classify(Classify),
        Connmark(ConnmarkTarget),
        Ct(Ct),
        Dnat(Dnat),
        Log(Log),
        Mark(MarkTarget),
        Masquerade(Masquerade),
        Netmap(Netmap),
        Nflog(Nflog),
        Nfqueue(Nfqueue),
        Redirect(Redirect),
        Reject(Reject),
        Snat(Snat),
        Synproxy(Synproxy),
        Tcpmss(TcpMssTarget),
        Tee(Tee),
        Tproxy(Tproxy),
        Trace(Trace),
    }
}

pub(crate) use names::{protocol as protocol_number, protocol_name};
