//! Identifies the process that removed something, as far as it can be known.

use std::fmt;
use std::fs;

use bstr::{BString, ByteSlice};

use super::audit::Record;
use chainwright::nft::Generation;
use chainwright::nft::live::Change;

/// Largest number of bytes of a command line to read.
const MAX_COMMAND_LENGTH: usize = 4096;

/// The process that changed guarded chains, according to the kernel's report and to `/proc` at that moment. Short-lived
/// programs such as iptables may have ended by then; only the kernel's report is available for those.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribution {
    /// The generation that the change created; `None` for legacy tables.
    pub generation: Option<Generation>,
    /// The thread ID; `None` for legacy tables.
    pub thread: Option<u32>,
    /// The thread's name (`comm`), at most 15 bytes.
    pub name: Option<BString>,
    /// The process ID.
    pub process: Option<u32>,
    /// Its command line, split into arguments.
    pub command: Vec<BString>,
    /// The process that started it.
    pub parent: Option<Parent>,
}

/// A process that started another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The process ID.
    pub process: u32,
    /// Its name (`comm`).
    pub name: BString,
}

impl Attribution {
    /// Identifies the process behind a change. Call this as soon as the change is received.
    pub(super) fn of(change: &Change) -> Self {
        // Read what disappears first.
        let process = change.process_id();
        let command = process.map(command).unwrap_or_default();
        let parent = process.and_then(parent);
        Self {
            generation: Some(change.generation()),
            thread: change.thread_id(),
            name: change.thread_name().map(ToOwned::to_owned),
            process,
            command,
            parent,
        }
    }

    /// Identifies the process that replaced a legacy table, from a record. Call this as soon as the record is
    /// received.
    pub(super) fn of_record(record: &Record) -> Self {
        let process = record.process;
        // The process may have ended since the record was written, and its ID may have been reused.
        let is_still = |process: &u32| comm(*process).as_ref() == Some(&record.name);
        let alive = Some(process).filter(is_still);
        Self {
            generation: None,
            thread: None,
            name: Some(record.name.clone()),
            process: Some(process),
            command: alive.map(command).unwrap_or_default(),
            parent: alive.and_then(parent),
        }
    }
}

impl fmt::Display for Attribution {
    /// Formats as `iptables (4711: iptables -F; of systemd, 1) in generation 77`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}", name.to_str_lossy().escape_debug())?,
            None => f.write_str("an unknown process")?,
        }
        if let Some(id) = self.process.or(self.thread) {
            write!(f, " ({id}")?;
            if !self.command.is_empty() {
                let words = self.command.iter().map(|word| word.to_str_lossy());
                let line = words.collect::<Vec<_>>().join(" ");
                write!(f, ": {}", line.escape_debug())?;
            }
            if let Some(parent) = &self.parent {
                let name = parent.name.to_str_lossy();
                write!(f, "; of {}, {}", name.escape_debug(), parent.process)?;
            }
            f.write_str(")")?;
        }
        match self.generation {
            Some(generation) => write!(f, " in generation {generation}"),
            None => Ok(()),
        }
    }
}

fn command(process: u32) -> Vec<BString> {
    let Ok(mut line) = fs::read(format!("/proc/{process}/cmdline")) else {
        return Vec::new();
    };
    line.truncate(MAX_COMMAND_LENGTH);
    let words = line.strip_suffix(b"\0").unwrap_or(&line);
    if words.is_empty() {
        return Vec::new();
    }
    words.split(|&byte| byte == 0).map(BString::from).collect()
}

fn parent(process: u32) -> Option<Parent> {
    let status = fs::read(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(b"PPid:"))?;
    let process: u32 = line.to_str().ok()?.trim().parse().ok()?;
    let name = comm(process)?;
    Some(Parent { process, name })
}

/// Returns the name of a process, at most 15 bytes.
fn comm(process: u32) -> Option<BString> {
    let mut name = fs::read(format!("/proc/{process}/comm")).ok()?;
    if name.ends_with(b"\n") {
        name.pop();
    }
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_command_line_and_a_parent() {
        let own = std::process::id();
        let words: Vec<BString> = std::env::args().map(BString::from).collect();
        assert_eq!(command(own), words);
        let parent = parent(own).unwrap();
        assert_eq!(parent.process, std::os::unix::process::parent_id());
        assert!(!parent.name.is_empty());
        assert_eq!(command(u32::MAX), Vec::<BString>::new());
    }
}
