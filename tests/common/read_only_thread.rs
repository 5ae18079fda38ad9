//! Threads that cannot change a legacy table. Any attempt to change one fails, even if the table would stay the same:
//! such a replacement leaves no visible trace.

use std::io;

/// The levels of iptables' and ip6tables' socket options.
const LEVELS: [i32; 2] = [libc::IPPROTO_IP, libc::IPPROTO_IPV6];
/// `IPT_SO_SET_REPLACE` and `IPT_SO_SET_ADD_COUNTERS` of `linux/netfilter_ipv4/ip_tables.h`; ip6tables' are the same.
const OPTIONS: [u32; 2] = [64, 65];

/// Runs a function on a separate thread for which the kernel replaces no table and sets no counters (`EPERM`).
#[track_caller]
pub(crate) fn with_unwritable_tables<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            install(&filter()).expect("cannot install the seccomp filter");
            work()
        });
        thread.join()
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A filter program for the thread's system calls: it allows everything except those options.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let statement = |code: u32, k, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let low_half = if cfg!(target_endian = "little") { 0 } else { 4 };
    let arguments = std::mem::offset_of!(libc::seccomp_data, args) as u32 + low_half;
    // A jump skips this many of the following statements.
    vec![
        statement(LOAD, 0, 0, 0),
        statement(EQUAL, libc::SYS_setsockopt as u32, 0, 6),
        statement(LOAD, arguments + 8, 0, 0),
        statement(EQUAL, LEVELS[0] as u32, 1, 0),
        statement(EQUAL, LEVELS[1] as u32, 0, 3),
        statement(LOAD, arguments + 16, 0, 0),
        statement(EQUAL, OPTIONS[0], 2, 0),
        statement(EQUAL, OPTIONS[1], 1, 0),
        statement(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
    ]
}

/// Installs the filter permanently for the calling thread and its children.
fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points to the filter, which the kernel only reads; the other calls take numbers.
    let results = unsafe {
        let no_privileges = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let installed = libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        );
        [no_privileges, installed]
    };
    match results {
        [0, 0] => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
