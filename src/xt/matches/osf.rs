//! `-m osf`: guesses the sender's operating system from the packet that opens a TCP connection.
//!
//! Data of revision 0 (`struct xt_osf_info`, `linux/netfilter/xt_osf.h`). The kernel receives the
//! fingerprints separately from the rule.

use bstr::{BStr, BString};
use chainwright_sys::nfnetlink_osf::{NF_OSF_GENRE, NF_OSF_INVERT, NF_OSF_LOG, NF_OSF_TTL};
use chainwright_sys::xt_osf::{
    XT_OSF_LOGLEVEL_ALL, XT_OSF_LOGLEVEL_ALL_KNOWN, XT_OSF_LOGLEVEL_FIRST, XT_OSF_TTL_LESS,
    XT_OSF_TTL_NOCHECK, XT_OSF_TTL_TRUE, xt_osf_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, line, number_within, string};
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// Maximum length of a genre, in bytes.
const MAX_LENGTH: usize = 31;

/// Comparison of the packet's time to live with the fingerprint's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OsfTtl {
    /// Both must be equal.
    Equal,
    /// The packet's value may be less.
    Less,
    /// No comparison.
    Ignore,
}

/// The log messages to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OsfLog {
    /// All matching fingerprints, and packets without a matching one.
    All,
    /// Only the first matching fingerprint.
    First,
    /// All matching fingerprints.
    Known,
}

/// `-m osf`: guesses the sender's operating system from the packet that opens a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Osf {
    /// Genre of the operating system, 1 to 31 bytes, or `unknown`.
    pub genre: BString,
    /// Comparison of the time to live; the default is [`OsfTtl::Equal`].
    pub ttl: Option<OsfTtl>,
    /// The log messages to write; none by default.
    pub log: Option<OsfLog>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

const TTLS: [(u32, OsfTtl); 3] = [
    (XT_OSF_TTL_TRUE, OsfTtl::Equal),
    (XT_OSF_TTL_LESS, OsfTtl::Less),
    (XT_OSF_TTL_NOCHECK, OsfTtl::Ignore),
];
const LOGS: [(u32, OsfLog); 3] = [
    (XT_OSF_LOGLEVEL_ALL, OsfLog::All),
    (XT_OSF_LOGLEVEL_FIRST, OsfLog::First),
    (XT_OSF_LOGLEVEL_ALL_KNOWN, OsfLog::Known),
];

fn meaning<T: Copy>(table: &[(u32, T)], number: u32) -> Option<T> {
    let found = table.iter().find(|(own, _)| *own == number);
    found.map(|(_, meaning)| *meaning)
}

fn number<T: PartialEq>(table: &[(u32, T)], meaning: &T) -> u32 {
    let found = table.iter().find(|(_, own)| own == meaning);
    found.map_or(0, |(number, _)| *number)
}

/// Looks up the value of a level from 0 to 2.
fn level<T: Copy>(value: &BStr, table: &[(u32, T)]) -> Parsed<T> {
    let number = number_within(value, 0..=2)?;
    meaning(table, number).ok_or_else(|| format!("`{value}` is not a number from 0 to 2"))
}

impl Extension for Osf {
    const NAME: &'static str = "osf";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("genre").inverts().required(),
        OptionSpec::one("ttl"),
        OptionSpec::one("log"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p tcp -m osf --genre \"a b\"",
        "-p tcp -m osf --genre a b",
        "iptables-save prints the name without quotes, so its output cannot be restored.",
    )];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_osf_info = read_struct(info)?;
        let has = |bit| info.flags & bit != 0;
        let genre = line(&info.genre).filter(|genre| !genre.is_empty())?;
        let known = NF_OSF_GENRE | NF_OSF_TTL | NF_OSF_LOG | NF_OSF_INVERT;
        if info.flags & !known != 0 || info.len as usize != genre.len() {
            return None;
        }
        let ttl = match has(NF_OSF_TTL) {
            true => Some(meaning(&TTLS, info.ttl)?),
            false => None,
        };
        let log = match has(NF_OSF_LOG) {
            true => Some(meaning(&LOGS, info.loglevel)?),
            false => None,
        };
        Some(Self {
            genre: genre.to_owned(),
            ttl,
            log,
            invert: has(NF_OSF_INVERT),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_osf_info::new_zeroed();
        info.genre = pack::text("genre", &self.genre)?;
        info.len = self.genre.len() as u32;
        if let Some(ttl) = &self.ttl {
            info.flags |= NF_OSF_TTL;
            info.ttl = number(&TTLS, ttl);
        }
        if let Some(log) = &self.log {
            info.flags |= NF_OSF_LOG;
            info.loglevel = number(&LOGS, log);
        }
        if self.invert {
            info.flags |= NF_OSF_INVERT;
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut osf = Self {
            genre: BString::default(),
            ttl: None,
            log: None,
            invert: false,
        };
        for one in given {
            match one.option {
                "ttl" => osf.ttl = Some(one.parse(|value| level(value, &TTLS))?),
                "log" => osf.log = Some(one.parse(|value| level(value, &LOGS))?),
                _ => {
                    osf.genre = one.parse(|value| string(value, 1..=MAX_LENGTH))?.to_owned();
                    osf.invert = one.invert;
                }
            }
        }
        if context.protocol_among(&[6]).is_none() {
            return Err(OptionError::of_all("osf needs -p tcp before it"));
        }
        Ok(osf)
    }

    fn print(&self, text: &mut Text) {
        // iptables-save prints a genre with spaces without quotes, so that it cannot be restored.
        text.option(self.invert, "genre").name(&self.genre);
        if let Some(ttl) = &self.ttl {
            text.option(false, "ttl")
                .push(" ")
                .number(number(&TTLS, ttl));
        }
        if let Some(log) = &self.log {
            text.option(false, "log")
                .push(" ")
                .number(number(&LOGS, log));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data from iptables-legacy 1.8.9 for `-p tcp -m osf ! --genre Linux --ttl 1 --log
    /// 2` (from `strace -xx`).
    fn captured() -> [u8; 48] {
        let mut info = [0; 48];
        info[..5].copy_from_slice(b"Linux");
        (info[32], info[36], info[40], info[44]) = (5, 0x0e, 2, 1);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let osf = Osf {
            genre: "Linux".into(),
            ttl: Some(OsfTtl::Less),
            log: Some(OsfLog::Known),
            invert: true,
        };
        assert_eq!(Osf::read(Family::Ipv4, 0, &captured()), Some(osf.clone()));
        assert_eq!(osf.write(Family::Ipv4).unwrap(), captured());
        assert_eq!(
            Match::Osf(osf).to_string(),
            "-m osf ! --genre Linux --ttl 1 --log 2"
        );
        assert_eq!(Osf::read(Family::Ipv4, 0, &captured()[..47]), None);
        assert_eq!(Osf::read(Family::Ipv4, 1, &captured()), None);
        for (at, byte) in [(0, 0), (32, 4), (36, 0x1e), (40, 3), (44, 3)] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(Osf::read(Family::Ipv4, 0, &info), None, "{at}");
        }
        assert_eq!(Osf::read(Family::Ipv4, 0, &[b'x'; 48]), None);
    }

    #[test]
    fn blanks_in_a_genre_are_printed_in_quotes() {
        let rule = Rule::parse(Family::Ipv4, "-p tcp -m osf --genre \"a b\"").unwrap();
        assert_eq!(rule.to_string(), "-p tcp -m osf --genre \"a b\"");
    }

    #[test]
    fn refusals() {
        for (family, options, message) in [
            (
                Family::Ipv4,
                "-m osf --genre Linux",
                "column 4: -m osf: osf needs -p tcp before it",
            ),
            (
                Family::Ipv4,
                "-p tcp -m osf --genre Linux --ttl 3",
                "column 35: -m osf: --ttl: `3` is not a number from 0 to 2",
            ),
            (
                Family::Ipv6,
                "-p tcp -m osf --genre Linux",
                "column 11: match `osf` not found",
            ),
        ] {
            let error = Rule::parse(family, options).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
