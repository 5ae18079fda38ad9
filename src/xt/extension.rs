//! The interface of extensions, and the registry.
//!
//! This is one large file because the macro that generates matches and targets from the registry has a part for each
//! operation.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use super::difference::Difference;
use super::option::{Context, GivenOption, OptionError, OptionGroup, OptionSpec, Values};
use super::sets::{SetId, UnresolvedSet};
use super::text::Text;

thread_local! {
    /// Buffer for serializing extensions before a comparison: there are many, of only a few bytes each.
    static ENCODE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The address families of extensions, for which iptables has tables.
///
/// [`legacy::Family`](crate::legacy::Family) also has ARP, and [`nft::Family`](crate::nft::Family) has all families of
/// nf_tables. `From` converts this type to either, and `TryFrom` converts back.
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
    /// Writes `IPv4` or `IPv6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

/// The families that support an extension.
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
    /// Returns `true` if the family is included.
    #[must_use]
    pub const fn include(self, family: Family) -> bool {
        matches!(
            (self, family),
            (Self::Both, _) | (Self::Ipv4, Family::Ipv4) | (Self::Ipv6, Family::Ipv6)
        )
    }
}

/// Style of rules in the output of `iptables -L`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListStyle {
    /// The rule's family.
    pub family: Family,
    /// The rule's protocol, which determines the names of ports.
    pub protocol: Option<u8>,
    /// Numbers instead of names (`-n`).
    pub numeric: bool,
}

/// The typed value of an extension.
pub(super) trait Extension: Sized {
    /// The extension's name in the kernel.
    const NAME: &'static str;
    /// Its names in rules: the kernel's name, and aliases.
    const NAMES: &'static [&'static str] = &[Self::NAME];
    /// The revision of the written data.
    const REVISION: u8;
    /// The supported families.
    const FAMILIES: Families = Families::Both;
    /// Its options.
    const OPTIONS: &'static [OptionSpec];
    /// Groups of alternative or related options.
    const GROUPS: &'static [OptionGroup] = &[];
    /// Intentional differences from iptables.
    const DIFFERENCES: &'static [Difference] = &[];
    /// For a match: whether it has effects beyond inspecting the packet, because it remembers, counts, marks or logs.
    /// Its position among the rule's matches is then significant. Targets keep the default.
    const HAS_EFFECTS: bool = false;

    /// Returns the options under that name.
    fn options(_name: &str) -> &'static [OptionSpec] {
        Self::OPTIONS
    }

    /// Returns the possible names in the values of its options, for the help text: a heading, and a line for each.
    fn value_names(_family: Family) -> Vec<String> {
        Vec::new()
    }

    /// Returns the revision of the written data for that family.
    fn revision(_family: Family) -> u8 {
        Self::REVISION
    }

    /// Decodes the extension's data; `None` if it contains something that the value cannot represent.
    fn read(family: Family, revision: u8, info: &[u8]) -> Option<Self>;

    /// Encodes the extension's data in revision [`Self::revision`], without padding.
    ///
    /// # Errors
    /// An option's value does not fit into the data. Nothing is ever truncated.
    fn write(&self, family: Family) -> Result<Vec<u8>, OptionError>;

    /// Appends the encoded data to `info`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_to(&self, family: Family, info: &mut Vec<u8>) -> Result<(), OptionError> {
        info.extend_from_slice(&self.write(family)?);
        Ok(())
    }

    /// Returns `true` if the value represents the data completely: encoding it yields the same bytes, unless they are
    /// of another revision.
    fn is_lossless(&self, family: Family, revision: u8, info: &[u8]) -> bool {
        if revision != Self::revision(family) {
            return true;
        }
        let mut written = ENCODE_BUFFER.take();
        written.clear();
        let same = self.write_to(family, &mut written).is_ok() && info.starts_with(&written);
        ENCODE_BUFFER.set(written);
        same
    }

    /// Builds the value from options. The caller has checked the options against their [`OptionSpec`]s and
    /// [`Self::GROUPS`]: each is known, their repetition, negation and combination are allowed, and no required option
    /// is missing.
    ///
    /// # Errors
    /// A value or a combination of options is invalid.
    fn parse(context: &Context<'_>, given: &[GivenOption<'_>]) -> Result<Self, OptionError>;

    /// Returns the name in the output of `iptables-save`.
    fn printed_name(&self) -> &'static str {
        Self::NAME
    }

    /// Appends the options as `iptables-save` prints them, each after a space.
    fn print(&self, text: &mut Text);

    /// Appends it as `iptables -L` shows it, after a space: by default its name and its options.
    fn list(&self, text: &mut Text, _style: ListStyle) {
        text.word(self.printed_name());
        self.print(text);
    }

    /// Returns the sets that it refers to. It cannot be encoded if one of them has no index.
    fn sets(&self) -> impl Iterator<Item = &SetId> {
        std::iter::empty()
    }

    /// Returns mutable references to the sets.
    fn sets_mut(&mut self) -> impl Iterator<Item = &mut SetId> {
        std::iter::empty()
    }
}

/// An extension without a typed value in this crate, as raw data.
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
    /// Prints a form that only `chainwright`'s own restore accepts. The real tools have no such options, and refuse the
    /// rule.
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

/// Error from encoding an extension for the kernel.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Hash)]
#[non_exhaustive]
pub enum EncodeError {
    /// It refers to a set by a name that was not looked up.
    #[error(transparent)]
    UnresolvedSet(#[from] UnresolvedSet),
    /// A value does not fit into its data.
    #[error("{name}: {error}")]
    Option {
        /// The extension's name.
        name: &'static str,
        /// The option, its value, and the available space.
        error: OptionError,
    },
}

crate::debug_as_message!(EncodeError);

/// An extension's name, revision and data in the kernel's format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Encoded<'a> {
    /// The extension's name.
    pub name: &'a str,
    /// Its revision.
    pub revision: u8,
    /// Its data, padded to 8 bytes.
    pub info: Cow<'a, [u8]>,
}

/// Description of an extension: an entry of the registry.
pub struct Spec<T: 'static> {
    pub(super) names: &'static [&'static str],
    pub(super) families: Families,
    pub(super) options: fn(&str) -> &'static [OptionSpec],
    pub(super) value_names: fn(Family) -> Vec<String>,
    pub(super) groups: &'static [OptionGroup],
    pub(super) differences: &'static [Difference],
    pub(super) read: fn(Family, u8, &[u8]) -> Option<T>,
    pub(super) parse: fn(&Context<'_>, &[GivenOption<'_>]) -> Result<T, OptionError>,
}

/// Extensions by the lengths of their names. Most lookups are for chain names, which are longer than any of them.
pub(super) struct ByName<T: 'static>([Vec<(&'static str, &'static Spec<T>)>; 32]);

impl<T> ByName<T> {
    pub(super) fn new(all: &'static [Spec<T>]) -> Self {
        let mut by_length = [const { Vec::new() }; 32];
        for spec in all {
            for name in spec.names {
                // `XT_EXTENSION_MAXNAMELEN` is smaller.
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
    /// Returns the names in rules: the kernel's name first.
    #[must_use]
    pub const fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// Returns the supported families.
    #[must_use]
    pub const fn families(&self) -> Families {
        self.families
    }

    /// Returns the intentional differences from iptables.
    #[must_use]
    pub const fn differences(&self) -> &'static [Difference] {
        self.differences
    }

    /// Returns the options under that name.
    #[must_use]
    pub fn options(&self, name: &str) -> &'static [OptionSpec] {
        (self.options)(name)
    }

    /// Returns the output of `iptables -h` for a match or target of that name: its options, and the possible names in
    /// their values.
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
        for line in (self.value_names)(family) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Returns the groups of related options under that name.
    pub fn groups(&self, name: &str) -> impl Iterator<Item = &'static OptionGroup> {
        groups_among(self.groups, self.options(name))
    }

    /// Builds the value from options.
    ///
    /// # Errors
    /// An option is unknown, repeated, negated, combined with another, or alone, although the extension does not allow
    /// that; a required option is missing; or a value or combination is invalid.
    pub fn parse(
        &self,
        context: &Context<'_>,
        given: &[GivenOption<'_>],
    ) -> Result<T, OptionError> {
        check(self.options(context.name), self.groups, given)?;
        (self.parse)(context, given)
    }
}

/// Checks options against the table of options.
pub(super) fn check(
    options: &'static [OptionSpec],
    groups: &'static [OptionGroup],
    given: &[GivenOption<'_>],
) -> Result<(), OptionError> {
    for (position, one) in given.iter().enumerate() {
        let Some(spec) = options.iter().find(|spec| same(spec.canonical, one.option)) else {
            return Err(OptionError::with_text(
                one.option,
                "is not one of its options",
            ));
        };
        if one.invert && !spec.inverts {
            return Err(OptionError::with_text(one.option, "cannot be negated"));
        }
        // The search ends at the first repetition, so it stays short.
        let mut before = given[..position].iter();
        if !spec.repeats && before.any(|other| other.option == one.option) {
            return Err(OptionError::with_text(one.option, "can be given only once"));
        }
        let is_there = |other: &&&str| GivenOption::find(given, other).is_some();
        if let Some(other) = spec.excludes.iter().find(is_there) {
            return Err(one.excludes(other));
        }
        if !spec.needs.is_empty() && spec.needs.iter().find(is_there).is_none() {
            return Err(OptionError::needs(one.option, spec.needs));
        }
    }
    for spec in options.iter().filter(|spec| spec.required) {
        if spec.name == spec.canonical {
            GivenOption::find_required(given, spec.canonical)?;
        }
    }
    for group in groups {
        // Check the error first: finding out whether the group applies takes longer, and is rarely needed.
        group.check(given).or_else(|wrong| {
            let is_there = groups_among(std::slice::from_ref(group), options).next();
            is_there.map_or(Ok(()), |_| Err(wrong))
        })?;
    }
    Ok(())
}

/// Returns `true` if two option names are equal. Usually they differ in length or are the same static string.
fn same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// Returns the groups with a member in this table of options.
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

/// Implements an extension of revision 0 for a newtype whose value is shared with another extension: `ttl` and `hl`,
/// `SNPT` and `DNPT`. The value provides `read(info)`, `write()`, `parse(groups, given)`, `print(text, prefix)` and
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
                given: &[$crate::xt::GivenOption<'_>],
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

/// The list of extensions: each line declares a module and a variant. (`cargo fmt` does not find modules that a macro
/// declares: run `rustfmt src/xt/matches/*.rs src/xt/targets/*.rs`.)
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
            /// An extension or revision without a typed value in this crate.
            Opaque($crate::xt::Opaque),
        }

        impl $Name {
            /// All extensions of this kind with a typed value.
            pub const ALL: &'static [$crate::xt::Spec<Self>] = &[$(
                $crate::xt::Spec {
                    names: <$module::$Variant as $crate::xt::Extension>::NAMES,
                    families: <$module::$Variant as $crate::xt::Extension>::FAMILIES,
                    options: <$module::$Variant as $crate::xt::Extension>::options,
                    value_names: <$module::$Variant as $crate::xt::Extension>::value_names,
                    groups: <$module::$Variant as $crate::xt::Extension>::GROUPS,
                    differences: <$module::$Variant as $crate::xt::Extension>::DIFFERENCES,
                    read: |family, revision, info| {
                        let value =
                            <$module::$Variant as $crate::xt::Extension>::read(family, revision, info)?;
                        $crate::xt::Extension::is_lossless(&value, family, revision, info)
                            .then(|| Self::$Variant(value))
                    },
                    parse: |context, given| {
                        <$module::$Variant as $crate::xt::Extension>::parse(context, given).map(Self::$Variant)
                    },
                },
            )*];

            /// Finds the extension with this name in a family.
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

            /// Decodes an extension's data; data without a typed value becomes [`Opaque`](Self::Opaque).
            #[must_use]
            pub fn read(
                family: $crate::xt::Family,
                name: &str,
                revision: u8,
                info: &[u8],
            ) -> Self {
                // Only the kernel's own name: to the kernel, an alias is another extension.
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

            /// Encodes the extension for the kernel.
            ///
            /// # Errors
            /// It contains the name of a set, which must be [resolved](Self::resolve_sets) first, or a value that does
            /// not fit into its data.
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

            /// Like [`encode`](Self::encode), but replaces the content of `info` with the data. Returns name and
            /// revision.
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

            /// Replaces the names of sets with their indexes. The sets must be of the family.
            ///
            /// # Errors
            /// The error of the lookup; the names before the failing one are resolved.
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

            /// Returns `true` if `is` returns `true` for one of its sets.
            pub(crate) fn any_set(&self, is: impl FnMut(&$crate::xt::SetId) -> bool) -> bool {
                match self {
                    $(Self::$Variant(value) => $crate::xt::Extension::sets(value).any(is),)*
                    Self::Opaque(_) => false,
                }
            }

            /// Replaces the indexes of sets with their names.
            ///
            /// # Errors
            /// The error of the lookup; the indexes before the failing one are replaced.
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

            /// Returns the extension's name in the kernel.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$Variant(_) => <$module::$Variant as $crate::xt::Extension>::NAME,)*
                    Self::Opaque(opaque) => &opaque.name,
                }
            }

            /// Returns `true` if the extension has effects beyond inspecting the packet, so that its position in a rule
            /// is significant: every target does, some matches do, and an extension without a typed value may.
            #[must_use]
            pub const fn has_effects(&self) -> bool {
                match self {
                    $(Self::$Variant(_) => {
                        $always || <$module::$Variant as $crate::xt::Extension>::HAS_EFFECTS
                    })*
                    Self::Opaque(_) => true,
                }
            }

            /// Appends the extension as `iptables-save` prints it, after a space.
            pub fn print(&self, text: &mut $crate::xt::Text) {
                match self {
                    $(Self::$Variant(value) => {
                        text.push($option).push($crate::xt::Extension::printed_name(value));
                        $crate::xt::Extension::print(value, text);
                    })*
                    Self::Opaque(opaque) => {
                        text.push($option).display(opaque);
                    }
                }
            }
        }

        impl $Name {
            /// Appends the extension as `iptables -L` shows it, after a space.
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
            /// Writes the options as `iptables-save` prints them, with replacement characters for invalid UTF-8.
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

/// Appends a struct's bytes to an extension's data.
pub(super) fn add_struct<T: zerocopy::IntoBytes + zerocopy::Immutable>(
    data: &T,
    info: &mut Vec<u8>,
) {
    info.extend_from_slice(data.as_bytes());
}

/// Returns a struct's bytes as an extension's data, with capacity for the padding to 8 bytes.
pub(super) fn write_struct<T: zerocopy::IntoBytes + zerocopy::Immutable>(data: &T) -> Vec<u8> {
    let bytes = data.as_bytes();
    let mut info = Vec::with_capacity(bytes.len().next_multiple_of(8));
    info.extend_from_slice(bytes);
    info
}
