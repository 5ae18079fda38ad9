//! Listings: a dump streamed as borrowed views.

use super::entry::EntryRef;
use super::filter::Filter;
use crate::netlink::{Dump, DumpReader, Error, Message};

/// A running listing: yields one entry at a time as a borrowed view, without allocating.
///
/// It ends when [`try_next`](Self::try_next) returns `Ok(None)`; after an error every further call returns the same error. The
/// caller may drop it before its end.
#[derive(Debug)]
pub struct Listing<'c> {
    reader: DumpReader<'c>,
    filter: Filter,
}

impl<'c> Listing<'c> {
    pub(super) const fn new(reader: DumpReader<'c>, filter: Filter) -> Self {
        Self { reader, filter }
    }

    /// Returns the next entry, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::Lost`] if replies were lost; [`Error::Refused`] if the kernel refuses the listing: `EPERM` without
    /// `CAP_NET_ADMIN`, `EINVAL` or `EOPNOTSUPP` if it has no ctnetlink; [`Error::Malformed`].
    #[inline]
    pub fn try_next(&mut self) -> Result<Option<EntryRef<'_>>, Error> {
        let filter = &self.filter;
        let find = |reader: &mut DumpReader<'_>| reader.advance(selects(filter));
        self.reader.next(find, EntryRef::parse)
    }

    /// Calls `each` with every entry until the end.
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next).
    pub fn for_each(mut self, mut each: impl FnMut(EntryRef<'_>)) -> Result<(), Error> {
        self.reader.for_each(selects(&self.filter), |payload| {
            each(EntryRef::parse(payload)?);
            Ok(())
        })
    }
}

/// Decides whether a message is an entry that matches the filter.
fn selects(filter: &Filter) -> impl FnMut(&mut Dump, &[u8]) -> Result<bool, Error> {
    let is_all = *filter == Filter::all();
    move |dump, message| {
        let is_entry = dump.selects(message)?;
        if !is_entry || is_all {
            return Ok(is_entry);
        }
        dump.reset_expected(); // check the next one as well
        Ok(filter.admits(&EntryRef::parse(Message::first(message)?.payload)?))
    }
}
