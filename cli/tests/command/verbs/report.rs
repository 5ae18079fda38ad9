//! The page of `report`: its contents, its escaping, its size.

use tempfile::tempdir;

use super::live::listen;
use super::record::recorded;
use super::*;
use crate::common::tools::Tools;

/// Elements without an end.
const VOID: [&str; 4] = ["meta", "br", "input", "!DOCTYPE"];

/// Returns the start tags of a page. Checks that elements are balanced, attributes are quoted, and no text contains markup.
#[track_caller]
fn tags(page: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(
            !text.contains('>') || open.last() == Some(&"style"),
            "{text:?}"
        );
        for reference in text.split('&').skip(1) {
            let name = reference.split(';').next().unwrap();
            assert!(
                ["amp", "lt", "gt", "quot", "#39"].contains(&name),
                "{reference:?}"
            );
        }
        let end = at + rest[at..].find('>').expect("unfinished tag");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag:?}");
            continue;
        }
        assert!(
            tag.matches('"').count().is_multiple_of(2) && !tag.contains('<'),
            "{tag:?}"
        );
        all.push(tag);
        let name = tag.split([' ', '/']).next().unwrap();
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        if name == "script" {
            let end = rest.find("</script>").unwrap();
            rest = &rest[end..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

/// Checks that a page is well-formed and loads nothing.
#[track_caller]
fn check(page: &str) {
    let tags = tags(page);
    let scripts = tags.iter().filter(|tag| tag.starts_with("script")).count();
    assert_eq!(scripts, 1);
    for tag in tags {
        for word in [
            "src=", "srcset=", "onload", "onerror", "onclick", "http:", "https:", "//",
        ] {
            assert!(!tag.contains(word), "{tag}");
        }
        let links = tag.split("href=\"").skip(1);
        links.for_each(|link| assert!(link.starts_with('#'), "{tag}"));
        let inner = tag.split("url(").skip(1);
        inner.for_each(|inner| assert!(inner.starts_with('#'), "{tag}"));
        let name = tag.split(' ').next().unwrap();
        assert!(
            !["img", "link", "iframe", "object", "base"].contains(&name),
            "{tag}"
        );
    }
    let style = page
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
}

/// Returns the text of a page.
fn text(page: &str) -> String {
    let body = page
        .split("<body>")
        .nth(1)
        .unwrap()
        .split("<script>")
        .next()
        .unwrap();
    let mut text = String::new();
    for part in body.split('<') {
        text.push(' ');
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the page of a file.
fn page(arguments: &[&str]) -> String {
    let page = run_here(&[&["report", "-o", "-"], arguments].concat())
        .expect(0)
        .out;
    check(&page);
    page
}

#[test]
fn hostile_texts_are_escaped() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("<script>alert(0)</script>.nft");
    let file = file.to_str().unwrap().replace("</", "<|");
    let comments = [
        "</style><script>alert(1)</script>",
        "<img src=x onerror=alert(2)> &amp; ' -->",
        "</td></table><script src=https://example.com/x.js>",
        "\u{202e}right to left, \u{2028} separator, ]]> <!-- <![CDATA[",
    ];
    let mut rules = String::from(
        "table inet t {\n chain input {\n type filter hook input priority 0; policy drop;\n",
    );
    for (number, comment) in comments.iter().enumerate() {
        rules +=
            &format!("tcp dport {number} iifname \"<b>&{number}\" drop comment \"{comment}\"\n");
        // Without effect: a finding.
        rules +=
            &format!("tcp dport {number} iifname \"<b>&{number}\" accept comment \"{comment}\"\n");
    }
    fs::write(
        &file,
        rules + "log prefix \"<svg onload=alert(3)>\"\n}\n}\n",
    )
    .unwrap();
    let page = page(&[&file, "--trace", "tcp 10.0.0.1 10.0.0.2:2"]);
    let text = text(&page);
    for comment in &comments[..3] {
        assert!(text.contains(comment), "{comment}");
    }
    assert!(text.contains("right to left"), "{text}");
    assert!(!page.contains(['\u{202e}', '\u{2028}']));
    assert!(text.contains("with the prefix \"<svg onload=alert(3)>\""));
    assert!(text.contains("no packet matches this rule"), "{text}");
    assert!(text.contains(".nft") && text.contains("Packet filter of"));
}

/// Names of chains and tables that only an owner of netlink sockets can give.
#[test]
fn hostile_names_are_escaped() {
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    let name = "<script>alert(1)</script>\"'&";
    tx.add(&Table::new(Family::INET, name)).unwrap();
    tx.add(&chainwright::nft::Chain::new(Family::INET, name, name))
        .unwrap();
    commit(&sandbox, &mut tx);
    let made = run(&sandbox, "report -o -").expect(0).out;
    check(&made);
    assert!(
        text(&made).contains(&format!("table inet {name}")),
        "{}",
        text(&made)
    );
}

#[test]
fn legacy_tables_are_on_the_page() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("iptables-legacy -A INPUT -p tcp --dport 23 -m comment --comment telnet -j DROP");
    tools.run("iptables-legacy -A INPUT -p tcp --dport 23 -j ACCEPT");
    let made = run(&sandbox, "report -o -").expect(0).out;
    check(&made);
    let text = text(&made);
    for part in [
        "table ip filter (legacy)",
        "If the TCP destination port is 23, the rule drops the packet. telnet",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_page_of_kube_proxy() {
    let file = crate::common::in_workspace("tests/data/kube-proxy-1.36-iptables.save");
    let page = page(&[
        file.to_str().unwrap(),
        "--trace",
        "tcp 10.244.9.9 10.96.10.10:80",
    ]);
    assert!(page.contains("<svg ") && page.contains("KUBE-SVC-* ×307"));
    let text = text(&page);
    for part in [
        "3 tables · 1251 chains · 3406 rules",
        "50.0 % delivered to this machine to 10.244.1.5:80, if 10.244.1.5 is an address of this machine",
        "KUBE-SERVICES rule 80: jump KUBE-SVC-7G3ZKRFF37FPGNHN",
        "service default/azure-vote-front · 4 chains",
        "chooses one of the endpoints of the service default/azure-vote-front",
        "If the IPv4 destination address is 10.96.10.10 and the TCP destination port is 80, the rule jumps to the chain \
         KUBE-SVC-7G3ZKRFF37FPGNHN.",
        "-j DNAT --to-destination 10.244.1.5:80",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("Left out"), "everything fits");
}

#[test]
fn the_page_of_a_kernel_with_a_record() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let directory = tempdir().unwrap();
    let dir = directory.path().join("record");
    let recorder = listen(&sandbox, &format!("record --dir {}", dir.display()));
    tools.run("nft add table inet firewalld");
    tools.run("nft add chain inet firewalld filter_INPUT { type filter hook input priority 10; policy drop; }");
    tools.run("nft add rule inet firewalld filter_INPUT ip saddr 192.0.2.1 counter packets 7 bytes 800 drop");
    recorded(&sandbox, &dir);
    let file = directory.path().join("node.html");
    let arguments = format!("report -o {} --record {}", file.display(), dir.display());
    assert_eq!(run(&sandbox, &arguments).expect(0).out, "");
    let page = fs::read_to_string(&file).unwrap();
    check(&page);
    let text = text(&page);
    for part in [
        "filter_INPUT · input 10 · policy drop · 1 rule · firewalld",
        "probably of firewalld: packets to this machine",
        "If the IPv4 source address is 192.0.2.1, the rule counts the packet, then drops it.",
        "drop 7 800",
        "1 rule added in inet firewalld filter_INPUT by ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The newest first.
    let (rule, start) = (
        text.find("1 rule added"),
        text.find("recording starts with"),
    );
    assert!(rule < start && start.is_some(), "{text}");
    drop(recorder);
    // A segment that cannot be read is named, and so is the omission on the page.
    let segments = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut segments =
        segments.filter(|path| path.extension().is_some_and(|end| end == "chainrec"));
    let segment = segments.next().unwrap();
    let whole = fs::read(&segment).unwrap();
    fs::write(&segment, "no record").unwrap();
    let damaged = run(&sandbox, &arguments).expect(2);
    assert!(
        damaged.err.contains(&*segment.to_string_lossy()),
        "{}",
        damaged.err
    );
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.contains("some entries of the record cannot be read"));
    fs::write(&segment, whole).unwrap();
    run(&sandbox, &arguments).expect(0);
    let none = run(&sandbox, "report -o - --record /nonexistent").expect(2);
    assert!(
        none.err.contains("/nonexistent") && none.out.is_empty(),
        "{}",
        none.err
    );
    let none = run(&sandbox, "report -o /nonexistent/file").expect(2);
    assert!(
        none.err.contains("cannot write /nonexistent/file"),
        "{}",
        none.err
    );
    let none = run(&sandbox, "report -o - --json").expect(2);
    assert!(none.err.contains("--json"), "{}", none.err);
}

/// The page of a large ruleset states what it omits, and its size does not grow with the ruleset.
#[test]
fn large_rulesets_are_cut() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("rules.nft");
    let sizes = [3000, 6000].map(|count| {
        let mut rules =
            String::from("table inet t {\n chain input { type filter hook input priority 0;\n");
        for number in 0..count {
            rules += &format!(
                "ip saddr 10.0.{}.{} jump pod{number}\n",
                number / 256,
                number % 256
            );
        }
        rules += " }\n";
        for number in 0..count {
            rules += &format!(
                "chain pod{number} {{ tcp dport {} accept; drop; }}\n",
                number + 1
            );
        }
        fs::write(&path, rules + "}\n").unwrap();
        let page = page(&[path.to_str().unwrap()]);
        let text = text(&page);
        // The base chain and 1,499 others are shown; of the base chain, 400 rules.
        let chains = format!("Left out: {} chains.", count - 1499);
        let rules = format!("Left out: {} rules.", count - 400 + 2 * (count - 1499));
        assert!(
            text.contains(&chains) && text.contains(&rules),
            "{chains} {rules}"
        );
        assert!(text.contains(&format!("Left out: {} rules.", count - 400)));
        page.len()
    });
    assert!(sizes[1] < sizes[0] * 11 / 10, "{sizes:?}");
}
