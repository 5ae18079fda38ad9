//! Saving: the file's permissions, what it replaces, and the old file after a failure.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use caps::{CapSet, Capability};
use chainwright::nft::NotRegular;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

#[test]
fn a_file_is_readable_only_by_its_owner() {
    let place = BackupDirectory::new();
    let (one, two) = (snapshot_of(SMALL), snapshot_of(LARGE));
    one.save(place.path()).unwrap();
    let mode = || fs::metadata(place.path()).unwrap().mode() & 0o7777;
    assert_eq!(mode(), 0o600);
    // Even if it replaces a file that everyone could read.
    fs::set_permissions(place.path(), Permissions::from_mode(0o666)).unwrap();
    let mut before = fs::File::open(place.path()).unwrap();
    two.save(place.path()).unwrap();
    assert_eq!(mode(), 0o600);
    assert_eq!(place.names(), ["backup"]);
    // A process that has the old file open still reads the old one.
    let mut old = Vec::new();
    before.read_to_end(&mut old).unwrap();
    assert_eq!(Parts::of(&old).messages, Parts::of(&file_of(&one)).messages);
    let new = Snapshot::load(place.path()).unwrap();
    assert_eq!(new.to_string(), two.to_string());
}

#[test]
fn only_a_regular_file_is_replaced() {
    let place = BackupDirectory::new();
    let snapshot = snapshot_of(SMALL);
    let refused = |name: &str, kind: NotRegular, message: &str| {
        let path = place.0.path().join(name);
        let before = fs::symlink_metadata(&path).unwrap();
        let error = snapshot.save(&path).unwrap_err();
        let FileError::NotRegular { path: named, what } = &error else {
            panic!("{name}: {error:?}");
        };
        assert_eq!((named, *what), (&path, kind));
        assert!(report(&error).contains(message), "{error}");
        let after = fs::symlink_metadata(&path).unwrap();
        assert_eq!((after.dev(), after.ino()), (before.dev(), before.ino()));
        assert_eq!(after.file_type(), before.file_type());
    };
    let at = |name: &str| place.0.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    refused(
        "directory",
        NotRegular::Directory,
        "is a directory, but only",
    );
    mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    refused("pipe", NotRegular::Pipe, "is a named pipe");
    let listener = UnixListener::bind(at("socket")).unwrap();
    refused("socket", NotRegular::Socket, "is a socket");
    drop(listener);

    // Links: to a file, to a device, to nothing.
    fs::write(at("target"), "somebody's").unwrap();
    for (name, target) in [
        ("link", "target"),
        ("null", "/dev/null"),
        ("lost", "nowhere"),
    ] {
        symlink(target, at(name)).unwrap();
        refused(name, NotRegular::Link, "use the path that it points to");
        assert_eq!(fs::read_link(at(name)).unwrap(), Path::new(target));
    }
    assert_eq!(fs::read(at("target")).unwrap(), b"somebody's");

    // Only root can create a device, but any user can mount one here. A rename onto a mount is refused.
    fs::write(at("device"), "").unwrap();
    in_private_mount_namespace(|| {
        let none = None::<&str>;
        mount(
            Some("/dev/zero"),
            &at("device"),
            none,
            MsFlags::MS_BIND,
            none,
        )
        .unwrap();
        refused("device", NotRegular::Device, "is a device");
    });

    // No other files are left, and a file in their place is replaced.
    let mut names = [
        "device",
        "directory",
        "link",
        "lost",
        "null",
        "pipe",
        "socket",
        "target",
    ];
    names.sort_unstable();
    assert_eq!(place.names(), names);
    snapshot.save(at("target")).unwrap();
    assert!(Snapshot::load(at("target")).is_ok());
    assert_eq!(place.names(), names);
}

/// The reason of a failed save. Checks that the error names the path.
#[track_caller]
fn failure(snapshot: &Snapshot, path: &Path) -> (&'static str, io::Error) {
    match snapshot.save(path).unwrap_err() {
        FileError::Io {
            action,
            path: named,
            source,
        } => {
            assert_eq!(named, path);
            (action, source)
        }
        error => panic!("{error:?}"),
    }
}

#[test]
fn errors_name_an_invalid_path() {
    let place = BackupDirectory::new();
    let snapshot = snapshot_of(SMALL);
    let path = place.0.path().join("missing/backup");
    let (_, error) = failure(&snapshot, &path);
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let text = report(&snapshot.save(&path).unwrap_err());
    assert!(text.contains("missing/backup"), "{text}");
    assert_eq!(place.names(), [""; 0]);

    // A file as a directory, and a directory as a file.
    fs::write(place.path(), "").unwrap();
    let (_, error) = failure(&snapshot, &place.path().join("backup"));
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    assert_eq!(place.names(), ["backup"]);
}

/// Runs a function on a thread with its own capabilities and mounts.
fn in_private_mount_namespace(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            work();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn mount_tmpfs(on: &Path, options: &str) {
    let none = MsFlags::empty();
    mount(Some("tmpfs"), on, Some("tmpfs"), none, Some(options)).unwrap();
}

#[test]
fn an_old_file_survives_a_directory_that_cannot_be_written() {
    let place = BackupDirectory::new();
    let (one, two) = (snapshot_of(SMALL), snapshot_of(LARGE));
    one.save(place.path()).unwrap();
    let before = fs::read(place.path()).unwrap();
    let still = || {
        assert!(fs::read(place.path()).unwrap() == before);
        assert_eq!(place.names(), ["backup"]);
    };
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o500)).unwrap();
    in_private_mount_namespace(|| {
        for capability in [
            Capability::CAP_DAC_OVERRIDE,
            Capability::CAP_DAC_READ_SEARCH,
        ] {
            caps::drop(None, CapSet::Effective, capability).unwrap();
        }
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "create a file next to");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        still();
        // A directory that can be written and not read: the file could not be made durable.
        fs::set_permissions(place.0.path(), Permissions::from_mode(0o300)).unwrap();
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "open the directory of");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    });
    fs::set_permissions(place.0.path(), Permissions::from_mode(0o700)).unwrap();
    still();

    // A read-only file system.
    in_private_mount_namespace(|| {
        mount_tmpfs(place.0.path(), "mode=0700");
        one.save(place.path()).unwrap();
        let before = fs::read(place.path()).unwrap();
        let only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(
            None::<&str>,
            place.0.path(),
            None::<&str>,
            only,
            None::<&str>,
        )
        .unwrap();
        let (action, error) = failure(&two, &place.path());
        assert_eq!(action, "create a file next to");
        assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem);
        assert!(fs::read(place.path()).unwrap() == before);
    });
    still();
    two.save(place.path()).unwrap();
}

#[test]
fn an_old_file_survives_a_full_disk() {
    let place = BackupDirectory::new();
    let (one, two) = (snapshot_of(SMALL), large());
    in_private_mount_namespace(|| {
        mount_tmpfs(place.0.path(), "size=64k,mode=0700");
        one.save(place.path()).unwrap();
        let before = fs::read(place.path()).unwrap();
        assert!(before.len() < 8192 && file_of(&two).len() > 65_536);
        for _ in 0..3 {
            let (action, error) = failure(&two, &place.path());
            assert_eq!(action, "write");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(fs::read(place.path()).unwrap() == before);
            // The partial file is removed: the next attempt has the same space.
            assert_eq!(place.names(), ["backup"]);
        }
        // There is still space for a smaller file. A process that another test forks at that moment holds
        // all open files until its exec, and so the space of a removed one.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) && one.save(place.path()).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        one.save(place.path()).unwrap();
        assert!(Snapshot::load(place.path()).is_ok());
    });
}

/// Like a quota: `ulimit -f`, in a separate process, because it applies to all threads.
#[test]
fn an_old_file_survives_a_limit_of_file_size() {
    const TEST_DIRECTORY_VARIABLE: &str = "CHAINWRIGHT_TEST_LIMITED";
    if let Some(directory) = std::env::var_os(TEST_DIRECTORY_VARIABLE) {
        let path = Path::new(&directory).join("backup");
        let (action, error) = failure(&large(), &path);
        assert_eq!(action, "write");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        return;
    }
    let place = BackupDirectory::new();
    let small = snapshot_of(SMALL);
    small.save(place.path()).unwrap();
    let before = fs::read(place.path()).unwrap();
    let name = "backup::saving::an_old_file_survives_a_limit_of_file_size";
    let output = Command::new("sh")
        // Blocks of 512 bytes: 32 KiB.
        .args(["-c", "ulimit -f 64; trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(TEST_DIRECTORY_VARIABLE, place.0.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{output:?}");
    assert!(text.contains("1 passed"), "{text}");
    assert!(fs::read(place.path()).unwrap() == before);
    assert_eq!(place.names(), ["backup"]);
}
