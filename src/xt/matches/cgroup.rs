//! `-m cgroup`: compares the control group of the sending process.
//!
//! Data of revision 2, of revision 1 (a longer path) and of revision 0 (no path):
//! `struct xt_cgroup_info_v0` to `v2`, `linux/netfilter/xt_cgroup.h`.

use bstr::BString;
use chainwright_sys::xt_cgroup::{
    XT_CGROUP_PATH_MAX, xt_cgroup_info_v0, xt_cgroup_info_v1, xt_cgroup_info_v2,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{line, number, string};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Negatable, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// Maximum length of a path, in bytes.
const MAX_LENGTH: usize = XT_CGROUP_PATH_MAX - 1;

/// `-m cgroup`: compares the control group of the sending process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cgroup {
    /// Path from the root of the unified hierarchy (cgroup v2), at most 511 bytes; also matches
    /// groups below it. It must exist when the rule is added.
    Path(Negatable<BString>),
    /// Class (`net_cls.classid` of cgroup v1).
    Class(Negatable<u32>),
}

/// Decodes the fields of revisions 1 and 2.
fn read(flags: [u8; 4], path: &[u8], class: u32) -> Option<Cgroup> {
    let [has_path, has_class, invert_path, invert_class] = flags.map(|flag| flag != 0);
    match (has_path, has_class) {
        (true, false) => {
            let path = line(path).filter(|path| path.len() <= MAX_LENGTH)?;
            Some(Cgroup::Path(Negatable {
                value: path.to_owned(),
                invert: invert_path,
            }))
        }
        (false, true) => Some(Cgroup::Class(Negatable {
            value: class,
            invert: invert_class,
        })),
        _ => None,
    }
}

impl Extension for Cgroup {
    const NAME: &'static str = "cgroup";
    const REVISION: u8 = 2;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("path").inverts(),
        OptionSpec::one("cgroup").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["path", "cgroup"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        match revision {
            0 => {
                let info: xt_cgroup_info_v0 = read_struct(info)?;
                Some(Self::Class(Negatable {
                    value: info.id,
                    invert: info.invert != 0,
                }))
            }
            1 => {
                let i: xt_cgroup_info_v1 = read_struct(info)?;
                let flags = [i.has_path, i.has_classid, i.invert_path, i.invert_classid];
                read(flags, &i.path, i.classid)
            }
            2 => {
                let i: xt_cgroup_info_v2 = read_struct(info)?;
                let flags = [i.has_path, i.has_classid, i.invert_path, i.invert_classid];
                let class = u32::from_ne_bytes([i.path[0], i.path[1], i.path[2], i.path[3]]);
                read(flags, &i.path, class)
            }
            _ => None,
        }
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_cgroup_info_v2::new_zeroed();
        match self {
            Self::Path(path) => {
                info.has_path = 1;
                info.invert_path = path.invert.into();
                info.path = pack::text("path", &path.value)?;
            }
            Self::Class(class) => {
                info.has_classid = 1;
                info.invert_classid = class.invert.into();
                info.path[..4].copy_from_slice(&class.value.to_ne_bytes());
            }
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let one = Self::GROUPS[0].find(given)?;
        Ok(match one.option {
            "path" => {
                let path = one.parse(|value| string(value, 0..=MAX_LENGTH))?;
                Self::Path(Negatable::given(one, path.to_owned()))
            }
            _ => Self::Class(Negatable::given(one, one.parse(number)?)),
        })
    }

    fn print(&self, text: &mut Text) {
        match self {
            Self::Path(path) => text.option(path.invert, "path").string(&path.value),
            Self::Class(class) => {
                let text = text.option(class.invert, "cgroup").push(" ");
                text.number(class.value)
            }
        };
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

    /// Returns the data from iptables-legacy 1.8.9 for `! --cgroup 0x10001` and for `--path /`
    /// (from `strace -xx`).
    fn captured(start: &[u8]) -> Vec<u8> {
        let mut info = start.to_vec();
        info.resize(528, 0);
        info
    }

    const CLASS: [u8; 8] = [0, 1, 0, 1, 1, 0, 1, 0];
    const PATH: [u8; 5] = [1, 0, 0, 0, b'/'];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let class = Cgroup::Class(Negatable {
            value: 0x10001,
            invert: true,
        });
        let path = Cgroup::Path(Negatable {
            value: "/".into(),
            invert: false,
        });
        for (start, cgroup, printed) in [
            (&CLASS[..], class, "-m cgroup ! --cgroup 65537"),
            (&PATH[..], path, "-m cgroup --path \"/\""),
        ] {
            let info = captured(start);
            assert_eq!(Cgroup::read(Family::Ipv4, 2, &info), Some(cgroup.clone()));
            let cgroup = Match::Cgroup(cgroup);
            assert_eq!(cgroup.encode(Family::Ipv4).unwrap().info[..], info);
            assert_eq!(cgroup.to_string(), printed);
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn older_revisions() {
        let class = Some(Cgroup::Class(Negatable {
            value: 7,
            invert: true,
        }));
        let read = |revision, info: &[u8]| Cgroup::read(Family::Ipv4, revision, info);
        assert_eq!(read(0, &[7, 0, 0, 0, 1, 0, 0, 0]), class);
        assert_eq!(read(0, &[7, 0, 0, 0, 1, 0, 0]), None);
        let mut info = vec![0; 4112];
        (info[1], info[3], info[4100]) = (1, 1, 7);
        assert_eq!(read(1, &info), class);
        (info[0], info[1]) = (1, 0);
        info[4..604].fill(b'a');
        // Longer than revision 2 allows.
        assert_eq!(read(1, &info), None);
        info[504] = 0;
        assert!(matches!(read(1, &info), Some(Cgroup::Path(path)) if path.value.len() == 500));
        assert_eq!(read(1, &info[..4103]), None);
        assert_eq!(read(3, &info), None);
    }

    #[test]
    fn inexpressible_data_stays_opaque() {
        for start in [[0; 4], [1, 1, 0, 0]] {
            assert_eq!(Cgroup::read(Family::Ipv4, 2, &captured(&start)), None);
        }
        assert_eq!(Cgroup::read(Family::Ipv4, 2, &[1; 528]), None);
        assert_eq!(Cgroup::read(Family::Ipv4, 2, &captured(&PATH)[..520]), None);
    }

    #[test]
    fn refusals() {
        for (options, expected) in [
            ("-m cgroup", "--path or --cgroup is required"),
            (
                "-m cgroup --path / --cgroup 1",
                "--cgroup cannot be used with --path",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.message, format!("-m cgroup: {expected}"));
        }
    }
}
