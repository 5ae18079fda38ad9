//! `-m statistic`: matches a share of packets, randomly or every nth.
//!
//! Data of revision 0 (`struct xt_statistic_info`, `linux/netfilter/xt_statistic.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_statistic::{
    XT_STATISTIC_INVERT, XT_STATISTIC_MODE_NTH, XT_STATISTIC_MODE_RANDOM, xt_statistic_info,
};
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, number, number_within, one_of};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m statistic`: matches a share of packets, randomly or every nth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Statistic {
    /// The selection of packets.
    pub mode: StatisticMode,
    /// Whether the packets that are not selected match.
    pub invert: bool,
}

/// The selection of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatisticMode {
    /// Randomly.
    Random {
        /// The probability in units of 2⁻³¹: 0 is never, 2³¹ and more is always.
        probability: u32,
    },
    /// Every nth packet.
    Nth {
        /// The interval; at least 1.
        every: u32,
        /// Index of the packet in the interval, from 0: less than `every`.
        packet: u32,
    },
}

/// A probability of 1.
const CERTAIN: u32 = 1 << 31;

impl Extension for Statistic {
    const NAME: &'static str = "statistic";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("mode").required(),
        OptionSpec::one("probability")
            .inverts()
            .excludes(&["every", "packet"]),
        OptionSpec::one("every").inverts().needs(&["packet"]),
        OptionSpec::one("packet").needs(&["every"]),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-m statistic --mode random --probability 0x.8p0",
        "-m statistic --mode random --probability 0.50000000000",
        "A probability in hexadecimal digits is most likely a mistake.",
    )];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_statistic_info = read_struct(info)?;
        let [first, packet, _] = info.u;
        if info.flags & !XT_STATISTIC_INVERT != 0 {
            return None;
        }
        let mode = match info.mode {
            XT_STATISTIC_MODE_RANDOM => StatisticMode::Random {
                probability: first.min(CERTAIN),
            },
            XT_STATISTIC_MODE_NTH if packet <= first => StatisticMode::Nth {
                every: first.checked_add(1)?,
                packet,
            },
            _ => return None,
        };
        Some(Self {
            mode,
            invert: info.flags != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_statistic_info::new_zeroed();
        info.flags = if self.invert { XT_STATISTIC_INVERT } else { 0 };
        // The kernel does not use the third number; iptables writes this.
        (info.mode, info.u) = match self.mode {
            StatisticMode::Random { probability } => {
                (XT_STATISTIC_MODE_RANDOM, [probability, 0, probability])
            }
            StatisticMode::Nth { every, packet } => {
                let last = every.saturating_sub(1);
                let count = last.saturating_sub(packet);
                (XT_STATISTIC_MODE_NTH, [last, packet, count])
            }
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let mode = GivenOption::find_required(given, "mode")?;
        let nth = mode.parse(|v| one_of(v, &[("random", false), ("nth", true)]))?;
        let (probability, every, packet) = (find("probability"), find("every"), find("packet"));
        match (nth, probability, every, packet) {
            (false, Some(probability), None, None) => Ok(Self {
                mode: StatisticMode::Random {
                    probability: probability.parse(fraction)?,
                },
                invert: probability.invert,
            }),
            (true, None, Some(every), Some(packet)) => {
                let (invert, every) = (
                    every.invert,
                    every.parse(|v| number_within(v, 1..=u32::MAX))?,
                );
                let which = packet.parse(number::<u32>)?;
                if which >= every {
                    return Err(packet.error(format!(
                        "packets are counted from 0: the last of {every} is {}",
                        every.saturating_sub(1)
                    )));
                }
                Ok(Self {
                    mode: StatisticMode::Nth {
                        every,
                        packet: which,
                    },
                    invert,
                })
            }
            // The table of options excludes the options of the other mode.
            (false, ..) => Err(mode.error("random needs --probability")),
            (true, ..) => Err(mode.error("nth needs --every and --packet")),
        }
    }

    fn print(&self, text: &mut Text) {
        match self.mode {
            StatisticMode::Random { probability } => {
                text.option(false, "mode").word("random");
                text.option(self.invert, "probability");
                print_fraction(probability, text);
            }
            StatisticMode::Nth { every, packet } => {
                text.option(false, "mode").word("nth");
                text.option(self.invert, "every").push(" ").number(every);
                text.option(false, "packet").push(" ").number(packet);
            }
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.word("statistic").bare(|text| self.print(text));
    }
}

/// Parses a number from 0 to 1; returns units of 2⁻³¹.
fn fraction(value: &BStr) -> Parsed<u32> {
    let read = value
        .to_str()
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    let read = read.filter(|number| (0.0..=1.0).contains(number));
    // Fits: at most 2³¹.
    read.map(|number| (number * f64::from(CERTAIN)).round() as u32)
        .ok_or_else(|| format!("`{value}` is not a number from 0 to 1"))
}

/// Appends a number in units of 2⁻³¹ like C's `%.11f`: exactly, with halves rounded to even.
fn print_fraction(number: u32, text: &mut Text) {
    // 10¹¹ / 2³¹ = 5¹¹ / 2²⁰, and 2³² × 5¹¹ is less than 2⁶⁴.
    let scaled = u64::from(number) * 5_u64.pow(11);
    let (digits, rest) = (scaled >> 20, scaled & 0xf_ffff);
    let up = rest > 0x8_0000 || (rest == 0x8_0000 && digits % 2 == 1);
    let digits = digits + u64::from(up);
    let one = 10_u64.pow(11);
    text.push(" ").number(digits / one).push(".");
    let (mut left, mut decimals) = (digits % one, [b'0'; 11]);
    for place in decimals.iter_mut().rev() {
        *place += (left % 10) as u8;
        left /= 10;
    }
    text.push(decimals);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `--mode random ! --probability 0.33333333349` by iptables-legacy 1.8.9.
        let mut info = vec![0; 24];
        info[2] = 1;
        info[4..8].copy_from_slice(&[0xab, 0xaa, 0xaa, 0x2a]);
        info[12..16].copy_from_slice(&[0xab, 0xaa, 0xaa, 0x2a]);
        let third = Statistic {
            mode: StatisticMode::Random {
                probability: 0x2aaa_aaab,
            },
            invert: true,
        };
        assert_eq!(Statistic::read(Family::Ipv4, 0, &info), Some(third));
        assert_eq!(third.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Statistic(third).to_string(),
            "-m statistic --mode random ! --probability 0.33333333349"
        );
        assert_eq!(Statistic::read(Family::Ipv4, 0, &info[..23]), None);
        assert_eq!(Statistic::read(Family::Ipv4, 1, &info), None);
        let with = |at: usize, byte: u8| {
            let mut info = info.clone();
            info[at] = byte;
            Statistic::read(Family::Ipv4, 0, &info)
        };
        assert_eq!(with(0, 2), None); // mode
        assert_eq!(with(2, 3), None); // flag
        let certain = with(7, 0xff).unwrap();
        assert_eq!(
            certain.mode,
            StatisticMode::Random {
                probability: 1 << 31
            }
        );
        // Every nth packet: the index must be in the interval, and 2³² packets are too many.
        info[0] = 1;
        assert!(Statistic::read(Family::Ipv4, 0, &info).is_some());
        info[11] = 0x2b;
        assert_eq!(Statistic::read(Family::Ipv4, 0, &info), None);
        info[4..8].fill(0xff);
        assert_eq!(Statistic::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn fractions_are_printed_like_c() {
        // From C's printf("%.11f"): halves go to the even digit.
        for (number, printed) in [
            (0, " 0.00000000000"),
            (1, " 0.00000000047"),
            (1 << 19, " 0.00024414062"),
            (3 << 19, " 0.00073242188"),
            (715_827_883, " 0.33333333349"),
            (CERTAIN - 1, " 0.99999999953"),
            (CERTAIN, " 1.00000000000"),
        ] {
            let mut text = Text::new();
            print_fraction(number, &mut text);
            assert_eq!(text.as_bytes().as_bstr(), printed);
            assert_eq!(fraction(printed.as_bytes()[1..].as_bstr()), Ok(number));
        }
        assert_eq!(fraction(b"1e-3".as_bstr()), Ok(2_147_484));
        for wrong in ["", "1.0001", "-0.1", "nan", "inf", "1/3", "50%"] {
            assert!(fraction(wrong.as_bytes().as_bstr()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            ("--probability 0.5", "--mode is required"),
            ("--mode random", "--mode: random needs --probability"),
            (
                "--mode some --probability 1",
                "--mode: `some` is not one of random, nth",
            ),
            ("--mode nth --packet 0", "--packet needs --every"),
            ("--mode nth --every 3", "--every needs --packet"),
            (
                "--mode nth --every 0 --packet 0",
                "--every: `0` is not a number from 1 to 4294967295",
            ),
            (
                "--mode nth --every 3 --packet 3",
                "--packet: packets are counted from 0: the last of 3 is 2",
            ),
            (
                "--mode random --probability 1 --packet 1",
                "--probability cannot be used with --packet",
            ),
            (
                "--mode random --probability 2",
                "--probability: `2` is not a number from 0 to 1",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m statistic {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m statistic: {reason}"));
        }
    }
}
