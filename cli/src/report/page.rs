//! The page.

use std::collections::BTreeMap;

use bstr::ByteSlice as _;
use chainwright_kube::explain::ChainInfo;
use chainwright_trace::End;
use chainwright_trace::graph::{Node, NodeKind, ViewOptions};

use super::Contents;
use super::html::Html;
use crate::explain::about;
use crate::explain::chain::{ChainExplanation, RuleRecord};
use crate::graph::label;
use crate::output::{counted, name_text};
use crate::packet::format_packet;
use crate::trace_output::{Ruleset, outcome, percent, reason, rule_location};

/// The style sheet.
const STYLE: &str = include_str!("style.css");
/// The script.
pub(super) const SCRIPT: &str = include_str!("script.js");
/// The policy of the page: it loads nothing, and runs only the script above.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
     'sha256-BMfV4SombuxVXgaTKBVAS1248YH8d60POsCC+3SuNsk='";

/// Maximum number of nodes of the graph.
const MAX_NODES: usize = 1500;
/// Maximum number of chains with their rules.
const MAX_CHAINS: usize = 1500;
/// Maximum number of rules of a chain, and of all chains.
const MAX_RULES_OF_CHAIN: usize = 400;
const MAX_RULES: usize = 15_000;
/// Maximum numbers of findings, and of ends of a trace.
const MAX_FINDINGS: usize = 300;
const MAX_ENDS: usize = 16;

/// Writes the page.
pub(super) fn written(contents: &Contents<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")
        .raw(POLICY)
        .raw("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"referrer\" content=\"no-referrer\">\n")
        .element("title", &format!("Packet filter of {}", contents.source))
        .raw("<style>\n")
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n");
    html.element("h1", &format!("Packet filter of {}", contents.source));
    let graph = &contents.explainer.graph;
    let rules: usize = graph
        .nodes()
        .iter()
        .filter(|node| is_chain(node))
        .map(|node| node.size)
        .sum();
    let counts = [
        counted(graph.tables().len(), "table", "tables"),
        counted(graph.chain_count(), "chain", "chains"),
        counted(rules, "rule", "rules"),
        counted(contents.findings.len(), "problem", "problems"),
    ];
    html.element(
        "p class=\"weak\"",
        &format!("{} · {}", contents.made, counts.join(" · ")),
    );
    html.raw("<nav><a href=\"#problems\">Problems</a> <a href=\"#picture\">Graph</a> ");
    if !contents.traces.is_empty() {
        html.raw("<a href=\"#packets\">Packets</a> ");
    }
    if contents.transactions.is_some() {
        html.raw("<a href=\"#changes\">Changes</a> ");
    }
    html.raw("<a href=\"#chains\">Chains</a></nav>\n");
    for part in &contents.not_read {
        html.element("p class=\"note\"", &format!("Not read: {part}"));
    }
    problems(&mut html, contents);
    picture(&mut html, contents);
    packets(&mut html, contents);
    changes(&mut html, contents);
    chains(&mut html, contents);
    html.raw("<script>")
        .raw(SCRIPT)
        .raw("</script>\n</body>\n</html>\n");
    html.finish()
}

fn is_chain(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Base(_) | NodeKind::Chain)
}

/// Writes the number of things that are left out.
fn left_out(html: &mut Html, count: usize, one: &str, many: &str, how: &str) {
    if count > 0 {
        let text = format!("Left out: {}. {how}", counted(count, one, many));
        html.element("p class=\"note\"", &text);
    }
}

fn problems(html: &mut Html, contents: &Contents<'_>) {
    html.raw("<h2 id=\"problems\">Problems</h2>\n");
    if contents.findings.is_empty() {
        html.element("p class=\"good\"", "check found no problems.");
        return;
    }
    html.open("ul");
    for record in contents.findings.iter().take(MAX_FINDINGS) {
        html.open("li");
        match record.severity {
            "risk" => html.element("b class=\"bad\"", "risk"),
            severity => html.element("b", severity),
        };
        html.text(&format!(" {}: {}", record.location, record.message));
        if let Some(rule) = &record.rule {
            html.raw("<br>").element("code", rule);
        }
        html.close("li");
    }
    html.close("ul");
    let more = contents.findings.len().saturating_sub(MAX_FINDINGS);
    left_out(
        html,
        more,
        "problem",
        "problems",
        "`chainwright check --all` lists all.",
    );
}

fn picture(html: &mut Html, contents: &Contents<'_>) {
    html.raw("<h2 id=\"picture\">Graph</h2>\n");
    let options = ViewOptions {
        full: false,
        selected: None,
        label: Some(&label),
    };
    let view = contents.explainer.graph.view(&options);
    let nodes = view.groups().len();
    if nodes == 0 {
        html.element("p", "There are no chains.");
        return;
    }
    if nodes > MAX_NODES {
        let how = "`chainwright graph --service NAME` or `--chain NAME` shows a part.";
        left_out(html, nodes, "node of the graph", "nodes of the graph", how);
        return;
    }
    html.element(
        "p class=\"weak\"",
        "Jumps from base chains on the left to their targets. Many similar chains, such as those of services, are one \
         node with an asterisk.",
    );
    html.raw("<div id=\"zoom\" class=\"tools\" hidden><button id=\"smaller\">smaller</button><button id=\"larger\">larger</button><button id=\"fit\">fit</button><span class=\"weak\">A click on a name searches for it.</span></div>\n");
    html.raw("<div id=\"graph\">\n")
        .svg(&view.svg())
        .raw("</div>\n");
}

fn packets(html: &mut Html, contents: &Contents<'_>) {
    if contents.traces.is_empty() {
        return;
    }
    html.raw("<h2 id=\"packets\">Packets</h2>\n");
    for (packet, trace) in &contents.traces {
        html.element("h3", &format_packet(packet));
        for (number, end) in trace.ends.iter().take(MAX_ENDS).enumerate() {
            html.raw(if number == 0 {
                "<details open>\n"
            } else {
                "<details>\n"
            });
            html.open("summary");
            html.element("b", &percent(end.probability))
                .text(" ")
                .text(&outcome(packet, end));
            if !end.assumptions.is_empty() {
                html.text(&format!(", if {}", end.assumptions.join(", ")));
            }
            html.close("summary");
            steps(html, contents.explainer.ruleset, end);
            html.raw("</details>\n");
        }
        let more = trace.ends.len().saturating_sub(MAX_ENDS);
        left_out(
            html,
            more,
            "path",
            "paths",
            "`chainwright trace --all` shows all.",
        );
        if trace.is_truncated {
            html.element("p class=\"note\"", "Not all paths were followed.");
        }
    }
    for name in &contents.not_traced {
        html.element("p class=\"weak\"", &format!("Not evaluated: {name}"));
    }
}

fn steps(html: &mut Html, ruleset: &Ruleset, end: &End) {
    if end.steps.is_empty() {
        html.element("p class=\"weak\"", "It passes no chain.");
        return;
    }
    html.open("ol");
    for step in &end.steps {
        html.open("li");
        let actions = step.actions.iter().map(|action| format!("{action}, "));
        let actions: String = actions.collect();
        html.text(&format!(
            "{} {}: {}: {actions}{}",
            step.hook,
            step.priority,
            rule_location(step),
            step.verdict
        ));
        if let Some((words, _)) = ruleset.rule_text(step) {
            html.raw("<br>").element("code", &words);
        }
        html.close("li");
    }
    html.close("ol");
    for chance in &end.chances {
        html.element("p class=\"weak\"", &format!("random: {chance}"));
    }
    if let Some(reason) = reason(ruleset, end) {
        html.element("p class=\"weak\"", &format!("decided by {reason}"));
    }
}

fn changes(html: &mut Html, contents: &Contents<'_>) {
    let Some(transactions) = &contents.transactions else {
        return;
    };
    html.raw("<h2 id=\"changes\">Changes</h2>\n");
    if transactions.is_empty() {
        html.element("p", "Nothing is recorded.");
        return;
    }
    html.raw("<div class=\"scroll\"><table>\n<thead><tr><th>time</th><th>generation</th><th>change</th></tr></thead>\n<tbody>\n");
    for (time, generation, change) in transactions {
        html.raw("<tr>")
            .element("td", time)
            .element("td class=\"number\"", generation)
            .element("td", change)
            .raw("</tr>\n");
    }
    html.raw("</tbody></table></div>\n");
}

fn chains(html: &mut Html, contents: &Contents<'_>) {
    html.raw("<h2 id=\"chains\">Chains</h2>\n")
        .raw("<div id=\"tools\" class=\"tools\" hidden><input id=\"search\" type=\"search\" placeholder=\"Search chains, rules and comments\" aria-label=\"Search\"><span id=\"found\" class=\"weak\"></span></div>\n");
    let graph = &contents.explainer.graph;
    let (mut left_chains, mut left_rules) = (MAX_CHAINS, MAX_RULES);
    let (mut omitted_chains, mut omitted_rules) = (0, 0);
    for (number, table) in graph.tables().iter().enumerate() {
        let dormant = if table.dormant { " (dormant)" } else { "" };
        html.element(
            "h3",
            &format!("table {}{dormant}", name_text(table.to_string().as_bytes())),
        );
        let mut services: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut plain: Vec<usize> = Vec::new();
        for (place, node) in graph.nodes().iter().enumerate() {
            if node.table != number || !is_chain(node) {
                continue;
            }
            let comment = node.comment.as_ref().map(|comment| comment.as_bstr());
            match ChainInfo::of(&node.name, comment).and_then(|info| info.port) {
                Some(port) => services.entry(port).or_default().push(place),
                None => plain.push(place),
            }
        }
        // Base chains first.
        plain.sort_by_key(|place| !matches!(graph.node(*place).kind, NodeKind::Base(_)));
        let mut write = |html: &mut Html, place: usize| {
            let size = graph.node(place).size;
            if left_chains == 0 || left_rules == 0 {
                omitted_chains += 1;
                omitted_rules += size;
                return;
            }
            left_chains -= 1;
            let most = left_rules.min(MAX_RULES_OF_CHAIN);
            if let Some(chain) = contents.explainer.chain_up_to(place, most) {
                left_rules -= chain.rules.len();
                omitted_rules += size - chain.rules.len();
                self::chain(html, &chain, size);
            }
        };
        for place in plain {
            write(html, place);
        }
        for (port, places) in &services {
            let group = places.len() > 1;
            if group {
                html.raw("<details class=\"group\">\n")
                    .open("summary")
                    .text("service ");
                let count = format!(" · {}", counted(places.len(), "chain", "chains"));
                html.element("b", port)
                    .text(&count)
                    .close("summary")
                    .raw("<div>\n");
            }
            for place in places {
                write(html, *place);
            }
            if group {
                html.raw("</div></details>\n");
            }
        }
    }
    let how = "`chainwright explain FAMILY TABLE CHAIN` shows one.";
    left_out(html, omitted_chains, "chain", "chains", how);
    left_out(html, omitted_rules, "rule", "rules", how);
}

fn chain(html: &mut Html, chain: &ChainExplanation, size: usize) {
    html.raw("<details class=\"chain\">\n")
        .open("summary")
        .element("b", &chain.chain);
    if let Some(hook) = &chain.hook {
        let priority = chain.priority.map(|priority| format!(" {priority}"));
        html.text(&format!(" · {hook}{}", priority.unwrap_or_default()));
        if let Some(policy) = chain.policy {
            html.text(&format!(" · policy {policy}"));
        }
    }
    html.text(&format!(" · {}", counted(size, "rule", "rules")));
    if let Some(owner) = chain.owner {
        html.element("span class=\"weak\"", &format!(" · {owner}"));
    }
    html.close("summary");
    // The summary has the owner.
    for line in about(chain).into_iter().skip(usize::from(
        chain.owner.is_some() && chain.purpose.is_none(),
    )) {
        html.element("p class=\"weak\"", &line);
    }
    if !chain.rules.is_empty() {
        let has_counters = chain.rules.iter().any(|rule| rule.packets.is_some());
        html.raw("<div class=\"scroll\"><table class=\"rules\">\n<thead><tr><th>rule</th>")
            .raw("<th>what it does</th>");
        if has_counters {
            html.raw("<th>packets</th><th>bytes</th>");
        }
        html.raw("</tr></thead>\n<tbody>\n");
        for rule in &chain.rules {
            row(html, rule, has_counters);
        }
        html.raw("</tbody></table></div>\n");
    }
    match size - chain.rules.len() {
        0 => {}
        more => left_out(
            html,
            more,
            "rule",
            "rules",
            &format!(
                "`chainwright explain {} {} {}` shows all.",
                chain.family, chain.table, chain.chain
            ),
        ),
    }
    html.raw("</details>\n");
}

fn row(html: &mut Html, rule: &RuleRecord, has_counters: bool) {
    let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    let number = rule.number.to_string();
    html.raw("<tr>")
        .element("td class=\"number\" data-name=\"rule\"", &number);
    html.raw("<td>").text(&rule.text);
    if let Some(comment) = &rule.comment {
        html.raw("<br>").element("i", comment);
    }
    html.element("span class=\"words\"", &rule.words)
        .raw("</td>");
    if has_counters {
        html.element(
            "td class=\"number\" data-name=\"packets\"",
            &count(rule.packets),
        );
        html.element(
            "td class=\"number\" data-name=\"bytes\"",
            &count(rule.bytes),
        );
    }
    html.raw("</tr>\n");
}
