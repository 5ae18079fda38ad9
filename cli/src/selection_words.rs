//! Options that select tables, before the verb: `chainwright -6 get chains` is `chainwright get chains -6`.

use std::ffi::{OsStr, OsString};

use clap::Command;

/// Options of verbs that may also precede the verb, and whether a value follows.
const SELECTION: [(&str, bool); 8] = [
    ("-4", false),
    ("--ipv4", false),
    ("-6", false),
    ("--ipv6", false),
    ("--family", true),
    ("--backend", true),
    ("--table", true),
    ("-t", true),
];
/// Options of the whole command that have a value.
const GLOBAL: [&str; 2] = ["--netns", "--nft-version"];

/// Returns the number of words of the option at the beginning, and whether it selects tables; `None` if it is no option.
fn option(words: &[OsString]) -> Option<(usize, bool)> {
    let word = words.first()?.as_encoded_bytes();
    if !word.starts_with(b"-") || word == b"--" {
        return None;
    }
    let found = SELECTION.iter().find(|(name, _)| word == name.as_bytes());
    if let Some((_, has_value)) = found {
        return Some((1 + usize::from(*has_value), true));
    }
    // The value in the same word.
    let is_selection = SELECTION.iter().any(|(name, has_value)| {
        let rest = word.strip_prefix(name.as_bytes());
        *has_value && rest.is_some_and(|rest| rest.starts_with(b"=") || *name == "-t")
    });
    let has_value = GLOBAL.iter().any(|name| word == name.as_bytes());
    Some((1 + usize::from(has_value), is_selection))
}

/// Returns the position of the verb among the arguments.
pub(crate) fn verb_position(arguments: &[OsString]) -> Option<usize> {
    let mut position = 1;
    while let Some((count, _)) = option(arguments.get(position..)?) {
        position += count;
    }
    (position < arguments.len()).then_some(position)
}

/// Returns the options that select tables, and the value of `--netns`, wherever they are among the arguments.
pub(crate) fn selection(arguments: &[OsString]) -> (Vec<OsString>, Option<&OsString>) {
    let (mut options, mut netns) = (Vec::new(), None);
    let mut position = 0;
    while position < arguments.len() {
        let rest = &arguments[position..];
        let (count, is_selection) = option(rest).unwrap_or((1, false));
        // The last word is still being written.
        if is_selection && count < rest.len() {
            options.extend_from_slice(&rest[..count]);
        } else if rest[0] == "--netns" && rest.len() > 2 {
            netns = rest.get(1);
        }
        position += count;
    }
    (options, netns)
}

/// Moves options that select tables behind the verb. A verb that does not have the option rejects it there.
pub(crate) fn move_behind_verb(
    mut arguments: Vec<OsString>,
    mut command: &Command,
) -> Vec<OsString> {
    let mut position = 1;
    let mut moved = Vec::new();
    while command.has_subcommands() && position < arguments.len() {
        match option(&arguments[position..]) {
            Some((count, true)) => {
                let end = arguments.len().min(position + count);
                moved.extend(arguments.drain(position..end));
            }
            Some((count, false)) => position += count,
            None => match subcommand(command, &arguments[position]) {
                Some(found) => {
                    command = found;
                    position += 1;
                }
                None => break,
            },
        }
    }
    let position = position.min(arguments.len());
    arguments.splice(position..position, moved);
    arguments
}

fn subcommand<'c>(command: &'c Command, word: &OsStr) -> Option<&'c Command> {
    command.find_subcommand(word)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn options_before_the_verb_are_moved() {
        let command = crate::Command::command();
        for (line, expected) in [
            ("get chains -6", "get chains -6"),
            ("-6 get chains", "get chains -6"),
            ("get -6 chains KUBE-*", "get chains -6 KUBE-*"),
            (
                "--netns x -t nat --family=ip get rules INPUT",
                "--netns x get rules -t nat --family=ip INPUT",
            ),
            ("-tnat --json explain INPUT", "--json explain -tnat INPUT"),
            ("--backend legacy check", "check --backend legacy"),
            ("--netns -6 get chains", "--netns -6 get chains"),
            // Not options of this program.
            ("iptables -t nat -L", "iptables -t nat -L"),
            ("nft -6", "nft -6"),
            // Errors remain errors.
            ("-t", "-t"),
            ("-6", "-6"),
            ("-6 nosuch", "-6 nosuch"),
            ("--table=x --wrong get", "--wrong get --table=x"),
        ] {
            let words = |line: &str| -> Vec<OsString> {
                let words = line.split_whitespace().map(OsString::from);
                [OsString::from("chainwright")]
                    .into_iter()
                    .chain(words)
                    .collect()
            };
            assert_eq!(
                move_behind_verb(words(line), &command),
                words(expected),
                "{line}"
            );
        }
    }
}
