//! `chainwright kubelet`: the chains that a kubelet creates when it starts.

use chainwright::iptables::{Backend, Iptables};
use chainwright::nft::{self, Connection};
use chainwright_kube::declared::BackendMut;
use chainwright_kube::detect::{DetectedBackend, Detector, PREFIXES};
use chainwright_kube::kubelet::{Item, Kubelet};
use clap::Subcommand;
use serde::Serialize;

use crate::confirm::{Confirm, Reach};
use crate::iptables::Locking;
use crate::output::{Error, Exit, Output, causes, note};
use crate::scope::Selection;

/// Create, check or remove the chains that a kubelet creates when it starts
///
/// These are KUBE-IPTABLES-HINT, KUBE-KUBELET-CANARY and KUBE-FIREWALL with their rules, in nf_tables or the legacy
/// tables, in iptables' form. Existing ones are recognised, regardless of the version of iptables that wrote them.
/// Other chains and rules are not changed. If the other backend has the hint, `ensure` creates no second one, and
/// reports this. If a node has chains of Kubernetes only in the legacy tables, `ensure` creates nothing in nf_tables,
/// because the node's programs do not use it.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    locking: Locking,

    #[command(flatten)]
    place: Selection,
}

/// Selects the chains and the backend.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Include the chains of kubelets up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING
    #[arg(long = "up-to-1.26", global = true)]
    up_to_1_26: bool,

    /// With `ensure`: create the chains even if the other backend has the hint, or only the legacy tables have chains
    /// of Kubernetes
    #[arg(long, global = true, alias = "even-on-legacy")]
    force: bool,

    /// Use the backend that `detect` finds on this node; fail if it finds none
    #[arg(long, global = true, conflicts_with = "backend")]
    auto: bool,
}

impl Which {
    pub(crate) fn kubelet(&self, place: &Selection) -> Result<Kubelet, Error> {
        let kubelet = Kubelet::new()
            .up_to_1_26(self.up_to_1_26)
            .with_second_hint(self.force);
        Ok(match place.iptables()? {
            Some(family) => kubelet.only(family),
            None => kubelet,
        })
    }

    /// Returns the selected backend, or the detected one. `what` is the error message if both are selected.
    pub(crate) fn backend(&self, place: &Selection, what: &str) -> Result<Backend, Error> {
        if !self.auto {
            return place.one_for(what);
        }
        let verdict = Detector::open().probe().detected_backend();
        verdict.backend().ok_or_else(|| {
            Error::Other(format!(
                "this node's backend is {verdict} (see `chainwright detect`): use --backend nft or --backend \
                 legacy"
            ))
        })
    }

    /// Returns `true` if the chains may be created there: in nf_tables not on a node that uses the legacy tables,
    /// because the hint would lead other programs to the wrong backend.
    pub(crate) fn may_create_in(&self, backend: Backend) -> bool {
        if self.force || backend == Backend::Legacy {
            return true;
        }
        let mut detector = Detector::open();
        // If nf_tables has the hint, counting is not necessary.
        if matches!(
            detector.probe().detected_backend(),
            DetectedBackend::Nft | DetectedBackend::Mixed
        ) {
            return true;
        }
        let evidence = detector.evidence_without_rules();
        for (backend, error) in &evidence.uncounted {
            note(&format!(
                "warning: cannot determine whether this node's Kubernetes uses {backend}: {}",
                causes(error)
            ));
        }
        if !evidence.is_legacy_only() {
            return true;
        }
        let chains = evidence.of(Backend::Legacy, PREFIXES[0]);
        let chains: Vec<_> = chains
            .map(|owned| {
                let family = nft::Family::from(owned.family);
                format!("{family} {} {}", owned.table, owned.first)
            })
            .collect();
        note(&format!(
            "this node's Kubernetes uses the legacy tables: they contain {}, and nf_tables has no KUBE- chain. \
             KUBE-IPTABLES-HINT in nf_tables would direct other programs to the wrong backend; nothing was created \
             (use --force to create it anyway)",
            chains.join(", ")
        ));
        false
    }
}

#[derive(Subcommand)]
enum Action {
    /// Create the missing chains and rules, in one transaction; in legacy tables, one table at a time
    Ensure(Confirm),
    /// List the missing chains and rules; the exit code is 1 if there are any
    Check,
    /// Remove the chains and rules in the same way, except chains that other programs use
    Remove(Confirm),
}

/// An [`Item`] in JSON.
#[derive(Serialize)]
pub(crate) struct Record {
    family: &'static str,
    table: String,
    chain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl From<&Item> for Record {
    fn from(item: &Item) -> Self {
        Self {
            family: nft::Family::from(item.family).name().unwrap_or_default(),
            table: item.table.clone(),
            chain: item.chain.clone(),
            rule: item.rule.as_ref().map(ToString::to_string),
        }
    }
}

pub(crate) fn records(items: &[Item]) -> Vec<Record> {
    items.iter().map(Record::from).collect()
}

#[derive(Serialize)]
struct Created {
    created: Vec<Record>,
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
    let kubelet = args.which.kubelet(&args.place)?;
    let what = "`kubelet` works with one backend";
    let backend = args.which.backend(&args.place, what)?;
    if matches!(args.action, Action::Ensure(_)) && !args.which.may_create_in(backend) {
        return Ok(Exit::Failed);
    }
    let change = || act(args, &kubelet, backend, json);
    match &args.action {
        Action::Ensure(confirm) | Action::Remove(confirm) => {
            confirm.guard(Reach::of(&[backend]), Some(&args.locking), change)
        }
        Action::Check => change(),
    }
}

fn act(args: &Args, kubelet: &Kubelet, backend: Backend, json: bool) -> Result<Exit, Error> {
    let (mut nft, mut legacy);
    let tables: BackendMut<'_> = match (backend, &args.action) {
        (Backend::Nft, Action::Check) => {
            nft = Connection::open_if_loaded()?;
            (&mut nft).into()
        }
        (Backend::Nft, _) => {
            nft = Connection::open()?;
            (&mut nft).into()
        }
        (Backend::Legacy, _) => {
            legacy = args.locking.of(Iptables::legacy()?);
            (&mut legacy).into()
        }
    };
    let mut out = Output::new();
    let exit = match &args.action {
        Action::Ensure(_) => {
            let created = kubelet.ensure(tables)?;
            if json {
                let created = records(&created);
                out.json("kubelet", &Created { created })?;
            } else if created.is_empty() {
                writeln!(out, "nothing to do: everything is present")?;
            } else {
                list(&mut out, "created", &created)?;
            }
            Exit::Done
        }
        Action::Check => {
            let missing = kubelet.check(tables)?;
            if json {
                let missing = records(&missing);
                out.json("kubelet", &Missing { missing })?;
            } else if missing.is_empty() {
                writeln!(out, "everything is present")?;
            } else {
                list(&mut out, "missing", &missing)?;
            }
            if missing.is_empty() {
                Exit::Done
            } else {
                Exit::Absent
            }
        }
        Action::Remove(_) => {
            let outcome = kubelet.remove(tables)?;
            if json {
                out.json(
                    "kubelet",
                    &Removed {
                        removed: records(&outcome.removed),
                        left: records(&outcome.left),
                    },
                )?;
            } else if outcome.removed.is_empty() && outcome.left.is_empty() {
                writeln!(out, "nothing to do: nothing is present")?;
            } else {
                list(&mut out, "removed", &outcome.removed)?;
                for item in &outcome.left {
                    writeln!(
                        out,
                        "left     {item} (it has rules that are not kubelet's, or such rules \
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
