//! The ring of segments: writes records, starts new segments, removes old ones.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use bstr::BString;
use chainwright::nft::Snapshot;
use chainwright::nft::live::{Item, RereadPart};
use crc32fast::Hasher;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::archive::{Segment, segment_path};
use crate::error::{Error, io_error};
use crate::format::{
    FRAME, Gap, Kind, Reason, Start, file_header, frame, put_change, put_parts, put_stop, record,
};
use crate::player::Player;
use crate::process::Processes;

/// The name of a segment while it is written.
const UNFINISHED: &str = "new";
/// Maximum time between attempts to write again.
const RETRY: Duration = Duration::from_secs(1);
/// Approximate number of segments in a full ring.
const SEGMENTS: u64 = 8;

/// Options of a [`Recorder`](crate::Recorder).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Maximum size of all files in bytes. The recorder removes the oldest segments to stay below it. It always keeps
    /// the newest segment, which has a complete ruleset.
    pub max_size: u64,
    /// Maximum age of transactions. The recorder removes segments whose last transaction is older.
    pub max_age: Duration,
    /// Size of the socket's receive buffer: see
    /// [`MonitorOptions::receive_buffer`](chainwright::nft::live::MonitorOptions::receive_buffer).
    pub receive_buffer: usize,
}

impl Default for RecorderOptions {
    /// Returns 1 GB, 30 days, and the monitor's receive buffer.
    fn default() -> Self {
        Self {
            max_size: 1_000_000_000,
            max_age: Duration::from_secs(30 * 24 * 60 * 60),
            receive_buffer: chainwright::nft::live::MonitorOptions::default().receive_buffer,
        }
    }
}

/// An event of a recorder, for its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The recorder continues the last segment: nothing changed since.
    Continued {
        /// The present generation.
        generation: u32,
    },
    /// The whole ruleset was written to a new segment.
    Started {
        /// The reason.
        reason: Reason,
        /// The last generation that was recorded before.
        after: Option<u32>,
        /// The present generation.
        generation: u32,
    },
    /// The last record was incomplete, and was removed.
    Truncated {
        /// The file.
        path: PathBuf,
        /// Number of removed bytes.
        bytes: u64,
    },
    /// The last segment is damaged: it stays as it is, and a new one was started.
    Damaged {
        /// The error.
        error: String,
    },
    /// The oldest segment was removed.
    Removed {
        /// The file.
        path: PathBuf,
    },
    /// Nothing is recorded until a new segment can be written.
    Unwritable {
        /// The cause.
        error: String,
    },
    /// Events were lost.
    Lost {
        /// The generations and the cause.
        cause: String,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continued { generation } => {
                write!(f, "recording continues after generation {generation}")
            }
            Self::Started {
                reason,
                after,
                generation,
            } => match (reason, after) {
                (Reason::First, _) | (_, None) => {
                    write!(f, "recording starts after generation {generation}")
                }
                (Reason::Rotated, _) => write!(f, "new file after generation {generation}"),
                (_, Some(after)) => write!(
                    f,
                    "recording continues after generation {generation}; not recorded: what happened after generation \
                     {after}"
                ),
            },
            Self::Truncated { path, bytes } => write!(
                f,
                "removed an incomplete record of {bytes} bytes at the end of {}",
                path.display()
            ),
            Self::Damaged { error } => write!(f, "{error}; recording continues in a new file"),
            Self::Removed { path } => write!(f, "removed the oldest file, {}", path.display()),
            Self::Unwritable { error } => {
                write!(f, "NOT recording until writing is possible again: {error}")
            }
            Self::Lost { cause } => write!(f, "{cause}; reading the ruleset again"),
        }
    }
}

/// A segment in the ring.
#[derive(Debug)]
struct ClosedSegment {
    path: PathBuf,
    length: u64,
    started: SystemTime,
}

/// The state while nothing can be written.
#[derive(Debug)]
struct Failure {
    cause: String,
    retried: Instant,
}

/// The files of a recorder.
#[derive(Debug)]
pub(crate) struct Ring {
    directory: PathBuf,
    options: RecorderOptions,
    segments: VecDeque<ClosedSegment>,
    /// The file of the last segment.
    file: Option<File>,
    /// Length of the last segment without its records, and when it was started.
    base: u64,
    began: Instant,
    /// The number of the next entry.
    sequence: u64,
    /// The last recorded generation.
    last: Option<u32>,
    failure: Option<Failure>,
    /// The reason why the ruleset must be written completely.
    resync: Option<(Reason, BString)>,
    reports: Vec<Report>,
    buffer: Vec<u8>,
    processes: Processes,
    boot: [u8; 16],
    namespace: u64,
    /// Locked against other recorders.
    _lock: Flock<File>,
}

/// Returns the current boot ID; 0 if it is unknown.
fn boot() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

impl Ring {
    /// Opens or creates a directory. Removes an incomplete record at the end of the last segment.
    pub(crate) fn open(directory: &Path, options: RecorderOptions) -> Result<Self, Error> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(directory);
        made.map_err(io_error("create", directory))?;
        let path = directory.join("lock");
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(false).mode(0o600);
        let lock = open.open(&path).map_err(io_error("create", &path))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => Error::Locked {
                path: directory.to_owned(),
            },
            errno => io_error("lock", &path)(errno.into()),
        })?;
        let unfinished = directory.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_error("remove", &unfinished)(error));
            }
            _ => {}
        }
        let namespace = fs::metadata("/proc/thread-self/ns/net");
        let mut ring = Self {
            directory: directory.to_owned(),
            options,
            segments: VecDeque::new(),
            file: None,
            base: 0,
            began: Instant::now(),
            sequence: 1,
            last: None,
            failure: None,
            resync: Some((Reason::First, BString::default())),
            reports: Vec::new(),
            buffer: Vec::new(),
            processes: Processes::default(),
            boot: boot(),
            namespace: namespace.map_or(0, |namespace| namespace.ino()),
            _lock: lock,
        };
        let segments = Segment::all(directory)?;
        for segment in &segments {
            let metadata = fs::metadata(segment.path());
            let metadata = metadata.map_err(io_error("read", segment.path()))?;
            ring.segments.push_back(ClosedSegment {
                path: segment.path().to_owned(),
                length: metadata.len(),
                // Approximate for a damaged one.
                started: match segment.start() {
                    Ok(start) => start.time,
                    Err(_) => metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                },
            });
        }
        if let Some(last) = segments.last() {
            ring.resync = Some((Reason::Restarted, BString::default()));
            // A damaged record may have a higher number than the ones that can be read.
            ring.sequence =
                last.sequence() + 1 + ring.segments.back().map_or(0, |kept| kept.length);
            if let Err(error) = ring.reopen(&segments) {
                let error = error.to_string();
                ring.resync = Some((Reason::Restarted, error.as_str().into()));
                ring.reports.push(Report::Damaged { error });
            }
        }
        Ok(ring)
    }

    /// Continues the last segment if all of it is readable.
    fn reopen(&mut self, segments: &[Segment]) -> Result<(), Error> {
        let mut player = Player::at(&segments[segments.len() - 1..])?;
        let mut generation = player.reader().start().generation;
        while let Some(entry) = player.advance()? {
            generation = entry.generation().unwrap_or(generation);
        }
        let reader = player.reader();
        let (path, end, length) = (reader.path(), reader.offset(), reader.length());
        let opened = OpenOptions::new().write(true).open(path);
        let file = opened.map_err(io_error("open", path))?;
        if end < length {
            file.set_len(end).map_err(io_error("truncate", path))?;
            self.reports.push(Report::Truncated {
                path: path.to_owned(),
                bytes: length - end,
            });
        }
        let start = reader.start();
        let is_same = start.boot == self.boot && start.namespace == self.namespace;
        let is_whole = is_same && self.boot != [0; 16] && player.is_exact();
        (self.sequence, self.last) = (player.sequence() + 1, Some(generation));
        if let Some(kept) = self.segments.back_mut() {
            kept.length = end;
        }
        self.base = reader.state_end();
        self.file = Some(file);
        if is_whole {
            self.resync = None;
        }
        Ok(())
    }

    /// Decides whether the last segment can be continued with a ruleset of this generation; otherwise starts a new one.
    pub(crate) fn begin(&mut self, snapshot: &Snapshot) {
        let generation = snapshot.generation().map(|generation| generation.number());
        if self.resync.is_none() && self.last == generation {
            let generation = generation.unwrap_or(0);
            self.reports.push(Report::Continued { generation });
            return;
        }
        let restarted = || (Reason::Restarted, BString::default());
        self.resync.get_or_insert_with(restarted);
        self.rotate_if_needed(snapshot);
    }

    /// Records an item as soon as it arrives.
    pub(crate) fn observe(&mut self, item: &Item) {
        let time = SystemTime::now();
        match item {
            Item::Change(change) if self.failure.is_none() => {
                let process = self.processes.of(change);
                let sequence = self.sequence;
                self.append(Kind::Change, |out| {
                    put_change(out, sequence, time, &process, change);
                });
                if self.failure.is_none() {
                    self.last = Some(change.generation().number());
                    self.sequence += 1;
                }
            }
            Item::Lost(lost) => {
                let cause = lost.to_string();
                let gap = Gap {
                    sequence: self.sequence,
                    time,
                    after: lost.after.number(),
                    through: lost.through.number(),
                    cause: cause.as_str().into(),
                };
                if self.failure.is_none() {
                    self.append(Kind::Gap, |out| gap.write(out));
                    self.sequence += 1;
                }
                self.lost(cause);
            }
            _ => {}
        }
    }

    /// Records that the ruleset has to be written completely, because changes were lost.
    pub(crate) fn lost(&mut self, cause: String) {
        if self.resync.is_none() {
            self.resync = Some((Reason::Lost, cause.as_str().into()));
        }
        self.reports.push(Report::Lost { cause });
    }

    /// Records parts that were read again.
    pub(crate) fn parts(&mut self, parts: &[RereadPart]) {
        if parts.is_empty() || self.failure.is_some() || self.resync.is_some() {
            return;
        }
        let mut written = Ok(());
        let mut buffer = std::mem::take(&mut self.buffer);
        record(&mut buffer, Kind::Parts, |out| {
            written = put_parts(out, parts)
        });
        self.buffer = buffer;
        match written {
            Ok(()) => self.write_buffer(),
            Err(error) => self.lost(error.to_string()),
        }
    }

    /// Starts a new segment if it is necessary. `snapshot` is the ruleset after everything that was observed.
    pub(crate) fn rotate_if_needed(&mut self, snapshot: &Snapshot) {
        if let Some(failure) = &mut self.failure {
            if failure.retried.elapsed() < RETRY {
                return;
            }
            failure.retried = Instant::now();
            let cause = failure.cause.as_str().into();
            if self.start(snapshot, Reason::Unwritable, cause).is_ok() {
                self.failure = None;
                self.resync = None;
            }
            return;
        }
        let started = match self.resync.take() {
            Some((reason, cause)) => self.start(snapshot, reason, cause),
            None if self.is_long() => self.start(snapshot, Reason::Rotated, BString::default()),
            None => {
                self.remove_outdated();
                return;
            }
        };
        if let Err(error) = started {
            self.fail(error.to_string());
        }
    }

    /// Returns `true` if the next record belongs in a new segment.
    fn is_long(&self) -> bool {
        let length = self.segments.back().map_or(0, |kept| kept.length);
        let records = length.saturating_sub(self.base);
        let total = self.segments.iter().map(|kept| kept.length).sum::<u64>();
        records >= self.base.max(self.options.max_size / SEGMENTS)
            || (records > 0 && self.began.elapsed() >= self.options.max_age / SEGMENTS as u32)
            || (self.segments.len() == 1 && records > self.base && total > self.options.max_size)
    }

    /// Appends a record, or stops recording.
    fn append(&mut self, kind: Kind, payload: impl FnOnce(&mut Vec<u8>)) {
        record(&mut self.buffer, kind, payload);
        self.write_buffer();
    }

    fn write_buffer(&mut self) {
        loop {
            let (Some(file), Some(kept)) = (&self.file, self.segments.back_mut()) else {
                // The whole ruleset is written next.
                return;
            };
            match file.write_all_at(&self.buffer, kept.length) {
                Ok(()) => {
                    kept.length += self.buffer.len() as u64;
                    break;
                }
                Err(error) => {
                    // Nothing incomplete stays behind a complete record, if the file system permits it.
                    let _ = file.set_len(kept.length);
                    if is_full(&error) && self.segments.len() > 2 && self.remove_oldest() {
                        continue;
                    }
                    let error = io_error("write", &last_path(&self.segments))(error);
                    self.fail(error.to_string());
                    return;
                }
            }
        }
        let total = |ring: &Self| ring.segments.iter().map(|kept| kept.length).sum::<u64>();
        while total(self) > self.options.max_size && self.segments.len() > 1 && self.remove_oldest()
        {
        }
        // A large transaction doesn't keep its memory.
        self.buffer.shrink_to(1 << 20);
    }

    fn fail(&mut self, cause: String) {
        self.file = None;
        self.reports.push(Report::Unwritable {
            error: cause.clone(),
        });
        self.failure = Some(Failure {
            cause,
            retried: Instant::now(),
        });
    }

    /// Writes a new segment with this ruleset.
    fn start(&mut self, snapshot: &Snapshot, reason: Reason, cause: BString) -> Result<(), Error> {
        let start = Start {
            sequence: self.sequence,
            time: SystemTime::now(),
            boot: self.boot,
            namespace: self.namespace,
            generation: snapshot.generation().map_or(0, |number| number.number()),
            after: self.last,
            reason,
            cause,
        };
        // Removes old files first; the last segment stays until the new one is complete.
        let expected = snapshot.byte_length() as u64;
        let total = |ring: &Self| ring.segments.iter().map(|kept| kept.length).sum::<u64>();
        while self.segments.len() > 1
            && total(self) + expected > self.options.max_size
            && self.remove_oldest()
        {}
        let unfinished = self.directory.join(UNFINISHED);
        let path = segment_path(&self.directory, start.sequence);
        let (file, length) = loop {
            match write_segment(&unfinished, &path, &start, snapshot) {
                Ok(written) => break written,
                Err(error) => {
                    let _ = fs::remove_file(&unfinished);
                    if !(is_full(&error) && self.segments.len() > 1 && self.remove_oldest()) {
                        return Err(io_error("write", &path)(error));
                    }
                }
            }
        };
        if let Some(old) = self.file.take() {
            let _ = old.sync_data();
        }
        // The new name is durable, too, if the file system supports it.
        let _ = File::open(&self.directory).and_then(|directory| directory.sync_all());
        self.segments.push_back(ClosedSegment {
            path,
            length,
            started: start.time,
        });
        (self.file, self.base) = (Some(file), length);
        self.began = Instant::now();
        self.sequence += 1;
        self.last = Some(start.generation);
        self.reports.push(Report::Started {
            reason,
            after: start.after,
            generation: start.generation,
        });
        while total(self) > self.options.max_size && self.segments.len() > 1 && self.remove_oldest()
        {
        }
        self.remove_outdated();
        Ok(())
    }

    /// Removes segments whose entries are all too old: the next segment was started before the limit.
    fn remove_outdated(&mut self) {
        let Some(limit) = SystemTime::now().checked_sub(self.options.max_age) else {
            return;
        };
        let is_outdated = |next: &ClosedSegment| next.started < limit;
        while self.segments.get(1).is_some_and(is_outdated) && self.remove_oldest() {}
    }

    /// Removes the oldest segment; `false` if that fails.
    fn remove_oldest(&mut self) -> bool {
        let Some(oldest) = self.segments.front() else {
            return false;
        };
        match fs::remove_file(&oldest.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return false,
            _ => {}
        }
        let path = oldest.path.clone();
        self.segments.pop_front();
        self.reports.push(Report::Removed { path });
        true
    }

    /// Records the end.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let time = SystemTime::now();
        if self.failure.is_none() {
            self.append(Kind::Stop, |out| put_stop(out, time));
        }
        match &self.file {
            Some(file) => {
                let path = last_path(&self.segments);
                file.sync_data().map_err(io_error("write", &path))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// Returns `true` while writing fails: then [`rotate_if_needed`](Self::rotate_if_needed) must be called even
    /// without an event.
    pub(crate) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }
}

fn last_path(segments: &VecDeque<ClosedSegment>) -> PathBuf {
    segments
        .back()
        .map(|kept| kept.path.clone())
        .unwrap_or_default()
}

fn is_full(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw);
    matches!(number, Some(Errno::ENOSPC | Errno::EDQUOT))
}

/// Writes a segment with its start and its state, and then gives it its name. Returns the file and its length.
fn write_segment(
    unfinished: &Path,
    path: &Path,
    start: &Start,
    snapshot: &Snapshot,
) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(unfinished)?;
    let mut head = Vec::new();
    record(&mut head, Kind::Start, |out| start.write(out));
    let mut out = BufWriter::with_capacity(1 << 18, &file);
    out.write_all(&file_header())?;
    out.write_all(&head)?;
    let at = out.stream_position()?;
    out.write_all(&[0; FRAME as usize])?;
    snapshot.write(&mut out)?;
    let end = out.stream_position()?;
    drop(out);
    let length = end - at - FRAME;
    file.write_all_at(&frame(Kind::State, length, Hasher::new()), at)?;
    file.sync_data()?;
    fs::rename(unfinished, path)?;
    Ok((file, end))
}
