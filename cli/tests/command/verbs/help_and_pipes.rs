//! Help, completions, colors, and readers that close the pipe.

use super::*;

#[test]
fn help_wraps_at_the_terminal_width() {
    let widest = |columns: &str, arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let ran: Ran = command
            .args(arguments)
            .env("COLUMNS", columns)
            .output()
            .unwrap()
            .into();
        let lines = ran.expect(0);
        lines
            .lines()
            .iter()
            .map(|l| l.chars().count())
            .max()
            .unwrap()
    };
    for verb in ["exists", "apply", "snapshot"] {
        for arguments in [&[verb, "--help"][..], &["help", verb], &[verb, "-h"]] {
            let narrow = widest("60", arguments);
            assert!(narrow <= 60, "{arguments:?}: {narrow}");
            let wide = widest("90", arguments);
            assert!((61..=90).contains(&wide), "{arguments:?}: {wide}");
        }
        assert!(widest("300", &[verb, "--help"]) <= 100, "{verb}");
    }
}

/// Standard output is no terminal: colors are used only if the environment forces them, and not if
/// it disables them.
#[test]
fn colors_are_used_on_terminals_or_if_requested() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept").to_str().unwrap().to_owned();
    run(&sandbox, &format!("snapshot {path}")).expect(0);
    small_ruleset(&sandbox);
    let text = directory.path().join("text").to_str().unwrap().to_owned();
    fs::write(&text, "*filter\n-A INPUT --nix\nCOMMIT\n").unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| -> Ran {
        let work = || {
            let mut command = Command::new(PROGRAM);
            for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
                command.env_remove(name);
            }
            command.args(arguments).envs(variables.iter().copied());
            command.output().unwrap()
        };
        sandbox.run(work).unwrap().into()
    };
    for arguments in [
        &["diff", &path][..],
        &["apply", &text],
        &["--help"],
        &["nix"],
    ] {
        let plain = run(arguments, &[]);
        let forced = run(arguments, &[("CLICOLOR_FORCE", "1")]);
        let none = run(arguments, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
        for ran in [&plain, &none] {
            let both = format!("{}{}", ran.out, ran.err);
            assert!(!both.contains('\x1b'), "{arguments:?}: {both:?}");
        }
        let both = format!("{}{}", forced.out, forced.err);
        assert!(both.contains("\x1b["), "{arguments:?}: {both:?}");
        assert_eq!((plain.code, &plain.out), (none.code, &none.out));
        assert_eq!(plain.code, forced.code);
    }
    let differs = run(&["diff", &path], &[("CLICOLOR_FORCE", "1")]).out;
    assert!(
        differs.contains("\x1b[32m+ table inet t\x1b[0m\n"),
        "{differs:?}"
    );
    let json = run(&["diff", &path, "--json"], &[("CLICOLOR_FORCE", "1")]).out;
    assert!(!json.contains('\x1b'));
}

#[test]
fn completions_and_manual_pages_are_printed() {
    for (shell, expected) in [
        ("bash", "-F _chainwright chainwright"),
        ("zsh", "#compdef chainwright"),
        ("fish", "complete --keep-order"),
    ] {
        let ran = run_here(&["completions", shell]).expect(0);
        assert!(ran.out.contains(expected), "{}", ran.out);
    }
    for (verb, expected) in [
        (&[][..], ".TH chainwright 8"),
        (&["apply"], ".TH chainwright-apply 8"),
        (&["kube", "check"], ".TH chainwright-kube-check 8"),
    ] {
        let ran = run_here(&[&["man"], verb].concat()).expect(0);
        assert!(ran.out.contains(expected), "{}", ran.out);
    }
    let ran = run_here(&["man", "nix"]).expect(1);
    assert_eq!(ran.err, "chainwright: unknown command \"nix\"\n");
}

#[test]
fn wrong_arguments_are_reported() {
    for arguments in [
        &["nix"][..],
        &[],
        &["get", "chains", "--family", "ipx"],
        &["get", "chains", "--backend", "xt"],
        &["kube"],
        &["kube", "mend"],
        &["get", "rules", "["],
        &["snapshot"],
        &["apply", "--prune", "--replace"],
        &["diff"],
    ] {
        let ran = run_here(arguments).expect(2);
        assert_eq!(ran.out, "");
        assert!(ran.err.contains("Usage:") || ran.err.contains("--help"));
    }
    let help = run_here(&["--help"]).expect(0).out;
    for verb in [
        "get",
        "snapshot",
        "apply",
        "diff",
        "kube",
        "watch",
        "completions",
        "man",
        "--netns",
        "--json",
    ] {
        assert!(help.contains(verb), "{help}");
    }
}

#[test]
fn exits_successfully_when_the_reader_stops() {
    let sandbox = sandbox();
    many_chains(&sandbox, 5000);
    let mut child = sandbox
        .run(|| {
            Command::new(PROGRAM)
                .args(["get", "chains", "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    reader.read_line(&mut first).unwrap();
    assert!(first.contains("\"c0\""), "{first}");
    drop(reader);
    let mut errors = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(errors, "");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let sandbox = sandbox();
    small_ruleset(&sandbox);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let ran: Ran = sandbox
        .run(|| {
            Command::new(PROGRAM)
                .args(["get", "chains"])
                .stdout(full)
                .output()
                .unwrap()
        })
        .unwrap()
        .into();
    let ran = ran.expect(2);
    assert!(
        ran.err
            .contains("cannot write to standard output: No space"),
        "{}",
        ran.err
    );
}
