//! Lists rulesets like `nft list ruleset`.

pub(crate) mod chain;
pub(crate) mod elements;
pub(crate) mod line;
pub(crate) mod object;
pub(crate) mod set;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::OnceLock;

use bitflags::Flags;
use bstr::{BStr, ByteSlice};
use nix::net::if_::if_nametoindex;

use super::constant::{Named, Quoted, escaped, is_name, quotable};
use super::print::Printer;
use super::read::rule;
use crate::dialect::{Form, NftVersion};
use crate::zone::Zone;
use chainwright::nft::{
    ChainFlags, DataType, Milliseconds, Part, RuleRef, Snapshot, SnapshotTable, TableFlags,
};

/// Format options.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Version of nft whose form the output has.
    pub nft_version: NftVersion,
    /// Print handles (`nft -a`).
    pub handles: bool,
    /// Omit stateful information, such as counter values (`nft -s`).
    pub stateless: bool,
    /// Omit set elements (`nft -t`).
    pub terse: bool,
    /// Print priorities as numbers (`nft -y`).
    pub numeric_priority: bool,
    /// Print IP protocols as numbers (`nft -p`).
    pub numeric_protocol: bool,
    /// Print times in whole seconds (`nft -T`).
    pub numeric_time: bool,
    /// Print all other named values as numbers too; together with the previous three options, this is `nft -n`.
    pub numeric_symbols: bool,
    /// Names of users, groups and ports, by number.
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
    services: HashMap<u16, String>,
    /// Time zone of days and hours.
    pub(crate) time_zone: Zone,
    /// Interface names by index.
    interfaces: HashMap<u32, String>,
    /// Interface names of the current network namespace, if they are read lazily.
    interfaces_here: Option<OnceLock<HashMap<u32, String>>>,
}

impl Options {
    /// Returns options with the interface names of the calling thread's network namespace. Interfaces whose name
    /// cannot be determined are printed as numbers.
    #[must_use]
    pub fn here() -> Self {
        Self::default().with_interfaces(interfaces_here())
    }

    /// Returns options that read the interface names when the first interface is printed, in the network namespace of
    /// the printing thread. This is cheaper if there are many interfaces and listings without any.
    #[must_use]
    pub fn interfaces_when_needed() -> Self {
        Self {
            interfaces_here: Some(OnceLock::new()),
            ..Self::default()
        }
    }

    /// Sets the time zone of days and hours by its name in the IANA database, instead of the system's; `None` if it is
    /// unknown.
    #[must_use]
    pub fn with_time_zone(mut self, name: &str) -> Option<Self> {
        self.time_zone = Zone::named(name)?;
        Some(self)
    }

    /// Adds interface names by index.
    #[must_use]
    pub fn with_interfaces(mut self, names: impl IntoIterator<Item = (u32, String)>) -> Self {
        self.interfaces.extend(names);
        self
    }

    /// Prints users and groups by their names in `/etc/passwd` and `/etc/group` (`nft -u`).
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

    /// Prints ports by their names in `/etc/services` (`nft -S`).
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

    /// Returns `true` if the output has a form.
    pub(crate) fn has(&self, form: Form) -> bool {
        self.nft_version.has(form)
    }

    /// Prints all values as numbers (`nft -n`).
    #[must_use]
    pub const fn numeric(mut self) -> Self {
        self.numeric_priority = true;
        self.numeric_protocol = true;
        self.numeric_time = true;
        self.numeric_symbols = true;
        self
    }

    /// Returns `true` if values of this type are printed as numbers even if they have names.
    pub(crate) const fn is_numeric(&self, data_type: DataType) -> bool {
        match data_type {
            DataType::INET_PROTO => self.numeric_protocol,
            _ => self.numeric_symbols,
        }
    }

    /// Returns the name of a user, group or port, if these names were requested.
    pub(crate) fn account_or_service(&self, data_type: DataType, number: u128) -> Option<&str> {
        let name = match data_type {
            DataType::UID => self.users.get(&u32::try_from(number).ok()?),
            DataType::GID => self.groups.get(&u32::try_from(number).ok()?),
            DataType::INET_SERVICE => self.services.get(&u16::try_from(number).ok()?),
            _ => None,
        };
        name.and_then(|name| quotable(name.as_bytes()))
    }

    /// Formats a time.
    pub(crate) fn time(&self, milliseconds: u64) -> String {
        match self.numeric_time {
            true => format!("{}s", milliseconds / 1000),
            false => Milliseconds(milliseconds).to_string(),
        }
    }

    pub(crate) fn interface(&self, index: u32) -> Option<&str> {
        let known = self.interfaces.get(&index).or_else(|| {
            let here = self.interfaces_here.as_ref()?;
            here.get_or_init(|| interfaces_here().collect()).get(&index)
        });
        known.and_then(|name| quotable(name.as_bytes()))
    }
}

/// Indexes and names of the interfaces in the calling thread's network namespace.
fn interfaces_here() -> impl Iterator<Item = (u32, String)> {
    // Avoids the C library's netlink socket, which waits forever if a reply is lost.
    let devices = std::fs::read("/proc/thread-self/net/dev").unwrap_or_default();
    let names: Vec<_> = devices
        .lines()
        .filter_map(|line| {
            // Skips names that are not UTF-8.
            let (name, _) = line.split_once_str(":")?;
            let name = name.trim_ascii().to_str().ok()?;
            Some((if_nametoindex(name).ok()?, name.to_owned()))
        })
        .collect();
    names.into_iter()
}

/// A ruleset, or part of one, in nft's language: the output of `nft list ruleset`.
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
/// The output is that of nft in the version of [`Options::nft_version`], character for character, except:
///
/// - Where nft prints a rule in a form that it reads back as a different rule, the output is correct;
///   `tests/lang/text.rs` has all known cases of version 1.0.
/// - A rule that nft's language cannot represent (registers used in ways that nft never does, attributes of a newer
///   kernel) is a comment with its bytecode, as in `nft --debug=netlink`.
/// - Properties of an object that nft's language cannot represent (a limit per two hours) are also a comment; for
///   properties of set elements, the comment only reports that they exist.
/// - Matches and targets of x_tables are printed by name only (`xt match "comment"`).
#[derive(Debug, Clone, Copy)]
pub struct Listing<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(crate) options: &'s Options,
    pub(crate) part: Part<'s>,
    /// Whether the elements are those that a command looked up: nft then prints no number of elements, and neither the
    /// statements nor the comment of the set.
    pub(crate) is_lookup: bool,
}

impl<'s> Listing<'s> {
    /// Creates a listing of the whole snapshot.
    #[must_use]
    pub const fn new(snapshot: &'s Snapshot, options: &'s Options) -> Self {
        Self {
            snapshot,
            options,
            part: Part::All,
            is_lookup: false,
        }
    }

    /// Limits the listing to a part.
    #[must_use]
    pub const fn part(mut self, part: Part<'s>) -> Self {
        self.part = part;
        self
    }

    /// Returns `true` if the listing has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.snapshot.tables().any(|table| self.part.is_in(&table))
    }
}

/// Names of table flags.
pub(crate) const TABLE_FLAGS: [(TableFlags, &str); 3] = [
    (TableFlags::DORMANT, "dormant"),
    (TableFlags::OWNER, "owner"),
    (TableFlags::PERSIST, "persist"),
];

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer::new(f, self.options);
        printer.is_lookup = self.is_lookup;
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

/// Formats a rule in one line, without its handle; `None` if nft's language cannot represent it.
#[must_use]
pub fn rule(table: &SnapshotTable<'_>, rule: &RuleRef<'_>, options: &Options) -> Option<String> {
    let line = rule::rule(table, rule, options.nft_version);
    if line.is_opaque() {
        return None;
    }
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, options);
    printer.in_line = true;
    printer.rule(&line).ok()?;
    Some(text)
}

/// State of the empty lines between objects.
enum Between {
    /// No object was printed yet.
    First,
    Next,
    /// Objects of one kind are listed without empty lines.
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
        // nft only prints the table's handle if it lists the whole table.
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
            if !set::is_in(part, &view, self.options.nft_version) {
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

    /// Prints an object as a comment, because its name or a device name is not valid in nft's language.
    fn commented(
        &mut self,
        write: impl FnOnce(&mut Printer<'_, &mut String>) -> fmt::Result,
    ) -> fmt::Result {
        let mut text = String::new();
        let mut printer = Printer::new(&mut text, self.options);
        (printer.depth, printer.in_line) = (self.depth, self.in_line);
        write(&mut printer)?;
        self.line(format_args!("# nft's language cannot express this name:"))?;
        text.lines()
            .try_for_each(|line| writeln!(self.out, "# {line}"))
    }

    /// Prints the flags of a table; returns whether there are any.
    fn table_flags(&mut self, flags: TableFlags) -> Result<bool, fmt::Error> {
        self.flags_line(flags, &TABLE_FLAGS)
    }

    /// Prints `flags a,b`; returns whether any flag is set.
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
