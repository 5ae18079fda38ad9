//! Rules that are too long where others fit.

use chainwright::nft::Compat;
use chainwright::nft::expr::{Log, Match};

use super::*;

/// A rule that a listing shows with this many expressions: comments of iptables take 300 bytes each,
/// and little space in the kernel; a rule has at most 128 expressions.
fn commented(table: &'static str, chain: &'static str, count: usize) -> Rule<'static> {
    let mut rule = Rule::new(IP, table, chain);
    rule.compat = Some(Compat {
        protocol: Some(0),
        flags: Some(0),
        ..Compat::default()
    });
    let comment = [b'x'; 256];
    for _ in 0..count {
        rule.push(&Match::new("comment", 0, &comment[..]));
    }
    rule
}

#[test]
fn detects_a_rule_too_large_for_a_reply() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for chain in ["before", "large", "behind"] {
            tx.add(&Chain::new(IP, "t", chain)).unwrap();
            let accept = Immediate::accept();
            tx.add(&Rule::new(IP, "t", chain).with(&accept)).unwrap();
        }
    });
    assert!(nft.snapshot(Scope::all()).is_ok());
    committed(&mut nft, |tx| {
        tx.add(&commented("t", "large", 128)).unwrap();
        tx.add(&Rule::new(IP, "t", "large").with(&Immediate::drop()))
            .unwrap();
    });
    for scope in [Scope::all(), Scope::family(IP), Scope::table(IP, "t")] {
        let error = nft.snapshot(scope).unwrap_err();
        let text = report(&error);
        let SnapshotError::Incomplete { chain, snapshot } = &error else {
            panic!("{text}");
        };
        assert_eq!((&chain.chain[..], chain.expected), ("ip t large", 3));
        assert!(chain.found < 3, "{}", chain.found);
        assert!(
            text.contains("ip t large") && text.contains("32 KiB"),
            "{text}"
        );
        assert!(snapshot.chain(IP, "t", "before").is_some());
        assert_eq!(error.into_snapshot().unwrap().tables().len(), 1);
    }
    // Without the rule everything works again.
    committed(&mut nft, |tx| _ = tx.flush_chain(IP, "t", "large").unwrap());
    assert!(nft.snapshot(Scope::all()).is_ok());
}

/// A rule with log prefixes: longer than a page, only in listings.
fn logging(table: &'static str, chain: &'static str, count: usize) -> Rule<'static> {
    let mut rule = Rule::new(IP, table, chain);
    let prefix = "p".repeat(120);
    for _ in 0..count {
        rule.push(&Log {
            prefix: Some(prefix.as_str().into()),
            ..Log::default()
        });
    }
    rule
}

/// So many chains of eight rules that it is cheaper to request each chain's rules (see `cost` in
/// `read.rs`), over the socket whose replies are a page long.
#[test]
fn rules_longer_than_a_page_are_found_in_short_chains() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "t")).unwrap());
    const MANY: usize = 2600;
    committed_in_parts(&mut nft, MANY, |tx, number| {
        let name = format!("c{number}");
        tx.add(&Chain::new(IP, "t", &name)).unwrap();
        for _ in 0..8 {
            tx.add(&Rule::new(IP, "t", &name).with(&Counter::new(0, 0)))
                .unwrap();
        }
    });
    // Alone, first, last, in the middle, and two of them; from just over a page to nearly 32 KiB.
    let large = [
        ("alone", vec![100]),
        ("page", vec![28]),
        ("first", vec![60, 0, 0]),
        ("last", vec![0, 0, 100]),
        ("middle", vec![0, 120, 0]),
        ("two", vec![100, 0, 100]),
    ];
    committed_in_parts(&mut nft, large.len(), |tx, number| {
        let (chain, rules) = &large[number];
        tx.add(&Chain::new(IP, "t", *chain)).unwrap();
        for &count in rules {
            match count {
                0 => tx
                    .add(&Rule::new(IP, "t", *chain).with(&Counter::new(0, 0)))
                    .unwrap(),
                count => tx.add(&logging("t", chain, count)).unwrap(),
            };
        }
    });
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "longest")).unwrap();
        tx.add(&commented("t", "longest", 100)).unwrap();
    });
    // In the sandbox, where the second socket has the same namespace; and here, where it does not
    // exist.
    let inside = sandbox
        .run(|| Connection::open().unwrap().snapshot(Scope::all()))
        .unwrap();
    for snapshot in [inside, nft.snapshot(Scope::all())] {
        let snapshot = snapshot.unwrap_or_else(|error| panic!("{}", report(&error)));
        let table = snapshot.table(IP, "t").unwrap();
        assert_eq!(table.chains().len(), MANY + large.len() + 1);
        let rules: usize = table.chains().map(|chain| chain.rules().len()).sum();
        let expected: usize = large.iter().map(|(_, rules)| rules.len()).sum();
        assert_eq!(rules, MANY * 8 + expected + 1);
        for (name, rules) in &large {
            let chain = snapshot.chain(IP, "t", name).unwrap();
            let found: Vec<_> = chain
                .rules()
                .map(|rule| {
                    let expressions = rule.expressions().unwrap();
                    let logs = expressions.filter(|e| e.as_ref().unwrap().is::<Log<'_>>());
                    logs.count()
                })
                .collect();
            assert_eq!(found, *rules, "{name}");
        }
        let chain = snapshot.chain(IP, "t", "longest").unwrap();
        let longest = chain.rules().next().unwrap();
        assert_eq!(longest.expressions().unwrap().count(), 100);
    }
}
