//! `-m ecn`: compares the congestion field of the IPv4 or IPv6 header and two bits of the TCP header.
//!
//! Data of revision 0 (`struct xt_ecn_info`, `linux/netfilter/xt_ecn.h`): compared fields, negations,
//! and the value of the congestion field.

use chainwright_sys::xt_ecn::{
    XT_ECN_IP_MASK, XT_ECN_OP_MATCH_CWR, XT_ECN_OP_MATCH_ECE, XT_ECN_OP_MATCH_IP,
    XT_ECN_OP_MATCH_MASK, xt_ecn_info,
};
use zerocopy::FromZeros;

use crate::xt::Negatable;
use crate::xt::value::number_within;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `IPPROTO_TCP`
const TCP: u8 = 6;

/// `-m ecn`: compares the congestion field of the IPv4 or IPv6 header and two bits of the TCP header.
///
/// At least one field is compared, and all compared fields must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Ecn {
    /// Required state of TCP's ECE bit.
    pub ece: Option<bool>,
    /// Required state of TCP's CWR bit.
    pub cwr: Option<bool>,
    /// The congestion field of the IP header, 0 to 3.
    pub field: Option<Negatable<u8>>,
}

impl Extension for Ecn {
    const NAME: &'static str = "ecn";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("ecn-tcp-cwr").inverts(),
        OptionSpec::switch("ecn-tcp-ece").inverts(),
        OptionSpec::one("ecn-ip-ect").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::some_of(&[
        "ecn-tcp-cwr",
        "ecn-tcp-ece",
        "ecn-ip-ect",
    ])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_ecn_info = read_struct(info)?;
        if revision != Self::REVISION
            || info.operation == 0
            || info.operation & XT_ECN_OP_MATCH_MASK != 0
            || info.ip_ect > XT_ECN_IP_MASK
        {
            return None;
        }
        let negated = |what| info.invert & what != 0;
        let compared = |what| info.operation & what != 0;
        let bit = |what| compared(what).then_some(!negated(what));
        Some(Self {
            ece: bit(XT_ECN_OP_MATCH_ECE),
            cwr: bit(XT_ECN_OP_MATCH_CWR),
            field: compared(XT_ECN_OP_MATCH_IP).then_some(Negatable {
                value: info.ip_ect,
                invert: negated(XT_ECN_OP_MATCH_IP),
            }),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_ecn_info::new_zeroed();
        for (what, holds) in [
            (XT_ECN_OP_MATCH_ECE, self.ece),
            (XT_ECN_OP_MATCH_CWR, self.cwr),
            (XT_ECN_OP_MATCH_IP, self.field.map(|field| !field.invert)),
        ] {
            info.operation |= if holds.is_some() { what } else { 0 };
            info.invert |= if holds == Some(false) { what } else { 0 };
        }
        info.ip_ect = self.field.map_or(0, |field| field.value);
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut ecn = Self::default();
        for one in given {
            if one.option == "ecn-ip-ect" {
                let value = one.parse(|value| number_within(value, 0..=XT_ECN_IP_MASK))?;
                ecn.field = Some(Negatable {
                    value,
                    invert: one.invert,
                });
                continue;
            }
            if context.protocol_among(&[TCP]).is_none() {
                return Err(one.error("only TCP has this bit: the rule needs -p tcp"));
            }
            match one.option {
                "ecn-tcp-ece" => ecn.ece = Some(!one.invert),
                _ => ecn.cwr = Some(!one.invert),
            }
        }
        Ok(ecn)
    }

    fn print(&self, text: &mut Text) {
        if let Some(ece) = self.ece {
            text.option(!ece, "ecn-tcp-ece");
        }
        if let Some(cwr) = self.cwr {
            text.option(!cwr, "ecn-tcp-cwr");
        }
        if let Some(field) = self.field {
            field.print(text, "ecn-ip-ect");
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" ECN match");
        for (name, bit) in [("ECE", self.ece), ("CWR", self.cwr)] {
            if let Some(is_set) = bit {
                text.push(if is_set { " " } else { " !" }).push(name);
            }
        }
        if let Some(field) = self.field {
            text.push(if field.invert { " !ECT=" } else { " ECT=" })
                .number(field.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m ecn ! --ecn-tcp-cwr ! --ecn-ip-ect 2` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [0x21, 0x21, 2, 0, 0, 0, 0, 0];
        let ecn = Ecn {
            ece: None,
            cwr: Some(false),
            field: Some(Negatable {
                value: 2,
                invert: true,
            }),
        };
        assert_eq!(Ecn::read(Family::Ipv4, 0, &info), Some(ecn));
        assert_eq!(
            Match::Ecn(ecn).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(
            Match::Ecn(ecn).to_string(),
            "-m ecn ! --ecn-tcp-cwr ! --ecn-ip-ect 2"
        );
        for invalid in [[0, 0, 0, 0], [0x23, 0, 0, 0], [1, 0, 4, 0]] {
            assert_eq!(Ecn::read(Family::Ipv4, 0, &invalid), None);
        }
        assert_eq!(Ecn::read(Family::Ipv4, 0, &info[..3]), None);
        assert_eq!(Ecn::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (rule, message) in [
            (
                "-m ecn",
                "--ecn-tcp-cwr, --ecn-tcp-ece or --ecn-ip-ect is required",
            ),
            ("-m ecn --ecn-tcp-cwr", "the rule needs -p tcp"),
            ("! -p tcp -m ecn --ecn-tcp-cwr", "the rule needs -p tcp"),
            ("-m ecn --ecn-ip-ect 4", "`4` is not a number from 0 to 3"),
        ] {
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
