//! Compares `chainwright nft`, run by a link, with the real nft: the same arguments and input give
//! the same exit code, the same standard output and the same ruleset.
mod cases;
mod live;
mod monitor;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::needs::find;
use crate::common::sandbox;
use crate::common::tools::{run_on, words};
use chainwright_testing::Sandbox;
use tempfile::TempDir;

use cases::{CASES, Case, Same};

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// One of the two programs, in its own sandbox.
pub(crate) struct Side {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: std::path::PathBuf,
    /// The working directory, with the files that the program may read.
    pub(crate) directory: TempDir,
    /// Arguments of the program that select the form of its output.
    version: &'static [&'static str],
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Side {
    fn new(program: impl AsRef<Path>) -> Self {
        let directory = TempDir::new().unwrap();
        for (name, text) in cases::FILES {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self {
            sandbox: sandbox(),
            program: program.as_ref().to_owned(),
            directory,
            version: &[],
        }
    }

    pub(crate) fn real() -> Self {
        Self::new(find("nft"))
    }

    /// Returns our program, run by a link of that name, in the form of the version of the real nft.
    pub(crate) fn chainwright() -> Self {
        let mut side = Self::newest();
        side.version = &["--nft-version", "1.0"];
        side
    }

    /// Returns our program, run by a link of that name.
    pub(crate) fn newest() -> Self {
        let mut side = Self::new(PROGRAM);
        let link = side.directory.path().join("nft");
        symlink(PROGRAM, &link).unwrap();
        side.program = link;
        side
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&self.program, arguments)
    }

    fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        if program == self.program {
            command.args(self.version);
        }
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Ran {
        self.run_with(&self.program, arguments, input)
    }

    /// Runs another program instead.
    pub(crate) fn run_with(&self, program: &Path, arguments: &[&str], input: &str) -> Ran {
        let run = || {
            let mut command = self.command_of(program, arguments);
            run_on(&mut command, input.as_bytes()).unwrap()
        };
        let output = self.sandbox.run(run).unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the ruleset as the real nft lists it.
    fn ruleset(&self) -> String {
        let ran = self.run_with(&find("nft"), &["-a", "list", "ruleset"], "");
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out
    }
}

/// Removes what may differ: blanks at the ends of lines and generations; in JSON only the release
/// name.
fn plain(out: &str) -> Vec<String> {
    let lines = out
        .lines()
        .filter(|line| !line.starts_with("# new generation"));
    let own = concat!("chainwright ", env!("CARGO_PKG_VERSION"));
    let plain = |line: &str| match line.starts_with('{') {
        true => line.replace(own, "Lester Gooch #5"),
        false => line.trim_end().to_owned(),
    };
    lines.map(plain).collect()
}

/// Returns a description of the differences between the two.
fn difference(case: &Case) -> Option<String> {
    let (real, chainwright) = (Side::real(), Side::chainwright());
    for side in [&real, &chainwright] {
        if !case.before.is_empty() {
            let ran = side.run_with(&find("nft"), &["-f", "-"], case.before);
            assert_eq!(ran.code, Some(0), "{}: {}", case.before, ran.err);
        }
    }
    let arguments = words(case.arguments);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (their, our) = (
        real.run(&arguments, case.input),
        chainwright.run(&arguments, case.input),
    );
    let is_of_chain = [case.arguments, case.input]
        .iter()
        .any(|text| text.contains("list chain "));
    let mut found = String::new();
    let (code, same) = match case.same {
        Same::AllBut(_, code, _) => (Some(code), false),
        _ => (their.code, true),
    };
    if our.code != code {
        found += &format!("exit code {:?} instead of {code:?}\n", our.code);
    }
    let lines = |out: &str| {
        let lines = plain(out).into_iter();
        // nft does not know the handle of the table when it lists one chain.
        lines
            .map(
                |line| match line.strip_prefix("table ").filter(|_| is_of_chain) {
                    Some(_) => line
                        .split(" # handle")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    None => line,
                },
            )
            .collect::<Vec<_>>()
    };
    let is_same_out = lines(&their.out) == lines(&our.out)
        && their.out.ends_with('\n') == our.out.ends_with('\n');
    match case.same {
        Same::All if !is_same_out => {
            found += &format!("output\n{}instead of\n{}", our.out, their.out);
        }
        Same::ButOutput(why, expected) if our.out != expected => {
            found += &format!("output\n{}expected ({why})\n{expected}", our.out);
        }
        Same::ButOutput(why, _) if is_same_out => {
            found += &format!("the output is the same, although {why}\n");
        }
        Same::AllBut(why, _, expected)
            if !our.out.contains(expected) && !our.err.contains(expected) =>
        {
            found += &format!("no {expected:?} ({why}) in\n{}", our.out);
        }
        _ => {}
    }
    if same && their.err.is_empty() != our.err.is_empty() {
        found += &format!("errors\n{:?} instead of\n{:?}\n", our.err, their.err);
    }
    let (one, other) = (real.ruleset(), chainwright.ruleset());
    if same && one != other {
        found += &format!("ruleset\n{other}instead of\n{one}");
    }
    (!found.is_empty()).then(|| {
        let errors = &our.err;
        format!("nft {}: {found}errors: {errors}", case.arguments)
    })
}

#[test]
fn output_and_ruleset_match_nft() {
    let differ: Vec<_> = CASES.iter().filter_map(difference).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    assert!(CASES.len() >= 400, "{}", CASES.len());
}

/// Rulesets, each followed by commands that begin with `$ ` and by what nft 1.1.7 prints, are recorded in
/// `data/nft/commands-1.1.txt`; with `CHAINWRIGHT_CAPTURE_NFT=PROGRAM`, the test writes the output of PROGRAM instead.
#[test]
fn commands_print_the_form_of_nft_1_1() {
    let path = crate::common::in_workspace("tests/data/nft/commands-1.1.txt");
    let capture = std::env::var("CHAINWRIGHT_CAPTURE_NFT").ok();
    let recorded = fs::read_to_string(&path).unwrap();
    let mut made = String::new();
    for case in recorded.split("===\n").skip(1) {
        let (ruleset, commands) = case.split_once("$ ").unwrap();
        let mut side = Side::newest();
        if let Some(program) = &capture {
            side.program = program.into();
        }
        let loaded = side.run(&["-f", "-"], ruleset);
        assert_eq!(loaded.code, Some(0), "{ruleset}{}", loaded.err);
        made += &format!("===\n{ruleset}");
        for command in commands.split("\n$ ") {
            let command = command.lines().next().unwrap_or_default();
            let arguments: Vec<&str> = command.split(' ').collect();
            let ran = side.run(&arguments, "");
            let out = plain(&ran.out).join("\n");
            let out = out.replace("Commodore Bullmoose #8", "Lester Gooch #5");
            made += &format!("$ {command}\n{out}");
            if !out.is_empty() {
                made += "\n";
            }
            if ran.code != Some(0) {
                made += "# fails\n";
            }
        }
    }
    if capture.is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    let differ: Vec<_> = recorded
        .lines()
        .zip(made.lines())
        .filter(|(one, other)| one != other)
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(recorded.lines().count(), made.lines().count());
}

/// The option is accepted before and after the verb, and by a link; also the version is that of the form.
#[test]
fn nft_version_selects_the_output_form() {
    let side = Side::newest();
    let rule = "add table ip t; add chain ip t c; add rule ip t c limit rate 5/second";
    assert_eq!(side.run(&[rule], "").code, Some(0));
    let (old, new) = (
        "limit rate 5/second\n",
        "limit rate 5/second burst 5 packets\n",
    );
    let program = Path::new(PROGRAM);
    let (list, version) = (["list", "chain", "ip", "t", "c"], "--nft-version=1.0");
    for (program, before, after, form) in [
        (side.program.as_path(), &[][..], &[][..], new),
        (&side.program, &[version], &[], old),
        (&side.program, &["--nft-version", "1.1"], &[], new),
        (program, &[version, "nft"], &[], old),
        (program, &["nft", version], &[], old),
        (program, &[], &[version], old),
        (program, &[], &[], new),
    ] {
        let arguments = [before, &list, after].concat();
        let ran = side.run_with(program, &arguments, "");
        assert!(ran.out.contains(form), "{arguments:?}: {ran:?}");
    }
    for (arguments, nft) in [(&["-v"][..], "v1.1.7"), (&[version, "-v"], "v1.0.6")] {
        let ran = side.run(arguments, "");
        assert!(ran.out.starts_with(&format!("nftables {nft} (")), "{ran:?}");
    }
    let ran = side.run(&["--nft-version", "0.9", "-v"], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

/// Returns the system calls that carry out a text, and the output.
fn sent(side: &Side, text: &str) -> (String, String) {
    traced(side, &[text])
}

fn traced(side: &Side, words: &[&str]) -> (String, String) {
    let trace = side.directory.path().join("trace");
    let mut arguments = vec![
        "-f",
        "-e",
        "trace=sendto,sendmsg",
        "-o",
        trace.to_str().unwrap(),
        side.program.to_str().unwrap(),
    ];
    arguments.extend(words);
    let ran = side.run_with(&find("strace"), &arguments, "");
    assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.err);
    (fs::read_to_string(&trace).unwrap(), ran.out)
}

/// Several listings of the same tables in one input use one dump; a change in between is visible.
#[test]
fn objects_are_read_only_once() {
    let side = Side::chainwright();
    let tables = "add table ip t; add chain ip t a; add chain ip t b; add rule ip t b accept; add table ip u";
    assert_eq!(side.run(&[tables], "").code, Some(0));
    let readings = |text: &str| {
        let (sent, out) = sent(&side, text);
        (sent.matches("NFT_MSG_GETCHAIN").count(), out)
    };
    let (once, of_a) = readings("list chain ip t a");
    let (again, of_b) = readings("list chain ip t b");
    assert!(once >= 1);
    assert_eq!(once, again);
    let all = "list chain ip t a; list chain ip t b; list chain ip t a; list chain ip t b";
    let (several, out) = readings(all);
    assert_eq!(several, once);
    assert_eq!(out, [&of_a[..], &of_b, &of_a, &of_b].concat());
    let (others, _) =
        readings("list chain ip t a; list table ip u; list chain ip t b; list table ip u");
    assert_eq!(others, 2 * once);
    let (changed, out) = readings("list chain ip t a; add rule ip t a drop; list chain ip t b");
    assert_eq!(changed, 2 * once);
    assert!(out.contains("drop"), "{out}");
}

/// Only the objects that a text names are read: not the other chains and rules, however many exist.
#[test]
fn only_needed_objects_are_read() {
    let side = Side::chainwright();
    let chains: String = (0..100)
        .map(|n| format!("chain c{n} {{ counter; }}\n"))
        .collect();
    let text = format!(
        "table ip t {{
            set a {{ type ipv4_addr; flags interval; auto-merge; elements = {{ 10.0.0.0/24 }}; }}
            set b {{ type ipv4_addr; flags interval; elements = {{ 10.0.0.0/24 }}; }}
            set c {{ type ipv4_addr; elements = {{ 10.0.0.1 }}; }}
            {chains}
        }}"
    );
    assert_eq!(side.run(&["-f", "-"], &text).code, Some(0));
    let request_counts = |text: &str| {
        let (sent, _) = sent(&side, text);
        ["GETSETELEM", "GETCHAIN", "GETRULE"]
            .map(|name| sent.matches(&format!("NFT_MSG_{name}")).count())
    };
    for (text, expected) in [
        ("add element ip t a { 10.0.1.0/24 }", [1, 0, 0]),
        ("add element ip t b { 10.0.1.0/24 }", [1, 0, 0]),
        (
            "flush set ip t a; add element ip t a { 10.0.1.0/24, 10.0.0.0/24 }",
            [0, 0, 0],
        ),
        ("add element ip t c { 10.0.0.2 }", [0, 0, 0]),
        ("delete element ip t c { 10.0.0.2 }", [0, 0, 0]),
        ("add rule ip t c1 ip saddr @a drop", [0, 0, 0]),
        ("insert rule ip t c1 index 1 accept", [0, 1, 1]),
        ("rename chain ip t c7 d7", [0, 1, 0]),
        ("add rule ip t c1 accept", [0, 0, 0]),
    ] {
        assert_eq!(request_counts(text), expected, "{text}");
    }
}

/// Returns the kinds of a program's requests, in order.
fn requests(trace: &str) -> Vec<String> {
    let kinds = trace.split("NFT_MSG_GET").skip(1);
    let kind = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_');
        let dump = match rest
            .split('}')
            .next()
            .is_some_and(|header| header.contains("NLM_F_DUMP"))
        {
            true => "*",
            false => "",
        };
        format!("{}{dump}", &rest[..end.unwrap_or(rest.len())])
    };
    kinds.map(kind).collect()
}

/// Calls that list, look up or reset, and the requests that each needs: as many with a large
/// ruleset as with a small one. An asterisk marks a dump; `GEN` appears at both ends.
const FORMS: &[(&str, &str)] = &[
    ("list tables", "TABLE*"),
    ("list tables ip", "TABLE*"),
    ("-j list tables", "TABLE*"),
    ("list chains", "TABLE* CHAIN*"),
    ("-a list chains ip", "TABLE* CHAIN*"),
    ("-j list chains", "TABLE* CHAIN*"),
    ("list chain ip own c", "TABLE CHAIN RULE* SET SET SETELEM*"),
    (
        "-n list chain ip own c",
        "TABLE CHAIN RULE* SET SET SETELEM*",
    ),
    (
        "-t list chain ip own c",
        "TABLE CHAIN RULE* SET SET SETELEM*",
    ),
    (
        "-j list chain ip own c",
        "TABLE CHAIN RULE* SET SET SETELEM*",
    ),
    ("list chain ip own bound", "TABLE CHAIN RULE* CHAIN RULE*"),
    ("list chain ip own empty", "TABLE CHAIN RULE*"),
    ("list chain ip own jumps", "TABLE CHAIN RULE*"),
    ("list set ip own s", "TABLE SET SETELEM*"),
    ("-j list set ip own s", "TABLE SET SETELEM*"),
    ("-t list set ip own s", "TABLE SET"),
    ("list map ip own m", "TABLE SET SETELEM*"),
    ("list sets table ip own", "TABLE SET* SETELEM*"),
    ("list maps table ip own", "TABLE SET* SETELEM*"),
    ("-t list sets", "TABLE* SET*"),
    ("-t list maps", "TABLE* SET*"),
    ("-t list meters", "TABLE* SET*"),
    ("list meters", "TABLE* SET*"),
    ("list flowtables", "TABLE* FLOWTABLE*"),
    ("list counters", "TABLE* OBJ*"),
    ("list counters ip", "TABLE* OBJ*"),
    ("list counters table ip own", "TABLE OBJ*"),
    ("list counter ip own n", "TABLE OBJ"),
    ("list quotas", "TABLE* OBJ*"),
    ("list quota ip own q", "TABLE OBJ"),
    ("list limits", "TABLE* OBJ*"),
    ("list limit ip own l", "TABLE OBJ"),
    ("list ct helpers table ip own", "TABLE OBJ*"),
    ("list ct timeouts table ip own", "TABLE OBJ*"),
    ("list ct expectations table ip own", "TABLE OBJ*"),
    ("list secmarks", "TABLE* OBJ*"),
    ("list synproxys", "TABLE* OBJ*"),
    (
        "list table ip own",
        "TABLE CHAIN* OBJ* FLOWTABLE* SET* SETELEM* SETELEM* SETELEM* RULE*",
    ),
    (
        "-t list table ip own",
        "TABLE CHAIN* OBJ* FLOWTABLE* SET* SETELEM* RULE*",
    ),
    ("list ruleset arp", "TABLE* CHAIN* OBJ* FLOWTABLE* SET*"),
    ("get element ip own s { 10.0.0.1 }", "TABLE SET GEN SETELEM"),
    ("reset counter ip own n", "TABLE GEN OBJ_RESET"),
    ("reset counters table ip own", "TABLE GEN OBJ_RESET*"),
    (
        "list set ip own s; list map ip own m",
        "TABLE SET* SETELEM* SETELEM*",
    ),
    ("add element ip own s { 10.0.0.2 }", "TABLE SET"),
    ("add rule ip own c ip saddr @s drop", "TABLE SET"),
    ("rename chain ip own empty vacant", "TABLE CHAIN"),
];

/// The requests depend only on the named objects, however many others exist, and there are no more
/// than listed.
#[test]
fn requests_do_not_grow_with_unrelated_objects() {
    let own = "table ip own {
        set s { type ipv4_addr; elements = { 10.0.0.1 }; }
        map m { type ipv4_addr : ipv4_addr; elements = { 10.0.0.1 : 10.0.0.2 }; }
        counter n { }
        quota q { 10 mbytes }
        limit l { rate 1/second }
        chain to { }
        chain c { ip saddr @s ip daddr { 10.0.0.1, 10.0.0.2 } accept; }
        chain bound { jump { counter; }; }
        chain empty { }
        chain jumps { jump to; }
    }";
    let others: String = (0..40)
        .map(|n| {
            format!(
                "set s{n} {{ type ipv4_addr; elements = {{ 10.0.0.1 }}; }}
                 map m{n} {{ type ipv4_addr : verdict; elements = {{ 10.0.0.1 : drop }}; }}
                 counter n{n} {{ }}
                 chain c{n} {{ tcp dport {{ 1, 2 }} drop; jump {{ drop; }}; }}\n"
            )
        })
        .collect();
    let others = format!("\ntable ip a {{\n{others}}}\ntable ip z {{\n{others}}}\n");
    let alone = [own.to_owned(), own.to_owned() + &others].map(|text| {
        let side = Side::chainwright();
        let ran = side.run_with(&find("nft"), &["-f", "-"], &text);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let of_form = |(form, _): &(&str, &str)| {
            let (trace, _) = traced(&side, &form.split(' ').collect::<Vec<_>>());
            requests(&trace).join(" ")
        };
        FORMS.iter().map(of_form).collect::<Vec<_>>()
    });
    let differ: Vec<_> = FORMS
        .iter()
        .zip(alone[0].iter().zip(&alone[1]))
        .filter(|((_, expected), (few, many))| {
            let expected = format!("GEN {expected}");
            let is_it = |found: &str| found.trim_end_matches(" GEN") == expected;
            !is_it(few) || !is_it(many)
        })
        .map(|((form, _), (few, many))| format!("{form}: {few}\nbeside others: {many}"))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The tables that exist before the calls of `first_lines.txt`.
const FIRST_LINES_BASE: &str = r"table inet netavark { chain INPUT { type filter hook input priority 0; }
chain NETAVARK-HOSTPORT-DNAT { accept; }
}
table ip kube-proxy { chain services { accept; }
chain used { accept; }
chain uses { jump used; }
set cluster-ips { type ipv4_addr; elements = { 10.0.0.1 }
}
map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.0.0.1 . tcp . 80 : goto services }
}
counter k { }
}
table inet incus { chain fwd.br0 { accept; }
}
";

/// Programs search the first line of errors. For each call that netavark, knftables (kube-proxy,
/// CNI's bridge), incus or pyferm make, ours prints the same first line as nft 1.1.7.
#[test]
fn first_lines_of_errors_match_what_programs_search_for() {
    const TEXTS: [&str; 3] = [
        "No such file or directory",
        "File exists",
        "Device or resource busy",
    ];
    let calls = include_str!("../../../tests/data/nft/first_lines.txt");
    let calls: Vec<_> = calls
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert!(calls.len() >= 70, "{}", calls.len());
    let differ: Vec<String> = calls
        .iter()
        .filter_map(|call| {
            let [_, arguments, input, code, first] = call.split('\t').collect::<Vec<_>>()[..]
            else {
                panic!("{call}");
            };
            let side = Side::chainwright();
            let made = side.run_with(&find("nft"), &["-f", "-"], FIRST_LINES_BASE);
            assert_eq!(made.code, Some(0), "{}", made.err);
            let before = side.ruleset();
            let arguments: Vec<&str> = arguments.split(' ').collect();
            let ran = side.run(&arguments, &input.replace("\\n", "\n"));
            let chainwright = ran.err.lines().next().unwrap_or_default();
            let text = TEXTS.iter().find(|text| first.contains(*text));
            // For input from a file the position precedes the message.
            let is_it = match text {
                None => chainwright == first,
                Some(text) => {
                    let (place, rest) = chainwright.split_once("Error: ")?;
                    let rest = rest
                        .strip_prefix("Could not process rule: ")
                        .unwrap_or(rest);
                    rest == *text && place.is_empty() != arguments.contains(&"-f")
                }
            };
            let is_unchanged = code == "0" || side.ruleset() == before;
            let is_same = is_it && is_unchanged && ran.code == code.parse().ok();
            (!is_same).then(|| format!("{call}\n{}{:?}", ran.err, ran.code))
        })
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
}

/// The kernel's error in the words of glibc, then the line with its position, then our explanation.
#[test]
fn errors_print_position_and_reason_after_the_first_line() {
    let side = Side::chainwright();
    assert_eq!(side.run(&["add table ip t"], "").code, Some(0));
    for (arguments, input, expected) in [
        (
            vec!["list", "chain", "ip", "t", "c"],
            "",
            "Error: No such file or directory\nlist chain ip t c\n^^^^^^^^^^^^^^^^^\nno such chain `c` in table ip t\n",
        ),
        (
            vec!["create table ip t"],
            "",
            "Error: Could not process rule: File exists\ncreate table ip t\n^^^^^^^^^^^^^^^^^\n\
             rejected by the kernel: EEXIST (File exists)\n",
        ),
        (
            vec!["-f", "-"],
            "add table ip u\nadd chain ip u c { type nat hook forward priority 0; }\n",
            "/dev/stdin:2:1-16: Error: Could not process rule: Operation not supported\n\
             add chain ip u c { type nat hook forward priority 0; }\n^^^^^^^^^^^^^^^^\n",
        ),
        (
            vec!["add rule ip t c tcp dprot 22"],
            "",
            "Error: unknown tcp field `dprot`\nadd rule ip t c tcp dprot 22\n                    ^^^^^\nexpected: ",
        ),
    ] {
        let ran = side.run(&arguments, input);
        assert_eq!(ran.code, Some(1), "{arguments:?}");
        assert!(ran.err.starts_with(expected), "{arguments:?}: {}", ran.err);
    }
}
