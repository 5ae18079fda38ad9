//! Rulesets for plans, in `nft`'s language, and the text of plans.

use chainwright_testing::Sandbox;

use super::sandbox;
use super::tools::Tools;

/// Creates a sandbox with this ruleset.
pub(crate) fn with(text: &str) -> Sandbox {
    let sandbox = sandbox();
    // nft requires the end of a statement before a brace.
    let text = text.replace(" }", "\n}");
    Tools::new(&sandbox)
        .takes("nft -f -", &text)
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    sandbox
}

/// Removes handles and the numbers of operations, which do not matter here.
pub(crate) fn operations(plan: &str) -> Vec<String> {
    let line = |line: &str| {
        let end = line.find(" handle ").or_else(|| line.find(" #"));
        line[..end.unwrap_or(line.len())].to_owned()
    };
    plan.lines().map(line).collect()
}
