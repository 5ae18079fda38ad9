//! Compares listing chains with other Rust libraries, all with the same baseline, in a private network
//! namespace.
//!
//! `cargo run --release -p chainwright-peers [-- CHAINS …]`
//!
//! The comparison includes libraries that implement netlink themselves and whose licences permit
//! linking here: `netlink-bindings` and `nlink`. It excludes `rustables`, which needs libclang to
//! build and is under the GPL.

use std::error::Error;
use std::hint::black_box;

use chainwright::nft::{Connection, Family, Scope};
use chainwright_bench::baseline::{Baseline, Request};
use chainwright_bench::{KubeProxy, alternate};
use chainwright_testing::{Sandbox, become_namespace_root};
use netlink_bindings::nftables::{Nfgenmsg, Request as PeerRequest};
use netlink_socket2::NetlinkSocket;
use nlink::netlink::Nftables;

type BoxError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), BoxError> {
    become_namespace_root()?; // before any thread starts
    let counts: Vec<usize> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let counts = if counts.is_empty() {
        vec![1_000, 10_000]
    } else {
        counts
    };
    for chains in counts {
        Sandbox::new()?.run(|| compare(chains))??;
    }
    Ok(())
}

fn compare(chains: usize) -> Result<(), BoxError> {
    let mut nft = Connection::open()?;
    let ruleset = KubeProxy { chains };
    ruleset.load(&mut nft)?;
    let expected = chains / 2 * 2 + 6;

    let mut baseline = Baseline::open()?;
    let request = Request::chains(Family::IP);
    let mut bindings = NetlinkSocket::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let peer = runtime.block_on(async { nlink::netlink::Connection::<Nftables>::new() })?;

    let check = |count: usize| {
        if count == expected {
            Ok(())
        } else {
            Err(format!("{count} chains instead of {expected}"))
        }
    };
    let measured = alternate::<BoxError>(
        (200_000 / chains).clamp(3, 51),
        &mut [
            ("baseline: replies discarded", &mut || {
                black_box(baseline.dump(&request)?);
                Ok(())
            }),
            ("chainwright", &mut || {
                let mut count = 0;
                nft.chains(Scope::family(Family::IP))?.for_each(|chain| {
                    black_box((chain.table(), chain.name(), chain.handle()));
                    black_box((chain.policy(), chain.chain_type(), chain.references()));
                    count += 1;
                })?;
                Ok(check(count)?)
            }),
            ("netlink-bindings 0.3", &mut || {
                let header = Nfgenmsg {
                    nfgen_family: Family::IP.0,
                    ..Default::default()
                };
                let request = PeerRequest::new().op_getchain_dump(&header);
                let mut replies = bindings.request(&request)?;
                let mut count = 0;
                while let Some(reply) = replies.recv() {
                    let (_, chain) = reply?;
                    let _ = black_box((chain.get_table(), chain.get_name(), chain.get_handle()));
                    let _ = black_box((chain.get_policy(), chain.get_type(), chain.get_use()));
                    count += 1;
                }
                Ok(check(count)?)
            }),
            ("nlink 0.33", &mut || {
                let listed = runtime.block_on(peer.list_chains())?;
                let ours = listed.iter().filter(|chain| chain.table == "nat").count();
                black_box(&listed);
                Ok(check(ours)?)
            }),
        ],
    )?;
    println!(
        "\nlist {chains} chains, with their rules {}",
        ruleset.rules()
    );
    for one in measured {
        println!(
            "  {:<30} {:>10.1?} CPU {:>7.2} × baseline",
            one.name, one.cpu, one.ratio
        );
    }
    Ok(())
}
