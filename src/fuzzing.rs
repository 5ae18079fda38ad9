//! For the fuzz targets, and tests of the same (feature `fuzzing`): ways to parsers that otherwise stand behind a
//! socket. Nothing else is to use it; it changes without notice.

use bstr::BString;
use chainwright_sys::ip_set::{ip_set_name_index, ip_set_req_get_set_family};
use zerocopy::FromBytes;

use crate::ipset;
pub use crate::iptables::text::restore_drafts;
use crate::netlink::Message;
use crate::nft;

/// What an error says of an operation of a transaction and of the attribute so many bytes into it.
#[must_use]
pub fn explain(message: &Message<'_>, offset: u32) -> (nft::Operation, Option<String>) {
    nft::explained(message, offset)
}

/// What the kernel's answers to look-ups of sets mean; `None` for bytes that are no answer.
#[must_use]
pub fn ipset_answer(bytes: &[u8]) -> Option<(Option<ipset::Found>, Option<BString>)> {
    let (answer, _) = ip_set_req_get_set_family::read_from_prefix(bytes).ok()?;
    let ip_set_name_index { name } = answer.set;
    Some((
        ipset::found(&answer.set, answer.family),
        ipset::named(&name),
    ))
}
