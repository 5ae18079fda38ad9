//! An extension's options as a rule's text gives them: what there is, what was given, what was
//! wrong.

use std::cell::RefCell;
use std::fmt;

use bstr::{BStr, ByteSlice};

use super::{Family, Names};

/// How many values follow an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Values {
    /// None: it is a switch.
    None,
    /// One, which may be left out.
    Optional,
    /// One.
    One,
    /// Two.
    Two,
}

/// An option that an extension has, without its leading dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionSpec {
    /// Its name as a user writes it.
    pub name: &'static str,
    /// The name under which the extension is told of it: an alias has another than `name`.
    pub canonical: &'static str,
    /// What follows it.
    pub values: Values,
    /// Whether it may be negated by a `!` before it.
    pub inverts: bool,
    /// Whether it may stand more than once.
    pub repeats: bool,
    /// Whether the extension means nothing without it.
    pub required: bool,
    /// It may only be given together with one of these; with none, alone.
    pub needs: &'static [&'static str],
    /// It may not be given together with any of these.
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

    /// An option without a value.
    pub(crate) const fn switch(name: &'static str) -> Self {
        Self::with(name, Values::None)
    }

    /// An option with one value.
    pub(crate) const fn one(name: &'static str) -> Self {
        Self::with(name, Values::One)
    }

    /// An option with two values.
    pub(crate) const fn two(name: &'static str) -> Self {
        Self::with(name, Values::Two)
    }

    /// An option with a value that may be left out.
    pub(crate) const fn optional(name: &'static str) -> Self {
        Self::with(name, Values::Optional)
    }

    /// The same, negated by a `!` before it.
    pub(crate) const fn inverts(mut self) -> Self {
        self.inverts = true;
        self
    }

    /// The same; it may stand more than once.
    pub(crate) const fn repeats(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// The same; it must be there.
    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same, given only together with one of these.
    pub(crate) const fn needs(mut self, options: &'static [&'static str]) -> Self {
        self.needs = options;
        self
    }

    /// The same, never given together with one of these.
    pub(crate) const fn excludes(mut self, options: &'static [&'static str]) -> Self {
        self.excludes = options;
        self
    }

    /// The same under another name: the extension hears of it as the first.
    pub(crate) const fn or(mut self, alias: &'static str) -> Self {
        self.name = alias;
        self
    }
}

/// Options of an extension that are ways of saying one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OptionGroup {
    /// Their canonical names.
    pub names: &'static [&'static str],
    /// Whether one of them must be there.
    pub required: bool,
    /// Whether no two of them may be.
    pub exclusive: bool,
}

impl OptionGroup {
    /// One of them is required, and no two.
    pub(crate) const fn one_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: true,
            exclusive: true,
        }
    }

    /// One of them is required, or several.
    pub(crate) const fn some_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: true,
            exclusive: false,
        }
    }

    /// None of them is required, and no two go together.
    pub(crate) const fn at_most_one_of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            required: false,
            exclusive: true,
        }
    }

    /// The first of them that was given.
    ///
    /// # Errors
    /// None was: [`check`](Self::check) says so before, if one is required.
    pub(crate) fn find<'g, 'a>(
        &self,
        given: &'g [Given<'a>],
    ) -> Result<&'g Given<'a>, OptionError> {
        let mut found = given.iter().filter(|one| self.names.contains(&one.option));
        found.next().ok_or_else(|| self.missing())
    }

    fn missing(&self) -> OptionError {
        OptionError::of_all(format!("{} is required", any_of(self.names)))
    }

    /// Checks that as many of them were given as may be.
    pub(crate) fn check(&self, given: &[Given<'_>]) -> Result<(), OptionError> {
        let mut found = given.iter().filter(|one| self.names.contains(&one.option));
        match (found.next(), found.next()) {
            (None, _) if self.required => Err(self.missing()),
            (Some(first), Some(second)) if self.exclusive => Err(second.excludes(first.option)),
            _ => Ok(()),
        }
    }
}

/// `--a`, `--a or --b`, `--a, --b or --c`
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

/// A text that was longer than there is room for, and was cut where iptables cuts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shortened {
    /// The option, without dashes.
    pub option: &'static str,
    /// The text's length, in bytes.
    pub length: usize,
    /// How many bytes of it are kept.
    pub kept: usize,
}

impl fmt::Display for Shortened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            option,
            length,
            kept,
        } = self;
        write!(
            f,
            "--{option}: it has {length} bytes; as iptables does, only the first {kept} are kept"
        )
    }
}

/// What an extension may want to know about the rule that it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The rule's family.
    pub family: Family,
    /// The name under which the extension was asked for: its own, or an alias.
    pub name: &'a str,
    /// The rule's protocol (`IPPROTO_*`), if it has one, and whether that is negated.
    pub protocol: Option<(u8, bool)>,
    /// Whether `-j NFLOG` becomes nf_tables' expression `log`, which has room for a longer prefix than
    /// the target's data.
    pub native_log: bool,
    /// The names that values may have.
    pub names: &'a Names,
    /// Where it is noted that a text is cut. Without it, a text that is too long is refused.
    pub shortened: Option<&'a RefCell<Vec<Shortened>>>,
}

impl Context<'_> {
    /// The rule's protocol, if it is one of these and not negated.
    pub(crate) fn protocol_among(&self, protocols: &[u8]) -> Option<u8> {
        match self.protocol {
            Some((number, false)) if protocols.contains(&number) => Some(number),
            _ => None,
        }
    }

    /// A value that iptables cuts where there is no more room than for so many bytes.
    pub(crate) fn shorten<'v>(
        &self,
        one: &Given<'v>,
        room: usize,
    ) -> Result<&'v BStr, OptionError> {
        let value = one.value();
        let Some(kept) = value.get(..room).filter(|kept| kept.len() < value.len()) else {
            return Ok(value);
        };
        let length = value.len();
        match self.shortened {
            None => Err(one.error(format!("{length} bytes are too many: at most {room} fit"))),
            Some(notes) => {
                notes.borrow_mut().push(Shortened {
                    option: one.option,
                    length,
                    kept: room,
                });
                Ok(kept.as_bstr())
            }
        }
    }

    /// Says that the rule must be for one protocol, as the kernel wants it for this extension.
    pub(crate) fn needs_protocol(&self, number: u8, name: &str) -> Result<(), OptionError> {
        match self.protocol_among(&[number]) {
            Some(_) => Ok(()),
            None => Err(OptionError::of_all(format!("the rule needs `-p {name}`"))),
        }
    }
}

/// An option that was given.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Its canonical name, without dashes.
    pub option: &'static str,
    /// Whether a `!` stood before it.
    pub invert: bool,
    /// Its first value.
    pub first: Option<&'a BStr>,
    /// Its second value.
    pub second: Option<&'a BStr>,
}

impl<'a> Given<'a> {
    /// The option of that name among those that were given.
    pub(crate) fn find<'g>(given: &'g [Self], option: &str) -> Option<&'g Self> {
        given.iter().find(|one| one.option == option)
    }

    /// The flags whose options are given.
    pub(crate) fn flags<F: bitflags::Flags + Copy>(given: &[Self], options: &[(F, &str)]) -> F {
        let mut all = F::empty();
        for (flag, option) in options {
            if Self::find(given, option).is_some() {
                all.insert(*flag);
            }
        }
        all
    }

    /// The same, for one that must be there.
    pub(crate) fn need<'g>(
        given: &'g [Self],
        option: &'static str,
    ) -> Result<&'g Self, OptionError> {
        Self::find(given, option).ok_or_else(|| OptionError::required(option))
    }

    /// The value; empty if there is none.
    pub(crate) fn value(&self) -> &'a BStr {
        self.first.unwrap_or_default()
    }

    /// The second value; empty if there is none.
    pub(crate) fn second(&self) -> &'a BStr {
        self.second.unwrap_or_default()
    }

    /// Says that the option, or its first value, is wrong.
    pub(crate) fn error(&self, reason: impl Into<String>) -> OptionError {
        OptionError {
            option: self.option,
            value: self.first.is_some().then_some(0),
            reason: format!("--{}: {}", self.option, reason.into()),
        }
    }

    /// Says that it was given together with another one, and may not be.
    pub(crate) fn excludes(&self, other: &str) -> OptionError {
        OptionError::saying(self.option, format!("cannot be used with --{other}"))
    }

    /// Says that the second value is wrong.
    pub(crate) fn error_of_second(&self, reason: impl Into<String>) -> OptionError {
        OptionError {
            option: self.option,
            value: Some(1),
            reason: format!("--{}: {}", self.option, reason.into()),
        }
    }
}

/// What is wrong with an extension's options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OptionError {
    /// The option's canonical name without dashes; empty if it is none in particular.
    pub option: &'static str,
    /// Which of its values is wrong, from 0; `None` if it is the option itself.
    pub value: Option<usize>,
    /// What is wrong, and what would be right; it names the option.
    pub reason: String,
}

impl OptionError {
    /// The options together are wrong.
    pub(crate) fn of_all(reason: impl Into<String>) -> Self {
        Self {
            option: "",
            value: None,
            reason: reason.into(),
        }
    }

    /// The option, or what it says, is wrong.
    pub(crate) fn of(option: &'static str, reason: impl fmt::Display) -> Self {
        Self {
            option,
            value: None,
            reason: format!("--{option}: {reason}"),
        }
    }

    /// What is said of the option goes on as a sentence: `--mark is required`.
    pub(crate) fn saying(option: &'static str, rest: impl fmt::Display) -> Self {
        Self {
            option,
            value: None,
            reason: format!("--{option} {rest}"),
        }
    }

    /// The option must be there.
    pub(crate) fn required(option: &'static str) -> Self {
        Self::saying(option, "is required")
    }

    /// The option means nothing without one of these.
    pub(crate) fn needs(option: &'static str, others: &[&str]) -> Self {
        Self::saying(option, format_args!("needs {}", any_of(others)))
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for OptionError {}
