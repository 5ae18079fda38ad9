//! Rulesets that the real tools loaded into legacy tables, read by the library and by the tools.

use std::fmt::{Display, Write};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use crate::common::needs::find;
use crate::common::sandbox;
use crate::common::save::{self, SavedChain, SavedRule, Target};
use crate::common::tools::Tools;
use caps::{CapSet, Capability};
use chainwright::legacy::{
    Access, ChainRef, Connection, Error, Family, Header, Inversions, Ipv4Flags, Ipv6Flags, Lookup,
    Masked, RuleRef, Status, Table, status,
};
use chainwright_testing::Sandbox;
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// Marks a process that was started to test its own network namespace.
const ALONE: &str = "CHAINWRIGHT_TEST_UNREADABLE_NAMES";

fn open(sandbox: &Sandbox, family: Family) -> Connection {
    sandbox.run(|| Connection::open(family)).unwrap().unwrap()
}

fn names_file(sandbox: &Sandbox, family: Family) -> String {
    let text = sandbox.run(|| fs::read_to_string(family.names_file()));
    text.unwrap().unwrap()
}

/// Compares all legacy tables of a sandbox with the tool's output for them. Returns the number of
/// chains and rules.
#[track_caller]
fn same_as_saved(connection: &Connection, saved: &str) -> (usize, usize) {
    let saved = save::parse(saved);
    let names = connection.tables().unwrap();
    let printed: Vec<_> = saved.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, printed);

    let (mut chains, mut rules) = (0, 0);
    let mut reused = Table::empty(connection.family());
    for saved in &saved {
        let table = connection.read(&saved.name).unwrap().in_use().unwrap();
        assert_eq!(**table.name(), *saved.name);
        assert_eq!(table.family(), connection.family());
        let names: Vec<_> = table.chains().map(|c| c.name().to_string()).collect();
        let printed: Vec<_> = saved.chains.iter().map(|c| c.name.clone()).collect();
        assert_eq!(names, printed);
        let mut entries = 1; // the end of the table
        for (chain, saved) in table.chains().zip(&saved.chains) {
            same_chain(chain, saved);
            assert_eq!(table.chain(&saved.name), Some(chain));
            if let Some(hook) = chain.hook() {
                assert_eq!(table.builtin(hook), Some(chain));
            }
            let implicit = if chain.hook().is_some() { 1 } else { 2 };
            entries += saved.rules.len() + implicit;
            chains += 1;
            rules += saved.rules.len();
        }
        assert!(table.chain("nix").is_none());
        assert_eq!(table.info().num_entries() as usize, entries);
        let info = connection.info(&saved.name).unwrap();
        assert_eq!(info, Lookup::InUse(*table.info()));
        // Again, into memory that contained another table.
        let Lookup::InUse(again) = connection.read_into(&saved.name, &mut reused).unwrap() else {
            panic!("{} should be in use", saved.name);
        };
        assert_eq!(again.chains().len(), table.chains().len());
        for (again, first) in again.chains().zip(table.chains()) {
            assert_eq!(again.name(), first.name());
            assert_eq!(again.builtin(), first.builtin());
            assert_eq!(again.rule_count(), first.rule_count());
            for (again, first) in again.rules().zip(first.rules()) {
                assert_eq!(again.header(), first.header());
                assert_eq!(again.counters(), first.counters());
                assert_eq!(target(&again), target(&first));
                assert!(again.matches().eq(first.matches()), "{again:?}, {first:?}");
            }
        }
    }
    (chains, rules)
}

#[track_caller]
fn same_chain(chain: ChainRef<'_>, saved: &SavedChain) {
    let builtin = chain.builtin();
    let policy = builtin.map(|builtin| builtin.policy.to_string());
    assert_eq!(policy, saved.policy, "{}", saved.name);
    assert_eq!(chain.policy(), builtin.map(|builtin| builtin.policy));
    if let Some(builtin) = builtin {
        let counters = (builtin.counters.packets, builtin.counters.bytes);
        assert_eq!(counters, saved.counters, "{}", saved.name);
        assert_eq!(builtin.hook.chain_name(), saved.name);
    }
    assert_eq!(chain.rule_count(), saved.rules.len(), "{}", saved.name);
    assert_eq!(chain.rules().count(), saved.rules.len(), "{}", saved.name);
    for (rule, saved_rule) in chain.rules().zip(&saved.rules) {
        same_rule(&rule, saved_rule, &saved.name);
    }
}

#[track_caller]
fn same_rule(rule: &RuleRef<'_>, saved: &SavedRule, chain: &str) {
    let line = &saved.line;
    let counters = rule.counters();
    assert_eq!((counters.packets, counters.bytes), saved.counters, "{line}");
    assert_eq!(target(rule), saved.target, "{line}");
    let matches: Vec<_> = rule
        .matches()
        .map(|m| m.unwrap().name().to_string())
        .collect();
    assert_eq!(matches, saved.matches, "{line}");
    // The header is the part of the line between the chain and the matches.
    let start = format!("{counters} -A {chain}{}", header(&rule.header()));
    let rest = line.strip_prefix(&start);
    assert!(
        rest.is_some_and(|rest| ["", " -m ", " -j ", " -g "]
            .iter()
            .any(|next| rest.get(..4).unwrap_or(rest) == *next)),
        "{start:?} is not the start of {line:?}"
    );
}

fn target(rule: &RuleRef<'_>) -> Target {
    use chainwright::legacy::Target as Legacy;
    match rule.target().unwrap() {
        Legacy::Accept => Target::Verdict("ACCEPT".into()),
        Legacy::Drop => Target::Verdict("DROP".into()),
        Legacy::Return => Target::Verdict("RETURN".into()),
        Legacy::FallThrough => Target::None,
        Legacy::Jump(chain) => Target::Jump(chain.name().to_string()),
        Legacy::Goto(chain) => Target::Goto(chain.name().to_string()),
        Legacy::Extension(extension) => Target::Extension(extension.name().to_string()),
        other => panic!("{other:?} is in none of the rulesets"),
    }
}

/// A rule's header as `iptables-save` prints it.
fn header(header: &Header<'_>) -> String {
    let (source, destination, protocol, inversions) = match header {
        Header::Ipv4(h) => (
            address(h.source(), Ipv4Addr::to_bits),
            address(h.destination(), Ipv4Addr::to_bits),
            h.protocol(),
            h.inversions(),
        ),
        Header::Ipv6(h) => {
            let compared = h.flags().contains(Ipv6Flags::PROTOCOL);
            assert_eq!(compared, h.protocol() != 0);
            assert!(!h.flags().contains(Ipv6Flags::TOS));
            (
                address(h.source(), Ipv6Addr::to_bits),
                address(h.destination(), Ipv6Addr::to_bits),
                h.protocol(),
                h.inversions(),
            )
        }
        Header::Arp(_) => panic!("none of the rulesets is for ARP"),
    };
    if let Header::Ipv4(h) = header {
        assert!(!h.flags().contains(Ipv4Flags::FRAGMENT));
    }
    let mut text = String::new();
    let mut option = |option: &str, value: Option<String>, inversion| {
        let not = if inversions.contains(inversion) {
            "! "
        } else {
            ""
        };
        match value {
            Some(value) => write!(text, " {not}{option} {value}").unwrap(),
            None => assert_eq!(not, ""),
        }
    };
    let interface = |interface: chainwright::legacy::InterfaceMatch<'_>| {
        assert!(interface.is_plain());
        (!interface.is_any()).then(|| interface.to_string())
    };
    option("-s", source, Inversions::SOURCE);
    option("-d", destination, Inversions::DESTINATION);
    option(
        "-i",
        interface(header.in_interface()),
        Inversions::IN_INTERFACE,
    );
    option(
        "-o",
        interface(header.out_interface()),
        Inversions::OUT_INTERFACE,
    );
    let protocol = (protocol != 0).then(|| {
        let names = [
            (6, "tcp"),
            (17, "udp"),
            (50, "esp"),
            (58, "ipv6-icmp"),
            (132, "sctp"),
        ];
        let name = names.iter().find(|(number, _)| *number == protocol);
        name.unwrap_or_else(|| panic!("protocol {protocol}"))
            .1
            .to_owned()
    });
    option("-p", protocol, Inversions::PROTOCOL);
    text
}

/// An address as `iptables-save` prints it, unless it matches all.
fn address<A, B>(address: Masked<A>, bits: impl Fn(A) -> B) -> Option<String>
where
    A: Copy + Display + Into<IpAddr>,
    B: Into<u128>,
{
    let length = if address.value.into().is_ipv4() {
        32
    } else {
        128
    };
    let mask: u128 = bits(address.mask).into() << (128 - length);
    match mask.leading_ones() {
        0 if mask == 0 => None,
        ones if ones == mask.count_ones() => Some(format!("{}/{ones}", address.value)),
        _ => Some(format!("{}/{}", address.value, address.mask)),
    }
}

#[test]
fn kube_proxys_tables_match_iptables_legacy_save() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let wanted = save::with_counters(save::KUBE_PROXY);
    tools.run_with("iptables-legacy-restore --counters", &wanted);
    let saved = tools.save("iptables-legacy-save -c");
    // The tool prints all of it, with the tables in another order.
    let sorted = |save| {
        let mut tables = save::parse(save);
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    };
    assert_eq!(sorted(&saved), sorted(&wanted));

    let connection = open(&sandbox, Family::Ipv4);
    let (chains, rules) = same_as_saved(&connection, &saved);
    let count = |start: &str| {
        wanted
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert_eq!((chains, rules), (count(":"), count("[")));
    assert!(chains > 1000 && rules > 3000);
    // The other families are not touched by this.
    assert!(open(&sandbox, Family::Ipv6).tables().unwrap().is_empty());
}

#[test]
fn ipv6_tables_match_ip6tables_legacy_save() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("ip6tables-legacy-restore --counters", save::IPV6);
    let saved = tools.save("ip6tables-legacy-save -c");
    let by_name = |save| {
        let mut tables = save::parse(save);
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    };
    assert_eq!(by_name(&saved), by_name(save::IPV6));
    let connection = open(&sandbox, Family::Ipv6);
    assert_eq!(same_as_saved(&connection, &saved), (11, 11));
}

/// The tools' changes appear at the next read through the same connection.
#[test]
fn changes_are_visible_at_the_next_read() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let connection = open(&sandbox, Family::Ipv4);
    tools.run("iptables-legacy -N ours");
    tools.run("iptables-legacy -A INPUT -s 10.0.0.0/8 -j ours");
    let saved = tools.save("iptables-legacy-save -c");
    assert_eq!(same_as_saved(&connection, &saved), (4, 1));
    tools.run("iptables-legacy -P FORWARD DROP");
    tools.run("iptables-legacy -I ours -p udp -m udp --dport 53 -j ACCEPT");
    tools.run("iptables-legacy -D INPUT 1");
    let saved = tools.save("iptables-legacy-save -c");
    assert_eq!(same_as_saved(&connection, &saved), (4, 1));
    tools.run("iptables-legacy -F ours");
    tools.run("iptables-legacy -X ours");
    let saved = tools.save("iptables-legacy-save -c");
    assert_eq!(same_as_saved(&connection, &saved), (3, 0));
    // Emptied tables stay in use.
    assert!(connection.is_in_use("filter").unwrap());
}

#[test]
fn reading_never_creates_a_table() {
    let sandbox = sandbox();
    for family in Family::ALL {
        let connection = open(&sandbox, family);
        let mut buffer = Table::empty(family);
        for table in ["raw", "mangle", "nat", "filter", "security", "nix"] {
            assert!(connection.tables().unwrap().is_empty());
            assert!(!connection.is_in_use(table).unwrap());
            assert_eq!(connection.info(table).unwrap(), Lookup::NotInUse);
            assert!(!connection.read(table).unwrap().is_in_use());
            let read = connection.read_into(table, &mut buffer).unwrap();
            assert!(!read.is_in_use());
            let found = sandbox.run(|| status(family)).unwrap().unwrap();
            assert_eq!(found, Status::NotInUse);
            assert_eq!(names_file(&sandbox, family), "");
        }
    }

    // Using one table does not create the others.
    Tools::new(&sandbox).run("iptables-legacy -t nat -N ours");
    let connection = open(&sandbox, Family::Ipv4);
    assert!(connection.read("nat").unwrap().is_in_use());
    assert!(!connection.read("filter").unwrap().is_in_use());
    assert_eq!(names_file(&sandbox, Family::Ipv4), "nat\n");
    assert_eq!(names_file(&sandbox, Family::Ipv6), "");
    let Status::InUse(tables) = sandbox.run(|| status(Family::Ipv4)).unwrap().unwrap() else {
        panic!("nat should be in use");
    };
    assert_eq!(tables.len(), 1);

    // Only an explicit call creates one.
    connection.instantiate("mangle").unwrap();
    assert_eq!(names_file(&sandbox, Family::Ipv4), "mangle\nnat\n");
    let saved = Tools::new(&sandbox).save("iptables-legacy-save -c");
    assert_eq!(same_as_saved(&connection, &saved), (10, 0));
    let missing = connection.instantiate("nix").unwrap_err();
    assert!(matches!(missing, Error::NoSuchTable { .. }), "{missing}");
}

#[test]
fn a_missing_capability_is_a_permission_error() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run("iptables-legacy -N ours");
    let opened_before = open(&sandbox, Family::Ipv4);
    for dropped in [
        &[Capability::CAP_NET_ADMIN][..],
        &[Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW],
    ] {
        // `run` works on a separate thread, whose capabilities end with it.
        sandbox
            .run(|| {
                for capability in dropped {
                    caps::drop(None, CapSet::Effective, *capability).unwrap();
                }
                for family in Family::ALL {
                    let error = Connection::open(family).unwrap_err();
                    assert!(
                        matches!(error, Error::NoPermission { access: Access::Tables, family: f }
                            if f == family),
                        "{error}"
                    );
                    assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
                    let status = status(family).unwrap();
                    assert_eq!(status, Status::NoPermission(Access::Tables));
                }
                // The kernel checks the caller, not the process that opened the socket.
                let error = opened_before.read("filter").unwrap_err();
                assert!(matches!(error, Error::NoPermission { .. }), "{error}");
            })
            .unwrap();
    }
    assert!(opened_before.read("filter").unwrap().is_in_use());
}

/// If the names cannot be read, no table is read, because that might create it.
#[test]
fn an_unreadable_names_file_is_a_permission_error() {
    if std::env::var_os(ALONE).is_some() {
        return names_are_denied();
    }
    if caps::has_cap(None, CapSet::Permitted, Capability::CAP_SETUID).unwrap()
        && fs::read_to_string("/proc/self/uid_map")
            .unwrap()
            .contains("4294967295")
    {
        // Root: the file is closed to a thread with another file system user.
        let sandbox = sandbox();
        let denied = sandbox.run(|| {
            caps::drop(None, CapSet::Effective, Capability::CAP_DAC_OVERRIDE).unwrap();
            caps::drop(None, CapSet::Effective, Capability::CAP_DAC_READ_SEARCH).unwrap();
            setfsgid(Gid::from_raw(65534));
            setfsuid(Uid::from_raw(65534));
            // The kernel drops the capabilities for files with the user ID, and no others.
            assert!(caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap());
            names_are_denied();
        });
        return denied.unwrap();
    }
    // A user without privileges: create a network namespace whose names not even its root may read.
    let output = Command::new(find("unshare"))
        .args(["--user", "--map-root-user", "--net"])
        .arg(std::env::current_exe().unwrap())
        .arg("legacy_oracle::an_unreadable_names_file_is_a_permission_error")
        .args(["--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[track_caller]
fn names_are_denied() {
    let connection = Connection::open(Family::Ipv4).unwrap();
    for error in [
        connection.tables().unwrap_err(),
        connection.read("filter").unwrap_err(),
        connection.info("filter").unwrap_err(),
    ] {
        assert!(
            matches!(
                error,
                Error::NoPermission {
                    access: Access::TableNames,
                    ..
                }
            ),
            "{error}"
        );
    }
    let status = status(Family::Ipv4).unwrap();
    assert_eq!(status, Status::NoPermission(Access::TableNames));
}
