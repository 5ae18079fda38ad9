//! `-j LOG`: writes the packet's headers to the kernel's log.
//!
//! Data of revision 0 (`struct xt_log_info`, `linux/netfilter/xt_LOG.h`): level, flags, prefix.

use bstr::{BStr, BString};
use chainwright_sys::xt_log_target::{
    XT_LOG_IPOPT, XT_LOG_MACDECODE, XT_LOG_TCPOPT, XT_LOG_TCPSEQ, XT_LOG_UID, xt_log_info,
};

use crate::xt::pack;
use crate::xt::value::{Parsed, number_within, one_of, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

bitflags::bitflags! {
    /// Additional output, as bits of `logflags`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct LogFlags: u8 {
        /// TCP sequence numbers.
        const TCP_SEQUENCE = XT_LOG_TCPSEQ;
        /// TCP options.
        const TCP_OPTIONS = XT_LOG_TCPOPT;
        /// IP options, or IPv6 extension headers.
        const IP_OPTIONS = XT_LOG_IPOPT;
        /// User id of the socket that sends the packet.
        const UID = XT_LOG_UID;
        /// The link layer header, decoded.
        const MACDECODE = XT_LOG_MACDECODE;
    }
}

/// `-j LOG`: writes the packet's headers to the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Log {
    /// Prefix of the line, at most 29 bytes.
    pub prefix: BString,
    /// Syslog level: 0 (emergency) to 7 (debug).
    pub level: u8,
    /// Additional output.
    pub flags: LogFlags,
}

/// Syslog level `warning`.
const DEFAULT_LEVEL: u8 = 4;

impl Default for Log {
    /// Returns a target without a prefix, with the level `warning`.
    fn default() -> Self {
        Self {
            prefix: BString::default(),
            level: DEFAULT_LEVEL,
            flags: LogFlags::empty(),
        }
    }
}

/// The names that iptables accepts.
const LEVELS: &[(&str, u8)] = &[
    ("emerg", 0),
    ("panic", 0),
    ("alert", 1),
    ("crit", 2),
    ("error", 3),
    ("warning", 4),
    ("notice", 5),
    ("info", 6),
    ("debug", 7),
];

/// In the order of iptables-save.
const FLAGS: [(LogFlags, &str); 5] = [
    (LogFlags::TCP_SEQUENCE, "log-tcp-sequence"),
    (LogFlags::TCP_OPTIONS, "log-tcp-options"),
    (LogFlags::IP_OPTIONS, "log-ip-options"),
    (LogFlags::UID, "log-uid"),
    (LogFlags::MACDECODE, "log-macdecode"),
];

/// Size of the prefix's field; the prefix itself is at least one byte shorter.
const PREFIX_SIZE: usize = 30;

/// Parses a prefix for a field of that size.
pub(super) fn prefix(
    context: &Context<'_>,
    one: &GivenOption<'_>,
    prefix_size: usize,
) -> Result<BString, OptionError> {
    let text = context.truncate_value(one, prefix_size - 1)?;
    if text.is_empty() || text.contains(&0) {
        return Err(one.error("it is empty or contains a NUL"));
    }
    if text.contains(&b'\n') {
        return Err(one.error("a prefix cannot contain line breaks"));
    }
    Ok(text.to_owned())
}

/// Reads the prefix in a kernel field; `None` if it is not terminated or contains a newline.
pub(super) fn read_prefix(field: &[u8]) -> Option<BString> {
    let prefix = until_nul(field)?;
    (!prefix.contains(&b'\n')).then(|| prefix.to_owned())
}

impl Extension for Log {
    const NAME: &'static str = "LOG";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("log-level"),
        OptionSpec::one("log-prefix"),
        OptionSpec::switch("log-tcp-sequence"),
        OptionSpec::switch("log-tcp-options"),
        OptionSpec::switch("log-ip-options"),
        OptionSpec::switch("log-uid"),
        OptionSpec::switch("log-macdecode"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_log_info = read_struct(info)?;
        Some(Self {
            prefix: read_prefix(&info.prefix)?,
            level: Some(info.level).filter(|level| *level <= 7)?,
            flags: LogFlags::from_bits(info.logflags)?,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_log_info {
            level: self.level,
            logflags: pack::flags("log-flags", self.flags)?,
            prefix: pack::text("log-prefix", &self.prefix)?,
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self::default();
        for one in given {
            match one.option {
                "log-level" => value.level = one.parse(level)?,
                "log-prefix" => value.prefix = prefix(context, one, PREFIX_SIZE)?,
                option => {
                    let flag = FLAGS.iter().find(|(_, name)| *name == option);
                    value.flags |= flag.map_or(LogFlags::empty(), |(flag, _)| *flag);
                }
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        if !self.prefix.is_empty() {
            text.option(false, "log-prefix").string(&self.prefix);
        }
        if self.level != DEFAULT_LEVEL {
            text.option(false, "log-level").push(" ").number(self.level);
        }
        text.flags(self.flags, &FLAGS);
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        if style.numeric {
            text.push(" LOG flags ").number(self.flags.bits());
            text.push(" level ").number(self.level);
        } else {
            let name = LEVELS.iter().find(|(_, level)| *level == self.level);
            text.push(" LOG level").word(match name {
                // iptables prints the old name.
                Some((_, 4)) => "warn",
                Some((name, _)) => name,
                None => "",
            });
            for (_, option) in FLAGS.iter().filter(|(flag, _)| self.flags.contains(*flag)) {
                text.word(option.trim_start_matches("log-"));
            }
        }
        if !self.prefix.is_empty() {
            text.push(" prefix \"").push(&self.prefix).push("\"");
        }
    }
}

fn level(value: &BStr) -> Parsed<u8> {
    number_within(value, 0..=7)
        .or_else(|_| one_of(value, LEVELS))
        .map_err(|reason| format!("{reason}, nor a number from 0 to 7"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    fn round_trips_data_of_iptables() {
        let value = Log {
            prefix: "in: ".into(),
            level: 6,
            flags: LogFlags::UID,
        };
        let data = format!("06 08 69 6e 3a 20{}", " 00".repeat(26));
        let printed = " --log-prefix \"in: \" --log-level 6 --log-uid";
        check(Family::Ipv4, &data, &value, printed);
        let info = value.write(Family::Ipv4).unwrap();
        // An unknown level, a flag without an option, a prefix with a newline.
        for (at, byte) in [(0, 8), (1, 0x10), (1, 0x40), (3, b'\n')] {
            let mut other = info.clone();
            other[at] = byte;
            assert_eq!(Log::read(Family::Ipv4, 0, &other), None);
        }
        // A prefix without a NUL.
        assert_eq!(Log::read(Family::Ipv4, 0, &[1; 32]), None);
        let long = Log {
            prefix: [b'x'; 99].into(),
            ..Log::default()
        };
        assert_eq!(
            long.write(Family::Ipv4).unwrap_err().to_string(),
            "--log-prefix: 99 bytes are too many: at most 29 fit"
        );
    }

    #[test]
    fn reports_errors() {
        for (option, value, reason) in [
            ("log-prefix", "", "it is empty or contains a NUL"),
            ("log-prefix", "a\nb", "a prefix cannot contain line breaks"),
            (
                "log-level",
                "8",
                "`8` is not one of emerg, panic, alert, crit, error, warning, notice, info, debug, nor a number from 0 to 7",
            ),
        ] {
            assert_eq!(
                refused::<Log>(Family::Ipv4, None, &[(option, value)]),
                format!("--{option}: {reason}")
            );
        }
    }
}
