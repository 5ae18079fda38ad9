//! Snapshots in files: what is written is read back, and of all else nothing is taken for a ruleset.

mod common;

use std::cell::{Cell, RefCell};
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use caps::{CapSet, Capability};
use chainwright::Error;
use chainwright::netns::Sandbox;
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::{
    Chain, Connection, Family, FileError, Filter, Generation, NotRegular, Outcome, Rule, Snapshot,
    Table, Transaction,
};
use common::tools::Tools;
use common::{connect, kernel, report, sandbox};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const IP: Family = Family::IP;
/// Where the header's first name stands; what is before it has a fixed place.
const FIXED: usize = 64;
const CHECKSUM: usize = 32;

/// One of each kind of object that nft makes, as small as it can be.
const SMALL: &str = "table ip t {
    counter n { packets 1 bytes 2; }
    set s { type ipv4_addr; elements = { 10.0.0.1 }; }
    map m { type ipv4_addr : verdict; elements = { 10.0.0.2 : jump c }; }
    chain c { counter name n accept; }
    chain b { type filter hook input priority 0; ip saddr @s drop; ip saddr vmap @m; }
}";

/// Expressions that hold expressions, and long lists.
const LARGE: &str = "table inet large {
    comment \"a table\"
    set d { type ipv4_addr; flags dynamic, timeout; timeout 1h; size 100; }
    set i { type ipv4_addr; flags interval; counter; elements = { 10.0.0.0/8, 192.168.0.1-192.168.0.9 }; }
    set k { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 1-9 }; }
    map p { type inet_service : ipv4_addr; elements = { 80 : 10.0.0.1, 81 : 10.0.0.2 }; }
    quota q { over 1 mbytes; }
    limit l { rate 1/second; }
    ct helper h { type \"ftp\" protocol tcp; }
    chain c { add @d { ip saddr limit rate 1/second }; tcp dport { 1, 2, 3 } log prefix \"x\" accept; }
    chain b { type filter hook input priority 0; policy drop; counter jump c; quota name \"q\"; limit rate 5/minute; reject; }
    chain n { type nat hook prerouting priority -100; dnat ip to tcp dport map @p; }
}
table netdev e { }
table ip6 f { chain x { meta mark set 1; ct mark set meta mark; }; }";

/// The snapshot of a ruleset in nft's language.
#[track_caller]
fn snapshot_of(text: &str) -> Snapshot {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", text);
    connect(&sandbox).snapshot(Filter::all()).unwrap()
}

/// Many chains, rules and elements beside the others.
fn large() -> Snapshot {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", LARGE);
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "many")).unwrap();
    for number in 0..400 {
        let name = format!("c{number}");
        tx.add(&Chain::new(IP, "many", &name)).unwrap();
        for count in 0..number % 5 {
            tx.add(
                &Rule::new(IP, "many", &name)
                    .with(&Counter::new(count, number))
                    .with(&Immediate::accept()),
            )
            .unwrap();
        }
    }
    nft.commit(&tx).unwrap();
    nft.snapshot(Filter::all()).unwrap()
}

fn file_of(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot.write(&mut bytes).unwrap();
    bytes
}

/// A directory with a file that is written anew each time.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("backup")
    }

    fn load(&self, bytes: &[u8]) -> Result<Snapshot, FileError> {
        fs::write(self.path(), bytes).unwrap();
        Snapshot::load(self.path())
    }

    /// The error that loading these bytes gives; it says which file it is.
    #[track_caller]
    fn refused(&self, bytes: &[u8]) -> FileError {
        let error = match self.load(bytes) {
            Err(error) => error,
            Ok(snapshot) => panic!("it was taken for a snapshot: {snapshot:?}"),
        };
        let text = error.to_string();
        assert!(text.contains(self.path().to_str().unwrap()), "{text}");
        error
    }

    /// What stands in the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// A file taken apart, to be put together in another way.
#[derive(Debug, Clone)]
struct Parts {
    head: [u8; FIXED],
    table: Vec<u8>,
    kernel: Vec<u8>,
    messages: Vec<Vec<u8>>,
}

fn half(bytes: &[u8], at: usize) -> usize {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let mut at = FIXED;
        let mut text = || {
            let end = at + 2 + half(bytes, at);
            let text = bytes[at + 2..end].to_vec();
            at = end;
            text
        };
        let (table, kernel) = (text(), text());
        let mut rest = &bytes[at.next_multiple_of(4)..bytes.len() - CHECKSUM];
        let mut messages = Vec::new();
        while let Some(length) = rest.first_chunk() {
            let length = (u32::from_ne_bytes(*length) as usize).next_multiple_of(4);
            let (message, behind) = rest.split_at(length);
            messages.push(message.to_vec());
            rest = behind;
        }
        let parts = Self {
            head: *bytes.first_chunk().unwrap(),
            table,
            kernel,
            messages,
        };
        assert!(parts.clone().file() == bytes, "these are its parts");
        parts
    }

    fn set(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.head[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Writes the numbers of messages and bytes that there are.
    fn counted(mut self) -> Self {
        let length: usize = self.messages.iter().map(Vec::len).sum();
        let count = self.messages.len() as u64;
        self.set(48, &count.to_ne_bytes());
        self.set(56, &(length as u64).to_ne_bytes());
        self
    }

    /// The content without a checksum.
    fn content(&self) -> Vec<u8> {
        let mut bytes = self.head.to_vec();
        for text in [&self.table, &self.kernel] {
            bytes.extend_from_slice(&(text.len() as u16).to_ne_bytes());
            bytes.extend_from_slice(text);
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(self.messages.concat());
        bytes
    }

    fn file(self) -> Vec<u8> {
        sealed(self.content())
    }
}

/// The content with the checksum that fits it.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let sum = Sha256::digest(&content);
    content.extend_from_slice(&sum);
    content
}

/// A message of nf_tables: type, family, attributes.
fn message(kind: u16, family: u8, attributes: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(20 + attributes.len() as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.resize(16, 0);
    bytes.extend_from_slice(&[family, 0, 0, 0]);
    bytes.extend_from_slice(attributes);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute with its padding.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(4 + payload.len() as u16).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Goes through all that a snapshot gives.
fn walk(snapshot: &Snapshot) {
    let mut text = format!(
        "{snapshot}{snapshot:?}{:?}{:?}{:?}",
        snapshot.generation(),
        snapshot.scope(),
        snapshot.provenance()
    );
    let mut add = |what: &dyn std::fmt::Debug| text += &format!("{what:?}");
    for table in snapshot.tables() {
        let (family, name) = (table.table().family(), table.table().name().to_owned());
        add(&table.table().to_builder());
        assert!(snapshot.table(family, &name).is_some());
        for chain in table.chains() {
            let view = chain.chain();
            add(&view.to_builder());
            assert!(snapshot.chain(family, &name, view.name()).is_some());
            for rule in chain.rules() {
                add(&rule.to_builder());
                add(&rule.comment());
                add(&rule.to_string());
                for expression in rule
                    .expressions()
                    .into_iter()
                    .flatten()
                    .map_while(Result::ok)
                {
                    add(&expression.decode().map(|decoded| decoded.to_string()));
                    add(&expression.to_request());
                }
            }
        }
        for set in table.sets() {
            let view = set.set();
            add(&view.to_builder());
            add(&view.to_string());
            assert!(table.set(view.name()).is_some());
            for element in set.elements() {
                add(&element.to_builder());
                add(&element.to_string());
                add(&element.key_bytes().map(|key| set.element(key).is_some()));
            }
        }
        for object in table.objects() {
            add(&object.to_builder());
            add(&object.to_string());
            assert!(table.object(object.object_type(), object.name()).is_some());
        }
        for flowtable in table.flowtables() {
            add(&flowtable.to_builder());
            assert!(table.flowtable(flowtable.name()).is_some());
        }
        assert!(table.set("no such set").is_none());
    }
    #[cfg(feature = "serde")]
    {
        // What is malformed has no typed form, and the error says so.
        match serde_json::to_string(snapshot) {
            Ok(json) => {
                // And back: the same.
                let again: Snapshot =
                    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
                assert_eq!(serde_json::to_string(&again).unwrap(), json);
                text += &json;
            }
            Err(error) => {
                let said = error.to_string();
                let known = [
                    "malformed",
                    "not all in the list is an expression",
                    "the name ",
                ];
                assert!(known.iter().any(|known| said.starts_with(known)), "{said}");
            }
        }
    }
    assert!(snapshot.memory() >= snapshot.byte_length());
    assert!(!text.is_empty());
    let mut tx = Transaction::new();
    let _ = snapshot.write_to(&mut tx); // what is too long is said
}

// ---------------------------------------------------------------------------------------------
// There and back.

#[test]
fn a_file_gives_back_what_was_written() {
    for snapshot in [
        snapshot_of(SMALL),
        large(),
        snapshot_of(""),
        snapshot_of(include_str!("rulesets/scenario-container-host.nft")),
    ] {
        let place = Place::new();
        snapshot.save(place.path()).unwrap();
        let bytes = fs::read(place.path()).unwrap();
        assert_eq!(place.names(), ["backup"]);
        let loaded = Snapshot::load(place.path()).unwrap();
        assert_eq!(loaded.generation(), snapshot.generation());
        assert!(loaded.generation().is_some());
        assert_eq!(loaded.scope(), snapshot.scope());
        assert_eq!(loaded.byte_length(), snapshot.byte_length());
        assert_eq!(loaded.to_string(), snapshot.to_string());
        // The messages are in both as the kernel sent them; the header differs by the time at most.
        let (file, again) = (Parts::of(&bytes), Parts::of(&file_of(&snapshot)));
        assert_eq!(file.messages, again.messages);
        assert_eq!(
            file.messages.concat().len(),
            snapshot.byte_length(),
            "each stands there once"
        );
        assert_eq!((file.table, file.kernel), (again.table, again.kernel));

        let provenance = loaded.provenance().unwrap();
        let ago = provenance.written.elapsed().unwrap();
        assert!(ago.as_secs() < 3600, "{ago:?}");
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(provenance.kernel, release.trim());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let hex: String = provenance.boot.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, boot.trim().replace('-', ""));
        assert!(snapshot.provenance().is_none());

        // What was loaded and is saved again keeps its provenance: the file is the same.
        assert!(file_of(&loaded) == bytes);
        walk(&loaded);
    }
}

#[test]
fn the_scope_is_kept() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", SMALL);
    tools.run_with("nft -f -", LARGE);
    let mut nft = connect(&sandbox);
    let place = Place::new();
    for (scope, tables) in [
        (Filter::all(), 4),
        (Filter::family(IP), 1),
        (Filter::family(Family::BRIDGE), 0),
        (Filter::table(IP, "t"), 1),
        (Filter::table(Family::INET, "t"), 0),
        (Filter::table(Family::UNSPEC, "t"), 1),
    ] {
        let snapshot = nft.snapshot(scope.clone()).unwrap();
        snapshot.save(place.path()).unwrap();
        let loaded = Snapshot::load(place.path()).unwrap();
        assert_eq!(*loaded.scope(), scope);
        assert_eq!(loaded.tables().len(), tables, "{scope:?}");
    }
    // The length of an empty name would stand for all tables.
    let snapshot = nft.snapshot(Filter::table(IP, "")).unwrap();
    let error = snapshot.save(place.path()).unwrap_err();
    assert!(report(&error).contains("empty name"), "{}", report(&error));
    // A name that none can have is not cut.
    #[cfg(feature = "serde")]
    {
        let scope = serde_json::json!({"family": "ip", "table": "x".repeat(65_536)});
        let json = serde_json::json!({"generation": null, "scope": scope, "tables": []});
        let error = serde_json::from_value::<Snapshot>(json).unwrap_err();
        assert!(report(&error).contains("65536 bytes long"), "{error}");
    }
    assert_eq!(place.names(), ["backup"]);
}

#[test]
fn a_snapshot_without_a_generation_has_none_when_it_is_loaded() {
    let place = Place::new();
    let mut parts = Parts::of(&file_of(&snapshot_of(SMALL)));
    parts.set(16, &[0; 4]);
    let loaded = place.load(&parts.clone().file()).unwrap();
    assert_eq!(loaded.generation(), None);
    assert_eq!(Parts::of(&file_of(&loaded)).head, parts.head);
    parts.set(16, &7u32.to_ne_bytes());
    let loaded = place.load(&parts.file()).unwrap();
    assert_eq!(loaded.generation(), Some(Generation(7)));
}

// ---------------------------------------------------------------------------------------------
// Damage.

/// A namespace with a ruleset that is looked at again in the end.
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

/// So that a failure can be repeated.
fn seed() -> u64 {
    let seed = match std::env::var("SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            now.as_nanos() as u64
        }
    };
    println!("SEED={seed}");
    seed
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

#[test]
fn a_truncated_file_is_refused() {
    let place = Place::new();
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
            // Its end was taken for the checksum: the header does not say how long its names are.
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
    let mut random = Random(seed());
    for _ in 0..200 {
        check(&large, random.below(large.len()));
    }
    bystander.untouched();
}

#[test]
fn every_bit_counts() {
    let place = Place::new();
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
    let mut random = Random(seed());
    for _ in 0..100 {
        let bit = random.below(large.len() * 8);
        check(&mut large, bit);
    }
    assert!(place.load(&large).is_ok());
    bystander.untouched();
}

#[test]
fn what_follows_the_checksum_is_refused() {
    let place = Place::new();
    let bytes = file_of(&snapshot_of(SMALL));
    for more in [&[0][..], &[0; 4], &[0xff; 32], &bytes] {
        let error = place.refused(&[&bytes[..], more].concat());
        assert!(matches!(error, FileError::Altered { .. }), "{error:?}");
    }
}

#[test]
fn other_files_are_told_apart() {
    let place = Place::new();
    let bytes = file_of(&snapshot_of(SMALL));
    for other in [&b""[..], b"#!/usr/sbin/nft -f\n", &[0; 1000], b"CHAINWR\r"] {
        let error = place.refused(other);
        assert!(matches!(error, FileError::Foreign { .. }), "{error:?}");
    }
    // As a machine of the other byte order writes them.
    let mut swapped = bytes.clone();
    for at in [8, 12, 16, 20] {
        swapped[at..at + 4].reverse();
    }
    let error = place.refused(&swapped);
    assert!(matches!(error, FileError::ByteOrder { .. }), "{error:?}");
    // As a newer version of the crate does.
    for version in [0, 2, u32::MAX] {
        let mut parts = Parts::of(&bytes);
        parts.set(8, &version.to_ne_bytes());
        match place.refused(&parts.file()) {
            FileError::Version { version: found, .. } => assert_eq!(found, version),
            error => panic!("{error:?}"),
        }
    }
    // What is no file, or not there.
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

// ---------------------------------------------------------------------------------------------
// Files that somebody made by hand: the checksum fits.

/// Loads in bounded memory: the most heap that there was at once, in bytes.
#[track_caller]
fn refused_cheaply(place: &Place, bytes: &[u8]) -> FileError {
    fs::write(place.path(), bytes).unwrap();
    let mut error = None;
    let heap = allocation_counter::measure(|| {
        error = Snapshot::load(place.path()).err();
    });
    // The read buffer takes one of them, room for the longest message 4 MiB at most.
    assert!(heap.bytes_max < 8 << 20, "{heap:?}");
    error.expect("it is refused")
}

#[test]
fn lengths_that_lie_are_refused() {
    let place = Place::new();
    let parts = || Parts::of(&file_of(&snapshot_of(SMALL)));
    let count = parts().messages.len() as u64;
    let length = parts().messages.concat().len() as u64;
    // The number of messages.
    for wrong in [
        0,
        1,
        count - 1,
        count + 1,
        1 << 31,
        1 << 32,
        1 << 60,
        u64::MAX,
    ] {
        let mut parts = parts();
        parts.set(48, &wrong.to_ne_bytes());
        let error = refused_cheaply(&place, &parts.file());
        assert!(
            matches!(error, FileError::Inconsistent { .. }),
            "{wrong}: {error:?}"
        );
    }
    // Their length.
    for wrong in [
        0,
        1,
        length - 4,
        length + 1,
        length + 4,
        1 << 31,
        1 << 60,
        u64::MAX,
    ] {
        let mut parts = parts();
        parts.set(56, &wrong.to_ne_bytes());
        let error = refused_cheaply(&place, &parts.file());
        match error {
            FileError::Inconsistent { .. } => assert!(wrong < length + 400),
            FileError::Truncated { .. } => assert!(wrong > length),
            error => panic!("{wrong}: {error:?}"),
        }
    }
    // Those of the names.
    for at in [FIXED, FIXED + 2] {
        for wrong in [1, 8, 0x1000, 0xffff_u16] {
            let mut content = parts().content();
            content[at..at + 2].copy_from_slice(&wrong.to_ne_bytes());
            let error = refused_cheaply(&place, &sealed(content));
            assert!(
                matches!(
                    error,
                    FileError::Inconsistent { .. } | FileError::Content { .. }
                ),
                "{at} {wrong}: {error:?}"
            );
        }
    }
    // Those of messages; what comes behind is then read from somewhere else.
    for number in 0..count as usize {
        let whole = parts().messages[number].len() as u32;
        for wrong in [
            0,
            1,
            15,
            16,
            19,
            whole - 4,
            whole + 4,
            1 << 20,
            1 << 31,
            u32::MAX - 2,
            u32::MAX,
        ] {
            let mut parts = parts();
            parts.messages[number][..4].copy_from_slice(&wrong.to_ne_bytes());
            let error = refused_cheaply(&place, &parts.file());
            assert!(
                matches!(
                    error,
                    FileError::Inconsistent { .. } | FileError::Content { .. }
                ),
                "{number} {wrong}: {error:?}"
            );
        }
    }
    // A message of the greatest length that is in the file, and none of the nf_tables.
    for (length, refused) in [(1 << 20, true), ((1 << 20) + 4, true)] {
        let mut parts = parts();
        parts.messages = vec![message(0xa00, 2, &vec![0; length - 20])];
        assert_eq!(place.load(&parts.counted().file()).is_err(), refused);
    }
}

#[test]
fn bytes_between_the_messages_and_the_checksum_are_refused() {
    let place = Place::new();
    for more in [1, 3, 4, 20, 32, 100] {
        let mut content = Parts::of(&file_of(&snapshot_of(SMALL))).content();
        content.resize(content.len() + more, 0);
        let error = place.refused(&sealed(content));
        assert!(
            matches!(error, FileError::Inconsistent { .. }),
            "{more}: {error:?}"
        );
    }
    // Nothing but the header's fixed part.
    for length in [FIXED, FIXED + 2, FIXED + 4] {
        let mut parts = Parts::of(&file_of(&snapshot_of("")));
        parts.kernel.clear();
        let mut content = parts.content();
        content.truncate(length);
        let whole = length == FIXED + 4;
        assert_eq!(place.load(&sealed(content)).is_ok(), whole, "{length}");
    }
}

#[test]
fn what_is_no_ruleset_is_refused() {
    let place = Place::new();
    let parts = Parts::of(&file_of(&snapshot_of(SMALL)));
    let refuse = |messages: Vec<Vec<u8>>| match place.refused(
        &Parts {
            messages,
            ..parts.clone()
        }
        .counted()
        .file(),
    ) {
        FileError::Content { message, .. } => message,
        error => panic!("{error:?}"),
    };
    let table = message(
        0xa00,
        2,
        &[attribute(1, b"t\0"), attribute(4, &[0; 8])].concat(),
    );
    let alone = Parts {
        messages: vec![table.clone()],
        ..parts.clone()
    };
    assert!(place.load(&alone.counted().file()).is_ok());

    // Types that are no objects: requests, deletions, other subsystems, netlink's own.
    for kind in [
        0xa01, 0xa02, 0xa05, 0xa06, 0xa08, 0xaff, 0x100, 0, 2, 3, 0x10, 0xffff,
    ] {
        assert_eq!(
            refuse(vec![table.clone(), message(kind, 2, &[])]),
            1,
            "{kind:x}"
        );
    }
    // Objects before what they are in, or without it.
    for number in 1..parts.messages.len() {
        let mut messages = parts.messages.clone();
        messages.swap(0, number);
        assert_eq!(refuse(messages), 0);
        let mut messages = parts.messages.clone();
        messages.remove(0);
        assert_eq!(refuse(messages), 0);
    }
    let rule = parts.messages.iter().position(|m| m[4] == 6).unwrap();
    let mut messages = parts.messages.clone();
    let moved = messages.remove(rule);
    messages.insert(1, moved);
    assert_eq!(refuse(messages), 1);
    // Of another family.
    let mut messages = parts.messages.clone();
    messages[1][16] = 10;
    assert_eq!(refuse(messages), 1);
    // Without names, without attributes, with attributes that do not fit.
    for kind in [0xa00, 0xa03, 0xa06, 0xa09, 0xa0c, 0xa12, 0xa16] {
        for attributes in [&[][..], &[4, 0, 1, 0], &[0xff; 8], &[3, 0, 1, 0], &[0; 4]] {
            let refused = vec![table.clone(), message(kind, 2, attributes)];
            assert_eq!(refuse(refused), 1, "{kind:x} {attributes:?}");
        }
    }
}

#[test]
fn a_table_outside_of_the_scope_is_refused() {
    let place = Place::new();
    let parts = || Parts::of(&file_of(&snapshot_of(SMALL)));
    for (family, table, fits) in [
        (0u32, &b""[..], true),
        (2, b"", true),
        (2, b"t", true),
        (0, b"t", true),
        (2, b"u", false),
        (10, b"", false),
        (10, b"t", false),
        (0x102, b"", false),
        (u32::MAX, b"", false),
    ] {
        let mut parts = parts();
        parts.set(20, &family.to_ne_bytes());
        parts.table = table.to_vec();
        match place.load(&parts.file()) {
            Ok(snapshot) => assert!(fits, "{:?}", snapshot.scope()),
            Err(FileError::Inconsistent { .. }) => assert!(!fits, "{family} {table:?}"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Expressions in one another, as deep as their lengths allow: deeper than any kernel makes them.
#[test]
fn deep_nesting_is_refused() {
    let place = Place::new();
    let mut parts = Parts::of(&file_of(&snapshot_of(SMALL)));
    let rule = parts.messages.iter().position(|m| m[4] == 6).unwrap();
    // NFTA_DYNSET_EXPR and NFTA_INNER_EXPR hold an expression: NFTA_EXPR_NAME, NFTA_EXPR_DATA.
    for (name, kind) in [(&b"dynset\0"[..], 7), (b"inner\0", 5)] {
        let mut nested = Vec::new();
        loop {
            let expression = [attribute(1, name), attribute(2, &nested)].concat();
            if expression.len() > 65_500 {
                break;
            }
            nested = attribute(kind, &expression);
        }
        let expression = [attribute(1, name), attribute(2, &nested)].concat();
        let attributes = [
            attribute(1, b"t\0"),
            attribute(2, b"c\0"),
            attribute(3, &9u64.to_be_bytes()),
            attribute(4, &attribute(1, &expression)),
        ];
        parts.messages[rule] = message(0xa06, 2, &attributes.concat());
        let error = place.refused(&parts.clone().counted().file());
        assert!(matches!(error, FileError::Content { .. }), "{error:?}");
    }
}

/// What is done to a file before it gets a checksum that fits.
#[derive(Debug, Clone)]
enum Mutation {
    /// Another byte in a message.
    Byte(Index, Index, u8),
    /// Another 16-bit number at an even place in a message: lengths and types are such.
    Half(Index, Index, u16),
    /// A message twice, at another place.
    Twice(Index, Index),
    Remove(Index),
    Swap(Index, Index),
    /// Bytes of one message over those of another.
    Splice(Index, Index, Index),
    /// Fewer bytes in a message, which says so.
    Shorten(Index, Index),
    /// A byte of the header's fixed part behind the version and the byte order.
    Header(Index, u8),
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    use Mutation::*;
    let half = prop_oneof![0..80u16, any::<u16>(), Just(4), Just(0xffff)];
    let mutation = prop_oneof![
        4 => any::<(Index, Index, u8)>().prop_map(|(a, b, c)| Byte(a, b, c)),
        4 => (any::<Index>(), any::<Index>(), half).prop_map(|(a, b, c)| Half(a, b, c)),
        1 => any::<(Index, Index)>().prop_map(|(a, b)| Twice(a, b)),
        1 => any::<Index>().prop_map(Remove),
        1 => any::<(Index, Index)>().prop_map(|(a, b)| Swap(a, b)),
        1 => any::<(Index, Index, Index)>().prop_map(|(a, b, c)| Splice(a, b, c)),
        1 => any::<(Index, Index)>().prop_map(|(a, b)| Shorten(a, b)),
        1 => any::<(Index, u8)>().prop_map(|(a, b)| Header(a, b)),
    ];
    prop::collection::vec(mutation, 1..5)
}

fn mutate(parts: &Parts, mutations: &[Mutation]) -> Vec<u8> {
    let mut parts = parts.clone();
    let mut header = Vec::new();
    for mutation in mutations {
        let messages = &mut parts.messages;
        let count = messages.len();
        if count == 0 {
            break;
        }
        match mutation {
            Mutation::Byte(number, at, byte) => {
                let message = &mut messages[number.index(count)];
                let at = at.index(message.len());
                message[at] = *byte;
            }
            Mutation::Half(number, at, half) => {
                let message = &mut messages[number.index(count)];
                // Not the message's own length: that mostly ends it all.
                let at = 4 + 2 * at.index((message.len() - 4) / 2);
                message[at..at + 2].copy_from_slice(&half.to_ne_bytes());
            }
            Mutation::Twice(from, to) => {
                let message = messages[from.index(count)].clone();
                messages.insert(to.index(count + 1), message);
            }
            Mutation::Remove(number) => _ = messages.remove(number.index(count)),
            Mutation::Swap(a, b) => messages.swap(a.index(count), b.index(count)),
            Mutation::Splice(from, to, at) => {
                let from = messages[from.index(count)].clone();
                let to = &mut messages[to.index(count)];
                let at = 4 * at.index(to.len() / 4);
                let length = from.len().min(to.len()).saturating_sub(at);
                if at >= 4 && length > 0 {
                    to[at..at + length].copy_from_slice(&from[at..at + length]);
                }
            }
            Mutation::Shorten(number, to) => {
                let message = &mut messages[number.index(count)];
                if message.len() > 20 {
                    let length = 20 + 4 * to.index((message.len() - 20) / 4);
                    message.truncate(length);
                    message[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                }
            }
            Mutation::Header(at, byte) => header.push((16 + at.index(48), *byte)),
        }
    }
    let mut parts = parts.counted();
    for (at, byte) in header {
        parts.head[at] = byte;
    }
    parts.file()
}

#[test]
fn of_whatever_is_loaded_everything_can_be_read() {
    let place = Place::new();
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut small = vec![snapshot_of(SMALL), snapshot_of(LARGE)];
    if kernel::has(&mut nft, "several statements in an element") {
        small.push(snapshot_of(include_str!(
            "rulesets/sets-element-statements.nft"
        )));
        small.push(snapshot_of(include_str!("rulesets/dynset-statements.nft")));
    }
    let files: Vec<_> = small
        .iter()
        .map(|snapshot| Parts::of(&file_of(snapshot)))
        .collect();
    let nft = RefCell::new(nft);
    let (loaded, refused, restored) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        cases: 3000,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&(any::<Index>(), mutations()), |(number, mutations)| {
            let bytes = mutate(&files[number.index(files.len())], &mutations);
            match place.load(&bytes) {
                Ok(snapshot) => {
                    loaded.update(|count| count + 1);
                    let nft = &mut *nft.borrow_mut();
                    walk(&snapshot);
                    // What was written of it is loaded again, and is then the same.
                    let Ok(()) = snapshot.save(place.path()) else {
                        panic!("it cannot be saved");
                    };
                    let again = Snapshot::load(place.path()).unwrap();
                    assert_eq!(again.to_string(), snapshot.to_string());
                    assert_eq!(again.byte_length(), snapshot.byte_length());
                    // The kernel takes it, or refuses it whole.
                    let before = nft.generation().unwrap();
                    match snapshot.restore(nft) {
                        Ok(_) => restored.update(|count| count + 1),
                        Err(Error::Commit(error)) => {
                            assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
                            assert_eq!(nft.generation().unwrap(), before);
                        }
                        Err(Error::Unfit(_)) => {}
                        Err(error) => panic!("{}", report(&error)),
                    }
                }
                Err(
                    FileError::Content { .. }
                    | FileError::Inconsistent { .. }
                    | FileError::Truncated { .. },
                ) => refused.update(|count| count + 1),
                Err(error) => panic!("{error:?}"),
            }
            Ok(())
        })
        .unwrap();
    let [loaded, refused, restored] = [loaded, refused, restored].map(Cell::into_inner);
    println!("{loaded} loaded, of which {restored} restored; {refused} refused");
    assert!(loaded > 300 && refused > 300 && restored > 30);
}

// ---------------------------------------------------------------------------------------------
// Saving.

#[test]
fn a_file_is_its_owners_alone() {
    let place = Place::new();
    let (one, two) = (snapshot_of(SMALL), snapshot_of(LARGE));
    one.save(place.path()).unwrap();
    let mode = || fs::metadata(place.path()).unwrap().mode() & 0o7777;
    assert_eq!(mode(), 0o600);
    // Also where one that all could read was before.
    fs::set_permissions(place.path(), Permissions::from_mode(0o666)).unwrap();
    let mut before = fs::File::open(place.path()).unwrap();
    two.save(place.path()).unwrap();
    assert_eq!(mode(), 0o600);
    assert_eq!(place.names(), ["backup"]);
    // Who had the old one open reads the old one.
    let mut old = Vec::new();
    before.read_to_end(&mut old).unwrap();
    assert_eq!(Parts::of(&old).messages, Parts::of(&file_of(&one)).messages);
    let new = Snapshot::load(place.path()).unwrap();
    assert_eq!(new.to_string(), two.to_string());
}

#[test]
fn a_part_is_what_would_have_been_taken_of_it_alone() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", &format!("{SMALL}\n{LARGE}"));
    let mut nft = connect(&sandbox);
    let whole = nft.snapshot(Filter::all()).unwrap();
    for filter in [
        Filter::all(),
        Filter::family(Family::INET),
        Filter::table(IP, "t"),
        Filter::table(Family::UNSPEC, "large"),
        Filter::table(IP, "nowhere"),
        Filter::family(Family::ARP),
    ] {
        let alone = nft.snapshot(filter.clone()).unwrap();
        let part = whole.narrowed(&filter).unwrap();
        assert_eq!(part.scope(), alone.scope());
        assert_eq!(part.generation(), alone.generation());
        assert_eq!(part.to_string(), alone.to_string());
        // But for the number of the request that the message answered.
        let messages = |snapshot: &Snapshot| {
            let mut messages = Parts::of(&file_of(snapshot)).messages;
            messages
                .iter_mut()
                .for_each(|message| message[8..12].fill(0));
            messages
        };
        assert!(messages(&part) == messages(&alone), "{filter:?}");
        // Objects are found by their names.
        for table in part.tables() {
            let (family, name) = (table.table().family(), table.table().name());
            assert!(part.table(family, name).is_some());
            for chain in table.chains() {
                assert!(table.chain(chain.chain().name()).is_some());
            }
        }
    }
    let part = whole.narrowed(&Filter::table(IP, "t")).unwrap();
    assert!(part.narrowed(&Filter::family(Family::IP6)).is_none());
    assert!(part.narrowed(&Filter::table(IP, "large")).is_none());
    let same = part.narrowed(&Filter::family(IP)).unwrap();
    assert_eq!(same.scope(), part.scope());
}

#[test]
fn only_a_regular_file_is_replaced() {
    let place = Place::new();
    let snapshot = snapshot_of(SMALL);
    let refused = |name: &str, kind: NotRegular, said: &str| {
        let path = place.0.path().join(name);
        let before = fs::symlink_metadata(&path).unwrap();
        let error = snapshot.save(&path).unwrap_err();
        let FileError::NotRegular { path: named, what } = &error else {
            panic!("{name}: {error:?}");
        };
        assert_eq!((named, *what), (&path, kind));
        assert!(report(&error).contains(said), "{error}");
        let after = fs::symlink_metadata(&path).unwrap();
        assert_eq!((after.dev(), after.ino()), (before.dev(), before.ino()));
        assert_eq!(after.file_type(), before.file_type());
    };
    let at = |name: &str| place.0.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    refused(
        "directory",
        NotRegular::Directory,
        "is a directory, and only",
    );
    mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    refused("pipe", NotRegular::Pipe, "is a named pipe");
    let listener = UnixListener::bind(at("socket")).unwrap();
    refused("socket", NotRegular::Socket, "is a socket");
    drop(listener);

    // Links: to a file, to a device, to nothing.
    fs::write(at("target"), "somebody's").unwrap();
    for (name, target) in [
        ("link", "target"),
        ("null", "/dev/null"),
        ("lost", "nowhere"),
    ] {
        symlink(target, at(name)).unwrap();
        refused(name, NotRegular::Link, "give the path that it points to");
        assert_eq!(fs::read_link(at(name)).unwrap(), Path::new(target));
    }
    assert_eq!(fs::read(at("target")).unwrap(), b"somebody's");

    // A device can be made by root alone, and be mounted here by all. Nothing else is renamed onto a mount.
    fs::write(at("device"), "").unwrap();
    apart(|| {
        let none = None::<&str>;
        mount(
            Some("/dev/zero"),
            &at("device"),
            none,
            MsFlags::MS_BIND,
            none,
        )
        .unwrap();
        refused("device", NotRegular::Device, "is a device");
    });

    // Nothing is left beside them, and a file in their place is replaced.
    let mut names = [
        "device",
        "directory",
        "link",
        "lost",
        "null",
        "pipe",
        "socket",
        "target",
    ];
    names.sort_unstable();
    assert_eq!(place.names(), names);
    snapshot.save(at("target")).unwrap();
    assert!(Snapshot::load(at("target")).is_ok());
    assert_eq!(place.names(), names);
}

/// Why a save failed, and that the error names the path.
#[track_caller]
fn failure(snapshot: &Snapshot, path: &Path) -> (&'static str, io::Error) {
    match snapshot.save(path).unwrap_err() {
        FileError::Io {
            action,
            path: named,
            source,
        } => {
            assert_eq!(named, path);
            (action, source)
        }
        error => panic!("{error:?}"),
    }
}

#[test]
fn a_place_that_is_none_is_named() {
    let place = Place::new();
    let snapshot = snapshot_of(SMALL);
    let path = place.0.path().join("missing/backup");
    let (_, error) = failure(&snapshot, &path);
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let text = report(&snapshot.save(&path).unwrap_err());
    assert!(text.contains("missing/backup"), "{text}");
    assert_eq!(place.names(), [""; 0]);

    // A file as a directory, and a directory as a file.
    fs::write(place.path(), "").unwrap();
    let (_, error) = failure(&snapshot, &place.path().join("backup"));
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    assert_eq!(place.names(), ["backup"]);
}

/// Runs this on a thread whose capabilities and mounts are its own.
fn apart(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            work();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn mount_tmpfs(on: &Path, options: &str) {
    let none = MsFlags::empty();
    mount(Some("tmpfs"), on, Some("tmpfs"), none, Some(options)).unwrap();
}

#[test]
fn an_old_file_survives_a_directory_that_cannot_be_written() {
    let place = Place::new();
    let (one, two) = (snapshot_of(SMALL), snapshot_of(LARGE));
    one.save(place.path()).unwrap();
    let before = fs::read(place.path()).unwrap();
    let still = || {
        assert!(fs::read(place.path()).unwrap() == before);
        assert_eq!(place.names(), ["backup"]);
    };
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o500)).unwrap();
    apart(|| {
        for capability in [
            Capability::CAP_DAC_OVERRIDE,
            Capability::CAP_DAC_READ_SEARCH,
        ] {
            caps::drop(None, CapSet::Effective, capability).unwrap();
        }
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "make a file beside");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        still();
        // One that can be written and not read: it could not be made durable.
        fs::set_permissions(place.0.path(), Permissions::from_mode(0o300)).unwrap();
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "open the directory of");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    });
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o700)).unwrap();
    still();

    // A file system for reading only.
    apart(|| {
        mount_tmpfs(place.0.path(), "mode=0700");
        one.save(place.path()).unwrap();
        let before = fs::read(place.path()).unwrap();
        let only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(
            None::<&str>,
            place.0.path(),
            None::<&str>,
            only,
            None::<&str>,
        )
        .unwrap();
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "make a file beside");
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert!(fs::read(place.path()).unwrap() == before);
    });
    still();
    two.save(place.path()).unwrap();
}

#[test]
fn an_old_file_survives_a_full_disk() {
    let place = Place::new();
    let (one, two) = (snapshot_of(SMALL), large());
    apart(|| {
        mount_tmpfs(place.0.path(), "size=64k,mode=0700");
        one.save(place.path()).unwrap();
        let before = fs::read(place.path()).unwrap();
        assert!(before.len() < 8192 && file_of(&two).len() > 65_536);
        for _ in 0..3 {
            let (action, error) = failure(&two, &place.path());
            assert_eq!(action, "write");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(fs::read(place.path()).unwrap() == before);
            // What was begun is gone: the next try has as much room.
            assert_eq!(place.names(), ["backup"]);
        }
        // There is still room for what fits. A process that another test forks at the moment holds all open
        // files until its exec, and so the room of one that is gone.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) && one.save(place.path()).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        one.save(place.path()).unwrap();
        assert!(Snapshot::load(place.path()).is_ok());
    });
}

/// As with a quota: `ulimit -f`, in a process of its own, because it holds for all threads.
#[test]
fn an_old_file_survives_a_limit_of_file_size() {
    const PLACE: &str = "CHAINWRIGHT_TEST_LIMITED";
    if let Some(directory) = std::env::var_os(PLACE) {
        let path = Path::new(&directory).join("backup");
        let (action, error) = failure(&large(), &path);
        assert_eq!(action, "write");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        return;
    }
    let place = Place::new();
    let small = snapshot_of(SMALL);
    small.save(place.path()).unwrap();
    let before = fs::read(place.path()).unwrap();
    let name = "an_old_file_survives_a_limit_of_file_size";
    let output = Command::new("sh")
        // Blocks of 512 bytes: 32 KiB.
        .args(["-c", "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, place.0.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{output:?}");
    assert!(text.contains("1 passed"), "{text}");
    assert!(fs::read(place.path()).unwrap() == before);
    assert_eq!(place.names(), ["backup"]);
}
