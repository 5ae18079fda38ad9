//! `-j CHECKSUM`: computes a checksum that the kernel left to the network card.
//!
//! Data of revision 0 (`struct xt_CHECKSUM_info`, `linux/netfilter/xt_CHECKSUM.h`): the operation,
//! of which only one exists.

use chainwright_sys::xt_checksum_target::{XT_CHECKSUM_OP_FILL, xt_CHECKSUM_info};

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-j CHECKSUM`: computes a checksum that the kernel left to the network card.
///
/// Computes and fills in the checksum: `--checksum-fill`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum;

impl Extension for Checksum {
    const NAME: &'static str = "CHECKSUM";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::switch("checksum-fill").required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_CHECKSUM_info = read_struct(info)?;
        (info.operation == XT_CHECKSUM_OP_FILL).then_some(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_CHECKSUM_info {
            operation: XT_CHECKSUM_OP_FILL,
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, _: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(Self)
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "checksum-fill");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" CHECKSUM fill");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::targets::testing::check;

    /// Data from strace of iptables-legacy 1.8.9.
    #[test]
    fn round_trips_data_of_iptables() {
        check(Family::Ipv4, "01", &Checksum, " --checksum-fill");
        for operation in [0, 2, 3] {
            assert_eq!(Checksum::read(Family::Ipv4, 0, &[operation]), None);
        }
    }
}
