//! `-m comment`: holds a comment and matches every packet.
//!
//! Data (`struct xt_comment_info`, `linux/netfilter/xt_comment.h`): 256 bytes, NUL-terminated.

use bstr::{BString, ByteSlice};

use crate::xt::{
    Context, Extension, Family, GivenOption, ListStyle, OptionError, OptionSpec, Text,
};

/// Length of the data; the comment itself is at least one byte shorter.
const LENGTH: usize = 256;

/// `-m comment`: holds a comment and matches every packet.
///
/// The comment has at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Comment(BString);

impl Comment {
    /// Creates a comment; `None` if the text is longer than 255 bytes or contains a NUL.
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (text.len() < LENGTH && text.find_byte(0).is_none()).then(|| Self(text.into()))
    }

    /// Returns the comment's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Extension for Comment {
    const NAME: &'static str = "comment";
    const REVISION: u8 = 0;
    const OPTIONS: &'static [OptionSpec] = &[OptionSpec::one("comment").required()];

    fn read(_: Family, revision: u8, info: &[u8]) -> Option<Self> {
        if revision != 0 || info.len() < LENGTH {
            return None;
        }
        // Bytes after the NUL are not part of the comment.
        let end = info[..LENGTH].find_byte(0)?;
        Some(Self(info[..end].into()))
    }

    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError> {
        let mut info = Vec::new();
        self.write_to(family, &mut info)?;
        Ok(info)
    }

    fn write_to(&self, _: Family, info: &mut Vec<u8>) -> Result<(), OptionError> {
        let end = info.len() + LENGTH;
        info.reserve(LENGTH);
        info.extend_from_slice(&self.0);
        // A comment is shorter.
        info.resize(end, 0);
        Ok(())
    }

    fn is_lossless(&self, _: Family, _: u8, _: &[u8]) -> bool {
        true // bytes after the NUL have no meaning
    }

    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError> {
        let comment = GivenOption::find_required(given, "comment")?;
        let text = context.truncate_value(comment, LENGTH - 1)?;
        Self::new(text).ok_or_else(|| comment.error("it contains a NUL byte"))
    }

    fn print(&self, text: &mut Text) {
        text.option(false, "comment").string(&self.0);
    }

    fn list(&self, text: &mut Text, _: ListStyle) {
        text.push(" /* ").push(&self.0).push(" */");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xt::Match;

    #[test]
    fn round_trip_and_bounds() {
        let comment = Comment::new("block incoming localnet connections").unwrap();
        let info = comment.write(Family::Ipv4).unwrap();
        assert_eq!(info.len(), 256);
        assert_eq!(Comment::read(Family::Ipv4, 0, &info), Some(comment.clone()));
        assert_eq!(
            Match::Comment(comment).to_string(),
            "-m comment --comment \"block incoming localnet connections\""
        );
        assert!(Comment::new([b'x'; 255]).is_some());
        assert!(Comment::new([b'x'; 256]).is_none());
        assert!(Comment::new("a\0b").is_none());
        // Neither 256 bytes without a NUL, nor too few bytes, nor a newer revision.
        assert_eq!(Comment::read(Family::Ipv4, 0, &[b'x'; 256]), None);
        assert_eq!(Comment::read(Family::Ipv4, 0, &[0; 255]), None);
        assert_eq!(Comment::read(Family::Ipv4, 1, &info), None);
    }
}
