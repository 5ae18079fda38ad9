//! What takes its time says so: a line on the terminal, which goes when it is done.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::output::Printable;

/// How long nothing is said.
const QUIET: Duration = Duration::from_millis(700);
/// How often the line is written anew.
const TICK: Duration = Duration::from_millis(250);

/// A line on the terminal that says what is being done and for how long, until it is dropped: `restoring
/// rules.save: 12 s`. Nothing where standard error is no terminal.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    shown: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// What is being done; `None` when that has come to its end.
    what: Mutex<Option<String>>,
    changed: Condvar,
}

impl Progress {
    /// Begins with this.
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

    /// Goes on to this.
    pub(crate) fn now(&self, what: impl Into<String>) {
        self.shared.say(Some(what.into()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.say(None);
        if let Some(shown) = self.shown.take() {
            // The line is gone when this is done.
            let _ = shown.join();
        }
    }
}

impl Shared {
    fn say(&self, what: Option<String>) {
        *self.what.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.changed.notify_all();
    }

    /// Shows it until it has come to its end.
    fn show(&self) {
        let start = Instant::now();
        let mut is_shown = false;
        let mut what = self.what.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(words) = &*what {
            let passed = start.elapsed();
            if passed >= QUIET {
                let words = Printable(words);
                // A terminal that is gone is not waited for.
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
