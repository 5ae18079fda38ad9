//! The verbs for a Kubernetes node: `detect`, `guard`, and `kubelet`, on both backends.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use chainwright_kube::service::{Config, Layout, ServiceProxy, Services};

use super::*;
use crate::common::tools::Tools;

/// A running guard, its output, and its notifications to systemd.
pub(super) struct Guard {
    child: Child,
    pub(super) lines: std::io::Lines<BufReader<ChildStdout>>,
    systemd: Receiver<String>,
}

impl Guard {
    #[track_caller]
    pub(super) fn start(sandbox: &Sandbox, arguments: &str) -> Self {
        // No watchdog: nothing would read the notifications.
        Self::start_watched(sandbox, arguments, "")
    }

    #[track_caller]
    fn start_watched(sandbox: &Sandbox, arguments: &str, watchdog: &str) -> Self {
        // Abstract socket names belong to a network namespace: here that of the sandbox.
        let name = format!("chainwright-test-{}", std::process::id());
        let systemd = sandbox.run(|| {
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            UnixDatagram::bind_addr(&address).unwrap()
        });
        let systemd = systemd.unwrap();
        systemd
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // Reads all the time, as systemd does: a full queue would block the sender.
        let (sender, notified) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(length) = systemd.recv(&mut buffer) {
                let state = String::from_utf8(buffer[..length].to_vec()).unwrap();
                if sender.send(state).is_err() {
                    return;
                }
            }
        });
        let mut child = sandbox
            .run(|| {
                let mut command = Command::new(PROGRAM);
                command
                    .args(["kube", "guard"])
                    .args(arguments.split_whitespace());
                command.env("NOTIFY_SOCKET", format!("@{name}"));
                command.env("WATCHDOG_USEC", watchdog);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines,
            systemd: notified,
        }
    }

    /// Returns the next notification to systemd.
    #[track_caller]
    fn notified(&self) -> String {
        self.systemd.recv().unwrap()
    }

    #[track_caller]
    pub(super) fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Ends the guard as systemd does; returns the notifications from then on.
    #[track_caller]
    pub(super) fn stop(self, signal: Signal) -> Receiver<String> {
        let id = Pid::from_raw(self.child.id() as i32);
        kill(id, signal).unwrap();
        let output: Ran = self.child.wait_with_output().unwrap().into();
        let err = output.expect(0).err;
        // The only permitted note; it is about legacy tables.
        let unknown = "chainwright: processes that replace legacy tables will not be reported: ";
        assert!(err.is_empty() || err.starts_with(unknown), "{err}");
        assert_eq!(err.lines().count(), usize::from(!err.is_empty()), "{err}");
        self.systemd
    }
}

/// Returns the line without its time.
fn message(line: &str) -> &str {
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.len() == 24, "{line}");
    rest
}

#[test]
fn a_guard_works_as_a_systemd_unit() {
    let sandbox = sandbox();
    let mut guard = Guard::start_watched(&sandbox, "kubelet", "20000");
    assert_eq!(message(&guard.line()), "everything is present: 12 created");
    let made: Vec<_> = (0..12).map(|_| guard.line()).collect();
    assert_eq!(made[0], "  + ip mangle: chain KUBE-IPTABLES-HINT");
    let mut notified = Vec::new();
    while !notified.contains(&"WATCHDOG=1".to_owned()) || !notified.contains(&"READY=1".to_owned())
    {
        notified.push(guard.notified());
    }
    Tools::new(&sandbox).run("iptables-nft -D INPUT -j KUBE-FIREWALL");
    let line = guard.line();
    assert!(
        message(&line).starts_with("1 disappeared, restored in "),
        "{line}"
    );
    let line = guard.line();
    assert!(
        line.starts_with("  by iptables-nft (") && line.contains("in generation "),
        "{line}"
    );
    assert_eq!(guard.line(), "  + ip filter: -A INPUT -j KUBE-FIREWALL");
    let notified = guard.stop(Signal::SIGTERM);
    // After the last watchdog notification.
    let last = notified.iter().find(|state| state != "WATCHDOG=1");
    assert_eq!(last.unwrap(), "STOPPING=1");
    run(&sandbox, "kube check").expect(0);
}

#[test]
fn a_guard_keeps_a_file_in_either_backend() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("RULES.save");
    fs::write(
        &file,
        "*filter\n:AGENT -\n-I INPUT -j AGENT\n-A AGENT -j DROP\nCOMMIT\n",
    )
    .unwrap();
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let arguments = format!(
            "--file {} --backend {backend} --lock none --poll 5",
            file.display()
        );
        let mut guard = Guard::start(&sandbox, &arguments);
        assert_eq!(message(&guard.line()), "everything is present: 3 created");
        Tools::new(&sandbox).run(&format!("iptables-{backend} -F AGENT"));
        while guard.line() != "  + ip filter: -A AGENT -j DROP" {}
        while !guard.line().contains(" 1 disappeared") {}
        guard.stop(Signal::SIGINT);
    }
    // An invalid text is rejected with its position.
    fs::write(&file, "*filter\n-F\nCOMMIT\n").unwrap();
    let sandbox = sandbox();
    let output = run(&sandbox, &format!("kube guard --file {}", file.display())).expect(2);
    assert!(output.err.contains("RULES.save:2: "), "{}", output.err);
    run(&sandbox, "kube guard").expect(2);
}

#[test]
fn detect_exit_code_identifies_the_backend() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let output = run(&sandbox, "kube status").expect(1);
    assert!(output.out.starts_with("undetermined: "), "{}", output.out);
    tools.run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
    tools.run("iptables-nft -t nat -N KUBE-SERVICES");
    let output = run(&sandbox, "kube status").expect(0);
    assert!(
        output.lines().iter().all(|line| line.chars().count() <= 80),
        "{}",
        output.out
    );
    assert_eq!(
        output.lines()[..4],
        [
            "nft: this node's Kubernetes uses nf_tables",
            "",
            "                      nf_tables         the legacy tables",
            "KUBE-IPTABLES-HINT    ip                -",
        ]
    );
    assert!(
        output
            .lines()
            .contains(&"nft     ip     nat       KUBE-*             1"),
        "{}",
        output.out
    );
    let output = run(&sandbox, "kube status --rules").expect(0);
    let with_rules = "nft     ip     nat       KUBE-*             1       0";
    assert!(output.lines().contains(&with_rules), "{}", output.out);
    assert_eq!(
        run(&sandbox, "kube status --quiet").expect(0).lines().len(),
        1
    );
    tools.run("ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY");
    let output = run(&sandbox, "kube status --wait 5").expect(3);
    assert!(output.out.starts_with("mixed: "), "{}", output.out);
}

/// The command in a network namespace where these chains were created first, by a user whom the
/// kernel denies reading part of the tables.
#[derive(Debug, Clone, Copy)]
enum Blind {
    /// All tables: `CAP_NET_ADMIN` is missing.
    All,
    /// The legacy tables: the file with their names is not readable.
    Legacy,
}

impl Blind {
    fn run(self, setup: &[&str], arguments: &str) -> Ran {
        let sandbox = sandbox();
        let setpriv = crate::common::needs::find("setpriv");
        // A namespace where everything is readable; an ordinary user creates the unreadable one.
        let setup = setup.join(" && ");
        let script = |program: &std::path::Path| {
            let setup = if setup.is_empty() { "true" } else { &*setup };
            format!("{{ {setup}; }} && exec {} {arguments}", program.display())
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command;
        let copy;
        match self {
            Self::All => {
                let tools = Tools::new(&sandbox);
                for line in setup.split(" && ").filter(|line| !line.is_empty()) {
                    tools.run(line);
                }
                command = Command::new(setpriv);
                command.args(["--inh-caps", "-net_admin", "--bounding-set", "-net_admin"]);
                command.arg(PROGRAM).args(arguments.split_whitespace());
                copy = None;
            }
            Self::Legacy if nix::unistd::geteuid().is_root() && is_root_of_all() => {
                let (directory, program) = copied_for_everybody();
                command = Command::new(setpriv);
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
                command.args(["--inh-caps=+net_admin", "--ambient-caps=+net_admin"]);
                command
                    .args(["sh", "-c", &script(&program)])
                    .current_dir("/");
                copy = Some(directory);
            }
            // Its root became root of the user namespace only after the network namespace was
            // created.
            Self::Legacy => {
                command = Command::new(crate::common::needs::find("unshare"));
                command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
                command.arg(script(std::path::Path::new(PROGRAM)));
                copy = None;
            }
        }
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        let output = sandbox.run(|| command.output().unwrap()).unwrap().into();
        drop(copy);
        output
    }
}

fn is_root_of_all() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

const NFT: &[&str] = &[
    "nft add table ip filter",
    "nft add chain ip filter KUBE-SERVICES",
    "nft add table ip kube-proxy",
    "nft add table inet firewall",
];

/// A user who may not read the tables does not get the answer that there are none.
#[test]
fn names_backends_that_were_not_examined() {
    let none = "no chains of Kubernetes, CNI plugins, azure-npm or Calico";
    for setup in [&[][..], NFT] {
        let output = Blind::All.run(setup, "detect").expect(2);
        assert!(!output.out.contains("no chains"), "{}", output.out);
        let (first, _) = output.out.split_once('\n').unwrap();
        assert_eq!(first, "unavailable: cannot be determined");
        for line in [
            "KUBE-IPTABLES-HINT    ip, ip6: unknown  ip, ip6: unknown",
            "KUBE-KUBELET-CANARY   ip, ip6: unknown  ip, ip6: unknown",
            "nf_tables: not examined completely",
            "the legacy tables: not examined completely",
        ] {
            assert!(output.lines().contains(&line), "{line}\n{}", output.out);
        }
        assert!(
            output.err.contains("nf_tables: not examined: ") && output.err.contains("EPERM"),
            "{}",
            output.err
        );
        let value = Blind::All
            .run(setup, "kube status --json")
            .expect(2)
            .value();
        let not_read = value["not_read"].as_array().unwrap();
        let backends: BTreeSet<_> = not_read
            .iter()
            .map(|one| one["backend"].as_str().unwrap())
            .collect();
        assert_eq!(backends, ["legacy", "nft"].into());
        assert!(
            not_read
                .iter()
                .all(|one| !one["reason"].as_str().unwrap().is_empty())
        );
        for arguments in ["doctor", "check --json"] {
            let output = Blind::All.run(setup, arguments).expect(2);
            assert!(
                !output.err.contains("no problems found")
                    && !output.err.contains("no iptables tables"),
                "{}",
                output.err
            );
        }
        for verb in [
            "chains",
            "rules",
            "sets",
            "graph",
            "get ruleset ruleset",
            "save",
            "kube check",
            "trace tcp 10.0.0.1 10.0.0.2:80",
            "trace --why tcp 10.0.0.1 10.0.0.2:80",
        ] {
            let output = Blind::All.run(setup, verb).expect(2);
            assert_eq!(output.out, "", "{verb}");
            assert!(
                output.err.contains("CAP_NET_ADMIN"),
                "{verb}: {}",
                output.err
            );
        }
    }
    for setup in [&[][..], NFT] {
        let output = Blind::Legacy.run(setup, "detect").expect(2);
        let in_nft = format!("{none} in nf_tables");
        assert_eq!(
            output.lines().contains(&&*in_nft),
            setup.is_empty(),
            "{}",
            output.out
        );
        assert!(!output.lines().contains(&none), "{}", output.out);
        assert!(
            output
                .lines()
                .contains(&"the legacy tables: not examined completely"),
            "{}",
            output.out
        );
        assert!(
            output
                .lines()
                .contains(&"KUBE-IPTABLES-HINT    -                 ip, ip6: unknown"),
            "{}",
            output.out
        );
        let value = Blind::Legacy
            .run(setup, "kube status --json")
            .expect(2)
            .value();
        assert!(
            value["not_read"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["backend"] == "legacy")
        );
        assert_eq!(
            value["services"].as_array().unwrap().len(),
            usize::from(!setup.is_empty())
        );
        let output = Blind::Legacy.run(setup, "doctor").expect(2);
        assert!(
            output.err.contains("not examined: legacy, ip: ")
                && output.err.contains("not examined: legacy, ip6: "),
            "{}",
            output.err
        );
        let message = match setup {
            [] => "no tables found in the examined part",
            _ => "no problems found in the examined tables",
        };
        assert!(output.err.contains(message), "{}", output.err);
        let value = Blind::Legacy.run(setup, "check --json").expect(2).value();
        assert_eq!(value["not_read"].as_array().unwrap().len(), 2);
        let found = i32::from(setup.is_empty());
        for (verb, code) in [
            ("get chains", found * 2),
            ("get rules", found * 2),
            ("graph", found * 2),
            ("trace tcp 10.0.0.1 10.0.0.2:80", 2),
            ("trace --why tcp 10.0.0.1 10.0.0.2:80", 2),
        ] {
            let output = Blind::Legacy.run(setup, &format!("{verb} --json"));
            let value = output.expect(code).value();
            let places: Vec<_> = value["not_read"]
                .as_array()
                .unwrap_or_else(|| panic!("{verb}: {value}"))
                .iter()
                .map(|one| ["backend", "family"].map(|key| one[key].as_str().unwrap()))
                .collect();
            let all = ["ip", "ip6", "arp"].map(|family| ["legacy", family]);
            assert_eq!(places, all, "{verb}");
        }
        for verb in [
            "get chains --match x*",
            "get rules --match x*",
            "check --backend legacy",
        ] {
            let output = Blind::Legacy.run(setup, verb).expect(2);
            assert!(output.err.contains("legacy"), "{verb}: {}", output.err);
        }
    }
}

/// Tables of services: those of kube-proxy, and those of this library in both nf_tables layouts.
#[test]
fn distinguishes_service_tables() {
    let sandbox = sandbox();
    let serve = |layout| {
        let served = sandbox.run(|| {
            let mut config = Config::new("node1");
            config.families = vec![chainwright::iptables::Family::Ipv6];
            // As on kernels without owned tables.
            config.own = false;
            ServiceProxy::open(layout, config)?.sync(&mut Services::new())
        });
        served.unwrap().unwrap();
    };
    let tools = Tools::new(&sandbox);
    let services = || {
        let value = run(&sandbox, "kube status --json").expect(1).value();
        let services = value["services"].as_array().unwrap().clone();
        let words = |one: &Value| {
            ["family", "table", "kind"].map(|key| one[key].as_str().unwrap().to_owned())
        };
        services.iter().map(words).collect::<Vec<_>>()
    };
    assert!(services().is_empty());
    let kube_proxys = "table ip kube-proxy { comment \"rules for kube-proxy\"; }";
    tools.run_with("nft -f -", kube_proxys);
    serve(Layout::Nftables);
    serve(Layout::Flat);
    tools.run("nft add table inet kube-proxy");
    let mut found = services();
    found.sort();
    let expected = [
        ["ip", "kube-proxy", "kube-proxy"],
        ["ip6", "kube-proxy", "nftables"],
        ["ip6", "kube-services", "flat"],
    ];
    assert_eq!(found, expected.map(|words| words.map(str::to_owned)));
    let output = run(&sandbox, "kube status").expect(1);
    for line in [
        "no chains of Kubernetes, CNI plugins, azure-npm or Calico",
        "nf_tables: table ip kube-proxy: kube-proxy's services (nftables mode)",
        "nf_tables: table ip6 kube-proxy: chainwright's services (layout nftables)",
        "nf_tables: table ip6 kube-services: chainwright's services (layout flat)",
    ] {
        assert!(output.lines().contains(&line), "{line}\n{}", output.out);
    }
    // The table keeps its owner's mark after a real tool copies it.
    let text = tools.run("nft list table ip6 kube-proxy");
    assert!(text.contains("comment \"rules for kube-proxy\""), "{text}");
    // The flag of a table that a proxy once owned marks it, too.
    let mut tx = Transaction::new();
    tx.add(&Table {
        flags: Some(chainwright::nft::TableFlags::OWNER | chainwright::nft::TableFlags::PERSIST),
        ..Table::new(Family::IP, "kube-proxy")
    })
    .unwrap();
    tools.run("nft delete table ip kube-proxy");
    let mut owner = connect(&sandbox);
    if crate::common::kernel::commit_if_supported(&mut owner, &mut tx, &["owned tables"]) {
        drop(owner);
        assert!(services().contains(&["ip", "kube-proxy", "nftables"].map(str::to_owned)));
    }
}

/// `doctor` lists the tables that it examines, of all families.
#[test]
fn doctor_lists_examined_tables() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let output = run(&sandbox, "check").expect(0);
    assert!(output.err.contains("no tables found"), "{}", output.err);
    tools.run("iptables-nft -A INPUT -s 192.0.2.1 -j DROP");
    for family in ["ip", "inet", "arp", "bridge", "netdev"] {
        tools.run(&format!("nft add table {family} own"));
    }
    tools.run("nft add table inet filter");
    let output = run(&sandbox, "check").expect(0);
    assert!(output.err.contains("no problems found\n"), "{}", output.err);
    let examined = "examined: table netdev own (nft): 0 chains, 0 rules\n";
    assert!(output.out.contains(examined), "{}", output.out);
    let count = |arguments: &str| {
        let value = run(&sandbox, arguments).expect(0).value();
        value["tables"].as_array().unwrap().len()
    };
    assert_eq!(count("check --json"), 7);
    assert_eq!(count("check --json --backend legacy"), 0);
    assert_eq!(count("check --json -4"), 2);
    assert_eq!(count("check --json --family inet"), 2);
    assert_eq!(count("check --json --table filter"), 2);
}

#[test]
fn kubelet_chains_are_created_in_the_backend_of_the_node() {
    let sandbox = sandbox();
    let output = run(&sandbox, "kube ensure --auto").expect(2);
    assert!(output.err.contains("undetermined"), "{}", output.err);
    Tools::new(&sandbox).run("iptables-legacy -t mangle -N KUBE-IPTABLES-HINT");
    let output = run(&sandbox, "kube ensure --auto --lock none").expect(0);
    assert_eq!(output.lines().len(), 11, "{}", output.out);
    run(&sandbox, "kube check --backend legacy").expect(0);
    assert_eq!(generation(&sandbox).number(), 1);
    let output = run(&sandbox, "kube remove --backend legacy --lock none").expect(0);
    assert_eq!(output.lines().len(), 12);
    run(&sandbox, "kube status --quiet").expect(1);
    run(&sandbox, "kube check --backend all").expect(2);
}
