//! `-m tcpmss`: compares the maximum segment size in a TCP packet's options.
//!
//! Data of revision 0 (`struct xt_tcpmss_match_info`, `linux/netfilter/xt_tcpmss.h`): range and
//! negation.

use chainwright_sys::xt_tcpmss::xt_tcpmss_match_info;

use crate::xt::value::range;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `IPPROTO_TCP`
const TCP: u8 = 6;

/// `-m tcpmss`: compares the maximum segment size in a TCP packet's options.
///
/// A packet without this option never matches, negated or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tcpmss {
    /// Minimum size, in bytes.
    pub min: u16,
    /// Maximum size, in bytes.
    pub max: u16,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Tcpmss {
    const NAME: &'static str = "tcpmss";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("mss").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_tcpmss_match_info = read_struct(info)?;
        (revision == Self::REVISION).then_some(Self {
            min: info.mss_min,
            max: info.mss_max,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_tcpmss_match_info {
            mss_min: self.min,
            mss_max: self.max,
            invert: self.invert.into(),
            __pad: [0; 1],
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mss = GivenOption::find_required(given, "mss")?;
        if context.protocol_among(&[TCP]).is_none() {
            return Err(OptionError::of_all(
                "only TCP has segments: the rule needs -p tcp",
            ));
        }
        let (min, max) = mss.parse(|value| range(value, 0..=u16::MAX))?.into_inner();
        Ok(Self {
            min,
            max,
            invert: mss.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "mss")
            .push(" ")
            .range(self.min, self.max);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" tcpmss match ")
            .push(if self.invert { "!" } else { "" });
        text.range(self.min, self.max);
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
        // `-m tcpmss ! --mss 536:1400` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [0x18, 0x02, 0x78, 0x05, 1, 0, 0, 0];
        let mss = Tcpmss {
            min: 536,
            max: 1400,
            invert: true,
        };
        assert_eq!(Tcpmss::read(Family::Ipv4, 0, &info), Some(mss));
        assert_eq!(
            Match::Tcpmss(mss).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(Match::Tcpmss(mss).to_string(), "-m tcpmss ! --mss 536:1400");
        assert_eq!(Tcpmss::read(Family::Ipv4, 0, &info[..5]), None);
        assert_eq!(Tcpmss::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn refuses() {
        for (rule, message) in [
            ("-p tcp -m tcpmss", "--mss is required"),
            ("-m tcpmss --mss 5", "the rule needs -p tcp"),
            ("-p udp -m tcpmss --mss 5", "the rule needs -p tcp"),
            ("-p tcp -m tcpmss --mss 9:5", "ends before it starts"),
            ("-p tcp -m tcpmss --mss 70000", "from 0 to 65535"),
        ] {
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
