//! Tests of the registry.

use super::*;

#[test]
fn extensions_are_found_by_name_and_family() {
    for family in Family::ALL {
        for spec in Match::ALL {
            for name in spec.names() {
                let found = Match::named(family, name.as_bytes());
                let found = found.is_some_and(|found| found.names() == spec.names());
                assert_eq!(found, spec.families().include(family), "{name}");
            }
        }
    }
    assert!(Match::named(Family::Ipv4, b"no-such-match").is_none());
    assert!(Match::named(Family::Ipv4, &[b'x'; 300]).is_none());
}

/// The options that an option requires, excludes or stands for are in the same table, under their
/// canonical names. A repeatable option neither requires nor excludes others.
#[test]
fn referenced_options_exist() {
    fn check<T>(all: &[Spec<T>]) {
        for spec in all {
            for name in spec.names() {
                let options = spec.options(name);
                let is_one = |other: &&str| {
                    let mut own = options.iter().filter(|one| one.name == one.canonical);
                    own.any(|one| one.name == *other)
                };
                for one in options {
                    assert!(is_one(&one.canonical), "{name}: {}", one.name);
                    assert!(one.needs.iter().all(&is_one), "{name}: {one:?}");
                    assert!(one.excludes.iter().all(&is_one), "{name}: {one:?}");
                    let alone = one.needs.is_empty() && one.excludes.is_empty();
                    assert!(!one.repeats || alone, "{name}: {one:?}");
                }
                for group in spec.groups(name) {
                    assert!(group.names.iter().all(&is_one), "{name}: {group:?}");
                    assert!(group.names.len() > 1 && (group.required || group.exclusive));
                }
            }
        }
    }
    check(Match::ALL);
    check(Target::ALL);
}

#[test]
fn an_alias_is_another_extension_to_the_kernel() {
    // The kernel's own `state` has another struct than `conntrack`.
    assert!(Match::named(Family::Ipv4, b"state").is_some());
    for revision in 0..4 {
        let read = Match::read(Family::Ipv4, "state", revision, &[0; 200]);
        assert!(matches!(read, Match::Opaque(_)), "{revision}");
    }
    let icmp6 = |name| Match::read(Family::Ipv6, name, 0, &[0; 8]);
    assert!(matches!(icmp6("icmp6"), Match::Icmp6(_)));
    assert!(matches!(icmp6("icmpv6"), Match::Opaque(_)));
}

#[test]
fn lossy_data_stays_opaque() {
    // A negation other than 0 and 1, with which the kernel always matches; a bit that no option sets.
    let mut mark = [0; 16];
    mark[8] = 2;
    let read = |name, revision, info: &[u8]| Match::read(Family::Ipv4, name, revision, info);
    assert!(matches!(read("mark", 1, &mark), Match::Opaque(_)));
    mark[8] = 1;
    assert!(matches!(read("mark", 1, &mark), Match::Mark(_)));
    assert!(matches!(
        read("pkttype", 0, &[0, 0, 0, 0, 2, 0, 0, 0]),
        Match::Opaque(_)
    ));
    // The padding of a struct to 8 bytes is not part of it.
    assert!(matches!(
        read("ttl", 0, &[0, 5, 9, 9, 9, 9, 9, 9]),
        Match::Ttl(_)
    ));
}

/// Files that are not in a list are not compiled. The documentation of each type starts with the
/// option that selects it.
#[test]
fn each_extension_is_registered_and_documented() {
    fn check<T>(place: &str, list: &str, option: &str, all: &[Spec<T>]) {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
        let mut files = 0;
        for entry in std::fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            let module = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() || module == "mod" || list.contains(&format!("mod {module};")) {
                continue; // shared by several, or tests of the file of this name
            }
            files += 1;
            assert!(list.contains(&format!("\n        {module}::")), "{module}");
            let of = all.iter().find(|spec| {
                let name = spec.names()[0].to_ascii_lowercase();
                name == module
            });
            let name = of.unwrap_or_else(|| panic!("{module}")).names()[0];
            let text = std::fs::read_to_string(&path).unwrap();
            let typed = format!("`{option} {name}`: ");
            assert!(text.starts_with(&format!("//! {typed}")), "{module}");
            assert!(text.contains(&format!("/// {typed}")), "{module}");
        }
        assert_eq!(files, all.len());
    }
    check(
        "src/xt/matches",
        include_str!("matches/mod.rs"),
        "-m",
        Match::ALL,
    );
    check(
        "src/xt/targets",
        include_str!("targets/mod.rs"),
        "-j",
        Target::ALL,
    );
}

#[test]
fn targets_have_effects_and_some_matches_have() {
    let read = |name, info: &[u8]| Match::read(Family::Ipv4, name, 0, info);
    assert!(!read("comment", &[0; 256]).has_effects());
    assert!(read("limit", &[1; 40]).has_effects());
    assert!(read("no-such-match", &[]).has_effects());
    let log = Target::read(Family::Ipv4, "LOG", 0, &[0; 32]);
    assert!(log.has_effects() && !matches!(log, Target::Opaque(_)));
}
