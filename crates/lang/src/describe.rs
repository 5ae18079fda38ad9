//! Output of `nft describe`.

use std::fmt::Write as _;

use super::syntax::Expr;
use super::types::{self, BITMASK, Base, CT_EVENT, CT_LABEL, DATE, DAY, HOUR, LL_ADDR, symbols};
use chainwright::nft::DataType;

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
            | DataType::REALM
            | DataType::DEVGROUP
    )
}

/// Describes a type, or an expression of this type and length, and lists the type's named constants.
pub(super) fn describe(expr: Option<&Expr>, data_type: DataType, bits: Option<u32>) -> String {
    let mut text = String::new();
    if let Some(expr) = expr {
        text = format!("{} expression, ", kind(expr));
    }
    let Some(info) = types::info(data_type) else {
        return text + "datatype integer (integer), 0 bits\n";
    };
    text += &format!(
        "datatype {} ({}){}",
        info.name,
        meaning(data_type),
        made_of(data_type, info.base)
    );
    let bits = bits.unwrap_or(info.bits);
    text += &match info.base {
        Base::String if expr.is_some() => format!(", {} characters\n", bits / 8),
        _ => format!(", {bits} bits\n"),
    };
    let constants = symbols(data_type);
    if constants.is_empty() {
        return text;
    }
    if data_type == DataType::INET_PROTO {
        // Only the first name of each number, and only numbers that fit into the field's one byte.
        let mut protocols = constants.to_vec();
        protocols.retain(|(_, value)| *value <= 255);
        protocols.sort_by_key(|(_, value)| *value);
        protocols.dedup_by_key(|(_, value)| *value);
        for (name, value) in protocols {
            let _ = writeln!(text, "\t{name:<30}\t{value}"); // to a string
        }
        return text;
    }
    let decimal = is_decimal(data_type);
    let digits = match decimal {
        true => "decimal",
        false => "hexadecimal",
    };
    text += &format!("\npre-defined symbolic constants (in {digits}):\n");
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
