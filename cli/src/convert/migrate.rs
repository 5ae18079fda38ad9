//! `chainwright convert --in-place`: moves tables from one backend to the other.

use bstr::BStr;
use chainwright::iptables::{
    Backend, Family, Iptables, Migrated, Migration, MigrationError, tables_in_use,
};
use chainwright_kube::detect;
use clap::ValueEnum;
use serde::Serialize;

use crate::confirm::Reach;
use crate::convert::Args;
use crate::iptables::family_word;
use crate::output::{Error, Exit, Output, Printable, counted, eprint_line, note};

/// The backend that the tables leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceBackend {
    /// nf_tables, as iptables-nft
    Nft,
    /// the legacy x_tables, as iptables-legacy
    Legacy,
}

impl SourceBackend {
    const fn backend(self) -> Backend {
        match self {
            Self::Nft => Backend::Nft,
            Self::Legacy => Backend::Legacy,
        }
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    done: bool,
    tables: Vec<Record>,
    obstacles: Vec<ObstacleRecord>,
}

#[derive(Serialize)]
struct Record {
    family: &'static str,
    table: String,
    chains: usize,
    rules: usize,
    #[serde(rename = "was_there")]
    existed: bool,
}

#[derive(Serialize)]
struct ObstacleRecord {
    family: &'static str,
    table: String,
    chain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    why: String,
}

impl From<&Migrated> for Record {
    fn from(moved: &Migrated) -> Self {
        Self {
            family: family_word(moved.family),
            table: moved.table.clone(),
            chains: moved.chains,
            rules: moved.rules,
            existed: moved.existed,
        }
    }
}

pub(crate) fn run(args: &Args, to: Backend, json: bool) -> Result<Exit, Error> {
    let from = args.from.map(SourceBackend::backend).unwrap_or(match to {
        Backend::Nft => Backend::Legacy,
        Backend::Legacy => Backend::Nft,
    });
    if from == to {
        return Err(Error::Other("--from and --to are the same backend".into()));
    }
    let families = match (args.ipv4, args.ipv6) {
        (true, _) => &[Family::Ipv4][..],
        (_, true) => &[Family::Ipv6],
        _ => &[Family::Ipv4, Family::Ipv6],
    };
    let mut is_used = false;
    for family in families {
        is_used |= !tables_in_use(from, *family)?.is_empty();
    }
    if !is_used {
        if json {
            let mut out = Output::new();
            let nothing = Document {
                done: !args.dry_run,
                tables: Vec::new(),
                obstacles: Vec::new(),
            };
            out.json("migrate", &nothing)?;
            out.flush()?;
        }
        note(&format!("no tables in {from}"));
        return Ok(Exit::Done);
    }
    let change = || change(args, from, to, families, json);
    let reach = Reach::of(&[from, to]);
    args.confirm.guard(reach, Some(&args.locking), change)
}

fn change(
    args: &Args,
    from: Backend,
    to: Backend,
    families: &[Family],
    json: bool,
) -> Result<Exit, Error> {
    let keep = |name: &BStr| args.keep.iter().any(|glob| glob.is_match(name));
    let [mut old, mut new] =
        [Iptables::open(from)?, Iptables::open(to)?].map(|iptables| args.locking.of(iptables));
    let migration = Migration {
        families,
        keep: &keep,
        recreated: &|name| !args.force && detect::is_agent_chain(name),
        allow_split: args.force,
        test: args.dry_run,
    };
    let (moved, obstacles) = match old.migrate_to(&mut new, &migration) {
        Ok(moved) => (moved, Vec::new()),
        Err(MigrationError::Obstacles(obstacles)) => (Vec::new(), obstacles),
        Err(error) => return Err(Error::Other(crate::output::causes(&error))),
    };
    let mut out = Output::new();
    if json {
        let record = |obstacle: &chainwright::iptables::Obstacle| ObstacleRecord {
            family: family_word(obstacle.family),
            table: obstacle.table.clone(),
            chain: obstacle.chain.to_string(),
            rule: obstacle.rule,
            why: obstacle.reason.clone(),
        };
        out.json(
            "migrate",
            &Document {
                done: !args.dry_run && obstacles.is_empty(),
                tables: moved.iter().map(Record::from).collect(),
                obstacles: obstacles.iter().map(record).collect(),
            },
        )?;
    } else {
        for moved in &moved {
            let (family, table) = (family_word(moved.family), Printable(&moved.table));
            let (chains, rules) = (moved.chains, moved.rules);
            let there = if moved.existed {
                ", already present"
            } else {
                ""
            };
            let chains = counted(chains, "user chain", "user chains");
            let rules = counted(rules, "rule", "rules");
            writeln!(out, "table {family} {table}: {chains}, {rules}{there}")?;
        }
    }
    out.flush()?;
    for obstacle in &obstacles {
        eprint_line(&Printable(&obstacle.to_string()).to_string());
    }
    if !obstacles.is_empty() {
        note(
            "nothing was changed; --keep leaves such chains in place, --force moves agents' chains",
        );
        return Ok(Exit::Failed);
    }
    if moved.is_empty() {
        note(&format!("nothing to move in {from}"));
    } else if !args.dry_run && from == Backend::Legacy {
        note(
            "the empty legacy tables remain until the network namespace is deleted or their modules are unloaded",
        );
    }
    Ok(Exit::Done)
}
