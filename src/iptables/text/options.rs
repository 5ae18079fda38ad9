//! The options that every command has, and the lookup of an option's name among all that a line may
//! use.

use bstr::ByteSlice;

use super::error::nearest;
use crate::xt::{self, Family, OptionSpec};

/// An option that belongs to no extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Main {
    Append,
    Check,
    Delete,
    DeleteChain,
    Flush,
    Insert,
    NewChain,
    Policy,
    RenameChain,
    Replace,
    Zero,
    Source,
    Destination,
    InInterface,
    OutInterface,
    Protocol,
    Fragment,
    Match,
    Jump,
    Goto,
    SetCounters,
    Ipv4,
    Ipv6,
    // Only for the command line.
    List,
    ListRules,
    Table,
    Numeric,
    Exact,
    Verbose,
    LineNumbers,
    Wait,
    WaitInterval,
    Modprobe,
    Help,
    Version,
}

impl Main {
    /// Returns `true` if the option takes no value, so that another letter may follow in the same
    /// word.
    pub(super) const fn is_flag(self) -> bool {
        matches!(
            self,
            Self::Fragment
                | Self::Ipv4
                | Self::Ipv6
                | Self::Numeric
                | Self::Exact
                | Self::Verbose
                | Self::LineNumbers
                | Self::Help
                | Self::Version
        )
    }
}

/// Letter, names and meaning.
type MainOption = (u8, &'static [&'static str], Main);

/// Options that are allowed in a line of a text and on the command line.
const MAIN: &[MainOption] = &[
    (b'A', &["append"], Main::Append),
    (b'C', &["check"], Main::Check),
    (b'D', &["delete"], Main::Delete),
    (b'X', &["delete-chain"], Main::DeleteChain),
    (b'F', &["flush"], Main::Flush),
    (b'I', &["insert"], Main::Insert),
    (b'N', &["new-chain"], Main::NewChain),
    (b'P', &["policy"], Main::Policy),
    (b'E', &["rename-chain"], Main::RenameChain),
    (b'R', &["replace"], Main::Replace),
    (b'Z', &["zero"], Main::Zero),
    (b's', &["source", "src"], Main::Source),
    (b'd', &["destination", "dst"], Main::Destination),
    (b'i', &["in-interface"], Main::InInterface),
    (b'o', &["out-interface"], Main::OutInterface),
    (b'p', &["protocol"], Main::Protocol),
    (b'f', &["fragments"], Main::Fragment),
    (b'm', &["match"], Main::Match),
    (b'j', &["jump"], Main::Jump),
    (b'g', &["goto"], Main::Goto),
    (b'c', &["set-counters"], Main::SetCounters),
    (b'4', &["ipv4"], Main::Ipv4),
    (b'6', &["ipv6"], Main::Ipv6),
];

/// Options that are allowed only on the command line.
const PROGRAM: &[MainOption] = &[
    (b'L', &["list"], Main::List),
    (b'S', &["list-rules"], Main::ListRules),
    (b't', &["table"], Main::Table),
    (b'n', &["numeric"], Main::Numeric),
    (b'x', &["exact"], Main::Exact),
    (b'v', &["verbose"], Main::Verbose),
    (b'0', &["line-numbers"], Main::LineNumbers),
    (b'w', &["wait"], Main::Wait),
    (b'W', &["wait-interval"], Main::WaitInterval),
    (b'M', &["modprobe"], Main::Modprobe),
    (b'h', &["help"], Main::Help),
    (b'V', &["version"], Main::Version),
];

/// The source of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionSource {
    /// A line of a text, or a single rule.
    Text,
    /// The command line of a program.
    Program,
}

impl OptionSource {
    fn options(self) -> impl Iterator<Item = &'static MainOption> {
        let more: &[MainOption] = match self {
            Self::Text => &[],
            Self::Program => PROGRAM,
        };
        MAIN.iter().chain(more)
    }
}

/// Builds a table of options by letter.
const fn by_letter(known: &[MainOption]) -> [Option<Main>; 128] {
    let mut all = [None; 128];
    let mut at = 0;
    while at < known.len() {
        all[known[at].0 as usize] = Some(known[at].2);
        at += 1;
    }
    all
}

/// Returns the option of that letter.
pub(super) fn short(place: OptionSource, letter: u8) -> Option<Main> {
    const OF_TEXT: [Option<Main>; 128] = by_letter(MAIN);
    const OF_PROGRAM: [Option<Main>; 128] = by_letter(PROGRAM);
    let at = usize::from(letter);
    match (*OF_TEXT.get(at)?, place) {
        (None, OptionSource::Program) => OF_PROGRAM[at],
        (found, _) => found,
    }
}

/// Explains why an option of the command line is not allowed in a line of a text.
pub(super) fn only_on_command_line(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"t" | b"table" => "the table is set by an earlier line, like *filter",
        b"L" | b"S" | b"list" | b"list-rules" => "a text can only change tables, not list them",
        b"w" | b"W" | b"n" | b"v" | b"x" | b"h" | b"V" | b"M" | b"wait" | b"wait-interval"
        | b"numeric" | b"verbose" | b"exact" | b"line-numbers" | b"help" | b"version"
        | b"modprobe" => "it can only be used on the command line",
        _ => return None,
    })
}

/// The result of a lookup by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundOption {
    Main(Main),
    /// An option of the extension with this index.
    Of(usize, &'static OptionSpec),
}

/// Looks up an option's name among the general ones and those of extensions. Like `getopt_long`,
/// it accepts an unambiguous prefix.
///
/// # Errors
/// A message and a suggestion.
pub(super) fn long(
    place: OptionSource,
    name: &[u8],
    extensions: impl DoubleEndedIterator<Item = &'static [OptionSpec]> + ExactSizeIterator + Clone,
) -> Result<FoundOption, (String, Option<String>)> {
    let general = || {
        place
            .options()
            .flat_map(|(_, names, main)| names.iter().map(|n| (*n, *main)))
    };
    // No extension has an option with a general one's name. The last extension comes first.
    let is_it = |spec: &&OptionSpec| spec.name.as_bytes() == name;
    for (place, specs) in extensions.clone().enumerate().rev() {
        if let Some(spec) = specs.iter().find(is_it) {
            return Ok(FoundOption::Of(place, spec));
        }
    }
    for (_, names, main) in place.options() {
        if names.iter().any(|known| known.as_bytes() == name) {
            return Ok(FoundOption::Main(*main));
        }
    }
    let of = || {
        let placed = extensions.clone().enumerate().rev();
        placed.flat_map(|(place, specs)| specs.iter().map(move |spec| (place, spec)))
    };
    let mut starting = general()
        .map(|(known, main)| (known, FoundOption::Main(main)))
        .chain(of().map(|(place, spec)| (spec.name, FoundOption::Of(place, spec))))
        .filter(|(known, _)| !name.is_empty() && known.as_bytes().starts_with(name));
    let written = name.as_bstr();
    if let Some((first, found)) = starting.next() {
        let same = |other: &FoundOption| match (found, other) {
            (FoundOption::Of(_, one), FoundOption::Of(_, other)) => {
                one.canonical == other.canonical
            }
            (one, other) => one == *other,
        };
        return match starting.find(|(_, other)| !same(other)) {
            None => Ok(found),
            Some((second, _)) => Err((
                format!("`--{written}` is ambiguous: --{first} or --{second}"),
                None,
            )),
        };
    }
    let known = general()
        .map(|(known, _)| known)
        .chain(of().map(|(_, spec)| spec.name));
    let hint = nearest(name, known).map(|near| format!("did you mean --{near}?"));
    Err((format!("unknown option `--{written}`"), hint))
}

/// Returns the names of the options of all extensions.
fn of_extensions() -> impl Iterator<Item = &'static str> {
    fn names<T>(all: &'static [xt::Spec<T>]) -> impl Iterator<Item = &'static str> {
        let each = |spec: &'static xt::Spec<T>| spec.names().iter().map(|n| spec.options(n));
        all.iter()
            .flat_map(each)
            .flatten()
            .map(|option| option.name)
    }
    names(xt::Match::ALL).chain(names(xt::Target::ALL))
}

/// Returns the most similar name among all options.
pub(super) fn nearest_anywhere(name: &[u8]) -> Option<&'static str> {
    let general = MAIN.iter().flat_map(|(_, names, _)| names.iter().copied());
    nearest(name, general.chain(of_extensions()))
}

/// Lists the extensions that have an option of that name, for messages.
pub(super) fn extensions_with_option(name: &[u8], family: Family) -> Option<String> {
    fn having<T>(
        family: Family,
        all: &'static [xt::Spec<T>],
        name: &[u8],
        option: &str,
    ) -> impl Iterator<Item = String> {
        all.iter()
            .filter(move |spec| spec.families().include(family))
            .flat_map(|spec| spec.names())
            .filter_map(move |extension| {
                let spec = all.iter().find(|spec| spec.names().contains(extension))?;
                let has = |o: &OptionSpec| o.name.as_bytes() == name;
                spec.options(extension)
                    .iter()
                    .any(has)
                    .then(|| format!("{option} {extension}"))
            })
    }
    let extensions_with_option = |name| {
        let mut extensions_with_option: Vec<_> =
            having(family, xt::Match::ALL, name, "-m").collect();
        extensions_with_option.extend(having(family, xt::Target::ALL, name, "-j"));
        extensions_with_option
    };
    let found = extensions_with_option(name);
    if found.is_empty() {
        let near = nearest(name, of_extensions())?;
        let extensions_with_option = extensions_with_option(near.as_bytes());
        return (!extensions_with_option.is_empty()).then(|| {
            format!(
                "did you mean --{near}, an option of {}?",
                extensions_with_option.join(", ")
            )
        });
    }
    let extensions_with_option = found;
    Some(format!(
        "it is an option of {}, which must come before it",
        extensions_with_option.join(", ")
    ))
}

/// Returns the match that a protocol implies: its options are allowed without `-m`.
pub(super) fn implied_by(protocol: u8, family: Family) -> Option<&'static str> {
    Some(match (protocol, family) {
        (1, Family::Ipv4) => "icmp",
        (6, _) => "tcp",
        (17, _) => "udp",
        (33, _) => "dccp",
        (50, _) => "esp",
        (51, _) => "ah",
        (58, Family::Ipv6) => "icmp6",
        (108, _) => "ipcomp",
        (132, _) => "sctp",
        (135, Family::Ipv6) => "mh",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_options_differ_from_general_options() {
        let general = MAIN.iter().flat_map(|(_, names, _)| names.iter().copied());
        for name in general {
            assert!(of_extensions().all(|option| option != name), "{name}");
        }
    }
}
