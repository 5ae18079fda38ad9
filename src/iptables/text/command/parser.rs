//! Parses the words of a command in order: finds each option, its value, and the extension
//! to which it belongs.

use bstr::{BStr, BString, ByteSlice};

use super::{ExtensionSpec, LineExtension, LineOptions, OptionOrigin, Parser, RuleSpec, Verb};
use crate::iptables::Target;
use crate::iptables::text::error::nearest;
use crate::iptables::text::options::{
    self, FoundOption, OptionSource, extensions_with_option, implied_by,
};
use crate::iptables::text::{ParseError, Word};
use crate::xt::{self, Family, GivenOption, Names, OptionError, OptionSpec, Spec, Values};

impl<'p, 'a> Parser<'p, 'a> {
    pub(super) fn new(
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
            line_options: LineOptions::default(),
            target: None,
            opaque_matches: Vec::new(),
            for_other_family: false,
            native_log: true,
            names,
            truncated: None,
            interfaces: [0; 2],
            seen: 0,
            wants_no_option: false,
            cmdline: None,
        }
    }

    /// Returns the source of the options.
    pub(super) const fn place_of_options(&self) -> OptionSource {
        match self.cmdline {
            None => OptionSource::Text,
            Some(_) => OptionSource::Program,
        }
    }

    /// Parses the verb and the chain. The rule goes to `spec`.
    pub(super) fn parse(&mut self) -> Result<(Verb, Option<BString>), ParseError> {
        self.options()?;
        if self.for_other_family {
            self.spec.clear();
            return Ok((Verb::Check, None));
        }
        let end = self.end();
        // A policy may have counters, too.
        let of_policy = match self.verb {
            Some((Verb::Policy(_), _)) => 1 << options::Main::SetCounters as u32,
            _ => 0,
        };
        let has_rule = self.seen & !of_policy != 0
            || !self.line_options.extensions.is_empty()
            || !self.opaque_matches.is_empty()
            || self.target.is_some()
            || !matches!(self.spec.rule.target, Target::None);
        if let Some(cmdline) = &mut self.cmdline {
            let verb = self.verb.as_ref().map(|(verb, _)| verb);
            cmdline.check(verb, has_rule, end)?;
            if cmdline.lists_instead() {
                self.spec.clear();
                return Ok((Verb::Check, self.chain.take()));
            }
        }
        let Some((verb, column)) = self.verb.take() else {
            return Err(ParseError::new(
                end,
                "no command in the line (-A, -I, -D, …)",
            ));
        };
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
                "-R replaces one rule with one rule: it takes one source and one destination";
            return Err(ParseError::new(column, message));
        }
        Ok((verb, chain))
    }

    /// Rejects rules in built-in chains where no packet has such an interface, like
    /// the real tools. Deleting such a rule is allowed.
    pub(super) fn check_interfaces(&self, chain: &[u8]) -> Result<(), ParseError> {
        let (column, direction) = match (chain, self.interfaces) {
            (b"OUTPUT" | b"POSTROUTING", [column, _]) => (column, "input"),
            (b"INPUT" | b"PREROUTING", [_, column]) => (column, "output"),
            _ => return Ok(()),
        };
        if column == 0 {
            return Ok(());
        }
        let chain = chain.as_bstr();
        let message = format!("packets in {chain} have no {direction} interface");
        Err(ParseError::new(column, message))
    }

    /// Returns the column after the last word.
    pub(super) fn end(&self) -> usize {
        self.words
            .last()
            .map_or(1, |word| word.column + word.bytes.len())
    }

    pub(super) fn options(&mut self) -> Result<(), ParseError> {
        while let Some(word) = self.next() {
            let (invert, word) = if word.text() == "!" {
                let Some(option) = self.next() else {
                    return Err(ParseError::new(
                        word.column,
                        "`!` must come before an option",
                    ));
                };
                (true, option)
            } else {
                (false, word)
            };
            self.option(word, invert)?;
            let has_help = self.cmdline.as_ref().is_some_and(|cmdline| cmdline.help);
            if self.for_other_family || has_help {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Option<&'p Word<'a>> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    pub(super) fn option(&mut self, word: &'p Word<'a>, invert: bool) -> Result<(), ParseError> {
        let bytes = &word.bytes[..];
        match bytes {
            [b'-', b'-', name @ ..] if !name.is_empty() => self.long(word, name, invert),
            [b'-', letter, attached @ ..] if *letter != b'-' => {
                let unknown = |letter: u8| {
                    let shown = [b'-', letter];
                    let shown = shown.as_bstr();
                    let fault = ParseError::new(word.column, format!("unknown option `{shown}`"));
                    let hint = options::only_on_command_line(&[letter]).map(str::to_owned);
                    fault.with_hint(hint)
                };
                let place = self.place_of_options();
                let (mut letter, mut attached) = (*letter, attached);
                loop {
                    let main = options::short(place, letter).ok_or_else(|| unknown(letter))?;
                    match attached {
                        [next, rest @ ..] if main.is_flag() && place == OptionSource::Program => {
                            self.main(main, word, None, invert)?;
                            (letter, attached) = (*next, rest);
                        }
                        _ => {
                            let at = word.column + bytes.len() - attached.len();
                            let attached = (!attached.is_empty()).then_some((attached, at));
                            return self.main(main, word, attached, invert);
                        }
                    }
                }
            }
            _ => {
                let shown = word.text();
                let fault = ParseError::new(word.column, format!("`{shown}` is not an option"));
                let hint = match bytes {
                    b"!" => "too many `!`",
                    [b'-', ..] => "an option is `-` and a letter, or `--` and a name",
                    _ if self.words.iter().any(|word| word.bytes.contains(&b'\'')) => {
                        "only double quotes can enclose several words"
                    }
                    _ => "a value with spaces must be in double quotes",
                };
                Err(fault.with_hint(Some(hint.to_owned())))
            }
        }
    }

    pub(super) fn long(
        &mut self,
        word: &'p Word<'a>,
        name: &'p [u8],
        invert: bool,
    ) -> Result<(), ParseError> {
        let (name, attached) = match name.iter().position(|byte| *byte == b'=') {
            Some(at) => (&name[..at], Some((&name[at + 1..], word.column + 3 + at))),
            None => (name, None),
        };
        let mut found = self.find(name);
        if found.is_err()
            && let Some(implied) = self.implied(name)
        {
            self.load(ExtensionSpec::Match(implied.0), implied.1, word.column);
            found = self.find(name);
        }
        match found {
            Ok(FoundOption::Main(main)) => self.main(main, word, attached, invert),
            Ok(FoundOption::Of(place, spec)) => self.extension(place, spec, word, attached, invert),
            Err((message, hint)) => {
                let only_on_command_line = options::only_on_command_line(name).map(str::to_owned);
                let hint = only_on_command_line.or_else(|| {
                    // An option that is allowed here, unless another is nearer.
                    let anywhere = options::nearest_anywhere(name);
                    hint.filter(|hint| anywhere.is_none_or(|n| hint.contains(&format!("--{n}?"))))
                        .or_else(|| extensions_with_option(name, self.family))
                });
                Err(ParseError::new(word.column, message).with_hint(hint))
            }
        }
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<FoundOption, (String, Option<String>)> {
        let of = |place: &usize| {
            self.line_options
                .extensions
                .get(*place)
                .map_or(&[][..], |l| l.options)
        };
        let found = options::long(
            self.place_of_options(),
            name,
            self.line_options.distinct.iter().map(of),
        )?;
        Ok(match found {
            FoundOption::Of(at, spec) => FoundOption::Of(self.line_options.distinct[at], spec),
            main => main,
        })
    }

    /// Returns the protocol's own match, if it is not loaded yet and has an option with this
    /// prefix.
    pub(super) fn implied(&self, name: &[u8]) -> Option<(&'static Spec<xt::Match>, &'static str)> {
        let protocol = self
            .spec
            .rule
            .protocol
            .filter(|protocol| !protocol.invert)?;
        let implied = implied_by(protocol.number, self.family)?;
        let loaded = |place: &usize| self.line_options.extensions.get(*place);
        let mut loaded = self.line_options.distinct.iter().filter_map(loaded);
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

    pub(super) fn load(&mut self, which: ExtensionSpec, name: &'static str, column: usize) {
        let options = match which {
            ExtensionSpec::Match(spec) => spec.options(name),
            ExtensionSpec::Target(spec) => spec.options(name),
        };
        let line_options = &mut self.line_options;
        let same = |place: &usize| std::ptr::eq(line_options.extensions[*place].options, options);
        if let Some(before) = line_options.distinct.iter().position(same) {
            line_options.distinct.remove(before);
        }
        line_options.distinct.push(line_options.extensions.len());
        line_options.extensions.push(LineExtension {
            which,
            name,
            options,
            column,
        });
    }

    /// Processes an option of an extension.
    pub(super) fn extension(
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
        self.line_options.origins.push(OptionOrigin {
            extension: place,
            columns,
        });
        self.line_options.given.push(GivenOption {
            option: spec.canonical,
            invert,
            first,
            second,
        });
        Ok(())
    }

    /// Returns the value of an option: attached to it, or the next word.
    pub(super) fn value(
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
                format!("`{option}` requires a value"),
            ));
        };
        if self.wants_no_option && is_option(value.text()) {
            let message = format!(
                "`{option}` requires a value, but `{}` follows",
                value.text()
            );
            return Err(ParseError::new(value.column, message));
        }
        // A value may be a `!`, but before another word it is a negation.
        let word_follows = || {
            let next = self.words.get(self.at);
            next.is_some_and(|next| !next.bytes.starts_with(b"-") && next.text() != "!")
        };
        if value.text() == "!" && word_follows() {
            let fault = ParseError::new(
                value.column,
                "`!` must come before the option that it negates",
            );
            return Err(fault.with_hint(Some(format!("write `! {option}`"))));
        }
        Ok((value.text(), value.column))
    }
}

impl LineExtension {
    /// Converts an error of its options to one with a position.
    pub(super) fn parse_error(
        &self,
        error: &OptionError,
        option: &str,
        given: &[GivenOption<'_>],
        origins: &[OptionOrigin],
    ) -> ParseError {
        let name = self.name;
        let position = given.iter().rposition(|one| one.option == error.option);
        let column = position
            .and_then(|position| origins.get(position))
            .map_or(self.column, |origins| {
                origins.columns[error.value.map_or(0, |value| value + 1).min(2)]
            });
        ParseError::new(column, format!("{option} {name}: {error}"))
    }
}

/// Returns `true` if the word is an option that belongs to no extension.
pub(super) fn is_option(word: &BStr) -> bool {
    match word.as_bytes() {
        [b'-', b'-', name @ ..] => {
            let found = options::long(OptionSource::Text, name, [].into_iter());
            matches!(found, Ok(FoundOption::Main(_)))
        }
        [b'-', letter] => options::short(OptionSource::Text, *letter).is_some(),
        _ => false,
    }
}

pub(super) fn unknown_match(name: &BStr, column: usize, family: Family) -> ParseError {
    let known = xt::Match::ALL
        .iter()
        .filter(|spec| spec.families().include(family))
        .flat_map(|spec| spec.names().iter().copied());
    let hint = nearest(name, known).map(|near| format!("did you mean -m {near}?"));
    ParseError::new(column, format!("match `{name}` not found")).with_hint(hint)
}
