//! The expressions of a rule: the unchanged list, and every expression in its typed form.

use chainwright::netlink::Attributes;
use chainwright::nft::expr::{Decoded, Expressions};

use crate::Target;
use crate::mutate::InputFormat;

/// The target: the payload of `NFTA_RULE_EXPRESSIONS`.
pub const TARGET: Target = Target {
    name: "nft_expressions",
    input_format: InputFormat::Attributes(0),
    run,
};

fn run(input: &[u8]) {
    let list = Expressions::of_bytes(input);
    let _ = format!("{list:?}");
    let mut raw = Expressions::new();
    let mut count = 0;
    for expression in list.iter() {
        count += 1;
        let Ok(expression) = expression else { break };
        let _ = format!("{expression:?} {:?}", expression.view());
        raw.push_raw(&expression);
        let Ok(decoded) = expression.decode() else {
            continue;
        };
        let _ = format!("{decoded:?} {decoded}");
        // A decoded expression is written so that it is decoded to the same.
        let mut again = Expressions::new();
        again.push_decoded(&decoded);
        match again.iter().next() {
            Some(Ok(other)) => assert_eq!(other.decode().as_ref(), Ok(&decoded)),
            // Too long for one attribute.
            other => assert!(
                other.is_none() || expression.raw.len() > 60_000,
                "{other:?}"
            ),
        }
        if let Ok(json) = serde_json::to_string(&decoded) {
            let other: Decoded<'_> =
                serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
            assert_eq!(serde_json::to_string(&other).unwrap(), json);
        }
    }
    assert!(count <= input.len() / 4 + 1);
    let attributes = Attributes::new(input).map_while(Result::ok).count();
    assert!(raw.iter().map_while(Result::ok).count() <= attributes);
}
