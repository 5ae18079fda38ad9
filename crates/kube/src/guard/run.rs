//! Runs the guard in its own thread.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::{ChainGuard, Error, Notification};

impl ChainGuard {
    /// Starts a thread that runs the guard and calls `on` there for each notification. No repairs happen while `on`
    /// runs; to process notifications elsewhere, send them to a channel.
    ///
    /// # Errors
    /// [`Error::Thread`]
    pub fn start(self, on: impl FnMut(Notification) + Send + 'static) -> Result<Running, Error> {
        let (control, theirs) = UnixStream::pair().map_err(Error::Thread)?;
        let thread = std::thread::Builder::new()
            .name("chainwright".into())
            .spawn(move || self.keep(theirs, on))
            .map_err(Error::Thread)?;
        Ok(Running {
            control,
            thread: Some(thread),
        })
    }

    /// Runs until the other end of `control` is closed. Echoes each byte from there.
    fn keep(mut self, mut control: UnixStream, mut on: impl FnMut(Notification)) {
        loop {
            self.process_pending(&mut on);
            match self.wait(&control) {
                Ok(false) => {}
                Ok(true) => {
                    let mut byte = [0];
                    match control.read(&mut byte) {
                        Ok(0) | Err(_) => return,
                        // Ignores a caller that does not wait for the answer.
                        Ok(_) => drop(control.write_all(&byte)),
                    }
                }
                // Without a way to wait the loop would spin.
                Err(error) => {
                    tracing::error!(%error, "cannot wait for events");
                    return;
                }
            }
        }
    }

    /// Waits for events, the next deadline, or the control socket; returns whether it was the latter.
    fn wait(&self, control: &UnixStream) -> io::Result<bool> {
        let timeout = self.deadline().map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            TimeSpec::from_duration(left)
        });
        let control = PollFd::new(control.as_fd(), PollFlags::POLLIN);
        let events = self
            .events()
            .map(|events| PollFd::new(events, PollFlags::POLLIN));
        let mut all: Vec<_> = std::iter::once(control).chain(events).collect();
        match ppoll(&mut all, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(all[0].any().unwrap_or(true))
    }
}

/// A running guard. Dropping this stops it.
#[derive(Debug)]
pub struct Running {
    control: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Returns `true` if the guard answers within this time. A guard that is repairing answers afterwards.
    #[must_use]
    pub fn is_alive(&mut self, within: Duration) -> bool {
        let mut answer = [0];
        let timeout_set = self.control.set_read_timeout(Some(within));
        timeout_set.is_ok()
            && self.control.write_all(&[1]).is_ok()
            && self.control.read_exact(&mut answer).is_ok()
    }

    /// Stops the guard, and waits until its current work is done. Chains and rules that it created stay.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The thread sees the end of the stream, even if its answers were not read.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // The panic of `on` was already reported.
            let _ = thread.join();
        }
    }
}
