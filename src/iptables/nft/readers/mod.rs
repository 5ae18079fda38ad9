//! How each version of iptables-nft reads a rule: not what it means, but what that version takes it for.
//!
//! | | 1.8.7 | 1.8.8 | 1.8.9 and newer |
//! |---|---|---|---|
//! | expressions that hide the table | all but those of the next line | likewise, and | likewise |
//! | those that do not | `match`, `target`, `payload`, `meta`, `cmp`, `bitwise`, `counter`, `immediate`, `lookup`, plain `limit` | `range`, `log group` | likewise |
//! | what a comparison is about | the last load, once | the last load of the header again and again | what is in its register |
//! | transport header, `meta mark` | passed over | read | read |
//! | time to live, `meta pkttype`, ICMP | passed over | passed over | read |
//! | `meta mark set` | passed over | passed over | fails; from 1.8.10 on read |
//! | anything else of `meta` or the network header | passed over | passed over | fails |
//! | `lookup`: sets and maps | passed over | passed over | passed over |
//!
//! From 1.8.7, 1.8.9, 1.8.10, 1.8.11 and 1.8.13 this was taken by watching: `tests/data/encodings/read-*.txt` has
//! what they read, and a test compares. 1.8.8 is put together from what is known of it.

mod hidden;
mod memory;
mod reader;
mod shown;

use super::Encoded;
use crate::iptables::Rule;
use crate::iptables::forecast::Version;
use crate::nft;
use crate::xt::matches::comment::Comment;
use crate::xt::{self, Family};
use hidden::hides;
use reader::Reader;

/// What a version makes of a rule.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is looked at at once and kept nowhere, and nearly always a rule"
)]
pub(in crate::iptables) enum Read {
    /// A rule.
    As {
        /// The rule that its save prints.
        rule: Rule,
        /// Whether it passed over a condition, or the target.
        lost: bool,
        /// Whether it looks up the name of an interface where it reads, which is left out here.
        looks_up: bool,
    },
    /// Nothing: its save ends there.
    Failed(&'static str),
    /// Nothing: it does not show the table.
    Hidden(&'static str),
}

/// What a version reads.
pub(in crate::iptables) fn read(encoded: &Encoded<'_>, version: Version) -> Read {
    let family = match encoded.family {
        nft::Family::IP6 => Family::Ipv6,
        _ => Family::Ipv4,
    };
    for expression in encoded.expressions() {
        if let Some(why) = expression.map_or(Some("malformed"), |one| hides(&one, version)) {
            return Read::Hidden(why);
        }
    }
    let mut reader = Reader::new(family, version);
    for expression in encoded.expressions() {
        let decoded = expression.and_then(|expression| expression.decode());
        if let Some(why) = decoded.ok().and_then(|decoded| reader.take(&decoded).err()) {
            return Read::Failed(why);
        }
    }
    if let Some(comment) = encoded.userdata.and_then(comment) {
        reader.rule.matches.push(xt::Match::Comment(comment));
    }
    reader.finish()
}

/// The comment in a rule's user data: records of type, length and bytes, of which type 0 is a comment with its NUL.
fn comment(userdata: &[u8]) -> Option<Comment> {
    let mut rest = userdata;
    while let &[kind, length, ref more @ ..] = rest {
        let (value, next) = more.split_at_checked(length.into())?;
        if kind == 0 {
            return Comment::new(value.strip_suffix(&[0])?);
        }
        rest = next;
    }
    None
}
