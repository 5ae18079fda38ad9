//! The kernel as judge of traces: random rulesets, real packets through a node that has them, and the kernel's report
//! of their path, compared with the trace through the same rules.
//!
//! `TRACES=2000` uses that many rulesets, each with ten packets; `SEED` selects other ones.

mod iptables;
mod judge;
mod log;
mod packet;
mod rulesets;
mod sent;
mod world;

use std::collections::HashMap;

use crate::common::random::Random;
use chainwright_trace::{End, Options, Outcome, Packet, Rules, Trace};
use packet::{Route, Sent};
use world::{Destination, Texts, World};

/// Number of packets sent through each ruleset.
const PACKETS: usize = 10;

/// The loaded texts, and whether they depend on more than a packet's description.
struct Ruleset {
    texts: Texts,
    is_ipv4: bool,
    /// Whether it depends on chance, rates or the packet's payload.
    open: bool,
    /// Number of rules of each chain of the legacy tables: by family, table and chain.
    legacy_rules: HashMap<(bool, String, String), usize>,
}

impl Ruleset {
    fn random(random: &mut Random) -> Self {
        let is_ipv4 = random.below(3) > 0;
        let family = judge::family(is_ipv4);
        let watch = format!("flush ruleset\n{}", rulesets::WATCH);
        let mut texts = Texts::default();
        let mut open = false;
        let kind = random.below(6);
        texts.nft = match kind {
            0..=2 | 5 => {
                let (nft, chance) = rulesets::ruleset(random);
                open |= chance || nft.contains("tcp option") || nft.contains("fib");
                nft
            }
            _ => watch,
        };
        if matches!(kind, 3 | 5) {
            let (text, chance) = iptables::tables(random, is_ipv4);
            open |= chance || iptables::matches_undescribed_data(&text);
            texts.legacy.push((family, text));
        }
        if kind == 4 {
            let (text, chance) = iptables::tables(random, is_ipv4);
            open |= chance || iptables::matches_undescribed_data(&text);
            texts.iptables_nft.push((family, text));
        }
        let mut legacy_rules = HashMap::new();
        for (_, text) in &texts.legacy {
            let mut table = "";
            for line in text.lines() {
                if let Some(name) = line.strip_prefix('*') {
                    table = name;
                } else if let Some(rule) = line.strip_prefix("-A ") {
                    let chain = rule.split(' ').next().unwrap_or_default();
                    let key = (is_ipv4, table.to_owned(), chain.to_owned());
                    *legacy_rules.entry(key).or_default() += 1;
                }
            }
        }
        Self {
            texts,
            is_ipv4,
            open,
            legacy_rules,
        }
    }

    /// Whether the state after a packet can be compared: only IPv4's rules of nf_tables, because the kernel sends packets
    /// of IPv6 of its own.
    fn has_comparable_state(&self) -> bool {
        let text = &self.texts.nft;
        let has_others = text.contains("table ip6 t") || text.contains("table inet t");
        !self.open
            && !has_others
            && text.contains("table ip t")
            && self.texts.legacy.is_empty()
            && self.texts.iptables_nft.is_empty()
    }

    /// Whether a packet changes the result for the next one.
    fn fills_sets(&self) -> bool {
        self.texts.nft.contains("add @d") || self.texts.nft.contains("update @d")
    }
}

/// The counts of all packets.
#[derive(Debug, Default)]
struct Counts {
    rulesets: usize,
    refused: usize,
    packets: usize,
    steps: usize,
    arrived: usize,
    /// Packets that connection tracking considers invalid.
    invalid: usize,
    /// Traces with one end, of probability 1.
    certain: usize,
    /// Traces with several ends.
    branched: usize,
    /// Packets after which the fake kernel's state was compared.
    states: usize,
    /// The probabilities of the ends that were taken, for traces that only chance splits; the expected value of their
    /// sum, and its variance.
    taken: f64,
    expected: f64,
    variance: f64,
    failures: usize,
}

impl Counts {
    fn count(&mut self, trace: &Trace, taken: &End) {
        match &trace.ends[..] {
            [end] if end.probability == 1.0 && end.assumptions.is_empty() => self.certain += 1,
            _ => self.branched += 1,
        }
        if trace.ends.iter().any(|end| !end.assumptions.is_empty()) {
            return;
        }
        let sum: f64 = trace.ends.iter().map(|end| end.probability).sum();
        assert!(
            (sum - 1.0).abs() < 1e-6,
            "the probabilities add up to {sum}\n{trace}"
        );
        // A counter that takes turns is not random if its state is known.
        let in_turn =
            |words: &String| words.contains("incremental number") || words.contains("--mode nth");
        if trace.ends.iter().any(|end| end.chances.iter().any(in_turn)) {
            return;
        }
        // Ends that look the same cannot be distinguished by observation.
        let mut alike: HashMap<String, f64> = HashMap::new();
        for end in &trace.ends {
            *alike.entry(judge::describe(end)).or_default() += end.probability;
        }
        let squares: f64 = alike.values().map(|each| each.powi(2)).sum();
        let cubes: f64 = alike.values().map(|each| each.powi(3)).sum();
        self.taken += alike[&judge::describe(taken)];
        self.expected += squares;
        self.variance += cubes - squares * squares;
    }
}

struct Run {
    world: World,
    counts: Counts,
    /// Number of printed failures.
    observed: usize,
}

impl Run {
    /// One ruleset, and packets through it.
    fn ruleset(&mut self, random: &mut Random, first: u16) {
        let ruleset = Ruleset::random(random);
        self.counts.rulesets += 1;
        if let Err(error) = self.world.load(&ruleset.texts) {
            self.counts.refused += 1;
            println!("the kernel rejects the ruleset: {error}");
            return;
        }
        let mut snapshot = self.world.snapshot();
        let legacy = self.world.legacy();
        for number in 0..PACKETS as u16 {
            if ruleset.fills_sets() {
                snapshot = self.world.snapshot();
            }
            // The legacy tables existed first.
            let rules = Rules::new().with_legacy(&legacy).with_nft(&snapshot);
            let sent = Sent::random(random, ruleset.is_ipv4, first + number);
            let arrived = self.packet(&ruleset, &rules, &sent, judge::packet(&sent, None));
            let answers = matches!(sent.route, Route::Forward) && sent.protocol != 6;
            if let (true, Some(arrived)) = (answers && !ruleset.fills_sets(), arrived) {
                self.answer(&ruleset, &rules, &sent, &arrived);
            }
        }
    }

    /// The answer to a packet that reached the server, and the packet once more.
    fn answer(
        &mut self,
        ruleset: &Ruleset,
        rules: &Rules<'_>,
        sent: &Sent,
        arrived: &packet::Headers,
    ) {
        let Some(connection) = self.world.connection(sent) else {
            return; // it is not tracked
        };
        let answer = Sent::answer(arrived, sent.hops);
        let traced = judge::answered(judge::packet(&answer, Some(connection)), true);
        self.packet(ruleset, rules, &answer, traced);
        let Some(connection) = self.world.connection(sent) else {
            return;
        };
        let traced = judge::answered(judge::packet(sent, Some(connection)), false);
        self.packet(ruleset, rules, sent, traced);
    }

    /// Sends and checks one packet. Returns what arrived at the server.
    fn packet(
        &mut self,
        ruleset: &Ruleset,
        rules: &Rules<'_>,
        sent: &Sent,
        traced: Packet,
    ) -> Option<packet::Headers> {
        let mut options = Options::default();
        options.assume_static_sets = true;
        // Some of the random rulesets have more paths, only by chance, than are followed by default.
        options.branches = 1 << 16;
        let trace = rules.trace(&traced, &judge::node(), &options);
        // No part of the node answers the packet.
        let compares = ruleset.has_comparable_state()
            && !matches!(sent.route, Route::In | Route::Local)
            && matches!(
                &trace.ends[..],
                [End {
                    outcome: Outcome::Forwarded | Outcome::Sent | Outcome::Dropped,
                    ..
                }]
            );
        let before = compares.then(|| self.world.snapshot());
        let seen = self.world.send(sent);
        let observed = judge::observed(sent, &seen, |line| {
            let key = (line.is_ipv4, line.table.clone(), line.chain.clone());
            ruleset.legacy_rules.get(&key).copied().unwrap_or(0)
        });
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.invalid += usize::from(!sent.may_begin());
        counts.steps += seen.traced.len() + seen.logged.len();
        counts.arrived += seen.arrived.len();
        let certain = matches!(&trace.ends[..], [end] if end.probability == 1.0);
        if let Some(before) = before {
            counts.states += 1;
            sent::compare(&before, &traced, &self.world.snapshot());
        }
        let failed = match judge::end_of(&trace, sent, &observed) {
            Ok(_) if !ruleset.open && !certain => Some(format!(
                "nothing is left open, but the trace has other ends\n{sent:?}\n{trace}"
            )),
            Ok(end) => {
                counts.count(&trace, end);
                None
            }
            Err(text) => Some(text),
        };
        if let Some(text) = failed {
            counts.failures += 1;
            if self.observed > 0 {
                self.observed -= 1;
                println!("ruleset {}:\n{text}", counts.rulesets);
                println!("{}", ruleset.texts.nft);
                for (_, text) in ruleset
                    .texts
                    .iptables_nft
                    .iter()
                    .chain(&ruleset.texts.legacy)
                {
                    println!("{text}");
                }
            }
        }
        let arrived = seen.arrived.into_iter();
        let mut at_server = arrived.filter(|arrived| arrived.place == Destination::Server);
        at_server.next().map(|arrived| arrived.headers)
    }
}

#[test]
fn evaluation_matches_the_kernel() {
    let mut random = Random::new();
    let traces = crate::common::from_env("TRACES", 100);
    let mut run = Run {
        world: World::new(),
        counts: Counts::default(),
        observed: crate::common::from_env("OBSERVED", 3),
    };
    for number in 0..traces {
        // No packet has the source port of another one for the same rules.
        let first = (number % 2_000 * PACKETS) as u16;
        run.ruleset(&mut random, first);
    }
    let counts = run.counts;
    println!("{counts:#?}");
    assert_eq!((counts.failures, counts.refused), (0, 0));
    assert!(
        counts.arrived > counts.packets / 4,
        "too few packets arrive"
    );
    assert!(
        counts.certain > counts.packets / 2,
        "too few traces are certain"
    );
    assert!(counts.branched > 0, "no trace depends on chance");
    assert!(counts.states > 0, "no state was compared");
    assert!(
        counts.invalid > 0,
        "no packet is invalid to connection tracking"
    );
    // Rules that only chance selects are met as often as expected.
    let off = (counts.taken - counts.expected).abs();
    assert!(
        off <= 5.0 * counts.variance.sqrt() + 1e-6,
        "the probabilities differ from the frequencies by {off}"
    );
}
