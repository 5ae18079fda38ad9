//! The corpus of encodings: that its files say what they must.

mod common;

use common::encodings::{Corpus, READER, directory, key, pack, unpack};

/// The versions of iptables-nft that the corpus has.
const VERSIONS: [&str; 6] = ["1.8.4", "1.8.7", "1.8.9", "1.8.10", "1.8.11", "1.8.13"];

#[test]
fn the_files_parse_and_are_complete() {
    let corpus = Corpus::load(&directory()).unwrap();
    let versions: Vec<_> = corpus.versions.iter().map(|(name, _)| name).collect();
    assert_eq!(versions, VERSIONS);
    for (version, cases) in &corpus.versions {
        assert_eq!(cases.len(), corpus.lines.len(), "{version}");
        for line in &corpus.lines {
            assert!(cases.contains_key(&key(line)), "{version}: {line:?}");
        }
    }
    for (version, line, written) in corpus.written() {
        let what = format!("{version}: {} {}", line.number, line.rule);
        assert!(!written.expressions.is_empty(), "{what}");
        for text in [&written.read, &written.saved].into_iter().flatten() {
            let start = format!("-A {} ", line.chain());
            assert!(format!("{text} ").starts_with(&start), "{what}: {text}");
        }
        // Bytes are held exactly.
        for bytes in [&written.expressions, &written.userdata] {
            assert_eq!(unpack(&pack(bytes)).as_ref(), Some(bytes), "{what}");
        }
        // Every expression can be decoded by name.
        let rule = chainwright::nft::Rule {
            expressions: chainwright::nft::Field::decode(&written.expressions),
            ..chainwright::nft::Rule::new(line.family, &*line.table, line.chain())
        };
        let bytecode = rule.to_string();
        assert!(!bytecode.contains("malformed"), "{what}: {bytecode}");
    }
}

/// The reader prints every rule of its own, as its save does.
#[test]
fn the_reader_reads_itself() {
    let corpus = Corpus::load(&directory()).unwrap();
    let own = corpus.written().filter(|(version, ..)| *version == READER);
    let mut count = 0;
    for (_, line, written) in own {
        assert!(written.read.is_some(), "{line:?}");
        assert_eq!(written.read, written.saved, "{line:?}");
        count += 1;
    }
    assert!(count > 600, "{count}");
}

/// The rule of which every version that writes it natively prints only the last port.
const TWO_PORTS: u32 = 507;

/// Where 1.8.9 reads less than there is, 1.8.11 and later say the rest of what they wrote.
#[test]
fn what_is_misread_is_corrected() {
    let corpus = Corpus::load(&directory()).unwrap();
    let misread = corpus
        .written()
        .filter(|(_, _, written)| written.expected != written.read);
    let mut count = 0;
    for (version, line, written) in misread {
        assert_eq!(written.expected.as_ref(), Some(&line.rule), "{version}");
        if matches!(version, "1.8.11" | "1.8.13") && line.number != TWO_PORTS {
            assert_eq!(written.expected, written.saved, "{version}: {line:?}");
        }
        count += 1;
    }
    // Four rules of both families by four writers; three, of one family each, by all six.
    assert_eq!(count, 4 * 2 * 4 + 3 * 6);
}

#[test]
fn what_is_not_hexadecimal_is_refused() {
    assert_eq!(unpack("-"), Some(vec![]));
    assert_eq!(unpack("01[5]ff"), Some(vec![1, 0, 0, 0, 0, 0, 0xff]));
    for text in ["0", "0g", "01[", "01[5", "[x]", "[70000]", "é", "0é0"] {
        assert_eq!(unpack(text), None, "{text}");
    }
    assert_eq!(pack(&[1, 0, 0, 0, 2, 0, 0, 0, 0]), "0100000002[4]");
    assert_eq!(pack(&[]), "-");
}
