//! Restores hostile or endless texts: checks that the cost grows at most linearly with their size,
//! and that texts above the limits are rejected.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::cost::{
    Cost, assert_grows_with_its_size, assert_time_grows_with_its_size, cost, least,
};
use crate::common::sandbox;
use chainwright::Retry;
use chainwright::iptables::text::{MAX_LINE_LENGTH, RestoreOptions};
use chainwright::iptables::{Backend, Family, Iptables};
use chainwright::legacy::LockPolicy;

/// Measures restoring a text with `--test`, and returns the cost and the result.
fn restoring(backend: Backend, text: &[u8]) -> (Cost, Result<(), String>) {
    let sandbox = sandbox();
    let run = || {
        let mut iptables = Iptables::open(backend)
            .unwrap()
            .with_lock(LockPolicy::None, Retry::ONCE);
        let options = RestoreOptions {
            test: true,
            ..RestoreOptions::default()
        };
        let mut result = Ok(());
        let cost = cost(|| {
            let restored = iptables.restore(Family::Ipv4, text, &options);
            result = restored.map(drop).map_err(|error| error.to_string());
        });
        (cost, result)
    };
    sandbox.run(run).unwrap()
}

/// Checks that four times the text costs at most seven times as much, and that the error contains
/// the message.
#[track_caller]
fn grows_with_its_size(
    backend: Backend,
    size: usize,
    text: impl Fn(usize) -> String,
    message: Option<&str>,
) {
    let least_of = |text: &str| {
        let all = [(); 3].map(|()| restoring(backend, text.as_bytes()));
        let cost = least(&all.each_ref().map(|(cost, _)| *cost));
        let [(_, result), ..] = all;
        (cost, result)
    };
    let (small, large) = (text(size), text(4 * size));
    let (once, _) = least_of(&small);
    let (four_times, result) = least_of(&large);
    let shortened: String = large.chars().take(60).collect();
    assert_grows_with_its_size(&format!("{backend:?} {shortened}"), once, four_times);
    let more_memory = four_times.memory;
    // A line of the text becomes a rule: the memory is limited for each byte of the text.
    let most = 400 * large.len() as u64 + (8 << 20);
    assert!(
        more_memory < most,
        "{backend:?} {shortened}: {more_memory} of {most}"
    );
    match message {
        None => assert_eq!(result, Ok(()), "{backend:?} {shortened}"),
        Some(message) => {
            let error = result.expect_err(&shortened);
            assert!(error.contains(message), "{backend:?} {shortened}: {error}");
        }
    }
}

fn filter(lines: &str) -> String {
    format!("*filter\n{lines}COMMIT\n")
}

#[test]
fn long_lines_take_linear_time() {
    let backend = Backend::Legacy;
    // Thousands of matches, with the options after each match, or all after the last.
    let matches = |n: usize| filter(&format!("-A INPUT{}\n", " -m mark --mark 1".repeat(n)));
    grows_with_its_size(backend, 5_000, matches, Some("a rule of "));
    let names = |n: usize| filter(&format!("-A INPUT{}\n", " -m mark".repeat(n)));
    grows_with_its_size(backend, 20_000, names, Some("--mark is required"));
    // Options of two extensions in alternation, so that they are out of order.
    let turns = |n: usize| {
        let options = " --next --connlimit-saddr".repeat(n);
        filter(&format!("-A INPUT -m policy -m connlimit{options}\n"))
    };
    grows_with_its_size(backend, 8_000, turns, Some("--dir is required"));
    let repeated = |n: usize| {
        let next = " --next".repeat(n);
        filter(&format!(
            "-A INPUT -m policy --dir in --pol ipsec --strict --reqid 1{next}\n"
        ))
    };
    grows_with_its_size(backend, 30_000, repeated, Some("policy"));
    // Words that are no option, quotes that open and close, blanks, an unknown option.
    let words = |n: usize| filter(&format!("-A INPUT{}\n", " x".repeat(n)));
    grows_with_its_size(backend, 100_000, words, Some("is not an option"));
    let quotes = |n: usize| filter(&format!("-A INPUT {}\n", "a\"b\\\"\"".repeat(n)));
    grows_with_its_size(backend, 30_000, quotes, Some("is not an option"));
    let open = |n: usize| filter(&format!("-A INPUT {}\"\n", "\"a\\\\\" ".repeat(n)));
    grows_with_its_size(backend, 30_000, open, Some("quotes"));
    let option = |n: usize| filter(&format!("-A INPUT --{}\n", "n".repeat(n)));
    grows_with_its_size(backend, 200_000, option, Some("unknown option"));
    // Long values.
    let mut wrong = Vec::new();
    for (value, piece, message) in [
        ("-m u32 --u32 0=1", "&&0=1", "u32"),
        ("-m u32 --u32 0", "&1", "u32"),
        ("-m string --algo bm --hex-string |41", "41", "string"),
        ("-m string --algo bm --string x", "x", "string"),
        ("-p tcp -m multiport --dports 1", ",1", "multiport"),
        ("-m bpf --bytecode \"9", ",6 0 0 0", "bpf"),
        ("-p sctp -m sctp --chunk-types any DATA", ",DATA", ""),
        ("-p tcp -m tcp --tcp-flags SYN", ",SYN", ""),
        ("-m conntrack --ctstate NEW", ",NEW", ""),
        ("-m set --match-set x src", ",src", "set"),
        ("-m time --monthdays 1", ",1", ""),
        ("-m comment --comment c", "c", ""),
        ("-j CT --ctevents new", ",new", ""),
        ("-j TCPOPTSTRIP --strip-options 2", ",3", ""),
        ("-i x", "x", "interface"),
        ("-s 10.0.0.1/8", "8", ""),
        ("-p t", "t", "protocol"),
        ("-j C", "C", "Invalid target name"),
    ] {
        let text = |n: usize| {
            let (piece, close) = (piece.repeat(n), &value[..value.matches('"').count()]);
            filter(&format!(
                "-A INPUT {value}{piece}{}\n",
                close.replace('-', "\"")
            ))
        };
        let large = text(80_000);
        let (small, _) = restoring(backend, text(20_000).as_bytes());
        let (large, result) = restoring(backend, large.as_bytes());
        assert_time_grows_with_its_size(value, small, large);
        if let Err(error) = &result
            && !error.contains(message)
        {
            wrong.push(format!("{value}: {}", &error[..error.len().min(300)]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rejects_overlong_lines() {
    let text = filter(&format!(
        "-A INPUT -m comment --comment {}\n",
        "x".repeat(MAX_LINE_LENGTH)
    ));
    for backend in [Backend::Nft, Backend::Legacy] {
        let (Cost { memory, .. }, result) = restoring(backend, text.as_bytes());
        let error = result.unwrap_err();
        assert!(error.contains("(at most 1048576)"), "{error}");
        assert!(memory < 1 << 20, "{memory}");
    }
}

/// Lines as `iptables-save` writes them, followed by 100 MB of other bytes.
#[test]
fn rejects_garbage_after_a_valid_head() {
    const WHOLE: usize = 100 << 20;
    let head = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j ACCEPT\n";
    for (piece, length, message) in [
        (
            &b"\0"[..],
            WHOLE,
            "the line has 104857600 bytes (at most 1048576)",
        ),
        (b"\0\n", 1 << 20, "line 4, column 1"),
        (b"\xff\n", 1 << 20, "line 4, column 1"),
        (b"-A INPUT -p \xc3\x28\n", WHOLE, "line 4, column 13"),
        (b"*filter\n", 1 << 20, "line 4"),
        // Valid lines, but without an end.
        (
            b"# x\n",
            1 << 20,
            "the text ends without a COMMIT for table filter",
        ),
    ] {
        let mut text = head.as_bytes().to_vec();
        text.extend(piece.repeat(length / piece.len()));
        for backend in [Backend::Nft, Backend::Legacy] {
            let (Cost { memory, .. }, result) = restoring(backend, &text);
            let error = result.unwrap_err();
            assert!(
                error.contains(message),
                "{backend:?}: {}",
                &error[..error.len().min(300)]
            );
            assert!(error.len() < 1000, "{backend:?}: {}", error.len());
            assert!(memory < 1 << 20, "{backend:?} {piece:?}: {memory}");
        }
    }
}

#[test]
fn limits_the_expansion_of_address_lists() {
    let list = |n: usize| vec!["0"; n].join(",");
    let line = |n| format!("-A INPUT -s {0} -d {0}\n", list(n));
    for backend in [Backend::Nft, Backend::Legacy] {
        let (_, result) = restoring(backend, filter(&line(300)).as_bytes());
        assert!(result.unwrap_err().contains("at most 65536"));
        // Each line is within the limit; all of them together are not.
        let text = filter(&line(200).repeat(50));
        let (Cost { memory, .. }, result) = restoring(backend, text.as_bytes());
        assert!(result.unwrap_err().contains("at most 262144 more rules"));
        assert!(memory < 512 << 20, "{memory}");
    }
}

#[test]
fn many_chains_and_many_lines() {
    for backend in [Backend::Nft, Backend::Legacy] {
        // A ring of chains: each jumps to the next. The kernel may accept or reject it.
        let ring = |n: usize| {
            let heads: String = (0..n).map(|at| format!(":c{at} - [0:0]\n")).collect();
            let jumps = (0..n).map(|at| format!("-A c{at} -j c{}\n", (at + 1) % n));
            filter(&(heads + &jumps.collect::<String>()))
        };
        let (small, large) = (ring(1_500), ring(6_000));
        let (small, _) = restoring(backend, small.as_bytes());
        let (large, _) = restoring(backend, large.as_bytes());
        assert_time_grows_with_its_size(&format!("{backend:?}"), small, large);
        // The same chain declared many times, with the name of a target.
        let same = |n: usize| filter(&(":LOG - [0:0]\n".repeat(n) + "-A INPUT -j LOG\n"));
        grows_with_its_size(backend, 10_000, same, None);
        // Blank lines and comments.
        let blank = |n: usize| filter(&"\n# x\n   \n".repeat(n));
        grows_with_its_size(backend, 100_000, blank, None);
        let tables = |n: usize| "*filter\nCOMMIT\n".repeat(n);
        grows_with_its_size(backend, 1_000, tables, None);
    }
}

/// Runs the command on a standard input that never ends.
fn never_ending(arguments: &[&str], piece: &[u8]) -> (Option<i32>, String, Duration) {
    let sandbox = sandbox();
    let work = || {
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_chainwright"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let piece = piece.repeat((64 << 10) / piece.len());
        while stdin.write_all(&piece).is_ok() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the command reads endless input for more than 60 seconds"
            );
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), message, start.elapsed())
    };
    sandbox.run(work).unwrap()
}

#[test]
fn rejects_endless_input() {
    for (piece, message) in [
        (&b"\0"[..], "NUL byte near line 1"),
        (b"x", "line 1 has more than 1048576 bytes"),
        (
            b"-A INPUT -m mark --mark 1 ",
            "line 1 has more than 1048576 bytes",
        ),
    ] {
        let (code, error, _) = never_ending(&["apply", "--format", "iptables"], piece);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(message), "{error}");
        assert!(error.len() < 1000, "{}", error.len());
    }
    // Each verb that reads a text, from standard input and from a device.
    for (arguments, wrong) in [
        (&["apply", "--format", "iptables"][..], 2),
        (&["apply"], 2),
        (&["apply", "-j"], 2),
        (&["apply", "--check"], 2),
        (&["nft", "-f"], 1),
        (&["nft", "-j", "-f"], 1),
        (&["nft", "-c", "-f"], 1),
        (&["graph"], 2),
        (&["trace", "tcp", "any", "any", "--file"], 2),
    ] {
        for (file, name) in [("-", "<stdin>"), ("/dev/zero", "/dev/zero")] {
            let arguments = [arguments, &[file]].concat();
            let (code, error, _) = never_ending(&arguments, b"\0");
            assert_eq!(code, Some(wrong), "{arguments:?}: {error}");
            let name = match &arguments[..] {
                _ if error.contains("cannot read -") => "-",
                ["nft", ..] if file == "-" => "/dev/stdin",
                _ => name,
            };
            assert!(
                error.contains(&format!("cannot read {name}: NUL byte")),
                "{arguments:?}: {error}"
            );
        }
    }
    // A text in nft's language may have lines of any length, up to 1 GiB in total.
    let (code, error, _) = never_ending(&["apply"], b"x");
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("more than 1073741824 bytes"), "{error}");
}
