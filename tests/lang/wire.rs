//! The messages for a text in nft's language are those of nft 1.0.6, byte for byte. [`compared`] lists what is ignored;
//! the differences are listed here, and each is counted.

use crate::common::rulesets::{OF_CLIENTS, Ruleset, TypedRules, data};
use crate::common::scripts::without_known_errors;
use crate::common::tools::nft_pieces;
use crate::common::wire::{Ignored, compared, readable, sent_by_nft, sent_by_us};
use crate::common::{connect, sandbox};
use chainwright::iptables::Family;
use chainwright::nft::PlanOptions;
use chainwright_lang::translate::Translation;
use chainwright_lang::{NftVersion, Script};
use chainwright_testing::Sandbox;

/// Texts with other messages, the number of messages, and the reason.
const DIFFERENT: &[(&str, usize, &str)] = &[
    (
        "sets-concatenation-six-fields",
        1,
        "nft stores five of the six fields in the set's user data, and so lists wrong elements",
    ),
    (
        "fib",
        4,
        "newer versions have a different number for `fib`, and read only their own",
    ),
    (
        "ipsec",
        4,
        "no version writes user data about `ipsec` that the others read: the type or the number of newer versions suffices",
    ),
];

/// The same for commands.
const DIFFERENT_COMMANDS: &[(&str, usize, &str)] = &[
    (
        "define a = { 1.1.1.1, 2.2.2.2 }\n\
         add rule ip w c ip saddr vmap { $a : accept, 3.3.3.3 : drop }\n\
         add rule ip w c ip saddr vmap { $a : accept }\n\
         add rule ip w c meta mark set ip saddr map { $a : 5, 3.3.3.3 : 6 }",
        5,
        "nft counts a list that is a key as one more element of the set, and sends its elements last",
    ),
    (
        "define r = { 10.0.0.0/8, 2.2.2.2 }\n\
         add rule ip w c ip saddr vmap { $r : drop, 3.3.3.3 : accept }\n\
         add element ip w i { $r : accept }",
        1,
        "the same",
    ),
    (
        "define a = { 1.1.1.1, 2.2.2.2 }\n\
         add element ip w v { $a : accept }\n\
         add element ip w m { $a : 5, 3.3.3.3 : 6 }\n\
         add element ip w k { $a : \"c\" }",
        1,
        "the same",
    ),
    (
        "add set ip j sm { type ipv4_addr; flags interval; auto-merge; elements = { 11.0.0.0/8 }; }",
        3,
        "the set exists and contains 10.0.0.0/8, which nft does not merge with an adjacent range in such a command",
    ),
    (
        "add set ip j twice { type ipv4_addr; flags interval; }\n\
         add element ip j twice { 1.0.0.0/8 }\n\
         add element ip j twice { 3.0.0.0/8 }",
        4,
        "nft sends ranges that commands add to a new set with the set, and then again: one more message, before the others",
    ),
];

/// The counts of a comparison.
#[derive(Default)]
struct Report {
    texts: usize,
    messages: usize,
    rules: usize,
    passed: Ignored,
    differ: Vec<(String, String)>,
}

impl Report {
    /// Compares the messages of both for a text in a sandbox, in which nft applies it.
    fn compare(&mut self, name: &str, sandbox: &Sandbox, text: &str) {
        let mut differs = |how: String| self.differ.push((name.to_owned(), how));
        let chainwright = sent_by_us(sandbox, text, NftVersion::V1_0);
        let real = sent_by_nft(sandbox, text);
        let (chainwright, real) = match (chainwright, real) {
            (Ok(chainwright), Ok(real)) => (chainwright, real),
            (chainwright, real) => {
                return differs(format!(
                    "errors: the library's {:?}, nft's {:?}",
                    chainwright.err(),
                    real.err()
                ));
            }
        };
        let ((chainwright, passed_by_us), (real, passed)) =
            (compared(&chainwright), compared(&real));
        self.texts += 1;
        self.messages += real.len();
        self.rules += real
            .iter()
            .filter(|message| message[4..6] == [6, 10])
            .count();
        self.passed.generations += passed_by_us.generations;
        self.passed.known_sets += passed.known_sets;
        assert_eq!(
            (passed.generations, passed_by_us.known_sets),
            (0, 0),
            "{name}"
        );
        for (chainwright, real) in chainwright
            .iter()
            .zip(&real)
            .filter(|(one, other)| one != other)
        {
            differs(format!(
                "nft  {}ours {}",
                readable(real),
                readable(chainwright)
            ));
        }
        if chainwright.len() != real.len() {
            differs(format!(
                "nft sends {} messages, we {}",
                real.len(),
                chainwright.len()
            ));
        }
    }

    #[track_caller]
    fn finish(self, different: &[(&str, usize, &str)]) {
        println!(
            "{} texts, {} messages, {} rules; {:?}",
            self.texts, self.messages, self.rules, self.passed
        );
        let mut unexpected = Vec::new();
        for (name, how) in &self.differ {
            if !different.iter().any(|(other, ..)| other == name) {
                unexpected.push(format!("===== {name}:\n{how}"));
            }
        }
        assert!(
            unexpected.is_empty(),
            "{} differ\n{}",
            unexpected.len(),
            unexpected.join("\n")
        );
        for (name, count, why) in different {
            let found = self
                .differ
                .iter()
                .filter(|(other, _)| other == name)
                .count();
            assert_eq!(found, *count, "{name}: {why}");
        }
    }
}

#[test]
fn rulesets_are_sent_like_nft() {
    let mut report = Report::default();
    let mut left_out = 0;
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.prepare() else {
            continue;
        };
        let (text, lines) = without_known_errors(&ruleset.text);
        left_out += lines;
        report.compare(&ruleset.name, &sandbox, &text);
    }
    assert!(report.texts > 90, "{}", report.texts);
    assert_eq!(left_out, 4);
    // Those with sets with `auto-merge`, with a range up to the last value, or with sets that rules make dynamic: for
    // these the existing ruleset is read.
    assert_eq!(
        report.passed,
        Ignored {
            generations: 13,
            ..Ignored::default()
        }
    );
    report.finish(DIFFERENT);
}

#[test]
fn rules_of_every_expression_are_sent_like_nft() {
    let mut rules = TypedRules::new();
    rules.rules.retain(|rule| without_known_errors(rule).1 == 0);
    let sandbox = sandbox();
    let mut report = Report::default();
    for (number, piece) in rules.pieces().enumerate() {
        report.compare(&format!("piece {number}"), &sandbox, &piece);
    }
    assert!(report.rules > 5_000, "{}", report.rules);
    let why = "the user data about `fib` and `ipsec`, as in the rulesets with these names";
    report.finish(&[
        ("piece 6", 2, why),
        ("piece 12", 2, why),
        ("piece 19", 2, why),
        ("piece 35", 1, why),
    ]);
}

/// In pieces that the socket of a user without privileges accepts.
#[test]
fn client_rulesets_are_sent_like_nft() {
    let mut report = Report::default();
    for name in OF_CLIENTS {
        let text = match name.ends_with(".save") {
            false => data(name),
            // iptables' rules in nft's language.
            true => {
                Translation::of(Family::Ipv4, data(name))
                    .expect("cannot translate the rules")
                    .text
            }
        };
        let sandbox = sandbox();
        for piece in nft_pieces(&text) {
            report.compare(name, &sandbox, &piece);
        }
    }
    assert!(report.rules > 5_900, "{}", report.rules);
    report.finish(&[]);
}

/// One command or a few in a separate text, after the effects of the preceding ones; commands that the kernel refuses
/// are sent as well.
#[test]
fn commands_are_sent_like_nft() {
    let sandbox = sandbox();
    let mut report = Report::default();
    for text in data("nft/commands.txt").split("\n\n") {
        let text = text.trim_end();
        if !text.starts_with('#') {
            report.compare(text, &sandbox, &format!("{text}\n"));
        }
    }
    assert!(report.texts > 200, "{}", report.texts);
    report.finish(DIFFERENT_COMMANDS);
}

/// A plan leaves rules alone that another version of nft wrote: the forms of both versions are the same rules.
#[test]
fn plans_treat_the_forms_of_both_versions_as_equal() {
    let mut rules = TypedRules::new();
    // They differ in their effect: the newer form gives a packet without a checksum none, and converts a number to a
    // mark.
    let changes_udp = |rule: &String| rule.contains(" udp ") && rule.contains(" set ");
    let sets_mark = |rule: &String| rule.contains("mark set @nh,0,32");
    for (is_it, least) in [
        (&changes_udp as &dyn Fn(&String) -> bool, 5),
        (&sets_mark, 4),
    ] {
        let count = rules.rules.iter().filter(|rule| is_it(rule)).count();
        assert!(count > least, "{count}");
        rules.rules.retain(|rule| !is_it(rule));
    }
    let text: String = rules.pieces().collect();
    let [older, newer] = [NftVersion::V1_0, NftVersion::V1_1].map(|version| {
        Script::parse("rules.nft", &text)
            .expect("cannot parse the rules")
            .with_nft_version(version)
    });
    let expressions = |script: &Script| -> Vec<Vec<u8>> {
        let script = script.transaction(None).expect("cannot compile the rules");
        let sent = script.transaction().datagram(<[u8]>::to_vec);
        compared(&sent).0
    };
    let (sent_older, sent_newer) = (expressions(&older), expressions(&newer));
    let differ = sent_older
        .iter()
        .zip(&sent_newer)
        .filter(|(one, other)| one != other);
    let differ = differ.count();
    println!("{differ} rules are sent in another form");
    assert!(differ > 300, "{differ}");

    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut reconcile = |script: &Script| {
        let desired = script.ruleset().expect("cannot make a ruleset");
        nft.reconcile(&desired, PlanOptions::default())
            .expect("cannot reconcile")
    };
    assert!(!reconcile(&older).is_empty());
    let plan = reconcile(&newer);
    assert!(plan.is_empty(), "{plan}");
}
