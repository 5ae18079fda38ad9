//! `-m udp`: compares ports of the UDP header. The rule is for `-p udp`.
//!
//! Data of revision 0: `struct xt_udp` (`linux/netfilter/xt_tcpudp.h`). Since 1.8.8, `iptables-nft`
//! writes native expressions instead.

use chainwright_sys::xt_tcpudp::{XT_UDP_INV_DSTPT, XT_UDP_INV_MASK, XT_UDP_INV_SRCPT, xt_udp};

use super::ports::{self, PortRange};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m udp`: compares ports of the UDP header. The rule is for `-p udp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Udp {
    /// Source ports.
    pub source: PortRange,
    /// Destination ports.
    pub destination: PortRange,
}

impl Extension for Udp {
    const NAME: &'static str = "udp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &ports::OPTIONS;
    const DIFFERENCES: &'static [Difference] = &[
        Difference::refused(
            "-p udp -m udp --dport 70000",
            "-p udp -m udp --dport 4464",
            "A port has 16 bits; iptables truncates a larger number.",
        ),
        Difference::kept(
            "-p udp -m udp ! --sport 0:65535",
            "-p udp -m udp",
            "iptables-save omits the option, so the rule matches every packet after a restore.",
        ),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_udp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if info.invflags & !XT_UDP_INV_MASK != 0 {
            return None;
        }
        Some(Self {
            source: PortRange::of(info.spts, info.invflags & XT_UDP_INV_SRCPT != 0),
            destination: PortRange::of(info.dpts, info.invflags & XT_UDP_INV_DSTPT != 0),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let inverted = |invert, flag| if invert { flag } else { 0 };
        Ok(write_struct(&xt_udp {
            spts: self.source.ends(),
            dpts: self.destination.ends(),
            invflags: inverted(self.source.invert, XT_UDP_INV_SRCPT)
                | inverted(self.destination.invert, XT_UDP_INV_DSTPT),
            __pad: [0],
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(17, "udp")?;
        let mut udp = Self::default();
        for one in given {
            let ports = PortRange::parse_any(context, one)?;
            match one.option {
                "sport" => udp.source = ports,
                _ => udp.destination = ports,
            }
        }
        Ok(udp)
    }

    fn print(&self, text: &mut Text) {
        self.source.print_unless_any(text, "sport");
        self.destination.print_unless_any(text, "dport");
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        text.push(" udp");
        self.source.list(text, "spt", Some(17), style);
        self.destination.list(text, "dpt", Some(17), style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-p udp -m udp ! --dport 53` by iptables-legacy 1.8.9.
        let info = [0, 0, 0xff, 0xff, 53, 0, 53, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        let udp = Udp {
            destination: PortRange::from(53).not(),
            ..Udp::default()
        };
        assert_eq!(Udp::read(Family::Ipv4, 0, &info), Some(udp));
        assert_eq!(Match::Udp(udp).encode(Family::Ipv4).unwrap().info[..], info);
        assert_eq!(Match::Udp(udp).to_string(), "-m udp ! --dport 53");
        assert_eq!(Udp::read(Family::Ipv4, 0, &info[..9]), None);
        assert_eq!(Udp::read(Family::Ipv4, 1, &info), None);
        let mut unknown = info;
        unknown[8] = 4;
        assert_eq!(Udp::read(Family::Ipv4, 0, &unknown), None);
    }

    #[test]
    fn refusals_and_rules_that_iptables_widens() {
        let message = |options| Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
        assert!(message("-p tcp -m udp").contains("the rule needs `-p udp`"));
        assert!(
            message("-p udp --dport x")
                .contains("--dport: `x` is neither a decimal port number nor")
        );
        // iptables-save 1.8.9 prints no option, so the printed rule matches every packet.
        let never = "-p udp -m udp ! --sport 0:65535";
        assert_eq!(Rule::parse(Family::Ipv4, never).unwrap().to_string(), never);
    }
}
