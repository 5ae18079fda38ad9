//! Options of extensions: their declarations, their values in a rule's text, and errors.

use std::cell::RefCell;
use std::fmt;

use bstr::{BStr, ByteSlice};

use super::{Family, Names};

/// Number of values after an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Values {
    /// None: it is a flag.
    None,
    /// One, which is optional.
    Optional,
    /// One.
    One,
    /// Two.
    Two,
}

/// Declaration of an extension's option. Names are without leading dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionSpec {
    /// Its name in the text of rules.
    pub name: &'static str,
    /// The name that the extension receives; differs from `name` for an alias.
    pub canonical: &'static str,
    /// Its values.
    pub values: Values,
    /// Whether a preceding `!` may negate it.
    pub inverts: bool,
    /// Whether it may occur more than once.
    pub repeats: bool,
    /// Whether the extension requires it.
    pub required: bool,
    /// It requires one of these options; if empty, it requires none.
    pub needs: &'static [&'static str],
    /// It cannot be combined with any of these options.
    pub excludes: &'static [&'static str],
}

impl OptionSpec {
    const fn with(name: &'static str, values: Values) -> Self {
        Self {
            name,
            canonical: name,
            values,
            inverts: false,
            repeats: false,
            required: false,
            needs: &[],
            excludes: &[],
        }
    }

    /// Declares an option without a value.
    pub(crate) const fn switch(name: &'static str) -> Self {
        Self::with(name, Values::None)
    }

    /// Declares an option with one value.
    pub(crate) const fn one(name: &'static str) -> Self {
        Self::with(name, Values::One)
    }

    /// Declares an option with two values.
    pub(crate) const fn two(name: &'static str) -> Self {
        Self::with(name, Values::Two)
    }

    /// Declares an option with an optional value.
    pub(crate) const fn optional(name: &'static str) -> Self {
        Self::with(name, Values::Optional)
    }

    /// Allows negation by a preceding `!`.
    pub(crate) const fn inverts(mut self) -> Self {
        self.inverts = true;
        self
    }

    /// Allows repetition.
    pub(crate) const fn repeats(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Makes it required.
    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Requires one of these options.
    pub(crate) const fn needs(mut self, options: &'static [&'static str]) -> Self {
        self.needs = options;
        self
    }

    /// Excludes these options.
    pub(crate) const fn excludes(mut self, options: &'static [&'static str]) -> Self {
        self.excludes = options;
        self
    }

    /// Declares an alias: the extension receives the original name.
    pub(crate) const fn or(mut self, alias: &'static str) -> Self {
        self.name = alias;
        self
    }
}

/// A group of related options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionGroup {
    /// Their canonical names.
    pub names: &'static [&'static str],
    /// Whether at least one of them is required.
    pub required: bool,
    /// Whether at most one of them is allowed.
    pub exclusive: bool,
}

impl OptionGroup {
    /// Requires exactly one of them.
    pub(crate) const fn one_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: true,
            exclusive: true,
        }
    }

    /// Requires at least one of them.
    pub(crate) const fn some_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: true,
            exclusive: false,
        }
    }

    /// Allows at most one of them.
    pub(crate) const fn at_most_one_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: false,
            exclusive: true,
        }
    }

    /// Returns the first given option of the group.
    ///
    /// # Errors
    /// None was given. If one is required, [`check`](Self::check) reports that first.
    pub(crate) fn find<'g, 'a>(
        &self,
        given: &'g [GivenOption<'a>],
    ) -> Result<&'g GivenOption<'a>, OptionError> {
        let mut found = given.iter().filter(|one| self.names.contains(&one.option));
        found.next().ok_or_else(|| self.missing())
    }

    fn missing(&self) -> OptionError {
        OptionError::of_all(format!("{} is required", any_of(self.names)))
    }

    /// Checks the number of given options of the group.
    pub(crate) fn check(&self, given: &[GivenOption<'_>]) -> Result<(), OptionError> {
        let mut found = given.iter().filter(|one| self.names.contains(&one.option));
        match (found.next(), found.next()) {
            (None, _) if self.required => Err(self.missing()),
            (Some(first), Some(second)) if self.exclusive => Err(second.excludes(first.option)),
            _ => Ok(()),
        }
    }
}

/// Formats `--a`, `--a or --b`, `--a, --b or --c`.
fn any_of(names: &[&str]) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            text += if at + 1 == names.len() { " or " } else { ", " };
        }
        text += "--";
        text += name;
    }
    text
}

/// A text that was too long, and was truncated where iptables truncates it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TruncatedText {
    /// The option, without dashes.
    pub option: &'static str,
    /// The text's length, in bytes.
    pub length: usize,
    /// Number of remaining bytes.
    pub kept: usize,
}

impl fmt::Display for TruncatedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            option,
            length,
            kept,
        } = self;
        write!(
            f,
            "--{option}: truncated from {length} to {kept} bytes, as iptables does"
        )
    }
}

/// Information about the rule for parsing an extension's options.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The rule's family.
    pub family: Family,
    /// The name of the extension in the rule: its own, or an alias.
    pub name: &'a str,
    /// The rule's protocol (`IPPROTO_*`), if any, and whether it is negated.
    pub protocol: Option<(u8, bool)>,
    /// Whether `-j NFLOG` becomes the nf_tables expression `log`, which allows a longer prefix than
    /// the target's data.
    pub native_log: bool,
    /// The names for values.
    pub names: &'a Names,
    /// Receives truncated texts. If it is `None`, a text that is too long is an error.
    pub truncated: Option<&'a RefCell<Vec<TruncatedText>>>,
}

impl Context<'_> {
    /// Returns the rule's protocol, if it is one of these and not negated.
    pub(crate) fn protocol_among(&self, protocols: &[u8]) -> Option<u8> {
        match self.protocol {
            Some((number, false)) if protocols.contains(&number) => Some(number),
            _ => None,
        }
    }

    /// Truncates a value to `max_length` bytes, where iptables does so.
    pub(crate) fn truncate_value<'v>(
        &self,
        one: &GivenOption<'v>,
        max_length: usize,
    ) -> Result<&'v BStr, OptionError> {
        let value = one.value();
        let Some(kept) = value
            .get(..max_length)
            .filter(|kept| kept.len() < value.len())
        else {
            return Ok(value);
        };
        let length = value.len();
        match self.truncated {
            None => Err(one.error(format!(
                "{length} bytes are too many: at most {max_length} fit"
            ))),
            Some(notes) => {
                notes.borrow_mut().push(TruncatedText {
                    option: one.option,
                    length,
                    kept: max_length,
                });
                Ok(kept.as_bstr())
            }
        }
    }

    /// Checks that the rule matches one protocol, as the kernel requires for this extension.
    pub(crate) fn needs_protocol(&self, number: u8, name: &str) -> Result<(), OptionError> {
        match self.protocol_among(&[number]) {
            Some(_) => Ok(()),
            None => Err(OptionError::of_all(format!("the rule needs `-p {name}`"))),
        }
    }
}

/// An option that was given.
#[derive(Debug, Clone, Copy)]
pub struct GivenOption<'a> {
    /// Its canonical name, without dashes.
    pub option: &'static str,
    /// Whether a `!` precedes it.
    pub invert: bool,
    /// Its first value.
    pub first: Option<&'a BStr>,
    /// Its second value.
    pub second: Option<&'a BStr>,
}

impl<'a> GivenOption<'a> {
    /// Finds the given option of that name.
    pub(crate) fn find<'g>(given: &'g [Self], option: &str) -> Option<&'g Self> {
        given.iter().find(|one| one.option == option)
    }

    /// Returns the flags whose options are given.
    pub(crate) fn flags<F: bitflags::Flags + Copy>(given: &[Self], options: &[(F, &str)]) -> F {
        let mut all = F::empty();
        for (flag, option) in options {
            if Self::find(given, option).is_some() {
                all.insert(*flag);
            }
        }
        all
    }

    /// Finds the given option of that name, which is required.
    pub(crate) fn find_required<'g>(
        given: &'g [Self],
        option: &'static str,
    ) -> Result<&'g Self, OptionError> {
        Self::find(given, option).ok_or_else(|| OptionError::required(option))
    }

    /// Returns the value; empty if there is none.
    pub(crate) fn value(&self) -> &'a BStr {
        self.first.unwrap_or_default()
    }

    /// Returns the second value; empty if there is none.
    pub(crate) fn second(&self) -> &'a BStr {
        self.second.unwrap_or_default()
    }

    /// Returns an error about the option or its first value.
    pub(crate) fn error(&self, reason: impl Into<String>) -> OptionError {
        OptionError {
            option: self.option,
            value: self.first.is_some().then_some(0),
            reason: format!("--{}: {}", self.option, reason.into()),
        }
    }

    /// Returns an error about a combination with another option.
    pub(crate) fn excludes(&self, other: &str) -> OptionError {
        OptionError::with_text(self.option, format!("cannot be used with --{other}"))
    }

    /// Returns an error about the second value.
    pub(crate) fn error_of_second(&self, reason: impl Into<String>) -> OptionError {
        OptionError {
            option: self.option,
            value: Some(1),
            reason: format!("--{}: {}", self.option, reason.into()),
        }
    }
}

/// Error in an extension's options.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OptionError {
    /// The option's canonical name without dashes; empty if the error is not about a single option.
    pub option: &'static str,
    /// Index of the wrong value, from 0; `None` if the option itself is wrong.
    pub value: Option<usize>,
    /// A description of the error and of valid values, including the option's name.
    pub reason: String,
}

crate::debug_as_message!(OptionError);

impl OptionError {
    /// Returns an error about the options as a whole.
    pub(crate) fn of_all(reason: impl Into<String>) -> Self {
        Self {
            option: "",
            value: None,
            reason: reason.into(),
        }
    }

    /// Returns an error about an option or its value.
    pub(crate) fn of(option: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            option,
            value: None,
            reason: format!("--{option}: {reason}"),
        }
    }

    /// Returns an error whose text continues the option's name: `--mark is required`.
    pub(crate) fn with_text(option: &'static str, rest: impl fmt::Display) -> Self {
        Self {
            option,
            value: None,
            reason: format!("--{option} {rest}"),
        }
    }

    /// Returns an error about a missing option.
    pub(crate) fn required(option: &'static str) -> Self {
        Self::with_text(option, "is required")
    }

    /// Returns an error about an option that requires one of these.
    pub(crate) fn needs(option: &'static str, others: &[&str]) -> Self {
        Self::with_text(option, format_args!("needs {}", any_of(others)))
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for OptionError {}
