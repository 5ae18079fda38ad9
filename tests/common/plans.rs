//! Rulesets to plan between, as `nft` takes them, and what a plan says.

use chainwright_testing::Sandbox;

use super::sandbox;
use super::tools::Tools;

/// A sandbox with this ruleset.
pub(crate) fn with(text: &str) -> Sandbox {
    let sandbox = sandbox();
    // nft wants the end of a statement before a brace.
    let text = text.replace(" }", "\n}");
    Tools::new(&sandbox)
        .takes("nft -f -", &text)
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    sandbox
}

/// Without handles and the numbers of operations, which say nothing here.
pub(crate) fn operations(plan: &str) -> Vec<String> {
    let line = |line: &str| {
        let end = line.find(" handle ").or_else(|| line.find(" #"));
        line[..end.unwrap_or(line.len())].to_owned()
    };
    plan.lines().map(line).collect()
}
