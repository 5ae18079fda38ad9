//! `-m time`: compares the arrival time of the packet.
//!
//! Data of revision 0 (`struct xt_time_info`, `linux/netfilter/xt_time.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_time::{
    XT_TIME_ALL_MONTHDAYS, XT_TIME_ALL_WEEKDAYS, XT_TIME_CONTIGUOUS, XT_TIME_LOCAL_TZ,
    XT_TIME_MAX_DAYTIME, XT_TIME_MIN_DAYTIME, xt_time_info,
};
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, number_within};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m time`: compares the arrival time of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// Start, in seconds since 1970.
    pub date_start: u32,
    /// End (inclusive), in seconds since 1970.
    pub date_stop: u32,
    /// First second of the day, from 0 to 86399.
    pub daytime_start: u32,
    /// Last second of the day, from 0 to 86399. If it is before the first, it is on the next
    /// day.
    pub daytime_stop: u32,
    /// Days of the month: bit 1 for the first day, up to bit 31.
    pub monthdays: u32,
    /// Days of the week: bit 1 for Monday, up to bit 7 for Sunday.
    pub weekdays: u8,
    /// Whether times are in the kernel's time zone instead of UTC.
    pub kernel_time_zone: bool,
    /// Whether a time range across midnight belongs to the day on which it starts.
    pub contiguous: bool,
}

impl Default for Time {
    /// Matches any time until January 2038.
    fn default() -> Self {
        Self {
            date_start: 0,
            date_stop: i32::MAX as u32,
            daytime_start: XT_TIME_MIN_DAYTIME,
            daytime_stop: XT_TIME_MAX_DAYTIME,
            monthdays: XT_TIME_ALL_MONTHDAYS,
            weekdays: XT_TIME_ALL_WEEKDAYS,
            kernel_time_zone: false,
            contiguous: false,
        }
    }
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const DAY: u32 = 24 * 60 * 60;

impl Extension for Time {
    const NAME: &'static str = "time";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("datestart"),
        OptionSpec::one("datestop"),
        OptionSpec::one("timestart"),
        OptionSpec::one("timestop"),
        OptionSpec::switch("contiguous"),
        OptionSpec::one("weekdays").inverts(),
        OptionSpec::one("monthdays").inverts(),
        OptionSpec::switch("localtz"),
        OptionSpec::switch("utc").excludes(&["localtz", "kerneltz"]),
        OptionSpec::switch("kerneltz"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m time ! --weekdays 1,2,3,4,5,6,7",
        "-m time --weekdays  --datestop 2038-01-19T03:14:07",
        "iptables-save prints no days, so iptables reads the next option as a day.",
    )
    .printed("-m time --weekdays \"\" --datestop 2038-01-19T03:14:07")];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_time_info = read_struct(info)?;
        let known = info.flags & !(XT_TIME_LOCAL_TZ | XT_TIME_CONTIGUOUS) == 0
            && info.monthdays_match & !XT_TIME_ALL_MONTHDAYS == 0
            && info.weekdays_match & !XT_TIME_ALL_WEEKDAYS == 0
            && info.daytime_start.max(info.daytime_stop) <= XT_TIME_MAX_DAYTIME;
        known.then_some(Self {
            date_start: info.date_start,
            date_stop: info.date_stop,
            daytime_start: info.daytime_start,
            daytime_stop: info.daytime_stop,
            monthdays: info.monthdays_match,
            weekdays: info.weekdays_match,
            kernel_time_zone: info.flags & XT_TIME_LOCAL_TZ != 0,
            contiguous: info.flags & XT_TIME_CONTIGUOUS != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_time_info::new_zeroed();
        (info.date_start, info.date_stop) = (self.date_start, self.date_stop);
        (info.daytime_start, info.daytime_stop) = (self.daytime_start, self.daytime_stop);
        (info.monthdays_match, info.weekdays_match) = (self.monthdays, self.weekdays);
        for (set, flag) in [
            (self.kernel_time_zone, XT_TIME_LOCAL_TZ),
            (self.contiguous, XT_TIME_CONTIGUOUS),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut time = Self::default();
        for one in given {
            match one.option {
                "datestart" => time.date_start = one.parse(date)?,
                "datestop" => time.date_stop = one.parse(date)?,
                "timestart" => time.daytime_start = one.parse(daytime)?,
                "timestop" => time.daytime_stop = one.parse(daytime)?,
                "contiguous" => time.contiguous = true,
                "weekdays" => {
                    let days = one.parse(|value| days(value, weekday))?;
                    let days = days as u8;
                    time.weekdays = if one.invert {
                        days ^ XT_TIME_ALL_WEEKDAYS
                    } else {
                        days
                    };
                }
                "monthdays" => {
                    let days = one.parse(|value| days(value, |v| number_within(v, 1..=31)))?;
                    time.monthdays = if one.invert {
                        days ^ XT_TIME_ALL_MONTHDAYS
                    } else {
                        days
                    };
                }
                "localtz" | "kerneltz" => time.kernel_time_zone = true,
                _ => {}
            }
        }
        if time.contiguous && time.daytime_start < time.daytime_stop {
            return Err(OptionError::of(
                "contiguous",
                "it requires a --timestop that is before the --timestart",
            ));
        }
        Ok(time)
    }

    fn print(&self, text: &mut Text) {
        if (self.daytime_start, self.daytime_stop) != (XT_TIME_MIN_DAYTIME, XT_TIME_MAX_DAYTIME) {
            text.push(" --timestart ");
            print_daytime(self.daytime_start, text);
            text.push(" --timestop ");
            print_daytime(self.daytime_stop, text);
        }
        if self.monthdays != XT_TIME_ALL_MONTHDAYS {
            text.push(" --monthdays ");
            print_days(self.monthdays, text, |day, text| {
                text.number(day);
            });
        }
        if self.weekdays != XT_TIME_ALL_WEEKDAYS {
            text.push(" --weekdays ");
            print_days(self.weekdays.into(), text, print_weekday);
        }
        if self.date_start != 0 {
            print_date(self.date_start, "T", text.push(" --datestart "));
        }
        // iptables always prints it.
        print_date(self.date_stop, "T", text.push(" --datestop "));
        if self.kernel_time_zone {
            text.push(" --kerneltz");
        }
        if self.contiguous {
            text.push(" --contiguous");
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" TIME");
        if (self.daytime_start, self.daytime_stop) != (XT_TIME_MIN_DAYTIME, XT_TIME_MAX_DAYTIME) {
            print_daytime(self.daytime_start, text.push(" from "));
            print_daytime(self.daytime_stop, text.push(" to "));
        }
        if self.weekdays != XT_TIME_ALL_WEEKDAYS {
            print_days(self.weekdays.into(), text.push(" on "), print_weekday);
        }
        if self.monthdays != XT_TIME_ALL_MONTHDAYS {
            print_days(self.monthdays, text.push(" on "), |day, text| {
                // Also for the eleventh to thirteenth.
                let ordinal = match day % 10 {
                    1 => "st",
                    2 => "nd",
                    3 => "rd",
                    _ => "th",
                };
                text.number(day).push(ordinal);
            });
        }
        if self.date_start != 0 {
            print_date(self.date_start, " ", text.push(" starting from "));
        }
        if self.date_stop != i32::MAX as u32 {
            print_date(self.date_stop, " ", text.push(" until date "));
        }
        if !self.kernel_time_zone {
            text.push(" UTC");
        }
        if self.contiguous {
            text.push(" contiguous");
        }
    }
}

/// Parses a decimal number of at most four digits within these bounds.
fn decimal(text: &[u8], least: u32, most: u32) -> Option<u32> {
    let digits = (1..=4).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let number = text.to_str().ok().and_then(|text| text.parse().ok());
    number.filter(|number| digits && (least..=most).contains(number))
}

/// Parses `hh:mm` or `hh:mm:ss`; returns seconds.
fn daytime(value: &BStr) -> Parsed<u32> {
    clock(value, 2).ok_or_else(|| format!("`{value}` is not a time of day from 00:00 to 23:59:59"))
}

/// Parses hours, minutes and seconds, of which at least `least` must be present.
fn clock(text: &[u8], least: usize) -> Option<u32> {
    let mut parts = text.split_str(":");
    let (mut seconds, mut count) = (0, 0);
    for (most, unit) in [(23, 3600), (59, 60), (59, 1)] {
        if let Some(part) = parts.next() {
            seconds += decimal(part, 0, most)? * unit;
            count += 1;
        }
    }
    (parts.next().is_none() && count >= least).then_some(seconds)
}

/// Returns the number of days of a month, in a leap year or another year.
const fn month_length(leap: bool, month: u32) -> u32 {
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Parses a time from 1970 to 2038; returns seconds since 1970.
fn date(value: &BStr) -> Parsed<u32> {
    let read = || {
        let (day, time): (&[u8], _) = match value.split_once_str("T") {
            None => (value, None),
            Some((day, time)) => (day, Some(time)),
        };
        let mut parts = day.split_str("-");
        let year = decimal(parts.next()?, 1970, 2038)?;
        let (month, day) = (parts.next(), parts.next());
        // A time of day requires a date before it.
        if parts.next().is_some() || (time.is_some() && day.is_none()) {
            return None;
        }
        let month = month.map_or(Some(1), |month| decimal(month, 1, 12))?;
        let last = month_length(is_leap(year), month);
        let day = day.map_or(Some(1), |day| decimal(day, 1, last))?;
        let years: u32 = (1970..year)
            .map(|year| 365 + u32::from(is_leap(year)))
            .sum();
        let months: u32 = (1..month)
            .map(|month| month_length(is_leap(year), month))
            .sum();
        let seconds = time.map_or(Some(0), |time| clock(time, 1))?;
        Some((years + months + day - 1) * DAY + seconds)
    };
    read().ok_or_else(|| {
        format!("`{value}` is not a date from 1970 to 2038: YYYY[-MM[-DD[Thh[:mm[:ss]]]]]")
    })
}

/// Parses days separated by commas into bits.
fn days(value: &BStr, day: impl Fn(&BStr) -> Parsed<u32>) -> Parsed<u32> {
    let mut words = value.split_str(",").filter(|word| !word.is_empty());
    words.try_fold(0, |all, word| Ok(all | 1 << day(word.as_bstr())?))
}

/// Parses a day of the week as a number, or a name whose first two letters are significant.
fn weekday(value: &BStr) -> Parsed<u32> {
    let start = value.get(..2).unwrap_or_default();
    let named = (1..).zip(WEEKDAYS);
    let mut named = named.filter(|(_, name)| name.as_bytes().starts_with(start));
    match named.next() {
        Some((number, _)) if !start.is_empty() => Ok(number),
        _ => number_within(value, 1..=7).map_err(|_| {
            format!("`{value}` is not a day of the week: Mon, Tue, … or 1 (Monday) to 7")
        }),
    }
}

fn two(number: u32, text: &mut Text) {
    if number < 10 {
        text.push("0");
    }
    text.number(number);
}

fn print_daytime(seconds: u32, text: &mut Text) {
    two(seconds / 3600, text);
    two(seconds / 60 % 60, text.push(":"));
    two(seconds % 60, text.push(":"));
}

/// Appends date and time, separated by `between`.
fn print_date(moment: u32, between: &str, text: &mut Text) {
    let (mut days, mut year, mut month) = (moment / DAY, 1970, 1);
    // At most 136 iterations for years and 12 for months.
    while days >= 365 + u32::from(is_leap(year)) {
        days -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    while days >= month_length(is_leap(year), month) {
        days -= month_length(is_leap(year), month);
        month += 1;
    }
    text.number(year);
    two(month, text.push("-"));
    two(days + 1, text.push("-"));
    print_daytime(moment % DAY, text.push(between));
}

fn print_weekday(day: u32, text: &mut Text) {
    let name = (day as usize)
        .checked_sub(1)
        .and_then(|day| WEEKDAYS.get(day));
    text.push(name.unwrap_or(&""));
}

fn print_days(days: u32, text: &mut Text, print: impl Fn(u32, &mut Text)) {
    if days == 0 {
        // iptables prints nothing here, so that it would parse the next option as the days.
        text.push("\"\"");
    }
    let mut separator = "";
    for day in (1..32_u32).filter(|day| days & 1 << day != 0) {
        print(day, text.push(separator));
        separator = ",";
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
        // `--timestart 22:00 --timestop 6:00 --contiguous --weekdays Sat,Sun --monthdays 1,31
        // --datestart 2024-02-29T12:34:56 --kerneltz` by iptables-legacy 1.8.9.
        let info = [
            0xf0, 0x79, 0xe0, 0x65, 0xff, 0xff, 0xff, 0x7f, 0x60, 0x35, 0x01, 0x00, 0x60, 0x54,
            0x00, 0x00, 0x02, 0x00, 0x00, 0x80, 0xc0, 0x03, 0x00, 0x00,
        ];
        let time = Time::read(Family::Ipv4, 0, &info).unwrap();
        assert_eq!(time.write(Family::Ipv4).unwrap(), info);
        let text = "-m time --timestart 22:00:00 --timestop 06:00:00 --monthdays 1,31 \
            --weekdays Sat,Sun --datestart 2024-02-29T12:34:56 --datestop 2038-01-19T03:14:07 \
            --kerneltz --contiguous";
        assert_eq!(Match::Time(time).to_string(), text);
        assert_eq!(
            Rule::parse(Family::Ipv4, text).unwrap().matches,
            [Match::Time(time)]
        );
        assert_eq!(Time::read(Family::Ipv4, 0, &info[..23]), None);
        assert_eq!(Time::read(Family::Ipv4, 1, &info), None);
        for (at, byte) in [(21, 4), (20, 1), (16, 1), (10, 2), (14, 2)] {
            let mut info = info;
            info[at] = byte;
            assert_eq!(Time::read(Family::Ipv4, 0, &info), None, "{byte} at {at}");
        }
    }

    #[test]
    fn dates_are_read_and_printed() {
        // From `date -u -d @…`.
        for (moment, printed) in [
            (1, "1970-01-01T00:00:01"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_868_800, "2000-03-01T00:00:00"),
            (2_147_483_648, "2038-01-19T03:14:08"),
            (2_177_452_799, "2038-12-31T23:59:59"),
        ] {
            let mut text = Text::new();
            print_date(moment, "T", &mut text);
            assert_eq!(text.as_bytes().as_bstr(), printed);
            assert_eq!(date(printed.as_bytes().as_bstr()), Ok(moment));
        }
        let mut text = Text::new();
        print_date(u32::MAX, "T", &mut text);
        assert_eq!(text.as_bytes().as_bstr(), "2106-02-07T06:28:15");
        assert_eq!(date(b"1971".as_bstr()), Ok(365 * DAY));
        assert_eq!(date(b"1970-02-01T7".as_bstr()), Ok(31 * DAY + 7 * 3600));
        for wrong in [
            "",
            "1969",
            "2039",
            "2024-",
            "2024-00",
            "2024-13",
            "2023-02-29",
            "2024-1-1T",
            "2024T1",
            "2024-1-1T24",
            "2024-1-1-1",
            "+2024",
        ] {
            assert!(date(wrong.as_bytes().as_bstr()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn differs_from_wrong_output_of_iptables() {
        // 1.8.9 prints no days and no --datestop here, which results in another rule or an
        // invalid one.
        let text = "-m time --monthdays \"\" --weekdays \"\" --datestop 1970-01-01T00:00:00";
        let rule = Rule::parse(Family::Ipv4, text).unwrap();
        assert_eq!(rule.to_string(), text);
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            (
                "--timestart 24:00",
                "--timestart: `24:00` is not a time of day from 00:00 to 23:59:59",
            ),
            (
                "--timestart 10",
                "--timestart: `10` is not a time of day from 00:00 to 23:59:59",
            ),
            (
                "--weekdays 0",
                "--weekdays: `0` is not a day of the week: Mon, Tue, … or 1 (Monday) to 7",
            ),
            (
                "--weekdays M",
                "--weekdays: `M` is not a day of the week: Mon, Tue, … or 1 (Monday) to 7",
            ),
            (
                "--monthdays 32",
                "--monthdays: `32` is not a number from 1 to 31",
            ),
            ("--utc --kerneltz", "--utc cannot be used with --kerneltz"),
            (
                "--contiguous",
                "--contiguous: it requires a --timestop that is before the --timestart",
            ),
            (
                "--datestart 2024-02-30",
                "--datestart: `2024-02-30` is not a date from 1970 to 2038: YYYY[-MM[-DD[Thh[:mm[:ss]]]]]",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m time {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m time: {reason}"));
        }
    }
}
