//! `-m ah`: compares fields of IPsec's authentication header. For IPv4 the rule is for `-p ah`.
//!
//! Data of revision 0: for IPv4 `struct ipt_ah` (`linux/netfilter_ipv4/ipt_ah.h`), for IPv6
//! `struct ip6t_ah` (`linux/netfilter_ipv6/ip6t_ah.h`).

use chainwright_sys::ip6t_ah::{IP6T_AH_INV_LEN, IP6T_AH_INV_MASK, IP6T_AH_INV_SPI, ip6t_ah};
use chainwright_sys::ipt_ah::{IPT_AH_INV_SPI, ipt_ah};

use super::spi::SpiRange;
use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::number;
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m ah`: compares fields of IPsec's authentication header. For IPv4 the rule is for `-p ah`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Ah {
    /// Security parameter indices.
    pub spis: SpiRange,
    /// Length of the header in bytes, from 1; 0 is not compared. Only for IPv6.
    pub length: Option<Negatable<u32>>,
    /// Whether the reserved field must be 0. Only for IPv6.
    pub reserved: bool,
}

impl Extension for Ah {
    const NAME: &'static str = "ah";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("ahspi").inverts(),
        OptionSpec::one("ahlen").inverts(),
        OptionSpec::switch("ahres"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p ah -m ah ! --ahspi 0:4294967295",
        "-p ah -m ah",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        match family {
            Family::Ipv4 => {
                let info: ipt_ah = read_struct(info)?;
                Some(Self {
                    spis: SpiRange::read(info.spis, info.invflags, IPT_AH_INV_SPI)?,
                    ..Self::default()
                })
            }
            Family::Ipv6 => {
                let info: ip6t_ah = read_struct(info)?;
                if info.invflags & !IP6T_AH_INV_MASK != 0 {
                    return None;
                }
                let inverted = info.invflags & IP6T_AH_INV_SPI;
                Some(Self {
                    spis: SpiRange::read(info.spis, inverted, IP6T_AH_INV_SPI)?,
                    // The kernel ignores the negation if there is no length.
                    length: (info.hdrlen != 0).then_some(Negatable {
                        value: info.hdrlen,
                        invert: info.invflags & IP6T_AH_INV_LEN != 0,
                    }),
                    reserved: info.hdrres != 0,
                })
            }
        }
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        Ok(match family {
            Family::Ipv4 => {
                let why = "only the IPv6 header has it";
                pack::require(self.length.is_none(), "ahlen", why)?;
                pack::require(!self.reserved, "ahres", why)?;
                write_struct(&ipt_ah {
                    spis: self.spis.ends(),
                    invflags: self.spis.flags(IPT_AH_INV_SPI),
                    __pad: [0; 3],
                })
            }
            Family::Ipv6 => {
                let length = self.length.unwrap_or(Negatable::is(0));
                write_struct(&ip6t_ah {
                    spis: self.spis.ends(),
                    hdrlen: length.value,
                    hdrres: self.reserved.into(),
                    invflags: self.spis.flags(IP6T_AH_INV_SPI)
                        | if length.invert { IP6T_AH_INV_LEN } else { 0 },
                    __pad: [0; 2],
                })
            }
        })
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if context.family == Family::Ipv4 {
            context.needs_protocol(51, "ah")?;
        }
        let mut ah = Self::default();
        for one in given {
            match one.option {
                "ahspi" => ah.spis = SpiRange::parse(one)?,
                _ if context.family == Family::Ipv4 => {
                    return Err(OptionError::of(one.option, "it is only supported for IPv6"));
                }
                "ahlen" => {
                    let (with, invert) = (one.parse(number)?, one.invert);
                    ah.length = (with != 0).then_some(Negatable {
                        value: with,
                        invert,
                    });
                }
                _ => ah.reserved = true,
            }
        }
        Ok(ah)
    }

    fn print(&self, text: &mut Text) {
        self.spis.print(text, "ahspi");
        if let Some(length) = self.length.filter(|length| length.value != 0) {
            text.option(length.invert, "ahlen").push(" ");
            text.number(length.value);
        }
        text.switch(self.reserved, "ahres");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" ah ");
        self.spis.list(text);
        if let Some(length) = self.length.filter(|length| length.value != 0) {
            text.push("length:")
                .push(if length.invert { "!" } else { "" })
                .number(length.value);
        }
        text.push(if self.reserved { " reserved" } else { "" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// `-m ah ! --ahspi 5:9 ! --ahlen 24 --ahres` by ip6tables-legacy 1.8.9.
    const IPV6: [u8; 16] = [5, 0, 0, 0, 9, 0, 0, 0, 24, 0, 0, 0, 1, 3, 0, 0];
    /// `-p ah -m ah ! --ahspi 5:9` by iptables-legacy 1.8.9.
    const IPV4: [u8; 16] = [5, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let spis = SpiRange {
            first: 5,
            last: 9,
            invert: true,
        };
        let of_ipv4 = Ah {
            spis,
            ..Ah::default()
        };
        let of_ipv6 = Ah {
            spis,
            length: Some(Negatable::is_not(24)),
            reserved: true,
        };
        for (family, ah, info, text) in [
            (Family::Ipv4, of_ipv4, IPV4, ""),
            (Family::Ipv6, of_ipv6, IPV6, " ! --ahlen 24 --ahres"),
        ] {
            assert_eq!(Ah::read(family, 0, &info), Some(ah));
            assert_eq!(Match::Ah(ah).encode(family).unwrap().info[..], info);
            assert_eq!(
                Match::Ah(ah).to_string(),
                format!("-m ah ! --ahspi 5:9{text}")
            );
            assert_eq!(Ah::read(family, 0, &info[..11]), None);
            assert_eq!(Ah::read(family, 1, &info), None);
        }
        let mut odd = IPV4;
        odd[8] = 2;
        assert_eq!(Ah::read(Family::Ipv4, 0, &odd), None);
        odd = IPV6;
        odd[13] = 4;
        assert_eq!(Ah::read(Family::Ipv6, 0, &odd), None);
    }

    #[test]
    fn refusals_and_rules_that_iptables_widens() {
        let message = |options| Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
        assert!(message("-m ah --ahspi 5").contains("the rule needs `-p ah`"));
        assert!(message("-p ah --ahres").contains("--ahres: it is only supported for IPv6"));
        assert!(message("-p ah --ahspi 1:2:3").contains("`2:3` is not a number"));
        assert!(message("-p ah --ahspi 4294967296").contains("from 0 to 4294967295"));
        // iptables-save 1.8.9 prints no option, so the printed rule matches every packet.
        let never = "-p ah -m ah ! --ahspi 0:4294967295";
        let rule = Rule::parse(Family::Ipv4, never).unwrap();
        assert_eq!(rule.to_string(), never);
        // It prints the negation of a zero length, which has no effect.
        let rule = Rule::parse(Family::Ipv6, "-m ah ! --ahlen 0").unwrap();
        assert_eq!(rule.to_string(), "-m ah");
    }
}
