//! `-m iprange`: compares the packet's addresses with ranges.
//!
//! Data of revision 1 (`struct xt_iprange_mtinfo`, `linux/netfilter/xt_iprange.h`).

use std::net::IpAddr;
use std::ops::RangeInclusive;

use bstr::{BStr, ByteSlice};
use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_iprange::{
    IPRANGE_DST, IPRANGE_DST_INV, IPRANGE_SRC, IPRANGE_SRC_INV, xt_iprange_mtinfo,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, from_octets, network};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Negatable, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// `-m iprange`: compares the packet's addresses with ranges.
///
/// All given ranges must match. A reversed range contains no address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Iprange {
    /// First and last source address.
    pub source: Option<Negatable<RangeInclusive<IpAddr>>>,
    /// First and last destination address.
    pub destination: Option<Negatable<RangeInclusive<IpAddr>>>,
}

/// Parses `a` or `a-b`, in any order, as iptables does. An IPv4 address may omit its last
/// bytes, which are then 0.
fn range(value: &BStr, family: Family) -> Parsed<RangeInclusive<IpAddr>> {
    let address = |text: &[u8]| match text.contains(&b'/') {
        true => Err(format!(
            "`{value}` is neither an address nor a range `a-b` of addresses"
        )),
        false => network(text.as_bstr(), family).map(|(address, _)| address),
    };
    match value.split_once_str("-") {
        None => address(value).map(|only| only..=only),
        Some((first, last)) => Ok(address(first)?..=address(last)?),
    }
}

impl Extension for Iprange {
    const NAME: &'static str = "iprange";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("src-range").inverts(),
        OptionSpec::one("dst-range").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::some_of(&["src-range", "dst-range"])];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_iprange_mtinfo = read_struct(info)?;
        let compared = IPRANGE_SRC | IPRANGE_DST;
        let known = compared | IPRANGE_SRC_INV | IPRANGE_DST_INV;
        if info.flags & !known != 0 || info.flags & compared == 0 {
            return None;
        }
        let range = |bit, inverts, first: nf_inet_addr, last: nf_inet_addr| {
            (info.flags & bit != 0).then(|| Negatable {
                value: from_octets(family, &first.all)..=from_octets(family, &last.all),
                invert: info.flags & inverts != 0,
            })
        };
        Some(Self {
            source: range(IPRANGE_SRC, IPRANGE_SRC_INV, info.src_min, info.src_max),
            destination: range(IPRANGE_DST, IPRANGE_DST_INV, info.dst_min, info.dst_max),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_iprange_mtinfo::new_zeroed();
        if let Some(source) = &self.source {
            info.src_min.all = pack::address("src-range", family, *source.value.start())?;
            info.src_max.all = pack::address("src-range", family, *source.value.end())?;
            info.flags |= IPRANGE_SRC | if source.invert { IPRANGE_SRC_INV } else { 0 };
        }
        if let Some(destination) = &self.destination {
            info.dst_min.all = pack::address("dst-range", family, *destination.value.start())?;
            info.dst_max.all = pack::address("dst-range", family, *destination.value.end())?;
            info.flags |= IPRANGE_DST
                | if destination.invert {
                    IPRANGE_DST_INV
                } else {
                    0
                };
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut iprange = Self::default();
        for one in given {
            let value = one.parse(|value| range(value, context.family))?;
            let compared = Some(Negatable::given(one, value));
            match one.option {
                "src-range" => iprange.source = compared,
                _ => iprange.destination = compared,
            }
        }
        Ok(iprange)
    }

    fn print(&self, text: &mut Text) {
        for (name, range) in [
            ("src-range", &self.source),
            ("dst-range", &self.destination),
        ] {
            if let Some(Negatable { value, invert }) = range {
                text.option(*invert, name).push(" ").display(value.start());
                text.push("-").display(value.end());
            }
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        for (name, range) in [
            (" source", &self.source),
            (" destination", &self.destination),
        ] {
            if let Some(Negatable { value, invert }) = range {
                text.push(name)
                    .push(" IP range ")
                    .push(if *invert { "! " } else { "" });
                text.display(value.start()).push("-").display(value.end());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn round_trips_data_of_iptables() {
        // `! --src-range 1.2.3.4-1.2.3.9 --dst-range 10.0.0.1` by iptables-legacy 1.8.9 and
        // `! --dst-range fd00::1-fd00::ff` by ip6tables-legacy (from `strace -xx`).
        let mut four = [0; 72];
        four[..4].copy_from_slice(&[1, 2, 3, 4]);
        four[16..20].copy_from_slice(&[1, 2, 3, 9]);
        four[32..36].copy_from_slice(&[10, 0, 0, 1]);
        four[48..52].copy_from_slice(&[10, 0, 0, 1]);
        four[64] = 0x13;
        let mut six = [0; 72];
        (six[32], six[47], six[48], six[63], six[64]) = (0xfd, 1, 0xfd, 0xff, 0x22);
        for (family, info, range, printed) in [
            (
                Family::Ipv4,
                four,
                Iprange {
                    source: Some(Negatable {
                        value: ip("1.2.3.4")..=ip("1.2.3.9"),
                        invert: true,
                    }),
                    destination: Some(Negatable {
                        value: ip("10.0.0.1")..=ip("10.0.0.1"),
                        invert: false,
                    }),
                },
                "-m iprange ! --src-range 1.2.3.4-1.2.3.9 --dst-range 10.0.0.1-10.0.0.1",
            ),
            (
                Family::Ipv6,
                six,
                Iprange {
                    source: None,
                    destination: Some(Negatable {
                        value: ip("fd00::1")..=ip("fd00::ff"),
                        invert: true,
                    }),
                },
                "-m iprange ! --dst-range fd00::1-fd00::ff",
            ),
        ] {
            assert_eq!(Iprange::read(family, 1, &info), Some(range.clone()));
            let range = Match::Iprange(range);
            assert_eq!(range.encode(family).unwrap().info[..], info);
            assert_eq!(range.to_string(), printed);
            assert_eq!(Iprange::read(family, 1, &info[..67]), None);
            assert_eq!(Iprange::read(family, 0, &info), None);
            for flags in [0, IPRANGE_SRC_INV, IPRANGE_SRC | 0x40] {
                let mut info = info;
                info[64] = flags;
                assert_eq!(Iprange::read(family, 1, &info), None, "{flags}");
            }
        }
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "-m iprange",
                "column 4: -m iprange: --src-range or --dst-range is required",
            ),
            (
                "-m iprange --src-range 1.2.3.4/8",
                "column 24: -m iprange: --src-range: `1.2.3.4/8` is neither an address nor a range \
                 `a-b` of addresses",
            ),
            (
                "-m iprange --src-range 1.2.3.4-",
                "column 24: -m iprange: --src-range: `` is not an IPv4 address (host names are \
                 not looked up)",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
