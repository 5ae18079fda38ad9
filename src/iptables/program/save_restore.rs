//! `iptables-save` and `iptables-restore`.

use std::fs::File;
use std::io::{Read, Write};

use bstr::{BStr, BString, ByteSlice};

use super::Program;
use super::command::base_chains;
use super::error::{ProgramError, Status};
use crate::iptables::text::{
    Command, NO_COMMIT, NO_NAME, NO_POLICY, NO_TABLE, Omissions, RestoreOptions, SaveOptions, Wait,
    read, save_missing, words,
};
use crate::iptables::{Backend, Error, Tables, Target, builtins};

/// An option: letter, name, its value's name if it has one, description.
type ProgramOption = (u8, &'static str, Option<&'static str>, &'static str);

pub(super) const OF_SAVE: &[ProgramOption] = &[
    (b'c', "counters", None, "include the counters of rules"),
    (b't', "table", Some("table"), "only this table"),
    (
        b'M',
        "modprobe",
        Some("command"),
        "accepted, but has no effect",
    ),
    (b'f', "file", Some("file"), "write to this file"),
    (b'V', "version", None, "print the version"),
];

pub(super) const OF_RESTORE: &[ProgramOption] = &[
    (b'c', "counters", None, "restore the counters in the text"),
    (b'v', "verbose", None, "accepted, but has no effect"),
    (b'V', "version", None, "print the version"),
    (b't', "test", None, "only check the text"),
    (b'h', "help", None, "print this help"),
    (b'n', "noflush", None, "do not flush the tables"),
    (
        b'w',
        "wait",
        Some("secs"),
        "how long to wait for the lock of the legacy tools",
    ),
    (
        b'W',
        "wait-interval",
        Some("usecs"),
        "accepted, but has no effect",
    ),
    (b'T', "table", Some("table"), "only this table of the text"),
    (
        b'M',
        "modprobe",
        Some("command"),
        "accepted, but has no effect",
    ),
];

/// Returns the help for the options, one per line.
pub(super) fn options_of(known: &[ProgramOption]) -> String {
    let each = known.iter().map(|(letter, name, value, what)| {
        let value = value.map_or_else(String::new, |value| format!(" <{value}>"));
        let option = format!("-{}, --{name}{value}", char::from(*letter));
        format!("  {option:<30}{what}\n")
    });
    each.collect()
}

/// The option with an optional value: how long to wait for the lock.
const SECONDS: u8 = b'w';

/// Returns the option's value, if there is one.
fn seconds<'w>(words: &mut (impl Iterator<Item = &'w BStr> + Clone)) -> Option<&'w BStr> {
    let next = words.clone().next()?;
    if next.starts_with(b"-") {
        return None;
    }
    words.next()
}

/// Letters with their values, and the words that are not options.
type ParsedArguments<'w> = (Vec<(u8, &'w BStr)>, Vec<&'w BStr>);

/// Writes tables like `iptables-save`. An nf_tables table that the text cannot express completely, apart from foreign
/// base chains, is only a comment, so that restoring the text loses nothing; a requested, missing one has its built-in
/// chains.
fn save(
    tables: &Tables,
    names: &[&str],
    options: SaveOptions,
    out: &mut dyn Write,
) -> std::io::Result<Omissions> {
    if tables.backend() == Backend::Legacy {
        return tables.save(options, &mut { out });
    }
    let mut omissions = Omissions::default();
    for name in names.iter().filter(|name| tables.table(name).is_none()) {
        save_missing(name, out)?;
    }
    for table in tables.iter() {
        let name = table.name();
        let mut text = Vec::new();
        let omitted = tables.save_table(&table, options, &mut text)?;
        let mut foreign = 0;
        for chain in table.chains() {
            foreign += usize::from(chain.has_foreign_hook());
        }
        if omitted.rules > 0 || omitted.chains > foreign {
            writeln!(out, "# Table `{name}' is incompatible, use 'nft' tool.")?;
            continue;
        }
        if foreign > 0 {
            writeln!(out, "{}", base_chains(name))?;
        }
        out.write_all(&text)?;
        omissions.private += omitted.private;
    }
    Ok(omissions)
}

impl Program {
    pub(super) fn save(
        &self,
        words: &[BString],
        mut output: &mut dyn Write,
        notes: &mut BString,
    ) -> Result<(), ProgramError> {
        let (given, others) =
            self.options(words, OF_SAVE, "Look at manual page `iptables-save.8'")?;
        if !others.is_empty() {
            return Err(self.usage("Unknown arguments found on commandline"));
        }
        let value = |letter: u8| {
            let mut found = given.iter().rev().filter(|(other, _)| *other == letter);
            found.next().map(|(_, value)| *value)
        };
        if value(b'V').is_some() {
            return writeln!(output, "{}", self.version()).map_err(ProgramError::of_output);
        }
        let table = value(b't').map(|name| name.to_str_lossy());
        if let Some(table) = table.as_deref().filter(|name| builtins(name).is_none()) {
            return Err(match self.backend {
                Backend::Nft => {
                    ProgramError::bare(Status::Other, format!("Table `{table}' does not exist\n"))
                }
                Backend::Legacy => ProgramError::other(
                    "Cannot initialize: Table does not exist (do you need to insmod?)",
                ),
            });
        }
        let names: Vec<&str> = table.as_deref().into_iter().collect();
        let failed = |error: Error| ProgramError::of_command(self, &error, &Command::none());
        // Without a lock, like the real program.
        let (mut iptables, _) = match self.open(&names, None) {
            Err(error) if self.cannot_open(&error) => {
                return match names.first() {
                    // Like the real program, which lists only tables that it may read.
                    None => Ok(()),
                    Some(_) => Err(ProgramError::other(
                        "Cannot initialize: Permission denied (you must be root)",
                    )),
                };
            }
            opened => opened?,
        };
        let tables = iptables.read(self.family, &names).map_err(failed)?;
        let options = SaveOptions {
            counters: value(b'c').is_some(),
        };
        let saved = match value(b'f') {
            None => save(&tables, &names, options, &mut output),
            Some(path) => path
                .to_path()
                .map_err(std::io::Error::other)
                .and_then(File::create)
                .and_then(|mut file| save(&tables, &names, options, &mut file)),
        };
        let omissions = saved.map_err(ProgramError::of_output)?;
        if omissions.private > 0 {
            notes.extend_from_slice(
                b"# There are extensions that are printed as bytes (--xt-data), which other tools do not read.\n",
            );
        }
        if self.backend == Backend::Legacy && !omissions.is_complete() {
            return Err(ProgramError::other(
                "some rules or chains cannot be saved as text: see the comments",
            ));
        }
        Ok(())
    }

    pub(super) fn restore(
        &self,
        words: &[BString],
        input: &mut dyn Read,
        output: &mut dyn Write,
        notes: &mut BString,
    ) -> Result<(), ProgramError> {
        let hint = format!("Try `{} -h'", self.name);
        let (given, others) = self.options(words, OF_RESTORE, &hint)?;
        let has = |letter: u8| given.iter().any(|(other, _)| *other == letter);
        if has(b'h') {
            notes.extend_from_slice(self.restore_help().as_bytes());
            return Ok(());
        }
        if has(b'V') {
            return writeln!(output, "{}", self.version()).map_err(ProgramError::of_output);
        }
        let mut wait = Wait::No;
        let mut table = None;
        for (letter, value) in &given {
            match letter {
                b'W' if self.backend == Backend::Legacy => {
                    notes.extend_from_slice(b"Ignoring deprecated --wait-interval option.\n")
                }
                // The nf_tables program accepts the option and has no lock.
                &SECONDS if self.backend == Backend::Nft => {}
                &SECONDS if value.is_empty() => wait = Wait::Forever,
                &SECONDS => wait = Wait::parse(value).map_err(ProgramError::parameter)?,
                b'T' => table = Some(value.to_str_lossy().into_owned()),
                _ => {}
            }
        }
        let text = match others[..] {
            [] => read(input),
            [path] => {
                let opened = path
                    .to_path()
                    .map_err(std::io::Error::other)
                    .and_then(File::open);
                read(opened.map_err(|error| {
                    let why = error.to_string();
                    let why = why.split(" (os error").next().unwrap_or_default();
                    self.usage(&format!("Can't open {path}: {why}"))
                })?)
            }
            _ => return Err(self.usage("Unknown arguments found on commandline")),
        };
        let text = text.map_err(|error| ProgramError::other(error.to_string()))?;
        let options = RestoreOptions {
            noflush: has(b'n'),
            counters: has(b'c'),
            test: has(b't'),
            table,
        };
        let named = text.lines().zip(1..).filter_map(|(line, number)| {
            let name = line.strip_prefix(b"*")?.trim_ascii().to_str().ok()?;
            let wanted = options.table.as_deref().is_none_or(|only| only == name);
            wanted.then_some((name, number))
        });
        let known = named.clone().map(|(name, _)| name);
        let known: Vec<&str> = known.filter(|name| builtins(name).is_some()).collect();
        let (mut iptables, _lock) = match self.open(&known, Some(wait.retry_policy())) {
            Err(error) if self.cannot_open(&error) => {
                let mut lines = text.lines().filter_map(|line| line.trim_ascii().first());
                let is_of_tables = lines
                    .find(|first| **first != b'#')
                    .is_none_or(|first| *first == b'*');
                return Err(match named.clone().next() {
                    Some((name, line)) => self.uninitialized(name, line),
                    // There is nothing to restore.
                    None if is_of_tables => return Ok(()),
                    None => error,
                });
            }
            opened => opened?,
        };
        match iptables.restore(self.family, &text, &options) {
            // Like the real programs: a requested table that the text lacks is ignored.
            Ok(_) | Err(Error::NotInText { .. }) => Ok(()),
            Err(error) => Err(self.of_text(&error, &text)),
        }
    }

    /// Converts the error of a restore, with its line.
    fn of_text(&self, error: &Error, text: &[u8]) -> ProgramError {
        let at = |error: ProgramError, line: usize| {
            error.followed_by(&format!("Error occurred at line: {line}"))
        };
        match error {
            Error::Text { line, error } => {
                let content = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
                match content.first() {
                    Some(b':')
                        if error.message.contains("is not a policy")
                            && self.backend == Backend::Legacy =>
                    {
                        ProgramError::of_policy(content, *line, "Bad policy name")
                    }
                    Some(b':') if error.message.contains("is not a policy") => {
                        ProgramError::plain("Bad policy name.").in_line(self.backend, *line)
                    }
                    Some(b':') if error.message == NO_POLICY => {
                        let message = format!("{}: line {line} policy invalid", self.name);
                        at(ProgramError::parameter(message), *line)
                    }
                    Some(b':') if error.message == NO_NAME => {
                        let message = format!("{}: line {line} chain name invalid", self.name);
                        at(ProgramError::parameter(message), *line)
                    }
                    // Not a line of a table.
                    _ if error.message == NO_TABLE || error.message == NO_COMMIT => {
                        ProgramError::plain(&format!("line {line} failed"))
                    }
                    _ => at(ProgramError::of_parse_error(error), *line),
                }
            }
            Error::NoCommit { .. } => {
                let end = text.lines().count() + 1;
                ProgramError::plain(&format!("COMMIT expected at line {end}"))
            }
            Error::Line { line, error } => {
                let command = self.command_of(text, *line);
                if let (Error::NoSuchTable { name, .. }, Backend::Nft) = (&**error, self.backend) {
                    let message = format!("{}: line {line} table name '{name}' invalid", self.name);
                    return at(ProgramError::parameter(message), *line);
                }
                if let Error::NoSuchTable { name, .. } = &**error {
                    return self.uninitialized(name, *line);
                }
                let content = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
                if matches!(**error, Error::NoPolicy { .. })
                    && self.backend == Backend::Legacy
                    && content.starts_with(b":")
                {
                    return ProgramError::of_policy(content, *line, "Bad built-in chain name");
                }
                if let (Error::NoSuchChain { chain, .. }, target) =
                    (&**error, &command.spec.rule.target)
                    && let Target::Jump(to) | Target::Goto(to) = target
                    && to == chain
                    && command.chain.as_ref() != Some(chain)
                {
                    let is_goto = matches!(target, Target::Goto(_));
                    return at(ProgramError::no_target(self.backend, to, is_goto), *line);
                }
                ProgramError::of_command(self, error, &command).in_line(self.backend, *line)
            }
            Error::Refused { line, failure, .. } => match self.backend {
                Backend::Nft => ProgramError::of_refused(&self.command_of(text, *line), failure)
                    .in_line(self.backend, *line),
                Backend::Legacy => ProgramError::plain(&format!("line {line} failed")),
            },
            // The kernel refused a whole legacy table; report the line of its end.
            Error::Legacy(crate::legacy::Error::Refused { table, .. }) => {
                let mut is_here = false;
                let end = text.lines().position(|line| {
                    if let Some(name) = line.strip_prefix(b"*") {
                        is_here = name.trim_ascii() == table.as_bstr().as_bytes();
                    }
                    is_here && line.trim_ascii_end() == b"COMMIT"
                });
                ProgramError::plain(&format!("line {} failed", end.map_or(0, |at| at + 1)))
            }
            other => ProgramError::of_command(self, other, &Command::none()),
        }
    }

    /// Returns `true` if the error means that legacy tables cannot be opened, at all or by the caller.
    fn cannot_open(&self, error: &ProgramError) -> bool {
        self.backend == Backend::Legacy && error.status == Status::Version
    }

    /// Returns the error for a legacy table of a line that cannot be opened.
    fn uninitialized(&self, table: &str, line: usize) -> ProgramError {
        let message = format!("{}: unable to initialize table '{table}'", self.name);
        ProgramError::parameter(message).followed_by(&format!("Error occurred at line: {line}"))
    }

    /// Returns the command in a line of the text, as far as it can be parsed.
    fn command_of(&self, text: &[u8], line: usize) -> Command {
        let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let mut found = Vec::new();
        let read = words(line, &mut found).and_then(|()| {
            let first = found.first();
            let skipped = first.is_some_and(|word| word.bytes.starts_with(b"["));
            Command::parse(self.family, &found[usize::from(skipped)..], |_| false)
        });
        read.unwrap_or_else(|_| Command::none())
    }

    /// Parses the options like `getopt_long`: combined letters, values attached or in the next word,
    /// abbreviated names.
    fn options<'w>(
        &self,
        words: &'w [BString],
        known: &[ProgramOption],
        hint: &str,
    ) -> Result<ParsedArguments<'w>, ProgramError> {
        let program = &self.name;
        let wrong = |what: String| {
            ProgramError::bare(
                Status::Other,
                format!("{program}: {what}\n{hint} for more information.\n"),
            )
        };
        let (mut given, mut others) = (Vec::new(), Vec::new());
        let mut words = words.iter().map(|word| word.as_bstr());
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"--" => others.extend(words.by_ref()),
                [b'-', b'-', name @ ..] => {
                    let (name, attached) = match name.split_once_str("=") {
                        Some((name, value)) => (name, Some(value.as_bstr())),
                        None => (name, None),
                    };
                    let exact = known.iter().filter(|(_, long, ..)| long.as_bytes() == name);
                    let starting = known
                        .iter()
                        .filter(|(_, l, ..)| l.as_bytes().starts_with(name));
                    let mut found = exact
                        .chain(starting)
                        .map(|(letter, _, value, _)| (*letter, value.is_some()));
                    let shown = word.split_str("=").next().unwrap_or_default().as_bstr();
                    let first = found.next();
                    let (letter, takes) =
                        first.ok_or_else(|| wrong(format!("unrecognized option '{shown}'")))?;
                    let value = match (takes, attached) {
                        (true, None) if letter == SECONDS => seconds(&mut words),
                        (true, None) => Some(words.next().ok_or_else(|| {
                            wrong(format!("option '{shown}' requires an argument"))
                        })?),
                        (true, Some(value)) => Some(value),
                        (false, None) => None,
                        (false, Some(_)) => {
                            let what = format!("option '{shown}' doesn't allow an argument");
                            return Err(wrong(what));
                        }
                    };
                    given.push((letter, value.unwrap_or_default()));
                }
                [b'-', letters @ ..] if !letters.is_empty() => {
                    let mut letters = letters;
                    while let [letter, rest @ ..] = letters {
                        letters = rest;
                        let shown = [*letter];
                        let shown = shown.as_bstr();
                        let found = known.iter().find(|(other, ..)| other == letter);
                        let (_, _, takes, _) =
                            found.ok_or_else(|| wrong(format!("invalid option -- '{shown}'")))?;
                        let mut value: &BStr = Default::default();
                        if takes.is_some() {
                            value = match rest {
                                [] if *letter == SECONDS => seconds(&mut words).unwrap_or_default(),
                                [] => words.next().ok_or_else(|| {
                                    wrong(format!("option requires an argument -- '{shown}'"))
                                })?,
                                attached => attached.as_bstr(),
                            };
                            letters = &[];
                        }
                        given.push((*letter, value));
                    }
                }
                _ => others.push(word),
            }
        }
        Ok((given, others))
    }

    fn usage(&self, message: &str) -> ProgramError {
        ProgramError::bare(Status::Other, format!("{message}\n"))
    }

    fn restore_help(&self) -> String {
        let options = OF_RESTORE.iter().map(|(_, name, value, _)| {
            let value = value.map_or_else(String::new, |value| format!("=<{value}>"));
            format!("\t   [ --{name}{value} ]\n")
        });
        let letters = OF_RESTORE.iter().map(|(letter, _, value, _)| {
            let value = value.map_or_else(String::new, |value| format!(" {value}"));
            format!(" [-{}{value}]", char::from(*letter))
        });
        let (letters, options) = (letters.collect::<String>(), options.collect::<String>());
        format!("Usage: {}{letters} [file]\n{options}", self.name)
    }
}
