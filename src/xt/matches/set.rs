//! `-m set`: looks for the packet in a set of `ipset(8)`.
//!
//! Data of revision 4 (`struct xt_set_info_match_v4`, `linux/netfilter/xt_set.h`), and of earlier
//! revisions: 3 has other padding on 32-bit x86, 1 and 2 have no counters, 0 (IPv4 only) has one
//! number for each part of an element.

use bstr::{BStr, ByteSlice};
use chainwright_sys::ip_set::{
    IPSET_COUNTER_EQ, IPSET_COUNTER_GT, IPSET_COUNTER_LT, IPSET_COUNTER_NE, IPSET_COUNTER_NONE,
    IPSET_DIM_MAX, IPSET_FLAG_MATCH_COUNTERS, IPSET_FLAG_RETURN_NOMATCH,
    IPSET_FLAG_SKIP_COUNTER_UPDATE, IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE, IPSET_INV_MATCH,
    IPSET_INVALID_ID, IPSET_RETURN_NOMATCH, ip_set_counter_match,
};
use chainwright_sys::xt_set::{
    IPSET_DST, IPSET_MATCH_INV, IPSET_SRC, xt_set_info, xt_set_info_match_v0, xt_set_info_match_v1,
    xt_set_info_match_v3, xt_set_info_match_v4, xt_set_info_v0,
};
use zerocopy::FromZeros;

use crate::xt::value::{Parsed, number};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, Name, OptionError, OptionSpec, SetId, Text,
    read_struct, write_struct,
};

/// `-m set`: looks for the packet in a set of `ipset(8)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Set {
    /// The set.
    pub set: SetId,
    /// The parts of the packet to look up.
    pub directions: SetDirections,
    /// Whether the packet must not be in it.
    pub invert: bool,
    /// Whether an element marked `nomatch` counts as a match: `--return-nomatch`.
    pub return_nomatch: bool,
    /// Whether to leave the element's counters unchanged: `! --update-counters`.
    pub keep_counters: bool,
    /// Whether, for a list of sets, to leave the member's counters unchanged:
    /// `! --update-subcounters`.
    pub keep_subcounters: bool,
    /// Condition for the element's packet counter.
    pub packets: Option<SetCounter>,
    /// Condition for the element's byte counter.
    pub bytes: Option<SetCounter>,
}

/// For each part of a set's elements, whether to look up the packet's source or destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetDirections {
    count: u8,
    /// Bit 1 is the first part, up to bit 6.
    sources: u8,
}

/// A condition for an element's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetCounter {
    /// Equal to this number.
    Equal(u64),
    /// Not equal to this number.
    NotEqual(u64),
    /// Less than this number.
    Less(u64),
    /// Greater than this number.
    Greater(u64),
}

impl SetDirections {
    /// Creates it from one to six parts: `true` for the source; `None` for another number of
    /// parts.
    #[must_use]
    pub fn new(sources: &[bool]) -> Option<Self> {
        let count = u8::try_from(sources.len()).ok()?;
        if !(1..=IPSET_DIM_MAX).contains(&count) {
            return None;
        }
        let bits = (1..)
            .zip(sources)
            .map(|(bit, source)| u8::from(*source) << bit);
        Some(Self {
            count,
            sources: bits.sum(),
        })
    }

    /// Returns the parts: `true` for the source.
    pub fn parts(self) -> impl Iterator<Item = bool> {
        (1..=self.count).map(move |bit| self.sources & 1 << bit != 0)
    }

    /// Parses `src,dst,…`.
    fn parse(value: &BStr) -> Parsed<Self> {
        let words = value.split_str(",").map(|word| match word {
            b"src" => Some(true),
            b"dst" => Some(false),
            _ => None,
        });
        // One more than the maximum is enough to detect too many.
        let words: Option<Vec<_>> = words.take(usize::from(IPSET_DIM_MAX) + 1).collect();
        words.and_then(|words| Self::new(&words)).ok_or_else(|| {
            format!("`{value}` is not one to {IPSET_DIM_MAX} of src and dst, like src,dst")
        })
    }

    pub(in crate::xt) fn print(self, text: &mut Text) {
        let mut separator = " ";
        for source in self.parts() {
            text.push(separator)
                .push(if source { "src" } else { "dst" });
            separator = ",";
        }
    }
}

/// Decodes set, parts and further flags of a kernel struct.
pub(in crate::xt) fn read_info(info: xt_set_info) -> Option<(SetId, SetDirections, u8)> {
    let bits = (1..=IPSET_DIM_MAX).contains(&info.dim).then(|| {
        // At most bits 1 to 6.
        ((1_u8 << info.dim) - 1) << 1
    })?;
    let directions = SetDirections {
        count: info.dim,
        sources: info.flags & bits,
    };
    Some((SetId::Index(info.index), directions, info.flags & !bits))
}

/// Converts revision 0's struct to the later form; its only flag besides the parts is
/// [`IPSET_INV_MATCH`].
pub(in crate::xt) fn upgrade(old: xt_set_info_v0) -> Option<xt_set_info> {
    let mut info = xt_set_info {
        index: old.index,
        dim: 0,
        flags: 0,
    };
    for (bit, flags) in (1..=IPSET_DIM_MAX).zip(old.flags) {
        if flags == 0 {
            break;
        }
        let known = IPSET_SRC | IPSET_DST | if bit == 1 { IPSET_MATCH_INV } else { 0 };
        if flags & !known != 0 {
            return None;
        }
        info.dim = bit;
        if flags & IPSET_SRC != 0 {
            info.flags |= 1 << bit;
        }
        if flags & IPSET_MATCH_INV != 0 {
            info.flags |= IPSET_INV_MATCH;
        }
    }
    Some(info)
}

/// Encodes a set and the parts to look up; the reverse of [`read_info`]. A set without an index
/// gets the invalid index.
pub(in crate::xt) const fn write_info(
    set: &SetId,
    directions: SetDirections,
    flags: u8,
) -> xt_set_info {
    xt_set_info {
        index: match set {
            SetId::Index(index) => *index,
            SetId::Name(_) => IPSET_INVALID_ID,
        },
        dim: directions.count,
        flags: flags | directions.sources,
    }
}

/// Parses a set's name and its parts.
pub(in crate::xt) fn parse_set(
    given: &GivenOption<'_>,
) -> Result<(SetId, SetDirections), OptionError> {
    let name = given.parse(Name::parse)?;
    Ok((SetId::Name(name), given.parse_second(SetDirections::parse)?))
}

impl SetCounter {
    /// Decodes a condition; the outer `None` stands for an unknown operator.
    const fn read(op: u8, value: u64) -> Option<Option<Self>> {
        Some(match op {
            IPSET_COUNTER_NONE => None,
            IPSET_COUNTER_EQ => Some(Self::Equal(value)),
            IPSET_COUNTER_NE => Some(Self::NotEqual(value)),
            IPSET_COUNTER_LT => Some(Self::Less(value)),
            IPSET_COUNTER_GT => Some(Self::Greater(value)),
            _ => return None,
        })
    }

    const fn write(counter: Option<Self>) -> ip_set_counter_match {
        let (op, value) = match counter {
            None => (IPSET_COUNTER_NONE, 0),
            Some(Self::Equal(value)) => (IPSET_COUNTER_EQ, value),
            Some(Self::NotEqual(value)) => (IPSET_COUNTER_NE, value),
            Some(Self::Less(value)) => (IPSET_COUNTER_LT, value),
            Some(Self::Greater(value)) => (IPSET_COUNTER_GT, value),
        };
        ip_set_counter_match {
            value,
            op,
            __pad: [0; 7],
        }
    }

    fn parse(
        given: &[GivenOption<'_>],
        options: [&'static str; 3],
    ) -> Result<Option<Self>, OptionError> {
        let [equal, less, greater] = options;
        let mut of = given.iter().filter(|one| options.contains(&one.option));
        let Some(one) = of.next() else {
            return Ok(None);
        };
        if let Some(second) = of.next() {
            let reason = format!("only one of --{equal}, --{less}, --{greater} can be given");
            return Err(second.error(reason));
        }
        let value = one.parse(number)?;
        Ok(Some(if one.option == less {
            Self::Less(value)
        } else if one.option == greater {
            Self::Greater(value)
        } else if one.invert {
            Self::NotEqual(value)
        } else {
            Self::Equal(value)
        }))
    }

    fn print(self, name: &str, text: &mut Text) {
        let (invert, how, value) = match self {
            Self::Equal(value) => (false, "-eq ", value),
            Self::NotEqual(value) => (true, "-eq ", value),
            Self::Less(value) => (false, "-lt ", value),
            Self::Greater(value) => (false, "-gt ", value),
        };
        text.option(invert, name).push(how).number(value);
    }
}

impl Extension for Set {
    const NAME: &'static str = "set";
    const REVISION: u8 = 4;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::two("match-set").inverts().required(),
        OptionSpec::two("match-set").inverts().or("set"),
        OptionSpec::switch("return-nomatch"),
        OptionSpec::switch("update-counters").inverts(),
        OptionSpec::switch("update-subcounters").inverts(),
        OptionSpec::one("packets-eq").inverts(),
        OptionSpec::one("packets-lt"),
        OptionSpec::one("packets-gt"),
        OptionSpec::one("bytes-eq").inverts(),
        OptionSpec::one("bytes-lt"),
        OptionSpec::one("bytes-gt"),
    ];
    const HAS_EFFECTS: bool = true;

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let (mut flags, mut packets, mut bytes) = (0, None, None);
        let mut allowed = IPSET_INV_MATCH;
        let info = match revision {
            0 if family == Family::Ipv4 => {
                upgrade(read_struct::<xt_set_info_match_v0>(info)?.match_set)?
            }
            1 | 2 => {
                if revision == 2 {
                    allowed |= IPSET_RETURN_NOMATCH;
                }
                read_struct::<xt_set_info_match_v1>(info)?.match_set
            }
            3 => {
                let info: xt_set_info_match_v3 = read_struct(info)?;
                packets = SetCounter::read(info.packets.op, info.packets.value)?;
                bytes = SetCounter::read(info.bytes.op, info.bytes.value)?;
                flags = info.flags;
                info.match_set
            }
            4 => {
                let info: xt_set_info_match_v4 = read_struct(info)?;
                packets = SetCounter::read(info.packets.op, info.packets.value)?;
                bytes = SetCounter::read(info.bytes.op, info.bytes.value)?;
                flags = info.flags;
                info.match_set
            }
            _ => return None,
        };
        let (set, directions, more) = read_info(info)?;
        // The last one only means that counters are compared.
        let known = IPSET_FLAG_RETURN_NOMATCH
            | IPSET_FLAG_SKIP_COUNTER_UPDATE
            | IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE
            | IPSET_FLAG_MATCH_COUNTERS;
        (more & !allowed == 0 && flags & !known == 0).then_some(Self {
            set,
            directions,
            invert: more & IPSET_INV_MATCH != 0,
            return_nomatch: more & IPSET_RETURN_NOMATCH != 0
                || flags & IPSET_FLAG_RETURN_NOMATCH != 0,
            keep_counters: flags & IPSET_FLAG_SKIP_COUNTER_UPDATE != 0,
            keep_subcounters: flags & IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE != 0,
            packets,
            bytes,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_set_info_match_v4::new_zeroed();
        let invert = if self.invert { IPSET_INV_MATCH } else { 0 };
        info.match_set = write_info(&self.set, self.directions, invert);
        info.packets = SetCounter::write(self.packets);
        info.bytes = SetCounter::write(self.bytes);
        for (set, flag) in [
            (self.return_nomatch, IPSET_FLAG_RETURN_NOMATCH),
            (self.keep_counters, IPSET_FLAG_SKIP_COUNTER_UPDATE),
            (self.keep_subcounters, IPSET_FLAG_SKIP_SUBCOUNTER_UPDATE),
        ] {
            info.flags |= if set { flag } else { 0 };
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let find = |option| GivenOption::find(given, option);
        let matched = GivenOption::find_required(given, "match-set")?;
        let (set, directions) = parse_set(matched)?;
        Ok(Self {
            set,
            directions,
            invert: matched.invert,
            return_nomatch: find("return-nomatch").is_some(),
            keep_counters: find("update-counters").is_some_and(|one| one.invert),
            keep_subcounters: find("update-subcounters").is_some_and(|one| one.invert),
            packets: SetCounter::parse(given, ["packets-eq", "packets-lt", "packets-gt"])?,
            bytes: SetCounter::parse(given, ["bytes-eq", "bytes-lt", "bytes-gt"])?,
        })
    }

    fn print(&self, text: &mut Text) {
        text.option(self.invert, "match-set");
        self.set.print(text);
        self.directions.print(text);
        text.switch(self.return_nomatch, "return-nomatch");
        if self.keep_counters {
            text.option(true, "update-counters");
        }
        if self.keep_subcounters {
            text.option(true, "update-subcounters");
        }
        for (name, counter) in [("packets", self.packets), ("bytes", self.bytes)] {
            if let Some(counter) = counter {
                counter.print(name, text);
            }
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.bare(|text| self.print(text));
    }

    fn sets(&self) -> impl Iterator<Item = &SetId> {
        std::iter::once(&self.set)
    }

    fn sets_mut(&mut self) -> impl Iterator<Item = &mut SetId> {
        std::iter::once(&mut self.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::sets::tests::Names;
    use crate::xt::{Match, UnresolvedSet};

    /// Returns the data of `! --match-set two src,dst --return-nomatch ! --update-counters
    /// --packets-gt 5 ! --bytes-eq 7` from iptables-legacy 1.8.9, the set `two` having index 3.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 48];
        (info[0], info[2], info[3]) = (3, 2, 0x03);
        (info[8], info[16]) = (5, 4);
        (info[24], info[32]) = (7, 2);
        info[40] = 0x88;
        info
    }

    const TEXT: &str = "-m set ! --match-set two src,dst --return-nomatch ! --update-counters \
        --packets-gt 5 ! --bytes-eq 7";

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let mut set = Match::read(Family::Ipv4, "set", 4, &captured());
        assert_eq!(set.encode(Family::Ipv4).unwrap().info, captured());
        assert_eq!(set.to_string(), TEXT.replace("two", "[index 3]"));
        let mut names = Names(&[(3, "two")]);
        set.name_sets(&mut names).unwrap();
        assert_eq!(set.to_string(), TEXT);
        let mut rule = Rule::parse(Family::Ipv4, TEXT).unwrap();
        assert_eq!(rule.matches, [set.clone()]);
        // Encoding fails without an index.
        let error = set.encode(Family::Ipv4).unwrap_err();
        let name = Name::new("two").unwrap();
        assert_eq!(error, UnresolvedSet { name }.into());
        rule.resolve_sets(Family::Ipv4, &mut names).unwrap();
        let encoded = rule.matches[0].encode(Family::Ipv4).unwrap();
        assert_eq!((encoded.revision, &encoded.info[..]), (4, &captured()[..]));
        assert!(size_of::<Set>() <= 128);
    }

    #[test]
    #[cfg(all(target_endian = "little", not(target_arch = "x86")))]
    fn older_revisions() {
        // From the struct definitions in the header.
        let value = |revision, info: &[u8]| Set::read(Family::Ipv4, revision, info);
        let mut three = captured();
        (three[8], three[16], three[24], three[32]) = (4, 5, 2, 7);
        assert!(value(3, &three).is_some());
        assert_eq!(value(3, &three), value(4, &captured()));
        let plain = Rule::parse(Family::Ipv4, "-m set ! --match-set x src,dst").unwrap();
        let Match::Set(mut plain) = plain.matches[0].clone() else {
            panic!("{plain}")
        };
        plain.set = SetId::Index(3);
        assert_eq!(value(1, &[3, 0, 2, 3]), Some(plain.clone()));
        assert_eq!(value(2, &[3, 0, 2, 3]), Some(plain.clone()));
        let mut zero = vec![0; 32];
        (zero[0], zero[4], zero[8]) = (3, 5, 2);
        assert_eq!(value(0, &zero), Some(plain.clone()));
        assert_eq!(Set::read(Family::Ipv6, 0, &zero), None);
        plain.return_nomatch = true;
        assert_eq!(value(2, &[3, 0, 2, 0x83]), Some(plain));
        assert_eq!(value(1, &[3, 0, 2, 0x83]), None);
        zero[8] = 6;
        assert_eq!(value(0, &zero), None);
        assert_eq!(value(0, &zero[..31]), None);
        assert_eq!(value(1, &[3, 0, 2]), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn invalid_data_is_not_decoded() {
        for (at, byte) in [
            (2, 0),
            (2, 7),
            (3, 0x0b),
            (3, 0x83),
            (16, 5),
            (32, 9),
            (40, 1),
            (43, 1),
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(Set::read(Family::Ipv4, 4, &info), None, "{byte} at {at}");
        }
        assert_eq!(Set::read(Family::Ipv4, 4, &captured()[..47]), None);
        assert_eq!(Set::read(Family::Ipv4, 5, &captured()), None);
    }

    #[test]
    fn refusals() {
        for (options, reason) in [
            ("", "--match-set is required"),
            (
                "--match-set x src,",
                "--match-set: `src,` is not one to 6 of src and dst, like src,dst",
            ),
            (
                "--match-set x src,src,src,src,src,src,src",
                "--match-set: `src,src,src,src,src,src,src` is not one to 6 of src and dst, like src,dst",
            ),
            (
                "--match-set 12345678901234567890123456789012 src",
                "--match-set: it has 32 bytes; 1 to 31 are allowed",
            ),
            (
                "--match-set x src --bytes-lt 3 --bytes-eq 4",
                "--bytes-eq: only one of --bytes-eq, --bytes-lt, --bytes-gt can be given",
            ),
            (
                "--match-set x src ! --bytes-lt 3",
                "--bytes-lt cannot be negated",
            ),
            (
                "--match-set x src --packets-eq -1",
                "--packets-eq: `-1` is not a number from 0 to 18446744073709551615",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-m set {options}")).unwrap_err();
            assert_eq!(fault.message, format!("-m set: {reason}"));
        }
    }
}
