//! `-m connbytes`: compares the traffic of a connection.
//!
//! Data of revision 0 (`struct xt_connbytes_info`, `linux/netfilter/xt_connbytes.h`). Only connections
//! with accounting have counters (`net.netfilter.nf_conntrack_acct`).

use bstr::BStr;
use chainwright_sys::xt_connbytes::{
    XT_CONNBYTES_AVGPKT, XT_CONNBYTES_BYTES, XT_CONNBYTES_DIR_BOTH, XT_CONNBYTES_DIR_ORIGINAL,
    XT_CONNBYTES_DIR_REPLY, XT_CONNBYTES_PKTS, xt_connbytes_info,
};

use crate::xt::value::{Parsed, one_of, range};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m connbytes`: compares the traffic of a connection with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connbytes {
    /// Lower bound, in packets or bytes. If it is greater than `to`, the range is negated: values less
    /// than `to` or greater than `from` match.
    pub from: u64,
    /// Upper bound, in packets or bytes.
    pub to: u64,
    /// The compared quantity.
    pub mode: ConnbytesMode,
    /// The compared direction.
    pub direction: ConnbytesDirection,
}

/// The compared quantity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnbytesMode {
    /// Number of packets.
    Packets,
    /// Number of bytes.
    Bytes,
    /// Average number of bytes per packet.
    AveragePacket,
}

/// The direction of a connection whose packets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnbytesDirection {
    /// Packets from the initiator.
    Original,
    /// Packets to the initiator.
    Reply,
    /// Packets in both directions.
    Both,
}

const MODES: [(&str, (u8, ConnbytesMode)); 3] = [
    ("packets", (XT_CONNBYTES_PKTS, ConnbytesMode::Packets)),
    ("bytes", (XT_CONNBYTES_BYTES, ConnbytesMode::Bytes)),
    (
        "avgpkt",
        (XT_CONNBYTES_AVGPKT, ConnbytesMode::AveragePacket),
    ),
];

const DIRECTIONS: [(&str, (u8, ConnbytesDirection)); 3] = [
    (
        "original",
        (XT_CONNBYTES_DIR_ORIGINAL, ConnbytesDirection::Original),
    ),
    ("reply", (XT_CONNBYTES_DIR_REPLY, ConnbytesDirection::Reply)),
    ("both", (XT_CONNBYTES_DIR_BOTH, ConnbytesDirection::Both)),
];

/// Looks up the word and number of a value.
fn option_parts<T: Copy + PartialEq>(
    table: &[(&'static str, (u8, T))],
    meaning: T,
) -> (&'static str, u8) {
    let found = table.iter().find(|(_, (_, known))| *known == meaning);
    found.map_or(("", 0), |(word, (number, _))| (*word, *number))
}

/// Looks up the value of a number.
fn value_of<T: Copy>(table: &[(&str, (u8, T))], number: u8) -> Option<T> {
    let found = table.iter().find(|(_, (known, _))| *known == number);
    found.map(|(_, (_, meaning))| *meaning)
}

impl Connbytes {
    /// Returns whether the range is negated, and its bounds.
    fn option_parts(&self) -> (bool, u64, u64) {
        let ends = (self.from.min(self.to), self.from.max(self.to));
        (self.from > self.to, ends.0, ends.1)
    }
}

impl Extension for Connbytes {
    const NAME: &'static str = "connbytes";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("connbytes").inverts().required(),
        OptionSpec::one("connbytes-dir").required(),
        OptionSpec::one("connbytes-mode").required(),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m connbytes --connbytes 0:0 --connbytes-mode bytes --connbytes-dir both",
        "-m connbytes --connbytes 0 --connbytes-mode bytes --connbytes-dir both",
        "iptables reads its own output as a range without an upper bound.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_connbytes_info = read_struct(info)?;
        Some(Self {
            from: info.from,
            to: info.to,
            mode: value_of(&MODES, info.what)?,
            direction: value_of(&DIRECTIONS, info.direction)?,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_connbytes_info {
            from: self.from,
            to: self.to,
            what: option_parts(&MODES, self.mode).1,
            direction: option_parts(&DIRECTIONS, self.direction).1,
            __pad: [0; 6],
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find_required = |option| GivenOption::find_required(given, option);
        let (amount, mode, direction) = (
            find_required("connbytes")?,
            find_required("connbytes-mode")?,
            find_required("connbytes-dir")?,
        );
        let (mut from, mut to) = amount.parse(bounds)?;
        if amount.invert {
            if from == to {
                return Err(amount.error(
                    "a negated single number is not supported: the kernel would match that number",
                ));
            }
            (from, to) = (to, from);
        }
        Ok(Self {
            from,
            to,
            mode: mode.parse(|value| one_of(value, &MODES))?.1,
            direction: direction.parse(|value| one_of(value, &DIRECTIONS))?.1,
        })
    }

    fn print(&self, text: &mut Text) {
        let (invert, least, most) = self.option_parts();
        text.option(invert, "connbytes").push(" ").number(least);
        if most != u64::MAX {
            text.push(":").number(most);
        }
        text.push(" --connbytes-mode ")
            .push(option_parts(&MODES, self.mode).0);
        text.push(" --connbytes-dir ")
            .push(option_parts(&DIRECTIONS, self.direction).0);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        let (invert, least, most) = self.option_parts();
        text.push(if invert {
            " ! connbytes "
        } else {
            " connbytes "
        })
        .number(least);
        if most != u64::MAX {
            text.push(":").number(most);
        }
        text.push(" connbytes mode ")
            .push(option_parts(&MODES, self.mode).0);
        text.push(" connbytes direction ")
            .push(option_parts(&DIRECTIONS, self.direction).0);
    }
}

/// Parses `a:b`, where either may be missing; a lone `a` has no upper bound.
fn bounds(value: &BStr) -> Parsed<(u64, u64)> {
    let bounds = range(value, 0..=u64::MAX)?.into_inner();
    Ok(if value.contains(&b':') {
        bounds
    } else {
        (bounds.0, u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `! --connbytes 10:256 --connbytes-dir both --connbytes-mode avgpkt` by iptables-legacy 1.8.9.
        let mut info = vec![0; 24];
        (info[1], info[8], info[16], info[17]) = (1, 10, 2, 2);
        let bytes = Connbytes {
            from: 256,
            to: 10,
            mode: ConnbytesMode::AveragePacket,
            direction: ConnbytesDirection::Both,
        };
        assert_eq!(Connbytes::read(Family::Ipv4, 0, &info), Some(bytes));
        assert_eq!(bytes.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Connbytes(bytes).to_string(),
            "-m connbytes ! --connbytes 10:256 --connbytes-mode avgpkt --connbytes-dir both"
        );
        assert_eq!(Connbytes::read(Family::Ipv4, 0, &info[..23]), None);
        assert_eq!(Connbytes::read(Family::Ipv4, 1, &info), None);
        for at in [16, 17] {
            let mut info = info.clone();
            info[at] = 3;
            assert_eq!(Connbytes::read(Family::Ipv4, 0, &info), None);
        }
    }

    #[test]
    fn refusals() {
        let refused = |amount| {
            let line = format!("-m connbytes {amount} --connbytes-dir both --connbytes-mode bytes");
            Rule::parse(Family::Ipv4, line).unwrap_err().message
        };
        assert_eq!(refused(""), "-m connbytes: --connbytes is required");
        assert_eq!(
            refused("--connbytes 9:3"),
            "-m connbytes: --connbytes: the range `9:3` ends before it starts"
        );
        // 1.8.9 accepts it and matches only that number.
        assert_eq!(
            refused("! --connbytes 9:9"),
            "-m connbytes: --connbytes: a negated single number is not supported: the kernel would match that number"
        );
    }
}
