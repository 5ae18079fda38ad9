//! Input that is rejected because the real tool rejects it, or because it would do harm.

use chainwright::Retry;
use chainwright::legacy::{Lock, LockPolicy};

use super::*;

#[test]
fn an_error_shows_its_position_and_changes_nothing() {
    let wrong = "*filter\n-A INPUT -p udp\n-A INPUT -m conntrack --ctsate NEW -j DROP\nCOMMIT\n";
    let missing = "*filter\n-A INPUT -i lo\n-A INPUT -j NOWHERE\nCOMMIT\n";
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, TEXT).expect(0);
        let save = format!("iptables-{backend}-save -c");
        let before = tools.save(&save);

        let output = run_with(&sandbox, &restore, wrong).expect(2);
        assert_eq!(
            output.err,
            "<stdin>:3:23: unknown option `--ctsate` (did you mean --ctstate?)\n    \
             3 | -A INPUT -m conntrack --ctsate NEW -j DROP\n      \
             |                       ^^^^^^^^\n\
             chainwright: nothing was changed\n"
        );
        let output = run_with(&sandbox, &format!("{restore} -"), missing).expect(2);
        assert!(output.err.starts_with("<stdin>:3: "), "{}", output.err);
        assert!(
            output.err.contains("\n    3 | -A INPUT -j NOWHERE\n"),
            "{}",
            output.err
        );
        assert!(
            output.err.ends_with("nothing was changed\n"),
            "{}",
            output.err
        );

        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*nat\n-A OUTPUT\n").unwrap();
        let path = file.path().display();
        let output = run(&sandbox, &format!("{restore} {path}")).expect(2);
        assert!(
            output.err.contains("without a COMMIT for table nat"),
            "{}",
            output.err
        );
        assert_eq!(tools.save(&save), before, "{backend}");

        let output = run(&sandbox, &format!("{restore} /nowhere/at/all")).expect(2);
        assert!(
            output.err.contains("cannot read /nowhere/at/all"),
            "{}",
            output.err
        );
    }
}

/// Input that iptables rejects because it could not restore the result, or because it has no
/// effect.
#[test]
fn rejects_what_the_real_tool_rejects() {
    for (backend, line, message) in [
        (
            "nft",
            "*nat\n-A OUTPUT -j DROP",
            "not intended for filtering",
        ),
        (
            "legacy",
            "*nat\n-A OUTPUT -j DROP",
            "not intended for filtering",
        ),
        (
            "nft",
            "*nat\n-I POSTROUTING -p tcp -j DROP",
            "not intended for filtering",
        ),
        ("nft", "*nat\n-P OUTPUT DROP", "not intended for filtering"),
        (
            "legacy",
            "*nat\n-P OUTPUT DROP",
            "not intended for filtering",
        ),
        (
            "nft",
            "*filter\n-N LOG",
            "cannot be named LOG: a target has that name",
        ),
        ("legacy", "*filter\n-N REJECT", "cannot be named REJECT"),
        ("nft", "*filter\n-N ACCEPT", "cannot be named ACCEPT"),
        ("nft", "*filter\n:DROP -", "cannot be named DROP"),
        (
            "legacy",
            "*filter\n:ACCEPT - [0:0]",
            "cannot be named ACCEPT",
        ),
    ] {
        let sandbox = sandbox();
        let text = format!("{line}\nCOMMIT\n");
        let real = Tools::new(&sandbox).takes(&format!("iptables-{backend}-restore"), &text);
        assert!(real.is_err(), "{backend}: {line}: the real tool accepts it");
        let restore = format!("apply --lock none --backend {backend}");
        let output = run_with(&sandbox, &restore, &text).expect(2);
        assert!(output.err.starts_with("<stdin>:2: "), "{}", output.err);
        assert!(
            output.err.contains(message),
            "{backend}: {line}: {}",
            output.err
        );
    }
    // Input that iptables accepts: a policy in the line of the chain, a chain that an older version
    // created, a target of another family.
    for backend in ["nft", "legacy"] {
        let sandbox = sandbox();
        let text = "*nat\n:OUTPUT DROP [0:0]\nCOMMIT\n*filter\n:LOG - [0:0]\n-A INPUT -j LOG\n\
                    -N HL\nCOMMIT\n";
        let tools = Tools::new(&sandbox);
        tools.run_with(&format!("iptables-{backend}-restore"), text);
        let save = format!("iptables-{backend}-save -c");
        let real = tools.save(&save);
        let restore = format!("apply --lock none --backend {backend}");
        run_with(&sandbox, &restore, text).expect(0);
        assert_eq!(tools.save(&save), real);
    }
}

/// The hint is for other components: it is not created in a backend that this node's components do
/// not read.
#[test]
fn kubelet_chains_are_not_created_if_legacy_ones_exist() {
    for (option, family) in [("-4", "ip"), ("-6", "ip6")] {
        let sandbox = sandbox();
        let legacy = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
        let restore = format!("apply {option} --backend legacy --lock none");
        run_with(&sandbox, &restore, legacy).expect(0);
        let generation = connect(&sandbox).generation().unwrap();
        let output = run(&sandbox, "kube ensure").expect(2);
        let message =
            format!("uses the legacy tables: they contain {family} mangle KUBE-IPTABLES-HINT");
        assert!(output.err.contains(&message), "{}", output.err);
        assert_eq!(connect(&sandbox).generation().unwrap(), generation);
        run(&sandbox, "kube ensure --even-on-legacy").expect(0);
        // Both backends have the chains now.
        run(&sandbox, "kube ensure").expect(0);
    }

    // Legacy tables of other programs do not count, and listing creates none.
    let other = crate::common::sandbox();
    run_with(
        &other,
        "apply --backend legacy --lock none",
        "*filter\n-A INPUT\nCOMMIT\n",
    )
    .expect(0);
    run(&other, "kube ensure").expect(0);
    assert_eq!(legacy_tables(&other), ["filter"]);
}

#[test]
fn waits_for_the_lock_and_names_it() {
    let sandbox = sandbox();
    let file = tempfile::NamedTempFile::new().unwrap();
    let policy = LockPolicy::Path(file.path().into());
    let held = Lock::take(&policy, Retry::ONCE).unwrap();
    let path = file.path().display();
    let restore = format!("apply --backend legacy --wait 0 --lock {path}");
    let filter = "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n";
    let output = run_with(&sandbox, &restore, filter).expect(2);
    assert!(output.err.contains("is held by"), "{}", output.err);
    drop(held);
    run_with(&sandbox, &restore, filter).expect(0);
}
