//! `-m owner`: compares the owner of the socket that sends a packet of this host.
//!
//! Data of revision 1 (`struct xt_owner_match_info`, `linux/netfilter/xt_owner.h`).

use std::ops::RangeInclusive;

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_owner::{
    XT_OWNER_GID, XT_OWNER_MASK, XT_OWNER_SOCKET, XT_OWNER_SUPPL_GROUPS, XT_OWNER_UID,
    xt_owner_match_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, number_within};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Negatable, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// The largest id; `u32::MAX` means "no user".
const LAST: u32 = u32::MAX - 1;

/// `-m owner`: compares the owner of the socket that sends a packet of this host.
///
/// All given conditions must be true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Owner {
    /// Whether there is a socket.
    pub socket_exists: Option<bool>,
    /// Range of user ids for the socket's owner.
    pub uid: Option<Negatable<RangeInclusive<u32>>>,
    /// Range of group ids for the socket's group.
    pub gid: Option<Negatable<RangeInclusive<u32>>>,
    /// Whether to compare the supplementary groups of the socket's creator, too; only with
    /// `gid`.
    pub suppl_groups: bool,
}

/// Parses a name, a number, or a range of numbers.
fn ids(value: &BStr, named: Option<u32>, kind: &str) -> Parsed<RangeInclusive<u32>> {
    if let Some(number) = named {
        return Ok(number..=number);
    }
    let id = |text: &[u8]| {
        number_within(text.as_bstr(), 0..=LAST).map_err(|_| {
            format!("`{value}` is neither the name of a {kind}, nor a number or range `a-b` of numbers from 0 to {LAST}")
        })
    };
    let Some(at) = value.find_byteset(b"-:") else {
        return id(value).map(|only| only..=only);
    };
    let (first, last) = (id(&value[..at])?, id(&value[at + 1..])?);
    if first > last {
        return Err(format!("the range `{value}` ends before it starts"));
    }
    Ok(first..=last)
}

impl Extension for Owner {
    const NAME: &'static str = "owner";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("uid-owner").inverts(),
        OptionSpec::one("gid-owner").inverts(),
        OptionSpec::switch("socket-exists").inverts(),
        OptionSpec::switch("suppl-groups").needs(&["gid-owner"]),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::some_of(&[
        "uid-owner",
        "gid-owner",
        "socket-exists",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_owner_match_info = read_struct(info)?;
        let has = |bit| info.r#match & bit != 0;
        let inverts = |bit| info.invert & bit != 0;
        let suppl_groups = has(XT_OWNER_SUPPL_GROUPS);
        if info.r#match & !XT_OWNER_MASK != 0
            || info.r#match == 0
            || suppl_groups && !has(XT_OWNER_GID)
        {
            return None;
        }
        let ids = |bit, min, max| match has(bit) {
            false => Some(None),
            true => (min <= max && max <= LAST).then_some(Some(Negatable {
                value: min..=max,
                invert: inverts(bit),
            })),
        };
        Some(Self {
            socket_exists: has(XT_OWNER_SOCKET).then_some(!inverts(XT_OWNER_SOCKET)),
            uid: ids(XT_OWNER_UID, info.uid_min, info.uid_max)?,
            gid: ids(XT_OWNER_GID, info.gid_min, info.gid_max)?,
            suppl_groups,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let why = "it requires --gid-owner";
        pack::require(
            self.gid.is_some() || !self.suppl_groups,
            "suppl-groups",
            why,
        )?;
        let mut info = xt_owner_match_info::new_zeroed();
        let mut flag = |bit, invert| {
            info.r#match |= bit;
            info.invert |= if invert { bit } else { 0 };
        };
        if let Some(exists) = self.socket_exists {
            flag(XT_OWNER_SOCKET, !exists);
        }
        if let Some(uid) = &self.uid {
            flag(XT_OWNER_UID, uid.invert);
        }
        if let Some(gid) = &self.gid {
            flag(XT_OWNER_GID, gid.invert);
            if self.suppl_groups {
                flag(XT_OWNER_SUPPL_GROUPS, false);
            }
        }
        if let Some(uid) = &self.uid {
            (info.uid_min, info.uid_max) = (*uid.value.start(), *uid.value.end());
        }
        if let Some(gid) = &self.gid {
            (info.gid_min, info.gid_max) = (*gid.value.start(), *gid.value.end());
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut owner = Self::default();
        for one in given {
            match one.option {
                "uid-owner" => {
                    let uid = one.parse(|value| ids(value, context.names.user(value), "user"))?;
                    owner.uid = Some(Negatable::given(one, uid));
                }
                "gid-owner" => {
                    let gid = one.parse(|value| ids(value, context.names.group(value), "group"))?;
                    owner.gid = Some(Negatable::given(one, gid));
                }
                "socket-exists" => owner.socket_exists = Some(!one.invert),
                _ => owner.suppl_groups = true,
            }
        }
        Ok(owner)
    }

    fn print(&self, text: &mut Text) {
        if let Some(exists) = self.socket_exists {
            text.option(!exists, "socket-exists");
        }
        for (name, ids) in [("uid-owner", &self.uid), ("gid-owner", &self.gid)] {
            let Some(Negatable { value, invert }) = ids else {
                continue;
            };
            text.option(*invert, name).push(" ").number(*value.start());
            if value.start() != value.end() {
                text.push("-").number(*value.end());
            }
        }
        if self.suppl_groups && self.gid.is_some() {
            text.option(false, "suppl-groups");
        }
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        if let Some(exists) = self.socket_exists {
            text.push(if exists {
                " owner socket exists"
            } else {
                " ! owner socket exists"
            });
        }
        for (name, ids, is_user) in [
            (" owner UID", &self.uid, true),
            (" owner GID", &self.gid, false),
        ] {
            let Some(Negatable { value, invert }) = ids else {
                continue;
            };
            text.push(if *invert { " !" } else { "" })
                .push(name)
                .push(" match ");
            let (first, last) = (*value.start(), *value.end());
            let names = text.names();
            match names
                .account(is_user, first)
                .filter(|_| !style.numeric && first == last)
            {
                Some(name) => text.push(name),
                None if first == last => text.number(first),
                None => text.number(first).push("-").number(last),
            };
        }
        if self.suppl_groups && self.gid.is_some() {
            text.push(" incl. suppl. groups");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Data from iptables-legacy 1.8.9 for `! --uid-owner 16-32 --gid-owner 5 --suppl-groups
    /// --socket-exists` (from `strace -xx`).
    const CAPTURED: [u8; 24] = [
        0x10, 0, 0, 0, 0x20, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0x0f, 0x01, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let owner = Owner {
            socket_exists: Some(true),
            uid: Some(Negatable {
                value: 16..=32,
                invert: true,
            }),
            gid: Some(Negatable {
                value: 5..=5,
                invert: false,
            }),
            suppl_groups: true,
        };
        assert_eq!(Owner::read(Family::Ipv4, 1, &CAPTURED), Some(owner.clone()));
        let owner = Match::Owner(owner);
        assert_eq!(owner.encode(Family::Ipv4).unwrap().info[..], CAPTURED);
        assert_eq!(
            owner.to_string(),
            "-m owner --socket-exists ! --uid-owner 16-32 --gid-owner 5 --suppl-groups"
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        assert_eq!(Owner::read(Family::Ipv4, 1, &CAPTURED[..19]), None);
        assert_eq!(Owner::read(Family::Ipv4, 0, &CAPTURED), None);
        for compared in [
            0,
            0x10,
            XT_OWNER_SUPPL_GROUPS,
            XT_OWNER_SUPPL_GROUPS | XT_OWNER_UID,
        ] {
            let mut info = CAPTURED;
            info[16] = compared;
            assert_eq!(Owner::read(Family::Ipv4, 1, &info), None, "{compared}");
        }
        // A reversed range, and the reserved number.
        let mut info = CAPTURED;
        info[4] = 0x0f;
        assert_eq!(Owner::read(Family::Ipv4, 1, &info), None);
        info[4..8].fill(0xff);
        assert_eq!(Owner::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "-m owner",
                "column 4: -m owner: --uid-owner, --gid-owner or --socket-exists is \
                 required",
            ),
            (
                "-m owner --uid-owner 5-",
                "column 22: -m owner: --uid-owner: `5-` is neither the name of a user, nor a \
                 number or range `a-b` of numbers from 0 to 4294967294",
            ),
            (
                "-m owner --gid-owner 4294967295",
                "column 22: -m owner: --gid-owner: `4294967295` is neither the name of a group, \
                 nor a number or range `a-b` of numbers from 0 to 4294967294",
            ),
            (
                "-m owner --uid-owner 9-5",
                "column 22: -m owner: --uid-owner: the range `9-5` ends before it starts",
            ),
            (
                "-m owner --uid-owner 0 --suppl-groups",
                "column 24: -m owner: --suppl-groups needs --gid-owner",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
