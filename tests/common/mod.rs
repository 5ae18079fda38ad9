//! What the integration tests share. Each test file is a crate of its own and uses a part of it.
#![allow(dead_code, reason = "each test crate uses its own part of this module")]

use std::error::Error;
use std::sync::OnceLock;

use chainwright::netns::{self, Sandbox};

/// Why this process could not get what sandboxes take.
static NO_SANDBOXES: OnceLock<String> = OnceLock::new();

/// Runs before `main`: the test harness starts threads, and with more than one thread an ordinary
/// user's process cannot become root in a user namespace any more.
// SAFETY: on Linux std works before main; this uses files, memory and standard error only, and
// starts no thread.
#[ctor::ctor(unsafe)]
fn become_namespace_root() {
    if let Err(error) = netns::become_namespace_root() {
        let reason = report(&error);
        eprintln!("The tests cannot make network namespaces: {reason}");
        let _ = NO_SANDBOXES.set(reason);
    }
}

/// A new sandbox; where there can be none the test fails with the reason.
#[track_caller]
pub(crate) fn sandbox() -> Sandbox {
    if let Some(reason) = NO_SANDBOXES.get() {
        panic!("no network namespaces for tests: {reason}");
    }
    Sandbox::new().unwrap_or_else(|error| panic!("no sandbox: {}", report(&error)))
}

/// An error and what caused it, as one line.
pub(crate) fn report(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
