//! Base chains with one priority at a hook: the kernel calls the newest first, and a change keeps the
//! order.

use std::net::UdpSocket;

use chainwright::nft::expr::{Counter, Decoded};
use chainwright_testing::FakeKernel;
use chainwright_testing::Sandbox;

use super::*;
use crate::common::sandbox;

/// The rules of a chain that sees each packet, and appends its digit to the mark: `@` is the chain's
/// position.
fn noting(number: u32) -> String {
    // The last digit of the mark is the newest. The longest first, so that one rule matches.
    let mut rules = String::new();
    let others: Vec<u32> = (1..=3).filter(|other| *other != number).collect();
    let (one, two) = (others[0], others[1]);
    for before in [one * 16 + two, two * 16 + one, one, two, 0] {
        let after = before * 16 + number;
        rules += &format!(" meta mark {before} counter meta mark set {after} return;");
    }
    rules
}

/// Three chains: their tables, their types, and how packets reach them.
struct Case {
    chains: [(&'static str, &'static str); 3],
    hook: &'static str,
    is_nat: bool,
}

const TABLES: [[&str; 3]; 4] = [
    ["ip one", "ip one", "ip one"],
    ["ip one", "ip two", "ip three"],
    ["ip one", "inet two", "ip three"],
    ["inet one", "inet one", "ip two"],
];
const HOOKS: [(&str, bool); 6] = [
    ("type filter hook output priority 0", false),
    ("type route hook output priority -7", false),
    ("type filter hook input priority 5", false),
    ("type filter hook prerouting priority raw", false),
    ("type filter hook postrouting priority 3", false),
    ("type nat hook output priority -100", true),
];

impl Case {
    fn new(tables: [&'static str; 3], (hook, is_nat): (&'static str, bool)) -> Self {
        Self {
            chains: [(tables[0], "a"), (tables[1], "b"), (tables[2], "c")],
            hook,
            is_nat,
        }
    }

    fn chain(&self, number: usize) -> String {
        let (table, name) = self.chains[number];
        let rules = match self.is_nat {
            true => format!(" udp dport 99 counter dnat ip to 127.0.0.1:100{number};"),
            false => noting(number as u32 + 1),
        };
        let rules = rules.replace("; ", "\n").replace(';', "\n");
        let rules = rules.lines().map(str::trim).filter(|rule| !rule.is_empty());
        let rules: Vec<_> = rules
            .map(|rule| format!("add rule {table} {name} {rule}\n"))
            .collect();
        format!(
            "add table {table}\nadd chain {table} {name} {{ {}; }}\n{}",
            self.hook,
            rules.concat()
        )
    }

    /// Everything, and a chain that reads the marks.
    fn text(&self) -> String {
        let mut text: String = (0..3).map(|number| self.chain(number)).collect();
        text += "add table inet last
            add set inet last seen { type mark; flags dynamic; size 99; }
            add chain inet last z { type filter hook postrouting priority 200; }
            add chain inet last y { type filter hook input priority 200; }\n";
        let comes_in = self.hook.contains("input") || self.hook.contains("prerouting");
        let last = if comes_in { "y" } else { "z" };
        text + &format!("add rule inet last {last} meta mark != 0 add @seen {{ meta mark }}\n")
    }

    /// The order in which a packet meets them: for nat chains only the first one.
    fn order(&self, sandbox: &Sandbox) -> String {
        let tools = Tools::new(sandbox);
        tools.run("nft flush set inet last seen");
        tools.run("nft reset counters");
        let before = self.counted(&tools);
        sandbox
            .run(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.send_to(b"x", "127.0.0.1:99").unwrap();
            })
            .unwrap();
        if self.is_nat {
            let after = self.counted(&tools);
            return format!(
                "{:?}",
                after
                    .iter()
                    .zip(before)
                    .map(|(now, was)| now - was)
                    .collect::<Vec<_>>()
            );
        }
        let seen = tools.run("nft list set inet last seen");
        seen.split("elements = ")
            .nth(1)
            .unwrap_or("none")
            .to_owned()
    }

    /// The packet counts of each chain.
    fn counted(&self, tools: &Tools<'_>) -> Vec<u64> {
        let of_chain = |&(table, chain): &(&str, &str)| {
            let text = tools.run(&format!("nft list chain {table} {chain}"));
            let mut words = text.split_ascii_whitespace();
            let mut sum = 0;
            while words.any(|word| word == "packets") {
                sum += words.next().unwrap().parse::<u64>().unwrap();
            }
            sum
        };
        self.chains.iter().map(of_chain).collect()
    }

    fn forget(&self, tools: &Tools<'_>, number: usize, whole_table: bool) {
        let (table, chain) = self.chains[number];
        match whole_table {
            true => tools.run(&format!("nft delete table {table}")),
            false => {
                tools.run(&format!("nft flush chain {table} {chain}"));
                tools.run(&format!("nft delete chain {table} {chain}"))
            }
        };
    }
}

#[test]
fn chains_of_one_priority_are_called_in_the_same_order_afterwards() {
    let mut met = BTreeSet::new();
    // Every hook in one table, two of them in several.
    let all = HOOKS.map(|hook| (TABLES[0], hook)).into_iter();
    let others = TABLES[1..].iter();
    let others = others.flat_map(|tables| [HOOKS[0], HOOKS[5]].map(|hook| (*tables, hook)));
    for (number, (tables, hook)) in all.chain(others).enumerate() {
        let case = Case::new(tables, hook);
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        tools.run("ip link set lo up");
        tools.run_with("nft -f -", &case.text());
        let mut nft = connect(&sandbox);
        let desired = snapshot(&mut nft);
        let order = case.order(&sandbox);
        met.insert(order.clone());
        for lost in 0..3 {
            for whole_table in [false, true] {
                if whole_table && (lost > 0 || number == 1) {
                    continue;
                }
                case.forget(&tools, lost, whole_table);
                let before = case.counted_if_there(&tools);
                let context = format!("{tables:?} {hook:?} {lost} {whole_table}");
                let plan = match (number + lost) % 2 {
                    0 => nft
                        .reconcile(&desired, exact_but_counters())
                        .unwrap()
                        .to_string(),
                    _ => {
                        desired.restore(&mut nft).unwrap();
                        String::new()
                    }
                };
                let after = case.counted(&tools);
                if !plan.is_empty() && lost < 2 && !whole_table {
                    // The plan reports it, and counters keep their values.
                    assert!(plan.contains("must be called before chain"), "{plan}");
                    for (was, is) in before.iter().zip(&after).skip(lost + 1) {
                        assert!(is >= was, "{context}: {before:?} {after:?}");
                    }
                }
                assert_eq!(case.order(&sandbox), order, "{context}\n{plan}");
                let left = snapshot(&mut nft)
                    .plan(&desired, exact_but_counters())
                    .unwrap();
                assert!(left.is_empty(), "{context}: {left}");
            }
        }
    }
    assert!(met.len() >= 2, "{met:?}");
}

fn exact_but_counters() -> PlanOptions {
    let mut options = PlanOptions::default();
    options.remove_other_tables = true;
    options
}

impl Case {
    /// Like `counted`; 0 for a missing chain.
    fn counted_if_there(&self, tools: &Tools<'_>) -> Vec<u64> {
        let all = tools.run("nft list ruleset");
        let is_there = |name: &str| all.contains(&format!("chain {name} {{"));
        match self.chains.iter().all(|(_, name)| is_there(name)) {
            true => self.counted(tools),
            false => self
                .chains
                .iter()
                .map(|&(table, chain)| match is_there(chain) {
                    true => {
                        let one = Self {
                            chains: [(table, chain); 3],
                            ..*self
                        };
                        one.counted(tools)[0]
                    }
                    false => 0,
                })
                .collect(),
        }
    }
}

/// The listing of one table shows the order: it is compared, and corrected even if nothing else differs.
#[test]
fn another_order_of_calling_is_a_difference() {
    const KINDS: [(&str, &str); 7] = [
        ("ip", "type nat hook output priority -100"),
        ("ip6", "type filter hook forward priority 0"),
        ("inet", "type filter hook input priority 0"),
        ("inet", "type filter hook ingress device lo priority 0"),
        ("arp", "type filter hook input priority 0"),
        ("bridge", "type filter hook forward priority 0"),
        ("netdev", "type filter hook ingress device lo priority -3"),
    ];
    for (family, hook) in KINDS {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let chain = |name: &str| {
            format!(
                "add chain {family} t {name} {{ {hook}; }}\nadd rule {family} t {name} counter comment \"{name}\"\n"
            )
        };
        let text = format!(
            "add table {family} t\n{}{}{}",
            chain("a"),
            chain("b"),
            chain("c")
        );
        tools.run_with("nft -f -", &text);
        let mut nft = connect(&sandbox);
        let desired = snapshot(&mut nft);
        tools.run(&format!("nft flush chain {family} t b"));
        tools.run_with(
            "nft -f -",
            &format!("delete chain {family} t b\n{}", chain("b")),
        );
        let now = snapshot(&mut nft);
        let diff = desired.diff(&now, DiffOptions::default()).unwrap();
        assert_eq!(diff.changes.len(), 1, "{diff}");
        let change = &diff.changes[0];
        assert_eq!(change.kind, "order");
        assert!(
            change.path.starts_with(&format!("{family} t hook ")),
            "{diff}"
        );
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        assert_eq!((old, new), (Some("c, b, a"), Some("b, c, a")));
        let plan = nft.reconcile(&desired, PlanOptions::default()).unwrap();
        let text = plan.to_string();
        let why = format!(
            "recreate chain {family} t c: it must be called before chain {family} t b (hook "
        );
        assert!(text.starts_with(&why), "{text}");
        assert_eq!(plan.replaced.len(), 1, "{:?}", plan.replaced);
        let now = snapshot(&mut nft);
        assert!(
            desired
                .diff(&now, DiffOptions::default())
                .unwrap()
                .is_empty()
        );
        assert!(now.plan(&desired, exact()).unwrap().is_empty());
    }
    // Chains that do not see the same packets are not compared: other priorities, hooks, devices.
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "add table netdev t
         add chain netdev t a { type filter hook ingress device lo priority 0; }
         add chain netdev t b { type filter hook ingress device lo priority 1; }
         add table ip t
         add chain ip t a { type filter hook input priority 0; }
         add chain ip t b { type filter hook output priority 0; }
         add chain ip t c { type filter hook input priority 1; }
         add chain ip t d { type nat hook input priority 1; }",
    );
    let mut nft = connect(&sandbox);
    let desired = snapshot(&mut nft);
    tools.run_with(
        "nft -f -",
        "delete chain netdev t a
         delete chain ip t a
         add chain netdev t a { type filter hook ingress device lo priority 0; }
         add chain ip t a { type filter hook input priority 0; }",
    );
    let now = snapshot(&mut nft);
    let diff = desired.diff(&now, DiffOptions::default()).unwrap();
    assert!(diff.is_empty(), "{diff}");
    assert!(now.plan(&desired, exact()).unwrap().is_empty());
}

/// Many moves cost the kernel more than recreating the chain: it searches the chain's rules for each
/// handle.
#[test]
fn a_chain_is_rewritten_if_cheaper_and_keeps_its_counters() {
    for (number, shuffled, is_recreated) in [
        (600, true, false),
        (6_000, true, true),
        (6_000, false, false),
    ] {
        // With the fake kernel, because transactions of a user without privileges are limited.
        let mut nft = FakeKernel::new().connect().unwrap();
        let rule = |at: u64, packets: u64| {
            let mut rule = Rule::new(Family::IP, "t", "c").with(&Counter::new(packets, 7));
            rule.userdata = Some(at.to_ne_bytes().to_vec().into());
            rule
        };
        let fill = |nft: &mut Connection, order: &[u64], packets: &dyn Fn(u64) -> u64| {
            let mut tx = Transaction::new();
            tx.add(&Table::new(Family::IP, "t")).unwrap();
            tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
            tx.flush_chain(Family::IP, "t", "c").unwrap();
            for &at in order {
                tx.add(&rule(at, packets(at))).unwrap();
            }
            nft.commit(&tx).unwrap();
        };
        let sorted: Vec<u64> = (0..number).collect();
        let mut order = sorted.clone();
        match shuffled {
            true => order.sort_by_key(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20),
            false => order[100..110].reverse(),
        }
        fill(&mut nft, &order, &|_| 0);
        let desired = snapshot(&mut nft);
        fill(&mut nft, &sorted, &|at| at + 1);
        let plan = nft.reconcile(&desired, PlanOptions::default()).unwrap();
        let replaced: Vec<_> = plan.replaced.iter().map(ToString::to_string).collect();
        let expected: &[&str] = if is_recreated { &["rules ip t c"] } else { &[] };
        assert_eq!(replaced, expected);
        let now = snapshot(&mut nft);
        let counted = |rule: RuleRef<'_>| {
            let at = u64::from_ne_bytes(rule.userdata().unwrap().try_into().unwrap());
            let counter = rule.expressions().unwrap().next().unwrap().unwrap();
            match counter.decode().unwrap() {
                Decoded::Counter(counter) => (at, counter.packets.unwrap()),
                other => panic!("{other:?}"),
            }
        };
        let chain = now.chain(Family::IP, "t", "c").unwrap();
        let found: Vec<_> = chain.rules().map(counted).collect();
        let expected: Vec<_> = order.iter().map(|&at| (at, at + 1)).collect();
        assert!(found == expected, "{number} {shuffled}");
        assert!(
            now.plan(&desired, PlanOptions::default())
                .unwrap()
                .is_empty()
        );
        match (is_recreated, shuffled) {
            (true, _) => assert_eq!(plan.kept_rules, 0),
            (false, true) => assert!((20..100).contains(&plan.kept_rules), "{}", plan.kept_rules),
            (false, false) => assert!(plan.kept_rules >= 5_990),
        }
    }
}

/// A moved rule keeps the content of its anonymous sets and bound chains.
#[test]
fn a_moved_rule_keeps_its_anonymous_sets_and_bound_chains() {
    let body = |rules: &str| {
        format!(
            "table ip t {{ chain x {{ accept; }}\nchain b {{ type filter hook input priority 0; {rules}; }}; }}"
        )
    };
    let one = "tcp dport { 1, 2 } counter packets 5 bytes 6 accept; ";
    let two = "ip saddr vmap { 10.0.0.1 : jump x } comment \"two\"; ";
    let three = "counter packets 7 bytes 8; ";
    let sandbox = with(&body(&format!("{one}{two}{three}")));
    let desired = with(&body(
        &format!("{three}{two}{one}").replace("packets 5 bytes 6", "packets 0 bytes 0"),
    ));
    let (mut nft, desired) = (connect(&sandbox), snapshot(&mut connect(&desired)));
    nft.reconcile(&desired, PlanOptions::default()).unwrap();
    let text = Tools::new(&sandbox).run("nft list chain ip t b");
    assert!(
        text.contains("{ 1, 2 } counter packets 5 bytes 6 accept"),
        "{text}"
    );
    assert!(
        snapshot(&mut nft)
            .plan(&desired, PlanOptions::default())
            .unwrap()
            .is_empty()
    );
}
