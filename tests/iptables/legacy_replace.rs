//! Legacy tables changed by the library, and checked by the kernel and the real tools.

mod changes;

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::needs::find;
use crate::common::tools::Tools;
use crate::common::{packets, sandbox, save};
use chainwright::Retry;
use chainwright::legacy::{
    Connection, EditError, Error, ExtensionKind, Family, HeaderBuf, Hook, Ipv4HeaderBuf,
    Ipv6HeaderBuf, Lock, LockPolicy, NewRule, NewTarget, Policy, RuleRef, Table, TableEditor,
    Target,
};
use chainwright_testing::Sandbox;

/// The initial table for tests of single changes. The policies' counters are zero, because the tool,
/// unlike the library, resets them at each change.
const FILTER: &str = r#"*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:Beta - [0:0]
:alpha - [0:0]
:zeta - [0:0]
[4:400] -A INPUT -s 10.0.0.0/8 -i eth0 -p tcp -m tcp --dport 22 -j alpha
[5:500] -A INPUT -m comment --comment "second" -j Beta
[6:600] -A INPUT -f -j DROP
[7:700] -A OUTPUT -p udp -m udp --dport 53
[8:800] -A alpha -p udp -g zeta
[9:900] -A alpha -j LOG --log-prefix "alpha: "
[10:1000] -A zeta -m limit --limit 3/min -j RETURN
COMMIT
"#;

fn open(sandbox: &Sandbox, family: Family) -> Connection {
    sandbox.run(|| Connection::open(family)).unwrap().unwrap()
}

fn read(connection: &Connection, table: &str) -> Table {
    connection.read(table).unwrap().in_use().unwrap()
}

/// Sends an edited table to the kernel.
#[track_caller]
fn replace(connection: &Connection, editor: &TableEditor<'_>) {
    connection.replace(&mut editor.finish().unwrap()).unwrap();
}

/// A new rule with the parts of another table's rule.
fn copy(editor: &mut TableEditor<'_>, rule: &RuleRef<'_>) -> NewRule {
    let target = rule.target().unwrap();
    let extension;
    let target = match target {
        Target::Accept => NewTarget::Accept,
        Target::Drop => NewTarget::Drop,
        Target::Queue => NewTarget::Queue,
        Target::Return => NewTarget::Return,
        Target::FallThrough => NewTarget::FallThrough,
        Target::Jump(chain) => NewTarget::Jump(editor.chain(chain.name()).unwrap()),
        Target::Goto(chain) => NewTarget::Goto(editor.chain(chain.name()).unwrap()),
        Target::Extension(target) => {
            extension = target;
            NewTarget::Extension {
                name: extension.name(),
                revision: extension.revision(),
                data: extension.data(),
            }
        }
        other => panic!("{other:?} is in none of the rulesets"),
    };
    let mut new = editor.build(HeaderBuf::from(rule.header())).unwrap();
    for extension in rule.matches() {
        let extension = extension.unwrap();
        new.push_match(extension.name(), extension.revision(), extension.data())
            .unwrap();
    }
    new.counters(rule.counters());
    new.finish(target).unwrap()
}

/// The rule that the tool makes of a line.
fn last_rule<'t>(table: &'t Table, chain: &str) -> RuleRef<'t> {
    table.chain(chain).unwrap().rules().last().unwrap()
}

#[test]
fn an_unchanged_replace_keeps_the_same_bytes() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let wanted = save::with_counters(save::KUBE_PROXY);
    tools.run_with("iptables-legacy-restore --counters", &wanted);
    let saved = tools.save("iptables-legacy-save -c");
    let connection = open(&sandbox, Family::Ipv4);
    let names = connection.tables().unwrap();
    assert!(names.len() > 1);
    for name in names {
        let table = read(&connection, &name.to_string());
        let mut same = TableEditor::of(&table).finish().unwrap();
        assert_eq!(same.entries(), table.entries());
        let mut twice = same.clone();
        connection.replace(&mut same).unwrap();
        for sent in [&mut same, &mut twice] {
            let error = connection.replace(sent).unwrap_err();
            assert!(matches!(error, Error::AlreadySent { .. }), "{error}");
        }
        let again = read(&connection, &name.to_string());
        assert_eq!(again.entries(), table.entries());
        assert_eq!(again.info(), table.info());

        // Of clones in several threads only one is sent; after a failure it can be sent again.
        let mut first = TableEditor::of(&again).finish().unwrap();
        let other = open(&sandbox, Family::Ipv6);
        let error = other.replace(&mut first).unwrap_err();
        assert!(matches!(error, Error::WrongFamily { .. }), "{error}");
        let mut clones = vec![first; 8];
        let sent = std::thread::scope(|scope| {
            let connection = &connection;
            let sending = clones
                .iter_mut()
                .map(|clone| scope.spawn(|| connection.replace(clone)));
            let sending: Vec<_> = sending.collect();
            let sent = sending.into_iter().map(|thread| thread.join().unwrap());
            sent.filter(Result::is_ok).count()
        });
        assert_eq!(sent, 1);
    }
    assert_eq!(tools.save("iptables-legacy-save -c"), saved);
}

/// Each table that the tool loaded is built from scratch in another sandbox: the kernel then has the
/// same bytes, including counters.
#[track_caller]
fn rebuilt(family: Family, restore: &str, saver: &str, save: &str) {
    let (real, chainwright) = (sandbox(), sandbox());
    let (their_tools, our_tools) = (Tools::new(&real), Tools::new(&chainwright));
    their_tools.run_with(restore, save);
    let (their, our) = (open(&real, family), open(&chainwright, family));
    for name in their.tables().unwrap() {
        let table = read(&their, &name.to_string());
        our.instantiate(name).unwrap();
        let old = read(&our, &name.to_string());
        let mut editor = TableEditor::of(&old);
        for chain in table.chains() {
            match chain.builtin() {
                None => _ = editor.add_chain(chain.name()).unwrap(),
                Some(builtin) => {
                    let id = editor.builtin(builtin.hook).unwrap();
                    editor.set_policy(id, builtin.policy).unwrap();
                    editor.set_policy_counters(id, builtin.counters).unwrap();
                }
            }
        }
        for chain in table.chains() {
            let id = editor.chain(chain.name()).unwrap();
            for rule in chain.rules() {
                let new = copy(&mut editor, &rule);
                editor.append(id, new).unwrap();
            }
        }
        replace(&our, &editor);
        let new = read(&our, &name.to_string());
        assert_eq!(new.info(), table.info());
        assert!(new.entries() == table.entries(), "{family} {name}");
    }
    // The tool prints the tables in the order of their creation.
    let saved = |tools: &Tools<'_>| {
        let mut tables = save::parse(&tools.save(saver));
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    };
    assert!(saved(&our_tools) == saved(&their_tools));
}

#[test]
fn a_new_ipv4_table_matches_the_real_tool() {
    let save = save::with_counters(save::KUBE_PROXY);
    rebuilt(
        Family::Ipv4,
        "iptables-legacy-restore --counters",
        "iptables-legacy-save -c",
        &save,
    );
    rebuilt(
        Family::Ipv4,
        "iptables-legacy-restore --counters",
        "iptables-legacy-save -c",
        FILTER,
    );
}

#[test]
fn a_new_ipv6_table_matches_the_real_tool() {
    rebuilt(
        Family::Ipv6,
        "ip6tables-legacy-restore --counters",
        "ip6tables-legacy-save -c",
        save::IPV6,
    );
}

/// A chain and the jumps to it are removed together.
/// A table is restored with its chains, rules and counters, and only then counts as not replaced.
#[test]
fn a_table_that_was_read_is_restored_exactly() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("iptables-legacy-restore -c", FILTER);
    let before = tools.save("iptables-legacy-save -c");
    let connection = open(&sandbox, Family::Ipv4);
    let kept = read(&connection, "filter");
    assert!(!kept.was_replaced(&read(&connection, "filter")));
    for change in [
        "iptables-legacy -Z alpha",
        "iptables-legacy -P INPUT DROP",
        "iptables-legacy -F",
        "iptables-legacy -A INPUT -s 192.0.2.1 -j ACCEPT",
    ] {
        tools.run(change);
        assert!(kept.was_replaced(&read(&connection, "filter")), "{change}");
        connection.restore(&kept).unwrap();
        assert_eq!(tools.save("iptables-legacy-save -c"), before, "{change}");
        let now = read(&connection, "filter");
        assert!(!kept.was_replaced(&now), "{change}");
        assert_eq!(now.entries(), kept.entries());
    }
    // More packets do not count.
    tools.run("iptables-legacy -R INPUT 2 -m comment --comment second -j Beta -c 6 600");
    assert!(!kept.was_replaced(&read(&connection, "filter")));
    connection.reset("filter").unwrap();
    assert_eq!(
        tools.save("iptables-legacy-save -c"),
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
    );
}

#[test]
fn chains_are_removed_with_their_jumps() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("iptables-legacy-restore", save::KUBE_PROXY);
    let connection = open(&sandbox, Family::Ipv4);
    let table = read(&connection, "nat");
    let mut editor = TableEditor::of(&table);
    let ids: Vec<_> = editor
        .chains()
        .filter(|c| c.hook().is_none())
        .map(|c| c.id())
        .collect();
    assert!(ids.len() > 1000);
    let first = editor.get(ids[0]).unwrap().name().to_string();
    for id in editor.chains().map(|c| c.id()).collect::<Vec<_>>() {
        editor.flush(id).unwrap();
    }
    for id in ids {
        editor.remove_chain(id).unwrap();
    }
    assert!(editor.chain(&first).is_none());
    replace(&connection, &editor);
    let saved = tools.save("iptables-legacy-save -t nat");
    assert_eq!(
        saved.lines().filter(|line| line.starts_with(':')).count(),
        4
    );
    assert!(!saved.contains("-A "));
}

/// Packets are sent while the table is replaced repeatedly: each is counted once.
#[test]
fn no_packet_is_lost_from_the_sum() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("iptables-legacy -A OUTPUT -p udp -m udp --dport 9 -j ACCEPT");
    let connection = open(&sandbox, Family::Ipv4);
    let mut forgotten = 0;
    let packets = |table: &Table| last_rule(table, "OUTPUT").counters().packets;
    let sent = packets::while_sending(&sandbox, |sent| {
        for turn in 0..200 {
            let table = read(&connection, "filter");
            let mut editor = TableEditor::of(&table);
            let output = editor.builtin(Hook::Output).unwrap();
            // The rule has another position each time.
            if turn % 2 == 0 {
                let rule = editor.build(Ipv4HeaderBuf::default()).unwrap();
                let rule = rule.finish(NewTarget::FallThrough).unwrap();
                editor.insert(output, 0, rule).unwrap();
            } else {
                editor.remove(output, 0).unwrap();
            }
            if turn == 100 {
                forgotten = packets(&table);
                assert!(forgotten > 0);
                editor.zero_rule(output, 1).unwrap();
            }
            replace(&connection, &editor);
        }
        // On a busy machine the sender may not have run since.
        while sent.load(Ordering::Relaxed) <= forgotten {
            std::thread::yield_now();
        }
    });
    let counted = packets(&read(&connection, "filter"));
    assert_eq!(counted, sent - forgotten);
    assert!(counted > 0);
}

#[test]
fn detects_concurrent_changes() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("iptables-legacy -N ours");
    let connection = open(&sandbox, Family::Ipv4);
    let table = read(&connection, "filter");
    let mut editor = TableEditor::of(&table);
    editor.add_chain("late").unwrap();
    tools.run("iptables-legacy -N theirs");
    let error = connection
        .replace(&mut editor.finish().unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    let saved = tools.save("iptables-legacy-save");
    assert!(
        saved.contains(":theirs ") && !saved.contains(":late "),
        "{saved}"
    );
    // After another read it works.
    let table = read(&connection, "filter");
    let mut editor = TableEditor::of(&table);
    editor.add_chain("late").unwrap();
    replace(&connection, &editor);
    let saved = tools.save("iptables-legacy-save");
    assert!(
        saved.contains(":theirs ") && saved.contains(":late "),
        "{saved}"
    );
}

#[test]
fn kernel_rejections_are_explained() {
    let sandbox = sandbox();
    let connection = open(&sandbox, Family::Ipv4);
    connection.instantiate("filter").unwrap();
    let table = read(&connection, "filter");
    // One rule in INPUT; returns the kernel's error.
    let refused = |matching: Option<(&str, u8, &[u8])>, target: &[u8], data: &[u8]| {
        let mut editor = TableEditor::of(&table);
        let mut rule = editor.build(Ipv4HeaderBuf::default()).unwrap();
        if let Some((name, revision, data)) = matching {
            rule.push_match(name, revision, data).unwrap();
        }
        let target = match target {
            b"" => NewTarget::Accept,
            name => NewTarget::Extension {
                name,
                revision: 0,
                data,
            },
        };
        let rule = rule.finish(target).unwrap();
        editor
            .append(editor.builtin(Hook::Input).unwrap(), rule)
            .unwrap();
        connection
            .replace(&mut editor.finish().unwrap())
            .unwrap_err()
    };
    let errno = |error: &Error| match error {
        Error::Refused { errno, .. } => errno.name(),
        other => panic!("{other}"),
    };
    // An unknown match, revision, and target.
    for (error, expected) in [
        (
            refused(Some(("nix", 0, &[])), b"", &[]),
            (ExtensionKind::Match, "nix", 0),
        ),
        (
            refused(Some(("comment", 9, &[0; 256])), b"", &[]),
            (ExtensionKind::Match, "comment", 9),
        ),
        (
            refused(None, b"NIX", &[]),
            (ExtensionKind::Target, "NIX", 0),
        ),
    ] {
        let Error::UnknownExtension {
            kind,
            name,
            revision,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!((*kind, name.to_string().as_str(), *revision), expected);
        assert!(error.to_string().contains(expected.1), "{error}");
    }
    // A size that the match does not have; a target of another table.
    let error = refused(Some(("comment", 0, &[0; 8])), b"", &[]);
    assert_eq!(errno(&error), "EINVAL", "{error}");
    let error = refused(None, b"MASQUERADE", &[0; 24]);
    assert_eq!(errno(&error), "EINVAL", "{error}");
    // A cycle of jumps.
    let mut editor = TableEditor::of(&table);
    let (a, b) = (
        editor.add_chain("a").unwrap(),
        editor.add_chain("b").unwrap(),
    );
    for (from, to) in [(editor.builtin(Hook::Input).unwrap(), a), (a, b), (b, a)] {
        let rule = editor.build(Ipv4HeaderBuf::default()).unwrap();
        let rule = rule.finish(NewTarget::Jump(to)).unwrap();
        editor.append(from, rule).unwrap();
    }
    let error = connection
        .replace(&mut editor.finish().unwrap())
        .unwrap_err();
    assert_eq!(errno(&error), "ELOOP", "{error}");
    assert!(error.to_string().contains("form a loop"), "{error}");
    // Another family.
    let error = open(&sandbox, Family::Ipv6)
        .replace(&mut TableEditor::of(&table).finish().unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::WrongFamily { .. }), "{error}");
    let mut editor = TableEditor::of(&table);
    let error = editor.build(Ipv6HeaderBuf::default()).unwrap_err();
    assert!(matches!(error, EditError::Family { .. }), "{error}");
    // Without the capability.
    let mut replacement = TableEditor::of(&table).finish().unwrap();
    let error = sandbox.run(|| {
        caps::drop(
            None,
            caps::CapSet::Effective,
            caps::Capability::CAP_NET_ADMIN,
        )
        .unwrap();
        connection.replace(&mut replacement).unwrap_err()
    });
    let error = error.unwrap();
    assert!(matches!(error, Error::NoPermission { .. }), "{error}");
    // Nothing was applied.
    assert_eq!(read(&connection, "filter").entries(), table.entries());
    // A table that this namespace does not have.
    let elsewhere = crate::common::sandbox();
    let other = open(&elsewhere, Family::Ipv4);
    other.instantiate("mangle").unwrap();
    let mangle = read(&other, "mangle");
    let mut replacement = TableEditor::of(&mangle).finish().unwrap();
    // The kernel then creates the table, as for any other request, and it equals the one read.
    connection.replace(&mut replacement).unwrap();
    assert!(connection.is_in_use("mangle").unwrap());
}

#[test]
fn supported_revisions_are_queried() {
    let sandbox = sandbox();
    for family in [Family::Ipv4, Family::Ipv6] {
        let connection = open(&sandbox, family);
        assert!(connection.match_revision("comment", 0).unwrap());
        assert!(connection.match_revision("mark", 1).unwrap());
        assert!(!connection.match_revision("mark", 99).unwrap());
        assert!(!connection.match_revision("nix", 0).unwrap());
        assert!(connection.target_revision("MARK", 2).unwrap());
        assert!(!connection.target_revision("MARK", 77).unwrap());
        assert!(!connection.target_revision("NIX", 0).unwrap());
        let error = connection.match_revision("", 0).unwrap_err();
        assert!(matches!(error, Error::ExtensionName { .. }), "{error}");
        // The query creates no table.
        assert!(connection.tables().unwrap().is_empty());
    }
}

/// An ARP table is changed like the others.
#[test]
fn arp_tables_are_replaced() {
    let sandbox = sandbox();
    let connection = open(&sandbox, Family::Arp);
    connection.instantiate("filter").unwrap();
    let table = read(&connection, "filter");
    let mut editor = TableEditor::of(&table);
    let chain = editor.add_chain("ours").unwrap();
    let input = editor.builtin(Hook::Input).unwrap();
    let header = HeaderBuf::from(
        table
            .builtin(Hook::Input)
            .unwrap()
            .final_entry()
            .unwrap()
            .header(),
    );
    let jump = editor
        .build(header)
        .unwrap()
        .finish(NewTarget::Jump(chain))
        .unwrap();
    editor.append(input, jump).unwrap();
    let drop = editor
        .build(header)
        .unwrap()
        .finish(NewTarget::Drop)
        .unwrap();
    editor.append(chain, drop).unwrap();
    editor.set_policy(input, Policy::Drop).unwrap();
    replace(&connection, &editor);
    let table = read(&connection, "filter");
    let input = table.builtin(Hook::Input).unwrap();
    assert_eq!(input.policy(), Some(Policy::Drop));
    let target = input.rules().next().unwrap().target().unwrap();
    assert_eq!(target.chain(), table.chain("ours"));
    assert_eq!(last_rule(&table, "ours").target().unwrap(), Target::Drop);
}

/// Starts a tool in a sandbox with this lock file.
fn start(sandbox: &Sandbox, lock: &LockPolicy, program: &str, arguments: &[&str]) -> Child {
    let child = sandbox.run(|| {
        Command::new(find(program))
            .args(arguments)
            .env("XTABLES_LOCKFILE", lock.path().unwrap())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    });
    child.unwrap().unwrap()
}

#[test]
fn the_tools_wait_for_our_lock_and_vice_versa() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let policy = LockPolicy::Path(directory.path().join("xtables.lock"));

    // The test holds the lock: the tool fails, or waits until the lock is free.
    let lock = Lock::take(&policy, Retry::ONCE).unwrap();
    let refused = start(
        &sandbox,
        &policy,
        "iptables-legacy",
        &["-w", "1", "-N", "one"],
    );
    let output = refused.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let waiting = start(&sandbox, &policy, "iptables-legacy", &["-w", "-N", "two"]);
    drop(lock);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let connection = open(&sandbox, Family::Ipv4);
    let table = read(&connection, "filter");
    assert!(table.chain("one").is_none() && table.chain("two").is_some());

    // The tool holds the lock while it waits for its input.
    let mut tool = start(&sandbox, &policy, "iptables-legacy-restore", &["--noflush"]);
    let mut input = tool.stdin.take().unwrap();
    input.write_all(b"*filter\n:three - [0:0]\n").unwrap();
    input.flush().unwrap();
    let error = loop {
        match Lock::take(&policy, Retry::ONCE) {
            Ok(lock) => drop(lock), // not yet
            Err(error) => break error,
        }
        std::thread::yield_now();
    };
    let Error::Locked {
        holder: Some(holder),
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(holder.pid, tool.id());
    assert_eq!(holder.name.as_ref().unwrap(), "iptables-legacy");
    assert!(
        error
            .to_string()
            .contains(&format!("iptables-legacy (process {})", tool.id()))
    );
    let error = Lock::take(&policy, Retry::within(Duration::from_millis(30))).unwrap_err();
    assert!(matches!(error, Error::Locked { waited, .. } if waited >= Duration::from_millis(30)));
    std::thread::scope(|scope| {
        let chainwright = scope.spawn(|| Lock::take(&policy, Retry::FOREVER).map(drop));
        input.write_all(b"COMMIT\n").unwrap();
        drop(input);
        chainwright.join().unwrap().unwrap();
    });
    assert!(tool.wait().unwrap().success());
    assert!(read(&connection, "filter").chain("three").is_some());
}
