//! The sandbox and the files that a command works on, in the old and in the new state.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chainwright::nft::{Scope, Snapshot};
use chainwright_testing::Sandbox;
use tempfile::TempDir;

use crate::common::iptables::our_save;

use super::*;

/// The old state of a restore.
pub(crate) const OLD: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:OLD - [0:0]
[3:180] -A PREROUTING -s 10.0.0.0/8 -j OLD
[0:0] -A OLD -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [7:700]
:OUTPUT ACCEPT [0:0]
[1:60] -A INPUT -i lo -j ACCEPT
COMMIT
";

/// The new state of a restore.
pub(crate) const NEW: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:NEW - [0:0]
-A PREROUTING -s 192.0.2.0/24 -j NEW
-A NEW -p udp -m udp --dport 53 -j ACCEPT
-A NEW -j RETURN
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p icmp -j ACCEPT
COMMIT
";

/// A text that adds to the old state, one table after the other.
pub(crate) const ADDED: &str = "\
*nat
:ADDED - [0:0]
-A ADDED -j RETURN
-I PREROUTING -j ADDED
-D OLD -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*filter
-A INPUT -i lo -p tcp -j DROP
COMMIT
";

/// A text of one table, because legacy tables are replaced one at a time.
pub(crate) const ADDED_NAT: &str = "\
*nat
:ADDED - [0:0]
-A ADDED -j RETURN
-I PREROUTING -j ADDED
COMMIT
";

/// The environment of the command.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) directory: TempDir,
    /// The nf_tables ruleset at the start.
    pub(crate) start: Snapshot,
    pub(crate) legacy: bool,
}

/// Everything that a run can change: the nf_tables ruleset without handles, the text of the legacy
/// tables, and the files by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) nft: Vec<String>,
    pub(crate) legacy: Vec<String>,
    pub(crate) files: BTreeMap<PathBuf, Content>,
}

/// The content of a file.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    /// The objects in the file, if it is a backup.
    pub(crate) shows: Option<Vec<String>>,
}

impl Content {
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            bytes: fs::read(path).unwrap(),
            shows: Snapshot::load(path).ok().as_ref().map(formatted),
        }
    }
}

/// Backups contain the time; they are equal if they contain the same objects.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        match (&self.shows, &other.shows) {
            (Some(one), Some(other)) => one == other,
            _ => self.bytes == other.bytes,
        }
    }
}

impl Eq for Content {}

/// Returns the objects of a snapshot as text, without the handles and the order of sets and chains.
pub(crate) fn formatted(snapshot: &Snapshot) -> Vec<String> {
    let mut parts = Vec::new();
    for table in snapshot.tables() {
        let name = format!("{:?}", table.table().name());
        parts.push(name.clone());
        for set in table.sets() {
            let elements = set.elements().map(|e| format!("{:?}", e.key_bytes()));
            let mut elements: Vec<_> = elements.collect();
            elements.sort();
            parts.push(format!("{name} set {} {elements:?}", set.set().name()));
        }
        for chain in table.chains() {
            let view = chain.chain();
            let mut part = format!("{name} {view} {:?} {:?}", view.hook(), view.policy());
            for rule in chain.rules() {
                // After the line with the handles.
                let rule = rule.to_string();
                part += rule.split_once('\n').unwrap_or_default().1;
            }
            parts.push(part);
        }
    }
    parts.sort();
    parts
}

impl Scene {
    /// Creates a scene with these tables in a backend.
    pub(crate) fn new(backend: Backend, tables: &str) -> Self {
        let sandbox = sandbox();
        let mut scene = Self {
            directory: TempDir::with_prefix(DIRECTORY).unwrap(),
            start: Snapshot::default(),
            legacy: backend == Backend::Legacy,
            sandbox,
        };
        if scene.legacy {
            scene.fill(tables);
        } else if !tables.is_empty() {
            let mut iptables = open(&scene.sandbox, Backend::Nft);
            let options = RestoreOptions {
                counters: true,
                ..RestoreOptions::default()
            };
            iptables.restore(Family::Ipv4, tables, &options).unwrap();
        }
        for (name, text) in [("new", NEW), ("added", ADDED), ("added-nat", ADDED_NAT)] {
            fs::write(scene.path(name), text).unwrap();
        }
        scene.start = scene.snapshot();
        scene
    }

    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.into_os_string().into_string().unwrap()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        connect(&self.sandbox).snapshot(Scope::all()).unwrap()
    }

    /// Restores these tables into the legacy backend.
    pub(crate) fn fill(&self, tables: &str) {
        let options = RestoreOptions {
            counters: true,
            ..RestoreOptions::default()
        };
        let mut iptables = open(&self.sandbox, Backend::Legacy);
        iptables.restore(Family::Ipv4, tables, &options).unwrap();
    }

    pub(crate) fn state(&self) -> State {
        let legacy = match self.legacy {
            false => Vec::new(),
            true => {
                let text = our_save(&self.sandbox, Backend::Legacy, Family::Ipv4);
                text.split_inclusive("COMMIT\n")
                    .map(str::to_owned)
                    .collect()
            }
        };
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let content = Content::of(&path);
            files.insert(path, content);
        }
        State {
            nft: formatted(&self.snapshot()),
            legacy,
            files,
        }
    }

    /// Restores the old state.
    pub(crate) fn reset(&self, old: &State) {
        let mut nft = connect(&self.sandbox);
        // Also restores the order, so that each run finds the same ruleset.
        let mut tx = Transaction::new();
        tx.flush_ruleset(chainwright::nft::Family::UNSPEC).unwrap();
        nft.commit(&tx).unwrap();
        self.start.restore(&mut nft).unwrap();
        if self.legacy {
            self.fill(&old.legacy.concat());
        }
        for entry in fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if !old.files.contains_key(&path) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, content) in &old.files {
            fs::write(path, &content.bytes).unwrap();
        }
    }
}
