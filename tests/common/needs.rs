//! The programs that tests run: `tests/needs` lists each, and `tests/setup` installs it.

use std::path::PathBuf;

/// The programs that the tests need, and the packages that contain them.
const NEEDS: &str = include_str!("../needs");

/// The needs and their packages.
fn needs() -> impl Iterator<Item = (&'static str, &'static str)> {
    NEEDS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(need, package)| (need, package.trim()))
}

/// The package that contains a program. One package contains all variants of iptables
/// (`ip6tables-nft-restore`, …).
fn package(program: &str) -> Option<&'static str> {
    let named = |name: &str| needs().find(|(need, _)| *need == name);
    let (_, package) = named(program).or_else(|| {
        let table = [
            "iptables-",
            "ip6tables-",
            "arptables-",
            "ebtables-",
            "xtables-",
        ];
        let of_iptables = table.iter().any(|prefix| program.starts_with(prefix));
        of_iptables.then(|| named("iptables-nft-save")).flatten()
    })?;
    Some(package)
}

/// Finds a program; `/usr/sbin` is not in every user's path.
#[track_caller]
pub(crate) fn find(program: &str) -> PathBuf {
    let Some(package) = package(program) else {
        panic!("{program} is not in tests/needs: add it there, so that tests/setup installs it");
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!("{program} is not installed: run tests/setup once (package {package})")
        })
}

/// The directory in which a Debian package is unpacked, without being installed.
#[track_caller]
pub(crate) fn unpacked(package: &str) -> PathBuf {
    let root = super::in_workspace("");
    let prefix = format!("target/debian/{package}/");
    let Some((need, _)) = needs().find(|(need, _)| need.starts_with(&prefix)) else {
        panic!("{prefix} is not in tests/needs: add it there, so that tests/setup unpacks it");
    };
    assert!(
        root.join(need).exists(),
        "{need} is missing: run tests/setup once (package {package})"
    );
    root.join(prefix)
}
