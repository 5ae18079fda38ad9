//! How a version prints the parts of a rule.

use std::net::IpAddr;

use super::state::Value;
use crate::iptables::nft::encode::NO_INTERFACE;
use crate::iptables::{Address, Interface};
use crate::xt::matches::{PortRange, SpiRange};
use crate::xt::{self, Family, Negatable};

/// An address and its mask. The negation is kept even if another address replaces this one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Net {
    pub(super) address: [u8; 16],
    pub(super) mask: [u8; 16],
    pub(super) invert: bool,
}

/// Returns the interface name as the versions print it.
pub(super) fn interface(value: &Value, invert: bool) -> Option<Interface> {
    let bytes = value.as_slice();
    if bytes.is_empty() {
        return None;
    }
    let prefix = !bytes.ends_with(&[0]);
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    if bytes == NO_INTERFACE && !invert {
        // Written directly or as `! -i +`, it means that no interface matches.
        return Some(Interface {
            name: Default::default(),
            prefix: true,
            invert: true,
        });
    }
    Some(Interface {
        name: name.into(),
        prefix,
        invert,
    })
}

/// Returns the address as the versions print it.
pub(super) fn address(family: Family, net: &Net) -> Option<Address> {
    let ip = |bytes: [u8; 16]| match family {
        Family::Ipv4 => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
        Family::Ipv6 => IpAddr::from(bytes),
    };
    let address = Address::masked(ip(net.address), ip(net.mask), net.invert);
    (!address.is_everything()).then_some(address)
}

/// Removes the chunk types without a name: the versions omit them in the list.
pub(super) fn remove_unnamed_chunks(one: &mut xt::Match) {
    if let xt::Match::Sctp(sctp) = one
        && let Some(chunks) = &mut sctp.chunks
        && let Some(types) = &mut chunks.types
    {
        types.retain(|chunk| !NEWER_CHUNKS.contains(&chunk.kind));
    }
}

/// SCTP chunk types that have names since 1.8.9: `I_DATA`, `RE_CONFIG`, `PAD`, `I_FORWARD_TSN`.
const NEWER_CHUNKS: [u8; 4] = [64, 130, 132, 194];

/// Removes conditions that versions up to 1.8.10 do not print: the negation of everything.
pub(super) fn remove_negated_any(one: &mut xt::Match) {
    let forget = |ports: &mut PortRange| {
        if *ports == PortRange::ANY.not() {
            *ports = PortRange::ANY;
        }
    };
    let forget_spis = |spis: &mut SpiRange| {
        if spis.invert && (spis.first, spis.last) == (0, u32::MAX) {
            *spis = SpiRange::ANY;
        }
    };
    let is_never =
        |compared: &Negatable<(u32, u32)>| compared.invert && compared.value == (0, u32::MAX);
    match one {
        xt::Match::Tcp(tcp) => {
            forget(&mut tcp.source);
            forget(&mut tcp.destination);
        }
        xt::Match::Udp(udp) => {
            forget(&mut udp.source);
            forget(&mut udp.destination);
        }
        xt::Match::Ah(ah) => forget_spis(&mut ah.spis),
        xt::Match::Esp(esp) => forget_spis(&mut esp.spis),
        xt::Match::Ipcomp(ipcomp) => forget_spis(&mut ipcomp.spis),
        xt::Match::Frag(frag) => frag.ids = frag.ids.filter(|ids| !is_never(ids)),
        xt::Match::Rt(rt) => {
            rt.segments_left = rt.segments_left.filter(|left| !is_never(left));
        }
        xt::Match::Mh(mh) if (mh.first, mh.last) == (0, u8::MAX) => mh.invert = false,
        _ => {}
    }
}
