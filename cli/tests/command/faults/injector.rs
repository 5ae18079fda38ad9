//! Runs a program and makes one of its system calls fail.
//!
//! A seccomp filter forwards the system calls of certain kinds to this process
//! (`SECCOMP_RET_USER_NOTIF`, seccomp_unotify(2), Linux 5.5). For each call it lets the kernel
//! continue, returns an error, consumes the datagram that the call would have received, or kills
//! the program. This needs no privilege.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chainwright_testing::Sandbox;

/// The longest time that a run may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The descriptor of the listener in the program, above those of the program's own files.
const LISTENER: RawFd = 400;

/// The purpose of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Send,
    Receive,
    SetOption,
    GetOption,
    Socket,
    Open,
    Write,
    Sync,
    Rename,
    Lock,
}

const SYSTEM_CALLS: &[(libc::c_long, Kind)] = &[
    (libc::SYS_sendto, Kind::Send),
    (libc::SYS_sendmsg, Kind::Send),
    (libc::SYS_recvfrom, Kind::Receive),
    (libc::SYS_recvmsg, Kind::Receive),
    (libc::SYS_setsockopt, Kind::SetOption),
    (libc::SYS_getsockopt, Kind::GetOption),
    (libc::SYS_socket, Kind::Socket),
    (libc::SYS_openat, Kind::Open),
    (libc::SYS_write, Kind::Write),
    (libc::SYS_fsync, Kind::Sync),
    (libc::SYS_fdatasync, Kind::Sync),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, Kind::Rename),
    (libc::SYS_renameat, Kind::Rename),
    (libc::SYS_renameat2, Kind::Rename),
    (libc::SYS_linkat, Kind::Rename),
    (libc::SYS_flock, Kind::Lock),
];

/// What to do with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The call fails with this error and has no effect.
    Fail(i32),
    /// The datagram that the call would have received is lost, and so are all later ones, without
    /// an error. (A kernel does not do this.)
    Swallow,
    /// The datagram that the call would have received is lost, and the call fails with this error.
    Drop(i32),
    /// The program is killed instead of the call.
    Kill,
}

/// The system call with this number, counted from 0 over all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) call: usize,
    pub(crate) action: Action,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; `None` if a signal killed the program.
    pub(crate) code: Option<i32>,
    /// Whether the program did not end in time and was killed.
    pub(crate) hung: bool,
    pub(crate) out: String,
    pub(crate) err: String,
    /// The system calls that the program made.
    pub(crate) calls: Vec<Kind>,
    /// Whether the fault was injected.
    pub(crate) injected: bool,
}

/// Runs the program in the sandbox.
pub(crate) fn run(
    sandbox: &Sandbox,
    program: &str,
    arguments: &[String],
    fault: Option<Fault>,
) -> Run {
    let mut out = tempfile::tempfile().unwrap();
    let mut err = tempfile::tempfile().unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(err.try_clone().unwrap());
    let filter = filter();
    // SAFETY: between fork and exec `install` only makes system calls, on memory that is already
    // allocated.
    unsafe {
        command.pre_exec(move || install(&filter));
    }
    let mut child = sandbox.run(|| command.spawn()).unwrap().unwrap();
    let mut run = Run {
        code: None,
        hung: false,
        out: String::new(),
        err: String::new(),
        calls: Vec::new(),
        injected: false,
    };
    supervise(&mut child, fault, &mut run);
    let status = child.wait().unwrap();
    run.code = status.code();
    assert!(
        run.code.is_some() || status.signal() == Some(libc::SIGKILL),
        "{status}"
    );
    for (file, text) in [(&mut out, &mut run.out), (&mut err, &mut run.err)] {
        file.rewind().unwrap();
        file.read_to_string(text).unwrap();
    }
    run
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Returns the filter: it forwards all calls of these kinds to the supervisor, except for writes to
/// standard output and standard error.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const GREATER: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let low_half = if cfg!(target_endian = "little") { 0 } else { 4 };
    let argument = std::mem::offset_of!(libc::seccomp_data, args) as u32 + low_half;
    let notify = statement(RETURN, libc::SECCOMP_RET_USER_NOTIF);
    let mut filter = vec![statement(LOAD, 0)];
    for &(number, kind) in SYSTEM_CALLS {
        if kind == Kind::Write {
            continue;
        }
        filter.extend([jump(EQUAL, number as u32, 0, 1), notify]);
    }
    filter.extend([
        jump(EQUAL, libc::SYS_write as u32, 0, 3),
        statement(LOAD, argument),
        jump(GREATER, libc::STDERR_FILENO as u32, 0, 1),
        notify,
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ]);
    filter
}

/// Runs in the child: installs the filter, and moves its listener to the descriptor that the parent
/// expects.
fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points to the filter, which the kernel only reads; the others take numbers.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        // From here on the calls of those kinds wait for the parent.
        if listener < 0 || libc::dup2(listener as RawFd, LISTENER) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::close(listener as RawFd);
    }
    Ok(())
}

/// Duplicates a descriptor of another process.
fn file_of(process: &OwnedFd, number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes only numbers, and returns a new descriptor that nothing else owns.
    unsafe {
        let file = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0);
        match file {
            ..0 => Err(io::Error::last_os_error()),
            file => Ok(OwnedFd::from_raw_fd(file as RawFd)),
        }
    }
}

/// Answers the program's calls until the program ends.
fn supervise(child: &mut Child, fault: Option<Fault>, run: &mut Run) {
    let start = Instant::now();
    // SAFETY: the call takes only numbers, and returns a new descriptor that nothing else owns.
    let process = unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, child.id(), 0);
        assert!(process >= 0, "{}", io::Error::last_os_error());
        OwnedFd::from_raw_fd(process as RawFd)
    };
    let listener = file_of(&process, LISTENER).expect("cannot duplicate the program's listener");
    let memory =
        File::open(format!("/proc/{}/mem", child.id())).expect("cannot open the program's memory");
    loop {
        let event = |fd: &OwnedFd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut events = [event(&listener), event(&process)];
        let left = LIMIT.saturating_sub(start.elapsed());
        // SAFETY: the pointer is to an array of two, and is used only during the call.
        unsafe { libc::poll(events.as_mut_ptr(), 2, left.as_millis() as i32) };
        if events[1].revents != 0 {
            return;
        }
        if start.elapsed() > LIMIT {
            run.hung = true;
            child.kill().unwrap();
            return;
        }
        if events[0].revents & libc::POLLIN == 0 {
            continue;
        }
        // SAFETY: the struct consists of integers; zero is valid for all of them, and the kernel
        // requires zeroes.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes no more than the struct.
        let received = unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut call,
            )
        };
        if received != 0 {
            continue; // the program was killed meanwhile
        }
        // SAFETY: as above.
        let mut answer: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
        answer.id = call.id;
        answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        if let Some(kind) = kind_of(&call.data, &memory) {
            let number = run.calls.len();
            run.calls.push(kind);
            if let Some(fault) = fault
                && fault.call == number
            {
                let fail = |answer: &mut libc::seccomp_notif_resp, error: i32| {
                    answer.flags = 0;
                    answer.error = -error;
                };
                run.injected = true;
                match fault.action {
                    Action::Fail(error) => fail(&mut answer, error),
                    Action::Kill => {
                        child.kill().unwrap();
                        return;
                    }
                    Action::Swallow => {
                        run.injected = swallow(&process, &call.data);
                        while swallow(&process, &call.data) {}
                    }
                    Action::Drop(error) => {
                        run.injected = swallow(&process, &call.data);
                        fail(&mut answer, error);
                    }
                }
            }
        }
        // SAFETY: the kernel reads the struct.
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut answer,
            );
        }
    }
}

/// Returns the purpose of a call; `None` for calls of the loader and for other calls that are not
/// tested.
fn kind_of(call: &libc::seccomp_data, memory: &File) -> Option<Kind> {
    let number = libc::c_long::from(call.nr);
    let (_, kind) = SYSTEM_CALLS.iter().find(|known| known.0 == number)?;
    if *kind == Kind::Open {
        let mut path = [0; 256];
        let length = memory.read_at(&mut path, call.args[1]).unwrap_or(0);
        let path = path[..length].split(|&byte| byte == 0).next()?;
        // Files that the runtime opens before main: libraries, the C library's settings, and what
        // std reads.
        let path = String::from_utf8_lossy(path);
        let own = [crate::faults::DIRECTORY, "_tables_names", "/proc/locks"];
        if !own.iter().any(|own| path.contains(own)) {
            return None;
        }
    }
    Some(*kind)
}

/// Consumes what the call would have received; returns whether there was anything.
fn swallow(process: &OwnedFd, call: &libc::seccomp_data) -> bool {
    let Ok(socket) = file_of(process, call.args[0] as RawFd) else {
        return false;
    };
    // As long as the buffer of the call: the kernel makes the parts of a dump that long.
    let mut buffer = vec![0u8; (call.args[2] as usize).min(1 << 20)];
    // SAFETY: the length passed is that of the buffer.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    received >= 0
}
