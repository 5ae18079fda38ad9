//! `icmp`: compares type and code of ICMP for IPv4. The rule is for `-p icmp`.
//!
//! Data of revision 0: `struct ipt_icmp` (`linux/netfilter_ipv4/ip_tables.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip_tables::{IPT_ICMP_INV, ipt_icmp};

use crate::xt::value::{Parsed, number, starts};
use crate::xt::{
    Context, Extension, Families, Family, Given, Misuse, OptionSpec, Text, read_struct,
    write_struct,
};

/// Type and code of an ICMP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Icmp {
    /// The type; `None` for every type and code.
    pub kind: Option<u8>,
    /// The code; `None` for every code.
    pub code: Option<u8>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// The type that stands for all.
const ANY: u8 = 0xff;

impl Extension for Icmp {
    const NAME: &'static str = "icmp";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("icmp-type").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ipt_icmp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if info.invflags & !IPT_ICMP_INV != 0 {
            return None;
        }
        let (kind, code) = match info.r#type {
            ANY => (None, None),
            kind => (Some(kind), code(info.code)?),
        };
        Some(Self {
            kind,
            code,
            invert: info.invflags != 0,
        })
    }

    fn write(&self, _: Family) -> Vec<u8> {
        write_struct(&ipt_icmp {
            r#type: self.kind.unwrap_or(ANY),
            code: codes(self.code.filter(|_| self.kind.is_some())),
            invflags: if self.invert { IPT_ICMP_INV } else { 0 },
        })
    }

    fn parse(context: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        context.needs_protocol(1, "icmp")?;
        let one = Given::need(given, "icmp-type")?;
        let (kind, code) = one.parse(|value| parse(value, NAMES))?;
        let any = kind == ANY;
        Ok(Self {
            kind: (!any).then_some(kind),
            code: code.filter(|_| !any),
            invert: one.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "icmp-type").push(" ");
        match self.kind {
            None => drop(text.push("any")),
            Some(kind) => print(kind, self.code, text),
        }
    }
}

/// Name, type and code.
pub(super) type Name = (&'static str, u8, Option<u8>);

/// The code of a range; `None` if it is a part of the codes, which no option can say.
#[allow(clippy::option_option)]
pub(super) fn code([first, last]: [u8; 2]) -> Option<Option<u8>> {
    match (first, last) {
        (0, u8::MAX) => Some(None),
        _ => (first == last).then_some(Some(first)),
    }
}

/// The range of a code.
pub(super) fn codes(code: Option<u8>) -> [u8; 2] {
    code.map_or([0, u8::MAX], |code| [code, code])
}

/// Reads a type, a type and a code, or a name or its start.
pub(super) fn parse(value: &BStr, names: &[Name]) -> Parsed<(u8, Option<u8>)> {
    if value.first().is_some_and(u8::is_ascii_digit) {
        let (kind, code) = match value.split_once_str("/") {
            None => (value, None),
            Some((kind, code)) => (kind.as_bstr(), Some(code.as_bstr())),
        };
        return Ok((number(kind)?, code.map(number).transpose()?));
    }
    let mut found = names.iter().filter(|(name, ..)| starts(name, value));
    match (value.is_empty(), found.next(), found.next()) {
        (false, Some((_, kind, code)), None) => Ok((*kind, *code)),
        (false, Some((one, ..)), Some((other, ..))) => {
            Err(format!("`{value}` is the start of {one} and of {other}"))
        }
        _ => {
            let known: Vec<_> = names.iter().map(|(name, ..)| *name).collect();
            let known = known.join(", ");
            Err(format!(
                "`{value}` is neither a type, nor a type and a code as in 3/1, nor one of {known}"
            ))
        }
    }
}

/// Adds type and code.
pub(super) fn print(kind: u8, code: Option<u8>, text: &mut Text) {
    text.number(kind);
    if let Some(code) = code {
        text.push("/").number(code);
    }
}

const NAMES: &[Name] = &[
    ("any", ANY, None),
    ("echo-reply", 0, None),
    ("pong", 0, None),
    ("destination-unreachable", 3, None),
    ("network-unreachable", 3, Some(0)),
    ("host-unreachable", 3, Some(1)),
    ("protocol-unreachable", 3, Some(2)),
    ("port-unreachable", 3, Some(3)),
    ("fragmentation-needed", 3, Some(4)),
    ("source-route-failed", 3, Some(5)),
    ("network-unknown", 3, Some(6)),
    ("host-unknown", 3, Some(7)),
    ("network-prohibited", 3, Some(9)),
    ("host-prohibited", 3, Some(10)),
    ("TOS-network-unreachable", 3, Some(11)),
    ("TOS-host-unreachable", 3, Some(12)),
    ("communication-prohibited", 3, Some(13)),
    ("host-precedence-violation", 3, Some(14)),
    ("precedence-cutoff", 3, Some(15)),
    ("source-quench", 4, None),
    ("redirect", 5, None),
    ("network-redirect", 5, Some(0)),
    ("host-redirect", 5, Some(1)),
    ("TOS-network-redirect", 5, Some(2)),
    ("TOS-host-redirect", 5, Some(3)),
    ("echo-request", 8, None),
    ("ping", 8, None),
    ("router-advertisement", 9, None),
    ("router-solicitation", 10, None),
    ("time-exceeded", 11, None),
    ("ttl-exceeded", 11, None),
    ("ttl-zero-during-transit", 11, Some(0)),
    ("ttl-zero-during-reassembly", 11, Some(1)),
    ("parameter-problem", 12, None),
    ("ip-header-bad", 12, Some(0)),
    ("required-option-missing", 12, Some(1)),
    ("timestamp-request", 13, None),
    ("timestamp-reply", 14, None),
    ("address-mask-request", 17, None),
    ("address-mask-reply", 18, None),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn reads_and_writes_what_iptables_wrote() {
        // `-p icmp -m icmp ! --icmp-type port-unreachable` and `--icmp-type any` by iptables-legacy
        // 1.8.9.
        let unreachable = Icmp {
            kind: Some(3),
            code: Some(3),
            invert: true,
        };
        let any = Icmp {
            kind: None,
            code: None,
            invert: false,
        };
        for (info, icmp, text) in [
            ([3, 3, 3, 1, 0, 0, 0, 0], unreachable, "! --icmp-type 3/3"),
            ([0xff, 0, 0xff, 0, 0, 0, 0, 0], any, "--icmp-type any"),
        ] {
            assert_eq!(Icmp::read(Family::Ipv4, 0, &info), Some(icmp));
            let icmp = Match::Icmp(icmp);
            assert_eq!(icmp.encode(Family::Ipv4).unwrap().info[..], info);
            assert_eq!(icmp.to_string(), format!("-m icmp {text}"));
        }
        // A code does not count if every type does.
        assert_eq!(Icmp::read(Family::Ipv4, 0, &[0xff, 3, 3, 0]), Some(any));
        // Some of the codes, a flag without a meaning, too few bytes.
        for info in [&[3, 1, 2, 0][..], &[3, 0, 0, 2], &[3, 0, 0]] {
            assert_eq!(Icmp::read(Family::Ipv4, 0, info), None);
        }
        assert_eq!(Icmp::read(Family::Ipv4, 1, &[3, 0, 0, 0]), None);
    }

    #[test]
    fn refusals() {
        for (options, fault) in [
            ("-m icmp --icmp-type 8", "the rule needs `-p icmp`"),
            ("-p icmp -m icmp", "--icmp-type: it is missing"),
            (
                "-p icmp --icmp-type echo-re",
                "`echo-re` is the start of echo-reply and of echo-request",
            ),
            ("-p icmp --icmp-type echo-request/0", "nor one of any,"),
            ("-p icmp --icmp-type \"\"", "`` is neither a type"),
            ("-p icmp --icmp-type 3/", "`` is not a number from 0 to 255"),
            ("-p icmp --icmp-type 256", "`256` is not a number"),
        ] {
            let said = Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
            assert!(said.contains(fault), "{options}: {said}");
        }
    }
}
