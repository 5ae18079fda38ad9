//! Formats change events in nft's language.

use std::fmt;

use bstr::{BStr, ByteSlice};

use super::constant::is_name;
use super::list::{self, Options, line};
use super::print::Printer;
use super::read::set::SetReader;
use super::statements::object_name;
use chainwright::netlink::{Error, Message};
use chainwright::nft::live::{Change, Event, EventFlags, EventObject};
use chainwright::nft::{
    Connection, ElementsRef, Generation, RuleRef, SetFlags, SetRef, Snapshot, SnapshotSet,
    SnapshotTable,
};

/// Formats committed transactions in nft's language, like `nft monitor` and `nft --echo`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use chainwright::nft::Connection;
/// use chainwright::nft::live::{Item, Monitor};
/// use chainwright_lang::{Options, Script, EventFormatter, Formatted};
///
/// let mut monitor = Monitor::open()?;
/// let mut nft = Connection::open()?;
/// let mut formatter = EventFormatter::new(&mut nft, Options::here())?;
///
/// let text = "table inet t { chain c { tcp dport { 22, 80 } accept; }; }";
/// nft.commit(Script::parse("rules.nft", text)?.transaction(None)?.transaction())?;
///
/// let Item::Change(change) = monitor.receive()? else { panic!() };
/// let formatted_events = formatter.format(&change);
/// let lines: Vec<_> = formatted_events.iter().filter_map(Formatted::line).map(ToString::to_string).collect();
/// assert_eq!(lines[0], "add table inet t");
/// assert_eq!(lines[2], "add rule inet t c tcp dport { 22, 80 } accept");
/// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
/// # Ok(())
/// # }
/// ```
///
/// An event names a set without its type. The formatter therefore keeps the definitions of tables and sets, without
/// the elements of named sets. Pass it every change, in order, and create a new one after changes were lost.
#[derive(Debug)]
pub struct EventFormatter {
    known: Snapshot,
    /// Generation of `known`, which may also be of a later one.
    since: Option<Generation>,
    pub(super) options: Options,
}

/// Result of formatting an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Formatted<L = Line> {
    /// The event as text.
    Line(L),
    /// The event is part of another line: elements of an anonymous set in a rule, the other end of a range.
    Within,
    /// nft's language cannot represent the event, or its definition is not known.
    Inexpressible,
}

impl<L> Formatted<L> {
    /// Returns the text of the event.
    #[must_use]
    pub const fn line(&self) -> Option<&L> {
        match self {
            Self::Line(line) => Some(line),
            _ => None,
        }
    }
}

/// An event in nft's language. `Display` prints nft's line; `{:#}` appends the handle, like `nft -a`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Verb and object: `add rule ip filter input`.
    pub head: String,
    /// The rule, or the object's block with its braces; empty if there is none.
    pub body: String,
    /// Handle of an added object or a deleted table.
    pub handle: Option<u64>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head)?;
        if !self.body.is_empty() {
            write!(f, " {}", self.body)?;
        }
        match self.handle {
            Some(handle) if f.alternate() => write!(f, " # handle {handle}"),
            _ => Ok(()),
        }
    }
}

/// One end of a range whose other end may come in the next event.
struct Bound<'c> {
    event: usize,
    message: Message<'c>,
    elements: ElementsRef<'c>,
    verb: &'static str,
}

impl EventFormatter {
    /// Creates a formatter and reads the current tables and sets over this connection.
    ///
    /// # Errors
    /// Errors of the listings; [`Error::Interrupted`] if others kept changing the ruleset.
    pub fn new(connection: &mut Connection, options: Options) -> Result<Self, Error> {
        let known = connection.definitions()?;
        Ok(Self {
            since: known.generation(),
            known,
            options,
        })
    }

    /// Creates a formatter without knowledge of the current ruleset. It cannot format events that refer to earlier
    /// objects.
    #[must_use]
    pub fn empty(options: Options) -> Self {
        Self {
            known: Snapshot::empty(),
            since: None,
            options,
        }
    }

    /// Formats a transaction: one result for each of its [events](Change::events), in order.
    pub fn format(&mut self, change: &Change) -> Vec<Formatted> {
        self.format_in::<Lines>(change)
    }

    /// Formats a transaction as libnftables' JSON: one object like `{"add": {"rule": …}}` for each event, in one line.
    #[cfg(feature = "json")]
    pub fn format_json(&mut self, change: &Change) -> Vec<Formatted<String>> {
        self.format_in::<super::json::Events>(change)
    }

    fn format_in<F: OutputFormat>(&mut self, change: &Change) -> Vec<Formatted<F::Output>> {
        // `known` is newer than this change: its names may have referred to other objects then.
        let is_past = self.since.is_some_and(|since| {
            let ahead = change.generation().number().wrapping_sub(since.number());
            ahead.cast_signed() <= 0
        });
        let mut formatted_events = Vec::new();
        formatted_events.resize_with(change.events().len(), || Formatted::Inexpressible);
        let mut bound: Option<Bound<'_>> = None;
        for (number, event) in change.events().enumerate() {
            let Ok(object) = event.object() else {
                continue;
            };
            // Formatting a deletion needs the deleted set; formatting an addition needs the new one.
            if !event.is_deletion() && self.known.learn(&event).is_err() {
                continue;
            }
            if !is_past {
                formatted_events[number] = match &object {
                    EventObject::Elements(elements) => self.elements::<F>(
                        &mut formatted_events,
                        &mut bound,
                        number,
                        &event,
                        elements,
                    ),
                    object => self.object::<F>(&event, object),
                };
            }
            if event.is_deletion() {
                let _ = self.known.learn(&event); // an unreadable event adds nothing
            }
        }
        if let Some(bound) = bound {
            formatted_events[bound.event] = self.format_elements::<F>(&[bound.message], &bound);
        }
        if self.known.compact().is_err() {
            self.known = Snapshot::empty();
        }
        // If a rule cannot be formatted, report its anonymous sets as inexpressible too.
        let is_rule = |event: &Event<'_>| matches!(event.object(), Ok(EventObject::Rule(_)));
        let mut each = change.events().zip(&formatted_events);
        if each.any(|(event, formatted_events)| {
            is_rule(&event) && matches!(formatted_events, Formatted::Inexpressible)
        }) {
            for (event, formatted_events) in change.events().zip(&mut formatted_events) {
                if matches!(formatted_events, Formatted::Within) && self.is_of_nameless(&event) {
                    *formatted_events = Formatted::Inexpressible;
                }
            }
        }
        formatted_events
    }

    pub(super) fn table_of(&self, event: &Event<'_>) -> Option<SnapshotTable<'_>> {
        self.known.table(event.family(), event.table()?)
    }

    /// Returns `true` if an event concerns a known anonymous set.
    fn is_of_nameless(&self, event: &Event<'_>) -> bool {
        let table = self.table_of(event);
        let set = event.set().and_then(|name| table?.set(name));
        set.is_some_and(|set| is_nameless(set.set().flags().unwrap_or_default()))
    }

    /// Returns the flags of a set, as far as known. The event for a deleted set only has its name.
    pub(super) fn flags_of(&self, event: &Event<'_>, view: &SetRef<'_>) -> SetFlags {
        let set = self.table_of(event).and_then(|t| t.set(view.name()));
        let flags = set.map_or_else(|| view.flags(), |set| set.set().flags());
        flags.unwrap_or_default()
    }

    fn object<F: OutputFormat>(
        &self,
        event: &Event<'_>,
        object: &EventObject<'_>,
    ) -> Formatted<F::Output> {
        if let EventObject::Set(view) = object
            && is_nameless(self.flags_of(event, view))
        {
            return Formatted::Within;
        }
        let verb = match (event.is_deletion(), object) {
            (true, _) => "delete",
            (false, EventObject::Rule(_)) if !event.flags().contains(EventFlags::APPEND) => {
                "insert"
            }
            (false, _) => added(event),
        };
        match F::object(self, verb, event, object) {
            Some(formatted) => Formatted::Line(formatted),
            None => Formatted::Inexpressible,
        }
    }

    fn elements<'c, F: OutputFormat>(
        &self,
        formatted_events: &mut [Formatted<F::Output>],
        bound: &mut Option<Bound<'c>>,
        number: usize,
        event: &Event<'c>,
        elements: &ElementsRef<'c>,
    ) -> Formatted<F::Output> {
        let table = self.table_of(event);
        let Some(set) = table.and_then(|table| table.set(elements.set())) else {
            return Formatted::Inexpressible;
        };
        let view = set.set();
        let flags = view.flags().unwrap_or_default();
        if is_nameless(flags) {
            return Formatted::Within;
        }
        let this = Bound {
            event: number,
            message: event.message(),
            elements: *elements,
            verb: match event.is_deletion() {
                true => "delete",
                false => added(event),
            },
        };
        let has_bounds = flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT);
        if !has_bounds {
            return self.format_elements::<F>(&[this.message], &this);
        }
        match bound.take() {
            Some(other) if other.makes_range_with(&this) => {
                formatted_events[other.event] =
                    self.format_elements::<F>(&[other.message, this.message], &this);
                Formatted::Within
            }
            other => {
                if let Some(other) = other {
                    formatted_events[other.event] =
                        self.format_elements::<F>(&[other.message], &other);
                }
                *bound = Some(this);
                Formatted::Inexpressible // until its other end arrives
            }
        }
    }

    /// Formats elements as `add element ip t s { 10.0.0.0/8 }`.
    fn format_elements<F: OutputFormat>(
        &self,
        messages: &[Message<'_>],
        of: &Bound<'_>,
    ) -> Formatted<F::Output> {
        let elements = &of.elements;
        // An end without a start precedes the first range and adds nothing.
        if let [_] = messages
            && end(elements).is_some_and(|(is_end, _)| is_end)
        {
            return Formatted::Within;
        }
        let formatted = || {
            let table = self.known.table(elements.family(), elements.table())?;
            let set = table.set(elements.set())?;
            let excerpt = table.excerpt(&set, messages).ok()?;
            let set = excerpt
                .table(elements.family(), elements.table())?
                .set(elements.set())?;
            F::elements(self, of.verb, &set)
        };
        match formatted() {
            Some(formatted) => Formatted::Line(formatted),
            None => Formatted::Inexpressible,
        }
    }
}

/// Returns the verb of an addition: `create` if the object must not exist yet.
fn added(event: &Event<'_>) -> &'static str {
    match event.flags().contains(EventFlags::EXCLUSIVE) {
        true => "create",
        false => "add",
    }
}

/// Output format of events.
pub(super) trait OutputFormat {
    /// Formatted event.
    type Output;

    /// Formats an event about an object; `None` if the format cannot represent it.
    fn object(
        formatter: &EventFormatter,
        verb: &'static str,
        event: &Event<'_>,
        object: &EventObject<'_>,
    ) -> Option<Self::Output>;

    /// Formats the elements of a named set; the set contains only these elements.
    fn elements(
        formatter: &EventFormatter,
        verb: &'static str,
        set: &SnapshotSet<'_>,
    ) -> Option<Self::Output>;
}

/// nft's lines.
struct Lines;

impl OutputFormat for Lines {
    type Output = Line;

    fn object(
        formatter: &EventFormatter,
        verb: &'static str,
        event: &Event<'_>,
        object: &EventObject<'_>,
    ) -> Option<Line> {
        let options = &formatter.options;
        let is_deletion = event.is_deletion();
        // The name is enough for a deletion.
        let inside = |body: Option<String>| match is_deletion {
            true => Some(String::new()),
            false => body,
        };
        // nft's language cannot represent some names.
        let named = |name: &BStr| is_name(name).then(|| name.to_string());
        let in_table =
            |table: &BStr, name: &BStr| Some(format!("{} {}", named(table)?, named(name)?));
        let (kind, name, body) = match object {
            EventObject::Table(view) => {
                let body = inside(line::table(view, options));
                ("table", named(view.name()), body)
            }
            EventObject::Chain(view) => {
                let body = inside(line::chain(view, options));
                ("chain", in_table(view.table(), view.name()), body)
            }
            EventObject::Set(view) => {
                let set = formatter.table_of(event).and_then(|t| t.set(view.name()));
                let body = inside(set.and_then(|set| line::set(&set, options)));
                let kind = match chainwright::nft::is_map(formatter.flags_of(event, view)) {
                    true => "map",
                    false => "set",
                };
                (kind, in_table(view.table(), view.name()), body)
            }
            EventObject::Object(view) => {
                let body = inside(line::object(view, options));
                let kind = object_name(view.object_type());
                (kind, in_table(view.table(), view.name()), body)
            }
            EventObject::Flowtable(view) => {
                let body = inside(line::flowtable(view, options));
                ("flowtable", in_table(view.table(), view.name()), body)
            }
            EventObject::Rule(rule) => return rule_line(formatter, verb, event, rule),
            _ => return None,
        };
        let body = body?;
        let is_table = matches!(object, EventObject::Table(_));
        Some(Line {
            head: format!("{verb} {kind} {} {}", event.family(), name?),
            body: match object {
                _ if body.is_empty() => body,
                EventObject::Object(_) => format!("{{ {body} }}"),
                _ => format!("{{ {body}; }}"),
            },
            handle: event.handle().filter(|_| is_table || !is_deletion),
        })
    }

    fn elements(
        formatter: &EventFormatter,
        verb: &'static str,
        set: &SnapshotSet<'_>,
    ) -> Option<Line> {
        let mut body = String::from("{ ");
        let mut printer = Printer::new(&mut body, &formatter.options);
        printer.in_line = true;
        for (index, element) in SetReader::named(set, formatter.options.nft_version)
            .elements()?
            .iter()
            .enumerate()
        {
            if index > 0 {
                printer.out.push_str(", ");
            }
            printer.element(element).ok()?;
        }
        body.push_str(" }");
        let view = set.set();
        let are_names = is_name(view.table()) && is_name(view.name());
        are_names.then_some(())?;
        Some(Line {
            head: format!(
                "{verb} element {} {} {}",
                view.family(),
                view.table(),
                view.name()
            ),
            body,
            handle: None,
        })
    }
}

fn rule_line(
    formatter: &EventFormatter,
    verb: &str,
    event: &Event<'_>,
    rule: &RuleRef<'_>,
) -> Option<Line> {
    let are_names = is_name(rule.table()) && is_name(rule.chain());
    are_names.then_some(())?;
    let mut head = format!(
        "{verb} rule {} {} {}",
        rule.family(),
        rule.table(),
        rule.chain()
    );
    let handle = match (event.is_deletion(), rule.position()) {
        (true, _) => Some(rule.handle()),
        (false, position) => position.filter(|position| *position > 0),
    };
    if let Some(handle) = handle {
        head += &format!(" handle {handle}");
    }
    let body = match rule.expressions() {
        Some(_) => list::rule(&formatter.table_of(event)?, rule, &formatter.options)?,
        None => String::new(),
    };
    // nft prints only the handle of a deleted rule; the body has the rule in addition.
    Some(Line {
        head,
        body,
        handle: (!event.is_deletion()).then(|| rule.handle()),
    })
}

impl Bound<'_> {
    /// Returns `true` if the two are the ends of one range.
    fn makes_range_with(&self, other: &Self) -> bool {
        let is_of_same = self.verb == other.verb
            && self.elements.family() == other.elements.family()
            && self.elements.table() == other.elements.table()
            && self.elements.set() == other.elements.set();
        let (Some(one), Some(another)) = (end(&self.elements), end(&other.elements)) else {
            return false;
        };
        let (first, last) = match one.0 {
            true => (another, one),
            false => (one, another),
        };
        is_of_same && !first.0 && last.0 && first.1 < last.1
    }
}

/// Returns whether the only element ends a range, and its key; `None` unless there is exactly one element.
fn end(elements: &ElementsRef<'_>) -> Option<(bool, Vec<u8>)> {
    let mut each = elements.elements().into_iter().flatten();
    let element = each.next()?.ok()?;
    let key = element.key_bytes()?.as_bytes().to_vec();
    each.next()
        .is_none()
        .then(|| (element.is_interval_end(), key))
}

/// Returns `true` if a set is listed within its rule.
fn is_nameless(flags: SetFlags) -> bool {
    flags.contains(SetFlags::ANONYMOUS) && !flags.contains(SetFlags::EVAL)
}
