//! Encodes a rule as an entry of a legacy table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::iptables::nft::Unwritable;
use crate::iptables::{Address, Counters, Error, Interface, Rule, Target};
use crate::legacy::{
    ChainId, HeaderBuf, InterfaceMatchBuf, Inversions, Ipv4Flags, Ipv4HeaderBuf, Ipv6Flags,
    Ipv6HeaderBuf, Masked, NewRule, NewTarget, TableEditor,
};
use crate::xt::Family;

/// Builds the rule in the editor. `chain` looks up the target chain; `info` is scratch memory.
pub(super) fn encode(
    family: Family,
    editor: &mut TableEditor<'_>,
    rule: &Rule,
    counters: Counters,
    info: &mut Vec<u8>,
    chain: impl FnOnce(&TableEditor<'_>, &[u8]) -> Result<ChainId, Error>,
) -> Result<NewRule, Error> {
    // The builder borrows the editor, so look up the target chain first.
    let jump = match &rule.target {
        Target::Jump(name) => NewTarget::Jump(chain(editor, name)?),
        Target::Goto(name) => NewTarget::Goto(chain(editor, name)?),
        _ => NewTarget::FallThrough,
    };
    let header = header(family, rule)?;
    let mut builder = editor.build(header)?;
    for extension in &rule.matches {
        let encoded = extension.encode_into(family, info);
        let (name, revision) = encoded.map_err(Unwritable::from)?;
        builder.push_match(name, revision, info)?;
    }
    builder.counters(counters);
    let built = match &rule.target {
        Target::Jump(_) | Target::Goto(_) | Target::None => builder.finish(jump),
        Target::Accept => builder.finish(NewTarget::Accept),
        Target::Drop => builder.finish(NewTarget::Drop),
        Target::Return => builder.finish(NewTarget::Return),
        Target::Queue => builder.finish(NewTarget::Queue),
        Target::Extension(target) => {
            let encoded = target.encode_into(family, info);
            let (name, revision) = encoded.map_err(Unwritable::from)?;
            builder.finish(NewTarget::Extension {
                name: name.as_bytes(),
                revision,
                data: info,
            })
        }
    };
    Ok(built?)
}

/// Encodes the rule's own conditions as the entry's header.
fn header(family: Family, rule: &Rule) -> Result<HeaderBuf, Unwritable> {
    let mut inversions = Inversions::empty();
    let inverted = [
        (Inversions::SOURCE, rule.source.is_some_and(|a| a.invert)),
        (
            Inversions::DESTINATION,
            rule.destination.is_some_and(|a| a.invert),
        ),
        (
            Inversions::PROTOCOL,
            rule.protocol.is_some_and(|p| p.invert),
        ),
        (Inversions::FRAGMENT, rule.fragment == Some(false)),
        (
            Inversions::IN_INTERFACE,
            rule.in_interface.as_ref().is_some_and(|i| i.invert),
        ),
        (
            Inversions::OUT_INTERFACE,
            rule.out_interface.as_ref().is_some_and(|i| i.invert),
        ),
    ];
    for (flag, invert) in inverted {
        inversions.set(flag, invert);
    }
    let protocol = rule.protocol.map_or(0, |protocol| protocol.number.into());
    let in_interface = interface(rule.in_interface.as_ref())?;
    let out_interface = interface(rule.out_interface.as_ref())?;
    Ok(match family {
        Family::Ipv4 => HeaderBuf::from(Ipv4HeaderBuf {
            source: ipv4(rule.source.as_ref())?,
            destination: ipv4(rule.destination.as_ref())?,
            in_interface,
            out_interface,
            protocol,
            flags: match rule.fragment {
                Some(_) => Ipv4Flags::FRAGMENT,
                None => Ipv4Flags::empty(),
            },
            inversions,
        }),
        Family::Ipv6 if rule.fragment.is_some() => return Err(Unwritable::Fragment),
        Family::Ipv6 => HeaderBuf::from(Ipv6HeaderBuf {
            source: ipv6(rule.source.as_ref())?,
            destination: ipv6(rule.destination.as_ref())?,
            in_interface,
            out_interface,
            protocol,
            flags: match rule.protocol {
                Some(_) => Ipv6Flags::PROTOCOL,
                None => Ipv6Flags::empty(),
            },
            inversions,
            ..Ipv6HeaderBuf::default()
        }),
    })
}

fn interface(interface: Option<&Interface>) -> Result<InterfaceMatchBuf, Unwritable> {
    let Some(interface) = interface else {
        return Ok(InterfaceMatchBuf::ANY);
    };
    // A name has at most 15 bytes, including the `+` that iptables appends to a prefix.
    let mut name = interface.name.to_vec();
    if interface.prefix && name.len() < 15 {
        name.push(b'+');
    }
    InterfaceMatchBuf::new(&name).ok_or_else(|| Unwritable::Interface {
        name: interface.name.clone(),
    })
}

fn ipv4(address: Option<&Address>) -> Result<Masked<Ipv4Addr>, Unwritable> {
    let any = Ipv4Addr::UNSPECIFIED;
    match address.map(|a| (a.address, a.mask)) {
        None => Ok(Masked {
            value: any,
            mask: any,
        }),
        Some((IpAddr::V4(value), IpAddr::V4(mask))) => Ok(Masked { value, mask }),
        Some((address, _)) => Err(Unwritable::Family { address }),
    }
}

fn ipv6(address: Option<&Address>) -> Result<Masked<Ipv6Addr>, Unwritable> {
    let any = Ipv6Addr::UNSPECIFIED;
    match address.map(|a| (a.address, a.mask)) {
        None => Ok(Masked {
            value: any,
            mask: any,
        }),
        Some((IpAddr::V6(value), IpAddr::V6(mask))) => Ok(Masked { value, mask }),
        Some((address, _)) => Err(Unwritable::Family { address }),
    }
}
