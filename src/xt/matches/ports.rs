//! Port ranges, shared by several matches.

use bstr::{BStr, ByteSlice};

use crate::xt::value::{Parsed, ends_of, ports};
use crate::xt::{Context, GivenOption, ListStyle, Names, OptionError, OptionSpec, Text};

/// A range of ports, optionally negated; in host byte order. A reversed range contains no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
    /// Whether to match ports outside the range.
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
    /// All ports.
    pub const ANY: Self = Self::new(0, u16::MAX);

    /// Creates a range.
    #[must_use]
    pub const fn new(first: u16, last: u16) -> Self {
        Self {
            first,
            last,
            invert: false,
        }
    }

    /// Negates the range.
    #[must_use]
    pub const fn not(mut self) -> Self {
        self.invert = !self.invert;
        self
    }

    /// Returns an equivalent range without negation, if possible: `! 0:1023` becomes `1024:65535`.
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

    /// Parses an option's value: port numbers or names of the protocol's services.
    pub(super) fn parse(
        context: &Context<'_>,
        given: &GivenOption<'_>,
        protocol: u8,
    ) -> Result<Self, OptionError> {
        let range = given.parse(|value| ports(value, Some(protocol), context.names))?;
        Ok(Self::of([*range.start(), *range.end()], given.invert))
    }

    /// Parses an option's value as `udp`, `dccp` and `conntrack` do: decimal numbers or names of any
    /// protocol's services, in any order.
    pub(super) fn parse_any(
        context: &Context<'_>,
        given: &GivenOption<'_>,
    ) -> Result<Self, OptionError> {
        let (first, last) = given.parse(|value| {
            ends_of(value, 0..=u16::MAX, |one| {
                decimal_or_service(one, context.names)
            })
        })?;
        Ok(Self::of([first, last], given.invert))
    }

    /// Appends it as an option.
    pub(super) fn print(self, text: &mut Text, option: &str) {
        text.option(self.invert, option)
            .push(" ")
            .range(self.first, self.last);
    }

    /// Appends it as an option, unless it contains all ports.
    pub(super) fn print_unless_any(self, text: &mut Text, option: &str) {
        if self != Self::ANY {
            self.print(text, option);
        }
    }
}

impl PortRange {
    /// Appends it as `iptables -L` shows it, unless it contains all ports.
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
        format!("`{value}` is neither a decimal port number nor a service in /etc/services")
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
        type Read = fn(&Context<'_>, &GivenOption<'_>) -> Result<PortRange, OptionError>;
        let names = Names::below("/");
        let context = Context {
            family: crate::xt::Family::Ipv4,
            name: "tcp",
            protocol: Some((6, false)),
            native_log: true,
            names: &names,
            truncated: None,
        };
        let read = |value: &str, read: Read| {
            let given = GivenOption {
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
        // iptables 1.8.9 parses the second as 0 in `udp`, `dccp` and `conntrack`.
        for wrong in ["", "65536", "+5", "-5", "1:2:3", "no-such-service"] {
            assert_eq!((of(wrong), any(wrong)), (None, None), "{wrong}");
        }
    }
}
