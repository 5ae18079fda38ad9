//! `-m rateest`: compares the rate of an estimator.
//!
//! Data of revision 0 (`struct xt_rateest_match_info`, `linux/netfilter/xt_rateest.h`). The target
//! `RATEEST` creates estimators; they must exist before the rule.

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_rateest::{
    XT_RATEEST_MATCH_ABS, XT_RATEEST_MATCH_BPS, XT_RATEEST_MATCH_DELTA, XT_RATEEST_MATCH_EQ,
    XT_RATEEST_MATCH_GT, XT_RATEEST_MATCH_INVERT, XT_RATEEST_MATCH_LT, XT_RATEEST_MATCH_PPS,
    XT_RATEEST_MATCH_REL, xt_rateest_match_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, number};
use crate::xt::{
    Context, Extension, Family, GivenOption, Name, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// The name of an estimator: 1 to 15 bytes.
pub type RateestName = Name<15>;

/// `-m rateest`: compares the rate of an estimator with a number or with another estimator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rateest {
    /// The estimator.
    pub first: RateestName,
    /// The estimator to compare with; `None` to compare with a number.
    pub second: Option<RateestName>,
    /// The comparison operator.
    pub operator: RateestOperator,
    /// Whether the result is negated.
    pub invert: bool,
    /// Whether to compare how far each rate is below its number, instead of the rate itself: for
    /// both estimators, or for the first one against the second number.
    pub delta: bool,
    /// Compares bytes per second: the number of the first estimator, which is only used with
    /// `delta`, and the number of the second one, or the number to compare with.
    pub bytes: Option<[u32; 2]>,
    /// Compares packets per second, in the same form.
    pub packets: Option<[u32; 2]>,
}

/// Comparison operator for rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateestOperator {
    /// The first is less.
    Less,
    /// The first is greater.
    Greater,
    /// Both are equal.
    Equal,
}

const OPERATORS: [(&str, u16, RateestOperator); 3] = [
    ("rateest-lt", XT_RATEEST_MATCH_LT, RateestOperator::Less),
    ("rateest-gt", XT_RATEEST_MATCH_GT, RateestOperator::Greater),
    ("rateest-eq", XT_RATEEST_MATCH_EQ, RateestOperator::Equal),
];

/// Names of units in lower case, and their size in bits per second.
const UNITS: [(&str, f64); 18] = [
    ("bit", 1.0),
    ("kibit", 1024.0),
    ("kbit", 1e3),
    ("mibit", 1_048_576.0),
    ("mbit", 1e6),
    ("gibit", 1_073_741_824.0),
    ("gbit", 1e9),
    ("tibit", 1_099_511_627_776.0),
    ("tbit", 1e12),
    ("bps", 8.0),
    ("kibps", 8192.0),
    ("kbps", 8e3),
    ("mibps", 8_388_608.0),
    ("mbps", 8e6),
    ("gibps", 8_589_934_592.0),
    ("gbps", 8e9),
    ("tibps", 8_796_093_022_208.0),
    ("tbps", 8e12),
];

impl Extension for Rateest {
    const NAME: &'static str = "rateest";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("rateest1").required(),
        OptionSpec::one("rateest1").or("rateest"),
        OptionSpec::one("rateest2"),
        OptionSpec::optional("rateest-bps1"),
        OptionSpec::optional("rateest-pps1"),
        OptionSpec::optional("rateest-bps2"),
        OptionSpec::optional("rateest-pps2"),
        OptionSpec::optional("rateest-bps2").or("rateest-bps"),
        OptionSpec::optional("rateest-pps2").or("rateest-pps"),
        OptionSpec::switch("rateest-delta"),
        OptionSpec::switch("rateest-lt").inverts(),
        OptionSpec::switch("rateest-gt").inverts(),
        OptionSpec::switch("rateest-eq").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[
        OptionGroup::one_of(&["rateest-lt", "rateest-gt", "rateest-eq"]),
        OptionGroup::some_of(&[
            "rateest-bps1",
            "rateest-pps1",
            "rateest-bps2",
            "rateest-pps2",
        ]),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_rateest_match_info = read_struct(info)?;
        let has = |flag| info.flags & flag != 0;
        let known = XT_RATEEST_MATCH_INVERT
            | XT_RATEEST_MATCH_ABS
            | XT_RATEEST_MATCH_REL
            | XT_RATEEST_MATCH_DELTA
            | XT_RATEEST_MATCH_BPS
            | XT_RATEEST_MATCH_PPS;
        if info.flags & !known != 0 || has(XT_RATEEST_MATCH_ABS) == has(XT_RATEEST_MATCH_REL) {
            return None;
        }
        let (.., operator) = OPERATORS
            .into_iter()
            .find(|(_, mode, _)| *mode == info.mode)?;
        let delta = has(XT_RATEEST_MATCH_DELTA);
        let relative = has(XT_RATEEST_MATCH_REL);
        let numbers = |[first, second]: [u32; 2]| counting(delta, relative, [first, second]);
        let bytes = has(XT_RATEEST_MATCH_BPS).then(|| numbers([info.bps1, info.bps2]));
        let packets = has(XT_RATEEST_MATCH_PPS).then(|| numbers([info.pps1, info.pps2]));
        if bytes.is_none() && packets.is_none() {
            return None;
        }
        Some(Self {
            first: Name::from_field(&info.name1)?,
            second: if relative {
                Some(Name::from_field(&info.name2)?)
            } else {
                None
            },
            operator,
            invert: has(XT_RATEEST_MATCH_INVERT),
            delta,
            bytes,
            packets,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_rateest_match_info::new_zeroed();
        info.name1 = pack::text("rateest1", self.first.as_bytes())?;
        if let Some(second) = &self.second {
            info.name2 = pack::text("rateest2", second.as_bytes())?;
        }
        let operator = OPERATORS.into_iter().find(|(.., o)| *o == self.operator);
        info.mode = operator.map_or(0, |(_, mode, _)| mode);
        for (set, flag) in [
            (self.invert, XT_RATEEST_MATCH_INVERT),
            (self.second.is_none(), XT_RATEEST_MATCH_ABS),
            (self.second.is_some(), XT_RATEEST_MATCH_REL),
            (self.delta, XT_RATEEST_MATCH_DELTA),
            (self.bytes.is_some(), XT_RATEEST_MATCH_BPS),
            (self.packets.is_some(), XT_RATEEST_MATCH_PPS),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        [info.bps1, info.bps2] = self.bytes.unwrap_or_default();
        [info.pps1, info.pps2] = self.packets.unwrap_or_default();
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let first = GivenOption::find_required(given, "rateest1")?;
        let how = Self::GROUPS[0].find(given)?;
        let operator = match how.option {
            "rateest-lt" => RateestOperator::Less,
            "rateest-gt" => RateestOperator::Greater,
            _ => RateestOperator::Equal,
        };
        let second = find("rateest2").map(|name| name.parse(Name::parse));
        let second: Option<RateestName> = second.transpose()?;
        let delta = find("rateest-delta").is_some();
        let numbers = |first: Option<&GivenOption<'_>>,
                       other: Option<&GivenOption<'_>>,
                       read: fn(&BStr) -> Parsed<u32>| {
            let one = |given: Option<&GivenOption<'_>>| match given {
                Some(given) if given.first.is_some() => given.parse(read),
                _ => Ok(0),
            };
            if let (Some(first), None, None, false) = (first, other, &second, delta) {
                return Err(
                    first.error("without --rateest-delta, use --rateest-bps2 or --rateest-pps2")
                );
            }
            let both = [one(first)?, one(other)?];
            Ok((first.is_some() || other.is_some())
                .then(|| counting(delta, second.is_some(), both)))
        };
        let bytes = numbers(find("rateest-bps1"), find("rateest-bps2"), bits)?;
        let packets = numbers(find("rateest-pps1"), find("rateest-pps2"), number)?;
        Ok(Self {
            first: first.parse(Name::parse)?,
            second,
            operator,
            invert: how.invert,
            delta,
            bytes,
            packets,
        })
    }

    fn print(&self, text: &mut Text) {
        if self.delta {
            text.push(" --rateest-delta");
        }
        text.push(match self.second {
            None => " --rateest",
            Some(_) => " --rateest1",
        });
        text.name(&self.first);
        // The operator is printed once, after the first estimator's number of the first unit.
        let mut operator = OPERATORS.into_iter().find(|(.., o)| *o == self.operator);
        for (option, numbers, print) in [
            ("rateest-bps", self.bytes, print_bits as fn(u32, &mut Text)),
            ("rateest-pps", self.packets, print_packets),
        ] {
            let Some([first, second]) = numbers else {
                continue;
            };
            if self.delta {
                print(first, text.option(false, option).push("1"));
            }
            if let Some((operator, ..)) = operator.take() {
                text.option(self.invert, operator);
            }
            text.option(false, option);
            if self.delta {
                text.push("2");
            }
            if self.delta || self.second.is_none() {
                print(second, text);
            }
        }
        if let Some(second) = &self.second {
            text.push(" --rateest2").name(second);
        }
    }
}

/// Clears the numbers that are not used.
const fn counting(delta: bool, relative: bool, [first, second]: [u32; 2]) -> [u32; 2] {
    match (delta, relative) {
        (true, _) => [first, second],
        (false, false) => [0, second],
        (false, true) => [0, 0],
    }
}

/// Splits a value into a number, if it is one, and the following letters in lower case.
pub(in crate::xt) fn number_and_unit(value: &BStr) -> (Option<f64>, Vec<u8>) {
    let end = value.iter().position(u8::is_ascii_alphabetic);
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    let number = number.to_str().ok().and_then(|text| text.parse().ok());
    (number, unit.to_ascii_lowercase())
}

/// Parses a rate in bits or bytes per second; returns bytes.
fn bits(value: &BStr) -> Parsed<u32> {
    let (number, unit) = number_and_unit(value);
    let scale = if unit.is_empty() {
        Some(1.0)
    } else {
        let found = UNITS.iter().find(|(name, _)| name.as_bytes() == unit);
        found.map(|(_, scale)| *scale)
    };
    let wrong = || format!("`{value}` is not a rate like 100kbit, 2.5mbit or 10MBps");
    let bytes = number.ok_or_else(wrong)? * scale.ok_or_else(wrong)? / 8.0;
    if !(0.0..4_294_967_296.0).contains(&bytes) {
        return Err(format!("`{value}` is not a rate from 0 to 34359Mbit"));
    }
    // Fits; fractions of a byte are cut off.
    Ok(bytes as u32)
}

/// Appends bytes per second as bits, in the unit that iptables chooses if it is exact.
fn print_bits(bytes: u32, text: &mut Text) {
    let bits = u64::from(bytes) * 8;
    let exact = |unit: u64| bits.is_multiple_of(unit);
    let (number, unit) = if bits >= 1_000_000_000 && exact(1_000_000) {
        (bits / 1_000_000, "Mbit")
    } else if bits >= 1_000_000 && exact(1000) {
        (bits / 1000, "Kbit")
    } else {
        (bits, "bit")
    };
    text.push(" ").number(number).push(unit);
}

fn print_packets(packets: u32, text: &mut Text) {
    text.push(" ").number(packets);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `--rateest-delta --rateest1 in --rateest-bps1 1mbit ! --rateest-gt
    /// --rateest-bps2 2mbit --rateest2 out` from iptables-legacy 1.8.9.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 72];
        info[..2].copy_from_slice(b"in");
        info[16..19].copy_from_slice(b"out");
        (info[32], info[34]) = (0x1d, 3);
        info[36..40].copy_from_slice(&125_000_u32.to_ne_bytes());
        info[44..48].copy_from_slice(&250_000_u32.to_ne_bytes());
        info
    }

    #[test]
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    fn round_trips_data_of_iptables() {
        let rateest = Rateest::read(Family::Ipv4, 0, &captured()).unwrap();
        assert_eq!(rateest.write(Family::Ipv4).unwrap(), captured());
        assert_eq!(
            Match::Rateest(rateest).to_string(),
            "-m rateest --rateest-delta --rateest1 in --rateest-bps1 1000Kbit ! --rateest-gt \
             --rateest-bps2 2000Kbit --rateest2 out"
        );
        assert_eq!(Rateest::read(Family::Ipv4, 1, &captured()), None);
        assert_eq!(Rateest::read(Family::Ipv4, 0, &captured()[..71]), None);
        for (at, byte) in [
            (0, 0),
            (16, 0),
            (32, 0x1f),
            (32, 0x0d),
            (32, 0x5d),
            (34, 0),
            (34, 4),
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(
                Rateest::read(Family::Ipv4, 0, &info),
                None,
                "{byte} at {at}"
            );
        }
    }

    #[test]
    fn differs_from_wrong_output_of_iptables() {
        // 1.8.9 rounds to 1235Kbit, and it prints --rateest-gt twice, which it cannot parse.
        let text = "-m rateest --rateest x --rateest-gt --rateest-bps 1234560bit --rateest-pps 7";
        let rule = Rule::parse(Family::Ipv4, text).unwrap();
        assert_eq!(rule.to_string(), text);
        assert_eq!(bits(b"1.5MiBps".as_bstr()), Ok(1_572_864));
        assert_eq!(bits(b"1001".as_bstr()), Ok(125));
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            ("--rateest-gt --rateest-pps 5", "--rateest1 is required"),
            (
                "--rateest x --rateest-pps 5",
                "--rateest-lt, --rateest-gt or --rateest-eq is required",
            ),
            (
                "--rateest x --rateest-gt",
                "--rateest-bps1, --rateest-pps1, --rateest-bps2 or --rateest-pps2 is required",
            ),
            (
                "--rateest x --rateest-gt --rateest-eq --rateest-pps 5",
                "--rateest-eq cannot be used with --rateest-gt",
            ),
            (
                "--rateest x --rateest-gt --rateest-bps1 5",
                "--rateest-bps1: without --rateest-delta, use --rateest-bps2 or --rateest-pps2",
            ),
            (
                "--rateest x --rateest-gt --rateest-bps 5mb",
                "--rateest-bps2: `5mb` is not a rate like 100kbit, 2.5mbit or 10MBps",
            ),
            (
                "--rateest x --rateest-gt --rateest-bps 40gbit",
                "--rateest-bps2: `40gbit` is not a rate from 0 to 34359Mbit",
            ),
            (
                "--rateest 1234567890123456 --rateest-gt --rateest-bps 4",
                "--rateest1: it has 16 bytes; 1 to 15 are allowed",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m rateest {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m rateest: {reason}"));
        }
    }
}
