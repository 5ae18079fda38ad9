//! Names that a command holds: of chains and interfaces; addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::{BStr, BString, ByteSlice};

use super::parser::is_option;
use crate::iptables::text::ParseError;
use crate::iptables::{Address, Interface};
use crate::xt::{Family, value};

/// Longest name of a chain, in bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL, as iptables has it).
pub(super) const LONGEST_CHAIN_NAME: usize = 28;

/// Whether a name has a byte that separates words.
pub(super) fn has_blanks(name: &[u8]) -> bool {
    // Nearly no name has a byte that is not above the blank; all bytes are looked at together.
    let low = name.iter().fold(false, |low, byte| low | (*byte <= b' '));
    low && name.iter().any(u8::is_ascii_whitespace)
}

pub(in crate::iptables::text) fn chain_name(
    name: &BStr,
    column: usize,
) -> Result<BString, ParseError> {
    check_chain_name(name, column).map(|()| name.to_owned())
}

/// Says why no chain can be made that has the name, in iptables' words, if none can.
pub(super) fn check_chain_name(name: &BStr, column: usize) -> Result<(), ParseError> {
    let wrong = match name.as_bytes() {
        [] => "chain name may not clash with target name".to_owned(),
        [first @ (b'-' | b'!'), ..] => {
            format!(
                "chain name not allowed to start with `{}'",
                char::from(*first)
            )
        }
        _ if has_blanks(name) => format!("Invalid chain name `{name}'"),
        _ => return check_length(name, column),
    };
    Err(ParseError::new(column, wrong))
}

/// The same of a chain that must be there.
pub(super) fn check_length(name: &BStr, column: usize) -> Result<(), ParseError> {
    if name.len() <= LONGEST_CHAIN_NAME {
        return Ok(());
    }
    let message = format!("chain name `{name}' too long (must be under 29 chars)");
    Err(ParseError::new(column, message))
}

/// The same of a chain that need not be named.
pub(super) fn check_optional(name: &BStr, column: usize) -> Result<(), ParseError> {
    match name.first() {
        Some(b'!') => Err(ParseError::new(column, format!("Bad argument `{name}'"))),
        _ => check_length(name, column),
    }
}

/// Reads the name of a chain that a rule leads to.
pub(super) fn target_name(name: &BStr, column: usize) -> Result<BString, ParseError> {
    let wrong = match name.as_bytes() {
        [] => "Invalid target name (too short)".to_owned(),
        _ if name.len() > LONGEST_CHAIN_NAME => {
            format!("Invalid target name `{name}' (28 chars max)")
        }
        _ if has_blanks(name) => format!("Invalid target name `{name}'"),
        _ => return Ok(name.to_owned()),
    };
    Err(ParseError::new(column, wrong))
}

/// Reads an interface's name, or the start of one before a `+`. A lone `+` that is not negated says
/// nothing.
pub(super) fn interface(name: &BStr, invert: bool) -> Result<Option<Interface>, String> {
    if name.is_empty() || name.len() > 15 {
        return Err(format!(
            "`{name}` is not an interface's name: it has 1 to 15 bytes"
        ));
    }
    // Attached to its option it can be typed; but nobody could write it so that it is read back.
    if is_option(name) {
        return Err(format!(
            "`{name}` is an option: no rule is about an interface of that name"
        ));
    }
    Ok(match name.strip_suffix(b"+") {
        Some(b"") if !invert => None,
        Some(start) => Some(Interface {
            name: start.into(),
            prefix: true,
            invert,
        }),
        None => Some(Interface {
            name: name.to_owned(),
            prefix: false,
            invert,
        }),
    })
}

/// The address of zeroes.
pub(super) const fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Whether the value of `-s` or `-d` ends in a mask of zeroes: then it stands for every address, whatever is before the mask.
pub(super) fn has_no_mask(value: &[u8], family: Family) -> bool {
    let Some((_, mask)) = value.rsplit_once_str("/") else {
        return false;
    };
    let digits = mask.strip_prefix(b"0x").unwrap_or(mask);
    let zero = !digits.is_empty() && digits.iter().all(|digit| *digit == b'0');
    let address = mask.to_str().ok().and_then(|mask| mask.parse().ok());
    zero || address == Some(unspecified(family))
}

impl Address {
    /// Reads `address`, `address/prefix` or `address/mask`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(family: Family, text: impl AsRef<[u8]>) -> Result<Self, String> {
        let (address, mask): (IpAddr, IpAddr) = value::network(text.as_ref().as_bstr(), family)?;
        Ok(Self::masked(address, mask, false))
    }
}
