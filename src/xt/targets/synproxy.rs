//! `-j SYNPROXY`: completes the TCP handshake with a client before it contacts the server.
//!
//! Data of revision 0 (`struct xt_synproxy_info`, `linux/netfilter/xt_SYNPROXY.h`): the TCP options
//! to offer to clients.

use chainwright_sys::xt_synproxy_target::{
    XT_SYNPROXY_OPT_ECN, XT_SYNPROXY_OPT_MSS, XT_SYNPROXY_OPT_SACK_PERM, XT_SYNPROXY_OPT_TIMESTAMP,
    XT_SYNPROXY_OPT_WSCALE, xt_synproxy_info,
};

use crate::xt::value::number;
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j SYNPROXY`: completes the TCP handshake with a client before it contacts the server.
///
/// It offers these options to clients, which should be the same as those of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Synproxy {
    /// Selective acknowledgements.
    pub sack_perm: bool,
    /// Timestamps.
    pub timestamp: bool,
    /// Window scaling: a shift; TCP allows 0 to 14.
    pub wscale: Option<u8>,
    /// Maximum segment size, in bytes.
    pub mss: Option<u16>,
    /// Explicit congestion notification.
    pub ecn: bool,
}

impl Synproxy {
    fn options(self) -> u8 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(self.sack_perm, XT_SYNPROXY_OPT_SACK_PERM)
            | flag(self.timestamp, XT_SYNPROXY_OPT_TIMESTAMP)
            | flag(self.wscale.is_some(), XT_SYNPROXY_OPT_WSCALE)
            | flag(self.mss.is_some(), XT_SYNPROXY_OPT_MSS)
            | flag(self.ecn, XT_SYNPROXY_OPT_ECN)
    }
}

impl Extension for Synproxy {
    const NAME: &'static str = "SYNPROXY";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("sack-perm"),
        OptionSpec::switch("timestamp"),
        OptionSpec::one("wscale"),
        OptionSpec::one("mss"),
        OptionSpec::switch("ecn"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-p tcp -j SYNPROXY --mss 65536",
        "-p tcp -j SYNPROXY --mss 0",
        "iptables truncates a larger number to 16 bits.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_synproxy_info = read_struct(info)?;
        let has = |flag| info.options & flag != 0;
        let value = Self {
            sack_perm: has(XT_SYNPROXY_OPT_SACK_PERM),
            timestamp: has(XT_SYNPROXY_OPT_TIMESTAMP),
            wscale: has(XT_SYNPROXY_OPT_WSCALE).then_some(info.wscale),
            mss: has(XT_SYNPROXY_OPT_MSS).then_some(info.mss),
            ecn: has(XT_SYNPROXY_OPT_ECN),
        };
        (Self::options(value) == info.options).then_some(value)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_synproxy_info {
            options: Self::options(*self),
            wscale: self.wscale.unwrap_or(0),
            mss: self.mss.unwrap_or(0),
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        if context.protocol_among(&[6]).is_none() {
            return Err(OptionError::of_all("the rule needs -p tcp"));
        }
        let mut value = Self::default();
        for one in given {
            match one.option {
                "sack-perm" => value.sack_perm = true,
                "timestamp" => value.timestamp = true,
                "wscale" => value.wscale = Some(one.parse(number)?),
                "mss" => value.mss = Some(one.parse(number)?),
                _ => value.ecn = true,
            }
        }
        Ok(value)
    }

    fn print(&self, text: &mut Text) {
        text.switch(self.sack_perm, "sack-perm");
        text.switch(self.timestamp, "timestamp");
        if let Some(wscale) = self.wscale {
            text.option(false, "wscale").push(" ").number(wscale);
        }
        if let Some(mss) = self.mss {
            text.option(false, "mss").push(" ").number(mss);
        }
        text.switch(self.ecn, "ecn");
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
        let value = Synproxy {
            sack_perm: true,
            wscale: Some(7),
            mss: Some(1460),
            ..Synproxy::default()
        };
        let printed = " --sack-perm --wscale 7 --mss 1460";
        check(Family::Ipv4, "07 07 b4 05", &value, printed);
        assert_eq!(Synproxy::read(Family::Ipv4, 0, &[0x27, 7, 0, 5]), None);
    }

    #[test]
    fn reports_errors() {
        assert_eq!(
            refused::<Synproxy>(Family::Ipv4, Some(17), &[]),
            "the rule needs -p tcp"
        );
        // iptables 1.8.9 parses this as 0.
        assert_eq!(
            refused::<Synproxy>(Family::Ipv4, Some(6), &[("mss", "65536")]),
            "--mss: `65536` is not a number from 0 to 65535"
        );
    }
}
