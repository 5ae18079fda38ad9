//! From an entry of a legacy table to a rule.

use std::net::IpAddr;

use bstr::ByteSlice;

use crate::iptables::{Address, Beyond, Counters, Entry, Interface, Protocol, Rule, Target};
use crate::legacy::{
    Family as LegacyFamily, Header, InterfaceMatch, Inversions, Ipv4Flags, Ipv6Flags, Masked,
    RuleRef, Target as LegacyTarget,
};
use crate::xt::{self, Family};

/// Reads an entry.
///
/// # Errors
/// [`Beyond`], if it says anything that a [`Rule`] cannot say: an ARP table's entry, the type of
/// service in its header, an interface's mask that no name has, a verdict without a name.
pub fn decode(entry: &RuleRef<'_>) -> Result<Entry, Beyond> {
    let beyond = |reason| Beyond {
        expression: None,
        reason,
    };
    let mut rule = header(&entry.header())
        .ok_or_else(|| beyond("its header compares what iptables has no option for"))?;
    let family = match entry.table().family() {
        LegacyFamily::Ipv4 => Family::Ipv4,
        LegacyFamily::Ipv6 => Family::Ipv6,
        LegacyFamily::Arp => return Err(beyond("it is of another family than IPv4 and IPv6")),
    };
    let unnamed = || beyond("the name of an extension is not text");
    let malformed = |_| beyond("it is malformed");
    for extension in entry.matches() {
        let extension = extension.map_err(malformed)?;
        let name = extension.name().to_str().map_err(|_| unnamed())?;
        let read = xt::Match::read(family, name, extension.revision(), extension.data());
        rule.matches.push(read);
    }
    rule.target = match entry.target().map_err(malformed)? {
        LegacyTarget::Accept => Target::Accept,
        LegacyTarget::Drop => Target::Drop,
        LegacyTarget::Queue => Target::Queue,
        LegacyTarget::Return => Target::Return,
        LegacyTarget::FallThrough => Target::None,
        LegacyTarget::Jump(chain) => Target::Jump(chain.name().to_owned()),
        LegacyTarget::Goto(chain) => Target::Goto(chain.name().to_owned()),
        LegacyTarget::Extension(extension) => {
            let name = extension.name().to_str().map_err(|_| unnamed())?;
            let (revision, data) = (extension.revision(), extension.data());
            Target::Extension(xt::Target::read(family, name, revision, data))
        }
        _ => return Err(beyond("iptables has no such verdict")),
    };
    let counters = entry.counters();
    Ok(Entry {
        rule,
        counters: Counters {
            packets: counters.packets,
            bytes: counters.bytes,
        },
    })
}

/// What the entry compares by itself.
fn header(header: &Header<'_>) -> Option<Rule> {
    let (source, destination, protocol, inversions, fragment) = match header {
        Header::Ipv4(ip) => {
            let flags = ip.flags();
            if !(Ipv4Flags::FRAGMENT | Ipv4Flags::GOTO).contains(flags) {
                return None;
            }
            let fragments = flags.contains(Ipv4Flags::FRAGMENT);
            let inverted = ip.inversions().contains(Inversions::FRAGMENT);
            if inverted && !fragments {
                return None;
            }
            (
                address(ip.source(), ip.inversions().contains(Inversions::SOURCE)),
                address(
                    ip.destination(),
                    ip.inversions().contains(Inversions::DESTINATION),
                ),
                (ip.protocol() != 0).then_some(ip.protocol()),
                ip.inversions(),
                fragments.then_some(!inverted),
            )
        }
        Header::Ipv6(ip) => {
            let flags = ip.flags();
            if !(Ipv6Flags::PROTOCOL | Ipv6Flags::GOTO).contains(flags)
                || ip.inversions().contains(Inversions::FRAGMENT)
            {
                return None;
            }
            (
                address(ip.source(), ip.inversions().contains(Inversions::SOURCE)),
                address(
                    ip.destination(),
                    ip.inversions().contains(Inversions::DESTINATION),
                ),
                // Protocol 0 stands for all.
                (flags.contains(Ipv6Flags::PROTOCOL) && ip.protocol() != 0).then(|| ip.protocol()),
                ip.inversions(),
                None,
            )
        }
        Header::Arp(_) => return None,
    };
    let known = Inversions::IN_INTERFACE
        | Inversions::OUT_INTERFACE
        | Inversions::SOURCE
        | Inversions::DESTINATION
        | Inversions::FRAGMENT
        | Inversions::PROTOCOL;
    let inverted = inversions.contains(Inversions::PROTOCOL);
    if !known.contains(inversions) || (inverted && protocol.is_none()) {
        return None;
    }
    let protocol = match protocol {
        None => None,
        Some(number) => Some(Protocol {
            number: u8::try_from(number).ok()?,
            invert: inverted,
        }),
    };
    let invert = |flag| inversions.contains(flag);
    Some(Rule {
        source,
        destination,
        in_interface: interface(&header.in_interface(), invert(Inversions::IN_INTERFACE))?,
        out_interface: interface(&header.out_interface(), invert(Inversions::OUT_INTERFACE))?,
        protocol,
        fragment,
        ..Rule::default()
    })
}

fn address<A: Into<IpAddr>>(masked: Masked<A>, invert: bool) -> Option<Address> {
    let address = Address::masked(masked.value.into(), masked.mask.into(), invert);
    (!address.is_everything()).then_some(address)
}

/// The interface, if one is compared; `None` outside if it cannot be said.
fn interface(interface: &InterfaceMatch<'_>, invert: bool) -> Option<Option<Interface>> {
    if interface.is_any() && !invert {
        return Some(None);
    }
    interface.is_plain().then(|| {
        Some(Interface {
            name: interface.name().to_owned(),
            prefix: interface.is_prefix(),
            invert,
        })
    })
}
