//! `-j RATEEST`: measures the rate of packets.
//!
//! Data of revision 0 (`struct xt_rateest_target_info`, `linux/netfilter/xt_RATEEST.h`).

use bstr::BStr;
use chainwright_sys::xt_rateest_target::xt_rateest_target_info;
use zerocopy::FromZeros;

use crate::xt::matches::rateest::{RateestName, number_and_unit};
use crate::xt::pack;
use crate::xt::value::Parsed;
use crate::xt::{
    Context, Extension, Family, GivenOption, Name, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j RATEEST`: measures the rate of packets.
///
/// An estimator, whose rate the match `rateest` compares.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rateest {
    /// Its name; rules with the same name share it.
    pub name: RateestName,
    /// Time between two measurements: 2^`interval` seconds, from −2 to 3.
    pub interval: i8,
    /// Smoothing of the average: a measurement has the weight 1 / 2^`ewma_log`, from 1 to 30.
    pub ewma_log: u8,
}

/// A quarter of a second in microseconds.
const QUARTER: u64 = 250_000;

impl Extension for Rateest {
    const NAME: &'static str = "RATEEST";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("rateest-name").required(),
        OptionSpec::one("rateest-interval").required(),
        OptionSpec::one("rateest-ewmalog").required(),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_rateest_target_info = read_struct(info)?;
        let known = (-2..=3).contains(&info.interval) && (1..=30).contains(&info.ewma_log);
        let name = Name::from_field(&info.name)?;
        known.then_some(Self {
            name,
            interval: info.interval,
            ewma_log: info.ewma_log,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_rateest_target_info::new_zeroed();
        info.name = pack::text("rateest-name", self.name.as_bytes())?;
        info.interval = self.interval;
        info.ewma_log = self.ewma_log;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find_required = |option| GivenOption::find_required(given, option);
        let (name, interval, average) = (
            find_required("rateest-name")?,
            find_required("rateest-interval")?,
            find_required("rateest-ewmalog")?,
        );
        let every = interval.parse(microseconds)?;
        let steps = (0..=5_i8).find(|power| every <= QUARTER << power);
        let Some(steps) = steps else {
            return Err(interval.error("it is more than 8s"));
        };
        let constant = average.parse(microseconds)? as f64;
        // The greatest exponent for which the average follows within the time, by iptables'
        // formula.
        let follows = |power: &u8| {
            let weight = 1.0 - 1.0 / f64::from(1_u32 << power);
            every as f64 / -weight.ln() <= constant
        };
        let powers = (1..=31_u8).take_while(follows).last().unwrap_or(0);
        if !(1..=30).contains(&powers) {
            let (value, interval) = (average.value(), interval.value());
            return Err(average.error(format!(
                "`{value}` is not a usable time for an average over {interval}"
            )));
        }
        Ok(Self {
            name: name.parse(Name::parse)?,
            interval: steps - 2,
            ewma_log: powers,
        })
    }

    fn print(&self, text: &mut Text) {
        let quarters = 1_u64 << self.interval.clamp(-2, 3).saturating_add(2);
        text.push(" --rateest-name").name(&self.name);
        text.push(" --rateest-interval ");
        print_time(quarters, text);
        text.push(" --rateest-ewmalog ");
        print_time(quarters << self.ewma_log.min(30), text);
    }
}

/// Parses a time; microseconds without a unit.
fn microseconds(value: &BStr) -> Parsed<u64> {
    let (number, unit) = number_and_unit(value);
    let scale = match &unit[..] {
        b"s" | b"sec" | b"secs" => Some(1_000_000.0),
        b"ms" | b"msec" | b"msecs" => Some(1000.0),
        b"" | b"us" | b"usec" | b"usecs" => Some(1.0),
        _ => None,
    };
    let time = number.zip(scale).map(|(number, scale)| number * scale);
    let time = time.filter(|time| (0.0..1e16).contains(time));
    // Fractions of a microsecond are cut off.
    time.map(|time| time as u64)
        .ok_or_else(|| format!("`{value}` is not a time like 250ms, 0.5s or 8s"))
}

/// Appends a time in quarters of a second, which must be a power of two.
fn print_time(quarters: u64, text: &mut Text) {
    if quarters >= 4 {
        text.number(quarters / 4).push(".0s");
    } else {
        text.number(quarters * 250).push(".0ms");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        // `--rateest-name eth0 --rateest-interval 250ms --rateest-ewmalog 2s` by iptables-legacy
        // 1.8.9.
        let mut info = vec![0; 32];
        info[..4].copy_from_slice(b"eth0");
        (info[16], info[17]) = (0xfe, 3);
        let rateest = Rateest {
            name: Name::new("eth0").unwrap(),
            interval: -2,
            ewma_log: 3,
        };
        assert_eq!(Rateest::read(Family::Ipv4, 0, &info), Some(rateest.clone()));
        assert_eq!(rateest.write(Family::Ipv4).unwrap(), info);
        let text =
            "-j RATEEST --rateest-name eth0 --rateest-interval 250.0ms --rateest-ewmalog 2.0s";
        assert_eq!(Target::Rateest(rateest).to_string(), text);
        assert_eq!(Rule::parse(Family::Ipv4, text).unwrap().to_string(), text);
        assert_eq!(Rateest::read(Family::Ipv4, 0, &info[..31]), None);
        assert_eq!(Rateest::read(Family::Ipv4, 1, &info), None);
        for (at, byte) in [(0, 0), (16, 4), (16, 0xfd), (17, 0), (17, 31)] {
            let mut info = info.clone();
            info[at] = byte;
            assert_eq!(
                Rateest::read(Family::Ipv4, 0, &info),
                None,
                "{byte} at {at}"
            );
        }
    }

    #[test]
    fn refusals() {
        for (times, reason) in [
            (
                "--rateest-interval 9s --rateest-ewmalog 16s",
                "--rateest-interval: it is more than 8s",
            ),
            (
                "--rateest-interval 1h --rateest-ewmalog 16s",
                "--rateest-interval: `1h` is not a time like 250ms, 0.5s or 8s",
            ),
            (
                "--rateest-interval 1s --rateest-ewmalog 100ms",
                "--rateest-ewmalog: `100ms` is not a usable time for an average over 1s",
            ),
            (
                "--rateest-interval 0 --rateest-ewmalog 1s",
                "--rateest-ewmalog: `1s` is not a usable time for an average over 0",
            ),
            ("--rateest-interval 1s", "--rateest-ewmalog is required"),
        ] {
            let line = format!("-j RATEEST --rateest-name x {times}");
            let fault = Rule::parse(Family::Ipv4, line).unwrap_err();
            assert_eq!(fault.message, format!("-j RATEEST: {reason}"));
        }
    }
}
