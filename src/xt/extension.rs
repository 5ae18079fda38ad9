//! What every extension can do, and the registry's machinery.
//!
//! Long, because the macro that makes matches and targets of the registry's lines has a part for each thing that can
//! be done with them.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use super::difference::Difference;
use super::option::{Context, Given, OptionError, OptionGroup, OptionSpec, Values};
use super::sets::{SetId, UnresolvedSet};
use super::text::Text;

thread_local! {
    /// Memory in which extensions are written to be compared: there are many, and each has but a few bytes.
    static WRITTEN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The address families that extensions tell apart, and that iptables has tables of.
///
/// [`legacy::Family`](crate::legacy::Family) has ARP as well, [`nft::Family`](crate::nft::Family) all that nf_tables
/// has; this becomes either by `From`, and either this by `TryFrom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// Both families.
    pub const ALL: [Self; 2] = [Self::Ipv4, Self::Ipv6];
}

impl fmt::Display for Family {
    /// `IPv4` or `IPv6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

/// The families that an extension is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Families {
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Both.
    Both,
}

impl Families {
    /// Whether the family is among them.
    #[must_use]
    pub const fn include(self, family: Family) -> bool {
        matches!(
            (self, family),
            (Self::Both, _) | (Self::Ipv4, Family::Ipv4) | (Self::Ipv6, Family::Ipv6)
        )
    }
}

/// How `iptables -L` shows rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListStyle {
    /// The rule's family.
    pub family: Family,
    /// The rule's protocol, for the names of ports.
    pub protocol: Option<u8>,
    /// With numbers in the place of names (`-n`).
    pub numeric: bool,
}

/// The typed value of an extension.
pub(super) trait Extension: Sized {
    /// The extension's name in the kernel.
    const NAME: &'static str;
    /// The names by which rules ask for it: its own, and aliases.
    const NAMES: &'static [&'static str] = &[Self::NAME];
    /// The revision that is written.
    const REVISION: u8;
    /// The families that have it.
    const FAMILIES: Families = Families::Both;
    /// Its options.
    const OPTIONS: &'static [OptionSpec];
    /// Which of them are ways of saying one thing.
    const GROUPS: &'static [OptionGroup] = &[];
    /// Where it differs from iptables on purpose.
    const DIFFERENCES: &'static [Difference] = &[];
    /// Of a match: whether it does more than look at the packet, because it remembers, counts, marks
    /// or logs. Its place among the rule's matches counts then. Targets leave this alone.
    const HAS_EFFECTS: bool = false;

    /// Its options when it is asked for by that name.
    fn options(_name: &str) -> &'static [OptionSpec] {
        Self::OPTIONS
    }

    /// The names that a value of its options can be, for who asks for help: a heading, and a line for each.
    fn names_of_values(_family: Family) -> Vec<String> {
        Vec::new()
    }

    /// The revision that is written for that family.
    fn revision(_family: Family) -> u8 {
        Self::REVISION
    }

    /// Reads the extension's data; `None` if it says something that the value cannot say.
    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self>;

    /// The extension's data of revision [`Self::revision`], without padding.
    ///
    /// # Errors
    /// The data has no room for what the option says. Nothing is ever cut.
    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError>;

    /// Adds the same to these bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_to(&self, family: Family, info: &mut Vec<u8>) -> Result<(), OptionError> {
        info.extend_from_slice(&self.write(family)?);
        Ok(())
    }

    /// Whether the value says all that the data holds: it is written back as the same bytes, unless it
    /// was read from another revision.
    fn says_all(&self, family: Family, revision: u8, info: &[u8]) -> bool {
        if revision != Self::revision(family) {
            return true;
        }
        let mut written = WRITTEN.take();
        written.clear();
        let same = self.write_to(family, &mut written).is_ok() && info.starts_with(&written);
        WRITTEN.set(written);
        same
    }

    /// The value that these options say. Each option is known, stands no more often, is negated no
    /// otherwise and stands with no others than its [`OptionSpec`] and [`Self::GROUPS`] say, and required
    /// ones are there.
    ///
    /// # Errors
    /// A value or a combination of options that has no meaning.
    fn parse(context: &Context<'_>, given: &[Given<'_>]) -> Result<Self, OptionError>;

    /// The name under which `iptables-save` shows it.
    fn shown_name(&self) -> &'static str {
        Self::NAME
    }

    /// Adds the options as `iptables-save` prints them, each with a blank before it.
    fn print(&self, text: &mut Text);

    /// Adds it as `iptables -L` shows it, with a blank before it: by default its name and its options.
    fn list(&self, text: &mut Text, _style: ListStyle) {
        text.word(self.shown_name());
        self.print(text);
    }

    /// The sets that it names. With one that has no index it is not written.
    fn sets(&self) -> impl Iterator<Item = &SetId> {
        std::iter::empty()
    }

    /// The same, to be changed.
    fn sets_mut(&mut self) -> impl Iterator<Item = &mut SetId> {
        std::iter::empty()
    }
}

/// An extension that has no typed value here: kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Opaque {
    /// The extension's name.
    pub name: String,
    /// Its revision.
    pub revision: u8,
    /// Its data, padding included.
    pub info: Vec<u8>,
}

impl fmt::Display for Opaque {
    /// In the form that `chainwright`'s own restore takes: the real tools know no such options, and
    /// refuse what they cannot understand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} --xt-revision {} --xt-data ",
            self.name, self.revision
        )?;
        if self.info.is_empty() {
            return f.write_str("\"\"");
        }
        self.info
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why an extension cannot go into the kernel as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Hash)]
#[non_exhaustive]
pub enum EncodeError {
    /// It names a set that was not looked up.
    #[error(transparent)]
    UnresolvedSet(#[from] UnresolvedSet),
    /// Its data has no room for what it says.
    #[error("{name}: {error}")]
    Option {
        /// The extension's name.
        name: &'static str,
        /// The option, what it says, and what there is room for.
        error: OptionError,
    },
}

/// An extension's name, revision and data, as they go into the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Encoded<'a> {
    /// The extension's name.
    pub name: &'a str,
    /// Its revision.
    pub revision: u8,
    /// Its data, padded to 8 bytes.
    pub info: Cow<'a, [u8]>,
}

/// What there is to know of an extension before it has a value: a line of the registry.
pub struct Spec<T: 'static> {
    pub(super) names: &'static [&'static str],
    pub(super) families: Families,
    pub(super) options: fn(&str) -> &'static [OptionSpec],
    pub(super) names_of_values: fn(Family) -> Vec<String>,
    pub(super) groups: &'static [OptionGroup],
    pub(super) differences: &'static [Difference],
    pub(super) read: fn(Family, u8, &[u8]) -> Option<T>,
    pub(super) parse: fn(&Context<'_>, &[Given<'_>]) -> Result<T, OptionError>,
}

/// Extensions by the lengths of their names. Most names that are looked up are chains', which are
/// longer than all of them.
pub(super) struct ByName<T: 'static>([Vec<(&'static str, &'static Spec<T>)>; 32]);

impl<T> ByName<T> {
    pub(super) fn new(all: &'static [Spec<T>]) -> Self {
        let mut by_length = [const { Vec::new() }; 32];
        for spec in all {
            for name in spec.names {
                // `XT_EXTENSION_MAXNAMELEN` is less.
                if let Some(place) = by_length.get_mut(name.len()) {
                    place.push((*name, spec));
                }
            }
        }
        Self(by_length)
    }

    pub(super) fn find(&self, family: Family, name: &[u8]) -> Option<&'static Spec<T>> {
        let first = name.first();
        let is_it = |(known, spec): &&(&str, &Spec<T>)| {
            let known = known.as_bytes();
            known.first() == first && known == name && spec.families.include(family)
        };
        let found = self.0.get(name.len())?.iter().find(is_it);
        found.map(|(_, spec)| *spec)
    }
}

impl<T> Spec<T> {
    /// The names by which rules ask for it: its own first.
    #[must_use]
    pub const fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// The families that have it.
    #[must_use]
    pub const fn families(&self) -> Families {
        self.families
    }

    /// Where it differs from iptables on purpose.
    #[must_use]
    pub const fn differences(&self) -> &'static [Difference] {
        self.differences
    }

    /// Its options when it is asked for by that name.
    #[must_use]
    pub fn options(&self, name: &str) -> &'static [OptionSpec] {
        (self.options)(name)
    }

    /// What `iptables -h` prints of it as a match or a target of that name: its options, and the names that their values can
    /// be.
    pub(crate) fn help(&self, kind: &str, name: &str, family: Family) -> String {
        let mut text = format!("\n{name} {kind} options:\n");
        for option in self.options(name) {
            let sign = if option.inverts { "[!] " } else { "    " };
            let value = match option.values {
                Values::None => "",
                Values::Optional => " [value]",
                Values::One => " value",
                Values::Two => " value value",
            };
            text.push_str(&format!("{sign}--{}{value}\n", option.name));
        }
        for line in (self.names_of_values)(family) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Which of its options are ways of saying one thing, when it is asked for by that name.
    pub fn groups(&self, name: &str) -> impl Iterator<Item = &'static OptionGroup> {
        groups_among(self.groups, self.options(name))
    }

    /// The value that these options say.
    ///
    /// # Errors
    /// An option that it does not have, that stands too often, beside another that it excludes or without
    /// one that it needs, is negated though it cannot be, or is missing; a value or a combination that has no meaning.
    pub fn parse(&self, context: &Context<'_>, given: &[Given<'_>]) -> Result<T, OptionError> {
        check(self.options(context.name), self.groups, given)?;
        (self.parse)(context, given)
    }
}

/// Checks options that were given against the table of options.
pub(super) fn check(
    options: &'static [OptionSpec],
    groups: &'static [OptionGroup],
    given: &[Given<'_>],
) -> Result<(), OptionError> {
    for (position, one) in given.iter().enumerate() {
        let Some(spec) = options.iter().find(|spec| same(spec.canonical, one.option)) else {
            return Err(OptionError::saying(one.option, "is not one of its options"));
        };
        if one.invert && !spec.inverts {
            return Err(OptionError::saying(one.option, "cannot be negated"));
        }
        // The first one that stands there again ends it, so that this is no long search.
        let mut before = given[..position].iter();
        if !spec.repeats && before.any(|other| other.option == one.option) {
            return Err(OptionError::saying(one.option, "can be given only once"));
        }
        let is_there = |other: &&&str| Given::find(given, other).is_some();
        if let Some(other) = spec.excludes.iter().find(is_there) {
            return Err(one.excludes(other));
        }
        if !spec.needs.is_empty() && spec.needs.iter().find(is_there).is_none() {
            return Err(OptionError::needs(one.option, spec.needs));
        }
    }
    for spec in options.iter().filter(|spec| spec.required) {
        if spec.name == spec.canonical {
            Given::need(given, spec.canonical)?;
        }
    }
    for group in groups {
        // Whether it has a part here takes longer to find out, and seldom counts.
        group.check(given).or_else(|wrong| {
            let is_there = groups_among(std::slice::from_ref(group), options).next();
            is_there.map_or(Ok(()), |_| Err(wrong))
        })?;
    }
    Ok(())
}

/// Whether two names of options are the same. As a rule they are not even of the same length, or they are
/// the same name in the same place.
fn same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// The groups that have a part in this table of options.
fn groups_among(
    groups: &'static [OptionGroup],
    options: &'static [OptionSpec],
) -> impl Iterator<Item = &'static OptionGroup> {
    let has = |name: &&str| options.iter().any(|option| option.canonical == *name);
    let is_there = move |group: &&OptionGroup| group.names.iter().any(&has);
    groups.iter().filter(is_there)
}

impl<T> fmt::Debug for Spec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("names", &self.names)
            .field("families", &self.families)
            .finish_non_exhaustive()
    }
}

/// An extension of revision 0 that is one value, which another one has as well: `ttl` and `hl`, `SNPT` and
/// `DNPT`. Of the value there are `read(info)`, `write()`, `parse(groups, given)` and `print(text, prefix)` and
/// `list(text, name)`.
macro_rules! shared {
    (
        $Type:ident($Value:ty), $name:literal, $families:expr,
        prefix: $prefix:literal, $options:expr, $groups:expr
    ) => {
        impl $crate::xt::Extension for $Type {
            const NAME: &'static str = $name;
            const REVISION: u8 = 0;
            const FAMILIES: $crate::xt::Families = $families;
            const OPTIONS: &'static [$crate::xt::OptionSpec] = $options;
            const GROUPS: &'static [$crate::xt::OptionGroup] = $groups;

            fn read(_: $crate::xt::Family, revision: u8, info: &[u8]) -> Option<Self> {
                (revision == Self::REVISION).then_some(())?;
                <$Value>::read(info).map(Self)
            }

            fn write(&self, _: $crate::xt::Family) -> Result<Vec<u8>, $crate::xt::OptionError> {
                Ok(self.0.write())
            }

            fn parse(
                _: &$crate::xt::Context<'_>,
                given: &[$crate::xt::Given<'_>],
            ) -> Result<Self, $crate::xt::OptionError> {
                <$Value>::parse(Self::GROUPS, given).map(Self)
            }

            fn print(&self, text: &mut $crate::xt::Text) {
                self.0.print(text, $prefix);
            }

            fn list(&self, text: &mut $crate::xt::Text, _: $crate::xt::ListStyle) {
                self.0.list(text, $name);
            }
        }
    };
}
pub(super) use shared;

/// The list of extensions: one line each, which declares its module and its variant. (`cargo fmt` does not
/// see modules that a macro declares: `rustfmt src/xt/matches/*.rs src/xt/targets/*.rs` does.)
macro_rules! registry {
    (
        $(#[$meta:meta])*
        $Name:ident, printed as $option:literal, always has effects: $always:literal {
            $( $module:ident::$Variant:ident, )*
        }
    ) => {
        $( pub mod $module; )*

        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(clippy::large_enum_variant)]
        pub enum $Name {
            $(
                #[doc = concat!("[`", stringify!($module), "`](mod@", stringify!($module), ")")]
                $Variant($module::$Variant),
            )*
            /// An extension or revision without a typed value here.
            Opaque($crate::xt::Opaque),
        }

        impl $Name {
            /// All extensions of this kind that have a typed value.
            pub const ALL: &'static [$crate::xt::Spec<Self>] = &[$(
                $crate::xt::Spec {
                    names: <$module::$Variant as $crate::xt::Extension>::NAMES,
                    families: <$module::$Variant as $crate::xt::Extension>::FAMILIES,
                    options: <$module::$Variant as $crate::xt::Extension>::options,
                    names_of_values: <$module::$Variant as $crate::xt::Extension>::names_of_values,
                    groups: <$module::$Variant as $crate::xt::Extension>::GROUPS,
                    differences: <$module::$Variant as $crate::xt::Extension>::DIFFERENCES,
                    read: |family, revision, info| {
                        let value =
                            <$module::$Variant as $crate::xt::Extension>::read(family, revision, info)?;
                        $crate::xt::Extension::says_all(&value, family, revision, info)
                            .then(|| Self::$Variant(value))
                    },
                    parse: |context, given| {
                        <$module::$Variant as $crate::xt::Extension>::parse(context, given).map(Self::$Variant)
                    },
                },
            )*];

            /// The extension that goes by this name in a family.
            #[must_use]
            pub fn named(
                family: $crate::xt::Family,
                name: &[u8],
            ) -> Option<&'static $crate::xt::Spec<Self>> {
                static BY_NAME: std::sync::LazyLock<$crate::xt::extension::ByName<$Name>> =
                    std::sync::LazyLock::new(|| {
                        $crate::xt::extension::ByName::new($Name::ALL)
                    });
                BY_NAME.find(family, name)
            }

            /// Reads an extension's data; what has no typed value becomes [`Opaque`](Self::Opaque).
            #[must_use]
            pub fn read(
                family: $crate::xt::Family,
                name: &str,
                revision: u8,
                info: &[u8],
            ) -> Self {
                // Only the kernel's own name: an alias is another extension to it.
                let spec = Self::named(family, name.as_bytes())
                    .filter(|spec| spec.names.first() == Some(&name));
                if let Some(value) = spec.and_then(|spec| (spec.read)(family, revision, info)) {
                    return value;
                }
                Self::Opaque($crate::xt::Opaque {
                    name: name.to_owned(),
                    revision,
                    info: info.to_owned(),
                })
            }

            /// The extension as it goes into the kernel.
            ///
            /// # Errors
            /// It says the name of a set, which must be [resolved](Self::resolve_sets) first, or more
            /// than its data has room for.
            pub fn encode(
                &self,
                family: $crate::xt::Family,
            ) -> Result<$crate::xt::Encoded<'_>, $crate::xt::EncodeError> {
                if let Self::Opaque(opaque) = self {
                    return Ok($crate::xt::Encoded {
                        name: &opaque.name,
                        revision: opaque.revision,
                        info: std::borrow::Cow::Borrowed(&opaque.info),
                    });
                }
                let mut info = Vec::new();
                let (name, revision) = self.encode_into(family, &mut info)?;
                Ok($crate::xt::Encoded {
                    name,
                    revision,
                    info: std::borrow::Cow::Owned(info),
                })
            }

            /// The same as [`encode`](Self::encode), with the data in the place of what these bytes were;
            /// name and revision.
            pub(crate) fn encode_into(
                &self,
                family: $crate::xt::Family,
                info: &mut Vec<u8>,
            ) -> Result<(&str, u8), $crate::xt::EncodeError> {
                info.clear();
                match self {
                    $(Self::$Variant(value) => {
                        let mut sets = $crate::xt::Extension::sets(value);
                        if let Some(name) = sets.find_map($crate::xt::SetId::unresolved) {
                            return Err($crate::xt::UnresolvedSet { name: name.clone() }.into());
                        }
                        drop(sets);
                        $crate::xt::Extension::write_to(value, family, info).map_err(|error| {
                            let name = <$module::$Variant as $crate::xt::Extension>::NAME;
                            $crate::xt::EncodeError::Option { name, error }
                        })?;
                        info.resize(info.len().next_multiple_of(8), 0);
                        let revision = <$module::$Variant as $crate::xt::Extension>::revision(family);
                        Ok((<$module::$Variant as $crate::xt::Extension>::NAME, revision))
                    })*
                    Self::Opaque(opaque) => {
                        info.extend_from_slice(&opaque.info);
                        Ok((&opaque.name, opaque.revision))
                    }
                }
            }

            /// Puts indexes in the place of the names of sets, which must be of the family.
            ///
            /// # Errors
            /// What the look-up says; the names in front of the one that failed are resolved.
            pub fn resolve_sets<N: $crate::xt::SetNames>(
                &mut self,
                family: $crate::xt::Family,
                names: &mut N,
            ) -> Result<(), N::Error> {
                match self {
                    $(Self::$Variant(value) => $crate::xt::Extension::sets_mut(value)
                        .try_for_each(|set| set.resolve(family, names)),)*
                    Self::Opaque(_) => Ok(()),
                }
            }

            /// Whether one of its sets is said so.
            pub(crate) fn any_set(&self, is: impl FnMut(&$crate::xt::SetId) -> bool) -> bool {
                match self {
                    $(Self::$Variant(value) => $crate::xt::Extension::sets(value).any(is),)*
                    Self::Opaque(_) => false,
                }
            }

            /// Puts names in the place of the indexes of sets.
            ///
            /// # Errors
            /// What the look-up says; the indexes in front of the one that failed are replaced.
            pub fn name_sets<N: $crate::xt::SetNames>(
                &mut self,
                names: &mut N,
            ) -> Result<(), N::Error> {
                match self {
                    $(Self::$Variant(value) => $crate::xt::Extension::sets_mut(value)
                        .try_for_each(|set| set.name(names)),)*
                    Self::Opaque(_) => Ok(()),
                }
            }

            /// The extension's name in the kernel.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Variant(_) => <$module::$Variant as $crate::xt::Extension>::NAME,)*
                    Self::Opaque(opaque) => &opaque.name,
                }
            }

            /// Whether it does more than look at the packet, so that its place in a rule counts:
            /// every target does, some matches do, and an extension without a typed value may.
            #[must_use]
            pub const fn has_effects(&self) -> bool {
                match self {
                    $(Self::$Variant(_) => {
                        $always || <$module::$Variant as $crate::xt::Extension>::HAS_EFFECTS
                    })*
                    Self::Opaque(_) => true,
                }
            }

            /// Adds the extension as `iptables-save` prints it, with a blank before it.
            pub fn print(&self, text: &mut $crate::xt::Text) {
                match self {
                    $(Self::$Variant(value) => {
                        text.push($option).push($crate::xt::Extension::shown_name(value));
                        $crate::xt::Extension::print(value, text);
                    })*
                    Self::Opaque(opaque) => {
                        text.push($option).display(opaque);
                    }
                }
            }
        }

        impl $Name {
            /// Adds the extension as `iptables -L` shows it, with a blank before it.
            pub fn list(&self, text: &mut $crate::xt::Text, style: $crate::xt::ListStyle) {
                match self {
                    $(Self::$Variant(value) => $crate::xt::Extension::list(value, text, style),)*
                    Self::Opaque(opaque) => {
                        text.push(" ").display(opaque);
                    }
                }
            }
        }

        impl std::fmt::Display for $Name {
            /// The options, as `iptables-save` prints them; what is not UTF-8 is replaced.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut text = $crate::xt::Text::new();
                self.print(&mut text);
                f.write_str(bstr::ByteSlice::to_str_lossy(text.as_bytes()).trim_start())
            }
        }
    };
}
pub(super) use registry;

/// Reads a struct from the start of an extension's data.
pub(super) fn read_struct<T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout>(
    info: &[u8],
) -> Option<T> {
    T::read_from_prefix(info).ok().map(|(value, _)| value)
}

/// Adds a struct's bytes to an extension's data.
pub(super) fn add_struct<T: zerocopy::IntoBytes + zerocopy::Immutable>(
    data: &T,
    info: &mut Vec<u8>,
) {
    info.extend_from_slice(data.as_bytes());
}

/// A struct's bytes as an extension's data; what pads it to 8 bytes fits in without moving it.
pub(super) fn write_struct<T: zerocopy::IntoBytes + zerocopy::Immutable>(data: &T) -> Vec<u8> {
    let bytes = data.as_bytes();
    let mut info = Vec::with_capacity(bytes.len().next_multiple_of(8));
    info.extend_from_slice(bytes);
    info
}
