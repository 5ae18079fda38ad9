//! Completions: the answers of the program, and the script in bash.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright_testing::Sandbox;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

const RULES: &str = "
table ip nat {
    chain KUBE-SERVICES { }
    chain KUBE-NODEPORTS { }
    chain other { }
    set allowed { type ipv4_addr; }
    chain c { ip saddr { 10.0.0.1, 10.0.0.2 } accept; }
}
table ip6 filter { chain KUBE-V6 { }; }
";

/// Returns the words that may follow a command line, whose last word is incomplete.
fn answer(sandbox: &Sandbox, line: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    let mut command = Command::new(PROGRAM);
    command
        .env("CHAINWRIGHT_COMPLETE", "bash")
        .args(["--", "chainwright"])
        .args(&words);
    let output = sandbox.run(|| command.output().unwrap()).unwrap();
    assert!(output.status.success(), "{line}");
    assert_eq!(output.stderr, b"", "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn names_are_those_of_the_kernel() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", RULES);
    tools.run("iptables-legacy -N KUBE-OLD");
    tools.run("iptables-legacy -N with:colon");
    for (line, expected) in [
        (
            "get chains KUBE-",
            &["KUBE-NODEPORTS", "KUBE-OLD", "KUBE-SERVICES", "KUBE-V6"][..],
        ),
        ("get chains -6 KUBE-", &["KUBE-V6"]),
        ("-6 get chains KUBE-", &["KUBE-V6"]),
        ("get chains --backend legacy KUBE-", &["KUBE-OLD"]),
        ("get rules -t nat KUBE-S", &["KUBE-SERVICES"]),
        ("explain KUBE-N", &["KUBE-NODEPORTS"]),
        ("exists --table nat oth", &["other"]),
        ("delete chains KUBE-S", &["KUBE-SERVICES"]),
        ("get sets ", &["allowed"]),
        ("get chains --table n", &["nat"]),
        ("get chains --table sets KUBE", &[]),
        ("--table=nat get chains -4 KUBE-S", &["KUBE-SERVICES"]),
        // As bash divides the words.
        ("get chains --table = n", &["nat"]),
        ("get chains --table = ", &["filter", "nat"]),
        ("--table = nat get chains KUBE-S", &["KUBE-SERVICES"]),
        ("get chains with : co", &["colon"]),
        ("get chains with : ", &["colon"]),
        // Before the verb.
        ("--fam", &["--family"]),
        ("--family in", &["inet"]),
        ("-6 -t f", &["filter"]),
        ("--backend legacy get ch", &["chains"]),
        ("get chains --table=f", &["--table=filter"]),
        ("get tables ", &["filter", "nat"]),
        ("get rul", &["rules", "ruleset"]),
        ("get chains nosuch", &[]),
        ("get chains --netns nosuch KUBE", &[]),
    ] {
        let mut found = answer(&sandbox, line);
        found.retain(|word| !word.starts_with('-') || line.ends_with("=f") || line == "--fam");
        assert_eq!(found, expected, "{line}");
    }
    let elsewhere = crate::common::sandbox();
    Tools::new(&elsewhere).run_with("nft -f -", "table ip t { chain KUBE-ELSEWHERE { }; }");
    let path = format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        elsewhere.netns().as_fd().as_raw_fd()
    );
    for option in ["--netns ", "--netns=", "--netns = "] {
        let line = format!("{option}{path} get chains KUBE-");
        assert_eq!(answer(&sandbox, &line), ["KUBE-ELSEWHERE"], "{line}");
    }
}

/// A completion creates nothing: no table of iptables, and it loads no module.
#[test]
fn completions_change_nothing() {
    let sandbox = sandbox();
    assert_eq!(answer(&sandbox, "get chains KUBE"), [""; 0]);
    assert_eq!(Tools::new(&sandbox).run("nft list ruleset"), "");
}

#[test]
fn names_are_inserted_only_if_the_shell_does_not_interpret_them() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "table ip t { chain a_b-c.d { }; chain a/b { }; }",
    );
    assert_eq!(answer(&sandbox, "get chains a"), ["a/b", "a_b-c.d"]);
    let mut tx = chainwright::nft::Transaction::new();
    let family = chainwright::nft::Family::IP;
    for name in ["a;reboot", "a$(reboot)", "a b", "a\n"] {
        tx.add(&chainwright::nft::Chain::new(family, "t", name))
            .unwrap();
    }
    let commit = || {
        chainwright::nft::Connection::open()
            .unwrap()
            .commit(&tx)
            .unwrap()
    };
    sandbox.run(commit).unwrap();
    assert_eq!(answer(&sandbox, "get chains a"), ["a/b", "a_b-c.d"]);
}

/// The script works in bash, which finds the program in its path.
#[test]
fn bash_completes() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", RULES);
    tools.run("iptables-legacy -N with:colon");
    let script = r#"source <(chainwright completions bash)
        complete_words() {
            COMP_WORDS=(chainwright "$@"); COMP_CWORD=$#; COMP_TYPE=9
            _chainwright chainwright "${!#}" ""
            printf '<%s>' "${COMPREPLY[@]}"
        }
        complete_words get chains KUBE-S
        complete_words get chains --table = na
        complete_words get chains with : c"#;
    let directory = std::path::Path::new(PROGRAM).parent().unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", script]).env(
        "PATH",
        format!("{}:{}", directory.display(), std::env::var("PATH").unwrap()),
    );
    let output = sandbox.run(|| command.output().unwrap()).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "<KUBE-SERVICES><nat><colon>",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
