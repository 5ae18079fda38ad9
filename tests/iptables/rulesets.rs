//! Complete rulesets of real clients, restored and saved by the library and by the real tools.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::accounting::prepared;
use crate::common::rules::in_first_user_namespace;
use crate::common::tools::{Tools, pieces};
use crate::common::{report, sandbox};
use chainwright::Retry;
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Backend, Error, Family, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::netlink;
use chainwright::xt::Names;
use chainwright_testing::Sandbox;

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read_to_string(path.join(name)).unwrap()
}

/// Opens a handle that writes rules in the default encoding.
fn open(sandbox: &Sandbox, backend: Backend) -> Iptables {
    crate::common::iptables::open(sandbox, backend).with_profile(Profile::default())
}

/// Restores a text with its counters; in pieces, if it is too long for a transaction of a user without
/// privileges.
fn restore(iptables: &mut Iptables, text: &str) {
    let options = RestoreOptions {
        counters: true,
        ..RestoreOptions::default()
    };
    match iptables.restore(Family::Ipv4, text, &options) {
        Ok(restored) => assert!(restored.rules > 20, "{restored:?}"),
        Err(Error::Commit(error))
            if matches!(error.source, Some(netlink::Error::TooLarge { .. })) =>
        {
            let options = RestoreOptions {
                noflush: true,
                ..options
            };
            for piece in pieces(text) {
                iptables.restore(Family::Ipv4, piece, &options).unwrap();
            }
        }
        Err(error) => panic!("{}", report(&error)),
    }
}

fn save(iptables: &mut Iptables) -> String {
    let mut text = Vec::new();
    let tables = iptables.read(Family::Ipv4, &[]).unwrap();
    let omissions = tables.save(SaveOptions { counters: true }, &mut text);
    assert!(omissions.unwrap().is_none());
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The tables of a text, sorted by name: backends list them in different orders.
fn tables(text: &str) -> Vec<String> {
    let mut tables: Vec<_> = text
        .split_inclusive("COMMIT\n")
        .map(|table| table.trim_start_matches(|c| c != '*').to_owned())
        .collect();
    tables.sort();
    tables
}

fn rules(text: &str) -> usize {
    text.lines().filter(|line| line.contains("-A ")).count()
}

fn saves_match_the_real_tool(name: &str, backend: Backend) {
    let tool = match backend {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    };
    let original = data(name);
    let (chainwright, real) = (prepared(), prepared());
    restore(&mut open(&chainwright, backend), &original);
    let tools = Tools::new(&real);
    match backend {
        Backend::Nft => tools.load_iptables_nft(&original),
        Backend::Legacy => {
            drop(tools.run_with("iptables-legacy-restore --counters", &original));
        }
    }
    let line = format!("iptables-{tool}-save -c");
    let expected = tables(&tools.save(&line));
    assert_eq!(rules(&expected.concat()), rules(&original));
    assert!(
        tables(&Tools::new(&chainwright).save(&line)) == expected,
        "{name}: the real save of what the library restored differs"
    );
    assert!(
        tables(&save(&mut open(&real, backend))) == expected,
        "{name}: the library's save of what the real tool restored differs"
    );
    // The restored tables are those of the text, except for the order of chains and rules.
    let without_counters = |text: &str| {
        let line = |line: &str| {
            let line = line
                .strip_prefix('[')
                .and_then(|l| l.split_once("] "))
                .map_or(line, |(_, l)| l);
            line.to_owned()
        };
        let mut lines: Vec<_> = text
            .lines()
            .filter(|l| l.contains("-A "))
            .map(line)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(
        without_counters(&original),
        without_counters(&expected.concat())
    );
}

#[test]
fn kube_proxy_1_20_in_nf_tables() {
    saves_match_the_real_tool("kube-proxy-1.20-300-services.save", Backend::Nft);
    saves_match_the_real_tool("kube-proxy-1.20-4-services.save", Backend::Nft);
}

#[test]
fn kube_proxy_1_20_in_legacy_tables() {
    saves_match_the_real_tool("kube-proxy-1.20-300-services.save", Backend::Legacy);
    saves_match_the_real_tool("kube-proxy-1.20-4-services.save", Backend::Legacy);
}

#[test]
fn kube_proxy_1_36_in_nf_tables() {
    saves_match_the_real_tool("kube-proxy-1.36-iptables.save", Backend::Nft);
}

#[test]
fn kube_proxy_1_36_in_legacy_tables() {
    saves_match_the_real_tool("kube-proxy-1.36-iptables.save", Backend::Legacy);
}

/// Names given by a program are used for reading and writing text, and nowhere else.
#[test]
fn custom_names_are_used() {
    let names = Names::none()
        .with_protocol("mine", 253)
        .with_service("web", "tcp", 8080)
        .with_user("agent", 990);
    let names = Arc::new(names);
    // The kernel accepts users only in the initial user namespace.
    let [named, numbered] = match in_first_user_namespace() {
        true => [" -m owner --uid-owner agent", " -m owner --uid-owner 990"],
        false => [""; 2],
    };
    let text = &format!(
        "*filter\n-A INPUT -p mine -j ACCEPT\n\
         -A OUTPUT -p tcp -m tcp --dport web{named} -j ACCEPT\nCOMMIT\n"
    );
    for backend in [Backend::Nft, Backend::Legacy] {
        let (chainwright, real) = sandbox()
            .run(|| {
                let open = || {
                    let iptables = Iptables::open(backend).unwrap();
                    iptables.with_lock(LockPolicy::None, Retry::ONCE)
                };
                let options = RestoreOptions::default();
                let error = open().restore(Family::Ipv4, text, &options).unwrap_err();
                assert!(error.to_string().contains("`mine`"), "{error}");
                let mut iptables = open().with_names(names.clone());
                iptables.restore(Family::Ipv4, text, &options).unwrap();
                [iptables, open()].map(|mut iptables| {
                    let mut saved = Vec::new();
                    let tables = iptables.read(Family::Ipv4, &["filter"]).unwrap();
                    let omissions = tables.save(SaveOptions::default(), &mut saved).unwrap();
                    assert_eq!(omissions.rules, 0);
                    String::from_utf8(saved).unwrap()
                })
            })
            .unwrap()
            .into();
        let output = format!("-A OUTPUT -p tcp -m tcp --dport 8080{numbered} -j ACCEPT\n");
        assert!(
            chainwright.contains("-A INPUT -p mine -j ACCEPT\n"),
            "{chainwright}"
        );
        assert!(chainwright.contains(&output), "{chainwright}");
        assert!(real.contains("-A INPUT -p 253 -j ACCEPT\n"), "{real}");
    }
}
