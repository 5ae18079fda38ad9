//! `-m string`: searches for bytes in the packet.
//!
//! Data of revision 1, and of revision 0, which does not support `--icase` (`struct xt_string_info`,
//! `linux/netfilter/xt_string.h`).

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::xt_string::{
    XT_STRING_FLAG_IGNORECASE, XT_STRING_FLAG_INVERT, XT_STRING_MAX_ALGO_NAME_SIZE,
    XT_STRING_MAX_PATTERN_SIZE, xt_string_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::targets::quoted;
use crate::xt::value::{Parsed, field, number, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// Maximum length of an algorithm's name, in bytes.
const MAX_ALGORITHM_LENGTH: usize = XT_STRING_MAX_ALGO_NAME_SIZE - 1;

/// `-m string`: searches for bytes in the packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct String {
    /// The bytes: 1 to 128.
    pub pattern: BString,
    /// The search algorithm: `bm` (Boyer-Moore), `kmp` (Knuth-Morris-Pratt), or another one of the kernel;
    /// at most 15 bytes.
    pub algorithm: BString,
    /// Start of the search, in bytes from the start of the IP header.
    pub from: u16,
    /// End of the search, in bytes from the start of the IP header; not before `from`.
    pub to: u16,
    /// Whether to ignore case.
    pub ignore_case: bool,
    /// Whether the comparison is negated.
    pub invert: bool,
}

fn plain(value: &BStr) -> Parsed<BString> {
    let most = XT_STRING_MAX_PATTERN_SIZE;
    if value.is_empty() || value.len() > most {
        let length = value.len();
        return Err(format!("it has {length} bytes; 1 to {most} are allowed"));
    }
    Ok(value.to_owned())
}

/// Parses literal bytes, with blocks between `|` that contain pairs of hexadecimal digits, optionally
/// separated by spaces. Outside blocks, `\` escapes the next byte.
///
/// After a closing `|`, iptables takes the next byte literally, even a `|` or `\`. That is probably not
/// intended, so this refuses these two bytes there.
fn hexadecimal(value: &BStr) -> Parsed<BString> {
    let mut pattern = BString::default();
    let mut rest: &[u8] = value;
    while let [first, remaining @ ..] = rest {
        rest = remaining;
        match *first {
            b'\\' => {
                let [byte, remaining @ ..] = rest else {
                    return Err("the `\\` at the end must be followed by a byte".to_owned());
                };
                pattern.push(*byte);
                rest = remaining;
            }
            b'|' => {
                let Some((block, remaining)) = rest.split_once_str("|") else {
                    return Err("unclosed `|`".to_owned());
                };
                digits(block, &mut pattern)?;
                if matches!(remaining.first(), Some(b'|' | b'\\')) {
                    return Err("a closing `|` cannot be followed by `|` or `\\`".to_owned());
                }
                rest = remaining;
            }
            byte => pattern.push(byte),
        }
    }
    plain(pattern.as_bstr())
}

/// Appends the bytes of a block.
fn digits(block: &[u8], pattern: &mut BString) -> Parsed<()> {
    let wrong = || {
        format!(
            "`|{}|` is not pairs of hexadecimal digits with at most one space between them",
            block.as_bstr()
        )
    };
    let mut rest = block.trim_start_with(|c| c == ' ');
    if rest.is_empty() {
        return Err(wrong());
    }
    while let [high, low, remaining @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            return Err(wrong());
        };
        pattern.push((high << 4 | low) as u8);
        rest = remaining.strip_prefix(b" ").unwrap_or(remaining);
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(wrong())
    }
}

fn algorithm(value: &BStr) -> Parsed<BString> {
    if is_algorithm(value) {
        Ok(value.to_owned())
    } else {
        Err(format!("`{value}` is not an algorithm (bm or kmp)"))
    }
}

fn is_algorithm(name: &[u8]) -> bool {
    (1..=MAX_ALGORITHM_LENGTH).contains(&name.len())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

impl Extension for String {
    const NAME: &'static str = "string";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("from"),
        OptionSpec::one("to"),
        OptionSpec::one("algo").required(),
        OptionSpec::one("string").inverts(),
        OptionSpec::one("hex-string").inverts(),
        OptionSpec::switch("icase"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["string", "hex-string"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_string_info = read_struct(info)?;
        let flags = match revision {
            0 => u8::from(info.flags != 0) * XT_STRING_FLAG_INVERT,
            1 => info.flags,
            _ => return None,
        };
        let pattern = info.pattern.get(..usize::from(info.patlen))?;
        let algorithm = until_nul(&info.algo)?;
        let expressible = !pattern.is_empty()
            && is_algorithm(algorithm)
            && info.from_offset <= info.to_offset
            && flags & !(XT_STRING_FLAG_INVERT | XT_STRING_FLAG_IGNORECASE) == 0;
        expressible.then(|| Self {
            pattern: pattern.into(),
            algorithm: algorithm.to_owned(),
            from: info.from_offset,
            to: info.to_offset,
            ignore_case: flags & XT_STRING_FLAG_IGNORECASE != 0,
            invert: flags & XT_STRING_FLAG_INVERT != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_string_info::new_zeroed();
        info.from_offset = self.from;
        info.to_offset = self.to;
        info.algo = pack::text("algo", &self.algorithm)?;
        let pattern = pack::at_most("string", &self.pattern, info.pattern.len(), "bytes")?;
        info.pattern = field(pattern);
        info.patlen = pattern.len() as u8;
        if self.invert {
            info.flags |= XT_STRING_FLAG_INVERT;
        }
        if self.ignore_case {
            info.flags |= XT_STRING_FLAG_IGNORECASE;
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut string = Self {
            pattern: BString::default(),
            algorithm: BString::default(),
            from: 0,
            to: u16::MAX,
            ignore_case: false,
            invert: false,
        };
        for one in given {
            match one.option {
                "from" => string.from = one.parse(number)?,
                "to" => string.to = one.parse(number)?,
                "algo" => string.algorithm = one.parse(algorithm)?,
                "icase" => string.ignore_case = true,
                option => {
                    string.invert = one.invert;
                    string.pattern = match option {
                        "string" => one.parse(plain)?,
                        _ => one.parse(hexadecimal)?,
                    };
                }
            }
        }
        if string.from > string.to {
            return Err(OptionError::of(
                "to",
                "the search ends before it starts (--from)",
            ));
        }
        Ok(string)
    }

    fn print(&self, text: &mut Text) {
        let option = match self.is_printable() {
            true => "string",
            false => "hex-string",
        };
        self.print_pattern(text.option(self.invert, option));
        text.option(false, "algo").word(&self.algorithm);
        if self.from != 0 {
            text.option(false, "from").push(" ").number(self.from);
        }
        if self.to != u16::MAX {
            text.option(false, "to").push(" ").number(self.to);
        }
        text.switch(self.ignore_case, "icase");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" STRING match ")
            .push(if self.invert { "!" } else { "" });
        self.print_pattern(text);
        text.push(" ALGO name").word(&self.algorithm);
        if self.from != 0 {
            text.push(" FROM ").number(self.from);
        }
        if self.to != u16::MAX {
            text.push(" TO ").number(self.to);
        }
        text.push(if self.ignore_case { " ICASE" } else { "" });
    }
}

impl String {
    /// Returns `true` if the pattern can be printed in quotes without a block. A trailing `\` is printed in a block,
    /// although quotes would be enough.
    fn is_printable(&self) -> bool {
        let printable = |byte: &u8| (b' '..=b'~').contains(byte);
        self.pattern.iter().all(printable) && !self.pattern.ends_with(b"\\")
    }

    /// Appends the bytes in quotes.
    fn print_pattern(&self, text: &mut Text) {
        if self.is_printable() {
            quoted(text, &self.pattern);
            return;
        }
        text.push(" \"|");
        for byte in self.pattern.iter() {
            text.display(format_args!("{byte:02x}"));
        }
        text.push("|\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data from iptables-legacy 1.8.9 for `! --hex-string "ab|0d0a|" --algo bm --icase --from 10 --to 100`
    /// (from `strace -xx`).
    fn captured() -> [u8; 160] {
        let mut info = [0; 160];
        info[..6].copy_from_slice(b"\x0a\0\x64\0bm");
        info[20..24].copy_from_slice(b"ab\r\n");
        info[148..150].copy_from_slice(&[4, 3]);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let string = String {
            pattern: "ab\r\n".into(),
            algorithm: "bm".into(),
            from: 10,
            to: 100,
            ignore_case: true,
            invert: true,
        };
        let read = |revision, info: &[u8]| String::read(Family::Ipv4, revision, info);
        assert_eq!(read(1, &captured()), Some(string.clone()));
        // Revision 0 negates for any value other than 0.
        let old = String {
            ignore_case: false,
            ..string.clone()
        };
        assert_eq!(read(0, &captured()), Some(old));
        assert_eq!(string.write(Family::Ipv4).unwrap(), captured());
        assert_eq!(
            Match::String(string).to_string(),
            "-m string ! --hex-string \"|61620d0a|\" --algo bm --from 10 --to 100 --icase"
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        let read = |revision, info: &[u8]| String::read(Family::Ipv4, revision, info);
        assert_eq!(read(1, &captured()[..159]), None);
        assert_eq!(read(2, &captured()), None);
        for (at, byte) in [
            (148, 0),   // no bytes
            (148, 129), // too many bytes
            (149, 4),   // an unknown flag
            (0, 101),   // starts after its end
            (4, 0),     // no algorithm
            (4, b' '),  // not a valid name of an algorithm
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(1, &info), None, "{at}");
        }
        let mut info = captured();
        info[4..20].fill(b'x');
        assert_eq!(read(1, &info), None);
    }

    #[test]
    fn blocks_of_digits() {
        let read = |text: &str| hexadecimal(text.as_bytes().as_bstr());
        for (text, bytes) in [
            ("|41 42 43|", "ABC"),
            ("|414243|def|00|", "ABCdef\0"),
            ("|  41 |b", "Ab"),
            ("a\\|b\\\\", "a|b\\"),
        ] {
            assert_eq!(read(text), Ok(bytes.into()), "{text}");
        }
        for (text, reason) in [
            ("", "it has 0 bytes; 1 to 128 are allowed"),
            ("x\\", "the `\\` at the end must be followed by a byte"),
            ("|41", "unclosed `|`"),
            (
                "|41||42|",
                "a closing `|` cannot be followed by `|` or `\\`",
            ),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()), "{text}");
        }
        for text in ["||", "|4|", "|4g|", "|41  42|", "|+1|", &"x".repeat(129)] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "--algo bm",
                "column 4: -m string: --string or --hex-string is required",
            ),
            ("--string x", "column 4: -m string: --algo is required"),
            (
                "--algo bm --string x --hex-string y",
                "column 32: -m string: --hex-string cannot be used with --string",
            ),
            (
                "--algo bm --string x --from 9 --to 5",
                "column 41: -m string: --to: the search ends before it starts (--from)",
            ),
            (
                "--algo \"\" --string x",
                "column 18: -m string: --algo: `` is not an algorithm (bm or kmp)",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, format!("-m string {options}")).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
