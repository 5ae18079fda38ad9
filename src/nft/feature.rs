//! Features that older kernels lack, and the features that an operation requires, to explain a rejection. They are
//! checked only after the kernel rejected something; a kernel with a backported feature does not reject it. The
//! releases are the first ones with the change, according to the kernel's history and nft's feature tests
//! (`tests/shell/features`).

use std::fmt;
use std::sync::OnceLock;

use chainwright_sys::netfilter::{NF_NETDEV_EGRESS, NFPROTO_NETDEV};
use chainwright_sys::nf_tables::{
    NFT_MSG_DESTROYFLOWTABLE, NFT_MSG_DESTROYTABLE, NFT_MSG_GETRULE_RESET,
    NFT_MSG_GETSETELEM_RESET, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_CHAIN_HOOK, NFTA_FLOWTABLE_HOOK,
    NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_EXPRESSIONS, NFTA_SET_FLAGS,
    NFTA_TABLE_FLAGS,
};

use super::declare::Field;
use super::expr::{BitwiseOp, Decoded, ExpressionRef, ExthdrOp, MetaKey, PayloadBase, SocketKey};
use super::references::{MessageItem, each_mention};
use super::{Device, Devices, ElementFlags, ElementRef, FlowtableHook, Hook, SetFlags, TableFlags};
use crate::errno::Errno;
use crate::netlink::{self, Attributes, Message};

/// Major and minor number of a Linux release.
type Release = (u32, u32);

/// A feature of nf_tables, with the Linux release that introduced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Feature {
    name: &'static str,
    since: Release,
}

impl Feature {
    /// Returns the feature's description: `catch-all elements`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the first Linux release with this feature, as its major and minor number.
    #[must_use]
    pub const fn since(&self) -> (u32, u32) {
        self.since
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.since;
        write!(f, "{}, available since Linux {major}.{minor}", self.name)
    }
}

/// One line per feature: its constant, its description, and the release.
macro_rules! features {
    ($($NAME:ident: $name:literal, $major:literal . $minor:literal;)*) => {
        $(const $NAME: Feature = Feature { name: $name, since: ($major, $minor) };)*
    };
}

features! {
    SEVERAL_STATEMENTS: "several statements in an element", 5 . 11;
    OWNER: "owned tables", 5 . 12;
    CATCH_ALL: "catch-all elements", 5 . 13;
    CGROUPS: "cgroups of sockets", 5 . 13;
    LAST: "the expression `last`", 5 . 14;
    SCTP_CHUNKS: "SCTP chunks", 5 . 14;
    INNER_HEADER: "the payload behind the transport header", 5 . 16;
    EGRESS: "the hook egress", 5 . 16;
    INNER: "headers inside tunnels", 6 . 2;
    RESET_RULES: "resetting the counters of rules", 6 . 2;
    DESTROY: "`destroy`", 6 . 3;
    BROUTE: "`meta broute`", 6 . 4;
    DCCP_OPTIONS: "DCCP options", 6 . 5;
    RESET_ELEMENTS: "resetting the counters of elements", 6 . 5;
    PERSIST: "tables that outlive their owner", 6 . 9;
    TWO_REGISTERS: "bitwise AND, OR and XOR of two registers", 6 . 13;
    ABSENT_DEVICES: "hooks on devices that do not exist yet", 6 . 16;
    DEVICE_PREFIX: "devices by name prefix", 6 . 17;
    BRIDGE_ADDRESS: "`meta ibrhwaddr`", 6 . 18;
}

/// Returns the feature required by an operation that the running kernel lacks, if that may be the cause of the
/// error.
pub(super) fn missing_feature(errno: Errno, message: &Message<'_>) -> Option<Feature> {
    if !is_unknown_feature_error(errno) {
        return None;
    }
    let needed = needed(message).unwrap_or_default().into_iter();
    let missing_feature = needed.filter(|feature| {
        // A missing device is rejected with `ENOENT` only.
        (*feature != ABSENT_DEVICES || errno.number() == libc::ENOENT)
            && is_later_than(feature, release())
    });
    missing_feature.max_by_key(|feature| feature.since)
}

/// Returns the features required by a message that are newer than the running kernel. Missing devices are ignored,
/// because only the kernel knows whether the devices exist.
pub(super) fn newer_features(message: &Message<'_>) -> impl Iterator<Item = Feature> {
    let needed = needed(message).unwrap_or_default().into_iter();
    needed.filter(|feature| *feature != ABSENT_DEVICES && is_later_than(feature, release()))
}

/// Adds the feature that the running kernel lacks to the error of a rejected request.
pub(super) fn explain_request(error: netlink::Error, message: u8) -> netlink::Error {
    let needed = match message {
        NFT_MSG_GETRULE_RESET => RESET_RULES,
        NFT_MSG_GETSETELEM_RESET => RESET_ELEMENTS,
        _ => return error,
    };
    match error {
        netlink::Error::Refused { request, errno, .. }
            if is_unknown_feature_error(errno) && is_later_than(&needed, release()) =>
        {
            netlink::Error::Lacks {
                request,
                what: needed.name,
                since: needed.since,
                errno,
            }
        }
        error => error,
    }
}

/// Returns `true` if the kernel uses this error for unknown messages, flags, attributes and expressions.
fn is_unknown_feature_error(errno: Errno) -> bool {
    let unknown = [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT, libc::ERANGE];
    unknown.contains(&errno.number())
}

fn is_later_than(feature: &Feature, release: Option<Release>) -> bool {
    release.is_some_and(|release| release < feature.since)
}

/// Returns the running kernel's release; `None` if it is not numeric.
fn release() -> Option<Release> {
    static RELEASE: OnceLock<Option<Release>> = OnceLock::new();
    *RELEASE.get_or_init(|| {
        let names = nix::sys::utsname::uname().ok()?;
        parse_release(names.release().to_str()?)
    })
}

/// Parses a release such as `6.12.107+deb13-amd64`.
fn parse_release(text: &str) -> Option<Release> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the features required by a message; `None` if the message lacks an attribute that could require any.
fn needed(message: &Message<'_>) -> Option<Vec<Feature>> {
    let (header, attributes) = message.nfgenmsg().ok()?;
    let attributes = || Attributes::new(attributes);
    let mut needed = Vec::new();
    match message.kind as u8 {
        NFT_MSG_NEWTABLE => {
            let flags = attributes().find(NFTA_TABLE_FLAGS)?;
            let flags = TableFlags::decode(flags)?;
            needed.extend(flags.contains(TableFlags::OWNER).then_some(OWNER));
            needed.extend(flags.contains(TableFlags::PERSIST).then_some(PERSIST));
        }
        NFT_MSG_NEWCHAIN => {
            let hook = Hook::decode(attributes().find(NFTA_CHAIN_HOOK)?)?;
            let egress = header.family == NFPROTO_NETDEV && hook.number == Some(NF_NETDEV_EGRESS);
            needed.extend(egress.then_some(EGRESS));
            needed.extend(of_devices(hook.devices.as_ref()));
        }
        NFT_MSG_NEWFLOWTABLE => {
            let hook = FlowtableHook::decode(attributes().find(NFTA_FLOWTABLE_HOOK)?)?;
            needed.extend(of_devices(hook.devices.as_ref()));
        }
        NFT_MSG_NEWSET => {
            let flags = attributes().find(NFTA_SET_FLAGS).and_then(SetFlags::decode);
            let flags = flags.unwrap_or_default();
            needed.extend(flags.contains(SetFlags::EXPR).then_some(SEVERAL_STATEMENTS));
            let several = attributes().find(NFTA_SET_EXPRESSIONS);
            needed.extend(several.map(|_| SEVERAL_STATEMENTS));
        }
        NFT_MSG_NEWSETELEM => {
            let elements = attributes().find(NFTA_SET_ELEM_LIST_ELEMENTS)?;
            for (_, element) in Attributes::new(elements)
                .map_while(Result::ok)
                .map(|a| (a.kind, a.payload))
            {
                let flags = ElementRef::parse(element)
                    .ok()
                    .and_then(|element| element.to_builder().flags);
                let catches_all = flags.is_some_and(|flags| flags.contains(ElementFlags::CATCHALL));
                needed.extend(catches_all.then_some(CATCH_ALL));
                let several = Attributes::new(element).find(NFTA_SET_ELEM_EXPRESSIONS);
                needed.extend(several.map(|_| SEVERAL_STATEMENTS));
            }
        }
        NFT_MSG_DESTROYTABLE..=NFT_MSG_DESTROYFLOWTABLE => needed.push(DESTROY),
        _ => {}
    }
    each_mention(message, &mut |_, found| {
        if let MessageItem::Expression(expression) = found {
            needed.extend(of_expression(&expression));
        }
    });
    Some(needed)
}

/// Returns the feature required by the devices of a hook.
fn of_devices(devices: Option<&Devices<'_>>) -> Option<Feature> {
    let mut devices = devices?.iter().peekable();
    devices.peek()?;
    let prefix = devices.any(|device| matches!(device, Device::Prefix(_)));
    Some(if prefix {
        DEVICE_PREFIX
    } else {
        ABSENT_DEVICES
    })
}

fn of_expression(expression: &ExpressionRef<'_>) -> Option<Feature> {
    match expression.decode().ok()? {
        Decoded::Last(_) => Some(LAST),
        Decoded::Inner(_) => Some(INNER),
        Decoded::Bitwise(bitwise) => {
            let two = [BitwiseOp::AND, BitwiseOp::OR, BitwiseOp::XOR];
            (bitwise.sreg2.is_some() || two.contains(&bitwise.op?)).then_some(TWO_REGISTERS)
        }
        Decoded::Exthdr(exthdr) => match exthdr.op? {
            ExthdrOp::SCTP => Some(SCTP_CHUNKS),
            ExthdrOp::DCCP => Some(DCCP_OPTIONS),
            _ => None,
        },
        Decoded::Meta(meta) => match meta.key? {
            MetaKey::BRI_BROUTE => Some(BROUTE),
            MetaKey::BRI_IIFHWADDR => Some(BRIDGE_ADDRESS),
            _ => None,
        },
        Decoded::Payload(payload) => match payload.base? {
            PayloadBase::INNER => Some(INNER_HEADER),
            PayloadBase::TUNNEL => Some(INNER),
            _ => None,
        },
        Decoded::Socket(socket) => (socket.key? == SocketKey::CGROUPV2).then_some(CGROUPS),
        Decoded::Dynset(dynset) => {
            let list = dynset.expressions.as_ref()?;
            (list.iter().count() > 1).then_some(SEVERAL_STATEMENTS)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::expr::{Bitwise, Counter, Last, Register};
    use crate::nft::{Chain, Element, Family, Rule, SetId, Table, Transaction};

    fn needed_by(build: impl FnOnce(&mut Transaction)) -> Option<&'static str> {
        let mut tx = Transaction::new();
        build(&mut tx);
        let (message, _) = Message::split(tx.operations()).unwrap();
        let newest = needed(&message)?
            .into_iter()
            .max_by_key(|feature| feature.since);
        newest.map(|feature| feature.name)
    }

    #[test]
    fn required_features_are_found() {
        let rule = || Rule::new(Family::IP, "t", "c").with(&Counter::new(0, 0));
        assert_eq!(needed_by(|tx| _ = tx.add(&rule()).unwrap()), None);
        let last = rule().with(&Last::default());
        assert_eq!(needed_by(|tx| _ = tx.add(&last).unwrap()), Some(LAST.name));
        let two = Bitwise {
            sreg2: Some(Register::R1),
            ..Bitwise::mask_xor(Register::R1, &[1; 4], &[0; 4])
        };
        // The newest feature is reported.
        let both = last.with(&two);
        assert_eq!(
            needed_by(|tx| _ = tx.add(&both).unwrap()),
            Some(TWO_REGISTERS.name)
        );

        let table = |flags| {
            let table = Table {
                flags: Some(flags),
                ..Table::new(Family::IP, "t")
            };
            needed_by(|tx| _ = tx.add(&table).unwrap())
        };
        assert_eq!(table(TableFlags::empty()), None);
        assert_eq!(table(TableFlags::OWNER), Some(OWNER.name));
        assert_eq!(
            table(TableFlags::OWNER | TableFlags::PERSIST),
            Some(PERSIST.name)
        );

        let egress = |family| {
            let hook = Chain::new(family, "t", "c").with_hook("filter", NF_NETDEV_EGRESS, 0);
            needed_by(|tx| _ = tx.add(&hook).unwrap())
        };
        assert_eq!(egress(Family::NETDEV), Some(EGRESS.name));
        assert_eq!(egress(Family::IP), None); // its number is another hook of that family

        let set = SetId::new(Family::IP, "t", "s");
        let element = |element: Element<'static>| {
            needed_by(|tx| _ = tx.add_elements(&set, [element]).unwrap())
        };
        assert_eq!(element(Element::new(&[1, 2, 3, 4])), None);
        assert_eq!(element(Element::catch_all()), Some(CATCH_ALL.name));
    }

    #[test]
    fn releases_are_read_and_compared_as_numbers() {
        assert_eq!(parse_release("6.12.107+deb13-amd64"), Some((6, 12)));
        assert_eq!(parse_release("5.10.0-32-amd64"), Some((5, 10)));
        assert_eq!(parse_release("7.2-rc1"), Some((7, 2)));
        assert_eq!(parse_release("next"), None);
        assert!(is_later_than(&CATCH_ALL, Some((5, 10))));
        assert!(
            is_later_than(&TWO_REGISTERS, Some((6, 2))),
            "minor versions should compare as numbers"
        );
        assert!(!is_later_than(&CATCH_ALL, Some((5, 13))));
        assert!(
            !is_later_than(&CATCH_ALL, None),
            "an unknown release should not count as too old"
        );
    }
}
