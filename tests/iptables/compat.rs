//! The prediction of how versions of iptables-nft read rules agrees with the recorded readings.

use std::collections::BTreeMap;

use crate::common::encodings::{
    Corpus, Line, NATIVE, Put, Readings, directory, key, parse_native, parse_readings,
    parse_written,
};
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use chainwright::iptables::compat::{self, Effect, Reading, Version};
use chainwright::iptables::nft::{Encoder, Profile};
use chainwright::iptables::{Backend, Family, Rule};
use chainwright::nft::expr::Expressions;
use chainwright::nft::{self, Scope, Transaction};
use chainwright::xt::{SetName, SetNames};

/// The versions whose readings are recorded.
const RECORDED: [Version; 5] = [
    Version::V1_8_7,
    Version::V1_8_9,
    Version::V1_8_10,
    Version::V1_8_11,
    Version::V1_8_13,
];

fn read(name: &str) -> String {
    let path = directory().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn readings(version: Version) -> Readings {
    parse_readings(&read(&format!("read-{version}.txt"))).unwrap()
}

/// The bytes of a rule, its writers and its meaning, if that is known.
struct Case {
    line: Line,
    writer: String,
    expressions: Vec<u8>,
    userdata: Vec<u8>,
    means: Option<String>,
    /// The reading of 1.8.9.
    as_reader: Option<String>,
}

/// All recorded cases.
fn cases() -> Vec<Case> {
    let corpus = Corpus::load(&directory()).unwrap();
    let mut cases: Vec<Case> = corpus
        .written()
        .map(|(writer, line, written)| Case {
            line: line.clone(),
            writer: writer.to_owned(),
            expressions: written.expressions.clone(),
            userdata: written.userdata.clone(),
            means: written.expected.clone(),
            as_reader: written.read.clone(),
        })
        .collect();
    let written = parse_written(&read("written-by-nft.txt")).unwrap();
    for line in parse_native(&read(NATIVE)).unwrap() {
        let (expressions, userdata) = written.get(&key(&line)).unwrap().clone();
        cases.push(Case {
            line,
            writer: "nft".to_owned(),
            expressions,
            userdata,
            means: None,
            as_reader: None,
        });
    }
    cases
}

fn family(line: &Line) -> Family {
    if line.family == nft::Family::IP6 {
        Family::Ipv6
    } else {
        Family::Ipv4
    }
}

impl Case {
    fn transaction(&self) -> Transaction {
        let line = &self.line;
        let mut tx = Transaction::new();
        tx.add(&nft::Rule {
            expressions: Some(Expressions::of_bytes(&self.expressions)),
            userdata: (!self.userdata.is_empty()).then(|| self.userdata.as_slice().into()),
            ..nft::Rule::new(line.family, &*line.table, line.chain())
        })
        .unwrap();
        tx
    }

    /// The prediction.
    fn reading(&self, version: Version) -> Reading {
        let mut foreseen = compat::transaction(&self.transaction(), version);
        match foreseen.pop() {
            None => Reading::Correct,
            Some(foreseen) => {
                assert_eq!(foreseen.operation, 0);
                foreseen.reading
            }
        }
    }

    /// Parses iptables-save's line for it as a rule.
    fn parse(&self, line: &str) -> Option<Rule> {
        let chain = self.line.chain();
        // Two forms that never match.
        let line = line.replace(" -i INVAL/D", " ! -i +");
        let options = line.strip_prefix(&format!("-A {chain}"))?;
        Rule::parse(family(&self.line), options).ok()
    }
}

/// The names that `setup.sh` creates, in the order of their indexes.
struct Sets;

impl SetNames for Sets {
    type Error = ();

    fn index(&mut self, _: Family, _: &SetName) -> Result<u16, ()> {
        Err(())
    }

    fn name(&mut self, index: u16) -> Result<SetName, ()> {
        let names = ["corpus-net", "corpus-net6", "corpus-port", "corpus-port6"];
        names
            .get(usize::from(index))
            .and_then(SetName::new)
            .ok_or(())
    }
}

/// Returns how the prediction differs from the recorded reading.
fn differs(case: &Case, predicted: &Reading, seen: &Put) -> Option<String> {
    let wrong = Some(format!(
        "{} {} by {}: {seen}\n    predicted: {predicted:?}",
        case.line.number, case.line.rule, case.writer
    ));
    let ok = match (predicted, seen) {
        (Reading::Hides(_), Put::Hidden) | (Reading::Fails(_), Put::Failed(3)) => true,
        (Reading::Correct, Put::Line(line)) => {
            let read = case.parse(line);
            let means = case.means.as_ref().map(|means| case.parse(means));
            match (read, means) {
                (Some(read), Some(Some(means))) => read.means_the_same(&means),
                // Rules of `nft` are compared with the kernel's behavior elsewhere.
                (Some(_), None) => true,
                _ => false,
            }
        }
        (Reading::Other(misreading), Put::Line(line)) => {
            let mut predicted = misreading.read_as.clone();
            predicted.name_sets(&mut Sets).unwrap();
            case.parse(line)
                .is_some_and(|read| read.means_the_same(&predicted))
        }
        _ => false,
    };
    if ok { None } else { wrong }
}

/// Every rule of the corpus in every writer's encoding, and `nft`'s rules, as every recorded version reads
/// them.
#[test]
fn predictions_match_recorded_output() {
    let cases = cases();
    for version in RECORDED {
        let mut wrong = Vec::new();
        let mut used = 0;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let recorded = readings(version);
        for case in &cases {
            let place = (key(&case.line), case.writer.clone());
            let seen = match recorded.get(&place) {
                Some(seen) => {
                    used += 1;
                    seen.clone()
                }
                None => Put::Line(case.as_reader.clone().unwrap()),
            };
            let predicted = case.reading(version);
            let kind = match &predicted {
                Reading::Correct => "right",
                Reading::Other(_) => "other",
                Reading::Fails(_) => "fails",
                Reading::Hides(_) => "hides",
                _ => "new",
            };
            *counts.entry(kind).or_default() += 1;
            wrong.extend(differs(case, &predicted, &seen));
        }
        println!("{version}: {counts:?}");
        assert!(
            wrong.is_empty(),
            "{version}: {} of {}:\n{}",
            wrong.len(),
            cases.len(),
            wrong.join("\n")
        );
        // Every record belongs to an existing case.
        assert_eq!(used, recorded.len(), "{version}");
    }
}

/// A transaction that adds the rule as a version writes it.
fn added(profile: Profile, of: Family, text: &str) -> Transaction {
    let rule = Rule::parse(of, text).unwrap();
    let mut encoded = nft::Rule::new(of.into(), "filter", "FORWARD");
    let encoder = Encoder {
        family: of,
        profile,
    };
    encoder
        .fill(&mut encoded, &rule, Default::default())
        .unwrap();
    let mut tx = Transaction::new();
    tx.add(&encoded).unwrap();
    tx
}

fn predicted(
    version: Version,
    profile: Profile,
    of: Family,
    text: &str,
) -> Option<(String, Effect)> {
    let mut foreseen = compat::transaction(&added(profile, of, text), version);
    match foreseen.pop()?.reading {
        Reading::Other(misreading) => Some((misreading.read_as.to_string(), misreading.effect)),
        other => panic!("{other:?}"),
    }
}

/// 1.8.8 is not available as a program: these are reported readings.
#[test]
fn predictions_for_1_8_8_match_reports() {
    let read = |of, text| predicted(Version::V1_8_8, Profile::V1_8_10, of, text);
    for (of, text, read_as) in [
        (
            Family::Ipv4,
            "-s 172.17.0.0/16 ! -o docker0 -j ACCEPT",
            "! -s 100.111.0.0/16 ! -o docker0 -j ACCEPT",
        ),
        (
            Family::Ipv4,
            "-d 172.30.0.41/32 ! -i cni0 -j ACCEPT",
            "! -d 99.110.105.48/32 ! -i cni0 -j ACCEPT",
        ),
        (
            Family::Ipv6,
            "-d fd01::1/128 -p tcp -j ACCEPT",
            "-d 600::/128 -p tcp -j ACCEPT",
        ),
    ] {
        let expected = Some((read_as.to_owned(), Effect::MatchesOthers));
        assert_eq!(read(of, text), expected, "{text}");
    }
    let (read_as, _) = read(
        Family::Ipv4,
        "-p tcp -m mark --mark 0x4000/0x4000 -j ACCEPT",
    )
    .unwrap();
    assert_eq!(read_as, "-m mark --mark 0x4000/0x4000 -j ACCEPT");
    // It reads the encodings of 1.8.7 and its own, and those of 1.8.10 if nothing follows an address.
    for profile in [Profile::V1_8_7, Profile::V1_8_8] {
        for text in [
            "-s 172.17.0.0/16 ! -o docker0 -j ACCEPT",
            "-i eth0 -d 10.0.0.0/8 -p tcp -m tcp --dport 22 -j ACCEPT",
            "-p tcp -m tcp --dport 1:5 -m mark --mark 0x1 -j ACCEPT",
        ] {
            assert_eq!(
                predicted(Version::V1_8_8, profile, Family::Ipv4, text),
                None,
                "{text}"
            );
        }
    }
    assert_eq!(read(Family::Ipv4, "-d 10.0.0.0/8 -j ACCEPT"), None);
}

/// The effects of a save and a restore.
#[test]
fn effects_are_predicted() {
    use Effect::{
        AcceptsEverything, AcceptsMore, DropsEverything, DropsMore, MatchesEverything, MatchesMore,
    };
    for (text, effect) in [
        ("-m mark --mark 0x8000/0x8000 -j DROP", DropsEverything),
        ("-m mark --mark 0x1 -j REJECT", DropsEverything),
        ("-m mark --mark 0x1 -j ACCEPT", AcceptsEverything),
        (
            "-m mark --mark 0x1 -m comment --comment x -j RETURN",
            MatchesEverything,
        ),
        ("-p tcp -m tcp --dport 22 -j ACCEPT", AcceptsMore),
        ("-p tcp -m tcp --syn -j DROP", DropsMore),
        ("-p udp -m udp --sport 53 -j USER", MatchesMore),
    ] {
        let predicted = predicted(Version::V1_8_7, Profile::V1_8_8, Family::Ipv4, text);
        assert_eq!(predicted.map(|(_, effect)| effect), Some(effect), "{text}");
    }
    // A rule that every version reads.
    for version in Version::ALL {
        let text = "-m mark --mark 0x8000/0x8000 -j DROP";
        assert_eq!(
            predicted(version, Profile::V1_8_7, Family::Ipv4, text),
            None
        );
    }
}

/// A table in the kernel: what is hidden, cut, and misread.
#[test]
fn tables_are_predicted() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("iptables-nft -A INPUT -m mark --mark 0x1 -j DROP");
    tools.run("iptables-nft -A INPUT -i lo -j ACCEPT");
    tools.run("iptables-nft -A FORWARD -i lo -j ACCEPT");
    let look = |version| {
        let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
        compat::table(&snapshot.table(nft::Family::IP, "filter").unwrap(), version)
    };
    let plain = look(Version::V1_8_7);
    assert_eq!(plain.visibility, compat::Visibility::Yes);
    let at: Vec<_> = plain
        .readings
        .iter()
        .map(|(at, _)| at.to_string())
        .collect();
    assert_eq!(at, ["rule 1 of chain INPUT"]);
    assert!(look(Version::V1_8_9).readings.is_empty());

    tools.run("nft add rule ip filter FORWARD ip dscp 5 drop");
    let truncated = look(Version::V1_8_9);
    assert!(
        matches!(&truncated.visibility, compat::Visibility::Truncated { at, .. } if at.to_string() == "rule 2 of chain FORWARD"),
        "{truncated:?}"
    );
    assert_eq!(look(Version::V1_8_7).visibility, compat::Visibility::Yes);

    tools.run("nft add chain ip filter early { type filter hook input priority -50 ; }");
    let hidden = look(Version::V1_8_7);
    assert!(
        matches!(&hidden.visibility, compat::Visibility::Hidden { at, .. } if at.to_string() == "chain early"),
        "{hidden:?}"
    );
    tools.run("nft add rule ip filter INPUT ct state new counter drop");
    for version in Version::ALL {
        let hidden = look(version);
        assert!(
            matches!(hidden.visibility, compat::Visibility::Hidden { .. }),
            "{hidden:?}"
        );
    }
}

/// The encoding of a rule shows its writer; no other one is named.
#[test]
fn writers_are_recognized() {
    use compat::Writer;
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut iptables =
        crate::common::iptables::open(&sandbox, Backend::Nft).with_profile(Profile::V1_8_7);
    let text = "*filter\n-A INPUT -p tcp -m tcp --dport 1 -m mark --mark 1\nCOMMIT\n";
    iptables
        .restore(Family::Ipv4, text, &Default::default())
        .unwrap();
    tools.run("iptables-nft -A INPUT -i eth0 -p tcp --dport 1");
    tools.run("iptables-nft -A INPUT -j ACCEPT");
    tools.run("nft add rule ip filter INPUT ip saddr 10.0.0.1 accept");
    let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
    let chain = snapshot.chain(nft::Family::IP, "filter", "INPUT").unwrap();
    let writers: Vec<_> = chain.rules().map(|rule| compat::writer(&rule)).collect();
    assert_eq!(
        writers,
        [
            Writer::UpTo1_8_7,
            Writer::From1_8_8To1_8_9,
            Writer::AnyIptables,
            Writer::Other
        ]
    );
}
