//! Listings: dumps, streamed as borrowed views.

use std::marker::PhantomData;

use super::Family;
use super::declare::Field;
use super::element::{ElementRef, Elements, span_of_list};
use super::expr::ObjectType;
use super::feature::explain_request;
use super::name::Name;
use super::object::Listed;
use super::scope::{ObjectFilter, RuleFilter, Scope};
use crate::netlink::{Attributes, Dump, DumpReader, Error, Message, MessageWriter, NfGenMsg};
use bstr::ByteSlice;
use chainwright_sys::nf_tables::NFTA_OBJ_TYPE;

/// The filter of any listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::nft) struct Filter<'a> {
    pub(super) family: Family,
    table: Option<Name<'a>>,
    chain: Option<Name<'a>>,
    set: Option<Name<'a>>,
    object_type: Option<ObjectType>,
}

impl<'a> Filter<'a> {
    /// Creates a filter for the elements of a set.
    pub(super) fn set(family: Family, table: Name<'a>, set: Name<'a>) -> Self {
        Self {
            set: Some(set),
            ..Scope::table(family, table).into()
        }
    }

    /// Converts it into a filter that borrows nothing.
    pub(super) fn into_owned(self) -> Filter<'static> {
        Filter {
            family: self.family,
            table: self.table.map(Name::into_owned),
            chain: self.chain.map(Name::into_owned),
            set: self.set.map(Name::into_owned),
            object_type: self.object_type,
        }
    }
}

impl<'a> From<Scope<'a>> for Filter<'a> {
    fn from(scope: Scope<'a>) -> Self {
        Self {
            family: scope.family,
            table: scope.table,
            ..Self::default()
        }
    }
}

impl<'a> From<RuleFilter<'a>> for Filter<'a> {
    fn from(filter: RuleFilter<'a>) -> Self {
        Self {
            chain: filter.chain,
            ..filter.scope.into()
        }
    }
}

impl<'a> From<ObjectFilter<'a>> for Filter<'a> {
    fn from(filter: ObjectFilter<'a>) -> Self {
        Self {
            object_type: filter.object_type,
            ..filter.scope.into()
        }
    }
}

impl Filter<'_> {
    /// Returns `true` if the kernel applies the whole filter. It supports a chain only with a table, and for tables of
    /// the same name in several families it lists only the first.
    fn by_kernel<T: Listed>(&self) -> bool {
        T::BY_KERNEL
            && (self.family != Family::UNSPEC || self.table.is_none())
            && (self.table.is_some() || self.chain.is_none())
    }

    /// Returns `true` if the kernel sends only objects that match the filter.
    fn is_exact<T: Listed>(&self) -> bool {
        self.by_kernel::<T>()
            || (self.table.is_none() && self.chain.is_none() && self.set.is_none())
    }

    /// Writes the filter into the request, if the kernel supports it. Invalid names are an error even
    /// if it does not.
    pub(super) fn write<T: Listed>(&self, writer: &mut MessageWriter<'_>) {
        let by_kernel = self.by_kernel::<T>();
        let names = [
            (&self.table, T::TABLE),
            (&self.chain, T::CHAIN),
            (&self.set, T::SET),
        ];
        for (name, kind) in names {
            let (Some(name), Some(kind)) = (name, kind) else {
                continue;
            };
            match by_kernel {
                true => _ = writer.string(kind, name),
                false => _ = writer.admits_name(kind, name),
            }
        }
        if let Some(object_type) = self.object_type {
            writer.be32(NFTA_OBJ_TYPE, object_type.0);
        }
    }

    /// Returns `true` if the object with this payload matches the filter.
    fn admits<T: Listed>(&self, payload: &[u8]) -> bool {
        let Ok((_, attributes)) = NfGenMsg::split(payload) else {
            return true; // the view reports it as malformed
        };
        let is = |kind: u16, wanted: &Option<Name<'_>>| match wanted {
            None => true,
            Some(wanted) => Attributes::new(attributes)
                .find(kind)
                .and_then(Name::parse_payload)
                .is_some_and(|name| name.as_bytes() == wanted.as_bytes()),
        };
        let is = |kind: Option<u16>, wanted| kind.is_none_or(|kind| is(kind, wanted));
        is(T::TABLE, &self.table) && is(T::CHAIN, &self.chain) && is(T::SET, &self.set)
    }
}

/// A running listing: returns borrowed views of objects, one at a time, without allocating for each.
///
/// The listing is complete and of one generation if [`try_next`](Self::try_next) returned `Ok(None)`; if the
/// ruleset changed during it, it ends with [`Error::Interrupted`] instead, after the last object. After
/// an error, each further call returns the same error.
///
/// Two kernel bugs (observed on Linux 6.18) cannot be distinguished from a complete listing. The kernel
/// silently truncates a listing at an object of more than 32 KiB, such as a rule with some hundred
/// comments. And it resumes a dump by an index that includes objects of uncommitted transactions: while
/// transactions of others *fail*, a dump of many datagrams can contain an object twice or miss some,
/// although the generation does not change.
///
/// A `Listing` can be dropped before its end. Because the kernel runs one dump at a time per socket,
/// the connection's next request first receives and discards the rest.
#[derive(Debug)]
pub struct Listing<'c, T> {
    reader: DumpReader<'c>,
    filter: Filter<'c>,
    /// The message type of the request.
    message: u8,
    /// Generations of the messages, for objects whose interrupted listings the kernel does not mark.
    generations: Generations,
    object: PhantomData<fn() -> T>,
}

impl<'c, T: Listed> Listing<'c, T> {
    pub(super) fn new(reader: DumpReader<'c>, message: u8, filter: Filter<'c>) -> Self {
        Self {
            reader,
            filter,
            message,
            generations: Generations::default(),
            object: PhantomData,
        }
    }

    #[inline]
    pub(super) fn next_view(&mut self) -> Result<Option<T::View<'_>>, Error> {
        let (filter, message, generations) = (&self.filter, self.message, &mut self.generations);
        let find = |reader: &mut _| advance::<T>(reader, filter, message, generations);
        self.reader.next(find, T::view)
    }

    #[inline(always)]
    pub(super) fn for_each_view(mut self, mut each: impl FnMut(T::View<'_>)) -> Result<(), Error> {
        self.for_each_payload(|payload| {
            each(T::view(payload)?);
            Ok(())
        })
    }

    /// Passes the payload of every object's message to `each`, until the end or an error.
    #[inline(always)]
    pub(super) fn for_each_payload(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (filter, message, generations) = (&self.filter, self.message, &mut self.generations);
        self.reader.for_each(
            |dump, object| is_requested::<T>(dump, filter, message, object),
            |payload| {
                if !T::CHANGES_ARE_MARKED {
                    generations.see(payload);
                }
                each(payload)
            },
        )?;
        generations.end()
    }
}

/// Finds the next message with a matching object; returns the start and end of its payload in the receive buffer.
#[inline(always)]
fn advance<T: Listed>(
    reader: &mut DumpReader<'_>,
    filter: &Filter<'_>,
    message: u8,
    generations: &mut Generations,
) -> Result<Option<(usize, usize)>, Error> {
    let selects = |dump: &mut Dump, object: &[u8]| is_requested::<T>(dump, filter, message, object);
    let Some((start, end)) = reader.advance(selects)? else {
        generations.end()?;
        return Ok(None);
    };
    if !T::CHANGES_ARE_MARKED {
        generations.see(&reader.buffer()[start..end]);
    }
    Ok(Some((start, end)))
}

/// The generations of a listing's messages, of which the kernel writes the lower 16 bits into
/// `nfgenmsg`.
#[derive(Debug, Default)]
struct Generations {
    first: Option<u16>,
    moved: bool,
}

impl Generations {
    #[inline(always)]
    fn see(&mut self, payload: &[u8]) {
        if let Ok((header, _)) = NfGenMsg::split(payload) {
            self.moved |= *self.first.get_or_insert(header.resource) != header.resource;
        }
    }

    /// Fails if the messages belong to several generations.
    #[inline(always)]
    fn end(&self) -> Result<(), Error> {
        match self.moved {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// Returns whether the message has an object that matches the filter; otherwise it ends the dump or does not belong to
/// it. Takes the message's bytes, so that the caller need not store a `Message` in memory.
#[cold]
fn is_requested<T: Listed>(
    dump: &mut Dump,
    filter: &Filter<'_>,
    request_kind: u8,
    message: &[u8],
) -> Result<bool, Error> {
    let is_object = match dump.selects(message) {
        Err(Error::Refused { errno, .. })
            if T::REFUSES_ABSENT_TABLE && errno.number() == libc::ENOENT =>
        {
            return Ok(false); // the dump has ended
        }
        selected => selected.map_err(|error| explain_request(error, request_kind))?,
    };
    if !is_object || filter.is_exact::<T>() {
        return Ok(is_object);
    }
    dump.reset_expected(); // check the next one as well
    Ok(filter.admits::<T>(Message::first(message)?.payload))
}

/// A running listing of a set's elements: returns borrowed views, one at a time, across messages,
/// without allocating for each.
///
/// It ends and fails like a [`Listing`]. It has one more kernel bug: after a hash table has grown, the
/// kernel rebuilds it in the background, and a listing of many datagrams during that contains some
/// elements twice and misses as many, although the generation does not change (observed on Linux 6.18,
/// right after 100,000 elements were added). A [snapshot](super::Connection::snapshot) detects this and reads
/// again.
#[derive(Debug)]
pub struct ElementListing<'c> {
    messages: Listing<'c, Elements<'static>>,
    /// Offset of the next element in the receive buffer; equals `end` after the last one of a message.
    at: usize,
    end: usize,
}

impl<'c> ElementListing<'c> {
    pub(super) const fn new(messages: Listing<'c, Elements<'static>>) -> Self {
        Self {
            messages,
            at: 0,
            end: 0,
        }
    }

    /// Returns the next element, or `None` at the end.
    ///
    /// # Errors
    /// Same as [`Listing::try_next`]; [`Error::Refused`] with `ENOENT` if the set does not exist.
    #[inline]
    pub fn try_next(&mut self) -> Result<Option<ElementRef<'_>>, Error> {
        let Self { messages, at, end } = self;
        let (filter, message) = (&messages.filter, messages.message);
        let generations = &mut messages.generations;
        let find = |reader: &mut DumpReader<'_>| {
            while *at >= *end {
                let message = advance::<Elements<'_>>(reader, filter, message, generations)?;
                let Some((start, message_end)) = message else {
                    return Ok(None);
                };
                let list = span_of_list(&reader.buffer()[start..message_end])?;
                (*at, *end) = (start + list.start, start + list.end);
            }
            let list = &reader.buffer()[*at..*end];
            let mut attributes = Attributes::new(list);
            let (_, element) = attributes.advance()?;
            let start = *at + (element.as_ptr() as usize - list.as_ptr() as usize);
            *at += attributes.offset();
            Ok(Some((start, start + element.len())))
        };
        messages.reader.next(find, ElementRef::parse)
    }

    /// Passes every remaining element to `each`; the fastest way to read a listing.
    ///
    /// # Errors
    /// Same as [`try_next`](Self::try_next).
    #[inline(always)]
    pub fn for_each(mut self, mut each: impl FnMut(ElementRef<'_>)) -> Result<(), Error> {
        // The rest of a message that `next` started.
        while self.at < self.end {
            match self.try_next()? {
                Some(element) => each(element),
                None => return Ok(()),
            }
        }
        self.messages.for_each_payload(|payload| {
            let list = span_of_list(payload)?;
            let mut attributes = Attributes::new(&payload[list]);
            while !attributes.at_end() {
                let (_, element) = attributes.advance()?;
                each(ElementRef::parse(element)?);
            }
            Ok(())
        })
    }
}
