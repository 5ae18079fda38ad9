//! Text that cannot forge lines.

use std::fmt;

/// A text in a line of output, with control characters escaped: these could forge lines or control a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(char::is_control) {
            f.pad(&self.0.escape_debug().to_string())
        } else {
            f.pad(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_lines() {
        let pad = format!("[{:6}]", Printable("nat"));
        assert_eq!(pad, "[nat   ]");
        let forged = Printable("a\nb\x1b[2J").to_string();
        assert_eq!(forged, r"a\nb\u{1b}[2J");
        assert_eq!(Printable("größe/äöü").to_string(), "größe/äöü");
    }
}
