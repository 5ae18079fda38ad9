//! Tables that a version considers not to be iptables' own, and therefore hides.

use bstr::ByteSlice;

use crate::iptables::compat::Version;
use crate::nft::expr::{self, Decoded, LimitType};

/// Returns why a version hides a table with this expression, if it does.
pub(super) fn hiding_reason(
    expression: &expr::ExpressionRef<'_>,
    version: Version,
) -> Option<&'static str> {
    let newer = version > Version::V1_8_7;
    match expression.name.as_bytes() {
        b"match" | b"target" | b"payload" | b"meta" | b"cmp" | b"bitwise" | b"counter"
        | b"immediate" | b"lookup" => None,
        b"range" if newer => None,
        b"range" => Some("a range of ports by nf_tables' own expression"),
        b"limit" => {
            let plain = matches!(
                expression.decode(),
                Ok(Decoded::Limit(expr::Limit { limit_type: None | Some(LimitType::PACKETS), flags, .. }))
                    if flags.is_none_or(|flags| flags.is_empty())
            );
            (!plain).then_some("a limit that iptables does not support")
        }
        b"log" => {
            let grouped = matches!(
                expression.decode(),
                Ok(Decoded::Log(expr::Log { group: Some(_), .. }))
            );
            match (newer, grouped) {
                (true, true) => None,
                (_, true) => Some("NFLOG by nf_tables' own expression"),
                (_, false) => Some("a log expression"),
            }
        }
        b"ct" => Some("a ct expression"),
        b"nat" | b"masq" | b"redir" => Some("NAT by nf_tables' own expression"),
        b"reject" => Some("reject by nf_tables' own expression"),
        b"fib" => Some("a fib expression"),
        b"objref" => Some("a named counter, quota or other object"),
        _ => Some("an expression that iptables does not use"),
    }
}
