//! A listing that is kept, with the generation that it shows.

use std::marker::PhantomData;
use std::ops::Range;

use super::connection::Connection;
use super::generation::{Generation, Refreshed};
use super::listing::Filter;
use super::object::Listed;
use crate::netlink::Error;

/// A listing of one generation, kept: the kernel's messages in one piece of memory, with an index.
///
/// [`refresh`](Self::refresh) asks the kernel for the generation first, one small request and
/// reply, and lists again only when it moved: knowing that nobody committed a change to 100,000 chains
/// costs microseconds. What moves no generation, counters for one, shows after
/// [`read_anew`](Self::read_anew).
#[derive(Debug, Clone)]
pub struct List<T> {
    filter: Filter<'static>,
    taken: Option<Generation>,
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
    object: PhantomData<fn() -> T>,
}

impl<T: Listed> List<T> {
    /// An empty list, to be [refreshed](Self::refresh).
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

    /// The generation that the list shows; `None` before the first successful refresh.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.taken
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    // They never panic: every message was read once when it was taken in.
    pub(super) fn views(&self) -> impl ExactSizeIterator<Item = T::View<'_>> {
        self.spans.iter().map(|span| {
            T::view(&self.bytes[span.clone()])
                .expect("invariant: `refresh` keeps only messages that it could read")
        })
    }

    /// Lists again if the generation moved, or if this connection is of another namespace than
    /// the one of the last time. If the generation is the same the list is left as it is, at the
    /// price of one small request and reply whatever the size: what moves no generation may have changed
    /// all the same ([`Refreshed::SameGeneration`]).
    ///
    /// A listing that a change ran across, or of which a part was lost, is begun again
    /// ([`Connection::with_retry`]).
    ///
    /// # Errors
    /// [`Error::Interrupted`] or [`Error::Lost`] when that befell every attempt, and the errors of a
    /// listing. The list is then empty, without a generation.
    pub fn refresh(&mut self, connection: &mut Connection) -> Result<Refreshed, Error> {
        let kept = self.taken.take();
        self.refresh_from(kept, connection).inspect_err(|_| {
            self.bytes.clear();
            self.spans.clear();
        })
    }

    /// Lists again, in the memory that there is, whether or not the generation moved.
    ///
    /// A listing that a change ran across is begun again, as in [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    pub fn read_anew(&mut self, connection: &mut Connection) -> Result<(), Error> {
        self.taken = None;
        self.refresh(connection).map(|_| ())
    }

    fn refresh_from(
        &mut self,
        kept: Option<Generation>,
        connection: &mut Connection,
    ) -> Result<Refreshed, Error> {
        let mut generation = connection.generation()?;
        if kept == Some(generation) {
            self.taken = kept;
            return Ok(Refreshed::SameGeneration);
        }
        let mut attempts = connection.retry.begin();
        loop {
            let taken = self.take(connection);
            // A commit between the question and the first datagram leaves no mark on the dump.
            let after = connection.generation()?;
            match taken {
                Ok(()) if after == generation => {
                    self.taken = Some(generation);
                    return Ok(Refreshed::ReadAnew);
                }
                Ok(()) | Err(Error::Interrupted) if attempts.again() => generation = after,
                Ok(()) => return Err(Error::Interrupted),
                Err(error) if error.ask_again() && attempts.again_after_loss() => {
                    generation = after;
                }
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
