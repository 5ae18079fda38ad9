//! A rule's text: a parsed rule prints as text that is parsed to the same, and is encoded for nf_tables so
//! that it is decoded to the same.

use chainwright::iptables::nft::{Encoder, Profile};
use chainwright::iptables::text::{Command, words};
use chainwright::iptables::{Counters, Rule};
use chainwright::nft;

use super::{FAMILIES, FakeSetNames, assert_prints_and_parses, listed};
use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "rule_text",
    input_format: InputFormat::Text,
    run,
};

fn run(input: &[u8]) {
    let mut found = Vec::new();
    let _ = words(input, &mut found);
    for family in FAMILIES {
        for chains in [false, true] {
            if let Ok(command) = Command::parse(family, &found, |_| chains) {
                let _ = format!("{command:?}");
            }
        }
        let rule = match Rule::parse(family, input) {
            Ok(rule) => rule,
            Err(fault) => {
                assert!(
                    fault.column >= 1 && fault.column <= input.len() + 2,
                    "{fault:?}"
                );
                continue;
            }
        };
        assert_prints_and_parses(family, &rule);
        let mut resolved = rule.clone();
        if resolved.resolve_sets(family, &mut FakeSetNames).is_err() {
            continue;
        }
        let counters = Counters {
            packets: 7,
            bytes: u64::MAX,
        };
        for profile in [Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10] {
            let mut encoded = nft::Rule::new(family.into(), "t", "c");
            let encoder = Encoder { family, profile };
            if encoder.fill(&mut encoded, &resolved, counters).is_err() {
                continue;
            }
            match listed(encoded) {
                Ok(entry) => {
                    assert!(
                        entry.rule.means_the_same(&resolved),
                        "{profile:?}: {resolved}\n{}",
                        entry.rule
                    );
                    assert_eq!(entry.counters, counters);
                }
                // Displayed as a native rule, never as another rule.
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
