//! Helpers for the tests of targets.

use std::fmt::Debug;

use bstr::ByteSlice;

use crate::xt::extension::check as check_options;
use crate::xt::{Context, Extension, Family, GivenOption, Names, Text};

/// Parses bytes from hexadecimal digits separated by spaces.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let bytes = text.split_whitespace();
    bytes
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

/// Checks that the data is decoded as that value with and without padding, encoded from it again,
/// and printed with these options; and that shorter data or an unknown revision is not decoded.
#[track_caller]
pub(super) fn check<T: Extension + PartialEq + Debug>(
    family: Family,
    data: &str,
    value: &T,
    printed: &str,
) {
    let (data, revision) = (hex(data), T::revision(family));
    assert_eq!(T::read(family, revision, &data).as_ref(), Some(value));
    assert_eq!(value.write(family).unwrap(), data);
    let padded = [&data[..], &[0xff; 8]].concat();
    assert_eq!(T::read(family, revision, &padded).as_ref(), Some(value));
    for length in 0..data.len() {
        assert_eq!(T::read(family, revision, &data[..length]), None);
    }
    assert_eq!(T::read(family, 9, &data), None);
    let mut text = Text::new();
    value.print(&mut text);
    assert_eq!(text.as_bytes().as_bstr(), printed);
}

/// Parses the value from options and their values; an empty string stands for no value.
pub(super) fn parse<T: Extension>(
    family: Family,
    protocol: Option<u8>,
    options: &[(&'static str, &str)],
) -> Result<T, String> {
    let context = Context {
        family,
        name: T::NAME,
        protocol: protocol.map(|number| (number, false)),
        native_log: true,
        names: &Names::system(),
        truncated: None,
    };
    let given: Vec<_> = options
        .iter()
        .map(|(option, value)| GivenOption {
            option,
            invert: false,
            first: (!value.is_empty()).then_some(value.as_bytes().as_bstr()),
            second: None,
        })
        .collect();
    let checked = check_options(T::options(T::NAME), T::GROUPS, &given);
    let parsed = checked.and_then(|()| T::parse(&context, &given));
    parsed.map_err(|error| error.to_string())
}

/// Returns the error for these options.
#[track_caller]
pub(super) fn refused<T: Extension + Debug>(
    family: Family,
    protocol: Option<u8>,
    options: &[(&'static str, &str)],
) -> String {
    parse::<T>(family, protocol, options).unwrap_err()
}
