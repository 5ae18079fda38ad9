//! `-j TPROXY`: redirects the packet to a local socket without changing its addresses.
//!
//! Data (`linux/netfilter/xt_TPROXY.h`): revision 0, for IPv4, `struct xt_tproxy_target_info`;
//! revision 1, the written one, `struct xt_tproxy_target_info_v1`.

use std::net::IpAddr;

use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_tproxy_target::{xt_tproxy_target_info, xt_tproxy_target_info_v1};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{address, from_octets, masked, port};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j TPROXY`: redirects the packet to a local socket without changing its addresses.
///
/// The socket must be bound to this address and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tproxy {
    /// The socket's port, in host byte order; 0 for the packet's destination port.
    pub port: u16,
    /// The socket's address, of the rule's family; the unspecified one (`0.0.0.0`, `::`) for that
    /// of the incoming interface.
    pub address: IpAddr,
    /// Bits to flip in the packet's mark after `mask` is cleared.
    pub mark: u32,
    /// Bits to clear in the packet's mark.
    pub mask: u32,
}

impl Extension for Tproxy {
    const NAME: &'static str = "TPROXY";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("on-port").required(),
        OptionSpec::one("on-ip"),
        OptionSpec::one("tproxy-mark"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-p tcp -j TPROXY --on-port 70000",
        "-p tcp -j TPROXY --on-port 4464 --on-ip 0.0.0.0 --tproxy-mark 0x0/0x0",
        "A port has 16 bits; iptables truncates a larger number.",
    )
    .within("mangle", "PREROUTING")];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        match (family, revision) {
            (Family::Ipv4, 0) => {
                let info: xt_tproxy_target_info = read_struct(info)?;
                Some(Self {
                    port: u16::from_be_bytes(info.lport),
                    address: info.laddr.into(),
                    mark: info.mark_value,
                    mask: info.mark_mask,
                })
            }
            (_, 1) => {
                let info: xt_tproxy_target_info_v1 = read_struct(info)?;
                Some(Self {
                    port: u16::from_be_bytes(info.lport),
                    address: from_octets(family, &info.laddr.all),
                    mark: info.mark_value,
                    mask: info.mark_mask,
                })
            }
            _ => None,
        }
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tproxy_target_info_v1 {
            mark_mask: self.mask,
            mark_value: self.mark,
            laddr: nf_inet_addr {
                all: pack::address("on-ip", family, self.address)?,
            },
            lport: self.port.to_be_bytes(),
            ..xt_tproxy_target_info_v1::new_zeroed()
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let Some(protocol) = context.protocol_among(&[6, 17]) else {
            return Err(OptionError::of_all("the rule needs -p tcp or -p udp"));
        };
        let mut value = Self {
            port: 0,
            address: from_octets(context.family, &[0; 16]),
            mark: 0,
            mask: 0,
        };
        for one in given {
            match one.option {
                "on-port" => {
                    value.port = one.parse(|value| port(value, Some(protocol), context.names))?
                }
                "on-ip" => value.address = one.parse(|value| address(value, context.family))?,
                _ => (value.mark, value.mask) = one.parse(masked)?,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "on-port").push(" ").number(self.port);
        text.option(false, "on-ip").push(" ").address(self.address);
        text.option(false, "tproxy-mark").push(" ").hex(self.mark);
        text.push("/").hex(self.mask);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" TPROXY redirect ");
        let brackets = self.address.is_ipv6();
        text.push(if brackets { "[" } else { "" })
            .address(self.address);
        text.push(if brackets { "]:" } else { ":" })
            .number(self.port);
        text.push(" mark ").hex(self.mark);
        text.push("/").hex(self.mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let value = Tproxy {
            port: 15001,
            address: [127, 0, 0, 1].into(),
            mark: 0x200,
            mask: 0xf00,
        };
        let data =
            "00 0f 00 00 00 02 00 00 7f 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 3a 99 00 00";
        let printed = " --on-port 15001 --on-ip 127.0.0.1 --tproxy-mark 0x200/0xf00";
        check(Family::Ipv4, data, &value, printed);
        let older = [0, 15, 0, 0, 0, 2, 0, 0, 127, 0, 0, 1, 0x3a, 0x99, 0, 0];
        assert_eq!(Tproxy::read(Family::Ipv4, 0, &older), Some(value));
        assert_eq!(Tproxy::read(Family::Ipv4, 0, &older[..15]), None);
        assert!(value.write(Family::Ipv6).is_err());
    }

    #[test]
    fn reports_errors() {
        let port =
            |protocol, value| refused::<Tproxy>(Family::Ipv4, protocol, &[("on-port", value)]);
        assert_eq!(port(None, "1"), "the rule needs -p tcp or -p udp");
        assert_eq!(port(Some(132), "1"), "the rule needs -p tcp or -p udp");
        // iptables 1.8.9 parses this as 4464.
        assert_eq!(
            port(Some(6), "70000"),
            "--on-port: `70000` is more than 65535"
        );
        assert_eq!(
            refused::<Tproxy>(
                Family::Ipv6,
                Some(6),
                &[("on-port", "1"), ("on-ip", "127.0.0.1")]
            ),
            "--on-ip: `127.0.0.1` is not an IPv6 address (host names are not looked up)"
        );
    }
}
