//! How each version of iptables-nft reads a rule, right or wrong.
//!
//! | | 1.8.7 | 1.8.8 | 1.8.9 and newer |
//! |---|---|---|---|
//! | expressions that hide the table | all but those of the next line | the same, and | the same |
//! | those that do not | `match`, `target`, `payload`, `meta`, `cmp`, `bitwise`, `counter`, `immediate`, `lookup`, plain `limit` | `range`, `log group` | the same |
//! | the field that a comparison compares | the last load, once | the last load of the header, repeatedly | the content of its register |
//! | transport header, `meta mark` | ignored | read | read |
//! | time to live, `meta pkttype`, ICMP | ignored | ignored | read |
//! | `meta mark set` | ignored | ignored | fails; read since 1.8.10 |
//! | other `meta` keys or network header fields | ignored | ignored | fails |
//! | `lookup`: sets and maps | ignored | ignored | ignored |
//!
//! For 1.8.7, 1.8.9, 1.8.10, 1.8.11 and 1.8.13 this was observed: `tests/data/encodings/read-*.txt` has
//! their readings, and a test compares them. The column for 1.8.8 is inferred.

mod incompatible_tables;
mod output;
mod reader;
mod state;

use super::Encoded;
use crate::iptables::Rule;
use crate::iptables::compat::Version;
use crate::nft;
use crate::xt::matches::comment::Comment;
use crate::xt::{self, Family};
use incompatible_tables::hiding_reason;
use reader::Reader;

/// A version's reading of a rule.
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
        /// Whether it ignored a condition, or the target.
        lost: bool,
        /// Whether it looks up an interface's name on the reading system, which is left out here.
        resolves_interface: bool,
    },
    /// Nothing: its save ends there.
    Failed(&'static str),
    /// Nothing: it hides the table.
    Hidden(&'static str),
}

/// Reads a rule like a version.
pub(in crate::iptables) fn read(encoded: &Encoded<'_>, version: Version) -> Read {
    let family = match encoded.family {
        nft::Family::IP6 => Family::Ipv6,
        _ => Family::Ipv4,
    };
    for expression in encoded.expressions() {
        if let Some(why) = expression.map_or(Some("malformed"), |one| hiding_reason(&one, version))
        {
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

/// Decodes the comment in a rule's user data: records of type, length and bytes; type 0 is a comment with its NUL.
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
