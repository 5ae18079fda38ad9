//! Listings in the form of nft 1.1, compared with recorded ones of nft 1.1.7; `text.rs` and `json.rs` compare those in the
//! form of nft 1.0 with the installed nft.
//!
//! With `CHAINWRIGHT_CAPTURE_NFT=PROGRAM`, the tests write the files instead, with the listings of PROGRAM, and those of
//! the library that differ from them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Command;

use chainwright::nft::Scope;
use chainwright_lang::{Listing, NftVersion};
use chainwright_testing::Sandbox;

use crate::common::connect;
use crate::common::rulesets::{Ruleset, TypedRules, data, directory, options_in};
use crate::common::tools::run_on;
use crate::json::{without_time, written};

/// Rulesets that are not compared, and the reasons.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "ipsec",
        "nft 1.1.7 aborts when it lists a set of nft 1.0.6 of `ipsec in reqid`",
    ),
    ("large-set", "its elements are those of other sets"),
    (
        "sets-concatenation-six-fields",
        "nft drops the first of six fields, and so lists wrong elements",
    ),
    (
        "unstable-element-order",
        "nft lists combined flags in the order of a hash table",
    ),
];

/// The environment variable that names the program to capture listings of.
const CAPTURE: &str = "CHAINWRIGHT_CAPTURE_NFT";

/// Form of a listing.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Json,
}

impl Form {
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["list", "ruleset"],
            Self::Json => &["-j", "list", "ruleset"],
        }
    }

    /// The library's listing, as lines.
    fn chainwright(self, sandbox: &Sandbox, version: NftVersion) -> Vec<String> {
        let snapshot = connect(sandbox)
            .snapshot(Scope::all())
            .expect("cannot read the ruleset");
        let options = options_in(sandbox, version);
        let listing = Listing::new(&snapshot, &options);
        self.lines(&match self {
            Self::Text => listing.to_string(),
            Self::Json => listing.json().to_string(),
        })
    }

    /// The listing of a program.
    fn real(self, sandbox: &Sandbox, program: &str) -> Vec<String> {
        let list = || {
            let mut command = Command::new(program);
            command
                .args(self.arguments())
                .env("LC_ALL", "C")
                .env("TZ", "UTC");
            run_on(&mut command, b"")
        };
        let output = sandbox.run(list).expect("cannot enter the sandbox");
        let output = output.expect("cannot run the program to capture");
        assert!(output.status.success(), "{output:?}");
        self.lines(&String::from_utf8(output.stdout).expect("not UTF-8"))
    }

    /// Lines, without what changes over time and, in JSON, without the object that depends on the program.
    fn lines(self, listing: &str) -> Vec<String> {
        match self {
            Self::Text => listing.lines().map(without_expiration).collect(),
            Self::Json => written(listing).into_iter().map(without_time).collect(),
        }
    }
}

/// A line without the remaining times of elements.
fn without_expiration(line: &str) -> String {
    let mut words = line.split_inclusive(' ');
    let mut out = String::new();
    while let Some(word) = words.next() {
        out += word;
        if word == "expires " {
            let time = words.next().unwrap_or_default();
            out += "…";
            out += time.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        }
    }
    out
}

/// Whether listings are captured, with this program.
fn program() -> Option<String> {
    std::env::var(CAPTURE).ok()
}

/// Writes a captured file.
fn write(name: &str, text: &str) {
    let path = directory("data").join(name);
    std::fs::write(path, text).expect("cannot write the captured listings");
}

/// Compares the listings of all rulesets with a file: after a line `=== NAME` that of nft, and if the library's differs,
/// it follows a line `--- here`. Returns the numbers of lines and of rulesets that differ.
#[track_caller]
fn rulesets_match(form: Form, name: &str) -> (usize, usize) {
    let capture = program();
    let file = capture
        .as_ref()
        .map_or_else(|| data(name), |_| String::new());
    let parts = file.split("=== ").skip(1);
    let recorded: HashMap<&str, &str> = parts.filter_map(|part| part.split_once('\n')).collect();
    let mut captured = String::new();
    let (mut lines, mut differ) = (0, 0);
    for ruleset in Ruleset::all() {
        // If the kernel lacks a ruleset's features, it is not compared.
        let is_left_out = LEFT_OUT.iter().any(|(name, _)| *name == ruleset.name);
        let Some(sandbox) = ruleset.load().filter(|_| !is_left_out) else {
            continue;
        };
        let chainwright = form.chainwright(&sandbox, NftVersion::V1_1).join("\n") + "\n";
        lines += chainwright.lines().count();
        if let Some(program) = &capture {
            let real = form.real(&sandbox, program).join("\n") + "\n";
            captured += &format!("=== {}\n{real}", ruleset.name);
            if real != chainwright {
                captured += &format!("--- here\n{chainwright}");
            }
            continue;
        }
        let Some(expected) = recorded.get(&*ruleset.name) else {
            panic!(
                "{} is not recorded: run the test with {CAPTURE}",
                ruleset.name
            );
        };
        let here = expected.split_once("--- here\n");
        differ += usize::from(here.is_some());
        let expected = here.map_or(*expected, |(_, here)| here);
        let both = chainwright.lines().zip(expected.lines());
        let first = both
            .into_iter()
            .find(|(chainwright, expected)| chainwright != expected);
        assert!(chainwright == expected, "{}: {first:#?}", ruleset.name);
    }
    if capture.is_some() {
        write(name, &captured);
    }
    (lines, differ)
}

#[test]
fn rulesets_are_listed_like_nft_1_1() {
    let (lines, differ) = rulesets_match(Form::Text, "nft/rulesets-1.1.txt");
    println!("{lines} lines; {differ} rulesets are not listed like nft 1.1.7");
    assert!(lines > 2_500, "{lines}");
}

#[test]
fn rulesets_are_listed_like_nft_1_1_in_json() {
    let (objects, differ) = rulesets_match(Form::Json, "nft/rulesets-1.1-json.txt");
    println!("{objects} objects; {differ} rulesets are not listed like nft 1.1.7");
    assert!(objects > 1_500, "{objects}");
}

/// Compares the listing of each rule of `data/nft/rules.nft` with a file, which has the rules that nft or the library
/// lists in another form than that of nft 1.0: a line with a number and the library's form of nft 1.0, one of nft, and
/// one of the library. Returns the numbers of these rules, and of those that the library lists otherwise than nft.
#[track_caller]
fn rules_match(form: Form, name: &str) -> (usize, usize) {
    let capture = program();
    let file = capture
        .as_ref()
        .map_or_else(|| data(name), |_| String::new());
    let lines: Vec<&str> = file.lines().collect();
    let mut recorded: HashMap<String, [&str; 2]> = lines
        .chunks_exact(3)
        .map(|lines| (lines[0].to_owned(), [lines[1], lines[2]]))
        .collect();
    let mut rules = TypedRules::new();
    // nft 1.1.7 aborts when it lists such a set of nft 1.0.6.
    rules.rules.retain(|rule| !rule.contains("ipsec in spi {"));
    let sandbox = crate::common::sandbox();
    rules.load_into(&sandbox);
    let is_rule = |line: &String| line.starts_with("{\"rule\"") || line.starts_with("\t\t");
    let only_rules = |mut lines: Vec<String>| {
        lines.retain(is_rule);
        lines
    };
    let before = only_rules(form.chainwright(&sandbox, NftVersion::V1_0));
    let chainwright = only_rules(form.chainwright(&sandbox, NftVersion::V1_1));
    assert_eq!(before.len(), chainwright.len());
    let (mut changed, mut differ, mut captured) = (0, 0, String::new());
    if let Some(program) = &capture {
        let real = only_rules(form.real(&sandbox, program));
        assert_eq!(before.len(), real.len());
        for (index, (before, nft)) in before.iter().zip(&real).enumerate() {
            let chainwright = &chainwright[index];
            if before != nft || before != chainwright {
                let _ = writeln!(captured, "{index} {before}\n{nft}\n{chainwright}"); // into memory
            }
        }
        write(name, &captured);
        return (changed, differ);
    }
    for (index, (before, chainwright)) in before.iter().zip(&chainwright).enumerate() {
        match recorded.remove(&format!("{index} {before}")) {
            Some([nft, expected]) => {
                assert_eq!(chainwright, expected);
                changed += 1;
                differ += usize::from(nft != expected);
            }
            None => assert_eq!(
                chainwright, before,
                "not recorded: run the test with {CAPTURE}"
            ),
        }
    }
    assert!(recorded.is_empty(), "{recorded:#?}");
    (changed, differ)
}

#[test]
fn rules_of_every_expression_are_listed_like_nft_1_1() {
    let (changed, differ) = rules_match(Form::Text, "nft/rules-1.1.txt");
    println!("{changed} rules have another form; {differ} are not listed like nft 1.1.7");
    assert!(program().is_some() || changed > 200, "{changed}");
}

#[test]
fn rules_of_every_expression_are_listed_like_nft_1_1_in_json() {
    let (changed, differ) = rules_match(Form::Json, "nft/rules-1.1-json.txt");
    println!("{changed} rules have another form; {differ} are not listed like nft 1.1.7");
    assert!(program().is_some() || changed > 200, "{changed}");
}
