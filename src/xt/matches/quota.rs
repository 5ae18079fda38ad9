//! `-m quota`: matches packets until a number of bytes is used up.
//!
//! Data of revision 0 (`struct xt_quota_info`, `linux/netfilter/xt_quota.h`). The kernel counts in
//! private memory: the data contains the initial quota, not the remaining one.

use chainwright_sys::xt_quota::{XT_QUOTA_INVERT, xt_quota_info};
use zerocopy::FromZeros;

use crate::xt::value::number;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m quota`: matches packets until a number of bytes is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    /// The quota in bytes.
    pub bytes: u64,
    /// Whether packets match only after the quota is used up.
    pub invert: bool,
}

impl Extension for Quota {
    const NAME: &'static str = "quota";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("quota").inverts().required()];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_quota_info = read_struct(info)?;
        (info.flags & !XT_QUOTA_INVERT == 0).then_some(Self {
            bytes: info.quota,
            invert: info.flags != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_quota_info::new_zeroed();
        info.flags = if self.invert { XT_QUOTA_INVERT } else { 0 };
        info.quota = self.bytes;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let quota = GivenOption::find_required(given, "quota")?;
        Ok(Self {
            bytes: quota.parse(number)?,
            invert: quota.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "quota")
            .push(" ")
            .number(self.bytes);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        if self.invert {
            // iptables 1.8.9 prints it as if it were not negated.
            text.word(Self::NAME);
            return self.print(text);
        }
        text.push(" quota: ").number(self.bytes).push(" bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        // `! --quota 65536` by iptables-legacy 1.8.9.
        let mut info = vec![0; 24];
        (info[0], info[10]) = (1, 1);
        let quota = Quota {
            bytes: 65536,
            invert: true,
        };
        assert_eq!(Quota::read(Family::Ipv4, 0, &info), Some(quota));
        assert_eq!(quota.write(Family::Ipv4).unwrap(), info);
        assert_eq!(Match::Quota(quota).to_string(), "-m quota ! --quota 65536");
        assert_eq!(Quota::read(Family::Ipv4, 0, &info[..23]), None);
        assert_eq!(Quota::read(Family::Ipv4, 1, &info), None);
        info[0] = 2;
        assert_eq!(Quota::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refusals() {
        let refused = |options| Rule::parse(Family::Ipv4, options).unwrap_err().message;
        assert_eq!(refused("-m quota"), "-m quota: --quota is required");
        assert_eq!(
            refused("-m quota --quota 5k"),
            "-m quota: --quota: `5k` is not a number from 0 to 18446744073709551615"
        );
    }
}
