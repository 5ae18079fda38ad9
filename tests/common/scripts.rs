//! Applies scripts, and compares the result with nft's.

use chainwright::nft::{Connection, PlanOptions, Scope};
use chainwright_lang::{Error, NftVersion, Script};
use chainwright_testing::Sandbox;

use super::rulesets::{Listing, data, diff_listings, directory, listing_in};
use super::{connect, report};

/// Text that nft 1.0.6 turns into something else, its replacement for the comparison (empty: the line is omitted), and
/// why.
const NFT_ERRORS: &[(&str, &str, &str)] = &[
    (
        "tcp dport 22 counter tcp sport 5",
        "",
        "both ports are compared before the counter: packets to another port are not counted",
    ),
    (
        "ip daddr 198.51.100.0/25 dnat prefix to 10.1.0.0/16 persistent",
        "",
        "with a flag the prefix is lost",
    ),
    (
        "\"eth*\" } priority",
        "eth9 } priority",
        "later versions interpret it as a prefix of device names, this one as the name of one device",
    ),
    (
        "fib saddr oifname vmap { \"lan0\" : accept, \"lan1\" : drop }",
        "",
        "the keys are strings of any length, and later versions list no type that they can parse",
    ),
    (
        "fib saddr oifname { \"wan0\", \"wan1\" } accept",
        "",
        "the same",
    ),
];

/// Replaces such text. Returns the result and the number of affected lines.
pub(crate) fn without_known_errors(text: &str) -> (String, usize) {
    let mut count = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let Some((message, instead, _)) = NFT_ERRORS
            .iter()
            .find(|(message, ..)| line.contains(message))
        else {
            return line.to_owned();
        };
        count += 1;
        match *instead {
            "" => String::new(),
            instead => line.replace(message, instead),
        }
    });
    let text = lines.collect();
    (text, count)
}

/// Names of anonymous chains contain numbers, which continue to grow while the kernel runs.
fn nameless(listing: &Listing) -> Listing {
    let nameless = |text: &str| {
        let mut parts = text.split("__chain");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str("__chain");
            out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        out
    };
    Listing {
        text: nameless(&listing.text),
        bytecode: nameless(&listing.bytecode),
    }
}

/// Checks that nft's listings of both are the same.
pub(crate) fn compare(
    real: &Sandbox,
    chainwright: &Sandbox,
    any_order: bool,
) -> Result<(), String> {
    compare_listings(real, chainwright, any_order)?;
    compare_objects(real, chainwright)
}

pub(crate) fn compare_listings(
    real: &Sandbox,
    chainwright: &Sandbox,
    any_order: bool,
) -> Result<(), String> {
    let listed = |sandbox: &Sandbox| nameless(&listing_in(sandbox, any_order));
    diff_listings(&listed(real), &listed(chainwright))
}

/// Whether nft lists the same text for both, whatever the bytecode is.
pub(crate) fn is_same_text(one: &Sandbox, other: &Sandbox) -> bool {
    let text = |sandbox: &Sandbox| nameless(&listing_in(sandbox, false)).text;
    text(one) == text(other)
}

/// Compares what nft does not list: user data, flags, sizes.
pub(crate) fn compare_objects(real: &Sandbox, chainwright: &Sandbox) -> Result<(), String> {
    let snapshot = |sandbox: &Sandbox| {
        connect(sandbox)
            .snapshot(Scope::all())
            .expect("cannot read the ruleset")
    };
    let mut options = PlanOptions::default();
    options.remove_other_tables = true;
    options.remove_dynamic_elements = true;
    let plan = snapshot(chainwright)
        .plan(&snapshot(real), options)
        .map_err(|error| report(&error))?;
    match plan.is_empty() {
        true => Ok(()),
        false => Err(format!("not done:\n{plan}")),
    }
}

/// The instructions of all rules, without the numbers of anonymous sets.
pub(crate) fn instructions(sandbox: &Sandbox) -> Vec<String> {
    let snapshot = connect(sandbox)
        .snapshot(Scope::all())
        .expect("cannot read the ruleset");
    let mut all = Vec::new();
    for table in snapshot.tables() {
        for rule in table
            .chains()
            .flat_map(|chain| chain.rules().collect::<Vec<_>>())
        {
            let text = rule.to_string();
            let (_, text) = text.split_once('\n').unwrap_or_default();
            let mut parts = text.split("__");
            let mut nameless = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let name = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
                nameless += name.trim_start_matches(|c: char| c.is_ascii_digit());
            }
            all.push(format!("{}\n{nameless}", rule.family()));
        }
    }
    all
}

/// Applies a text, with the instructions of nft 1.0.6.
pub(crate) fn apply(sandbox: &Sandbox, nft: &mut Connection, text: &str) -> Result<(), String> {
    let script = Script::parse("rules.nft", text).map_err(|error| error.to_string())?;
    execute(sandbox, nft, script.with_nft_version(NftVersion::V1_0))
}

/// Applies a script.
pub(crate) fn execute(
    sandbox: &Sandbox,
    nft: &mut Connection,
    script: Script,
) -> Result<(), String> {
    let script = script.with_time_zone("UTC").expect("unknown time zone");
    let now = match script.needs_listing() {
        true => Some(nft.snapshot(Scope::all()).expect("cannot read the ruleset")),
        false => None,
    };
    // Interface names refer to the sandbox.
    let change = sandbox
        .run(|| {
            script
                .transaction(now.as_ref())
                .map_err(|error| error.to_string())
        })
        .expect("cannot enter the sandbox")?;
    nft.commit(change.transaction()).map_err(|error| {
        let at: Vec<String> = change
            .explain(&error)
            .iter()
            .map(ToString::to_string)
            .collect();
        format!("{}\n{}", report(&error), at.join("\n"))
    })?;
    Ok(())
}

/// Compares the errors for each text of a file: a text is between a line `=== what it is` and a line `---`, followed by
/// its error. Returns the number of texts. With `CHAINWRIGHT_WRITE_WRONG=1` it writes the actual errors to the file.
pub(crate) fn compare_errors(file: &str, error_for: impl Fn(&str) -> Option<Error>) -> usize {
    let path = directory("data").join(file);
    let text = data(file);
    let mut written = String::new();
    let mut cases = 0;
    let mut differ = Vec::new();
    for case in text.split("=== ").skip(1) {
        let (title, rest) = case.split_once('\n').expect("a case has no title");
        let (input, expected) = rest.split_once("---\n").expect("a case has no line `---`");
        let expected = expected.trim_end();
        let message = match error_for(input.trim_end_matches('\n')) {
            None => "no error is reported".to_owned(),
            Some(error) => error.to_string(),
        };
        if message != expected {
            differ.push(format!("{title}\n{message}\n\nexpected:\n{expected}"));
        }
        written += &format!("=== {title}\n{input}---\n{message}\n\n");
        cases += 1;
    }
    if std::env::var_os("CHAINWRIGHT_WRITE_WRONG").is_some() {
        std::fs::write(&path, written).expect("cannot write the file");
        return cases;
    }
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    assert!(
        !text.contains("no error is reported"),
        "some texts are accepted"
    );
    cases
}
