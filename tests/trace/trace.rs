//! Traces of packets through rulesets: the result of each expression, and kube-proxy's services in every mode,
//! compared with their manifests; rulesets of 50,000 chains.

mod kube_proxy;
mod large;
mod semantics;
mod translated;

use chainwright::nft::{Scope, Snapshot};
use chainwright_lang::Script;
use chainwright_testing::FakeKernel;

/// The ruleset that results from a text in nft's language.
#[track_caller]
fn in_memory(text: &str) -> Snapshot {
    let fake = FakeKernel::new();
    let mut nft = fake.connect().unwrap();
    let script = Script::parse("rules.nft", text).unwrap_or_else(|error| panic!("{error}"));
    let change = script
        .transaction(None)
        .unwrap_or_else(|error| panic!("{error}"));
    nft.commit(change.transaction()).unwrap();
    nft.snapshot(Scope::all()).unwrap()
}
