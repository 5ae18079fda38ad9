//! `-m dccp`: compares ports, type and options of the DCCP header. The rule is for `-p dccp`.
//!
//! Data of revision 0: `struct xt_dccp_info` (`linux/netfilter/xt_dccp.h`).

use chainwright_sys::xt_dccp::{
    XT_DCCP_DEST_PORTS, XT_DCCP_OPTION, XT_DCCP_SRC_PORTS, XT_DCCP_TYPE, XT_DCCP_VALID_FLAGS,
    xt_dccp_info,
};
use zerocopy::FromZeros;

use super::ports::{self, PortRange};
use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::{any_word_of, number_within};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

bitflags::bitflags! {
    /// DCCP packet types, as bits (`1 << type`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct DccpTypes: u16 {
        /// Requests a connection.
        const REQUEST = 1 << 0;
        /// Response to a request.
        const RESPONSE = 1 << 1;
        /// Data.
        const DATA = 1 << 2;
        /// Acknowledgement.
        const ACK = 1 << 3;
        /// Data and acknowledgement.
        const DATAACK = 1 << 4;
        /// The server requests the end of the connection.
        const CLOSEREQ = 1 << 5;
        /// Ends the connection.
        const CLOSE = 1 << 6;
        /// Aborts the connection, or confirms its end.
        const RESET = 1 << 7;
        /// Requests resynchronization of sequence numbers.
        const SYNC = 1 << 8;
        /// Response to `SYNC`.
        const SYNCACK = 1 << 9;
        /// The reserved types 10 to 15.
        const INVALID = 0xfc00;
    }
}

/// `-m dccp`: compares ports, type and options of the DCCP header. The rule is for `-p dccp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Dccp {
    /// Source ports.
    pub source: Option<PortRange>,
    /// Destination ports.
    pub destination: Option<PortRange>,
    /// Allowed packet types.
    pub types: Option<Negatable<DccpTypes>>,
    /// Number of an option that must be present.
    pub option: Option<Negatable<u8>>,
}

impl Extension for Dccp {
    const NAME: &'static str = "dccp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        ports::OPTIONS[0],
        ports::OPTIONS[1],
        ports::OPTIONS[2],
        ports::OPTIONS[3],
        OptionSpec::one("dccp-types").inverts(),
        OptionSpec::one("dccp-option").inverts(),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-p dccp -m dccp --dport 70000",
        "-p dccp -m dccp --dport 4464",
        "A port has 16 bits; iptables truncates a larger number.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_dccp_info = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if (info.flags | info.invflags) & !XT_DCCP_VALID_FLAGS != 0 {
            return None;
        }
        let has = |flag| info.flags & flag != 0;
        let inverted = |flag| info.invflags & flag != 0;
        let ports = |ports, flag| has(flag).then(|| PortRange::of(ports, inverted(flag)));
        let types = if has(XT_DCCP_TYPE) {
            let mut with = DccpTypes::from_bits(info.typemask).filter(|types| !types.is_empty())?;
            if with.intersects(DccpTypes::INVALID) {
                with |= DccpTypes::INVALID; // some versions of iptables only set one of its bits
            }
            let invert = inverted(XT_DCCP_TYPE);
            Some(Negatable {
                value: with,
                invert,
            })
        } else {
            None
        };
        let option = Negatable {
            value: info.option,
            invert: inverted(XT_DCCP_OPTION),
        };
        if has(XT_DCCP_OPTION) && info.option == 0 {
            return None;
        }
        Some(Self {
            source: ports(info.spts, XT_DCCP_SRC_PORTS),
            destination: ports(info.dpts, XT_DCCP_DEST_PORTS),
            types,
            option: has(XT_DCCP_OPTION).then_some(option),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_dccp_info::new_zeroed();
        let mut set = |flag, invert| {
            info.flags |= flag;
            if invert {
                info.invflags |= flag;
            }
        };
        if let Some(ports) = self.source {
            set(XT_DCCP_SRC_PORTS, ports.invert);
            info.spts = ports.ends();
        }
        if let Some(ports) = self.destination {
            set(XT_DCCP_DEST_PORTS, ports.invert);
            info.dpts = ports.ends();
        }
        if let Some(types) = self.types {
            set(XT_DCCP_TYPE, types.invert);
            info.typemask = pack::flags("dccp-types", types.value)?;
        }
        if let Some(option) = self.option {
            set(XT_DCCP_OPTION, option.invert);
            info.option = option.value;
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(33, "dccp")?;
        let mut dccp = Self::default();
        for one in given {
            let invert = one.invert;
            match one.option {
                "sport" => dccp.source = Some(PortRange::parse_any(context, one)?),
                "dport" => dccp.destination = Some(PortRange::parse_any(context, one)?),
                "dccp-option" => {
                    let with = one.parse(|value| number_within(value, 1..=u8::MAX))?;
                    dccp.option = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
                _ => {
                    let names = TYPES.map(|(name, bit)| (name, bit.bits()));
                    let with = one.parse(|value| any_word_of(value, &names))?;
                    let with = DccpTypes::from_bits_truncate(with);
                    dccp.types = Some(Negatable {
                        value: with,
                        invert,
                    });
                }
            }
        }
        Ok(dccp)
    }

    fn print(&self, text: &mut Text) {
        if let Some(ports) = self.source {
            ports.print(text, "sport");
        }
        if let Some(ports) = self.destination {
            ports.print(text, "dport");
        }
        if let Some(types) = self.types {
            text.option(types.invert, "dccp-types");
            let mut separator = " ";
            for (name, bit) in TYPES {
                if types.value.contains(bit) {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
        }
        if let Some(option) = self.option {
            text.option(option.invert, "dccp-option").push(" ");
            text.number(option.value);
        }
    }
}

const TYPES: [(&str, DccpTypes); 11] = [
    ("REQUEST", DccpTypes::REQUEST),
    ("RESPONSE", DccpTypes::RESPONSE),
    ("DATA", DccpTypes::DATA),
    ("ACK", DccpTypes::ACK),
    ("DATAACK", DccpTypes::DATAACK),
    ("CLOSEREQ", DccpTypes::CLOSEREQ),
    ("CLOSE", DccpTypes::CLOSE),
    ("RESET", DccpTypes::RESET),
    ("SYNC", DccpTypes::SYNC),
    ("SYNCACK", DccpTypes::SYNCACK),
    ("INVALID", DccpTypes::INVALID),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-p dccp -m dccp --sport 5:9 ! --dccp-types DATA,SYNC --dccp-option 7` by iptables-legacy
        // 1.8.9.
        let info = [0, 0, 0, 0, 5, 0, 9, 0, 0x0d, 0, 0x04, 0, 0x04, 0x01, 7, 0];
        let dccp = Dccp {
            source: Some(PortRange::new(5, 9)),
            destination: None,
            types: Some(Negatable::is_not(DccpTypes::DATA | DccpTypes::SYNC)),
            option: Some(Negatable::is(7)),
        };
        assert_eq!(Dccp::read(Family::Ipv4, 0, &info), Some(dccp));
        assert_eq!(dccp.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Dccp(dccp).to_string(),
            "-m dccp --sport 5:9 ! --dccp-types DATA,SYNC --dccp-option 7"
        );
        assert_eq!(Dccp::read(Family::Ipv4, 0, &info[..15]), None);
        assert_eq!(Dccp::read(Family::Ipv4, 1, &info), None);
        // Unknown flags, no option.
        for (at, byte) in [(8, 0x1d), (10, 0x10), (14, 0)] {
            let mut odd = info;
            odd[at] = byte;
            assert_eq!(Dccp::read(Family::Ipv4, 0, &odd), None, "byte {at}");
        }
        let mut none = info;
        (none[12], none[13]) = (0, 0);
        assert_eq!(Dccp::read(Family::Ipv4, 0, &none), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn either_form_of_invalid() {
        // iptables-legacy 1.8.9 writes the first.
        for mask in [0xfc, 0x04] {
            let info = [0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, mask, 0, 0];
            let dccp = Dccp::read(Family::Ipv4, 0, &info).unwrap();
            assert_eq!(
                Match::Dccp(dccp).to_string(),
                "-m dccp --dccp-types INVALID"
            );
            let written = [0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0xfc, 0, 0];
            assert_eq!(dccp.write(Family::Ipv4).unwrap(), written);
        }
    }

    #[test]
    fn refusals() {
        let message = |options| Rule::parse(Family::Ipv4, options).unwrap_err().to_string();
        assert!(message("-m dccp --dport 1").contains("the rule needs `-p dccp`"));
        assert!(
            message("-p dccp --dccp-types REQ").contains("`REQ` is not one of REQUEST, RESPONSE")
        );
        assert!(message("-p dccp --dccp-types \"\"").contains("`` is not one of"));
        assert!(message("-p dccp --dccp-option 0").contains("a number from 1 to 255"));
    }
}
