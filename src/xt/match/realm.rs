//! `realm`: compares the realm of the packet's route.
//!
//! Data of revision 0 (`struct xt_realm_info`, `linux/netfilter/xt_realm.h`): value, mask, whether
//! it is negated. Realms go by the names that `/etc/iproute2/rt_realms` has for them; that file is
//! read once, when it is first needed, and a missing or strange one is as good as an empty one.

use std::io::Read;
use std::sync::LazyLock;

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::xt_realm::xt_realm_info;
use zerocopy::IntoBytes;

use crate::xt::value::{Parsed, masked};
use crate::xt::{
    Context, Extension, Families, Family, Given, Misuse, OptionSpec, Text, read_struct,
};

/// A file longer than this is not one of realms.
const LONGEST: u64 = 1 << 20;

static NAMES: LazyLock<Vec<(u8, BString)>> = LazyLock::new(|| {
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open("/etc/iproute2/rt_realms") {
        // What was read before an error is as good as anything.
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    names(&text)
});

/// Numbers and names: one pair a line, the number decimal or hexadecimal.
fn names(text: &[u8]) -> Vec<(u8, BString)> {
    let pair = |line: &[u8]| {
        let mut words = line.fields_with(|byte| byte.is_whitespace());
        let (number, name) = (words.next()?.to_str().ok()?, words.next()?);
        let number = match number.strip_prefix("0x") {
            Some(hex) => u8::from_str_radix(hex, 16),
            None => number.parse(),
        };
        (!name.starts_with(b"#")).then_some((number.ok()?, name.into()))
    };
    text.lines().filter_map(pair).collect()
}

/// The realm of the packet's route and `mask` is `value`, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realm {
    /// Value to compare with.
    pub value: u32,
    /// Bits to compare.
    pub mask: u32,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Realm {
    fn print_with(self, text: &mut Text, names: &[(u8, BString)]) {
        text.option(self.invert, "realm").push(" ");
        if self.mask != u32::MAX {
            text.hex(self.value).push("/").hex(self.mask);
            return;
        }
        match names.iter().find(|(id, _)| self.value == u32::from(*id)) {
            Some((_, name)) => text.push(name),
            None => text.hex(self.value),
        };
    }
}

fn value_with(value: &BStr, names: &[(u8, BString)]) -> Parsed<(u32, u32)> {
    masked(value).or_else(|wrong| {
        let named = names.iter().find(|(_, name)| name == value);
        named
            .map(|(id, _)| (u32::from(*id), u32::MAX))
            .ok_or_else(|| format!("{wrong}, nor a name of /etc/iproute2/rt_realms"))
    })
}

impl Extension for Realm {
    const NAME: &'static str = "realm";
    const REVISION: u8 = 0;
    const FAMILIES: Families = Families::Ipv4;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("realm").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_realm_info = read_struct(info)?;
        (revision == Self::REVISION).then_some(Self {
            value: info.id,
            mask: info.mask,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Vec<u8> {
        let info = xt_realm_info {
            id: self.value,
            mask: self.mask,
            invert: self.invert.into(),
            __pad: [0; 3],
        };
        info.as_bytes().to_vec()
    }

    fn parse(_: &Context<'_>, given: &[Given<'_>]) -> Result<Self, Misuse> {
        let [realm] = given else {
            return Err(Misuse::of("realm", "it is missing"));
        };
        let (value, mask) = realm.parse(|value| value_with(value, &NAMES))?;
        Ok(Self {
            value,
            mask,
            invert: realm.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        self.print_with(text, &NAMES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn reads_and_writes_what_iptables_wrote() {
        // `-m realm ! --realm 5/6` by iptables-legacy 1.8.9 (`strace -xx`).
        let info = [5, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let realm = Realm {
            value: 5,
            mask: 6,
            invert: true,
        };
        assert_eq!(Realm::read(Family::Ipv4, 0, &info), Some(realm));
        assert_eq!(
            Match::Realm(realm).encode(Family::Ipv4).unwrap().info,
            &info[..]
        );
        assert_eq!(
            Match::Realm(realm).to_string(),
            "-m realm ! --realm 0x5/0x6"
        );
        assert_eq!(Realm::read(Family::Ipv4, 0, &info[..11]), None);
        assert_eq!(Realm::read(Family::Ipv4, 1, &info), None);
    }

    #[test]
    fn names_of_realms() {
        let names = names(b"# comment\n0\tcosmos\n\n0x10 hex # more\n300 big\n7\n8 #none\nx y\n");
        assert_eq!(names, [(0, "cosmos".into()), (16, "hex".into())]);
        assert_eq!(value_with("hex".into(), &names), Ok((16, u32::MAX)));
        assert_eq!(value_with("010/0xf".into(), &names), Ok((8, 15)));
        assert!(value_with("hex/1".into(), &names).is_err());
        let mut text = Text::new();
        let realm = Realm {
            value: 0,
            mask: u32::MAX,
            invert: false,
        };
        realm.print_with(&mut text, &names);
        Realm { value: 9, ..realm }.print_with(&mut text, &names);
        Realm { mask: 1, ..realm }.print_with(&mut text, &names);
        let printed = " --realm cosmos --realm 0x9 --realm 0x0/0x1";
        assert_eq!(text.as_bytes().as_bstr(), printed);
    }

    #[test]
    fn refuses() {
        for (options, said) in [
            ("", "--realm: it is missing"),
            ("--realm 5/", "`` is not a number"),
            (
                "--realm no-such-realm",
                "nor a name of /etc/iproute2/rt_realms",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m realm {options}")).unwrap_err();
            assert!(fault.to_string().contains(said), "{fault}");
        }
    }
}
