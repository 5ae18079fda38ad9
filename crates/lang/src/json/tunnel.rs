//! Writes tunnel objects like nft 1.1.7.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use crate::list::tunnel::{GeneveOption, Kind, PrintableTunnel};
use chainwright::nft::stateful::TunnelObject;

/// Tunnel metadata for packets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Tunnel {
    id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_ipv4: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_ipv4: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_ipv6: Option<Ipv6Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_ipv6: Option<Ipv6Addr>,
    sport: u16,
    dport: u16,
    tos: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u8>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<Options>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Options {
    Vxlan {
        gbp: u32,
    },
    Erspan1 {
        version: u32,
        index: u32,
    },
    Erspan2 {
        version: u32,
        dir: &'static str,
        hwid: u8,
    },
    Geneve(Vec<Geneve>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Geneve {
    class: u16,
    opt_type: u8,
    data: String,
}

impl Tunnel {
    /// Decodes an object; `None` if nft's language cannot represent it.
    pub(crate) fn of(tunnel: &TunnelObject<'_>) -> Option<Self> {
        let printable = PrintableTunnel::of(tunnel)?;
        let v4 = |address| match address {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        };
        let v6 = |address| match address {
            Some(IpAddr::V6(address)) => Some(address),
            _ => None,
        };
        Some(Self {
            id: printable.id,
            src_ipv4: v4(printable.source),
            dst_ipv4: v4(printable.destination),
            src_ipv6: v6(printable.source),
            dst_ipv6: v6(printable.destination),
            sport: printable.sport,
            dport: printable.dport,
            tos: printable.tos,
            ttl: printable.ttl,
            kind: printable.kind.as_ref().map(Kind::name),
            tunnel: printable.kind.map(|kind| match kind {
                Kind::Vxlan { gbp } => Options::Vxlan { gbp },
                Kind::Erspan1 { index } => Options::Erspan1 { version: 1, index },
                Kind::Erspan2 { direction, id } => Options::Erspan2 {
                    version: 2,
                    dir: direction,
                    hwid: id,
                },
                Kind::Geneve(options) => {
                    let option = |option: GeneveOption| Geneve {
                        class: option.class,
                        opt_type: option.option_type,
                        data: option.data,
                    };
                    Options::Geneve(options.into_iter().map(option).collect())
                }
            }),
        })
    }
}
