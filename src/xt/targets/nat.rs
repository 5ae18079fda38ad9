//! Common parts of the targets that translate addresses: a range of addresses and ports, in one of
//! the three layouts of `linux/netfilter/nf_nat.h`.

use std::net::IpAddr;

use bstr::{BStr, ByteSlice};
use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::nf_conntrack_tuple_common::nf_conntrack_man_proto;
use chainwright_sys::nf_nat::{
    NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_OFFSET, NF_NAT_RANGE_PROTO_SPECIFIED,
    nf_nat_ipv4_multi_range_compat, nf_nat_range, nf_nat_range2,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{
    self, Parsed, from_octets, number, number_within, split_at_byte, to_octets,
};
use crate::xt::{Context, Family, GivenOption, OptionError, Text, read_struct, write_struct};

/// A range of addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// The first address.
    pub first: IpAddr,
    /// The last address.
    pub last: IpAddr,
}

impl From<IpAddr> for AddressRange {
    /// Creates a single address.
    fn from(address: IpAddr) -> Self {
        Self {
            first: address,
            last: address,
        }
    }
}

/// A range of ports, in host byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NatPorts {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl From<u16> for NatPorts {
    /// Creates a single port.
    fn from(port: u16) -> Self {
        Self {
            first: port,
            last: port,
        }
    }
}

/// Layout of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Layout {
    /// `struct nf_nat_ipv4_multi_range_compat`: IPv4 only.
    Ipv4,
    /// `struct nf_nat_range`.
    Both,
    /// `struct nf_nat_range2`: with a base port.
    Shifted,
}

impl Layout {
    /// Returns the layout of targets whose only revision is 0.
    pub(super) const fn of(family: Family) -> Self {
        match family {
            Family::Ipv4 => Self::Ipv4,
            Family::Ipv6 => Self::Both,
        }
    }

    /// Returns the layout of a revision of `SNAT` and `DNAT`.
    pub(super) const fn of_revision(family: Family, revision: u8) -> Option<Self> {
        match (family, revision) {
            (Family::Ipv4, 0) => Some(Self::Ipv4),
            (_, 1) => Some(Self::Both),
            (_, 2) => Some(Self::Shifted),
            _ => None,
        }
    }
}

/// The content of the data, in any layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub(super) struct Range {
    pub(super) addresses: Option<AddressRange>,
    pub(super) ports: Option<NatPorts>,
    pub(super) base_port: Option<u16>,
    /// `NF_NAT_RANGE_*` flags that the other fields do not imply.
    pub(super) flags: u32,
}

impl Range {
    /// Decodes the data; `None` if it has flags other than `flags` and the ones of the fields, or a
    /// reversed port range.
    pub(super) fn read(layout: Layout, family: Family, info: &[u8], flags: u32) -> Option<Self> {
        let raw = match layout {
            Layout::Ipv4 => {
                let info: nf_nat_ipv4_multi_range_compat = read_struct(info)?;
                let [range] = info.range;
                if info.rangesize != 1 {
                    return None;
                }
                nf_nat_range2 {
                    flags: range.flags,
                    min_addr: inet(range.min_ip.into()),
                    max_addr: inet(range.max_ip.into()),
                    min_proto: range.min,
                    max_proto: range.max,
                    ..nf_nat_range2::new_zeroed()
                }
            }
            Layout::Both => {
                let range: nf_nat_range = read_struct(info)?;
                nf_nat_range2 {
                    flags: range.flags,
                    min_addr: range.min_addr,
                    max_addr: range.max_addr,
                    min_proto: range.min_proto,
                    max_proto: range.max_proto,
                    ..nf_nat_range2::new_zeroed()
                }
            }
            Layout::Shifted => read_struct(info)?,
        };
        let has = |flag| raw.flags & flag != 0;
        let port = |proto: nf_conntrack_man_proto| u16::from_be_bytes(proto.all);
        let range = Self {
            addresses: has(NF_NAT_RANGE_MAP_IPS).then(|| AddressRange {
                first: from_octets(family, &raw.min_addr.all),
                last: from_octets(family, &raw.max_addr.all),
            }),
            ports: has(NF_NAT_RANGE_PROTO_SPECIFIED).then(|| NatPorts {
                first: port(raw.min_proto),
                last: port(raw.max_proto),
            }),
            base_port: (layout == Layout::Shifted && has(NF_NAT_RANGE_PROTO_OFFSET))
                .then(|| port(raw.base_proto)),
            flags: raw.flags & flags,
        };
        let ordered = range.ports.is_none_or(|ports| ports.first <= ports.last);
        (ordered && range.all_flags() == raw.flags).then_some(range)
    }

    fn all_flags(&self) -> u32 {
        self.flags
            | flag(self.addresses.is_some(), NF_NAT_RANGE_MAP_IPS)
            | flag(self.ports.is_some(), NF_NAT_RANGE_PROTO_SPECIFIED)
            | flag(self.base_port.is_some(), NF_NAT_RANGE_PROTO_OFFSET)
    }

    /// Encodes the data; `option` is the option with the addresses.
    pub(super) fn write(
        &self,
        option: &'static str,
        family: Family,
        layout: Layout,
    ) -> Result<Vec<u8>, OptionError> {
        let only = "only DNAT shifts ports, and only in revision 2";
        pack::require(
            self.base_port.is_none() || layout == Layout::Shifted,
            option,
            only,
        )?;
        let proto = |port: Option<u16>| nf_conntrack_man_proto {
            all: port.unwrap_or(0).to_be_bytes(),
        };
        let address = |address: Option<IpAddr>| match address {
            None => Ok(nf_inet_addr { all: [0; 16] }),
            Some(address) => pack::address(option, family, address).map(|all| nf_inet_addr { all }),
        };
        let flags = self.all_flags();
        let min_addr = address(self.addresses.map(|range| range.first))?;
        let max_addr = address(self.addresses.map(|range| range.last))?;
        let min_proto = proto(self.ports.map(|range| range.first));
        let max_proto = proto(self.ports.map(|range| range.last));
        Ok(match layout {
            Layout::Ipv4 => {
                let mut info = nf_nat_ipv4_multi_range_compat::new_zeroed();
                info.rangesize = 1;
                let range = &mut info.range[0];
                range.flags = flags;
                range.min_ip.copy_from_slice(&min_addr.all[..4]);
                range.max_ip.copy_from_slice(&max_addr.all[..4]);
                (range.min, range.max) = (min_proto, max_proto);
                write_struct(&info)
            }
            Layout::Both => {
                let info = nf_nat_range {
                    flags,
                    min_addr,
                    max_addr,
                    min_proto,
                    max_proto,
                };
                write_struct(&info)
            }
            Layout::Shifted => {
                let info = nf_nat_range2 {
                    flags,
                    min_addr,
                    max_addr,
                    min_proto,
                    max_proto,
                    base_proto: proto(self.base_port),
                    ..nf_nat_range2::new_zeroed()
                };
                write_struct(&info)
            }
        })
    }

    /// Returns `true` if the range has that flag.
    pub(super) const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Appends addresses and ports as an option: `address-address:port-port/port`, with brackets
    /// around an IPv6 address before ports.
    pub(super) fn print_to(&self, text: &mut Text, option: &str) {
        self.print_addresses(text.option(false, option).push(" "));
    }

    /// Appends them as `iptables -L` shows them.
    pub(super) fn list_to(&self, text: &mut Text) {
        self.print_addresses(text.push(" to:"));
    }

    fn print_addresses(&self, text: &mut Text) {
        if let Some(AddressRange { first, last }) = self.addresses {
            let brackets = first.is_ipv6() && self.ports.is_some();
            text.push(if brackets { "[" } else { "" }).address(first);
            if last != first {
                text.push("-").address(last);
            }
            text.push(if brackets { "]" } else { "" });
        }
        if let Some(ports) = self.ports {
            text.push(":");
            self.print_range(ports, text);
        }
    }

    /// Appends the ports, if any, as the option `--to-ports`.
    pub(super) fn print_ports(&self, text: &mut Text) {
        if let Some(ports) = self.ports {
            text.option(false, "to-ports").push(" ");
            self.print_range(ports, text);
        }
    }

    /// Appends the ports as `iptables -L` shows them, after these words.
    pub(super) fn list_ports(&self, words: &str, text: &mut Text) {
        if let Some(ports) = self.ports {
            self.print_range(ports, text.push(words));
        }
    }

    fn print_range(&self, NatPorts { first, last }: NatPorts, text: &mut Text) {
        text.number(first);
        // iptables accepts a base port only after a range.
        if last != first || self.base_port.is_some() {
            text.push("-").number(last);
        }
        if let Some(base) = self.base_port {
            text.push("/").number(base);
        }
    }

    /// Parses the value of `--to-source` or `--to-destination`.
    pub(super) fn parse_to(
        context: &Context<'_>,
        given: &GivenOption<'_>,
    ) -> Result<Self, OptionError> {
        given.parse(|value| to(context, value))
    }

    /// Parses the value of `--to-ports`.
    pub(super) fn parse_ports(
        context: &Context<'_>,
        given: &GivenOption<'_>,
    ) -> Result<NatPorts, OptionError> {
        given.parse(|value| match ports(context, value)? {
            (ports, None) => Ok(ports),
            (_, Some(_)) => Err(NO_BASE_PORT.to_owned()),
        })
    }
}

/// The error for an invalid base port.
pub(super) const NO_BASE_PORT: &str =
    "only DNAT shifts ports: a base port after `/` is not allowed here";

/// Returns the flag if it is set, else 0.
pub(super) const fn flag(set: bool, flag: u32) -> u32 {
    if set { flag } else { 0 }
}

fn inet(address: IpAddr) -> nf_inet_addr {
    nf_inet_addr {
        all: to_octets(address),
    }
}

/// Parses `port`, `port-port` or `port-port/port`; a single port, and the one after the `/`, may be
/// a service name.
fn ports(context: &Context<'_>, value: &BStr) -> Parsed<(NatPorts, Option<u16>)> {
    // Like iptables, this only considers the protocol, not a preceding `!`.
    let has_ports = context
        .protocol
        .is_some_and(|(protocol, _)| matches!(protocol, 1 | 6 | 17 | 33 | 132));
    if !has_ports {
        return Err("ports require a rule with -p tcp, udp, sctp, dccp or icmp".to_owned());
    }
    if !value.first().is_some_and(u8::is_ascii_digit) {
        return Ok((value::port(value, None, context.names)?.into(), None));
    }
    if value.contains(&b':') {
        return Err(format!(
            "`{value}`: a range of ports is written with a dash, like 80-90"
        ));
    }
    let (range, base) = match split_at_byte(value, b'/') {
        None => (value, None),
        Some((range, base)) => (range.as_bstr(), Some(base.as_bstr())),
    };
    let range = match split_at_byte(range, b'-') {
        None => number::<u16>(range)?.into(),
        Some((first, last)) => NatPorts {
            first: number(first.as_bstr())?,
            last: number(last.as_bstr())?,
        },
    };
    if range.last < range.first {
        return Err(format!("the range `{value}` ends before it starts"));
    }
    let base = base.map(|base| match base.first() {
        Some(digit) if digit.is_ascii_digit() => number_within(base, 1..=u16::MAX),
        _ => value::port(base, None, context.names),
    });
    Ok((range, base.transpose()?))
}

fn to(context: &Context<'_>, value: &BStr) -> Parsed<Range> {
    let (address, port) = if let Some(bracketed) = value.strip_prefix(b"[") {
        if context.family == Family::Ipv4 {
            return Err(format!("`{value}`: brackets are for IPv6 addresses"));
        }
        match bracketed.split_once_str("]") {
            Some((address, b"")) => (address, None),
            Some((address, [b':', port @ ..])) => (address, Some(port)),
            _ => return Err(format!("`{value}` is not like [address-address]:port-port")),
        }
    } else {
        match split_at_byte(value, b':') {
            Some((address, port)) if !port.contains(&b':') => (address, Some(port)),
            // Several colons: an IPv6 address.
            _ => (&**value, None),
        }
    };
    let ports = port
        .map(|port| ports(context, port.as_bstr()))
        .transpose()?;
    let addresses = if address.is_empty() && ports.is_some() {
        None
    } else {
        let read = |text: &[u8]| value::address(text.as_bstr(), context.family);
        Some(match split_at_byte(address, b'-') {
            None => read(address)?.into(),
            Some((first, last)) => AddressRange {
                first: read(first)?,
                last: read(last)?,
            },
        })
    };
    Ok(Range {
        addresses,
        ports: ports.map(|(ports, _)| ports),
        base_port: ports.and_then(|(_, base)| base),
        flags: 0,
    })
}
