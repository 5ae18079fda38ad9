//! `-j ECN`: sets the congestion field of the IPv4 header and two bits of the TCP header.
//!
//! Data of revision 0 (`struct ipt_ECN_info`, `linux/netfilter_ipv4/ipt_ECN.h`): fields to set,
//! the congestion field, the bits.

use bstr::BStr;
use chainwright_sys::ipt_ecn_target::{
    IPT_ECN_IP_MASK, IPT_ECN_OP_MASK, IPT_ECN_OP_SET_CWR, IPT_ECN_OP_SET_ECE, IPT_ECN_OP_SET_IP,
    ipt_ECN_info,
};
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, number_within};
use crate::xt::{
    Context, Extension, Families, Family, GivenOption, ListStyle, OptionError, OptionGroup,
    OptionSpec, Text, read_struct, write_struct,
};

/// `IPPROTO_TCP`
const TCP: u8 = 6;

/// The bits in [`ipt_ECN_info::proto`], which are bit fields.
const ECE: u8 = if cfg!(target_endian = "little") {
    1
} else {
    0x80
};
const CWR: u8 = if cfg!(target_endian = "little") {
    2
} else {
    0x40
};

/// `-j ECN`: sets the congestion field of the IPv4 header and two bits of the TCP header.
///
/// At least one field is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Ecn {
    /// New value of TCP's ECE bit.
    pub ece: Option<bool>,
    /// New value of TCP's CWR bit.
    pub cwr: Option<bool>,
    /// New value of the congestion field of the IP header, 0 to 3.
    pub field: Option<u8>,
}

impl Extension for Ecn {
    const NAME: &'static str = "ECN";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[
        // It already clears both bits.
        OptionSpec::switch("ecn-tcp-remove").excludes(&["ecn-tcp-cwr", "ecn-tcp-ece"]),
        OptionSpec::one("ecn-tcp-cwr"),
        OptionSpec::one("ecn-tcp-ece"),
        OptionSpec::one("ecn-ip-ect"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::some_of(&[
        "ecn-tcp-remove",
        "ecn-tcp-cwr",
        "ecn-tcp-ece",
        "ecn-ip-ect",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: ipt_ECN_info = read_struct(info)?;
        if revision != Self::REVISION
            || info.operation == 0
            || info.operation & IPT_ECN_OP_MASK != 0
            || info.ip_ect > IPT_ECN_IP_MASK
        {
            return None;
        }
        let sets = |what| info.operation & what != 0;
        let bit = |what, bit| sets(what).then_some(info.proto & bit != 0);
        Some(Self {
            ece: bit(IPT_ECN_OP_SET_ECE, ECE),
            cwr: bit(IPT_ECN_OP_SET_CWR, CWR),
            field: sets(IPT_ECN_OP_SET_IP).then_some(info.ip_ect),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = ipt_ECN_info::new_zeroed();
        for (what, bit, value) in [
            (IPT_ECN_OP_SET_ECE, ECE, self.ece),
            (IPT_ECN_OP_SET_CWR, CWR, self.cwr),
            (IPT_ECN_OP_SET_IP, 0, self.field.map(|_| false)),
        ] {
            info.operation |= if value.is_some() { what } else { 0 };
            info.proto |= if value == Some(true) { bit } else { 0 };
        }
        info.ip_ect = self.field.unwrap_or(0);
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut ecn = Self::default();
        for one in given {
            if one.option == "ecn-ip-ect" {
                let field = one.parse(|value| number_within(value, 0..=IPT_ECN_IP_MASK))?;
                ecn.field = Some(field);
                continue;
            }
            if context.protocol_among(&[TCP]).is_none() {
                return Err(one.error("only TCP has this bit: the rule needs -p tcp"));
            }
            match one.option {
                "ecn-tcp-remove" => (ecn.ece, ecn.cwr) = (Some(false), Some(false)),
                "ecn-tcp-ece" => ecn.ece = Some(one.parse(bit)?),
                _ => ecn.cwr = Some(one.parse(bit)?),
            }
        }
        Ok(ecn)
    }

    fn print(&self, text: &mut Text) {
        if (self.ece, self.cwr, self.field) == (Some(false), Some(false), None) {
            text.option(false, "ecn-tcp-remove");
            return;
        }
        for (option, value) in [
            ("ecn-tcp-ece", self.ece.map(u8::from)),
            ("ecn-tcp-cwr", self.cwr.map(u8::from)),
            ("ecn-ip-ect", self.field),
        ] {
            if let Some(value) = value {
                text.option(false, option).push(" ").number(value);
            }
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" ECN");
        if (self.ece, self.cwr, self.field) == (Some(false), Some(false), None) {
            text.push(" TCP remove");
            return;
        }
        for (name, value) in [
            (" ECE=", self.ece.map(u8::from)),
            (" CWR=", self.cwr.map(u8::from)),
            (" ECT codepoint=", self.field),
        ] {
            if let Some(value) = value {
                text.push(name).number(value);
            }
        }
    }
}

fn bit(value: &BStr) -> Parsed<bool> {
    number_within::<u8>(value, 0..=1).map(|bit| bit == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-p tcp -j ECN …` by iptables-legacy 1.8.9 (`strace -xx`).
        for (options, info) in [
            (
                "--ecn-tcp-ece 1 --ecn-tcp-cwr 1 --ecn-ip-ect 2",
                [0x31, 2, 3, 0, 0, 0, 0, 0],
            ),
            ("--ecn-tcp-ece 1", [0x10, 0, 1, 0, 0, 0, 0, 0]),
            ("--ecn-tcp-cwr 1", [0x20, 0, 2, 0, 0, 0, 0, 0]),
        ] {
            let value = Target::read(Family::Ipv4, "ECN", 0, &info);
            assert_eq!(value.to_string(), format!("-j ECN {options}"));
            assert_eq!(value.encode(Family::Ipv4).unwrap().info, &info[..]);
        }
        for invalid in [[0, 0, 0], [0x33, 0, 0], [1, 4, 0]] {
            assert_eq!(Ecn::read(Family::Ipv4, 0, &invalid), None);
        }
        assert_eq!(Ecn::read(Family::Ipv4, 0, &[1, 0]), None);
        assert_eq!(Ecn::read(Family::Ipv4, 1, &[1, 0, 0]), None);
    }

    #[test]
    fn refuses() {
        for (rule, message) in [
            ("-j ECN", "--ecn-tcp-ece or --ecn-ip-ect is required"),
            ("-j ECN --ecn-tcp-remove", "the rule needs -p tcp"),
            ("-j ECN --ecn-ip-ect 4", "`4` is not a number from 0 to 3"),
            (
                "-p tcp -j ECN --ecn-tcp-ece 2",
                "`2` is not a number from 0 to 1",
            ),
            (
                "-p tcp -j ECN --ecn-tcp-cwr 1 --ecn-tcp-remove",
                "--ecn-tcp-remove cannot be used with --ecn-tcp-cwr",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
