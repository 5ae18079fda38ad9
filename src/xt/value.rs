//! Parsers for the values of options: each takes a value's bytes and describes errors in words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use bstr::{BStr, ByteSlice};

use super::option::{GivenOption, OptionError};
use super::{Family, Mask, Names};

/// Result of a value parser: the value, or a description of the error.
pub(crate) type Parsed<T> = Result<T, String>;

impl<'a> GivenOption<'a> {
    /// Parses the value.
    pub(crate) fn parse<T>(
        &self,
        read: impl FnOnce(&'a BStr) -> Parsed<T>,
    ) -> Result<T, OptionError> {
        read(self.value()).map_err(|reason| self.error(reason))
    }

    /// Parses the second value.
    pub(crate) fn parse_second<T>(
        &self,
        read: impl FnOnce(&'a BStr) -> Parsed<T>,
    ) -> Result<T, OptionError> {
        read(self.second()).map_err(|reason| self.error_of_second(reason))
    }
}

/// Parses a decimal, hexadecimal (`0x`) or octal (`0`) number that fits the type.
pub(crate) fn number<T: TryFrom<u64>>(value: &BStr) -> Parsed<T> {
    digits(value)
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            let bits = 8 * size_of::<T>();
            let most = if bits >= 64 {
                u64::MAX
            } else {
                (1 << bits) - 1
            };
            format!("`{value}` is not a number from 0 to {most}")
        })
}

/// Parses a decimal number, as in counters: here `010` is ten.
pub(crate) fn decimal(value: &BStr) -> Parsed<u64> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("`{value}` is not a number from 0 to {}", u64::MAX))
}

/// Parses a number within these bounds.
pub(crate) fn number_within<T>(value: &BStr, bounds: RangeInclusive<T>) -> Parsed<T>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display,
{
    digits(value)
        .and_then(|number| T::try_from(number).ok())
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| {
            let (least, most) = bounds.into_inner();
            format!("`{value}` is not a number from {least} to {most}")
        })
}

/// Parses like C's `strtoul` with base 0, without signs and spaces.
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    let (digits, radix) = match value {
        [] | [b'0', b'x' | b'X'] => return None,
        [b'0', b'x' | b'X', hex @ ..] => (hex, 16),
        [b'0', octal @ ..] if !octal.is_empty() => (octal, 8),
        decimal => (decimal, 10),
    };
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    })
}

/// Splits the value at the first such byte.
pub(crate) fn split_at_byte(value: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    // Values are short, so a search for long texts would take longer to set up.
    let position = value.iter().position(|byte| *byte == at)?;
    Some((&value[..position], &value[position + 1..]))
}

/// Parses `a`, or `a:b`, where a missing end is the minimum or maximum.
pub(crate) fn range<T>(value: &BStr, bounds: RangeInclusive<T>) -> Parsed<RangeInclusive<T>>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display + Copy,
{
    range_of(value, bounds.clone(), |value| {
        number_within(value, bounds.clone())
    })
}

/// Like [`range`], with another parser for its ends.
pub(crate) fn range_of<T>(
    value: &BStr,
    bounds: RangeInclusive<T>,
    read: impl Fn(&BStr) -> Parsed<T>,
) -> Parsed<RangeInclusive<T>>
where
    T: PartialOrd + Copy,
{
    let (from, to) = ends_of(value, bounds, read)?;
    if from > to {
        return Err(format!("the range `{value}` ends before it starts"));
    }
    Ok(from..=to)
}

/// Like [`range_of`], for options that accept a reversed range, which is empty.
pub(crate) fn ends_of<T: Copy>(
    value: &BStr,
    bounds: RangeInclusive<T>,
    read: impl Fn(&BStr) -> Parsed<T>,
) -> Parsed<(T, T)> {
    let Some((from, to)) = split_at_byte(value, b':') else {
        let only = read(value)?;
        return Ok((only, only));
    };
    let end = |text: &[u8], open: T| match text {
        b"" => Ok(open),
        text => read(text.as_bstr()),
    };
    Ok((end(from, *bounds.start())?, end(to, *bounds.end())?))
}

/// Parses `value` or `value/mask`; the default is a full mask.
pub(crate) fn masked(value: &BStr) -> Parsed<(u32, u32)> {
    match split_at_byte(value, b'/') {
        None => Ok((number(value)?, u32::MAX)),
        Some((value, mask)) => Ok((number(value.as_bstr())?, number(mask.as_bstr())?)),
    }
}

/// Parses a port in host byte order, as a number or as a service name from `/etc/services`. Without
/// a protocol, accepts services of any protocol.
pub(crate) fn port(value: &BStr, protocol: Option<u8>, names: &Names) -> Parsed<u16> {
    if let Some(port) = digits(value) {
        return u16::try_from(port).map_err(|_| format!("`{value}` is more than 65535"));
    }
    names
        .service(value, protocol)
        .ok_or_else(|| format!("`{value}` is neither a port number nor a service in /etc/services"))
}

/// Parses a port or a range of ports, `a:b`.
pub(crate) fn ports(
    value: &BStr,
    protocol: Option<u8>,
    names: &Names,
) -> Parsed<RangeInclusive<u16>> {
    range_of(value, 0..=u16::MAX, |value| port(value, protocol, names))
}

/// Parses an address of the family. Host names are not looked up.
pub(crate) fn address(value: &BStr, family: Family) -> Parsed<IpAddr> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let wrong = |kind| format!("`{value}` is not an {kind} address (host names are not looked up)");
    match family {
        Family::Ipv4 => text
            .parse::<Ipv4Addr>()
            .map(IpAddr::from)
            .map_err(|_| wrong("IPv4")),
        Family::Ipv6 => text
            .parse::<Ipv6Addr>()
            .map(IpAddr::from)
            .map_err(|_| wrong("IPv6")),
    }
}

/// Returns the mask of a prefix; `None` if it is longer than the family's addresses.
pub(crate) fn prefix_mask(family: Family, prefix: u32) -> Option<IpAddr> {
    Some(match family {
        Family::Ipv4 => {
            let zeros = 32_u32.checked_sub(prefix)?;
            IpAddr::from(u32::MAX.checked_shl(zeros).unwrap_or(0).to_be_bytes())
        }
        Family::Ipv6 => {
            let zeros = 128_u32.checked_sub(prefix)?;
            IpAddr::from(u128::MAX.checked_shl(zeros).unwrap_or(0).to_be_bytes())
        }
    })
}

/// Returns the prefix length of a mask without gaps.
pub(crate) fn prefix_length(mask: IpAddr) -> Option<u32> {
    let (leading, ones) = match mask {
        IpAddr::V4(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
        IpAddr::V6(mask) => (mask.to_bits().leading_ones(), mask.to_bits().count_ones()),
    };
    (leading == ones).then_some(leading)
}

/// Parses `address`, `address/prefix` or `address/mask`. Returns the address with the bits outside
/// the mask cleared, and the mask. An IPv4 address may omit its last bytes, which are then 0.
pub(crate) fn network(value: &BStr, family: Family) -> Parsed<(IpAddr, IpAddr)> {
    let (text, mask) = match split_at_byte(value, b'/') {
        None => (value, None),
        Some((text, mask)) => (text.as_bstr(), Some(mask.as_bstr())),
    };
    let mask = match mask {
        None => prefix_mask(family, width(family)),
        Some(mask) => match digits(mask) {
            Some(prefix) => u32::try_from(prefix)
                .ok()
                .and_then(|prefix| prefix_mask(family, prefix)),
            None => address(mask, family).ok(),
        },
    };
    let most = width(family);
    let mask = mask.ok_or_else(|| {
        format!(
            "`{value}` has a mask that is neither a prefix length from 0 to {most} nor an address"
        )
    })?;
    let short = text.bytes().filter(|byte| *byte == b'.').count();
    let address = if family == Family::Ipv4 && short < 3 && !text.is_empty() {
        let mut whole = text.to_vec();
        whole.extend((short..3).flat_map(|_| *b".0"));
        address(whole.as_bstr(), family).map_err(|_| {
            format!("`{text}` is not an IPv4 address (host names are not looked up)")
        })?
    } else {
        address(text, family)?
    };
    Ok((and(address, mask), mask))
}

/// Like [`network`], but the address keeps its bits outside the mask, and must be complete.
pub(crate) fn host_and_mask(value: &BStr, family: Family) -> Parsed<(IpAddr, Mask)> {
    match split_at_byte(value, b'/') {
        None => Ok((address(value, family)?, Mask::full(family))),
        Some((host, _)) => {
            let mask = network(value, family)?.1;
            Ok((address(host.as_bstr(), family)?, mask.into()))
        }
    }
}

/// Returns the number of bits in an address.
pub(crate) const fn width(family: Family) -> u32 {
    match family {
        Family::Ipv4 => 32,
        Family::Ipv6 => 128,
    }
}

/// Clears the bits of the address outside the mask; both must have the same family.
pub(crate) fn and(address: IpAddr, mask: IpAddr) -> IpAddr {
    match (address, mask) {
        (IpAddr::V4(a), IpAddr::V4(m)) => {
            IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() & m.to_bits()))
        }
        (IpAddr::V6(a), IpAddr::V6(m)) => {
            IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() & m.to_bits()))
        }
        (address, _) => address,
    }
}

/// Decodes an address from the kernel's field for both families: 16 bytes, of which IPv4 uses 4.
pub(crate) fn from_octets(family: Family, octets: &[u8; 16]) -> IpAddr {
    match family {
        Family::Ipv4 => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
        Family::Ipv6 => IpAddr::from(*octets),
    }
}

/// Encodes an address; the reverse of [`from_octets`].
pub(crate) fn to_octets(address: IpAddr) -> [u8; 16] {
    let mut octets = [0; 16];
    match address {
        IpAddr::V4(address) => octets[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => octets = address.octets(),
    }
    octets
}

/// Parses six pairs of hexadecimal digits, separated by colons.
pub(crate) fn mac(value: &BStr) -> Parsed<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = value.split_str(":");
    let mut read = || {
        for byte in &mut address {
            let part = std::str::from_utf8(parts.next()?).ok()?;
            let valid = (1..=2).contains(&part.len()) && !part.starts_with('+');
            *byte = u8::from_str_radix(part, 16).ok().filter(|_| valid)?;
        }
        parts.next().is_none().then_some(())
    };
    let read = read();
    read.map(|()| address)
        .ok_or_else(|| format!("`{value}` is not a MAC address like 00:11:22:aa:bb:cc"))
}

/// Parses pairs of hexadecimal digits.
pub(crate) fn hex(value: &BStr) -> Parsed<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = value.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| format!("`{value}` is not pairs of hexadecimal digits"))
}

/// Parses one of these names.
pub(crate) fn one_of<T: Copy>(value: &BStr, names: &[(&str, T)]) -> Parsed<T> {
    names
        .iter()
        .find(|(name, _)| value == name)
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| {
            let known: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            format!("`{value}` is not one of {}", known.join(", "))
        })
}

/// Parses some of these names, separated by commas, and combines their values with `|`.
pub(crate) fn any_of<T>(value: &BStr, names: &[(&str, T)]) -> Parsed<T>
where
    T: Copy + Default + std::ops::BitOr<Output = T>,
{
    value.split_str(",").try_fold(T::default(), |all, name| {
        Ok(all | one_of(name.as_bstr(), names)?)
    })
}

/// Like [`any_of`], case-insensitive; the prefix of a name selects the first name with that prefix.
pub(crate) fn any_start_of<T>(value: &BStr, names: &[(&str, T)]) -> Parsed<T>
where
    T: Copy + Default + std::ops::BitOr<Output = T>,
{
    value.split_str(",").try_fold(T::default(), |all, given| {
        let found = names.iter().find(|(name, _)| starts(name, given));
        match found.filter(|_| !given.is_empty()) {
            Some((_, meaning)) => Ok(all | *meaning),
            None => Ok(all | one_of(given.as_bstr(), names)?),
        }
    })
}

/// Like [`any_of`], case-insensitive and with optional extra commas.
pub(crate) fn any_word_of<T>(value: &BStr, names: &[(&str, T)]) -> Parsed<T>
where
    T: Copy + Default + std::ops::BitOr<Output = T>,
{
    let mut given = value.split_str(",").filter(|word| !word.is_empty());
    let first = word_of(given.next().unwrap_or_default().as_bstr(), names)?;
    given.try_fold(first, |all, word| Ok(all | word_of(word.as_bstr(), names)?))
}

/// Parses one of these names, case-insensitive.
pub(crate) fn word_of<T: Copy>(value: &BStr, names: &[(&str, T)]) -> Parsed<T> {
    let found = names
        .iter()
        .find(|(name, _)| value.eq_ignore_ascii_case(name.as_bytes()));
    found.map_or_else(|| one_of(value, names), |(_, meaning)| Ok(*meaning))
}

/// Returns `true` if a name starts with `start`, ignoring case.
pub(crate) fn starts(name: &str, start: &[u8]) -> bool {
    let head = name.as_bytes().get(..start.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(start))
}

/// Parses a string with a length within these bounds, without a NUL.
pub(crate) fn string(value: &BStr, lengths: RangeInclusive<usize>) -> Parsed<&BStr> {
    if value.contains(&0) {
        return Err("it contains a NUL byte".to_owned());
    }
    if !lengths.contains(&value.len()) {
        let (least, most) = lengths.into_inner();
        return Err(format!(
            "it has {} bytes; {least} to {most} are allowed",
            value.len()
        ));
    }
    Ok(value)
}

/// Returns the bytes before the first NUL of a kernel field; `None` if there is no NUL.
pub(crate) fn until_nul(field: &[u8]) -> Option<&BStr> {
    let end = field.find_byte(0)?;
    Some(field[..end].as_bstr())
}

/// Like [`until_nul`]; also `None` if there is a newline, which a line of a dump cannot represent.
pub(crate) fn line(field: &[u8]) -> Option<&BStr> {
    until_nul(field).filter(|text| !text.contains(&b'\n'))
}

/// Returns a kernel field that starts with these bytes; excess bytes are cut off.
pub(crate) fn field<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut field = [0; N];
    let length = bytes.len().min(N);
    field[..length].copy_from_slice(&bytes[..length]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Text;

    fn b(text: &str) -> &BStr {
        text.as_bytes().as_bstr()
    }

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(number::<u16>(b("0x1F")), Ok(31));
        assert_eq!(number::<u8>(b("010")), Ok(8));
        assert_eq!(number::<u8>(b("0")), Ok(0));
        assert_eq!(
            number::<u8>(b("256")),
            Err("`256` is not a number from 0 to 255".to_owned())
        );
        for wrong in [
            "",
            "-1",
            "+1",
            "0x",
            "0x+1",
            "1 ",
            " 1",
            "09",
            "1e3",
            "99999999999999999999",
        ] {
            assert!(number::<u64>(b(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(range(b("3:9"), 0..=u8::MAX), Ok(3..=9));
        assert_eq!(range(b(":9"), 0..=u8::MAX), Ok(0..=9));
        assert_eq!(range(b("3:"), 1..=7_u8), Ok(3..=7));
        assert_eq!(range(b("4"), 1..=7_u8), Ok(4..=4));
        assert!(range(b("9:3"), 0..=u8::MAX).is_err());
        assert!(range(b("3:9"), 0..=7_u8).is_err());
        let ends = |text| ends_of(b(text), 0..=7_u8, number);
        assert_eq!(
            (ends("6:3"), ends(":"), ends("5")),
            (Ok((6, 3)), Ok((0, 7)), Ok((5, 5)))
        );
        assert_eq!(masked(b("0x10/255")), Ok((16, 255)));
        assert_eq!(masked(b("7")), Ok((7, u32::MAX)));
    }

    #[test]
    fn addresses_and_networks() {
        let v4 = |text| network(b(text), Family::Ipv4);
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(v4("10.1.2.3"), Ok((ip("10.1.2.3"), ip("255.255.255.255"))));
        assert_eq!(v4("10.1.2.3/8"), Ok((ip("10.0.0.0"), ip("255.0.0.0"))));
        assert_eq!(
            v4("10.1/255.0.255.0"),
            Ok((ip("10.0.0.0"), ip("255.0.255.0")))
        );
        assert_eq!(v4("0/0"), Ok((ip("0.0.0.0"), ip("0.0.0.0"))));
        for wrong in [
            "",
            "/8",
            "host",
            "1.2.3.4/33",
            "1.2.3.4/",
            "1.2.3.256",
            "1.2.3.4.5",
            "::1",
        ] {
            assert!(v4(wrong).is_err(), "{wrong}");
        }
        let v6 = |text| network(b(text), Family::Ipv6);
        assert_eq!(
            v6("fd00::1/64"),
            Ok((ip("fd00::"), ip("ffff:ffff:ffff:ffff::")))
        );
        assert_eq!(prefix_length(ip("ffff:f000::")), Some(20));
        assert_eq!(prefix_length(ip("255.0.255.0")), None);
        assert!(v6("fd00::1/129").is_err());
        for address in [ip("1.2.3.4"), ip("fe80::1")] {
            let family = if address.is_ipv4() {
                Family::Ipv4
            } else {
                Family::Ipv6
            };
            assert_eq!(from_octets(family, &to_octets(address)), address);
        }
    }

    #[test]
    fn hosts_with_masks() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (value, family, mask, printed) in [
            ("10.1.2.3", Family::Ipv4, "255.255.255.255", ""),
            ("10.1.2.3/24", Family::Ipv4, "255.255.255.0", "/24"),
            (
                "10.1.2.3/255.0.255.0",
                Family::Ipv4,
                "255.0.255.0",
                "/255.0.255.0",
            ),
            ("fd00::1/32", Family::Ipv6, "ffff:ffff::", "/32"),
            ("fd00::1/ff00::", Family::Ipv6, "ff00::", "/8"),
        ] {
            let host = ip(value.split('/').next().unwrap());
            assert_eq!(
                host_and_mask(b(value), family),
                Ok((host, ip(mask).into())),
                "{value}"
            );
            let mut text = Text::new();
            Mask::new(ip(mask)).print(&mut text);
            assert_eq!(text.as_bytes().as_bstr(), printed, "{value}");
        }
        for wrong in ["10.1/16", "10.1.2.3/33", "10.1.2.3/", "/8", "host"] {
            assert!(host_and_mask(b(wrong), Family::Ipv4).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_strings_and_mac_addresses() {
        assert_eq!(
            mac(b("0:11:22:aa:Bb:cc")),
            Ok([0, 0x11, 0x22, 0xaa, 0xbb, 0xcc])
        );
        for wrong in [
            "",
            "0:1:2:3:4",
            "0:1:2:3:4:5:6",
            "0:1:2:3:4:100",
            "0:1:2:3:4:+5",
        ] {
            assert!(mac(b(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(any_of(b("a,c"), &[("a", 1_u8), ("b", 2), ("c", 4)]), Ok(5));
        assert_eq!(
            any_of(b("a,d"), &[("a", 1_u8), ("b", 2)]),
            Err("`d` is not one of a, b".to_owned())
        );
        let names = [("UNSPEC", 1_u8), ("UNICAST", 2), ("LOCAL", 4)];
        assert_eq!(any_start_of(b("un,loc"), &names), Ok(5));
        assert_eq!(any_start_of(b("UNI"), &names), Ok(2));
        assert!(any_start_of(b("LOCAL,"), &names).is_err());
        assert!(any_start_of(b("LOCALE"), &names).is_err());
        assert_eq!(any_word_of(b("local,,Unspec,"), &names), Ok(5));
        for wrong in ["", ",", "loc", "local,x"] {
            assert!(any_word_of(b(wrong), &names).is_err(), "{wrong}");
        }
        assert!(string(b("abc"), 1..=2).is_err());
        assert!(string(b("a\0"), 1..=2).is_err());
        assert_eq!(until_nul(b"ab\0c"), Some(b("ab")));
        assert_eq!(until_nul(b"abc"), None);
        assert_eq!(line(b"ab\0\n"), Some(b("ab")));
        assert_eq!(line(b"a\nb\0"), None);
        assert_eq!(field::<4>(b"abcdef"), *b"abcd");
    }

    #[test]
    fn ends_in_any_order() {
        let ends = |text: &str| ends_of(b(text), 0..=u32::MAX, number);
        for (text, wanted) in [
            ("7", (7, 7)),
            ("0x10:0x20", (16, 32)),
            (":9", (0, 9)),
            ("9:", (9, u32::MAX)),
            (":", (0, u32::MAX)),
            ("9:5", (9, 5)),
        ] {
            assert_eq!(ends(text), Ok(wanted));
        }
        for wrong in ["", "a", "1:2:3", "4294967296", "1-2"] {
            assert!(ends(wrong).is_err(), "{wrong}");
        }
    }
}
