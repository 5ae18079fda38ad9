//! Measurements: if the measured operation is not the intended one, they return an error and no numbers.

use crate::common::{connect, sandbox};
use chainwright::nft::{Scope, Snapshot};
use chainwright_bench::mirror::{lookups, one_rule};
use chainwright_bench::{Error, KubeProxy};

#[test]
fn chains_without_rules_cannot_be_measured() {
    let ruleset = KubeProxy { chains: 1 };
    let measured = sandbox().run(|| one_rule(ruleset, 1)).unwrap();
    let error = measured.unwrap_err();
    let Some(Error::NoRule(chain)) = error.downcast_ref() else {
        panic!("{error:?}");
    };
    assert_eq!(*chain, ruleset.service_chain(0));
    let measured = sandbox().run(|| one_rule(KubeProxy { chains: 2 }, 1));
    assert_eq!(measured.unwrap().unwrap().contenders.len(), 2);
}

#[test]
fn missing_chains_are_not_measured() {
    let ruleset = KubeProxy { chains: 20 };
    let nothing = lookups(&Snapshot::default(), ruleset, 10, 1);
    assert!(matches!(nothing, Err(Error::NoChain(_))), "{nothing:?}");
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    ruleset.load(&mut nft).unwrap();
    let there = nft.snapshot(Scope::all()).unwrap();
    assert_eq!(lookups(&there, ruleset, 10, 1).unwrap().len(), 2);
}
