//! What takes a while: monitors, readers that go, callers who may not.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::needs::find;
use super::{Side, plain};

/// What happens while it is told.
const CHANGES: &[&str] = &[
    "add table ip t",
    "add chain ip t c { type filter hook input priority 0; policy drop; }",
    "add chain ip t d",
    "add set ip t s { type ipv4_addr; }",
    "add set ip t r { type ipv4_addr; flags interval; }",
    "add map ip t m { type inet_service : verdict; }",
    "add rule ip t c tcp dport 22 counter accept",
    "add rule ip t c tcp dport { 80, 443 } accept",
    "insert rule ip t c ip saddr @s drop comment \"blocked\"",
    "add element ip t s { 192.0.2.1, 192.0.2.2 }",
    "add element ip t r { 10.0.0.0/8, 192.0.2.1-192.0.2.9 }",
    "add element ip t m { 80 : jump d }",
    "delete element ip t m { 80 : jump d }",
    "delete element ip t r { 10.0.0.0/8 }",
    "delete element ip t s { 192.0.2.1 }",
    "create counter ip t k",
    "add quota ip t q { over 5 mbytes; }",
    "delete counter ip t k",
    "flush chain ip t c",
    "delete map ip t m",
    "delete chain ip t d",
    "add table inet u { chain a { jump b; }; chain b { counter; }; }",
    "delete table inet u",
    // The last of all, by which it is known that all was told.
    "add table ip last; add chain ip last c; add set ip last s { type ipv4_addr; }; \
     add element ip last s { 192.0.2.7 }; add rule ip last c accept; add counter ip last k",
    "delete table ip last",
];

/// A monitor, once it listens.
fn listening(side: &Side, arguments: &[&str]) -> Child {
    let spawn = || {
        side.command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let child = side.sandbox.run(spawn).unwrap();
    // It has a netlink socket that is in a group.
    let listens = || {
        let sockets = std::fs::read_to_string(format!("/proc/{}/net/netlink", child.id()));
        let sockets = sockets.unwrap_or_default();
        sockets.lines().skip(1).any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1] == "12" && u32::from_str_radix(fields[3], 16) != Ok(0)
        })
    };
    let begun = Instant::now();
    while !listens() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it does not listen"
        );
        thread::sleep(Duration::from_millis(10));
    }
    // What it has to know is read behind that.
    thread::sleep(Duration::from_millis(200));
    child
}

/// Whether a line has this; blanks of JSON do not count.
fn has(line: &str, last: &str) -> bool {
    match line.starts_with('{') {
        true => line.replace(' ', "").contains(last),
        false => line.contains(last),
    }
}

/// The lines of a monitor up to one that has this.
fn told(side: &Side, arguments: &[&str], last: &str) -> Vec<String> {
    let mut child = listening(side, arguments);
    for change in CHANGES {
        let ran = side.run_with(&find("nft"), &["-f", "-"], change);
        assert_eq!(ran.code, Some(0), "{change}: {}", ran.err);
    }
    let out = BufReader::new(child.stdout.take().unwrap());
    let (send, receive) = mpsc::channel();
    let reader = thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .try_for_each(|line| send.send(line))
    });
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| has(line, last)) {
        match receive.recv_timeout(Duration::from_secs(20)) {
            Ok(line) => lines.push(line),
            Err(error) => {
                child.kill().unwrap();
                panic!("{arguments:?}: {error}: {last:?} was not told: {lines:?}");
            }
        }
    }
    drop(receive);
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = reader.join().unwrap(); // nobody listened to the end
    lines
}

/// Without what only one of the two says, each with its reason.
fn comparable(lines: &[String], arguments: &str) -> Vec<String> {
    // nft 1.0.6 leaves stateful objects out of these.
    let has_objects = !matches!(arguments, "monitor new" | "monitor destroy");
    let lines = lines.iter().filter(|line| {
        // Sets without a name go with their rule, and nft tells of both.
        !line.starts_with("delete set ip t __set")
            && (has_objects || !(line.contains(" counter ip ") || line.contains(" quota ip ")))
    });
    lines
        .flat_map(|line| match line.starts_with("# new generation") {
            // Which process it was differs.
            true => vec![line.split(" by process").next().unwrap().to_owned()],
            false => plain(line),
        })
        // nft calls a map that goes a set.
        .map(|line| line.replace("delete map", "delete set"))
        .collect()
}

#[test]
fn what_happens_is_told_as_by_nft() {
    for (arguments, last) in [
        ("monitor", "delete table ip last"),
        ("-n monitor", "delete table ip last"),
        ("monitor ruleset", "delete table ip last"),
        ("monitor new", "add rule ip last c"),
        ("monitor destroy", "delete table ip last"),
        ("monitor tables", "delete table ip last"),
        ("monitor chains", "delete chain ip last c"),
        ("monitor rules", "delete rule ip last c"),
        ("monitor sets", "delete set ip last s"),
        ("monitor elements", "add element ip last s"),
        ("monitor new rules", "add rule ip last c"),
        ("monitor destroy chains", "delete chain ip last c"),
        ("monitor new elements", "add element ip last s"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (theirs, ours) = (Side::theirs(), Side::ours());
        let (their, our) = (told(&theirs, &words, last), told(&ours, &words, last));
        assert_eq!(
            comparable(&our, arguments),
            comparable(&their, arguments),
            "{arguments}"
        );
        assert!(!our.is_empty());
    }
}

#[test]
fn what_happens_is_told_as_json() {
    let (theirs, ours) = (Side::theirs(), Side::ours());
    let arguments = ["-j", "monitor", "new"];
    let last = r#""table":"last","chain":"c""#;
    let of = |side: &Side| {
        let lines = told(side, &arguments, last);
        let parsed = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        // nft 1.0.6 leaves stateful objects out.
        let is_object = |line: &Value| {
            let line = line.as_object().and_then(|line| line.values().next());
            line.is_some_and(|line| line.get("counter").or(line.get("quota")).is_some())
        };
        let lines = parsed.filter(|line: &Value| !is_object(line));
        lines.collect::<Vec<Value>>()
    };
    assert_eq!(of(&ours), of(&theirs));
}

/// What is deleted is named; nft adds what it does not know ("type": "invalid").
#[test]
fn what_goes_is_named_in_json() {
    let ours = Side::ours();
    let lines = told(&ours, &["-j", "monitor", "destroy"], r#""name":"last""#);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert!(lines[0].starts_with(r#"{"delete":{"element":{"family":"ip","table":"t","name":"m""#));
    let map = r#"{"delete":{"map":{"family":"ip","table":"t","name":"m","handle":"#;
    assert!(lines.iter().any(|line| line.starts_with(map)), "{lines:?}");
    let rule = r#"{"delete":{"rule":{"family":"inet","table":"u","chain":"a","handle":3,"expr":[{"jump":{"target":"b"}}]}}}"#;
    assert!(lines.contains(&rule), "{lines:?}");
}

#[test]
fn a_reader_that_goes_is_no_failure() {
    let side = Side::ours();
    let rules = "add rule ip t c accept\n".repeat(2000);
    for text in rules
        .as_bytes()
        .chunks(200 * "add rule ip t c accept\n".len())
    {
        let text = std::str::from_utf8(text).unwrap();
        let text = format!("add table ip t\nadd chain ip t c\n{text}");
        let ran = side.run_with(&find("nft"), &["-f", "-"], &text);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    let spawn = || {
        let listing = "list ruleset\n".repeat(20);
        side.command(&[listing.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = side.sandbox.run(spawn).unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(first, "table ip t {\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn standard_input_may_be_closed() {
    use std::process::Command;
    for side in [Side::theirs(), Side::ours()] {
        let run = || {
            Command::new("/bin/sh")
                .args(["-c", r#""$0" -f - <&-"#])
                .arg(&side.program)
                .output()
                .unwrap()
        };
        let output = side.sandbox.run(run).unwrap();
        assert_eq!(output.stdout, b"");
        // nft takes it for an empty text.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
    }
}

#[test]
fn who_may_not_is_told_so() {
    let (theirs, ours) = (Side::theirs(), Side::ours());
    for arguments in [
        "list ruleset",
        "add table ip x",
        "-c add table ip x",
        "monitor",
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let run = |side: &Side| {
            let run = || {
                thread::scope(|scope| {
                    let unprivileged = scope.spawn(|| {
                        for set in [caps::CapSet::Bounding, caps::CapSet::Effective] {
                            caps::clear(None, set).unwrap();
                        }
                        caps::clear(None, caps::CapSet::Inheritable).unwrap();
                        side.command(&words).stdin(Stdio::null()).output().unwrap()
                    });
                    unprivileged.join().unwrap()
                })
            };
            side.sandbox.run(run).unwrap()
        };
        let (their, our) = (run(&theirs), run(&ours));
        assert_eq!(their.status.code(), Some(1), "{arguments}");
        assert_eq!(our.status.code(), Some(1), "{arguments}");
        assert_eq!(our.stdout, b"");
        let said = String::from_utf8(our.stderr).unwrap();
        assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    }
    // What takes no kernel takes no rights.
    let words = ["describe", "ipv4_addr"];
    assert_eq!(ours.run(&words, "").out, theirs.run(&words, "").out);
}

/// A terminal is asked for each line.
#[test]
fn a_terminal_is_prompted() {
    let side = Side::ours();
    let program = side.program.to_str().unwrap();
    let line = format!("{program} -i");
    let input = "add table ip x\nlist tables\nquit\n";
    let ran = side.run_with(&find("script"), &["-qec", &line, "/dev/null"], input);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out.matches("nft> ").count(), 3, "{}", ran.out);
    assert!(ran.out.contains("nft> table ip x\r\n"), "{}", ran.out);
}
