//! A replacement of kube-proxy on `chainwright_kube::service`: applies the services of a cluster, or of a
//! folder of manifests, to this node.

mod agent;
mod cluster;
mod demo;
mod http;
mod kernel;
mod manifests;
mod metrics;
mod node_ports;
mod objects;
mod options;
mod proxy;
mod stale;
mod sysctl;

#[cfg(test)]
chainwright_testing::sandbox_tests!();

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;

use chainwright_testing::become_namespace_root;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing::{Level, error, info, warn};

use crate::agent::{Agent, Change};
use crate::http::ServedPaths;
use crate::metrics::Metrics;
use crate::options::{Options, Settings};

/// Runs before the tests start threads: afterwards a process without privileges cannot create network
/// namespaces.
// SAFETY: on Linux std works before main; this uses files and memory, and starts no thread.
#[cfg(test)]
#[ctor::ctor(unsafe)]
fn prepare_tests() {
    // Tests that need the namespace report why there is none.
    let _ = become_namespace_root();
    // The tests use their own lock for the legacy tables: the usual file belongs to root.
    let lock = std::env::temp_dir().join(format!("chainwright-proxy-{}.lock", std::process::id()));
    // SAFETY: no other thread exists yet that could read the environment.
    unsafe { std::env::set_var(chainwright::legacy::LOCK_VARIABLE, lock) };
}

fn main() -> ExitCode {
    let options = Options::parse();
    let level = match options.v {
        0 if options.demo == Some(true) => Level::WARN,
        0 | 1 => Level::INFO,
        2 | 3 => Level::DEBUG,
        _ => Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    if options.demo == Some(true) {
        return ended(run_demo(&options));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(run(&options)),
        Err(error) => Err(format!("cannot start the runtime: {error}")),
    };
    ended(done)
}

fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs before any thread is started: only then can a process without privileges create network namespaces.
fn run_demo(options: &Options) -> Result<(), String> {
    let folder = options.manifests.as_deref().map(Path::canonicalize);
    let folder = folder
        .transpose()
        .map_err(|e| format!("--manifests: {e}"))?;
    become_namespace_root().map_err(|error| agent::with_sources(&error))?;
    demo::run(
        &Settings::new(options)?,
        folder.as_deref(),
        &mut std::io::stdout(),
    )
}

async fn run(options: &Options) -> Result<(), String> {
    let settings = Settings::new(options)?;
    if options.cleanup == Some(true) {
        return clean_up(options.cleanup_kube_proxy == Some(true));
    }
    let mode = settings.mode;
    info!(mode = mode.as_str(), node = settings.node, "starts");
    let metrics = Arc::new(Metrics::new());
    for (address, serves) in [
        (settings.health, ServedPaths::Health),
        (settings.metrics, ServedPaths::Metrics),
    ] {
        if let Some(address) = address {
            let metrics = Arc::clone(&metrics);
            let answers = http::answers(serves, mode.as_str(), metrics);
            tokio::spawn(http::serve_at(address, answers, http::BIND_RETRY));
        }
    }
    let paths = sysctl::SysctlPaths::default();
    sysctl::apply(&settings.conntrack, &paths);
    let tcp_be_liberal = paths.is_liberal();
    let (changes, changed) = mpsc::channel();
    let (wrong, stale) = mpsc::channel();
    let no_thread = |error| format!("cannot start a thread: {error}");
    stale::start(stale, Arc::clone(&metrics)).map_err(no_thread)?;
    let open = kernel::open(mode, wrong);
    let of_node = settings.clone();
    let configure = Box::new(move |node: Option<&_>| {
        let mut config = of_node.config(node)?;
        config.tcp_be_liberal = tcp_be_liberal;
        Ok(config)
    });
    let mut agent = Agent::new(open, configure, settings.period, metrics)?;
    if options.manifests.is_none() {
        agent.wait_for_node(agent::NODE_WAIT);
    }
    tokio::spawn(node_ports::serve(agent.health_ports(), http::BIND_RETRY));
    let (end, mut ended) = oneshot::channel();
    let thread = thread::spawn(move || {
        // Dropped when the agent stops, for whatever reason.
        let _end: oneshot::Sender<()> = end;
        agent.run(&changed);
    });
    let source = async {
        match &options.manifests {
            Some(path) => {
                let watch = manifests::watch(path.clone(), changes.clone());
                let _watch = watch.map_err(|error| format!("{}: {error}", path.display()))?;
                std::future::pending().await
            }
            None => {
                let client = cluster::connect(settings.kubeconfig.as_deref()).await?;
                cluster::follow(client, &settings.node, changes.clone()).await;
                Err("the cluster watches ended".to_owned())
            }
        }
    };
    let signalled = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
    let mut terminated = signalled(SignalKind::terminate())?;
    let mut interrupted = signalled(SignalKind::interrupt())?;
    let done = tokio::select! {
        error = source => error,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        _ = &mut ended => Err("the agent ended unexpectedly".to_owned()),
    };
    // A sync that is under way is carried to its end.
    info!("stopping: the rules stay in the kernel");
    let _ = changes.send(Change::Stop);
    match thread.join() {
        Ok(()) => done,
        Err(_) => Err("the agent panicked".to_owned()),
    }
}

/// Removes the rules of all modes from the kernel.
fn clean_up(including_kube_proxy: bool) -> Result<(), String> {
    let done = kernel::clean_up(including_kube_proxy, kernel::running_kube_proxy());
    for (layout, family) in done.removed {
        info!("removed: {}", kernel::name(layout, family));
    }
    for (layout, family, why) in done.left {
        let what = kernel::name(layout, family);
        warn!("not removed: {what}: {why}; --cleanup --cleanup-kube-proxy removes it");
    }
    match done.failed.is_empty() {
        true => Ok(()),
        false => Err(format!("not removed: {}", done.failed.join("; "))),
    }
}
