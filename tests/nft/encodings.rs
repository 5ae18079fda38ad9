//! Checks the files of the corpus of encodings.

use std::collections::BTreeSet;

use crate::common::encodings::{Corpus, Line, READER, Written, directory, key, pack, unpack};
use crate::common::rules::in_first_user_namespace;
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use chainwright::ipset;
use chainwright::iptables::{Family, Iptables, Rule, builtins};
use chainwright::nft::expr::Expressions;
use chainwright::nft::{self, Transaction, UnknownAttributes};
use chainwright::xt;
use chainwright_testing::Sandbox;

/// The versions of iptables-nft in the corpus.
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
        // Bytes are stored exactly.
        for bytes in [&written.expressions, &written.userdata] {
            assert_eq!(unpack(&pack(bytes)).as_ref(), Some(bytes), "{what}");
        }
        // Every expression can be decoded by name.
        let rule = chainwright::nft::Rule {
            expressions: Some(Expressions::of_bytes(&written.expressions)),
            ..chainwright::nft::Rule::new(line.family, &*line.table, line.chain())
        };
        let bytecode = rule.to_string();
        assert!(!bytecode.contains("malformed"), "{what}: {bytecode}");
    }
}

/// The reader prints every rule of its own like its save.
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

/// A rule of which every version that writes it natively prints only the last port.
const TWO_PORTS: u32 = 507;

/// Where 1.8.9 reads less than the bytes contain, 1.8.11 and later print the rest of what they wrote.
#[test]
fn misread_rules_are_corrected() {
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
fn rejects_invalid_hexadecimal() {
    assert_eq!(unpack("-"), Some(vec![]));
    assert_eq!(unpack("01[5]ff"), Some(vec![1, 0, 0, 0, 0, 0, 0xff]));
    for text in ["0", "0g", "01[", "01[5", "[x]", "[70000]", "é", "0é0"] {
        assert_eq!(unpack(text), None, "{text}");
    }
    assert_eq!(pack(&[1, 0, 0, 0, 2, 0, 0, 0, 0]), "0100000002[4]");
    assert_eq!(pack(&[]), "-");
}

/// A sandbox with the sets that the corpus refers to.
fn with_sets() -> Sandbox {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let setup = std::fs::read_to_string(directory().join("setup.sh")).unwrap();
    for line in setup.lines().filter(|line| line.starts_with("ipset ")) {
        tools.run(line);
    }
    for line in setup.lines() {
        if let Some(name) = line.strip_prefix("nfacct add ") {
            crate::common::accounting::add(&sandbox, name);
        }
    }
    sandbox
}

/// The family of a line as iptables' type.
fn family(line: &Line) -> Family {
    if line.family == nft::Family::IP6 {
        Family::Ipv6
    } else {
        Family::Ipv4
    }
}

/// The target chain of the line, if it is user-defined.
fn jump_target(line: &Line) -> Option<&str> {
    let words: Vec<_> = line.rule.split(' ').collect();
    let at = words
        .iter()
        .rposition(|word| matches!(*word, "-j" | "-g"))?;
    let target = *words.get(at + 1)?;
    let verdict = matches!(target, "ACCEPT" | "DROP" | "RETURN" | "QUEUE");
    let extension = xt::Target::named(family(line), target.as_bytes()).is_some();
    (!verdict && !extension).then_some(target)
}

/// Writes a version's bytes to the kernel unchanged.
fn put_in(sandbox: &Sandbox, written: &[(&Line, &Written)]) {
    let mut tx = Transaction::new();
    let mut chains = BTreeSet::new();
    for (line, _) in written {
        let names = [Some(line.chain()), jump_target(line)];
        for name in names.into_iter().flatten() {
            if chains.insert((line.family.0, &line.table, name)) {
                tx.add(&nft::Table::new(line.family, &*line.table)).unwrap();
                let chain = chainwright::iptables::nft::chain(family(line), &line.table, name);
                tx.add(&chain).unwrap();
            }
        }
    }
    for (line, written) in written {
        let text = written.expected.as_ref().unwrap_or(&line.rule);
        let options = text
            .split_once(' ')
            .and_then(|(_, rest)| rest.split_once(' '));
        let rule = Rule::parse(family(line), options.map_or("", |(_, options)| options));
        let protocol = rule
            .unwrap_or_else(|fault| panic!("{text}: {fault}"))
            .protocol;
        tx.add(&nft::Rule {
            expressions: Some(Expressions::of_bytes(&written.expressions)),
            userdata: Some(written.userdata.as_slice().into())
                .filter(|_| !written.userdata.is_empty()),
            compat: Some(nft::Compat {
                protocol: Some(protocol.map_or(0, |protocol| protocol.number.into())),
                flags: Some(protocol.map_or(0, |protocol| if protocol.invert { 2 } else { 0 })),
                unknown: UnknownAttributes::NONE,
            }),
            ..nft::Rule::new(line.family, &*line.table, line.chain())
        })
        .unwrap();
    }
    let mut connection = connect(sandbox);
    connection
        .commit(&tx)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The bytes of all rules of both families: table, chain, handle, expressions, user data.
fn bytes(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    let mut connection = connect(sandbox);
    for family in [nft::Family::IP, nft::Family::IP6] {
        let rules = connection.rules(nft::Scope::family(family)).unwrap();
        rules
            .for_each(|rule| {
                let builder = rule.to_builder();
                let (handle, expressions) = (rule.handle(), &builder.expressions);
                let place = format!("{} {} {handle}", rule.table(), rule.chain());
                all.push(format!(
                    "{place} {expressions:02x?} {:02x?}",
                    rule.userdata()
                ));
            })
            .unwrap();
    }
    all
}

/// Reconciles chains with their own printed rules: all rules stay except those that iptables cannot
/// express.
fn rules_we_print_are_unchanged(
    version: &str,
    iptables: &mut Iptables,
    written: &[(&Line, &Written)],
) -> usize {
    let mut kept = 0;
    for of in [Family::Ipv4, Family::Ipv6] {
        let tables = iptables.read(of, &[]).unwrap();
        let tables = tables.iter();
        for (table, chain) in tables
            .iter()
            .flat_map(|table| table.chains().map(move |chain| (table.name(), chain)))
        {
            let lines = written.iter().filter(|(line, _)| {
                family(line) == of && *table == *line.table && *chain.name() == *line.chain()
            });
            let readable = lines.zip(chain.rules()).filter_map(|((_, written), rule)| {
                let text = rule.entry().ok().and(written.expected.as_ref())?;
                let options = text.strip_prefix(&format!("-A {}", chain.name())).unwrap();
                Some(Rule::parse(of, options).unwrap())
            });
            let wanted: Vec<_> = readable.collect();
            let unreadable = chain.rules().count() - wanted.len();
            let changes = iptables
                .update(of, &table.to_string(), |table| {
                    table.reconcile_chain(chain.name(), &wanted)
                })
                .unwrap();
            let expected = (wanted.len(), 0, unreadable);
            let changes = (changes.kept, changes.inserted, changes.deleted);
            assert_eq!(
                changes,
                expected,
                "{version}: {of:?} {table} {}",
                chain.name()
            );
            kept += wanted.len();
        }
    }
    kept
}

/// Every encoding of every version is decoded correctly, and stays unchanged when something else is
/// changed.
#[test]
fn every_encoding_is_decoded_and_kept_unchanged() {
    let corpus = Corpus::load(&directory()).unwrap();
    let mut wrong = Vec::new();
    let (mut count, mut kept) = (0, 0);
    for version in VERSIONS {
        let written: Vec<_> = corpus
            .written()
            .filter(|(other, ..)| *other == version)
            .map(|(_, line, written)| (line, written))
            .filter(|(line, _)| {
                // The kernel accepts users and groups only in the initial user namespace.
                in_first_user_namespace() || !line.rule.contains("id-owner")
            })
            .collect();
        let sandbox = with_sets();
        for piece in written.chunks(200) {
            put_in(&sandbox, piece); // transactions of a user without privileges are limited
        }
        let before = bytes(&sandbox);
        let mut iptables = sandbox.run(Iptables::nft).unwrap().unwrap();
        let sets = sandbox.run(ipset::Connection::open).unwrap().unwrap();

        for family_of_rules in Family::ALL {
            let tables = iptables.read(family_of_rules, &[]).unwrap();
            for table in tables.iter() {
                for chain in table.chains() {
                    let lines = written.iter().filter(|(line, _)| {
                        family(line) == family_of_rules
                            && *table.name() == *line.table
                            && *chain.name() == *line.chain()
                    });
                    for ((line, written), rule) in lines.zip(chain.rules()) {
                        count += 1;
                        let Some(expected) = &written.expected else {
                            continue;
                        };
                        let found = match rule.entry() {
                            Ok(mut entry) => {
                                entry.rule.name_sets(&mut &sets).unwrap();
                                let mut text = xt::Text::new();
                                entry.rule.print(&mut text);
                                let text = String::from_utf8_lossy(text.as_bytes());
                                format!("-A {}{text}", chain.name())
                            }
                            // iptables-nft reads these as rules without the comparison.
                            Err(_) if expected.contains("port 0:65535") => expected.clone(),
                            // Only 1.8.4 writes this; no version loads its text.
                            Err(_) if expected.contains("! -s 0.0.0.0/0") => expected.clone(),
                            Err(_) if expected.contains("! -s ::/0") => expected.clone(),
                            Err(beyond) => beyond.to_string(),
                        };
                        if found != *expected {
                            wrong.push(format!(
                                "{version}, rule {}:\n  expected {expected}\n  found    {found}",
                                line.number
                            ));
                        }
                    }
                }
            }
        }

        // One rule more and one less in each table; all others keep their bytes and handles.
        for family in Family::ALL {
            for table in ["filter", "nat", "mangle", "raw"] {
                let rule = Rule::parse(family, "-m comment --comment new -j RETURN").unwrap();
                let chain = builtins(table).unwrap()[0].chain;
                iptables
                    .update(family, table, |table| table.append(chain, &rule))
                    .unwrap();
                iptables
                    .update(family, table, |table| table.delete(chain, &rule))
                    .unwrap();
            }
        }
        assert!(before == bytes(&sandbox), "{version}: the bytes changed");
        kept += rules_we_print_are_unchanged(version, &mut iptables, &written);
        let after = bytes(&sandbox);
        let before: BTreeSet<_> = before.iter().collect();
        assert!(after.iter().all(|rule| before.contains(rule)), "{version}");
    }
    assert!(kept > 4400, "only {kept} rules stayed");
    assert!(count > 4500, "only {count} rules");
    assert!(
        wrong.is_empty(),
        "{} of {count} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
