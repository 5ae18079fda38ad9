//! `-m bpf`: runs a BPF program on the packet.
//!
//! Data of revision 1, and of revision 0, which only supports bytecode (`struct xt_bpf_info_v1`
//! and `xt_bpf_info`, `linux/netfilter/xt_bpf.h`). A program given by a file descriptor stays
//! opaque, because the descriptor is meaningless after the rule was added.

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::filter::sock_filter;
use chainwright_sys::xt_bpf::{
    XT_BPF_MAX_NUM_INSTR, XT_BPF_MODE_BYTECODE, XT_BPF_MODE_PATH_PINNED, XT_BPF_PATH_MAX,
    xt_bpf_info, xt_bpf_info_v1,
};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::xt::pack;
use crate::xt::value::{Parsed, line, number, number_within, string};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, OptionError, OptionGroup, OptionSpec,
    Text, read_struct, write_struct,
};

/// Maximum length of a path, in bytes.
const MAX_LENGTH: usize = XT_BPF_PATH_MAX - 1;

/// A classic BPF instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BpfInstruction {
    /// Operation.
    pub code: u16,
    /// Number of instructions to skip if a comparison is true.
    pub jt: u8,
    /// Number of instructions to skip if it is false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// `-m bpf`: runs a BPF program on the packet.
///
/// Matches if the program returns a value other than 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Bpf {
    /// A classic BPF program of 1 to 64 instructions, applied from the IP header.
    Bytecode(Vec<BpfInstruction>),
    /// The program pinned at this path of a BPF file system, 1 to 511 bytes. The kernel looks up
    /// the path when a process adds the rule, in the mount namespace of that process.
    Pinned(BString),
}

fn read_program(program: &[sock_filter], count: u16) -> Option<Bpf> {
    let program = program.get(..usize::from(count))?;
    if program.is_empty() {
        return None;
    }
    let read = |one: &sock_filter| BpfInstruction {
        code: one.code,
        jt: one.jt,
        jf: one.jf,
        k: one.k,
    };
    Some(Bpf::Bytecode(program.iter().map(read).collect()))
}

/// Parses `COUNT,CODE JT JF K,…`, with an optional comma at the end.
fn program(value: &BStr) -> Parsed<Vec<BpfInstruction>> {
    let Some((count, instructions)) = value.split_once_str(",") else {
        return Err(format!(
            "`{value}` is not of the form `COUNT,CODE JT JF K,…`, as nfbpf_compile prints it"
        ));
    };
    let count: usize = number_within(
        count.trim_ascii().as_bstr(),
        1..=XT_BPF_MAX_NUM_INSTR as u64,
    )
    .map(|count| count as usize)
    .map_err(|reason| format!("the number of instructions: {reason}"))?;
    let instructions = instructions.trim_ascii_end();
    let instructions = instructions.strip_suffix(b",").unwrap_or(instructions);
    let mut program = Vec::new();
    for (position, text) in instructions.split_str(",").enumerate() {
        if position == count {
            break;
        }
        let wrong = |reason| format!("instruction {}: {reason}", position + 1);
        let words: Vec<_> = text
            .fields_with(|c| c.is_ascii_whitespace())
            .map(ByteSlice::as_bstr)
            .collect();
        let [code, jt, jf, k] = words[..] else {
            return Err(wrong(format!(
                "`{}` is not of the form `CODE JT JF K`",
                text.as_bstr()
            )));
        };
        program.push(BpfInstruction {
            code: number(code).map_err(wrong)?,
            jt: number(jt).map_err(wrong)?,
            jf: number(jf).map_err(wrong)?,
            k: number(k).map_err(wrong)?,
        });
    }
    let given = instructions.split_str(",").count();
    if given != count {
        return Err(format!("expected {count} instructions, found {given}"));
    }
    Ok(program)
}

impl Extension for Bpf {
    const NAME: &'static str = "bpf";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("bytecode"),
        OptionSpec::one("object-pinned"),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::one_of(&["bytecode", "object-pinned"])];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-m bpf --bytecode \"1,6 0 0 0x10\"",
        "-m bpf --bytecode \"1,6 0 0 0\"",
        "iptables reads hexadecimal numbers of a program as 0.",
    )
    .printed("-m bpf --bytecode \"1,6 0 0 16\"")];
    /// A pinned program may keep state.
    const HAS_EFFECTS: bool = true;

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        match revision {
            0 => {
                let info: xt_bpf_info = read_struct(info)?;
                read_program(&info.bpf_program, info.bpf_program_num_elem)
            }
            1 => {
                let info: xt_bpf_info_v1 = read_struct(info)?;
                match info.mode {
                    XT_BPF_MODE_BYTECODE => {
                        let program =
                            <[sock_filter; XT_BPF_MAX_NUM_INSTR]>::read_from_bytes(&info.path);
                        read_program(&program.ok()?, info.bpf_program_num_elem)
                    }
                    XT_BPF_MODE_PATH_PINNED => line(&info.path)
                        .filter(|path| !path.is_empty())
                        .map(|path| Self::Pinned(path.to_owned())),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = xt_bpf_info_v1::new_zeroed();
        match self {
            Self::Bytecode(program) => {
                info.mode = XT_BPF_MODE_BYTECODE;
                let mut into = [sock_filter::new_zeroed(); XT_BPF_MAX_NUM_INSTR];
                let program = pack::at_most("bytecode", program, into.len(), "instructions")?;
                for (one, into) in program.iter().zip(&mut into) {
                    (into.code, into.jt, into.jf, into.k) = (one.code, one.jt, one.jf, one.k);
                    info.bpf_program_num_elem += 1;
                }
                info.path.copy_from_slice(into.as_bytes());
            }
            Self::Pinned(path) => {
                info.mode = XT_BPF_MODE_PATH_PINNED;
                info.path = pack::text("object-pinned", path)?;
            }
        }
        Ok(write_struct(&info))
    }

    fn parse(_: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let one = Self::GROUPS[0].find(given)?;
        Ok(match one.option {
            "bytecode" => Self::Bytecode(one.parse(program)?),
            _ => Self::Pinned(one.parse(|value| string(value, 1..=MAX_LENGTH))?.to_owned()),
        })
    }

    fn print(&self, text: &mut Text) {
        match self {
            Self::Bytecode(program) => {
                text.option(false, "bytecode").push(" \"");
                text.number(program.len() as u64);
                for one in program {
                    let BpfInstruction { code, jt, jf, k } = one;
                    text.display(format_args!(",{code} {jt} {jf} {k}"));
                }
                text.push("\"");
            }
            Self::Pinned(path) => {
                text.option(false, "object-pinned").name(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    fn captured(start: &[u8]) -> Vec<u8> {
        let mut info = start.to_vec();
        info.resize(528, 0);
        info
    }

    /// Data from iptables-legacy 1.8.9 for `--bytecode "2,48 0 0 9,6 0 0 5"` (from `strace -xx`).
    const BYTECODE: [u8; 21] = [
        0, 0, 2, 0, 0, 0, 0, 0, 48, 0, 0, 0, 9, 0, 0, 0, 6, 0, 0, 0, 5,
    ];

    fn bytecode() -> Bpf {
        Bpf::Bytecode(vec![
            BpfInstruction {
                code: 48,
                jt: 0,
                jf: 0,
                k: 9,
            },
            BpfInstruction {
                code: 6,
                jt: 0,
                jf: 0,
                k: 5,
            },
        ])
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let info = captured(&BYTECODE);
        assert_eq!(Bpf::read(Family::Ipv4, 1, &info), Some(bytecode()));
        let bpf = Match::Bpf(bytecode());
        assert_eq!(bpf.encode(Family::Ipv4).unwrap().info[..], info);
        assert_eq!(bpf.to_string(), "-m bpf --bytecode \"2,48 0 0 9,6 0 0 5\"");
        // In revision 0 the program is four bytes earlier.
        let mut old = vec![2, 0, 0, 0];
        old.extend_from_slice(&info[8..]);
        old.resize(528, 0);
        assert_eq!(Bpf::read(Family::Ipv4, 0, &old), Some(bytecode()));
        assert_eq!(Bpf::read(Family::Ipv4, 0, &old[..527]), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_pinned_program_is_named_by_its_path() {
        // `--object-pinned /run/bpf/prog` by iptables-legacy 1.8.9 (from `strace -xx`), which also
        // writes the file descriptor of its own lookup; the kernel does not use it.
        let info = captured(b"\x01\0\0\0\x03\0\0\0/run/bpf/prog");
        let pinned = Bpf::Pinned("/run/bpf/prog".into());
        assert_eq!(Bpf::read(Family::Ipv4, 1, &info), Some(pinned.clone()));
        let written = captured(b"\x01\0\0\0\0\0\0\0/run/bpf/prog");
        assert_eq!(pinned.write(Family::Ipv4).unwrap(), written);
        let pinned = Match::Bpf(pinned);
        assert_eq!(pinned.to_string(), "-m bpf --object-pinned /run/bpf/prog");
        let rule = Rule::parse(Family::Ipv4, pinned.to_string()).unwrap();
        assert_eq!(rule.matches, [pinned]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn inexpressible_data_stays_opaque() {
        let read = |info: &[u8]| Bpf::read(Family::Ipv4, 1, info);
        assert_eq!(read(&captured(&BYTECODE)[..527]), None);
        assert_eq!(Bpf::read(Family::Ipv4, 2, &captured(&BYTECODE)), None);
        for (at, byte) in [(0, 2), (0, 3), (2, 0), (2, 65)] {
            let mut info = captured(&BYTECODE);
            info[at] = byte;
            assert_eq!(read(&info), None, "{at}");
        }
        assert_eq!(read(&captured(b"\x01\0\0\0\0\0\0\0")), None);
        let mut endless = captured(b"\x01\0\0\0\0\0\0\0");
        endless[8..].fill(b'x');
        assert_eq!(read(&endless), None);
    }

    #[test]
    fn refusals() {
        let read = |text: &str| program(text.as_bytes().as_bstr());
        assert_eq!(read("1, 6  0 0 1 ,"), read("1,6 0 0 1"));
        for (text, reason) in [
            (
                "1",
                "`1` is not of the form `COUNT,CODE JT JF K,…`, as nfbpf_compile prints it",
            ),
            (
                "0,",
                "the number of instructions: `0` is not a number from 1 to 64",
            ),
            (
                "65,6 0 0 1",
                "the number of instructions: `65` is not a number from 1 to 64",
            ),
            ("2,6 0 0 1", "expected 2 instructions, found 1"),
            ("1,6 0 0 1,6 0 0 1", "expected 1 instructions, found 2"),
            (
                "1,6 0 0",
                "instruction 1: `6 0 0` is not of the form `CODE JT JF K`",
            ),
            (
                "1,6 300 0 1",
                "instruction 1: `300` is not a number from 0 to 255",
            ),
            (
                "1,6 0 0 -1",
                "instruction 1: `-1` is not a number from 0 to 4294967295",
            ),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()), "{text}");
        }
        for (options, expected) in [
            ("-m bpf", "--bytecode or --object-pinned is required"),
            (
                "-m bpf --bytecode \"1,6 0 0 1\" --object-pinned /x",
                "--object-pinned cannot be used with --bytecode",
            ),
        ] {
            let error = Rule::parse(Family::Ipv4, options).unwrap_err();
            assert_eq!(error.message, format!("-m bpf: {expected}"));
        }
    }
}
