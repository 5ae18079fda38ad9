//! The verbs of a Kubernetes node: `detect`, `guard`, `kubelet` on either backend.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::tools::Tools;
use super::*;

/// A guard that runs, what it prints, and what it tells systemd.
pub(super) struct Guard {
    child: Child,
    pub(super) lines: std::io::Lines<BufReader<ChildStdout>>,
    systemd: Receiver<String>,
}

impl Guard {
    #[track_caller]
    pub(super) fn start(sandbox: &Sandbox, arguments: &str) -> Self {
        // Not to be told that it lives: somebody would have to listen.
        Self::start_watched(sandbox, arguments, "")
    }

    #[track_caller]
    fn start_watched(sandbox: &Sandbox, arguments: &str, watchdog: &str) -> Self {
        // Abstract names are of a network namespace: that of the sandbox.
        let name = format!("chainwright-test-{}", std::process::id());
        let systemd = sandbox.run(|| {
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            UnixDatagram::bind_addr(&address).unwrap()
        });
        let systemd = systemd.unwrap();
        systemd
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // It is read all the time, as systemd does: a full queue would hold up who tells.
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok(length) = systemd.recv(&mut buffer) {
                let state = String::from_utf8(buffer[..length].to_vec()).unwrap();
                if tell.send(state).is_err() {
                    return;
                }
            }
        });
        let mut child = sandbox
            .run(|| {
                let mut command = Command::new(PROGRAM);
                command.arg("guard").args(arguments.split_whitespace());
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
            systemd: told,
        }
    }

    /// What systemd is told next.
    #[track_caller]
    fn told(&self) -> String {
        self.systemd.recv().unwrap()
    }

    #[track_caller]
    pub(super) fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Ends it as systemd does; what systemd is told from then on.
    #[track_caller]
    pub(super) fn stop(self, signal: Signal) -> Receiver<String> {
        let id = Pid::from_raw(self.child.id() as i32);
        kill(id, signal).unwrap();
        let ran: Ran = self.child.wait_with_output().unwrap().into();
        let err = ran.expect(0).err;
        // The only note that there may be, of legacy tables.
        let unknown = "chainwright: who replaces a legacy table will not be known: ";
        assert!(err.is_empty() || err.starts_with(unknown), "{err}");
        assert_eq!(err.lines().count(), usize::from(!err.is_empty()), "{err}");
        self.systemd
    }
}

/// The line without its time.
fn said(line: &str) -> &str {
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.len() == 24, "{line}");
    rest
}

#[test]
fn a_guard_is_a_good_unit_of_systemds() {
    let sandbox = sandbox();
    let mut guard = Guard::start_watched(&sandbox, "kubelet", "20000");
    assert_eq!(said(&guard.line()), "everything is there: 12 made");
    let made: Vec<_> = (0..12).map(|_| guard.line()).collect();
    assert_eq!(made[0], "  + ip mangle: chain KUBE-IPTABLES-HINT");
    let mut told = Vec::new();
    while !told.contains(&"WATCHDOG=1".to_owned()) || !told.contains(&"READY=1".to_owned()) {
        told.push(guard.told());
    }
    Tools::new(&sandbox).run("iptables-nft -D INPUT -j KUBE-FIREWALL");
    let line = guard.line();
    assert!(
        said(&line).starts_with("1 vanished, made again in "),
        "{line}"
    );
    let line = guard.line();
    assert!(
        line.starts_with("  by iptables-nft (") && line.contains("in generation "),
        "{line}"
    );
    assert_eq!(guard.line(), "  + ip filter: -A INPUT -j KUBE-FIREWALL");
    let told = guard.stop(Signal::SIGTERM);
    // Behind what tells that it lived.
    let last = told.iter().find(|state| state != "WATCHDOG=1");
    assert_eq!(last.unwrap(), "STOPPING=1");
    run(&sandbox, "kubelet check").expect(0);
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
        assert_eq!(said(&guard.line()), "everything is there: 3 made");
        Tools::new(&sandbox).run(&format!("iptables-{backend} -F AGENT"));
        while guard.line() != "  + ip filter: -A AGENT -j DROP" {}
        while !guard.line().contains(" 1 vanished") {}
        guard.stop(Signal::SIGINT);
    }
    // What is no such text is refused with its place.
    fs::write(&file, "*filter\n-F\nCOMMIT\n").unwrap();
    let sandbox = sandbox();
    let ran = run(&sandbox, &format!("guard --file {}", file.display())).expect(2);
    assert!(ran.err.contains("RULES.save:2: "), "{}", ran.err);
    run(&sandbox, "guard").expect(2);
}

#[test]
fn detection_says_by_its_exit_code_what_it_found() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let ran = run(&sandbox, "detect").expect(1);
    assert!(ran.out.starts_with("undetermined: "), "{}", ran.out);
    tools.run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
    tools.run("iptables-nft -t nat -N KUBE-SERVICES");
    let ran = run(&sandbox, "detect").expect(0);
    assert!(
        ran.lines().iter().all(|line| line.chars().count() <= 80),
        "{}",
        ran.out
    );
    assert_eq!(
        ran.lines()[..4],
        [
            "nft: this node's Kubernetes uses nf_tables",
            "",
            "                      nf_tables         the legacy tables",
            "KUBE-IPTABLES-HINT    ip                -",
        ]
    );
    assert!(
        ran.lines()
            .contains(&"nft     ip     nat       KUBE-*             1"),
        "{}",
        ran.out
    );
    let ran = run(&sandbox, "detect --rules").expect(0);
    let with_rules = "nft     ip     nat       KUBE-*             1       0";
    assert!(ran.lines().contains(&with_rules), "{}", ran.out);
    assert_eq!(run(&sandbox, "detect --quiet").expect(0).lines().len(), 1);
    tools.run("ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY");
    let ran = run(&sandbox, "detect --wait 5").expect(3);
    assert!(ran.out.starts_with("mixed: "), "{}", ran.out);
}

#[test]
fn kubelets_chains_are_made_where_the_node_works() {
    let sandbox = sandbox();
    let ran = run(&sandbox, "kubelet ensure --auto").expect(2);
    assert!(ran.err.contains("undetermined"), "{}", ran.err);
    Tools::new(&sandbox).run("iptables-legacy -t mangle -N KUBE-IPTABLES-HINT");
    let ran = run(&sandbox, "kubelet ensure --auto --lock none").expect(0);
    assert_eq!(ran.lines().len(), 11, "{}", ran.out);
    run(&sandbox, "kubelet check --backend legacy").expect(0);
    assert_eq!(generation(&sandbox).number(), 1);
    let ran = run(&sandbox, "kubelet remove --backend legacy --lock none").expect(0);
    assert_eq!(ran.lines().len(), 12);
    run(&sandbox, "detect --quiet").expect(1);
    run(&sandbox, "kubelet check --backend all").expect(2);
}
