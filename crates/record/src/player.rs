//! Steps from one recorded state to the next.

use std::time::SystemTime;

use chainwright::nft::Snapshot;
use chainwright::nft::live::Replay;

use crate::archive::{Segment, State};
use crate::error::Error;
use crate::format::{Entry, Reason, Record, SegmentReader};

/// The ruleset at a moment, which [`advance`](Self::advance) moves to the next entry.
#[derive(Debug)]
pub struct Player<'a> {
    rest: &'a [Segment],
    reader: SegmentReader,
    replay: Replay,
    /// Whether events were lost since the start of the segment.
    has_gap: bool,
    sequence: u64,
    time: SystemTime,
    /// The number of an entry that was already read: the next segment starts with it.
    last: Option<u64>,
}

impl<'a> Player<'a> {
    /// Reads the ruleset at the start of the first of these segments.
    pub(crate) fn at(segments: &'a [Segment]) -> Result<Self, Error> {
        let (reader, replay, rest) = open(segments)?;
        Ok(Self {
            rest,
            sequence: reader.start().sequence,
            time: reader.start().time,
            reader,
            replay,
            has_gap: false,
            last: None,
        })
    }

    /// Advances to the entry with this number.
    pub(crate) fn advance_to(&mut self, sequence: u64) -> Result<(), Error> {
        self.last = Some(sequence);
        while self.sequence < sequence && self.advance()?.is_some() {}
        self.last = None;
        Ok(())
    }

    /// Applies the next entry, and returns it; `None` at the end.
    ///
    /// # Errors
    /// [`Error`] with the file and the offset. Then the state is unusable.
    pub fn advance(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            match self.reader.next()? {
                Some(Record::Entry(entry)) => {
                    self.apply(&entry)?;
                    return Ok(Some(entry));
                }
                Some(Record::Parts(parts)) => self.replace(&parts)?,
                None => {
                    let is_beyond =
                        |last| self.rest.first().is_none_or(|next| next.sequence() > last);
                    if self.last.is_some_and(is_beyond) || self.rest.is_empty() {
                        return Ok(None);
                    }
                    let start = self.next_segment()?;
                    if let Some(start) = start {
                        return Ok(Some(start));
                    }
                }
            }
        }
    }

    fn next_segment(&mut self) -> Result<Option<Entry>, Error> {
        (self.reader, self.replay, self.rest) = open(self.rest)?;
        self.has_gap = false;
        let start = self.reader.start().clone();
        (self.sequence, self.time) = (start.sequence, start.time);
        Ok((start.reason != Reason::Rotated).then_some(Entry::Start(start)))
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), Error> {
        let at = self.reader.offset();
        match entry {
            Entry::Transaction(transaction) => {
                let applied = self.replay.apply(&transaction.change);
                applied.map_err(|source| Error::Content {
                    path: self.reader.path().to_owned(),
                    offset: at,
                    source,
                })?;
                if let Some(parts) = self.reader.next_parts()? {
                    self.replace(&parts)?;
                }
            }
            Entry::Gap(_) => self.has_gap = true,
            Entry::Start(_) | Entry::Stop(_) => {}
        }
        self.sequence = entry.sequence().unwrap_or(self.sequence);
        self.time = entry.time();
        Ok(())
    }

    fn replace(&mut self, parts: &[chainwright::nft::live::RereadPart]) -> Result<(), Error> {
        let at = self.reader.offset();
        for part in parts {
            let replaced = self.replay.replace(part);
            replaced.map_err(|source| Error::Content {
                path: self.reader.path().to_owned(),
                offset: at,
                source,
            })?;
        }
        Ok(())
    }

    /// Returns the ruleset.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        self.replay.snapshot()
    }

    /// Returns `true` if the ruleset is exactly what the kernel had: see [`State::is_exact`].
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.has_gap && self.replay.is_exact()
    }

    /// Returns the number of the last entry.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the current state.
    #[must_use]
    pub fn into_state(self) -> State {
        State {
            is_exact: self.is_exact(),
            sequence: self.sequence,
            time: self.time,
            snapshot: self.replay.into_snapshot(),
        }
    }

    pub(crate) const fn reader(&self) -> &SegmentReader {
        &self.reader
    }

    /// Returns the time of the last entry.
    #[must_use]
    pub const fn time(&self) -> SystemTime {
        self.time
    }
}

fn open(segments: &[Segment]) -> Result<(SegmentReader, Replay, &[Segment]), Error> {
    let (first, rest) = segments
        .split_first()
        .expect("invariant: callers checked it");
    let mut reader = SegmentReader::open(first.path())?;
    let replay = Replay::new(reader.state()?);
    Ok((reader, replay, rest))
}
