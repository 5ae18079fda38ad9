//! `-m limit`: matches packets up to a rate.
//!
//! Data of revision 0 (`struct xt_rateinfo`, `linux/netfilter/xt_limit.h`).

use chainwright_sys::xt_limit::{XT_LIMIT_SCALE, xt_rateinfo};
use zerocopy::FromZeros;

use crate::xt::value::number_within;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, rate,
    read_struct, write_struct,
};

/// `-m limit`: matches packets up to a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Time between two packets at the average rate, in ten-thousandths of a second; not 0.
    pub period: u32,
    /// Number of packets in a burst.
    pub burst: u32,
}

impl Limit {
    /// Returns the rate: a number of packets, and their period in seconds.
    #[must_use]
    pub fn rate(self) -> (u64, u32) {
        rate::of(self.period.into(), XT_LIMIT_SCALE)
    }

    /// Creates a limit of `packets` in `seconds`; `None` if `period` cannot represent it.
    #[must_use]
    pub fn with_rate(packets: u64, seconds: u64, burst: u32) -> Option<Self> {
        let period = u64::from(XT_LIMIT_SCALE)
            .checked_mul(seconds)?
            .checked_div(packets)?;
        let limit = Self {
            period: u32::try_from(period).ok().filter(|period| *period != 0)?,
            burst,
        };
        let (number, unit) = limit.rate();
        let same = number.checked_mul(seconds)? == packets.checked_mul(unit.into())?;
        same.then_some(limit)
    }
}

impl Default for Limit {
    /// Returns a limit of three packets per hour, with a burst of five.
    fn default() -> Self {
        Self {
            period: XT_LIMIT_SCALE * 60 * 60 / 3,
            burst: BURST,
        }
    }
}

/// The default burst, which is not printed.
const BURST: u32 = 5;

impl Extension for Limit {
    const NAME: &'static str = "limit";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] =
        &[OptionSpec::one("limit"), OptionSpec::one("limit-burst")];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_rateinfo = read_struct(info)?;
        // The text cannot express another time between packets.
        rate::rescale(info.avg.into(), XT_LIMIT_SCALE, XT_LIMIT_SCALE)?;
        Some(Self {
            period: info.avg,
            burst: info.burst,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_rateinfo::new_zeroed();
        info.avg = self.period;
        info.burst = self.burst;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut limit = Self::default();
        for one in given {
            if one.option == "limit" {
                let (period, _) = one.parse(|value| rate::parse(value, XT_LIMIT_SCALE))?;
                // Fits: a day has fewer ten-thousandths of a second than 2³².
                limit.period = u32::try_from(period).unwrap_or(u32::MAX);
            } else {
                limit.burst = one.parse(|value| number_within(value, 0..=10_000))?;
            }
        }
        Ok(limit)
    }

    fn print(&self, text: &mut Text) {
        text.push(" --limit");
        rate::print(self.period.into(), XT_LIMIT_SCALE, text);
        if self.burst != BURST {
            text.push(" --limit-burst ").number(self.burst);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" limit: avg");
        rate::print(self.period.into(), XT_LIMIT_SCALE, text);
        text.push(" burst ").number(self.burst);
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
        // `--limit 10/minute --limit-burst 7` by iptables-legacy 1.8.9.
        let mut info = vec![0; 40];
        info[..5].copy_from_slice(&[0x60, 0xea, 0, 0, 7]);
        let limit = Limit {
            period: 60_000,
            burst: 7,
        };
        assert_eq!(Limit::read(Family::Ipv4, 0, &info), Some(limit));
        assert_eq!(limit.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Limit(limit).to_string(),
            "-m limit --limit 10/min --limit-burst 7"
        );
        assert_eq!(Limit::read(Family::Ipv4, 0, &info[..39]), None);
        assert_eq!(Limit::read(Family::Ipv4, 1, &info), None);
        info[..2].fill(0); // no time between packets
        assert_eq!(Limit::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refusals() {
        let refused = |options| Rule::parse(Family::Ipv4, options).unwrap_err().message;
        assert_eq!(
            refused("-m limit --limit 5/fortnight"),
            "-m limit: --limit: `5/fortnight` is not a rate like 5/second, 10/minute, 3/hour or 100/day"
        );
        assert_eq!(
            refused("-m limit --limit-burst 10001"),
            "-m limit: --limit-burst: `10001` is not a number from 0 to 10000"
        );
        assert_eq!(
            refused("-m limit ! --limit 5"),
            "-m limit: --limit cannot be negated"
        );
    }
}
