//! `chainwright get sets`: lists sets and maps, one per line, and their elements.

use std::fmt;

use chainwright::nft::{
    Connection, DataType, Element, List, PartialSnapshot, Set, SetFlags, SetId, SetRef,
    SnapshotSet, SnapshotTable, Table,
};
use chainwright_lang::{Milliseconds, Options, RunError, data_type, elements, find_element};
use serde::{Serialize, Serializer};

use super::{ListFormat, ListOutput};
use crate::dialect;
use crate::glob::Names;
use crate::output::{Error, Exit, Output, Printable, name_text};
use crate::scope::{Backend, Found, Scope, UnreadPart};

/// List sets and maps, one per line
///
/// Prints family, table and name; whether it is a set or a map; the types of its keys and values, with nft's names;
/// flags, size, timeout; the number of elements (a range counts as one); the comment. With --elements also each
/// element, on its own line.
///
/// The listing shows one generation of the ruleset. If the ruleset changes meanwhile, it is read again. If it keeps
/// changing, the sets are listed anyway, standard error warns that the listing may be inconsistent, and the exit code
/// is 2.
///
/// Legacy tables have no sets of their own: their rules refer to sets of ipset, like those of iptables-nft.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    args: Args,

    /// Also list the elements
    #[arg(long)]
    elements: bool,
}

/// List the elements of sets and maps
///
/// Prints the same as `get sets --elements`. The names are those of sets.
///
/// With --contains, looks KEY up in every set whose keys have its type, and prints the elements that contain it: also
/// prefixes, ranges and the entries of maps. The kernel finds the element, so the elements are not read. If no set
/// contains it, the exit code is 1. The sets are tried one after the other, not in one generation.
#[derive(clap::Args)]
pub(crate) struct ElementArgs {
    /// Print only the elements that contain this key, in nft's language: 10.1.2.3, 443, '10.1.2.3 . tcp . 443'
    #[arg(long, value_name = "KEY")]
    contains: Option<String>,

    #[command(flatten)]
    args: Args,
}

/// Selects sets.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// Also list anonymous sets, which belong to a single rule
    #[arg(long)]
    anonymous: bool,

    #[command(flatten)]
    output: ListOutput,

    #[command(flatten)]
    scope: Scope,
}

pub(crate) fn run(args: &SetArgs, json: bool) -> Result<Exit, Error> {
    let found = args.args.read()?;
    print(&args.args, found, args.elements, json)
}

pub(crate) fn run_elements(args: &ElementArgs, json: bool) -> Result<Exit, Error> {
    let found = match &args.contains {
        None => args.args.read()?,
        Some(key) => args.args.find(key)?,
    };
    print(&args.args, found, true, json)
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'s> {
    generation: Option<u32>,
    tables: Vec<TableDocument<'s>>,
    not_read: &'s [UnreadPart],
}

#[derive(Serialize)]
struct TableDocument<'s> {
    table: Table<'s>,
    sets: Vec<SetDocument<'s>>,
}

#[derive(Serialize)]
struct SetDocument<'s> {
    set: Set<'s>,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<Elements<'s>>,
}

impl<'s> SetDocument<'s> {
    fn new(set: SnapshotSet<'s>, elements: bool) -> Self {
        Self {
            set: set.set().to_builder(),
            count: set.element_count(),
            elements: elements.then_some(Elements(set)),
        }
    }
}

/// Elements, serialized one by one.
struct Elements<'s>(SnapshotSet<'s>);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let elements = self.0.elements();
        serializer.collect_seq(elements.map(|element| -> Element<'_> { element.to_builder() }))
    }
}

/// The parts of the ruleset with the selected sets.
struct Read {
    found: Found,
    parts: Vec<PartialSnapshot>,
    /// What is listed.
    kind: &'static str,
}

/// Prints the sets, with their elements if `with_elements` is set.
fn print(args: &Args, read: Read, with_elements: bool, json: bool) -> Result<Exit, Error> {
    let Read { found, parts, kind } = read;
    let format = args.output.format(json);
    let tables: Vec<_> = (parts.iter())
        .flat_map(|part| part.tables())
        .map(|table| (table, args.sets(&table)))
        .filter(|(_, sets)| !sets.is_empty())
        .collect();
    let any = !tables.is_empty();
    let mut out = Output::new();
    if format == ListFormat::Json {
        let generation = parts.first().and_then(|part| part.generation());
        out.json(
            "sets",
            &Document {
                generation: generation.map(|generation| generation.number()),
                tables: tables
                    .into_iter()
                    .map(|(table, sets)| TableDocument {
                        table: table.table().to_builder(),
                        sets: sets
                            .into_iter()
                            .map(|set| SetDocument::new(set, with_elements))
                            .collect(),
                    })
                    .collect(),
                not_read: &found.not_read,
            },
        )?;
    } else if format == ListFormat::Name && !with_elements {
        for set in tables.iter().flat_map(|(_, sets)| sets) {
            writeln!(out, "{}", Printable(&name_text(set.set().name())))?;
        }
    } else {
        let options = dialect::of_selected(Options::default());
        for set in tables.iter().flat_map(|(_, sets)| sets) {
            let indent = match format {
                ListFormat::Name => "",
                _ => {
                    let (set, count) = (set.set(), set.element_count());
                    let line = Line { set, count };
                    match format {
                        ListFormat::Wide => writeln!(out, "{line:#}")?,
                        _ => writeln!(out, "{line}")?,
                    }
                    "  "
                }
            };
            if with_elements {
                for element in elements(*set, &options) {
                    writeln!(out, "{indent}{}", Printable(&element))?;
                }
            }
        }
    }
    out.flush()?;
    let filtered = args.scope.is_filtered() || !args.names.is_empty();
    // The other backend has no sets.
    let is_json = format == ListFormat::Json;
    Ok(found.end(any, kind, filtered, Backend::Nft, is_json))
}

impl Args {
    /// Returns the selected backend.
    fn backend(&self) -> Result<Backend, Error> {
        match self.scope.place.listed() {
            Backend::Legacy => Err(Error::Other(
                "legacy tables have no sets of their own; their rules refer to ipset's sets \
                 (`ipset list`)"
                    .into(),
            )),
            backend => Ok(backend),
        }
    }

    /// Reads the selected sets with their elements.
    fn read(&self) -> Result<Read, Error> {
        let mut found = Found::default();
        let part = found.nft(self.backend()?, || {
            self.scope
                .read_or_note(|nft, filter| nft.snapshot_sets(filter, |set| self.admits(set)))
        })?;
        Ok(Read {
            found,
            parts: part.into_iter().collect(),
            kind: "set",
        })
    }

    /// Looks up a key in the selected sets, and reads only the elements that contain it.
    fn find(&self, key: &str) -> Result<Read, Error> {
        let mut found = Found::default();
        let (mut parts, mut is_any_tried, mut mismatch) = (Vec::new(), false, None);
        found.nft(self.backend()?, || {
            let mut nft = Connection::open_if_loaded()?;
            let mut sets = List::<Set<'_>>::new(self.scope.filter());
            sets.refresh(&mut nft)?;
            for set in sets.iter().filter(|set| self.admits(set)) {
                let id = SetId::new(set.family(), set.table(), set.name());
                match find_element(&mut nft, &id, key) {
                    Ok(part) => {
                        is_any_tried = true;
                        parts.extend(part.map(PartialSnapshot::from));
                    }
                    // The set's keys have another type.
                    Err(RunError::Script(error)) => {
                        mismatch.get_or_insert(error);
                    }
                    Err(error) => return Err(chainwright::Error::from(error).into()),
                }
            }
            Ok(((), None))
        })?;
        match mismatch {
            Some(error) if !is_any_tried => Err(Error::Other(format!(
                "no set has keys like {key:?}; the first one rejects it: {}",
                error.message
            ))),
            _ => Ok(Read {
                found,
                parts,
                kind: "element",
            }),
        }
    }

    /// Returns the selected sets of a table.
    fn sets<'s>(&self, table: &SnapshotTable<'s>) -> Vec<SnapshotSet<'s>> {
        table.sets().filter(|set| self.admits(&set.set())).collect()
    }

    fn admits(&self, set: &SetRef<'_>) -> bool {
        let is_anonymous = flags(set).contains(SetFlags::ANONYMOUS);
        (self.anonymous || !is_anonymous) && self.names.admits(set.name())
    }
}

fn flags(set: &SetRef<'_>) -> SetFlags {
    set.flags().unwrap_or_default()
}

fn types(data: Option<DataType>) -> String {
    data.map_or_else(|| "unknown".into(), data_type)
}

/// A listed set, as text.
struct Line<'s> {
    set: SetRef<'s>,
    count: usize,
}

/// The flags that `nft` shows, with its names, and that of anonymous sets.
const FLAGS: [(SetFlags, &str); 5] = [
    (SetFlags::ANONYMOUS, "anonymous"),
    (SetFlags::CONSTANT, "constant"),
    (SetFlags::EVAL, "dynamic"),
    (SetFlags::INTERVAL, "interval"),
    (SetFlags::TIMEOUT, "timeout"),
];

impl fmt::Display for Line<'_> {
    /// Formats the line; with `#` the wide one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = &self.set;
        let (table, name) = (name_text(set.table()), name_text(set.name()));
        write!(
            f,
            "{:6} {:8} {:28} {} {}",
            set.family().to_string(),
            Printable(&table),
            Printable(&name),
            if set.is_map() { "map" } else { "set" },
            types(set.key_type())
        )?;
        if let Some(objects) = set.object_type() {
            write!(f, " : {objects}")?;
        } else if set.is_map() {
            write!(f, " : {}", types(set.data_type()))?;
        }
        let flags = flags(set);
        let mut between = " flags ";
        for (_, name) in FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)) {
            write!(f, "{between}{name}")?;
            between = ",";
        }
        if let Some(size) = set.description().and_then(|description| description.size) {
            write!(f, " size {size}")?;
        }
        if let Some(timeout) = set.timeout() {
            write!(f, " timeout {}", Milliseconds::from(timeout))?;
        }
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, " {} element{plural}", self.count)?;
        if f.alternate() {
            write!(f, " handle {}", set.handle())?;
        }
        if let Some(comment) = set.comment() {
            write!(f, " comment \"{}\"", Printable(&name_text(comment)))?;
        }
        Ok(())
    }
}
