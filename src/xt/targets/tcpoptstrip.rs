//! `-j TCPOPTSTRIP`: overwrites options of the TCP header with padding.
//!
//! Data of revision 0 (`struct xt_tcpoptstrip_target_info`, `linux/netfilter/xt_TCPOPTSTRIP.h`): a
//! bit for each option.

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_tcpoptstrip_target::xt_tcpoptstrip_target_info;

use crate::xt::value::{Parsed, number_within};
use crate::xt::{
    Context, Extension, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `IPPROTO_TCP`
const TCP: u8 = 6;

/// Names of options.
const NAMES: [(&str, u8); 6] = [
    ("wscale", 3),
    ("mss", 2),
    ("sack-permitted", 4),
    ("sack", 5),
    ("timestamp", 8),
    ("md5", 19),
];

/// `-j TCPOPTSTRIP`: overwrites options of the TCP header with padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Tcpoptstrip {
    /// The options as a bit field in host byte order: option `n`, 2 to 255, is bit `n % 32` of
    /// word `n / 32`.
    pub options: [u32; 8],
}

impl Tcpoptstrip {
    /// Returns the options' numbers, in ascending order.
    pub fn kinds(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|kind| self.word(*kind) & bit(*kind) != 0)
    }

    fn word(&self, kind: u8) -> u32 {
        self.options[usize::from(kind / 32)]
    }
}

const fn bit(kind: u8) -> u32 {
    1 << (kind % 32)
}

impl Extension for Tcpoptstrip {
    const NAME: &'static str = "TCPOPTSTRIP";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("strip-options")];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_tcpoptstrip_target_info = read_struct(info)?;
        // Options 0 and 1 are the padding.
        (revision == Self::REVISION && info.strip_bmap[0] & 3 == 0).then_some(Self {
            options: info.strip_bmap,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tcpoptstrip_target_info {
            strip_bmap: self.options,
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if context.protocol_among(&[TCP]).is_none() {
            return Err(OptionError::of_all(
                "only TCP has such options: the rule needs -p tcp",
            ));
        }
        match given {
            [options] => options.parse(kinds),
            _ => Ok(Self::default()),
        }
    }

    fn print(&self, text: &mut Text) {
        let mut separator = " --strip-options ";
        for kind in self.kinds() {
            text.push(separator).number(kind);
            separator = ",";
        }
    }
}

/// Parses numbers and names separated by commas.
fn kinds(value: &BStr) -> Parsed<Tcpoptstrip> {
    let mut all = Tcpoptstrip::default();
    for one in value.split_str(",") {
        let named = NAMES.iter().find(|(name, _)| one == name.as_bytes());
        let kind = match named {
            Some((_, kind)) => *kind,
            None => number_within(one.as_bstr(), 2..=u8::MAX).map_err(|wrong| {
                let names = NAMES.map(|(name, _)| name).join(", ");
                format!("{wrong}, nor one of {names}")
            })?,
        };
        if all.word(kind) & bit(kind) != 0 {
            return Err(format!("duplicate `{}`", one.as_bstr()));
        }
        all.options[usize::from(kind / 32)] |= bit(kind);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `--strip-options mss,md5,255` by iptables-legacy 1.8.9 (`strace -xx`).
        let mut info = [0; 32];
        (info[0], info[2], info[31]) = (4, 8, 0x80);
        let value = Target::read(Family::Ipv4, "TCPOPTSTRIP", 0, &info);
        assert_eq!(value.to_string(), "-j TCPOPTSTRIP --strip-options 2,19,255");
        assert_eq!(value.encode(Family::Ipv4).unwrap().info, &info[..]);
        assert_eq!(Tcpoptstrip::read(Family::Ipv4, 0, &info[..31]), None);
        assert_eq!(Tcpoptstrip::read(Family::Ipv4, 1, &info), None);
        info[0] = 2;
        assert_eq!(Tcpoptstrip::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refuses() {
        for (rule, message) in [
            ("-j TCPOPTSTRIP --strip-options 2", "the rule needs -p tcp"),
            (
                "-p tcp -j TCPOPTSTRIP --strip-options 1",
                "`1` is not a number from 2 to 255, nor one of wscale, mss, ",
            ),
            (
                "-p tcp -j TCPOPTSTRIP --strip-options 2,",
                "`` is not a number",
            ),
            (
                "-p tcp -j TCPOPTSTRIP --strip-options 2,mss",
                "duplicate `mss`",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
