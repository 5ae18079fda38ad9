//! `-m frag`: compares the fragment header of an IPv6 packet.
//!
//! Data of revision 0 (`struct ip6t_frag`, `linux/netfilter_ipv6/ip6t_frag.h`). The kernel ignores
//! the length. It always compares the id: without `--fragid`, with the full range.

use chainwright_sys::ip6t_frag::{
    IP6T_FRAG_FST, IP6T_FRAG_IDS, IP6T_FRAG_INV_IDS, IP6T_FRAG_INV_LEN, IP6T_FRAG_INV_MASK,
    IP6T_FRAG_LEN, IP6T_FRAG_MF, IP6T_FRAG_NMF, IP6T_FRAG_RES, ip6t_frag,
};
use zerocopy::FromZeros;

use crate::xt::Negatable;
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// `-m frag`: compares the fragment header of an IPv6 packet.
///
/// The packet must have a fragment header that meets all conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Frag {
    /// First and last id.
    pub ids: Option<Negatable<(u32, u32)>>,
    /// Length of the header, in bytes; the kernel ignores it.
    pub length: Option<Negatable<u32>>,
    /// Whether the reserved fields must be zero.
    pub reserved: bool,
    /// Whether it must be the first fragment.
    pub first: bool,
    /// Whether more fragments must follow.
    pub more: Option<bool>,
}

const FLAGS: u8 =
    IP6T_FRAG_IDS | IP6T_FRAG_LEN | IP6T_FRAG_RES | IP6T_FRAG_FST | IP6T_FRAG_MF | IP6T_FRAG_NMF;

impl Extension for Frag {
    const NAME: &'static str = "frag";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("fragid").inverts(),
        OptionSpec::one("fraglen").inverts(),
        OptionSpec::switch("fragres"),
        OptionSpec::switch("fragfirst"),
        OptionSpec::switch("fragmore"),
        OptionSpec::switch("fraglast"),
    ];
    const GROUPS: &'static [OptionGroup] =
        &[OptionGroup::at_most_one_of(&["fragmore", "fraglast"])];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m frag ! --fragid 0:4294967295",
        "-m frag",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )
    .ipv6()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ip6t_frag = read_struct(info)?;
        let has = |flag| info.flags & flag != 0;
        if revision != Self::REVISION
            || has(!FLAGS)
            || info.invflags & !IP6T_FRAG_INV_MASK != 0
            || has(IP6T_FRAG_MF) && has(IP6T_FRAG_NMF)
        {
            return None;
        }
        Some(Self {
            ids: Negatable::from_range(info.ids.into(), info.invflags & IP6T_FRAG_INV_IDS != 0),
            length: has(IP6T_FRAG_LEN).then_some(Negatable {
                value: info.hdrlen,
                invert: info.invflags & IP6T_FRAG_INV_LEN != 0,
            }),
            reserved: has(IP6T_FRAG_RES),
            first: has(IP6T_FRAG_FST),
            more: (has(IP6T_FRAG_MF) || has(IP6T_FRAG_NMF)).then_some(has(IP6T_FRAG_MF)),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = ip6t_frag::new_zeroed();
        info.ids = [0, u32::MAX];
        if let Some(ids) = self.ids {
            info.ids = ids.value.into();
            info.flags |= IP6T_FRAG_IDS;
            info.invflags |= if ids.invert { IP6T_FRAG_INV_IDS } else { 0 };
        }
        if let Some(length) = self.length {
            info.hdrlen = length.value;
            info.flags |= IP6T_FRAG_LEN;
            info.invflags |= if length.invert { IP6T_FRAG_INV_LEN } else { 0 };
        }
        for (flag, set) in [
            (IP6T_FRAG_RES, self.reserved),
            (IP6T_FRAG_FST, self.first),
            (IP6T_FRAG_MF, self.more == Some(true)),
            (IP6T_FRAG_NMF, self.more == Some(false)),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut frag = Self::default();
        for one in given {
            match one.option {
                "fragid" => frag.ids = Negatable::parse_range(one)?,
                "fraglen" => frag.length = Some(Negatable::parse(one)?),
                "fragres" => frag.reserved = true,
                "fragfirst" => frag.first = true,
                "fragmore" => frag.more = Some(true),
                _ => frag.more = Some(false),
            }
        }
        Ok(frag)
    }

    fn print(&self, text: &mut Text) {
        if let Some(ids) = self.ids {
            ids.print_range(text, "fragid");
        }
        if let Some(length) = self.length {
            length.print(text, "fraglen");
        }
        for (option, set) in [
            ("fragres", self.reserved),
            ("fragfirst", self.first),
            ("fragmore", self.more == Some(true)),
            ("fraglast", self.more == Some(false)),
        ] {
            if set {
                text.option(false, option);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// `-m frag ! --fragid 4:7` by ip6tables-legacy 1.8.9 (`strace -xx`).
    const CAPTURED: [u8; 16] = [4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let frag = Frag {
            ids: Some(Negatable {
                value: (4, 7),
                invert: true,
            }),
            ..Frag::default()
        };
        assert_eq!(Frag::read(Family::Ipv6, 0, &CAPTURED), Some(frag));
        assert_eq!(frag.write(Family::Ipv6).unwrap(), CAPTURED);
        assert_eq!(Match::Frag(frag).to_string(), "-m frag ! --fragid 4:7");
        assert_eq!(Frag::read(Family::Ipv6, 0, &CAPTURED[..15]), None);
        assert_eq!(Frag::read(Family::Ipv6, 1, &CAPTURED), None);
        for (at, byte) in [(12, 0x40), (12, 0x30), (13, 4)] {
            let mut invalid = CAPTURED;
            invalid[at] = byte;
            assert_eq!(Frag::read(Family::Ipv6, 0, &invalid), None);
        }
    }

    #[test]
    fn the_range_of_all() {
        let parse = |text: &str| Rule::parse(Family::Ipv6, text).unwrap().to_string();
        assert_eq!(parse("-m frag --fragid :"), "-m frag");
        // iptables-save 1.8.9 prints no `--fragid` here, although no value is outside that range.
        let none = "-m frag ! --fragid 0:4294967295";
        assert_eq!(parse(none), none);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            (
                "--fragmore --fraglast",
                "--fraglast cannot be used with --fragmore",
            ),
            ("--fragid x", "`x` is not a number from 0 to 4294967295"),
            ("! --fraglast", "--fraglast cannot be negated"),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-m frag {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
