//! The rules of a kube-proxy.

use super::*;

/// The ruleset of kube-proxy 1.36 in nftables mode for some 300 Services, as `nft` prints it.
const KUBE_PROXY: &str = include_str!("../../data/kube-proxy-1.36-nftables.nft");

/// Makes a rule of kube-proxy, as nft prints it, with the builder.
fn of_kube_proxy(
    mut words: &str,
    family: Family,
    chain: &str,
    tx: &mut Transaction,
) -> Rule<'static> {
    /// Removes these words.
    fn take<'w>(words: &mut &'w str, what: &str) -> Option<&'w str> {
        let rest = words.strip_prefix(what)?;
        *words = rest.trim_start();
        Some(rest)
    }
    /// Removes the next word.
    fn word<'w>(words: &mut &'w str) -> &'w str {
        let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
        *words = rest;
        word
    }
    /// Removes the text in braces and returns its parts.
    fn braces<'w>(words: &mut &'w str) -> Vec<&'w str> {
        let (inner, rest) = words.strip_prefix("{ ").unwrap().split_once(" }").unwrap();
        *words = rest.trim_start();
        inner.split(", ").collect()
    }
    fn number(word: &str) -> u32 {
        let hex = word
            .strip_prefix("0x")
            .map(|hex| u32::from_str_radix(hex, 16));
        hex.unwrap_or_else(|| word.parse()).unwrap()
    }
    fn prefix<A: std::str::FromStr<Err: std::fmt::Debug>>(word: &str, all: u8) -> (A, u8) {
        let (address, length) = word.split_once('/').unwrap_or((word, ""));
        let length = length.parse().unwrap_or(all);
        (address.parse().unwrap(), length)
    }
    /// A match of an address.
    macro_rules! address {
        ($build:ident, $words:ident, $method:ident, $Address:ty, $all:literal) => {{
            let not_so = take(&mut $words, "!= ").is_some();
            if let Some(set) = $words.strip_prefix('@') {
                let mut set = set;
                let name = word(&mut set);
                $words = set;
                $build.$method(in_set(name))
            } else if $words.starts_with('{') {
                let prefixes = braces(&mut $words).into_iter();
                let prefixes = prefixes.map(|word| prefix::<$Address>(word, $all));
                let set = AnonymousSet::of::<$Address>(family, "kube-proxy", 1, prefixes).unwrap();
                set.add_to(tx).unwrap();
                assert!(not_so);
                $build.$method(not(&set))
            } else {
                let is = prefix::<$Address>(word(&mut $words), $all);
                if not_so {
                    $build.$method(not(is))
                } else {
                    $build.$method(is)
                }
            }
        }};
    }
    const V4_SERVICE: &[Selector] = &[ip::DADDR, meta::L4PROTO, th::DPORT];
    const V6_SERVICE: &[Selector] = &[ip6::DADDR, meta::L4PROTO, th::DPORT];
    const V4_HAIRPIN: &[Selector] = &[ip::SADDR, ip::DADDR, meta::L4PROTO, th::DPORT];
    const V6_HAIRPIN: &[Selector] = &[ip6::SADDR, ip6::DADDR, meta::L4PROTO, th::DPORT];
    const SERVICE: &[Selector] = &[meta::L4PROTO, th::DPORT];

    let line = words;
    let (mut words_only, comment) = match words.split_once(" comment \"") {
        Some((words, comment)) => (words, comment.strip_suffix('"')),
        None => (words, None),
    };
    words = words_only.trim();
    words_only = words;
    let mut build = Build::new(family, "kube-proxy", chain.to_owned());
    if let Some(comment) = comment {
        build = build.comment(comment);
    }
    loop {
        if words.is_empty() {
            return build.finish().unwrap();
        }
        build = if take(&mut words, "ct state new").is_some() {
            build.ct_state(CtState::NEW)
        } else if take(&mut words, "ct status dnat").is_some() {
            build.ct_status(CtStatus::DNAT)
        } else if take(&mut words, "ip daddr . meta l4proto . th dport vmap @").is_some() {
            build.vmap(V4_SERVICE, word(&mut words))
        } else if take(&mut words, "ip6 daddr . meta l4proto . th dport vmap @").is_some() {
            build.vmap(V6_SERVICE, word(&mut words))
        } else if take(&mut words, "meta l4proto . th dport vmap @").is_some() {
            build.vmap(SERVICE, word(&mut words))
        } else if take(
            &mut words,
            "ip saddr . ip daddr . meta l4proto . th dport @",
        )
        .is_some()
        {
            build.lookup(V4_HAIRPIN, word(&mut words))
        } else if take(
            &mut words,
            "ip6 saddr . ip6 daddr . meta l4proto . th dport @",
        )
        .is_some()
        {
            build.lookup(V6_HAIRPIN, word(&mut words))
        } else if take(&mut words, "ip saddr ").is_some() {
            address!(build, words, ip_saddr, Ipv4Addr, 32)
        } else if take(&mut words, "ip daddr ").is_some() {
            address!(build, words, ip_daddr, Ipv4Addr, 32)
        } else if take(&mut words, "ip6 saddr ").is_some() {
            address!(build, words, ip6_saddr, Ipv6Addr, 128)
        } else if take(&mut words, "ip6 daddr ").is_some() {
            address!(build, words, ip6_daddr, Ipv6Addr, 128)
        } else if take(&mut words, "fib saddr type local").is_some() {
            build.fib_saddr_type(AddressType::LOCAL)
        } else if take(&mut words, "fib daddr type local").is_some() {
            build.fib_daddr_type(AddressType::LOCAL)
        } else if take(&mut words, "meta mark set meta mark | ").is_some() {
            build.meta_mark_set(or(number(word(&mut words))))
        } else if take(&mut words, "meta mark set meta mark ^ ").is_some() {
            build.meta_mark_set(xor(number(word(&mut words))))
        } else if take(&mut words, "meta mark & ").is_some() {
            let mask = number(word(&mut words));
            assert_eq!(word(&mut words), "!=");
            build.meta_mark(not(masked(number(word(&mut words)), mask)))
        } else if take(&mut words, "meta l4proto ").is_some() {
            build.meta_l4proto(word(&mut words).parse::<Protocol>().unwrap())
        } else if take(&mut words, "update @").is_some() {
            let set = word(&mut words);
            match braces(&mut words)[..] {
                ["ip saddr"] => build.update_element(set, ip::SADDR),
                ["ip6 saddr"] => build.update_element(set, ip6::SADDR),
                _ => panic!("{line}"),
            }
        } else if take(&mut words, "numgen random mod ").is_some() {
            let modulus = number(word(&mut words));
            assert_eq!(word(&mut words), "vmap");
            let verdicts = braces(&mut words).into_iter().map(|element| {
                let (_, chain) = element.split_once(" : goto ").unwrap();
                Verdict::Goto(chain.into())
            });
            let map = AnonymousSet::numbered_verdicts(family, "kube-proxy", 1, 0, verdicts);
            map.add_to(tx).unwrap();
            build.vmap(numgen_random(modulus), &map)
        } else if take(&mut words, "dnat ip to numgen random mod ").is_some() {
            let modulus = number(word(&mut words));
            assert_eq!(word(&mut words), "map");
            let to = braces(&mut words).into_iter().map(|element| {
                let (_, to) = element.split_once(" : ").unwrap();
                to.replace(" . ", ":").parse().unwrap()
            });
            let map = AnonymousSet::numbered_addresses_with_ports(family, "kube-proxy", 1, 0, to);
            map.add_to(tx).unwrap();
            let to = NatTo::map_with_port(Version::V4, numgen_random(modulus), &map);
            return build.dnat(to).unwrap();
        } else {
            let last = if take(&mut words, "dnat to ").is_some() {
                build.dnat(word(&mut words).parse::<std::net::SocketAddr>().unwrap())
            } else if take(&mut words, "masquerade fully-random").is_some() {
                build.masquerade(FULLY)
            } else if take(&mut words, "jump ").is_some() {
                build.jump(word(&mut words))
            } else if take(&mut words, "goto ").is_some() {
                build.goto(word(&mut words))
            } else {
                match word(&mut words) {
                    "drop" => build.drop(),
                    "reject" => build.reject(),
                    "return" => build.return_(),
                    other => panic!("{other} in {line}"),
                }
            };
            assert_eq!(words, "", "{words_only}");
            return last.unwrap();
        };
    }
}

/// The rules of a printed ruleset: family, chain, text.
fn printed_rules(ruleset: &str) -> Vec<(Family, &str, &str)> {
    let (mut rules, mut family, mut chain) = (Vec::new(), Family::UNSPEC, None);
    for line in ruleset.lines() {
        if let Some(table) = line.strip_prefix("table ") {
            family = table.split(' ').next().unwrap().parse().unwrap();
        } else if let Some(name) = line.strip_prefix("\tchain ") {
            chain = name.strip_suffix(" {");
        } else if line == "\t}" {
            chain = None;
        } else if let (Some(chain), Some(rule)) = (chain, line.strip_prefix("\t\t"))
            && !rule.starts_with("type ")
            && !rule.starts_with("comment ")
        {
            rules.push((family, chain, rule));
        }
    }
    rules
}

/// A rule's expressions without the numbers in the names of anonymous sets.
fn unnumbered(rule: &Rule<'_>) -> Vec<String> {
    let expressions = rule.expressions.iter().flat_map(|e| e.iter());
    let lines = expressions.map(|e| e.unwrap().decode().unwrap().to_string());
    lines
        .map(|line| match line.split_once("set __") {
            Some((before, set)) => format!("{before}set __{}", set.replace(char::is_numeric, "")),
            None => line,
        })
        .collect()
}

/// The chains that `nft` prints, in no particular order.
fn printed_chains(tools: &Tools<'_>) -> Vec<String> {
    let printed = tools.run("nft list ruleset");
    let mut chains: Vec<String> = Vec::new();
    let mut open = false;
    for line in printed.lines() {
        if line.starts_with("\tchain ") {
            open = true;
            chains.push(String::new());
        }
        if let (true, Some(chain)) = (open, chains.last_mut()) {
            *chain += line;
            open = line != "\t}";
        }
    }
    chains.sort();
    chains
}

#[test]
fn kube_proxys_rules_match_nft() {
    let (real, chainwright) = (sandbox(), sandbox());
    let (their_tools, our_tools) = (Tools::new(&real), Tools::new(&chainwright));
    their_tools.load_nft(KUBE_PROXY);
    our_tools.load_nft(KUBE_PROXY);
    let mut nft = connect(&chainwright);
    // Sets, maps and chains stay; the rules are recreated.
    let mut tx = Transaction::new();
    for family in [Family::IP, Family::IP6] {
        tx.flush_table(family, "kube-proxy").unwrap();
    }
    nft.commit(&tx).unwrap();
    let printed = printed_rules(KUBE_PROXY);
    assert!(printed.len() > 300, "{}", printed.len());
    for (family, chain, words) in &printed {
        tx.clear();
        let rule = of_kube_proxy(words, *family, chain, &mut tx);
        tx.add(&rule).unwrap();
        if let Err(error) = nft.commit(&tx) {
            panic!("{words}: {}\n{rule}", report(&error));
        }
    }
    let mut their_nft = connect(&real);
    let mut compared = 0;
    let mut chains: Vec<_> = printed
        .iter()
        .map(|(family, chain, _)| (*family, *chain))
        .collect();
    chains.dedup();
    for (family, chain) in chains {
        let real = rules_of(&mut their_nft, family, "kube-proxy", chain);
        let chainwright = rules_of(&mut nft, family, "kube-proxy", chain);
        assert_eq!(real.len(), chainwright.len(), "{chain}");
        for (real, chainwright) in real.iter().zip(&chainwright) {
            assert_eq!(unnumbered(real), unnumbered(chainwright), "{chain}");
            assert_eq!(bytes(real).1, bytes(chainwright).1, "{chain}");
            compared += 1;
        }
    }
    assert_eq!(compared, printed.len());
    assert_eq!(printed_chains(&our_tools), printed_chains(&their_tools));
}
