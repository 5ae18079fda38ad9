//! `chainwright get ruleset -o iptables`: tables in the format of `iptables-save`.

use chainwright::iptables::text::{Omissions, SaveOptions};
use chainwright::iptables::{Backend, Chain, ChainKind, Policy, RuleView, Tables};
use serde::Serialize;

use crate::get::ruleset::Args;
use crate::iptables::{ChainRecord, RuleRecord, TableRecord, TableSelection};
use crate::output::{Error, Exit, Output, Printable, name_text, note};

#[derive(Serialize)]
struct Document<'t> {
    family: &'static str,
    backend: &'static str,
    tables: Vec<TableRecord<'t>>,
}

/// Prints the tables of one family in one backend.
pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let selection = TableSelection::of(&args.scope.place)?;
    selection.warn_about_other_backend();
    // A name that is not UTF-8 belongs to none of iptables' tables.
    let name = args.scope.table.as_ref().map(|name| name.to_string_lossy());
    let names: Vec<&str> = name.as_deref().into_iter().collect();
    let tables = selection.open_if_loaded()?.read(selection.family, &names)?;
    let mut out = Output::new();
    let omissions = if json {
        let (document, omissions) = document(&tables);
        out.json("save", &document)?;
        omissions
    } else {
        let options = SaveOptions {
            counters: args.counters,
        };
        {
            let words = crate::dialect::options();
            tables
                .save_with_formatter(
                    options,
                    &|table, rule| chainwright_lang::rule(table, rule, &words),
                    &mut out.text(),
                )
                .map_err(Error::Output)?
        }
    };
    out.flush()?;
    if !omissions.is_complete() {
        note(&format!(
            "this copy is incomplete: iptables cannot express {}; the text has comments in their place \
             (`chainwright snapshot` keeps everything)",
            describe_omissions(omissions)
        ));
    }
    if omissions.private > 0 {
        note(&format!(
            "{} options that only `chainwright apply` knows (--xt-revision, --xt-data); other tools reject \
             this text",
            match omissions.private {
                1 => "1 rule has".to_owned(),
                many => format!("{many} rules have"),
            }
        ));
    }
    if !omissions.is_none() {
        return Ok(Exit::Failed);
    }
    if tables.iter().is_empty() {
        if !json {
            note(&match &name {
                Some(name) => format!(
                    "no table {} among the {}",
                    Printable(name),
                    selection.describe()
                ),
                None => format!("no {}", selection.describe()),
            });
        }
        return Ok(Exit::Absent);
    }
    Ok(Exit::Done)
}

/// Describes the omissions.
pub(crate) fn describe_omissions(omissions: Omissions) -> String {
    let parts = [
        (omissions.rules, "rule", "rules"),
        (omissions.chains, "chain", "chains"),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }))
        .collect();
    parts.join(" and ")
}

fn document(tables: &Tables) -> (Document<'_>, Omissions) {
    let mut omissions = Omissions::default();
    let document = Document {
        family: chainwright::nft::Family::from(tables.family())
            .name()
            .unwrap_or_default(),
        backend: match tables.backend() {
            Backend::Nft => "nft",
            Backend::Legacy => "legacy",
        },
        tables: tables
            .iter()
            .iter()
            .map(|table| TableRecord {
                table: name_text(table.name().as_ref()),
                chains: table
                    .chains()
                    .map(|chain| chain_record(tables, &chain, &mut omissions))
                    .collect(),
            })
            .collect(),
    };
    (document, omissions)
}

fn chain_record<'t>(
    tables: &Tables,
    chain: &Chain<'t>,
    omissions: &mut Omissions,
) -> ChainRecord<'t> {
    let not_expressible = chain.not_expressible();
    omissions.chains += usize::from(not_expressible.is_some());
    let (policy, counters) = match chain.kind() {
        ChainKind::Builtin { policy, counters } => (Some(policy), Some(counters)),
        _ => (None, None),
    };
    ChainRecord {
        chain: name_text(chain.name()),
        policy: policy.map(Policy::name),
        counters: counters.map(Into::into),
        foreign: chain.kind() == ChainKind::Foreign,
        not_expressible,
        rules: match not_expressible {
            Some(_) => Vec::new(),
            None => chain
                .rules()
                .map(|rule| rule_record(tables, &rule, omissions))
                .collect(),
        },
    }
}

fn rule_record(tables: &Tables, rule: &RuleView<'_>, omissions: &mut Omissions) -> RuleRecord {
    let entry = tables.entry(rule);
    match &entry {
        Ok(entry) => omissions.private += usize::from(entry.rule.has_opaque()),
        Err(_) => omissions.rules += 1,
    }
    RuleRecord::of(entry.map_err(|why| why.to_string()))
}
