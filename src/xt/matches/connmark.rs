//! `-m connmark`: compares the connection's mark.
//!
//! Data of revision 1 (`struct xt_connmark_mtinfo1`, `linux/netfilter/xt_connmark.h`), with the
//! layout of the match `mark`.

use crate::xt::matches::mark::Mark;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// `-m connmark`: compares the connection's mark.
///
/// Matches if the connection's mark, masked with `mask`, equals `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connmark {
    /// Value to compare with.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Connmark {
    const fn of(
        Mark {
            value,
            mask,
            invert,
        }: Mark,
    ) -> Self {
        Self {
            value,
            mask,
            invert,
        }
    }

    const fn mark(self) -> Mark {
        let Self {
            value,
            mask,
            invert,
        } = self;
        Mark {
            value,
            mask,
            invert,
        }
    }
}

impl Extension for Connmark {
    const NAME: &'static str = "connmark";
    const REVISION: u8 = Mark::REVISION;
    const OPTIONS: &'static [OptionSpec] = Mark::OPTIONS;

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        Mark::read(family, revision, info).map(Self::of)
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        self.mark().write(family)
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        Mark::parse(context, given).map(Self::of)
    }

    fn print(&self, text: &mut Text) {
        self.mark().print(text);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" connmark match ")
            .push(if self.invert { "!" } else { "" });
        text.push(" ").hex(self.value);
        if self.mask != u32::MAX {
            text.push("/").hex(self.mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `! --mark 0x10/0xff` by iptables-legacy 1.8.9.
        let info = [0x10, 0, 0, 0, 0xff, 0, 0, 0, 1, 0, 0, 0];
        let mark = Connmark {
            value: 0x10,
            mask: 0xff,
            invert: true,
        };
        assert_eq!(Connmark::read(Family::Ipv4, 1, &info), Some(mark));
        assert_eq!(mark.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Connmark(mark).to_string(),
            "-m connmark ! --mark 0x10/0xff"
        );
        assert_eq!(Connmark::read(Family::Ipv4, 1, &info[..11]), None);
        assert_eq!(Connmark::read(Family::Ipv4, 0, &info), None);
    }
}
