//! The language of nft 1.1: texts that nft 1.0.6 refuses or misreads, and the results of 1.1.7, recorded in
//! `data/nft/newer.txt`. The library gives the same result for a text, for 1.1.7's listing of it in text and in JSON,
//! and for its own listing.

use crate::common::rulesets::{data, options_in, without_remainders};
use crate::common::scripts::{execute, instructions};
use crate::common::{connect, sandbox};
use chainwright::nft::{Family, PlanOptions, Scope, Table, Transaction};
use chainwright_lang::{Listing, NftVersion, Options, Script};
use chainwright_testing::Sandbox;

/// A text and its recorded result.
struct Case<'t> {
    text: &'t str,
    /// The instructions of all its rules.
    instructions: &'t str,
    /// 1.1.7's listing.
    listed: &'t str,
    /// The same in JSON; `None` if that version's form cannot be read.
    json: Option<&'t str>,
    /// The library's listing, if it differs.
    chainwright: Option<&'t str>,
    /// The same in the form of nft 1.0.
    older: Option<&'t str>,
}

impl<'t> Case<'t> {
    /// Each case begins with a line `===`; the results follow lines that begin with `---`.
    fn all(file: &'t str) -> Vec<Self> {
        file.split("===\n").skip(1).map(Self::new).collect()
    }

    fn new(case: &'t str) -> Self {
        let mut parts = case.split("--- ");
        let text = parts.next().expect("a case has no text");
        let mut this = Self {
            text,
            instructions: "",
            listed: "",
            json: None,
            chainwright: None,
            older: None,
        };
        for part in parts {
            match part.split_once('\n').expect("a part has no first line") {
                ("instructions", rest) => this.instructions = rest,
                ("listed", rest) => this.listed = rest,
                ("json", rest) => this.json = Some(rest),
                ("listed here", rest) => this.chainwright = Some(rest),
                ("listed here as 1.0", rest) => this.older = Some(rest),
                (other, _) => panic!("unknown part `{other}`"),
            }
        }
        this
    }

    /// Checks that a sandbox has the recorded content.
    #[track_caller]
    fn is_in(&self, sandbox: &Sandbox, how: &str) {
        let made = instructions(sandbox).concat();
        assert_eq!(made, self.instructions, "{how}: {}", self.text);
        for version in NftVersion::ALL {
            let here = match version {
                NftVersion::V1_0 => self.older,
                _ => self.chainwright,
            };
            let expected = here.unwrap_or(self.listed);
            let listed = listed(sandbox, version);
            assert_eq!(listed, expected, "{how}, {version}: {}", self.text);
        }
    }
}

/// The library's listing, without what changes over time.
fn listed(sandbox: &Sandbox, version: NftVersion) -> String {
    let listing = listing(sandbox, version, |listing| listing.to_string());
    without_remainders(&listing, false)
}

fn listing(
    sandbox: &Sandbox,
    version: NftVersion,
    write: impl Fn(&Listing<'_>) -> String,
) -> String {
    let snapshot = connect(sandbox)
        .snapshot(Scope::all())
        .expect("cannot read the ruleset");
    let options = options_in(sandbox, version);
    write(&Listing::new(&snapshot, &options))
}

/// Applies a text in a new sandbox.
#[track_caller]
fn ruleset_of(text: &str) -> Sandbox {
    let sandbox = sandbox();
    let script = Script::parse("newer.nft", text).map_err(|error| error.to_string());
    script
        .and_then(|script| execute(&sandbox, &mut connect(&sandbox), script))
        .unwrap_or_else(|error| panic!("{text}\n{error}"));
    sandbox
}

/// The same for a JSON document.
#[track_caller]
fn ruleset_of_json(json: &str) -> Sandbox {
    let sandbox = sandbox();
    let script = Script::parse_json("newer.json", json).map_err(|error| error.to_string());
    script
        .and_then(|script| execute(&sandbox, &mut connect(&sandbox), script))
        .unwrap_or_else(|error| panic!("{json}\n{error}"));
    sandbox
}

#[test]
fn syntax_of_newer_versions_creates_the_same_rules() {
    let file = data("nft/newer.txt");
    let cases = Case::all(&file);
    for case in &cases {
        case.is_in(&ruleset_of(case.text), "as written");
    }
    println!("{} texts", cases.len());
    assert!(cases.len() >= 300, "{}", cases.len());
}

#[test]
fn listings_of_newer_versions_round_trip() {
    let file = data("nft/newer.txt");
    let mut documents = 0;
    for case in Case::all(&file) {
        case.is_in(&ruleset_of(case.listed), "as nft 1.1.7 lists it");
        if let Some(json) = case.json {
            case.is_in(&ruleset_of_json(json), "as nft 1.1.7 writes it in JSON");
            documents += 1;
        }
    }
    println!("{documents} documents");
    assert!(documents >= 250, "{documents}");
}

#[test]
fn our_listings_of_newer_syntax_round_trip() {
    let file = data("nft/newer.txt");
    for case in Case::all(&file) {
        let first = ruleset_of(case.text);
        for version in NftVersion::ALL {
            let listed = listed(&first, version);
            // The older form has no text for a rule.
            if listed.contains("\t# [ ") {
                assert_eq!(version, NftVersion::V1_0, "{listed}");
                continue;
            }
            let again = ruleset_of(&listed);
            case.is_in(&again, "as the library lists it");
            let json = listing(&first, version, |listing| listing.json().to_string());
            case.is_in(&ruleset_of_json(&json), "as the library writes it in JSON");
        }
    }
}

/// Without a family, a table is one of the family ip.
#[test]
fn objects_of_one_table_are_listed_and_reset() {
    let text = "table ip t { counter a { packets 1 bytes 2 }; quota q { 5 bytes; }; set s { type mark; }; map m { type mark : mark; }; chain c { }; }
        table inet t { counter b { packets 3 bytes 4 }; set s { type mark; }; }\n";
    for kind in [
        "list chains",
        "list sets",
        "list maps",
        "list flowtables",
        "list counters",
        "list quotas",
        "list limits",
        "list synproxys",
        "list tunnels",
        "reset counters",
        "reset quotas",
        "reset rules",
    ] {
        let [short, whole, all] = ["t", "table ip t", ""].map(|of| {
            let sandbox = ruleset_of(text);
            let mut nft = connect(&sandbox);
            let script = Script::parse("query", format!("{kind} {of}")).unwrap();
            let query = script.queries().next().expect("no query");
            let answer = query.answer(&mut nft).unwrap();
            answer.listing(&Options::default()).to_string()
        });
        assert_eq!(short, whole, "{kind}");
        assert!(all.starts_with(&short), "{kind}");
        let expected = match kind {
            "list counters" | "reset counters" => "\tcounter a {\n\t\tpackets 1 bytes 2\n",
            "list quotas" | "reset quotas" => "\tquota q {\n\t\t5 bytes\n",
            "list sets" => "\tset s {\n",
            "list maps" => "\tmap m {\n",
            "list chains" => "\tchain c {\n",
            _ => "",
        };
        assert!(short.contains(expected), "{kind}: {short}");
    }
    assert!(Script::parse("query", "list tables t").is_err());
}

/// nft 1.1.7 records its version and build time with a table: that is no difference.
#[test]
fn the_version_that_created_a_table_is_no_difference() {
    let of = |noted: &[u8]| {
        let sandbox = sandbox();
        let mut table = Table::new(Family::IP, "t");
        table.userdata = (!noted.is_empty()).then(|| noted.to_vec().into());
        let mut tx = Transaction::new();
        tx.add(&table).unwrap();
        connect(&sandbox).commit(&tx).unwrap();
        connect(&sandbox).snapshot(Scope::all()).unwrap()
    };
    let newer = b"\x01\x04\x01\x01\x07\0\x02\x08\0\0\0\0\x6a\xc7\x3d\xd6";
    let commented = [b"\0\x02x\0", &newer[..]].concat();
    for (one, other, is_same) in [
        (&newer[..], &b""[..], true),
        (&commented, b"\0\x02x\0", true),
        (&commented, newer, false),
    ] {
        let plan = of(one).plan(&of(other), PlanOptions::default()).unwrap();
        assert_eq!(plan.is_empty(), is_same, "{plan}");
    }
}
