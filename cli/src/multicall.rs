//! Links to this program with the alternative name of a verb. Links with the names of iptables' programs, whose
//! arguments are not those of verbs, are in `programs`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::renamed;
use crate::selection_words::Options;

/// A program that this one can replace: a link with its name runs this verb.
struct Program {
    name: &'static str,
    verb: &'static str,
    /// Its exit code for invalid arguments.
    usage_exit_code: u8,
}

/// One line per name.
const PROGRAMS: &[Program] = &[Program {
    name: "nft",
    verb: "nft",
    usage_exit_code: 1,
}];

/// The arguments of this program.
pub(crate) struct Invocation {
    /// With the name of the verb, if a link was used.
    pub(crate) arguments: Vec<OsString>,
    /// The exit code for invalid arguments.
    pub(crate) usage_exit_code: u8,
}

/// The exit code of this program's own verbs for invalid arguments.
const USAGE_EXIT_CODE: u8 = 2;

impl Invocation {
    pub(crate) fn with(mut arguments: Vec<OsString>, command: &clap::Command) -> Self {
        let options = Options::of(command);
        let file = |path: &OsString| Path::new(path).file_name().map(OsStr::to_owned);
        let name = arguments.first().and_then(file).unwrap_or_default();
        let link = PROGRAMS.iter().find(|program| name == program.name);
        match link {
            Some(program) => {
                arguments.splice(..1, ["chainwright".into(), program.verb.into()]);
            }
            None => arguments = options.move_behind_verb(renamed::replace(arguments, &options)),
        }
        let program = link.or_else(|| {
            let verb = &arguments[options.verb_position(&arguments)?];
            PROGRAMS.iter().find(|program| verb == program.verb)
        });
        Self {
            usage_exit_code: program.map_or(USAGE_EXIT_CODE, |program| program.usage_exit_code),
            arguments,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn with(words: &[&str]) -> (String, u8) {
        let words = words.iter().map(OsString::from).collect();
        let called = Invocation::with(words, &crate::Command::command());
        let words: Vec<_> = called
            .arguments
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        (words.join(" "), called.usage_exit_code)
    }

    #[test]
    fn links_are_verbs() {
        let is = |words: &[&str], line: &str, usage_exit_code| {
            assert_eq!(with(words), (line.to_owned(), usage_exit_code));
        };
        is(
            &["/usr/sbin/nft", "-a", "list", "ruleset"],
            "chainwright nft -a list ruleset",
            1,
        );
        is(&["nft"], "chainwright nft", 1);
        is(&["chainwright", "nft", "--foo"], "chainwright nft --foo", 1);
        is(
            &["chainwright", "--netns", "x", "nft", "-z"],
            "chainwright --netns x nft -z",
            1,
        );
        is(
            &["chainwright", "list", "-x", "nft"],
            "chainwright get ruleset -x nft",
            2,
        );
        is(&["nft2", "-x"], "nft2 -x", 2);
        is(&[], "", 2);
    }
}
