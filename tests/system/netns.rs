//! Network namespaces and sandboxes, tested with the kernel, as root or as a user without
//! privileges.

mod cables;
mod named;

use std::collections::HashSet;
use std::ffi::CStr;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::common::{report, sandbox};
use chainwright::netns::{Error, Netns};
use chainwright_testing::Sandbox;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::ifaddrs::getifaddrs;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, fchdir, pivot_root};

const PATIENCE: Duration = Duration::from_secs(20);

/// Contains the test for which this process was started, if any.
const ALONE: &str = "CHAINWRIGHT_TEST_ALONE";

/// Polls until `condition` holds.
#[track_caller]
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < PATIENCE,
            "{what} did not happen within {PATIENCE:?}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

fn has_interface(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.run(|| if_nametoindex(name).is_ok()).unwrap()
}

/// For a test that counts what its process holds: no other test may run in that process.
fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, test)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Drops all capabilities of the calling thread only.
fn drop_capabilities() {
    /// `struct __user_cap_header_struct` (linux/capability.h).
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let none = [0_u32; 6];
    // SAFETY: capset(2) reads the header and, as its version says, two sets of three words.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) };
    assert_eq!(result, 0);
}

/// This test program again, run by a user without privileges: one that is not 0 in its user
/// namespace and has no capabilities there. The setting named by `forbidden` is 0 for it.
fn by_an_ordinary_user(arguments: &[&str], forbidden: Option<&'static str>) -> Command {
    let users = format!("1000 {} 1", nix::unistd::geteuid());
    let groups = format!("1000 {} 1", nix::unistd::getegid());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments);
    // SAFETY: between fork and exec this makes only system calls; the data that it writes was
    // prepared before.
    unsafe {
        command.pre_exec(move || {
            match unshare(CloneFlags::CLONE_NEWUSER) {
                // Either it is forbidden here, or this is a chroot, which root can leave.
                Err(Errno::EPERM) if nix::unistd::geteuid().is_root() => {
                    make_the_chroot_a_root()?;
                    unshare(CloneFlags::CLONE_NEWUSER)?;
                }
                other => other?,
            }
            if let Some(setting) = forbidden {
                fs::write(setting, "0")?;
            }
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", &users)?;
            fs::write("/proc/self/gid_map", &groups)
        });
    }
    command
}

/// In a chroot no process may create a user namespace (user_namespaces(7)). This gives the process
/// its own mount namespace with the chroot's directory as the root.
fn make_the_chroot_a_root() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing = None::<&CStr>;
    mount(
        nothing,
        c"/",
        nothing,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        nothing,
    )?;
    let root = open(c"/", OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())?;
    let own = open(c"/proc/thread-self/ns/mnt", OFlag::O_RDONLY, Mode::empty())?;
    // Entering a mount namespace, even the current one, ends a chroot: setns(2).
    setns(own, CloneFlags::CLONE_NEWNS)?;
    fchdir(root)?;
    // Then the old root is mounted over the new one: pivot_root(2).
    pivot_root(c".", c".")?;
    umount2(c".", MntFlags::MNT_DETACH)?;
    chdir(c"/")
}

#[test]
fn run_does_not_change_the_callers_thread() {
    let before = Netns::current().unwrap();
    let sandbox = sandbox();
    let inside = sandbox.run(Netns::current).unwrap().unwrap();
    assert_eq!(&inside, sandbox.netns());
    assert_ne!(inside, before);
    assert_eq!(Netns::current().unwrap(), before);
}

#[test]
fn run_may_borrow_and_returns_the_result() {
    let sandbox = sandbox();
    let mut words = vec!["a"];
    let last = sandbox
        .run(|| {
            words.push("b");
            words.last().copied()
        })
        .unwrap();
    assert_eq!((last, words.len()), (Some("b"), 2));
}

#[test]
fn nested_runs_restore_the_namespace() {
    let (a, b) = (sandbox(), sandbox());
    let inner = a.run(|| {
        let inner = b.run(Netns::current).unwrap().unwrap();
        assert_eq!(&Netns::current().unwrap(), a.netns());
        inner
    });
    assert_eq!(&inner.unwrap(), b.netns());
}

#[test]
fn a_panic_propagates_to_the_caller() {
    let before = Netns::current().unwrap();
    let sandbox = sandbox();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        sandbox.run(|| -> () { std::panic::panic_any("on purpose") })
    }))
    .unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert_eq!(Netns::current().unwrap(), before);
    assert!(sandbox.run(|| true).unwrap());
}

/// nf_tables records the thread's name with each generation.
#[test]
fn the_helper_thread_has_the_callers_name_in_the_kernel() {
    let name = || fs::read_to_string("/proc/thread-self/comm").unwrap();
    assert_eq!(sandbox().run(name).unwrap(), name());
}

#[test]
fn a_sandbox_is_isolated() {
    let sandbox = sandbox();
    // Kernels with tunnel modules put their own, unused interfaces into each namespace.
    let up = sandbox.run(|| {
        let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        getifaddrs()
            .unwrap()
            .filter(|interface| interface.flags.contains(up))
            .map(|interface| interface.interface_name)
            .collect::<HashSet<_>>()
    });
    assert_eq!(up.unwrap(), HashSet::from(["lo".to_string()]));
    let routes = sandbox.run(|| fs::read_to_string("/proc/thread-self/net/route").unwrap());
    assert_eq!(
        routes.unwrap().lines().count(),
        1,
        "the file should contain only the heading"
    );
}

#[test]
fn the_loopback_interface_works_and_is_the_sandboxs_own() {
    let sandbox = sandbox();
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, mut client) = sandbox
            .run(|| {
                let listener = TcpListener::bind(address).unwrap();
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                (listener, client)
            })
            .unwrap();
        // The sockets belong to the sandbox, wherever they are used.
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        let mut received = [0; 5];
        server.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello");
    }

    // A port in use here is free in another sandbox, and nothing answers there.
    let other = crate::common::sandbox();
    let listener = sandbox.run(|| TcpListener::bind("127.0.0.1:80").unwrap());
    let refused = other.run(|| TcpStream::connect("127.0.0.1:80")).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    other
        .run(|| TcpListener::bind("127.0.0.1:80").unwrap())
        .unwrap();
    drop(listener);
}

#[test]
fn two_sandboxes_differ() {
    let (a, b) = (sandbox(), sandbox());
    assert_ne!(a.netns(), b.netns());
    assert_ne!(a.netns().id(), b.netns().id());
    let again = a.netns().try_clone().unwrap();
    assert_eq!(&again, a.netns());
    let link = a.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap());
    assert_eq!(Path::new(&a.netns().id().to_string()), link.unwrap());
}

#[test]
fn error_messages_of_the_kernel_are_passed_on() {
    let a = sandbox();
    let error = a.add_route("10.0.0.1/8", "127.0.0.1").unwrap_err();
    let chainwright_testing::Error::Network {
        message: Some(message),
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(message, "Invalid prefix for given prefix length");
    assert!(error.to_string().contains(message), "{error}");

    let text = report(&a.add_address("eth7", "10.0.0.1/8").unwrap_err());
    assert!(text.contains("query the interface eth7"), "{text}");
}

#[test]
fn a_dropped_sandbox_is_gone() {
    let (a, b) = (sandbox(), sandbox());
    Sandbox::connect(&a, "eth0", "10.0.0.1/24", &b, "eth0", "10.0.0.2/24").unwrap();
    assert!(has_interface(&b, "eth0"));
    drop(a);
    eventually("removal of the other end", || !has_interface(&b, "eth0"));
}

#[test]
fn open_sockets_keep_a_sandbox_alive() {
    let (a, b) = (sandbox(), sandbox());
    Sandbox::connect(&a, "eth0", "10.0.0.1/24", &b, "eth0", "10.0.0.2/24").unwrap();
    let listener = a.run(|| TcpListener::bind("10.0.0.1:80").unwrap()).unwrap();
    drop(a);
    thread::sleep(Duration::from_millis(100));
    b.run(|| TcpStream::connect("10.0.0.1:80").unwrap())
        .unwrap();
    drop(listener);
    eventually("removal of the other end", || !has_interface(&b, "eth0"));
}

#[test]
fn without_capabilities_and_with_threads_the_error_gives_advice() {
    let elsewhere = sandbox();
    sandbox()
        .run(|| {
            drop_capabilities();
            let error = Sandbox::new().unwrap_err();
            assert!(
                matches!(error, chainwright_testing::Error::MultiThreaded { threads } if threads > 1),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(
                text.contains("chainwright_testing::become_namespace_root()"),
                "{text}"
            );

            let error = elsewhere.run(|| ()).unwrap_err();
            assert!(
                matches!(&error, Error::Enter { source, .. }
                    if source.kind() == ErrorKind::PermissionDenied),
                "{error:?}"
            );
            assert!(error.to_string().contains("CAP_SYS_ADMIN"), "{error}");

            // Entering the current namespace is allowed.
            let here = Netns::current().unwrap();
            assert_eq!(here.run(Netns::current).unwrap().unwrap(), here);
        })
        .unwrap();
}

#[test]
fn many_sandboxes_leave_no_descriptor_and_no_thread() {
    alone(
        "netns::many_sandboxes_leave_no_descriptor_and_no_thread",
        || {
            let entries = |directory| fs::read_dir(directory).unwrap().count();
            let count = || (entries("/proc/self/fd"), entries("/proc/self/task"));
            let before = count();
            for _ in 0..50 {
                let (a, b) = (sandbox(), sandbox());
                Sandbox::connect(&a, "eth0", "10.0.0.1/24", &b, "eth0", "10.0.0.2/24").unwrap();
                assert!(a.run(|| UdpSocket::bind("10.0.0.1:0").is_ok()).unwrap());
                assert!(Netns::from_path("/dev/zero").is_err());
            }
            eventually(
                "return to the previous number of descriptors and threads",
                || count() == before,
            );
        },
    );
}

#[test]
fn from_many_threads_at_once() {
    const THREADS: usize = 8;
    const PAIRS: usize = 5;
    let barrier = Barrier::new(THREADS);
    let work = || {
        barrier.wait();
        let pairs = [(); PAIRS].map(|()| {
            let (a, b) = (sandbox(), sandbox());
            Sandbox::connect(&a, "eth0", "10.0.0.1/24", &b, "eth0", "10.0.0.2/24").unwrap();
            (a, b)
        });
        for (a, b) in &pairs {
            let _listener = b.run(|| TcpListener::bind("10.0.0.2:80").unwrap()).unwrap();
            a.run(|| TcpStream::connect("10.0.0.2:80").unwrap())
                .unwrap();
        }
        pairs
    };
    let pairs: Vec<_> = thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| scope.spawn(work));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    let ids: HashSet<_> = pairs
        .iter()
        .flatten()
        .flat_map(|(a, b)| [a.netns().id(), b.netns().id()])
        .collect();
    assert_eq!(ids.len(), THREADS * PAIRS * 2);
}

/// As any user, the tests run once more for a user without privileges.
#[test]
fn all_of_this_works_for_an_ordinary_user() {
    let output = by_an_ordinary_user(&["netns::", "--skip", "ordinary_user"], None)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !stdout.contains(" 0 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_forbidden_user_gets_the_reason() {
    let setting = "/proc/sys/user/max_user_namespaces";
    let output = by_an_ordinary_user(&["netns::two_sandboxes_differ", "--exact"], Some(setting))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        stderr.contains("unshare(CLONE_NEWUSER) failed")
            && stderr.contains("user.max_user_namespaces = 0"),
        "{stderr}"
    );
}
