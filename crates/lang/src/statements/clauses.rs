//! Clauses: parts of a statement or object that consist of a word and a value, such as `group 5`.

use std::fmt::Display;

use super::prelude::*;

/// Syntax of one clause with a value of type `V`. `key` is its name in JSON.
pub(crate) trait Clause<V> {
    /// Returns the words that begin the clause in text.
    fn words(&self, key: &'static str) -> Vec<&'static str> {
        vec![key]
    }

    /// Parses the rest of the clause; returns whether it replaces an earlier one.
    fn parse(&self, word: &str, value: &mut V, parser: &mut Parser<'_>)
    -> Result<bool, Diagnostic>;

    /// Returns the clause as text; `None` if the value is absent.
    fn text(&self, key: &str, value: &V, options: &Options) -> Option<String>;

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<V, Diagnostic>;

    /// Returns the value as JSON; `None` if it is absent.
    #[cfg(feature = "json")]
    fn json(&self, value: &V, writer: Writer<'_>) -> Option<Expression<'static>>;
}

/// Declares a node that consists of clauses, in the order of the listing.
macro_rules! clauses {
    (
        $(#[$meta:meta])*
        struct $Node:ident, $of:literal {
            $( $(#[$doc:meta])* $field:ident: $Value:ty = $key:literal, $clause:expr; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub(crate) struct $Node {
            $( $(#[$doc])* pub(crate) $field: $Value, )*
        }

        impl $crate::statements::clauses::Clauses for $Node {
            const OF: &'static str = $of;
            #[cfg(feature = "json")]
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn words() -> Vec<&'static str> {
                use $crate::statements::clauses::Clause;
                [$(Clause::<$Value>::words(&$clause, $key)),*].concat()
            }

            fn parse_one(
                &mut self,
                word: &str,
                parser: &mut $crate::parse::parser::Parser<'_>,
            ) -> Result<bool, $crate::parse::Diagnostic> {
                use $crate::statements::clauses::Clause;
                $(
                    if Clause::<$Value>::words(&$clause, $key).contains(&word) {
                        return $clause.parse(word, &mut self.$field, parser);
                    }
                )*
                Ok(false)
            }

            fn texts(&self, options: &$crate::list::Options) -> impl Iterator<Item = String> {
                use $crate::statements::clauses::Clause;
                [$($clause.text($key, &self.$field, options)),*].into_iter().flatten()
            }

            #[cfg(feature = "json")]
            fn read(
                fields: &$crate::json::Fields<'_, '_>,
            ) -> Result<Self, $crate::parse::Diagnostic> {
                use $crate::statements::clauses::Clause;
                Ok(Self { $( $field: $clause.read($key, fields)?, )* })
            }

            #[cfg(feature = "json")]
            fn record(&self, writer: $crate::json::Writer<'_>) -> $crate::json::Record<'static> {
                use $crate::statements::clauses::Clause;
                $crate::json::Record::new()
                    $(.optional($key, $clause.json(&self.$field, writer)))*
            }
        }
    };
}
pub(crate) use clauses;

/// Node that consists of clauses; implemented by [`clauses!`].
pub(crate) trait Clauses: Default {
    /// Name of the node in errors: `a log`.
    const OF: &'static str;
    /// Keys in JSON.
    #[cfg(feature = "json")]
    const KEYS: &'static [&'static str];

    /// Returns the words that begin a clause in text.
    fn words() -> Vec<&'static str>;

    /// Parses the rest of the clause that begins with this word. Returns whether it replaces an earlier clause.
    fn parse_one(&mut self, word: &str, parser: &mut Parser<'_>) -> Result<bool, Diagnostic>;

    /// Returns each clause as text.
    fn texts(&self, options: &Options) -> impl Iterator<Item = String>;

    #[cfg(feature = "json")]
    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic>;

    #[cfg(feature = "json")]
    fn record(&self, writer: Writer<'_>) -> Record<'static>;

    /// Parses clauses in any order. `twice` creates the error that one is repeated, if that is one.
    fn parse_all(
        parser: &mut Parser<'_>,
        twice: impl Fn(Span, &str) -> Option<Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let (mut node, words) = (Self::default(), Self::words());
        loop {
            let start = parser.current.span;
            let Some(word) = parser.eat_any(&words) else {
                return Ok(node);
            };
            if node.parse_one(word, parser)?
                && let Some(diagnostic) = twice(start, word)
            {
                return Err(diagnostic);
            }
        }
    }

    /// Parses one clause of an object's block.
    fn parse_entry(&mut self, parser: &mut Parser<'_>) -> Result<(), Diagnostic> {
        let mut words = Self::words();
        match parser.eat_any(&words) {
            Some(word) => self.parse_one(word, parser).map(|_| ()),
            None => {
                words.push("comment");
                Err(parser.no_entry(Self::OF, &words))
            }
        }
    }

    /// Prints all clauses, each preceded by a blank.
    fn print_all<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        let mut texts = self.texts(printer.options);
        texts.try_for_each(|text| write!(printer.out, " {text}"))
    }
}

/// Object that consists of clauses.
pub(crate) trait ClauseObject: Clauses + Object {
    /// Reads an object of the kernel; `None` if nft's language cannot represent it.
    fn of_data(data: &ObjectData<'_>) -> Option<Self>;
}

/// The value is `null` if the statement has no clauses.
#[cfg(feature = "json")]
impl<N: Clauses + Text> Json for N {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        match node.is_null() {
            true => Ok(Self::default()),
            false => Clauses::read(&Fields::new(node, Self::OF, <Self as Clauses>::KEYS)?),
        }
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        Clauses::record(self, writer).or_null()
    }
}

#[cfg(feature = "json")]
impl<O: ClauseObject> ObjectJson for O {
    const KEYS: &'static [&'static str] = <Self as Clauses>::KEYS;

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Diagnostic> {
        Clauses::read(fields)
    }

    fn record(data: &ObjectData<'_>, writer: Writer<'_>) -> Option<Record<'static>> {
        Some(Clauses::record(&Self::of_data(data)?, writer))
    }
}

/// Clause with a number.
pub(crate) struct Number {
    /// Its name in errors.
    what: &'static str,
    /// Maximum, and the error above it.
    max: (u64, &'static str),
}

impl Number {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            max: (u64::MAX, ""),
        }
    }

    /// Sets the maximum, and the error above it.
    pub(crate) const fn at_most(self, max: u64, error: &'static str) -> Self {
        Self {
            max: (max, error),
            ..self
        }
    }

    fn checked<N: Copy + Into<u64>>(&self, number: N, span: Span) -> Result<N, Diagnostic> {
        match number.into() <= self.max.0 {
            true => Ok(number),
            false => Err(Diagnostic::new(span, self.max.1)),
        }
    }
}

impl<N: Copy + Display + Into<u64> + TryFrom<u64>> Clause<Option<N>> for Number {
    fn parse(
        &self,
        _: &str,
        value: &mut Option<N>,
        parser: &mut Parser<'_>,
    ) -> Result<bool, Diagnostic> {
        let span = parser.current.span;
        let number = parser.number(self.what)?;
        Ok(value.replace(self.checked(number, span)?).is_some())
    }

    fn text(&self, key: &str, value: &Option<N>, _: &Options) -> Option<String> {
        value.map(|number| format!("{key} {number}"))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<Option<N>, Diagnostic> {
        let Some(node) = fields.get(key) else {
            return Ok(None);
        };
        self.checked(node.number(self.what)?, node.span).map(Some)
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &Option<N>, _: Writer<'_>) -> Option<Expression<'static>> {
        value.map(|number| numeric(number.into().into()))
    }
}

/// Clauses that each set a flag. In JSON, they are one list.
pub(crate) struct Flags<F: 'static> {
    /// Name of a JSON flag in errors.
    #[cfg_attr(
        not(feature = "json"),
        expect(dead_code, reason = "only JSON names an unknown flag")
    )]
    pub(crate) what: &'static str,
    /// Words of the flags, in the order of the listing.
    pub(crate) names: &'static [(F, &'static str)],
}

impl<F: bitflags::Flags + Copy> Flags<F> {
    /// Returns the flag of a word; no flag for any other word.
    pub(crate) fn flag(&self, word: &str) -> F {
        let found = self.names.iter().find(|(_, name)| *name == word);
        found.map_or_else(F::empty, |(flag, _)| *flag)
    }

    pub(crate) fn all_words(&self) -> Vec<&'static str> {
        self.names.iter().map(|(_, name)| *name).collect()
    }

    /// Parses words that are separated by commas.
    pub(crate) fn parse_list(&self, parser: &mut Parser<'_>) -> Result<F, Diagnostic> {
        let mut value = F::empty();
        loop {
            value.insert(self.flag(parser.one_of(&self.all_words())?));
            if !parser.eat_sign(",") {
                return Ok(value);
            }
        }
    }

    /// Returns the words of the flags that are set.
    pub(crate) fn set(&self, value: F) -> impl Iterator<Item = &'static str> {
        let set = self
            .names
            .iter()
            .filter(move |(flag, _)| value.contains(*flag));
        set.map(|(_, name)| *name)
    }
}

impl<F: bitflags::Flags + Copy> Clause<F> for Flags<F> {
    fn words(&self, _: &'static str) -> Vec<&'static str> {
        self.all_words()
    }

    fn parse(&self, word: &str, value: &mut F, _: &mut Parser<'_>) -> Result<bool, Diagnostic> {
        let flag = self.flag(word);
        let is_set = value.contains(flag);
        value.insert(flag);
        Ok(is_set)
    }

    fn text(&self, _: &str, value: &F, _: &Options) -> Option<String> {
        let words: Vec<_> = self.set(*value).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    #[cfg(feature = "json")]
    fn read(&self, key: &str, fields: &Fields<'_, '_>) -> Result<F, Diagnostic> {
        let mut value = F::empty();
        for word in fields.words(key, self.what, &self.all_words())? {
            value.insert(self.flag(word));
        }
        Ok(value)
    }

    #[cfg(feature = "json")]
    fn json(&self, value: &F, _: Writer<'_>) -> Option<Expression<'static>> {
        let words: Vec<_> = self.set(*value).map(Expression::word).collect();
        (!words.is_empty()).then_some(Expression::List(words))
    }
}
