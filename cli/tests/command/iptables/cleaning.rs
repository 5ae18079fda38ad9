//! `cleanup`, `restore --keep` and `migrate`.

use std::collections::BTreeSet;

use super::*;

const REMAINING_RULES: &str = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                    :AZURE-NPM - [0:0]\n:AZURE-NPM-X - [0:0]\n:KUBE-A - [0:0]\n\
                    -A INPUT -m comment --comment \"old net\" -j ACCEPT\n-A FORWARD -j AZURE-NPM\n\
                    -A FORWARD -j KUBE-A\n-A AZURE-NPM -j AZURE-NPM-X\n-A AZURE-NPM-X -j DROP\nCOMMIT\n";

/// Returns the rules in the output of a real save.
fn rules(sandbox: &Sandbox, backend: &str) -> Vec<String> {
    let saved = Tools::new(sandbox).save(&format!("iptables-{backend}-save"));
    let rules = saved.lines().filter(|line| line.starts_with("-A"));
    rules.map(str::to_owned).collect()
}

#[test]
fn cleanup_removes_stale_chains() {
    let sandbox = sandbox();
    for backend in ["nft", "legacy"] {
        run_with(
            &sandbox,
            &format!("apply --lock none --backend {backend}"),
            REMAINING_RULES,
        )
        .expect(0);
    }
    // With --dry-run, in both backends.
    let output = |backend: &str| {
        format!(
            "table ip filter ({backend})\n- rule AZURE-NPM: -j AZURE-NPM-X\n- rule AZURE-NPM-X: -j DROP\n\
             - rule FORWARD: -j AZURE-NPM\n- chain AZURE-NPM\n- chain AZURE-NPM-X\n"
        )
    };
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let would = run(&sandbox, "delete chains --dry-run --lock none AZURE-NPM*").expect(1);
    let both = output("nft") + &output("legacy");
    assert_eq!(sorted(&would.out), sorted(&both));
    assert_eq!(rules(&sandbox, "nft").len(), 5);

    let json = run(
        &sandbox,
        "delete chains --json --dry-run --lock none AZURE-NPM*",
    )
    .expect(1);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["tables"].as_array().unwrap().len(), 2);
    assert_eq!(document["tables"][1]["backend"], "legacy");

    // One backend; a family without such chains; a table without such chains.
    let nothing = run(&sandbox, "delete chains -6 --lock none AZURE-NPM*").expect(0);
    assert_eq!(
        (nothing.out.as_str(), nothing.err.trim()),
        ("", "chainwright: nothing to clean up")
    );
    run(&sandbox, "delete chains -t nat --lock none AZURE-NPM*").expect(0);
    assert_eq!(rules(&sandbox, "legacy").len(), 5);
    let done = run(
        &sandbox,
        "delete chains --backend legacy --lock none AZURE-NPM*",
    )
    .expect(0);
    assert_eq!(sorted(&done.out), sorted(&output("legacy")));
    let remaining = [
        "-A INPUT -m comment --comment \"old net\" -j ACCEPT",
        "-A FORWARD -j KUBE-A",
    ];
    assert_eq!(rules(&sandbox, "legacy"), remaining);
    assert_eq!(rules(&sandbox, "nft").len(), 5);
    run(
        &sandbox,
        "delete chains --comment old* --lock none AZURE-NPM*",
    )
    .expect(0);
    assert_eq!(rules(&sandbox, "nft"), remaining[1..]);
    assert_eq!(rules(&sandbox, "legacy"), remaining[1..]);
    // The IPv6 tables were not created.
    assert!(legacy::status(legacy::Family::Ipv6).is_ok());
    assert_eq!(Tools::new(&sandbox).save("ip6tables-nft-save"), "");

    // A chain that an nft rule jumps to.
    run_with(&sandbox, "apply", REMAINING_RULES).expect(0);
    Tools::new(&sandbox).run("nft add rule ip filter INPUT tcp dport { 1, 2 } jump AZURE-NPM-X");
    let output = run(&sandbox, "delete chains --lock none AZURE-NPM*").expect(2);
    assert!(
        output.err.contains("AZURE-NPM-X")
            && output.err.contains("nothing was changed in nf_tables"),
        "{}",
        output.err
    );
    // No glob.
    run(&sandbox, "delete chains").expect(2);
    run(&sandbox, "delete chains [").expect(2);
}

#[test]
fn foreign_chains_are_kept() {
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, REMAINING_RULES).expect(0);
        let text = "*filter\n:INPUT DROP [0:0]\n:KUBE-A - [0:0]\n-A INPUT -i lo -j ACCEPT\n-A FORWARD -j DROP\n-A FORWARD -j KUBE-A\nCOMMIT\n";
        let keep = format!("{restore} --keep KUBE-* --keep CNI-*");
        run_with(&sandbox, &format!("{keep} --dry-run"), text).expect(0);
        assert_eq!(rules(&sandbox, backend).len(), 5);
        let output = run_with(&sandbox, &keep, text).expect(0);
        assert_eq!(
            output.err,
            "chainwright: skipped 2 chains and rules of <stdin>, because --keep keeps their chains\n"
        );
        let expected = [
            "-A INPUT -i lo -j ACCEPT",
            "-A FORWARD -j DROP",
            "-A FORWARD -j KUBE-A",
        ];
        assert_eq!(rules(&sandbox, backend), expected);
        let json = run_with(&sandbox, &format!("{keep} --json"), text).expect(0);
        let document: Value = serde_json::from_str(&json.out).unwrap();
        let kept = json!({
            "chains": 1, "passed_over": 2, "removed_chains": 0,
            "kept_rules": 3, "inserted_rules": 0, "deleted_rules": 0,
        });
        assert_eq!(document["kept"], kept);
        // Counters in the text would apply to rules that stay; chains that are not flushed are kept
        // anyway.
        run_with(&sandbox, &format!("{keep} -c"), text).expect(2);
        run_with(&sandbox, &format!("{keep} --noflush"), text).expect(2);
        // The error names the position in the text.
        let wrong = text.replace("-i lo", "--nix");
        let output = run_with(&sandbox, &keep, &wrong).expect(2);
        assert!(output.err.starts_with("<stdin>:4:10: "), "{}", output.err);
    }
}

#[test]
fn migrate_moves_tables_to_the_other_backend() {
    let sandbox = sandbox();
    let migrate = "convert --in-place --from legacy --to nft --lock none";
    let output = run(&sandbox, migrate).expect(0);
    assert!(
        output.err.contains("no tables in the legacy tables"),
        "{}",
        output.err
    );
    run_with(&sandbox, "apply -c --lock none --backend legacy", TEXT).expect(0);
    let before = Tools::new(&sandbox).save("iptables-legacy-save -c");
    let would = run(&sandbox, &format!("{migrate} --dry-run")).expect(0);
    let mut lines: Vec<_> = would.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "table ip filter: 1 user chain, 3 rules",
            "table ip nat: 0 user chains, 1 rule"
        ]
    );
    assert_eq!(Tools::new(&sandbox).save("iptables-nft-save"), "");

    // A kubelet would create its rules again.
    let canary = "*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n";
    run_with(&sandbox, "apply --lock none --backend legacy", canary).expect(0);
    let output = run(&sandbox, migrate).expect(2);
    assert!(
        output
            .err
            .contains("chain KUBE-KUBELET-CANARY, table mangle (IPv4): another process uses")
            && output.err.contains("--force"),
        "{}",
        output.err
    );
    assert_eq!(Tools::new(&sandbox).save("iptables-nft-save"), "");

    // A rule that already exists in the other backend.
    run_with(&sandbox, "apply", "*nat\n-A OUTPUT -j ACCEPT\nCOMMIT\n").expect(0);
    let json = run(&sandbox, &format!("{migrate} --keep KUBE-KUBELET-* --json")).expect(2);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["obstacles"][0]["chain"], "OUTPUT");
    assert_eq!(document["done"], false);
    assert!(
        json.err.contains("chain OUTPUT, table nat (IPv4): "),
        "{}",
        json.err
    );
    run_with(&sandbox, "apply", "*nat\nCOMMIT\n").expect(0);

    let output = run(&sandbox, &format!("{migrate} --keep KUBE-KUBELET-*")).expect(0);
    assert_eq!(output.out, would.out);
    // The backends save their tables in different orders.
    let tables = |save: &str| -> BTreeSet<String> {
        save.split_inclusive("COMMIT\n")
            .map(str::to_owned)
            .collect()
    };
    let now = Tools::new(&sandbox).save("iptables-nft-save -c");
    assert_eq!(tables(&now), tables(&before));
    let remaining = Tools::new(&sandbox).save("iptables-legacy-save");
    assert!(
        !remaining.contains("-A ") && remaining.contains(":KUBE-KUBELET-CANARY"),
        "{remaining}"
    );
    run(&sandbox, "convert --in-place --from nft --to nft").expect(2);
}
