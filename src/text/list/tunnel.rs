//! Objects of tunnels, in the words of nft 1.1.5 and later.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::nft::stateful::{TunnelIp, TunnelIp6, TunnelObject, TunnelOption};
use crate::text::parse::DIRECTIONS;

/// The lines of a tunnel's block; `None` if nft has no words for something of it.
pub(super) fn lines(tunnel: &TunnelObject<'_>) -> Option<Vec<String>> {
    let flags = tunnel.flags.unwrap_or_default();
    (flags.is_empty() && tunnel.unknown.is_empty()).then_some(())?;
    let mut lines = vec![format!("id {}", tunnel.id.unwrap_or_default())];
    if let Some(TunnelIp {
        source,
        destination,
        unknown,
    }) = &tunnel.ip
    {
        unknown.is_empty().then_some(())?;
        for (word, address) in [("saddr", source), ("daddr", destination)] {
            if let Some(address) = address {
                lines.push(format!("ip {word} {}", Ipv4Addr::from_bits(*address)));
            }
        }
    }
    if let Some(TunnelIp6 {
        source,
        destination,
        flow_label,
        unknown,
    }) = &tunnel.ip6
    {
        (unknown.is_empty() && flow_label.unwrap_or_default() == 0).then_some(())?;
        for (word, address) in [("saddr", source), ("daddr", destination)] {
            if let Some(address) = address {
                let address = <[u8; 16]>::try_from(address.as_ref()).ok()?;
                lines.push(format!("ip6 {word} {}", Ipv6Addr::from(address)));
            }
        }
    }
    for (word, port) in [("sport", tunnel.sport), ("dport", tunnel.dport)] {
        if let Some(port) = port.filter(|port| *port != 0) {
            lines.push(format!("{word} {port}"));
        }
    }
    if let Some(tos) = tunnel.tos.filter(|tos| *tos != 0) {
        lines.push(format!("tos {tos}"));
    }
    // Without one the kernel has another than 0.
    if let Some(ttl) = tunnel.ttl {
        lines.push(format!("ttl {ttl}"));
    }
    let options = tunnel
        .options
        .as_ref()
        .map_or(&[][..], |options| &options.0);
    let (kind, inside) = match options {
        [] => return Some(lines),
        [TunnelOption::Vxlan(vxlan)] if vxlan.unknown.is_empty() => {
            ("vxlan", vec![format!("gbp {}", vxlan.gbp?)])
        }
        [TunnelOption::Erspan(erspan)] if erspan.unknown.is_empty() => {
            let version = erspan.version?;
            let mut inside = vec![format!("version {version}")];
            match version {
                1 => inside.push(format!("index {}", erspan.index?)),
                2 => {
                    let direction = DIRECTIONS.get(usize::from(erspan.direction?))?;
                    inside.push(format!("direction {direction}"));
                    inside.push(format!("id {}", erspan.hardware_id?));
                }
                _ => return None,
            }
            ("erspan", inside)
        }
        options => {
            let option = |option: &TunnelOption<'_>| match option {
                TunnelOption::Geneve(geneve) if geneve.unknown.is_empty() => {
                    let digits = geneve
                        .data
                        .as_ref()?
                        .iter()
                        .map(|byte| format!("{byte:02x}"));
                    let line = format!(
                        "class {:#x} opt-type {:#x} data \"0x{}\"",
                        geneve.class?,
                        geneve.option_type?,
                        digits.collect::<String>(),
                    );
                    Some(line)
                }
                _ => None,
            };
            ("geneve", options.iter().map(option).collect::<Option<_>>()?)
        }
    };
    lines.push(format!("{kind} {{"));
    lines.extend(inside.into_iter().map(|line| format!("\t{line}")));
    lines.push("}".to_owned());
    Some(lines)
}
