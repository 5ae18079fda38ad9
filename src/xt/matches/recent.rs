//! `-m recent`: maintains and checks lists of recently seen addresses.
//!
//! Data of revision 1 (`struct xt_recent_mtinfo_v1`, `linux/netfilter/xt_recent.h`), and of
//! revision 0, which has no mask.

use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_recent::{
    XT_RECENT_CHECK, XT_RECENT_DEST, XT_RECENT_NAME_LEN, XT_RECENT_REAP, XT_RECENT_REMOVE,
    XT_RECENT_SET, XT_RECENT_SOURCE, XT_RECENT_TTL, XT_RECENT_UPDATE, xt_recent_mtinfo,
    xt_recent_mtinfo_v1,
};

use crate::xt::value::{address, field, number, number_within};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, Mask, Name, OptionError,
    OptionGroup, OptionSpec, Text, read_struct, write_struct,
};

/// The name of a list of addresses: 1 to 199 bytes, used as a file name in `/proc/net/xt_recent`.
pub type RecentName = Name<199>;

/// `-m recent`: maintains and checks lists of recently seen addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recent {
    /// The operation on the list.
    pub action: RecentAction,
    /// Whether the result is negated.
    pub invert: bool,
    /// Maximum age of the last packet from the address, in seconds; 0 for any age.
    pub seconds: u32,
    /// Whether to remove entries older than `seconds` from the list.
    pub reap: bool,
    /// Minimum number of packets from the address; 0 for any number.
    pub hit_count: u32,
    /// Whether the packet's time to live must equal the one stored for the address.
    pub same_ttl: bool,
    /// The list.
    pub name: RecentName,
    /// The packet's address to use.
    pub side: RecentSide,
    /// Mask for addresses, of the rule's family.
    pub mask: Mask,
}

/// Operation on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecentAction {
    /// Adds the address: `--set`.
    Set,
    /// Checks whether the address is in the list: `--rcheck`.
    Check,
    /// Checks whether the address is in the list, and updates its time: `--update`.
    Update,
    /// Checks whether the address is in the list, and removes it: `--remove`.
    Remove,
}

/// An address of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecentSide {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
}

/// Option, bit and value of each action.
const ACTIONS: [(&str, u8, RecentAction); 4] = [
    ("set", XT_RECENT_SET, RecentAction::Set),
    ("rcheck", XT_RECENT_CHECK, RecentAction::Check),
    ("update", XT_RECENT_UPDATE, RecentAction::Update),
    ("remove", XT_RECENT_REMOVE, RecentAction::Remove),
];

impl Recent {
    /// Matches full source addresses of any age.
    #[must_use]
    pub const fn new(family: Family, action: RecentAction, name: RecentName) -> Self {
        Self {
            action,
            invert: false,
            seconds: 0,
            reap: false,
            hit_count: 0,
            same_ttl: false,
            name,
            side: RecentSide::Source,
            mask: Mask::full(family),
        }
    }
}

impl Extension for Recent {
    const NAME: &'static str = "recent";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("set").inverts(),
        OptionSpec::switch("rcheck").inverts(),
        OptionSpec::switch("update").inverts(),
        OptionSpec::switch("remove").inverts(),
        // The kernel refuses these together.
        OptionSpec::one("seconds").excludes(&["set"]),
        OptionSpec::switch("reap")
            .excludes(&["set"])
            .needs(&["seconds"]),
        OptionSpec::one("hitcount").excludes(&["set"]),
        OptionSpec::switch("rttl").excludes(&["set", "remove"]),
        OptionSpec::one("name"),
        OptionSpec::switch("rsource"),
        OptionSpec::switch("rdest"),
        OptionSpec::one("mask"),
    ];
    const GROUPS: &'static [OptionGroup] =
        &[OptionGroup::one_of(&["set", "rcheck", "update", "remove"])];
    const DIFFERENCES: &'static [Difference] = &[
        Difference::kept(
            "-m recent --set --name \"a b\" --mask 255.255.255.255 --rsource",
            "-m recent --set --name a b --mask 255.255.255.255 --rsource",
            "iptables-save prints the name without quotes, so its output cannot be restored.",
        ),
        Difference::kept(
            "-m recent --update --seconds 4294967295 --name DEFAULT --mask 255.255.255.255 --rsource",
            "-m recent --update --seconds -1 --name DEFAULT --mask 255.255.255.255 --rsource",
            "iptables-save prints a number with a sign, which iptables refuses.",
        ),
    ];
    const HAS_EFFECTS: bool = true;

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let mask = match revision {
            0 => Mask::full(family),
            1 => {
                let mask = info.get(size_of::<xt_recent_mtinfo>()..)?;
                Mask::read(family, &read_struct(mask)?)
            }
            _ => return None,
        };
        // Revision 1 is revision 0 followed by a mask.
        let info: xt_recent_mtinfo = read_struct(info)?;
        let modifiers = XT_RECENT_TTL | XT_RECENT_REAP;
        let action = info.check_set & !modifiers;
        let (.., action) = ACTIONS.into_iter().find(|(_, bit, _)| *bit == action)?;
        Some(Self {
            action,
            invert: info.invert != 0,
            seconds: info.seconds,
            reap: info.check_set & XT_RECENT_REAP != 0,
            hit_count: info.hit_count,
            same_ttl: info.check_set & XT_RECENT_TTL != 0,
            name: Name::from_field(&info.name)?,
            side: match info.side {
                XT_RECENT_SOURCE => RecentSide::Source,
                XT_RECENT_DEST => RecentSide::Destination,
                _ => return None,
            },
            mask,
        })
    }

    fn is_lossless(&self, _: Family, _: u8, _: &[u8]) -> bool {
        true // bytes after the name's NUL have no meaning
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let action = ACTIONS.into_iter().find(|(.., a)| *a == self.action);
        let mut check_set = action.map_or(0, |(_, bit, _)| bit);
        for (set, bit) in [(self.reap, XT_RECENT_REAP), (self.same_ttl, XT_RECENT_TTL)] {
            check_set |= if set { bit } else { 0 };
        }
        let info = xt_recent_mtinfo_v1 {
            seconds: self.seconds,
            hit_count: self.hit_count,
            check_set,
            invert: self.invert.into(),
            name: name_field(self.name.as_bytes()),
            side: match self.side {
                RecentSide::Source => XT_RECENT_SOURCE,
                RecentSide::Destination => XT_RECENT_DEST,
            },
            __pad: [0; 1],
            mask: nf_inet_addr {
                all: self.mask.write("mask", family)?,
            },
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let first = Self::GROUPS[0].find(given)?;
        let action = match first.option {
            "set" => RecentAction::Set,
            "rcheck" => RecentAction::Check,
            "update" => RecentAction::Update,
            _ => RecentAction::Remove,
        };
        let mut recent = match find("name") {
            None => Self::new(context.family, action, default_name()?),
            Some(name) => {
                let value = name.parse(Name::parse)?;
                if matches!(value.as_bytes(), b"." | b"..") || value.as_bytes().contains(&b'/') {
                    return Err(name.error("a list name must be a valid name of a file in /proc"));
                }
                Self::new(context.family, action, value)
            }
        };
        recent.invert = first.invert;
        for one in given {
            match one.option {
                "seconds" => recent.seconds = one.parse(|v| number_within(v, 1..=u32::MAX))?,
                "hitcount" => recent.hit_count = one.parse(number)?,
                "reap" => recent.reap = true,
                "rttl" => recent.same_ttl = true,
                "rsource" => recent.side = RecentSide::Source,
                "rdest" => recent.side = RecentSide::Destination,
                "mask" => recent.mask = one.parse(|v| address(v, context.family))?.into(),
                _ => {}
            }
        }
        Ok(recent)
    }

    fn print(&self, text: &mut Text) {
        let action = ACTIONS.into_iter().find(|(.., a)| *a == self.action);
        text.option(self.invert, action.map_or("", |(option, ..)| option));
        if self.seconds != 0 {
            text.push(" --seconds ").number(self.seconds);
        }
        if self.reap {
            text.push(" --reap");
        }
        if self.hit_count != 0 {
            text.push(" --hitcount ").number(self.hit_count);
        }
        if self.same_ttl {
            text.push(" --rttl");
        }
        text.push(" --name").name(&self.name);
        // Fast path for the default, without formatting.
        if self.mask == Mask::full(Family::Ipv4) {
            text.push(" --mask 255.255.255.255");
        } else {
            text.push(" --mask ").display(self.mask.address());
        }
        text.push(match self.side {
            RecentSide::Source => " --rsource",
            RecentSide::Destination => " --rdest",
        });
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.invert {
            " ! recent:"
        } else {
            " recent:"
        });
        text.push(match self.action {
            RecentAction::Set => " SET",
            RecentAction::Check => " CHECK",
            RecentAction::Update => " UPDATE",
            RecentAction::Remove => " REMOVE",
        });
        if self.seconds != 0 {
            text.push(" seconds: ").number(self.seconds);
        }
        if self.reap {
            text.push(" reap");
        }
        if self.hit_count != 0 {
            text.push(" hit_count: ").number(self.hit_count);
        }
        if self.same_ttl {
            text.push(" TTL-Match");
        }
        text.push(" name:").name(&self.name);
        text.push(match self.side {
            RecentSide::Source => " side: source",
            RecentSide::Destination => " side: dest",
        });
        text.push(" mask: ").display(self.mask.address());
    }
}

/// The default list, for rules without `--name`.
const DEFAULT: &[u8] = b"DEFAULT";

/// Writes the name and a NUL over the default name, as iptables does, so that rules are equal
/// byte by byte.
fn name_field(name: &[u8]) -> [u8; XT_RECENT_NAME_LEN] {
    let mut field = field(DEFAULT);
    let whole = name.iter().chain(&[0]);
    for (byte, of_name) in field.iter_mut().zip(whole) {
        *byte = *of_name;
    }
    field
}

fn default_name() -> Result<RecentName, OptionError> {
    Name::new(DEFAULT).ok_or_else(|| OptionError::of("name", "it is missing"))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `--update --seconds 10800 --reap --name KUBE-SEP-IT2ZTR26TO4XFPTO --mask
    /// 255.255.255.0` from iptables-legacy 1.8.9.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 232];
        info[..10].copy_from_slice(&[0x30, 0x2a, 0, 0, 0, 0, 0, 0, 0x24, 0]);
        info[10..35].copy_from_slice(b"KUBE-SEP-IT2ZTR26TO4XFPTO");
        info[212..215].fill(0xff);
        info
    }

    fn affinity() -> Recent {
        Recent {
            seconds: 10800,
            reap: true,
            mask: IpAddr::from([255, 255, 255, 0]).into(),
            ..Recent::new(
                Family::Ipv4,
                RecentAction::Update,
                Name::new("KUBE-SEP-IT2ZTR26TO4XFPTO").unwrap(),
            )
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let info = captured();
        assert_eq!(Recent::read(Family::Ipv4, 1, &info), Some(affinity()));
        let mut written = affinity().write(Family::Ipv4).unwrap();
        assert_eq!(written.len(), 228);
        written.resize(232, 0);
        assert_eq!(written, info);
        assert_eq!(
            Match::Recent(affinity()).to_string(),
            "-m recent --update --seconds 10800 --reap --name KUBE-SEP-IT2ZTR26TO4XFPTO \
             --mask 255.255.255.0 --rsource"
        );
        // Revision 0 has no mask.
        let old = Recent::read(Family::Ipv4, 0, &info[..212]).unwrap();
        assert_eq!(old.mask, Mask::full(Family::Ipv4));
        assert_eq!(old.write(Family::Ipv4).unwrap()[212..], [0xff; 16]);
    }

    #[test]
    fn a_short_name_is_padded_with_the_rest_of_the_default() {
        // As iptables-legacy 1.8.9 wrote `--name one`.
        let one = Recent::new(Family::Ipv4, RecentAction::Set, Name::new("one").unwrap());
        assert_eq!(one.write(Family::Ipv4).unwrap()[10..20], *b"one\0ULT\0\0\0");
        let longest = Name::new([b'x'; 199]).unwrap();
        let longest = Recent::new(Family::Ipv4, RecentAction::Set, longest);
        let read = Recent::read(Family::Ipv4, 1, &longest.write(Family::Ipv4).unwrap());
        assert_eq!(read, Some(longest));
    }

    #[test]
    fn invalid_data_is_not_decoded() {
        let read = |info: &[u8]| Recent::read(Family::Ipv4, 1, info);
        assert!(read(&captured()).is_some());
        assert_eq!(read(&captured()[..227]), None);
        assert_eq!(Recent::read(Family::Ipv4, 0, &captured()[..211]), None);
        assert_eq!(Recent::read(Family::Ipv4, 2, &captured()), None);
        for (at, byte) in [(8, 0x26), (8, 0x20), (8, 0x44), (10, 0), (210, 2)] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(&info), None, "{byte} at {at}");
        }
        let mut info = captured();
        info[10..210].fill(b'x'); // no NUL
        assert_eq!(read(&info), None);
    }

    #[test]
    fn differs_from_wrong_output_of_iptables() {
        // 1.8.9 prints `--seconds -1`, and names with spaces without quotes.
        let all = Recent {
            seconds: u32::MAX,
            ..Recent::new(Family::Ipv6, RecentAction::Check, Name::new("a b").unwrap())
        };
        let text = Match::Recent(all.clone()).to_string();
        assert!(
            text.contains(" --seconds 4294967295 --name \"a b\" --mask ffff:"),
            "{text}"
        );
        let rule = Rule::parse(Family::Ipv6, &text).unwrap();
        assert_eq!(rule.matches, [Match::Recent(all)]);
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            ("", "--set, --rcheck, --update or --remove is required"),
            ("--set --update", "--update cannot be used with --set"),
            ("--set --seconds 5", "--seconds cannot be used with --set"),
            ("--remove --rttl", "--rttl cannot be used with --remove"),
            ("--rcheck --reap", "--reap needs --seconds"),
            (
                "--rcheck --seconds 0",
                "--seconds: `0` is not a number from 1 to 4294967295",
            ),
            (
                "--rcheck --name a/b",
                "--name: a list name must be a valid name of a file in /proc",
            ),
            (
                "--rcheck --name \"\"",
                "--name: it has 0 bytes; 1 to 199 are allowed",
            ),
            (
                "--rcheck --mask 24",
                "--mask: `24` is not an IPv4 address (host names are not looked up)",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m recent {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m recent: {reason}"));
        }
    }
}
