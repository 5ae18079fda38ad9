//! `-m pkttype`: compares the packet's recipient on the link.
//!
//! Data of revision 0 (`struct xt_pkttype_info`, `linux/netfilter/xt_pkttype.h`). Types without a
//! name in iptables stay opaque.

use bstr::ByteSlice;
use chainwright_sys::xt_pkttype::xt_pkttype_info;

use crate::xt::value::one_of;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// The recipient of a packet on the link (`PACKET_*` of `linux/if_packet.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// This host.
    Host,
    /// All hosts.
    Broadcast,
    /// A group of hosts.
    Multicast,
    /// Another host.
    OtherHost,
}

/// The printed name of each type precedes its alias.
const NAMES: [(&str, PacketType); 7] = [
    ("unicast", PacketType::Host),
    ("broadcast", PacketType::Broadcast),
    ("multicast", PacketType::Multicast),
    ("otherhost", PacketType::OtherHost),
    ("bcast", PacketType::Broadcast),
    ("mcast", PacketType::Multicast),
    ("host", PacketType::Host),
];

/// `-m pkttype`: compares the packet's recipient on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pkttype {
    /// The type.
    pub kind: PacketType,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl Extension for Pkttype {
    const NAME: &'static str = "pkttype";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("pkt-type").inverts().required()];

    fn value_names(_: Family) -> Vec<String> {
        let lines = NAMES[..4].iter().map(|(name, _)| format!("\t{name}"));
        std::iter::once("Valid packet types:".to_owned())
            .chain(lines)
            .collect()
    }

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != Self::REVISION {
            return None;
        }
        let info: xt_pkttype_info = read_struct(info)?;
        let kind = match info.pkttype {
            0 => PacketType::Host,
            1 => PacketType::Broadcast,
            2 => PacketType::Multicast,
            3 => PacketType::OtherHost,
            _ => return None,
        };
        Some(Self {
            kind,
            invert: info.invert != 0,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let info = xt_pkttype_info {
            pkttype: self.kind as i32,
            invert: self.invert.into(),
        };
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let kind = GivenOption::find_required(given, "pkt-type")?;
        Ok(Self {
            kind: kind.parse(|value| one_of(value.to_ascii_lowercase().as_bstr(), &NAMES))?,
            invert: kind.invert,
        })
    }

    fn print(&self, text: &mut Text) {
        let name = NAMES.iter().find(|(_, kind)| *kind == self.kind);
        text.option(self.invert, "pkt-type")
            .word(name.map_or("", |(name, _)| name));
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        let name = NAMES.iter().find(|(_, kind)| *kind == self.kind);
        text.push(if self.invert {
            " PKTTYPE !="
        } else {
            " PKTTYPE ="
        });
        text.word(name.map_or("", |(name, _)| name));
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
        // `-m pkttype ! --pkt-type multicast` by iptables-legacy 1.8.9 (from `strace -xx`).
        let mut info = [2, 0, 0, 0, 1, 0, 0, 0];
        let kind = Pkttype {
            kind: PacketType::Multicast,
            invert: true,
        };
        assert_eq!(Pkttype::read(Family::Ipv4, 0, &info), Some(kind));
        assert_eq!(kind.write(Family::Ipv4).unwrap(), info);
        assert_eq!(
            Match::Pkttype(kind).to_string(),
            "-m pkttype ! --pkt-type multicast"
        );
        assert_eq!(Pkttype::read(Family::Ipv4, 0, &info[..7]), None);
        assert_eq!(Pkttype::read(Family::Ipv4, 1, &info), None);
        // PACKET_OUTGOING has no name.
        info[0] = 4;
        assert_eq!(Pkttype::read(Family::Ipv4, 0, &info), None);
    }

    #[test]
    fn refusals() {
        let error = Rule::parse(Family::Ipv4, "-m pkttype --pkt-type 3").unwrap_err();
        assert_eq!(
            error.to_string(),
            "column 23: -m pkttype: --pkt-type: `3` is not one of unicast, broadcast, multicast, otherhost, bcast, mcast, host"
        );
    }
}
