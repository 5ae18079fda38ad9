//! Entry points for the fuzz targets and their tests (feature `fuzzing`): parsers that are otherwise reachable only
//! through a socket. Not for other uses; it changes without notice.

#[cfg(feature = "iptables")]
use crate::ipset;
#[cfg(feature = "iptables")]
pub use crate::iptables::text::restore_in_memory;
use crate::netlink::Message;
use crate::nft;

/// Returns the operation of a transaction's message, and a description of the attribute at a byte offset into it.
#[must_use]
pub fn explain(message: &Message<'_>, offset: u32) -> (nft::Operation, Option<String>) {
    nft::explained(message, offset)
}

/// Parses the kernel's replies to set lookups; `None` if there are too few bytes.
#[cfg(feature = "iptables")]
#[must_use]
pub fn ipset_answer(bytes: &[u8]) -> Option<(Option<ipset::SetInfo>, Option<bstr::BString>)> {
    use chainwright_sys::ip_set::{ip_set_name_index, ip_set_req_get_set_family};
    use zerocopy::FromBytes;

    let (answer, _) = ip_set_req_get_set_family::read_from_prefix(bytes).ok()?;
    let ip_set_name_index { name } = answer.set;
    Some((
        ipset::found(&answer.set, answer.family),
        ipset::named(&name),
    ))
}
