//! Commands of a script that query: listings, element lookups, monitoring.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bstr::ByteSlice;

use super::compile::not_a_change;
use super::describe::describe;
use super::list::set::is_in;
use super::list::{Listing, Options};
use super::parse::{
    Command, Described, Diagnostic, Error, EventKind, Kind, Object, Position, SetDeclaration, Verb,
    names_devices,
};
use super::run::RunError;
use super::script::Script;
use super::syntax::Span;
use chainwright::nft::live::{Event, EventObject};
use chainwright::nft::{
    Connection, ElementFilter, Family, Name, Part, Scope, Set, SetId, Snapshot, SnapshotError,
    SnapshotOptions, SnapshotQuery, SnapshotTable,
};

/// Command of a script that does not modify the ruleset by a transaction: `list`, `reset`, `get`, `describe`,
/// `monitor`.
#[derive(Debug, Clone, Copy)]
pub struct Query<'s> {
    script: &'s Script,
    command: &'s Command,
}

/// Part of a ruleset that a script requested.
#[derive(Debug)]
pub struct QueryResult<'s> {
    snapshot: Arc<Snapshot>,
    part: Part<'s>,
    is_lookup: bool,
}

/// Looks up a key in a set or map, as nft's `get element` does. `key` is an element in nft's language, for instance
/// `10.0.0.1`, `10.0.0.1 . 443` or `10.0.0.0/8`. Returns the set with its elements that contain the key; `None` if it has
/// no such element, or does not exist.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use chainwright::nft::{Connection, Family, SetId};
/// use chainwright_lang::{Options, RunMode, Script, find_element};
///
/// let mut nft = Connection::open()?;
/// let text = "table ip t { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }; }; }";
/// Script::parse("rules.nft", text)?.run(&mut nft, RunMode::Commit, &Options::here())?;
/// let set = SetId::new(Family::IP, "t", "s");
/// assert!(find_element(&mut nft, &set, "10.1.2.3")?.is_some());
/// assert!(find_element(&mut nft, &set, "192.0.2.1")?.is_none());
/// assert!(find_element(&mut nft, &set, "fd00::1").is_err());
/// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`RunError::Script`] if the key is not a list of elements, or does not have the type of the set's keys; otherwise the
/// errors of the requests.
pub fn find_element(
    nft: &mut Connection,
    set: &SetId<'_>,
    key: &str,
) -> Result<Option<Snapshot>, RunError> {
    let text = format!("get element ip t s {{ {key} }}");
    let mut script = Script::parse("key", text).map_err(|error| RunError::Script(error.into()))?;
    if let [
        Command {
            object: Object::Elements(sought),
            ..
        },
    ] = &mut script.commands[..]
    {
        sought.family = set.family;
        sought.table = set.table.clone().into_owned();
        sought.set = set.set.clone().into_owned();
    }
    // The text can end the list and continue with other commands.
    let query = match &script.commands[..] {
        [
            Command {
                verb: Verb::Get,
                object: Object::Elements(_),
                ..
            },
        ] => script.queries().next(),
        _ => None,
    };
    let Some(query) = query else {
        let span = script
            .commands
            .first()
            .map_or_else(Span::default, |command| command.span);
        let error = script.explain(Diagnostic::new(span, "expected one list of elements"));
        return Err(RunError::Script(error.into()));
    };
    match query.answer(nft) {
        Ok(result) => Ok(Arc::into_inner(result.snapshot)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Cache of the tables read for earlier commands. A later command about the same tables uses it, as long as nothing
/// was committed since. Counters, dynamic elements and timeouts are as of the first read.
#[derive(Debug, Clone, Default)]
pub struct QueryCache {
    /// Keyed by the debug format of the scope.
    read: HashMap<String, Arc<Snapshot>>,
    terse: bool,
    with_bytecode: bool,
}

/// Selects the sets whose elements are read.
fn elements_of(terse: bool) -> ElementFilter {
    match terse {
        true => ElementFilter::ANONYMOUS,
        false => ElementFilter::all(),
    }
}

/// Reads parts of these tables; if `terse`, without the elements of named sets.
fn read(
    nft: &mut Connection,
    scope: &Scope<'_>,
    parts: &[Part<'_>],
    terse: bool,
) -> Result<Snapshot, SnapshotError> {
    let options = SnapshotOptions {
        elements: elements_of(terse),
    };
    let read = nft.snapshot_parts(scope.clone(), parts, options)?;
    Ok(read.into_inner())
}

impl QueryCache {
    /// Creates an empty cache. If the options are terse, it omits the elements of named sets, and so do all answers
    /// from it.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self {
            terse: options.terse,
            ..Self::default()
        }
    }

    /// Reads whole tables, so that the [bytecode](QueryResult::bytecode) of answers can be printed.
    #[must_use]
    pub fn with_bytecode(self) -> Self {
        Self {
            read: HashMap::new(),
            with_bytecode: true,
            ..self
        }
    }

    /// Returns the snapshot for a command. One read covers all commands of the script about the same tables.
    fn snapshot(
        &mut self,
        nft: &mut Connection,
        query: &Query<'_>,
        about: &About<'_>,
    ) -> Result<Arc<Snapshot>, RunError> {
        if !self.read.is_empty() {
            let now = Some(nft.generation()?);
            self.read.retain(|_, snapshot| snapshot.generation() == now);
        }
        let tables = format!("{:?}", about.scope);
        if let Some(snapshot) = self.read.get(&tables) {
            return Ok(snapshot.clone());
        }
        let parts = match self.with_bytecode {
            true => vec![Part::All],
            false => {
                let others = query.script.queries();
                let others = others.filter_map(|other| other.about().ok());
                let others = others.filter(|other| other.scope == about.scope);
                let parts: HashSet<_> = others.map(|other| other.part).collect();
                parts.into_iter().collect()
            }
        };
        let snapshot = Arc::new(read(nft, &about.scope, &parts, self.terse)?);
        self.read.insert(tables, snapshot.clone());
        Ok(snapshot)
    }
}

impl<'s> QueryResult<'s> {
    /// Reads the parts of these tables that a listing with these options needs.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, Scope};
    /// use chainwright_lang::{QueryResult, Options, Part};
    ///
    /// let (mut nft, options) = (Connection::open()?, Options::here());
    /// let answer = QueryResult::read(&mut nft, &Scope::all(), Part::Tables, &options)?;
    /// print!("{}", answer.listing(&options));
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Connection::snapshot`].
    pub fn read(
        nft: &mut Connection,
        scope: &Scope<'_>,
        part: Part<'s>,
        options: &Options,
    ) -> Result<Self, SnapshotError> {
        Ok(Self {
            snapshot: Arc::new(read(nft, scope, &[part], options.terse)?),
            part,
            is_lookup: false,
        })
    }

    /// Formats the requested part. No other part was read.
    #[must_use]
    pub fn listing<'a>(&'a self, options: &'a Options) -> Listing<'a> {
        let mut listing = Listing::new(&self.snapshot, options).part(self.part);
        listing.is_lookup = self.is_lookup;
        listing
    }

    /// Formats the bytecode of the listed part: the text that `nft --debug=netlink` prints before the listing.
    #[must_use]
    pub const fn bytecode(&self) -> impl fmt::Display {
        Bytecode(self)
    }
}

struct Bytecode<'a>(&'a QueryResult<'a>);

impl fmt::Display for Bytecode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryResult { snapshot, part, .. } = self.0;
        let Part::Chain(chain) = *part else {
            return write!(f, "{snapshot}");
        };
        for table in snapshot.tables() {
            for set in table.sets() {
                writeln!(f, "{}", set.set())?;
                for element in set.elements() {
                    writeln!(f, "\t{element}")?;
                }
            }
            let rules = table
                .chain(chain)
                .into_iter()
                .flat_map(|chain| chain.rules());
            for rule in rules {
                write!(f, "{rule}")?;
            }
        }
        Ok(())
    }
}

/// Selection of events to report: `monitor new rules`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFilter(super::parse::EventFilter);

impl EventFilter {
    /// Returns `true` if an event is selected.
    #[must_use]
    pub fn admits(&self, event: &Event<'_>) -> bool {
        let is_wanted = match event.is_deletion() {
            true => self.0.deletions,
            false => self.0.additions,
        };
        is_wanted
            && match (self.0.kind, event.object()) {
                (EventKind::Ruleset, _) => true,
                (EventKind::Tables, Ok(object)) => matches!(object, EventObject::Table(_)),
                (EventKind::Chains, Ok(object)) => matches!(object, EventObject::Chain(_)),
                (EventKind::Rules, Ok(object)) => matches!(object, EventObject::Rule(_)),
                (EventKind::Sets, Ok(object)) => matches!(object, EventObject::Set(_)),
                (EventKind::Elements, Ok(object)) => matches!(object, EventObject::Elements(_)),
                (EventKind::Objects, Ok(object)) => matches!(object, EventObject::Object(_)),
                (_, _) => false,
            }
    }

    /// Returns `true` if everything is selected. nft then also reports generations and packet traces.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        !self.0.is_named
    }

    /// Returns `true` if only packet traces are selected (`monitor trace`); a
    /// [`Tracer`](chainwright::nft::live::Tracer) reports them.
    #[must_use]
    pub fn is_trace(&self) -> bool {
        self.0.kind == EventKind::Trace
    }

    /// Returns `true` if the output format is JSON (`monitor rules json`).
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.0.is_json
    }
}

/// Part that a command is about, and the tables to read for it.
struct About<'s> {
    scope: Scope<'s>,
    part: Part<'s>,
}

impl<'s> Query<'s> {
    pub(super) const fn new(script: &'s Script, command: &'s Command) -> Self {
        Self { script, command }
    }

    fn span(&self) -> Span {
        self.command.span
    }

    fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.span(), message)
    }

    fn script_error(&self, diagnostic: Diagnostic) -> RunError {
        RunError::Script(Box::new(self.script.explain(diagnostic)))
    }

    fn about(&self) -> Result<About<'s>, Diagnostic> {
        fn named<'s>(name: Option<&'s Name<'static>>) -> &'s [u8] {
            name.map_or(&[][..], |name| name.as_ref())
        }
        let of = |family, table: Option<&'s Name<'static>>, part| About {
            scope: Scope {
                family,
                table: table.map(|table| Name::from(named(Some(table)))),
            },
            part,
        };
        let of_set = |set: &'s Set<'static>, part: fn(&'s [u8]) -> Part<'s>| {
            of(
                set.family,
                set.table.as_ref(),
                part(named(set.name.as_ref())),
            )
        };
        Ok(match &self.command.object {
            Object::Ruleset(family) => of(*family, None, Part::All),
            Object::Table(table) => of(table.family, table.name.as_ref(), Part::All),
            Object::Chain(chain) => of(
                chain.family,
                chain.table.as_ref(),
                Part::Chain(named(chain.name.as_ref())),
            ),
            Object::Set(declared) => {
                let SetDeclaration { set, is_map, .. } = &**declared;
                of_set(set, if *is_map { Part::Map } else { Part::Set })
            }
            Object::Meter(set) => of_set(set, Part::Meter),
            Object::Flowtable(flowtable) => of(
                flowtable.family,
                flowtable.table.as_ref(),
                Part::Flowtable(named(flowtable.name.as_ref())),
            ),
            Object::Stateful(object) => {
                let kind = object.object_type.unwrap_or_default();
                let part = Part::Object(kind, named(object.name.as_ref()));
                of(object.family, object.table.as_ref(), part)
            }
            Object::Kind(kind, family, table) => {
                let part = match kind {
                    Kind::Tables => Part::Tables,
                    Kind::Chains => Part::Chains,
                    Kind::Rules => Part::All,
                    Kind::Sets => Part::Sets,
                    Kind::Maps => Part::Maps,
                    Kind::Meters => Part::Meters,
                    Kind::Flowtables => Part::Flowtables,
                    Kind::Stateful(object_type) => Part::Objects(*object_type),
                    Kind::Hooks => return Err(self.diagnostic("hooks are not part of a ruleset")),
                };
                of(*family, table.as_ref(), part)
            }
            Object::Elements(elements) => of(elements.family, Some(&elements.table), Part::Tables),
            Object::Rule(rule) => of(rule.family, Some(&rule.table), Part::All),
            _ => return Err(self.diagnostic("this cannot be listed")),
        })
    }

    /// Returns `true` if the command's object must exist.
    pub(super) const fn names_something(&self) -> bool {
        !matches!(
            self.command.object,
            Object::Ruleset(_)
                | Object::Monitor(_)
                | Object::Described(_)
                | Object::Kind(Kind::Hooks, ..)
        )
    }

    /// Creates the error that the object does not exist.
    fn missing(&self, about: &About<'_>, has_table: bool) -> Diagnostic {
        let name = |name: &[u8]| super::parse::error::shown(&String::from_utf8_lossy(name));
        let table = about
            .scope
            .table
            .as_deref()
            .map_or("".into(), |table| name(table));
        let what = match (has_table, about.part) {
            (true, Part::Chain(chain)) => format!("chain `{}`", name(chain)),
            (true, Part::Set(set) | Part::Meter(set)) => format!("set `{}`", name(set)),
            (true, Part::Map(map)) => format!("map `{}`", name(map)),
            (true, Part::Flowtable(flowtable)) => format!("flowtable `{}`", name(flowtable)),
            (true, Part::Object(_, object)) => format!("object `{}`", name(object)),
            _ => {
                let family = about.scope.family;
                let message = format!("no such table: {family} {table}");
                return Diagnostic::missing(self.span(), message);
            }
        };
        let family = about.scope.family;
        let message = format!("no such {what} in table {family} {table}");
        Diagnostic::missing(self.span(), message)
    }

    /// Checks the command against the ruleset in `known`, which is read if necessary.
    pub(super) fn check_by(
        &self,
        nft: &mut Connection,
        known: &mut QueryCache,
        planned: &Planned<'_>,
    ) -> Result<(), RunError> {
        if !self.names_something() {
            return Ok(());
        }
        let about = self
            .about()
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        let now = known.snapshot(nft, self, &about)?;
        self.check(&now, planned)
            .map_err(|diagnostic| self.script_error(diagnostic))
    }

    /// Returns whether the command's object exists once the planned changes are applied to the ruleset.
    pub(super) fn check(&self, now: &Snapshot, planned: &Planned<'_>) -> Result<(), Diagnostic> {
        if !self.names_something() {
            return Ok(());
        }
        let about = self.about()?;
        let Some(table) = about.scope.table.as_deref() else {
            return Ok(());
        };
        let family = about.scope.family;
        let tables = (now.tables()).filter(|each| {
            let each = each.table();
            about.scope.admits(each.family(), each.name())
        });
        let found = tables.last();
        let (has_table, has_part) = match planned.of(family, table) {
            Some(table) => (
                table.exists.unwrap_or(found.is_some()),
                match part_name(about.part) {
                    None => true,
                    Some(name) => match table.inside.get(&name) {
                        Some(exists) => *exists,
                        None if table.is_new => false,
                        None => found.is_some_and(|found| self.is_part_in(about.part, &found)),
                    },
                },
            ),
            None => (
                found.is_some() && !planned.flushes(family),
                part_name(about.part).is_none()
                    || found.is_some_and(|found| self.is_part_in(about.part, &found)),
            ),
        };
        match has_table && has_part {
            true => Ok(()),
            false => Err(self.missing(&about, has_table)),
        }
    }

    /// Returns `true` if a table contains the part.
    fn is_part_in(&self, part: Part<'_>, table: &SnapshotTable<'_>) -> bool {
        match part {
            Part::Meter(name) => (table.set(name))
                .is_some_and(|set| is_in(part, &set.set(), self.script.nft_version())),
            part => part.is_in(table),
        }
    }

    /// Creates the error that the command cannot be part of a transaction, for callers that only accept changes.
    #[must_use]
    pub fn not_a_change_error(&self) -> Error {
        self.script.explain(not_a_change(self.span()))
    }

    /// Returns the events to report (`monitor`). The caller opens a [`Monitor`](chainwright::nft::live::Monitor) for
    /// them.
    #[must_use]
    pub const fn event_filter(&self) -> Option<EventFilter> {
        match &self.command.object {
            Object::Monitor(watched) => Some(EventFilter(*watched)),
            _ => None,
        }
    }

    /// Returns the family and device of `list hooks`; a [`HookListing`](super::HookListing) lists the hooks.
    #[must_use]
    pub fn hooks(&self) -> Option<(Family, Option<&'s str>)> {
        match (self.command.verb, &self.command.object) {
            (Verb::List, Object::Kind(Kind::Hooks, family, device)) => {
                let device = device.as_deref().and_then(|name| name.to_str().ok());
                Some((*family, device))
            }
            _ => None,
        }
    }

    /// Returns the output of `describe`. It does not need the kernel.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        let Object::Described(described) = &self.command.object else {
            return None;
        };
        let version = self.script.nft_version();
        Some(match described {
            Described::Type(data_type) => describe(None, *data_type, None, version),
            Described::Expr(expr) => {
                let compiler = self.script.compiler(None);
                let (data_type, bits) = compiler.type_of(expr);
                describe(Some(expr), data_type, Some(bits), version)
            }
        })
    }

    /// Runs a `list`, `reset` or `get` command on the current ruleset.
    ///
    /// # Errors
    /// [`RunError::Script`] if the object does not exist or is not part of a ruleset; otherwise the errors of the requests.
    pub fn answer(&self, nft: &mut Connection) -> Result<QueryResult<'s>, RunError> {
        self.answer_by(nft, false, |nft, about| {
            Ok(Arc::new(read(nft, &about.scope, &[about.part], false)?))
        })
    }

    /// Runs the command like [`answer`](Self::answer), but reuses tables that were read for other commands
    /// ([`RunOutcome::cache`](super::RunOutcome::cache)), if nothing was committed since.
    ///
    /// # Errors
    /// Same as [`answer`](Self::answer).
    pub fn answer_cached(
        &self,
        nft: &mut Connection,
        known: &mut QueryCache,
    ) -> Result<QueryResult<'s>, RunError> {
        let terse = known.terse;
        self.answer_by(nft, terse, |nft, about| known.snapshot(nft, self, about))
    }

    fn answer_by(
        &self,
        nft: &mut Connection,
        terse: bool,
        read: impl FnOnce(&mut Connection, &About<'_>) -> Result<Arc<Snapshot>, RunError>,
    ) -> Result<QueryResult<'s>, RunError> {
        match self.command.verb {
            Verb::Get => return self.elements(nft, false),
            Verb::Reset => return self.reset(nft, terse),
            _ => {}
        }
        let about = self
            .about()
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        let snapshot = read(nft, &about)?;
        self.check(&snapshot, &Planned::default())
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        Ok(QueryResult {
            snapshot,
            part: about.part,
            is_lookup: false,
        })
    }

    /// Runs `reset counters`, `reset rules` or `reset set ip t s`.
    fn reset(&self, nft: &mut Connection, terse: bool) -> Result<QueryResult<'s>, RunError> {
        let mut about = self
            .about()
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        let elements = elements_of(terse);
        let snapshot_query = match (&self.command.object, about.part) {
            (Object::Stateful(object), _) => SnapshotQuery::Object(object),
            (_, Part::Objects(object_type)) => {
                SnapshotQuery::Objects(object_type, about.scope.clone())
            }
            (Object::Rule(rule), _) => {
                let Position::Handle(handle) = rule.position else {
                    return Err(
                        self.script_error(self.diagnostic("`reset rule` requires a handle"))
                    );
                };
                let chain = rule.chain.as_bstr();
                let Some(snapshot) = nft.reset_rule(&about.scope, chain, handle, elements)? else {
                    let message = format!("no rule with handle {handle} in this chain");
                    return Err(self.script_error(Diagnostic::missing(self.span(), message)));
                };
                return Ok(QueryResult {
                    snapshot: Arc::new(snapshot),
                    part: about.part,
                    is_lookup: false,
                });
            }
            (Object::Elements(_), _) => return self.elements(nft, true),
            (_, part) => {
                if part == Part::Tables {
                    about.part = Part::All;
                }
                let snapshot = nft.reset_part(&about.scope, about.part, elements)?;
                self.check(&snapshot, &Planned::default())
                    .map_err(|diagnostic| self.script_error(diagnostic))?;
                return Ok(QueryResult {
                    snapshot: Arc::new(snapshot),
                    part: about.part,
                    is_lookup: false,
                });
            }
        };
        let tables = read(nft, &about.scope, &[Part::Tables], true)?;
        let snapshot = nft.answered(tables, &snapshot_query)?;
        let snapshot = match snapshot {
            Some(snapshot) => snapshot,
            None => read(nft, &about.scope, &[about.part], true)?, // to name the missing object
        };
        self.check(&snapshot, &Planned::default())
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        Ok(QueryResult {
            snapshot: Arc::new(snapshot),
            part: about.part,
            is_lookup: false,
        })
    }

    /// Runs `get element ip t s { 10.0.0.1 }`.
    fn elements(&self, nft: &mut Connection, is_reset: bool) -> Result<QueryResult<'s>, RunError> {
        let Object::Elements(elements) = &self.command.object else {
            return Err(self.script_error(self.diagnostic("only elements can be looked up")));
        };
        let table = Scope::table(elements.family, &*elements.table);
        let known = read(nft, &table, &[Part::Set(&elements.set)], true)?;
        self.check(&known, &Planned::default())
            .map_err(|diagnostic| self.script_error(diagnostic))?;
        let compiler = self.script.compiler(Some(&known));
        let sought = compiler.sought_elements(elements, self.span());
        let sought = sought.map_err(|diagnostic| self.script_error(diagnostic))?;
        let set = SetId::new(
            elements.family,
            elements.table.clone(),
            elements.set.clone(),
        );
        let Some(snapshot) =
            nft.answered(known, &SnapshotQuery::Elements(&set, &sought, is_reset))?
        else {
            let diagnostic = Diagnostic::missing(self.span(), "no such element");
            return Err(self.script_error(diagnostic));
        };
        let part: &'s [u8] = elements.set.as_ref();
        let table = snapshot.table(elements.family, &*elements.table);
        let is_map = table.is_some_and(|table| Part::Map(part).is_in(&table));
        Ok(QueryResult {
            snapshot: Arc::new(snapshot),
            part: if is_map {
                Part::Map(part)
            } else {
                Part::Set(part)
            },
            is_lookup: true,
        })
    }
}

/// Named object in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TableObject<'s> {
    Chain(&'s [u8]),
    Set(&'s [u8]),
    Map(&'s [u8]),
    Flowtable(&'s [u8]),
    Object(u32, &'s [u8]),
}

fn part_name<'s>(part: Part<'s>) -> Option<TableObject<'s>> {
    Some(match part {
        Part::Chain(name) => TableObject::Chain(name),
        Part::Set(name) | Part::Meter(name) => TableObject::Set(name),
        Part::Map(name) => TableObject::Map(name),
        Part::Flowtable(name) => TableObject::Flowtable(name),
        Part::Object(kind, name) => TableObject::Object(kind.0, name),
        _ => return None,
    })
}

/// Objects that a script's commands so far create and delete.
#[derive(Debug, Default)]
pub(super) struct Planned<'s> {
    tables: HashMap<(Family, &'s [u8]), PlannedTable<'s>>,
    /// Families that are flushed (`flush ruleset`).
    flushed: HashSet<Family>,
}

#[derive(Debug, Default)]
struct PlannedTable<'s> {
    /// Whether the table exists afterwards; `None` if no command changes the table itself.
    exists: Option<bool>,
    /// Whether the previous contents of the table are gone.
    is_new: bool,
    inside: HashMap<TableObject<'s>, bool>,
}

impl<'s> Planned<'s> {
    fn flushes(&self, family: Family) -> bool {
        self.flushed.contains(&family) || self.flushed.contains(&Family::UNSPEC)
    }

    fn of<'b>(&'b self, family: Family, table: &'b [u8]) -> Option<&'b PlannedTable<'b>> {
        self.tables.get(&(family, table))
    }

    fn table(&mut self, family: Family, table: Option<&'s Name<'static>>) -> &mut PlannedTable<'s> {
        let name = table.map_or(&[][..], |name| name.as_ref());
        let is_new = self.flushes(family);
        self.tables
            .entry((family, name))
            .or_insert_with(|| PlannedTable {
                exists: is_new.then_some(false),
                is_new,
                inside: HashMap::new(),
            })
    }

    /// Records the effect of a command.
    pub(super) fn take(&mut self, command: &'s Command) {
        let exists = match command.verb {
            Verb::Add | Verb::Create => true,
            Verb::Delete | Verb::Destroy => false,
            Verb::Flush => {
                if let Object::Ruleset(family) = command.object {
                    match family {
                        Family::UNSPEC => self.tables.clear(),
                        family => self.tables.retain(|(of, _), _| *of != family),
                    }
                    self.flushed.insert(family);
                }
                return;
            }
            Verb::Rename => {
                if let Object::Renamed(chain, new) = &command.object {
                    let table = self.table(chain.family, chain.table.as_ref());
                    if let Some(old) = &chain.name {
                        table.inside.insert(TableObject::Chain(old), false);
                    }
                    table.inside.insert(TableObject::Chain(new), true);
                }
                return;
            }
            _ => return,
        };
        let (family, table, inside) = match &command.object {
            Object::Table(table) => {
                let planned = self.table(table.family, table.name.as_ref());
                planned.exists = Some(exists);
                if !exists {
                    planned.is_new = true;
                    planned.inside.clear();
                }
                return;
            }
            // Deletes only devices, not the object.
            Object::Chain(chain) if !exists && names_devices(chain) => return,
            Object::Flowtable(flowtable) if !exists && flowtable.hook.is_some() => return,
            Object::Chain(chain) => {
                let name = chain.name.as_ref().map(|name| TableObject::Chain(name));
                (chain.family, &chain.table, name)
            }
            Object::Set(declared) => {
                let set = &declared.set;
                let kind = if declared.is_map {
                    TableObject::Map
                } else {
                    TableObject::Set
                };
                let name = set.name.as_ref().map(|name| kind(name));
                (set.family, &set.table, name)
            }
            Object::Flowtable(flowtable) => {
                let name = flowtable
                    .name
                    .as_ref()
                    .map(|name| TableObject::Flowtable(name));
                (flowtable.family, &flowtable.table, name)
            }
            Object::Stateful(object) => {
                let kind = object.object_type.unwrap_or_default().0;
                let name = object
                    .name
                    .as_ref()
                    .map(|name| TableObject::Object(kind, name));
                (object.family, &object.table, name)
            }
            _ => return,
        };
        if let Some(inside) = inside {
            let table = self.table(family, table.as_ref());
            table.inside.insert(inside, exists);
        }
    }
}
