//! Makes segments of any bytes, with matching lengths and checksums, for fuzz targets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bstr::BString;
use chainwright::nft::Snapshot;
use crc32fast::Hasher;

use crate::archive::segment_path;
use crate::format::{FRAME, Kind, Reason, Start, file_header, frame, record};
use crate::process::{Presence, Process};

/// Returns the path of the only segment in a directory that [`segment`] made.
#[must_use]
pub fn path(directory: &Path) -> PathBuf {
    segment_path(directory, 1)
}

/// Returns a segment with this ruleset, and with transactions of these messages.
///
/// # Errors
/// Those of [`Snapshot::write`].
pub fn segment(state: &Snapshot, changes: &[&[u8]]) -> io::Result<Vec<u8>> {
    let time = SystemTime::UNIX_EPOCH;
    let start = Start {
        sequence: 1,
        time,
        boot: [1; 16],
        namespace: 1,
        generation: 1,
        after: None,
        reason: Reason::First,
        cause: BString::default(),
    };
    let process = Process {
        presence: Presence::Present,
        thread_id: Some(2),
        thread_name: Some("nft".into()),
        process_id: Some(2),
        user: Some(0),
        command: vec!["nft".into()],
        parents: Vec::new(),
        control_group: "/".into(),
    };
    let mut bytes = file_header().to_vec();
    let mut buffer = Vec::new();
    record(&mut buffer, Kind::Start, |out| start.write(out));
    bytes.extend_from_slice(&buffer);
    let mut content = Vec::new();
    state.write(&mut content)?;
    bytes.extend_from_slice(&frame(Kind::State, content.len() as u64, Hasher::new()));
    bytes.extend_from_slice(&content);
    for (number, change) in (2_u64..).zip(changes) {
        record(&mut buffer, Kind::Change, |out| {
            out.extend_from_slice(&number.to_ne_bytes());
            out.extend_from_slice(&number.to_ne_bytes());
            process.write(out);
            out.extend_from_slice(change);
        });
        bytes.extend_from_slice(&buffer);
    }
    Ok(bytes)
}

/// Corrects the checksums of the records, as far as their lengths fit the file.
#[must_use]
pub fn with_valid_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let (mut at, head) = (file_header().len(), FRAME as usize);
    while let Some(header) = bytes.get(at..at + head) {
        let length = header
            .first_chunk()
            .map_or(0, |length| u64::from_ne_bytes(*length));
        let kind = [
            Kind::Start,
            Kind::State,
            Kind::Change,
            Kind::Parts,
            Kind::Gap,
            Kind::Stop,
        ]
        .into_iter()
        .find(|kind| header[8..12] == (*kind as u32).to_ne_bytes());
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(at + head));
        let (Some(kind), Some(end)) = (kind, end.filter(|end| *end <= bytes.len())) else {
            break;
        };
        let mut sum = Hasher::new();
        if kind != Kind::State {
            sum.update(&bytes[at + head..end]);
        }
        let header = frame(kind, length, sum);
        bytes[at..at + head].copy_from_slice(&header);
        at = end;
    }
    bytes
}
