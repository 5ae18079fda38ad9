//! `-m tcp`: compares ports, flags and options of the TCP header. The rule is for `-p tcp`.
//!
//! Data of revision 0: `struct xt_tcp` (`linux/netfilter/xt_tcpudp.h`). Since 1.8.8,
//! `iptables-nft` writes native expressions instead where possible.

use chainwright_sys::xt_tcpudp::{
    XT_TCP_INV_DSTPT, XT_TCP_INV_FLAGS, XT_TCP_INV_MASK, XT_TCP_INV_OPTION, XT_TCP_INV_SRCPT,
    xt_tcp,
};

use super::ports::{self, PortRange};
use crate::xt::Negatable;
use crate::xt::value::{any_word_of, number_within};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup,
    OptionSpec, Text, add_struct, read_struct,
};

bitflags::bitflags! {
    /// TCP flags, as bits of byte 13 of the header.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TcpFlags: u8 {
        /// The sender has no more data.
        const FIN = 0x01;
        /// The first segment of a direction.
        const SYN = 0x02;
        /// The connection is reset.
        const RST = 0x04;
        /// The receiver should pass the data on immediately.
        const PSH = 0x08;
        /// The acknowledgement number is valid.
        const ACK = 0x10;
        /// The urgent pointer is valid.
        const URG = 0x20;
    }
}

/// Matches if the flags in `mask` equal `comp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlagsTest {
    /// Flags to compare.
    pub mask: TcpFlags,
    /// The flags in `mask` that must be set; the others must not be.
    pub comp: TcpFlags,
    /// Whether the comparison is negated.
    pub invert: bool,
}

impl TcpFlagsTest {
    /// `--syn`: the packet requests a connection.
    pub const SYN: Self = Self {
        mask: TcpFlags::SYN
            .union(TcpFlags::RST)
            .union(TcpFlags::ACK)
            .union(TcpFlags::FIN),
        comp: TcpFlags::SYN,
        invert: false,
    };
}

/// `-m tcp`: compares ports, flags and options of the TCP header. The rule is for `-p tcp`.
///
/// The default compares nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Tcp {
    /// Source ports.
    pub source: PortRange,
    /// Destination ports.
    pub destination: PortRange,
    /// Flags.
    pub flags: TcpFlagsTest,
    /// Kind of a TCP option that must be present, from 1; 0 is not compared.
    pub option: Option<Negatable<u8>>,
}

impl Extension for Tcp {
    const NAME: &'static str = "tcp";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        ports::OPTIONS[0],
        ports::OPTIONS[1],
        ports::OPTIONS[2],
        ports::OPTIONS[3],
        OptionSpec::two("tcp-flags").inverts(),
        OptionSpec::switch("syn").inverts(),
        OptionSpec::one("tcp-option").inverts(),
    ];
    const GROUPS: &'static [OptionGroup] = &[OptionGroup::at_most_one_of(&["tcp-flags", "syn"])];
    const DIFFERENCES: &'static [Difference] = &[Difference::kept(
        "-p tcp -m tcp ! --dport 0:65535",
        "-p tcp -m tcp",
        "iptables-save omits the option, so the rule matches every packet after a restore.",
    )];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_tcp = read_struct(info).filter(|_| revision == Self::REVISION)?;
        if info.invflags & !XT_TCP_INV_MASK != 0 {
            return None;
        }
        let inverted = |flag| info.invflags & flag != 0;
        Some(Self {
            source: PortRange::of(info.spts, inverted(XT_TCP_INV_SRCPT)),
            destination: PortRange::of(info.dpts, inverted(XT_TCP_INV_DSTPT)),
            flags: TcpFlagsTest {
                mask: TcpFlags::from_bits(info.flg_mask)?,
                comp: TcpFlags::from_bits(info.flg_cmp)?,
                invert: inverted(XT_TCP_INV_FLAGS),
            },
            // The kernel ignores the negation if there is no option.
            option: (info.option != 0).then_some(Negatable {
                value: info.option,
                invert: inverted(XT_TCP_INV_OPTION),
            }),
        })
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = Vec::new();
        self.write_to(family, &mut info)?;
        Ok(info)
    }

    fn write_to(&self, _: Family, info: &mut Vec<u8>) -> Result<(), OptionError> {
        let inverted = |invert, flag| if invert { flag } else { 0 };
        let option = self.option.unwrap_or(Negatable::is(0));
        let tcp = xt_tcp {
            spts: self.source.ends(),
            dpts: self.destination.ends(),
            option: option.value,
            flg_mask: self.flags.mask.bits(),
            flg_cmp: self.flags.comp.bits(),
            invflags: inverted(self.source.invert, XT_TCP_INV_SRCPT)
                | inverted(self.destination.invert, XT_TCP_INV_DSTPT)
                | inverted(self.flags.invert, XT_TCP_INV_FLAGS)
                | inverted(option.invert, XT_TCP_INV_OPTION),
        };
        add_struct(&tcp, info);
        Ok(())
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        context.needs_protocol(6, "tcp")?;
        let mut tcp = Self::default();
        for one in given {
            match one.option {
                "sport" => tcp.source = PortRange::parse(context, one, 6)?,
                "dport" => tcp.destination = PortRange::parse(context, one, 6)?,
                "tcp-option" => {
                    let with = one.parse(|value| number_within(value, 1..=u8::MAX))?;
                    tcp.option = Some(Negatable {
                        value: with,
                        invert: one.invert,
                    });
                }
                flags => {
                    tcp.flags = if flags == "syn" {
                        TcpFlagsTest::SYN
                    } else {
                        let bits = one.parse(|value| any_word_of(value, &WORDS))?;
                        let comp = one.parse_second(|value| any_word_of(value, &WORDS))?;
                        TcpFlagsTest {
                            mask: TcpFlags::from_bits_truncate(bits),
                            comp: TcpFlags::from_bits_truncate(comp),
                            invert: false,
                        }
                    };
                    tcp.flags.invert = one.invert;
                }
            }
        }
        Ok(tcp)
    }

    fn print(&self, text: &mut Text) {
        self.source.print_unless_any(text, "sport");
        self.destination.print_unless_any(text, "dport");
        if let Some(option) = self.option.filter(|option| option.value != 0) {
            text.option(option.invert, "tcp-option").push(" ");
            text.number(option.value);
        }
        if self.flags != TcpFlagsTest::default() {
            text.option(self.flags.invert, "tcp-flags");
            print_flags(self.flags.mask, text);
            print_flags(self.flags.comp, text);
        }
    }

    fn list(&self, text: &mut Text, style: ListStyle) {
        text.push(" tcp");
        self.source.list(text, "spt", Some(6), style);
        self.destination.list(text, "dpt", Some(6), style);
        if let Some(option) = self.option.filter(|option| option.value != 0) {
            text.push(if option.invert {
                " option=!"
            } else {
                " option="
            });
            text.number(option.value);
        }
        if self.flags != TcpFlagsTest::default() {
            text.push(if self.flags.invert {
                " flags:!"
            } else {
                " flags:"
            });
            let TcpFlagsTest { mask, comp, .. } = self.flags;
            if style.numeric {
                let (mask, comp) = (mask.bits(), comp.bits());
                text.display(format_args!("0x{mask:02X}/0x{comp:02X}"));
            } else {
                list_flags(mask, text);
                list_flags(comp, text.push("/"));
            }
        }
    }
}

/// Names of flags; the printed ones come first.
const WORDS: [(&str, u8); 8] = [
    ("FIN", 0x01),
    ("SYN", 0x02),
    ("RST", 0x04),
    ("PSH", 0x08),
    ("ACK", 0x10),
    ("URG", 0x20),
    ("ALL", 0x3f),
    ("NONE", 0),
];

fn print_flags(flags: TcpFlags, text: &mut Text) {
    list_flags(flags, text.push(" "));
}

/// Appends the names of flags, without a space.
fn list_flags(flags: TcpFlags, text: &mut Text) {
    let mut separator = "";
    for (name, bit) in &WORDS[..6] {
        if flags.bits() & bit != 0 {
            text.push(separator).push(name);
            separator = ",";
        }
    }
    if flags.is_empty() {
        text.push("NONE");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    /// `-p tcp -m tcp --sport 1024: ! --dport 80 ! --syn --tcp-option 5` by iptables-legacy 1.8.9.
    const CAPTURED: [u8; 16] = [
        0x00, 0x04, 0xff, 0xff, 80, 0, 80, 0, 5, 0x17, 0x02, 0x06, 0, 0, 0, 0,
    ];

    fn parse(options: &str) -> Result<String, String> {
        let rule = Rule::parse(Family::Ipv4, options);
        rule.map(|rule| rule.to_string())
            .map_err(|fault| fault.to_string())
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        let tcp = Tcp {
            source: PortRange::new(1024, u16::MAX),
            destination: PortRange::from(80).not(),
            flags: TcpFlagsTest {
                invert: true,
                ..TcpFlagsTest::SYN
            },
            option: Some(Negatable::is(5)),
        };
        assert_eq!(Tcp::read(Family::Ipv4, 0, &CAPTURED), Some(tcp));
        assert_eq!(
            Match::Tcp(tcp).encode(Family::Ipv6).unwrap().info[..],
            CAPTURED
        );
        assert_eq!(
            Match::Tcp(tcp).to_string(),
            "-m tcp --sport 1024:65535 ! --dport 80 --tcp-option 5 ! --tcp-flags FIN,SYN,RST,ACK SYN"
        );
    }

    #[test]
    fn inexpressible_data_stays_opaque() {
        assert_eq!(Tcp::read(Family::Ipv4, 0, &CAPTURED[..11]), None);
        assert_eq!(Tcp::read(Family::Ipv4, 1, &CAPTURED), None);
        for (at, bits) in [(9, 0x40), (10, 0x80), (11, 0x10)] {
            let mut info = CAPTURED;
            info[at] |= bits;
            assert_eq!(Tcp::read(Family::Ipv4, 0, &info), None, "byte {at}");
        }
        // A negation without an option.
        let mut info = CAPTURED;
        (info[8], info[11]) = (0, XT_TCP_INV_OPTION);
        assert_eq!(Tcp::read(Family::Ipv4, 0, &info).unwrap().option, None);
    }

    /// iptables-save 1.8.9 prints no options for these, so the printed rule matches every packet.
    #[test]
    fn prints_rules_that_never_match() {
        for options in ["! --dport 0:65535", "--tcp-flags NONE SYN"] {
            let rule = format!("-p tcp -m tcp {options}");
            assert_eq!(parse(&rule), Ok(rule));
        }
    }

    #[test]
    fn refusals() {
        for (options, fault) in [
            ("-m tcp --dport 80", "-m tcp: the rule needs `-p tcp`"),
            ("! -p tcp -m tcp", "-m tcp: the rule needs `-p tcp`"),
            (
                "-p tcp --dport 9:3",
                "the range `9:3` ends before it starts",
            ),
            ("-p tcp --dport 65536", "`65536` is more than 65535"),
            ("-p tcp --sport 1 --source-port 2", "given only once"),
            (
                "-p tcp --syn --tcp-flags ALL SYN",
                "--tcp-flags cannot be used with --syn",
            ),
            (
                "-p tcp --tcp-flags ALL ECE",
                "`ECE` is not one of FIN, SYN,",
            ),
            ("-p tcp --tcp-option 0", "`0` is not a number from 1 to 255"),
        ] {
            let message = parse(options).unwrap_err();
            assert!(message.contains(fault), "{options}: {message}");
        }
    }
}
