//! `chainwright save`: tables as `iptables-save` prints them.

use bstr::ByteSlice;
use chainwright::iptables::text::{Omissions, SaveOptions};
use chainwright::iptables::{Backend, Chain, ChainKind, Counters, Policy, RuleView, Tables};
use serde::Serialize;

use crate::iptables::Whose;
use crate::output::{Error, Exit, Output, note};

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
///
/// With --json, one document: {"family", "backend", "tables": [{"table", "chains": [{"chain", "policy",
/// "packets", "bytes", "rules": [{"packets", "bytes", "rule"}]}]}]}. A chain of a user's has no policy
/// and no counters; a rule without words has "beyond", which says why, in their place, and so has a
/// chain without words beside no rules.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    whose: Whose,

    /// Only this table: filter, nat, mangle, raw or security
    #[arg(short, long, value_name = "TABLE")]
    table: Option<String>,

    /// With the counters of rules; those of policies are printed in any case
    #[arg(short, long)]
    counters: bool,
}

#[derive(Serialize)]
struct Document<'t> {
    family: &'static str,
    backend: &'static str,
    tables: Vec<TableRecord<'t>>,
}

#[derive(Serialize)]
struct TableRecord<'t> {
    table: std::borrow::Cow<'t, str>,
    chains: Vec<ChainRecord<'t>>,
}

#[derive(Serialize)]
struct ChainRecord<'t> {
    chain: std::borrow::Cow<'t, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'static str>,
    #[serde(flatten)]
    counters: Option<CountersRecord>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    foreign: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    beyond: Option<&'static str>,
    rules: Vec<RuleRecord>,
}

#[derive(Serialize)]
struct CountersRecord {
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RuleRecord {
    Said {
        #[serde(flatten)]
        counters: CountersRecord,
        rule: String,
    },
    Beyond {
        beyond: String,
    },
}

impl From<Counters> for CountersRecord {
    fn from(counters: Counters) -> Self {
        Self {
            packets: counters.packets,
            bytes: counters.bytes,
        }
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.whose.warn_of_the_other();
    let names: Vec<&str> = args.table.as_deref().into_iter().collect();
    let tables = args
        .whose
        .open_to_look()?
        .read(args.whose.family(), &names)?;
    let mut out = Output::new();
    let omissions = if json {
        let (document, omissions) = document(&tables);
        out.json(&document)?;
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
            note(&match &args.table {
                Some(name) => format!(
                    "there is no table {name} among the {}",
                    args.whose.describe()
                ),
                None => format!("there are no {}", args.whose.describe()),
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
    let beyond = chain.not_expressible();
    omissions.chains += usize::from(beyond.is_some());
    let (policy, counters) = match chain.kind() {
        ChainKind::Builtin { policy, counters } => (Some(policy), Some(counters)),
        _ => (None, None),
    };
    ChainRecord {
        chain: chain.name().to_str_lossy(),
        policy: policy.map(|policy| match policy {
            Policy::Accept => "ACCEPT",
            Policy::Drop => "DROP",
        }),
        counters: counters.map(CountersRecord::from),
        foreign: chain.kind() == ChainKind::Foreign,
        beyond,
        rules: match beyond {
            Some(_) => Vec::new(),
            None => chain
                .rules()
                .map(|rule| rule_record(tables, &rule, omissions))
                .collect(),
        },
    }
}

fn rule_record(tables: &Tables, rule: &RuleView<'_>, omissions: &mut Omissions) -> RuleRecord {
    match tables.entry(rule) {
        Ok(entry) => {
            omissions.private += usize::from(entry.rule.has_opaque());
            RuleRecord::Said {
                counters: entry.counters.into(),
                rule: entry.rule.to_string(),
            }
        }
        Err(beyond) => {
            omissions.rules += 1;
            RuleRecord::Beyond {
                beyond: beyond.to_string(),
            }
        }
    }
}
