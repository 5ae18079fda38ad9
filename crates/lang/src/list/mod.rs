//! Rulesets as `nft list ruleset` shows them.

pub(super) mod chain;
pub(super) mod elements;
pub(super) mod line;
pub(super) mod object;
pub(super) mod set;
pub(super) mod tunnel;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::OnceLock;

use bitflags::Flags;
use bstr::{BStr, ByteSlice};
use nix::net::if_::if_nametoindex;

use super::constant::{Named, Quoted, escaped, is_name, quotable};
use super::print::Printer;
use super::read::rule;
use crate::zone::Zone;
use chainwright::nft::{
    ChainFlags, DataType, Milliseconds, Part, RuleRef, Snapshot, SnapshotTable, TableFlags,
};

/// What is written, and how.
#[derive(Debug, Clone, Default)]
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
    pub(super) time_zone: Zone,
    /// Names of interfaces by their numbers.
    interfaces: HashMap<u32, String>,
    /// Those that there are here, if they are to be read when the first is needed.
    interfaces_here: Option<OnceLock<HashMap<u32, String>>>,
}

impl Options {
    /// With the names that interfaces have in the network namespace of the calling thread; those of which they cannot be
    /// had are given by number.
    #[must_use]
    pub fn here() -> Self {
        Self::default().with_interfaces(interfaces_here())
    }

    /// The same, but the names are read when the first interface is written: in the network namespace of the thread that
    /// writes. Where there are many interfaces, and listings that name none, that is cheaper.
    #[must_use]
    pub fn here_when_needed() -> Self {
        Self {
            interfaces_here: Some(OnceLock::new()),
            ..Self::default()
        }
    }

    /// Gives days and hours in this time zone, by its name in the IANA's database, instead of the system's; `None` if it
    /// is not known.
    #[must_use]
    pub fn with_time_zone(mut self, name: &str) -> Option<Self> {
        self.time_zone = Zone::named(name)?;
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
        name.and_then(|name| quotable(name.as_bytes()))
    }

    /// A time as it is written.
    pub(super) fn time(&self, milliseconds: u64) -> String {
        match self.numeric_time {
            true => format!("{}s", milliseconds / 1000),
            false => Milliseconds(milliseconds).to_string(),
        }
    }

    pub(super) fn interface(&self, index: u32) -> Option<&str> {
        let known = self.interfaces.get(&index).or_else(|| {
            let here = self.interfaces_here.as_ref()?;
            here.get_or_init(|| interfaces_here().collect()).get(&index)
        });
        known.and_then(|name| quotable(name.as_bytes()))
    }
}

/// The interfaces of the calling thread's network namespace: numbers and names.
fn interfaces_here() -> impl Iterator<Item = (u32, String)> {
    // Not by a netlink socket of the C library's, which waits for a lost reply for ever.
    let devices = std::fs::read("/proc/thread-self/net/dev").unwrap_or_default();
    let names: Vec<_> = devices
        .lines()
        .filter_map(|line| {
            // A name that is no text is not written.
            let (name, _) = line.split_once_str(":")?;
            let name = name.trim_ascii().to_str().ok()?;
            Some((if_nametoindex(name).ok()?, name.to_owned()))
        })
        .collect();
    names.into_iter()
}

/// A ruleset in nft's language: what `nft list ruleset` prints, and parts of it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright::Error> {
/// use chainwright::nft::build::Build;
/// use chainwright::nft::{Chain, Connection, Family, Scope, Table, Transaction};
/// use chainwright_lang::{Listing, Options};
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
/// - What that version writes of a rule and would read back as another one is written right: see `tests/lang/text.rs` for
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

/// What the flags of tables are called.
pub(super) const TABLE_FLAGS: [(TableFlags, &str); 3] = [
    (TableFlags::DORMANT, "dormant"),
    (TableFlags::OWNER, "owner"),
    (TableFlags::PERSIST, "persist"),
];

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
                    let mark = if is_name(view.name()) { "" } else { "# " };
                    let name = Named(view.name());
                    writeln!(printer.out, "{mark}table {} {name}", view.family())?;
                }
                part if is_name(table.table().name()) => printer.table(&table, part)?,
                part => printer.commented(|printer| printer.table(&table, part))?,
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
            Named(view.name())
        )?;
        // As nft has it, which knows the table's handle only where it lists all of the table.
        if part == Part::All {
            self.handle(view.handle())?;
        }
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
            match is_name(object.name()) {
                true => self.object(&object)?,
                false => self.commented(|printer| printer.object(&object))?,
            }
        }
        for set in table.sets() {
            let view = set.set();
            if !part.has_set(&view) {
                continue;
            }
            between.write(&mut self.out)?;
            match is_name(view.name()) {
                true => self.set(&set)?,
                false => self.commented(|printer| printer.set(&set))?,
            }
        }
        for flowtable in table.flowtables().filter(|each| part.has_flowtable(each)) {
            between.write(&mut self.out)?;
            let hook = flowtable.hook().unwrap_or_default();
            match is_name(flowtable.name()) && chain::are_quotable(hook.devices.as_ref(), None) {
                true => self.flowtable(&flowtable)?,
                false => self.commented(|printer| printer.flowtable(&flowtable))?,
            }
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
            let with_rules = part != Part::Chains;
            let hook = view.hook().unwrap_or_default();
            let devices = chain::are_quotable(hook.devices.as_ref(), hook.device.as_deref());
            match is_name(view.name()) && devices {
                true => self.chain(table, &chain, with_rules)?,
                false => self.commented(|printer| printer.chain(table, &chain, with_rules))?,
            }
        }
        self.depth = 0;
        self.out.write_str("}\n")
    }

    /// Writes something that nft's language cannot hold as a comment: its name, or that of a device, is not one there.
    fn commented(
        &mut self,
        write: impl FnOnce(&mut Printer<'_, &mut String>) -> fmt::Result,
    ) -> fmt::Result {
        let mut text = String::new();
        let mut printer = Printer::new(&mut text, self.options);
        (printer.depth, printer.in_line) = (self.depth, self.in_line);
        write(&mut printer)?;
        self.line(format_args!("# nft's language cannot hold this name:"))?;
        text.lines()
            .try_for_each(|line| writeln!(self.out, "# {line}"))
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
            Some(comment) if quotable(comment).is_some() => {
                self.line(format_args!("comment {}", Quoted(comment)))
            }
            Some(comment) => self.line(format_args!("# comment {}", escaped(comment))),
            None => Ok(()),
        }
    }

    fn begin(&mut self, what: &str, name: &BStr, handle: u64) -> fmt::Result {
        self.indent()?;
        write!(self.out, "{what} {} {{", Named(name))?;
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
