//! Reads a text to restore from a file or a pipe.

use std::io::{self, Read};

use super::MAX_LINE_LENGTH;
use crate::input;

/// The longest text that [`read`] accepts, in bytes: about five million rules.
pub const MAX_TEXT_LENGTH: usize = input::MAX_TEXT_LENGTH;

/// Reads a text: at most [`MAX_TEXT_LENGTH`], and no further than a line that
/// is longer than [`MAX_LINE_LENGTH`] or contains a NUL.
///
/// # Errors
/// Read errors; [`InvalidData`](io::ErrorKind::InvalidData) if the input exceeds a limit or contains a NUL.
pub fn read(from: impl Read) -> io::Result<Vec<u8>> {
    input::read_text(from, MAX_LINE_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An endless input that counts the bytes read.
    struct Endless<'p>(&'p [u8], usize);

    impl Read for Endless<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            for (place, byte) in into.iter_mut().zip(self.0.iter().cycle()) {
                *place = *byte;
            }
            self.1 += into.len();
            Ok(into.len())
        }
    }

    #[test]
    fn endless_input_is_rejected() {
        let mut zeros = Endless(b"\0", 0);
        let error = read(&mut zeros).unwrap_err();
        assert!(
            error.to_string().contains("NUL byte near line 1"),
            "{error}"
        );
        assert!(zeros.1 <= 128 * 1024, "{}", zeros.1);
        let mut line = Endless(b"x", 0);
        let error = read(&mut line).unwrap_err();
        assert!(
            error.to_string().contains("line 1 has more than"),
            "{error}"
        );
        assert!(line.1 <= 4 * MAX_LINE_LENGTH, "{}", line.1);
    }

    #[test]
    fn reads_whole_texts() {
        let long = [vec![b'#'; MAX_LINE_LENGTH], vec![b'\n'; 3]].concat();
        let text = long.repeat(3);
        for text in [&b""[..], b"*nat\nCOMMIT", &text] {
            assert_eq!(read(text).unwrap(), text);
        }
        let longer = [&text[..], b"x", &long].concat();
        let error = read(&longer[..]).unwrap_err();
        assert!(error.to_string().starts_with("line 10 has"), "{error}");
    }
}
