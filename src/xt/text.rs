//! Text as `iptables-save` prints it: bytes, since comments and names need not be UTF-8.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bstr::ByteSlice;

use super::{ListStyle, Names};

/// A growing text. Each appended part follows a space, unless documented otherwise.
#[derive(Debug, Clone, Default)]
pub struct Text {
    bytes: Vec<u8>,
    /// `None` for the system's names until they are needed.
    names: Option<Arc<Names>>,
    /// Whether to write options without their dashes.
    bare: bool,
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Text {}

impl Text {
    /// Creates an empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            names: None,
            bare: false,
        }
    }

    /// Creates an empty text that prints numbers with these names.
    #[must_use]
    pub const fn with_names(names: Arc<Names>) -> Self {
        Self {
            bytes: Vec::new(),
            names: Some(names),
            bare: false,
        }
    }

    /// Returns the names for numbers.
    pub(crate) fn names(&mut self) -> Arc<Names> {
        self.names.get_or_insert_with(Names::system).clone()
    }

    /// Appends a protocol's name or number, without a space.
    pub(crate) fn protocol(&mut self, number: u8) -> &mut Self {
        match number {
            6 => self.push("tcp"),
            17 => self.push("udp"),
            _ => match self.names().protocol_name(number) {
                Some(name) => self.push(name),
                None => self.number(number),
            },
        }
    }

    /// Appends a port's number or its service name, without a space.
    pub(crate) fn port(&mut self, port: u16, protocol: Option<u8>, style: ListStyle) -> &mut Self {
        let names = self.names();
        match names
            .service_name(port, protocol)
            .filter(|_| !style.numeric)
        {
            Some(name) => self.push(name),
            None => self.number(port),
        }
    }

    /// Returns the text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the text's bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Clears the text, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Truncates the text to this many bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Appends these bytes, without a space.
    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Appends a word.
    pub(crate) fn word(&mut self, word: impl AsRef<[u8]>) -> &mut Self {
        self.bytes.push(b' ');
        self.push(word)
    }

    /// Appends ` --name`, or ` ! --name`.
    pub(crate) fn option(&mut self, invert: bool, name: &str) -> &mut Self {
        self.push(if invert { " !" } else { "" });
        self.push(if self.bare { " " } else { " --" }).push(name)
    }

    /// Calls `add`, and writes options without their dashes meanwhile.
    pub(crate) fn bare(&mut self, add: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.bare, true);
        add(self);
        self.bare = before;
    }

    /// Appends ` --name` if `on` is set.
    pub(crate) fn switch(&mut self, on: bool, name: &str) -> &mut Self {
        if on { self.option(false, name) } else { self }
    }

    /// Appends ` --name` for each flag that is set, in the order of the options.
    pub(crate) fn flags<F: bitflags::Flags + Copy>(&mut self, set: F, options: &[(F, &str)]) {
        for (flag, option) in options {
            self.switch(set.contains(*flag), option);
        }
    }

    /// Appends `first:last`, or a single number if both are the same, without a space.
    pub(crate) fn range<T: Into<u64> + PartialEq + Copy>(
        &mut self,
        first: T,
        last: T,
    ) -> &mut Self {
        self.number(first);
        if first != last {
            self.push(":").number(last);
        }
        self
    }

    /// Appends a number in decimal, without a space.
    pub(crate) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        let mut number = number.into();
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[at..])
    }

    /// Appends a number as `0x…`, without a space.
    pub(crate) fn hex(&mut self, number: impl Into<u64>) -> &mut Self {
        let mut number = number.into();
        let mut digits = [0; 16];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[(number % 16) as usize];
            number /= 16;
            if number == 0 {
                break;
            }
        }
        self.push("0x").push(&digits[at..])
    }

    /// Appends an address, without a space. Like `inet_ntop` of the C library, this prints the last
    /// four bytes of an IPv6 address after leading zeros as an IPv4 address.
    pub(crate) fn address(&mut self, address: impl Into<IpAddr>) -> &mut Self {
        match address.into() {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                self.number(a).push(".").number(b).push(".");
                self.number(c).push(".").number(d)
            }
            IpAddr::V6(address) => match address.segments() {
                [0, 0, 0, 0, 0, 0, high, _] if high != 0 => {
                    let [.., a, b, c, d] = address.octets();
                    self.push("::").address(IpAddr::from([a, b, c, d]))
                }
                _ => self.display(address),
            },
        }
    }

    /// Appends the value's `Display` output, without a space.
    pub(crate) fn display(&mut self, what: impl fmt::Display) -> &mut Self {
        // Writing to memory does not fail.
        let _ = fmt::Write::write_fmt(self, format_args!("{what}"));
        self
    }

    /// Appends a name as a word, in quotes only if it is empty or contains a space or a `"`.
    pub(crate) fn name(&mut self, name: impl AsRef<[u8]>) -> &mut Self {
        let name = name.as_ref();
        let whole = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'"';
        if !name.is_empty() && name.iter().all(whole) {
            return self.word(name);
        }
        self.string(name)
    }

    /// Appends a string: in quotes, with `"`, `'` and `\` escaped, unless it consists of letters,
    /// digits, `_` and `-` only.
    pub(crate) fn string(&mut self, string: impl AsRef<[u8]>) -> &mut Self {
        let string = string.as_ref();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.bytes.push(b' ');
        if !string.is_empty() && string.iter().all(plain) {
            return self.push(string);
        }
        self.bytes.push(b'"');
        let mut rest = string;
        while let Some(at) = rest.find_byteset(b"\"'\\") {
            self.bytes.extend_from_slice(&rest[..at]);
            self.bytes.extend_from_slice(&[b'\\', rest[at]]);
            rest = &rest[at + 1..];
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.push(b'"');
        self
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_strings_and_options() {
        let mut text = Text::new();
        text.push("-m x")
            .option(false, "a")
            .word("b")
            .push(":")
            .number(0_u8);
        text.option(true, "c")
            .push(" ")
            .number(u64::MAX)
            .push(" ")
            .hex(255_u8);
        text.push(" ").hex(0_u8).push(" ").hex(u64::MAX);
        assert_eq!(
            text.as_bytes().as_bstr(),
            "-m x --a b:0 ! --c 18446744073709551615 0xff 0x0 0xffffffffffffffff"
        );
        text.clear();
        text.switch(true, "a").switch(false, "b").push(" ");
        text.range(5_u16, 9).push(" ").range(7_u32, 7);
        assert_eq!(text.as_bytes().as_bstr(), " --a 5:9 7");
        // glibc's `inet_ntop` prints them like this.
        for address in [
            "10.0.200.3",
            "::",
            "::1",
            "::ffff",
            "::0.1.0.0",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "::1:0:0",
            "fd00::1:0:0:1",
            "1::",
            "64:ff9b::102:304",
        ] {
            text.clear();
            text.address(address.parse::<IpAddr>().unwrap());
            assert_eq!(text.as_bytes().as_bstr(), address);
        }
        text.clear();
        for (string, printed) in [
            (&b"a-Z_9"[..], " a-Z_9"),
            (b"", " \"\""),
            (b"two words", " \"two words\""),
            (br#"a"b'c\d"#, r#" "a\"b\'c\\d""#),
        ] {
            text.clear();
            assert_eq!(text.string(string).as_bytes().as_bstr(), printed);
        }
        // ip6tables-save 1.8.9 prints `-s` with these.
        for (address, printed) in [
            ("10.0.200.3", "10.0.200.3"),
            ("::102:304", "::1.2.3.4"),
            ("::1:0", "::0.1.0.0"),
            ("::5", "::5"),
            ("::", "::"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("0:0:1:2:0:0:3:4", "::1:2:0:0:3:4"),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ] {
            text.clear();
            text.address(address.parse::<IpAddr>().unwrap());
            assert_eq!(text.as_bytes().as_bstr(), printed);
        }
        for (name, printed) in [
            ("KUBE-SEP-1.2/x'\\!", " KUBE-SEP-1.2/x'\\!"),
            ("", " \"\""),
            ("a b", " \"a b\""),
            ("a\"b", " \"a\\\"b\""),
        ] {
            text.clear();
            assert_eq!(text.name(name).as_bytes().as_bstr(), printed);
        }
        text.clear();
        assert_eq!(text.string([0xff, b' ']).as_bytes(), b" \"\xff \"");
    }
}
