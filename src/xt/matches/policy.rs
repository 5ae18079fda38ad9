//! `-m policy`: compares the IPsec transformations of the packet.
//!
//! Data of revision 0 (`struct xt_policy_info`, `linux/netfilter/xt_policy.h`).

use std::net::IpAddr;

use bstr::BStr;
use chainwright_sys::xt_policy::{
    XT_POLICY_MATCH_IN, XT_POLICY_MATCH_NONE, XT_POLICY_MATCH_OUT, XT_POLICY_MATCH_STRICT,
    XT_POLICY_MAX_ELEM, XT_POLICY_MODE_TRANSPORT, XT_POLICY_MODE_TUNNEL, xt_policy_addr,
    xt_policy_elem, xt_policy_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, from_octets, host_and_mask, number, one_of};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, Mask, Names, Negatable,
    OptionError, OptionSpec, Text, read_struct, write_struct,
};

/// The direction of the transformations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyDirection {
    /// Transformations of the received packet.
    In,
    /// Transformations of the packet to be sent.
    Out,
}

/// Mode of a transformation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyMode {
    /// Transport.
    Transport,
    /// Tunnel.
    Tunnel,
}

/// An end of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyAddress {
    /// The address; with bits outside the mask it never matches.
    pub address: IpAddr,
    /// Bits to compare.
    pub mask: Mask,
}

/// Conditions for a transformation, all of which must be true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct PolicyElement {
    /// Request id of the policy.
    pub reqid: Option<Negatable<u32>>,
    /// Security parameter index as a number in host byte order, which iptables also writes and
    /// prints. But the kernel compares the data with the packet's index in network byte order, so
    /// that packets on a little-endian host match the number with its bytes swapped.
    pub spi: Option<Negatable<u32>>,
    /// Protocol: 50 (ESP), 51 (AH) or 108 (IPComp).
    pub protocol: Option<Negatable<u8>>,
    /// Mode.
    pub mode: Option<Negatable<PolicyMode>>,
    /// Destination of the tunnel.
    pub tunnel_destination: Option<Negatable<PolicyAddress>>,
    /// Source of the tunnel.
    pub tunnel_source: Option<Negatable<PolicyAddress>>,
}

/// Required transformations of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PolicyRequirement {
    /// No transformation.
    None,
    /// At least one transformation that meets these conditions.
    Any(Box<PolicyElement>),
    /// Exactly these transformations, in this order: 1 to 4.
    Strict(Vec<PolicyElement>),
}

/// `-m policy`: compares the IPsec transformations of the packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The direction of the transformations.
    pub direction: PolicyDirection,
    /// The required transformations.
    pub wanted: PolicyRequirement,
}

const PROTOCOLS: [u8; 3] = [50, 51, 108];

/// Returns a bit of `struct xt_policy_spec`, a bit field in C, whose first bit is the lowest on
/// little-endian machines, and the highest on big-endian ones.
const fn bit(number: u32) -> u8 {
    if cfg!(target_endian = "big") {
        0x80 >> number
    } else {
        1 << number
    }
}
const SADDR: u8 = bit(0);
const DADDR: u8 = bit(1);
const PROTO: u8 = bit(2);
const MODE: u8 = bit(3);
const SPI: u8 = bit(4);
const REQID: u8 = bit(5);

impl PolicyElement {
    fn read(family: Family, info: &xt_policy_elem) -> Option<Self> {
        fn term<T>(info: &xt_policy_elem, bit: u8, value: T) -> Option<Negatable<T>> {
            (info.r#match & bit != 0).then_some(Negatable {
                value,
                invert: info.invert & bit != 0,
            })
        }
        if info.r#match & !(SADDR | DADDR | PROTO | MODE | SPI | REQID) != 0 {
            return None;
        }
        let mode = match info.mode {
            XT_POLICY_MODE_TRANSPORT => PolicyMode::Transport,
            XT_POLICY_MODE_TUNNEL => PolicyMode::Tunnel,
            _ => return None,
        };
        let address = |address: &xt_policy_addr, mask: &xt_policy_addr| PolicyAddress {
            address: from_octets(family, &address.a6),
            mask: Mask::read(family, &mask.a6),
        };
        let element = Self {
            reqid: term(info, REQID, info.reqid),
            spi: term(info, SPI, u32::from_ne_bytes(info.spi)),
            protocol: term(info, PROTO, info.proto),
            mode: term(info, MODE, mode),
            tunnel_destination: term(info, DADDR, address(&info.daddr, &info.dmask)),
            tunnel_source: term(info, SADDR, address(&info.saddr, &info.smask)),
        };
        let known = element
            .protocol
            .is_none_or(|protocol| PROTOCOLS.contains(&protocol.value));
        (known && element.tunnel_fault().is_none()).then_some(element)
    }

    fn write(&self, family: Family, info: &mut xt_policy_elem) -> Result<(), OptionError> {
        let mut flag = |bit, invert: bool| {
            info.r#match |= bit;
            info.invert |= if invert { bit } else { 0 };
        };
        if let Some(term) = self.reqid {
            flag(REQID, term.invert);
        }
        if let Some(term) = self.spi {
            flag(SPI, term.invert);
        }
        if let Some(term) = self.protocol {
            flag(PROTO, term.invert);
        }
        if let Some(term) = self.mode {
            flag(MODE, term.invert);
        }
        if let Some(term) = self.tunnel_destination {
            flag(DADDR, term.invert);
        }
        if let Some(term) = self.tunnel_source {
            flag(SADDR, term.invert);
        }
        info.reqid = self.reqid.map_or(0, |term| term.value);
        info.spi = self.spi.map_or(0, |term| term.value).to_ne_bytes();
        info.proto = self.protocol.map_or(0, |term| term.value);
        info.mode = match self.mode.map(|term| term.value) {
            Some(PolicyMode::Tunnel) => XT_POLICY_MODE_TUNNEL,
            Some(PolicyMode::Transport) | None => XT_POLICY_MODE_TRANSPORT,
        };
        if let Some(Negatable { value, .. }) = self.tunnel_destination {
            info.daddr.a6 = pack::address("tunnel-dst", family, value.address)?;
            info.dmask.a6 = value.mask.write("tunnel-dst", family)?;
        }
        if let Some(Negatable { value, .. }) = self.tunnel_source {
            info.saddr.a6 = pack::address("tunnel-src", family, value.address)?;
            info.smask.a6 = value.mask.write("tunnel-src", family)?;
        }
        Ok(())
    }

    /// Parses one of its options.
    fn add(&mut self, context: &Context<'_>, one: &GivenOption<'_>) -> Result<(), OptionError> {
        fn set<T>(
            term: &mut Option<Negatable<T>>,
            one: &GivenOption<'_>,
            read: impl FnOnce(&BStr) -> Parsed<T>,
        ) -> Result<(), OptionError> {
            let again = "it can only be used once per element (--next starts another)";
            if term.is_some() {
                return Err(OptionError::of(one.option, again));
            }
            *term = Some(Negatable::given(one, one.parse(read)?));
            Ok(())
        }
        let end = |value: &BStr| {
            host_and_mask(value, context.family)
                .map(|(address, mask)| PolicyAddress { address, mask })
        };
        match one.option {
            "reqid" => set(&mut self.reqid, one, number),
            "spi" => set(&mut self.spi, one, number),
            "proto" => set(&mut self.protocol, one, |value| {
                protocol(value, context.names)
            }),
            "mode" => set(&mut self.mode, one, |value| one_of(value, &MODES)),
            "tunnel-src" => set(&mut self.tunnel_source, one, end),
            _ => set(&mut self.tunnel_destination, one, end),
        }
    }

    /// Returns a tunnel option that is invalid because the element does not require tunnel mode.
    fn tunnel_fault(&self) -> Option<&'static str> {
        let option = match (self.tunnel_source, self.tunnel_destination) {
            (Some(_), _) => "tunnel-src",
            (None, Some(_)) => "tunnel-dst",
            (None, None) => return None,
        };
        let tunnel = self
            .mode
            .is_some_and(|mode| (mode.value == PolicyMode::Tunnel) != mode.invert);
        (!tunnel).then_some(option)
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn print(&self, text: &mut Text) {
        if let Some(reqid) = self.reqid {
            let text = text.option(reqid.invert, "reqid").push(" ");
            text.number(reqid.value);
        }
        if let Some(spi) = self.spi {
            text.option(spi.invert, "spi").push(" ").hex(spi.value);
        }
        if let Some(proto) = self.protocol {
            text.option(proto.invert, "proto");
            text.push(" ").protocol(proto.value);
        }
        if let Some(mode) = self.mode {
            let name = MODES.iter().find(|(_, own)| *own == mode.value);
            text.option(mode.invert, "mode")
                .word(name.map_or("", |(name, _)| name));
        }
        for (name, end) in [
            ("tunnel-dst", self.tunnel_destination),
            ("tunnel-src", self.tunnel_source),
        ] {
            if let Some(Negatable { value, invert }) = end {
                text.option(invert, name).push(" ").display(value.address);
                value.mask.print(text);
            }
        }
    }
}

const DIRECTIONS: [(&str, PolicyDirection); 2] =
    [("in", PolicyDirection::In), ("out", PolicyDirection::Out)];
const MODES: [(&str, PolicyMode); 2] = [
    ("transport", PolicyMode::Transport),
    ("tunnel", PolicyMode::Tunnel),
];

fn protocol(value: &BStr, names: &Names) -> Parsed<u8> {
    let number = names
        .protocol(value)
        .filter(|number| PROTOCOLS.contains(number));
    number.ok_or_else(|| format!("`{value}` is not one of esp, ah, ipcomp"))
}

impl Policy {
    fn elements(&self) -> &[PolicyElement] {
        match &self.wanted {
            PolicyRequirement::None => &[],
            PolicyRequirement::Any(element) => std::slice::from_ref(element),
            PolicyRequirement::Strict(elements) => elements,
        }
    }
}

impl Extension for Policy {
    const NAME: &'static str = "policy";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("dir").required(),
        OptionSpec::one("pol"),
        OptionSpec::switch("strict"),
        OptionSpec::one("reqid").inverts().repeats(),
        OptionSpec::one("spi").inverts().repeats(),
        OptionSpec::one("tunnel-src").inverts().repeats(),
        OptionSpec::one("tunnel-dst").inverts().repeats(),
        OptionSpec::one("proto").inverts().repeats(),
        OptionSpec::one("mode").inverts().repeats(),
        OptionSpec::switch("next").repeats(),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m policy --dir in --pol ipsec --mode tunnel --tunnel-src 10.0.1.0/255.0.255.0",
        "-m policy --dir in --pol ipsec --mode tunnel --tunnel-src 10.0.1.0",
        "iptables misreads a non-contiguous mask.",
    )];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_policy_info = read_struct(info)?;
        let elements = info.pol.get(..usize::from(info.len))?;
        let mut elements = elements
            .iter()
            .map(|element| PolicyElement::read(family, element))
            .collect::<Option<Vec<_>>>()?;
        let direction = match info.flags & (XT_POLICY_MATCH_IN | XT_POLICY_MATCH_OUT) {
            XT_POLICY_MATCH_IN => PolicyDirection::In,
            XT_POLICY_MATCH_OUT => PolicyDirection::Out,
            _ => return None,
        };
        let rest = info.flags & !(XT_POLICY_MATCH_IN | XT_POLICY_MATCH_OUT);
        let wanted = match (rest, elements.len()) {
            (XT_POLICY_MATCH_NONE, 0) => PolicyRequirement::None,
            (0, 1) => PolicyRequirement::Any(Box::new(elements.pop()?)),
            (XT_POLICY_MATCH_STRICT, 1..) if !elements.iter().any(PolicyElement::is_empty) => {
                PolicyRequirement::Strict(elements)
            }
            _ => return None,
        };
        Some(Self { direction, wanted })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_policy_info::new_zeroed();
        let elements = pack::at_most("next", self.elements(), info.pol.len(), "elements")?;
        for (element, into) in elements.iter().zip(&mut info.pol) {
            element.write(family, into)?;
            info.len += 1;
        }
        info.flags |= match self.direction {
            PolicyDirection::In => XT_POLICY_MATCH_IN,
            PolicyDirection::Out => XT_POLICY_MATCH_OUT,
        };
        info.flags |= match self.wanted {
            PolicyRequirement::None => XT_POLICY_MATCH_NONE,
            PolicyRequirement::Any(_) => 0,
            PolicyRequirement::Strict(_) => XT_POLICY_MATCH_STRICT,
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut direction = PolicyDirection::In;
        let (mut none, mut strict) = (false, false);
        let (mut elements, mut element) = (Vec::new(), PolicyElement::default());
        for one in given {
            match one.option {
                "dir" => direction = one.parse(|value| one_of(value, &DIRECTIONS))?,
                "pol" => {
                    none = one.parse(|value| one_of(value, &[("none", true), ("ipsec", false)]))?;
                }
                "strict" => strict = true,
                "next" if elements.len() + 1 == XT_POLICY_MAX_ELEM => {
                    return Err(OptionError::of("next", "at most 4 elements are allowed"));
                }
                "next" => elements.push(std::mem::take(&mut element)),
                _ => element.add(context, one)?,
            }
        }
        elements.push(element);
        if none && (strict || elements.iter().any(|element| !element.is_empty())) {
            return Err(OptionError::of(
                "pol",
                "`none` cannot be combined with --strict or the options of an element",
            ));
        }
        if elements.len() > 1 && !strict {
            return Err(OptionError::needs("next", &["strict"]));
        }
        if strict && elements.iter().any(PolicyElement::is_empty) {
            return Err(OptionError::of(
                "strict",
                "each element needs one of --reqid, --spi, --proto, --mode",
            ));
        }
        if let Some(option) = elements.iter().find_map(PolicyElement::tunnel_fault) {
            return Err(OptionError::needs(option, &["mode tunnel"]));
        }
        let wanted = match (strict, elements.pop()) {
            (true, last) => {
                elements.extend(last);
                PolicyRequirement::Strict(elements)
            }
            (false, Some(element)) if !none => PolicyRequirement::Any(Box::new(element)),
            _ => PolicyRequirement::None,
        };
        Ok(Self { direction, wanted })
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "dir").word(match self.direction {
            PolicyDirection::In => "in",
            PolicyDirection::Out => "out",
        });
        text.option(false, "pol").word(match self.wanted {
            PolicyRequirement::None => "none",
            PolicyRequirement::Any(_) | PolicyRequirement::Strict(_) => "ipsec",
        });
        if matches!(self.wanted, PolicyRequirement::Strict(_)) {
            text.option(false, "strict");
        }
        for (position, element) in self.elements().iter().enumerate() {
            if position > 0 {
                text.option(false, "next");
            }
            element.print(text);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" policy match").bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data from iptables-legacy 1.8.9 for `--dir in --pol ipsec --strict ! --reqid 7
    /// --spi 0x1234 --proto esp --mode tunnel --tunnel-src 10.1.2.3/24 --next --proto ah` (from
    /// `strace -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 312];
        info[..4].copy_from_slice(&[10, 1, 2, 3]);
        info[16..19].fill(0xff);
        info[64..76].copy_from_slice(&[0x34, 0x12, 0, 0, 7, 0, 0, 0, 50, 1, 0x3d, 0x20]);
        (info[76 + 72], info[76 + 74]) = (51, 4);
        (info[304], info[306]) = (9, 2);
        info
    }

    fn term<T>(value: T) -> Option<Negatable<T>> {
        Some(Negatable {
            value,
            invert: false,
        })
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let tunnel = PolicyElement {
            reqid: Some(Negatable {
                value: 7,
                invert: true,
            }),
            spi: term(0x1234),
            protocol: term(50),
            mode: term(PolicyMode::Tunnel),
            tunnel_destination: None,
            tunnel_source: term(PolicyAddress {
                address: "10.1.2.3".parse().unwrap(),
                mask: Mask::prefix(Family::Ipv4, 24).unwrap(),
            }),
        };
        let ah = PolicyElement {
            protocol: term(51),
            ..PolicyElement::default()
        };
        let policy = Policy {
            direction: PolicyDirection::In,
            wanted: PolicyRequirement::Strict(vec![tunnel, ah]),
        };
        let read = Policy::read(Family::Ipv4, 0, &captured());
        assert_eq!(read, Some(policy.clone()));
        assert_eq!(
            Match::Policy(policy).encode(Family::Ipv4).unwrap().info[..],
            captured()
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        let read = |info: &[u8]| Policy::read(Family::Ipv4, 0, info);
        assert_eq!(read(&captured()[..307]), None);
        assert_eq!(Policy::read(Family::Ipv4, 1, &captured()), None);
        for (at, byte) in [
            (72, 6),      // not an IPsec protocol
            (73, 2),      // an unknown mode
            (73, 0),      // a tunnel's address without a tunnel
            (74, 0x7d),   // an unknown field is compared
            (76 + 74, 0), // an empty element
            (304, 8),     // no direction
            (304, 11),    // both directions
            (304, 1),     // two elements, but not strict
            (304, 5),     // "none", but with elements
            (304, 0x19),  // an unknown flag
            (306, 5),     // too many elements
            (306, 0),     // no element
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(&info), None, "{at}");
        }
    }

    #[test]
    fn masks_with_gaps_are_kept() {
        // iptables 1.8.9 turns this into a full mask.
        let rule = "-m policy --dir in --pol ipsec --mode tunnel --tunnel-dst 5.0.7.0/255.0.255.0";
        let parsed = Rule::parse(Family::Ipv4, rule).unwrap();
        assert_eq!(parsed.to_string(), rule);
        let [Match::Policy(policy)] = &parsed.matches[..] else {
            panic!("{parsed:?}");
        };
        let info = policy.write(Family::Ipv4).unwrap();
        assert_eq!(Policy::read(Family::Ipv4, 0, &info).as_ref(), Some(policy));
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            ("--pol ipsec", "column 4: -m policy: --dir is required"),
            (
                "--dir in --pol none --reqid 5",
                "column 20: -m policy: --pol: `none` cannot be combined with --strict or the options of an element",
            ),
            (
                "--dir in --pol none --strict",
                "column 20: -m policy: --pol: `none` cannot be combined with --strict or the options of an element",
            ),
            (
                "--dir in --reqid 1 --next --reqid 2",
                "column 30: -m policy: --next needs --strict",
            ),
            (
                "--dir in --strict --reqid 1 --next",
                "column 20: -m policy: --strict: each element needs one of --reqid, --spi, \
                 --proto, --mode",
            ),
            (
                "--dir in --reqid 1 --reqid 2",
                "column 30: -m policy: --reqid: it can only be used once per element (--next starts another)",
            ),
            (
                "--dir in ! --mode tunnel --tunnel-dst 5.6.7.8",
                "column 36: -m policy: --tunnel-dst needs --mode tunnel",
            ),
            (
                "--dir in --proto tcp",
                "column 28: -m policy: --proto: `tcp` is not one of esp, ah, ipcomp",
            ),
            (
                "--dir in --strict --spi 1 --next --spi 2 --next --spi 3 --next --spi 4 --next",
                "column 82: -m policy: --next: at most 4 elements are allowed",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, format!("-m policy {options}")).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
