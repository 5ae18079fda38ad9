//! `-m multiport`: compares ports with a list. The rule is for TCP, UDP, UDP-Lite, SCTP or DCCP.
//!
//! Data of revision 1 (`struct xt_multiport_v1`, `linux/netfilter/xt_multiport.h`); revision 0
//! (`struct xt_multiport`) has neither ranges nor negation.

use std::ops::RangeInclusive;

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_multiport::{
    XT_MULTI_PORTS, XT_MULTIPORT_DESTINATION, XT_MULTIPORT_EITHER, XT_MULTIPORT_SOURCE,
    xt_multiport, xt_multiport_v1,
};
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, port};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Names, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// The compared port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MultiportSide {
    /// The source port: `--sports`.
    Source,
    /// The destination port: `--dports`.
    Destination,
    /// Source or destination port: `--ports`.
    Either,
}

impl MultiportSide {
    const fn option(self) -> &'static str {
        match self {
            Self::Source => "sports",
            Self::Destination => "dports",
            Self::Either => "ports",
        }
    }
}

/// `-m multiport`: compares ports with a list. The rule is for TCP, UDP, UDP-Lite, SCTP or DCCP.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Multiport {
    /// The compared port.
    pub side: MultiportSide,
    /// Ports and ranges. The data has 15 slots, of which a range takes two; a longer list cannot
    /// be encoded.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

const SOURCE: OptionSpec = OptionSpec::one("sports").inverts();
const DESTINATION: OptionSpec = OptionSpec::one("dports").inverts();

/// The protocols with ports that the kernel accepts.
const PROTOCOLS: [u8; 5] = [6, 17, 136, 132, 33];

impl Extension for Multiport {
    const NAME: &'static str = "multiport";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        SOURCE,
        SOURCE.or("source-ports"),
        DESTINATION,
        DESTINATION.or("destination-ports"),
        OptionSpec::one("ports").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["sports", "dports", "ports"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_multiport_v1 = match revision {
            0 => {
                let old: xt_multiport = read_struct(info)?;
                xt_multiport_v1 {
                    flags: old.flags,
                    count: old.count,
                    ports: old.ports,
                    ..xt_multiport_v1::new_zeroed()
                }
            }
            1 => read_struct(info)?,
            _ => return None,
        };
        let count = usize::from(info.count);
        let mut places = info.ports.get(..count)?.iter().zip(info.pflags);
        let mut ports = Vec::with_capacity(count);
        while let Some((first, range)) = places.next() {
            let last = if range == 0 { first } else { places.next()?.0 };
            ports.push(*first..=*last);
        }
        if ports.is_empty() {
            return None;
        }
        Some(Self {
            side: match info.flags {
                XT_MULTIPORT_SOURCE => MultiportSide::Source,
                XT_MULTIPORT_DESTINATION => MultiportSide::Destination,
                XT_MULTIPORT_EITHER => MultiportSide::Either,
                _ => return None,
            },
            ports,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_multiport_v1::new_zeroed();
        info.flags = match self.side {
            MultiportSide::Source => XT_MULTIPORT_SOURCE,
            MultiportSide::Destination => XT_MULTIPORT_DESTINATION,
            MultiportSide::Either => XT_MULTIPORT_EITHER,
        };
        info.invert = self.invert.into();
        let places = |range: &RangeInclusive<u16>| if range.start() == range.end() { 1 } else { 2 };
        let wanted: usize = self.ports.iter().map(places).sum();
        if wanted > XT_MULTI_PORTS {
            let reason = format!(
                "{wanted} ports are too many (a range counts as two): at most {XT_MULTI_PORTS} fit"
            );
            return Err(OptionError::of(self.side.option(), reason));
        }
        let mut at = 0;
        for range in &self.ports {
            let (first, last) = (*range.start(), *range.end());
            let wanted = if first == last { 1 } else { 2 };
            info.ports[at] = first;
            if wanted == 2 {
                info.pflags[at] = 1;
                info.ports[at + 1] = last;
            }
            at += wanted;
            info.count += wanted as u8;
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let Some(protocol) = context.protocol_among(&PROTOCOLS) else {
            return Err(OptionError::of_all(
                "the rule needs `-p` and one of tcp, udp, udplite, sctp, dccp",
            ));
        };
        let one = Self::GROUPS[0].find(given)?;
        Ok(Self {
            side: match one.option {
                "sports" => MultiportSide::Source,
                "dports" => MultiportSide::Destination,
                _ => MultiportSide::Either,
            },
            ports: one.parse(|value| list(value, protocol, context.names))?,
            invert: one.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        let option = match self.side {
            MultiportSide::Source => "sports",
            MultiportSide::Destination => "dports",
            MultiportSide::Either => "ports",
        };
        text.option(self.invert, option);
        let mut separator = " ";
        for range in &self.ports {
            text.push(separator).range(*range.start(), *range.end());
            separator = ",";
        }
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        text.push(match self.side {
            MultiportSide::Source => " multiport sports",
            MultiportSide::Destination => " multiport dports",
            MultiportSide::Either => " multiport ports",
        });
        let mut separator = if self.invert { "  !" } else { " " };
        for range in &self.ports {
            text.push(separator)
                .port(*range.start(), style.protocol, style);
            if range.start() != range.end() {
                text.push(":").port(*range.end(), style.protocol, style);
            }
            separator = ",";
        }
    }
}

fn list(value: &BStr, protocol: u8, names: &Names) -> Parsed<Vec<RangeInclusive<u16>>> {
    let (mut ports, mut free_slots) = (Vec::new(), XT_MULTI_PORTS);
    for one in value.split_str(",") {
        let read = |text: &[u8]| port(text.as_bstr(), Some(protocol), names);
        let range = match one.split_once_str(":") {
            None => {
                let only = read(one)?;
                only..=only
            }
            Some((first, last)) => {
                let range = read(first)?..=read(last)?;
                if range.start() >= range.end() {
                    let one = one.as_bstr();
                    return Err(format!("the range `{one}` does not end after it starts"));
                }
                range
            }
        };
        let takes = if range.start() == range.end() { 1 } else { 2 };
        free_slots = free_slots.checked_sub(takes).ok_or_else(|| {
            format!("a list has at most {XT_MULTI_PORTS} ports; a range counts as two")
        })?;
        ports.push(range);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `-p tcp -m multiport ! --dports 80,1000:2000` from iptables-legacy
    /// 1.8.9.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 48];
        info[..8].copy_from_slice(&[1, 3, 80, 0, 0xe8, 0x03, 0xd0, 0x07]);
        info[33] = 1;
        info[47] = 1;
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let multiport = Multiport {
            side: MultiportSide::Destination,
            ports: vec![80..=80, 1000..=2000],
            invert: true,
        };
        let info = captured();
        assert_eq!(
            Multiport::read(Family::Ipv4, 1, &info),
            Some(multiport.clone())
        );
        assert_eq!(multiport.write(Family::Ipv6).unwrap(), info);
        assert_eq!(
            Match::Multiport(multiport).to_string(),
            "-m multiport ! --dports 80,1000:2000"
        );
        assert_eq!(Multiport::read(Family::Ipv4, 1, &info[..47]), None);
        assert_eq!(Multiport::read(Family::Ipv4, 2, &info), None);
        // An unknown side, no port, too many ports, a range without an end.
        for (at, byte) in [(0, 3), (1, 0), (1, 16), (1, 2)] {
            let mut odd = info.clone();
            odd[at] = byte;
            assert_eq!(Multiport::read(Family::Ipv4, 1, &odd), None, "byte {at}");
        }
        // Revision 0 (from the header; kernels no longer have it).
        let old = Multiport::read(Family::Ipv4, 0, &info[..32]).unwrap();
        assert_eq!(old.ports, [80..=80, 1000..=1000, 2000..=2000]);
        assert!(!old.invert);
    }

    #[test]
    fn too_many_ports_are_rejected() {
        let many = Multiport {
            side: MultiportSide::Either,
            ports: vec![1..=2; 9],
            invert: false,
        };
        assert_eq!(
            many.write(Family::Ipv4).unwrap_err().to_string(),
            "--ports: 18 ports are too many (a range counts as two): at most 15 fit"
        );
    }

    #[test]
    fn refusals() {
        for (options, fault) in [
            ("-m multiport --ports 1", "the rule needs `-p` and one of"),
            ("-p icmp -m multiport --ports 1", "the rule needs `-p`"),
            ("! -p tcp -m multiport --ports 1", "the rule needs `-p`"),
            (
                "-p tcp -m multiport",
                "--sports, --dports or --ports is required",
            ),
            (
                "-p tcp -m multiport --ports 1 --sports 1",
                "--sports cannot be used with --ports",
            ),
            (
                "-p tcp -m multiport --ports 2:2",
                "does not end after it starts",
            ),
            ("-p tcp -m multiport --ports 2:", "`` is neither a port"),
            ("-p tcp -m multiport --ports 1,", "`` is neither a port"),
            (
                "-p tcp -m multiport --ports 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15:16",
                "at most 15 ports",
            ),
        ] {
            let message = Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
            assert!(message.contains(fault), "{options}: {message}");
        }
    }
}
