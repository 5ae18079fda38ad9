//! `chainwright save`: tables as `iptables-save` prints them.

use bstr::ByteSlice;
use chainwright::iptables::text::{Omissions, SaveOptions};
use chainwright::iptables::{Backend, Chain, ChainKind, RuleView, Tables};
use serde::Serialize;

use crate::iptables::{ChainRecord, RuleRecord, TableRecord, Whose, policy_name};
use crate::output::{Error, Exit, Output, Printable, note};
use crate::scope::Scope;

/// Print iptables' tables as iptables-save does
///
/// Text for `restore`, or for iptables-restore. Without -6 it is IPv4's, without --backend that of
/// nf_tables. Tables that are not there are not made; all that nf_tables have is of one generation.
///
/// A rule that iptables' language has no words for (somebody wrote it with nft) stands in the text as a
/// comment that shows its bytecode, and a base chain of nft's own, or one whose name iptables does not
/// take, as a comment with its name. Such a text is no whole copy: standard error says how many there
/// are, and the exit code is 2. `backup` keeps everything. An extension whose data iptables has no options
/// for stands there by its bytes (`-m NAME --xt-revision NUMBER --xt-data HEX`): `restore` loads that, and
/// no other tool does, so that the exit code is 2 then, too. If there is no table, nothing is printed and
/// the exit code is 1.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// With the counters of rules; those of policies are printed in any case
    #[arg(short, long)]
    counters: bool,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Serialize)]
struct Document<'t> {
    family: &'static str,
    backend: &'static str,
    tables: Vec<TableRecord<'t>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let whose = Whose::of(&args.scope.place)?;
    whose.warn_of_the_other();
    // A name that is no text is none of iptables' tables.
    let name = args.scope.table.as_ref().map(|name| name.to_string_lossy());
    let names: Vec<&str> = name.as_deref().into_iter().collect();
    let tables = whose.open_to_look()?.read(whose.family, &names)?;
    let mut out = Output::new();
    let omissions = if json {
        let (document, omissions) = document(&tables);
        out.json("save", &document)?;
        omissions
    } else {
        let options = SaveOptions {
            counters: args.counters,
        };
        tables.save(options, out.bytes()).map_err(Error::Output)?
    };
    out.flush()?;
    if !omissions.is_whole() {
        note(&format!(
            "this is no whole copy: iptables has no words for {}, which stand in it as comments only \
             (`chainwright backup` keeps everything)",
            said(omissions)
        ));
    }
    if omissions.private > 0 {
        note(&format!(
            "{} said in words that only `chainwright restore` knows (--xt-revision, --xt-data); other \
             tools refuse this text",
            match omissions.private {
                1 => "1 rule is".to_owned(),
                many => format!("{many} rules are"),
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
                    "there is no table {} among the {}",
                    Printable(name),
                    whose.describe()
                ),
                None => format!("there are no {}", whose.describe()),
            });
        }
        return Ok(Exit::Absent);
    }
    Ok(Exit::Done)
}

fn said(omissions: Omissions) -> String {
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
                table: table.name().to_str_lossy(),
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
        chain: chain.name().to_str_lossy(),
        policy: policy.map(policy_name),
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
