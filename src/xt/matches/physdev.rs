//! `-m physdev`: compares the packet's incoming and outgoing bridge ports.
//!
//! Data of revision 0 (`struct xt_physdev_info`, `linux/netfilter/xt_physdev.h`). The mask
//! determines how many bytes of a name are compared; masks that do not correspond to a name stay
//! opaque.

use bstr::{BStr, BString};
use chainwright_sys::xt_physdev::{
    XT_PHYSDEV_OP_BRIDGED, XT_PHYSDEV_OP_IN, XT_PHYSDEV_OP_ISIN, XT_PHYSDEV_OP_ISOUT,
    XT_PHYSDEV_OP_MASK, XT_PHYSDEV_OP_OUT, xt_physdev_info,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, string, until_nul};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Negatable, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// Size of an interface's name, including its closing NUL (`IFNAMSIZ`).
const NAME_SIZE: usize = 16;

/// `-m physdev`: compares the packet's incoming and outgoing bridge ports.
///
/// All given conditions must be true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Physdev {
    /// Whether the packet enters through a bridge port.
    pub is_in: Option<bool>,
    /// The incoming port: 1 to 15 bytes; a trailing `+` matches every name with that prefix.
    pub port_in: Option<Negatable<BString>>,
    /// Whether the packet leaves through a bridge port.
    pub is_out: Option<bool>,
    /// The outgoing port, in the same form as `port_in`.
    pub port_out: Option<Negatable<BString>>,
    /// Whether it is bridged, not routed.
    pub is_bridged: Option<bool>,
}

/// Returns the number of bytes of a name to compare.
fn counting(name: &[u8]) -> usize {
    match name {
        [start @ .., b'+'] => start.len(),
        whole => whole.len() + 1,
    }
}

fn read_name(name: &[u8; NAME_SIZE], mask: &[u8; NAME_SIZE]) -> Option<BString> {
    let name = until_nul(name).filter(|name| is_name(name))?;
    let (ones, zeros) = mask.split_at(counting(name).min(NAME_SIZE));
    (ones.iter().all(|byte| *byte == 0xff) && zeros.iter().all(|byte| *byte == 0))
        .then(|| name.to_owned())
}

fn write_name(
    option: &'static str,
    name: &BString,
) -> Result<([u8; NAME_SIZE], [u8; NAME_SIZE]), OptionError> {
    let bytes = pack::text(option, name)?;
    pack::require(is_name(name), option, "not a valid interface name")?;
    let mut mask = [0; NAME_SIZE];
    mask[..counting(name).min(NAME_SIZE)].fill(0xff);
    Ok((bytes, mask))
}

/// Returns `true` if the kernel accepts the name; a `:` is not checked.
fn is_name(name: &[u8]) -> bool {
    let is_forbidden = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
    !name.is_empty() && !name.iter().any(is_forbidden)
}

fn port(value: &BStr) -> Parsed<BString> {
    let name = string(value, 1..=NAME_SIZE - 1)?;
    if !is_name(name) {
        return Err("an interface name cannot contain `/` or spaces".to_owned());
    }
    Ok(name.to_owned())
}

impl Extension for Physdev {
    const NAME: &'static str = "physdev";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("physdev-in").inverts(),
        OptionSpec::one("physdev-out").inverts(),
        OptionSpec::switch("physdev-is-in").inverts(),
        OptionSpec::switch("physdev-is-out").inverts(),
        OptionSpec::switch("physdev-is-bridged").inverts(),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_physdev_info = read_struct(info)?;
        if info.bitmask & !XT_PHYSDEV_OP_MASK != 0 || info.bitmask == 0 {
            return None;
        }
        let has = |bit| info.bitmask & bit != 0;
        let is = |bit| has(bit).then_some(info.invert & bit == 0);
        let port = |bit, name, mask| match has(bit) {
            false => Some(None),
            true => read_name(name, mask).map(|value| {
                let invert = info.invert & bit != 0;
                Some(Negatable { value, invert })
            }),
        };
        Some(Self {
            is_in: is(XT_PHYSDEV_OP_ISIN),
            port_in: port(XT_PHYSDEV_OP_IN, &info.physindev, &info.in_mask)?,
            is_out: is(XT_PHYSDEV_OP_ISOUT),
            port_out: port(XT_PHYSDEV_OP_OUT, &info.physoutdev, &info.out_mask)?,
            is_bridged: is(XT_PHYSDEV_OP_BRIDGED),
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_physdev_info::new_zeroed();
        if let Some(port) = &self.port_in {
            (info.physindev, info.in_mask) = write_name("physdev-in", &port.value)?;
        }
        if let Some(port) = &self.port_out {
            (info.physoutdev, info.out_mask) = write_name("physdev-out", &port.value)?;
        }
        let invert = |port: &Option<Negatable<BString>>| port.as_ref().map(|port| !port.invert);
        for (bit, is) in [
            (XT_PHYSDEV_OP_IN, invert(&self.port_in)),
            (XT_PHYSDEV_OP_OUT, invert(&self.port_out)),
            (XT_PHYSDEV_OP_ISIN, self.is_in),
            (XT_PHYSDEV_OP_ISOUT, self.is_out),
            (XT_PHYSDEV_OP_BRIDGED, self.is_bridged),
        ] {
            if let Some(is) = is {
                info.bitmask |= bit;
                info.invert |= if is { 0 } else { bit };
            }
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut physdev = Self::default();
        for one in given {
            match one.option {
                "physdev-in" => physdev.port_in = Some(Negatable::given(one, one.parse(port)?)),
                "physdev-out" => physdev.port_out = Some(Negatable::given(one, one.parse(port)?)),
                "physdev-is-in" => physdev.is_in = Some(!one.invert),
                "physdev-is-out" => physdev.is_out = Some(!one.invert),
                _ => physdev.is_bridged = Some(!one.invert),
            }
        }
        if given.is_empty() {
            return Err(OptionError::of_all(
                "physdev needs at least one of --physdev-in, --physdev-out, --physdev-is-in, \
                 --physdev-is-out, --physdev-is-bridged",
            ));
        }
        Ok(physdev)
    }

    fn print(&self, text: &mut Text) {
        let is = |text: &mut Text, is: Option<bool>, name| {
            if let Some(is) = is {
                text.option(!is, name);
            }
        };
        let port = |text: &mut Text, port: &Option<Negatable<BString>>, name| {
            if let Some(port) = port {
                text.option(port.invert, name).name(&port.value);
            }
        };
        is(text, self.is_in, "physdev-is-in");
        port(text, &self.port_in, "physdev-in");
        is(text, self.is_out, "physdev-is-out");
        port(text, &self.port_out, "physdev-out");
        is(text, self.is_bridged, "physdev-is-bridged");
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" PHYSDEV match");
        self.print(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data from iptables-legacy 1.8.9 for `! --physdev-in eth+ --physdev-is-in
    /// --physdev-out br0 ! --physdev-is-bridged` (from `strace -xx`).
    fn captured() -> [u8; 72] {
        let mut info = [0; 72];
        info[..4].copy_from_slice(b"eth+");
        info[16..19].fill(0xff);
        info[32..35].copy_from_slice(b"br0");
        info[48..52].fill(0xff);
        info[64..66].copy_from_slice(&[0x05, 0x0f]);
        info
    }

    #[test]
    fn round_trips_data_of_iptables() {
        let physdev = Physdev {
            is_in: Some(true),
            port_in: Some(Negatable {
                value: "eth+".into(),
                invert: true,
            }),
            is_out: None,
            port_out: Some(Negatable {
                value: "br0".into(),
                invert: false,
            }),
            is_bridged: Some(false),
        };
        let read = Physdev::read(Family::Ipv4, 0, &captured());
        assert_eq!(read, Some(physdev.clone()));
        let physdev = Match::Physdev(physdev);
        assert_eq!(physdev.encode(Family::Ipv4).unwrap().info[..], captured());
        assert_eq!(
            physdev.to_string(),
            "-m physdev --physdev-is-in ! --physdev-in eth+ --physdev-out br0 \
             ! --physdev-is-bridged"
        );
    }

    #[test]
    fn inexpressible_data_stays_opaque() {
        let read = |info: &[u8]| Physdev::read(Family::Ipv4, 0, info);
        assert_eq!(read(&captured()[..65]), None);
        assert_eq!(Physdev::read(Family::Ipv4, 1, &captured()), None);
        for (at, byte) in [
            (65, 0),    // nothing is compared
            (65, 0x2f), // an unknown field is compared
            (18, 0),    // one byte less of the name is compared
            (19, 0xff), // one byte more
            (17, 0x0f), // half a byte
            (0, 0),     // no name
            (0, b' '),  // not a valid interface name
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(&info), None, "{at}");
        }
    }

    #[test]
    fn refusals() {
        for (options, message) in [
            (
                "-m physdev",
                "column 4: -m physdev: physdev needs at least one of --physdev-in, --physdev-out, --physdev-is-in, --physdev-is-out, --physdev-is-bridged",
            ),
            (
                "-m physdev --physdev-in abcdefghijklmnop",
                "column 25: -m physdev: --physdev-in: it has 16 bytes; 1 to 15 are allowed",
            ),
            (
                "-m physdev --physdev-in a/b",
                "column 25: -m physdev: --physdev-in: an interface name cannot contain `/` or spaces",
            ),
            (
                "-m physdev --physdev-is-in --physdev-is-in",
                "column 28: -m physdev: --physdev-is-in can be given only once",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
