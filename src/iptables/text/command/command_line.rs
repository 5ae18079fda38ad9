//! The parts of a command line that a line of a text does not have: the table, and listings.

use std::time::Duration;

use bstr::{BStr, ByteSlice};

use super::names::check_optional;
use super::{Command, ExtensionSpec, Parser, Verb};
use crate::Retry;
use crate::iptables::text::options::{Main, implied_by};
use crate::iptables::text::{ParseError, Word};
use crate::xt::{self, Family, Names, value};

/// The options of a program's command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::iptables) struct CommandLineOptions {
    /// `-t`
    pub(in crate::iptables) table: Option<String>,
    /// `-L` or `-S`
    pub(in crate::iptables) listing: Option<Listing>,
    /// `-Z` without a number, together with a listing: resets the counters after printing them.
    pub(in crate::iptables) zero: bool,
    /// `-n`
    pub(in crate::iptables) numeric: bool,
    /// `-x`
    pub(in crate::iptables) exact: bool,
    /// `-v`
    pub(in crate::iptables) verbose: bool,
    /// `--line-numbers`
    pub(in crate::iptables) line_numbers: bool,
    /// `-w`
    pub(in crate::iptables) wait: Wait,
    /// `-h`
    pub(in crate::iptables) help: bool,
    /// The help of `-h` for the extensions before it.
    pub(in crate::iptables) extensions: String,
    /// `-V`
    pub(in crate::iptables) version: bool,
    /// Whether `-W` is given.
    pub(in crate::iptables) wait_interval: bool,
}

/// How long to wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::iptables) enum Wait {
    /// Not at all.
    #[default]
    No,
    /// As long as it takes.
    Forever,
    /// No longer than this.
    For(Duration),
}

/// A listing of the chain, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::iptables) struct Listing {
    /// Prints rules (`-S`) instead of columns (`-L`).
    pub(in crate::iptables) as_rules: bool,
    /// Only the rule with this number, from 1.
    pub(in crate::iptables) number: Option<usize>,
}

impl Wait {
    /// Returns how long to retry.
    pub(in crate::iptables) const fn retry_policy(self) -> Retry {
        match self {
            Self::No => Retry::ONCE,
            Self::Forever => Retry::FOREVER,
            Self::For(time) => Retry::within(time),
        }
    }

    /// Parses a number of seconds.
    pub(in crate::iptables) fn parse(seconds: &BStr) -> Result<Self, &'static str> {
        let seconds = value::decimal(seconds).map_err(|_| "wait seconds not numeric")?;
        Ok(match seconds {
            0 => Self::Forever,
            seconds => Self::For(Duration::from_secs(seconds)),
        })
    }
}

impl Command {
    /// Parses the words after a program's name. For a listing, the command changes nothing
    /// and has the chain.
    pub(in crate::iptables) fn cmdline(
        family: Family,
        native_log: bool,
        names: &Names,
        words: &[Word<'_>],
    ) -> Result<(Self, CommandLineOptions), ParseError> {
        let mut command = Self::none();
        let is_chain = |_: &BStr| false;
        let mut parser = Parser::new(family, names, words, &is_chain, &mut command.spec);
        parser.native_log = native_log;
        parser.truncated = Some(Default::default());
        parser.cmdline = Some(CommandLineOptions::default());
        (command.verb, command.chain) = parser.parse()?;
        command.for_other_family = parser.for_other_family;
        let cmdline = parser.cmdline.take().unwrap_or_default();
        Ok((command, cmdline))
    }
}

impl CommandLineOptions {
    /// Returns `true` if the rule or change of the command is ignored.
    pub(super) const fn lists_instead(&self) -> bool {
        self.listing.is_some() || self.help || self.version
    }

    /// Rejects combinations that are not allowed.
    pub(super) fn check(
        &mut self,
        verb: Option<&Verb>,
        has_rule: bool,
        end: usize,
    ) -> Result<(), ParseError> {
        let fault = |message: String| Err(ParseError::new(end, message));
        if self.help || self.version {
            return Ok(());
        }
        if self.wait_interval && self.wait == Wait::No {
            return fault("--wait-interval only makes sense with --wait".to_owned());
        }
        match (self.listing, verb) {
            (Some(_), Some(Verb::Zero(number))) => {
                // A single rule's counters are reset, and nothing is listed.
                match number {
                    Some(_) => self.listing = None,
                    None => self.zero = true,
                }
            }
            (Some(_), Some(_)) => {
                return fault("-L and -S cannot be combined with another command".to_owned());
            }
            (Some(_), None) if has_rule => return fault("-L and -S take no rule".to_owned()),
            _ => {}
        }
        let columns = [
            (self.numeric, "-n"),
            (self.exact, "-x"),
            (self.line_numbers, "--line-numbers"),
        ];
        let only_listing = columns.into_iter().find(|(given, _)| *given);
        let in_columns = self.listing.is_some_and(|listing| !listing.as_rules);
        match only_listing {
            Some((_, option)) if !in_columns && verb.is_some() | self.listing.is_some() => {
                fault(format!("Illegal option `{option}' with this command"))
            }
            _ => Ok(()),
        }
    }
}

impl<'p, 'a> Parser<'p, 'a> {
    /// Parses an option of the command line.
    pub(super) fn program(
        &mut self,
        main: Main,
        word: &'p Word<'a>,
        attached: Option<(&'p [u8], usize)>,
    ) -> Result<(), ParseError> {
        let fault = |message: &str| ParseError::new(word.column, message);
        if main.is_flag() && attached.is_some() {
            return Err(fault("this option takes no value"));
        }
        let value = match main {
            Main::Table | Main::WaitInterval | Main::Modprobe => Some(self.value(word, attached)?),
            Main::Wait | Main::List | Main::ListRules => {
                if attached.is_some() || self.a_value_follows() {
                    Some(self.value(word, attached)?)
                } else {
                    None
                }
            }
            _ => None,
        };
        if let (Main::List | Main::ListRules, Some((chain, column))) = (main, value) {
            check_optional(chain, column)?;
            self.chain = Some(chain.to_owned());
        }
        let number = match (main, value) {
            (Main::List | Main::ListRules, Some(_)) if self.a_value_follows() => {
                let number = self.place()?;
                if number.is_none() {
                    let next = self.words.get(self.at).map(Word::text).unwrap_or_default();
                    return Err(fault(&format!("Invalid rule number `{next}'")));
                }
                number
            }
            _ => None,
        };
        let extensions = match main {
            Main::Help => self.help_of_extensions(),
            _ => String::new(),
        };
        let Some(cmdline) = &mut self.cmdline else {
            return Err(fault("it can only be used on the command line"));
        };
        match main {
            Main::List | Main::ListRules => {
                let listing = Listing {
                    as_rules: main == Main::ListRules,
                    number,
                };
                if cmdline.listing.replace(listing).is_some() {
                    return Err(fault("a table can only be listed once"));
                }
            }
            Main::Table => {
                cmdline.table = value.map(|(name, _)| name.to_str_lossy().into_owned());
            }
            Main::Numeric => cmdline.numeric = true,
            Main::Exact => cmdline.exact = true,
            Main::Verbose => cmdline.verbose = true,
            Main::LineNumbers => cmdline.line_numbers = true,
            Main::Help => {
                cmdline.help = true;
                cmdline.extensions = extensions;
            }
            Main::Version => cmdline.version = true,
            Main::WaitInterval => cmdline.wait_interval = true,
            Main::Wait => {
                cmdline.wait = match value {
                    None => Wait::Forever,
                    Some((seconds, column)) => {
                        Wait::parse(seconds).map_err(|message| ParseError::new(column, message))?
                    }
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the help for the target, and for the matches or else the protocol's match.
    fn help_of_extensions(&self) -> String {
        let family = self.family;
        let (mut targets, mut matches) = (String::new(), String::new());
        for loaded in &self.line_options.extensions {
            match loaded.which {
                ExtensionSpec::Target(spec) => targets += &spec.help("target", loaded.name, family),
                ExtensionSpec::Match(spec) => matches += &spec.help("match", loaded.name, family),
            }
        }
        let protocol = self.spec.rule.protocol;
        if matches.is_empty()
            && let Some(name) = protocol.and_then(|of| implied_by(of.number, family))
            && let Some(spec) = xt::Match::named(family, name.as_bytes())
        {
            matches = spec.help("match", name, family);
        }
        targets + &matches
    }

    /// Returns `true` if the next word can be a value, that is, not an option.
    fn a_value_follows(&self) -> bool {
        let next = self.words.get(self.at);
        next.is_some_and(|next| !next.bytes.starts_with(b"-") && next.text() != "!")
    }
}
