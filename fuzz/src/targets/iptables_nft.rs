//! Rules of nf_tables decoded as iptables rules: those that iptables can express are expressed
//! completely.

use chainwright::iptables::nft::{Encoder, Profile, decode};
use chainwright::netlink::Messages;
use chainwright::nft::{self, RuleRef};

use super::{FAMILIES, FakeSetNames, assert_prints_and_parses, listed};
use crate::Target;
use crate::mutate::InputFormat;

/// The target: messages with rules.
pub const TARGET: Target = Target {
    name: "iptables_nft",
    input_format: InputFormat::Messages,
    run,
};

fn run(input: &[u8]) {
    for message in Messages::new(input).flatten() {
        let Ok(view) = RuleRef::parse(&message) else {
            continue;
        };
        let entry = match decode(&view) {
            Ok(entry) => entry,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let Some(family) = FAMILIES
            .into_iter()
            .find(|f| nft::Family::from(*f) == view.family())
        else {
            panic!("a rule of another family is decoded: {view}");
        };
        assert_prints_and_parses(family, &entry.rule);
        let mut rule = entry.rule.clone();
        if rule.resolve_sets(family, &mut FakeSetNames).is_err() {
            continue;
        }
        for profile in [Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10] {
            let mut encoded = nft::Rule::new(view.family(), "t", "c");
            let encoder = Encoder { family, profile };
            // A profile may be unable to represent a rule of another one.
            if encoder.fill(&mut encoded, &rule, entry.counters).is_err() {
                continue;
            }
            let again =
                listed(encoded).unwrap_or_else(|error| panic!("{profile:?}: {error}: {rule}"));
            assert!(
                again.rule.means_the_same(&rule),
                "{profile:?}: {view}\n{rule}\n{}",
                again.rule
            );
            assert_eq!(again.counters, entry.counters);
        }
    }
}
