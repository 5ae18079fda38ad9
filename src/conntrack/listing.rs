//! Listings: one dump, streamed as borrowed views.

use super::connection::Connection;
use super::entry::EntryRef;
use super::filter::Filter;
use crate::netlink::{Dump, DumpItem, Error, Unread};

/// A running listing: entries come as borrowed views, one at a time, with no allocation for any of them.
///
/// It is at its end when [`next`](Self::next) comes to `Ok(None)`; after an error each further call gives the same error. It may be dropped
/// before its end.
#[derive(Debug)]
pub struct Listing<'c> {
    connection: &'c mut Connection,
    filter: Filter,
    dump: Dump,
    /// The error that it ended in.
    failed: Option<Box<Error>>,
    unread: Unread,
}

impl<'c> Listing<'c> {
    pub(super) const fn new(connection: &'c mut Connection, filter: Filter, sequence: u32) -> Self {
        Self {
            connection,
            filter,
            dump: Dump::new("list entries", sequence),
            failed: None,
            unread: Unread::of(0),
        }
    }

    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::Lost`] when replies were lost; [`Error::Refused`] when the kernel refuses the listing: `EPERM` without
    /// `CAP_NET_ADMIN`, `EINVAL` or `EOPNOTSUPP` where it has no ctnetlink; [`Error::Malformed`].
    #[allow(clippy::should_implement_trait)] // a lending iterator cannot be an `Iterator`
    #[inline]
    pub fn next(&mut self) -> Result<Option<EntryRef<'_>>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.repeated());
        }
        let entry = match self.advance() {
            Ok(None) => return Ok(None),
            Ok(Some((start, end))) => {
                EntryRef::parse(&self.connection.buffer[start..end]).map_err(Error::from)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &entry {
            self.failed = Some(Box::new(error.repeated()));
        }
        entry.map(Some)
    }

    /// Gives every entry to `each`, to the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn for_each(mut self, mut each: impl FnMut(EntryRef<'_>)) -> Result<(), Error> {
        while let Some(entry) = self.next()? {
            each(entry);
        }
        Ok(())
    }

    /// Finds the next entry that was asked for: where its payload starts and ends in the buffer.
    fn advance(&mut self) -> Result<Option<(usize, usize)>, Error> {
        while !self.dump.ended() {
            if self.unread.is_empty() {
                self.unread = Unread::of(self.connection.receive()?);
            }
            let (start, message) = self.unread.next(&self.connection.buffer)?;
            if !self.dump.is_usual(&message)
                && !matches!(self.dump.accept(message)?, DumpItem::Object(_))
            {
                continue;
            }
            if self.filter == Filter::all()
                || self.filter.admits(&EntryRef::parse(message.payload)?)
            {
                let end = start + message.raw.len();
                return Ok(Some((end - message.payload.len(), end)));
            }
        }
        Ok(None)
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        if self.dump.ended() {
            return;
        }
        // The dump's end may be here already.
        let rest = self.unread.messages(&self.connection.buffer);
        for message in rest.map_while(Result::ok) {
            let _ = self.dump.accept(message);
        }
        self.connection.give_up(&self.dump);
    }
}
