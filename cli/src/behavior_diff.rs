//! `chainwright diff --packets`: packets that two rulesets treat differently.

use std::path::Path;

use chainwright_trace::{Comparison, Node, Packet, Trace, Values, compare};
use serde::Serialize;

use crate::output::{Error, Exit, Output, counted, note};
use crate::packet::format_packet;
use crate::progress::Progress;
use crate::scope::{Found, Scope, UnreadPart};
use crate::trace_output::{Ruleset, lines, options, outcome, percent, print_untraced, reason};

/// Maximum number of kinds of difference that are shown.
const MAX_PACKETS: usize = 10;

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    tried: usize,
    unknown: usize,
    different: usize,
    unmatched: usize,
    differences: Vec<Record<'d>>,
    not_traced: NotTraced<'d>,
    not_read: &'d [UnreadPart],
}

/// Tables and chains that traces do not cover.
#[derive(Serialize)]
struct NotTraced<'d> {
    old: &'d [String],
    new: &'d [String],
}

#[derive(Serialize)]
struct Record<'d> {
    packet: String,
    more: usize,
    old: &'d Trace,
    new: &'d Trace,
}

/// Compares two files, or a file and the kernel's ruleset.
pub(crate) fn run(
    old: &Path,
    new: Option<&Path>,
    most: usize,
    scope: &Scope,
    json: bool,
) -> Result<Exit, Error> {
    let mut found = Found::default();
    let old = Ruleset::of_file(old, scope)?;
    let new = match new {
        Some(file) => Ruleset::of_file(file, scope)?,
        None => Ruleset::of_kernel(scope, &mut found)?,
    };
    let progress = Progress::new("trying packets");
    let values = Values::between((&old.snapshot, &old.legacy), (&new.snapshot, &new.legacy));
    let (old_rules, new_rules) = (old.rules(), new.rules());
    let comparison = compare(
        &old_rules,
        &new_rules,
        &values,
        most,
        // The machine has only the addresses to which packets are explicitly sent, so that traces make no assumptions.
        &Node {
            addresses: Some(Vec::new()),
            ..Node::default()
        },
        &options(true),
    );
    drop(progress);
    let mut out = Output::new();
    if json {
        let not_traced = NotTraced {
            old: old_rules.not_traced(),
            new: new_rules.not_traced(),
        };
        out.json("diff", &document(&comparison, not_traced, &found))?;
    } else {
        print_text(&mut out, &old, &new, &comparison)?;
    }
    out.flush()?;
    for text in &found.notes {
        note(text);
    }
    print_untraced(&old_rules, Some("old"));
    print_untraced(&new_rules, Some("new"));
    // Rulesets with equal rules and elements have equal results.
    let is_partial = comparison.unmatched > 0 || (comparison.unknown > 0 && comparison.changed > 0);
    Ok(match (comparison.different, is_partial) {
        _ if found.is_partial() => Exit::Failed,
        (0, true) => Exit::Failed,
        (0, false) => Exit::Done,
        _ => Exit::Absent,
    })
}

fn document<'d>(
    comparison: &'d Comparison,
    not_traced: NotTraced<'d>,
    found: &'d Found,
) -> Document<'d> {
    Document {
        tried: comparison.tried,
        unknown: comparison.unknown,
        different: comparison.different,
        unmatched: comparison.unmatched,
        differences: comparison
            .differences
            .iter()
            .map(|difference| Record {
                packet: format_packet(&difference.packet),
                more: difference.more,
                old: &difference.old,
                new: &difference.new,
            })
            .collect(),
        not_traced,
        not_read: &found.not_read,
    }
}

fn print_text(
    out: &mut Output,
    old: &Ruleset,
    new: &Ruleset,
    comparison: &Comparison,
) -> Result<(), Error> {
    for difference in comparison.differences.iter().take(MAX_PACKETS) {
        let packet = &difference.packet;
        lines(out, "", &format_packet(packet))?;
        side(out, "-", old, packet, &difference.old)?;
        side(out, "+", new, packet, &difference.new)?;
        if difference.more > 0 {
            writeln!(out, "  and {} more like this", difference.more)?;
        }
        writeln!(out)?;
    }
    let rest = comparison.differences.len().saturating_sub(MAX_PACKETS);
    if rest > 0 {
        writeln!(out, "… {rest} more kinds of difference; --json has them")?;
    }
    let unknown = match comparison.unknown {
        0 => String::new(),
        some => format!("; unknown for {some}"),
    };
    let different = match comparison.different {
        0 => "no difference found".to_owned(),
        1 => "1 is treated differently".to_owned(),
        many => format!("{many} are treated differently"),
    };
    let all = format!(
        "{} tested, {different}{unknown}.",
        counted(comparison.tried, "packet was", "packets were")
    );
    lines(out, "", &all)?;
    if comparison.unmatched > 0 {
        let rules = counted(comparison.unmatched, "rule", "rules");
        lines(
            out,
            "",
            &format!(
                "No tested packet reaches {rules} that only one of the rulesets has: their effect is unknown."
            ),
        )?;
    }
    lines(
        out,
        "",
        "The packets use the values in the rules, neighboring values, and combinations of two rules: differences that \
         they miss are possible.",
    )
}

/// Prints the outcome of a packet in one of the two rulesets, and the rules that decide it.
fn side(
    out: &mut Output,
    sign: &str,
    ruleset: &Ruleset,
    packet: &Packet,
    trace: &Trace,
) -> Result<(), Error> {
    for end in &trace.ends {
        let percent = match trace.ends.len() {
            1 => String::new(),
            _ => format!("{}: ", percent(end.probability)),
        };
        lines(
            out,
            "  ",
            &format!("{sign} {percent}{}", outcome(packet, end)),
        )?;
        for step in end.steps.iter().filter(|step| step.rule.is_some()) {
            let words = ruleset
                .rule_text(step)
                .map(|(words, _)| words)
                .unwrap_or_default();
            lines(
                out,
                "      ",
                &format!("{}: {words}", crate::trace_output::rule_location(step)),
            )?;
        }
        if end.steps.last().is_some_and(|step| step.rule.is_none())
            && let Some(reason) = reason(ruleset, end)
        {
            lines(out, "      ", &reason)?;
        }
    }
    Ok(())
}
