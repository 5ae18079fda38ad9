//! Parses the output of `iptables-save -c`.

use super::tools::words;

/// The rules of kube-proxy 1.20 for some 300 Services, as `iptables-save` prints them.
pub(crate) const KUBE_PROXY: &str = include_str!("../data/kube-proxy-1.20-300-services.save");

/// Every part of an IPv6 rule: addresses with all kinds of masks, interfaces, protocols, matches,
/// targets, jumps and gotos, as ip6tables-legacy-save prints them.
pub(crate) const IPV6: &str = r#"*filter
:INPUT DROP [18446744073709551615:18446744073709551614]
:FORWARD ACCEPT [10:1000]
:OUTPUT ACCEPT [11:1100]
:empty - [0:0]
:twenty-eight-bytes-of-a-name - [0:0]
[12:1200] -A INPUT -i lo -j ACCEPT
[13:1300] -A INPUT -s fd00::/8 ! -d fd00::1/128 -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j twenty-eight-bytes-of-a-name
[14:1400] -A INPUT ! -s 2001:db8::/33 ! -i eth0 -p sctp -m sctp --dport 9 -j DROP
[15:1500] -A FORWARD -s fe80::1:0:0/ffff:0:ffff:ffff:ffff:ffff:: -o veth+ -j REJECT --reject-with icmp6-port-unreachable
[16:1600] -A FORWARD -m conntrack --ctstate NEW -m limit --limit 3/min -m comment --comment "only counts"
[17:1700] -A OUTPUT ! -o wlan0 -m mark --mark 0x4000/0x4000 -m statistic --mode random --probability 0.50000000000 -j LOG --log-prefix "out: "
[0:0] -A twenty-eight-bytes-of-a-name -p esp -g empty
[19:1900] -A twenty-eight-bytes-of-a-name -j RETURN
COMMIT
*mangle
:PREROUTING ACCEPT [1:100]
:INPUT ACCEPT [2:200]
:FORWARD ACCEPT [3:300]
:OUTPUT ACCEPT [4:400]
:POSTROUTING ACCEPT [5:500]
:MARKS - [0:0]
[6:600] -A PREROUTING -i eth+ -p tcp -m tcp --dport 80 -j MARKS
[7:700] -A PREROUTING ! -p udp -g MARKS
[8:800] -A MARKS -j MARK --set-xmark 0x1/0xffffffff
COMMIT
"#;

/// Packets and bytes.
pub(crate) type Counters = (u64, u64);

/// The target of a rule, in a form that allows comparing both backends and the tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nothing.
    None,
    /// `ACCEPT`, `DROP` or `RETURN`.
    Verdict(String),
    /// A chain of the same table.
    Jump(String),
    /// A chain of the same table, without return.
    Goto(String),
    /// An extension.
    Extension(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedTable {
    pub(crate) name: String,
    /// In the order in which they are printed.
    pub(crate) chains: Vec<SavedChain>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedChain {
    pub(crate) name: String,
    /// `None` for a user-defined chain.
    pub(crate) policy: Option<String>,
    pub(crate) counters: Counters,
    pub(crate) rules: Vec<SavedRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedRule {
    pub(crate) line: String,
    pub(crate) counters: Counters,
    pub(crate) target: Target,
    /// The names after `-m`, in order.
    pub(crate) matches: Vec<String>,
}

/// Reads the output of `iptables-save -c`.
#[track_caller]
pub(crate) fn parse(save: &str) -> Vec<SavedTable> {
    let mut tables: Vec<SavedTable> = Vec::new();
    for line in save.lines() {
        if let Some(name) = line.strip_prefix('*') {
            let (name, chains) = (name.to_owned(), Vec::new());
            tables.push(SavedTable { name, chains });
        } else if let Some(declaration) = line.strip_prefix(':') {
            let [name, policy, counters] = &words(declaration)[..] else {
                panic!("not a chain: {line}");
            };
            let table = tables.last_mut().expect("a chain precedes every table");
            table.chains.push(SavedChain {
                name: name.clone(),
                policy: (policy != "-").then(|| policy.clone()),
                counters: parse_counters(counters),
                rules: Vec::new(),
            });
        } else if line.starts_with('[') {
            let table = tables.last_mut().expect("a rule precedes every table");
            let words = words(line);
            let [counters, append, chain, options @ ..] = &words[..] else {
                panic!("not a rule: {line}");
            };
            assert_eq!(append, "-A", "{line}");
            let rule = SavedRule {
                line: line.to_owned(),
                counters: parse_counters(counters),
                target: target(options, &table.chains),
                matches: values(options, "-m").map(String::from).collect(),
            };
            let chain = table.chains.iter_mut().find(|c| c.name == *chain);
            chain
                .expect("a rule's chain is not declared")
                .rules
                .push(rule);
        } else {
            assert!(line == "COMMIT" || line.starts_with('#'), "{line}");
        }
    }
    tables
}

fn values<'w>(options: &'w [String], option: &'w str) -> impl Iterator<Item = &'w str> {
    let pairs = options.windows(2).filter(move |pair| pair[0] == option);
    pairs.map(|pair| pair[1].as_str())
}

fn target(options: &[String], chains: &[SavedChain]) -> Target {
    let name = |option| values(options, option).next().map(str::to_owned);
    match (name("-j"), name("-g")) {
        (None, None) => Target::None,
        (None, Some(chain)) => Target::Goto(chain),
        (Some(name), _) if chains.iter().any(|chain| chain.name == name) => Target::Jump(name),
        (Some(name), _) if ["ACCEPT", "DROP", "RETURN"].contains(&&*name) => Target::Verdict(name),
        (Some(name), _) => Target::Extension(name),
    }
}

#[track_caller]
fn parse_counters(text: &str) -> Counters {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let numbers = inner.and_then(|inner| inner.split_once(':'));
    numbers
        .and_then(|(packets, bytes)| Some((packets.parse().ok()?, bytes.parse().ok()?)))
        .unwrap_or_else(|| panic!("not counters: {text}"))
}

/// Gives every rule and policy of a saved ruleset distinct counters, none of them 0, so that a
/// counter assigned to another rule is noticed.
pub(crate) fn with_counters(save: &str) -> String {
    let mut counted = String::new();
    for (number, line) in save.lines().enumerate() {
        let (packets, bytes) = (number + 1, (number + 1) * 100 + 7);
        if line.starts_with("-A ") {
            counted += &format!("[{packets}:{bytes}] {line}\n");
        } else if let Some(policy) = line.strip_suffix(" ACCEPT [0:0]") {
            counted += &format!("{policy} ACCEPT [{packets}:{bytes}]\n");
        } else {
            counted += &format!("{line}\n");
        }
    }
    counted
}
