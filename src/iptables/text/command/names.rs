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

/// Says why a chain cannot have that name, if it cannot.
pub(super) fn check_chain_name(name: &BStr, column: usize) -> Result<(), ParseError> {
    let wrong = if name.is_empty() {
        "a chain's name has at least one byte"
    } else if name.len() > LONGEST_CHAIN_NAME {
        "a chain's name has at most 28 bytes"
    } else if matches!(name[0], b'-' | b'!') {
        "a chain's name does not start with `-` or `!`"
    } else if has_blanks(name) {
        "a chain's name has no blanks"
    } else {
        return Ok(());
    };
    Err(ParseError::new(column, format!("`{name}`: {wrong}")))
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
