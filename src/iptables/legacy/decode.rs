//! From an entry of a legacy table to a rule.

use std::net::IpAddr;

use bstr::ByteSlice;

use crate::iptables::{Address, Beyond, Entry, Interface, Protocol, Rule, Target};
use crate::legacy::{
    Draft, DraftRule, DraftTarget, ExtensionRef, Family as LegacyFamily, Header, InterfaceMatch,
    Inversions, Ipv4Flags, Ipv6Flags, Malformed, Masked, Matches, RuleRef, Target as LegacyTarget,
};
use crate::xt::{self, Family};

/// Reads an entry.
///
/// # Errors
/// [`Beyond`], if it says anything that a [`Rule`] cannot say: an ARP table's entry, the type of
/// service in its header, an interface's mask that no name has, a verdict without a name.
pub fn decode(entry: &RuleRef<'_>) -> Result<Entry, Beyond> {
    let target = match entry.target().map_err(malformed)? {
        LegacyTarget::Accept => Read::Said(Target::Accept),
        LegacyTarget::Drop => Read::Said(Target::Drop),
        LegacyTarget::Queue => Read::Said(Target::Queue),
        LegacyTarget::Return => Read::Said(Target::Return),
        LegacyTarget::FallThrough => Read::Said(Target::None),
        LegacyTarget::Jump(chain) => Read::Said(Target::Jump(chain.name().to_owned())),
        LegacyTarget::Goto(chain) => Read::Said(Target::Goto(chain.name().to_owned())),
        LegacyTarget::Extension(extension) => Read::Extension(extension),
        _ => return Err(NO_VERDICT),
    };
    let family = entry.table().family();
    let rule = rule(family, &entry.header(), entry.matches(), target)?;
    Ok(Entry {
        rule,
        counters: entry.counters().into(),
    })
}

/// Reads a rule of a table that is being changed.
pub(super) fn decode_draft(draft: &Draft<'_>, entry: &DraftRule<'_>) -> Result<Entry, Beyond> {
    let name = |chain| {
        let chain = draft.get(chain).ok_or(beyond("it leads to no chain"))?;
        Ok(chain.name().to_owned())
    };
    let target = match entry.target().map_err(malformed)? {
        DraftTarget::Accept => Read::Said(Target::Accept),
        DraftTarget::Drop => Read::Said(Target::Drop),
        DraftTarget::Queue => Read::Said(Target::Queue),
        DraftTarget::Return => Read::Said(Target::Return),
        DraftTarget::FallThrough => Read::Said(Target::None),
        DraftTarget::Jump(chain) => Read::Said(Target::Jump(name(chain)?)),
        DraftTarget::Goto(chain) => Read::Said(Target::Goto(name(chain)?)),
        DraftTarget::Extension(extension) => Read::Extension(extension),
        _ => return Err(NO_VERDICT),
    };
    let family = draft.table().family();
    let rule = rule(family, &entry.header(), entry.matches(), target)?;
    Ok(Entry {
        rule,
        counters: entry.counters().into(),
    })
}

const fn beyond(reason: &'static str) -> Beyond {
    Beyond {
        expression: None,
        reason,
    }
}

const NO_VERDICT: Beyond = beyond("iptables has no such verdict");

fn malformed(_: Malformed) -> Beyond {
    beyond("it is malformed")
}

/// A target, whose extension is not read yet.
enum Read<'t> {
    Said(Target),
    Extension(ExtensionRef<'t>),
}

fn rule(
    family: LegacyFamily,
    head: &Header<'_>,
    matches: Matches<'_>,
    target: Read<'_>,
) -> Result<Rule, Beyond> {
    let mut rule = header(head).ok_or(beyond(
        "its header compares what iptables has no option for",
    ))?;
    let family = match family {
        LegacyFamily::Ipv4 => Family::Ipv4,
        LegacyFamily::Ipv6 => Family::Ipv6,
        LegacyFamily::Arp => return Err(beyond("it is of another family than IPv4 and IPv6")),
    };
    let unnamed = |_| beyond("the name of an extension is not text");
    for extension in matches {
        let extension = extension.map_err(malformed)?;
        let name = extension.name().to_str().map_err(unnamed)?;
        let read = xt::Match::read(family, name, extension.revision(), extension.data());
        rule.matches.push(read);
    }
    rule.target = match target {
        Read::Said(target) => target,
        Read::Extension(extension) => {
            let name = extension.name().to_str().map_err(unnamed)?;
            let (revision, data) = (extension.revision(), extension.data());
            Target::Extension(xt::Target::read(family, name, revision, data))
        }
    };
    Ok(rule)
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
