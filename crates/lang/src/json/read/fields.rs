//! What an object of a document has for its keys.

use super::node::{Key, Kind, Node};
use crate::parse::Fault;
use crate::parse::error::shown;
use crate::syntax::{Place, Symbol};

/// The entries of an object, all of them of keys that are known.
pub(super) struct Fields<'n, 't> {
    entries: &'n [(Key<'t>, Node<'t>)],
    place: Place,
}

impl<'n, 't> Fields<'n, 't> {
    /// Those of an object that may have these; `of` is what it is.
    pub(super) fn new(node: &'n Node<'t>, of: &str, known: &[&str]) -> Result<Self, Fault> {
        let Kind::Object(entries) = &node.kind else {
            return Err(node.wrong([&*format!("{of} as an object")]));
        };
        for (key, _) in entries {
            if !known.contains(&&*key.text) {
                let message = format!("`{}` does not stand in {of}", shown(&key.text));
                return Err(Fault::new(key.place, message)
                    .expecting(known)
                    .nearest_to(&key.text));
            }
        }
        Ok(Self {
            entries,
            place: node.place,
        })
    }

    /// What it has for a key; null says nothing.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'t>> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(known, _)| known.text == key);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// What must be there.
    pub(super) fn need(&self, key: &str) -> Result<&'n Node<'t>, Fault> {
        self.get(key).ok_or_else(|| self.missing(key))
    }

    pub(super) fn missing(&self, key: &str) -> Fault {
        Fault::new(self.place, format!("`{key}` is missing"))
    }

    /// A number, if it is there; `what` is what it says.
    pub(super) fn number<N: TryFrom<u64>>(
        &self,
        key: &str,
        what: &str,
    ) -> Result<Option<N>, Fault> {
        self.get(key).map(|node| node.number(what)).transpose()
    }

    /// Whether something is so: not, if nothing is said.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        match self.get(key).map(|node| (&node.kind, node)) {
            None => Ok(false),
            Some((Kind::Bool(flag), _)) => Ok(*flag),
            Some((_, node)) => Err(node.wrong(["true", "false"])),
        }
    }

    /// One of these words, if it is there; `what` is said of any other.
    pub(super) fn word<'w>(
        &self,
        key: &str,
        what: &str,
        words: &[&'w str],
    ) -> Result<Option<&'w str>, Fault> {
        self.get(key).map(|node| node.word(what, words)).transpose()
    }

    /// Several of these words, or one without a list.
    pub(super) fn words<'w>(
        &self,
        key: &str,
        what: &str,
        words: &[&'w str],
    ) -> Result<Vec<&'w str>, Fault> {
        let all = self.get(key).map_or(&[][..], Node::one_or_many);
        all.iter().map(|node| node.word(what, words)).collect()
    }
}

impl<'t> Node<'t> {
    /// That it is something else than what belongs there.
    pub(super) fn wrong<W: AsRef<str>>(&self, expected: impl IntoIterator<Item = W>) -> Fault {
        let found = match &self.kind {
            Kind::Null => "null".to_owned(),
            Kind::Bool(flag) => flag.to_string(),
            Kind::Number(number) => number.to_string(),
            Kind::Negative(number) => format!("-{number}"),
            Kind::OtherNumber => "this number".to_owned(),
            Kind::Text(text) => format!("\"{}\"", shown(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Object(_) => "an object".to_owned(),
        };
        let message = format!("{found} does not belong here");
        Fault::new(self.place, message).expecting(expected)
    }

    /// Characters; `what` is what they say.
    pub(super) fn text(&self, what: &str) -> Result<&str, Fault> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong([&*format!("{what} in quotation marks")])),
        }
    }

    /// Characters that the kernel keeps: none that stand for bytes that JSON cannot hold.
    pub(super) fn kept(&self, what: &str) -> Result<&str, Fault> {
        let text = self.text(what)?;
        match text.contains(char::REPLACEMENT_CHARACTER) {
            true => {
                let message = format!("{what} has bytes that JSON cannot hold");
                Err(Fault::new(self.place, message))
            }
            false => Ok(text),
        }
    }

    pub(super) fn number<N: TryFrom<u64>>(&self, what: &str) -> Result<N, Fault> {
        match self.kind {
            Kind::Number(number) => N::try_from(number).map_err(|_| {
                let largest = u128::MAX >> (128 - 8 * size_of::<N>());
                let message = format!("{number} is too large: {what} is at most {largest}");
                Fault::new(self.place, message)
            }),
            _ => Err(self.wrong([what])),
        }
    }

    /// A number that nft writes as negative where it is more than it reads.
    pub(super) fn count(&self, what: &str) -> Result<u64, Fault> {
        match self.kind {
            Kind::Negative(number) => match 0_i64.checked_sub_unsigned(number) {
                Some(negative) => Ok(negative.cast_unsigned()),
                None => Err(self.wrong([what])),
            },
            _ => self.number(what),
        }
    }

    /// The same of 32 bits.
    pub(super) fn small_count(&self, what: &str) -> Result<u32, Fault> {
        match self.kind {
            Kind::Negative(number) => {
                match 0_i32.checked_sub_unsigned(number.try_into().unwrap_or(u32::MAX)) {
                    Some(negative) => Ok(negative.cast_unsigned()),
                    None => Err(self.wrong([what])),
                }
            }
            _ => self.number(what),
        }
    }

    pub(super) fn word<'w>(&self, what: &str, words: &[&'w str]) -> Result<&'w str, Fault> {
        let Kind::Text(text) = &self.kind else {
            return Err(self.wrong(words));
        };
        let found = words.iter().copied().find(|word| word == text);
        found.ok_or_else(|| self.unknown(what, words))
    }

    /// That it is none of the words that stand here.
    pub(super) fn unknown<W: AsRef<str>>(
        &self,
        what: &str,
        known: impl IntoIterator<Item = W>,
    ) -> Fault {
        let Kind::Text(text) = &self.kind else {
            return self.wrong(known);
        };
        Fault::new(self.place, format!("`{}` is {what}", shown(text)))
            .expecting(known)
            .nearest_to(text)
    }

    /// The entries of a list, or itself.
    pub(super) fn one_or_many(&self) -> &[Self] {
        match &self.kind {
            Kind::List(entries) => entries,
            _ => std::slice::from_ref(self),
        }
    }

    /// The entries of a list.
    pub(super) fn list(&self, what: &str) -> Result<&[Self], Fault> {
        match &self.kind {
            Kind::List(entries) => Ok(entries),
            _ => Err(self.wrong([&*format!("a list of {what}")])),
        }
    }

    /// The one entry of an object.
    pub(super) fn tagged(&self, what: &str) -> Result<(&Key<'t>, &Self), Fault> {
        match &self.kind {
            Kind::Object(entries) => match &entries[..] {
                [(key, value)] => Ok((key, value)),
                [] => Err(Fault::new(
                    self.place,
                    format!("this object is empty: it has one key, which says what {what} it is"),
                )),
                [_, (second, _), ..] => Err(Fault::new(
                    second.place,
                    format!("a second key: an object has one, which says what {what} it is"),
                )),
            },
            _ => Err(self.wrong([&*format!("{what} as an object")])),
        }
    }

    pub(super) const fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Whether nothing more is said: null, or an object without keys.
    pub(super) const fn is_bare(&self) -> bool {
        match &self.kind {
            Kind::Null => true,
            Kind::Object(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// A constant: what it stands for is known later.
    pub(super) fn symbol(&self, what: &str) -> Result<Symbol, Fault> {
        let text = match &self.kind {
            Kind::Text(text) => (**text).into(),
            Kind::Number(number) => number.to_string().into(),
            Kind::Negative(number) => format!("-{number}").into(),
            // As text has it.
            Kind::Bool(true) => "exists".into(),
            Kind::Bool(false) => "missing".into(),
            _ => return Err(self.wrong([what])),
        };
        Ok(Symbol {
            text,
            is_quoted: false,
            place: self.place,
        })
    }
}

impl Key<'_> {
    /// From the key to the end of what it has.
    pub(super) const fn place_with(&self, value: &Node<'_>) -> Place {
        Place {
            end: value.place.end,
            ..self.place
        }
    }
}
