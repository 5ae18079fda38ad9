//! Restoring and saving a kube-proxy's table, in nf_tables and in the legacy tables, compared with
//! the kernel's time alone: the same bytes prepared beforehand, or the replies discarded.
//!
//! `cargo bench --bench restore [-- SERVICES [nft|legacy|save]…]`; 10,000 services are 80,000 rules.

mod common;

use chainwright_bench::Services;
use chainwright_bench::iptables::{Comparison, restore_legacy, restore_nft, save_legacy, save_nft};
use common::{Result, counts, in_sandbox, report};

fn main() -> Result {
    let wanted = |what: &str| {
        let mut parts = std::env::args()
            .skip(1)
            .filter(|argument| ["nft", "legacy", "save"].contains(&argument.as_str()));
        let mut parts = parts.by_ref().peekable();
        parts.peek().is_none() || parts.any(|part| part == what)
    };
    for services in counts(&[10_000]) {
        let services = Services { services };
        let rounds = (50_000 / services.services.max(1)).clamp(5, 31);
        let show = |all: Vec<Comparison>| {
            for one in all {
                let title = format!("{}: {} rules", one.measured, services.rules());
                report(&title, &one.contenders, one.goal);
            }
        };
        if wanted("nft") {
            in_sandbox(|| {
                show(restore_nft(services, rounds)?);
                Ok(())
            })?;
        }
        if wanted("legacy") {
            in_sandbox(|| {
                show(restore_legacy(services, rounds * 2)?);
                Ok(())
            })?;
        }
        if wanted("save") {
            in_sandbox(|| {
                show(vec![save_nft(services, rounds)?]);
                Ok(())
            })?;
            in_sandbox(|| {
                show(vec![save_legacy(services, rounds * 2)?]);
                Ok(())
            })?;
        }
    }
    Ok(())
}
