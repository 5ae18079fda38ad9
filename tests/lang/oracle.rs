//! Rulesets of real clients, loaded by the real tools, and listed by the library and by the tools.

mod one_by_one;
mod typed_forms;

use std::collections::HashMap;

use crate::common::save::{self, SavedChain, Target};
use crate::common::tools::Tools;
use crate::common::{connect, kernel, sandbox};
use chainwright::nft::expr::{Counter, Data, Decoded, Immediate, Register, Verdict};
use chainwright::nft::{Chain, Connection, Family, Policy, RuleRef, Scope, hook_name};
use chainwright_testing::Sandbox;
use serde_json::Value;

/// The ruleset of kube-proxy 1.36 in nftables mode for the same Services, as `nft` prints it.
const KUBE_PROXY_NFTABLES: &str = include_str!("../data/kube-proxy-1.36-nftables.nft");

/// Every kind of expression with a type in the library, and some without.
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

/// Collects all objects in a scope as owned builders.
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

use collect;

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).unwrap()
}

/// The parts of a rule that can be compared with the tools' output.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    handle: u64,
    counters: Option<save::Counters>,
    target: Target,
    /// Names of `match` expressions.
    matches: Vec<String>,
    /// Names of verdict maps.
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

/// The comment in a rule's user data: nft writes it as a record of type 0, with a NUL.
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
    let listing = nft.rules(Scope::all()).unwrap();
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
    // The output equals the input, so the tool itself preserves everything.
    let saved = tools.save("iptables-nft-save -c");
    assert_eq!(saved, save);
    (sandbox, saved)
}

/// Compares the listing of a family with the output of `iptables-nft-save -c`, and counts the chains
/// and rules of both, and the chains that are only printed: the tool prints every built-in chain of a
/// table, even a missing one.
#[track_caller]
fn same_as_saved(nft: &mut Connection, family: Family, saved: &str) -> [usize; 3] {
    let mut rules = listed_rules(nft);
    rules.retain(|key, _| key.0 == family);
    let chains = collect!(nft, chains, Scope::family(family));
    let mut chains: HashMap<(String, String), Chain<'_>> = chains
        .into_iter()
        .map(|c| {
            let (table, name) = (c.table.as_ref().unwrap(), c.name.as_ref().unwrap());
            ((text(table), text(name)), c)
        })
        .collect();
    let mut tables: Vec<_> = collect!(nft, tables, Scope::family(family))
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

/// Chains, policies, counters, targets and matches that kube-proxy wrote through iptables-nft.
#[test]
fn kube_proxys_chains_match_iptables_nft_save() {
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
fn policies_gotos_and_missing_built_in_chains() {
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

/// The same ruleset as nft lists it: handles, hooks, priorities, order of the rules.
#[test]
fn kube_proxys_chains_match_nft() {
    let (sandbox, _) = kube_proxy();
    let objects = same_as_nft(&sandbox);
    assert!(objects.chains > 1000 && objects.rules > 3000, "{objects:?}");
    assert!(objects.jumps > 1500, "{objects:?}");
    assert!(objects.counters > 3000, "{objects:?}");
}

#[test]
fn kube_proxys_nftables_ruleset_matches_nft() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(KUBE_PROXY_NFTABLES);
    let objects = same_as_nft(&sandbox);
    assert!(objects.chains > 300 && objects.rules > 300, "{objects:?}");
    assert!(objects.verdict_maps > 5 && objects.jumps > 9, "{objects:?}");
    assert!(objects.comments > 2, "{objects:?}");
    // Loading in pieces gave the ruleset in the file: its chains and their rules.
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
fn a_rule_of_each_kind_matches_nft() {
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

/// The numbers of compared objects.
#[derive(Debug, Default)]
struct Compared {
    chains: usize,
    rules: usize,
    jumps: usize,
    counters: usize,
    verdict_maps: usize,
    comments: usize,
}

/// Compares the library's listing of a sandbox's ruleset with that of `nft -j list ruleset`.
#[track_caller]
fn same_as_nft(sandbox: &Sandbox) -> Compared {
    let mut nft = connect(sandbox);
    let mut compared = Compared::default();
    let printed = Tools::new(sandbox).nft_json("list ruleset");
    let of = |kind| printed.iter().filter_map(move |object| object.get(kind));

    // Tables.
    let chainwright = collect!(nft, tables, Scope::all())
        .iter()
        .map(|t| {
            let references = t.references.unwrap();
            assert!(references > 0);
            (t.family.to_string(), t.name.clone(), t.handle)
        })
        .collect::<Vec<_>>();
    let real = of("table")
        .map(|t| {
            let name = string(t, "name").unwrap();
            (
                string(t, "family").unwrap(),
                Some(name.into()),
                number(t, "handle"),
            )
        })
        .collect::<Vec<_>>();
    assert_eq!(chainwright, real);

    // Chains, in the kernel's order.
    let chains = collect!(nft, chains, Scope::all());
    let real: Vec<_> = of("chain").collect();
    assert_eq!(chains.len(), real.len());
    for (chainwright, real) in chains.iter().zip(real) {
        compared.chains += 1;
        assert_eq!(chainwright.family.to_string(), real["family"]);
        assert_eq!(
            chainwright.table.as_ref().unwrap().to_string(),
            real["table"]
        );
        assert_eq!(chainwright.name.as_ref().unwrap().to_string(), real["name"]);
        assert_eq!(chainwright.handle, number(real, "handle"));
        let hook = chainwright.hook.as_ref();
        let hook_number = hook.map(|hook| hook.number.unwrap());
        let name = hook_number.map(|number| hook_name(chainwright.family, number).unwrap());
        assert_eq!(
            name.map(String::from),
            string(real, "hook"),
            "{chainwright:?}"
        );
        let priority = hook.map(|hook| i64::from(hook.priority.unwrap()));
        assert_eq!(priority, real.get("prio").and_then(Value::as_i64));
        let chain_type = chainwright.chain_type.as_ref().map(ToString::to_string);
        assert_eq!(chain_type, string(real, "type"));
        let policy = chainwright.policy.map(|policy| policy.to_string());
        assert_eq!(policy, string(real, "policy"), "{chainwright:?}");
    }

    // Rules, in the order of their chains.
    let mut chainwright = listed_rules(&mut nft);
    for real in of("rule") {
        compared.rules += 1;
        let family: Family = string(real, "family").unwrap().parse().unwrap();
        let name = |field| string(real, field).unwrap();
        let rules = chainwright.get_mut(&(family, name("table"), name("chain")));
        let Some(chainwright) = rules.filter(|rules| !rules.is_empty()) else {
            panic!("not listed: {real}");
        };
        let chainwright = chainwright.remove(0);
        let real = as_listed(real, &chainwright);
        compared.jumps += usize::from(matches!(
            chainwright.target,
            Target::Jump(_) | Target::Goto(_)
        ));
        compared.counters += usize::from(chainwright.counters.is_some());
        compared.verdict_maps += chainwright.verdict_maps.len();
        compared.comments += usize::from(chainwright.comment.is_some());
        assert_eq!(chainwright, real);
    }
    let left: Vec<_> = chainwright.values().flatten().collect();
    assert!(left.is_empty(), "not printed: {left:?}");
    compared
}

fn string(object: &Value, field: &str) -> Option<String> {
    let value = object.get(field)?;
    Some(value.as_str().expect("not a string").to_owned())
}

fn number(object: &Value, field: &str) -> Option<u64> {
    object.get(field)?.as_u64()
}

/// Converts a rule as nft prints it. nft 1.0.6 prints only the presence of xtables extensions, so
/// these are taken from the library's listing.
fn as_listed(printed: &Value, chainwright: &Listed) -> Listed {
    let mut listed = Listed {
        handle: number(printed, "handle").unwrap(),
        counters: None,
        target: Target::None,
        matches: chainwright.matches.clone(),
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
                // nft prints the content of an anonymous one.
                _ => chainwright.verdict_maps[listed.verdict_maps.len()].clone(),
            }),
            _ => {}
        }
    }
    if let Target::Extension(_) = chainwright.target {
        assert_eq!(listed.target, Target::None);
        listed.target = chainwright.target.clone();
    }
    listed
}
