//! Measures one query in a large ruleset: the CPU time of a process that lists, looks up or resets one object, as a
//! multiple of the real tool's. A query must not read more than it prints.
//!
//! `cargo bench -p chainwright-cli --bench queries [-- CHAINS]`. The real tools are `nft` and `iptables-nft`, or the
//! programs in the environment: `NFT=/usr/local/sbin/nft IPTABLES=/usr/local/sbin/iptables-nft`.

#[path = "../../benches/common/mod.rs"]
mod common;

use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainwright::nft::Connection;
use chainwright_bench::{Contender, KubeProxy, alternate};
use chainwright_lang::{Options, RunMode, Script};
use common::{BoxError, Result, counts, in_sandbox, loaded, report};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");
/// The most CPU time of a query, as a multiple of the real tool's.
const GOAL: f64 = 1.2;
const ROUNDS: usize = 21;
/// The number of anonymous maps in addition to the named one.
const MAPS: usize = 3_000;

/// Queries of nft; `{chain}` is one of kube-proxy's chains.
const OF_NFT: [&str; 25] = [
    "list tables",
    "-j list tables",
    "list chains",
    "-j list chains",
    "list chain ip nat {chain}",
    "-a list chain ip nat {chain}",
    "-j list chain ip nat {chain}",
    "list chain ip own c",
    "list sets",
    "-t list sets",
    "list maps",
    "list set ip own s",
    "list map ip own m",
    "-j list map ip own m",
    "list sets table ip own",
    "list flowtables",
    "list counters",
    "list counter ip own n",
    "list quotas",
    "list limits",
    "list table ip own",
    "-t list table ip own",
    "get element ip own s { 10.0.0.1 }",
    "reset counter ip own n",
    "describe tcp dport",
];

/// Queries of iptables, in its table nat.
const OF_IPTABLES: [&str; 5] = [
    "-S {chain}",
    "-n -L {chain}",
    "-C {chain} -j ACCEPT",
    "-X MISSING",
    "-F MISSING",
];

/// Verbs of the command, each with the equivalent query of nft.
const OF_VERBS: [(&str, &str); 7] = [
    ("get sets", "list sets"),
    ("get elements s", "list sets"),
    ("get chains", "list chains"),
    ("get chains {chain}", "list chain ip nat {chain}"),
    ("exists --table nat {chain}", "list chain ip nat {chain}"),
    ("get rules {chain}", "list chain ip nat {chain}"),
    ("kube status", "list chains"),
];

fn main() -> Result {
    for chains in counts(&[50_000]) {
        in_sandbox(|| with_many_chains(chains))?;
    }
    in_sandbox(|| {
        load(
            "table ip own { map m { type ipv4_addr : ipv4_addr; elements = { 10.0.0.1 : 10.0.0.2 }; }; }",
        )?;
        let rules: String = (0..MAPS)
            .map(|n| format!("ip daddr 10.0.0.1 tcp dport vmap {{ {n} : accept }}\n"))
            .collect();
        load(&format!("table ip many {{ chain c {{ {rules}; }}; }}"))?;
        let programs = Programs::new()?;
        // For meters, nft reads all rules, in time that grows with the square of their number: here, there are few.
        for words in ["list map ip own m", "list meters"] {
            let title = format!("nft {words}, with {MAPS} anonymous maps");
            programs.measure(&title, "nft", words, words)?;
        }
        Ok(())
    })?;
    in_sandbox(|| {
        let programs = Programs::new()?;
        let title = "nft list tables, without tables";
        programs.measure(title, "nft", "list tables", "list tables")
    })
}

fn load(text: &str) -> Result {
    let script = Script::parse("a ruleset", text)?;
    script.run(
        &mut Connection::open()?,
        RunMode::Commit,
        &Options::default(),
    )?;
    Ok(())
}

/// Measures all queries in a ruleset with this many chains.
fn with_many_chains(chains: usize) -> Result {
    drop(loaded(chains)?);
    load(
        "table ip own {
            set s { type ipv4_addr; elements = { 10.0.0.1, 10.0.0.2 }; }
            map m { type ipv4_addr : ipv4_addr; elements = { 10.0.0.1 : 10.0.0.2 }; }
            counter n { }
            chain c { ip saddr @s ip daddr { 10.0.0.1, 10.0.0.2 } accept; }
        }",
    )?;
    let chain = KubeProxy { chains }.service_chain(chains / 4);
    let programs = Programs::new()?;
    let of = |words: &str| words.replace("{chain}", &chain);
    for words in OF_NFT {
        let title = format!("nft {words}, with {chains} other chains");
        programs.measure(&title, "nft", &of(words), &of(words))?;
    }
    for words in OF_IPTABLES {
        let title = format!("iptables -t nat {words}, with {chains} other chains");
        let words = format!("-t nat {}", of(words));
        programs.measure(&title, "iptables-nft", &words, &words)?;
    }
    for (verb, words) in OF_VERBS {
        let title = format!("chainwright {verb}, with {chains} other chains");
        programs.measure(&title, "chainwright", &of(words), &of(verb))?;
    }
    Ok(())
}

/// The real programs, and links to the command.
struct Programs {
    directory: TempDir,
    nft: PathBuf,
    iptables: PathBuf,
}

impl Programs {
    fn new() -> Result<Self> {
        let directory = TempDir::new()?;
        for name in ["nft", "iptables-nft", "chainwright"] {
            symlink(PROGRAM, directory.path().join(name))?;
        }
        let named =
            |variable, default: &str| env::var_os(variable).unwrap_or(default.into()).into();
        Ok(Self {
            directory,
            nft: named("NFT", "nft"),
            iptables: named("IPTABLES", "iptables-nft"),
        })
    }

    /// Measures the command under this name and the real program, each with its arguments.
    fn measure(&self, title: &str, name: &str, their: &str, our: &str) -> Result {
        let real = match name {
            "iptables-nft" => &self.iptables,
            _ => &self.nft,
        };
        let ours = self.directory.path().join(name);
        let mut by_real = || start(real, their);
        let mut by_ours = || start(&ours, our);
        let mut contenders: [Contender<'_, BoxError>; 2] = [
            ("the real tool", &mut by_real),
            ("chainwright", &mut by_ours),
        ];
        let measured = alternate(ROUNDS, &mut contenders)?;
        report(title, &measured, GOAL);
        Ok(())
    }
}

/// Runs a program to its end. Exit code 1 is a valid result, too: the object does not exist.
fn start(program: &Path, words: &str) -> Result {
    let status = Command::new(program)
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(format!("{} {words}: {status}", program.display()).into()),
    }
}
