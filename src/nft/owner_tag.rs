//! Tags by which a program recognizes its own objects in shared tables.

use std::fmt;

use bstr::{BStr, ByteSlice};

/// Maximum length of a tag in bytes, which leaves room for text in a comment.
const MAX_LENGTH: usize = 63;

/// Marks objects as owned by one program, in tables shared with others: the tag is in their
/// [comment](super::userdata), alone or before a colon.
///
/// A table, chain, rule, set or stateful object with the comment `edge-agent`, or `edge-agent: port 53`, has the tag
/// `edge-agent`, which is visible in `nft list ruleset`. (Flowtables have no comment. The comment of an iptables rule,
/// `-m comment`, is something else: it is part of the rule.)
///
/// A plan with a tag in its [options](super::PlanOptions::owner_tag) is limited to objects with that tag.
///
/// ```
/// use chainwright::nft::{Family, OwnerTag, Table};
///
/// let tag = OwnerTag::new("edge-agent")?;
/// let table = Table::new(Family::INET, "shared").with_comment(&tag.comment("ports of the edge"))?;
/// assert!(tag.is_in(Some("edge-agent: ports of the edge".into())));
/// assert!(tag.is_in(Some("edge-agent".into())));
/// assert!(!tag.is_in(Some("edge-agent-2".into())) && !tag.is_in(None));
/// # let _ = table;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerTag {
    bytes: [u8; MAX_LENGTH],
    length: usize,
}

/// Error for an invalid [`OwnerTag`].
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerTagError {
    /// It is empty, or longer than 63 bytes.
    #[error("invalid tag length {length}: a tag has 1 to {MAX_LENGTH} bytes")]
    Length {
        /// Length in bytes.
        length: usize,
    },
    /// It holds a colon, which ends a tag, or a character that is not printable, or begins or ends with a blank.
    #[error("invalid character {character:?} in tag at byte {offset}")]
    Character {
        /// The character.
        character: char,
        /// Offset in bytes.
        offset: usize,
    },
}

crate::debug_as_message!(OwnerTagError);

impl OwnerTag {
    /// Creates a tag of 1 to 63 bytes, without colons and control characters.
    ///
    /// # Errors
    /// [`OwnerTagError`] if the text is not a valid tag.
    pub fn new(text: &str) -> Result<Self, OwnerTagError> {
        let length = text.len();
        if length == 0 || length > MAX_LENGTH {
            return Err(OwnerTagError::Length { length });
        }
        let last = text.trim_end().len();
        let is_not_allowed = |&(offset, character): &(usize, char)| {
            let is_outer = offset == 0 || offset >= last;
            character == ':' || character.is_control() || (is_outer && character.is_whitespace())
        };
        if let Some((offset, character)) = text.char_indices().find(is_not_allowed) {
            return Err(OwnerTagError::Character { character, offset });
        }
        let mut bytes = [0; MAX_LENGTH];
        bytes[..length].copy_from_slice(text.as_bytes());
        Ok(Self { bytes, length })
    }

    fn bytes(&self) -> &BStr {
        BStr::new(&self.bytes[..self.length])
    }

    /// Returns the comment with this tag, followed by this text.
    #[must_use]
    pub fn comment(&self, text: &str) -> String {
        match text {
            "" => self.to_string(),
            text => format!("{self}: {text}"),
        }
    }

    /// Returns `true` if an object with this comment has the tag.
    #[must_use]
    pub fn is_in(&self, comment: Option<&BStr>) -> bool {
        let rest = comment.and_then(|comment| comment.strip_prefix(self.bytes().as_bytes()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"))
    }
}

impl fmt::Display for OwnerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.bytes(), f)
    }
}

impl fmt::Debug for OwnerTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerTag({:?})", self.bytes())
    }
}

impl std::str::FromStr for OwnerTag {
    type Err = OwnerTagError;

    fn from_str(text: &str) -> Result<Self, OwnerTagError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_matches_only_its_own_comments() {
        let tag = OwnerTag::new("a b").unwrap();
        for (comment, is_own) in [
            ("a b", true),
            ("a b:", true),
            ("a b: c", true),
            ("a b:c", true),
            ("a bc", false),
            ("a b c", false),
            ("a", false),
            ("", false),
            (" a b", false),
            ("c: a b", false),
        ] {
            assert_eq!(tag.is_in(Some(comment.into())), is_own, "{comment:?}");
        }
        assert!(!tag.is_in(None));
        for text in ["", "x", "x: y", "\u{e9}"] {
            assert!(
                tag.is_in(Some(tag.comment(text).as_str().into())),
                "{text:?}"
            );
        }
    }

    #[test]
    fn ambiguous_tags_are_rejected() {
        let character = |text: &str| match OwnerTag::new(text) {
            Err(OwnerTagError::Character { character, offset }) => Some((character, offset)),
            _ => None,
        };
        assert_eq!(character("a:b"), Some((':', 1)));
        assert_eq!(character("a\nb"), Some(('\n', 1)));
        assert_eq!(character("a\0"), Some(('\0', 1)));
        assert_eq!(character(" a"), Some((' ', 0)));
        assert_eq!(character("a "), Some((' ', 1)));
        assert_eq!(character(" "), Some((' ', 0)));
        assert_eq!(OwnerTag::new(""), Err(OwnerTagError::Length { length: 0 }));
        assert_eq!(
            OwnerTag::new(&"x".repeat(64)),
            Err(OwnerTagError::Length { length: 64 })
        );
        let longest = "\u{e9}".repeat(31) + "x";
        assert_eq!(OwnerTag::new(&longest).unwrap().to_string(), longest);
    }
}
