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
//!   as many intervals as its `size` says. An end whose start has timed out, which the kernel lists until
//!   it collects both, is left out.
//!
//!   Somebody may have deleted a start or an end alone. No kernel takes a start directly above a start
//!   (but in an anonymous set), so that of several in a row the highest is sent first. None takes an end
//!   directly above or below an end: it ends nothing, and is left out.

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
use crate::nft::declare::{Field, Kinds, Note};
use crate::nft::element::ElementKey;
use crate::nft::transaction::Transaction;
use crate::nft::{Element, ElementRef, Elements, Family, SetRef};

/// Which attributes of an element hold expressions.
const EXPRESSIONS: HoldingExpressions = HoldingExpressions::of(Element::KNOWN);

/// Flags of a set of ranges that pass.
const PASSING_RANGES: u32 = NFT_SET_INTERVAL | NFT_SET_TIMEOUT;

/// About how many bytes of elements are put into a message, as the kernel does; an attribute holds
/// 65,531 at most.
pub(super) const CHUNK: usize = 24 << 10;

/// An element of a set of intervals.
#[derive(Clone, Copy)]
pub(super) struct Bound<'s> {
    /// The catch-all element has none, and belongs to no interval.
    pub(super) key: Option<&'s [u8]>,
    pub(super) is_start: bool,
    pub(super) element: Attribute<'s>,
}

impl<'s> Bound<'s> {
    pub(super) const fn is_end(&self) -> bool {
        !self.is_start
    }

    /// Where it stands in the tree.
    pub(super) const fn place(&self) -> (Option<&'s [u8]>, bool) {
        (self.key, self.is_start)
    }
}

/// Puts bounds of a tree, from the lowest, into the order in which the kernel takes them.
pub(super) fn order_bounds(bounds: &mut [Bound<'_>]) {
    bounds
        .chunk_by_mut(|one, next| one.is_start && next.is_start)
        .for_each(<[_]>::reverse);
}

/// Which set elements are put into or taken out of.
#[derive(Clone, Copy)]
pub(super) struct Target<'s> {
    pub(super) family: Family,
    pub(super) table: &'s BStr,
    /// The set's name; of an anonymous one that is made in the same transaction the pattern.
    pub(super) set: &'s BStr,
    /// The number of such a one.
    pub(super) id: Option<u32>,
}

impl<'s> Target<'s> {
    /// A set that has a name.
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

/// Whether a set with these flags is a tree of intervals, each of which is two elements.
pub(super) const fn is_tree(flags: u32) -> bool {
    flags & NFT_SET_INTERVAL != 0 && flags & NFT_SET_CONCAT == 0
}

impl Snapshot {
    /// Appends the operations that put its elements into a set.
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
                    Elements::KNOWN,
                    Kinds::NONE,
                    |_| {},
                )?;
            }
            return Ok(());
        }
        match SetRef::parse(&self.message(set.at)) {
            Ok(view) => self.write_elements_into(tx, set, Target::named(&view)),
            Err(_) => Ok(()), // not in the index then
        }
    }

    /// Appends the operations that put the elements of a set into that or another one.
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

    /// The elements of a set, in the order in which they were listed.
    pub(super) fn listed_elements<'s>(
        &'s self,
        set: &'s SetIndex,
    ) -> impl Iterator<Item = Attribute<'s>> {
        let lists = self.element_lists(set);
        lists.flat_map(|list| list.map_while(Result::ok))
    }

    /// The same, message by message.
    fn element_lists<'s>(&'s self, set: &'s SetIndex) -> impl Iterator<Item = Attributes<'s>> {
        set.elements.iter().map(|&at| {
            let list = Attributes::new(self.parts(at).1).find(NFTA_SET_ELEM_LIST_ELEMENTS);
            Attributes::new(list.unwrap_or_default())
        })
    }

    /// The elements of a tree of intervals, from the lowest.
    pub(super) fn bounds<'s>(&'s self, set: &'s SetIndex, flags: u32) -> Vec<Bound<'s>> {
        self.bounds_and_lone_ends(set, flags).0
    }

    /// The same, and what is left out of them: ends whose starts may have timed out.
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
        // One interval may begin where another one ends: ends before starts. (They come the other way
        // round, which costs a sort no more than a look at each.)
        bounds.sort_by_key(|bound| bound.place());
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
    /// Its elements as they are listed, message by message.
    pub(super) fn lists(&self) -> impl Iterator<Item = Attributes<'s>> + use<'s> {
        self.snapshot.element_lists(self.index)
    }

    /// The element with this key, if there is one; `None` if that takes a look at all of them.
    pub(super) fn element_of(&self, key: ElementKey<&[u8]>) -> Option<Option<Attribute<'s>>> {
        let pieces = self.index.pieces.as_ref()?;
        let found = pieces.find(&self.index.elements, &self.snapshot.arena, key);
        found.ok()
    }

    /// How many elements the kernel has counted, as it tells it: in a tree the starts of intervals, and not the
    /// catch-all element. `None` if it does not tell.
    pub(super) fn counted(&self) -> Option<usize> {
        let set = self.set();
        let told = set.count()?;
        if !self.index.recounted {
            return Some(told as usize);
        }
        // What it told is as old as the set.
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

/// Appends the operations that put listed elements into a set, as many as it takes.
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

/// Appends the operations that take listed elements out of a set.
pub(super) fn delete_all<'s>(
    tx: &mut Transaction,
    set: Target<'_>,
    elements: impl Iterator<Item = Attribute<'s>>,
) -> Result<(), MessageError> {
    const IDENTITY: Kinds = Kinds::noted(Element::KNOWN, &[Note::identity]);
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
        let mut room = CHUNK;
        tx.operation(message, flags, set.family, |writer| {
            set.write(writer);
            writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                // One at least, however long it is.
                let mut first = true;
                let mut next = |element: &Attribute<'_>| {
                    let fits = first || element.raw.len() <= room;
                    first = false;
                    room = room.saturating_sub(element.raw.len());
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

/// Writes the attributes of an element: expressions as the kernel takes them, the end of an interval
/// without what no kernel takes of one and some list: a timeout of 0 (Linux 6.18), the set's statements (5.10).
fn write_element(writer: &mut MessageWriter<'_>, attributes: &[u8]) {
    let attributes = &without_padding(attributes, Element::KNOWN);
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
