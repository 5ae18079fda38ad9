//! `-m addrtype`: compares the type of an address according to the routing table.
//!
//! Data of revision 1 (`struct xt_addrtype_info_v1`, `linux/netfilter/xt_addrtype.h`); revision 0
//! (`struct xt_addrtype_info`) is for IPv4 only and does not support interfaces.

use chainwright_sys::xt_addrtype::{
    XT_ADDRTYPE_INVERT_DEST, XT_ADDRTYPE_INVERT_SOURCE, XT_ADDRTYPE_LIMIT_IFACE_IN,
    XT_ADDRTYPE_LIMIT_IFACE_OUT, xt_addrtype_info, xt_addrtype_info_v1,
};

use crate::xt::Negatable;
use crate::xt::pack;
use crate::xt::value::any_start_of;
use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionGroup, OptionSpec, Text,
    read_struct, write_struct,
};

bitflags::bitflags! {
    /// Address types: bits `1 << RTN_*` of the type of the route.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct AddressTypes: u16 {
        /// The unspecified address.
        const UNSPEC = 1 << 0;
        /// The address of another host.
        const UNICAST = 1 << 1;
        /// An address of this host.
        const LOCAL = 1 << 2;
        /// A broadcast address.
        const BROADCAST = 1 << 3;
        /// An anycast address.
        const ANYCAST = 1 << 4;
        /// A multicast address.
        const MULTICAST = 1 << 5;
        /// The route discards silently.
        const BLACKHOLE = 1 << 6;
        /// The route replies that the host is unreachable.
        const UNREACHABLE = 1 << 7;
        /// The route replies that communication is prohibited.
        const PROHIBIT = 1 << 8;
        /// The route continues in the next routing table.
        const THROW = 1 << 9;
        /// The route translates addresses; the kernel no longer has such routes.
        const NAT = 1 << 10;
        /// The route uses an external resolver; the kernel has no such routes.
        const XRESOLVE = 1 << 11;
    }
}

/// The interface for the address lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddrtypeInterface {
    /// The incoming interface: `--limit-iface-in`.
    In,
    /// The outgoing interface: `--limit-iface-out`.
    Out,
}

/// `-m addrtype`: compares the type of an address according to the routing table.
///
/// Compares at least one of the packet's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addrtype {
    /// Allowed types of the source address.
    pub source: Option<Negatable<AddressTypes>>,
    /// Allowed types of the destination address.
    pub destination: Option<Negatable<AddressTypes>>,
    /// The interface for the lookup; `None` for all interfaces.
    pub interface: Option<AddrtypeInterface>,
}

impl Addrtype {
    /// `--dst-type LOCAL`: matches packets to this host.
    pub const LOCAL_DESTINATION: Self = Self {
        source: None,
        destination: Some(Negatable::is(AddressTypes::LOCAL)),
        interface: None,
    };
}

/// Types that the kernel does not support for IPv6 addresses.
const ONLY_IPV4: AddressTypes = AddressTypes::BROADCAST
    .union(AddressTypes::BLACKHOLE)
    .union(AddressTypes::PROHIBIT)
    .union(AddressTypes::THROW)
    .union(AddressTypes::NAT)
    .union(AddressTypes::XRESOLVE);

impl Extension for Addrtype {
    const NAME: &'static str = "addrtype";
    const REVISION: u8 = 1;
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::one("src-type").inverts(),
        OptionSpec::one("dst-type").inverts(),
        OptionSpec::switch("limit-iface-in"),
        OptionSpec::switch("limit-iface-out"),
    ];
    const GROUPS: &'static [OptionGroup] = &[
        OptionGroup::some_of(&["src-type", "dst-type"]),
        OptionGroup::at_most_one_of(&["limit-iface-in", "limit-iface-out"]),
    ];

    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self> {
        let info: xt_addrtype_info_v1 = match (revision, family) {
            (0, Family::Ipv4) => {
                let old: xt_addrtype_info = read_struct(info)?;
                let inverted = |invert, flag| if invert == 0 { 0 } else { flag };
                xt_addrtype_info_v1 {
                    source: old.source,
                    dest: old.dest,
                    flags: inverted(old.invert_source, XT_ADDRTYPE_INVERT_SOURCE)
                        | inverted(old.invert_dest, XT_ADDRTYPE_INVERT_DEST),
                }
            }
            (1, _) => read_struct(info)?,
            _ => return None,
        };
        let interface = match info.flags & !(XT_ADDRTYPE_INVERT_SOURCE | XT_ADDRTYPE_INVERT_DEST) {
            0 => None,
            XT_ADDRTYPE_LIMIT_IFACE_IN => Some(AddrtypeInterface::In),
            XT_ADDRTYPE_LIMIT_IFACE_OUT => Some(AddrtypeInterface::Out),
            _ => return None,
        };
        let types = |bits, flag| {
            let with = AddressTypes::from_bits(bits)?;
            let invert = info.flags & flag != 0;
            // Without a type the kernel compares nothing, negated or not.
            Some((!with.is_empty()).then_some(Negatable {
                value: with,
                invert,
            }))
        };
        let source = types(info.source, XT_ADDRTYPE_INVERT_SOURCE)?;
        let destination = types(info.dest, XT_ADDRTYPE_INVERT_DEST)?;
        (source.is_some() || destination.is_some()).then_some(Self {
            source,
            destination,
            interface,
        })
    }

    fn write(&self, _: Family) -> Result<Vec<u8>, OptionError> {
        let none = Negatable::is(AddressTypes::empty());
        let source = self.source.unwrap_or(none);
        let destination = self.destination.unwrap_or(none);
        let inverted = |invert, flag| if invert { flag } else { 0 };
        Ok(write_struct(&xt_addrtype_info_v1 {
            source: pack::flags("src-type", source.value)?,
            dest: pack::flags("dst-type", destination.value)?,
            flags: inverted(source.invert, XT_ADDRTYPE_INVERT_SOURCE)
                | inverted(destination.invert, XT_ADDRTYPE_INVERT_DEST)
                | match self.interface {
                    None => 0,
                    Some(AddrtypeInterface::In) => XT_ADDRTYPE_LIMIT_IFACE_IN,
                    Some(AddrtypeInterface::Out) => XT_ADDRTYPE_LIMIT_IFACE_OUT,
                },
        }))
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let mut all = Self {
            source: None,
            destination: None,
            interface: None,
        };
        let types = |one: &GivenOption<'_>| {
            let names = TYPES.map(|(name, kind)| (name, kind.bits()));
            let bits = one.parse(|value| any_start_of(value, &names))?;
            let with = AddressTypes::from_bits_truncate(bits);
            if context.family == Family::Ipv6 && with.intersects(ONLY_IPV4) {
                return Err(one.error(
                    "the kernel knows only UNSPEC, UNICAST, LOCAL, ANYCAST, MULTICAST, UNREACHABLE for IPv6",
                ));
            }
            let invert = one.invert;
            Ok(Some(Negatable {
                value: with,
                invert,
            }))
        };
        for one in given {
            match one.option {
                "src-type" => all.source = types(one)?,
                "dst-type" => all.destination = types(one)?,
                "limit-iface-in" => all.interface = Some(AddrtypeInterface::In),
                _ => all.interface = Some(AddrtypeInterface::Out),
            }
        }
        Ok(all)
    }

    fn print(&self, text: &mut Text) {
        for (option, types) in [("src-type", self.source), ("dst-type", self.destination)] {
            let Some(types) = types else { continue };
            text.option(types.invert, option);
            let mut separator = " ";
            for (name, kind) in TYPES {
                if types.value.contains(kind) {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
        }
        match self.interface {
            None => {}
            Some(AddrtypeInterface::In) => drop(text.option(false, "limit-iface-in")),
            Some(AddrtypeInterface::Out) => drop(text.option(false, "limit-iface-out")),
        }
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" ADDRTYPE match");
        for (option, types) in [("src-type", self.source), ("dst-type", self.destination)] {
            let Some(types) = types else { continue };
            text.word(option);
            let mut separator = if types.invert { " !" } else { " " };
            for (name, kind) in TYPES {
                if types.value.contains(kind) {
                    text.push(separator).push(name);
                    separator = ",";
                }
            }
        }
        match self.interface {
            None => {}
            Some(AddrtypeInterface::In) => drop(text.push(" limit-in")),
            Some(AddrtypeInterface::Out) => drop(text.push(" limit-out")),
        }
    }
}

const TYPES: [(&str, AddressTypes); 12] = [
    ("UNSPEC", AddressTypes::UNSPEC),
    ("UNICAST", AddressTypes::UNICAST),
    ("LOCAL", AddressTypes::LOCAL),
    ("BROADCAST", AddressTypes::BROADCAST),
    ("ANYCAST", AddressTypes::ANYCAST),
    ("MULTICAST", AddressTypes::MULTICAST),
    ("BLACKHOLE", AddressTypes::BLACKHOLE),
    ("UNREACHABLE", AddressTypes::UNREACHABLE),
    ("PROHIBIT", AddressTypes::PROHIBIT),
    ("THROW", AddressTypes::THROW),
    ("NAT", AddressTypes::NAT),
    ("XRESOLVE", AddressTypes::XRESOLVE),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iptables::Rule;
    use crate::xt::Match;

    #[test]
    #[cfg(target_endian = "little")]
    fn round_trips_data_of_iptables() {
        // `-m addrtype ! --src-type UNICAST,LOCAL --limit-iface-in` by iptables-legacy 1.8.9.
        let info = [6, 0, 0, 0, 5, 0, 0, 0];
        let types = AddressTypes::UNICAST | AddressTypes::LOCAL;
        let addrtype = Addrtype {
            source: Some(Negatable::is_not(types)),
            destination: None,
            interface: Some(AddrtypeInterface::In),
        };
        assert_eq!(Addrtype::read(Family::Ipv4, 1, &info), Some(addrtype));
        assert_eq!(addrtype.write(Family::Ipv6).unwrap(), info);
        assert_eq!(
            Match::Addrtype(addrtype).to_string(),
            "-m addrtype ! --src-type UNICAST,LOCAL --limit-iface-in"
        );
        assert_eq!(Addrtype::read(Family::Ipv4, 1, &info[..7]), None);
        assert_eq!(Addrtype::read(Family::Ipv4, 2, &info), None);
        // No type, an unknown type, an unknown flag, both interfaces.
        for (at, byte) in [(0, 0), (1, 0x10), (4, 0x10), (4, 0x0c)] {
            let mut odd = info;
            odd[at] = byte;
            assert_eq!(Addrtype::read(Family::Ipv4, 1, &odd), None, "byte {at}");
        }
        // Revision 0, from the header: iptables 1.8 only writes it on kernels before 2.6.39.
        let old = [0, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            Addrtype::read(Family::Ipv4, 0, &old),
            Some(Addrtype::LOCAL_DESTINATION)
        );
        assert_eq!(Addrtype::read(Family::Ipv6, 0, &old), None);
        assert_eq!(Addrtype::read(Family::Ipv4, 0, &old[..11]), None);
    }

    #[test]
    fn refusals() {
        let message = |family, options: &str| {
            let options = format!("-m addrtype {options}");
            Rule::parse(family, options).unwrap_err().to_string()
        };
        for (options, fault) in [
            ("--limit-iface-in", "--src-type or --dst-type is required"),
            ("--src-type X,Y", "`Y` is not one of UNSPEC, UNICAST,"),
            ("--src-type LOCAL,", "`` is not one of UNSPEC"),
            (
                "--dst-type LOCAL --limit-iface-in --limit-iface-out",
                "--limit-iface-out cannot be used with --limit-iface-in",
            ),
        ] {
            let message = message(Family::Ipv4, options);
            assert!(message.contains(fault), "{options}: {message}");
        }
        assert!(message(Family::Ipv6, "--src-type BROADCAST").contains("for IPv6"));
    }
}
