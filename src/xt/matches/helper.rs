//! `-m helper`: compares the conntrack helper that expected the packet's connection.
//!
//! Data of revision 0 (`struct xt_helper_info`, `linux/netfilter/xt_helper.h`).

use bstr::BString;
use chainwright_sys::xt_helper::xt_helper_info;

use crate::xt::pack;
use crate::xt::value::{line, string};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// Maximum length of a name, in bytes.
const MAX_LENGTH: usize = 29;

/// `-m helper`: compares the conntrack helper that expected the packet's connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Helper {
    /// The helper's name, at most 29 bytes; empty for any. For a port other than the default one,
    /// it ends in `-PORT`.
    pub name: BString,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Helper {
    const NAME: &'static str = "helper";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("helper").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_helper_info = read_struct(info)?;
        Some(Self {
            name: line(&info.name)?.to_owned(),
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_helper_info {
            invert: self.invert.into(),
            name: pack::text("helper", &self.name)?,
            __pad: [0; 2],
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let helper = GivenOption::find_required(given, "helper")?;
        Ok(Self {
            name: helper
                .parse(|value| string(value, 0..=MAX_LENGTH))?
                .to_owned(),
            invert: helper.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "helper").string(&self.name);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" helper match ")
            .push(if self.invert { "! " } else { "" });
        text.push("\"").push(&self.name).push("\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-m helper ! --helper ftp` by iptables-legacy 1.8.9 (from `strace -xx`).
        let mut info = [0; 40];
        info[..7].copy_from_slice(b"\x01\0\0\0ftp");
        let helper = Helper {
            name: "ftp".into(),
            invert: true,
        };
        assert_eq!(Helper::read(Family::Ipv4, 0, &info), Some(helper.clone()));
        assert_eq!(
            Match::Helper(helper.clone())
                .encode(Family::Ipv4)
                .unwrap()
                .info[..],
            info
        );
        assert_eq!(
            Match::Helper(helper).to_string(),
            "-m helper ! --helper ftp"
        );
        assert_eq!(Helper::read(Family::Ipv4, 0, &info[..35]), None);
        assert_eq!(Helper::read(Family::Ipv4, 1, &info), None);
        assert_eq!(Helper::read(Family::Ipv4, 0, &[b'x'; 40]), None);
    }

    #[test]
    fn a_name_is_not_cut_off() {
        let long = "-m helper --helper abcdefghijklmnopqrstuvwxyzabcd";
        let error = Rule::parse(Family::Ipv4, long).unwrap_err();
        assert_eq!(
            error.to_string(),
            "column 20: -m helper: --helper: it has 30 bytes; 0 to 29 are allowed"
        );
    }
}
