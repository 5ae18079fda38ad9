//! `cargo bench -p chainwright-example-benchmark`, as root or as a user without privileges: the chains are
//! in a private network namespace. To run each once, as a check: `cargo test -p
//! chainwright-example-benchmark`.

use std::hint::black_box;

use chainwright::nft::Connection;
use chainwright_bench::KubeProxy;
use chainwright_example_benchmark::services;
use chainwright_testing::{Sandbox, become_namespace_root};
use criterion::{BenchmarkId, Criterion};

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    become_namespace_root()?; // before any thread starts
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("services");
    for chains in [100, 1_000, 10_000] {
        let sandbox = Sandbox::new()?;
        let mut nft = sandbox.run(Connection::open)??; // usable from any namespace
        KubeProxy { chains }.load(&mut nft)?;
        assert!(services(&mut nft)? > 0);
        group.bench_function(BenchmarkId::from_parameter(chains), |bencher| {
            bencher.iter(|| black_box(services(&mut nft)));
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
