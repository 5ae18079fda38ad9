//! Matches of addresses, interfaces, routes and link data.

use super::super::field::{Field, name_value};
use super::super::packet::Hook;
use super::super::path_state::{PathState, Undetermined};
use super::super::route::{ANYCAST, LOCAL, UNREACHABLE, address_number};
use super::super::value::{Test, Value};
use super::{holds, is, named};
use chainwright::nft::expr::{FibFlags, FibResult, MetaKey, PayloadBase, RtKey};
use chainwright::xt::matches::addrtype::{AddressTypes, Addrtype, AddrtypeInterface};
use chainwright::xt::matches::devgroup::Devgroup;
use chainwright::xt::matches::iprange::Iprange;
use chainwright::xt::matches::mac::Mac;
use chainwright::xt::matches::physdev::Physdev;
use chainwright::xt::matches::pkttype::{PacketType, Pkttype};
use chainwright::xt::matches::policy::{Policy, PolicyDirection, PolicyRequirement};
use chainwright::xt::matches::realm::Realm;
use chainwright::xt::matches::rpfilter::Rpfilter;
use chainwright::xt::{Family, Match};

/// `ARPHRD_ETHER`
const ETHERNET: u128 = 1;

pub(super) fn addrtype(
    path_state: &mut PathState,
    addrtype: &Addrtype,
) -> Result<bool, Undetermined> {
    let interface = match addrtype.interface {
        Some(AddrtypeInterface::In) => FibFlags::IIF,
        Some(AddrtypeInterface::Out) => FibFlags::OIF,
        None => FibFlags::empty(),
    };
    let source = holds(addrtype.source.as_ref(), |types| {
        is_of_type(
            path_state,
            Field::Source,
            FibFlags::SADDR | interface,
            *types,
        )
    })?;
    Ok(source
        && holds(addrtype.destination.as_ref(), |types| {
            is_of_type(
                path_state,
                Field::Destination,
                FibFlags::DADDR | interface,
                *types,
            )
        })?)
}

fn is_of_type(
    path_state: &mut PathState,
    address: Field,
    flags: FibFlags,
    types: AddressTypes,
) -> Result<bool, Undetermined> {
    let route = path_state.fib(flags, FibResult::ADDRTYPE);
    if path_state.family == Family::Ipv4 {
        let wanted: Vec<(u128, u128)> = (0..16)
            .filter(|kind| types.bits() >> kind & 1 != 0)
            .map(|kind| (kind, kind))
            .collect();
        return path_state.test_value(&route, Test::Among(&wanted));
    }
    // All of these must hold; the address itself determines whether it is unicast.
    if types.contains(AddressTypes::MULTICAST) {
        let multicast = Test::Within(0xff << 120, u128::MAX);
        if !path_state.is(address, multicast)? {
            return Ok(false);
        }
    }
    if types.contains(AddressTypes::UNICAST) {
        let others = [
            (0, 0),
            (0xffff_0000_0000, 0xffff_ffff_ffff),
            (0xff << 120, u128::MAX),
        ];
        if path_state.is(address, Test::Among(&others))? {
            return Ok(false);
        }
    }
    if types.contains(AddressTypes::UNSPEC) && !path_state.is(address, Test::Is(0))? {
        return Ok(false);
    }
    let mut wanted = Vec::new();
    for (bit, kind) in [
        (AddressTypes::LOCAL, LOCAL),
        (AddressTypes::ANYCAST, ANYCAST),
        (AddressTypes::UNREACHABLE, UNREACHABLE),
    ] {
        if types.contains(bit) {
            wanted.push((kind, kind));
        }
    }
    Ok(wanted.is_empty() || path_state.test_value(&route, Test::Among(&wanted))?)
}

pub(super) fn iprange(path_state: &mut PathState, iprange: &Iprange) -> Result<bool, Undetermined> {
    for (field, range) in [
        (Field::Source, &iprange.source),
        (Field::Destination, &iprange.destination),
    ] {
        let is = holds(range.as_ref(), |range| {
            path_state.is(
                field,
                Test::Within(address_number(*range.start()), address_number(*range.end())),
            )
        })?;
        if !is {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tests `-m mac`: packets not received over Ethernet do not match.
pub(super) fn mac(path_state: &mut PathState, mac: &Mac) -> Result<bool, Undetermined> {
    let kind = path_state.meta(MetaKey::IIFTYPE)?;
    if !is(path_state, kind, Test::Is(ETHERNET))? {
        return Ok(false);
    }
    match path_state.header(PayloadBase::LINK, 6, 6)? {
        Some(source) => {
            let wanted = mac
                .source
                .iter()
                .fold(0, |all, byte| all << 8 | u128::from(*byte));
            Ok(path_state.test_value(&source, Test::Is(wanted))? != mac.invert)
        }
        None => Ok(false),
    }
}

pub(super) fn pkttype(path_state: &mut PathState, pkttype: Pkttype) -> Result<bool, Undetermined> {
    let kind = match pkttype.kind {
        PacketType::Host => 0,
        PacketType::Broadcast => 1,
        PacketType::Multicast => 2,
        PacketType::OtherHost => 3,
    };
    let actual = path_state.packet_type();
    Ok(path_state.test_value(&actual, Test::Is(kind))? != pkttype.invert)
}

pub(super) fn devgroup(
    path_state: &mut PathState,
    devgroup: &Devgroup,
) -> Result<bool, Undetermined> {
    for (key, group) in [
        (MetaKey::IIFGROUP, &devgroup.source),
        (MetaKey::OIFGROUP, &devgroup.destination),
    ] {
        if let Some(group) = group {
            let (value, mask) = (group.value.value, group.value.mask);
            // Without an interface, the group is 0. Bits outside of the mask are ignored.
            let actual = path_state.meta(key)?.unwrap_or(Value::known(0, 32));
            let test = Test::Masked {
                mask: mask.into(),
                value: value.into(),
            };
            if path_state.test_value(&actual, test)? == group.invert {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Matches bridge ports. Packets without one match if all conditions are negated.
pub(super) fn physdev(path_state: &mut PathState, physdev: &Physdev) -> Result<bool, Undetermined> {
    if path_state.always("it came through a port of a bridge with iptables processing")? {
        return Err(Undetermined::unknown("bridge ports are not tracked"));
    }
    let conditions = [
        physdev.is_in,
        physdev.is_out,
        physdev.is_bridged,
        physdev.port_in.as_ref().map(|port| !port.invert),
        physdev.port_out.as_ref().map(|port| !port.invert),
    ];
    Ok(conditions.into_iter().flatten().all(|wanted| !wanted))
}

pub(super) fn realm(path_state: &mut PathState, realm: Realm) -> Result<bool, Undetermined> {
    let Some(actual) = path_state.route(RtKey::CLASSID) else {
        return Ok(false);
    };
    let (mask, value) = (u128::from(realm.mask), u128::from(realm.value));
    let is = value & !mask == 0 && path_state.test_value(&actual, Test::Masked { mask, value })?;
    Ok(is != realm.invert)
}

pub(super) fn rpfilter(
    path_state: &mut PathState,
    rpfilter: Rpfilter,
) -> Result<bool, Undetermined> {
    let invert = rpfilter.contains(Rpfilter::INVERT);
    // Packets from the loopback device always pass.
    if path_state.hook == Hook::Prerouting
        && path_state.is(Field::InName, Test::Is(name_value(b"lo")))?
    {
        return Ok(!invert);
    }
    let source = named(path_state, Field::Source);
    let how = match rpfilter.contains(Rpfilter::LOOSE) {
        true => "any interface",
        false => "its input interface",
    };
    let mut description = format!("the route back to it leaves through {how} ({source})");
    if rpfilter.contains(Rpfilter::VALIDMARK) {
        description += &format!(" with {}", named(path_state, Field::Mark));
    }
    if rpfilter.contains(Rpfilter::ACCEPT_LOCAL) {
        description += ", or it has an address of this machine";
    }
    Ok(path_state.always(description)? != invert)
}

/// Tests the IPsec transformations of the packet.
pub(super) fn policy(path_state: &mut PathState, policy: &Policy) -> Result<bool, Undetermined> {
    let (actual, way) = match policy.direction {
        PolicyDirection::In => (path_state.meta(MetaKey::SECPATH)?, "came"),
        PolicyDirection::Out => (path_state.route(RtKey::XFRM), "leaves"),
    };
    let transformed = is(path_state, actual, Test::Within(1, u128::MAX))?;
    match &policy.wanted {
        PolicyRequirement::None => Ok(!transformed),
        _ if !transformed => Ok(false),
        PolicyRequirement::Any(_) | PolicyRequirement::Strict(_) => {
            let description = super::description(&Match::Policy(policy.clone()));
            path_state.always(format!("it {way} by IPsec as in `{description}`"))
        }
    }
}
