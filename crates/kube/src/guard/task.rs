//! Runs the guard as a tokio task.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{ChainGuard, Error, Notification};

impl ChainGuard {
    /// Runs the guard as a task, and calls `on` for each notification. The guard ends when the future is dropped;
    /// chains and rules that it created stay. The future must run within a runtime with I/O and time enabled; the
    /// tables are read and changed on the runtime's threads for blocking work.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// use chainwright::iptables::Backend;
    /// use chainwright_kube::guard::{Event, ChainGuard, GuardOptions};
    /// use chainwright_kube::kubelet::Kubelet;
    ///
    /// # let guard = sandbox.run(|| {
    /// let guard = ChainGuard::open(Kubelet::new().declared(), Backend::Nft, GuardOptions::default());
    /// # guard })??;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// let (sender, notifications) = std::sync::mpsc::channel();
    /// let task = tokio::spawn(guard.run(move |notification| { let _ = sender.send(notification); }));
    /// # let first = tokio::task::spawn_blocking(move || notifications.recv()).await??;
    /// # assert!(matches!(first.event, Event::Ready { .. }));
    /// // …
    /// task.abort();
    /// # Ok::<_, Box<dyn std::error::Error>>(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Thread`] if the runtime is shut down, or waiting for its events fails.
    pub async fn run(
        mut self,
        on: impl FnMut(Notification) + Send + 'static,
    ) -> Result<Infallible, Error> {
        let mut on = on;
        // The guard moves to other threads and back, so the task waits on a copy of its descriptor.
        let events = self.events().map(|events| events.try_clone_to_owned());
        let events = events.transpose().map_err(Error::Thread)?;
        let events = events.map(watched).transpose().map_err(Error::Thread)?;
        loop {
            let deadline = self.deadline().map(Instant::from_std);
            let ready = match (&events, self.events().is_some()) {
                (Some(events), true) => {
                    let readable = events.readable();
                    match deadline {
                        Some(deadline) => timeout_at(deadline, readable).await.ok(),
                        None => Some(readable.await),
                    }
                }
                _ => {
                    if let Some(deadline) = deadline {
                        sleep_until(deadline).await;
                    }
                    None
                }
            };
            let process_pending = tokio::task::spawn_blocking(move || {
                self.process_pending(&mut on);
                (self, on)
            });
            let joined = process_pending.await;
            (self, on) = joined.map_err(|error| Error::Thread(io::Error::other(error)))?;
            if let Some(ready) = ready {
                // All pending events have been read, or the descriptor will become readable again.
                let mut ready = ready.map_err(Error::Thread)?;
                if self.has_read_all {
                    ready.clear_ready();
                }
            }
        }
    }
}

fn watched(events: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // See `MonitorStream`: this type keeps its descriptor to the end.
    #[allow(deprecated)]
    AsyncFd::with_interest(events, Interest::READABLE)
}
