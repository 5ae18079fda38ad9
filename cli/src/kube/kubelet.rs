//! `chainwright kube ensure`, `check` and `remove`: the chains that a kubelet creates when it starts.

use chainwright::iptables::{Backend, Iptables};
use chainwright::nft::{self, Connection};
use chainwright_kube::declared::BackendMut;
use chainwright_kube::detect::{DetectedBackend, Detector, PREFIXES};
use chainwright_kube::kubelet::{Item, Kubelet};
use serde::Serialize;

use crate::confirm::{Confirm, Reach};
use crate::iptables::Locking;
use crate::output::{Error, Exit, Output, causes, note};
use crate::scope::Selection;

/// The options of all actions.
#[derive(clap::Args)]
struct Common {
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

    /// Use the backend that `kube status` finds on this node; fail if it finds none
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
        let detected = Detector::open().probe().detected_backend();
        detected.backend().ok_or_else(|| {
            Error::Other(format!(
                "this node's backend is {detected} (see `chainwright kube status`): use --backend nft or --backend \
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

/// Create the missing chains that a kubelet creates when it starts
///
/// These are KUBE-IPTABLES-HINT, KUBE-KUBELET-CANARY and KUBE-FIREWALL with their rules, in iptables' form: in
/// nf_tables in one transaction, in legacy tables one table at a time. Existing ones are recognized, regardless of the
/// version of iptables that wrote them. Other chains and rules are not changed.
///
/// If the other backend has the hint, creates no second one, and reports this. If a node has chains of Kubernetes only
/// in the legacy tables, creates nothing in nf_tables, because the node's programs do not use it.
#[derive(clap::Args)]
pub(crate) struct EnsureArgs {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    confirm: Confirm,
}

/// List the missing chains and rules of a kubelet
///
/// These are the chains that `kube ensure` creates. The exit code is 1 if some are missing.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    common: Common,
}

/// Remove a kubelet's chains and rules
///
/// Removes the chains and rules that `kube ensure` creates, except chains that other programs use.
#[derive(clap::Args)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    confirm: Confirm,
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

impl Common {
    /// Returns the selected chains and their backend.
    fn target(&self) -> Result<(Kubelet, Backend), Error> {
        let kubelet = self.which.kubelet(&self.place)?;
        let backend = self
            .which
            .backend(&self.place, "a kubelet's chains are in one backend")?;
        Ok((kubelet, backend))
    }

    /// Opens a backend, and changes it with `change`, which `confirm` may undo.
    fn change(
        &self,
        confirm: &Confirm,
        backend: Backend,
        change: impl FnOnce(BackendMut<'_>, &mut Output) -> Result<(), Error>,
    ) -> Result<Exit, Error> {
        confirm.guard(Reach::of(&[backend]), Some(&self.locking), || {
            let mut out = Output::new();
            match backend {
                Backend::Nft => change((&mut Connection::open()?).into(), &mut out),
                Backend::Legacy => {
                    change((&mut self.locking.of(Iptables::legacy()?)).into(), &mut out)
                }
            }?;
            out.flush()?;
            Ok(Exit::Done)
        })
    }
}

pub(crate) fn ensure(args: &EnsureArgs, json: bool) -> Result<Exit, Error> {
    let (kubelet, backend) = args.common.target()?;
    if !args.common.which.may_create_in(backend) {
        return Ok(Exit::Failed);
    }
    args.common.change(&args.confirm, backend, |tables, out| {
        let created = kubelet.ensure(tables)?;
        if json {
            let created = records(&created);
            out.json("kubelet", &Created { created })
        } else if created.is_empty() {
            writeln!(out, "nothing to do: everything is present")
        } else {
            list(out, "created", &created)
        }
    })
}

pub(crate) fn check(args: &CheckArgs, json: bool) -> Result<Exit, Error> {
    let (kubelet, backend) = args.common.target()?;
    let missing = match backend {
        Backend::Nft => kubelet.check(&mut Connection::open_if_loaded()?),
        Backend::Legacy => kubelet.check(&mut args.common.locking.of(Iptables::legacy()?)),
    }?;
    let is_complete = missing.is_empty();
    let mut out = Output::new();
    if json {
        let missing = records(&missing);
        out.json("kubelet", &Missing { missing })?;
    } else if is_complete {
        writeln!(out, "everything is present")?;
    } else {
        list(&mut out, "missing", &missing)?;
    }
    out.flush()?;
    Ok(match is_complete {
        true => Exit::Done,
        false => Exit::Absent,
    })
}

pub(crate) fn remove(args: &RemoveArgs, json: bool) -> Result<Exit, Error> {
    let (kubelet, backend) = args.common.target()?;
    args.common.change(&args.confirm, backend, |tables, out| {
        let outcome = kubelet.remove(tables)?;
        if json {
            let removed = records(&outcome.removed);
            let left = records(&outcome.left);
            return out.json("kubelet", &Removed { removed, left });
        }
        if outcome.removed.is_empty() && outcome.left.is_empty() {
            return writeln!(out, "nothing to do: nothing is present");
        }
        list(out, "removed", &outcome.removed)?;
        for item in &outcome.left {
            writeln!(
                out,
                "left     {item} (it has rules that are not kubelet's, or such rules jump to it)"
            )?;
        }
        Ok(())
    })
}

fn list(out: &mut Output, what: &str, items: &[Item]) -> Result<(), Error> {
    for item in items {
        writeln!(out, "{what:8} {item}")?;
    }
    Ok(())
}
