//! The kernel's answers to lookups of sets.

use chainwright::fuzzing::ipset_answer;

use crate::Target;
use crate::mutate::InputFormat;

/// The target: `struct ip_set_req_get_set_family`.
pub const TARGET: Target = Target {
    name: "ipset",
    input_format: InputFormat::Bytes,
    run,
};

fn run(input: &[u8]) {
    let Some((_found, name)) = ipset_answer(input) else {
        assert!(input.len() < 44);
        return;
    };
    if let Some(name) = name {
        assert!(!name.is_empty() && name.len() <= 32 && !name.contains(&0));
    }
}
