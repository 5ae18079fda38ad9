//! `-m connbytes`: compares how much a connection has carried.
//!
//! Data of revision 0 (`struct xt_connbytes_info`, `linux/netfilter/xt_connbytes.h`). Only
//! connections that are accounted have numbers (`net.netfilter.nf_conntrack_acct`).

use bstr::BStr;
use chainwright_sys::xt_connbytes::{
    XT_CONNBYTES_AVGPKT, XT_CONNBYTES_BYTES, XT_CONNBYTES_DIR_BOTH, XT_CONNBYTES_DIR_ORIGINAL,
    XT_CONNBYTES_DIR_REPLY, XT_CONNBYTES_PKTS, xt_connbytes_info,
};

use crate::xt::value::{Parsed, one_of, range};
use crate::xt::{
    Context, Difference, Extension, Family, Given, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m connbytes`: compares how much a connection has carried.
///
/// Compares what a connection has carried with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connbytes {
    /// The least that matches, in packets or bytes. When it is greater than `to`, the range is
    /// negated: less than `to` or more than `from` matches.
    pub from: u64,
    /// The most that matches, in packets or bytes.
    pub to: u64,
    /// What is compared.
    pub mode: ConnbytesMode,
    /// Whose packets.
    pub direction: ConnbytesDirection,
}

/// What of a connection is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnbytesMode {
    /// Its packets.
    Packets,
    /// Its bytes.
    Bytes,
    /// The bytes of its average packet.
    AveragePacket,
}

/// Which of a connection's packets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnbytesDirection {
    /// Those of the one who opened it.
    Original,
    /// Those to the one who opened it.
    Reply,
    /// Both.
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

/// Word and number of a meaning.
fn said<T: Copy + PartialEq>(table: &[(&'static str, (u8, T))], meaning: T) -> (&'static str, u8) {
    let found = table.iter().find(|(_, (_, known))| *known == meaning);
    found.map_or(("", 0), |(word, (number, _))| (*word, *number))
}

/// The meaning of a number.
fn meant<T: Copy>(table: &[(&str, (u8, T))], number: u8) -> Option<T> {
    let found = table.iter().find(|(_, (known, _))| *known == number);
    found.map(|(_, (_, meaning))| *meaning)
}

impl Connbytes {
    /// Whether the range is negated, and what it is then.
    fn said(&self) -> (bool, u64, u64) {
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
        "iptables reads what it prints here as no upper bound.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_connbytes_info = read_struct(info)?;
        Some(Self {
            from: info.from,
            to: info.to,
            mode: meant(&MODES, info.what)?,
            direction: meant(&DIRECTIONS, info.direction)?,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_connbytes_info {
            from: self.from,
            to: self.to,
            what: said(&MODES, self.mode).1,
            direction: said(&DIRECTIONS, self.direction).1,
            __pad: [0; 6],
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, OptionError> {
        let need = |option| Given::need(given, option);
        let (amount, mode, direction) = (
            need("connbytes")?,
            need("connbytes-mode")?,
            need("connbytes-dir")?,
        );
        let (mut from, mut to) = amount.parse(bounds)?;
        if amount.invert {
            if from == to {
                return Err(amount.error(
                    "all but one number cannot be said: the kernel would take it for that number",
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
        let (invert, least, most) = self.said();
        text.option(invert, "connbytes").push(" ").number(least);
        if most != u64::MAX {
            text.push(":").number(most);
        }
        text.push(" --connbytes-mode ")
            .push(said(&MODES, self.mode).0);
        text.push(" --connbytes-dir ")
            .push(said(&DIRECTIONS, self.direction).0);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        let (invert, least, most) = self.said();
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
            .push(said(&MODES, self.mode).0);
        text.push(" connbytes direction ")
            .push(said(&DIRECTIONS, self.direction).0);
    }
}

/// `a:b`, where either may be left out; a lone `a` has no upper bound.
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
    fn reads_and_writes_what_iptables_wrote() {
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
        // 1.8.9 takes it and matches that number only.
        assert_eq!(
            refused("! --connbytes 9:9"),
            "-m connbytes: --connbytes: all but one number cannot be said: the kernel would take \
             it for that number"
        );
    }
}
