//! Listings: a dump streamed as borrowed views.

use super::connection::Connection;
use super::entry::EntryRef;
use super::filter::Filter;
use crate::netlink::{Dump, DumpItem, Error, Unread};

/// A running listing: yields one entry at a time as a borrowed view, without allocating.
///
/// It ends when [`next`](Self::next) returns `Ok(None)`; after an error every further call returns the same error. The
/// caller may drop it before its end.
#[derive(Debug)]
pub struct Listing<'c> {
    connection: &'c mut Connection,
    filter: Filter,
    dump: Dump,
    /// The error that ended the listing.
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

    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::Lost`] if replies were lost; [`Error::Refused`] if the kernel refuses the listing: `EPERM` without
    /// `CAP_NET_ADMIN`, `EINVAL` or `EOPNOTSUPP` if it has no ctnetlink; [`Error::Malformed`].
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

    /// Calls `each` with every entry until the end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn for_each(mut self, mut each: impl FnMut(EntryRef<'_>)) -> Result<(), Error> {
        while let Some(entry) = self.next()? {
            each(entry);
        }
        Ok(())
    }

    /// Finds the next entry that matches the filter, and returns the range of its payload in the buffer.
    fn advance(&mut self) -> Result<Option<(usize, usize)>, Error> {
        while !self.dump.ended() {
            if self.unread.is_empty() {
                self.unread = Unread::of(self.connection.receive()?);
            }
            let (start, message) = self.unread.next(&self.connection.buffer)?;
            if !self.dump.is_expected(&message)
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
        // The end of the dump may have been received already.
        let rest = self.unread.messages(&self.connection.buffer);
        for message in rest.map_while(Result::ok) {
            let _ = self.dump.accept(message);
        }
        self.connection.abandon_dump(&self.dump);
    }
}
