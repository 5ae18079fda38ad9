//! Listed rules are written back unchanged.

use chainwright::nft::expr::Decoded;
use chainwright::nft::{Compat, RuleRef};

use super::*;
use crate::common::save;

/// Whether a rule uses an anonymous set.
fn has_a_set_of_its_own(rule: &RuleRef<'_>) -> bool {
    rule.expressions().into_iter().flatten().any(|expression| {
        matches!(expression.unwrap().decode().unwrap(),
            Decoded::Lookup(lookup) if lookup.set.as_ref().unwrap().starts_with(b"__"))
    })
}

/// Writes every rule of a ruleset to a new chain of its table, and lists it there. Returns the
/// number of rules, and the names of their expressions.
#[track_caller]
fn written_back(sandbox: &Sandbox) -> (usize, HashSet<String>) {
    let mut nft = connect(sandbox);
    let expressions = |rule: &RuleRef<'_>| {
        let bytes = rule.attributes().find(NFTA_RULE_EXPRESSIONS);
        bytes.unwrap_or_default().to_vec()
    };
    let mut names = HashSet::new();
    // For each table: the rules to write, and their expressions' bytes.
    type Expected = (Rule<'static>, Vec<u8>);
    let mut listed: Vec<((Family, String), Vec<Expected>)> = Vec::new();
    let listing = nft.rules(Scope::all()).unwrap();
    listing
        .for_each(|rule| {
            if has_a_set_of_its_own(&rule) {
                return;
            }
            for expression in rule.expressions().unwrap() {
                names.insert(expression.unwrap().name.to_string());
            }
            let copy = Rule {
                chain: Some("written-back".into()),
                handle: None,
                position: None,
                compat: Compat::of(&rule),
                ..rule.to_builder()
            };
            let table = (rule.family(), rule.table().to_string());
            if listed.last().is_none_or(|(last, _)| *last != table) {
                listed.push((table, Vec::new()));
            }
            let (_, rules) = listed.last_mut().unwrap();
            rules.push((copy.into_owned(), expressions(&rule)));
        })
        .unwrap();

    let mut written = 0;
    for ((family, table), rules) in &listed {
        let mut tx = Transaction::new();
        tx.create(&Chain::new(*family, table, "written-back"))
            .unwrap();
        for (rule, _) in rules {
            tx.add(rule).unwrap();
            // In pieces that fit into the send buffer of a user without privileges.
            if tx.byte_length() > 150_000 {
                commit(&mut nft, &tx);
                tx.clear();
            }
        }
        commit(&mut nft, &tx);
        let mut originals = rules.iter();
        let filter = RuleFilter::chain(*family, table, "written-back");
        let listing = nft.rules(filter).unwrap();
        listing
            .for_each(|rule| {
                let (original, bytes) = originals.next().unwrap();
                assert!(expressions(&rule) == *bytes, "{original:?}\n{rule:?}");
                assert_eq!(rule.userdata(), original.userdata.as_deref());
                written += 1;
            })
            .unwrap();
        assert_eq!(originals.len(), 0);
    }
    (written, names)
}

#[test]
fn rules_that_iptables_wrote_are_written_back_byte_for_byte() {
    let sandbox = sandbox();
    let save = save::with_counters(save::KUBE_PROXY);
    Tools::new(&sandbox).load_iptables_nft(&save);
    let rules = save.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(written_back(&sandbox).0, rules);
    // The tool reads the copies like the originals.
    let saved = Tools::new(&sandbox).save("iptables-nft-save -c");
    let saved: HashSet<_> = saved.lines().collect();
    for line in save.lines().filter(|line| line.starts_with('[')) {
        let (counters, rest) = line.split_once(" -A ").unwrap();
        let (_chain, options) = rest.split_once(' ').unwrap();
        let copy = format!("{counters} -A written-back {options}");
        assert!(saved.contains(&*copy), "{copy}");
    }
}

#[test]
fn rules_with_many_kinds_of_expressions_are_written_back_byte_for_byte() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        r#"
table inet t {
	set seen {
		type ipv4_addr
		size 65535
		flags dynamic,timeout
	}
	set named {
		type inet_service
		flags interval
		elements = { 1-100 }
	}
	chain other {
	}
	chain c {
		fib daddr type local counter packets 4 bytes 400 jump other
		fib saddr . iif oif missing drop
		meta mark set numgen random mod 16 offset 3
		update @seen { ip saddr timeout 5m counter packets 1 bytes 2 }
		add @seen { ip saddr limit rate 3/minute }
		meta mark set jhash ip saddr . ip daddr mod 16 seed 0xdeadbeef
		tcp option maxseg size 100-200 counter
		tcp dport != 2000-3000 accept
		tcp dport @named log prefix "named " limit rate over 1 mbytes/second drop comment "why"
		ip6 nexthdr udp ct state new quota over 25 mbytes reject with icmpv6 no-route
		ct mark set meta mark or 0x10
		meta nftrace set 1
		notrack
		rt classid 3
		socket transparent 1 accept
		meta time > "2020-01-01" meta day "Monday" continue
	}
}
"#,
    );
    let (rules, names) = written_back(&sandbox);
    assert_eq!(rules, 16);
    for name in [
        "fib", "numgen", "dynset", "hash", "exthdr", "range", "quota",
    ] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
}
