//! Namespaces of a name or of a process.

use std::path::PathBuf;

use super::*;

#[test]
fn from_pid_finds_a_processs_namespace() {
    assert_eq!(
        Netns::from_pid(std::process::id()).unwrap(),
        Netns::current().unwrap()
    );
    let sandbox = sandbox();
    let mut child = sandbox
        .run(|| Command::new("sleep").arg("60").spawn().unwrap())
        .unwrap();
    let pid = child.id();
    assert_eq!(&Netns::from_pid(pid).unwrap(), sandbox.netns());
    let path = format!("/proc/{pid}/ns/net");
    assert_eq!(&Netns::from_path(&path).unwrap(), sandbox.netns());
    assert_eq!(&Netns::from_name_or_path(&path).unwrap(), sandbox.netns());

    child.kill().unwrap();
    eventually(
        "an error for a dead process that was not waited for",
        || matches!(Netns::from_pid(pid), Err(Error::NoSuchProcess { .. })),
    );
    child.wait().unwrap();
    for nobody in [pid, 0, u32::MAX] {
        let error = Netns::from_pid(nobody).unwrap_err();
        assert!(
            matches!(error, Error::NoSuchProcess { pid } if pid == nobody),
            "{error:?}"
        );
    }
}

#[test]
fn other_files_are_refused() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let pipe = std::env::temp_dir().join(format!("chainwright-netns-{}", std::process::id()));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [
        Path::new("/proc/thread-self/ns/uts"),
        Path::new("/proc/thread-self/ns/user"),
        Path::new("/proc/self/status"),
        Path::new("/dev/zero"),
        &directory,
        &pipe,
    ] {
        let error = Netns::from_path(path).unwrap_err();
        assert!(
            matches!(error, Error::NotANetworkNamespace { .. }),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            format!("{}: not a network namespace", path.display())
        );
    }
    fs::remove_file(&pipe).unwrap();

    let error = Netns::from_name_or_path("./no-such-file").unwrap_err();
    assert!(
        matches!(&error, Error::Open { source, .. } if source.kind() == ErrorKind::NotFound),
        "{error:?}"
    );
}

#[test]
fn rejects_invalid_namespace_names() {
    for name in ["", ".", "..", "a/b", "a\0b"] {
        let error = Netns::from_name(name).unwrap_err();
        assert!(
            matches!(error, Error::InvalidName { .. }),
            "{name:?}: {error:?}"
        );
    }
    let error = Netns::from_name_or_path("no-such-namespace").unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchName { name } if name == "no-such-namespace"),
        "{error:?}"
    );
    assert!(error.to_string().contains("/run/netns"), "{error}");
}

/// In a separate mount namespace, so that the machine's /run is not affected.
#[test]
fn named_namespaces_are_found() {
    const NONE: Option<&str> = None;
    let sandbox = sandbox();
    sandbox
        .run(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(NONE, "/", NONE, private, NONE).unwrap();
            mount(NONE, "/run", Some("tmpfs"), MsFlags::empty(), NONE).unwrap();
            fs::create_dir("/run/netns").unwrap();
            fs::write("/run/netns/blue", "").unwrap();

            // A name remains as a file when its mount is gone.
            let stale = Netns::from_name("blue").unwrap_err();
            assert_eq!(
                stale.to_string(),
                "/run/netns/blue: not a network namespace"
            );

            mount(
                Some("/proc/thread-self/ns/net"),
                "/run/netns/blue",
                NONE,
                MsFlags::MS_BIND,
                NONE,
            )
            .unwrap();
            assert_eq!(&Netns::from_name("blue").unwrap(), sandbox.netns());
            assert_eq!(&Netns::from_name_or_path("blue").unwrap(), sandbox.netns());
            assert_eq!(
                &Netns::from_path("/run/netns/blue").unwrap(),
                sandbox.netns()
            );
        })
        .unwrap();
}
