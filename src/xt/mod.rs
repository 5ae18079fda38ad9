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

mod compared;
mod extension;
mod names;
mod option;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod bpf;
    pub(super) mod cgroup;
    pub(super) mod cluster;
    pub(super) mod comment;
    pub(super) mod conntrack;
    pub(super) mod cpu;
    pub(super) mod devgroup;
    pub(super) mod helper;
    pub(super) mod iprange;
    pub(super) mod ipvs;
    pub(super) mod length;
    pub(super) mod mac;
    pub(super) mod mark;
    pub(super) mod nfacct;
    pub(super) mod osf;
    pub(super) mod owner;
    pub(super) mod physdev;
    pub(super) mod pkttype;
    pub(super) mod policy;
    pub(super) mod rpfilter;
    pub(super) mod socket;
    pub(super) mod string;
    pub(super) mod u32;
}
mod target {
    pub(super) mod mark;
    pub(super) mod masquerade;
}

pub use r#match::bpf::{Bpf, BpfInstruction};
pub use r#match::cgroup::Cgroup;
pub use r#match::cluster::Cluster;
pub use r#match::comment::Comment;
pub use r#match::conntrack::{Conntrack, ConntrackState};
pub use r#match::cpu::Cpu;
pub use r#match::devgroup::{Devgroup, DeviceGroup};
pub use r#match::helper::Helper;
pub use r#match::iprange::Iprange;
pub use r#match::ipvs::{Ipvs, IpvsConnection, IpvsMethod};
pub use r#match::length::Length;
pub use r#match::mac::Mac;
pub use r#match::mark::Mark as MarkMatch;
pub use r#match::nfacct::Nfacct;
pub use r#match::osf::{Osf, OsfLog, OsfTtl};
pub use r#match::owner::Owner;
pub use r#match::physdev::Physdev;
pub use r#match::pkttype::{PacketType, Pkttype};
pub use r#match::policy::{
    Policy, PolicyAddress, PolicyDirection, PolicyElement, PolicyMode, PolicyWanted,
};
pub use r#match::rpfilter::Rpfilter;
pub use r#match::socket::Socket as SocketMatch;
pub use r#match::string::StringMatch;
pub use r#match::u32::{U32, U32Step, U32Test};
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;

pub use compared::Compared;
pub use extension::{Encoded, Families, Family, Opaque, Spec};
use extension::{Extension, read_struct, registry};
pub use option::{Context, Given, Misuse, OptionSpec, Values};
pub use text::Text;

registry! {
    /// A match: the rule goes on if it says so.
    Match, " -m " {
        Bpf(Bpf),
        Cgroup(Cgroup),
        Cluster(Cluster),
        Comment(Comment),
        Conntrack(Conntrack),
        Cpu(Cpu),
        Devgroup(Devgroup),
        Helper(Helper),
        Iprange(Iprange),
        Ipvs(Ipvs),
        Length(Length),
        Mac(Mac),
        Mark(MarkMatch),
        Nfacct(Nfacct),
        Osf(Osf),
        Owner(Owner),
        Physdev(Physdev),
        Pkttype(Pkttype),
        Policy(Policy),
        Rpfilter(Rpfilter),
        Socket(SocketMatch),
        String(StringMatch),
        U32(U32),
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
