//! Encodes values into the fields of an extension's data. A value that does not fit is an error
//! with the name of its option, and is never truncated.

use std::net::IpAddr;

use bitflags::Flags;

use super::value::to_octets;
use super::{Family, OptionError};

/// Encodes text into a NUL-terminated field of `N` bytes: at most `N - 1` bytes.
pub(super) fn text<const N: usize>(
    option: &'static str,
    text: &[u8],
) -> Result<[u8; N], OptionError> {
    let mut field = [0; N];
    if text.contains(&0) {
        return Err(OptionError::of(option, "it contains a NUL byte"));
    }
    match field.get_mut(..text.len()) {
        Some(place) if text.len() < N => place.copy_from_slice(text),
        _ => {
            let most = N.saturating_sub(1);
            let reason = format!("{} bytes are too many: at most {most} fit", text.len());
            return Err(OptionError::of(option, reason));
        }
    }
    Ok(field)
}

/// Encodes an address into the kernel's field for both families: 16 bytes, of which IPv4 uses 4.
pub(super) fn address(
    option: &'static str,
    family: Family,
    address: IpAddr,
) -> Result<[u8; 16], OptionError> {
    let (right, name) = match family {
        Family::Ipv4 => (address.is_ipv4(), "IPv4"),
        Family::Ipv6 => (address.is_ipv6(), "IPv6"),
    };
    if right {
        return Ok(to_octets(address));
    }
    Err(OptionError::of(
        option,
        format!("{address} is not of the rule's family, {name}"),
    ))
}

/// Checks the length of a list.
pub(super) fn at_most<'a, T>(
    option: &'static str,
    list: &'a [T],
    most: usize,
    what: &str,
) -> Result<&'a [T], OptionError> {
    if list.len() <= most {
        return Ok(list);
    }
    let number = list.len();
    Err(OptionError::of(
        option,
        format!("{number} {what} are too many: at most {most} fit"),
    ))
}

/// Returns the bits of a set of flags, all of which must have names.
pub(super) fn flags<F: Flags>(option: &'static str, flags: F) -> Result<F::Bits, OptionError> {
    if flags.contains_unknown_bits() {
        return Err(OptionError::of(option, "it has flags without a name"));
    }
    Ok(flags.bits())
}

/// Returns an error for an option that requires another one, unless the condition is met.
pub(super) fn require(condition: bool, option: &'static str, why: &str) -> Result<(), OptionError> {
    if condition {
        return Ok(());
    }
    Err(OptionError::of(option, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_values_are_rejected() {
        assert_eq!(text::<4>("x", b"abc"), Ok(*b"abc\0"));
        assert_eq!(text::<4>("x", b""), Ok([0; 4]));
        let message = |error: OptionError| error.to_string();
        assert_eq!(
            text::<4>("x", b"abcd").map_err(message),
            Err("--x: 4 bytes are too many: at most 3 fit".to_owned())
        );
        assert_eq!(
            text::<4>("x", b"a\0").map_err(message),
            Err("--x: it contains a NUL byte".to_owned())
        );
        let v6 = IpAddr::from([0; 16]);
        assert_eq!(
            address("to", Family::Ipv4, v6).map_err(message),
            Err("--to: :: is not of the rule's family, IPv4".to_owned())
        );
        assert!(address("to", Family::Ipv6, IpAddr::from([0; 4])).is_err());
        assert_eq!(at_most("p", &[1, 2], 2, "ports"), Ok(&[1, 2][..]));
        assert_eq!(
            at_most("p", &[1, 2, 3], 2, "ports").map_err(message),
            Err("--p: 3 ports are too many: at most 2 fit".to_owned())
        );
    }
}
