//! Snapshot files: a loaded snapshot is saved so that it is loaded as the same, and can be listed in nft's
//! language.

use std::io::Write;

use chainwright::nft::{DiffOptions, FileError, Snapshot};
use chainwright_lang::{Listing, Options};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use crate::Target;
use crate::mutate::InputFormat;

/// The target: messages, which get a matching header; and the same bytes as a file whose checksum is corrected.
pub const TARGET: Target = Target {
    name: "snapshot",
    input_format: InputFormat::Messages,
    run,
};

/// The file with these messages and this count; `src/nft/snapshot/file.rs` documents it.
#[must_use]
pub fn file(messages: &[u8], count: u64) -> Vec<u8> {
    let mut bytes = b"CHAINWR\n".to_vec();
    for number in [1_u32, 0x0102_0304, 7, 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(0_u64.to_ne_bytes());
    bytes.extend([0; 16]);
    bytes.extend(count.to_ne_bytes());
    bytes.extend((messages.len() as u64).to_ne_bytes());
    // No table, no kernel.
    bytes.extend([0; 4]);
    bytes.extend(messages);
    with_checksum(bytes)
}

/// Appends the checksum.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    bytes
}

fn run(input: &[u8]) {
    if input.starts_with(b"CHAINWR\n") {
        load(input);
        load(&with_checksum(
            input[..input.len().saturating_sub(32)].to_vec(),
        ));
        return;
    }
    let mut count = 0;
    let mut messages = Vec::new();
    for message in chainwright::netlink::Messages::new(input).flatten() {
        count += 1;
        messages.extend(message.raw);
        messages.resize(messages.len().next_multiple_of(4), 0);
    }
    load(&file(&messages, count));
    let whole = input.len() / 4 * 4;
    load(&file(&input[..whole], count));
}

fn load(bytes: &[u8]) {
    let mut file =
        tempfile::NamedTempFile::new_in("/dev/shm").expect("cannot create a file in memory");
    file.write_all(bytes)
        .expect("cannot write a file in memory");
    let snapshot = match Snapshot::load(file.path()) {
        Ok(snapshot) => snapshot,
        Err(error @ FileError::Io { .. }) => panic!("{error:?}"),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let _ = format!("{snapshot:?}");
    // In nft's language only rules and objects start lines: names cannot contain line breaks.
    let text = Listing::new(&snapshot, &Options::default()).to_string();
    assert!(
        text.chars()
            .all(|c| c == '\n' || c == '\t' || !c.is_control()),
        "{text:?}"
    );
    // As libnftables' JSON it is one document, at any depth.
    let listed = Listing::new(&snapshot, &Options::default())
        .json()
        .to_string();
    let mut reader = serde_json::Deserializer::from_str(&listed);
    reader.disable_recursion_limit();
    let read = IgnoredAny::deserialize(&mut reader).and_then(|_| reader.end());
    assert!(read.is_ok(), "{read:?}: {listed}");
    let json = serde_json::to_string(&snapshot).ok();
    let mut saved = Vec::new();
    snapshot.write(&mut saved).expect("cannot write to memory");
    let mut again =
        tempfile::NamedTempFile::new_in("/dev/shm").expect("cannot create a file in memory");
    again
        .write_all(&saved)
        .expect("cannot write a file in memory");
    let other = Snapshot::load(again.path()).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(serde_json::to_string(&other).ok(), json);
    let difference = snapshot.diff(&other, DiffOptions::default()).unwrap();
    assert!(difference.is_empty(), "{difference}");
    // From then on the order is that of the file.
    let mut third = Vec::new();
    other.write(&mut third).expect("cannot write to memory");
    // Except for the time of writing.
    assert_eq!(third.len(), saved.len());
    assert_eq!(third[64..third.len() - 32], saved[64..saved.len() - 32]);
}
