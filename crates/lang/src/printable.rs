//! Text that cannot forge lines.

use std::fmt;

use chainwright::internal::is_misleading;

/// A text in a line of output. Characters that could forge lines, control a terminal, be invisible, or change the
/// direction of the text are escaped.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(is_misleading) {
            true => f.pad(&self.0.escape_debug().to_string()),
            false => f.pad(self.0),
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
        assert_eq!(Printable("a\u{202e}b").to_string(), r"a\u{202e}b");
        assert_eq!(Printable("größe/äöü").to_string(), "größe/äöü");
    }
}
