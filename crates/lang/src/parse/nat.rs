//! Parses NAT statements.

use super::error::{Diagnostic, shown};
use super::parser::Parser;
use crate::syntax::{Expr, Statement, Symbol, Translation};

impl Parser<'_> {
    /// Parses `snat`, `dnat`, `masquerade`, `redirect`.
    pub(crate) fn translation(&mut self) -> Result<Statement, Diagnostic> {
        let start = self.current.span;
        let kind = match self.one_of(&["snat", "dnat", "masquerade", "redirect"])? {
            "snat" => Translation::Source,
            "dnat" => Translation::Destination,
            "masquerade" => Translation::Masquerade,
            _ => Translation::Redirect,
        };
        let needs_address = matches!(kind, Translation::Source | Translation::Destination);
        let mut family = None;
        let mut prefix = false;
        if needs_address {
            // Without one of these words it is the start of an expression: `snat ip saddr map …`.
            let is_version = self
                .next_if_word()
                .is_some_and(|word| ["to", "prefix", "interval", "addr"].contains(&&*word));
            family = is_version.then(|| self.version()).flatten();
            prefix = self.eat("prefix");
            // Older versions of nft printed the types of map data explicitly.
            if !prefix && !self.eat("interval") && self.eat("addr") {
                self.expect_sign(".")?;
                self.expect("port")?;
            }
        }
        let (mut address, mut port) = (None, None);
        // Some versions of nft require `to` before an address; all require it if there is none.
        if self.eat("to") || (needs_address && !self.at_end()) {
            if needs_address {
                (address, port) = self.destination()?;
            } else {
                self.eat_sign(":");
                port = Some(self.port()?);
            }
        } else if needs_address {
            return Err(Diagnostic::new(self.since(start), "missing address").expecting(["to"]));
        }
        let flags = self.translation_flags()?;
        Ok(Statement::Translate {
            kind,
            family,
            prefix,
            address,
            port,
            flags,
        })
    }

    /// Parses an address, a port, or both.
    fn destination(&mut self) -> Result<(Option<Expr>, Option<Expr>), Diagnostic> {
        let address = match self.at_sign(":") {
            true => None,
            false => Some(self.any()?),
        };
        if !self.eat_sign(":") {
            return Ok((address, None));
        }
        // nft would read it and the port as one word.
        if let Some(symbol) = address.as_ref().and_then(last_symbol)
            && symbol.text.len() <= 4
            && symbol.text.bytes().all(|b| b.is_ascii_hexdigit())
        {
            let message = format!("invalid address `{}`", shown(&symbol.text));
            return Err(Diagnostic::new(symbol.span, message));
        }
        let port = Some(self.port()?);
        Ok((address, port))
    }

    fn port(&mut self) -> Result<Expr, Diagnostic> {
        let port = self.any()?;
        match first_symbol(&port) {
            Some(symbol) if symbol.text.contains(':') && !symbol.is_quoted => {
                let message = format!("invalid port `{}`", shown(&symbol.text));
                Err(Diagnostic::new(symbol.span, message))
            }
            _ => Ok(port),
        }
    }

    fn translation_flags(&mut self) -> Result<Vec<&'static str>, Diagnostic> {
        let mut flags = Vec::new();
        let Some(first) = self.eat_any(&FLAGS) else {
            return Ok(flags);
        };
        flags.push(first);
        while self.eat_sign(",") {
            let flag = self.one_of(&FLAGS)?;
            if !flags.contains(&flag) {
                flags.push(flag);
            }
        }
        // In listing order.
        flags.sort_unstable_by_key(|flag| FLAGS.iter().position(|known| known == flag));
        Ok(flags)
    }

    pub(crate) fn tproxy(&mut self) -> Result<Statement, Diagnostic> {
        self.expect("tproxy")?;
        let family = self.version();
        self.expect("to")?;
        let (address, port) = self.destination()?;
        Ok(Statement::Tproxy {
            family,
            address,
            port,
        })
    }
}

/// Keywords of NAT flags, in listing order.
pub(crate) const FLAGS: [&str; 3] = ["random", "fully-random", "persistent"];

/// Returns the constant that an expression begins with, if any.
fn first_symbol(expr: &Expr) -> Option<&Symbol> {
    match expr {
        Expr::Symbol(symbol) => Some(symbol),
        Expr::Range(first, _)
        | Expr::Prefix(first, _)
        | Expr::Binary(_, first, _)
        | Expr::Map(first, _) => first_symbol(first),
        Expr::Concat(parts) => first_symbol(parts.first()?),
        _ => None,
    }
}

/// Returns the constant that an expression ends with, if any.
fn last_symbol(expr: &Expr) -> Option<&Symbol> {
    match expr {
        Expr::Symbol(symbol) => Some(symbol),
        Expr::Range(_, last) | Expr::Binary(_, _, last) => last_symbol(last),
        Expr::Concat(parts) => last_symbol(parts.last()?),
        _ => None,
    }
}
