//! `-j CT`: configures connection tracking for a packet that is not tracked yet; `NOTRACK` is an alias
//! of its `--notrack`.
//!
//! Data (`linux/netfilter/xt_CT.h`): revision 0 `struct xt_ct_target_info`; revisions 1 and 2
//! `struct xt_ct_target_info_v1`, of which revision 2 is written. Before revision 2 there is only one
//! flag.

use bstr::{BStr, BString};
use chainwright_sys::nf_conntrack_common::{
    IPCT_ASSURED, IPCT_DESTROY, IPCT_HELPER, IPCT_MARK, IPCT_NATSEQADJ, IPCT_NEW, IPCT_PROTOINFO,
    IPCT_RELATED, IPCT_REPLY, IPCT_SECMARK, IPEXP_NEW,
};
use chainwright_sys::xt_ct_target::{
    XT_CT_NOTRACK, XT_CT_NOTRACK_ALIAS, XT_CT_ZONE_DIR_ORIG, XT_CT_ZONE_DIR_REPL, XT_CT_ZONE_MARK,
    xt_ct_target_info, xt_ct_target_info_v1,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, any_of, number, string, until_nul};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

bitflags::bitflags! {
    /// Conntrack events, as bits of `ct_events` (`1 << IPCT_*`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CtEvents: u32 {
        /// A new connection.
        const NEW = 1 << IPCT_NEW;
        /// A new connection related to another one.
        const RELATED = 1 << IPCT_RELATED;
        /// A connection was removed.
        const DESTROY = 1 << IPCT_DESTROY;
        /// The connection has packets in both directions.
        const REPLY = 1 << IPCT_REPLY;
        /// The connection is assured.
        const ASSURED = 1 << IPCT_ASSURED;
        /// The protocol's state has changed.
        const PROTOINFO = 1 << IPCT_PROTOINFO;
        /// A helper was assigned.
        const HELPER = 1 << IPCT_HELPER;
        /// The mark has changed.
        const MARK = 1 << IPCT_MARK;
        /// Sequence numbers are adjusted.
        const NATSEQINFO = 1 << IPCT_NATSEQADJ;
        /// The security mark has changed.
        const SECMARK = 1 << IPCT_SECMARK;
    }
}

/// In the order of iptables-save.
const EVENTS: [(&str, u32); 10] = [
    ("new", CtEvents::NEW.bits()),
    ("related", CtEvents::RELATED.bits()),
    ("destroy", CtEvents::DESTROY.bits()),
    ("reply", CtEvents::REPLY.bits()),
    ("assured", CtEvents::ASSURED.bits()),
    ("protoinfo", CtEvents::PROTOINFO.bits()),
    ("helper", CtEvents::HELPER.bits()),
    ("mark", CtEvents::MARK.bits()),
    ("natseqinfo", CtEvents::NATSEQINFO.bits()),
    ("secmark", CtEvents::SECMARK.bits()),
];

/// The only event for expectations that a rule can enable.
const EXPECTATIONS: [(&str, u32); 1] = [("new", 1 << IPEXP_NEW)];

/// A connection tracking zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CtZone {
    /// This zone; 0 is the default.
    Id(u16),
    /// The zone with the packet's mark as its number.
    Mark,
}

impl Default for CtZone {
    fn default() -> Self {
        Self::Id(0)
    }
}

/// The direction to which a zone applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum CtDirection {
    /// Both.
    #[default]
    Both,
    /// From the initiator of the connection.
    Original,
    /// To the initiator.
    Reply,
}

/// `-j CT`: configures connection tracking for a packet that is not tracked yet; `NOTRACK` is an alias
/// of its `--notrack`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Ct {
    /// Whether to disable tracking.
    pub notrack: bool,
    /// Whether to print the rule as `-j NOTRACK`: only `notrack` has an effect then.
    pub shown_as_notrack: bool,
    /// Name of the conntrack helper, at most 15 bytes; empty for none.
    pub helper: BString,
    /// Name of the timeout policy, at most 31 bytes; empty for none.
    pub timeout: BString,
    /// Events of the connection to report; empty for the kernel's default.
    pub events: CtEvents,
    /// Whether to report only new expectations of the connection; `false` for the kernel's default.
    pub new_expectations: bool,
    /// The connection's zone.
    pub zone: CtZone,
    /// The direction to which the zone applies.
    pub zone_direction: CtDirection,
}

impl Ct {
    /// Returns the value of `-j NOTRACK`.
    #[must_use]
    pub fn notrack() -> Self {
        Self {
            notrack: true,
            shown_as_notrack: true,
            ..Self::default()
        }
    }

    fn flags(&self) -> u16 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(self.notrack, XT_CT_NOTRACK)
            | flag(self.shown_as_notrack, XT_CT_NOTRACK_ALIAS)
            | flag(self.zone == CtZone::Mark, XT_CT_ZONE_MARK)
            | match self.zone_direction {
                CtDirection::Both => 0,
                CtDirection::Original => XT_CT_ZONE_DIR_ORIG,
                CtDirection::Reply => XT_CT_ZONE_DIR_REPL,
            }
    }
}

/// Returns `true` if the name is a single word without quotes, as iptables-save prints names unquoted.
pub(super) fn is_word(name: &BStr) -> bool {
    let parts = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | 0x0b);
    !name.iter().any(parts)
}

/// Reads the name in a kernel field.
fn read_name(field: &[u8]) -> Option<BString> {
    let name = until_nul(field).filter(|name| is_word(name))?;
    Some(name.to_owned())
}

impl Extension for Ct {
    const NAME: &'static str = "CT";
    const NAMES: &'static [&'static str] = &[Self::NAME, "NOTRACK"];
    const REVISION: u8 = 2;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("notrack"),
        OptionSpec::one("helper"),
        OptionSpec::one("timeout"),
        OptionSpec::one("ctevents"),
        OptionSpec::one("expevents"),
        OptionSpec::one("zone-orig"),
        OptionSpec::one("zone-reply"),
        OptionSpec::one("zone"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::at_most_one_of(&[
        "zone",
        "zone-orig",
        "zone-reply",
    ])];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-j CT --zone 0 --zone-orig 0",
        "-j CT",
        "A packet has one zone: the two options contradict each other.",
    )
    .within("raw", "PREROUTING")];

    fn options(name: &str) -> &'static [OptionSpec] {
        if name == "NOTRACK" {
            &[]
        } else {
            Self::OPTIONS
        }
    }

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let raw: xt_ct_target_info_v1 = match revision {
            0 => {
                let info: xt_ct_target_info = read_struct(info)?;
                let mut raw = xt_ct_target_info_v1::new_zeroed();
                (raw.flags, raw.zone) = (info.flags, info.zone);
                (raw.ct_events, raw.exp_events) = (info.ct_events, info.exp_events);
                raw.helper = info.helper;
                raw
            }
            1 | 2 => read_struct(info)?,
            _ => return None,
        };
        if revision < 2 && raw.flags & !XT_CT_NOTRACK != 0 {
            return None;
        }
        let has = |flag| raw.flags & flag != 0;
        let direction = match (has(XT_CT_ZONE_DIR_ORIG), has(XT_CT_ZONE_DIR_REPL)) {
            (true, false) => CtDirection::Original,
            (false, true) => CtDirection::Reply,
            _ => CtDirection::Both,
        };
        let both = match direction {
            CtDirection::Both => XT_CT_ZONE_DIR_ORIG | XT_CT_ZONE_DIR_REPL,
            CtDirection::Original | CtDirection::Reply => 0,
        };
        let value = Self {
            notrack: has(XT_CT_NOTRACK),
            shown_as_notrack: has(XT_CT_NOTRACK_ALIAS),
            helper: read_name(&raw.helper)?,
            timeout: read_name(&raw.timeout)?,
            events: CtEvents::from_bits(raw.ct_events)?,
            new_expectations: raw.exp_events == 1 << IPEXP_NEW,
            zone: if has(XT_CT_ZONE_MARK) {
                CtZone::Mark
            } else {
                CtZone::Id(raw.zone)
            },
            zone_direction: direction,
        };
        let flags_are_lossless = (raw.flags & !both) == value.flags();
        let events_are_lossless = raw.exp_events == u32::from(value.new_expectations) << IPEXP_NEW;
        let alias_is_lossless = !value.shown_as_notrack || value == Self::notrack();
        (flags_are_lossless && events_are_lossless && alias_is_lossless).then_some(value)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_ct_target_info_v1::new_zeroed();
        info.flags = self.flags();
        info.zone = match self.zone {
            CtZone::Id(id) => id,
            CtZone::Mark => 0,
        };
        info.ct_events = pack::flags("ctevents", self.events)?;
        info.exp_events = u32::from(self.new_expectations) << IPEXP_NEW;
        info.helper = pack::text("helper", &self.helper)?;
        info.timeout = pack::text("timeout", &self.timeout)?;
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if context.name == "NOTRACK" {
            return Ok(Self::notrack());
        }
        let mut value = Self::default();
        for one in given {
            match one.option {
                "notrack" => value.notrack = true,
                "helper" => value.helper = named(context, one, 15)?,
                "timeout" => value.timeout = named(context, one, 31)?,
                "ctevents" => {
                    let bits = one.parse(|value| any_of(value, &EVENTS))?;
                    value.events = CtEvents::from_bits_retain(bits);
                }
                "expevents" => {
                    one.parse(|value| any_of(value, &EXPECTATIONS))?;
                    value.new_expectations = true;
                }
                option => {
                    value.zone = one.parse(zone)?;
                    value.zone_direction = match option {
                        "zone-orig" => CtDirection::Original,
                        "zone-reply" => CtDirection::Reply,
                        _ => CtDirection::Both,
                    };
                }
            }
        }
        Ok(value)
    }

    fn printed_name(&self) -> &'static str {
        if self.shown_as_notrack {
            "NOTRACK"
        } else {
            Self::NAME
        }
    }

    fn print(&self, text: &mut Text) {
        if self.shown_as_notrack {
            return;
        }
        text.switch(self.notrack, "notrack");
        for (option, name) in [("helper", &self.helper), ("timeout", &self.timeout)] {
            if !name.is_empty() {
                text.option(false, option).word(name);
            }
        }
        if !self.events.is_empty() {
            text.option(false, "ctevents");
            let mut separator = " ";
            for (name, event) in EVENTS {
                if self.events.bits() & event != 0 {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
        }
        if self.new_expectations {
            text.option(false, "expevents").push(" new");
        }
        if (self.zone, self.zone_direction) != (CtZone::Id(0), CtDirection::Both) {
            text.option(false, "zone").push(match self.zone_direction {
                CtDirection::Both => "",
                CtDirection::Original => "-orig",
                CtDirection::Reply => "-reply",
            });
            match self.zone {
                CtZone::Id(id) => text.push(" ").number(id),
                CtZone::Mark => text.push(" mark"),
            };
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.shown_as_notrack {
            " NOTRACK"
        } else {
            " CT"
        });
        text.bare(|text| self.print(text));
    }
}

/// Parses a name that is specific to one protocol.
fn named(
    context: &Context<'_>,
    given: &GivenOption<'_>,
    most: usize,
) -> Result<BString, OptionError> {
    let read = given.parse(|value| {
        let name = string(value, 0..=most)?;
        if !is_word(name) {
            return Err(format!(
                "`{name}` is not a single word without spaces and quotes"
            ));
        }
        Ok(name.to_owned())
    })?;
    let one_protocol = context.protocol.is_some_and(|(_, invert)| !invert);
    if !read.is_empty() && !one_protocol {
        return Err(
            given.error("it only applies to one protocol: the rule needs -p, without a `!`")
        );
    }
    Ok(read)
}

fn zone(value: &BStr) -> Parsed<CtZone> {
    if value.eq_ignore_ascii_case(b"mark") {
        return Ok(CtZone::Mark);
    }
    number(value)
        .map(CtZone::Id)
        .map_err(|reason| format!("{reason}, nor `mark`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Target;
    use crate::xt::targets::testing::{check, hex, parse, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let data = "03 00 00 00".to_owned() + &" 00".repeat(68);
        check(Family::Ipv4, &data, &Ct::notrack(), "");
        assert_eq!(Target::Ct(Ct::notrack()).to_string(), "-j NOTRACK");
        let value = Ct {
            helper: "ftp".into(),
            events: CtEvents::DESTROY,
            new_expectations: true,
            zone: CtZone::Id(9),
            zone_direction: CtDirection::Original,
            ..Ct::default()
        };
        let data = "04 00 09 00 04 00 00 00 01 00 00 00 66 74 70".to_owned() + &" 00".repeat(57);
        let printed = " --helper ftp --ctevents destroy --expevents new --zone-orig 9";
        check(Family::Ipv6, &data, &value, printed);
        // Older revisions have one flag, and the first one has no timeout.
        let mut info = hex(&data);
        assert_eq!(Ct::read(Family::Ipv4, 1, &info), None);
        info[0] = 1;
        let older = Ct {
            notrack: true,
            zone_direction: CtDirection::Both,
            ..value
        };
        assert_eq!(Ct::read(Family::Ipv4, 1, &info), Some(older.clone()));
        assert_eq!(Ct::read(Family::Ipv4, 0, &info[..40]), Some(older));
        assert_eq!(Ct::read(Family::Ipv4, 0, &info[..39]), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        let read = |at: usize, byte| {
            let mut info = vec![0; 72];
            info[at] = byte;
            Ct::read(Family::Ipv4, 2, &info)
        };
        // An unknown flag, the alias without its flag, a label event, the end of an expectation, a
        // space in a name.
        for (at, byte) in [(0, 32), (0, 2), (5, 4), (8, 2), (12, b' ')] {
            assert_eq!(read(at, byte), None);
        }
        // Both direction flags mean the same as none.
        assert_eq!(read(0, 12), Some(Ct::default()));
        let mut endless = vec![0; 72];
        endless[12..28].fill(b'x');
        assert_eq!(Ct::read(Family::Ipv4, 2, &endless), None);
        // iptables-save 1.8.9 does not print a direction for zone 0.
        let direction = read(0, 8).unwrap();
        assert_eq!(Target::Ct(direction).to_string(), "-j CT --zone-reply 0");
    }

    #[test]
    fn reports_errors() {
        for (given, reason) in [
            (
                &[("helper", "ftp")][..],
                "--helper: it only applies to one protocol: the rule needs -p, without a `!`",
            ),
            (
                &[("helper", "0123456789abcdef")],
                "--helper: it has 16 bytes; 0 to 15 are allowed",
            ),
            (
                &[("timeout", "a b")],
                "--timeout: `a b` is not a single word without spaces and quotes",
            ),
            (
                &[("ctevents", "new,label")],
                "--ctevents: `label` is not one of new, related, destroy, reply, assured, protoinfo, helper, mark, natseqinfo, secmark",
            ),
            (
                &[("expevents", "destroy")],
                "--expevents: `destroy` is not one of new",
            ),
            (
                &[("zone", "65536")],
                "--zone: `65536` is not a number from 0 to 65535, nor `mark`",
            ),
            (
                &[("zone-orig", "1"), ("zone-reply", "2")],
                "--zone-reply cannot be used with --zone-orig",
            ),
        ] {
            assert_eq!(refused::<Ct>(Family::Ipv4, None, given), reason);
        }
        let policy = parse::<Ct>(Family::Ipv4, Some(6), &[("timeout", "slow")]).unwrap();
        assert_eq!(Target::Ct(policy).to_string(), "-j CT --timeout slow");
        assert!(Ct::options("NOTRACK").is_empty());
    }
}
