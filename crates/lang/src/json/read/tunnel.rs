//! Reads tunnel objects.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::fields::Fields;
use super::node::Node;
use crate::parse::{DIRECTIONS, Diagnostic, geneve_data};
use chainwright::nft::stateful::{
    TunnelErspan, TunnelGeneve, TunnelIp, TunnelIp6, TunnelObject, TunnelOption, TunnelOptions,
    TunnelVxlan,
};

/// Keys of tunnel objects.
pub(crate) const TUNNEL: [&str; 11] = [
    "id", "src-ipv4", "dst-ipv4", "src-ipv6", "dst-ipv6", "sport", "dport", "tos", "ttl", "type",
    "tunnel",
];
const KINDS: [&str; 3] = ["vxlan", "erspan", "geneve"];

/// Reads the tunnel metadata for packets.
pub(crate) fn tunnel(fields: &Fields<'_, '_>) -> Result<TunnelObject<'static>, Diagnostic> {
    let of_v6 = ["src-ipv6", "dst-ipv6"].map(|key| fields.get(key));
    let of_v4 = ["src-ipv4", "dst-ipv4"].map(|key| fields.get(key));
    if let (Some(_), Some(other)) = (of_v4.iter().flatten().next(), of_v6.iter().flatten().next()) {
        let message = "tunnel addresses must be of the same IP version";
        return Err(Diagnostic::new(other.span, message));
    }
    let [source, destination] = of_v4.map(|node| node.map(v4).transpose());
    let ip = TunnelIp {
        source: source?,
        destination: destination?,
        ..TunnelIp::default()
    };
    let [source, destination] = of_v6.map(|node| node.map(v6).transpose());
    let ip6 = TunnelIp6 {
        source: source?.map(Into::into),
        destination: destination?.map(Into::into),
        ..TunnelIp6::default()
    };
    // For these, 0 is the default.
    let port = |key| Ok(fields.number(key, "a port")?.filter(|port| *port != 0_u16));
    let tos = fields.number("tos", "a type of service")?;
    Ok(TunnelObject {
        id: Some(fields.need("id")?.number("a tunnel id")?),
        ip: (ip != TunnelIp::default()).then_some(ip),
        ip6: (ip6 != TunnelIp6::default()).then_some(ip6),
        sport: port("sport")?,
        dport: port("dport")?,
        tos: tos.filter(|tos| *tos != 0_u8),
        ttl: fields.number("ttl", "a time to live")?,
        options: options(fields)?.map(TunnelOptions),
        ..TunnelObject::default()
    })
}

fn v4(node: &Node<'_>) -> Result<u32, Diagnostic> {
    let text = node.text("an address")?;
    let address: Option<Ipv4Addr> = text.parse().ok();
    let address = address.ok_or_else(|| Diagnostic::new(node.span, "not an ip address"))?;
    Ok(address.to_bits())
}

fn v6(node: &Node<'_>) -> Result<Vec<u8>, Diagnostic> {
    let text = node.text("an address")?;
    let address: Option<Ipv6Addr> = text.parse().ok();
    let address = address.ok_or_else(|| Diagnostic::new(node.span, "not an ip6 address"))?;
    Ok(address.octets().to_vec())
}

/// Reads the options of the tunnel's type.
fn options(fields: &Fields<'_, '_>) -> Result<Option<Vec<TunnelOption<'static>>>, Diagnostic> {
    let Some(kind) = fields.word("type", "tunnel type", &KINDS)? else {
        return match fields.get("tunnel") {
            None => Ok(None),
            Some(_) => Err(fields.missing("type")),
        };
    };
    let node = fields.need("tunnel")?;
    Ok(Some(match kind {
        "vxlan" => {
            let fields = Fields::new(node, "a vxlan tunnel", &["gbp"])?;
            vec![TunnelOption::Vxlan(TunnelVxlan {
                gbp: Some(fields.need("gbp")?.number("a group")?),
                ..TunnelVxlan::default()
            })]
        }
        "erspan" => vec![TunnelOption::Erspan(erspan(node)?)],
        _ => {
            let each = node.list("options")?;
            if each.is_empty() {
                return Err(Diagnostic::new(node.span, "missing options"));
            }
            each.iter().map(geneve).collect::<Result<_, _>>()?
        }
    }))
}

fn erspan(node: &Node<'_>) -> Result<TunnelErspan, Diagnostic> {
    let fields = Fields::new(
        node,
        "an erspan tunnel",
        &["version", "index", "dir", "hwid"],
    )?;
    let version = fields.need("version")?.number("a version, 1 or 2")?;
    let direction = fields.word("dir", "direction", &DIRECTIONS)?;
    let erspan = TunnelErspan {
        version: Some(version),
        index: fields.number("index", "an index")?,
        direction: direction.map(|word| u8::from(word == DIRECTIONS[1])),
        hardware_id: fields.number("hwid", "a hardware id")?,
        ..TunnelErspan::default()
    };
    let has = (
        erspan.index.is_some(),
        erspan.direction.is_some(),
        erspan.hardware_id.is_some(),
    );
    match (version, has) {
        (1, (true, false, false)) | (2, (false, true, true)) => Ok(erspan),
        _ => {
            let message = "version 1 takes an index, version 2 a direction and a hardware id";
            Err(Diagnostic::new(node.span, message))
        }
    }
}

fn geneve(node: &Node<'_>) -> Result<TunnelOption<'static>, Diagnostic> {
    let fields = Fields::new(node, "a geneve option", &["class", "opt-type", "data"])?;
    let data = fields.need("data")?;
    Ok(TunnelOption::Geneve(TunnelGeneve {
        class: Some(fields.need("class")?.number("a class")?),
        option_type: Some(fields.need("opt-type")?.number("an option type")?),
        data: Some(geneve_data(data.text("option data")?, data.span)?.into()),
        ..TunnelGeneve::default()
    }))
}
