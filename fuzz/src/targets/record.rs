//! A recorder's files: every entry can be read or is an error that names the file; every state can be rebuilt, listed in
//! nft's language and saved.

use std::fs;

use chainwright::nft::Snapshot;
use chainwright_lang::{Listing, Options};
use chainwright_record::{Archive, Moment, fuzzing};

use crate::Target;
use crate::mutate::InputFormat;

/// The target wraps messages of transactions in a file, and corrects the checksums of other files.
pub const TARGET: Target = Target {
    name: "record",
    input_format: InputFormat::Messages,
    run,
};

/// The type of the message that ends a transaction, `NFT_MSG_NEWGEN`.
const NEWGEN: u16 = 0xa0f;

fn run(input: &[u8]) {
    if input.starts_with(b"CHAINRC\n") {
        read(input);
        read(&fuzzing::with_valid_checksums(input.to_vec()));
        return;
    }
    read(&file(input));
}

/// A file with these messages as transactions.
#[must_use]
pub fn file(messages: &[u8]) -> Vec<u8> {
    let mut changes: Vec<&[u8]> = Vec::new();
    let (mut start, mut at) = (0, 0);
    for message in chainwright::netlink::Messages::new(messages).map_while(Result::ok) {
        at = (at + message.padded_length()).min(messages.len());
        if message.kind == NEWGEN {
            changes.push(&messages[start..at]);
            start = at;
        }
    }
    changes.push(&messages[start..]);
    fuzzing::segment(&Snapshot::default(), &changes).expect("cannot write to memory")
}

fn read(bytes: &[u8]) {
    let directory = tempfile::tempdir_in("/dev/shm").expect("cannot create a directory in memory");
    let path = fuzzing::path(directory.path());
    fs::write(&path, bytes).expect("cannot write a file in memory");
    let archive = Archive::open(directory.path()).expect("the file is there");
    for entry in archive.entries() {
        match entry {
            Ok(entry) => assert!(!format!("{entry:?}").is_empty()),
            Err(error) => assert!(
                error.to_string().contains(&path.display().to_string()),
                "{error}"
            ),
        }
    }
    if let Ok(state) = archive.state_at(Moment::Now) {
        let _ = Listing::new(&state.snapshot, &Options::default()).to_string();
        state
            .snapshot
            .write(std::io::sink())
            .expect("cannot write to nothing");
    }
}
