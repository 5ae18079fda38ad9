//! `tunnel`: the metadata that a tunnel device reads from a packet, in the syntax of nft 1.1.5 and later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::prelude::*;
use crate::parse::parser::Ending;
use chainwright::nft::stateful::{
    TunnelErspan, TunnelGeneve, TunnelObject, TunnelOption, TunnelOptions, TunnelVxlan,
};
#[cfg(feature = "json")]
use chainwright::nft::stateful::{TunnelIp, TunnelIp6};

/// Entries of a tunnel's block.
const ENTRIES: [&str; 11] = [
    "id", "ip", "ip6", "sport", "dport", "ttl", "tos", "vxlan", "erspan", "geneve", "comment",
];
/// ERSPAN directions, by number.
const DIRECTIONS: [&str; 2] = ["ingress", "egress"];
/// Maximum length of a Geneve option, and the unit of its length, in bytes.
const MAX_OPTION_LENGTH: usize = 124;
const UNIT: usize = 4;

impl Object for TunnelObject<'static> {
    const TYPE: ObjectType = ObjectType::TUNNEL;
    const NAME: &'static str = "tunnel";
    const PLURALS: &'static [&'static str] = &["tunnels"];
    const REFERENCE: &'static str = "tunnel name";

    fn entry(&mut self, parser: &mut Parser<'_>, _: bool) -> Result<(), Diagnostic> {
        let start = parser.current.span;
        let Some(word) = parser.eat_any(&ENTRIES) else {
            return Err(parser.no_entry("a tunnel", &ENTRIES));
        };
        match word {
            "id" => self.id = Some(parser.number("a tunnel id")?),
            "ip" | "ip6" => tunnel_address(parser, word, self)?,
            "sport" => self.sport = Some(parser.number("a port")?),
            "dport" => self.dport = Some(parser.number("a port")?),
            "ttl" => self.ttl = Some(parser.number("a time to live")?),
            "tos" => self.tos = Some(parser.number("a type of service")?),
            kind => {
                if self.options.is_some() {
                    let message = "a tunnel can only have one type";
                    return Err(Diagnostic::new(parser.since(start), message));
                }
                let options = match kind {
                    "vxlan" => vec![TunnelOption::Vxlan(vxlan(parser)?)],
                    "erspan" => vec![TunnelOption::Erspan(erspan(parser)?)],
                    _ => geneve(parser)?,
                };
                self.options = Some(TunnelOptions(options));
            }
        }
        Ok(())
    }

    fn data(self, span: Span, _: bool) -> Result<ObjectData<'static>, Diagnostic> {
        match self.id {
            Some(_) => Ok(self.into()),
            None => Err(Diagnostic::new(span, "missing id")),
        }
    }

    fn lines(data: &ObjectData<'_>, _: &Options) -> Option<Vec<String>> {
        let printable = PrintableTunnel::of(data)?;
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
}

/// Parses `saddr ADDRESS` or `daddr ADDRESS`.
fn tunnel_address(
    parser: &mut Parser<'_>,
    version: &str,
    tunnel: &mut TunnelObject<'static>,
) -> Result<(), Diagnostic> {
    let start = parser.current.span;
    let is_source = parser.one_of(&["saddr", "daddr"])? == "saddr";
    let symbol = parser.constant("an address")?;
    let address = symbol.text.parse::<IpAddr>();
    let is_twice = match (version, address) {
        ("ip", Ok(IpAddr::V4(address))) if tunnel.ip6.is_none() => {
            let ip = tunnel.ip.get_or_insert_default();
            let known = match is_source {
                true => &mut ip.source,
                false => &mut ip.destination,
            };
            known.replace(address.to_bits()).is_some()
        }
        ("ip6", Ok(IpAddr::V6(address))) if tunnel.ip.is_none() => {
            let ip6 = tunnel.ip6.get_or_insert_default();
            let known = match is_source {
                true => &mut ip6.source,
                false => &mut ip6.destination,
            };
            known.replace(address.octets().to_vec().into()).is_some()
        }
        ("ip", Ok(IpAddr::V4(_))) | ("ip6", Ok(IpAddr::V6(_))) => {
            let message = "tunnel addresses must be of the same IP version";
            return Err(Diagnostic::new(symbol.span, message));
        }
        _ => {
            let message = format!("not an {version} address");
            return Err(Diagnostic::new(symbol.span, message));
        }
    };
    match is_twice {
        true => Err(parser.repeated(start, "address")),
        false => Ok(()),
    }
}

fn vxlan(parser: &mut Parser<'_>) -> Result<TunnelVxlan, Diagnostic> {
    let start = parser.current.span;
    let mut gbp = None;
    parser.block(|parser| {
        parser.expect("gbp")?;
        gbp = Some(parser.number("a group")?);
        Ok(Ending::Line)
    })?;
    match gbp {
        Some(gbp) => Ok(TunnelVxlan {
            gbp: Some(gbp),
            ..TunnelVxlan::default()
        }),
        None => Err(Diagnostic::new(parser.since(start), "missing `gbp`").expecting(["gbp"])),
    }
}

fn erspan(parser: &mut Parser<'_>) -> Result<TunnelErspan, Diagnostic> {
    let start = parser.current.span;
    let mut erspan = TunnelErspan::default();
    parser.block(|parser| {
        match parser.one_of(&["version", "index", "direction", "id", "hwid"])? {
            "version" => erspan.version = Some(parser.number("a version, 1 or 2")?),
            "index" => erspan.index = Some(parser.number("an index")?),
            "direction" => {
                let word = parser.one_of(&DIRECTIONS)?;
                erspan.direction = Some(u8::from(word == DIRECTIONS[1]));
            }
            _ => erspan.hardware_id = Some(parser.number("a hardware id")?),
        }
        Ok(Ending::Line)
    })?;
    let is_whole = match erspan.version {
        Some(1) => {
            erspan.index.is_some() && erspan.direction.is_none() && erspan.hardware_id.is_none()
        }
        Some(2) => {
            erspan.index.is_none() && erspan.direction.is_some() && erspan.hardware_id.is_some()
        }
        _ => false,
    };
    match is_whole {
        true => Ok(erspan),
        false => {
            let message = "version 1 takes an index, version 2 a direction and a hardware id";
            Err(Diagnostic::new(parser.since(start), message))
        }
    }
}

fn geneve(parser: &mut Parser<'_>) -> Result<Vec<TunnelOption<'static>>, Diagnostic> {
    let start = parser.current.span;
    let mut options = Vec::new();
    parser.block(|parser| {
        parser.expect("class")?;
        let class = parser.number("a class")?;
        parser.expect("opt-type")?;
        let option_type = parser.number("an option type")?;
        parser.expect("data")?;
        let span = parser.current.span;
        let text = parser.string("option data")?;
        let data = geneve_data(&text, span)?;
        options.push(TunnelOption::Geneve(TunnelGeneve {
            class: Some(class),
            option_type: Some(option_type),
            data: Some(data.into()),
            ..TunnelGeneve::default()
        }));
        Ok(Ending::Line)
    })?;
    match options.is_empty() {
        true => Err(Diagnostic::new(parser.since(start), "missing options").expecting(["class"])),
        false => Ok(options),
    }
}

/// Parses the data of a Geneve option.
fn geneve_data(text: &str, span: Span) -> Result<Vec<u8>, Diagnostic> {
    from_digits(text).ok_or_else(|| {
        let message =
            format!("expected `0x…` with a multiple of {UNIT} bytes, at most {MAX_OPTION_LENGTH}");
        Diagnostic::new(span, message)
    })
}

/// Parses hexadecimal digits.
fn from_digits(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let is_whole = !digits.is_empty()
        && digits.len().is_multiple_of(2 * UNIT)
        && digits.len() <= 2 * MAX_OPTION_LENGTH
        && digits.iter().all(u8::is_ascii_hexdigit);
    is_whole.then_some(())?;
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// A tunnel object that nft's language can represent.
struct PrintableTunnel {
    id: u32,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    sport: u16,
    dport: u16,
    tos: u8,
    ttl: Option<u8>,
    kind: Option<Kind>,
}

/// Type of a tunnel, with its options.
enum Kind {
    Vxlan { gbp: u32 },
    Erspan1 { index: u32 },
    Erspan2 { direction: &'static str, id: u8 },
    Geneve(Vec<GeneveOption>),
}

struct GeneveOption {
    class: u16,
    option_type: u8,
    /// `0x` and hexadecimal digits.
    data: String,
}

impl PrintableTunnel {
    /// Decodes an object; `None` if nft has no syntax for a part of it, such as flags and flow labels.
    fn of(data: &ObjectData<'_>) -> Option<Self> {
        let ObjectData::Tunnel(tunnel) = data else {
            return None;
        };
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
    const fn name(&self) -> &'static str {
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

#[cfg(feature = "json")]
impl Kind {
    fn json(&self) -> Expression<'static> {
        let record = match self {
            Self::Vxlan { gbp } => Record::new().field("gbp", *gbp),
            Self::Erspan1 { index } => Record::new().field("version", 1).field("index", *index),
            Self::Erspan2 { direction, id } => Record::new()
                .field("version", 2)
                .field("dir", Expression::word(direction))
                .field("hwid", *id),
            Self::Geneve(options) => {
                let option = |option: &GeneveOption| {
                    Record::new()
                        .field("class", option.class)
                        .field("opt-type", option.option_type)
                        .field("data", option.data.clone())
                        .into()
                };
                return Expression::List(options.iter().map(option).collect());
            }
        };
        record.into()
    }
}

#[cfg(feature = "json")]
impl ObjectJson for TunnelObject<'static> {
    const KEYS: &'static [&'static str] = &[
        "id", "src-ipv4", "dst-ipv4", "src-ipv6", "dst-ipv6", "sport", "dport", "tos", "ttl",
        "type", "tunnel",
    ];

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        let of_v6 = ["src-ipv6", "dst-ipv6"].map(|key| fields.get(key));
        let of_v4 = ["src-ipv4", "dst-ipv4"].map(|key| fields.get(key));
        if let (Some(_), Some(other)) =
            (of_v4.iter().flatten().next(), of_v6.iter().flatten().next())
        {
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
        Ok(Self {
            id: Some(fields.need("id")?.number("a tunnel id")?),
            ip: (ip != TunnelIp::default()).then_some(ip),
            ip6: (ip6 != TunnelIp6::default()).then_some(ip6),
            sport: port("sport")?,
            dport: port("dport")?,
            tos: tos.filter(|tos| *tos != 0_u8),
            ttl: fields.number("ttl", "a time to live")?,
            options: read_options(fields)?.map(TunnelOptions),
            ..Self::default()
        })
    }

    fn record(data: &ObjectData<'_>, _: Writer<'_>) -> Option<Record<'static>> {
        let tunnel = PrintableTunnel::of(data)?;
        let address = |address: Option<IpAddr>, is_v4: bool| {
            let address = address.filter(|address| address.is_ipv4() == is_v4);
            address.map(|address| address.to_string())
        };
        let record = Record::new()
            .field("id", tunnel.id)
            .optional("src-ipv4", address(tunnel.source, true))
            .optional("dst-ipv4", address(tunnel.destination, true))
            .optional("src-ipv6", address(tunnel.source, false))
            .optional("dst-ipv6", address(tunnel.destination, false))
            .field("sport", tunnel.sport)
            .field("dport", tunnel.dport)
            .field("tos", tunnel.tos)
            .optional("ttl", tunnel.ttl);
        let kind = tunnel.kind.as_ref();
        Some(
            record
                .optional("type", kind.map(|kind| Expression::word(kind.name())))
                .optional("tunnel", kind.map(Kind::json)),
        )
    }
}

#[cfg(feature = "json")]
const KINDS: [&str; 3] = ["vxlan", "erspan", "geneve"];

#[cfg(feature = "json")]
fn v4(node: &Node<'_>) -> Result<u32, Diagnostic> {
    let text = node.text("an address")?;
    let address: Option<Ipv4Addr> = text.parse().ok();
    let address = address.ok_or_else(|| Diagnostic::new(node.span, "not an ip address"))?;
    Ok(address.to_bits())
}

#[cfg(feature = "json")]
fn v6(node: &Node<'_>) -> Result<Vec<u8>, Diagnostic> {
    let text = node.text("an address")?;
    let address: Option<Ipv6Addr> = text.parse().ok();
    let address = address.ok_or_else(|| Diagnostic::new(node.span, "not an ip6 address"))?;
    Ok(address.octets().to_vec())
}

/// Reads the options of the tunnel's type.
#[cfg(feature = "json")]
fn read_options(fields: &Fields<'_, '_>) -> Result<Option<Vec<TunnelOption<'static>>>, Diagnostic> {
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
        "erspan" => vec![TunnelOption::Erspan(read_erspan(node)?)],
        _ => {
            let each = node.list("options")?;
            if each.is_empty() {
                return Err(Diagnostic::new(node.span, "missing options"));
            }
            each.iter().map(read_geneve).collect::<Result<_, _>>()?
        }
    }))
}

#[cfg(feature = "json")]
fn read_erspan(node: &Node<'_>) -> Result<TunnelErspan, Diagnostic> {
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

#[cfg(feature = "json")]
fn read_geneve(node: &Node<'_>) -> Result<TunnelOption<'static>, Diagnostic> {
    let fields = Fields::new(node, "a geneve option", &["class", "opt-type", "data"])?;
    let data = fields.need("data")?;
    Ok(TunnelOption::Geneve(TunnelGeneve {
        class: Some(fields.need("class")?.number("a class")?),
        option_type: Some(fields.need("opt-type")?.number("an option type")?),
        data: Some(geneve_data(data.text("option data")?, data.span)?.into()),
        ..TunnelGeneve::default()
    }))
}
