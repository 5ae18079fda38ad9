//! Snapshot files: what is written is read back, and nothing else is accepted as a ruleset.

mod damage;
mod forged;
#[cfg(all(feature = "diff", feature = "serde"))]
mod padding;
mod saving;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use crate::common::tools::Tools;
use crate::common::{connect, kernel, report, sandbox};
use chainwright::Error;
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::{
    Chain, Family, FileError, Generation, Rule, Scope, Snapshot, Table, Transaction,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const IP: Family = Family::IP;

/// Position of the header's first name; fields before it have fixed positions.
const FIXED: usize = 64;

const CHECKSUM: usize = 32;

/// One of each kind of object that nft creates, as small as possible.
const SMALL: &str = "table ip t {
    counter n { packets 1 bytes 2; }
    set s { type ipv4_addr; elements = { 10.0.0.1 }; }
    map m { type ipv4_addr : verdict; elements = { 10.0.0.2 : jump c }; }
    chain c { counter name n accept; }
    chain b { type filter hook input priority 0; ip saddr @s drop; ip saddr vmap @m; }
}";

/// Nested expressions, and long lists.
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
    connect(&sandbox).snapshot(Scope::all()).unwrap()
}

/// Many chains, rules and elements in addition to the others.
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
    nft.snapshot(Scope::all()).unwrap()
}

fn file_of(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot.write(&mut bytes).unwrap();
    bytes
}

/// A directory with a file that is rewritten each time.
struct BackupDirectory(TempDir);

impl BackupDirectory {
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

    /// The error for loading these bytes; it names the file.
    #[track_caller]
    fn refused(&self, bytes: &[u8]) -> FileError {
        let error = match self.load(bytes) {
            Err(error) => error,
            Ok(snapshot) => panic!("the file should be rejected: {snapshot:?}"),
        };
        let text = error.to_string();
        assert!(text.contains(self.path().to_str().unwrap()), "{text}");
        error
    }

    /// The names of the files in the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// The parts of a file, to be reassembled.
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
        assert!(
            parts.clone().file() == bytes,
            "the reassembled parts differ from the file"
        );
        parts
    }

    fn set(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.head[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Sets the numbers of messages and bytes.
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

/// The content with a matching checksum.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let sum = Sha256::digest(&content);
    content.extend_from_slice(&sum);
    content
}

/// Reads everything from a snapshot.
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
        // A malformed object has no typed form, and the error reports it.
        match serde_json::to_string(snapshot) {
            Ok(json) => {
                // And back: the same.
                let again: Snapshot =
                    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
                assert_eq!(serde_json::to_string(&again).unwrap(), json);
                text += &json;
            }
            Err(error) => {
                let error_text = error.to_string();
                let known = [
                    "malformed",
                    "the list contains something other than expressions",
                    "the name ",
                ];
                assert!(
                    known.iter().any(|known| error_text.starts_with(known)),
                    "{error_text}"
                );
            }
        }
    }
    assert!(snapshot.memory() >= snapshot.byte_length());
    assert!(!text.is_empty());
    let mut tx = Transaction::new();
    let _ = snapshot.write_to(&mut tx); // an error if something is too long
}

#[test]
fn a_backup_file_round_trips() {
    for snapshot in [
        snapshot_of(SMALL),
        large(),
        snapshot_of(""),
        snapshot_of(include_str!("../rulesets/scenario-container-host.nft")),
    ] {
        let place = BackupDirectory::new();
        snapshot.save(place.path()).unwrap();
        let bytes = fs::read(place.path()).unwrap();
        assert_eq!(place.names(), ["backup"]);
        let loaded = Snapshot::load(place.path()).unwrap();
        let number = |snapshot: &Snapshot| snapshot.generation().map(Generation::number);
        assert_eq!(number(&loaded), number(&snapshot));
        assert!(loaded.generation().is_some());
        assert_eq!(loaded.scope(), snapshot.scope());
        assert_eq!(loaded.byte_length(), snapshot.byte_length());
        assert_eq!(loaded.to_string(), snapshot.to_string());
        // Both contain the kernel's messages; the header differs only by the time.
        let (file, again) = (Parts::of(&bytes), Parts::of(&file_of(&snapshot)));
        assert_eq!(file.messages, again.messages);
        assert_eq!(
            file.messages.concat().len(),
            snapshot.byte_length(),
            "each message should occur once"
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

        // A loaded snapshot keeps its provenance when it is saved again: the file is the same.
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
    let place = BackupDirectory::new();
    for (scope, tables) in [
        (Scope::all(), 4),
        (Scope::family(IP), 1),
        (Scope::family(Family::BRIDGE), 0),
        (Scope::table(IP, "t"), 1),
        (Scope::table(Family::INET, "t"), 0),
        (Scope::table(Family::UNSPEC, "t"), 1),
    ] {
        let snapshot = nft.snapshot(scope.clone()).unwrap();
        snapshot.save(place.path()).unwrap();
        let loaded = Snapshot::load(place.path()).unwrap();
        assert_eq!(*loaded.scope(), scope);
        assert_eq!(loaded.tables().len(), tables, "{scope:?}");
    }
    // The length of an empty name would mean all tables.
    let snapshot = nft.snapshot(Scope::table(IP, "")).unwrap();
    let error = snapshot.save(place.path()).unwrap_err();
    assert!(
        report(&error).contains("name is empty"),
        "{}",
        report(&error)
    );
    // A name that is too long is not cut.
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
    let place = BackupDirectory::new();
    let mut parts = Parts::of(&file_of(&snapshot_of(SMALL)));
    parts.set(16, &[0; 4]);
    let loaded = place.load(&parts.clone().file()).unwrap();
    assert_eq!(loaded.generation(), None);
    assert_eq!(Parts::of(&file_of(&loaded)).head, parts.head);
    parts.set(16, &7u32.to_ne_bytes());
    let loaded = place.load(&parts.file()).unwrap();
    assert_eq!(loaded.generation().map(Generation::number), Some(7));
}

#[test]
fn a_part_equals_a_snapshot_of_that_scope() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", &format!("{SMALL}\n{LARGE}"));
    let mut nft = connect(&sandbox);
    let whole = nft.snapshot(Scope::all()).unwrap();
    for filter in [
        Scope::all(),
        Scope::family(Family::INET),
        Scope::table(IP, "t"),
        Scope::table(Family::UNSPEC, "large"),
        Scope::table(IP, "nowhere"),
        Scope::family(Family::ARP),
    ] {
        let alone = nft.snapshot(filter.clone()).unwrap();
        let part = whole.filtered(&filter).unwrap();
        assert_eq!(part.scope(), alone.scope());
        assert_eq!(part.generation(), alone.generation());
        assert_eq!(part.to_string(), alone.to_string());
        // Except for the number of the request that the message answered, and whether that was a dump.
        let messages = |snapshot: &Snapshot| {
            let mut messages = Parts::of(&file_of(snapshot)).messages;
            messages
                .iter_mut()
                .for_each(|message| message[6..12].fill(0));
            messages
        };
        assert!(messages(&part) == messages(&alone), "{filter:?}");
        // Objects are found by name.
        for table in part.tables() {
            let (family, name) = (table.table().family(), table.table().name());
            assert!(part.table(family, name).is_some());
            for chain in table.chains() {
                assert!(table.chain(chain.chain().name()).is_some());
            }
        }
    }
    let part = whole.filtered(&Scope::table(IP, "t")).unwrap();
    assert!(part.filtered(&Scope::family(Family::IP6)).is_none());
    assert!(part.filtered(&Scope::table(IP, "large")).is_none());
    let same = part.filtered(&Scope::family(IP)).unwrap();
    assert_eq!(same.scope(), part.scope());
}
