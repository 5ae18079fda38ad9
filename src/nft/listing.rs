//! Listings: one dump, streamed as borrowed views.

use std::marker::PhantomData;

use bstr::ByteSlice;
use chainwright_sys::nf_tables::{
    NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_CHAIN, NFTA_RULE_TABLE, NFTA_TABLE_NAME,
};

use super::connection::Connection;
use super::declare::Field;
use super::name::Name;
use super::object::Listed;
use super::{Chain, Family, Rule, Table};
use crate::netlink::{Attributes, Dump, DumpItem, Error, Message, MessageWriter};

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter<'a> {
    /// Objects of this family; of all if [`Family::UNSPEC`].
    pub family: Family,
    /// Objects of the table with this name.
    pub table: Option<Name<'a>>,
    /// The chain with this name, or its rules.
    pub chain: Option<Name<'a>>,
}

impl<'a> Filter<'a> {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Everything of a family.
    #[must_use]
    pub fn family(family: Family) -> Self {
        Self {
            family,
            ..Self::default()
        }
    }

    /// Everything of a table.
    pub fn table(family: Family, table: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            chain: None,
        }
    }

    /// One chain, or the rules of one chain.
    pub fn chain(family: Family, table: impl Into<Name<'a>>, chain: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            chain: Some(chain.into()),
        }
    }
}

/// How a kind of object is filtered.
pub trait Filtered: Listed {
    /// Attribute that holds the name of the object's table.
    const TABLE: u16;
    /// Attribute that holds the name of its chain, if it has one.
    const CHAIN: Option<u16>;
    /// Whether the kernel itself filters by these, so that nothing else need be looked at.
    const BY_KERNEL: bool;
}

impl Filtered for Table<'_> {
    const TABLE: u16 = NFTA_TABLE_NAME;
    const CHAIN: Option<u16> = None;
    const BY_KERNEL: bool = false;
}

impl Filtered for Chain<'_> {
    const TABLE: u16 = NFTA_CHAIN_TABLE;
    const CHAIN: Option<u16> = Some(NFTA_CHAIN_NAME);
    const BY_KERNEL: bool = false;
}

impl Filtered for Rule<'_> {
    const TABLE: u16 = NFTA_RULE_TABLE;
    const CHAIN: Option<u16> = Some(NFTA_RULE_CHAIN);
    const BY_KERNEL: bool = true;
}

impl Filter<'_> {
    /// Writes the filter into the request, for the kinds of objects that the kernel filters.
    pub(super) fn write<T: Filtered>(&self, writer: &mut MessageWriter<'_>) {
        if T::BY_KERNEL {
            if let Some(table) = &self.table {
                writer.string(T::TABLE, table);
            }
            if let (Some(chain), Some(kind)) = (&self.chain, T::CHAIN) {
                writer.string(kind, chain);
            }
        }
    }

    /// Whether the object in this message is one of those asked for.
    #[inline]
    fn admits<T: Filtered>(&self, message: &Message<'_>) -> bool {
        if T::BY_KERNEL || (self.table.is_none() && self.chain.is_none()) {
            return true;
        }
        let Ok((_, attributes)) = message.nfgenmsg() else {
            return true; // to be reported as malformed by the view
        };
        let is = |kind: u16, wanted: &Option<Name<'_>>| match wanted {
            None => true,
            Some(wanted) => Attributes::new(attributes)
                .find(kind)
                .and_then(Name::view)
                .is_some_and(|name| name.as_bytes() == wanted.as_bytes()),
        };
        is(T::TABLE, &self.table) && T::CHAIN.is_none_or(|kind| is(kind, &self.chain))
    }
}

/// A running listing: objects come as borrowed views, one at a time, with no allocation for any of
/// them.
///
/// The listing is whole and of one generation if [`next`](Self::next) came to `Ok(None)`; if a
/// change ran across it, it ends in [`Error::Interrupted`] instead, after the last object. A
/// `Listing` that is dropped before its end receives the rest and throws it away, because the
/// kernel runs one dump at a time on a socket.
#[derive(Debug)]
pub struct Listing<'c, T> {
    connection: &'c mut Connection,
    filter: Filter<'c>,
    dump: Dump,
    /// Bytes of the receive buffer that are still to be read.
    at: usize,
    end: usize,
    object: PhantomData<fn() -> T>,
}

impl<'c, T: Filtered> Listing<'c, T> {
    pub(super) fn new(connection: &'c mut Connection, filter: Filter<'c>, sequence: u32) -> Self {
        Self {
            connection,
            filter,
            dump: Dump::new(T::REQUEST, sequence),
            at: 0,
            end: 0,
            object: PhantomData,
        }
    }

    /// The next object, or `None` at the end.
    ///
    /// # Errors
    /// - [`Error::Interrupted`] at the end of a listing that a change ran across.
    /// - [`Error::Refused`] when the kernel broke the listing off.
    /// - [`Error::Malformed`], [`Error::Receive`], [`Error::Lost`], [`Error::Truncated`].
    #[allow(clippy::should_implement_trait)] // a lending iterator cannot be an `Iterator`
    #[inline]
    pub fn next(&mut self) -> Result<Option<T::View<'_>>, Error> {
        match self.advance()? {
            None => Ok(None),
            Some((start, end)) => {
                let (message, _) = Message::split(&self.connection.buffer[start..end])?;
                Ok(Some(T::view(&message)?))
            }
        }
    }

    /// Gives every object to `each`, to the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn for_each(mut self, mut each: impl FnMut(T::View<'_>)) -> Result<(), Error> {
        while let Some(object) = self.next()? {
            each(object);
        }
        Ok(())
    }

    /// Gives the bytes of every object's message to `each`, to the end.
    pub(super) fn for_each_message(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        while let Some((start, end)) = self.advance()? {
            each(&self.connection.buffer[start..end]);
        }
        Ok(())
    }

    /// Finds the next message with an object that was asked for: where it starts and ends in the
    /// connection's buffer.
    #[inline]
    fn advance(&mut self) -> Result<Option<(usize, usize)>, Error> {
        loop {
            if self.dump.ended() {
                return Ok(None);
            }
            if self.at == self.end {
                self.end = self.connection.receive()?;
                self.at = 0;
            }
            let unread = &self.connection.buffer[self.at..self.end];
            let (message, rest) = match Message::split(unread) {
                Ok(split) => split,
                Err(mut malformed) => {
                    malformed.offset = self.at;
                    self.at = self.end;
                    return Err(malformed.into());
                }
            };
            let start = self.at;
            self.at = self.end - rest.len();
            match self.dump.accept(message)? {
                DumpItem::Object(message) => {
                    if self.filter.admits::<T>(&message) {
                        return Ok(Some((start, start + message.raw.len())));
                    }
                }
                DumpItem::Unrelated => {}
                DumpItem::End => return Ok(None),
            }
        }
    }
}

impl<T> Listing<'_, T> {
    /// Receives what is left of the dump, so that the socket is free for the next request.
    fn drain(&mut self) {
        while !self.dump.ended() {
            if self.at == self.end {
                match self.connection.receive() {
                    Ok(length) => (self.at, self.end) = (0, length),
                    Err(Error::Lost | Error::Truncated { .. }) => continue,
                    Err(_) => return,
                }
            }
            match Message::split(&self.connection.buffer[self.at..self.end]) {
                Ok((message, rest)) => {
                    self.at = self.end - rest.len();
                    // Its errors have no one to go to: the listing was given up.
                    let _ = self.dump.accept(message);
                }
                Err(_) => self.at = self.end,
            }
        }
    }
}

impl<T> Drop for Listing<'_, T> {
    fn drop(&mut self) {
        self.drain();
    }
}
