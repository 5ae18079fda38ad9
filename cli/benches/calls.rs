//! Measures one call of `iptables` in a table with many rules, as agents make them: through a link to the command, by a
//! process that only makes the requests to the kernel, and by the real program if it is installed. Because a
//! process costs more than the requests, both are measured again within this process.
//!
//! `cargo bench -p chainwright-cli --bench calls [-- SERVICES…]`; 10,000 services are 80,000 rules.

#[path = "../../benches/common/mod.rs"]
mod common;

use std::ffi::OsStr;
use std::hint::black_box;
use std::io::{empty, sink};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainwright::Retry;
use chainwright::iptables::program::{Program, Streams};
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family, Iptables, Rule, nft as encoding};
use chainwright::legacy::LockPolicy;
use chainwright::nft::{self, Transaction};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{Contender, Services, alternate_prepared};
use common::{BoxError, Result, counts, in_sandbox, report};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");
/// The most time of a call, as a multiple of the bare requests.
const GOAL: f64 = 1.5;
const ROUNDS: usize = 101;
/// In legacy tables a call reads all rules, and an addition writes them.
const LEGACY_ROUNDS: usize = 5;
/// With this first argument, this program is the process that makes the bare requests.
const BARE: &str = "bare";

const CHAIN: &str = "CALLS";
/// The rules in the chain, and the rule that a call looks up.
const RULES: usize = 8;
const LOOKED_FOR: &str = "-s 10.0.0.7/32 -p tcp -m tcp --dport 7 -j ACCEPT";
const ADDED: &str = "-s 10.0.0.99/32 -p tcp -m tcp --dport 99 -j ACCEPT";

fn main() -> Result {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, BARE] => return bare_look(),
        [_, BARE, file] => return bare_commit(&std::fs::read(file)?),
        _ => {}
    }
    for services in counts(&[10_000]) {
        let services = Services { services };
        in_sandbox(|| in_nf_tables(services))?;
        in_sandbox(|| in_legacy_tables(services))?;
    }
    Ok(())
}

fn bare_look() -> Result {
    let request = Request::rules_of(nft::Family::IP, Services::TABLE, CHAIN);
    black_box(Baseline::open()?.dump(&request)?);
    Ok(())
}

fn bare_commit(datagram: &[u8]) -> Result {
    Ok(Baseline::open()?.commit(datagram)?)
}

/// The services, and the chain of the calls.
fn load(iptables: &mut Iptables, services: Services) -> Result {
    let whole = RestoreOptions::default();
    iptables.restore(Family::Ipv4, services.to_table(), &whole)?;
    let mut chain = format!("*{}\n:{CHAIN} - [0:0]\n", Services::TABLE);
    for number in 0..RULES {
        chain +=
            &format!("-A {CHAIN} -s 10.0.0.{number}/32 -p tcp -m tcp --dport {number} -j ACCEPT\n");
    }
    chain += "COMMIT\n";
    let more = RestoreOptions {
        noflush: true,
        ..whole
    };
    iptables.restore(Family::Ipv4, &chain, &more)?;
    Ok(())
}

/// The arguments of a call.
fn words(verb: &str, rule: &str) -> Vec<String> {
    format!("-t {} {verb} {CHAIN} {rule}", Services::TABLE)
        .split(' ')
        .map(str::to_owned)
        .collect()
}

/// Runs a program to its end; its exit code must be 0.
fn start<W: AsRef<OsStr>>(program: &Path, words: &[W], lock: &Path) -> Result {
    let status = Command::new(program)
        .args(words)
        .env("XTABLES_LOCKFILE", lock)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {status}", program.display()).into()),
    }
}

/// Makes the same call without a process.
fn call(program: &Program, words: &[String]) -> Result {
    let streams = Streams {
        input: &mut empty(),
        output: &mut sink(),
        errors: &mut sink(),
    };
    match program.run(words, streams, chainwright_lang::translate::for_program) {
        0 => Ok(()),
        code => Err(format!("exit code {code}").into()),
    }
}

/// Returns the path of a real program, if it is installed.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Creates a link of this name to the command.
fn link(directory: &TempDir, name: &str) -> Result<PathBuf> {
    let link = directory.path().join(name);
    symlink(PROGRAM, &link)?;
    Ok(link)
}

/// Returns a transaction that adds a rule to the chain.
fn addition(rule: &Rule) -> Result<Transaction> {
    let rule = encoding::encode(Family::Ipv4, Services::TABLE, CHAIN, rule)?;
    let mut tx = Transaction::new();
    tx.add(&rule)?;
    Ok(tx)
}

fn in_nf_tables(services: Services) -> Result {
    let mut iptables = Iptables::nft()?;
    load(&mut iptables, services)?;
    let directory = TempDir::new()?;
    let ours = link(&directory, "iptables")?;
    let program = Program::named("iptables").ok_or("iptables is a name of the command")?;
    let real = find("iptables-nft");
    let lock = directory.path().join("lock");
    let added = Rule::parse(Family::Ipv4, ADDED)?;
    let bytes = addition(&added)?.datagram(<[u8]>::to_vec);
    let file = directory.path().join("datagram");
    std::fs::write(&file, &bytes)?;
    let this = std::env::current_exe()?;
    let file = file.to_str().ok_or("the path is not UTF-8")?;

    for (verb, rule) in [("-C", LOOKED_FOR), ("-A", ADDED)] {
        let adds = verb == "-A";
        let words = words(verb, rule);
        let bare: &[&str] = if adds { &[BARE, file] } else { &[BARE] };
        // Remove the rules that earlier rounds added.
        let mut prepare = || -> Result {
            iptables.update(Family::Ipv4, Services::TABLE, |table| {
                while adds && table.contains(CHAIN, &added)? {
                    table.delete(CHAIN, &added)?;
                }
                Ok(())
            })?;
            Ok(())
        };
        let mut baseline = || start(&this, bare, &lock);
        let mut by_link = || start(&ours, &words, &lock);
        let mut by_tool = || start(real.as_deref().unwrap_or(&ours), &words, &lock);
        let mut contenders: Vec<Contender<'_, BoxError>> = vec![
            ("baseline: a process with the bare requests", &mut baseline),
            ("chainwright, by a link", &mut by_link),
        ];
        if real.is_some() {
            contenders.push(("iptables-nft", &mut by_tool));
        }
        let measured = alternate_prepared(ROUNDS, &mut prepare, &mut contenders)?;
        let title = |how: &str| {
            format!(
                "iptables {verb} in nf_tables{how}: {} rules",
                services.rules()
            )
        };
        report(&title(""), &measured, GOAL);

        let mut baseline = || match adds {
            true => bare_commit(&bytes),
            false => bare_look(),
        };
        let mut here = || call(&program, &words);
        let measured = alternate_prepared::<BoxError>(
            ROUNDS,
            &mut prepare,
            &mut [
                ("baseline: a socket and the bare requests", &mut baseline),
                ("chainwright", &mut here),
            ],
        )?;
        report(&title(", without the process"), &measured, GOAL);
    }
    Ok(())
}

/// Measures calls in legacy tables, compared with the real program.
fn in_legacy_tables(services: Services) -> Result {
    let Some(real) = find("iptables-legacy") else {
        println!("\niptables-legacy is not installed: nothing to compare with");
        return Ok(());
    };
    let directory = TempDir::new()?;
    let lock = directory.path().join("lock");
    // In a separate namespace.
    let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    load(&mut iptables, services)?;
    let ours = link(&directory, "iptables-legacy")?;
    for (verb, rule) in [("-C", LOOKED_FOR), ("-A", ADDED)] {
        let words = words(verb, rule);
        let measured = alternate_prepared::<BoxError>(
            LEGACY_ROUNDS,
            &mut || Ok(()),
            &mut [
                ("iptables-legacy", &mut || start(&real, &words, &lock)),
                ("chainwright, by a link", &mut || {
                    start(&ours, &words, &lock)
                }),
            ],
        )?;
        let title = format!(
            "iptables {verb} in a legacy table: {} rules",
            services.rules()
        );
        report(&title, &measured, None);
    }
    Ok(())
}
