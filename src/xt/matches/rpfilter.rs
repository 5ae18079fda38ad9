//! `-m rpfilter`: checks that the route to the packet's source uses the incoming interface.
//!
//! Data of revision 0 (`struct xt_rpfilter_info`, `linux/netfilter/xt_rpfilter.h`).

use chainwright_sys::xt_rpfilter::{
    XT_RPFILTER_ACCEPT_LOCAL, XT_RPFILTER_INVERT, XT_RPFILTER_LOOSE, XT_RPFILTER_VALID_MARK,
    xt_rpfilter_info,
};

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

bitflags::bitflags! {
    /// `-m rpfilter`: checks that the route to the packet's source uses the incoming interface.
    ///
    /// All flags are optional.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Rpfilter: u8 {
        /// The route may use any interface.
        const LOOSE = XT_RPFILTER_LOOSE;
        /// Uses the packet's mark in the route lookup.
        const VALIDMARK = XT_RPFILTER_VALID_MARK;
        /// Accepts packets with a local source.
        const ACCEPT_LOCAL = XT_RPFILTER_ACCEPT_LOCAL;
        /// Matches packets that fail the check.
        const INVERT = XT_RPFILTER_INVERT;
    }
}

const FLAGS: [(Rpfilter, &str); 4] = [
    (Rpfilter::LOOSE, "loose"),
    (Rpfilter::VALIDMARK, "validmark"),
    (Rpfilter::ACCEPT_LOCAL, "accept-local"),
    (Rpfilter::INVERT, "invert"),
];

impl Extension for Rpfilter {
    const NAME: &'static str = "rpfilter";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::switch("loose"),
        OptionSpec::switch("validmark"),
        OptionSpec::switch("accept-local"),
        OptionSpec::switch("invert"),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_rpfilter_info = read_struct(info)?;
        Self::from_bits(info.flags)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_rpfilter_info { flags: self.bits() };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(GivenOption::flags(given, &FLAGS))
    }

    fn print(&self, text: &mut Text) {
        text.flags(*self, &FLAGS);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" rpfilter").bare(|text| self.print(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-m rpfilter --loose --invert` by iptables-legacy 1.8.9 (from `strace -xx`).
        let info = [9, 0, 0, 0, 0, 0, 0, 0];
        let loose = Rpfilter::LOOSE | Rpfilter::INVERT;
        assert_eq!(Rpfilter::read(Family::Ipv6, 0, &info), Some(loose));
        assert_eq!(
            Match::Rpfilter(loose).encode(Family::Ipv6).unwrap().info[..],
            info
        );
        assert_eq!(
            Match::Rpfilter(loose).to_string(),
            "-m rpfilter --loose --invert"
        );
        assert_eq!(Rpfilter::read(Family::Ipv6, 0, &[]), None);
        assert_eq!(Rpfilter::read(Family::Ipv6, 0, &[0x10]), None);
        assert_eq!(Rpfilter::read(Family::Ipv6, 1, &info), None);
    }

    #[test]
    fn is_negated_by_an_option_only() {
        let error = Rule::parse(Family::Ipv4, "-m rpfilter ! --invert").unwrap_err();
        assert_eq!(
            error.to_string(),
            "column 15: -m rpfilter: --invert cannot be negated"
        );
    }
}
