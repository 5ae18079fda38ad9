//! Detects whether the kernel has loaded nf_tables. A request would load the module, which read-only programs must not
//! do.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

/// Returns `true` if the kernel currently has nf_tables, built in or as a loaded module. The check loads nothing.
/// Returns true if it cannot find out.
///
/// While nf_tables is not loaded, no network namespace has a ruleset.
/// [`Connection::open`](super::Connection::open), or the first request, loads it;
/// [`Connection::open_if_loaded`](super::Connection::open_if_loaded) does not.
#[must_use]
pub fn is_loaded() -> bool {
    static BUILT_IN: OnceLock<bool> = OnceLock::new();
    let root = Path::new("/");
    match is_listed(root) {
        Some(listed) => listed || *BUILT_IN.get_or_init(|| is_built_in(root)),
        None => true,
    }
}

/// Returns whether nf_tables is a loaded module; `None` if the kernel has no modules, or does not list them.
fn is_listed(root: &Path) -> Option<bool> {
    let modules = fs::read(root.join("proc/modules")).ok()?;
    let mut lines = modules.split(|&byte| byte == b'\n');
    Some(lines.any(|line| line.starts_with(b"nf_tables ")))
}

/// Returns `true` if nf_tables is built into the kernel: according to the kernel's list of built-in modules, or, if
/// that is not available (in a container), according to one of its functions among the kernel's symbols.
fn is_built_in(root: &Path) -> bool {
    let names = nix::sys::utsname::uname();
    let release = names.as_ref().ok().map(|names| names.release().to_owned());
    if let Some(release) = release {
        let list = root
            .join("lib/modules")
            .join(release)
            .join("modules.builtin");
        if let Ok(list) = fs::read_to_string(list) {
            return list.lines().any(|line| line.ends_with("/nf_tables.ko"));
        }
    }
    let symbols = match fs::File::open(root.join("proc/kallsyms")) {
        Ok(symbols) => BufReader::with_capacity(1 << 16, symbols),
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    let mut lines = symbols.split(b'\n').map_while(Result::ok);
    lines.any(|line| line.ends_with(b" T nft_do_chain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_their_whole_names() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(is_listed(root.path()), None);
        write(
            "proc/modules",
            "nf_tables_set 1 0 - Live 0x0\nnfnetlink 1 1 nf_tables, Live 0x0\n",
        );
        assert_eq!(is_listed(root.path()), Some(false));
        write(
            "proc/modules",
            "x 1 0 - Live 0x0\nnf_tables 1 0 - Live 0x0\n",
        );
        assert_eq!(is_listed(root.path()), Some(true));

        write(
            "proc/kallsyms",
            "0 t nft_do_chain\\t[nf_tables]\n0 T nft_do_chain_inet\n",
        );
        assert!(!is_built_in(root.path()));
        write("proc/kallsyms", "0 T a\n0 T nft_do_chain\n");
        assert!(is_built_in(root.path()));
        // The list of built-in modules takes precedence.
        let release = nix::sys::utsname::uname().unwrap().release().to_owned();
        let list = format!("lib/modules/{}/modules.builtin", release.to_str().unwrap());
        write(&list, "kernel/net/netfilter/nfnetlink.ko\n");
        assert!(!is_built_in(root.path()));
        write(&list, "kernel/net/netfilter/nf_tables.ko\n");
        assert!(is_built_in(root.path()));
    }
}
