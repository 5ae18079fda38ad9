//! Ports to compare with, as several matches have them.

use bstr::{BStr, ByteSlice};

use crate::xt::value::{Parsed, ends_of, ports};
use crate::xt::{Context, Given, ListStyle, Names, OptionError, OptionSpec, Text};

/// A range of ports, or what is outside it; host byte order. Nothing is within a range that ends
/// before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
    /// Whether ports outside the range are meant.
    pub invert: bool,
}

impl Default for PortRange {
    fn default() -> Self {
        Self::ANY
    }
}

impl From<u16> for PortRange {
    fn from(port: u16) -> Self {
        Self::new(port, port)
    }
}

impl PortRange {
    /// Every port.
    pub const ANY: Self = Self::new(0, u16::MAX);

    /// A range.
    #[must_use]
    pub const fn new(first: u16, last: u16) -> Self {
        Self {
            first,
            last,
            invert: false,
        }
    }

    /// The same, negated.
    #[must_use]
    pub const fn not(mut self) -> Self {
        self.invert = !self.invert;
        self
    }

    /// The same ports, not negated where that can be: what is not within `0:1023` is within
    /// `1024:65535`.
    #[must_use]
    pub const fn positive(self) -> Self {
        match (self.invert, self.first, self.last) {
            (true, 0, last) if last < u16::MAX => Self::new(last + 1, u16::MAX),
            (true, first, u16::MAX) if first > 0 => Self::new(0, first - 1),
            _ => self,
        }
    }

    pub(super) fn of([first, last]: [u16; 2], invert: bool) -> Self {
        Self {
            first,
            last,
            invert,
        }
    }

    pub(super) const fn ends(self) -> [u16; 2] {
        [self.first, self.last]
    }

    /// Reads an option's value: numbers or names of the protocol's services.
    pub(super) fn parse(
        context: &Context<'_>,
        given: &Given<'_>,
        protocol: u8,
    ) -> Result<Self, OptionError> {
        let range = given.parse(|value| ports(value, Some(protocol), context.names))?;
        Ok(Self::of([*range.start(), *range.end()], given.invert))
    }

    /// Reads an option's value as `udp`, `dccp` and `conntrack` take it: decimal numbers or names of
    /// any protocol's services, in any order.
    pub(super) fn parse_any(context: &Context<'_>, given: &Given<'_>) -> Result<Self, OptionError> {
        let (first, last) = given.parse(|value| {
            ends_of(value, 0..=u16::MAX, |one| {
                decimal_or_service(one, context.names)
            })
        })?;
        Ok(Self::of([first, last], given.invert))
    }

    /// Adds it as an option.
    pub(super) fn print(self, text: &mut Text, option: &str) {
        text.option(self.invert, option)
            .push(" ")
            .range(self.first, self.last);
    }

    /// Adds it as an option, unless every port is in it.
    pub(super) fn print_unless_any(self, text: &mut Text, option: &str) {
        if self != Self::ANY {
            self.print(text, option);
        }
    }
}

impl PortRange {
    /// Adds it as `iptables -L` shows it, unless every port is in it.
    pub(super) fn list(self, text: &mut Text, name: &str, protocol: Option<u8>, style: ListStyle) {
        let Self {
            first,
            last,
            invert,
        } = self;
        if self == Self::ANY {
            return;
        }
        text.word(name).push(if first == last { ":" } else { "s:" });
        text.push(if invert { "!" } else { "" });
        text.port(first, protocol, style);
        if first != last {
            text.push(":").port(last, protocol, style);
        }
    }
}

fn decimal_or_service(value: &BStr, names: &Names) -> Parsed<u16> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    if is_number {
        return number.ok_or_else(|| format!("`{value}` is more than 65535"));
    }
    names.service(value, None).ok_or_else(|| {
        format!("`{value}` is neither a port's decimal number nor a service of /etc/services")
    })
}

pub(super) const SOURCE: OptionSpec = OptionSpec::one("sport").inverts();
pub(super) const DESTINATION: OptionSpec = OptionSpec::one("dport").inverts();
/// The options of `udp`, with their long names.
pub(super) const OPTIONS: [OptionSpec; 4] = [
    SOURCE,
    SOURCE.or("source-port"),
    DESTINATION,
    DESTINATION.or("destination-port"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports_either_way() {
        type Read = fn(&Context<'_>, &Given<'_>) -> Result<PortRange, OptionError>;
        let names = Names::below("/");
        let context = Context {
            family: crate::xt::Family::Ipv4,
            name: "tcp",
            protocol: Some((6, false)),
            native_log: true,
            names: &names,
            shortened: None,
        };
        let read = |value: &str, read: Read| {
            let given = Given {
                option: "sport",
                invert: true,
                first: Some(value.into()),
                second: None,
            };
            read(&context, &given).ok()
        };
        let of = |value| read(value, |context, given| PortRange::parse(context, given, 6));
        let any = |value| read(value, PortRange::parse_any);
        let range = |first, last| Some(PortRange::new(first, last).not());
        assert_eq!((of("010"), any("010")), (range(8, 8), range(10, 10)));
        assert_eq!((of("0x10:"), any("0x10:")), (range(16, 65535), None));
        assert_eq!((of("9:5"), any("9:5")), (None, range(9, 5)));
        // iptables 1.8.9 takes the second for 0 in `udp`, `dccp` and `conntrack`.
        for wrong in ["", "65536", "+5", "-5", "1:2:3", "no-such-service"] {
            assert_eq!((of(wrong), any(wrong)), (None, None), "{wrong}");
        }
    }
}
