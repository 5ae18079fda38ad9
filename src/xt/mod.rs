//! x_tables extensions: matches and targets, one a file, named as the kernel names them.
//!
//! An extension's data is a C struct in host byte order, particular to a revision, padded to 8
//! bytes; the same bytes stand in a legacy table and in an nf_tables `match` or `target`
//! expression. Each file turns the struct into a typed value and back ([`Match::read`],
//! [`Match::encode`]), prints it as the options of `iptables-save` ([`Match::print`]), and reads
//! those options ([`Spec::parse`]). An extension, or a revision of one, that has no file here stays
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
mod registry;
mod sets;
mod text;
pub(crate) mod value;

mod r#match {
    pub(super) mod addrtype;
    pub(super) mod ah;
    pub(super) mod bpf;
    pub(super) mod cgroup;
    pub(super) mod cluster;
    pub(super) mod comment;
    pub(super) mod connbytes;
    pub(super) mod connlabel;
    pub(super) mod connlimit;
    pub(super) mod connmark;
    pub(super) mod conntrack;
    pub(super) mod cpu;
    pub(super) mod dccp;
    pub(super) mod devgroup;
    pub(super) mod dscp;
    pub(super) mod dst;
    pub(super) mod ecn;
    pub(super) mod esp;
    pub(super) mod eui64;
    pub(super) mod frag;
    pub(super) mod hashlimit;
    pub(super) mod hbh;
    pub(super) mod helper;
    pub(super) mod hl;
    pub(super) mod icmp;
    pub(super) mod icmp6;
    pub(super) mod ipcomp;
    pub(super) mod iprange;
    pub(super) mod ipv6header;
    pub(super) mod ipvs;
    pub(super) mod length;
    pub(super) mod limit;
    pub(super) mod mac;
    pub(super) mod mark;
    pub(super) mod mh;
    pub(super) mod multiport;
    pub(super) mod nfacct;
    pub(super) mod opts;
    pub(super) mod osf;
    pub(super) mod owner;
    pub(super) mod physdev;
    pub(super) mod pkttype;
    pub(super) mod policy;
    pub(super) mod ports;
    pub(super) mod quota;
    pub(super) mod rateest;
    pub(super) mod realm;
    pub(super) mod recent;
    pub(super) mod rpfilter;
    pub(super) mod rt;
    pub(super) mod sctp;
    pub(super) mod set;
    pub(super) mod socket;
    pub(super) mod spi;
    pub(super) mod srh;
    pub(super) mod statistic;
    pub(super) mod string;
    pub(super) mod tcp;
    pub(super) mod tcpmss;
    pub(super) mod time;
    pub(super) mod tos;
    pub(super) mod ttl;
    pub(super) mod u32;
    pub(super) mod udp;
}

mod target {
    pub(super) mod audit;
    pub(super) mod checksum;
    pub(super) mod classify;
    pub(super) mod clusterip;
    pub(super) mod connmark;
    pub(super) mod connsecmark;
    pub(super) mod ct;
    pub(super) mod dnat;
    pub(super) mod dnpt;
    pub(super) mod dscp;
    pub(super) mod ecn;
    pub(super) mod hl;
    pub(super) mod hmark;
    pub(super) mod idletimer;
    pub(super) mod led;
    pub(super) mod log;
    pub(super) mod mark;
    pub(super) mod masquerade;
    pub(super) mod nat;
    pub(super) mod netmap;
    pub(super) mod nflog;
    pub(super) mod nfqueue;
    pub(super) mod npt;
    pub(super) mod rateest;
    pub(super) mod redirect;
    pub(super) mod reject;
    pub(super) mod secmark;
    pub(super) mod set;
    pub(super) mod snat;
    pub(super) mod snpt;
    pub(super) mod synproxy;
    pub(super) mod tcpmss;
    pub(super) mod tcpoptstrip;
    pub(super) mod tee;
    #[cfg(test)]
    pub(super) mod testing;
    pub(super) mod tos;
    pub(super) mod tproxy;
    pub(super) mod trace;
    pub(super) mod ttl;
    pub(super) mod words;
}

pub use compared::Compared;
pub use difference::{Difference, Does};
pub use extension::{EncodeError, Encoded, Families, Family, Opaque, Spec};
pub use mask::Mask;
pub use name::Name;
pub use names::Names;
pub use option::{Context, Given, OptionError, OptionGroup, OptionSpec, Shortened, Values};
pub use registry::{Match, Target};
pub use sets::{SetId, SetName, SetNames, UnresolvedSet};
pub use text::Text;

// What the files of extensions are written with.
use extension::{Extension, read_struct, write_struct};

pub use r#match::addrtype::{AddressTypes, Addrtype, AddrtypeInterface};
pub use r#match::ah::Ah;
pub use r#match::bpf::{Bpf, BpfInstruction};
pub use r#match::cgroup::Cgroup;
pub use r#match::cluster::Cluster;
pub use r#match::comment::Comment;
pub use r#match::connbytes::{Connbytes, ConnbytesDirection, ConnbytesMode};
pub use r#match::connlabel::Connlabel;
pub use r#match::connlimit::Connlimit;
pub use r#match::connmark::Connmark as ConnmarkMatch;
pub use r#match::conntrack::{
    Conntrack, ConntrackAddress, ConntrackDirection, ConntrackExpiry, ConntrackState,
    ConntrackStatus, ConntrackTuples,
};
pub use r#match::cpu::Cpu;
pub use r#match::dccp::{Dccp, DccpTypes};
pub use r#match::devgroup::{Devgroup, DeviceGroup};
pub use r#match::dscp::Dscp as DscpMatch;
pub use r#match::dst::Dst;
pub use r#match::ecn::Ecn as EcnMatch;
pub use r#match::esp::Esp;
pub use r#match::eui64::Eui64;
pub use r#match::frag::Frag;
pub use r#match::hashlimit::{Hashlimit, HashlimitKeys, HashlimitName, HashlimitRate};
pub use r#match::hbh::Hbh;
pub use r#match::helper::Helper;
pub use r#match::hl::Hl as HlMatch;
pub use r#match::icmp::{Icmp, IcmpCodes};
pub use r#match::icmp6::Icmp6;
pub use r#match::ipcomp::Ipcomp;
pub use r#match::iprange::Iprange;
pub use r#match::ipv6header::{Ipv6Headers, Ipv6header};
pub use r#match::ipvs::{Ipvs, IpvsConnection, IpvsMethod};
pub use r#match::length::Length;
pub use r#match::limit::Limit;
pub use r#match::mac::Mac;
pub use r#match::mark::Mark as MarkMatch;
pub use r#match::mh::Mh;
pub use r#match::multiport::{Multiport, MultiportSide};
pub use r#match::nfacct::Nfacct;
pub use r#match::opts::{HeaderOption, HeaderOptions};
pub use r#match::osf::{Osf, OsfLog, OsfTtl};
pub use r#match::owner::Owner;
pub use r#match::physdev::Physdev;
pub use r#match::pkttype::{PacketType, Pkttype};
pub use r#match::policy::{
    Policy, PolicyAddress, PolicyDirection, PolicyElement, PolicyMode, PolicyWanted,
};
pub use r#match::ports::PortRange;
pub use r#match::quota::Quota;
pub use r#match::rateest::{Rateest as RateestMatch, RateestName, RateestOperator};
pub use r#match::realm::Realm;
pub use r#match::recent::{Recent, RecentAction, RecentName, RecentSide};
pub use r#match::rpfilter::Rpfilter;
pub use r#match::rt::Rt;
pub use r#match::sctp::{Sctp, SctpChunk, SctpChunks, SctpScope};
pub use r#match::set::{Set as SetMatch, SetCounter, SetDirections};
pub use r#match::socket::Socket as SocketMatch;
pub use r#match::spi::SpiRange;
pub use r#match::srh::{Srh, SrhComparisons};
pub use r#match::statistic::{Statistic, StatisticMode};
pub use r#match::string::StringMatch;
pub use r#match::tcp::{Tcp, TcpFlags, TcpFlagsTest};
pub use r#match::tcpmss::Tcpmss as TcpmssMatch;
pub use r#match::time::Time;
pub use r#match::tos::Tos as TosMatch;
pub use r#match::ttl::{Hops, Ttl as TtlMatch};
pub use r#match::u32::{U32, U32Step, U32Test};
pub use r#match::udp::Udp;
pub use target::audit::Audit;
pub use target::checksum::Checksum;
pub use target::classify::Classify;
pub use target::clusterip::{Clusterip, ClusteripHash, ClusteripNew};
pub use target::connmark::{Connmark as ConnmarkTarget, ConnmarkOperation, ConnmarkShift};
pub use target::connsecmark::Connsecmark;
pub use target::ct::{Ct, CtDirection, CtEvents, CtZone};
pub use target::dnat::Dnat;
pub use target::dnpt::Dnpt;
pub use target::dscp::Dscp as DscpTarget;
pub use target::ecn::Ecn as EcnTarget;
pub use target::hl::Hl as HlTarget;
pub use target::hmark::Hmark;
pub use target::idletimer::Idletimer;
pub use target::led::Led;
pub use target::log::{Log, LogFlags};
pub use target::mark::Mark as MarkTarget;
pub use target::masquerade::Masquerade;
pub use target::nat::{AddressRange, NatPorts};
pub use target::netmap::Netmap;
pub use target::nflog::Nflog;
pub use target::nfqueue::Nfqueue;
pub use target::npt::PrefixTranslation;
pub use target::rateest::Rateest as RateestTarget;
pub use target::redirect::Redirect;
pub use target::reject::Reject;
pub use target::secmark::Secmark;
pub use target::set::{Set as SetTarget, SetUse};
pub use target::snat::Snat;
pub use target::snpt::Snpt;
pub use target::synproxy::Synproxy;
pub use target::tcpmss::Tcpmss as TcpmssTarget;
pub use target::tcpoptstrip::Tcpoptstrip;
pub use target::tee::Tee;
pub use target::tos::Tos as TosTarget;
pub use target::tproxy::Tproxy;
pub use target::trace::Trace;
pub use target::ttl::{HopsChange, Ttl as TtlTarget};
