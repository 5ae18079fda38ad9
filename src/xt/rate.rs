//! Packet rates of `limit` and `hashlimit`, stored as the time between two packets.

use bstr::{BStr, ByteSlice};

use super::Text;
use super::value::Parsed;

/// Printed name, full name and length in seconds of each unit, longest first.
const UNITS: [(&str, &str, u32); 4] = [
    ("day", "day", 24 * 60 * 60),
    ("hour", "hour", 60 * 60),
    ("min", "minute", 60),
    ("sec", "second", 1),
];

/// Parses `n`, `n/second`, `n/minute`, `n/hour` or `n/day`, where the unit may be abbreviated.
/// Returns the time between two packets in units of 1/`scale` seconds, and the rate's unit in
/// seconds.
pub(super) fn parse(value: &BStr, scale: u32) -> Parsed<(u64, u32)> {
    let (number, unit) = match value.split_once_str("/") {
        None => (value.as_bytes(), "second".as_bytes()),
        Some(parts) => parts,
    };
    let lower = unit.to_ascii_lowercase();
    let starts = |whole: &str| !lower.is_empty() && whole.as_bytes().starts_with(&lower);
    let seconds = UNITS.iter().find(|(_, whole, _)| starts(whole));
    let decimal = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let number = number
        .to_str()
        .ok()
        .and_then(|text| text.parse::<u32>().ok());
    match (number.filter(|number| decimal && *number > 0), seconds) {
        (Some(number), Some((.., seconds))) => {
            let period = u64::from(scale) * u64::from(*seconds) / u64::from(number);
            if period == 0 {
                return Err(format!(
                    "`{value}` is too fast: at most {scale} packets per second are supported"
                ));
            }
            Ok((period, *seconds))
        }
        _ => Err(format!(
            "`{value}` is not a rate like 5/second, 10/minute, 3/hour or 100/day"
        )),
    }
}

/// Converts a time between packets to a rate: the number, the index of the unit, and whether the
/// rate is exact.
fn to_rate(period: u64, scale: u32) -> (u64, usize, bool) {
    let whole = |unit: usize| {
        let seconds = UNITS.get(unit).map_or(1, |(.., seconds)| *seconds);
        u64::from(scale) * u64::from(seconds)
    };
    let quotient = |unit| whole(unit).checked_div(period).unwrap_or_default();
    // Like iptables: the longest unit, unless a shorter one has a smaller remainder.
    let mut chosen = 0;
    for unit in 1..UNITS.len() {
        let rest = whole(unit).checked_rem(period).unwrap_or_default();
        if period > whole(unit) || quotient(unit) < rest {
            break;
        }
        chosen = unit;
    }
    // Unlike iptables: a longer unit, if the chosen one would be parsed as another rate.
    let exact = |unit: &usize| whole(*unit).checked_div(quotient(*unit)) == Some(period);
    match (0..=chosen).rev().find(exact) {
        Some(unit) => (quotient(unit), unit, true),
        None => (quotient(chosen), chosen, false),
    }
}

/// Converts a time between packets to a rate: a number, and its unit in seconds. If no rate is
/// exact, the result is approximate.
pub(super) fn of(period: u64, scale: u32) -> (u64, u32) {
    let (number, unit, _) = to_rate(period, scale);
    (number, UNITS.get(unit).map_or(1, |(.., seconds)| *seconds))
}

/// Appends the rate for a time between packets after a space. Returns its unit in seconds. If no
/// rate is exact, the output is approximate.
pub(super) fn print(period: u64, scale: u32, text: &mut Text) -> u32 {
    let (number, unit, _) = to_rate(period, scale);
    let (name, _, seconds) = UNITS.get(unit).copied().unwrap_or(("sec", "second", 1));
    text.push(" ").number(number).push("/").push(name);
    seconds
}

/// Converts a time between packets to another scale, if a rate represents it exactly, as is the case
/// for all times that iptables writes.
pub(super) fn rescale(period: u64, scale: u32, new: u32) -> Option<u64> {
    let (number, unit, exact) = to_rate(period, scale);
    let (.., seconds) = UNITS.get(unit)?;
    let period = (u64::from(new) * u64::from(*seconds)).checked_div(number)?;
    exact.then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_rates_are_read_back() {
        let read = |text: &str| parse(text.as_bytes().as_bstr(), 10_000);
        assert_eq!(read("3/HO"), Ok((12_000_000, 3600)));
        assert_eq!(read("010"), Ok((1000, 1)));
        assert_eq!(read("600000/min"), Ok((1, 60)));
        for wrong in [
            "",
            "/s",
            "5/",
            "5/x",
            "5/seconds",
            "0",
            "-5",
            "5x/s",
            "0x5",
            "4294967297",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            read("10001/s").unwrap_err(),
            "`10001/s` is too fast: at most 10000 packets per second are supported"
        );
        // 1.8.9 prints the first as 16/sec, which it parses as another rate.
        for (written, printed) in [("961/min", " 961/min"), ("60/min", " 1/sec")] {
            let mut text = Text::new();
            print(read(written).unwrap().0, 10_000, &mut text);
            assert_eq!(text.as_bytes().as_bstr(), printed);
        }
        assert_eq!(rescale(85_714, 10_000, 1_000_000), Some(8_571_428)); // 7/min
        for invalid in [0, 16_449_542, 24 * 60 * 60 * 10_000 + 1, u64::MAX] {
            assert_eq!(rescale(invalid, 10_000, 10_000), None);
        }
        for scale in [10_000, 1_000_000] {
            for unit in ["sec", "min", "hour", "day"] {
                for number in (1..=2000).chain([3333, 9999, 10_000]) {
                    let written = format!("{number}/{unit}");
                    let (period, _) = parse(written.as_bytes().as_bstr(), scale).unwrap();
                    let mut text = Text::new();
                    let seconds = print(period, scale, &mut text);
                    let (again, unit) = parse(text.as_bytes()[1..].as_bstr(), scale).unwrap();
                    assert_eq!((again, unit), (period, seconds), "{written}");
                    assert_eq!(rescale(period, scale, scale), Some(period));
                }
            }
        }
    }
}
