//! Commands: what they change, also after earlier ones in the same text.

use super::*;

/// One after the other, as an operator types them.
const COMMANDS: &[&str] = &[
    "add table ip t",
    "add table inet other { comment \"x\"; chain c { accept; }; }",
    "add chain ip t c { type filter hook input priority 0; policy accept; }",
    "add chain ip t d",
    "add rule ip t c ip saddr 192.0.2.1 accept comment \"first\"",
    "add rule ip t c ip saddr 192.0.2.2 counter packets 3 bytes 4 drop",
    "insert rule ip t c ip saddr 192.0.2.3 jump d",
    "add rule ip t c index 1 ip saddr 192.0.2.4 accept",
    "insert rule ip t c index 1 ip saddr 192.0.2.5 accept",
    "add set ip t s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }",
    "add map ip t m { type inet_service : verdict; }",
    "add element ip t s { 192.168.0.0/16, 172.16.0.1-172.16.0.9 }",
    "create element ip t m { 22 : accept, 80 : jump d }",
    "add rule ip t c ip saddr @s tcp dport vmap @m",
    "delete element ip t s { 192.168.0.0/16 }",
    "create element ip t s { 192.168.0.0/16 }",
    "create element ip t s { 192.168.0.0/16 }",
    "add set ip t r { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8, 20.0.0.0/8 } }",
    "add element ip t r { 10.5.0.0/16 }",
    "add element ip t r { 11.0.0.0/8, 30.0.0.0/8 }",
    "create element ip t r { 12.0.0.0-21.4.4.4 comment \"joined\" }",
    "add element ip t r { 40.0.0.0/8 }\nadd element ip t r { 41.0.0.0/8 }\nadd element ip t r { 39.0.0.0-41.0.0.5 }",
    "delete element ip t r { 30.0.0.0/8 }\nadd element ip t r { 31.0.0.0/8 }",
    "flush set ip t r\nadd element ip t r { 31.0.0.0/8 }",
    "add element ip t r { 255.0.0.0/8, 0.0.0.0/8 }",
    "add element ip t r { 1.0.0.0-254.255.255.255 }",
    "flush set ip t r",
    "add element ip t r { 10.0.0.15-10.0.0.30, 10.0.0.50-10.0.0.60 }",
    "add element ip t r { 10.0.0.10-10.0.0.20, 10.0.0.12-10.0.0.100 }",
    "add table ip again { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }\n}\n}",
    "add table ip again { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 12.0.0.0/8 }\n}\n}",
    "delete table ip again",
    "add table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 10-20, 40-50 }\n}\n}",
    "add table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 15-30, 51 }\n}\n}",
    "add set ip joins s { type inet_service; flags interval; auto-merge; elements = { 12-45 } }\nadd element ip joins s { 60 }",
    "delete set ip joins s\nadd set ip joins s { type inet_service; flags interval; auto-merge; elements = { 40-70 } }",
    "delete table ip joins\nadd table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 5-60 }\n}\n}",
    "flush set ip joins s\nadd set ip joins s { type inet_service; flags interval; auto-merge; elements = { 61-70 } }",
    "delete table ip joins",
    "add counter ip t k { packets 5 bytes 6 }",
    "add quota ip t q { over 10 mbytes; }",
    "add rule ip t d counter name \"k\" quota name \"q\"",
    "add limit ip t l { rate 5/second burst 7 packets; }",
    "rename chain ip t d e",
    "flush set ip t s",
    "flush map ip t m",
    "add chain ip t c { policy drop; }",
    "delete counter ip t k",
    "flush chain ip t e",
    "delete counter ip t k",
    "replace rule ip t c handle 5 ip saddr 192.0.2.9 accept",
    "delete rule ip t c handle 5",
    "flush table ip t",
    "delete map ip t m",
    "delete chain ip t e",
    "add table ip t { flags dormant; }",
    "flush table inet other",
    "delete table inet other",
    "delete table inet other",
    "add table ip dyn { set s { type ipv4_addr; }\nchain c { add @s { ip saddr }\n}\n}",
    "add set ip dyn plain { type ipv4_addr; }",
    "add set ip dyn plain { type ipv4_addr; }\nadd rule ip dyn c update @plain { ip saddr }",
    "add set ip dyn d { type ipv4_addr; }\nadd chain ip dyn e\ninsert rule ip dyn e delete @d { ip saddr }",
    "delete table ip dyn\nadd table ip dyn { set plain { type ipv4_addr; }\nchain c { add @plain { ip saddr }\n}\n}",
    "add set ip dyn timed { type ipv4_addr; timeout 30d; elements = { 192.0.2.1 timeout 0s } }",
    "add element ip dyn timed { 192.0.2.2 timeout 0s }\nadd rule ip dyn c update @timed { ip daddr timeout 0s }",
    "add table ip dyn { set inner { type ipv4_addr; }\nchain d { jump { update @inner { ip daddr }\n}\n}\n}",
    "delete table ip dyn",
    "add table ip6 u\nadd chain ip6 u c\ndelete table ip t",
    "flush ruleset",
];

/// Each command has the same effect as with nft, and is refused if nft refuses it.
#[test]
fn commands_match_nft() {
    let (real, chainwright) = (sandbox(), sandbox());
    let tools = Tools::new(&real);
    let mut nft = connect(&chainwright);
    let mut refused = 0;
    for command in COMMANDS {
        let of_nft = tools.takes("nft -f -", format!("{command}\n"));
        let of_us = apply(&chainwright, &mut nft, command);
        assert_eq!(
            of_nft.is_ok(),
            of_us.is_ok(),
            "{command}: {of_nft:?} {of_us:?}"
        );
        refused += usize::from(of_nft.is_err());
        if let Err(differs) = compare(&real, &chainwright, false) {
            panic!("{command}: {differs}");
        }
    }
    assert!((2..7).contains(&refused), "{refused}");
}

/// Constant changes by another program delay a script that depends on the current ruleset, but do not make it fail.
#[test]
fn a_script_uses_the_retry_policy_of_its_connection() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox).with_retry(Retry::FOREVER);
    let base = "add table ip t\nadd chain ip t c\nadd rule ip t c accept\nadd table ip rival";
    apply(&sandbox, &mut nft, base).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rival = connect(&sandbox);
            let mut tx = Transaction::new();
            let chain = Chain::new(Family::IP, "rival", "c");
            tx.add(&chain).unwrap().delete(&chain).unwrap();
            while !done.load(Ordering::Relaxed) {
                rival.commit(&tx).unwrap();
            }
        });
        let _end = OnDrop(|| done.store(true, Ordering::Relaxed));
        for _ in 0..10 {
            let script = Script::parse("-", "insert rule ip t c index 0 drop").unwrap();
            script
                .run(&mut nft, RunMode::Commit, &Options::here())
                .unwrap();
        }
    });
    let text = Tools::new(&sandbox).run("nft list chain ip t c");
    assert_eq!(text.matches("drop").count(), 10, "{text}");
}

/// Tunnel objects, which nft 1.0.6 does not support: listed like newer versions, accepted by the kernel, and recreated
/// from the listing.
#[test]
fn tunnels_are_created_and_listed() {
    const TUNNELS: &[&str] = &[
        "id 10\nip saddr 192.168.2.10\nip daddr 192.168.2.11\nttl 255",
        "id 4294967295\nip saddr 0.0.0.0\nip daddr 192.168.2.11\nsport 10\ndport 4789\ntos 4\nttl 64",
        "id 1\nip6 saddr fd00::1\nip6 daddr fd00::2\nsport 10\ndport 20\nttl 0",
        "id 2\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\nvxlan {\n\tgbp 200\n}",
        "id 3\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\nerspan {\n\tversion 1\n\tindex 2\n}",
        "id 4\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\n\
         erspan {\n\tversion 2\n\tdirection egress\n\tid 7\n}",
        "id 5\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\n\
         geneve {\n\tclass 0x1010 opt-type 0x1 data \"0x01020304\"\n\
         \tclass 0x2 opt-type 0x22 data \"0x0000000000000000\"\n}",
    ];
    for entries in TUNNELS {
        let entries: String = entries
            .lines()
            .map(|line| format!("\t\t{line}\n"))
            .collect();
        let text = format!(
            "table netdev t {{\n\ttunnel x {{\n\t\tcomment \"some\"\n{entries}\t}}\n\n\
             \tchain c {{\n\t\ttunnel name \"x\"\n\t}}\n}}\n"
        );
        let (first, again) = (sandbox(), sandbox());
        let listed = |sandbox: &Sandbox| {
            let snapshot = connect(sandbox).snapshot(Scope::all()).unwrap();
            Listing::new(&snapshot, &Options::default()).to_string()
        };
        apply(&first, &mut connect(&first), &text).unwrap_or_else(|error| panic!("{text}{error}"));
        assert_eq!(listed(&first), text);
        apply(&again, &mut connect(&again), &listed(&first)).unwrap();
        crate::common::scripts::compare_objects(&first, &again).unwrap();
        let script = Script::parse("script", "list tunnels; list tunnel netdev t x").unwrap();
        for query in script.queries() {
            let answer = query.answer(&mut connect(&first)).unwrap();
            let (before, behind) = text.split_once("\n\tchain c").unwrap();
            assert!(behind.ends_with("\t}\n}\n"));
            assert_eq!(
                answer.listing(&Options::default()).to_string(),
                format!("{before}}}\n")
            );
        }
        // In one line, as a command; and deleted again.
        let words = text
            .lines()
            .skip(2)
            .take_while(|line| *line != "\t}")
            .collect::<Vec<_>>();
        let words = words.join(";").replace("{;", "{ ").replace(";\t\t}", "; }");
        let command = format!("add tunnel netdev t y {{ {words}; }}\n");
        apply(&first, &mut connect(&first), &command)
            .unwrap_or_else(|error| panic!("{command}{error}"));
        let both = listed(&first);
        let body = |name: &str| {
            both.split_once(&format!("tunnel {name} {{\n"))
                .unwrap()
                .1
                .split_once("\t}\n")
                .unwrap()
                .0
                .to_owned()
        };
        assert_eq!(body("y"), body("x"));
        apply(&first, &mut connect(&first), "delete tunnel netdev t y").unwrap();
        assert_eq!(listed(&first), text);
    }
}

/// Texts that count rules, and the marks that the rules of the chains `c` and `d` match afterwards, in order. nft 1.1.7
/// gives the same results except for the last, where it counts a rule that the same text flushed.
const COUNTED: &[(&str, &[u32], &[u32])] = &[
    (
        "insert rule ip t c index 0 mark 100\ninsert rule ip t c index 1 mark 101",
        &[100, 101, 1, 2],
        &[11, 12],
    ),
    (
        "add rule ip t c index 0 mark 100\nadd rule ip t c index 1 mark 101\nadd rule ip t c index 1 mark 102",
        &[1, 100, 102, 101, 2],
        &[11, 12],
    ),
    (
        "add rule ip t c mark 3\ninsert rule ip t c index 2 mark 100",
        &[1, 2, 100, 3],
        &[11, 12],
    ),
    (
        "insert rule ip t c mark 3\nadd rule ip t c index 0 mark 100",
        &[3, 100, 1, 2],
        &[11, 12],
    ),
    (
        "delete rule ip t c handle 2\ninsert rule ip t c index 0 mark 100",
        &[100, 2],
        &[11, 12],
    ),
    (
        "destroy rule ip t c handle 2\ninsert rule ip t c index 0 mark 100",
        &[100, 2],
        &[11, 12],
    ),
    (
        "destroy rule ip t c handle 99\ninsert rule ip t c index 1 mark 100",
        &[1, 100, 2],
        &[11, 12],
    ),
    (
        "replace rule ip t c handle 2 mark 200\nadd rule ip t c index 0 mark 100",
        &[200, 100, 2],
        &[11, 12],
    ),
    (
        "replace rule ip t c handle 2 mark 200\ninsert rule ip t c index 0 mark 100",
        &[100, 200, 2],
        &[11, 12],
    ),
    (
        "flush chain ip t c\nadd rule ip t c mark 55\ninsert rule ip t c index 0 mark 100",
        &[100, 55],
        &[11, 12],
    ),
    (
        "flush chain ip t c\ninsert rule ip t c index 0 mark 100",
        &[100],
        &[11, 12],
    ),
    (
        "flush chain ip t c\nadd rule ip t c index 1 mark 100",
        &[100],
        &[11, 12],
    ),
    (
        "delete chain ip t c\nadd chain ip t c\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[11, 12],
    ),
    (
        "flush ruleset\nadd table ip t\nadd chain ip t c\nadd chain ip t d\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[],
    ),
    (
        "delete table ip t\nadd table ip t\nadd chain ip t c\nadd chain ip t d\nadd rule ip t c mark 5\ninsert rule ip t c index 0 mark 6",
        &[6, 5],
        &[],
    ),
    (
        "table ip t { chain c { mark 7; }; }\nadd rule ip t c index 2 mark 6\ninsert rule ip t c position 2 mark 8\n\
         add rule ip t c index 0 mark 9\ninsert rule ip t c mark 1000\ninsert rule ip t c index 1 mark 1001",
        &[1000, 1001, 8, 9, 1, 2, 7, 6],
        &[11, 12],
    ),
    (
        "add rule ip t c position 3 mark 5\nadd rule ip t c handle 3 mark 6\ninsert rule ip t c index 3 mark 7",
        &[1, 2, 6, 7, 5],
        &[11, 12],
    ),
    (
        "insert rule ip t c index 0 mark 6; insert rule ip t d index 1 mark 7; insert rule ip t c index 1 mark 8; \
         insert rule ip t d index 2 mark 9",
        &[6, 8, 1, 2],
        &[11, 7, 9, 12],
    ),
    (
        "delete table inet u\nadd table inet u\nadd chain inet u c\nadd rule inet u c mark 1\n\
         insert rule inet u c index 0 mark 2\ninsert rule ip t c index 1 mark 3",
        &[1, 3, 2],
        &[11, 12],
    ),
    (
        "rename chain ip t d e\nrename chain ip t e2 d\ninsert rule ip t d index 1 mark 3",
        &[1, 2],
        &[],
    ),
    (
        "flush table ip t\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[],
    ),
];

/// The initial rules for [`COUNTED`].
const COUNTED_BASE: &str = "add table ip t; add chain ip t c; add rule ip t c mark 1; add rule ip t c mark 2; \
    add chain ip t d; add rule ip t d mark 11; add rule ip t d mark 12; add chain ip t e2; \
    add table inet u; add chain inet u c; add rule inet u c mark 71";

/// The marks that the rules of a chain match.
fn marks(listing: &str, chain: &str) -> Vec<u32> {
    let lines = listing
        .lines()
        .skip_while(|line| *line != format!("\tchain {chain} {{"));
    lines
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("meta mark 0x"))
        .map(|mark| u32::from_str_radix(mark, 16).unwrap())
        .collect()
}

/// `index N` counts the rules of a chain after the preceding commands.
#[test]
fn rule_indexes_follow_earlier_commands() {
    let failures: Vec<String> = COUNTED
        .iter()
        .filter_map(|(text, c, d)| {
            let sandbox = sandbox();
            let mut nft = connect(&sandbox);
            let options = Options::here();
            let run = |nft: &mut Connection, text: &str, mode| {
                let script = Script::parse("text", text).unwrap();
                script.run(nft, mode, &options)
            };
            run(&mut nft, COUNTED_BASE, RunMode::Commit).unwrap();
            let list = || Tools::new(&sandbox).run("nft list table ip t");
            let before = list();
            if text.contains("rename") {
                // The kernel uses a chain's old name until the transaction ends.
                let error = run(&mut nft, text, RunMode::Commit).unwrap_err();
                assert!(matches!(error, RunError::Refused { .. }), "{text}: {error}");
                return None;
            }
            let checked = run(&mut nft, text, RunMode::Check).map_err(|error| error.to_string());
            let unchanged = list() == before;
            let done = run(&mut nft, text, RunMode::Echo).map_err(|error| error.to_string());
            let after = list();
            let made = (marks(&after, "c"), marks(&after, "d"));
            let is_right = checked.is_ok() && unchanged && made == (c.to_vec(), d.to_vec());
            (!is_right).then(|| format!("{text}\n{made:?} {checked:?} {:?}", done.err()))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// If the rule with that index does not exist, nothing is changed.
#[test]
fn rule_indexes_must_exist() {
    for text in [
        "insert rule ip t c index 2 mark 3",
        "add rule ip t c index 2 mark 3",
        "delete rule ip t c handle 2\nadd rule ip t c index 1 mark 3",
        "add rule ip t c mark 3\ninsert rule ip t c index 3 mark 4",
        "flush chain ip t c\nadd rule ip t c mark 3\nadd rule ip t c index 1 mark 4",
        "flush chain ip t c\nadd rule ip t c index 2 mark 4",
        "add chain ip t n\nadd rule ip t n index 0 mark 3",
        "delete chain ip t c\nadd chain ip t c\nadd rule ip t c index 0 mark 3",
        "flush ruleset\nadd table ip t\nadd chain ip t c\nadd rule ip t c index 0 mark 3",
    ] {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        apply(&sandbox, &mut nft, COUNTED_BASE).unwrap();
        let before = Tools::new(&sandbox).run("nft list ruleset");
        let error = apply(&sandbox, &mut nft, text).unwrap_err();
        assert!(
            error.contains("the chain has no rule at index"),
            "{text}: {error}"
        );
        assert_eq!(Tools::new(&sandbox).run("nft list ruleset"), before);
    }
}

/// Deletions that name devices, the remaining devices of existing chains, and the messages for flowtables, which this
/// kernel may lack. The bytes are those of nft 1.1.7, except for `destroy flowtable`, with which that version destroys
/// the whole flowtable.
#[test]
fn deleting_devices_keeps_the_chain() {
    const BASE: &str = "add table inet t; add chain inet t c { type filter hook ingress devices = { d0, d1 } priority 0; }; \
        add rule inet t c mark 1; add table netdev t; \
        add chain netdev t c { type filter hook ingress devices = { d0, d1 } priority 0; }; add rule netdev t c mark 1; \
        add chain netdev t e { type filter hook egress devices = { d0, d1 } priority 0; }";
    let both = ["d0 d1"; 3];
    // The text, and the devices of the three chains; `None` if it is refused.
    let cases: &[(&str, Option<&[&str; 3]>)] = &[
        (
            "delete chain inet t c { type filter hook ingress devices = { d0 } priority 0; }",
            Some(&["d1", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress device d1 priority 0; }",
            Some(&["d0", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress device \"d1\" priority filter; policy drop; }",
            Some(&["d0", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d0, d1 } priority 5; }",
            Some(&["", both[1], both[2]]),
        ),
        (
            "delete chain netdev t c { type filter hook ingress devices = { d1 } priority 0; }",
            Some(&[both[0], "d0", both[2]]),
        ),
        (
            "delete chain netdev t c { devices = { d1 }; }",
            Some(&[both[0], "d0", both[2]]),
        ),
        (
            "delete chain netdev t e { type filter hook egress device d0 priority 0; }",
            Some(&[both[0], both[1], "d1"]),
        ),
        (
            "delete chain netdev t e { type filter hook egress device d0 priority 0; }\ndelete chain inet t c { type filter hook ingress device d0 priority 0; }",
            Some(&["d1", both[1], "d1"]),
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d2 } priority 0; }",
            None,
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d0, d2 } priority 0; }",
            None,
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { } priority 0; }",
            None,
        ),
        ("delete chain inet t c { devices = { d0 }; }", None),
        (
            "destroy chain netdev t c { type filter hook ingress devices = { d0 } priority 0; }",
            None,
        ),
        (
            "destroy chain inet t c { type filter hook ingress device d0 priority 0; }",
            None,
        ),
    ];
    for (text, expected) in cases {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        for device in ["d0", "d1", "d2"] {
            tools.run(&format!(
                "ip link add {device} type veth peer name {device}p"
            ));
        }
        let mut nft = connect(&sandbox);
        apply(&sandbox, &mut nft, BASE).unwrap();
        let before = tools.run("nft list ruleset");
        let script = Script::parse("text", text);
        if let (Ok(script), Some(_)) = (&script, expected) {
            script
                .run(&mut nft, RunMode::Check, &Options::here())
                .unwrap();
            assert_eq!(tools.run("nft list ruleset"), before, "{text}");
        }
        let result = script
            .map_err(|error| error.to_string())
            .and_then(|script| {
                let done = script.run(&mut nft, RunMode::Echo, &Options::here());
                done.map(|_| ()).map_err(|error| error.to_string())
            });
        assert_eq!(result.is_ok(), expected.is_some(), "{text}: {result:?}");
        let Some(expected) = expected else {
            assert_eq!(tools.run("nft list ruleset"), before, "{text}");
            continue;
        };
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let listing = Listing::new(&snapshot, &Options::default()).to_string();
        let chains = listing
            .lines()
            .filter(|line| line.contains("type filter hook"));
        let devices: Vec<String> = chains
            .map(|line| {
                let (_, rest) = line.split_once(" device").unwrap_or_default();
                let names = rest.split(|c: char| !c.is_alphanumeric());
                let is_name = |name: &&str| name.len() == 2 && name.starts_with('d');
                let mut names: Vec<_> = names.filter(is_name).collect();
                names.sort();
                names.join(" ")
            })
            .collect();
        assert_eq!(devices, **expected, "{text}: {listing}");
        let listing = tools.run("nft list ruleset");
        assert_eq!(listing.matches("meta mark").count(), 2, "{text}: {listing}");
    }
    const NAMED: &str = "06000100740000000600020066000000";
    const OF_D0: &str = "100003800c0003800700010064300000";
    for (text, message, hook) in [
        (
            "delete flowtable inet t f { hook ingress priority 0; devices = { d0 }; }",
            0xa18_u16,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { hook ingress priority 5; devices = { d0 }; counter; }",
            0xa18,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { devices = { d0 }; }",
            0xa18,
            OF_D0,
        ),
        (
            "destroy flowtable inet t f { hook ingress priority 0; devices = { d0 }; }",
            0xa20,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { hook ingress priority 0; }",
            0xa18,
            "",
        ),
        ("destroy flowtable inet t f { }", 0xa20, ""),
        ("delete flowtable inet t f", 0xa18, ""),
    ] {
        let script = Script::parse("text", text).unwrap();
        let change = script.transaction(None).unwrap();
        let sent = change.transaction().as_bytes();
        let message = message.to_ne_bytes();
        assert!(
            sent.windows(2).any(|each| each == message),
            "{text}: {sent:02x?}"
        );
        let hex: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(hex.ends_with(&format!("{NAMED}{hook}")), "{text}: {hex}");
    }
    assert!(Script::parse("text", "delete flowtable inet t f { devices = { }; }").is_err());
}
