//! `chainwright kube guard`: restores chains and rules that other programs remove.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use chainwright::iptables::{Backend, Family, text};
use chainwright_kube::declared::Declared;
use chainwright_kube::guard::{
    Attribution, AuditLog, BackoffOptions, ChainGuard, Event, GuardOptions, Notification, Running,
};
use clap::ValueEnum;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::Serialize;
use tracing_subscriber::filter::LevelFilter;

use crate::iptables::Locking;
use crate::kube::kubelet::{Record, Which, records};
use crate::output::{Error, Exit, Output, Printable, causes, note};
use crate::scope::Selection;

/// Guard chains and rules: restore them immediately when another process removes them
///
/// Creates what is missing, and watches each chain, jump and rule, not only a canary. In nf_tables it restores removed
/// items immediately, and again at the end of a burst of changes; it also polls legacy tables, whose changes only the
/// audit log reports. It prints the removed items and the process that removed them: for legacy tables only if the
/// audit system records changes of netfilter. If a process keeps removing them, it backs off for a minute, and reports
/// this. While idle it uses no CPU time.
///
/// Runs until SIGTERM or SIGINT, and leaves the chains in place. It notifies systemd when everything exists
/// (Type=notify), and of its watchdog (WatchdogSec=); docs/guard.md has a unit.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Guard the chains that a kubelet creates
    #[arg(value_enum, required_unless_present = "file")]
    what: Option<What>,

    /// Guard the chains in a file in the format of iptables-save, and the rules that -A and -I add to them; for IPv4,
    /// or with -6 for IPv6. Policies are ignored
    #[arg(long, value_name = "RULES.save")]
    file: Option<PathBuf>,

    #[command(flatten)]
    which: Which,

    /// Interval between checks of legacy tables
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    poll: u64,

    /// Time without changes that ends a burst of changes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 100)]
    quiet: u64,

    /// Also write the library's log to standard error, up to this level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "off")]
    log: LevelFilter,

    #[command(flatten)]
    locking: Locking,

    #[command(flatten)]
    place: Selection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// The chains that a kubelet creates when it starts
    Kubelet,
}

/// Returns the signals that end the process.
pub(crate) fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT].into_iter().collect()
}

/// Blocks these signals, so that they do not end the process but can be read.
pub(crate) fn block_signals() -> Result<(), Error> {
    let blocked = signals().thread_block();
    blocked.map_err(|errno| Error::Other(format!("cannot block signals: {errno}")))
}

/// An event of the guard in JSON.
#[derive(Serialize)]
struct Formatted {
    time: String,
    event: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<Record>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by: Vec<AttributionRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(rename = "took_us", skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trailing: Option<bool>,
    #[serde(rename = "again_in_ms", skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct AttributionRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_name: Option<String>,
}

impl From<&Attribution> for AttributionRecord {
    fn from(by: &Attribution) -> Self {
        Self {
            generation: by.generation.map(|generation| generation.number()),
            thread: by.thread,
            name: by.name.as_ref().map(ToString::to_string),
            process: by.process,
            command: by.command.iter().map(ToString::to_string).collect(),
            parent: by.parent.as_ref().map(|parent| parent.process),
            parent_name: by.parent.as_ref().map(|parent| parent.name.to_string()),
        }
    }
}

fn time(at: std::time::SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Formatted {
    fn of(notification: &Notification) -> Self {
        let mut record = Self {
            time: time(notification.at),
            event: notification.event.name(),
            items: Vec::new(),
            by: Vec::new(),
            since: None,
            duration_us: None,
            trailing: None,
            retry_in_ms: None,
            reason: None,
        };
        let millis = |time| Some(micros(time) / 1000);
        match &notification.event {
            Event::Ready { made } => record.items = records(made),
            Event::Repaired(repair) => {
                record.items = records(&repair.items);
                record.by = repair.by.iter().map(AttributionRecord::from).collect();
                record.since = Some(time(repair.since));
                record.duration_us = Some(micros(repair.took));
                record.trailing = Some(repair.trailing);
            }
            Event::Failed { error, retry } => {
                record.reason = Some(error.clone());
                record.retry_in_ms = millis(*retry);
            }
            Event::BackedOff { missing, by, rest } => {
                record.items = records(missing);
                record.by = by.iter().map(AttributionRecord::from).collect();
                record.retry_in_ms = millis(*rest);
            }
            Event::Lost { cause: what } => record.reason = Some(what.clone()),
            _ => {}
        }
        record
    }
}

/// Prints an event as text: the event, the processes, and each object.
fn print_event(out: &mut Output, notification: &Notification) -> Result<(), Error> {
    let event = notification.event.to_string();
    writeln!(out, "{} {}", time(notification.at), Printable(&event))?;
    let (sign, items, by): (_, _, &[Attribution]) = match &notification.event {
        Event::Ready { made } => ('+', made, &[]),
        Event::Repaired(repair) => ('+', &repair.items, &repair.by),
        Event::BackedOff { missing, by, .. } => ('-', missing, by),
        _ => return Ok(()),
    };
    for by in by {
        writeln!(out, "  by {by}")?;
    }
    for item in items {
        let item = item.to_string();
        writeln!(out, "  {sign} {}", Printable(&item))?;
    }
    Ok(())
}

/// Prints events until the guard stops, and notifies systemd when it is ready.
fn print(notifications: &Receiver<Notification>, json: bool) -> Result<(), Error> {
    let mut out = Output::new();
    for notification in notifications {
        if matches!(notification.event, Event::Ready { .. }) {
            notify("READY=1");
        }
        match json {
            true => out.json("guard", &Formatted::of(&notification))?,
            false => print_event(&mut out, &notification)?,
        }
        out.flush()?;
    }
    Ok(())
}

/// Maximum time for systemd to receive a notification.
const NOTIFY: Duration = Duration::from_secs(5);

/// Notifies systemd, if it started this process.
pub(crate) fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let send = || -> io::Result<()> {
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(Path::new(&name))?,
        };
        let socket = UnixDatagram::unbound()?;
        // A service must not wait for systemd forever.
        socket.set_write_timeout(Some(NOTIFY))?;
        socket.send_to_addr(state.as_bytes(), &address)?;
        Ok(())
    };
    if let Err(error) = send() {
        note(&format!("cannot notify systemd of {state}: {error}"));
    }
}

/// Returns the interval of watchdog notifications: half of systemd's timeout.
pub(crate) fn watchdog() -> Option<Duration> {
    let of_this = std::env::var("WATCHDOG_PID").ok();
    let own = std::process::id().to_string();
    if of_this.is_some_and(|process| process != own) {
        return None;
    }
    let time: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (time > 0).then(|| Duration::from_micros(time / 2))
}

impl Args {
    /// Returns the guarded chains and rules.
    fn declared(&self) -> Result<Declared, Error> {
        let mut declared = match self.what {
            Some(What::Kubelet) => self.which.kubelet(&self.place)?.declared(),
            None => Declared::default(),
        };
        if let Some(path) = &self.file {
            let name = path.to_string_lossy();
            let read = File::open(path).and_then(text::read);
            let read =
                read.map_err(|error| Error::Other(format!("{}: {error}", Printable(&name))))?;
            let family = self.place.iptables()?.unwrap_or(Family::Ipv4);
            let of_text = Declared::of_text(family, read);
            let of_text = of_text.map_err(|error| {
                Error::Other(format!(
                    "{}:{}: {}",
                    Printable(&name),
                    error.line,
                    error.reason
                ))
            })?;
            declared = declared.and(of_text);
        }
        if declared.is_empty() {
            return Err(Error::Other("no chains to guard in the input".into()));
        }
        Ok(declared)
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    tracing_subscriber::fmt()
        .with_max_level(args.log)
        .with_writer(io::stderr)
        .init();
    let declared = args.declared()?;
    let backend = args
        .which
        .backend(&args.place, "`guard` works with one backend")?;
    if args.what.is_some() && !args.which.may_create_in(backend) {
        return Ok(Exit::Failed);
    }
    let options = GuardOptions {
        backoff: BackoffOptions {
            burst_gap: Duration::from_millis(args.quiet),
            ..BackoffOptions::default()
        },
        poll: Duration::from_millis(args.poll),
        ..GuardOptions::default()
    };
    let (policy, wait) = args.locking.policy();
    let mut guard = ChainGuard::open(declared, backend, options)?.with_lock(policy, wait);
    if backend == Backend::Legacy
        && let Some(log) = audit_log()
    {
        guard = guard.with_audit(log);
    }

    let (sender, notifications) = channel();
    // Closing it signals that there are no more events: the guard has stopped.
    let (printer, alive) = UnixStream::pair().map_err(Error::Output)?;
    let printing = std::thread::spawn(move || {
        // A failure to print does not end the guard.
        if let Err(error) = print(&notifications, json) {
            error.report();
            notifications.iter().for_each(drop);
        }
        drop(printer);
    });
    let running = guard.start(move |notification| drop(sender.send(notification)))?;
    let exit = run_until_signal(running, &alive);
    notify("STOPPING=1");
    // The guard is dropped, and with it the sender.
    drop(printing.join());
    exit
}

/// Opens the audit log, which alone names processes that replace legacy tables; if it is not usable, prints a note.
fn audit_log() -> Option<AuditLog> {
    let unknown = "processes that replace legacy tables will not be reported";
    match AuditLog::open() {
        Ok(log) => {
            if AuditLog::is_on() == Some(false) {
                note(&format!(
                    "{unknown}: auditing is off (auditctl -e 1 enables it)"
                ));
            }
            Some(log)
        }
        Err(error) => {
            note(&format!("{unknown}: {}", causes(&error)));
            None
        }
    }
}

/// Waits for a signal that ends the process, and notifies systemd's watchdog.
fn run_until_signal(mut running: Running, alive: &UnixStream) -> Result<Exit, Error> {
    let signals = SignalFd::with_flags(&signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
    let signals = signals.map_err(|errno| Error::Output(errno.into()))?;
    let interval = watchdog();
    let timeout = interval.map_or(PollTimeout::NONE, |interval| {
        PollTimeout::try_from(interval.as_millis()).unwrap_or(PollTimeout::MAX)
    });
    loop {
        let mut all = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(alive.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut all, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Error::Output(errno.into())),
        }
        let [signal, end] = all.map(|fd| fd.any().unwrap_or(true));
        if signal {
            running.stop();
            return Ok(Exit::Done);
        }
        if end {
            return Err(Error::Other("the guard has stopped unexpectedly".into()));
        }
        if let Some(interval) = interval
            && running.is_alive(interval)
        {
            notify("WATCHDOG=1");
        }
    }
}
