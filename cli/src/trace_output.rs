//! Text output of traces.

use std::collections::BTreeMap;
use std::path::Path;

use anstyle::AnsiColor;
use bstr::{BStr, ByteSlice};
use chainwright::iptables::Backend;
use chainwright::legacy;
use chainwright::nft::{self, Snapshot};
use chainwright_kube::explain::{ChainInfo, Role};
use chainwright_trace::{End, Options, Outcome, Packet, RuleAt, RuleVerdict, Rules, Step, Trace};

use crate::get::rules::{self, Sets};
use crate::legacy_tables::{self, family_name};
use crate::output::{Error, Output, Printable, note};
use crate::ruleset_source::Source;
use crate::scope::{Found, Scope};

/// Maximum length of lines.
const WIDTH: usize = 80;
/// Maximum number of ends that are shown with their paths without --all.
const MAX_CASES: usize = 8;

/// A ruleset of both backends, with the data needed to format its rules.
pub(crate) struct Ruleset {
    pub(crate) snapshot: Snapshot,
    pub(crate) legacy: Vec<legacy::Table>,
    pub(crate) sets: Sets,
    pub(crate) words: chainwright_lang::Options,
}

impl Ruleset {
    fn of(snapshot: Snapshot, legacy: Vec<legacy::Table>) -> Self {
        let mut words = crate::dialect::options();
        words.stateless = true;
        Self {
            snapshot,
            legacy,
            sets: rules::sets(),
            words,
        }
    }

    /// Reads the kernel's rules.
    pub(crate) fn of_kernel(scope: &Scope, found: &mut Found) -> Result<Self, Error> {
        let selected = found.nft(scope.place.listed(), || scope.read_selected())?;
        let mut legacy = Vec::new();
        legacy_tables::read_selected(scope, found, &mut |table| {
            legacy.push(table.clone());
            Ok(())
        })?;
        Ok(Self::of(selected.unwrap_or_default(), legacy))
    }

    /// Reads the rules of a file.
    pub(crate) fn of_file(file: &Path, scope: &Scope) -> Result<Self, Error> {
        let snapshot = Source::read(file, scope)?.into_snapshot();
        let snapshot = snapshot.map_err(|why| {
            let file = file.to_string_lossy();
            Error::Other(format!("{} is not a ruleset: {why}", Printable(&file)))
        })?;
        let part = match scope.is_filtered() {
            true => snapshot.filtered(&scope.filter()).unwrap_or_default(),
            false => snapshot,
        };
        Ok(Self::of(part, Vec::new()))
    }

    /// Returns the rules, ready for traces.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules::new()
            .with_nft(&self.snapshot)
            .with_legacy(&self.legacy)
    }

    /// Returns the purpose of the chain to which a step jumps, from its first rules.
    fn purpose_of_target(&self, step: &Step) -> Option<ChainInfo> {
        let (RuleVerdict::Jump(to) | RuleVerdict::Goto(to)) = &step.verdict else {
            return None;
        };
        (1..=3).find_map(|number| {
            let first = Step {
                chain: to.clone(),
                rule: Some(RuleAt {
                    handle: None,
                    number,
                }),
                ..step.clone()
            };
            let comment = self.rule_text(&first)?.1?;
            ChainInfo::of(to, Some(BStr::new(&comment))).filter(|part| part.port.is_some())
        })
    }

    /// Formats a step's rule, and returns its comment separately.
    pub(crate) fn rule_text(&self, step: &Step) -> Option<(String, Option<String>)> {
        let place = step.rule?.number.checked_sub(1)?;
        match step.backend {
            Backend::Nft => {
                let family: nft::Family = step.family.parse().ok()?;
                let table = self.snapshot.table(family, &step.table)?;
                let rule = table.chain(&step.chain)?.rule(place)?;
                if let Some(options) = rules::options(&rule, &self.sets) {
                    // Removes the counters.
                    let words = options.split_once("] ").map_or("", |(_, words)| words);
                    return Some((words.to_owned(), quoted(words)));
                }
                let comment = rule.comment().map(ToString::to_string);
                let words = chainwright_lang::rule(&table, &rule, &self.words);
                Some((
                    words.unwrap_or_else(|| rules::format_rule(&rule, &self.sets)),
                    comment,
                ))
            }
            Backend::Legacy => {
                let mut tables = self.legacy.iter();
                let table = tables.find(|table| {
                    table.name().as_bstr() == step.table
                        && family_name(table.family()) == step.family
                })?;
                let rule = table.chain(&step.chain)?.rules().nth(place)?;
                let words = rules::entry(&rule, &self.sets).ok()?.rule.to_string();
                let comment = quoted(&words);
                Some((words, comment))
            }
        }
    }
}

/// Returns the comment of an iptables rule.
fn quoted(words: &str) -> Option<String> {
    let rest = words.split_once("--comment ")?.1;
    let text = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(' ').next()?,
    };
    Some(text.to_owned())
}

/// Removes the comment from a rule's text, because it is printed separately.
fn without_comment(words: &str) -> String {
    for begin in [
        " -m comment --comment ",
        "-m comment --comment ",
        " comment ",
    ] {
        let Some((before, rest)) = words.split_once(begin) else {
            continue;
        };
        let behind = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map_or("", |(_, behind)| behind),
            None => rest.split_once(' ').map_or("", |(_, behind)| behind),
        };
        return format!("{before} {}", behind.trim_start());
    }
    words.to_owned()
}

/// Returns the purpose of a step's rule in Kubernetes' terms.
fn part(step: &Step, comment: Option<&str>) -> Option<ChainInfo> {
    let to = match &step.verdict {
        RuleVerdict::Jump(to) | RuleVerdict::Goto(to) => to.as_bstr(),
        _ => step.chain.as_bstr(),
    };
    ChainInfo::of(to, comment.map(BStr::new))
}

/// Formats the final destination of a packet: `10.244.1.5:80`.
pub(crate) fn arrived(end: &End) -> String {
    let (address, port) = (&end.packet.destination, &end.packet.destination_port);
    let (address, port) = (address.to_string(), port.to_string());
    match (port.is_empty(), address.contains(':')) {
        (true, _) => address,
        (false, true) => format!("[{address}]:{port}"),
        (false, false) => format!("{address}:{port}"),
    }
}

/// Formats the outcome of a packet, including a translated destination or source.
pub(crate) fn outcome(packet: &Packet, end: &End) -> String {
    let mut words = end.outcome.to_string();
    let goes_on = matches!(
        end.outcome,
        Outcome::Delivered | Outcome::Forwarded | Outcome::Sent
    );
    if !goes_on {
        return words;
    }
    let was = packet.destination.map(|address| address.to_string());
    let port = packet.destination_port.map(|port| port.to_string());
    let destination = &end.packet.destination;
    if destination.known() != was.as_deref()
        || end.packet.destination_port.known() != port.as_deref()
    {
        words += &format!(" to {}", arrived(end));
    }
    let translated = |end: &End| {
        let actions = end.steps.iter().flat_map(|step| &step.actions);
        let mut names = actions.filter_map(|action| match action {
            chainwright_trace::Action::Translate {
                destination: false,
                how,
                ..
            } => Some(*how),
            _ => None,
        });
        names.next()
    };
    if let Some(how) = translated(end) {
        words += &format!(", {how}");
        if let Some(source) = end.packet.source.known() {
            words += &format!(" from {source}");
        }
    }
    words
}

/// Formats the rule or policy that ended a packet's path, with its comment and its purpose in Kubernetes' terms.
pub(crate) fn reason(ruleset: &Ruleset, end: &End) -> Option<String> {
    let step = end.steps.last()?;
    let at = rule_location(step);
    let rule_text = ruleset.rule_text(step);
    let comment = rule_text.as_ref().and_then(|(_, comment)| comment.clone());
    let role = part(step, comment.as_deref());
    let why = match (comment, role) {
        (Some(comment), _) if !comment.is_empty() => format!(": {comment}"),
        (_, Some(part)) if part.role != Role::Canary => format!(": {part}"),
        _ => String::new(),
    };
    Some(format!("{at}{why}"))
}

/// Formats a position: `ip nat KUBE-SERVICES rule 5`, `ip filter FORWARD, its policy`.
pub(crate) fn rule_location(step: &Step) -> String {
    let table = format!("{} {}", step.family, step.table);
    let backend = match step.backend {
        Backend::Nft => "",
        Backend::Legacy => "legacy ",
    };
    match step.rule {
        Some(rule) => format!("{backend}{table} {} rule {}", step.chain, rule.number),
        None => format!("{backend}{table} {}, its policy", step.chain),
    }
}

/// Shortens a text to a number of characters.
fn fitted(text: &str, width: usize) -> String {
    let text = Printable(text).to_string();
    let long = text.chars().count();
    if long <= width {
        return text;
    }
    let tail = width / 3;
    let head: String = text.chars().take(width - tail - 1).collect();
    let end: String = text.chars().skip(long - tail).collect();
    format!("{head}…{end}")
}

/// Wraps a text into lines with this indentation.
pub(crate) fn wrapped(indent: &str, text: &str) -> Vec<String> {
    let text = Printable(text).to_string();
    let width = WIDTH - indent.chars().count();
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        let word = fitted(word, width);
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{line}"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(format!("{indent}{line}"));
    lines
}

/// Writes wrapped lines.
pub(crate) fn lines(out: &mut Output, indent: &str, text: &str) -> Result<(), Error> {
    for line in wrapped(indent, text) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Formats a probability: `50.0 %`.
pub(crate) fn percent(probability: f64) -> String {
    format!("{:.1} %", probability * 100.0)
}

/// Ends with the same assumptions and the same text.
pub(crate) struct OutcomeGroup<'w> {
    pub(crate) words: String,
    pub(crate) probability: f64,
    /// The first of them.
    pub(crate) end: &'w End,
}

/// Groups ends, in the order of the first end of each group.
pub(crate) fn outcome_groups<'w>(packet: &Packet, ends: &'w [End]) -> Vec<OutcomeGroup<'w>> {
    let mut groups: Vec<OutcomeGroup<'_>> = Vec::new();
    for end in ends {
        let words = outcome(packet, end);
        let same = groups
            .iter_mut()
            .find(|group| group.words == words && group.end.assumptions == end.assumptions);
        match same {
            Some(group) => group.probability += end.probability,
            None => groups.push(OutcomeGroup {
                words,
                probability: end.probability,
                end,
            }),
        }
    }
    groups
}

/// Prints the outcome of a packet, and then its paths.
pub(crate) fn print_text(
    out: &mut Output,
    ruleset: &Ruleset,
    packet: &Packet,
    trace: &Trace,
    all: bool,
) -> Result<(), Error> {
    // Probabilities are added if the assumptions are the same.
    let mut assumed: BTreeMap<&[String], Vec<OutcomeGroup<'_>>> = BTreeMap::new();
    let mut order: Vec<&[String]> = Vec::new();
    for group in outcome_groups(packet, &trace.ends) {
        let key = group.end.assumptions.as_slice();
        let groups = assumed.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        groups.push(group);
    }
    // Results that do not depend on assumptions are printed once.
    let same = |one: &[OutcomeGroup<'_>], other: &[OutcomeGroup<'_>]| {
        let close = |(one, other): (&OutcomeGroup<'_>, &OutcomeGroup<'_>)| {
            one.words == other.words && (one.probability - other.probability).abs() < 1e-9
        };
        one.len() == other.len() && one.iter().zip(other).all(close)
    };
    let mut printed: Vec<(&[String], usize)> = Vec::new();
    for key in &order {
        match printed
            .iter_mut()
            .find(|(other, _)| same(&assumed[other], &assumed[key]))
        {
            Some((_, more)) => *more += 1,
            None => printed.push((key, 0)),
        }
    }
    let whatever = printed.len() == 1;
    let bold = out.color(AnsiColor::Cyan);
    let most = if all {
        printed.len()
    } else {
        printed.len().min(MAX_CASES)
    };
    for (key, more) in &printed[..most] {
        if !key.is_empty() && !whatever {
            let or = match more {
                0 => String::new(),
                1 => ", or in another case".to_owned(),
                more => format!(", or in {more} other cases"),
            };
            lines(out, "  ", &format!("if {}{or}:", key.join(", ")))?;
        }
        for group_member in &assumed[key] {
            let percent = percent(group_member.probability);
            let width = WIDTH - 11;
            let words = fitted(&group_member.words, width);
            writeln!(out, "{bold}{percent:>9}{bold:#}  {words}")?;
            let ended = matches!(
                group_member.end.outcome,
                Outcome::Dropped | Outcome::Rejected(_) | Outcome::Queued(_) | Outcome::Unknown(_)
            );
            if ended && let Some(reason) = reason(ruleset, group_member.end) {
                lines(out, "             ", &format!("by {reason}"))?;
            }
        }
    }
    if printed.len() > most {
        writeln!(
            out,
            "  … and in {} more cases; --all shows them",
            printed.len() - most
        )?;
    }
    if trace.is_truncated {
        writeln!(out, "  Not all paths were followed.")?;
    }
    writeln!(out)?;
    let distinct: Vec<&OutcomeGroup<'_>> =
        printed.iter().flat_map(|(key, _)| &assumed[key]).collect();
    let several = distinct.len() > 1;
    let common = common_start(&trace.ends);
    let tail = match several {
        true => common_tail(&trace.ends, common),
        false => 0,
    };
    if several && common > 0 {
        writeln!(out, "all:")?;
    }
    if let Some(first) = trace.ends.first() {
        steps(out, ruleset, &first.steps[..common], all, None)?;
    }
    let shown = match all {
        true => distinct.len(),
        false => distinct.len().min(MAX_CASES),
    };
    for group_member in &distinct[..shown] {
        if several {
            let percent = percent(group_member.end.probability);
            writeln!(
                out,
                "{}",
                fitted(&format!("{percent}: {}", group_member.words), WIDTH)
            )?;
            for chance in &group_member.end.chances {
                lines(out, "  ", &format!("random: {chance}"))?;
            }
        }
        let own = &group_member.end.steps[..group_member.end.steps.len() - tail];
        steps(out, ruleset, &own[common..], all, own[..common].last())?;
        for note in &group_member.end.notes {
            lines(out, "  ", &format!("note: {note}"))?;
        }
    }
    let more = distinct.len() - shown;
    if more > 0 {
        writeln!(out, "… {more} more; --all shows them")?;
    }
    let last = trace.ends.first().filter(|_| tail > 0);
    let Some((own, shared)) = last.map(|end| end.steps.split_at(end.steps.len() - tail)) else {
        return Ok(());
    };
    let is_shown = |step: &Step| all || !is_plain_end(step);
    if shared.iter().any(is_shown) {
        writeln!(out, "then all:")?;
    }
    steps(
        out,
        ruleset,
        shared,
        all,
        own.last().filter(|_| own.len() == common),
    )
}

/// Returns whether a step is the end of a chain that accepts the packet.
fn is_plain_end(step: &Step) -> bool {
    step.rule.is_none() && step.verdict == RuleVerdict::Accept
}

/// Returns the number of steps at the end, after these first ones, that all ends have in common.
fn common_tail(ends: &[End], start: usize) -> usize {
    let Some((first, rest)) = ends.split_first() else {
        return 0;
    };
    let tail = |end: &End| {
        let pairs = first.steps[start..].iter().rev();
        let pairs = pairs.zip(end.steps[start..].iter().rev());
        pairs.take_while(|(one, other)| one == other).count()
    };
    rest.iter().map(tail).min().unwrap_or(0)
}

/// Returns the number of steps at the beginning that all ends have in common.
fn common_start(ends: &[End]) -> usize {
    let Some((first, rest)) = ends.split_first() else {
        return 0;
    };
    let same = |end: &End| {
        let pairs = first.steps.iter().zip(&end.steps);
        pairs.take_while(|(one, other)| one == other).count()
    };
    let shortest = rest.iter().map(same).min();
    shortest.unwrap_or(first.steps.len())
}

/// Prints steps with the text of each rule. Ends of accepting chains are printed only with `all`.
fn steps(
    out: &mut Output,
    ruleset: &Ruleset,
    steps: &[Step],
    all: bool,
    before: Option<&Step>,
) -> Result<(), Error> {
    let mut at = before.map(|step| (step.hook, step.priority));
    for step in steps {
        if is_plain_end(step) && !all {
            continue;
        }
        if at != Some((step.hook, step.priority)) {
            at = Some((step.hook, step.priority));
            let color = out.color(AnsiColor::Green);
            writeln!(out, "  {color}{} {}{color:#}", step.hook, step.priority)?;
        }
        let rule_text = ruleset.rule_text(step);
        let mut line = format!("{}:", rule_location(step));
        for action in &step.actions {
            line += &format!(" {action},");
        }
        line += &format!(" {}", step.verdict);
        lines(out, "    ", &line)?;
        let comment = rule_text
            .as_ref()
            .and_then(|(_, comment)| comment.as_deref());
        let remark = match (&step.verdict, comment) {
            (RuleVerdict::Jump(_) | RuleVerdict::Goto(_), _) => part(step, comment)
                .map(|part| match part.port {
                    None => ruleset.purpose_of_target(step).unwrap_or(part),
                    Some(_) => part,
                })
                .map(|part| part.to_string()),
            _ => None,
        };
        let remark = remark.or_else(|| comment.map(str::to_owned));
        if let Some((words, _)) = rule_text {
            let words = without_comment(&words);
            let words = words.trim();
            // If a rule only jumps, its text already contains the target.
            let verdict = step.verdict.to_string();
            let bare = words
                .replacen("-j ", "jump ", 1)
                .replacen("-g ", "goto ", 1);
            if !words.is_empty() && bare != verdict {
                writeln!(out, "        {}", fitted(words, WIDTH - 8))?;
            }
        }
        if let Some(remark) = remark {
            writeln!(out, "        # {}", fitted(&remark, WIDTH - 10))?;
        }
    }
    Ok(())
}

/// Lists the tables and chains that traces do not cover; `ruleset_name` names the ruleset if there are several.
pub(crate) fn print_untraced(rules: &Rules<'_>, ruleset_name: Option<&str>) {
    for name in rules.not_traced() {
        let name = Printable(name);
        let of = ruleset_name.map_or_else(String::new, |ruleset_name| {
            format!(" (of the {ruleset_name} ruleset)")
        });
        note(&format!("not evaluated: {name}{of}"));
    }
}

/// Returns the command's options for traces.
pub(crate) fn options(as_they_are: bool) -> Options {
    let mut options = Options::default();
    options.assume_static_sets = as_they_are;
    options
}
