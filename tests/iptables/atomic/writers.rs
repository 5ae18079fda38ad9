//! Many concurrent writers, and the lock between them.

use std::process::{Child, Command, Stdio};

use chainwright::Retry;
use chainwright::iptables::Error;
use chainwright::legacy::Lock;

use super::*;
use crate::common::iptables::real_save;

/// Starts a tool in a sandbox with this lock file.
fn start(sandbox: &Sandbox, lock: &Path, line: &str) -> Child {
    let mut words = line.split(' ');
    let program = words.next().unwrap();
    let child = sandbox.run(|| {
        Command::new(find(program))
            .args(words)
            .env("XTABLES_LOCKFILE", lock)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    });
    child
        .unwrap()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Each writer checks whether its rule exists, and adds it.
fn writers(sandbox: &Sandbox, backend: Backend, policy: &LockPolicy, threads: usize, each: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let opened = sandbox.run(|| Iptables::open(backend)).unwrap().unwrap();
                let wait = Retry::within(Duration::from_secs(120));
                let mut iptables = opened.with_lock(policy.clone(), wait);
                for number in 0..each {
                    let text = format!("-m comment --comment ours-{thread}-{number}");
                    let rule = rule(Family::Ipv4, &text);
                    iptables
                        .update(Family::Ipv4, "filter", |table| {
                            table.ensure_chain("shared")?;
                            assert!(!table.contains("shared", &rule)?);
                            table.append("shared", &rule)
                        })
                        .unwrap();
                }
            });
        }
    });
}

#[test]
fn parallel_changes_of_nf_tables_lose_nothing() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("iptables-nft -N shared");
    let lock = tempfile::NamedTempFile::new().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| writers(&sandbox, Backend::Nft, &LockPolicy::None, 6, 12));
        for number in 0..20 {
            let line = format!("iptables-nft -A shared -m comment --comment theirs-{number}");
            let child = start(&sandbox, lock.path(), &line);
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    });
    let saved = tools.save("iptables-nft-save");
    assert_eq!(saved.matches("ours-").count(), 72, "{saved}");
    assert_eq!(saved.matches("theirs-").count(), 20, "{saved}");
}

/// Another program changes the tables during each attempt: nothing is applied, and the error reports
/// so.
#[test]
fn an_update_that_always_loses_the_race_is_an_error() {
    let sandbox = sandbox();
    let mut other = open(&sandbox, Backend::Nft);
    let mut iptables = open(&sandbox, Backend::Nft).with_retry(Retry::times(32));
    let mut attempts = 0;
    let error = iptables
        .update(Family::Ipv4, "filter", |table| {
            assert!(!table.has_chain("late")?);
            attempts += 1;
            other.update(Family::Ipv4, "filter", |table| {
                table.new_chain(format!("early-{attempts}"))
            })?;
            table.new_chain("late")
        })
        .unwrap_err();
    assert!(matches!(error, Error::Contended { attempts: reported } if reported == attempts));
    assert!(error.nothing_applied());
    let message =
        "another process changed the tables during each of 32 attempts; nothing was applied";
    assert_eq!(error.to_string(), message);
    let tables = other.read(Family::Ipv4, &["filter"]).unwrap();
    let table = tables.table("filter").unwrap();
    assert!(table.chain("late").is_none() && table.chain("early-32").is_some());
    // Late only a few times: the work is repeated, and takes effect once.
    let mut attempts = 0;
    iptables
        .update(Family::Ipv4, "filter", |table| {
            attempts += 1;
            table.ensure_chain("late")?;
            table.append("late", &rule(Family::Ipv4, "-p tcp"))?;
            if attempts < 4 {
                other.update(Family::Ipv4, "filter", |table| {
                    table.append("early-1", &rule(Family::Ipv4, "-p udp"))
                })?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(attempts, 4);
    let tables = other.read(Family::Ipv4, &["filter"]).unwrap();
    let table = tables.table("filter").unwrap();
    assert_eq!(table.chain("late").unwrap().rule_count(), 1);
    assert_eq!(table.chain("early-1").unwrap().rule_count(), 3);
    // Contradictory reads, because another program removed the chain in between.
    let mut attempts = 0;
    let found = iptables.update(Family::Ipv4, "filter", |table| {
        attempts += 1;
        let found = table.has_chain("late")?;
        if attempts == 1 {
            other.update(Family::Ipv4, "filter", |table| {
                table.flush("late")?;
                table.remove_chain("late")
            })?;
        }
        if found {
            table.rules("late")?;
        }
        Ok(found)
    });
    assert!(!found.unwrap());
    assert_eq!(attempts, 2);
}

#[test]
fn a_hundred_writers_of_a_legacy_table_lose_nothing() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("xtables.lock");
    let policy = LockPolicy::Path(path.clone());
    tools.run("iptables-legacy -N shared");
    std::thread::scope(|scope| {
        scope.spawn(|| writers(&sandbox, Backend::Legacy, &policy, 60, 1));
        let children: Vec<_> = (0..40)
            .map(|number| {
                let line =
                    format!("iptables-legacy -w -A shared -m comment --comment theirs-{number}");
                start(&sandbox, &path, &line)
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    });
    let saved = tools.save("iptables-legacy-save");
    for writer in 0..60 {
        let line = format!("-A shared -m comment --comment ours-{writer}-0\n");
        assert_eq!(saved.matches(&line).count(), 1, "{saved}");
    }
    for writer in 0..40 {
        let line = format!("-A shared -m comment --comment theirs-{writer}\n");
        assert_eq!(saved.matches(&line).count(), 1, "{saved}");
    }
}

#[test]
fn errors_name_the_holder_of_the_lock() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("xtables.lock");
    let policy = LockPolicy::Path(path.clone());
    let mut tool = start(&sandbox, &path, "iptables-legacy-restore --noflush");
    let mut input = tool.stdin.take().unwrap();
    input.write_all(b"*filter\n:theirs - [0:0]\n").unwrap();
    input.flush().unwrap();
    loop {
        match Lock::take(&policy, Retry::ONCE) {
            Ok(lock) => drop(lock), // not yet
            Err(_) => break,
        }
        std::thread::yield_now();
    }
    let opened = sandbox.run(Iptables::legacy).unwrap().unwrap();
    let wait = Retry::within(Duration::from_millis(20));
    let mut iptables = opened.with_lock(policy.clone(), wait);
    let error = iptables
        .update(Family::Ipv4, "filter", |table| table.new_chain("ours"))
        .unwrap_err();
    assert!(error.nothing_applied());
    let holder = format!("iptables-legacy (process {})", tool.id());
    let message = error.to_string();
    assert!(message.contains(&holder), "{message}");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    // Reading takes no lock.
    assert!(iptables.read(Family::Ipv4, &[]).is_ok());
    input.write_all(b"COMMIT\n").unwrap();
    drop(input);
    assert!(tool.wait().unwrap().success());
    iptables
        .update(Family::Ipv4, "filter", |table| table.new_chain("ours"))
        .unwrap();
    let saved = real_save(&Tools::new(&sandbox), Backend::Legacy, Family::Ipv4);
    assert!(
        saved.contains(":theirs ") && saved.contains(":ours "),
        "{saved}"
    );
}
