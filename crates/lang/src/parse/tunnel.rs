//! Parses tunnel objects, which set tunnel metadata of packets, in the syntax of nft 1.1.5 and later.

use std::net::IpAddr;

use super::error::Diagnostic;
use super::parser::{Ending, Parser};
use crate::syntax::Span;
use chainwright::nft::stateful::{
    TunnelErspan, TunnelGeneve, TunnelObject, TunnelOption, TunnelOptions, TunnelVxlan,
};

/// Entries of a tunnel's block.
const ENTRIES: [&str; 11] = [
    "id", "ip", "ip6", "sport", "dport", "ttl", "tos", "vxlan", "erspan", "geneve", "comment",
];
/// ERSPAN directions, by number.
pub(crate) const DIRECTIONS: [&str; 2] = ["ingress", "egress"];
/// Maximum length of a Geneve option, and the unit of its length, in bytes.
const MAX_OPTION_LENGTH: usize = 124;
const UNIT: usize = 4;

impl Parser<'_> {
    /// Parses an entry of a tunnel's block other than a comment.
    pub(crate) fn tunnel_entry(
        &mut self,
        tunnel: &mut TunnelObject<'static>,
    ) -> Result<(), Diagnostic> {
        let start = self.current.span;
        let Some(word) = self.eat_any(&ENTRIES) else {
            return Err(self.no_entry("a tunnel", &ENTRIES));
        };
        match word {
            "id" => tunnel.id = Some(self.number("a tunnel id")?),
            "ip" | "ip6" => self.tunnel_address(word, tunnel)?,
            "sport" => tunnel.sport = Some(self.number("a port")?),
            "dport" => tunnel.dport = Some(self.number("a port")?),
            "ttl" => tunnel.ttl = Some(self.number("a time to live")?),
            "tos" => tunnel.tos = Some(self.number("a type of service")?),
            kind => {
                if tunnel.options.is_some() {
                    let message = "a tunnel can only have one type";
                    return Err(Diagnostic::new(self.since(start), message));
                }
                let options = match kind {
                    "vxlan" => vec![TunnelOption::Vxlan(self.vxlan()?)],
                    "erspan" => vec![TunnelOption::Erspan(self.erspan()?)],
                    _ => self.geneve()?,
                };
                tunnel.options = Some(TunnelOptions(options));
            }
        }
        Ok(())
    }

    /// Parses `saddr ADDRESS` or `daddr ADDRESS`.
    fn tunnel_address(
        &mut self,
        version: &str,
        tunnel: &mut TunnelObject<'static>,
    ) -> Result<(), Diagnostic> {
        let start = self.current.span;
        let is_source = self.one_of(&["saddr", "daddr"])? == "saddr";
        let symbol = self.constant("an address")?;
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
            true => Err(self.repeated(start, "address")),
            false => Ok(()),
        }
    }

    fn vxlan(&mut self) -> Result<TunnelVxlan, Diagnostic> {
        let start = self.current.span;
        let mut gbp = None;
        self.block(|this| {
            this.expect("gbp")?;
            gbp = Some(this.number("a group")?);
            Ok(Ending::Line)
        })?;
        match gbp {
            Some(gbp) => Ok(TunnelVxlan {
                gbp: Some(gbp),
                ..TunnelVxlan::default()
            }),
            None => Err(Diagnostic::new(self.since(start), "missing `gbp`").expecting(["gbp"])),
        }
    }

    fn erspan(&mut self) -> Result<TunnelErspan, Diagnostic> {
        let start = self.current.span;
        let mut erspan = TunnelErspan::default();
        self.block(|this| {
            match this.one_of(&["version", "index", "direction", "id", "hwid"])? {
                "version" => erspan.version = Some(this.number("a version, 1 or 2")?),
                "index" => erspan.index = Some(this.number("an index")?),
                "direction" => {
                    let word = this.one_of(&DIRECTIONS)?;
                    erspan.direction = Some(u8::from(word == DIRECTIONS[1]));
                }
                _ => erspan.hardware_id = Some(this.number("a hardware id")?),
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
                Err(Diagnostic::new(self.since(start), message))
            }
        }
    }

    fn geneve(&mut self) -> Result<Vec<TunnelOption<'static>>, Diagnostic> {
        let start = self.current.span;
        let mut options = Vec::new();
        self.block(|this| {
            this.expect("class")?;
            let class = this.number("a class")?;
            this.expect("opt-type")?;
            let option_type = this.number("an option type")?;
            this.expect("data")?;
            let span = this.current.span;
            let text = this.string("option data")?;
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
            true => Err(Diagnostic::new(self.since(start), "missing options").expecting(["class"])),
            false => Ok(options),
        }
    }
}

/// Parses the data of a Geneve option.
pub(crate) fn geneve_data(text: &str, span: Span) -> Result<Vec<u8>, Diagnostic> {
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
