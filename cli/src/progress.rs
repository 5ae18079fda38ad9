//! A progress line on the terminal for long operations.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::output::Printable;

/// Delay before the line appears.
const QUIET: Duration = Duration::from_millis(700);
/// The interval at which the line is updated.
const TICK: Duration = Duration::from_millis(250);

/// A line on the terminal with the current operation and its duration, until it is dropped: `restoring rules.save: 12
/// s`. Prints nothing if standard error is no terminal.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    shown: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// The current operation; `None` at the end.
    what: Mutex<Option<String>>,
    changed: Condvar,
}

impl Progress {
    /// Starts with this operation.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        let shared = Arc::new(Shared {
            what: Mutex::new(Some(what.into())),
            ..Shared::default()
        });
        let shown = io::stderr().is_terminal().then(|| {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name("progress".into());
            // Without a thread there is no line.
            named.spawn(move || shared.show()).ok()
        });
        Self {
            shared,
            shown: shown.flatten(),
        }
    }

    /// Continues with another operation.
    pub(crate) fn now(&self, what: impl Into<String>) {
        self.shared.set_message(Some(what.into()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.set_message(None);
        if let Some(shown) = self.shown.take() {
            // After this, the line is erased.
            let _ = shown.join();
        }
    }
}

impl Shared {
    fn set_message(&self, what: Option<String>) {
        *self.what.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.changed.notify_all();
    }

    /// Updates the line until the end.
    fn show(&self) {
        let start = Instant::now();
        let mut is_shown = false;
        let mut what = self.what.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(words) = &*what {
            let passed = start.elapsed();
            if passed >= QUIET {
                let words = Printable(words);
                // Ignores a terminal that no longer exists.
                let _ = write!(io::stderr(), "\r\x1b[K{words}: {} s", passed.as_secs());
                is_shown = true;
            }
            let tick = if is_shown {
                TICK
            } else {
                QUIET - passed.min(QUIET)
            };
            let woken = self
                .changed
                .wait_timeout(what, tick.max(Duration::from_millis(1)));
            what = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        if is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
