//! `chainwright kube`: the backend and the chains of a node's Kubernetes.

pub(crate) mod guard;
pub(crate) mod kubelet;
mod status;

use clap::Subcommand;

use crate::output::{Error, Exit};

/// Detect Kubernetes' backend; create, check, remove or guard its chains
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Status(status::Args),
    Ensure(kubelet::EnsureArgs),
    Check(kubelet::CheckArgs),
    Remove(kubelet::RemoveArgs),
    Guard(guard::Args),
}

impl Args {
    pub(crate) const fn is_guard(&self) -> bool {
        matches!(self.action, Action::Guard(_))
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    match &args.action {
        Action::Status(args) => status::run(args, json),
        Action::Ensure(args) => kubelet::ensure(args, json),
        Action::Check(args) => kubelet::check(args, json),
        Action::Remove(args) => kubelet::remove(args, json),
        Action::Guard(args) => guard::run(args, json),
    }
}
