//! Data without an end, or with a valid start and anything after it: snapshot files, tables of the legacy
//! kernel, user data. Their cost is proportional to their size, and invalid data is refused without
//! allocating what it claims. (For texts to be restored: `hostile_texts`.)

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::common::cost::{Cost, assert_grows_with_its_size, cost, least};
use chainwright::legacy::{self, Info, Table};
use chainwright::nft::userdata::UserData;
use chainwright::nft::{FileError, Snapshot};
use sha2::{Digest, Sha256};

const WHOLE: usize = 100 << 20;

/// Checks that a fourfold input costs at most seven times as much.
#[track_caller]
fn grows_with_its_size(what: &str, size: usize, work: impl Fn(usize)) {
    let least = |size| least(&[(); 2].map(|()| cost(|| work(size))));
    assert_grows_with_its_size(&format!("{what}, {size}"), least(size), least(4 * size));
}

/// Garbage of this kind and length.
fn garbage(kind: &str, length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    match kind {
        "zeros" => vec![0; length],
        "ones" => vec![0xff; length],
        // Small numbers: valid lengths that lead on and on.
        "steps" => [32, 0, 0, 0].repeat(length / 4),
        _ => (0..length / 8)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_ne_bytes()
            })
            .collect(),
    }
}

const KINDS: [&str; 4] = ["zeros", "ones", "steps", "noise"];

// ---------------------------------------------------------------------------------------------
// Snapshot files, according to the table in `nft/snapshot/file.rs`.

/// Writes a file with these messages, with a matching checksum if `sealed`.
fn file(path: &Path, count: u64, messages: &[u8], sealed: bool) {
    let mut head = Vec::new();
    head.extend_from_slice(b"CHAINWR\n");
    for number in [1_u32, 0x0102_0304, 7, 0] {
        head.extend_from_slice(&number.to_ne_bytes());
    }
    head.extend_from_slice(&1_700_000_000_u64.to_ne_bytes());
    head.extend_from_slice(&[0; 16]);
    head.extend_from_slice(&count.to_ne_bytes());
    head.extend_from_slice(&(messages.len() as u64).to_ne_bytes());
    head.extend_from_slice(&[0; 4]);
    let mut sum = Sha256::new();
    if sealed {
        sum.update(&head);
        sum.update(messages);
    }
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&head).unwrap();
    file.write_all(messages).unwrap();
    file.write_all(&sum.finalize()).unwrap();
    file.flush().unwrap();
}

/// A message of nf_tables: type, attributes.
fn message(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes = attributes.concat();
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(20 + attributes.len() as u32).to_ne_bytes());
    bytes.extend_from_slice(&(0xa00 | kind).to_ne_bytes());
    bytes.resize(16, 0);
    bytes.extend_from_slice(&[2, 0, 0, 0]);
    bytes.extend_from_slice(&attributes);
    bytes
}

fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(4 + payload.len() as u16).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

const TABLE: u16 = 0;
const CHAIN: u16 = 3;
const RULE: u16 = 6;
const SET: u16 = 9;
const ELEMENTS: u16 = 12;

#[test]
fn garbage_behind_the_head_of_a_snapshot() {
    let place = tempfile::NamedTempFile::new().unwrap();
    let path = place.path();
    for (kind, length, sealed) in [
        ("zeros", 1 << 20, false),
        ("steps", 1 << 20, true),
        ("noise", WHOLE, true),
    ] {
        // A table, followed by the garbage.
        let mut messages = message(TABLE, &[attribute(1, b"t\0")]);
        messages.extend(garbage(kind, length));
        file(path, 1 << 20, &messages, sealed);
        drop(messages);
        let mut error = None;
        let Cost { memory, .. } = cost(|| error = Snapshot::load(path).err());
        match error {
            Some(FileError::Content { .. }) if sealed => {}
            Some(FileError::Altered { .. }) if !sealed => {}
            other => panic!("{kind}: {other:?}"),
        }
        // The read buffer, and space for the longest message.
        assert!(memory < 8 << 20, "{kind}: {memory}");
    }
}

/// Loads a file with these messages, and reads everything from it.
fn load(path: &Path, messages: &[Vec<u8>]) -> Result<Snapshot, FileError> {
    file(path, messages.len() as u64, &messages.concat(), true);
    Snapshot::load(path)
}

fn name(kind: u16, name: &str) -> Vec<u8> {
    attribute(kind, format!("{name}\0").as_bytes())
}

fn number(kind: u16, number: usize) -> Vec<u8> {
    attribute(kind, &(number as u64).to_be_bytes())
}

fn table(at: usize) -> Vec<u8> {
    message(TABLE, &[name(1, &format!("t{at}")), number(4, 1)])
}

fn chain(table: usize, at: usize) -> Vec<u8> {
    let names = [name(1, &format!("t{table}")), name(3, &format!("c{at}"))];
    message(CHAIN, &[&names[..], &[number(2, at)]].concat())
}

fn rule(table: usize, chain: usize, userdata: &[u8]) -> Vec<u8> {
    let names = [name(1, &format!("t{table}")), name(2, &format!("c{chain}"))];
    let rest = [number(3, 7), attribute(7, userdata)];
    message(RULE, &[&names[..], &rest].concat())
}

fn set(table: usize, at: usize) -> Vec<u8> {
    let names = [name(1, &format!("t{table}")), name(2, &format!("s{at}"))];
    let numbers = [3, 4, 5].map(|kind| attribute(kind, &4_u32.to_be_bytes()));
    message(SET, &[&names[..], &numbers, &[number(16, at)]].concat())
}

fn elements(table: usize, set: usize) -> Vec<u8> {
    let names = [name(1, &format!("t{table}")), name(2, &format!("s{set}"))];
    let key = attribute(1, &attribute(1, &7_u32.to_be_bytes()));
    let list = attribute(3, &attribute(1, &key).repeat(20));
    message(ELEMENTS, &[&names[..], &[list]].concat())
}

/// Valid messages in an order in which no kernel lists them.
#[test]
fn files_in_an_odd_order() {
    let place = tempfile::NamedTempFile::new().unwrap();
    let path = place.path();
    let check = |what: &str, size: usize, messages: &dyn Fn(usize) -> Vec<Vec<u8>>| {
        grows_with_its_size(what, size, |count| {
            let snapshot = load(path, &messages(count)).unwrap();
            assert!(snapshot.tables().count() > 0);
        });
    };
    check("one table, again and again", 5_000, &|count| {
        vec![table(0); count]
    });
    check("many tables, and a set for each", 3_000, &|count| {
        let sets = (0..count).map(|at| set(at, 0));
        (0..count).map(table).chain(sets).collect()
    });
    check("one chain, again and again", 5_000, &|count| {
        let mut all = vec![chain(0, 0); count];
        all.insert(0, table(0));
        all
    });
    check("rules of chains in turn, from the last", 3_000, &|count| {
        let chains = (0..count).map(|at| chain(0, at));
        let rules = (0..count).rev().map(|at| rule(0, at, b""));
        [table(0)].into_iter().chain(chains).chain(rules).collect()
    });
    check("elements of sets in turn, from the last", 1_000, &|count| {
        let sets = (0..count).map(|at| set(0, at));
        let all = (0..count).rev().map(|at| elements(0, at));
        [table(0)].into_iter().chain(sets).chain(all).collect()
    });
}

/// A parent object with too many attributes: each child would search all of them.
#[test]
fn objects_with_too_many_attributes() {
    let place = tempfile::NamedTempFile::new().unwrap();
    let path = place.path();
    let with = |mut message: Vec<u8>, many: usize| {
        let unknown = attribute(99, b"").repeat(many);
        message.splice(20..20, unknown);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message
    };
    for (place, what) in [(0, "table"), (1, "chain"), (2, "set"), (3, "rule")] {
        let all = |many| {
            let mut all = vec![table(0), chain(0, 0), set(0, 0), rule(0, 0, b"")];
            all[place] = with(all[place].clone(), many);
            all
        };
        // Objects of a future kernel are read.
        assert!(load(path, &all(20)).is_ok(), "{what}");
        let error = load(path, &all(1_000)).expect_err(what).to_string();
        assert!(
            error.contains("more attributes than any object"),
            "{what}: {error}"
        );
    }
}

// ---------------------------------------------------------------------------------------------
// Tables of the legacy kernel.

/// The kernel's description of an IPv4 table `filter` (`struct ipt_getinfo`): hooks 1, 2 and 3.
fn info(entries: u32, size: u32, chains: [u32; 3], policies: [u32; 3]) -> Info {
    let mut bytes = b"filter".to_vec();
    bytes.resize(32, 0);
    let hooks = |[one, two, three]: [u32; 3]| [0, one, two, three, 0];
    let numbers = [14].into_iter().chain(hooks(chains)).chain(hooks(policies));
    for number in numbers.chain([entries, size]) {
        bytes.extend_from_slice(&number.to_ne_bytes());
    }
    Info::from_bytes(legacy::Family::Ipv4, &bytes).unwrap()
}

/// An IPv4 entry (`struct ipt_entry`), 112 bytes of header, and its target.
fn entry(target: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 84];
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&112_u16.to_ne_bytes());
    let size = 32 + data.len();
    bytes.extend_from_slice(&(112 + size as u16).to_ne_bytes());
    bytes.resize(112, 0);
    bytes.extend_from_slice(&(size as u16).to_ne_bytes());
    bytes.extend_from_slice(target);
    bytes.resize(144, 0);
    bytes.extend_from_slice(data);
    bytes
}

fn verdict(verdict: i32) -> Vec<u8> {
    entry(b"", &[verdict.to_ne_bytes(), [0; 4]].concat())
}

fn named(name: &str) -> Vec<u8> {
    let mut data = name.as_bytes().to_vec();
    data.resize(32, 0);
    entry(b"ERROR", &data)
}

const ACCEPT: i32 = -2;
const STANDARD: u32 = 152;

/// A table with these entries between its built-in chains and its end.
fn legacy_table(middle: &[Vec<u8>]) -> (Info, Vec<u8>) {
    let mut entries = verdict(ACCEPT).repeat(3);
    entries.extend(middle.concat());
    entries.extend(named("ERROR"));
    let places = [0, STANDARD, 2 * STANDARD];
    let count = middle.len() as u32 + 4;
    (info(count, entries.len() as u32, places, places), entries)
}

#[test]
fn garbage_behind_the_head_of_a_legacy_table() {
    for kind in KINDS {
        let mut entries = verdict(ACCEPT).repeat(3);
        entries.extend(garbage(kind, WHOLE));
        entries.extend(named("ERROR"));
        let places = [0, STANDARD, 2 * STANDARD];
        let info = info(1 << 20, entries.len() as u32, places, places);
        let mut read = None;
        let Cost { memory, .. } = cost(|| read = Some(Table::from_bytes(info, &entries)));
        let error = read.unwrap().expect_err(kind);
        assert_eq!(error.offset, 3 * STANDARD as usize, "{kind}: {error}");
        // A copy of it with spare capacity.
        let most = entries.len() as u64 / 8 * 9 + (1 << 20);
        assert!(memory < most, "{kind}: {memory}");
    }
}

#[test]
fn legacy_tables_of_odd_chains() {
    let read = |middle: Vec<Vec<u8>>, chains: usize| {
        let (info, entries) = legacy_table(&middle);
        let table = Table::from_bytes(info, &entries).unwrap();
        assert_eq!(table.chains().count(), chains);
        for chain in table.chains() {
            for rule in chain.rules() {
                let _ = rule.target().map(|target| format!("{target:?}"));
            }
        }
    };
    grows_with_its_size("chains of one name", 3_000, |count| {
        let chain = [named("c"), verdict(ACCEPT)];
        read(
            vec![chain; count].into_iter().flatten().collect(),
            count + 3,
        );
    });
    grows_with_its_size("jumps to the last chain", 3_000, |count| {
        let head = 3 * STANDARD + 176;
        let last = head + (count as u32) * STANDARD + STANDARD + 176;
        let mut middle = vec![named("a")];
        middle.extend(vec![verdict(last as i32); count]);
        middle.extend([verdict(-5), named("b"), verdict(-5)]);
        read(middle, 5);
    });
}

// ---------------------------------------------------------------------------------------------
// User data: types, lengths and values, as written by user space.

#[test]
fn user_data_without_an_end() {
    for (what, piece) in [
        ("empty entries", &[9, 0][..]),
        ("comments, each a NUL", &[0, 1, 0]),
        (
            "an entry that is longer than the remaining bytes",
            &[9, 255],
        ),
        ("entries of a number", &[2, 4, 1, 0, 0, 0]),
    ] {
        grows_with_its_size(what, 100_000, |count| {
            let bytes = piece.repeat(count);
            let data = UserData::new(&bytes);
            assert!(data.clone().count() <= count);
            assert_eq!(data.clone().get(77), None);
            assert!(data.clone().number(77).is_none() && data.comment(77).is_none());
        });
    }
    // As long as an attribute can be, in every rule.
    let place = tempfile::NamedTempFile::new().unwrap();
    let path = place.path();
    for piece in [&[9, 0][..], &[0, 1, 0], &[0, 255], &[3, 0, 3, 2, 0, 0]] {
        let userdata = piece.repeat(65_000 / piece.len());
        grows_with_its_size("rules", 10, |count| {
            let rules = vec![rule(0, 0, &userdata); count];
            let all: Vec<_> = [table(0), chain(0, 0)].into_iter().chain(rules).collect();
            let snapshot = load(path, &all).unwrap();
            for table in snapshot.tables() {
                for rule in table.chains().flat_map(|chain| chain.rules()) {
                    // None is longer than its entry; a new one replaces the old one, or does not fit.
                    assert!(rule.comment().is_none_or(|comment| comment.len() < 256));
                    assert!(rule.to_string().len() < 1 << 20);
                    let with = rule.to_builder().with_comment("x");
                    let data = with.ok().and_then(|rule| rule.userdata);
                    assert!(data.is_none_or(|data| data.len() <= 256), "{piece:?}");
                }
            }
        });
    }
}
