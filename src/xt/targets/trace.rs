//! `-j TRACE`: reports every rule that the packet matches from here on.
//!
//! Revision 0 has no data. iptables-nft writes `meta nftrace set 1` instead.

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-j TRACE`: reports every rule that the packet matches from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trace;

impl Extension for Trace {
    const NAME: &'static str = "TRACE";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[];

    fn read(_: Family, revision: u8, _: &[u8]) -> Option<Self> {
        (revision == Self::REVISION).then_some(Self)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        Ok(Vec::new())
    }

    fn parse(_: &Context<'_>, _: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Ok(Self)
    }

    fn print(&self, _: &mut Text) {}

    fn list(&self, _: &mut Text, _: ListStyle) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Target;

    #[test]
    fn has_no_data() {
        assert_eq!(Trace::read(Family::Ipv4, 0, &[]), Some(Trace));
        assert_eq!(Trace::read(Family::Ipv4, 1, &[]), None);
        assert!(
            Target::Trace(Trace)
                .encode(Family::Ipv6)
                .unwrap()
                .info
                .is_empty()
        );
        assert_eq!(Target::Trace(Trace).to_string(), "-j TRACE");
    }
}
