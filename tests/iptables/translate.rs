//! iptables' rules in nft's language: compared with the output of `iptables-translate`, and loaded by the
//! real nft.

mod recorded;

use crate::common::rulesets::data;
use crate::common::sandbox;
use crate::common::tools::Tools;
use chainwright::iptables::{Family, Rule};
use chainwright::nft::{Connection, Scope};
use chainwright_lang::translate::{self, Translation};
use chainwright_lang::{Listing, Options, Script};

/// Rules that both translate in the same way.
const SAME: &[&str] = &[
    "-s 10.0.0.0/8 -i eth0 -j ACCEPT",
    "! -s 10.0.0.1/32 ! -i eth+ -d 1.0.4.0/255.0.255.0 -j DROP",
    "-p tcp -j ACCEPT",
    "! -p tcp -j ACCEPT",
    "-p 47 -j ACCEPT",
    "-p tcp --dport 22 --sport 1:1024 -j ACCEPT",
    "-p tcp ! --dport 22 --syn -j ACCEPT",
    "-p tcp --tcp-flags SYN,ACK SYN",
    "-p tcp ! --tcp-flags ALL NONE",
    "-p tcp ! --syn",
    "-p udp --dport 53",
    "-p udp ! --sport 53:54",
    "-m mark --mark 1",
    "-m mark ! --mark 1/0xff",
    "-m connmark --mark 1/0xff",
    "-m limit --limit 5/min --limit-burst 10",
    "-m limit",
    "-m iprange --src-range 1.1.1.1-1.1.1.9 ! --dst-range 2.2.2.2-2.2.2.9",
    "-m addrtype --dst-type LOCAL,BROADCAST",
    "-m addrtype ! --src-type LOCAL --limit-iface-in",
    "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-m conntrack ! --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-m conntrack ! --ctstate NEW",
    "-m conntrack --ctstate DNAT",
    "-m conntrack --ctstatus ASSURED,SEEN_REPLY --ctdir REPLY",
    "-m state --state NEW",
    "-p tcp -m multiport --dports 80,443,1000:2000 -j ACCEPT",
    "-p udp -m multiport ! --sports 80,443",
    "-m comment --comment \"hello there\" -j ACCEPT",
    "-p icmp --icmp-type echo-request",
    "-p icmp ! --icmp-type 8",
    "-m mac --mac-source 00:11:22:33:44:55",
    "-m pkttype ! --pkt-type broadcast",
    "-m ttl --ttl-lt 5",
    "-m ttl ! --ttl-eq 5",
    "-m length --length 100:200",
    "-m length ! --length 100",
    "-m dscp --dscp 10",
    "-m dscp ! --dscp-class AF21",
    "-m cpu ! --cpu 3",
    "-f -j DROP",
    "! -f -j DROP",
    "-j LOG --log-prefix \"a b\" --log-level debug --log-uid --log-tcp-sequence --log-tcp-options",
    "-j LOG",
    "-j LOG --log-level error --log-ip-options --log-macdecode",
    "-j REJECT",
    "-j REJECT --reject-with icmp-host-prohibited",
    "-p tcp -j REJECT --reject-with tcp-reset",
    "-p tcp --dport 80 -j DNAT --to-destination 1.2.3.4-1.2.3.9:80-90 --random --persistent",
    "-p tcp -j DNAT --to-destination :80",
    "-j SNAT --to-source 1.2.3.4 --random-fully",
    "-p tcp -j MASQUERADE --to-ports 1024-2048 --random",
    "-j MASQUERADE --random-fully",
    "-p tcp -j REDIRECT --to-ports 8080",
    "-p tcp -j REDIRECT",
    "-j MARK --set-mark 1",
    "-j MARK --set-xmark 0x1/0xff",
    "-j MARK --or-mark 0x4000",
    "-j MARK --and-mark 0x4000",
    "-j MARK --xor-mark 0x4000",
    "-j CONNMARK --save-mark",
    "-j CONNMARK --restore-mark",
    "-j CONNMARK --set-mark 5",
    "-j NFLOG --nflog-group 3 --nflog-prefix x --nflog-threshold 7",
    "-j CLASSIFY --set-class 1:2",
    "-j TRACE",
    "-j CT --notrack",
    "-j DSCP --set-dscp 10",
    "-g FOO",
    "-j FOO",
];

/// Rules that the library translates differently, with its translation.
const OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "it cannot express a code",
        "-p icmp --icmp-type 3/1",
        "icmp type destination-unreachable icmp code 1 counter",
    ),
    (
        "1.8.9 cannot express a range of users",
        "-m owner --uid-owner 5-10 ! --gid-owner 3",
        "skuid 5-10 skgid != 3 counter",
    ),
    (
        "it does not require a transport header, which later fragments lack",
        "-p tcp -m tcp -j ACCEPT",
        "tcp sport >= 0 counter accept",
    ),
    (
        "the same",
        "-p udp --dport 0:65535 -j ACCEPT",
        "udp sport >= 0 counter accept",
    ),
    (
        "the same",
        "-p icmp --icmp-type any -j ACCEPT",
        "icmp type >= 0 counter accept",
    ),
    (
        "packets without a sender match in iptables, and its translation does not match them",
        "-m owner ! --uid-owner 5 -j ACCEPT",
        "jump { skuid 5 return; counter accept; }",
    ),
    (
        "in its translation a packet that no socket takes passes to the next rule",
        "-p tcp -j TPROXY --on-port 80 --tproxy-mark 1",
        "ip protocol tcp counter jump { meta l4proto tcp tproxy to :80 meta mark set 0x1 accept; drop; }",
    ),
    (
        "in its translation packets of any protocol count towards the limit",
        "-p tcp -m limit --limit 5/sec -m tcp --dport 22 -j ACCEPT",
        "ip protocol tcp limit rate 5/second burst 5 packets tcp dport 22 counter accept",
    ),
    (
        "it clears bits after flipping them",
        "-j CONNMARK --set-xmark 5/0xff",
        "counter ct mark set ct mark and 0xffffff00 xor 0x5",
    ),
];

/// Rules without an exact translation.
const NOT_TRANSLATED: &[&str] = &[
    "-m recent --set",
    "! -i + -j ACCEPT",
    "-m mark --mark 0x100/0xff",
    "-j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff",
    "-m set --match-set a src",
    "-j LOG --log-prefix a$b",
    "-m owner --socket-exists",
    "-m owner ! --uid-owner 5 -j RETURN",
    "-m hashlimit --hashlimit-upto 5/sec --hashlimit-name a --hashlimit-mode srcport",
    "-m conntrack --ctstate INVALID,NEW --ctdir ORIGINAL",
    "-m conntrack ! --ctstate NEW --ctstatus ASSURED",
    "-m comment --comment \"a \\\"b\\\"\"",
];

fn translated(family: Family, rule: &str) -> String {
    let rule = Rule::parse(family, rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
    translate::rule(&rule, family).unwrap_or_else(|error| panic!("{rule}: {error}"))
}

/// nft's listing of a chain after it has loaded these rules.
fn listed(family: &str, rules: &[String]) -> Vec<String> {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut text =
        format!("add table {family} t\nadd chain {family} t FOO\nadd chain {family} t c\n");
    for rule in rules {
        text += &format!("add rule {family} t c {rule}\n");
    }
    tools.run_with("nft -f -", &text);
    let listed = tools.run(&format!("nft list chain {family} t c"));
    let lines = listed.lines().filter_map(|line| line.strip_prefix("\t\t"));
    // Not those of anonymous chains.
    let lines = lines.filter(|line| !line.starts_with(['\t', '}']));
    lines.map(str::to_owned).collect()
}

/// The output of `iptables-translate`, without the table and chain.
fn real(tools: &Tools<'_>, program: &str, rule: &str) -> String {
    let translated = tools.run(&format!("{program} -A c {rule}"));
    let translated = translated.trim_end().strip_prefix("nft '").unwrap();
    let translated = translated.strip_suffix('\'').unwrap();
    let (_, rule) = translated.split_once(" filter c ").unwrap();
    rule.to_owned()
}

#[test]
fn translations_match_iptables_translate() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let chainwright: Vec<_> = SAME
        .iter()
        .map(|rule| translated(Family::Ipv4, rule))
        .collect();
    let others: Vec<_> = SAME
        .iter()
        .map(|rule| real(&tools, "iptables-translate", rule))
        .collect();
    let (chainwright, others) = (listed("ip", &chainwright), listed("ip", &others));
    assert_eq!(chainwright.len(), SAME.len());
    let mut differ = Vec::new();
    for ((rule, chainwright), real) in SAME.iter().zip(&chainwright).zip(&others) {
        if chainwright != real {
            differ.push(format!("{rule}\n  ours   {chainwright}\n  theirs {real}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn differing_translations_are_accepted_by_nft() {
    for (why, rule, expected) in OTHERWISE {
        assert_eq!(translated(Family::Ipv4, rule), *expected, "{why}");
    }
    let rules: Vec<_> = OTHERWISE
        .iter()
        .map(|(_, _, rule)| (*rule).to_owned())
        .collect();
    assert_eq!(listed("ip", &rules).len(), OTHERWISE.len());
    assert_eq!(
        translated(Family::Ipv4, "-j NFQUEUE --queue-num 3 --queue-bypass"),
        "counter queue num 3 bypass"
    );
}

#[test]
fn rules_of_ipv6() {
    let rules = [
        (
            "-s ::1/128 -p icmpv6 --icmpv6-type 128 -j ACCEPT",
            "meta l4proto ipv6-icmp ip6 saddr ::1 icmpv6 type echo-request counter accept",
        ),
        ("-p tcp -j REJECT", "meta l4proto tcp counter reject"),
        (
            "-m hl --hl-gt 5 -p udp -j REJECT --reject-with icmp6-adm-prohibited",
            "meta l4proto udp ip6 hoplimit gt 5 counter reject with icmpv6 type admin-prohibited",
        ),
        (
            "-p tcp -j DNAT --to-destination [::1]:80",
            "meta l4proto tcp counter dnat to [::1]:80",
        ),
        (
            "-m addrtype --dst-type LOCAL",
            "fib daddr type local counter",
        ),
        (
            "-d fe80::/10 -o lo -j MASQUERADE",
            "oifname \"lo\" ip6 daddr fe80::/10 counter masquerade",
        ),
    ];
    let mut all = Vec::new();
    for (rule, expected) in rules {
        assert_eq!(translated(Family::Ipv6, rule), expected);
        all.push(expected.to_owned());
    }
    assert_eq!(listed("ip6", &all).len(), rules.len());
    let anycast = Rule::parse(Family::Ipv6, "-m addrtype --dst-type ANYCAST").unwrap();
    assert!(translate::rule(&anycast, Family::Ipv6).is_err());
}

/// They are never translated to a wider rule.
#[test]
fn inexact_rules_are_not_translated() {
    for rule in NOT_TRANSLATED {
        let parsed =
            Rule::parse(Family::Ipv4, rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
        assert!(translate::rule(&parsed, Family::Ipv4).is_err(), "{rule}");
    }
}

const SAVED: &str = "\
# Generated
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SVC - [0:0]
-A PREROUTING -j KUBE-SVC
-A KUBE-SVC -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:8080
-A KUBE-SVC -m statistic --mode random --probability 0.5 -j RETURN
-A KUBE-SVC -m recent --rcheck --name a -j RETURN
COMMIT
*filter
:INPUT DROP [5:6]
:FORWARD ACCEPT [0:0]
[3:4] -A INPUT -s 10.0.0.0/8,11.0.0.0/8 -j ACCEPT
-I INPUT 2 -i lo -j ACCEPT
-P FORWARD DROP
-D INPUT 1
COMMIT
";

/// A comment marks the position of an untranslated rule, so that the translated ones keep their order.
#[test]
fn a_comment_replaces_an_untranslated_rule() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m recent --set\n-A INPUT -s 10.0.0.1 -j DROP\n\
                -I INPUT 2 -j ACCEPT\n-I INPUT -m recent --set\nCOMMIT\n";
    let translation = Translation::of(Family::Ipv4, text).unwrap();
    let lines = translation.text.lines().map(str::trim);
    let lines: Vec<_> = lines
        .map(|line| line.split(": ").next().unwrap_or_default())
        .collect();
    assert_eq!(
        lines[3..7],
        [
            "# -I INPUT -m recent --set",
            "# -A INPUT -m recent --set",
            "counter accept",
            "ip saddr 10.0.0.1 counter drop",
        ]
    );
    let twice = Translation::of(Family::Ipv4, "*filter\nCOMMIT\n*filter\nCOMMIT\n");
    assert_eq!(twice.unwrap_err().line, 3);
}

#[test]
fn translated_texts_are_accepted_by_nft() {
    let translation = Translation::of(Family::Ipv4, SAVED).unwrap();
    let expected = "\
table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority -100; policy accept;
		counter jump KUBE-SVC
	}

	chain POSTROUTING {
		type nat hook postrouting priority 100; policy accept;
	}

	chain KUBE-SVC {
		tcp dport 80 counter dnat to 10.0.0.1:8080
		meta random & 2147483647 < 1073741824 counter return
		# -A KUBE-SVC -m recent --rcheck --name a -j RETURN: `-m recent --rcheck --name a --mask 255.255.255.255 --rsource` has no equivalent in nft's language
	}
}
table ip filter {
	chain INPUT {
		type filter hook input priority 0; policy drop;
		ip saddr 10.0.0.0/8 counter packets 3 bytes 4 accept
		iifname \"lo\" counter accept
		ip saddr 11.0.0.0/8 counter packets 3 bytes 4 accept
		# -D INPUT 1: the line refers to existing rules
	}

	chain FORWARD {
		type filter hook forward priority 0; policy drop;
	}
}
";
    assert_eq!(translation.text, expected);
    assert_eq!(translation.rules, 6);
    let lines: Vec<_> = translation
        .untranslated
        .iter()
        .map(|not| not.line)
        .collect();
    assert_eq!(lines, [9, 17]);
    // With the real nft, and with the library.
    let (sandbox, other) = (sandbox(), sandbox());
    Tools::new(&sandbox).run_with("nft -f -", &translation.text);
    let chainwright = other
        .run(|| {
            let mut nft = Connection::open().unwrap();
            let script = Script::parse("saved", &translation.text).unwrap();
            let now = nft.snapshot(Scope::all()).unwrap();
            let change = script.transaction(Some(&now)).unwrap();
            nft.commit(change.transaction()).unwrap();
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            Listing::new(&snapshot, &Options::here()).to_string()
        })
        .unwrap();
    assert_eq!(chainwright, Tools::new(&sandbox).run("nft list ruleset"));
}

#[test]
fn errors_have_line_numbers() {
    for (text, line) in [
        ("-A INPUT -j ACCEPT\n", 1),
        ("*filter\n\n-A INPUT --nix\n", 3),
        ("*filter\n:FOO ACCEPT [0:0]\n", 2),
        ("*filter\n:INPUT nix\n", 2),
        ("*fil ter\n", 1),
        ("*filter\n:INPUT\n", 2),
    ] {
        assert_eq!(
            Translation::of(Family::Ipv4, text).unwrap_err().line,
            line,
            "{text}"
        );
    }
    // A name that nft's language cannot express excludes its chain.
    let text = "*filter\n:a:b - [0:0]\n-A a:b -j ACCEPT\n-A INPUT -j a:b\nCOMMIT\n";
    let translation = Translation::of(Family::Ipv4, text).unwrap();
    assert_eq!(translation.rules, 0);
    assert_eq!(translation.untranslated.len(), 2);
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", &translation.text);
}

/// Of the rulesets of kube-proxy, only lines with an extension that has no equivalent are left out.
#[test]
fn rulesets_of_kube_proxy_are_translated() {
    for file in [
        "kube-proxy-1.20-4-services.save",
        "kube-proxy-1.20-300-services.save",
        "kube-proxy-1.36-iptables.save",
    ] {
        let text = data(file);
        let translation = Translation::of(Family::Ipv4, &text).unwrap();
        let rules = text.lines().filter(|line| line.starts_with("-A ")).count();
        assert_eq!(translation.rules + translation.untranslated.len(), rules);
        for line in &translation.untranslated {
            let has_none = ["-m recent ", "-m nfacct ", "-m physdev "];
            let is_known = has_none
                .iter()
                .any(|extension| line.text.contains(extension));
            assert!(is_known, "{file}: {}: {}", line.text, line.reason);
        }
    }
}
