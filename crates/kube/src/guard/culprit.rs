//! Who took something away, as far as it can be known.

use std::fmt;
use std::fs;

use bstr::{BString, ByteSlice};

use super::audit::Record;
use chainwright::nft::Generation;
use chainwright::nft::live::Change;

/// How many bytes of a command line are read.
const LONGEST_COMMAND: usize = 4096;

/// Who changed what is guarded: what the kernel says of it, and what `/proc` said of the process at that moment.
/// Programs as short-lived as iptables may have ended before: then there is only what the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Culprit {
    /// The generation that the change made; legacy tables have none.
    pub generation: Option<Generation>,
    /// The thread; not told of legacy tables.
    pub thread: Option<u32>,
    /// The thread's name (`comm`), at most 15 bytes.
    pub name: Option<BString>,
    /// The process.
    pub process: Option<u32>,
    /// Its command line, in words.
    pub command: Vec<BString>,
    /// The process that started it.
    pub parent: Option<Parent>,
}

/// A process that started another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The process.
    pub process: u32,
    /// Its name (`comm`).
    pub name: BString,
}

impl Culprit {
    /// Who made this change. To be asked as soon as it is told.
    pub(super) fn of(change: &Change) -> Self {
        // What ends first is asked for first.
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

    /// Who replaced a legacy table, as a record says. To be asked as soon as it is told.
    pub(super) fn of_record(record: &Record) -> Self {
        let process = record.process;
        // The record is older than the answer: the number may be another's by now.
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

impl fmt::Display for Culprit {
    /// `iptables (4711: iptables -F; of systemd, 1) in generation 77`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}", name.to_str_lossy().escape_debug())?,
            None => f.write_str("somebody")?,
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
    line.truncate(LONGEST_COMMAND);
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

/// A process's name, at most 15 bytes.
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
