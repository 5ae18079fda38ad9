//! Compares the programs `iptables`, `iptables-save` and `iptables-restore`, as links to the
//! command, with the real ones: runs the calls that agents and users make
//! (`tests/data/dropin/*.txt`), line by line in two sandboxes, on both backends.
mod kinds;
mod monitor;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::needs::{find, unpacked};
use crate::common::sandbox;
use crate::common::tools::run_on;
use chainwright::Retry;
use chainwright::iptables::program::Program;
use chainwright::legacy::{Lock, LockPolicy};
use chainwright_testing::Sandbox;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// Texts that programs search for on standard error: where the real tool prints one, ours prints
/// the same.
const KNOWN: [&str; 10] = [
    "No chain/target/match by that name",
    "does a matching rule exist in that chain",
    "Chain already exists",
    "Index of",
    "does not exist",
    "Couldn't load target",
    "Bad built-in chain name",
    "Bad policy name",
    "File exists",
    "Device or resource busy",
];

/// A line of a list of calls.
struct Invocation {
    /// Compare only the exit code.
    code_only: bool,
    words: Vec<String>,
    input: String,
    line: usize,
}

/// The result of a call.
#[derive(Debug, PartialEq)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// One set of programs, in its own sandbox.
struct Side {
    sandbox: Sandbox,
    directory: PathBuf,
    real: PathBuf,
    backend: &'static str,
    lock: TempDir,
}

/// Splits words as a shell does: with quotes and backslashes.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None, ' ') => all.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    all.extend(word);
    all
}

fn read(path: &Path) -> Vec<Invocation> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().enumerate();
    let mut all = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (code_only, line) = match line.strip_prefix("~ ") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let (line, input) = match line.strip_suffix(" <<END") {
            None => (line, String::new()),
            Some(line) => {
                let input = lines.by_ref().map(|(_, line)| line);
                let input = input.take_while(|line| *line != "END");
                (line, input.map(|line| format!("{line}\n")).collect())
            }
        };
        all.push(Invocation {
            code_only,
            words: words(line),
            input,
            line: number + 1,
        });
    }
    all
}

impl Side {
    fn new(directory: &Path, backend: &'static str) -> Self {
        Self {
            sandbox: sandbox(),
            directory: directory.to_owned(),
            real: find("iptables-nft-save").parent().unwrap().to_owned(),
            backend,
            lock: TempDir::new().unwrap(),
        }
    }

    /// Runs a program: programs of iptables in this side's backend and from its directory.
    fn run(&self, directory: &Path, words: &[String], input: &str) -> Ran {
        let path = match Program::named(&words[0]) {
            None => find(&words[0]),
            Some(_) => {
                let (family, tool) = words[0].split_once('-').unwrap_or((&words[0], ""));
                let tool = tool.trim_start_matches("nft-");
                let dash = if tool.is_empty() { "" } else { "-" };
                directory.join(format!("{family}-{}{dash}{tool}", self.backend))
            }
        };
        self.run_path(&path, &words[1..], input)
    }

    /// Runs the program at this path.
    fn run_path(&self, path: &Path, words: &[impl AsRef<OsStr> + Sync], input: &str) -> Ran {
        let work = || {
            let mut command = Command::new(path);
            command
                .args(words)
                .env("XTABLES_LOCKFILE", self.lock.path().join("lock"))
                .env("CHAINWRIGHT_STATE_DIR", self.lock.path().join("state"))
                .env("LC_ALL", "C");
            run_on(&mut command, input.as_bytes()).unwrap()
        };
        let output = self.sandbox.run(work).unwrap();
        Ran {
            code: output.status.code().unwrap(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Returns what the real tools save of both families, without empty tables, which listing
    /// creates.
    fn state(&self) -> String {
        let mut all = String::new();
        for program in ["iptables-save", "ip6tables-save"] {
            let ran = self.run(&self.real, &[program.to_owned(), "-c".to_owned()], "");
            assert_eq!(ran.code, 0, "{ran:?}");
            all.push_str(program);
            all.push('\n');
            all.push_str(&tables(&ran.out));
        }
        all
    }
}

/// Returns the tables of a text, sorted by name, without the empty ones.
fn tables(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let mut tables: Vec<_> = lines
        .split_inclusive(|line| *line == "COMMIT")
        .filter(|table| {
            let is_nothing = |line: &&str| {
                line.starts_with('*') || *line == "COMMIT" || line.ends_with(" ACCEPT [0:0]")
            };
            !table.iter().all(is_nothing)
        })
        .map(|table| table.iter().map(|l| format!("{l}\n")).collect::<String>())
        .collect();
    tables.sort();
    tables.concat()
}

/// Replaces protocol numbers by names in a listing of 1.8.9: with `-n` 1.8.9 alone prints numbers,
/// while 1.8.7, 1.8.10 and newer print names.
fn with_names(listing: &str) -> String {
    let mut column = None;
    let lines = listing.split_inclusive('\n').map(|line| {
        let head = line.find("target     prot");
        if head.is_some() || line.starts_with("Chain ") || line == "\n" {
            // With -x the counter columns of rules are narrower than their headings.
            let exact = usize::from(line.contains("    pkts      bytes ")) * 2;
            column = head.map(|at| at + 11 - exact);
            return line.to_owned();
        }
        // A longer target shifts the columns after it.
        let target = column.and_then(|at| line.get(at - 11..)?.split(' ').next());
        let longer = target.map_or(0, |target| target.len().saturating_sub(9));
        let Some((before, rest)) = column.and_then(|at| line.split_at_checked(at + longer)) else {
            return line.to_owned();
        };
        let number = rest.split(' ').next().unwrap_or_default();
        let name = match number {
            "0" => "all",
            "1" => "icmp",
            "6" => "tcp",
            "17" => "udp",
            "50" => "esp",
            "51" => "ah",
            "58" => "ipv6-icmp",
            "132" => "sctp",
            "135" => "mobility-header",
            "136" => "udplite",
            other => other,
        };
        let padding = 4_usize.saturating_sub(number.len());
        let behind = rest.get(number.len() + padding..).unwrap_or_default();
        format!("{before}{name:<4}{behind}")
    });
    lines.collect()
}

/// Creates links of all names to the command.
fn links() -> TempDir {
    let directory = TempDir::new().unwrap();
    let others = ["iptables-apply", "xtables-monitor"].map(str::to_owned);
    for name in Program::names().chain(others) {
        symlink(PROGRAM, directory.path().join(name)).unwrap();
    }
    directory
}

/// Returns whether the call only reads.
fn is_read_only(words: &[String]) -> bool {
    let is_save = words[0].contains("-save");
    let lists = |word: &String| {
        ["-L", "-S", "-C", "-V", "--list", "--check"].contains(&word.as_str())
            || word.starts_with("--version")
            || (word.starts_with('-') && !word.starts_with("--") && word.contains(['L', 'S']))
    };
    is_save || words.iter().any(lists) && !words.contains(&"-Z".to_owned())
}

fn compare(name: &str, backend: &'static str) -> (usize, Vec<String>) {
    let path = crate::common::in_workspace(format!("tests/data/dropin/{name}.txt"));
    let links = links();
    let real = find("iptables-nft-save").parent().unwrap().to_owned();
    let (theirs, ours) = (Side::new(&real, backend), Side::new(links.path(), backend));
    let (mut number, mut wrong) = (0, Vec::new());
    for invocation in read(&path) {
        let Invocation {
            code_only,
            words,
            input,
            line,
        } = invocation;
        let run = |side: &Side| side.run(&side.directory, &words, &input);
        let (their, our) = (run(&theirs), run(&ours));
        if words[0] == "ipset" {
            continue;
        }
        number += 1;
        let mut differs = Vec::new();
        if their.code != our.code {
            differs.push(format!("exit code {} and {}", their.code, our.code));
        }
        if !code_only {
            let message = match words[0].contains("-save") {
                true => (tables(&their.out), tables(&our.out)),
                false if words[0].contains("-restore") => Default::default(),
                false => (with_names(&their.out), our.out.clone()),
            };
            if message.0 != message.1 {
                differs.push(format!("output\n{}\nand\n{}", message.0, message.1));
            }
            let known = KNOWN.iter().any(|known| their.err.contains(known));
            if known && their.err != our.err {
                differs.push(format!("errors\n{}\nand\n{}", their.err, our.err));
            }
            if our.code == 0 && their.err != our.err {
                differs.push(format!("errors\n{}\nand\n{}", their.err, our.err));
            }
        }
        let mut apart = false;
        if !is_read_only(&words) {
            let (their, our) = (theirs.state(), ours.state());
            apart = their != our;
            if apart {
                differs.push(format!("state\n{their}\nand\n{our}"));
            }
        }
        if !differs.is_empty() {
            let differs = differs.join("\n");
            let call = words.join(" ");
            wrong.push(format!(
                "{name}.txt:{line} ({backend}): {call}\n{differs}\ntheirs: {}ours: {}",
                their.err, our.err
            ));
            // The results of later calls would differ as well.
            if apart {
                break;
            }
        }
    }
    (number, wrong)
}

#[track_caller]
fn assert_matches_the_real_tools(name: &str, at_least: usize) {
    for backend in ["nft", "legacy"] {
        let (number, wrong) = compare(name, backend);
        assert!(
            wrong.is_empty(),
            "{} of {number}:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
        assert!(number >= at_least, "{number}");
    }
}

#[test]
fn kubelet() {
    assert_matches_the_real_tools("kubelet", 50);
}

#[test]
fn kube_proxy() {
    assert_matches_the_real_tools("kube-proxy", 45);
}

#[test]
fn cni_plugins() {
    assert_matches_the_real_tools("cni", 50);
}

#[test]
fn docker() {
    assert_matches_the_real_tools("docker", 75);
}

#[test]
fn fail2ban() {
    assert_matches_the_real_tools("fail2ban", 30);
}

#[test]
fn ufw() {
    assert_matches_the_real_tools("ufw", 40);
}

#[test]
fn calico() {
    assert_matches_the_real_tools("calico", 15);
}

#[test]
fn calls_of_other_programs_match() {
    assert_matches_the_real_tools("programs", 100);
}

#[test]
fn calls_of_administrators_match() {
    assert_matches_the_real_tools("hands", 150);
}

#[test]
fn each_extension_is_listed_like_the_real_program() {
    assert_matches_the_real_tools("extensions", 400);
}

/// Programs retry when the exit code is 4.
#[test]
fn exits_with_4_if_the_lock_is_held() {
    let links = links();
    let real = find("iptables-legacy-save").parent().unwrap().to_owned();
    for directory in [&real, links.path()] {
        let side = Side::new(directory, "legacy");
        let path = side.lock.path().join("lock");
        let held = Lock::take(&LockPolicy::Path(path), Retry::ONCE).unwrap();
        let words = words("iptables -w 1 -N A");
        let ran = side.run(directory, &words, "");
        assert_eq!(ran.code, 4, "{ran:?}");
        let message =
            "Another app is currently holding the xtables lock. Stopped waiting after 1s.";
        assert!(ran.err.contains(message), "{ran:?}");
        // Without -w, 1.8.9 alone waits; the versions before and after do not.
        if directory == links.path() {
            let text = "*filter\n-N A\nCOMMIT\n";
            for (line, input) in [
                ("iptables -N A", ""),
                ("ip6tables -L", ""),
                ("iptables-restore", text),
            ] {
                let ran = side.run(directory, &self::words(line), input);
                assert_eq!((ran.code, &*ran.out), (4, ""), "{line}: {ran:?}");
                let message = "Resource temporarily unavailable\nAnother app is currently holding the xtables lock. \
                            Perhaps you want to use the -w option?\n";
                assert!(
                    ran.err.starts_with("Can't lock ") && ran.err.ends_with(message),
                    "{line}: {ran:?}"
                );
            }
        }
        drop(held);
        assert_eq!(side.run(directory, &words, "").code, 0);
    }
}

/// A committed change succeeds even if its output cannot be written: a caller that gets a failure
/// repeats the change.
#[test]
fn failing_output_does_not_fail_a_committed_change() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let full = |call: &str| {
        let work = || {
            let device = fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap();
            Command::new(links.path().join("iptables-nft"))
                .args(call.split(' '))
                .stdout(device)
                .status()
                .unwrap()
        };
        side.sandbox.run(work).unwrap().code().unwrap()
    };
    assert_eq!(full("-v -A OUTPUT -d 192.0.2.1 -j ACCEPT"), 0);
    assert_eq!(full("-v -D OUTPUT -d 192.0.2.1 -j ACCEPT"), 0);
    // A listing whose output cannot be written fails.
    assert_eq!(full("-L"), 1);
}

/// Chains that a call does not name are not read: a change or a listing costs the same however many
/// chains exist.
#[test]
fn other_chains_are_not_read() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let mut text = "*filter\n".to_owned();
    for number in 0..2000 {
        text.push_str(&format!(":CH-{number} - [0:0]\n-A CH-{number} -j ACCEPT\n"));
    }
    text.push_str("COMMIT\n");
    assert_eq!(
        side.run(links.path(), &words("iptables-restore"), &text)
            .code,
        0
    );
    for (call, code) in [
        ("-A CH-7 -s 10.0.0.2 -j ACCEPT", 0),
        ("-I CH-7 -s 10.0.0.3 -j ACCEPT", 0),
        ("-C CH-7 -s 10.0.0.2 -j ACCEPT", 0),
        ("-C CH-7 -s 10.0.0.4 -j ACCEPT", 1),
        ("-S CH-7", 0),
        ("-L CH-7 -n", 0),
        ("-D CH-7 -s 10.0.0.2 -j ACCEPT", 0),
        ("-F CH-7", 0),
        ("-N NEW", 0),
        ("-E NEW OTHER", 0),
        ("-X OTHER", 0),
        ("-P FORWARD ACCEPT", 0),
        ("-S MISSING", 1),
        ("-L MISSING -n", 1),
        ("-F MISSING", 1),
        ("-X MISSING", 1),
        ("-E MISSING OTHER", 1),
        ("-C MISSING -j ACCEPT", 1),
        ("-D MISSING -j ACCEPT", 1),
        ("-A MISSING -j ACCEPT", 1),
        ("-A CH-7 -j MISSING", 2),
    ] {
        let trace = side.lock.path().join("trace");
        let program = links.path().join("iptables-nft");
        let (trace, program) = (trace.to_str().unwrap(), program.to_str().unwrap());
        let line = format!("strace -f -e trace=recvmsg,recvfrom -o {trace} {program} {call}");
        let ran = side.run(links.path(), &words(&line), "");
        assert_eq!(ran.code, code, "{call}: {ran:?}");
        let received = fs::read_to_string(trace).unwrap();
        let lengths = received
            .lines()
            .filter_map(|line| line.rsplit_once(" = ")?.1.parse::<usize>().ok());
        let all: usize = lengths.sum();
        assert!((1..8192).contains(&all), "{call}: {all} bytes\n{received}");
    }
}

/// Replacing a rule sends that rule and nothing else.
#[test]
fn replacing_a_rule_changes_only_that_rule() {
    let links = links();
    let side = Side::new(links.path(), "nft");
    let ran = side.run(links.path(), &words("iptables -A INPUT -j ACCEPT"), "");
    assert_eq!(ran.code, 0, "{ran:?}");
    let trace = side.lock.path().join("trace");
    let program = links.path().join("iptables-nft");
    let (trace, program) = (trace.to_str().unwrap(), program.to_str().unwrap());
    let line = format!("strace -f -e trace=sendmsg,sendto -o {trace} {program} -R INPUT 1 -j DROP");
    let ran = side.run(links.path(), &words(&line), "");
    assert_eq!(ran.code, 0, "{ran:?}");
    let sent = fs::read_to_string(trace).unwrap();
    let count = |what: &str| sent.matches(&format!("NFT_MSG_{what}")).count();
    assert_eq!(
        ["NEWTABLE", "NEWCHAIN", "NEWRULE"].map(count),
        [0, 0, 1],
        "{sent}"
    );
}

/// Creates links of the plain names to the real programs.
fn real_links() -> TempDir {
    let directory = TempDir::new().unwrap();
    let real = find("iptables-nft-save").parent().unwrap().to_owned();
    for name in Program::names() {
        let (family, tool) = name.split_once('-').unwrap_or((&name, ""));
        let dash = if tool.is_empty() { "" } else { "-" };
        let target = match tool {
            "" | "save" | "restore" => format!("{family}-nft{dash}{tool}"),
            _ => name.clone(),
        };
        symlink(real.join(target), directory.path().join(&name)).unwrap();
    }
    directory
}

/// Returns the output of a script of `tests/data/dropin` with the real programs and with ours. The
/// script gets the directory and these arguments each time.
fn scripted(name: &str, arguments: &[&Path]) -> [String; 2] {
    let script = crate::common::in_workspace(format!("tests/data/dropin/{name}.sh"));
    let run = |programs: TempDir| {
        let lock = TempDir::new().unwrap();
        let work = || {
            Command::new("sh")
                .arg(&script)
                .arg(programs.path())
                .args(arguments)
                .env("XTABLES_LOCKFILE", lock.path().join("lock"))
                .output()
                .unwrap()
        };
        let output = sandbox().run(work).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{output:?}");
        text
    };
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| run(real_links()));
        let ours = run(links());
        [theirs.join().unwrap(), ours]
    })
}

/// Returns the same for a script that first prints which programs it runs. Checks that this line
/// differs and names our programs for ours.
fn with_which_programs(name: &str, arguments: &[&Path]) -> [String; 2] {
    let [their, our] = scripted(name, arguments);
    let ours = format!("{PROGRAM}\n{PROGRAM}\n");
    let our = our
        .strip_prefix(&ours)
        .expect("the script prints that it runs our programs")
        .to_owned();
    assert!(!their.contains(PROGRAM), "{their}");
    let mut lines = their.splitn(3, '\n').skip(2);
    [lines.next().unwrap_or_default().to_owned(), our]
}

/// Debian's own plugins, which run `iptables` by name.
#[test]
fn network_plugins_work_with_the_links() {
    assert!(
        Path::new("/usr/lib/cni/portmap").exists(),
        "containernetworking-plugins is missing: tests/setup installs it"
    );
    let [their, our] = scripted("plugins", &[]);
    assert!(
        their.contains("-j DNAT --to-destination 10.88.0."),
        "{their}"
    );
    assert_eq!(their, our);
}

/// Debian's own ufw, which runs the installed `iptables`: enables it, adds rules of all kinds,
/// deletes them, and so on.
#[test]
fn ufw_itself_works_with_the_links() {
    find("/usr/bin/python3");
    let root = TempDir::new().unwrap();
    let [their, our] = with_which_programs("ufw", &[&unpacked("ufw"), root.path()]);
    for message in [
        "Status: active",
        "-A ufw-user-input -p tcp -m tcp --dport 22 -j ACCEPT\n",
        "-A ufw6-user-input -s 2001:db8::/32 -j ACCEPT\n",
        "-A ufw-user-limit-accept -j ACCEPT\n",
        "ERROR: Bad port\nexit code 1\n",
    ] {
        assert!(their.contains(message), "{message}: {their}");
    }
    assert_eq!(with_names(&their), our);
}

/// Debian's own fail2ban: its server and client, with its actions for iptables and ipset, both
/// families, both backends.
#[test]
fn fail2ban_itself_works_with_the_links() {
    find("/usr/bin/python3");
    let root = TempDir::new().unwrap();
    let [their, our] = with_which_programs("fail2ban", &[&unpacked("fail2ban"), root.path()]);
    for message in [
        "-A f2b-multiport -s 192.0.2.1/32 -j REJECT --reject-with icmp-port-unreachable\n",
        "-A INPUT -p tcp -m multiport --dports 53 -j f2b-legacy\n",
        "-m set --match-set f2b-set6 src -j REJECT --reject-with icmp6-port-unreachable\n",
        "Invariant check failed. Trying to restore a sane environment",
    ] {
        assert!(their.contains(message), "{message}: {their}");
    }
    assert_eq!(their, our);
}
