//! Scripts in nft's language.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use bstr::BString;

use super::compile::merge::Contents;
use super::compile::{Compiled, Compiler, order};
use super::dialect::NftVersion;
use super::parse::{
    self, Command, Defined, Directories, Error, Includes as Read, NoIncludes, Object,
    SavedVariables, Source, Sources, Verb,
};
use super::query::Query;
use super::syntax::{Element, Expr, ListedRule, Span, Statement, Target, Verdict};
use crate::zone::Zone;
use chainwright::nft::{
    CommitError, Family, Name, Needed, Ruleset, Set, SetFlags, Snapshot, Transaction,
};

/// A parsed script in nft's language, as for `nft -f`. Parsing does not run it.
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
/// Errors name the line and column:
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
    pub(super) commands: Vec<Command>,
    sources: Sources,
    time_zone: Zone,
    nft_version: NftVersion,
    /// Variables that it defines or undefines, if any.
    defined: Option<Defined>,
    /// Whether it is a JSON document.
    #[cfg(feature = "json")]
    is_json: bool,
}

/// Variables (`$name`) with values from outside the script.
///
/// ```
/// use chainwright_lang::{Definitions, Includes, Script};
///
/// let mut definitions = Definitions::default();
/// definitions.define("port", "{ 22, 80 }")?;
/// let text = "add rule inet filter input tcp dport $port accept";
/// let script = Script::parse_with_definitions(&definitions, "rules.nft", text, &Includes::none())?;
/// # Ok::<(), chainwright_lang::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    kept: SavedVariables,
    /// Number of variables set by [`define`](Self::define).
    count: usize,
}

impl Definitions {
    /// Defines a variable, like `nft --define name=value`.
    ///
    /// # Errors
    /// The name or the value is invalid.
    pub fn define(&mut self, name: &str, value: &str) -> Result<(), Error> {
        // Each definition is a text of its own, and must contain nothing but a value.
        let called = format!("definition {}", self.count + 1);
        let source = Source::new(called, format!("define {name} = {value}"));
        let lone = parse::parse_with_definitions(&self.kept, source, &NoIncludes)?;
        if let Some(command) = lone.commands.first() {
            let diagnostic = parse::Diagnostic::new(command.span, "expected a single value");
            return Err(lone.sources.explain(diagnostic));
        }
        self.count += 1;
        self.kept.keep(lone.defined.unwrap_or_default());
        Ok(())
    }

    /// Adds the variables of a script, for scripts that are parsed later. An error in a variable's value is reported
    /// where a script uses the variable.
    pub fn add(&mut self, script: &Script) {
        if let Some(defined) = &script.defined {
            self.kept.keep(defined.clone());
        }
    }
}

/// Files that a script may include (`include "file"`).
#[derive(Debug, Clone, Default)]
pub struct Includes(Option<Directories>);

impl Includes {
    /// Forbids includes.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Allows only files in and below these directories; symbolic links cannot lead out of them. Relative paths are
    /// searched in the directories in order.
    #[must_use]
    pub fn below(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Some(Directories::new(directories)))
    }

    /// Allows any file, like `nft`: paths that begin with `/`, `./` or `../` are used as is, others are searched in
    /// these directories in order.
    #[must_use]
    pub fn anywhere(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(Some(Directories::anywhere(directories)))
    }
}

/// Transaction compiled from a script, with the line of each operation.
#[derive(Debug)]
pub struct CompiledScript<'s> {
    script: &'s Script,
    transaction: Transaction,
    spans: Vec<Span>,
}

/// Result of compiling a script.
pub(super) enum Planned<'s> {
    Compiled(CompiledScript<'s>),
    /// The elements of this set must be read first.
    NeedsElements((Family, BString, BString)),
}

impl Script {
    /// Parses a text; errors call it `name`. It cannot include files.
    ///
    /// # Errors
    /// The errors in the text: [`further`](Error::further) returns those after the first one.
    pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Result<Self, Error> {
        Self::parse_with(name, text, &Includes::none())
    }

    /// Parses a text that may include files.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), also for included files.
    pub fn parse_with(
        name: &str,
        text: impl AsRef<[u8]>,
        includes: &Includes,
    ) -> Result<Self, Error> {
        Self::parse_with_definitions(&Definitions::default(), name, text, includes)
    }

    /// Parses a text with predefined variables.
    ///
    /// # Errors
    /// Same as [`parse_with`](Self::parse_with).
    pub fn parse_with_definitions(
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
        let parsed = parse::parse_with_definitions(&definitions.kept, source, includes)?;
        Ok(Self {
            commands: parsed.commands,
            sources: parsed.sources,
            time_zone: Zone::default(),
            nft_version: NftVersion::default(),
            defined: parsed.defined,
            #[cfg(feature = "json")]
            is_json: false,
        })
    }

    /// Parses a document of libnftables' JSON (libnftables-json(5)), as for `nft -j -f`; errors call it `name`.
    ///
    /// Objects without a verb, as in a listing, are added. Consecutive ones are added in the order of a table block:
    /// tables, chains, stateful objects, sets with their elements, flowtables, rules. Their handles are ignored.
    ///
    /// Unknown keys and words are errors. Known keys that have no meaning for a verb are ignored: handles of added
    /// objects, and the properties of deleted objects.
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
    /// The first error in the document.
    #[cfg(feature = "json")]
    pub fn parse_json(name: &str, json: impl AsRef<[u8]>) -> Result<Self, Error> {
        let source = Source::new(name, json.as_ref());
        let (commands, sources) = super::json::read::parse(source)?;
        Ok(Self {
            commands,
            sources,
            time_zone: Zone::default(),
            nft_version: NftVersion::default(),
            defined: None,
            is_json: true,
        })
    }

    /// Returns the JSON document ([`parse_json`](Self::parse_json)) with the handles of the objects that it added when
    /// it ran as an [echo](super::RunMode::Echo): the output of `nft -j -e`, byte for byte. `None` if the script is not a
    /// JSON document.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use chainwright::nft::Connection;
    /// use chainwright_lang::{RunMode, Options, Script};
    ///
    /// let json = r#"{"nftables":[{"add":{"table":{"family":"ip","name":"t"}}}]}"#;
    /// let script = Script::parse_json("rules.json", json)?;
    /// let done = script.run(&mut Connection::open()?, RunMode::Echo, &Options::here())?;
    /// let expected = r#"{"nftables": [{"add": {"table": {"family": "ip", "name": "t", "handle": 1}}}]}"#;
    /// assert_eq!(script.echoed_json(&done).as_deref(), Some(expected));
    /// # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "json")]
    #[must_use]
    pub fn echoed_json(&self, done: &super::RunOutcome) -> Option<String> {
        let text = self.is_json.then(|| self.sources.text(0))?;
        super::json::echo::document(&text, &done.handles)
    }

    /// Parses a JSON document like [`parse_json`](Self::parse_json) from a parsed value. Errors show it in one line.
    ///
    /// # Errors
    /// The first error in the document.
    #[cfg(feature = "json")]
    pub fn from_json(json: &serde_json::Value) -> Result<Self, Error> {
        Self::parse_json("json", json.to_string())
    }

    /// Sets the time zone of days and hours by its name in the IANA database, instead of the system's; `None` if it is
    /// unknown.
    #[must_use]
    pub fn with_time_zone(mut self, name: &str) -> Option<Self> {
        self.time_zone = Zone::named(name)?;
        Some(self)
    }

    /// Sets the version of nft whose instructions the script sends, instead of the newest. The kernel does the same with
    /// those of all versions, but lists them as sent.
    ///
    /// ```
    /// use chainwright_lang::{NftVersion, Script};
    ///
    /// let text = "add rule ip t c tcp dport 80-90 accept";
    /// let newest = Script::parse("rules.nft", text)?;
    /// let older = newest.clone().with_nft_version(NftVersion::V1_0);
    /// let sent = |script: &Script| Ok(script.transaction(None)?.transaction().datagram(<[u8]>::to_vec));
    /// assert_ne!(sent(&newest)?, sent(&older)?); // one instruction for the range, or two comparisons
    /// # Ok::<(), chainwright_lang::Error>(())
    /// ```
    #[must_use]
    pub fn with_nft_version(mut self, version: NftVersion) -> Self {
        self.nft_version = version;
        self
    }

    /// Returns the version of nft whose instructions and descriptions the script creates.
    pub(super) const fn nft_version(&self) -> NftVersion {
        self.nft_version
    }

    /// Returns `true` if the script refers to existing sets, chains or rules. [`transaction`](Self::transaction) then
    /// needs a [`Snapshot`]. [`run`](Self::run) only reads the needed parts.
    ///
    /// This includes scripts that declare a set and add ranges up to the last value to it: the set may exist, and the
    /// kernel does not detect overlaps with such a range. Only [`run`](Self::run) and
    /// [`transaction`](Self::transaction) with a snapshot detect that an existing range of this kind overlaps one of
    /// the text.
    #[must_use]
    pub fn needs_listing(&self) -> bool {
        let needed = self.needed();
        let lacks = || matches!(self.changes(None, &needed), Ok(Planned::NeedsElements(_)));
        !needed.is_empty() || (!needed.open_ranges.is_empty() && lacks())
    }

    /// Returns the parts of the current ruleset that compiling needs.
    pub(super) fn needed(&self) -> Needed {
        let mut needed = Needed::default();
        let mut declared = HashSet::new();
        // Sets with `auto-merge`: added ranges are merged with existing ones.
        let mut joining = HashSet::new();
        let mut is_flushed = false;
        // Sets that the text has emptied or deleted have no elements to read.
        let mut contents = Contents::default();
        // Declared interval sets that may exist already, with the length of their keys.
        let mut may_be_there = HashMap::new();
        let commands = || self.commands.iter().filter(|each| !each.is_query());
        let counted = order::counted(commands()).into_iter();
        needed.chains.extend(counted.map(|chain| (chain, true)));
        let updated: HashSet<_> = self.commands.iter().flat_map(updated_sets).collect();
        for command in commands() {
            match &command.object {
                Object::Ruleset(family) if command.verb == Verb::Flush => {
                    is_flushed |= *family == Family::UNSPEC;
                    contents.empty(*family, None, None);
                }
                Object::Table(table) if matches!(command.verb, Verb::Delete | Verb::Destroy) => {
                    if let Some(name) = &table.name {
                        contents.empty(table.family, Some(name), None);
                    }
                }
                Object::Set(set)
                    if matches!(command.verb, Verb::Flush | Verb::Delete | Verb::Destroy) =>
                {
                    if let (Some(table), Some(name)) = (&set.set.table, &set.set.name) {
                        contents.empty(set.set.family, Some(table), Some(name));
                    }
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
                    // The compiled flags depend on those of an existing set.
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
                    let named = (
                        elements.family,
                        elements.table.to_vec(),
                        elements.set.to_vec(),
                    );
                    // Deletions of ranges need the existing ones: only whole ranges can be removed.
                    let is_added = match command.verb {
                        Verb::Add | Verb::Create | Verb::Destroy => true,
                        Verb::Delete => elements.elements.iter().any(|one| is_range(&one)),
                        _ => false,
                    };
                    let is_joined = command.verb == Verb::Add && joining.contains(&name);
                    if is_joined || !declared.contains(&name) {
                        *needed.sets.entry(name).or_default() |=
                            is_added && !contents.is_emptied(&named);
                    } else if is_added && let Some(length) = may_be_there.remove(&name) {
                        needed.open_ranges.push((name, length));
                    }
                }
                _ => {}
            }
        }
        needed
    }

    /// Compiles the script. `now` is the current ruleset, if the script [needs](Self::needs_listing) it; the commit
    /// then fails if another commit happened since `now` was read ([`CommitError::generation_moved`]).
    ///
    /// The messages are byte for byte those of nft 1.0.6 for the same text, with one exception: that version merges
    /// comparisons across a statement that is not a comparison, so that a counter between them counts less. This crate
    /// does not, like nft from 1.0.7 on. `docs/limits.md` lists the other differences.
    ///
    /// # Errors
    /// The first part that cannot be in a transaction. This includes [queries](Self::queries), which [`run`](Self::run)
    /// leaves out.
    pub fn transaction(&self, now: Option<&Snapshot>) -> Result<CompiledScript<'_>, Error> {
        match self.compiled(now, None, self.commands.iter().collect())? {
            Planned::Compiled(change) => Ok(change),
            Planned::NeedsElements(..) => {
                unreachable!("invariant: nothing lacks where all was read")
            }
        }
    }

    /// Compiles the changes, without queries, against the parts of the ruleset that were read.
    pub(super) fn changes(
        &self,
        now: Option<&Snapshot>,
        read: &Needed,
    ) -> Result<Planned<'_>, Error> {
        let changes = self.commands.iter().filter(|each| !each.is_query());
        self.compiled(now, Some(read), changes.collect())
    }

    fn compiled<'s>(
        &'s self,
        now: Option<&Snapshot>,
        read: Option<&Needed>,
        commands: Vec<&Command>,
    ) -> Result<Planned<'s>, Error> {
        let compiler = Compiler::new(now, read, self.time_zone.clone(), self.nft_version);
        let compiled = compiler
            .compile(&commands)
            .map_err(|diagnostic| self.sources.explain(diagnostic))?;
        Ok(match compiled {
            Compiled::Done(transaction, spans) => Planned::Compiled(CompiledScript {
                script: self,
                transaction,
                spans,
            }),
            Compiled::NeedsElements((family, table, set)) => {
                Planned::NeedsElements(key(family, &table, &set))
            }
        })
    }
}

impl Script {
    /// Returns the queries in order: listings, element lookups, monitoring.
    pub fn queries(&self) -> impl Iterator<Item = Query<'_>> {
        let commands = self.commands.iter().filter(|each| each.is_query());
        commands.map(|command| self.query(command))
    }

    /// Returns `true` if the script has commands other than queries.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        !self.commands.iter().all(Command::is_query)
    }

    pub(super) const fn query<'s>(&'s self, command: &'s Command) -> Query<'s> {
        Query::new(self, command)
    }

    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(super) fn explain(&self, diagnostic: parse::Diagnostic) -> Error {
        self.sources.explain(diagnostic)
    }

    /// Creates a compiler for a command of the script.
    pub(super) fn compiler<'c>(&self, now: Option<&'c Snapshot>) -> Compiler<'c> {
        Compiler::new(now, None, self.time_zone.clone(), self.nft_version)
    }
}

impl Script {
    /// Applies the script to an empty ruleset, without a kernel, and returns the result.
    ///
    /// ```
    /// use chainwright::nft::Family;
    /// use chainwright_lang::Script;
    ///
    /// let script = Script::parse("rules.nft", "table inet filter { chain web { tcp dport 443 accept; }; }")?;
    /// let ruleset = script.ruleset()?;
    /// let table = ruleset.table(Family::INET, "filter").unwrap();
    /// assert_eq!(table.chain("web").unwrap().rules().len(), 1);
    ///
    /// let script = Script::parse("rules.nft", "add chain inet filter web")?;
    /// assert!(script.ruleset().unwrap_err().to_string().contains("No such file or directory"));
    /// # Ok::<(), chainwright_lang::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of [`transaction`](Self::transaction), or the first operation that a kernel would reject.
    pub fn ruleset(&self) -> Result<Ruleset, Error> {
        let change = self.transaction(Some(&Snapshot::default()))?;
        Ruleset::of(change.transaction()).map_err(|error| {
            let first = change.explain(&error).into_iter().next();
            first.expect("invariant: the error names an operation of the script")
        })
    }
}

impl CompiledScript<'_> {
    /// Returns the transaction.
    #[must_use]
    pub const fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Returns the handles of the objects that commands added, with the commands' locations.
    #[cfg(feature = "json")]
    pub(super) fn handles(&self, committed: &chainwright::nft::Committed) -> Vec<(Span, u64)> {
        super::json::echo::handles(&self.script.commands, &self.spans, committed)
    }

    /// Converts the change into its transaction.
    #[must_use]
    pub fn into_transaction(self) -> Transaction {
        self.transaction.into_regular()
    }

    /// Returns the errors of rejected operations, with their lines. Empty if the kernel rejected the transaction as a
    /// whole or was not reached: the `CommitError` is complete then.
    #[must_use]
    pub fn explain(&self, error: &CommitError) -> Vec<Error> {
        let each = error.failures.iter().filter_map(|failure| {
            let operation = failure.operation.as_ref()?;
            let span = self.spans.get(operation.index)?;
            let mut message = format!("rejected by the kernel: {}", failure.errno);
            if let Some(text) = &failure.text {
                message += &format!(": {text}");
            }
            let diagnostic = parse::Diagnostic::new(*span, message);
            let diagnostic = match (failure.lacks, &failure.hint) {
                (Some(feature), _) => diagnostic.with_hint(format!("this kernel lacks {feature}")),
                (None, Some(hint)) => diagnostic.with_hint(&**hint),
                (None, None) => diagnostic,
            };
            Some(
                self.script
                    .sources
                    .explain(diagnostic)
                    .refused(failure.errno),
            )
        });
        each.collect()
    }
}

/// Returns the key of an object in a table.
fn key(family: Family, table: &[u8], name: &[u8]) -> (Family, BString, BString) {
    (family, table.into(), name.into())
}

/// Returns the bytes of a name; empty if there is none.
fn bytes<'n>(name: &'n Option<Name<'_>>) -> &'n [u8] {
    name.as_ref().map_or(&[][..], |name| name)
}

/// Returns the names of the sets that a statement reads or changes.
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
    let mut names: Vec<&str> = Vec::new();
    if let Statement::Update(update) = statement {
        names.push(&update.set);
    }
    for operand in statement.operands() {
        of(operand, &mut names);
    }
    let inner = inner_statements(statement);
    names.extend(inner.flat_map(sets_of));
    names
}

/// Returns the statements of the anonymous chain that a statement jumps to.
fn inner_statements(statement: &Statement) -> impl Iterator<Item = &Statement> {
    fn lines(verdict: &Expr) -> &[ListedRule] {
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

/// Returns the sets that the rule of a command adds to, updates or deletes from. nft makes them dynamic if the same
/// text declares them.
pub(super) fn updated_sets(command: &Command) -> Vec<(Family, BString, BString)> {
    fn of<'s>(statement: &'s Statement, names: &mut Vec<&'s str>) {
        if let Statement::Update(update) = statement
            && update.element.data.is_none()
        {
            names.push(&update.set);
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
/// Returns `true` if an element may be a range of several values.
fn is_range(element: &Element) -> bool {
    let key = element.key.as_ref();
    key.is_some_and(|key| {
        matches!(
            key,
            Expr::Range(..) | Expr::Prefix(..) | Expr::Beginning(..)
        )
    })
}
