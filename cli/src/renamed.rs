//! The former names of verbs, which this version still accepts.

use std::ffi::OsString;

use crate::output::note;
use crate::selection_words::Options;

/// A former verb, and the words that replace it.
const RENAMED: &[(&str, &str)] = &[
    ("chains", "get chains"),
    ("rules", "get rules"),
    ("sets", "get sets"),
    ("list", "get ruleset"),
    ("save", "get ruleset -o iptables"),
    ("pending", "get pending"),
    ("backup", "snapshot"),
    ("reconcile", "apply --prune"),
    ("rollback", "apply --replace"),
    ("restore", "apply --format iptables"),
    ("cleanup", "delete chains"),
    ("migrate", "convert --in-place"),
    ("translate", "convert"),
    ("doctor", "check"),
    ("detect", "kube status"),
    ("guard", "kube guard"),
    ("kubelet", "kube"),
    ("trace-packets", "watch packets"),
    ("why", "trace --why"),
];

/// Former options of `restore` and `list`, and those that replace them.
const OPTIONS: &[(&str, &[(&str, &str)])] = &[
    (
        "restore",
        &[
            ("-t", "--dry-run"),
            ("-T", "--table"),
            ("--keep-foreign", "--keep"),
        ],
    ),
    ("list", &[("-t", "--terse")]),
];

/// Replaces the former name of a verb, and prints a note with the new one.
pub(crate) fn replace(arguments: Vec<OsString>, options: &Options<'_>) -> Vec<OsString> {
    let renamed = options.verb_position(&arguments).and_then(|position| {
        let verb = arguments[position].to_str()?;
        Some((position, RENAMED.iter().find(|(name, _)| *name == verb)?))
    });
    let Some((position, (name, words))) = renamed else {
        return arguments;
    };
    note(&format!(
        "`{name}` is now `{words}`; the next version will not accept the former name"
    ));
    let former = OPTIONS.iter().find(|(verb, _)| verb == name);
    let former = former.map_or(&[][..], |(_, options)| options);
    let rest = arguments[position + 1..].iter();
    let rest = rest.flat_map(|word| separate(word, former));
    let rest = rest.map(
        |word| match former.iter().find(|(former, _)| word == *former) {
            Some((_, now)) => now.into(),
            None => word,
        },
    );
    let first = arguments[..position].iter().cloned();
    first
        .chain(words.split(' ').map(OsString::from))
        .chain(rest)
        .collect()
}

/// Separates the short options of one word, for instance `-nt`, if one of them is replaced.
fn separate(word: &OsString, options: &[(&str, &str)]) -> Vec<OsString> {
    let letters = word.to_str().and_then(|word| word.strip_prefix('-'));
    let letters = letters.filter(|letters| letters.chars().all(char::is_alphanumeric));
    let separated: Vec<_> = letters
        .unwrap_or_default()
        .chars()
        .map(|letter| format!("-{letter}"))
        .collect();
    match separated
        .iter()
        .any(|option| options.iter().any(|(former, _)| former == option))
    {
        true => separated.into_iter().map(OsString::from).collect(),
        false => vec![word.clone()],
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn former_names_are_replaced() {
        let command = crate::Command::command();
        let options = Options::of(&command);
        let is = |line: &str, expected: &str| {
            let words = replace(line.split(' ').map(OsString::from).collect(), &options);
            assert_eq!(words.join(" ".as_ref()), expected);
        };
        is(
            "chainwright chains --match x",
            "chainwright get chains --match x",
        );
        is(
            "chainwright --netns rules rules -4",
            "chainwright --netns rules get rules -4",
        );
        is(
            "chainwright restore -nt -T nat f",
            "chainwright apply --format iptables -n --dry-run --table nat f",
        );
        is("chainwright list -at", "chainwright get ruleset -a --terse");
        is("chainwright kubelet ensure", "chainwright kube ensure");
        is("chainwright get chains", "chainwright get chains");
        is("chainwright diff list", "chainwright diff list");
        is("chainwright", "chainwright");
    }
}
