//! `-m ipv6header`: compares the headers of an IPv6 packet.
//!
//! Data of revision 0 (`struct ip6t_ipv6header_info`, `linux/netfilter_ipv6/ip6t_ipv6header.h`):
//! the headers, negations, and whether other headers are allowed.

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip6t_ipv6header::{
    MASK_AH, MASK_DSTOPTS, MASK_ESP, MASK_FRAGMENT, MASK_HOPOPTS, MASK_NONE, MASK_PROTO,
    MASK_ROUTING, ip6t_ipv6header_info,
};

use crate::xt::pack;
use crate::xt::value::Parsed;
use crate::xt::{
    Context, Extension, Families, Family, GivenOption, Names, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

bitflags::bitflags! {
    /// Headers of an IPv6 packet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Ipv6Headers: u8 {
        /// Hop-by-hop options.
        const HOP_BY_HOP = MASK_HOPOPTS;
        /// Destination options.
        const DESTINATION = MASK_DSTOPTS;
        /// Routing.
        const ROUTING = MASK_ROUTING;
        /// Fragment.
        const FRAGMENT = MASK_FRAGMENT;
        /// Authentication.
        const AH = MASK_AH;
        /// Encrypted payload.
        const ESP = MASK_ESP;
        /// No next header.
        const NONE = MASK_NONE;
        /// A layer 4 protocol.
        const PROTOCOL = MASK_PROTO;
    }
}

/// In the order of iptables-save: the printed name, a short name, the protocol number.
const HEADERS: [(Ipv6Headers, &str, &str, u8); 8] = [
    (Ipv6Headers::HOP_BY_HOP, "hop-by-hop", "hop", 0),
    (Ipv6Headers::DESTINATION, "ipv6-opts", "dst", 60),
    (Ipv6Headers::ROUTING, "ipv6-route", "route", 43),
    (Ipv6Headers::FRAGMENT, "ipv6-frag", "frag", 44),
    (Ipv6Headers::AH, "ah", "auth", 51),
    (Ipv6Headers::ESP, "esp", "esp", 50),
    (Ipv6Headers::NONE, "ipv6-nonxt", "none", 59),
    (Ipv6Headers::PROTOCOL, "protocol", "prot", 255),
];

/// `-m ipv6header`: compares the headers of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ipv6header {
    /// The headers.
    pub headers: Ipv6Headers,
    /// Whether the comparison is negated.
    pub invert: bool,
    /// Whether other headers are also allowed.
    pub soft: bool,
}

impl Extension for Ipv6header {
    const NAME: &'static str = "ipv6header";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("header").inverts().required(),
        OptionSpec::switch("soft"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ip6t_ipv6header_info = read_struct(info)?;
        // The kernel negates each header separately; the option negates all or none.
        (revision == Self::REVISION && matches!(info.invflags, 0 | 0xff)).then_some(Self {
            headers: Ipv6Headers::from_bits(info.matchflags).filter(|all| !all.is_empty())?,
            invert: info.invflags != 0,
            soft: info.modeflag != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let all_or_none = |set| if set { 0xff } else { 0 };
        let info = ip6t_ipv6header_info {
            matchflags: pack::flags("header", self.headers)?,
            invflags: all_or_none(self.invert),
            modeflag: all_or_none(self.soft),
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let header = GivenOption::find_required(given, "header")?;
        Ok(Self {
            headers: header.parse(|value| headers(value, context.names))?,
            invert: header.invert,
            soft: GivenOption::find(given, "soft").is_some(),
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "header");
        let mut separator = " ";
        for (_, name, ..) in HEADERS.iter().filter(|one| self.headers.contains(one.0)) {
            text.push(separator).push(name);
            separator = ",";
        }
        text.switch(self.soft, "soft");
    }
}

/// Parses names, or protocol numbers or names, separated by commas; adjacent commas count as
/// one. Unlike iptables, this accepts hexadecimal and octal numbers, as everywhere else.
fn headers(value: &BStr, names: &Names) -> Parsed<Ipv6Headers> {
    let mut all = Ipv6Headers::empty();
    for one in value.split_str(",").filter(|one| !one.is_empty()) {
        let named = |(_, long, short, _): &&(_, &str, &str, _)| {
            one == long.as_bytes() || one == short.as_bytes()
        };
        let number = || names.protocol(one);
        let found = HEADERS.iter().find(named).or_else(|| {
            let number = number()?;
            HEADERS.iter().find(|header| header.3 == number)
        });
        let Some((header, ..)) = found else {
            let names = HEADERS.map(|(_, long, ..)| long).join(", ");
            return Err(format!(
                "`{}` is not one of {names}, nor a header number",
                one.as_bstr()
            ));
        };
        all |= *header;
    }
    if all.is_empty() {
        return Err("it has no header".to_owned());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m ipv6header ! --header hop,frag --soft` by ip6tables-legacy 1.8.9 (`strace -xx`).
        let info = [0x90, 0xff, 0xff, 0, 0, 0, 0, 0];
        let value = Ipv6header {
            headers: Ipv6Headers::HOP_BY_HOP | Ipv6Headers::FRAGMENT,
            invert: true,
            soft: true,
        };
        assert_eq!(Ipv6header::read(Family::Ipv6, 0, &info), Some(value));
        let value = Match::Ipv6header(value);
        assert_eq!(value.encode(Family::Ipv6).unwrap().info, &info[..]);
        assert_eq!(
            value.to_string(),
            "-m ipv6header ! --header hop-by-hop,ipv6-frag --soft"
        );
        assert_eq!(Ipv6header::read(Family::Ipv6, 0, &info[..2]), None);
        assert_eq!(Ipv6header::read(Family::Ipv6, 1, &info), None);
        assert_eq!(Ipv6header::read(Family::Ipv6, 0, &[0, 0, 0]), None);
        // The text cannot express the negation of one of two headers.
        assert_eq!(Ipv6header::read(Family::Ipv6, 0, &[0x90, 0x80, 0]), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--soft", "--header is required"),
            ("--header \"\"", "it has no header"),
            (
                "--header tcp",
                "`tcp` is not one of hop-by-hop, ipv6-opts, ",
            ),
            ("--header 0x3d", "`0x3d` is not one of"),
        ] {
            let rule = format!("-m ipv6header {options}");
            let fault = Rule::parse(Family::Ipv6, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
