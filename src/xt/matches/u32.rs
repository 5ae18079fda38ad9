//! `-m u32`: compares 32-bit numbers in the packet.
//!
//! Data of revision 0 (`struct xt_u32`, `linux/netfilter/xt_u32.h`).

use std::ops::RangeInclusive;

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_u32::{
    XT_U32_AND, XT_U32_AT, XT_U32_LEFTSH, XT_U32_MAXSIZE, XT_U32_RIGHTSH, xt_u32,
    xt_u32_location_element, xt_u32_test,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, number};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m u32`: compares 32-bit numbers in the packet.
///
/// Matches if all tests are true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct U32 {
    /// The tests: 1 to 10.
    pub tests: Vec<U32Test>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// Tests whether a number from the packet is in one of several ranges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct U32Test {
    /// Offset of the first number from the IP header, in bytes; it is big-endian.
    pub start: u32,
    /// Operations on the number, in order: at most 9.
    pub steps: Vec<U32Step>,
    /// Accepted ranges of the result: 1 to 10. A reversed range contains no number.
    pub ranges: Vec<RangeInclusive<u32>>,
}

/// An operation on a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum U32Step {
    /// Bitwise AND with a mask.
    And(u32),
    /// Shift to the left by this many bits.
    Left(u32),
    /// Shift to the right by this many bits.
    Right(u32),
    /// Adds the number to the current offset, and reads a new number this many bytes after it.
    At(u32),
}

impl U32Step {
    const fn encoded(self) -> (u8, u32, &'static str) {
        match self {
            Self::And(number) => (XT_U32_AND, number, "&"),
            Self::Left(number) => (XT_U32_LEFTSH, number, "<<"),
            Self::Right(number) => (XT_U32_RIGHTSH, number, ">>"),
            Self::At(number) => (XT_U32_AT, number, "@"),
        }
    }

    const fn decoded(element: &xt_u32_location_element) -> Option<Self> {
        let number = element.number;
        Some(match element.nextop {
            XT_U32_AND => Self::And(number),
            XT_U32_LEFTSH => Self::Left(number),
            XT_U32_RIGHTSH => Self::Right(number),
            XT_U32_AT => Self::At(number),
            _ => return None,
        })
    }
}

/// Returns the first `count` elements of an array; iptables leaves the last element unused.
fn counted<T>(all: &[T], count: u8) -> Option<&[T]> {
    let count = usize::from(count);
    (1..=XT_U32_MAXSIZE)
        .contains(&count)
        .then(|| all.get(..count))?
}

fn read_test(test: &xt_u32_test) -> Option<U32Test> {
    let (start, steps) = counted(&test.location, test.nnums)?.split_first()?;
    let ranges = counted(&test.value, test.nvalues)?;
    Some(U32Test {
        start: start.number,
        steps: steps.iter().map(U32Step::decoded).collect::<Option<_>>()?,
        ranges: ranges.iter().map(|range| range.min..=range.max).collect(),
    })
}

/// Parser for the text of tests.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
    }

    /// Consumes the token if it comes next; returns whether it does.
    fn take(&mut self, what: &str) -> bool {
        self.skip_blanks();
        let next = self.text[self.at..].starts_with(what.as_bytes());
        if next {
            self.at += what.len();
        }
        next
    }

    fn wrong<T>(&self, reason: impl std::fmt::Display) -> Parsed<T> {
        Err(format!("{reason}, at byte {}", self.at + 1))
    }

    fn number(&mut self) -> Parsed<u32> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let length = rest
            .find_not_byteset(b"0123456789abcdefABCDEFxX")
            .unwrap_or(rest.len());
        match number(rest[..length].as_bstr()) {
            Ok(number) => {
                self.at += length;
                Ok(number)
            }
            Err(_) => self.wrong("expected a number from 0 to 4294967295"),
        }
    }

    fn tests(&mut self) -> Parsed<Vec<U32Test>> {
        let mut tests = Vec::new();
        loop {
            if tests.len() == XT_U32_MAXSIZE {
                return self.wrong("more than 10 tests");
            }
            tests.push(self.test()?);
            if self.take("&&") {
                continue;
            }
            self.skip_blanks();
            if self.at == self.text.len() {
                return Ok(tests);
            }
            return self.wrong("expected `,`, `&&` or the end");
        }
    }

    fn test(&mut self) -> Parsed<U32Test> {
        let mut test = U32Test {
            start: self.number()?,
            steps: Vec::new(),
            ranges: Vec::new(),
        };
        while !self.take("=") {
            let step = if self.take("&") {
                U32Step::And
            } else if self.take("<<") {
                U32Step::Left
            } else if self.take(">>") {
                U32Step::Right
            } else if self.take("@") {
                U32Step::At
            } else {
                return self.wrong("expected `=` or one of `&`, `<<`, `>>`, `@`");
            };
            if test.steps.len() + 1 == XT_U32_MAXSIZE {
                return self.wrong("more than 9 steps in a test");
            }
            test.steps.push(step(self.number()?));
        }
        loop {
            if test.ranges.len() == XT_U32_MAXSIZE {
                return self.wrong("more than 10 ranges in a test");
            }
            let first = self.number()?;
            let last = if self.take(":") {
                self.number()?
            } else {
                first
            };
            test.ranges.push(first..=last);
            if !self.take(",") {
                return Ok(test);
            }
        }
    }
}

fn tests(value: &BStr) -> Parsed<Vec<U32Test>> {
    let mut reader = Reader { text: value, at: 0 };
    reader.tests()
}

impl U32 {
    fn print_tests(&self, text: &mut Text) {
        let mut before = " \"";
        for test in &self.tests {
            text.push(before).hex(test.start);
            for step in &test.steps {
                let (_, number, operator) = step.encoded();
                text.push(operator).hex(number);
            }
            let mut before_range = "=";
            for range in &test.ranges {
                text.push(before_range).hex(*range.start());
                if range.start() != range.end() {
                    text.push(":").hex(*range.end());
                }
                before_range = ",";
            }
            before = "&&";
        }
        text.push("\"");
    }
}

impl Extension for U32 {
    const NAME: &'static str = "u32";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("u32").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_u32 = read_struct(info)?;
        let tests = counted(&info.tests, info.ntests)?;
        Some(Self {
            tests: tests.iter().map(read_test).collect::<Option<_>>()?,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_u32::new_zeroed();
        let list_description = "comparisons joined by &&";
        let tests = pack::at_most("u32", &self.tests, info.tests.len(), list_description)?;
        for (test, into) in tests.iter().zip(&mut info.tests) {
            into.location[0].number = test.start;
            into.nnums = 1;
            let steps = pack::at_most("u32", &test.steps, into.location.len() - 1, "steps")?;
            for (step, into_step) in steps.iter().zip(&mut into.location[1..]) {
                (into_step.nextop, into_step.number, _) = step.encoded();
                into.nnums += 1;
            }
            let ranges = pack::at_most("u32", &test.ranges, into.value.len(), "ranges")?;
            for (range, into_range) in ranges.iter().zip(&mut into.value) {
                (into_range.min, into_range.max) = (*range.start(), *range.end());
                into.nvalues += 1;
            }
            info.ntests += 1;
        }
        info.invert = self.invert.into();
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let u32 = GivenOption::find_required(given, "u32")?;
        Ok(Self {
            tests: u32.parse(tests)?,
            invert: u32.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "u32");
        self.print_tests(text);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.invert { " u32 !" } else { " u32" });
        self.print_tests(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data from iptables-legacy 1.8.9 for `! --u32 "6&0xFF=1,2:5"` (from `strace
    /// -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 1984];
        (info[0], info[8]) = (6, 0xff);
        (info[88], info[92], info[96], info[100]) = (1, 1, 2, 5);
        (info[176], info[177]) = (2, 2);
        (info[1980], info[1981]) = (1, 1);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let u32 = U32 {
            tests: vec![U32Test {
                start: 6,
                steps: vec![U32Step::And(0xff)],
                ranges: vec![1..=1, 2..=5],
            }],
            invert: true,
        };
        assert_eq!(U32::read(Family::Ipv4, 0, &captured()), Some(u32.clone()));
        let u32 = Match::U32(u32);
        assert_eq!(u32.encode(Family::Ipv4).unwrap().info[..], captured());
        assert_eq!(u32.to_string(), "-m u32 ! --u32 \"0x6&0xff=0x1,0x2:0x5\"");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        let read = |info: &[u8]| U32::read(Family::Ipv4, 0, info);
        assert_eq!(read(&captured()[..1981]), None);
        assert_eq!(U32::read(Family::Ipv4, 1, &captured()), None);
        for (at, byte) in [
            (12, 4),    // an unknown step
            (176, 0),   // no offset
            (176, 11),  // more steps than iptables writes
            (177, 0),   // no range
            (177, 255), // too many ranges
            (1980, 0),  // no test
            (1980, 12), // too many tests
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(&info), None, "{at}");
        }
    }

    #[test]
    fn text_of_tests() {
        let read = |text: &str| tests(text.as_bytes().as_bstr());
        assert_eq!(
            read(" 0 >> 22 & 0x3C @ 010<<1 = 5 : 3 , 7&&4=0 "),
            Ok(vec![
                U32Test {
                    start: 0,
                    steps: vec![
                        U32Step::Right(22),
                        U32Step::And(0x3c),
                        U32Step::At(8),
                        U32Step::Left(1),
                    ],
                    ranges: vec![RangeInclusive::new(5, 3), 7..=7],
                },
                U32Test {
                    start: 4,
                    steps: vec![],
                    ranges: vec![0..=0],
                },
            ])
        );
        let number = "expected a number from 0 to 4294967295";
        for (text, reason) in [
            ("", format!("{number}, at byte 1")),
            ("=5", format!("{number}, at byte 1")),
            ("5=", format!("{number}, at byte 3")),
            ("5=4,", format!("{number}, at byte 5")),
            ("5=4&&", format!("{number}, at byte 6")),
            ("5=-1", format!("{number}, at byte 3")),
            ("5=08", format!("{number}, at byte 3")),
            ("5=0x", format!("{number}, at byte 3")),
            ("5=0xfffffffff", format!("{number}, at byte 3")),
            (
                "5 6=1",
                "expected `=` or one of `&`, `<<`, `>>`, `@`, at byte 3".to_owned(),
            ),
            (
                "5=1 2",
                "expected `,`, `&&` or the end, at byte 5".to_owned(),
            ),
        ] {
            assert_eq!(read(text), Err(reason), "{text}");
        }
        let many = |what: &str, times| what.repeat(times);
        assert!(read(&format!("0{}=1", many("&1", 9))).is_ok());
        assert!(read(&format!("0{}=1", many("&1", 10))).is_err());
        assert!(read(&format!("0=1{}", many(",1", 9))).is_ok());
        assert!(read(&format!("0=1{}", many(",1", 10))).is_err());
        assert!(read(&format!("0=1{}", many("&&0=1", 9))).is_ok());
        assert!(read(&format!("0=1{}", many("&&0=1", 10))).is_err());
        let error = Rule::parse(Family::Ipv4, "-m u32 --u32 5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "column 14: -m u32: --u32: expected `=` or one of `&`, `<<`, `>>`, `@`, at byte 2"
        );
    }
}
