//! Targets, one per module, with the kernel's names in lower case: `-j DNAT` is [`dnat::Dnat`].
//!
//! Each module documents the kernel's struct, its revisions, and intentional differences from iptables.
//! [`iptables::Target`](crate::iptables::Target) contains verdicts and chains.

mod nat;
mod npt;
mod quoting;
#[cfg(test)]
mod testing;

pub(super) use quoting::quoted;

use super::extension::registry;

// Shared by several targets.
pub use nat::{AddressRange, NatPorts};
pub use npt::PrefixTranslation;

registry! {
    /// A target that is an extension.
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
