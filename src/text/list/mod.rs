//! Rulesets as `nft list ruleset` shows them.

pub(super) mod chain;
pub(super) mod line;
pub(super) mod object;
pub(super) mod set;
pub(super) mod tunnel;

use std::collections::HashMap;
use std::fmt::{self, Write};

use bitflags::Flags;
use bstr::{BStr, ByteSlice};
use jiff::tz::TimeZone;
use nix::net::if_::if_nametoindex;

use super::constant::{Plain, Quoted};
use super::print::Printer;
use super::read::rule;
use crate::nft::expr::ObjectType;
use crate::nft::{
    ChainFlags, ChainRef, DataType, FlowtableRef, Milliseconds, RuleRef, SetFlags, SetRef,
    Snapshot, SnapshotTable, StatefulObjectRef, TableFlags,
};

/// What is written, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// With the handles that the kernel gave (`nft -a`).
    pub handles: bool,
    /// Without counters' numbers and the like (`nft -s`).
    pub stateless: bool,
    /// Without the elements of sets (`nft -t`).
    pub terse: bool,
    /// With priorities as numbers (`nft -y`).
    pub numeric_priority: bool,
    /// With protocols above IP as numbers (`nft -p`).
    pub numeric_protocol: bool,
    /// With times in seconds, without what is less than one (`nft -T`).
    pub numeric_time: bool,
    /// With all other values that have names as numbers, too; with the three before, it is `nft -n`.
    pub numeric_symbols: bool,
    /// Names of users, groups and ports by their numbers.
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
    services: HashMap<u16, String>,
    /// The time zone that days and hours are given in.
    pub(super) time_zone: TimeZone,
    /// Names of interfaces by their numbers.
    interfaces: HashMap<u32, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            handles: false,
            stateless: false,
            terse: false,
            numeric_priority: false,
            numeric_protocol: false,
            numeric_time: false,
            numeric_symbols: false,
            users: HashMap::new(),
            groups: HashMap::new(),
            services: HashMap::new(),
            time_zone: TimeZone::system(),
            interfaces: HashMap::new(),
        }
    }
}

impl Options {
    /// With the names that interfaces have in the network namespace of the calling thread; those of which they cannot be
    /// had are given by number.
    #[must_use]
    pub fn here() -> Self {
        // Not by a netlink socket of the C library's, which waits for a lost reply for ever.
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let names = devices.lines().filter_map(|line| {
            let (name, _) = line.split_once(':')?;
            let name = name.trim();
            Some((if_nametoindex(name).ok()?, name.to_owned()))
        });
        Self::default().with_interfaces(names)
    }

    /// Gives days and hours in this time zone, by its name in the IANA's database, instead of the system's; `None` if it
    /// is not known.
    #[must_use]
    pub fn with_time_zone(mut self, name: &str) -> Option<Self> {
        self.time_zone = TimeZone::get(name).ok()?;
        Some(self)
    }

    /// Gives interfaces by these names instead of their numbers.
    #[must_use]
    pub fn with_interfaces(mut self, names: impl IntoIterator<Item = (u32, String)>) -> Self {
        self.interfaces.extend(names);
        self
    }

    /// Gives users and groups by the names that `/etc/passwd` and `/etc/group` have for them (`nft -u`).
    #[must_use]
    pub fn with_accounts(mut self) -> Self {
        let read = |path: &str| {
            let text = std::fs::read(path).unwrap_or_default();
            let mut names = HashMap::new();
            for line in text.lines() {
                let mut fields = line.split_str(":");
                let (name, number) = (fields.next(), fields.nth(1));
                let number = number.and_then(|number| number.to_str().ok()?.parse().ok());
                if let (Some(name), Some(number)) = (name, number) {
                    let name = || name.to_str_lossy().into_owned();
                    names.entry(number).or_insert_with(name);
                }
            }
            names
        };
        (self.users, self.groups) = (read("/etc/passwd"), read("/etc/group"));
        self
    }

    /// Gives ports by the names that `/etc/services` has for them (`nft -S`).
    #[must_use]
    pub fn with_services(mut self) -> Self {
        let text = std::fs::read("/etc/services").unwrap_or_default();
        for line in text.lines() {
            let line = line.split_str("#").next().unwrap_or_default();
            let mut words = line.fields_with(char::is_whitespace);
            let (name, port) = (words.next(), words.next());
            let port =
                port.and_then(|port| port.split_str("/").next()?.to_str().ok()?.parse().ok());
            if let (Some(name), Some(port)) = (name, port) {
                let name = || name.to_str_lossy().into_owned();
                self.services.entry(port).or_insert_with(name);
            }
        }
        self
    }

    /// All values as numbers (`nft -n`).
    #[must_use]
    pub const fn numeric(mut self) -> Self {
        self.numeric_priority = true;
        self.numeric_protocol = true;
        self.numeric_time = true;
        self.numeric_symbols = true;
        self
    }

    /// Whether values of this type are written as numbers, also those that have names.
    pub(super) const fn is_numeric(&self, data_type: DataType) -> bool {
        match data_type {
            DataType::INET_PROTO => self.numeric_protocol,
            _ => self.numeric_symbols,
        }
    }

    /// The name of a value that the system has names for, if these are asked for.
    pub(super) fn account_or_service(&self, data_type: DataType, number: u128) -> Option<&str> {
        let name = match data_type {
            DataType::UID => self.users.get(&u32::try_from(number).ok()?),
            DataType::GID => self.groups.get(&u32::try_from(number).ok()?),
            DataType::INET_SERVICE => self.services.get(&u16::try_from(number).ok()?),
            _ => None,
        };
        name.map(String::as_str)
    }

    /// A time as it is written.
    pub(super) fn time(&self, milliseconds: u64) -> String {
        match self.numeric_time {
            true => format!("{}s", milliseconds / 1000),
            false => Milliseconds(milliseconds).to_string(),
        }
    }

    pub(super) fn interface(&self, index: u32) -> Option<&str> {
        self.interfaces.get(&index).map(String::as_str)
    }
}

/// What of a ruleset is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Part<'p> {
    /// All of it: `list ruleset`, `list table`.
    #[default]
    All,
    /// The names of tables: `list tables`.
    Tables,
    /// Chains without their rules: `list chains`.
    Chains,
    /// One chain: `list chain`.
    Chain(&'p [u8]),
    /// Sets: `list sets`.
    Sets,
    /// One set: `list set`.
    Set(&'p [u8]),
    /// Maps: `list maps`.
    Maps,
    /// One map: `list map`.
    Map(&'p [u8]),
    /// Sets that `meter` made in a rule: `list meters`.
    Meters,
    /// One of them: `list meter`.
    Meter(&'p [u8]),
    /// Flowtables: `list flowtables`.
    Flowtables,
    /// One flowtable: `list flowtable`.
    Flowtable(&'p [u8]),
    /// Stateful objects of a type: `list counters`, `list quotas`, ….
    Objects(ObjectType),
    /// One of them: `list counter`, ….
    Object(ObjectType, &'p [u8]),
}

/// A ruleset in nft's language: what `nft list ruleset` prints, and parts of it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright::netns::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright::Error> {
/// use chainwright::nft::build::Build;
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
/// use chainwright::text::{Listing, Options};
///
/// let mut tx = Transaction::new();
/// tx.add(&Table::new(Family::INET, "filter"))?;
/// tx.add(&Chain::new(Family::INET, "filter", "web"))?;
/// tx.add(&Build::new(Family::INET, "filter", "web").tcp_dport(80..=89).accept().unwrap())?;
/// let mut nft = Connection::open()?;
/// nft.commit(&tx)?;
///
/// let snapshot = nft.snapshot(Scope::all())?;
/// let text = Listing::new(&snapshot, &Options::default()).to_string();
/// assert_eq!(text, "table inet filter {\n\tchain web {\n\t\ttcp dport 80-89 accept\n\t}\n}\n");
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
///
/// It is what nft 1.0.6 prints, character for character, but for these:
///
/// - What that version writes of a rule and would read back as another one is written right: see `tests/nft_text.rs` for
///   all that are known.
/// - A rule that nft has no words for (registers used in ways it never does, attributes of a newer kernel) is a comment
///   with its instructions, as `nft --debug=netlink` has them.
/// - So is what an object holds that it has no words for (a limit of two hours); that there is such a thing with a set's
///   elements is said.
/// - Matches and targets of x_tables are named only (`xt match "comment"`).
#[derive(Debug, Clone, Copy)]
pub struct Listing<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) options: &'s Options,
    pub(super) part: Part<'s>,
}

impl<'s> Listing<'s> {
    /// Of all that the snapshot holds.
    #[must_use]
    pub const fn new(snapshot: &'s Snapshot, options: &'s Options) -> Self {
        Self {
            snapshot,
            options,
            part: Part::All,
        }
    }

    /// Of this part of it.
    #[must_use]
    pub const fn part(mut self, part: Part<'s>) -> Self {
        self.part = part;
        self
    }

    /// Whether there is anything of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.snapshot.tables().any(|table| self.part.is_in(&table))
    }
}

impl Part<'_> {
    /// Whether a table has something of it.
    pub(super) fn is_in(&self, table: &SnapshotTable<'_>) -> bool {
        let set = |name: &[u8], map| {
            let found = table.set(name);
            found.is_some_and(|set| is_map(set.set().flags().unwrap_or_default()) == map)
        };
        match *self {
            Self::Chain(name) => table.chain(name).is_some(),
            Self::Set(name) => set(name, false),
            Self::Map(name) => set(name, true),
            Self::Meter(name) => table.set(name).is_some_and(|set| is_meter(&set.set())),
            Self::Flowtable(name) => table.flowtable(name).is_some(),
            Self::Object(object, name) => table.object(object, name).is_some(),
            // As nft has it, of any type.
            Self::Objects(_) => table.objects().next().is_some(),
            _ => true,
        }
    }

    pub(super) fn has_object(&self, object: &StatefulObjectRef<'_>) -> bool {
        match *self {
            Self::All => true,
            Self::Objects(kind) => object.object_type() == kind,
            Self::Object(kind, name) => object.object_type() == kind && object.name() == name,
            _ => false,
        }
    }

    pub(super) fn has_set(&self, set: &SetRef<'_>) -> bool {
        let flags = set.flags().unwrap_or_default();
        if flags.contains(SetFlags::ANONYMOUS) {
            return is_meter(set)
                && match *self {
                    Self::Meters => true,
                    Self::Meter(name) => set.name() == name,
                    _ => false,
                };
        }
        let map = is_map(set.flags().unwrap_or_default());
        match *self {
            Self::All => true,
            Self::Sets => !map,
            Self::Maps => map,
            Self::Set(name) => !map && set.name() == name,
            Self::Map(name) => map && set.name() == name,
            _ => false,
        }
    }

    pub(super) fn has_flowtable(&self, flowtable: &FlowtableRef<'_>) -> bool {
        match *self {
            Self::All | Self::Flowtables => true,
            Self::Flowtable(name) => flowtable.name() == name,
            _ => false,
        }
    }

    pub(super) fn has_chain(&self, chain: &ChainRef<'_>) -> bool {
        match *self {
            Self::All | Self::Chains => true,
            Self::Chain(name) => chain.name() == name,
            _ => false,
        }
    }
}

/// What the flags of tables are called.
pub(super) const TABLE_FLAGS: [(TableFlags, &str); 3] = [
    (TableFlags::DORMANT, "dormant"),
    (TableFlags::OWNER, "owner"),
    (TableFlags::PERSIST, "persist"),
];

/// Whether a set has something for each of its keys.
pub(super) const fn is_map(flags: SetFlags) -> bool {
    flags.intersects(SetFlags::MAP.union(SetFlags::OBJECT))
}

/// Whether `meter` made a set.
pub(super) fn is_meter(set: &SetRef<'_>) -> bool {
    let flags = set.flags().unwrap_or_default();
    flags.contains(SetFlags::ANONYMOUS | SetFlags::EVAL)
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(f, self.options);
        for table in self.snapshot.tables() {
            if !self.part.is_in(&table) {
                continue;
            }
            match self.part {
                Part::Tables => {
                    let view = table.table();
                    writeln!(
                        printer.out,
                        "table {} {}",
                        view.family(),
                        Plain(view.name())
                    )?;
                }
                part => printer.table(&table, part)?,
            }
        }
        Ok(())
    }
}

/// A rule in nft's words, in one line, without its handle; `None` if nft has none for it.
#[must_use]
pub fn rule(table: &SnapshotTable<'_>, rule: &RuleRef<'_>, options: &Options) -> Option<String> {
    let line = rule::rule(table, rule);
    if line.is_opaque() {
        return None;
    }
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, options);
    printer.in_line = true;
    printer.rule(&line).ok()?;
    Some(text)
}

/// The empty line between things, if there is one.
enum Between {
    /// Nothing stands before.
    First,
    Next,
    /// There is none: many of one kind stand one below the other.
    Never,
}

impl Between {
    fn write(&mut self, out: &mut impl Write) -> fmt::Result {
        match self {
            Self::First => *self = Self::Next,
            Self::Next => out.write_char('\n')?,
            Self::Never => {}
        }
        Ok(())
    }
}

impl<W: Write> Printer<'_, W> {
    fn table(&mut self, table: &SnapshotTable<'_>, part: Part<'_>) -> fmt::Result {
        let view = table.table();
        write!(
            self.out,
            "table {} {} {{",
            view.family(),
            Plain(view.name())
        )?;
        self.handle(view.handle())?;
        self.out.write_char('\n')?;
        let mut between = Between::Never;
        self.depth = 1;
        if part == Part::All {
            between = match self.table_flags(view.flags().unwrap_or_default())? {
                true => Between::Next,
                false => Between::First,
            };
            self.comment(view.comment())?;
        }
        for object in table.objects().filter(|object| part.has_object(object)) {
            between.write(&mut self.out)?;
            self.object(&object)?;
        }
        for set in table.sets() {
            let view = set.set();
            if !part.has_set(&view) {
                continue;
            }
            between.write(&mut self.out)?;
            self.set(&set)?;
        }
        for flowtable in table.flowtables().filter(|each| part.has_flowtable(each)) {
            between.write(&mut self.out)?;
            self.flowtable(&flowtable)?;
        }
        for chain in table.chains() {
            let view = chain.chain();
            let is_nameless = view
                .flags()
                .unwrap_or_default()
                .contains(ChainFlags::BINDING);
            if is_nameless || !part.has_chain(&view) {
                continue;
            }
            between.write(&mut self.out)?;
            self.chain(table, &chain, part != Part::Chains)?;
        }
        self.depth = 0;
        self.out.write_str("}\n")
    }

    /// Whether there are any.
    fn table_flags(&mut self, flags: TableFlags) -> Result<bool, fmt::Error> {
        self.flags_line(flags, &TABLE_FLAGS)
    }

    /// `flags a,b`, with the words of those that are set: whether there are any.
    fn flags_line<F: Flags>(&mut self, flags: F, words: &[(F, &str)]) -> Result<bool, fmt::Error> {
        let is_set = |(flag, _): &&(F, &str)| flags.contains(F::from_bits_retain(flag.bits()));
        let words: Vec<_> = words.iter().filter(is_set).map(|(_, word)| *word).collect();
        if !words.is_empty() {
            self.line(format_args!("flags {}", words.join(",")))?;
        }
        Ok(!words.is_empty())
    }

    fn comment(&mut self, comment: Option<&BStr>) -> fmt::Result {
        match comment {
            Some(comment) => {
                self.indent()?;
                writeln!(self.out, "comment {}", Quoted(comment))
            }
            None => Ok(()),
        }
    }

    fn begin(&mut self, what: &str, name: &BStr, handle: u64) -> fmt::Result {
        self.indent()?;
        write!(self.out, "{what} {} {{", Plain(name))?;
        self.handle(handle)?;
        self.out.write_char('\n')?;
        self.depth += 1;
        Ok(())
    }

    fn end(&mut self) -> fmt::Result {
        self.depth -= 1;
        self.indent()?;
        self.out.write_str("}\n")
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> fmt::Result {
        self.indent()?;
        self.out.write_fmt(line)?;
        self.out.write_char('\n')
    }
}
