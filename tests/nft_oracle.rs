//! Rulesets that real clients wrote, loaded by the real tools, listed here and by the tools.

mod common;

use std::collections::HashMap;

use chainwright::netlink::Attributes;
use chainwright::netns::Sandbox;
use chainwright::nft::expr::{
    Counter, Data, Decoded, ExpressionRef, Expressions, Immediate, Register, Verdict,
};
use chainwright::nft::{Chain, Connection, Family, Filter, Policy, RuleRef, hook_name};
use common::save::{self, SavedChain, Target};
use common::tools::Tools;
use common::{connect, kernel, sandbox};
use serde_json::Value;

/// What kube-proxy 1.36 left for the same Services in its nftables mode, as `nft` prints it.
const KUBE_PROXY_NFTABLES: &str = include_str!("data/kube-proxy-1.36-nftables.nft");

/// Every kind of expression that the library has a type for, and some that it has none for.
const EXPRESSIONS: &str = r#"
table inet expressions {
	set addresses {
		type ipv4_addr
		elements = { 10.0.0.1 }
	}

	map verdicts {
		type inet_service : verdict
		elements = { 80 : accept }
	}

	map marks {
		type inet_service : mark
		elements = { 80 : 0x1 }
	}

	set seen {
		type ipv4_addr
		size 65535
		flags dynamic,timeout
	}

	chain natting {
		type nat hook prerouting priority dstnat; policy accept;
		tcp dport 80 redirect to :8080
		udp dport 53 redirect
		ip daddr 10.0.0.1 tcp dport 81 dnat ip to 10.1.0.1-10.1.0.9:82-89 random,persistent
		ip6 daddr fd00::1 dnat ip6 to fd00::2
	}

	chain sourcing {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "eth*" masquerade fully-random
		meta l4proto tcp masquerade to :1024-2048
		ip saddr 10.0.0.0/8 snat ip to 192.0.2.1
	}

	chain filtering {
		type filter hook forward priority filter + 5; policy drop;
		ct state established,related counter packets 7 bytes 700 accept
		ct original ip saddr 10.0.0.1 ct mark set 0x7
		meta mark set meta mark & 0xffff00ff ^ 0x00001200
		meta mark set meta mark << 4
		ip daddr @addresses drop
		ip daddr != @addresses return
		tcp dport vmap @verdicts
		meta mark set tcp dport map @marks
		ip saddr 10.0.0.0/9 tcp dport >= 1024 tcp dport != 2000-3000
		limit rate 10/second burst 20 packets
		limit rate over 1 mbytes/minute
		log prefix "told: " level debug flags tcp sequence,options
		log group 5 snaplen 128 queue-threshold 10
		reject with icmp host-unreachable
		meta l4proto tcp reject with tcp reset
		reject with icmpx admin-prohibited
		ip dscp set af21
		tcp option maxseg size set 1300
		fib daddr type local jump other
		numgen inc mod 3 vmap { 0 : jump other, 1 : goto other, 2 : drop }
		update @seen { ip saddr timeout 5m limit rate 3/minute }
		meta mark set jhash ip saddr mod 16
		accept comment "with user data"
		iifname "eth0" ip6 saddr fd00::/64 continue
	}

	chain other {
		counter
	}
}
"#;

/// A family and two names.
type Key = (Family, String, String);

/// All objects that a filter admits, as builders with nothing borrowed.
macro_rules! collect {
    ($connection:expr, $list:ident, $filter:expr) => {{
        let mut all = Vec::new();
        let listing = $connection.$list($filter).unwrap();
        listing
            .for_each(|object| all.push(object.to_builder().into_owned()))
            .unwrap();
        all
    }};
}

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).unwrap()
}

/// A rule as far as it can be compared with what the tools print.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    handle: u64,
    counters: Option<save::Counters>,
    target: Target,
    /// Names of `match` expressions.
    matches: Vec<String>,
    /// Names of the maps that give a verdict.
    verdict_maps: Vec<String>,
    comment: Option<String>,
}

impl Listed {
    fn of(rule: &RuleRef<'_>) -> Self {
        let mut listed = Self {
            handle: rule.handle(),
            counters: None,
            target: Target::None,
            matches: Vec::new(),
            verdict_maps: Vec::new(),
            comment: rule.userdata().map(comment),
        };
        for expression in rule.expressions().unwrap() {
            match expression.unwrap().decode().unwrap() {
                Decoded::Counter(Counter { packets, bytes, .. }) => {
                    assert_eq!(listed.counters, None);
                    listed.counters = Some((packets.unwrap(), bytes.unwrap()));
                }
                Decoded::Match(found) => listed.matches.push(text(&found.name.unwrap())),
                Decoded::Lookup(lookup) if lookup.dreg == Some(Register::VERDICT) => {
                    listed.verdict_maps.push(text(&lookup.set.unwrap()));
                }
                Decoded::Target(found) => {
                    assert_eq!(listed.target, Target::None);
                    listed.target = Target::Extension(text(&found.name.unwrap()));
                }
                Decoded::Immediate(Immediate {
                    dreg: Some(Register::VERDICT),
                    data: Some(Data::Verdict(verdict)),
                    ..
                }) => {
                    assert_eq!(listed.target, Target::None);
                    listed.target = target(&verdict);
                }
                _ => {}
            }
        }
        listed
    }
}

fn target(verdict: &Verdict<'_>) -> Target {
    match verdict {
        Verdict::Accept => Target::Verdict("ACCEPT".into()),
        Verdict::Drop => Target::Verdict("DROP".into()),
        Verdict::Return => Target::Verdict("RETURN".into()),
        Verdict::Continue => Target::Verdict("CONTINUE".into()),
        Verdict::Jump(chain) => Target::Jump(text(chain)),
        Verdict::Goto(chain) => Target::Goto(text(chain)),
        other => panic!("{other:?} is in none of the rulesets"),
    }
}

/// The comment in a rule's user data: nft puts it there as a record of type 0, with a NUL.
fn comment(userdata: &[u8]) -> String {
    let [0, length, comment @ .., 0] = userdata else {
        panic!("{userdata:?} is not one comment");
    };
    assert_eq!(usize::from(*length), comment.len() + 1);
    text(comment)
}

/// The rules of all chains, in order.
fn listed_rules(nft: &mut Connection) -> HashMap<Key, Vec<Listed>> {
    let mut rules: HashMap<Key, Vec<Listed>> = HashMap::new();
    let listing = nft.rules(Filter::all()).unwrap();
    listing
        .for_each(|rule| {
            let key = (rule.family(), text(rule.table()), text(rule.chain()));
            rules.entry(key).or_default().push(Listed::of(&rule));
        })
        .unwrap();
    rules
}

/// kube-proxy's ruleset with counters, loaded by the real iptables.
fn kube_proxy() -> (Sandbox, String) {
    let sandbox = sandbox();
    let save = save::with_counters(save::KUBE_PROXY);
    let tools = Tools::new(&sandbox);
    tools.load_iptables_nft(&save);
    // What comes out is what was put in: the oracle itself has all of it.
    let saved = tools.save("iptables-nft-save -c");
    assert_eq!(saved, save);
    (sandbox, saved)
}

/// Compares what is listed of a family with what `iptables-nft-save -c` prints, and counts the chains
/// and rules that both have and the chains that are only printed: the tool prints every built-in
/// chain of a table, also one that is not there.
#[track_caller]
fn same_as_saved(nft: &mut Connection, family: Family, saved: &str) -> [usize; 3] {
    let mut rules = listed_rules(nft);
    rules.retain(|key, _| key.0 == family);
    let chains = collect!(nft, chains, Filter::family(family));
    let mut chains: HashMap<(String, String), Chain<'_>> = chains
        .into_iter()
        .map(|c| {
            let (table, name) = (c.table.as_ref().unwrap(), c.name.as_ref().unwrap());
            ((text(table), text(name)), c)
        })
        .collect();
    let mut tables: Vec<_> = collect!(nft, tables, Filter::family(family))
        .iter()
        .map(|table| text(table.name.as_ref().unwrap()))
        .collect();
    let [mut both, mut both_rules, mut printed] = [0; 3];
    for table in &save::parse(saved) {
        let index = tables.iter().position(|name| *name == table.name);
        tables.remove(index.unwrap());
        for chain in &table.chains {
            let Some(found) = chains.remove(&(table.name.clone(), chain.name.clone())) else {
                let (policy, counters) = (chain.policy.as_deref(), chain.counters);
                assert_eq!((policy, counters), (Some("ACCEPT"), (0, 0)), "{chain:?}");
                assert!(chain.rules.is_empty(), "{chain:?}");
                printed += 1;
                continue;
            };
            same_chain(&found, chain);
            let key = (family, table.name.clone(), chain.name.clone());
            let found = rules.remove(&key).unwrap_or_default();
            assert_eq!(found.len(), chain.rules.len(), "{key:?}");
            for (found, saved) in found.iter().zip(&chain.rules) {
                assert_eq!(found.target, saved.target, "{}", saved.line);
                assert_eq!(found.counters, Some(saved.counters), "{}", saved.line);
                assert_eq!(found.matches, as_extensions(saved), "{}", saved.line);
                both_rules += 1;
            }
            both += 1;
        }
    }
    assert!(tables.is_empty(), "not saved: {tables:?}");
    assert!(chains.is_empty(), "not saved: {chains:?}");
    assert!(rules.is_empty(), "not saved: {rules:?}");
    [both, both_rules, printed]
}

/// Chains, policies, counters, targets and matches of what kube-proxy wrote through iptables-nft.
#[test]
fn kube_proxys_chains_are_those_that_iptables_nft_save_prints() {
    let (sandbox, saved) = kube_proxy();
    let mut nft = connect(&sandbox);
    let compared = same_as_saved(&mut nft, Family::IP, &saved);
    let count = |line: &str| {
        let prefixed = |l: &&str| l.starts_with(line);
        save::KUBE_PROXY.lines().filter(prefixed).count()
    };
    assert_eq!(compared, [count(":"), count("-A "), 0]);
    assert!(count(":") > 1000 && count("-A ") > 3000);
}

#[test]
fn policies_gotos_and_built_in_chains_that_are_not_there() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    // Only a chain: mangle has no built-in one yet.
    tools.run("iptables-nft -t mangle -N KUBE-IPTABLES-HINT");
    tools.run("ip6tables-nft -t filter -N ours");
    tools.run("ip6tables-nft -t filter -P FORWARD DROP");
    tools.run("ip6tables-nft -t filter -A ours -p udp -j RETURN");
    tools.run("ip6tables-nft -t filter -A FORWARD -s fd00::/8 -g ours -c 5 500");
    tools.run("ip6tables-nft -t filter -I FORWARD -m comment --comment \"only counts\"");
    let mut nft = connect(&sandbox);
    let saved = tools.save("iptables-nft-save -c");
    assert_eq!(same_as_saved(&mut nft, Family::IP, &saved), [1, 0, 5]);
    let saved = tools.save("ip6tables-nft-save -c");
    assert_eq!(same_as_saved(&mut nft, Family::IP6, &saved), [2, 3, 2]);
    let forward = nft.chain(Family::IP6, "filter", "FORWARD").unwrap();
    assert_eq!(forward.unwrap().policy(), Some(Policy::DROP));
}

#[track_caller]
fn same_chain(found: &Chain<'_>, saved: &SavedChain) {
    let policy = found.policy.map(|policy| match policy {
        Policy::ACCEPT => "ACCEPT",
        Policy::DROP => "DROP",
        other => panic!("policy {other}"),
    });
    assert_eq!(policy, saved.policy.as_deref(), "{}", saved.name);
    assert_eq!(found.hook.is_some(), policy.is_some(), "{}", saved.name);
    let counters = found
        .counters
        .as_ref()
        .map(|c| (c.packets.unwrap(), c.bytes.unwrap()));
    assert_eq!(counters.unwrap_or_default(), saved.counters);
}

/// The matches of a rule that iptables 1.8.9 writes as extensions; it writes marks and ports as
/// native expressions.
fn as_extensions(rule: &save::SavedRule) -> Vec<String> {
    let ports = rule.line.contains("port ");
    let native = |name: &str| name == "mark" || (ports && ["tcp", "udp"].contains(&name));
    let names = rule.matches.iter().filter(|name| !native(name));
    names.cloned().collect()
}

/// The same ruleset in nft's terms: handles, hooks, priorities, order of the rules.
#[test]
fn kube_proxys_chains_are_those_that_nft_prints() {
    let (sandbox, _) = kube_proxy();
    let objects = same_as_nft(&sandbox);
    assert!(objects.chains > 1000 && objects.rules > 3000, "{objects:?}");
    assert!(objects.jumps > 1500, "{objects:?}");
    assert!(objects.counters > 3000, "{objects:?}");
}

#[test]
fn kube_proxys_nftables_ruleset_is_the_one_that_nft_prints() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(KUBE_PROXY_NFTABLES);
    let objects = same_as_nft(&sandbox);
    assert!(objects.chains > 300 && objects.rules > 300, "{objects:?}");
    assert!(objects.verdict_maps > 5 && objects.jumps > 9, "{objects:?}");
    assert!(objects.comments > 2, "{objects:?}");
    // Loading in pieces made the ruleset that the file describes: its chains and their rules.
    let loaded = tools.run("nft list ruleset");
    assert_eq!(chains_of(&loaded), chains_of(KUBE_PROXY_NFTABLES));
}

/// The chains in the output of `nft list ruleset`, in no particular order.
fn chains_of(ruleset: &str) -> Vec<String> {
    let mut chains = Vec::new();
    let mut open = None::<String>;
    for line in ruleset.lines() {
        if line.starts_with("\tchain ") {
            open = Some(String::new());
        }
        if let Some(chain) = &mut open {
            *chain += line;
            if line == "\t}" {
                chains.extend(open.take());
            }
        }
    }
    chains.sort();
    chains
}

#[test]
fn a_rule_of_each_kind_is_the_one_that_nft_prints() {
    let sandbox = sandbox();
    let (mut text, mut rules) = (EXPRESSIONS.to_owned(), 32);
    if !kernel::has(&mut connect(&sandbox), "writing into packets") {
        text = text.replace("\t\tip dscp set af21\n", "");
        rules -= 1;
    }
    Tools::new(&sandbox).load_nft(&text);
    let objects = same_as_nft(&sandbox);
    assert_eq!((objects.chains, objects.rules), (4, rules), "{objects:?}");
    assert_eq!((objects.comments, objects.counters), (1, 2), "{objects:?}");
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    chains: usize,
    rules: usize,
    jumps: usize,
    counters: usize,
    verdict_maps: usize,
    comments: usize,
}

/// Compares our listing of a sandbox's whole ruleset with that of `nft -j list ruleset`.
#[track_caller]
fn same_as_nft(sandbox: &Sandbox) -> Compared {
    let mut nft = connect(sandbox);
    let mut compared = Compared::default();
    let printed = Tools::new(sandbox).nft_json("list ruleset");
    let of = |kind| printed.iter().filter_map(move |object| object.get(kind));

    // Tables.
    let ours = collect!(nft, tables, Filter::all())
        .iter()
        .map(|t| {
            let references = t.references.unwrap();
            assert!(references > 0);
            (t.family.to_string(), t.name.clone(), t.handle)
        })
        .collect::<Vec<_>>();
    let theirs = of("table")
        .map(|t| {
            let name = string(t, "name").unwrap();
            (
                string(t, "family").unwrap(),
                Some(name.into()),
                number(t, "handle"),
            )
        })
        .collect::<Vec<_>>();
    assert_eq!(ours, theirs);

    // Chains, in the kernel's order.
    let chains = collect!(nft, chains, Filter::all());
    let theirs: Vec<_> = of("chain").collect();
    assert_eq!(chains.len(), theirs.len());
    for (ours, theirs) in chains.iter().zip(theirs) {
        compared.chains += 1;
        assert_eq!(ours.family.to_string(), theirs["family"]);
        assert_eq!(ours.table.as_ref().unwrap().to_string(), theirs["table"]);
        assert_eq!(ours.name.as_ref().unwrap().to_string(), theirs["name"]);
        assert_eq!(ours.handle, number(theirs, "handle"));
        let hook = ours.hook.as_ref();
        let hook_number = hook.map(|hook| hook.number.unwrap());
        let name = hook_number.map(|number| hook_name(ours.family, number).unwrap());
        assert_eq!(name.map(String::from), string(theirs, "hook"), "{ours:?}");
        let priority = hook.map(|hook| i64::from(hook.priority.unwrap()));
        assert_eq!(priority, theirs.get("prio").and_then(Value::as_i64));
        let chain_type = ours.chain_type.as_ref().map(ToString::to_string);
        assert_eq!(chain_type, string(theirs, "type"));
        let policy = ours.policy.map(|policy| policy.to_string());
        assert_eq!(policy, string(theirs, "policy"), "{ours:?}");
    }

    // Rules, in the order in which they stand in their chains.
    let mut ours = listed_rules(&mut nft);
    for theirs in of("rule") {
        compared.rules += 1;
        let family = Family::from_name(&string(theirs, "family").unwrap()).unwrap();
        let name = |field| string(theirs, field).unwrap();
        let rules = ours.get_mut(&(family, name("table"), name("chain")));
        let Some(ours) = rules.filter(|rules| !rules.is_empty()) else {
            panic!("not listed: {theirs}");
        };
        let ours = ours.remove(0);
        let theirs = as_listed(theirs, &ours);
        compared.jumps += usize::from(matches!(ours.target, Target::Jump(_) | Target::Goto(_)));
        compared.counters += usize::from(ours.counters.is_some());
        compared.verdict_maps += ours.verdict_maps.len();
        compared.comments += usize::from(ours.comment.is_some());
        assert_eq!(ours, theirs);
    }
    let left: Vec<_> = ours.values().flatten().collect();
    assert!(left.is_empty(), "not printed: {left:?}");
    compared
}

fn string(object: &Value, field: &str) -> Option<String> {
    let value = object.get(field)?;
    Some(value.as_str().expect("a string").to_owned())
}

fn number(object: &Value, field: &str) -> Option<u64> {
    object.get(field)?.as_u64()
}

/// A rule as nft prints it. Of xtables extensions nft 1.0.6 prints that there is one and no more, so
/// that these are taken from our own listing.
fn as_listed(printed: &Value, ours: &Listed) -> Listed {
    let mut listed = Listed {
        handle: number(printed, "handle").unwrap(),
        counters: None,
        target: Target::None,
        matches: ours.matches.clone(),
        verdict_maps: Vec::new(),
        comment: string(printed, "comment"),
    };
    for statement in printed["expr"].as_array().unwrap() {
        let (kind, value) = statement.as_object().unwrap().iter().next().unwrap();
        let chain = || string(value, "target").unwrap();
        match kind.as_str() {
            "counter" => {
                let of = |field| number(value, field).unwrap();
                listed.counters = Some((of("packets"), of("bytes")));
            }
            "accept" | "drop" | "return" | "continue" => {
                listed.target = Target::Verdict(kind.to_uppercase());
            }
            "jump" => listed.target = Target::Jump(chain()),
            "goto" => listed.target = Target::Goto(chain()),
            "vmap" => listed.verdict_maps.push(match &value["data"] {
                Value::String(name) => name.strip_prefix('@').unwrap().to_owned(),
                // An anonymous one is printed by what is in it.
                _ => ours.verdict_maps[listed.verdict_maps.len()].clone(),
            }),
            _ => {}
        }
    }
    if let Target::Extension(_) = ours.target {
        assert_eq!(listed.target, Target::None);
        listed.target = ours.target.clone();
    }
    listed
}

/// The attributes' types.
fn kinds_of(expression: &ExpressionRef<'_>) -> Vec<u16> {
    let attributes = Attributes::new(expression.attributes);
    let mut kinds: Vec<_> = attributes.map(|a| a.unwrap().kind).collect();
    kinds.sort_unstable();
    kinds
}

/// Every expression reads as its type, and what the type writes reads as the same and holds every
/// attribute that the kernel sent.
fn typed_forms_are_whole(sandbox: &Sandbox) -> HashMap<String, usize> {
    let mut kinds = HashMap::new();
    let mut nft = connect(sandbox);
    let listing = nft.rules(Filter::all()).unwrap();
    listing
        .for_each(|rule| {
            let mut list = Expressions::new();
            let mut raw = Expressions::new();
            let (mut decoded, mut kinds_sent) = (Vec::new(), Vec::new());
            for expression in rule.expressions().unwrap() {
                let expression = expression.unwrap();
                let typed = expression.decode().unwrap();
                let kind = match typed {
                    Decoded::Opaque(_) => format!("{}", expression.name),
                    _ => expression.name.to_string(),
                };
                *kinds.entry(kind).or_insert(0) += 1;
                list.push_decoded(&typed);
                raw.push_raw(&expression);
                decoded.push(typed);
                kinds_sent.push(kinds_of(&expression));
            }
            let kinds_written = list.iter().map(|e| kinds_of(&e.unwrap()));
            assert!(kinds_written.eq(kinds_sent), "{rule:?}");
            let again = list.iter().map(|e| e.unwrap().decode().unwrap());
            // An opaque expression is its bytes, so that these are compared too.
            assert!(again.eq(decoded), "{rule:?}");
            // What is appended raw is what came.
            assert_eq!(
                Some(raw.as_bytes()),
                rule.attributes().find(NFTA_RULE_EXPRESSIONS)
            );
        })
        .unwrap();
    kinds
}

/// `NFTA_RULE_EXPRESSIONS` of `linux/netfilter/nf_tables.h`.
const NFTA_RULE_EXPRESSIONS: u16 = 4;

#[test]
fn every_expression_of_the_rulesets_survives_its_typed_form() {
    let (sandbox, _) = kube_proxy();
    let kinds = typed_forms_are_whole(&sandbox);
    for kind in [
        "match",
        "target",
        "counter",
        "immediate",
        "cmp",
        "bitwise",
        "meta",
        "payload",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }

    let sandbox = common::sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(KUBE_PROXY_NFTABLES);
    tools.load_nft(EXPRESSIONS);
    let kinds = typed_forms_are_whole(&sandbox);
    for kind in [
        "bitwise",
        "cmp",
        "counter",
        "ct",
        "immediate",
        "limit",
        "log",
        "lookup",
        "masq",
        "meta",
        "nat",
        "payload",
        "redir",
        "reject",
        "fib",
        "numgen",
        "dynset",
        "exthdr",
        "hash",
        "range",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}

#[test]
fn look_ups_find_what_listings_show_and_nothing_else() {
    let (sandbox, _) = kube_proxy();
    let mut nft = connect(&sandbox);

    let tables = collect!(nft, tables, Filter::all());
    for table in &tables {
        let name = table.name.as_ref().unwrap();
        let found = nft.table(table.family, name).unwrap().unwrap();
        assert_eq!(&found.to_builder(), table);
    }
    assert!(nft.table(Family::IP6, "nat").unwrap().is_none());
    assert!(nft.table(Family::IP, "na").unwrap().is_none());

    let chains = collect!(nft, chains, Filter::all());
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

    let rules = collect!(nft, rules, Filter::all());
    assert!(rules.len() > 3000);
    for rule in &rules {
        let (table, chain) = (rule.table.as_ref().unwrap(), rule.chain.as_ref().unwrap());
        let handle = rule.handle.unwrap();
        let found = nft.rule(rule.family, table, chain, handle);
        let found = found.unwrap().unwrap();
        // Only a listing tells which rule stands before.
        assert_eq!(found.position(), None);
        assert_eq!(&found.to_builder(), rule);
    }
    let services = Filter::chain(Family::IP, "nat", "KUBE-SERVICES");
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
fn filters_show_what_they_leave_of_the_whole() {
    let (sandbox, _) = kube_proxy();
    let tools = Tools::new(&sandbox);
    tools.run("ip6tables-nft -t nat -N KUBE-SERVICES");
    tools.run("ip6tables-nft -t nat -A KUBE-SERVICES -j RETURN");
    tools.run("ip6tables-nft -t nat -A OUTPUT -j KUBE-SERVICES");
    tools.run("ip6tables-nft -t filter -N KUBE-FORWARD");
    tools.load_nft(EXPRESSIONS);
    let mut nft = connect(&sandbox);

    let tables = collect!(nft, tables, Filter::all());
    let chains = collect!(nft, chains, Filter::all());
    let rules = collect!(nft, rules, Filter::all());
    assert_eq!((tables.len(), chains.len() > 1000), (6, true));

    let families = [
        Family::UNSPEC,
        Family::IP,
        Family::IP6,
        Family::INET,
        Family::ARP,
    ];
    let mut shown = [0; 3];
    for family in families {
        for table in [None, Some("nat"), Some("expressions"), Some("nix")] {
            for chain in [None, Some("KUBE-SERVICES"), Some("OUTPUT"), Some("nix")] {
                let filter = Filter {
                    family,
                    table: table.map(Into::into),
                    chain: chain.map(Into::into),
                    ..Filter::default()
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
                assert_eq!(
                    collect!(nft, tables, filter.clone()),
                    wanted,
                    "tables of {filter:?}"
                );
                shown[0] += wanted.len();
                let wanted: Vec<_> = chains
                    .iter()
                    .filter(|c| of(c.family) && named(table, &c.table) && named(chain, &c.name))
                    .cloned()
                    .collect();
                assert_eq!(
                    collect!(nft, chains, filter.clone()),
                    wanted,
                    "chains of {filter:?}"
                );
                shown[1] += wanted.len();
                let wanted: Vec<_> = rules
                    .iter()
                    .filter(|r| of(r.family) && named(table, &r.table) && named(chain, &r.chain))
                    .cloned()
                    .collect();
                let listed = collect!(nft, rules, filter.clone());
                assert_eq!(listed.len(), wanted.len(), "rules of {filter:?}");
                assert!(listed == wanted, "rules of {filter:?}");
                shown[2] += wanted.len();
            }
        }
    }
    assert!(shown.iter().all(|&shown| shown > 0));
}
