//! `-m connlabel`: checks or sets a label of the connection.
//!
//! Data of revision 0 (`struct xt_connlabel_mtinfo`, `linux/netfilter/xt_connlabel.h`). Labels are
//! numbers; `/etc/xtables/connlabel.conf` gives them names, one `NUMBER NAME` per line.

use bstr::{BStr, BString};
use chainwright_sys::xt_connlabel::{
    XT_CONNLABEL_MAXBIT, XT_CONNLABEL_OP_INVERT, XT_CONNLABEL_OP_SET, xt_connlabel_mtinfo,
};

use crate::xt::value::{Parsed, number_within};
use crate::xt::{
    Context, Extension, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m connlabel`: checks or sets a label of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connlabel {
    /// The label, from 0 to 127.
    pub label: u16,
    /// Whether to set the label first: the packet matches if that succeeds.
    pub set: bool,
    /// Whether the result is negated.
    pub invert: bool,
}

impl Extension for Connlabel {
    const NAME: &'static str = "connlabel";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("label").inverts().required(),
        OptionSpec::switch("set"),
    ];
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 {
            return None;
        }
        let info: xt_connlabel_mtinfo = read_struct(info)?;
        let known = XT_CONNLABEL_OP_INVERT | XT_CONNLABEL_OP_SET;
        (info.bit <= XT_CONNLABEL_MAXBIT && info.options & !known == 0).then_some(Self {
            label: info.bit,
            set: info.options & XT_CONNLABEL_OP_SET != 0,
            invert: info.options & XT_CONNLABEL_OP_INVERT != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut options = 0;
        for (set, bit) in [
            (self.set, XT_CONNLABEL_OP_SET),
            (self.invert, XT_CONNLABEL_OP_INVERT),
        ] {
            options |= if set { bit } else { 0 };
        }
        let info = xt_connlabel_mtinfo {
            bit: self.label,
            options,
        };
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let label = GivenOption::find_required(given, "label")?;
        Ok(Self {
            label: label.parse(|value| parse_label(value, context.names.labels()))?,
            set: find("set").is_some(),
            invert: label.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "label").push(" \"");
        let names = text.names();
        match names
            .labels()
            .iter()
            .find(|(label, _)| *label == self.label)
        {
            Some((_, name)) => text.push(name),
            None => text.number(self.label),
        };
        text.push("\"");
        if self.set {
            text.push(" --set");
        }
    }
}

/// Parses a label's number or name.
fn parse_label(value: &BStr, names: &[(u16, BString)]) -> Parsed<u16> {
    if let Ok(label) = number_within(value, 0..=XT_CONNLABEL_MAXBIT) {
        return Ok(label);
    }
    let named = names.iter().find(|(_, name)| name == value);
    named.map(|(label, _)| *label).ok_or_else(|| {
        format!(
            "`{value}` is neither a number from 0 to {XT_CONNLABEL_MAXBIT} nor a name in \
             /etc/xtables/connlabel.conf"
        )
    })
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `! --label 40 --set` by iptables-legacy 1.8.9.
        let info = [40, 0, 3, 0];
        let label = Connlabel {
            label: 40,
            set: true,
            invert: true,
        };
        assert_eq!(Connlabel::read(Family::Ipv4, 0, &info), Some(label));
        assert_eq!(label.write(Family::Ipv4).unwrap(), info);
        assert_eq!(Connlabel::read(Family::Ipv4, 0, &info[..3]), None);
        assert_eq!(Connlabel::read(Family::Ipv4, 1, &info), None);
        assert_eq!(Connlabel::read(Family::Ipv4, 0, &[128, 0, 3, 0]), None);
        assert_eq!(Connlabel::read(Family::Ipv4, 0, &[40, 0, 4, 0]), None);
    }

    #[test]
    fn names_of_a_file() {
        // iptables 1.8.9 accepts these lines, except `12`, which it prints for label 9 and parses
        // as label 12.
        let names = crate::xt::names::labels(
            b"# comment\n0 zero\n 5 lead\n6\t two words \n0x10 hex\n010 octal\n6 again\n7 zero\n\
              1 a_b\n2 a.b\n3 a\tb\n4\nfoo bar\n128 over\n9 12\n11 a-b\r\n",
        );
        let expected = [
            (0, "zero"),
            (5, "lead"),
            (6, "two words"),
            (16, "hex"),
            (8, "octal"),
            (11, "a-b"),
        ];
        let expected: Vec<_> = expected.map(|(label, name)| (label, name.into())).into();
        assert_eq!(names, expected);
        let parse = |text: &str| parse_label(text.as_bytes().as_bstr(), &names);
        assert_eq!(parse("two words"), Ok(6));
        assert_eq!(parse("0x7f"), Ok(127));
        for wrong in ["128", "-1", "two", ""] {
            assert_eq!(
                parse(wrong).unwrap_err(),
                format!(
                    "`{wrong}` is neither a number from 0 to 127 nor a name in /etc/xtables/connlabel.conf"
                )
            );
        }
    }
}
