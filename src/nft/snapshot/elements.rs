//! The elements of a set, as the kernel takes them.
//!
//! Elements are copied in the messages in which they were listed, but for
//!
//! - elements that may hold expressions, which are listed in another way than they are taken
//!   (`request.rs`);
//! - intervals in a tree (`flags interval`, no concatenation), each of which is two elements, its start
//!   and its end. They are listed from the highest to the lowest, and are sent as `nft` sends them,
//!   from the lowest: what is below the first interval ends at 0, and has no start. Only if that end is
//!   there first does a kernel that counts intervals (since 6.14) not count it, so that a set takes
//!   as many intervals as its `size` says. And no end comes behind an end: every kernel refuses that.
//!   An end whose start has timed out, which the kernel lists until it collects both, is left out.

use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWSETELEM, NFT_SET_CONCAT, NFT_SET_ELEM_INTERVAL_END, NFT_SET_EVAL, NFT_SET_EXPR,
    NFT_SET_INTERVAL, NFT_SET_TIMEOUT, NFTA_SET_ELEM_EXPIRATION, NFTA_SET_ELEM_EXPR,
    NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS, NFTA_SET_ELEM_LIST_ELEMENTS,
    NFTA_SET_ELEM_TIMEOUT, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS, NFTA_SET_FLAGS,
};

use super::Snapshot;
use super::index::SetIndex;
use super::request::{HoldingExpressions, copy_with_expressions};
use crate::arena::Position;
use crate::netlink::{Attribute, Attributes, MessageWriter, Unfit};
use crate::nft::declare::{Field, Kinds};
use crate::nft::transaction::Transaction;
use crate::nft::{Element, ElementRef, Family};

/// Which attributes of an element hold expressions.
const EXPRESSIONS: HoldingExpressions = HoldingExpressions::of(Element::KNOWN);

/// Flags of a set of ranges that pass.
const PASSING_RANGES: u32 = NFT_SET_INTERVAL | NFT_SET_TIMEOUT;

/// About how many bytes of elements are put into a message, as the kernel does; an attribute holds
/// 65,531 at most.
pub(super) const CHUNK: usize = 24 << 10;

/// An element of a set of intervals.
struct Bound<'s> {
    /// The catch-all element has none, and belongs to no interval.
    key: Option<&'s [u8]>,
    is_start: bool,
    /// In which message it was listed.
    listed: Position,
    element: Attribute<'s>,
}

impl Snapshot {
    /// Appends the operations that put its elements into a set.
    pub(super) fn write_elements(&self, tx: &mut Transaction, set: &SetIndex) -> Result<(), Unfit> {
        let (_, attributes) = self.parts(set.at);
        let flags = Attributes::new(attributes).find(NFTA_SET_FLAGS);
        let flags = flags.and_then(u32::decode).unwrap_or(0);
        if flags & NFT_SET_INTERVAL != 0 && flags & NFT_SET_CONCAT == 0 {
            return self.write_intervals(tx, set, flags);
        }
        let find = |kind| Attributes::new(attributes).find(kind);
        let with_expressions = flags & (NFT_SET_EVAL | NFT_SET_EXPR) != 0
            || find(NFTA_SET_EXPR).is_some()
            || find(NFTA_SET_EXPRESSIONS).is_some();
        for &at in &set.elements {
            let (family, attributes) = self.parts(at);
            if !with_expressions {
                self.copy(tx, NFT_MSG_NEWSETELEM, at, Kinds::NONE, |_| {})?;
                continue;
            }
            let elements = Attributes::new(attributes).find(NFTA_SET_ELEM_LIST_ELEMENTS);
            let elements = Attributes::new(elements.unwrap_or_default()).map_while(Result::ok);
            write_list(tx, family, attributes, elements)?;
        }
        Ok(())
    }

    /// Appends the elements of a tree of intervals, from the lowest.
    fn write_intervals(
        &self,
        tx: &mut Transaction,
        set: &SetIndex,
        flags: u32,
    ) -> Result<(), Unfit> {
        let mut bounds = Vec::new();
        for &listed in &set.elements {
            let list = Attributes::new(self.parts(listed).1).find(NFTA_SET_ELEM_LIST_ELEMENTS);
            for element in Attributes::new(list.unwrap_or_default()).map_while(Result::ok) {
                let view = ElementRef::parse(element.payload).ok();
                bounds.push(Bound {
                    key: view.as_ref().and_then(|view| view.key_bytes()),
                    is_start: !view.is_some_and(|view| view.is_interval_end()),
                    listed,
                    element,
                });
            }
        }
        // One interval may begin where another one ends: ends before starts. (They come the other way
        // round, which costs a sort no more than a look at each.)
        bounds.sort_by_key(|bound| (bound.key, bound.is_start));
        if flags & PASSING_RANGES == PASSING_RANGES {
            let mut behind_start = false;
            bounds.retain(|bound| {
                let Some(key) = bound.key else {
                    return true;
                };
                let is_lone_end = !bound.is_start && !behind_start && key.iter().any(|&b| b != 0);
                behind_start = bound.is_start;
                !is_lone_end
            });
        }
        let mut rest = &bounds[..];
        while let Some(first) = rest.first() {
            let mut length = 0;
            let fits = |bound: &&Bound<'_>| {
                length += bound.element.raw.len();
                length <= CHUNK
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (chunk, behind) = rest.split_at(count);
            let (family, attributes) = self.parts(first.listed);
            let elements = chunk.iter().map(|bound| bound.element);
            write_list(tx, family, attributes, elements)?;
            rest = behind;
        }
        Ok(())
    }
}

/// Appends an operation with these elements, and all else that is in the message of which these are
/// the attributes.
fn write_list<'s>(
    tx: &mut Transaction,
    family: Family,
    attributes: &[u8],
    elements: impl Iterator<Item = Attribute<'s>>,
) -> Result<(), Unfit> {
    let mut elements = Some(elements);
    tx.operation(NFT_MSG_NEWSETELEM, NLM_F_CREATE, family, |writer| {
        for attribute in Attributes::new(attributes).map_while(Result::ok) {
            if attribute.kind != NFTA_SET_ELEM_LIST_ELEMENTS {
                writer.encoded(attribute.raw);
                continue;
            }
            let elements = elements.take().into_iter().flatten();
            writer.nested(attribute.kind, |writer| {
                for element in elements {
                    writer.nested(element.kind, |writer| {
                        write_element(writer, element.payload)
                    });
                }
            });
        }
    })?;
    Ok(())
}

/// Writes the attributes of an element: expressions as the kernel takes them, the end of an interval
/// without what no kernel takes of one and some list: a timeout of 0 (Linux 6.18), the set's statements (5.10).
fn write_element(writer: &mut MessageWriter<'_>, attributes: &[u8]) {
    let attributes = Attributes::new(attributes);
    let flags: Option<u32> = attributes
        .clone()
        .find(NFTA_SET_ELEM_FLAGS)
        .and_then(Field::decode);
    let is_end = flags.is_some_and(|flags| flags & NFT_SET_ELEM_INTERVAL_END != 0);
    for part in attributes.map_while(Result::ok) {
        let of_starts = [
            NFTA_SET_ELEM_TIMEOUT,
            NFTA_SET_ELEM_EXPIRATION,
            NFTA_SET_ELEM_EXPR,
            NFTA_SET_ELEM_EXPRESSIONS,
        ];
        if is_end && of_starts.contains(&part.kind) {
            continue;
        }
        copy_with_expressions(writer, &part, EXPRESSIONS);
    }
}
