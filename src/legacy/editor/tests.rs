//! Edits captured tables and reads the resulting table again.
//!
//! This is one file because all tests use the same captures and helpers.

use proptest::prelude::*;
use zerocopy::FromZeros;

use super::*;
use crate::legacy::tests::{
    ALL, ARP_FILTER, IPV4_FILTER, IPV4_NAT_INITIAL, IPV6_MANGLE, describe, exercise, set_u32,
};
use crate::legacy::{
    Family, Header, InterfaceMatchBuf, Inversions, Ipv4HeaderBuf, Ipv6HeaderBuf, Malformed, Masked,
    Problem, Target,
};
use chainwright_sys::x_tables::xt_counters;

fn counters(packets: u64, bytes: u64) -> Counters {
    Counters { packets, bytes }
}

/// Returns a header that matches every packet of the table's family.
fn every(table: &Table) -> HeaderBuf {
    match table.family() {
        Family::Ipv4 => Ipv4HeaderBuf::default().into(),
        Family::Ipv6 => Ipv6HeaderBuf::default().into(),
        Family::Arp => HeaderBuf::Arp(FromZeros::new_zeroed()),
    }
}

/// Returns a rule's parts without its counters and offsets.
fn parts(rule: &RuleRef<'_>) -> (String, Option<String>) {
    let mut text = format!(
        "{:?} {:?}",
        rule.header(),
        rule.matches().collect::<Vec<_>>()
    );
    let to = match rule.target().unwrap() {
        Target::Jump(chain) | Target::Goto(chain) => Some(chain.name().to_string()),
        other => {
            text += &format!(" {other:?}");
            None
        }
    };
    (text, to)
}

/// Returns the new entries' counters, if the kernel's current counters equal the indices of their
/// entries.
fn counted(replacement: &Replacement) -> Vec<Counters> {
    let old: Vec<_> = (0..u64::from(replacement.replaced_entries()))
        .map(|n| xt_counters {
            pcnt: 1000 + n,
            bcnt: 0,
        })
        .collect();
    let mut new = Vec::new();
    replacement.counters(&old, |counters| new.push(counters));
    new
}

#[test]
fn unchanged_tables_encode_to_the_same_bytes() {
    for captured in ALL {
        let table = captured.read();
        let editor = TableEditor::of(&table);
        assert!(!editor.is_changed());
        let replacement = editor.finish().unwrap();
        assert_eq!(replacement.entries(), table.entries());
        assert_eq!(replacement.info(), table.info());
        let preserved: Vec<_> = counted(&replacement).iter().map(|c| c.packets).collect();
        let all: Vec<_> = (1000..1000 + u64::from(table.info().num_entries())).collect();
        assert_eq!(preserved, all);
    }
}

/// Inserts a rule into each chain and removes it again.
#[test]
fn reverted_changes_restore_the_bytes() {
    for captured in ALL {
        let table = captured.read();
        let mut editor = TableEditor::of(&table);
        let added = editor.add_chain("zzz").unwrap();
        let chains: Vec<_> = editor.chains().map(|chain| chain.id()).collect();
        assert_eq!(chains.last(), Some(&added));
        let rule = editor.build(every(&table)).unwrap();
        let rule = rule.finish(NewTarget::Jump(added)).unwrap();
        for id in chains {
            editor.insert(id, 0, rule).unwrap();
            assert_eq!(editor.references(added), Ok(1));
            let changed = editor.finish().unwrap().to_table().unwrap();
            assert_ne!(changed.entries(), table.entries());
            exercise(&changed);
            editor.remove(id, 0).unwrap();
        }
        editor.remove_chain(added).unwrap();
        assert!(editor.is_changed());
        let replacement = editor.finish().unwrap();
        assert_eq!(replacement.entries(), table.entries());
        assert_eq!(replacement.info(), table.info());
    }
}

/// The bytes that iptables-legacy 1.8.9 sent for `-A aaa -s 1.2.3.4 -o eth1 -j DROP` (the header of
/// the entry and its target), observed with `strace -xx`.
#[test]
fn a_new_rule_encodes_like_iptables() {
    let table = IPV4_NAT_INITIAL.read();
    let mut editor = TableEditor::of(&table);
    let chain = editor.add_chain("aaa").unwrap();
    let header = Ipv4HeaderBuf {
        source: Masked {
            value: [1, 2, 3, 4].into(),
            mask: [255; 4].into(),
        },
        out_interface: InterfaceMatchBuf::new("eth1").unwrap(),
        ..Default::default()
    };
    let rule = editor
        .build(header)
        .unwrap()
        .finish(NewTarget::Drop)
        .unwrap();
    editor.append(chain, rule).unwrap();
    let new = editor.finish().unwrap().to_table().unwrap();
    let rule = new.chain("aaa").unwrap().rules().next().unwrap();
    let mut expected = Vec::new();
    expected.extend([1, 2, 3, 4, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]);
    expected.extend([0; 16]);
    expected.extend(*b"eth1\0\0\0\0\0\0\0\0\0\0\0\0");
    expected.extend([0; 16]);
    expected.extend(*b"\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0");
    expected.extend([0; 8]);
    expected.extend([112, 0, 152, 0]);
    expected.extend([0; 4 + 16]);
    expected.extend([40, 0]);
    expected.extend([0; 30]);
    expected.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(rule.bytes(), expected);
}

#[test]
fn matches_targets_and_inversions() {
    let table = IPV6_MANGLE.read();
    let mut editor = TableEditor::of(&table);
    let to = editor.add_chain("to").unwrap();
    let header = Ipv6HeaderBuf {
        protocol: 6,
        flags: crate::legacy::Ipv6Flags::PROTOCOL | crate::legacy::Ipv6Flags::GOTO,
        inversions: Inversions::PROTOCOL,
        ..Default::default()
    };
    let targets = [
        NewTarget::Accept,
        NewTarget::Drop,
        NewTarget::Queue,
        NewTarget::Return,
        NewTarget::FallThrough,
        NewTarget::Jump(to),
        NewTarget::Goto(to),
        NewTarget::Extension {
            name: b"MARK",
            revision: 2,
            data: &[1, 0, 0, 0, 255, 255, 255, 255],
        },
    ];
    let chain = editor.builtin(Hook::Input).unwrap();
    for target in targets {
        let mut rule = editor.build(header).unwrap();
        rule.push_match("comment", 0, b"123").unwrap();
        rule.push_match("other", 3, &[7; 16]).unwrap();
        rule.counters(counters(5, 6));
        let rule = rule.finish(target).unwrap();
        editor.append(chain, rule).unwrap();
    }
    let describe = |rule: &EditedRule<'_>| {
        let matches: Vec<_> = rule.matches().collect::<Result<_, _>>().unwrap();
        let [first, second] = &matches[..] else {
            panic!("{matches:?}")
        };
        assert_eq!(
            (first.name(), first.data()),
            ("comment".into(), &b"123\0\0\0\0\0"[..])
        );
        assert_eq!((second.name(), second.revision()), ("other".into(), 3));
        assert_eq!(rule.counters(), counters(5, 6));
        assert_eq!(HeaderBuf::from(rule.header()).family(), Family::Ipv6);
        format!("{:?}", rule.target().unwrap())
    };
    let before: Vec<_> = editor
        .get(chain)
        .unwrap()
        .rules()
        .map(|r| describe(&r))
        .collect();
    let replacement = editor.finish().unwrap();
    let new = replacement.to_table().unwrap();
    let again = TableEditor::of(&new);
    let chain = again.get(again.builtin(Hook::Input).unwrap()).unwrap();
    let names = |text: String| {
        let number = again.chain("to").unwrap().number;
        text.replace(&format!("ChainId({number})"), "to")
    };
    let after: Vec<_> = chain.rules().map(|rule| names(describe(&rule))).collect();
    let number = to.number;
    let before: Vec<_> = before
        .iter()
        .map(|text| text.replace(&format!("ChainId({number})"), "to"))
        .collect();
    assert_eq!(before, after);
    assert_eq!(
        after[..7].join(" "),
        "Accept Drop Queue Return FallThrough Jump(to) Goto(to)"
    );
    // Only the target determines the goto flag.
    let goto = |n: usize| chain.rule(n).unwrap().header().is_goto();
    assert_eq!((0..8).filter(|n| goto(*n)).collect::<Vec<_>>(), [6]);
}

/// The editor omits the longest run of zeros from its storage, which must not be visible.
#[test]
fn omitted_zeros_are_restored() {
    let table = IPV4_NAT_INITIAL.read();
    let data = |start: usize, zeros: usize, end: usize| {
        [vec![b'x'; start], vec![0; zeros], vec![b'y'; end]].concat()
    };
    for all in [
        vec![],
        vec![data(0, 256, 0)],
        vec![data(35, 221, 0)],
        vec![data(35, 221, 0), data(4, 12, 0)],
        vec![data(240, 16, 0), data(1, 127, 0), data(0, 0, 40)],
        vec![data(1, 300, 3), data(0, 64, 0)],
        vec![data(0, 128, 8), data(0, 60_000, 0), data(0, 256, 0)],
    ] {
        let mut editor = TableEditor::of(&table);
        let mut rule = editor.build(every(&table)).unwrap();
        for data in &all {
            rule.push_match("m", 0, data).unwrap();
        }
        let rule = rule.finish(NewTarget::Drop).unwrap();
        let chain = editor.builtin(Hook::Output).unwrap();
        editor.append(chain, rule).unwrap();
        editor.append(chain, rule).unwrap();
        let padded = |data: &Vec<u8>| {
            let mut data = data.clone();
            data.resize(data.len().next_multiple_of(8), 0);
            data
        };
        let wanted: Vec<_> = all.iter().map(padded).collect();
        for editor in [editor.clone(), editor] {
            let view = editor.get(chain).unwrap();
            for rule in view.rules() {
                let matches = rule.matches().map(|m| m.unwrap().data().to_vec());
                assert_eq!(matches.collect::<Vec<_>>(), wanted);
                assert_eq!(rule.target(), Ok(EditedTarget::Drop));
            }
            let table = editor.finish().unwrap().to_table().unwrap();
            let chain = table.builtin(Hook::Output).unwrap();
            assert_eq!(chain.rule_count(), 2);
            for rule in chain.rules() {
                let matches = rule.matches().map(|m| m.unwrap().data().to_vec());
                assert_eq!(matches.collect::<Vec<_>>(), wanted);
                assert_eq!(rule.target(), Ok(Target::Drop));
            }
        }
    }
}

#[test]
fn chain_order_matches_libiptc() {
    let table = IPV4_NAT_INITIAL.read();
    let mut editor = TableEditor::of(&table);
    let names = |editor: &TableEditor<'_>| {
        let names: Vec<_> = editor
            .chains()
            .skip(4)
            .map(|c| c.name().to_string())
            .collect();
        names.join(" ")
    };
    for name in ["zeta", "alpha", "Beta"] {
        editor.add_chain(name).unwrap();
    }
    assert_eq!(names(&editor), "Beta alpha zeta");
    let zeta = editor.chain("zeta").unwrap();
    editor.rename_chain(zeta, "aaa").unwrap();
    editor.add_chain("gamma").unwrap();
    assert_eq!(names(&editor), "Beta aaa alpha gamma");
    assert_eq!(
        (editor.chain("zeta"), editor.chain("aaa")),
        (None, Some(zeta))
    );
    let new = editor.finish().unwrap().to_table().unwrap();

    // Also when inserted among rules that were read.
    let mut editor = TableEditor::of(&new);
    editor.add_chain("ab").unwrap();
    let beta = editor.chain("Beta").unwrap();
    editor.rename_chain(beta, "zz").unwrap();
    editor.remove_chain(editor.chain("gamma").unwrap()).unwrap();
    assert_eq!(names(&editor), "aaa ab alpha zz");
    assert_eq!(editor.chain_count(), 8);
    let again = editor.finish().unwrap().to_table().unwrap();
    let read: Vec<_> = again
        .chains()
        .skip(4)
        .map(|c| c.name().to_string())
        .collect();
    assert_eq!(read.join(" "), "aaa ab alpha zz");
    editor.clear();
    assert_eq!(names(&editor), "");
}

#[test]
fn rejects_invalid_changes() {
    let table = IPV4_FILTER.read();
    let mut editor = TableEditor::of(&table);
    let before = describe(&table);
    for name in [
        "",
        "a2345678901234567890123456789",
        "a\0b",
        "ACCEPT",
        "RETURN",
    ] {
        let error = editor.add_chain(name).unwrap_err();
        assert!(matches!(error, EditError::ChainName { .. }), "{error}");
    }
    for name in ["INPUT", "JUMPED"] {
        let error = editor.add_chain(name).unwrap_err();
        assert!(matches!(error, EditError::ChainExists { .. }), "{error}");
    }
    let input = editor.chain("INPUT").unwrap();
    let jumped = editor.chain("JUMPED").unwrap();
    let empty = editor.chain("EMPTY").unwrap();
    let builtin = Err(EditError::Builtin { hook: Hook::Input });
    assert_eq!(editor.remove_chain(input), builtin);
    assert_eq!(editor.rename_chain(input, "other"), builtin);
    let error = editor.remove_chain(jumped).unwrap_err();
    assert!(
        matches!(error, EditError::NotEmpty { rules: 3, .. }),
        "{error}"
    );
    let error = editor.set_policy(jumped, Policy::Drop).unwrap_err();
    assert!(matches!(error, EditError::NotBuiltin { .. }), "{error}");
    let references = editor.references(empty).unwrap();
    assert!(references > 0);
    let error = editor.remove_chain(empty).unwrap_err();
    assert!(matches!(error, EditError::Referenced { .. }), "{error}");
    let error = editor.remove(empty, 0).unwrap_err();
    assert!(
        matches!(error, EditError::NoSuchRule { rules: 0, .. }),
        "{error}"
    );

    let header = Ipv4HeaderBuf::default();
    let error = editor.build(Ipv6HeaderBuf::default()).unwrap_err();
    assert!(matches!(error, EditError::Family { .. }), "{error}");
    let rule = editor.build(header).unwrap();
    assert_eq!(
        rule.finish(NewTarget::Jump(input)),
        Err(EditError::Builtin { hook: Hook::Input })
    );
    let mut rule = editor.build(header).unwrap();
    for name in ["", "ERROR", "a2345678901234567890123456789"] {
        let error = rule.push_match(name, 0, &[]).unwrap_err();
        assert!(matches!(error, EditError::ExtensionName { .. }), "{error}");
    }
    // 65536 - 8 is the longest: 112 for the entry's header, 32 for the match's, 40 for the target.
    assert!(rule.push_match("m", 0, &[0; 65_536]).is_err());
    rule.push_match("m", 0, &[0; 65_528 - 112 - 32 - 32])
        .unwrap();
    let error = rule.finish(NewTarget::Drop).unwrap_err();
    assert_eq!(error, EditError::RuleTooLong { size: 65_536 });
    let mut rule = editor.build(header).unwrap();
    rule.push_match("m", 0, &[0; 65_528 - 112 - 32 - 40])
        .unwrap();
    let long = rule.finish(NewTarget::Drop).unwrap();
    let _ = editor.build(header).unwrap(); // dropped
    assert!(!editor.is_changed());
    assert_eq!(
        describe(&editor.finish().unwrap().to_table().unwrap()),
        before
    );
    editor.append(input, long).unwrap();
    exercise(&editor.finish().unwrap().to_table().unwrap());

    // A rule that jumps to a removed chain.
    let gone = editor.add_chain("gone").unwrap();
    let rule = editor
        .build(header)
        .unwrap()
        .finish(NewTarget::Jump(gone))
        .unwrap();
    editor.remove_chain(gone).unwrap();
    assert_eq!(editor.append(input, rule), Err(EditError::NoSuchChain));
    assert_eq!(editor.flush(gone), Err(EditError::NoSuchChain));
    assert!(editor.get(gone).is_none());

    let table = ARP_FILTER.read();
    let mut editor = TableEditor::of(&table);
    let to = editor.add_chain("to").unwrap();
    let rule = editor.build(every(&table)).unwrap();
    assert_eq!(rule.finish(NewTarget::Goto(to)), Err(EditError::NoGoto));
    let empty = Table::empty(Family::Ipv4);
    assert_eq!(
        TableEditor::of(&empty).finish().unwrap_err(),
        EditError::NotRead
    );
}

#[test]
fn removing_a_rule_releases_its_jump_target() {
    let table = IPV4_FILTER.read();
    let mut editor = TableEditor::of(&table);
    let jumped = editor.chain("JUMPED").unwrap();
    let references = editor.references(jumped).unwrap();
    assert!(references > 0);
    let ids: Vec<_> = editor.chains().map(|chain| chain.id()).collect();
    for id in ids {
        editor
            .retain(id, |rule| {
                !matches!(rule.target(), Ok(EditedTarget::Jump(to) | EditedTarget::Goto(to)) if to == jumped)
            })
            .unwrap();
    }
    assert_eq!(editor.references(jumped), Ok(0));
    editor.flush(jumped).unwrap();
    editor.remove_chain(jumped).unwrap();
    let new = editor.finish().unwrap().to_table().unwrap();
    assert!(new.chain("JUMPED").is_none());
    exercise(&new);
}

#[test]
fn counters_come_from_the_right_source() {
    let table = IPV4_FILTER.read();
    let mut editor = TableEditor::of(&table);
    let input = editor.chain("INPUT").unwrap();
    let first = table.chain("INPUT").unwrap().rules().next().unwrap();
    let number = first.number() as u64;
    let read = first.counters();
    let mut rule = editor.build(Ipv4HeaderBuf::default()).unwrap();
    rule.counters(counters(3, 4));
    let rule = rule.finish(NewTarget::FallThrough).unwrap();
    editor.insert(input, 0, rule).unwrap();
    editor.set_counters(input, 2, counters(8, 9)).unwrap();
    editor.set_policy(input, Policy::Drop).unwrap();
    editor.set_policy_counters(input, counters(10, 11)).unwrap();
    let output = editor.builtin(Hook::Output).unwrap();
    editor.zero(output).unwrap();
    let replacement = editor.finish().unwrap();
    let new = replacement.to_table().unwrap();
    let counted = counted(&replacement);
    assert_eq!(counted.len(), new.info().num_entries() as usize);
    let at = |chain: &str, n: usize| {
        let rule = new.chain(chain).unwrap().rules().nth(n).unwrap();
        counted[rule.number()]
    };
    let final_entry =
        |chain: &str| counted[new.chain(chain).unwrap().final_entry().unwrap().number()];
    assert_eq!(at("INPUT", 0), counters(3, 4));
    assert_eq!(at("INPUT", 1).packets, 1000 + number);
    assert_eq!(at("INPUT", 2), counters(8, 9));
    assert_eq!(final_entry("INPUT"), counters(10, 11));
    assert_eq!(new.chain("INPUT").unwrap().policy(), Some(Policy::Drop));
    // Counted since the read: the kernel's current counter minus the value that was read.
    let old = table.chain("OUTPUT").unwrap();
    let final_entry_read = old.final_entry().unwrap();
    let now = 1000 + final_entry_read.number() as u64;
    assert_eq!(
        final_entry("OUTPUT").packets,
        now.saturating_sub(final_entry_read.counters().packets)
    );
    // The editor shows it too.
    let view = editor.get(input).unwrap();
    let shown: Vec<_> = view.rules().map(|rule| rule.counters()).take(3).collect();
    assert_eq!(shown, [counters(3, 4), read, counters(8, 9)]);
    assert_eq!(view.builtin().unwrap().counters, counters(10, 11));
    let output = editor.get(output).unwrap().builtin().unwrap();
    assert_eq!(output.counters, Counters::default());
}

/// A chain of another program, without the final return: it stays so until its rules are changed.
#[test]
fn a_chain_without_its_return() {
    let table = IPV4_FILTER.read();
    let final_entry = table
        .chain("JUMPED")
        .unwrap()
        .final_entry()
        .unwrap()
        .offset();
    let verdict = final_entry + 112 + 32;
    let table = IPV4_FILTER
        .read_changed(|_, entries| set_u32(entries, verdict, -1i32 as u32))
        .unwrap();
    let mut editor = TableEditor::of(&table);
    assert_eq!(editor.finish().unwrap().entries(), table.entries());
    // A change elsewhere.
    let input = editor.chain("INPUT").unwrap();
    editor.remove(input, 0).unwrap();
    let new = editor.finish().unwrap().to_table().unwrap();
    let chain = new.chain("JUMPED").unwrap();
    assert_eq!(
        (chain.rule_count(), chain.final_entry().is_some()),
        (4, false)
    );
    exercise(&new);
    let jumped = editor.chain("JUMPED").unwrap();
    editor.remove(jumped, 0).unwrap();
    let new = editor.finish().unwrap().to_table().unwrap();
    let chain = new.chain("JUMPED").unwrap();
    assert_eq!(
        (chain.rule_count(), chain.final_entry().is_some()),
        (3, true)
    );
    exercise(&new);
}

/// A jump to a rule, not to a chain, which only other programs write.
#[test]
fn jumps_into_a_chain_are_kept_or_rejected() {
    let table = IPV4_FILTER.read();
    let jump = table
        .chain("INPUT")
        .unwrap()
        .rules()
        .nth(1)
        .unwrap()
        .offset();
    let inside = table
        .chain("JUMPED")
        .unwrap()
        .rules()
        .nth(1)
        .unwrap()
        .offset() as u32;
    let table = IPV4_FILTER
        .read_changed(|_, entries| set_u32(entries, jump + 112 + 32, inside))
        .unwrap();
    let mut editor = TableEditor::of(&table);
    assert_eq!(editor.finish().unwrap().entries(), table.entries());
    let input = editor.chain("INPUT").unwrap();
    editor.remove(input, 0).unwrap();
    let problem = Malformed::new(jump, Problem::Jump { to: inside });
    assert_eq!(editor.finish().unwrap_err(), EditError::Preserved(problem));
}

/// A table of another program, whose built-in chains follow the user-defined ones.
#[test]
fn builtin_chains_may_come_last() {
    let table = IPV4_FILTER.read();
    let info = table.info();
    let users = table.chains().find(|chain| chain.hook().is_none()).unwrap();
    // Start and end of the user-defined chains.
    let (from, to) = (
        users.bytes().as_ptr().addr() - table.entries().as_ptr().addr(),
        table.entries().len() - 176,
    );
    let moved = |offset: u32| match offset as usize {
        offset if offset < from => (offset + to - from) as u32,
        offset => (offset - from) as u32,
    };
    let mut entries = [&table.entries()[from..to], &table.entries()[..from]].concat();
    entries.extend(&table.entries()[to..]);
    for rule in table.chains().flat_map(|chain| chain.rules()) {
        let raw = rule.raw_target().unwrap();
        let verdict = rule.entry().verdict().map(u32::try_from);
        if let Some(Ok(verdict)) = verdict {
            let target = rule.offset() + rule.bytes().len() - raw.bytes().len();
            set_u32(
                &mut entries,
                moved(target as u32) as usize + 32,
                moved(verdict),
            );
        }
    }
    let offsets = |of: &dyn Fn(Hook) -> Option<u32>| {
        let hooks = Family::Ipv4.hooks().iter();
        hooks
            .map(|hook| of(*hook).map_or(0, moved))
            .collect::<Vec<_>>()
    };
    let last = crate::legacy::Info::new(
        Family::Ipv4,
        info.name().padded(),
        info.valid_hooks(),
        &offsets(&|hook| info.hook_entry(hook)),
        &offsets(&|hook| info.underflow(hook)),
        info.num_entries(),
        info.size(),
    )
    .unwrap();
    let last = Table::from_bytes(last, &entries).unwrap();
    let lines = |table: &Table| {
        let mut lines: Vec<_> = describe(table).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&last), lines(&table));

    let mut editor = TableEditor::of(&last);
    assert_eq!(editor.finish().unwrap().entries(), entries);
    for table in [&last, &table] {
        let mut editor = TableEditor::of(table);
        editor.add_chain("AAA").unwrap();
        editor.add_chain("zzz").unwrap();
        editor.remove(editor.chain("JUMPED").unwrap(), 0).unwrap();
        editor.remove(editor.chain("INPUT").unwrap(), 0).unwrap();
        let replacement = editor.finish().unwrap();
        let new = replacement.to_table().unwrap();
        exercise(&new);
        let names: Vec<_> = new.chains().map(|chain| chain.name().to_string()).collect();
        let first = new
            .chains()
            .position(|chain| chain.hook().is_none())
            .unwrap();
        assert_eq!(names[first], "AAA");
        assert_eq!(names.last().unwrap(), "zzz");
    }
    let input = editor.chain("INPUT").unwrap();
    editor.remove(input, 0).unwrap();
    let mut other = TableEditor::of(&table);
    let input = other.chain("INPUT").unwrap();
    other.remove(input, 0).unwrap();
    let new = |editor: &TableEditor<'_>| lines(&editor.finish().unwrap().to_table().unwrap());
    assert_eq!(new(&editor), new(&other));
}

/// The expected state of a chain.
#[derive(Clone)]
struct Model {
    id: ChainId,
    name: String,
    builtin: bool,
    /// Text, and the target of a jump.
    rules: Vec<(String, Option<ChainId>)>,
}

fn model(editor: &TableEditor<'_>, table: &Table) -> Vec<Model> {
    let chains = table.chains().map(|chain| Model {
        id: editor.chain(chain.name()).unwrap(),
        name: chain.name().to_string(),
        builtin: chain.hook().is_some(),
        rules: chain
            .rules()
            .map(|rule| {
                let (text, to) = parts(&rule);
                (text, to.map(|to| editor.chain(to).unwrap()))
            })
            .collect(),
    });
    chains.collect()
}

fn place(chains: &mut Vec<Model>, chain: Model) {
    let at = chains
        .iter()
        .position(|c| !c.builtin && c.name >= chain.name);
    chains.insert(at.unwrap_or(chains.len()), chain);
}

/// Uses this many cases, or the number in the environment (`PROPTEST_CASES`).
fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn random_changes_agree_with_a_model(
        which in 0..ALL.len(),
        changes in prop::collection::vec((0..9u8, any::<u16>(), any::<u16>(), any::<u16>()), 1..60),
        count_at in 0..60usize,
    ) {
        let table = ALL[which].read();
        let mut editor = TableEditor::of(&table);
        let mut chains = model(&editor, &table);
        for (step, (change, a, b, c)) in changes.into_iter().enumerate() {
            if step == count_at {
                let _ = editor.references(chains[0].id);
            }
            let (a, b, c) = (usize::from(a), usize::from(b), usize::from(c));
            let position = a % chains.len();
            let chain = chains[position].id;
            match change {
                0 => {
                    let name = format!("{}{}", ["a", "M", "z"][b % 3], c % 50);
                    let exists = chains.iter().any(|chain| chain.name == name);
                    match editor.add_chain(&name) {
                        Ok(id) => {
                            prop_assert!(!exists);
                            place(&mut chains, Model { id, name, builtin: false, rules: vec![] });
                        }
                        Err(_) => prop_assert!(exists),
                    }
                }
                1 => {
                    let name = format!("{}{}", ["A", "n", "zz"][b % 3], c % 50);
                    let refused = chains[position].builtin
                        || chains.iter().any(|chain| chain.name == name);
                    prop_assert_eq!(editor.rename_chain(chain, &name).is_err(), refused);
                    if !refused {
                        let mut renamed = chains.remove(position);
                        renamed.name = name;
                        place(&mut chains, renamed);
                    }
                }
                2 => {
                    let references = chains.iter().flat_map(|c| &c.rules);
                    let references = references.filter(|rule| rule.1 == Some(chain)).count();
                    prop_assert_eq!(editor.references(chain).unwrap() as usize, references);
                    let refused = chains[position].builtin
                        || references > 0
                        || !chains[position].rules.is_empty();
                    prop_assert_eq!(editor.remove_chain(chain).is_err(), refused);
                    if !refused {
                        chains.remove(position);
                    }
                }
                3 | 4 => {
                    let to = &chains[b % chains.len()];
                    let (target, to) = match c % 4 {
                        0 if !to.builtin => (NewTarget::Jump(to.id), Some(to.id)),
                        1 => (NewTarget::FallThrough, None),
                        2 => (NewTarget::Accept, None),
                        _ => (NewTarget::Drop, None),
                    };
                    let mut rule = editor.build(every(&table)).unwrap();
                    if c % 2 == 0 && table.family() != Family::Arp {
                        rule.push_match("comment", 0, &vec![b'x'; b % 300]).unwrap();
                    }
                    let rule = rule.finish(target).unwrap();
                    let count = chains[position].rules.len();
                    let at = b % (count + 1);
                    let view = editor.build(every(&table)).is_ok();
                    prop_assert!(view);
                    if change == 3 || count == at {
                        editor.insert(chain, at, rule).unwrap();
                        chains[position].rules.insert(at, (String::new(), to));
                    } else {
                        editor.replace(chain, at, rule).unwrap();
                        chains[position].rules[at] = (String::new(), to);
                    }
                    let new = editor.get(chain).unwrap().rule(at).unwrap();
                    let matches: Vec<_> = new.matches().collect();
                    let mut text = format!("{:?} {:?}", new.header(), matches);
                    if to.is_none() {
                        text += &format!(" {:?}", new.target().unwrap());
                    }
                    chains[position].rules[at].0 = text;
                }
                5 => {
                    editor.flush(chain).unwrap();
                    chains[position].rules.clear();
                }
                6 => {
                    let count = chains[position].rules.len();
                    if count > 0 {
                        editor.remove(chain, b % count).unwrap();
                        chains[position].rules.remove(b % count);
                    }
                }
                7 => editor.zero(chain).unwrap(),
                _ => {
                    let count = chains[position].rules.len();
                    if count > 0 {
                        editor.set_counters(chain, b % count, counters(1, 2)).unwrap();
                    }
                }
            }
        }
        prop_assert_eq!(editor.chain_count(), chains.len());
        let replacement = editor.finish().unwrap();
        let new = replacement.to_table().unwrap();
        exercise(&new);
        prop_assert_eq!(counted(&replacement).len(), new.info().num_entries() as usize);
        let name = |id: ChainId| chains.iter().find(|c| c.id == id).map(|c| c.name.clone());
        prop_assert_eq!(new.chains().len(), chains.len());
        for (chain, model) in new.chains().zip(&chains) {
            prop_assert_eq!(chain.name(), model.name.as_str());
            prop_assert_eq!(chain.hook().is_some(), model.builtin);
            let read: Vec<_> = chain.rules().map(|rule| parts(&rule)).collect();
            let wanted: Vec<_> = model
                .rules
                .iter()
                .map(|(text, to)| (text.clone(), to.map(|to| name(to).unwrap())))
                .collect();
            prop_assert_eq!(read, wanted);
            // The editor shows the same.
            let view = editor.get(model.id).unwrap();
            prop_assert_eq!(view.rule_count(), model.rules.len());
            for (shown, (_, to)) in view.rules().zip(&model.rules) {
                match shown.target().unwrap() {
                    EditedTarget::Jump(id) | EditedTarget::Goto(id) => prop_assert_eq!(Some(id), *to),
                    _ => prop_assert_eq!(None, *to),
                }
                let _ = Header::is_goto(&shown.header());
            }
        }
        // An unchanged copy is identical.
        let same = TableEditor::of(&new).finish().unwrap();
        prop_assert_eq!(same.entries(), new.entries());
    }
}

#[test]
fn rejects_ids_of_other_editors() {
    let table = IPV4_FILTER.read();
    let (mut one, mut other) = (TableEditor::of(&table), TableEditor::of(&table));
    let rule = |editor: &mut TableEditor<'_>| {
        let rule = editor.build(Ipv4HeaderBuf::default()).unwrap();
        rule.finish(NewTarget::Accept).unwrap()
    };
    let (ones, others) = (rule(&mut one), rule(&mut other));
    let input = one.builtin(Hook::Input).unwrap();
    let foreign = other.builtin(Hook::Input).unwrap();
    assert_eq!(one.append(input, others), Err(EditError::ForeignRule));
    assert_eq!(one.append(foreign, ones), Err(EditError::ForeignChain));
    assert_eq!(one.flush(foreign), Err(EditError::ForeignChain));
    assert_eq!(one.rename_chain(foreign, "x"), Err(EditError::ForeignChain));
    assert!(one.get(foreign).is_none());
    // As many chains, but different ones.
    let (added, foreign) = (
        one.add_chain("one").unwrap(),
        other.add_chain("other").unwrap(),
    );
    assert_eq!(one.remove_chain(foreign), Err(EditError::ForeignChain));
    let jump = one.build(Ipv4HeaderBuf::default()).unwrap();
    assert_eq!(
        jump.finish(NewTarget::Jump(foreign)),
        Err(EditError::ForeignChain)
    );

    // A clone has everything from before, and nothing that came later.
    let mut clone = one.clone();
    clone.append(added, ones).unwrap();
    clone.append(input, ones).unwrap();
    assert_eq!(clone.chain("one"), Some(added));
    let (later, later_rule) = (one.add_chain("later").unwrap(), rule(&mut one));
    let clones = clone.add_chain("clones").unwrap();
    assert_eq!(clone.append(later, ones), Err(EditError::ForeignChain));
    assert_eq!(
        clone.append(clones, later_rule),
        Err(EditError::ForeignRule)
    );
    assert_eq!(one.append(clones, ones), Err(EditError::ForeignChain));
}
