//! Listing legacy chains, compared with the bare `getsockopt` calls.
//!
//! This bench needs `iptables-legacy-restore` (package `iptables`), which loads the table.
//!
//! `cargo bench --bench legacy [-- CHAINS]`

mod common;

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};

use chainwright::legacy::{Connection, Family, Table};
use chainwright_bench::{KubeProxy, alternate};
use common::{BoxError, Result, in_sandbox, report};

fn main() -> Result {
    let chains = std::env::args()
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(10_000);
    in_sandbox(|| listing(chains))
}

fn restore(text: &str) -> Result {
    let lock = std::env::temp_dir().join(format!("chainwright-bench-{}.lock", std::process::id()));
    let mut child = Command::new("iptables-legacy-restore")
        .env("XTABLES_LOCKFILE", &lock)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("iptables-legacy-restore (apt-get install iptables): {error}"))?;
    child
        .stdin
        .take()
        .ok_or("no pipe")?
        .write_all(text.as_bytes())?;
    let status = child.wait()?;
    let _ = std::fs::remove_file(lock);
    if status.success() {
        Ok(())
    } else {
        Err(format!("iptables-legacy-restore: {status}").into())
    }
}

fn listing(chains: usize) -> Result {
    restore(&KubeProxy { chains }.to_iptables_save())?;
    let legacy = Connection::open(Family::Ipv4)?;
    let (mut baseline_buffer, mut buffer) =
        (Table::empty(Family::Ipv4), Table::empty(Family::Ipv4));
    let measured = alternate::<BoxError>(
        31,
        &mut [
            ("baseline: GET_INFO and GET_ENTRIES", &mut || {
                black_box(legacy.baseline("nat", &mut baseline_buffer)?);
                Ok(())
            }),
            ("read_into(), every chain with its rule count", &mut || {
                let table = legacy
                    .read_into("nat", &mut buffer)?
                    .in_use()
                    .ok_or("the table is not in use")?;
                let mut count = 0;
                for chain in table.chains() {
                    black_box((
                        chain.name(),
                        chain.hook(),
                        chain.policy(),
                        chain.rule_count(),
                    ));
                    count += 1;
                }
                assert_eq!(count, chains / 2 * 2 + 6);
                Ok(())
            }),
        ],
    )?;
    report(&format!("list {chains} legacy chains"), &measured, 1.15);
    Ok(())
}
