//! The records of a directory, for readers.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chainwright::nft::Snapshot;

use crate::error::{Error, io_error};
use crate::format::{Entry, Reason, Record, SegmentReader, Start};
use crate::player::Player;

/// The ending of a segment's name.
const ENDING: &str = "chainrec";
/// Number of digits of the number in it.
const DIGITS: usize = 20;

/// Returns the path of the segment whose start has this number.
pub(crate) fn segment_path(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("{sequence:0DIGITS$}.{ENDING}"))
}

/// A file of records. It starts with a complete ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    path: PathBuf,
    sequence: u64,
}

impl Segment {
    /// Returns the segments of a directory, oldest first.
    pub(crate) fn all(directory: &Path) -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        let listed = fs::read_dir(directory).map_err(io_error("read", directory))?;
        for entry in listed {
            let path = entry.map_err(io_error("read", directory))?.path();
            let name = path.file_stem().and_then(OsStr::to_str);
            let is_segment = path.extension() == Some(OsStr::new(ENDING));
            let number = name.filter(|name| is_segment && name.len() == DIGITS);
            if let Some(sequence) = number.and_then(|number| number.parse().ok()) {
                all.push(Self { path, sequence });
            }
        }
        all.sort_by_key(|segment| segment.sequence);
        Ok(all)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of its first entry.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Reads its start, but not the ruleset.
    ///
    /// # Errors
    /// [`Error`] with the file and the offset.
    pub fn start(&self) -> Result<Start, Error> {
        Ok(SegmentReader::open(&self.path)?.start().clone())
    }

    /// Reads its entries in order, except the rulesets. An incomplete record at its end is not an entry: the recorder
    /// may be writing it.
    #[must_use]
    pub const fn entries(&self) -> Entries<'_> {
        Entries {
            rest: std::slice::from_ref(self),
            reader: None,
        }
    }
}

/// A moment of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// After the last entry.
    Now,
    /// After the last entry that is not later than this.
    Time(SystemTime),
    /// After the last transaction that made this generation. Generations start again at each boot.
    Generation(u32),
    /// After the entry with this number.
    Sequence(u64),
}

/// The ruleset at a moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct State {
    /// The ruleset.
    pub snapshot: Snapshot,
    /// Whether it equals the kernel's ruleset. Otherwise earlier events are ambiguous or incomplete: the recorder
    /// was stopped before it could read the changed part, or several transactions followed each other too fast.
    pub is_exact: bool,
    /// The number of the last entry before the moment.
    pub sequence: u64,
    /// The time of that entry.
    pub time: SystemTime,
}

/// The records of a directory. Reading needs no lock: a recorder may write at the same time.
#[derive(Debug, Clone)]
pub struct Archive {
    directory: PathBuf,
    segments: Vec<Segment>,
}

impl Archive {
    /// Lists the segments of a directory.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Empty`] if it has none.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        let directory = directory.as_ref();
        let segments = Segment::all(directory)?;
        if segments.is_empty() {
            return Err(Error::Empty {
                path: directory.to_owned(),
            });
        }
        Ok(Self {
            directory: directory.to_owned(),
            segments,
        })
    }

    /// Returns the segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Reads all entries in order, one at a time. After an error it continues with the next segment.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        Entries {
            rest: &self.segments,
            reader: None,
        }
    }

    /// Reads the entries from this time on. Skips the segments that end earlier.
    ///
    /// # Errors
    /// [`Error`] of a segment's start.
    pub fn entries_since(&self, time: SystemTime) -> Result<Entries<'_>, Error> {
        let first = self.segment_at(time)?.unwrap_or(0);
        Ok(Entries {
            rest: &self.segments[first..],
            reader: None,
        })
    }

    /// Returns the index of the last segment that starts at or before a time.
    fn segment_at(&self, time: SystemTime) -> Result<Option<usize>, Error> {
        for (index, segment) in self.segments.iter().enumerate().rev() {
            if segment.start()?.time <= time {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Returns the number of the last entry at or before a moment.
    ///
    /// # Errors
    /// [`Error::TooEarly`], [`Error::UnknownGeneration`], and [`Error`] with the file and the offset.
    pub fn locate(&self, moment: Moment) -> Result<u64, Error> {
        let until = match moment {
            Moment::Sequence(sequence) if sequence >= self.segments[0].sequence => {
                return Ok(sequence);
            }
            Moment::Sequence(_) => return Err(self.too_early()?),
            Moment::Generation(generation) => return self.locate_generation(generation),
            Moment::Now => None,
            Moment::Time(time) => Some(time),
        };
        let index = match until {
            None => self.segments.len() - 1,
            Some(time) => match self.segment_at(time)? {
                Some(index) => index,
                None => return Err(self.too_early()?),
            },
        };
        let segment = &self.segments[index];
        let mut found = segment.sequence;
        for entry in segment.entries() {
            let entry = entry?;
            if until.is_some_and(|until| entry.time() > until) {
                break;
            }
            found = entry.sequence().unwrap_or(found);
        }
        Ok(found)
    }

    fn too_early(&self) -> Result<Error, Error> {
        Ok(Error::TooEarly {
            path: self.directory.clone(),
            first: self.segments[0].start()?.time,
        })
    }

    fn locate_generation(&self, generation: u32) -> Result<u64, Error> {
        for segment in self.segments.iter().rev() {
            let start = segment.start()?;
            if start.generation == generation {
                return Ok(start.sequence);
            }
            let mut found = None;
            for entry in segment.entries() {
                let entry = entry?;
                if entry.generation() == Some(generation) {
                    found = entry.sequence();
                }
            }
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Error::UnknownGeneration {
            path: self.directory.clone(),
            generation,
        })
    }

    /// Returns the entry with a number; `None` if there is none, or if it only starts a new segment.
    ///
    /// # Errors
    /// [`Error`] with the file and the offset.
    pub fn entry(&self, sequence: u64) -> Result<Option<Entry>, Error> {
        let mut segments = self.segments.iter().rev();
        let Some(segment) = segments.find(|segment| segment.sequence <= sequence) else {
            return Ok(None);
        };
        for entry in segment.entries() {
            let entry = entry?;
            if entry.sequence() == Some(sequence) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Goes to a moment, to continue from there.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    pub fn play(&self, moment: Moment) -> Result<Player<'_>, Error> {
        let sequence = self.locate(moment)?;
        let mut segments = self.segments.iter();
        let index = segments.rposition(|segment| segment.sequence <= sequence);
        let mut player = Player::at(&self.segments[index.unwrap_or(0)..])?;
        player.advance_to(sequence)?;
        Ok(player)
    }

    /// Returns the ruleset at a moment.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    pub fn state_at(&self, moment: Moment) -> Result<State, Error> {
        Ok(self.play(moment)?.into_state())
    }

    /// Returns the rulesets before and after the entry with a number. Before the first one there is none.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    pub fn states_around(&self, sequence: u64) -> Result<(Option<State>, State), Error> {
        let before = match sequence.checked_sub(1) {
            Some(before) if before >= self.segments[0].sequence => {
                Some(self.state_at(Moment::Sequence(before))?)
            }
            _ => None,
        };
        Ok((before, self.state_at(Moment::Sequence(sequence))?))
    }
}

/// Entries in order, read one at a time.
#[derive(Debug)]
pub struct Entries<'a> {
    rest: &'a [Segment],
    reader: Option<SegmentReader>,
}

impl Entries<'_> {
    fn read(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next() {
                    Ok(Some(Record::Entry(entry))) => return Ok(Some(entry)),
                    Ok(Some(Record::Parts(_))) => continue,
                    Ok(None) => self.reader = None,
                    Err(error) => {
                        self.reader = None;
                        return Err(error);
                    }
                }
            }
            let Some((segment, rest)) = self.rest.split_first() else {
                return Ok(None);
            };
            self.rest = rest;
            let reader = match SegmentReader::open(segment.path()) {
                Ok(reader) => reader,
                // The recorder removed the oldest ones meanwhile.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let start = reader.start().clone();
            self.reader = Some(reader);
            if start.reason != Reason::Rotated {
                return Ok(Some(Entry::Start(start)));
            }
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
