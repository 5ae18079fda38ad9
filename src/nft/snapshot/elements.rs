//! Writes the elements of a set in the form that the kernel accepts.
//!
//! Elements are copied in the messages in which they were listed, except for
//!
//! - elements with expressions, which the kernel lists in another form than it accepts (`request.rs`);
//! - intervals in a tree (`flags interval`, no concatenation), each of which consists of two elements, its start and
//!   its end. The kernel lists them from the highest to the lowest; they are sent like `nft` does, from the lowest: the
//!   range below the first interval ends at 0, and has no start. A kernel that counts intervals (since 6.14) excludes
//!   this end only if it is added first, so that a set accepts as many intervals as its `size`. An end whose start has
//!   timed out, which the kernel lists until it collects both, is left out.
//!
//!   Another program may have deleted only the start or the end of an interval. No kernel accepts a start directly
//!   above another start (except in an anonymous set), so the highest of consecutive starts is sent first. No kernel
//!   accepts an end directly above or below another end: it ends nothing, and is left out.

use bstr::BStr;
use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELSETELEM, NFT_MSG_NEWSETELEM, NFT_SET_CONCAT, NFT_SET_ELEM_INTERVAL_END,
    NFT_SET_EVAL, NFT_SET_EXPR, NFT_SET_INTERVAL, NFT_SET_TIMEOUT, NFTA_SET_ELEM_EXPIRATION,
    NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS,
    NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET, NFTA_SET_ELEM_LIST_SET_ID,
    NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_TIMEOUT, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS,
    NFTA_SET_FLAGS,
};

use super::index::SetIndex;
use super::request::{HoldingExpressions, copy_with_expressions, without_padding};
use super::{Snapshot, SnapshotSet};
use crate::netlink::{Attribute, Attributes, MessageError, MessageWriter};
use crate::nft::declare::{AttributeNote, AttributeSet, Field};
use crate::nft::element::ElementKey;
use crate::nft::transaction::Transaction;
use crate::nft::{Element, ElementRef, Elements, Family, SetRef};

/// The attributes of an element that contain expressions.
const EXPRESSIONS: HoldingExpressions = HoldingExpressions::of(Element::ATTRIBUTE_NOTES);

/// Flags of an interval set with timeouts.
const PASSING_RANGES: u32 = NFT_SET_INTERVAL | NFT_SET_TIMEOUT;

/// Approximate size of the elements in a message, as in the kernel; an attribute has at most 65,531 bytes.
pub(super) const CHUNK: usize = 24 << 10;

/// An element of a set of intervals.
#[derive(Clone, Copy)]
pub(super) struct Bound<'s> {
    /// `None` for the catch-all element, which belongs to no interval.
    pub(super) key: Option<&'s [u8]>,
    pub(super) is_start: bool,
    pub(super) element: Attribute<'s>,
}

impl<'s> Bound<'s> {
    pub(super) const fn is_end(&self) -> bool {
        !self.is_start
    }

    /// Returns the position in the tree.
    pub(super) const fn sort_key(&self) -> (Option<&'s [u8]>, bool) {
        (self.key, self.is_start)
    }
}

/// Sorts bounds of a tree, which ascend, into the order in which the kernel accepts them.
pub(super) fn order_bounds(bounds: &mut [Bound<'_>]) {
    bounds
        .chunk_by_mut(|one, next| one.is_start && next.is_start)
        .for_each(<[_]>::reverse);
}

/// The set of an operation on elements.
#[derive(Clone, Copy)]
pub(super) struct Target<'s> {
    pub(super) family: Family,
    pub(super) table: &'s BStr,
    /// The set's name; for an anonymous set of the same transaction its name pattern.
    pub(super) set: &'s BStr,
    /// The ID of such a set.
    pub(super) id: Option<u32>,
}

impl<'s> Target<'s> {
    /// Creates the target for a named set.
    pub(super) fn named(set: &SetRef<'s>) -> Self {
        Self {
            family: set.family(),
            table: set.table(),
            set: set.name(),
            id: None,
        }
    }

    fn write(&self, writer: &mut MessageWriter<'_>) {
        writer.string(NFTA_SET_ELEM_LIST_TABLE, self.table);
        writer.string(NFTA_SET_ELEM_LIST_SET, self.set);
        if let Some(id) = self.id {
            writer.be32(NFTA_SET_ELEM_LIST_SET_ID, id);
        }
    }
}

/// Returns `true` if a set with these flags is an interval tree, in which an interval consists of two elements.
pub(super) const fn is_tree(flags: u32) -> bool {
    flags & NFT_SET_INTERVAL != 0 && flags & NFT_SET_CONCAT == 0
}

impl Snapshot {
    /// Appends the operations that add a set's elements to it.
    pub(super) fn write_elements(
        &self,
        tx: &mut Transaction,
        set: &SetIndex,
    ) -> Result<(), MessageError> {
        let (_, attributes) = self.parts(set.at);
        let find = |kind| Attributes::new(attributes).find(kind);
        let flags = find(NFTA_SET_FLAGS).and_then(u32::decode).unwrap_or(0);
        let as_listed = !is_tree(flags)
            && flags & (NFT_SET_EVAL | NFT_SET_EXPR) == 0
            && find(NFTA_SET_EXPR).is_none()
            && find(NFTA_SET_EXPRESSIONS).is_none();
        if as_listed {
            for &at in &set.elements {
                self.copy(
                    tx,
                    NFT_MSG_NEWSETELEM,
                    at,
                    Elements::ATTRIBUTE_NOTES,
                    AttributeSet::NONE,
                    |_| {},
                )?;
            }
            return Ok(());
        }
        match SetRef::parse(&self.message(set.at)) {
            Ok(view) => self.write_elements_into(tx, set, Target::named(&view)),
            Err(_) => Ok(()), // such a message is not indexed
        }
    }

    /// Appends the operations that add the elements of a set to that or another one.
    pub(super) fn write_elements_into(
        &self,
        tx: &mut Transaction,
        set: &SetIndex,
        target: Target<'_>,
    ) -> Result<(), MessageError> {
        let flags = Attributes::new(self.parts(set.at).1).find(NFTA_SET_FLAGS);
        let flags = flags.and_then(u32::decode).unwrap_or(0);
        match is_tree(flags) {
            true => {
                let mut bounds = self.bounds(set, flags);
                bounds.dedup_by(|bound, below| bound.is_end() && below.is_end());
                order_bounds(&mut bounds);
                write_all(tx, target, bounds.iter().map(|bound| bound.element))
            }
            false => write_all(tx, target, self.listed_elements(set)),
        }
    }

    /// Iterates over the elements of a set in the listed order.
    pub(super) fn listed_elements<'s>(
        &'s self,
        set: &'s SetIndex,
    ) -> impl Iterator<Item = Attribute<'s>> {
        let lists = self.element_lists(set);
        lists.flat_map(|list| list.map_while(Result::ok))
    }

    /// Iterates over the lists of elements, one for each message.
    fn element_lists<'s>(&'s self, set: &'s SetIndex) -> impl Iterator<Item = Attributes<'s>> {
        set.elements.iter().map(|&at| {
            let list = Attributes::new(self.parts(at).1).find(NFTA_SET_ELEM_LIST_ELEMENTS);
            Attributes::new(list.unwrap_or_default())
        })
    }

    /// Returns the elements of an interval tree, from the lowest.
    pub(super) fn bounds<'s>(&'s self, set: &'s SetIndex, flags: u32) -> Vec<Bound<'s>> {
        self.bounds_and_lone_ends(set, flags).0
    }

    /// Returns the elements of an interval tree, and separately the ends whose starts may have timed out.
    pub(super) fn bounds_and_lone_ends<'s>(
        &'s self,
        set: &'s SetIndex,
        flags: u32,
    ) -> (Vec<Bound<'s>>, Vec<Bound<'s>>) {
        let mut bounds = Vec::new();
        for element in self.listed_elements(set) {
            let view = ElementRef::parse(element.payload).ok();
            bounds.push(Bound {
                key: view.as_ref().and_then(|view| view.key_bytes()),
                is_start: !view.is_some_and(|view| view.is_interval_end()),
                element,
            });
        }
        // One interval may begin at the end of another: ends sort before starts. (They are listed in descending order,
        // which the sort handles in linear time.)
        bounds.sort_by_key(|bound| bound.sort_key());
        let mut lone_ends = Vec::new();
        if flags & PASSING_RANGES == PASSING_RANGES {
            let mut behind_start = false;
            bounds.retain(|bound| {
                let Some(key) = bound.key else {
                    return true;
                };
                let is_lone_end = bound.is_end() && !behind_start && key.iter().any(|&b| b != 0);
                behind_start = bound.is_start;
                if is_lone_end {
                    lone_ends.push(*bound);
                }
                !is_lone_end
            });
        }
        (bounds, lone_ends)
    }
}

impl<'s> SnapshotSet<'s> {
    /// Iterates over its listed elements, one list for each message.
    pub(super) fn lists(&self) -> impl Iterator<Item = Attributes<'s>> + use<'s> {
        self.snapshot.element_lists(self.index)
    }

    /// Returns the element with this key, if there is one; the outer `None` if that requires a linear search.
    pub(super) fn element_of(&self, key: ElementKey<&[u8]>) -> Option<Option<Attribute<'s>>> {
        let pieces = self.index.pieces.as_ref()?;
        let found = pieces.find(&self.index.elements, &self.snapshot.arena, key);
        found.ok()
    }

    /// Returns the kernel's count of elements: in a tree it includes only the starts of intervals, and never the
    /// catch-all element. `None` if it is unknown.
    pub(super) fn counted(&self) -> Option<usize> {
        let set = self.set();
        let kernel_count = set.count()?;
        if !self.index.recounted {
            return Some(kernel_count as usize);
        }
        // The reported count is as old as the set's message.
        let pieces = self.index.pieces.as_ref();
        let count = pieces
            .filter(|_| !is_tree(set.flags().unwrap_or_default().bits()))
            .and_then(|pieces| pieces.count());
        if let Some(count) = count {
            let has_catch_all = self.element_of(ElementKey::CATCH_ALL).flatten().is_some();
            return Some(count - usize::from(has_catch_all));
        }
        let counted = self
            .elements()
            .filter(|element| !element.is_interval_end() && !element.is_catch_all());
        Some(counted.count())
    }
}

/// Appends the operations that add listed elements to a set.
pub(super) fn write_all<'s>(
    tx: &mut Transaction,
    set: Target<'_>,
    elements: impl Iterator<Item = Attribute<'s>>,
) -> Result<(), MessageError> {
    in_chunks(
        tx,
        NFT_MSG_NEWSETELEM,
        NLM_F_CREATE,
        set,
        elements,
        write_element,
    )
}

/// Appends the operations that delete listed elements from a set.
pub(super) fn delete_all<'s>(
    tx: &mut Transaction,
    set: Target<'_>,
    elements: impl Iterator<Item = Attribute<'s>>,
) -> Result<(), MessageError> {
    const IDENTITY: AttributeSet =
        AttributeSet::noted(Element::ATTRIBUTE_NOTES, &[AttributeNote::identity]);
    in_chunks(
        tx,
        NFT_MSG_DELSETELEM,
        0,
        set,
        elements,
        |writer, element| {
            for part in Attributes::new(element).map_while(Result::ok) {
                if IDENTITY.contains(part.kind) {
                    writer.encoded(part.raw);
                }
            }
        },
    )
}

fn in_chunks<'s>(
    tx: &mut Transaction,
    message: u8,
    flags: u16,
    set: Target<'_>,
    elements: impl Iterator<Item = Attribute<'s>>,
    write: impl Fn(&mut MessageWriter<'_>, &[u8]),
) -> Result<(), MessageError> {
    let mut elements = elements.peekable();
    while elements.peek().is_some() {
        let mut space = CHUNK;
        tx.operation(message, flags, set.family, |writer| {
            set.write(writer);
            writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                // At least one element, however long it is.
                let mut first = true;
                let mut next = |element: &Attribute<'_>| {
                    let fits = first || element.raw.len() <= space;
                    first = false;
                    space = space.saturating_sub(element.raw.len());
                    fits
                };
                while let Some(element) = elements.next_if(&mut next) {
                    writer.nested(element.kind, |writer| write(writer, element.payload));
                }
            });
        })?;
    }
    Ok(())
}

/// Writes the attributes of an element: expressions in the form that the kernel accepts, and the end of an interval
/// without attributes that some kernels list but none accepts: a timeout of 0 (Linux 6.18), set statements (5.10).
fn write_element(writer: &mut MessageWriter<'_>, attributes: &[u8]) {
    let attributes = &without_padding(attributes, Element::ATTRIBUTE_NOTES);
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
