//! `-m sctp`: compares ports and chunks of SCTP. The rule is for `-p sctp`.
//!
//! Data of revision 0: `struct xt_sctp_info` (`linux/netfilter/xt_sctp.h`).

use bstr::{BStr, ByteSlice};
use chainwright_sys::xt_sctp::{
    SCTP_CHUNK_MATCH_ALL, SCTP_CHUNK_MATCH_ANY, SCTP_CHUNK_MATCH_ONLY, XT_NUM_SCTP_FLAGS,
    XT_SCTP_CHUNK_TYPES, XT_SCTP_DEST_PORTS, XT_SCTP_SRC_PORTS, XT_SCTP_VALID_FLAGS,
    xt_sctp_flag_info, xt_sctp_info,
};
use zerocopy::FromZeros;

use super::ports::{self, PortRange};
use crate::xt::pack;
use crate::xt::value::{Parsed, word_of};
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text, read_struct,
    write_struct,
};

/// Comparison of a packet's chunks with a list of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SctpScope {
    /// At least one of the types is present.
    Any,
    /// All types are present.
    All,
    /// No other types are present.
    Only,
}

/// A chunk type, and the flags of its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SctpChunk {
    /// The type, one with a name in iptables.
    pub kind: u8,
    /// Flags to compare, as in the chunk's header.
    pub mask: u8,
    /// The flags in `mask` that must be set; the others must not be.
    pub flags: u8,
}

/// Conditions for chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SctpChunks {
    /// The comparison of the types.
    pub scope: SctpScope,
    /// The types, in ascending order; `None` for all types. At most four have a mask.
    pub types: Option<Vec<SctpChunk>>,
    /// Whether the comparison is negated.
    pub invert: bool,
}

/// `-m sctp`: compares ports and chunks of SCTP. The rule is for `-p sctp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Sctp {
    /// Source ports.
    pub source: Option<PortRange>,
    /// Destination ports.
    pub destination: Option<PortRange>,
    /// Chunks.
    pub chunks: Option<SctpChunks>,
}

/// Name, number and flags of each chunk type. The letters belong to bits 7 to 0.
const CHUNKS: [(&str, u8, &[u8; 8]); 22] = [
    ("DATA", 0, b"----IUBE"),
    ("INIT", 1, NO_FLAGS),
    ("INIT_ACK", 2, NO_FLAGS),
    ("SACK", 3, NO_FLAGS),
    ("HEARTBEAT", 4, NO_FLAGS),
    ("HEARTBEAT_ACK", 5, NO_FLAGS),
    ("ABORT", 6, b"-------T"),
    ("SHUTDOWN", 7, NO_FLAGS),
    ("SHUTDOWN_ACK", 8, NO_FLAGS),
    ("ERROR", 9, NO_FLAGS),
    ("COOKIE_ECHO", 10, NO_FLAGS),
    ("COOKIE_ACK", 11, NO_FLAGS),
    ("ECN_ECNE", 12, NO_FLAGS),
    ("ECN_CWR", 13, NO_FLAGS),
    ("SHUTDOWN_COMPLETE", 14, b"-------T"),
    ("I_DATA", 64, b"----IUBE"),
    ("ASCONF_ACK", 128, NO_FLAGS),
    ("RE_CONFIG", 130, NO_FLAGS),
    ("PAD", 132, NO_FLAGS),
    ("FORWARD_TSN", 192, NO_FLAGS),
    ("ASCONF", 193, NO_FLAGS),
    ("I_FORWARD_TSN", 194, NO_FLAGS),
];
const NO_FLAGS: &[u8; 8] = b"--------";

const SCOPES: [(&str, SctpScope); 3] = [
    ("any", SctpScope::Any),
    ("all", SctpScope::All),
    ("only", SctpScope::Only),
];

/// Returns the letter and bit of each flag.
fn letters(flags: &[u8; 8]) -> impl Iterator<Item = (u8, u8)> {
    let bits = (0..8).rev().map(|bit| 1 << bit);
    let all = flags.iter().copied().zip(bits);
    all.filter(|(letter, _)| *letter != b'-')
}

impl Extension for Sctp {
    const NAME: &'static str = "sctp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        ports::OPTIONS[0],
        ports::OPTIONS[1],
        ports::OPTIONS[2],
        ports::OPTIONS[3],
        OptionSpec::two("chunk-types").inverts(),
    ];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_sctp_info = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if (info.flags | info.invflags) & !XT_SCTP_VALID_FLAGS != 0 {
            return None;
        }
        let has = |flag| info.flags & flag != 0;
        let inverted = |flag| info.invflags & flag != 0;
        let ports = |ports, flag| has(flag).then(|| PortRange::of(ports, inverted(flag)));
        let chunks = if has(XT_SCTP_CHUNK_TYPES) {
            Some(SctpChunks::read(&info, inverted(XT_SCTP_CHUNK_TYPES))?)
        } else {
            None
        };
        Some(Self {
            source: ports(info.spts, XT_SCTP_SRC_PORTS),
            destination: ports(info.dpts, XT_SCTP_DEST_PORTS),
            chunks,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_sctp_info::new_zeroed();
        for flags in &mut info.flag_info {
            flags.chunktype = u8::MAX;
        }
        let mut set = |flag, invert| {
            info.flags |= flag;
            if invert {
                info.invflags |= flag;
            }
        };
        if let Some(ports) = self.source {
            set(XT_SCTP_SRC_PORTS, ports.invert);
            info.spts = ports.ends();
        }
        if let Some(ports) = self.destination {
            set(XT_SCTP_DEST_PORTS, ports.invert);
            info.dpts = ports.ends();
        }
        if let Some(chunks) = &self.chunks {
            set(XT_SCTP_CHUNK_TYPES, chunks.invert);
            chunks.write(&mut info)?;
        }
        Ok(write_struct(&info))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(132, "sctp")?;
        let mut sctp = Self::default();
        for one in given {
            match one.option {
                "sport" => sctp.source = Some(PortRange::parse(context, one, 132)?),
                "dport" => sctp.destination = Some(PortRange::parse(context, one, 132)?),
                _ => {
                    sctp.chunks = Some(SctpChunks {
                        scope: one.parse(|value| word_of(value, &SCOPES))?,
                        types: one.parse_second(types)?,
                        invert: one.invert,
                    });
                }
            }
        }
        Ok(sctp)
    }

    fn print(&self, text: &mut Text) {
        if let Some(ports) = self.source {
            ports.print(text, "sport");
        }
        if let Some(ports) = self.destination {
            ports.print(text, "dport");
        }
        if let Some(chunks) = &self.chunks {
            text.option(chunks.invert, "chunk-types");
            text.push(match chunks.scope {
                SctpScope::Any => " any",
                SctpScope::All => " all",
                SctpScope::Only => " only",
            });
            match chunks.types.as_deref() {
                None => drop(text.push(" ALL")),
                Some([]) => drop(text.push(" NONE")),
                Some(types) => print_types(types, text),
            }
        }
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        text.push(" sctp");
        for (ports, name) in [(self.source, "spt"), (self.destination, "dpt")] {
            if let Some(ports) = ports {
                ports.list(text, name, Some(132), style);
            }
        }
        if self.chunks.is_some() {
            let chunks = Self {
                source: None,
                destination: None,
                chunks: self.chunks.clone(),
            };
            chunks.print(text);
        }
    }
}

impl SctpChunks {
    fn read(info: &xt_sctp_info, invert: bool) -> Option<Self> {
        let scope = match info.chunk_match_type {
            SCTP_CHUNK_MATCH_ANY => SctpScope::Any,
            SCTP_CHUNK_MATCH_ALL => SctpScope::All,
            SCTP_CHUNK_MATCH_ONLY => SctpScope::Only,
            _ => return None,
        };
        let flags = info
            .flag_info
            .get(..usize::try_from(info.flag_count).ok()?)?;
        let mut map = info.chunkmap;
        let types = if map.iter().all(|word| *word == u32::MAX) {
            if flags.iter().any(|one| one.flag_mask != 0 || one.flag != 0) {
                return None;
            }
            None
        } else {
            let mut types = Vec::new();
            for (_, kind, letters_of) in &CHUNKS {
                let (word, bit) = (&mut map[usize::from(kind / 32)], 1 << (kind % 32));
                if *word & bit == 0 {
                    continue;
                }
                *word &= !bit;
                // The kernel only uses the first entry of a type, and ignores entries of types
                // that are not in the map.
                let of = flags.iter().find(|one| one.chunktype == *kind);
                let (mask, flags) = of.map_or((0, 0), |one| (one.flag_mask, one.flag));
                let known = letters(letters_of).fold(0, |all, (_, bit)| all | bit);
                if mask & !known != 0 || flags & !mask != 0 {
                    return None;
                }
                types.push(SctpChunk {
                    kind: *kind,
                    mask,
                    flags,
                });
            }
            // A type without a name.
            if map.iter().any(|word| *word != 0) {
                return None;
            }
            Some(types)
        };
        Some(Self {
            scope,
            types,
            invert,
        })
    }

    fn write(&self, info: &mut xt_sctp_info) -> Result<(), OptionError> {
        info.chunk_match_type = match self.scope {
            SctpScope::Any => SCTP_CHUNK_MATCH_ANY,
            SctpScope::All => SCTP_CHUNK_MATCH_ALL,
            SctpScope::Only => SCTP_CHUNK_MATCH_ONLY,
        };
        let Some(types) = &self.types else {
            info.chunkmap.fill(u32::MAX);
            return Ok(());
        };
        for one in types {
            info.chunkmap[usize::from(one.kind / 32)] |= 1 << (one.kind % 32);
        }
        let with_flags: Vec<_> = types
            .iter()
            .filter(|one| one.mask | one.flags != 0)
            .collect();
        let max_flags = info.flag_info.len();
        pack::at_most("chunk-types", &with_flags, max_flags, "types with flags")?;
        for (place, one) in info.flag_info.iter_mut().zip(with_flags) {
            *place = xt_sctp_flag_info {
                chunktype: one.kind,
                flag: one.flags,
                flag_mask: one.mask,
            };
            info.flag_count += 1;
        }
        Ok(())
    }
}

/// Parses `ALL`, `NONE` or a list of types followed by flags: an upper-case letter for a set flag,
/// a lower-case letter for an unset one.
fn types(value: &BStr) -> Parsed<Option<Vec<SctpChunk>>> {
    if value.eq_ignore_ascii_case(b"ALL") {
        return Ok(None);
    }
    if value.eq_ignore_ascii_case(b"NONE") {
        return Ok(Some(Vec::new()));
    }
    if value.is_empty() {
        return Err("it is empty; use NONE for no chunk type".to_owned());
    }
    // One slot for each known type, which bounds the list.
    let mut types: [Option<SctpChunk>; CHUNKS.len()] = [None; CHUNKS.len()];
    for given in value.split_str(",").filter(|given| !given.is_empty()) {
        let (name, flags) = given.split_once_str(":").unwrap_or((given, b""));
        let names: [_; CHUNKS.len()] = std::array::from_fn(|place| (CHUNKS[place].0, place));
        let place = word_of(name.as_bstr(), &names)?;
        let (name, kind, letters_of) = CHUNKS[place];
        let chunk = types[place].get_or_insert(SctpChunk {
            kind,
            mask: 0,
            flags: 0,
        });
        for flag in flags {
            let found = letters(letters_of).find(|(letter, _)| letter.eq_ignore_ascii_case(flag));
            let Some((_, bit)) = found else {
                let flag = [*flag];
                return Err(format!("{name} chunks have no flag `{}`", flag.as_bstr()));
            };
            chunk.mask |= bit;
            if flag.is_ascii_uppercase() {
                chunk.flags |= bit;
            }
        }
    }
    let types: Vec<_> = types.into_iter().flatten().collect();
    if types.iter().filter(|one| one.mask != 0).count() > XT_NUM_SCTP_FLAGS {
        return Err(format!(
            "at most {XT_NUM_SCTP_FLAGS} chunk types can have flags"
        ));
    }
    Ok(Some(types))
}

fn print_types(types: &[SctpChunk], text: &mut Text) {
    let mut separator = " ";
    for one in types {
        let Some((name, _, flags)) = CHUNKS.iter().find(|(_, kind, _)| *kind == one.kind) else {
            continue;
        };
        text.push(separator).push(name);
        separator = ",";
        let mut before = ":";
        for (letter, bit) in letters(flags).filter(|(_, bit)| one.mask & bit != 0) {
            let set = one.flags & bit != 0;
            let letter = if set {
                letter
            } else {
                letter.to_ascii_lowercase()
            };
            text.push(before).push([letter]);
            before = "";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// Returns the data of `-p sctp -m sctp --dport 5:9 ! --chunk-types any
    /// DATA:Bu,ABORT:T,I_FORWARD_TSN` from iptables-legacy 1.8.9; bytes that are not set here are
    /// 0.
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 296];
        info[..8].copy_from_slice(&[5, 0, 9, 0, 0, 0, 0, 0]);
        info[8] = 0x41;
        info[8 + 24] = 0x04;
        info[264] = 1;
        info[268..280].copy_from_slice(&[0, 2, 6, 6, 1, 1, 255, 0, 0, 255, 0, 0]);
        info[280] = 2;
        info[284] = 6;
        info[288] = 4;
        info
    }

    fn read(info: &[u8]) -> Option<Sctp> {
        Sctp::read(Family::Ipv4, 0, info)
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let chunk = |kind, mask, flags| SctpChunk { kind, mask, flags };
        let sctp = Sctp {
            source: None,
            destination: Some(PortRange::new(5, 9)),
            chunks: Some(SctpChunks {
                scope: SctpScope::Any,
                types: Some(vec![chunk(0, 6, 2), chunk(6, 1, 1), chunk(194, 0, 0)]),
                invert: true,
            }),
        };
        assert_eq!(read(&captured()), Some(sctp.clone()));
        let sctp = Match::Sctp(sctp);
        assert_eq!(sctp.encode(Family::Ipv6).unwrap().info[..], captured());
        assert_eq!(
            sctp.to_string(),
            "-m sctp --dport 5:9 ! --chunk-types any DATA:uB,ABORT:T,I_FORWARD_TSN"
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        assert_eq!(read(&captured()[..291]), None);
        assert_eq!(Sctp::read(Family::Ipv4, 1, &captured()), None);
        for (at, byte) in [
            (10, 1),     // a type without a name
            (100, 1),    // no type
            (264, 3),    // both any and all
            (269, 8),    // a flag outside the mask
            (270, 0x8e), // a flag without a name
            (280, 5),    // too many flags
            (283, 0x80), // a negative number of flags
            (284, 0x0e),
            (288, 0x0c),
        ] {
            let mut info = captured();
            info[at] = byte;
            assert_eq!(read(&info), None, "byte {at}");
        }
        let mut info = captured();
        info[8..264].fill(0xff);
        assert_eq!(read(&info), None, "flags for all types should be rejected");
        info[280] = 0;
        assert_eq!(read(&info).unwrap().chunks.unwrap().types, None);
    }

    #[test]
    fn refusals() {
        let message = |options: &str| {
            let options = format!("-p sctp -m sctp {options}");
            Rule::parse(Family::Ipv4, options).unwrap_err().to_string()
        };
        assert!(message("--chunk-types some DATA").contains("`some` is not one of any, all, only"));
        assert!(message("--chunk-types any DATA,ALL").contains("`ALL` is not one of DATA, INIT"));
        assert!(message("--chunk-types any INIT:T").contains("INIT chunks have no flag `T`"));
        assert!(message("--chunk-types any DATA:-").contains("DATA chunks have no flag `-`"));
        assert!(message("--chunk-types any \"\"").contains("use NONE for no chunk type"));
        assert!(message("--chunk-types any").contains("--chunk-types takes two values"));
        let rule = Rule::parse(Family::Ipv4, "-p udp -m sctp --sport 1");
        assert!(rule.unwrap_err().to_string().contains("needs `-p sctp`"));
    }

    /// iptables 1.8.9 writes the flags of `I_DATA` for another chunk type, so that they have no
    /// effect, and does not print them.
    #[test]
    fn flags_of_every_type_are_its_own() {
        let text = "-p sctp -m sctp --chunk-types all I_DATA:UB";
        let rule = Rule::parse(Family::Ipv4, text).unwrap();
        assert_eq!(rule.to_string(), text);
        let info = rule.matches[0].encode(Family::Ipv4).unwrap().info.to_vec();
        assert_eq!(info[268..271], [64, 6, 6]);
        assert_eq!(Match::read(Family::Ipv4, "sctp", 0, &info), rule.matches[0]);
    }
}
