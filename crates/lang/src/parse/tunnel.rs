//! Parses tunnel headers and inner packets.

use super::error::Diagnostic;
use super::parser::Parser;
use super::selectors::{field_names, field_of};
use crate::syntax::{Expr, Payload};
use crate::tunnels::Tunnel;
use chainwright::nft::expr::PayloadBase;

/// Returns the words that may follow the name of a tunnel.
fn words_inside(tunnel: &'static Tunnel) -> impl Iterator<Item = &'static str> {
    let others = tunnel.protocols().filter(|other| *other != tunnel.own);
    field_names(tunnel.own).chain(others.map(|other| other.name))
}

pub(crate) fn is_inside(tunnel: &'static Tunnel, word: &str) -> bool {
    words_inside(tunnel).any(|known| known == word)
}

impl Parser<'_> {
    /// Parses a field of a tunnel's header or of the inner packet.
    pub(crate) fn in_tunnel(&mut self, tunnel: &'static Tunnel) -> Result<Expr, Diagnostic> {
        let word = match self.is_word() {
            true => self.word().to_owned(),
            false => String::new(),
        };
        let own = field_names(tunnel.own).position(|name| name == word);
        if let Some(index) = own {
            self.advance();
            return Ok(Expr::Payload(match tunnel.own.base {
                PayloadBase::TUNNEL => tunnel.field(tunnel.own, index),
                _ => field_of(tunnel.own, index),
            }));
        }
        // The tunnel's own fields were handled above.
        let found = tunnel.protocol(&word).filter(|found| *found != tunnel.own);
        let Some(protocol) = found else {
            return Err(self.unknown(
                &format!("{} field or protocol", tunnel.name()),
                words_inside(tunnel),
            ));
        };
        let start = self.current.span;
        self.advance();
        match self.field(protocol)? {
            Expr::Payload(payload) => Ok(Expr::Payload(Payload {
                tunnel: Some(tunnel),
                ..payload
            })),
            _ => {
                let message = "options and chunks inside a tunnel cannot be matched";
                Err(Diagnostic::new(self.since(start), message))
            }
        }
    }
}
