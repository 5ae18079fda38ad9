//! `-m ipcomp`: compares the compression parameter index of IPComp. The rule is for `-p ipcomp`.
//!
//! Data of revision 0: `struct xt_ipcomp` (`linux/netfilter/xt_ipcomp.h`).

use chainwright_sys::xt_ipcomp::{XT_IPCOMP_INV_SPI, xt_ipcomp};

use super::spi::SpiRange;
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-m ipcomp`: compares the compression parameter index of IPComp. The rule is for `-p ipcomp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Ipcomp {
    /// The indices.
    pub spis: SpiRange,
    /// `--compres`, which the kernel ignores.
    pub reserved: bool,
}

impl Extension for Ipcomp {
    const NAME: &'static str = "ipcomp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("ipcompspi").inverts(),
        OptionSpec::switch("compres"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p ipcomp -m ipcomp",
        "-p ipcomp -m ipcomp --ipcompspi 0",
        "iptables treats a missing option as index 0, and always prints the index.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_ipcomp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        Some(Self {
            spis: SpiRange::read(info.spis, info.invflags, XT_IPCOMP_INV_SPI)?,
            reserved: info.hdrres != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(write_struct(&xt_ipcomp {
            spis: self.spis.ends(),
            invflags: self.spis.flags(XT_IPCOMP_INV_SPI),
            hdrres: self.reserved.into(),
            __pad: [0; 2],
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(108, "ipcomp")?;
        let mut ipcomp = Self::default();
        for one in given {
            match one.option {
                "ipcompspi" => ipcomp.spis = SpiRange::parse(one)?,
                _ => ipcomp.reserved = true,
            }
        }
        Ok(ipcomp)
    }

    fn print(&self, text: &mut Text) {
        self.spis.print(text, "ipcompspi");
        text.switch(self.reserved, "compres");
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
        // `-p ipcomp -m ipcomp ! --ipcompspi 5:9 --compres` by iptables-legacy 1.8.9.
        let info = [5, 0, 0, 0, 9, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0];
        let ipcomp = Ipcomp::read(Family::Ipv4, 0, &info).unwrap();
        assert_eq!(
            Match::Ipcomp(ipcomp).encode(Family::Ipv4).unwrap().info[..],
            info
        );
        assert_eq!(
            Match::Ipcomp(ipcomp).to_string(),
            "-m ipcomp ! --ipcompspi 5:9 --compres"
        );
        assert_eq!(Ipcomp::read(Family::Ipv4, 0, &info[..11]), None);
        assert_eq!(Ipcomp::read(Family::Ipv4, 1, &info), None);
        let mut odd = info;
        odd[8] = 2;
        assert_eq!(Ipcomp::read(Family::Ipv4, 0, &odd), None);
    }

    /// iptables 1.8.9 parses the match without an option as index 0, although it prints a match
    /// of all indices like that.
    #[test]
    fn without_an_option_every_index_matches() {
        let rule = Rule::parse(Family::Ipv4, "-p ipcomp -m ipcomp").unwrap();
        assert_eq!(rule.matches, [Match::Ipcomp(Ipcomp::default())]);
        assert_eq!(rule.to_string(), "-p ipcomp -m ipcomp");
        let rule = Rule::parse(Family::Ipv4, "-m ipcomp");
        assert!(rule.unwrap_err().to_string().contains("needs `-p ipcomp`"));
    }
}
