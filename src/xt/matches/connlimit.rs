//! `-m connlimit`: compares the number of connections of a host or network.
//!
//! Data of revision 1 (`struct xt_connlimit_info`, `linux/netfilter/xt_connlimit.h`), and of
//! revision 0, which only counts by source and has 1 for "up to" in place of the flags.

use chainwright_sys::xt_connlimit::{XT_CONNLIMIT_DADDR, XT_CONNLIMIT_INVERT, xt_connlimit_info};
use zerocopy::FromZeros;

use crate::xt::value::{network, number, width};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, Mask, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// `-m connlimit`: compares the number of connections of a host or network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connlimit {
    /// Number of connections.
    pub limit: u32,
    /// Whether numbers up to the limit match (`--connlimit-upto`), instead of greater ones
    /// (`--connlimit-above`).
    pub upto: bool,
    /// Mask of the network whose connections are counted together; of the rule's family.
    pub mask: Mask,
    /// Whether to count by destination instead of source.
    pub destination: bool,
}

impl Extension for Connlimit {
    const NAME: &'static str = "connlimit";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("connlimit-upto").inverts(),
        OptionSpec::one("connlimit-above").inverts(),
        OptionSpec::one("connlimit-mask"),
        OptionSpec::switch("connlimit-saddr"),
        OptionSpec::switch("connlimit-daddr"),
    ];
    const GROUPS: &'static [OptionGroup] = &[
        OptionGroup::one_of(&["connlimit-upto", "connlimit-above"]),
        OptionGroup::at_most_one_of(&["connlimit-saddr", "connlimit-daddr"]),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m connlimit --connlimit-above 5 --connlimit-mask 255.0.255.0 --connlimit-saddr",
        "-m connlimit --connlimit-above 5 --connlimit-mask 32 --connlimit-saddr",
        "iptables misreads a non-contiguous mask.",
    )];
    const HAS_EFFECTS: bool = true;

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_connlimit_info = read_struct(info)?;
        let flags = match revision {
            0 if info.flags != 0 => XT_CONNLIMIT_INVERT,
            0 | 1 => info.flags,
            _ => return None,
        };
        (flags & !(XT_CONNLIMIT_INVERT | XT_CONNLIMIT_DADDR) == 0).then_some(Self {
            limit: info.limit,
            upto: flags & XT_CONNLIMIT_INVERT != 0,
            mask: Mask::read(family, &info.mask.all),
            destination: flags & XT_CONNLIMIT_DADDR != 0,
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_connlimit_info::new_zeroed();
        info.limit = self.limit;
        info.mask.all = self.mask.write("connlimit-mask", family)?;
        for (set, flag) in [
            (self.upto, XT_CONNLIMIT_INVERT),
            (self.destination, XT_CONNLIMIT_DADDR),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let how = Self::GROUPS[0].find(given)?;
        let upto = how.invert != (how.option == "connlimit-upto");
        let family = context.family;
        Ok(Self {
            limit: how.parse(number)?,
            upto,
            mask: match find("connlimit-mask") {
                None => Mask::full(family),
                Some(mask) => mask.parse(|value| {
                    let any = match family {
                        Family::Ipv4 => "0.0.0.0/",
                        Family::Ipv6 => "::/",
                    };
                    let most = width(family);
                    network([any.as_bytes(), value].concat().as_slice().into(), family)
                        .map(|(_, mask)| mask.into())
                        .map_err(|_| {
                            format!(
                                "`{value}` is neither a prefix length from 0 to {most} nor a mask"
                            )
                        })
                })?,
            },
            destination: find("connlimit-daddr").is_some(),
        })
    }

    fn print(&self, text: &mut Text) {
        text.push(if self.upto {
            " --connlimit-upto "
        } else {
            " --connlimit-above "
        });
        text.number(self.limit).push(" --connlimit-mask ");
        match self.mask.prefix_length() {
            Some(length) => text.number(length),
            None => text.display(self.mask.address()),
        };
        text.push(if self.destination {
            " --connlimit-daddr"
        } else {
            " --connlimit-saddr"
        });
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.destination {
            " #conn dst/"
        } else {
            " #conn src/"
        });
        match self.mask.prefix_length() {
            Some(length) => text.number(length),
            None => text.display(self.mask.address()),
        };
        text.push(if self.upto { " <= " } else { " > " })
            .number(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        // `--connlimit-upto 5 --connlimit-mask 24 --connlimit-daddr` by iptables-legacy 1.8.9.
        let mut info = vec![0; 32];
        info[..3].fill(0xff);
        (info[16], info[20]) = (5, 3);
        let limit = Connlimit {
            limit: 5,
            upto: true,
            mask: IpAddr::from([255, 255, 255, 0]).into(),
            destination: true,
        };
        assert_eq!(Connlimit::read(Family::Ipv4, 1, &info), Some(limit));
        assert_eq!(limit.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Connlimit(limit).to_string(),
            "-m connlimit --connlimit-upto 5 --connlimit-mask 24 --connlimit-daddr"
        );
        // Revision 0 does not support destinations.
        let old = Connlimit::read(Family::Ipv4, 0, &info).unwrap();
        assert_eq!((old.upto, old.destination), (true, false));
        assert_eq!(Connlimit::read(Family::Ipv4, 2, &info), None);
        assert_eq!(Connlimit::read(Family::Ipv4, 1, &info[..31]), None);
        info[20] = 4;
        assert_eq!(Connlimit::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn a_mask_with_gaps_is_no_prefix() {
        // 1.8.9 prints it as the longest prefix.
        let text =
            "-m connlimit --connlimit-above 5 --connlimit-mask 255.0.255.0 --connlimit-saddr";
        assert_eq!(Rule::parse(Family::Ipv4, text).unwrap().to_string(), text);
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            (
                "--connlimit-saddr",
                "--connlimit-upto or --connlimit-above is required",
            ),
            (
                "--connlimit-upto 1 --connlimit-above 1",
                "--connlimit-above cannot be used with --connlimit-upto",
            ),
            (
                "--connlimit-upto 1 --connlimit-saddr --connlimit-daddr",
                "--connlimit-daddr cannot be used with --connlimit-saddr",
            ),
            (
                "--connlimit-upto 1 --connlimit-mask 33",
                "--connlimit-mask: `33` is neither a prefix length from 0 to 32 nor a mask",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m connlimit {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m connlimit: {reason}"));
        }
    }
}
