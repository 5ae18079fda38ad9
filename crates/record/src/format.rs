//! The format of a segment, version 1.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `CHAINRC` and a newline |
//! | 4 | version, 1 |
//! | 4 | `0x01020304` |
//! | … | records |
//!
//! A record:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | length of the payload |
//! | 4 | kind |
//! | 4 | CRC-32 of the payload, the length and the kind; for a state, which has its own checksum, without the payload |
//! | … | payload |
//!
//! Numbers have the byte order of the machine, as in a backup. The third field of the file identifies the byte order. A
//! segment starts with a *start* and a *state*. It gets its name only after both are written, so every segment has
//! both. Everything after them is written with one system call per record; if the process is killed during a call, the
//! last record is incomplete.
//!
//! | kind | record | payload |
//! |---|---|---|
//! | 1 | start | number, time, boot, network namespace, generation, reason, the last recorded generation, text |
//! | 2 | state | a backup, as `Snapshot::write` writes it |
//! | 3 | change | number, time, process, the kernel's messages |
//! | 4 | parts | tables and chains that were read again because the changes before are ambiguous |
//! | 5 | gap | number, time, the generations before and at the end of the gap, text |
//! | 6 | stop | time: the recorder was stopped |

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bstr::BString;
use chainwright::netlink::Malformed;
use chainwright::nft::Snapshot;
use chainwright::nft::live::{Change, RereadPart};
use crc32fast::Hasher;

use crate::error::{Error, io_error};
use crate::process::Process;

const MAGIC: [u8; 8] = *b"CHAINRC\n";
pub(crate) const VERSION: u32 = 1;
const ORDER: u32 = 0x0102_0304;
/// Length of the file's header.
const HEADER: usize = 16;
/// Length of a record's header.
pub(crate) const FRAME: u64 = 16;

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Start = 1,
    State = 2,
    Change = 3,
    Parts = 4,
    Gap = 5,
    Stop = 6,
}

impl Kind {
    fn of(number: u32) -> Option<Self> {
        use Kind::{Change, Gap, Parts, Start, State, Stop};
        let all = [Start, State, Change, Parts, Gap, Stop];
        all.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// A transaction.
    Transaction(Transaction),
    /// Transactions that were lost while the recorder ran.
    Gap(Gap),
    /// The whole ruleset was read: at first, and after transactions that were not recorded.
    Start(Start),
    /// The recorder was stopped.
    Stop(SystemTime),
}

impl Entry {
    /// Returns its time.
    #[must_use]
    pub const fn time(&self) -> SystemTime {
        match self {
            Self::Transaction(transaction) => transaction.time,
            Self::Gap(gap) => gap.time,
            Self::Start(start) => start.time,
            Self::Stop(time) => *time,
        }
    }

    /// Returns its number; a stop has none.
    #[must_use]
    pub const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Transaction(transaction) => Some(transaction.sequence),
            Self::Gap(gap) => Some(gap.sequence),
            Self::Start(start) => Some(start.sequence),
            Self::Stop(_) => None,
        }
    }

    /// Returns the number of the generation after it; a stop has none.
    #[must_use]
    pub fn generation(&self) -> Option<u32> {
        match self {
            Self::Transaction(transaction) => Some(transaction.change.generation().number()),
            Self::Gap(gap) => Some(gap.through),
            Self::Start(start) => Some(start.generation),
            Self::Stop(_) => None,
        }
    }
}

/// A recorded transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transaction {
    /// The number of the entry: these increase, also over restarts.
    pub sequence: u64,
    /// The time at which it arrived.
    pub time: SystemTime,
    /// The process that made it.
    pub process: Process,
    /// Its changes.
    pub change: Change,
}

/// Transactions whose events were lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The number of the entry.
    pub sequence: u64,
    /// The time at which the loss was noticed.
    pub time: SystemTime,
    /// The last generation before the gap.
    pub after: u32,
    /// The last generation in the gap.
    pub through: u32,
    /// The cause.
    pub cause: BString,
}

/// The whole ruleset, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// The number of the entry.
    pub sequence: u64,
    /// The time.
    pub time: SystemTime,
    /// The boot (`/proc/sys/kernel/random/boot_id`); 0 if unknown.
    pub boot: [u8; 16],
    /// The inode number of the network namespace; 0 if unknown.
    pub namespace: u64,
    /// The generation.
    pub generation: u32,
    /// The last previously recorded generation.
    pub after: Option<u32>,
    /// The reason.
    pub reason: Reason,
    /// Details of the reason.
    pub cause: BString,
}

/// The reason why the whole ruleset was read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// There were no records.
    First,
    /// A new segment continues the one before without a gap.
    Rotated,
    /// The recorder was started again, and the ruleset had changed.
    Restarted,
    /// Events were lost.
    Lost,
    /// Records could not be written for some time.
    Unwritable,
}

impl Reason {
    const ALL: [Self; 5] = [
        Self::First,
        Self::Rotated,
        Self::Restarted,
        Self::Lost,
        Self::Unwritable,
    ];
}

// Writing

pub(crate) fn put_number(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_ne_bytes());
}

fn put_long(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_ne_bytes());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn put_time(out: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since.unwrap_or_default().as_nanos();
    put_long(out, u64::try_from(nanoseconds).unwrap_or(u64::MAX));
}

pub(crate) fn file_header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..].copy_from_slice(&ORDER.to_ne_bytes());
    header
}

/// Returns a record's header.
pub(crate) fn frame(kind: Kind, length: u64, mut sum: Hasher) -> [u8; FRAME as usize] {
    let mut frame = [0; FRAME as usize];
    frame[..8].copy_from_slice(&length.to_ne_bytes());
    frame[8..12].copy_from_slice(&(kind as u32).to_ne_bytes());
    sum.update(&frame[..12]);
    frame[12..].copy_from_slice(&sum.finalize().to_ne_bytes());
    frame
}

/// Writes a record into an empty buffer.
pub(crate) fn record(out: &mut Vec<u8>, kind: Kind, payload: impl FnOnce(&mut Vec<u8>)) {
    out.clear();
    out.resize(FRAME as usize, 0);
    payload(out);
    let payload = &out[FRAME as usize..];
    let mut sum = Hasher::new();
    sum.update(payload);
    let frame = frame(kind, payload.len() as u64, sum);
    out[..FRAME as usize].copy_from_slice(&frame);
}

impl Start {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_long(out, self.sequence);
        put_time(out, self.time);
        out.extend_from_slice(&self.boot);
        put_long(out, self.namespace);
        put_number(out, self.generation);
        let reason = Reason::ALL.iter().position(|reason| *reason == self.reason);
        out.push(reason.unwrap_or(0) as u8);
        out.push(self.after.is_some().into());
        put_number(out, self.after.unwrap_or(0));
        put_bytes(out, &self.cause);
    }
}

/// Writes a transaction from its parts, so that the kernel's messages are copied only once.
pub(crate) fn put_change(
    out: &mut Vec<u8>,
    sequence: u64,
    time: SystemTime,
    process: &Process,
    change: &Change,
) {
    put_long(out, sequence);
    put_time(out, time);
    process.write(out);
    out.extend_from_slice(change.as_bytes());
}

impl Gap {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_long(out, self.sequence);
        put_time(out, self.time);
        put_number(out, self.after);
        put_number(out, self.through);
        put_bytes(out, &self.cause);
    }
}

pub(crate) fn put_stop(out: &mut Vec<u8>, time: SystemTime) {
    put_time(out, time);
}

/// Writes parts of the ruleset.
pub(crate) fn put_parts(out: &mut Vec<u8>, parts: &[RereadPart]) -> io::Result<()> {
    put_number(out, parts.len() as u32);
    for part in parts {
        out.push(part.chain_name().is_some().into());
        put_bytes(out, part.chain_name().map_or(b"", |name| name));
        let at = out.len();
        put_long(out, 0);
        part.snapshot().write(&mut *out)?;
        let length = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&length.to_ne_bytes());
    }
    Ok(())
}

// Reading

/// The reason why a payload is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) &'static str);

/// The rest of a payload.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (array, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Invalid> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Invalid> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Invalid("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn number(&mut self) -> Result<u32, Invalid> {
        Ok(u32::from_ne_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<u64, Invalid> {
        Ok(u64::from_ne_bytes(self.array()?))
    }

    fn time(&mut self) -> Result<SystemTime, Invalid> {
        let since = Duration::from_nanos(self.long()?);
        let time = SystemTime::UNIX_EPOCH.checked_add(since);
        time.ok_or(Invalid("its time is out of range"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Invalid> {
        let length = usize::try_from(length).map_err(|_| TOO_SHORT)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Invalid> {
        let length = self.number()?;
        self.take(length.into())
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn end(&self) -> Result<(), Invalid> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Invalid("it is longer than its fields")),
        }
    }
}

const TOO_SHORT: Invalid = Invalid("it is shorter than its fields");

impl Start {
    fn read(mut fields: Fields<'_>) -> Result<Self, Invalid> {
        let (sequence, time) = (fields.long()?, fields.time()?);
        let (boot, namespace) = (fields.array()?, fields.long()?);
        let generation = fields.number()?;
        let reason = Reason::ALL.get(usize::from(fields.byte()?)).copied();
        let has_after = fields.flag()?;
        let after = fields.number()?;
        let cause = fields.bytes()?.into();
        fields.end()?;
        Ok(Self {
            sequence,
            time,
            boot,
            namespace,
            generation,
            after: has_after.then_some(after),
            reason: reason.ok_or(Invalid("unknown reason"))?,
            cause,
        })
    }
}

impl Gap {
    fn read(mut fields: Fields<'_>) -> Result<Self, Invalid> {
        let gap = Self {
            sequence: fields.long()?,
            time: fields.time()?,
            after: fields.number()?,
            through: fields.number()?,
            cause: fields.bytes()?.into(),
        };
        fields.end()?;
        Ok(gap)
    }
}

/// A record after the first two of a segment.
#[derive(Debug)]
pub(crate) enum Record {
    Entry(Entry),
    /// Belongs to the changes before.
    Parts(Vec<RereadPart>),
}

/// The end of a segment's valid records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file ends after a record.
    Whole,
    /// An incomplete record follows.
    Torn,
}

/// Reads the records of one segment in order.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    path: PathBuf,
    file: BufReader<File>,
    /// Length of the file when it was opened.
    length: u64,
    /// Offset of the next record.
    offset: u64,
    start: Start,
    /// Position of the state's payload.
    state: (u64, u64),
    tail: Tail,
}

impl SegmentReader {
    /// Opens a segment, and reads its start but not its state.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(io_error("open", path))?;
        Self::of(file, path)
    }

    pub(crate) fn of(file: File, path: &Path) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(io_error("read", path))?;
        let length = metadata.len();
        let mut reader = Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 16, file),
            length,
            offset: HEADER as u64,
            start: Start {
                sequence: 0,
                time: SystemTime::UNIX_EPOCH,
                boot: [0; 16],
                namespace: 0,
                generation: 0,
                after: None,
                reason: Reason::First,
                cause: BString::default(),
            },
            state: (0, 0),
            tail: Tail::Whole,
        };
        reader.header()?;
        let (kind, payload) = reader.frame()?.ok_or_else(|| reader.damaged(MISSING))?;
        if kind != Kind::Start {
            return Err(reader.damaged_at(HEADER as u64, MISSING));
        }
        let at = HEADER as u64;
        let start = Start::read(Fields::new(&payload));
        reader.start = start.map_err(|Invalid(reason)| reader.damaged_at(at, reason))?;
        // The state is large, and only its header is needed to skip it.
        let at = reader.offset;
        let header = reader.frame_header()?;
        let fitting = header.filter(|header| reader.fits(header.1));
        let Some((Kind::State, length, sum)) = fitting else {
            return Err(reader.damaged_at(at, "its ruleset is missing or incomplete"));
        };
        if frame(Kind::State, length, Hasher::new())[12..] != sum.to_ne_bytes() {
            return Err(reader.damaged_at(at, MISMATCH));
        }
        reader.state = (at + FRAME, length);
        reader.seek(at + FRAME + length)?;
        Ok(reader)
    }

    fn header(&mut self) -> Result<(), Error> {
        let mut header = Vec::with_capacity(HEADER);
        Read::by_ref(&mut self.file)
            .take(HEADER as u64)
            .read_to_end(&mut header)
            .map_err(io_error("read", &self.path))?;
        let path = || self.path.clone();
        if !header.starts_with(&MAGIC) {
            return Err(Error::Foreign { path: path() });
        }
        let mut fields = Fields::new(&header[MAGIC.len()..]);
        let (Ok(version), Ok(order)) = (fields.number(), fields.number()) else {
            return Err(self.damaged_at(0, "it is shorter than its header"));
        };
        match (order == ORDER, version == VERSION) {
            (true, true) => Ok(()),
            (true, false) => Err(Error::Version {
                path: path(),
                version,
            }),
            (false, _) if order == ORDER.swap_bytes() => Err(Error::ByteOrder { path: path() }),
            (false, _) => Err(self.damaged_at(0, "its header is invalid")),
        }
    }

    fn damaged_at(&self, offset: u64, reason: &'static str) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            offset,
            reason,
        }
    }

    fn damaged(&self, reason: &'static str) -> Error {
        self.damaged_at(self.offset, reason)
    }

    fn content(&self, offset: u64, source: Malformed) -> Error {
        Error::Content {
            path: self.path.clone(),
            offset,
            source,
        }
    }

    fn seek(&mut self, offset: u64) -> Result<(), Error> {
        let distance = i64::try_from(offset).unwrap_or(i64::MAX)
            - i64::try_from(self.file.stream_position().unwrap_or(0)).unwrap_or(0);
        let moved = self.file.seek_relative(distance);
        moved.map_err(io_error("read", &self.path))?;
        self.offset = offset;
        Ok(())
    }

    /// Returns `true` if the file has this many bytes after a record's header.
    fn fits(&self, length: u64) -> bool {
        self.length
            .checked_sub(self.offset + FRAME)
            .is_some_and(|rest| length <= rest)
    }

    /// Reads the header of the next record: its kind, its length and its checksum. `None` if the file ends before.
    fn frame_header(&mut self) -> Result<Option<(Kind, u64, u32)>, Error> {
        let mut header = [0; FRAME as usize];
        if self.offset + FRAME > self.length {
            if self.offset < self.length {
                self.tail = Tail::Torn;
            }
            return Ok(None);
        }
        let read = self.file.read_exact(&mut header);
        read.map_err(io_error("read", &self.path))?;
        let mut fields = Fields::new(&header);
        let (Ok(length), Ok(kind), Ok(sum)) = (fields.long(), fields.number(), fields.number())
        else {
            return Ok(None);
        };
        match Kind::of(kind) {
            Some(kind) => Ok(Some((kind, length, sum))),
            // A file system may have made the file longer without its content, for example at a power failure.
            None if header == [0; FRAME as usize] && self.is_zero_from_here()? => {
                self.tail = Tail::Torn;
                Ok(None)
            }
            None => Err(self.damaged("unknown kind of record")),
        }
    }

    fn is_zero_from_here(&mut self) -> Result<bool, Error> {
        let mut buffer = [0; 4096];
        loop {
            let read = self.file.read(&mut buffer);
            match read.map_err(io_error("read", &self.path))? {
                0 => return Ok(true),
                read if buffer[..read].iter().all(|byte| *byte == 0) => {}
                _ => return Ok(false),
            }
        }
    }

    /// Reads the next record with its payload.
    fn frame(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Error> {
        if self.tail == Tail::Torn {
            return Ok(None);
        }
        let Some((kind, length, expected)) = self.frame_header()? else {
            return Ok(None);
        };
        if !self.fits(length) {
            self.tail = Tail::Torn;
            return Ok(None);
        }
        // Not larger than the file.
        let mut payload = vec![0; length as usize];
        let read = self.file.read_exact(&mut payload);
        read.map_err(io_error("read", &self.path))?;
        let mut sum = Hasher::new();
        sum.update(&payload);
        if frame(kind, length, sum)[12..] != expected.to_ne_bytes() {
            if self.offset + FRAME + length == self.length {
                self.tail = Tail::Torn;
                return Ok(None);
            }
            return Err(self.damaged(MISMATCH));
        }
        self.offset += FRAME + length;
        Ok(Some((kind, payload)))
    }

    /// Returns the next record; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, Error> {
        let at = self.offset;
        let Some((kind, payload)) = self.frame()? else {
            return Ok(None);
        };
        let invalid = |Invalid(reason)| self.damaged_at(at, reason);
        let mut fields = Fields::new(&payload);
        let entry = match kind {
            Kind::Start | Kind::State => {
                return Err(self.damaged_at(at, "a second start in one file"));
            }
            Kind::Parts => return self.parts(at, fields).map(Some),
            Kind::Gap => Entry::Gap(Gap::read(fields).map_err(invalid)?),
            Kind::Stop => {
                let time = fields.time().map_err(invalid)?;
                fields.end().map_err(invalid)?;
                Entry::Stop(time)
            }
            Kind::Change => {
                let sequence = fields.long().map_err(invalid)?;
                let time = fields.time().map_err(invalid)?;
                let process = Process::read(&mut fields).map_err(invalid)?;
                let change = Change::from_bytes(fields.rest().to_vec());
                Entry::Transaction(Transaction {
                    sequence,
                    time,
                    process,
                    change: change.map_err(|source| self.content(at, source))?,
                })
            }
        };
        Ok(Some(Record::Entry(entry)))
    }

    /// Returns the parts of the next record, if it has parts; otherwise leaves it.
    pub(crate) fn next_parts(&mut self) -> Result<Option<Vec<RereadPart>>, Error> {
        let at = self.offset;
        if self.tail == Tail::Torn {
            return Ok(None);
        }
        let header = self.frame_header()?;
        self.seek(at)?;
        match header {
            Some((Kind::Parts, ..)) => match self.next()? {
                Some(Record::Parts(parts)) => Ok(Some(parts)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn parts(&self, at: u64, mut fields: Fields<'_>) -> Result<Record, Error> {
        let invalid = |Invalid(reason)| self.damaged_at(at, reason);
        let mut parts = Vec::new();
        for _ in 0..fields.number().map_err(invalid)? {
            let is_chain = fields.flag().map_err(invalid)?;
            let name = fields.bytes().map_err(invalid)?;
            let length = fields.long().map_err(invalid)?;
            let bytes = fields.take(length).map_err(invalid)?;
            let snapshot = Snapshot::read(Cursor::new(bytes), length, &self.path);
            let snapshot = snapshot.map_err(|source| Error::Ruleset {
                path: self.path.clone(),
                offset: at,
                source: Box::new(source),
            })?;
            let part = RereadPart::from_parts(snapshot, is_chain.then(|| name.into()));
            parts.push(part.ok_or_else(|| self.damaged_at(at, "a part is not one table"))?);
        }
        fields.end().map_err(invalid)?;
        Ok(Record::Parts(parts))
    }

    /// Reads the ruleset at the start of the segment, and continues with the record after it.
    pub(crate) fn state(&mut self) -> Result<Snapshot, Error> {
        let (at, length) = self.state;
        let file = self.file.get_mut();
        let read = file.seek(SeekFrom::Start(at));
        read.map_err(io_error("read", &self.path))?;
        let snapshot = Snapshot::read(&mut *file, length, &self.path);
        let snapshot = snapshot.map_err(|source| Error::Ruleset {
            path: self.path.clone(),
            offset: at,
            source: Box::new(source),
        })?;
        let next = at + length;
        let sought = self.file.seek(SeekFrom::Start(next));
        sought.map_err(io_error("read", &self.path))?;
        self.offset = next;
        Ok(snapshot)
    }

    pub(crate) const fn start(&self) -> &Start {
        &self.start
    }

    /// Returns the offset of the next record: at the end, the length of the valid part of the file.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the offset of the first record after the state.
    pub(crate) const fn state_end(&self) -> u64 {
        self.state.0 + self.state.1
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

const MISSING: &str = "its start is missing";
const MISMATCH: &str = "its checksum does not match its content";
