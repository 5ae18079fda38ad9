//! `-m nfacct`: adds the packet to a named counter, and matches every packet.
//!
//! Data of revisions 0 and 1 (`struct xt_nfacct_match_info` and `_v1`,
//! `linux/netfilter/xt_nfacct.h`): the name, then a kernel pointer. The counter must exist before
//! the rule (`NFNL_MSG_ACCT_NEW`). If it has a quota, only packets beyond the quota match.

use bstr::BString;
use chainwright_sys::nfnetlink_acct::NFACCT_NAME_MAX;
use chainwright_sys::xt_nfacct::{xt_nfacct_match_info, xt_nfacct_match_info_v1};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{line, string};
use crate::xt::{
    Context, Extension, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// Maximum length of a name, in bytes.
const MAX_LENGTH: usize = NFACCT_NAME_MAX - 1;

/// `-m nfacct`: adds the packet to a named counter, and matches every packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Nfacct {
    /// The counter's name, 1 to 31 bytes.
    pub name: BString,
}

impl Extension for Nfacct {
    const NAME: &'static str = "nfacct";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("nfacct-name").required()];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let name = match revision {
            0 => read_struct::<xt_nfacct_match_info>(info)?.name,
            1 => read_struct::<xt_nfacct_match_info_v1>(info)?.name,
            _ => return None,
        };
        let name = line(&name).filter(|name| !name.is_empty())?.to_owned();
        Some(Self { name })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_nfacct_match_info_v1::new_zeroed();
        info.name = pack::text("nfacct-name", &self.name)?;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let name = GivenOption::find_required(given, "nfacct-name")?;
        let name = name
            .parse(|value| string(value, 1..=MAX_LENGTH))?
            .to_owned();
        Ok(Self { name })
    }

    fn print(&self, text: &mut Text) {
        // iptables-save prints two spaces here.
        text.option(false, "nfacct-name")
            .push(" ")
            .string(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m nfacct --nfacct-name web-1` by iptables-legacy 1.8.9 (from `strace -xx`).
        let mut info = [0; 40];
        info[..5].copy_from_slice(b"web-1");
        let nfacct = Nfacct {
            name: "web-1".into(),
        };
        assert_eq!(Nfacct::read(Family::Ipv4, 0, &info), Some(nfacct.clone()));
        assert_eq!(Nfacct::read(Family::Ipv4, 1, &info), Some(nfacct.clone()));
        assert_eq!(
            Match::Nfacct(nfacct.clone())
                .encode(Family::Ipv4)
                .unwrap()
                .info[..],
            info
        );
        assert_eq!(
            Match::Nfacct(nfacct).to_string(),
            "-m nfacct --nfacct-name  web-1"
        );
        assert_eq!(Nfacct::read(Family::Ipv4, 1, &info[..32]), None);
        assert_eq!(Nfacct::read(Family::Ipv4, 2, &info), None);
        assert_eq!(Nfacct::read(Family::Ipv4, 1, &[0; 40]), None);
        assert_eq!(Nfacct::read(Family::Ipv4, 1, &[b'x'; 40]), None);
    }

    #[test]
    fn a_name_is_not_cut_off() {
        let long = format!("-m nfacct --nfacct-name {}", "x".repeat(32));
        let error = Rule::parse(Family::Ipv4, long).unwrap_err();
        assert_eq!(
            error.to_string(),
            "column 25: -m nfacct: --nfacct-name: it has 32 bytes; 1 to 31 are allowed"
        );
    }
}
