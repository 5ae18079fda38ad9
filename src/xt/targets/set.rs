//! `-j SET`: adds the packet to a set of `ipset(8)`, deletes it from one, or reads its mark, class or
//! queue from one.
//!
//! Data of revision 3 (`struct xt_set_info_target_v3`, `linux/netfilter/xt_set.h`), and of earlier
//! revisions: 2 reads nothing from sets, 1 also has no timeout, 0 (IPv4 only) has one number for each
//! part of an element.

use chainwright_sys::ip_set::{
    IPSET_FLAG_EXIST, IPSET_FLAG_MAP_SKBMARK, IPSET_FLAG_MAP_SKBPRIO, IPSET_FLAG_MAP_SKBQUEUE,
    IPSET_INVALID_ID,
};
use chainwright_sys::xt_set::{
    xt_set_info, xt_set_info_target_v0, xt_set_info_target_v1, xt_set_info_target_v2,
    xt_set_info_target_v3,
};
use zerocopy::FromZeros;

use crate::xt::matches::set::{SetDirections, parse_set, read_info, upgrade, write_info};
use crate::xt::value::number_within;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec,
    SetId, Text, read_struct, write_struct,
};

/// `-j SET`: adds the packet to a set of `ipset(8)`, deletes it from one, or reads its mark, class or
/// queue from one.
///
/// At least one set is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Set {
    /// The set to which to add the packet.
    pub add: Option<SetUse>,
    /// Whether an existing element gets a new timeout: `--exist`, with `add`.
    pub exist: bool,
    /// The element's timeout, in seconds; 0 for never, `None` for the set's default. With `add`; the
    /// maximum also means `None`.
    pub timeout: Option<u32>,
    /// The set from which to delete the packet.
    pub delete: Option<SetUse>,
    /// The set that maps the packet to values.
    pub map: Option<SetUse>,
    /// Whether to set the packet's mark from it: with `map`.
    pub map_mark: bool,
    /// Whether to set the packet's priority (its class) from it: with `map`.
    pub map_priority: bool,
    /// Whether to set the packet's hardware queue from it: with `map`.
    pub map_queue: bool,
}

/// A set, and the parts of the packet to look up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetUse {
    /// The set.
    pub set: SetId,
    /// The parts of the packet.
    pub directions: SetDirections,
}

/// No set.
const NONE: xt_set_info = xt_set_info {
    index: IPSET_INVALID_ID,
    dim: 0,
    flags: 0,
};

impl SetUse {
    /// Decodes a set; the outer `None` stands for an invalid one.
    fn read(info: xt_set_info) -> Option<Option<Self>> {
        if info.index == IPSET_INVALID_ID {
            return Some(None);
        }
        let (set, directions, more) = read_info(info)?;
        (more == 0).then_some(Some(Self { set, directions }))
    }

    fn write(set: Option<&Self>) -> xt_set_info {
        set.map_or(NONE, |set| write_info(&set.set, set.directions, 0))
    }

    fn parse(given: &GivenOption<'_>) -> Result<Self, OptionError> {
        let (set, directions) = parse_set(given)?;
        Ok(Self { set, directions })
    }

    fn print(&self, text: &mut Text) {
        self.set.print(text);
        self.directions.print(text);
    }
}

impl Set {
    const fn uses(&self) -> [&Option<SetUse>; 3] {
        [&self.add, &self.delete, &self.map]
    }
}

impl Extension for Set {
    const NAME: &'static str = "SET";
    const REVISION: u8 = 3;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::two("add-set"),
        OptionSpec::two("del-set"),
        OptionSpec::one("timeout").needs(&["add-set"]),
        OptionSpec::switch("exist").needs(&["add-set"]),
        OptionSpec::two("map-set").needs(&["map-mark", "map-prio", "map-queue"]),
        OptionSpec::switch("map-mark").needs(&["map-set"]),
        OptionSpec::switch("map-prio").needs(&["map-set"]),
        OptionSpec::switch("map-queue").needs(&["map-set"]),
    ];
    const GROUPS: &'static [OptionGroup] =
        &[OptionGroup::some_of(&["add-set", "del-set", "map-set"])];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let (mut map, mut flags, mut timeout) = (NONE, 0, u32::MAX);
        let (add, delete) = match revision {
            0 if family == Family::Ipv4 => {
                let info: xt_set_info_target_v0 = read_struct(info)?;
                (upgrade(info.add_set)?, upgrade(info.del_set)?)
            }
            1 => {
                let info: xt_set_info_target_v1 = read_struct(info)?;
                (info.add_set, info.del_set)
            }
            2 => {
                let info: xt_set_info_target_v2 = read_struct(info)?;
                (flags, timeout) = (info.flags, info.timeout);
                (info.add_set, info.del_set)
            }
            3 => {
                let info: xt_set_info_target_v3 = read_struct(info)?;
                (map, flags, timeout) = (info.map_set, info.flags, info.timeout);
                (info.add_set, info.del_set)
            }
            _ => return None,
        };
        let maps = IPSET_FLAG_MAP_SKBMARK | IPSET_FLAG_MAP_SKBPRIO | IPSET_FLAG_MAP_SKBQUEUE;
        let (add, delete, map) = (
            SetUse::read(add)?,
            SetUse::read(delete)?,
            SetUse::read(map)?,
        );
        let has = |flag| flags & flag != 0;
        let timeout = Some(timeout).filter(|timeout| *timeout != u32::MAX);
        // The options cannot express no set at all, a map without values, or flags without their set.
        let expected = (add.is_some() || delete.is_some() || map.is_some())
            && map.is_some() == has(maps)
            && (add.is_some() || !(has(IPSET_FLAG_EXIST) || timeout.is_some()))
            && !has(!(maps | IPSET_FLAG_EXIST));
        expected.then_some(Self {
            add,
            exist: has(IPSET_FLAG_EXIST),
            timeout,
            delete,
            map,
            map_mark: has(IPSET_FLAG_MAP_SKBMARK),
            map_priority: has(IPSET_FLAG_MAP_SKBPRIO),
            map_queue: has(IPSET_FLAG_MAP_SKBQUEUE),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_set_info_target_v3::new_zeroed();
        let sets = self.uses().map(|set| SetUse::write(set.as_ref()));
        [info.add_set, info.del_set, info.map_set] = sets;
        info.timeout = self.timeout.unwrap_or(u32::MAX);
        for (set, flag) in [
            (self.exist, IPSET_FLAG_EXIST),
            (self.map_mark, IPSET_FLAG_MAP_SKBMARK),
            (self.map_priority, IPSET_FLAG_MAP_SKBPRIO),
            (self.map_queue, IPSET_FLAG_MAP_SKBQUEUE),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let has = |option| GivenOption::find(given, option).is_some();
        let mut set = Self {
            exist: has("exist"),
            map_mark: has("map-mark"),
            map_priority: has("map-prio"),
            map_queue: has("map-queue"),
            ..Self::default()
        };
        for one in given {
            match one.option {
                "add-set" => set.add = Some(SetUse::parse(one)?),
                "del-set" => set.delete = Some(SetUse::parse(one)?),
                "map-set" => set.map = Some(SetUse::parse(one)?),
                "timeout" => {
                    let seconds = one.parse(|value| number_within(value, 0..=u32::MAX - 1))?;
                    set.timeout = Some(seconds);
                }
                _ => {}
            }
        }
        Ok(set)
    }

    fn print(&self, text: &mut Text) {
        if let Some(add) = &self.add {
            add.print(text.option(false, "add-set"));
        }
        if self.exist {
            text.option(false, "exist");
        }
        if let Some(timeout) = self.timeout {
            text.option(false, "timeout").push(" ").number(timeout);
        }
        if let Some(delete) = &self.delete {
            delete.print(text.option(false, "del-set"));
        }
        if let Some(map) = &self.map {
            map.print(text.option(false, "map-set"));
        }
        for (set, option) in [
            (self.map_mark, " --map-mark"),
            (self.map_priority, " --map-prio"),
            (self.map_queue, " --map-queue"),
        ] {
            if set {
                text.push(option);
            }
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }

    fn sets(&self) -> impl Iterator<Item = &SetId> {
        let uses = self.uses().into_iter();
        uses.flatten().map(|set| &set.set)
    }

    fn sets_mut(&mut self) -> impl Iterator<Item = &mut SetId> {
        let uses = [&mut self.add, &mut self.delete, &mut self.map].into_iter();
        uses.flatten().map(|set| &mut set.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;
    use crate::xt::sets::tests::Names;

    /// `--add-set four src --exist --timeout 60 --del-set two src,dst` by iptables-legacy 1.8.9; the
    /// sets have the indexes 0 and 1.
    const CAPTURED: [u8; 24] = [
        0x00, 0x00, 0x01, 0x02, 0x01, 0x00, 0x02, 0x02, 0xff, 0xff, 0x00, 0x00, 0x01, 0x00, 0x00,
        0x00, 0x3c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ];

    const TEXT: &str = "-j SET --add-set four src --exist --timeout 60 --del-set two src,dst";

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let mut target = Target::read(Family::Ipv6, "SET", 3, &CAPTURED);
        assert_eq!(target.encode(Family::Ipv6).unwrap().info, &CAPTURED[..]);
        let mut names = Names(&[(0, "four"), (1, "two")]);
        target.name_sets(&mut names).unwrap();
        assert_eq!(target.to_string(), TEXT);
        let mut rule = Rule::parse(Family::Ipv6, TEXT).unwrap();
        assert_eq!(
            rule.target,
            crate::iptables::Target::Extension(target.clone())
        );
        // With any name in it, encoding fails: the kernel would interpret it as no set.
        assert!(target.encode(Family::Ipv6).is_err());
        target
            .resolve_sets(Family::Ipv6, &mut Names(&[(0, "four")]))
            .unwrap_err();
        assert!(target.encode(Family::Ipv6).is_err());
        rule.resolve_sets(Family::Ipv6, &mut names).unwrap();
        let read = Target::read(Family::Ipv6, "SET", 3, &CAPTURED);
        assert_eq!(rule.target, crate::iptables::Target::Extension(read));
        assert!(size_of::<Set>() <= 160);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn older_revisions() {
        // From the struct definitions in the header.
        let read = |revision, info: &[u8]| Set::read(Family::Ipv4, revision, info);
        let new = read(3, &CAPTURED).unwrap();
        let two = [&CAPTURED[..8], &CAPTURED[12..20]].concat();
        assert_eq!(read(2, &two), Some(new.clone()));
        let plain = Set {
            exist: false,
            timeout: None,
            ..new
        };
        assert_eq!(read(1, &CAPTURED[..8]), Some(plain.clone()));
        let mut zero = vec![0; 64];
        (zero[4], zero[32], zero[36], zero[40]) = (1, 1, 1, 2);
        assert_eq!(read(0, &zero), Some(plain));
        assert_eq!(Set::read(Family::Ipv6, 0, &zero), None);
        for (revision, info) in [
            (0, &zero[..63]),
            (1, &CAPTURED[..7]),
            (2, &two[..15]),
            (3, &CAPTURED[..19]),
            (4, &CAPTURED[..]),
        ] {
            assert_eq!(read(revision, info), None);
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn invalid_data_is_not_decoded() {
        for (at, byte) in [(2, 0), (3, 3), (12, 2), (13, 1), (8, 5)] {
            let mut info = CAPTURED;
            info[at] = byte;
            assert_eq!(Set::read(Family::Ipv4, 3, &info), None, "{byte} at {at}");
        }
        let mut info = CAPTURED;
        info[..2].fill(0xff); // a timeout without a set to which to add
        assert_eq!(Set::read(Family::Ipv4, 3, &info), None);
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            ("", "--add-set, --del-set or --map-set is required"),
            ("--del-set x src --exist", "--exist needs --add-set"),
            ("--del-set x src --timeout 5", "--timeout needs --add-set"),
            ("--add-set x src --map-prio", "--map-prio needs --map-set"),
            (
                "--map-set x src",
                "--map-set needs --map-mark, --map-prio or --map-queue",
            ),
            (
                "--add-set x src --timeout 4294967295",
                "--timeout: `4294967295` is not a number from 0 to 4294967294",
            ),
            ("! --add-set x src", "--add-set cannot be negated"),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j SET {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-j SET: {reason}"));
        }
    }
}
