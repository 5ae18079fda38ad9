//! `-j TEE`: sends a copy of the packet to another host.
//!
//! Data of revision 1 (`struct xt_tee_tginfo`, `linux/netfilter/xt_TEE.h`).

use std::net::IpAddr;

use bstr::BString;
use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_tee_target::xt_tee_tginfo;
use zerocopy::FromZeros;

use super::ct::is_word;
use crate::xt::pack;
use crate::xt::value::{address, from_octets, string, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j TEE`: sends a copy of the packet to another host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tee {
    /// The host, on a directly connected network; of the rule's family.
    pub gateway: IpAddr,
    /// Name of the outgoing interface, at most 15 bytes; empty to use the routing table.
    pub out_interface: BString,
}

impl Extension for Tee {
    const NAME: &'static str = "TEE";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("gateway").required(),
        OptionSpec::one("oif"),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_tee_tginfo = read_struct(info)?;
        let name = until_nul(&info.oif).filter(|name| is_word(name))?;
        let gateway = from_octets(family, &info.gw.all);
        (!gateway.is_unspecified()).then(|| Self {
            gateway,
            out_interface: name.to_owned(),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tee_tginfo {
            gw: nf_inet_addr {
                all: pack::address("gateway", family, self.gateway)?,
            },
            oif: pack::text("oif", &self.out_interface)?,
            ..xt_tee_tginfo::new_zeroed()
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut value = Self {
            gateway: from_octets(context.family, &[0; 16]),
            out_interface: BString::default(),
        };
        for one in given {
            if one.option == "gateway" {
                value.gateway = one.parse(|value| address(value, context.family))?;
                if value.gateway.is_unspecified() {
                    return Err(one.error("a copy needs the address of a host"));
                }
            } else {
                value.out_interface = one.parse(|value| {
                    let name = string(value, 0..=15)?;
                    if !is_word(name) {
                        return Err(format!("`{name}` is not an interface name"));
                    }
                    Ok(name.to_owned())
                })?;
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "gateway")
            .push(" ")
            .address(self.gateway);
        if !self.out_interface.is_empty() {
            text.option(false, "oif").word(&self.out_interface);
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" TEE gw:").address(self.gateway);
        if !self.out_interface.is_empty() {
            text.push(" oif=").push(&self.out_interface);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::{check, refused};

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn round_trips_data_of_iptables() {
        let value = Tee {
            gateway: [192, 0, 2, 1].into(),
            out_interface: "eth0".into(),
        };
        let data = "c0 00 02 01 00 00 00 00 00 00 00 00 00 00 00 00 65 74 68 30".to_owned()
            + &" 00".repeat(20);
        let printed = " --gateway 192.0.2.1 --oif eth0";
        check(Family::Ipv4, &data, &value, printed);
        // Names that cannot be printed without quotes, or that have no NUL.
        let info = value.write(Family::Ipv4).unwrap();
        for name in [*b"a b\0", *b"a\"b\0", *b"long"] {
            let mut other = info.clone();
            other[16..32].copy_from_slice(&name.repeat(4));
            assert_eq!(Tee::read(Family::Ipv4, 1, &other), None);
        }
        assert_eq!(Tee::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn reports_errors() {
        for (option, value, reason) in [
            ("gateway", "0.0.0.0", "a copy needs the address of a host"),
            ("oif", "a b", "`a b` is not an interface name"),
            (
                "oif",
                "0123456789abcdef",
                "it has 16 bytes; 0 to 15 are allowed",
            ),
        ] {
            let given = [("gateway", "10.0.0.1"), (option, value)];
            let given = if option == "gateway" {
                &given[1..]
            } else {
                &given
            };
            assert_eq!(
                refused::<Tee>(Family::Ipv4, None, given),
                format!("--{option}: {reason}")
            );
        }
    }
}
