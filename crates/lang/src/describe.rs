//! Output of `nft describe`.

use std::fmt::Write as _;

use super::syntax::{Expr, OptionField};
use super::types::{
    self, BITMASK, Base, CT_EVENT, CT_LABEL, DATE, DAY, HOUR, LL_ADDR, MPTCP_SUBTYPE, NEWER_STATUS,
    OPTION_ADDRESS, RAW, Symbol, Type, symbols,
};
use crate::dialect::{Form, NftVersion};
use chainwright::nft::DataType;
use chainwright::nft::expr::{CtKey, MetaKey};

/// Returns nft's name for the kind of an expression.
const fn kind(expr: &Expr) -> &'static str {
    match expr {
        Expr::Payload(_) => "payload",
        Expr::Option(_) => "exthdr",
        Expr::Meta(_) => "meta",
        Expr::Tunnel(_) => "tunnel",
        Expr::Ct(..) => "ct",
        Expr::Rt(_) => "rt",
        Expr::Socket(..) => "socket",
        Expr::Fib(..) => "fib",
        Expr::Osf { .. } => "osf",
        Expr::Xfrm { .. } => "xfrm",
        Expr::Numgen { .. } => "numgen",
        Expr::Hash { .. } => "hash",
        Expr::Binary(..) => "binop",
        Expr::Prefix(..) => "prefix",
        Expr::Range(..) => "range",
        Expr::Concat(_) => "concat",
        Expr::Set(_) => "set",
        Expr::Reference(_) => "set reference",
        Expr::Map(..) => "map",
        Expr::Verdict(_) => "verdict",
        _ => "value",
    }
}

/// Returns nft's description of a data type.
const fn meaning(data_type: DataType) -> &'static str {
    match data_type {
        DataType::VERDICT => "netfilter verdict",
        DataType::NF_PROTO => "netfilter protocol",
        BITMASK => "bitmask",
        DataType::INTEGER => "integer",
        DataType::STRING => "string",
        LL_ADDR => "link layer address",
        DataType::IPV4_ADDR => "IPv4 address",
        DataType::IPV6_ADDR => "IPv6 address",
        DataType::ETHER_ADDR => "Ethernet address",
        DataType::ETHER_TYPE => "Ethernet protocol",
        DataType::ARP_OP => "ARP operation",
        DataType::INET_PROTO => "Internet protocol",
        DataType::INET_SERVICE => "internet network service",
        DataType::ICMP_TYPE => "ICMP type",
        DataType::TCP_FLAG => "TCP flag",
        DataType::DCCP_PKTTYPE => "DCCP packet type",
        DataType::MH_TYPE => "Mobility Header Type",
        DataType::TIME => "relative time",
        DataType::MARK => "packet mark",
        DataType::IFACE_INDEX => "network interface index",
        DataType::IFACE_TYPE => "network interface type",
        DataType::REALM => "routing realm",
        DataType::CLASSID => "TC classid",
        DataType::UID => "user ID",
        DataType::GID => "group ID",
        DataType::CT_STATE => "conntrack state",
        DataType::CT_DIR => "conntrack direction",
        DataType::CT_STATUS => "conntrack status",
        DataType::ICMPV6_TYPE => "ICMPv6 type",
        CT_LABEL => "conntrack label",
        DataType::PKT_TYPE => "packet type",
        DataType::ICMP_CODE => "icmp code",
        DataType::ICMPV6_CODE => "icmpv6 code",
        DataType::ICMPX_CODE => "icmpx code",
        DataType::DEVGROUP => "devgroup name",
        DataType::DSCP => "Differentiated Services Code Point",
        DataType::ECN => "Explicit Congestion Notification",
        DataType::FIB_ADDRTYPE => "fib address type",
        DataType::BOOLEAN => "boolean type",
        CT_EVENT => "conntrack event bits",
        DataType::IFNAME => "network interface name",
        DataType::IGMP_TYPE => "IGMP type",
        DATE => "Relative time of packet reception",
        HOUR => "Hour of day of packet reception",
        DAY => "Day of week of packet reception",
        DataType::CGROUPSV2 => "cgroupsv2 path",
        _ => "unknown",
    }
}

/// Returns the base types of a type as nft lists them, from the nearest one on.
const fn made_of(data_type: DataType, base: Base) -> &'static str {
    match (data_type, base) {
        (DataType::VERDICT | DataType::INTEGER | DataType::STRING, _) => "",
        (DataType::ETHER_ADDR, _) => " (basetype link layer address, integer)",
        (BITMASK, _) | (_, Base::Integer) => " (basetype integer)",
        (_, Base::Bitmask) => " (basetype bitmask, integer)",
        (_, Base::String) => " (basetype string)",
    }
}

/// Returns `true` if nft prints the constants of a type as decimal numbers.
const fn is_decimal(data_type: DataType) -> bool {
    !matches!(
        data_type,
        DataType::ETHER_TYPE
            | DataType::ARP_OP
            | DataType::TCP_FLAG
            | DataType::CT_STATE
            | DataType::CT_STATUS
            | DataType::DSCP
            | DataType::ECN
            | DataType::IFACE_TYPE
            | DataType::DCCP_PKTTYPE
            | CT_EVENT
    )
}

/// Type and length of a value, as nft describes it.
struct Description {
    info: Type,
    data_type: DataType,
    bits: u32,
    meaning: &'static str,
    made_of: &'static str,
    symbols: Vec<Symbol>,
}

impl Description {
    /// Describes the type that a type of this crate is in nft.
    fn new(data_type: DataType, bits: Option<u32>, version: NftVersion) -> Self {
        let has_address = version.has(Form::OptionAddresses);
        let (shown, is_derived, own_meaning) = match data_type {
            RAW => (DataType::INTEGER, true, None),
            MPTCP_SUBTYPE if version.has(Form::MptcpSubtypes) => {
                (DataType::INTEGER, true, Some("mptcp option subtype"))
            }
            OPTION_ADDRESS if has_address => (DataType::IPV4_ADDR, false, None),
            MPTCP_SUBTYPE | OPTION_ADDRESS => (DataType::INTEGER, false, None),
            other => (other, false, None),
        };
        let Some(info) = types::info(shown) else {
            return Self::new(DataType::INTEGER, Some(0), version);
        };
        Self {
            info,
            data_type: shown,
            bits: bits.unwrap_or(info.bits),
            meaning: own_meaning.unwrap_or_else(|| meaning(shown)),
            made_of: match is_derived {
                true => " (basetype integer)",
                false => made_of(shown, info.base),
            },
            symbols: listed_symbols(data_type, version),
        }
    }

    /// Describes an expression before nft evaluates the rule that it is part of.
    fn of(expr: &Expr, data_type: DataType, bits: u32, version: NftVersion) -> Option<Self> {
        let (data_type, bits) = match expr {
            // nft only decides in a rule that the value is not the option's first field.
            Expr::Option(option) if option.presence => {
                let first = OptionField {
                    presence: false,
                    offset: 0,
                    bits: 8,
                    ..*option
                };
                (Expr::Option(first).data_type(), 8)
            }
            // Its IP version is determined in a rule.
            Expr::Ct(CtKey::SRC | CtKey::DST, _, None) => return None,
            Expr::Fib(..) if data_type == DataType::BOOLEAN => (data_type, 8),
            Expr::Meta(MetaKey::BRI_BROUTE) => (data_type, 1),
            _ => (data_type, bits),
        };
        let is_fragment_offset = matches!(expr, Expr::Payload(payload)
            if payload.field.is_some_and(|(protocol, field)| protocol.name == "ip" && protocol.fields[field].name == "frag-off"));
        let data_type = match is_fragment_offset && version.has(Form::FragOffset) {
            true => RAW,
            false => data_type,
        };
        Some(Self::new(data_type, Some(bits), version))
    }
}

/// Returns the constants that a version lists for a type.
fn listed_symbols(data_type: DataType, version: NftVersion) -> Vec<Symbol> {
    let form = match data_type {
        DataType::ICMP_CODE | DataType::ICMPV6_CODE | DataType::ICMPX_CODE
            if version.has(Form::IcmpCodes) =>
        {
            return Vec::new();
        }
        DataType::CT_STATUS => Form::StatusNames,
        DataType::REALM | DataType::DEVGROUP => Form::DescribedFiles,
        MPTCP_SUBTYPE => Form::MptcpSubtypes,
        _ => return symbols(data_type).to_vec(),
    };
    let listed = symbols(data_type).iter().filter(|(_, value)| match form {
        Form::StatusNames => version.has(form) || u128::from(*value) & NEWER_STATUS == 0,
        form => version.has(form),
    });
    listed.copied().collect()
}

/// Describes a type, or an expression of this type and length, and lists the type's named constants.
pub(super) fn describe(
    expr: Option<&Expr>,
    data_type: DataType,
    bits: Option<u32>,
    version: NftVersion,
) -> String {
    let mut text = String::new();
    let described = match expr {
        Some(expr) => {
            text = format!("{} expression, ", kind(expr));
            Description::of(expr, data_type, bits.unwrap_or_default(), version)
        }
        None => Some(Description::new(data_type, bits, version)),
    };
    let Some(described) = described else {
        return text + "datatype invalid (invalid)\n";
    };
    let (info, data_type) = (described.info, described.data_type);
    text += &format!(
        "datatype {} ({}){}",
        info.name, described.meaning, described.made_of
    );
    text += &match info.base {
        Base::String if expr.is_some() => format!(", {} characters\n", described.bits / 8),
        _ => format!(", {} bits\n", described.bits),
    };
    let mut constants = described.symbols;
    if constants.is_empty() {
        return text;
    }
    if data_type == DataType::INET_PROTO {
        // Only the first name of each number, and only numbers that fit into the field's one byte.
        constants.retain(|(_, value)| *value <= 255);
        constants.sort_by_key(|(_, value)| *value);
        constants.dedup_by_key(|(_, value)| *value);
        for (name, value) in constants {
            let _ = writeln!(text, "\t{name:<30}\t{value}"); // to a string
        }
        return text;
    }
    let decimal = is_decimal(data_type);
    let digits = match decimal {
        true => "decimal",
        false => "hexadecimal",
    };
    let file = match data_type {
        DataType::REALM => " from /etc/iproute2/rt_realms",
        DataType::DEVGROUP => " from /etc/iproute2/group",
        _ => "",
    };
    text += &format!("\npre-defined symbolic constants{file} (in {digits}):\n");
    let width = info.bits.div_ceil(8) as usize * 2;
    for (name, value) in constants {
        // Writing to a string does not fail.
        let _ = match decimal {
            true => writeln!(text, "\t{name:<30}\t{value:>20}"),
            false => writeln!(text, "\t{name:<30}\t0x{value:0width$x}"),
        };
    }
    text
}
