//! The guard in a thread of its own.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::{Error, Guard, Notice};

impl Guard {
    /// Starts a thread that runs it, and calls `on` there for each notice: to hand them on, send them into a channel. While
    /// `on` does not return nothing is repaired.
    ///
    /// # Errors
    /// [`Error::Thread`]
    pub fn start(self, on: impl FnMut(Notice) + Send + 'static) -> Result<Running, Error> {
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

    /// Runs until the other end of `control` is closed. Each byte that comes from there is sent back.
    fn keep(mut self, mut control: UnixStream, mut on: impl FnMut(Notice)) {
        loop {
            self.turn(&mut on);
            match self.wait(&control) {
                Ok(false) => {}
                Ok(true) => {
                    let mut byte = [0];
                    match control.read(&mut byte) {
                        Ok(0) | Err(_) => return,
                        // Who does not wait for an answer has none.
                        Ok(_) => drop(control.write_all(&byte)),
                    }
                }
                // Without a way to wait it would do nothing but wake.
                Err(error) => {
                    tracing::error!(%error, "the guard cannot wait for events");
                    return;
                }
            }
        }
    }

    /// Waits for events, for the next deadline, or for the control; whether it was that.
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

/// A guard that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    control: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Whether it answers within this time: a guard that is repairing does when that is done.
    #[must_use]
    pub fn is_alive(&mut self, within: Duration) -> bool {
        let mut answer = [0];
        let asked = self.control.set_read_timeout(Some(within));
        asked.is_ok()
            && self.control.write_all(&[1]).is_ok()
            && self.control.read_exact(&mut answer).is_ok()
    }

    /// Stops it, and waits until what it is doing is done. What it made stays.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It sees the end of the stream, even if its answers were not read.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // That `on` panicked has been said.
            let _ = thread.join();
        }
    }
}
