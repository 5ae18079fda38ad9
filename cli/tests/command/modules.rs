//! Commands that only read load no kernel module. On a kernel with built-in netfilter no module can
//! be loaded, and the test prints that; the machines of `integration-vm` run it before all other
//! tests, when no module is loaded.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{report, sandbox};
use chainwright::legacy;
use chainwright::netlink::Error;
use chainwright::nft::{self, Connection, Family, Table, Transaction};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// Returns the loaded modules; `None` if the kernel has no modules at all.
fn loaded() -> Option<BTreeSet<String>> {
    let modules = std::fs::read_to_string("/proc/modules").ok()?;
    let names = modules.lines().filter_map(|line| line.split(' ').next());
    Some(names.map(str::to_owned).collect())
}

/// One test, because other tests in the same binary would load modules meanwhile.
#[test]
fn reading_loads_no_modules_and_the_first_change_does() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let backup = directory.path().join("snapshot"); // the command replaces whatever has this name
    let before = loaded();
    let was_loaded = nft::is_loaded();
    if before.is_none() {
        println!("this kernel lacks modules: all are built in, so reading can load none");
        assert!(was_loaded);
    }
    for line in [
        "get chains",
        "get chains --backend legacy",
        "exists --table filter INPUT",
        "exists --table filter --backend legacy INPUT",
        "get rules",
        "get sets --elements",
        "get ruleset -o iptables",
        "get ruleset -o iptables -6",
        "get ruleset -o iptables --backend legacy",
        &format!("snapshot {}", backup.display()),
        "kube check",
        "-- chainwright get chains ",
        "-- chainwright get sets ",
        "-- chainwright get tables ",
    ] {
        let mut command = Command::new(PROGRAM);
        let completes = line.starts_with("--");
        if completes {
            command.env("CHAINWRIGHT_COMPLETE", "bash");
        }
        let output = sandbox
            .run(|| command.args(line.split(' ')).output())
            .unwrap()
            .unwrap();
        assert_eq!(loaded(), before, "{line}");
        if completes {
            assert_eq!(output.stderr, b"", "{line}");
        } else if !was_loaded && !line.contains("legacy") {
            // The error is clear, and no empty ruleset is printed.
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(
                message.contains("nf_tables is not loaded"),
                "{line}: {message}"
            );
        }
    }
    for family in [
        legacy::Family::Ipv4,
        legacy::Family::Ipv6,
        legacy::Family::Arp,
    ] {
        let looked = sandbox.run(|| legacy::status(family)).unwrap();
        println!("{family:?}: {looked:?}");
        assert_eq!(loaded(), before);
    }
    match sandbox.run(Connection::open_if_loaded).unwrap() {
        Ok(mut nft) => {
            assert!(was_loaded);
            nft.generation().unwrap();
        }
        Err(Error::NotLoaded) => assert!(!was_loaded),
        Err(error) => panic!("{}", report(&error)),
    }
    assert_eq!(loaded(), before);

    // A change loads the modules that it needs; then there is a ruleset to read.
    let mut nft = sandbox.run(Connection::open).unwrap().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    nft.commit(&tx).unwrap();
    assert!(nft::is_loaded());
    let mut looking = sandbox.run(Connection::open_if_loaded).unwrap().unwrap();
    assert!(looking.table(Family::INET, "t").unwrap().is_some());
}
