//! Programs that load libnftables get the same from this library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use chainwright_testing::Sandbox;
use tempfile::TempDir;

use crate::common::needs::{find, unpacked};
use crate::common::tools::Tools;
use crate::common::{in_workspace, sandbox};

/// The directory of a library for `LD_LIBRARY_PATH`; none for the original.
struct Library(Option<TempDir>);

impl Library {
    /// This crate's library, under the name that programs look for.
    fn chainwright() -> Self {
        let test = std::env::current_exe().unwrap();
        let built = test.with_file_name("libchainwright_libnftables.so");
        assert!(built.exists(), "{} was not built", built.display());
        let directory = TempDir::new().unwrap();
        std::os::unix::fs::symlink(built, directory.path().join("libnftables.so.1")).unwrap();
        Self(Some(directory))
    }

    fn both() -> [Self; 2] {
        [Self(None), Self::chainwright()]
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(find(program));
        // The original library is that of nft 1.0.6.
        command
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("CHAINWRIGHT_NFT_VERSION", "1.0");
        if let Some(directory) = &self.0 {
            command.env("LD_LIBRARY_PATH", directory.path());
        }
        command
    }
}

fn here(file: &str) -> PathBuf {
    in_workspace("tests/lang/libnftables").join(file)
}

#[test]
fn python_bindings_match_libnftables() {
    let outputs = Library::both().map(|library| {
        let mut command = library.command("/usr/bin/python3");
        command.arg(here("bindings.py"));
        let output = sandbox().run(|| command.output()).unwrap().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    });
    let without_names = outputs.map(|output| {
        let lines = output.lines().map(|line| without_name(line) + "\n");
        lines.collect::<String>()
    });
    let [real, chainwright] = without_names;
    assert!(real.lines().count() > 30, "{real}");
    pretty_equal(&real, &chainwright);
}

/// The program `nft` itself, which is linked with libnftables.
#[test]
fn nft_output_matches_libnftables() {
    let runs: [&[&str]; 7] = [
        &["add table inet t { chain c { tcp dport { 22, 80 } counter accept; }; }"],
        &["-a", "list", "ruleset"],
        &["-j", "list", "ruleset"],
        &["-c", "delete", "table", "inet", "t"],
        &["-nnn", "-s", "list", "table", "inet", "t"],
        &["list", "table", "ip", "nope"],
        &["-f", "/nope"],
    ];
    let [real, chainwright] = Library::both().map(|library| {
        let sandbox = sandbox();
        runs.map(|arguments| {
            let mut command = library.command("nft");
            let output = sandbox.run(|| command.args(arguments).output());
            let output = output.unwrap().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            (output.status.code(), without_name(&text))
        })
    });
    assert!(real[1].1.contains("tcp dport { 22, 80 }"), "{real:?}");
    assert_eq!(real, chainwright);
}

/// A line of JSON without the name of the program.
fn without_name(line: &str) -> String {
    let (before, rest) = line.split_once("release_name").unwrap_or((line, ""));
    let rest = rest.split_once("json_schema").map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

#[track_caller]
fn pretty_equal(real: &str, chainwright: &str) {
    let first = real.lines().zip(chainwright.lines()).find(|(a, b)| a != b);
    assert!(real == chainwright, "{first:#?}");
}

/// What firewalld leaves in the kernel at each checkpoint: the ruleset, and which ports answer.
type States = Vec<(String, String, [bool; 2])>;

/// Debian's firewalld starts, opens ports, reloads, panics and stops.
#[test]
fn firewalld_ruleset_matches_libnftables() {
    let [real, chainwright] = Library::both().map(|library| firewalld(&library));
    let answers: Vec<_> = real
        .iter()
        .map(|(name, _, answers)| (&name[..], *answers))
        .collect();
    let expected = [
        ("started", [false, false]),
        ("opened", [true, false]),
        ("reloaded", [false, false]),
        ("panicked", [false, false]),
        ("recovered", [false, false]),
        ("stopped", [true, true]),
    ];
    assert_eq!(answers, expected);
    for (real, chainwright) in real.iter().zip(&chainwright) {
        assert_eq!((&real.0, real.2), (&chainwright.0, chainwright.2));
        pretty_equal(&real.1, &chainwright.1);
    }
    assert_eq!(chainwright.len(), real.len());
    assert!(
        chainwright[2].1.lines().count() > 300,
        "{}",
        chainwright[2].1
    );
}

fn firewalld(library: &Library) -> States {
    let (node, client) = (sandbox(), sandbox());
    Sandbox::connect(&node, "eth0", "10.0.0.1/24", &client, "eth0", "10.0.0.2/24").unwrap();
    let ports = [8080, 8081];
    let listeners = ports.map(|port| {
        let listener = node.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)));
        listener.unwrap().unwrap()
    });
    let directory = TempDir::new().unwrap();
    let bus = std::fs::read_to_string(here("bus.conf")).unwrap();
    let bus = bus.replace("DIRECTORY", directory.path().to_str().unwrap());
    std::fs::write(directory.path().join("bus.conf"), bus).unwrap();

    let mut command = library.command("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh"])
        .arg(here("firewalld.sh"))
        .arg(directory.path())
        .arg(unpacked("firewalld"))
        .arg(unpacked("python3-firewall"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut script = node.run(|| command.spawn()).unwrap().unwrap();
    let mut go_on = script.stdin.take().unwrap();
    let mut states = States::new();
    for line in BufReader::new(script.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(path) = line.strip_prefix("library ") {
            assert_eq!(path.contains("chainwright"), library.0.is_some(), "{path}");
            continue;
        }
        let ruleset = Tools::new(&node).run("nft list ruleset");
        states.push((line, ruleset, ports.map(|port| answers(&client, port))));
        writeln!(go_on).unwrap();
    }
    assert!(script.wait().unwrap().success());
    drop(listeners);
    states
}

/// Whether a port of the node accepts a connection.
fn answers(client: &Sandbox, port: u16) -> bool {
    let to = SocketAddr::new(Ipv4Addr::new(10, 0, 0, 1).into(), port);
    let connect = || TcpStream::connect_timeout(&to, Duration::from_millis(500));
    client.run(connect).unwrap().is_ok()
}
