//! `-m esp`: compares the security parameter index of IPsec's ESP. The rule is for `-p esp`.
//!
//! Data of revision 0: `struct xt_esp` (`linux/netfilter/xt_esp.h`).

use chainwright_sys::xt_esp::{XT_ESP_INV_SPI, xt_esp};

use super::spi::SpiRange;
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m esp`: compares the security parameter index of IPsec's ESP. The rule is for `-p esp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Esp {
    /// The indices.
    pub spis: SpiRange,
}

impl Extension for Esp {
    const NAME: &'static str = "esp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("espspi").inverts()];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p esp -m esp ! --espspi 0:4294967295",
        "-p esp -m esp",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_esp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        let spis = SpiRange::read(info.spis, info.invflags, XT_ESP_INV_SPI)?;
        Some(Self { spis })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(write_struct(&xt_esp {
            spis: self.spis.ends(),
            invflags: self.spis.flags(XT_ESP_INV_SPI),
            __pad: [0; 3],
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(50, "esp")?;
        let spis = given.first().map(SpiRange::parse).transpose()?;
        Ok(Self {
            spis: spis.unwrap_or_default(),
        })
    }

    fn print(&self, text: &mut Text) {
        self.spis.print(text, "espspi");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" esp");
        if self.spis != SpiRange::ANY {
            self.spis.list(text.push(" "));
        }
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
        // `-p esp -m esp ! --espspi 5` by iptables-legacy 1.8.9.
        let info = [5, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let esp = Esp::read(Family::Ipv4, 0, &info).unwrap();
        assert_eq!(Match::Esp(esp).encode(Family::Ipv4).unwrap().info[..], info);
        assert_eq!(Match::Esp(esp).to_string(), "-m esp ! --espspi 5");
        assert_eq!(Esp::read(Family::Ipv4, 0, &info[..11]), None);
        assert_eq!(Esp::read(Family::Ipv4, 1, &info), None);
        let mut odd = info;
        odd[8] = 2;
        assert_eq!(Esp::read(Family::Ipv4, 0, &odd), None);
    }

    #[test]
    fn refusals_and_rules_that_iptables_widens() {
        let rule = Rule::parse(Family::Ipv6, "-m esp --espspi 5");
        assert!(rule.unwrap_err().to_string().contains("needs `-p esp`"));
        // iptables-save 1.8.9 prints no option, so the printed rule matches every packet.
        let never = "-p esp -m esp ! --espspi 0:4294967295";
        let rule = Rule::parse(Family::Ipv4, never).unwrap();
        assert_eq!(rule.to_string(), never);
    }
}
