//! nft's syntax for native rules, in the verbs that print any rule.

use super::live::{end, listen, without_times};
use super::ruleset::file;
use super::*;
use crate::common::tools::Tools;

const NATIVE: &str = r#"table inet t {
	comment "hello"
	counter hits { comment "x"; packets 3 bytes 4 }
	set nets { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 1.2.3.4-1.2.3.9 }; }
	map ports { typeof ip saddr . tcp dport : verdict; elements = { 1.1.1.1 . 22 : jump web }; }
	chain web { comment "c"; }
	chain in {
		type filter hook input priority filter + 5; policy drop;
		tcp dport { 22, 80-89 } ct state new accept comment "r"
		ip saddr @nets jump { ip daddr 1.2.3.4 accept; }
		ip saddr . tcp dport vmap @ports
	}
}
"#;

/// Each event is one line; the elements of a rule's anonymous set are printed with the rule, also
/// when it is deleted.
#[test]
fn watch_prints_nft_syntax() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("nft add table ip there");
    tools.run("nft add set ip there known { type inet_service; }");
    let watching = listen(&sandbox, "watch changes --count 7");
    let bytecode = listen(&sandbox, "watch changes --count 7 --bytecode");
    tools.run_with("nft -f -", NATIVE);
    tools.run("nft add chain ip there c");
    tools.run("nft add rule ip there c tcp dport @known drop");
    tools.run("nft add element ip there known { 22, 80 }");
    tools.run("nft flush chain inet t in");
    tools.run("nft delete element inet t nets { 10.0.0.0/8 }");
    tools.run("nft delete set inet t nets");

    let ran = end(watching);
    let lines = without_times(&ran);
    let lines: Vec<_> = lines.iter().filter(|line| line.starts_with(' ')).collect();
    let expected = r#"  + add table inet t handle 2 { comment "hello"; }
  + add chain inet t web handle 1 { comment "c"; }
  + add chain inet t in handle 2 { type filter hook input priority filter + 5; policy drop; }
  + add counter inet t hits handle 3 { comment "x"; packets 3 bytes 4 }
  + add set inet t nets handle 4 { type ipv4_addr; flags interval; }
  + add element inet t nets { 1.2.3.4-1.2.3.9 }
  + add element inet t nets { 10.0.0.0/8 }
  + add set inet t ports handle 5 { typeof ip saddr . tcp dport : verdict; }
  + add element inet t ports { 1.1.1.1 . 22 : jump web }
  + add rule inet t in handle 7: tcp dport { 22, 80-89 } ct state new accept comment "r"
  + add chain inet t CHAIN handle 8
  + add rule inet t CHAIN handle 9: ip daddr 1.2.3.4 accept
  + add rule inet t in handle 10: ip saddr @nets jump CHAIN
  + add rule inet t in handle 11: ip saddr . tcp dport vmap @ports
  + add chain ip there c handle 2
  + add rule ip there c handle 3: tcp dport @known drop
  + add element ip there known { 22 }
  + add element ip there known { 80 }
  - delete rule inet t in handle 7: tcp dport { 22, 80-89 } ct state new accept comment "r"
  - delete rule inet t in handle 10: ip saddr @nets jump CHAIN
  - delete rule inet t in handle 11: ip saddr . tcp dport vmap @ports
  - delete element inet t nets { 10.0.0.0/8 }
  - delete set inet t nets handle 4"#;
    // The kernel numbers chains that have no name.
    let nameless = lines[10].split(' ').nth(7).unwrap().to_owned();
    assert!(nameless.starts_with("__chain"), "{nameless}");
    let printed = lines.iter().map(|line| line.replace(&nameless, "CHAIN"));
    let printed: Vec<_> = printed.collect();
    assert_eq!(printed.join("\n"), expected, "{}", ran.out);

    let bytecode = end(bytecode).out;
    assert!(
        bytecode.contains(": [ meta load l4proto => reg 1 ]"),
        "{bytecode}"
    );
    assert!(bytecode.contains("{ 0x01020304 }"), "{bytecode}");
}

#[test]
fn diff_and_rollback_print_nft_syntax() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    tools.run_with("nft -f -", NATIVE);
    tools.run("iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT");
    let expected = r#"+ table inet t: comment "hello"
+ object inet t counter hits: comment "x"; packets 3 bytes 4
+ set inet t nets: type ipv4_addr; flags interval
+ element inet t nets: before 0.0.0.0
+ element inet t nets: from 1.2.3.4
+ element inet t nets: before 1.2.3.10
+ element inet t nets: from 10.0.0.0
+ element inet t nets: before 11.0.0.0
+ set inet t ports: typeof ip saddr . tcp dport : verdict
+ element inet t ports: 1.1.1.1 . 22 : jump web
+ chain inet t web: comment "c"
+ chain inet t in: type filter hook input priority filter + 5; policy drop
+ rule inet t in: tcp dport { 22, 80-89 } ct state new accept comment "r"
+ rule inet t in: ip saddr @nets jump { ip daddr 1.2.3.4 accept; }
+ rule inet t in: ip saddr . tcp dport vmap @ports
+ table ip filter
+ chain ip filter INPUT: type filter hook input priority filter; policy accept
+ rule ip filter INPUT: [0:0] -p tcp -m tcp --dport 22 -j ACCEPT
"#;
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let differs = run(&sandbox, &format!("diff {path}")).expect(1);
    assert_eq!(sorted(&differs.out), sorted(expected), "{}", differs.out);
    // Output for programs is unchanged.
    let bytecode = run(&sandbox, &format!("diff {path} --bytecode")).expect(1);
    let native = |out: &str| {
        let mut lines = out.lines().filter(|line| line.starts_with("+ rule inet t"));
        lines.next().unwrap().to_owned()
    };
    let first = native(&bytecode.out);
    assert!(first.contains("[ lookup reg 1 set __set0 0x0 ]"), "{first}");
    let json = run(&sandbox, &format!("diff {path} --json")).expect(1);
    let texts = json.each("new");
    assert!(
        texts
            .iter()
            .any(|new| first.ends_with(new.as_str().unwrap()))
    );

    let planned = run(&sandbox, &format!("apply --replace {path} --dry-run")).expect(0);
    for line in expected.lines() {
        let gone = line.replacen('+', "-", 1);
        assert!(planned.lines().contains(&&*gone), "{gone}\n{}", planned.out);
    }
    assert_eq!(planned.lines().last(), Some(&"nothing was done"));
    let planned = run(
        &sandbox,
        &format!("apply --replace {path} --dry-run --bytecode"),
    )
    .expect(0);
    assert!(planned.out.contains("[ lookup reg 1 set __set0 0x0 ]"));
    let done = run(&sandbox, &format!("apply --replace {path}")).expect(0);
    assert!(!done.out.contains("hello"), "{}", done.out);
    run(&sandbox, &format!("apply --replace {path} --bytecode")).expect(2);
}

/// Values of all types that have names.
const NAMED: &str = r#"table ip a {
	counter cc { packets 1 bytes 2; }
	quota qq { over 20 bytes; }
	limit ll { rate 5/second; }
	ct helper hh { type "ftp" protocol tcp; }
	ct timeout tt { protocol tcp; policy = { established : 100 }; }
	ct expectation ee { protocol tcp; dport 9876; timeout 2m; size 12; l3proto ip; }
	set s { type ipv4_addr; timeout 5m; gc-interval 3s; }
	set b { type ct_state; elements = { new, established }; }
	set tf { type tcp_flag; elements = { syn, ack }; }
	set cl { typeof tcp dport; elements = { 22, 80 }; }
	map pm { type inet_proto : verdict; elements = { tcp : accept }; }
	set d { type ipv4_addr; flags dynamic,timeout; size 128; }
	chain c {
		type filter hook input priority filter + 5; policy drop;
		tcp dport { 22, 80 } accept
		tcp dport 22-80 ip protocol { tcp, udp } accept
		meta l4proto tcp accept
		meta time "2024-01-01 00:00:00" accept
		meta day "Monday" accept
		ct state established,related accept
		ip dscp { af21, cs1 } ip ecn ect0
		icmp type { echo-request, echo-reply } icmp code 3
		tcp flags & (syn | ack) == syn accept
		tcp flags syn accept
		meta iiftype ether meta pkttype broadcast
		fib daddr type local fib daddr oif exists
		tcp option sack-permitted exists
		reject with icmp type host-unreachable
		ct status assured,seen-reply
		ct direction original
		rt classid cosmos
		limit rate 5/second burst 5 packets
		add @d { ip saddr timeout 5m }
	}
	chain d {
		ct expiration 30s
		tcp flags & (fin | syn | rst) == syn | rst
		ct state vmap { new : accept, invalid : drop }
		ct event set new,related
		tcp dport vmap { 22 : accept, 80-90 : drop }
		oifname "lo" meta l4proto { tcp, 200 }
		ip daddr . tcp dport { 1.2.3.4 . 22 }
		meter mm size 100 { ip saddr limit rate 3/second }
		meta skuid { 0, 1 } meta skgid 0-5
		meta skuid 0 meta skgid 1
		ct original protocol 6
		ct l3proto ipv4
	}
}
table arp x {
	chain c {
		arp operation request
	}
}
table inet b {
	counter cc { packets 1 bytes 2; }
	chain e { type filter hook forward priority 10; iifgroup default; }
}
"#;

/// With each of nft's options, in text and JSON.
#[test]
fn names_and_numbers_are_written_as_nft_writes_them() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", NAMED);
    let chainwright = |arguments: &str| {
        let work = || {
            let mut command = Command::new(PROGRAM);
            command.args(["--nft-version", "1.0"]);
            command.args(arguments.split_whitespace()).env("TZ", "UTC");
            command.output().unwrap()
        };
        Ran::from(sandbox.run(work).unwrap()).expect(0).out
    };
    let plain = chainwright("get ruleset ruleset");
    let mut differ = 0;
    for options in [
        "",
        "-n",
        "-y",
        "-p",
        "-T",
        "-u",
        "-S",
        "-n -a -s",
        "-p -T --terse",
        "-n -u -S",
    ] {
        let nfts = tools.run(&format!("nft {options} list ruleset"));
        let listed = chainwright(&format!("get ruleset {options} ruleset"));
        let (listed, real): (Vec<_>, Vec<_>) = (listed.lines().collect(), nfts.lines().collect());
        assert_eq!(listed, real, "{options}");
        differ += usize::from(nfts != plain);
    }
    assert_eq!(differ, 9);
    let objects = |text: &str| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        let objects = document["nftables"].as_array_mut().unwrap();
        objects.remove(0);
        // nft 1.0.6 prints that rules add to a set only in text.
        for object in objects {
            if let Some(flags) = object["set"]["flags"].as_array_mut() {
                flags.retain(|flag| flag != "dynamic");
            }
        }
        document
    };
    for options in ["", "-y", "-T", "-p"] {
        let nfts = tools.run(&format!("nft -j {options} list ruleset"));
        let listed = chainwright(&format!("get ruleset -j {options} ruleset"));
        assert_eq!(objects(&listed), objects(&nfts), "{options}");
    }
    for what in [
        "tables ip",
        "chains inet",
        "sets table ip a",
        "counters table inet b",
        "quotas table ip a",
        "limits table ip a",
        "ct helpers table ip a",
        "ct timeout a tt",
        "ct helper ip a hh",
        "meters",
        "meter ip a mm",
        "secmarks",
        "synproxys",
        "flowtables",
        "limits",
    ] {
        let nfts = tools.run(&format!("nft list {what}"));
        let listed = chainwright(&format!("get ruleset {what}"));
        let (listed, mut real): (Vec<_>, Vec<_>) =
            (listed.lines().collect(), nfts.lines().collect());
        let kinds = [
            "counters",
            "quotas",
            "limits",
            "secmarks",
            "synproxys",
            "ct ",
        ];
        if kinds.iter().any(|kind| what.starts_with(kind)) {
            // nft 1.0.6 also lists tables of objects of other types; 1.1 does not.
            while let Some(empty) = real
                .windows(2)
                .position(|two| two[0].ends_with('{') && two[1] == "}")
            {
                real.drain(empty..empty + 2);
            }
        }
        assert_eq!(listed, real, "{what}");
    }
    // nft 1.0.6 is killed by a signal here.
    for what in [
        "ct timeout table ip a",
        "ct timeouts table ip a",
        "ct timeouts ip",
    ] {
        let listed = chainwright(&format!("get ruleset {what}"));
        assert_eq!(listed, tools.run("nft list ct timeout ip a tt"), "{what}");
    }
    run(&sandbox, "get ruleset meter ip a cl").expect(1);
    run(&sandbox, "get ruleset chain table ip a").expect(2);
}

#[test]
fn iptables_rules_are_translated() {
    let (_directory, path) = file();
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -m recent --set\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\nCOMMIT\n";
    fs::write(&path, text).unwrap();
    let ran = run_here(&["convert", &path]).expect(1);
    let expected = "table ip filter {\n\tchain INPUT {\n\
                    \t\ttype filter hook input priority 0; policy drop;\n\
                    \t\t# -A INPUT -m recent --set: `-m recent --set --name DEFAULT --mask 255.255.255.255 --rsource` has no equivalent in nft's language\n\
                    \t\tip saddr 10.0.0.0/8 counter accept\n\t}\n}\n";
    assert_eq!(ran.out, expected);
    assert!(ran.err.contains("not translated: line 3: "), "{}", ran.err);
    let json = run_here(&["convert", "--json", &path]).expect(1);
    let back = run_here(&["convert", "--to", "iptables", "--json", "-"]).expect(0);
    json::check("translate", &[&json, &back]);
    fs::write(&path, text.replace("-A INPUT -m recent --set\n", "")).unwrap();
    assert_eq!(run_here(&["convert", &path]).expect(0).err, "");
    for (rule, printed) in [
        (
            "-A INPUT -j DROP",
            "add rule ip filter INPUT counter drop\n",
        ),
        (
            "-t nat -I POSTROUTING -s 10.0.0.1,10.0.0.2 -j MASQUERADE",
            "insert rule ip nat POSTROUTING ip saddr 10.0.0.1 counter masquerade\n\
             insert rule ip nat POSTROUTING ip saddr 10.0.0.2 counter masquerade\n",
        ),
        ("-p tcp --dport 22", "tcp dport 22 counter\n"),
    ] {
        assert_eq!(
            run_here(&["convert", "--rule", rule]).expect(0).out,
            printed
        );
    }
    let six = run_here(&["convert", "-6", "--rule=-s ::1 -j ACCEPT"]).expect(0);
    assert_eq!(six.out, "ip6 saddr ::1 counter accept\n");
    run_here(&["convert", "--rule=-A INPUT --nix"]).expect(2);
    run_here(&["convert", "--rule=-I INPUT 3 -j DROP"]).expect(2);
    // A value that nft's language cannot express.
    run_here(&["convert", "--rule=-A a:b -j DROP"]).expect(2);
    run_here(&["convert", "--rule=-t 'x; y' -A INPUT -j DROP"]).expect(2);
    run_here(&["convert", "/nowhere/at/all"]).expect(2);
}

/// What iptables-nft reads of an nft ruleset is printed as it saves it; the rest is named.
#[test]
fn nft_rulesets_are_saved_in_iptables_syntax() {
    let (_directory, path) = file();
    let tables = "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority 0; policy drop;\n\
        \t\tip saddr 10.0.0.0/8 iifname \"eth0\" tcp dport 22 counter packets 1 bytes 60 accept\n\
        \t\tmeta mark & 0x4000 == 0x4000 counter packets 0 bytes 0 jump LOCAL\n\t}\n\n\
        \tchain LOCAL {\n\t\ticmp type echo-request limit rate 5/second burst 5 packets counter packets 0 bytes 0 drop\n\t}\n}\n";
    fs::write(&path, tables).unwrap();
    let ran = run_here(&["convert", "--to", "iptables", &path]).expect(0);
    assert_eq!(ran.err, "");
    // As the real tool prints it.
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(tables);
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(words(&ran.out), words(&tools.save("iptables-nft-save -c")));

    let more = format!(
        "{tables}table inet firewall {{ }}\ntable ip filter {{ chain web {{ tcp dport {{ 80, 443 }} accept; }}; }}\n"
    );
    fs::write(&path, &more).unwrap();
    let ran = run_here(&["convert", "--to", "iptables", &path]).expect(1);
    assert!(
        ran.out
            .starts_with("# table inet firewall, which iptables does not have\n# Generated"),
        "{}",
        ran.out.lines().next().unwrap()
    );
    assert!(
        ran.out.contains("#   tcp dport { 80, 443 } accept\n"),
        "{}",
        ran.out
    );
    assert!(
        ran.err.contains("iptables cannot express 1 rule\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("iptables does not have a table inet firewall\n"),
        "{}",
        ran.err
    );
    let json = run_here(&["convert", "--to", "iptables", "--json", &path]).expect(1);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        json["omitted"],
        serde_json::json!({"rules": 1, "chains": 0, "private": 0, "tables": ["inet firewall"]})
    );
    // Nothing belongs to IPv6.
    let six = run_here(&["convert", "-6", "--to", "iptables", &path]).expect(1);
    assert_eq!(six.out.lines().count(), 2, "{}", six.out);

    // A ruleset that cannot be created in an empty namespace, and a text that is no ruleset.
    fs::write(&path, "add rule ip filter INPUT accept\n").unwrap();
    let ran = run_here(&["convert", "--to", "iptables", &path]).expect(2);
    assert!(ran.err.contains(":1:"), "{}", ran.err);
    fs::write(&path, "table ip filter {\n\tchain\n").unwrap();
    run_here(&["convert", "--to", "iptables", &path]).expect(2);
}

/// The output of `nft --echo --handle`, except for the places of handles of sets and objects,
/// semicolons, comments of chains, and chains without names, which nft prints twice.
#[test]
fn apply_prints_the_same_echo_as_nft() {
    let (sandbox, other) = (sandbox(), sandbox());
    let others = Tools::new(&other);
    let (_directory, path) = file();
    // nft loads the same text in another sandbox: the handles are equal.
    let both = |text: &str| {
        fs::write(&path, text).unwrap();
        let real = others.run(&format!("nft -e -a -f {path}"));
        let chainwright = run(&sandbox, &format!("apply -e -a {path}")).expect(0).out;
        (chainwright, real)
    };
    // The words without the exceptions above.
    let bare = |text: &str| {
        let mut lines = Vec::<String>::new();
        for line in text.lines() {
            if line.starts_with("# new generation") || line.contains(" __chain") {
                continue;
            }
            let mut words: Vec<&str> = line
                .split([' ', ';'])
                .filter(|word| !word.is_empty())
                .collect();
            if let Some(at) = words.windows(2).position(|two| two == ["#", "handle"]) {
                let handle: Vec<_> = words.drain(at..at + 3).collect();
                words.extend(handle);
            }
            lines.push(words.join(" "));
        }
        lines
    };
    let uncommented = |text: &str| text.replace(" { comment \"c\"; }", "");
    let stateless = NATIVE.replace("\tcomment \"hello\"\n", "");
    for text in [
        &*stateless,
        "add element inet t nets { 12.3.3.3-12.3.3.9, 12.4.0.0/16, 255.255.255.255 }\n",
        "insert rule inet t web ct state established,related accept\n",
        "add rule inet t web tcp dport { 1, 2 } ip saddr @nets log prefix \"a b\" drop\n",
        "add table ip u { flags dormant; }\nadd quota ip u q over 20 bytes\n\
         add set ip u s { type ipv4_addr; timeout 5m; size 9; comment \"hi\"; }\n\
         add limit ip u l rate 5/second\nadd map ip u m { type inet_service : ifname; counter; }\n\
         add element ip u m { 22 : \"lo\" }\nadd counter ip u n\n",
    ] {
        let (chainwright, real) = both(text);
        assert!(!chainwright.is_empty());
        assert_eq!(
            bare(&uncommented(&chainwright)),
            bare(&real),
            "{chainwright}"
        );
    }
    let third = crate::common::sandbox();
    let ran = {
        fs::write(&path, &stateless).unwrap();
        run(&third, &format!("apply --echo {path}")).expect(0)
    };
    assert!(!ran.out.contains("# handle"));
    let lines: Vec<_> = ran.lines();
    assert_eq!(lines.len(), 14, "{}", ran.out);
    let json = run(&third, &format!("apply --echo --json {path}")).expect(0);
    let planned = run(&third, &format!("apply --dry-run --json {path}")).expect(0);
    json::check("apply", &[&json, &planned]);
    // With -j, as the document of libnftables.
    fs::write(
        &path,
        r#"{"nftables": [{"add": {"chain": {"family": "inet", "table": "t", "name": "new"}}}]}"#,
    )
    .unwrap();
    let document = run(&third, &format!("apply -j -e {path}")).expect(0).out;
    let begin = r#"{"nftables": [{"add": {"chain": {"family": "inet", "table": "t", "name": "new", "handle": "#;
    assert!(document.starts_with(begin), "{document}");
    // A query is not a change.
    fs::write(&path, "add table inet v\nlist tables\n").unwrap();
    let refused = run(&third, &format!("apply {path}")).expect(2);
    assert!(
        refused.err.contains(":2:1: a listing cannot be part"),
        "{}",
        refused.err
    );
    assert!(
        !run(&third, "get ruleset tables")
            .expect(0)
            .out
            .contains("inet v")
    );
    // A command that changes nothing prints nothing.
    fs::write(&path, "add table inet t\n").unwrap();
    assert_eq!(run(&third, &format!("apply -e {path}")).expect(0).out, "");
}
