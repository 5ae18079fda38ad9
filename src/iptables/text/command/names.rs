//! Names in commands: of chains and interfaces; addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::{BStr, BString, ByteSlice};

use super::parser::is_option;
use crate::iptables::text::ParseError;
use crate::iptables::{Address, Interface};
use crate::xt::{Family, value};

/// Longest name of a chain in iptables, in bytes (`XT_EXTENSION_MAXNAMELEN` includes the NUL).
pub(super) const MAX_CHAIN_NAME_LENGTH: usize = 28;

/// Returns `true` if a name contains white space.
pub(super) fn has_blanks(name: &[u8]) -> bool {
    // Few names have bytes up to the blank; the fold checks all bytes without branches.
    let low = name.iter().fold(false, |low, byte| low | (*byte <= b' '));
    low && name.iter().any(u8::is_ascii_whitespace)
}

pub(in crate::iptables::text) fn chain_name(
    name: &BStr,
    column: usize,
) -> Result<BString, ParseError> {
    check_chain_name(name, column).map(|()| name.to_owned())
}

/// Rejects a name that a new chain cannot have, with iptables' message.
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

/// Rejects a name that an existing chain cannot have.
pub(super) fn check_length(name: &BStr, column: usize) -> Result<(), ParseError> {
    if name.len() <= MAX_CHAIN_NAME_LENGTH {
        return Ok(());
    }
    let message = format!("chain name `{name}' too long (must be under 29 chars)");
    Err(ParseError::new(column, message))
}

/// Checks the name of an optional chain.
pub(super) fn check_optional(name: &BStr, column: usize) -> Result<(), ParseError> {
    match name.first() {
        Some(b'!') => Err(ParseError::new(column, format!("Bad argument `{name}'"))),
        _ => check_length(name, column),
    }
}

/// Parses the name of a rule's target chain.
pub(super) fn target_name(name: &BStr, column: usize) -> Result<BString, ParseError> {
    let wrong = match name.as_bytes() {
        [] => "Invalid target name (too short)".to_owned(),
        _ if name.len() > MAX_CHAIN_NAME_LENGTH => {
            format!("Invalid target name `{name}' (28 chars max)")
        }
        _ if has_blanks(name) => format!("Invalid target name `{name}'"),
        _ => return Ok(name.to_owned()),
    };
    Err(ParseError::new(column, wrong))
}

/// Parses an interface's name, or a prefix before a `+`. A lone `+` that is not negated is no
/// condition.
pub(super) fn interface(name: &BStr, invert: bool) -> Result<Option<Interface>, String> {
    if name.is_empty() || name.len() > 15 {
        return Err(format!(
            "`{name}` is not an interface name: it must have 1 to 15 bytes"
        ));
    }
    // It can be attached to its option, but no output would parse as the same name.
    if is_option(name) {
        return Err(format!("`{name}` is an option, not an interface name"));
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

/// Returns the unspecified address.
pub(super) const fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Returns `true` if the value of `-s` or `-d` ends in a mask of zeroes: it then matches every address, whatever
/// precedes the mask.
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
    /// Parses `address`, `address/prefix` or `address/mask`.
    ///
    /// # Errors
    /// A message.
    pub fn parse(family: Family, text: impl AsRef<[u8]>) -> Result<Self, String> {
        let (address, mask): (IpAddr, IpAddr) = value::network(text.as_ref().as_bstr(), family)?;
        Ok(Self::masked(address, mask, false))
    }
}
