//! User-space instructions per listed chain and per decoded rule, counted by valgrind's callgrind
//! (package `valgrind`).
//!
//! Unlike a time, the count is the same on a busy machine. It excludes the kernel. For chains it covers
//! a whole listing: requests, datagrams, messages, and every base attribute of each chain. For rules it
//! covers an iteration over a snapshot that was read before: every rule, and every expression of each
//! in its typed form.
//!
//! `cargo bench --bench instructions [-- CHAINS]`

mod common;

use std::hint::black_box;
use std::io::BufRead;
use std::process::Command;

use chainwright::Retry;
use chainwright::iptables::text::{RestoreOptions, SaveOptions};
use chainwright::iptables::{Family as Ip, Iptables};
use chainwright::legacy::LockPolicy;
use chainwright::nft::{Connection, Family, Scope, Snapshot};
use chainwright_bench::{KubeProxy, Services};
use common::{Result, in_sandbox, loaded, read, verdict};

/// A measured operation.
struct Case {
    /// The operation and its implementation.
    name: &'static str,
    /// The function whose instructions are counted.
    function: &'static str,
    /// The divisor of the count: a noun, and the number of these items.
    unit: (&'static str, fn(KubeProxy) -> usize),
    goal: Option<f64>,
}

const CHAINS: (&str, fn(KubeProxy) -> usize) = ("chain", |ruleset| ruleset.chains + 6);
const RULES: (&str, fn(KubeProxy) -> usize) = ("rule", KubeProxy::rules);

const TEXT_RULES: (&str, fn(KubeProxy) -> usize) = ("rule", |ruleset| services(ruleset).rules());

/// The number of services with about as many chains.
const fn services(ruleset: KubeProxy) -> Services {
    Services {
        services: ruleset.chains / 3,
    }
}

const CASES: [Case; 8] = [
    Case {
        name: "list chains by for_each()",
        function: "counted_for_each",
        unit: CHAINS,
        goal: Some(200.0), // the best peer needs 1,560
    },
    Case {
        name: "list chains by next()",
        function: "counted_next",
        unit: CHAINS,
        goal: None,
    },
    Case {
        name: "decode every expression of a snapshot by view()",
        function: "counted_view",
        unit: RULES,
        goal: Some(900.0),
    },
    Case {
        name: "decode every expression of a snapshot by decode()",
        function: "counted_decode",
        unit: RULES,
        goal: None,
    },
    Case {
        name: "restore a text into nf_tables",
        function: "counted_restore_nft",
        unit: TEXT_RULES,
        goal: None,
    },
    Case {
        name: "save it from nf_tables",
        function: "counted_save_nft",
        unit: TEXT_RULES,
        goal: None,
    },
    Case {
        name: "restore a text into a legacy table",
        function: "counted_restore_legacy",
        unit: TEXT_RULES,
        goal: None,
    },
    Case {
        name: "save it from the legacy table",
        function: "counted_save_legacy",
        unit: TEXT_RULES,
        goal: None,
    },
];

fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--counted") {
        let chains = arguments.next().ok_or("--counted CHAINS")?.parse()?;
        return in_sandbox(|| {
            let mut nft = loaded(chains)?;
            assert_eq!(counted_for_each(&mut nft)?, chains + 6);
            assert_eq!(counted_next(&mut nft)?, chains + 6);
            let snapshot = nft.snapshot(Scope::all())?;
            assert_eq!(counted_view(&snapshot)?, KubeProxy { chains }.rules());
            assert_eq!(counted_decode(&snapshot)?, KubeProxy { chains }.rules());
            let text = services(KubeProxy { chains }).to_table();
            let rules = services(KubeProxy { chains }).rules();
            let mut iptables = Iptables::nft()?;
            // The first time is not counted: one-time initialization does not belong to a rule.
            iptables.restore(IPV4, &text, &RestoreOptions::default())?;
            assert_eq!(counted_restore_nft(&mut iptables, &text)?, rules);
            assert!(counted_save_nft(&mut iptables)? >= rules);
            // No lock is needed in a private namespace.
            let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
            iptables.restore(IPV4, &text, &RestoreOptions::default())?;
            assert_eq!(counted_restore_legacy(&mut iptables, &text)?, rules);
            assert!(counted_save_legacy(&mut iptables)? >= rules);
            Ok(())
        });
    }
    let chains: usize = std::iter::once(first)
        .flatten()
        .chain(arguments)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    for case in CASES {
        let total = count(chains, case.function)?;
        let (unit, number) = case.unit;
        let each = total as f64 / number(KubeProxy { chains }) as f64;
        let verdict = case
            .goal
            .map_or_else(String::new, |goal| verdict(each, goal));
        println!(
            "{} ({chains} chains): {each:.1} user instructions a {unit}{verdict}",
            case.name
        );
    }
    Ok(())
}

/// Counts the instructions of a function of this program while it runs.
fn count(chains: usize, function: &str) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            &format!("--toggle-collect=*{function}*"),
        ])
        .arg(std::env::current_exe()?)
        .args(["--counted", &chains.to_string()])
        .output()
        .map_err(|error| format!("valgrind (apt-get install valgrind): {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let total = report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    Ok(total.ok_or_else(|| format!("no count in valgrind's report:\n{report}"))?)
}

#[inline(never)]
fn counted_for_each(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    nft.chains(Scope::family(Family::IP))?.for_each(|chain| {
        read(&chain);
        count += 1;
    })?;
    Ok(count)
}

#[inline(never)]
fn counted_next(nft: &mut Connection) -> Result<usize> {
    let mut count = 0;
    let mut chains = nft.chains(Scope::family(Family::IP))?;
    while let Some(chain) = chains.try_next()? {
        read(&chain);
        count += 1;
    }
    Ok(count)
}

#[inline(never)]
fn counted_view(snapshot: &Snapshot) -> Result<usize> {
    let mut count = 0;
    for table in snapshot.tables() {
        for chain in table.chains() {
            for rule in chain.rules() {
                if let Some(expressions) = rule.expressions() {
                    for expression in expressions {
                        // By reference, without a move: a caller's `match` moves only the parts that it
                        // takes out.
                        let view = expression?.view();
                        black_box(&view);
                        if let Err(malformed) = view {
                            return Err(malformed.into());
                        }
                    }
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

#[inline(never)]
fn counted_decode(snapshot: &Snapshot) -> Result<usize> {
    let mut count = 0;
    for table in snapshot.tables() {
        for chain in table.chains() {
            for rule in chain.rules() {
                if let Some(expressions) = rule.expressions() {
                    for expression in expressions {
                        black_box(expression?.decode()?);
                    }
                }
                count += 1;
            }
        }
    }
    Ok(count)
}

const IPV4: Ip = Ip::Ipv4;

#[inline(never)]
fn counted_restore_nft(iptables: &mut Iptables, text: &str) -> Result<usize> {
    Ok(iptables
        .restore(IPV4, text, &RestoreOptions::default())?
        .rules)
}

#[inline(never)]
fn counted_restore_legacy(iptables: &mut Iptables, text: &str) -> Result<usize> {
    let restored = iptables.restore(IPV4, text, &RestoreOptions::default())?;
    Ok(black_box(restored.rules))
}

#[inline(never)]
fn counted_save_nft(iptables: &mut Iptables) -> Result<usize> {
    let mut text = Vec::new();
    let tables = iptables.read(IPV4, &[Services::TABLE])?;
    assert!(tables.save(SaveOptions::default(), &mut text)?.is_none());
    Ok(text.lines().count())
}

#[inline(never)]
fn counted_save_legacy(iptables: &mut Iptables) -> Result<usize> {
    let mut text = Vec::new();
    let tables = iptables.read(IPV4, &[Services::TABLE])?;
    assert!(tables.save(SaveOptions::default(), &mut text)?.is_none());
    Ok(black_box(text.lines().count()))
}
