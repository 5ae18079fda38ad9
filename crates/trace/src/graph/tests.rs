//! Small rulesets with known graphs.

use super::*;
use chainwright::nft::expr::{Immediate, Lookup, Register};
use chainwright::nft::{Chain, DataType, Element, Rule, Set, SetId, Transaction};
use chainwright::xt;
use chainwright_lang::Script;

fn of_script(text: &str) -> Graph {
    let script = Script::parse("test", text).unwrap();
    let mut graph = Graph::new();
    graph.add_script(&script).unwrap();
    graph
}

/// Builds the same graph through the in-memory kernel.
fn of_fake(text: &str) -> Graph {
    let script = Script::parse("test", text).unwrap();
    let mut nft = chainwright_testing::FakeKernel::new().connect().unwrap();
    nft.commit(script.transaction(None).unwrap().transaction())
        .unwrap();
    let mut graph = Graph::new();
    graph.add_snapshot(&nft.snapshot(chainwright::nft::Scope::all()).unwrap());
    graph
}

fn name(graph: &Graph, index: usize) -> String {
    graph.node(index).name.to_string()
}

/// Formats edges as `from how to ×count`, sorted.
fn edges(graph: &Graph) -> Vec<String> {
    let edges = graph.edges().iter().map(|edge| {
        let (from, to) = (name(graph, edge.from), name(graph, edge.to));
        format!("{from} {} {to} ×{}", edge.kind.name(), edge.count)
    });
    let mut edges: Vec<_> = edges.collect();
    edges.sort();
    edges
}

const WHOLE: &str = "
table inet t {
    map named { type inet_service : verdict; elements = { 1 : jump a, 2 : jump a, 3 : goto b, 4 : drop } }
    chain a { counter comment \"of a\"; jump b; }
    chain b { }
    chain old { jump b; }
    chain in {
        type filter hook input priority -5; policy drop;
        tcp dport vmap @named
        jump a
        jump a comment \"twice\"
        udp dport vmap { 7 : goto b, 8 : jump a, 9 : accept }
    }
    chain out { type filter hook output priority 3; udp dport vmap @named; }
}";

/// Compares a script with the ruleset that the in-memory kernel makes of it.
#[test]
fn script_and_fake_kernel_have_the_same_edges() {
    for graph in [of_script(WHOLE), of_fake(WHOLE)] {
        assert_eq!(
            edges(&graph),
            [
                "a jump b ×1",
                "in asks named ×1",
                "in goto b ×1",
                "in jump a ×3",
                "named goto b ×1",
                "named jump a ×2",
                "old jump b ×1",
                "out asks named ×1",
            ]
        );
        let chain = |wanted: &str| graph.node(graph.chain(0, wanted).unwrap()).clone();
        assert_eq!(chain("a").size, 2);
        assert_eq!(chain("a").comment.unwrap(), "of a");
        assert_eq!(chain("in").size, 4);
        let NodeKind::Base(base) = chain("in").kind else {
            panic!("{:?}", chain("in"));
        };
        assert_eq!(base.to_string(), "input -5, policy drop");
        let findings = graph.findings();
        assert_eq!(findings.unreferenced, [graph.chain(0, "old").unwrap()]);
        assert_eq!(
            findings,
            Findings {
                unreferenced: findings.unreferenced.clone(),
                ..Findings::default()
            }
        );
    }
}

#[test]
fn missing_targets_and_loops_are_found() {
    let mut graph = of_script(
        "table ip t {
            chain a { jump b; }
            chain b { jump c; jump self; }
            chain c { goto a; }
            chain self { jump self; }
            chain far { jump farther; }
            chain farther { }
            chain in { type filter hook input priority 0; jump gone; jump a; }
        }",
    );
    let text = "*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n-A INPUT -s 10.0.0.1,10.0.0.2 -j A\n\
                [1:2] -A A -m comment --comment \"of A\" -g GONE\n-A A -j ACCEPT\n-A A -j LOG\nCOMMIT\n";
    graph
        .add_iptables_text(xt::Family::Ipv4, text.as_bytes())
        .unwrap();
    let findings = graph.findings();
    let names = |places: &[usize]| -> Vec<String> {
        places.iter().map(|index| name(&graph, *index)).collect()
    };
    let loops: Vec<_> = findings.loops.iter().map(|cycle| names(cycle)).collect();
    assert_eq!(loops, [vec!["a", "b", "c"], vec!["self"]]);
    let dangling = findings.dangling.iter();
    let dangling: Vec<_> = dangling
        .map(|(from, to)| names(&[*from, *to]).join(" → "))
        .collect();
    assert_eq!(dangling, ["in → gone", "A → GONE"]);
    assert_eq!(names(&findings.unreferenced), ["far"]);
    assert_eq!(names(&findings.unreachable), ["farther"]);
    let a = graph.node(graph.chain(1, "A").unwrap());
    assert_eq!((a.size, a.comment.as_ref().unwrap()), (3, &"of A".into()));
    let of_input = graph.edges_of(graph.chain(1, "INPUT").unwrap());
    assert_eq!(of_input.map(|edge| edge.count).collect::<Vec<_>>(), [2]);
    let tree = graph.view(&ViewOptions::default()).tree(80).to_string();
    for line in [
        "  ip t: a → b → c → a\n",
        "  ip t: self → self\n",
        "  ip filter: A → GONE\n",
        "  ip t: farther\n",
    ] {
        assert!(tree.contains(line), "{tree}");
    }
    let wrong = graph.add_iptables_text(xt::Family::Ipv4, b"*filter\n-A INPUT --dport 1\n");
    assert!(wrong.unwrap_err().to_string().starts_with("line 2: "));
    let wrong = graph.add_iptables_text(xt::Family::Ipv4, b"-A INPUT -j ACCEPT\n");
    assert_eq!(wrong.unwrap_err().to_string(), "line 1: missing table");
}

/// Returns the graph of services in kube-proxy's form, each with two endpoints, and one without.
fn services(services: usize) -> Graph {
    let hash = |number: usize| {
        format!(
            "{:A>16}",
            format!("{number:b}").replace('0', "B").replace('1', "C")
        )
    };
    let mut text = "*nat\n:PREROUTING ACCEPT\n:KUBE-SERVICES -\n:KUBE-MARK-MASQ -\n".to_owned();
    let mut rules = "-A PREROUTING -j KUBE-SERVICES\n".to_owned();
    for number in 0..=services {
        let (service, hash) = (format!("KUBE-SVC-{}", hash(number)), hash(number));
        text += &format!(":{service} -\n");
        rules += &format!(
            "-A KUBE-SERVICES -m comment --comment \"ns/svc-{number}:http cluster IP\" -j {service}\n"
        );
        for endpoint in ["D", "E"].iter().filter(|_| number < services) {
            let name = format!("KUBE-SEP-{}{endpoint}", &hash[1..]);
            text += &format!(":{name} -\n");
            rules += &format!(
                "-A {service} -j {name}\n-A {name} -j KUBE-MARK-MASQ\n-A {name} -p tcp -j ACCEPT\n"
            );
        }
    }
    let mut graph = Graph::new();
    let whole = text + &rules + "COMMIT\n";
    graph
        .add_iptables_text(xt::Family::Ipv4, whole.as_bytes())
        .unwrap();
    graph
}

#[test]
fn similar_chains_are_one_node() {
    let graph = services(200);
    let view = graph.view(&ViewOptions::default());
    let titles: Vec<_> = view.groups().iter().map(Group::title).collect();
    assert_eq!(
        titles,
        [
            "PREROUTING",
            "KUBE-SERVICES",
            "KUBE-MARK-MASQ",
            "KUBE-SVC-* ×200",
            "KUBE-SEP-* ×400",
            // The service without endpoints has other targets.
            "KUBE-SVC-AAAAAAAACCBBCBBB",
        ]
    );
    let counts: Vec<_> = view.links().iter().map(|link| link.count).collect();
    assert_eq!(counts, [1, 200, 1, 400, 400]);
    assert!(view.tree(80).to_string().lines().count() < 20);
    // A few are shown individually.
    let few = services(3);
    assert_eq!(few.view(&ViewOptions::default()).groups().len(), 3 + 4 + 6);
    // All of them on request.
    let full = ViewOptions {
        full: true,
        ..ViewOptions::default()
    };
    assert_eq!(graph.view(&full).groups().len(), graph.nodes().len());
    assert_eq!(
        graph
            .view(&full)
            .tree(80)
            .to_string()
            .matches("KUBE-SEP-")
            .count(),
        400
    );
}

#[test]
fn selection_contains_callers_and_callees() {
    let graph = services(200);
    let service = graph.chain(0, "KUBE-SVC-AAAAAAAAAAAAAAAB").unwrap();
    let options = ViewOptions {
        selected: Some(Selected::Nodes(vec![service])),
        label: Some(&|node| node.comment.as_ref().map(ToString::to_string)),
        ..ViewOptions::default()
    };
    let tree = graph.view(&options).tree(80).to_string();
    assert_eq!(
        tree,
        "\
table ip nat: 6 chains, 208 rules
  PREROUTING  prerouting -100                                            1 rule
  └─ KUBE-SERVICES  ns/svc-0:http cluster IP                           201 rules
     └─ KUBE-SVC-AAAAAAAAAAAAAAAB  ns/svc-0:http cluster IP              2 rules
        ├─ KUBE-SEP-AAAAAAAAAAAAAABD                                     2 rules
        │  └─ KUBE-MARK-MASQ                                             0 rules
        └─ KUBE-SEP-AAAAAAAAAAAAAABE                                     2 rules
           └─ KUBE-MARK-MASQ                                             0 rules
"
    );
    let options = ViewOptions {
        selected: Some(Selected::Table("mangle".into())),
        ..ViewOptions::default()
    };
    assert!(graph.view(&options).groups().is_empty());
}

/// Lines respect the maximum length, and all formats contain each chain.
#[test]
fn every_output_format_has_every_chain() {
    let mut graph = of_script(WHOLE);
    let name = "a".repeat(200);
    let table = "t\"\n<&>".to_owned() + &"b".repeat(200);
    let mut tx = Transaction::new();
    tx.add(&chainwright::nft::Table::new(Family::IP, &*table))
        .unwrap();
    tx.add(&Chain::new(Family::IP, &*table, &*name)).unwrap();
    tx.add(&Chain::new(Family::IP, &*table, "x\n\"\\<&>#;"))
        .unwrap();
    tx.add(&Rule::new(Family::IP, &*table, &*name).with(&Immediate::goto("x\n\"\\<&>#;")))
        .unwrap();
    let mut nft = chainwright_testing::FakeKernel::new().connect().unwrap();
    nft.commit(&tx).unwrap();
    graph.add_snapshot(&nft.snapshot(chainwright::nft::Scope::all()).unwrap());
    let view = graph.view(&ViewOptions::default());
    for width in [60, 80, 132] {
        let tree = view.tree(width).to_string();
        for line in tree.lines() {
            assert!(line.chars().count() <= width, "{line}");
        }
    }
    let dot = view.dot().to_string();
    assert!(dot.contains(r#"label="x\\n\\\"\\\\<&>#;\n"#), "{dot}");
    let mermaid = view.mermaid().to_string();
    assert!(
        mermaid.contains("x\\n\\#quot;\\\\#lt;#amp;#gt;#35;;"),
        "{mermaid}"
    );
    let svg = view.svg().to_string();
    assert!(svg.contains("x\\n\\&quot;\\\\&lt;&amp;&gt;#;"), "{svg}");
    // A name that is too long for a line is wrapped.
    let bold = svg.lines().filter(|line| line.contains("bold"));
    let inside = bold.filter_map(|line| line.split(['>', '<']).nth(2));
    let of_name: String = inside.filter(|line| line.starts_with("aa")).collect();
    assert_eq!(of_name, name);
    // Names cannot start a line.
    for text in [&dot, &mermaid] {
        assert!(!text.lines().any(|line| line.starts_with('<')), "{text}");
    }
    for text in [dot, mermaid, svg] {
        for node in graph.nodes().iter().filter(|node| node.name.len() < 9) {
            assert!(
                text.contains(&printable(node.name.as_slice().into())[..1]),
                "{}",
                node.name
            );
        }
        assert!(!text.contains("\u{0}"));
    }
}

/// A map that rules of many chains use is one node. The number of edges is the sum of rules and elements, not their
/// product.
#[test]
fn a_map_is_one_node() {
    let mut tx = Transaction::new();
    tx.add(&chainwright::nft::Table::new(Family::IP, "t"))
        .unwrap();
    tx.add(&Set::new(Family::IP, "t", "m", DataType::INTEGER, 4).with_verdicts())
        .unwrap();
    let mut elements = Vec::new();
    for number in 0..100_u32 {
        let target = format!("to{number}x");
        tx.add(&Chain::new(Family::IP, "t", target.clone()))
            .unwrap();
        let verdict = chainwright::nft::expr::Verdict::Goto(target.into());
        elements.push(Element::new(number.to_be_bytes().to_vec()).with_verdict(verdict));
        let from = format!("from{number}x");
        tx.add(&Chain::new(Family::IP, "t", from.clone())).unwrap();
        let lookup = Lookup::map(Register(1), "m", Register::VERDICT);
        let load =
            chainwright::nft::expr::Meta::load(chainwright::nft::expr::MetaKey::MARK, Register(1));
        tx.add(&Rule::new(Family::IP, "t", from).with(&load).with(&lookup))
            .unwrap();
    }
    tx.add_elements(&SetId::new(Family::IP, "t", "m"), &elements)
        .unwrap();
    let mut nft = chainwright_testing::FakeKernel::new().connect().unwrap();
    nft.commit(&tx).unwrap();
    let mut graph = Graph::new();
    graph.add_snapshot(&nft.snapshot(chainwright::nft::Scope::all()).unwrap());
    assert_eq!((graph.nodes().len(), graph.edges().len()), (201, 200));
    assert_eq!(graph.chain_count(), 200);
    let titles = graph.view(&ViewOptions::default());
    let titles: Vec<_> = titles.groups().iter().map(Group::title).collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
}

/// Handles the longest possible sequence of chains, and a loop of the same length, without recursion in linear time.
#[test]
fn long_chains_and_cycles() {
    const LONG: usize = 20_000;
    let mut text = "*filter\n:INPUT ACCEPT\n".to_owned();
    (0..LONG).for_each(|number| text += &format!(":c{number} -\n"));
    text += "-A INPUT -j c0\n";
    (0..LONG).for_each(|number| text += &format!("-A c{number} -j c{}\n", (number + 1) % LONG));
    text += "COMMIT\n";
    let mut graph = Graph::new();
    graph
        .add_iptables_text(xt::Family::Ipv4, text.as_bytes())
        .unwrap();
    let findings = graph.findings();
    assert_eq!(findings.loops.len(), 1);
    assert_eq!(findings.loops[0].len(), LONG);
    for full in [false, true] {
        let options = ViewOptions {
            full,
            ..ViewOptions::default()
        };
        let view = graph.view(&options);
        assert!(!view.svg().to_string().is_empty());
        assert!(!view.dot().to_string().is_empty());
        let tree = view.tree(80).to_string();
        if full {
            for number in [0, 19, 20, 21, LONG - 1] {
                assert!(tree.contains(&format!(" c{number} ")), "c{number}");
            }
        }
    }
}

/// Nodes are in the order of the text.
#[test]
fn maps_keep_their_order() {
    let maps = (0..20).map(|number| {
        format!("map m{number} {{ type inet_service : verdict; elements = {{ 1 : goto gone{number} }} }}")
    });
    let maps: Vec<_> = maps.collect();
    let graph = of_script(&format!(
        "table ip t {{ flags dormant; {}; }}",
        maps.join("\n")
    ));
    let names: Vec<_> = graph
        .nodes()
        .iter()
        .map(|node| node.name.to_string())
        .collect();
    let expected = (0..20).flat_map(|number| [format!("m{number}"), format!("gone{number}")]);
    assert_eq!(names, expected.collect::<Vec<_>>());
    assert!(graph.tables()[0].dormant);
    let tree = graph.view(&ViewOptions::default()).tree(80).to_string();
    assert!(
        tree.starts_with("table ip t, dormant: 0 chains, 0 rules\n"),
        "{tree}"
    );
}

/// One line stands for as many rules as there are pairs of addresses.
#[test]
fn pairs_of_addresses_are_counted() {
    let addresses = |first: u8| -> String {
        let all = (0..256_u16).map(|number| {
            let [high, low] = number.to_be_bytes();
            format!("{first}.0.{high}.{low}")
        });
        all.collect::<Vec<_>>().join(",")
    };
    let text = format!(
        "*filter\n:A -\n-A INPUT -s {} -d {} -j A\nCOMMIT\n",
        addresses(10),
        addresses(11)
    );
    let mut graph = Graph::new();
    graph
        .add_iptables_text(xt::Family::Ipv4, text.as_bytes())
        .unwrap();
    assert_eq!(graph.edges()[0].count, 65_536);
    assert_eq!(graph.node(graph.edges()[0].from).size, 65_536);
}

/// Chains that are only referenced by themselves are grouped separately from chains with other references.
#[test]
fn unreferenced_chains_are_grouped_separately() {
    let mut text = "*filter\n:x -\n".to_owned();
    (0..20).for_each(|number| text += &format!(":c{number} -\n-A c{number} -j c{number}\n"));
    (10..20).for_each(|number| text += &format!("-A x -j c{number}\n"));
    let mut graph = Graph::new();
    graph
        .add_iptables_text(xt::Family::Ipv4, (text + "COMMIT\n").as_bytes())
        .unwrap();
    let tree = graph.view(&ViewOptions::default()).tree(80).to_string();
    assert!(
        tree.contains("Unreferenced:\n  ip filter: x, c* ×10\n"),
        "{tree}"
    );
}

/// Chains announced as "below" are printed, even if another chain also jumps to them and its list is cut. Lines
/// respect the maximum length at any depth.
#[test]
fn announced_groups_are_printed_below() {
    let row: Vec<_> = ('a'..='z')
        .map(|letter| format!("a_chain_of_a_row_{letter}"))
        .collect();
    let wide = ('a'..='z').flat_map(|one| ['a', 'b'].map(|two| format!("wide_{one}{two}")));
    let wide: Vec<_> = wide.collect();
    let mut text = "*filter\n:last -\n:many -\n".to_owned();
    for name in row.iter().chain(&wide) {
        text += &format!(":{name} -\n");
    }
    text += &format!("-A INPUT -j {}\n-A INPUT -j many\n", row[0]);
    for pair in row.windows(2) {
        text += &format!("-A {} -j {}\n", pair[0], pair[1]);
    }
    text += &format!("-A {} -j last\n", row[25]);
    for name in wide.iter().chain(&row) {
        text += &format!("-A many -j {name}\n");
    }
    let mut graph = Graph::new();
    graph
        .add_iptables_text(xt::Family::Ipv4, (text + "COMMIT\n").as_bytes())
        .unwrap();
    let tree = graph.view(&ViewOptions::default()).tree(80).to_string();
    assert!(tree.contains("more\n"), "{tree}");
    for line in tree.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for name in row.iter().map(String::as_str).chain(["last"]) {
        assert!(tree.contains(name), "{name}: {tree}");
    }
    for line in tree.lines().filter(|line| line.contains("(below)")) {
        let name = line.trim_start_matches([' ', '└', '├', '│', '─']);
        let name = name.split(' ').next().unwrap_or_default();
        assert!(
            tree.lines()
                .any(|line| line.starts_with(&format!("  {name} "))),
            "{name}: {tree}"
        );
    }
}

/// The number of reported problems is limited like the number of shown chains.
#[test]
fn findings_are_limited() {
    let jumps: Vec<_> = (0..100)
        .map(|number| format!("jump gone{number};"))
        .collect();
    let graph = of_script(&format!(
        "table ip t {{ chain c {{ {}; }}; }}",
        jumps.join(" ")
    ));
    let mut options = ViewOptions::default();
    for (full, lines) in [(false, 40), (true, 100)] {
        options.full = full;
        let tree = graph.view(&options).tree(80).to_string();
        assert_eq!(tree.matches("  ip t: c → gone").count(), lines, "{tree}");
        assert_eq!(tree.contains("  … 60 more\n"), !full, "{tree}");
    }
}

#[test]
fn tables_are_left_out() {
    let mut graph = of_script(&format!(
        "table ip other {{ chain a {{ jump b; }}; chain b {{ }}; }}; {WHOLE}"
    ));
    let whole = of_script(WHOLE);
    graph.retain_tables(|table| table.family == Family::INET);
    assert_eq!(graph.tables(), whole.tables());
    assert_eq!(graph.nodes(), whole.nodes());
    assert_eq!(edges(&graph), edges(&whole));
}

/// Labels are one line.
#[test]
fn labels_are_one_line() {
    let graph = of_script("table ip t { chain a { jump b; }; chain b { }; }");
    let options = ViewOptions {
        label: Some(&|_| Some("two\nlines".to_owned())),
        ..ViewOptions::default()
    };
    let view = graph.view(&options);
    assert!(view.tree(80).to_string().contains("a  two\\nlines"));
    assert!(!view.mermaid().to_string().contains("two\nlines"));
}

/// A self-loop is drawn within its table, and the legend explains it.
#[test]
fn cycles_are_drawn_in_their_table() {
    let of = |text: &str| {
        of_script(text)
            .view(&ViewOptions::default())
            .svg()
            .to_string()
    };
    let svg = of("table ip a_table { chain self { jump self; }; }");
    let number = |line: &str, name: &str| -> f64 {
        let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let rects: Vec<_> = svg
        .lines()
        .filter(|line| line.starts_with("<rect x="))
        .collect();
    let right = |line: &str| number(line, "x") + number(line, "width");
    let (table, own) = (rects[0], rects[1]);
    // The loop extends 32 beyond the box.
    assert!(right(table) >= right(own) + 32.0, "{svg}");
    assert!(
        svg.contains("part of a loop") && !svg.contains(">goto<"),
        "{svg}"
    );
    let svg = of("table ip t { chain a { goto b; }; chain b { }; }");
    assert!(
        !svg.contains("part of a loop") && svg.contains(">goto<"),
        "{svg}"
    );
}
