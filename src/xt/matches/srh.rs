//! `-m srh`: compares the segment routing header of an IPv6 packet.
//!
//! Data of revision 1 (`struct ip6t_srh1`, `linux/netfilter_ipv6/ip6t_srh.h`), or of revision 0
//! (`struct ip6t_srh`), which has no segments. Comparisons and negations have separate flags. The
//! comparisons "equal", "more" and "less" share one number, and all flagged comparisons must be true.

use std::net::{IpAddr, Ipv6Addr};

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip6t_srh::{
    IP6T_SRH_LAST_EQ, IP6T_SRH_LAST_GT, IP6T_SRH_LAST_LT, IP6T_SRH_LEN_EQ, IP6T_SRH_LEN_GT,
    IP6T_SRH_LEN_LT, IP6T_SRH_LSID, IP6T_SRH_NEXTHDR, IP6T_SRH_NSID, IP6T_SRH_PSID,
    IP6T_SRH_SEGS_EQ, IP6T_SRH_SEGS_GT, IP6T_SRH_SEGS_LT, IP6T_SRH_TAG, ip6t_srh, ip6t_srh1,
};
use zerocopy::FromZeros;

use crate::xt::pack;
use crate::xt::value::{Parsed, address, number, prefix_length, prefix_mask};
use crate::xt::{
    Context, Extension, Families, Family, GivenOption, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

bitflags::bitflags! {
    /// Comparisons with a segment routing header.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SrhComparisons: u16 {
        /// The next header is [`Srh::next_header`].
        const NEXT_HEADER = IP6T_SRH_NEXTHDR;
        /// The length is [`Srh::length`].
        const LENGTH_EQUAL = IP6T_SRH_LEN_EQ;
        /// The length is more than [`Srh::length`].
        const LENGTH_GREATER = IP6T_SRH_LEN_GT;
        /// The length is less than [`Srh::length`].
        const LENGTH_LESS = IP6T_SRH_LEN_LT;
        /// The segments left are [`Srh::segments_left`].
        const SEGMENTS_EQUAL = IP6T_SRH_SEGS_EQ;
        /// The segments left are more than [`Srh::segments_left`].
        const SEGMENTS_GREATER = IP6T_SRH_SEGS_GT;
        /// The segments left are less than [`Srh::segments_left`].
        const SEGMENTS_LESS = IP6T_SRH_SEGS_LT;
        /// The last entry is [`Srh::last_entry`].
        const LAST_EQUAL = IP6T_SRH_LAST_EQ;
        /// The last entry is more than [`Srh::last_entry`].
        const LAST_GREATER = IP6T_SRH_LAST_GT;
        /// The last entry is less than [`Srh::last_entry`].
        const LAST_LESS = IP6T_SRH_LAST_LT;
        /// The tag is [`Srh::tag`].
        const TAG = IP6T_SRH_TAG;
        /// The segment before the active one is within [`Srh::previous`].
        const PREVIOUS = IP6T_SRH_PSID;
        /// The segment after the active one is within [`Srh::next`].
        const NEXT = IP6T_SRH_NSID;
        /// The last segment is within [`Srh::last`].
        const LAST = IP6T_SRH_LSID;
    }
}

/// `-m srh`: compares the segment routing header of an IPv6 packet.
///
/// The packet must have such a header, and all comparisons must be true. Fields that are not compared
/// are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Srh {
    /// The comparisons.
    pub compared: SrhComparisons,
    /// The negated comparisons.
    pub negated: SrhComparisons,
    /// Next header (`IPPROTO_*`).
    pub next_header: u8,
    /// Length field of the header: in units of 8 bytes, without the first unit.
    pub length: u8,
    /// Segments left.
    pub segments_left: u8,
    /// Index of the last entry.
    pub last_entry: u8,
    /// The struct's number in host byte order. The kernel compares its bytes with the header's
    /// without conversion, so that a little-endian host compares the tag with its two bytes swapped.
    pub tag: u16,
    /// Address and prefix length of the segment before the active one.
    pub previous: (Ipv6Addr, u8),
    /// Address and prefix length of the segment after the active one.
    pub next: (Ipv6Addr, u8),
    /// Address and prefix length of the last segment.
    pub last: (Ipv6Addr, u8),
}

/// Compares nothing.
impl Default for Srh {
    fn default() -> Self {
        let nothing = (Ipv6Addr::UNSPECIFIED, 0);
        Self {
            compared: SrhComparisons::empty(),
            negated: SrhComparisons::empty(),
            next_header: 0,
            length: 0,
            segments_left: 0,
            last_entry: 0,
            tag: 0,
            previous: nothing,
            next: nothing,
            last: nothing,
        }
    }
}

/// Options and comparisons, in the order of iptables-save.
const COMPARISONS: [(&str, SrhComparisons); 14] = [
    ("srh-next-hdr", SrhComparisons::NEXT_HEADER),
    ("srh-hdr-len-eq", SrhComparisons::LENGTH_EQUAL),
    ("srh-hdr-len-gt", SrhComparisons::LENGTH_GREATER),
    ("srh-hdr-len-lt", SrhComparisons::LENGTH_LESS),
    ("srh-segs-left-eq", SrhComparisons::SEGMENTS_EQUAL),
    ("srh-segs-left-gt", SrhComparisons::SEGMENTS_GREATER),
    ("srh-segs-left-lt", SrhComparisons::SEGMENTS_LESS),
    ("srh-last-entry-eq", SrhComparisons::LAST_EQUAL),
    ("srh-last-entry-gt", SrhComparisons::LAST_GREATER),
    ("srh-last-entry-lt", SrhComparisons::LAST_LESS),
    ("srh-tag", SrhComparisons::TAG),
    ("srh-psid", SrhComparisons::PREVIOUS),
    ("srh-nsid", SrhComparisons::NEXT),
    ("srh-lsid", SrhComparisons::LAST),
];

/// A field that takes part in comparisons.
enum Field<'a> {
    Byte(&'a mut u8),
    Tag(&'a mut u16),
    Segment(&'a mut (Ipv6Addr, u8)),
}

impl Srh {
    /// Returns the field of this comparison, and all comparisons of that field.
    fn field(&mut self, comparison: SrhComparisons) -> (Field<'_>, SrhComparisons) {
        use SrhComparisons as C;
        let length = C::LENGTH_EQUAL | C::LENGTH_GREATER | C::LENGTH_LESS;
        let segments = C::SEGMENTS_EQUAL | C::SEGMENTS_GREATER | C::SEGMENTS_LESS;
        let last = C::LAST_EQUAL | C::LAST_GREATER | C::LAST_LESS;
        match comparison {
            C::NEXT_HEADER => (Field::Byte(&mut self.next_header), C::NEXT_HEADER),
            C::TAG => (Field::Tag(&mut self.tag), C::TAG),
            C::PREVIOUS => (Field::Segment(&mut self.previous), C::PREVIOUS),
            C::NEXT => (Field::Segment(&mut self.next), C::NEXT),
            C::LAST => (Field::Segment(&mut self.last), C::LAST),
            one if length.contains(one) => (Field::Byte(&mut self.length), length),
            one if segments.contains(one) => (Field::Byte(&mut self.segments_left), segments),
            _ => (Field::Byte(&mut self.last_entry), last),
        }
    }

    /// Clears fields that are not compared.
    fn canonical(mut self) -> Self {
        self.negated &= self.compared;
        for (_, comparison) in COMPARISONS {
            let compared = self.compared;
            let (field, with) = self.field(comparison);
            if compared.intersects(with) {
                continue;
            }
            match field {
                Field::Byte(byte) => *byte = 0,
                Field::Tag(tag) => *tag = 0,
                Field::Segment(segment) => *segment = (Ipv6Addr::UNSPECIFIED, 0),
            }
        }
        self
    }

    fn read_0(info: &[u8]) -> Option<Self> {
        let info: ip6t_srh = read_struct(info)?;
        let segments = SrhComparisons::PREVIOUS | SrhComparisons::NEXT | SrhComparisons::LAST;
        let compared = SrhComparisons::from_bits(info.mt_flags)?;
        (!compared.intersects(segments)).then_some(Self {
            compared,
            negated: SrhComparisons::from_bits(info.mt_invflags)?,
            next_header: info.next_hdr,
            length: info.hdr_len,
            segments_left: info.segs_left,
            last_entry: info.last_entry,
            tag: info.tag,
            ..Self::default()
        })
    }

    fn read_1(info: &[u8]) -> Option<Self> {
        let info: ip6t_srh1 = read_struct(info)?;
        let segment = |address: [u8; 16], mask: [u8; 16]| {
            let prefix = prefix_length(IpAddr::from(mask))?;
            Some((Ipv6Addr::from(address), u8::try_from(prefix).ok()?))
        };
        Some(Self {
            compared: SrhComparisons::from_bits(info.mt_flags)?,
            negated: SrhComparisons::from_bits(info.mt_invflags)?,
            next_header: info.next_hdr,
            length: info.hdr_len,
            segments_left: info.segs_left,
            last_entry: info.last_entry,
            tag: info.tag,
            previous: segment(info.psid_addr, info.psid_msk)?,
            next: segment(info.nsid_addr, info.nsid_msk)?,
            last: segment(info.lsid_addr, info.lsid_msk)?,
        })
    }
}

impl Extension for Srh {
    const NAME: &'static str = "srh";
    const REVISION: u8 = 1;
    const FAMILIES: Families = Families::Ipv6;
    const OPTIONS: &'static [OptionSpec] = &{
        let mut options = [OptionSpec::one(COMPARISONS[0].0).inverts(); COMPARISONS.len()];
        let mut at = 0;
        while at < options.len() {
            options[at] = OptionSpec::one(COMPARISONS[at].0).inverts();
            at += 1;
        }
        options
    };

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let read = match revision {
            0 => Self::read_0(info),
            1 => Self::read_1(info),
            _ => None,
        };
        read.map(Self::canonical)
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mask = |option, (_, prefix): (Ipv6Addr, u8)| match prefix_mask(
            Family::Ipv6,
            u32::from(prefix),
        ) {
            Some(IpAddr::V6(mask)) => Ok(mask.octets()),
            _ => {
                let reason = format!("the prefix has {prefix} bits; an address has 128");
                Err(OptionError::of(option, reason))
            }
        };
        let mut info = ip6t_srh1::new_zeroed();
        info.next_hdr = self.next_header;
        info.hdr_len = self.length;
        info.segs_left = self.segments_left;
        info.last_entry = self.last_entry;
        info.tag = self.tag;
        info.psid_addr = self.previous.0.octets();
        info.psid_msk = mask("srh-psid", self.previous)?;
        info.nsid_addr = self.next.0.octets();
        info.nsid_msk = mask("srh-nsid", self.next)?;
        info.lsid_addr = self.last.0.octets();
        info.lsid_msk = mask("srh-lsid", self.last)?;
        info.mt_flags = pack::flags("srh", self.compared)?;
        info.mt_invflags = pack::flags("srh", self.negated)?;
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut srh = Self::default();
        for one in given {
            let known = COMPARISONS.iter().find(|(option, _)| one.option == *option);
            let Some((_, comparison)) = known else {
                continue;
            };
            let compared = srh.compared;
            let (field, with) = srh.field(*comparison);
            match field {
                Field::Byte(byte) => {
                    let value = one.parse(number)?;
                    if compared.intersects(with) && value != *byte {
                        return Err(one.error(format!(
                            "-eq, -gt and -lt share one number, which is already {byte}"
                        )));
                    }
                    *byte = value;
                }
                Field::Tag(tag) => *tag = one.parse(number)?,
                Field::Segment(address) => *address = one.parse(segment)?,
            }
            srh.compared |= *comparison;
            srh.negated.set(*comparison, one.invert);
        }
        Ok(srh)
    }

    fn print(&self, text: &mut Text) {
        let mut srh = *self;
        for (option, comparison) in COMPARISONS {
            if !self.compared.contains(comparison) {
                continue;
            }
            text.option(self.negated.contains(comparison), option)
                .push(" ");
            match srh.field(comparison).0 {
                Field::Byte(byte) => text.number(*byte),
                Field::Tag(tag) => text.number(*tag),
                Field::Segment((address, prefix)) => {
                    text.address(*address).push("/").number(*prefix)
                }
            };
        }
    }
}

/// Parses `address`, `address/prefix` or `address/mask`, and keeps all bits of the address. The mask
/// must not have gaps.
fn segment(value: &BStr) -> Parsed<(Ipv6Addr, u8)> {
    let (text, mask) = match value.split_once_str("/") {
        Some((text, mask)) => (text.as_bstr(), mask.as_bstr()),
        None => (value, BStr::new("128")),
    };
    let IpAddr::V6(segment) = address(text, Family::Ipv6)? else {
        return Err(format!("`{text}` is not an IPv6 address"));
    };
    let prefix = number::<u8>(mask)
        .ok()
        .filter(|prefix| *prefix <= 128)
        .or_else(|| {
            let mask = address(mask, Family::Ipv6).ok()?;
            u8::try_from(prefix_length(mask)?).ok()
        });
    let wrong =
        || format!("`{mask}` is neither a prefix length from 0 to 128 nor a contiguous mask");
    Ok((segment, prefix.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `-m srh ! --srh-psid a::1/64 --srh-tag 0x1234` from ip6tables-legacy 1.8.9 (`strace -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 112];
        info[4..6].copy_from_slice(&[0x34, 0x12]);
        info[9] = 10;
        info[23] = 1;
        info[56..64].copy_from_slice(&[0xff; 8]);
        info[104..108].copy_from_slice(&[0, 0x0c, 0, 0x08]);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let srh = Srh::read(Family::Ipv6, 1, &captured()).unwrap();
        assert_eq!(srh.previous, ("a::1".parse().unwrap(), 64));
        let value = Match::Srh(srh);
        assert_eq!(value.encode(Family::Ipv6).unwrap().info, captured());
        assert_eq!(
            value.to_string(),
            "-m srh --srh-tag 4660 ! --srh-psid a::1/64"
        );
        assert_eq!(Srh::read(Family::Ipv6, 1, &captured()[..107]), None);
        assert_eq!(Srh::read(Family::Ipv6, 2, &captured()), None);
        // An unknown comparison; a mask with a gap.
        for (at, byte) in [(105, 0x40), (57, 0)] {
            let mut invalid = captured();
            invalid[at] = byte;
            assert_eq!(Srh::read(Family::Ipv6, 1, &invalid), None);
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn reads_revision_0() {
        // Built from the header: `! --srh-next-hdr 17 --srh-hdr-len-gt 4`, with numbers and a
        // negation that no comparison uses.
        let info = [17, 4, 9, 9, 9, 9, 5, 0, 0x41, 0, 0, 0, 0, 0, 0, 0];
        let srh = Srh::read(Family::Ipv6, 0, &info).unwrap();
        assert_eq!(
            Match::Srh(srh).to_string(),
            "-m srh ! --srh-next-hdr 17 --srh-hdr-len-gt 4"
        );
        let parsed = Rule::parse(
            Family::Ipv6,
            "-m srh ! --srh-next-hdr 17 --srh-hdr-len-gt 4",
        );
        assert_eq!(parsed.unwrap().matches, [Match::Srh(srh)]);
        assert_eq!(Srh::read(Family::Ipv6, 0, &info[..9]), None);
        // Segments require revision 1.
        let mut segments = info;
        segments[7] = 8;
        assert_eq!(Srh::read(Family::Ipv6, 0, &segments), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--srh-next-hdr udp", "`udp` is not a number from 0 to 255"),
            ("--srh-tag 65536", "`65536` is not a number from 0 to 65535"),
            (
                "--srh-hdr-len-lt 8 --srh-hdr-len-gt 4",
                "--srh-hdr-len-gt: -eq, -gt and -lt share one number, which is already 8",
            ),
            ("--srh-psid host", "`host` is not an IPv6 address"),
            ("--srh-psid a::1/129", "`129` is neither a prefix length"),
            ("--srh-psid a::1/", "`` is neither a prefix length"),
            // Here iptables 1.8.9 takes /128 without a word.
            ("--srh-psid a::1/ffff::1", "nor a contiguous mask"),
        ] {
            let fault = Rule::parse(Family::Ipv6, format!("-m srh {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
