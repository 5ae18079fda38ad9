//! The verbs as a whole: former names, files of all formats, help, links.

use super::*;
use crate::common::tools::Tools;

/// Each former verb works as its replacement, and prints the new name.
#[test]
fn former_names_still_work() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run("nft add table ip t");
    let (_directory, path) = super::ruleset::file();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    for (former, now) in [
        ("chains".to_owned(), "get chains".to_owned()),
        ("rules -4".to_owned(), "get rules -4".to_owned()),
        (
            "sets --elements".to_owned(),
            "get sets --elements".to_owned(),
        ),
        (
            "list -at table ip t".to_owned(),
            "get ruleset -a --terse table ip t".to_owned(),
        ),
        ("save".to_owned(), "get ruleset -o iptables".to_owned()),
        ("pending".to_owned(), "get pending".to_owned()),
        ("doctor --json".to_owned(), "check --json".to_owned()),
        ("detect --json".to_owned(), "kube status --json".to_owned()),
        ("kubelet check".to_owned(), "kube check".to_owned()),
        (
            "cleanup --dry-run A*".to_owned(),
            "delete chains --dry-run A*".to_owned(),
        ),
        (
            format!("rollback --dry-run {path}"),
            format!("apply --replace --dry-run {path}"),
        ),
        (
            format!("reconcile --dry-run {path}"),
            format!("apply --prune --dry-run {path}"),
        ),
        (
            "restore -nt /dev/null".to_owned(),
            "apply --format iptables -n --dry-run /dev/null".to_owned(),
        ),
        (
            "migrate --from legacy --to nft --dry-run".to_owned(),
            "convert --in-place --from legacy --to nft --dry-run".to_owned(),
        ),
        (
            "translate /dev/null".to_owned(),
            "convert /dev/null".to_owned(),
        ),
        (
            "why tcp 10.0.0.1 10.0.0.2:80".to_owned(),
            "trace --why tcp 10.0.0.1 10.0.0.2:80".to_owned(),
        ),
        (
            "backup /nowhere/file".to_owned(),
            "snapshot /nowhere/file".to_owned(),
        ),
        (
            "trace-packets --backend legacy".to_owned(),
            "watch packets --backend legacy".to_owned(),
        ),
        (
            "guard --poll x".to_owned(),
            "kube guard --poll x".to_owned(),
        ),
    ] {
        let [old, new] = [&former, &now].map(|line| run(&sandbox, line));
        let name = former.split(' ').next().unwrap();
        let note = format!("chainwright: `{name}` is now `");
        let rest = old
            .err
            .strip_prefix(&note)
            .unwrap_or_else(|| panic!("{former}: {}", old.err));
        let (_, rest) = rest.split_once('\n').unwrap();
        assert_eq!(
            (old.code, &old.out, rest),
            (new.code, &new.out, &*new.err),
            "{former}"
        );
    }
}

/// A state in any format can be applied with `--prune` and `--replace`.
#[test]
fn states_of_all_formats_are_applied() {
    const RULES: &str = "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy accept;\n\
                         \t\tcounter packets 0 bytes 0 drop\n\t}\n\n\
                         \tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t}\n\n\
                         \tchain OUTPUT {\n\t\ttype filter hook output priority filter; policy accept;\n\t}\n}\n";
    let (directory, snapshot) = super::ruleset::file();
    let here = sandbox();
    let rules = directory.path().join("nft").to_str().unwrap().to_owned();
    fs::write(&rules, RULES).unwrap();
    run(&here, &format!("apply {rules}")).expect(0);
    run(&here, &format!("snapshot {snapshot}")).expect(0);
    let json = run(&here, "get ruleset -o nft-json").expect(0).out;
    let saved = run(&here, "get ruleset -o iptables -c").expect(0).out;
    let mut files = vec![snapshot, rules.clone()];
    for (name, text) in [("json", &json), ("save", &saved)] {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        files.push(path.to_str().unwrap().to_owned());
    }
    for file in &files {
        for option in ["--prune", "--replace"] {
            let sandbox = sandbox();
            let tools = Tools::new(&sandbox);
            tools.run("nft add table ip other");
            tools.run_with("nft -f -", "table ip filter { chain INPUT { type filter hook input priority 0; tcp dport 1 accept; }; chain left { }; }");
            let before = run(&sandbox, "get ruleset").expect(0).out;
            run(&sandbox, &format!("apply {option} --dry-run -f {file}"));
            assert_eq!(
                run(&sandbox, "get ruleset").expect(0).out,
                before,
                "{option} {file}"
            );
            run(&sandbox, &format!("apply {option} -f {file}")).expect(0);
            let after = run(&sandbox, "get ruleset").expect(0).out;
            let other = if option == "--prune" {
                "table ip other {\n}\n"
            } else {
                ""
            };
            let both = [format!("{other}{RULES}"), format!("{RULES}{other}")];
            assert!(both.contains(&after), "{option} {file}: {after}");
        }
    }
    let ran = run(&here, &format!("apply {}", files[0])).expect(2);
    assert!(ran.err.contains("--prune"), "{}", ran.err);
    // An option for another format changes nothing.
    for line in ["apply -c", "apply -n", "apply --keep X*", "apply -4"] {
        let before = generation(&here);
        let ran = run(&here, &format!("{line} {rules}")).expect(2);
        assert!(
            ran.err
                .contains("does not apply to input in nft's language"),
            "{}",
            ran.err
        );
        assert_eq!(generation(&here), before);
    }
}

/// Names are looked up in each table, and patterns are matched; both print the same.
#[test]
fn chains_are_selected_by_name() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        "table ip a { chain c { drop; accept; }; chain d { }; }; table inet b { chain c { }; chain cc { }; }",
    );
    for names in ["c", "d c", "c cc", "missing", "cc missing"] {
        let patterns: Vec<_> = names
            .split(' ')
            .map(|name| format!("[{}]{}", &name[..1], &name[1..]))
            .collect();
        for options in ["", " --rules", " -4", " -t b", " --json"] {
            let [mut by_name, mut by_pattern] = [names, &patterns.join(" ")].map(|which| {
                run(
                    &sandbox,
                    &format!("get chains --backend nft{options} {which}"),
                )
            });
            assert_eq!(by_name.code, by_pattern.code, "{names}{options}");
            if options != " --json" {
                for ran in [&mut by_name, &mut by_pattern] {
                    let mut lines: Vec<_> = ran.out.lines().collect();
                    lines.sort_unstable();
                    ran.out = lines.join("\n");
                }
                assert_eq!(by_name.out, by_pattern.out, "{names}{options}");
            }
        }
    }
    assert_eq!(
        run(&sandbox, "get chains --rules c c")
            .expect(0)
            .lines()
            .len(),
        2
    );
}

/// Options for another format of the output are errors.
#[test]
fn options_of_other_formats_are_rejected() {
    let sandbox = sandbox();
    for (line, message) in [
        ("get ruleset -c", "--counters is for -o iptables"),
        (
            "get ruleset -o nft-json -c",
            "--counters is for -o iptables",
        ),
        (
            "get ruleset -o iptables -a",
            "cannot be used with -o iptables",
        ),
        (
            "get ruleset -o iptables --terse",
            "cannot be used with -o iptables",
        ),
        (
            "get ruleset -o iptables -j",
            "cannot be used with -o iptables",
        ),
        (
            "get ruleset -o iptables tables",
            "WHAT is for nft's language",
        ),
        ("get ruleset --backend legacy", "use -o iptables"),
        ("get ruleset -4 tables", "either by WHAT, or by options"),
    ] {
        let ran = run(&sandbox, line).expect(2);
        assert!(ran.err.contains(message), "{line}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
}

/// Each page of `--help` fits two screens of 50 lines, and has its whole description.
#[test]
fn help_is_short() {
    fn verbs(words: &[&str], pages: &mut usize) {
        let page = run_here(&[words, &["--help"]].concat()).expect(0).out;
        let lines = page.lines().count();
        assert!(lines <= 100, "{words:?}: {lines} lines");
        *pages += 1;
        let commands = page.split("\nCommands:\n").nth(1).unwrap_or_default();
        for line in commands.lines().take_while(|line| !line.is_empty()) {
            let name = line
                .strip_prefix("  ")
                .filter(|line| !line.starts_with(' '));
            if let Some(name) = name.and_then(|line| line.split(' ').next())
                && name != "help"
            {
                verbs(&[words, &[name]].concat(), pages);
            }
        }
    }
    let mut pages = 0;
    verbs(&[], &mut pages);
    assert!(pages > 30, "{pages}");
    let apply = run_here(&["apply", "--help"]).expect(0).out;
    assert!(apply.contains("A snapshot requires --prune or --replace."));
}

/// The links work as the programs with their names; other files are not replaced.
#[test]
fn links_are_installed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let made = run_here(&["multicall", "install", path]).expect(0).out;
    assert!(made.lines().any(|name| name == "ip6tables-legacy-restore"));
    for name in made.lines() {
        let option = if name.contains("translate") || name == "iptables-xml" {
            "--help"
        } else {
            "--version"
        };
        let output = Command::new(directory.path().join(name))
            .arg(option)
            .output()
            .unwrap();
        let (out, err) = (output.stdout, output.stderr);
        let text = String::from_utf8([out, err].concat()).unwrap();
        assert!(
            text.contains(if name == "nft" { "nftables" } else { "tables" }),
            "{name}: {text}"
        );
        assert!(!text.contains("Usage: chainwright"), "{name}: {text}");
    }
    assert_eq!(run_here(&["multicall", "install", path]).expect(0).out, "");
    fs::remove_file(directory.path().join("nft")).unwrap();
    let json = run_here(&["multicall", "install", path, "--json"]).expect(0);
    super::json::check("multicall", &[&json]);
    assert_eq!(json.value()["made"], serde_json::json!(["nft"]));
    fs::remove_file(directory.path().join("nft")).unwrap();
    fs::remove_file(directory.path().join("iptables")).unwrap();
    fs::write(directory.path().join("nft"), "another").unwrap();
    let ran = run_here(&["multicall", "install", path]).expect(2);
    assert!(ran.err.contains("named nft"), "{}", ran.err);
    assert!(!directory.path().join("iptables").exists());
    run_here(&["multicall", "install", "/nowhere"]).expect(2);
}
