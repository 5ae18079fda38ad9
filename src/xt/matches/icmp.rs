//! `-m icmp`: compares type and code of ICMP for IPv4. The rule is for `-p icmp`.
//!
//! Data of revision 0: `struct ipt_icmp` (`linux/netfilter_ipv4/ip_tables.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip_tables::{IPT_ICMP_INV, ipt_icmp};

use crate::xt::pack;
use crate::xt::value::{Parsed, number, starts};
use crate::xt::{
    Context, Difference, Extension, Families, Family, GivenOption, ListStyle, OptionError,
    OptionSpec, Text, read_struct, write_struct,
};

/// A range of ICMP codes; empty if the last code is less than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IcmpCodes {
    /// The first code.
    pub first: u8,
    /// The last code.
    pub last: u8,
}

impl From<u8> for IcmpCodes {
    /// Creates a single code.
    fn from(code: u8) -> Self {
        Self {
            first: code,
            last: code,
        }
    }
}

impl IcmpCodes {
    /// Decodes the codes of a kernel struct; `None` for every code.
    pub(super) fn read([first, last]: [u8; 2]) -> Option<Self> {
        (first != 0 || last != u8::MAX).then_some(Self { first, last })
    }

    /// Encodes the codes; the reverse of [`read`](Self::read).
    pub(super) fn write(codes: Option<Self>) -> [u8; 2] {
        codes.map_or([0, u8::MAX], |codes| [codes.first, codes.last])
    }

    /// Parses `code` or `first:last`.
    fn parse(value: &BStr) -> Parsed<Option<Self>> {
        let (first, last) = match value.split_once_str(":") {
            None => (value, value),
            Some((first, last)) => (first.as_bstr(), last.as_bstr()),
        };
        Ok(Self::read([number(first)?, number(last)?]))
    }
}

/// `-m icmp`: compares type and code of ICMP for IPv4. The rule is for `-p icmp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Icmp {
    /// The type; `None` for every type and code.
    pub kind: Option<u8>,
    /// The codes; `None` for every code.
    pub code: Option<IcmpCodes>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// The wildcard type.
const ANY: u8 = 0xff;

impl Extension for Icmp {
    const NAME: &'static str = "icmp";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("icmp-type").inverts().required()];
    const DIFFERENCES: &'static [Difference] = &[
        Difference::kept(
            "-p icmp -m icmp --icmp-type 3/0:5",
            "-p icmp -m icmp --icmp-type 3/0",
            "iptables accepts and stores several codes, but only prints the first.",
        ),
        Difference::kept(
            "-p icmp -m icmp --icmp-type 255/0",
            "-p icmp -m icmp --icmp-type any",
            "The kernel treats both alike, but iptables does not find the rule by its own output.",
        ),
    ];

    fn value_names(_: Family) -> Vec<String> {
        listed_names("Valid ICMP Types:", NAMES)
    }

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ipt_icmp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if info.invflags & !IPT_ICMP_INV != 0 {
            return None;
        }
        Some(Self {
            kind: (info.r#type != ANY).then_some(info.r#type),
            code: IcmpCodes::read(info.code),
            invert: info.invflags != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let why = "type 255 means every type";
        pack::require(self.kind != Some(ANY), "icmp-type", why)?;
        Ok(write_struct(&ipt_icmp {
            r#type: self.kind.unwrap_or(ANY),
            code: IcmpCodes::write(self.code),
            invflags: if self.invert { IPT_ICMP_INV } else { 0 },
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(1, "icmp")?;
        let one = GivenOption::find_required(given, "icmp-type")?;
        let (kind, code) = one.parse(|value| parse(value, NAMES))?;
        Ok(Self {
            kind: (kind != ANY).then_some(kind),
            code,
            invert: one.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "icmp-type").push(" ");
        match (self.kind, self.code) {
            (None, None) => drop(text.push("any")),
            (kind, code) => print(kind.unwrap_or(ANY), code, text),
        }
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        match (self.kind, self.code) {
            (None, None) if style.numeric => drop(text.push(" icmptype 255")),
            (kind, code) => list(
                "icmp",
                self.invert,
                kind.unwrap_or(ANY),
                code,
                NAMES,
                text,
                style,
            ),
        }
    }
}

/// Name, type and code.
pub(super) type Name = (&'static str, u8, Option<u8>);

/// Lists the names, one per line: names of codes are indented, aliases follow in parentheses.
pub(super) fn listed_names(heading: &str, names: &[Name]) -> Vec<String> {
    let mut lines = vec![heading.to_owned()];
    let mut last = None;
    for (name, kind, code) in names {
        match lines.last_mut() {
            Some(line) if last == Some((kind, code)) => line.push_str(&format!(" ({name})")),
            _ if code.is_some() => lines.push(format!("   {name}")),
            _ => lines.push((*name).to_owned()),
        }
        last = Some((kind, code));
    }
    lines
}

/// Parses a type, a type and its codes, or a name or its unique prefix.
pub(super) fn parse(value: &BStr, names: &[Name]) -> Parsed<(u8, Option<IcmpCodes>)> {
    if value.first().is_some_and(u8::is_ascii_digit) {
        let (kind, code) = match value.split_once_str("/") {
            None => (value, None),
            Some((kind, code)) => (kind.as_bstr(), Some(code.as_bstr())),
        };
        let code = code.map(IcmpCodes::parse).transpose()?;
        return Ok((number(kind)?, code.flatten()));
    }
    let mut found = names.iter().filter(|(name, ..)| starts(name, value));
    match (value.is_empty(), found.next(), found.next()) {
        (false, Some((_, kind, code)), None) => Ok((*kind, code.map(IcmpCodes::from))),
        (false, Some((one, ..)), Some((other, ..))) => {
            Err(format!("`{value}` is ambiguous: {one} or {other}"))
        }
        _ => {
            let known: Vec<_> = names.iter().map(|(name, ..)| *name).collect();
            let known = known.join(", ");
            Err(format!(
                "`{value}` is neither a type, nor a type and a code as in 3/1 or 3/1:5, nor one of {known}"
            ))
        }
    }
}

/// Appends type and codes. `iptables-save` omits the end of a range of codes, so that its output
/// matches fewer codes when it is restored.
pub(super) fn print(kind: u8, code: Option<IcmpCodes>, text: &mut Text) {
    text.number(kind);
    if let Some(IcmpCodes { first, last }) = code {
        text.push("/").number(first);
        if last != first {
            text.push(":").number(last);
        }
    }
}

/// Appends type and codes as `iptables -L` shows them: by name if they have one.
pub(super) fn list(
    protocol: &str,
    invert: bool,
    kind: u8,
    code: Option<IcmpCodes>,
    names: &[Name],
    text: &mut Text,
    style: ListStyle,
) {
    let is_it = |(_, known, of): &&Name| *known == kind && of.map(IcmpCodes::from) == code;
    text.word(protocol);
    match names.iter().find(is_it).filter(|_| !style.numeric) {
        Some((name, ..)) => drop(text.push(if invert { " !" } else { " " }).push(name)),
        None => {
            text.push(if invert { " !type " } else { "type " })
                .number(kind);
            if let Some(IcmpCodes { first, last }) = code {
                text.push(if first == last { " code " } else { " codes " })
                    .number(first);
                if first != last {
                    text.push("-").number(last);
                }
            }
        }
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
    ("info-request", 15, None),
    ("info-reply", 16, None),
    ("address-mask-request", 17, None),
    ("address-mask-reply", 18, None),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-p icmp -m icmp ! --icmp-type port-unreachable` and `--icmp-type any` by iptables-legacy
        // 1.8.9.
        let unreachable = Icmp {
            kind: Some(3),
            code: Some(3.into()),
            invert: true,
        };
        let any = Icmp {
            kind: None,
            code: None,
            invert: false,
        };
        let codes = |kind, first, last| Icmp {
            kind,
            code: Some(IcmpCodes { first, last }),
            invert: false,
        };
        let (some, none) = (codes(Some(3), 0, 5), codes(Some(3), 5, 1));
        let zero = codes(None, 0, 0);
        for (info, icmp, text) in [
            ([3, 3, 3, 1, 0, 0, 0, 0], unreachable, "! --icmp-type 3/3"),
            ([0xff, 0, 0xff, 0, 0, 0, 0, 0], any, "--icmp-type any"),
            ([3, 0, 5, 0, 0, 0, 0, 0], some, "--icmp-type 3/0:5"),
            ([3, 5, 1, 0, 0, 0, 0, 0], none, "--icmp-type 3/5:1"),
            ([0xff, 0, 0, 0, 0, 0, 0, 0], zero, "--icmp-type 255/0"),
        ] {
            assert_eq!(Icmp::read(Family::Ipv4, 0, &info), Some(icmp));
            let icmp = Match::Icmp(icmp);
            assert_eq!(icmp.encode(Family::Ipv4).unwrap().info[..], info);
            assert_eq!(icmp.to_string(), format!("-m icmp {text}"));
            let rule = Rule::parse(Family::Ipv4, format!("-p icmp {icmp}")).unwrap();
            assert_eq!(rule.matches, [icmp]);
        }
        // An unknown flag, too few bytes.
        for info in [&[3, 0, 0, 2][..], &[3, 0, 0]] {
            assert_eq!(Icmp::read(Family::Ipv4, 0, info), None);
        }
        assert_eq!(Icmp::read(Family::Ipv4, 1, &[3, 0, 0, 0]), None);
    }

    #[test]
    fn refusals() {
        for (options, fault) in [
            ("-m icmp --icmp-type 8", "the rule needs `-p icmp`"),
            ("-p icmp -m icmp", "--icmp-type is required"),
            (
                "-p icmp --icmp-type echo-re",
                "`echo-re` is ambiguous: echo-reply or echo-request",
            ),
            ("-p icmp --icmp-type echo-request/0", "nor one of any,"),
            ("-p icmp --icmp-type \"\"", "`` is neither a type"),
            ("-p icmp --icmp-type 3/", "`` is not a number from 0 to 255"),
            ("-p icmp --icmp-type 256", "`256` is not a number"),
            (
                "-p icmp --icmp-type 3/:5",
                "`` is not a number from 0 to 255",
            ),
            (
                "-p icmp --icmp-type 3/5:",
                "`` is not a number from 0 to 255",
            ),
        ] {
            let message = Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
            assert!(message.contains(fault), "{options}: {message}");
        }
    }
}
