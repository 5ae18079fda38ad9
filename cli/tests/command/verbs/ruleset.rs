//! The verbs that list, save and compare whole rulesets: `rules`, `sets`, `backup`, `rollback`,
//! `diff`.

#[path = "ruleset/kept.rs"]
mod kept;

use std::path::PathBuf;

use chainwright::nft::{Devices, Element, Flowtable, Scope};
use chainwright_testing::FakeKernel;
use sha2::Digest;

use super::*;
use crate::common::kernel;
use crate::common::tools::Tools;

/// Sets, maps and rules of many kinds; the tests contain what nft 1.0.6 prints for them.
const RULESET: &str = "\
table ip t {
    set ranges { type ipv4_addr; flags interval
        elements = { 10.0.0.0/8, 192.168.1.1-192.168.1.5, 250.0.0.0-255.255.255.255 }
    }
    set marks { type mark; flags interval; elements = { 5-10, 0x100-0x1ff }; }
    set both { type ipv4_addr . inet_service; flags interval; comment \"hi\"
        elements = { 10.0.0.0/8 . 80-90 comment \"x\" }
    }
    map verdicts { type ifname : verdict; elements = { \"eth0\" : jump d, \"lo\" : accept }; }
    set names { type ifname; flags interval; elements = { \"eth*\", \"lo\" }; }
    map values { type ether_addr : ipv6_addr; elements = { 02:00:00:00:00:0a : fe80::1 }; }
    set passing { type inet_proto . mark; flags timeout; timeout 1h; size 9; }
    set sized { typeof tcp option maxseg size; elements = { 1460 }; }
    chain c {
        ip saddr { 1.2.3.4, 2.3.4.5 } counter packets 3 bytes 4 accept comment \"a b\"
    }
    chain d { tcp dport 22 drop; }
    chain empty { type filter hook input priority -5; }
}
table ip6 t { chain c { ip6 saddr ::1 accept; }; }
table ip filter {
    chain INPUT { type filter hook input priority 0; policy accept; }
}
";

/// Returns a sandbox with [`RULESET`] and two iptables rules.
fn loaded() -> Sandbox {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with("nft -f -", RULESET);
    tools.run("iptables-nft -A INPUT -s 10.1.0.0/16 -i eth0 -j DROP");
    tools.run("iptables-nft -A INPUT -m comment --comment ssh -p tcp --dport 22 -j ACCEPT");
    sandbox
}

/// Returns the words of a line, separated by one blank.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the bytecode that `nft` prints before its listing.
fn bytecode(sandbox: &Sandbox, what: &str) -> String {
    let both = Tools::new(sandbox).run(&format!("nft --debug=netlink list {what}"));
    let end = both
        .find("\ntable ")
        .expect("the bytecode precedes a listing");
    both[..=end].to_owned()
}

/// Returns a directory, and the path of a file in it.
pub(super) fn file() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("kept");
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn apply_is_atomic() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (_directory, path) = file();
    std::fs::write(&path, RULESET).unwrap();
    // Check only.
    let planned = run(&sandbox, &format!("apply --check {path}")).expect(0);
    assert!(
        planned.out.ends_with("\nnothing was done\n"),
        "{}",
        planned.out
    );
    assert_eq!(tools.run("nft list ruleset"), "");
    assert_eq!(run(&sandbox, &format!("apply {path}")).expect(0).out, "");
    let other = crate::common::sandbox();
    Tools::new(&other).run_with("nft -f -", RULESET);
    let made = tools.run("nft -s list ruleset");
    assert_eq!(made, Tools::new(&other).run("nft -s list ruleset"));
    // With sets that exist.
    std::fs::write(
        &path,
        "add element ip t marks { 0x1000 }\nadd rule ip t d tcp dport . ip saddr @both\n",
    )
    .unwrap();
    let ran = run(&sandbox, &format!("apply {path}")).expect(2);
    assert!(ran.err.contains(":2:"), "{}", ran.err);
    assert!(
        ran.err
            .contains("the set's keys are `ipv4_addr . inet_service`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("nothing was changed"), "{}", ran.err);
    assert_eq!(tools.run("nft -s list ruleset"), made);
    std::fs::write(
        &path,
        "add element ip t marks { 0x1000 }\nadd rule ip t d ip saddr . tcp dport @both\n",
    )
    .unwrap();
    let ran = run(&sandbox, &format!("apply --json {path}")).expect(0);
    assert!(ran.out.contains("\"operations\":2"), "{}", ran.out);
    let listed = tools.run("nft list ruleset");
    assert!(
        listed.contains("0x00001000") && listed.contains("tcp dport @both"),
        "{listed}"
    );
    // An error of the kernel shows the position in the input.
    std::fs::write(&path, "add chain ip t e\nadd rule ip t nowhere accept\n").unwrap();
    let ran = run(&sandbox, &format!("apply {path}")).expect(2);
    assert!(ran.err.contains(":2:"), "{}", ran.err);
    assert!(
        ran.err.contains("rejected by the kernel: ENOENT"),
        "{}",
        ran.err
    );
    assert_eq!(tools.run("nft list ruleset"), listed);
    // Errors in the text itself.
    std::fs::write(
        &path,
        "table ip t {\n\tchain d {\n\t\ttcp dprot 22 accept\n\t}\n}\n",
    )
    .unwrap();
    let ran = run(&sandbox, &format!("apply {path}")).expect(2);
    assert!(ran.err.contains(":3:7: "), "{}", ran.err);
    assert!(ran.err.contains("did you mean `dport`?"), "{}", ran.err);
}

#[test]
fn libnftables_json_is_applied_as_text_is() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let (_directory, path) = file();
    let other = crate::common::sandbox();
    let text = "table ip t {
        set s { type ipv4_addr; elements = { 192.0.2.1 }; }
        map m { type inet_service : verdict; elements = { 22 : jump d }; }
        chain c { type filter hook input priority 0; ip saddr @s tcp dport vmap @m; }
        chain d { counter accept comment \"in\"; }
    }";
    Tools::new(&other).run_with("nft -f -", text);
    // The output of `list`.
    std::fs::write(&path, run(&other, "get ruleset -j ruleset").expect(0).out).unwrap();
    assert_eq!(run(&sandbox, &format!("apply -j {path}")).expect(0).out, "");
    let made = tools.run("nft -s list ruleset");
    assert_eq!(made, Tools::new(&other).run("nft -s list ruleset"));
    // Errors in the text and errors of the kernel show their position, and nothing is changed.
    for (json, place, why) in [
        (
            "{\"nftables\": [\n  {\"add\": {\"table\": {\"family\": \"ip\", \"nmae\": \"x\"}}}\n]}",
            ":2:38: ",
            "did you mean `name`?",
        ),
        (
            "{\"nftables\": [\n  {\"add\": {\"chain\": {\"family\": \"ip\", \"table\": \"x\", \"name\": \"y\"}}}\n]}",
            ":2:12: ",
            "rejected by the kernel: ENOENT",
        ),
    ] {
        std::fs::write(&path, json).unwrap();
        let ran = run(&sandbox, &format!("apply -j {path}")).expect(2);
        for message in [place, why, "nothing was changed"] {
            assert!(ran.err.contains(message), "{}", ran.err);
        }
    }
    assert_eq!(tools.run("nft -s list ruleset"), made);
    // JSON has no includes.
    run(&sandbox, &format!("apply -j -I / {path}")).expect(2);
}

#[test]
fn rules_are_listed_under_their_chains() {
    let sandbox = loaded();
    let ran = run(&sandbox, "get rules").expect(0);
    let lines: Vec<_> = ran.lines().into_iter().map(words).collect();
    let chains: Vec<_> = lines.iter().filter(|l| l.starts_with("nft ")).collect();
    let listed = run(&sandbox, "get chains --backend nft --rules").expect(0);
    let listed: Vec<_> = listed.lines().into_iter().map(words).collect();
    assert_eq!(chains, listed.iter().collect::<Vec<_>>());

    let below = |chain: &str| {
        let at = lines
            .iter()
            .position(|line| line.starts_with(chain))
            .unwrap();
        let rules = lines[at + 1..]
            .iter()
            .take_while(|l| l.starts_with("handle"));
        rules
            .map(|line| line.splitn(3, ' ').last().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        below("nft ip t c "),
        ["ip saddr { 1.2.3.4, 2.3.4.5 } counter packets 3 bytes 4 accept comment \"a b\""]
    );
    assert_eq!(below("nft ip t empty "), [""; 0]);
    let input = below("nft ip filter INPUT ");
    assert_eq!(input[0], "[0:0] -s 10.1.0.0/16 -i eth0 -j DROP");
    assert_eq!(
        input[1],
        "[0:0] -p tcp -m comment --comment ssh -m tcp --dport 22 -j ACCEPT"
    );

    // The handles are those of the kernel.
    let handles: BTreeSet<_> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("handle ")?.split(' ').next())
        .collect();
    let listed = Tools::new(&sandbox).run("nft -a list ruleset");
    for handle in &handles {
        assert!(listed.contains(&format!("# handle {handle}\n")), "{handle}");
    }
    assert!(handles.len() >= 4);
}

/// A rule that matches like an iptables rule but has more conditions is not printed as the iptables
/// rule.
#[test]
fn a_rule_is_never_printed_without_some_of_its_conditions() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "table ip filter {
            chain INPUT { type filter hook input priority 0;
                ip saddr 10.0.0.1 counter drop
                ip saddr 10.0.0.1 limit rate over 5/second counter drop
                ip saddr 10.0.0.1 tcp dport { 22, 23 } counter drop
                ip saddr 10.0.0.1 counter counter drop
                ip saddr 10.0.0.1 drop
            }
         }
         table ip other { chain INPUT { ip saddr 10.0.0.1 counter drop; }; }",
    );
    let ran = run(&sandbox, "get rules").expect(0);
    let message: Vec<_> = ran
        .lines()
        .into_iter()
        .filter(|l| l.contains(" -j "))
        .collect();
    assert_eq!(message.len(), 1, "{}", ran.out);
    assert!(
        message[0].ends_with(" [0:0] -s 10.0.0.1/32 -j DROP"),
        "{}",
        message[0]
    );
    assert_eq!(ran.out.matches("  handle ").count(), 6);
}

#[test]
fn rules_print_the_bytecode_of_nft() {
    let sandbox = loaded();
    let ran =
        |arguments: &str| run(&sandbox, &format!("get rules --bytecode {arguments}")).expect(0);
    assert_eq!(ran("").out, bytecode(&sandbox, "ruleset"));
    for table in ["t", "filter"] {
        let real = bytecode(&sandbox, &format!("table ip {table}"));
        assert_eq!(ran(&format!("--family ip --table {table}")).out, real);
    }
    for chain in ["c", "d"] {
        let real = bytecode(&sandbox, &format!("chain ip t {chain}"));
        let chainwright = ran(&format!("--family ip --table t --match {chain}"));
        assert_eq!(chainwright.out, real);
    }
    run(&sandbox, "get rules --bytecode --json").expect(2);
}

#[test]
fn json_rules_match_the_library() {
    let sandbox = loaded();
    let document = run(&sandbox, "get rules --json").expect(0).value();
    let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
    assert_eq!(
        document["generation"],
        snapshot.generation().unwrap().number()
    );
    let tables = document["tables"].as_array().unwrap();
    assert_eq!(tables.len(), snapshot.tables().len());
    for (table, written) in snapshot.tables().zip(tables) {
        let read: Table<'_> = serde_json::from_value(written["table"].clone()).unwrap();
        assert_eq!(read, table.table().to_builder());
        let chains = written["chains"].as_array().unwrap();
        assert_eq!(chains.len(), table.chains().len());
        for (chain, written) in table.chains().zip(chains) {
            let read: Chain<'_> = serde_json::from_value(written["chain"].clone()).unwrap();
            assert_eq!(read, chain.chain().to_builder());
            let rules = written["rules"].as_array().unwrap();
            assert_eq!(rules.len(), chain.rules().len());
            for (rule, written) in chain.rules().zip(rules) {
                let read: Rule<'_> = serde_json::from_value(written.clone()).unwrap();
                // The kernel marks nested attributes differently, so the bytes differ.
                assert_eq!(read.to_string(), rule.to_builder().to_string());
                assert_eq!(*written, serde_json::to_value(rule.to_builder()).unwrap());
            }
        }
    }
    // Filtered.
    let document = run(&sandbox, "get rules --json --match [cd] --family ip").expect(0);
    let document = document.value();
    let tables = document["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1);
    let chains = tables[0]["chains"].as_array().unwrap();
    let names: Vec<_> = chains.iter().map(|one| &one["chain"]["name"]).collect();
    assert_eq!(names, ["c", "d"]);
}

#[test]
fn sets_are_listed_with_their_types() {
    let sandbox = loaded();
    let ran = run(&sandbox, "get sets").expect(0);
    let lines: Vec<_> = ran.lines().into_iter().map(words).collect();
    assert_eq!(
        lines,
        [
            "ip t ranges set ipv4_addr flags interval 3 elements",
            "ip t marks set mark flags interval 2 elements",
            "ip t both set ipv4_addr . inet_service flags interval 1 element comment \"hi\"",
            "ip t verdicts map ifname : verdict 2 elements",
            "ip t names set ifname flags interval 2 elements",
            "ip t values map ether_addr : ipv6_addr 1 element",
            "ip t passing set inet_proto . mark flags timeout size 9 timeout 1h 0 elements",
            "ip t sized set integer 1 element",
        ]
    );
    let ran = run(&sandbox, "get sets --anonymous --match __*").expect(0);
    assert_eq!(
        words(&ran.out),
        "ip t __set0 set ipv4_addr flags anonymous,constant size 2 2 elements"
    );
    run(&sandbox, "get sets --match __*").expect(1);
}

#[test]
fn elements_are_written_as_nft_writes_them() {
    let sandbox = loaded();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "add element ip t passing { tcp . 0x10 timeout 5d comment \"y\" }",
    );
    let of = |set: &str| {
        let ran = run(&sandbox, &format!("get sets --elements --match {set}")).expect(0);
        let mut elements: Vec<_> = ran.lines()[1..].iter().map(|line| words(line)).collect();
        elements.sort(); // a hash table has no order
        elements
    };
    assert_eq!(
        of("ranges"),
        [
            "10.0.0.0/8",
            "192.168.1.1-192.168.1.5",
            "250.0.0.0-255.255.255.255"
        ]
    );
    assert_eq!(
        of("marks"),
        ["0x00000005-0x0000000a", "0x00000100-0x000001ff"]
    );
    assert_eq!(of("both"), ["10.0.0.0/8 . 80-90 comment \"x\""]);
    assert_eq!(of("verdicts"), ["\"eth0\" : jump d", "\"lo\" : accept"]);
    assert_eq!(of("names"), ["\"eth*\"", "\"lo\""]);
    assert_eq!(of("values"), ["02:00:00:00:00:0a : fe80::1"]);
    assert_eq!(of("sized"), ["1460"]);
    let [passing] = &of("passing")[..] else {
        panic!("expected one element");
    };
    let (before, rest) = passing.split_once(" expires ").unwrap();
    assert_eq!(before, "tcp . 0x00000010 timeout 5d");
    assert!(rest.starts_with("4d23h59m"), "{rest}");
    assert!(rest.ends_with("comment \"y\""), "{rest}");
}

#[test]
fn json_sets_match_the_library() {
    let sandbox = loaded();
    let document = run(&sandbox, "get sets --json --elements")
        .expect(0)
        .value();
    let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
    let tables = document["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1, "only tables with sets are listed");
    let table = snapshot.table(Family::IP, "t").unwrap();
    let sets = tables[0]["sets"].as_array().unwrap();
    assert_eq!(
        sets.len() + 1,
        table.sets().len(),
        "anonymous sets are not listed"
    );
    for (set, written) in table.sets().zip(sets) {
        let read: chainwright::nft::Set<'_> =
            serde_json::from_value(written["set"].clone()).unwrap();
        assert_eq!(read, set.set().to_builder());
        let elements: Vec<Element<'_>> =
            serde_json::from_value(written["elements"].clone()).unwrap();
        let expected: Vec<_> = set.elements().map(|element| element.to_builder()).collect();
        assert_eq!(elements, expected);
        let count = expected.iter().filter(|e| e.flags.is_none()).count();
        assert_eq!(written["count"], count);
    }
    let document = run(&sandbox, "get sets --json").expect(0).value();
    assert_eq!(document["tables"][0]["sets"][0]["elements"], Value::Null);
}

#[test]
fn an_empty_ruleset_lists_nothing() {
    let sandbox = sandbox();
    for (verb, what) in [("get rules", "chains"), ("get sets", "sets")] {
        let ran = run(&sandbox, &format!("{verb} --backend nft")).expect(1);
        let message = format!("chainwright: nf_tables has no {what} in this network namespace\n");
        assert_eq!((ran.out.as_str(), ran.err), ("", message));
        let ran = run(&sandbox, verb).expect(1);
        let message = format!("no {what} in this network namespace\n");
        assert!(ran.err.ends_with(&message), "{}", ran.err);
        let one = what.trim_end_matches('s');
        let ran = run(&sandbox, &format!("{verb} --table x")).expect(1);
        assert_eq!(ran.err, format!("chainwright: no matching {one} found\n"));
        let ran = run(&sandbox, &format!("{verb} --json")).expect(1);
        assert_eq!(ran.value()["tables"], serde_json::json!([]));
        assert_eq!(ran.err, "");
    }
    let (_directory, path) = file();
    let ran = run(&sandbox, &format!("snapshot {path} --table x")).expect(1);
    assert!(ran.err.contains("no matching table found"), "{}", ran.err);
    assert!(!PathBuf::from(&path).exists());
    // An empty ruleset can be saved.
    let ran = run(&sandbox, &format!("snapshot {path}")).expect(0);
    assert_eq!(ran.out, "saved    0 tables (0 bytes)\n");
    small_ruleset(&sandbox);
    run(&sandbox, &format!("apply --replace {path}")).expect(0);
    run(&sandbox, "get rules").expect(1);
}

#[test]
fn names_and_comments_cannot_forge_a_line() {
    let sandbox = sandbox();
    let (_directory, path) = file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let mut tx = Transaction::new();
    let chain = "c\n  handle 1 x\x1b[2J";
    tx.add(&Table::new(Family::IP, "t"))
        .and_then(|tx| tx.add(&Chain::new(Family::IP, "t", chain)))
        .unwrap();
    let rule = Rule::new(Family::IP, "t", chain)
        .with_comment("a\nb\x1b[2J")
        .unwrap();
    tx.add(&rule).unwrap();
    commit(&sandbox, &mut tx);
    let ran = run(&sandbox, "get rules").expect(0);
    assert_eq!(ran.lines().len(), 2, "{}", ran.out);
    let differs = run(&sandbox, &format!("diff {path}")).expect(1);
    assert_eq!(differs.lines().len(), 3, "{}", differs.out);
    for out in [ran.out, differs.out] {
        assert!(!out.contains('\x1b'), "{out:?}");
    }
}

#[test]
fn unprivileged_ruleset_errors_name_the_missing_privilege() {
    for arguments in [
        &["rules"][..],
        &["sets", "--json"],
        &["backup", "/nowhere/at/all"],
    ] {
        let ran = run_unprivileged(arguments).expect(2);
        assert_eq!(ran.out, "");
        assert!(ran.err.contains("EPERM"), "{}", ran.err);
        assert!(ran.err.contains("CAP_NET_ADMIN"), "{}", ran.err);
    }
}

/// A file of another machine can need features that this kernel lacks.
#[test]
fn reconcile_reports_missing_kernel_features_first() {
    let mut elsewhere = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    let devices = Devices::new(["lo"]);
    tx.add(&Flowtable::new(Family::INET, "t", "f", 0, devices))
        .unwrap();
    elsewhere.commit(&tx).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("elsewhere");
    elsewhere
        .snapshot(Scope::all())
        .unwrap()
        .save(&path)
        .unwrap();

    let sandbox = sandbox();
    let refused = connect(&sandbox).check(&tx).is_err();
    let planned = run(
        &sandbox,
        &format!("apply --prune {} --dry-run", path.display()),
    );
    let planned = planned.expect(if refused { 2 } else { 1 });
    let words = "this kernel lacks flowtables in inet (CONFIG_NF_FLOW_TABLE_INET";
    assert_eq!(planned.err.contains(words), refused, "{}", planned.err);
    assert_eq!(planned.lines()[1], "add flowtable inet t f #1");
}

#[test]
fn reconcile_changes_only_differences() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip t {
            set s { type ipv4_addr; elements = { 192.0.2.1, 192.0.2.2 }; }
            chain c { counter accept; ip saddr @s drop; }
         }",
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept").to_str().unwrap().to_owned();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    let ran = run(&sandbox, &format!("apply --prune {path} --dry-run")).expect(0);
    assert_eq!(ran.out, "nothing to do\n");

    tools.run("nft insert rule ip t c drop");
    tools.run("nft delete element ip t s { 192.0.2.2 }");
    tools.run("nft add table ip foreign");
    let before = tools.run("nft -a list chain ip t c");
    let planned = run(&sandbox, &format!("apply --prune {path} --dry-run")).expect(1);
    assert_eq!(
        planned.lines(),
        [
            "delete rule ip t c handle 5 #0",
            "add element ip t s #1",
            "nothing was done"
        ]
    );
    assert_eq!(tools.run("nft -a list chain ip t c"), before);
    let done = run(&sandbox, &format!("apply --prune {path}")).expect(0);
    assert_eq!(done.lines()[..2], planned.lines()[..2]);
    assert_eq!(done.lines()[2], "done in one transaction");
    // The handles of existing objects and the foreign objects are unchanged.
    let after = tools.run("nft -a list ruleset");
    let (_, untouched) = before.split_once("drop # handle 5\n").unwrap();
    assert!(
        after.contains(untouched.trim_end_matches(['}', '\n', '\t'])),
        "{after}"
    );
    assert!(after.contains("192.0.2.1, 192.0.2.2") && after.contains("table ip foreign"));
    let ran = run(&sandbox, &format!("apply --prune {path}")).expect(0);
    assert_eq!(ran.out, "nothing to do\n");
}

#[test]
fn reconcile_with_an_owner_keeps_foreign_objects() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let table = "table ip t {
            chain c { counter accept comment \"agent: first\"; }
            chain agents { comment \"agent\"; }
         }";
    tools.run_with("nft -f -", table);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept").to_str().unwrap().to_owned();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    tools.run("nft add rule ip t c drop");
    tools.run("nft add chain ip t theirs");
    tools.run("nft delete chain ip t agents");
    let done = run(&sandbox, &format!("apply --prune=agent {path}")).expect(0);
    assert_eq!(
        done.lines(),
        ["add chain ip t agents #0", "done in one transaction"]
    );
    let listed = tools.run("nft list ruleset");
    assert!(
        listed.contains("chain theirs") && listed.contains("drop"),
        "{listed}"
    );
    // A foreign chain of that name.
    tools.run("nft delete chain ip t agents");
    tools.run("nft add chain ip t agents");
    let refused = run(&sandbox, &format!("apply --prune=agent {path}")).expect(2);
    let words = "chain ip t agents exists without the tag agent: it belongs to another program";
    assert!(refused.err.contains(words), "{}", refused.err);
    let wrong = run(&sandbox, &format!("apply --prune=a:b {path}")).expect(2);
    assert!(
        wrong.err.contains("invalid character ':' in tag at byte 1"),
        "{}",
        wrong.err
    );
}

/// The names of parts and their listings are those of nft.
#[test]
fn parts_are_listed_like_nft() {
    let sandbox = loaded();
    let tools = Tools::new(&sandbox);
    for what in [
        "ruleset ip6",
        "tables",
        "tables ip6",
        "table ip t",
        "table t",
        "chains",
        "chain ip t c",
        "sets",
        "maps ip",
        "set ip t both",
        "map ip t verdicts",
        "-a table ip6 t",
        "-s chain ip t c",
        "--terse table ip t",
        "counters",
    ] {
        // nft requires its options first.
        let (options, named) = what.rsplit_once("table").map_or(("", what), |(before, _)| {
            (before.trim(), what.strip_prefix(before).unwrap_or(what))
        });
        let (options, named) = match what.strip_prefix("-s ") {
            Some(named) => ("-s", named),
            None => (options, named),
        };
        let nfts = tools.run(&format!("nft {options} list {named}"));
        let chainwright = run(
            &sandbox,
            &format!("get ruleset --nft-version 1.0 {options} {named}"),
        )
        .expect(0);
        let chainwright: Vec<String> = chainwright.lines().into_iter().map(Into::into).collect();
        assert_eq!(chainwright, nfts.lines().collect::<Vec<_>>(), "{what}");
    }
}

#[test]
fn json_listings_match_nft() {
    let sandbox = loaded();
    let tools = Tools::new(&sandbox);
    // All but the first object, which names the program.
    let objects = |text: &str| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        let objects = document["nftables"].as_array_mut().unwrap();
        assert_eq!(objects.remove(0)["metainfo"]["json_schema_version"], 1);
        document
    };
    for (options, what) in [
        ("", "ruleset"),
        ("-s", "ruleset"),
        ("--terse", "ruleset"),
        ("", "tables"),
        ("", "table ip t"),
        ("", "chain ip t c"),
        ("", "maps"),
    ] {
        let mut nfts = objects(&tools.run(&format!("nft -j {options} list {what}")));
        // A type without a length: nft does not read it back.
        for object in nfts["nftables"].as_array_mut().into_iter().flatten() {
            if let Some(key) = object
                .pointer_mut("/set/type")
                .filter(|key| **key == "integer")
            {
                *key = serde_json::json!({"typeof": {"tcp option": {"name": "maxseg", "field": "size"}}});
            }
        }
        for json in ["-j", "--json"] {
            let list = format!("get ruleset --nft-version 1.0 {json} {options} {what}");
            let chainwright = run(&sandbox, &list).expect(0);
            assert_eq!(objects(&chainwright.out), nfts, "{json} {options} {what}");
        }
    }
}

#[test]
fn reports_objects_that_cannot_be_listed() {
    let sandbox = loaded();
    let absent = run(&sandbox, "get ruleset table ip nothing").expect(1);
    assert!(absent.lines().is_empty());
    run(&sandbox, "get ruleset chain ip t nothing").expect(1);
    for wrong in [
        "get ruleset chain ip t",
        "get ruleset things",
        "get ruleset table ip t c",
        "get ruleset --json things",
    ] {
        run(&sandbox, wrong).expect(2);
    }
}
