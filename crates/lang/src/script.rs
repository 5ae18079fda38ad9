//! Scripts: what is to become of a ruleset, in nft's language.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use bstr::BString;

use super::compile::{Compiled, Compiler, order};
use super::parse::{
    self, Command, Defined, Directories, Error, Includes as Read, Kept, NoIncludes, Object, Source,
    Sources, Verb,
};
use super::question::Question;
use super::syntax::{Expr, Line, Place, Statement, Target, Verdict};
use crate::zone::Zone;
use chainwright::nft::{CommitError, Family, Name, Needed, Set, SetFlags, Snapshot, Transaction};

/// A script in nft's language: what `nft -f` takes, read, and what it asks for not done yet.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use chainwright::nft::{Connection, Scope};
/// use chainwright_lang::{Listing, Options, Script};
///
/// let text = "table inet filter {\n\tchain web {\n\t\ttcp dport 80-89 accept\n\t}\n}\n";
/// let script = Script::parse("rules.nft", text)?;
///
/// let mut nft = Connection::open()?;
/// let change = script.transaction(None)?;
/// nft.commit(change.transaction())?; // everything, or nothing
///
/// let snapshot = nft.snapshot(Scope::all())?;
/// assert_eq!(Listing::new(&snapshot, &Options::default()).to_string(), text);
/// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
/// # Ok(())
/// # }
/// ```
///
/// What is wrong with it is said with the line and the place in it:
///
/// ```
/// use chainwright_lang::Script;
///
/// let error = Script::parse("rules.nft", "add rule ip filter input tcp dprot 22 accept").unwrap_err();
/// assert_eq!((error.line, error.column), (1, 30));
/// assert!(error.to_string().contains("did you mean `dport`?"));
/// ```
#[derive(Debug, Clone)]
pub struct Script {
    commands: Vec<Command>,
    sources: Sources,
    time_zone: Zone,
    /// What it does to variables, if it does.
    defined: Option<Defined>,
    /// Whether it is a document of JSON.
    #[cfg(feature = "json")]
    is_json: bool,
}

/// Values of variables (`$name`) that are known before a script begins.
///
/// ```
/// use chainwright_lang::{Definitions, Includes, Script};
///
/// let mut definitions = Definitions::default();
/// definitions.define("port", "{ 22, 80 }")?;
/// let text = "add rule inet filter input tcp dport $port accept";
/// let script = Script::parse_behind(&definitions, "rules.nft", text, &Includes::none())?;
/// # Ok::<(), chainwright_lang::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    kept: Kept,
    /// How many were given by themselves.
    count: usize,
}

impl Definitions {
    /// Gives a variable a value, as `nft --define name=value` does.
    ///
    /// # Errors
    /// What is wrong with either.
    pub fn define(&mut self, name: &str, value: &str) -> Result<(), Error> {
        // One line for each: what stands in it cannot be more than a value.
        let called = format!("definition {}", self.count + 1);
        let source = Source::new(called, format!("define {name} = {value}"));
        let lone = parse::parse_behind(&self.kept, source, &NoIncludes)?;
        if let Some(command) = lone.commands.first() {
            let fault = parse::Fault::new(command.place, "this is more than a value");
            return Err(lone.sources.explain(fault));
        }
        self.count += 1;
        self.kept.keep(lone.defined.unwrap_or_default());
        Ok(())
    }

    /// Keeps the values that a script gave its variables: those that are read behind it know them. What is wrong with one
    /// is said where a script asks for it.
    pub fn keep(&mut self, script: &Script) {
        if let Some(defined) = &script.defined {
            self.kept.keep(defined.clone());
        }
    }
}

/// What a script may include (`include "file"`).
#[derive(Debug, Clone, Default)]
pub struct Includes(Option<Directories>);

impl Includes {
    /// Nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Files in these directories and below them, and no others, wherever links lead. Paths that are not absolute are
    /// looked for in them, one after the other.
    #[must_use]
    pub fn below(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Some(Directories::new(directories)))
    }

    /// Any file, as `nft` has it: paths that begin with `/`, `./` or `../` are taken as they are, others are looked for in
    /// these directories, one after the other.
    #[must_use]
    pub fn anywhere(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Some(Directories::anywhere(directories)))
    }
}

/// The transaction that a script is, and which line each of its operations comes from.
#[derive(Debug)]
pub struct Change<'s> {
    script: &'s Script,
    transaction: Transaction,
    places: Vec<Place>,
}

/// What a script is once it is compiled.
pub(super) enum Planned<'s> {
    Change(Change<'s>),
    /// The elements of this set must be known before.
    Lacks((Family, BString, BString)),
}

impl Script {
    /// Reads a text; `name` is what errors call it. It may not include files.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Result<Self, Error> {
        Self::parse_with(name, text, &Includes::none())
    }

    /// The same where files may be included.
    ///
    /// # Errors
    /// What is wrong with it, or with a file that it includes, first.
    pub fn parse_with(
        name: &str,
        text: impl AsRef<[u8]>,
        includes: &Includes,
    ) -> Result<Self, Error> {
        Self::parse_behind(&Definitions::default(), name, text, includes)
    }

    /// The same where variables have values already.
    ///
    /// # Errors
    /// As [`parse_with`](Self::parse_with).
    pub fn parse_behind(
        definitions: &Definitions,
        name: &str,
        text: impl AsRef<[u8]>,
        includes: &Includes,
    ) -> Result<Self, Error> {
        let source = Source::new(name, text.as_ref());
        let includes: &dyn Read = match &includes.0 {
            Some(directories) => directories,
            None => &NoIncludes,
        };
        let parsed = parse::parse_behind(&definitions.kept, source, includes)?;
        Ok(Self {
            commands: parsed.commands,
            sources: parsed.sources,
            time_zone: Zone::default(),
            defined: parsed.defined,
            #[cfg(feature = "json")]
            is_json: false,
        })
    }

    /// Reads a document of libnftables' JSON (libnftables-json(5)), which is what `nft -j -f` takes; `name` is what errors
    /// call it.
    ///
    /// Objects that stand without a verb, as in a listing, are added. Those that stand one behind the other are added in
    /// the order that the block of a table has: tables, chains, stateful objects, sets with their elements, flowtables,
    /// rules. Handles of such objects say nothing.
    ///
    /// A key or a word that is not known is an error. Keys that are known and mean nothing for a verb are not looked at:
    /// handles of what is added, and what is said of an object that is deleted.
    ///
    /// ```
    /// use chainwright_lang::Script;
    ///
    /// let json = r#"{"nftables": [
    ///     {"add": {"table": {"family": "inet", "name": "filter"}}},
    ///     {"add": {"chain": {"family": "inet", "table": "filter", "name": "web"}}},
    ///     {"add": {"rule": {"family": "inet", "table": "filter", "chain": "web", "expr": [
    ///         {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 443}},
    ///         {"accept": null}
    ///     ]}}}
    /// ]}"#;
    /// let script = Script::parse_json("rules.json", json)?;
    /// assert_eq!(script.transaction(None)?.transaction().len(), 3);
    ///
    /// let error = Script::parse_json("rules.json", json.replace("dport", "dprot")).unwrap_err();
    /// assert_eq!((error.line, error.column), (5, 81));
    /// assert!(error.to_string().contains("did you mean `dport`?"));
    /// # Ok::<(), chainwright_lang::Error>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with it first.
    #[cfg(feature = "json")]
    pub fn parse_json(name: &str, json: impl AsRef<[u8]>) -> Result<Self, Error> {
        let source = Source::new(name, json.as_ref());
        let (commands, sources) = super::json::read::parse(source)?;
        Ok(Self {
            commands,
            sources,
            time_zone: Zone::default(),
            defined: None,
            is_json: true,
        })
    }

    /// The document that it is ([`parse_json`](Self::parse_json)) once more, with the handles of what it added when it was
    /// carried out as an [echo](super::Mode::Echo): what `nft -j -e` prints of one, byte for byte. `None` of a script that is
    /// no such document.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use chainwright::nft::Connection;
    /// use chainwright_lang::{Mode, Options, Script};
    ///
    /// let json = r#"{"nftables":[{"add":{"table":{"family":"ip","name":"t"}}}]}"#;
    /// let script = Script::parse_json("rules.json", json)?;
    /// let done = script.run(&mut Connection::open()?, Mode::Echo, &Options::here())?;
    /// let told = r#"{"nftables": [{"add": {"table": {"family": "ip", "name": "t", "handle": 1}}}]}"#;
    /// assert_eq!(script.echoed_json(&done).as_deref(), Some(told));
    /// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "json")]
    #[must_use]
    pub fn echoed_json(&self, done: &super::Done) -> Option<String> {
        let text = self.is_json.then(|| self.sources.text(0))?;
        super::json::echo::document(&text, &done.handles)
    }

    /// The same as [`parse_json`](Self::parse_json) of a document that was read already; errors show it in one line.
    ///
    /// # Errors
    /// What is wrong with it first.
    #[cfg(feature = "json")]
    pub fn from_json(json: &serde_json::Value) -> Result<Self, Error> {
        Self::parse_json("json", json.to_string())
    }

    /// Takes days and hours as those of this time zone, by its name in the IANA's database, instead of the system's;
    /// `None` if it is not known.
    #[must_use]
    pub fn with_time_zone(mut self, name: &str) -> Option<Self> {
        self.time_zone = Zone::named(name)?;
        Some(self)
    }

    /// Whether it speaks of sets, chains or rules that must be there already: [`transaction`](Self::transaction) needs a
    /// [`Snapshot`] then. [`run`](Self::run) reads no more of one than is needed.
    ///
    /// That is also so where it adds a range that reaches the last value to a set that it declares: the set may be there all
    /// the same, and the kernel does not see what such a range overlaps. That such a range is there already and overlaps one
    /// of the text, only [`run`](Self::run) and a [`transaction`](Self::transaction) with a snapshot see.
    #[must_use]
    pub fn needs_listing(&self) -> bool {
        let needed = self.needed();
        let lacks = || matches!(self.changes(None, &needed), Ok(Planned::Lacks(_)));
        !needed.is_empty() || (!needed.open_ranges.is_empty() && lacks())
    }

    /// What it must know of what is there.
    pub(super) fn needed(&self) -> Needed {
        let mut needed = Needed::default();
        let mut declared = HashSet::new();
        // Sets that join what is added to them with what may be there.
        let mut joining = HashSet::new();
        let mut is_flushed = false;
        // Sets of ranges that may be there although they are declared, and the length of their keys.
        let mut may_be_there = HashMap::new();
        let commands = || self.commands.iter().filter(|each| !each.is_question());
        let counted = order::counted(commands()).into_iter();
        needed.chains.extend(counted.map(|chain| (chain, true)));
        let updated: HashSet<_> = self.commands.iter().flat_map(updated_sets).collect();
        for command in commands() {
            match &command.object {
                Object::Ruleset(Family::UNSPEC) if command.verb == Verb::Flush => {
                    is_flushed = true;
                }
                Object::Set(set) if matches!(command.verb, Verb::Add | Verb::Create) => {
                    let Set {
                        family,
                        table,
                        name,
                        ..
                    } = &set.set;
                    let name = key(*family, bytes(table), bytes(name));
                    if set.auto_merge && command.verb == Verb::Add && !is_flushed {
                        joining.insert(name.clone());
                    } else if command.verb == Verb::Add
                        && !is_flushed
                        && let Some(length) = set.length_of_ranges()
                    {
                        may_be_there.insert(name.clone(), length);
                    }
                    // Which flags it gets depends on those that it may have.
                    let flags = set.set.flags.unwrap_or_default();
                    let is_dynamic = flags.contains(SetFlags::EVAL);
                    if updated.contains(&name) && !is_dynamic && !is_flushed {
                        needed.sets.entry(name.clone()).or_default();
                    }
                    declared.insert(name);
                }
                Object::Renamed(chain, _) => {
                    let name = key(chain.family, bytes(&chain.table), bytes(&chain.name));
                    needed.chains.entry(name).or_default();
                }
                Object::Rule(rule) => {
                    let in_table = |name: &[u8]| key(rule.family, &rule.table, name);
                    let sets = rule.statements.iter().flat_map(|(each, _)| sets_of(each));
                    for set in sets {
                        let name = in_table(set.as_bytes());
                        if !declared.contains(&name) {
                            needed.sets.entry(name).or_default();
                        }
                    }
                }
                Object::Elements(elements) => {
                    let name = key(elements.family, &elements.table, &elements.set);
                    // What is destroyed must be whole ranges of those that are there.
                    let is_added = matches!(command.verb, Verb::Add | Verb::Create | Verb::Destroy);
                    let is_joined = command.verb == Verb::Add && joining.contains(&name);
                    if is_joined || !declared.contains(&name) {
                        *needed.sets.entry(name).or_default() |= is_added;
                    } else if is_added && let Some(length) = may_be_there.remove(&name) {
                        needed.open_ranges.push((name, length));
                    }
                }
                _ => {}
            }
        }
        needed
    }

    /// The transaction that it is; `now` is what is there, where it [needs](Self::needs_listing) that. Committed on a
    /// connection it is carried out only if nothing else was committed since `now` was read
    /// ([`CommitError::generation_moved`]).
    ///
    /// Its messages are those that nft 1.0.6 sends for the same text, byte for byte, but where that version joins
    /// comparisons across a statement that is none (a counter between them would count less): that is not done, as in nft
    /// from 1.0.7 on. What else differs is in `docs/limits.md`.
    ///
    /// # Errors
    /// What no transaction can be made of, first: also what it [asks for](Self::questions), which
    /// [`run`](Self::run) leaves out.
    pub fn transaction(&self, now: Option<&Snapshot>) -> Result<Change<'_>, Error> {
        match self.compiled(now, None, self.commands.iter().collect())? {
            Planned::Change(change) => Ok(change),
            Planned::Lacks(..) => unreachable!("invariant: nothing lacks where all was read"),
        }
    }

    /// The transaction without what is asked for, by what was read of what is there.
    pub(super) fn changes(
        &self,
        now: Option<&Snapshot>,
        read: &Needed,
    ) -> Result<Planned<'_>, Error> {
        let changes = self.commands.iter().filter(|each| !each.is_question());
        self.compiled(now, Some(read), changes.collect())
    }

    fn compiled<'s>(
        &'s self,
        now: Option<&Snapshot>,
        read: Option<&Needed>,
        commands: Vec<&Command>,
    ) -> Result<Planned<'s>, Error> {
        let compiler = Compiler::new(now, read, self.time_zone.clone());
        let compiled = compiler
            .compile(&commands)
            .map_err(|fault| self.sources.explain(fault))?;
        Ok(match compiled {
            Compiled::Done(transaction, places) => Planned::Change(Change {
                script: self,
                transaction,
                places,
            }),
            Compiled::Lacks((family, table, set)) => Planned::Lacks(key(family, &table, &set)),
        })
    }
}

impl Script {
    /// What it asks for, in its order: listings, elements, what is told.
    pub fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        let commands = self.commands.iter().filter(|each| each.is_question());
        commands.map(|command| self.question(command))
    }

    /// Whether it has commands that are no questions.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        !self.commands.iter().all(Command::is_question)
    }

    pub(super) const fn question<'s>(&'s self, command: &'s Command) -> Question<'s> {
        Question::new(self, command)
    }

    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(super) fn explain(&self, fault: parse::Fault) -> Error {
        self.sources.explain(fault)
    }

    pub(super) fn time_zone(&self) -> Zone {
        self.time_zone.clone()
    }
}

impl Change<'_> {
    /// The transaction.
    #[must_use]
    pub const fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The handles of what commands added, with their places.
    #[cfg(feature = "json")]
    pub(super) fn handles(&self, committed: &chainwright::nft::Committed) -> Vec<(Place, u64)> {
        super::json::echo::handles(&self.script.commands, &self.places, committed)
    }

    /// The transaction itself.
    #[must_use]
    pub fn into_transaction(self) -> Transaction {
        self.transaction.into_ours()
    }

    /// What the kernel refused, at the lines that asked for it; nothing where it refused the whole, or was not reached:
    /// then the error says all itself.
    #[must_use]
    pub fn explain(&self, error: &CommitError) -> Vec<Error> {
        let each = error.failures.iter().filter_map(|failure| {
            let operation = failure.operation.as_ref()?;
            let place = self.places.get(operation.index)?;
            let mut message = format!("the kernel refuses this: {}", failure.errno);
            if let Some(text) = &failure.text {
                message += &format!(": {text}");
            }
            let fault = parse::Fault::new(*place, message);
            let fault = match (failure.lacks, failure.hint) {
                (Some(feature), _) => fault.with_hint(format!("this kernel lacks {feature}")),
                (None, Some(hint)) => fault.with_hint(hint),
                (None, None) => fault,
            };
            Some(self.script.sources.explain(fault).refused(failure.errno))
        });
        each.collect()
    }
}

/// What something in a table is found by.
fn key(family: Family, table: &[u8], name: &[u8]) -> (Family, BString, BString) {
    (family, table.into(), name.into())
}

/// The bytes of a name, if there is one.
fn bytes<'n>(name: &'n Option<Name<'_>>) -> &'n [u8] {
    name.as_ref().map_or(&[][..], |name| name)
}

/// The names of the sets that a statement asks or changes.
fn sets_of(statement: &Statement) -> Vec<&str> {
    fn of<'e>(expr: &'e Expr, names: &mut Vec<&'e str>) {
        match expr {
            Expr::Reference(name) => names.push(name),
            Expr::Map(key, map) => {
                of(key, names);
                of(map, names);
            }
            Expr::Concat(parts) => parts.iter().for_each(|part| of(part, names)),
            Expr::Binary(_, left, right) | Expr::Range(left, right) => {
                of(left, names);
                of(right, names);
            }
            _ => {}
        }
    }
    let mut names = Vec::new();
    match statement {
        Statement::Match { left, right, .. } => {
            of(left, &mut names);
            of(right, &mut names);
        }
        Statement::VerdictMap(key, map) | Statement::Set(key, map) => {
            of(key, &mut names);
            of(map, &mut names);
        }
        Statement::Translate { address, port, .. } | Statement::Tproxy { address, port, .. } => {
            let both = address.iter().chain(port);
            both.for_each(|expr| of(expr, &mut names));
        }
        Statement::Queue {
            numbers: Some(numbers),
            ..
        } => of(numbers, &mut names),
        Statement::Duplicate { address, device } => {
            let both = address.iter().chain(device);
            both.for_each(|expr| of(expr, &mut names));
        }
        Statement::Forward {
            address, device, ..
        } => {
            let both = address.iter().chain([device]);
            both.for_each(|expr| of(expr, &mut names));
        }
        Statement::Update { set, element, .. } => {
            names.push(set);
            let both = element.key.iter().chain(&element.data);
            both.for_each(|expr| of(expr, &mut names));
        }
        Statement::Object(_, object) => of(object, &mut names),
        _ => {}
    }
    let inner = inner_statements(statement);
    names.extend(inner.flat_map(sets_of));
    names
}

/// Returns the statements of the rules in braces that a statement jumps to.
fn inner_statements(statement: &Statement) -> impl Iterator<Item = &Statement> {
    fn lines(verdict: &Expr) -> &[Line] {
        match verdict {
            Expr::Verdict(
                Verdict::Jump(Target::Rules(lines)) | Verdict::Goto(Target::Rules(lines)),
            ) => lines,
            _ => &[],
        }
    }
    let (one, map) = match statement {
        Statement::Verdict(verdict) => (lines(verdict), &[][..]),
        Statement::VerdictMap(_, Expr::Set(elements)) => (&[][..], &elements[..]),
        _ => (&[][..], &[][..]),
    };
    let of_map = map.iter().filter_map(|element| element.data.as_ref());
    let all = one.iter().chain(of_map.flat_map(lines));
    all.flat_map(|line| &line.statements)
}

/// Returns the sets whose elements the rule of a command adds, updates or deletes. nft makes them dynamic where the same
/// text declares them.
pub(super) fn updated_sets(command: &Command) -> Vec<(Family, BString, BString)> {
    fn of<'s>(statement: &'s Statement, names: &mut Vec<&'s str>) {
        if let Statement::Update { set, element, .. } = statement
            && element.data.is_none()
        {
            names.push(set);
        }
        inner_statements(statement).for_each(|inner| of(inner, names));
    }
    let (Object::Rule(rule), false) = (
        &command.object,
        matches!(command.verb, Verb::Delete | Verb::Destroy),
    ) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for (statement, _) in &rule.statements {
        of(statement, &mut names);
    }
    let in_table = |name: &str| key(rule.family, &rule.table, name.as_bytes());
    names.into_iter().map(in_table).collect()
}
