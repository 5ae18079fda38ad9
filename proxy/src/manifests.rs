//! Watches a folder of manifests.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tracing::{info, warn};

use crate::agent::Change;
use crate::objects::{self, Key, Object};

/// Time without events before the folder is read: programs write files in several steps.
const QUIET: Duration = Duration::from_millis(50);
/// Longest delay of a read while events keep arriving.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// Interval between checks for changes without events: link targets, and the folder at the path.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The objects in a folder's files. Files are processed as a whole: while one of its manifests cannot be parsed, a
/// file's objects stay unchanged.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The objects of each file.
    files: HashMap<PathBuf, Vec<Key>>,
    /// The versions of each object by file. The first file counts.
    objects: HashMap<Key, BTreeMap<PathBuf, Object>>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            files: HashMap::new(),
            objects: HashMap::new(),
        }
    }

    /// Reads all files.
    pub(crate) fn read_all(&mut self, on_change: &mut dyn FnMut(Change)) -> io::Result<()> {
        let mut paths: BTreeSet<_> = self.files.keys().cloned().collect();
        for entry in self.path.read_dir()? {
            let path = entry?.path();
            if is_manifest(&path) {
                paths.insert(path);
            }
        }
        for path in paths {
            self.read(&path, on_change);
        }
        Ok(())
    }

    /// Returns the files that are links.
    fn links(&self) -> Vec<PathBuf> {
        let files = self.files.keys();
        let links = files.filter(|path| path.symlink_metadata().is_ok_and(|m| m.is_symlink()));
        links.cloned().collect()
    }

    /// Reads a file that may have changed or been deleted.
    pub(crate) fn read(&mut self, path: &Path, on_change: &mut dyn FnMut(Change)) {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                warn!(file = %path.display(), %error, "cannot read file: its objects are unchanged");
                return;
            }
        };
        let objects = match text.as_deref().map(objects::read).transpose() {
            Ok(objects) => objects.unwrap_or_default(),
            Err(problem) => {
                let place = format!("{}:{}", path.display(), problem.line);
                warn!(%place, problem = problem.what, "invalid manifest: the file's objects are unchanged");
                return;
            }
        };
        let keys: Vec<_> = objects.iter().map(|(key, _)| key.clone()).collect();
        let before = match text {
            Some(_) => self.files.insert(path.to_owned(), keys),
            None => self.files.remove(path),
        };
        let mut new: HashMap<Key, Object> = HashMap::with_capacity(objects.len());
        for (key, object) in objects {
            if new.insert(key.clone(), object).is_some() {
                let (kind, name) = key;
                warn!(file = %path.display(), ?kind, %name, "duplicate object in a file: the last one is used");
            }
        }
        let gone = before
            .into_iter()
            .flatten()
            .filter(|key| !new.contains_key(key));
        let gone: HashSet<_> = gone.collect();
        for key in gone {
            self.set(key, path, None, on_change);
        }
        for (key, object) in new {
            self.set(key, path, Some(object), on_change);
        }
    }

    fn set(
        &mut self,
        key: Key,
        path: &Path,
        to: Option<Object>,
        on_change: &mut dyn FnMut(Change),
    ) {
        let of = self.objects.entry(key.clone()).or_default();
        let before = of.values().next().cloned();
        let others = of.len() - usize::from(of.contains_key(path));
        match to {
            Some(object) => {
                if others > 0 && !of.contains_key(path) {
                    let (kind, name) = &key;
                    warn!(file = %path.display(), ?kind, %name, "duplicate object in another file: the first file's object is used");
                }
                of.insert(path.to_owned(), object);
            }
            None => {
                of.remove(path);
            }
        }
        let after = of.values().next().cloned();
        if of.is_empty() {
            self.objects.remove(&key);
        }
        if before != after {
            on_change(Change::Object(key, after));
        }
    }
}

/// Returns `true` if a file contains manifests. Hidden files belong to editors or to the mechanism of mounted volumes.
fn is_manifest(path: &Path) -> bool {
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("yaml" | "yml" | "json")) && !path.file_name().is_some_and(is_hidden)
}

/// A watch that continues until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    _watcher: Arc<Mutex<RecommendedWatcher>>,
}

/// Reads a folder, and sends its objects and every later change.
pub(crate) fn watch(path: PathBuf, to: Sender<Change>) -> notify::Result<Watch> {
    watch_every(CHECK_INTERVAL, path, to)
}

fn watch_every(
    poll_interval: Duration,
    path: PathBuf,
    to: Sender<Change>,
) -> notify::Result<Watch> {
    // Events contain absolute names. Each file must have one name.
    let path = std::path::absolute(path).map_err(notify::Error::io)?;
    let (events, watched) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event| {
        // Fails only when the agent stops.
        let _ = events.send(event);
    })?;
    // Before the folder is read, so that no change is missed.
    let watched_folder = identity(&path);
    watcher.watch(&path, RecursiveMode::NonRecursive)?;
    let watcher = Arc::new(Mutex::new(watcher));
    let mut follower = Follower {
        folder: Folder::new(path),
        watched: watched_folder,
        watcher: Arc::downgrade(&watcher),
        poll_interval,
    };
    let mut on_change = move |change| drop(to.send(change));
    let folder = &mut follower.folder;
    folder.read_all(&mut on_change).map_err(notify::Error::io)?;
    info!(
        files = folder.files.len(),
        objects = folder.objects.len(),
        "manifests read"
    );
    on_change(Change::Complete);
    thread::spawn(move || follower.run(&watched, &mut on_change));
    Ok(Watch { _watcher: watcher })
}

/// Returns the device and inode of the file at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Follows a folder on its own thread.
struct Follower {
    folder: Folder,
    /// The folder being watched.
    watched: Option<(u64, u64)>,
    watcher: Weak<Mutex<RecommendedWatcher>>,
    poll_interval: Duration,
}

impl Follower {
    fn run(
        &mut self,
        watched: &Receiver<notify::Result<Event>>,
        on_change: &mut dyn FnMut(Change),
    ) {
        loop {
            let mut changed_paths = ChangedPaths::default();
            match watched.recv_timeout(self.poll_interval) {
                Ok(first) => changed_paths.add(first, &self.folder.path),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let latest = Instant::now() + MAX_DELAY;
            while changed_paths.any() {
                let left = latest.saturating_duration_since(Instant::now());
                match watched.recv_timeout(QUIET.min(left)) {
                    Ok(event) => changed_paths.add(event, &self.folder.path),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            if changed_paths.folder_is_gone {
                self.watched = None;
            }
            changed_paths.all |= self.watch_again();
            if changed_paths.all {
                if let Err(error) = self.folder.read_all(on_change) {
                    let path = self.folder.path.display();
                    warn!(%path, %error, "cannot read folder: all objects are unchanged");
                }
                continue;
            }
            // No event reports a change of a link's target.
            changed_paths.paths.extend(self.folder.links());
            for path in changed_paths.paths {
                self.folder.read(&path, on_change);
            }
        }
    }

    /// Watches the folder at the path, if it is not the one being watched. Returns whether it changed.
    fn watch_again(&mut self) -> bool {
        let now = identity(&self.folder.path);
        let Some(watcher) = self.watcher.upgrade() else {
            return false;
        };
        if now.is_none() || now == self.watched {
            return false;
        }
        let path = &self.folder.path;
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        // The previous folder may be gone.
        let _ = watcher.unwatch(path);
        match watcher.watch(path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                info!(path = %path.display(), "the folder was replaced");
                self.watched = now;
            }
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot watch folder, retrying")
            }
        }
        true
    }
}

/// The files that a burst of events affects.
#[derive(Debug, Default)]
struct ChangedPaths {
    paths: BTreeSet<PathBuf>,
    all: bool,
    folder_is_gone: bool,
}

impl ChangedPaths {
    fn any(&self) -> bool {
        self.all || !self.paths.is_empty()
    }

    fn add(&mut self, event: notify::Result<Event>, folder: &Path) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                warn!(%error, "lost events of the folder, reading it again");
                self.all = true;
                return;
            }
        };
        // Reading causes events, too.
        if event.kind.is_access() {
            return;
        }
        self.all |= event.need_rescan();
        for path in event.paths {
            self.folder_is_gone |= event.kind.is_remove() && path == folder;
            // A mounted ConfigMap changes only through this link, which its files refer to.
            self.all |= path.file_name() == Some(OsStr::new("..data"));
            // The folder itself may have a manifest's extension.
            if path.parent() == Some(folder) && is_manifest(&path) {
                self.paths.insert(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chainwright_kube::service::ObjectName;

    use super::*;
    use crate::objects::Kind;

    fn service(name: &str, ip: &str) -> String {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name} }}\n\
             spec: {{ clusterIP: {ip}, ports: [{{ port: 80 }}] }}\n"
        )
    }

    /// Returns the changes: names, and whether the objects exist.
    fn changes(of: impl FnOnce(&mut dyn FnMut(Change))) -> Vec<(String, bool)> {
        let mut changes = Vec::new();
        of(&mut |change| {
            if let Change::Object((Kind::Service, name), object) = change {
                changes.push((name.name.to_string(), object.is_some()));
            }
        });
        changes.sort();
        changes
    }

    /// Returns the next change: a name, and whether the object exists.
    fn next(from: &Receiver<Change>) -> (String, bool) {
        let change = from.recv_timeout(Duration::from_secs(20)).unwrap();
        match change {
            Change::Object((_, name), object) => (name.name.to_string(), object.is_some()),
            Change::Complete => ("complete".to_owned(), true),
            Change::Stop => ("stop".to_owned(), true),
        }
    }

    #[test]
    fn files_change_only_their_own_objects() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let a = write(
            "a.yaml",
            &(service("one", "10.96.0.1") + &service("two", "10.96.0.2")),
        );
        let b = write("b.json", &service("two", "10.96.0.99"));
        write(".c.yaml", "[");
        write("notes.txt", "[");
        let mut folder = Folder::new(dir.path().to_owned());
        let all = changes(|on_change| folder.read_all(on_change).unwrap());
        let there = |name: &str| (name.to_owned(), true);
        assert_eq!(all, [there("one"), there("two")]);
        assert_eq!(changes(|on_change| folder.read_all(on_change).unwrap()), []);

        // Broken: nothing changes, not even the parts that can be parsed.
        write("a.yaml", &(service("one", "10.96.0.7") + "--- [\n"));
        assert_eq!(changes(|on_change| folder.read(&a, on_change)), []);
        write("a.yaml", &service("one", "10.96.0.7"));
        // The second service is still in the other file, with another address.
        let now = changes(|on_change| folder.read(&a, on_change));
        assert_eq!(now, [there("one"), there("two")]);
        let key = (Kind::Service, ObjectName::new("default", "two"));
        assert_eq!(folder.objects[&key].len(), 1);

        std::fs::remove_file(&b).unwrap();
        let gone = changes(|on_change| folder.read_all(on_change).unwrap());
        assert_eq!(gone, [("two".to_owned(), false)]);
        assert_eq!(folder.files.len(), 1);
    }

    /// As programs replace files: a new file, renamed over the old one.
    #[test]
    fn the_folder_is_watched() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), service("one", "10.96.0.1")).unwrap();
        let (to, from) = mpsc::channel();
        let watch = watch(dir.path().to_owned(), to).unwrap();
        let next = || next(&from);
        assert_eq!(next(), ("one".to_owned(), true));
        assert_eq!(next(), ("complete".to_owned(), true));
        let temporary = dir.path().join(".b.yaml.tmp");
        std::fs::write(&temporary, service("two", "10.96.0.2")).unwrap();
        std::fs::rename(&temporary, dir.path().join("b.yaml")).unwrap();
        assert_eq!(next(), ("two".to_owned(), true));
        std::fs::remove_file(dir.path().join("a.yaml")).unwrap();
        assert_eq!(next(), ("one".to_owned(), false));
        drop(watch);
    }

    /// Folders with names of all kinds, each followed until a file's objects are gone.
    #[test]
    fn file_identity_ignores_the_folder_path() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let absolute = dir.path().canonicalize().unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        std::fs::create_dir(absolute.join("real.yaml")).unwrap();
        std::os::unix::fs::symlink("real.yaml", absolute.join("link")).unwrap();
        for way in [
            format!("{name}/real.yaml"),
            format!("./{name}/real.yaml/"),
            format!("{name}/link"),
            format!("{name}/link/."),
            format!("{name}/../{name}/./link//"),
            format!("{}/real.yaml/", absolute.display()),
            format!("{}/link", absolute.display()),
        ] {
            let file = absolute.join("real.yaml/a.yaml");
            std::fs::write(&file, service("one", "10.96.0.1")).unwrap();
            let (to, from) = mpsc::channel();
            let watch = watch(PathBuf::from(&way), to).unwrap();
            assert_eq!(next(&from), ("one".to_owned(), true), "{way}");
            assert_eq!(next(&from), ("complete".to_owned(), true), "{way}");
            let temporary = absolute.join(".new");
            std::fs::write(&temporary, service("two", "10.96.0.2")).unwrap();
            std::fs::rename(&temporary, &file).unwrap();
            let mut both = [next(&from), next(&from)];
            both.sort();
            assert_eq!(
                both,
                [("one".to_owned(), false), ("two".to_owned(), true)],
                "{way}"
            );
            std::fs::remove_file(&file).unwrap();
            assert_eq!(next(&from), ("two".to_owned(), false), "{way}");
            drop(watch);
        }
    }

    #[test]
    fn symlink_targets_are_watched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for version in ["v1", "v2"] {
            std::fs::create_dir(at(version)).unwrap();
        }
        // One file links to another, one to a file outside the folder.
        std::fs::write(at("v1/z.yaml"), service("one", "10.96.0.1")).unwrap();
        std::os::unix::fs::symlink("z.yaml", at("v1/a.yaml")).unwrap();
        std::fs::write(at("outside"), service("two", "10.96.0.2")).unwrap();
        std::os::unix::fs::symlink("../outside", at("v1/b.yaml")).unwrap();
        std::fs::write(at("v2/c.yaml"), service("three", "10.96.0.3")).unwrap();
        std::os::unix::fs::symlink("v1", at("now")).unwrap();
        let (to, from) = mpsc::channel();
        let watch = watch_every(Duration::from_millis(50), at("now"), to).unwrap();
        let mut both = [next(&from), next(&from)];
        both.sort();
        assert_eq!(both, [("one".to_owned(), true), ("two".to_owned(), true)]);
        assert_eq!(next(&from), ("complete".to_owned(), true));
        std::fs::write(at(".new"), service("four", "10.96.0.4")).unwrap();
        std::fs::rename(at(".new"), at("outside")).unwrap();
        let mut both = [next(&from), next(&from)];
        both.sort();
        assert_eq!(both, [("four".to_owned(), true), ("two".to_owned(), false)]);
        std::fs::remove_file(at("v1/z.yaml")).unwrap();
        assert_eq!(next(&from), ("one".to_owned(), false));
        // The folder itself is replaced.
        std::os::unix::fs::symlink("v2", at("new")).unwrap();
        std::fs::rename(at("new"), at("now")).unwrap();
        let mut both = [next(&from), next(&from)];
        both.sort();
        assert_eq!(
            both,
            [("four".to_owned(), false), ("three".to_owned(), true)]
        );
        std::fs::remove_file(at("v2/c.yaml")).unwrap();
        assert_eq!(next(&from), ("three".to_owned(), false));
        drop(watch);
    }
}
