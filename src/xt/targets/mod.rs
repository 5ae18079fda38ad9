//! Targets, one a module, named as the kernel names them in small letters: `-j DNAT` is [`dnat::Dnat`].
//!
//! A module tells the struct that the kernel takes, its revisions, and where text and value depart from
//! iptables. Verdicts and chains are [`iptables::Target`](crate::iptables::Target)'s.

mod nat;
mod npt;
#[cfg(test)]
mod testing;
mod words;

pub(super) use words::quoted;

use super::extension::registry;

// What several of them have.
pub use nat::{AddressRange, NatPorts};
pub use npt::PrefixTranslation;

registry! {
    /// A target that is an extension: it works on the packet.
    Target, printed as " -j ", always has effects: true {
        audit::Audit,
        checksum::Checksum,
        classify::Classify,
        clusterip::Clusterip,
        connmark::Connmark,
        connsecmark::Connsecmark,
        ct::Ct,
        dnat::Dnat,
        dnpt::Dnpt,
        dscp::Dscp,
        ecn::Ecn,
        hl::Hl,
        hmark::Hmark,
        idletimer::Idletimer,
        led::Led,
        log::Log,
        mark::Mark,
        masquerade::Masquerade,
        netmap::Netmap,
        nflog::Nflog,
        nfqueue::Nfqueue,
        rateest::Rateest,
        redirect::Redirect,
        reject::Reject,
        secmark::Secmark,
        set::Set,
        snat::Snat,
        snpt::Snpt,
        synproxy::Synproxy,
        tcpmss::Tcpmss,
        tcpoptstrip::Tcpoptstrip,
        tee::Tee,
        tos::Tos,
        tproxy::Tproxy,
        trace::Trace,
        ttl::Ttl,
    }
}
