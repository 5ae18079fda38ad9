//! Matches, one per module, with the kernel's names: `-m physdev` is [`physdev::Physdev`].
//!
//! Each module documents the kernel's struct, its revisions, and intentional differences from iptables.

mod opts;
mod ports;
mod spi;

use super::extension::registry;

// Shared by several matches.
pub use opts::{HeaderOption, HeaderOptions};
pub use ports::PortRange;
pub use spi::SpiRange;

registry! {
    /// A match: a condition of a rule.
    Match, printed as " -m ", always has effects: false {
        addrtype::Addrtype,
        ah::Ah,
        bpf::Bpf,
        cgroup::Cgroup,
        cluster::Cluster,
        comment::Comment,
        connbytes::Connbytes,
        connlabel::Connlabel,
        connlimit::Connlimit,
        connmark::Connmark,
        conntrack::Conntrack,
        cpu::Cpu,
        dccp::Dccp,
        devgroup::Devgroup,
        dscp::Dscp,
        dst::Dst,
        ecn::Ecn,
        esp::Esp,
        eui64::Eui64,
        frag::Frag,
        hashlimit::Hashlimit,
        hbh::Hbh,
        helper::Helper,
        hl::Hl,
        icmp::Icmp,
        icmp6::Icmp6,
        ipcomp::Ipcomp,
        iprange::Iprange,
        ipv6header::Ipv6header,
        ipvs::Ipvs,
        length::Length,
        limit::Limit,
        mac::Mac,
        mark::Mark,
        mh::Mh,
        multiport::Multiport,
        nfacct::Nfacct,
        osf::Osf,
        owner::Owner,
        physdev::Physdev,
        pkttype::Pkttype,
        policy::Policy,
        quota::Quota,
        rateest::Rateest,
        realm::Realm,
        recent::Recent,
        rpfilter::Rpfilter,
        rt::Rt,
        sctp::Sctp,
        set::Set,
        socket::Socket,
        srh::Srh,
        statistic::Statistic,
        string::String,
        tcp::Tcp,
        tcpmss::Tcpmss,
        time::Time,
        tos::Tos,
        ttl::Ttl,
        u32::U32,
        udp::Udp,
    }
}
