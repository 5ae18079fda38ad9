//! Bad input to the verbs that operators and agents use: the message names the cause and a remedy,
//! the exit code is the documented one, and every table is unchanged.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::needs::find;
use crate::common::sandbox;
use crate::common::tools::{Tools, run_on, words};
use chainwright::Retry;
use chainwright::legacy::{Lock, LockPolicy};
use chainwright_testing::Sandbox;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// The command, its input, the exit code, and texts that standard error contains.
type Case = (&'static str, &'static str, i32, &'static [&'static str]);

/// Verbs of the command: exit code 2 on failure.
const VERBS: &[Case] = &[
    ("delete chains", "", 2, &["<GLOB>", "--help"]),
    (
        "delete chains [",
        "",
        2,
        &["unclosed character class", "missing ']'"],
    ),
    (
        "delete chains --backend other A*",
        "",
        2,
        &["'other'", "nft, legacy, all"],
    ),
    (
        "delete chains --family inet A*",
        "",
        2,
        &["families ip and ip6"],
    ),
    (
        "delete chains --prefix A",
        "",
        2,
        &["unexpected argument '--prefix'"],
    ),
    // A rule of unknown syntax jumps to this chain.
    (
        "delete chains --backend nft USED",
        "",
        2,
        &["EBUSY", "still in use", "nothing was changed in nf_tables"],
    ),
    (
        "delete chains --lock /nowhere/lock --backend legacy OLD",
        "",
        2,
        &["/nowhere/lock", "nothing was changed in the legacy tables"],
    ),
    ("apply --keep", "", 2, &["a value is required for '--keep"]),
    (
        "apply --keep KUBE-* /nowhere",
        "",
        2,
        &["cannot read /nowhere", "No such file"],
    ),
    (
        "apply --keep KUBE-*",
        "*filter\n",
        2,
        &[
            "ends without a COMMIT for table filter",
            "nothing was changed",
        ],
    ),
    (
        "apply --keep KUBE-*",
        "*filter\n-A INPUT -j ACC",
        2,
        &["nothing was changed"],
    ),
    (
        "apply --keep KUBE-*",
        "*filter\n-A USED -j DROP\nCOMM",
        2,
        &["<stdin>:2: chain USED not found", "-A USED"],
    ),
    (
        "apply --keep KUBE-*",
        "*filter\n:USED - [0:0]\nCOMMIT\n",
        2,
        &[
            "rule 2 of chain INPUT",
            "cannot be expressed in iptables' language",
            "nothing was changed",
        ],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n-A INPUT --dprt 3\nCOMMIT\n",
        2,
        &["<stdin>:2:10", "did you mean --dport", "^^^^^^"],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n-A INPUT -p tcp --dport 65536\nCOMMIT\n",
        2,
        &["<stdin>:2:25", "more than 65535"],
    ),
    (
        "apply --keep KUBE-*",
        "*nothing\nCOMMIT\n",
        2,
        &["<stdin>:1", "table `nothing` not found"],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n\0\nCOMMIT\n",
        2,
        &["NUL byte near line 1"],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n:INPUT MAYBE [0:0]\nCOMMIT\n",
        2,
        &["`MAYBE` is not a policy"],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n:INPUT ACCEPT [x:0]\nCOMMIT\n",
        2,
        &["invalid policy counters for chain 'INPUT'"],
    ),
    (
        "apply --keep KUBE-*",
        "*nat\n-A OUTPUT -j DROP\nCOMMIT\n",
        2,
        &["not intended for filtering"],
    ),
    (
        "apply --keep KUBE-*",
        "*mangle\n-A OUTPUT -m nosuch\nCOMMIT\n",
        2,
        &["match `nosuch` not found"],
    ),
    ("exists --table filter", "", 2, &["<CHAIN>"]),
    ("exists INPUT", "", 2, &["use --table"]),
    (
        "exists --table filter --backend all INPUT",
        "",
        2,
        &["one backend"],
    ),
    (
        "exists --table filter --backend legacy --family inet INPUT",
        "",
        2,
        &["only exist in the families ip, ip6 and arp"],
    ),
    ("convert --in-place", "", 2, &["--to <LANGUAGE>"]),
    (
        "convert --in-place --from nft --to nft",
        "",
        2,
        &["the same backend"],
    ),
    (
        "convert --in-place --from here --to nft",
        "",
        2,
        &["'here'", "nft, legacy"],
    ),
    (
        "convert --in-place --from nft --to legacy",
        "",
        2,
        &[
            "rule 2 of chain INPUT, table filter (IPv4)",
            "has a rule of its own",
            "--keep",
        ],
    ),
    (
        "convert --in-place --from legacy --to nft --keep [",
        "",
        2,
        &["unclosed character class"],
    ),
    ("check --versions 9.9", "", 2, &["'9.9'", "1.8.7"]),
    (
        "check --backend legacy --family inet",
        "",
        2,
        &["families ip, ip6 and arp"],
    ),
    ("check --sarif --json", "", 2, &["--sarif"]),
    ("check --fix", "", 2, &["unexpected argument '--fix'"]),
];

/// The programs with iptables' names: exit codes 1, 2, 3 or 4, as theirs.
const PROGRAMS: &[Case] = &[
    ("iptables", "", 2, &["no command"]),
    ("iptables -A", "", 2, &["-A", "value"]),
    (
        "iptables -A NOWHERE -j ACCEPT",
        "",
        1,
        &["No chain/target/match by that name"],
    ),
    (
        "iptables -A INPUT -j NOWHERE",
        "",
        2,
        &["'NOWHERE' does not exist"],
    ),
    (
        "iptables-legacy -A INPUT -j NOWHERE",
        "",
        2,
        &["Couldn't load target `NOWHERE'"],
    ),
    (
        "iptables -A INPUT --sprot 3",
        "",
        2,
        &["unknown option", "--sprot"],
    ),
    ("iptables -A INPUT -m nosuch", "", 2, &["nosuch"]),
    ("iptables -A INPUT -p tcp --dport 70000", "", 2, &["70000"]),
    ("iptables -A INPUT -s 300.1.1.1", "", 2, &["300.1.1.1"]),
    (
        "ip6tables -A INPUT -s 192.0.2.1",
        "",
        2,
        &["192.0.2.1", "an IPv4 address"],
    ),
    ("iptables -6 -A INPUT -j ACCEPT", "", 2, &["family"]),
    ("iptables -A INPUT -D OUTPUT 1", "", 2, &["one command"]),
    (
        "iptables -I INPUT 99 -j DROP",
        "",
        1,
        &["Index of insertion too big"],
    ),
    (
        "iptables -R INPUT 99 -j DROP",
        "",
        1,
        &["Index of replacement too big"],
    ),
    (
        "iptables -D INPUT 99",
        "",
        1,
        &["Index of deletion too big"],
    ),
    (
        "iptables -D INPUT -s 192.0.2.9 -j DROP",
        "",
        1,
        &["Bad rule"],
    ),
    (
        "iptables -C INPUT -s 192.0.2.9 -j DROP",
        "",
        1,
        &["Bad rule"],
    ),
    ("iptables -N USED", "", 1, &["Chain already exists"]),
    (
        "iptables -X USED",
        "",
        4,
        &["CHAIN_DEL failed", "busy", "USED"],
    ),
    ("iptables-legacy -X OLD", "", 1, &["Too many links"]),
    (
        "iptables -X NOWHERE",
        "",
        1,
        &["No chain/target/match by that name"],
    ),
    ("iptables -E USED INPUT", "", 1, &["File exists"]),
    ("iptables -P USED DROP", "", 1, &["Bad built-in chain name"]),
    ("iptables -P INPUT REJECT", "", 1, &["Bad policy name"]),
    (
        "iptables -t nothing -L",
        "",
        3,
        &["table 'nothing' does not exist"],
    ),
    (
        "iptables -t nat -A OUTPUT -j DROP",
        "",
        2,
        &["not intended for filtering"],
    ),
    (
        "iptables-save -t nothing",
        "",
        1,
        &["`nothing' does not exist"],
    ),
    ("iptables-restore --nothing", "", 1, &["--nothing"]),
    (
        "iptables-restore",
        "*filter\n-A INPUT -j ACCEPT\n",
        1,
        &["COMMIT"],
    ),
    (
        "iptables-restore -n",
        "*filter\n-A INPUT -j NOWHERE\nCOMMIT\n",
        2,
        &["NOWHERE"],
    ),
    (
        "iptables-restore -n",
        "*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n",
        1,
        &["line 2"],
    ),
    (
        "iptables-restore -n",
        "-A INPUT -j ACCEPT\n",
        1,
        &["line 1"],
    ),
];

/// Returns a sandbox with rules in both backends; iptables cannot express one of these rules.
fn prepared() -> Sandbox {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    for line in [
        "iptables-nft -A INPUT -s 192.0.2.1 -j ACCEPT",
        "iptables-nft -N USED",
        "iptables-nft -A FORWARD -j USED",
        "iptables-nft -A USED -p udp -j DROP",
        "nft add rule ip filter INPUT meta length 5 jump USED",
        "iptables-legacy -N OLD",
        "iptables-legacy -A INPUT -j OLD",
        "ip6tables-nft -t mangle -A OUTPUT -j MARK --set-mark 1",
        "ip6tables-legacy -A INPUT -j DROP",
    ] {
        tools.run(line);
    }
    sandbox
}

/// Returns the rulesets of both backends and all families.
fn state(sandbox: &Sandbox) -> String {
    let tools = Tools::new(sandbox);
    let message = [
        "nft -a list ruleset",
        "iptables-legacy-save -c",
        "ip6tables-legacy-save -c",
    ]
    .map(|line| tools.save(line));
    message.concat()
}

/// Returns the exit code and standard error.
fn run(sandbox: &Sandbox, command: &mut Command, input: &str) -> (Option<i32>, String) {
    let output = sandbox
        .run(|| run_on(command, input.as_bytes()).unwrap())
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

#[test]
fn invalid_input_changes_nothing() {
    let sandbox = prepared();
    let before = state(&sandbox);
    let lock = tempfile::NamedTempFile::new().unwrap();
    let mut wrong = Vec::new();
    for (line, input, code, message) in VERBS.iter().chain(PROGRAMS) {
        let mut command = Command::new(PROGRAM);
        command
            .args(words(line))
            .env("XTABLES_LOCKFILE", lock.path());
        let (exit, error) = run(&sandbox, &mut command, input);
        let is_reported = message.iter().all(|part| error.contains(part));
        if exit != Some(*code) || !is_reported || error.contains("panicked") {
            wrong.push(format!(
                "{line}: {exit:?}, wanted {code} and {message:?}: {error}"
            ));
        }
        assert_eq!(state(&sandbox), before, "{line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(VERBS.len() + PROGRAMS.len() > 40);
}

/// Each verb reports missing privileges.
#[test]
fn nothing_is_changed_without_privileges() {
    let sandbox = prepared();
    let before = state(&sandbox);
    let lock = tempfile::NamedTempFile::new().unwrap();
    for (line, code, message) in [
        ("exists --table filter INPUT", 2, "CAP_NET_ADMIN"),
        (
            "exists --table filter --backend legacy INPUT",
            2,
            "CAP_NET_ADMIN",
        ),
        ("delete chains USED", 2, "CAP_NET_ADMIN"),
        ("apply --keep KUBE-*", 2, "CAP_NET_ADMIN"),
        (
            "convert --in-place --from nft --to legacy --dry-run",
            2,
            "CAP_NET_ADMIN",
        ),
        ("check", 2, "CAP_NET_ADMIN"),
        (
            "kube guard kubelet --backend nft",
            2,
            "nf_tables requires CAP_NET_ADMIN",
        ),
        ("kube guard kubelet --backend legacy", 2, "CAP_NET_ADMIN"),
        (
            "iptables -A INPUT -j ACCEPT",
            4,
            "Permission denied (you must be root)",
        ),
        (
            "iptables-legacy -A INPUT -j ACCEPT",
            3,
            "Permission denied (you must be root)",
        ),
        ("iptables-legacy-save", 0, ""),
        ("ip6tables-legacy-save", 0, ""),
        (
            "iptables-legacy-restore",
            2,
            "unable to initialize table 'filter'\nError occurred at line: 1",
        ),
        ("iptables-legacy-restore /dev/null", 0, ""),
        ("ip6tables-legacy-restore -T nat", 0, ""),
    ] {
        // Root without the capability; another user namespace is not available everywhere.
        let mut command = Command::new(find("setpriv"));
        command
            .args(["--inh-caps", "-net_admin", "--bounding-set", "-net_admin"])
            .arg(PROGRAM)
            .args(words(line));
        command.env("XTABLES_LOCKFILE", lock.path());
        let (exit, error) = run(&sandbox, &mut command, "*filter\nCOMMIT\n");
        assert_eq!(exit, Some(code), "{line}: {error}");
        assert!(error.contains(message), "{line}: {error}");
        assert_eq!(state(&sandbox), before, "{line}");
    }
}

/// With the right to change legacy tables but without the right to read their names a guard does
/// not start.
#[test]
fn guard_exits_without_read_permission() {
    let sandbox = prepared();
    let mut command = Command::new(find("setpriv"));
    let ids = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let rights = ["--inh-caps", "+net_admin", "--ambient-caps", "+net_admin"];
    // The program's own directory may be closed to other users. `cp` writes the copy: another
    // test's child would inherit a descriptor that is open for writing here, and the kernel would
    // not execute the file (ETXTBSY).
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let path = directory.path().join("chainwright");
    let copied = Command::new("cp").arg(PROGRAM).arg(&path).status().unwrap();
    assert!(copied.success());
    for path in [directory.path(), &path] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    command
        .args(ids)
        .args(rights)
        .arg(path.as_os_str())
        .args(words("kube guard kubelet --backend legacy --lock none"));
    let (exit, error) = run(&sandbox, &mut command, "");
    assert_eq!(exit, Some(2), "{error}");
    assert!(error.contains("the names of the tables"), "{error}");
}

/// A command that waits for the lock in vain names the holder.
#[test]
fn names_the_holder_of_the_lock() {
    let sandbox = prepared();
    let before = state(&sandbox);
    let file = tempfile::NamedTempFile::new().unwrap();
    let held = Lock::take(&LockPolicy::Path(file.path().into()), Retry::ONCE).unwrap();
    let path = file.path().display();
    for (line, code, message) in [
        (
            format!("delete chains --backend legacy --wait 0 --lock {path} OLD"),
            2,
            "is held by",
        ),
        (
            format!("apply --backend legacy --keep KUBE-* --wait 0 --lock {path}"),
            2,
            "is held by",
        ),
        (
            format!("convert --in-place --from legacy --to nft -6 --wait 0 --lock {path}"),
            2,
            "is held by",
        ),
        (
            "iptables-legacy -w 1 -A INPUT -j ACCEPT".to_owned(),
            4,
            "Another app is currently holding the xtables lock",
        ),
    ] {
        let mut command = Command::new(PROGRAM);
        command
            .args(words(&line))
            .env("XTABLES_LOCKFILE", file.path());
        let (exit, error) = run(&sandbox, &mut command, "*filter\nCOMMIT\n");
        assert_eq!(exit, Some(code), "{line}: {error}");
        assert!(error.contains(message), "{line}: {error}");
        assert_eq!(state(&sandbox), before, "{line}");
    }
    drop(held);
}
