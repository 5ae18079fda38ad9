//! Reads text from other programs, up to a limit.

use std::io::{self, Read};

use bstr::ByteSlice;

/// The longest text that [`read_text`] reads, in bytes: about five million rules.
pub const MAX_TEXT_LENGTH: usize = 1 << 30;

/// The most bytes per read.
const MAX_CHUNK: usize = 1 << 20;

/// Reads a text: at most [`MAX_TEXT_LENGTH`], and no further than the first NUL or the first line that is longer than
/// `longest_line`.
///
/// # Errors
/// Read errors; [`InvalidData`](io::ErrorKind::InvalidData) if the input exceeds a limit or contains a NUL.
pub fn read_text(mut from: impl Read, longest_line: usize) -> io::Result<Vec<u8>> {
    let wrong = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut text = Vec::new();
    // Number and start of the current line.
    let (mut line, mut start) = (1, 0);
    loop {
        let before = text.len();
        // The pieces grow, so that a long text takes few reads.
        let piece = before.clamp(64 * 1024, MAX_CHUNK);
        text.reserve(piece);
        let read = from.by_ref().take(piece as u64).read_to_end(&mut text)?;
        if read == 0 {
            return Ok(text);
        }
        let piece = &text[before..];
        if let Some(at) = piece.find_byte(0) {
            line += piece[..at]
                .lines_with_terminator()
                .count()
                .saturating_sub(1);
            return Err(wrong(format!("NUL byte near line {line}")));
        }
        for end in piece.find_iter(b"\n") {
            if before + end - start > longest_line {
                break;
            }
            (line, start) = (line + 1, before + end + 1);
        }
        if text.len() - start > longest_line {
            return Err(wrong(format!(
                "line {line} has more than {longest_line} bytes"
            )));
        }
        if text.len() > MAX_TEXT_LENGTH {
            return Err(wrong(format!("text has more than {MAX_TEXT_LENGTH} bytes")));
        }
    }
}
