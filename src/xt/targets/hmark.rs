//! `-j HMARK`: sets the packet's mark to a hash of the packet, or of its connection.
//!
//! Data of revision 0 (`struct xt_hmark_info`, `linux/netfilter/xt_HMARK.h`): masks and values for
//! the hash input, flags for the given ones, the seed of the hash, the number of different marks,
//! and the lowest mark. Two ports share their four bytes with a security parameter index. An IPv4
//! address has 16 bytes; the kernel uses 4 of them, and the bytes that `--hmark-tuple` of iptables
//! writes into the others are not preserved.

use bstr::{BStr, ByteSlice};
use chainwright_sys::netfilter::nf_inet_addr;
use chainwright_sys::xt_hmark_target::{
    XT_HMARK_CT, XT_HMARK_DADDR_MASK, XT_HMARK_DPORT, XT_HMARK_DPORT_MASK, XT_HMARK_MODULUS,
    XT_HMARK_OFFSET, XT_HMARK_PROTO_MASK, XT_HMARK_RND, XT_HMARK_SADDR_MASK, XT_HMARK_SPI,
    XT_HMARK_SPI_MASK, XT_HMARK_SPORT, XT_HMARK_SPORT_MASK, hmark_ports, xt_hmark_info,
};
use zerocopy::{FromZeros, IntoBytes};

use crate::xt::pack;
use crate::xt::value::{Parsed, address, number, number_within, width};
use crate::xt::{
    Context, Difference, Extension, Family, GivenOption, Mask, OptionError, OptionSpec, Text,
    read_struct, write_struct,
};

/// `-j HMARK`: sets the packet's mark to a hash of the packet, or of its connection.
///
/// The mark becomes the hash, scaled to `modulus`, plus the offset. `None` stands for a field that
/// is not hashed, or not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Hmark {
    /// Mask for the source address in the hash, without gaps.
    pub source_prefix: Option<Mask>,
    /// Mask for the destination address in the hash, without gaps.
    pub destination_prefix: Option<Mask>,
    /// Mask for the source port in the hash, in host byte order.
    pub source_port_mask: Option<u16>,
    /// Mask for the destination port in the hash, in host byte order.
    pub destination_port_mask: Option<u16>,
    /// Mask for the security parameter index of AH or ESP in the hash, in host byte order. Excludes
    /// the port masks.
    pub spi_mask: Option<u32>,
    /// Bits to set in the source port before hashing, in host byte order.
    pub source_port: Option<u16>,
    /// Bits to set in the destination port before hashing, in host byte order.
    pub destination_port: Option<u16>,
    /// Bits to set in the security parameter index before hashing, in host byte order. Excludes the
    /// ports.
    pub spi: Option<u32>,
    /// Mask for the layer 4 protocol number in the hash.
    pub protocol_mask: Option<u16>,
    /// Whether to use addresses and ports of the connection's original direction.
    pub connection: bool,
    /// Seed of the hash.
    pub seed: u32,
    /// Number of different marks; not 0.
    pub modulus: u32,
    /// The lowest mark.
    pub offset: Option<u32>,
}

impl Hmark {
    fn info(&self, family: Family) -> Result<xt_hmark_info, OptionError> {
        let mut info = xt_hmark_info::new_zeroed();
        let mut set = |flag: u32, is_set: bool| info.flags |= u32::from(is_set) << flag;
        set(XT_HMARK_SADDR_MASK, self.source_prefix.is_some());
        set(XT_HMARK_DADDR_MASK, self.destination_prefix.is_some());
        set(XT_HMARK_SPI, self.spi.is_some());
        set(XT_HMARK_SPI_MASK, self.spi_mask.is_some());
        set(XT_HMARK_SPORT, self.source_port.is_some());
        set(XT_HMARK_DPORT, self.destination_port.is_some());
        set(XT_HMARK_SPORT_MASK, self.source_port_mask.is_some());
        set(XT_HMARK_DPORT_MASK, self.destination_port_mask.is_some());
        set(XT_HMARK_PROTO_MASK, self.protocol_mask.is_some());
        set(XT_HMARK_RND, true);
        set(XT_HMARK_MODULUS, true);
        set(XT_HMARK_OFFSET, self.offset.is_some());
        set(XT_HMARK_CT, self.connection);
        let mask = |option, prefix: Option<Mask>| {
            let Some(mask) = prefix else {
                return Ok(nf_inet_addr { all: [0; 16] });
            };
            let why = "a prefix must be contiguous";
            pack::require(mask.prefix_length().is_some(), option, why)?;
            mask.write(option, family).map(|all| nf_inet_addr { all })
        };
        info.src_mask = mask("hmark-src-prefix", self.source_prefix)?;
        info.dst_mask = mask("hmark-dst-prefix", self.destination_prefix)?;
        info.port_mask = ports(
            self.source_port_mask,
            self.destination_port_mask,
            self.spi_mask,
        );
        info.port_set = ports(self.source_port, self.destination_port, self.spi);
        info.proto_mask = self.protocol_mask.unwrap_or(0);
        info.hashrnd = self.seed;
        info.hmodulus = self.modulus;
        info.hoffset = self.offset.unwrap_or(0);
        Ok(info)
    }

    /// Returns an error about the combination of options.
    fn error(&self) -> Option<OptionError> {
        let port_masks = self.source_port_mask.or(self.destination_port_mask);
        let ports = self.source_port.or(self.destination_port);
        if self.spi_mask.is_some() && port_masks.is_some() {
            return Some(OptionError::of_all(
                "masks of ports and of a security parameter index cannot be combined",
            ));
        }
        let hashes = self.connection
            || self.source_prefix.or(self.destination_prefix).is_some()
            || port_masks.or(ports).or(self.protocol_mask).is_some()
            || self.spi_mask.or(self.spi).is_some();
        (!hashes).then(|| {
            OptionError::of_all(
                "nothing to hash: an option such as --hmark-tuple src,dst is required",
            )
        })
    }

    /// Parses the parts of `--hmark-tuple`: names in upper or lower case, or prefixes of them.
    fn tuple(&mut self, one: &GivenOption<'_>, family: Family) -> Result<(), OptionError> {
        let all = Mask::full(family);
        for part in one.value().split_str(",") {
            let lower = part.to_ascii_lowercase();
            let name = PARTS
                .iter()
                .find(|name| !lower.is_empty() && name.as_bytes().starts_with(&lower));
            let Some(name) = name else {
                let names = PARTS.join(", ");
                let part = part.as_bstr();
                return Err(one.error(format!("`{part}` is not one of {names}")));
            };
            match *name {
                "ct" => self.connection = true,
                "src" => set(&mut self.source_prefix, all, one)?,
                "dst" => set(&mut self.destination_prefix, all, one)?,
                "sport" => set(&mut self.source_port_mask, u16::MAX, one)?,
                "dport" => set(&mut self.destination_port_mask, u16::MAX, one)?,
                "proto" => set(&mut self.protocol_mask, u16::MAX, one)?,
                _ => set(&mut self.spi_mask, u32::MAX, one)?,
            }
        }
        Ok(())
    }
}

/// If several parts have the same prefix, the first one matches.
const PARTS: [&str; 7] = ["ct", "src", "dst", "sport", "dport", "proto", "spi"];

fn ports(source: Option<u16>, destination: Option<u16>, spi: Option<u32>) -> hmark_ports {
    let [a, b, c, d] = spi.unwrap_or(0).to_be_bytes();
    hmark_ports {
        src: source.map_or([a, b], u16::to_be_bytes),
        dst: destination.map_or([c, d], u16::to_be_bytes),
    }
}

fn set<T>(place: &mut Option<T>, value: T, one: &GivenOption<'_>) -> Result<(), OptionError> {
    if place.replace(value).is_some() {
        return Err(one.error("it is given twice (--hmark-tuple counts too)"));
    }
    Ok(())
}

impl Extension for Hmark {
    const NAME: &'static str = "HMARK";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("hmark-tuple"),
        OptionSpec::one("hmark-src-prefix"),
        OptionSpec::one("hmark-dst-prefix"),
        OptionSpec::one("hmark-sport-mask"),
        OptionSpec::one("hmark-dport-mask"),
        OptionSpec::one("hmark-spi-mask"),
        OptionSpec::one("hmark-sport"),
        OptionSpec::one("hmark-dport"),
        // A packet has ports or a security parameter index.
        OptionSpec::one("hmark-spi").excludes(&["hmark-sport", "hmark-dport"]),
        OptionSpec::one("hmark-proto-mask"),
        OptionSpec::one("hmark-rnd").required(),
        OptionSpec::one("hmark-mod").required(),
        OptionSpec::one("hmark-offset"),
    ];
    const DIFFERENCES: &'static [Difference] = &[Difference::refused(
        "-j HMARK --hmark-src-prefix 33 --hmark-rnd 7 --hmark-mod 5",
        "-j HMARK --hmark-src-prefix 32 --hmark-rnd 0x00000007 --hmark-mod 5",
        "An IPv4 address has 32 bits.",
    )
    .within("mangle", "PREROUTING")];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let mut info: xt_hmark_info = read_struct(info)?;
        if revision != Self::REVISION {
            return None;
        }
        let has = |flag: u32| info.flags & (1 << flag) != 0;
        let prefix = |flag, mask: &nf_inet_addr| {
            let mask = Mask::read(family, &mask.all);
            let message = has(flag).then_some(mask);
            mask.prefix_length().map(|_| message)
        };
        let port = |flag, port| has(flag).then_some(u16::from_be_bytes(port));
        let spi = |flag, ports: &hmark_ports| {
            let ([a, b], [c, d]) = (ports.src, ports.dst);
            has(flag).then_some(u32::from_be_bytes([a, b, c, d]))
        };
        let value = Self {
            source_prefix: prefix(XT_HMARK_SADDR_MASK, &info.src_mask)?,
            destination_prefix: prefix(XT_HMARK_DADDR_MASK, &info.dst_mask)?,
            source_port_mask: port(XT_HMARK_SPORT_MASK, info.port_mask.src),
            destination_port_mask: port(XT_HMARK_DPORT_MASK, info.port_mask.dst),
            spi_mask: spi(XT_HMARK_SPI_MASK, &info.port_mask),
            source_port: port(XT_HMARK_SPORT, info.port_set.src),
            destination_port: port(XT_HMARK_DPORT, info.port_set.dst),
            spi: spi(XT_HMARK_SPI, &info.port_set),
            protocol_mask: has(XT_HMARK_PROTO_MASK).then_some(info.proto_mask),
            connection: has(XT_HMARK_CT),
            seed: info.hashrnd,
            modulus: info.hmodulus,
            offset: has(XT_HMARK_OFFSET).then_some(info.hoffset),
        };
        // The kernel also uses masks and values without their flags; the options cannot express
        // those.
        if family == Family::Ipv4 {
            for mask in [&mut info.src_mask, &mut info.dst_mask] {
                if mask.all != [0xff; 16] {
                    mask.all[4..].fill(0);
                }
            }
        }
        let same = value
            .info(family)
            .is_ok_and(|own| own.as_bytes() == info.as_bytes());
        (same && value.modulus != 0 && value.error().is_none()).then_some(value)
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        if let Some(error) = self.error() {
            return Err(error);
        }
        Ok(write_struct(&self.info(family)?))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let family = context.family;
        let prefix = |one: &GivenOption<'_>| one.parse(|value| prefix(value, family));
        let mut mark = Self::default();
        for one in given {
            match one.option {
                "hmark-tuple" => mark.tuple(one, family)?,
                "hmark-src-prefix" => set(&mut mark.source_prefix, prefix(one)?, one)?,
                "hmark-dst-prefix" => set(&mut mark.destination_prefix, prefix(one)?, one)?,
                "hmark-sport-mask" => {
                    set(&mut mark.source_port_mask, one.parse(number)?, one)?;
                }
                "hmark-dport-mask" => {
                    set(&mut mark.destination_port_mask, one.parse(number)?, one)?;
                }
                "hmark-spi-mask" => set(&mut mark.spi_mask, one.parse(number)?, one)?,
                "hmark-sport" => mark.source_port = Some(one.parse(number)?),
                "hmark-dport" => mark.destination_port = Some(one.parse(number)?),
                "hmark-spi" => mark.spi = Some(one.parse(number)?),
                "hmark-proto-mask" => set(&mut mark.protocol_mask, one.parse(number)?, one)?,
                "hmark-rnd" => mark.seed = one.parse(number)?,
                "hmark-mod" => {
                    mark.modulus = one.parse(|value| number_within(value, 1..=u32::MAX))?;
                }
                _ => mark.offset = Some(one.parse(number)?),
            }
        }
        mark.error().map_or(Ok(mark), Err)
    }

    fn print(&self, text: &mut Text) {
        for (option, prefix) in [
            ("hmark-src-prefix", self.source_prefix),
            ("hmark-dst-prefix", self.destination_prefix),
        ] {
            if let Some(prefix) = prefix {
                let length = prefix.prefix_length().unwrap_or_default();
                text.option(false, option).push(" ").number(length);
            }
        }
        for (option, number, digits) in [
            ("hmark-sport-mask", self.source_port_mask.map(u32::from), 4),
            (
                "hmark-dport-mask",
                self.destination_port_mask.map(u32::from),
                4,
            ),
            ("hmark-spi-mask", self.spi_mask, 8),
            ("hmark-sport", self.source_port.map(u32::from), 4),
            ("hmark-dport", self.destination_port.map(u32::from), 4),
            ("hmark-spi", self.spi, 8),
            ("hmark-proto-mask", self.protocol_mask.map(u32::from), 2),
            ("hmark-rnd", Some(self.seed), 8),
        ] {
            if let Some(number) = number {
                text.option(false, option)
                    .display(format_args!(" 0x{number:0digits$x}"));
            }
        }
        text.option(false, "hmark-mod")
            .push(" ")
            .number(self.modulus);
        if let Some(offset) = self.offset {
            text.option(false, "hmark-offset").push(" ").number(offset);
        }
        if self.connection {
            text.option(false, "hmark-tuple").push(" ct");
        }
    }
}

/// Parses a prefix length, or a mask without gaps.
fn prefix(value: &BStr, family: Family) -> Parsed<Mask> {
    let most = width(family) as u8;
    let mask = || {
        let mask = Mask::new(address(value, family).ok()?);
        mask.prefix_length().map(|_| mask)
    };
    let prefix = number_within(value, 0..=most).map(|bits| Mask::prefix(family, bits));
    prefix.unwrap_or_default().or_else(mask).ok_or_else(|| {
        format!("`{value}` is neither a number from 0 to {most} nor a contiguous mask")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Target;

    const TUPLE: &str = "--hmark-tuple src,dst --hmark-mod 10 --hmark-rnd 1";

    /// Returns the data of `-j HMARK --hmark-tuple src,dst --hmark-mod 10 --hmark-rnd 1` from
    /// iptables-legacy 1.8.9 (`strace -xx`).
    fn captured() -> Vec<u8> {
        let mut info = vec![0; 64];
        info[..32].fill(0xff);
        (info[40], info[41]) = (3, 6);
        (info[48], info[52]) = (1, 10);
        info
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        for (family, prefix, mask) in [(Family::Ipv4, 32, 4), (Family::Ipv6, 128, 16)] {
            let value = Target::read(family, "HMARK", 0, &captured());
            let text = format!(
                "-j HMARK --hmark-src-prefix {prefix} --hmark-dst-prefix {prefix} \
                 --hmark-rnd 0x00000001 --hmark-mod 10"
            );
            assert_eq!(value.to_string(), text);
            let rule = Rule::parse(family, format!("-j HMARK {TUPLE}")).unwrap();
            assert_eq!(rule.to_string(), text);
            assert_eq!(value.encode(family).unwrap().info, captured());
            // The bytes that iptables writes for the prefixes.
            let mut info = captured();
            info[mask..16].fill(0);
            info[16 + mask..32].fill(0);
            let rule = Rule::parse(family, text).unwrap();
            let crate::iptables::Target::Extension(again) = rule.target else {
                panic!("{rule}");
            };
            assert_eq!(again, value);
            assert_eq!(again.encode(family).unwrap().info, info);
        }
        let read = |info: &[u8]| Hmark::read(Family::Ipv6, 0, info);
        assert_eq!(read(&captured()[..59]), None);
        assert_eq!(Hmark::read(Family::Ipv6, 1, &captured()), None);
        // A mask with a gap, one without its flag; unknown flags; no seed; a modulus of 0; masks of
        // ports and of an index; nothing to hash.
        for (at, byte) in [(1, 0), (40, 1), (41, 0x26), (41, 4), (52, 0), (40, 0xcb)] {
            let mut invalid = captured();
            invalid[at] = byte;
            assert_eq!(read(&invalid), None, "{at}");
        }
        let mut nothing = captured();
        nothing[..32].fill(0);
        nothing[40] = 0;
        assert_eq!(read(&nothing), None);
    }

    #[test]
    fn refuses() {
        for (options, message) in [
            ("--hmark-tuple src --hmark-mod 2", "--hmark-rnd is required"),
            ("--hmark-tuple src --hmark-rnd 2", "--hmark-mod is required"),
            (
                "--hmark-tuple src --hmark-rnd 2 --hmark-mod 0",
                "`0` is not a number from 1 to 4294967295",
            ),
            ("--hmark-mod 4 --hmark-rnd 2", "nothing to hash"),
            (
                "--hmark-tuple src,dest --hmark-mod 4 --hmark-rnd 2",
                "`dest` is not one of ct, src, dst, ",
            ),
            (
                "--hmark-tuple src, --hmark-mod 4 --hmark-rnd 2",
                "`` is not one of ct, src, dst, ",
            ),
            (
                "--hmark-tuple spi,sport --hmark-mod 4 --hmark-rnd 2",
                "cannot be combined",
            ),
            (
                "--hmark-spi 1 --hmark-dport 4 --hmark-mod 4 --hmark-rnd 2",
                "--hmark-spi cannot be used with --hmark-dport",
            ),
            // iptables 1.8.9 also accepts 33 to 128.
            (
                "--hmark-src-prefix 33 --hmark-mod 4 --hmark-rnd 2",
                "`33` is neither a number from 0 to 32 nor a contiguous mask",
            ),
            // iptables 1.8.9 drops the 8.
            (
                "--hmark-src-prefix 8 --hmark-tuple src --hmark-mod 4 --hmark-rnd 2",
                "given twice",
            ),
        ] {
            let fault = Rule::parse(Family::Ipv4, format!("-j HMARK {options}")).unwrap_err();
            assert!(fault.to_string().contains(message), "{fault}");
        }
    }
}
