//! The process that made a change.

use std::collections::HashMap;
use std::fmt;
use std::fs;

use bstr::{BStr, BString, ByteSlice};
use chainwright::nft::live::Change;

use crate::format::{Fields, Invalid, put_bytes, put_number};

/// Maximum number of bytes of a command line that are kept.
const MAX_COMMAND: usize = 4096;
/// Maximum number of bytes of a control group's path that are kept.
const MAX_GROUP: usize = 1024;
/// Maximum number of parents that are kept.
const MAX_PARENTS: usize = 8;
/// Maximum number of parents whose command lines are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Availability of a process in `/proc` when its change arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Presence {
    /// The process existed.
    Present,
    /// The process had already ended.
    Gone,
    /// The kernel did not name a thread.
    Unnamed,
}

/// The process that made a change, according to the kernel and to `/proc` when the change arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// How much `/proc` showed.
    pub presence: Presence,
    /// The ID of the thread.
    pub thread_id: Option<u32>,
    /// The name of the thread (`comm`), at most 15 bytes.
    pub thread_name: Option<BString>,
    /// The ID of the process.
    pub process_id: Option<u32>,
    /// Its real user ID.
    pub user: Option<u32>,
    /// Its command line, as arguments; at most the first 4,096 bytes.
    pub command: Vec<BString>,
    /// The process that started it, the parent of that one, and so on; without the process with ID 1.
    pub parents: Vec<Parent>,
    /// The path of its control group.
    pub control_group: BString,
}

/// A process that started another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parent {
    /// The ID of the process.
    pub process_id: u32,
    /// Its name (`comm`).
    pub name: BString,
    /// Its command line, as arguments.
    pub command: Vec<BString>,
}

/// Reads processes, and remembers the command lines of parents, which often start many.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// Parents by process ID, with their start times.
    parents: HashMap<u32, (u64, Parent)>,
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    name: BString,
    parent: u32,
    /// In clock ticks since boot: with the ID it identifies a process.
    started: u64,
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything, also parentheses.
    let (open, close) = (text.find_byte(b'(')?, text.rfind_byte(b')')?);
    let mut rest = text.get(close + 2..)?.split_str(" ");
    // After the name: the state, the parent, …; the start time is the twenty-second field.
    let parent = rest.nth(1)?.to_str().ok()?.parse().ok()?;
    let started = rest.nth(17)?.to_str().ok()?.parse().ok()?;
    Some(Stat {
        name: text.get(open + 1..close)?.into(),
        parent,
        started,
    })
}

fn command(process: u32) -> Vec<BString> {
    let mut line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.truncate(MAX_COMMAND);
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    match line.is_empty() {
        true => Vec::new(),
        false => line.split_str("\0").map(BString::from).collect(),
    }
}

/// Returns the path of the process's control group: that of version 2, or of systemd's hierarchy, or the longest.
fn control_group(process: u32) -> BString {
    let text = fs::read(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mut found: &[u8] = b"";
    for line in text.lines() {
        let mut fields = line.splitn_str(3, ":");
        let (_, Some(kind), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if (kind.is_empty() || kind == b"name=systemd") && path != b"/" {
            found = path;
            break;
        }
        if path.len() > found.len() {
            found = path;
        }
    }
    found[..found.len().min(MAX_GROUP)].into()
}

fn user(process: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(b"Uid:"))?;
    let first = line
        .trim_start_with(char::is_whitespace)
        .split_str("\t")
        .next()?;
    first.to_str().ok()?.parse().ok()
}

impl Processes {
    /// Reads the process of a change. Call this as soon as the change arrives.
    pub(crate) fn of(&mut self, change: &Change) -> Process {
        let thread_id = change.thread_id();
        let mut process = Process {
            presence: match thread_id {
                Some(_) => Presence::Gone,
                None => Presence::Unnamed,
            },
            thread_id,
            thread_name: change.thread_name().map(ToOwned::to_owned),
            process_id: change.process_id(),
            user: None,
            command: Vec::new(),
            parents: Vec::new(),
            control_group: BString::default(),
        };
        let Some(id) = process.process_id else {
            return process;
        };
        // What disappears first is read first: a zombie has neither a command line nor a control group of its own.
        process.command = command(id);
        process.control_group = control_group(id);
        process.user = user(id);
        if let Some(stat) = stat(id) {
            process.presence = Presence::Present;
            process.parents = self.parents_from(stat.parent);
        }
        process
    }

    fn parents_from(&mut self, first: u32) -> Vec<Parent> {
        let mut parents = Vec::new();
        let mut next = first;
        while next > 1 && parents.len() < MAX_PARENTS {
            let Some(stat) = stat(next) else {
                break;
            };
            let remembered = self.parents.get(&next);
            let remembered = remembered
                .filter(|(started, parent)| *started == stat.started && parent.name == stat.name);
            let parent = match remembered {
                Some((_, parent)) => parent.clone(),
                None => {
                    let parent = Parent {
                        process_id: next,
                        name: stat.name,
                        command: command(next),
                    };
                    if self.parents.len() == MAX_REMEMBERED {
                        self.parents.clear();
                    }
                    self.parents.insert(next, (stat.started, parent.clone()));
                    parent
                }
            };
            parents.push(parent);
            next = stat.parent;
        }
        parents
    }
}

impl Process {
    /// Returns the control groups, innermost first.
    fn groups(&self) -> impl Iterator<Item = &BStr> {
        self.control_group.rsplit_str("/").map(BStr::new)
    }

    /// Returns the systemd unit: the innermost service or scope.
    #[must_use]
    pub fn unit(&self) -> Option<&BStr> {
        let is_unit = |group: &&BStr| group.ends_with(b".service") || group.ends_with(b".scope");
        self.groups().find(is_unit)
    }

    /// Returns the ID of the container: 64 hexadecimal digits, as Docker, containerd, CRI-O and Podman give it.
    #[must_use]
    pub fn container(&self) -> Option<&BStr> {
        let id = |group: &'_ BStr| {
            let name = group.strip_suffix(b".scope").unwrap_or(group);
            // `docker-`, `cri-containerd-`, `crio-`, `libpod-`
            let from = name.rfind_byte(b'-').map_or(0, |at| at + 1);
            let digits = &name[from..];
            let is_id = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
            is_id.then_some(from..from + 64)
        };
        let mut groups = self.groups();
        groups.find_map(|group| Some(BStr::new(&group[id(group)?])))
    }

    /// Returns the UID of the Kubernetes pod.
    #[must_use]
    pub fn pod(&self) -> Option<String> {
        let is_kubelets = |group: &&BStr| group.starts_with(b"kubepods");
        self.groups().find(is_kubelets)?;
        self.groups().find_map(|group| {
            let name = group.strip_suffix(b".slice").unwrap_or(group);
            let uid = &name[name.rfind("pod")? + 3..];
            let uid = uid.to_str().ok()?.replace('_', "-");
            let is_uid = uid.len() >= 32 && uid.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
            is_uid.then_some(uid)
        })
    }

    /// Returns the command line in one line; the thread's name if it is unknown.
    #[must_use]
    pub fn command_line(&self) -> Option<String> {
        match self.command.is_empty() {
            true => (self.thread_name.as_ref()).map(|name| name.to_str_lossy().into_owned()),
            false => Some(bstr::join(" ", &self.command).to_str_lossy().into_owned()),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(match self.presence {
            Presence::Unnamed => 0,
            Presence::Gone => 1,
            Presence::Present => 2,
        });
        for number in [self.thread_id, self.process_id, self.user] {
            out.push(number.is_some().into());
            put_number(out, number.unwrap_or(0));
        }
        out.push(self.thread_name.is_some().into());
        put_bytes(out, self.thread_name.as_deref().map_or(b"", |name| name));
        put_list(out, &self.command);
        put_bytes(out, &self.control_group);
        put_number(out, self.parents.len() as u32);
        for parent in &self.parents {
            put_number(out, parent.process_id);
            put_bytes(out, &parent.name);
            put_list(out, &parent.command);
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, Invalid> {
        let presence = match fields.byte()? {
            0 => Presence::Unnamed,
            1 => Presence::Gone,
            2 => Presence::Present,
            _ => return Err(Invalid("unknown presence of a process")),
        };
        let mut number = || -> Result<Option<u32>, Invalid> {
            let is_known = fields.flag()?;
            let number = fields.number()?;
            Ok(is_known.then_some(number))
        };
        let (thread_id, process_id, user) = (number()?, number()?, number()?);
        let has_name = fields.flag()?;
        let name = fields.bytes()?;
        let command = list(fields)?;
        let control_group = fields.bytes()?.into();
        let mut parents = Vec::new();
        for _ in 0..fields.number()? {
            parents.push(Parent {
                process_id: fields.number()?,
                name: fields.bytes()?.into(),
                command: list(fields)?,
            });
        }
        Ok(Self {
            presence,
            thread_id,
            thread_name: has_name.then(|| name.into()),
            process_id,
            user,
            command,
            parents,
            control_group,
        })
    }
}

fn put_list(out: &mut Vec<u8>, list: &[BString]) {
    put_number(out, list.len() as u32);
    list.iter().for_each(|item| put_bytes(out, item));
}

fn list(fields: &mut Fields<'_>) -> Result<Vec<BString>, Invalid> {
    let mut list = Vec::new();
    for _ in 0..fields.number()? {
        list.push(fields.bytes()?.into());
    }
    Ok(list)
}

/// Formats as `systemctl restart iptables (pid 1234)`.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command_line() {
            Some(line) => write!(f, "{}", line.escape_debug())?,
            None => f.write_str("an unknown process")?,
        }
        let gone = match self.presence {
            Presence::Gone => ", already gone",
            _ => "",
        };
        match (self.process_id, self.thread_id) {
            (Some(id), _) => write!(f, " (pid {id}{gone})"),
            (None, Some(id)) => write!(f, " (thread {id}{gone})"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(group: &str) -> Process {
        Process {
            presence: Presence::Present,
            thread_id: Some(7),
            thread_name: Some("nft".into()),
            process_id: Some(7),
            user: Some(0),
            command: vec!["nft".into(), "flush".into(), "ruleset".into()],
            parents: vec![Parent {
                process_id: 5,
                name: "sh".into(),
                command: vec!["sh".into()],
            }],
            control_group: group.into(),
        }
    }

    #[test]
    fn units_containers_and_pods() {
        let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let uid = "8a1d2c3b-1111-2222-3333-444455556666";
        let under = uid.replace('-', "_");
        for (group, unit, container, pod) in [
            (
                "/system.slice/docker.service",
                Some("docker.service"),
                None,
                None,
            ),
            (
                "/user.slice/user-0.slice/session-3.scope",
                Some("session-3.scope"),
                None,
                None,
            ),
            (&format!("/docker/{id}"), None, Some(id), None),
            (
                &format!("/system.slice/docker-{id}.scope"),
                Some(&*format!("docker-{id}.scope")),
                Some(id),
                None,
            ),
            (
                &format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/cri-containerd-{id}.scope"
                ),
                Some(&*format!("cri-containerd-{id}.scope")),
                Some(id),
                Some(uid),
            ),
            (
                &format!("/kubepods/besteffort/pod{uid}/{id}"),
                None,
                Some(id),
                Some(uid),
            ),
            ("/", None, None, None),
            ("/podman/pod", None, None, None),
        ] {
            let process = of(group);
            assert_eq!(
                process.unit().map(ToString::to_string).as_deref(),
                unit,
                "{group}"
            );
            assert_eq!(
                process.container().map(ToString::to_string).as_deref(),
                container
            );
            assert_eq!(process.pod().as_deref(), pod, "{group}");
        }
    }

    #[test]
    fn processes_round_trip() {
        let mut gone = of("");
        (gone.presence, gone.process_id, gone.user) = (Presence::Gone, None, None);
        gone.command.clear();
        assert_eq!(gone.to_string(), "nft (thread 7, already gone)");
        assert_eq!(of("/").to_string(), "nft flush ruleset (pid 7)");
        for process in [of("/system.slice/x.service"), gone] {
            let mut bytes = Vec::new();
            process.write(&mut bytes);
            let mut fields = Fields::new(&bytes);
            assert_eq!(Process::read(&mut fields), Ok(process));
            assert!(fields.rest().is_empty());
            for length in 0..bytes.len() {
                assert!(Process::read(&mut Fields::new(&bytes[..length])).is_err());
            }
        }
    }
}
