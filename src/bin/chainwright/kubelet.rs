//! `chainwright kubelet`: the chains that a kubelet makes when it starts.

use chainwright::kube::detect::{LegacyUse, legacy_use};
use chainwright::kube::kubelet::{Item, Kubelet};
use chainwright::nft::{self, Connection};
use clap::Subcommand;
use serde::Serialize;

use crate::output::{Error, Exit, Output, causes, note};
use crate::scope::Selection;

/// Make, check or remove the chains that a kubelet makes when it starts
///
/// KUBE-IPTABLES-HINT, KUBE-KUBELET-CANARY and KUBE-FIREWALL with their rules, in nf_tables, as iptables-nft
/// writes them. Those that are there are recognised, whichever version of iptables wrote them. What is not a
/// kubelet's stays. On a node that has chains of Kubernetes in the legacy tables only, `ensure` makes nothing
/// and says so: what runs there does not look into nf_tables.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,

    /// Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING
    #[arg(long = "up-to-1.26", global = true)]
    up_to_1_26: bool,

    /// Let `ensure` work on a node that has chains of Kubernetes in the legacy tables only
    #[arg(long, global = true)]
    even_on_legacy: bool,

    #[command(flatten)]
    place: Selection,
}

/// Whether the chains may be made in nf_tables: not on a node that works with the legacy tables, where
/// the hint would send others to the wrong backend.
fn is_for_nft(nft: &mut Connection) -> Result<bool, Error> {
    match legacy_use(nft)? {
        LegacyUse::Only(chains) => {
            let chains: Vec<_> = chains.iter().map(ToString::to_string).collect();
            note(&format!(
                "this node's Kubernetes uses the legacy tables: {} there, and no KUBE- chain in \
                 nf_tables. KUBE-IPTABLES-HINT in nf_tables would send others to the wrong backend; \
                 nothing was made (--even-on-legacy makes it all the same)",
                chains.join(", ")
            ));
            Ok(false)
        }
        LegacyUse::Unknown(error) => {
            note(&format!(
                "warning: it cannot be known whether this node's Kubernetes uses the legacy tables: {}",
                causes(&error)
            ));
            Ok(true)
        }
        _ => Ok(true),
    }
}

#[derive(Subcommand, Clone, Copy)]
enum Action {
    /// Make what is missing, in one transaction
    Ensure,
    /// List what is missing; the exit code is 1 if anything is
    Check,
    /// Remove them, in one transaction, except chains that others use
    Remove,
}

/// An [`Item`] for programs.
#[derive(Serialize)]
struct Record {
    family: &'static str,
    table: &'static str,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl From<&Item> for Record {
    fn from(item: &Item) -> Self {
        Self {
            family: nft::Family::from(item.family).name().unwrap_or_default(),
            table: item.table,
            chain: item.chain,
            rule: item.rule.as_ref().map(ToString::to_string),
        }
    }
}

fn records(items: &[Item]) -> Vec<Record> {
    items.iter().map(Record::from).collect()
}

#[derive(Serialize)]
struct Made {
    made: Vec<Record>,
}

#[derive(Serialize)]
struct Missing {
    missing: Vec<Record>,
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<Record>,
    left: Vec<Record>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let kubelet = Kubelet::new().up_to_1_26(args.up_to_1_26);
    args.place.only_nft(
        "a kubelet's chains can be made, checked and removed in nf_tables only (`chains --backend legacy` \
         lists those in the legacy tables)",
    )?;
    let kubelet = match args.place.iptables()? {
        Some(family) => kubelet.only(family),
        None => kubelet,
    };
    let mut nft = match args.action {
        Action::Check => Connection::open_to_look()?,
        _ => Connection::open()?,
    };
    let mut out = Output::new();
    let exit = match args.action {
        Action::Ensure => {
            if !args.even_on_legacy && !is_for_nft(&mut nft)? {
                return Ok(Exit::Failed);
            }
            let made = kubelet.ensure(&mut nft)?;
            if json {
                let made = records(&made);
                out.json("kubelet", &Made { made })?;
            } else if made.is_empty() {
                writeln!(out, "nothing to do: everything is there")?;
            } else {
                list(&mut out, "made", &made)?;
            }
            Exit::Done
        }
        Action::Check => {
            let missing = kubelet.check(&mut nft)?;
            if json {
                let missing = records(&missing);
                out.json("kubelet", &Missing { missing })?;
            } else if missing.is_empty() {
                writeln!(out, "everything is there")?;
            } else {
                list(&mut out, "missing", &missing)?;
            }
            if missing.is_empty() {
                Exit::Done
            } else {
                Exit::Absent
            }
        }
        Action::Remove => {
            let outcome = kubelet.remove(&mut nft)?;
            if json {
                out.json(
                    "kubelet",
                    &Removed {
                        removed: records(&outcome.removed),
                        left: records(&outcome.left),
                    },
                )?;
            } else if outcome.removed.is_empty() && outcome.left.is_empty() {
                writeln!(out, "nothing to do: nothing of it is there")?;
            } else {
                list(&mut out, "removed", &outcome.removed)?;
                for item in &outcome.left {
                    writeln!(
                        out,
                        "left     {item} (it has rules that are not a kubelet's, or such rules \
                         jump to it)"
                    )?;
                }
            }
            Exit::Done
        }
    };
    out.flush()?;
    Ok(exit)
}

fn list(out: &mut Output, what: &str, items: &[Item]) -> Result<(), Error> {
    for item in items {
        writeln!(out, "{what:8} {item}")?;
    }
    Ok(())
}
