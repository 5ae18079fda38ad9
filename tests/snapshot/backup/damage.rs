//! Damaged files: the checksum detects them.

use chainwright::nft::Connection;
use chainwright_testing::Sandbox;

use super::*;
use crate::common::random::Random;

/// A namespace whose ruleset is compared again at the end.
struct Bystander {
    nft: Connection,
    generation: Generation,
    _sandbox: Sandbox,
}

impl Bystander {
    fn new() -> Self {
        let sandbox = sandbox();
        Tools::new(&sandbox).run_with("nft -f -", SMALL);
        let mut nft = connect(&sandbox);
        let generation = nft.generation().unwrap();
        Self {
            nft,
            generation,
            _sandbox: sandbox,
        }
    }

    fn untouched(mut self) {
        assert_eq!(self.nft.generation().unwrap(), self.generation);
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let place = BackupDirectory::new();
    let bystander = Bystander::new();
    let check = |bytes: &[u8], length: usize| {
        let error = place.refused(&bytes[..length]);
        let fits = match (&error, length) {
            (FileError::Foreign { .. }, 0) => true,
            (
                FileError::Truncated {
                    length: found,
                    expected,
                    ..
                },
                _,
            ) => *found == length as u64 && *expected > *found && *expected <= bytes.len() as u64,
            // Its end was read as the checksum: the header does not contain the total length of its
            // names.
            (FileError::Altered { .. }, length) => length + 400 > bytes.len(),
            _ => false,
        };
        assert!(fits, "{length} of {}: {error:?}", bytes.len());
    };
    let small = file_of(&snapshot_of(SMALL));
    assert!(small.len() < 2500, "{}", small.len());
    for length in 0..small.len() {
        check(&small, length);
    }
    let large = file_of(&large());
    assert!(large.len() > 100_000, "{}", large.len());
    let mut random = Random::new();
    for _ in 0..200 {
        check(&large, random.below(large.len()));
    }
    bystander.untouched();
}

#[test]
fn every_flipped_bit_is_detected() {
    let place = BackupDirectory::new();
    let bystander = Bystander::new();
    let check = |bytes: &mut Vec<u8>, bit: usize| {
        let (at, mask) = (bit / 8, 1 << (bit % 8));
        bytes[at] ^= mask;
        let error = place.refused(bytes);
        let fits = match error {
            FileError::Foreign { .. } => at < 8,
            FileError::Version { .. } => (8..12).contains(&at),
            FileError::Truncated { .. } => (56..64).contains(&at),
            FileError::Altered { .. } => at >= 12,
            _ => false,
        };
        assert!(fits, "bit {bit}: {error:?}");
        bytes[at] ^= mask;
    };
    let mut small = file_of(&snapshot_of(SMALL));
    for bit in 0..small.len() * 8 {
        check(&mut small, bit);
    }
    let mut large = file_of(&large());
    let mut random = Random::new();
    for _ in 0..100 {
        let bit = random.below(large.len() * 8);
        check(&mut large, bit);
    }
    assert!(place.load(&large).is_ok());
    bystander.untouched();
}

#[test]
fn data_after_the_checksum_is_refused() {
    let place = BackupDirectory::new();
    let bytes = file_of(&snapshot_of(SMALL));
    for more in [&[0][..], &[0; 4], &[0xff; 32], &bytes] {
        let error = place.refused(&[&bytes[..], more].concat());
        assert!(matches!(error, FileError::Altered { .. }), "{error:?}");
    }
}

#[test]
fn rejects_other_kinds_of_files() {
    let place = BackupDirectory::new();
    let bytes = file_of(&snapshot_of(SMALL));
    for other in [&b""[..], b"#!/usr/sbin/nft -f\n", &[0; 1000], b"CHAINWR\r"] {
        let error = place.refused(other);
        assert!(matches!(error, FileError::Foreign { .. }), "{error:?}");
    }
    // As written by a machine with the other byte order.
    let mut swapped = bytes.clone();
    for at in [8, 12, 16, 20] {
        swapped[at..at + 4].reverse();
    }
    let error = place.refused(&swapped);
    assert!(matches!(error, FileError::ByteOrder { .. }), "{error:?}");
    // As written by a newer version of the crate.
    for version in [0, 2, u32::MAX] {
        let mut parts = Parts::of(&bytes);
        parts.set(8, &version.to_ne_bytes());
        match place.refused(&parts.file()) {
            FileError::Version { version: found, .. } => assert_eq!(found, version),
            error => panic!("{error:?}"),
        }
    }
    // Not a file, or missing.
    for path in [place.0.path().to_owned(), place.0.path().join("nothing")] {
        match Snapshot::load(&path).unwrap_err() {
            FileError::Io { path: named, .. } => assert_eq!(named, path),
            error => panic!("{error:?}"),
        }
    }
    assert!(matches!(
        Snapshot::load("/dev/zero"),
        Err(FileError::Foreign { .. })
    ));
}
