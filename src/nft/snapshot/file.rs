//! Saves and loads snapshots.
//!
//! # The format, version 1
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `CHAINWR` and a newline |
//! | 4 | version, 1 |
//! | 4 | `0x01020304` |
//! | 4 | the snapshot's generation; 0 if it has none, or more than one |
//! | 4 | the scope's family, `NFPROTO_*`; 0 for all |
//! | 8 | time of writing, in seconds since 1970 |
//! | 16 | the boot in which it was taken (`/proc/sys/kernel/random/boot_id`), 0 if unknown |
//! | 8 | number of messages |
//! | 8 | their length in bytes, with padding |
//! | 2 + n | length and name of the scope's table; length 0 if it covers all tables |
//! | 2 + n | length and text of the kernel's release |
//! | 0 – 3 | padding to a multiple of four |
//! | … | the messages as sent by the kernel, each padded to a multiple of four |
//! | 32 | SHA-256 of all bytes before it |
//!
//! Numbers have the byte order of the machine that wrote the file, like those in netlink headers and register values:
//! the third field identifies it, and a machine with the other byte order refuses the file. Messages are
//! `struct nlmsghdr`, `struct nfgenmsg` and attributes (`linux/netlink.h`, `linux/netfilter/nfnetlink.h`,
//! `linux/netfilter/nf_tables.h`), types `NFT_MSG_NEW*`; an object precedes its members: a table, then its chains,
//! stateful objects, flowtables, sets with their elements, and rules by chain.
//!
//! A file is read in two passes. The first verifies the checksum, so that a damaged file is never loaded. Because
//! anyone can compute a checksum, the second pass doesn't trust the content either: it allocates memory for existing
//! bytes, not for declared lengths, and checks every object as if the kernel had sent it.

use std::fmt;
use std::fs::{self, File, FileType, OpenOptions, Permissions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use sha2::{Digest, Sha256};

use super::validate::MAX_MESSAGE_LENGTH;
use super::{MissingElements, Snapshot};
use crate::error::ErrorKind;
use crate::netlink::Malformed;
use crate::nft::generation::Generation;
use crate::nft::scope::Scope;
use crate::nft::{Family, Name};

const MAGIC: [u8; 8] = *b"CHAINWR\n";
const VERSION: u32 = 1;
const ORDER: u32 = 0x0102_0304;
const FIXED: usize = 64;
const CHECKSUM: usize = 32;

/// The reason why a file could not be written or read.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The snapshot lacks elements.
    #[error(transparent)]
    MissingElements(#[from] MissingElements),
    /// Reading or writing failed. An existing file is unchanged, except if `action` is `write the directory of`: then
    /// the new file is in place, but may be lost after a power failure.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        r#source: io::Error,
    },
    /// The path is not a regular file, so it is not replaced: it is a device, a directory, a pipe, a socket or a
    /// symbolic link.
    #[error("{} is {what}, but only a regular file can be replaced{hint}", path.display(), hint = match what {
        NotRegular::Link => ": use the path that it points to",
        _ => "",
    })]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// Its type.
        what: NotRegular,
    },
    /// The file doesn't have this crate's signature.
    #[error("{} is not a chainwright backup: it lacks the signature; use a file that `chainwright snapshot` or `Snapshot::save` wrote", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this crate.
    #[error("{} has format version {version}; this program reads version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file was written on a machine of the other byte order.
    #[error("{} was written on a machine with a different byte order", path.display())]
    ByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than its header declares.
    #[error("{} is truncated: {length} bytes of at least {expected}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The expected minimum length in bytes.
        expected: u64,
    },
    /// The checksum does not fit the content, or something follows it.
    #[error("{} was modified or damaged: its checksum does not match its content", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
    },
    /// The header contradicts the rest, though the checksum fits.
    #[error("{} is inconsistent: {reason}", path.display())]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        reason: &'static str,
    },
    /// The content is no ruleset, though the checksum fits.
    #[error("{} does not contain a valid ruleset: {source} (message {message})", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Index of the message, from 0.
        message: u64,
        /// The error in the message.
        source: Malformed,
    },
}

crate::debug_as_message!(FileError);

crate::classified!(FileError, |error| match error {
    Self::Io { source, .. } => source.into(),
    _ => ErrorKind::Invalid.into(),
});

/// The type of a path that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotRegular {
    /// A directory.
    Directory,
    /// A symbolic link, whatever its target.
    Link,
    /// A character or block device.
    Device,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// An unknown type.
    Unknown,
}

impl NotRegular {
    /// Returns the type; `None` for a regular file.
    fn of(kind: FileType) -> Option<Self> {
        Some(match kind {
            _ if kind.is_file() => return None,
            _ if kind.is_dir() => Self::Directory,
            _ if kind.is_symlink() => Self::Link,
            _ if kind.is_char_device() || kind.is_block_device() => Self::Device,
            _ if kind.is_fifo() => Self::Pipe,
            _ if kind.is_socket() => Self::Socket,
            _ => Self::Unknown,
        })
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Device => "a device",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Unknown => "something unknown",
        })
    }
}

/// The provenance of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Time of writing.
    pub written: SystemTime,
    /// The kernel's release, `uname -r`.
    pub kernel: String,
    /// The boot in which it was taken; 0 if unknown.
    pub boot: [u8; 16],
}

/// A writer that computes a checksum.
struct ChecksumWriter<W> {
    inner: W,
    sum: Sha256,
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A file that has not yet replaced its destination.
enum TemporaryFile {
    /// Has no name, and disappears with the process. The path is its temporary name while it replaces an existing file.
    Unnamed(File, PathBuf),
    /// For file systems without `O_TMPFILE`.
    Named(tempfile::NamedTempFile),
}

impl TemporaryFile {
    /// Creates the file in this directory, readable only by its owner.
    fn in_directory_of(path: &Path, directory: &Path) -> io::Result<Self> {
        let unnamed = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o600)
            .open(directory);
        if let Ok(file) = unnamed {
            let name = path.file_name().unwrap_or_default();
            let sum = Sha256::digest(name.as_encoded_bytes());
            let number = sum
                .first_chunk()
                .map_or(0, |first| u64::from_be_bytes(*first));
            let temporary_path = directory.join(format!(".chainwright-{number:016x}"));
            return Ok(Self::Unnamed(file, temporary_path));
        }
        tempfile::Builder::new()
            .prefix(".chainwright-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(directory)
            .map(Self::Named)
    }

    fn as_file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file, _) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }

    /// Moves the file to this path.
    fn replace(self, path: &Path) -> io::Result<()> {
        let (file, temporary_path) = match self {
            Self::Unnamed(file, temporary_path) => (file, temporary_path),
            Self::Named(file) => return file.persist(path).map(drop).map_err(|error| error.error),
        };
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = |to: &Path| -> io::Result<()> {
            let follow = AtFlags::AT_SYMLINK_FOLLOW;
            Ok(linkat(AT_FDCWD, &itself[..], AT_FDCWD, to, follow)?)
        };
        let is = |result: &io::Result<()>, kind| {
            result.as_ref().is_err_and(|error| error.kind() == kind)
        };
        let mut linked = link(path);
        // `linkat` doesn't replace a file. Concurrent saves to this path share the temporary name, for complete files.
        for _ in 0..100 {
            if !is(&linked, io::ErrorKind::AlreadyExists) {
                break;
            }
            linked = link(&temporary_path);
            if is(&linked, io::ErrorKind::AlreadyExists) {
                match fs::remove_file(&temporary_path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => continue,
                }
            }
            linked?;
            linked = fs::rename(&temporary_path, path);
            if is(&linked, io::ErrorKind::NotFound) {
                linked = link(path);
            } else if linked.is_err() {
                let _ = fs::remove_file(&temporary_path);
            }
        }
        linked
    }
}

impl Snapshot {
    /// Writes the snapshot to a file: first to an unnamed one, which then replaces the existing file, so that the path
    /// has the complete old or the complete new content at any moment, even after a crash. Only its owner can read it.
    ///
    /// It replaces only regular files, not devices, directories, pipes or sockets. It neither replaces nor follows
    /// symbolic links: otherwise anyone who may create links in a world-writable directory could choose which file root
    /// overwrites. A file created between the check and the replacement is not detected.
    ///
    /// A process that is killed during a save leaves no file, except between the two system calls that replace an
    /// existing file: then a complete file named `.chainwright-` and sixteen digits remains next to it, which the next
    /// save to the same path removes. On file systems without `O_TMPFILE` a kill at any moment may leave a file named
    /// `.chainwright-` and six letters or digits.
    ///
    /// # Errors
    /// [`FileError::MissingElements`] for a snapshot that [lacks elements](Self::lacks_elements); [`FileError::NotRegular`];
    /// [`FileError::Io`]: then an existing file is unchanged, except in the case documented there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        self.ensure_complete("saved")?;
        let path = path.as_ref();
        let fail = |action| {
            move |source| FileError::Io {
                action,
                path: path.to_owned(),
                source,
            }
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // The path itself, not the target of a link.
        let there = match fs::symlink_metadata(path) {
            Ok(there) => NotRegular::of(there.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail("stat")(error)),
        };
        if let Some(what) = there {
            return Err(FileError::NotRegular {
                path: path.to_owned(),
                what,
            });
        }
        // Opened first, so that a failure leaves everything unchanged.
        let parent = File::open(directory).map_err(fail("open the directory of"))?;
        let mut file = TemporaryFile::in_directory_of(path, directory)
            .map_err(fail("create a file next to"))?;
        self.write(BufWriter::with_capacity(1 << 20, file.as_file()))
            .map_err(fail("write"))?;
        file.as_file().sync_all().map_err(fail("write"))?;
        file.replace(path).map_err(fail("replace"))?;
        // Makes the new name durable, too.
        match parent.sync_all() {
            // The file system doesn't support it.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced.map_err(fail("write the directory of")),
        }
    }

    /// Writes the snapshot in the file format.
    ///
    /// # Errors
    /// The errors of the writer; [`InvalidInput`](io::ErrorKind::InvalidInput) for a snapshot of a table with an empty
    /// name or one of more than 65,535 bytes, which no kernel has, and, with [`MissingElements`] as its source, for one that
    /// [lacks elements](Self::lacks_elements).
    pub fn write(&self, writer: impl Write) -> io::Result<()> {
        self.ensure_complete("saved")
            .map_err(|left_out| io::Error::new(io::ErrorKind::InvalidInput, left_out))?;
        let table = self.scope.table.as_deref().map_or(&[][..], |name| name);
        // An empty name would mean all tables, and the length of a longer one doesn't fit.
        if self.scope.table.is_some() && (table.is_empty() || table.len() > usize::from(u16::MAX)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the snapshot is of a table whose name is empty or longer than 65,535 bytes",
            ));
        }
        let mut out = ChecksumWriter {
            inner: writer,
            sum: Sha256::new(),
        };
        let (mut count, mut length) = (0u64, 0u64);
        self.each(|at| {
            count += 1;
            length += self.message(at).padded_length() as u64;
            Ok::<_, io::Error>(())
        })?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let provenance = self
            .provenance
            .clone()
            .unwrap_or_else(|| Provenance::here(now.unwrap_or_default()));
        let since = provenance.written.duration_since(SystemTime::UNIX_EPOCH);
        let mut header = Vec::with_capacity(FIXED + 64);
        header.extend_from_slice(&MAGIC);
        for number in [
            VERSION,
            ORDER,
            self.generation.map_or(0, |generation| generation.number()),
            u32::from(self.scope.family.0),
        ] {
            header.extend_from_slice(&number.to_ne_bytes());
        }
        header.extend_from_slice(&since.unwrap_or_default().as_secs().to_ne_bytes());
        header.extend_from_slice(&provenance.boot);
        header.extend_from_slice(&count.to_ne_bytes());
        header.extend_from_slice(&length.to_ne_bytes());
        for text in [table, provenance.kernel.as_bytes()] {
            let length = text.len().min(usize::from(u16::MAX));
            header.extend_from_slice(&(length as u16).to_ne_bytes());
            header.extend_from_slice(&text[..length]);
        }
        header.resize(header.len().next_multiple_of(4), 0);
        out.write_all(&header)?;
        self.each(|at| {
            let message = self.message(at);
            out.write_all(message.raw)?;
            out.write_all(&[0; 3][..message.padded_length() - message.raw.len()])
        })?;
        let ChecksumWriter { mut inner, sum } = out;
        inner.write_all(&sum.finalize())?;
        inner.flush()
    }

    /// Reads a snapshot from a file.
    ///
    /// # Errors
    /// [`FileError`] identifies the problem of the file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let fail = |source| FileError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        Self::read(file, length, path)
    }

    /// Reads a snapshot of this length in the file format, from its current position: [`load`](Self::load) for a part
    /// of a file, or for memory. `path` names the input in errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(
        mut reader: impl Read + Seek,
        length: u64,
        path: impl AsRef<Path>,
    ) -> Result<Self, FileError> {
        let path = path.as_ref();
        let fail = |source| FileError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        let start = reader.stream_position().map_err(fail)?;
        let content = verify(&mut reader, length, path)?;
        reader.seek(SeekFrom::Start(start)).map_err(fail)?;
        Reading {
            file: BufReader::with_capacity(1 << 16, reader),
            left: content,
            path,
        }
        .snapshot()
    }

    /// Returns the provenance of the file that the snapshot was loaded from; `None` for a snapshot from the kernel.
    #[must_use]
    pub const fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_ref()
    }
}

impl Provenance {
    fn here(now: Duration) -> Self {
        Self {
            written: SystemTime::UNIX_EPOCH + now,
            kernel: nix::sys::utsname::uname()
                .map(|name| name.release().to_string_lossy().into_owned())
                .unwrap_or_default(),
            boot: boot(),
        }
    }
}

/// Returns the current boot ID; 0 if it is unknown.
pub(super) fn boot() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

/// Verifies the type and the checksum of a file; returns its length without the checksum.
fn verify(file: &mut impl Read, length: u64, path: &Path) -> Result<u64, FileError> {
    let fail = |source| FileError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    };
    let path = || path.to_owned();
    let mut head = Vec::with_capacity(FIXED);
    Read::by_ref(file)
        .take(length.min(FIXED as u64))
        .read_to_end(&mut head)
        .map_err(fail)?;
    if head.is_empty() || !head.starts_with(&MAGIC[..head.len().min(8)]) {
        return Err(FileError::Foreign { path: path() });
    }
    let truncated = |expected| FileError::Truncated {
        path: path(),
        length,
        expected,
    };
    let Some(head) = head.first_chunk::<FIXED>() else {
        return Err(truncated((FIXED + CHECKSUM) as u64));
    };
    let order = number(head, 12);
    if order != ORDER {
        return Err(match order == ORDER.swap_bytes() {
            true => FileError::ByteOrder { path: path() },
            false => FileError::Altered { path: path() },
        });
    }
    let version = number(head, 8);
    if version != VERSION {
        return Err(FileError::Version {
            path: path(),
            version,
        });
    }
    let expected = u64::from_ne_bytes(at(head, 56)).saturating_add((FIXED + 4 + CHECKSUM) as u64);
    if length < expected {
        return Err(truncated(expected));
    }
    let mut sum = Sha256::new();
    sum.update(head);
    let mut left = length - (FIXED + CHECKSUM) as u64;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let part = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        file.read_exact(&mut buffer[..part]).map_err(fail)?;
        sum.update(&buffer[..part]);
        left -= part as u64;
    }
    let mut checksum = [0; CHECKSUM];
    file.read_exact(&mut checksum).map_err(fail)?;
    if sum.finalize()[..] != checksum {
        return Err(FileError::Altered { path: path() });
    }
    Ok(length - CHECKSUM as u64)
}

fn at<const N: usize>(head: &[u8; FIXED], at: usize) -> [u8; N] {
    std::array::from_fn(|index| head[at + index])
}

fn number(head: &[u8; FIXED], offset: usize) -> u32 {
    u32::from_ne_bytes(at(head, offset))
}

/// The second pass over a file.
struct Reading<'p, R> {
    file: BufReader<R>,
    /// Number of remaining bytes before the checksum.
    left: u64,
    path: &'p Path,
}

impl<R: Read> Reading<'_, R> {
    fn inconsistent(&self, reason: &'static str) -> FileError {
        FileError::Inconsistent {
            path: self.path.to_owned(),
            reason,
        }
    }

    /// Reads exactly this many bytes.
    fn exact(&mut self, bytes: &mut [u8]) -> Result<(), FileError> {
        let length = bytes.len() as u64;
        let Some(left) = self.left.checked_sub(length) else {
            return Err(self.inconsistent("its header is longer than the file"));
        };
        self.left = left;
        self.file.read_exact(bytes).map_err(|source| FileError::Io {
            action: "read",
            path: self.path.to_owned(),
            source,
        })
    }

    fn text(&mut self, length: &mut usize) -> Result<Vec<u8>, FileError> {
        let mut bytes = [0; 2];
        self.exact(&mut bytes)?;
        let mut text = vec![0; u16::from_ne_bytes(bytes).into()];
        self.exact(&mut text)?;
        *length += 2 + text.len();
        Ok(text)
    }

    fn snapshot(mut self) -> Result<Snapshot, FileError> {
        let mut head = [0; FIXED];
        self.exact(&mut head)?;
        let mut length = FIXED;
        let table = self.text(&mut length)?;
        let kernel = self.text(&mut length)?;
        let padding = length.next_multiple_of(4) - length;
        self.exact(&mut [0; 3][..padding])?;
        let Ok(family) = u8::try_from(number(&head, 20)) else {
            return Err(self.inconsistent("unknown family in its header"));
        };
        let generation = number(&head, 16);
        let mut snapshot = Snapshot {
            generation: (generation != 0).then_some(Generation::recorded(generation)),
            scope: Scope {
                family: Family(family),
                table: (!table.is_empty()).then(|| Name::from(&table[..]).into_owned()),
            },
            provenance: Some(Provenance {
                written: SystemTime::UNIX_EPOCH
                    .checked_add(Duration::from_secs(u64::from_ne_bytes(at(&head, 24))))
                    .unwrap_or(SystemTime::UNIX_EPOCH),
                kernel: String::from_utf8_lossy(&kernel).into_owned(),
                boot: at(&head, 32),
            }),
            ..Snapshot::default()
        };
        if self.left != u64::from_ne_bytes(at(&head, 56)) {
            return Err(self.inconsistent("the size of its messages differs from its header"));
        }
        let count = u64::from_ne_bytes(at(&head, 48));
        for number in 0..count {
            if self.left == 0 {
                return Err(self.inconsistent("it has fewer messages than its header declares"));
            }
            self.message(&mut snapshot, number)?;
        }
        if self.left != 0 {
            return Err(self.inconsistent("it has more messages than its header declares"));
        }
        if !snapshot.is_in_scope() {
            return Err(self.inconsistent("it contains a table outside its scope"));
        }
        snapshot.close();
        Ok(snapshot)
    }

    /// Reads and indexes the message with this index.
    fn message(&mut self, snapshot: &mut Snapshot, number: u64) -> Result<(), FileError> {
        let path = self.path;
        let source = |source| FileError::Content {
            path: path.to_owned(),
            message: number,
            source,
        };
        let fail = |reason| {
            source(Malformed {
                what: "message",
                offset: 0,
                reason,
            })
        };
        let mut length = [0; 4];
        if self.left < length.len() as u64 {
            return Err(fail("it is longer than the rest of the file"));
        }
        self.exact(&mut length)?;
        let whole = u32::from_ne_bytes(length);
        if !(20..=MAX_MESSAGE_LENGTH).contains(&whole) {
            return Err(fail("invalid length"));
        }
        let padded = (whole as usize).next_multiple_of(4);
        if self.left < (padded - length.len()) as u64 {
            return Err(fail("it is longer than the rest of the file"));
        }
        let space = snapshot
            .arena
            .space(padded)
            .map_err(|full| source(full.into()))?;
        space[..4].copy_from_slice(&length);
        self.exact(&mut space[4..])?;
        let at = snapshot.arena.take(padded);
        snapshot.admit(at).map_err(source)
    }
}
