//! `-j NFLOG`: sends the packet to the programs that listen to a netlink group.
//!
//! Data of revision 0 (`struct xt_nflog_info`, `linux/netfilter/xt_NFLOG.h`). Since 1.8.8,
//! iptables-nft writes the nf_tables expression `log` instead, whose prefix may have 127 bytes.

use bstr::BString;
use chainwright_sys::xt_nflog_target::{XT_NFLOG_F_COPY_LEN, xt_nflog_info};
use zerocopy::FromZeros;

use super::log::{prefix, read_prefix};
use super::quoting::quoted;
use crate::xt::pack;
use crate::xt::value::number;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j NFLOG`: sends the packet to the programs that listen to a netlink group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Nflog {
    /// Text to send with each packet: at most 127 bytes if it becomes the nf_tables expression `log`;
    /// the target's data has space for 63.
    pub prefix: BString,
    /// Netlink group.
    pub group: u16,
    /// Number of bytes of each packet to send. Only has an effect with `cut`.
    pub length: u32,
    /// Whether to send at most `length` bytes: `--nflog-size` instead of `--nflog-range`, which has
    /// no effect.
    pub cut: bool,
    /// Number of packets to collect before sending; 0 for the listener's setting.
    pub threshold: u16,
}

/// Size of the longest prefix of the expression `log` with its NUL (`NF_LOG_PREFIXLEN`).
const NATIVE_PREFIX_SIZE: usize = 128;

/// Size of the prefix's field; the prefix itself is at least one byte shorter.
const PREFIX_SIZE: usize = 64;

impl Extension for Nflog {
    const NAME: &'static str = "NFLOG";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("nflog-group"),
        OptionSpec::one("nflog-prefix"),
        // It has no effect.
        OptionSpec::one("nflog-range").excludes(&["nflog-size"]),
        OptionSpec::one("nflog-size"),
        OptionSpec::one("nflog-threshold"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_nflog_info = read_struct(info)?;
        (info.flags & !XT_NFLOG_F_COPY_LEN == 0).then_some(())?;
        Some(Self {
            prefix: read_prefix(&info.prefix)?,
            group: info.group,
            length: info.len,
            cut: info.flags & XT_NFLOG_F_COPY_LEN != 0,
            threshold: info.threshold,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_nflog_info {
            len: self.length,
            group: self.group,
            threshold: self.threshold,
            flags: if self.cut { XT_NFLOG_F_COPY_LEN } else { 0 },
            prefix: pack::text("nflog-prefix", &self.prefix)?,
            ..xt_nflog_info::new_zeroed()
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "nflog-group" => value.group = one.parse(number)?,
                "nflog-prefix" => {
                    let prefix_size = if context.native_log {
                        NATIVE_PREFIX_SIZE
                    } else {
                        PREFIX_SIZE
                    };
                    value.prefix = prefix(context, one, prefix_size)?;
                }
                "nflog-threshold" => value.threshold = one.parse(number)?,
                option => {
                    value.length = one.parse(number)?;
                    value.cut = option == "nflog-size";
                }
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        if !self.prefix.is_empty() {
            text.option(false, "nflog-prefix").string(&self.prefix);
        }
        if self.group != 0 {
            text.option(false, "nflog-group")
                .push(" ")
                .number(self.group);
        }
        if self.cut || self.length != 0 {
            let option = if self.cut {
                "nflog-size"
            } else {
                "nflog-range"
            };
            text.option(false, option).push(" ").number(self.length);
        }
        if self.threshold != 0 {
            text.option(false, "nflog-threshold")
                .push(" ")
                .number(self.threshold);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        if !self.prefix.is_empty() {
            text.push(" nflog-prefix");
            quoted(text, &self.prefix);
        }
        let rest = Self {
            prefix: Default::default(),
            ..self.clone()
        };
        text.bare(|text| rest.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Nflog {
            prefix: "in: ".into(),
            group: 7,
            length: 96,
            cut: true,
            threshold: 20,
        };
        let data = "60 00 00 00 07 00 14 00 01 00 00 00 69 6e 3a 20".to_owned() + &" 00".repeat(60);
        let printed =
            " --nflog-prefix \"in: \" --nflog-group 7 --nflog-size 96 --nflog-threshold 20";
        check(Family::Ipv4, &data, &value, printed);
        let mut info = value.write(Family::Ipv4).unwrap();
        info[8] = 2;
        assert_eq!(Nflog::read(Family::Ipv4, 0, &info), None);
        info[8] = 1;
        info[12..].fill(b'x');
        assert_eq!(Nflog::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn reports_errors() {
        let both = [("nflog-size", "5"), ("nflog-range", "5")];
        assert_eq!(
            refused::<Nflog>(Family::Ipv4, None, &both),
            "--nflog-range cannot be used with --nflog-size"
        );
        assert_eq!(
            refused::<Nflog>(Family::Ipv4, None, &[("nflog-group", "65536")]),
            "--nflog-group: `65536` is not a number from 0 to 65535"
        );
    }
}
