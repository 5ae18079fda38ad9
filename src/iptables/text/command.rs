//! A command of `iptables`, as a line of `iptables-restore` holds it: what is to be done with which
//! chain, and a rule.

use std::cell::RefCell;
use std::net::IpAddr;

use bstr::{BStr, BString, ByteSlice};

use super::error::nearest;
use super::options::{self, Found, Main, implied_by, owners};
use super::{ParseError, Word};
use crate::iptables::Deviation;
use crate::iptables::{Address, Counters, Interface, Protocol, Rule, Target};
use crate::xt::{
    self, Context, Family, Given, Names, OptionError, OptionSpec, Shortened, Spec, Values, value,
};

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
    pub(super) fn none() -> Self {
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
}

impl<'p, 'a> Parser<'p, 'a> {
    fn new(
        family: Family,
        names: &'p Names,
        words: &'p [Word<'a>],
        is_chain: &'p dyn Fn(&BStr) -> bool,
        spec: &'p mut RuleSpec,
    ) -> Self {
        Self {
            family,
            words,
            at: 0,
            is_chain,
            verb: None,
            chain: None,
            last_chain: None,
            spec,
            lists: Lists::default(),
            target: None,
            opaque_matches: Vec::new(),
            for_other_family: false,
            native_log: true,
            names,
            shortened: None,
            interfaces: [0; 2],
            seen: 0,
            wants_no_option: false,
        }
    }

    /// What is to be done, and with which chain. The rule is where it was told to be.
    fn parse(&mut self) -> Result<(Verb, Option<BString>), ParseError> {
        self.options()?;
        if self.for_other_family {
            self.spec.clear();
            return Ok((Verb::Check, None));
        }
        let end = self.end();
        let Some((verb, column)) = self.verb.take() else {
            return Err(ParseError::new(
                end,
                "no command in the line (-A, -I, -D, …)",
            ));
        };
        let has_rule = self.seen != 0
            || !self.lists.extensions.is_empty()
            || !self.opaque_matches.is_empty()
            || self.target.is_some()
            || !matches!(self.spec.rule.target, Target::None);
        if !verb.takes_rule() && has_rule {
            return Err(ParseError::new(column, "this command takes no rule"));
        }
        let chain = self.chain.take();
        if matches!(verb, Verb::Append | Verb::Insert(_) | Verb::Replace(_)) {
            self.check_interfaces(chain.as_ref().map_or(b"", |chain| chain.as_slice()))?;
        }
        self.rule()?;
        let several = !self.spec.more_sources.is_empty() || !self.spec.more_destinations.is_empty();
        if several && matches!(verb, Verb::Replace(_)) {
            let message =
                "-R puts one rule in the place of one: with one source and one destination";
            return Err(ParseError::new(column, message));
        }
        Ok((verb, chain))
    }

    /// No packet comes out of these built-in chains' places with such an interface: as the real tools,
    /// no such rule is put there. One that is there can be taken away.
    fn check_interfaces(&self, chain: &[u8]) -> Result<(), ParseError> {
        let (column, how) = match (chain, self.interfaces) {
            (b"OUTPUT" | b"POSTROUTING", [column, _]) => (column, "comes in by"),
            (b"INPUT" | b"PREROUTING", [_, column]) => (column, "goes out by"),
            _ => return Ok(()),
        };
        if column == 0 {
            return Ok(());
        }
        let chain = chain.as_bstr();
        let message = format!("in {chain} it is not known which interface a packet {how}");
        Err(ParseError::new(column, message))
    }

    /// Behind the last word.
    fn end(&self) -> usize {
        self.words
            .last()
            .map_or(1, |word| word.column + word.bytes.len())
    }

    fn options(&mut self) -> Result<(), ParseError> {
        while let Some(word) = self.next() {
            let (invert, word) = if word.text() == "!" {
                let Some(option) = self.next() else {
                    return Err(ParseError::new(word.column, "`!` stands before an option"));
                };
                (true, option)
            } else {
                (false, word)
            };
            self.option(word, invert)?;
            if self.for_other_family {
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Option<&'p Word<'a>> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn option(&mut self, word: &'p Word<'a>, invert: bool) -> Result<(), ParseError> {
        let bytes = &word.bytes[..];
        match bytes {
            [b'-', b'-', name @ ..] if !name.is_empty() => self.long(word, name, invert),
            [b'-', letter, attached @ ..] if *letter != b'-' => {
                let Some(main) = options::short(*letter) else {
                    let shown = bytes[..2].as_bstr();
                    let fault = ParseError::new(word.column, format!("unknown option `{shown}`"));
                    let hint = options::elsewhere(&[*letter]).map(str::to_owned);
                    return Err(fault.with_hint(hint));
                };
                let attached = (!attached.is_empty()).then(|| (attached, word.column + 2));
                self.main(main, word, attached, invert)
            }
            _ => {
                let shown = word.text();
                let fault = ParseError::new(word.column, format!("`{shown}` is not an option"));
                let hint = match bytes {
                    b"!" => "there is a `!` too many",
                    [b'-', ..] => "an option is a `-` and a letter, or `--` and a name",
                    _ if self.words.iter().any(|word| word.bytes.contains(&b'\'')) => {
                        "only double quotes hold several words together"
                    }
                    _ => "a value with blanks stands in double quotes",
                };
                Err(fault.with_hint(Some(hint.to_owned())))
            }
        }
    }

    fn long(&mut self, word: &'p Word<'a>, name: &'p [u8], invert: bool) -> Result<(), ParseError> {
        let (name, attached) = match name.iter().position(|byte| *byte == b'=') {
            Some(at) => (&name[..at], Some((&name[at + 1..], word.column + 3 + at))),
            None => (name, None),
        };
        let mut found = self.find(name);
        if found.is_err()
            && let Some(implied) = self.implied(name)
        {
            self.load(Which::Match(implied.0), implied.1, word.column);
            found = self.find(name);
        }
        match found {
            Ok(Found::Main(main)) => self.main(main, word, attached, invert),
            Ok(Found::Of(place, spec)) => self.extension(place, spec, word, attached, invert),
            Err((message, hint)) => {
                let elsewhere = options::elsewhere(name).map(str::to_owned);
                let hint = elsewhere.or_else(|| {
                    // An option that may stand here, unless another is nearer.
                    let anywhere = options::nearest_anywhere(name);
                    hint.filter(|hint| anywhere.is_none_or(|n| hint.contains(&format!("--{n}?"))))
                        .or_else(|| owners(name, self.family))
                });
                Err(ParseError::new(word.column, message).with_hint(hint))
            }
        }
    }

    fn find(&self, name: &[u8]) -> Result<Found, (String, Option<String>)> {
        let of = |place: &usize| {
            self.lists
                .extensions
                .get(*place)
                .map_or(&[][..], |l| l.options)
        };
        let found = options::long(name, self.lists.distinct.iter().map(of))?;
        Ok(match found {
            Found::Of(at, spec) => Found::Of(self.lists.distinct[at], spec),
            main => main,
        })
    }

    /// The protocol's own match, if it is not there yet and has an option that starts so.
    fn implied(&self, name: &[u8]) -> Option<(&'static Spec<xt::Match>, &'static str)> {
        let protocol = self
            .spec
            .rule
            .protocol
            .filter(|protocol| !protocol.invert)?;
        let implied = implied_by(protocol.number, self.family)?;
        let loaded = |place: &usize| self.lists.extensions.get(*place);
        let mut loaded = self.lists.distinct.iter().filter_map(loaded);
        if loaded.any(|loaded| loaded.name == implied) {
            return None;
        }
        let spec = xt::Match::named(self.family, implied.as_bytes())?;
        let starts = |option: &OptionSpec| option.name.as_bytes().starts_with(name);
        spec.options(implied)
            .iter()
            .any(starts)
            .then_some((spec, implied))
    }

    fn load(&mut self, which: Which, name: &'static str, column: usize) {
        let options = match which {
            Which::Match(spec) => spec.options(name),
            Which::Target(spec) => spec.options(name),
        };
        let lists = &mut self.lists;
        let same = |place: &usize| std::ptr::eq(lists.extensions[*place].options, options);
        if let Some(before) = lists.distinct.iter().position(same) {
            lists.distinct.remove(before);
        }
        lists.distinct.push(lists.extensions.len());
        lists.extensions.push(Loaded {
            which,
            name,
            options,
            column,
        });
    }

    /// An option of an extension.
    fn extension(
        &mut self,
        place: usize,
        spec: &'static OptionSpec,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
        invert: bool,
    ) -> Result<(), ParseError> {
        let name = spec.name;
        if attached.is_some() && spec.values == Values::None {
            return Err(ParseError::new(
                word.column,
                format!("--{name} takes no value"),
            ));
        }
        let mut columns = [word.column; 3];
        let (mut first, mut second) = (None, None);
        match spec.values {
            Values::None => {}
            Values::Optional => {
                let follows = self.words.get(self.at).filter(|next| {
                    attached.is_none() && !next.bytes.starts_with(b"-") && next.text() != "!"
                });
                if attached.is_some() || follows.is_some() {
                    let (value, column) = self.value(word, attached)?;
                    (first, columns[1]) = (Some(value), column);
                }
            }
            Values::One | Values::Two => {
                let (value, column) = self.value(word, attached)?;
                (first, columns[1]) = (Some(value), column);
                if spec.values == Values::Two {
                    let Some(value) = self.next() else {
                        let message = format!("--{name} takes two values");
                        return Err(ParseError::new(word.column, message));
                    };
                    (second, columns[2]) = (Some(value.text()), value.column);
                }
            }
        }
        self.lists.placed.push(Placed {
            extension: place,
            columns,
        });
        self.lists.given.push(Given {
            option: spec.canonical,
            invert,
            first,
            second,
        });
        Ok(())
    }

    /// The value of an option: attached to it, or the next word.
    fn value(
        &mut self,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
    ) -> Result<(&'p BStr, usize), ParseError> {
        if let Some((value, column)) = attached {
            return Ok((value.as_bstr(), column));
        }
        let option = word.text();
        let Some(value) = self.next() else {
            return Err(ParseError::new(
                word.column,
                format!("`{option}` wants a value"),
            ));
        };
        if self.wants_no_option && is_option(value.text()) {
            let message = format!("`{option}` wants a value, but `{}` follows", value.text());
            return Err(ParseError::new(value.column, message));
        }
        // A value may be a `!`, but before another word it was meant to negate.
        let word_follows = || {
            let next = self.words.get(self.at);
            next.is_some_and(|next| !next.bytes.starts_with(b"-") && next.text() != "!")
        };
        if value.text() == "!" && word_follows() {
            let fault = ParseError::new(value.column, "`!` stands before the option it negates");
            return Err(fault.with_hint(Some(format!("write `! {option}`"))));
        }
        Ok((value.text(), value.column))
    }

    fn main(
        &mut self,
        main: Main,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
        invert: bool,
    ) -> Result<(), ParseError> {
        let inverts = matches!(
            main,
            Main::Source
                | Main::Destination
                | Main::InInterface
                | Main::OutInterface
                | Main::Protocol
                | Main::Fragment
        );
        if invert && !inverts {
            let message = format!("`{}` cannot be negated", word.text());
            return Err(ParseError::new(word.column, message));
        }
        let is_rule_part = inverts || matches!(main, Main::SetCounters);
        if is_rule_part {
            let bit = 1 << main as u32;
            if self.seen & bit != 0 {
                let option = word.text();
                return Err(ParseError::new(
                    word.column,
                    format!("`{option}` is given twice"),
                ));
            }
            self.seen |= bit;
        }
        if matches!(main, Main::Fragment | Main::Ipv4 | Main::Ipv6) && attached.is_some() {
            return Err(ParseError::new(word.column, "this option takes no value"));
        }
        self.wants_no_option = true;
        match main {
            Main::Ipv4 => self.for_other_family |= self.family != Family::Ipv4,
            Main::Ipv6 => self.for_other_family |= self.family != Family::Ipv6,
            Main::Fragment => {
                if self.family != Family::Ipv4 {
                    return Err(ParseError::new(
                        word.column,
                        "only IPv4 has fragments in its header",
                    )
                    .with_hint(Some("use -m frag".to_owned())));
                }
                self.spec.rule.fragment = Some(!invert);
            }
            Main::Source | Main::Destination => {
                let (value, column) = self.value(word, attached)?;
                self.addresses(main, value, column, invert)?;
            }
            Main::InInterface | Main::OutInterface => {
                let (value, column) = self.value(word, attached)?;
                let interface = interface(value, invert).map_err(|m| ParseError::new(column, m))?;
                match main {
                    Main::InInterface => {
                        self.spec.rule.in_interface = interface;
                        self.interfaces[0] = word.column;
                    }
                    _ => {
                        self.spec.rule.out_interface = interface;
                        self.interfaces[1] = word.column;
                    }
                }
            }
            Main::Protocol => {
                let (value, column) = self.value(word, attached)?;
                self.protocol(value, column, invert)?;
            }
            Main::Match => {
                let (value, column) = self.value(word, attached)?;
                if let Some(opaque) = self.opaque(value)? {
                    self.opaque_matches
                        .push((self.lists.extensions.len(), opaque));
                    return Ok(());
                }
                let Some(spec) = xt::Match::named(self.family, value) else {
                    return Err(unknown_match(value, column, self.family));
                };
                let name = spec.names().iter().find(|name| value == **name);
                self.load(
                    Which::Match(spec),
                    name.copied().unwrap_or_default(),
                    column,
                );
            }
            Main::Jump | Main::Goto => {
                let (value, column) = self.value(word, attached)?;
                self.target(main, value, word.column, column)?;
            }
            Main::SetCounters => {
                let (packets, column) = self.value(word, attached)?;
                // Both in a word with a comma, or in two.
                let (packets, bytes, of_bytes) = match packets.split_once_str(",") {
                    Some((packets, bytes)) => {
                        let of_bytes = column + packets.len() + 1;
                        (packets.as_bstr(), bytes.as_bstr(), of_bytes)
                    }
                    None => {
                        let Some(bytes) = self.next() else {
                            return Err(ParseError::new(word.column, "-c wants packets and bytes"));
                        };
                        (packets, bytes.text(), bytes.column)
                    }
                };
                self.spec.counters = Some(Counters {
                    packets: value::decimal(packets).map_err(|m| ParseError::new(column, m))?,
                    bytes: value::decimal(bytes).map_err(|m| ParseError::new(of_bytes, m))?,
                });
            }
            _ => self.verb(main, word, attached)?,
        }
        self.wants_no_option = false;
        Ok(())
    }

    fn verb(
        &mut self,
        main: Main,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
    ) -> Result<(), ParseError> {
        if self.verb.is_some() {
            return Err(ParseError::new(
                word.column,
                "a line holds one command only",
            ));
        }
        let optional = matches!(main, Main::DeleteChain | Main::Flush | Main::Zero);
        let none_follows = self
            .words
            .get(self.at)
            .is_none_or(|next| next.bytes.starts_with(b"-"));
        if !(optional && attached.is_none() && none_follows) {
            let (name, column) = self.value(word, attached)?;
            let last = self.last_chain.take();
            if last.as_ref().is_some_and(|last| last == name) {
                self.chain = last;
            } else {
                check_chain_name(name, column)?;
                let mut chain = last.unwrap_or_default();
                chain.clear();
                chain.extend_from_slice(name);
                self.chain = Some(chain);
            }
        }
        let verb = match main {
            Main::Append => Verb::Append,
            Main::Check => Verb::Check,
            Main::Insert => Verb::Insert(self.place()?.unwrap_or(1)),
            Main::Delete => match self.place()? {
                None => Verb::Delete,
                Some(number) => Verb::DeleteNumber(number),
            },
            Main::Replace => match self.place()? {
                Some(number) => Verb::Replace(number),
                None => {
                    let message = "-R wants the number of the rule to be replaced";
                    return Err(ParseError::new(word.column, message));
                }
            },
            Main::NewChain => Verb::NewChain,
            Main::DeleteChain => Verb::DeleteChain,
            Main::Flush => Verb::Flush,
            Main::Zero => Verb::Zero(self.place()?),
            Main::Policy => {
                let (policy, column) = self.value(word, None)?;
                if !matches!(policy.as_bytes(), b"ACCEPT" | b"DROP") {
                    let message = format!("`{policy}` is not a policy (ACCEPT or DROP)");
                    return Err(ParseError::new(column, message));
                }
                Verb::Policy(policy.to_owned())
            }
            _ => {
                let (name, column) = self.value(word, None)?;
                Verb::RenameChain(chain_name(name, column)?)
            }
        };
        self.verb = Some((verb, word.column));
        Ok(())
    }

    /// The number of a rule, if one follows.
    fn place(&mut self) -> Result<Option<usize>, ParseError> {
        let Some(word) = self.words.get(self.at) else {
            return Ok(None);
        };
        if !word.bytes.first().is_some_and(u8::is_ascii_digit) {
            return Ok(None);
        }
        self.at += 1;
        match value::number::<u32>(word.text()) {
            Ok(number) if number > 0 => Ok(Some(number as usize)),
            _ => {
                let message = format!("`{}` is not the number of a rule, from 1", word.text());
                Err(ParseError::new(word.column, message))
            }
        }
    }

    fn addresses(
        &mut self,
        main: Main,
        given: &BStr,
        column: usize,
        invert: bool,
    ) -> Result<(), ParseError> {
        let mut at = column;
        let mut all = given.split(|byte| *byte == b',').map(|one| {
            let here = at;
            at += one.len() + 1;
            value::network(one.as_bstr(), self.family)
                .map(|(address, mask)| Address::masked(address, mask, invert))
                .map_err(|message| {
                    let (other, name) = match self.family {
                        Family::Ipv4 => (Family::Ipv6, "an IPv6"),
                        Family::Ipv6 => (Family::Ipv4, "an IPv4"),
                    };
                    let is_other = value::network(one.as_bstr(), other).is_ok();
                    let hint = is_other.then(|| format!("it is {name} address"));
                    ParseError::new(here, message).with_hint(hint)
                })
        });
        let first = all.next().transpose()?;
        let more = all.collect::<Result<Vec<_>, _>>()?;
        if invert && !more.is_empty() {
            let message = "a negated option takes one address only: none of several cannot be said";
            return Err(ParseError::new(column, message));
        }
        match main {
            Main::Source => (self.spec.rule.source, self.spec.more_sources) = (first, more),
            _ => (self.spec.rule.destination, self.spec.more_destinations) = (first, more),
        }
        if self.spec.number() > MOST_RULES {
            let message = "each pair of a source and a destination is a rule: one line makes at most \
                           65536";
            return Err(ParseError::new(column, message));
        }
        Ok(())
    }

    fn protocol(&mut self, given: &BStr, column: usize, invert: bool) -> Result<(), ParseError> {
        let Some(number) = self.names.protocol(given) else {
            let message = format!("`{given}` is neither a protocol's number nor its name");
            let known = [
                "tcp", "udp", "icmp", "icmpv6", "sctp", "esp", "udplite", "all",
            ];
            let hint = nearest(given, known).map(|near| format!("did you mean {near}?"));
            return Err(ParseError::new(column, message).with_hint(hint));
        };
        if number != 0 {
            self.spec.rule.protocol = Some(Protocol { number, invert });
        } else if invert {
            return Err(ParseError::new(column, "`! -p all` never matches"));
        }
        Ok(())
    }

    /// The data of an extension as bytes, if that is what follows its name: `--xt-revision NUMBER
    /// --xt-data HEX`, as extensions without a typed value are printed.
    fn opaque(&mut self, name: &BStr) -> Result<Option<xt::Opaque>, ParseError> {
        let is_option =
            |at: usize, option: &str| self.words.get(at).is_some_and(|word| word.text() == option);
        if !is_option(self.at, "--xt-revision") || !is_option(self.at + 2, "--xt-data") {
            return Ok(None);
        }
        let (Some(revision), Some(data)) =
            (self.words.get(self.at + 1), self.words.get(self.at + 3))
        else {
            return Ok(None);
        };
        self.at += 4;
        let fault = |column| move |message| ParseError::new(column, message);
        Ok(Some(xt::Opaque {
            name: name.to_str_lossy().into_owned(),
            revision: value::number(revision.text()).map_err(fault(revision.column))?,
            info: value::hex(data.text()).map_err(fault(data.column))?,
        }))
    }

    fn target(
        &mut self,
        main: Main,
        name: &BStr,
        option: usize,
        column: usize,
    ) -> Result<(), ParseError> {
        if self.target.is_some() || !matches!(self.spec.rule.target, Target::None) {
            return Err(ParseError::new(option, "a rule has one target only"));
        }
        let family = self.family;
        if main == Main::Jump
            && let Some(opaque) = self.opaque(name)?
        {
            self.spec.rule.target = Target::Extension(xt::Target::Opaque(opaque));
            return Ok(());
        }
        self.spec.rule.target = match name.as_bytes() {
            _ if main == Main::Goto => Target::Goto(chain_name(name, column)?),
            b"ACCEPT" => Target::Accept,
            b"DROP" => Target::Drop,
            b"RETURN" => Target::Return,
            b"QUEUE" => Target::Queue,
            _ if (self.is_chain)(name) => Target::Jump(name.to_owned()),
            _ => match xt::Target::named(family, name) {
                None => Target::Jump(chain_name(name, column)?),
                Some(spec) => {
                    let own = spec.names().iter().find(|own| name == **own);
                    self.target = Some(self.lists.extensions.len());
                    self.load(
                        Which::Target(spec),
                        own.copied().unwrap_or_default(),
                        column,
                    );
                    Target::None
                }
            },
        };
        Ok(())
    }

    /// Makes the rule whole, once all options are read.
    fn rule(&mut self) -> Result<(), ParseError> {
        let spec = &mut *self.spec;
        let protocol = spec.rule.protocol;
        let mut opaque = std::mem::take(&mut self.opaque_matches)
            .into_iter()
            .peekable();
        self.lists.sort();
        let (mut given, mut placed) = (&self.lists.given[..], &self.lists.placed[..]);
        for (place, loaded) in self.lists.extensions.iter().enumerate() {
            while let Some((_, opaque)) = opaque.next_if(|(before, _)| *before <= place) {
                spec.rule.matches.push(xt::Match::Opaque(opaque));
            }
            let own = placed.iter().take_while(|p| p.extension == place).count();
            let (options, others) = given.split_at(own);
            let (places, others_places) = placed.split_at(own);
            (given, placed) = (others, others_places);
            let fault = |error, option| loaded.parse_error(&error, option, options, places);
            let context = Context {
                family: self.family,
                name: loaded.name,
                protocol: protocol.map(|protocol| (protocol.number, protocol.invert)),
                native_log: self.native_log,
                names: self.names,
                shortened: self.shortened.as_ref(),
            };
            match loaded.which {
                Which::Match(extension) => {
                    let read = extension.parse(&context, options);
                    let read = read.map_err(|error| fault(error, "-m"))?;
                    spec.rule.matches.push(read);
                }
                Which::Target(extension) => {
                    let read = extension.parse(&context, options);
                    let read = read.map_err(|error| fault(error, "-j"))?;
                    spec.rule.target = Target::Extension(read);
                }
            }
        }
        spec.rule
            .matches
            .extend(opaque.map(|(_, opaque)| xt::Match::Opaque(opaque)));
        if let Some(shortened) = &mut self.shortened {
            spec.shortened = std::mem::take(shortened.get_mut());
        }
        Ok(())
    }
}

impl Loaded {
    /// Says where the error of its options is.
    fn parse_error(
        &self,
        error: &OptionError,
        option: &str,
        given: &[Given<'_>],
        placed: &[Placed],
    ) -> ParseError {
        let name = self.name;
        let position = given.iter().rposition(|one| one.option == error.option);
        let column = position
            .and_then(|position| placed.get(position))
            .map_or(self.column, |placed| {
                placed.columns[error.value.map_or(0, |value| value + 1).min(2)]
            });
        ParseError::new(column, format!("{option} {name}: {error}"))
    }
}

/// Whether it is one of the options that belong to no extension.
fn is_option(word: &BStr) -> bool {
    match word.as_bytes() {
        [b'-', b'-', name @ ..] => {
            matches!(options::long(name, [].into_iter()), Ok(Found::Main(_)))
        }
        [b'-', letter] => options::short(*letter).is_some(),
        _ => false,
    }
}

fn unknown_match(name: &BStr, column: usize, family: Family) -> ParseError {
    let known = xt::Match::ALL
        .iter()
        .filter(|spec| spec.families().include(family))
        .flat_map(|spec| spec.names().iter().copied());
    let hint = nearest(name, known).map(|near| format!("did you mean -m {near}?"));
    ParseError::new(column, format!("match `{name}` not found")).with_hint(hint)
}

/// No line makes more rules than this: each pair of its addresses is one.
const MOST_RULES: usize = 1 << 16;

/// Longest name of a chain, in bytes (`XT_EXTENSION_MAXNAMELEN` with its NUL, as iptables has it).
const LONGEST_CHAIN_NAME: usize = 28;

/// Whether a name has a byte that separates words.
fn has_blanks(name: &[u8]) -> bool {
    // Nearly no name has a byte that is not above the blank; all bytes are looked at together.
    let low = name.iter().fold(false, |low, byte| low | (*byte <= b' '));
    low && name.iter().any(u8::is_ascii_whitespace)
}

pub(super) fn chain_name(name: &BStr, column: usize) -> Result<BString, ParseError> {
    check_chain_name(name, column).map(|()| name.to_owned())
}

/// Says why a chain cannot have that name, if it cannot.
fn check_chain_name(name: &BStr, column: usize) -> Result<(), ParseError> {
    let wrong = if name.is_empty() {
        "a chain's name has at least one byte"
    } else if name.len() > LONGEST_CHAIN_NAME {
        "a chain's name has at most 28 bytes"
    } else if matches!(name[0], b'-' | b'!') {
        "a chain's name does not start with `-` or `!`"
    } else if has_blanks(name) {
        "a chain's name has no blanks"
    } else {
        return Ok(());
    };
    Err(ParseError::new(column, format!("`{name}`: {wrong}")))
}

/// Reads an interface's name, or the start of one before a `+`. A lone `+` that is not negated says
/// nothing.
fn interface(name: &BStr, invert: bool) -> Result<Option<Interface>, String> {
    if name.is_empty() || name.len() > 15 {
        return Err(format!(
            "`{name}` is not an interface's name: it has 1 to 15 bytes"
        ));
    }
    // Attached to its option it can be typed; but nobody could write it so that it is read back.
    if is_option(name) {
        return Err(format!(
            "`{name}` is an option: no rule is about an interface of that name"
        ));
    }
    Ok(match name.strip_suffix(b"+") {
        Some(b"") if !invert => None,
        Some(start) => Some(Interface {
            name: start.into(),
            prefix: true,
            invert,
        }),
        None => Some(Interface {
            name: name.to_owned(),
            prefix: false,
            invert,
        }),
    })
}

impl Address {
    /// Reads `address`, `address/prefix` or `address/mask`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(family: Family, text: impl AsRef<[u8]>) -> Result<Self, String> {
        let (address, mask): (IpAddr, IpAddr) = value::network(text.as_ref().as_bstr(), family)?;
        Ok(Self::masked(address, mask, false))
    }
}

#[cfg(test)]
mod tests;
