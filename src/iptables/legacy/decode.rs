//! Decodes an entry of a legacy table to a rule.

use std::net::IpAddr;

use bstr::ByteSlice;

use crate::iptables::{
    Address, Entry, Interface, NotExpressible, Protocol, Rule, Target, expressible,
};
use crate::legacy::{
    ChainRef, EditedRule, EditedTarget, ExtensionRef, Family as LegacyFamily, Header,
    InterfaceMatch, Inversions, Ipv4Flags, Ipv6Flags, Malformed, Masked, Matches, RuleRef,
    TableEditor, Target as LegacyTarget,
};
use crate::xt::{self, Family};

/// Decodes an entry.
///
/// # Errors
/// [`NotExpressible`], if a [`Rule`] cannot express it: an ARP table's entry, a comparison of the type of
/// service in the header, an interface mask that no name has, a verdict without a name.
pub fn decode(entry: &RuleRef<'_>) -> Result<Entry, NotExpressible> {
    let mut read = Entry::default();
    decode_as(entry, &mut read, false)?;
    Ok(read)
}

/// Like [`decode`], for a rule of a table whose chains are known. Overwrites `into` and reuses its memory.
///
/// # Errors
/// The errors of [`decode`]; the content of `into` is then undefined.
pub(in crate::iptables) fn decode_into(
    entry: &RuleRef<'_>,
    into: &mut Entry,
) -> Result<(), NotExpressible> {
    decode_as(entry, into, true)
}

/// Decodes an entry; `declared` if a text declares the chain to which the rule jumps.
fn decode_as(entry: &RuleRef<'_>, into: &mut Entry, declared: bool) -> Result<(), NotExpressible> {
    let target = match entry.target().map_err(malformed)? {
        LegacyTarget::Accept => Read::Plain(Target::Accept),
        LegacyTarget::Drop => Read::Plain(Target::Drop),
        LegacyTarget::Queue => Read::Plain(Target::Queue),
        LegacyTarget::Return => Read::Plain(Target::Return),
        LegacyTarget::FallThrough => Read::Plain(Target::None),
        LegacyTarget::Jump(chain) => Read::Plain(Target::Jump(chain.name().to_owned())),
        LegacyTarget::Goto(chain) => Read::Plain(Target::Goto(chain.name().to_owned())),
        LegacyTarget::Extension(extension) => Read::Extension(extension),
        _ => return Err(NO_VERDICT),
    };
    let table = entry.table();
    let rule = &mut into.rule;
    self::rule(
        table.family(),
        &entry.header(),
        entry.matches(),
        target,
        rule,
    )?;
    let named = |hook| {
        table
            .builtin(hook)
            .is_some_and(|chain| contains_rule(&chain, entry))
    };
    let builtin = if rule.in_interface.is_some() || rule.out_interface.is_some() {
        let hooks = table.family().hooks().iter().copied();
        hooks.clone().find(|hook| named(*hook))
    } else {
        None // without checking the chain
    };
    let chain = builtin.map_or("", |hook| hook.chain_name());
    into.counters = entry.counters();
    let (family, name) = (family_of(table.family())?, table.name().as_bstr());
    expressible::rule(family, name, chain.into(), rule, declared).map_err(not_expressible)
}

/// Decodes a rule of a table that is being changed.
pub(super) fn decode_edited(
    editor: &TableEditor<'_>,
    entry: &EditedRule<'_>,
) -> Result<Entry, NotExpressible> {
    let name = |chain| {
        let chain = editor
            .get(chain)
            .ok_or(not_expressible("its jump target is not a chain"))?;
        Ok(chain.name().to_owned())
    };
    let target = match entry.target().map_err(malformed)? {
        EditedTarget::Accept => Read::Plain(Target::Accept),
        EditedTarget::Drop => Read::Plain(Target::Drop),
        EditedTarget::Queue => Read::Plain(Target::Queue),
        EditedTarget::Return => Read::Plain(Target::Return),
        EditedTarget::FallThrough => Read::Plain(Target::None),
        EditedTarget::Jump(chain) => Read::Plain(Target::Jump(name(chain)?)),
        EditedTarget::Goto(chain) => Read::Plain(Target::Goto(name(chain)?)),
        EditedTarget::Extension(extension) => Read::Extension(extension),
        _ => return Err(NO_VERDICT),
    };
    let table = editor.table();
    let mut rule = Rule::default();
    self::rule(
        table.family(),
        &entry.header(),
        entry.matches(),
        target,
        &mut rule,
    )?;
    Ok(Entry {
        rule,
        counters: entry.counters(),
    })
}

/// Returns `true` if the chain contains the rule.
fn contains_rule(chain: &ChainRef<'_>, rule: &RuleRef<'_>) -> bool {
    let start = chain.bytes().as_ptr_range();
    start.contains(&rule.bytes().as_ptr())
}

fn family_of(family: LegacyFamily) -> Result<Family, NotExpressible> {
    Family::try_from(family).map_err(|_| not_expressible("its family is not IPv4 or IPv6"))
}

const fn not_expressible(reason: &'static str) -> NotExpressible {
    NotExpressible {
        expression: None,
        reason,
    }
}

const NO_VERDICT: NotExpressible = not_expressible("iptables has no such verdict");

fn malformed(_: Malformed) -> NotExpressible {
    not_expressible("malformed rule")
}

/// A target whose extension is not decoded yet.
enum Read<'t> {
    Plain(Target),
    Extension(ExtensionRef<'t>),
}

fn rule(
    family: LegacyFamily,
    head: &Header<'_>,
    matches: Matches<'_>,
    target: Read<'_>,
    rule: &mut Rule,
) -> Result<(), NotExpressible> {
    rule.clear();
    header(head, rule).ok_or(not_expressible(
        "its header matches something that iptables has no option for",
    ))?;
    let family = family_of(family)?;
    let goes = matches!(target, Read::Plain(Target::Goto(_)));
    if head.is_goto() && !goes {
        return Err(not_expressible(
            "it is marked as a goto but does not jump to a chain",
        ));
    }
    let unnamed = |_| not_expressible("the name of an extension is not UTF-8");
    for extension in matches {
        let extension = extension.map_err(malformed)?;
        let name = extension.name().to_str().map_err(unnamed)?;
        let read = xt::Match::read(family, name, extension.revision(), extension.data());
        rule.matches.push(read);
    }
    rule.target = match target {
        Read::Plain(target) => target,
        Read::Extension(extension) => {
            let name = extension.name().to_str().map_err(unnamed)?;
            let (revision, data) = (extension.revision(), extension.data());
            Target::Extension(xt::Target::read(family, name, revision, data))
        }
    };
    Ok(())
}

/// Decodes the entry's header into an empty rule.
fn header(header: &Header<'_>, rule: &mut Rule) -> Option<()> {
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
                address(ip.source(), ip.inversions().contains(Inversions::SOURCE))?,
                address(
                    ip.destination(),
                    ip.inversions().contains(Inversions::DESTINATION),
                )?,
                (ip.protocol() != 0).then_some(ip.protocol()),
                ip.inversions(),
                fragments.then_some(!inverted),
            )
        }
        Header::Ipv6(ip) => {
            let flags = ip.flags();
            // Without the flag the kernel passes the protocol to the matches and compares nothing.
            if !(Ipv6Flags::PROTOCOL | Ipv6Flags::GOTO).contains(flags)
                || ip.inversions().contains(Inversions::FRAGMENT)
                || (ip.protocol() != 0 && !flags.contains(Ipv6Flags::PROTOCOL))
            {
                return None;
            }
            (
                address(ip.source(), ip.inversions().contains(Inversions::SOURCE))?,
                address(
                    ip.destination(),
                    ip.inversions().contains(Inversions::DESTINATION),
                )?,
                // Protocol 0 means all protocols.
                (ip.protocol() != 0).then(|| ip.protocol()),
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
    (rule.source, rule.destination) = (source, destination);
    rule.in_interface = interface(&header.in_interface(), invert(Inversions::IN_INTERFACE))?;
    rule.out_interface = interface(&header.out_interface(), invert(Inversions::OUT_INTERFACE))?;
    (rule.protocol, rule.fragment) = (protocol, fragment);
    Some(())
}

/// Returns the address to compare, if any; outer `None` if a rule cannot express it: an address with bits outside its
/// mask never matches.
#[allow(clippy::option_option)]
fn address<A: Into<IpAddr>>(masked: Masked<A>, invert: bool) -> Option<Option<Address>> {
    let value = masked.value.into();
    let address = Address::masked(value, masked.mask.into(), invert);
    (address.address == value).then(|| Some(address).filter(|address| !address.is_everything()))
}

/// Returns the interface to compare, if any; outer `None` if a rule cannot express it.
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
