//! Protocols that the connection tracking objects share.

use super::prelude::*;
use crate::parse::script::FAMILIES;
use crate::types;

/// Number of a transport protocol.
pub(crate) struct Protocol;

/// Number of a network protocol's family.
pub(crate) struct L3Protocol;

/// Returns the name of a transport protocol.
pub(crate) fn protocol_name(number: Option<u8>) -> String {
    let number = number.unwrap_or_default();
    let mut names = types::symbols(DataType::INET_PROTO).iter();
    match names.find(|(_, value)| *value == u64::from(number)) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

/// Returns the name of a family.
pub(crate) fn family_name(number: Option<u16>) -> Option<&'static str> {
    match Family(u8::try_from(number?).ok()?) {
        Family::UNSPEC => None,
        family => family.name(),
    }
}

impl Clause<Option<u8>> for Protocol {
    /// nft's language has words for these two.
    fn parse(
        &self,
        _: &str,
        value: &mut Option<u8>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        let number = match parser.one_of(&["tcp", "udp"])? {
            "tcp" => libc::IPPROTO_TCP,
            _ => libc::IPPROTO_UDP,
        };
        Ok(value.replace(number as u8).is_some())
    }

    fn text(&self, key: &str, value: &Option<u8>, _: &Options) -> Option<String> {
        Some(format!("{key} {}", protocol_name(*value)))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<u8>, Diagnostic> {
        let word = fields.need(key)?.symbol("a protocol")?;
        let symbols = types::symbols(DataType::INET_PROTO);
        let found = symbols.iter().find(|(name, _)| **name == *word.text);
        let number = match found {
            Some((_, number)) => Some(u128::from(*number)),
            None => crate::parse::number(&word.text),
        };
        let number = number.and_then(|number| u8::try_from(number).ok());
        number.map(Some).ok_or_else(|| {
            let message = format!("unknown transport protocol `{}`", shown(&word.text));
            Diagnostic::new(word.span, message)
                .expecting(["tcp", "udp", "sctp", "dccp", "icmp", "ipv6-icmp", "gre"])
                .nearest_to(&word.text)
        })
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<u8>, _: Writer<'_>) -> Option<Expression<'static>> {
        Some(protocol_name(*value).into())
    }
}

impl Clause<Option<u16>> for L3Protocol {
    fn parse(
        &self,
        _: &str,
        value: &mut Option<u16>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        let family: Family = parser.one_of(&FAMILIES)?.parse().unwrap_or_default();
        Ok(value.replace(family.0.into()).is_some())
    }

    fn text(&self, key: &str, value: &Option<u16>, _: &Options) -> Option<String> {
        Some(format!("{key} {}", family_name(*value)?))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<u16>, Diagnostic> {
        let word = fields.word(key, "family", &FAMILIES)?;
        let family = word.map(|word| word.parse::<Family>().unwrap_or_default());
        Ok(family.map(|family| family.0.into()))
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<u16>, _: Writer<'_>) -> Option<Expression<'static>> {
        family_name(*value).map(Expression::word)
    }
}
