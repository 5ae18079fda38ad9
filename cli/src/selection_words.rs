//! Options that select tables, before the verb: `chainwright -6 get chains` is `chainwright get chains -6`.

use std::ffi::OsString;

use clap::{Arg, Args as _, Command};

use crate::scope::Scope;

/// Options that may precede the verb.
pub(crate) struct Options<'c> {
    /// With those of the whole command.
    command: &'c Command,
    /// With those that select tables.
    selection: Command,
}

impl<'c> Options<'c> {
    pub(crate) fn of(command: &'c Command) -> Self {
        let selection = Scope::augment_args(Command::new("selection"));
        Self { command, selection }
    }

    /// Returns the options that select tables.
    pub(crate) fn selection(&self) -> impl Iterator<Item = &Arg> {
        self.selection.get_arguments()
    }

    /// Returns the number of words of the option at the beginning, and the option if it is known; `None` if the first
    /// word is no option.
    pub(crate) fn first(&self, words: &[OsString]) -> Option<(usize, Option<&Arg>)> {
        let word = words.first()?.as_encoded_bytes();
        if !word.starts_with(b"-") || word == b"--" {
            return None;
        }
        let mut known = self.selection().chain(self.command.get_arguments());
        let found = known.find_map(|arg| Some((word_count(arg, word)?, Some(arg))));
        Some(found.unwrap_or((1, None)))
    }

    /// Returns the position of the verb among the arguments.
    pub(crate) fn verb_position(&self, arguments: &[OsString]) -> Option<usize> {
        let mut position = 1;
        while let Some((count, _)) = self.first(arguments.get(position..)?) {
            position += count;
        }
        (position < arguments.len()).then_some(position)
    }

    /// Moves options that select tables behind the verb. A verb that does not have the option rejects it there.
    pub(crate) fn move_behind_verb(&self, mut arguments: Vec<OsString>) -> Vec<OsString> {
        let mut command = self.command;
        let mut position = 1;
        let mut moved = Vec::new();
        while command.has_subcommands() && position < arguments.len() {
            match self.first(&arguments[position..]) {
                Some((count, arg)) if arg.is_some_and(|arg| self.selects_tables(arg)) => {
                    let end = arguments.len().min(position + count);
                    moved.extend(arguments.drain(position..end));
                }
                Some((count, _)) => position += count,
                None => match command.find_subcommand(&arguments[position]) {
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

    fn selects_tables(&self, arg: &Arg) -> bool {
        self.selection().any(|one| one.get_id() == arg.get_id())
    }
}

/// Returns the number of words of the option if the word begins it.
fn word_count(arg: &Arg, word: &[u8]) -> Option<usize> {
    let has_value = arg.get_action().takes_values();
    let rest = match word.strip_prefix(b"--") {
        Some(long) => long.strip_prefix(arg.get_long()?.as_bytes()),
        None => word[1..].strip_prefix(arg.get_short()?.to_string().as_bytes()),
    }?;
    match rest {
        [] => Some(1 + usize::from(has_value)),
        // The value is in the same word.
        [first, ..] if has_value => (*first == b'=' || !word.starts_with(b"--")).then_some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn options_before_the_verb_are_moved() {
        let command = crate::Command::command();
        let options = Options::of(&command);
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
            ("--netns=x -6 get chains", "--netns=x get chains -6"),
            ("--nft-version 1.0 -4 check", "--nft-version 1.0 check -4"),
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
                options.move_behind_verb(words(line)),
                words(expected),
                "{line}"
            );
        }
    }
}
