//! A command of `iptables`, as a line of `iptables-restore` holds it: what is to be done with which
//! chain, and a rule.
//!
//! | step | where |
//! |---|---|
//! | words, options and whose they are | `parser.rs` |
//! | what the main options mean; the rule | `main_options.rs` |
//! | what only a program is told: which table, what to list | `called.rs` |
//! | names and addresses | `names.rs` |

mod called;
mod main_options;
mod names;
mod parser;

pub(in crate::iptables) use called::{Called, Listing, Wait};
pub(super) use names::chain_name;

use std::cell::RefCell;

use bstr::{BStr, BString};

use super::{ParseError, Word};
use crate::iptables::Deviation;
use crate::iptables::{Address, Counters, Rule};
use crate::xt::{self, Family, Given, Names, OptionSpec, Shortened, Spec};

/// Where lines are read otherwise than iptables reads them.
pub(in crate::iptables) const DEVIATIONS: &[Deviation] = &[
    Deviation {
        about: "names of hosts (`-s localhost`)",
        iptables: "looks them up",
        ours: "refuses them",
        why: "What a name means changes, and a look-up can hang or lie; a rule holds addresses.",
    },
    Deviation {
        about: "a comment, or the prefix of LOG or NFLOG, that is too long",
        iptables: "cuts it in silence",
        ours: "cuts it at the same place and says so; `Rule::parse` refuses it",
        why: "A rule should not say something else than its text without a word.",
    },
    Deviation {
        about: "`-c 5x,6`, `-c -1 3`",
        iptables: "takes what digits there are",
        ours: "refuses it",
        why: "It is a slip, and counters are for reckoning.",
    },
    Deviation {
        about: "the length of a line",
        iptables: "at most 254 words, none of 1,024 bytes or more",
        ours: "1 MiB, and any number of words",
        why: "What we save can be longer.",
    },
    Deviation {
        about: "`-s a,b,… -d c,d,…`",
        iptables: "makes a rule of each pair",
        ours: "the same, but at most 65,536 for a line, and for a text 262,144 more than it has lines",
        why: "A short text must not make rules without end.",
    },
];

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// `-A`: puts the rule behind the chain's last one.
    Append,
    /// `-I`: puts the rule in this place, from 1.
    Insert(usize),
    /// `-D`: takes the first such rule away.
    Delete,
    /// `-D CHAIN NUMBER`: takes the rule in this place away, from 1.
    DeleteNumber(usize),
    /// `-R`: puts the rule in the place of another, from 1.
    Replace(usize),
    /// `-C`: such a rule is there.
    Check,
    /// `-N`: makes the chain.
    NewChain,
    /// `-X`: takes the chain away; without one, all empty ones that nothing leads to.
    DeleteChain,
    /// `-F`: takes all the chain's rules away; without one, those of all chains.
    Flush,
    /// `-Z`: sets counters to 0: the chain's, or those of its rule in this place, or all.
    Zero(Option<usize>),
    /// `-P`: sets the chain's policy.
    Policy(BString),
    /// `-E`: gives the chain this name.
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

/// A rule as a command gives it: several, if it gives several addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSpec {
    /// The rule, with the first of the addresses.
    pub rule: Rule,
    /// Sources behind the first.
    pub more_sources: Vec<Address>,
    /// Destinations behind the first.
    pub more_destinations: Vec<Address>,
    /// `-c`
    pub counters: Option<Counters>,
    /// Texts that were too long and are cut, as iptables cuts them.
    pub shortened: Vec<Shortened>,
}

impl RuleSpec {
    /// A rule that says nothing, in the memory of this one.
    fn clear(&mut self) {
        let Self {
            rule,
            more_sources,
            more_destinations,
            counters,
            shortened,
        } = self;
        rule.clear();
        more_sources.clear();
        more_destinations.clear();
        *counters = None;
        shortened.clear();
    }

    /// How many rules these are.
    #[must_use]
    pub fn number(&self) -> usize {
        (self.more_sources.len() + 1).saturating_mul(self.more_destinations.len() + 1)
    }

    /// The rules: one for each pair of addresses.
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
    /// What is to be done.
    pub verb: Verb,
    /// With which chain; `None` if with all of them.
    pub chain: Option<BString>,
    /// The rule; empty unless the verb has one.
    pub spec: RuleSpec,
    /// Whether `-4` or `-6` says that it is for the other family: then it is to be passed over. What
    /// stands behind that is not read, since its addresses may be the other family's, and the verb is
    /// one that changes nothing.
    pub for_other_family: bool,
}

impl Command {
    /// Reads a command from a line's words. `is_chain` tells whether the table has a chain of that
    /// name, which a `-j` then means even if an extension has the name, too.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(
        family: Family,
        words: &[Word<'_>],
        is_chain: impl Fn(&BStr) -> bool,
    ) -> Result<Self, ParseError> {
        let mut command = Self::none();
        let lists = &mut Lists::default();
        command.read(lists, family, true, &Names::system(), words, &is_chain)?;
        Ok(command)
    }

    /// One that changes nothing.
    pub(in crate::iptables) fn none() -> Self {
        Self {
            verb: Verb::Check,
            chain: None,
            spec: RuleSpec::default(),
            for_other_family: false,
        }
    }

    /// Reads another one in the memory of this one. `native_log` is that of [`Context`].
    ///
    /// # Errors
    /// As [`parse`](Self::parse); then it is none.
    pub(super) fn read(
        &mut self,
        lists: &mut Lists<'static>,
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
        parser.shortened = Some(RefCell::default());
        parser.lists = std::mem::take(lists);
        let result = parser.parse();
        self.for_other_family = parser.for_other_family;
        *lists = parser.lists.cleared();
        (self.verb, self.chain) = result?;
        Ok(())
    }
}

impl Rule {
    /// Reads a rule from its options, as they stand behind `-A CHAIN`.
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
    /// The first thing that is wrong; also more than one address after `-s` or `-d`, and texts that
    /// iptables would cut.
    pub fn parse(family: Family, options: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        Self::parse_with(family, options, &Names::system())
    }

    /// The same with other names of protocols, services, users, … than the system's.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
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
            return Err(ParseError::new(
                column,
                "a rule without a command is expected here",
            ));
        }
        parser.rule()?;
        if !spec.more_sources.is_empty() || !spec.more_destinations.is_empty() {
            return Err(ParseError::new(
                end,
                "one rule has one source and one destination",
            ));
        }
        Ok(spec.rule)
    }
}

/// An extension that a line names.
struct Loaded {
    which: Which,
    /// The name by which it was asked for.
    name: &'static str,
    options: &'static [OptionSpec],
    column: usize,
}

/// What a line says of extensions.
#[derive(Default)]
pub(super) struct Lists<'a> {
    extensions: Vec<Loaded>,
    /// Places of those of them that have options of their own: of several that have the same ones, the
    /// last. So a look for an option takes no longer in a long line.
    distinct: Vec<usize>,
    /// The extensions' options, in the order in which they stand.
    given: Vec<Given<'a>>,
    /// For each of them.
    placed: Vec<Placed>,
}

impl Lists<'_> {
    /// Empty, with the memory that they have.
    fn cleared<'b>(mut self) -> Lists<'b> {
        self.extensions.clear();
        self.distinct.clear();
        self.placed.clear();
        Lists {
            extensions: self.extensions,
            distinct: self.distinct,
            // It becomes the other one's memory.
            given: self.given.into_iter().map_while(|_| None).collect(),
            placed: self.placed,
        }
    }
}

impl<'a> Lists<'a> {
    /// Puts the options of one extension together, in the order of the extensions. As a rule they stand
    /// so already.
    fn sort(&mut self) {
        if self.placed.is_sorted_by_key(|placed| placed.extension) {
            return;
        }
        let all = self.placed.drain(..).zip(self.given.drain(..));
        let mut all: Vec<(Placed, Given<'a>)> = all.collect();
        all.sort_by_key(|(placed, _)| placed.extension);
        (self.placed, self.given) = all.into_iter().unzip();
    }
}

/// Whose a given option is, and where it stands.
struct Placed {
    /// The place of its extension among those that the line names.
    extension: usize,
    /// Where it and its values stand.
    columns: [usize; 3],
}

#[derive(Clone, Copy)]
enum Which {
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
    /// The chain of the line before: a name that can be one. This line's is the same, as a rule.
    last_chain: Option<BString>,
    spec: &'p mut RuleSpec,
    lists: Lists<'p>,
    target: Option<usize>,
    /// Matches without a typed value, each with the number of extensions that stand before it.
    opaque_matches: Vec<(usize, xt::Opaque)>,
    for_other_family: bool,
    native_log: bool,
    names: &'p Names,
    shortened: Option<RefCell<Vec<Shortened>>>,
    /// Where `-i` and `-o` stand; 0 for one that is not given.
    interfaces: [usize; 2],
    /// Main options seen, a bit for each, to refuse a second one.
    seen: u32,
    /// Whether the option at hand has a value that looks like no option.
    wants_no_option: bool,
    /// What else the command line of a program says; `None` for a line of a text.
    called: Option<Called>,
}

#[cfg(test)]
mod tests;
