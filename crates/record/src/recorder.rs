//! Records the changes that a mirror receives.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chainwright::nft::live::{Mirror, MonitorOptions};
use chainwright::nft::{Connection, Scope, Snapshot};

use crate::error::Error;
use crate::ring::{RecorderOptions, Report, Ring};

/// Records every transaction of the nf_tables of a connection's network namespace, and the process that made it.
///
/// Each transaction is written as soon as it arrives, before [`wait`](Self::wait) or [`record`](Self::record) returns.
/// If the process is killed, the transaction that is being written and those not yet received are lost;
/// the next start detects that by the generation, and records the whole ruleset again.
///
/// It keeps a copy of the ruleset in memory: see [`Mirror`]. While the disk is full or the files cannot be written, it
/// continues to follow the ruleset; as soon as it can write again, it records the whole ruleset, with the gap.
///
/// The descriptor is readable when [`record`](Self::record) should be called.
#[derive(Debug)]
pub struct Recorder {
    mirror: Mirror,
    ring: Arc<Mutex<Ring>>,
}

fn locked(ring: &Mutex<Ring>) -> MutexGuard<'_, Ring> {
    ring.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Starts to record in this directory, which it creates if it doesn't exist.
    ///
    /// It continues after an incomplete last record, which it removes. If the ruleset changed since the last record, it
    /// records the whole ruleset.
    ///
    /// # Errors
    /// [`Error::Locked`] if another recorder uses the directory; [`Error::Io`]; [`Error::Kernel`].
    pub fn open(
        directory: impl AsRef<Path>,
        connection: Connection,
        options: RecorderOptions,
    ) -> Result<Self, Error> {
        let mut ring = Ring::open(directory.as_ref(), options)?;
        let monitor = MonitorOptions {
            receive_buffer: options.receive_buffer,
            ..MonitorOptions::default()
        };
        let mut mirror = Mirror::open_with(connection, &Scope::all(), monitor)?;
        ring.begin(mirror.snapshot());
        let ring = Arc::new(Mutex::new(ring));
        let of_mirror = Arc::clone(&ring);
        mirror.observe(move |item| locked(&of_mirror).observe(item));
        Ok(Self { mirror, ring })
    }

    /// Records the transactions committed since the last call, without waiting for others. Returns reports for the
    /// operator.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the ruleset had to be read again and could not. The recorder remains usable, and reads it
    /// with the next call.
    pub fn record(&mut self) -> Result<Vec<Report>, Error> {
        let updated = self.mirror.update().map(drop);
        self.finish_batch(updated)
    }

    /// Waits at most `time` for a transaction; then does the same as [`record`](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn wait(&mut self, time: Duration) -> Result<Vec<Report>, Error> {
        let updated = self.mirror.wait(time).map(drop);
        self.finish_batch(updated)
    }

    fn finish_batch(
        &mut self,
        updated: Result<(), chainwright::nft::SnapshotError>,
    ) -> Result<Vec<Report>, Error> {
        let parts = updated.and_then(|()| Ok(self.mirror.take_reread()?));
        let mut ring = locked(&self.ring);
        match parts {
            Ok(parts) => ring.parts(&parts),
            Err(error) => {
                // The mirror reads everything again, without an event.
                ring.lost(error.to_string());
                return Err(error.into());
            }
        }
        ring.rotate_if_needed(self.mirror.snapshot());
        Ok(ring.take_reports())
    }

    /// Returns the reports of the start, or those that were not returned yet.
    pub fn take_reports(&mut self) -> Vec<Report> {
        locked(&self.ring).take_reports()
    }

    /// Returns the current ruleset.
    #[must_use]
    pub const fn snapshot(&self) -> &Snapshot {
        self.mirror.snapshot()
    }

    /// Returns `false` while nothing can be written. Then call [`record`](Self::record) every second, even if nothing
    /// happens.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        !locked(&self.ring).is_failing()
    }

    /// Records the transactions committed so far, and then a stop.
    ///
    /// # Errors
    /// [`Error::Io`]; the errors of [`record`](Self::record).
    pub fn stop(mut self) -> Result<Vec<Report>, Error> {
        self.record()?;
        let mut ring = locked(&self.ring);
        ring.stop()?;
        Ok(ring.take_reports())
    }
}

impl AsFd for Recorder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.mirror.as_fd()
    }
}
