//! `-m rt`: compares the routing header of an IPv6 packet.
//!
//! Data of revision 0 (`struct ip6t_rt`, `linux/netfilter_ipv6/ip6t_rt.h`). The kernel always
//! compares the remaining segments: without `--rt-segsleft`, with the full range.

use std::net::{IpAddr, Ipv6Addr};

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip6t_rt::{
    IP6T_RT_FST, IP6T_RT_FST_NSTRICT, IP6T_RT_HOPS, IP6T_RT_INV_LEN, IP6T_RT_INV_MASK,
    IP6T_RT_INV_SGS, IP6T_RT_INV_TYP, IP6T_RT_LEN, IP6T_RT_RES, IP6T_RT_SGS, IP6T_RT_TYP, ip6t_rt,
};
use zerocopy::FromZeros;

use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::{Parsed, address};
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, ListStyle, OptionError,
    OptionSpec, Text, read_struct, write_struct,
};

/// `-m rt`: compares the routing header of an IPv6 packet.
///
/// The packet must have a routing header that meets all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Rt {
    /// Type of the header.
    pub kind: Option<Negatable<u32>>,
    /// Minimum and maximum of the remaining segments.
    pub segments_left: Option<Negatable<(u32, u32)>>,
    /// Length of the header, in bytes.
    pub length: Option<Negatable<u32>>,
    /// Whether the reserved field must be zero. Only with type 0.
    pub reserved: bool,
    /// Addresses that the header must contain in this order: at most 16. Empty to allow any. Only
    /// with type 0.
    pub addresses: Vec<Ipv6Addr>,
    /// Whether other addresses are allowed between them.
    pub not_strict: bool,
}

const FLAGS: u8 =
    IP6T_RT_TYP | IP6T_RT_SGS | IP6T_RT_LEN | IP6T_RT_RES | IP6T_RT_FST | IP6T_RT_FST_NSTRICT;

impl Rt {
    fn is_type_0(&self) -> bool {
        let compared = self.kind.filter(|kind| !kind.invert);
        compared.is_some_and(|kind| kind.value == 0)
    }
}

impl Extension for Rt {
    const NAME: &'static str = "rt";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("rt-type").inverts(),
        OptionSpec::one("rt-segsleft").inverts(),
        OptionSpec::one("rt-len").inverts(),
        OptionSpec::switch("rt-0-res"),
        OptionSpec::one("rt-0-addrs"),
        OptionSpec::switch("rt-0-not-strict").needs(&["rt-0-addrs"]),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m rt ! --rt-segsleft 0:4294967295",
        "-m rt",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )
    .ipv6()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ip6t_rt = read_struct(info)?;
        let has = |flag| info.flags & flag != 0;
        let negated = |flag| info.invflags & flag != 0;
        let compared = |flag, value, inverted| {
            has(flag).then_some(Negatable {
                value,
                invert: negated(inverted),
            })
        };
        if revision != Self::REVISION || has(!FLAGS) || negated(!IP6T_RT_INV_MASK) {
            return None;
        }
        let addresses = info.addrs.get(..usize::from(info.addrnr))?;
        let value = Self {
            kind: compared(IP6T_RT_TYP, info.rt_type, IP6T_RT_INV_TYP),
            segments_left: Negatable::from_range(info.segsleft.into(), negated(IP6T_RT_INV_SGS)),
            length: compared(IP6T_RT_LEN, info.hdrlen, IP6T_RT_INV_LEN),
            reserved: has(IP6T_RT_RES),
            addresses: addresses.iter().copied().map(Ipv6Addr::from).collect(),
            not_strict: has(IP6T_RT_FST_NSTRICT),
        };
        let claims_type_0 = value.reserved || has(IP6T_RT_FST);
        let expressible = has(IP6T_RT_FST) != value.addresses.is_empty()
            && (has(IP6T_RT_FST) || !value.not_strict)
            && (value.is_type_0() || !claims_type_0);
        expressible.then_some(value)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = ip6t_rt::new_zeroed();
        let mut set = |flag, inverted, invert| {
            info.flags |= flag;
            info.invflags |= if invert { inverted } else { 0 };
        };
        if let Some(kind) = self.kind {
            set(IP6T_RT_TYP, IP6T_RT_INV_TYP, kind.invert);
        }
        if let Some(segments) = self.segments_left {
            set(IP6T_RT_SGS, IP6T_RT_INV_SGS, segments.invert);
        }
        if let Some(length) = self.length {
            set(IP6T_RT_LEN, IP6T_RT_INV_LEN, length.invert);
        }
        if self.reserved {
            set(IP6T_RT_RES, 0, false);
        }
        if self.not_strict {
            set(IP6T_RT_FST_NSTRICT, 0, false);
        }
        info.rt_type = self.kind.map_or(0, |kind| kind.value);
        info.segsleft = self
            .segments_left
            .map_or([0, u32::MAX], |segments| segments.value.into());
        info.hdrlen = self.length.map_or(0, |length| length.value);
        let addresses =
            pack::at_most("rt-0-addrs", &self.addresses, info.addrs.len(), "addresses")?;
        for (place, address) in info.addrs.iter_mut().zip(addresses) {
            *place = address.octets();
            info.addrnr += 1;
            info.flags |= IP6T_RT_FST;
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut rt = Self::default();
        for one in given {
            match one.option {
                "rt-type" => rt.kind = Some(Negatable::parse(one)?),
                "rt-segsleft" => rt.segments_left = Negatable::parse_range(one)?,
                "rt-len" => rt.length = Some(Negatable::parse(one)?),
                "rt-0-res" => rt.reserved = true,
                "rt-0-addrs" => rt.addresses = one.parse(addresses)?,
                _ => rt.not_strict = true,
            }
        }
        let of_type_0 = given.iter().find(|one| one.option.starts_with("rt-0-"));
        match of_type_0 {
            Some(one) if !rt.is_type_0() => Err(OptionError::needs(one.option, &["rt-type 0"])),
            _ => Ok(rt),
        }
    }

    fn print(&self, text: &mut Text) {
        if let Some(kind) = self.kind {
            kind.print(text, "rt-type");
        }
        if let Some(segments) = self.segments_left {
            segments.print_range(text, "rt-segsleft");
        }
        if let Some(length) = self.length {
            length.print(text, "rt-len");
        }
        text.switch(self.reserved, "rt-0-res");
        let mut separator = " --rt-0-addrs ";
        for address in &self.addresses {
            text.push(separator).address(*address);
            separator = ",";
        }
        text.switch(self.not_strict, "rt-0-not-strict");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" rt");
        let only_type = Self {
            kind: self.kind,
            ..Self::default()
        };
        match self.kind {
            Some(kind) if *self == only_type => {
                text.push(" type:")
                    .push(if kind.invert { "!" } else { "" })
                    .number(kind.value);
            }
            _ => self.print(text),
        }
    }
}

/// Parses addresses separated by commas.
fn addresses(value: &BStr) -> Parsed<Vec<Ipv6Addr>> {
    let mut addresses = Vec::new();
    for one in value.split_str(",") {
        if addresses.len() == IP6T_RT_HOPS {
            return Err(format!("more than {IP6T_RT_HOPS} addresses"));
        }
        if let IpAddr::V6(address) = address(one.as_bstr(), Family::Ipv6)? {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `-m rt --rt-type 0 ! --rt-segsleft 1:4 --rt-0-addrs ::1
    /// --rt-0-not-strict` from ip6tables-legacy 1.8.9 (`strace -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 280];
        info[..20].copy_from_slice(&[
            0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x33, 0x02, 0, 0,
        ]);
        info[35] = 1;
        info[276] = 1;
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let rt = Rt::read(Family::Ipv6, 0, &captured()).unwrap();
        assert_eq!(rt.addresses, [Ipv6Addr::LOCALHOST]);
        assert_eq!(rt.write(Family::Ipv6).unwrap(), captured());
        assert_eq!(
            Match::Rt(rt).to_string(),
            "-m rt --rt-type 0 ! --rt-segsleft 1:4 --rt-0-addrs ::1 --rt-0-not-strict"
        );
        assert_eq!(Rt::read(Family::Ipv6, 0, &captured()[..279]), None);
        assert_eq!(Rt::read(Family::Ipv6, 1, &captured()), None);
        // Unknown flags; addresses without their flag or with another type; too many of them.
        for (at, byte) in [
            (16, 0x73),
            (16, 0x23),
            (17, 8),
            (17, 3),
            (0, 1),
            (276, 17),
            (276, 0),
        ] {
            let mut invalid = captured();
            invalid[at] = byte;
            assert_eq!(Rt::read(Family::Ipv6, 0, &invalid), None, "{at}");
        }
    }

    #[test]
    fn the_range_of_all() {
        let parse = |text: &str| Rule::parse(Family::Ipv6, text).unwrap().to_string();
        assert_eq!(parse("-m rt --rt-segsleft :"), "-m rt");
        // iptables-save 1.8.9 prints no `--rt-segsleft` here, although no value is outside that
        // range.
        let none = "-m rt ! --rt-segsleft 0:4294967295";
        assert_eq!(parse(none), none);
    }

    #[test]
    fn refuses() {
        let many = ["::1"; 17].join(",");
        for (options, message) in [
            ("--rt-type 1 --rt-0-res", "--rt-0-res needs --rt-type 0"),
            ("! --rt-type 0 --rt-0-res", "needs --rt-type 0"),
            ("--rt-0-addrs ::1", "--rt-0-addrs needs --rt-type 0"),
            (
                "--rt-type 0 --rt-0-not-strict",
                "--rt-0-not-strict needs --rt-0-addrs",
            ),
            ("--rt-type 0 --rt-0-addrs ::1,", "`` is not an IPv6 address"),
            (
                &format!("--rt-type 0 --rt-0-addrs {many}"),
                "more than 16 addresses",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-m rt {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
