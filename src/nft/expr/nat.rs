//! `nat`: changes a connection's source or destination.
//!
//! All attributes are be32. If the last address or port is absent, the kernel uses the first one,
//! and lists both.

use chainwright_sys::nf_nat as range;
use chainwright_sys::nf_tables::{
    NFT_NAT_DNAT, NFT_NAT_SNAT, NFTA_NAT_FAMILY, NFTA_NAT_FLAGS, NFTA_NAT_REG_ADDR_MAX,
    NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_TYPE,
};

use super::{Register, expression};
use crate::nft::declare::{flags, values};
use crate::nft::rule::family_name;

values! {
    /// The end of the connection that changes (`enum nft_nat_types`).
    pub struct NatType: u32 {
        /// The source.
        SNAT = NFT_NAT_SNAT => "snat",
        /// The destination.
        DNAT = NFT_NAT_DNAT => "dnat",
    }
}

flags! {
    /// Flags of a range (`NF_NAT_RANGE_*`, `linux/netfilter/nf_nat.h`).
    pub struct NatRangeFlags: u32 {
        /// Addresses are given: set by the kernel if there is a register for them.
        const MAP_IPS = range::NF_NAT_RANGE_MAP_IPS,
        /// Ports are given: set by the kernel if there is a register for them.
        const PROTO_SPECIFIED = range::NF_NAT_RANGE_PROTO_SPECIFIED,
        /// Selects ports by a hash.
        const PROTO_RANDOM = range::NF_NAT_RANGE_PROTO_RANDOM,
        /// Maps a client always to the same address.
        const PERSISTENT = range::NF_NAT_RANGE_PERSISTENT,
        /// Selects ports at random.
        const PROTO_RANDOM_FULLY = range::NF_NAT_RANGE_PROTO_RANDOM_FULLY,
        /// Preserves the offset of ports from a base port.
        const PROTO_OFFSET = range::NF_NAT_RANGE_PROTO_OFFSET,
        /// Replaces the prefix of an address and keeps the rest.
        const NETMAP = range::NF_NAT_RANGE_NETMAP,
    }
}

expression! {
    "nat"
    /// Changes a connection's source or destination (`enum nft_nat_attributes`); addresses and
    /// ports are in registers, in network order.
    pub struct Nat viewed as NatRef {
        /// End of the connection that changes.
        NFTA_NAT_TYPE => nat_type: NatType,
        /// Family of the addresses, `NFPROTO_IPV4` or `NFPROTO_IPV6`.
        NFTA_NAT_FAMILY => family: u32,
        /// First address.
        NFTA_NAT_REG_ADDR_MIN => addr_min: Register,
        /// Last address.
        NFTA_NAT_REG_ADDR_MAX => addr_max: Register,
        /// First port.
        NFTA_NAT_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_NAT_REG_PROTO_MAX => proto_max: Register,
        /// Flags.
        NFTA_NAT_FLAGS => flags: NatRangeFlags,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Nat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ nat {} {} ",
            self.nat_type
                .unwrap_or_default()
                .name()
                .unwrap_or("unknown"),
            family_name(self.family.unwrap_or_default()),
        )?;
        print_range(f, "addr", [self.addr_min, self.addr_max])?;
        print_ports(f, [self.proto_min, self.proto_max], self.flags)
    }
}

/// Prints the registers of a range, as far as they exist.
fn print_range(
    f: &mut std::fmt::Formatter<'_>,
    what: &str,
    ends: [Option<Register>; 2],
) -> std::fmt::Result {
    for (end, register) in ["min", "max"].iter().zip(ends) {
        if let Some(register) = register {
            write!(f, "{what}_{end} reg {} ", register.0)?;
        }
    }
    Ok(())
}

/// Prints ports and flags, the end of the line of each NAT expression.
pub(super) fn print_ports(
    f: &mut std::fmt::Formatter<'_>,
    ports: [Option<Register>; 2],
    flags: Option<NatRangeFlags>,
) -> std::fmt::Result {
    print_range(f, "proto", ports)?;
    if let Some(flags) = flags {
        write!(f, "flags {:#x} ", flags.bits())?;
    }
    f.write_str("]")
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_NAT_TYPE", Wire::Be32),
            (2, "NFTA_NAT_FAMILY", Wire::Be32),
            (3, "NFTA_NAT_REG_ADDR_MIN", Wire::Be32),
            (4, "NFTA_NAT_REG_ADDR_MAX", Wire::Be32),
            (5, "NFTA_NAT_REG_PROTO_MIN", Wire::Be32),
            (6, "NFTA_NAT_REG_PROTO_MAX", Wire::Be32),
            (7, "NFTA_NAT_FLAGS", Wire::Be32),
        ];
        assert_layout::<Nat>(Nat::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6:
    /// `add rule ip t n tcp dport 80 dnat to 10.0.0.1-10.0.0.9:8080-8090 persistent`.
    #[test]
    fn ranges() {
        assert_element(
            Decoded::Nat,
            Nat {
                nat_type: Some(NatType::DNAT),
                family: Some(2),
                addr_min: Some(Register::R1),
                addr_max: Some(Register::R2),
                proto_min: Some(Register::R3),
                proto_max: Some(Register::R4),
                flags: Some(NatRangeFlags::PROTO_SPECIFIED | NatRangeFlags::PERSISTENT),
                ..Default::default()
            },
            "
                48000180           ; NFTA_LIST_ELEM
                08000100 6e617400  ;   NFTA_EXPR_NAME: nat
                3c000280           ;   NFTA_EXPR_DATA
                08000100 00000001  ;     NFTA_NAT_TYPE
                08000200 00000002  ;     NFTA_NAT_FAMILY
                08000300 00000001  ;     NFTA_NAT_REG_ADDR_MIN
                08000400 00000002  ;     NFTA_NAT_REG_ADDR_MAX
                08000500 00000003  ;     NFTA_NAT_REG_PROTO_MIN
                08000600 00000004  ;     NFTA_NAT_REG_PROTO_MAX
                08000700 0000000a  ;     NFTA_NAT_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `dnat to 10.0.0.1`, `tcp dport 80 dnat to 10.0.0.1:8080`,
    /// `tcp dport 80 dnat ip6 to [2001:db8::1]:80` (in `inet`),
    /// `snat to 192.0.2.1 fully-random`,
    /// `dnat ip prefix to ip daddr map { 10.0.0.0/24 : 10.2.0.0/24 }`.
    #[test]
    fn others() {
        let dnat = Nat {
            nat_type: Some(NatType::DNAT),
            family: Some(2),
            addr_min: Some(Register::R1),
            ..Nat::default()
        };
        let port = Nat {
            proto_min: Some(Register::R2),
            flags: Some(NatRangeFlags::PROTO_SPECIFIED),
            ..dnat.clone()
        };
        for (nat, sent) in [
            (
                dnat.clone(),
                "08000100 00000001 08000200 00000002 08000300 00000001",
            ),
            (
                port.clone(),
                "
                    08000100 00000001 08000200 00000002 08000300 00000001 08000500 00000002
                    08000700 00000002
                ",
            ),
            (
                Nat {
                    family: Some(10),
                    ..port
                },
                "
                    08000100 00000001 08000200 0000000a 08000300 00000001 08000500 00000002
                    08000700 00000002
                ",
            ),
            (
                Nat {
                    nat_type: Some(NatType::SNAT),
                    flags: Some(NatRangeFlags::PROTO_RANDOM_FULLY),
                    ..dnat.clone()
                },
                "08000100 00000000 08000200 00000002 08000300 00000001 08000700 00000010",
            ),
            (
                Nat {
                    // The second word of the first register.
                    addr_max: Some(Register::word(1)),
                    flags: Some(NatRangeFlags::NETMAP),
                    ..dnat
                },
                "
                    08000100 00000001 08000200 00000002 08000300 00000001 08000400 00000009
                    08000700 00000040
                ",
            ),
        ] {
            assert_attributes(Decoded::Nat, nat, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t n tcp dport 80 dnat to 10.0.0.1:8080`: the kernel
    /// adds the ends of the ranges and the implied flags.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Nat,
            Nat {
                nat_type: Some(NatType::DNAT),
                family: Some(2),
                addr_min: Some(Register::R1),
                addr_max: Some(Register::R1),
                proto_min: Some(Register::R2),
                proto_max: Some(Register::R2),
                flags: Some(NatRangeFlags::MAP_IPS | NatRangeFlags::PROTO_SPECIFIED),
                ..Default::default()
            },
            "
                48000100 08000100 6e617400 3c000200 08000100 00000001 08000200 00000002
                08000300 00000001 08000400 00000001 08000500 00000002 08000600 00000002
                08000700 00000003
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after
    /// `dnat to 10.0.0.1-10.0.0.9:8080-8090 persistent`, `dnat to :80`,
    /// `snat to 10.0.0.1 fully-random`, `dnat ip prefix to ip daddr map …`; the rest as its
    /// libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let nat = |nat_type, family, registers: [u32; 4], flags| {
            let [addr_min, addr_max, proto_min, proto_max] =
                registers.map(|register| (register != 0).then_some(Register(register)));
            Nat {
                nat_type: Some(nat_type),
                family: Some(family),
                addr_min,
                addr_max,
                proto_min,
                proto_max,
                flags: Some(NatRangeFlags::from_bits_retain(flags)),
                ..Nat::default()
            }
        };
        for (nat, line) in [
            (
                nat(NatType::DNAT, 2, [1, 2, 3, 4], 0xb),
                "[ nat dnat ip addr_min reg 1 addr_max reg 2 proto_min reg 3 proto_max reg 4 \
                 flags 0xb ]",
            ),
            (
                nat(NatType::DNAT, 2, [0, 0, 1, 1], 2),
                "[ nat dnat ip proto_min reg 1 proto_max reg 1 flags 0x2 ]",
            ),
            (
                nat(NatType::SNAT, 2, [1, 1, 0, 0], 0x11),
                "[ nat snat ip addr_min reg 1 addr_max reg 1 flags 0x11 ]",
            ),
            (
                nat(NatType::DNAT, 2, [1, 9, 0, 0], 0x41),
                "[ nat dnat ip addr_min reg 1 addr_max reg 9 flags 0x41 ]",
            ),
            (
                nat(NatType::SNAT, 10, [1, 0, 0, 0], 0),
                "[ nat snat ip6 addr_min reg 1 flags 0x0 ]",
            ),
            (
                nat(NatType::SNAT, 1, [0, 2, 0, 0], 0),
                "[ nat snat inet addr_max reg 2 flags 0x0 ]",
            ),
            (
                Nat {
                    flags: None,
                    ..nat(NatType(2), 12, [0; 4], 0)
                },
                "[ nat unknown unknown ]",
            ),
            (Nat::default(), "[ nat snat unknown ]"),
        ] {
            assert_eq!(nat.to_string(), line);
        }
    }
}
