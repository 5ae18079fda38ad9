//! Restores the input of `iptables-restore`.
//!
//! The module is long because parsing a line, carrying it out and locating its errors belong together.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};

use super::command::LineOptions;
use super::execute::execute;
use super::{Command, ParseError, Verb, Word, words};
use crate::iptables::KnownDifference;
use crate::iptables::edit::{Edit, TableEdit};
use crate::iptables::handle::{Change, of_empty};
use crate::iptables::nft::Profile;
use crate::iptables::{Backend, Counters, Error, Iptables, Policy, Target, builtins, sets};
use crate::nft::Ruleset;
use crate::xt::{self, Family, Names, TruncatedText, value};

/// Options of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// Keeps the tables' content that is not in the text (`--noflush`). Otherwise a table that the text
    /// has is emptied first.
    pub noflush: bool,
    /// Takes the counters of policies and rules from the text (`--counters`). Otherwise they are 0.
    pub counters: bool,
    /// Parses and encodes everything and changes nothing (`--test`). On nf_tables the kernel checks
    /// it, too ([`nft::Connection::check`](crate::nft::Connection::check)).
    pub test: bool,
    /// Restores only this table of the text (`-T`).
    pub table: Option<String>,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// Number of tables in the text.
    pub tables: usize,
    /// Number of lines that declare chains.
    pub chains: usize,
    /// Number of added rules.
    pub rules: usize,
    /// Texts that were too long and were truncated like in iptables; at most one for each line.
    pub truncated: Vec<TruncatedLine>,
}

/// A line with a text that was too long and was truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedLine {
    /// The family of the text.
    pub family: Family,
    /// The line, from 1.
    pub line: usize,
    /// The truncated text.
    pub truncated: TruncatedText,
}

impl Iptables {
    /// Restores the output of `iptables-save`, or any input of `iptables-restore`.
    ///
    /// On nf_tables the change is atomic; legacy tables are replaced one after
    /// the other, each atomically. In both cases a text with an error changes nothing. If the
    /// kernel refuses a later legacy table, the earlier ones stay replaced
    /// ([`Error::PartlyApplied`]).
    ///
    /// # Errors
    /// [`Error::Text`] contains line, column and message; [`Error::Line`] and [`Error::Refused`] the line;
    /// and the errors of [`update_tables`](Self::update_tables).
    pub fn restore(
        &mut self,
        family: Family,
        text: impl AsRef<[u8]>,
        options: &RestoreOptions,
    ) -> Result<Restored, Error> {
        self.restore_all(&[(family, text.as_ref())], options)
    }

    /// Restores texts of both families, on nf_tables atomically.
    ///
    /// # Errors
    /// The errors of [`restore`](Self::restore); with more than one text within [`Error::Input`].
    pub fn restore_all(
        &mut self,
        inputs: &[(Family, &[u8])],
        options: &RestoreOptions,
    ) -> Result<Restored, Error> {
        let texts = Texts::new(inputs, options)?;
        let tables = &texts.tables;
        let mut replaced = Vec::new();
        if self.backend() == Backend::Legacy && !options.noflush {
            replaced.extend(tables.iter().copied().filter(|(family, name)| {
                let mut texts = inputs.iter().filter(|(other, _)| other == family);
                texts.any(|(_, text)| sets_all_policies(text, name))
            }));
        }
        let change = Change {
            apply: !options.test,
            tracking: false,
            replaced: &replaced,
            repeatable: !options.noflush,
        };
        let mut input = 0;
        let (native_log, text_names) = (self.has_native_log(), self.names());
        let backend = self.backend();
        let result = self.change(tables, change, &mut |edit| {
            let mut restored = Restored::default();
            for (position, (family, text)) in inputs.iter().enumerate() {
                input = position;
                let restorer = Restorer {
                    family: *family,
                    options,
                    backend,
                    tables,
                    first_line: texts.starts[position],
                    chains: HashSet::new(),
                    native_log,
                    names: &text_names,
                    multiplied: 0,
                };
                restorer.restore(text, edit, &mut restored)?;
            }
            Ok(restored)
        });
        result.map_err(|error| self.explain(&texts, options, input, error))
    }

    /// Attributes an error of the kernel to its line, and an error in a text to that text.
    pub(super) fn explain(
        &mut self,
        texts: &Texts<'_>,
        options: &RestoreOptions,
        input: usize,
        error: Error,
    ) -> Error {
        texts.explain(input, error, |family, text, line, content| {
            missing(family, text, line, content, |table| {
                if !options.noflush {
                    return Some(Vec::new());
                }
                let tables = self.read(family, &[table]).ok()?;
                let chains = tables
                    .table(table)
                    .into_iter()
                    .flat_map(|table| table.chains());
                Some(chains.map(|chain| chain.name().to_string()).collect())
            })
        })
    }
}

/// Texts to restore, and the tables in them.
pub(super) struct Texts<'i> {
    pub(super) inputs: &'i [(Family, &'i [u8])],
    pub(super) tables: Vec<(Family, &'i str)>,
    /// The number of lines before each: the lines are numbered consecutively across the texts.
    starts: Vec<usize>,
}

impl<'i> Texts<'i> {
    pub(super) fn new(
        inputs: &'i [(Family, &'i [u8])],
        options: &RestoreOptions,
    ) -> Result<Self, Error> {
        let mut tables = Vec::new();
        let mut starts = vec![0];
        for (position, (family, text)) in inputs.iter().enumerate() {
            let mut lines = 0;
            for line in text.lines() {
                lines += 1;
                let Some(name) = table_name(line) else {
                    continue;
                };
                // A table that iptables does not know has no known built-in chains, in either backend.
                let Some(name) = name.to_str().ok().filter(|name| builtins(name).is_some()) else {
                    let error = Error::no_such_table(&name.to_str_lossy()).at(lines);
                    return Err(in_input(inputs, position, error));
                };
                let wanted = options.table.as_deref().is_none_or(|only| only == name);
                if wanted && !tables.contains(&(*family, name)) {
                    tables.push((*family, name));
                }
            }
            starts.push(starts[position] + lines);
        }
        if let Some(wanted) = options.table.as_deref().filter(|_| tables.is_empty()) {
            return Err(Error::not_in_text(
                wanted,
                inputs.iter().map(|(_, text)| *text),
            ));
        }
        Ok(Self {
            inputs,
            tables,
            starts,
        })
    }
}

impl Iptables {
    /// Returns the datagram that [`restore`](Self::restore) would send if it depends on no existing
    /// state, as a baseline for benchmarks.
    ///
    /// # Errors
    /// The errors of [`restore`](Self::restore); [`Error::Unsupported`] with legacy tables.
    #[doc(hidden)]
    pub fn restore_datagram(
        &mut self,
        family: Family,
        text: impl AsRef<[u8]>,
        options: &RestoreOptions,
    ) -> Result<Vec<u8>, Error> {
        let text = text.as_ref();
        let names = text.lines().filter_map(table_name);
        let names = names.filter_map(|name| name.to_str().ok());
        let tables: Vec<_> = names.map(|name| (family, name)).collect();
        let (native_log, text_names) = (self.has_native_log(), self.names());
        self.datagram_of(&tables, &mut |edit| {
            let restorer = Restorer {
                family,
                options,
                backend: Backend::Nft,
                tables: &tables,
                first_line: 0,
                chains: HashSet::new(),
                native_log,
                names: &text_names,
                multiplied: 0,
            };
            restorer.restore(text, edit, &mut Restored::default())
        })
    }
}

/// Restores a text of one family into legacy tables that were read before, without a kernel, and returns the
/// replacements. For the fuzz targets.
///
/// # Errors
/// The errors of [`Iptables::restore`].
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn restore_in_memory(
    tables: &[(Family, crate::legacy::Table)],
    text: impl AsRef<[u8]>,
    options: &RestoreOptions,
) -> Result<(Restored, Vec<Option<crate::legacy::Replacement>>), Error> {
    let names: Vec<_> = tables
        .iter()
        .map(|(family, table)| (*family, table.name().to_string()))
        .collect();
    let known: Vec<_> = names.iter().map(|(f, name)| (*f, name.as_str())).collect();
    let sets = Err(crate::ipset::Error::NotBuilt);
    let mut session = crate::iptables::legacy::Session::new(tables);
    let mut restored = Restored::default();
    let text_names = Names::system();
    let restorer = Restorer {
        backend: Backend::Legacy,
        family: tables.first().map_or(Family::Ipv4, |(family, _)| *family),
        options,
        tables: &known,
        first_line: 0,
        chains: HashSet::new(),
        native_log: false,
        names: &text_names,
        multiplied: 0,
    };
    let mut edit = Edit::new(&mut session, &names, &sets);
    restorer.restore(text.as_ref(), &mut edit, &mut restored)?;
    let replacements = session.finish()?.into_iter().map(|(_, one)| one);
    Ok((restored, replacements.collect()))
}

/// Returns the ruleset that [`Iptables::restore`] would create in an empty nf_tables, without a kernel.
///
/// ```
/// use chainwright::iptables::Family;
/// use chainwright::iptables::text::{RestoreOptions, ruleset};
/// use chainwright::nft;
///
/// let text = "*filter\n:mine - [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j mine\nCOMMIT\n";
/// let ruleset = ruleset(Family::Ipv4, text, &RestoreOptions::default())?;
/// let filter = ruleset.table(nft::Family::IP, "filter").unwrap();
/// assert_eq!(filter.chain("INPUT").unwrap().rules().len(), 1);
/// # Ok::<(), chainwright::iptables::Error>(())
/// ```
///
/// # Errors
/// Those of [`Iptables::restore`].
pub fn ruleset(
    family: Family,
    text: impl AsRef<[u8]>,
    options: &RestoreOptions,
) -> Result<Ruleset, Error> {
    let (text, names, sets) = (text.as_ref(), Names::system(), sets::open());
    let inputs = [(family, text)];
    let texts = Texts::new(&inputs, options)?;
    let profile = Profile::default();
    let owned: Vec<_> = texts
        .tables
        .iter()
        .map(|(f, n)| (*f, (*n).to_owned()))
        .collect();
    let made = of_empty(profile, &owned, |editor| {
        let restorer = Restorer {
            family,
            options,
            backend: Backend::Nft,
            tables: &texts.tables,
            first_line: 0,
            chains: HashSet::new(),
            native_log: profile >= Profile::V1_8_8,
            names: &names,
            multiplied: 0,
        };
        let edit = &mut Edit::new(editor, &owned, &sets);
        restorer.restore(text, edit, &mut Restored::default())
    });
    made.map_err(|error| {
        texts.explain(0, error, |family, text, line, content| {
            missing(family, text, line, content, |_| Some(Vec::new()))
        })
    })
}

impl Texts<'_> {
    /// Attributes an error of the kernel to its line, and an error in a text to that text. `missing` may return a better
    /// error for a line.
    fn explain(
        &self,
        input: usize,
        error: Error,
        missing: impl FnOnce(Family, &[u8], usize, &[u8]) -> Option<Error>,
    ) -> Error {
        let (inputs, starts) = (self.inputs, &self.starts);
        match error {
            // The kernel refused a line of one of the texts.
            Error::Refused { line, failure, .. } => {
                let text = starts
                    .partition_point(|start| *start < line)
                    .saturating_sub(1);
                let line = line - starts.get(text).copied().unwrap_or(0);
                let lines = inputs.get(text).map(|(_, text)| text.lines());
                let content = lines.and_then(|mut lines| lines.nth(line.saturating_sub(1)));
                let missing = inputs.get(text).and_then(|(family, text)| {
                    missing(*family, text, line, content.unwrap_or_default())
                });
                let refused = missing.unwrap_or_else(|| Error::Refused {
                    line,
                    text: BString::from(content.unwrap_or_default()),
                    failure,
                });
                in_input(inputs, text, refused)
            }
            other => in_input(inputs, input, other),
        }
    }
}

/// Returns the error for a chain that is missing, or exists already, if the kernel refused the line for that reason.
/// `existing` returns the names of a table's chains that the text keeps.
fn missing(
    family: Family,
    text: &[u8],
    line: usize,
    content: &[u8],
    existing: impl FnOnce(&str) -> Option<Vec<String>>,
) -> Option<Error> {
    let (mut table, mut names) = (None, Vec::new());
    for before in text.lines().take(line.saturating_sub(1)) {
        if let Some(name) = before.strip_prefix(b"*") {
            table = Some(name.trim_ascii().to_str_lossy().into_owned());
            names.clear();
        } else if let Some(chain) = before.strip_prefix(b":").or(before.strip_prefix(b"-N ")) {
            names.extend(
                chain
                    .fields_with(|c| c == ' ')
                    .next()
                    .map(|name| name.to_str_lossy().into_owned()),
            );
        }
    }
    let table = table?;
    names.extend(existing(&table)?);
    names.extend(
        builtins(&table)?
            .iter()
            .map(|builtin| builtin.chain.to_owned()),
    );
    let mut found = Vec::new();
    words(content, &mut found).ok()?;
    let (_, found) = counters(&found).ok()?;
    let command = Command::parse(family, found, |_| true).ok()?;
    let chain = command.chain?;
    let is_known = |chain: &BString| names.iter().any(|name| chain == name.as_str());
    if command.verb == Verb::NewChain {
        return is_known(&chain).then(|| Error::ChainExists { table, chain }.at(line));
    }
    let to = match command.spec.rule.target {
        Target::Jump(to) | Target::Goto(to) => Some(to),
        _ => None,
    };
    let target = |to: &BString| xt::Target::named(family, to).is_some();
    let to = to.filter(|to| !target(to));
    let missing = std::iter::once(chain)
        .chain(to)
        .find(|chain| !is_known(chain))?;
    let known = names.iter().map(String::as_str);
    Some(Error::no_such_chain(&table, missing.as_bstr(), known).at(line))
}

/// Adds the text's family to the error, if there are several texts.
fn in_input(inputs: &[(Family, &[u8])], which: usize, error: Error) -> Error {
    match inputs.get(which) {
        Some((family, _)) if inputs.len() > 1 => match error {
            error @ (Error::Text { .. } | Error::Line { .. } | Error::Refused { .. }) => {
                Error::Input {
                    family: *family,
                    error: Box::new(error),
                }
            }
            other => other,
        },
        _ => error,
    }
}

/// Returns the table of a line `*TABLE`.
fn table_name(line: &[u8]) -> Option<&BStr> {
    let name = line.strip_prefix(b"*")?;
    Some(name.trim_ascii().as_bstr())
}

/// Returns `true` if the text, which empties this table first, sets the policy of all its built-in chains. It stops at
/// the first line that does something else, so `false` may only mean that the text is not written in the usual way.
fn sets_all_policies(text: &[u8], table: &str) -> bool {
    let Some(all) = builtins(table) else {
        return false;
    };
    let is_start = |line: &&[u8]| line.strip_prefix(b"*") == Some(table.as_bytes());
    let mut set = [false; 8]; // more than any table has
    let lines = text.lines().skip_while(|line| !is_start(line)).skip(1);
    for line in lines {
        let Some(declared) = line.strip_prefix(b":") else {
            break;
        };
        let mut words = declared.split(|byte| *byte == b' ');
        let (Some(chain), Some(b"ACCEPT" | b"DROP")) = (words.next(), words.next()) else {
            continue;
        };
        let known = all.iter().zip(&mut set);
        for (_, set) in known.filter(|(known, _)| known.chain.as_bytes() == chain) {
            *set = true;
        }
        if set.iter().take(all.len()).all(|set| *set) {
            return true;
        }
    }
    false
}

/// Differences from `iptables-restore`.
pub(in crate::iptables) const DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        subject: "several tables in one text",
        iptables: "one after another: an error leaves the earlier ones changed",
        chainwright: "nf_tables: all at once or nothing; legacy tables: nothing if the text has an error",
        reason: "A mixture of old and new rules is inconsistent.",
    },
    KnownDifference {
        subject: "`-T TABLE` with a text without that table",
        iptables: "does nothing, with exit code 0",
        chainwright: "refuses it",
        reason: "The name is mistyped, or it is the wrong file.",
    },
    KnownDifference {
        subject: "`-m NAME --xt-revision NUMBER --xt-data HEX`",
        iptables: "does not have these options",
        chainwright: "accepts an extension as bytes",
        reason: "Extensions without options can be saved and restored too.",
    },
    KnownDifference {
        subject: "a text that does not end, or that contains a NUL",
        iptables: "reads on, or stops at the NUL",
        chainwright: "refuses it; the limit is 1 GiB",
        reason: "It is not the output of iptables-save.",
    },
];

pub(super) struct Restorer<'r> {
    pub(super) family: Family,
    pub(super) options: &'r RestoreOptions,
    /// The backend of the tables.
    pub(super) backend: Backend,
    /// The tables of the change.
    pub(super) tables: &'r [(Family, &'r str)],
    /// The number of lines before this text's.
    pub(super) first_line: usize,
    /// Chains of the current table with the name of a target.
    pub(super) chains: HashSet<BString>,
    /// See [`Context`](xt::Context).
    pub(super) native_log: bool,
    /// See [`Context`](xt::Context).
    pub(super) names: &'r Names,
    /// The number of rules in excess of one per line.
    pub(super) multiplied: usize,
}

/// The longest line of a text, in bytes. A rule of a legacy table has at most 64 KiB, and the kernel
/// lists no longer rule of nf_tables.
pub const MAX_LINE_LENGTH: usize = 1 << 20;

/// The most rules in excess of one per line, in texts with several addresses in a line.
const MAX_MULTIPLIED: usize = 1 << 18;

/// The error in a line `:` without a name.
pub(in crate::iptables) const NO_NAME: &str = "expected a chain name";

/// The error in a line `:CHAIN` without a policy.
pub(in crate::iptables) const NO_POLICY: &str = "expected a policy or `-`";

/// The error in a line outside of a table.
pub(in crate::iptables) const NO_TABLE: &str = "expected a line like `*filter`";

/// The error in a line that starts a table before the end of another.
pub(in crate::iptables) const NO_COMMIT: &str = "expected COMMIT before the next table";

/// The table of a line.
#[derive(Clone, Copy)]
enum Section<'t> {
    Outside,
    /// In a table that is not requested.
    Skipped(&'t BStr),
    /// In the table at this index of the list.
    Table(usize),
}

impl<'r> Restorer<'r> {
    pub(super) fn restore(
        mut self,
        text: &[u8],
        edit: &mut Edit<'_>,
        restored: &mut Restored,
    ) -> Result<(), Error> {
        let mut section = Section::Outside;
        let mut buffer = Vec::new();
        let mut line_options = LineOptions::default();
        let mut command = Command::none();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            edit.set_line(self.first_line + number);
            let fault = |column, message: String| Error::Text {
                line: number,
                error: ParseError {
                    column,
                    message,
                    hint: None,
                },
            };
            match line.first() {
                None | Some(b'#') => continue,
                Some(_) if line.trim_ascii().is_empty() => continue,
                Some(_) if line.len() > MAX_LINE_LENGTH => {
                    let length = line.len();
                    let most = MAX_LINE_LENGTH;
                    let message = format!("the line has {length} bytes (at most {most})");
                    return Err(fault(most, message));
                }
                _ => {}
            }
            match (section, line[0]) {
                (Section::Outside, b'*') => {
                    section = self.start(line, edit).map_err(|error| error.at(number))?;
                    restored.tables += usize::from(matches!(section, Section::Table(_)));
                }
                (Section::Outside, _) => {
                    return Err(fault(1, NO_TABLE.to_owned()));
                }
                (_, b'*') => {
                    return Err(fault(1, NO_COMMIT.to_owned()));
                }
                (_, _) if line.trim_ascii_end() == b"COMMIT" => section = Section::Outside,
                (Section::Skipped(_), _) => {}
                (Section::Table(table), b':') => {
                    self.declare(line, &mut buffer, &mut edit.at(table))
                        .map_err(|error| match error {
                            Error::Text { error, .. } => Error::Text {
                                line: number,
                                error,
                            },
                            other => other.at(number),
                        })?;
                    restored.chains += 1;
                }
                (Section::Table(table), _) => {
                    let in_line = |error| Error::Text {
                        line: number,
                        error,
                    };
                    buffer.clear();
                    words(line, &mut buffer).map_err(in_line)?;
                    let (counters, words) = counters(&buffer).map_err(in_line)?;
                    let is_chain = |name: &BStr| self.chains.contains(name);
                    let native_log = self.native_log;
                    command
                        .read(
                            &mut line_options,
                            self.family,
                            native_log,
                            self.names,
                            words,
                            &is_chain,
                        )
                        .map_err(in_line)?;
                    let mut truncated = command.spec.truncated.drain(..);
                    restored
                        .truncated
                        .extend(truncated.next().map(|truncated| TruncatedLine {
                            family: self.family,
                            line: number,
                            truncated,
                        }));
                    drop(truncated);
                    self.multiplied = command.spec.number().saturating_add(self.multiplied) - 1;
                    if self.multiplied > MAX_MULTIPLIED {
                        let message = format!(
                            "each pair of a source and a destination is a rule: a text can have at \
                             most {MAX_MULTIPLIED} more rules than lines"
                        );
                        return Err(fault(1, message));
                    }
                    let mut table = edit.at(table);
                    let counters = counters.filter(|_| self.options.counters);
                    if counters.is_some() && command.spec.counters.is_some() {
                        let message = "multiple --set-counters options not allowed";
                        return Err(fault(1, message.to_owned()));
                    }
                    let rules = execute(&mut command, counters, &mut table)
                        .map_err(|error| error.at(number))?;
                    restored.rules += rules;
                }
            }
        }
        match section {
            Section::Outside => Ok(()),
            Section::Skipped(name) => Err(Error::NoCommit {
                table: name.to_string(),
            }),
            Section::Table(table) => Err(Error::NoCommit {
                table: self.tables[table].1.to_owned(),
            }),
        }
    }

    /// Processes a line `*TABLE`.
    fn start<'l>(&mut self, line: &'l [u8], edit: &mut Edit<'_>) -> Result<Section<'l>, Error> {
        self.chains.clear();
        let name = line[1..].trim_ascii().as_bstr();
        let position = self
            .tables
            .iter()
            .position(|(family, table)| *family == self.family && name == *table);
        let Some(position) = position else {
            return match &self.options.table {
                Some(_) => Ok(Section::Skipped(name)),
                None => Err(Error::no_such_table(&name.to_string())),
            };
        };
        if !self.options.noflush {
            edit.at(position).clear()?;
        }
        Ok(Section::Table(position))
    }

    /// Processes a line `:CHAIN POLICY [PACKETS:BYTES]`.
    fn declare<'l>(
        &mut self,
        line: &'l [u8],
        found: &mut Vec<Word<'l>>,
        table: &mut TableEdit<'_>,
    ) -> Result<(), Error> {
        let in_line = |error| Error::Text { line: 0, error };
        found.clear();
        words(&line[1..], found).map_err(in_line)?;
        let mut found = found.iter();
        let Some(name) = found.next() else {
            return Err(in_line(ParseError::new(2, NO_NAME)));
        };
        let column = |word: &Word<'_>| word.column + 1;
        let chain = super::command::chain_name(name.text(), column(name)).map_err(in_line)?;
        let Some(policy_word) = found.next() else {
            let end = column(name) + name.bytes.len();
            return Err(in_line(ParseError::new(end, NO_POLICY)));
        };
        let is_builtin = chain
            .to_str()
            .is_ok_and(|chain| crate::iptables::builtin(table.name(), chain).is_some());
        let bad_policy = |other: &BStr| {
            let message = format!("`{other}` is not a policy (ACCEPT, DROP or -)");
            in_line(ParseError::new(column(policy_word), message))
        };
        // A user's chain has no policy. Like iptables-nft, ignore the word in its place.
        let has_policy =
            policy_word.text() != "-" && (is_builtin || self.backend == Backend::Legacy);
        // Without a policy the counters are not checked either, except for a built-in chain with
        // iptables-nft.
        let has_counters = has_policy || (is_builtin && self.backend == Backend::Nft);
        let word = found.next();
        let given = word.and_then(|word| bracketed(word.text()));
        if has_counters && given.is_none() && (word.is_some() || self.options.counters) {
            let message = format!("invalid policy counters for chain '{chain}'");
            let section = column(word.unwrap_or(policy_word));
            return Err(in_line(ParseError::new(section, message)));
        }
        if has_policy && !is_builtin {
            return Err(Error::NoPolicy {
                table: table.name().to_owned(),
                chain,
            });
        }
        let policy = match policy_word.text().as_bytes() {
            _ if !has_policy => None,
            b"ACCEPT" => Some(Policy::Accept),
            b"DROP" => Some(Policy::Drop),
            other => return Err(bad_policy(other.as_bstr())),
        };
        if xt::Target::named(self.family, &chain).is_some() {
            self.chains.insert(chain.clone());
        }
        table.declare(&chain)?;
        // iptables-legacy does not change a chain without a policy here.
        if is_builtin && (has_policy || self.backend == Backend::Nft) {
            let counters = if self.options.counters { given } else { None };
            table.set_policy(&chain, policy, Some(counters.unwrap_or_default()))?;
        }
        Ok(())
    }
}

/// Parses the counters at the start of a line; returns them and the remaining words.
pub(in crate::iptables) fn counters<'w, 'a>(
    words: &'w [Word<'a>],
) -> Result<(Option<Counters>, &'w [Word<'a>]), ParseError> {
    match words {
        [first, rest @ ..] if first.bytes.starts_with(b"[") => match bracketed(first.text()) {
            Some(counters) => Ok((Some(counters), rest)),
            None => Err(ParseError::new(
                first.column,
                "expected counters in the form [PACKETS:BYTES]",
            )),
        },
        all => Ok((None, all)),
    }
}

/// Parses `[PACKETS:BYTES]`.
fn bracketed(text: &BStr) -> Option<Counters> {
    let inner = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let at = inner.find_byte(b':')?;
    let (packets, bytes) = (&inner[..at], &inner[at + 1..]);
    Some(Counters {
        packets: value::decimal(packets.as_bstr()).ok()?,
        bytes: value::decimal(bytes.as_bstr()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_as_a_whole_if_all_its_policies_are_set() {
        let text = b"*nat\n:OUTPUT ACCEPT\nCOMMIT\n*filter\n:INPUT DROP [1:2]\n:x - [0:0]\n\
            :FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A x\nCOMMIT\n";
        assert!(sets_all_policies(text, "filter"));
        assert!(!sets_all_policies(text, "nat"));
        assert!(!sets_all_policies(text, "raw"));
        assert!(!sets_all_policies(text, "nix"));
        for (part, other) in [
            (":INPUT DROP", ":INPUT -"),
            (":FORWARD", "-A x\n:FORWARD"),
            (":OUTPUT ACCEPT [0:0]\n", ""),
        ] {
            let text = text.to_str().unwrap().replace(part, other);
            assert!(!sets_all_policies(text.as_bytes(), "filter"), "{text}");
        }
    }
}
