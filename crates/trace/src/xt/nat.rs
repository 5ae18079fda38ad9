//! Targets for NAT.

use std::net::IpAddr;

use super::super::nat::Translation;
use super::super::packet::Hook;
use super::super::path_state::{Effect, PathState, Undetermined};
use super::super::route::address_number;
use super::super::value::Value;
use chainwright::xt::targets::dnat::Dnat;
use chainwright::xt::targets::masquerade::Masquerade;
use chainwright::xt::targets::netmap::Netmap;
use chainwright::xt::targets::redirect::Redirect;
use chainwright::xt::targets::snat::Snat;
use chainwright::xt::targets::{AddressRange, NatPorts};

/// First and last value of a range.
type Ends = Option<(Value, Value)>;

fn addresses(path_state: &PathState, range: Option<AddressRange>) -> Ends {
    let value = |address: IpAddr| Value::known(address_number(address), path_state.address_bits());
    range.map(|range| (value(range.first), value(range.last)))
}

fn ports(range: Option<NatPorts>) -> Ends {
    let value = |port: u16| Value::known(port.into(), 16);
    range.map(|range| (value(range.first), value(range.last)))
}

pub(super) fn dnat(path_state: &mut PathState, dnat: &Dnat) -> Result<Effect, Undetermined> {
    let translation = Translation {
        addresses: addresses(path_state, dnat.addresses),
        ports: ports(dnat.ports),
        random: dnat.random,
        base: dnat.base_port,
        ..Translation::new(true, "dnat")
    };
    path_state.translate(&translation)
}

pub(super) fn snat(path_state: &mut PathState, snat: &Snat) -> Result<Effect, Undetermined> {
    let translation = Translation {
        addresses: addresses(path_state, snat.addresses),
        ports: ports(snat.ports),
        random: snat.random || snat.random_fully,
        ..Translation::new(false, "snat")
    };
    path_state.translate(&translation)
}

pub(super) fn masquerade(
    path_state: &mut PathState,
    masquerade: &Masquerade,
) -> Result<Effect, Undetermined> {
    let random = masquerade.random || masquerade.random_fully;
    path_state.masquerade(ports(masquerade.ports), random)
}

pub(super) fn redirect(
    path_state: &mut PathState,
    redirect: &Redirect,
) -> Result<Effect, Undetermined> {
    path_state.redirect(ports(redirect.ports), redirect.random)
}

/// Replaces the network bits of an address: of the destination in prerouting and output, of the source in other hooks.
pub(super) fn netmap(path_state: &mut PathState, netmap: &Netmap) -> Result<Effect, Undetermined> {
    let bits = path_state.address_bits();
    let behind = match u32::from(netmap.prefix) {
        prefix if prefix >= bits => 0,
        0 => super::super::value_set::ones(bits),
        prefix => super::super::value_set::ones(bits - prefix),
    };
    let first = address_number(netmap.address) & !behind;
    let destination = matches!(path_state.hook, Hook::Prerouting | Hook::Output);
    let ends = (
        Value::known(first, bits),
        Value::known(first | behind, bits),
    );
    let translation = Translation {
        addresses: Some(ends),
        netmap: true,
        ..Translation::new(destination, "netmap")
    };
    path_state.translate(&translation)
}
