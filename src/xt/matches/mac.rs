//! `-m mac`: compares the packet's source Ethernet address.
//!
//! Data of revision 0 (`struct xt_mac_info`, `linux/netfilter/xt_mac.h`).

use chainwright_sys::xt_mac::xt_mac_info;

use crate::xt::value::mac;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// `-m mac`: compares the packet's source Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac {
    /// The address, first byte first.
    pub source: [u8; 6],
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Mac {
    const NAME: &'static str = "mac";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("mac-source").inverts().required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_mac_info = read_struct(info)?;
        Some(Self {
            source: info.srcaddr,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_mac_info {
            srcaddr: self.source,
            __pad: [0; 2],
            invert: self.invert.into(),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let source = GivenOption::find_required(given, "mac-source")?;
        Ok(Self {
            source: source.parse(mac)?,
            invert: source.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "mac-source");
        let mut separator = " ";
        for byte in self.source {
            text.push(separator).display(format_args!("{byte:02x}"));
            separator = ":";
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(if self.invert { " MAC !" } else { " MAC" });
        let mut separator = " ";
        for byte in self.source {
            text.push(separator).display(format_args!("{byte:02x}"));
            separator = ":";
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
        // `-m mac ! --mac-source 00:11:22:aa:bb:cc` by iptables-legacy 1.8.9 (from `strace -xx`).
        let info = [
            0, 0x11, 0x22, 0xaa, 0xbb, 0xcc, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        ];
        let mac = Mac {
            source: [0, 0x11, 0x22, 0xaa, 0xbb, 0xcc],
            invert: true,
        };
        assert_eq!(Mac::read(Family::Ipv4, 0, &info), Some(mac));
        assert_eq!(Match::Mac(mac).encode(Family::Ipv4).unwrap().info[..], info);
        assert_eq!(
            Match::Mac(mac).to_string(),
            "-m mac ! --mac-source 00:11:22:aa:bb:cc"
        );
        assert_eq!(Mac::read(Family::Ipv4, 0, &info[..11]), None);
        assert_eq!(Mac::read(Family::Ipv4, 1, &info), None);
    }
}
