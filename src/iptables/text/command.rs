//! A command of `iptables`, as in a line of `iptables-restore`: an operation on a chain,
//! and a rule.
//!
//! | step | where |
//! |---|---|
//! | split words into options of the command or of extensions | `parser.rs` |
//! | interpret the main options; build the rule | `main_options.rs` |
//! | interpret options of the program only: the table, listings | `command_line.rs` |
//! | names and addresses | `names.rs` |

mod command_line;
mod main_options;
mod names;
mod parser;

pub(in crate::iptables) use command_line::{CommandLineOptions, Listing, Wait};
pub(super) use names::chain_name;

use std::cell::RefCell;

use bstr::{BStr, BString};

use super::{ParseError, Word};
use crate::iptables::KnownDifference;
use crate::iptables::{Address, Counters, Rule};
use crate::xt::{self, Family, GivenOption, Names, OptionSpec, Spec, TruncatedText};

/// Differences from iptables in parsing lines.
pub(in crate::iptables) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "host names (`-s localhost`)",
        iptables: "looks them up",
        chainwright: "refuses them",
        reason: "A rule holds addresses, and those of a name change; a lookup can hang or return wrong ones.",
    },
    KnownDifference {
        subject: "a comment, or a prefix of LOG or NFLOG, that is too long",
        iptables: "truncates it silently",
        chainwright: "truncates it at the same place with a warning; `Rule::parse` refuses it",
        reason: "A rule should not silently differ from its text.",
    },
    KnownDifference {
        subject: "`-c 5x,6`, `-c -1 3`",
        iptables: "accepts the leading digits",
        chainwright: "refuses it",
        reason: "It is a typo, and counters are used for accounting.",
    },
    KnownDifference {
        subject: "the length of a line",
        iptables: "at most 254 words, none of 1,024 bytes or more",
        chainwright: "1 MiB, and any number of words",
        reason: "Lines that chainwright saves can be longer.",
    },
    KnownDifference {
        subject: "`-s a,b,… -d c,d,…`",
        iptables: "creates a rule for each pair",
        chainwright: "the same, at most 65,536 per line, and at most 262,144 more rules than lines in a text",
        reason: "A short text must not create an unbounded number of rules.",
    },
];

/// The operation of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// `-A`: appends the rule to the chain.
    Append,
    /// `-I`: inserts the rule at this number, from 1.
    Insert(usize),
    /// `-D`: deletes the first such rule.
    Delete,
    /// `-D CHAIN NUMBER`: deletes the rule with this number, from 1.
    DeleteNumber(usize),
    /// `-R`: replaces the rule with this number, from 1.
    Replace(usize),
    /// `-C`: checks that such a rule exists.
    Check,
    /// `-N`: creates the chain.
    NewChain,
    /// `-X`: deletes the chain; without one, all chains except the built-in ones.
    DeleteChain,
    /// `-F`: deletes all the chain's rules; without one, those of all chains.
    Flush,
    /// `-Z`: sets counters to 0: the chain's, those of its rule with this number, or all.
    Zero(Option<usize>),
    /// `-P`: sets the chain's policy.
    Policy(BString),
    /// `-E`: renames the chain to this name.
    RenameChain(BString),
}

impl Verb {
    const fn takes_rule(&self) -> bool {
        matches!(
            self,
            Self::Append | Self::Insert(_) | Self::Delete | Self::Replace(_) | Self::Check
        )
    }
}

/// The rule of a command: several rules, if it has several addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSpec {
    /// The rule, with the first source and destination.
    pub rule: Rule,
    /// The other sources.
    pub more_sources: Vec<Address>,
    /// The other destinations.
    pub more_destinations: Vec<Address>,
    /// `-c`
    pub counters: Option<Counters>,
    /// Texts that were too long and were truncated like in iptables.
    pub truncated: Vec<TruncatedText>,
}

impl RuleSpec {
    /// Resets it to an empty rule, and keeps its memory.
    fn clear(&mut self) {
        let Self {
            rule,
            more_sources,
            more_destinations,
            counters,
            truncated,
        } = self;
        rule.clear();
        more_sources.clear();
        more_destinations.clear();
        *counters = None;
        truncated.clear();
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn number(&self) -> usize {
        (self.more_sources.len() + 1).saturating_mul(self.more_destinations.len() + 1)
    }

    /// Returns the rules: one for each pair of addresses.
    pub fn rules(self) -> impl Iterator<Item = Rule> {
        let Self {
            rule,
            more_sources,
            more_destinations,
            ..
        } = self;
        let all = |first: Option<Address>, more: Vec<Address>| {
            std::iter::once(first)
                .chain(more.into_iter().map(Some))
                .collect::<Vec<_>>()
        };
        let sources = all(rule.source, more_sources);
        let destinations = all(rule.destination, more_destinations);
        let pairs = sources
            .into_iter()
            .flat_map(move |source| destinations.clone().into_iter().map(move |d| (source, d)));
        pairs.map(move |(source, destination)| Rule {
            source,
            destination,
            ..rule.clone()
        })
    }
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub verb: Verb,
    /// The chain; `None` for all of them.
    pub chain: Option<BString>,
    /// The rule; empty unless the verb has one.
    pub spec: RuleSpec,
    /// Whether `-4` or `-6` selects the other family, so that the command must be skipped. The words
    /// after it are not parsed, since their addresses may be of the other family, and the verb is
    /// one that changes nothing.
    pub for_other_family: bool,
}

impl Command {
    /// Parses a command from a line's words. `is_chain` returns whether the table has a chain of that name; `-j` then
    /// refers to the chain even if an extension has the same name.
    ///
    /// # Errors
    /// The first error.
    pub fn parse(
        family: Family,
        words: &[Word<'_>],
        is_chain: impl Fn(&BStr) -> bool,
    ) -> Result<Self, ParseError> {
        let mut command = Self::none();
        let line_options = &mut LineOptions::default();
        command.read(
            line_options,
            family,
            true,
            &Names::system(),
            words,
            &is_chain,
        )?;
        Ok(command)
    }

    /// Creates a command that changes nothing.
    pub(in crate::iptables) fn none() -> Self {
        Self {
            verb: Verb::Check,
            chain: None,
            spec: RuleSpec::default(),
            for_other_family: false,
        }
    }

    /// Parses another command, reusing the memory of this one. `native_log` is that of [`Context`].
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse); the command then does nothing.
    pub(super) fn read(
        &mut self,
        line_options: &mut LineOptions<'static>,
        family: Family,
        native_log: bool,
        names: &Names,
        words: &[Word<'_>],
        is_chain: &dyn Fn(&BStr) -> bool,
    ) -> Result<(), ParseError> {
        self.verb = Verb::Check;
        self.spec.clear();
        let mut parser = Parser::new(family, names, words, is_chain, &mut self.spec);
        parser.last_chain = self.chain.take();
        parser.native_log = native_log;
        parser.truncated = Some(RefCell::default());
        parser.line_options = std::mem::take(line_options);
        let result = parser.parse();
        self.for_other_family = parser.for_other_family;
        *line_options = parser.line_options.cleared();
        (self.verb, self.chain) = result?;
        Ok(())
    }
}

impl Rule {
    /// Parses a rule from its options, as they follow `-A CHAIN`.
    ///
    /// ```
    /// use chainwright::iptables::{Family, Rule};
    ///
    /// let rule = Rule::parse(Family::Ipv4, "-m mark --mark 0x8000/0x8000 -j DROP")?;
    /// assert_eq!(rule.to_string(), "-m mark --mark 0x8000/0x8000 -j DROP");
    /// # Ok::<(), chainwright::iptables::text::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// The first error; also more than one address after `-s` or `-d`, and texts that
    /// iptables would truncate.
    pub fn parse(family: Family, options: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        Self::parse_with(family, options, &Names::system())
    }

    /// Like [`parse`](Self::parse), with other names of protocols, services, users, … than the system's.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse).
    pub fn parse_with(
        family: Family,
        options: impl AsRef<[u8]>,
        names: &Names,
    ) -> Result<Self, ParseError> {
        let mut found = Vec::new();
        super::words(options.as_ref(), &mut found)?;
        let mut spec = RuleSpec::default();
        let mut parser = Parser::new(family, names, &found, &|_| false, &mut spec);
        parser.options()?;
        let end = parser.end();
        if parser.for_other_family {
            return Err(ParseError::new(end, "this rule is for the other family"));
        }
        if let Some((_, column)) = parser.verb {
            return Err(ParseError::new(column, "expected a rule without a command"));
        }
        parser.rule()?;
        if !spec.more_sources.is_empty() || !spec.more_destinations.is_empty() {
            return Err(ParseError::new(
                end,
                "a rule has one source and one destination",
            ));
        }
        Ok(spec.rule)
    }
}

/// An extension used by a line.
struct LineExtension {
    which: ExtensionSpec,
    /// The name in the line.
    name: &'static str,
    options: &'static [OptionSpec],
    column: usize,
}

/// The extensions of a line and their options.
#[derive(Default)]
pub(super) struct LineOptions<'a> {
    extensions: Vec<LineExtension>,
    /// Indexes of the extensions with distinct options: the last of several with the same options.
    /// This keeps the search for an option fast in a long line.
    distinct: Vec<usize>,
    /// The extensions' options, in the order of the line.
    given: Vec<GivenOption<'a>>,
    /// The extension and columns of each option.
    origins: Vec<OptionOrigin>,
}

impl LineOptions<'_> {
    /// Empties the lists, and keeps their memory.
    fn cleared<'b>(mut self) -> LineOptions<'b> {
        self.extensions.clear();
        self.distinct.clear();
        self.origins.clear();
        LineOptions {
            extensions: self.extensions,
            distinct: self.distinct,
            // Collecting reuses the memory.
            given: self.given.into_iter().map_while(|_| None).collect(),
            origins: self.origins,
        }
    }
}

impl<'a> LineOptions<'a> {
    /// Sorts the options by extension. Usually they are
    /// already sorted.
    fn sort(&mut self) {
        if self.origins.is_sorted_by_key(|origins| origins.extension) {
            return;
        }
        let all = self.origins.drain(..).zip(self.given.drain(..));
        let mut all: Vec<(OptionOrigin, GivenOption<'a>)> = all.collect();
        all.sort_by_key(|(origins, _)| origins.extension);
        (self.origins, self.given) = all.into_iter().unzip();
    }
}

/// The extension of an option, and its columns.
struct OptionOrigin {
    /// Index of its extension in the line.
    extension: usize,
    /// Columns of the option and its values.
    columns: [usize; 3],
}

#[derive(Clone, Copy)]
enum ExtensionSpec {
    Match(&'static Spec<xt::Match>),
    Target(&'static Spec<xt::Target>),
}

struct Parser<'p, 'a> {
    family: Family,
    words: &'p [Word<'a>],
    at: usize,
    is_chain: &'p dyn Fn(&BStr) -> bool,
    verb: Option<(Verb, usize)>,
    chain: Option<BString>,
    /// The chain of the previous line, which has a valid name. This line's is usually the same.
    last_chain: Option<BString>,
    spec: &'p mut RuleSpec,
    line_options: LineOptions<'p>,
    target: Option<usize>,
    /// Matches without a typed value, each with the number of extensions before it.
    opaque_matches: Vec<(usize, xt::Opaque)>,
    for_other_family: bool,
    native_log: bool,
    names: &'p Names,
    truncated: Option<RefCell<Vec<TruncatedText>>>,
    /// Columns of `-i` and `-o`; 0 if absent.
    interfaces: [usize; 2],
    /// Bit set of the main options seen, to reject repeated ones.
    seen: u32,
    /// Whether the current option's value must not look like an option.
    wants_no_option: bool,
    /// The options of a program's command line; `None` for a line of a text.
    cmdline: Option<CommandLineOptions>,
}

#[cfg(test)]
mod tests;
