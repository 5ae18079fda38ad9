//! `-j CONNSECMARK`: copies the security mark between a packet and its connection.
//!
//! Data of revision 0 (`struct xt_connsecmark_target_info`, `linux/netfilter/xt_CONNSECMARK.h`):
//! the direction.

use chainwright_sys::xt_connsecmark_target::{
    CONNSECMARK_RESTORE, CONNSECMARK_SAVE, xt_connsecmark_target_info,
};

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j CONNSECMARK`: copies the security mark between a packet and its connection.
///
/// The direction of the copy, which does not overwrite an existing security mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connsecmark {
    /// From the packet to its connection.
    Save,
    /// From the connection to the packet.
    Restore,
}

impl Extension for Connsecmark {
    const NAME: &'static str = "CONNSECMARK";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] =
        &[OptionSpec::switch("save"), OptionSpec::switch("restore")];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["save", "restore"])];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_connsecmark_target_info = read_struct(info)?;
        match (revision, info.mode) {
            (0, CONNSECMARK_SAVE) => Some(Self::Save),
            (0, CONNSECMARK_RESTORE) => Some(Self::Restore),
            _ => None,
        }
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mode = match self {
            Self::Save => CONNSECMARK_SAVE,
            Self::Restore => CONNSECMARK_RESTORE,
        };
        Ok(write_struct(&xt_connsecmark_target_info { mode }))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(match Self::GROUPS[0].find(given)?.option {
            "save" => Self::Save,
            _ => Self::Restore,
        })
    }

    fn print(&self, text: &mut Text) {
        let option = match self {
            Self::Save => "save",
            Self::Restore => "restore",
        };
        text.option(false, option);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(match self {
            Self::Save => " CONNSECMARK save",
            Self::Restore => " CONNSECMARK restore",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    #[test]
    fn round_trips_data_of_iptables() {
        // `-j CONNSECMARK --restore` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [2, 0, 0, 0, 0, 0, 0, 0];
        let value = Connsecmark::read(Family::Ipv4, 0, &info);
        assert_eq!(value, Some(Connsecmark::Restore));
        let value = Target::Connsecmark(Connsecmark::Restore);
        assert_eq!(value.encode(Family::Ipv4).unwrap().info, &info[..]);
        assert_eq!(value.to_string(), "-j CONNSECMARK --restore");
        for invalid in [&[][..], &[0], &[3]] {
            assert_eq!(Connsecmark::read(Family::Ipv4, 0, invalid), None);
        }
        assert_eq!(Connsecmark::read(Family::Ipv4, 1, &info), None);
        for (options, message) in [
            ("", "--save or --restore is required"),
            (" --save --restore", "--restore cannot be used with --save"),
        ] {
            let rule = format!("-j CONNSECMARK{options}");
            let fault = Rule::parse(Family::Ipv4, rule).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
