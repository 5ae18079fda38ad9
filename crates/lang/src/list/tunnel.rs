//! Lists tunnel objects in the syntax of nft 1.1.5 and later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::parse::DIRECTIONS;
use chainwright::nft::stateful::{TunnelObject, TunnelOption};

/// A tunnel object that nft's language can represent.
pub(crate) struct PrintableTunnel {
    pub(crate) id: u32,
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    pub(crate) tos: u8,
    pub(crate) ttl: Option<u8>,
    pub(crate) kind: Option<Kind>,
}

/// Type of a tunnel, with its options.
pub(crate) enum Kind {
    Vxlan { gbp: u32 },
    Erspan1 { index: u32 },
    Erspan2 { direction: &'static str, id: u8 },
    Geneve(Vec<GeneveOption>),
}

pub(crate) struct GeneveOption {
    pub(crate) class: u16,
    pub(crate) option_type: u8,
    /// `0x` and hexadecimal digits.
    pub(crate) data: String,
}

impl PrintableTunnel {
    /// Decodes an object; `None` if nft has no syntax for a part of it, such as flags and flow labels.
    pub(crate) fn of(tunnel: &TunnelObject<'_>) -> Option<Self> {
        let flags = tunnel.flags.unwrap_or_default();
        (flags.is_empty() && tunnel.unknown.is_empty()).then_some(())?;
        let (mut source, mut destination) = (None, None);
        if let Some(ip) = &tunnel.ip {
            ip.unknown.is_empty().then_some(())?;
            let address = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
            (source, destination) = (ip.source.map(address), ip.destination.map(address));
        }
        if let Some(ip6) = &tunnel.ip6 {
            let is_printable = ip6.unknown.is_empty() && ip6.flow_label.unwrap_or_default() == 0;
            (is_printable && tunnel.ip.is_none()).then_some(())?;
            let address = |bytes: &[u8]| {
                let bytes = <[u8; 16]>::try_from(bytes).ok()?;
                Some(IpAddr::V6(Ipv6Addr::from(bytes)))
            };
            if let Some(bytes) = &ip6.source {
                source = Some(address(bytes)?);
            }
            if let Some(bytes) = &ip6.destination {
                destination = Some(address(bytes)?);
            }
        }
        let options = tunnel.options.as_ref().map(|options| &options.0[..]);
        Some(Self {
            id: tunnel.id.unwrap_or_default(),
            source,
            destination,
            sport: tunnel.sport.unwrap_or_default(),
            dport: tunnel.dport.unwrap_or_default(),
            tos: tunnel.tos.unwrap_or_default(),
            ttl: tunnel.ttl,
            kind: match options.unwrap_or_default() {
                [] => None,
                options => Some(Kind::of(options)?),
            },
        })
    }
}

impl Kind {
    fn of(options: &[TunnelOption<'_>]) -> Option<Self> {
        Some(match options {
            [TunnelOption::Vxlan(vxlan)] if vxlan.unknown.is_empty() => {
                Self::Vxlan { gbp: vxlan.gbp? }
            }
            [TunnelOption::Erspan(erspan)] if erspan.unknown.is_empty() => match erspan.version? {
                1 => Self::Erspan1 {
                    index: erspan.index?,
                },
                2 => Self::Erspan2 {
                    direction: DIRECTIONS.get(usize::from(erspan.direction?))?,
                    id: erspan.hardware_id?,
                },
                _ => return None,
            },
            options => {
                let option = |option: &TunnelOption<'_>| match option {
                    TunnelOption::Geneve(geneve) if geneve.unknown.is_empty() => {
                        let bytes = geneve.data.as_ref()?.iter();
                        let digits = bytes.map(|byte| format!("{byte:02x}"));
                        Some(GeneveOption {
                            class: geneve.class?,
                            option_type: geneve.option_type?,
                            data: format!("0x{}", digits.collect::<String>()),
                        })
                    }
                    _ => None,
                };
                Self::Geneve(options.iter().map(option).collect::<Option<_>>()?)
            }
        })
    }

    /// Returns nft's keyword for the type.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Vxlan { .. } => "vxlan",
            Self::Erspan1 { .. } | Self::Erspan2 { .. } => "erspan",
            Self::Geneve(_) => "geneve",
        }
    }

    /// Returns the lines of the type's block.
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Vxlan { gbp } => vec![format!("gbp {gbp}")],
            Self::Erspan1 { index } => vec!["version 1".to_owned(), format!("index {index}")],
            Self::Erspan2 { direction, id } => vec![
                "version 2".to_owned(),
                format!("direction {direction}"),
                format!("id {id}"),
            ],
            Self::Geneve(options) => {
                let line = |option: &GeneveOption| {
                    let GeneveOption {
                        class,
                        option_type,
                        data,
                    } = option;
                    format!("class {class:#x} opt-type {option_type:#x} data \"{data}\"")
                };
                options.iter().map(line).collect()
            }
        }
    }
}

/// Returns the lines of a tunnel's block; `None` if nft has no syntax for a part of it.
pub(crate) fn lines(tunnel: &TunnelObject<'_>) -> Option<Vec<String>> {
    let printable = PrintableTunnel::of(tunnel)?;
    let mut lines = vec![format!("id {}", printable.id)];
    for (word, address) in [
        ("saddr", printable.source),
        ("daddr", printable.destination),
    ] {
        match address {
            Some(IpAddr::V4(address)) => lines.push(format!("ip {word} {address}")),
            Some(IpAddr::V6(address)) => lines.push(format!("ip6 {word} {address}")),
            None => {}
        }
    }
    for (word, port) in [("sport", printable.sport), ("dport", printable.dport)] {
        if port != 0 {
            lines.push(format!("{word} {port}"));
        }
    }
    if printable.tos != 0 {
        lines.push(format!("tos {}", printable.tos));
    }
    // A missing TTL is not 0: the kernel then uses its default.
    if let Some(ttl) = printable.ttl {
        lines.push(format!("ttl {ttl}"));
    }
    if let Some(kind) = &printable.kind {
        lines.push(format!("{} {{", kind.name()));
        lines.extend(kind.lines().into_iter().map(|line| format!("\t{line}")));
        lines.push("}".to_owned());
    }
    Some(lines)
}
