//! A listing that is kept, with its generation.

use std::marker::PhantomData;
use std::ops::Range;

use super::connection::Connection;
use super::generation::{Generation, Refreshed};
use super::listing::Filter;
use super::object::Listed;
use crate::netlink::Error;

/// A stored listing of one generation: the kernel's messages in one buffer, with an index.
///
/// [`refresh`](Self::refresh) first reads the generation, with one small request, and lists again only
/// if it changed: checking that 100,000 chains are unchanged takes microseconds. Changes that create no
/// generation, such as counters, are visible after [`reread`](Self::reread).
#[derive(Debug, Clone)]
pub struct List<T> {
    filter: Filter<'static>,
    taken: Option<Generation>,
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
    object: PhantomData<fn() -> T>,
}

impl<T: Listed> List<T> {
    /// Creates an empty list, to be [refreshed](Self::refresh).
    #[must_use]
    pub fn new<'f>(filter: impl Into<T::Filter<'f>>) -> Self {
        let filter: Filter<'f> = filter.into().into();
        Self {
            filter: filter.into_owned(),
            taken: None,
            bytes: Vec::new(),
            spans: Vec::new(),
            object: PhantomData,
        }
    }

    /// Returns the generation of the list; `None` before the first successful refresh.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.taken
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns `true` if there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    // These never panic: `take` parsed every message before.
    pub(super) fn views(&self) -> impl ExactSizeIterator<Item = T::View<'_>> {
        self.spans.iter().map(|span| {
            T::view(&self.bytes[span.clone()])
                .expect("invariant: `refresh` keeps only messages that it could read")
        })
    }

    /// Lists again if the generation changed, or if this connection belongs to another namespace than
    /// the last one. Otherwise the list stays unchanged, at the cost of one small request, whatever its
    /// size. Changes that create no generation may have happened anyway ([`Refreshed::SameGeneration`]).
    ///
    /// A listing during which the ruleset changed, or of which a part was lost, is repeated
    /// ([`Connection::with_retry`]).
    ///
    /// # Errors
    /// [`Error::Interrupted`] or [`Error::Lost`] if that happened in every attempt, and the errors of a
    /// listing. The list is then empty, without a generation.
    pub fn refresh(&mut self, connection: &mut Connection) -> Result<Refreshed, Error> {
        let kept = self.taken.take();
        self.refresh_from(kept, connection).inspect_err(|_| {
            self.bytes.clear();
            self.spans.clear();
        })
    }

    /// Lists again, reusing the memory, whether or not the generation changed.
    ///
    /// A listing during which the ruleset changed is repeated, as in [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// Same as [`refresh`](Self::refresh).
    pub fn reread(&mut self, connection: &mut Connection) -> Result<(), Error> {
        self.taken = None;
        self.refresh(connection).map(|_| ())
    }

    fn refresh_from(
        &mut self,
        kept: Option<Generation>,
        connection: &mut Connection,
    ) -> Result<Refreshed, Error> {
        if kept.is_some() && kept == Some(connection.generation()?) {
            self.taken = kept;
            return Ok(Refreshed::SameGeneration);
        }
        let mut attempts = connection.session.retry.begin();
        loop {
            let generation = connection.stable_generation()?;
            let taken = self.take(connection);
            // The kernel does not mark a dump for a commit before its first datagram.
            let after = connection.generation()?;
            match taken {
                Ok(()) if after == generation => {
                    self.taken = Some(generation);
                    return Ok(Refreshed::Reread);
                }
                Ok(()) if attempts.again() => {}
                Ok(()) => return Err(Error::Interrupted),
                Err(error) if error.allows(&mut attempts) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, connection: &mut Connection) -> Result<(), Error> {
        self.bytes.clear();
        self.spans.clear();
        let mut listing = connection.list::<T>(self.filter.clone())?;
        listing.for_each_payload(|payload| {
            T::view(payload)?;
            let start = self.bytes.len();
            self.bytes.extend_from_slice(payload);
            self.spans.push(start..self.bytes.len());
            Ok(())
        })
    }
}
