//! `-m devgroup`: compares the groups of the packet's incoming and outgoing interfaces.
//!
//! Data of revision 0 (`struct xt_devgroup_info`, `linux/netfilter/xt_devgroup.h`).

use bstr::BStr;
use chainwright_sys::xt_devgroup::{
    XT_DEVGROUP_INVERT_DST, XT_DEVGROUP_INVERT_SRC, XT_DEVGROUP_MATCH_DST, XT_DEVGROUP_MATCH_SRC,
    xt_devgroup_info,
};
use zerocopy::FromZeros;

use crate::xt::value::Parsed;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Names, Negatable, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// A group of interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceGroup {
    /// The group's number.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
}

/// `-m devgroup`: compares the groups of the packet's incoming and outgoing interfaces.
///
/// All given conditions must be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Devgroup {
    /// Group of the incoming interface.
    pub source: Option<Negatable<DeviceGroup>>,
    /// Group of the outgoing interface.
    pub destination: Option<Negatable<DeviceGroup>>,
}

/// Parses a number, a number and a mask, or a name from `/etc/iproute2/group`.
fn group(value: &BStr, names: &Names) -> Parsed<DeviceGroup> {
    let (value, mask) = names.device_groups().masked(value)?;
    Ok(DeviceGroup { value, mask })
}

impl Extension for Devgroup {
    const NAME: &'static str = "devgroup";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("src-group").inverts(),
        OptionSpec::one("dst-group").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::some_of(&["src-group", "dst-group"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_devgroup_info = read_struct(info)?;
        let compared = XT_DEVGROUP_MATCH_SRC | XT_DEVGROUP_MATCH_DST;
        let known = compared | XT_DEVGROUP_INVERT_SRC | XT_DEVGROUP_INVERT_DST;
        if info.flags & !known != 0 || info.flags & compared == 0 {
            return None;
        }
        let group = |bit, inverts, value, mask| {
            (info.flags & bit != 0).then_some(Negatable {
                value: DeviceGroup { value, mask },
                invert: info.flags & inverts != 0,
            })
        };
        Some(Self {
            source: group(
                XT_DEVGROUP_MATCH_SRC,
                XT_DEVGROUP_INVERT_SRC,
                info.src_group,
                info.src_mask,
            ),
            destination: group(
                XT_DEVGROUP_MATCH_DST,
                XT_DEVGROUP_INVERT_DST,
                info.dst_group,
                info.dst_mask,
            ),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_devgroup_info::new_zeroed();
        if let Some(Negatable { value, invert }) = self.source {
            info.flags |= XT_DEVGROUP_MATCH_SRC;
            info.flags |= if invert { XT_DEVGROUP_INVERT_SRC } else { 0 };
            (info.src_group, info.src_mask) = (value.value, value.mask);
        }
        if let Some(Negatable { value, invert }) = self.destination {
            info.flags |= XT_DEVGROUP_MATCH_DST;
            info.flags |= if invert { XT_DEVGROUP_INVERT_DST } else { 0 };
            (info.dst_group, info.dst_mask) = (value.value, value.mask);
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut devgroup = Self::default();
        for one in given {
            let compared = Some(Negatable::given(
                one,
                one.parse(|value| group(value, context.names))?,
            ));
            match one.option {
                "src-group" => devgroup.source = compared,
                _ => devgroup.destination = compared,
            }
        }
        Ok(devgroup)
    }

    fn print(&self, text: &mut Text) {
        for (name, group) in [("src-group", self.source), ("dst-group", self.destination)] {
            let Some(Negatable { value, invert }) = group else {
                continue;
            };
            text.option(invert, name);
            text.names()
                .device_groups()
                .print((value.value, value.mask), text);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Data from iptables-legacy 1.8.9 for `! --src-group 0x1/0xff --dst-group 65536` (from
    /// `strace -xx`).
    const CAPTURED: [u8; 24] = [
        7, 0, 0, 0, 1, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let devgroup = Devgroup {
            source: Some(Negatable {
                value: DeviceGroup {
                    value: 1,
                    mask: 0xff,
                },
                invert: true,
            }),
            destination: Some(Negatable {
                value: DeviceGroup {
                    value: 0x10000,
                    mask: u32::MAX,
                },
                invert: false,
            }),
        };
        assert_eq!(Devgroup::read(Family::Ipv4, 0, &CAPTURED), Some(devgroup));
        let devgroup = Match::Devgroup(devgroup);
        assert_eq!(devgroup.encode(Family::Ipv4).unwrap().info[..], CAPTURED);
        assert_eq!(
            devgroup.to_string(),
            "-m devgroup ! --src-group 0x1/0xff --dst-group 0x10000"
        );
        assert_eq!(Devgroup::read(Family::Ipv4, 0, &CAPTURED[..19]), None);
        assert_eq!(Devgroup::read(Family::Ipv4, 1, &CAPTURED), None);
        for flags in [0, 2, 0x11] {
            let mut info = CAPTURED;
            info[0] = flags;
            assert_eq!(Devgroup::read(Family::Ipv4, 0, &info), None, "{flags}");
        }
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "-m devgroup",
                "column 4: -m devgroup: --src-group or --dst-group is required",
            ),
            (
                "-m devgroup --src-group no-such-group",
                "column 25: -m devgroup: --src-group: `no-such-group` is neither a number, nor a number and a mask (`1/0xff`), nor a name in /etc/iproute2/group",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
