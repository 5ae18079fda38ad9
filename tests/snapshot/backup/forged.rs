//! Files made by hand with a matching checksum.

use std::cell::{Cell, RefCell};

use chainwright::nft::Outcome;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use super::*;

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

/// Loads in bounded memory, and returns the error.
#[track_caller]
fn refused_cheaply(place: &BackupDirectory, bytes: &[u8]) -> FileError {
    fs::write(place.path(), bytes).unwrap();
    let mut error = None;
    let heap = allocation_counter::measure(|| {
        error = Snapshot::load(place.path()).err();
    });
    // The read buffer takes one of them, space for the longest message at most 4 MiB.
    assert!(heap.bytes_max < 8 << 20, "{heap:?}");
    error.expect("the file should be rejected")
}

#[test]
fn false_lengths_are_refused() {
    let place = BackupDirectory::new();
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
    // The length of the messages.
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
    // The lengths of the names.
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
    // The lengths of messages; later ones are then read from wrong positions.
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
    // A message of the greatest length in the file, and not of nf_tables.
    for (length, refused) in [(1 << 20, true), ((1 << 20) + 4, true)] {
        let mut parts = parts();
        parts.messages = vec![message(0xa00, 2, &vec![0; length - 20])];
        assert_eq!(place.load(&parts.counted().file()).is_err(), refused);
    }
}

#[test]
fn bytes_between_the_messages_and_the_checksum_are_refused() {
    let place = BackupDirectory::new();
    for more in [1, 3, 4, 20, 32, 100] {
        let mut content = Parts::of(&file_of(&snapshot_of(SMALL))).content();
        content.resize(content.len() + more, 0);
        let error = place.refused(&sealed(content));
        assert!(
            matches!(error, FileError::Inconsistent { .. }),
            "{more}: {error:?}"
        );
    }
    // Only the header's fixed part.
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
fn an_invalid_ruleset_is_refused() {
    let place = BackupDirectory::new();
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

    // Types that are not objects: requests, deletions, other subsystems, netlink's own.
    for kind in [
        0xa01, 0xa02, 0xa05, 0xa06, 0xa08, 0xaff, 0x100, 0, 2, 3, 0x10, 0xffff,
    ] {
        assert_eq!(
            refuse(vec![table.clone(), message(kind, 2, &[])]),
            1,
            "{kind:x}"
        );
    }
    // Objects before their table, chain or set, or without it.
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
    // From another family.
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
    let place = BackupDirectory::new();
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

/// Expressions nested as deeply as their lengths allow: deeper than any kernel does.
#[test]
fn deep_nesting_is_refused() {
    let place = BackupDirectory::new();
    let mut parts = Parts::of(&file_of(&snapshot_of(SMALL)));
    let rule = parts.messages.iter().position(|m| m[4] == 6).unwrap();
    // NFTA_DYNSET_EXPR and NFTA_INNER_EXPR contain an expression: NFTA_EXPR_NAME, NFTA_EXPR_DATA.
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

/// A change to a file before it gets a matching checksum.
#[derive(Debug, Clone)]
enum Mutation {
    /// Another byte in a message.
    Byte(Index, Index, u8),
    /// Another 16-bit number at an even position in a message, such as a length or type.
    Half(Index, Index, u16),
    /// A message repeated at another position.
    Twice(Index, Index),
    Remove(Index),
    Swap(Index, Index),
    /// Bytes of one message copied over those of another.
    Splice(Index, Index, Index),
    /// A message shortened with a matching length.
    Shorten(Index, Index),
    /// A byte of the header's fixed part after the version and the byte order.
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
                // Not the message's own length, which mostly ends the parsing.
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
fn anything_loaded_can_be_read() {
    let place = BackupDirectory::new();
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut small = vec![snapshot_of(SMALL), snapshot_of(LARGE)];
    if kernel::has(&mut nft, "several statements in an element") {
        small.push(snapshot_of(include_str!(
            "../../rulesets/sets-element-statements.nft"
        )));
        small.push(snapshot_of(include_str!(
            "../../rulesets/dynset-statements.nft"
        )));
    }
    let files: Vec<_> = small
        .iter()
        .map(|snapshot| Parts::of(&file_of(snapshot)))
        .collect();
    let nft = RefCell::new(nft);
    let (loaded, refused, restored) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        cases: 300 * crate::common::thorough() as u32,
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
                    // It is saved and loaded again, with the same result.
                    let Ok(()) = snapshot.save(place.path()) else {
                        panic!("cannot save the loaded snapshot");
                    };
                    let again = Snapshot::load(place.path()).unwrap();
                    assert_eq!(again.to_string(), snapshot.to_string());
                    assert_eq!(again.byte_length(), snapshot.byte_length());
                    // The kernel accepts it, or refuses it completely.
                    let before = nft.generation().unwrap();
                    match snapshot.restore(nft) {
                        Ok(_) => restored.update(|count| count + 1),
                        Err(Error::Commit(error)) => {
                            assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
                            assert_eq!(nft.generation().unwrap(), before);
                        }
                        Err(Error::MessageError(_)) => {}
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
    println!("{loaded} loaded, {restored} of them restored; {refused} rejected");
    assert!(loaded > 60 && refused > 60 && restored > 6);
}
