//! Compares lookups and filters with complete listings.

use super::*;
use chainwright::nft::RuleFilter;

#[test]
fn lookups_match_listings() {
    let (sandbox, _) = kube_proxy();
    let mut nft = connect(&sandbox);

    let tables = collect!(nft, tables, Scope::all());
    for table in &tables {
        let name = table.name.as_ref().unwrap();
        let found = nft.table(table.family, name).unwrap().unwrap();
        assert_eq!(&found.to_builder(), table);
    }
    assert!(nft.table(Family::IP6, "nat").unwrap().is_none());
    assert!(nft.table(Family::IP, "na").unwrap().is_none());

    let chains = collect!(nft, chains, Scope::all());
    assert!(chains.len() > 1000);
    for chain in &chains {
        let (table, name) = (chain.table.as_ref().unwrap(), chain.name.as_ref().unwrap());
        let found = nft.chain(chain.family, table, name).unwrap().unwrap();
        assert_eq!(&found.to_builder(), chain);
        assert_eq!(found.is_base(), chain.hook.is_some());
    }
    let mut exists = |family, table, name| nft.chain_exists(family, table, name).unwrap();
    assert!(exists(Family::IP, "nat", "KUBE-SERVICES"));
    assert!(exists(Family::IP, "mangle", "KUBE-PROXY-CANARY"));
    assert!(!exists(Family::IP, "mangle", "KUBE-SERVICES"));
    assert!(!exists(Family::IP, "nat", "KUBE-SERVICE"));
    assert!(!exists(Family::IP, "nat", ""));
    assert!(!exists(Family::IP, "nix", "KUBE-SERVICES"));
    assert!(!exists(Family::IP6, "nat", "KUBE-SERVICES"));
    let long = "x".repeat(300);
    assert!(nft.chain(Family::IP, "nat", &long).is_err());

    let rules = collect!(nft, rules, Scope::all());
    assert!(rules.len() > 3000);
    for rule in &rules {
        let (table, chain) = (rule.table.as_ref().unwrap(), rule.chain.as_ref().unwrap());
        let handle = rule.handle.unwrap();
        let found = nft.rule(rule.family, table, chain, handle);
        let found = found.unwrap().unwrap();
        // Only a listing contains the preceding rule.
        assert_eq!(found.position(), None);
        assert_eq!(&found.to_builder(), rule);
    }
    let services = RuleFilter::chain(Family::IP, "nat", "KUBE-SERVICES");
    let handle = collect!(nft, rules, services)[0].handle.unwrap();
    let mut found = |chain, handle| {
        let rule = nft.rule(Family::IP, "nat", chain, handle).unwrap();
        rule.is_some()
    };
    assert!(found("KUBE-SERVICES", handle));
    assert!(!found("KUBE-POSTROUTING", handle));
    assert!(!found("KUBE-SERVICES", u64::MAX));
    assert!(!found("KUBE-NIX", handle));
}

#[test]
fn filters_show_the_matching_part() {
    let (sandbox, _) = kube_proxy();
    let tools = Tools::new(&sandbox);
    tools.run("ip6tables-nft -t nat -N KUBE-SERVICES");
    tools.run("ip6tables-nft -t nat -A KUBE-SERVICES -j RETURN");
    tools.run("ip6tables-nft -t nat -A OUTPUT -j KUBE-SERVICES");
    tools.run("ip6tables-nft -t filter -N KUBE-FORWARD");
    tools.load_nft(EXPRESSIONS);
    let mut nft = connect(&sandbox);

    let tables = collect!(nft, tables, Scope::all());
    let chains = collect!(nft, chains, Scope::all());
    let rules = collect!(nft, rules, Scope::all());
    assert_eq!((tables.len(), chains.len() > 1000), (6, true));

    let families = [
        Family::UNSPEC,
        Family::IP,
        Family::IP6,
        Family::INET,
        Family::ARP,
    ];
    let mut counts = [0; 3];
    for family in families {
        for table in [None, Some("nat"), Some("expressions"), Some("nix")] {
            let scope = Scope {
                family,
                table: table.map(Into::into),
            };
            let of = |other: Family| family == Family::UNSPEC || family == other;
            let named = |wanted: Option<&str>, name: &Option<chainwright::nft::Name<'_>>| {
                wanted.is_none_or(|wanted| *name.as_ref().unwrap() == wanted)
            };
            let wanted: Vec<_> = tables
                .iter()
                .filter(|t| of(t.family) && named(table, &t.name))
                .cloned()
                .collect();
            let listed = collect!(nft, tables, scope.clone());
            assert_eq!(listed, wanted, "tables of {scope:?}");
            counts[0] += wanted.len();
            let wanted: Vec<_> = chains
                .iter()
                .filter(|c| of(c.family) && named(table, &c.table))
                .cloned()
                .collect();
            let listed = collect!(nft, chains, scope.clone());
            assert_eq!(listed, wanted, "chains of {scope:?}");
            counts[1] += wanted.len();
            for chain in [None, Some("KUBE-SERVICES"), Some("OUTPUT"), Some("nix")] {
                let filter = match (table, chain) {
                    (Some(table), Some(chain)) => RuleFilter::chain(family, table, chain),
                    (None, Some(_)) => continue, // cannot be requested
                    (_, None) => scope.clone().into(),
                };
                let wanted: Vec<_> = rules
                    .iter()
                    .filter(|r| of(r.family) && named(table, &r.table) && named(chain, &r.chain))
                    .cloned()
                    .collect();
                let listed = collect!(nft, rules, filter.clone());
                assert_eq!(listed.len(), wanted.len(), "rules of {filter:?}");
                assert!(listed == wanted, "rules of {filter:?}");
                counts[2] += wanted.len();
            }
        }
    }
    assert!(counts.iter().all(|&counts| counts > 0));
}
