//! Rulesets as `nft list ruleset` shows them.

use std::collections::HashMap;
use std::fmt::{self, Write};

use bstr::{BStr, ByteSlice};
use jiff::tz::TimeZone;
use nix::net::if_::if_nametoindex;

use super::constant::{Plain, Quoted};
use super::print::Printer;
use super::read::set::SetReader;
use super::read::{rule, set, stateful};
use super::types;
use crate::nft::expr::ObjectType;
use crate::nft::stateful::Timeouts;
use crate::nft::{
    ChainFlags, ChainRef, DataType, Family, FlowtableRef, Hook, Milliseconds, ObjectData, Policy,
    RuleRef, SetFlags, SetPolicy, SetRef, Snapshot, SnapshotChain, SnapshotSet, SnapshotTable,
    StatefulObjectRef, TableFlags, hook_name,
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
    fn is_in(&self, table: &SnapshotTable<'_>) -> bool {
        let set = |name: &[u8], map| {
            let found = table.set(name);
            found.is_some_and(|set| is_map(set.set().flags().unwrap_or_default()) == map)
        };
        match *self {
            Self::Chain(name) => table.chain(name).is_some(),
            Self::Set(name) => set(name, false),
            Self::Map(name) => set(name, true),
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
    let options = Options {
        handles: false,
        ..options.clone()
    };
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, &options);
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
            let is_nameless = view
                .flags()
                .unwrap_or_default()
                .contains(SetFlags::ANONYMOUS);
            if is_nameless || !part.has_set(&view) {
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
        let words = TABLE_FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
        let words: Vec<_> = words.map(|(_, word)| *word).collect();
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

    fn chain(
        &mut self,
        table: &SnapshotTable<'_>,
        chain: &SnapshotChain<'_>,
        with_rules: bool,
    ) -> fmt::Result {
        let view = chain.chain();
        self.begin("chain", view.name(), view.handle())?;
        self.comment(view.comment())?;
        self.hook(&view)?;
        if with_rules {
            self.rules(chain.rules().map(|each| rule::rule(table, &each)))?;
        }
        self.end()
    }

    fn hook(&mut self, chain: &ChainRef<'_>) -> fmt::Result {
        let Some(hook) = chain.hook() else {
            return Ok(());
        };
        let family = chain.family();
        let number = hook.number.unwrap_or_default();
        self.indent()?;
        let kind = chain.chain_type().unwrap_or_default();
        let name = hook_name(family, number).unwrap_or("unknown");
        write!(self.out, "type {} hook {name}", Plain(kind))?;
        let devices = chain_devices(&hook);
        let names = devices.iter().map(|name| Plain(name.as_str().into()));
        match &devices[..] {
            [] => {}
            [one] => write!(self.out, " device {}", Quoted(one.as_str().into()))?,
            _ => {
                let names: Vec<String> = names.map(|name| name.to_string()).collect();
                write!(self.out, " devices = {{ {} }}", names.join(", "))?;
            }
        }
        self.out.write_str(" priority ")?;
        priority(
            &mut self.out,
            family,
            name,
            hook.priority.unwrap_or_default(),
        )?;
        self.out.write_char(';')?;
        match chain.policy() {
            Some(Policy::DROP) => self.out.write_str(" policy drop;")?,
            Some(_) => self.out.write_str(" policy accept;")?,
            None => {}
        }
        self.out.write_char('\n')?;
        if chain
            .flags()
            .unwrap_or_default()
            .contains(ChainFlags::HW_OFFLOAD)
        {
            self.line(format_args!("flags offload"))?;
        }
        Ok(())
    }

    fn set(&mut self, set: &SnapshotSet<'_>) -> fmt::Result {
        let view = set.set();
        let reader = SetReader::named(set);
        let flags = view.flags().unwrap_or_default();
        let is_map = is_map(flags);
        self.begin(
            if is_map { "map" } else { "set" },
            view.name(),
            view.handle(),
        )?;
        self.declared(&view, &reader, is_map)?;
        self.out.write_char('\n')?;
        if !flags.contains(SetFlags::CONSTANT) {
            if view.policy() == Some(SetPolicy::MEMORY) {
                self.line(format_args!("policy memory"))?;
            }
            if let Some(size) = set::size(&view) {
                self.line(format_args!("size {size}"))?;
            }
        }
        self.set_flags(&view, flags)?;
        if merges(&view) {
            self.line(format_args!("auto-merge"))?;
        }
        self.set_statements(&view)?;
        if let Some(timeout) = view.timeout() {
            self.line(format_args!("timeout {}", Milliseconds::from(timeout)))?;
        }
        if let Some(interval) = view.gc_interval() {
            self.line(format_args!("gc-interval {}", Milliseconds::from(interval)))?;
        }
        self.comment(view.comment())?;
        if !self.options.terse {
            self.elements(&reader)?;
        }
        self.end()
    }

    /// `type ipv4_addr : verdict`, or `typeof ip saddr : verdict`
    fn declared(&mut self, set: &SetRef<'_>, reader: &SetReader<'_>, is_map: bool) -> fmt::Result {
        self.indent()?;
        match &reader.key_typeof {
            Some(key) => {
                self.out.write_str("typeof ")?;
                self.expr(key)?;
            }
            None => {
                self.out.write_str("type ")?;
                self.data_type(set.key_type().unwrap_or_default())?;
            }
        }
        if !is_map {
            return Ok(());
        }
        self.out.write_str(" : ")?;
        if reader.has_ranges() {
            self.out.write_str("interval ")?;
        }
        match (&reader.data_typeof, set.object_type()) {
            (Some(data), _) => self.expr(data),
            (None, Some(object)) => self.out.write_str(object_name(object)),
            (None, None) => self.data_type(set.data_type().unwrap_or_default()),
        }
    }

    fn data_type(&mut self, data_type: DataType) -> fmt::Result {
        for (index, field) in set::fields(data_type).into_iter().enumerate() {
            if index > 0 {
                self.out.write_str(" . ")?;
            }
            match types::info(field) {
                Some(info) => self.out.write_str(info.name)?,
                None => write!(self.out, "type {}", field.0)?,
            }
        }
        Ok(())
    }

    fn set_flags(&mut self, set: &SetRef<'_>, flags: SetFlags) -> fmt::Result {
        let shown = match set.timeout() {
            Some(_) => flags - SetFlags::TIMEOUT, // it goes without saying
            None => flags,
        };
        let words = [
            (SetFlags::CONSTANT, "constant"),
            (SetFlags::EVAL, "dynamic"),
            (SetFlags::INTERVAL, "interval"),
            (SetFlags::TIMEOUT, "timeout"),
        ];
        if !words.iter().any(|(flag, _)| shown.contains(*flag)) {
            return Ok(());
        }
        let words = words.iter().filter(|(flag, _)| flags.contains(*flag));
        let words: Vec<_> = words.map(|(_, word)| *word).collect();
        self.line(format_args!("flags {}", words.join(",")))
    }

    fn set_statements(&mut self, set: &SetRef<'_>) -> fmt::Result {
        let statements = set::statements(set);
        if statements.is_empty() {
            return Ok(());
        }
        self.indent()?;
        for (index, statement) in statements.iter().enumerate() {
            if index > 0 {
                self.out.write_char(' ')?;
            }
            self.plans = true;
            self.statement(statement)?;
            self.plans = false;
        }
        self.out.write_char('\n')
    }

    fn elements(&mut self, reader: &SetReader<'_>) -> fmt::Result {
        let Some(elements) = reader.elements() else {
            return self.line(format_args!("# elements that nft has no words for"));
        };
        if elements.is_empty() {
            return Ok(());
        }
        let in_line = reader.key_type().map_or(1, elements_in_line);
        self.indent()?;
        self.out.write_str("elements = { ")?;
        for (index, element) in elements.iter().enumerate() {
            match index {
                0 => {}
                index if index.is_multiple_of(in_line) => {
                    self.out.write_str(",\n\t\t\t     ")?;
                }
                _ => self.out.write_str(", ")?,
            }
            self.element(element)?;
        }
        self.out.write_str(" }\n")
    }

    fn flowtable(&mut self, flowtable: &FlowtableRef<'_>) -> fmt::Result {
        self.begin("flowtable", flowtable.name(), flowtable.handle())?;
        let hook = flowtable.hook().unwrap_or_default();
        self.indent()?;
        self.out.write_str("hook ingress priority ")?;
        priority(
            &mut self.out,
            Family::NETDEV,
            "ingress",
            hook.priority.unwrap_or_default(),
        )?;
        self.out.write_char('\n')?;
        let devices = hook.devices.unwrap_or_default();
        let names: Vec<String> = devices
            .names()
            .map(|name| Plain(name).to_string())
            .collect();
        if !names.is_empty() {
            self.line(format_args!("devices = {{ {} }}", names.join(", ")))?;
        }
        let flags = flowtable.flags().unwrap_or_default();
        if flags.contains(crate::nft::FlowtableFlags::HW_OFFLOAD) {
            self.line(format_args!("flags offload"))?;
        }
        if flags.contains(crate::nft::FlowtableFlags::COUNTER) {
            self.line(format_args!("counter"))?;
        }
        self.end()
    }

    fn object(&mut self, object: &StatefulObjectRef<'_>) -> fmt::Result {
        let what = object_name(object.object_type());
        self.begin(what, object.name(), object.handle())?;
        self.comment(object.comment())?;
        if let Some(data) = object.data() {
            self.object_data(&data)?;
        }
        self.end()
    }

    fn object_data(&mut self, data: &ObjectData<'_>) -> fmt::Result {
        match data {
            ObjectData::Counter(counter) => match self.options.stateless {
                true => Ok(()),
                false => self.line(format_args!(
                    "packets {} bytes {}",
                    counter.packets.unwrap_or_default(),
                    counter.bytes.unwrap_or_default()
                )),
            },
            ObjectData::Quota(quota) => {
                self.indent()?;
                self.quota(&stateful::quota_statement(quota))?;
                self.out.write_char('\n')
            }
            ObjectData::Limit(limit) => {
                let Some(limit) = stateful::limit_statement(limit) else {
                    return Ok(());
                };
                let mut text = String::new();
                Printer::new(&mut text, self.options).statement(&limit)?;
                let limit = text.strip_prefix("limit ").unwrap_or(&text);
                self.line(format_args!("{limit}"))
            }
            ObjectData::Synproxy(synproxy) => {
                use crate::nft::expr::SynproxyFlags;
                let flags = synproxy.flags.unwrap_or_default();
                if flags.contains(SynproxyFlags::MSS) {
                    self.line(format_args!("mss {}", synproxy.mss.unwrap_or_default()))?;
                }
                if flags.contains(SynproxyFlags::WSCALE) {
                    self.line(format_args!(
                        "wscale {}",
                        synproxy.wscale.unwrap_or_default()
                    ))?;
                }
                let timestamp = flags.contains(SynproxyFlags::TIMESTAMP);
                let sack = flags.contains(SynproxyFlags::SACK_PERM);
                match (timestamp, sack) {
                    (true, true) => self.line(format_args!("timestamp sack-perm")),
                    // As nft has it, blank and all.
                    (true, false) => self.line(format_args!("timestamp ")),
                    (false, true) => self.line(format_args!(" sack-perm")),
                    (false, false) => Ok(()),
                }
            }
            ObjectData::CtHelper(helper) => {
                let name = helper.helper.clone().unwrap_or_default();
                let protocol = protocol_name(helper.l4proto);
                self.line(format_args!("type {} protocol {protocol}", Quoted(&name)))?;
                self.line(format_args!("l3proto {}", family_name(helper.l3proto)))
            }
            ObjectData::CtTimeout(timeout) => {
                let protocol = timeout.l4proto.unwrap_or_default();
                self.line(format_args!("protocol {}", protocol_name(Some(protocol))))?;
                self.line(format_args!("l3proto {}", family_name(timeout.l3proto)))?;
                let changed = changed_timeouts(protocol, timeout.timeouts.as_ref());
                let shown = changed
                    .iter()
                    .map(|(state, seconds)| format!("{state} : {seconds}"));
                let shown: Vec<String> = shown.collect();
                self.line(format_args!("policy = {{ {} }}", shown.join(", ")))
            }
            ObjectData::CtExpect(expect) => {
                self.line(format_args!("protocol {}", protocol_name(expect.l4proto)))?;
                self.line(format_args!("dport {}", expect.dport.unwrap_or_default()))?;
                let time = Milliseconds(u64::from(expect.timeout.unwrap_or_default().0));
                self.line(format_args!("timeout {time}"))?;
                self.line(format_args!("size {}", expect.size.unwrap_or_default()))?;
                self.line(format_args!("l3proto {}", family_name(expect.l3proto)))
            }
            ObjectData::Secmark(secmark) => {
                let context = secmark.context.clone().unwrap_or_default();
                self.line(format_args!("{}", Quoted(&context)))
            }
            other => {
                let other = other.to_string();
                self.line(format_args!("# {}", Plain(other.as_str().into())))
            }
        }
    }
}

/// The names of the devices that a chain is on.
pub(super) fn chain_devices(hook: &Hook<'_>) -> Vec<String> {
    let text = |name: &BStr| name.to_str_lossy().into_owned();
    if let Some(device) = &hook.device {
        return vec![text(device)];
    }
    let devices = hook.devices.iter().flat_map(|devices| devices.names());
    let mut names: Vec<String> = devices.map(text).collect();
    names.sort_unstable();
    names
}

/// The times that differ from the protocol's own, by the names of their states.
pub(super) fn changed_timeouts(
    protocol: u8,
    timeouts: Option<&Timeouts<'_>>,
) -> Vec<(&'static str, u32)> {
    const TCP: [(&str, u32); 11] = [
        ("syn_sent", 120),
        ("syn_recv", 60),
        ("established", 432_000),
        ("fin_wait", 120),
        ("close_wait", 60),
        ("last_ack", 30),
        ("time_wait", 120),
        ("close", 10),
        ("syn_sent2", 120),
        ("retrans", 300),
        ("unack", 300),
    ];
    const UDP: [(&str, u32); 2] = [("unreplied", 30), ("replied", 120)];
    let states: &[(&str, u32)] = match i32::from(protocol) {
        libc::IPPROTO_TCP => &TCP,
        libc::IPPROTO_UDP => &UDP,
        _ => &[],
    };
    let timeouts = timeouts.iter().flat_map(|timeouts| timeouts.iter());
    let changed = timeouts.filter_map(|(state, seconds)| {
        let index = usize::from(state).checked_sub(1)?;
        let (name, usual) = states.get(index)?;
        (seconds != *usual).then_some((*name, seconds))
    });
    changed.collect()
}

/// The name of a family in objects of connection tracking.
pub(super) fn family_name(number: Option<u16>) -> &'static str {
    let family = Family(number.unwrap_or_default() as u8); // one that the kernel knows
    family.name().unwrap_or("unknown")
}

pub(super) fn protocol_name(number: Option<u8>) -> String {
    let number = number.unwrap_or_default();
    let mut names = types::symbols(DataType::INET_PROTO).iter();
    match names.find(|(_, value)| *value == u64::from(number)) {
        Some((name, _)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

/// What a kind of stateful object is called.
pub(super) const fn object_name(object: ObjectType) -> &'static str {
    match object {
        ObjectType::COUNTER => "counter",
        ObjectType::QUOTA => "quota",
        ObjectType::LIMIT => "limit",
        ObjectType::CONNLIMIT => "ct count",
        ObjectType::SYNPROXY => "synproxy",
        ObjectType::CT_HELPER => "ct helper",
        ObjectType::CT_TIMEOUT => "ct timeout",
        ObjectType::CT_EXPECT => "ct expectation",
        ObjectType::SECMARK => "secmark",
        ObjectType::TUNNEL => "tunnel",
        _ => "unknown",
    }
}

/// Whether nft joins overlapping ranges of a set.
pub(super) fn merges(set: &SetRef<'_>) -> bool {
    use crate::nft::userdata::{SET_MERGE_ELEMENTS, UserData};
    let noted = set
        .userdata()
        .and_then(|data| UserData::new(data).number(SET_MERGE_ELEMENTS));
    noted.is_some_and(|number| number != 0)
}

/// How many elements nft writes in a line.
const fn elements_in_line(key: DataType) -> usize {
    match key {
        DataType::NF_PROTO
        | DataType::INTEGER
        | DataType::ARP_OP
        | DataType::INET_PROTO
        | DataType::INET_SERVICE
        | DataType::TCP_FLAG
        | DataType::DCCP_PKTTYPE
        | DataType::MARK
        | DataType::IFACE_INDEX
        | DataType::CLASSID
        | DataType::UID
        | DataType::GID
        | DataType::CT_DIR => 5,
        DataType::IPV4_ADDR | DataType::CT_STATE | DataType::CT_STATUS | DataType::PKT_TYPE => 2,
        _ => 1,
    }
}

/// A priority by its name, if one is near.
fn priority(out: &mut impl Write, family: Family, hook: &str, priority: i32) -> fmt::Result {
    const NEAR: i32 = 10;
    let names: &[(&str, i32)] = match family {
        Family::BRIDGE => &[
            ("dstnat", -300),
            ("filter", -200),
            ("out", 100),
            ("srcnat", 300),
        ],
        Family::ARP | Family::NETDEV => &[("filter", 0)],
        _ => &[
            ("raw", -300),
            ("mangle", -150),
            ("dstnat", -100),
            ("filter", 0),
            ("security", 50),
            ("srcnat", 100),
        ],
    };
    let fits = |name: &str| match name {
        "dstnat" => hook == "prerouting",
        "srcnat" => hook == "postrouting",
        "out" => hook == "output",
        _ => true,
    };
    let near = names
        .iter()
        .filter(|(name, _)| fits(name))
        .find_map(|(name, number)| {
            let offset = priority.checked_sub(*number)?;
            (-NEAR..=NEAR).contains(&offset).then_some((name, offset))
        });
    match near {
        Some((name, 0)) => out.write_str(name),
        Some((name, offset)) if offset > 0 => write!(out, "{name} + {offset}"),
        Some((name, offset)) => write!(out, "{name} - {}", -offset),
        None => write!(out, "{priority}"),
    }
}
