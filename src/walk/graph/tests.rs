//! Small rulesets whose graphs are known.

use super::*;
use crate::nft::expr::{Immediate, Lookup, Register};
use crate::nft::{Chain, DataType, Element, Rule, Set, SetId, Transaction};
use crate::text::Script;
use crate::xt;

fn of_script(text: &str) -> Graph {
    let script = Script::parse("test", text).unwrap();
    let mut graph = Graph::new();
    graph.add_script(&script).unwrap();
    graph
}

/// The same by way of nf_tables in memory.
fn of_model(text: &str) -> Graph {
    let script = Script::parse("test", text).unwrap();
    let mut nft = crate::nft::live::Model::new().connect().unwrap();
    nft.commit(script.transaction(None).unwrap().transaction())
        .unwrap();
    let mut graph = Graph::new();
    graph.add_snapshot(&nft.snapshot(crate::nft::Scope::all()).unwrap());
    graph
}

fn name(graph: &Graph, place: usize) -> String {
    graph.node(place).name.to_string()
}

/// `from how to ×count`, sorted.
fn edges(graph: &Graph) -> Vec<String> {
    let edges = graph.edges().iter().map(|edge| {
        let (from, to) = (name(graph, edge.from), name(graph, edge.to));
        format!("{from} {} {to} ×{}", edge.how.name(), edge.count)
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

/// A script, read by itself and as what nf_tables made of it.
#[test]
fn what_leads_where() {
    for graph in [of_script(WHOLE), of_model(WHOLE)] {
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
        let Kind::Base(base) = chain("in").kind else {
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
fn what_no_kernel_takes_is_found() {
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
        places.iter().map(|place| name(&graph, *place)).collect()
    };
    let loops: Vec<_> = findings.loops.iter().map(|way| names(way)).collect();
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
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "line 1: it stands in no table"
    );
}

/// Services as kube-proxy has them: `services` of them, each with two endpoints, and one without.
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
fn chains_of_a_kind_are_one() {
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
            // The one that leads nowhere is another kind.
            "KUBE-SVC-AAAAAAAACCBBCBBB",
        ]
    );
    let counts: Vec<_> = view.links().iter().map(|link| link.count).collect();
    assert_eq!(counts, [1, 200, 1, 400, 400]);
    assert!(view.tree(80).to_string().lines().count() < 20);
    // Few are shown one by one.
    let few = services(3);
    assert_eq!(few.view(&ViewOptions::default()).groups().len(), 3 + 4 + 6);
    // All of them, if they are asked for.
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
fn a_part_is_the_ways_to_it_and_from_it() {
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

/// Whatever leads where, lines are no longer than they may be, and all forms have each chain.
#[test]
fn every_form_has_every_chain() {
    let mut graph = of_script(WHOLE);
    let name = "a".repeat(200);
    let long = Chain::new(Family::IP, "t\"<&>", &*name);
    let mut tx = Transaction::new();
    tx.add(&crate::nft::Table::new(Family::IP, "t\"<&>"))
        .unwrap();
    tx.add(&long).unwrap();
    tx.add(&Chain::new(Family::IP, "t\"<&>", "x\n\"\\<&>#;"))
        .unwrap();
    tx.add(&Rule::new(Family::IP, "t\"<&>", &*name).with(&Immediate::goto("x\n\"\\<&>#;")))
        .unwrap();
    let mut nft = crate::nft::live::Model::new().connect().unwrap();
    nft.commit(&tx).unwrap();
    graph.add_snapshot(&nft.snapshot(crate::nft::Scope::all()).unwrap());
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

/// A map that rules of many chains ask is one node: as many edges as there are rules and elements, and not their
/// product.
#[test]
fn a_map_is_one_node() {
    let mut tx = Transaction::new();
    tx.add(&crate::nft::Table::new(Family::IP, "t")).unwrap();
    tx.add(&Set::new(Family::IP, "t", "m", DataType::INTEGER, 4).with_verdicts())
        .unwrap();
    let mut elements = Vec::new();
    for number in 0..100_u32 {
        let target = format!("to{number}x");
        tx.add(&Chain::new(Family::IP, "t", target.clone()))
            .unwrap();
        let verdict = crate::nft::expr::Verdict::Goto(target.into());
        elements.push(Element::new(number.to_be_bytes().to_vec()).with_verdict(verdict));
        let from = format!("from{number}x");
        tx.add(&Chain::new(Family::IP, "t", from.clone())).unwrap();
        let lookup = Lookup::map(Register(1), "m", Register::VERDICT);
        let load = crate::nft::expr::Meta::load(crate::nft::expr::MetaKey::MARK, Register(1));
        tx.add(&Rule::new(Family::IP, "t", from).with(&load).with(&lookup))
            .unwrap();
    }
    tx.add_elements(&SetId::new(Family::IP, "t", "m"), &elements)
        .unwrap();
    let mut nft = crate::nft::live::Model::new().connect().unwrap();
    nft.commit(&tx).unwrap();
    let mut graph = Graph::new();
    graph.add_snapshot(&nft.snapshot(crate::nft::Scope::all()).unwrap());
    assert_eq!((graph.nodes().len(), graph.edges().len()), (201, 200));
    assert_eq!(graph.chain_count(), 200);
    let titles = graph.view(&ViewOptions::default());
    let titles: Vec<_> = titles.groups().iter().map(Group::title).collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
}

/// A row of chains as long as a text can have it, and a ring of as many: nothing calls itself, and nothing takes more than
/// its share of time.
#[test]
fn long_rows_and_rings() {
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
