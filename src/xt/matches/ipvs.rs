//! `-m ipvs`: compares the packet's state in IPVS, the kernel's load balancer.
//!
//! Data of revision 0 (`struct xt_ipvs_mtinfo`, `linux/netfilter/xt_ipvs.h`).

use std::net::IpAddr;

use bstr::ByteSlice;
use chainwright_sys::xt_ipvs::{
    XT_IPVS_DIR, XT_IPVS_IPVS_PROPERTY, XT_IPVS_MASK, XT_IPVS_METHOD, XT_IPVS_PROTO, XT_IPVS_VADDR,
    XT_IPVS_VPORT, XT_IPVS_VPORTCTL, xt_ipvs_mtinfo,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{from_octets, host_and_mask, one_of, port};
use crate::xt::{
    Context, Extension, Family, GivenOption, Mask, Negatable, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// Forwarding method of IPVS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpvsMethod {
    /// Masquerading: IPVS translates addresses (`IP_VS_CONN_F_MASQ`).
    Masq,
    /// Tunneling (`IP_VS_CONN_F_TUNNEL`).
    Ipip,
    /// Direct routing (`IP_VS_CONN_F_DROUTE`).
    Gate,
}

/// The name and the number from `linux/ip_vs.h` of each method.
const METHODS: [(&str, u8, IpvsMethod); 3] = [
    ("GATE", 3, IpvsMethod::Gate),
    ("IPIP", 2, IpvsMethod::Ipip),
    ("MASQ", 0, IpvsMethod::Masq),
];

/// Conditions for a packet's IPVS connection, all of which must be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct IpvsConnection {
    /// Protocol of the virtual service.
    pub protocol: Option<Negatable<u8>>,
    /// Virtual address and mask; an address with bits outside the mask never matches.
    pub address: Option<Negatable<(IpAddr, Mask)>>,
    /// Virtual port.
    pub port: Option<Negatable<u16>>,
    /// Whether the packet is a reply.
    pub reply: Option<bool>,
    /// Forwarding method.
    pub method: Option<Negatable<IpvsMethod>>,
    /// Virtual port of the controlling connection.
    pub control_port: Option<Negatable<u16>>,
}

/// `-m ipvs`: compares the packet's state in IPVS, the kernel's load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ipvs {
    /// The packet belongs to no IPVS connection.
    None,
    /// The packet belongs to an IPVS connection that meets these conditions.
    Connection(IpvsConnection),
}

impl Extension for Ipvs {
    const NAME: &'static str = "ipvs";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("ipvs").inverts(),
        OptionSpec::one("vproto").inverts(),
        OptionSpec::one("vaddr").inverts(),
        OptionSpec::one("vport").inverts(),
        OptionSpec::one("vdir"),
        OptionSpec::one("vmethod").inverts(),
        OptionSpec::one("vportctl").inverts(),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        fn term<T>(info: &xt_ipvs_mtinfo, bit: u8, value: T) -> Option<Negatable<T>> {
            (info.bitmask & bit != 0).then_some(Negatable {
                value,
                invert: info.invert & bit != 0,
            })
        }
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_ipvs_mtinfo = read_struct(info)?;
        if info.bitmask & !XT_IPVS_MASK != 0 || info.bitmask == 0 {
            return None;
        }
        if info.invert & XT_IPVS_IPVS_PROPERTY != 0 {
            return (info.bitmask == XT_IPVS_IPVS_PROPERTY).then_some(Self::None);
        }
        let method = METHODS.iter().find(|(_, own, _)| *own == info.fwd_method);
        let method = match method {
            Some((_, _, method)) => term(&info, XT_IPVS_METHOD, *method),
            None if info.bitmask & XT_IPVS_METHOD != 0 => return None,
            None => None,
        };
        let address = from_octets(family, &info.vaddr.all);
        let mask = Mask::read(family, &info.vmask.all);
        Some(Self::Connection(IpvsConnection {
            protocol: term(&info, XT_IPVS_PROTO, info.l4proto),
            address: term(&info, XT_IPVS_VADDR, (address, mask)),
            port: term(&info, XT_IPVS_VPORT, u16::from_be_bytes(info.vport)),
            reply: term(&info, XT_IPVS_DIR, ()).map(|direction| direction.invert),
            method,
            control_port: term(&info, XT_IPVS_VPORTCTL, u16::from_be_bytes(info.vportctl)),
        }))
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_ipvs_mtinfo::new_zeroed();
        info.bitmask = XT_IPVS_IPVS_PROPERTY;
        let Self::Connection(connection) = self else {
            info.invert = XT_IPVS_IPVS_PROPERTY;
            return Ok(write_struct(&info));
        };
        let mut flag = |bit, invert: bool| {
            info.bitmask |= bit;
            info.invert |= if invert { bit } else { 0 };
        };
        if let Some(protocol) = connection.protocol {
            flag(XT_IPVS_PROTO, protocol.invert);
        }
        if let Some(address) = connection.address {
            flag(XT_IPVS_VADDR, address.invert);
        }
        if let Some(port) = connection.port {
            flag(XT_IPVS_VPORT, port.invert);
        }
        if let Some(reply) = connection.reply {
            flag(XT_IPVS_DIR, reply);
        }
        if let Some(method) = connection.method {
            flag(XT_IPVS_METHOD, method.invert);
        }
        if let Some(port) = connection.control_port {
            flag(XT_IPVS_VPORTCTL, port.invert);
        }
        info.l4proto = connection.protocol.map_or(0, |protocol| protocol.value);
        if let Some(Negatable { value, .. }) = connection.address {
            info.vaddr.all = pack::address("vaddr", family, value.0)?;
            info.vmask.all = value.1.write("vaddr", family)?;
        }
        let number = |port: Option<Negatable<u16>>| port.map_or(0, |port| port.value).to_be_bytes();
        info.vport = number(connection.port);
        info.vportctl = number(connection.control_port);
        if let Some(method) = connection.method {
            let found = METHODS.iter().find(|(_, _, own)| *own == method.value);
            info.fwd_method = found.map_or(0, |(_, number, _)| *number);
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut connection = IpvsConnection::default();
        let mut none = false;
        for one in given {
            match one.option {
                "ipvs" => none = one.invert,
                "vproto" => {
                    let protocol = one.parse(|value| {
                        context
                            .names
                            .protocol(value)
                            .ok_or_else(|| format!("`{value}` is not a protocol number or name"))
                    })?;
                    connection.protocol = Some(Negatable::given(one, protocol));
                }
                "vaddr" => {
                    let address = one.parse(|value| host_and_mask(value, context.family))?;
                    connection.address = Some(Negatable::given(one, address));
                }
                "vport" => {
                    let port = one.parse(|value| port(value, None, context.names))?;
                    connection.port = Some(Negatable::given(one, port));
                }
                "vdir" => {
                    let names = [("ORIGINAL", false), ("REPLY", true)];
                    connection.reply = Some(
                        one.parse(|value| one_of(value.to_ascii_uppercase().as_bstr(), &names))?,
                    );
                }
                "vmethod" => {
                    let names = METHODS.map(|(name, _, method)| (name, method));
                    let method =
                        one.parse(|value| one_of(value.to_ascii_uppercase().as_bstr(), &names))?;
                    connection.method = Some(Negatable::given(one, method));
                }
                _ => {
                    let port = one.parse(|value| port(value, None, context.names))?;
                    connection.control_port = Some(Negatable::given(one, port));
                }
            }
        }
        if given.is_empty() {
            return Err(OptionError::of_all(
                "ipvs needs at least one of --ipvs, --vproto, --vaddr, --vport, --vdir, --vmethod, \
                 --vportctl",
            ));
        }
        if none && connection != IpvsConnection::default() {
            return Err(OptionError::of(
                "ipvs",
                "if negated, it cannot be combined with other options",
            ));
        }
        Ok(if none {
            Self::None
        } else {
            Self::Connection(connection)
        })
    }

    fn print(&self, text: &mut Text) {
        let Self::Connection(connection) = self else {
            text.option(true, "ipvs");
            return;
        };
        if *connection == IpvsConnection::default() {
            text.option(false, "ipvs");
        }
        if let Some(protocol) = connection.protocol {
            let text = text.option(protocol.invert, "vproto").push(" ");
            text.number(protocol.value);
        }
        if let Some(Negatable { value, invert }) = connection.address {
            text.option(invert, "vaddr").push(" ").display(value.0);
            value.1.print(text);
        }
        if let Some(port) = connection.port {
            text.option(port.invert, "vport")
                .push(" ")
                .number(port.value);
        }
        if let Some(reply) = connection.reply {
            let name = if reply { "REPLY" } else { "ORIGINAL" };
            text.option(false, "vdir").word(name);
        }
        if let Some(method) = connection.method {
            let name = METHODS.iter().find(|(_, _, own)| *own == method.value);
            text.option(method.invert, "vmethod")
                .word(name.map_or("", |(name, _, _)| name));
        }
        if let Some(port) = connection.control_port {
            let text = text.option(port.invert, "vportctl").push(" ");
            text.number(port.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the bytes that iptables-legacy 1.8.9 tried to write, on a kernel without IPVS (from
    /// `strace -xx`), without reading them back.
    fn captured(address: &[u8], mask: &[u8], rest: [u8; 8]) -> [u8; 40] {
        let mut info = [0; 40];
        info[..address.len()].copy_from_slice(address);
        info[16..16 + mask.len()].copy_from_slice(mask);
        info[32..].copy_from_slice(&rest);
        info
    }

    #[test]
    fn round_trips_data_of_iptables() {
        let six = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        for (family, info, options) in [
            (
                Family::Ipv4,
                captured(&[1, 2, 3, 4], &[0xff; 3], [0, 80, 6, 2, 0, 21, 0x18, 0x7f]),
                "--vproto 6 --vaddr 1.2.3.4/24 ! --vport 80 --vdir REPLY --vmethod IPIP \
                 --vportctl 21",
            ),
            (
                Family::Ipv4,
                captured(&[], &[], [0, 0, 0, 0, 0, 0, 1, 1]),
                "! --ipvs",
            ),
            (
                Family::Ipv4,
                captured(&[], &[], [0, 0, 0, 0, 0, 0, 0, 1]),
                "--ipvs",
            ),
            (
                Family::Ipv4,
                captured(&[], &[], [0, 0, 17, 0, 0, 0, 0, 3]),
                "--vproto 17",
            ),
            (
                Family::Ipv6,
                captured(&six, &[0xff; 8], [0, 0, 0, 0, 0, 0, 0, 5]),
                "--vaddr fd00::1/64",
            ),
        ] {
            let options = format!("-m ipvs {options}");
            let ipvs = Match::Ipvs(Ipvs::read(family, 0, &info).unwrap());
            assert_eq!(ipvs.to_string(), options);
            assert_eq!(ipvs.encode(family).unwrap().info[..], info, "{options}");
            let rule = Rule::parse(family, &options).unwrap();
            assert_eq!(rule.matches, [ipvs]);
            assert_eq!(Ipvs::read(family, 0, &info[..39]), None);
            assert_eq!(Ipvs::read(family, 1, &info), None);
        }
        let rule = "-m ipvs --vmethod gate --vdir original --vport http";
        let rule = Rule::parse(Family::Ipv4, rule).unwrap();
        let printed = "-m ipvs --vport 80 --vdir ORIGINAL --vmethod GATE";
        assert_eq!(rule.to_string(), printed);
    }

    #[test]
    fn inexpressible_data_stays_opaque() {
        for (method, invert, compared) in [(0, 0, 0), (0, 0, 0x80), (0, 1, 3), (1, 0, 0x21)] {
            let info = captured(&[], &[], [0, 0, 0, method, 0, 0, invert, compared]);
            assert_eq!(Ipvs::read(Family::Ipv4, 0, &info), None, "{compared}");
        }
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "-m ipvs",
                "column 4: -m ipvs: ipvs needs at least one of --ipvs, --vproto, --vaddr, --vport, --vdir, --vmethod, --vportctl",
            ),
            (
                "-m ipvs ! --ipvs --vproto 6",
                "column 11: -m ipvs: --ipvs: if negated, it cannot be combined with other options",
            ),
            (
                "-m ipvs --vmethod nat",
                "column 19: -m ipvs: --vmethod: `NAT` is not one of GATE, IPIP, MASQ",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
