//! `chainwright migrate`: tables from one backend to the other.

use bstr::BStr;
use chainwright::iptables::{
    Backend, Family, Iptables, Migrated, Migration, MigrationError, tables_in_use,
};
use chainwright_kube::detect;
use clap::ValueEnum;
use serde::Serialize;

use crate::glob::Glob;
use crate::iptables::{Locking, family_word};
use crate::output::{Error, Exit, Output, Printable, counted, note, say};

/// Move iptables' tables from one backend to the other
///
/// Reads all of iptables' tables in the one backend, writes them with their counters to the other, compares what they
/// mean, and only then takes them out of the first: in between a packet meets both, and never neither. In
/// nf_tables all tables change at once; legacy tables one after the other, and they stay, empty.
///
/// What the other backend cannot hold, and rules of its own in the same tables, are said before anything is changed. It is
/// refused while chains in the old backend say that a kubelet or kube-proxy writes there (KUBE-IPTABLES-HINT,
/// KUBE-KUBELET-CANARY, KUBE-PROXY-CANARY), which would make its rules again.
///
/// When it is broken off, it can be run again: tables that mean the same in both backends are only taken out.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The backend that has the tables
    #[arg(long, value_enum, value_name = "BACKEND")]
    from: Which,

    /// The backend that is to have them
    #[arg(long, value_enum, value_name = "BACKEND")]
    to: Which,

    /// Only look whether it can be done, and say what would move; in nf_tables the kernel looks at it, too
    #[arg(long)]
    dry_run: bool,

    /// Do it even if a kubelet or kube-proxy seems to write to the old backend, or if jumps to chains that are kept would
    /// be parted from the rules beside them
    #[arg(long)]
    force: bool,

    /// Leave chains whose names match, and the jumps to them, where they are; may be given more than once. Where rules stand
    /// beside such a jump in a built-in chain, or its policy is DROP, it needs --force: packets that the kept chain
    /// accepts still meet what moved, and the other way round
    #[arg(long, value_name = "GLOB", num_args = 1)]
    keep_foreign: Vec<Glob>,

    /// Only tables of IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Only tables of IPv6
    #[arg(short = '6', long)]
    ipv6: bool,

    #[command(flatten)]
    locking: Locking,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// nf_tables, as iptables-nft
    Nft,
    /// the legacy x_tables, as iptables-legacy
    Legacy,
}

impl From<Which> for Backend {
    fn from(which: Which) -> Self {
        match which {
            Which::Nft => Self::Nft,
            Which::Legacy => Self::Legacy,
        }
    }
}

/// All that `--json` writes.
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
    was_there: bool,
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
            was_there: moved.was_there,
        }
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let [from, to] = [args.from, args.to].map(Backend::from);
    if from == to {
        return Err(Error::Other("--from and --to are the same backend".into()));
    }
    let families = match (args.ipv4, args.ipv6) {
        (true, _) => &[Family::Ipv4][..],
        (_, true) => &[Family::Ipv6],
        _ => &[Family::Ipv4, Family::Ipv6],
    };
    let keep = |name: &BStr| args.keep_foreign.iter().any(|glob| glob.is_match(name));
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
        note(&format!("there are no tables in {from}"));
        return Ok(Exit::Done);
    }
    let [mut old, mut new] =
        [Iptables::open(from)?, Iptables::open(to)?].map(|iptables| args.locking.of(iptables));
    let migration = Migration {
        families,
        keep: &keep,
        made_again: &|name| !args.force && detect::is_of_an_agent(name),
        apart: args.force,
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
            why: obstacle.why.clone(),
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
            let there = if moved.was_there {
                ", there already"
            } else {
                ""
            };
            let chains = counted(chains, "chain of a user", "chains of users");
            let rules = counted(rules, "rule", "rules");
            writeln!(out, "table {family} {table}: {chains}, {rules}{there}")?;
        }
    }
    out.flush()?;
    for obstacle in &obstacles {
        say(&Printable(&obstacle.to_string()).to_string());
    }
    if !obstacles.is_empty() {
        note(
            "nothing was changed; --keep-foreign leaves chains where they are, --force moves those of agents",
        );
        return Ok(Exit::Failed);
    }
    if moved.is_empty() {
        note(&format!("there is nothing to move in {from}"));
    } else if !args.dry_run && from == Backend::Legacy {
        note(
            "the legacy tables stay, empty: they are gone with the network namespace, or with their modules",
        );
    }
    Ok(Exit::Done)
}
