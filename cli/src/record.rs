//! `chainwright record`: records every change of nf_tables, until it is stopped.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use chainwright::nft::Connection;
use chainwright::nft::live::MonitorOptions;
use chainwright_record::{Recorder, RecorderOptions, Report};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::kube::guard::{notify, signals, watchdog};
use crate::output::{Error, Exit, causes, note};
use crate::recorded::{Directory, failed};

/// Record every change of nf_tables, and the process that made it
///
/// Writes each transaction to a ring of files as soon as it arrives: what changed, when, and the process with its
/// command line, parents, user, systemd unit, container and pod. `log`, `show`, `diff @TIME`, `blame` and `bisect` read
/// the files, even while they are written.
///
/// If it is killed, at most the transaction that it is writing is lost. If events are lost or the disk is
/// full, it reports that, and records the gap and the whole ruleset as soon as possible. It keeps a copy of the ruleset
/// in memory. Legacy tables are not recorded: the kernel does not report their changes.
///
/// Runs until SIGTERM or SIGINT. It notifies systemd when recording starts (Type=notify), and triggers the watchdog;
/// the packages have a unit, chainwright-record.service.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    directory: Directory,

    /// Maximum size of all files in bytes, or with a suffix: K, M or G. If they are larger, the oldest ones are removed
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    max_size: u64,

    /// Maximum age of recorded transactions, for instance 12h or 30d
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = humantime::parse_duration)]
    max_age: Duration,

    /// Maximum size of the kernel's queue of unread events, in bytes, if the kernel permits it
    #[arg(long, value_name = "BYTES", default_value_t = MonitorOptions::default().receive_buffer)]
    buffer: usize,
}

/// Parses a number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1_u64),
    };
    let number = digits
        .parse()
        .ok()
        .and_then(|number: u64| number.checked_mul(factor));
    number.filter(|bytes| *bytes >= 10_000).ok_or_else(|| {
        format!("{text:?} is not a size of at least 10K: expected for instance 500M or 1G")
    })
}

/// Maximum time between checks of the files' age.
const IDLE: Duration = Duration::from_secs(60);
/// Time between attempts to write or to read again.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args) -> Result<Exit, Error> {
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&signals(), flags);
    let signals = signals.map_err(|errno| Error::Output(errno.into()))?;
    let options = RecorderOptions {
        max_size: args.max_size,
        max_age: args.max_age,
        receive_buffer: args.buffer,
    };
    let recorder = Recorder::open(&args.directory.path, Connection::open()?, options);
    let mut recorder = recorder.map_err(failed)?;
    print(&recorder.take_reports());
    notify("READY=1");
    let watchdog = watchdog();
    let mut alive = Instant::now();
    let mut is_failing = false;
    loop {
        let wait = match recorder.is_recording() && !is_failing {
            true => watchdog.unwrap_or(IDLE).min(IDLE),
            false => RETRY,
        };
        let mut all = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(recorder.as_fd(), PollFlags::POLLIN),
        ];
        let wait = PollTimeout::try_from(wait.as_millis()).unwrap_or(PollTimeout::MAX);
        match poll(&mut all, wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(Error::Output(errno.into())),
        }
        if all[0].any().unwrap_or(true) {
            notify("STOPPING=1");
            print(&recorder.stop().map_err(failed)?);
            return Ok(Exit::Done);
        }
        match recorder.record() {
            Ok(reports) => {
                print(&reports);
                is_failing = false;
            }
            Err(error) => {
                note(&causes(&error));
                // Not as fast as possible, if for example the ruleset keeps changing.
                is_failing = true;
                std::thread::sleep(RETRY);
            }
        }
        if let Some(interval) = watchdog
            && alive.elapsed() >= interval
        {
            alive = Instant::now();
            notify("WATCHDOG=1");
        }
    }
}

fn print(reports: &[Report]) {
    for report in reports {
        note(&report.to_string());
    }
}
